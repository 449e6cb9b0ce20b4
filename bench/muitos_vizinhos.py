"""Os vizinhos de muitas consultas de uma vez, em azulejos: o que se mede contra o faiss.

Nenhuma lição o usa: cada uma pergunta de poucas palavras, e `vetores.vizinhos` basta.
"""

import numpy as np

_CONSULTAS, _LINHAS, _GRUPO = 1024, 8192, 64  # um azulejo: tantas consultas contra tantas linhas


def muitos_vizinhos(
    tabela: np.ndarray, consultas: np.ndarray, k: int, normas: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Os k vizinhos de muitas consultas de uma vez: (n, d) -> ids (n, k) e cossenos (n, k).

    Em azulejos de linhas × consultas: o produto de matrizes lê a tabela uma vez para muitas
    consultas, e de cada azulejo só passa adiante quem ainda pode vencer.
    """
    k = min(k, len(tabela))
    ids = np.empty((len(consultas), k), dtype=np.int64)
    notas = np.empty(ids.shape, dtype=np.float32)
    inversos = (1 / np.where(normas > 0, normas, 1)).astype(np.float32)  # (V,)
    for i in range(0, len(consultas), _CONSULTAS):
        q = consultas[i : i + _CONSULTAS].astype(np.float32, copy=False)  # (b, d)
        tamanhos = np.sqrt(np.einsum("bd,bd->b", q, q))[:, None]
        ids[i : i + len(q)], altas = _melhores(tabela, q, k, inversos)
        notas[i : i + len(q)] = altas / np.where(tamanhos > 0, tamanhos, 1)
    return ids, notas


def _melhores(
    tabela: np.ndarray, q: np.ndarray, k: int, inversos: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    # (V, d), (b, d) -> ids (b, k) e notas (b, k). De cada grupo de 64 linhas guarda-se a nota máxima:
    # a k-ésima maior nota nunca fica abaixo do k-ésimo maior máximo, e quase todo grupo cai aí.
    b, V, coluna = len(q), len(tabela), np.ascontiguousarray(q.T)
    azulejo = np.empty((_LINHAS, b), dtype=np.float32)
    grupos = azulejo.reshape(-1, _GRUPO, b)  # (8192, b) -> (128, 64, b), a mesma memória
    maiores = np.full((k, b), -np.inf, dtype=np.float32)  # os k maiores máximos até aqui
    passaram = []  # (consulta, id, nota) de quem ficou na peneira
    for j in range(0, V, _LINHAS):
        linhas = tabela[j : j + _LINHAS]  # (c, d)
        np.matmul(linhas, coluna, out=azulejo[: len(linhas)])  # (c, d) @ (d, b) -> (c, b)
        azulejo[: len(linhas)] *= inversos[j : j + _LINHAS, None]
        azulejo[len(linhas) :] = -np.inf  # o que sobra do último azulejo não disputa
        maximos = grupos.max(1)  # (128, 64, b) -> (128, b)
        # (k + 128, b) -> (k, b)
        maiores = np.partition(np.concatenate([maiores, maximos]), -k, axis=0)[-k:]
        corte = maiores.min(0)  # (b,)
        grupo, qual = np.nonzero(maximos >= corte)  # (g,), (g,)
        notas = grupos[grupo, :, qual]  # (g, 64)
        par, lugar = np.nonzero(notas >= corte[qual][:, None])
        passaram.append((qual[par], j + grupo[par] * _GRUPO + lugar, notas[par, lugar]))
    qual, ids, notas = (np.concatenate(x) for x in zip(*passaram, strict=True))
    # O corte subiu desde os primeiros azulejos; e onde ele ainda é −∞ há linhas que não existem.
    ficam = np.flatnonzero((notas >= maiores.min(0)[qual]) & (ids < V))
    ordem = ficam[np.lexsort((ids[ficam], -notas[ficam], qual[ficam]))]  # empates pelo menor id
    inicio = np.searchsorted(qual[ordem], np.arange(b))  # (b,): onde começa cada consulta
    ordem = ordem[inicio[:, None] + np.arange(k)]  # -> (b, k): as k primeiras de cada uma
    return ids[ordem], notas[ordem]
