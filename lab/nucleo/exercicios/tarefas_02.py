"""As sete funções da apostila 02: o que se espera, os casos, e os enganos que se conhecem.

A resposta esperada vem do nucleo ou da biblioteca, e não das soluções: quem confere a solução é
outra conta. Cada engano é um programa errado curto; se ele devolve o mesmo que o da pessoa, é
dele que se fala.
"""

import numpy as np

from nucleo.contas import arquitetura, vetores
from nucleo.exercicios.tipos import Caso, Engano, Mesmo, Tarefa, Vista
from nucleo.modelos.tamanhos import TAMANHOS, Tamanho

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


CONSULTA = Tarefa(
    "consulta", 2, 1, "3", "A consulta, com o one-hot", "consulta_onehot", 10, 1,
    dica="Seção 3 da apostila: se a linha do one-hot tem um único 1, na casa i, que linha de E "
    "sobra quando você a multiplica pela tabela inteira? E quantas linhas o one-hot precisa ter?",
    significado="Cada id vira uma linha com um único 1, e o produto dessa linha pela tabela "
    "recolhe exatamente uma linha de E.",
    esperado=_consulta,
    casos=_casos_consulta,
    enganos=(
        Engano("conta_de_1", "contou as linhas a partir de 1",
               "Em Python, e no tokenizador, o id 0 é a primeira linha: nada a subtrair.",
               (lambda ids, E: (_eye(ids - 1, E), E[ids - 1]),)),
        Engano("multi_hot", "pôs todos os ids no mesmo vetor",
               "Um vetor com vários 1 soma as linhas da tabela (é uma bolsa de palavras). "
               "O one-hot é um vetor por token: n ids, n linhas.",
               (lambda ids, E: (_eye(ids, E).max(0), _eye(ids, E).max(0) @ E),
                lambda ids, E: (_eye(ids, E).sum(0), _eye(ids, E).sum(0) @ E))),
        Engano("onehot_deitado", "deixou o one-hot deitado, (V, n) em vez de (n, V)",
               "Para multiplicar a tabela (V, d) pela esquerda, cada token precisa ser uma linha.",
               (lambda ids, E: (_eye(ids, E).T, E[ids]),)),
        Engano("so_o_primeiro", "usou só o primeiro id",
               "A frase tem n tokens. Pegar o primeiro em silêncio é olhar para outra frase.",
               (lambda ids, E: (_eye(ids[:1], E), E[ids[:1]]),
                lambda ids, E: (_eye(ids[0], E), E[ids[0]]))),
        Engano("sem_repetir", "tirou os ids repetidos, ou os pôs em ordem",
               "A mesma palavra pode aparecer duas vezes, e cada aparição é uma linha; a ordem "
               "é a da frase.",
               (lambda ids, E: (_eye(np.unique(ids), E), E[np.unique(ids)]),)),
        Engano("faltou_o_onehot", "devolveu só as linhas",
               "A função devolve duas coisas, nesta ordem: a matriz one-hot e as linhas buscadas.",
               (lambda ids, E: E[ids],)),
        Engano("id_no_lugar_do_1", "pôs o próprio id na casa, em vez de 1",
               "O id é uma etiqueta, não uma medida: com o número dele na casa, a linha sai "
               "multiplicada pela etiqueta.",
               (lambda ids, E: (_eye(ids, E) * ids[:, None], _eye(ids, E) * ids[:, None] @ E),)),
        Engano("ordem_da_tupla", "devolveu as duas coisas na ordem trocada",
               "Primeiro a matriz one-hot (n, V), depois as linhas (n, d).",
               (lambda ids, E: (E[ids], _eye(ids, E)),)),
    ),
)  # fmt: skip


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


