"""SIGTERM, SIGHUP, SIGKILL e o terminal que fecha: nada fica rodando, nada fica pela metade.

Cada programa roda com uma marca no ambiente, que os filhos e os netos herdam (e que a caixa da correção
leva com outro nome): quem ainda a tiver depois do prazo é um processo esquecido.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import LAB, RAIZ

pytestmark = [
    pytest.mark.cli,
    pytest.mark.skipif(
        not Path("/proc/self/environ").exists(), reason="procura processos em /proc"
    ),
]
# Numa máquina quieta ninguém passa de 2 s; com outros programas pesados ao lado, o relógio é outro.
PRAZO = 15.0


def vivos(marca: str) -> list[int]:
    """Os pids de quem tem a marca no ambiente, ou mora numa caixa aberta por ela."""
    achados = []
    for pasta in Path("/proc").glob("[0-9]*"):
        try:
            if marca.encode() in (pasta / "environ").read_bytes():
                achados.append(int(pasta.name))
        except OSError:
            continue
    return achados


def lancar(tmp_path: Path, *comando: str, **mais) -> tuple[subprocess.Popen, str]:
    """O programa rodando, e a marca dele. As caixas abrem em TMPDIR, cujo nome é a marca."""
    marca = f"marca-{os.urandom(8).hex()}"
    (tmp_path / marca).mkdir()
    env = os.environ | {
        "MARCA": marca, "TMPDIR": str(tmp_path / marca), "LAB_SAIDAS": str(tmp_path / "saidas"),
        "PYTHONIOENCODING": "utf-8", "HF_HUB_OFFLINE": "1", "LAB_MODELO": "mini",
        "PYTHONPATH": str(LAB),
    }  # fmt: skip
    processo = subprocess.Popen(
        [sys.executable, *comando], env=env, cwd=RAIZ, start_new_session=True,
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"} | mais),
    )  # fmt: skip
    return processo, marca


def ninguem(marca: str) -> list[int]:
    """[] assim que não houver mais ninguém; quem sobrou, se o prazo acabar antes."""
    fim = time.monotonic() + PRAZO
    while (sobra := vivos(marca)) and time.monotonic() < fim:
        time.sleep(0.02)
    return sobra


def inteiros(pasta: Path) -> None:
    """Cada resultado.json abre e lista arquivos que existem."""
    for arquivo in pasta.rglob("resultado.json"):
        resultado = json.loads(arquivo.read_text("utf-8"))
        assert all((arquivo.parent / nome).is_file() for nome in resultado["arquivos"])


MA_FE = {
    # Segura o GIL: nenhuma thread do processo roda para perceber que ficou órfão.
    "segura": "import itertools\ndef cosseno(a, b):\n    open('rodando', 'w').close()\n    return sum(itertools.count())\n",
    "laco": "def cosseno(a, b):\n    open('rodando', 'w').close()\n    while True:\n        pass\n",
    # Onde a caixa não nega processos, um neto noutra sessão, surdo ao SIGTERM.
    "neto": (
        "import os, signal, time\n"
        "def cosseno(a, b):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    try:\n"
        "        if os.fork() == 0:\n"
        "            os.setsid()\n"
        "            if os.fork() == 0:\n"
        "                open('neto', 'w').close()\n"
        "                time.sleep(300)\n"
        "    except OSError:\n"
        "        pass\n"
        "    while True:\n"
        "        time.sleep(1)\n"
    ),
}


def turma_sem_fim(pasta: Path) -> Path:
    """Seis pessoas que entregaram programas que não acabam."""
    for n in range(6):
        nome, programa = list(MA_FE.items())[n % len(MA_FE)]
        (pasta / f"{nome}{n}").mkdir(parents=True)
        (pasta / f"{nome}{n}" / "02_2_cosseno.py").write_text(programa, "utf-8")
    return pasta


COMANDOS = {
    "lição": lambda tmp: [str(LAB / "02_embeddings.py"), "--modelo", "mini"],
    "tudo": lambda tmp: [str(LAB / "tudo.py"), "--licoes", "02_embeddings", "--modelo", "mini"],
    "corrigir": lambda tmp: [
        str(LAB / "corrigir.py"), str(turma_sem_fim(tmp / "turma")), "--apostila", "2", "--sem-previsoes",
    ],
}  # fmt: skip
CODIGOS = {"SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}


def matar_no_meio(tmp_path: Path, qual: str, sinal: str, espera: float) -> tuple[bool, float]:
    """Um sinal depois de `espera` segundos; (se o programa ainda rodava, quanto durou o fim de todos)."""
    tmp_path.mkdir(parents=True)
    processo, marca = lancar(tmp_path, *COMANDOS[qual](tmp_path))
    leitor = threading.Thread(target=processo.communicate, daemon=True)
    leitor.start()
    time.sleep(espera)
    rodava = processo.poll() is None
    inicio = time.monotonic()
    os.kill(processo.pid, getattr(signal, sinal))
    try:
        sobra = ninguem(marca)
        durou = time.monotonic() - inicio
        assert not sobra, [Path(f"/proc/{p}/cmdline").read_bytes() for p in sobra if p]
        codigo = processo.wait(PRAZO)
    finally:
        for pid in vivos(marca):
            os.kill(pid, signal.SIGKILL)
    # Antes de a Aula nascer, quem atende é o sistema: o mesmo código, dito por ele (o sinal, negativo).
    ditos = (CODIGOS[sinal], -getattr(signal, sinal)) if rodava else (0, 1)
    # Quem acaba no mesmo instante do sinal sai com 0.
    assert codigo in (*ditos, 0), (codigo, espera)
    inteiros(tmp_path / "saidas")
    return rodava, durou


# Até quando vão os instantes, em segundos: a lição inteira; dos outros dois, o começo, em que nascem os
# processos. Quem acaba antes do sinal não conta como morte, mas também não pode deixar ninguém.
ATE = {"lição": 6.0, "tudo": 4.0, "corrigir": 2.5}


@pytest.mark.longo
@pytest.mark.parametrize("qual", COMANDOS)
def test_dez_instantes_de_cada_sinal(qual, tmp_path, capsys):
    vezes = [(s, (i + 0.5) / 10 * ATE[qual]) for s in CODIGOS for i in range(10)]
    # Três de cada vez: quase todo o tempo é espera.
    with ThreadPoolExecutor(3) as juntas:
        feitas = juntas.map(
            lambda n: matar_no_meio(tmp_path / str(n), qual, *vezes[n]), range(len(vezes))
        )
        rodavam, duraram = zip(*feitas, strict=True)
    with capsys.disabled():
        print(f" [{qual}: {sum(rodavam)} mortes, a mais demorada em {max(duraram):.2f} s]", end="")
    assert sum(rodavam) >= len(vezes) // 2, "quase todos acabaram antes do sinal"


@pytest.mark.parametrize("sinal", [pytest.param("SIGTERM", marks=pytest.mark.longo), "SIGKILL"])
def test_corrigir_leva_os_programas_dos_alunos_consigo(sinal, tmp_path):
    """O caso visto: o laço sem fim de um aluno seguia gastando a máquina depois de a correção morrer."""
    comando = COMANDOS["corrigir"](tmp_path)
    processo, marca = lancar(
        tmp_path, *comando, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        fim = time.monotonic() + 60
        while not list((tmp_path / marca).glob("caixa-*/rodando")):
            assert time.monotonic() < fim and processo.poll() is None
            time.sleep(0.05)
        os.kill(processo.pid, getattr(signal, sinal))
        assert processo.wait(20) == CODIGOS[sinal]
        assert ninguem(marca) == []
    finally:
        for pid in vivos(marca):
            os.kill(pid, signal.SIGKILL)


# Um neto noutra sessão, surdo ao SIGTERM, sem a marca no ambiente: só quem o adotou o acha.
SOLTO = """
import os, signal, sys, time
def cosseno(a, b):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        programa = "import os, time; open({onde!r}, 'w').write(str(os.getpid())); time.sleep(300)"
        os.execve(sys.executable, [sys.executable, "-c", programa], {{}})
    while True:
        time.sleep(1)
