"""CONTRIBUINDO.md é verdade: seguido à risca num clone descartável, a apostila de mentira funciona."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from conftest import CASA, RAIZ, uma_vez
from test_leia_me import copiar_repositorio

pytestmark = [pytest.mark.cli, pytest.mark.smollm2, pytest.mark.longo]
TEXTO = (RAIZ / "CONTRIBUINDO.md").read_text(encoding="utf-8")
# "Em `arquivo`:", "No fim de `arquivo`:" ou "Na tabela de `arquivo`:", e o bloco que vem depois.
RECEITA = re.compile(
    r"(Em|No fim de|Na tabela de) `([\w./]+)`:\n\n(`{3,})\w+\n(.*?)\n\3$", re.S | re.M
)
COMANDOS = [
    linha for bloco in re.findall(r"^```bash\n(.*?)^```", TEXTO, re.S | re.M)
    for linha in bloco.splitlines()
]  # fmt: skip


def seguir(clone):
    """Faz o que a página manda fazer com cada arquivo; devolve os arquivos tocados."""
    tocados = []
    for como, nome, _, conteudo in RECEITA.findall(TEXTO):
        arquivo = clone / nome
        if como == "Em":
            assert not arquivo.exists(), nome
            novo = conteudo + "\n"
        elif como == "No fim de":
            novo = arquivo.read_text("utf-8") + conteudo + "\n"
        else:
            linhas = arquivo.read_text("utf-8").splitlines()
            ultima = max(i for i, linha in enumerate(linhas) if linha.startswith("| `lab/"))
            novo = "\n".join([*linhas[: ultima + 1], conteudo, *linhas[ultima + 1 :], ""])
        arquivo.write_text(novo, encoding="utf-8", newline="\n")
        tocados.append(arquivo)
    return tocados


CLONE = CASA / "clone" / "laboratório de quem chega"


def chamar(*partes: str):
    # O pytest de dentro não é um operário do de fora, nem mora na casa dele.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "LAB_TESTES"))}
    return subprocess.run(
        [sys.executable, *partes], cwd=CLONE, env=env | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True, encoding="utf-8", timeout=280,
    )  # fmt: skip


@pytest.fixture
def seguido(smollm2):
    """(arquivos tocados, {comando: o que ele fez}): a página inteira, do primeiro ao último comando."""

    def fazer():
        copiar_repositorio(CLONE)
        subprocess.run(
            ["git", "init", "-q"], cwd=CLONE, check=True
        )  # há testes que perguntam ao git
        tocados, feitos = [str(a) for a in seguir(CLONE)], {}
        for comando in COMANDOS:
            python, *resto = shlex.split(comando)
            assert python == "python"
            feito = chamar(*resto)
            feitos[comando] = (feito.args, feito.returncode, feito.stdout, feito.stderr)
        return tocados, feitos

    tocados, feitos = uma_vez("contribuindo", fazer)
    return tocados, {c: subprocess.CompletedProcess(*f) for c, f in feitos.items()}


def test_a_pagina_cabe_numa_leitura_e_tem_os_seis_pedacos():
    assert len(RECEITA.findall(TEXTO)) == 12 and len(COMANDOS) == 6
    for n in range(1, 7):
        assert f"**{n}. " in TEXTO


def test_todo_comando_funciona(seguido):
    _, feitos = seguido
    for comando, feito in feitos.items():
        assert feito.returncode == 0, (comando, feito.stdout[-1500:], feito.stderr[-1500:])
        assert "Traceback" not in feito.stderr
    de_teste = next(f for c, f in feitos.items() if "pytest" in c)
    # Escolheu mesmo os testes da apostila nova, e nenhum pulou.
    assert int(re.search(r"(\d+) passed", de_teste.stdout)[1]) > 15
    assert "skipped" not in de_teste.stdout


def test_o_numero_medido_chegou_ao_texto_a_conferencia_e_a_errata(seguido):
    _, feitos = seguido
    texto = (CLONE / "apostilas" / "03_atencao.md").read_text("utf-8")
    # e^2 / (e^2 + 1 + e) = 0,665: a conta à mão do maior peso.
    assert "O maior peso da tabela é 0,665." in texto
    ficha = next(f for c, f in feitos.items() if "maior_leva_tudo" in c)
    assert "não confere" in ficha.stdout and "0,665" in ficha.stdout
    assert "`maior_leva_tudo`" in (CLONE / "apostilas" / "errata.md").read_text("utf-8")


def test_o_codigo_da_pagina_segue_o_estilo_da_casa(seguido):
    tocados, _ = seguido
    pys = [a for a in tocados if a.endswith(".py")]
    for modo in (["check"], ["format", "--check"]):
        feito = chamar("-m", "ruff", *modo, *pys)
        assert feito.returncode == 0, feito.stdout


def test_os_scripts_novos_entram_na_tabela_e_no_make_all(seguido):
    leia_me = (CLONE / "README.md").read_text("utf-8")
    assert re.search(r"^\| `lab/03_atencao\.py`.*\n\| `lab/03_exercicios\.py`", leia_me, re.M)
    assert "03_atencao" in chamar("lab/tudo.py", "--help").stdout
