"""As frases das palavras ambíguas, e onde a palavra cai dentro de cada uma."""

import json
import re
from dataclasses import dataclass, field

from nucleo.base import caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos.tokens import Tokenizador, normalizar


@dataclass(frozen=True)
class Ocorrencia:
    """Uma palavra dentro de uma frase já cortada em tokens.

    `ids`: os n tokens da frase; `lugar`: o índice do token que representa a palavra (o último
    pedaço dela); `pedacos`: os tokens da palavra, como se leem; `avisos`: o que foi ajustado.
    """

    frase: str
    ids: list[int]
    lugar: int
    pedacos: list[str]
    avisos: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ambigua:
    """Uma palavra, os nomes dos seus sentidos e as ocorrências, com o sentido de cada uma.

    `rotulos`: (n,) índices em `sentidos`, na ordem de `ocorrencias`.
    """

    palavra: str
    sentidos: list[str]
    ocorrencias: list[Ocorrencia]
    rotulos: list[int]


@dataclass(frozen=True)
class Colecao:
    """As palavras ambíguas de um idioma; `principal` abre a lição, `pista_depois` é o par de
    frases que começam iguais e só se separam depois da palavra."""

    idioma: str
    principal: str
    palavras: dict[str, dict[str, list[str]]]
    pista_depois: dict


def colecao_para(tok: Tokenizador) -> Colecao:
    """As frases no idioma que o tokenizador conhece melhor: o que tem mais palavras inteiras.

    No empate vale o inglês, a língua dos modelos do curso.
    """
    colecoes = []
    for arquivo in sorted((caminhos.DADOS / "frases").glob("??.json")):
        d = json.loads(arquivo.read_text(encoding="utf-8"))
        colecoes.append(Colecao(arquivo.stem, d["principal"], d["palavras"], d["pista_depois"]))
    return max(colecoes, key=lambda c: sum(tok.procurar(p) is not None for p in c.palavras))


def ambigua(tok: Tokenizador, colecao: Colecao, palavra: str) -> Ambigua:
    """A palavra da coleção com todas as ocorrências localizadas.

    Erros: `ErroDoUsuario` se a palavra não estiver na coleção.
    """
    chave = normalizar(palavra).strip()
    if chave not in colecao.palavras:
        raise ErroDoUsuario(
            f"Não tenho frases prontas para {palavra!r}.",
            f"As que vêm no laboratório, neste idioma, são: {', '.join(colecao.palavras)}.",
            f'Escreva as suas:  --palavra {chave or "bank"} --frase "..." --frase "..."',
        )
    sentidos = colecao.palavras[chave]
    ocorrencias, rotulos = [], []
    for i, frases in enumerate(sentidos.values()):
        for frase in frases:
            ocorrencias.append(achar_palavra(tok, chave, frase))
            rotulos.append(i)
    return Ambigua(chave, list(sentidos), ocorrencias, rotulos)


def do_teclado(tok: Tokenizador, palavra: str | None, frases: list[str] | None) -> list[Ocorrencia]:
    """As frases que alguém escreveu, com a palavra achada em cada uma.

    Erros: `ErroDoUsuario` se há frases e não há palavra, e os de `achar_palavra`.
    """
    if frases and not palavra:
        raise ErroDoUsuario(
            "Falta dizer qual é a palavra.",
            "As frases vieram em --frase, mas não sei que palavra delas você quer comparar.",
            'Por exemplo:  --palavra bank --frase "We sat on the bank" --frase "The bank lent us money"',
        )
    return [achar_palavra(tok, palavra, f) for f in frases or []]


def achar_palavra(tok: Tokenizador, palavra: str, frase: str) -> Ocorrencia:
    """Onde a palavra cai na frase: a palavra inteira, nunca um pedaço de outra.

    De vários tokens, vale o último: só ele já leu os pedaços anteriores. De várias aparições,
    vale a última, que tem mais contexto atrás de si. As duas escolhas saem em `avisos`.
    Erros: `ErroDoUsuario` para palavra ou frase vazia, e para palavra que não está na frase.
    """
    frase, palavra = normalizar(frase).strip(), normalizar(palavra).strip()
    if not frase or not palavra:
        raise ErroDoUsuario(
            "A frase está vazia." if not frase else "A palavra está vazia.",
            "Sem texto não há token, e sem token não há vetor para olhar.",
            'Por exemplo:  --palavra bank --frase "We sat on the bank of the river"',
        )
    achados, avisos = _aparicoes(palavra, frase), []
    if not achados:
        achados = _aparicoes(palavra, frase, re.IGNORECASE)
        if achados:
            visto = frase[slice(*achados[-1])]
            avisos.append(f"só achei {visto!r}: com outra maiúscula é outra linha da tabela")
    if not achados:
        raise ErroDoUsuario(
            f"A palavra {palavra!r} não está na frase.",
            f"Procurei a palavra inteira em “{frase}”{_parecida(palavra, frase)}.",
            "Escreva em --palavra uma palavra da frase, ou mude a frase.",
        )
    if len(achados) > 1:
        avisos.append(f"{palavra!r} aparece {len(achados)} vezes: vale a última")
    comeco, fim = achados[-1]
    ids, trechos = tok.ids_e_trechos(frase)
    # Os tokens que cobrem alguma letra da palavra; o espaço da frente pode vir junto.
    meus = [i for i, (a, b) in enumerate(trechos) if a < fim and b > comeco]
    pedacos = [tok.texto(ids[i]) for i in meus]
    if len(meus) > 1:
        cortada = " + ".join(map(repr, pedacos))
        avisos.append(f"{palavra!r} são {len(meus)} tokens ({cortada}): vale o último")
    return Ocorrencia(frase, ids, meus[-1], pedacos, avisos)


def _aparicoes(palavra: str, frase: str, como: int = 0) -> list[tuple[int, int]]:
    # Nem letra nem número encostado: "bank" não está em "banks".
    busca = rf"(?<!\w){re.escape(palavra)}(?!\w)"
    return [m.span() for m in re.finditer(busca, frase, como)]


def _parecida(palavra: str, frase: str) -> str:
    import difflib

    perto = difflib.get_close_matches(palavra, re.findall(r"\w+", frase), 1)
    return f"; há {perto[0]!r}, que é outra palavra" if perto else ""
