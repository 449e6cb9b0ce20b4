"""As sete funções da apostila 02: o que se espera, os casos, e quem imita cada engano. O texto está em data/exercicios.

A resposta esperada vem do nucleo ou da biblioteca, e não das soluções: quem confere a solução é
outra conta. Cada engano é um programa errado curto; se ele devolve o mesmo que o da pessoa, é
dele que se fala.
"""

import numpy as np

from nucleo.contas import arquitetura, vetores
from nucleo.exercicios.tipos import Caso, Conta, Mesmo, Vista
from nucleo.modelos.tamanhos import TAMANHOS, Tamanho

CONTAS: dict[str, Conta] = {}

# --- 1 · consulta por one-hot ------------------------------------------------------------


def _consulta(ids, E):
    H = np.stack([vetores.onehot(int(i), len(E)) for i in ids])  # (n,) -> (n, V)
    return H, E[ids]  # (V, d) -> (n, d)


def _casos_consulta(s):
    casos = [Caso((np.array([2, 0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])))]
    for n, V, d in ((3, 5, 3), (6, 11, 4), (4, 30, 8)):
        ids = s.integers(0, V, n)
        ids[:3] = (V - 1, 1, 1)  # a última linha, e um id repetido
        casos.append(Caso((ids, s.standard_normal((V, d)))))
    return casos


def _eye(ids, E):
    return np.eye(len(E))[ids]


CONTAS["consulta"] = Conta(
    _consulta,
    _casos_consulta,
    {
        "conta_de_1": lambda ids, E: (_eye(ids - 1, E), E[ids - 1]),
        "multi_hot": (
            lambda ids, E: (_eye(ids, E).max(0), _eye(ids, E).max(0) @ E),
            lambda ids, E: (_eye(ids, E).sum(0), _eye(ids, E).sum(0) @ E),
        ),
        "onehot_deitado": lambda ids, E: (_eye(ids, E).T, E[ids]),
        "so_o_primeiro": (
            lambda ids, E: (_eye(ids[:1], E), E[ids[:1]]),
            lambda ids, E: (_eye(ids[0], E), E[ids[0]]),
        ),
        "sem_repetir": lambda ids, E: (_eye(np.unique(ids), E), E[np.unique(ids)]),
        "faltou_o_onehot": lambda ids, E: E[ids],
        "id_no_lugar_do_1": lambda ids, E: (
            _eye(ids, E) * ids[:, None],
            _eye(ids, E) * ids[:, None] @ E,
        ),
        "ordem_da_tupla": lambda ids, E: (E[ids], _eye(ids, E)),
    },
)


# --- 2 · cosseno -------------------------------------------------------------------------


def _casos_cosseno(s):
    casos = [Caso((np.array([3.0, 4.0]), np.array([4.0, 3.0])))]
    for d in (3, 5, 24, 48):
        # Médias longe de zero: centrar (correlação) dá outro número. Tamanhos diferentes também.
        a, b = 3 * s.standard_normal(d) + 0.7, s.standard_normal(d) - 0.4
        casos.append(Caso((a, b)))
    a = s.standard_normal(6)
    casos += [Caso((a, -2 * a)), Caso((np.zeros(4), s.standard_normal(4)), borda=True)]
    return casos


def _norma(v):
    return np.sqrt((v * v).sum())


CONTAS["cosseno"] = Conta(
    vetores.cosseno,
    _casos_cosseno,
    {
        "produto_interno": lambda a, b: a @ b,
        "so_uma_norma": (
            lambda a, b: a @ b / max(_norma(a), 1e-300),
            lambda a, b: a @ b / max(_norma(b), 1e-300),
        ),
        "norma_sem_raiz": lambda a, b: a @ b / ((a @ a) * (b @ b) or 1),
        "norma_l1": lambda a, b: a @ b / (np.abs(a).sum() * np.abs(b).sum() or 1),
        "distancia_cosseno": lambda a, b: 1 - vetores.cosseno(a, b),
        "distancia_euclidiana": lambda a, b: _norma(a - b),
        "modulo": lambda a, b: abs(vetores.cosseno(a, b)),
        "correlacao": lambda a, b: vetores.cosseno(a - a.mean(), b - b.mean()),
        "angulo": (
            lambda a, b: np.arccos(np.clip(vetores.cosseno(a, b), -1, 1)),
            lambda a, b: np.degrees(np.arccos(np.clip(vetores.cosseno(a, b), -1, 1))),
        ),
        "divide_por_zero": lambda a, b: (
            vetores.cosseno(a, b) if a.any() and b.any() else float("nan")
        ),
    },
)


