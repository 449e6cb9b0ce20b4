"""As apostilas em HTML: fórmulas em MathML, diagramas em SVG, links que chegam, nada de fora."""

import importlib.util
import re

import pytest

from conftest import RAIZ
from leitor_de_paginas import conferir, conferir_no_navegador, texto, todos
from nucleo.paginas import apostilas as apostila_html
from nucleo.paginas import diagramas
from test_pagina import figura

pytestmark = pytest.mark.unit
DIAGRAMA = """flowchart TD
    accTitle: A entrada do modelo
    accDescr: os ids viram vetores, e as posições também; os dois se somam
    A["ids"] -->|busca| B(wte)
    subgraph entrada [A entrada]
      B --> C((+))
    end
"""
EXEMPLO = r"""# Apostila 99 · Um título com `código`

<!--[[[cog
import cog; cog.outl("não aparece")
]]]-->
Leitura: 7 minutos.
<!--[[[end]]]-->

## 1. A ideia: rei − homem

Na linha $\cos\theta = \frac{a \cdot b}{\|a\|\,\|b\|}$ e com crase $`x_1`$. Custa R$ 5, ou R$ 7.

$$
\begin{aligned} h_0 &= W_E + W_P \\ y &= \begin{pmatrix} 1 & 2 \cr 3 & 4 \end{pmatrix} \end{aligned}
$$

No meio da frase, $$\operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V$$, destacada.

> [!NOTE]
> Uma nota com $d = 768$.

> [!WARNING]
> Cuidado.

| palavra | cosseno |
|---|---|
| rei | 0,815 |
| `a` e $b$ | −0,5 |

<details><summary>Resposta</summary>

Escondida, com **negrito** e um [link](outra.md#2-outra-seção).

</details>

```python
def f(x):  # um comentário
    return "$não é fórmula$"
```

```math
\sum_{i=1}^{n} x_i
```

```mermaid
DIAGRAMA```

![um ruído cinza](figuras/ruido.png)

Veja [a ideia](#1-a-ideia-rei--homem), [o outro](outra.md), [a lição](../lab/02_embeddings.py) e a nota[^1].

[^1]: No rodapé.

- [x] feito
"""


@pytest.fixture(scope="module")
def escritas(tmp_path_factory):
    raiz = tmp_path_factory.mktemp("lá embaixo")
    origem = raiz / "apostilas"
    (origem / "figuras").mkdir(parents=True)
    (raiz / "lab").mkdir()
    (raiz / "lab" / "02_embeddings.py").touch()
    (origem / "figuras" / "ruido.png").write_bytes(figura()[0])
    (origem / "figuras" / diagramas.nome_do_svg(DIAGRAMA)).write_text(
        diagramas.limpar(SVG, DIAGRAMA), encoding="utf-8"
    )
    (origem / "99_exemplo.md").write_text(EXEMPLO.replace("DIAGRAMA", DIAGRAMA), encoding="utf-8")
    (origem / "outra.md").write_text("# Outra\n\n## 2. Outra seção\n\nFim.\n", encoding="utf-8")
    destino = raiz / "outputs" / "apostilas"
    destino.mkdir(parents=True)
    (raiz / "outputs" / "index.html").touch()
    (destino / "que_sumiu.html").touch()
    return destino, {a.fonte: a for a in apostila_html.escrever(origem, destino)}


# Como o mermaid os escreve: estilo, marcas com id, setas que as citam.
SVG = """<svg id="my-svg" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200.4 100.6" aria-roledescription="flowchart-v2">
<style>#my-svg{fill:red}</style><g><marker id="my-svg_pointEnd" class="marker"><path d="M 0 0 L 10 5"/></marker>
<marker id="my-svg_sem_uso"><path d="M 0 0"/></marker>
<path class="flowchart-link" id="L_A_B_0" style="x" data-points="Zm9v" d="M1.23456,2 L3,4" marker-end="url(#my-svg_pointEnd)"/>
<g class="node"><rect width="50" height="20"/><g class="label"><text>ids</text></g></g></g></svg>"""


@pytest.fixture(scope="module")
def arvore(escritas):
    destino, _ = escritas
    return conferir((destino / "99_exemplo.html").read_text(encoding="utf-8"), destino)


def test_tudo_converteu_e_nada_sumiu_calado(escritas):
    destino, apostilas = escritas
    assert {a.fonte: a.avisos for a in apostilas.values()} == {"99_exemplo.md": [], "outra.md": []}
    # A página de uma apostila que não existe mais sai da pasta.
    assert sorted(p.name for p in destino.iterdir()) == ["99_exemplo.html", "outra.html"]


