"""O banco: programas errados como os que se escrevem numa aula, e certos escritos de outro jeito.

ERRADOS: {tarefa: [(engano esperado, programa)]}. O engano "?" é de quem erra de um jeito que
ninguém previu: precisa ser reprovado, mas não se promete saber por quê.
CERTOS: {tarefa: [programa]}. Nenhum pode ser reprovado.

São escritos sem olhar as imitações de `nucleo/exercicios/tarefas_*.py`: laços onde lá há álgebra,
álgebra onde lá há laços, com os acidentes de quem está aprendendo.
"""

ERRADOS = {
    "consulta": [
        (
            "conta_de_1",
            """
def consulta_onehot(ids, E):
    O = np.zeros((len(ids), len(E)))
    for linha, i in enumerate(ids):
        O[linha, i - 1] = 1
    return O, O @ E
""",
        ),
        (
            "multi_hot",
            """
def consulta_onehot(ids, E):
    v = np.zeros(len(E))
    v[ids] = 1
    return v, v @ E
""",
        ),
        (
            "multi_hot",
            """
def consulta_onehot(ids, E):
    v = [0] * E.shape[0]
    for i in ids:
        v[i] += 1
    v = np.array(v)
    return v, v.dot(E)
""",
        ),
        (
            "onehot_deitado",
            """
def consulta_onehot(ids, E):
    O = np.zeros((E.shape[0], len(ids)))
    for coluna, i in enumerate(ids):
        O[i, coluna] = 1.0
    return O, O.T @ E
""",
        ),
        (
            "so_o_primeiro",
            """
def consulta_onehot(ids, E):
    O = np.zeros(len(E))
    O[ids[0]] = 1
    return O, O @ E
""",
        ),
        (
            "sem_repetir",
            """
def consulta_onehot(ids, E):
    unicos = sorted(set(int(i) for i in ids))
    O = np.zeros((len(unicos), len(E)))
    for n, i in enumerate(unicos):
        O[n, i] = 1
    return O, O @ E
""",
        ),
        (
            "faltou_o_onehot",
            """
def consulta_onehot(ids, E):
    return np.array([E[i] for i in ids])
""",
        ),
        (
            "id_no_lugar_do_1",
            """
def consulta_onehot(ids, E):
    O = np.zeros((len(ids), len(E)))
    for n, i in enumerate(ids):
        O[n, i] = i
    return O, O @ E
""",
        ),
        (
            "ordem_da_tupla",
            """
def consulta_onehot(ids, E):
    O = (ids[:, None] == np.arange(len(E))).astype(float)
    return O @ E, O
""",
        ),
    ],
    "cosseno": [
        (
            "produto_interno",
            """
def cosseno(a, b):
    total = 0.0
    for x, y in zip(a, b):
        total += x * y
    return total
""",
        ),
        (
            "so_uma_norma",
            """
def cosseno(a, b):
    n = np.linalg.norm(a)
    return 0.0 if n == 0 else np.dot(a, b) / n
""",
        ),
        (
            "so_uma_norma",
            """
def cosseno(a, b):
    return np.dot(a, b) / np.linalg.norm(b)
""",
        ),
        (
            "norma_sem_raiz",
            """
def cosseno(a, b):
    na, nb = sum(a ** 2), sum(b ** 2)
    if na == 0 or nb == 0:
        return 0.0
    return sum(a * b) / (na * nb)
""",
        ),
        (
            "norma_l1",
            """
def cosseno(a, b):
    na, nb = np.linalg.norm(a, 1), np.linalg.norm(b, ord=1)
    return float(a @ b / (na * nb)) if na * nb else 0.0
""",
        ),
        (
            "distancia_cosseno",
            """
def cosseno(a, b):
    n = np.linalg.norm(a) * np.linalg.norm(b)
    return 1 - (a @ b / n if n else 0)
""",
        ),
        (
            "distancia_euclidiana",
            """
def cosseno(a, b):
    return np.linalg.norm(a - b)
""",
        ),
        (
            "modulo",
            """
def cosseno(a, b):
    n = np.linalg.norm(a) * np.linalg.norm(b)
    return abs(a @ b) / n if n else 0.0
""",
        ),
        (
            "correlacao",
            """
def cosseno(a, b):
    with np.errstate(all="ignore"):
        return np.corrcoef(a, b)[0, 1]
""",
        ),
        (
            "angulo",
            """
def cosseno(a, b):
    n = np.linalg.norm(a) * np.linalg.norm(b)
    c = a @ b / n if n else 0.0
    return np.arccos(min(1.0, max(-1.0, c)))
""",
        ),
        (
            "divide_por_zero",
            """
def cosseno(a, b):
    return a.dot(b) / (np.linalg.norm(a) * np.linalg.norm(b))
""",
        ),
        (
            "sem_return",
            """
def cosseno(a, b):
    c = a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-12)
    print(c)
""",
        ),
        (
            "?",
            """
def cosseno(a, b):
    n = np.linalg.norm(a) + np.linalg.norm(b)
    return a @ b / n
""",
        ),
    ],
    "vizinhos": [
        (
            "inclui_a_propria",
            """
def vizinhos(E, i, k):
    U = E / np.linalg.norm(E, axis=1, keepdims=True)
    notas = (U @ U[i]).round(9)
    return np.argsort(-notas, kind="stable")[:k]
""",
        ),
        (
            "do_mais_longe",
            """
def vizinhos(E, i, k):
    U = E / np.linalg.norm(E, axis=1, keepdims=True)
    notas = U @ U[i]
    pares = sorted((notas[j].round(9), j) for j in range(len(E)) if j != i)
    return [j for _, j in pares][:k]
""",
        ),
        (
            "produto_interno",
            """
def vizinhos(E, i, k):
    pares = [(-float(E[j] @ E[i]), j) for j in range(len(E)) if j != i]
    pares.sort()
    return [j for _, j in pares[:k]]
""",
        ),
        (
            "distancia_euclidiana",
            """
def vizinhos(E, i, k):
    pares = sorted((np.linalg.norm(E[j] - E[i]), j) for j in range(len(E)) if j != i)
    return [j for _, j in pares[:k]]
""",
        ),
        (
            "empate_pelo_maior",
            """
def vizinhos(E, i, k):
    n = np.linalg.norm(E, axis=1)
    notas = (E @ E[i] / (n * n[i])).round(9)
    ordem = [j for j in np.argsort(notas, kind="stable")[::-1] if j != i]
    return ordem[:k]
""",
        ),
        (
            "devolveu_cossenos",
            """
def vizinhos(E, i, k):
    n = np.linalg.norm(E, axis=1)
    notas = E @ E[i] / (n * n[i])
    outros = [notas[j] for j in range(len(E)) if j != i]
    return sorted(outros, reverse=True)[:k]
""",
        ),
        (
            "um_a_menos",
            """
def vizinhos(E, i, k):
    n = np.linalg.norm(E, axis=1)
    notas = (E @ E[i] / (n * n[i])).round(9)
    primeiros = sorted(range(len(E)), key=lambda j: (-notas[j], j))[:k]
    if i in primeiros:
        primeiros.remove(i)
    return primeiros
""",
        ),
        (
            "ignorou_k",
            """
def vizinhos(E, i, k):
    n = np.linalg.norm(E, axis=1)
    notas = (E @ E[i] / (n * n[i])).round(9)
    return sorted((j for j in range(len(E)) if j != i), key=lambda j: (-notas[j], j))
""",
        ),
        (
            "mexeu_na_entrada",
            """
def vizinhos(E, i, k):
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    notas = (E @ E[i]).round(9)
    notas[i] = -2
    return np.argsort(-notas, kind="stable")[:k]
""",
        ),
        (
            "falhou",
            """
def vizinhos(E, i, k):
    notas = E @ E[i]
    return notas.ordenar()[:k]
""",
        ),
    ],
    "analogia": [
        (
            "sem_excluir",
            """
def analogia(E, a, b, c):
    alvo = E[a] - E[b] + E[c]
    notas = [alvo @ v / (np.linalg.norm(v) * np.linalg.norm(alvo)) for v in E]
    return int(np.argmax(notas))
""",
        ),
        (
            "exclui_so_uma",
            """
def analogia(E, a, b, c):
    alvo = E[a] - E[b] + E[c]
    notas = E @ alvo / np.linalg.norm(E, axis=1)
    notas[a] = -1e9
    return int(notas.argmax())
""",
        ),
        (
            "sinal_trocado",
            """
def analogia(E, a, b, c):
    alvo = E[b] - E[a] + E[c]
    notas = E @ alvo / np.linalg.norm(E, axis=1)
    for x in (a, b, c):
        notas[x] = -np.inf
    return notas.argmax()
""",
        ),
        (
            "sinal_trocado",
            """
def analogia(E, a, b, c):
    alvo = E[a] + E[b] - E[c]
    notas = E @ alvo / np.linalg.norm(E, axis=1)
    notas[[a, b, c]] = -np.inf
    return notas.argmax()
""",
        ),
        (
            "produto_interno",
            """
def analogia(E, a, b, c):
    alvo = E[a] - E[b] + E[c]
    melhor, nota = None, -np.inf
    for j, v in enumerate(E):
        if j not in (a, b, c) and v @ alvo > nota:
            melhor, nota = j, v @ alvo
    return melhor
""",
        ),
        (
            "distancia_euclidiana",
            """
def analogia(E, a, b, c):
    alvo = E[a] - E[b] + E[c]
    d = np.linalg.norm(E - alvo, axis=1)
    d[[a, b, c]] = np.inf
    return int(d.argmin())
""",
        ),
        (
            "normalizou_antes",
            """
def analogia(E, a, b, c):
    U = E / np.linalg.norm(E, axis=1)[:, None]
    notas = U @ (U[a] - U[b] + U[c])
    notas[[a, b, c]] = -np.inf
    return int(notas.argmax())
""",
        ),
        (
            "mais_longe",
            """
def analogia(E, a, b, c):
    alvo = E[a] - E[b] + E[c]
    notas = E @ alvo / np.linalg.norm(E, axis=1)
    notas[[a, b, c]] = np.inf
    return int(np.argmin(notas))
""",
        ),
        (
            "tipo",
            """
def analogia(E, a, b, c):
    alvo = E[a] - E[b] + E[c]
    notas = E @ alvo / np.linalg.norm(E, axis=1)
    notas[[a, b, c]] = -np.inf
    return str(notas.argmax())
""",
        ),
    ],
    "h0": [
        (
            "posicao_pelo_id",
            """
def h0(wte, wpe, ids):
    return np.stack([wte[i] + wpe[i] for i in ids])
""",
        ),
        (
            "posicao_de_1",
            """
def h0(wte, wpe, ids):
    return np.stack([wte[i] + wpe[p] for p, i in enumerate(ids, start=1)])
""",
        ),
        (
            "sem_posicao",
            """
def h0(wte, wpe, ids):
    return wte.take(ids, axis=0)
""",
        ),
        (
            "posicao_fixa",
            """
def h0(wte, wpe, ids):
    return np.stack([wte[i] + wpe[0] for i in ids])
""",
        ),
        (
            "media",
            """
def h0(wte, wpe, ids):
    return np.mean([wte[ids], wpe[np.arange(len(ids))]], axis=0)
""",
        ),
        (
            "produto",
            """
def h0(wte, wpe, ids):
    return np.multiply(wte[ids], wpe[range(len(ids))])
""",
        ),
        (
            "concatenou",
            """
def h0(wte, wpe, ids):
    return np.hstack([wte[ids], wpe[: len(ids)]])
""",
        ),
        (
            "posicao_invertida",
            """
def h0(wte, wpe, ids):
    n = len(ids)
    return np.stack([wte[i] + wpe[n - 1 - p] for p, i in enumerate(ids)])
""",
        ),
        (
            "escalou",
            """
def h0(wte, wpe, ids):
    d = wte.shape[-1]
    return np.sqrt(d) * wte[ids] + wpe[: len(ids)]
""",
        ),
        (
            "mexeu_na_entrada",
            """
def h0(wte, wpe, ids):
    saida = wpe[: len(ids)]
    saida += wte[ids]
    return saida
""",
        ),
        (
            "truncou",
            """
def h0(wte, wpe, ids):
    saida = np.zeros((len(ids), wte.shape[1]), dtype=int)
    for p, i in enumerate(ids):
        saida[p] = wte[i] + wpe[p]
    return saida
""",
        ),
        (
            "transposto",
            """
def h0(wte, wpe, ids):
    return (wte[ids] + wpe[: len(ids)]).T
""",
        ),
    ],
    "contar": [
        (
            "sem_vieses",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    bloco = 12 * d ** 2 + 4 * d
    total = (V + n_ctx) * d + camadas * bloco + 2 * d
    return total if amarrada else total + V * d
""",
        ),
        (
            "sem_ln_final",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    bloco = 12 * d ** 2 + 13 * d
    return (V + n_ctx) * d + camadas * bloco + (0 if amarrada else V * d)
""",
        ),
        (
            "sem_layernorm",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    bloco = d * 3 * d + 3 * d + d * d + d + d * 4 * d + 4 * d + 4 * d * d + d
    return (V + n_ctx) * d + camadas * bloco + (0 if amarrada else V * d)
""",
        ),
        (
            "layernorm_sem_vies",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    bloco = 12 * d ** 2 + 9 * d + d + d
    return (V + n_ctx) * d + camadas * bloco + d + (0 if amarrada else V * d)
""",
        ),
        (
            "sem_wpe",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    total = V * d + camadas * (12 * d ** 2 + 13 * d) + 2 * d
    return total if amarrada else total + V * d
""",
        ),
        (
            "conta_a_cabeca",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    return 2 * V * d + n_ctx * d + camadas * (12 * d ** 2 + 13 * d) + 2 * d
""",
        ),
        (
            "ignora_a_solta",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    return V * d + n_ctx * d + camadas * (12 * d ** 2 + 13 * d) + 2 * d
""",
        ),
        (
            "mlp_so_ida",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    bloco = 4 * d * d + 4 * d + 4 * d * d + 4 * d + 4 * d
    return (V + n_ctx) * d + camadas * bloco + 2 * d + (0 if amarrada else V * d)
""",
        ),
        (
            "em_bytes",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    n = (V + n_ctx) * d + camadas * (12 * d ** 2 + 13 * d) + 2 * d
    if not amarrada:
        n += V * d
    return n * 4
""",
        ),
        (
            "um_bloco_so",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    n = (V + n_ctx) * d + (12 * d ** 2 + 13 * d) + 2 * d
    return n if amarrada else n + V * d
""",
        ),
        (
            "?",
            """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    n = (V + n_ctx) * d + camadas * (16 * d ** 2 + 13 * d) + 2 * d
    return n if amarrada else n + V * d
""",
        ),
    ],
    "amarrada": [
        (
            "compara_valores",
            """
def amarrada(entrada, saida):
    return bool((entrada.shape == saida.shape) and (entrada == saida).all())
""",
        ),
        (
            "compara_valores",
            """
def amarrada(entrada, saida):
    for s in (saida, saida.T):
        if s.shape == entrada.shape and np.allclose(entrada, s):
            return True
    return False
""",
        ),
        (
            "mesmo_objeto",
            """
def amarrada(entrada, saida):
    return id(entrada) == id(saida)
""",
        ),
        (
            "so_a_forma",
            """
def amarrada(entrada, saida):
    return sorted(entrada.shape) == sorted(saida.shape)
""",
        ),
        (
            "um_numero_so",
            """
def amarrada(entrada, saida):
    return float(entrada.flat[0]) == float(saida.flat[0])
""",
        ),
        (
            "ao_contrario",
            """
def amarrada(entrada, saida):
    return entrada.ctypes.data != saida.ctypes.data
""",
        ),
        (
            "mexeu_na_entrada",
            """
def amarrada(entrada, saida):
    antes = saida[0, 0]
    entrada[0, 0] += 1
    return bool(saida[0, 0] != antes)
""",
        ),
        (
            "constante",
            """
def amarrada(entrada, saida):
    return entrada.dtype == saida.dtype
""",
        ),
    ],
    "senoides": [
        (
            "seno_e_cosseno_trocados",
            """
def senoides(n, d, base):
    t = np.zeros((n, d))
    for p in range(n):
        for i in range(0, d, 2):
            t[p, i] = np.cos(p / base ** (i / d))
            t[p, i + 1] = np.sin(p / base ** (i / d))
    return t
""",
        ),
        (
            "metades",
            """
def senoides(n, d, base):
    t = np.zeros((n, d))
    for p in range(n):
        for i in range(d // 2):
            t[p, i] = np.sin(p / base ** (2 * i / d))
            t[p, i + d // 2] = np.cos(p / base ** (2 * i / d))
    return t
""",
        ),
        (
            "uma_frequencia_por_coluna",
            """
def senoides(n, d, base):
    t = np.zeros((n, d))
    for p in range(n):
        for j in range(d):
            f = np.sin if j % 2 == 0 else np.cos
            t[p, j] = f(p / base ** (j / d))
    return t
""",
        ),
        (
            "expoente_sem_o_2",
            """
def senoides(n, d, base):
    t = np.zeros((n, d))
    for i in range(d // 2):
        w = 1 / base ** (i / d)
        t[:, 2 * i] = np.sin(np.arange(n) * w)
        t[:, 2 * i + 1] = np.cos(np.arange(n) * w)
    return t
""",
        ),
        (
            "expoente_dobrado",
            """
def senoides(n, d, base):
    t = np.zeros((n, d))
    for i in range(0, d, 2):
        w = 1 / base ** (2 * i / d)
        t[:, i] = np.sin(np.arange(n) * w)
        t[:, i + 1] = np.cos(np.arange(n) * w)
    return t
""",
        ),
        (
            "posicao_de_1",
            """
def senoides(n, d, base):
    linhas = []
    for p in range(1, n + 1):
        linha = []
        for i in range(0, d, 2):
            linha += [np.sin(p / base ** (i / d)), np.cos(p / base ** (i / d))]
        linhas.append(linha)
    return linhas
""",
        ),
        (
            "multiplicou",
            """
def senoides(n, d, base):
    t = np.zeros((n, d))
    for i in range(0, d, 2):
        t[:, i] = np.sin(np.arange(n) * base ** (i / d))
        t[:, i + 1] = np.cos(np.arange(n) * base ** (i / d))
    return t
""",
        ),
        (
            "ignorou_a_base",
            """
def senoides(n, d, base):
    div = np.exp(np.arange(0, d, 2) * -(np.log(10000.0) / d))
    t = np.zeros((n, d))
    t[:, 0::2] = np.sin(np.arange(n)[:, None] * div)
    t[:, 1::2] = np.cos(np.arange(n)[:, None] * div)
    return t
""",
        ),
        (
            "so_senos",
            """
def senoides(n, d, base):
    w = base ** (-np.arange(0, d, 2) / d)
    return np.repeat(np.sin(np.outer(np.arange(n), w)), 2, axis=1)
""",
        ),
        (
            "truncou",
            """
def senoides(n, d, base):
    t = np.zeros((n, d), dtype=int)
    w = base ** (-np.arange(0, d, 2) / d)
    t[:, 0::2] = np.sin(np.outer(np.arange(n), w))
    t[:, 1::2] = np.cos(np.outer(np.arange(n), w))
    return t
""",
        ),
    ],
    "deslocamento": [
        (
            "transposta",
            """
def matriz_de_deslocamento(k, d, base):
    M = np.zeros((d, d))
    for i in range(d // 2):
        t = k / base ** (2 * i / d)
        M[2 * i, 2 * i], M[2 * i, 2 * i + 1] = np.cos(t), -np.sin(t)
        M[2 * i + 1, 2 * i], M[2 * i + 1, 2 * i + 1] = np.sin(t), np.cos(t)
    return M
""",
        ),
        (
            "metades",
            """
def matriz_de_deslocamento(k, d, base):
    m = d // 2
    M = np.zeros((d, d))
    for i in range(m):
        t = k / base ** (2 * i / d)
        M[i, i] = M[i + m, i + m] = np.cos(t)
        M[i, i + m], M[i + m, i] = np.sin(t), -np.sin(t)
    return M
""",
        ),
        (
            "mesma_frequencia",
            """
def matriz_de_deslocamento(k, d, base):
    M = np.zeros((d, d))
    for i in range(0, d, 2):
        M[i:i+2, i:i+2] = [[np.cos(k), np.sin(k)], [-np.sin(k), np.cos(k)]]
    return M
""",
        ),
        (
            "ignorou_k",
            """
def matriz_de_deslocamento(k, d, base):
    M = np.zeros((d, d))
    for i in range(0, d, 2):
        w = base ** (-i / d)
        M[i:i+2, i:i+2] = [[np.cos(w), np.sin(w)], [-np.sin(w), np.cos(w)]]
    return M
""",
        ),
        (
            "expoente_sem_o_2",
            """
def matriz_de_deslocamento(k, d, base):
    M = np.zeros((d, d))
    for i in range(d // 2):
        t = k * base ** (-i / d)
        M[2*i:2*i+2, 2*i:2*i+2] = [[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]
    return M
""",
        ),
        (
            "reflexao",
            """
def matriz_de_deslocamento(k, d, base):
    M = np.zeros((d, d))
    for i in range(0, d, 2):
        t = k * base ** (-i / d)
        M[i:i+2, i:i+2] = [[np.cos(t), np.sin(t)], [np.sin(t), np.cos(t)]]
    return M
""",
        ),
        (
            "so_a_diagonal",
            """
def matriz_de_deslocamento(k, d, base):
    M = np.eye(d)
    for j in range(d):
        M[j, j] = np.cos(k / base ** ((j - j % 2) / d))
    return M
""",
        ),
        (
            "identidade",
            """
def matriz_de_deslocamento(k, d, base):
    return [[1.0 if i == j else 0.0 for j in range(d)] for i in range(d)]
""",
        ),
        (
            "forma",
            """
def matriz_de_deslocamento(k, d, base):
    t = k * base ** (-np.arange(0, d, 2) / d)
    return np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
""",
        ),
    ],
    "atencao": [
        (
            "sem_escala",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T
    p = np.exp(n - n.max(1)[:, None])
    return p / p.sum(1)[:, None] @ (x @ Wv)
""",
        ),
        (
            "escala_sem_raiz",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T / x.shape[-1]
    p = np.exp(n - n.max(1)[:, None])
    return p / p.sum(1)[:, None] @ (x @ Wv)
""",
        ),
        (
            "eixo_do_softmax",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[-1])
    p = np.exp(n - n.max(axis=0))
    return p / p.sum(axis=0) @ (x @ Wv)
""",
        ),
        (
            "softmax_de_tudo",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[-1])
    p = np.exp(n - n.max())
    return p / p.sum() @ (x @ Wv)
""",
        ),
        (
            "sem_softmax",
            """
def atencao(x, Wq, Wk, Wv):
    return (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[-1]) @ (x @ Wv)
""",
        ),
        (
            "causal",
            """
def atencao(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    saida = []
    for t in range(len(x)):
        n = k[: t + 1] @ q[t] / np.sqrt(x.shape[1])
        p = np.exp(n - n.max())
        saida.append(p / p.sum() @ v[: t + 1])
    return np.array(saida)
""",
        ),
        (
            "notas_transpostas",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wk) @ (x @ Wq).T / np.sqrt(x.shape[-1])
    p = np.exp(n - n.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True) @ (x @ Wv)
""",
        ),
        (
            "sem_v",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[-1])
    p = np.exp(n - n.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True) @ x
""",
        ),
        (
            "pesos_transpostos",
            """
def atencao(x, Wq, Wk, Wv):
    q, k, v = (np.einsum("td,ed->te", x, W) for W in (Wq, Wk, Wv))
    n = q @ k.T / np.sqrt(x.shape[-1])
    p = np.exp(n - n.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True) @ v
""",
        ),
        (
            "devolveu_os_pesos",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[-1])
    p = np.exp(n - n.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)
