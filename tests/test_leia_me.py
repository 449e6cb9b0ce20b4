"""O README é verdade: todo comando dele roda, todo arquivo citado existe, todo script está lá."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import APERTADO, LAB, RAIZ, licao_pronta, rodar_dentro
from nucleo.base import caminhos
from nucleo.sala import montar
from test_espelho import no_ar

TEXTO = (RAIZ / "README.md").read_text(encoding="utf-8")
COMANDOS = [
    linha
    for bloco in re.findall(r"```(?:bash|powershell)\n(.*?)```", TEXTO, re.S)
    for linha in bloco.splitlines()
    if linha.strip() and not linha.startswith("#")
]
# As duas linhas da tabela de quem chega: uma coluna por sistema.
COLUNAS = [
    tuple(re.findall(r"`([^`]+)`", linha))
    for linha in re.findall(r"^\| (?:prepara|a primeira lição) \|.*$", TEXTO, re.M)
]
# Os downloads do GPT-2 de verdade são testados contra o servidor de loopback (camada hub): aqui, sem
# rede e com o cache vazio, o comando existe, diz o que falta e sai com 1.
PRECISAM_DO_HUB = {"--modelos gpt2-xl", "--completo gpt2-medium", "--modelos gpt2,smollm2"}
LONGOS = ("make all", "make apostilas", "lab/tudo.py", "-m pip", "lab/02_treino.py")


def como_no_unix(comando: str) -> str:
    """O comando do Windows escrito como no Unix: é o mesmo programa, e roda uma vez só."""
    comando = comando.replace("\\", "/").replace(".venv/Scripts/python", ".venv/bin/python")
    return re.sub(r"^py ", "python3 ", comando)


def test_ha_comandos_e_os_dois_de_quem_chega_sao_os_mesmos_nos_tres_sistemas():
    prepara, licao = COLUNAS
    assert prepara == ("python3 lab/00_preparar.py",) * 2 + (r"py lab\00_preparar.py",)
    assert [como_no_unix(c) for c in (*prepara, *licao)] == [prepara[0]] * 3 + [licao[0]] * 3
    assert licao[0] == ".venv/bin/python lab/02_embeddings.py"
    assert len(COMANDOS) > 12


def com_marca(comando: str):
    longo = [pytest.mark.longo] if any(x in comando for x in LONGOS) else []
    return pytest.param(comando, marks=longo, id=comando.removeprefix(".venv/bin/python "))


@pytest.mark.cli
@pytest.mark.smollm2
@pytest.mark.parametrize(
    "comando",
    [com_marca(c) for c in sorted({como_no_unix(c) for c in [*COMANDOS, *sum(COLUNAS, ())]})],
)
def test_comando_roda(comando, tmp_path, smollm2, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    monkeypatch.setenv("LAB_SAIDAS", str(tmp_path / "outputs"))
    monkeypatch.setattr(caminhos, "SAIDAS", tmp_path / "outputs")
    monkeypatch.chdir(RAIZ)
    esperado = 0
    python, *resto = shlex.split(comando)
    if python == "make":
        feito = rodar_make(resto[0], tmp_path)
    elif resto[:3] == ["-m", "pip", "install"]:
        # Com tudo instalado, o pip só confirma; nada é baixado.
        feito = chamar(*resto, "--no-deps", "--quiet", "--dry-run", "--disable-pip-version-check")
    elif {"--pacote", "--do-pacote", "--espelho"} & set(resto):
        feito = rodar_do_pacote(resto, tmp_path)
    elif "lab/tudo.py" in resto:
        # O que se testa é o encadeamento: a página sozinha não roda lição nenhuma; o resto, uma que basta.
        extra = [] if "--so-pagina" in resto else ["--licoes", "02_embeddings", "--modelo", "mini"]
        feito = chamar(*resto, *extra)
    elif not resto[0].startswith("lab/"):
        feito = chamar(*resto)
    elif len(resto) == 1 and re.match(r"lab/0[26]_(?!exerc)", resto[0]):
        # A lição 02 roda apertada em test_licao_02: aqui, a mesma execução.
        mais = {"antes": APERTADO} if resto[0] == "lab/02_embeddings.py" else {}
        feito, _ = licao_pronta(resto[0].removeprefix("lab/"), **mais)
    else:
        script, *opcoes = resto[0].removeprefix("lab/"), *resto[1:]
        if "exercicios" in script:
            opcoes += ["--saida", str(tmp_path / "respostas")]
        if "--verificar" in opcoes:
            # Quem chega aqui acabou de criar os moldes; o primeiro ainda está vazio, e a saída é 1.
            assert rodar_dentro(script, "--implementar", *opcoes[-2:]).returncode == 0
            esperado = 1
        if " ".join(opcoes) in PRECISAM_DO_HUB:
            esperado = 1
        feito = rodar_dentro(script, *opcoes, ambiente={"LAB_MODELO": "smollm2"})
    assert feito.returncode == esperado, feito.stdout[-2000:] + feito.stderr[-2000:]
    assert "Traceback" not in feito.stderr


def chamar(*partes: str, onde=RAIZ):
    """Um comando deste Python, na raiz: (CompletedProcess)."""
    return subprocess.run(
        [sys.executable, *partes], cwd=onde, capture_output=True, encoding="utf-8", timeout=280
    )


def rodar_make(alvo: str, pasta):
    """O make de verdade, num clone de mentira com o ambiente de agora: nada se reinstala."""
    if not shutil.which("make"):
        pytest.skip("esta máquina não tem make")
    clone = copiar_repositorio(pasta / "clone com espaço e ação")
    partes = ["make", alvo, f"VENV={ambiente_pronto(clone)}", f"PYTHON={sys.executable}"]
    if alvo == "all":
        partes.append("TUDO=--licoes 02_embeddings --modelo mini")
    if alvo in ("test", "test-longo", "bench"):
        # Chamar os testes de dentro dos testes não teria fim, e o bench leva minutos e mede a máquina
        # (test_bench.py roda um assunto): o alvo aparece, mas não roda.
        partes.append("-n")
    return subprocess.run(partes, cwd=clone, capture_output=True, encoding="utf-8", timeout=280)


def rodar_do_pacote(resto, tmp_path):
    """O comando sobre um pacote leve (só o mini, sem wheels).

    `pacote` vira a pasta dele; o endereço do espelho, o de um que está no ar; e o espelho, que não
    acaba sozinho, recebe um Ctrl-C depois de dizer onde está.
    """
    kit = tmp_path / "pacote"
    resto = [str(kit) if x == "pacote" else x for x in resto]
    if "--pacote" in resto:
        feito = chamar(*resto, "--sem-wheels", "--modelos", "mini")
        assert (kit / "manifesto.json").exists()
        return feito
    montar.montar(kit, ["mini"], [], {})
    if "--espelho" in resto:
        comando = [sys.executable, "-u", *resto, "--porta", "0"]
        com_ctrl_c = subprocess.Popen(
            comando, cwd=RAIZ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        )
        while (linha := com_ctrl_c.stdout.readline()) and "Ctrl-C fecha" not in linha:
            pass
        com_ctrl_c.send_signal(signal.SIGINT)
        ditos = com_ctrl_c.communicate(timeout=280)
        return subprocess.CompletedProcess(comando, com_ctrl_c.returncode, *ditos)
    with no_ar(kit) as url:
        return chamar(*[url if x.startswith("http://") else x for x in resto])


def copiar_repositorio(destino):
    """O que o git guarda (e o que ainda não guardou), em outra pasta."""
    nomes = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=RAIZ, capture_output=True, check=True,
    ).stdout.decode().split("\0")  # fmt: skip
    for nome in filter(None, nomes):
        if (RAIZ / nome).is_file():
            (destino / nome).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(RAIZ / nome, destino / nome)
    return destino


def ambiente_pronto(clone):
    """Uma pasta VENV que usa o Python de agora e se diz instalada."""
    venv = clone / "ambiente"
    pasta = venv / ("Scripts" if os.name == "nt" else "bin")
    pasta.mkdir(parents=True)
    # Um atalho perderia o ambiente virtual: um script chama o Python certo.
    atalho = pasta / "python"
    atalho.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    atalho.chmod(0o755)
    for marca in (".instalado", ".instalado-dev", ".instalado-bench"):
        (venv / marca).touch()
    return "ambiente"


@pytest.mark.unit
def test_todo_script_numerado_esta_na_tabela():
    citados = set(re.findall(r"^\| `lab/([\w.]+)`", TEXTO, re.M))
    assert citados == {p.name for p in LAB.glob("*.py")} - {"aula.py"} - BASTIDORES


# Scripts de manutenção, citados fora da tabela.
BASTIDORES = {"treinar_mini.py"} & {p.name for p in LAB.glob("*.py")}


@pytest.mark.unit
def test_arquivos_citados_existem():
    for nome in re.findall(r"`((?:lab|bench|data|tests|outputs|apostilas)/[\w./]*)`", TEXTO):
        assert (RAIZ / nome).exists() or nome.startswith("outputs/"), nome


@pytest.mark.unit
def test_makefile_lista_seus_alvos():
    alvos = re.findall(r"^([a-z]+):.*##", (RAIZ / "Makefile").read_text("utf-8"), re.M)
    assert {"help", "all", "test", "preparar", "lint", "clean"} <= set(alvos)


@pytest.mark.cli
@pytest.mark.parametrize("linha", [["make"], ["make", "help"]])
def test_make_sem_nada_mostra_a_ajuda(linha):
    if not shutil.which("make"):
        pytest.skip("esta máquina não tem make")
    feito = subprocess.run(linha, cwd=RAIZ, capture_output=True, encoding="utf-8")
    assert feito.returncode == 0
    for alvo in ("all", "test", "preparar", "lint", "clean"):
        assert f"make {alvo}" in feito.stdout


@pytest.mark.cli
def test_make_clean_apaga_so_o_que_se_refaz(tmp_path):
    if not shutil.which("make"):
        pytest.skip("esta máquina não tem make")
    clone = copiar_repositorio(tmp_path / "çlone")
    antes = {p.relative_to(clone) for p in clone.rglob("*") if p.is_file()}
    for lixo in (".venv/x", "outputs/02/x.csv", "lab/__pycache__/x.pyc", ".pytest_cache/x"):
        (clone / lixo).parent.mkdir(parents=True, exist_ok=True)
        (clone / lixo).write_text("", encoding="utf-8")
    assert subprocess.run(["make", "clean"], cwd=clone, capture_output=True).returncode == 0
    assert {p.relative_to(clone) for p in clone.rglob("*") if p.is_file()} == antes
