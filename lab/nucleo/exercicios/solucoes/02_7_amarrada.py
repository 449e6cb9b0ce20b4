"""Solução: a pergunta é sobre a memória, e não sobre os números que estão nela."""

import numpy as np


def amarrada(entrada, saida):
    """Diz se duas matrizes são a mesma na memória: mudar uma muda a outra.

    Recebe:
        entrada: (V, d), a tabela da entrada.
        saida: (V, d) ou (d, V), a matriz da saída; pode ser a entrada transposta.
    Devolve:
        True ou False. Nenhuma das duas sai mudada.

    >>> amarrada(np.array([[1., 2.], [3., 4.]]), np.array([[1., 2.], [3., 4.]]))
    False
    """
    return np.shares_memory(entrada, saida)