# --- 3 · vizinhos ------------------------------------------------------------------------


def _cossenos(E, v):
    return vetores.cossenos(E, v, np.sqrt((E * E).sum(1)))


def _ordenar(notas, fora=()):
    """Ids da maior nota à menor; no empate, o menor id."""
    return [i for i in np.lexsort((np.arange(len(notas)), -notas)) if i not in fora]


def _vizinhos(E, i, k):
    return [j for j, _ in vetores.vizinhos(E, E[i], k, np.sqrt((E * E).sum(1)), (i,))]


def _casos_vizinhos(s):
    # Sinais em quatro dimensões, e múltiplos: as normas são pares, os cossenos são 1 ou ±½, e os
    # empates são exatos em qualquer precisão, biblioteca e ordem de soma.
    brinquedo = np.array(
        [
            [1.0, 1, 1, 1],
            [1, 1, 1, -1],
            [2, 2, -2, 2],
            [-1, -1, -1, -1],
            [3, 3, 3, 3],
            [2, 2, 2, -2],
        ]
    )
    casos = [Caso((brinquedo, 0, 3)), Caso((brinquedo, 4, 2))]
    while len(casos) < 5:
        V, d, k = int(s.integers(15, 40)), int(s.integers(4, 9)), int(s.integers(3, 7))
        E = s.standard_normal((V, d)) * s.uniform(0.3, 4, (V, 1)) + 0.5
        i = int(s.integers(1, V))
        notas = np.sort(np.delete(_cossenos(E, E[i]), i))
        if np.diff(notas).min() > 1e-5:  # sem quase empates: em float32 erram-se uns d · 1e-7
            casos.append(Caso((E, i, k)))
    return casos


def _por_distancia(E, v):
    return -np.sqrt(((E - v) ** 2).sum(1))


CONTAS["vizinhos"] = Conta(
    _vizinhos,
    _casos_vizinhos,
    {
        "inclui_a_propria": lambda E, i, k: _ordenar(_cossenos(E, E[i]))[:k],
        "do_mais_longe": (
            lambda E, i, k: _ordenar(-_cossenos(E, E[i]), (i,))[:k],
            lambda E, i, k: _ordenar(-_cossenos(E, E[i]))[:k],
        ),
        "produto_interno": lambda E, i, k: _ordenar(E @ E[i], (i,))[:k],
        "distancia_euclidiana": lambda E, i, k: _ordenar(_por_distancia(E, E[i]), (i,))[:k],
        "empate_pelo_maior": lambda E, i, k: [
            j for j in np.argsort(_cossenos(E, E[i]), kind="stable")[::-1] if j != i
        ][:k],
        "devolveu_cossenos": lambda E, i, k: np.sort(np.delete(_cossenos(E, E[i]), i))[::-1][:k],
        "um_a_menos": lambda E, i, k: [j for j in _ordenar(_cossenos(E, E[i]))[:k] if j != i],
        "ignorou_k": lambda E, i, k: _ordenar(_cossenos(E, E[i]), (i,)),
    },
)


# --- 4 · analogia ------------------------------------------------------------------------


def _alvo(E, a, b, c):
    return vetores.vetor_da_analogia(E, a, b, c).astype(float)


def _unitarias(E):
    return E / np.sqrt((E * E).sum(1, keepdims=True))


def _vencedora(alvo=_alvo, notas=_cossenos, fora="abc"):
    """O programa que acha a vencedora; com outro alvo, outras notas ou menos gente fora, um errado."""

    def programa(E, a, b, c):
        tiradas = [i for nome, i in zip("abc", (a, b, c), strict=True) if nome in fora]
        return _ordenar(notas(E, alvo(E, a, b, c)), tiradas)[0]

    return programa


