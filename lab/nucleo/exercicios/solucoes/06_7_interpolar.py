"""Solução: as posições encolhem até caber no treino, e só quando não cabem."""

import numpy as np


def angulos_interpolados(T, treino, d, base):
    """Os ângulos do RoPE com interpolação de posições (Chen et al., 2023).

    Recebe:
        T: quantas posições o texto tem agora.
        treino: quantas o modelo viu no treino.
        d: a dimensão da cabeça, par.
        base: 10000 no artigo.
    Devolve:
        (T, d/2): posição vezes base^(−2i/d). Se T > treino, as posições 0 … T − 1 se multiplicam
        antes por treino/T; se não passa, ficam como estão.

    >>> angulos_interpolados(4, 2, 2, 10000.0).tolist()
    [[0.0], [0.5], [1.0], [1.5]]
    """
    posicoes = np.arange(T) * min(treino / T, 1.0)  # (T,)
    return np.outer(posicoes, base ** (-np.arange(0, d, 2) / d))  # (T,), (d/2,) -> (T, d/2)