""",
        ),
        (
            "estouro",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[-1])
    p = np.exp(n)
    return p / p.sum(1, keepdims=True) @ (x @ Wv)
""",
        ),
        (
            "?",
            """
def atencao(x, Wq, Wk, Wv):
    n = (x @ Wq) @ (x @ Wk).T / np.sqrt(x.shape[-1])
    p = 1 / (1 + np.exp(-np.clip(n, -50, 50)))
    return p @ (x @ Wv)
""",
        ),
    ],
    "rope_intercalado": [
        (
            "outro_pareamento",
            """
def rope_intercalado(x, base):
    T, d = x.shape
    w = base ** (-np.arange(0, d, 2) / d)
    ang = np.concatenate([np.outer(np.arange(T), w)] * 2, axis=1)
    virado = np.concatenate([-x[:, d // 2:], x[:, :d // 2]], axis=1)
    return x * np.cos(ang) + virado * np.sin(ang)
""",
        ),
        (
            "sentido_contrario",
            """
def rope_intercalado(x, base):
    y = np.zeros(x.shape)
    for t in range(len(x)):
        for i in range(0, x.shape[1], 2):
            a = t / base ** (i / x.shape[1])
            y[t, i] = x[t, i] * np.cos(a) + x[t, i + 1] * np.sin(a)
            y[t, i + 1] = -x[t, i] * np.sin(a) + x[t, i + 1] * np.cos(a)
    return y
""",
        ),
        (
            "posicao_de_1",
            """
def rope_intercalado(x, base):
    y = np.zeros(x.shape)
    for t in range(len(x)):
        for i in range(0, x.shape[1], 2):
            a = (t + 1) / base ** (i / x.shape[1])
            y[t, i] = x[t, i] * np.cos(a) - x[t, i + 1] * np.sin(a)
            y[t, i + 1] = x[t, i] * np.sin(a) + x[t, i + 1] * np.cos(a)
    return y
""",
        ),
        (
            "reaproveitou",
            """
def rope_intercalado(x, base):
    y = x.copy()
    for t in range(len(y)):
        for i in range(0, y.shape[1], 2):
            a = t / base ** (i / y.shape[1])
            y[t, i] = y[t, i] * np.cos(a) - y[t, i + 1] * np.sin(a)
            y[t, i + 1] = y[t, i] * np.sin(a) + y[t, i + 1] * np.cos(a)
    return y
""",
        ),
        (
            "mesma_frequencia",
            """
def rope_intercalado(x, base):
    y = np.zeros(x.shape)
    for t in range(len(x)):
        R = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
        for i in range(0, x.shape[1], 2):
            y[t, i:i + 2] = R @ x[t, i:i + 2]
    return y
""",
        ),
        (
            "expoente_sem_o_2",
            """
def rope_intercalado(x, base):
    y = np.zeros(x.shape)
    d = x.shape[1]
    for t in range(len(x)):
        for i in range(d // 2):
            a = t / base ** (i / d)
            R = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
            y[t, 2 * i:2 * i + 2] = R @ x[t, 2 * i:2 * i + 2]
    return y
""",
        ),
        (
            "tabelas_misturadas",
            """
def rope_intercalado(x, base):
    T, d = x.shape
    ang = np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d))
    ang = np.concatenate([ang, ang], axis=1)
    virado = np.empty(x.shape)
    virado[:, 0::2], virado[:, 1::2] = -x[:, 1::2], x[:, 0::2]
    return x * np.cos(ang) + virado * np.sin(ang)
""",
        ),
        (
            "ignorou_a_base",
            """
def rope_intercalado(x, base):
    T, d = x.shape
    w = np.array([10000 ** (-i / d) for i in range(0, d, 2)])
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(np.arange(T), w))
    y = np.empty(x.shape)
    y[:, 0::2], y[:, 1::2] = z.real, z.imag
    return y
""",
        ),
        (
            "mexeu_na_entrada",
            """
def rope_intercalado(x, base):
    T, d = x.shape
    ang = np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d))
    a = x[:, 0::2].copy()
    b = x[:, 1::2].copy()
    x[:, 0::2] = a * np.cos(ang) - b * np.sin(ang)
    x[:, 1::2] = a * np.sin(ang) + b * np.cos(ang)
    return x
""",
        ),
    ],
    "rope_metades": [
        (
            "outro_pareamento",
            """
def rope_metades(x, base):
    T, d = x.shape
    w = base ** (-np.arange(0, d, 2) / d)
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(np.arange(T), w))
    return np.stack([z.real, z.imag], -1).reshape(T, d)
""",
        ),
        (
            "sentido_contrario",
            """
def rope_metades(x, base):
    T, d = x.shape
    ang = np.tile(np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d)), 2)
    virado = np.concatenate([x[:, d // 2:], -x[:, :d // 2]], axis=1)
    return x * np.cos(ang) + virado * np.sin(ang)
""",
        ),
        (
            "tabelas_misturadas",
            """
def rope_metades(x, base):
    T, d = x.shape
    ang = np.repeat(np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d)), 2, axis=1)
    virado = np.concatenate([-x[:, d // 2:], x[:, :d // 2]], axis=1)
    return x * np.cos(ang) + virado * np.sin(ang)
""",
        ),
        (
            "posicao_de_1",
            """
def rope_metades(x, base):
    T, d = x.shape
    ang = np.tile(np.outer(np.arange(1, T + 1), base ** (-np.arange(0, d, 2) / d)), 2)
    virado = np.concatenate([-x[:, d // 2:], x[:, :d // 2]], axis=1)
    return x * np.cos(ang) + virado * np.sin(ang)
""",
        ),
        (
            "reaproveitou",
            """
def rope_metades(x, base):
    y = x.copy()
    m = y.shape[1] // 2
    for t in range(len(y)):
        for i in range(m):
            a = t * base ** (-2 * i / y.shape[1])
            y[t, i] = y[t, i] * np.cos(a) - y[t, i + m] * np.sin(a)
            y[t, i + m] = y[t, i] * np.sin(a) + y[t, i + m] * np.cos(a)
    return y
""",
        ),
        (
            "somou",
            """
def rope_metades(x, base):
    T, d = x.shape
    ang = np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d))
    pe = np.empty((T, d))
    pe[:, 0::2], pe[:, 1::2] = np.sin(ang), np.cos(ang)
    return x + pe
""",
        ),
        (
            "seno_e_cosseno_trocados",
            """
def rope_metades(x, base):
    T, d = x.shape
    ang = np.tile(np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d)), 2)
    virado = np.concatenate([-x[:, d // 2:], x[:, :d // 2]], axis=1)
    return x * np.sin(ang) + virado * np.cos(ang)
""",
        ),
        (
            "sem_girar",
            """
def rope_metades(x, base):
    return x.copy()
""",
        ),
    ],
    "distancia": [
        (
            "so_a_principal",
            """
def so_depende_da_distancia(S, tol):
    d = [S[i, i] for i in range(len(S))]
    return max(d) - min(d) <= tol
""",
        ),
        (
            "simetria",
            """
def so_depende_da_distancia(S, tol):
    return bool(np.allclose(S, S.T, rtol=0, atol=tol))
""",
        ),
        (
            "antidiagonais",
            """
def so_depende_da_distancia(S, tol):
    T = len(S)
    for m in range(T):
        for n in range(T - 1):
            if m + 1 < T and abs(S[m, n + 1] - S[m + 1, n]) > tol:
                return False
    return True
""",
        ),
        (
            "sem_tolerancia",
            """
def so_depende_da_distancia(S, tol):
    T = len(S)
    return all(S[m, n] == S[m + 1, n + 1] for m in range(T - 1) for n in range(T - 1))
""",
        ),
        (
            "linhas_iguais",
            """
def so_depende_da_distancia(S, tol):
    return all(abs(S[m, n] - S[0, n]) <= tol for m in range(len(S)) for n in range(len(S)))
""",
        ),
        (
            "so_as_duas_primeiras",
            """
def so_depende_da_distancia(S, tol):
    for n in range(len(S) - 1):
        if abs(S[0, n] - S[1, n + 1]) > tol:
            return False
    return True
""",
        ),
        (
            "metade_de_cima",
            """
def so_depende_da_distancia(S, tol):
    T = len(S)
    for k in range(T):
        d = [S[i, i + k] for i in range(T - k)]
        if max(d) - min(d) > tol:
            return False
    return True
""",
        ),
        (
            "ao_contrario",
            """
def so_depende_da_distancia(S, tol):
    return bool(np.abs(S[1:, 1:] - S[:-1, :-1]).max() > tol)
""",
        ),
        (
            "exige_simetria",
            """
def so_depende_da_distancia(S, tol):
    T = len(S)
    por = {}
    for m in range(T):
        for n in range(T):
            por.setdefault(abs(m - n), []).append(S[m, n])
    return all(max(v) - min(v) <= tol for v in por.values())
""",
        ),
    ],
    "interpolar": [
        (
            "esticou",
            """
def angulos_interpolados(T, treino, d, base):
    s = T / treino if T > treino else 1
    return np.outer(np.arange(T) * s, base ** (-np.arange(0, d, 2) / d))
""",
        ),
        (
            "sempre",
            """
def angulos_interpolados(T, treino, d, base):
    pos = np.linspace(0, treino, T, endpoint=False)
    return np.outer(pos, base ** (-np.arange(0, d, 2) / d))
""",
        ),
        (
            "nao_interpolou",
            """
def angulos_interpolados(T, treino, d, base):
    return np.array([[p / base ** (2 * i / d) for i in range(d // 2)] for p in range(T)])
""",
        ),
        (
            "cortou",
            """
def angulos_interpolados(T, treino, d, base):
    pos = np.clip(np.arange(T), 0, treino - 1)
    return pos[:, None] * base ** (-np.arange(0, d, 2) / d)
""",
        ),
        (
            "deu_a_volta",
            """
def angulos_interpolados(T, treino, d, base):
    return np.array([[(p % treino) / base ** (i / d) for i in range(0, d, 2)] for p in range(T)])
""",
        ),
        (
            "arredondou",
            """
def angulos_interpolados(T, treino, d, base):
    pos = np.arange(T) * treino // T if T > treino else np.arange(T)
    return pos[:, None] / base ** (np.arange(0, d, 2) / d)
""",
        ),
        (
            "pontas",
            """
def angulos_interpolados(T, treino, d, base):
    pos = np.linspace(0, treino - 1, T) if T > treino else np.arange(T)
    return pos[:, None] / base ** (np.arange(0, d, 2) / d)
""",
        ),
        (
            "ntk",
            """
def angulos_interpolados(T, treino, d, base):
    if T > treino and d > 2:
        base = base * (T / treino) ** (d / (d - 2))
    elif T > treino:
        base = base * (T / treino) ** d
    return np.arange(T)[:, None] / base ** (np.arange(0, d, 2) / d)
""",
        ),
        (
            "duas_vezes",
            """
def angulos_interpolados(T, treino, d, base):
    s = max(1, T / treino)
    pos = np.arange(T) / s
    w = base ** (-np.arange(0, d, 2) / d) / s
    return np.outer(pos, w)
""",
        ),
        (
            "transposto",
            """
def angulos_interpolados(T, treino, d, base):
    pos = np.arange(T) * min(1, treino / T)
    return np.outer(base ** (-np.arange(0, d, 2) / d), pos)
""",
        ),
    ],
}

