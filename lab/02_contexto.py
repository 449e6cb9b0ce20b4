"""Apostila 02 · Estático contra contextual: a mesma linha vira sentidos diferentes.

O que você vai ver: uma palavra ambígua em várias frases. Na entrada do modelo, todas as
ocorrências são o mesmo vetor; camada a camada elas se separam por sentido, e cada passo é
medido contra o acaso. Depois, o que engana o cosseno (anisotropia e dimensões rebeldes) e a
lente que lê o sentido em tokens. Apostila 02, “O limite real desta camada”; capítulo 6.5.

Quanto demora: cerca de 25 s (na primeira vez, mais o preparo do modelo).
Como rodar:    python lab/02_contexto.py                          tudo
               python lab/02_contexto.py --palavra spring         só esta palavra
               python lab/02_contexto.py --palavra bat --frase "A ball and a bat" --frase "..."
O que fica:    outputs/02_contexto/ (relatorio.md, tabelas em CSV, figuras, resultado.json)
"""

# %% Botões: o que dá para mexer sem ler o resto
EMBARALHOS = 1000  # rótulos sorteados em cada prova; com 1000, o menor p possível é 0,001
LIMITE = 0.01  # o p que chamamos de separação
TOKENS_DA_LENTE = 5  # quantos tokens a lente mostra
SEMENTE = 2  # dos sorteios; a mesma semente dá as mesmas tabelas
SECOES = {
    1: "Na entrada, uma linha só",
    2: "Camada por camada",
    3: "A separação, contra o acaso",
    4: "Anisotropia: o que é semelhança, e o que é viés",
    5: "Três dimensões que mandam no cosseno",
    6: "A lente: o sentido lido em tokens",
    7: "As suas frases",
}

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula


def opcoes(p):
    p.add_argument("--palavra", help="só esta palavra; com --frase, a que procurar nas frases")
    p.add_argument("--frase", action="append", help="uma frase sua com a palavra (pode repetir)")


aula = Aula("02_contexto", __doc__, SECOES, opcoes)

import numpy as np
import torch
import torch.nn.functional as F

from nucleo.base.caderno import Conferencia
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import folga, sentidos
from nucleo.licoes import l02_contexto as exp
from nucleo.licoes import l02_contexto_figuras as fig
from nucleo.modelos import estados, frases, pontas
from nucleo.modelos.tokens import visivel

torch.set_grad_enabled(False)  # aqui só se lê: nenhum gradiente é guardado
modelo = aula.abrir_modelo()
tok = modelo.tokenizador
pontas.exigir_conhecida(modelo)  # a entrada e a saída dele, aqui, seriam um palpite
colecao, causal = frases.colecao_para(tok), not modelo.ficha.codificador
# Um cosseno soma d parcelas, e o denominador outras tantas: 4·d arredondamentos de float64.
FOLGA = folga.soma(4 * modelo.d)


def difere(nome, a, b, tolerancia):
    """A maior diferença entre duas contas da mesma coisa, para `aula.comparar`."""
    return Conferencia(nome, float(np.abs(a - b).max()), 0.0, float(tolerancia))


# As frases de quem está ao teclado são lidas já: um engano aparece agora, não no meio.
suas = frases.do_teclado(tok, aula.args.palavra, aula.args.frase)
if suas and not aula.args.secao:
    aula.so_esta(7)  # quem trouxe frases quer a resposta delas; --secao traz o resto
nomes = [aula.args.palavra] if aula.args.palavra and not suas else colecao.palavras
palavras = [frases.ambigua(tok, colecao, p) for p in nomes]
for palavra in palavras:
    if aviso := palavra.ocorrencias[0].avisos:
        aula.diga("Atenção: " + "; ".join(aviso) + ".")

