"""Apostila 02 · Embeddings: o que há dentro de wte e wpe.

O que você vai ver: ids que não significam nada, vetores que significam, a analogia
rei − homem + mulher com e sem as palavras de entrada, posições aprendidas, a soma que entra
no modelo e a prova de que entrada e saída são a mesma matriz. Um banner por seção da apostila.

Quanto demora: cerca de 6 s em dois núcleos, 10 s num só (mais o preparo do modelo, na primeira vez).
Como rodar:    python lab/02_embeddings.py                        tudo
               python lab/02_embeddings.py --secao 2 --palavra dog
               python lab/02_embeddings.py --analogia bigger big small
O que fica:    outputs/02_embeddings/ (relatorio.md, tabelas em CSV, figuras, resultado.json)
"""

# %% Botões: o que dá para mexer sem ler o resto
QUANTOS_VIZINHOS = 10  # de 1 a 100; --top muda
QUANTOS_NUMEROS = 12  # quantas coordenadas de um vetor mostrar
PARES_AO_ACASO = 20_000  # pares sorteados para os histogramas
SEMENTE = 2  # dos sorteios; a mesma semente dá as mesmas tabelas
FRASES = ("O Brasil é gigante", "The cat sat on the mat")
SECOES = {
    1: "O problema: inteiros não têm significado",
    2: "A ideia: dar coordenadas às palavras",
    3: "Na prática: a matriz é uma tabela de consulta",
    4: "O segundo embedding: posição",
    5: "Juntando: a entrada real do modelo",
    6: "A amarração final: weight tying",
    7: "O código",
    8: "No laboratório",
}

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula, inteiro_entre


def opcoes(p):
    p.add_argument(
        "--palavra", action="append", help="vizinhos e vetor dela, seções 2 e 3 (repete)"
    )
    p.add_argument("--analogia", nargs=3, metavar=("A", "B", "C"), help="calcula A − B + C")
    p.add_argument(
        "--top", type=inteiro_entre(1, 100), default=QUANTOS_VIZINHOS, help="quantos vizinhos"
    )
    p.add_argument("--sem-espaco", action="store_true", help="usa a palavra sem o espaço da frente")


aula = Aula("02_embeddings", __doc__, SECOES, opcoes)

from nucleo.licoes.l02_embeddings_ao_lado import AoLado

# O transformers demora a abrir: um processo ao lado começa já (uma seção sozinha não precisa dele).
lado = AoLado(not aula.args.secao)
aula.no_fim(lado.fechar)

import numpy as np

from nucleo.base.caderno import Conferencia
from nucleo.base.unidades import contado, decimal, inteiro
from nucleo.contas import amarracao, arquitetura, folga, tabela_posicoes, vetores
from nucleo.licoes import l02_embeddings as exp
from nucleo.licoes import l02_embeddings_figuras as fig
from nucleo.modelos import fontes, gpt2_medido, listas, pontas
from nucleo.modelos.tamanhos import TAMANHOS

modelo = aula.abrir_modelo()
tok, wte, V, d = modelo.tokenizador, modelo.wte, modelo.V, modelo.d  # wte: (V, d), linha = token
# O que outra ordem de somas muda num cosseno: o produto soma d parcelas, e cada norma outras d.
FOLGA = folga.soma(3 * d, 1, folga.EPS32)
normas = exp.normas(modelo)  # (V, d) -> (V,): o comprimento de cada linha
divisor = np.where(normas > 0, normas, 1)  # (V,): uma linha nula não aponta para lugar nenhum
palavras = listas.palavras_para(tok)
linha = palavras.linha  # {palavra: id}, as que são um token só
frase = tok.ids(palavras.listas["frase"])[: modelo.n_ctx]  # lista de n ids, o que couber
dono = fontes.dono_da_wpe(modelo)  # quem não tem wpe (RoPE) passa a vez ao mini na seção 4


# %% As perguntas que só a biblioteca responde: vão para o processo ao lado
def duas_pontas(E, S):  # as matrizes de entrada e de saída, (V, d), são uma só? A memória responde
    antes, la = E[0, 0].item(), S[0, 0].item()
    E[0, 0] = antes + 1  # muda um número na entrada…
    mudou = la != S[0, 0].item() == E[0, 0].item()  # …e olha se a saída mudou junto
    E[0, 0] = antes
    mesmo_pedaco = E.untyped_storage().data_ptr() == S.untyped_storage().data_ptr()
    return [E is S, E.data_ptr() == S.data_ptr(), mesmo_pedaco, mudou]


