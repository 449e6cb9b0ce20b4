"""O que a apostila 02 afirma e nenhuma lição mede: contas da arquitetura, do tokenizador e da wte.

Cada função devolve {nome: valor}. O que uma lição grava no resultado.json não está aqui: a afirmação
aponta para lá, pelo id.
"""

from __future__ import annotations

import numpy as np

from nucleo.afirmacoes.das_licoes import NaoMedido
from nucleo.afirmacoes.registro import GUARDADO, PUBLICADO, Contexto, medida
from nucleo.contas import arquitetura, tabela_posicoes, vetores
from nucleo.modelos import gpt2_medido, pontas
from nucleo.modelos.tamanhos import TAMANHOS
from nucleo.modelos.tokens import visivel

ARQUITETURA, TOKENIZADOR = "gpt2 (arquitetura)", "gpt2 (tokenizador)"
GPT2 = "gpt2"


# --- arquitetura -------------------------------------------------------------------------


@medida("{nome} (arquitetura)")
def tamanhos(ctx: Contexto, nome: str) -> dict:
    """Contagens de um GPT-2 montado pela biblioteca, sem pesos: V, d, n_ctx, wte, wpe e total; e
    quanto ocupam as duas tabelas em float32."""
    import torch

    conta, t = arquitetura.contar(TAMANHOS[nome]), TAMANHOS[nome]
    d = conta["LayerNorm"] // (2 * (2 * t.n_layer + 1))  # cada norma tem peso e viés
    total, bytes_ = sum(conta.values()), torch.float32.itemsize
    return {
        "d": d, "V": conta["wte"] // d, "n_ctx": conta["wpe"] // d,
        "wte": conta["wte"], "wpe": conta["wpe"], "milhoes_da_wte": conta["wte"] / 1e6,
        "total": total, "milhoes": total / 1e6,
        "bytes_por_float": bytes_, "megabytes": (conta["wte"] + conta["wpe"]) * bytes_ / 1e6,
    }  # fmt: skip


def _gpt2_sem_pesos():
    # No dispositivo meta há formas e nomes, e nenhum número: monta-se num instante.
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        lm = GPT2LMHeadModel(GPT2Config())
    lm.tie_weights()
    return lm.eval()


@medida(ARQUITETURA)
def pontas_da_biblioteca(ctx: Contexto) -> dict:
    """As duas tabelas do GPT-2 na biblioteca: os nomes, e se wpe se treina; e a cabeça: é a mesma
    wte? quantos parâmetros ela soma?"""
    lm = _gpt2_sem_pesos()
    parametros = dict(lm.named_parameters())
    cabeca, corpo = lm.lm_head.weight, lm.transformer
    return {
        "wte": "transformer.wte.weight" in parametros,
        "wpe": "transformer.wpe.weight" in parametros,
        "wpe_treinavel": corpo.wpe.weight.requires_grad,
        "mesma": cabeca is corpo.wte.weight,
        "novos": sum(p.numel() for p in lm.parameters())
        - sum(p.numel() for p in corpo.parameters()),
        "milhoes_da_saida": cabeca.numel() / 1e6,
        "forma": list(cabeca.shape),
    }


@medida(ARQUITETURA)
def formas_pelos_blocos(ctx: Contexto, n: int) -> dict:
    """As formas do estado na entrada e depois de cada bloco do GPT-2, para n tokens."""
    import torch

    with torch.no_grad():
        ids = torch.zeros(1, n, dtype=torch.long, device="meta")
        estados = _gpt2_sem_pesos()(ids, output_hidden_states=True).hidden_states
    formas = [tuple(e.shape[1:]) for e in estados]
    return {"blocos": len(formas) - 1, "formas_diferentes": len(set(formas)), "forma": formas[-1]}


@medida(ARQUITETURA)
def limite_de_posicoes(ctx: Contexto) -> dict:
    """Um GPT-2 com 1024 posições (uma camada estreita, pesos sorteados) lê 1024 tokens? E 1025?"""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    lm = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=1, vocab_size=10)).eval()
    respostas = {}
    for nome, n in (("cabem", 1024), ("a_mais", 1025)):
        try:
            with torch.no_grad():
                lm(torch.zeros(1, n, dtype=torch.long))
            respostas[nome] = "aceita"
        except IndexError:
            respostas[nome] = "erro de índice"
    return respostas | {"posicoes": lm.transformer.wpe.num_embeddings}


