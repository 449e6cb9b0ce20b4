"""O que não cabe na página da lição 06_projecoes: o conjunto de palavras, as dezenas de desenhos, os
controles e o veredito."""

import itertools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from nucleo.base import caminhos
from nucleo.base.caderno import Quadro
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import folga, projecoes
from nucleo.contas.projecoes import Corridas
from nucleo.modelos.fontes import Modelo
from nucleo.modelos.tokens import Tokenizador, normalizar, visivel

MINIMO_DE_PONTOS = 12
MAXIMO_DE_PONTOS = 400  # o t-SNE exato cresce com n²: além disto a aula acaba antes
MINIMO_NO_GRUPO = 3
SORTEADO = "sorteados"


# --- o conjunto ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conjunto:
    """Os pontos da lição: `ids` (n,), `nomes` (n,) como se leem, `rotulos` (n,) índices em
    `grupos` (−1: token sorteado), `X` (n, d) linhas de wte com comprimento 1, e os `avisos`."""

    ids: np.ndarray
    nomes: list[str]
    rotulos: np.ndarray
    grupos: list[str]
    X: np.ndarray
    avisos: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.ids)

    def grupo_de(self, i: int) -> str:
        """O nome do grupo do ponto i, ou "sorteados"."""
        return self.grupos[self.rotulos[i]] if self.rotulos[i] >= 0 else SORTEADO


def grupos_para(tok: Tokenizador) -> dict[str, list[str]]:
    """Os grupos no idioma que o tokenizador conhece melhor; no empate, o inglês."""

    def inteiras(grupos: dict[str, list[str]]) -> float:
        return np.mean([tok.procurar(p) is not None for g in grupos.values() for p in g])

    arquivos = sorted((caminhos.DADOS / "grupos").glob("??.json"))
    return max(
        (json.loads(a.read_text(encoding="utf-8"))["grupos"] for a in arquivos), key=inteiras
    )


def grupos_do_arquivo(caminho: str) -> dict[str, list[str]]:
    """Os grupos de um JSON de quem está ao teclado: {"grupo": ["palavra", ...], ...}.

    Erros: `ErroDoUsuario` se faltar, não for JSON, ou não tiver essa forma.
    """
    arquivo = Path(os.path.expanduser(caminho))
    exemplo = 'Escreva assim:  {"animais": ["dog", "cat"], "cores": ["red", "blue"]}'
    try:
        lido = json.loads(arquivo.read_text(encoding="utf-8-sig"))
    except OSError as erro:
        raise ErroDoUsuario(
            f"Não consegui ler {caminho}.", f"O sistema respondeu: {erro.strerror}.", exemplo
        ) from None
    except ValueError as erro:
        raise ErroDoUsuario(f"Não entendi {caminho}.", f"Não é JSON: {erro}.", exemplo) from None
    grupos = lido.get("grupos", lido) if isinstance(lido, dict) else None
    listas = list(grupos.values()) if isinstance(grupos, dict) else []
    palavras = [p for lista in listas for p in (lista if isinstance(lista, list) else [None])]
    if not listas or not all(isinstance(p, str) for p in palavras):
        raise ErroDoUsuario(
            f"{caminho} não tem grupos de palavras.",
            "Esperava um objeto em que cada nome de grupo leva a uma lista de palavras.",
            exemplo,
        )
    return grupos


def escolher_grupos(grupos: dict, pedidos: list[str] | None) -> dict[str, list[str]]:
    """Só os grupos pedidos. Erros: `ErroDoUsuario` para um nome que não existe."""
    for nome in pedidos or []:
        if nome not in grupos:
            raise ErroDoUsuario(
                f"Não há um grupo {nome!r}.",
                f"Os grupos são: {', '.join(grupos)}.",
                f"Por exemplo:  --grupo {next(iter(grupos))}",
            )
    return {n: g for n, g in grupos.items() if not pedidos or n in pedidos}


