"""O conjunto de analogias do Google inteiro, contra `evaluate_word_analogies` do gensim.

O gensim responde uma pergunta por vez e leva minutos: roda uma vez, entre duas metades das nossas
execuções. Antes de comparar tempos, comparam-se os vereditos, pergunta a pergunta.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from comum import Assunto, Medida, alternar
from nucleo.base import caminhos
from nucleo.contas import vetores
from nucleo.modelos import fontes, listas

NOSSO, GENSIM = "laboratório", "gensim"


def para_o_gensim(tabela: np.ndarray, tok):
    """Um KeyedVectors que conhece as palavras como o arquivo as escreve; o resto vira «#id»."""
    from gensim.models import KeyedVectors

    nomes = [f"#{i}" for i in range(len(tabela))]
    for i in range(len(tabela)):
        cru = tok.cru(i)
        if cru.startswith("Ġ") and cru[1:].isascii() and cru[1:].isalpha():
            nomes[i] = cru[1:]
    kv = KeyedVectors(tabela.shape[1])
    kv.add_vectors(nomes, np.asarray(tabela))
    return kv


def vereditos_do_gensim(kv, linhas: list[str]) -> dict[tuple, bool]:
    """{(a, b, c, d): acertou?} das linhas de questions-words.txt, com as maiúsculas do arquivo."""
    with tempfile.TemporaryDirectory() as pasta:
        arquivo = Path(pasta) / "perguntas.txt"
        arquivo.write_text("\n".join(linhas), encoding="utf-8", newline="\n")
        _, secoes = kv.evaluate_word_analogies(
            str(arquivo), restrict_vocab=None, case_insensitive=False
        )
    todas = secoes[-1]  # a última soma as outras
    return {tuple(x): True for x in todas["correct"]} | {
        tuple(x): False for x in todas["incorrect"]
    }


def vereditos_nossos(kv, tabela, normas, ids: np.ndarray) -> dict[tuple, bool]:
    """O mesmo, pelo laboratório: linhas normalizadas, sem as palavras de entrada."""
    acertos = vetores.avaliar_analogias(tabela, normas, ids, normalizar=True)
    return {
        tuple(kv.index_to_key[i] for i in q): bool(r == q[3])
        for q, r in zip(ids, acertos.sem_entradas, strict=True)
    }


def ler_linhas(por_categoria: int | None = None) -> list[str]:
    """As linhas do arquivo; com `por_categoria`, só as primeiras de cada uma."""
    arquivo = caminhos.DADOS / "analogias" / "questions-words.txt"
    linhas, n = [], 0
    for linha in arquivo.read_text(encoding="utf-8").splitlines():
        n = 0 if linha.startswith(":") else n + 1
        if por_categoria is None or n <= por_categoria:
            linhas.append(linha)
    return linhas


def medir(rapido: bool = False) -> Assunto:
    """Segundos do conjunto inteiro (ou de 20 perguntas por categoria, no rápido)."""
    import checkpoint

    tabela, tok = checkpoint.wte_com_analogias(), fontes.tokenizador_gpt2()
    normas, kv = vetores.normas_das_linhas(tabela), None
    kv = para_o_gensim(tabela, tok)
    kv.fill_norms()
    linhas = ler_linhas(20 if rapido else None)
    quer = {tuple(x.split()) for x in linhas if not x.startswith(":")}
    todas = listas.analogias_do_google(tok).ids
    ids = np.array([q for q in todas if tuple(kv.index_to_key[i] for i in q) in quer])
    nossa = {NOSSO: lambda: vetores.avaliar_analogias(tabela, normas, ids, normalizar=True)}
    antes = alternar(nossa, 3)[0]
    inicio = time.perf_counter()
    deles = vereditos_do_gensim(kv, linhas)
    do_gensim = Medida(GENSIM, [time.perf_counter() - inicio])
    depois = alternar(nossa, 3)[0]
    medidas = [Medida(NOSSO, antes.segundos + depois.segundos), do_gensim]
    nossos = vereditos_nossos(kv, tabela, normas, ids)
    diferentes = sum(nossos.get(q) != v for q, v in deles.items()) + len(nossos.keys() - deles)
    a = Assunto("analogias", f"Analogias: {len(ids)} perguntas", NOSSO, medidas)
    a.criterio("vereditos diferentes dos do gensim", diferentes, 0, unidade="")
    vezes = a.razao(GENSIM, NOSSO)
    if rapido:
        # Poucas perguntas não pagam o preparo: o limite é o do conjunto inteiro.
        a.notas.append(f"{vezes:.0f} vezes mais rápido; o aceite só vale no conjunto inteiro")
    else:
        a.criterio("vezes mais rápido que o gensim", vezes, 50, pelo_menos=True)
    certas = sum(nossos.values())
    a.notas.append(f"{certas} das {len(nossos)} perguntas certas, nos dois")
    return a