_analogia = _vencedora()
_ANALOGIAS_ERRADAS = {
    "sem_excluir": (_vencedora(fora=""),),
    "exclui_so_uma": (_vencedora(fora="a"), _vencedora(fora="b"), _vencedora(fora="c")),
    "sinal_trocado": (
        _vencedora(lambda E, a, b, c: E[b] - E[a] + E[c]),
        _vencedora(lambda E, a, b, c: E[a] + E[b] - E[c]),
        _vencedora(lambda E, a, b, c: E[a] + E[b] + E[c]),
    ),
    "produto_interno": (_vencedora(notas=lambda E, v: E @ v),),
    "distancia_euclidiana": (_vencedora(notas=_por_distancia),),
    "normalizou_antes": (lambda E, a, b, c: _analogia(_unitarias(E), a, b, c),),
    "mais_longe": (_vencedora(notas=lambda E, v: -_cossenos(E, v)),),
}


def _casos_analogia(s):
    # Brinquedo em duas coordenadas (gênero, realeza): homem, mulher, rei, rainha, príncipe.
    brinquedo = np.array([[1.0, 0.2], [-1, 0.2], [1, 2], [-1, 2], [0.8, 1.5], [0.1, -1]])
    casos = [Caso((brinquedo, 2, 0, 1))]
    erradas = [f for imitam in _ANALOGIAS_ERRADAS.values() for f in imitam]
    faltam = dict.fromkeys(erradas, 2)  # cada engano precisa errar em pelo menos dois
    for _ in range(400):
        V, d = int(s.integers(18, 40)), int(s.integers(3, 6))
        E = s.standard_normal((V, d)) * s.uniform(0.4, 3, (V, 1)) + 0.3
        a, b, c = (int(x) for x in s.choice(V, 3, replace=False))
        notas = np.sort(np.delete(_cossenos(E, _alvo(E, a, b, c)), [a, b, c]))
        if notas[-1] - notas[-2] < 1e-3:
            continue  # perto demais de um empate: a precisão do float32 decidiria
        certo = _analogia(E, a, b, c)
        pega = [f for f, n in faltam.items() if n and f(E, a, b, c) != certo]
        if pega:
            casos.append(Caso((E, a, b, c)))
            faltam |= {f: faltam[f] - 1 for f in pega}
        if not any(faltam.values()):
            break
    return casos


CONTAS["analogia"] = Conta(_analogia, _casos_analogia, _ANALOGIAS_ERRADAS)


# --- 5 · h₀ ------------------------------------------------------------------------------


def _h0(wte, wpe, ids):
    # Pela conta elemento a elemento: outra que não a do nucleo.contas.entrada, que pede um Modelo.
    return np.array(
        [[wte[i][j] + wpe[t][j] for j in range(wte.shape[1])] for t, i in enumerate(ids)]
    )


def _casos_h0(s):
    wte = np.array([[1.0, 0], [0, 1], [2, 2]])
    wpe = np.array([[0.5, 0.25], [10, 20], [100, 200], [1000, 2000]])
    casos = [Caso((wte, wpe, np.array([1, 0, 1])))]
    for V, n_ctx, d, n in ((6, 9, 3, 5), (9, 12, 4, 7), (12, 16, 8, 6)):
        ids = s.integers(0, V, n)
        ids[:2] = (V - 1, V - 1)
        casos.append(Caso((s.standard_normal((V, d)), s.standard_normal((n_ctx, d)), ids)))
    return casos


CONTAS["h0"] = Conta(
    _h0,
    _casos_h0,
    {
        "posicao_pelo_id": lambda wte, wpe, ids: wte[ids] + wpe[ids],
        "posicao_de_1": lambda wte, wpe, ids: wte[ids] + wpe[1 : len(ids) + 1],
        "sem_posicao": lambda wte, wpe, ids: wte[ids],
        "posicao_fixa": lambda wte, wpe, ids: wte[ids] + wpe[0],
        "media": lambda wte, wpe, ids: (wte[ids] + wpe[: len(ids)]) / 2,
        "produto": lambda wte, wpe, ids: wte[ids] * wpe[: len(ids)],
        "concatenou": lambda wte, wpe, ids: np.concatenate([wte[ids], wpe[: len(ids)]], 1),
        "posicao_invertida": lambda wte, wpe, ids: wte[ids] + wpe[: len(ids)][::-1],
        "escalou": lambda wte, wpe, ids: wte[ids] * wte.shape[1] ** 0.5 + wpe[: len(ids)],
    },
)


