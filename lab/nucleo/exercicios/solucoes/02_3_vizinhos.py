"""Solução: cossenos com a tabela inteira, a própria palavra fora, ordem com empate definido."""

import numpy as np


def vizinhos(E, i, k):
    """As k linhas mais próximas da linha i pelo cosseno, sem ela própria.

    Recebe:
        E: (V, d), a tabela, sem linhas nulas.
        i: a linha de que se buscam os vizinhos.
        k: quantos, menor que V.
    Devolve:
        lista (ou array) de k ids, do mais próximo em diante; no empate, o menor id primeiro.

    >>> E = np.array([[1., 1, 1, 1], [1, 1, 1, -1], [2, 2, -2, 2],
    ...               [-1, -1, -1, -1], [3, 3, 3, 3], [2, 2, 2, -2]])
    >>> [int(j) for j in vizinhos(E, 0, 3)]  # cossenos 1, ½ e ½
    [4, 1, 2]
    """
    normas = np.sqrt((E * E).sum(axis=1))  # (V, d) -> (V,)
    notas = E @ E[i] / (normas * normas[i])  # (V, d) @ (d,) -> (V,)
    notas[i] = -np.inf
    # Estável: quem empata fica na ordem em que estava, que é a dos ids.
    return np.argsort(-notas, kind="stable")[:k].tolist()
