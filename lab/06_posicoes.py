"""Apostila 06 · Posições: por que a ordem precisa entrar, e como ela entra.

O que você vai ver: uma atenção que não distingue «O cão mordeu o homem» de «O homem mordeu o
cão», as senoides feitas à mão, a matriz que desloca posições, a camada de entrada inteira, o que
acontece a um modelo de verdade sem posições, e o RoPE do zero posto dentro do SmolLM2 no lugar
do da biblioteca. Um banner por seção da apostila; cada fórmula é conferida por quem não a escreveu.

Quanto demora: cerca de 40 s; com --rapido, menos de 20 s.
Como rodar:    python lab/06_posicoes.py                          tudo
               python lab/06_posicoes.py --secao 6.6 --rapido
               python lab/06_posicoes.py --frase "a gata viu o rato ." --troca 1 4
               python lab/06_posicoes.py --d 7                     (um erro que explica)
O que fica:    outputs/06_posicoes/ (relatorio.md, tabelas em CSV, figuras, resultado.json)
"""

# %% Botões: o que dá para mexer sem ler o resto
D = 64  # dimensão das tabelas e das cabeças; par; --d muda
POSICOES = 128  # linhas das tabelas desenhadas; --posicoes muda
D_ARTIGO = 512  # a dimensão do Transformer original, onde se mede o equilíbrio e a precisão
TREINO, FATOR = 2048, 4  # o contexto que se estica, e quantas vezes
BASE_LENTA = 500_000  # a base do Llama 3, ao lado da de 10000
SEMENTE = 6  # dos sorteios; a mesma semente dá as mesmas tabelas
LONGE = [64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]  # posições da precisão

SECOES = {
    "6.1": "Input embeddings: a consulta e o √d_model",
    "6.2": "Positional encoding: por que a ordem, e as senoides",
    "6.3": "O fluxo: formas e dropout",
    "6.4": "A implementação: buffers, precisão e limites",
    "6.5": "Embedding não é significado isolado: modelos sem posição",
    "6.6": "Posições relativas: RoPE e o contexto esticado",
}

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula, inteiro_entre


def opcoes(p):
    p.add_argument("--d", type=inteiro_entre(1, 4096), default=D, help="dimensão das tabelas (par)")
    p.add_argument(
        "--posicoes", type=inteiro_entre(16, 4096), default=POSICOES, help="linhas das tabelas"
    )
    p.add_argument("--frase", help="a frase em que se trocam duas palavras, separadas por espaço")
    p.add_argument("--troca", nargs=2, type=int, metavar=("I", "J"), help="as posições que trocam")
    p.add_argument("--modelo", help="outro modelo para 6.5 e 6.6 (padrão: smollm2 e mini)")
    p.add_argument("--rapido", action="store_true", help="o essencial, em menos de 20 s")


aula = Aula("06_posicoes", __doc__, SECOES, opcoes, usa_modelo=False)

import math

import torch

from nucleo import escalonamento, figuras_06, permutacao, posicoes, rope, vieses
from nucleo import experimentos_06 as exp
from nucleo.erros import ErroDoUsuario
from nucleo.graficos import barras
from nucleo.unidades import cientifico, decimal, inteiro, porcento

d, T = aula.args.d, aula.args.posicoes
posicoes.exigir_par(d, "d")  # o engano aparece agora, e não no meio da lição
textos = exp.textos()
frase = aula.args.frase.split() if aula.args.frase else textos["frase"]
a, b = aula.args.troca or (textos["troca"] if not aula.args.frase else (0, len(frase) - 2))
ordem = permutacao.troca(len(frase), a, b)
trocada = [frase[i] for i in ordem]


def abrir(padrao: str):
    """O modelo pedido, ou o padrão; None, com o motivo na tela, se ele não está nesta máquina."""
    try:
        return aula.abrir_modelo(aula.args.modelo or padrao)
    except ErroDoUsuario as erro:
        if aula.args.modelo:
            raise
        aula.diga(f"**Sem {padrao} nesta máquina**: {erro.o_que} {erro.o_que_fazer}")
        return None