"""
NUMA_CAIXA = """
import sys
from nucleo.exercicios import caixa, registro
from palco.erros import rodar_com_erros_gentis
c = caixa.{caixa}
tarefa = next(t for t in registro.tarefas(2) if t.id == "cosseno")
programa = open(sys.argv[1], encoding="utf-8").read()
sys.exit(rodar_com_erros_gentis(lambda: list(c.vereditos([(tarefa, programa)], 0))))
"""
SEM_PAREDES = "Caixa.fechada(sem=('espacos', 'landlock', 'seccomp'))"


def vive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.longo
@pytest.mark.parametrize("caixa", [SEM_PAREDES, "Caixa()"], ids=["aberta", "de casa"])
@pytest.mark.parametrize("sinal", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_o_neto_que_se_solta_tambem_morre(caixa, sinal, tmp_path):
    """Sem parede que negue processos (um Linux antigo, ou em casa, com --verificar)."""
    (tmp_path / "p.py").write_text(SOLTO.format(onde=str(tmp_path / "pid")), "utf-8")
    comando = NUMA_CAIXA.format(caixa=caixa)
    processo, marca = lancar(tmp_path, "-c", comando, str(tmp_path / "p.py"))
    neto = 0
    try:
        fim = time.monotonic() + 60
        while not neto:
            assert time.monotonic() < fim and processo.poll() is None, processo.communicate()
            time.sleep(0.02)
            with contextlib.suppress(OSError, ValueError):
                neto = int((tmp_path / "pid").read_text())
        os.kill(processo.pid, getattr(signal, sinal))
        processo.communicate()
        assert processo.returncode == CODIGOS.get(sinal, 130)
        assert ninguem(marca) == []
        fim = time.monotonic() + PRAZO
        while vive(neto) and time.monotonic() < fim:
            time.sleep(0.02)
        assert not vive(neto)
        assert not list((tmp_path / marca).glob("caixa-*"))  # a pasta temporária também se foi
    finally:
        for pid in [*vivos(marca), neto]:
            if pid:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


DORME = """
import hashlib, os, signal, sys, time
from palco import sinais
from palco.erros import rodar_com_erros_gentis
def principal():
    try:
        print("pronto", flush=True)
        time.sleep(60)
    finally:
        {no_fim}
