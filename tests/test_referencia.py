"""Os números de referência: guardados inteiros, medidos por lições de verdade, trocados ou nada."""

import io
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import LAB, RAIZ
from manutencao import referencia as script
from nucleo.afirmacoes import citar, guardados
from nucleo.base.erros import ErroDoUsuario

pytestmark = pytest.mark.unit

RESULTADO = {
    "licao": "02_teste",
    "comando": "python lab/02_teste.py --saida /tmp/x",
    "quando": "2026-11-30 09:00",
    "versoes": {"torch": "2.13.0"},
    "segundos": 3.2,
    "arquivos": ["t.csv"],
    "resultados": [
        {"id": "a", "valor": 0.1234567890123, "modelo": "mini"},
        {"id": "b", "valor": 1.0, "modelo": "mini"},
        {"id": "b", "valor": 2.0, "modelo": "smollm2"},
    ],
    "tabelas": {
        "t": {"colunas": ["token", "cosseno"], "linhas": [["' king'", 0.5], ["[\n ]", None]]},
        "tempo": {"colunas": ["como", "milissegundos"], "linhas": [["W[i]", 0.01]]},
    },
}


def test_guarda_a_medida_e_esquece_a_execucao(tmp_path, monkeypatch):
    monkeypatch.setattr(guardados, "PASTA", tmp_path)
    guardados.guardar(RESULTADO, "mini")
    lido = guardados.ler("02_teste", "mini")
    assert set(lido) == {"licao", "versoes", "resultados", "tabelas"}
    assert lido["resultados"] == RESULTADO["resultados"]
    # O cronômetro fica de fora: mudaria a cada execução sem que nada tivesse mudado.
    assert lido["tabelas"] == {"t": RESULTADO["tabelas"]["t"]}
    assert guardados.valor("02_teste", "a", "mini") == 0.1234567890123
    assert guardados.tabela("02_teste", "t", "mini")[0] == {"token": "' king'", "cosseno": 0.5}
    assert [p.name for p in (tmp_path / "mini").iterdir()] == ["02_teste.json"]
    # Um id de dois modelos pede qual; e o que não foi guardado diz como guardar.
    with pytest.raises(KeyError, match="2 resultados"):
        guardados.valor("02_teste", "b", "mini")
    assert guardados.valor("02_teste", "b", "mini", "smollm2") == 2.0
    with pytest.raises(KeyError):
        guardados.valor("02_teste", "não há", "mini")
    with pytest.raises(ErroDoUsuario) as erro:
        guardados.ler("02_teste", "gpt2")
    assert "make referencia MODELO=gpt2" in erro.value.o_que_fazer


simples = st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@settings(max_examples=25, deadline=None)
@given(linhas=st.lists(st.lists(simples, min_size=2, max_size=2), max_size=4))
def test_uma_linha_por_linha_nao_muda_valor_nenhum(linhas):
    # Colchetes, aspas e quebras dentro de um token não podem confundir quem junta as linhas.
    texto = json.dumps({"linhas": linhas, "x": [["[", "\n  ]"]]}, ensure_ascii=False, indent=1)
    junto = guardados._uma_linha_por_linha(texto)
    assert json.loads(junto) == json.loads(texto)
    assert len(junto.splitlines()) <= len(texto.splitlines())


def test_toda_tabela_mostrada_vai_ao_resultado(tmp_path):
    from nucleo.base.caderno import Caderno

    c = Caderno("x", "X")
    c.csv("t", ["a", "b"], [[np.float64(0.25), None], [float("nan"), "s"]])
    c.gravar(tmp_path)
    dados = json.loads((tmp_path / "resultado.json").read_text("utf-8"))
    assert dados["tabelas"] == {"t": {"colunas": ["a", "b"], "linhas": [[0.25, None], [None, "s"]]}}


# --- medir ---------------------------------------------------------------------------------

# Uma lição de verdade, com a Aula do laboratório, só que curta.
LICAO = """
    \"\"\"Lição de teste.\"\"\"
    import os, sys
    sys.path.insert(0, {lab!r})
    from aula import Aula
    aula = Aula("02_teste", __doc__, {{1: "Uma"}})
    aula.secao(1)
    aula._modelo = os.environ["LAB_MODELO"]
    aula.caderno.ficha["modelo"] = {{"nome": {quem}}}
    aula.tabela("t", "T", {{"a": str}}, [["x"]])
    aula.resultado("um", 41 + 1)
    {fim}
    aula.terminar()
"""


