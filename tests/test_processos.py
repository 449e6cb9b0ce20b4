"""O job do Windows, com um kernel32 de mentira; e o filho nosso que acaba com o pai."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

import pytest

from conftest import LAB
from nucleo.base import processos

pytestmark = pytest.mark.unit


class Kernel32:
    """Anota as chamadas, e recusa a que se pedir. Um HANDLE de mais de 32 bits, como os de lá podem ser."""

    JOB = 0x1_2345_6789

    def __init__(self, recusa: str = ""):
        self.feitas: list = []
        for nome in ("CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject", "CloseHandle"):  # fmt: skip
            setattr(self, nome, self._chamada(nome, nome != recusa))

    def _chamada(self, nome, da_certo):
        def chamada(*args):
            self.feitas.append((nome, *(getattr(a, "value", a) for a in args)))
            if nome == "SetInformationJobObject":
                self.limites = bytes(args[2].raw)
            return da_certo and (self.JOB if nome == "CreateJobObjectW" else 1)

        return chamada


@pytest.fixture(autouse=True)
def nenhum_preso(monkeypatch):
    monkeypatch.setattr(processos, "_presos", [])


def test_o_job_mata_quem_sobrar_e_fica_aberto():
    k = Kernel32()
    assert processos.prender_os_filhos(k)
    assert [f[0] for f in k.feitas] == [
        "CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject",
    ]  # fmt: skip
    # winnt.h: JobObjectExtendedLimitInformation é a classe 9, de 144 bytes em 64 bits, e LimitFlags vem
    # depois de dois LARGE_INTEGER; 0x2000 é JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, e nada mais se limita.
    _, job, classe, _, tamanho = k.feitas[1]
    assert (job, classe, tamanho) == (Kernel32.JOB, 9, 144)
    assert k.limites == bytes(16) + (0x2000).to_bytes(4, "little") + bytes(124)
    # O próprio processo (−1, o que GetCurrentProcess devolve) entra: os filhos nascem lá dentro.
    assert k.feitas[2][1:] == (Kernel32.JOB, 2**64 - 1)
    assert k.CreateJobObjectW.restype is ctypes.c_void_p
    # Uma segunda Aula no mesmo processo não abre outro.
    assert processos.prender_os_filhos(k) and len(k.feitas) == 3


@pytest.mark.parametrize(
    "recusa", ["CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"]
)
def test_se_o_sistema_recusa_segue_se_sem_o_job(recusa):
    k = Kernel32(recusa)
    assert not processos.prender_os_filhos(k)
    fechou = [f[1] for f in k.feitas if f[0] == "CloseHandle"]
    assert fechou == ([] if recusa == "CreateJobObjectW" else [Kernel32.JOB])


PAI = """
import os, subprocess, sys
from nucleo.base.processos import filho_meu
p = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=os.environ | filho_meu(), stdout=subprocess.PIPE)
print(p.pid, p.stdout.readline().decode().strip(), flush=True)
sys.stdin.read()
"""
FILHO = """
import os, time
from nucleo.base import processos
{sem_prctl}
processos.seguir_o_pai()
print("LAB_PAI" in os.environ, flush=True)
time.sleep(300)
"""


@pytest.mark.skipif(os.name == "nt", reason="no Windows é o job")
@pytest.mark.parametrize(
    "sem_prctl", ["", "processos.sys = type('s', (), {'platform': 'darwin'})"], ids=["linux", "mac"]
)
def test_o_filho_acaba_com_o_pai(sem_prctl):
    """Também onde o sistema não avisa (macOS): o filho olha."""
    env = os.environ | {"PYTHONPATH": str(LAB)}
    comando = [sys.executable, "-c", PAI, FILHO.format(sem_prctl=sem_prctl)]
    cano = subprocess.PIPE
    pai = subprocess.Popen(comando, env=env, stdin=cano, stdout=cano, stderr=cano)
    pid, no_ambiente = pai.stdout.readline().decode().split()
    assert no_ambiente == "False"  # os netos têm outro pai
    pai.send_signal(signal.SIGKILL)
    try:
        pai.communicate(timeout=20)  # os dois dividem o stderr: ele se fecha quando acabam os dois
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
