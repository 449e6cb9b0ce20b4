"""Vizinhos: uma consulta e mil, contra gensim, scikit-learn, faiss, numpy e a memória.

O limite da memória é o tempo de ler wte uma vez: nenhuma busca exata toca menos que isso. Toma-se a
leitura mais rápida entre numpy e torch (somar todos os números, com as mesmas threads).
"""

import itertools

import numpy as np

from comum import Assunto, alternar
from muitos_vizinhos import muitos_vizinhos
from nucleo.contas import vetores

K = 10
NOSSO, GENSIM, MEMORIA, FAISS = "laboratório", "gensim", "ler wte uma vez", "faiss (plano)"
MIL = "mil consultas: "


def preparar(tabela: np.ndarray) -> dict:
    """Cada biblioteca com o seu índice pronto: {nome: função (ids) -> (n, K) ids dos vizinhos}.

    O preparo (normas, índices) fica fora do relógio em todas: a lição também o faz uma vez só.
    """
    import faiss
    from gensim.models import KeyedVectors
    from sklearn.neighbors import NearestNeighbors

    normas = vetores.normas_das_linhas(tabela)
    unitarias = tabela / normas[:, None]
    kv = KeyedVectors(tabela.shape[1])
    kv.add_vectors([str(i) for i in range(len(tabela))], np.asarray(tabela))
    kv.fill_norms()
    sk = NearestNeighbors(n_neighbors=K + 1, metric="cosine", algorithm="brute").fit(tabela)
    indice = faiss.IndexFlatIP(tabela.shape[1])
    indice.add(unitarias)

    def sem_a_propria(achados, ids):
        return np.array([[j for j in a if j != i][:K] for a, i in zip(achados, ids, strict=True)])

    def nosso(ids):
        if len(ids) == 1:
            perto = vetores.vizinhos(tabela, tabela[ids[0]], K, normas, (ids[0],))
            return np.array([[i for i, _ in perto]])
        return sem_a_propria(muitos_vizinhos(tabela, tabela[ids], K + 1, normas)[0], ids)

    def numpy_direto(ids):
        notas = unitarias[ids] @ unitarias.T
        return sem_a_propria(np.argsort(-notas, axis=1, kind="stable")[:, : K + 1], ids)

    return {
        NOSSO: nosso,
        GENSIM: lambda ids: np.array(
            [[int(n) for n, _ in kv.most_similar(str(i), topn=K)] for i in ids]
        ),
        FAISS: lambda ids: sem_a_propria(indice.search(unitarias[ids], K + 1)[1], ids),
        "scikit-learn": lambda ids: sem_a_propria(
            sk.kneighbors(tabela[ids], return_distance=False), ids
        ),
        "numpy direto": numpy_direto,
    }


def conferir(buscas: dict, ids: list[int]) -> None:
    """Exige as mesmas respostas de todas. A ordem pode trocar num empate de float32: comparam-se
    conjuntos. Erros: `AssertionError` com quem diferiu."""
    certo = [set(x) for x in buscas[NOSSO](ids)]
    for nome, busca in buscas.items():
        iguais = sum(set(x) == c for x, c in zip(busca(ids), certo, strict=True))
        # O último lugar pode ser de dois quase empatados, somados em outra ordem.
        assert iguais >= 0.98 * len(ids), f"{nome}: só {iguais} de {len(ids)} listas iguais"


def medir(rapido: bool = False) -> Assunto:
    """Medianas de uma consulta e de mil, na wte do small."""
    import torch

    import checkpoint

    tabela = checkpoint.wte_com_analogias()
    buscas = preparar(tabela)
    sorteio = np.random.default_rng(3)
    mil = sorteio.choice(len(tabela), 100 if rapido else 1000, replace=False)
    conferir(buscas, list(mil[:50]))
    fila = itertools.cycle(sorteio.permutation(len(tabela)).tolist())
    uma = {nome: (lambda b=b: b([next(fila)])) for nome, b in buscas.items()}
    no_torch = torch.from_numpy(tabela)
    leituras = {"somar no numpy": tabela.sum, "somar no torch": no_torch.sum}
    # As duas do aceite custam quase o mesmo: muitas voltas, só elas e a leitura, para separá-las.
    do_aceite = {nome: uma.pop(nome) for nome in (NOSSO, GENSIM)}
    medidas = alternar(do_aceite | leituras, 5 if rapido else 601)
    lidas = [m for m in medidas if m.nome in leituras]
    menor = min(lidas, key=lambda m: m.mediana)
    medidas = [m for m in medidas if m not in lidas]
    medidas.append(type(menor)(MEMORIA, menor.segundos))
    medidas += alternar(uma, 5 if rapido else 41)
    # O gensim não tem busca em lote: mil vezes uma.
    em_lote = {MIL + nome: (lambda b=b: b(mil)) for nome, b in buscas.items()}
    medidas += alternar(em_lote, 1 if rapido else 7)
    a = Assunto("vizinhos", f"Os {K} vizinhos: uma consulta e {len(mil)}", NOSSO, medidas)
    a.criterio("uma consulta / a do gensim", a.razao(NOSSO, GENSIM), 1.0)
    a.criterio("uma consulta / ler wte uma vez", a.razao(NOSSO, MEMORIA), 1.5)
    a.criterio("mil consultas / faiss plano", a.razao(MIL + NOSSO, MIL + FAISS), 1.0)
    gb = tabela.nbytes / a[MEMORIA].mediana / 1e9
    a.notas.append(f"ler wte ({tabela.nbytes / 1e6:.0f} MB): {gb:.1f} GB/s ({menor.nome})")
    return a
