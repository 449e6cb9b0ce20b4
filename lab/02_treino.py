"""Apostila 02 · Treino: a wpe e a matriz amarrada, vistas enquanto um mini GPT-2 aprende.

Duas perguntas da apostila não se respondem com pesos prontos. O modelo aprendeu sozinho que
posições vizinhas se parecem? E amarrar entrada e saída ajuda ou atrapalha, com dois gradientes
caindo na mesma matriz? A resposta é um experimento, em três atos.

O que você vai ver: o cosseno entre posições vizinhas subir de zero; o gradiente da matriz
amarrada aberto em dois; e seis treinos, três amarrados e três soltos, nos mesmos dados.

Quanto demora: uns 6 minutos em dois núcleos; com --rapido, uns 2; sem corpus, 30 segundos.
Como rodar:    python lab/02_treino.py --corpus PASTA             tudo
               python lab/02_treino.py --corpus PASTA --rapido    para a aula
               python lab/02_treino.py                            o que o mini pronto conta
               python lab/02_treino.py --corpus PASTA --secao 1   só a wpe
O corpus é uma pasta de .txt em UTF-8; data/mini/LEIAME.md diz onde está o nosso. A variável
LAB_CORPUS vale por --corpus. Ctrl-C no ato 1 para o treino e segue com o que ele aprendeu.
O que fica:    outputs/02_treino/ (relatorio.md, tabelas em CSV, figuras, resultado.json)
"""

# %% Botões: o que dá para mexer sem ler o resto
LETRAS = {"d": 128, "camadas": 4, "cabecas": 4, "posicoes": 128}  # ato 1: um token por letra
CONTO = {"d": 48, "camadas": 2, "cabecas": 2, "posicoes": 64}  # ato 1 sem corpus: um conto
PASSOS_LETRAS, TAXA_LETRAS = 800, 3e-3  # com --rapido, 300 passos
PASSOS_CONTO, TAXA_CONTO = 600, 2e-3  # texto curto, relido muitas vezes: taxa menor
LOTE_LETRAS = 16
TOKENS = {"d": 128, "camadas": 2, "cabecas": 4, "posicoes": 64}  # atos 2 e 3: BPE
PASSOS_TOKENS, LOTE_TOKENS = 400, 32  # com --rapido, 200 passos
VOCABULARIO = 2048  # tokens do BPE dos atos 2 e 3
SEMENTES = (1, 2, 3)  # com --rapido, só a primeira
AQUECIMENTO = 50  # passos até a taxa de aprendizado cheia
SECOES = {
    1: "A wpe tomando forma",
    2: "Uma matriz, dois gradientes",
    3: "Amarrada contra solta",
}

import os

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula


def opcoes(p):
    p.add_argument("--corpus", metavar="PASTA", help="pasta com os .txt, em UTF-8")
    p.add_argument("--rapido", action="store_true", help="menos passos e uma semente só")


aula = Aula("02_treino", __doc__, SECOES, opcoes, usa_modelo=False)

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr

from nucleo.base.caderno import Conferencia
from nucleo.base.unidades import decimal
from nucleo.contas import arquitetura, folga
from nucleo.licoes import l02_treino as exp
from nucleo.modelos import fontes
from nucleo.modelos.tamanhos import TAMANHOS
from nucleo.treino import mini
from nucleo.treino import treinador as tr

torch.use_deterministic_algorithms(True)  # duas execuções, as mesmas tabelas
corpus = exp.abrir_material(aula.args.corpus or os.environ.get("LAB_CORPUS"), VOCABULARIO)
if aula.args.rapido:
    PASSOS_LETRAS, PASSOS_TOKENS, SEMENTES = 300, 200, SEMENTES[:1]
if not corpus:
    LETRAS, PASSOS_LETRAS, TAXA_LETRAS = CONTO, PASSOS_CONTO, TAXA_CONTO
if corpus:
    aula.diga(f"Corpus: {corpus.resumo}.")
else:
    aula.diga(
        "**Sem corpus** (não veio `--corpus PASTA`): o ato 1 treina só num conto que vem no repositório, o "
        "ato 2 usa o mini pronto, e o ato 3 fica de fora. `data/mini/LEIAME.md` diz onde está o texto."
    )


def difere(nome, a, b, tolerancia):
    """A maior diferença entre duas contas da mesma coisa, para `aula.comparar`."""
    pior = np.abs(np.asarray(a) - np.asarray(b)).max()
    return Conferencia(nome, float(pior), 0.0, float(tolerancia))


