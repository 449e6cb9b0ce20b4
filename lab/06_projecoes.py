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

import numpy as np

from nucleo.base.unidades import decimal, porcento
from nucleo.contas import projecoes
from nucleo.licoes import l06_projecoes as exp
from nucleo.licoes import l06_projecoes_figuras as fig
from nucleo.modelos.tokens import visivel

modelo = aula.abrir_modelo()
grupos = (
    exp.grupos_do_arquivo(aula.args.arquivo)
    if aula.args.arquivo
    else exp.grupos_para(modelo.tokenizador)
)
grupos = exp.escolher_grupos(grupos, aula.args.grupo)
pontos = exp.montar(modelo, grupos, aula.args.sorteados, SEMENTE)
for aviso in pontos.avisos:
    aula.diga(f"Atenção: {aviso}.")
aula.quadro("pontos", exp.quadro_do_conjunto(pontos))

# O que a pessoa pediu é conferido já; o que é padrão se ajusta ao número de pontos.
botoes = list(dict.fromkeys(aula.args.perplexidade or ())) or exp.botoes_que_cabem(
    PERPLEXIDADES, pontos.n
)
exp.conferir_botoes(botoes, pontos.n)
if not aula.args.perplexidade and len(botoes) < len(PERPLEXIDADES):
    aula.diga(f"Com {pontos.n} pontos só cabem as perplexidades {botoes}.")
