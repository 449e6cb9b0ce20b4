"""A tela: consoles na largura certa, barras de progresso, Markdown leve, e texto que cabe em qualquer console."""

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

from nucleo.base.arquivos import legivel
from nucleo.base.unidades import inteiro


def _barra(console, *colunas):
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    partes = (TextColumn("{task.description}"), BarColumn(), *colunas, TimeRemainingColumn())
    return Progress(*partes, console=console, transient=True)


@contextmanager
def barra_de_progresso(console=None):
    """Contexto que dá uma função `progresso(o_que, feito, total)` e desenha uma barra em stderr.

    Uma barra por coisa que demora; sem terminal, uma linha de aviso e nada mais.
    """
    console = console or medir_telas()[1]
    barra, tarefas = _barra(console, "{task.percentage:>3.0f} %"), {}

    def progresso(o_que: str, feito: int, total: int) -> None:
        if not tarefas and console.is_terminal:
            barra.start()
        if o_que not in tarefas:
            tarefas[o_que] = barra.add_task(o_que, total=total)
            if not console.is_terminal:
                console.print(f"{o_que}…", highlight=False)
        barra.update(tarefas[o_que], completed=feito)

    try:
        yield progresso
    finally:
        if tarefas and console.is_terminal:
            barra.stop()


@contextmanager
def barra_de_treino(console, rotulo: str, total: int):
    # Dá uma função avancar(passo, texto). Sem terminal, uma linha de aviso e nada mais.
    if not console.is_terminal:
        console.print(f"{rotulo}: {inteiro(total)} passos…", highlight=False)
        yield lambda passo, texto: None
        return
    with _barra(console) as barra:
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
    # O split devolve, de três em três: texto comum, negrito e código (None quando não é).
    for i, parte in enumerate(re.split(r"\*\*(\S.*?)\*\*|`([^`]+)`", texto)):
        saida.append(parte or "", ("", "bold", "cyan")[i % 3])
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
    "−": "-", "–": "-", "—": "-", "―": "-", "→": "->", "←": "<-", "≈": "~", "≥": ">=", "≤": "<=", "≠": "!=",
    "√": "raiz ", "·": ".", "×": "x", "‖": "||", "∞": "inf", "…": "...", "✓": "ok", "✗": "x",
    "“": '"', "”": '"', "‘": "'", "’": "'", "«": '"', "»": '"', "₀": "0", "ᵀ": "^T", "Σ": "soma ",
    "θ": "theta", "ω": "omega", "λ": "lambda", "γ": "gama", "π": "pi", "Δ": "delta ", "δ": "delta", "ρ": "ro", "σ": "sigma",
    "±": "+-", "°": " graus", "½": "1/2", "§": "sec. ", "©": "(c)", "↔": "<->", "☑": "[x]", "☐": "[ ]", "█": "#", "━": "-", "─": "-", "•": "*", "Ġ": "G", "▁": "_",
}  # fmt: skip
_EXPOENTES = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))


def _trocar(erro):
    import unicodedata

    if not isinstance(erro, UnicodeEncodeError):
        raise erro
    pedaco = ""
    for i in range(erro.start, erro.end):
        c = erro.object[i]
        if c in _EXPOENTES:  # sem o acento circunflexo, 10⁵ seria 105
            pedaco += "^" * (erro.object[i - 1 : i] not in _EXPOENTES) + _EXPOENTES[c]
            continue
        sem_acento = unicodedata.normalize("NFKD", c).encode("ascii", "ignore").decode()
        pedaco += _TROCAS.get(c) or sem_acento or "?"
    return pedaco, erro.end


def ler_os_acentos() -> None:
    """Recomeça em UTF-8 um programa cuja pasta tem letras que o sistema (LC_ALL=C) não soube ler.

    O torch nem se importa de uma pasta assim. A codificação da tela continua a que era.
    """
    # Quem já está em UTF-8 não ganha nada em recomeçar: seria para sempre. No Windows os nomes já são
    # Unicode, e o execve devolveria o terminal antes de a lição acabar.
    if sys.flags.utf8_mode or os.name == "nt":
        return
    try:
        sys.prefix.encode("utf-8")
    except UnicodeEncodeError:
        ambiente = {"PYTHONIOENCODING": sys.stdout.encoding} | os.environ | {"PYTHONUTF8": "1"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], ambiente)


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
        # Reconfigurar descarrega o que espera na fila: a tela que falhou falharia outra vez.
        if hasattr(fluxo, "reconfigure") and fluxo.errors != "lab":
            fluxo.reconfigure(errors="lab")
