"""O palco dentro de um kernel do Jupyter (caderno, Colab, VS Code, Spyder): HTML no lugar do terminal.

As lições são as mesmas; o que muda é onde a tela aparece. Uma célula pode rodar outra vez, e fora de ordem.
"""

import ast
import html
import importlib.util
import re
import sys
import warnings
from pathlib import Path

from nucleo.base import caminhos

# As cores são as do caderno, claro ou escuro: só o traço é nosso.
_ESTILO = "border-collapse:collapse;margin:.6em 0"
_CELULA = "padding:.15em .8em;border:0;border-bottom:1px solid currentColor"
COLUNA = ' scope="col"'


def num_kernel() -> bool:
    """Se o programa roda dentro de um kernel do Jupyter."""
    return "ipykernel" in sys.modules


def argumentos(nome: str) -> list[str]:
    """As opções da lição `nome` num kernel: as de `%run lab/NOME.py` ou da primeira célula; senão, nenhuma.

    O argv do próprio kernel (`-f conexao.json`) não é para a lição.
    """
    return sys.argv[1:] if Path(sys.argv[0]).name == f"{nome}.py" else []


class SoAAjuda(Exception):
    """O --help de uma lição num kernel: sair não é possível, e o resto das células não tem o que fazer."""

    def _render_traceback_(self) -> list[str]:
        return ["Era só a ajuda: tire o --help da primeira célula e rode de novo."]


def docstring(nome: str, doc: str | None) -> str:
    """A da lição: célula a célula o `__doc__` é do kernel, e o que vale está no script."""
    script = caminhos.RAIZ / "lab" / f"{nome}.py"
    if not num_kernel() or not script.is_file():
        return doc or nome
    return ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")), clean=False) or nome


def ligar(pacotes: tuple[str, ...] = ()) -> None:
    """Prepara o kernel; um `ErroDoUsuario` se ele não for o Python que tem os `pacotes`."""
    from palco import erros

    # Sem o ipywidgets o tqdm reclama, em vermelho, de uma barra que ninguém pediu.
    warnings.filterwarnings("ignore", message="IProgress not found")
    for nome in pacotes:
        if importlib.util.find_spec(nome) is None:
            raise erros.falta_pacote(nome)


def _mostrar(marcado: str, texto: str) -> None:
    from IPython.display import display

    display({"text/html": marcado, "text/plain": texto}, raw=True)


def paragrafo(texto: str, rotulo: str = "") -> None:
    """Markdown leve (**negrito** e `código`) como parágrafo, com um rótulo em negrito na frente."""
    limpo = html.escape(texto, quote=False)
    limpo = re.sub(r"\*\*(\S.*?)\*\*", r"<strong>\1</strong>", limpo)
    limpo = re.sub(r"`([^`]+)`", r"<code>\1</code>", limpo)
    frente = f"<strong>{html.escape(rotulo)}</strong> " if rotulo else ""
    _mostrar(f'<p style="max-width:48em">{frente}{limpo}</p>', f"{rotulo} {texto}".strip())


def tabela(titulo: str, nomes: list[str], linhas: list[list[str]], numericas: list[bool]) -> None:
    """Uma tabela de verdade: legenda, cabeçalhos, números à direita, tudo escapado."""
    lados = ["right" if n else "left" for n in numericas]

    def celulas(marca: str, textos: list[str], mais: str = "") -> str:
        return "".join(
            f'<{marca}{mais} style="{_CELULA};text-align:{lado}">{html.escape(t)}</{marca}>'
            for t, lado in zip(textos, lados, strict=True)
        )

    corpo = "".join(f"<tr>{celulas('td', linha)}</tr>" for linha in linhas)
    legenda = f'<caption style="text-align:left;font-weight:bold">{html.escape(titulo)}</caption>'
    cabeca = f"<thead><tr>{celulas('th', nomes, COLUNA)}</tr></thead>"
    texto = "\n".join([titulo, *(" | ".join(linha) for linha in [nomes, *linhas])])
    _mostrar(f'<table style="{_ESTILO}">{legenda}{cabeca}<tbody>{corpo}</tbody></table>', texto)


def figura(png: bytes, alt: str) -> None:
    """A figura dentro da célula, com o texto alternativo."""
    from IPython.display import Image, display

    display(Image(data=png, format="png", alt=alt))
