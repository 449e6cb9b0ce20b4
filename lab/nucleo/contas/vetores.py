"""Cosseno, vizinhos e analogias, escritos do zero — é isto que a apostila 02 ensina.

Convenções: `tabela` é (V, d) float32, uma linha por token; `normas` é (V,), o comprimento de
cada linha, calculado uma vez por `normas_das_linhas`. Empates saem pela ordem (−nota, id),
para que duas máquinas mostrem a mesma lista.
"""

from dataclasses import dataclass

import numpy as np


def normas_das_linhas(tabela: np.ndarray) -> np.ndarray:
    """(V, d) -> (V,): o comprimento euclidiano de cada linha, em float32.

    Erros: `ValueError` se houver NaN ou infinito, com o número da linha: um cosseno calculado
    ali contaminaria todos os rankings em silêncio.
    """
    normas = np.sqrt(np.einsum("vd,vd->v", tabela, tabela))  # (V, d) -> (V,)
    ruins = np.flatnonzero(~np.isfinite(normas))
    if ruins.size:
        raise ValueError(f"a tabela tem NaN ou infinito em {ruins.size} linha(s): {ruins[:3]}…")
    return normas


def cosseno(a: np.ndarray, b: np.ndarray) -> float:
    """O cosseno do ângulo entre dois vetores: a·b / (‖a‖‖b‖), entre −1 e 1.

    Um vetor nulo não aponta para lugar nenhum; por convenção o cosseno com ele é 0.
    """
    produto = np.sqrt(float(a @ a)) * np.sqrt(float(b @ b))  # (d,), (d,) -> escalar
    return float(a @ b) / produto if produto > 0 else 0.0


def cossenos(tabela: np.ndarray, vetor: np.ndarray, normas: np.ndarray) -> np.ndarray:
    """(V, d), (d,) -> (V,): o cosseno do vetor com cada linha da tabela.

    Uma só passagem pela tabela: o produto matriz-vetor, dividido pelas normas já prontas.
    """
    notas = tabela @ vetor.astype(np.float32, copy=False)  # (V, d) @ (d,) -> (V,)
    tamanho = np.float32(np.sqrt(float(vetor @ vetor)))
    # Linha ou vetor nulo: divide por 1 e fica 0, em vez de espalhar NaN pelo ranking.
    notas /= normas if normas.all() else np.where(normas > 0, normas, 1)
    notas /= tamanho if tamanho > 0 else 1
    return notas


def mais_altos(notas: np.ndarray, k: int, excluir: tuple[int, ...] = ()) -> np.ndarray:
    """Os ids das k maiores notas, da maior para a menor, empates pelo menor id. (V,) -> (k,)

    `excluir` tira ids do páreo. Se k passar do que sobra, devolve o que há.
    """
    fora = set(excluir)
    if fora:
        # Pedir uns lugares a mais e riscar os excluídos dispensa copiar as notas.
        lista = mais_altos(notas, k + len(fora))
        return np.array([i for i in lista.tolist() if i not in fora][:k], dtype=np.int64)
    k = min(k, notas.size)
    # A k-ésima nota serve de corte; quem empata com ela ainda disputa pelo id. Achá-la entre os
    # máximos de grupos de 64 basta para um corte por baixo, e deixa quase ninguém para ordenar.
    grupo = 64 if notas.size > 128 * k else 1
    inteiros = notas.size // grupo * grupo
    maximos = notas[:inteiros].reshape(grupo, -1).max(0)  # (V,) -> (64, V/64) -> (V/64,)
    corte = np.partition(maximos, -k)[-k]
    candidatos = np.flatnonzero(notas >= corte)  # (V,) -> (≥k,)
    ordem = np.lexsort((candidatos, -notas[candidatos]))
    return candidatos[ordem][:k]


