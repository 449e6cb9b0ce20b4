"""Quanto custa o nosso RoPE, ao lado do de transformers, numa só execução.

Como rodar:  python bench/rope.py
Formas do SmolLM2: (lote 1, 9 cabeças, 2048 posições, 64 coordenadas), q e k, float32 e bfloat16.
As duas funções se alternam, para que um pico de uso da máquina não caia numa só; compara-se o
menor tempo de cada uma. Sai com 1 se a nossa passar de 1,2 vez a da biblioteca.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from nucleo.posicoes import frequencias
from nucleo.rope import girar, tabelas

FORMA, VEZES, LIMITE = (1, 9, 2048, 64), 200, 1.2


def medir(tipo: torch.dtype, vezes: int = VEZES) -> dict[str, float]:
    """{função: menor tempo em milissegundos} para girar q e k uma vez, com as tabelas já prontas."""
    q, k = torch.randn(2, *FORMA).to(tipo)
    cos, sen = tabelas(FORMA[-2], frequencias(FORMA[-1]), dtype=tipo)  # (T, d/2)
    cheio_cos, cheio_sen = (torch.cat((t, t), -1)[None] for t in (cos, sen))  # (1, T, d)
    funcoes = {
        "transformers": lambda: apply_rotary_pos_emb(q, k, cheio_cos, cheio_sen),
        "nosso, metades": lambda: (girar(q, cos, sen, "metades"), girar(k, cos, sen, "metades")),
        "nosso, intercalado": lambda: (girar(q, cos, sen), girar(k, cos, sen)),
    }
    # Antes do relógio, a certeza de que fazem a mesma conta.
    a, b = funcoes["transformers"](), funcoes["nosso, metades"]()
    assert all(
        torch.allclose(x, y, atol=0.05 if tipo != torch.float32 else 1e-5)
        for x, y in zip(a, b, strict=True)
    )
    tempos = dict.fromkeys(funcoes, float("inf"))
    for _ in range(vezes):
        for nome, f in funcoes.items():
            inicio = time.perf_counter()
            f()
            tempos[nome] = min(tempos[nome], 1000 * (time.perf_counter() - inicio))
    return tempos


def main() -> int:
    pior = 0.0
    for tipo in (torch.float32, torch.bfloat16):
        tempos = medir(tipo)
        for nome, ms in tempos.items():
            razao = ms / tempos["transformers"]
            print(f"{str(tipo)[6:]:9} {nome:19} {ms:7.3f} ms   {razao:4.2f} ×".replace(".", ","))
            pior = max(pior, razao)
    print("confere" if pior <= LIMITE else f"não confere: {pior:.2f} × passa de {LIMITE} ×")
    return pior > LIMITE


if __name__ == "__main__":
    sys.exit(main())
