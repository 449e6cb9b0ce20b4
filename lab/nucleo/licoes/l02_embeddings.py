"""O que a lição 02 deixa fora da página dela: as medidas em massa e a forma das tabelas.

As contas da apostila estão na lição. Aqui: o conjunto inteiro de analogias, 20.000 pares, cem sorteios
de direções, a régua, e os quadros em que tudo aparece. Aqui ninguém imprime.
"""

import re
import timeit
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from nucleo.base.caderno import Conferencia, Quadro, numero
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import contado, decimal, inteiro, porcento
from nucleo.contas import amarracao, arquitetura, folga, tabela_posicoes, vetores
from nucleo.modelos import fontes, gpt2_medido, listas, pontas, tokens
from nucleo.modelos.fontes import Modelo
from nucleo.modelos.listas import Palavras
from nucleo.modelos.tamanhos import TAMANHOS, Tamanho
from nucleo.modelos.tokens import Forma, Tokenizador, sem_acentos, visivel


def rotulo(texto: str) -> str:
    """Um texto como pedaço de nome de arquivo: só letras, números e '_', em qualquer sistema."""
    limpo = re.sub(r"[^0-9a-z]+", "_", sem_acentos(texto).casefold()).strip("_")
    return limpo[:60] or "token"  # um token comprido não estoura o nome de arquivo


def normas(modelo: Modelo) -> np.ndarray:
    """(V,): o comprimento de cada linha de wte. Erros: `ErroDoUsuario` se houver NaN."""
    try:
        return vetores.normas_das_linhas(modelo.wte)
    except ValueError as erro:
        raise ErroDoUsuario(
            f"A tabela wte de {modelo.nome} está estragada.",
            f"{erro}. Nenhum cosseno com ela faria sentido.",
            "Baixe ou copie os pesos outra vez, ou use outro --modelo.",
        ) from None


def qual_linha(tok: Tokenizador, forma: Forma, com_espaco: bool) -> str:
    """A frase que diz que forma da palavra foi usada e qual é o id da outra forma."""
    outra = tok.procurar(forma.palavra, not com_espaco)
    if outra is None:
        partes = tok.pedacos(("" if com_espaco else " ") + forma.palavra)
        dela = f"; {'sem' if com_espaco else 'com'} o espaço são {len(partes)} pedaços."
    elif outra.id != forma.id:
        dela = f"; `{visivel(outra.texto)}` é outra linha, a {outra.id}."
    else:
        dela = " (este tokenizador não liga para o espaço da frente)."
    aviso = f" Atenção: {forma.aviso}." if forma.aviso else ""
    return f"`{visivel(forma.texto)}` é a linha {forma.id}{dela}{aviso}"


def palavras_pedidas(tok: Tokenizador, args, dizer: Callable) -> tuple[list[Forma], list[Forma]]:
    """(formas de --palavra, sem repetir; formas de --analogia), com a linha de cada uma dita por `dizer`."""
    com_espaco = not args.sem_espaco
    pedidas = [tok.linha(p, com_espaco) for p in args.palavra or []]
    trio = [tok.linha(p, com_espaco, "--analogia") for p in args.analogia or []]
    for forma in [*pedidas, *trio]:
        dizer(qual_linha(tok, forma, com_espaco))
    if (pedidas or trio) and args.secao and not {2, 3} & set(args.secao):
        dizer("As palavras pedidas aparecem nas seções 2 e 3, que não estão entre as de agora.")
    return list({f.palavra: f for f in pedidas}.values()), trio


# --- seção 1 -----------------------------------------------------------------------------


def tokens_da_frase(t: Tokenizador, frase: str) -> Quadro:
    """Os tokens da frase, na ordem: como se leem, o id, e como o vocabulário os guarda."""
    linhas = [[visivel(t.texto(i)), str(i), t.cru(i)] for i in t.ids(frase)]
    titulo = f"“{frase}” no tokenizador do {t.nome}: {contado(len(linhas), 'token')}"
    return Quadro(titulo, {"token": str, "id": str, "no vocabulário": str}, linhas)


# --- seção 2 -----------------------------------------------------------------------------


def quadro_de_vizinhos(
    tok: Tokenizador, forma: Forma, ids: np.ndarray, notas: np.ndarray
) -> tuple[Quadro, list[str]]:
    """(quadro, em que cada vizinho difere da palavra). ids e notas: (k,), do mais próximo em diante."""
    difere = [tokens.classificar_vizinho(forma.palavra, tok.texto(i)) for i in ids]
    nomes = [visivel(tok.texto(i)) for i in ids]
    linhas = list(zip(nomes, map(str, ids), notas, difere, strict=True))
    formas = difere.count("forma")
    return Quadro(
        f"Os mais próximos de {visivel(forma.texto)} (id {forma.id})",
        {"token": str, "id": str, "cosseno": decimal, "difere em": str},
        linhas,
        [numero(f"vizinhos.{forma.palavra}.formas", formas, vizinhos=len(difere))],
    ), difere


def niveis(
    modelo: Modelo, normas_: np.ndarray, palavras: Palavras, quantos: int, semente: int
) -> tuple[np.ndarray, float]:
    """O que é "não ter nada a ver" nesta tabela: os cossenos de tokens sorteados, (quantos,), e a média
    entre todas as palavras das nossas listas, que são comuns."""
    tabela = modelo.wte
    sorteados = vetores.cossenos_de_pares(tabela, normas_, quantos, semente)  # (quantos,)
    ids = sorted(set(palavras.linha.values()))
    comuns = vetores.anisotropia(tabela[ids], normas_[ids]) if len(ids) > 1 else float("nan")
    return sorteados, comuns


