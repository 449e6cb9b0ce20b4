"""Solução: um ângulo por par de colunas; o seno à esquerda, o cosseno à direita."""

import numpy as np


def senoides(n, d, base):
    """A codificação posicional do Transformer de 2017, colunas alternadas.

    Recebe:
        n: quantas posições, a partir da 0.
        d: a largura, par.
        base: o 10000 da fórmula.
    Devolve:
        (n, d): PE(pos, 2i) = sen(pos / base^(2i/d)), PE(pos, 2i + 1) = cos(pos / base^(2i/d)).

    >>> senoides(2, 2, 10000.0).round(4).tolist()
    [[0.0, 1.0], [0.8415, 0.5403]]
    """
    angulos = np.outer(np.arange(n), base ** (-np.arange(0, d, 2) / d))  # (n,), (d/2,) -> (n, d/2)
    tabela = np.empty((n, d))
    tabela[:, 0::2] = np.sin(angulos)
    tabela[:, 1::2] = np.cos(angulos)
    return tabela
