"""RoPE, posições que giram (capítulo 6, seção 6.6; Su et al., 2021, RoFormer).

A senoide soma a posição ao vetor; o RoPE gira cada par de coordenadas de q e de k por um ângulo
proporcional à posição. Girar os dois e depois multiplicar deixa só a diferença dos ângulos:

    (R_m q) · (R_n k) = q · R_(n−m) k

Há duas maneiras de formar os pares, que não se misturam num mesmo modelo:

- "intercalado": (0, 1), (2, 3), …: o artigo, o código do Llama da Meta, GPT-J, GGUF;
- "metades": (0, d/2), (1, d/2 + 1), …: GPT-NeoX e os modelos da Hugging Face.

`permutacao_para_metades` leva de uma à outra.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nucleo.contas.posicoes import (
    BASE,
    ErroDePosicao,
    como_posicoes,
    exigir_base,
    exigir_par,
    frequencias,
)

PAREAMENTOS = ("intercalado", "metades")


def exigir_pareamento(pareamento: str) -> None:
    """Recusa nome de pareamento desconhecido (`ErroDePosicao`)."""
    if pareamento not in PAREAMENTOS:
        raise ErroDePosicao(
            f"Não conheço o pareamento {pareamento!r}.",
            "Ele diz quais duas coordenadas giram juntas.",
            'Use "intercalado" (pares vizinhos) ou "metades" (i com i + d/2, o da Hugging Face).',
        )


# --------------------------------------------------------------------------- a forma lenta, para ver


def matriz_de_rotacao(angulo: float | Tensor) -> Tensor:
    """[[cos, −sen], [sen, cos]]: gira um par no sentido anti-horário.

    Argumentos:
        angulo: radianos, de qualquer forma (...).
    Devolve:
        (..., 2, 2) no tipo do ângulo (float64 se veio um número).
    """
    a = torch.as_tensor(angulo, dtype=None if isinstance(angulo, Tensor) else torch.float64)
    cos, sen = a.cos(), a.sin()
    return torch.stack((torch.stack((cos, -sen), -1), torch.stack((sen, cos), -1)), -2)


def pares(d: int, pareamento: str = "intercalado") -> list[tuple[int, int]]:
    """As coordenadas que giram juntas, na ordem das frequências.

    Levanta:
        ErroDePosicao: `d` ímpar, pareamento desconhecido.
    """
    exigir_par(d, "d")
    exigir_pareamento(pareamento)
    if pareamento == "intercalado":
        return [(2 * i, 2 * i + 1) for i in range(d // 2)]
    return [(i, i + d // 2) for i in range(d // 2)]


def rope_lento(
    x: Tensor,
    posicoes: int | Sequence[int] | Tensor | None = None,
    base: float = BASE,
    pareamento: str = "intercalado",
) -> Tensor:
    """RoPE como se lê no artigo: par a par, posição a posição, com a matriz 2 × 2.

    Su et al. (2021), equações 14 e 15. Serve para entender e para conferir `rope`.

    Argumentos e erros: como `rope`.
    Devolve:
        (..., T, d) no tipo de x.
    """
    pos = _posicoes_de(x, posicoes)
    theta = frequencias(x.shape[-1], base)
    saida = torch.empty_like(x)
    for t in range(x.shape[-2]):
        for i, (a, b) in enumerate(pares(x.shape[-1], pareamento)):
            R = matriz_de_rotacao(pos[t].double() * theta[i]).to(x.dtype)  # (2, 2)
            par = torch.stack((x[..., t, a], x[..., t, b]), dim=-1)  # (..., 2)
            girado = par @ R.T  # R·par, com o par em linha: (..., 2)
            saida[..., t, a], saida[..., t, b] = girado[..., 0], girado[..., 1]
    return saida


# --------------------------------------------------------------------------- a forma rápida


def tabelas(
    posicoes: int | Sequence[int] | Tensor,
    theta: Tensor,
    *,
    dtype: torch.dtype = torch.float32,
    precisao_do_angulo: torch.dtype = torch.float64,
    fator_de_atencao: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Cosseno e seno de cada ângulo, uma vez para todas as camadas e cabeças.

    Argumentos:
        posicoes: quantidade n, ou inteiros (T,) ou (B, T).
        theta: (d/2,) frequências, de `frequencias` ou de `escalonamento`.
        dtype: precisão das tabelas prontas.
        precisao_do_angulo: float64 por padrão. Os modelos da Hugging Face usam float32; float16
            e bfloat16 existem aqui só para mostrar por que não se usam.
        fator_de_atencao: multiplica as duas tabelas (é a temperatura do YaRN).
    Devolve:
        (cos, sen), cada um (..., T, d/2) em `dtype`.
    Levanta:
        ErroDePosicao: posição negativa ou não inteira; theta que não é vetor.
    """
    if theta.ndim != 1:
        raise ErroDePosicao(
            f"As frequências têm forma {tuple(theta.shape)}.",
            "É um vetor: uma frequência por par de coordenadas.",
            "Passe frequencias(d), ou o .frequencias de um escalonamento.",
        )
    pos = como_posicoes(posicoes).to(theta.device, precisao_do_angulo)
    angulos = pos.unsqueeze(-1) * theta.to(precisao_do_angulo)  # (..., T) -> (..., T, d/2)
    return (
        (angulos.cos() * fator_de_atencao).to(dtype),
        (angulos.sin() * fator_de_atencao).to(dtype),
    )


