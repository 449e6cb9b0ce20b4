"""Os exercícios: perguntas que se preveem, funções que se escrevem, quem julga as duas, e a caixa onde roda o
código dos outros.

Só o palco, NN_exercicios e corrigir a importam. Ela importa contas, modelos e base.
"""

from pathlib import Path


def apostilas() -> list[int]:
    """As apostilas que têm exercícios, em ordem: basta o arquivo tarefas_NN.py existir."""
    return sorted(int(p.stem[-2:]) for p in Path(__file__).parent.glob("tarefas_[0-9][0-9].py"))