def montar(modelo: Modelo, grupos: dict, sorteados: int, semente: int) -> Conjunto:
    """Os pontos: as palavras inteiras de cada grupo e tokens sorteados, com comprimento 1.

    Palavra em pedaços, palavra repetida e grupo pequeno demais saem, com aviso. Linhas iguais
    ficam, com aviso. Erros: `ErroDoUsuario` se sobrarem pontos de menos.
    """
    tok, avisos, ids, rotulos, nomes = modelo.tokenizador, [], [], [], []
    visto: dict[int, str] = {}
    for nome, palavras in grupos.items():
        meus, fora = [], []
        for palavra in palavras:
            forma = tok.procurar(palavra)
            if forma is None:
                fora.append(normalizar(palavra).strip() or "(vazia)")
            elif forma.id in visto:
                avisos.append(f"“{forma.palavra}” já estava em “{visto[forma.id]}”: fica só lá")
            else:
                visto[forma.id] = nome
                meus.append(forma.id)
        if fora:
            avisos.append(f"{nome}: fora por não serem um token só: {', '.join(fora)}")
        if len(meus) < MINIMO_NO_GRUPO:
            pede = f"um grupo precisa de {MINIMO_NO_GRUPO}, e ele saiu"
            avisos.append(f"o grupo “{nome}” ficou com {len(meus)} palavra(s): {pede}")
            continue
        ids += meus
        rotulos += [len(nomes)] * len(meus)
        nomes.append(nome)
    livres = np.setdiff1d(np.arange(min(modelo.V, tok.maior_id + 1)), list(visto))
    sorteio = np.random.default_rng(semente)
    extras = sorteio.choice(livres, min(sorteados, len(livres)), replace=False)
    ids = np.array([*ids, *extras], dtype=np.int64)
    rotulos = np.array([*rotulos, *([-1] * len(extras))], dtype=np.int64)
    if len(ids) < MINIMO_DE_PONTOS:
        raise ErroDoUsuario(
            f"Só há {len(ids)} pontos para desenhar.",
            f"{' '.join(a + '.' for a in avisos)} Com menos de {MINIMO_DE_PONTOS} pontos, nenhuma "
            "das medidas da lição quer dizer alguma coisa.".strip(),
            "Peça mais grupos, ou mais tokens com --sorteados 30",
        )
    if len(ids) > MAXIMO_DE_PONTOS:
        raise ErroDoUsuario(
            f"São {len(ids)} pontos, e a lição desenha até {MAXIMO_DE_PONTOS}.",
            "São dezenas de desenhos, e o tempo de cada um cresce com o quadrado dos pontos.",
            "Escolha alguns grupos com --grupo, ou peça menos tokens com --sorteados",
        )
    linhas = modelo.wte[ids].astype(np.float32)  # (V, d) -> (n, d)
    normas = np.linalg.norm(linhas, axis=1, keepdims=True)
    X = linhas / np.where(normas > 0, normas, 1)  # (n, d)
    # Arredondado: a mesma direção com outro comprimento difere na última casa do float32.
    iguais = len(X) - len(np.unique(X.round(6), axis=0))
    if iguais:
        avisos.append(f"{iguais} ponto(s) repetem o vetor de outro: estão à distância zero dele")
    if len(nomes) == 1:
        avisos.append("há um grupo só: as medidas entre grupos ficam de fora")
    return Conjunto(ids, [visivel(tok.texto(int(i))) for i in ids], rotulos, nomes, X, avisos)


def quadro_do_conjunto(c: Conjunto) -> Quadro:
    """Quantos pontos cada grupo tem, e alguns deles."""
    dos_grupos: dict[str, list[str]] = {}
    for i, nome in enumerate(c.nomes):  # os pontos já vêm grupo a grupo, e os sorteados no fim
        dos_grupos.setdefault(c.grupo_de(i), []).append(nome)
    linhas = [[grupo, len(meus), " ".join(meus[:5])] for grupo, meus in dos_grupos.items()]
    colunas = {"grupo": str, "pontos": inteiro, "os primeiros": str}
    return Quadro(f"Os {c.n} pontos", colunas, linhas)


