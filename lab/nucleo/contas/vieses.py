"""Posição como viés na atenção (capítulo 6, seção 6.5): ALiBi e o viés relativo do T5.

Nenhum dos dois toca nos vetores: somam um número a cada q · k, que depende só da distância. O do
ALiBi é fixo e cai em linha reta; o do T5 é aprendido, um por faixa de distâncias.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


def inclinacoes_alibi(n_cabecas: int) -> Tensor:
    """A inclinação de cada cabeça: progressão geométrica de 2^(−8/n) a 2^(−8).

    Press et al. (2021), seção 3. Quando n não é potência de 2, os autores completam a progressão
    da potência de baixo com termos alternados da de cima (está no código publicado).

    Devolve:
        (n_cabecas,) float64, todas positivas.
    """

    def progressao(n: int) -> list[float]:
        return [2.0 ** (-8 * (h + 1) / n) for h in range(n)]

    potencia = 2 ** int(math.log2(n_cabecas))
    restantes = progressao(2 * potencia)[0::2][: n_cabecas - potencia]
    return torch.tensor(progressao(potencia) + restantes, dtype=torch.float64)


def distancias(T: int) -> Tensor:
    """Distância da posição i (linha) à posição j (coluna): j − i, negativa no passado. (T, T) int64."""
    pos = torch.arange(T)
    return pos[None, :] - pos[:, None]  # (1, T) − (T, 1) -> (T, T)


def vies_alibi(n_cabecas: int, T: int) -> Tensor:
    """O que se soma às notas da atenção: −inclinação · distância (Press et al., 2021, seção 3).

    Devolve:
        (n_cabecas, T, T) float32; zero na diagonal e no futuro, que a máscara causal apaga.
    """
    passado = distancias(T).clamp(max=0)  # (T, T): 0, −1, −2, …
    return (inclinacoes_alibi(n_cabecas)[:, None, None] * passado).float()  # -> (H, T, T)


def balde_t5(distancia: Tensor, n_baldes: int = 32, distancia_maxima: int = 128) -> Tensor:
    """A faixa ("balde") de cada distância: exata perto, logarítmica longe.

    Raffel et al. (2020), seção 2.1. Metade dos baldes é uma distância cada; a outra metade cobre,
    em escala logarítmica, até `distancia_maxima`; daí em diante cai tudo no último. É por isso que
    o T5 aceita sequências mais longas: nenhuma distância fica sem balde.

    Argumentos:
        distancia: inteiros, posição da chave − posição da consulta (negativa é passado; o futuro,
            que a máscara causal apaga, vale o balde 0).
    Devolve:
        int64 da mesma forma, de 0 a n_baldes − 1.
    """
    exatos = n_baldes // 2
    longe = (-distancia).clamp(min=0)
    # float32, como no código dos autores: nas fronteiras exatas o arredondamento decide o balde.
    escala = torch.log(longe.clamp(min=1).float() / exatos) / math.log(distancia_maxima / exatos)
    logaritmico = (exatos + (escala * (n_baldes - exatos)).long()).clamp(max=n_baldes - 1)
    return torch.where(longe < exatos, longe, logaritmico)


class Esquema(NamedTuple):
    """Uma linha da tabela que põe os esquemas lado a lado (seção 6.5)."""

    nome: str
    onde_entra: str
    parametros: int
    comprimento_definido: str
    fonte: str


def esquemas(d: int, n_cabecas: int, treino: int, n_baldes: int = 32) -> list[Esquema]:
    """Os seis esquemas, com os parâmetros contados para um modelo destas medidas.

    "Definido" é até onde a conta existe; até onde o modelo presta é outra pergunta, e quem a
    mede é `lab/06_extrapolacao.py`.
    """
    return [
        Esquema("nenhum", "em lugar nenhum: só a máscara causal", 0, "qualquer", "Haviv 2022"),
        Esquema(
            "aprendido",
            "somado ao embedding (wpe)",
            treino * d,
            f"{treino}, e acabou",
            "GPT-2, 2019",
        ),
        Esquema("senoidal", "somado ao embedding", 0, "qualquer", "Vaswani 2017"),
        Esquema(
            "T5",
            "somado a q·k, a mesma tabela em todas as camadas",
            n_baldes * n_cabecas,
            "qualquer: o último balde é o de todo o resto",
            "Raffel 2020",
        ),
        Esquema("ALiBi", "somado a q·k, em toda camada", 0, "qualquer", "Press 2021"),
        Esquema("RoPE", "gira q e k, em toda camada", 0, "qualquer", "Su 2021"),
    ]
