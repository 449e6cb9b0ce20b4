"""Mexer nas posições de um modelo pronto e medir o que acontece (capítulo 6, seções 6.5 e 6.6).

As trocas são gerenciadores de contexto: ao sair do `with` o modelo volta a ser o que era, mesmo
que algo falhe no meio. `comparar` mede o antes e o depois no mesmo texto.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nucleo.contas.escalonamento import Escalonamento, do_config
from nucleo.contas.posicoes import BASE, ErroDePosicao
from nucleo.contas.rope import girar, permutar_projecao, tabelas


class TextoLido(NamedTuple):
    """O que um modelo disse de um texto de T tokens."""

    log_probs: Tensor  # (T, V): depois de cada token, log p do seguinte
    perdas: Tensor  # (T − 1,): −log p do token que veio, em nats

    @property
    def perda(self) -> float:
        """Perda média, em nats por token."""
        return float(self.perdas.mean())


class Mudanca(NamedTuple):
    """O que mudou entre duas leituras do mesmo texto."""

    perda_antes: float
    perda_depois: float
    variacao_total: float  # média de ½ Σ|p − q|: 0 é a mesma distribuição, 1 é nada em comum
    mesma_resposta: float  # fração das posições em que o token mais provável é o mesmo
    maior_diferenca: float  # maior |Δ log p|


@torch.inference_mode()
def ler(modelo: nn.Module, ids: Tensor) -> TextoLido:
    """Passa o texto pelo modelo, sem cache, e guarda o que ele previu.

    Argumentos:
        ids: (T,) inteiros, T ≥ 2.
    """
    logits = modelo(ids[None], use_cache=False).logits[0]
    log_probs = logits.float().log_softmax(-1)  # (T, V)
    # O último token não tem quem venha depois dele no texto: T − 1 perdas.
    return TextoLido(log_probs, -log_probs[:-1].gather(-1, ids[1:, None]).squeeze(-1))


def ler_em_janelas(modelo: nn.Module, janelas: Sequence[Tensor]) -> TextoLido:
    """`ler` cada janela, uma de cada vez, e juntar: nenhuma vê a anterior.

    Janelas de um token só ficam de fora: não há o que prever nelas.
    """
    leituras = [ler(modelo, janela) for janela in janelas if len(janela) > 1]
    return TextoLido(
        torch.cat([leitura.log_probs for leitura in leituras]),
        torch.cat([leitura.perdas for leitura in leituras]),
    )


def comparar(antes: TextoLido, depois: TextoLido) -> Mudanca:
    """O que mudou de uma leitura para a outra (do mesmo texto)."""
    p, q = antes.log_probs, depois.log_probs
    return Mudanca(
        antes.perda,
        depois.perda,
        float((p.exp() - q.exp()).abs().sum(-1).mean() / 2),
        float((p.argmax(-1) == q.argmax(-1)).float().mean()),
        float((p - q).abs().max()),
    )


# O outro jeito de formar os pares.
OUTRO = {"metades": "intercalado", "intercalado": "metades"}


class RopeNosso(nn.Module):
    """No lugar do `rotary_emb` do transformers: mesma chamada, ângulos de `nucleo.contas.rope`.

    Argumentos:
        escala: (comprimento, tipo da camada) -> `Escalonamento`.
        parado: se toda posição vale 0; q e k não giram, e o modelo fica sem posição. (Passar ao
            modelo `position_ids` repetidos não serve: o transformers 5 os toma por vários textos
            colados e separa um do outro com a máscara.)
        seno_antes: o GPT-J espera (sen, cos); os outros, (cos, sen).
    """

    def __init__(self, escala, parado: bool = False, seno_antes: bool = False):
        super().__init__()
        self.escala, self.parado, self.seno_antes = escala, parado, seno_antes

    def forward(
        self, x: Tensor, position_ids: Tensor, layer_type: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """(B, T) -> cos, sen, (B, T, r/2) cada, no tipo de x."""
        pos = torch.zeros_like(position_ids) if self.parado else position_ids
        theta, fator = self.escala(int(position_ids.max()) + 1, layer_type)
        cos, sen = tabelas(pos, theta.to(x.device), dtype=x.dtype, fator_de_atencao=fator)
        return (sen, cos) if self.seno_antes else (cos, sen)


def _corpo_que_gira(modelo: nn.Module) -> nn.Module | None:
    # O módulo dono do rotary_emb: model, transformer, language_model… muda com a família.
    return next((m for m in modelo.modules() if hasattr(m, "rotary_emb")), None)


@contextmanager
def rope_trocado(
    modelo: nn.Module,
    giro,
    pareamento: str | None = None,
    *,
    escala: Escalonamento | None = None,
    parado: bool = False,
) -> Iterator[nn.Module]:
    """Põe o nosso RoPE no lugar do da biblioteca, dentro de um modelo.

    São duas trocas: o módulo que faz as tabelas e a função que gira. Nada mais muda.

    Argumentos:
        giro: de que jeito o modelo gira (o `Giro` da ficha): `dimensoes` coordenadas de cada cabeça,
            em pares de `pareamento`.
        pareamento: None vale o do modelo; o outro é o erro clássico.
        escala: None usa a que o config do modelo pede.
    Levanta:
        ErroDePosicao: o modelo não usa RoPE, ou o guarda de um jeito que não conhecemos.
    """
    corpo = _corpo_que_gira(modelo)
    codigo = sys.modules.get(type(corpo).__module__)
    if giro is None or corpo is None or not hasattr(codigo, "apply_rotary_pos_emb"):
        raise ErroDePosicao(
            f"{type(modelo).__name__} não tem um RoPE para trocar.",
            "A troca serve a quem gira Q e K; o GPT-2, por exemplo, soma uma wpe.",
            "Use o SmolLM2: --modelo smollm2.",
        )
    pares, config, r = pareamento or giro.pareamento, corpo.config.to_dict(), giro.dimensoes
    if r % 2:
        raise ErroDePosicao(
            f"{type(modelo).__name__} gira {r} coordenada(s) de cada cabeça, um número ímpar.",
            f"São {r} de {giro.cabeca}, pelo config.json, e o giro precisa de pares.",
            "Confira head_dim e partial_rotary_factor no config.json, ou use --modelo smollm2.",
        )

    def pedida(comprimento: int, camada: str | None) -> Escalonamento:
        return escala or do_config(config, r, comprimento, camada)

    def rodar(x: Tensor, cos: Tensor, sen: Tensor) -> Tensor:
        # Só as r primeiras coordenadas giram; as outras passam. (Há quem já as mande separadas.)
        girado = girar(x[..., :r], cos, sen, pares)  # (..., c) -> (..., r)
        return torch.cat((girado, x[..., r:]), dim=-1)  # (..., r) e (..., c − r) -> (..., c)

    def aplicar(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)  # + eixo das cabeças
        return rodar(q, cos, sin), rodar(k, cos, sin)

    def aplicar_num(
        x: Tensor, sin: Tensor, cos: Tensor
    ):  # o GPT-J gira um de cada vez, (B, T, H, r)
        return rodar(x, cos.unsqueeze(2), sin.unsqueeze(2))

    tabela, funcao = corpo.rotary_emb, codigo.apply_rotary_pos_emb
    um_de_cada_vez = "k" not in inspect.signature(funcao).parameters
    try:
        corpo.rotary_emb = RopeNosso(pedida, parado, seno_antes=um_de_cada_vez)
        codigo.apply_rotary_pos_emb = aplicar_num if um_de_cada_vez else aplicar
        yield modelo
    finally:
        corpo.rotary_emb, codigo.apply_rotary_pos_emb = tabela, funcao


def linhas_de_q_e_k(atencao: nn.Module, cabeca: int) -> list[tuple[Tensor, Tensor]]:
    """Os parâmetros de uma camada que fazem q e k, cada um com os blocos de `cabeca` números que são de
    q ou de k: [(parâmetro, (blocos,) booleano)].

    Separados (q_proj, k_proj), juntos (q, k e v em fila) ou entrelaçados cabeça a cabeça; com os
    vieses e as normas de q e k, que vêm depois da projeção e são da mesma ordem.
    """
    achados = []
    for nome, peso in atencao.named_parameters():
        dono, blocos = nome.split(".")[0], peso.numel() // (cabeca * _por_linha(nome, peso))
        if dono in ("q_proj", "k_proj", "q_norm", "k_norm", "q_layernorm", "k_layernorm"):
            achados.append((peso, torch.ones(blocos, dtype=torch.bool)))
        elif dono in ("qkv_proj", "Wqkv"):  # q de todas as cabeças, depois k, depois v
            de_v = getattr(atencao.config, "num_key_value_heads", None) or blocos // 3
            de_v = blocos // 3 if dono == "Wqkv" else de_v
            achados.append((peso, torch.arange(blocos) < blocos - de_v))
        elif dono == "query_key_value":  # por grupo: as consultas, uma chave, um valor
            grupos = _grupos(atencao, blocos)
            achados.append((peso, torch.arange(blocos) % (blocos // grupos) < blocos // grupos - 1))
    return achados


def _grupos(atencao: nn.Module, blocos: int) -> int:
    if getattr(atencao, "new_decoder_architecture", False):
        return atencao.num_kv_heads  # o Falcon novo
    return 1 if getattr(atencao, "multi_query", False) else blocos // 3


def _por_linha(nome: str, peso: Tensor) -> int:
    # Um peso de projeção tem (saídas, entradas); vieses e normas só têm saídas.
    return peso.shape[1] if peso.ndim == 2 and "norm" not in nome else 1


@contextmanager
def projecoes_permutadas(modelo: nn.Module, giro) -> Iterator[nn.Module]:
    """Reordena o que faz q e k em todas as camadas (pesos, vieses e normas) para o outro pareamento, só
    nas coordenadas que giram, e depois desfaz.

    Levanta:
        ErroDePosicao: não achou as projeções em alguma camada.
    """
    corpo, c, guardados = _corpo_que_gira(modelo), giro.cabeca, []
    try:
        for modulo in corpo.modules():
            if not hasattr(modulo, "layer_idx") or isinstance(modulo, nn.Linear):
                continue
            for peso, blocos in linhas_de_q_e_k(modulo, c):
                guardados.append((peso, peso.data))
                linhas = peso.data.reshape(len(blocos), c, -1).clone()  # -> (blocos, c, e)
                de_q_e_k = linhas[blocos].flatten(0, 1)  # (b, c, e) -> (b·c, e)
                trocadas = permutar_projecao(
                    de_q_e_k, int(blocos.sum()), OUTRO[giro.pareamento], giro.dimensoes
                )
                linhas[blocos] = trocadas.unflatten(0, (-1, c))  # (b·c, e) -> (b, c, e)
                peso.data = linhas.reshape(peso.shape)
        if not guardados:
            raise ErroDePosicao(
                f"Não achei onde {type(modelo).__name__} faz q e k.",
                "Procurei q_proj e k_proj, qkv_proj, Wqkv e query_key_value em cada camada.",
                "Use o SmolLM2: --modelo smollm2.",
            )
        yield modelo
    finally:
        for peso, original in guardados:
            peso.data = original


@contextmanager
def tabela_zerada(modelo: nn.Module, nome: str) -> Iterator[nn.Module]:
    """Põe zeros na tabela de posições (`nome` é o fim do nome dela: "wpe.weight"), e depois desfaz."""
    peso = next(p for n, p in modelo.named_parameters() if n == nome or n.endswith("." + nome))
    original = peso.data
    try:
        peso.data = torch.zeros_like(original)
        yield modelo
    finally:
        peso.data = original


class SemPosicao(NamedTuple):
    """O que um modelo perde sem as posições, e o quanto ainda separa duas ordens da mesma frase."""

    como: str
    mudanca: Mudanca
    ordens_com: float  # variação total entre as previsões depois de cada ordem
    ordens_sem: float


def sem_posicao(
    modelo: nn.Module,
    janelas: Sequence[Tensor],
    frases: tuple[Tensor, Tensor],
    *,
    giro=None,
    tabela: str = "",
) -> SemPosicao:
    """Tira as posições do modelo (RoPE parado, ou tabela zerada) e mede a perda e as duas ordens.

    Argumentos:
        giro, tabela: como a posição entra: o `Giro` da ficha, ou o nome da tabela de posições.
        janelas: o texto em pedaços (T,) que cabem no modelo.
        frases: as duas ordens, (T,) ids cada, com o mesmo último token; o que se compara é a
            previsão que vem depois dele.
    """
    tirar = tabela_zerada(modelo, tabela) if tabela else rope_trocado(modelo, giro, parado=True)

    def entre_as_ordens() -> float:
        p, q = (ler(modelo, frase).log_probs[-1].exp() for frase in frases)  # 2 de (V,)
        return float((p - q).abs().sum() / 2)

    com, ordens_com = ler_em_janelas(modelo, janelas), entre_as_ordens()
    with tirar:
        mudanca = comparar(com, ler_em_janelas(modelo, janelas))
        return SemPosicao(
            "wpe zerada" if tabela else "posições iguais", mudanca, ordens_com, entre_as_ordens()
        )


def config_llama(d: int, maximo: int = 2048, **rope_parameters):
    """Um LlamaConfig do transformers, de uma cabeça, para pedir as frequências e o giro a ele."""
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=d,
        num_attention_heads=1,
        head_dim=d,
        max_position_embeddings=maximo,
        rope_parameters={"rope_type": "default", "rope_theta": BASE} | rope_parameters,
    )


def girado_pelo_llama(q: Tensor) -> Tensor:
    """(B, H, T, d) -> (B, H, T, d): q girado pelo código do Llama do transformers (metades)."""
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    T, d = q.shape[-2:]
    tabelas_ = LlamaRotaryEmbedding(config_llama(d))(q, torch.arange(T)[None])
    return apply_rotary_pos_emb(q, q, *tabelas_)[0]


def girado_pelo_gptj(q: Tensor) -> Tensor:
    """(B, H, T, d) -> (B, H, T, d): q girado pelo código do GPT-J do transformers (vizinhos)."""
    from transformers.models.gptj.modeling_gptj import (
        apply_rotary_pos_emb,
        create_sinusoidal_positions,
    )

    T, d = q.shape[-2:]
    sen, cos = create_sinusoidal_positions(T, d).chunk(2, -1)  # (T, d) -> 2 de (T, d/2)
    # O GPT-J usa (B, T, H, d).
    return apply_rotary_pos_emb(q.transpose(1, 2), sen[None], cos[None]).transpose(1, 2)
