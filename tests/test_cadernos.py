"""As lições como cadernos: executados num kernel de verdade, célula a célula, duas vezes e fora de ordem."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import LAB, RAIZ
from manutencao import cadernos

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytestmark = pytest.mark.cli

NOMES = [x.stem for x in cadernos.licoes()]
# O que abrevia cada uma sem tirar seção nem figura.
OPCOES = {
    "02_treino": "--rapido", "06_extrapolacao": "--rapido", "06_posicoes": "--rapido",
    "06_projecoes": "--perplexidade 5",
}  # fmt: skip
# Um botão da lição, mexido como quem estuda: o treino de dois minutos de CPU em segundos.
BOTOES = {"02_treino": ("PASSOS_CONTO, TAXA_CONTO = 600,", "PASSOS_CONTO, TAXA_CONTO = 60,")}


class Kernel:
    """Um kernel com as células de um caderno; `rodar` executa uma e devolve as saídas dela."""

    def __init__(self, caderno, pasta, **ambiente):
        self.celulas = [c for c in caderno.cells if c.cell_type == "code"]
        self.cliente = nbclient.NotebookClient(
            caderno, timeout=None, kernel_name="python3", allow_errors=True,
            resources={"metadata": {"path": str(pasta)}},
        )  # fmt: skip
        self.env = os.environ | {"HF_HUB_OFFLINE": "1"} | ambiente

    def __enter__(self):
        self.contexto = self.cliente.setup_kernel(env=self.env)
        self.contexto.__enter__()
        return self

    def __exit__(self, *erro):
        self.contexto.__exit__(*erro)

    def rodar(self, n: int) -> list:
        celula = self.celulas[n]
        self.cliente.execute_cell(celula, self.cliente.nb.cells.index(celula))
        for saida in celula.outputs:
            assert saida.output_type != "error", "\n".join(saida.traceback)
        return celula.outputs

    def secoes(self) -> list[int]:
        """Os índices das células de seção, na ordem do caderno."""
        fontes = [c.source for c in self.celulas]
        return [n for n, f in enumerate(fontes) if re.search(r"aula\.secao\(", f)]


def contar(saidas: list, tipo: str) -> int:
    return sum(tipo in s.get("data", {}) for s in saidas)


def tabelas_html(saidas: list) -> int:
    return sum("<table" in "".join(s.get("data", {}).get("text/html", "")) for s in saidas)


def aberto(nome: str, saidas, opcoes: str = "", modelo: str = "mini") -> Kernel:
    ambiente = {"LAB_SAIDAS": str(saidas), "LAB_MODELO": modelo}
    caderno = cadernos.montar(LAB / f"{nome}.py", "", opcoes)
    if nome in BOTOES:
        (celula,) = [c for c in caderno.cells if BOTOES[nome][0] in c.source]
        celula.source = celula.source.replace(*BOTOES[nome])
    return Kernel(caderno, RAIZ / "lab", **ambiente)


def conferir_a_pasta(pasta, saidas: list) -> None:
    """Tantas figuras e tabelas nas células quantas a lição gravou, e nenhum resultado repetido."""
    resultado = json.loads((pasta / "resultado.json").read_text("utf-8"))
    figuras = [a for a in resultado["arquivos"] if a.endswith(".png")]
    assert contar(saidas, "image/png") == len(figuras) > 0
    assert tabelas_html(saidas) == len(resultado["tabelas"]) > 0
    ids = [(r["id"], r["modelo"]) for r in resultado["resultados"]]
    assert len(ids) == len(set(ids))
    blocos = re.findall(r"^## .*$", (pasta / "relatorio.md").read_text("utf-8"), re.M)
    assert len(blocos) == len(set(blocos))


@pytest.mark.longo
@pytest.mark.parametrize("nome", NOMES)
def test_cada_caderno_inteiro_duas_vezes_e_fora_de_ordem(nome, tmp_path):
    with aberto(nome, tmp_path, OPCOES.get(nome, "")) as k:
        secoes, ultima = k.secoes(), len(k.celulas) - 1
        for n in range(secoes[0]):
            k.rodar(n)
        # Fora de ordem: da última seção para a primeira, cada uma sem as de antes.
        for n in reversed(secoes):
            k.rodar(n)
        # Depois de guardar tudo, quem volta a uma seção ainda a roda (o processo ao lado já saiu).
        k.rodar(ultima)
        k.rodar(secoes[-1])
        # O preparo e o resto, outra vez, na ordem: a segunda volta é a que fica.
        preparo = [s for n in range(secoes[0]) for s in k.rodar(n)]
        saidas = preparo + [s for n in range(secoes[0], ultima + 1) for s in k.rodar(n)]
        if nome != "99_conferir":  # a conferência não desenha
            conferir_a_pasta(tmp_path / nome, saidas)
            # O que uma biblioteca resmunga, em vermelho, nomearia a máquina de quem a tem.
            assert "site-packages" not in json.dumps(saidas)


def uma_secao(nome: str, secao: int | str, tmp_path, modelo: str) -> dict:
    """O resultado.json de uma seção só, rodada célula a célula, com figuras e tabelas contadas."""
    with aberto(nome, tmp_path, f"--secao {secao}", modelo) as k:
        for n in range(len(k.celulas)):
            k.rodar(n)
        todas = [s for c in k.celulas for s in c.outputs]
        conferir_a_pasta(tmp_path / nome / "parcial", todas)
    return json.loads((tmp_path / nome / "parcial" / "resultado.json").read_text("utf-8"))


@pytest.mark.mini
def test_uma_secao_com_figura_e_tabela_na_celula(tmp_path):
    assert "--secao 6.4" in uma_secao("06_posicoes", "6.4", tmp_path, "mini")["comando"]


@pytest.mark.longo
@pytest.mark.smollm2
def test_no_smollm2(tmp_path, smollm2):
    feito = uma_secao("02_embeddings", 2, tmp_path, "smollm2")
    assert feito["modelo"]["nome"] == "smollm2" and "--secao 2" in feito["comando"]


@pytest.mark.longo
def test_um_engano_na_celula_e_uma_mensagem(tmp_path):
    with aberto("02_embeddings", tmp_path, "--secao 2 --palavra xyzxyzxyz") as k:
        k.cliente.allow_errors = False
        # O “rodar tudo” para na célula que errou; nela, a mensagem e mais nada.
        with pytest.raises(nbclient.exceptions.CellExecutionError):
            for celula in k.celulas:
                k.cliente.execute_cell(celula, k.cliente.nb.cells.index(celula))
        (erro,) = [s for s in celula.outputs if s.output_type == "error"]
        o_que, por_que, agora = erro.traceback[0].splitlines()
        assert o_que.startswith("✗ ") and "xyzxyzxyz" in o_que + por_que
        assert len(erro.traceback) == 1 and "Por quê:" in por_que and "Agora:" in agora


def test_a_ajuda_num_kernel_nao_e_um_erro(monkeypatch, capsys):
    from aula import Aula
    from palco import jupyter

    monkeypatch.setattr(sys, "argv", ["02_nada.py", "--help"])
    monkeypatch.setattr(jupyter, "num_kernel", lambda: True)
    # Sem o kernel de verdade, o que a Aula guarda por processo volta ao que era.
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(Aula, "_vivas", {})
    with pytest.raises(jupyter.SoAAjuda) as fim:
        Aula("02_nada", "Título.", {1: "Um"})
    assert "uso: 02_nada.py" in capsys.readouterr().out
    (frase,) = fim.value._render_traceback_()
    assert "--help" in frase and fim.value.__suppress_context__


@pytest.mark.longo
def test_run_leva_as_opcoes(tmp_path):
    caderno = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("%run lab/02_embeddings.py --modelo mini --secao 3 --top 5")
        ]
    )
    with Kernel(caderno, RAIZ, LAB_SAIDAS=str(tmp_path)) as k:
        saidas = k.rodar(0)
    assert tabelas_html(saidas) > 0
    resultado = json.loads(
        (tmp_path / "02_embeddings" / "parcial" / "resultado.json").read_text("utf-8")
    )
    assert "--secao 3 --top 5" in resultado["comando"]


# --- o arquivo ---------------------------------------------------------------------------------------


@pytest.mark.unit
@pytest.mark.parametrize("nome", NOMES)
def test_o_caderno_e_valido_e_sempre_o_mesmo(nome):
    um, outro = (
        nbformat.writes(cadernos.montar(LAB / f"{nome}.py", "https://exemplo.org/lab"))
        for _ in range(2)
    )
    assert um == outro and str(RAIZ) not in um
    caderno = nbformat.reads(um, as_version=4)
    nbformat.validate(caderno)
    titulos = re.findall(r"^# %% (.+)$", (LAB / f"{nome}.py").read_text("utf-8"), re.M)
    feitos = [c.source.removeprefix("## ") for c in caderno.cells if c.cell_type == "markdown"]
    assert [t.casefold() for t in titulos] == [
        f.casefold() for f in feitos[1:] if f != "O que mais de uma seção usa"
    ]
    primeira = caderno.cells[1].source
    assert 'opcoes = ""\n' in primeira and "https://exemplo.org/lab" in primeira
    # Cada linha de código da lição está em alguma célula, uma vez.
    codigo = "\n".join(c.source for c in caderno.cells[2:] if c.cell_type == "code")
    for linha in (LAB / f"{nome}.py").read_text("utf-8").split('"""', 2)[2].splitlines():
        assert linha in codigo or linha.startswith("# %%"), linha