def vizinhos(
    tabela: np.ndarray,
    vetor: np.ndarray,
    k: int,
    normas: np.ndarray,
    excluir: tuple[int, ...] = (),
) -> list[tuple[int, float]]:
    """[(id, cosseno)] das k linhas mais próximas do vetor, da mais próxima em diante."""
    notas = cossenos(tabela, vetor, normas)  # (V, d), (d,) -> (V,)
    return [(int(i), float(notas[i])) for i in mais_altos(notas, k, excluir)]


def vetor_da_analogia(
    tabela: np.ndarray, a: int, b: int, c: int, normas: np.ndarray | None = None
) -> np.ndarray:
    """O vetor a − b + c: “rei − homem + mulher”. a, b, c são ids; devolve (d,).

    Sem `normas`, soma as linhas cruas (o protocolo da apostila). Com `normas`, cada linha é
    encolhida para comprimento 1 antes (o protocolo do gensim): a resposta pode mudar.
    Mikolov et al. 2013, arXiv:1301.3781.
    """
    linhas = tabela[[a, b, c]].astype(np.float32)  # (3, d)
    if normas is not None:
        tamanhos = normas[[a, b, c]]
        linhas = linhas / np.where(tamanhos > 0, tamanhos, 1)[:, None]  # a linha nula segue nula
    return linhas[0] - linhas[1] + linhas[2]  # (3, d) -> (d,)


@dataclass(frozen=True)
class Acertos:
    """O resultado do conjunto de analogias num protocolo, uma entrada por pergunta.

    `livre`: id da primeira resposta com tudo permitido; `sem_entradas`: id da primeira
    resposta fora as três palavras da pergunta, −1 se a tabela só tiver essas. Formas: (n,).
    """

    livre: np.ndarray
    sem_entradas: np.ndarray


def avaliar_analogias(
    tabela: np.ndarray, normas: np.ndarray, perguntas: np.ndarray, normalizar: bool
) -> Acertos:
    """As respostas a todas as perguntas (a, b, c, d) de uma vez. perguntas: (n, 4) ids.

    A nota de um candidato w é cos(b − a + c, w), e o produto interno é linear: basta calcular
    u·w uma vez para cada palavra u que aparece, e depois somar linhas prontas: centenas de
    produtos, em vez de um por pergunta. O comprimento do alvo divide todas as notas por igual e não
    muda quem vence, então nem é calculado.
    """
    return avaliar_protocolos(tabela, normas, perguntas, (normalizar,))[0]


def avaliar_protocolos(
    tabela: np.ndarray, normas: np.ndarray, perguntas: np.ndarray, protocolos: tuple[bool, ...]
) -> list[Acertos]:
    """`avaliar_analogias` em mais de um protocolo (normalizar?), com um produto só para todos.

    Normalizar divide a linha de u pela norma; dividir o produto u·w, já feito, dá no mesmo. Em
    blocos de perguntas (uma categoria repete as mesmas palavras), para as notas não ocuparem
    tanto quanto a tabela.
    """
    # Primeiro o protocolo cru: depois as notas são normalizadas, no lugar e uma vez só.
    feitos: dict[bool, list] = {normalizar: [] for normalizar in sorted(protocolos)}
    divisores = np.where(normas > 0, normas, 1)  # (V,)
    for i in range(0, max(len(perguntas), 1), 2000):
        bloco = perguntas[i : i + 2000]
        unicas, onde = np.unique(bloco[:, :3], return_inverse=True)  # (n, 3) -> (u,), (n, 3)
        notas = tabela[unicas].astype(np.float32) @ tabela.T  # (u, d) @ (d, V) -> (u, V)
        notas /= divisores
        for normalizar, partes in feitos.items():
            if normalizar:
                notas /= divisores[unicas][:, None]
            partes.append(_responder(notas, onde.reshape(-1, 3), bloco))
    return [Acertos(*np.concatenate(feitos[p], axis=1)) for p in protocolos]  # (2, n) cada