def girar(x: Tensor, cos: Tensor, sen: Tensor, pareamento: str = "intercalado") -> Tensor:
    """Gira todos os pares de uma vez: (a, b) -> (a·cos − b·sen, a·sen + b·cos).

    Su et al. (2021), equação 34, sem montar a matriz d × d, que é quase toda de zeros.

    Argumentos:
        x: (..., T, d) ponto flutuante: q ou k, e não v.
        cos, sen: (T, d/2), ou qualquer forma que se estenda a (..., T, d/2).
    Devolve:
        (..., T, d), no tipo de x.
    Levanta:
        ErroDePosicao: dimensão ímpar, d diferente do das tabelas, mais posições que as das
            tabelas, x que não é ponto flutuante ou tem menos de duas dimensões.
    """
    exigir_pareamento(pareamento)
    _exigir_vetores(x)
    d, meio = x.shape[-1], cos.shape[-1]
    if d != 2 * meio:
        raise ErroDePosicao(
            f"x tem {d} coordenadas por cabeça, e as tabelas foram feitas para {2 * meio}.",
            "Cada frequência gira um par: as tabelas têm d/2 colunas. O d aqui é o da cabeça, não o "
            "do modelo.",
            f"Faça as tabelas com frequencias({d}), ou separe as cabeças antes de girar.",
        )
    if cos.ndim >= 2 and cos.shape[-2] not in (1, x.shape[-2]):
        raise ErroDePosicao(
            f"x tem {x.shape[-2]} posições, e as tabelas têm {cos.shape[-2]}.",
            "É uma linha de ângulos por posição.",
            f"Faça as tabelas para as posições de x: tabelas({x.shape[-2]}, theta).",
        )
    if pareamento == "metades":
        cos, sen = cos.to(x.dtype), sen.to(x.dtype)
        a, b = x[..., :meio], x[..., meio:]  # (..., T, d) -> 2 de (..., T, d/2)
        return torch.cat((a * cos - b * sen, b * cos + a * sen), dim=-1)
    # Vizinhos (a, b) são um número complexo a + bi, e girar é multiplicar por cos + i·sen: a mesma
    # conta, numa passada só pela memória. Não há complexos de 16 bits: esses fazem-se em float32.
    exata = torch.float64 if x.dtype == torch.float64 else torch.float32
    z = torch.view_as_complex(x.to(exata).unflatten(-1, (meio, 2)).contiguous())  # -> (..., T, d/2)
    girado = z * torch.complex(cos.to(exata), sen.to(exata))
    return torch.view_as_real(girado).flatten(-2).to(x.dtype)  # (..., T, d/2, 2) -> (..., T, d)


def rope(
    x: Tensor,
    posicoes: int | Sequence[int] | Tensor | None = None,
    base: float = BASE,
    pareamento: str = "intercalado",
) -> Tensor:
    """RoPE numa linha: faz as tabelas e gira.

    Argumentos:
        x: (..., T, d) ponto flutuante, d par.
        posicoes: inteiros (T,); None vale 0, 1, …, T − 1.
    Devolve:
        (..., T, d), no tipo de x, com a mesma norma em cada posição.
    Levanta:
        ErroDePosicao: dimensão ímpar, posição negativa ou não inteira, número de posições
            diferente de T, x que não é ponto flutuante.
    """
    pos = _posicoes_de(x, posicoes)
    exata = torch.float64 if x.dtype == torch.float64 else torch.float32
    cos, sen = tabelas(pos, frequencias(x.shape[-1], base).to(x.device), dtype=exata)
    return girar(x, cos, sen, pareamento)


def _exigir_vetores(x: Tensor) -> None:
    """q e k são (..., T, d) de números reais; diz o que veio, se não for."""
    if x.ndim < 2:
        raise ErroDePosicao(
            f"x tem forma {tuple(x.shape)}.",
            "O RoPE gira (..., T, d): as duas últimas dimensões são as posições e as coordenadas.",
            "Para um vetor só, acrescente a posição: x.unsqueeze(0).",
        )
    if not x.is_floating_point():
        raise ErroDePosicao(
            f"x veio como {x.dtype}.",
            "Giram-se vetores q e k, que são números reais.",
            "Passe as consultas e as chaves, depois da projeção, em ponto flutuante.",
        )
    exigir_par(x.shape[-1], "a dimensão da cabeça")