@pytest.mark.unit
@pytest.mark.parametrize(
    ("origem", "publico"),
    [
        ("https://github.com/a/b.git", "https://github.com/a/b.git"),
        ("https://fulano:segredo@github.com/a/b", "https://github.com/a/b"),
        ("git@github.com:a/b.git", "https://github.com/a/b.git"),
        ("ssh://git@github.com/a/b", "https://github.com/a/b"),
        ("/uma/pasta", ""), ("file:///uma/pasta", ""), ("", ""), (r"C:\uma\pasta", ""),
    ],
)  # fmt: skip
def test_o_endereco_do_git_sem_segredos(origem, publico):
    assert cadernos.endereco_publico(origem) == publico


@pytest.mark.unit
def test_o_que_duas_secoes_usam_vem_antes_e_leva_o_de_que_precisa():
    um = "def base(x):\n    return x\ndef conta(x):\n    return base(x)\ndef so_minha():\n    pass\nif aula.secao(1):\n    conta(1)\n    so_minha()"
    dois = "if aula.secao(2):\n    conta(2)"
    (a, b), comuns = cadernos.separar([um, dois])
    assert comuns == "def base(x):\n    return x\n\n\ndef conta(x):\n    return base(x)"
    assert a.startswith("def so_minha") and b == dois


