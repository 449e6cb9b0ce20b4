"""O README é verdade: todo comando dele roda, todo arquivo citado existe, todo script está lá."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import LAB, RAIZ
from nucleo.sala import montar
from test_espelho import no_ar

TEXTO = (RAIZ / "README.md").read_text(encoding="utf-8")
COMANDOS = [
    linha
    for bloco in re.findall(r"```(?:bash|powershell)\n(.*?)```", TEXTO, re.S)
    for linha in bloco.splitlines()
    if linha.strip() and not linha.startswith("#")
]
# O que baixaria gigabytes ou faria outro ambiente roda com o mesmo programa, numa forma leve.
# Os downloads do GPT-2 de verdade são testados contra o servidor de loopback (camada hub).
# A lição inteira, que treina, roda sem opção nenhuma em test_licao_treino.py: aqui, o ato que não treina.
RODAM_INTEIROS_EM_OUTRO_TESTE = {"lab/02_treino.py": ["--secao", "2"]}
PRECISAM_DO_HUB = {"--modelos gpt2-xl", "--completo gpt2-medium", "--modelos gpt2,smollm2"}


def como_no_unix(comando: str) -> str:
    """O comando do Windows escrito como no Unix: é o mesmo programa, e roda uma vez só."""
    return comando.replace("\\", "/").replace(".venv/Scripts/python", ".venv/bin/python")


def test_ha_comandos_e_os_dois_primeiros_sao_os_de_quem_chega():
    assert COMANDOS[:2] == ["make preparar", ".venv/bin/python lab/02_embeddings.py"]
    assert len(COMANDOS) > 12


@pytest.mark.cli
@pytest.mark.smollm2
@pytest.mark.parametrize("comando", sorted({como_no_unix(c) for c in COMANDOS}))
def test_comando_roda(comando, tmp_path, smollm2):
    env = os.environ | {"HF_HUB_OFFLINE": "1", "LAB_MODELO": "smollm2"}
    partes = shlex.split(comando)
    esperado = 0
    if partes[:2] == ["make", "all"] or "lab/tudo.py" in partes:
        env["LAB_MODELO"] = (
            "mini"  # o que se testa é o encadeamento; a lição no SmolLM2 tem o seu teste
        )
    if partes[0] == "make":
        if not shutil.which("make"):
            pytest.skip("esta máquina não tem make")
        # Num clone de mentira, com o ambiente de agora: o make de verdade, sem reinstalar nada.
        clone = copiar_repositorio(tmp_path / "clone com espaço e ação")
        extra = ["TUDO=--licoes 02_embeddings"] if partes[1] == "all" else []
        # Chamar os testes de dentro dos testes não teria fim: o alvo aparece, mas não roda.
        # O bench leva minutos e mede a máquina: também só aparece (test_bench.py roda um assunto).
        extra += ["-n"] if partes[1] in ("test", "bench") else []
        partes = [*partes, f"VENV={ambiente_pronto(clone)}", *extra]
        feito = subprocess.run(
            partes, cwd=clone, env=env, capture_output=True, encoding="utf-8", timeout=280
        )
    elif partes[1:3] == ["-m", "venv"]:
        # --without-pip: o que se testa é o comando; instalar o pip não é assunto nosso.
        partes = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v")]
        feito = subprocess.run(partes, env=env, capture_output=True, encoding="utf-8", timeout=120)
    elif {"--pacote", "--do-pacote", "--espelho"} & set(partes):
        feito = rodar_do_pacote(partes[1:], tmp_path, env)
    else:
        assert partes[0] == ".venv/bin/python"
        resto = partes[1:]
        if resto[:3] == ["-m", "pip", "install"]:
            # Com tudo instalado, o pip só confirma; nada é baixado.
            resto = [*resto, "--no-deps", "--quiet", "--dry-run", "--disable-pip-version-check"]
        elif "tudo.py" in resto[0]:
            # A página sozinha não roda lição nenhuma; o resto, uma que basta.
            resto = resto if "--so-pagina" in resto else [*resto, "--licoes", "02_embeddings"]
        elif "00_preparar" not in resto[0] and "diagramas" not in resto[0]:
            leve = RODAM_INTEIROS_EM_OUTRO_TESTE.get(" ".join(resto), [])
            resto = [*resto, *leve, "--saida", str(tmp_path / "saida")]
        if "--verificar" in resto:
            # Quem chega aqui acabou de criar os moldes; o primeiro ainda está vazio, e a saída é 1.
            moldes = [sys.executable, resto[0], "--implementar", *resto[-2:]]
            subprocess.run(moldes, cwd=RAIZ, env=env, capture_output=True, check=True)
            esperado = 1
        if " ".join(resto[1:]) in PRECISAM_DO_HUB:
            # Sem rede e com o cache vazio: o comando existe, diz o que falta e sai com 1.
            env |= {"HF_HOME": str(tmp_path / "hf")}
            esperado = 1
        feito = subprocess.run(
            [sys.executable, *resto],
            stdin=subprocess.DEVNULL,  # quem perguntar algo ouve que a entrada acabou, e segue
            cwd=RAIZ,
            env=env,
            capture_output=True,
            encoding="utf-8",
            timeout=280,
        )
    assert feito.returncode == esperado, feito.stdout[-2000:] + feito.stderr[-2000:]
    assert "Traceback" not in feito.stderr


def rodar_do_pacote(resto, tmp_path, env):
    """O comando sobre um pacote leve (só o mini, sem wheels), em caches vazios.

    `pacote` vira a pasta dele; o endereço do espelho, o de um que está no ar; e o espelho, que não
    acaba sozinho, recebe um Ctrl-C depois de dizer onde está.
    """
    kit = tmp_path / "pacote"
    env = env | {
        "HF_HOME": str(tmp_path / "hf"),
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    comando = [sys.executable, *(str(kit) if x == "pacote" else x for x in resto)]
    if "--pacote" in resto:
        comando += ["--sem-wheels", "--modelos", "mini"]
        feito = subprocess.run(comando, cwd=RAIZ, env=env, capture_output=True, encoding="utf-8")
        assert (kit / "manifesto.json").exists()
        return feito
    montar.montar(kit, ["mini"], [], {})
    if "--espelho" in resto:
        comando += ["--porta", "0"]
        com_ctrl_c = subprocess.Popen(
            comando,
            cwd=RAIZ,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        while (linha := com_ctrl_c.stdout.readline()) and "Ctrl-C fecha" not in linha:
            pass
        com_ctrl_c.send_signal(signal.SIGINT)
        ditos = com_ctrl_c.communicate(timeout=60)
        return subprocess.CompletedProcess(comando, com_ctrl_c.returncode, *ditos)
    with no_ar(kit) as url:
        comando = [url if x.startswith("http://") else x for x in comando]
        return subprocess.run(comando, cwd=RAIZ, env=env, capture_output=True, encoding="utf-8")


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