def ou_nao_cabe(erro: float) -> str:
    """Um erro em notação curta; NaN é posição que nem cabe no tipo."""
    return "não cabe" if math.isnan(erro) else cientifico(erro)


# %% 6.1 · Input embeddings
if aula.secao("6.1"):
    tabela, linhas, conferencia = exp.consulta_de_brinquedo()
    aula.diga(
        f"Brinquedo: E tem 5 linhas de 4 números; E[3] = {tabela[3].tolist()}, e nada se calcula."
    )
    aula.comparar("61_consulta", "Buscar linhas é o one-hot vezes a tabela", conferencia)
    equilibrio = exp.equilibrio(D_ARTIGO, SEMENTE)
    aula.tabela(
        "61_equilibrio",
        f"Token contra posição, d = {D_ARTIGO}: normas medidas em camadas recém-sorteadas",
        {
            "início das linhas": str,
            "× √d": str,
            "‖token‖": decimal,
            "‖posição‖": decimal,
            "razão": decimal,
        },
        equilibrio,
    )
    for inicio, vezes, norma, _, razao in equilibrio:
        id_ = f"norma_{'N01' if '1)' in inicio.split(',')[1][:3] else 'N1d'}_{'com' if vezes == 'sim' else 'sem'}"
        aula.resultado(id_, norma, razao=razao)
    aula.figura(
        "61_equilibrio",
        lambda: barras(
            [f"{i}{'  × √d' if v == 'sim' else ''}" for i, v, *_ in equilibrio]
            + ["posição (senoide)"],
            {"norma": [linha[2] for linha in equilibrio] + [equilibrio[0][3]]},
            f"Quanto o vetor do token pesa ao lado da posição (d = {D_ARTIGO})",
            "norma média",
        ),
        "normas do token em quatro inícios, e a da posição: só em duas a posição aparece",
    )
    aula.repare(
        f"o nn.Embedding começa em N(0, 1); vezes √d, o token sai com norma {decimal(equilibrio[0][2], 0)} "
        f"ao lado de uma posição de {decimal(equilibrio[0][3], 0)}: ela se afoga. O √d do artigo supõe "
        "linhas pequenas, N(0, 1/d). E N(0, 1/d) sem o √d erra para o outro lado."
    )
    aula.codigo(posicoes.EmbeddingsDeEntrada)