limite = lado.perguntar(pontas.um_a_mais, dono.n_ctx, modelo=dono) if dono else None
passagem = lado.perguntar(pontas.pela_frase, frase, modelo=modelo)
matrizes = lado.perguntar(exp.olhar_as_pontas, duas_pontas, modelo=modelo)
no_meta = lado.perguntar(amarracao.endereco_no_meta)
contadas = {nome: lado.perguntar(arquitetura.contar, t) for nome, t in TAMANHOS.items()}
# O que é "não ter nada a ver": o cosseno de tokens sorteados, e a média entre palavras comuns.
quaisquer, comuns = exp.niveis(modelo, normas, palavras, PARES_AO_ACASO, SEMENTE)
# As palavras de quem está ao teclado são resolvidas já: um engano aparece agora, não no meio.
pedidas, trio = exp.palavras_pedidas(tok, aula.args, aula.diga)
escolhidas = pedidas or [tok.linha(p) for p in palavras.presentes(palavras.listas["vizinhos"])]

# %% 1 · O problema: inteiros não têm significado
if aula.secao(1):
    # Primeiro o tokenizador do curso; depois o do modelo de hoje (se for o GPT-2, a volta é uma só).
    for nome, t in {"gpt2": fontes.tokenizador_gpt2(), modelo.nome: tok}.items():
        for n, texto in enumerate(FRASES, 1):
            aula.quadro(f"1_tokens_{exp.rotulo(nome)}_{n}", exp.tokens_da_frase(t, texto))
    aula.repare(
        "o id é só o número da linha. `Ġ` não é erro: é o espaço, e `Ã©` são os dois bytes de `é`. "
        "Os ids 4899 e 5257 da apostila original são hipotéticos (seção 7)."
    )
    # Trocar as etiquetas dos armários não muda o que há dentro deles.
    e = vetores.embaralhar(wte, tok.ids(FRASES[1]), SEMENTE)
    aula.diga(f"Vocabulário embaralhado: os ids {e.antes} viram {e.depois}.")
    iguais = {"vetores antes e depois": e.diferenca}
    aula.comparar("1_embaralho", "E os vetores que eles buscam?", iguais)
    # One-hot: V casas por token, um único 1. (Se a frase for de um token só, quaisquer ids servem.)
    ids = np.unique(frase) if len(set(frase)) > 1 else np.arange(min(5, V))  # (k,)
    E = np.zeros((len(ids), V), dtype=np.float32)  # (k,) -> (k, V)
    E[np.arange(len(ids)), ids] = 1
    produtos = E @ E.T  # (k, V) @ (V, k) -> (k, k): 1 de cada um consigo, 0 com os outros
    quadrados = np.diag(produtos)  # (k, k) -> (k,)
    d2 = quadrados[:, None] + quadrados - 2 * produtos  # (k, k): ‖a − b‖² = ‖a‖² + ‖b‖² − 2·a·b
    longe = np.sqrt(d2[np.triu_indices(len(ids), 1)], dtype=float)  # (k, k) -> (pares,)
    extremos = {"menor distância": longe.min(), "maior distância": longe.max()}  # só a raiz erra
    raizes = [Conferencia(nome, x, 2**0.5, folga.soma(2, 2)) for nome, x in extremos.items()]
    aula.conferir("1_onehot", "Distância entre one-hots: √2", raizes, lambda x: decimal(x, 6))
    erro = np.abs(E - np.stack([vetores.onehot(i, V) for i in ids])).max()  # (k, V) -> escalar
    aula.comparar("1_onehot_do_nucleo", "Os one-hots do núcleo", {"maior diferença": erro})
    aula.repare("todas as palavras ficam igualmente longe: o one-hot sabe quem é, não o que é.")
    aula.codigo()


