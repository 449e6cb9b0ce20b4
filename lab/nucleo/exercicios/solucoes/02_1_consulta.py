"""Solução: a linha do one-hot escolhe, e o produto recolhe a linha da tabela."""

import numpy as np


def consulta_onehot(ids, E):
    """Busca as linhas dos ids pela multiplicação que ninguém faz de verdade: one-hot · E.

    Recebe:
        ids: (n,) inteiros, cada um de 0 a V − 1; podem repetir.
        E: (V, d), a tabela de embeddings.
    Devolve:
        uma tupla (H, linhas): H é a matriz one-hot, (n, V); linhas é H · E, (n, d).

    >>> H, linhas = consulta_onehot(np.array([2, 0]), np.array([[1., 2.], [3., 4.], [5., 6.]]))
    >>> H.tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    >>> linhas.tolist()
    [[5.0, 6.0], [1.0, 2.0]]
    """
    H = np.zeros((len(ids), len(E)))  # (n, V)
    H[np.arange(len(ids)), ids] = 1
    return H, H @ E  # (n, V) @ (V, d) -> (n, d)
