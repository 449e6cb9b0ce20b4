"""O que se escreve na tela: parágrafos que cabem em 60 colunas, títulos, barra de onde se está."""

import os
import shutil
import sys

from rich.console import Console
from rich.text import Text

from palco.erros import com_este_python
from palco.tela import marcar

# Sem terminal (arquivo, pipe) o rich suporia 80 colunas e cortaria as barras; 78 cabe em qualquer papel.
LARGURA = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else 78
tela = Console(width=LARGURA, highlight=False)


def diga(texto: str, estilo: str = "") -> None:
    """Um parágrafo, com **negrito** e `código`, quebrado na largura da tela."""
    tela.print(marcar(texto), style=estilo or None)


def item(rotulo: str, texto: str, estilo: str = "bold") -> None:
    """Uma linha “rótulo  texto”, com o texto recuado quando quebra. Nada do texto é marcação."""
    largura = max(20, tela.width - 14)
    linhas = []
    for paragrafo in texto.splitlines() or [""]:
        linhas += Text(paragrafo).wrap(tela, largura) or [Text("")]
    for linha in linhas:
        tela.print(Text.assemble((f"{rotulo:<13} ", estilo), linha), soft_wrap=True)
        rotulo = ""


def titulo(texto: str) -> None:
    """Uma linha em branco e um título com régua."""
    tela.print()
    tela.rule(Text(texto, style="bold cyan"), align="left")


def barra(feito: int, total: int, o_que: str) -> None:
    """Quanto já se andou: ━━━━━────  5 de 18 previsões."""
    largura = min(30, max(10, (shutil.get_terminal_size((78, 24)).columns - 30)))
    cheio = round(largura * feito / total)
    traco = ("━" * cheio, "green"), ("─" * (largura - cheio), "dim")
    tela.print(Text.assemble(*traco, f"  {feito} de {total} {o_que}"))


def rode(frase: str, comando: str) -> None:
    """Uma frase e, na linha de baixo, o comando inteiro: dá para copiar mesmo numa tela estreita."""
    diga(frase)
    tela.print(Text("  " + com_este_python(comando), style="cyan"), soft_wrap=True)
