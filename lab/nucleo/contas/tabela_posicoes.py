"""O que uma tabela de posições aprendida (wpe) sabe: semelhança, defasagem e curva.

Vale para qualquer tabela (n, d), uma linha por posição: o GPT-2, o mini, um BERT. As mesmas
funções geram os números que comparamos com o GPT-2 verdadeiro (data/gpt2_medido).
"""

from dataclasses import dataclass

import numpy as np


def cossenos_entre_linhas(wpe: np.ndarray) -> np.ndarray:
    """(n, d) -> (n, n): o cosseno de cada posição com cada outra, em float32.

    Uma linha nula tem cosseno 0 com todas, inclusive consigo mesma.
    """
    normas = np.sqrt(np.einsum("nd,nd->n", wpe, wpe))  # (n,)
    unitarias = wpe / np.where(normas > 0, normas, 1)[:, None]  # (n, d)
    return unitarias @ unitarias.T  # (n, d) @ (d, n) -> (n, n)


def por_defasagem(cossenos: np.ndarray, inicio: int = 0, fim: int | None = None) -> np.ndarray:
    """(n, n) -> (m,): na casa k, o cosseno médio entre posições à distância k (casa 0: 1).

    `inicio` e `fim` recortam as posições que entram na média: no GPT-2 a linha 0 é um ponto
    fora da curva e a última nunca foi treinada, e as duas enganariam a média.
    """
    recorte = cossenos[inicio:fim, inicio:fim].astype(np.float64)
    # A média da k-ésima diagonal: todos os pares (i, i + k).
    return np.array([np.diagonal(recorte, k).mean() for k in range(len(recorte))])


def centrar(wpe: np.ndarray) -> np.ndarray:
    """(n, d) -> (n, d): as linhas sem a linha média, que é comum a todas as posições."""
    return wpe - wpe.mean(0)


@dataclass(frozen=True)
class Curva:
    """PCA de uma tabela: `pontos` (n, k) nas k primeiras componentes e `fracao` (k,) da
    variância que cada uma explica (soma de todas = 1)."""

    pontos: np.ndarray
    fracao: np.ndarray


def pca(wpe: np.ndarray, k: int = 3) -> Curva:
    """As k primeiras componentes principais das linhas centradas, em float64.

    O sinal de cada eixo é arbitrário; fixamos: a coordenada de maior módulo é positiva.
    """
    centrada = centrar(wpe.astype(np.float64))  # (n, d)
    U, s, _ = np.linalg.svd(centrada, full_matrices=False)  # (n, d) -> (n, r), (r,)
    pontos = U[:, :k] * s[:k]  # (n, r) -> (n, k)
    sinais = np.sign(pontos[np.abs(pontos).argmax(0), np.arange(pontos.shape[1])])
    return Curva(pontos * sinais, s[:k] ** 2 / ((s**2).sum() or 1))  # linhas iguais: fração 0
