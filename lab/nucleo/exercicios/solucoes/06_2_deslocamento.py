"""Solução: em cada par, o seno e o cosseno da soma de dois ângulos."""

import numpy as np


def matriz_de_deslocamento(k, d, base):
    """A matriz M(k) que leva a posição pos à posição pos + k: M(k) · PE(pos) = PE(pos + k).

    Recebe:
        k: o deslocamento, inteiro, talvez negativo.
        d: a largura da tabela de senoides, par (colunas alternadas: seno, cosseno, seno, …).
        base: a da tabela.
    Devolve:
        (d, d).

    >>> matriz_de_deslocamento(1, 2, 10000.0).round(4).tolist()
    [[0.5403, 0.8415], [-0.8415, 0.5403]]
    """
    M = np.zeros((d, d))
    for i in range(0, d, 2):
        angulo = k * base ** (-i / d)
        c, s = np.cos(angulo), np.sin(angulo)
        # sen(a + b) = sen a cos b + cos a sen b;  cos(a + b) = cos a cos b − sen a sen b
        M[i : i + 2, i : i + 2] = [[c, s], [-s, c]]
    return M
