"""Solução: a coordenada i gira com a i + d/2."""

import numpy as np


def rope_metades(x, base):
    """Gira os pares (i, i + d/2), a convenção dos modelos da Hugging Face.

    Recebe:
        x: (T, d), consultas ou chaves de uma cabeça; d par; a linha t está na posição t.
        base: 10000 no artigo; o par i gira t · base^(−2i/d) radianos, anti-horário.
    Devolve:
        (T, d). x fica como estava.

    >>> rope_metades(np.array([[1., 2.], [1., 2.]]), 10000.0).round(4).tolist()
    [[1.0, 2.0], [-1.1426, 1.9221]]
    """
    T, d = x.shape
    angulos = np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d))  # (T, d/2)
    c, s = np.cos(angulos), np.sin(angulos)
    a, b = x[:, : d // 2], x[:, d // 2 :]  # (T, d) -> 2 de (T, d/2)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=1)  # -> (T, d)
