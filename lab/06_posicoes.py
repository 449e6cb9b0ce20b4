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
TOKENS = 2000  # linhas da tabela de embeddings sorteada em 6.1
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

import math

import torch

from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal, porcento
from nucleo.contas import escalonamento, folga, permutacao, posicoes, rope
from nucleo.contas.posicoes_no_modelo import girado_pelo_gptj, girado_pelo_llama
from nucleo.licoes import l06_posicoes as exp
from nucleo.licoes import l06_posicoes_figuras as fig
from nucleo.licoes import l06_posicoes_rope as giro
from nucleo.licoes.l06_posicoes import contra, maior
from nucleo.modelos import textos

d, T = aula.args.d, aula.args.posicoes
posicoes.exigir_par(d)  # o engano aparece agora, e não no meio da lição
frase, a, b, ordem = exp.frase_e_troca(aula.args.frase, aula.args.troca)
longe = LONGE[:5] if aula.args.rapido else LONGE


def abrir(padrao: str):
    """O modelo pedido, ou o padrão; None, com o motivo na tela, se não estiver nesta máquina."""
    try:
        return pedido or aula.abrir_modelo(padrao)
    except ErroDoUsuario as erro:
        aula.diga(f"**Sem o {padrao}.** {erro.o_que} {erro.o_que_fazer}")


def anotar(unidade="", **valores) -> None:
    """Os números com nome: a conferência e as apostilas os leem por ele."""
    for id_, valor in valores.items():
        aula.resultado(id_, valor, unidade)


# O modelo pedido abre já: se não serve à 6.5, o engano aparece agora.
pedido = aula.args.modelo and any(map(aula.pediu, ("6.5", "6.6"))) and aula.abrir_modelo()
exp.exigir_causal(pedido if aula.pediu("6.5") else None)

# %% 6.1 · Input Embeddings (Camada de Embeddings)
if aula.secao("6.1"):
    # Brinquedo: 5 tokens em 4 dimensões. Buscar uma linha não é conta nenhuma.
    tabela = torch.arange(20.0).reshape(5, 4)  # (20,) -> (5, 4)
    ids = torch.tensor([3, 0, 3])
    onehot = torch.eye(5)[ids]  # (3,) -> (3, 5)
    vezes = onehot @ tabela  # (3, 5) @ (5, 4) -> (3, 4)
    aula.diga(f"Brinquedo: E tem 5 linhas de 4 números, e E[3] = {tabela[3].tolist()}.")
    buscar = contra("as duas maneiras de buscar", vezes, tabela[ids])
    aula.comparar("61_consulta", "onehot(ids) · E contra E[ids]", [buscar])
    # O √d do artigo supõe linhas pequenas, N(0, 1/d). As do nn.Embedding são N(0, 1).
    PE = posicoes.senoides(TOKENS, D_ARTIGO)  # (V, d): a tabela que a seção 6.2 escreve
    norma_pe = float((PE**2).sum(-1).sqrt().mean())  # (V, d) -> (V,), e a média
    normas = {}
    for inicio, desvio in (("N(0, 1), o do nn.Embedding", 1.0), ("N(0, 1/d)", D_ARTIGO**-0.5)):
        torch.manual_seed(SEMENTE)
        camada = posicoes.EmbeddingsDeEntrada(TOKENS, D_ARTIGO, desvio_inicial=desvio)
        E = camada.tabela.weight.detach()  # (V, d), recém-sorteada
        escalada = E * math.sqrt(D_ARTIGO)  # (V, d)
        normas[inicio, "sim"] = float((escalada**2).sum(-1).sqrt().mean())
        normas[inicio, "não"] = float((E**2).sum(-1).sqrt().mean())
    da_camada = camada(torch.arange(TOKENS)[None])[0].detach()  # (1, V) -> (V, d)
    aula.quadro("61_equilibrio", exp.quadro_do_equilibrio(normas, norma_pe, D_ARTIGO))
    iguais = [contra("E[ids] · √d contra a camada do núcleo", escalada, da_camada)]
    aula.comparar("61_escala", "A conta contra a camada pronta", iguais)
    enorme, crua, equilibrada, pequena = normas.values()
    anotar(norma_n01_com_raiz=enorme, norma_n01=crua, razao_n01_com_raiz=enorme / norma_pe)
    anotar(norma_n1d_com_raiz=equilibrada, norma_n1d=pequena, norma_posicao=norma_pe)
    aula.figura("61_equilibrio", "o token ao lado da posição", fig.equilibrio, normas, norma_pe)
    aula.repare(
        f"nn.Embedding começa em N(0, 1); vezes √d, o token sai com norma {decimal(enorme, 0)} ao lado "
        f"de uma posição de {decimal(norma_pe, 0)}, e ela se afoga. Com N(0, 1/d), os dois pesam "
        "parecido."
    )
    aula.codigo()


