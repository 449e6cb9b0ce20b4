"""A barra dos treinos ao vivo: passo, perda e tokens por segundo, e um Ctrl-C que não perde nada."""

import sys
from collections.abc import Iterator

from nucleo.treino import Passo, Treino


def com_barra(treino: Treino, rotulo: str, parar_com_ctrl_c: bool = False) -> Iterator[Passo]:
    """Dá os passos do treino desenhando a barra em stderr; sem terminal, uma linha só.

    Com `parar_com_ctrl_c`, o primeiro Ctrl-C encerra este treino e a lição segue com o que o
    modelo aprendeu até ali (o modelo fica inteiro: o passo interrompido é dado por não dado).
    O segundo sai da lição.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    colunas = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    total = treino.receita.passos
    if not console.is_terminal:
        console.print(f"{rotulo}: {total} passos…", highlight=False)
    with Progress(
        *colunas, console=console, transient=True, disable=not console.is_terminal
    ) as barra:
        tarefa = barra.add_task(rotulo, total=total, completed=treino.passo)
        passos = treino.passos()
        while True:
            try:
                p = next(passos, None)
            except KeyboardInterrupt:
                if not parar_com_ctrl_c or com_barra.interrompido:
                    raise
                com_barra.interrompido = True
                sys.stderr.write(
                    f"\nTreino interrompido no passo {treino.passo} de {total}: sigo com o que o modelo "
                    "aprendeu até aqui. Ctrl-C de novo sai da lição.\n"
                )
                return
            if p is None:
                return
            texto = f"{rotulo} · perda {p.perda:.3f} · {p.tokens_por_s:6.0f} tokens/s"
            barra.update(tarefa, completed=p.passo, description=texto)
            yield p


com_barra.interrompido = False
