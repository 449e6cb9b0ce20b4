"""Quantos números há em cada peça do GPT-2, contados da arquitetura, sem ler peso nenhum.

Um tamanho `t` (nucleo.modelos.tamanhos) tem n_layer, n_embd, n_head, vocab e n_ctx.
"""

from functools import cache

# A que peça da lição pertence cada parâmetro: pelo nome que ele tem no modelo.
PECAS = {
    "wte": ("wte.weight",),
    "wpe": ("wpe.weight",),
    "atenção: c_attn (Q, K, V)": ("attn.c_attn.weight", "attn.c_attn.bias"),
    "atenção: c_proj": ("attn.c_proj.weight", "attn.c_proj.bias"),
    "MLP: c_fc": ("mlp.c_fc.weight", "mlp.c_fc.bias"),
    "MLP: c_proj": ("mlp.c_proj.weight", "mlp.c_proj.bias"),
    "LayerNorm": (
        "ln_1.weight",
        "ln_1.bias",
        "ln_2.weight",
        "ln_2.bias",
        "ln_f.weight",
        "ln_f.bias",
    ),
}


def formula(t) -> dict[str, int]:
    """{peça: parâmetros} pela conta à mão: a mesma que se faz no quadro, com o viés incluído."""
    d, camadas = t.n_embd, t.n_layer
    return {
        "wte": t.vocab * d,
        "wpe": t.n_ctx * d,
        "atenção: c_attn (Q, K, V)": camadas * (d * 3 * d + 3 * d),
        "atenção: c_proj": camadas * (d * d + d),
        "MLP: c_fc": camadas * (d * 4 * d + 4 * d),
        "MLP: c_proj": camadas * (4 * d * d + d),
        "LayerNorm": (2 * camadas + 1) * 2 * d,
    }


@cache
def contar(t) -> dict[str, int]:
    """{peça: parâmetros} do modelo montado no dispositivo meta: formas de verdade, zero bytes.

    A cabeça amarrada não conta de novo (é a mesma matriz que wte); `named_parameters` já tira
    repetidas. Erros: `RuntimeError` se o modelo tiver um parâmetro que não conhecemos.
    """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=t.n_layer, n_embd=t.n_embd, n_head=t.n_head, vocab_size=t.vocab, n_positions=t.n_ctx
    )
    with torch.device("meta"):
        lm = GPT2LMHeadModel(config)
    lm.tie_weights()
    contagem = dict.fromkeys(PECAS, 0)
    for parametro, tensor in lm.named_parameters():
        peca = next((p for p, fins in PECAS.items() if parametro.endswith(fins)), None)
        if peca is None:
            raise RuntimeError(f"parâmetro fora da tabela: {parametro}")
        contagem[peca] += tensor.numel()
    return contagem


def maior_matriz(t) -> str:
    """O nome da maior matriz isolada do modelo: uma camada conta uma vez, não n."""
    d = t.n_embd
    formas = {
        "wte": (t.vocab, d),
        "wpe": (t.n_ctx, d),
        "c_attn": (d, 3 * d),
        "c_proj": (d, d),
        "c_fc": (d, 4 * d),
        "c_proj (MLP)": (4 * d, d),
    }
    return max(formas, key=lambda n: formas[n][0] * formas[n][1])
