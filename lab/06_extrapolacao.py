"""Apostila 06 · Extrapolação: quem lê mais longe do que treinou.

O capítulo diz que as senoides extrapolam. Aqui se mede: seis modelos de caracteres iguais em tudo,
menos em como recebem a posição, treinados com 128 posições e avaliados com até 1024; o RoPE ainda
esticado por cinco receitas; e, ao lado, o que se publicou com modelos grandes.

Quanto demora: cerca de 1 minuto com os pesos que vêm no repositório; com --rapido, uns 20 s.
Como rodar:    python lab/06_extrapolacao.py
               python lab/06_extrapolacao.py --rapido                      uma semente só
               python lab/06_extrapolacao.py --corpus PASTA --treinar      refaz os 18 modelos
               python lab/06_extrapolacao.py --corpus PASTA --treinar RoPE --semente 1
O que fica:    outputs/06_extrapolacao/ (relatorio.md, tabelas em CSV, figuras, resultado.json)
"""

# %% Botões: o que dá para mexer sem ler o resto
JANELA = 32  # posições juntas em cada ponto da curva por posição
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
    p.add_argument("--rapido", action="store_true", help="uma semente só")


aula = Aula("06_extrapolacao", __doc__, SECOES, opcoes, usa_modelo=False)

from pathlib import Path

from nucleo import experimentos_extrapolacao as exp
from nucleo import extrapolacao as ex
from nucleo.graficos import curvas
from nucleo.unidades import decimal

pasta = Path(aula.args.pesos).expanduser() if aula.args.pesos else ex.PASTA
sementes = tuple(aula.args.semente or (ex.SEMENTES[:1] if aula.args.rapido else ex.SEMENTES))

# %% 0 · Treinar, se pedido: a mesma semente dá os mesmos lotes a todos os esquemas
if aula.args.treinar is not None:
    esquemas = ex.quais(aula.args.treinar)
    fita = ex.preparar(aula.args.corpus or os.environ.get("LAB_CORPUS"), pasta)  # (caracteres,)
    with aula.barra() as progresso:
        for semente in aula.args.semente or ex.SEMENTES:
            for esquema in esquemas:
                ex.guardar(ex.treinar(esquema, semente, fita, progresso), semente, pasta)

ficha = ex.ficha(pasta)
ids = ex.validacao(ficha["letras"], pasta)  # (caracteres + 1,)
with aula.barra() as progresso:
    medidas, esticadas = ex.avaliar(ids, sementes, pasta, progresso)
if faltam := set(ex.ESQUEMAS) - set(exp.nomes(medidas)):
    aula.diga(f"**Sem pesos para {', '.join(sorted(faltam))}**: ficam fora das tabelas.")
if aula.args.treinar is not None and not faltam and sementes == ex.SEMENTES:
    ficha |= {"perdas": exp.anotar(medidas)}
    ex.gravar_ficha(ficha, pasta)

# %% 1 · Os seis modelos
if aula.secao(1):
    aula.diga(exp.apresentar(ficha, sementes))
    no_treino = exp.contra_n_gramas(medidas, ficha)
    aula.quadro("1_no_treino", no_treino)
    aula.repare(exp.quem_perde(no_treino))

# %% 2 · Por comprimento
if aula.secao(2):
    quadro = exp.por_comprimento(medidas, "Perda (nats por caractere), ± entre sementes", "esquema")
    aula.quadro("2_comprimentos", quadro)
    series, faixas = exp.curvas_por_comprimento(medidas)
    rotulos = ("Treinado em 128: quem lê mais longe?", "caracteres na janela", "nats por caractere")
    aula.figura(
        "2_comprimentos",
        "perda contra comprimento",
        curvas,
        series,
        *rotulos,
        True,
        False,
        "o",
        faixas,
    )
    for nome in exp.nomes(medidas):
        aula.resultado(f"delta_1024_{nome.lower()}", exp.variacao(medidas, nome, 1024), "nats")
    aula.repare(exp.resumir(medidas))
    if "perdas" in ficha and sementes == ex.SEMENTES:
        anotadas = exp.conferir_anotadas(medidas, ficha["perdas"])
        aula.comparar("2_anotadas", "Contra o que se anotou ao gravar os pesos", anotadas)

# %% 3 · Por posição
if aula.secao(3):
    aula.quadro("3_posicoes", exp.faixas_de_posicao(medidas))
    series = exp.curvas_por_posicao(medidas, JANELA)
    rotulos = ("A perda ao longo de uma janela de 1024", "posição na janela", "nats por caractere")
    aula.figura("3_posicoes", "perda contra a posição", curvas, series, *rotulos)
    aula.repare(
        "a média de uma janela longa esconde: os primeiros 128 lugares continuam bons. É depois do "
        "comprimento de treino que cada curva diz quem sabe estar ali."
    )

# %% 4 · O RoPE esticado
if aula.secao(4) and esticadas:
    titulo = "RoPE treinado em 128, frequências mudadas sem retreinar"
    aula.quadro("4_esticado", exp.por_comprimento(esticadas, titulo, "receita"))
    series, faixas = exp.curvas_por_comprimento(esticadas)
    rotulos = ("O mesmo RoPE, esticado", "caracteres na janela", "nats por caractere")
    aula.figura(
        "4_esticado",
        "perda do RoPE por receita",
        curvas,
        series,
        *rotulos,
        True,
        False,
        "o",
        faixas,
    )
    melhor = min(exp.nomes(esticadas), key=lambda nome: exp.variacao(esticadas, nome, 1024))
    aula.resultado("melhor_receita_1024", melhor)
    fixo = exp.media_e_faixa(esticadas["NTK, fator 8", 128])[0]
    custo = fixo - exp.media_e_faixa(esticadas["sem esticar", 128])[0]
    aula.repare(
        f"em 1024, a melhor receita é «{melhor}» ({decimal(exp.variacao(esticadas, melhor, 1024))} nats "
        f"sobre o treino). Um fator só para tudo (NTK, fator 8) já custa {decimal(custo)} em 128, "
        "onde não era preciso esticar: é o que o dinâmico evita."
    )

# %% 5 · O publicado
if aula.secao(5):
    aula.quadro("5_press", exp.ao_lado_do_publicado(medidas))
    aula.quadro("5_haviv", exp.publicado("haviv"))
    aula.quadro("5_kazemnejad", exp.publicado("kazemnejad"))
    aula.repare(
        "um modelo de duas camadas e caracteres mostra onde cada esquema quebra. Não mostra o que um "
        "grande faz com contexto longo: lembrar um nome, achar um trecho, raciocinar."
    )

# %% Guardar tudo
aula.terminar()
