"""Solução: notas escaladas, softmax por linha (com o máximo tirado antes), média dos valores."""

import numpy as np


def atencao(x, Wq, Wk, Wv):
    """Autoatenção de uma cabeça, sem máscara e sem posição: softmax(q · kᵀ / √d) · v.

    Recebe:
        x: (T, d), um vetor por token.
        Wq, Wk, Wv: (d, d) cada; q = x · Wq, e assim por diante.
    Devolve:
        (T, d). As notas podem ser enormes: o resultado precisa continuar finito.

    >>> atencao(np.eye(2), np.eye(2), np.eye(2), np.eye(2)).round(4).tolist()
    [[0.6698, 0.3302], [0.3302, 0.6698]]
    """
    q, k, v = x @ Wq, x @ Wk, x @ Wv  # (T, d) -> 3 de (T, d)
    notas = q @ k.T / np.sqrt(x.shape[1])  # (T, d) @ (d, T) -> (T, T)
    # Tirar o máximo da linha não muda o softmax e impede que a exponencial estoure.
    pesos = np.exp(notas - notas.max(axis=1, keepdims=True))
    pesos = pesos / pesos.sum(axis=1, keepdims=True)
    return pesos @ v  # (T, T) @ (T, d) -> (T, d)