@medida("os quatro gpt2 (arquitetura)")
def maior_matriz_nos_quatro(ctx: Contexto) -> dict:
    """Em quantos dos quatro GPT-2 a maior matriz isolada é a wte."""
    nomes = [arquitetura.maior_matriz(t) for t in TAMANHOS.values()]
    return {"com_wte": nomes.count("wte"), "quantos": len(nomes)}


# --- tokenizador e one-hot ---------------------------------------------------------------


@medida(TOKENIZADOR)
def token_de_um_id(ctx: Contexto, id: int, palavra: str) -> dict:
    """O que o id escreve no vocabulário do GPT-2, e em quantos tokens a palavra se parte."""
    ids = ctx.gpt2.ids(palavra)
    return {"texto": ctx.gpt2.texto(id), "ids": [str(i) for i in ids], "tokens": len(ids), "primeiro": ctx.gpt2.texto(ids[0])}  # fmt: skip


@medida(TOKENIZADOR)
def tokens_da_frase(ctx: Contexto, frase: str) -> dict:
    """Quantos tokens a frase tem no GPT-2, e quais."""
    pedacos = ctx.gpt2.pedacos(frase)
    return {
        "tokens": len(pedacos), "pedacos": " ".join(map(visivel, pedacos)),
        "linhas": len(pedacos), "colunas": tamanhos(ctx, "gpt2")["d"],
    }  # fmt: skip


@medida(TOKENIZADOR)
def mesmos_tokens(ctx: Contexto, frases: list[str]) -> dict:
    """As frases têm os mesmos tokens, a menos da ordem?"""
    um, outro = (sorted(ctx.gpt2.ids(f)) for f in frases)
    return {"iguais": um == outro, "tokens": len(um)}


@medida(TOKENIZADOR)
def tokens_no_vocabulario(ctx: Contexto) -> dict:
    """Quantos tokens o vocabulário do GPT-2 tem."""
    return {"tokens": ctx.gpt2.tamanho}


@medida(ARQUITETURA)
def vetor_onehot(ctx: Contexto, id: int) -> dict:
    """O one-hot de um id no tamanho do GPT-2: casas, quantas não são zero, e o valor na casa."""
    e = vetores.onehot(id, ctx.gpt2.tamanho)  # (V,)
    return {"casas": len(e), "nao_nulas": int(np.count_nonzero(e)), "na_casa": float(e[id])}


