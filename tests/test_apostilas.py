"""As apostilas são verdade: números em dia, links, figuras, fórmulas e comandos que existem."""

import ast
import hashlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import unicodedata
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.anchors.index import slugify
from mdit_py_plugins.dollarmath import dollarmath_plugin

from conftest import LAB, RAIZ
from nucleo.afirmacoes import citar as ap
from nucleo.afirmacoes import guardados
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.leitura import minutos_de_leitura, sem_comentarios

pytestmark = pytest.mark.unit

ARQUIVOS = sorted(ap.PASTA.glob("*.md"))
LICOES = {"02_embeddings.md": "02_embeddings.py", "06_posicoes.md": "06_posicoes.py"}
TEXTOS = {p.name: p.read_text(encoding="utf-8") for p in ARQUIVOS}


def lido(texto):
    """O documento como o GitHub o lê, com as fórmulas entre cifrões."""
    return MarkdownIt("gfm-like", {"linkify": False}).use(dollarmath_plugin).parse(texto)


def pedacos(texto, tipo):
    """Todos os tokens de um tipo, também os de dentro das linhas."""
    for bloco in lido(texto):
        for token in [bloco, *(bloco.children or [])]:
            if token.type == tipo:
                yield token


def titulos(texto):
    blocos = lido(texto)
    return [blocos[i + 1].content for i, b in enumerate(blocos) if b.type == "heading_open"]


# --- os números ------------------------------------------------------------------------------


def cog(raiz, *opcoes):
    textos = [p.relative_to(raiz).as_posix() for p in sorted((raiz / "apostilas").glob("*.md"))]
    ambiente = os.environ | {"PYTHONIOENCODING": "utf-8"}
    comando = [sys.executable, "-m", "cogapp", *opcoes, *textos]
    return subprocess.run(comando, cwd=raiz, env=ambiente, capture_output=True, encoding="utf-8")


@pytest.mark.cli
def test_as_apostilas_estao_em_dia():
    feito = cog(RAIZ, "--check")
    refaca = "\nRefaça: python lab/manutencao/referencia.py --so-apostilas"
    assert feito.returncode == 0, feito.stdout + feito.stderr + refaca


@pytest.fixture
def copia(tmp_path):
    """O que as apostilas usam, noutra pasta, para se poder estragar."""
    destino = tmp_path / "cópia com espaço"
    (destino / "lab").mkdir(parents=True)
    shutil.copytree(LAB / "nucleo", destino / "lab" / "nucleo")
    shutil.copytree(ap.PASTA, destino / "apostilas")
    for pasta in ("referencia", "gpt2_medido"):
        shutil.copytree(RAIZ / "data" / pasta, destino / "data" / pasta)
    shutil.copy(RAIZ / "data" / "afirmacoes.toml", destino / "data" / "afirmacoes.toml")
    (destino / "data" / "extrapolacao").mkdir()
    publicados = "data/extrapolacao/publicados.json"
    shutil.copy(RAIZ / publicados, destino / publicados)
    return destino


@pytest.mark.cli
def test_mudar_um_numero_atrasa_a_apostila(copia):
    # Um valor citado: o texto da 02 e o índice ficam atrasados.
    arquivo = copia / "data" / "referencia" / ap.PRINCIPAL / "02_embeddings.json"
    dados = json.loads(arquivo.read_text(encoding="utf-8"))
    par = next(r for r in dados["resultados"] if r["id"] == "cosseno.cat – dog")
    par["valor"] = 0.9876
    arquivo.write_text(json.dumps(dados, ensure_ascii=False), encoding="utf-8")
    atrasado = cog(copia, "--check")
    assert atrasado.returncode != 0
    assert re.search(r"02_embeddings\.md\s+\(changed\)", atrasado.stdout)
    assert not re.search(r"06_posicoes\.md\s+\(changed\)", atrasado.stdout)
    # Refeito, o número novo está no texto, e tudo volta a estar em dia.
    assert cog(copia, "-r", "-U").returncode == 0
    assert "0,988" in (copia / "apostilas" / "02_embeddings.md").read_text("utf-8")
    assert cog(copia, "--check").returncode == 0


