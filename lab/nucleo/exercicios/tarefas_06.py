"""As sete funções da apostila 06: o que se espera, os casos, e quem imita cada engano. O texto está em data/exercicios.

As respostas esperadas vêm de `nucleo.contas.posicoes`, `nucleo.contas.rope` e `nucleo.contas.permutacao` (em torch,
float64), e não das soluções, que são de NumPy.
"""

from functools import partial

import numpy as np

from nucleo.exercicios.tipos import Caso, Conta

BASE = 10000.0
CONTAS: dict[str, Conta] = {}


def _tensor(x):
    import torch

    return torch.from_numpy(np.array(x, dtype=np.float64))


def _theta(d, base=BASE):
    return base ** (-np.arange(0, d, 2) / d)  # (d/2,)


def _theta_sem_o_2(d, base):
    return base ** (-np.arange(d // 2) / d)  # (d/2,)


def _angulos(pos, d, base=BASE):
    return np.outer(pos, _theta(d, base))  # (n,) -> (n, d/2)


# Os enganos de ângulo que a senoide e o RoPE têm em comum.
_ANGULOS = {
    "expoente_sem_o_2": lambda pos, d, base: np.outer(pos, _theta_sem_o_2(d, base)),
    "posicao_de_1": lambda pos, d, base: _angulos(pos + 1, d, base),
    "ignorou_a_base": lambda pos, d, base: _angulos(pos, d),
}

# --- 1 · senoides --------------------------------------------------------------------------


def _senoides(n, d, base):
    import torch

    from nucleo.contas import posicoes

    return posicoes.senoides(n, d, base, dtype=torch.float64).numpy()


def _tabela(angulos, f=np.sin, g=np.cos):
    """(n, d/2) -> (n, d): f nas colunas pares, g nas ímpares."""
    saida = np.empty((len(angulos), 2 * angulos.shape[1]))
    saida[:, 0::2], saida[:, 1::2] = f(angulos), g(angulos)
    return saida


def _lado_a_lado(angulos, *_):
    return np.concatenate([np.sin(angulos), np.cos(angulos)], 1)  # (n, d/2) -> (n, d)


def _de_angulos(angulos, *funcoes, tabela=_tabela):
    """O programa de quem erra nos ângulos, nas funções, ou em onde as põe."""
    return lambda n, d, base: tabela(angulos(np.arange(n), d, base), *funcoes)


def _por_coluna(n, d, base):
    """Cada coluna com a sua frequência: base^(−j/d), j de 0 a d − 1."""
    a = np.outer(np.arange(n), base ** (-np.arange(d) / d))  # (n, d)
    return np.where(np.arange(d) % 2 == 0, np.sin(a), np.cos(a))


def _fairseq(pos, d, base):
    return np.outer(pos, base ** (-np.arange(d // 2) / max(d // 2 - 1, 1)))


def _casos_senoides(s):
    casos = [Caso((2, 2, BASE)), Caso((5, 4, BASE)), Caso((12, 6, BASE))]
    n, d = int(s.integers(20, 40)), 2 * int(s.integers(4, 12))
    return [*casos, Caso((n, d, float(s.integers(50, 900)))), Caso((16, 32, 500000.0))]


CONTAS["senoides"] = Conta(
    _senoides,
    _casos_senoides,
    {
        "seno_e_cosseno_trocados": _de_angulos(_angulos, np.cos, np.sin),
        "metades": _de_angulos(_angulos, tabela=_lado_a_lado),
        "uma_frequencia_por_coluna": _por_coluna,
        "expoente_dobrado": _de_angulos(lambda pos, d, base: _angulos(pos, d, base**2)),
        "multiplicou": _de_angulos(lambda pos, d, base: _angulos(pos, d, 1 / base)),
        "so_senos": _de_angulos(_angulos, np.sin, np.sin),
        "graus": _de_angulos(lambda *a: np.radians(_angulos(*a))),
        "fairseq": _de_angulos(_fairseq, tabela=_lado_a_lado),
        **{nome: _de_angulos(angulos) for nome, angulos in _ANGULOS.items()},
    },
)


# --- 2 · a matriz que desloca ----------------------------------------------------------------


def _deslocamento(k, d, base):
    from nucleo.contas import posicoes

    return posicoes.matriz_de_deslocamento(k, d, base).numpy()


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
    sorteado = (int(s.integers(5, 60)), 8, float(s.integers(50, 900)))
    fixos = ((1, 2, BASE), (3, 4, BASE), (-2, 6, BASE))
    return [Caso(args) for args in (*fixos, sorteado, (17, 16, BASE))]


CONTAS["deslocamento"] = Conta(
    _deslocamento,
    _casos_deslocamento,
    {
        "transposta": lambda k, d, base: _blocos(k * _theta(d, base), -1),
        "metades": (_em_metades, lambda k, d, base: _em_metades(k, d, base, -1)),
        "mesma_frequencia": lambda k, d, base: _blocos(np.full(d // 2, float(k))),
        "ignorou_k": lambda k, d, base: _blocos(_theta(d, base)),
        "identidade": lambda k, d, base: np.eye(d),
        "expoente_sem_o_2": lambda k, d, base: _blocos(k * _theta_sem_o_2(d, base)),
        "ignorou_a_base": lambda k, d, base: _blocos(k * _theta(d)),
        "reflexao": (
            lambda k, d, base: _reflexao(k, d, base, 1),
            lambda k, d, base: _reflexao(k, d, base, -1),
        ),
        "so_a_diagonal": lambda k, d, base: np.diag(np.repeat(np.cos(k * _theta(d, base)), 2)),
    },
)


# --- 3 · atenção sem posições ----------------------------------------------------------------


def _atencao(x, Wq, Wk, Wv):
    from nucleo.contas import permutacao

    return permutacao.atencao(_tensor(x), (_tensor(Wq), _tensor(Wk), _tensor(Wv))).numpy()


def _softmax(notas, eixo=-1):
    e = np.exp(notas - notas.max(eixo, keepdims=True))
    return e / e.sum(eixo, keepdims=True)


def _notas(x, Wq, Wk):
    return (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[1])


def _causal(x, Wq, Wk, Wv):
    notas = np.where(np.tri(len(x), dtype=bool), _notas(x, Wq, Wk), -np.inf)
    return _softmax(notas) @ (x @ Wv)


def _sem_estabilizar(x, Wq, Wk, Wv):
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


CONTAS["atencao"] = Conta(
    _atencao,
    _casos_atencao,
    {
        "sem_escala": lambda x, q, k, v: _softmax((x @ q) @ (x @ k).T) @ (x @ v),
        "escala_sem_raiz": lambda x, q, k, v: _softmax((x @ q) @ (x @ k).T / x.shape[1]) @ (x @ v),
        "eixo_do_softmax": lambda x, q, k, v: _softmax(_notas(x, q, k), 0) @ (x @ v),
        "softmax_de_tudo": lambda x, q, k, v: _softmax(_notas(x, q, k), None) @ (x @ v),
        "sem_softmax": lambda x, q, k, v: _notas(x, q, k) @ (x @ v),
        "causal": _causal,
        "notas_transpostas": lambda x, q, k, v: _softmax(_notas(x, q, k).T) @ (x @ v),
        "sem_v": lambda x, q, k, v: _softmax(_notas(x, q, k)) @ x,
        "pesos_transpostos": lambda x, q, k, v: _softmax(_notas(x, q.T, k.T)) @ (x @ v.T),
        "devolveu_os_pesos": lambda x, q, k, v: _softmax(_notas(x, q, k)),
        "residual": lambda x, q, k, v: x + _softmax(_notas(x, q, k)) @ (x @ v),
        "estouro": _sem_estabilizar,
    },
)


# --- 4 e 5 · RoPE ----------------------------------------------------------------------------


def _rope(pareamento):
    def certo(x, base):
        from nucleo.contas import rope

        return rope.rope(_tensor(x), base=base, pareamento=pareamento).numpy()

    return certo


def _indices(d, metades):
    meio = d // 2
    return (slice(meio), slice(meio, d)) if metades else (slice(0, d, 2), slice(1, d, 2))


def _girar(x, angulos, metades, em_cima=False):
    """Gira por ângulos (T, d/2) quaisquer, num dos dois pareamentos.

    Com `em_cima`, o erro de quem reaproveita a coordenada que acabou de mudar.
    """
    a, b = _indices(x.shape[1], metades)
    saida = np.array(x, dtype=float)
    de = saida if em_cima else x
    c, s = np.cos(angulos), np.sin(angulos)
    saida[:, a] = de[:, a] * c - de[:, b] * s
    saida[:, b] = de[:, a] * s + de[:, b] * c
    return saida


def _tabela_da_outra(x, angulos, metades):
    """Pareia de um jeito e repete os ângulos do outro: a mistura das duas convenções."""
    a, b = _indices(x.shape[1], metades)
    virado = np.empty(x.shape)
    virado[:, a], virado[:, b] = -x[:, b], x[:, a]
    cheios = np.repeat(angulos, 2, 1) if metades else np.concatenate([angulos, angulos], 1)
    return x * np.cos(cheios) + virado * np.sin(cheios)


def _casos_rope(s):
    casos = [Caso((np.array([[1.0, 2.0], [1.0, 2.0]]), BASE))]
    for T, d, base in ((3, 4, BASE), (6, 8, BASE), (9, 12, float(s.integers(50, 900)))):
        casos.append(Caso((s.standard_normal((T, d)), base)))
    return casos


def _enganos_rope(metades):
    def girando(angulos, gira=_girar, metades=metades):
        return lambda x, base: gira(x, angulos(np.arange(len(x)), x.shape[1], base), metades)

    return {
        "outro_pareamento": girando(_angulos, metades=not metades),
        "sentido_contrario": girando(lambda *a: -_angulos(*a)),
        "reaproveitou": girando(_angulos, partial(_girar, em_cima=True)),
        "mesma_frequencia": girando(lambda pos, d, base: np.outer(pos, np.ones(d // 2))),
        "tabelas_misturadas": girando(_angulos, _tabela_da_outra),
        "somou": girando(_angulos, lambda x, angulos, _: x + _tabela(angulos)),
        "seno_e_cosseno_trocados": girando(lambda *a: np.pi / 2 - _angulos(*a)),
        "sem_girar": lambda x, base: x,
        **{nome: girando(angulos) for nome, angulos in _ANGULOS.items()},
    }


CONTAS["rope_intercalado"] = Conta(_rope("intercalado"), _casos_rope, _enganos_rope(False))
CONTAS["rope_metades"] = Conta(_rope("metades"), _casos_rope, _enganos_rope(True))


# --- 6 · a conferência da distância -----------------------------------------------------------


def _constantes(S, tol, diagonais):
    return all(np.ptp(np.diagonal(S, k)) <= tol for k in diagonais)


def _so_distancia(S, tol):
    # Pela definição: dois pares quaisquer à mesma distância têm de concordar.
    return _constantes(S, tol, range(1 - len(S), len(S)))


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


def _simetrica(S, tol):
    return bool(np.abs(S - S.T).max() <= tol)


CONTAS["distancia"] = Conta(
    _so_distancia,
    _casos_distancia,
    {
        "so_a_principal": lambda S, tol: _constantes(S, tol, [0]),
        "simetria": _simetrica,
        "exige_simetria": lambda S, tol: _so_distancia(S, tol) and _simetrica(S, tol),
        "antidiagonais": lambda S, tol: _so_distancia(S[::-1], tol),
        "sem_tolerancia": lambda S, tol: _so_distancia(S, 0.0),
        "linhas_iguais": lambda S, tol: bool(np.abs(S - S[0]).max() <= tol),
        "so_as_duas_primeiras": lambda S, tol: bool(np.abs(S[0, :-1] - S[1, 1:]).max() <= tol),
        "ao_contrario": lambda S, tol: not _so_distancia(S, tol),
        "metade_de_cima": lambda S, tol: _constantes(S, tol, range(len(S))),
    },
)


# --- 7 · interpolação de posições -------------------------------------------------------------


def _interpolados(T, treino, d, base):
    from nucleo.contas import escalonamento

    escala = escalonamento.linear(d, max(T / treino, 1.0), base)
    return np.arange(T)[:, None] * escala.frequencias.numpy()  # (T, 1) · (d/2,) -> (T, d/2)


def _casos_interpolar(s):
    T = int(s.integers(20, 40))
    sorteado = (T, T // 3, 8, float(s.integers(50, 900)))
    fixos = ((4, 2, 2, BASE), (6, 8, 4, BASE), (10, 4, 6, BASE), (7, 4, 4, BASE))
    return [Caso(args) for args in (*fixos, sorteado, (5, 5, 4, BASE))]


def _nas(posicoes):
    """O programa de quem erra nas posições: `posicoes(n, T, L)`, com n de 0 a T − 1."""
    return lambda T, L, d, base: _angulos(posicoes(np.arange(T), T, L), d, base)


CONTAS["interpolar"] = Conta(
    _interpolados,
    _casos_interpolar,
    {
        "esticou": (
            _nas(lambda n, T, L: n * max(T / L, 1)),
            _nas(lambda n, T, L: n * (T / L)),
        ),
        "sempre": _nas(lambda n, T, L: n * (L / T)),
        "nao_interpolou": _nas(lambda n, T, L: n),
        "cortou": _nas(lambda n, T, L: np.minimum(n, L - 1)),
        "deu_a_volta": _nas(lambda n, T, L: n % L),
        "arredondou": (
            _nas(lambda n, T, L: np.floor(n * min(L / T, 1))),
            _nas(lambda n, T, L: np.round(n * min(L / T, 1))),
            _nas(lambda n, T, L: n // max(T // L, 1)),
        ),
        "pontas": _nas(lambda n, T, L: n * min((L - 1) / (T - 1), 1)),
        "ntk": lambda T, L, d, base: _angulos(
            np.arange(T), d, base * max(T / L, 1) ** (d / max(d - 2, 1))
        ),
        "duas_vezes": _nas(lambda n, T, L: n * min(L / T, 1) ** 2),
        "expoente_sem_o_2": lambda T, L, d, base: np.outer(
            np.arange(T) * min(L / T, 1), _theta_sem_o_2(d, base)
        ),
        "posicao_de_1": _nas(lambda n, T, L: (n + 1) * min(L / T, 1)),
    },
)