COSSENO = Tarefa(
    "cosseno", 2, 2, "2", "O cosseno", "cosseno", 10, 1,
    dica="Seção 2: se você dobrar um dos vetores, a direção dele muda? E o seu número, muda? "
    "Que divisão desfaz o tamanho dos dois? (E de quanto é o tamanho de um vetor nulo?)",
    significado="O cosseno compara direções: não muda com o tamanho dos vetores, fica entre −1 e "
    "1, e guarda o sinal.",
    esperado=vetores.cosseno,
    casos=_casos_cosseno,
    enganos=(
        Engano("produto_interno", "é o produto interno, sem dividir pelos tamanhos",
               "a·b cresce com o tamanho dos vetores: um token de norma grande pareceria perto de todos.",
               (lambda a, b: a @ b,)),
        Engano("so_uma_norma", "dividiu por uma norma só",
               "Isso é a projeção de um vetor no outro, que ainda depende do tamanho de um deles. "
               "O divisor é ‖a‖ vezes ‖b‖.",
               (lambda a, b: a @ b / max(_norma(a), 1e-300), lambda a, b: a @ b / max(_norma(b), 1e-300))),
        Engano("norma_sem_raiz", "esqueceu a raiz da norma",
               "‖a‖ é a raiz da soma dos quadrados; sem ela divide-se pelo tamanho ao quadrado.",
               (lambda a, b: a @ b / ((a @ a) * (b @ b) or 1),)),
        Engano("norma_l1", "usou a soma dos módulos como norma",
               "A norma do cosseno é a euclidiana: raiz da soma dos quadrados.",
               (lambda a, b: a @ b / (np.abs(a).sum() * np.abs(b).sum() or 1),)),
        Engano("distancia_cosseno", "devolveu a distância, 1 − cosseno",
               "Na distância, 0 é “igual”; no cosseno, “igual” é 1. São o avesso um do outro.",
               (lambda a, b: 1 - vetores.cosseno(a, b),)),
        Engano("distancia_euclidiana", "é a distância entre as pontas dos vetores",
               "A distância muda com o tamanho; dois vetores na mesma direção podem estar longe.",
               (lambda a, b: _norma(a - b),)),
        Engano("modulo", "perdeu o sinal",
               "Direções opostas têm cosseno −1, e isso é informação: não tire o módulo.",
               (lambda a, b: abs(vetores.cosseno(a, b)),)),
        Engano("correlacao", "tirou a média dos vetores antes: é a correlação",
               "Centrar cada vetor muda a direção dele. O cosseno usa os números como estão.",
               (lambda a, b: vetores.cosseno(a - a.mean(), b - b.mean()),)),
        Engano("angulo", "devolveu o ângulo, e não o cosseno dele",
               "Pare antes do arco-cosseno: pede-se o número entre −1 e 1.",
               (lambda a, b: np.arccos(np.clip(vetores.cosseno(a, b), -1, 1)),
                lambda a, b: np.degrees(np.arccos(np.clip(vetores.cosseno(a, b), -1, 1))))),
        Engano("divide_por_zero", "com um vetor nulo, dividiu zero por zero",
               "Um vetor nulo não aponta para lugar nenhum; por convenção o cosseno com ele é 0. "
               "Um NaN solto contaminaria o ranking inteiro.",
               (lambda a, b: vetores.cosseno(a, b) if a.any() and b.any() else float("nan"),),
               na_borda=True),
    ),
)  # fmt: skip


# --- 3 · vizinhos ------------------------------------------------------------------------


def _cossenos(E, v):
    return vetores.cossenos(E, v, np.sqrt((E * E).sum(1)))


def _ordenar(notas, fora=()):
    """Ids da maior nota à menor; no empate, o menor id."""
    return [i for i in np.lexsort((np.arange(len(notas)), -notas)) if i not in fora]


def _vizinhos(E, i, k):
    return [j for j, _ in vetores.vizinhos(E, E[i], k, np.sqrt((E * E).sum(1)), (i,))]


def _sem_quase_empates(E, i):
    notas = np.sort(np.delete(_cossenos(E, E[i]), i))
    return np.diff(notas).min() > 1e-5


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
        if _sem_quase_empates(E, i):
            casos.append(Caso((E, i, k)))
    return casos


def _por_distancia(E, v):
    return -np.sqrt(((E - v) ** 2).sum(1))