def licao(pasta, quem='os.environ["LAB_MODELO"]', fim=""):
    arquivo = pasta / "02_teste.py"
    arquivo.write_text(
        textwrap.dedent(LICAO.format(lab=str(LAB), quem=quem, fim=fim)), encoding="utf-8"
    )
    return arquivo


@pytest.mark.cli
def test_mede_com_o_modelo_pedido(tmp_path):
    medido = script.medir([licao(tmp_path)], "mini", tmp_path / "fora com espaço")
    assert medido["02_teste"]["resultados"][0]["valor"] == 42
    assert medido["02_teste"]["resultados"][0]["modelo"] == "mini"
    assert medido["02_teste"]["tabelas"]["t"]["linhas"] == [["x"]]


@pytest.mark.cli
@pytest.mark.parametrize(
    "mudanca, dito",
    [
        ({"fim": "sys.exit(2)"}, "código 2"),
        ({"fim": "sys.exit(0)"}, "não gravou resultado.json"),
        ({"quem": "'smollm2'"}, "respondeu com smollm2"),
    ],
)
def test_licao_que_nao_serve_para_tudo(tmp_path, mudanca, dito):
    with pytest.raises(script.Falhou, match=dito):
        script.medir([licao(tmp_path, **mudanca)], "mini", tmp_path / "t")


# --- guardar e refazer -----------------------------------------------------------------------

OUTRO = RESULTADO | {"resultados": [{"id": "a", "valor": 3.0, "modelo": "mini"}]}


def retrato(*pastas):
    return {p: p.read_bytes() for pasta in pastas for p in pasta.rglob("*") if p.is_file()}


@pytest.fixture
def oficina(tmp_path, monkeypatch):
    """Um laboratório pequeno: uma apostila que cita um número e uma figura."""
    textos, dados = tmp_path / "apostilas", tmp_path / "referencia"
    monkeypatch.setattr(citar, "PASTA", textos)
    monkeypatch.setattr(guardados, "PASTA", dados)
    textos.mkdir()
    (textos / "a.md").write_text(
        f"<!--[[[cog\nimport json\nd = json.load(open({str(dados / 'mini' / '02_teste.json')!r}))\n"
        "cog.outl(str(d['resultados'][0]['valor']))\nassert d['resultados'][0]['valor'] < 1\n]]]-->\n"
        "<!--[[[end]]]-->\n![um desenho](figuras/mini-02_teste-f.png)\n",
        encoding="utf-8",
    )
    trabalho = tmp_path / "trabalho"
    (trabalho / "02_teste").mkdir(parents=True)
    (trabalho / "02_teste" / "f.png").write_bytes(desenho(40))
    return textos, dados, trabalho


def desenho(lado, cor=None):
    from PIL import Image

    pontos = np.random.default_rng(1).integers(0, 255, (lado, lado, 3), dtype=np.uint8)
    saco = io.BytesIO()
    Image.fromarray(pontos if cor is None else np.full_like(pontos, cor)).save(saco, "png")
    return saco.getvalue()


@pytest.mark.cli
def test_guarda_numero_figura_e_refaz_o_texto(oficina):
    textos, dados, trabalho = oficina
    script.guardar({"02_teste": RESULTADO}, "mini", trabalho)
    script.refazer()
    assert "0.1234567890123" in (textos / "a.md").read_text("utf-8").split("]]]-->")[1]
    assert (textos / "figuras" / "mini-02_teste-f.png").read_bytes() == desenho(40)
    assert guardados.valor("02_teste", "a", "mini") == 0.1234567890123


def test_figura_que_falta_nao_deixa_nada_pela_metade(oficina):
    textos, dados, trabalho = oficina
    (trabalho / "02_teste" / "f.png").unlink()
    antes = retrato(textos)
    with pytest.raises(FileNotFoundError, match="f.png"):
        script.guardar({"02_teste": RESULTADO}, "mini", trabalho)
    assert retrato(textos) == antes and not dados.exists()


