"""O fim pedido de fora: SIGTERM e SIGHUP (o terminal que se fecha) acabam como um Ctrl-C.

O pedido vira uma exceção na linha que está rodando, e segue o caminho do Ctrl-C: o que estava sendo
escrito se desfaz, os processos abertos se encerram. Quem não chega ao fim a tempo (está dentro de uma
conta em C, que não ouve) é encerrado assim mesmo; os filhos morrem junto (`nucleo.base.processos`).
"""

import contextlib
import os
import signal
import sys
import threading
import time

from nucleo.base import processos

# O Windows não tem SIGHUP; lá o Ctrl-Break é o SIGBREAK.
PEDIDOS = tuple(
    getattr(signal, nome) for nome in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, nome)
)
PACIENCIA = 1.5  # segundos que um programa tem para acabar por bem depois do pedido
NADA_PELA_METADE = "Nenhum arquivo ficou pela metade; rode de novo quando quiser."


class Encerrado(KeyboardInterrupt):
    """Alguém pediu, de fora, que o programa acabe. `numero` é o do sinal."""

    def __init__(self, numero: int):
        super().__init__()
        self.numero = numero


def codigo_de(fim: KeyboardInterrupt) -> int:
    """O código de saída que o shell espera: 130 do Ctrl-C, 143 do SIGTERM, 129 do SIGHUP."""
    return 128 + getattr(fim, "numero", signal.SIGINT)


def dizer(fim: KeyboardInterrupt) -> None:
    """A última linha na tela, se ainda há tela."""
    for fluxo, texto in ((sys.stdout, ""), (sys.stderr, _frase(fim))):
        try:
            fluxo.write(texto)
            fluxo.flush()
        except OSError:
            calar(fluxo)
    _dito.set()


def calar(fluxo) -> None:
    """Quem lia o fluxo foi embora: o que ainda estiver por escrever vai para o nada."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fluxo.fileno())


def _frase(fim: KeyboardInterrupt) -> str:
    numero = getattr(fim, "numero", signal.SIGINT)
    o_que = {
        signal.SIGINT: "Interrompido.",
        getattr(signal, "SIGHUP", None): "Encerrado: o terminal se fechou.",
    }.get(numero, f"Encerrado por um pedido de fora ({signal.Signals(numero).name}).")
    return f"\n{o_que} {NADA_PELA_METADE}\n"


class _Ouvinte:
    """Quem atende os sinais: o primeiro interrompe; os seguintes não atrapalham a arrumação."""

    def __init__(self):
        self.acabando = False

    def __call__(self, numero, _quadro):
        # Um terminal que se fecha costuma mandar dois SIGHUP: o do shell e o do sistema.
        if not self.acabando:
            self.acabando = True
            raise Encerrado(numero)


def ouvir() -> None:
    """Liga tudo isto, uma vez, no começo do programa; e os filhos dele morrem com ele.

    Quem já escolheu o que fazer com um sinal (o `nohup`, que ignora o SIGHUP) continua mandando.
    """
    processos.seguir_o_pai()
    processos.prender_os_filhos()
    # Num notebook quem manda é o kernel; e fora da thread principal o Python não deixa.
    if "ipykernel" in sys.modules or threading.current_thread() is not threading.main_thread():
        return
    ouvinte = _Ouvinte()
    livres = [s for s in PEDIDOS if signal.getsignal(s) is signal.SIG_DFL]
    for sinal in livres:
        signal.signal(sinal, ouvinte)
    if livres and os.name != "nt":
        _por_vigia()


def acabar() -> None:
    """O programa está acabando, por bem ou por mal: daqui em diante ninguém interrompe a arrumação."""
    for ouvinte in map(signal.getsignal, PEDIDOS):
        if isinstance(ouvinte, _Ouvinte):
            ouvinte.acabando = True
            with contextlib.suppress(ValueError):  # fora da thread principal
                if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                    signal.signal(signal.SIGINT, signal.SIG_IGN)


def soltar() -> None:
    """Está tudo guardado: daqui em diante os sinais encerram na hora, como em qualquer programa."""
    for sinal in PEDIDOS:
        if isinstance(signal.getsignal(sinal), _Ouvinte):
            signal.signal(sinal, signal.SIG_DFL)


# --- quem não ouve --------------------------------------------------------------------------

_dito = threading.Event()  # a última linha já foi dita
_cano: list[int] = []  # a ponta em que o sistema escreve o número do sinal


def _por_vigia() -> None:
    # O sinal só vira exceção entre duas linhas de Python. O sistema escreve o número dele neste
    # cano na mesma hora, e uma thread conta o tempo.
    if not _cano:
        leitura, escrita = os.pipe()
        os.set_blocking(escrita, False)
        _cano.append(escrita)
        threading.Thread(target=_vigiar, args=(leitura,), daemon=True).start()
    signal.set_wakeup_fd(_cano[0], warn_on_full_buffer=False)


def _vigiar(leitura: int) -> None:
    while byte := os.read(leitura, 1):
        if byte[0] in PEDIDOS:
            time.sleep(PACIENCIA)
            with contextlib.suppress(OSError, AttributeError):
                frase = "" if _dito.is_set() else _frase(Encerrado(byte[0]))
                os.write(2, frase.encode(sys.stderr.encoding, "replace"))
            os._exit(128 + byte[0])