VIZINHOS = Tarefa(
    "vizinhos", 2, 3, "2", "Os k vizinhos, com empates", "vizinhos", 15, 2,
    dica="Seção 2: quem é sempre o mais parecido com uma palavra, antes de qualquer vizinho? "
    "E se duas linhas têm a mesma nota, qual das duas o seu código põe primeiro?",
    significado="Os vizinhos são as k linhas de maior cosseno, da mais próxima em diante, sem a "
    "própria palavra; empate sai pelo menor id, para que duas máquinas mostrem a mesma lista.",
    esperado=_vizinhos,
    casos=_casos_vizinhos,
    enganos=(
        Engano("inclui_a_propria", "a própria palavra entrou na lista",
               "O cosseno de uma linha com ela mesma é 1: ela ganha sempre, e não é vizinha de si.",
               (lambda E, i, k: _ordenar(_cossenos(E, E[i]))[:k],)),
        Engano("do_mais_longe", "ordenou do menor cosseno para o maior",
               "Ordenar “normalmente” é do menor para o maior: assim vêm primeiro os mais distantes.",
               (lambda E, i, k: _ordenar(-_cossenos(E, E[i]), (i,))[:k],
                lambda E, i, k: _ordenar(-_cossenos(E, E[i]))[:k])),
        Engano("produto_interno", "usou o produto interno, sem dividir pelas normas",
               "Linhas compridas ganham de linhas parecidas. Divida pelas normas antes de ordenar.",
               (lambda E, i, k: _ordenar(E @ E[i], (i,))[:k],)),
        Engano("distancia_euclidiana", "usou a distância euclidiana",
               "As linhas têm tamanhos diferentes, e a distância castiga isso; pede-se o cosseno.",
               (lambda E, i, k: _ordenar(_por_distancia(E, E[i]), (i,))[:k],)),
        Engano("empate_pelo_maior", "no empate, ficou o maior id",
               "Inverter um argsort inverte também os empates. Ordene por −nota, com um método estável.",
               (lambda E, i, k: [j for j in np.argsort(_cossenos(E, E[i]), kind="stable")[::-1] if j != i][:k],)),
        Engano("devolveu_cossenos", "devolveu as notas, e não os ids",
               "Pedem-se os números das linhas; a nota serve só para ordenar.",
               (lambda E, i, k: np.sort(np.delete(_cossenos(E, E[i]), i))[::-1][:k],)),
        Engano("um_a_menos", "cortou os k antes de tirar a própria palavra",
               "Cortou k com ela dentro, depois a tirou: sobraram k − 1. Tire primeiro, corte depois.",
               (lambda E, i, k: [j for j in _ordenar(_cossenos(E, E[i]))[:k] if j != i],)),
        Engano("ignorou_k", "devolveu todas as linhas",
               "Pedem-se só as k primeiras.",
               (lambda E, i, k: _ordenar(_cossenos(E, E[i]), (i,)),)),
    ),
)  # fmt: skip


# --- 4 · analogia ------------------------------------------------------------------------


def _alvo(E, a, b, c):
    return vetores.vetor_da_analogia(E, a, b, c).astype(float)


def _melhor(notas, fora=()):
    return next(iter(_ordenar(notas, fora)))


def _analogia(E, a, b, c):
    return _melhor(_cossenos(E, _alvo(E, a, b, c)), (a, b, c))


def _unitarias(E):
    return E / np.sqrt((E * E).sum(1, keepdims=True))


ANALOGIA_ERRADA = {
    "sem_excluir": lambda E, a, b, c: _melhor(_cossenos(E, _alvo(E, a, b, c))),
    "exclui_so_a": lambda E, a, b, c: _melhor(_cossenos(E, _alvo(E, a, b, c)), (a,)),
    "exclui_so_b": lambda E, a, b, c: _melhor(_cossenos(E, _alvo(E, a, b, c)), (b,)),
    "exclui_so_c": lambda E, a, b, c: _melhor(_cossenos(E, _alvo(E, a, b, c)), (c,)),
    "sinal_trocado": lambda E, a, b, c: _melhor(_cossenos(E, E[b] - E[a] + E[c]), (a, b, c)),
    "soma_tudo": lambda E, a, b, c: _melhor(_cossenos(E, E[a] + E[b] + E[c]), (a, b, c)),
    "outro_sinal": lambda E, a, b, c: _melhor(_cossenos(E, E[a] + E[b] - E[c]), (a, b, c)),
    "produto_interno": lambda E, a, b, c: _melhor(E @ _alvo(E, a, b, c), (a, b, c)),
    "distancia": lambda E, a, b, c: _melhor(_por_distancia(E, _alvo(E, a, b, c)), (a, b, c)),
    "normalizou_antes": lambda E, a, b, c: _analogia(_unitarias(E), a, b, c),
    "mais_longe": lambda E, a, b, c: _melhor(-_cossenos(E, _alvo(E, a, b, c)), (a, b, c)),
}


