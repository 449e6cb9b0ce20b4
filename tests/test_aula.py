"""A linha de comando e a tela das lições."""

import os
import re
import subprocess
import sys

import pytest

from conftest import LAB, erro_gentil, rodar, rodar_dentro
from nucleo.base.erros import ErroDoUsuario

LICAO = "02_embeddings.py"


@pytest.fixture
def analisador():
    from palco.opcoes import Analisador, inteiro_entre

    p = Analisador(prog="x.py")
    p.add_argument("--top", type=inteiro_entre(1, 100))
    p.add_argument("--analogia", nargs=3)
    p.add_argument("--secao", type=int, choices=[1, 2])
    return p


@pytest.mark.unit
@pytest.mark.parametrize(
    ("linha", "trecho"),
    [
        (["--top", "0"], "inteiro de 1 a 100, e veio '0'"),
        (["--top", "101"], "veio '101'"),
        (["--top", "dez"], "veio 'dez'"),
        (["--top"], "falta o valor"),
        (["--secao", "7"], "escolha entre 1, 2"),
        (["--secao", "x"], "valor inválido"),
        (["--analogia", "a", "b"], "--analogia"),
        (["--tob", "3"], "não conheço: --tob"),
        (["solto"], "não conheço: solto"),
    ],
)
def test_engano_na_linha_de_comando_em_portugues(analisador, linha, trecho):
    with pytest.raises(ErroDoUsuario) as erro:
        analisador.parse_args(linha)
    # O Python 3.14 põe aspas no valor e nas escolhas.
    assert trecho.replace("'", "") in erro.value.por_que.replace("'", "")
    for ingles in ("argument ", "invalid", "expected", "unrecognized", "choose"):
        assert ingles not in erro.value.por_que


@pytest.mark.unit
def test_opcao_parecida_e_sugerida(analisador):
    with pytest.raises(ErroDoUsuario, match="Quis dizer --top"):
        analisador.parse_args(["--tob", "3"])


@pytest.mark.unit
def test_barra_e_marcacao():
    from palco.tela import marcar

    marcado = marcar("**a** e `b` [c]")
    assert marcado.plain == "a e b [c]"
    assert [(t.start, t.end, t.style) for t in marcado.spans] == [(0, 1, "bold"), (4, 5, "cyan")]
    # Caminhos do Windows, colchetes e sinais soltos chegam à tela como são.
    for texto in (r"C:\[aula]\m.", "fim" + chr(92), "a ** b", "[bold]x[/bold]", "`"):
        assert marcar(texto).plain == texto


PESADOS = {"numpy", "torch", "transformers", "matplotlib", "sklearn"}
FIGURAS = sorted(p.stem for p in (LAB / "nucleo" / "licoes").glob("*_figuras.py"))


@pytest.mark.unit
def test_sem_graficos_o_matplotlib_nem_e_importado(tmp_path):
    """Nem pelos módulos de figuras, nem por uma lição curta que os pede; com figuras, é."""
    licao = tmp_path / "curta.py"
    licao.write_text(
        "import sys\nfrom aula import Aula\nfrom nucleo.base import graficos\n"
        + "".join(f"import nucleo.licoes.{nome}\n" for nome in FIGURAS)
        + "aula = Aula('curta', 'Curta.', {1: 'um'}, usa_modelo=False)\naula.secao(1)\n"
        "aula.figura('f', 'uma reta', graficos.curvas, {'n': ([0, 1], [0, 1])}, 't', 'x', 'y')\n"
        "aula.terminar()\nprint('matplotlib' in sys.modules)\n",
        encoding="utf-8",
    )
    for opcoes, importou in ((["--sem-graficos"], "False"), ([], "True")):
        feito = subprocess.run(
            [sys.executable, str(licao), "--saida", str(tmp_path / "s"), *opcoes],
            env=os.environ | {"PYTHONPATH": str(LAB), "PYTHONIOENCODING": "utf-8"},
            capture_output=True, encoding="utf-8", timeout=120,
        )  # fmt: skip
        assert feito.stdout.splitlines()[-1:] == [importou], feito.stderr
    assert len(FIGURAS) >= 5


