"""Quem morre leva consigo os programas que abriu, seja qual for a morte: um kill −9, um terminal fechado.

No Unix, um vigia: um processo mínimo que recebe por um cano o pid de cada filho. Quando o cano fecha, e o
sistema o fecha em qualquer morte, ele mata o grupo dos que ficaram e quem levar a marca deles no ambiente,
mesmo fora do grupo. No Windows, um objeto de trabalho que o sistema encerra com o dono.

Este arquivo é também o programa do vigia: só a biblioteca padrão.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

_trava = threading.Lock()
_vigia = _trabalho = None


def vigiar(processo: subprocess.Popen, marca: str = "", pasta: str = "") -> None:
    """Daqui em diante `processo` não sobrevive a este; nem quem tiver `CAIXA=marca`, nem a `pasta`.

    Para o grupo inteiro morrer, ele precisa ser o dono do grupo (`start_new_session`).
    """
    if sys.platform == "win32":
        _por_no_trabalho(int(processo._handle))
    else:
        _dizer({"pid": processo.pid, "marca": marca, "pasta": pasta})


def esquecer(processo: subprocess.Popen) -> None:
    """O processo acabou, e o pid dele pode ser de outro: o vigia o larga."""
    if sys.platform != "win32":
        _dizer({"pid": processo.pid, "acabou": True})


def proprios() -> set[int]:
    """O pid do vigia, se há um: quem varre órfãos não o leva."""
    return {_vigia.pid} if _vigia else set()


def _dizer(dado: dict) -> None:
    global _vigia
    with _trava, contextlib.suppress(OSError):  # se alguém matou o vigia, segue-se sem ele
        if _vigia is None:
            # Noutra sessão: o Ctrl-C e o terminal que fecha não são com ele.
            _vigia = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            atexit.register(_vigia.communicate)
        _vigia.stdin.write(json.dumps(dado).encode() + b"\n")
        _vigia.stdin.flush()


# --- Windows -------------------------------------------------------------------------------------


def _por_no_trabalho(processo: int) -> None:
    """Põe o processo num objeto de trabalho que o sistema mata quando este fechar. (Só no Windows.)"""
    global _trabalho
    import ctypes

    k = ctypes.windll.kernel32
    with _trava:
        if _trabalho is None:
            k.CreateJobObjectW.restype = ctypes.c_void_p
            _trabalho = ctypes.c_void_p(k.CreateJobObjectW(None, None))
            # JOBOBJECT_EXTENDED_LIMIT_INFORMATION: LimitFlags vem depois de dois inteiros de 8 bytes, e o
            # resto fica em zero. 144 bytes com ponteiros de 8; 112 com os de 4.
            limites = bytearray(144 if ctypes.sizeof(ctypes.c_void_p) == 8 else 112)
            limites[16:20] = (0x2000).to_bytes(4, "little")  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
            bruto = (ctypes.c_char * len(limites)).from_buffer(limites)
            k.SetInformationJobObject(_trabalho, 9, bruto, len(limites))
        k.AssignProcessToJobObject(_trabalho, ctypes.c_void_p(processo))


# --- quem ainda está vivo ----------------------------------------------------------------------


def processos() -> list[tuple[int, int]]:
    """[(pid, pid do pai)] de todos os processos que se podem ver; vazia onde não há /proc."""
    achados = []
    for pasta in Path("/proc").glob("[0-9]*") if Path("/proc/self/stat").exists() else []:
        with contextlib.suppress(OSError, ValueError, IndexError):
            # O nome do programa vem entre parênteses e pode ter espaços: conta-se do último.
            texto = (pasta / "stat").read_text(encoding="utf-8", errors="replace")
            achados.append((int(pasta.name), int(texto.rpartition(")")[2].split()[1])))
    return achados


def matar(pid: int) -> bool:
    """SIGKILL, e o enterro se for filho. False se não havia, ou não se deixa."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return True


def varrer(marca: str) -> None:
    """Mata quem carrega `CAIXA=marca` no ambiente, mesmo fora do grupo. (Onde há /proc.)"""
    procurada = f"CAIXA={marca}".encode()
    for _ in range(10):
        achou = False
        for pid, _pai in processos():
            with contextlib.suppress(OSError):
                if procurada in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    achou |= matar(pid)
        if not achou:
            return
        time.sleep(0.02)


# --- o programa do vigia -------------------------------------------------------------------------


def _ficar_de_vigia() -> None:
    for nome in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, nome), signal.SIG_IGN)
    vivos = {}
    for linha in sys.stdin.buffer:  # acaba quando quem nos abriu fecha o cano, ou morre
        with contextlib.suppress(ValueError):
            dado = json.loads(linha)
            if dado.pop("acabou", False):
                vivos.pop(dado["pid"], None)
            else:
                vivos[dado["pid"]] = dado
    for pid, dado in vivos.items():
        with contextlib.suppress(OSError):
            # Quem não é dono de um grupo divide o do morto: só ele é nosso.
            os.killpg(pid, signal.SIGKILL) if os.getpgid(pid) == pid else os.kill(
                pid, signal.SIGKILL
            )
        if dado["marca"]:
            varrer(dado["marca"])
        if dado["pasta"]:
            shutil.rmtree(dado["pasta"], ignore_errors=True)


if __name__ == "__main__":
    _ficar_de_vigia()