# %% 2 · A ideia: dar coordenadas às palavras
def cosseno(a, b):  # a direção de um contra a do outro: 1 se é a mesma, 0 se perpendiculares
    tamanhos = np.sqrt(a @ a) * np.sqrt(b @ b)  # (d,), (d,) -> escalar
    return a @ b / (tamanhos or 1)  # (d,) @ (d,) -> escalar


def contra_todos(v):  # o cosseno de v com cada linha da tabela, todos de uma vez
    return wte @ v / (divisor * (np.sqrt(v @ v) or 1))  # (V, d) @ (d,) -> (V,)


def ranking(notas, k, fora=()):  # os k ids de nota maior, sem os de fora; no empate, o menor id
    ordem = np.argsort(-notas, kind="stable")  # (V,) -> (V,)
    return ordem[~np.isin(ordem, fora)][:k]  # (V,) -> (k,)


if aula.secao(2):
    # Brinquedo: três "palavras" no plano. O cosseno compara direções, não tamanhos.
    a, b, c = np.array([2.0, 1.0]), np.array([4.0, 2.0]), np.array([-1.0, 2.0])
    mesma, outra = decimal(cosseno(a, b)), decimal(cosseno(a, c))
    aula.diga(f"Brinquedo: cos((2,1), (4,2)) = {mesma} e cos((2,1), (−1,2)) = {outra}.")
    grafia = []  # True onde o vizinho é a mesma palavra com outra grafia
    for forma in escolhidas:
        notas = contra_todos(wte[forma.id])  # (d,) -> (V,)
        perto = ranking(notas, aula.args.top, fora=[forma.id])  # (V,) -> (k,)
        quadro, difere = exp.quadro_de_vizinhos(tok, forma, perto, notas[perto])
        aula.quadro(f"2_vizinhos_{exp.rotulo(forma.palavra)}_{forma.id}", quadro)
        grafia += [x == "forma" for x in difere]
    contagem = f"{sum(grafia)} dos {len(grafia)} vizinhos"
    aula.repare(f"{contagem} são a mesma palavra em outra forma (maiúscula, espaço, plural).")
    if escolhidas:
        aula.resultado("vizinhos_que_sao_forma", np.mean(grafia), vizinhos=len(grafia))
        rapidos = vetores.cossenos(wte, wte[forma.id], normas)  # (d,) -> (V,)
        outros = vetores.mais_altos(rapidos, aula.args.top, (forma.id,))  # (k,): um empate troca
        iguais = {"os V cossenos": np.abs(notas - rapidos).max()}
        iguais["em cada lugar"] = np.abs(notas[perto] - notas[outros]).max()  # (k,) -> escalar
        aula.comparar("2_cossenos_da_linha", "A última palavra, pelo núcleo", iguais, FOLGA)
    # Um cosseno só se lê ao lado do nível do acaso, que na wte crua não é zero.
    sorteados, pares = np.sort(quaisquer), []  # (pares,)
    for a, b in palavras.listas["pares"]:
        if a in linha and b in linha:
            c = cosseno(wte[linha[a]], wte[linha[b]])  # (d,), (d,) -> escalar
            abaixo = np.searchsorted(sorteados, c) / len(sorteados)  # a parte do acaso que é menor
            pares.append([f"{a} – {b}", c, abaixo, exp.publicado_no_gpt2(a, b)])
    acaso = quaisquer.mean()  # (pares,) -> escalar
    aula.quadro("2_pares", exp.quadro_dos_pares(pares, acaso, comuns))
    aula.repare(
        f"em média, dois tokens ao acaso dão {decimal(acaso)}; duas palavras comuns, {decimal(comuns)}. "
        "É com isso que se compara um cosseno, e não com 0."
    )
    # Quem mora perto da linha média? ‖w − m‖² = ‖w‖² − 2·w·m + ‖m‖², sem montar outra tabela.
    media = wte.mean(0)  # (V, d) -> (d,)
    longe = np.sqrt(np.maximum(normas**2 - 2 * (wte @ media) + media @ media, 0))  # (V,)
    aula.quadro("2_centro", exp.quadro_do_centro(tok, ranking(-longe, 8), longe))
    aula.repare("no GPT-2 quem mora no centro são tokens-fantasma, como ' SolidGoldMagikarp'.")
    # Brinquedo: dois números por palavra (sexo, realeza). O passo homem → mulher leva rei à rainha.
    homem, mulher, rei = np.array([0, 0]), np.array([1, 0]), np.array([0, 1])
    aula.diga(f"Brinquedo: rei − homem + mulher = {(rei - homem + mulher).tolist()}, a rainha.")
    formas = trio or exp.formas_da_analogia(tok, palavras)
    if formas:
        rei, homem, mulher = entradas = [forma.id for forma in formas]
        alvo = wte[rei] - wte[homem] + wte[mulher]  # (d,): a conta da apostila, linhas cruas
        notas = contra_todos(alvo)  # (d,) -> (V,)
        livre = ranking(notas, aula.args.top)  # (V,) -> (k,): com tudo permitido
        sem = ranking(notas, aula.args.top, fora=entradas)  # (V,) -> (k,): sem as de entrada
        aula.quadro("2_analogia", exp.quadro_da_analogia(tok, formas, livre, sem, notas))
        vence, outra = (f"`{exp.visivel(tok.texto(i))}`" for i in (livre[0], sem[0]))
        recado = f"aqui {outra} vence mesmo com tudo permitido ({decimal(notas[sem[0]])})."
        if livre[0] in entradas:
            recado = (
                f"com tudo permitido vence {vence} ({decimal(notas[livre[0]])}), que é uma das "
                f"entradas; só proibindo as entradas vence {outra} ({decimal(notas[sem[0]])})."
            )
        aula.repare(recado + exp.analogia_publicada(formas))
        rapidos = vetores.vizinhos(wte, alvo, len(sem), normas, tuple(entradas))  # [(id, cosseno)]
        iguais = {"em cada lugar": np.abs(notas[sem] - [c for _, c in rapidos]).max()}
        aula.comparar("2_analogia_do_nucleo", "A mesma analogia, pelo núcleo", iguais, FOLGA)
        aula.resultados(exp.medidas_da_analogia(modelo, palavras, formas, notas))
    # Uma analogia bonita não é estatística: agora o conjunto inteiro, nos dois protocolos.
    conjunto = exp.conjunto_de_analogias(modelo, normas)
    aula.diga(f"Conjunto do Google: {conjunto.distintas} palavras distintas são um token só aqui.")
    for id_, quadro in exp.placares(conjunto).items():
        aula.quadro(id_, quadro)
    if conjunto.distintas:
        aula.figura("2_analogias", "acertos por categoria", fig.analogias, conjunto, modelo.nome)
    aula.repare(exp.frase_do_conjunto(conjunto))
    aula.quadro("2_direcoes", exp.direcoes(modelo, palavras, SEMENTE))
    aula.repare("leia o alinhamento ao lado dos controles, e veja qual par não segue os outros.")
    regua = exp.na_regua(modelo, palavras)
    if regua:
        aula.quadro("2_regua", exp.quadro_da_regua(regua))
        aula.figura("2_regua", "palavras ao longo da direção", fig.regua, regua, modelo.nome)
        aula.repare(exp.frase_da_regua(regua))
    aula.codigo(vetores.avaliar_protocolos)