def _responder(notas: np.ndarray, onde: np.ndarray, perguntas: np.ndarray) -> np.ndarray:
    # notas (u, V); onde (n, 3): que linhas de notas cada pergunta soma. -> (2, n), os de `Acertos`
    livre, sem = respostas = np.empty((2, len(perguntas)), dtype=np.int64)
    passo = np.empty(notas.shape[1], dtype=np.float32)  # nota de b − nota de a, (V,)
    buffer = np.empty_like(passo)
    par = None
    for n, (ia, ib, ic) in enumerate(onde.tolist()):
        if (ia, ib) != par:  # as perguntas vêm agrupadas: o mesmo par serve a muitas
            par = ia, ib
            np.subtract(notas[ib], notas[ia], out=passo)
        np.add(passo, notas[ic], out=buffer)  # (V,) + (V,) -> (V,)
        entradas = perguntas[n, :3]
        delas = buffer[entradas]  # (3,)
        buffer[entradas] = -np.inf
        melhor = buffer.argmax()  # argmax devolve o menor id no empate: a nossa regra
        sem[n] = melhor if buffer[melhor] > -np.inf else -1
        # Com tudo permitido, só uma das três entradas pode tirar o lugar dela.
        alta = delas.max()
        if alta >= buffer[melhor]:
            da_vez = entradas[delas == alta].min()
            melhor = min(melhor, da_vez) if alta == buffer[melhor] else da_vez
        livre[n] = melhor
    return respostas


def deslocamentos(tabela: np.ndarray, pares: np.ndarray) -> np.ndarray:
    """(n, 2) ids -> (n, d): o vetor que leva da primeira à segunda palavra de cada par."""
    return tabela[pares[:, 1]] - tabela[pares[:, 0]]  # (n, d)


def alinhamento(desvios: np.ndarray) -> np.ndarray:
    """O cosseno de cada desvio com a média dos OUTROS. (n, d) -> (n,)

    Deixar o próprio par de fora importa: incluído, ele aponta um pouco para si mesmo e
    qualquer conjunto de pares pareceria ter uma direção.
    """
    outros = (desvios.sum(0) - desvios) / (len(desvios) - 1)  # (n, d)
    return np.array([cosseno(x, m) for x, m in zip(desvios, outros, strict=True)])  # (n,)


def anisotropia(tabela: np.ndarray, normas: np.ndarray) -> float:
    """O cosseno médio entre todos os pares de linhas diferentes, exato, sem sortear pares.

    A soma de todos os cossenos é ‖Σ linhas unitárias‖²; tirando os V cossenos de cada linha
    consigo mesma sobram os pares. Linhas nulas ficam fora da conta.
    """
    pesos = np.divide(1, normas, out=np.zeros(len(normas)), where=normas > 0)  # (V,) float64
    soma = np.zeros(tabela.shape[1])
    for i in range(0, len(tabela), 4096):
        # Em blocos, para somar em float64 sem fazer uma cópia float64 da tabela inteira.
        soma += pesos[i : i + 4096] @ tabela[i : i + 4096].astype(np.float64)  # (b,) @ (b, d)
    n = int((normas > 0).sum())
    return float((soma @ soma - n) / (n * (n - 1)))


def cossenos_de_pares(
    tabela: np.ndarray, normas: np.ndarray, quantos: int, semente: int
) -> np.ndarray:
    """(quantos,): cossenos de pares de linhas distintas sorteados com semente fixa."""
    sorteio = np.random.default_rng(semente)
    i = sorteio.integers(0, len(tabela), quantos)
    # Somar um salto de 1 a V−1 garante que o par nunca é uma linha com ela mesma.
    j = (i + sorteio.integers(1, len(tabela), quantos)) % len(tabela)
    # Aos poucos: as linhas sorteadas, todas juntas, ocupariam quase tanto quanto a tabela.
    produtos = np.concatenate(
        [
            np.einsum("nd,nd->n", tabela[i[k : k + 2048]], tabela[j[k : k + 2048]])  # (b,)
            for k in range(0, quantos, 2048)
        ]
    )
    divisor = normas[i] * normas[j]
    return produtos / np.where(divisor > 0, divisor, 1)