def test_formulas_em_mathml_e_nenhum_latex_cru(arvore):
    # Contadas à mão no exemplo: 2 na linha, 1 bloco, 1 no meio, 1 na nota, 1 na tabela, 1 cerca math.
    formulas = todos(arvore, "math")
    assert len(formulas) == 7
    assert [i for i, m in enumerate(formulas) if todos(m, "mfrac")] == [0, 3]
    assert len(todos(formulas[2], "mtr")) == 4  # duas linhas alinhadas, e a matriz de duas
    assert texto(todos(formulas[3], "mi")[0]) == "softmax"
    assert sum(m.get("display") == "block" for m in formulas) == 3
    for no in arvore.iter():
        if str(no.tag).rsplit("}", 1)[-1] not in ("code", "pre", "script", "style", "span"):
            assert "\\" not in (no.text or "") + (no.tail or "")
    corpo = texto(todos(arvore, "article")[0])
    assert "R$ 5, ou R$ 7" in corpo and "$não é fórmula$" in corpo
    assert corpo.count("$") == 4


def test_notas_tabela_detalhes_e_codigo(arvore):
    notas = [texto(p) for p in todos(arvore, "p") if p.get("class") == "markdown-alert-title"]
    assert notas == ["Nota", "Atenção"]
    assert "Resposta" in [texto(s) for s in todos(arvore, "summary")]
    tarefas = [li for li in todos(arvore, "li") if li.get("class") == "task-list-item"]
    assert [li[0].get("aria-label") for li in tarefas] == ["feito"]
    assert [th.get("class") for th in todos(arvore, "th")] == [None, "numero"]
    codigo = next(p for p in todos(arvore, "pre") if "def f" in texto(p))
    assert "k" in [s.get("class") for s in todos(codigo, "span")]
    corpo = texto(arvore)
    assert "não aparece" not in corpo and "cog" not in corpo and "[[[" not in corpo


def test_ancoras_do_github_e_links_entre_paginas(arvore):
    enderecos = {texto(a): a.get("href") for a in todos(todos(arvore, "article")[0], "a")}
    assert enderecos["a ideia"] == "#1-a-ideia-rei--homem"
    assert enderecos["o outro"] == "outra.html"
    assert enderecos["link"].startswith("outra.html#2-outra-se")
    assert enderecos["a lição"] == "../../lab/02_embeddings.py"
    navegacao = next(n for n in todos(arvore, "nav") if n.get("aria-label") == "Seções")
    assert "1. A ideia: rei − homem" in texto(navegacao)
    assert texto(todos(arvore, "h1")[0]) == "Apostila 99 · Um título com código"


def test_o_diagrama_tem_nome_e_texto(arvore):
    svg = todos(arvore, "svg")[0]
    assert svg.get("role") == "img" and not todos(svg, "style")
    assert texto(todos(svg, "title")[0]) == "A entrada do modelo"
    assert texto(todos(svg, "desc")[0]).startswith("os ids viram vetores")
    assert len(todos(svg, "marker")) == 1
    assert "flowchart TD" in texto(arvore)


def test_tempo_de_leitura(tmp_path, escritas):
    # 400 palavras são 2 min; uma figura (12 s), 10 linhas de código (30 s) e 3 fórmulas (24 s): 3 min e 6 s.
    (tmp_path / "figuras").mkdir()
    (tmp_path / "figuras" / "x.png").write_bytes(figura()[0])
    texto_ = (
        "# T\n\n" + "palavra " * 399 + "\n\n![x](figuras/x.png)\n\n```\n" + "a\n" * 10 + "```\n"
    )
    (tmp_path / "a.md").write_text(texto_ + "\n$$\nx\n$$\n" * 3, encoding="utf-8")
    a = apostila_html.converter(tmp_path / "a.md", ["a.md"], tmp_path)
    assert (a.palavras, a.minutos) == (400, 3)
    assert a.leitura == (
        "leitura: 3 min (400 palavras, 10 linhas de código, 3 fórmulas destacadas, 1 figura)"
    )
    # A conta que o texto já traz vale, e aparece uma vez só.
    destino, apostilas = escritas
    assert apostilas["99_exemplo.md"].minutos == 7
    html = (destino / "99_exemplo.html").read_text(encoding="utf-8")
    assert html.count("7 min") == 1 and "minutos" not in html