def _casos_analogia(s):
    # Brinquedo em duas coordenadas (gênero, realeza): homem, mulher, rei, rainha, príncipe.
    brinquedo = np.array([[1.0, 0.2], [-1, 0.2], [1, 2], [-1, 2], [0.8, 1.5], [0.1, -1]])
    casos = [Caso((brinquedo, 2, 0, 1))]
    faltam = dict.fromkeys(ANALOGIA_ERRADA, 2)  # cada engano precisa errar em pelo menos dois
    for _ in range(400):
        V, d = int(s.integers(18, 40)), int(s.integers(3, 6))
        E = s.standard_normal((V, d)) * s.uniform(0.4, 3, (V, 1)) + 0.3
        a, b, c = (int(x) for x in s.choice(V, 3, replace=False))
        notas = np.sort(np.delete(_cossenos(E, _alvo(E, a, b, c)), [a, b, c]))
        if notas[-1] - notas[-2] < 1e-3:
            continue  # perto demais de um empate: a precisão do float32 decidiria
        certo = _analogia(E, a, b, c)
        pega = [n for n, f in ANALOGIA_ERRADA.items() if f(E, a, b, c) != certo and faltam[n] > 0]
        if pega:
            casos.append(Caso((E, a, b, c)))
            for nome in pega:
                faltam[nome] -= 1
        if not any(v > 0 for v in faltam.values()):
            break
    return casos


_SEM = (
    "Partimos da primeira palavra e andamos pouco: sem tirar as três, a vencedora costuma ser ela."
)

ANALOGIA = Tarefa(
    "analogia", 2, 4, "2", "A analogia, sem as palavras de entrada", "analogia", 15, 2,
    dica="Seção 2: que palavra ganharia se você não tirasse ninguém do páreo? E, em "
    "a − b + c, qual das três é subtraída?",
    significado="A resposta é a linha de maior cosseno com a − b + c, fora as três da pergunta, "
    "somando as linhas como estão na tabela.",
    esperado=_analogia,
    casos=_casos_analogia,
    enganos=(
        Engano("sem_excluir", "não tirou as palavras de entrada", _SEM,
               (ANALOGIA_ERRADA["sem_excluir"],)),
        Engano("exclui_so_uma", "tirou só uma das três palavras", _SEM + " E b e c também disputam.",
               tuple(ANALOGIA_ERRADA[f"exclui_so_{x}"] for x in "abc")),
        Engano("sinal_trocado", "trocou os sinais: não é a − b + c",
               "Rei − homem + mulher: subtrai-se b, somam-se a e c. Trocar o sinal anda para o lado oposto.",
               (ANALOGIA_ERRADA["sinal_trocado"], ANALOGIA_ERRADA["outro_sinal"],
                ANALOGIA_ERRADA["soma_tudo"])),
        Engano("produto_interno", "usou o produto interno, sem dividir pelas normas",
               "As linhas compridas ganham, pareçam-se ou não com o alvo.",
               (ANALOGIA_ERRADA["produto_interno"],)),
        Engano("distancia_euclidiana", "usou a distância euclidiana",
               "O alvo é uma soma e tem outro tamanho; a distância castiga o tamanho, o cosseno não.",
               (ANALOGIA_ERRADA["distancia"],)),
        Engano("normalizou_antes", "normalizou as linhas antes de somar",
               "Esse é o protocolo do gensim, outro: a resposta pode mudar. Aqui somam-se as linhas cruas.",
               (ANALOGIA_ERRADA["normalizou_antes"],)),
        Engano("mais_longe", "pegou a linha mais distante",
               "O maior cosseno é o mais próximo: argmax, e não argmin.",
               (ANALOGIA_ERRADA["mais_longe"],)),
    ),
)  # fmt: skip


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


