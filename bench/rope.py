"""Quanto custa o nosso RoPE, ao lado do de transformers e do rotary-embedding-torch.

Como rodar:  python bench/tudo.py --so rope
Formas do SmolLM2: (lote 1, 9 cabeças, 2048 posições, 64 coordenadas), q e k, float32 e bfloat16, com as
tabelas já prontas. O pareamento em metades compara-se com o transformers; o intercalado, com o
rotary-embedding-torch.
"""

import torch
from rotary_embedding_torch import apply_rotary_emb
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from comum import Assunto, Medida, alternar
from nucleo.contas.posicoes import frequencias
from nucleo.contas.rope import girar, tabelas

FORMA, VEZES, LIMITE = (1, 9, 2048, 64), 200, 1.2
PARES = {"nosso, metades": "transformers", "nosso, intercalado": "rotary-embedding-torch"}


def funcoes(tipo: torch.dtype, forma: tuple[int, ...] = FORMA) -> dict:
    """{nome: função que gira q e k uma vez}, as quatro com as mesmas entradas."""
    q, k = torch.randn(2, *forma, generator=torch.Generator().manual_seed(4)).to(tipo)
    cos, sen = tabelas(forma[-2], frequencias(forma[-1]), dtype=tipo)  # (T, d/2)
    cheio_cos, cheio_sen = (torch.cat((t, t), -1)[None] for t in (cos, sen))  # (1, T, d)
    angulos = torch.arange(forma[-2]).double()[:, None] * frequencias(forma[-1]).double()
    angulos = angulos.repeat_interleave(2, -1).to(tipo if tipo != torch.bfloat16 else torch.float32)
    return {
        "transformers": lambda: apply_rotary_pos_emb(q, k, cheio_cos, cheio_sen),
        "nosso, metades": lambda: (girar(q, cos, sen, "metades"), girar(k, cos, sen, "metades")),
        "rotary-embedding-torch": lambda: (
            apply_rotary_emb(angulos, q),
            apply_rotary_emb(angulos, k),
        ),
        "nosso, intercalado": lambda: (girar(q, cos, sen), girar(k, cos, sen)),
    }


def conferir(fs: dict, tolerancia: float) -> None:
    """Antes do relógio, a certeza de que cada par faz a mesma conta. Erros: `AssertionError`."""
    for nosso, deles in PARES.items():
        for x, y in zip(fs[nosso](), fs[deles](), strict=True):
            assert torch.allclose(x.float(), y.float(), atol=tolerancia), nosso


def medir(rapido: bool = False) -> Assunto:
    """Milissegundos para girar q e k, por tipo."""
    a = Assunto("rope", f"RoPE: girar q e k, forma {FORMA}", "float32 transformers")
    for tipo in (torch.float32, torch.bfloat16):
        nome_do_tipo = str(tipo).removeprefix("torch.")
        fs = funcoes(tipo)
        # float32: ângulos até 2048 rad, arredondados por caminhos diferentes. bfloat16: 8 bits.
        conferir(fs, 1e-3 if tipo == torch.float32 else 0.06)
        medidas = alternar(fs, 5 if rapido else VEZES)
        a.medidas += [Medida(f"{nome_do_tipo} {m.nome}", m.segundos) for m in medidas]
        for nosso, deles in PARES.items():
            razao = a.razao(f"{nome_do_tipo} {nosso}", f"{nome_do_tipo} {deles}")
            a.criterio(f"{nome_do_tipo}, {nosso} / {deles}", razao, LIMITE)
    return a
