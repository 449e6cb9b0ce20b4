"""Os experimentos da apostila 02: cada função mede uma coisa e devolve um quadro pronto.

Quem mostra é a lição; aqui ninguém imprime. Um número é calculado uma vez, neste arquivo ou
nos que ele chama.
"""

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from nucleo.base.caderno import Conferencia, Quadro
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import contado, decimal, inteiro, porcento
from nucleo.contas import amarracao, arquitetura, tabela_posicoes, vetores
from nucleo.modelos import fontes, gpt2_medido, listas, pontas, tokens
from nucleo.modelos.fontes import Modelo
from nucleo.modelos.listas import Palavras
from nucleo.modelos.memoria import Memoria
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
    frase = f"`{visivel(forma.texto)}` é a linha {forma.id}"
    outra = tok.procurar(forma.palavra, not com_espaco)
    if outra is None:
        partes = tok.pedacos(("" if com_espaco else " ") + forma.palavra)
        frase += f"; {'sem' if com_espaco else 'com'} o espaço são {len(partes)} pedaços."
    elif outra.id != forma.id:
        frase += f"; `{visivel(outra.texto)}` é outra linha, a {outra.id}."
    else:
        frase += " (este tokenizador não liga para o espaço da frente)."
    return frase + (f" Atenção: {forma.aviso}." if forma.aviso else "")


# --- seção 1 -----------------------------------------------------------------------------


def tokens_da_frase(t: Tokenizador, frase: str) -> Quadro:
    """Os tokens da frase, na ordem: como se leem, o id, e como o vocabulário os guarda."""
    linhas = [[visivel(t.texto(i)), str(i), t.cru(i)] for i in t.ids(frase)]
    titulo = f"“{frase}” no tokenizador do {t.nome}: {contado(len(linhas), 'token')}"
    return Quadro(titulo, {"token": str, "id": str, "no vocabulário": str}, linhas)


@dataclass(frozen=True)
class Embaralho:
    """Os ids de uma frase antes e depois de embaralhar o vocabulário, e a maior diferença entre
    os vetores que eles buscam (zero: trocar etiquetas não muda nada)."""

    antes: list[int]
    depois: list[int]
    diferenca: float


def embaralhar(modelo: Modelo, frase: str, semente: int) -> Embaralho:
    """Permuta as linhas de wte e os ids junto, e busca a mesma frase nas duas tabelas."""
    ids = modelo.tokenizador.ids(frase)
    novo_id = np.random.default_rng(semente).permutation(modelo.V)  # (V,): id velho -> id novo
    depois, diferenca = novo_id[ids], 0.0
    for c in range(0, modelo.d, 256):
        # Umas colunas por vez: outra tabela inteira dobraria a memória.
        colunas = modelo.wte[:, c : c + 256]  # (V, d) -> (V, 256)
        embaralhada = np.empty_like(colunas)
        embaralhada[novo_id] = colunas  # as linhas em outra ordem
        diferenca = np.maximum(diferenca, np.abs(embaralhada[depois] - colunas[ids]).max())
    return Embaralho(ids, depois.tolist(), float(diferenca))


def conferir_onehot(ids: list[int], V: int) -> list[Conferencia]:
    """A menor e a maior distância entre os one-hot de ids diferentes, contra √2."""
    unicos = sorted(set(ids))
    if len(unicos) < 2:
        unicos = list(range(min(5, V)))  # frase de um token só: quaisquer ids servem
    E = np.stack([vetores.onehot(i, V) for i in unicos])  # (k,) -> (k, V)
    d2 = ((E[:, None] - E[None]) ** 2).sum(-1, dtype=np.float64)  # (k, k, V) -> (k, k)
    d = np.sqrt(d2[np.triu_indices(len(unicos), 1)])  # (k, k) -> (pares,)
    return [
        Conferencia(f"{nome} distância", float(x), 2**0.5, 1e-12)
        for nome, x in (("menor", d.min()), ("maior", d.max()))
    ]


# --- seção 2 -----------------------------------------------------------------------------


def vizinhos_da_palavra(modelo: Modelo, normas_: np.ndarray, forma: Forma, k: int) -> Quadro:
    """As k linhas mais próximas da palavra, fora ela mesma, e em que cada uma difere."""
    perto = vetores.vizinhos(modelo.wte, modelo.wte[forma.id], k, normas_, (forma.id,))
    texto = modelo.tokenizador.texto
    linhas = [
        [visivel(texto(i)), str(i), c, tokens.classificar_vizinho(forma.palavra, texto(i))]
        for i, c in perto
    ]
    return Quadro(
        f"Os mais próximos de {visivel(forma.texto)} (id {forma.id})",
        {"token": str, "id": str, "cosseno": decimal, "difere em": str},
        linhas,
    )


