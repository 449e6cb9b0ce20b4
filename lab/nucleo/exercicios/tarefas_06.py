"""As sete funções da apostila 06: o que se espera, os casos, e os enganos que se conhecem.

As respostas esperadas vêm de `nucleo.contas.posicoes`, `nucleo.contas.rope` e `nucleo.contas.permutacao` (em torch,
float64), e não das soluções, que são de NumPy.
"""

import numpy as np

from nucleo.exercicios.tipos import Caso, Engano, Tarefa

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


SENOIDES = Tarefa(
    "senoides", 6, 1, "6.2", "A tabela de senoides", "senoides", 15, 1,
    dica="Seção 6.2: na fórmula, o 2i é o número da coluna par; qual é o expoente da coluna ímpar "
    "que vem logo depois dela, o mesmo ou outro?",
    significado="Cada par de colunas (2i, 2i + 1) é o seno e o cosseno do MESMO ângulo, "
    "pos / base^(2i/d), com pos a partir de 0.",
    esperado=_senoides,
    casos=_casos_senoides,
    enganos=(
        Engano("seno_e_cosseno_trocados", "trocou seno e cosseno",
               "O seno fica nas colunas pares: a posição 0 começa por 0, 1, 0, 1…",
               (lambda n, d, base: _tabela(_angulos(n, d, base), np.cos, np.sin),)),
        Engano("metades", "pôs todos os senos antes dos cossenos",
               "É a disposição em metades, de outras bibliotecas; a do artigo alterna coluna a coluna.",
               (lambda n, d, base: np.concatenate([np.sin(_angulos(n, d, base)), np.cos(_angulos(n, d, base))], 1),)),
        Engano("uma_frequencia_por_coluna", "deu uma frequência a cada coluna",
               "O expoente da coluna ímpar é o da par ao lado: seno e cosseno do mesmo ângulo. Sem isso "
               "não há matriz que desloque posições.",
               (_por_coluna,)),
        Engano("expoente_sem_o_2", "usou i/d no expoente, em vez de 2i/d",
               "Com i/d as frequências só descem até a raiz da base: metade da faixa se perde.",
               (lambda n, d, base: _tabela(np.outer(np.arange(n), base ** (-np.arange(d // 2) / d))),)),
        Engano("expoente_dobrado", "dobrou o expoente: 4i/d",
               "Se o índice já pula de 2 em 2, ele já é o 2i da fórmula.",
               (lambda n, d, base: _tabela(np.outer(np.arange(n), base ** (-2 * np.arange(0, d, 2) / d))),)),
        Engano("posicao_de_1", "contou as posições a partir de 1",
               "A primeira linha é a da posição 0.",
               (lambda n, d, base: _tabela(_angulos(n, d, base, np.arange(1, n + 1))),)),
        Engano("multiplicou", "multiplicou pela potência, em vez de dividir",
               "As frequências diminuem de um par ao outro: base com expoente negativo.",
               (lambda n, d, base: _tabela(np.outer(np.arange(n), 1 / _theta(d, base))),)),
        Engano("so_senos", "usou seno em todas as colunas",
               "Sem o cosseno, um ângulo e o seu suplemento ficam iguais.",
               (lambda n, d, base: _tabela(_angulos(n, d, base), np.sin, np.sin),)),
        Engano("ignorou_a_base", "ignorou a base pedida",
               "A função recebe a base; 10000 é só o valor do artigo.",
               (lambda n, d, base: _tabela(_angulos(n, d, BASE)),)),
        Engano("graus", "usou graus",
               "O ângulo da fórmula já está em radianos.",
               (lambda n, d, base: _tabela(np.radians(_angulos(n, d, base))),)),
        Engano("fairseq", "dividiu por d/2 − 1: é a disposição do fairseq",
               "Outra convenção, com outras frequências. A do artigo divide por d.",
               (_fairseq,)),
    ),
)  # fmt: skip


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


DESLOCAMENTO = Tarefa(
    "deslocamento", 6, 2, "6.2", "A matriz que desloca posições", "matriz_de_deslocamento", 20, 3,
    dica="Seção 6.2: escreva sen(a + b) e cos(a + b). Quem multiplica o seno e quem multiplica o "
    "cosseno da posição antiga, e com que sinal? O ângulo do deslocamento é igual em todos os pares?",
    significado="M(k) · PE(pos) = PE(pos + k) para qualquer pos: em cada par, um bloco "
    "[[cos kω, sen kω], [−sen kω, cos kω]].",
    esperado=_deslocamento,
    casos=_casos_deslocamento,
    enganos=(
        Engano("transposta", "é a transposta: desloca para trás",
               "M(−k) é a transposta de M(k). O sinal de menos fica embaixo à esquerda, porque o "
               "vetor do par é (seno, cosseno).",
               (lambda k, d, base: _blocos(k * _theta(d, base), -1),)),
        Engano("metades", "montou os blocos em metades",
               "Na tabela do artigo o seno e o cosseno de cada par são vizinhos: os blocos são 2 × 2 na diagonal.",
               (_em_metades, lambda k, d, base: _em_metades(k, d, base, -1))),
        Engano("mesma_frequencia", "girou todos os pares pelo mesmo ângulo",
               "Cada par tem a sua frequência: o ângulo é k·ω_i.",
               (lambda k, d, base: _blocos(np.full(d // 2, float(k))),)),
        Engano("ignorou_k", "ignorou k",
               "A matriz depende do deslocamento: o ângulo é k vezes a frequência.",
               (lambda k, d, base: _blocos(_theta(d, base)),)),
        Engano("identidade", "devolveu a identidade",
               "A identidade só serve para k = 0.",
               (lambda k, d, base: np.eye(d),)),
        Engano("expoente_sem_o_2", "usou i/d no expoente, em vez de 2i/d",
               "As frequências são as da tabela: base^(−2i/d).",
               (lambda k, d, base: _blocos(k * base ** (-np.arange(d // 2) / d)),)),
        Engano("ignorou_a_base", "ignorou a base pedida",
               "A função recebe a base; 10000 é só o valor do artigo.",
               (lambda k, d, base: _blocos(k * _theta(d)),)),
        Engano("reflexao", "os dois senos têm o mesmo sinal",
               "Com [[c, s], [s, −c]] ou [[c, s], [s, c]] não se gira: reflete-se ou deforma-se.",
               (lambda k, d, base: _reflexao(k, d, base, 1), lambda k, d, base: _reflexao(k, d, base, -1))),
        Engano("so_a_diagonal", "deixou só os cossenos",
               "Sem os senos fora da diagonal o par encolhe em vez de girar.",
               (lambda k, d, base: np.diag(np.repeat(np.cos(k * _theta(d, base)), 2)),)),
    ),
)  # fmt: skip


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


ATENCAO = Tarefa(
    "atencao", 6, 3, "6.2", "A atenção, sem posições", "atencao", 20, 2,
    dica="Seção 6.2: cada linha da matriz de notas é uma consulta. Em que eixo as notas de UMA "
    "consulta precisam somar 1? E o que acontece com a exponencial de uma nota de 1000?",
    significado="softmax(q·kᵀ/√d)·v, com q = x·Wq, k = x·Wk, v = x·Wv: uma linha de pesos por "
    "consulta, somando 1, e nenhuma máscara.",
    esperado=_atencao,
    casos=_casos_atencao,
    enganos=(
        Engano("sem_escala", "esqueceu de dividir por √d",
               "Sem a escala as notas crescem com d, e o softmax fica duro demais.",
               (lambda x, q, k, v: _softmax((x @ q) @ (x @ k).T) @ (x @ v),)),
        Engano("escala_sem_raiz", "dividiu por d, e não pela raiz",
               "O desvio-padrão do produto de dois vetores é √d, e é por ele que se divide.",
               (lambda x, q, k, v: _softmax((x @ q) @ (x @ k).T / x.shape[1]) @ (x @ v),)),
        Engano("eixo_do_softmax", "fez o softmax no eixo errado",
               "Cada linha (uma consulta) precisa somar 1; você normalizou as colunas.",
               (lambda x, q, k, v: _softmax(_notas(x, q, k), 0) @ (x @ v),)),
        Engano("softmax_de_tudo", "fez um softmax da matriz inteira",
               "Somar 1 na matriz toda deixa cada consulta com menos de 1: é um softmax por linha.",
               (lambda x, q, k, v: (lambda e: e / e.sum())(np.exp(_notas(x, q, k) - _notas(x, q, k).max())) @ (x @ v),)),
        Engano("sem_softmax", "esqueceu o softmax",
               "As notas cruas podem ser negativas e não somam 1.",
               (lambda x, q, k, v: _notas(x, q, k) @ (x @ v),)),
        Engano("causal", "pôs a máscara causal",
               "Aqui não há máscara: todos veem todos. Com ela a ordem vaza, e a experiência muda.",
               (_causal,)),
        Engano("notas_transpostas", "multiplicou k por q, e não q por k",
               "A linha é de quem pergunta: q·kᵀ.",
               (lambda x, q, k, v: _softmax(_notas(x, q, k).T) @ (x @ v),)),
        Engano("sem_v", "usou x no lugar de v",
               "O que se soma são os valores, v = x·Wv.",
               (lambda x, q, k, v: _softmax(_notas(x, q, k)) @ x,)),
        Engano("pesos_transpostos", "multiplicou pelas matrizes transpostas",
               "Aqui q = x·Wq, sem transpor (o nn.Linear do torch é que guarda o peso deitado).",
               (lambda x, q, k, v: _softmax(_notas(x, q.T, k.T)) @ (x @ v.T),)),
        Engano("devolveu_os_pesos", "devolveu os pesos da atenção",
               "Falta a última conta: pesos · v.",
               (lambda x, q, k, v: _softmax(_notas(x, q, k)),)),
        Engano("residual", "somou x no fim",
               "O atalho residual fica fora da atenção; aqui se pede só ela.",
               (lambda x, q, k, v: x + _softmax(_notas(x, q, k)) @ (x @ v),)),
        Engano("estouro", "a exponencial estourou com notas grandes",
               "exp(1000) é infinito, e infinito sobre infinito é NaN. Tire o máximo da linha antes: "
               "o softmax não muda.",
               (_sem_estabilizar,), na_borda=True),
    ),
)  # fmt: skip


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
    return (
        Engano("outro_pareamento", f"girou os pares {outro}",
               f"Aqui giram juntas {certo}. As duas convenções existem e são equivalentes, mas não se "
               "misturam num mesmo modelo: nada avisa, e ele responde mal.",
               (lambda x, base: _girar(x, ang(x, base), not metades),)),
        Engano("sentido_contrario", "girou no sentido contrário",
               "O sinal de menos fica na primeira coordenada do par: a·cos − b·sen.",
               (lambda x, base: _girar(x, -ang(x, base), metades),)),
        Engano("posicao_de_1", "contou as posições a partir de 1",
               "A posição 0 não gira: a primeira linha sai como entrou.",
               (lambda x, base: _girar(x, ang(x, base) + _theta(x.shape[1], base), metades),)),
        Engano("reaproveitou", "usou a coordenada já girada para girar a outra",
               "As duas contas do par usam os valores antigos de a e de b; guarde-os antes de escrever.",
               (lambda x, base: _em_cima(x, ang(x, base), metades),)),
        Engano("mesma_frequencia", "girou todos os pares pelo mesmo ângulo",
               "Cada par tem a sua frequência: base^(−2i/d).",
               (lambda x, base: _girar(x, np.repeat(np.arange(len(x))[:, None], x.shape[1] // 2, 1), metades),)),
        Engano("expoente_sem_o_2", "usou i/d no expoente, em vez de 2i/d",
               "Com i/d as frequências só descem até a raiz da base.",
               (lambda x, base: _girar(
                   x, np.outer(np.arange(len(x)), base ** (-np.arange(x.shape[1] // 2) / x.shape[1])), metades),)),
        Engano("tabelas_misturadas", "pareou de um jeito e repetiu os ângulos do outro",
               "Quem vira o vetor e quem repete cos e sen precisam seguir o mesmo pareamento: em "
               "metades a tabela se concatena, intercalado ela se repete de dois em dois.",
               (lambda x, base: _tabela_da_outra(x, base, metades),)),
        Engano("somou", "somou a posição em vez de girar",
               "Somar é o que fazem as senoides e a wpe. O RoPE gira, e a norma não muda.",
               (soma,)),
        Engano("seno_e_cosseno_trocados", "trocou seno e cosseno",
               "Na posição 0 o ângulo é 0: cos = 1, sen = 0, e nada se mexe.",
               (lambda x, base: _girar(x, np.pi / 2 - ang(x, base), metades),)),
        Engano("ignorou_a_base", "ignorou a base pedida",
               "A função recebe a base: 10000 é a do artigo, o Llama 3 usa 500000.",
               (lambda x, base: _girar(x, ang(x, BASE), metades),)),
        Engano("sem_girar", "devolveu x como veio",
               "Só a posição 0 não gira.",
               (lambda x, base: x,)),
    )  # fmt: skip


INTERCALADO = Tarefa(
    "rope_intercalado",
    6,
    4,
    "6.6",
    "RoPE, pares vizinhos",
    "rope_intercalado",
    20,
    2,
    dica="Seção 6.6: se você escreve a primeira coordenada do par e só depois calcula a segunda, "
    "que valor da primeira a segunda conta usa? E que linha não deveria mudar nunca?",
    significado="Cada par (2i, 2i + 1) da linha t gira pelo ângulo t·base^(−2i/d), anti-horário: "
    "a·cos − b·sen, a·sen + b·cos.",
    esperado=_rope("intercalado"),
    casos=_casos_rope,
    enganos=_enganos_rope(False),
)

METADES = Tarefa(
    "rope_metades",
    6,
    5,
    "6.6",
    "RoPE, em metades",
    "rope_metades",
    15,
    2,
    dica="Seção 6.6: nos modelos da Hugging Face, com quem gira a coordenada 0 quando d = 8? Se "
    "você repete a tabela de cossenos até d colunas, ela se repete em blocos ou de dois em dois?",
    significado="Cada par (i, i + d/2) da linha t gira pelo ângulo t·base^(−2i/d).",
    esperado=_rope("metades"),
    casos=_casos_rope,
    enganos=_enganos_rope(True),
)


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


DISTANCIA = Tarefa(
    "distancia", 6, 6, "6.6", "Só a distância importa?", "so_depende_da_distancia", 20, 2,
    dica="Seção 6.6: se S[m, n] só depende de n − m, o que há de igual ao longo de cada diagonal? "
    "Olhar uma diagonal só basta? E q·k à distância +2 precisa ser igual a q·k à distância −2?",
    significado="S[m, n] só depende de n − m quando TODA diagonal é constante, a menos da "
    "tolerância; S não precisa ser simétrica.",
    esperado=_so_distancia,
    casos=_casos_distancia,
    enganos=(
        Engano("so_a_principal", "olhou só a diagonal principal",
               "A principal é a distância 0. As outras distâncias moram nas outras diagonais.",
               (_diagonal_principal,)),
        Engano("simetria", "conferiu se a matriz é simétrica",
               "Simétrica é S[m, n] = S[n, m], outra pergunta: +2 e −2 podem dar números diferentes.",
               (lambda S, tol: bool(np.abs(S - S.T).max() <= tol),)),
        Engano("exige_simetria", "exigiu também que S fosse simétrica",
               "No RoPE, q·k olhando 2 para a frente e 2 para trás são números diferentes.",
               (lambda S, tol: _so_distancia(S, tol) and bool(np.abs(S - S.T).max() <= tol),)),
        Engano("antidiagonais", "percorreu as diagonais do outro lado",
               "Nas antidiagonais é m + n que fica igual; pede-se n − m.",
               (lambda S, tol: _so_distancia(S[::-1], tol),)),
        Engano("sem_tolerancia", "comparou com igualdade exata",
               "Ponto flutuante arredonda: duas contas certas diferem na última casa. Use a tolerância.",
               (lambda S, tol: _so_distancia(S, 0.0),)),
        Engano("linhas_iguais", "comparou as linhas sem deslocar",
               "A linha seguinte é a anterior deslocada de uma casa, e não igual a ela.",
               (lambda S, tol: bool(np.abs(S - S[0]).max() <= tol),)),
        Engano("so_as_duas_primeiras", "conferiu só as primeiras linhas",
               "Duas linhas podem combinar e a terceira não: confira todas.",
               (lambda S, tol: bool(np.abs(S[0, :-1] - S[1, 1:]).max() <= tol),)),
        Engano("ao_contrario", "respondeu ao contrário",
               "True quer dizer: depende só da distância.",
               (lambda S, tol: not _so_distancia(S, tol),)),
        Engano("metade_de_cima", "conferiu só as diagonais de cima",
               "Distâncias negativas também contam: as diagonais de baixo.",
               (lambda S, tol: all(np.ptp(np.diagonal(S, k)) <= tol for k in range(len(S))),)),
    ),
)  # fmt: skip


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


INTERPOLAR = Tarefa(
    "interpolar", 6, 7, "6.6", "Interpolação de posições", "angulos_interpolados", 15, 2,
    dica="Seção 6.6: se o modelo treinou até a posição 2048 e agora recebe 8192, em que faixa as "
    "posições precisam caber? E se o texto for mais curto que o treino, há o que encolher?",
    significado="Quando T passa do treino, as posições encolhem por treino/T e cabem na faixa "
    "conhecida; quando não passa, nada muda. Devolvem-se ângulos (T, d/2).",
    esperado=_interpolados,
    casos=_casos_interpolar,
    enganos=(
        Engano("esticou", "multiplicou em vez de dividir",
               "Assim as posições vão ainda mais longe do que o modelo viu. Encolha: pos · treino/T.",
               (lambda T, L, d, b: _interp(np.arange(T) * max(T / L, 1), d, b),
                lambda T, L, d, b: _interp(np.arange(T) * (T / L), d, b))),
        Engano("sempre", "encolheu (ou esticou) também o texto curto",
               "Até o comprimento de treino nada muda: o fator é pelo menos 1.",
               (lambda T, L, d, b: _interp(np.arange(T) * (L / T), d, b),)),
        Engano("nao_interpolou", "não encolheu as posições",
               "Posição vezes frequência, sem mais, é o RoPE comum: além do treino os ângulos são novos.",
               (lambda T, L, d, b: _interp(np.arange(T), d, b),)),
        Engano("cortou", "cortou as posições no limite do treino",
               "Com o corte, todas as posições do fim ficam iguais, e a distância entre elas some.",
               (lambda T, L, d, b: _interp(np.minimum(np.arange(T), L - 1), d, b),)),
        Engano("deu_a_volta", "recomeçou a contar depois do treino",
               "Com o resto da divisão, a posição L volta a ser a 0, e dois lugares se confundem.",
               (lambda T, L, d, b: _interp(np.arange(T) % L, d, b),)),
        Engano("arredondou", "arredondou as posições",
               "Posições fracionárias são o coração da interpolação: arredondar faz vizinhos coincidirem.",
               (lambda T, L, d, b: _interp(np.floor(np.arange(T) * min(L / T, 1)), d, b),
                lambda T, L, d, b: _interp(np.round(np.arange(T) * min(L / T, 1)), d, b),
                lambda T, L, d, b: _interp(np.arange(T) // max(T // L, 1), d, b))),
        Engano("pontas", "usou (treino − 1)/(T − 1)",
               "A receita de Chen et al. divide por s = T/treino; a versão das pontas é outra escala.",
               (lambda T, L, d, b: _interp(np.arange(T) * min((L - 1) / (T - 1), 1), d, b),)),
        Engano("ntk", "mexeu na base: é a receita NTK",
               "NTK poupa os pares rápidos; a interpolação linear divide todos igualmente.",
               (lambda T, L, d, b: _interp(np.arange(T), d, b * max(T / L, 1) ** (d / max(d - 2, 1))),)),
        Engano("duas_vezes", "encolheu duas vezes",
               "Encolher a posição e também a frequência divide por s ao quadrado.",
               (lambda T, L, d, b: _interp(np.arange(T) * min(L / T, 1) ** 2, d, b),)),
        Engano("expoente_sem_o_2", "usou i/d no expoente, em vez de 2i/d",
               "As frequências são base^(−2i/d).",
               (lambda T, L, d, b: np.outer(np.arange(T) * min(L / T, 1), b ** (-np.arange(d // 2) / d)),)),
        Engano("posicao_de_1", "contou as posições a partir de 1",
               "A primeira posição é 0, e o seu ângulo é 0.",
               (lambda T, L, d, b: _interp(np.arange(1, T + 1) * min(L / T, 1), d, b),)),
    ),
)  # fmt: skip

TAREFAS = (SENOIDES, DESLOCAMENTO, ATENCAO, INTERCALADO, METADES, DISTANCIA, INTERPOLAR)