sys.exit(rodar_com_erros_gentis(principal))
"""


@pytest.mark.parametrize("sinal", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_o_codigo_e_o_recado_de_cada_sinal(sinal, tmp_path):
    processo, _ = lancar(tmp_path, "-c", DORME.format(no_fim="print('arrumei')"))
    assert processo.stdout.readline() == "pronto\n"
    os.kill(processo.pid, getattr(signal, sinal))
    saiu, erro = processo.communicate(timeout=20)
    assert processo.returncode == CODIGOS.get(sinal, 130) and "Traceback" not in erro
    assert saiu == "arrumei\n" and "Nenhum arquivo ficou pela metade" in erro


def test_o_segundo_sinal_nao_atrapalha_a_arrumacao(tmp_path):
    """Um terminal que se fecha manda dois SIGHUP, e um desligamento, SIGTERM e SIGHUP."""
    outros = "[os.kill(os.getpid(), s) for s in (signal.SIGHUP, signal.SIGTERM)]; print('arrumei')"
    processo, _ = lancar(tmp_path, "-c", DORME.format(no_fim=outros))
    assert processo.stdout.readline() == "pronto\n"
    os.kill(processo.pid, signal.SIGTERM)
    saiu, erro = processo.communicate(timeout=20)
    assert (processo.returncode, saiu) == (143, "arrumei\n") and "Traceback" not in erro


@pytest.mark.parametrize(
    "onde",
    [
        "numa conta em C",
        pytest.param("na arrumação", marks=pytest.mark.longo),
        pytest.param("onde ninguém a leva adiante", marks=pytest.mark.longo),
    ],
)
def test_quem_nao_acaba_tem_hora(onde, tmp_path):
    """A exceção só nasce entre duas linhas de Python, e pode ser engolida: há um prazo assim mesmo."""
    programa = DORME.format(no_fim="time.sleep(60)" if onde == "na arrumação" else "pass")
    em_c = "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"  # uma hora sem ouvir ninguém
    if onde == "numa conta em C":
        programa = programa.replace("time.sleep(60)", em_c)
    elif onde != "na arrumação":
        programa = programa.replace(
            "        time.sleep(60)\n",
            "        for _ in range(60):\n            try:\n                time.sleep(1)\n"
            "            except BaseException:\n                pass\n",
        )
    programa = programa.replace("import sinais\n", "import sinais\nsinais.PACIENCIA = 0.2\n")
    processo, _ = lancar(tmp_path, "-c", programa)
    assert processo.stdout.readline() == "pronto\n"
    os.kill(processo.pid, signal.SIGTERM)
    _, erro = processo.communicate(timeout=20)
    assert processo.returncode == 143 and erro.count("Nenhum arquivo ficou pela metade") == 1


def test_com_nohup_o_sighup_nao_para_ninguem(tmp_path):
    processo, _ = lancar(
        tmp_path, "-c", DORME.format(no_fim="pass").replace("sleep(60)", "sleep(0.3)"),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    assert processo.stdout.readline() == "pronto\n"
    os.kill(processo.pid, signal.SIGHUP)
    assert processo.wait(20) == 0


@pytest.mark.longo
@pytest.mark.parametrize("qual", ["lição", "tudo"])
def test_o_terminal_que_fecha(qual, tmp_path):
    """A janela fechada no meio da lição: o sistema manda SIGHUP, e escrever na tela passa a falhar."""
    pexpect = pytest.importorskip("pexpect")
    marca = f"marca-{os.urandom(8).hex()}"
    env = os.environ | {"MARCA": marca, "LAB_SAIDAS": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    filho = pexpect.spawn(
        sys.executable,
        COMANDOS[qual](tmp_path),
        env=env,
        cwd=str(RAIZ),
        encoding="utf-8",
        timeout=60,
    )
    try:
        filho.expect("Repare")
        os.close(filho.fileno())
        _, estado = os.waitpid(filho.pid, 0)
        assert os.waitstatus_to_exitcode(estado) == 129
        assert ninguem(marca) == []
        inteiros(tmp_path)
    finally:
        for pid in vivos(marca):
            os.kill(pid, signal.SIGKILL)
        filho.closed = True