# Uma passagem por palavra, com todas as frases dela, e só se alguma seção de 1 a 6 foi pedida.
lidas, provadas = [], []
if not aula.args.secao or set(aula.args.secao) - {7}:
    with aula.barra() as progresso:
        lidas = exp.ler_todas(modelo, palavras, progresso)
    # A prova é curta; a camada mais nítida de cada palavra serve a mais de uma seção.
    provadas = [exp.provar(x, EMBARALHOS, SEMENTE) for x in lidas]
    fundo = exp.fundo(lidas, SEMENTE)  # tokens quaisquer, para comparar
    primeira, nitida = lidas[0], provadas[0].palavra.melhor

# %% 1 · Na entrada, uma linha só
if aula.secao(1):
    # Brinquedo: dois "tokens" em duas frases; a tabela não sabe em que frase está.
    tabela = np.array([[1.0, 0.0], [0.5, 2.0]])  # (V, d) = (2, 2)
    numa, noutra = tabela[[0, 1]][1], tabela[[1, 0]][0]  # consulta por id: (2, 2) -> (2,)
    aula.diga(f"Brinquedo: a linha 1 é {numa.tolist()} numa frase e {noutra.tolist()} na outra.")

    aula.quadro("1_frases", exp.resumo_das_frases(modelo, lidas))
    aula.repare("a pista vem antes da palavra: um modelo causal só olha para trás.")

    # A primeira frase pelo modelo inteiro: o estado de cada token na entrada e depois de cada bloco.
    o = primeira.palavra.ocorrencias[0]
    saida = modelo.completo().base_model(torch.tensor([o.ids]), output_hidden_states=True)
    H = torch.stack(saida.hidden_states)[:, 0].numpy()  # (c, 1, n, d) -> (c, n, d)
    da_palavra = H[:, o.lugar]  # a linha da palavra, em cada camada: (c, n, d) -> (c, d)
    aula.diga(f"“{o.frase}”: estados {H.shape}; os do token {o.lugar}, {da_palavra.shape}.")

    # Na camada 0, tirada a linha de wpe que entrou na soma, sobra a linha de wte? (RoPE soma zero.)
    wpe = pontas.tabela_de_posicoes(modelo, H.shape[-1])  # (n_ctx, d); zeros sem wpe
    entradas = []
    for x in lidas:
        if causal and x.uma_linha_so:
            linhas = x.X[0] - wpe[x.lugares]  # (n, d) - (n, d) -> (n, d)
            # Somar e tirar a wpe arredonda duas vezes, no tamanho de h.
            nome = f"{x.nome}: uma ocorrência contra as outras, camada 0"
            duas_vezes = folga.soma(2, np.abs(x.X[0]).max(), folga.EPS32)
            entradas.append(difere(nome, linhas, linhas[0], duas_vezes))
    fator = np.float32(modelo.ficha.vezes)  # 1 no GPT-2; √d no Gemma
    linhas = pontas.na_largura(modelo, fator * modelo.wte[o.ids])  # (n, e) -> (n, d)
    mao = linhas + wpe[: len(o.ids)]  # o quê e onde: (n, d) + (n, d) -> (n, d)
    pronta = pontas.entrada(modelo, o.ids, mao)  # no BERT há ainda uma LayerNorm: (n, d) -> (n, d)
    custo = folga.soma(*pontas.custo_da_entrada(modelo, o.ids, mao, pronta), folga.EPS32)
    entradas.append(difere("h₀ somada à mão contra a camada 0", pronta, H[0], custo))
    aula.comparar("1_camada_0", "Camada 0, sem a posição: todas iguais?", entradas)
    aula.repare("na tabela a ambiguidade não tem solução: os dois sentidos são o mesmo vetor.")
    aula.codigo()

    # O que muda na entrada, onde se soma uma wpe, é só o lugar.
    medida = exp.posicao_na_entrada(modelo)
    if medida is None:
        aula.diga(f"**{modelo.nome}** não soma posição, e sem data/mini não há com que comparar.")
    else:
        dono, quadro = medida
        if dono != modelo.nome:
            aula.diga(f"**{modelo.nome}** não soma posição na entrada; medimos no **{dono}**.")
        aula.quadro("1_posicao", quadro)
        aula.repare("a posição separa as ocorrências pelo lugar, e não pelo sentido.")

