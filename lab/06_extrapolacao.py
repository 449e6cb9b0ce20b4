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

import math
from pathlib import Path

import numpy as np
import torch

from nucleo.base.caderno import Conferencia
from nucleo.base.unidades import contado, decimal, inteiro, porcento
from nucleo.contas import folga, rope, vieses
from nucleo.licoes import l06_extrapolacao as exp
from nucleo.licoes import l06_extrapolacao_figuras as fig
from nucleo.treino import extrapolacao as ex
from nucleo.treino.ngramas import KneserNey

pasta = Path(os.path.expanduser(aula.args.pesos)) if aula.args.pesos else ex.PASTA
sementes = tuple(aula.args.semente or (ex.SEMENTES[:1] if aula.args.rapido else ex.SEMENTES))
m, TREINO, LONGO = ex.MEDIDAS, ex.MEDIDAS.treino, ex.COMPRIMENTOS[-1]

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
    # {(esquema, comprimento): (sementes, caracteres)}, a perda de cada caractere em nats
    medidas, esticadas = ex.avaliar(
        ids, sementes, pasta, progresso, comprimentos, esticar=aula.pediu(4)
    )
nomes = exp.nomes(medidas)
if faltam := set(ex.ESQUEMAS) - set(nomes):
    aula.diga(f"**Sem pesos para {', '.join(sorted(faltam))}**: ficam fora das tabelas.")
if treinar and not faltam and sementes == ex.SEMENTES:
    ficha |= {"perdas": exp.anotar(medidas)}
    ex.gravar_ficha(ficha, pasta)

