"""Por que a ordem precisa ser posta de fora (capítulo 6, seções 6.2 e 6.5).

Uma atenção escrita em meia dúzia de linhas, sem posição nenhuma, e as perguntas que se fazem a
ela: se eu trocar dois tokens, o que muda na saída?

- sem máscara, as saídas saem trocadas do mesmo jeito: é EQUIVARIANTE (e não invariante: cada
  saída muda de lugar junto com o seu token);
- com máscara causal deixa de ser, porque cada posição vê um conjunto diferente de tokens. Mesmo
  assim a última posição de UMA camada vê o mesmo conjunto, e não tem como saber a ordem; com duas
  camadas a ordem chega até ela (Haviv et al., 2022; Kazemnejad et al., 2023).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nucleo.contas.posicoes import ErroDePosicao

# Uma camada de atenção são as três matrizes que fazem consultas, chaves e valores, (d, d) cada.
Camada = tuple[Tensor, Tensor, Tensor]


def vetores_da_frase(palavras: list[str], d: int, semente: int) -> Tensor:
    """Um vetor N(0, 1) por palavra DIFERENTE: a mesma palavra recebe sempre o mesmo. (T, d)."""
    gerador = torch.Generator().manual_seed(semente)
    tabela = torch.randn(len(set(palavras)), d, generator=gerador)  # (V, d)
    linha = {p: i for i, p in enumerate(dict.fromkeys(palavras))}
    return tabela[[linha[p] for p in palavras]]  # (V, d) -> (T, d)


def sortear_camadas(
    n: int, d: int, semente: int = 0, dtype: torch.dtype = torch.float32
) -> list[Camada]:
    """`n` camadas com pesos N(0, 1/d), sorteados: o que se mostra não depende de treino."""
    gerador = torch.Generator().manual_seed(semente)
    return [
        tuple(
            torch.randn(d, d, generator=gerador, dtype=torch.float64).to(dtype) / math.sqrt(d)
            for _ in "qkv"
        )
        for _ in range(n)
    ]


def atencao(x: Tensor, camada: Camada, causal: bool = False) -> Tensor:
    """Autoatenção de uma cabeça (Vaswani et al., 2017, equação 1), sem posição nenhuma.

    Argumentos:
        x: (T, d).
        causal: se cada posição só vê as anteriores e a si mesma.
    Devolve:
        (T, d).
    """
    wq, wk, wv = camada
    q, k, v = x @ wq, x @ wk, x @ wv  # (T, d) -> 3 de (T, d)
    notas = q @ k.T / math.sqrt(x.shape[-1])  # (T, d) @ (d, T) -> (T, T)
    if causal:
        futuro = torch.ones_like(notas, dtype=torch.bool).triu(1)
        notas = notas.masked_fill(futuro, -math.inf)
    return notas.softmax(-1) @ v  # (T, T) @ (T, d) -> (T, d)


def empilhar(x: Tensor, camadas: list[Camada], causal: bool = False) -> Tensor:
    """Atenções em sequência com o atalho residual: x ← x + atenção(x). (T, d) -> (T, d)."""
    for camada in camadas:
        x = x + atencao(x, camada, causal)
    return x


def troca(T: int, a: int, b: int) -> Tensor:
    """A permutação de T posições que só troca a com b. (T,) int64.

    Levanta:
        ErroDePosicao: posição fora de 0…T−1.
    """
    if not (0 <= a < T and 0 <= b < T):
        raise ErroDePosicao(
            f"Não dá para trocar as posições {a} e {b} de uma frase de {T} tokens.",
            f"As posições vão de 0 a {T - 1}.",
            "Escolha duas desse intervalo.",
        )
    ordem = torch.arange(T)
    ordem[a], ordem[b] = b, a
    return ordem


def mesma_bolsa(a: Tensor, b: Tensor) -> float:
    """Distância entre dois conjuntos de vetores, sem olhar a ordem: 0 quando são a mesma bolsa.

    Para cada vetor de `a` toma-se o mais próximo em `b`, e vice-versa, e fica a maior dessas
    distâncias (a de Hausdorff). (T, d), (T, d) -> número.
    """
    d = torch.cdist(a.double(), b.double(), compute_mode="donot_use_mm_for_euclid_dist")  # (T, T)
    return float(torch.maximum(d.min(0).values.max(), d.min(1).values.max()))
