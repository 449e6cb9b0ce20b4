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

from nucleo.base.caderno import Conferencia
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import sentidos
from nucleo.licoes import l02_contexto as exp
from nucleo.licoes import l02_contexto_figuras as fig
from nucleo.modelos import estados, fontes, frases
from nucleo.modelos.tokens import visivel

if aula.args.frase and not aula.args.palavra:
    raise ErroDoUsuario(
        "Falta dizer qual é a palavra.",
        "As frases vieram em --frase, mas não sei que palavra delas você quer comparar.",
        'Por exemplo:  --palavra bank --frase "We sat on the bank" --frase "The bank lent us money"',
    )

modelo = aula.abrir_modelo()
tok = modelo.tokenizador
colecao = frases.colecao_para(tok)
causal = modelo.familia not in fontes.CODIFICADORES

# As frases de quem está ao teclado são lidas já: um engano aparece agora, não no meio.
suas = [frases.achar_palavra(tok, aula.args.palavra, f) for f in aula.args.frase or []]
if suas and not aula.args.secao:
    aula.so_esta(7)  # quem trouxe frases quer a resposta delas; --secao traz o resto
nomes = list(colecao.palavras)
if aula.args.palavra and not suas:
    nomes = [aula.args.palavra]
palavras = [frases.ambigua(tok, colecao, p) for p in nomes]
for palavra in palavras:
    if aviso := palavra.ocorrencias[0].avisos:
        aula.diga("Atenção: " + "; ".join(aviso) + ".")

# Uma passagem por palavra, e só se alguma seção de 1 a 6 foi pedida.
leituras, provadas = [], []
if not aula.args.secao or set(aula.args.secao) - {7}:
    with aula.barra() as progresso:
        for n, palavra in enumerate(palavras):
            progresso("lendo as frases", n, len(palavras))
            leituras.append(exp.ler(modelo, palavra))
        progresso("lendo as frases", len(palavras), len(palavras))
    # A prova é curta; a camada mais nítida de cada palavra serve a mais de uma seção.
    provadas = [exp.provar(x, EMBARALHOS, SEMENTE) for x in leituras]
    fundo = exp.fundo(leituras, SEMENTE)  # tokens quaisquer, para comparar
    primeira = leituras[0]

# %% 1 · Na entrada, uma linha só
if aula.secao(1):
    # Brinquedo: dois "tokens" em duas frases; a tabela não sabe em que frase está.
    tabela = np.array([[1.0, 0.0], [0.5, 2.0]])  # (2, 2)
    aula.diga(f"Brinquedo: a linha 1 é {tabela[1].tolist()} numa frase e na outra também.")

    aula.quadro("1_frases", exp.resumo_das_frases(modelo, leituras))
    aula.repare("a pista vem antes da palavra: um modelo causal só olha para trás.")
    entradas = exp.conferir_camada_0(modelo, leituras)
    aula.comparar("1_camada_0", "Camada 0, sem a posição: todas iguais?", entradas)
    aula.repare("na tabela a ambiguidade não tem solução: os dois sentidos são o mesmo vetor.")
    aula.codigo(exp.conferir_camada_0)

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
    for x, p in zip(leituras, provadas, strict=True):
        id_ = f"2_cossenos_{x.palavra.palavra}"
        aula.quadro(id_, exp.quadro_das_curvas(x, p.palavra.melhor))
    aula.repare(
        "as curvas saem juntas (ou quase, onde a posição já entrou na soma) e se afastam no caminho."
    )
    aula.figura("2_semelhanca", "cosseno por camada", fig.semelhanca, leituras, modelo.nome)
    nitida = provadas[0].palavra.melhor
    aula.figura("2_mapas", "frase contra frase", fig.mapas, primeira, nitida, modelo.nome)

    contra = exp.conferir_estados(modelo, leituras)
    aula.comparar("2_estados", "Nossos estados contra output_hidden_states", contra)
    aula.codigo(estados.estados, sentidos.cossenos)

    # E se a pista vier depois? Num modelo causal a palavra já passou, e não sabe.
    if causal:
        dupla, diferenca = exp.pista_depois(modelo, colecao)
        aula.diga(f"Com a pista depois: “{dupla[0]}” e “{dupla[1]}”")
        iguais = [Conferencia("as duas ocorrências, em todas as camadas", diferenca, 0.0, 1e-5)]
        aula.comparar("2_pista_depois", "Mesmo começo, pista só depois", iguais)
        aula.repare("em nenhuma camada se separam: o que vem depois não chega à palavra.")
    else:
        aula.diga(f"**{modelo.nome}** lê a frase inteira: a pista pode vir depois da palavra.")

# %% 3 · A separação, contra o acaso
if aula.secao(3):
    # Brinquedo: quatro ocorrências, dois sentidos, e todas as rotulagens 2 + 2 possíveis.
    K = np.array([[[1, 0.9, 0.2, 0.3], [0.9, 1, 0.1, 0.2], [0.2, 0.1, 1, 0.8], [0.3, 0.2, 0.8, 1]]])
    rotulagens = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]])  # (3, 4)
    lacunas = sentidos.separacao(K, rotulagens)[:, 0]  # (1, 4, 4), (3, 4) -> (3, 1) -> (3,)
    contas = "; ".join(decimal(v, 2) for v in lacunas)
    aula.diga(f"Brinquedo: dentro − entre nas três rotulagens possíveis: {contas}. Só uma sobe.")

    for p in provadas:
        aula.quadro(f"3_prova_{p.leitura.palavra.palavra}", exp.quadro_da_prova(p))
    aula.repare(
        f"p é a fração de {inteiro(EMBARALHOS)} embaralhos que separam tanto; o corrigido conta que "
        "olhamos todas as camadas. O centroide adivinha o sentido da ocorrência que ficou de fora."
    )
    aula.quadro("3_primeiras", exp.quadro_das_primeiras(modelo, provadas))
    for p in provadas:
        nome, r = p.leitura.palavra.palavra, p.palavra
        aula.resultado(f"lacuna_{nome}", r.lacuna[r.melhor], "cosseno", camada=r.melhor)
        fundura = r.melhor / p.leitura.ultima  # 0 é a entrada, 1 a última camada
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
    aula.codigo(sentidos.separacao, sentidos.provar)