@pytest.mark.cli
def test_qualquer_valor_de_qualquer_arquivo_conta(copia):
    # Mesmo um valor que nenhuma frase cita: o índice guarda a impressão digital de cada arquivo.
    arquivo = copia / "data" / "referencia" / ap.PRINCIPAL / "06_projecoes.json"
    dados = json.loads(arquivo.read_text(encoding="utf-8"))
    numero = next(r for r in dados["resultados"] if isinstance(r["valor"], float))
    numero["valor"] += 1e-12
    arquivo.write_text(json.dumps(dados, ensure_ascii=False), encoding="utf-8")
    feito = cog(copia, "--check")
    assert feito.returncode != 0 and re.search(r"LEIAME\.md\s+\(changed\)", feito.stdout)


@pytest.mark.parametrize("nome", TEXTOS)
def test_nenhum_numero_medido_foi_digitado(nome):
    # Fora dos blocos, das fórmulas, do código e das contas à mão não há decimais de duas casas.
    fora = re.sub(r"<!--\[\[\[cog.*?\[\[\[end\]\]\]-->", "", TEXTOS[nome], flags=re.S)
    fora = re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]+`", "", fora, flags=re.S)
    digitados = set(re.findall(r"\d+,\d{2,}", fora)) - {"0,01"}  # p < 0,01 é um limite, não medida
    assert not digitados, digitados


@pytest.mark.parametrize("nome", TEXTOS)
def test_os_blocos_sao_curtos_e_a_saida_nao_fica_vazia(nome):
    blocos = re.findall(
        r"<!--\[\[\[cog(.*?)\]\]\]-->(.*?)<!--\[\[\[end\]\]\]-->", TEXTOS[nome], re.S
    )
    for codigo, saida in blocos:
        assert codigo.count("\n") <= 25, codigo[:80]
        assert saida.strip(), codigo[:80]
    assert TEXTOS[nome].count("[[[cog") == TEXTOS[nome].count("[[[end]]]") == len(blocos)
    if nome in LICOES:
        assert len(blocos) >= 15


# --- o texto é nosso -------------------------------------------------------------------------


def impressoes(texto):
    palavras = re.findall(r"[^\W_]+", texto.casefold())
    for i in range(len(palavras) - 7):
        oito = " ".join(palavras[i : i + 8])
        yield hashlib.sha256(oito.encode()).hexdigest()[:10], oito


@pytest.mark.parametrize("nome", TEXTOS)
def test_nenhuma_frase_das_apostilas_originais(nome):
    arquivo = RAIZ / "tests" / "impressoes_das_sementes.txt"
    delas = set(arquivo.read_text(encoding="utf-8").split())
    assert len(delas) > 3000
    # Com os blocos cog e sem eles: um comentário no meio não esconde uma frase copiada.
    for texto in (TEXTOS[nome], sem_comentarios(TEXTOS[nome])):
        copiadas = [oito for impressao, oito in impressoes(texto) if impressao in delas]
        assert not copiadas, copiadas


def test_o_detector_de_copia_detecta():
    # Pontuação, maiúsculas e quebras de linha não escondem; sete palavras não acusam.
    frase = "Um, dois\ntrês QUATRO; cinco (seis) sete *oito*"
    assert [x for _, x in impressoes(frase)] == ["um dois três quatro cinco seis sete oito"]
    assert not list(impressoes("um dois três quatro cinco seis sete"))


# --- links, âncoras, figuras -----------------------------------------------------------------


@pytest.mark.parametrize("nome", TEXTOS)
def test_links_e_ancoras_existem(nome):
    for token in pedacos(TEXTOS[nome], "link_open"):
        destino = unquote(token.attrs["href"])
        if destino.startswith("https://"):
            conhecidos = r"https://(arxiv\.org/abs/\d{4}\.\d{4,5}|cog\.readthedocs\.io)"
            assert re.fullmatch(conhecidos, destino)
            continue
        arquivo, _, ancora = destino.partition("#")
        alvo = ap.PASTA / (arquivo or nome)
        assert alvo.is_file(), destino
        if ancora:
            # A regra das âncoras do GitHub, escrita por outra biblioteca.
            assert ancora in {slugify(t) for t in titulos(alvo.read_text("utf-8"))}, destino


def test_o_arxiv_do_texto_e_o_do_link():
    for texto in TEXTOS.values():
        link = r"\[arXiv:([\d.]+)\]\(https://arxiv\.org/abs/([\d.]+)\)"
        assert all(dito == ligado for dito, ligado in re.findall(link, texto))
    juntos = "".join(TEXTOS.values())
    for numero in ("1301.3781", "1706.03762", "1608.05859", "2104.09864", "2108.12409",
                   "1910.10683", "2203.16634", "2305.19466", "2306.15595", "2309.00071"):  # fmt: skip
        assert f"[arXiv:{numero}]" in juntos


def test_figuras_existem_tem_texto_alternativo_e_nenhuma_sobra():
    citadas = set()
    for texto in TEXTOS.values():
        for imagem in pedacos(texto, "image"):
            arquivo = ap.PASTA / imagem.attrs["src"]
            citadas.add(arquivo.name)
            assert arquivo.is_file() and arquivo.stat().st_size < 120_000, arquivo
            assert arquivo.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
            assert len(imagem.content) > 30, f"texto alternativo curto: {imagem.content}"
    # Os diagramas (SVG) saem dos blocos mermaid, e têm o seu próprio teste.
    guardadas = {p.name for p in (ap.PASTA / "figuras").iterdir() if p.suffix != ".svg"}
    assert citadas == guardadas and len(citadas) >= 8


# --- fórmulas e diagramas --------------------------------------------------------------------


def formulas(texto):
    for tipo in ("math_inline", "math_block", "math_inline_double"):
        yield from (t.content for t in pedacos(texto, tipo))


@pytest.mark.parametrize("nome", TEXTOS)
def test_toda_formula_se_converte(nome):
    from latex2mathml.converter import convert

    todas = list(formulas(sem_comentarios(TEXTOS[nome])))
    assert len(todas) > 20 or nome not in LICOES
    for formula in todas:
        assert "<math" in convert(formula)
        # O Markdown come a segunda barra de \\, e o GitHub recusa \operatorname.
        assert not re.search(r"\\\\|\\operatorname|\\\{|[^\\]%", formula), formula
        assert formula.count("{") == formula.count("}")
    # Nenhum cifrão sobra sem par: uma fórmula mal fechada apareceria crua.
    for token in pedacos(sem_comentarios(TEXTOS[nome]), "text"):
        assert "$" not in token.content, token.content


@pytest.mark.parametrize("nome", LICOES)
def test_formula_destacada_fica_sozinha_na_linha(nome):
    for linha in TEXTOS[nome].splitlines():
        if "$$" in linha:
            assert re.fullmatch(r"\$\$[^$]+\$\$", linha), linha


@pytest.mark.parametrize("nome", LICOES)
def test_diagramas_sao_simples(nome):
    diagramas = re.findall(r"```mermaid\n(.*?)```", TEXTOS[nome], re.S)
    assert diagramas
    no = r'\w+(?:\["[^"<>\[\]]+"\]|\(\("[^"<>]+"\)\))?'
    for diagrama in diagramas:
        cabeca, *linhas = diagrama.strip().splitlines()
        assert re.fullmatch(r"flowchart (LR|TD)", cabeca)
        for linha in linhas:
            assert re.fullmatch(rf"    {no} --> {no}", linha), linha


# --- comandos --------------------------------------------------------------------------------


def comandos():
    for nome, texto in TEXTOS.items():
        visto = sem_comentarios(texto)
        trechos = [t.content for t in pedacos(visto, "code_inline")]
        for bloco in re.findall(r"```bash\n(.*?)```", visto, re.S):
            trechos += bloco.strip().splitlines()
        for trecho in trechos:
            if trecho.startswith(("python lab/", "make ")):
                yield nome, " ".join(trecho.split())


COMANDOS = sorted(set(comandos()))


class Lido(BaseException):
    """O argparse da lição aceitou a linha de comando."""


def aceita(comando, monkeypatch):
    """Passa o comando pelo analisador verdadeiro do script, sem rodar o resto dele."""
    from palco.opcoes import Analisador

    script, *opcoes = shlex.split(comando.removeprefix("python "))
    original = Analisador.parse_args

    def so_ler(self, *a, **k):
        original(self, *a, **k)
        raise Lido

    monkeypatch.setattr(Analisador, "parse_args", so_ler)
    monkeypatch.setattr(sys, "argv", [script, *opcoes])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    try:
        runpy.run_path(str(RAIZ / script), run_name="__main__")
    except Lido:
        return True
    except (ErroDoUsuario, SystemExit):
        return False
    raise AssertionError(f"{comando} não leu a linha de comando")


@pytest.mark.parametrize("nome, comando", COMANDOS, ids=lambda x: str(x)[:60])
def test_comando_existe(nome, comando, monkeypatch):
    if comando.startswith("make "):
        alvos = re.findall(r"^([a-z]+):", (RAIZ / "Makefile").read_text("utf-8"), re.M)
        assert comando.split()[1] in alvos
    else:
        assert aceita(comando, monkeypatch), comando


def test_ha_comandos_e_os_errados_sao_recusados(monkeypatch):
    assert len(COMANDOS) > 25
    for errado in (
        "python lab/02_embeddings.py --secao 9",
        "python lab/06_posicoes.py --secao 6.7",
        "python lab/06_extrapolacao.py --nada",
        "python lab/02_exercicios.py --dica primeira",
        "python lab/manutencao/referencia.py --modelo gpt5",
    ):
        assert not aceita(errado, monkeypatch), errado


# --- a estrutura -----------------------------------------------------------------------------


def simples(texto):
    """Só as letras: pontuação e artigos não mudam o título."""
    return [p for p in re.findall(r"\w+", texto.casefold()) if p not in ("a", "o", "uma", "um")]


@pytest.mark.parametrize("nome", LICOES)
def test_as_secoes_sao_as_da_licao(nome):
    arvore = ast.parse((LAB / LICOES[nome]).read_text("utf-8"))
    secoes = next(
        ast.literal_eval(no.value)
        for no in arvore.body
        if isinstance(no, ast.Assign) and getattr(no.targets[0], "id", "") == "SECOES"
    )
    if nome.startswith("06"):
        secoes["6.7"] = "Visualizando embeddings com cuidado"  # tem lição própria, a 06_projecoes
    partes = re.split(r"^## (\d[\d.]*)\. (.+)$", sem_comentarios(TEXTOS[nome]), flags=re.M)
    escritas = {
        n: (t, corpo.split("\n## ")[0]) for n, t, corpo in zip(*[iter(partes[1:])] * 3, strict=True)
    }
    assert list(escritas) == [str(n) for n in secoes]
    for numero, titulo in secoes.items():
        escrito, corpo = escritas[str(numero)]
        assert simples(escrito) == simples(titulo)
        # Em toda seção: a ideia e a caixa com um comando que roda.
        assert "> **No laboratório.** `python lab/" in corpo, numero
        sem_ideia = numero in (7, 8, "6.3", "6.4")
        assert sem_ideia or re.search(r"\*\*(A|Primeiro, a) (ideia|falta)|^## ", corpo)
    ditas = titulos(TEXTOS[nome])
    for parte in ("Exercícios", "O que a apostila original dizia, e o que medimos", "Referências"):
        assert parte in ditas
    assert "](errata.md)" in TEXTOS[nome] and "](glossario.md)" in TEXTOS[nome]


