"""As medidas da apostila 02: o que se conta na arquitetura, no tokenizador e na wte.

Cada função devolve {nome: valor} e reusa os experimentos da lição; nenhuma conta é feita de novo.
O que a lição já grava no resultado.json não está aqui: a afirmação aponta para lá.
"""

from __future__ import annotations

import numpy as np

from nucleo.afirmacoes.medidas import GUARDADO, PUBLICADO, Contexto, NaoMedido, medida
from nucleo.contas import amarracao, arquitetura, tabela_posicoes, vetores
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos import gpt2_medido, pontas
from nucleo.modelos.tamanhos import TAMANHOS
from nucleo.modelos.tokens import visivel

ARQUITETURA, TOKENIZADOR = "gpt2 (arquitetura)", "gpt2 (tokenizador)"
GPT2 = "gpt2"
PARES, SEMENTE = 20_000, 2  # os da lição 02_embeddings


# --- arquitetura -------------------------------------------------------------------------


@medida(ARQUITETURA)
def tamanhos_do_gpt2(ctx: Contexto) -> dict:
    """Contagens do GPT-2 small montado pela biblioteca, sem pesos: V, d, n_ctx, wte, wpe, total e
    a parte que é uma wte, com a cabeça amarrada e solta."""
    conta = arquitetura.contar(TAMANHOS["gpt2"])
    d = conta["LayerNorm"] // (2 * (2 * TAMANHOS["gpt2"].n_layer + 1))
    amarrado, solto = exp.economia_do_gpt2().linhas
    return {
        "d": d, "V": conta["wte"] // d, "n_ctx": conta["wpe"] // d,
        "wte": conta["wte"], "wpe": conta["wpe"], "milhoes_da_wte": conta["wte"] / 1e6,
        "total": sum(conta.values()), "milhoes": sum(conta.values()) / 1e6,
        "parte": amarrado[2], "total_solto": solto[1], "parte_solto": solto[2],
    }  # fmt: skip


def _gpt2_sem_pesos(**mudancas):
    # No dispositivo meta há formas e nomes, e nenhum número: monta-se num instante.
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        lm = GPT2LMHeadModel(GPT2Config(**mudancas))
    lm.tie_weights()
    return lm.eval()


@medida(ARQUITETURA)
def cabeca_da_biblioteca(ctx: Contexto) -> dict:
    """A cabeça do GPT-2 na biblioteca: é a mesma wte? quantos parâmetros ela soma?"""
    lm = _gpt2_sem_pesos()
    com = sum(p.numel() for p in lm.parameters())
    return {
        "mesma": lm.lm_head.weight is lm.transformer.wte.weight,
        "novos": com - sum(p.numel() for p in lm.transformer.parameters()),
        "milhoes_da_saida": lm.lm_head.weight.numel() / 1e6,
        "forma": list(lm.lm_head.weight.shape),
    }