# --- 6 · contar parâmetros -----------------------------------------------------------------


def _pecas(V, n_ctx, d, camadas):
    return arquitetura.formula(Tamanho("exercício", camadas, d, 1, 0, V, n_ctx))


def _contar(V, n_ctx, d, camadas, amarrada):
    return sum(_pecas(V, n_ctx, d, camadas).values()) + (0 if amarrada else V * d)


def _casos_contar(s):
    casos = [Caso((10, 4, 2, 1, True)), Caso((10, 4, 2, 1, False)), Caso((7, 5, 4, 3, True))]
    casos += [Caso((t.vocab, t.n_ctx, t.n_embd, t.n_layer, True)) for t in TAMANHOS.values()]
    V, n, d, L = (int(s.integers(*faixa)) for faixa in ((50, 900), (20, 99), (3, 40), (2, 9)))
    return [*casos, Caso((V, n, d, L, False))]


def _contar_sem(tira):
    def imitacao(V, n_ctx, d, camadas, amarrada):
        return _contar(V, n_ctx, d, camadas, amarrada) - tira(V, n_ctx, d, camadas)

    return imitacao


CONTAS["contar"] = Conta(
    _contar,
    _casos_contar,
    {
        "sem_vieses": _contar_sem(lambda V, n, d, L: L * 9 * d),
        "sem_ln_final": _contar_sem(lambda V, n, d, L: 2 * d),
        "sem_layernorm": _contar_sem(lambda V, n, d, L: (2 * L + 1) * 2 * d),
        "layernorm_sem_vies": _contar_sem(lambda V, n, d, L: (2 * L + 1) * d),
        "uma_layernorm": _contar_sem(lambda V, n, d, L: L * 2 * d),
        "sem_wpe": _contar_sem(lambda V, n, d, L: n * d),
        "conta_a_cabeca": lambda V, n, d, L, am: _contar(V, n, d, L, False),
        "ignora_a_solta": lambda V, n, d, L, am: _contar(V, n, d, L, True),
        "amarracao_invertida": lambda V, n, d, L, am: _contar(V, n, d, L, not am),
        "mlp_so_ida": _contar_sem(lambda V, n, d, L: L * (4 * d * d + d)),
        "atencao_sem_saida": _contar_sem(lambda V, n, d, L: L * (d * d + d)),
        "em_bytes": lambda *a: 4 * _contar(*a),
        "um_bloco_so": lambda V, n, d, L, am: _contar(V, n, d, 1, am),
    },
)


# --- 7 · amarração -------------------------------------------------------------------------


def _casos_amarrada(s):
    casos = [Caso((np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])))]
    for V, d in ((5, 3), (4, 4)):
        E = s.standard_normal((V, d))
        outras = [Mesmo(0), Vista(0), Vista(0, transposta=True), E.copy(), E.T.copy()]
        outras += [s.standard_normal((V, d)), np.zeros((V, d))]
        casos += [Caso((E, o)) for o in outras]
    # Os mesmos valores no canto, e o resto não: olhar um número só não basta.
    outra = E.copy()
    outra[-1, -1] += 1
    # E uma de outro tamanho: nem a forma combina.
    return [*casos, Caso((E, outra)), Caso((E, s.standard_normal((6, 4))))]


def _mesmos_valores(a, b):
    return np.array_equal(a, b) or np.array_equal(a, b.T)


CONTAS["amarrada"] = Conta(
    lambda a, b: np.shares_memory(a, b),
    _casos_amarrada,
    {
        "compara_valores": (
            lambda a, b: np.array_equal(a, b),
            _mesmos_valores,
            lambda a, b: np.array_equal(a, b.T),
        ),
        "mesmo_objeto": lambda a, b: a is b,
        "so_a_forma": (
            lambda a, b: a.shape == b.shape,
            lambda a, b: a.shape == b.shape or a.shape == b.T.shape,
        ),
        "um_numero_so": lambda a, b: a[0, 0] == b[0, 0],
        "transposta_nao": lambda a, b: (
            np.shares_memory(a, b) and a.shape == b.shape and a.strides == b.strides
        ),
        "ao_contrario": lambda a, b: not np.shares_memory(a, b),
    },
)