def novo_treino(forma, fita, passos, lote, vocabulario, semente, amarrado=True, taxa=3e-3):
    """Um GPT-2 recém-sorteado e a receita dele: a semente decide os pesos e os lotes."""
    modelo = tr.novo_gpt2(vocabulario, **forma, semente=semente, amarrado=amarrado)
    receita = tr.Receita(passos, lote, forma["posicoes"], taxa, AQUECIMENTO, semente=semente)
    return tr.Treino(modelo, fita, receita)


# %% 1 · A wpe tomando forma
if aula.secao(1):
    aula.diga(
        "A wpe nasce sorteada: nenhuma linha sabe quem é sua vizinha. Medimos o cosseno médio entre as "
        "linhas i e i+k, tirada a linha média. Antes, um brinquedo: oito posições numa roda."
    )
    angulo = 2 * np.pi * np.arange(8) / 8  # (8,)
    roda = np.stack([np.cos(angulo), np.sin(angulo)], axis=1)  # (8,) -> (8, 2)
    u = roda - roda.mean(0)  # (8, 2) - (2,) -> (8, 2)
    u = u / np.sqrt((u * u).sum(1, keepdims=True))  # (8, 2) / (8, 1) -> (8, 2)
    medido = {k: (u[:-k] * u[k:]).sum(1).mean() for k in (1, 2, 4)}  # (8 − k, 2) -> (8 − k,) -> ()
    esperado = {1: np.sqrt(0.5), 2: 0.0, 4: -1.0}  # 45°, 90° e 180° de distância
    # O centro soma 8, a norma e o produto 2 cada, a média até 7: menos de 20 somas, de números até 1.
    na_roda = [
        Conferencia(f"k = {k}", float(v), float(esperado[k]), folga.soma(20))
        for k, v in medido.items()
    ]
    aula.conferir("1_roda", "Na roda, k posições são k vezes 45°", na_roda)

    # Um passo de treino, por dentro. A perda é −log p do token que veio: de três, veio o último.
    logits = np.array([2.0, 1.0, 3.0])  # (V,)
    log_p = logits - np.log(np.exp(logits).sum())  # log_softmax: (V,) - () -> (V,)
    p, perda = decimal(np.exp(log_p[2]), 2), decimal(-log_p[2], 2)
    aula.diga(f"Brinquedo: ao token que veio o modelo dava p = {p}, e a perda é {perda}.")
    # O AdamW guarda a média do gradiente (m) e a do quadrado dele (v), e anda m / √v: todos os
    # números andam parecido. Aqui a perda é ½‖w − alvo‖², e o gradiente, w − alvo.
    w, alvo, taxa, b1, b2, decai = np.array([1.0, -2.0]), np.array([0.0, 1.0]), 0.1, 0.9, 0.99, 0.1
    p = torch.from_numpy(w.copy()).requires_grad_()  # (2,): o mesmo w, para o torch andar ao lado
    adamw = torch.optim.AdamW([p], lr=taxa, betas=(b1, b2), weight_decay=decai)
    m, v = np.zeros(2), np.zeros(2)  # (2,), (2,)
    for t in (1, 2, 3):
        g = w - alvo  # (2,) - (2,) -> (2,)
        m = b1 * m + (1 - b1) * g  # (2,)
        v = b2 * v + (1 - b2) * g * g  # (2,)
        passo = (m / (1 - b1**t)) / (
            np.sqrt(v / (1 - b2**t)) + 1e-8
        )  # m e v nascem em zero: corrige
        w = w * (1 - taxa * decai) - taxa * passo  # o decaimento encolhe w à parte do gradiente
        p.grad = p.detach() - torch.from_numpy(alvo)  # (2,)
        adamw.step()
    # Três passos, umas dez contas cada um, com números até 2.
    andou = [difere("w depois de três passos", w, p.detach(), folga.soma(30, 2))]
    aula.comparar("1_adamw", "AdamW à mão contra o torch", andou)

    # Um token por letra: o treino é curto, e a ordem das letras dá muito a aprender.
    texto = corpus.texto if corpus else mini.conto()
    alfabeto = tr.alfabeto(texto)
    fita = alfabeto.codificar(texto)  # (n,)

    def letras(fita, rotulo):
        partes = (LETRAS, fita, PASSOS_LETRAS, LOTE_LETRAS, len(alfabeto.letras), SEMENTES[0])
        treino = novo_treino(*partes, taxa=TAXA_LETRAS)
        passos = aula.treinar(treino, rotulo, parar_com_ctrl_c=True)
        return exp.acompanhar_wpe(treino, passos), treino.modelo

    # Medimos nas marcas: passo 0, e depois cada vez mais espaçadas. A primeira linha é o sorteio.
    ao_vivo, modelo = letras(fita, "GPT-2 de letras")
    aula.quadro("1_ao_vivo", exp.quadro_da_wpe("A wpe de um GPT-2 de letras, ao vivo", ao_vivo))
    aula.repare("todas saem de zero e sobem; as mais distantes (k = 32) ficam bem atrás.")
    aula.figura("1_ao_vivo", "a wpe ao vivo", exp.figura_da_wpe, "letras, ao vivo", ao_vivo)

    # O que se acabou de medir, à mão, no modelo que se acabou de treinar: a perda e o cosseno da wpe.
    x, y = tr.lote_fixo(fita, LETRAS["posicoes"], 4)  # (B, T), (B, T): y é x um passo à frente
    logits = modelo(x).logits.detach()  # (B, T) -> (B, T, V)
    log_p = logits - torch.logsumexp(logits, -1, keepdim=True)  # (B, T, V) - (B, T, 1) -> (B, T, V)
    perda = -torch.gather(
        log_p, -1, y[..., None]
    ).mean()  # −log p de cada y: (B, T, V) -> (B, T, 1) -> ()
    wpe = modelo.transformer.wpe.weight.detach().numpy().astype(np.float64)  # (n, d)
    u = wpe - wpe.mean(0)  # (n, d) - (d,) -> (n, d)
    u = u / np.sqrt((u * u).sum(1, keepdims=True))  # (n, d) / (n, 1) -> (n, d)
    cossenos = [
        (u[:-k] * u[k:]).sum(1).mean() for k in exp.DEFASAGENS
    ]  # (n − k, d) -> (n − k,) -> ()
    # A perda é média de B·T parcelas, e cada uma soma V, em float32. O cosseno soma d produtos, e a
    # média, n cossenos até 1: em float64.
    da_perda = folga.soma(y.numel() + logits.shape[-1], perda, folga.EPS32)
    contas = [
        difere("a perda, contra a cross_entropy", perda, tr.perda(modelo, x, y).detach(), da_perda),
        difere(
            "cosseno da wpe, contra a forma rápida",
            cossenos,
            ao_vivo[-1].cossenos,
            folga.soma(4 * sum(wpe.shape)),
        ),
    ]
    aula.comparar("1_a_mao", "A perda e a wpe à mão", contas)

    # O controle tem tudo igual, menos a ordem: só ela pode ter ensinado as posições.
    aula.diga("**Controle**: o mesmo modelo e as mesmas letras, mas em ordem sorteada.")
    # Tantas embaralhadas quantas o treino vai ler: numa só, curta, ele decoraria a ordem sorteada.
    lidas = PASSOS_LETRAS * LOTE_LETRAS * LETRAS["posicoes"]
    sem_ordem = tr.embaralhar(fita, SEMENTES[0], lidas)  # (n,) -> (≥ lidas,)
    controle, _ = letras(sem_ordem, "controle embaralhado")
    aula.quadro("1_controle", exp.quadro_da_wpe("O controle: letras embaralhadas", controle))
    # O treino aumenta o arredondamento passo a passo, e este número muda de máquina para máquina. O que
    # não muda é ficar longe do que a ordem ensinou: três quartos dele já seriam vizinhança.
    limite = max(0.2, 0.75 * ao_vivo[-1].cossenos[0])
    nada = [Conferencia("cosseno com k = 1, no fim", controle[-1].cossenos[0], 0.0, limite)]
    aula.conferir("1_sem_ordem", "Embaralhadas, não nasce vizinhança", nada)
    aula.repare(
        "mesmas letras, mesmo otimizador, e quase nada: quem ensina as posições é a ordem do texto."
    )

    # O mini é outro tamanho de modelo e outro tokenizer: a história é a mesma, o relógio não.
    do_mini = exp.retratos_do_mini()
    aula.diga("Os **retratos** do mini: sua wpe, guardada de tempos em tempos no treino longo.")
    aula.quadro("1_mini", exp.quadro_da_wpe("A wpe do mini ao longo do treino (retratos)", do_mini))
    aula.repare("a perda cai bem antes de a wpe mexer: primeiro as palavras, depois as posições.")
    aula.figura("1_mini", "a wpe do mini", exp.figura_da_wpe, "mini, retratos", do_mini)

    # O fim de cada treino lado a lado; o GPT-2 é onde um treino muito mais longo chega.
    no_fim = {  # modelo -> cosseno em cada defasagem, no último passo
        "letras, em ordem": ao_vivo[-1].cossenos,
        "letras, embaralhadas": controle[-1].cossenos,
        "mini": do_mini[-1].cossenos,
        "GPT-2 (medido à parte)": exp.gpt2_verdadeiro(),
    }
    aula.quadro("1_no_fim", exp.quadro_do_fim(no_fim))
    aula.figura("1_no_fim", "o cosseno contra a distância", exp.figura_do_fim, no_fim)
    for nome, cossenos in no_fim.items():
        for k, valor in zip(exp.DEFASAGENS, cossenos, strict=True):
            aula.resultado(f"1_wpe.k{k}", valor, "cosseno", modelo=nome)
    aula.repare(
        "ninguém disse que 7 vem depois de 6; a ordem do texto disse. O GPT-2 leu muito mais."
    )
    aula.codigo(tr.grupos_de_parametros)

