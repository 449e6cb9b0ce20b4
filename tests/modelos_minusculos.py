"""Um modelo minúsculo e sorteado de cada família do registro, montado pelo transformers.

Os pesos todos são sorteados (viés e normas também): um programa que esquecesse um deles passaria
com os zeros e uns que a biblioteca põe no começo.
"""

from functools import cache
from pathlib import Path

VOCAB = 320
IDS = [3, 5, 7, 9, 5]

# {família: o nome que o seu config dá a cada medida}; o resto é igual em todas.
_COMUM = {
    "d": "hidden_size", "camadas": "num_hidden_layers", "cabecas": "num_attention_heads",
    "n_ctx": "max_position_embeddings", "dentro": "intermediate_size",
}  # fmt: skip
_GPT2 = {"d": "n_embd", "camadas": "n_layer", "cabecas": "n_head", "n_ctx": "n_positions"}
_NOMES = {
    "gpt2": _GPT2, "gptj": _GPT2, "gpt_bigcode": _GPT2,
    "gpt_neo": {"d": "hidden_size", "cabecas": "num_heads", "n_ctx": "max_position_embeddings"},
    "opt": _COMUM | {"dentro": "ffn_dim"},
    "bloom": {"d": "hidden_size", "camadas": "n_layer", "cabecas": "n_head"},
    "mpt": {"d": "d_model", "camadas": "n_layers", "cabecas": "n_heads", "n_ctx": "max_seq_len"},
    "distilbert": {
        "d": "dim", "camadas": "n_layers", "cabecas": "n_heads", "dentro": "hidden_dim",
        "n_ctx": "max_position_embeddings",
    },
    "t5": {"d": "d_model", "camadas": "num_layers", "cabecas": "num_heads", "dentro": "d_ff"},
}  # fmt: skip
_AGRUPADAS = [
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "granite",
    "phi3",
    "cohere",
    "olmo2",
    "stablelm",
    "smollm3",
]
CODIFICADORES = [
    "bert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "distilbert",
    "mpnet",
    "electra",
    "albert",
    "modernbert",
    "t5",
]
# Os caminhos de uma mesma família que mudam a conta: também são montados.
VARIANTES = {
    "opt_projetado": ("opt", {"word_embed_proj_dim": 8}),
    "falcon_alibi": ("falcon", {"alibi": True}),
    "falcon_novo": ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "electra_estreito": ("electra", {"embedding_size": 8}),
    "gemma2_teto": ("gemma2", {"final_logit_softcapping": 0.5}),
    "granite_fatores": (
        "granite", {"embedding_multiplier": 12.0, "logits_scaling": 8.0, "tie_word_embeddings": True},
    ),
    "biogpt_sem_escala": ("biogpt", {"scale_embedding": False}),
    "distilbert_senoides": ("distilbert", {"sinusoidal_pos_embds": True}),
    "roberta_outro_enchimento": ("roberta", {"pad_token_id": 0}),
    "llama_amarrado": ("llama", {"tie_word_embeddings": True}),
    "gpt2_solto": ("gpt2", {"tie_word_embeddings": False}),
    "phi3_parcial": ("phi3", {"rope_parameters": {
        "rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.75}}),
    "qwen2_amarrado": ("qwen2", {"tie_word_embeddings": True}),
}  # fmt: skip


def config(nome: str, d=16, camadas=2, cabecas=4, n_ctx=24, **mais):
    """O config de uma família (ou variante), com estas medidas."""
    from transformers import AutoConfig

    familia, extra = VARIANTES.get(nome, (nome, {}))
    medidas = {"d": d, "camadas": camadas, "cabecas": cabecas, "n_ctx": n_ctx, "dentro": 20}
    dados = {_NOMES.get(familia, _COMUM).get(m): v for m, v in medidas.items()}
    dados.pop(None, None)
    dados |= {"vocab_size": VOCAB}
    if familia in _AGRUPADAS:
        dados |= {"num_key_value_heads": max(1, cabecas // 2), "pad_token_id": 0}
    if familia in ("qwen3", "gemma", "gemma2", "gemma3_text"):
        dados["head_dim"] = d // cabecas
    proprios = {
        "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]]},
        "gptj": {"rotary_dim": max(2, d // cabecas // 2 // 2 * 2)},
        "opt": {"word_embed_proj_dim": d},
        "albert": {"embedding_size": 8},
        "electra": {"embedding_size": d},
        "t5": {"d_kv": d // cabecas},
        "modernbert": {"pad_token_id": 0},
    }
    return AutoConfig.for_model(familia, **(dados | proprios.get(familia, {}) | extra | mais))


def montar(nome: str, semente: int = 1, com_cabeca: bool = True, **medidas):
    """O modelo (torch, float32, eval) com todos os pesos sorteados, e a cabeça se `com_cabeca`."""
    import torch
    import transformers as tf

    c = config(nome, **medidas)
    familia = VARIANTES.get(nome, (nome, {}))[0]
    torch.manual_seed(semente)
    if familia == "t5":
        lm = tf.T5EncoderModel(c)
    elif not com_cabeca:
        lm = tf.AutoModel.from_config(c)
    elif familia in CODIFICADORES:
        lm = tf.AutoModelForMaskedLM.from_config(c)
    else:
        lm = tf.AutoModelForCausalLM.from_config(c)
    with torch.no_grad():
        for p in lm.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return lm.eval()


def salvar(lm, pasta: Path) -> Path:
    """Grava o modelo e um BPE de bytes com algumas palavras inteiras; devolve a pasta."""
    lm.save_pretrained(pasta)
    (pasta / "tokenizer.json").write_text(_tokenizador(), encoding="utf-8")
    return pasta


@cache
def _tokenizador() -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    alfabeto = pre_tokenizers.ByteLevel.alphabet()
    treino = trainers.BpeTrainer(vocab_size=VOCAB, initial_alphabet=alfabeto, show_progress=False)
    tok.train_from_iterator([" king queen man woman house water"] * 9, treino)
    # O que faltar para as linhas da tabela são tokens que ninguém escreve, mas que existem.
    tok.add_tokens([f"<sobra{i}>" for i in range(VOCAB - tok.get_vocab_size())])
    return tok.to_str()