def test_make_cadernos_escreve_todos(tmp_path):
    feito = subprocess.run(
        [sys.executable, str(LAB / "manutencao" / "cadernos.py"), "--endereco", "https://exemplo.org/a"],
        env=os.environ | {"LAB_SAIDAS": str(tmp_path), "PYTHONIOENCODING": "utf-8"}, cwd=RAIZ,
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    assert sorted(p.stem for p in (tmp_path / "cadernos").glob("*.ipynb")) == NOMES
    assert shutil.which("make") is None or "cadernos" in (RAIZ / "Makefile").read_text("utf-8")


@pytest.mark.skipif(shutil.which("git") is None, reason="sem o git")
@pytest.mark.parametrize("conhecido", [True, False])
def test_a_primeira_celula_longe_do_laboratorio(tmp_path, conhecido):
    # Como no Colab: uma pasta vazia, um repositório a buscar, e um pip que só anota o que lhe pedem.
    origem, longe, pip = tmp_path / "origem.git", tmp_path / "content", tmp_path / "pip"
    for pasta in (origem / "lab", longe, pip):
        pasta.mkdir(parents=True)
    shutil.copytree(LAB / "nucleo" / "base", origem / "lab" / "nucleo" / "base")
    (origem / "lab" / "nucleo" / "__init__.py").touch()
    (origem / "lab" / "aula.py").touch()
    pedem = "numpy>=1\ntorch==0.0.1  # há outro, e serve\npacote-que-falta>=3,<4\n"
    (origem / "requirements.txt").write_text(pedem, encoding="utf-8")
    quem = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for comando in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "um"]):
        subprocess.run(["git", *quem, *comando], cwd=origem, check=True)
    (pip / "pip.py").write_text("import sys; print('PIP', *sys.argv[1:])", encoding="utf-8")
    endereco = origem.as_uri() if conhecido else (tmp_path / "nenhum").as_uri()
    celula = cadernos.montar(LAB / "02_embeddings.py", endereco, "--palavra 'a b'").cells[1].source
    depois = "\nprint('FIM', os.getcwd(), sys.argv)"
    # Duas vezes, como quem roda a célula de novo.
    feito = subprocess.run(
        [sys.executable, "-c", f"exec({celula!r})\nexec({celula + depois!r})"], cwd=longe,
        env=os.environ | {"PYTHONPATH": str(pip)}, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    if not conhecido:
        assert feito.returncode == 1 and "Não achei o laboratório" in feito.stderr
        return
    assert feito.returncode == 0, feito.stderr
    pedidos = [x for x in feito.stdout.splitlines() if x.startswith("PIP")]
    assert len(pedidos) == 2 and set(pedidos) == {"PIP install --quiet pacote-que-falta<4,>=3"}
    fim = f"FIM {longe / 'laboratorio'} {['02_embeddings.py', '--palavra', 'a b']}"
    assert fim in feito.stdout.splitlines()


@pytest.mark.unit
def test_sem_o_jupytext_uma_mensagem(monkeypatch, capsys):
    from palco.erros import rodar_com_erros_gentis

    monkeypatch.setattr(cadernos.importlib.util, "find_spec", lambda nome: None)
    monkeypatch.setattr(sys, "argv", ["cadernos.py", "--endereco", "https://exemplo.org/a"])
    assert rodar_com_erros_gentis(cadernos.principal) == 2
    dito = capsys.readouterr().err
    assert "jupytext" in dito and "requirements-dev.txt" in dito


@pytest.mark.unit
def test_um_kernel_sem_os_pacotes(monkeypatch):
    from nucleo.base.erros import ErroDoUsuario
    from palco import jupyter

    monkeypatch.setattr(jupyter.importlib.util, "find_spec", lambda nome: nome != "rich" or None)
    with pytest.raises(ErroDoUsuario) as erro:
        jupyter.ligar(("torch", "rich"))
    assert "rich" in erro.value.o_que
    (unica,) = erro.value._render_traceback_()
    assert unica.startswith("✗ ") and "Por quê:" in unica
