"""As medidas dos quatro GPT-2, lidas de data/gpt2_medido/tamanhos.json: o que define cada matriz."""

import json
from dataclasses import dataclass

from nucleo.base import caminhos


@dataclass(frozen=True)
class Tamanho:
    """Um dos quatro GPT-2: as medidas que definem todas as matrizes."""

    nome: str
    n_layer: int
    n_embd: int
    n_head: int
    publicado: int  # parâmetros, com a cabeça amarrada
    vocab: int = 50257
    n_ctx: int = 1024


def _ler_tamanhos() -> dict[str, Tamanho]:
    dados = json.loads((caminhos.DADOS / "gpt2_medido" / "tamanhos.json").read_text("utf-8"))
    return {nome: Tamanho(nome, **t) for nome, t in dados["modelos"].items()}


TAMANHOS = _ler_tamanhos()