def publicado_no_gpt2(a: str, b: str) -> float | None:
    """O cosseno do par na wte do GPT-2, se alguém o publicou."""
    publicado = gpt2_medido.fatos()["wte_publicado"]["pares"]
    return publicado.get(f"{a}–{b}", publicado.get(f"{b}–{a}"))


def quadro_dos_pares(linhas: list[list], acaso: float, comuns: float) -> Quadro:
    """As linhas [par, cosseno, fração dos sorteados com cosseno menor, o publicado do GPT-2]; com nome
    vão também os dois níveis: o de tokens ao acaso e o de palavras comuns."""
    colunas = {"par": str, "cosseno": decimal, "sorteados abaixo": porcento}
    colunas |= {"GPT-2, publicado": decimal}
    niveis_ = {"cosseno_ao_acaso": acaso, "cosseno_entre_palavras_comuns": comuns}
    medidos = {f"cosseno.{par}": c for par, c, *_ in linhas} | niveis_
    resultados = [numero(*medido) for medido in medidos.items()]
    return Quadro("Pares conhecidos", colunas, linhas, resultados)


def quadro_do_centro(tok: Tokenizador, ids: np.ndarray, distancias: np.ndarray) -> Quadro:
    """Os tokens mais perto da linha média. ids: (k,); distancias: (V,), de todos.

    No GPT-2 são os tokens-fantasma (" SolidGoldMagikarp"), que o treino quase não viu e que
    por isso aparecem como vizinhos de muita gente; em outros modelos pode não haver nenhum.
    """
    tipica = decimal(np.median(distancias))
    colunas = {"token": str, "id": str, "distância": decimal}
    linhas = [[visivel(tok.texto(i)), str(i), distancias[i]] for i in ids]
    return Quadro(
        f"Os mais perto do centro da tabela (distância típica: {tipica})", colunas, linhas
    )


def formas_da_analogia(tok: Tokenizador, palavras: Palavras) -> list[Forma]:
    """As três formas da analogia da lista se forem tokens inteiros; senão, as dos dois primeiros
    pares de gênero que couberem; lista vazia se nem isso."""
    tres = palavras.listas["analogia"]
    if len(palavras.presentes(tres)) < 3:
        genero = palavras.listas["direcoes"]["gênero"]
        pares = [p for p in genero if len(palavras.presentes(p)) == 2]
        if len(pares) < 2:
            return []
        (a, b), (c, _) = pares[:2]
        tres = [c, a, b]
    return [tok.linha(p) for p in tres]


def quadro_da_analogia(
    tok: Tokenizador, formas: list[Forma], livre: np.ndarray, sem: np.ndarray, notas: np.ndarray
) -> Quadro:
    """Os rankings com tudo permitido e sem as entradas, (k,) ids cada um, lado a lado. notas: (V,)."""
    entradas = [f.id for f in formas]
    linhas = []
    # Num vocabulário minúsculo, sem as entradas sobram menos linhas: a mais curta manda.
    for posto, (i, j) in enumerate(zip(livre, sem, strict=False), 1):
        um, outro = visivel(tok.texto(i)), visivel(tok.texto(j))
        linhas.append([posto, um, notas[i], "sim" if i in entradas else "", outro, notas[j]])
    conta = "{} − {} + {}".format(*(f.palavra for f in formas))
    colunas = {"lugar": str, "tudo permitido": str, "cosseno": decimal, "entrada": str}
    colunas |= {"sem as entradas": str, "cosseno, sem": decimal}
    return Quadro(f"{conta}: com tudo permitido, e sem as palavras de entrada", colunas, linhas)


def analogia_publicada(formas: list[Forma]) -> str:
    """Para king − man + woman, o que se publicou do GPT-2; para as outras, nada."""
    if [f.palavra for f in formas] != ["king", "man", "woman"]:
        return ""
    gpt2 = gpt2_medido.fatos()["wte_publicado"]["analogia"]
    return (
        f" No GPT-2, publicado: ' king' {decimal(gpt2['king'])} e ' queen' "
        f"{decimal(gpt2['queen'])}; a demonstração famosa esconde a primeira."
    )


def medidas_da_analogia(
    modelo: Modelo, palavras: Palavras, formas: list[Forma], notas: np.ndarray
) -> list:
    """Os números da analogia da lista, a − b + c = resposta; nenhum se for outra, ou se a resposta não
    for um token só. notas: (V,), os cossenos com o alvo."""
    resposta = palavras.linha.get(palavras.listas["resposta"])
    if resposta is None or [f.palavra for f in formas] != palavras.listas["analogia"]:
        return []
    a, b, c = entradas = [f.id for f in formas]
    acima = np.flatnonzero(notas > notas[resposta])  # (V,) -> (m,): quem fica na frente dela
    W = modelo.wte
    passo = W[c] - W[b]  # (d,)
    return [
        numero("analogia.lugar", 1 + len(acima)),
        numero("analogia.lugar_sem_entradas", 1 + len(np.setdiff1d(acima, entradas))),
        numero("analogia.resposta", notas[resposta]),
        numero("analogia.partida", notas[a]),
        numero("analogia.deslocamentos", vetores.cosseno(passo, W[resposta] - W[a])),
        numero("analogia.passo", np.linalg.norm(passo) / np.linalg.norm(W[a])),
    ]


class Conjunto(NamedTuple):
    """O placar do conjunto de analogias nos dois protocolos. `cruas` e `normalizadas` são listas
    de `vetores.Placar`, a última com o total; `distintas`, quantas palavras couberam."""

    cruas: list
    normalizadas: list
    distintas: int


