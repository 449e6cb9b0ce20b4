"""Mexer nas posições de um modelo pronto e medir o que acontece (capítulo 6, seções 6.5 e 6.6).

As trocas são gerenciadores de contexto: ao sair do `with` o modelo volta a ser o que era, mesmo
que algo falhe no meio. `comparar` mede o antes e o depois no mesmo texto.
"""

from __future__ import annotations

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


class RopeNosso(nn.Module):
    """No lugar do `rotary_emb` do transformers: mesma chamada, ângulos de `nucleo.contas.rope`.

    Argumentos:
        parado: se toda posição vale 0; q e k não giram, e o modelo fica sem posição. (Passar ao
            modelo `position_ids` repetidos não serve: o transformers 5 os toma por vários textos
            colados e separa um do outro com a máscara.)
    """

    def __init__(self, escala: Escalonamento, parado: bool = False):
        super().__init__()
        self.escala, self.parado = escala, parado

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T) -> cos, sen, (B, T, d/2) cada, no tipo de x."""
        pos = torch.zeros_like(position_ids) if self.parado else position_ids
        theta, fator = self.escala
        return tabelas(pos, theta.to(x.device), dtype=x.dtype, fator_de_atencao=fator)


@contextmanager
def rope_trocado(
    modelo: nn.Module,
    pareamento: str = "metades",
    *,
    escala: Escalonamento | None = None,
    parado: bool = False,
) -> Iterator[nn.Module]:
    """Põe o nosso RoPE no lugar do da biblioteca, dentro de um modelo da família Llama.

    São duas trocas: o módulo que faz as tabelas e a função que gira. Nada mais muda.

    Argumentos:
        pareamento: "metades" é o dos pesos da Hugging Face; "intercalado" é o erro clássico.
        escala: None usa a que o config do modelo pede.
    Levanta:
        ErroDePosicao: o modelo não usa RoPE desta família.
    """
    corpo = getattr(modelo, "model", None)
    codigo = sys.modules.get(type(corpo).__module__)
    if not hasattr(corpo, "rotary_emb") or not hasattr(codigo, "apply_rotary_pos_emb"):
        raise ErroDePosicao(
            f"{type(modelo).__name__} não tem um RoPE para trocar.",
            "A troca serve aos modelos da família Llama; o GPT-2, por exemplo, soma uma wpe.",
            "Use o SmolLM2: --modelo smollm2.",
        )
    if escala is None:
        c = modelo.config
        # Nem todo config traz a dimensão da cabeça.
        d = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        escala = do_config(c.to_dict(), d)

    def aplicar(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)  # + eixo das cabeças
        return girar(q, cos, sin, pareamento), girar(k, cos, sin, pareamento)

    tabela, funcao = corpo.rotary_emb, codigo.apply_rotary_pos_emb
    try:
        corpo.rotary_emb, codigo.apply_rotary_pos_emb = RopeNosso(escala, parado), aplicar
        yield modelo
    finally:
        corpo.rotary_emb, codigo.apply_rotary_pos_emb = tabela, funcao


@contextmanager
def projecoes_permutadas(modelo: nn.Module, para: str = "intercalado") -> Iterator[nn.Module]:
    """Reordena q_proj e k_proj de todas as camadas para o outro pareamento, e depois desfaz."""
    c = modelo.config
    guardados = []
    try:
        for camada in modelo.model.layers:
            for peso, cabecas in (
                (camada.self_attn.q_proj.weight, c.num_attention_heads),
                (camada.self_attn.k_proj.weight, c.num_key_value_heads),
            ):
                guardados.append((peso, peso.data))
                peso.data = permutar_projecao(peso.data, cabecas, para)
        yield modelo
    finally:
        for peso, original in guardados:
            peso.data = original


@contextmanager
def wpe_zerada(modelo: nn.Module) -> Iterator[nn.Module]:
    """Põe zeros na wpe de um GPT-2, e depois desfaz."""
    wpe = modelo.transformer.wpe
    original = wpe.weight.data
    try:
        wpe.weight.data = torch.zeros_like(original)
        yield modelo
    finally:
        wpe.weight.data = original


class SemPosicao(NamedTuple):
    """O que um modelo perde sem as posições, e o quanto ainda separa duas ordens da mesma frase."""

    como: str
    mudanca: Mudanca
    ordens_com: float  # variação total entre as previsões depois de cada ordem
    ordens_sem: float


def sem_posicao(
    modelo: nn.Module, janelas: Sequence[Tensor], frases: tuple[Tensor, Tensor]
) -> SemPosicao:
    """Tira as posições do modelo (RoPE parado, ou wpe zerada) e mede a perda e as duas ordens.

    Argumentos:
        janelas: o texto em pedaços (T,) que cabem no modelo.
        frases: as duas ordens, (T,) ids cada, com o mesmo último token; o que se compara é a
            previsão que vem depois dele.
    """
    tem_wpe = hasattr(getattr(modelo, "transformer", None), "wpe")
    tirar = wpe_zerada(modelo) if tem_wpe else rope_trocado(modelo, parado=True)

    def entre_as_ordens() -> float:
        p, q = (ler(modelo, frase).log_probs[-1].exp() for frase in frases)  # 2 de (V,)
        return float((p - q).abs().sum() / 2)

    com, ordens_com = ler_em_janelas(modelo, janelas), entre_as_ordens()
    with tirar:
        mudanca = comparar(com, ler_em_janelas(modelo, janelas))
        return SemPosicao(
            "wpe zerada" if tem_wpe else "posições iguais", mudanca, ordens_com, entre_as_ordens()
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
