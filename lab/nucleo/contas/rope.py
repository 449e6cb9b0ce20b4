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

from collections.abc import Sequence

import torch
from torch import Tensor

from nucleo.contas.posicoes import BASE, frequencias


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
    """
    pos = torch.arange(posicoes) if isinstance(posicoes, int) else torch.as_tensor(posicoes)
    pos = pos.to(theta.device, precisao_do_angulo)
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
    """
    meio = cos.shape[-1]
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
        ErroDePosicao: dimensão ímpar.
    """
    pos = x.shape[-2] if posicoes is None else posicoes
    exata = torch.float64 if x.dtype == torch.float64 else torch.float32
    cos, sen = tabelas(pos, frequencias(x.shape[-1], base).to(x.device), dtype=exata)
    return girar(x, cos, sen, pareamento)


# --------------------------------------------------------------------------- os dois pareamentos


def permutacao_para_metades(d: int) -> Tensor:
    """Índices que levam a ordem intercalada à de metades: x_metades = x_intercalado[..., p].

    p = (0, 2, 4, …, 1, 3, 5, …). A volta é `p.argsort()`.

    Devolve:
        (d,) int64.
    """
    return torch.cat((torch.arange(0, d, 2), torch.arange(1, d, 2)))


def permutar_projecao(
    peso: Tensor, n_cabecas: int, para: str, dimensoes: int | None = None
) -> Tensor:
    """Reordena as linhas de q_proj ou k_proj para o outro pareamento.

    É o que a Hugging Face faz ao converter os pesos da Meta, e o GGUF desfaz: o modelo fica
    idêntico, contanto que o RoPE mude junto. q · k não muda porque a mesma troca vale para os dois.

    Argumentos:
        peso: (n_cabecas · d, entrada), a disposição do `nn.Linear`; ou (n_cabecas · d,), um viés.
        para: o pareamento de chegada.
        dimensoes: quantas coordenadas de cada cabeça giram, as primeiras; None vale todas.
    Devolve:
        peso da mesma forma, com as linhas trocadas dentro de cada cabeça.
    """
    p = torch.arange(peso.shape[0] // n_cabecas)
    giram = permutacao_para_metades(dimensoes or len(p))
    p[: len(giram)] = giram if para == "metades" else giram.argsort()
    por_cabeca = peso.unflatten(0, (n_cabecas, -1))  # (H·d, e) -> (H, d, e)
    return por_cabeca[:, p].flatten(0, 1)  # -> (H·d, e)


# --------------------------------------------------------------------------- o que se mede


def decaimento(distancias: Sequence[int] | Tensor, d: int) -> tuple[Tensor, Tensor]:
    """Como q · k cai com a distância, de dois modos.

    Devolve:
        - (n,) float64: q · k para q = k = (1, …, 1)/√d, girados; é (2/d) Σ_i cos(k·θ_i), e vale 1
          em k = 0;
        - (n,) float64: o teto de Su et al. (2021), seção 3.4.3, equação 37: a média de
          |S_j| = |Σ_(i<j) e^(i·k·θ_i)| sobre j = 1…d/2. É teto: o valor de verdade oscila embaixo.
    """
    k = torch.as_tensor(distancias, dtype=torch.float64)
    angulos = k.unsqueeze(-1) * frequencias(d)  # (n,) -> (n, d/2)
    somas = torch.polar(torch.ones_like(angulos), angulos).cumsum(-1)  # S_1 … S_(d/2)
    return angulos.cos().mean(-1), somas.abs().mean(-1)  # (n, d/2) -> (n,), (n,)