@pytest.mark.cli
def test_um_bloco_que_da_erro_diz_qual_e_que_o_git_tem_o_de_antes(oficina, monkeypatch, capsys):
    textos, dados, trabalho = oficina
    script.guardar({"02_teste": RESULTADO}, "mini", trabalho)
    script.refazer()
    # O número novo desmente a frase, e o assert do bloco acusa.
    script.guardar({"02_teste": OUTRO}, "mini", trabalho)
    (textos / "b.md").write_text(
        f"<!--[[[cog\nimport sys\nsys.path.insert(0, {str(LAB)!r})\n"
        "from nucleo.afirmacoes import guardados\nguardados.ler('nenhuma', 'mini')\n]]]-->\n"
        "<!--[[[end]]]-->\n",
        encoding="utf-8",
    )
    antes = retrato(textos)
    with pytest.raises(script.Falhou, match="a.md: AssertionError"):
        script.refazer()
    monkeypatch.setattr(sys, "argv", ["referencia.py", "--so-apostilas"])
    assert script.principal() == 1
    assert "git checkout -p" in capsys.readouterr().err
    assert retrato(textos) == antes
    script.guardar({"02_teste": RESULTADO}, "mini", trabalho)
    with pytest.raises(script.Falhou, match="b.md: ") as erro:
        script.refazer()
    assert "Traceback" not in str(erro.value) and "make referencia" in str(erro.value)


def test_um_bloco_com_erro_nao_aconselha_refazer(monkeypatch, capsys):
    for dito, aconselha in (("a.md  (changed)", True), ("a.md: AssertionError", False)):

        def falhar(conferir, dito=dito):
            raise script.Falhou(dito)

        monkeypatch.setattr(script, "refazer", falhar)
        monkeypatch.setattr(sys, "argv", ["referencia.py", "--conferir"])
        assert script.principal() == 1
        assert ("--so-apostilas" in capsys.readouterr().out) is aconselha


def test_figura_pesada_emagrece_e_continua_a_mesma():
    from PIL import Image

    magra = script.enxugar(desenho(260))
    assert len(desenho(260)) > script.LIMITE > len(magra)
    assert Image.open(io.BytesIO(magra)).size[0] > 60
    lisa = desenho(80, cor=200)
    assert script.enxugar(lisa) == lisa  # a que já cabe não se mexe


def test_so_as_figuras_citadas_deste_modelo(tmp_path):
    (tmp_path / "a.md").write_text(
        "![x](figuras/mini-02_e-4_mapa.png) e figuras/gpt2-02_e-1.png", "utf-8"
    )
    assert script.citadas("mini", tmp_path) == ["mini-02_e-4_mapa.png"]
    assert script.citadas("gpt2", tmp_path) == ["gpt2-02_e-1.png"]
    assert script.citadas("smollm2", tmp_path) == []


def test_a_conferencia_e_a_ultima_e_fica_fora_da_lista():
    assert set(script.LICOES) | {script.CONFERENCIA, "00_preparar"} == {
        p.stem for p in LAB.glob("[0-9][0-9]_*.py") if "exercicios" not in p.stem
    }
    assert script.CONFERENCIA not in script.LICOES


@pytest.mark.cli
def test_modelo_que_nao_existe():
    errado = subprocess.run(
        [sys.executable, "lab/manutencao/referencia.py", "--modelo", "gpt5"],
        cwd=RAIZ,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )
    assert errado.returncode == 2 and "escolha entre" in errado.stderr
    assert "Traceback" not in errado.stderr


def test_licao_que_falha_nao_troca_nada(monkeypatch, capsys, tmp_path):
    # A lição de verdade falha como falharia sem o modelo à mão: com o código 2.
    falha = licao(tmp_path, fim="sys.exit(2)").rename(tmp_path / "02_embeddings.py")
    monkeypatch.setattr(script, "AQUI", falha.parent)
    monkeypatch.setattr(sys, "argv", ["referencia.py", "--licoes", "02_embeddings"])
    antes = retrato(guardados.PASTA, citar.PASTA)
    assert script.principal() == 1
    assert "Nada foi trocado" in capsys.readouterr().err
    assert retrato(guardados.PASTA, citar.PASTA) == antes