# %% 6.2 · Positional Encoding (Codificação Posicional)
def atender(x, camadas, causal):
    """Autoatenção de uma cabeça, sem posição nenhuma, com o atalho residual: (T, d) -> (T, d)."""
    for Wq, Wk, Wv in camadas:  # (d, d) cada
        notas = (x @ Wq) @ (x @ Wk).T / math.sqrt(x.shape[1])  # (T, d) @ (d, T) -> (T, T)
        if causal:  # cada linha só vê as colunas até a sua
            notas = notas.masked_fill(torch.ones_like(notas).triu(1) > 0, -math.inf)
        x = x + notas.softmax(-1) @ (x @ Wv)  # (T, T) @ (T, d) -> (T, d)
    return x


def senoides(n, d):
    """PE(pos, 2i) = sen(pos·ωᵢ) e PE(pos, 2i+1) = cos(pos·ωᵢ), com ωᵢ = 10000^(−2i/d)."""
    pos = torch.arange(n, dtype=torch.float64)  # (n,)
    omega = 10_000 ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)  # (d/2,)
    angulos = pos[:, None] * omega  # (n, 1) · (d/2,) -> (n, d/2)
    PE = torch.empty(n, d, dtype=torch.float64)  # (n, d)
    PE[:, 0::2], PE[:, 1::2] = torch.sin(angulos), torch.cos(angulos)  # 2 de (n, d/2) -> (n, d)
    return PE, omega


def deslocamento(k, omega):
    """M(k): um bloco 2 × 2 por par, do seno e do cosseno da soma. (d/2,) -> (d, d)."""
    blocos = []
    for angulo in k * omega:
        cos, sen = math.cos(angulo), math.sin(angulo)
        blocos.append(torch.tensor([[cos, sen], [-sen, cos]], dtype=torch.float64))
    return torch.block_diag(*blocos)  # d/2 de (2, 2) -> (d, d)