H0 = Tarefa(
    "h0", 2, 5, "5", "h₀, a entrada do primeiro bloco", "h0", 10, 1,
    dica="Seção 5: que linha de wpe recebe o primeiro token da frase, seja ele qual for? E o que "
    "acontece com duas aparições da mesma palavra?",
    significado="Cada linha de h₀ diz o que o token é (wte[id]) mais onde ele está (wpe[0], "
    "wpe[1], …): a mesma palavra em dois lugares sai diferente.",
    esperado=_h0,
    casos=_casos_h0,
    enganos=(
        Engano("posicao_pelo_id", "buscou a posição pelo id do token",
               "wpe se indexa pelo lugar na frase (0, 1, 2, …), e não por quem está nele.",
               (lambda wte, wpe, ids: wte[ids] + wpe[ids],)),
        Engano("posicao_de_1", "contou as posições a partir de 1",
               "O primeiro token usa a linha 0 de wpe. Um a mais desloca tudo, e o modelo estranha.",
               (lambda wte, wpe, ids: wte[ids] + wpe[1 : len(ids) + 1],)),
        Engano("sem_posicao", "esqueceu a posição",
               "Só wte[ids] diz o que há na frase, mas não em que ordem.",
               (lambda wte, wpe, ids: wte[ids],)),
        Engano("posicao_fixa", "somou a mesma linha de wpe a todos",
               "Todos os tokens ficaram na posição 0: a ordem se perde igual.",
               (lambda wte, wpe, ids: wte[ids] + wpe[0],)),
        Engano("media", "tirou a média em vez de somar",
               "O GPT-2 soma; dividir por 2 encolhe a entrada que os blocos esperam.",
               (lambda wte, wpe, ids: (wte[ids] + wpe[: len(ids)]) / 2,)),
        Engano("produto", "multiplicou em vez de somar",
               "Multiplicar deixaria a posição apagar o conteúdo onde ela é zero.",
               (lambda wte, wpe, ids: wte[ids] * wpe[: len(ids)],)),
        Engano("concatenou", "concatenou em vez de somar",
               "Concatenar dobra a largura (2d). A forma de h₀ é (n, d).",
               (lambda wte, wpe, ids: np.concatenate([wte[ids], wpe[: len(ids)]], 1),)),
        Engano("posicao_invertida", "contou as posições de trás para a frente",
               "A linha 0 de wpe é do primeiro token, e não do último.",
               (lambda wte, wpe, ids: wte[ids] + wpe[: len(ids)][::-1],)),
        Engano("escalou", "multiplicou por √d",
               "Esse fator é do Transformer de 2017; o GPT-2 soma as linhas como estão.",
               (lambda wte, wpe, ids: wte[ids] * wte.shape[1] ** 0.5 + wpe[: len(ids)],)),
    ),
)  # fmt: skip


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


