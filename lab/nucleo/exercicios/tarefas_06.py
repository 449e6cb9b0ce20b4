"""As sete funções da apostila 06: o que se espera, os casos, e quem imita cada engano. O texto está em data/exercicios.

As respostas esperadas vêm de `nucleo.contas.posicoes`, `nucleo.contas.rope` e `nucleo.contas.permutacao` (em torch,
float64), e não das soluções, que são de NumPy.
"""

import numpy as np

from nucleo.exercicios.tipos import Caso, Conta

BASE = 10000.0


def _numpy(tensor):
    return tensor.numpy()


def _tensor(x):
    import torch

    return torch.from_numpy(np.array(x, dtype=np.float64))


def _theta(d, base=BASE):
    return base ** (-np.arange(0, d, 2) / d)  # (d/2,)


# --- 1 · senoides --------------------------------------------------------------------------


def _senoides(n, d, base):
    import torch

    from nucleo.contas import posicoes

    return _numpy(posicoes.senoides(n, d, base, dtype=torch.float64))


def _tabela(angulos, f=np.sin, g=np.cos):
    """(n, d/2) -> (n, d): f nas colunas pares, g nas ímpares."""
    saida = np.empty((len(angulos), 2 * angulos.shape[1]))
    saida[:, 0::2], saida[:, 1::2] = f(angulos), g(angulos)
    return saida


def _angulos(n, d, base, pos=None):
    return np.outer(np.arange(n) if pos is None else pos, _theta(d, base))


def _por_coluna(n, d, base):
    """Cada coluna com a sua frequência: base^(−j/d), j de 0 a d − 1."""
    a = np.outer(np.arange(n), base ** (-np.arange(d) / d))  # (n, d)
    return np.where(np.arange(d) % 2 == 0, np.sin(a), np.cos(a))


