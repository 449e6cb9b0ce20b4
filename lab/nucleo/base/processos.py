"""Processos que acabam juntos: o filho não sobrevive ao pai, nem quando o pai morre à força.

No Linux e no macOS, um programa nosso que outro nosso lança segue a vida dele (`filho_meu` de um lado,
`seguir_o_pai` do outro). No Windows um job prende tudo o que este processo abrir, netos inclusive
(`prender_os_filhos`). Programas de quem não se confia têm um vigia: `nucleo.exercicios.vigia`.
"""

import ctypes
import os
import signal
import struct
import sys
import threading
import time

PAI = "LAB_PAI"  # o pid de quem lançou este programa, e de quem ele não deve sobreviver
OLHAR = 0.2  # segundos entre duas olhadas, onde o sistema não avisa
_MATAR_AO_FECHAR = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
_presos: list[int] = []  # o job deste processo; aberto até o fim


def filho_meu() -> dict[str, str]:
    """A variável de ambiente que faz um programa do laboratório acabar com este processo."""
    return {PAI: str(os.getpid())}


def seguir_o_pai() -> None:
    """Se quem lançou este programa pediu (`filho_meu`), este acaba com ele."""
    # Tirada do ambiente: os filhos deste têm outro pai.
    pai = os.environ.pop(PAI, "")
    if pai.isdecimal() and os.name != "nt":
        morrer_com(int(pai))


def morrer_com(pai: int) -> None:
    """Faz este processo acabar quando o pai, de número `pai`, acabar. (Linux e macOS.)"""
    if sys.platform.startswith("linux"):
        # PR_SET_PDEATHSIG: avisa quando acaba a thread que nos criou, e é sempre a principal.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_esperar_o_fim_de, args=(pai,), daemon=True).start()


def _esperar_o_fim_de(pai: int) -> None:
    # O pai que já se foi não avisa mais; e o macOS nunca avisa.
    while os.getppid() == pai:
        time.sleep(OLHAR)
    os._exit(1)


def prender_os_filhos(kernel32=None) -> bool:
    """Windows: o que este processo abrir acaba com ele, netos inclusive. True se o sistema aceitou.

    `kernel32` é a biblioteca do sistema (nos testes, uma imitação).
    """
    if _presos:
        return True
    kernel32 = kernel32 or getattr(getattr(ctypes, "windll", None), "kernel32", None)
    if kernel32 is None:  # só o Windows a tem
        return False
    # Um HANDLE tem 64 bits: sem isto o ctypes o cortaria em 32.
    kernel32.CreateJobObjectW.restype = ctypes.c_void_p
    job = kernel32.CreateJobObjectW(None, None)
    if not job:
        return False
    # JOBOBJECT_EXTENDED_LIMIT_INFORMATION, em 64 bits: 144 bytes, e LimitFlags a partir do 16.
    limites = ctypes.create_string_buffer(144)
    struct.pack_into("<I", limites, 16, _MATAR_AO_FECHAR)
    este = ctypes.c_void_p(-1)  # o que GetCurrentProcess devolve
    feito = kernel32.SetInformationJobObject(ctypes.c_void_p(job), 9, limites, len(limites))
    # O sistema fecha o job quando este processo acabar, de que jeito for, e mata quem estiver nele.
    if not feito or not kernel32.AssignProcessToJobObject(ctypes.c_void_p(job), este):
        kernel32.CloseHandle(ctypes.c_void_p(job))
        return False
    _presos.append(job)
    return True
