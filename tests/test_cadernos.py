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


class Kernel:
    """Um kernel com as células de um caderno; `rodar` executa uma e devolve as saídas dela."""

    def __init__(self, caderno, pasta, **ambiente):
        self.celulas = [c for c in caderno.cells if c.cell_type == "code"]
        self.cliente = nbclient.NotebookClient(
            caderno, timeout=280, kernel_name="python3", allow_errors=True,
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
    return Kernel(cadernos.montar(LAB / f"{nome}.py", "", opcoes), RAIZ / "lab", **ambiente)


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
        preparo = [s for n in range(secoes[0]) for s in k.rodar(n)]
        # Fora de ordem: da última seção para a primeira, cada uma sem as de antes.
        for n in reversed(secoes):
            k.rodar(n)
        # Na ordem, outra vez: a segunda volta é a que fica.
        saidas = preparo + [s for n in range(secoes[0], ultima + 1) for s in k.rodar(n)]
        if nome != "99_conferir":  # a conferência não desenha
            conferir_a_pasta(tmp_path / nome, saidas)


def figura_e_tabela_de(nome: str, secao: int, tmp_path, modelo: str) -> None:
    with aberto(nome, tmp_path, f"--secao {secao}", modelo) as k:
        for n in range(len(k.celulas)):
            k.rodar(n)
        todas = [s for c in k.celulas for s in c.outputs]
        conferir_a_pasta(tmp_path / nome / "parcial", todas)
        quem = json.loads((tmp_path / nome / "parcial" / "resultado.json").read_text("utf-8"))
        assert f"--secao {secao}" in quem["comando"]
        assert quem.get("modelo", {"nome": modelo})["nome"] == modelo  # há seções sem modelo


@pytest.mark.mini
def test_uma_secao_com_figura_e_tabela_na_celula(tmp_path):
    figura_e_tabela_de("06_posicoes", "6.4", tmp_path, "mini")


@pytest.mark.longo
@pytest.mark.smollm2
def test_no_smollm2(tmp_path, smollm2):
    figura_e_tabela_de("02_embeddings", 2, tmp_path, "smollm2")


@pytest.mark.longo
def test_um_engano_na_celula_e_uma_mensagem(tmp_path):
    with aberto("02_embeddings", tmp_path, "--secao 2 --palavra xyzxyzxyz") as k:
        textos = []
        for n, celula in enumerate(k.celulas):
            k.cliente.execute_cell(celula, k.cliente.nb.cells.index(celula))
            textos += [s.get("text", "") for s in celula.outputs]
            assert not any(s.output_type == "error" for s in celula.outputs), n
            if any("✗" in t for t in textos):
                break
        (mensagem,) = [t for t in textos if "✗" in t]
        assert "Por quê:" in mensagem and "Traceback" not in "".join(textos)


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
    assert primeira.startswith('opcoes = ""') and "https://exemplo.org/lab" in primeira
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
    assert comuns == "def base(x):\n    return x\ndef conta(x):\n    return base(x)"
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