# %% 3 · Na prática: a matriz é uma tabela de consulta
if aula.secao(3):
    # Brinquedo: 5 palavras em 3 dimensões, para ver a conta inteira.
    W = np.arange(15).reshape(5, 3)  # (15,) -> (5, 3)
    um = np.eye(5, dtype=int)[3]  # (5, 5) -> (5,)
    produto = um @ W  # (5,) @ (5, 3) -> (3,)
    aula.diga(f"Brinquedo: W = {W.tolist()}")
    aula.diga(f"onehot(3)ᵀ · W = {produto.tolist()}, e W[3] = {W[3].tolist()}.")
    forma = (pedidas or [exp.forma_do_exemplo(tok, palavras)])[0]
    aula.quadro("3_vetor_cru", exp.vetor_cru(modelo, forma, QUANTOS_NUMEROS))
    tamanho = decimal(np.median(np.abs(wte[forma.id])))  # (d,) -> escalar
    aula.repare(f"números comuns: metade, sem o sinal, é menor que {tamanho}. Um só não diz nada.")
    um = np.zeros(V, dtype=np.float32)  # (V,)
    um[forma.id] = 1
    produto = um @ wte  # (V,) @ (V, d) -> (d,)
    iguais = {"as duas buscas": np.abs(produto - wte[forma.id]).max()}  # (d,) -> escalar
    aula.comparar("3_consulta", "onehot(i)ᵀ · W contra W[i]", iguais)
    ms_produto = exp.milissegundos(lambda: um @ wte)
    ms_indice = exp.milissegundos(lambda: wte[forma.id].copy())
    aula.quadro("3_custo", exp.quadro_do_custo(V * d, ms_produto, ms_indice))
    vezes = inteiro(round(ms_produto / ms_indice, -1))
    aula.repare(
        f"o produto faz |V|·d = {inteiro(V * d)} multiplicações (e não as |V| = {inteiro(V)} que a "
        f"apostila original diz), quase todas por zero: {vezes} vezes mais lento."
    )
    aula.codigo()


