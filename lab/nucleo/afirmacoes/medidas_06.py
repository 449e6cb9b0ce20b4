"""As medidas do capítulo 6 que nenhuma lição faz.

Como em `medidas_02`: cada função devolve {nome: valor}. O que as lições medem, as afirmações leem
pelo id.
"""

from __future__ import annotations

import json

import torch
from torch import nn

from nucleo.afirmacoes.das_licoes import NaoMedido
from nucleo.afirmacoes.registro import PUBLICADO, Contexto, medida
from nucleo.base import caminhos
from nucleo.contas import arquitetura, posicoes, posicoes_no_modelo, rope
from nucleo.modelos.tamanhos import Tamanho


@medida("gpt3 (arquitetura)")
def gpt3_pela_largura(ctx: Contexto) -> dict:
    """Bilhões de parâmetros de um GPT de 2048 posições: 96 blocos de largura 4096, 96 de 12288, e
    32 de 4096."""

    def bilhoes(d: int, camadas: int) -> float:
        t = Tamanho("gpt3", camadas, d, 1, 0, n_ctx=2048)
        return sum(arquitetura.formula(t).values()) / 1e9

    return {"bilhoes": bilhoes(4096, 96), "certo": bilhoes(12288, 96), "menor": bilhoes(4096, 32)}


# --- a ordem -----------------------------------------------------------------------------


@medida()
def paralelo_contra_um_por_um(ctx: Contexto) -> dict:
    """A maior diferença entre os logits da frase lida de uma vez e lida token a token."""
    lm, tok = ctx.dono.completo(), ctx.dono.tokenizador
    ids = torch.tensor([tok.ids("O homem olhou para a mulher")])
    with torch.no_grad():
        juntos = lm(ids).logits[0]  # (n, V)
        um_por_um = torch.stack([lm(ids[:, : n + 1]).logits[0, -1] for n in range(ids.shape[1])])
    return {"diferenca": float((juntos - um_por_um).abs().max()), "tokens": ids.shape[1]}


# --- as senoides -------------------------------------------------------------------------


@medida()
def senoides_fora_do_treino(ctx: Contexto, pos: int, d: int) -> dict:
    """A senoide numa posição distante: é finita? E quantos parâmetros a camada dela treina?"""
    linha = posicoes.senoides([pos], d)[0]  # (d,)
    camada = posicoes.CodificacaoPosicional(d, 100)
    return {
        "finita": bool(linha.isfinite().all()), "maior": float(linha.abs().max()),
        "parametros": sum(p.numel() for p in camada.parameters()),
    }  # fmt: skip


@medida("", PUBLICADO, "Press et al. 2021, WikiText-103 (data/extrapolacao/publicados.json)")
def senoides_publicadas(ctx: Contexto) -> dict:
    """A perplexidade publicada de um modelo senoidal no treino e além dele, e a razão."""
    arquivo = caminhos.DADOS / "extrapolacao" / "publicados.json"
    linhas = json.loads(arquivo.read_text(encoding="utf-8"))["press"]["linhas"]
    s = next(x for x in linhas if x["esquema"] == "senoidal")
    return {"antes": s["no_treino"], "depois": s["depois"], "em": s["em"], "razao": s["depois"] / s["no_treino"]}  # fmt: skip


@medida("bert (arquitetura)")
def posicoes_do_bert(ctx: Contexto) -> dict:
    """A tabela de posições do BERT da biblioteca é um parâmetro que se treina?"""
    from transformers import BertConfig, BertModel

    with torch.device("meta"):
        nomes = dict(BertModel(BertConfig(num_hidden_layers=1)).named_parameters())
    return {"treinavel": nomes["embeddings.position_embeddings.weight"].requires_grad}


# --- o código de referência --------------------------------------------------------------


@medida()
def potencias_diretas(ctx: Contexto, d: int) -> dict:
    """A maior potência 10000^(2i/d) em float32, e quantas estouram ou somem."""
    p = torch.tensor(posicoes.BASE) ** (torch.arange(0, d, 2) / d)  # (d/2,)
    return {"maior": float(p.max()), "perdidas": int((~p.isfinite() | (p == 0)).sum())}


@medida()
def exp_do_ln(ctx: Contexto) -> dict:
    """O maior erro relativo de exp(ln x) entre 1 e 10000, em float64 e em float32."""
    erros = {}
    for nome, tipo in (("float64", torch.float64), ("float32", torch.float32)):
        x = torch.linspace(1, posicoes.BASE, 10_001, dtype=tipo)
        erros[nome] = float(((x.log().exp() - x) / x).abs().max())
    return erros


class _Somadora(nn.Module):
    # O que o capítulo descreve, no menor tamanho: uma tabela em buffer somada à entrada.
    def __init__(self, d: int, max_len: int):
        super().__init__()
        pe = torch.zeros(max_len, d)
        angulos = torch.arange(max_len)[:, None] * posicoes.BASE ** (-torch.arange(0, d, 2) / d)
        pe[:, 0::2], pe[:, 1::2] = angulos.sin(), angulos.cos()
        self.register_buffer("pe", pe[None])  # (1, max_len, d)
        self.peso = nn.Parameter(torch.ones(d))

    def forward(self, x):
        """(B, T, d) -> (B, T, d): um peso treinável, para o otimizador ter o que mudar, e a soma."""
        return x * self.peso + self.pe[:, : x.shape[1]]


