"""A tela: consoles na largura certa, barras de progresso, Markdown leve, e texto que cabe em qualquer console."""

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

from nucleo.base.arquivos import legivel
from nucleo.base.unidades import inteiro


def barra_de_progresso(console=None):
    """Contexto que dá uma função `progresso(o_que, feito, total)` e desenha uma barra em stderr."""
    return _Barra(console or medir_telas()[1])


class _Barra:
    # Uma barra por coisa que demora; sem terminal, uma linha de aviso e nada mais.
    def __init__(self, console):
        self._console, self._progresso, self._tarefas = console, None, {}

    def __enter__(self):
        return self._avancar

    def _avancar(self, o_que: str, feito: int, total: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        if o_que not in self._tarefas and not self._console.is_terminal:
            self._console.print(f"{o_que}…", highlight=False)
            self._tarefas[o_que] = None
        if not self._console.is_terminal:
            return
        if self._progresso is None:
            self._progresso = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(), console=self._console, transient=True,
            )  # fmt: skip
            self._progresso.start()
        if o_que not in self._tarefas:
            self._tarefas[o_que] = self._progresso.add_task(o_que, total=total)
        self._progresso.update(self._tarefas[o_que], completed=feito)

    def __exit__(self, *_):
        if self._progresso:
            self._progresso.stop()


@contextmanager
def barra_de_treino(console, rotulo: str, total: int):
    # Dá uma função avancar(passo, texto). Sem terminal, uma linha de aviso e nada mais.
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    if not console.is_terminal:
        console.print(f"{rotulo}: {inteiro(total)} passos…", highlight=False)
        yield lambda passo, texto: None
        return
    colunas = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*colunas, console=console, transient=True) as barra:
        tarefa = barra.add_task(rotulo, total=total)
        yield lambda passo, texto: barra.update(tarefa, completed=passo, description=texto)


def medir_telas():
    """Os consoles do rich, (stdout, stderr), na largura da tela ou da variável COLUMNS."""
    from rich.console import Console

    # Sem terminal (arquivo, pipe) o rich supõe 80 colunas; 100 deixa as tabelas respirarem.
    pedida = os.environ.get("COLUMNS", "")
    largura = None if sys.stdout.isatty() and not pedida else 100
    if pedida.isdecimal() and int(pedida):
        largura = max(20, min(int(pedida), 400))  # fora disso não é uma tela
    return Console(width=largura), Console(stderr=True, width=largura)


def larguras(
    nomes: list[str], linhas: list[list[str]], numericas: list[bool], tela: int
) -> list[int] | None:
    # A largura de cada coluna, sem cortar número nem palavra; None se nem apertada a tabela cabe.
    def palavras(texto: str) -> int:
        return max(map(len, texto.split()), default=1)

    celulas = list(zip(*linhas, strict=True)) or [()] * len(nomes)
    minimos, cheias = [], []
    for nome, coluna, numerica in zip(nomes, celulas, numericas, strict=True):
        # Números e textos curtos (tokens entre aspas) não se partem; textos longos, só entre palavras.
        inteiras = [len(c) if numerica or len(c) <= 16 else palavras(c) for c in coluna]
        minimos.append(max(palavras(nome), *inteiras, 1))
        cheias.append(max(len(nome), *map(len, coluna), 1))
    # A moldura SIMPLE_HEAD gasta duas casas por coluna.
    sobra = tela - 2 * len(nomes) - sum(minimos)
    if sobra < 0:
        return None
    while sobra > 0:
        # Cada casa que sobra vai para a coluna mais longe de caber inteira.
        falta = [cheia - minimo for cheia, minimo in zip(cheias, minimos, strict=True)]
        i = max(range(len(falta)), key=falta.__getitem__)
        if falta[i] == 0:
            break
        minimos[i] += 1
        sobra -= 1
    return minimos


def marcar(texto: str, estilo: str = ""):
    # Markdown leve -> Text do rich, pedaço por pedaço. Nada do texto vira marcação: colchetes e
    # barras de um caminho do Windows chegam à tela como são.
    from rich.text import Text

    saida = Text(style=estilo)
    for parte in re.split(r"(\*\*\S.*?\*\*|`[^`]+`)", texto):
        if len(parte) > 4 and parte.startswith("**") and parte.endswith("**"):
            saida.append(parte[2:-2], "bold")
        elif len(parte) > 2 and parte.startswith("`") and parte.endswith("`"):
            saida.append(parte[1:-1], "cyan")
        else:
            saida.append(parte)
    return saida


def rotulado(rotulo: str, estilo: str, texto: str):
    from rich.text import Text

    return Text.assemble((rotulo, estilo), " ", marcar(texto))


def curto(pasta: Path) -> str:
    try:
        nome = pasta.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        nome = str(pasta)
    from rich.markup import escape

    return escape(legivel(nome))


# Consoles antigos (cp1252, ASCII) não têm tudo; perder um traço é melhor que perder a lição.
_TROCAS = {
    "−": "-", "–": "-", "—": "-", "→": "->", "←": "<-", "≈": "~", "≥": ">=", "≤": "<=", "≠": "!=",
    "√": "raiz ", "·": ".", "×": "x", "‖": "||", "∞": "inf", "…": "...", "✓": "ok", "✗": "x",
    "“": '"', "”": '"', "‘": "'", "’": "'", "«": '"', "»": '"', "₀": "0", "ᵀ": "^T", "Σ": "soma ",
    "θ": "theta", "ω": "omega", "λ": "lambda", "γ": "gama", "π": "pi", "Δ": "delta ", "█": "#", "━": "-", "─": "-", "•": "*", "Ġ": "G", "▁": "_",
}  # fmt: skip


def _trocar(erro):
    import unicodedata

    if not isinstance(erro, UnicodeEncodeError):
        raise erro
    pedaco = ""
    for c in erro.object[erro.start : erro.end]:
        simples = _TROCAS.get(c)
        if simples is None:
            base = unicodedata.normalize("NFKD", c).encode("ascii", "ignore").decode()
            simples = base or "?"
        try:
            simples.encode(erro.encoding)
        except UnicodeEncodeError:
            simples = simples.encode("ascii", "replace").decode()
        pedaco += simples
    return pedaco, erro.end


def preparar_fluxos() -> None:
    """Faz stdout e stderr aceitarem qualquer texto, trocando o que a codificação não tiver.

    A codificação em si não muda (quem pediu cp1252 continua com cp1252): só o que fazer com
    um caractere que não existe nela.
    """
    import codecs

    codecs.register_error("lab", _trocar)
    # Com a saída fechada (>&-) o Python dá None: escrever no vazio é melhor que falhar.
    for nome in ("stdout", "stderr"):
        if getattr(sys, nome) is None:
            setattr(sys, nome, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for fluxo in (sys.stdout, sys.stderr):
        if hasattr(fluxo, "reconfigure"):
            fluxo.reconfigure(errors="lab")