def _posicoes_de(x: Tensor, posicoes: int | Sequence[int] | Tensor | None) -> Tensor:
    """As posições de x, (T,) int64, conferidas."""
    _exigir_vetores(x)
    T = x.shape[-2]
    pos = como_posicoes(T if posicoes is None else posicoes)
    if pos.shape != (T,):
        raise ErroDePosicao(
            f"x tem {T} posições, e vieram {tuple(pos.shape)} números de posição.",
            "É um número por linha de x.",
            f"Passe {T} posições, ou nenhuma, que vale 0…{T - 1}.",
        )
    return pos


# --------------------------------------------------------------------------- os dois pareamentos


def permutacao_para_metades(d: int) -> Tensor:
    """Índices que levam a ordem intercalada à de metades: x_metades = x_intercalado[..., p].

    p = (0, 2, 4, …, 1, 3, 5, …). A volta é `p.argsort()`.

    Devolve:
        (d,) int64.
    Levanta:
        ErroDePosicao: `d` ímpar.
    """
    exigir_par(d, "d")
    return torch.cat((torch.arange(0, d, 2), torch.arange(1, d, 2)))


def permutar_projecao(peso: Tensor, n_cabecas: int, para: str) -> Tensor:
    """Reordena as linhas de q_proj ou k_proj para o outro pareamento.

    É o que a Hugging Face faz ao converter os pesos da Meta, e o GGUF desfaz: o modelo fica
    idêntico, contanto que o RoPE mude junto. q · k não muda porque a mesma troca vale para os dois.

    Argumentos:
        peso: (n_cabecas · d, entrada), a disposição do `nn.Linear`.
        para: o pareamento de chegada.
    Devolve:
        peso da mesma forma, com as linhas trocadas dentro de cada cabeça.
    Levanta:
        ErroDePosicao: linhas que não se dividem pelas cabeças, `d` ímpar, pareamento desconhecido.
    """
    exigir_pareamento(para)
    if n_cabecas < 1 or peso.shape[0] % n_cabecas:
        raise ErroDePosicao(
            f"As {peso.shape[0]} linhas do peso não se dividem por {n_cabecas} cabeças.",
            "Cada cabeça tem o mesmo número de coordenadas. Em k_proj o número de cabeças é o de "
            "chaves (num_key_value_heads), que pode ser menor.",
            "Confira o número de cabeças no config do modelo.",
        )
    p = permutacao_para_metades(peso.shape[0] // n_cabecas)
    if para == "intercalado":
        p = p.argsort()
    por_cabeca = peso.unflatten(0, (n_cabecas, -1))  # (H·d, e) -> (H, d, e)
    return por_cabeca[:, p].flatten(0, 1)  # -> (H·d, e)


# --------------------------------------------------------------------------- o que se mede


def decaimento(
    distancias: Sequence[int] | Tensor, d: int, base: float = BASE
) -> tuple[Tensor, Tensor]:
    """Como q · k cai com a distância, de dois modos.

    Devolve:
        - (n,) float64: q · k para q = k = (1, …, 1)/√d, girados; é (2/d) Σ_i cos(k·θ_i), e vale 1
          em k = 0;
        - (n,) float64: o teto de Su et al. (2021), seção 3.4.3, equação 37: a média de
          |S_j| = |Σ_(i<j) e^(i·k·θ_i)| sobre j = 1…d/2. É teto: o valor de verdade oscila embaixo.
    Levanta:
        ErroDePosicao: como `frequencias`.
    """
    k = torch.as_tensor(distancias, dtype=torch.float64)
    angulos = k.unsqueeze(-1) * frequencias(d, base)  # (n,) -> (n, d/2)
    somas = torch.polar(torch.ones_like(angulos), angulos).cumsum(-1)  # S_1 … S_(d/2)
    return angulos.cos().mean(-1), somas.abs().mean(-1)  # (n, d/2) -> (n,), (n,)


def volta_mais_lenta(d: int, base: float = BASE) -> float:
    """Posições que o par mais lento leva para dar uma volta: 2π·base^(1 − 2/d).

    Até aí nenhum par de posições tem todos os ângulos iguais; nos modelos de hoje é muito mais
    que o contexto de treino, e a parte da volta nunca vista é a que estranha quando se estica.
    """
    exigir_par(d, "d")
    exigir_base(base)
    return 2 * math.pi * base ** (1 - 2 / d)