ks = exp.ks_que_cabem(KS, pontos.n)
botao = botoes[len(botoes) // 2]  # o do meio, quando só um desenho aparece

# O UMAP é opcional: se faltar ou quebrar, o resto segue, e as tabelas dizem o que falta.
precisa = not aula.args.secao or set(aula.args.secao) - {1}
with aula.barra() as progresso:
    progresso("preparando o UMAP", 0, 1)
    sem_umap = projecoes.por_que_sem_umap() if precisa else "não foi preciso"
    progresso("preparando o UMAP", 1, 1)
if precisa and sem_umap:
    aula.diga(f"**UMAP: fica de fora.** Ele {sem_umap}. PCA e t-SNE seguem.")
    aula.diga("Para tê-lo:  `python -m pip install -r requirements-opcionais.txt`")
corridas = projecoes.Corridas(pontos.X, sem_umap)


def desenhos(inicio="pca"):
    """Um desenho por método, com o botão do meio e a semente 0: {nome: (n, 2)}."""
    return {m: corridas.fazer(m, botao, 0, inicio) for m in corridas.metodos}


# %% 1 · Quanto cabe em duas dimensões
if aula.secao(1):
    # Brinquedo: uma reta no espaço tem uma dimensão só, e a PCA a acha.
    reta = np.outer(np.arange(5.0), [1.0, 2.0, 2.0])  # (5, 3)
    parte = projecoes.fracao_explicada(reta)[0]
    aula.diga(f"Brinquedo: 5 pontos numa reta em 3-D: a 1ª componente explica {porcento(parte)}.")

    quadro = exp.variancia(modelo, pontos)
    aula.quadro("1_variancia", quadro)
    duas = quadro.linhas[1][1]
    aula.resultado("wte_variancia_em_2", duas, "fração")
    aula.repare(
        f"duas componentes guardam {porcento(duas)} da wte inteira: a PCA que cabe na tela é "
        "quase nada do que há."
    )
    aula.comparar("1_pca", "A PCA feita à mão contra a biblioteca", exp.conferir_pca(pontos))
    aula.codigo(projecoes.fracao_explicada)

# %% 2 · Três desenhos das mesmas palavras
if aula.secao(2):
    aula.diga(f"Perplexidade (e vizinhos do UMAP): {botao}. Início: PCA.")
    aula.figura(
        "2_desenhos",
        "PCA, t-SNE e UMAP lado a lado",
        fig.lado_a_lado,
        pontos,
        desenhos(),
        modelo.nome,
    )
    if sem_umap:
        aula.diga("Só há dois desenhos: falta o UMAP.")
    aula.repare("a PCA espalha, os outros dois juntam. Qual está certo? A figura não diz.")
    aula.codigo(projecoes.tsne, projecoes.umap)

# %% 3 · A distorção, medida
if aula.secao(3):
    # Brinquedo: 6 pontos em fila; o desenho traz o último para perto do primeiro.
    fila = projecoes.distancias(np.arange(6.0)[:, None])  # (6, 6)
    dobrada = projecoes.distancias(np.array([[0.0], [1], [2], [3], [4], [0.4]]))
    t, s = projecoes.confianca(fila, dobrada, 2), projecoes.continuidade(fila, dobrada, 2)
    aula.diga(
        f"Brinquedo: uma fila de 6 em que o último foi parar ao lado do primeiro: confiança "
        f"{decimal(t)} (vizinhos inventados), continuidade {decimal(s)} (vizinhos perdidos)."
    )

    todos = desenhos() | {"pontos ao acaso": exp.ao_acaso(pontos.n, SEMENTE)}
    quadro = exp.distorcao(pontos, todos, ks)
    for desenho, k, confianca, *_ in quadro.linhas:
        aula.resultado(f"confianca_{desenho}_k{k}", confianca, "fração")
    if sem_umap:
        quadro.linhas.append([f"UMAP: {sem_umap}", *[None] * 5])
    aula.quadro("3_distorcao", quadro)
    aula.repare(
        "leia cada número ao lado da última linha, a de pontos ao acaso. Os vizinhos se mantêm em "
        "parte; o global é outra conta."
    )
    if ks:
        contra = exp.conferir_confianca(pontos, todos, ks)
        aula.comparar("3_biblioteca", "Do zero contra o scikit-learn", contra)
    aula.codigo(projecoes.confianca, projecoes.sobreposicao)

# %% 4 · Só a semente mudou
grades = {}
if any(aula.pediu(s) for s in (4, 7)):
    with aula.barra() as progresso:
        for metodo in corridas.metodos[1:]:
            grades[metodo] = exp.grade(corridas, metodo, botoes, SEMENTES, progresso)
if aula.secao(4):
    for metodo, feitos in grades.items():
        id_ = metodo.replace("-", "").lower()
        aula.quadro(f"4_{id_}", exp.quadro_da_grade(pontos, metodo, feitos, ks[0] if ks else 1))
        aula.figura(
            f"4_{id_}",
            f"{metodo} em {len(feitos)} versões",
            fig.grade,
            pontos,
            metodo,
            feitos,
            modelo.nome,
        )
    aula.repare(
        "os dados são os mesmos em todos os quadrinhos. Grupos viajam, giram e trocam de vizinho; "
        "o que se repete são as vizinhanças, não o mapa."
    )

# %% 5 · O começo decide o mapa
if aula.secao(5):
    # Brinquedo: um círculo em 10 dimensões. A forma global é conhecida; quem a rasga?
    # Poucos vizinhos (5), como em dados grandes: cada ponto só enxerga o seu pedaço do arco.
    circulo = projecoes.Corridas(projecoes.circulo(200, SEMENTE), sem_umap)
    tres = list(SEMENTES)[:3]
    aula.figura("5_inicio", "o círculo com dois inícios", fig.inicios, circulo, 5, tres)
    casos = {"círculo": (circulo, 5), "palavras": (corridas, botao)}
    quadro = exp.quadro_do_inicio(casos, tres, ks[0] if ks else 1)
    aula.quadro("5_inicio", quadro)
    for nome, metodo, inicio, _, global_, _ in quadro.linhas:
        aula.resultado(f"global_{nome}_{metodo}_{inicio}", global_, "correlação")
    ganhos = exp.ganho_do_inicio(quadro)
    for nome, ganho in ganhos.items():
        aula.resultado(f"ganho_do_inicio_pca_{nome}", ganho, "correlação")
    aula.repare(
        f"o início PCA muda a correlação global em {decimal(ganhos['círculo'])} no círculo e em "
        f"{decimal(ganhos['palavras'])} nas palavras. O UMAP passou anos por mais global que o t-SNE "
        "só porque começava melhor (Kobak e Linderman 2021): compare as linhas de mesmo início."
    )
    aula.codigo(projecoes.circulo)

# %% 6 · O controle: ruído e rótulos sorteados
if aula.secao(6):
    ctl = exp.controle(pontos, sem_umap, SEMENTE)
    if ctl is None:
        aula.diga("Com menos de 3 grupos não há o que trocar: esta seção precisa de pelo menos 3.")
    else:
        aula.quadro("6_ruido", exp.quadro_do_ruido(pontos, corridas, ctl, botao, 0))
        aula.repare(
            "no ruído não há grupo nenhum, e o k-means acha aglomerados no desenho dele também. "
            "Meça a mesma partição no espaço, e peça que ela se repita com outra semente."
        )
        aula.quadro("6_rotulos", exp.quadro_dos_rotulos(pontos, corridas, ctl, botao, 5, 0))
        aula.repare(
            f"a LDA vê os rótulos: com {modelo.d} dimensões e {ctl.treino.sum()} pontos, acerta "
            f"{porcento(ctl.acerto_treino, 0)} de rótulos sorteados. Nos pontos que ficaram de fora, "
            f"{porcento(ctl.acerto_fora, 0)}; o acaso daria {porcento(1 / len(pontos.grupos), 0)}."
        )
        quais = [("t-SNE", botoes[0]), ("t-SNE", botao), ("UMAP", botao)]
        ruido = {
            f"ruído: {m}, {b}": ctl.ruido.fazer(m, b, 0, "random")
            for m, b in dict.fromkeys(quais)
            if m in corridas.metodos
        }
        partes = [
            projecoes.aglomerados(ctl.ruido.X, Y, len(pontos.grupos), 0).partes
            for Y in ruido.values()
        ]
        aula.figura(
            "6_controle",
            "ruído e rótulos sorteados",
            fig.controle,
            ctl,
            ruido,
            partes,
            pontos.grupos,
        )

# %% 7 · O veredito
if aula.secao(7):
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

    perto = exp.vizinhos_verdadeiros(modelo, pontos, VIZINHOS_NA_PAGINA)
    texto = modelo.tokenizador.texto
    nomeados = [[(visivel(texto(i)), x) for i, x in lista] for lista in perto]
    aula.guardar(
        "interativo.html", pagina(pontos, desenhos(), nomeados, modelo.nome),
        "abra no navegador: funciona sem internet",
    )  # fmt: skip
    aula.guardar("vectors.tsv", exp.vetores_tsv(pontos), "vetores de comprimento 1")
    aula.guardar("metadata.tsv", exp.metadados_tsv(pontos), "token, grupo e id de cada linha")
    aula.repare(
        "os dois .tsv abrem no Embedding Projector (botão Load). Lá as mesmas perguntas valem."
    )

# %% Guardar tudo
aula.terminar()
