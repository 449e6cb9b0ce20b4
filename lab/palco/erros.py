"""Os erros na tela: o que houve, por quê, o que digitar agora; e o código de saída de cada um."""

import errno
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from nucleo.base import caminhos
from nucleo.base.arquivos import legivel
from nucleo.base.erros import ErroDoUsuario
from palco import sinais
from palco.tela import ler_os_acentos, preparar_fluxos


def explicar(erro: BaseException) -> int | None:
    """Mostra o erro que não é defeito nosso e devolve o código de saída; None se for defeito."""
    if isinstance(erro, ModuleNotFoundError):
        erro = falta_pacote(erro.name or "") or erro
    if isinstance(erro, ErroDoUsuario):
        mostrar_erro(erro)
        return 2
    if isinstance(erro, OSError) and erro.errno == errno.EIO and erro.filename is None:
        # O terminal se fechou, e a escrita soube antes do sinal (que é o 1 em todo Unix).
        erro = sinais.Encerrado(1)
    if isinstance(erro, KeyboardInterrupt):
        sinais.dizer(erro)
        return sinais.codigo_de(erro)
    if isinstance(erro, OSError) and erro.errno in (28, 122) and erro.filename is None:
        # A própria tela era um arquivo, num disco cheio.
        mostrar_erro(
            ErroDoUsuario(
                "Não consegui escrever a saída da tela.",
                "O destino (um arquivo?) está num disco cheio.",
                "Libere espaço, ou mande a saída para outro lugar.",
            )
        )
        sinais.calar(sys.stdout)
        return 2
    fechado = os.name == "nt" and type(erro) is OSError and erro.errno == errno.EINVAL
    if isinstance(erro, BrokenPipeError) or (fechado and erro.filename is None):
        # Quem lia (head, less) foi embora: não há a quem reclamar. (No Windows a escrita num pipe
        # fechado é um “argumento inválido”.)
        sinais.calar(sys.stdout)
        return 141
    return None


def falta_pacote(modulo: str) -> ErroDoUsuario | None:
    """O erro que diz como ter o `modulo`; None se não é de um pacote que nós pedimos.

    (Um módulo nosso que sumiu é defeito, com traceback.)
    """
    pedidos = (caminhos.RAIZ / "requirements.txt").read_text(encoding="utf-8").replace("_", "-")
    raiz = modulo.split(".")[0]
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
    sys.stderr.write(f"\n{em_texto(erro)}\n")


def em_texto(erro: ErroDoUsuario) -> str:
    """As três partes do erro, uma por linha."""
    fazer = com_este_python(erro.o_que_fazer)
    return legivel(f"✗ {erro.o_que}\n  Por quê: {erro.por_que}\n  Agora:   {fazer}")


# Num caderno, e no %run do IPython, é isto que aparece no lugar do rastro; o “rodar tudo” para na célula
# que errou, porque as seguintes só diriam que falta um nome.
ErroDoUsuario._render_traceback_ = lambda erro: [em_texto(erro)]


def com_este_python(texto: str) -> str:
    """Troca o "python" dos comandos pelo que está rodando: o que se copia da tela funciona.

    No ambiente do laboratório, visto da raiz, vira .venv/bin/python (ou .venv\\Scripts\\python).
    """
    pasta = Path(sys.executable).parent
    # Resolvidas: a mesma pasta pode vir por um atalho ou, no Windows, por outra letra de disco.
    if pasta.parent.resolve() == (caminhos.RAIZ / ".venv").resolve():
        nome = os.path.join(".venv", pasta.name, Path(sys.executable).name).removesuffix(".exe")
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
    ler_os_acentos()
    preparar_fluxos()
    sinais.ouvir()
    try:
        codigo = int(funcao() or 0)
        sys.stdout.flush()  # se a tela falhar, que seja aqui, onde se explica
        return codigo
    except BaseException as erro:
        sinais.acabar()
        codigo = explicar(erro)
        if codigo is None:
            raise
        return codigo
    finally:
        sinais.soltar()