# %% 6.2 · Positional encoding
if aula.secao("6.2"):
    aula.diga(f"«{' '.join(frase)}» e «{' '.join(trocada)}»: as mesmas palavras, em outra ordem.")
    medidas = exp.percebe_a_ordem(frase, ordem, d, SEMENTE)
    aula.tabela(
        "62_ordem",
        "Uma atenção de pesos sorteados percebe a troca?",
        {"posição": str, "máscara": str, "camadas": str, "onde se olha": str,
         "diferença": cientifico, "percebe": lambda x: "sim" if x else "não"},
        [[*linha, linha[-1] > 1e-4] for linha in medidas],
    )  # fmt: skip
    aula.repare(
        "sem máscara as saídas trocam de lugar junto com os tokens: é equivariante, e não invariante. "
        "Com máscara causal a ordem vaza, mas a última posição de UMA camada ainda não a vê; a de duas, sim."
    )
    aula.codigo(permutacao.atencao, permutacao.empilhar)
    for dd in (4, 8):
        colunas = [
            f"{f} pos/{10000 ** (2 * i / dd):g}" for i in range(dd // 2) for f in ("sen", "cos")
        ]
        aula.tabela(
            f"62_a_mao_{dd}",
            f"As senoides à mão, d = {dd}",
            {"pos": str} | dict.fromkeys(colunas, decimal),
            exp.senoides_a_mao(6, dd),
        )
    aula.comparar(
        "62_senoides",
        f"As senoides conferidas (d = {d}, {T} posições)",
        exp.conferir_senoides(d, T),
    )
    aula.codigo(posicoes.senoides, posicoes.matriz_de_deslocamento)
    aula.comparar(
        "62_disposicoes", "Outras disposições, contra quem as usa", exp.disposicoes(max(d, 4), T)
    )
    aula.repare(
        "fairseq não é a mesma tabela reordenada: as frequências são outras. Convenção, e não erro."
    )
    PE, lambdas = posicoes.senoides(T, d), posicoes.comprimentos_de_onda(d)  # (T, d), (d/2,)
    pares = sorted({0, d // 16, d // 8, d // 4, d // 2 - 1})
    aula.tabela(
        "62_ondas",
        "Comprimentos de onda",
        {"par": str, "posições por volta": decimal, "voltas em 512": decimal},
        exp.ondas(d),
    )
    aula.figura(
        "62_senoides",
        lambda: figuras_06.senoides(PE.numpy(), pares, lambdas.numpy()),
        "a tabela de senoides em cores e cinco curvas",
    )
    aula.figura(
        "62_ondas",
        lambda: figuras_06.ondas(1 / lambdas.numpy(), lambdas.numpy(), 512),
        "o comprimento de onda de cada par",
    )
    k = torch.arange(0, 301)
    aula.figura(
        "62_distancia",
        lambda: figuras_06.por_distancia(
            k.numpy(), {"PE(pos) · PE(pos + k)": posicoes.produto_interno_por_distancia(k, d).numpy()},
            f"O produto interno depende só da distância (d = {d})", "produto interno",
        ),
        "o produto interno de duas posições contra a distância",
    )  # fmt: skip
    perto = posicoes.posicoes_mais_proximas(PE, T // 2)
    aula.diga(
        f"Mais próximas da posição {T // 2}: "
        + ", ".join(f"{p} ({decimal(c)})" for p, c in perto)
        + "."
    )
    aula.repare(
        "a senoide existe para qualquer posição, mas isso não é o modelo saber usá-la: o artigo disse que "
        "ela «pode» extrapolar, e quem mediu viu que não (lab/06_extrapolacao.py)."
    )

# %% 6.3 · O fluxo
if aula.secao("6.3"):
    V, B, tt, dd, maximo = 30, 2, 7, 16, 64  # B ≠ T ≠ d: um engano de eixo não passa
    formas = exp.formas(V, dd, tt, B, maximo)
    aula.tabela(
        "63_formas",
        "As formas, lidas da camada enquanto roda",
        {"etapa": str, "forma": str},
        formas,
    )
    texto = {nome: str(forma) for nome, forma in formas}
    aula.figura(
        "63_fluxo",
        lambda: figuras_06.fluxo(
            {"ids": texto["ids"], "linhas": texto["E[ids]"], "escala": texto["E[ids] · √d"],
             "pe": texto["PE[:T], que se estende ao lote"], "soma": texto["saída: soma e dropout"],
             "saida": texto["saída: soma e dropout"], "tabela": f"E: {texto['tabela de embeddings E']}",
             "tabela_pe": f"PE: {texto['tabela de posições PE']}"}
        ),
        "do texto ao primeiro bloco, com a forma de cada passo",
    )  # fmt: skip
    aula.comparar("63_broadcasting", "A soma", [exp.broadcasting(V, dd, tt, B)])
    aula.conferir("63_dropout", "Dropout de 10 %, contado", exp.dropout_medido(0.1, SEMENTE))
    aula.repare(
        "somar não concatena: a forma continua (B, T, d). Ao avaliar, o dropout não faz nada."
    )

# %% 6.4 · A implementação
if aula.secao("6.4"):
    aula.tabela(
        "64_buffers", f"A tabela de posições e o state_dict (max_len 512 → 1024, d = {D_ARTIGO})",
        {"a tabela é": str, "chaves gravadas": str, "bytes": inteiro, "carregar com outro max_len": str},
        exp.buffers(D_ARTIGO),
    )  # fmt: skip
    aula.repare("a tabela se refaz de graça: fora do state_dict ela não ocupa nem atrapalha.")
    aula.codigo(posicoes.CodificacaoPosicional)
    frequencias = exp.precisao_das_frequencias(D_ARTIGO)
    aula.tabela(
        "64_frequencias",
        f"Frequências em float32, d = {D_ARTIGO}",
        {"como": str, "maior erro relativo": cientifico},
        frequencias,
    )
    erros = exp.precisao_por_posicao(D_ARTIGO, LONGE[:5] if aula.args.rapido else LONGE)
    aula.tabela(
        "64_precisao",
        "E o erro da tabela, posição a posição",
        {"posição": inteiro} | dict.fromkeys(exp.PRECISOES, ou_nao_cabe),
        erros,
    )
    aula.comparar(
        "64_float64", "A nossa: ângulos em float64", [exp.erro_do_float64(D_ARTIGO, LONGE[-1])]
    )
    aula.figura(
        "64_precisao",
        lambda: figuras_06.precisao(
            [linha[0] for linha in erros],
            {nome: [linha[i] for linha in erros] for i, nome in enumerate(exp.PRECISOES, 1)},
            "Quanto mais longe, pior o ângulo de pouca precisão",
        ),
        "o erro de cada precisão contra a posição",
    )
    vezes = frequencias[1][1] / frequencias[0][1]
    aula.repare(
        f"exp(log) não é «mais estável»: erra a frequência {decimal(vezes, 0)} vezes mais que a potência. "
        "Na tabela quase não aparece, porque o ângulo em float32 já erra mais que isso; o que cura é float64."
    )
    aula.tabela(
        "64_meia", f"Meia precisão, {inteiro(TREINO)} posições", {"tipo": str, "só o valor pronto": cientifico, "o ângulo também": cientifico},
        exp.meia_precisao(D_ARTIGO, TREINO),
    )  # fmt: skip
    for engano in (
        lambda: posicoes.senoides(4, 7),
        lambda: posicoes.CodificacaoPosicional(8, 100)(torch.zeros(1, 101, 8)),
    ):
        try:
            engano()
        except ErroDoUsuario as erro:
            aula.diga(f"Engano de propósito → **{erro.o_que}** {erro.por_que} {erro.o_que_fazer}")

# %% 6.5 · Modelos sem posição
if aula.secao("6.5"):
    aula.tabela(
        "65_exercicio",
        f"O exercício: «{frase[a]}» e «{frase[b]}» trocam de lugar",
        {"o que se compara": str, "maior diferença": decimal},
        exp.trocar_dois(frase, a, b, d, SEMENTE),
    )
    aula.repare(
        "sem posição é a mesma bolsa de vetores; com ela, as duas frases são entradas diferentes."
    )
    linhas = []
    for nome, lingua in (
        (("mini", "pt"),) if aula.args.rapido else (("smollm2", "en"), ("mini", "pt"))
    ):
        if (modelo := abrir(nome)) is None:
            continue
        r = exp.sem_posicao(modelo, textos[lingua]["texto"], textos[f"ordens_{lingua}"])
        como = "wpe zerada" if modelo.wpe is not None else "todas as posições iguais"
        linhas.append(
            [
                modelo.nome,
                como,
                r.perda.perda_antes,
                r.perda.perda_depois,
                r.perda.variacao_total,
                r.ordens_com,
                r.ordens_sem,
            ]
        )
        aula.resultado("perda_sem_posicao", r.perda.perda_depois, "nats", com=r.perda.perda_antes)
    if linhas:
        aula.tabela(
            "65_sem_posicao", "Tirar as posições de um modelo treinado",
            {"modelo": str, "como": str, "perda com": decimal, "perda sem": decimal, "previsões que mudam": porcento,
             "duas ordens, com": porcento, "duas ordens, sem": porcento}, linhas,
        )  # fmt: skip
        aula.repare(
            "as três últimas colunas são variação total: quanto de uma distribuição não está na outra. Mesmo sem "
            "posições as duas ordens não se confundem: são muitas camadas, e a máscara causal conta a ordem."
        )
    aula.tabela(
        "65_esquemas", "Seis jeitos de dar posição (medidas do GPT-2: d 768, 12 cabeças, 1024 posições)",
        {"esquema": str, "onde entra": str, "parâmetros": inteiro, "definido até": str, "fonte": str},
        [list(e) for e in vieses.esquemas(768, 12, 1024)],
    )  # fmt: skip

# %% 6.6 · RoPE
if aula.secao("6.6"):
    x = torch.tensor([[1.0, 0.0, 1.0, 0.0]]).expand(3, 4)  # o mesmo vetor em três posições
    aula.tabela(
        "66_brinquedo", "O vetor (1, 0, 1, 0) girado: o par 0 anda 1 rad por posição, o par 1, 0,01",
        {"pos": str} | dict.fromkeys(["x₀", "x₁", "x₂", "x₃"], decimal), [[i, *linha] for i, linha in enumerate(rope.rope_lento(x).tolist())],
    )  # fmt: skip
    aula.figura(
        "66_giro",
        lambda: figuras_06.dois_pares(torch.arange(6).numpy(), [1.0, 0.1]),
        "dois pares girando, um depressa e um devagar",
    )
    aula.comparar("66_rope", f"RoPE conferido (d = {d})", exp.conferir_rope(d, 48, SEMENTE))
    aula.codigo(rope.rope_lento, rope.girar)
    k = torch.arange(0, 1001)
    valor, teto = rope.decaimento(k, d)
    aula.figura(
        "66_qk",
        lambda: figuras_06.qk(
            exp.mapa_qk(d, 64, SEMENTE).numpy(), k.numpy(), valor.numpy(), teto.numpy()
        ),
        "q·k em todas as posições, e o decaimento com a distância",
    )
    aula.repare(
        "V não gira: a posição muda quem olha para quem (q·k), e não o que se lê quando se olha."
    )
    voltas = {base: rope.volta_mais_lenta(d, base) for base in (posicoes.BASE, BASE_LENTA)}
    aula.diga(
        "O par mais lento dá uma volta em "
        + " e ".join(
            f"{inteiro(round(v))} posições (base {inteiro(int(base))})"
            for base, v in voltas.items()
        )
        + "."
    )
    aula.tabela(
        "66_meia",
        "O ângulo em cada tipo: maior erro do cosseno",
        {"posição": inteiro, "float32": cientifico, "bfloat16": cientifico, "float16": ou_nao_cabe},
        exp.angulos_em_meia_precisao(d, LONGE[:6]),
    )
    if not aula.args.rapido and (modelo := abrir("smollm2")) is not None:
        dentro = exp.dentro_do_modelo(modelo, textos["en"]["texto"])
        aula.comparar(
            "66_modelo",
            f"Dentro do {modelo.nome}: log-probabilidades, maior diferença",
            dentro.conferencias,
        )
        aula.tabela(
            "66_pareamentos",
            f"{modelo.nome}: o que custa misturar os pareamentos",
            {"o RoPE": str, "perda": decimal, "mesma resposta": porcento},
            dentro.perdas,
        )
        aula.repare(
            "nada avisa que o pareamento está errado: o modelo responde, e responde mal. Permutar q e k conserta."
        )
    aula.comparar(
        "66_esticar",
        f"Esticar {inteiro(TREINO)} posições {FATOR} vezes, contra o transformers",
        exp.conferir_esticamentos(d, TREINO, FATOR),
    )
    aula.codigo(escalonamento.linear, escalonamento.ntk, escalonamento.yarn)
    theta = posicoes.frequencias(d)
    razoes = {
        r.nome: (theta / r.escala.frequencias).numpy() for r in exp.receitas(d, TREINO, FATOR)[1:]
    }
    aula.figura(
        "66_esticar",
        lambda: figuras_06.esticamentos(
            posicoes.comprimentos_de_onda(d).numpy(), razoes, TREINO, FATOR
        ),
        "quanto cada receita divide cada frequência",
    )
    aula.repare(
        "linear divide todos, e borra os vizinhos; as outras poupam os pares rápidos. O YaRN tem duas rampas: a do "
        f"código publicado e a da fórmula impressa diferem em até {porcento(exp.rampas_do_yarn(d, TREINO, FATOR))} da frequência."
    )

# %% Guardar tudo
aula.terminar()
