"""O que a listagem da apostila 02 (seção 7) faz, para o bench comparar: dois modelos carregados, uma
linha da tabela, dois cossenos e a conferência da amarração.

Como rodar:  python bench/apostila.py PASTA_DO_MODELO
"""

import sys

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer


def main(pasta: str) -> None:
    tok = AutoTokenizer.from_pretrained(pasta, trust_remote_code=False)
    modelo = AutoModel.from_pretrained(pasta, trust_remote_code=False)
    wte = modelo.get_input_embeddings().weight  # (V, d): no GPT-2, modelo.wte.weight
    print("a linha de ' gato':", tuple(wte[tok.encode(" gato")[0]].shape))
    for a, b in ((" king", " queen"), (" king", " banana")):
        va, vb = wte[tok.encode(a)[0]], wte[tok.encode(b)[0]]  # (d,), (d,)
        print(f"{a} x {b}: {torch.cosine_similarity(va, vb, dim=0).item():+.3f}")
    lm = AutoModelForCausalLM.from_pretrained(pasta, trust_remote_code=False)
    de_entrada = lm.get_input_embeddings().weight  # no GPT-2, lm.transformer.wte.weight
    print("amarrada?", lm.lm_head.weight.data_ptr() == de_entrada.data_ptr())


if __name__ == "__main__":
    main(sys.argv[1])
