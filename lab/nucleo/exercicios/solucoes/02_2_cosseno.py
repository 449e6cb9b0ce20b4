"""Solução: o produto interno, dividido pelos dois tamanhos."""

import numpy as np


def cosseno(a, b):
    """O cosseno do ângulo entre dois vetores; com um vetor nulo, vale 0 por convenção.

    Recebe:
        a, b: (d,), números reais.
    Devolve:
        um número entre −1 e 1.

    >>> round(float(cosseno(np.array([3., 4.]), np.array([4., 3.]))), 2)
    0.96
    """
    tamanhos = np.sqrt(a @ a) * np.sqrt(b @ b)  # (d,), (d,) -> escalar
    return float(a @ b / tamanhos) if tamanhos > 0 else 0.0