# %% 4 · O segundo embedding: posição
def cossenos_entre(tabela):  # cada linha contra cada linha
    tamanhos = np.sqrt((tabela * tabela).sum(1))  # (n, d) -> (n,)
    unitarias = tabela / np.where(tamanhos > 0, tamanhos, 1)[:, None]  # (n, d), comprimento 1
    return unitarias @ unitarias.T  # (n, d) @ (d, n) -> (n, n)


def por_distancia(c):  # na casa k, a média da k-ésima diagonal: todos os pares (i, i + k)
    return np.array([np.diagonal(c, k).mean(dtype=float) for k in range(len(c))])  # (n, n) -> (n,)


if aula.secao(4):
    # Brinquedo: quatro posições num círculo, de 60 em 60 graus. Só a distância importa.
    angulos = np.arange(4) * np.pi / 3  # (4,)
    circulo = np.stack([np.cos(angulos), np.sin(angulos)], 1)  # (4,) -> (4, 2)
    medias = ", ".join(decimal(x, 1) for x in por_distancia(cossenos_entre(circulo)).round(9))
    aula.diga(f"Brinquedo: posições num círculo; às distâncias 0, 1, 2 e 3, cosseno {medias}.")
    if modelo.wpe is None:
        aula.diga(exp.quem_mede_a_wpe(modelo, dono))
    if dono is not None:
        wpe = pontas.tabela_de_posicoes(dono, dono.d)  # (n_ctx, d): cada tabela diz quem mediu
        cossenos = cossenos_entre(wpe)  # (n_ctx, d) -> (n_ctx, n_ctx)
        aula.quadro("4_linhas", exp.cossenos_das_linhas(dono.nome, cossenos))
        # A primeira linha e a última fogem da curva; a linha média é comum a todas.
        cru = por_distancia(cossenos[1:-1, 1:-1])  # (n_ctx, n_ctx) -> (n_ctx − 2,)
        centrado = por_distancia(cossenos_entre(wpe - wpe.mean(0))[1:-1, 1:-1])  # (n_ctx − 2,)
        aula.quadro("4_defasagem", exp.quadro_das_defasagens(dono.nome, cru, centrado))
        aula.repare(exp.frase_da_defasagem(centrado))
        erro = np.abs(cossenos - tabela_posicoes.cossenos_entre_linhas(wpe)).max()  # -> escalar
        iguais, tolerancia = {"todos os cossenos": erro}, folga.soma(3 * dono.d, 1, folga.EPS32)
        aula.comparar("4_cossenos_do_nucleo", "Posições, pelo núcleo", iguais, tolerancia)
        aula.figura("4_mapa", "posições contra posições", fig.mapa_de_posicoes, dono.nome, cossenos)
        if len(wpe) > 3:  # menos posições que isso não desenham curva
            aula.figura("4_curva", "wpe em 3 componentes", fig.curva_de_posicoes, dono.nome, wpe)
    # O GPT-2 verdadeiro, ao lado: fatos medidos uma vez, guardados em data/gpt2_medido.
    aula.quadro("4_gpt2_linhas", exp.gpt2_linhas())
    aula.repare(exp.frase_do_exercicio_3())
    aula.quadro("4_gpt2_normas", exp.gpt2_normas())
    aula.repare("a linha 1023 quase não tem tamanho: nunca foi treinada, e não serve de exemplo.")
    aula.figura("4_gpt2_defasagem", "semelhança contra a distância", fig.defasagem, dono)
    aula.figura("4_gpt2_mapa", "GPT-2, medido: posições contra posições", fig.gpt2_mapa)
    aula.figura("4_gpt2_helice", "GPT-2, medido: a hélice das posições", fig.gpt2_helice)
    _, curva = gpt2_medido.defasagem()  # (1000,): o cosseno médio a cada distância
    aula.repare(f"no GPT-2 a semelhança oscila: desce a {decimal(curva.min())} e volta a subir.")
    if dono is not None:  # por último: quem responde é o processo ao lado, e ele teve mais tempo
        aula.diga(exp.explicar_limite(dono, limite))
    aula.codigo()

