"""As medidas do capítulo 6: ordem, senoides, a camada de entrada, RoPE e projeções.

Como em `medidas_02`: cada função devolve {nome: valor} e reusa os experimentos da lição.
"""

from __future__ import annotations

import json

import torch
from torch import nn

from nucleo.afirmacoes.medidas import PUBLICADO, Contexto, NaoMedido, medida
from nucleo.base import caminhos
from nucleo.contas import arquitetura, permutacao, posicoes, rope
from nucleo.licoes import l06_posicoes as exp
from nucleo.licoes import l06_posicoes_rope as giro
from nucleo.modelos.tamanhos import Tamanho

D, SEMENTE = 64, 6  # os da lição 06_posicoes
SORTEADOS = "pesos sorteados"


@medida("gpt3 (arquitetura)")
def gpt3_pela_largura(ctx: Contexto) -> dict:
    """Bilhões de parâmetros de um GPT de 2048 posições: 96 blocos de largura 4096, 96 de 12288, e
    32 de 4096."""

    def bilhoes(d: int, camadas: int) -> float:
        t = Tamanho("gpt3", camadas, d, 1, 0, n_ctx=2048)
        return sum(arquitetura.formula(t).values()) / 1e9

    return {"bilhoes": bilhoes(4096, 96), "certo": bilhoes(12288, 96), "menor": bilhoes(4096, 32)}


# --- a ordem -----------------------------------------------------------------------------


def _frase():
    palavras, _, _, ordem = exp.frase_e_troca(None, None)
    return palavras, ordem


@medida(SORTEADOS)
def atencao_e_ordem(ctx: Contexto) -> dict:
    """O quanto uma atenção sem posição muda quando duas palavras trocam: as saídas lado a lado
    (invariância), as mesmas destrocadas (equivariância), e a última posição sob máscara causal."""
    palavras, ordem = _frase()
    x = exp.vetores_da_frase(palavras, D, SEMENTE)  # (T, d)
    camadas = permutacao.sortear_camadas(1, D, SEMENTE)
    lado_a_lado = permutacao.empilhar(x[ordem], camadas) - permutacao.empilhar(x, camadas)
    linhas = {(m, n, onde[:2]): v for _, m, n, onde, v, _ in exp.percebe_a_ordem(palavras, ordem, D, SEMENTE).linhas[:8]}  # fmt: skip
    return {
        "lado_a_lado": float(lado_a_lado.abs().max()),
        "destrocadas": linhas["nenhuma", 1, "to"],
        "ultima_sem_mascara": linhas["nenhuma", 2, "só"],
        "ultima_causal_1": linhas["causal", 1, "só"],
        "ultima_causal_2": linhas["causal", 2, "só"],
    }


@medida(SORTEADOS)
def trocar_dois_tokens(ctx: Contexto) -> dict:
    """A distância entre as duas frases do exercício, vistas como bolsas de vetores, sem e com posição."""
    palavras, _ = _frase()
    sem, com, *_ = exp.trocar_dois(palavras, 1, 4, D, SEMENTE).linhas
    return {"sem_posicao": sem[1], "com_posicao": com[1]}


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
def senoides_fora_do_treino(ctx: Contexto, pos: int) -> dict:
    """A senoide numa posição distante: é finita? E quantos parâmetros a camada dela treina?"""
    linha = posicoes.senoides([pos], D)[0]  # (d,)
    camada = posicoes.CodificacaoPosicional(D, 100)
    return {
        "finita": bool(linha.isfinite().all()), "maior": float(linha.abs().max()),
        "parametros": sum(p.numel() for p in camada.parameters()),
    }  # fmt: skip


@medida()
def comprimentos_de_onda(ctx: Contexto, d: int) -> dict:
    """O menor e o maior comprimento de onda, em posições, e quantos diferentes há."""
    ondas = posicoes.comprimentos_de_onda(d)  # (d/2,)
    return {"menor": float(ondas.min()), "maior": float(ondas.max()), "diferentes": len(ondas.unique())}  # fmt: skip


@medida()
def senoides_conferidas(ctx: Contexto) -> dict:
    """As diferenças da lição: a tabela contra a fórmula e o XLM, e M(k) · PE contra PE adiante."""
    nomes = ("a_mao", "xlm", "um", "sete", "cem")
    return dict(zip(nomes, (c.medido for c in exp.conferir_senoides(D, 128)), strict=False))


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


