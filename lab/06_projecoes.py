"""Capítulo 6 · Projeções: PCA, t-SNE e UMAP, com cuidado.

O que você vai ver: as mesmas palavras em três desenhos de duas dimensões; quanto cada um
distorce, em números; o que muda quando só a semente muda; ruído puro que também forma
aglomerados; e um veredito: que frases sobre a figura sobrevivem a todos os desenhos. No fim,
uma página interativa e os arquivos do Embedding Projector. Capítulo 6, seção 6.7.

Quanto demora: cerca de 1 minuto na primeira vez (uns 20 s são o UMAP se compilando); depois, 45 s.
Como rodar:    python lab/06_projecoes.py                            tudo
               python lab/06_projecoes.py --grupo animais --grupo cores --secao 2
               python lab/06_projecoes.py --arquivo meus_grupos.json
O que fica:    outputs/06_projecoes/ (relatorio.md, tabelas, figuras, interativo.html, *.tsv)
"""

# %% Botões: o que dá para mexer sem ler o resto
SORTEADOS = 20  # tokens ao acaso entre as palavras; --sorteados muda
PERPLEXIDADES = (5, 10, 20, 40)  # no t-SNE; no UMAP, o número de vizinhos
SEMENTES = range(6)  # quantas vezes repetir mudando só a semente
KS = (5, 10, 20)  # tamanhos de vizinhança das medidas de distorção
VIZINHOS_NA_PAGINA = 5  # quantos vizinhos verdadeiros a página mostra
SEMENTE = 2  # do sorteio dos tokens e do ruído
SECOES = {
    1: "Quanto cabe em duas dimensões",
    2: "Três desenhos das mesmas palavras",
    3: "A distorção, medida",
    4: "Só a semente mudou",
    5: "O começo decide o mapa",
    6: "O controle: ruído e rótulos sorteados",
    7: "O veredito",
    8: "Para levar: página interativa e Embedding Projector",
}

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula, inteiro_entre


def opcoes(p):
    p.add_argument("--grupo", action="append", help="só este grupo de palavras (pode repetir)")
    p.add_argument("--arquivo", help='um JSON seu: {"grupo": ["palavra", ...], ...}')
    p.add_argument(
        "--sorteados", type=inteiro_entre(0, 200), default=SORTEADOS, help="tokens ao acaso"
    )
    p.add_argument(
        "--perplexidade", type=inteiro_entre(2, 1000), action="append",
        help="perplexidade do t-SNE e vizinhos do UMAP (pode repetir)",
    )  # fmt: skip


aula = Aula("06_projecoes", __doc__, SECOES, opcoes)

import math

import numpy as np
from scipy.stats import rankdata
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from nucleo.base.caderno import Conferencia
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import folga, projecoes, vetores
from nucleo.licoes import l06_projecoes as exp
from nucleo.licoes import l06_projecoes_figuras as fig
from nucleo.modelos.tokens import visivel

modelo = aula.abrir_modelo()
arquivo, tok = aula.args.arquivo, modelo.tokenizador
grupos = exp.grupos_do_arquivo(arquivo) if arquivo else exp.grupos_para(tok)
grupos = exp.escolher_grupos(grupos, aula.args.grupo)
pontos = exp.montar(modelo, grupos, aula.args.sorteados, SEMENTE)
for aviso in pontos.avisos:
    aula.diga(f"Atenção: {aviso}.")
aula.quadro("pontos", exp.quadro_do_conjunto(pontos))
n, X = pontos.n, pontos.X.astype(np.float64)  # (n, d): cada linha com comprimento 1

# O que a pessoa pediu é conferido já; o que é padrão se ajusta ao número de pontos.
botoes = exp.escolher_botoes(aula.args.perplexidade, PERPLEXIDADES, n)
if not aula.args.perplexidade and len(botoes) < len(PERPLEXIDADES):
    aula.diga(f"Com {n} pontos só cabem as perplexidades {botoes}.")