# %% 1 · Os seis modelos
if aula.secao(1):
    aula.diga(
        f"Seis esquemas × {contado(len(sementes), 'semente')}: d {m.d}, {m.camadas} camadas, "
        f"{m.cabecas} cabeças, e um token de início no lugar do primeiro caractere; "
        f"{inteiro(ficha['passos'])} passos de {ficha['lote']} × {TREINO} caracteres de "
        f"{len(ficha['obras'])} romances ({inteiro(ficha['caracteres_de_treino'])} caracteres). "
        f"Avaliação: {inteiro(ficha['caracteres_avaliados'])} caracteres de um conto nosso, que "
        "nenhum viu."
    )
    # Brinquedo: a chance que um modelo deu a cada uma das quatro letras que vieram de fato.
    chances = np.array([0.5, 0.25, 0.5, 0.125])  # (4,)
    perda = np.mean(-np.log(chances))  # (4,) -> um número, em nats
    aula.diga(
        f"Brinquedo: chances {'; '.join(decimal(c) for c in chances)} dão perda {decimal(perda)} "
        f"nats; exp dela é a perplexidade, {decimal(np.exp(perda))}: hesitar entre tantas letras."
    )

    # A régua, num brinquedo: um bigrama de Kneser-Ney. De cada contagem tira-se meio, e o que sobra
    # vai para a letra conforme o número de letras diferentes que ela costuma seguir.
    letras, fita = np.unique(list("abracadabra"), return_inverse=True)  # (V,), (T,)
    V, D = len(letras), 0.5
    vezes = np.zeros((V, V))
    np.add.at(vezes, (fita[:-1], fita[1:]), 1)  # (T − 1,), (T − 1,) -> (V, V): anterior, seguinte
    segue = np.sum(vezes > 0, axis=0)  # (V, V) -> (V,): de quantas letras diferentes ela vem
    sobra = D * np.sum(segue > 0) / V  # o desconto das letras, repartido por igual
    solta = (np.maximum(segue - D, 0) + sobra) / np.sum(segue)  # (V,): a chance sem contexto
    sobra = D * np.sum(vezes > 0, axis=1, keepdims=True)  # (V, V) -> (V, 1)
    total = np.sum(vezes, axis=1, keepdims=True)  # (V, V) -> (V, 1)
    bigrama = (np.maximum(vezes - D, 0) + sobra * solta) / total  # (V, V): cada linha soma 1
    a_mao = np.mean(-np.log(bigrama[fita[:-1], fita[1:]]))  # (T − 1,) -> um número
    aula.diga(
        f"Brinquedo: em “abracadabra”, depois de a vem b com chance {porcento(bigrama[0, 1])}; o "
        f"bigrama perde {decimal(a_mao)} nats por letra, e adivinhar por igual, {decimal(np.log(V))}."
    )
    # Uma chance são umas dez contas, e a média soma T − 1 logaritmos delas.
    da_perda, erro = folga.soma(10 * len(fita), a_mao), np.sum(bigrama, axis=1) - 1  # (V,)
    contra = [
        Conferencia("bigrama", abs(a_mao - KneserNey(fita, V, 2).perda_media(fita)), 0, da_perda),
        Conferencia("linhas que somam 1", np.max(np.abs(erro)), 0, folga.soma(10 * V)),
    ]
    aula.comparar("1_bigrama", "O bigrama à mão contra o Kneser-Ney do núcleo", contra)

    # Só vale comparar esquemas de modelos que aprenderam: o 5-grama é a régua. Lido nas mesmas
    # janelas ele perde, como os modelos, o que ficou atrás; em texto corrido, não perde nada.
    alvos = [ficha["perda_5_grama"][como] for como in (str(TREINO), "corrido")]
    linhas, vence = [], {}
    for nome in nomes:
        por_semente = torch.mean(medidas[nome, TREINO].double(), dim=-1)  # (s, caracteres) -> (s,)
        pior, melhor = torch.max(por_semente), torch.min(por_semente)
        # O ± é meia distância entre as sementes. Só vence quem vence com todas: decide a pior.
        perda = exp.ComFaixa(torch.mean(por_semente), (pior - melhor) / 2)
        vence[nome] = [bool(pior < alvo) for alvo in alvos]
        linhas.append([nome, perda, *alvos, *("sim" if v else "não" for v in vence[nome])])
    colunas = {"esquema": str, "perda": exp.ComFaixa.texto, "5-grama": decimal}
    colunas |= {"5-grama, texto corrido": decimal, "vence o 5-grama": str, "vence o corrido": str}
    titulo = f"No comprimento de treino ({TREINO}), nats por caractere"
    aula.tabela("1_no_treino", titulo, colunas, linhas)
    perdem = [nome for nome in nomes if not vence[nome][0]]
    corrido = [nome for nome in nomes if not vence[nome][1]]
    if perdem:
        aula.repare(
            f"não vence o 5-grama, neste tamanho e com este treino: {' nem '.join(perdem)}. O que vem "
            "adiante sobre quem perde se lê com essa ressalva."
        )
    else:
        resto = "Vencem até o de texto corrido, que não perde contexto no começo das janelas."
        if corrido:
            resto = (
                "O 5-grama de texto corrido não perde contexto nenhum no começo das janelas, e esse "
                f"ainda ganha de {' e de '.join(corrido)}."
            )
        aula.repare(
            "todos vencem o 5-grama lido nas mesmas janelas: usam mais que os quatro caracteres "
            f"anteriores. {resto}"
        )
    # As mesmas perdas em perplexidade (entre quantas letras se hesita) e em bits por letra.
    perdas = [(nome, float(exp.media(medidas[nome, TREINO]))) for nome in nomes]
    perdas.append(("5-grama", alvos[0]))
    linhas = [[nome, math.exp(perda), perda / math.log(2)] for nome, perda in perdas]
    colunas = {"esquema": str, "perplexidade": decimal, "bits por caractere": decimal}
    aula.tabela("1_perplexidade", f"As mesmas perdas, em {TREINO}", colunas, linhas)
    aula.codigo()