@pytest.mark.parametrize("nome", LICOES)
def test_o_codigo_impresso_roda(nome, monkeypatch, capsys):
    blocos = re.findall(r"```python\n(.*?)```", TEXTOS[nome], re.S)
    assert blocos
    for bloco in blocos:
        exec(compile(bloco, nome, "exec"), {})
    saida = capsys.readouterr().out
    esperado = {"02_embeddings.md": "True", "06_posicoes.md": "torch.Size([2, 3, 8])"}[nome]
    assert saida.strip().endswith(esperado)
    if nome.startswith("02"):
        perto, longe = map(float, saida.splitlines()[0].split())
        assert perto > longe + 0.2


def chave(termo):
    limpo = unicodedata.normalize("NFD", termo).encode("ascii", "ignore").decode().casefold()
    return re.sub(r"[^a-z0-9]", "", limpo)


def test_glossario_em_ordem_com_ingles_e_lugar():
    entradas = re.split(r"\n\n(?=\*\*)", TEXTOS["glossario.md"].strip())[1:]
    termos = [re.match(r"\*\*(.+?)\.\*\*", e)[1] for e in entradas]
    assert termos == sorted(termos, key=chave) and len(set(termos)) == len(termos) >= 40
    for entrada in entradas:
        limpa = " ".join(entrada.split())
        assert "Em inglês: *" in limpa, entrada
        assert re.search(r"Onde: \[[^]]+\]\(0[26]\w+\.md#", limpa), entrada
        definicao = limpa.split(".** ")[1].split(" Em inglês:")[0]
        assert 1 <= len(re.findall(r"[.!?](?:\s|$)", definicao)) <= 4, entrada


