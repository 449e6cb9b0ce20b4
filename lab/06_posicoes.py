"""Apostila 06 · Posições: por que a ordem precisa entrar, e como ela entra.

O que você vai ver: uma atenção que não distingue “O cão mordeu o homem” de “O homem mordeu o
cão”, as senoides feitas à mão, a matriz que desloca posições, a camada de entrada inteira, o que
acontece a um modelo de verdade sem posições, e o RoPE do zero posto dentro do SmolLM2 no lugar
do da biblioteca. Um banner por seção da apostila; cada fórmula é conferida por quem não a escreveu.

Quanto demora: cerca de 30 s; com --rapido, menos de 20 s.
Como rodar:    python lab/06_posicoes.py                          tudo
               python lab/06_posicoes.py --secao 6.6 --rapido
               python lab/06_posicoes.py --frase "a gata viu o rato ." --troca 1 4
               python lab/06_posicoes.py --d 7                     um erro que explica
O que fica:    outputs/06_posicoes/ (relatorio.md, tabelas em CSV, figuras, resultado.json)
"""

# %% Botões: o que dá para mexer sem ler o resto
D = 64  # dimensão das tabelas e das cabeças; par; --d muda
POSICOES = 128  # linhas das tabelas desenhadas; --posicoes muda
D_ARTIGO = 512  # a dimensão do Transformer original, onde se medem o equilíbrio e a precisão
TREINO, FATOR = 2048, 4  # o contexto que se estica, e quantas vezes
BASES = (10_000, 500_000)  # a base do RoPE no artigo e no Llama 3
SEMENTE = 6  # dos sorteios; a mesma semente dá as mesmas tabelas
LONGE = [64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]  # onde se mede a precisão
SECOES = {
    "6.1": "Input Embeddings (Camada de Embeddings)",
    "6.2": "Positional Encoding (Codificação Posicional)",
    "6.3": "Arquitetura do Fluxo de Dados",
    "6.4": "Implementação de Referência (PyTorch)",
    "6.5": "Embedding não é significado isolado",
    "6.6": "Posições relativas com RoPE",
}

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula, inteiro_entre


def opcoes(p):
    p.add_argument("--d", type=inteiro_entre(1, 4096), default=D, help="dimensão (par)")
    p.add_argument(
        "--posicoes", type=inteiro_entre(16, 4096), default=POSICOES, help="linhas das tabelas"
    )
    p.add_argument("--frase", help="a frase em que duas palavras trocam de lugar")
    p.add_argument(
        "--troca", nargs=2, type=inteiro_entre(0, 99), metavar=("I", "J"), help="quais trocam"
    )
    p.add_argument("--modelo", help="outro modelo em 6.5 e 6.6 (padrão: smollm2 e mini)")
    p.add_argument("--rapido", action="store_true", help="só o mini e posições curtas")


aula = Aula("06_posicoes", __doc__, SECOES, opcoes, usa_modelo=False)


from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal, porcento
from nucleo.contas import escalonamento, permutacao, posicoes, rope
from nucleo.licoes import l06_posicoes as exp
from nucleo.licoes import l06_posicoes_figuras as fig
from nucleo.licoes import l06_posicoes_rope as giro
from nucleo.modelos import listas

d, T = aula.args.d, aula.args.posicoes
posicoes.exigir_par(d, "d")  # o engano aparece agora, e não no meio da lição
textos = exp.textos()
frase, a, b, ordem = exp.frase_e_troca(aula.args.frase, aula.args.troca)
longe = LONGE[:5] if aula.args.rapido else LONGE


def abrir(padrao: str):
    """O modelo pedido, ou o padrão; None, com o motivo na tela, se não estiver nesta máquina."""
    try:
        return aula.abrir_modelo(aula.args.modelo or padrao)
    except ErroDoUsuario as erro:
        if aula.args.modelo:
            raise
        aula.diga(f"**Sem o {padrao}.** {erro.o_que} {erro.o_que_fazer}")
        return None


# %% 6.1 · Input Embeddings (Camada de Embeddings)
if aula.secao("6.1"):
    # Brinquedo: 5 tokens em 4 dimensões. Buscar uma linha não é conta nenhuma.
    tabela, conferencia = exp.consulta_de_brinquedo()
    aula.diga(f"Brinquedo: E tem 5 linhas de 4 números, e E[3] = {tabela[3].tolist()}.")
    aula.comparar("61_consulta", "onehot(ids) · E contra E[ids]", conferencia)

    # O √d do artigo supõe linhas pequenas. As do nn.Embedding não são.
    equilibrio = exp.equilibrio(D_ARTIGO, SEMENTE)
    aula.quadro("61_equilibrio", equilibrio)
    for id_, valor in exp.resumo_do_equilibrio(equilibrio).items():
        aula.resultado(id_, valor)
    aula.figura("61_equilibrio", "o token ao lado da posição", fig.equilibrio, equilibrio)
    afogado = [decimal(v, 0) for v in equilibrio.linhas[0][2:4]]
    aula.repare(
        f"nn.Embedding começa em N(0, 1); vezes √d, o token sai com norma {afogado[0]} ao lado de "
        f"uma posição de {afogado[1]}, e ela se afoga. Com N(0, 1/d), os dois pesam parecido."
    )
    aula.codigo(posicoes.EmbeddingsDeEntrada)