@dataclass(frozen=True)
class Niveis:
    """O que é "não ter nada a ver" nesta tabela: `tokens` (pares,) são cossenos de tokens
    sorteados; `palavras` é a média entre todas as palavras das nossas listas, comuns."""

    tokens: np.ndarray
    palavras: float

    def frase(self) -> str:
        """Os dois níveis, numa frase."""
        return (
            f"dois tokens ao acaso dão {decimal(self.tokens.mean())}; duas palavras comuns, "
            f"{decimal(self.palavras)}. É com isso que se compara um cosseno, e não com 0."
        )


def niveis(
    modelo: Modelo, normas_: np.ndarray, palavras: Palavras, quantos: int, semente: int
) -> Niveis:
    """Os dois níveis de referência do cosseno: tokens sorteados e palavras comuns das listas."""
    tabela = modelo.wte
    sorteados = vetores.cossenos_de_pares(tabela, normas_, quantos, semente)  # (quantos,)
    ids = sorted(set(palavras.linha.values()))
    comuns = vetores.anisotropia(tabela[ids], normas_[ids]) if len(ids) > 1 else float("nan")
    return Niveis(sorteados, comuns)


def pares_nomeados(modelo: Modelo, palavras: Palavras, nivel: Niveis) -> Quadro:
    """O cosseno dos pares da lista, a fração dos pares sorteados com cosseno menor, e o que se
    publicou do GPT-2 para o mesmo par, se alguém publicou."""
    ordenado = np.sort(nivel.tokens)  # (pares,)
    publicado = gpt2_medido.fatos()["wte_publicado"]["pares"]
    linhas = []
    for a, b in palavras.listas["pares"]:
        if a in palavras.linha and b in palavras.linha:
            c = vetores.cosseno(modelo.wte[palavras.linha[a]], modelo.wte[palavras.linha[b]])
            abaixo = float(np.searchsorted(ordenado, c) / len(ordenado))
            do_gpt2 = publicado.get(f"{a}–{b}", publicado.get(f"{b}–{a}"))
            linhas.append([f"{a} – {b}", c, abaixo, do_gpt2])
    colunas = {"par": str, "cosseno": decimal, "sorteados abaixo": porcento}
    return Quadro("Pares conhecidos", colunas | {"GPT-2, publicado": decimal}, linhas)


