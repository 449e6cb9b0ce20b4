"""Solução: os pares são vizinhos, e as duas contas usam os valores antigos."""

import numpy as np


def rope_intercalado(x, base):
    """Gira cada par VIZINHO de coordenadas, (0, 1), (2, 3), …, conforme a posição.

    Recebe:
        x: (T, d), consultas ou chaves de uma cabeça; d par; a linha t está na posição t.
        base: 10000 no artigo; o par i gira t · base^(−2i/d) radianos, anti-horário.
    Devolve:
        (T, d). x fica como estava.

    >>> rope_intercalado(np.array([[1., 2.], [1., 2.]]), 10000.0).round(4).tolist()
    [[1.0, 2.0], [-1.1426, 1.9221]]
    """
    T, d = x.shape
    angulos = np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d))  # (T, d/2)
    c, s = np.cos(angulos), np.sin(angulos)
    a, b = x[:, 0::2], x[:, 1::2]  # (T, d) -> 2 de (T, d/2)
    girado = np.empty((T, d))
    girado[:, 0::2] = a * c - b * s
    girado[:, 1::2] = a * s + b * c
    return girado