def conjunto_de_analogias(modelo: Modelo, normas_: np.ndarray) -> Conjunto:
    """Avalia todas as perguntas do Google que cabem na tabela, nos dois protocolos."""
    perguntas = listas.analogias_do_google(modelo.tokenizador)
    acertos = vetores.avaliar_protocolos(modelo.wte, normas_, perguntas.ids, (False, True))
    placares = [vetores.placar(perguntas, a) for a in acertos]
    return Conjunto(*placares, len(np.unique(perguntas.ids)))


def placar(titulo: str, placares: list) -> Quadro:
    """Uma linha por categoria: cobertura e frações das cobertas. None onde nenhuma coube."""
    linhas = []
    for p in placares:
        certas = (p.certas_livre, p.certas_sem_entradas, p.entrada_primeiro)
        partes = [n / p.cobertas if p.cobertas else None for n in certas]
        linhas.append([p.nome, p.total, p.cobertas / p.total, *partes])
    colunas = {"categoria": str, "perguntas": inteiro}
    nomes = ("cabem", "tudo permitido", "sem entradas", "entrada em 1º")
    return Quadro(titulo, colunas | dict.fromkeys(nomes, porcento), linhas)


def placares(conjunto: Conjunto) -> dict[str, Quadro]:
    """{id: quadro} dos dois protocolos, com as frações do total; vazio se nenhuma pergunta couber."""
    if not conjunto.distintas:
        return {}
    cruas = placar("Linhas cruas somadas (a apostila)", conjunto.cruas)
    return {
        "2_cruas": replace(cruas, resultados=resumo_do_conjunto(conjunto)),
        "2_normalizadas": placar("Linhas normalizadas (gensim)", conjunto.normalizadas),
    }


def resumo_do_conjunto(conjunto: Conjunto) -> list:
    """As frações do total das categorias nos dois protocolos, cada uma com o seu id."""
    todas = {"cruas": conjunto.cruas[-1], "normalizadas": conjunto.normalizadas[-1]}
    cobertas = todas["cruas"].cobertas
    coberta = numero("analogias_cobertura", cobertas / todas["cruas"].total, unidade="fração")
    partes = {
        (nome, parte): certas / cobertas
        for nome, p in todas.items()
        for parte, certas in (
            ("livre", p.certas_livre),
            ("sem_entradas", p.certas_sem_entradas),
            ("entrada_primeiro", p.entrada_primeiro),
        )
    }
    return [coberta] + [
        numero(f"analogias_{nome}_{parte}", x, unidade="fração")
        for (nome, parte), x in partes.items()
    ]


def frase_do_conjunto(conjunto: Conjunto) -> str:
    """O que o placar mostra, com os números medidos: o efeito de cada escolha de protocolo."""
    if not conjunto.distintas:
        return "nenhuma pergunta cabe neste vocabulário: o conjunto é em inglês."
    cruas, normalizadas = conjunto.cruas[-1], conjunto.normalizadas[-1]
    acertos = (cruas.certas_livre, cruas.certas_sem_entradas, normalizadas.certas_sem_entradas)
    livre, sem, norm = (porcento(n / cruas.cobertas) for n in acertos)
    return (
        f"proibir as entradas leva de {livre} a {sem} de acertos; normalizar as linhas antes, a "
        f"{norm}. O mesmo modelo, três números: o protocolo faz parte do resultado."
    )


def direcoes(modelo: Modelo, palavras: Palavras, semente: int) -> Quadro:
    """O alinhamento dos pares de cada direção, ao lado de dois controles.

    O alinhamento é o cosseno do deslocamento de cada par com a média dos outros. Controles: as
    mesmas palavras em pares sorteados, e pares de tokens sorteados do vocabulário.
    """
    sorteio, linhas, resultados = np.random.default_rng(semente), [], []
    for nome, pares in palavras.listas["direcoes"].items():
        ids = palavras.ids(pares)  # (n, 2)
        if len(ids) < 3:
            linhas.append([nome, len(ids), *[None] * 5])
            continue
        certo = vetores.alinhamento(vetores.deslocamentos(modelo.wte, ids))  # (n, 2) -> (n,)
        trocas, acasos = [], []
        for _ in range(100):
            soltas = sorteio.permutation(ids.reshape(-1)).reshape(-1, 2)
            tokens = sorteio.integers(0, modelo.V, ids.shape)
            trocas.append(vetores.alinhamento(vetores.deslocamentos(modelo.wte, soltas)).mean())
            acasos.append(vetores.alinhamento(vetores.deslocamentos(modelo.wte, tokens)).mean())
        cabem = [" – ".join(p) for p in pares if len(palavras.presentes(p)) == 2]
        fraco = cabem[int(certo.argmin())]
        media, trocados, acaso, pior = certo.mean(), np.mean(trocas), np.mean(acasos), certo.min()
        linhas.append([nome, len(ids), media, trocados, acaso, pior, fraco])
        controles = {"trocados": trocados, "acaso": acaso, "pior": pior, "quem": fraco}
        resultados.append(numero(f"alinhamento.{nome}", media, pares=len(ids), **controles))
    nomes = ("alinhamento", "pares trocados", "tokens ao acaso", "o menor")
    colunas = {"direção": str, "pares": inteiro} | dict.fromkeys(nomes, decimal)
    titulo = "Direções: cada par aponta para onde os outros apontam?"
    return Quadro(titulo, colunas | {"par do menor": str}, linhas, resultados)


