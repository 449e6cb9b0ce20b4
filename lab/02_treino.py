"""Apostila 02, ao vivo: um mini GPT-2 aprende as posições e a matriz atada diante de nós.

Duas perguntas da apostila não se respondem olhando pesos prontos. O modelo aprendeu sozinho que
posições vizinhas se parecem? E atar a entrada à saída ajuda ou atrapalha, com dois gradientes
caindo na mesma matriz? Aqui a resposta é um experimento, em três atos:

  1. a wpe tomando forma: um GPT-2 de caracteres treina, e o cosseno entre vizinhas sobe de 0
  2. uma matriz, dois gradientes: o da entrada e o da saída, separados e medidos
  3. atada contra solta: três sementes de cada, os mesmos dados, as mesmas curvas

    python lab/02_treino.py --corpus PASTA             uns 10 minutos em dois núcleos
    python lab/02_treino.py --corpus PASTA --rapido    uns 2 minutos, para a aula
    python lab/02_treino.py                            sem corpus: o que dá para ver no mini pronto

O corpus é uma pasta de .txt em UTF-8. O nosso é Machado de Assis (ver data/mini/LEIAME.md).
"""

# %%
import os

from aula import Aula

# ------------------------------------------------------------------ os botões (mexa à vontade)
LETRAS = {"d": 128, "camadas": 4, "cabecas": 4, "posicoes": 128}  # ato 1: um token por letra
PASSOS_LETRAS, LOTE_LETRAS = 1200, 16
TOKENS = {"d": 128, "camadas": 2, "cabecas": 4, "posicoes": 64}  # atos 2 e 3: BPE
VOCABULARIO, PASSOS_TOKENS, LOTE_TOKENS = 2048, 600, 32
SEMENTES = (1, 2, 3)
DEFASAGENS = (1, 2, 4, 8, 16, 32)
FREQUENTES = 500  # quantos tokens entram na comparação entre matrizes


def opcoes(analisador):
    """As opções desta lição, além das de todas."""
    analisador.add_argument(
        "--corpus", default=os.environ.get("LAB_CORPUS"), help="pasta com os .txt (UTF-8)"
    )
    analisador.add_argument("--rapido", action="store_true", help="menos passos, uma semente só")


aula = Aula(
    "02_treino",
    __doc__,
    {
        1: "A wpe tomando forma",
        2: "Uma matriz, dois gradientes",
        3: "Atada contra solta",
    },
    opcoes,
    usa_modelo=False,
)

# O que pesa (torch, transformers) só é importado depois que a linha de comando foi aceita.
import numpy as np
import torch

from barra_de_treino import com_barra
from nucleo import graficos, mini
from nucleo import treino as tr
from nucleo.saida import Conferencia
from nucleo.unidades import decimal, inteiro, porcento

if aula.args.rapido:
    PASSOS_LETRAS, PASSOS_TOKENS, SEMENTES = 300, 200, SEMENTES[:1]

# %% O corpus, se há um: obras de treino e obras que nenhum modelo daqui verá no treino.
obras = validacao = None
if aula.args.corpus:
    obras, validacao, regra = tr.separar(tr.ler_corpus(aula.args.corpus))
    aula.diga(f"Corpus: {inteiro(sum(len(o.texto) for o in obras))} letras de treino. Validação: {regra}.")
else:
    aula.diga(
        "**Sem corpus** (não veio `--corpus PASTA`): os atos 1 e 2 usam o mini, já treinado, e o ato 3, "
        "que precisa treinar, fica de fora. `data/mini/LEIAME.md` diz onde está o texto."
    )
fotos = mini.ler_fotos(mini.PASTA / mini.FOTOS)
gpt2 = mini.defasagens_do_gpt2()