# %% 5 · Juntando: a entrada real do modelo
if aula.secao(5):
    aula.repare(exp.frase_da_entrada(modelo))
    if modelo.ficha.conhecida:
        n, vezes = len(frase), np.float32(modelo.ficha.vezes)  # o Gemma multiplica a linha por √d
        o_que = pontas.na_largura(modelo, vezes * wte[frase])  # (V, d) -> (n, d)
        onde = pontas.tabela_de_posicoes(modelo, o_que.shape[1])[
            :n
        ]  # (n_ctx, d) -> (n, d), ou zeros
        h0 = o_que + onde  # (n, d) + (n, d) -> (n, d)
        aula.diga(f"“{palavras.listas['frase']}”: {contado(n, 'token')}, forma de h₀: {h0.shape}.")
        aula.quadro("5_partes", exp.partes_da_entrada(modelo, frase, o_que, onde))
        if inteira := passagem.resposta_ou_aviso(aula.diga):
            # Há quem ainda some o tipo de frase, normalize ou projete antes do primeiro bloco.
            entrada = pontas.entrada(modelo, frase, h0)  # (n, d) -> (n, d)
            erro = {"h₀ contra hidden_states[0]": np.abs(entrada - inteira.h0).max()}  # -> escalar
            tolerancia = exp.folga_da_entrada(modelo, frase, h0, entrada)
            aula.comparar("5_h0", "h₀ feita à mão contra a biblioteca", erro, tolerancia)
            aula.diga(exp.frase_da_forma(inteira))
    # Somar não mistura tudo? Em muitas dimensões, dois sorteados são quase perpendiculares.
    k = int(np.ceil((1 + np.sqrt(1 + 8 * PARES_AO_ACASO)) / 2))  # k vetores dão k·(k − 1)/2 pares
    x = np.random.default_rng(SEMENTE).standard_normal((k, d), dtype=np.float32)  # (k, d)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)  # (k, d) / (k, 1) -> (k, d)
    gauss = (x @ x.T)[np.triu_indices(k, 1)]  # (k, d) @ (d, k) -> (k, k) -> (pares,)
    titulo, esperado = f"Cosseno entre vetores sorteados em {d} dimensões", exp.conferir_gaussianos
    aula.conferir("5_gauss", titulo, esperado(gauss, d), lambda x: decimal(x, 4))  # 0 e 1/√d
    media = vetores.anisotropia(wte, normas)
    aula.resultado("wte_cosseno_medio", media)
    aula.figura("5_ortogonais", "sorteados contra wte", fig.ortogonais, gauss, quaisquer, modelo)
    aula.repare(f"já as linhas de wte pendem para o mesmo lado: {decimal(media)} em média.")
    aula.quadro("5_soma", exp.soma_ou_concatenacao())
    aula.repare("concatenar dobra a largura e quadruplica os pesos dos blocos; somar, d adições.")
    aula.codigo()