@medida(ARQUITETURA)
def nomes_dos_pesos(ctx: Contexto) -> dict:
    """Os nomes das duas tabelas no GPT-2 da biblioteca, e se wpe é parâmetro que se treina."""
    parametros = dict(_gpt2_sem_pesos().named_parameters())
    return {
        "wte": "transformer.wte.weight" in parametros,
        "wpe": "transformer.wpe.weight" in parametros,
        "wpe_treinavel": parametros["transformer.wpe.weight"].requires_grad,
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


@medida(ARQUITETURA)
def somar_contra_concatenar(ctx: Contexto) -> dict:
    """Quantas vezes crescem a largura e as multiplicações dos blocos ao concatenar."""
    (_, d, _, somar), (_, d2, _, concatenar) = exp.soma_ou_concatenacao().linhas
    return {"largura": d2, "vezes_a_largura": d2 / d, "vezes_as_contas": concatenar / somar}


@medida("os quatro gpt2 (arquitetura)")
def maior_matriz_nos_quatro(ctx: Contexto) -> dict:
    """Em quantos dos quatro GPT-2 a maior matriz isolada é a wte."""
    nomes = [arquitetura.maior_matriz(t)[0] for t in TAMANHOS.values()]
    return {"com_wte": nomes.count("wte"), "quantos": len(nomes)}


@medida("gpt2-xl (arquitetura)")
def tabelas_do_xl(ctx: Contexto) -> dict:
    """As medidas do XL, quanto ocupam wte + wpe em float32, e os bytes de um float32."""
    import torch

    conta = arquitetura.contar(TAMANHOS["gpt2-xl"])
    t = TAMANHOS["gpt2-xl"]
    bytes_ = torch.float32.itemsize
    return {
        "d": t.n_embd, "V": conta["wte"] // t.n_embd, "n_ctx": conta["wpe"] // t.n_embd,
        "bytes_por_float": bytes_, "megabytes": (conta["wte"] + conta["wpe"]) * bytes_ / 1e6,
    }  # fmt: skip


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
    d = tamanhos_do_gpt2(ctx)["d"]
    return {
        "tokens": len(pedacos), "pedacos": " ".join(map(visivel, pedacos)),
        "linhas": len(pedacos), "colunas": d,
    }  # fmt: skip


@medida(TOKENIZADOR)
def mesmos_tokens(ctx: Contexto, frases: list[str]) -> dict:
    """As frases têm os mesmos tokens, a menos da ordem?"""
    um, outro = (sorted(ctx.gpt2.ids(f)) for f in frases)
    return {"iguais": um == outro, "tokens": len(um)}


@medida(TOKENIZADOR)
def vocabulario(ctx: Contexto) -> dict:
    """Quantos tokens o vocabulário do GPT-2 tem."""
    return {"tokens": ctx.gpt2.tamanho}


@medida(ARQUITETURA)
def vetor_onehot(ctx: Contexto, id: int) -> dict:
    """O one-hot de um id no tamanho do GPT-2: casas, quantas não são zero, e o valor na casa."""
    V = tamanhos_do_gpt2(ctx)["V"]
    e = vetores.onehot(id, V)  # (V,)
    return {"casas": len(e), "nao_nulas": int(np.count_nonzero(e)), "na_casa": float(e[id])}


@medida(ARQUITETURA)
def contas_da_consulta(ctx: Contexto) -> dict:
    """Multiplicações de onehot · W e da consulta por índice, contadas pelo torch operação a operação."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    t = tamanhos_do_gpt2(ctx)
    tabela = torch.nn.Embedding(t["V"], t["d"], device="meta")
    with FlopCounterMode(display=False) as produto:
        torch.empty(1, t["V"], device="meta") @ tabela.weight  # (1, V) @ (V, d) -> (1, d)
    with FlopCounterMode(display=False) as indice:
        tabela(torch.zeros(1, dtype=torch.long, device="meta"))
    # O contador conta cada multiplicação e cada soma: metade são multiplicações.
    return {
        "multiplicacoes": produto.get_total_flops() // 2,
        "pelo_indice": indice.get_total_flops(),
        "V": t["V"],
    }


# --- o que a lição também mede: respondem quando ela ainda não rodou ----------------------


@medida()
def embaralho(ctx: Contexto) -> dict:
    """A diferença entre os vetores de uma frase antes e depois de embaralhar o vocabulário."""
    return {"diferenca": exp.embaralhar(ctx.modelo, ctx.palavras.listas["frase"], SEMENTE).diferenca}  # fmt: skip


@medida()
def distancias_onehot(ctx: Contexto) -> dict:
    """A menor e a maior distância entre os one-hot dos tokens da frase do modelo."""
    ids = ctx.modelo.tokenizador.ids(ctx.palavras.listas["frase"])
    menor, maior = exp.conferir_onehot(ids, ctx.modelo.V)
    return {"menor": menor.medido, "maior": maior.medido}


@medida()
def consulta(ctx: Contexto) -> dict:
    """A diferença entre onehot(i)ᵀ · W e W[i], na palavra de exemplo do modelo."""
    forma = exp.forma_do_exemplo(ctx.modelo.tokenizador, ctx.palavras)
    return {"diferenca": exp.custo_da_consulta(ctx.modelo.wte, forma.id, 1).diferenca}


@medida()
def cosseno_medio(ctx: Contexto) -> dict:
    """O cosseno médio entre todos os pares de linhas de wte."""
    return {"media": vetores.anisotropia(ctx.modelo.wte, ctx.normas)}


# --- a wte do modelo de hoje -------------------------------------------------------------


@medida()
def ids_vizinhos(ctx: Contexto) -> dict:
    """O cosseno médio entre tokens de ids seguidos, e entre tokens quaisquer."""
    W, n = ctx.modelo.wte, np.where(ctx.normas > 0, ctx.normas, 1)
    produtos = np.einsum("vd,vd->v", W[1:], W[:-1])  # (V−1, d) -> (V−1,)
    seguidos = float((produtos / n[1:] / n[:-1]).mean())
    acaso = vetores.anisotropia(W, ctx.normas)
    return {"seguidos": seguidos, "acaso": acaso, "diferenca": seguidos - acaso}


@medida()
def pares_de_palavras(ctx: Contexto, en: list, pt: list) -> dict:
    """Os cossenos dos pares, no idioma do modelo: o menor, a média, e quantos pares couberam; e o
    nível de duas palavras comuns quaisquer."""
    cossenos = [
        vetores.cosseno(ctx.modelo.wte[a.id], ctx.modelo.wte[b.id])
        for a, b in _que_cabem(ctx, en, pt)
    ]
    nivel = exp.niveis(ctx.modelo, ctx.normas, ctx.palavras, PARES, SEMENTE)
    return {
        "menor": min(cossenos), "media": float(np.mean(cossenos)), "pares": len(cossenos),
        "comuns": nivel.palavras, "acaso": float(nivel.tokens.mean()),
    }  # fmt: skip


def _que_cabem(ctx: Contexto, en: list, pt: list) -> list:
    # Só as tuplas em que toda palavra é um token só no vocabulário de hoje.
    tok = ctx.modelo.tokenizador
    tuplas = [[tok.procurar(p) for p in t] for t in (en if ctx.palavras.idioma == "en" else pt)]
    cabem = [t for t in tuplas if all(t)]
    if not cabem:
        raise NaoMedido(f"as palavras não são um token só no {ctx.modelo.nome}; no gpt2 são")
    return cabem


@medida()
def sentido_contra_oposto(ctx: Contexto, parecidas: dict, opostas: dict) -> dict:
    """O cosseno médio de pares de sentido parecido, o de pares opostos, e o de palavras comuns."""
    um, outro = pares_de_palavras(ctx, **parecidas), pares_de_palavras(ctx, **opostas)
    return {"parecidas": um["media"], "opostas": outro["media"], "comuns": um["comuns"]}


@medida()
def palavra_parecida_e_nao(ctx: Contexto, perto: list[str], longe: list[str]) -> dict:
    """O cosseno de um par que devia ser alto e de um que devia ser baixo, e o de dois tokens quaisquer."""
    (a, b), (c, d) = (_que_cabem(ctx, [p], [p])[0] for p in (perto, longe))
    W = ctx.modelo.wte
    return {
        "perto": vetores.cosseno(W[a.id], W[b.id]), "longe": vetores.cosseno(W[c.id], W[d.id]),
        "acaso": vetores.anisotropia(W, ctx.normas),
    }  # fmt: skip


@medida()
def vizinhos_que_sao_forma(ctx: Contexto) -> dict:
    """Que fração dos 10 vizinhos das palavras da lista é a mesma palavra com outra grafia."""
    tipos = []
    for palavra in ctx.palavras.presentes(ctx.palavras.listas["vizinhos"]):
        forma = ctx.modelo.tokenizador.linha(palavra)
        quadro = exp.vizinhos_da_palavra(ctx.modelo, ctx.normas, forma, 10)
        tipos += [tipo for *_, tipo in quadro.linhas]
    if not tipos:
        raise NaoMedido(f"nenhuma palavra da lista é um token só no {ctx.modelo.nome}")
    return {"fracao": tipos.count("forma") / len(tipos), "vizinhos": len(tipos)}


@medida()
def direcao_dos_pares(ctx: Contexto, nome: str) -> dict:
    """O alinhamento médio dos pares de uma direção, o de pares trocados, e o pior par."""
    for linha in exp.direcoes(ctx.modelo, ctx.palavras, SEMENTE).linhas:
        if linha[0] == nome and linha[2] is not None:
            _, pares, certo, trocados, _, pior, quem = linha
            return {"alinhamento": float(certo), "trocados": float(trocados),
                    "pior": float(pior), "quem": quem, "pares": pares}  # fmt: skip
    raise NaoMedido(f"os pares de {nome} não são um token só no {ctx.modelo.nome}")


@medida()
def analogia_da_rainha(ctx: Contexto) -> dict:
    """O lugar da resposta em rei − homem + mulher com tudo permitido e sem as entradas; o ângulo
    entre os dois deslocamentos; o tamanho do passo comparado com o do ponto de partida."""
    listas = ctx.palavras.listas
    nomes = [*listas["analogia"], listas["resposta"]]
    (rei, homem, mulher, rainha) = _que_cabem(ctx, [nomes], [nomes])[0]
    W, entradas = ctx.modelo.wte, (rei.id, homem.id, mulher.id)
    alvo = vetores.vetor_da_analogia(W, *entradas)  # (d,)
    notas = vetores.cossenos(W, alvo, ctx.normas)  # (V,)

    def lugar(excluir=()):
        fora = set(excluir)
        return 1 + sum(i not in fora for i in np.flatnonzero(notas > notas[rainha.id]).tolist())

    passo = W[mulher.id] - W[homem.id]
    return {
        "lugar": lugar(), "lugar_sem_entradas": lugar(entradas),
        "resposta": float(notas[rainha.id]), "partida": float(notas[rei.id]),
        "alinhamento": vetores.cosseno(passo, W[rainha.id] - W[rei.id]),
        "passo": float(np.linalg.norm(passo) / ctx.normas[rei.id]),
        "alvo_e_partida": vetores.cosseno(alvo, W[rei.id]),
    }  # fmt: skip


# --- a wpe e a soma: o modelo de hoje, se tem wpe, ou o mini -----------------------------


@medida()
def h0_contra_a_biblioteca(ctx: Contexto) -> dict:
    """A maior diferença entre wte[ids] + wpe[0…n−1] e o que a biblioteca põe no primeiro bloco; e
    entre o que sobra na posição 0, tirado o conteúdo, e a linha 0 de wpe."""
    dono = ctx.dono
    ids = dono.tokenizador.ids("O homem olhou para a mulher")
    passagem = pontas.passar(dono, ids)
    o_que, onde = pontas.partes_de_h0(dono, ids)
    return {
        "diferenca": exp.conferir_h0(dono, ids, passagem).medido,
        "linha_0": float(np.abs(passagem.h0[0] - o_que[0] - onde[0]).max()),
        "forma_mantida": passagem.h0.shape == o_que.shape,
    }


@medida()
def conteudo_contra_posicao(ctx: Contexto, sorteados: int = 2000) -> dict:
    """O |cosseno| entre linhas de wte sorteadas e todas as de wpe; e que fração das somas ainda diz
    o token e a posição a quem só procura a linha mais próxima, uma tabela de cada vez."""
    dono = ctx.dono
    sorteio = np.random.default_rng(SEMENTE)
    wpe = exp.tabela_de_posicoes(dono)  # (n, d)
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
def vetores_sorteados(ctx: Contexto, d: int) -> dict:
    """Cossenos entre pares de vetores sorteados: o |cosseno| médio, e a fração acima de 0,1."""
    c = np.abs(exp.cossenos_gaussianos(d, PARES, SEMENTE))  # (pares,)
    return {"media": float(c.mean()), "acima_de_um_decimo": float((c > 0.1).mean())}


@medida()
def amarracao_na_memoria(ctx: Contexto) -> dict:
    """No modelo inteiro: mesmo endereço? quem muda a entrada vê a mudança na saída?"""
    de_entrada, de_saida = pontas.matrizes_das_pontas(ctx.dono)
    if de_saida is None or ctx.dono.cabeca == "ausente":
        raise NaoMedido(f"{ctx.dono.nome} não tem matriz de saída no arquivo")
    r = amarracao.amarracao(de_entrada, de_saida)
    a, b = amarracao.endereco_no_meta()
    return {
        "endereco": r.mesmo_endereco, "mudanca": r.mudanca_vista,
        "meta_distingue": a != b, "no_meta": a,
    }  # fmt: skip


@medida()
def logits_e_semelhanca(ctx: Contexto) -> dict:
    """A diferença entre h_final · wteᵀ e os logits da biblioteca; e quantos dos 10 maiores logits
    estão entre os 10 maiores cossenos com o mesmo estado (média nas posições)."""
    dono = ctx.dono
    ids = dono.tokenizador.ids("O homem olhou para a mulher")
    passagem = pontas.passar(dono, ids)
    conferidos = exp.conferir_logits(dono, passagem)
    if not conferidos:
        raise NaoMedido(f"a cabeça de {dono.nome} não é só a wte amarrada")
    normas = np.maximum(exp.normas(dono), 1e-12)
    comuns = [
        len(set(vetores.mais_altos(x, 10)) & set(vetores.mais_altos(x / normas, 10)))
        for x in passagem.logits  # (V,) de cada posição
    ]
    return {"diferenca": conferidos[0].medido, "em_comum": float(np.mean(comuns) / 10)}


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


def _gpt2_linha(ctx: Contexto, palavra: str) -> int:
    return ctx.gpt2.linha(palavra).id


@medida(GPT2)
def rainha_no_gpt2(ctx: Contexto) -> dict:
    """king − man + woman nos pesos verdadeiros: os cossenos, quem vem primeiro e o lugar de princess."""
    a = analogia_da_rainha(ctx)
    W = ctx.modelo.wte
    alvo = vetores.vetor_da_analogia(W, *(_gpt2_linha(ctx, p) for p in ("king", "man", "woman")))
    notas = vetores.cossenos(W, alvo, ctx.normas)
    princesa = _gpt2_linha(ctx, "princess")
    return {
        "queen": a["resposta"], "king": a["partida"], "princess": float(notas[princesa]),
        "lugar_queen": a["lugar"], "lugar_sem_entradas": a["lugar_sem_entradas"],
        "lugar_princess": 1 + int((notas > notas[princesa]).sum()),
        "distancia": a["resposta"] - float(notas[princesa]),
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


@medida(GPT2)
def king_com_queen_e_banana(ctx: Contexto) -> dict:
    """Os cossenos de king com queen e com banana, e o de dois tokens quaisquer, no GPT-2."""
    return palavra_parecida_e_nao(ctx, ["king", "queen"], ["king", "banana"])


@medida(GPT2, PUBLICADO)
def king_com_queen_e_banana_publicado(ctx: Contexto) -> dict:
    """Os mesmos três números, publicados."""
    p = gpt2_medido.fatos()["wte_publicado"]
    return {"perto": p["pares"]["king–queen"], "longe": p["pares"]["king–banana"], "acaso": p["par_ao_acaso"]}  # fmt: skip


@medida(GPT2)
def linhas_de_wpe(ctx: Contexto) -> dict:
    """Os cossenos entre as linhas 0, 1, 2 e 500 de wpe, e o médio entre vizinhas."""
    wpe = exp.tabela_de_posicoes(ctx.modelo)
    cossenos = tabela_posicoes.cossenos_entre_linhas(wpe)
    curva = exp.curva_de_defasagem(wpe, centrada=False)
    return _vizinhas(lambda i, j: cossenos[i, j], curva[1], {k: curva[k] for k in (64, 256, 512)})


@medida(GPT2, GUARDADO)
def linhas_de_wpe_guardadas(ctx: Contexto) -> dict:
    """Os mesmos cossenos, medidos por nós uma vez na wpe verdadeira."""
    f = gpt2_medido.fatos()["wpe_medido"]
    onde = {linha: i for i, linha in enumerate(f["linhas"])}
    curva = {int(k): v for k, v in f["defasagem_linhas_1_a_1022"].items()}
    return _vizinhas(lambda i, j: f["cossenos"][onde[i]][onde[j]], curva[1], curva)


def _vizinhas(cosseno, medio, curva) -> dict:
    return {
        "um_e_dois": float(cosseno(1, 2)), "um_e_500": float(cosseno(1, 500)),
        "zero_e_um": float(cosseno(0, 1)), "vizinhas": float(medio),
        "a_256": float(curva[256]), "a_512": float(curva[512]),
    }  # fmt: skip