# %% 2 · Camada por camada
if aula.secao(2):
    # Brinquedo: três ocorrências em 2 dimensões; só as duas primeiras têm o mesmo sentido.
    v = np.array([[3.0, 4.0], [4.0, 3.0], [4.0, -3.0]])  # (n, d) = (3, 2)
    u = v / np.sqrt((v * v).sum(1, keepdims=True))  # (3, 2) / (3, 1) -> (3, 2)
    cosseno = u @ u.T  # (3, 2) @ (2, 3) -> (3, 3)
    dentro, entre = cosseno[0, 1], (cosseno[0, 2] + cosseno[1, 2]) / 2
    contas = f"{decimal(dentro, 2)}; entre sentidos, {decimal(entre, 2)}"
    aula.diga(f"Brinquedo: cosseno dentro do sentido, {contas}.")

    # A mesma conta com as ocorrências de verdade, em todas as camadas de uma vez.
    X = primeira.X.astype(np.float64)  # (c, n, d)
    u = X / np.sqrt((X * X).sum(-1, keepdims=True))  # (c, n, d) / (c, n, 1) -> (c, n, d)
    K = u @ u.transpose(0, 2, 1)  # (c, n, d) @ (c, d, n) -> (c, n, n)
    mesmo = primeira.rotulos[:, None] == primeira.rotulos  # (n, 1) == (n,) -> (n, n)
    outra = ~np.eye(len(mesmo), dtype=bool)  # (n, n): nenhuma ocorrência com ela mesma
    dentro = K[:, mesmo & outra].mean(1)  # (c, n, n) -> (c, pares) -> (c,)
    entre = K[:, ~mesmo].mean(1)  # (c, n, n) -> (c, pares) -> (c,)
    lacuna = dentro - entre  # (c,) - (c,) -> (c,)

    for x, p in zip(lidas, provadas, strict=True):
        id_ = f"2_cossenos_{x.palavra.palavra}"
        aula.quadro(id_, exp.quadro_das_curvas(x, p.palavra.melhor))
    aula.repare(
        "as curvas saem juntas (ou quase, onde a posição já entrou na soma) e se afastam no caminho."
    )
    aula.figura("2_semelhanca", "cosseno por camada", fig.semelhanca, lidas, modelo.nome)
    aula.figura("2_mapas", "frase contra frase", fig.mapas, primeira, nitida, modelo.nome)

    t = torch.from_numpy(X[nitida])  # (c, n, d) -> (n, d)
    da_torch = F.cosine_similarity(t[:, None], t[None], dim=-1)  # 2 × (n, d) -> (n, n)
    rapida = sentidos.separacao(primeira.K, primeira.rotulos[None])[0]  # (c, n, n) -> (c,)
    contas = [
        difere(f"cossenos da camada {nitida} contra o PyTorch", K[nitida], da_torch.numpy(), FOLGA),
        difere("cossenos de todas as camadas contra a forma rápida", K, primeira.K, FOLGA),
        difere("dentro − entre contra a forma rápida", lacuna, rapida, FOLGA),
    ]
    aula.comparar("2_a_mao", f"As contas da lição, com {primeira.nome}", contas)

    # As frases passaram juntas, enchidas até a mais longa; o enchimento não pode ter vazado.
    juntas = []
    for x in lidas:
        ids = torch.tensor([x.palavra.ocorrencias[0].ids])  # (1, n)
        saida = modelo.completo().base_model(ids, output_hidden_states=True)
        H = torch.stack(saida.hidden_states)[:, 0].numpy()  # (c, 1, n, d) -> (c, n, d)
        maior = np.abs(H).max((1, 2), keepdims=True)  # (c, n, d) -> (c, 1, 1): o da camada
        nome = f"{x.nome}: {len(H)} camadas, em lote contra a frase sozinha"
        juntas.append(difere(nome, x.E[0] / maior, H / maior, folga.modelo(len(H), modelo.d)))
    aula.comparar("2_estados", "Os estados do lote contra output_hidden_states", juntas)
    aula.codigo()

    # E se a pista vier depois? Num modelo causal a palavra já passou, e não sabe.
    if causal:
        depois = colecao.pista_depois
        dupla = [frases.achar_palavra(tok, depois["palavra"], f) for f in depois["frases"]]
        E = estados.estados(modelo, [o.ids for o in dupla])
        a, b = (e[:, o.lugar] for e, o in zip(E, dupla, strict=True))  # 2 × (c, n, d) -> (c, d)
        maior = np.abs(a).max()  # (c, d) -> ()
        aula.diga(f"Com a pista depois: “{dupla[0].frase}” e “{dupla[1].frase}”")
        nome, limite = "as duas ocorrências, em todas as camadas", folga.modelo(len(a), modelo.d)
        iguais = [difere(nome, a / maior, b / maior, limite)]
        aula.comparar("2_pista_depois", "Mesmo começo, pista só depois", iguais)
        aula.repare("em nenhuma camada se separam: o que vem depois não chega à palavra.")
    else:
        aula.diga(f"**{modelo.nome}** lê a frase inteira: a pista pode vir depois da palavra.")