CERTOS = {
    "consulta": [
        """
def consulta_onehot(ids, E):
    O = np.eye(len(E))[ids]
    return O, O @ E
""",
        """
def consulta_onehot(ids, E):
    O = (np.asarray(ids)[:, None] == np.arange(E.shape[0])[None, :]).astype(np.float32)
    return [O, np.einsum("nv,vd->nd", O, E)]
""",
        """
def consulta_onehot(ids, E):
    O = [[1 if j == i else 0 for j in range(len(E))] for i in ids]
    linhas = []
    for linha in O:
        soma = np.zeros(E.shape[1])
        for x, v in zip(linha, E):
            soma += x * v
        linhas.append(soma)
    return O, linhas
""",
    ],
    "cosseno": [
        """
def cosseno(a, b):
    num = den_a = den_b = 0.0
    for x, y in zip(a, b):
        num += x * y
        den_a += x * x
        den_b += y * y
    if den_a == 0 or den_b == 0:
        return 0
    return num / (den_a ** 0.5 * den_b ** 0.5)
""",
        """
def cosseno(a, b):
    a, b = a.astype(np.float32), b.astype(np.float32)
    na, nb = np.linalg.norm(a), np.linalg.norm(b)
    return np.float32(0) if na * nb == 0 else (a / na) @ (b / nb)
""",
        """
def cosseno(a, b):
    n = np.sqrt(np.einsum("i,i", a, a) * np.einsum("i,i", b, b))
    return np.divide(a @ b, n, out=np.zeros(()), where=n > 0)
""",
    ],
    "vizinhos": [
        """
def vizinhos(E, i, k):
    n = np.linalg.norm(E, axis=1)
    notas = (E @ E[i] / (n * n[i])).round(9)
    return sorted((j for j in range(len(E)) if j != i), key=lambda j: (-notas[j], j))[:k]
""",
        """
def vizinhos(E, i, k):
    U = E / np.sqrt(np.einsum("vd,vd->v", E, E))[:, None]
    notas = (U @ U[i]).round(8)
    ordem = np.lexsort((np.arange(len(E)), -notas))
    return ordem[ordem != i][:k]
""",
        """
def vizinhos(E, i, k):
    E = E.copy()
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    notas = np.round(E @ E[i], 7)
    notas[i] = -5
    achados = []
    for _ in range(k):
        j = int(notas.argmax())
        achados.append(j)
        notas[j] = -5
    return tuple(achados)
""",
    ],
    "analogia": [
        """
def analogia(E, a, b, c):
    alvo = E[a] - E[b] + E[c]
    melhor, nota = -1, -9.0
    for j in range(len(E)):
        if j in (a, b, c):
            continue
        cos = E[j] @ alvo / (np.linalg.norm(E[j]) * np.linalg.norm(alvo))
        if cos > nota:
            melhor, nota = j, cos
    return melhor
""",
        """
def analogia(E, a, b, c):
    alvo = E[a] + E[c] - E[b]
    notas = np.einsum("vd,d->v", E / np.linalg.norm(E, axis=1)[:, None], alvo)
    ordem = np.argsort(notas)[::-1]
    return next(j for j in ordem if j not in {a, b, c})
""",
        """
def analogia(E, a, b, c):
    E = E.astype(np.float32)
    alvo = E[a] - E[b] + E[c]
    notas = E @ alvo / np.linalg.norm(E, axis=1)
    notas = np.delete(notas, [a, b, c])
    resto = np.delete(np.arange(len(E)), [a, b, c])
    return resto[notas.argmax()]
""",
    ],
    "h0": [
        """
def h0(wte, wpe, ids):
    saida = np.empty((len(ids), wte.shape[1]))
    for t, i in enumerate(ids):
        saida[t] = wte[i] + wpe[t]
    return saida
""",
        """
def h0(wte, wpe, ids):
    x = wte[ids]
    x += wpe[np.arange(len(ids))]
    return x
""",
        """
def h0(wte, wpe, ids):
    return np.eye(len(wte), dtype=np.float32)[ids] @ wte + wpe[: len(ids)].astype(np.float32)
""",
    ],
    "contar": [
        """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    return (V * (1 if amarrada else 2) + n_ctx) * d + camadas * (12 * d * d + 13 * d) + 2 * d
""",
        """
def contar_parametros(V, n_ctx, d, camadas, amarrada):
    formas = [(V, d), (n_ctx, d), (d,), (d,)]
    for _ in range(camadas):
        formas += [(d,)] * 4 + [(d, 3 * d), (3 * d,), (d, d), (d,)]
        formas += [(d, 4 * d), (4 * d,), (4 * d, d), (d,)]
    if not amarrada:
        formas.append((V, d))
    return sum(int(np.prod(f)) for f in formas)
""",
    ],
    "amarrada": [
        """
def amarrada(entrada, saida):
    return np.may_share_memory(entrada, saida)
""",
        """
def amarrada(entrada, saida):
    return entrada.__array_interface__["data"][0] == saida.__array_interface__["data"][0]
""",
        """
def amarrada(entrada, saida):
    guardado = entrada[0, 0]
    antes = saida[0, 0]
    entrada[0, 0] = antes + 1
    viu = saida[0, 0] == antes + 1
    entrada[0, 0] = guardado
    return bool(viu)
""",
    ],
    "senoides": [
        """
import math
def senoides(n, d, base):
    t = []
    for p in range(n):
        linha = []
        for i in range(d // 2):
            a = p / base ** (2 * i / d)
            linha += [math.sin(a), math.cos(a)]
        t.append(linha)
    return t
""",
        """
def senoides(n, d, base):
    w = np.exp(-np.log(base) * np.arange(0, d, 2) / d)
    a = np.einsum("n,i->ni", np.arange(n), w)
    return np.stack([np.sin(a), np.cos(a)], axis=-1).reshape(n, d).astype(np.float32)
""",
        """
def senoides(n, d, base):
    z = np.exp(1j * np.arange(n)[:, None] * base ** (-np.arange(0, d, 2) / d))
    t = np.zeros((n, d))
    t[:, ::2] += z.imag
    t[:, 1::2] += z.real
    return t
""",
    ],
    "deslocamento": [
        """
def matriz_de_deslocamento(k, d, base):
    M = np.zeros((d, d))
    w = k * base ** (-np.arange(0, d, 2) / d)
    p = np.arange(0, d, 2)
    M[p, p] = M[p + 1, p + 1] = np.cos(w)
    M[p, p + 1] = np.sin(w)
    M[p + 1, p] = -np.sin(w)
    return M
""",
        """
def matriz_de_deslocamento(k, d, base):
    def pe(pos):
        a = pos[:, None] * base ** (-np.arange(0, d, 2) / d)
        return np.stack([np.sin(a), np.cos(a)], -1).reshape(len(pos), d)
    # Não pela fórmula: resolvida, por mínimos quadrados, de muitas posições.
    pos = np.arange(0, 40000, 37.0)
    X, *_ = np.linalg.lstsq(pe(pos), pe(pos + k), rcond=None)
    return X.T
""",
    ],
    "atencao": [
        """
def atencao(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    T, d = x.shape
    saida = np.zeros((T, d))
    for m in range(T):
        notas = [q[m] @ k[n] / d ** 0.5 for n in range(T)]
        maior = max(notas)
        pesos = [np.exp(s - maior) for s in notas]
        for n in range(T):
            saida[m] += pesos[n] / sum(pesos) * v[n]
    return saida
""",
        """
import torch
def atencao(x, Wq, Wk, Wv):
    q, k, v = (torch.tensor(x @ W)[None] for W in (Wq, Wk, Wv))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)[0]
""",
        """
def atencao(x, Wq, Wk, Wv):
    notas = np.einsum("md,de,nf,fe->mn", x, Wq, x, Wk) / np.sqrt(x.shape[1])
    notas -= notas.max(-1, keepdims=True)
    pesos = np.exp(notas)
    pesos /= pesos.sum(-1, keepdims=True)
    return np.einsum("mn,nd,de->me", pesos, x, Wv)
""",
    ],
    "rope_intercalado": [
        """
def rope_intercalado(x, base):
    T, d = x.shape
    w = base ** (-np.arange(0, d, 2) / d)
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(np.arange(T), w))
    return np.stack([z.real, z.imag], -1).reshape(T, d)
""",
        """
def rope_intercalado(x, base):
    y = np.zeros(x.shape)
    d = x.shape[1]
    for t in range(len(x)):
        R = np.zeros((d, d))
        for i in range(0, d, 2):
            a = t * base ** (-i / d)
            R[i:i+2, i:i+2] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
        y[t] = R @ x[t]
    return y
""",
        """
import torch
def rope_intercalado(x, base):
    x = torch.tensor(x, dtype=torch.float32)
    T, d = x.shape
    ang = torch.outer(torch.arange(T), base ** (-torch.arange(0, d, 2) / d))
    a, b = x[:, 0::2].clone(), x[:, 1::2].clone()
    x[:, 0::2] = a * ang.cos() - b * ang.sin()
    x[:, 1::2] = a * ang.sin() + b * ang.cos()
    return x
""",
    ],
    "rope_metades": [
        """
def rope_metades(x, base):
    T, d = x.shape
    ang = np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d))
    cos, sen = np.tile(np.cos(ang), 2), np.tile(np.sin(ang), 2)
    virado = np.concatenate([-x[:, d // 2:], x[:, :d // 2]], axis=-1)
    return x * cos + virado * sen
""",
        """
def rope_metades(x, base):
    y = x.copy()
    m = x.shape[1] // 2
    for t in range(len(x)):
        for i in range(m):
            a = t * base ** (-2 * i / x.shape[1])
            y[t, i], y[t, i + m] = (y[t, i] * np.cos(a) - y[t, i + m] * np.sin(a),
                                    y[t, i] * np.sin(a) + y[t, i + m] * np.cos(a))
    return y
""",
        """
def rope_metades(x, base):
    T, d = x.shape
    z = x[:, : d // 2] + 1j * x[:, d // 2 :]
    z *= np.exp(1j * np.arange(T)[:, None] * base ** (-2 * np.arange(d // 2) / d))
    return np.hstack([z.real, z.imag]).astype(np.float32)
""",
    ],
    "distancia": [
        """
def so_depende_da_distancia(S, tol):
    T = len(S)
    for m in range(T - 1):
        for n in range(T - 1):
            if abs(S[m, n] - S[m + 1, n + 1]) > tol:
                return False
    return True
""",
        """
def so_depende_da_distancia(S, tol):
    return np.allclose(S[1:, 1:], S[:-1, :-1], rtol=0, atol=tol)
""",
        """
def so_depende_da_distancia(S, tol):
    T = len(S)
    i = np.arange(T)
    quanto = i[None, :] - i[:, None]
    return np.all([S[quanto == k].max() - S[quanto == k].min() < tol for k in range(1 - T, T)])
""",
    ],
    "interpolar": [
        """
def angulos_interpolados(T, treino, d, base):
    s = max(T / treino, 1)
    return [[p / s / base ** (2 * i / d) for i in range(d // 2)] for p in range(T)]
""",
        """
def angulos_interpolados(T, treino, d, base):
    w = base ** (-np.arange(0, d, 2) / d)
    if T > treino:
        w = w * treino / T
    return np.einsum("t,i->ti", np.arange(T), w)
""",
        """
def angulos_interpolados(T, treino, d, base):
    pos = np.arange(T, dtype=np.float32)
    if T > treino:
        pos *= treino / T
    return pos[:, None] * (base ** (-np.arange(0, d, 2) / d)).astype(np.float32)
""",
    ],
}
