"""Tokens por segundo do nosso treinador, contra um laço comum com o transformers.

O laço comum é o que se escreve de memória: modelo(x, labels=x), backward, corte, AdamW, zero_grad, com o
modelo como o transformers o dá. O nosso usa a gelu numa operação só e o AdamW fundido
(lab/nucleo/treino/treinador.py). As mesmas formas, o mesmo lote, uma forma do tamanho da lição 02_treino.
"""

import numpy as np
import torch

from comum import Assunto, alternar
from nucleo.treino import treinador

FORMA = {"vocabulario": 2048, "d": 128, "camadas": 4, "cabecas": 4, "posicoes": 128}
LOTE, PASSOS = 8, 40
NOSSO, COMUM = "nosso treinador", "laço comum"


def nosso(fita: np.ndarray, lote: int = LOTE) -> treinador.Treino:
    """O treinador do laboratório, pronto para o primeiro passo."""
    receita = treinador.Receita(10_000, lote, FORMA["posicoes"], semente=2)
    return treinador.Treino(treinador.novo_gpt2(**FORMA, semente=2), fita, receita)


def laco_comum(fita: np.ndarray, lote: int = LOTE):
    """Uma função que dá um passo do laço comum, sobre a mesma fita, e devolve a perda."""
    from transformers import GPT2Config, GPT2LMHeadModel

    f = FORMA
    config = GPT2Config(
        vocab_size=f["vocabulario"], n_positions=f["posicoes"], n_embd=f["d"], n_layer=f["camadas"],
        n_head=f["cabecas"], embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0,
        eos_token_id=0, use_cache=False,
    )  # fmt: skip
    modelo = GPT2LMHeadModel(config).train()
    otimizador = torch.optim.AdamW(modelo.parameters(), lr=3e-3, weight_decay=0.1)
    ids, sorteio = torch.from_numpy(fita.astype(np.int64)), np.random.default_rng(2)

    def passo() -> float:
        inicios = sorteio.integers(0, len(ids) - f["posicoes"], size=lote)
        x = torch.stack([ids[i : i + f["posicoes"]] for i in inicios])  # (B, T)
        saida = modelo(input_ids=x, labels=x)
        saida.loss.backward()
        torch.nn.utils.clip_grad_norm_(modelo.parameters(), 1.0)
        otimizador.step()
        otimizador.zero_grad()
        return saida.loss.item()

    return passo


def medir(rapido: bool = False) -> Assunto:
    """Segundos por passo, alternando, e os tokens por segundo que isso dá."""
    fita = np.random.default_rng(1).integers(0, FORMA["vocabulario"], 20_000, dtype=np.int32)
    meu, deles = nosso(fita), laco_comum(fita)
    medidas = alternar({COMUM: deles, NOSSO: meu.um_passo}, 5 if rapido else PASSOS)
    a = Assunto("treino", "Um passo de treino", COMUM, medidas)
    por_passo = LOTE * FORMA["posicoes"]
    for m in medidas:
        a.extras[f"tokens_por_s.{m.nome}"] = por_passo / m.mediana
        a.notas.append(f"{m.nome}: {por_passo / m.mediana:.0f} tokens por segundo")
    # O aceite não dá número para o treino; ser mais lento que o laço de memória seria um defeito.
    a.criterio("um passo nosso / o do laço comum", a.razao(NOSSO, COMUM), 1.0)
    return a
