"""Solução: o alvo é a − b + c, e as três palavras da pergunta não disputam."""

import numpy as np


def analogia(E, a, b, c):
    """Quem está para c como a está para b: a linha mais próxima de E[a] − E[b] + E[c].

    Recebe:
        E: (V, d), a tabela, sem linhas nulas; as linhas se somam como estão.
        a, b, c: ids diferentes.
    Devolve:
        o id da linha de maior cosseno com o alvo, fora a, b e c.

    >>> E = np.array([[1., .2], [-1., .2], [1., 2.], [-1., 2.], [.8, 1.5], [.1, -1.]])
    >>> int(analogia(E, 2, 0, 1))  # rei − homem + mulher
    3
    """
    alvo = E[a] - E[b] + E[c]  # (d,)
    normas = np.sqrt((E * E).sum(axis=1))  # (V, d) -> (V,)
    # O tamanho do alvo divide todas as notas por igual: não muda quem vence.
    notas = E @ alvo / normas  # (V, d) @ (d,) -> (V,)
    notas[[a, b, c]] = -np.inf
    return int(np.argmax(notas))
