"""Os erros na tela: o que houve, por quê, o que digitar agora; e o código de saída de cada um."""

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from nucleo.base import caminhos
from nucleo.base.arquivos import legivel
from nucleo.base.erros import ErroDoUsuario
from palco.tela import preparar_fluxos


class Encerrado(KeyboardInterrupt):
    """O sistema mandou parar (SIGTERM, terminal fechado): sai-se como num Ctrl-C, e mais depressa."""

    def __init__(self, sinal: int):
        super().__init__(sinal)
        self.sinal = sinal


PRAZO = 1.5  # segundos para arrumar a casa depois de um desses


def atender_sinais() -> None:
    """SIGTERM e SIGHUP (no Windows, SIGBREAK) viram `Encerrado`. Só vale na thread principal."""
    if threading.current_thread() is not threading.main_thread():
        return
    for nome in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        sinal = getattr(signal, nome, None)
        # Um sinal já ignorado é de quem nos chamou com nohup: quer que a gente siga.
        if sinal is not None and signal.getsignal(sinal) == signal.SIG_DFL:
            signal.signal(sinal, _encerrar)


def _encerrar(sinal: int, _quadro) -> None:
    signal.signal(sinal, signal.SIG_IGN)
    # A exceção pode cair onde ninguém a leva adiante, ou a arrumação demorar: há hora para acabar.
    # O que se grava troca de nome inteiro, e por isso parar em qualquer ponto não estraga nada.
    relogio = threading.Timer(PRAZO, os._exit, [128 + sinal])
    relogio.daemon = True
    relogio.start()
    if sinal == getattr(signal, "SIGHUP", None):
        _calar_terminal()
    raise Encerrado(sinal)


def _calar_terminal() -> None:
    # O terminal foi embora: escrever nele falharia no meio da despedida.
    for n in (1, 2):
        with contextlib.suppress(OSError):
            if os.isatty(n):
                os.dup2(os.open(os.devnull, os.O_WRONLY), n)


def codigo_da_parada(parada: BaseException) -> int:
    """O código de saída de quem parou por um sinal: 130 no Ctrl-C, 143 no SIGTERM, 129 no SIGHUP."""
    return 128 + getattr(parada, "sinal", 2)


def explicar(erro: BaseException) -> int | None:
    """Mostra o erro que não é defeito nosso e devolve o código de saída; None se for defeito."""
    if isinstance(erro, ModuleNotFoundError):
        erro = _falta_pacote(erro) or erro
    if isinstance(erro, ErroDoUsuario):
        mostrar_erro(erro)
        return 2
    if isinstance(erro, KeyboardInterrupt):
        quem = "Encerrado pelo sistema" if isinstance(erro, Encerrado) else "Interrompido"
        with contextlib.suppress(OSError):
            sys.stderr.write(
                f"\n{quem}. Nenhum arquivo ficou pela metade; rode de novo quando quiser.\n"
            )
        return codigo_da_parada(erro)
    if isinstance(erro, OSError) and erro.errno == 5 and erro.filename is None:
        _calar_terminal()  # o terminal fechou, e ninguém avisou
        return 129
    if isinstance(erro, OSError) and erro.errno in (28, 122) and erro.filename is None:
        # A própria tela era um arquivo, num disco cheio.
        mostrar_erro(
            ErroDoUsuario(
                "Não consegui escrever a saída da tela.",
                "O destino (um arquivo?) está num disco cheio.",
                "Libere espaço, ou mande a saída para outro lugar.",
            )
        )
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return 2
    if isinstance(erro, BrokenPipeError):
        # Quem lia (head, less) foi embora: não há a quem reclamar.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return None


def _falta_pacote(erro: ModuleNotFoundError) -> ErroDoUsuario | None:
    # Só os pacotes que nós pedimos: um módulo nosso que sumiu é defeito, com traceback.
    pedidos = (caminhos.RAIZ / "requirements.txt").read_text(encoding="utf-8").replace("_", "-")
    raiz = (erro.name or "").split(".")[0]
    # O módulo e o pacote têm nomes diferentes.
    nomes = {"sklearn": "scikit-learn", "markdown_it": "markdown-it-py"}
    raiz = nomes.get(raiz, raiz.replace("_", "-"))
    if not re.search(rf"^{re.escape(raiz)}\b", pedidos, re.M | re.I) or not raiz:
        return None
    fazer = "Rode:  python lab/00_preparar.py   que instala tudo e diz o próximo comando"
    venv = caminhos.RAIZ / ".venv"
    for python in (venv / "bin" / "python", venv / "Scripts" / "python.exe"):
        if python.is_file() and python != Path(sys.executable):
            fazer = f"Use o Python do laboratório:  {python.relative_to(caminhos.RAIZ)} lab/…"
    return ErroDoUsuario(
        f"Falta o pacote {raiz}.",
        f"Este Python ({sys.executable}) não tem o que o laboratório usa.",
        fazer,
    )


def mostrar_erro(erro: ErroDoUsuario) -> None:
    """As três partes do erro em stderr: o que houve, por quê, o que digitar agora."""
    preparar_fluxos()
    fazer = com_este_python(erro.o_que_fazer)
    texto = f"\n✗ {erro.o_que}\n  Por quê: {erro.por_que}\n  Agora:   {fazer}\n"
    sys.stderr.write(legivel(texto))


def com_este_python(texto: str) -> str:
    """Troca o "python" dos comandos pelo que está rodando: o que se copia da tela funciona.

    No ambiente do laboratório, visto da raiz, vira .venv/bin/python (ou .venv\\Scripts\\python).
    """
    atual = Path(sys.executable)
    if caminhos.RAIZ / ".venv" in atual.parents:
        nome = str(atual.relative_to(caminhos.RAIZ)).removesuffix(".exe")
    elif sys.prefix != sys.base_prefix:
        nome = "python"  # um ambiente que quem o ligou chama assim
    else:
        nome = "py" if sys.platform == "win32" else "python3"

    def trocar(achado: re.Match) -> str:
        resto = achado[1].replace("/", "\\") if sys.platform == "win32" else achado[1]
        return f"{nome} {resto}"

    return re.sub(r"(?<![\w./\\])python ((?:lab|bench)[/\\][\w/\\]*|-m pip)", trocar, texto)


def rodar_com_erros_gentis(funcao: Callable[[], int | None]) -> int:
    """Roda `funcao` e devolve o código de saída, com as mesmas regras da `Aula`."""
    preparar_fluxos()
    atender_sinais()
    try:
        return int(funcao() or 0)
    except BaseException as erro:
        codigo = explicar(erro)
        if codigo is None:
            raise
        return codigo
