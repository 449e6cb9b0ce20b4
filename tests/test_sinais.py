"""SIGTERM, SIGHUP, SIGKILL e o terminal que fecha: nada fica rodando, nada fica pela metade.

Cada programa roda com uma marca no ambiente, que os filhos e os netos herdam (e que a caixa da correção
leva com outro nome): quem ainda a tiver dois segundos depois do sinal é um processo esquecido.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conftest import LAB, RAIZ

pytestmark = [
    pytest.mark.cli,
    pytest.mark.skipif(
        not Path("/proc/self/environ").exists(), reason="procura processos em /proc"
    ),
]
PRAZO = 2.0  # segundos até não haver mais ninguém


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
CODIGOS = {"SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -signal.SIGKILL}


def matar_no_meio(tmp_path: Path, qual: str, sinal: str, espera: float) -> bool:
    """Um sinal depois de `espera` segundos; True se o programa ainda rodava. Confere o que sobra."""
    tmp_path.mkdir(parents=True)
    processo, marca = lancar(tmp_path, *COMANDOS[qual](tmp_path))
    leitor = threading.Thread(target=processo.communicate, daemon=True)
    leitor.start()
    time.sleep(espera)
    rodava = processo.poll() is None
    os.kill(processo.pid, getattr(signal, sinal))
    try:
        codigo = processo.wait(PRAZO + 8)
        sobra = ninguem(marca)
        assert not sobra, [Path(f"/proc/{p}/cmdline").read_bytes() for p in sobra if p]
    finally:
        for pid in vivos(marca):
            os.kill(pid, signal.SIGKILL)
    if rodava and espera > 1:  # antes disso o Python ainda pode estar subindo, sem quem o atenda
        assert codigo in (CODIGOS[sinal], 0, 1), codigo
    inteiros(tmp_path / "saidas")
    return rodava


# Quanto cada programa demora sem ninguém o parar, numa máquina comum: só reparte os instantes. Quem acaba
# antes do sinal não conta como morte, mas também não pode deixar ninguém.
DURACAO = {"lição": 6.0, "tudo": 9.0, "corrigir": 6.0}
QUANTOS = int(os.environ.get("INSTANTES", "0"))  # por sinal; 0: dez por programa, alternados


@pytest.mark.longo
@pytest.mark.parametrize("qual", COMANDOS)
def test_dez_instantes(qual, tmp_path):
    sinais = list(CODIGOS)
    if QUANTOS:
        vezes = [(s, (i + 0.5) / QUANTOS) for s in sinais for i in range(QUANTOS)]
    else:
        vezes = [(sinais[i % 3], (i + 0.5) / 10) for i in range(10)]
    rodavam = [
        matar_no_meio(tmp_path / str(n), qual, sinal, fracao * DURACAO[qual])
        for n, (sinal, fracao) in enumerate(vezes)
    ]
    assert sum(rodavam) >= len(vezes) // 2, "quase todos acabaram antes do sinal"


@pytest.mark.parametrize("sinal", ["SIGTERM", "SIGKILL"])
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


SEM_PAREDES = """
import sys, time
from nucleo.exercicios import caixa, registro
c = caixa.Caixa.fechada(sem=("espacos", "landlock", "seccomp"))
tarefa = next(t for t in registro.tarefas(2) if t.id == "cosseno")
print("vai", flush=True)
list(c.vereditos([(tarefa, open(sys.argv[1], encoding="utf-8").read())], 0))
"""


def test_sem_parede_nenhuma_o_vigia_basta(tmp_path):
    """macOS e Linux antigos: o neto noutra sessão, que se soltou do grupo, morre pela marca."""
    (tmp_path / "p.py").write_text(MA_FE["neto"], "utf-8")
    processo, marca = lancar(tmp_path, "-c", SEM_PAREDES, str(tmp_path / "p.py"))
    try:
        assert processo.stdout.readline() == "vai\n"
        fim = time.monotonic() + 60
        while not list((tmp_path / marca).glob("caixa-*/neto")):
            assert time.monotonic() < fim and processo.poll() is None, processo.communicate()
            time.sleep(0.02)
        os.kill(processo.pid, signal.SIGKILL)
        processo.communicate()
        assert ninguem(marca) == []
        assert not list((tmp_path / marca).glob("caixa-*"))  # a pasta temporária também se foi
    finally:
        for pid in vivos(marca):
            os.kill(pid, signal.SIGKILL)


DORME = """
import sys, time
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


def test_uma_arrumacao_que_nao_acaba_tem_hora(tmp_path):
    processo, _ = lancar(tmp_path, "-c", DORME.format(no_fim="time.sleep(60)"))
    assert processo.stdout.readline() == "pronto\n"
    inicio = time.monotonic()
    os.kill(processo.pid, signal.SIGTERM)
    processo.communicate(timeout=20)
    assert processo.returncode == 143 and time.monotonic() - inicio < 20


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
        assert ninguem(marca) == []
        inteiros(tmp_path)
    finally:
        for pid in vivos(marca):
            os.kill(pid, signal.SIGKILL)
        filho.closed = True
