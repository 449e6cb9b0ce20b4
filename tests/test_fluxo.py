"""O .github/workflows/testes.yml é o do laboratório: os Pythons, os sistemas e os comandos que o README nomeia.

Quem confere a gramática do arquivo é o actionlint, à mão (CONTRIBUINDO.md); aqui se confere o que ele não sabe.
"""

import re

import pytest
import yaml

from conftest import RAIZ
from nucleo.sala import pacote
from test_leia_me import COLUNAS, TEXTO

pytestmark = pytest.mark.unit

FLUXO = yaml.safe_load((RAIZ / ".github" / "workflows" / "testes.yml").read_text("utf-8"))
(TAREFA,) = FLUXO["jobs"].values()
MATRIZ = TAREFA["strategy"]["matrix"]
# As receitas do Makefile: ALVO -> as linhas dela, com as variáveis por trocar.
RECEITAS = {
    alvo: [linha.strip() for linha in corpo.splitlines()]
    for alvo, corpo in re.findall(
        r"^([\w$().//-]+):.*\n((?:\t.*\n)+)", (RAIZ / "Makefile").read_text("utf-8"), re.M
    )
}
TESTAR = re.search(r"^TESTAR := (.*)$", (RAIZ / "Makefile").read_text("utf-8"), re.M)[1]


def comandos(windows: bool) -> list[str]:
    """O que os passos rodam num sistema, na ordem."""
    outro = "runner.os != 'Windows'" if windows else "runner.os == 'Windows'"
    return [p["run"] for p in TAREFA["steps"] if "run" in p and p.get("if") != outro]


def test_a_matriz_e_a_dos_pythons_e_sistemas_do_laboratorio():
    assert MATRIZ["python"] == list(pacote.PYTHONS)
    assert set(MATRIZ) == {"sistema", "python"}  # nem include nem exclude: todos contra todos
    assert TAREFA["runs-on"] == "${{ matrix.sistema }}"
    (com,) = [p["with"] for p in TAREFA["steps"] if "setup-python" in p.get("uses", "")]
    assert com["python-version"] == TAREFA["env"]["PY_PYTHON"] == "${{ matrix.python }}"
    # As colunas da tabela do README, e as plataformas para as quais o pacote leva wheels.
    colunas = re.search(r"^\| \| (.*) \|\n\|---", TEXTO, re.M)[1].split(" | ")
    nomes = {"ubuntu": "Linux", "macos": "macOS", "windows": "Windows"}
    sistemas = [nomes[s.removesuffix("-latest")] for s in MATRIZ["sistema"]]
    assert sorted(sistemas) == sorted(colunas)
    assert {p.partition("-")[0] for p in pacote.PLATAFORMAS} == {s.lower() for s in colunas}


@pytest.mark.parametrize(
    "arquivo",
    ["README.md", "lab/nucleo/sala/esqueletos/LEIA-ME.txt", "lab/nucleo/sala/esqueletos/pagina.html"],
)  # fmt: skip
def test_todo_lugar_que_nomeia_os_pythons_nomeia_os_mesmos(arquivo):
    texto = (RAIZ / arquivo).read_text("utf-8")
    faixas = re.findall(r"3\.\d+ a 3\.\d+", texto)
    assert faixas and set(faixas) == {f"{pacote.PYTHONS[0]} a {pacote.PYTHONS[-1]}"}


@pytest.mark.parametrize("windows", [False, True], ids=["linux e macos", "windows"])
def test_os_passos_sao_os_comandos_do_readme_e_os_testes_do_makefile(windows):
    porta, do_ambiente, licao, *resto = comandos(windows)
    # Linux, macOS, Windows: as colunas do README, na ordem dele.
    for coluna in (2,) if windows else (0, 1):
        assert [porta, licao] == [linha[coluna] for linha in COLUNAS]
    assert "${{ matrix.python }}" in do_ambiente and do_ambiente.startswith(licao.split()[0])
    if not windows:
        assert resto == ["make test"] and "test" in RECEITAS
        return
    # Sem make: as linhas das receitas, escritas como o Windows as escreve.
    receita = [*RECEITAS["$(VENV)/.instalado-dev"][:-1], *RECEITAS["test"]]
    esperado = [
        linha.replace('"$(PY)"', r".venv\Scripts\python").replace("$(TESTAR)", TESTAR)
        for linha in receita
    ]
    assert resto == esperado and len(resto) == 3
    arquivo = re.search(r"-r (\S+)", resto[0])[1]
    assert (RAIZ / arquivo).is_file()


def test_o_windows_e_os_outros_dividem_os_passos_sem_deixar_nenhum_de_fora():
    for passo in TAREFA["steps"]:
        if "run" in passo:
            assert passo["if"] in ("runner.os == 'Windows'", "runner.os != 'Windows'"), passo
            # O PowerShell seguiria depois de um comando que falhou.
            assert "\n" not in passo["run"].strip(), passo
            assert not {"continue-on-error", "shell", "working-directory"} & set(passo), passo


def test_so_le_com_versoes_fixas_hora_de_parar_e_sem_segredo():
    assert FLUXO["permissions"] == {"contents": "read"} and "permissions" not in TAREFA
    assert FLUXO["concurrency"]["cancel-in-progress"] is True
    assert 0 < TAREFA["timeout-minutes"] <= 90 and TAREFA["strategy"]["fail-fast"] is False
    acoes = [p["uses"] for p in TAREFA["steps"] if "uses" in p]
    assert len(acoes) == 2 and all(re.fullmatch(r"actions/[\w-]+@v\d+", a) for a in acoes)
    assert "secrets" not in str(FLUXO)
    # O YAML 1.1 lê a chave `on` como verdadeiro.
    assert set(FLUXO[True]) == {"push", "pull_request", "workflow_dispatch"}
