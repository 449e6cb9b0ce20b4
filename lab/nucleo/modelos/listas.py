"""As palavras que as lições usam e o conjunto de analogias, já traduzidos em linhas da tabela."""

import json
from dataclasses import dataclass

import numpy as np

from nucleo.base import caminhos
from nucleo.modelos.tokens import Tokenizador


@dataclass(frozen=True)
class Palavras:
    """As listas de um idioma, e a linha da tabela de cada palavra que é um token só.

    `linha` é {palavra: id}; `fora` são as palavras das listas que este modelo corta em pedaços.
    """

    idioma: str
    listas: dict
    linha: dict[str, int]
    fora: list[str]

    def ids(self, tuplas: list[list[str]]) -> np.ndarray:
        """(m, k): as linhas das tuplas em que todas as palavras são um token só."""
        boas = [[self.linha[p] for p in t] for t in tuplas if all(p in self.linha for p in t)]
        largura = len(tuplas[0]) if tuplas else 0
        return np.array(boas, dtype=np.int64).reshape(-1, largura)

    def presentes(self, palavras: list[str]) -> list[str]:
        """As palavras da lista que são um token só, na mesma ordem."""
        return [p for p in palavras if p in self.linha]


def palavras_para(tokenizador: Tokenizador) -> Palavras:
    """As listas no idioma que o modelo conhece melhor: o que tem mais palavras inteiras.

    Um modelo treinado em inglês corta quase toda palavra portuguesa; o mini faz o contrário.
    """
    opcoes = []
    for arquivo in sorted((caminhos.DADOS / "palavras").glob("??.json")):
        listas = json.loads(arquivo.read_text(encoding="utf-8"))
        todas = sorted(_todas(listas))
        formas = {p: tokenizador.procurar(p) for p in todas}
        linha = {p: f.id for p, f in formas.items() if f}
        fora = [p for p in todas if p not in linha]
        opcoes.append((len(linha) / len(todas), Palavras(arquivo.stem, listas, linha, fora)))
    return max(opcoes, key=lambda o: o[0])[1]


def _todas(listas: dict) -> set[str]:
    pares = [*listas["pares"], *(p for d in listas["direcoes"].values() for p in d)]
    soltas = [*listas["vizinhos"], listas["cru"], *listas["analogia"], listas["resposta"]]
    return {*soltas, *listas["regua"]["palavras"], *(p for par in pares for p in par)}


# --- o conjunto de analogias do Google --------------------------------------------------

# As categorias do arquivo, como se leem em português.
CATEGORIAS = {
    "capital-common-countries": "capitais famosas",
    "capital-world": "capitais do mundo",
    "currency": "moedas",
    "city-in-state": "cidade e estado (EUA)",
    "family": "família",
    "gram1-adjective-to-adverb": "adjetivo → advérbio",
    "gram2-opposite": "opostos",
    "gram3-comparative": "comparativo",
    "gram4-superlative": "superlativo",
    "gram5-present-participle": "particípio presente",
    "gram6-nationality-adjective": "nacionalidade",
    "gram7-past-tense": "passado",
    "gram8-plural": "plural",
    "gram9-plural-verbs": "verbo, 3ª pessoa",
}


@dataclass(frozen=True)
class Perguntas:
    """As perguntas que cabem na tabela. `ids`: (n, 4); `categoria`: (n,), índice em `nomes`;
    `total`: perguntas do arquivo em cada categoria, cabendo ou não."""

    nomes: list[str]
    total: np.ndarray
    categoria: np.ndarray
    ids: np.ndarray


def analogias_do_google(tokenizador: Tokenizador) -> Perguntas:
    """As 19.544 perguntas de Mikolov et al. 2013, só as quatro-palavras-um-token, na forma com
    espaço e com as maiúsculas do arquivo (" Athens"), contra o vocabulário inteiro."""
    nomes, total, categoria, ids, cache = [], [], [], [], {}
    arquivo = caminhos.DADOS / "analogias" / "questions-words.txt"
    for linha in arquivo.read_text(encoding="utf-8").splitlines():
        if linha.startswith(":"):
            nome = linha[2:].strip()
            nomes.append(CATEGORIAS.get(nome, nome))
            total.append(0)
            continue
        palavras = linha.split()
        total[-1] += 1
        for p in palavras:
            if p not in cache:
                forma = tokenizador.procurar(p)
                cache[p] = forma.id if forma else -1
        quatro = [cache[p] for p in palavras]
        if min(quatro) >= 0:
            ids.append(quatro)
            categoria.append(len(nomes) - 1)
    return Perguntas(
        nomes,
        np.array(total),
        np.array(categoria, dtype=np.int64),
        np.array(ids, dtype=np.int64).reshape(-1, 4),
    )