# %% 6.2 · Positional Encoding (Codificação Posicional)
if aula.secao("6.2"):
    # Primeiro a falta: uma atenção em meia dúzia de linhas, com pesos sorteados e sem posição.
    trocada = [frase[i] for i in ordem]
    aula.diga(f"“{' '.join(frase)}” e “{' '.join(trocada)}”: as mesmas palavras, outra ordem.")
    aula.quadro("62_ordem", exp.percebe_a_ordem(frase, ordem, d, SEMENTE))
    aula.repare(
        "sem máscara cada saída muda de lugar junto com o seu token: é equivariante, não "
        "invariante. Com máscara causal a ordem vaza, mas a última posição só a vê com duas camadas."
    )
    aula.codigo(permutacao.atencao, permutacao.empilhar)

    # Depois o remédio: brinquedo à mão, propriedades, e só então a tabela grande.
    for pequena in (4, 8):
        aula.quadro(f"62_a_mao_{pequena}", exp.quadro_a_mao(6, pequena))
    conferidas = exp.conferir_senoides(d, T)
    aula.comparar("62_senoides", f"Senoides conferidas (d = {d}, {T} posições)", conferidas)
    aula.codigo(posicoes.senoides, posicoes.matriz_de_deslocamento)
    aula.figura("62_senoides", "a tabela em cores e alguns pares", fig.senoides, T, d)
    aula.quadro("62_ondas", exp.ondas(d))
    aula.figura("62_ondas", "o comprimento de onda de cada par", fig.ondas, d, 512)
    aula.figura("62_distancia", "o produto interno contra a distância", fig.distancia, d, 300)
    aula.quadro("62_proximas", exp.proximas(d, T, T // 2))
    aula.comparar("62_disposicoes", "Outras disposições, contra quem as usa", exp.disposicoes(d, T))
    aula.repare(
        "a disposição do fairseq não é um erro: é outra convenção, e até as frequências mudam."
    )
    aula.diga(exp.alem_do_treino() + " Meça também: `python lab/06_extrapolacao.py`.")

# %% 6.3 · Arquitetura do Fluxo de Dados
if aula.secao("6.3"):
    # B ≠ T ≠ d: um engano de eixo não passa despercebido.
    B, curto, largo = 2, 7, 16
    formas = exp.formas(30, largo, curto, B, 64)
    aula.quadro("63_formas", exp.quadro_das_formas(formas))
    aula.figura("63_fluxo", "do texto ao primeiro bloco, com as formas", fig.fluxo, formas)
    aula.comparar(
        "63_broadcasting", "A soma, elemento a elemento", [exp.broadcasting(30, largo, curto, B)]
    )
    aula.conferir("63_dropout", "Dropout de 10 %, contado", exp.dropout_medido(0.1, SEMENTE))
    aula.repare("somar não concatena: continua (B, T, d). E ao avaliar o dropout não faz nada.")

# %% 6.4 · Implementação de Referência (PyTorch)
if aula.secao("6.4"):
    aula.quadro("64_buffers", exp.buffers(D_ARTIGO))
    aula.repare("a tabela se refaz de graça; fora do state_dict, não ocupa nem atrapalha.")
    aula.codigo(posicoes.CodificacaoPosicional)

    # O capítulo diz que exp(log) é mais estável. Mede-se.
    aula.quadro("64_frequencias", exp.quadro_das_frequencias(D_ARTIGO))
    precisao = exp.precisao_por_posicao(D_ARTIGO, longe)
    aula.quadro("64_precisao", precisao)
    aula.figura("64_precisao", "o erro de cada precisão contra a posição", fig.precisao, precisao)
    aula.comparar("64_float64", "E em float64?", [exp.erro_do_float64(D_ARTIGO, longe[-1])])
    direta, exp_log = (exp.erro_das_frequencias(D_ARTIGO, f) for f in ("potencia", "exp_log"))
    aula.resultado("erro_relativo_potencia", direta)
    aula.resultado("erro_relativo_exp_log", exp_log)
    aula.repare(
        f"exp(log) erra a frequência {decimal(exp_log / direta, 0)} vezes mais que a potência. Na "
        "tabela quase não se vê, porque o ângulo em float32 já erra mais; o que cura é float64."
    )
    aula.quadro("64_meia", exp.meia_precisao(D_ARTIGO, TREINO))
    for mensagem in exp.enganos():
        aula.diga(f"Um engano de propósito: {mensagem}")

# %% 6.5 · Embedding não é significado isolado
if aula.secao("6.5"):
    aula.quadro("65_exercicio", exp.trocar_dois(frase, a, b, d, SEMENTE))
    aula.repare("sem posição, as duas frases são a mesma bolsa de vetores; com ela, são outras.")

    # Agora modelos treinados: um que gira (RoPE) e um que soma (wpe), ambos sem posição. Um modelo
    # pedido vem sozinho; o texto é o da língua que ele lê.
    medidos = []
    sem_pedir = ["mini"] if aula.args.rapido else ["smollm2", "mini"]
    for nome in [aula.args.modelo] if aula.args.modelo else sem_pedir:
        if modelo := abrir(nome):
            lingua = listas.palavras_para(modelo.tokenizador).idioma
            ordens = textos[f"ordens_{lingua}"]
            medidos.append(exp.sem_posicao(modelo, exp.trecho(lingua), ordens))
            aula.resultado("perda_com_posicao", medidos[-1][2], "nats por token")
            aula.resultado("perda_sem_posicao", medidos[-1][3], "nats por token")
            aula.resultado("ordens_com_posicao", medidos[-1][5], "variação total")
            aula.resultado("ordens_sem_posicao", medidos[-1][6], "variação total")
    if medidos:
        aula.quadro("65_sem_posicao", exp.quadro_sem_posicao(medidos))
        aula.repare(exp.frase_sem_posicao(medidos))
    aula.quadro("65_esquemas", exp.quadro_dos_esquemas())

# %% 6.6 · Posições relativas com RoPE
if aula.secao("6.6"):
    # Brinquedo: o mesmo vetor em três posições. A norma não muda; o ângulo, sim.
    aula.quadro("66_brinquedo", giro.brinquedo(3))
    aula.figura("66_giro", "dois pares girando, um depressa e um devagar", fig.dois_pares, 6)
    aula.comparar("66_rope", f"RoPE conferido (d = {d})", giro.conferir_rope(d, 48, SEMENTE))
    aula.codigo(rope.rope_lento, rope.girar)
    mapa = giro.mapa_qk(d, 64, SEMENTE)  # (64, 64): consultas por chaves
    aula.figura("66_qk", "q·k em todas as posições, e o decaimento", fig.qk, mapa, d, 1000)
    aula.repare("V não gira: a posição muda quem olha para quem, e não o que se lê quando se olha.")
    aula.quadro("66_voltas", giro.voltas_lentas(d, BASES))
    aula.quadro("66_meia", giro.angulos_em_meia_precisao(d, longe))
    aula.repare(
        "em bfloat16 os inteiros acima de 256 já se confundem: ângulo, só em float32 ou mais."
    )

    # O mesmo RoPE dentro de um modelo de verdade.
    modelo = None if aula.args.rapido else abrir("smollm2")
    if modelo and modelo.wpe is not None:
        aula.diga(
            f"O **{modelo.nome}** soma uma wpe e não gira nada: aqui não há RoPE para trocar."
        )
    elif modelo:
        dentro = giro.dentro_do_modelo(modelo, exp.trecho("en"))
        titulo = f"Dentro do {modelo.nome}: log-probabilidades"
        aula.comparar("66_modelo", titulo, dentro.conferencias)
        aula.quadro("66_pareamentos", dentro.perdas)
        aula.resultado("perda_rope_certo", dentro.perdas.linhas[1][1], "nats por token")
        aula.resultado("perda_rope_misturado", dentro.perdas.linhas[2][1], "nats por token")
        aula.repare("nada avisa que o pareamento está errado: o modelo responde, e responde mal.")

    titulo = f"Esticar {TREINO} posições {FATOR} vezes: frequências contra o transformers"
    aula.comparar("66_esticar", titulo, giro.conferir_esticamentos(d, TREINO, FATOR))
    aula.codigo(escalonamento.linear, escalonamento.ntk, escalonamento.yarn)
    razoes = giro.razoes(d, TREINO, FATOR)
    aula.figura("66_esticar", "quem se mexe, e quanto", fig.esticamentos, razoes, d, TREINO, FATOR)
    rampas = giro.rampas_do_yarn(d, TREINO, FATOR)
    aula.resultado("yarn_rampas", rampas, "fração da frequência")
    aula.repare(
        "linear divide todos os pares e borra os vizinhos; os outros poupam os rápidos. O YaRN do "
        f"código publicado e o da fórmula impressa diferem em até {porcento(rampas)} da frequência."
    )

# %% Guardar tudo
aula.terminar()