# %% 6 · A amarração final: weight tying
if aula.secao(6):
    aula.diga(f"No arquivo, a cabeça está **{modelo.cabeca}**: {modelo.nota_da_cabeca}.")
    if inteira := passagem.resposta_ou_aviso(aula.diga):
        duas = matrizes.resposta()
        aula.quadro("6_amarracao", exp.perguntas_da_amarracao(modelo, duas))
        if duas["respostas"]:
            iguais = {"respostas trocadas": np.not_equal(duas["respostas"], duas["nucleo"]).sum()}
            aula.comparar("6_duas_pontas", "As quatro perguntas, pelo núcleo", iguais)
        if a_mao := exp.saida_a_mao(modelo, inteira):
            nome, S, vies = a_mao  # S: (V, d), a wte se a cabeça é amarrada
            logits = inteira.h_final @ S.T  # (n, d) @ (d, V) -> (n, V)
            logits = pontas.logits(modelo, logits, vies)  # (n, V): há quem some, divida ou limite
            erro = np.abs(logits - inteira.logits).max() / np.abs(inteira.logits).max()
            iguais = {f"{nome} (relativa ao maior logit)": erro}
            tolerancia = exp.folga_dos_logits(modelo, S, inteira)
            aula.comparar("6_logits", f"logits = {nome}, feitos à mão", iguais, tolerancia)
            ultimo = inteira.logits[-1].astype(float)  # (n, V) -> (V,): o que vem depois da frase
            chances = np.exp(ultimo - ultimo.max())  # (V,)
            chances = chances / chances.sum()  # (V,): softmax, soma 1
            cinco = ranking(ultimo, 5)  # (V,) -> (5,)
            aula.quadro("6_proximos", exp.quadro_dos_proximos(tok, cinco, ultimo, chances))
        aula.diga(exp.frase_da_saida(modelo))
        aula.quadro("6_economia", exp.economia(modelo, duas))
    aula.quadro("6_economia_gpt2", exp.economia_do_gpt2())
    aula.repare("“um quarto de 124 M”, diz a original: o total é do amarrado; a parte, do solto.")
    # O endereço só prova alguma coisa onde há memória.
    um, outro = no_meta.resposta()
    aula.resultado("meta.endereco", um, distingue=um != outro)
    aula.diga(f"No dispositivo meta não há memória: dois tensores quaisquer dão {um} e {outro}.")
    aula.codigo(duas_pontas)

# %% 7 · O código
if aula.secao(7):
    # Cada tropeço da listagem é medido em exp.correcoes, com o tokenizador verdadeiro do GPT-2.
    aula.quadro("7_correcoes", exp.correcoes(fontes.tokenizador_gpt2(), no_meta.resposta()))

# %% 8 · No laboratório
if aula.secao(8):
    # Montados no dispositivo meta: as formas são de verdade, e nenhum peso é lido.
    contas = {nome: pedido.resposta() for nome, pedido in contadas.items()}
    quadro, conferencias = exp.tamanhos(contas)
    aula.quadro("8_tamanhos", quadro)
    aula.conferir("8_publicado", "Contra o publicado e a conta à mão", conferencias, inteiro)
    # E a conta à mão, parcela por parcela, no menor deles: matriz + viés, vezes quantas há.
    t = TAMANHOS["gpt2"]
    D, camadas = t.n_embd, t.n_layer
    a_mao = {
        "wte": t.vocab * D,
        "wpe": t.n_ctx * D,
        "atenção: c_attn (Q, K, V)": camadas * (D * 3 * D + 3 * D),
        "atenção: c_proj": camadas * (D * D + D),
        "MLP: c_fc": camadas * (D * 4 * D + 4 * D),
        "MLP: c_proj": camadas * (4 * D * D + D),
        "LayerNorm": (2 * camadas + 1) * 2 * D,  # escala e deslocamento, duas por bloco e a do fim
    }
    erro = max(abs(a_mao[peca] - n) for peca, n in contas["gpt2"].items())
    aula.comparar("8_parcelas", "O GPT-2 small, à mão e pela biblioteca", {"pior peça": erro})
    aula.figura("8_pecas", "a parte de cada peça nos quatro GPT-2", fig.pecas, contas)
    aula.repare("wte é a maior matriz de cada um; na figura as outras somam as camadas.")
    aula.codigo()
    if gpt2_medido.parece_gpt2_small(modelo):
        pesos = gpt2_medido.conferir_pesos(modelo)
        medidas = exp.conferir_medidas(modelo, normas)
        aula.comparar("8_gpt2_pesos", "É o GPT-2? Linhas contra as publicadas", pesos)
        aula.conferir("8_gpt2_medidas", "É o GPT-2? Medidas", medidas, lambda x: decimal(x, 4))

# %% Guardar tudo
aula.terminar()