# %% 2 · Uma matriz, dois gradientes
caminhos = None  # o gradiente aberto em dois, ao longo do primeiro treino amarrado
corridas = {}  # (semente, amarrada?) -> corrida: o ato 3 não treina de novo o que o ato 2 treinou


def correr(semente, amarrado, caminhos=None):
    """Um treino dos atos 2 e 3, do começo ao fim, com a validação medida pelo caminho."""
    partes = (TOKENS, corpus.tokens, PASSOS_TOKENS, LOTE_TOKENS, VOCABULARIO)
    treino = novo_treino(*partes, semente, amarrado)
    passos = aula.treinar(treino, f"{'amarrada' if amarrado else 'solta'}, semente {semente}")
    curva = exp.acompanhar_validacao(treino, passos, corpus.tokens_de_fora, caminhos)
    return exp.Corrida(treino.modelo, curva)


if aula.secao(2):
    aula.diga(
        "Amarrada, a matriz E trabalha duas vezes: é consultada na entrada, e na saída dá os logits, "
        "h·Eᵀ. O gradiente dela é a soma de dois. Brinquedo: y = w·w, com w = 3."
    )
    w = torch.tensor(3.0, requires_grad=True)
    (w * w).backward()  # cada w recebe 3 do outro; o mesmo w recebe os dois
    produto = [Conferencia("dy/dw = 3 + 3", float(w.grad), 6.0)]
    aula.conferir("2_brinquedo", "A regra do produto é a soma dos dois caminhos", produto)

    # Outro, com V = 5 e d = 3: a frase consulta E, mistura, e sai por E. Solta, são duas cópias.
    sorteio = torch.Generator().manual_seed(1)
    E = torch.randn(5, 3, generator=sorteio, dtype=torch.float64)  # (V, d)
    W = torch.randn(3, 3, generator=sorteio, dtype=torch.float64)  # (d, d)
    x, y = torch.tensor([0, 1, 2, 1]), torch.tensor([1, 2, 1, 4])  # (T,), (T,)

    def perda_solta(entrada, saida):
        h = torch.tanh(entrada[x] @ W)  # (V, d) -> (T, d) @ (d, d) -> (T, d)
        log_p = F.log_softmax(h @ saida.T, dim=-1)  # (T, d) @ (d, V) -> (T, V)
        return -log_p[torch.arange(4), y].mean()  # (T, V) -> (T,) -> ()

    soltas = [E.clone().requires_grad_() for _ in range(2)]  # (V, d), (V, d)
    da_entrada, da_saida = torch.autograd.grad(perda_solta(*soltas), soltas)  # (V, d), (V, d)
    E.requires_grad_()
    (tudo,) = torch.autograd.grad(perda_solta(E, E), [E])  # a mesma E nos dois lugares: (V, d)
    tocadas = [int(torch.count_nonzero(g.abs().sum(1))) for g in (da_entrada, da_saida)]
    aula.diga(
        f"Brinquedo de 5 × 3: a entrada toca {tocadas[0]} das 5 linhas, e a saída, {tocadas[1]}."
    )
    # Cada número soma no máximo T·V·d produtos.
    limite = folga.soma(4 * E.numel(), tudo.abs().max())
    contas = [difere("brinquedo: entrada + saída", da_entrada + da_saida, tudo, limite)]

    # O lote é sempre o mesmo, de texto que o modelo não treina: só o modelo muda entre as linhas.
    if corpus:
        caminhos = exp.Caminhos(corpus.tokens_de_fora, TOKENS["posicoes"], LOTE_TOKENS)
        corridas[SEMENTES[0], True] = correr(SEMENTES[0], True, caminhos)
        quem = "BPE, amarrada"
    else:
        aula.diga(
            "Sem corpus: o **mini**, ao nascer e treinado, numa página do conto, que ele nunca viu."
        )
        do_repositorio = fontes.abrir("mini")
        pagina = np.array(do_repositorio.tokenizador.ids(mini.trecho()))  # (n,)
        caminhos = exp.Caminhos(pagina, 64, 8)
        caminhos.medir(0, mini.recem_nascido())
        caminhos.medir(mini.resultados()["passo"], do_repositorio.completo())
        quem = "mini"
    aula.quadro("2_caminhos", caminhos.quadro(quem))
    # A identidade é exata em papel. Em float32 cada número da matriz soma uma parcela por token do lote,
    # por dois caminhos: sobram até N · eps do tamanho deles (`limite`, no pior dos passos).
    soma = [Conferencia("em todos os passos acima", caminhos.diferenca, 0.0, caminhos.limite)]
    aula.comparar("2_soma", "Entrada + saída contra o gradiente do autograd", soma)
    aula.repare(
        "a entrada só toca as linhas dos tokens do lote; a saída toca todas, sempre, até as que só "
        "aprendem a não vir."
    )
    aula.figura("2_caminhos", "as normas dos dois gradientes e o cosseno", caminhos.figura)
    aula.resultado("2_cosseno", caminhos.cosseno, "cosseno", modelo=quem)
    aula.resultado("2_razao", caminhos.razao, "norma da saída / norma da entrada", modelo=quem)

    # O mesmo no GPT-2: o amarrado e a sua cópia solta nascem iguais, e o lote é o de cima.
    partes = (caminhos.vocabulario, *TOKENS.values(), SEMENTES[0])
    um, duas = (tr.novo_gpt2(*partes, amarrado=a) for a in (True, False))
    soltas = [duas.transformer.wte.weight, duas.lm_head.weight]  # (V, d), (V, d)
    da_entrada, da_saida = torch.autograd.grad(tr.perda(duas, caminhos.x, caminhos.y), soltas)
    amarrada = [um.transformer.wte.weight]  # (V, d)
    (tudo,) = torch.autograd.grad(tr.perda(um, caminhos.x, caminhos.y), amarrada)  # (V, d)
    dois = tr.dois_caminhos(um, caminhos.x, caminhos.y)
    e, s = dois.entrada.astype(np.float64), dois.saida.astype(np.float64)  # (V, d), (V, d)
    cosseno = (e * s).sum() / np.sqrt((e * e).sum() * (s * s).sum())  # (V, d) -> ()
    # Cada número soma uma parcela por token do lote; o cosseno, todos os números da matriz.
    limite = folga.soma(caminhos.x.numel(), (da_entrada.abs() + da_saida.abs()).max(), folga.EPS32)
    contas += [
        difere("GPT-2: entrada + saída", da_entrada + da_saida, tudo, limite),
        difere("GPT-2: a entrada, contra a forma rápida", da_entrada, dois.entrada, limite),
        difere("GPT-2: a saída, contra a forma rápida", da_saida, dois.saida, limite),
        difere("GPT-2: o cosseno entre as duas", cosseno, dois.cosseno, folga.soma(e.size)),
    ]
    aula.comparar("2_a_mao", "A matriz solta em duas contra a amarrada", contas)
    aula.codigo(tr.dois_caminhos)