# %% 3 · A separação, contra o acaso
if aula.secao(3):
    # Brinquedo: quatro ocorrências, dois sentidos, e todas as rotulagens 2 + 2 possíveis.
    K = np.array([[1, 0.9, 0.2, 0.3], [0.9, 1, 0.1, 0.2], [0.2, 0.1, 1, 0.8], [0.3, 0.2, 0.8, 1]])
    outra, lacunas = ~np.eye(4, dtype=bool), []  # (4, 4)
    for rotulos in np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]]):  # (3, 4) -> (4,)
        mesmo = rotulos[:, None] == rotulos  # (4, 1) == (4,) -> (4, 4)
        lacunas.append(K[mesmo & outra].mean() - K[~mesmo].mean())  # (4, 4) -> ()
    contas = "; ".join(decimal(v, 2) for v in lacunas)
    aula.diga(f"Brinquedo: dentro − entre nas três rotulagens possíveis: {contas}. Só uma sobe.")

    # De verdade, na camada mais nítida: um embaralho à mão. A prova repete EMBARALHOS vezes.
    K = primeira.K[nitida]  # (c, n, n) -> (n, n)
    outra = ~np.eye(len(K), dtype=bool)  # (n, n)
    trocados = np.random.default_rng(SEMENTE).permutation(primeira.rotulos)  # (n,) -> (n,)
    duas = []
    for rotulos in (primeira.rotulos, trocados):
        mesmo = rotulos[:, None] == rotulos  # (n, 1) == (n,) -> (n, n)
        duas.append(K[mesmo & outra].mean() - K[~mesmo].mean())  # (n, n) -> ()
    contas = f"com os rótulos certos, {decimal(duas[0])}; embaralhados, {decimal(duas[1])}"
    aula.diga(f"{primeira.nome}, camada {nitida}, dentro − entre: {contas}.")
    rapida = sentidos.separacao(K[None], np.stack([primeira.rotulos, trocados]))  # -> (2, 1)
    # Cada média soma no máximo n² cossenos, todos até 1.
    da_media = folga.soma(K.size)
    juntas = [difere("as duas contra a forma rápida", np.array(duas), rapida[:, 0], da_media)]
    aula.comparar("3_a_mao", "Um embaralho à mão", juntas)

    for p in provadas:
        aula.quadro(f"3_prova_{p.lida.palavra.palavra}", exp.quadro_da_prova(p))
    aula.repare(
        f"p é a fração de {inteiro(EMBARALHOS)} embaralhos que separam tanto; o corrigido conta que "
        "olhamos todas as camadas. O centroide adivinha o sentido da ocorrência que ficou de fora."
    )
    aula.quadro("3_primeiras", exp.quadro_das_primeiras(modelo, provadas))
    for p in provadas:
        nome, r = p.lida.palavra.palavra, p.palavra
        aula.resultado(f"lacuna_{nome}", r.lacuna[r.melhor], "cosseno", camada=r.melhor)
        fundura = r.melhor / p.lida.ultima  # 0 é a entrada, 1 a última camada
        aula.resultado(f"p_{nome}", r.p[r.melhor], "", camada=r.melhor, profundidade=fundura)
        aula.resultado(f"acertos_{nome}", r.acertos[r.melhor], "fração", camada=r.melhor)
        aula.resultado(f"primeira_camada_{nome}", r.primeira(LIMITE), "camada")
    aula.figura("3_separacao", "separação por camada", fig.separacao, provadas, modelo.nome, LIMITE)
    if modelo.wpe is not None:
        zero = max(abs(p.palavra.lacuna[0]) for p in provadas)
        aula.repare(
            f"na camada 0 só o lugar difere: o que se vê ali (até {decimal(zero)}) é obra da posição, e "
            "segue nas outras camadas. Leia cada lacuna ao lado dessa."
        )
    if all(p.palavra.primeira(LIMITE) is None for p in provadas):
        aula.repare("nenhuma camada passou na prova: este modelo não separa estes sentidos.")
    if any(p.frente and p.frente.primeira(LIMITE) is not None for p in provadas):
        aula.repare(
            "o token da frente é sempre o mesmo, e onde ele também se separa está só carregando o "
            "assunto da frase. Antes dessa camada, o que se separa é a palavra."
        )
    aula.codigo(sentidos.provar)