ks = exp.ks_que_cabem(KS, n)
botao = botoes[len(botoes) // 2]  # o do meio, quando só um desenho aparece

# O UMAP é opcional: se faltar ou quebrar, o resto segue, e as tabelas dizem o que falta.
precisa = not aula.args.secao or set(aula.args.secao) - {1}
with aula.barra() as progresso:
    progresso("preparando o UMAP", 0, 1)
    sem_umap = projecoes.por_que_sem_umap() if precisa else "não foi preciso"
if precisa and sem_umap:
    aula.diga(f"**UMAP: fica de fora.** Ele {sem_umap}. PCA e t-SNE seguem.")
    aula.diga("Para tê-lo:  `python -m pip install -r requirements-opcionais.txt`")
corridas = projecoes.Corridas(pontos.X, sem_umap)


def desenhos():
    """Um desenho por método, com o botão do meio e a semente 0: {nome: (n, 2)}."""
    return {m: corridas.fazer(m, botao, 0, "pca") for m in corridas.metodos}


# %% 1 · Quanto cabe em duas dimensões
if aula.secao(1):
    # O centro, os eixos do mais largo ao mais estreito, e a parte da variância em cada um.
    def pca(Z):
        centro = np.mean(Z, axis=0)  # (n, d) -> (d,)
        _, s, eixos = np.linalg.svd(Z - centro, full_matrices=False)  # (n, d) -> (r,), (r, d)
        # s² é a soma dos quadrados ao longo de cada eixo: a parte da variância que ele leva.
        return centro, eixos, s**2 / np.sum(s**2)

    # Brinquedo: uma reta no espaço tem uma dimensão só, e a PCA a acha.
    reta = np.outer(np.arange(5.0), [1.0, 2.0, 2.0])  # (5,), (3,) -> (5, 3)
    uma = porcento(pca(reta)[2][0])
    aula.diga(f"Brinquedo: 5 pontos numa reta em 3-D: a 1ª componente explica {uma}.")
    # Entorte a reta num plano inclinado: agora são duas, e a sombra de duas ainda guarda tudo.
    torta = reta + np.outer([0.0, 1, 0, -1, 0], [2.0, 1, -2])  # (5, 3)
    centro, eixos, partes = pca(torta)
    sombra = (torta - centro) @ eixos[:2].T  # (5, 3) @ (3, 2) -> (5, 2)
    volta = sombra @ eixos[:2] + centro  # (5, 2) @ (2, 3) -> (5, 3)
    perda = np.linalg.norm(torta - volta, axis=1)  # (5, 3) -> (5,)
    linhas = np.column_stack([torta, sombra, perda])  # (5, 3), (5, 2), (5,) -> (5, 6)
    colunas = dict.fromkeys(["x", "y", "z", "1º eixo", "2º eixo", "o que se perdeu"], decimal)
    titulo = f"A reta entortada: dois eixos levam {' e '.join(map(porcento, partes[:2]))}"
    aula.tabela("1_brinquedo", titulo, colunas, linhas)

    # De verdade: os pontos, por SVD; a tabela inteira, pela mesma conta em blocos.
    centro, eixos, nossa = pca(X)
    Y = (X - centro) @ eixos[:2].T  # (n, d) @ (d, 2) -> (n, 2)
    inteira = projecoes.fracao_explicada(modelo.wte)  # (V, d) -> (d,)
    cabem = [k for k in (1, 2, 3, 10, 50, 100) if k <= modelo.d]
    linhas = [[k, np.sum(inteira[:k]), np.sum(nossa[:k])] for k in cabem]
    for meta in (0.5, 0.9):
        # Quantas componentes até a soma passar da meta.
        quantas = [1 + np.searchsorted(np.cumsum(f), meta) for f in (inteira, nossa)]
        linhas.append([f"para {porcento(meta, 0)}", *quantas])
    titulo = "Variância explicada pelas primeiras componentes"
    medidas = dict.fromkeys(["wte inteira", f"os {n} pontos"], exp.parte_ou_quantas)
    aula.tabela("1_variancia", titulo, {"componentes": str} | medidas, linhas)
    duas = float(np.sum(inteira[:2]))
    aula.resultado("wte_variancia_em_2", duas, "fração")
    aula.repare(
        f"duas componentes guardam {porcento(duas)} da wte inteira: a PCA que cabe na tela é "
        "quase nada do que há."
    )

    # A PCA é linear: o meio de metade dos pontos cai no meio das sombras deles.
    meio = (np.mean(X[::2], axis=0) - centro) @ eixos[:2].T  # (d,) @ (d, 2) -> (2,)
    torto = float(np.max(np.abs(meio - np.mean(Y[::2], axis=0))) / np.max(np.abs(Y)))
    aula.resultado("pca_erro_no_meio", torto, "sobre o tamanho do desenho")

    deles = PCA(2, svd_solver="full").fit(X)
    # O sinal de cada eixo é livre: antes de subtrair, os outros viram para o nosso lado.
    outros = [deles.transform(X), projecoes.pca(pontos.X)]
    biblioteca, nucleo = (np.max(np.abs(Z * np.sign(np.sum(Z * Y, axis=0)) - Y)) for Z in outros)
    fracoes = np.max(np.abs(deles.explained_variance_ratio_ - nossa[:2]))
    # Somas de n e de d parcelas, de números até umas 4 vezes o tamanho do desenho.
    somas, eixo = folga.soma(4 * (n + modelo.d)), exp.folga_dos_eixos(n, modelo.d, nossa)
    contra = [
        Conferencia("pontos da PCA", float(biblioteca), 0.0, eixo),
        Conferencia("variância explicada", float(fracoes), 0.0, somas),
        Conferencia("pontos da PCA do núcleo", float(nucleo), 0.0, eixo),
        Conferencia("o meio dos pontos cai no meio das sombras", torto, 0.0, somas),
    ]
    aula.comparar("1_pca", "A PCA feita à mão contra a biblioteca", contra)
    aula.codigo()

# %% 2 · Três desenhos das mesmas palavras
if aula.secao(2):
    # O botão, à mão: se um ponto alcança uma distância σ, quantos vizinhos pesam para ele?
    d2 = np.sum((X[1:] - X[0]) ** 2, axis=1)  # (n − 1, d) -> (n − 1,): do primeiro aos outros

    def peso_e_perplexidade(sigma):
        p = np.exp(-d2 / (2 * sigma**2))  # (n − 1,)
        p = p / np.sum(p)
        return np.max(p), math.exp(-np.sum(p * np.log(p)))  # exp da entropia: “quantos” de fato

    # O t-SNE procura o σ de cada ponto que dá a perplexidade pedida; o UMAP conta k vizinhos.
    baixo, alto = 0.1, 10.0
    while alto - baixo > 1e-6:
        sigma = (baixo + alto) / 2
        pouco = peso_e_perplexidade(sigma)[1] < botao
        baixo, alto = (sigma, alto) if pouco else (baixo, sigma)
    linhas = [[s, *peso_e_perplexidade(s)] for s in (0.1, 0.2, sigma, 10.0)]
    colunas = {"alcance σ": decimal, "peso do mais próximo": porcento, "perplexidade": decimal}
    titulo = f"Quantos dos outros {n - 1} pontos pesam para {pontos.nomes[0]}"
    aula.tabela("2_perplexidade", titulo, colunas, linhas)
    aula.diga(f"Perplexidade (e vizinhos do UMAP): {botao}. Início: PCA.")
    alt = "PCA, t-SNE e UMAP lado a lado"
    aula.figura("2_desenhos", alt, fig.lado_a_lado, pontos, desenhos(), modelo.nome)
    if sem_umap:
        aula.diga("Só há dois desenhos: falta o UMAP.")
    aula.repare("a PCA espalha, os outros dois juntam. Qual está certo? A figura não diz.")
    aula.codigo(projecoes.tsne, projecoes.umap)

# %% 3 · A distorção, medida
if aula.secao(3):
    # A si mesmo, −1: nem um gêmeo, que fica à distância zero, passa na frente.
    def distancias(Z):
        return projecoes.distancias(Z) - np.eye(len(Z))  # (n, d) -> (n, n)

    # De um ponto, pelas distâncias no espaço e no desenho: os k vizinhos que ele parece ter, o posto
    # verdadeiro de cada um, e quanto se paga por quem não é um dos k (Venna e Kaski 2001).
    def vizinhos_de(longe, perto, k):
        posto = np.argsort(
            np.argsort(longe, kind="stable")
        )  # (n,): 0 é ele mesmo, 1 o mais próximo
        vizinhos = np.argsort(perto, kind="stable")[1 : k + 1]  # (n,) -> (k,)
        return vizinhos, posto[vizinhos], np.maximum(posto[vizinhos] - k, 0)  # (n,) -> (k,) cada

    def confiancas(D, E, k):
        # Ninguém paga mais que pelos k últimos postos: (n − 1 − k) + … + (n − 2k).
        pior = k * (2 * len(D) - 3 * k - 1) / 2
        pagos = [np.sum(vizinhos_de(*par, k)[2]) for par in zip(D, E, strict=True)]
        return 1 - np.array(pagos) / pior  # (n, n), (n, n) -> (n,): 1 é não ter o que pagar

    # Brinquedo: 6 pontos em fila; o desenho traz o último para perto do primeiro.
    fila = distancias(np.arange(6.0)[:, None])  # (6, 1) -> (6, 6)
    dobrada = distancias(np.array([[0.0], [1], [2], [3], [4], [0.4]]))  # (6, 1) -> (6, 6)
    # A continuidade é a mesma conta com os papéis trocados: paga quem sumiu de perto.
    t, s = np.mean(confiancas(fila, dobrada, 2)), np.mean(confiancas(dobrada, fila, 2))
    aula.diga(
        f"Brinquedo: uma fila de 6 em que o último foi parar ao lado do primeiro: confiança "
        f"{decimal(t)} (vizinhos inventados), continuidade {decimal(s)} (vizinhos perdidos)."
    )

    # Um ponto só: aquele que o t-SNE mais engana.
    k, D, E = ks[0], distancias(X), distancias(desenhos()["t-SNE"])
    cada = confiancas(D, E, k)  # (n,)
    eu = np.argmin(cada)
    vizinhos, postos, multas = vizinhos_de(D[eu], E[eu], k)  # (k,) cada
    nome = pontos.nomes[eu]
    colunas = {"no t-SNE": inteiro, "vizinho": str, "no espaço": inteiro, "multa": inteiro}
    linhas = zip(range(1, k + 1), [pontos.nomes[j] for j in vizinhos], postos, multas, strict=True)
    aula.tabela("3_um_ponto", f"Os {k} vizinhos de {nome}, e o posto de verdade", colunas, linhas)
    aula.diga(
        f"Cada posto paga o que passa de {k}: a confiança de {nome} é {decimal(cada[eu])}. A do "
        f"desenho é a média dos pontos: {decimal(np.mean(cada))}."
    )

    # O piso de qualquer medida: pontos sorteados, que não sabem nada de X.
    todos = desenhos()
    todos["pontos ao acaso"] = np.random.default_rng(SEMENTE).standard_normal((n, 2))
    pares = np.triu_indices(n, 1)  # cada par uma vez: n(n − 1)/2 deles
    # Postos são inteiros: arredondam a média de n confianças, e as três somas da correlação.
    da_media, da_correlacao = folga.soma(n), folga.soma(3 * len(pares[0]))
    linhas, contra, globais = [], [], []
    for nome, Y in todos.items():
        E, difs = distancias(Y), []  # (n, 2) -> (n, n)
        # O global: quem está mais longe de quem? Correlação dos postos de todas as distâncias.
        global_ = np.corrcoef(rankdata(D[pares]), rankdata(E[pares]))[0, 1]  # (pares,) -> um número
        erro = np.abs(global_ - projecoes.correlacao(D, E))
        globais.append(Conferencia(f"correlação global em {nome}", float(erro), 0.0, da_correlacao))
        for k in ks:
            t, s = np.mean(confiancas(D, E, k)), np.mean(confiancas(E, D, k))
            postos = [vizinhos_de(*par, k)[1] for par in zip(D, E, strict=True)]  # n vezes (k,)
            ficam = np.mean(np.array(postos) <= k)
            linhas.append([nome, k, t, s, ficam, global_])
            aula.resultado(f"confianca_{nome}_k{k}", float(t), "fração")
            deles = [trustworthiness(*par, n_neighbors=k) for par in ((X, Y), (Y, X))]
            difs.append(np.abs(np.subtract(deles, [t, s])))  # (2,)
        for medida, pior in zip(("confiança", "continuidade"), np.max(difs, axis=0), strict=True):
            contra.append(Conferencia(f"{medida} em {nome}", float(pior), 0.0, da_media))
    if sem_umap:
        linhas.append([f"UMAP: {sem_umap}", *[None] * 5])
    colunas = {"desenho": str, "k": inteiro, "confiança": decimal, "continuidade": decimal}
    colunas |= {"vizinhos mantidos": porcento, "correlação global": decimal}
    aula.tabela("3_distorcao", "Quanto cada desenho distorce (1 é nada)", colunas, linhas)
    aula.repare(
        "leia cada número ao lado da última linha, a de pontos ao acaso. Os vizinhos se mantêm em "
        "parte; o global é outra conta."
    )
    aula.comparar("3_biblioteca", "Do zero contra o scikit-learn", contra + globais)
    aula.codigo()

# %% 4 · Só a semente mudou
grades = {}
if aula.pediu(4) or aula.pediu(7):
    with aula.barra() as progresso:
        for metodo in corridas.metodos[1:]:
            grades[metodo] = exp.grade(corridas, metodo, botoes, SEMENTES, progresso)
if aula.secao(4):
    # Um ponto só, à mão: os vizinhos dele em dois desenhos que só a semente separa.
    E = [projecoes.distancias(grades["t-SNE"][botao, s]) for s in SEMENTES[:2]]  # (n, n)
    perto = [np.argsort(e[0])[1 : ks[0] + 1] for e in E]  # (n,) -> (k,) cada
    ficam = np.size(np.intersect1d(*perto))
    aula.diga(
        f"De {pontos.nomes[0]}, no t-SNE {botao}: {ficam} dos {ks[0]} vizinhos da semente 0 seguem na "
        "semente 1. As tabelas tiram a média disto em todos os pontos e pares de sementes."
    )
    for metodo, feitos in grades.items():
        id_ = "4_" + metodo.replace("-", "").lower()
        alt = f"{metodo} em {len(feitos)} versões"
        aula.quadro(id_, exp.quadro_da_grade(pontos, metodo, feitos, ks[0]))
        aula.figura(id_, alt, fig.grade, pontos, metodo, feitos, modelo.nome)
    aula.repare(
        "os dados são os mesmos em todos os quadrinhos. Grupos viajam, giram e trocam de vizinho; "
        "o que se repete são as vizinhanças, não o mapa."
    )

# %% 5 · O começo decide o mapa
if aula.secao(5):
    # Brinquedo (Kobak e Linderman 2021): um círculo em 10 dimensões, com um pouco de ruído. A forma
    # global é conhecida; quem a rasga?
    t = np.linspace(0, 2 * np.pi, 200, endpoint=False)  # (200,)
    redondo = 0.02 * np.random.default_rng(SEMENTE).standard_normal((200, 10))
    redondo[:, :2] += np.stack([np.cos(t), np.sin(t)], axis=1)  # (200,), (200,) -> (200, 2)
    circulo = projecoes.Corridas(redondo.astype(np.float32), sem_umap)
    # Poucos vizinhos (5), como em dados grandes: cada ponto só enxerga o seu pedaço do arco.
    tres = list(SEMENTES)[:3]
    aula.figura("5_inicio", "o círculo com dois inícios", fig.inicios, circulo, 5, tres)
    casos = {"círculo": (circulo, 5), "palavras": (corridas, botao)}
    medidos = exp.medir_inicios(casos, tres, ks[0])
    colunas = {"pontos": str, "método": str, "início": str, "vizinhos mantidos": porcento}
    colunas |= {"correlação global": decimal, "concordam as sementes": decimal}
    aula.tabela("5_inicio", f"O começo e o global ({len(tres)} sementes)", colunas, medidos)
    for m in medidos:
        aula.resultado(f"global_{m.pontos}_{m.metodo}_{m.inicio}", m.global_, "correlação")
    # Foram medidos nesta ordem: caso a caso, método a método, e o início PCA antes do sorteado.
    globais = np.reshape([m.global_ for m in medidos], (len(casos), -1, 2))
    ganhos = np.mean(globais[..., 0] - globais[..., 1], axis=1)  # (casos, métodos) -> (casos,)
    for nome, ganho in zip(casos, ganhos, strict=True):
        aula.resultado(f"ganho_do_inicio_pca_{nome}", float(ganho), "correlação")
    aula.repare(
        f"o início PCA muda a correlação global em {decimal(ganhos[0])} no círculo e em "
        f"{decimal(ganhos[1])} nas palavras. O UMAP passou anos por mais global que o t-SNE "
        "só porque começava melhor (Kobak e Linderman 2021): compare as linhas de mesmo início."
    )
    aula.codigo()

# %% 6 · O controle: ruído e rótulos sorteados
if aula.secao(6) and len(pontos.grupos) < 3:
    aula.diga("Com menos de 3 grupos não há o que trocar: esta seção precisa de pelo menos 3.")
elif aula.pediu(6):
    # Ruído do mesmo tamanho, com o mesmo comprimento: nele não há nada para achar.
    sorteio = np.random.default_rng(SEMENTE)
    Z = sorteio.standard_normal(X.shape).astype(np.float32)  # (n, d)
    ruido = projecoes.Corridas(Z / np.linalg.norm(Z, axis=1, keepdims=True), sem_umap)
    ctl, quantos = exp.trocar_rotulos(pontos, sorteio), len(pontos.grupos)
    aula.quadro("6_ruido", exp.quadro_do_ruido(corridas, ruido, quantos, botao))
    aula.repare(
        "no ruído não há grupo nenhum, e o k-means acha aglomerados no desenho dele também. "
        "Meça a mesma partição no espaço, e peça que ela se repita com outra semente."
    )
    aula.quadro("6_rotulos", exp.quadro_dos_rotulos(pontos, corridas, ctl, botao, 5))
    # Embaralhados os rótulos, cada vizinho é um dos outros n − 1 pontos: dá para fazer sem sortear.
    g = np.bincount(pontos.rotulos[pontos.rotulos >= 0])  # (n,) -> (grupos,): quantos em cada um
    acaso = np.sum(g * (g - 1)) / (n - 1) / np.sum(g)
    aula.diga(f"A conta do acaso, sem sortear nada: {porcento(acaso)} de vizinhos do mesmo grupo.")
    aula.repare(
        f"a LDA vê os rótulos: com {modelo.d} dimensões e {ctl.treino.sum()} pontos, acerta "
        f"{porcento(ctl.acerto_treino, 0)} de rótulos sorteados. Nos pontos que ficaram de fora, "
        f"{porcento(ctl.acerto_fora, 0)}; o acaso daria {porcento(1 / quantos, 0)}."
    )
    quais = dict.fromkeys([("t-SNE", botoes[0]), ("t-SNE", botao), ("UMAP", botao)])
    feitos = {
        f"ruído: {m}, {b}": ruido.fazer(m, b, 0, "random") for m, b in quais if m in ruido.metodos
    }
    partes = [projecoes.aglomerados(ruido.X, Y, quantos, 0).partes for Y in feitos.values()]
    alt = "ruído e rótulos sorteados"
    aula.figura("6_controle", alt, fig.controle, ctl, feitos, partes, pontos.grupos)

# %% 7 · O veredito
if aula.secao(7):
    # Uma frase à mão, na PCA: de quantos pontos o vizinho mais próximo é o verdadeiro?
    def mais_perto(Z):
        fora = np.diag(np.full(n, np.inf))  # (n, n): ninguém é vizinho de si mesmo
        return np.argmin(projecoes.distancias(Z) + fora, axis=1)  # (n, n) -> (n,)

    acertos = np.mean(mais_perto(X) == mais_perto(corridas.fazer("PCA")))
    aula.diga(
        f"Uma frase à mão: na PCA, o vizinho mais próximo é o verdadeiro em {porcento(acertos)} dos "
        f"pontos: {'passa' if acertos >= 0.5 else 'não passa'} (pedimos metade). Agora todas, em todos."
    )
    frases = exp.veredito(pontos, corridas, grades, SEMENTE)
    aula.quadro("7_veredito", exp.quadro_do_veredito(frases, grades))
    if sem_umap:
        aula.diga("Falta a coluna do UMAP: o veredito vale só para PCA e t-SNE.")
    vivas = [f.texto for f in frases if f.sobrevive()]
    aula.resultado("frases_que_sobrevivem", len(vivas), "frases", de=len(frases))
    aula.repare(
        f"frases que sobrevivem: {len(vivas)} de {len(frases)}"
        + (f": {'; '.join(vivas)}. " if vivas else ". ")
        + "O desenho sugere perguntas; quem responde é a conta no espaço inteiro."
    )

# %% 8 · Para levar: página interativa e Embedding Projector
if aula.secao(8):
    from nucleo.licoes.l06_projecoes_pagina import pagina

    # Os vizinhos verdadeiros: o cosseno com o vocabulário inteiro, e não com os pontos do desenho.
    normas = np.linalg.norm(modelo.wte, axis=1)  # (V, d) -> (V,)
    cossenos = pontos.X @ modelo.wte.T / np.where(normas > 0, normas, 1)  # -> (n, V)
    nomeados = []
    for cosseno, eu in zip(cossenos, pontos.ids, strict=True):
        perto = vetores.mais_altos(cosseno, VIZINHOS_NA_PAGINA, (int(eu),))  # (V,) -> (k,)
        nomeados.append([(visivel(tok.texto(int(i))), float(cosseno[i])) for i in perto])
    html = pagina(pontos, desenhos(), nomeados, modelo.nome)
    aula.guardar("interativo.html", html, "abra no navegador: funciona sem internet")
    aula.guardar("vectors.tsv", exp.vetores_tsv(pontos), "vetores de comprimento 1")
    aula.guardar("metadata.tsv", exp.metadados_tsv(pontos), "token, grupo e id de cada linha")
    aula.repare(
        "os dois .tsv abrem no Embedding Projector (botão Load). Lá as mesmas perguntas valem."
    )

# %% Guardar tudo
aula.terminar()
