"""Apostila 06 · Extrapolação: quem lê mais longe do que treinou.

O que você vai ver: o capítulo diz que as senoides extrapolam, e aqui se mede. Seis modelos de
caracteres iguais em tudo, menos em como recebem a posição, treinados com 128 posições e avaliados
com até 1024; o RoPE ainda esticado por cinco receitas; e, ao lado, o que se publicou em grande.

Quanto demora: cerca de 1 minuto e meio com os pesos que vêm no repositório; com --rapido, uns 20 s.
Como rodar:    python lab/06_extrapolacao.py
               python lab/06_extrapolacao.py --rapido                      uma semente, três comprimentos
               python lab/06_extrapolacao.py --corpus PASTA --treinar      refaz os 18 modelos
               python lab/06_extrapolacao.py --corpus PASTA --treinar RoPE --semente 1
O que fica:    outputs/06_extrapolacao/ (relatorio.md, tabelas em CSV, figuras, resultado.json)
"""

# %% Botões (os do treino, que valem para os seis modelos, estão em nucleo/treino/extrapolacao.py)
BLOCO = 16  # posições juntas em cada ponto da curva por posição
RAPIDO = (128, 256, 1024)  # os comprimentos lidos com --rapido, que também usa uma semente só
SECOES = {
    1: "Os seis modelos, no comprimento em que treinaram",
    2: "Mais longe que o treino",
    3: "Onde, dentro da janela, a coisa quebra",
    4: "O RoPE esticado",
    5: "O que se publicou, e o que um modelo deste tamanho não mostra",
}

import os

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula, inteiro_entre


def opcoes(p):
    p.add_argument("--corpus", metavar="PASTA", help="pasta com os .txt, para --treinar")
    p.add_argument(
        "--treinar", nargs="*", metavar="ESQUEMA", help="treina de novo (todos, ou estes)"
    )
    p.add_argument("--semente", type=inteiro_entre(1, 3), action="append", help="só esta semente")
    p.add_argument(
        "--pesos", metavar="PASTA", help="onde moram os pesos (padrão: data/extrapolacao)"
    )
    p.add_argument("--rapido", action="store_true", help="uma semente e três comprimentos")


aula = Aula("06_extrapolacao", __doc__, SECOES, opcoes, usa_modelo=False)

from pathlib import Path

from nucleo.base.unidades import decimal
from nucleo.licoes import l06_extrapolacao as exp
from nucleo.licoes import l06_extrapolacao_figuras as fig
from nucleo.treino import extrapolacao as ex

pasta = Path(aula.args.pesos).expanduser() if aula.args.pesos else ex.PASTA
sementes = tuple(aula.args.semente or (ex.SEMENTES[:1] if aula.args.rapido else ex.SEMENTES))

# %% 0 · Treinar, se pedido: a mesma semente dá os mesmos lotes a todos os esquemas
treinar = aula.args.treinar is not None
if treinar:
    esquemas = ex.quais(aula.args.treinar)
    fita = ex.preparar(aula.args.corpus or os.environ.get("LAB_CORPUS"), pasta)  # (caracteres,)
    with aula.barra() as progresso:
        for semente in aula.args.semente or ex.SEMENTES:
            for esquema in esquemas:
                ex.guardar(ex.treinar(esquema, semente, fita, progresso), semente, pasta)

ficha = ex.ficha(pasta)
ids = ex.validacao(ficha["letras"])  # (caracteres + 1,)
# Só se lê o que as seções pedidas mostram: a 1 usa uma janela só, e a 4 é a única que estica.
# (Depois de treinar, tudo: as perdas de todos os comprimentos vão para a ficha.)
comprimentos = RAPIDO if aula.args.rapido and not treinar else ex.COMPRIMENTOS
if aula.args.secao == [1] and not treinar:
    comprimentos = comprimentos[:1]
with aula.barra() as progresso:
    medidas, esticadas = ex.avaliar(
        ids, sementes, pasta, progresso, comprimentos, esticar=aula.pediu(4)
    )
if faltam := set(ex.ESQUEMAS) - set(exp.nomes(medidas)):
    aula.diga(f"**Sem pesos para {', '.join(sorted(faltam))}**: ficam fora das tabelas.")
if treinar and not faltam and sementes == ex.SEMENTES:
    ficha |= {"perdas": exp.anotar(medidas)}
    ex.gravar_ficha(ficha, pasta)