# %% 3 · Amarrada contra solta
if aula.secao(3):
    aula.diga(
        "Solta, a saída tem matriz própria, e o modelo cresce |V|·d. Mesma semente, mesmos dados, "
        "mesmos passos; as duas matrizes da solta nascem cópias da amarrada."
    )
    # Contado da arquitetura. 24 % de 163 M, não de 124 M: a apostila mistura os dois.
    V, d, posicoes, camadas = 50257, 768, 1024, 12
    wte, wpe = V * d, posicoes * d
    bloco = 12 * d * d + 13 * d  # atenção 4d² + 4d, MLP 8d² + 5d, duas normas 4d
    amarrado = wte + wpe + camadas * bloco + 2 * d  # a última norma são mais 2d
    # Números publicados com uma ou duas casas: meia unidade da última.
    fracoes = [
        Conferencia("GPT-2: |V|·d em milhões", wte / 1e6, 38.6, 0.05),
        Conferencia("fração do GPT-2 amarrado (124,4 M)", wte / amarrado, 0.31, 0.005),
        Conferencia("fração do GPT-2 solto (163,0 M)", wte / (amarrado + wte), 0.237, 0.005),
    ]
    aula.conferir("3_economia", "O que se poupa no GPT-2 de verdade", fracoes)
    # Matrizes de modelos diferentes não se comparam número a número, e sim quem é vizinho de quem: a
    # ordem dos cossenos de todos os pares. Brinquedo: seis vetores, e os mesmos girados e mexidos.
    sorteio = np.random.default_rng(1)
    A, giro = sorteio.standard_normal((6, 2)), np.array([[0.6, -0.8], [0.8, 0.6]])  # (6, 2), (2, 2)
    B = A @ giro + 0.2 * sorteio.standard_normal((6, 2))  # (6, 2) @ (2, 2) -> (6, 2)
    pares, postos = [], []
    for M in (A, B):
        u = M - M.mean(0)  # (6, 2) - (2,) -> (6, 2)
        u = u / np.sqrt((u * u).sum(1, keepdims=True))  # (6, 2) / (6, 1) -> (6, 2)
        pares.append((u @ u.T)[np.triu_indices(6, 1)])  # (6, 6) -> (15,)
        posto = np.argsort(np.argsort(pares[-1]))  # (15,): 0 para o menor cosseno, 14 para o maior
        postos.append(posto - posto.mean())  # (15,) - () -> (15,)
    p, q = postos
    rho = p @ q / np.sqrt((p @ p) * (q @ q))  # Spearman: (15,) @ (15,) -> ()
    aula.diga(
        f"Brinquedo: girados e mexidos, os seis vetores guardam a vizinhança: ρ = {decimal(rho)}."
    )
    # ρ são três somas de 15 postos.
    contas = [
        difere(
            "parâmetros do GPT-2", amarrado, sum(arquitetura.formula(TAMANHOS["gpt2"]).values()), 0
        ),
        difere("ρ, contra o scipy", rho, spearmanr(*pares).statistic, folga.soma(3 * 15)),
        difere(
            "ρ, contra a forma rápida", rho, tr.semelhanca_de_geometria(A, B), folga.soma(3 * 15)
        ),
    ]
    aula.comparar("3_a_mao", "As contas da lição", contas)
    if corpus:
        # Pareados: a cada semente, uma amarrada e uma solta veem os mesmos lotes na mesma ordem.
        for semente in SEMENTES:
            for amarrado in (True, False):
                if (semente, amarrado) not in corridas:
                    corridas[semente, amarrado] = correr(semente, amarrado)
        disputa = exp.Disputa(corridas, corpus.frequentes)
        aula.quadro("3_perdas", disputa.quadro_das_perdas())
        aula.quadro("3_curvas", disputa.quadro_das_curvas())
        aula.figura("3_curvas", "validação de cada matriz, com a dispersão", disputa.figura)
        aula.quadro("3_semelhancas", disputa.quadro_das_semelhancas())
        aula.repare(
            "Press e Wolf (2017) dizem que a amarrada se parece com a de saída: compare as duas "
            "primeiras colunas."
        )
        aula.quadro("3_argumentos", disputa.quadro_dos_argumentos(caminhos))
        if len(SEMENTES) == 1:
            aula.diga("Uma semente só não diz se a diferença é acaso: rode sem `--rapido`.")
        entrada, saida, _ = disputa.semelhancas().mean(0).tolist()
        diferencas = disputa.finais(True) - disputa.finais(False)  # (s,) - (s,) -> (s,)
        aula.resultado("3_diferenca", float(diferencas.mean()), "nats por token", modelo="BPE")
        aula.resultado("3_como_a_entrada", entrada, "Spearman", modelo="BPE")
        aula.resultado("3_como_a_saida", saida, "Spearman", modelo="BPE")
        aula.codigo()
    else:
        aula.diga(
            "Este ato precisa treinar seis modelos, e para isso precisa do texto. Com ele: "
            "`python lab/02_treino.py --corpus PASTA --secao 3`"
        )

aula.terminar()