class Regua(NamedTuple):
    """Palavras projetadas numa direção. `lugares`, do menor ao maior: (palavra, valor, se ela entrou na
    conta da direção); o valor é 0 no meio dos pares, e ±0,5 nas pontas médias."""

    direcao: str
    pontas: tuple[str, str]
    lugares: list[tuple[str, float, bool]]


def na_regua(modelo: Modelo, palavras: Palavras) -> Regua | None:
    """As palavras da régua na direção média dos pares; None se a direção não couber aqui."""
    lista = palavras.listas["regua"]
    ids = palavras.ids(palavras.listas["direcoes"][lista["direcao"]])  # (n, 2)
    nomes = palavras.presentes(lista["palavras"])
    if len(ids) < 3 or not nomes:
        return None
    direcao = vetores.deslocamentos(modelo.wte, ids).mean(0)  # (n, d) -> (d,)
    if not direcao.any():
        return None
    meio = modelo.wte[ids].mean((0, 1))  # (n, 2, d) -> (d,)
    linhas = modelo.wte[[palavras.linha[p] for p in nomes]]  # (m, d)
    valores = (linhas - meio) @ direcao / (direcao @ direcao)  # (m, d) @ (d,) -> (m,)
    usadas = {p for par in palavras.listas["direcoes"][lista["direcao"]] for p in par}
    lugares = [(p, v, p in usadas) for p, v in zip(nomes, valores, strict=True)]
    return Regua(lista["direcao"], tuple(lista["pontas"]), sorted(lugares, key=lambda x: x[1]))


def quadro_da_regua(regua: Regua) -> Quadro:
    """A régua como tabela, de uma ponta à outra."""
    baixo, alto = regua.pontas
    return Quadro(
        f"Palavras entre {baixo} (−0,5) e {alto} (+0,5)",
        {"palavra": str, "valor": decimal, "fez a direção?": str},
        [[p, v, "sim" if u else ""] for p, v, u in regua.lugares],
    )


def frase_da_regua(regua: Regua) -> str:
    """As duas palavras de fora da conta que ficaram nas pontas: o que a tabela aprendeu do texto."""
    fora = [(p, v) for p, v, usada in regua.lugares if not usada]
    if len(fora) < 2:
        return "todas as palavras desta régua fizeram a direção: o lugar delas não prova nada."
    (um, menor), *_, (outra, maior) = fora
    return (
        f"das palavras que não fizeram a direção, {um} ({decimal(menor)}) e {outra} "
        f"({decimal(maior)}) são os extremos. O lugar vem do texto de treino, vieses inclusos."
    )


# --- seção 3 -----------------------------------------------------------------------------


def forma_do_exemplo(tok: Tokenizador, palavras: Palavras) -> Forma:
    """A palavra de exemplo da lista; se ela não for um token só, outra que seja; se nenhuma for,
    a linha 0, seja o que for que ela escreva."""
    presentes = palavras.presentes([palavras.listas["cru"], *palavras.linha])
    return tok.linha(presentes[0]) if presentes else Forma(tok.texto(0), tok.texto(0), 0)


def vetor_cru(modelo: Modelo, forma: Forma, quantos: int) -> Quadro:
    """Os primeiros números da linha de uma palavra, como estão na tabela."""
    quantos = min(quantos, modelo.d)
    linhas = [[str(i), x] for i, x in enumerate(modelo.wte[forma.id, :quantos])]
    titulo = f"{visivel(forma.texto)}, linha {forma.id}: {quantos} dos {modelo.d} números"
    return Quadro(titulo, {"coordenada": str, "valor": lambda x: decimal(x, 6)}, linhas)


def milissegundos(f: Callable, vezes: int = 7) -> float:
    """Quanto `f()` demora: a mediana de `vezes` repetições, em milissegundos."""
    return float(np.median(timeit.repeat(f, number=1, repeat=vezes))) * 1e3


def quadro_do_custo(multiplicacoes: int, ms_produto: float, ms_indice: float) -> Quadro:
    """Multiplicações e milissegundos das duas buscas."""
    linhas = [["onehot · W", multiplicacoes, ms_produto], ["W[i]", 0, ms_indice]]
    colunas = {"como": str, "multiplicações": inteiro, "milissegundos": lambda x: decimal(x, 4)}
    resultados = [numero("custo.multiplicacoes", multiplicacoes)]
    return Quadro("Duas maneiras de buscar a mesma linha", colunas, linhas, resultados)


# --- seção 4 -----------------------------------------------------------------------------