# %% 4 · Anisotropia: o que é semelhança, e o que é viés
if aula.secao(4):
    # Um cosseno de 0,9 impressiona menos quando dois tokens quaisquer já têm 0,6.
    aula.diga(f"“Quaisquer”: {fundo.A.shape[1]} tokens diferentes das frases, um de cada.")
    aula.quadro("4_anisotropia", exp.quadro_da_anisotropia(primeira, fundo))
    aula.figura(
        "4_anisotropia", "semelhança e anisotropia", fig.anisotropia, primeira, fundo, modelo.nome
    )
    pico = int(fundo.anisotropia.argmax())
    aula.resultado("anisotropia_maxima", fundo.anisotropia[pico], "cosseno", camada=pico)
    aula.repare(
        f"na camada {pico}, dois tokens quaisquer já têm cosseno {decimal(fundo.anisotropia[pico])}. "
        "A semelhança corrigida é o que sobra (Ethayarajh 2019)."
    )
    aula.codigo(sentidos.media_dos_cossenos, sentidos.variancia_de_um_vetor)

# %% 5 · Três dimensões que mandam no cosseno
if aula.secao(5):
    # Brinquedo: uma dimensão grande e comum a todos esconde que o resto é oposto.
    a, b = np.array([9.0, 1.0, -1.0]), np.array([9.0, -1.0, 1.0])
    com, sem = sentidos.cossenos(np.stack([np.stack([a, b]), np.stack([a, b]) * [0, 1, 1]]))[
        :, 0, 1
    ]
    aula.diga(f"Brinquedo: cos((9, 1, −1), (9, −1, 1)) = {decimal(com)}; sem o 9, {decimal(sem)}.")

    r = exp.rebeldes(primeira, fundo)
    aula.quadro("5_rebeldes", exp.quadro_dos_rebeldes(primeira, r))
    aula.figura("5_rebeldes", "com e sem as três dimensões", fig.rebeldes, r, modelo.nome)
    onde = int(np.where(r.crua > 0.05, r.parte, -1).argmax())
    aula.resultado("parte_das_tres", r.parte[onde], "fração", camada=onde)
    nitida = provadas[0].palavra.melhor
    antes, depois = decimal(r.lacuna[nitida]), decimal(r.lacuna_padronizada[nitida])
    aula.repare(
        f"na camada {onde}, {porcento(r.parte[onde], 0)} do cosseno médio vêm de 3 das {modelo.d} "
        f"dimensões. Padronizar devolve a voz às outras: na camada {nitida}, dentro − entre vai de "
        f"{antes} a {depois} (Timkey e van Schijndel 2021)."
    )
    aula.codigo(sentidos.contribuicoes, sentidos.padronizar)

# %% 6 · A lente: o sentido lido em tokens
if aula.secao(6):
    if estados.tem_lente(modelo):
        k = TOKENS_DA_LENTE
        aula.quadro("6_lente", exp.lente_das_frases(modelo, primeira, k))
        aula.repare(
            "a lente lê o PRÓXIMO token: no fim, o que viria depois da palavra. Na camada 0 ainda "
            "não há contexto, e os dois sentidos leem quase o mesmo."
        )
        aula.quadro("6_contraste", exp.contraste_da_lente(modelo, primeira, k + 2))
        aula.repare("no meio quase não se lê: a matriz de saída só entende os últimos andares.")
        aula.codigo(estados.lente)
    else:
        aula.diga(f"**{modelo.nome}** não prevê o próximo token por um produto: não há lente.")

# %% 7 · As suas frases
if aula.secao(7):
    if not suas:
        aula.diga(
            'Traga as suas:  `python lab/02_contexto.py --palavra bat --frase "..." --frase "..."`'
        )
    else:
        for n, o in enumerate(suas, 1):
            if o.avisos:
                aula.diga(f"Frase {n}: " + "; ".join(o.avisos) + ".")
        E = estados.estados(modelo, [o.ids for o in suas])
        X = exp.no_lugar(E, [o.lugar for o in suas])  # (camadas, n, d)
        aula.quadro("7_frases", exp.quadro_das_suas(suas))
        if len({o.ids[o.lugar] for o in suas}) > 1:
            linhas = ", ".join(visivel(tok.texto(o.ids[o.lugar])) for o in suas)
            aula.diga(f"Atenção: não é a mesma linha da tabela em todas ({linhas}).")
        if len(suas) > 1:
            aula.quadro("7_pares", exp.pares_das_suas(X))
            aula.repare(
                "compare cada camada com ela mesma: o nível do cosseno muda de uma a outra."
            )
        else:
            aula.diga("Com uma frase só não há par a comparar; acrescente outra --frase.")
        if estados.tem_lente(modelo):
            aula.quadro("7_lente", exp.lente_das_suas(modelo, X, TOKENS_DA_LENTE))

# %% Guardar tudo
aula.terminar()