# %% 1 · Os seis modelos
if aula.secao(1):
    # Só vale comparar esquemas de modelos que aprenderam: o 5-grama é a régua. Lido nas mesmas
    # janelas ele perde, como os modelos, o que ficou atrás; em texto corrido, não perde nada.
    aula.diga(exp.apresentar(ficha, sementes))
    no_treino = exp.contra_n_gramas(medidas, ficha)
    aula.quadro("1_no_treino", no_treino)
    aula.repare(exp.quem_perde(no_treino))

# %% 2 · Por comprimento
if aula.secao(2):
    # Os mesmos caracteres em todas as colunas; muda só o tamanho da janela em que são lidos.
    quadro = exp.por_comprimento(medidas, "Perda (nats por caractere), ± entre sementes", "esquema")
    aula.quadro("2_comprimentos", quadro)
    series, faixas = exp.curvas_por_comprimento(medidas)
    titulo = "Treinado em 128: quem lê mais longe?"
    aula.figura(
        "2_comprimentos",
        "perda contra comprimento",
        fig.por_comprimento,
        series,
        faixas,
        titulo,
        128,
    )
    for nome in exp.nomes(medidas):
        aula.resultado(f"delta_1024_{nome.lower()}", exp.variacao(medidas, nome, 1024), "nats")
    aula.repare(exp.resumir(medidas))
    if "perdas" in ficha:
        anotadas = exp.conferir_anotadas(medidas, ficha["perdas"], sementes)
        aula.comparar("2_anotadas", "Contra o que se anotou ao gravar os pesos", anotadas)

# %% 3 · Por posição
if aula.secao(3):
    # Os mesmos caracteres, lidos em janelas de 1024 e de 128: o texto se cancela.
    aula.quadro("3_efeito", exp.quadro_do_efeito(medidas))
    series, nomes = exp.curvas_do_efeito(medidas, BLOCO), exp.nomes(medidas)
    aula.figura("3_efeito", "efeito da janela longa por posição", fig.efeito, series, nomes, 128)
    aula.repare(
        "até 128 é zero: nada mudou. Depois, acima de zero o modelo teria ido melhor sem o contexto a "
        "mais. Os dentes a cada 128 são os caracteres que abririam uma janela curta, sem passado: onde a "
        "curva fica abaixo de zero o ganho é quase só esse, e não ler de longe (Press et al., 2021)."
    )

# %% 4 · O RoPE esticado
if aula.secao(4) and esticadas:
    # Os pesos são os mesmos; mudam as frequências, e cada coluna usa o fator do seu comprimento.
    titulo = "RoPE treinado em 128, frequências mudadas sem retreinar"
    aula.quadro("4_esticado", exp.por_comprimento(esticadas, titulo, "receita"))
    series, faixas = exp.curvas_por_comprimento(esticadas)
    titulo = "O mesmo RoPE, com as frequências esticadas"
    aula.figura(
        "4_esticado", "perda do RoPE por receita", fig.por_comprimento, series, faixas, titulo, 128
    )
    melhor = min(exp.nomes(esticadas), key=lambda nome: exp.variacao(esticadas, nome, 1024))
    aula.resultado("melhor_receita_1024", melhor)
    aula.resultado("delta_1024_esticado", exp.variacao(esticadas, melhor, 1024), "nats")
    custo = exp.media(esticadas["NTK, fator 8", 128]) - exp.media(esticadas["sem esticar", 128])
    aula.repare(
        f"em 1024, a melhor receita é “{melhor}” ({decimal(exp.variacao(esticadas, melhor, 1024))} nats "
        f"sobre o treino). Um fator só para tudo (NTK, fator 8) já custa {decimal(custo)} em 128, "
        "onde não era preciso esticar: é o que o dinâmico evita."
    )

# %% 5 · O publicado
if aula.secao(5):
    # Números de artigos, de data/extrapolacao/publicados.json: nenhum deles é nosso.
    aula.quadro("5_press", exp.ao_lado_do_publicado(medidas))
    aula.quadro("5_haviv", exp.publicado("haviv"))
    aula.quadro("5_kazemnejad", exp.publicado("kazemnejad"))
    aula.repare(exp.o_que_nao_se_ve(medidas))

# %% Guardar tudo
aula.terminar()