@pytest.mark.parametrize(
    ("markdown", "aviso", "na_pagina"),
    [
        (r"$\naoexiste{x}$", "não converteu", r"\naoexiste{x}"),
        ("![gato](figuras/gato.png)", "a figura figuras/gato.png", "gato"),
        ("![gato](../../segredo.png)", "a figura ../../segredo.png", "gato"),
        ("[x](nada.md)", "o link nada.md", "x"),
        ("[x](#nada)", "não leva a nenhuma seção", "x"),
        ("```mermaid\nflowchart LR\n a[ovo] --> b\n```", "falta o desenho", "a[ovo] --&gt; b"),
    ],
)  # fmt: skip
def test_o_que_nao_da_certo_aparece_e_avisa(tmp_path, markdown, aviso, na_pagina):
    (tmp_path / "a.md").write_text(f"# T\n\n{markdown}\n", encoding="utf-8")
    (a,) = apostila_html.escrever(tmp_path, tmp_path / "html")
    assert len(a.avisos) == 1 and aviso in a.avisos[0]
    assert na_pagina in (tmp_path / "html" / "a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "cru",
    [
        "<script>alert(1)</script>", "no meio <script>alert(1)</script> da frase",
        '<img src="x" onerror="alert(1)">', "<scr<!-- x -->ipt>alert(1)</script>",
        '<iframe src="http://x"></iframe>', "<details\nontoggle=alert(1) open>", "<svg onload=\"alert(1)\">",
    ],
)  # fmt: skip
def test_html_perigoso_sai_como_texto(tmp_path, cru):
    (tmp_path / "a.md").write_text(f"# T\n\n{cru}\n\nDepois.\n", encoding="utf-8")
    (a,) = apostila_html.escrever(tmp_path, tmp_path / "html")
    assert not re.search(r"<(script|iframe|svg|img|details)\b|<[^>]*\son\w+=", a.corpo), a.corpo
    assert "&lt;" in a.corpo and "Depois." in a.corpo
    assert a.avisos and "saiu como texto" in a.avisos[0]


def test_html_de_casa_passa(tmp_path):
    bom = "<details open>\n<summary>a < b e H<sub>2</sub>O<br/></summary>\n\n<!-- x -->ok\n\n</details>"
    (tmp_path / "a.md").write_text(f"# T\n\n{bom}\n", encoding="utf-8")
    (a,) = apostila_html.escrever(tmp_path, tmp_path / "html")
    assert not a.avisos and "<details open>" in a.corpo and "<sub>2</sub>" in a.corpo


def test_apostila_que_nao_e_utf8_avisa_e_segue(tmp_path):
    (tmp_path / "a.md").write_bytes("# T\n\nUma lição.\n".encode("latin-1"))
    (tmp_path / "b.md").write_text("# Boa\n\nOi.\n", encoding="utf-8")
    a, b = apostila_html.escrever(tmp_path, tmp_path / "html")
    assert len(a.avisos) == 1 and "UTF-8" in a.avisos[0] and "linha 3" in a.avisos[0]
    assert not b.avisos and "Oi." in b.corpo and "Uma li" in a.corpo


def test_no_chromium(escritas):
    lido = conferir_no_navegador(escritas[0] / "99_exemplo.html")
    assert "Pular para o conteúdo" in lido and len(lido.split()) > 50, lido


# --- as apostilas de verdade -------------------------------------------------------------


def test_todo_diagrama_tem_o_desenho_do_fonte_de_agora():
    novos, sobras = diagramas.faltam(RAIZ / "apostilas")
    assert not novos and not sobras, "rode: python apostilas/diagramas.py"


def test_apostilas_de_verdade_sem_aviso(tmp_path):
    # Ao lado do lugar verdadeiro, para os links relativos chegarem aonde chegam de lá.
    destino = RAIZ / "outputs" / "apostilas"
    fontes = sorted((RAIZ / "apostilas").glob("*.md"))
    for fonte in fontes:
        a = apostila_html.converter(fonte, [p.name for p in fontes], destino)
        assert not a.avisos, f"{fonte.name}: {a.avisos}"
        formulas = len(re.findall(r"<math\b", a.corpo))
        assert "\\" not in re.sub(r"<(pre|code)\b.*?</\1>", "", a.corpo, flags=re.S), fonte.name
        assert formulas >= a.contagem["fórmula destacada"]


# --- os diagramas ------------------------------------------------------------------------


def test_o_nome_do_desenho_muda_com_o_fonte():
    nome = diagramas.nome_do_svg(DIAGRAMA)
    assert diagramas.nome_do_svg(DIAGRAMA.replace("\n", "  \n") + "\n") == nome
    assert diagramas.nome_do_svg(DIAGRAMA.replace("ids", "id")) != nome
    assert diagramas.fontes(f"a\n\n```mermaid\n{DIAGRAMA}```\n\n```python\nx\n```\n") == [DIAGRAMA]


def test_limpar_recusa_html_dentro_do_desenho():
    with pytest.raises(ValueError, match="foreignObject"):
        diagramas.limpar(SVG.replace("<rect", "<foreignObject/><rect"), DIAGRAMA)


def test_o_mermaid_desenha_e_o_desenho_sai_limpo(tmp_path):
    pytest.importorskip("mermaidx", reason="falta o mermaidx (requirements-dev)")
    onde = importlib.util.spec_from_file_location("_diagramas", RAIZ / "apostilas" / "diagramas.py")
    script = importlib.util.module_from_spec(onde)
    onde.loader.exec_module(script)
    svg = script.desenhar(DIAGRAMA)
    for pedaco in ("ids", "busca", "wte", "A entrada do modelo", "<title", "<desc"):
        assert pedaco in svg, pedaco
    assert not re.search(r"<style|<script|\sstyle=|\sdata-|foreignObject", svg)
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(re.findall(r'id="([^"]+)"', svg))