# %% 4 · Anisotropia: o que é semelhança, e o que é viés
if aula.secao(4):
    # Brinquedo: a soma dos unitários, ao quadrado, traz todos os pares de uma vez (ida e volta).
    v = np.array([[2.0, 1.0], [1.0, 1.0], [1.0, 0.0]])  # (n, d) = (3, 2)
    u = v / np.sqrt((v * v).sum(1, keepdims=True))  # (3, 2) / (3, 1) -> (3, 2)
    um_a_um = (u[0] @ u[1] + u[0] @ u[2] + u[1] @ u[2]) / 3
    pela_soma = ((u.sum(0) ** 2).sum() - 3) / (3 * 2)  # (3, 2) -> (2,) -> ()
    contas = f"par a par, {decimal(um_a_um)}; pela soma, {decimal(pela_soma)}"
    aula.diga(f"Brinquedo: o cosseno médio de três vetores, {contas}.")

    # Um cosseno de 0,9 impressiona menos quando dois tokens quaisquer já têm 0,6.
    aula.diga(f"“Quaisquer”: {fundo.A.shape[1]} tokens diferentes das frases, um de cada.")
    pico = int(fundo.anisotropia.argmax())  # (c,) -> ()
    A = fundo.A[pico].astype(np.float64)  # (c, m, d) -> (m, d)
    u = A / np.sqrt((A * A).sum(1, keepdims=True))  # (m, d) / (m, 1) -> (m, d)
    m, n = len(A), primeira.X.shape[1]
    quaisquer = (u @ u.T)[~np.eye(m, dtype=bool)].mean()  # (m, d) @ (d, m) -> (m, m) -> ()
    duas = (primeira.K[pico].sum() - n) / (n * (n - 1))  # (n, n) -> (): sem o par consigo mesma

    aula.quadro("4_anisotropia", exp.quadro_da_anisotropia(primeira, fundo))
    aula.figura(
        "4_anisotropia", "semelhança e anisotropia", fig.anisotropia, primeira, fundo, modelo.nome
    )
    aula.resultado("anisotropia_maxima", fundo.anisotropia[pico], "cosseno", camada=pico)
    aula.repare(
        f"na camada {pico}, dois tokens quaisquer já têm cosseno {decimal(fundo.anisotropia[pico])}. "
        "A semelhança corrigida é o que sobra (Ethayarajh 2019)."
    )
    auto = sentidos.media_dos_cossenos(primeira.X)[pico]  # (c, n, d) -> (c,) -> ()
    contas = [
        difere("tokens quaisquer", quaisquer, fundo.anisotropia[pico], FOLGA),
        difere("ocorrências da palavra", duas, auto, FOLGA),
        difere("corrigida", duas - quaisquer, auto - fundo.anisotropia[pico], FOLGA),
    ]
    aula.comparar("4_a_mao", f"Camada {pico}: par a par contra a soma ao quadrado", contas)
    aula.codigo()

