"""Solução: o que cada token é, mais onde ele está."""

import numpy as np  # noqa: F401 - o molde e o exemplo o usam


def h0(wte, wpe, ids):
    """A entrada do primeiro bloco do GPT-2: embedding do token mais embedding da posição.

    Recebe:
        wte: (V, d), uma linha por token.
        wpe: (n_ctx, d), uma linha por posição, a partir da 0.
        ids: (n,) inteiros, n ≤ n_ctx.
    Devolve:
        (n, d). wte e wpe ficam como estavam.

    >>> wte = np.array([[1., 0.], [0., 1.], [2., 2.]])
    >>> wpe = np.array([[.5, .25], [10., 20.], [100., 200.], [1000., 2000.]])
    >>> h0(wte, wpe, np.array([1, 0, 1])).tolist()
    [[0.5, 1.25], [11.0, 20.0], [100.0, 201.0]]
    """
    return wte[ids] + wpe[: len(ids)]  # (n, d) + (n, d) -> (n, d)
