"""Uma execução de cada vez numa pasta: a trava que some sozinha com quem a tinha.

No Linux e no macOS tranca-se a própria pasta, e nenhum arquivo aparece nela. No Windows, que não
tranca pastas, a biblioteca filelock usa um arquivo `.trava`, apagado na saída. Nos dois, se o
processo morre (até por kill −9), o sistema solta a trava.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PASSO = 0.05  # segundos entre uma olhada e outra


class Ocupada(Exception):
    """Outra execução está com a pasta, e a paciência acabou."""


def _nada() -> None:
    pass


@contextlib.contextmanager
def so_um(
    pasta: Path, paciencia: float | None = None, ao_esperar: Callable[[], object] = _nada
) -> Iterator[bool]:
    """Contexto em que só este processo mexe na pasta (que precisa existir).

    `paciencia`: segundos de espera (None: o que for preciso). `ao_esperar` é chamada uma vez, se
    for preciso esperar. Dá True se a pasta ficou mesmo trancada, e False nos discos de rede que não
    sabem trancar: lá se segue sem trava. Erros: `Ocupada`; `OSError` se a pasta não abrir.
    """
    tentar, soltar = _no_windows(pasta) if os.name == "nt" else _no_unix(pasta)
    inicio, avisou = time.monotonic(), False
    try:
        while (trancada := tentar()) is None:
            if paciencia is not None and time.monotonic() - inicio >= paciencia:
                raise Ocupada(str(pasta))
            if not avisou:
                ao_esperar()
                avisou = True
            time.sleep(_PASSO)
        yield trancada
    finally:
        soltar()


def _no_unix(pasta: Path) -> tuple[Callable[[], bool | None], Callable[[], None]]:
    import fcntl

    aberta = os.open(pasta, os.O_RDONLY)

    def tentar() -> bool | None:
        try:
            fcntl.flock(aberta, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        except OSError:  # alguns discos de rede não trancam pastas
            return False
        return True

    return tentar, lambda: os.close(aberta)  # fechar solta


def _no_windows(pasta: Path) -> tuple[Callable[[], bool | None], Callable[[], None]]:
    import filelock

    trava = filelock.FileLock(pasta / ".trava")

    def tentar() -> bool | None:
        try:
            trava.acquire(timeout=0)
        except filelock.Timeout:
            return None
        except NotImplementedError:
            return False
        return True

    def soltar() -> None:
        trava.release()
        with contextlib.suppress(OSError):  # se outro a abriu, quem apaga é ele
            (pasta / ".trava").unlink()

    return tentar, soltar