@medida(ARQUITETURA)
def contas_da_consulta(ctx: Contexto) -> dict:
    """Multiplicações de onehot · W e da consulta por índice, contadas pelo torch operação a operação."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    V = ctx.gpt2.tamanho
    tabela = torch.nn.Embedding(V, tamanhos(ctx, "gpt2")["d"], device="meta")
    with FlopCounterMode(display=False) as produto:
        torch.empty(1, V, device="meta") @ tabela.weight  # (1, V) @ (V, d) -> (1, d)
    with FlopCounterMode(display=False) as indice:
        tabela(torch.zeros(1, dtype=torch.long, device="meta"))
    # O contador conta cada multiplicação e cada soma: metade são multiplicações.
    return {
        "multiplicacoes": produto.get_total_flops() // 2,
        "pelo_indice": indice.get_total_flops(),
        "V": V,
    }


# --- a wte do modelo de hoje -------------------------------------------------------------


@medida()
def ids_vizinhos(ctx: Contexto) -> dict:
    """O cosseno médio entre tokens de ids seguidos, e quanto ele passa do de tokens quaisquer."""
    W, n = ctx.modelo.wte, np.where(ctx.normas > 0, ctx.normas, 1)
    produtos = np.einsum("vd,vd->v", W[1:], W[:-1])  # (V−1, d) -> (V−1,)
    seguidos = float((produtos / n[1:] / n[:-1]).mean())
    return {"seguidos": seguidos, "diferenca": seguidos - vetores.anisotropia(W, ctx.normas)}


def _que_cabem(ctx: Contexto, en: list, pt: list) -> list:
    # Só as tuplas em que toda palavra é um token só no vocabulário de hoje.
    tok = ctx.modelo.tokenizador
    tuplas = [[tok.procurar(p) for p in t] for t in (en if ctx.palavras.idioma == "en" else pt)]
    cabem = [t for t in tuplas if all(t)]
    if not cabem:
        raise NaoMedido(f"as palavras não são um token só no {ctx.modelo.nome}; no gpt2 são")
    return cabem


@medida()
def pares_de_palavras(ctx: Contexto, en: list, pt: list) -> dict:
    """Os cossenos dos pares que cabem, no idioma do modelo: o menor e a média."""
    W = ctx.modelo.wte
    cossenos = [vetores.cosseno(W[a.id], W[b.id]) for a, b in _que_cabem(ctx, en, pt)]
    return {"menor": min(cossenos), "media": float(np.mean(cossenos))}


@medida()
def sentido_contra_oposto(ctx: Contexto, parecidas: dict, opostas: dict) -> dict:
    """O cosseno médio de pares de sentido parecido, e o de pares opostos."""
    um, outro = pares_de_palavras(ctx, **parecidas), pares_de_palavras(ctx, **opostas)
    return {"parecidas": um["media"], "opostas": outro["media"]}


# --- a wpe e a soma: o modelo de hoje, se tem wpe, ou o mini -----------------------------


@medida()
def entrada_do_modelo(ctx: Contexto) -> dict:
    """Na entrada que a biblioteca calcula: o que sobra na posição 0, tirado o conteúdo, contra a
    linha 0 de wpe; e a forma é a do conteúdo?"""
    dono = ctx.dono
    ids = dono.tokenizador.ids("O homem olhou para a mulher")
    h0 = pontas.passar(dono, ids).h0  # (n, d)
    o_que, onde = pontas.partes_de_h0(dono, ids)  # (n, d), (n, d)
    return {
        "linha_0": float(np.abs(h0[0] - o_que[0] - onde[0]).max()),
        "forma_mantida": h0.shape == o_que.shape,
    }


@medida()
def conteudo_contra_posicao(ctx: Contexto, sorteados: int = 2000) -> dict:
    """O |cosseno| entre linhas de wte sorteadas e todas as de wpe; e que fração das somas ainda diz
    o token e a posição a quem só procura a linha mais próxima, uma tabela de cada vez."""
    dono = ctx.dono
    sorteio = np.random.default_rng(2)
    wpe = np.asarray(dono.wpe[dono.ficha.primeira :])  # (n, d)
    ids = sorteio.integers(0, dono.V, sorteados)
    W = np.asarray(dono.wte[ids])  # (sorteados, d)
    unitarias = [x / np.maximum(np.linalg.norm(x, axis=1), 1e-12)[:, None] for x in (W, wpe)]
    cossenos = np.abs(unitarias[0] @ unitarias[1].T)  # (sorteados, n)
    lugares = sorteio.integers(0, len(wpe), sorteados)
    h = W - dono.wte.mean(0) + (wpe - wpe.mean(0))[lugares]  # (sorteados, d)
    achados = [_linha_mais_proxima(h, tabela_posicoes.centrar(t)) for t in (dono.wte, wpe)]
    return {
        "media": float(cossenos.mean()), "maior": float(cossenos.max()),
        "token_achado": float((achados[0] == ids).mean()),
        "posicao_achada": float((achados[1] == lugares).mean()),
    }  # fmt: skip


def _linha_mais_proxima(h: np.ndarray, tabela: np.ndarray) -> np.ndarray:
    # ‖h − t‖² = ‖h‖² − 2·h·t + ‖t‖²: a menor é a de maior h·t − ‖t‖²/2. (n, d), (m, d) -> (n,)
    return (h @ tabela.T - np.einsum("md,md->m", tabela, tabela) / 2).argmax(1)


@medida("sorteio em 768 dimensões")
def vetores_sorteados(ctx: Contexto, d: int, pares: int) -> dict:
    """Cossenos entre pares de vetores sorteados: o |cosseno| médio, e a fração acima de 0,1."""
    c = np.abs(vetores.cossenos_gaussianos(d, pares, semente=2))  # (pares,)
    return {"media": float(c.mean()), "acima_de_um_decimo": float((c > 0.1).mean())}


@medida()
def logits_e_cossenos(ctx: Contexto) -> dict:
    """Dos 10 maiores logits, que fração está entre os 10 maiores cossenos com o mesmo estado
    (média nas posições)."""
    dono = ctx.dono
    passagem = pontas.passar(dono, dono.tokenizador.ids("O homem olhou para a mulher"))
    if dono.cabeca != "amarrada" or dono.ficha.codificador:
        raise NaoMedido(f"a cabeça de {dono.nome} não é só a wte amarrada")
    normas = np.maximum(vetores.normas_das_linhas(dono.wte), 1e-12)  # (V,)
    comuns = [
        len(set(vetores.mais_altos(x, 10)) & set(vetores.mais_altos(x / normas, 10)))
        for x in passagem.logits  # (V,) de cada posição
    ]
    return {"em_comum": float(np.mean(comuns) / 10)}


@medida("transformers, importado como na listagem")
def nome_sem_importar(ctx: Contexto, importa: list[str], usa: str) -> dict:
    """Executa a importação que a listagem faz e, depois dela, o nome que a listagem usa."""
    espaco: dict = {}
    exec(f"from transformers import {', '.join(importa)}", espaco)
    try:
        exec(usa, espaco)
        return {"resposta": "funciona"}
    except NameError:
        return {"resposta": "NameError"}


# --- só no GPT-2 verdadeiro, e o que se sabe dele sem ele --------------------------------


@medida(GPT2)
def rainha_no_gpt2(ctx: Contexto) -> dict:
    """king − man + woman nos pesos verdadeiros: os cossenos e os lugares de queen, king e princess."""
    nomes = ("king", "man", "woman", "queen", "princess")
    king, man, woman, queen, princess = (ctx.gpt2.linha(p).id for p in nomes)
    alvo = vetores.vetor_da_analogia(ctx.modelo.wte, king, man, woman)  # (d,)
    notas = vetores.cossenos(ctx.modelo.wte, alvo, ctx.normas)  # (V,)

    def lugar(i: int, fora: tuple[int, ...] = ()) -> int:  # 1 é o primeiro; os de fora não disputam
        return 1 + sum(j not in fora for j in np.flatnonzero(notas > notas[i]).tolist())

    return {
        "queen": float(notas[queen]), "king": float(notas[king]), "princess": float(notas[princess]),
        "lugar_queen": lugar(queen), "lugar_princess": lugar(princess),
        "lugar_sem_entradas": lugar(queen, (king, man, woman)),
        "distancia": float(notas[queen]) - float(notas[princess]),
    }  # fmt: skip


@medida(GPT2, PUBLICADO)
def rainha_publicada(ctx: Contexto) -> dict:
    """O que se publicou da mesma analogia; o de princess foi lido de uma figura (± 0,002)."""
    f = gpt2_medido.fatos()
    exato = {m["id"]: m["esperado"] for m in f["medidas"]}
    queen, king = exato["analogia_queen"], exato["analogia_king"]
    ordem = sorted(
        f["wte_publicado"]["analogia_em_figura"].items() | {("king", king), ("queen", queen)},
        key=lambda x: -x[1],
    )
    nomes = [nome for nome, _ in ordem]
    princess = dict(ordem)["princess"]
    entradas = {"king", "man", "woman"}
    return {
        "queen": queen, "king": king, "princess": princess,
        "lugar_queen": 1 + nomes.index("queen"),
        "lugar_sem_entradas": 1 + [n for n in nomes if n not in entradas].index("queen"),
        "lugar_princess": 1 + nomes.index("princess"), "distancia": queen - princess,
    }  # fmt: skip


@medida(GPT2, PUBLICADO)
def king_com_queen_e_banana_publicado(ctx: Contexto) -> dict:
    """Os mesmos três números, publicados."""
    p = gpt2_medido.fatos()["wte_publicado"]
    return {"perto": p["pares"]["king–queen"], "longe": p["pares"]["king–banana"], "acaso": p["par_ao_acaso"]}  # fmt: skip


@medida(GPT2, GUARDADO)
def linhas_de_wpe_guardadas(ctx: Contexto) -> dict:
    """Cossenos entre linhas de wpe, e os médios a três distâncias, medidos por nós uma vez no GPT-2."""
    f = gpt2_medido.fatos()["wpe_medido"]
    onde = {linha: i for i, linha in enumerate(f["linhas"])}
    cosseno = {par: f["cossenos"][onde[par[0]]][onde[par[1]]] for par in ((0, 1), (1, 2), (1, 500))}
    curva = {int(k): v for k, v in f["defasagem_linhas_1_a_1022"].items()}
    return {
        "um_e_dois": cosseno[1, 2], "um_e_500": cosseno[1, 500], "zero_e_um": cosseno[0, 1],
        "vizinhas": curva[1], "a_256": curva[256], "a_512": curva[512],
    }  # fmt: skip