# %% 5 · Três dimensões que mandam no cosseno
if aula.secao(5):
    # Brinquedo: uma dimensão grande e comum a todos esconde que o resto é oposto.
    a, b = np.array([9.0, 1.0, -1.0]), np.array([9.0, -1.0, 1.0])  # (3,), (3,)
    com = a @ b / np.sqrt((a @ a) * (b @ b))  # (3,) @ (3,) -> ()
    a, b = a * [0, 1, 1], b * [0, 1, 1]  # (3,) * (3,) -> (3,)
    sem = a @ b / np.sqrt((a @ a) * (b @ b))  # (3,) @ (3,) -> ()
    aula.diga(f"Brinquedo: cos((9, 1, −1), (9, −1, 1)) = {decimal(com)}; sem o 9, {decimal(sem)}.")

    r = exp.rebeldes(primeira, fundo)
    aula.quadro("5_rebeldes", exp.quadro_dos_rebeldes(primeira, r))
    aula.figura("5_rebeldes", "com e sem as três dimensões", fig.rebeldes, r, modelo.nome)
    onde = int(np.where(r.crua > 0.05, r.parte, -1).argmax())  # (c,) -> ()
    aula.resultado("parte_das_tres", r.parte[onde], "fração", camada=onde)
    antes, depois = decimal(r.lacuna[nitida]), decimal(r.lacuna_padronizada[nitida])
    aula.repare(
        f"na camada {onde}, {porcento(r.parte[onde], 0)} do cosseno médio vêm de 3 das {modelo.d} "
        f"dimensões. Padronizar devolve a voz às outras: na camada {nitida}, dentro − entre vai de "
        f"{antes} a {depois} (Timkey e van Schijndel 2021)."
    )

    # De onde vêm: cos(u, v) = Σₖ uₖ·vₖ, e cada dimensão k põe a sua parcela no cosseno médio.
    A = fundo.A[onde].astype(np.float64)  # (c, m, d) -> (m, d)
    u = A / np.sqrt((A * A).sum(1, keepdims=True))  # (m, d) / (m, 1) -> (m, d)
    parcelas = (u.sum(0) ** 2 - (u * u).sum(0)) / (len(u) * (len(u) - 1))  # (m, d) -> (d,)
    tres = np.sort(parcelas)[-3:].sum()  # (d,) -> (3,) -> ()
    contas = [difere("parte das três", tres / parcelas.sum(), r.parte[onde], FOLGA)]
    aula.comparar("5_a_mao", f"Camada {onde}: à mão contra a forma rápida", contas)
    aula.codigo(sentidos.padronizar)

