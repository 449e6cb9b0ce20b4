"""Esticar o contexto de um modelo com RoPE (capítulo 6, seção 6.6).

Todas as receitas mexem só nas frequências θ_i (e uma delas, o YaRN, também na temperatura da
atenção). Cada função sai da fórmula do seu artigo e devolve um `Escalonamento`, que se entrega a
`rope.tabelas`. s é quantas vezes o contexto cresce; L, o comprimento de treino.

| receita | o que faz |
|---|---|
| linear (interpolação de posições) | divide todas as posições por s: cabe, mas borra os vizinhos |
| NTK | aumenta a base: o par mais rápido não muda, o mais lento divide por s |
| NTK dinâmico | NTK com s do comprimento de agora: até L nada muda |
| YaRN | por par: rápido fica, lento divide por s, rampa no meio; e esfria a atenção |
| Llama 3 | como o YaRN, com outra rampa e sem a temperatura |
| LongRoPE | um fator por par, achado por busca, que vem com o modelo |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nucleo.contas.posicoes import BASE, ErroDePosicao, frequencias


class Escalonamento(NamedTuple):
    """Frequências (d/2,) float64, em radianos por posição, e o fator que multiplica cos e sen."""

    frequencias: Tensor
    fator_de_atencao: float = 1.0


def sem_escala(d: int, base: float = BASE) -> Escalonamento:
    """As frequências de treino, como estão (Su et al., 2021, equação 15)."""
    return Escalonamento(frequencias(d, base))


def linear(d: int, fator: float, base: float = BASE) -> Escalonamento:
    """Interpolação de posições: θ_i / s, o mesmo que dividir as posições por s.

    Chen et al. (2023), "Extending Context Window… via Positional Interpolation", equação 4.
    """
    return Escalonamento(frequencias(d, base) / fator)


def base_ntk(d: int, fator: float, base: float = BASE) -> float:
    """A base que divide por s a última frequência e não toca na primeira: base · s^(d/(d−2)).

    bloc97 (2023), "NTK-aware scaled RoPE"; Peng et al. (2023), YaRN, seção 3.1.

    Levanta:
        ErroDePosicao: d = 2, onde só há uma frequência.
    """
    if d <= 2:
        raise ErroDePosicao(
            f"d = {d} não tem como ser esticado por NTK.",
            "A receita poupa a frequência mais rápida e divide a mais lenta: com um par só, são a mesma.",
            "Use d de 4 para cima, ou a interpolação linear.",
        )
    return base * fator ** (d / (d - 2))


def ntk(d: int, fator: float, base: float = BASE) -> Escalonamento:
    """NTK com fator fixo: as frequências da base aumentada (ver `base_ntk`)."""
    return Escalonamento(frequencias(d, base_ntk(d, fator, base)))


def ntk_dinamico(
    d: int, comprimento: int, treino: int, fator: float = 1.0, base: float = BASE
) -> Escalonamento:
    """NTK que só age depois de L: s = fator·(comprimento/L) − (fator − 1).

    emozilla (2023), "Dynamically scaled RoPE"; Peng et al. (2023), YaRN, seção 3.3. As chaves que
    já estão no cache foram giradas com a base antiga: quem usa cache precisa girar depois dele.

    Argumentos:
        comprimento: posições da sequência de agora.
        treino: L.
    """
    s = fator * max(comprimento, treino) / treino - (fator - 1)
    return ntk(d, s, base)


def yarn(
    d: int,
    fator: float,
    treino: int,
    base: float = BASE,
    *,
    beta_rapido: float = 32.0,
    beta_lento: float = 1.0,
    rampa: str = "indice",
    arredondar: bool = True,
) -> Escalonamento:
    """YaRN: cada par conforme quantas voltas r = L/λ dá dentro do contexto de treino.

    Peng et al. (2023), seções 3.2 e 3.4. Com γ = 1 o par fica como está (r ≥ beta_rapido); com γ = 0 divide por s
    (r ≤ beta_lento): θ' = (1 − γ)·θ/s + γ·θ. A atenção esfria:
    cos e sen × (0,1·ln s + 1), que entra duas vezes no produto q·k.

    O γ do meio tem duas versões, e não dão o mesmo número:

    - "indice": reta no ÍNDICE do par, com as pontas arredondadas para fora (`arredondar`). É o código
      dos autores e o que transformers, vLLM e llama.cpp fazem: a dos modelos publicados;
    - "artigo": reta em r, como está impresso no artigo.

    Argumentos:
        treino: L, posições.
    """
    theta = frequencias(d, base)
    if rampa == "artigo":
        voltas = treino * theta / (2 * math.pi)
        gama = (voltas - beta_lento) / (beta_rapido - beta_lento)
    else:

        def indice(voltas: float) -> float:
            """O índice (fracionário) do par que dá tantas voltas em L: resolve r(i) = voltas."""
            return d * math.log(treino / (voltas * 2 * math.pi)) / (2 * math.log(base))

        inicio, fim = indice(beta_rapido), indice(beta_lento)
        if arredondar:
            inicio, fim = math.floor(inicio), math.ceil(fim)
        inicio, fim = max(inicio, 0), min(fim, d - 1)
        # Pontas iguais fariam uma divisão por zero; os autores abrem a rampa em um milésimo.
        largura = fim - inicio if fim != inicio else 0.001
        gama = 1 - (torch.arange(d // 2, dtype=torch.float64) - inicio) / largura
    gama = gama.clamp(0, 1)
    return Escalonamento((1 - gama) * theta / fator + gama * theta, 0.1 * math.log(fator) + 1)


def llama3(
    d: int,
    fator: float,
    treino: int,
    base: float = 500_000.0,
    *,
    fator_baixo: float = 1.0,
    fator_alto: float = 4.0,
) -> Escalonamento:
    """Llama 3.1: par com r = L/λ acima de `fator_alto` fica, abaixo de `fator_baixo` divide por s.

    No meio, reta em r: θ' = (1 − γ)·θ/s + γ·θ, com γ = (r − baixo)/(alto − baixo). Dubey et al.
    (2024), seção 3.4.2, e o código publicado pela Meta (`apply_scaling`).
    """
    theta = frequencias(d, base)
    voltas = treino * theta / (2 * math.pi)
    gama = ((voltas - fator_baixo) / (fator_alto - fator_baixo)).clamp(0, 1)
    return Escalonamento((1 - gama) * theta / fator + gama * theta)


def longrope(
    d: int,
    divide: Tensor,
    fator: float,
    treino: int,
    base: float = BASE,
    *,
    temperatura: float | None = None,
) -> Escalonamento:
    """LongRoPE: cada par dividido por um fator próprio, achado por busca, que vem com o modelo.

    Ding et al. (2024), "LongRoPE", equação 4, e o código do Phi-3. Argumentos:
        divide: (d/2,) os fatores (há uma lista para textos curtos e outra para longos).
        temperatura: None vale √(1 + ln s / ln L).
    """
    if temperatura is None:
        temperatura = math.sqrt(1 + math.log(fator) / math.log(treino)) if fator > 1 else 1.0
    return Escalonamento(frequencias(d, base) / divide, temperatura)


# --------------------------------------------------------------------------- o que diz um config


def do_config(
    config: Mapping[str, Any],
    d: int,
    comprimento: int | None = None,
    camada: str | None = None,
    base: float = BASE,
) -> Escalonamento:
    """O `Escalonamento` que um `config.json` da Hugging Face pede em `rope_parameters`.

    Argumentos:
        d: quantas coordenadas de cada cabeça giram.
        comprimento: posições da sequência de agora; None vale o treino. Só o dinâmico e o longrope
            olham para ela.
        camada: o tipo da camada ("full_attention"…), onde cada tipo tem os seus parâmetros.
        base: a que vale se o config não diz nenhuma (o GPT-J).

    Levanta:
        ErroDePosicao: tipo que este laboratório não faz.
    """
    p = config.get("rope_parameters") or {}
    p = p.get(camada, p)
    tipo, fator = p.get("rope_type", "default"), p.get("factor")
    base = p.get("rope_theta") or base
    maximo = config.get("max_position_embeddings")
    treino = p.get("original_max_position_embeddings") or maximo
    if tipo == "default":
        return sem_escala(d, base)
    if tipo == "linear":
        return linear(d, fator, base)
    if tipo == "dynamic":
        return ntk_dinamico(d, comprimento or maximo, maximo, fator, base)
    if tipo == "yarn":
        return _yarn_do_config(p, d, fator or maximo / treino, treino, base)
    if tipo == "llama3":
        pontas = {"fator_baixo": p["low_freq_factor"], "fator_alto": p["high_freq_factor"]}
        return llama3(d, fator, treino, base, **pontas)
    if tipo == "longrope":
        longo = comprimento is not None and comprimento > treino
        divide = torch.tensor(p["long_factor" if longo else "short_factor"], dtype=torch.float64)
        temperatura = p.get("attention_factor")
        return longrope(d, divide, fator or maximo / treino, treino, base, temperatura=temperatura)
    raise ErroDePosicao(
        f"RoPE do tipo {tipo!r} não está neste laboratório.",
        "Temos default, linear, dynamic, yarn, llama3 e longrope.",
        "Use um modelo de um desses tipos.",
    )


def _yarn_do_config(p: Mapping, d: int, fator: float, treino: int, base: float) -> Escalonamento:
    betas = p.get("beta_fast") or 32.0, p.get("beta_slow") or 1.0
    arredondar = p.get("truncate", True)
    escala = yarn(
        d, fator, treino, base, beta_rapido=betas[0], beta_lento=betas[1], arredondar=arredondar
    )
    temperatura = p.get("attention_factor")
    if temperatura is None and p.get("mscale") and p.get("mscale_all_dim"):
        # O DeepSeek divide duas temperaturas, cada uma com o seu peso.
        cima, baixo = (
            0.1 * p[m] * math.log(fator) + 1 if fator > 1 else 1.0
            for m in ("mscale", "mscale_all_dim")
        )
        temperatura = cima / baixo
    if temperatura is None:
        temperatura = escala.fator_de_atencao if fator > 1 else 1.0
    return escala._replace(fator_de_atencao=temperatura)