def _fairseq(n, d, base):
    a = np.outer(np.arange(n), base ** (-np.arange(d // 2) / max(d // 2 - 1, 1)))
    return np.concatenate([np.sin(a), np.cos(a)], 1)


def _casos_senoides(s):
    casos = [Caso((2, 2, BASE)), Caso((5, 4, BASE)), Caso((12, 6, BASE))]
    n, d = int(s.integers(20, 40)), 2 * int(s.integers(4, 12))
    return [*casos, Caso((n, d, float(s.integers(50, 900)))), Caso((16, 32, 500000.0))]


SENOIDES = Conta(
    _senoides,
    _casos_senoides,
    {
        "seno_e_cosseno_trocados": (
            lambda n, d, base: _tabela(_angulos(n, d, base), np.cos, np.sin),
        ),
        "metades": (
            lambda n, d, base: np.concatenate(
                [np.sin(_angulos(n, d, base)), np.cos(_angulos(n, d, base))], 1
            ),
        ),
        "uma_frequencia_por_coluna": (_por_coluna,),
        "expoente_sem_o_2": (
            lambda n, d, base: _tabela(np.outer(np.arange(n), base ** (-np.arange(d // 2) / d))),
        ),
        "expoente_dobrado": (
            lambda n, d, base: _tabela(
                np.outer(np.arange(n), base ** (-2 * np.arange(0, d, 2) / d))
            ),
        ),
        "posicao_de_1": (lambda n, d, base: _tabela(_angulos(n, d, base, np.arange(1, n + 1))),),
        "multiplicou": (lambda n, d, base: _tabela(np.outer(np.arange(n), 1 / _theta(d, base))),),
        "so_senos": (lambda n, d, base: _tabela(_angulos(n, d, base), np.sin, np.sin),),
        "ignorou_a_base": (lambda n, d, base: _tabela(_angulos(n, d, BASE)),),
        "graus": (lambda n, d, base: _tabela(np.radians(_angulos(n, d, base))),),
        "fairseq": (_fairseq,),
    },
)


# --- 2 · a matriz que desloca ----------------------------------------------------------------


def _deslocamento(k, d, base):
    from nucleo.contas import posicoes

    return _numpy(posicoes.matriz_de_deslocamento(k, d, base))


def _blocos(angulos, sinal=1):
    M = np.zeros((2 * len(angulos),) * 2)
    for i, a in enumerate(angulos):
        c, s = np.cos(a), np.sin(a) * sinal
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    return M


def _em_metades(k, d, base, sinal=1):
    a = k * _theta(d, base)
    C, S = np.diag(np.cos(a)), np.diag(np.sin(a)) * sinal
    return np.block([[C, S], [-S, C]])


def _reflexao(k, d, base, sinal):
    """[[c, s], [s, ±c]]: os dois senos com o mesmo sinal."""
    M = _blocos(k * _theta(d, base))
    impares = np.arange(1, d, 2)
    M[impares, impares - 1] *= -1
    M[impares, impares] *= sinal
    return M


def _casos_deslocamento(s):
    casos = [Caso((1, 2, BASE)), Caso((3, 4, BASE)), Caso((-2, 6, BASE))]
    return [
        *casos,
        Caso((int(s.integers(5, 60)), 8, float(s.integers(50, 900)))),
        Caso((17, 16, BASE)),
    ]


DESLOCAMENTO = Conta(
    _deslocamento,
    _casos_deslocamento,
    {
        "transposta": (lambda k, d, base: _blocos(k * _theta(d, base), -1),),
        "metades": (_em_metades, lambda k, d, base: _em_metades(k, d, base, -1)),
        "mesma_frequencia": (lambda k, d, base: _blocos(np.full(d // 2, float(k))),),
        "ignorou_k": (lambda k, d, base: _blocos(_theta(d, base)),),
        "identidade": (lambda k, d, base: np.eye(d),),
        "expoente_sem_o_2": (lambda k, d, base: _blocos(k * base ** (-np.arange(d // 2) / d)),),
        "ignorou_a_base": (lambda k, d, base: _blocos(k * _theta(d)),),
        "reflexao": (
            lambda k, d, base: _reflexao(k, d, base, 1),
            lambda k, d, base: _reflexao(k, d, base, -1),
        ),
        "so_a_diagonal": (lambda k, d, base: np.diag(np.repeat(np.cos(k * _theta(d, base)), 2)),),
    },
)


# --- 3 · atenção sem posições ----------------------------------------------------------------


def _atencao(x, Wq, Wk, Wv):
    from nucleo.contas import permutacao

    return _numpy(permutacao.atencao(_tensor(x), (_tensor(Wq), _tensor(Wk), _tensor(Wv))))


def _softmax(notas, eixo=-1):
    e = np.exp(notas - notas.max(eixo, keepdims=True))
    return e / e.sum(eixo, keepdims=True)


def _notas(x, Wq, Wk):
    return (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[1])


def _causal(x, Wq, Wk, Wv):
    notas = _notas(x, Wq, Wk)
    notas[np.triu_indices(len(x), 1)] = -np.inf
    return _softmax(notas) @ (x @ Wv)


def _sem_estabilizar(x, Wq, Wk, Wv):
    with np.errstate(all="ignore"):
        e = np.exp(_notas(x, Wq, Wk))
        return e / e.sum(-1, keepdims=True) @ (x @ Wv)


def _casos_atencao(s):
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    casos = [Caso((x, np.eye(2), np.eye(2), np.eye(2)))]
    for T, d in ((3, 4), (5, 3), (6, 8)):
        pesos = (s.standard_normal((d, d)) for _ in "qkv")
        casos.append(Caso((1.3 * s.standard_normal((T, d)), *pesos)))
    # Notas enormes: exp(1000) não cabe em número nenhum.
    grande = 30 * s.standard_normal((4, 3))
    return [*casos, Caso((grande, 3 * np.eye(3), 3 * np.eye(3), np.eye(3)), borda=True)]


ATENCAO = Conta(
    _atencao,
    _casos_atencao,
    {
        "sem_escala": (lambda x, q, k, v: _softmax((x @ q) @ (x @ k).T) @ (x @ v),),
        "escala_sem_raiz": (
            lambda x, q, k, v: _softmax((x @ q) @ (x @ k).T / x.shape[1]) @ (x @ v),
        ),
        "eixo_do_softmax": (lambda x, q, k, v: _softmax(_notas(x, q, k), 0) @ (x @ v),),
        "softmax_de_tudo": (
            lambda x, q, k, v: (
                (lambda e: e / e.sum())(np.exp(_notas(x, q, k) - _notas(x, q, k).max())) @ (x @ v)
            ),
        ),
        "sem_softmax": (lambda x, q, k, v: _notas(x, q, k) @ (x @ v),),
        "causal": (_causal,),
        "notas_transpostas": (lambda x, q, k, v: _softmax(_notas(x, q, k).T) @ (x @ v),),
        "sem_v": (lambda x, q, k, v: _softmax(_notas(x, q, k)) @ x,),
        "pesos_transpostos": (lambda x, q, k, v: _softmax(_notas(x, q.T, k.T)) @ (x @ v.T),),
        "devolveu_os_pesos": (lambda x, q, k, v: _softmax(_notas(x, q, k)),),
        "residual": (lambda x, q, k, v: x + _softmax(_notas(x, q, k)) @ (x @ v),),
        "estouro": (_sem_estabilizar,),
    },
)


# --- 4 e 5 · RoPE ----------------------------------------------------------------------------


def _rope(pareamento):
    def certo(x, base):
        from nucleo.contas import rope

        return _numpy(rope.rope(_tensor(x), base=base, pareamento=pareamento))

    return certo


def _indices(d, metades):
    return (
        (np.arange(d // 2), np.arange(d // 2) + d // 2)
        if metades
        else (np.arange(0, d, 2), np.arange(1, d, 2))
    )


def _girar(x, angulos, metades):
    """Gira por ângulos (T, d/2) quaisquer, num dos dois pareamentos."""
    a, b = _indices(x.shape[1], metades)
    saida = np.empty(x.shape)
    c, s = np.cos(angulos), np.sin(angulos)
    saida[:, a] = x[:, a] * c - x[:, b] * s
    saida[:, b] = x[:, a] * s + x[:, b] * c
    return saida


def _em_cima(x, angulos, metades):
    """O erro de quem reaproveita a coordenada que acabou de mudar."""
    a, b = _indices(x.shape[1], metades)
    saida = np.array(x, dtype=float)
    c, s = np.cos(angulos), np.sin(angulos)
    saida[:, a] = saida[:, a] * c - saida[:, b] * s
    saida[:, b] = saida[:, a] * s + saida[:, b] * c
    return saida


def _tabela_da_outra(x, base, metades):
    """Pareia de um jeito e repete os ângulos do outro: a mistura das duas convenções."""
    angulos = np.outer(np.arange(len(x)), _theta(x.shape[1], base))
    d = x.shape[1]
    if metades:
        virado = np.concatenate([-x[:, d // 2 :], x[:, : d // 2]], 1)
        cheios = np.repeat(angulos, 2, 1)
    else:
        virado = np.stack([-x[:, 1::2], x[:, 0::2]], -1).reshape(x.shape)
        cheios = np.concatenate([angulos, angulos], 1)
    return x * np.cos(cheios) + virado * np.sin(cheios)


def _casos_rope(s):
    casos = [Caso((np.array([[1.0, 2.0], [1.0, 2.0]]), BASE))]
    for T, d, base in ((3, 4, BASE), (6, 8, BASE), (9, 12, float(s.integers(50, 900)))):
        casos.append(Caso((s.standard_normal((T, d)), base)))
    return casos


def _enganos_rope(metades):
    def ang(x, base):
        return np.outer(np.arange(len(x)), _theta(x.shape[1], base))

    def soma(x, base):
        a = ang(x, base)
        return x + _tabela(a)

    certo, outro = ("(i, i + d/2)", "(2i, 2i + 1)") if metades else ("(2i, 2i + 1)", "(i, i + d/2)")
    return {
        "outro_pareamento": (lambda x, base: _girar(x, ang(x, base), not metades),),
        "sentido_contrario": (lambda x, base: _girar(x, -ang(x, base), metades),),
        "posicao_de_1": (
            lambda x, base: _girar(x, ang(x, base) + _theta(x.shape[1], base), metades),
        ),
        "reaproveitou": (lambda x, base: _em_cima(x, ang(x, base), metades),),
        "mesma_frequencia": (
            lambda x, base: _girar(
                x, np.repeat(np.arange(len(x))[:, None], x.shape[1] // 2, 1), metades
            ),
        ),
        "expoente_sem_o_2": (
            lambda x, base: _girar(
                x,
                np.outer(np.arange(len(x)), base ** (-np.arange(x.shape[1] // 2) / x.shape[1])),
                metades,
            ),
        ),
        "tabelas_misturadas": (lambda x, base: _tabela_da_outra(x, base, metades),),
        "somou": (soma,),
        "seno_e_cosseno_trocados": (lambda x, base: _girar(x, np.pi / 2 - ang(x, base), metades),),
        "ignorou_a_base": (lambda x, base: _girar(x, ang(x, BASE), metades),),
        "sem_girar": (lambda x, base: x,),
    }


INTERCALADO = Conta(_rope("intercalado"), _casos_rope, _enganos_rope(False))

METADES = Conta(_rope("metades"), _casos_rope, _enganos_rope(True))


# --- 6 · a conferência da distância -----------------------------------------------------------


def _so_distancia(S, tol):
    # Pela definição: dois pares quaisquer à mesma distância têm de concordar.
    grupos = {}
    for m in range(len(S)):
        for n in range(len(S)):
            grupos.setdefault(n - m, []).append(S[m, n])
    return all(max(g) - min(g) <= tol for g in grupos.values())


def _casos_distancia(s):
    def do_rope(T, d):
        q, k = s.standard_normal((2, d))
        angulos = np.outer(np.arange(T), _theta(d, 100.0))
        girar = [_girar(np.tile(v, (T, 1)), angulos, False) for v in (q, k)]
        return girar[0] @ girar[1].T  # (T, d) @ (d, T) -> (T, T)

    T = 6
    toeplitz = do_rope(T, 8)
    pe = _tabela(np.outer(np.arange(T), _theta(8, 100.0)))
    ruido = toeplitz + 1e-9 * s.standard_normal((T, T))
    canto, meio, primeira, embaixo = (toeplitz.copy() for _ in range(4))
    embaixo[4, 1] += 0.4
    canto[-1, -1] += 0.5
    meio[2, 4] -= 0.3
    primeira[0, -1] += 2.0  # a diagonal de um número só: continua dependendo só da distância
    soma = np.add.outer(np.arange(T), np.arange(T)).astype(float)
    aprendida = s.standard_normal((T, 4))
    simetrica = aprendida @ aprendida.T
    diagonal = simetrica.copy()
    np.fill_diagonal(diagonal, 1.0)
    matrizes = [pe @ pe.T, ruido, canto, meio, primeira, embaixo, np.sin(soma), simetrica, diagonal]
    matrizes += [do_rope(9, 4), toeplitz + 1e-3 * s.standard_normal((T, T)), np.full((3, 3), 2.0)]
    exemplo = np.array([[1.0, 2.0], [3.0, 1.0]])
    return [Caso((exemplo, 1e-6)), *[Caso((M, 1e-6)) for M in (toeplitz, *matrizes)]]


def _diagonal_principal(S, tol):
    return bool(np.ptp(np.diagonal(S)) <= tol)


DISTANCIA = Conta(
    _so_distancia,
    _casos_distancia,
    {
        "so_a_principal": (_diagonal_principal,),
        "simetria": (lambda S, tol: bool(np.abs(S - S.T).max() <= tol),),
        "exige_simetria": (
            lambda S, tol: _so_distancia(S, tol) and bool(np.abs(S - S.T).max() <= tol),
        ),
        "antidiagonais": (lambda S, tol: _so_distancia(S[::-1], tol),),
        "sem_tolerancia": (lambda S, tol: _so_distancia(S, 0.0),),
        "linhas_iguais": (lambda S, tol: bool(np.abs(S - S[0]).max() <= tol),),
        "so_as_duas_primeiras": (lambda S, tol: bool(np.abs(S[0, :-1] - S[1, 1:]).max() <= tol),),
        "ao_contrario": (lambda S, tol: not _so_distancia(S, tol),),
        "metade_de_cima": (
            lambda S, tol: all(np.ptp(np.diagonal(S, k)) <= tol for k in range(len(S))),
        ),
    },
)


# --- 7 · interpolação de posições -------------------------------------------------------------


def _interpolados(T, treino, d, base):
    from nucleo.contas import escalonamento

    escala = escalonamento.linear(d, max(T / treino, 1.0), base)
    return np.arange(T)[:, None] * _numpy(escala.frequencias)  # (T, 1) · (d/2,) -> (T, d/2)


def _casos_interpolar(s):
    casos = [
        Caso((4, 2, 2, BASE)),
        Caso((6, 8, 4, BASE)),
        Caso((10, 4, 6, BASE)),
        Caso((7, 4, 4, BASE)),
    ]
    T = int(s.integers(20, 40))
    return [*casos, Caso((T, T // 3, 8, float(s.integers(50, 900)))), Caso((5, 5, 4, BASE))]


def _interp(pos, d, base):
    return np.outer(pos, _theta(d, base))


INTERPOLAR = Conta(
    _interpolados,
    _casos_interpolar,
    {
        "esticou": (
            lambda T, L, d, b: _interp(np.arange(T) * max(T / L, 1), d, b),
            lambda T, L, d, b: _interp(np.arange(T) * (T / L), d, b),
        ),
        "sempre": (lambda T, L, d, b: _interp(np.arange(T) * (L / T), d, b),),
        "nao_interpolou": (lambda T, L, d, b: _interp(np.arange(T), d, b),),
        "cortou": (lambda T, L, d, b: _interp(np.minimum(np.arange(T), L - 1), d, b),),
        "deu_a_volta": (lambda T, L, d, b: _interp(np.arange(T) % L, d, b),),
        "arredondou": (
            lambda T, L, d, b: _interp(np.floor(np.arange(T) * min(L / T, 1)), d, b),
            lambda T, L, d, b: _interp(np.round(np.arange(T) * min(L / T, 1)), d, b),
            lambda T, L, d, b: _interp(np.arange(T) // max(T // L, 1), d, b),
        ),
        "pontas": (lambda T, L, d, b: _interp(np.arange(T) * min((L - 1) / (T - 1), 1), d, b),),
        "ntk": (
            lambda T, L, d, b: _interp(np.arange(T), d, b * max(T / L, 1) ** (d / max(d - 2, 1))),
        ),
        "duas_vezes": (lambda T, L, d, b: _interp(np.arange(T) * min(L / T, 1) ** 2, d, b),),
        "expoente_sem_o_2": (
            lambda T, L, d, b: np.outer(
                np.arange(T) * min(L / T, 1), b ** (-np.arange(d // 2) / d)
            ),
        ),
        "posicao_de_1": (lambda T, L, d, b: _interp(np.arange(1, T + 1) * min(L / T, 1), d, b),),
    },
)

CONTAS = {
    "senoides": SENOIDES,
    "deslocamento": DESLOCAMENTO,
    "atencao": ATENCAO,
    "rope_intercalado": INTERCALADO,
    "rope_metades": METADES,
    "distancia": DISTANCIA,
    "interpolar": INTERPOLAR,
}