# %% 2 · Por comprimento
if aula.secao(2):
    # Brinquedo: o que cada esquema põe na nota de quem está a δ posições, dentro e fora do treino.
    delta = torch.arange(LONGO)  # (δ,)
    alibi = -(2.0 ** (-8 / m.cabecas)) * delta  # (δ,): a cabeça 1, uma reta que não acaba
    metade, limite = (
        m.n_baldes // 2,
        128,
    )  # T5: metade dos baldes é exata, o resto vai em log até 128
    em_log = metade + torch.log(delta / metade) / math.log(limite / metade) * metade  # (δ,)
    balde = torch.where(delta < metade, delta, em_log.clamp(0, m.n_baldes - 1).long())  # (δ,)
    lento = 10_000.0 ** (-(m.d_cabeca - 2) / m.d_cabeca)  # RoPE: o par que gira mais devagar
    graus = torch.rad2deg(delta * lento)  # (δ,)
    linhas = [[d, alibi[d], balde[d], graus[d]] for d in (1, 16, TREINO - 1, TREINO, LONGO - 1)]
    colunas = {"distância": inteiro, "ALiBi soma": decimal, "balde do T5": inteiro}
    colunas |= {"RoPE gira o par lento (graus)": decimal}
    aula.tabela("2_brinquedo", f"À distância δ (no treino, até {TREINO - 1})", colunas, linhas)
    _, sen = rope.tabelas(LONGO, torch.tensor([lento]))  # (δ, 1)
    deles = vieses.vies_alibi(m.cabecas, LONGO)[0, -1].flip(0)  # (H, T, T) -> (T,): a última linha
    contra = [
        Conferencia("ALiBi", float((deles - alibi).abs().max()), 0.0, 0.0),
        Conferencia("balde do T5", float((vieses.balde_t5(-delta) - balde).abs().max()), 0.0, 0.0),
        # Ângulos em float32, do par mais lento: até δ·lento radianos.
        Conferencia(
            "seno do RoPE",
            float((sen[:, 0] - torch.sin(delta * lento)).abs().max()),
            0.0,
            folga.angulo(LONGO * lento, folga.EPS32),
        ),  # fmt: skip
    ]
    aula.comparar("2_a_mao", "À mão contra o que os modelos usam", contra)

    # Os mesmos caracteres em todas as colunas; muda só o tamanho da janela em que são lidos.
    quadro = exp.por_comprimento(medidas, "Perda (nats por caractere), ± entre sementes", "esquema")
    aula.quadro("2_comprimentos", quadro)
    titulo, alt = "Treinado em 128: quem lê mais longe?", "perda contra comprimento"
    aula.figura("2_comprimentos", alt, fig.por_comprimento, exp.curvas(medidas), titulo, TREINO)
    deltas = {nome: exp.variacao(medidas, nome, LONGO) for nome in nomes}
    for nome, muda in deltas.items():
        aula.resultado(f"delta_1024_{nome.lower()}", muda, "nats")
    vivos = sorted((muda, nome) for nome, muda in deltas.items() if muda is not None)
    lista = ", ".join(f"{nome} {'+' if x > 0 else ''}{decimal(x, 2)}" for x, nome in vivos)
    acaba = " A tabela aprendida acaba em 128." if "aprendido" in deltas else ""
    aula.repare(f"de 128 a 1024 a perda muda assim (nats): {lista}.{acaba}")
    if vivos:
        # Uma janela à mão, com o modelo que mais piora: o log-softmax e a letra que veio.
        pior = vivos[-1][1]
        janela = ids[: LONGO + 1]  # (L + 1,)
        with torch.inference_mode():
            logits = ex.abrir(pior, sementes[0], pasta)(janela[None, :-1])[0]  # (1, L) -> (L, V)
        chances = logits - torch.logsumexp(logits, -1, keepdim=True)  # (L, V), em logaritmo
        perda = -chances[torch.arange(LONGO), janela[1:]]  # (L, V) -> (L,)
        dentro, fora = torch.mean(perda[:TREINO]), torch.mean(perda[TREINO:])
        aula.diga(
            f"Uma janela de {LONGO}, à mão, com {pior}: até {TREINO}, perplexidade "
            f"{decimal(math.exp(dentro))}; dali em diante, {decimal(math.exp(fora))}."
        )
        dif = float((perda - medidas[pior, LONGO][0, :LONGO]).abs().max())
        # Os logits de uma letra, em outro lote, são as mesmas somas em outra ordem.
        limite = folga.modelo(m.camadas, m.d, logits.abs().max())
        contra = [Conferencia(f"perda de cada letra, {pior}", dif, 0.0, limite)]
        aula.comparar("2_janela", "A perda à mão contra a entropia cruzada do PyTorch", contra)
    if "perdas" in ficha:
        anotadas = exp.conferir_anotadas(medidas, ficha["perdas"], sementes)
        aula.comparar("2_anotadas", "Contra o que se anotou ao gravar os pesos", anotadas)
    aula.codigo()