# %% 6 · A lente: o sentido lido em tokens
if aula.secao(6):
    if estados.tem_lente(modelo):
        # Brinquedo: três tokens em 2 dimensões. A lente é um produto com cada linha, e a softmax.
        E, h = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([2.0, 1.0])  # (V, d), (d,)
        logits = E @ h  # (3, 2) @ (2,) -> (3,)
        p = np.exp(logits) / np.exp(logits).sum()  # (3,) / () -> (3,)
        contas = "; ".join(porcento(v, 0) for v in p)
        aula.diga(f"Brinquedo: de h = (2, 1), os três tokens recebem {contas}.")

        # De verdade, a dois terços do caminho: a normalização final, h·Eᵀ e a softmax.
        k, o = TOKENS_DA_LENTE, primeira.palavra.ocorrencias[0]
        c = 2 * primeira.ultima // 3
        escala, desvio, eps = exp.numeros_da_norma(modelo)  # (d,), (d,), escalar
        h = primeira.X[c, 0]  # (c, n, d) -> (d,)
        h = h - h.mean() if modelo.ficha.centra else h  # (d,): o GPT-2 tira a média; o Llama, não
        h = h / np.sqrt((h * h).mean() + eps) * escala + desvio  # (d,): LayerNorm, ou RMSNorm
        E, vies = exp.matriz_da_lente(modelo)  # (V, d), a wte se amarrada; (V,) ou zero
        logits = pontas.logits(modelo, E @ h + vies)  # (V, d) @ (d,) -> (V,)
        p = np.exp(logits - logits.max())  # (V,): sem o maior, nada estoura
        p = p / p.sum()  # (V,) / () -> (V,)
        topo = np.argsort(-p)[:k]  # (V,) -> (k,)
        tokens = ", ".join(f"{visivel(tok.texto(int(i)))} {porcento(p[i])}" for i in topo)
        aula.diga(f"À mão, “{o.frase}”, camada {c}: {tokens}.")
        # No fim do caminho, com o estado que já vem normalizado, são os logits do próprio modelo.
        saida = modelo.completo()(torch.tensor([o.ids]))
        do_modelo = saida.logits[0, o.lugar].numpy()  # (1, n, V) -> (V,)
        # Cada logit é um produto de d parcelas, ‖linha‖·‖h‖; a normalização antes dele soma outras d.
        maior = np.sqrt(np.einsum("vd,vd->v", E, E).max())  # (V, d) -> (V,) -> ()
        por_h = folga.soma(2 * modelo.d, maior, folga.EPS32)
        final = primeira.X[-1, 0]  # (c, n, d) -> (d,)
        ultima = pontas.logits(modelo, E @ final + vies)  # (V, d) @ (d,) -> (V,)
        rapida = estados.lente(modelo, primeira.X[c, :1], False)[0]  # (1, d) -> (1, V) -> (V,)
        contas = [
            difere(f"camada {c}, contra a forma rápida", logits, rapida, por_h * np.sqrt(h @ h)),
            difere("última, contra o modelo", ultima, do_modelo, por_h * np.sqrt(final @ final)),
        ]
        aula.comparar("6_a_mao", "A lente à mão", contas)

        aula.quadro("6_lente", exp.lente_das_frases(modelo, primeira, k))
        aula.repare(
            "a lente lê o PRÓXIMO token: no fim, o que viria depois da palavra. Na camada 0 ainda "
            "não há contexto, e os dois sentidos leem quase o mesmo."
        )
        aula.quadro("6_contraste", exp.contraste_da_lente(modelo, primeira, k + 2))
        aula.repare("no meio quase não se lê: a matriz de saída só entende os últimos andares.")
        aula.codigo()
    else:
        aula.diga(f"**{modelo.nome}** não prevê o próximo token por um produto: não há lente.")

# %% 7 · As suas frases
if aula.secao(7):
    if not suas:
        exemplo = 'python lab/02_contexto.py --palavra bat --frase "..." --frase "..."'
        aula.diga(f"Traga as suas:  `{exemplo}`")
    else:
        for aviso in exp.avisos_das_suas(tok, suas):
            aula.diga(aviso)
        E = estados.estados(modelo, [o.ids for o in suas])
        X = exp.no_lugar(E, [o.lugar for o in suas])  # n × (c, nᵢ, d) -> (c, n, d)
        aula.quadro("7_frases", exp.quadro_das_suas(suas))
        if len(suas) > 1:
            aula.quadro("7_pares", exp.pares_das_suas(X))
            nivel = "o nível do cosseno muda de uma a outra"
            aula.repare(f"compare cada camada com ela mesma: {nivel}.")
        else:
            aula.diga("Com uma frase só não há par a comparar; acrescente outra --frase.")
        if estados.tem_lente(modelo):
            aula.quadro("7_lente", exp.lente_das_suas(modelo, X, TOKENS_DA_LENTE))

# %% Guardar tudo
aula.terminar()