def linhas_a_comparar(n: int) -> list[int]:
    """As posições do exercício (0, 1, 2 e 500) que existem numa tabela de n linhas; se a 500 não
    existir, entra a do meio."""
    return [i for i in (0, 1, 2) if i < n] + ([500] if n > 500 else [n // 2] if n > 6 else [])


def quem_mede_a_wpe(modelo: Modelo, dono: Modelo | None) -> str:
    """A frase de um modelo sem wpe: quem mede no lugar dele."""
    medimos = dono and f"Medimos no **{dono.nome}**, o GPT-2 pequeno que vem no repositório."
    quem = medimos or "O mini, que tem, não está nesta cópia."
    if not modelo.ficha.conhecida:
        return f"**Não sei como {modelo.nome} recebe a posição**: {frase_da_familia(modelo)} {quem}"
    return f"**{modelo.nome} não tem wpe**: {modelo.ficha.frase_da_posicao}. {quem}"


def frase_da_familia(modelo: Modelo) -> str:
    """Que família é a que o registro não conhece, e o que isso impede."""
    familia = modelo.ficha.familia or "nenhuma, falta o model_type no config.json"
    return f"a família dele ({familia}) não está entre as que o laboratório conhece."


def cossenos_das_linhas(nome: str, cossenos: np.ndarray) -> Quadro:
    """Os cossenos entre as posições do exercício 3, com nome os de pares diferentes. cossenos: (n, n)."""
    quais = linhas_a_comparar(len(cossenos))
    linhas = [[str(i), *(cossenos[i, j] for j in quais)] for i in quais]
    colunas = {"linha": str} | {str(j): decimal for j in quais}
    resultados = [
        numero(f"wpe.cosseno.{i}.{j}", cossenos[i, j], modelo=nome)
        for i, j in combinations(quais, 2)
    ]
    return Quadro(f"{nome}: cossenos entre posições", colunas, linhas, resultados)


def curva_de_defasagem(wpe: np.ndarray) -> np.ndarray:
    """(m,): o cosseno médio a cada distância, sem a primeira nem a última linha."""
    cossenos = tabela_posicoes.cossenos_entre_linhas(wpe)  # (n, d) -> (n, n)
    return tabela_posicoes.por_defasagem(cossenos, 1, len(wpe) - 1)


def quadro_das_defasagens(nome: str, cru: np.ndarray, centrado: np.ndarray) -> Quadro:
    """O cosseno médio nas distâncias que são potências de 2, cru e sem a linha média. (m,), (m,)."""
    ks = [2**p for p in range(10) if 2**p < len(cru)]
    return Quadro(
        f"{nome}: semelhança a cada distância",
        {"distância": inteiro, "cosseno médio": decimal, "sem a linha média": decimal},
        [[k, cru[k], centrado[k]] for k in ks],
        [numero(f"wpe.defasagem.{k}", cru[k], modelo=nome, centrado=centrado[k]) for k in ks],
    )


def frase_da_defasagem(centrado: np.ndarray) -> str:
    """A semelhança na menor e na maior das distâncias da tabela. centrado: (m,)."""
    if len(centrado) < 2:
        return "há posições de menos para comparar distâncias."
    longe = 2 ** min(9, int(np.log2(len(centrado) - 1)))
    return (
        f"sem a linha média, {decimal(centrado[1])} à distância 1 e {decimal(centrado[longe])} à distância "
        f"{longe}. Ninguém mandou: o que houver de ordem aqui, o treino descobriu sozinho."
    )


def gpt2_linhas() -> Quadro:
    """Os cossenos entre as linhas 0, 1, 2 e 500 do GPT-2 verdadeiro, medidos uma vez."""
    medido = gpt2_medido.fatos()["wpe_medido"]
    nomes = [str(i) for i in medido["linhas"]]
    linhas = [[n, *c] for n, c in zip(nomes, medido["cossenos"], strict=True)]
    colunas = {"linha": str} | dict.fromkeys(nomes, decimal)
    return Quadro("GPT-2, medido: cossenos entre posições", colunas, linhas)


def frase_do_exercicio_3() -> str:
    """A resposta do exercício 3, com os números medidos na wpe verdadeira."""
    c = gpt2_medido.fatos()["wpe_medido"]["cossenos"]
    return (
        f"vizinhas se parecem: as linhas 1 e 2 dão {decimal(c[1][2])}, e 1 e 500, {decimal(c[1][3])}. A "
        f"exceção é a linha 0, que dá só {decimal(c[0][1])} com a 1. Ninguém disse isso ao modelo."
    )


def gpt2_normas() -> Quadro:
    """A norma de algumas linhas de wpe do GPT-2 verdadeiro."""
    normas_ = gpt2_medido.fatos()["wpe_medido"]["normas"]
    titulo = "GPT-2, medido: tamanho de algumas linhas de wpe"
    return Quadro(titulo, {"linha": str, "norma": decimal}, [list(x) for x in normas_.items()])


def explicar_limite(dono: Modelo, pedido) -> str:
    """O que acontece com um token a mais que n_ctx, e por quê. `pedido`: quem sabe a mensagem do modelo."""
    n = dono.n_ctx
    conta = f"wpe tem {contado(len(dono.wpe), 'linha')}; pedir a seguinte é um erro de índice."
    if dono.tem_completo:
        mensagem = pedido.resposta()
        if not mensagem:
            return f"{dono.nome} aceitou {n + 1} tokens: ele não usa a tabela como limite."
        conta = f"{n + 1} tokens em {dono.nome} dão `{mensagem}`."
    return (
        f"E na posição {n}? {conta} A mensagem não fala em posição, mas é dela que se trata: "
        "a linha não existe. O laboratório confere antes e diz os dois números."
    )


# --- seção 5 -----------------------------------------------------------------------------


def partes_da_entrada(
    modelo: Modelo, ids: list[int], o_que: np.ndarray, onde: np.ndarray
) -> Quadro:
    """O tamanho do conteúdo, da posição e da soma, token a token, e o cosseno entre as partes.

    Num modelo sem wpe só há o conteúdo: a posição nula nem direção teria. Onde a soma ainda passa por
    uma norma ou projeção (BERT, BLOOM), uma coluna a mais traz o tamanho do que entra no bloco.
    """
    f, soma = modelo.ficha, o_que + onde  # (n, e) + (n, e) -> (n, e)
    nomes = [visivel(modelo.tokenizador.texto(i)) for i in ids]
    partes, titulo = {"‖h₀‖": soma}, "O tamanho de cada linha de h₀ (aqui, só o conteúdo)"
    if modelo.wpe is not None:
        partes = {"‖o quê‖": o_que, "‖onde‖": onde} | partes
        titulo = "O tamanho de cada parte da soma"
    elif not f.so_a_linha:
        partes = {"‖linha‖": modelo.wte[ids]} | partes
        titulo = f"O tamanho de cada linha, e de h₀ (aqui, {f.formula})"
    if f.norma or (f.projecao and not f.projeta_antes):
        partes["‖soma‖"] = partes.pop("‖h₀‖")
        partes["‖h₀‖"] = pontas.entrada(modelo, ids, soma)  # (n, e) -> (n, d)
        if modelo.wpe is None:
            del partes["‖soma‖"]  # seria a linha outra vez
    colunas = {"token": str} | dict.fromkeys(partes, decimal)
    medidas = [np.linalg.norm(x, axis=1) for x in partes.values()]  # (n, d) -> (n,) cada
    if modelo.wpe is not None:
        colunas["cos(o quê, onde)"] = decimal
        medidas.append([vetores.cosseno(a, b) for a, b in zip(o_que, onde, strict=True)])
    return Quadro(titulo, colunas, list(zip(nomes, *medidas, strict=True)))


def frase_da_entrada(modelo: Modelo) -> str:
    """O que este modelo faz à linha, se não for a soma simples do GPT-2; senão, ""."""
    f = modelo.ficha
    if not f.conhecida:
        return (
            f"A conta da entrada de **{modelo.nome}** não aparece aqui: {frase_da_familia(modelo)}"
        )
    if f.so_a_linha:
        return "este modelo não soma posição nenhuma na entrada: h₀ é só o conteúdo."
    if f.formula == "h₀ = linha + wpe[posição]":
        return ""
    nota = (
        ""
        if modelo.wpe is not None
        else " A posição não está aqui: " + (f"{modelo.nome} {f.frase_da_posicao}.")
    )
    if f.projecao:
        nota += " P leva a largura da tabela à dos blocos."
    return f"neste modelo a conta da entrada é outra: **{f.formula}**.{nota}"


def folga_da_entrada(
    modelo: Modelo, ids: list[int], soma: np.ndarray, entrada: np.ndarray
) -> float:
    """O que outra ordem de somas pode mudar em `pontas.entrada`, em float32."""
    return folga.soma(*pontas.custo_da_entrada(modelo, ids, soma, entrada), folga.EPS32)


def frase_da_forma(passagem: pontas.Passagem) -> str:
    """Se a forma do estado é a mesma da entrada à saída, bloco a bloco."""
    entrada, saida, blocos = passagem.formas[0], passagem.formas[-1], len(passagem.formas) - 1
    if len(set(passagem.formas)) == 1:
        return f"A forma atravessa os {blocos} blocos sem mudar: {entrada} -> {saida}."
    return f"A forma muda no fim dos {blocos} blocos: {entrada} -> {saida}."


def conferir_gaussianos(cossenos: np.ndarray, d: int) -> list[Conferencia]:
    """Média 0 e desvio 1/√d. O sorteio erra mais que o arredondamento: as tolerâncias são de 6 desvios de
    cada estimador, em n pares, e só um sorteio em 10⁹ passa deles."""
    n = len(cossenos)
    return [
        Conferencia("cosseno médio", float(cossenos.mean()), 0.0, 6 / (n * d) ** 0.5),
        Conferencia("desvio (1/√d)", float(cossenos.std()), d**-0.5, 6 * (2 * n * d) ** -0.5),
    ]


def soma_ou_concatenacao() -> Quadro:
    """Quanto custariam os blocos do GPT-2 somando (largura d) e concatenando (largura 2d).

    Multiplicações: as dos produtos por matriz (c_attn, c_proj, c_fc, c_proj), sem a atenção
    entre tokens, que cresce com o contexto nos dois casos.
    """
    t, linhas = TAMANHOS["gpt2"], []
    for como, d in (("somar", t.n_embd), ("concatenar", 2 * t.n_embd)):
        conta = arquitetura.formula(Tamanho(t.nome, t.n_layer, d, t.n_head, 0))
        blocos = sum(n for peca, n in conta.items() if peca not in ("wte", "wpe"))
        # Cada peso de matriz multiplica uma vez por token: 12·d² por camada.
        linhas.append([como, d, blocos, t.n_layer * 12 * d * d])
    (_, d, _, contas), (_, dobro, _, mais_contas) = linhas
    nomes = ("largura", "parâmetros nos blocos", "multiplicações por token")
    colunas, quem = {"como": str} | dict.fromkeys(nomes, inteiro), "gpt2 (arquitetura)"
    vezes = {"largura": (dobro, d), "contas": (mais_contas, contas)}
    resultados = [
        numero(f"soma_ou_concatenacao.{o_que}", x, vezes=x / y, modelo=quem)
        for o_que, (x, y) in vezes.items()
    ]
    return Quadro("Somar ou concatenar, no tamanho do gpt2", colunas, linhas, resultados)


# --- seção 6 -----------------------------------------------------------------------------


def olhar_as_pontas(lm, perguntar: Callable) -> dict:
    """Do modelo montado: quantos parâmetros tem, se tem matriz de saída, e as quatro respostas de
    `perguntar(entrada, saída)` e de `amarracao.amarracao` (listas; vazias se não há o que comparar)."""
    import torch

    saida = lm.get_output_embeddings()
    entrada, respostas, nucleo = lm.get_input_embeddings().weight, [], []
    if saida is not None and saida.weight.shape == entrada.shape:
        nucleo = list(vars(amarracao.amarracao(entrada, saida.weight)).values())
        with torch.no_grad():
            respostas = list(perguntar(entrada, saida.weight))
    elif saida is not None:
        respostas = nucleo = [False] * 4
    return {
        "parametros": sum(p.numel() for p in lm.parameters()),
        "tem_saida": saida is not None,
        "respostas": respostas,
        "nucleo": nucleo,
    }


def perguntas_da_amarracao(modelo: Modelo, pontas: dict) -> Quadro:
    """O que se pergunta à matriz de entrada e à de saída do modelo inteiro, e as respostas.
    `pontas` é o que `olhar_as_pontas` devolve."""
    resultados = []
    if not pontas["tem_saida"]:
        linhas = [["há uma matriz de saída?", "não: este modelo não prevê tokens"]]
    elif modelo.cabeca == "ausente":
        linhas = [["há uma matriz de saída no arquivo?", "não: a biblioteca sortearia uma"]]
    else:
        _, endereco, _, mudanca = pontas["respostas"]
        perguntas = (
            "é o mesmo objeto Python?",
            "começa no mesmo endereço (data_ptr)?",
            "usa o mesmo pedaço de memória (storage)?",
            "mudar um número na entrada muda a saída?",
        )
        ditas = ("sim" if x else "não" for x in pontas["respostas"])
        linhas = list(zip(perguntas, ditas, strict=True))
        resultados = [
            numero("amarracao.mesmo_endereco", endereco),
            numero("amarracao.mudanca_vista", mudanca),
        ]
    titulo = "Entrada e saída são a mesma matriz?"
    return Quadro(titulo, {"pergunta": str, "resposta": str}, linhas, resultados)


def saida_a_mao(
    modelo: Modelo, passagem: pontas.Passagem
) -> tuple[str, np.ndarray, np.ndarray | None] | None:
    """(nome, S (V, d), viés (V,) ou None): a matriz de saída, se os logits são um produto com ela; None se
    não há logits, se a família é desconhecida ou se a cabeça faz mais que um produto (BERT)."""
    f = modelo.ficha
    if passagem.logits is None or f.codificador or not f.conhecida or modelo.cabeca == "ausente":
        return None
    S, vies = pontas.matriz_de_saida(modelo)
    nome = (
        "h_final · wteᵀ" if modelo.cabeca == "amarrada" else "h_final · Sᵀ, com a matriz da saída"
    )
    return nome, S, vies


def frase_da_saida(modelo: Modelo) -> str:
    """Por que a conta dos logits não é feita à mão, ou o que ela tem a mais; "" se é só o produto."""
    f = modelo.ficha
    if not f.conhecida:
        return f"Os logits de {modelo.nome} não são refeitos à mão: {frase_da_familia(modelo)}"
    if f.codificador and modelo.cabeca != "ausente":
        return (
            f"A cabeça de **{modelo.nome}** faz mais que um produto (uma camada densa e uma norma "
            "antes dele): os logits não são refeitos à mão."
        )
    if f.formula_dos_logits != "logits = h_final · Sᵀ" and not f.codificador:
        return f"Nesta família a saída não é só o produto: **{f.formula_dos_logits}**."
    return ""


def folga_dos_logits(modelo: Modelo, S: np.ndarray, passagem: pontas.Passagem) -> float:
    """A folga de h_final · Sᵀ, d parcelas de ‖h‖·‖linha‖, relativa ao maior logit."""
    maior_h = np.linalg.norm(passagem.h_final, axis=1).max()
    maior = maior_h * vetores.normas_das_linhas(S).max() * abs(modelo.ficha.logits_vezes)
    da_soma = folga.soma(S.shape[1], maior, folga.EPS32)
    return da_soma / float(np.abs(passagem.logits).max())


def economia(modelo: Modelo, pontas: dict) -> Quadro:
    """Parâmetros com a cabeça amarrada e com ela solta, e que parte deles é uma wte."""
    uma, amarrado = modelo.V * modelo.d, pontas["parametros"]
    if pontas["tem_saida"] and modelo.cabeca != "amarrada":
        amarrado -= uma
    nomes = ("amarrado (uma matriz)", "solto (duas matrizes)")
    return _economia("O que a amarração economiza", nomes, amarrado, uma)


def _economia(titulo: str, nomes: tuple[str, str], amarrado: int, uma: int) -> Quadro:
    totais = zip(nomes, (amarrado, amarrado + uma), strict=True)
    colunas = {"modelo": str, "parâmetros": inteiro, "parte que é uma wte": porcento}
    return Quadro(titulo, colunas, [[nome, total, uma / total] for nome, total in totais])


def economia_do_gpt2() -> Quadro:
    """A mesma conta para o GPT-2 small, só da arquitetura: as duas divisões que se confundem."""
    t = TAMANHOS["gpt2"]
    uma, amarrado = t.vocab * t.n_embd, sum(arquitetura.formula(t).values())
    nomes = ("amarrado, como ele é", "se fosse solto")
    quadro = _economia("E no GPT-2 small, contado da arquitetura", nomes, amarrado, uma)
    resultados = [
        numero(f"economia_gpt2.{nome}", total, parte=parte, modelo="gpt2 (arquitetura)")
        for nome, (_, total, parte) in zip(("amarrado", "solto"), quadro.linhas, strict=True)
    ]
    return replace(quadro, resultados=resultados)


def quadro_dos_proximos(
    tok: Tokenizador, ids: np.ndarray, logits: np.ndarray, chances: np.ndarray
) -> Quadro:
    """Os tokens mais prováveis depois da frase: as linhas de wte mais parecidas, em produto interno,
    com o último estado do modelo. ids: (k,); logits e chances: (V,)."""
    return Quadro(
        "Os tokens de maior pontuação para o último estado (logit = h_final · linha)",
        {"token": str, "id": str, "logit": decimal, "probabilidade": porcento},
        [[visivel(tok.texto(i)), str(i), logits[i], chances[i]] for i in ids],
    )


# --- seções 7 e 8 ------------------------------------------------------------------------


def correcoes(gpt2: Tokenizador, zeros: tuple[int, int]) -> Quadro:
    """O que a listagem da apostila supõe, o que se mede aqui, e o que o laboratório faz. `zeros` são
    os endereços de dois tensores no dispositivo meta."""
    gato = gpt2.ids(" gato")
    frase = gpt2.ids("O Brasil é gigante")
    pedacos = f"são {len(gato)}: {' + '.join(map(visivel, gpt2.pedacos(' gato')))}"
    primeiro = f"é {visivel(gpt2.texto(gato[0]))} (id {gato[0]})"
    ids = f"4899 é {visivel(gpt2.texto(4899))}\n5257 é {visivel(gpt2.texto(5257))}"
    tokens_ = f"tem {len(frase)}: {'|'.join(map(gpt2.texto, frase))}"
    no_meta = f"no meta, dois tensores sem parentesco: {zeros[0]} e {zeros[1]}"
    listagem = "a listagem importa AutoModel e AutoTokenizer"
    duas_vezes = "dois GPT-2 inteiros para ler duas tabelas"
    linhas = [
        ["' gato' é um token", pedacos, "recusamos a palavra e mostramos os pedaços"],
        ["encode(' gato')[0] é o gato", primeiro, "nunca pegamos o primeiro pedaço em silêncio"],
        ["gato = 4899, cachorro = 5257", ids, "ids de exemplo são ditos hipotéticos"],
        ["a frase do Brasil tem 5 tokens", tokens_, "contamos com o tokenizador"],
        ["AutoModelForCausalLM já foi importado", listagem, "cada lição importa o que usa"],
        ["carrega o modelo duas vezes", duas_vezes, "lemos só wte e wpe, mapeadas em memória"],
        ["data_ptr() igual prova a amarração", no_meta, "recusamos o meta e testamos uma mudança"],
    ]
    colunas = dict.fromkeys(("supõe", "medido", "o que fazemos"), str)
    return Quadro("O que a listagem da apostila original supõe, e o que se mede", colunas, linhas)


def tamanhos(contas: dict[str, dict[str, int]]) -> tuple[Quadro, list[Conferencia]]:
    """(quadro, conferências) dos quatro GPT-2. `contas`: {tamanho: {peça: parâmetros}}, contados no
    dispositivo meta."""
    linhas, conferencias = [], []
    for t in TAMANHOS.values():
        conta, a_mao = contas[t.nome], arquitetura.formula(t)
        total, bytes_ = sum(conta.values()), 4 * (conta["wte"] + conta["wpe"])
        maior = arquitetura.maior_matriz(t)
        linhas.append(
            [t.nome, t.n_layer, t.n_embd, total, conta["wte"], conta["wte"] / total]
            + [maior, conta["MLP: c_fc"] // t.n_layer, bytes_ / 1e6, bytes_ / 2**20]
        )
        conferencias.append(Conferencia(f"{t.nome}: parâmetros", total, t.publicado))
        pior = max(abs(a_mao[p] - conta[p]) for p in conta)
        conferencias.append(Conferencia(f"{t.nome}: pior peça da conta à mão", pior))
    colunas = {"modelo": str, "camadas": inteiro, "d": inteiro, "parâmetros": inteiro}
    colunas |= {"wte": inteiro, "parte de wte": porcento, "maior matriz": str, "uma c_fc": inteiro}
    colunas |= dict.fromkeys(("MB", "MiB"), lambda x: decimal(x, 1))
    titulo = "Os quatro GPT-2, contados da arquitetura (em MB: wte + wpe, float32)"
    return Quadro(titulo, colunas, linhas), conferencias


def conferir_medidas(modelo: Modelo, normas_: np.ndarray) -> list[Conferencia]:
    """Normas, cossenos, analogia e PCA do modelo contra os números publicados do GPT-2."""
    # Os ids são os do BPE do GPT-2: outro tokenizador acharia outras linhas, ou nenhuma.
    gpt2 = fontes.tokenizador_gpt2()
    linha = {p: gpt2.linha(p).id for p in ("king", "man", "woman", "queen")}
    alvo = vetores.vetor_da_analogia(modelo.wte, linha["king"], linha["man"], linha["woman"])
    medido = {
        "norma_media": normas_.mean(),
        "norma_desvio": normas_.std(),
        "norma_minima": normas_.min(),
        "norma_maxima": normas_.max(),
        "cosseno_medio": vetores.anisotropia(modelo.wte, normas_),
        "king_queen": vetores.cosseno(modelo.wte[linha["king"]], modelo.wte[linha["queen"]]),
        "analogia_queen": vetores.cosseno(alvo, modelo.wte[linha["queen"]]),
        "analogia_king": vetores.cosseno(alvo, modelo.wte[linha["king"]]),
        "pca_50": tabela_posicoes.pca(modelo.wpe[:50], 2).fracao.sum(),
        "pca_200": tabela_posicoes.pca(modelo.wpe[:200], 2).fracao.sum(),
    }
    return [
        Conferencia(m["o_que"], float(medido[m["id"]]), m["esperado"], m["tolerancia"])
        for m in gpt2_medido.fatos()["medidas"]
    ]
