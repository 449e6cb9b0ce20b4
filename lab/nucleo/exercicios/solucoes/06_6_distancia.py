"""Solução: tirar a primeira linha e a última coluna anda uma casa em todas as diagonais."""

import numpy as np


def so_depende_da_distancia(S, tol):
    """Diz se S[m, n] só depende de n − m, isto é, se toda diagonal é constante.

    Recebe:
        S: (T, T), por exemplo q_m · k_n para todas as posições; não precisa ser simétrica.
        tol: quanto dois números da mesma diagonal podem diferir.
    Devolve:
        True ou False.

    >>> so_depende_da_distancia(np.array([[1., 2.], [3., 1.]]), 1e-6)
    True
    """
    diagonais = [np.diagonal(S, k) for k in range(1 - len(S), len(S))]  # 2T − 1 de tamanhos vários
    return all(bool(np.ptp(d) <= tol) for d in diagonais)