def test_o_indice_lista_tudo():
    for nome in {*TEXTOS} - {"LEIAME.md"}:
        assert f"]({nome})" in TEXTOS["LEIAME.md"]


# --- o tempo, e as peças ---------------------------------------------------------------------


def test_minutos_de_leitura():
    mil_e_oitocentas = "palavra " * 1800
    assert minutos_de_leitura(mil_e_oitocentas) == 10
    assert minutos_de_leitura("") == 1
    # O que não se vê não se lê: nem o código dos blocos, nem o endereço dos links.
    escondido = "<!--[[[cog\n" + "x = 1\n" * 5000 + "]]]-->\n" + mil_e_oitocentas
    assert minutos_de_leitura(escondido) == 10
    assert minutos_de_leitura(mil_e_oitocentas + "[](um-endereço-comprido/que/ninguém/lê)") == 10
    # Figura, tabela e código custam tempo: 5 figuras são um minuto; 30 linhas, outro.
    assert minutos_de_leitura(mil_e_oitocentas + "![x](y.png)\n" * 5) == 11
    assert minutos_de_leitura(mil_e_oitocentas + "\n\n" + "| 1 | 2 |\n" * 30) == 11
    assert minutos_de_leitura("```python\n" + "a = 1\n" * 59 + "```\n") == 2


