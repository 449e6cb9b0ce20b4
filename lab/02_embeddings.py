"""Apostila 02 · Embeddings: o que há dentro de wte e wpe.

O que você vai ver: ids que não significam nada, vetores que significam, a analogia
rei − homem + mulher com e sem as palavras de entrada, posições aprendidas, a soma que entra
no modelo e a prova de que entrada e saída são a mesma matriz. Um banner por seção da apostila.

Quanto demora: cerca de 17 s na primeira vez (mais o preparo do modelo); nas outras, 8 s.
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
from aula import Aula, inteiro_entre, opcao_ao_vivo


def opcoes(p):
    p.add_argument(
        "--palavra", action="append", help="vizinhos e vetor dela, seções 2 e 3 (repete)"
    )
    p.add_argument("--analogia", nargs=3, metavar=("A", "B", "C"), help="calcula A − B + C")
    p.add_argument(
        "--top", type=inteiro_entre(1, 100), default=QUANTOS_VIZINHOS, help="quantos vizinhos"
    )
    p.add_argument("--sem-espaco", action="store_true", help="usa a palavra sem o espaço da frente")
    opcao_ao_vivo(p)


aula = Aula("02_embeddings", __doc__, SECOES, opcoes)

import itertools

import numpy as np

from nucleo.base.caderno import Conferencia
from nucleo.base.unidades import contado, decimal, inteiro
from nucleo.contas import amarracao, arquitetura, vetores
from nucleo.contas import tabela_posicoes as posicao
from nucleo.licoes import l02_embeddings as exp
from nucleo.licoes import l02_embeddings_figuras as fig
from nucleo.modelos import fontes, gpt2_medido, listas, pontas
from nucleo.modelos.memoria import Memoria

modelo = aula.abrir_modelo()
tok, wte = modelo.tokenizador, modelo.wte  # wte: (V, d), uma linha por token
normas = exp.normas(modelo)  # (V, d) -> (V,): o comprimento de cada linha
palavras = listas.palavras_para(tok)
frase = tok.ids(palavras.listas["frase"])[: modelo.n_ctx]  # lista de n ids, o que couber
# O que é "não ter nada a ver": o cosseno de tokens e de palavras quaisquer.
nivel = exp.niveis(modelo, normas, palavras, PARES_AO_ACASO, SEMENTE)
# O transformers e o modelo inteiro: só se precisar, e cada pergunta uma vez (ver nucleo/modelos/memoria.py).
biblioteca = exp.Biblioteca(modelo, Memoria(aula.args.ao_vivo), aula.diga)

# As palavras de quem está ao teclado são resolvidas já: um engano aparece agora, não no meio.
com_espaco = not aula.args.sem_espaco
pedidas = [tok.linha(p, com_espaco) for p in aula.args.palavra or []]
trio = [tok.linha(p, com_espaco, "--analogia") for p in aula.args.analogia or []]
for forma in [*pedidas, *trio]:
    aula.diga(exp.qual_linha(tok, forma, com_espaco))
if (pedidas or trio) and aula.args.secao and not {2, 3} & set(aula.args.secao):
    aula.diga("As palavras pedidas aparecem nas seções 2 e 3, que não estão entre as de agora.")
escolhidas = pedidas or [tok.linha(p) for p in palavras.presentes(palavras.listas["vizinhos"])]

# %% 1 · O problema: inteiros não têm significado
if aula.secao(1):
    # Primeiro o tokenizador do curso, que vem no repositório; depois o do modelo de hoje (se já
    # for o GPT-2, a volta é uma só).
    for nome, t in {"gpt2": fontes.tokenizador_gpt2(), modelo.nome: tok}.items():
        for n, texto in enumerate(FRASES, 1):
            aula.quadro(f"1_tokens_{exp.rotulo(nome)}_{n}", exp.tokens_da_frase(t, texto))
    aula.repare(
        "o id é só o número da linha. `Ġ` não é erro: é o espaço, e `Ã©` são os dois bytes de `é`. "
        "Os ids 4899 e 5257 da apostila original são hipotéticos (seção 7)."
    )

    # Trocar as etiquetas dos armários não muda o que há dentro deles.
    e = exp.embaralhar(modelo, FRASES[1], SEMENTE)
    aula.diga(f"Vocabulário embaralhado: os ids {e.antes} viram {e.depois}.")
    iguais = [Conferencia("vetores antes e depois", e.diferenca)]
    aula.comparar("1_embaralho", "E os vetores que eles buscam?", iguais)

    # One-hot: V casas por token, um único 1. A distância entre dois quaisquer é a mesma.
    onehots = exp.conferir_onehot(frase, modelo.V)
    aula.conferir("1_onehot", "Distância entre one-hots: √2", onehots, lambda x: decimal(x, 6))
    aula.repare("todas as palavras ficam igualmente longe: o one-hot sabe quem é, não o que é.")
    aula.codigo(vetores.onehot)

# %% 2 · A ideia: dar coordenadas às palavras
if aula.secao(2):
    # Brinquedo: três "palavras" no plano. O cosseno compara direções, não tamanhos.
    a, b, c = np.array([2.0, 1.0]), np.array([4.0, 2.0]), np.array([-1.0, 2.0])
    mesma, outra = decimal(vetores.cosseno(a, b)), decimal(vetores.cosseno(a, c))
    aula.diga(f"Brinquedo: cos((2,1), (4,2)) = {mesma} e cos((2,1), (−1,2)) = {outra}.")

    tipos = []  # "forma" ou "palavra", um por vizinho mostrado
    for forma in escolhidas:
        vizinhos = exp.vizinhos_da_palavra(modelo, normas, forma, aula.args.top)
        aula.quadro(f"2_vizinhos_{exp.rotulo(forma.palavra)}_{forma.id}", vizinhos)
        tipos += [tipo for *_, tipo in vizinhos.linhas]
    contagem = f"{tipos.count('forma')} dos {len(tipos)} vizinhos"
    aula.resultado("vizinhos_que_sao_forma", tipos.count("forma") / len(tipos), vizinhos=len(tipos))
    aula.repare(f"{contagem} são a mesma palavra com outra grafia (maiúscula, espaço, plural).")
    aula.codigo(vetores.cossenos, vetores.mais_altos)

    # Um cosseno só se lê ao lado do nível do acaso, que na wte crua não é zero.
    pares = exp.pares_nomeados(modelo, palavras, nivel)
    aula.quadro("2_pares", pares)
    for par, valor, *_ in pares.linhas:
        aula.resultado(f"cosseno.{par}", valor)
    aula.resultado("cosseno_ao_acaso", nivel.tokens.mean())
    aula.resultado("cosseno_entre_palavras_comuns", nivel.palavras)
    aula.repare(nivel.frase())

    aula.quadro("2_centro", exp.perto_do_centro(modelo, 8))
    aula.repare("no GPT-2 quem mora no centro são tokens-fantasma, como ' SolidGoldMagikarp'.")

    formas = trio or exp.formas_da_analogia(tok, palavras)
    if formas:
        rei, homem, mulher = (forma.id for forma in formas)
        alvo = wte[rei] - wte[homem] + wte[mulher]  # (d,): a conta da apostila, linhas cruas
        resposta = exp.analogia_lado_a_lado(modelo, normas, formas, alvo, aula.args.top)
        aula.quadro("2_analogia", resposta)
        aula.repare(exp.frase_da_analogia(resposta, formas))

    # Uma analogia bonita não é estatística: agora o conjunto inteiro, nos dois protocolos.
    conjunto = exp.conjunto_de_analogias(modelo, normas)
    aula.diga(f"Conjunto do Google: {conjunto.distintas} palavras distintas são um token só aqui.")
    if conjunto.distintas:
        cruas, normalizadas = conjunto.cruas, conjunto.normalizadas
        aula.quadro("2_cruas", exp.placar("Linhas cruas somadas (a apostila)", cruas))
        aula.quadro("2_normalizadas", exp.placar("Linhas normalizadas (gensim)", normalizadas))
        resumo = exp.resumo_do_conjunto(conjunto)
        for id_, valor in resumo.items():
            aula.resultado(id_, valor, "fração")
        aula.figura("2_analogias", "acertos por categoria", fig.analogias, conjunto, modelo.nome)
        aula.repare(exp.frase_do_conjunto(resumo))
        aula.codigo(vetores.avaliar_analogias)
    else:
        aula.repare("nenhuma pergunta cabe neste vocabulário: o conjunto é em inglês.")

    direcoes = exp.direcoes(modelo, palavras, SEMENTE)
    aula.quadro("2_direcoes", direcoes)
    for nome, pares, certo, trocados, _, pior, quem in direcoes.linhas:
        if quem:
            aula.resultado(
                f"alinhamento.{nome}", certo, pares=pares, trocados=trocados, pior=pior, quem=quem
            )
    aula.repare("leia o alinhamento ao lado dos controles, e veja qual par não segue os outros.")
    regua = exp.na_regua(modelo, palavras)
    if regua:
        aula.quadro("2_regua", exp.quadro_da_regua(regua))
        aula.figura("2_regua", "palavras ao longo da direção", fig.regua, regua, modelo.nome)
        aula.repare(exp.frase_da_regua(regua))

# %% 3 · Na prática: a matriz é uma tabela de consulta
if aula.secao(3):
    # Brinquedo: 5 palavras em 3 dimensões, para ver a conta inteira.
    W = np.arange(15, dtype=np.float32).reshape(5, 3)
    produto = vetores.onehot(3, 5) @ W  # (5,) @ (5, 3) -> (3,)
    aula.diga(f"Brinquedo: W = {W.astype(int).tolist()}")
    aula.diga(
        f"onehot(3)ᵀ · W = {produto.astype(int).tolist()}, e W[3] = {W[3].astype(int).tolist()}."
    )

    forma = (pedidas or [exp.forma_do_exemplo(tok, palavras)])[0]
    aula.quadro("3_vetor_cru", exp.vetor_cru(modelo, forma, QUANTOS_NUMEROS))
    tamanho = decimal(np.median(np.abs(wte[forma.id])))  # (d,) -> escalar
    aula.repare(f"números comuns: metade, sem o sinal, é menor que {tamanho}. Um só não diz nada.")

    custo = exp.custo_da_consulta(wte, forma.id)
    buscas = [Conferencia("as duas buscas", custo.diferenca)]
    aula.comparar("3_consulta", "onehot(i)ᵀ · W contra W[i]", buscas)
    aula.quadro("3_custo", exp.quadro_do_custo(modelo, custo))
    aula.repare(exp.frase_do_custo(modelo, custo))
    aula.codigo(vetores.onehot, exp.custo_da_consulta)

# %% 4 · O segundo embedding: posição
if aula.secao(4):
    # Quem não tem wpe (RoPE) passa a vez ao mini; o nome de quem mediu vai em cada tabela.
    dono = fontes.dono_da_wpe(modelo)
    if modelo.wpe is None:
        quem = "O mini, que tem, não está nesta cópia."
        if dono:
            quem = f"Medimos no **{dono.nome}**, o GPT-2 pequeno que vem no repositório."
        aula.diga(f"**{modelo.nome} não tem wpe**: gira Q e K (RoPE, apostila 06, 6.6). {quem}")
    if dono is not None:
        wpe = exp.tabela_de_posicoes(dono)  # (n_ctx, d)
        cossenos = posicao.cossenos_entre_linhas(wpe)  # (n_ctx, d) -> (n_ctx, n_ctx)
        aula.quadro("4_linhas", exp.cossenos_das_linhas(dono.nome, cossenos))
        quais = exp.linhas_a_comparar(len(cossenos))
        for i, j in itertools.combinations(quais, 2):
            aula.resultado(f"wpe.cosseno.{i}.{j}", cossenos[i, j], modelo=dono.nome)
        distancias = exp.defasagens(dono.nome, wpe)
        aula.quadro("4_defasagem", distancias)
        for k, cru, centrado in distancias.linhas:
            aula.resultado(f"wpe.defasagem.{k}", cru, modelo=dono.nome, centrado=centrado)
        aula.repare(exp.frase_da_defasagem(distancias))
        aula.figura("4_mapa", "posições contra posições", fig.mapa_de_posicoes, dono.nome, cossenos)
        if len(wpe) > 3:  # menos posições que isso não desenham curva
            aula.figura("4_curva", "wpe em 3 componentes", fig.curva_de_posicoes, dono.nome, wpe)
        aula.diga(exp.explicar_limite(dono, biblioteca))
        aula.codigo(posicao.cossenos_entre_linhas, posicao.por_defasagem)

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

# %% 5 · Juntando: a entrada real do modelo
if aula.secao(5):
    o_que, onde = pontas.partes_de_h0(modelo, frase)  # wte[ids], wpe[0…n−1]: (n, d), (n, d)
    h0 = o_que + onde  # (n, d) + (n, d) -> (n, d)
    quantos = contado(len(frase), "token")
    aula.diga(f"“{palavras.listas['frase']}”: {quantos}, e h₀ tem forma {h0.shape}.")
    aula.quadro("5_partes", exp.partes_da_entrada(modelo, frase))
    if modelo.wpe is None:
        aula.repare("este modelo não soma posição nenhuma na entrada: h₀ é só o conteúdo.")
    passagem = biblioteca.passagem(frase)
    if passagem:
        contra = [exp.conferir_h0(modelo, frase, passagem)]
        aula.comparar("5_h0", "h₀ feita à mão contra a biblioteca", contra)
        forma_final, blocos = passagem.formas[-1], len(passagem.formas) - 1
        aula.diga(f"A forma atravessa os {blocos} blocos sem mudar: {h0.shape} -> {forma_final}.")
    aula.codigo(pontas.h0)

    # Somar não mistura tudo? Em muitas dimensões, dois sorteados são quase perpendiculares.
    gauss = exp.cossenos_gaussianos(modelo.d, PARES_AO_ACASO, SEMENTE)  # (pares,)
    esperado = exp.conferir_gaussianos(gauss, modelo.d)
    titulo = f"Cosseno entre vetores sorteados em {modelo.d} dimensões"
    aula.conferir("5_gauss", titulo, esperado, lambda x: decimal(x, 4))
    media = vetores.anisotropia(wte, normas)
    aula.resultado("wte_cosseno_medio", media)
    aula.figura("5_ortogonais", "sorteados contra wte", fig.ortogonais, gauss, nivel.tokens, modelo)
    aula.repare(f"já as linhas de wte pendem para o mesmo lado: {decimal(media)} em média.")
    soma = exp.soma_ou_concatenacao()
    aula.quadro("5_soma", soma)
    (_, d, _, somando), (_, dobro, _, concatenando) = soma.linhas
    dono_da_conta = "gpt2 (arquitetura)"
    aula.resultado("soma_ou_concatenacao.largura", dobro, modelo=dono_da_conta, vezes=dobro / d)
    vezes = concatenando / somando
    aula.resultado("soma_ou_concatenacao.contas", concatenando, modelo=dono_da_conta, vezes=vezes)
    aula.repare("concatenar dobra a largura e quadruplica os blocos; somar custa d adições.")

# %% 6 · A amarração final: weight tying
if aula.secao(6):
    aula.diga(f"No arquivo, a cabeça está **{modelo.cabeca}**: {modelo.nota_da_cabeca}.")
    passagem = biblioteca.passagem(frase)
    if passagem:
        duas = biblioteca.pontas()
        aula.quadro("6_amarracao", exp.perguntas_da_amarracao(duas))
        for pergunta, resposta in (duas["amarracao"] or {}).items():
            aula.resultado(f"amarracao.{pergunta}", resposta)
        contas = exp.conferir_logits(modelo, passagem)
        if contas:
            aula.comparar("6_logits", "logits = h_final · wteᵀ, feitos à mão", contas)
            aula.quadro("6_proximos", exp.proximos_tokens(modelo, passagem, 5))
        aula.quadro("6_economia", exp.economia(modelo, duas))
    economia = exp.economia_do_gpt2()
    aula.quadro("6_economia_gpt2", economia)
    for como, (_, total, parte) in zip(("amarrado", "solto"), economia.linhas, strict=True):
        aula.resultado(f"economia_gpt2.{como}", total, modelo="gpt2 (arquitetura)", parte=parte)
    aula.repare(
        "a apostila original diz “um quarto de 124 M”: junta o total de um e a parte do outro."
    )
    # O endereço só prova alguma coisa onde há memória.
    um, outro = biblioteca.enderecos_no_meta()
    aula.resultado("meta.endereco", um, distingue=um != outro)
    aula.diga(
        f"No dispositivo meta os tensores têm forma e não têm memória: dois sem parentesco dão {um} "
        f"e {outro}. Endereço igual, ali, não prova nada."
    )
    aula.codigo(amarracao.amarracao)

# %% 7 · O código
if aula.secao(7):
    # Cada tropeço da listagem é medido aqui, com o tokenizador verdadeiro do GPT-2.
    aula.quadro(
        "7_correcoes", exp.correcoes(fontes.tokenizador_gpt2(), biblioteca.enderecos_no_meta())
    )

# %% 8 · No laboratório
if aula.secao(8):
    # Montados no dispositivo meta: as formas são de verdade, e nenhum peso é lido.
    contas = biblioteca.contas()
    quadro, conferencias = exp.tamanhos(contas)
    aula.quadro("8_tamanhos", quadro)
    aula.conferir("8_publicado", "Contra o publicado e a conta à mão", conferencias, inteiro)
    aula.figura("8_pecas", "a parte de cada peça nos quatro GPT-2", fig.pecas, contas)
    aula.repare(
        "sozinha, wte é a maior matriz dos quatro; na figura as outras somam todas as camadas."
    )
    aula.codigo(arquitetura.formula)
    if gpt2_medido.parece_gpt2_small(modelo):
        pesos = gpt2_medido.conferir_pesos(modelo)
        medidas = exp.conferir_medidas(modelo, normas)
        aula.comparar("8_gpt2_pesos", "É o GPT-2? Linhas contra as publicadas", pesos)
        aula.conferir("8_gpt2_medidas", "É o GPT-2? Medidas", medidas, lambda x: decimal(x, 4))

# %% Guardar tudo
aula.terminar()