# %% 3 · Por posição
if aula.secao(3):
    # Os mesmos caracteres, lidos em janelas de 1024 e de 128: o texto se cancela, e sobra o que a
    # janela longa muda. Até 128 dá zero, porque ali as duas leituras são uma só.
    def efeito(nome, bloco):
        muda = (medidas[nome, LONGO] - medidas[nome, TREINO]).double()  # (sementes, caracteres)
        # (sementes, caracteres) -> (sementes, janelas, blocos, bloco) -> (blocos,)
        muda = torch.unflatten(muda, -1, (-1, LONGO // bloco, bloco))
        return torch.mean(muda, dim=(0, 1, 3)).numpy()

    longos = [nome for nome in nomes if (nome, LONGO) in medidas]
    inicios = range(0, LONGO, TREINO)
    colunas = {"esquema": str} | {f"{i}–{i + TREINO - 1}": decimal for i in inicios}
    titulo = "Janela de 1024 menos janela de 128, nos mesmos caracteres, por posição (nats)"
    linhas = [[nome, *efeito(nome, TREINO)] for nome in longos]
    aula.tabela("3_efeito", titulo, colunas, linhas)
    meios = (np.arange(LONGO // BLOCO) + 0.5) * BLOCO  # (blocos,)
    series = {nome: (meios, efeito(nome, BLOCO)) for nome in longos}
    aula.figura("3_efeito", "efeito da janela longa por posição", fig.efeito, series, nomes, TREINO)
    aula.repare(
        "até 128 é zero: nada mudou. Depois, acima de zero o modelo teria ido melhor sem o contexto a "
        "mais. Os dentes a cada 128 são os caracteres que abririam uma janela curta, sem passado: onde a "
        "curva fica abaixo de zero o ganho é quase só esse, e não ler de longe (Press et al., 2021)."
    )
    aula.codigo()

# %% 4 · O RoPE esticado
if aula.secao(4) and esticadas:
    # Brinquedo: esticar s vezes. A linear anda s vezes mais devagar em todos os pares; o NTK aumenta
    # a base até o par mais lento andar s vezes mais devagar, e o mais rápido não muda.
    d, s = m.d_cabeca, LONGO / TREINO
    i = torch.arange(0, d, 2, dtype=torch.float64)  # (d/2,)
    a_mao = {
        "sem esticar": 10_000.0 ** (-i / d),
        "linear": 10_000.0 ** (-i / d) / s,
        "NTK dinâmico": (10_000.0 * s ** (d / (d - 2))) ** (-i / d),
    }  # (d/2,) cada
    deles = ex.esticamentos(LONGO)
    linhas, contra = [], []
    for nome, frequencias in a_mao.items():
        voltas = (LONGO - 1) * frequencias / (2 * math.pi)  # (d/2,): até o fim da janela longa
        linhas.append([nome, voltas[0], voltas[-1]])
        erro = torch.max(torch.abs(deles[nome].frequencias / frequencias - 1))
        limite = folga.potencia(10_000 * s**2)  # a base esticada cresce s^(d/(d − 2)), menos que s²
        contra.append(Conferencia(nome, float(erro), 0.0, limite))
    treinadas = (TREINO - 1) * a_mao["sem esticar"] / (2 * math.pi)  # (d/2,)
    linhas.insert(0, [f"no treino (até {TREINO - 1})", treinadas[0], treinadas[-1]])
    colunas = {"receita": str, "voltas do par rápido": decimal, "voltas do par lento": decimal}
    aula.tabela("4_voltas", f"Quanto se girou ao chegar a {LONGO - 1}", colunas, linhas)
    aula.comparar("4_a_mao", "As frequências à mão contra as que se usaram", contra)

    # Os pesos são os mesmos; mudam as frequências, e cada coluna usa o fator do seu comprimento.
    titulo = "RoPE treinado em 128, frequências mudadas sem retreinar"
    aula.quadro("4_esticado", exp.por_comprimento(esticadas, titulo, "receita"))
    titulo, alt = "O mesmo RoPE, com as frequências esticadas", "perda do RoPE por receita"
    aula.figura("4_esticado", alt, fig.por_comprimento, exp.curvas(esticadas), titulo, TREINO)
    deltas = {nome: exp.variacao(esticadas, nome, LONGO) for nome in exp.nomes(esticadas)}
    melhor = min(deltas, key=deltas.get)
    aula.resultado("melhor_receita_1024", melhor)
    aula.resultado("delta_1024_esticado", deltas[melhor], "nats")
    custo = exp.media(esticadas["NTK, fator 8", 128]) - exp.media(esticadas["sem esticar", 128])
    aula.repare(
        f"em 1024, a melhor receita é “{melhor}” ({decimal(deltas[melhor])} nats sobre o treino). Um "
        f"fator só para tudo (NTK, fator 8) já custa {decimal(custo)} em 128, onde não era preciso "
        "esticar: é o que o dinâmico evita."
    )
    aula.codigo()

# %% 5 · O publicado
if aula.secao(5):
    # Números de artigos, de data/extrapolacao/publicados.json: nenhum deles é nosso.
    artigos = exp.publicados()

    # Menos que 0,005 nat, para qualquer lado, é "igual".
    def sentido(x):
        return "—" if x is None else "igual" if abs(x) < 0.005 else "piora" if x > 0 else "melhora"

    linhas = []
    for p in artigos["press"]["linhas"]:
        # Razão de perplexidades vira diferença de perdas: ln(exp(a) / exp(b)) = a − b.
        deles = math.log(p["depois"] / p["no_treino"]) if p["no_treino"] else None
        nosso = exp.variacao(medidas, p["esquema"], 2 * TREINO)
        onde = f"512 → {p['em']}" if p["em"] else "—"
        concordam = "sim" if sentido(deles) == sentido(nosso) else "não"
        linhas.append([p["esquema"], onde, deles, sentido(deles), nosso, sentido(nosso)])
        linhas[-1].append("—" if None in (deles, nosso) else concordam)
    colunas = {"esquema": str, "Press et al.": str, "Δ (nats)": decimal, "deles": str}
    colunas |= {"Δ nosso, ao dobrar": decimal, "nosso": str, "concordam": str}
    aula.tabela("5_press", artigos["press"]["fonte"], colunas, linhas)
    for chave in ("haviv", "kazemnejad"):
        linhas = [[p["esquema"], p["valor"]] for p in artigos[chave]["linhas"]]
        colunas = {"esquema": str, "publicado": lambda x: decimal(x, 2)}
        aula.tabela(f"5_{chave}", artigos[chave]["fonte"], colunas, linhas)
    frase = (
        "modelos deste tamanho mostram onde cada esquema quebra, e não o que um modelo grande faz: nada "
        "aqui mede lembrar um nome, achar um trecho ou raciocinar com contexto longo."
    )
    no_treino = {nome: exp.media(medidas[nome, TREINO]) for nome in nomes}
    if len(no_treino) > 1 and "nenhum" in no_treino:
        sem = no_treino.pop("nenhum")
        melhor = min(no_treino, key=no_treino.get)
        frase += (
            f" Sem posição nenhuma, o nosso fica a {decimal(sem - no_treino[melhor])} nat do melhor "
            f"({melhor}); os grandes ficam bem perto dos outros (Haviv et al., 2022)."
        )
    aula.repare(frase)
    aula.codigo()

# %% Guardar tudo
aula.terminar()