if aula.secao("6.2"):
    # Primeiro a falta: pesos sorteados, nenhuma posição, e duas palavras que trocam de lugar.
    trocada = [frase[i] for i in ordem]
    aula.diga(f"“{' '.join(frase)}” e “{' '.join(trocada)}”: as mesmas palavras, outra ordem.")
    x = permutacao.vetores_da_frase(frase, d, SEMENTE)  # (T, d): um vetor por palavra
    somadas = {"sem": 0 * x, "senoidal": senoides(len(x), d)[0].float()}  # (T, d) cada
    # Cada caso: a posição somada, se há máscara causal, e quantas camadas.
    casos = {"uma": ("sem", False, 1), "duas": ("sem", False, 2), "uma causal": ("sem", True, 1)}
    casos |= {"duas causais": ("sem", True, 2), "uma com posição": ("senoidal", False, 1)}
    lado_a_lado, destrocadas, ultima = {}, {}, {}
    for nome, (posicao, causal, n) in casos.items():
        camadas = permutacao.sortear_camadas(n, d, SEMENTE)
        antes = atender(x + somadas[posicao], camadas, causal)  # (T, d)
        depois = atender(x[ordem] + somadas[posicao], camadas, causal)  # (T, d)
        lado_a_lado[nome] = maior(depois, antes)  # zero seria invariante
        destrocadas[nome] = maior(depois, antes[ordem])  # zero é equivariante
        ultima[nome] = maior(depois[-1], antes[-1])  # a posição que prevê o próximo token
    aula.quadro("62_ordem", exp.quadro_da_ordem(casos, destrocadas, ultima))
    anotar(ordem_lado_a_lado=lado_a_lado["uma"], ordem_destrocadas=destrocadas["uma"])
    anotar(ordem_ultima_sem_mascara=ultima["duas"], ordem_ultima_causal_1=ultima["uma causal"])
    anotar(ordem_ultima_causal_2=ultima["duas causais"])
    uma = permutacao.sortear_camadas(1, d, SEMENTE)
    q, k, v = (x @ W for W in uma[0])  # (T, d) @ (d, d) -> 3 de (T, d)
    do_torch = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    nossa, do_nucleo = atender(x, uma, True), permutacao.empilhar(x, uma, True)  # (T, d) cada
    # Quatro produtos de d parcelas em fila (q e k, as notas, v, a mistura), em float32.
    limite = folga.soma(4 * d, nossa.abs().max(), folga.EPS32)
    iguais = [contra("contra a do núcleo", nossa, do_nucleo, limite)]
    iguais.append(contra("contra a do torch", nossa, x + do_torch, limite))
    aula.comparar("62_atencao", "A atenção de cima, com máscara causal", iguais)
    aula.repare(
        "sem máscara cada saída muda de lugar junto com o seu token: é equivariante, não "
        "invariante. Com máscara causal a ordem vaza, mas a última posição só a vê com duas camadas."
    )

    # Depois o remédio: brinquedo, propriedades, e só então a tabela grande.
    for pequena in (4, 8):
        aula.quadro(f"62_a_mao_{pequena}", exp.quadro_a_mao(senoides(6, pequena)[0]))
    PE, omega = senoides(T, d)  # (T, d), (d/2,)
    conferidas, teto = exp.contra_outras(PE), folga.angulo(T)  # ângulos de até T radianos
    for k in (1, 7, 100):
        adiante = senoides(T + k, d)[0][k:]  # (T + k, d) -> (T, d): PE(pos + k)
        deslocadas = PE @ deslocamento(k, omega).T  # (T, d) @ (d, d) -> (T, d): M · PE(pos)
        nome = f"M({k}) · PE(pos) = PE(pos + {k}), todo pos"
        conferidas.append(contra(nome, deslocadas, adiante, folga.angulo(2 * (T + k))))
    distancias = torch.arange(T)[:, None] - torch.arange(T)  # (T, 1) − (T,) -> (T, T)
    fechada = (distancias[..., None] * omega).cos().sum(-1)  # (T, T, d/2) -> (T, T)
    conferidas.append(contra("PE(i) · PE(j) só depende de |i − j|", PE @ PE.T, fechada, d * teto))
    aula.comparar("62_senoides", f"Senoides conferidas (d = {d}, {T} posições)", conferidas)
    igual = contra("contra a do núcleo", PE.float(), posicoes.senoides(T, d), folga.EPS32)
    aula.comparar("62_nucleo", "A mesma tabela, pela função rápida", [igual])
    aula.codigo()
    aula.figura("62_senoides", "a tabela em cores e alguns pares", fig.senoides, T, d)
    lambdas = 2 * math.pi / omega  # (d/2,): posições por volta
    do_artigo = 2 * math.pi / senoides(1, D_ARTIGO)[1]  # (d/2,)
    aula.quadro("62_ondas", exp.quadro_das_ondas(lambdas))
    anotar("posições", onda_menor=float(lambdas[0]), onda_maior=float(lambdas[-1]))
    anotar("posições", onda_menor_512=float(do_artigo[0]), onda_maior_512=float(do_artigo[-1]))
    anotar(ondas_diferentes_512=len(do_artigo.unique()))
    aula.figura("62_ondas", "o comprimento de onda de cada par", fig.ondas, d, 512)
    aula.figura("62_distancia", "o produto interno contra a distância", fig.distancia, d, 300)
    aula.quadro("62_proximas", exp.proximas(PE, T // 2))
    aula.comparar("62_disposicoes", "Outras disposições, contra quem as usa", exp.disposicoes(d, T))
    aula.repare(
        "a disposição do fairseq não é um erro: é outra convenção, e até as frequências mudam."
    )
    antes, depois, em = exp.publicado()  # a perplexidade no treino, e além dele
    aula.diga(
        "Além do treino. **Definido**: a senoide existe em qualquer posição. **Afirmado**: por isso o "
        "modelo “poderia” extrapolar (Vaswani et al., 2017, seção 3.5). **Medido**: treinado em 512, "
        f"vai de {decimal(antes, 2)} a {decimal(depois, 2)} de perplexidade em {em} (Press et al., 2021). "
        "Meça também: `python lab/06_extrapolacao.py`."
    )

# %% 6.3 · Arquitetura do Fluxo de Dados
if aula.secao("6.3"):
    # B ≠ T ≠ d: um engano de eixo não passa despercebido.
    V, B, curto, largo = 30, 2, 7, 16
    torch.manual_seed(SEMENTE)
    camada = posicoes.CamadaDeEntrada(V, largo, 64).eval()
    E, PE = camada.embeddings.tabela.weight.detach(), camada.posicoes.pe  # (V, d), (64, d)
    ids = torch.randint(V, (B, curto))  # (B, T)
    buscadas = E[ids]  # (B, T) -> (B, T, d)
    escaladas = buscadas * math.sqrt(largo)  # (B, T, d)
    soma = escaladas + PE[:curto]  # (B, T, d) + (T, d) -> (B, T, d): o lote vem por broadcasting
    saida = camada(ids).detach()  # (B, T) -> (B, T, d): a camada inteira, para conferir
    etapas = {"ids": ids, "E": E, "E[ids]": buscadas, "E[ids] · √d": escaladas}
    etapas |= {"PE": PE, "PE[:T]": PE[:curto], "saída": saida}
    formas = {nome: tuple(x.shape) for nome, x in etapas.items()}
    aula.quadro("63_formas", exp.quadro_das_formas(formas))
    anotar(forma_ids=list(ids.shape), forma_embeddings=list(buscadas.shape), forma_d=E.shape[1])
    anotar(forma_posicao=list(PE[:curto].shape), forma_saida=list(saida.shape))
    aula.figura("63_fluxo", "do texto ao primeiro bloco, com as formas", fig.fluxo, formas)
    igual = exp.contra_lacos(saida, E, PE, ids)
    aula.comparar("63_broadcasting", "A soma, elemento a elemento", [igual])
    aula.comparar("63_camada", "A soma de cima", [contra("contra a do núcleo", soma, saida)])
    aula.conferir("63_dropout", "Dropout de 10 %, contado", exp.dropout_medido(0.1, SEMENTE))
    aula.repare("somar não concatena: continua (B, T, d). E ao avaliar o dropout não faz nada.")
    aula.codigo()

# %% 6.4 · Implementação de Referência (PyTorch)
if aula.secao("6.4"):
    aula.quadro("64_buffers", exp.buffers(D_ARTIGO))
    aula.repare("a tabela se refaz de graça; fora do state_dict, não ocupa nem atrapalha.")
    aula.codigo(posicoes.CodificacaoPosicional)
    # O capítulo diz que exp(log) é mais estável. Mede-se, em float32, contra float64.
    dois_i = torch.arange(0, D_ARTIGO, 2)  # (d/2,): 0, 2, 4, …
    exata = 10_000 ** -(dois_i.double() / D_ARTIGO)  # (d/2,) float64
    potencia = 1 / 10_000 ** (dois_i / D_ARTIGO)  # (d/2,) float32
    exp_log = torch.exp(dois_i * (-math.log(10_000) / D_ARTIGO))  # (d/2,) float32
    direta = float(((potencia.double() - exata) / exata).abs().max())
    via_log = float(((exp_log.double() - exata) / exata).abs().max())
    aula.quadro("64_frequencias", exp.quadro_das_frequencias(D_ARTIGO, direta, via_log))
    anotar(erro_relativo_potencia=direta, erro_relativo_exp_log=via_log)
    erro = exp.precisao_por_posicao(D_ARTIGO, longe)
    aula.quadro("64_precisao", exp.quadro_da_precisao(longe, erro))
    alt = "o erro de cada precisão contra a posição"
    aula.figura("64_precisao", alt, fig.precisao, longe, erro)
    aula.comparar("64_float64", "E em float64?", [exp.erro_do_float64(D_ARTIGO, longe[-1])])
    aula.repare(
        f"exp(log) erra a frequência {decimal(via_log / direta, 0)} vezes mais que a potência. Na tabela "
        "quase não se vê, porque o ângulo em float32 já erra mais; o que cura é float64."
    )
    aula.quadro("64_meia", exp.meia_precisao(D_ARTIGO, TREINO))
    for mensagem in exp.enganos():
        aula.diga(f"Um engano de propósito: {mensagem}")

# %% 6.5 · Embedding não é significado isolado
if aula.secao("6.5"):
    # O exercício do capítulo: duas palavras trocam de lugar, sem e com a posição somada.
    aula.quadro("65_exercicio", exp.trocar_dois(frase, a, b, d, SEMENTE))
    aula.repare("sem posição, as duas frases são a mesma bolsa de vetores; com ela, são outras.")
    # Agora modelos treinados: um que gira (RoPE) e um que soma (wpe), ambos sem posição. Um modelo
    # pedido vem sozinho; o texto é o da língua que ele lê.
    medidos, perdas = {}, []
    sem_pedir = ["mini"] if aula.args.rapido else ["smollm2", "mini"]
    for nome in ["o pedido"] if pedido else sem_pedir:
        if modelo := abrir(nome):
            m = medidos[modelo.nome] = exp.sem_posicao(modelo)
            com, sem = m.mudanca.perda_antes, m.mudanca.perda_depois
            anotar("nats por token", perda_com_posicao=com, perda_sem_posicao=sem)
            anotar("variação total", ordens_com_posicao=m.ordens_com)
            anotar("variação total", ordens_sem_posicao=m.ordens_sem)
            perdas.append(f"no {modelo.nome} a perda vai de {decimal(com, 2)} a {decimal(sem, 2)}")
    if medidos:
        aula.quadro("65_sem_posicao", exp.quadro_sem_posicao(medidos))
        aula.repare(
            f"{'; '.join(perdas)}. As porcentagens são variação total: a parte de uma previsão que não "
            "está na outra. Sem posição as duas ordens ainda diferem: a máscara causal deixa a ordem "
            "vazar."
        )
    aula.quadro("65_esquemas", exp.quadro_dos_esquemas())


# %% 6.6 · Posições relativas com RoPE
def girar(x, pares):
    """O par i (as colunas a e b) da linha t gira pelo ângulo t·θᵢ: (..., T, d) -> (..., T, d)."""
    girado = torch.empty_like(x)
    for i, (a, b) in enumerate(pares):
        theta = 10_000 ** (-i / len(pares))  # a frequência ωᵢ da senoide
        angulos = torch.arange(x.shape[-2], dtype=x.dtype) * theta  # (T,)
        cos, sen = torch.cos(angulos), torch.sin(angulos)
        girado[..., a] = x[..., a] * cos - x[..., b] * sen
        girado[..., b] = x[..., a] * sen + x[..., b] * cos
    return girado


if aula.secao("6.6"):
    # Brinquedo: o mesmo vetor em três posições. A norma não muda; o ângulo, sim.
    brinquedo = girar(torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(3, 4), [(0, 1), (2, 3)])  # (3, 4)
    aula.quadro("66_brinquedo", giro.quadro_do_brinquedo(brinquedo))
    aula.figura("66_giro", "dois pares girando, um depressa e um devagar", fig.dois_pares, 6)
    # Há dois jeitos de formar os pares: vizinhos (o artigo) e metades (a Hugging Face).
    vizinhos = [(2 * i, 2 * i + 1) for i in range(d // 2)]
    metades = [(i, i + d // 2) for i in range(d // 2)]
    sorteio = torch.Generator().manual_seed(SEMENTE)
    q = torch.randn(1, 2, 48, d, generator=sorteio)  # (B, H, T, d)
    exato, p = q.double(), rope.permutacao_para_metades(d)
    aos_pares, em_metades = girar(exato, vizinhos), girar(exato, metades)  # (B, H, T, d) cada
    # UM q e UM k, em todas as posições m e n. k é q com um pouco de ruído: o pico fica à vista.
    um_q, ruido = torch.randn(2, d, generator=sorteio.manual_seed(SEMENTE)).double() / d**0.25
    Q = girar(um_q.expand(64, d), vizinhos)  # (d,) -> (64, d)
    K = girar((um_q + ruido / 2).expand(64, d), vizinhos)  # (d,) -> (64, d)
    mapa = Q @ K.T  # (64, d) @ (d, 64) -> (64, 64): consultas m por chaves n
    # Girar soma dois números do tamanho de q; as bibliotecas fazem o ângulo em float32.
    no_giro, delas = (2 * q.abs().max() * folga.angulo(48, x) for x in (folga.EPS64, folga.EPS32))
    na_norma, no_mapa = folga.soma(d, 2 * d), d * folga.angulo(64)  # ‖q‖ e ‖q‖·‖k‖ cabem em 2·d e d
    rapido, rapido_em_metades = rope.rope(exato), rope.rope(exato, pareamento="metades")
    permutado = girar(exato[..., p], metades)  # (B, H, T, d)
    conferidas = [
        contra("intercalado: rápido contra o lento", rapido, aos_pares, no_giro),
        contra("metades: rápido contra o lento", rapido_em_metades, em_metades, no_giro),
        contra("metades contra o Llama", em_metades, girado_pelo_llama(q), delas),
        contra("intercalado contra o GPT-J", aos_pares, girado_pelo_gptj(q), delas),
        contra("permutar leva um ao outro", aos_pares[..., p], permutado, no_giro),
        contra("a norma não muda", aos_pares.norm(dim=-1), exato.norm(dim=-1), na_norma),
        contra("q·k de (m + 1, n + 1) e de (m, n)", mapa[1:, 1:], mapa[:-1, :-1], no_mapa),
    ]
    aula.comparar("66_rope", f"RoPE conferido (d = {d})", conferidas)
    aula.quadro("66_distancia", giro.quadro_da_distancia(mapa))
    aula.codigo()
    aula.figura("66_qk", "q·k em todas as posições, e o decaimento", fig.qk, mapa, d, 1000)
    aula.repare("V não gira: a posição muda quem olha para quem, e não o que se lê quando se olha.")
    voltas = {base: 2 * math.pi * base ** (1 - 2 / d) for base in BASES}
    aula.quadro("66_voltas", giro.quadro_das_voltas(voltas, d))
    aula.quadro("66_meia", giro.angulos_em_meia_precisao(d, longe))
    aula.repare(
        "em bfloat16 os inteiros acima de 256 já se confundem: ângulo, só em float32 ou mais."
    )
    # O mesmo RoPE dentro de um modelo de verdade.
    modelo = None if aula.args.rapido else abrir("smollm2")
    aula.diga(exp.sem_rope(modelo))
    if modelo and not exp.sem_rope(modelo):
        la = giro.dentro_do_modelo(modelo, textos.trecho("en"))
        titulo = f"Dentro do {modelo.nome}: log-probabilidades"
        aula.comparar("66_modelo", titulo, giro.conferir_no_modelo(la))
        aula.quadro("66_pareamentos", giro.quadro_dos_pareamentos(modelo.nome, la))
        anotar("nats por token", perda_rope_certo=la.nosso.perda_depois)
        anotar("nats por token", perda_rope_misturado=la.misturado.perda_depois)
        aula.repare(giro.frase_dos_pareamentos(la))

    # Esticar à mão: a interpolação divide as posições, e a última volta a caber no treino.
    theta = 10_000 ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)  # (d/2,)
    longas = torch.arange(TREINO * FATOR, dtype=torch.float64)  # (L·s,)
    encolhidas = longas / FATOR  # (L·s,): 0; 0,25; 0,5; … até L − 0,25
    angulos = encolhidas[:, None] * theta  # (L·s, 1) · (d/2,) -> (L·s, d/2)
    aula.quadro("66_encolhidas", giro.quadro_das_encolhidas(encolhidas, angulos, TREINO))
    linear = escalonamento.linear(d, FATOR).frequencias
    limite = folga.angulo(TREINO)  # ângulos de até L radianos
    iguais = contra("dividir a posição ou a frequência", angulos, longas[:, None] * linear, limite)
    aula.comparar("66_linear", "A interpolação de cima contra a do núcleo", [iguais])
    titulo = f"Esticar {TREINO} posições {FATOR} vezes: frequências contra o transformers"
    aula.comparar("66_esticar", titulo, giro.conferir_esticamentos(d, TREINO, FATOR))
    por_linear, por_ntk = theta / linear, theta / escalonamento.ntk(d, FATOR).frequencias  # (d/2,)
    anotar(linear_divide_rapido=float(por_linear[0]), linear_divide_lento=float(por_linear[-1]))
    anotar(ntk_divide_rapido=float(por_ntk[0]), ntk_divide_lento=float(por_ntk[-1]))
    razoes = giro.razoes(d, TREINO, FATOR)  # {receita: (d/2,)}: por quanto divide cada frequência
    aula.figura("66_esticar", "quem se mexe, e quanto", fig.esticamentos, razoes, d, TREINO, FATOR)
    rampas = giro.rampas_do_yarn(d, TREINO, FATOR)
    anotar("fração da frequência", yarn_rampas=rampas)
    aula.repare(
        "linear divide todos os pares e borra os vizinhos; os outros poupam os rápidos. O YaRN do "
        f"código publicado e o da fórmula impressa diferem em até {porcento(rampas)} da frequência."
    )

# %% Guardar tudo
aula.terminar()