@medida("camada recém-sorteada")
def equilibrio_da_referencia(ctx: Contexto) -> dict:
    """Norma do token, da posição e a razão, com a inicialização do nn.Embedding vezes √512."""
    _, _, token, posicao, razao = exp.equilibrio(512, SEMENTE).linhas[0]
    return {"token": token, "posicao": posicao, "razao": razao}


# --- o código de referência --------------------------------------------------------------


@medida()
def erro_das_frequencias(ctx: Contexto, d: int) -> dict:
    """O maior erro relativo das frequências em float32, por exp(log) e pela potência direta."""
    return {nome: exp.erro_das_frequencias(d, nome) for nome in ("exp_log", "potencia")}


@medida()
def somas_conferidas(ctx: Contexto) -> dict:
    """A soma com broadcasting contra três laços, e o dropout de 10 % no treino e ao avaliar."""
    zerada, _, avaliacao = exp.dropout_medido(0.1, SEMENTE)
    return {"diferenca": exp.broadcasting(30, 16, 7, 2).medido,
            "treino": zerada.medido, "avaliacao": avaliacao.medido}  # fmt: skip


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


@medida()
def formas_da_entrada(ctx: Contexto) -> dict:
    """As formas dos ids, dos embeddings, da posição e da soma, lidas da camada enquanto roda."""
    f = exp.formas(30, 16, 7, 2, 64)
    return {"ids": list(f["ids"]), "embeddings": list(f["E[ids]"]), "posicao": list(f["PE[:T]"]),
            "saida": list(f["saída"]), "d": f["E"][1]}  # fmt: skip


# --- RoPE --------------------------------------------------------------------------------


@medida()
def rope_conferido(ctx: Contexto) -> dict:
    """As diferenças da lição: RoPE contra a matriz 2 × 2, a norma, e q·k deslocado de uma posição."""
    c = giro.conferir_rope(D, 48, SEMENTE)
    return {"lento": c[0].medido, "norma": c[5].medido, "diferenca": c[6].medido}


@medida("gpt-j e llama (código da biblioteca)")
def pareamento_nas_bibliotecas(ctx: Contexto) -> dict:
    """A maior diferença entre girar os pares (2i, 2i+1) e o que fazem o GPT-J e o Llama."""
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    q = torch.randn(1, 1, 32, D, generator=exp.gerador(SEMENTE))  # (B, H, T, d)
    nosso = rope.rope(q.double())
    sen, cos = create_sinusoidal_positions(32, D).chunk(2, -1)
    do_gptj = gptj(q.transpose(1, 2), sen[None], cos[None]).transpose(1, 2)
    llama = LlamaRotaryEmbedding(giro.config_llama(D))(q, torch.arange(32)[None])
    do_llama = apply_rotary_pos_emb(q, q, *llama)[0]
    return {
        "gptj": float((nosso - do_gptj).abs().max()),
        "llama": float((nosso - do_llama).abs().max()),
    }


@medida("llama (código da biblioteca)")
def o_que_o_rope_gira(ctx: Contexto) -> dict:
    """Num bloco de atenção do Llama, entre mudar as posições e não mudar: quanto mudam q, k e v."""
    from transformers.models.llama import modeling_llama as llama

    config = giro.config_llama(D)
    config._attn_implementation = "eager"
    torch.manual_seed(SEMENTE)
    camada = llama.LlamaAttention(config, 0).eval()
    x = torch.randn(1, 5, D, generator=exp.gerador(SEMENTE))
    vistos: list = []
    original = llama.eager_attention_forward

    def espiar(modulo, q, k, v, *resto, **mais):
        vistos.append((q, k, v))
        return original(modulo, q, k, v, *resto, **mais)

    giro_ = llama.LlamaRotaryEmbedding(config)
    llama.eager_attention_forward = espiar
    try:
        with torch.no_grad():
            for inicio in (0, 9):
                camada(x, position_embeddings=giro_(x, torch.arange(inicio, inicio + 5)[None]),
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


@medida()
def esticar_frequencias(ctx: Contexto, treino: int, fator: int) -> dict:
    """Por quanto o linear e o NTK dividem o par mais rápido e o mais lento."""
    r = giro.razoes(D, treino, fator)
    return {
        "linear_rapido": float(r["linear"][0]), "linear_lento": float(r["linear"][-1]),
        "ntk_rapido": float(r["NTK"][0]), "ntk_lento": float(r["NTK"][-1]),
    }  # fmt: skip


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