CONTAR = Tarefa(
    "contar", 2, 6, "8", "Quantos parâmetros tem um GPT-2", "contar_parametros", 20, 2,
    dica="Seção 8: a atenção tem duas matrizes (d × 3d e d × d) e o MLP outras duas (d × 4d e "
    "4d × d). Cada uma tem viés? Quantas LayerNorm há por bloco, e há mais alguma depois do último?",
    significado="O total é a soma de wte, wpe, os blocos (com vieses e duas LayerNorm cada) e a "
    "LayerNorm final; a cabeça só conta se for solta.",
    esperado=_contar,
    casos=_casos_contar,
    tolerancia=0.0,
    enganos=(
        Engano("sem_vieses", "esqueceu os vieses",
               "Cada matriz dos blocos tem um viés do tamanho da saída: 3d, d, 4d e d.",
               (_contar_sem(lambda V, n, d, L: L * 9 * d),)),
        Engano("sem_ln_final", "esqueceu a LayerNorm final",
               "Depois do último bloco há mais uma (ln_f): 2d números, ganho e viés.",
               (_contar_sem(lambda V, n, d, L: 2 * d),)),
        Engano("sem_layernorm", "esqueceu as LayerNorm",
               "São duas por bloco e uma no fim, com ganho e viés: (2·camadas + 1)·2d.",
               (_contar_sem(lambda V, n, d, L: (2 * L + 1) * 2 * d),)),
        Engano("layernorm_sem_vies", "contou só o ganho das LayerNorm",
               "Cada LayerNorm tem ganho e viés: 2d números.",
               (_contar_sem(lambda V, n, d, L: (2 * L + 1) * d),)),
        Engano("uma_layernorm", "contou uma LayerNorm por bloco",
               "Há uma antes da atenção e outra antes do MLP.",
               (_contar_sem(lambda V, n, d, L: L * 2 * d),)),
        Engano("sem_wpe", "esqueceu wpe",
               "A tabela de posições também é aprendida: n_ctx × d.",
               (_contar_sem(lambda V, n, d, L: n * d),)),
        Engano("conta_a_cabeca", "contou a cabeça amarrada de novo",
               "Amarrada, a cabeça é a própria wte: os mesmos números, contados uma vez.",
               (lambda V, n, d, L, am: _contar(V, n, d, L, False),)),
        Engano("ignora_a_solta", "não contou a cabeça solta",
               "Com amarrada=False há uma segunda matriz V × d na saída.",
               (lambda V, n, d, L, am: _contar(V, n, d, L, True),)),
        Engano("amarracao_invertida", "inverteu o amarrada",
               "A cabeça acrescenta V × d quando amarrada é False.",
               (lambda V, n, d, L, am: _contar(V, n, d, L, not am),)),
        Engano("mlp_so_ida", "contou o MLP só na ida",
               "O MLP vai de d a 4d e volta de 4d a d: são duas matrizes.",
               (_contar_sem(lambda V, n, d, L: L * (4 * d * d + d)),)),
        Engano("atencao_sem_saida", "esqueceu a projeção de saída da atenção",
               "Depois de Q, K e V há c_proj, d × d com viés.",
               (_contar_sem(lambda V, n, d, L: L * (d * d + d)),)),
        Engano("em_bytes", "contou bytes",
               "Parâmetros são números; multiplicar por 4 dá os bytes em fp32.",
               (lambda *a: 4 * _contar(*a),)),
        Engano("um_bloco_so", "contou um bloco só",
               "Os blocos são iguais, mas cada um tem os seus pesos: multiplique pelas camadas.",
               (lambda V, n, d, L, am: _contar(V, n, d, 1, am),)),
    ),
)  # fmt: skip


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


AMARRADA = Tarefa(
    "amarrada", 2, 7, "6", "A prova da amarração", "amarrada", 15, 2,
    dica="Seção 6: uma cópia fiel tem os mesmos números; o que acontece com ela quando o original "
    "muda? E se a saída usa a tabela transposta, a memória é outra? Que pergunta o NumPy responde "
    "sobre a memória de dois arrays?",
    significado="Amarradas quer dizer a mesma memória: quem muda uma vê a mudança na outra. "
    "Números iguais, ou a mesma forma, não provam nada.",
    esperado=lambda a, b: np.shares_memory(a, b),
    casos=_casos_amarrada,
    enganos=(
        Engano("compara_valores", "comparou os valores",
               "Uma cópia tem os mesmos números e não está amarrada: o primeiro passo de treino as separa.",
               (lambda a, b: np.array_equal(a, b), _mesmos_valores,
                lambda a, b: np.array_equal(a, b.T))),
        Engano("mesmo_objeto", "perguntou se é o mesmo objeto Python",
               "Uma vista, ou a transposta, é outro objeto sobre a mesma memória, e continua amarrada.",
               (lambda a, b: a is b,)),
        Engano("so_a_forma", "comparou só a forma",
               "Duas matrizes quaisquer podem ter a mesma forma.",
               (lambda a, b: a.shape == b.shape,
                lambda a, b: a.shape == b.shape or a.shape == b.T.shape)),
        Engano("um_numero_so", "olhou um número só",
               "O primeiro número coincide também numa cópia.",
               (lambda a, b: a[0, 0] == b[0, 0],)),
        Engano("transposta_nao", "não reconheceu a transposta",
               "wteᵀ é uma vista: mesma memória, lida em outra ordem. A cabeça do GPT-2 usa justamente ela.",
               (lambda a, b: np.shares_memory(a, b) and a.shape == b.shape and a.strides == b.strides,)),
        Engano("ao_contrario", "respondeu ao contrário",
               "True quer dizer amarradas.",
               (lambda a, b: not np.shares_memory(a, b),)),
    ),
)  # fmt: skip

TAREFAS = (CONSULTA, COSSENO, VIZINHOS, ANALOGIA, H0, CONTAR, AMARRADA)