def marcas(passos):
    """Os passos em que medimos: mais juntos no começo, quando tudo muda depressa."""
    return sorted({0, passos, *(passos * k // 24 for k in (1, 2, 3, 4, 6, 8, 12, 16, 20))})


# %% ------------------------------------------------------------------------------- ato 1
def treinar_letras(fita, rotulo):
    """Treina um GPT-2 de letras; devolve [[passo, perda desde a última marca, cossenos...]]."""
    modelo = tr.novo_gpt2(len(letras.letras), **LETRAS, semente=SEMENTES[0])
    receita = tr.Receita(PASSOS_LETRAS, LOTE_LETRAS, LETRAS["posicoes"], aquecimento=50)
    treino = tr.Treino(modelo, fita, receita)
    wpe = modelo.transformer.wpe.weight  # (n_ctx, d): a mesma memória o treino todo
    linhas = [[0, None, *tr.cosseno_por_defasagem(wpe.detach(), DEFASAGENS)]]
    perdas = []
    for p in com_barra(treino, rotulo, parar_com_ctrl_c=True):
        perdas.append(p.perda)
        if p.passo in marcas(PASSOS_LETRAS):
            linhas.append([p.passo, float(np.mean(perdas)), *tr.cosseno_por_defasagem(wpe.detach(), DEFASAGENS)])
            perdas.clear()
    if treino.passo > linhas[-1][0]:  # interrompido entre duas marcas: o que há também conta
        linhas.append([treino.passo, float(np.mean(perdas)), *tr.cosseno_por_defasagem(wpe.detach(), DEFASAGENS)])
    return linhas


if aula.secao(1):
    aula.diga(
        "A wpe nasce sorteada: nenhuma linha sabe quem é sua vizinha. A medida é o cosseno médio entre as "
        "linhas i e i+k, com a linha média retirada (o que todas têm em comum não é vizinhança). Brinquedo: "
        "oito posições postas numa roda, uma a cada 45°."
    )
    angulo = 2 * np.pi * np.arange(8) / 8
    roda = np.stack([np.cos(angulo), np.sin(angulo)], axis=1)  # (8,) -> (8, 2)
    medidos = tr.cosseno_por_defasagem(roda, (1, 2, 4))
    aula.conferir(
        "roda",
        "Na roda, cos a k posições é cos(45°·k)",
        [
            Conferencia(f"k = {k}", m, float(np.cos(np.pi * k / 4)), 1e-12)
            for k, m in zip((1, 2, 4), medidos, strict=True)
        ],
    )

    colunas = {"passo": inteiro, "perda": decimal} | {f"k = {k}": decimal for k in DEFASAGENS}
    no_fim = {}  # nome -> cossenos, para a comparação do fim do ato
    if obras:
        texto = "\n".join(o.texto for o in obras)
        letras = tr.alfabeto(texto)
        fita = letras.codificar(texto)  # (n,)
        ao_vivo = treinar_letras(fita, "GPT-2 de letras")
        aula.tabela("wpe_ao_vivo", "A wpe de um GPT-2 de letras, enquanto ele treina", colunas, ao_vivo)
        aula.repare("a coluna k = 1 sai de zero e sobe; as outras vêm atrás, e quanto mais longe, menos.")
        aula.diga(
            "**Controle.** O mesmo modelo, os mesmos passos, as mesmas letras, mas em ordem sorteada. "
            "Se a forma viesse do otimizador, e não da língua, apareceria aqui também."
        )
        controle = treinar_letras(tr.embaralhar(fita, SEMENTES[0]), "controle embaralhado")
        aula.tabela("wpe_controle", "O controle: letras embaralhadas", colunas, controle)
        no_fim["letras, texto"], no_fim["letras, embaralhadas"] = ao_vivo[-1][2:], controle[-1][2:]
        curvas_de = "o GPT-2 de letras, ao vivo"
    else:
        aula.diga(
            "Sem corpus, **nada treina agora**: a história abaixo é a do mini (BPE, 256 posições), contada pelos "
            "retratos que guardamos da sua wpe enquanto ele treinava."
        )
        curvas_de = "o mini, pelos retratos guardados"
    do_mini = [
        [f["passo"], f["perda_treino"], *tr.cosseno_por_defasagem(f["wpe"], DEFASAGENS)] for f in fotos
    ]
    aula.tabela("wpe_mini", "A wpe do mini ao longo do treino longo (retratos)", colunas, do_mini)
    aula.repare(
        "no mini a perda já caiu bastante quando a wpe ainda parece sorteada: com 8.192 tokens, "
        "as palavras se aprendem primeiro, e as posições depois."
    )
    historia = ao_vivo if obras else do_mini
    eixo = [linha[0] for linha in historia]
    aula.figura(
        "wpe_tomando_forma",
        lambda: graficos.curvas(
            {f"k = {k}": (eixo, [linha[2 + i] for linha in historia]) for i, k in enumerate(DEFASAGENS)},
            f"Vizinhas aprendem a se parecer ({curvas_de})", "passo do treino", "cosseno médio", zero=True,
        ),
        "Cosseno médio entre linhas da wpe a k posições, do primeiro ao último passo.",
    )  # fmt: skip
    no_fim["mini"] = do_mini[-1][2:]
    no_fim["GPT-2 verdadeiro"] = [gpt2[k] for k in DEFASAGENS]
    aula.tabela(
        "wpe_no_fim",
        "Onde cada treino acaba (o GPT-2: medido à parte na wpe da OpenAI)",
        {"modelo": str} | {f"k = {k}": decimal for k in DEFASAGENS},
        [[nome, *valores] for nome, valores in no_fim.items()],
    )
    aula.figura(
        "wpe_no_fim",
        lambda: graficos.curvas(
            {nome: (DEFASAGENS, valores) for nome, valores in no_fim.items()},
            "O cosseno cai com a distância", "defasagem k", "cosseno médio", log_x=True, zero=True, marcador="o",
        ),
        "Cosseno médio por defasagem no fim de cada treino, ao lado do GPT-2.",
    )  # fmt: skip
    for nome, valores in no_fim.items():
        for k, valor in zip(DEFASAGENS, valores, strict=True):
            aula.resultado(f"wpe.k{k}", valor, "cosseno", modelo=nome)
    aula.repare(
        "ninguém disse ao modelo que 7 vem depois de 6. A ordem do texto disse; o GPT-2, com muito mais "
        "texto, levou a mesma ideia até o fim."
    )
    aula.codigo(tr.cosseno_por_defasagem, tr.grupos_de_parametros)


# %% ------------------------------------------------------------------------- atos 2 e 3
def novo(semente, atado):
    """Um GPT-2 de BPE pequeno, pronto para treinar na fita: atado ou solto."""
    modelo = tr.novo_gpt2(VOCABULARIO, **TOKENS, semente=semente, atado=atado)
    receita = tr.Receita(PASSOS_TOKENS, LOTE_TOKENS, TOKENS["posicoes"], aquecimento=50, semente=semente)
    return tr.Treino(modelo, fita_bpe, receita)


def acompanhar(treino, rotulo, tambem=lambda passo, modelo: None):
    """Treina até o fim, medindo a validação nas marcas: [[passo, perda de validação]]."""
    def medir():
        tambem(treino.passo, treino.modelo)
        return [treino.passo, tr.perda_media(treino.modelo, fita_fora, TOKENS["posicoes"], 32, janelas=96)]

    curva = [medir()]
    curva += [medir() for p in com_barra(treino, rotulo) if p.passo in marcas(PASSOS_TOKENS)]
    return curva


if obras and any(aula.args.secao is None or s in aula.args.secao for s in (2, 3)):
    bpe = tr.treinar_bpe([o.texto for o in obras], VOCABULARIO)
    fita_bpe, fita_fora = tr.codificar(bpe, obras), tr.codificar(bpe, validacao)

prontos = {}  # (semente, atado) -> (treino, curva): o ato 3 reaproveita o que o ato 2 treinou

if aula.secao(2):
    aula.diga(
        "Atada, a matriz E trabalha duas vezes: é consultada na entrada e vira a régua da saída, h·Eᵀ. O gradiente "
        "dela é a soma de dois. Brinquedo: y = w·w, com w = 3. Um w recebe dy/dw = 3; o outro, 3; juntos, 6."
    )
    w = torch.tensor(3.0, requires_grad=True)
    (w * w).backward()
    aula.conferir("brinquedo", "A regra do produto", [Conferencia("dy/dw = 3 + 3", float(w.grad), 6.0)])
    linhas, diferencas = [], []

    def abrir(passo, modelo):
        """Mede os dois caminhos no lote fixo e confere a soma com o autograd."""
        dois = tr.dois_caminhos(modelo, x, y)
        inteiro_ = tr.gradiente_atado(modelo, x, y)  # (V, d)
        diferencas.append(float(np.abs(dois.entrada + dois.saida - inteiro_).max()))
        linhas.append(
            [passo, dois.norma_entrada, dois.norma_saida, dois.cosseno, dois.linhas_entrada, dois.linhas_saida]
        )

    if obras:
        x, y = tr.lote_fixo(fita_fora, TOKENS["posicoes"], LOTE_TOKENS)  # (B, T), (B, T)
        treino = novo(SEMENTES[0], True)
        curva = acompanhar(treino, f"atado, semente {SEMENTES[0]}", abrir)
        prontos[SEMENTES[0], True] = treino, curva
        quem = f"GPT-2 atado de {VOCABULARIO} tokens, ao longo do treino"
    else:
        nascido, completo, ids = mini.para_o_lote_sem_corpus()
        x, y = tr.lote_fixo(ids, 64, 8)  # (8, 64), (8, 64)
        abrir(0, nascido)
        abrir(fotos[-1]["passo"], completo)
        quem = "mini: recém-sorteado e treinado, num trecho de Casa Velha que ele não viu"
    V = len(completo.transformer.wte.weight) if not obras else VOCABULARIO
    aula.tabela(
        "dois_gradientes",
        f"Os dois caminhos ({quem}; lote de {x.numel()} tokens, V = {inteiro(V)})",
        {"passo": inteiro, "norma entrada": decimal, "norma saída": decimal, "cosseno entre eles": decimal,
         "linhas tocadas, entrada": inteiro, "linhas tocadas, saída": inteiro},
        linhas,
    )  # fmt: skip
    aula.comparar(
        "soma",
        "Entrada + saída contra o gradiente do autograd",
        [Conferencia("maior diferença em todos os passos", max(diferencas), 0.0, 1e-6)],
    )
    aula.repare(
        "a entrada só toca as linhas dos tokens do lote; a saída toca todas, sempre: cada token que não veio é "
        "empurrado para longe. Um token raro é quase todo moldado pela saída."
    )
    aula.resultado("dois.cosseno_no_fim", linhas[-1][3], "cosseno", modelo=quem)
    aula.resultado("dois.razao_no_fim", linhas[-1][2] / linhas[-1][1], "saída / entrada", modelo=quem)
    aula.figura(
        "dois_gradientes",
        lambda: graficos.curvas(
            {"entrada": ([l[0] for l in linhas], [l[1] for l in linhas]),
             "saída": ([l[0] for l in linhas], [l[2] for l in linhas]),
             "cosseno": ([l[0] for l in linhas], [l[3] for l in linhas])},
            "Dois gradientes na mesma matriz", "passo do treino", "norma (e cosseno)", zero=True, marcador="o",
        ),
        "Norma do gradiente de cada caminho e o cosseno entre os dois.",
    )  # fmt: skip
    aula.codigo(tr.dois_caminhos)