def escolher_botoes(pedidos: list[int] | None, padrao: tuple[int, ...], n: int) -> list[int]:
    """As perplexidades pedidas, sem repetir; ou as de `padrao` menores que um terço de n (o que o t-SNE
    olha de fato são 3× ela), pelo menos uma.

    Erros: `ErroDoUsuario` se uma pedida não for menor que n.
    """
    for b in pedidos or []:
        if b >= n:
            raise ErroDoUsuario(
                f"A perplexidade {b} não cabe em {n} pontos.",
                "Ela é, mais ou menos, quantos vizinhos cada ponto olha: precisa ser menor que o total.",
                f"Use --perplexidade de 2 a {n - 1} (boas: até {max(2, n // 3)}), ou mais palavras.",
            )
    if pedidos:
        return list(dict.fromkeys(pedidos))
    return [b for b in padrao if 3 * b < n] or [max(2, (n - 1) // 3)]


def ks_que_cabem(ks: tuple[int, ...], n: int) -> list[int]:
    """Os k menores que n/2 (acima disso a trustworthiness não está definida); pelo menos um."""
    return [k for k in ks if k < n / 2] or [(n - 1) // 2]


def folga_dos_eixos(n: int, d: int, partes: np.ndarray) -> float:
    """A folga dos pontos da PCA feita de duas maneiras, se cada ponto tem comprimento até 1.

    A matriz das covariâncias erra n + d arredondamentos do maior valor, e um eixo gira esse erro sobre a
    distância ao valor vizinho (Davis e Kahan, 1970): eixos de variâncias quase iguais giram mais. `partes`
    é (r,), a parte da variância em cada um.
    """
    vao = max(float(-np.diff(partes[:3]).max()), folga.EPS64) if len(partes) > 1 else 1.0
    # Um ponto dista até 2 do centro, e anda no máximo 2 vezes o ângulo que o eixo gira.
    return folga.soma(n + d, 2 * partes[0] / vao)


def parte_ou_quantas(x: float | int) -> str:
    """Uma fração em porcentagem, ou uma contagem: a tabela da variância tem as duas na mesma coluna."""
    return porcento(x) if isinstance(x, float) else inteiro(x)


# --- 4 e 5: o que se mexe -----------------------------------------------------------------------


def grade(corridas: Corridas, metodo: str, botoes: list[int], sementes: range, progresso) -> dict:
    """{(botão, semente): Y} do método, com início sorteado: é assim que a semente aparece."""
    pares, feitos = list(itertools.product(botoes, sementes)), {}
    o_que = f"{metodo}: {len(pares)} desenhos"
    for par in pares:
        progresso(o_que, len(feitos), len(pares))
        feitos[par] = corridas.fazer(metodo, *par, "random")
    progresso(o_que, len(pares), len(pares))
    return feitos


def _concordancia(D: np.ndarray, desenhos: list[np.ndarray], k: int) -> list[float]:
    """Médias de quatro medidas: vizinhos mantidos (do espaço ao desenho; entre dois desenhos) e
    correlação global (idem)."""
    E = [projecoes.distancias(Y) for Y in desenhos]
    pares = list(itertools.combinations(E, 2))
    return [
        float(np.mean([medida(*par) for par in quais]))
        for medida in (lambda a, b: projecoes.sobreposicao(a, b, k), projecoes.correlacao)
        for quais in ([(D, e) for e in E], pares)
    ]


def quadro_da_grade(c: Conjunto, metodo: str, desenhos: dict, k: int) -> Quadro:
    """Uma linha por botão: as medidas, e quanto duas sementes concordam entre si."""
    D = projecoes.distancias(c.X)
    linhas = [
        [b, *_concordancia(D, [Y for (q, _), Y in desenhos.items() if q == b], k)]
        for b in dict.fromkeys(b for b, _ in desenhos)
    ]
    botao = "perplexidade" if metodo == "t-SNE" else "vizinhos"
    colunas = {botao: inteiro, "vizinhos mantidos": porcento, "entre sementes": porcento}
    colunas |= {"correlação global": decimal, "entre sementes ": decimal}
    return Quadro(f"{metodo}: o que muda com o botão e com a semente", colunas, linhas)


INICIOS = {"pca": "PCA", "random": "sorteado"}


class Inicio(NamedTuple):
    """Um método com um início: vizinhos mantidos, correlação global, e a global entre sementes."""

    pontos: str
    metodo: str
    inicio: str
    mantidos: float
    global_: float
    sementes: float


def medir_inicios(
    casos: dict[str, tuple[Corridas, int]], sementes: list[int], k: int
) -> list[Inicio]:
    """O mesmo método e botão, com início informado e sorteado. Kobak e Linderman 2021.

    casos: {nome: (corridas, botão)}.
    """
    medidos = []
    for nome, (corridas, botao) in casos.items():
        D = projecoes.distancias(corridas.X)
        for metodo in corridas.metodos[1:]:
            for inicio, como in INICIOS.items():
                desenhos = [corridas.fazer(metodo, botao, s, inicio) for s in sementes]
                mantidos, _, global_, entre = _concordancia(D, desenhos, k)
                medidos.append(Inicio(nome, metodo, como, mantidos, global_, entre))
    return medidos


# --- 6: o controle --------------------------------------------------------------------------------


class Controle(NamedTuple):
    """Os rótulos trocados, e o que a LDA faz com eles: o desenho, e o acerto dentro e fora do treino."""

    lda: np.ndarray
    rotulos: np.ndarray
    treino: np.ndarray
    acerto_treino: float
    acerto_fora: float


def trocar_rotulos(c: Conjunto, sorteio: np.random.Generator) -> Controle:
    """A LDA com os rótulos dos grupos embaralhados. Em duas dimensões ela precisa de 3 grupos."""
    com_grupo = c.rotulos >= 0
    trocados = sorteio.permutation(c.rotulos[com_grupo])
    treino = np.ones(len(trocados), dtype=bool)
    for g in range(len(c.grupos)):
        # Um terço de cada rótulo fica de fora: nenhum some do treino, nem nos grupos pequenos.
        meus = sorteio.permutation(np.flatnonzero(trocados == g))
        treino[meus[: len(meus) // 3]] = False
    Y, dentro, fora = projecoes.separar_com_rotulos(c.X[com_grupo], trocados, treino)
    return Controle(Y, trocados, treino, dentro, fora)


def quadro_do_ruido(corridas: Corridas, ruido: Corridas, quantos: int, botao: int) -> Quadro:
    """Os aglomerados que se veem em cada desenho existem no espaço? E com outra semente?"""
    from sklearn.metrics import adjusted_rand_score

    linhas = []
    for nome, quem in (("palavras", corridas), ("ruído puro", ruido)):
        for metodo in quem.metodos:
            uma, outra = (
                projecoes.aglomerados(quem.X, quem.fazer(metodo, botao, s, "random"), quantos, 0)
                for s in (0, 1)
            )
            # Rand ajustado: 1 são as mesmas partições, 0 é o que o acaso daria.
            iguais = None if metodo == "PCA" else adjusted_rand_score(uma.partes, outra.partes)
            linhas.append([nome, metodo, uma.no_desenho, uma.no_espaco, iguais])
    colunas = {"pontos": str, "desenho": str, "silhueta no desenho": decimal}
    colunas |= {"a mesma, no espaço": decimal, "repete com outra semente": decimal}
    return Quadro(f"{quantos} aglomerados achados por k-means no desenho", colunas, linhas)


def quadro_dos_rotulos(
    c: Conjunto, corridas: Corridas, ctl: Controle, botao: int, k: int
) -> Quadro:
    """A pureza dos vizinhos com os rótulos certos e com os trocados; e a LDA, que vê os rótulos."""
    linhas = []
    desenhos = {m: corridas.fazer(m, botao, 0, "random") for m in corridas.metodos}
    for nome, Y in ({"no espaço": c.X} | desenhos).items():
        D = projecoes.distancias(Y)
        acaso = projecoes.pureza_ao_acaso(D, c.rotulos, k, 200, 0)
        linhas.append([nome, projecoes.pureza(D, c.rotulos, k), acaso.mean()])
    linhas.append(["LDA, rótulos trocados: treino", None, ctl.acerto_treino])
    linhas.append(["LDA, rótulos trocados: pontos de fora", None, ctl.acerto_fora])
    colunas = {"onde": str, "rótulos certos": porcento, "rótulos trocados": porcento}
    return Quadro(f"Do mesmo grupo entre os {k} vizinhos (e acerto da LDA)", colunas, linhas)


# --- 7: o veredito ----------------------------------------------------------------------------------


class Frase(NamedTuple):
    """Uma frase sobre a figura: se vale no espaço, e em que fração dos desenhos de cada método."""

    texto: str
    no_espaco: bool
    partes: dict[str, float]

    def sobrevive(self) -> bool:
        """True se vale no espaço e em pelo menos 95% dos desenhos de todos os métodos."""
        return self.no_espaco and min(self.partes.values()) >= 0.95


def veredito(c: Conjunto, corridas: Corridas, grades: dict[str, dict], semente: int) -> list[Frase]:
    """As frases que uma figura convida a dizer, testadas no espaço e em todos os desenhos.

    grades: {método: {(botão, semente): Y}}. Sem pelo menos 3 grupos, só as frases sobre vizinhos.
    """
    desenhos = {"PCA": [corridas.fazer("PCA")]}
    desenhos |= {m: list(g.values()) for m, g in grades.items()}
    frases = []
    for texto, teste in _testes(c, semente).items():
        partes = {m: float(np.mean([teste(Y, Ys[0]) for Y in Ys])) for m, Ys in desenhos.items()}
        frases.append(Frase(texto, bool(teste(c.X, c.X)), partes))
    return frases


def _testes(c: Conjunto, semente: int) -> dict:
    # Cada teste recebe (Y, Y da primeira corrida do método) e responde se a frase vale em Y.
    D, k = projecoes.distancias(c.X), min(5, c.n // 2 - 1)

    def juntos(Y, _):
        E = projecoes.distancias(Y)
        acaso = projecoes.pureza_ao_acaso(E, c.rotulos, k, 100, semente)
        return projecoes.pureza(E, c.rotulos, k) > acaso.max()

    def vizinho_certo(Y, _):
        return projecoes.sobreposicao(D, projecoes.distancias(Y), 1) >= 0.5

    def mesma_ordem(Y, primeiro):
        return abs(spearmanr(Y[:, 0], primeiro[:, 0]).statistic) >= 0.9

    def global_(Y, _):
        return projecoes.correlacao(D, projecoes.distancias(Y)) >= 0.7

    testes = {"palavras do mesmo grupo caem perto": juntos} if c.grupos else {}
    testes |= {
        "o vizinho mais próximo é o verdadeiro (em metade dos pontos)": vizinho_certo,
        "longe no desenho é longe no espaço (correlação ≥ 0,7)": global_,
        "a ordem no eixo horizontal é sempre a mesma": mesma_ordem,
    }
    return testes | (_testes_de_grupos(c) if len(c.grupos) >= 3 else {})


def _testes_de_grupos(c: Conjunto) -> dict:
    def entre_grupos(Y):  # (g, g): de centro a centro; o próprio grupo não conta como perto
        D = projecoes.distancias(projecoes.centros(Y, c.rotulos))
        return D, D + np.diag(np.full(len(D), np.inf))

    D, fora = entre_grupos(c.X)
    a, b = np.unravel_index(int(fora.argmin()), D.shape)
    longe, nomes = int(D[a].argmax()), c.grupos
    espalhado = projecoes.espalhamento(c.X, c.rotulos)

    def mais_perto(Y, _):
        return entre_grupos(Y)[1][a].argmin() == b

    def mais_longe(Y, _):
        return entre_grupos(Y)[0][a].argmax() == longe

    def tamanhos(Y, _):
        return spearmanr(espalhado, projecoes.espalhamento(Y, c.rotulos)).statistic >= 0.7

    def contagem(Y, _):
        return projecoes.contar_aglomerados(Y) == len(nomes)

    return {
        f"o grupo mais perto de “{nomes[a]}” é “{nomes[b]}”": mais_perto,
        f"o grupo mais longe de “{nomes[a]}” é “{nomes[longe]}”": mais_longe,
        "grupo mais espalhado no desenho é mais espalhado no espaço": tamanhos,
        f"contam-se {len(nomes)} aglomerados, um por grupo": contagem,
    }


def quadro_do_veredito(frases: list[Frase], grades: dict[str, dict]) -> Quadro:
    """Em quantos desenhos cada frase vale, e o veredito."""
    linhas = [
        [f.texto, f.no_espaco, *f.partes.values(), "sobrevive" if f.sobrevive() else "não"]
        for f in frases
    ]
    colunas = {"o que o desenho convida a dizer": str, "no espaço": lambda v: "sim" if v else "não"}
    quantos = {"PCA": 1} | {m: len(feitos) for m, feitos in grades.items()}
    colunas |= {f"{m} ({n})": lambda x: porcento(x, 0) for m, n in quantos.items()}
    return Quadro("Em que fração dos desenhos a frase vale", colunas | {"veredito": str}, linhas)


# --- 8: para levar ------------------------------------------------------------------------------------


def vetores_tsv(c: Conjunto) -> bytes:
    """Os vetores para o Embedding Projector: uma linha por ponto, tabulações, sem cabeçalho."""
    linhas = ("\t".join(f"{x:.6g}" for x in linha) for linha in c.X)
    return ("\n".join(linhas) + "\n").encode("utf-8")


def metadados_tsv(c: Conjunto) -> bytes:
    """Token, grupo e id de cada linha de vectors.tsv. Tabulações dentro do token vêm escapadas."""
    linhas = ["token\tgrupo\tid"]
    linhas += [f"{n}\t{c.grupo_de(i)}\t{c.ids[i]}" for i, n in enumerate(c.nomes)]
    return ("\n".join(linhas) + "\n").encode("utf-8")