def test_a_02_cabe_numa_aula():
    # Ler e rodar em menos de 40 minutos; a lição e as suas irmãs levam uns 5 numa máquina comum.
    assert minutos_de_leitura(TEXTOS["02_embeddings.md"]) + 5 < 40
    for nome in LICOES:
        dito = int(re.search(r"^Leitura: (\d+) minutos\.$", TEXTOS[nome], re.M)[1])
        assert dito == minutos_de_leitura(re.sub(r"^Leitura: .*$", "", TEXTOS[nome], flags=re.M))


def test_grade():
    assert ap.grade({"a": str, "n": lambda x: f"{x:.1f}"}, [["x|y\nz", 1.0], ["w", None]]) == (
        "| a | n |\n| --- | ---: |\n| x\\|y z | 1.0 |\n| w | — |"
    )


def test_lado_a_lado_so_mostra_quem_mediu(tmp_path, monkeypatch):
    monkeypatch.setattr(guardados, "PASTA", tmp_path)
    for modelo, id_ in (("smollm2", "x"), ("mini", "y")):
        dados = {"licao": "l", "resultados": [{"id": id_, "valor": 0.5, "modelo": modelo}]}
        guardados.guardar(dados, modelo)
    tabela = ap.lado_a_lado("l", {"linha x": "x", "linha z": "z"}, publicado={"linha x": 0.25})
    # O mini não mediu nenhuma das duas: não ganha coluna. O publicado fica na sua.
    assert tabela == (
        "|  | SmolLM2 | GPT-2, publicado |\n| --- | ---: | ---: |\n"
        "| linha x | 0,500 | 0,250 |\n| linha z | — | — |"
    )
    # Medido o GPT-2, ele ganha coluna própria, ao lado da do publicado.
    quem_mediu = (("x", 1, "gpt2"), ("z", 2, "mini"))
    resultados = [{"id": i, "valor": v, "modelo": m} for i, v, m in quem_mediu]
    guardados.guardar({"licao": "l", "resultados": resultados}, "gpt2")
    # Na mesma execução mediu-se também o mini: o número dele não entra na coluna do GPT-2.
    tabela = ap.lado_a_lado("l", {"linha x": "x", "linha z": "z"}, publicado={"linha x": 0.25})
    assert "| SmolLM2 | GPT-2, medido | GPT-2, publicado |" in tabela
    assert "| linha z | — | — | — |" in tabela


def test_linha_ausente_ou_repetida_e_erro(tmp_path, monkeypatch):
    monkeypatch.setattr(guardados, "PASTA", tmp_path)
    tabela = {"colunas": ["k", "v"], "linhas": [["a", 1], ["b", 2], ["b", 3]]}
    dados = {"licao": "l", "resultados": [], "tabelas": {"t": tabela}}
    guardados.guardar(dados, "smollm2")
    assert ap.linha("l", "t", "a") == {"k": "a", "v": 1}
    for primeira in ("b", "c"):
        with pytest.raises(KeyError):
            ap.linha("l", "t", primeira)


def test_enumerar_e_com_sinal():
    assert [ap.enumerar([*x]) for x in ("a", "ab", "abc")] == ["a", "a e b", "a, b e c"]
    assert [ap.com_sinal(x) for x in (0.5, -0.5, 0.0)] == ["+0,50", "−0,50", "0,00"]