def perto_do_centro(modelo: Modelo, k: int) -> Quadro:
    """Os k tokens mais perto da linha média de wte, em distância euclidiana.

    No GPT-2 são os tokens-fantasma (" SolidGoldMagikarp"), que o treino quase não viu e que
    por isso aparecem como vizinhos de muita gente; em outros modelos pode não haver nenhum.
    """
    media = modelo.wte.mean(0)  # (V, d) -> (d,)
    # ‖w − m‖² = ‖w‖² − 2·w·m + ‖m‖²: sem montar outra matriz do tamanho da tabela.
    quadrado = np.einsum("vd,vd->v", modelo.wte, modelo.wte) - 2 * (modelo.wte @ media)  # (V,)
    distancias = np.sqrt(np.maximum(quadrado + media @ media, 0))
    perto = vetores.mais_altos(-distancias, k)
    texto = modelo.tokenizador.texto
    return Quadro(
        f"Os mais perto do centro da tabela (distância típica: {decimal(np.median(distancias))})",
        {"token": str, "id": str, "distância": decimal},
        [[visivel(texto(i)), str(i), distancias[i]] for i in perto],
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


def analogia_lado_a_lado(
    modelo: Modelo, normas_: np.ndarray, formas: list[Forma], alvo: np.ndarray, k: int
) -> Quadro:
    """As k linhas mais próximas de `alvo` (d,), com tudo permitido e sem as três entradas."""
    a, b, c = (f.id for f in formas)
    notas = vetores.cossenos(modelo.wte, alvo, normas_)  # (V,): uma vez, para as duas listas
    livre, sem = vetores.mais_altos(notas, k), vetores.mais_altos(notas, k, (a, b, c))
    texto = modelo.tokenizador.texto
    linhas = []
    # Num vocabulário minúsculo, sem as entradas sobram menos linhas: a mais curta manda.
    for posto, (i, j) in enumerate(zip(livre, sem, strict=False), 1):
        e_entrada = "sim" if i in (a, b, c) else ""
        linhas.append([posto, visivel(texto(i)), notas[i], e_entrada, visivel(texto(j)), notas[j]])
    conta = "{} − {} + {}".format(*(f.palavra for f in formas))
    return Quadro(
        f"{conta}: com tudo permitido, e sem as palavras de entrada",
        {"lugar": str, "tudo permitido": str, "cosseno": decimal, "entrada": str}
        | {"sem as entradas": str, "cosseno, sem": decimal},
        linhas,
    )


def frase_da_analogia(quadro: Quadro, formas: list[Forma]) -> str:
    """Quem venceu e como, lido da própria tabela; para king − man + woman, com o GPT-2 ao lado."""
    _, livre, nota, e_entrada, sem, nota_sem = quadro.linhas[0]
    if e_entrada:
        frase = (
            f"com tudo permitido vence `{livre}` ({decimal(nota)}), que é uma das entradas; só "
            f"proibindo as entradas vence `{sem}` ({decimal(nota_sem)})."
        )
    else:
        frase = f"aqui `{sem}` vence mesmo com tudo permitido ({decimal(nota_sem)})."
    if [f.palavra for f in formas] == ["king", "man", "woman"]:
        gpt2 = gpt2_medido.fatos()["wte_publicado"]["analogia"]
        frase += (
            f" No GPT-2, publicado: ' king' {decimal(gpt2['king'])} e ' queen' "
            f"{decimal(gpt2['queen'])}; a demonstração famosa esconde a primeira."
        )
    return frase


@dataclass(frozen=True)
class Conjunto:
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

    def parte(x: int, n: int) -> float | None:
        return x / n if n else None

    linhas = [
        [p.nome, p.total, p.cobertas / p.total]
        + [parte(x, p.cobertas) for x in (p.certas_livre, p.certas_sem_entradas)]
        + [parte(p.entrada_primeiro, p.cobertas)]
        for p in placares
    ]
    nomes = ("cabem", "tudo permitido", "sem entradas", "entrada em 1º")
    return Quadro(
        titulo, {"categoria": str, "perguntas": inteiro} | dict.fromkeys(nomes, porcento), linhas
    )


def resumo_do_conjunto(conjunto: Conjunto) -> dict[str, float]:
    """{id: fração} do total das categorias nos dois protocolos, para o resultado.json."""
    resumo = {}
    for nome, placares in (("cruas", conjunto.cruas), ("normalizadas", conjunto.normalizadas)):
        cobertura, *partes = placar("", placares).linhas[-1][2:]
        resumo["analogias_cobertura"] = cobertura
        for parte, valor in zip(("livre", "sem_entradas", "entrada_primeiro"), partes, strict=True):
            resumo[f"analogias_{nome}_{parte}"] = valor
    return resumo


def frase_do_conjunto(resumo: dict[str, float]) -> str:
    """O que o placar mostra, com os números medidos: o efeito de cada escolha de protocolo."""
    livre, sem, norm = (
        porcento(resumo[f"analogias_{x}"])
        for x in ("cruas_livre", "cruas_sem_entradas", "normalizadas_sem_entradas")
    )
    return (
        f"proibir as entradas leva de {livre} a {sem} de acertos; normalizar as linhas antes, a "
        f"{norm}. O mesmo modelo, três números: o protocolo faz parte do resultado."
    )


def direcoes(modelo: Modelo, palavras: Palavras, semente: int) -> Quadro:
    """O alinhamento dos pares de cada direção, ao lado de dois controles.

    O alinhamento é o cosseno do deslocamento de cada par com a média dos outros. Controles: as
    mesmas palavras em pares sorteados, e pares de tokens sorteados do vocabulário.
    """
    sorteio, linhas = np.random.default_rng(semente), []
    for nome, pares in palavras.listas["direcoes"].items():
        ids = palavras.ids(pares)  # (n, 2)
        if len(ids) < 3:
            linhas.append([nome, len(ids), None, None, None, None, None])
            continue
        certo = vetores.alinhamento(vetores.deslocamentos(modelo.wte, ids))  # (n, 2) -> (n,)
        trocas, acasos = [], []
        for _ in range(100):
            soltas = sorteio.permutation(ids.reshape(-1)).reshape(-1, 2)
            tokens = sorteio.integers(0, modelo.V, ids.shape)
            trocas.append(vetores.alinhamento(vetores.deslocamentos(modelo.wte, soltas)).mean())
            acasos.append(vetores.alinhamento(vetores.deslocamentos(modelo.wte, tokens)).mean())
        cabem = [p for p in pares if len(palavras.presentes(p)) == 2]
        fraco = " – ".join(cabem[int(certo.argmin())])
        linhas.append(
            [nome, len(ids), certo.mean(), np.mean(trocas), np.mean(acasos), certo.min(), fraco]
        )
    colunas = ("alinhamento", "pares trocados", "tokens ao acaso", "o menor")
    return Quadro(
        "Direções: cada par aponta para onde os outros apontam?",
        {"direção": str, "pares": inteiro}
        | dict.fromkeys(colunas, decimal)
        | {"par do menor": str},
        linhas,
    )


@dataclass(frozen=True)
class Regua:
    """Palavras projetadas numa direção: `valores` (m,), 0 no meio dos pares, ±0,5 nas pontas
    médias."""

    direcao: str
    pontas: tuple[str, str]
    palavras: list[str]
    valores: np.ndarray
    usada: list[bool]  # a palavra entrou na conta da direção?


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
    return Regua(
        lista["direcao"], tuple(lista["pontas"]), nomes, valores, [p in usadas for p in nomes]
    )


def quadro_da_regua(regua: Regua) -> Quadro:
    """A régua como tabela, de uma ponta à outra."""
    linhas = sorted(
        zip(regua.palavras, regua.valores, regua.usada, strict=True), key=lambda x: x[1]
    )
    baixo, alto = regua.pontas
    return Quadro(
        f"Palavras entre {baixo} (−0,5) e {alto} (+0,5)",
        {"palavra": str, "valor": decimal, "fez a direção?": str},
        [[p, v, "sim" if u else ""] for p, v, u in linhas],
    )


def frase_da_regua(regua: Regua) -> str:
    """As duas palavras de fora da conta que ficaram nas pontas: o que a tabela aprendeu do texto."""
    fora = [
        (v, p) for p, v, u in zip(regua.palavras, regua.valores, regua.usada, strict=True) if not u
    ]
    if len(fora) < 2:
        return "todas as palavras desta régua fizeram a direção: o lugar delas não prova nada."
    (menor, um), (maior, outra) = min(fora), max(fora)
    return (
        f"das palavras que não fizeram a direção, {um} ({decimal(menor)}) e {outra} "
        f"({decimal(maior)}) são os extremos. O lugar vem do texto de treino, vieses inclusos."
    )


# --- seção 3 -----------------------------------------------------------------------------


def forma_do_exemplo(tok: Tokenizador, palavras: Palavras) -> Forma:
    """A palavra de exemplo da lista; se ela não for um token só, outra que seja; se nenhuma for,
    a linha 0, seja o que for que ela escreva."""
    for palavra in palavras.presentes([palavras.listas["cru"], *palavras.linha]):
        return tok.linha(palavra)
    return Forma(tok.texto(0), tok.texto(0), 0)


def vetor_cru(modelo: Modelo, forma: Forma, quantos: int) -> Quadro:
    """Os primeiros números da linha de uma palavra, como estão na tabela."""
    quantos = min(quantos, modelo.d)
    linhas = [[str(i), x] for i, x in enumerate(modelo.wte[forma.id, :quantos])]
    titulo = f"{visivel(forma.texto)}, linha {forma.id}: {quantos} dos {modelo.d} números"
    return Quadro(titulo, {"coordenada": str, "valor": lambda x: decimal(x, 6)}, linhas)


@dataclass(frozen=True)
class Custo:
    """Quanto custa buscar a linha i pelo produto e pelo índice, e se dá o mesmo vetor."""

    diferenca: float
    ms_produto: float
    ms_indice: float


def custo_da_consulta(tabela: np.ndarray, i: int, vezes: int = 7) -> Custo:
    """Busca a mesma linha das duas maneiras; os tempos são medianas de `vezes` repetições."""
    e = vetores.onehot(i, len(tabela))  # (V,)

    def mediana(f):
        tempos = []
        for _ in range(vezes):
            t = time.perf_counter()
            resultado = f()
            tempos.append((time.perf_counter() - t) * 1e3)
        return resultado, float(np.median(tempos))

    produto, ms_produto = mediana(lambda: e @ tabela)  # (V,) @ (V, d) -> (d,)
    indice, ms_indice = mediana(lambda: tabela[i].copy())  # (V, d) -> (d,)
    return Custo(float(np.abs(produto - indice).max()), ms_produto, ms_indice)


def frase_do_custo(modelo: Modelo, custo: Custo) -> str:
    """Quantas multiplicações o produto desperdiça, e quantas vezes mais ele demorou."""
    vezes = inteiro(round(custo.ms_produto / custo.ms_indice, -1))
    return (
        f"o produto faz |V|·d = {inteiro(modelo.V * modelo.d)} multiplicações (e não os "
        f"|V| = {inteiro(modelo.V)} que a apostila original diz), quase todas por zero: {vezes} vezes mais lento."
    )


def quadro_do_custo(modelo: Modelo, custo: Custo) -> Quadro:
    """Multiplicações e milissegundos das duas buscas."""
    return Quadro(
        "Duas maneiras de buscar a mesma linha",
        {"como": str, "multiplicações": inteiro, "milissegundos": lambda x: decimal(x, 4)},
        [["onehot · W", modelo.V * modelo.d, custo.ms_produto], ["W[i]", 0, custo.ms_indice]],
    )


# --- seção 4 -----------------------------------------------------------------------------


def linhas_a_comparar(n: int) -> list[int]:
    """As posições do exercício (0, 1, 2 e 500) que existem numa tabela de n linhas; se a 500 não
    existir, entra a do meio."""
    return [i for i in (0, 1, 2) if i < n] + ([500] if n > 500 else [n // 2] if n > 6 else [])


def tabela_de_posicoes(modelo: Modelo) -> np.ndarray:
    """(n_ctx, d): as linhas de wpe que são de verdade posições (no RoBERTa, a partir da 2)."""
    return np.asarray(modelo.wpe[modelo.primeira_posicao :], dtype=np.float32)


def cossenos_das_linhas(nome: str, cossenos: np.ndarray) -> Quadro:
    """Os cossenos entre as posições do exercício 3. cossenos: (n, n)."""
    quais = linhas_a_comparar(len(cossenos))
    linhas = [[str(i), *(cossenos[i, j] for j in quais)] for i in quais]
    colunas = {"linha": str} | {str(j): decimal for j in quais}
    return Quadro(f"{nome}: cossenos entre posições", colunas, linhas)


def curva_de_defasagem(wpe: np.ndarray, centrada: bool) -> np.ndarray:
    """(m,): o cosseno médio a cada distância, sem a primeira nem a última linha.

    Centrada, sai antes a linha média, comum a todas: sem isso um viés pareceria semelhança.
    """
    tabela = tabela_posicoes.centrar(wpe) if centrada else wpe
    cossenos = tabela_posicoes.cossenos_entre_linhas(tabela)  # (n, d) -> (n, n)
    return tabela_posicoes.por_defasagem(cossenos, 1, len(wpe) - 1)


def defasagens(nome: str, wpe: np.ndarray) -> Quadro:
    """O cosseno médio nas distâncias que são potências de 2, cru e sem a linha média."""
    cru, centrado = (curva_de_defasagem(wpe, c) for c in (False, True))
    linhas = [[k, cru[k], centrado[k]] for k in (2**p for p in range(10)) if k < len(cru)]
    colunas = {"distância": inteiro, "cosseno médio": decimal, "sem a linha média": decimal}
    return Quadro(f"{nome}: semelhança a cada distância", colunas, linhas)


def frase_da_defasagem(quadro: Quadro) -> str:
    """O que a tabela de distâncias mostra, com os números dela."""
    if not quadro.linhas:
        return "há posições de menos para comparar distâncias."
    (perto, _, um), (longe, _, muito) = quadro.linhas[0], quadro.linhas[-1]
    return (
        f"sem a linha média, {decimal(um)} à distância {perto} e {decimal(muito)} à distância "
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


def explicar_limite(dono: Modelo, biblioteca: "Biblioteca") -> str:
    """O que acontece com um token a mais que n_ctx, provocado de verdade, e por quê."""
    n = dono.n_ctx
    conta = f"wpe tem {contado(len(dono.wpe), 'linha')}; pedir a seguinte é um erro de índice."
    if dono.tem_completo:
        mensagem = biblioteca.limite(dono)
        if not mensagem:
            return f"{dono.nome} aceitou {n + 1} tokens: ele não usa a tabela como limite."
        conta = f"{n + 1} tokens em {dono.nome} dão `{mensagem}`."
    return (
        f"E na posição {n}? {conta} A mensagem não fala em posição, mas é dela que se trata: "
        "a linha não existe. O laboratório confere antes e diz os dois números."
    )


# --- seção 5 -----------------------------------------------------------------------------


def partes_da_entrada(modelo: Modelo, ids: list[int]) -> Quadro:
    """O tamanho do conteúdo, da posição e da soma, token a token, e o cosseno entre as partes.

    Num modelo sem wpe só há o conteúdo: a posição nula nem direção teria.
    """
    o_que, onde = pontas.partes_de_h0(modelo, ids)  # (n, d), (n, d)
    if modelo.wpe is None:
        return Quadro(
            "O tamanho de cada linha de h₀ (aqui, só o conteúdo)",
            {"token": str, "‖h₀‖": decimal},
            [
                [visivel(modelo.tokenizador.texto(i)), np.linalg.norm(x)]
                for i, x in zip(ids, o_que, strict=True)
            ],
        )
    linhas = [
        [visivel(modelo.tokenizador.texto(i))]
        + [np.linalg.norm(x), np.linalg.norm(p), np.linalg.norm(x + p), vetores.cosseno(x, p)]
        for i, x, p in zip(ids, o_que, onde, strict=True)
    ]
    colunas = ("‖o quê‖", "‖onde‖", "‖h₀‖", "cos(o quê, onde)")
    return Quadro(
        "O tamanho de cada parte da soma", {"token": str} | dict.fromkeys(colunas, decimal), linhas
    )


class Biblioteca:
    """O que a lição pergunta ao transformers: cada coisa uma vez só nesta execução, e nas próximas
    vem da `Memoria`. `avisar(texto)` diz de quando é cada resposta lembrada."""

    def __init__(self, modelo: Modelo, memoria: Memoria, avisar: Callable[[str], None]):
        self._modelo, self._memoria, self._avisar = modelo, memoria, avisar
        self._feitas: dict = {}
        self._como_repetir = " `--ao-vivo` mede de novo."  # dito uma vez

    def _perguntar(
        self, o_que: str, pergunta: Callable, *argumentos, modelo: Modelo | None = None
    ) -> dict:
        chave = (pergunta, modelo and str(modelo.pasta), repr(argumentos))
        if chave not in self._feitas:
            r = self._memoria.perguntar(pergunta, *argumentos, modelo=modelo)
            self._feitas[chave] = r.valor
            if r.lembrada:
                versoes = " e do ".join(f"{nome} {v}" for nome, v in r.versoes.items())
                self._avisar(
                    f"**Guardado**, e não medido agora: {o_que}. Resposta do {versoes}, neste computador, "
                    f"em {r.quando}.{self._como_repetir}"
                )
                self._como_repetir = ""
        return self._feitas[chave]

    def passagem(self, ids: list[int]) -> pontas.Passagem | None:
        """A passagem da frase pelo modelo inteiro; None, com o porquê dito, se só as tabelas
        estiverem em disco."""
        try:
            o_que = f"o que o {self._modelo.nome} inteiro calcula para a frase"
            dito = self._perguntar(o_que, pontas.perguntar_passagem, ids, modelo=self._modelo)
        except ErroDoUsuario as erro:
            self._avisar(f"{erro.o_que} {erro.por_que} {erro.o_que_fazer}")
            return None
        formas = [tuple(f) for f in dito["formas"]]
        return pontas.Passagem(dito["h0"], dito["h_final"], dito.get("logits"), formas)

    def pontas(self) -> dict:
        """As respostas de `perguntar_pontas`."""
        o_que = f"o que se perguntou às duas matrizes do {self._modelo.nome}"
        return self._perguntar(o_que, perguntar_pontas, modelo=self._modelo)

    def limite(self, dono: Modelo) -> str:
        """A mensagem de `pontas.tropeco_no_limite`."""
        o_que = f"o erro do {dono.nome} com um token a mais do que cabe"
        return self._perguntar(o_que, pontas.perguntar_limite, modelo=dono)["mensagem"]

    def enderecos_no_meta(self) -> tuple[int, int]:
        """Os de `amarracao.endereco_no_meta`."""
        o_que = "os endereços de dois tensores no dispositivo meta"
        um, outro = self._perguntar(o_que, perguntar_meta)["enderecos"]
        return um, outro

    def contas(self) -> dict[str, dict[str, int]]:
        """{tamanho: {peça: parâmetros}} dos quatro GPT-2, montados no dispositivo meta."""
        o_que = "as contas dos quatro GPT-2, montados no dispositivo meta"
        tamanhos = [asdict(t) for t in TAMANHOS.values()]
        return self._perguntar(o_que, perguntar_contas, tamanhos)


def perguntar_pontas(modelo: Modelo) -> dict:
    """Do modelo montado: quantos parâmetros tem, se tem matriz de saída, e a `amarracao` dela com
    a de entrada (None se não houver o que comparar). Erros: `ErroDoUsuario` se só há tabelas."""
    de_entrada, de_saida = pontas.matrizes_das_pontas(modelo)
    comparavel = de_saida is not None and modelo.cabeca != "ausente"
    return {
        "parametros": sum(p.numel() for p in modelo.completo().parameters()),
        "tem_saida": de_saida is not None,
        "amarracao": asdict(amarracao.amarracao(de_entrada, de_saida)) if comparavel else None,
    }


def perguntar_meta() -> dict:
    """O `endereco_no_meta`."""
    return {"enderecos": list(amarracao.endereco_no_meta())}


def perguntar_contas(tamanhos: list[dict]) -> dict:
    """{tamanho: {peça: parâmetros}}: `arquitetura.contar` de cada um, como a memória guarda."""
    return {t["nome"]: arquitetura.contar(Tamanho(**t)) for t in tamanhos}


def conferir_h0(modelo: Modelo, ids: list[int], passagem: pontas.Passagem) -> Conferencia:
    """A nossa h₀ contra a hidden_states[0] da biblioteca: a maior diferença."""
    bert = modelo.familia in fontes.CODIFICADORES
    nossa = pontas.soma_do_bert(modelo, ids) if bert else pontas.h0(modelo, ids)
    nome = "h₀ contra hidden_states[0]" + (" (com tipo de frase e LayerNorm)" if bert else "")
    return Conferencia(nome, float(np.abs(nossa - passagem.h0).max()), 0.0, 1e-5)


def cossenos_gaussianos(d: int, quantos: int, semente: int) -> np.ndarray:
    """(pares,), pelo menos `quantos`: cossenos entre vetores sorteados em d dimensões. Desvio ≈ 1/√d.

    São todos os pares de k vetores: 201 bastam para 20.000. Dois pares com um vetor em comum não
    dependem um do outro (para qualquer x fixo, a direção de y é uniforme), e por isso a média e o
    desvio têm a mesma precisão que teriam com pares separados.
    """
    k = int(np.ceil((1 + np.sqrt(1 + 8 * quantos)) / 2))  # o menor k com k·(k − 1)/2 ≥ quantos
    x = np.random.default_rng(semente).standard_normal((k, d), dtype=np.float32)  # (k, d)
    x /= np.sqrt(np.einsum("kd,kd->k", x, x))[:, None]
    return (x @ x.T)[np.triu_indices(k, 1)]  # (k, d) @ (d, k) -> (k, k) -> (pares,)


def conferir_gaussianos(cossenos: np.ndarray, d: int) -> list[Conferencia]:
    """Média 0 e desvio 1/√d. As tolerâncias são de 4 desvios do estimador, em n pares."""
    n = len(cossenos)
    return [
        Conferencia("cosseno médio", float(cossenos.mean()), 0.0, 4 / (n * d) ** 0.5),
        Conferencia("desvio (1/√d)", float(cossenos.std()), d**-0.5, 4 * (2 * n * d) ** -0.5),
    ]


def soma_ou_concatenacao(nome: str = "gpt2") -> Quadro:
    """Quanto custariam os blocos somando (largura d) e concatenando (largura 2d).

    Multiplicações: as dos produtos por matriz (c_attn, c_proj, c_fc, c_proj), sem a atenção
    entre tokens, que cresce com o contexto nos dois casos.
    """
    t = TAMANHOS[nome]
    linhas = []
    for como, d in (("somar", t.n_embd), ("concatenar", 2 * t.n_embd)):
        conta = arquitetura.formula(Tamanho(t.nome, t.n_layer, d, t.n_head, 0))
        blocos = sum(n for peca, n in conta.items() if peca not in ("wte", "wpe"))
        # Cada peso de matriz multiplica uma vez por token: 12·d² por camada.
        linhas.append([como, d, blocos, t.n_layer * 12 * d * d])
    colunas = ("largura", "parâmetros nos blocos", "multiplicações por token")
    return Quadro(
        f"Somar ou concatenar, no tamanho do {nome}",
        {"como": str} | dict.fromkeys(colunas, inteiro),
        linhas,
    )


# --- seção 6 -----------------------------------------------------------------------------


def perguntas_da_amarracao(pontas: dict) -> Quadro:
    """O que se pergunta à matriz de entrada e à de saída do modelo inteiro, e as respostas.
    `pontas` é o que `Biblioteca.pontas` devolve."""
    if not pontas["tem_saida"]:
        linhas = [["há uma matriz de saída?", "não: este modelo não prevê tokens"]]
    elif pontas["amarracao"] is None:
        linhas = [["há uma matriz de saída no arquivo?", "não: a biblioteca sortearia uma"]]
    else:
        r = amarracao.Amarracao(**pontas["amarracao"])
        nomes = {
            "é o mesmo objeto Python?": r.mesmo_objeto,
            "começa no mesmo endereço (data_ptr)?": r.mesmo_endereco,
            "usa o mesmo pedaço de memória (storage)?": r.mesma_memoria,
            "mudar um número na entrada muda a saída?": r.mudanca_vista,
        }
        linhas = [[pergunta, "sim" if x else "não"] for pergunta, x in nomes.items()]
    return Quadro("Entrada e saída são a mesma matriz?", {"pergunta": str, "resposta": str}, linhas)


def conferir_logits(modelo: Modelo, passagem: pontas.Passagem) -> list[Conferencia]:
    """h_final · wteᵀ contra os logits da biblioteca; lista vazia onde não há cabeça amarrada ou
    a cabeça faz mais que um produto (BERT). Relativa ao maior logit, que chega a dezenas."""
    if (
        passagem.logits is None
        or modelo.cabeca != "amarrada"
        or modelo.familia in fontes.CODIFICADORES
    ):
        return []
    nossos = passagem.h_final @ modelo.wte.T  # (n, d) @ (d, V) -> (n, V)
    diferenca = np.abs(nossos - passagem.logits).max() / np.abs(passagem.logits).max()
    return [Conferencia("h_final · wteᵀ (relativa ao maior logit)", float(diferenca), 0.0, 1e-5)]


def economia(modelo: Modelo, pontas: dict) -> Quadro:
    """Parâmetros com a cabeça amarrada e com ela solta, e que parte deles é uma wte."""
    uma, amarrado = modelo.V * modelo.d, pontas["parametros"]
    if pontas["tem_saida"] and modelo.cabeca != "amarrada":
        amarrado -= uma
    linhas = [
        ["amarrado (uma matriz)", amarrado, uma / amarrado],
        ["solto (duas matrizes)", amarrado + uma, uma / (amarrado + uma)],
    ]
    return Quadro(
        "O que a amarração economiza",
        {"modelo": str, "parâmetros": inteiro, "parte que é uma wte": porcento},
        linhas,
    )


def economia_do_gpt2() -> Quadro:
    """A mesma conta para o GPT-2 small, só da arquitetura: as duas divisões que se confundem."""
    t = TAMANHOS["gpt2"]
    uma, total = t.vocab * t.n_embd, sum(arquitetura.formula(t).values())
    return Quadro(
        "E no GPT-2 small, contado da arquitetura",
        {"modelo": str, "parâmetros": inteiro, "parte que é uma wte": porcento},
        [
            ["amarrado, como ele é", total, uma / total],
            ["se fosse solto", total + uma, uma / (total + uma)],
        ],
    )


def proximos_tokens(modelo: Modelo, passagem: pontas.Passagem, k: int) -> Quadro:
    """Os k tokens mais prováveis depois da frase: as linhas de wte mais parecidas, em produto
    interno, com o último estado do modelo."""
    logits = passagem.logits[-1].astype(np.float64)  # (n, V) -> (V,)
    probabilidades = np.exp(logits - logits.max())
    probabilidades /= probabilidades.sum()
    return Quadro(
        "Os tokens de maior pontuação para o último estado (logit = h_final · linha)",
        {"token": str, "id": str, "logit": decimal, "probabilidade": porcento},
        [
            [visivel(modelo.tokenizador.texto(i)), str(i), logits[i], probabilidades[i]]
            for i in vetores.mais_altos(logits, k)
        ],
    )


# --- seções 7 e 8 ------------------------------------------------------------------------


def correcoes(gpt2: Tokenizador, zeros: tuple[int, int]) -> Quadro:
    """O que a listagem da apostila supõe, o que se mede aqui, e o que o laboratório faz. `zeros` são
    os endereços de dois tensores no dispositivo meta."""
    gato = gpt2.ids(" gato")
    frase = gpt2.ids("O Brasil é gigante")
    pedacos = " + ".join(map(visivel, gpt2.pedacos(" gato")))
    linhas = [
        [
            "' gato' é um token",
            f"são {len(gato)}: {pedacos}",
            "recusamos a palavra e mostramos os pedaços",
        ],
        [
            "encode(' gato')[0] é o gato",
            f"é {visivel(gpt2.texto(gato[0]))} (id {gato[0]})",
            "nunca pegamos o primeiro pedaço em silêncio",
        ],
        [
            "gato = 4899, cachorro = 5257",
            f"4899 é {visivel(gpt2.texto(4899))}\n5257 é {visivel(gpt2.texto(5257))}",
            "ids de exemplo são ditos hipotéticos",
        ],
        [
            "a frase do Brasil tem 5 tokens",
            f"tem {len(frase)}: " + "|".join(gpt2.texto(i) for i in frase),
            "contamos com o tokenizador",
        ],
        [
            "AutoModelForCausalLM já foi importado",
            "a listagem importa AutoModel e AutoTokenizer",
            "cada lição importa o que usa",
        ],
        [
            "carrega o modelo duas vezes",
            "dois GPT-2 inteiros para ler duas tabelas",
            "lemos só wte e wpe, mapeadas em memória",
        ],
        [
            "data_ptr() igual prova a amarração",
            f"no meta, dois tensores sem parentesco: {zeros[0]} e {zeros[1]}",
            "recusamos o meta e testamos uma mudança",
        ],
    ]
    return Quadro(
        "O que a listagem da apostila original supõe, e o que se mede",
        {"supõe": str, "medido": str, "o que fazemos": str},
        linhas,
    )


def tamanhos(contas: dict[str, dict[str, int]]) -> tuple[Quadro, list[Conferencia]]:
    """(quadro, conferências) dos quatro GPT-2. `contas`: {tamanho: {peça: parâmetros}}, contados no
    dispositivo meta."""
    linhas, conferencias = [], []
    for t in TAMANHOS.values():
        conta, a_mao = contas[t.nome], arquitetura.formula(t)
        total, bytes_ = sum(conta.values()), 4 * (conta["wte"] + conta["wpe"])
        maior, _forma = arquitetura.maior_matriz(t)
        linhas.append(
            [t.nome, t.n_layer, t.n_embd, total, conta["wte"], conta["wte"] / total]
            + [maior, conta["MLP: c_fc"] // t.n_layer, bytes_ / 1e6, bytes_ / 2**20]
        )
        conferencias.append(Conferencia(f"{t.nome}: parâmetros", total, t.publicado))
        pior = max(abs(a_mao[p] - conta[p]) for p in conta)
        conferencias.append(Conferencia(f"{t.nome}: pior peça da conta à mão", pior))
    colunas = {"modelo": str, "camadas": inteiro, "d": inteiro, "parâmetros": inteiro}
    colunas |= {"wte": inteiro, "parte de wte": porcento, "maior matriz": str, "uma c_fc": inteiro}
    colunas |= {"MB": lambda x: decimal(x, 1), "MiB": lambda x: decimal(x, 1)}
    return Quadro(
        "Os quatro GPT-2, contados da arquitetura (em MB: wte + wpe, float32)", colunas, linhas
    ), conferencias


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