def onehot(i: int, V: int) -> np.ndarray:
    """(V,) float32: zeros, e um 1 na casa i. Erros: `IndexError` fora de 0…V−1."""
    if not 0 <= i < V:
        raise IndexError(f"o id {i} não existe: a tabela tem as linhas 0 a {V - 1}")
    vetor = np.zeros(V, dtype=np.float32)
    vetor[i] = 1
    return vetor


@dataclass(frozen=True)
class Embaralho:
    """Os ids de uma frase antes e depois de embaralhar o vocabulário, e a maior diferença entre
    os vetores que eles buscam (zero: trocar etiquetas não muda nada)."""

    antes: list[int]
    depois: list[int]
    diferenca: float


def embaralhar(tabela: np.ndarray, ids: list[int], semente: int) -> Embaralho:
    """Permuta as linhas de tabela (V, d) e os ids junto, e busca os mesmos ids nas duas tabelas."""
    V, d = tabela.shape
    novo_id = np.random.default_rng(semente).permutation(V)  # (V,): id velho -> id novo
    depois, diferenca = novo_id[ids], 0.0
    for c in range(0, d, 256):
        # Umas colunas por vez: outra tabela inteira dobraria a memória.
        colunas = tabela[:, c : c + 256]  # (V, d) -> (V, 256)
        embaralhada = np.empty_like(colunas)
        embaralhada[novo_id] = colunas  # as linhas em outra ordem
        diferenca = np.maximum(diferenca, np.abs(embaralhada[depois] - colunas[ids]).max())
    return Embaralho(list(ids), depois.tolist(), float(diferenca))


def cossenos_gaussianos(d: int, quantos: int, semente: int) -> np.ndarray:
    """(pares,), pelo menos `quantos`: cossenos entre vetores sorteados em d dimensões. Desvio ≈ 1/√d.

    São todos os pares de k vetores: 201 bastam para 20.000. Dois pares com um vetor em comum não
    dependem um do outro (para qualquer x fixo, a direção de y é uniforme), e por isso a média e o
    desvio têm a mesma precisão que teriam com pares separados.
    """
    k = int(np.ceil((1 + np.sqrt(1 + 8 * quantos)) / 2))  # o menor k com k·(k − 1)/2 ≥ quantos
    x = np.random.default_rng(semente).standard_normal((k, d), dtype=np.float32)  # (k, d)
    x /= np.sqrt(np.einsum("kd,kd->k", x, x))[:, None]
    return (x @ x.T)[np.triu_indices(k, 1)]  # (k, d) @ (d, k) -> (k, k) -> (pares,)


# --- o placar de um conjunto de analogias ---


@dataclass(frozen=True)
class Placar:
    """Uma linha da tabela de analogias: contagens, não porcentagens."""

    nome: str
    total: int
    cobertas: int
    certas_livre: int
    certas_sem_entradas: int
    entrada_primeiro: int


def placar(perguntas, acertos: Acertos) -> list[Placar]:
    """O placar por categoria e, na última linha, o de todas juntas."""
    certa = perguntas.ids[:, 3]
    livre, sem = acertos.livre == certa, acertos.sem_entradas == certa
    entrada = (acertos.livre[:, None] == perguntas.ids[:, :3]).any(1)  # (n, 3) -> (n,)

    def linha(nome, total, quais):
        return Placar(
            nome, int(total), int(quais.sum()), int(livre[quais].sum()), int(sem[quais].sum()),
            int(entrada[quais].sum()),
        )  # fmt: skip

    por_categoria = [
        linha(n, t, perguntas.categoria == i)
        for i, (n, t) in enumerate(zip(perguntas.nomes, perguntas.total, strict=True))
    ]
    todas = np.ones(len(certa), dtype=bool)
    return [*por_categoria, linha("todas", perguntas.total.sum(), todas)]