@pytest.mark.cli
@pytest.mark.parametrize("script", sorted(p.name for p in LAB.glob("*.py") if p.name != "aula.py"))
def test_todo_script_num_processo_de_verdade(script, tmp_path):
    """A ajuda responde antes de importar o que é pesado, e um engano sai com 2 e uma mensagem."""
    feito = rodar(script, "--help", ambiente={"PYTHONPROFILEIMPORTTIME": "1"})
    assert feito.returncode == 0 and feito.stdout.startswith("uso: ")
    importados = {linha.split("|")[-1].strip() for linha in feito.stderr.splitlines()}
    assert "argparse" in importados and not importados & PESADOS
    erro_gentil(rodar(script, "--nao-ha", ambiente={"LAB_SAIDAS": str(tmp_path)}), "--help")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("opcoes", "trechos"),
    [
        (["--top", "0"], ["--top"]),
        (["--modelo", "gtp2"], ["'gtp2'", "smollm2"]),
        (["--modelo", ""], ["vazio"]),
        (["--modelo", "gpt2"], ["HF_HUB_OFFLINE", "00_preparar.py --modelos gpt2"]),
        (["--modelo", "gpt2-xl"], ["HF_HUB_OFFLINE", "gpt2-xl"]),
        (["--modelo", __file__], ["é um arquivo"]),
    ],
)
def test_engano_sai_com_2_e_uma_mensagem(opcoes, trechos, tmp_path):
    erro_gentil(rodar_dentro(LICAO, "--saida", str(tmp_path / "s"), *opcoes), *trechos)
    assert not list((tmp_path / "s").glob("*"))


@pytest.mark.smollm2
@pytest.mark.parametrize(
    ("opcoes", "trechos"),
    [
        (["--palavra", "gato"], ["' g' + 'ato'", "--palavra king"]),
        (["--palavra", ""], ["vazia"]),
        (["--analogia", "king", "gato", "woman"], ["' g' + 'ato'", "--analogia king man woman"]),
    ],
)
def test_palavra_que_nao_serve(opcoes, trechos, tmp_path, smollm2):
    feito = rodar_dentro(LICAO, "--modelo", "smollm2", "--saida", str(tmp_path), *opcoes)
    erro_gentil(feito, *trechos)
    assert not list(tmp_path.iterdir())


def test_saida_que_nao_aceita_arquivos(tmp_path):
    (tmp_path / "ocupado").write_text("", encoding="utf-8")
    erro_gentil(rodar_dentro(LICAO, "--saida", str(tmp_path / "ocupado" / "x")), "--saida PASTA")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("ocupado", b"")]


@pytest.mark.cli
def test_pacote_que_falta_e_defeito_de_instalacao_e_nao_traceback(tmp_path):
    """Um Python sem o rich: a mensagem manda instalar. (-S e -I escondem o site-packages.)"""
    feito = subprocess.run(
        [sys.executable, "-S", "-s", "-E", str(LAB / LICAO), "--saida", str(tmp_path)],
        capture_output=True, encoding="utf-8", timeout=280,
    )  # fmt: skip
    erro_gentil(feito, "Falta o pacote", "Agora:   ")
    # A cura depende de haver ou não um .venv nesta cópia; as duas levam a um Python que serve.
    assert re.search(r"Rode:  \S+ lab.00_preparar.py|Use o Python do laboratório", feito.stderr)


@pytest.mark.cli
@pytest.mark.parametrize("achado", [True, False])
def test_matplotlib_que_falta_e_dito_mesmo_importado_so_na_hora_da_figura(achado, tmp_path):
    """`achado`: há uma pasta com o nome dele, mas importá-la não dá (uma instalação pela metade)."""
    (tmp_path / "matplotlib").mkdir()
    quebrado = "raise ModuleNotFoundError(\"No module named 'matplotlib'\", name='matplotlib')"
    (tmp_path / "matplotlib" / "__init__.py").write_text(quebrado, "utf-8")
    sem = "import importlib.util as u; antes = u.find_spec; u.find_spec = lambda n, p=None: None if n == 'matplotlib' else antes(n, p)"
    (tmp_path / "sitecustomize.py").write_text("" if achado else sem, "utf-8")
    opcoes = ["--modelo", "mini", "--secao", "4", "--saida", str(tmp_path / "s")]
    feito = rodar(LICAO, *opcoes, ambiente={"PYTHONPATH": str(tmp_path)})
    erro_gentil(feito, "Falta o pacote matplotlib")
    assert ("4 ·" in feito.stdout) == achado  # sabendo antes, a lição nem começa
    # Sem figuras ele não faz falta nenhuma. (A seção 4 pediria o transformers, que o importa se o acha.)
    opcoes[opcoes.index("4")] = "3"
    sem_figuras = rodar(LICAO, *opcoes, "--sem-graficos", ambiente={"PYTHONPATH": str(tmp_path)})
    assert sem_figuras.returncode == 0, sem_figuras.stderr