@medida()
def buffer_e_otimizador(ctx: Contexto) -> dict:
    """O buffer está no state_dict? Um passo de treino o muda? E carrega com outro max_len?"""
    camada = _Somadora(8, 16)
    antes, peso = camada.pe.clone(), camada.peso.detach().clone()
    otimizador = torch.optim.SGD(camada.parameters(), lr=0.1)
    camada(torch.ones(2, 16, 8)).pow(2).sum().backward()
    otimizador.step()
    try:
        _Somadora(8, 32).load_state_dict(camada.state_dict())
        outro = "carrega"
    except RuntimeError:
        outro = "não carrega"
    return {
        "no_state_dict": "pe" in camada.state_dict(),
        "mudanca": float((camada.pe - antes).abs().max()),
        "peso_mudou": bool((camada.peso.detach() != peso).any()),  # o passo aconteceu de verdade
        "outro_max_len": outro,
    }


@medida()
def broadcasting_e_gradiente(ctx: Contexto) -> dict:
    """O broadcasting copia a tabela para cada item do lote? O gradiente passa intacto pela soma?"""
    pe = _Somadora(8, 16).pe
    aberta = pe.expand(4, 16, 8)  # o que a soma faz por dentro: (1, 16, 8) -> (4, 16, 8)
    x = torch.zeros(4, 16, 8, requires_grad=True)
    (x + pe).sum().backward()
    return {
        "bytes_a_mais": aberta.untyped_storage().nbytes() - pe.untyped_storage().nbytes(),
        "mesma_memoria": aberta.data_ptr() == pe.data_ptr(),
        "gradiente": float(x.grad.min()), "forma_mantida": (x + pe).shape == x.shape,
    }  # fmt: skip


@medida()
def classe_em_apuros(ctx: Contexto) -> dict:
    """A receita do capítulo com d par, com d ímpar, e com uma sequência além do max_len."""

    def tentar(d: int, T: int) -> str:
        try:
            return "funciona" if _Somadora(d, 16)(torch.zeros(1, T, d)).isfinite().all() else "NaN"
        except RuntimeError:
            return "RuntimeError"

    return {"par": tentar(8, 16), "impar": tentar(7, 16), "alem": tentar(8, 17)}


# --- RoPE --------------------------------------------------------------------------------


@medida("gpt-j e llama (código da biblioteca)")
def pareamento_nas_bibliotecas(ctx: Contexto, d: int, semente: int) -> dict:
    """A maior diferença entre girar os pares (2i, 2i+1) e o que fazem o GPT-J e o Llama."""
    sorteio = torch.Generator().manual_seed(semente)
    q = torch.randn(1, 1, 32, d, generator=sorteio)  # (B, H, T, d)
    nosso = rope.rope(q.double())
    return {
        "gptj": float((nosso - posicoes_no_modelo.girado_pelo_gptj(q)).abs().max()),
        "llama": float((nosso - posicoes_no_modelo.girado_pelo_llama(q)).abs().max()),
    }


@medida("llama (código da biblioteca)")
def o_que_o_rope_gira(ctx: Contexto, d: int, semente: int) -> dict:
    """Num bloco de atenção do Llama, entre mudar as posições e não mudar: quanto mudam q, k e v."""
    from transformers.models.llama import modeling_llama as llama

    config = posicoes_no_modelo.config_llama(d)
    config._attn_implementation = "eager"
    torch.manual_seed(semente)
    camada = llama.LlamaAttention(config, 0).eval()
    x = torch.randn(1, 5, d, generator=torch.Generator().manual_seed(semente))
    vistos: list = []
    original = llama.eager_attention_forward

    def espiar(modulo, q, k, v, *resto, **mais):
        vistos.append((q, k, v))
        return original(modulo, q, k, v, *resto, **mais)

    giro = llama.LlamaRotaryEmbedding(config)
    llama.eager_attention_forward = espiar
    try:
        with torch.no_grad():
            for inicio in (0, 9):
                camada(x, position_embeddings=giro(x, torch.arange(inicio, inicio + 5)[None]),
                       attention_mask=None)  # fmt: skip
    finally:
        llama.eager_attention_forward = original
    if len(vistos) != 2:
        raise NaoMedido("esta versão do transformers não passa pela atenção que sabemos espiar")
    return {n: float((a - b).abs().max()) for n, a, b in zip("qkv", *vistos, strict=True)}


@medida("código da biblioteca")
def modelos_com_rope(ctx: Contexto, nomes: list[str]) -> dict:
    """Em quantos destes modelos o código da biblioteca gira q e k."""
    from importlib.util import find_spec
    from pathlib import Path

    pasta = Path(find_spec("transformers").origin).parent / "models"
    com = [
        n for n in nomes
        if "apply_rotary_pos_emb(" in (pasta / n / f"modeling_{n}.py").read_text(encoding="utf-8")
    ]  # fmt: skip
    return {"com_rope": len(com), "quais": com}


# --- projeções ---------------------------------------------------------------------------


@medida()
def pca_e_linear(ctx: Contexto) -> dict:
    """A PCA manda o meio de duas linhas de wte no meio das suas projeções? (erro, sobre o tamanho)"""
    import numpy as np

    from nucleo.contas import projecoes

    X = np.asarray(ctx.modelo.wte[:200], dtype=np.float64)
    # O ponto do meio entra junto com os outros, e tem de cair no meio do segmento projetado.
    meio = X[:100].mean(0, keepdims=True)
    Y = projecoes.pca(np.concatenate([X, meio]))
    erro = np.abs(Y[-1] - Y[:100].mean(0)).max() / np.abs(Y).max()
    return {"erro": float(erro)}
