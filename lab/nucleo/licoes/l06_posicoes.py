"""Os experimentos da lição 06: cada função mede uma coisa e devolve um quadro ou conferências.

Quem mostra é a lição. As fórmulas moram em `posicoes`, `rope`, `escalonamento`, `vieses` e
`permutacao`; aqui elas são postas à prova, contra uma conta independente ou contra a biblioteca.
"""

from __future__ import annotations

import json
import math
from functools import cache

import torch
from torch import Tensor, nn

from nucleo.base import caminhos
from nucleo.base.caderno import Conferencia, Quadro
from nucleo.base.unidades import cientifico, decimal, inteiro, porcento
from nucleo.contas import permutacao, posicoes, posicoes_no_modelo, vieses
from nucleo.contas.posicoes import (
    CamadaDeEntrada,
    CodificacaoPosicional,
    EmbeddingsDeEntrada,
    senoides,
)


@cache
def textos() -> dict:
    """As frases e os trechos que a lição usa, de data/posicoes/textos.json."""
    return json.loads((caminhos.DADOS / "posicoes" / "textos.json").read_text(encoding="utf-8"))


def trecho(lingua: str) -> str:
    """O trecho corrido de uma língua ("pt" ou "en")."""
    de = textos()[lingua]
    if "texto" in de:
        return de["texto"]
    return (caminhos.DADOS / de["arquivo"]).read_text(encoding="utf-8")[: de["caracteres"]]


def frase_e_troca(frase: str | None, troca: list[int] | None) -> tuple[list[str], int, int, Tensor]:
    """(palavras, i, j, permutação) do que foi pedido, ou da frase padrão.

    Levanta:
        ErroDePosicao: menos de três palavras, posições fora da frase ou que mexem na última.
    """
    palavras = frase.split() if frase is not None else textos()["frase"]
    if len(palavras) < 3:
        raise posicoes.ErroDePosicao(
            f"A frase tem {len(palavras)} palavra(s), e são precisas três.",
            "Duas trocam de lugar, e a última fica parada para se comparar o que ela vê.",
            'Por exemplo:  --frase "a gata viu o rato ." --troca 1 4',
        )
    padrao = textos()["troca"] if frase is None else (0, len(palavras) - 2)
    i, j = troca or padrao
    ordem = permutacao.troca(len(palavras), i, j)
    if len(palavras) - 1 in (i, j):
        raise posicoes.ErroDePosicao(
            f"A troca mexe na última palavra, a da posição {len(palavras) - 1}.",
            "A comparação é do que a última posição vê: ela precisa ter a mesma palavra nas duas ordens.",
            "Troque palavras anteriores, ou termine a frase com um ponto separado por espaço.",
        )
    return palavras, i, j, ordem


def gerador(semente: int) -> torch.Generator:
    """Um sorteio que não depende de quem sorteou antes."""
    return torch.Generator().manual_seed(semente)


# --------------------------------------------------------------------------- 6.1


def consulta_de_brinquedo() -> tuple[Tensor, list[Conferencia]]:
    """Uma tabela 5 × 4 e a prova de que one-hot · tabela é só buscar linhas."""
    tabela = torch.arange(20, dtype=torch.float32).reshape(5, 4)
    ids = torch.tensor([3, 0, 3])
    onehot = torch.eye(5)[ids]  # (3,) -> (3, 5)
    diferenca = (onehot @ tabela - tabela[ids]).abs().max()  # (3, 5) @ (5, 4) -> (3, 4)
    return tabela, [Conferencia("as duas maneiras de buscar", float(diferenca))]


def equilibrio(d: int, semente: int, tokens: int = 2_000) -> Quadro:
    """Início das linhas, se multiplica por √d, norma do token, norma da posição, razão.

    Cada linha do quadro é uma camada de verdade, recém-sorteada, com `tokens` ids e as posições
    0 … tokens − 1.
    """
    ids = torch.arange(tokens)[None]
    norma_posicao = float(senoides(tokens, d).norm(dim=-1).mean())
    linhas = []
    for nome, desvio in (("N(0, 1), o do nn.Embedding", 1.0), ("N(0, 1/d)", d**-0.5)):
        for escalar in (True, False):
            torch.manual_seed(semente)
            camada = EmbeddingsDeEntrada(tokens, d, escalar=escalar, desvio_inicial=desvio)
            norma = float(camada(ids).detach().norm(dim=-1).mean())
            vezes = "sim" if escalar else "não"
            linhas.append([nome, vezes, norma, norma_posicao, norma / norma_posicao])
    numeros = dict.fromkeys(("‖token‖", "‖posição‖", "razão"), decimal)
    titulo = f"Token contra posição, d = {d}: normas médias de camadas recém-sorteadas"
    return Quadro(titulo, {"início das linhas": str, "× √d": str} | numeros, linhas)


def resumo_do_equilibrio(quadro: Quadro) -> dict[str, float]:
    """{id: norma} para o resultado.json, a partir do quadro de `equilibrio`."""
    ids = ("norma_n01_com_raiz", "norma_n01", "norma_n1d_com_raiz", "norma_n1d")
    normas = {id_: linha[2] for id_, linha in zip(ids, quadro.linhas, strict=True)}
    return normas | {"norma_posicao": quadro.linhas[0][3]}


# --------------------------------------------------------------------------- 6.2, a ordem


def vetores_da_frase(palavras: list[str], d: int, semente: int) -> Tensor:
    """Um vetor N(0, 1) por palavra DIFERENTE: a mesma palavra recebe sempre o mesmo. (T, d)."""
    tabela = torch.randn(len(set(palavras)), d, generator=gerador(semente))
    linha = {p: i for i, p in enumerate(dict.fromkeys(palavras))}
    return tabela[[linha[p] for p in palavras]]  # (V, d) -> (T, d)


def percebe_a_ordem(palavras: list[str], ordem: Tensor, d: int, semente: int) -> Quadro:
    """O que uma atenção de pesos sorteados vê quando a frase troca de ordem.

    "Percebe" é passar de 1e-4: o arredondamento fica perto de 1e-7, e o resto, perto de 1.
    """
    x = vetores_da_frase(palavras, d, semente)
    pe = senoides(len(x), d)
    linhas = []
    for causal, n in ((False, 1), (False, 2), (True, 1), (True, 2)):
        camadas = permutacao.sortear_camadas(n, d, semente)
        mascara = "causal" if causal else "nenhuma"
        todas = permutacao.erro_de_equivariancia(x, ordem, camadas, causal)
        ultima = permutacao.diferenca_na_ultima(x, ordem, camadas, causal)
        linhas.append(["sem", mascara, n, "todas as saídas, destrocadas", todas])
        linhas.append(["sem", mascara, n, "só a última", ultima])
    camadas = permutacao.sortear_camadas(1, d, semente)
    a, b = (permutacao.empilhar(v + pe, camadas) for v in (x[ordem], x))
    linhas.append(
        [
            "senoidal",
            "nenhuma",
            1,
            "todas as saídas, destrocadas",
            float((a - b[ordem]).abs().max()),
        ]
    )
    linhas.append(["senoidal", "nenhuma", 1, "só a última", float((a - b)[-1].abs().max())])
    return Quadro(
        "Uma atenção de pesos sorteados percebe a troca?",
        {"posição": str, "máscara": str, "camadas": str, "onde se olha": str,
         "diferença": cientifico, "percebe": str},
        [[*linha, "sim" if linha[-1] > 1e-4 else "não"] for linha in linhas],
    )  # fmt: skip


# --------------------------------------------------------------------------- 6.2, as senoides


def senoides_a_mao(n: int, d: int) -> list[list[float]]:
    """[[PE(pos, 0), …, PE(pos, d−1)]] com o `math` do Python, sem torch: a fórmula e mais nada."""
    linhas = []
    for pos in range(n):
        angulos = [pos / 10000 ** (2 * i / d) for i in range(d // 2)]
        linhas.append([f(a) for a in angulos for f in (math.sin, math.cos)])
    return linhas


def quadro_a_mao(n: int, d: int) -> Quadro:
    """`senoides_a_mao` com a fórmula de cada coluna no cabeçalho."""
    divisores = [f"{10000 ** (2 * i / d):.4g}".replace(".", ",") for i in range(d // 2)]
    colunas = [f"{f} pos/{v}" for v in divisores for f in ("sen", "cos")]
    linhas = [[pos, *linha] for pos, linha in enumerate(senoides_a_mao(n, d))]
    return Quadro(
        f"As senoides à mão, d = {d}", {"pos": str} | dict.fromkeys(colunas, decimal), linhas
    )


def conferir_senoides(d: int, n: int) -> list[Conferencia]:
    """A tabela contra a conta à mão, as propriedades do artigo e a tabela de uma biblioteca."""
    from transformers.models.xlm.modeling_xlm import create_sinusoidal_embeddings

    exata = senoides(n, d, dtype=torch.float64)  # (n, d)
    a_mao = torch.tensor(senoides_a_mao(n, d), dtype=torch.float64)
    xlm = create_sinusoidal_embeddings(n, d, torch.empty(n, d))
    linhas = [
        Conferencia(
            "contra a fórmula em Python puro", float((exata - a_mao).abs().max()), 0, 1e-12
        ),
        Conferencia(
            "contra o XLM, no transformers", float((senoides(n, d) - xlm).abs().max()), 0, 1e-6
        ),
    ]
    for k in (1, 7, 100):
        M = posicoes.matriz_de_deslocamento(k, d)  # (d, d)
        adiante = senoides(torch.arange(k, n + k), d, dtype=torch.float64)
        erro = (exata @ M.T - adiante).abs().max()  # cada linha: M · PE(pos)
        linhas.append(
            Conferencia(f"M({k}) · PE(pos) = PE(pos + {k}), todo pos", float(erro), 0, 1e-9)
        )
    produtos = exata @ exata.T  # (n, n): PE(i) · PE(j)
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    fechada = posicoes.produto_interno_por_distancia(torch.arange(n), d)[(i - j).abs()]
    linhas.append(
        Conferencia(
            "PE(i) · PE(j) só depende de |i − j|", float((produtos - fechada).abs().max()), 0, 1e-9
        )
    )
    return linhas


def disposicoes(d: int, n: int) -> list[Conferencia]:
    """Cada disposição contra a biblioteca que a usa: outra convenção, não outro acerto."""
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    d = max(d, 4)  # a do fairseq não existe com um par só
    metades = senoides(n, d, disposicao="metades") - create_sinusoidal_positions(n, d)
    fairseq = senoides(n, d, disposicao="fairseq")
    fairseq = fairseq - M2M100SinusoidalPositionalEmbedding.get_embedding(n, d)
    # As duas bibliotecas fazem o ângulo em float32: até n radianos, o erro chega a n · 6e-8.
    return [
        Conferencia("metades (GPT-J)", float(metades.abs().max()), 0, n * 1.2e-7),
        Conferencia("fairseq (M2M-100)", float(fairseq.abs().max()), 0, n * 6e-7),
    ]


def ondas(d: int) -> Quadro:
    """Comprimento de onda de alguns pares, do mais rápido ao mais lento."""
    lambda_ = posicoes.comprimentos_de_onda(d).tolist()
    quais = sorted({0, min(1, d // 2 - 1), d // 8, d // 4, 3 * d // 8, d // 2 - 1})
    colunas = {"par": str, "posições por volta": decimal, "voltas em 512": decimal}
    linhas = [[i, lambda_[i], 512 / lambda_[i]] for i in quais]
    return Quadro(f"Comprimentos de onda, d = {d}", colunas, linhas)


def alem_do_treino() -> str:
    """O que está definido, o que se afirmou e o que se mediu além do comprimento de treino."""
    arquivo = caminhos.DADOS / "extrapolacao" / "publicados.json"
    press = json.loads(arquivo.read_text(encoding="utf-8"))["press"]
    medido = next(linha for linha in press["linhas"] if linha["esquema"] == "senoidal")
    antes, depois = decimal(medido["no_treino"], 2), decimal(medido["depois"], 2)
    return (
        "Além do treino. **Definido**: a senoide existe em qualquer posição. **Afirmado**: por isso o "
        "modelo “poderia” extrapolar (Vaswani et al., 2017, seção 3.5). **Medido**: treinado em 512, "
        f"vai de {antes} a {depois} de perplexidade em {medido['em']} (Press et al., 2021)."
    )


def proximas(d: int, T: int, posicao: int) -> Quadro:
    """As posições de maior cosseno com `posicao`."""
    perto = posicoes.posicoes_mais_proximas(senoides(T, d), posicao, 6)
    colunas = {"posição": str, "cosseno": decimal}
    return Quadro(f"As mais próximas da posição {posicao}", colunas, [list(p) for p in perto])


# --------------------------------------------------------------------------- 6.3


def formas(V: int, d: int, T: int, B: int, max_len: int) -> dict[str, tuple[int, ...]]:
    """{etapa: forma}, lidas da própria camada enquanto ela roda."""
    camada = CamadaDeEntrada(V, d, max_len).eval()
    ids = torch.randint(V, (B, T), generator=gerador(0))
    etapas = {
        "ids": ids,
        "E": camada.embeddings.tabela.weight,
        "E[ids]": camada.embeddings.tabela(ids),
        "E[ids] · √d": camada.embeddings(ids),
        "PE": camada.posicoes.pe,
        "PE[:T]": camada.posicoes.pe[:T],
        "saída": camada(ids),
    }
    return {nome: tuple(tensor.shape) for nome, tensor in etapas.items()}


def quadro_das_formas(vistas: dict[str, tuple[int, ...]]) -> Quadro:
    """As formas de `formas`, com o que cada etapa é."""
    o_que = {
        "ids": "um número por token",
        "E": "a tabela de embeddings, |V| linhas",
        "E[ids]": "uma linha por token",
        "E[ids] · √d": "as mesmas, maiores",
        "PE": "a tabela de posições, max_len linhas",
        "PE[:T]": "as T primeiras; o lote vem por broadcasting",
        "saída": "a soma, depois do dropout",
    }
    linhas = [[nome, str(forma), o_que[nome]] for nome, forma in vistas.items()]
    return Quadro(
        "As formas, lidas da camada enquanto roda",
        {"etapa": str, "forma": str, "o que é": str},
        linhas,
    )


def broadcasting(V: int, d: int, T: int, B: int) -> Conferencia:
    """A soma com broadcasting contra três laços, elemento a elemento."""
    camada = CamadaDeEntrada(V, d, T).eval()
    ids = torch.randint(V, (B, T), generator=gerador(0))
    saida, E, pe = camada(ids), camada.embeddings.tabela.weight, camada.posicoes.pe
    pior = 0.0
    for b in range(B):
        for t in range(T):
            for i in range(d):
                certo = E[ids[b, t], i].item() * math.sqrt(d) + pe[t, i].item()
                pior = max(pior, abs(saida[b, t, i].item() - certo))
    return Conferencia(f"broadcasting contra três laços (B, T, d = {B}, {T}, {d})", pior, 0, 1e-5)


def dropout_medido(p: float, semente: int) -> list[Conferencia]:
    """O que o dropout faz ao treinar e ao avaliar, contado em uma entrada de uns."""
    camada, x = CodificacaoPosicional(64, 200, dropout=p), torch.ones(8, 200, 64)
    avaliando = camada.eval()(x)
    torch.manual_seed(semente)
    treinando = camada.train()(x)
    vivos = treinando != 0
    razao = (treinando[vivos] / avaliando[vivos]).mean()
    return [
        Conferencia("treino: fração zerada", float((~vivos).float().mean()), p, 0.01),
        Conferencia("treino: quanto crescem os que ficam", float(razao), 1 / (1 - p), 1e-4),
        Conferencia(
            "avaliação: diferença entre duas passadas",
            float((camada.eval()(x) - avaliando).abs().max()),
        ),
    ]


# --------------------------------------------------------------------------- 6.4


class _PeNoEstado(nn.Module):
    """A tabela como buffer que vai para o state_dict, o padrão do register_buffer."""

    def __init__(self, d: int, max_len: int):
        super().__init__()
        self.register_buffer("pe", senoides(max_len, d))


def buffers(d: int) -> Quadro:
    """A tabela de posições dentro e fora do state_dict, ao carregar 512 posições em 1024."""
    linhas = []
    for nome, fabrica in (
        ("buffer persistente", _PeNoEstado),
        ("buffer com persistent=False", lambda d, n: CodificacaoPosicional(d, n)),
    ):
        antiga, nova = fabrica(d, 512), fabrica(d, 1024)
        estado = antiga.state_dict()
        try:
            nova.load_state_dict(estado)
            resposta = "carrega"
        except RuntimeError as erro:
            resposta = "não: " + str(erro).split("\t")[-1].split(":")[0]
        bytes_ = sum(t.numel() * t.element_size() for t in estado.values())
        depois = str(antiga.half().pe.dtype).removeprefix("torch.")
        linhas.append([nome, ", ".join(estado) or "nenhuma", bytes_, depois, resposta])
    return Quadro(
        f"A tabela de posições e o state_dict (max_len de 512 para 1024, d = {d})",
        {
            "a tabela é": str,
            "chaves": str,
            "bytes": inteiro,
            "depois de .half()": str,
            "carregar com outro max_len": str,
        },
        linhas,
    )


def erro_das_frequencias(d: int, forma: str) -> float:
    """Maior erro relativo das frequências em float32, numa das formas, contra float64."""
    exata = posicoes.frequencias(d)
    f = posicoes.frequencias_em(d, torch.float32, forma).double()
    return float(((f - exata) / exata).abs().max())


def quadro_das_frequencias(d: int) -> Quadro:
    """As duas formas de `erro_das_frequencias`."""
    nomes = {
        "potencia": "1/10000^(2i/d), direta",
        "exp_log": "exp(−2i/d · ln 10000), a do capítulo",
    }
    linhas = [[nome, erro_das_frequencias(d, forma)] for forma, nome in nomes.items()]
    colunas = {"como": str, "maior erro relativo": cientifico}
    return Quadro(f"Frequências em float32, d = {d}", colunas, linhas)


PRECISOES = {
    "float32, potência": (torch.float32, "potencia"),
    "float32, exp(log)": (torch.float32, "exp_log"),
    "float16": (torch.float16, "potencia"),
    "bfloat16": (torch.bfloat16, "potencia"),
}


def ou_nao_cabe(erro: float) -> str:
    """Um erro em notação curta; NaN é posição que nem cabe no tipo."""
    return "não cabe" if math.isnan(erro) else cientifico(erro)


def precisao_por_posicao(d: int, quais: list[int], janela: int = 64) -> Quadro:
    """O erro da tabela em cada uma das PRECISOES: o pior das `janela` posições até cada uma.

    NaN quer dizer que a posição nem cabe no tipo.
    """
    linhas = []
    for pos in quais:
        trecho = torch.arange(max(0, pos - janela + 1), pos + 1)
        exata = senoides(trecho, d, dtype=torch.float64)
        erros = []
        for tipo, forma in PRECISOES.values():
            erro = (posicoes.senoides_em(trecho, d, tipo, forma).double() - exata).abs()
            erros.append(float(erro.max()))  # max de quem tem NaN é NaN
        linhas.append([pos, *erros])
    colunas = {"posição": inteiro} | dict.fromkeys(PRECISOES, ou_nao_cabe)
    return Quadro("O erro da tabela pronta, posição a posição", colunas, linhas)


def erro_do_float64(d: int, pos: int) -> Conferencia:
    """A nossa tabela em float64 contra 40 casas decimais (mpmath, que vem com o torch)."""
    import mpmath

    nossa = senoides([pos], d, dtype=torch.float64)[0]
    with mpmath.workdps(40):
        pior = 0.0
        for i in range(d // 2):
            angulo = mpmath.mpf(pos) / mpmath.power(10000, mpmath.mpf(2 * i) / d)
            for coluna, f in ((2 * i, mpmath.sin), (2 * i + 1, mpmath.cos)):
                pior = max(pior, abs(float(f(angulo)) - float(nossa[coluna])))
    return Conferencia(f"float64 contra 40 casas, na posição {pos}", pior, 0, 1e-9)


def meia_precisao(d: int, n: int) -> Quadro:
    """Mudar de tipo depois (`.half()` na camada) e antes (o ângulo feito no tipo)."""
    exata = senoides(n, d, dtype=torch.float64)
    linhas = []
    for nome, tipo in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        camada = CodificacaoPosicional(d, n).to(tipo)
        pronta = (camada.pe.double() - exata).abs().max()
        dentro = (posicoes.senoides_em(torch.arange(n), d, tipo).double() - exata).abs().max()
        linhas.append([nome, float(pronta), float(dentro)])
    colunas = {"tipo": str, "só o valor pronto": cientifico, "o ângulo também": cientifico}
    return Quadro(f"Meia precisão, {inteiro(n)} posições: maior erro", colunas, linhas)


def enganos() -> list[str]:
    """As mensagens de três enganos cometidos de propósito."""
    tres = (
        lambda: posicoes.senoides(4, 7),
        lambda: CodificacaoPosicional(8, 100)(torch.zeros(1, 101, 8)),
        lambda: EmbeddingsDeEntrada(50_257, 8)(torch.tensor([[50_257]])),
    )
    mensagens = []
    for engano in tres:
        try:
            engano()
        except posicoes.ErroDePosicao as erro:
            mensagens.append(f"**{erro.o_que}** {erro.por_que} {erro.o_que_fazer}")
    return mensagens


# --------------------------------------------------------------------------- 6.5


def trocar_dois(palavras: list[str], a: int, b: int, d: int, semente: int) -> Quadro:
    """O exercício do capítulo, com números: trocam-se as palavras das posições `a` e `b`.

    A entrada é embedding · √d + posição, da `CamadaDeEntrada` recém-sorteada.
    """
    torch.manual_seed(semente)
    unicas = list(dict.fromkeys(palavras))
    ids = torch.tensor([[unicas.index(p) for p in palavras]])
    trocados = ids[:, permutacao.troca(len(palavras), a, b)]
    camada = CamadaDeEntrada(len(unicas), d, len(palavras)).eval()
    so_token = camada.embeddings(ids)[0].detach(), camada.embeddings(trocados)[0].detach()
    com_pos = camada(ids)[0].detach(), camada(trocados)[0].detach()
    parado = [i for i in range(len(palavras)) if i not in (a, b)]
    linhas = [
        ["sem posição, as frases como bolsas", permutacao.mesma_bolsa(*so_token)],
        ["com posição, as frases como bolsas", permutacao.mesma_bolsa(*com_pos)],
        [
            "com posição, nos lugares que não trocaram",
            float((com_pos[0] - com_pos[1])[parado].abs().max()),
        ],
        [
            f"com posição, “{palavras[a]}” na posição {a} e na {b}",
            float((com_pos[0][a] - com_pos[1][b]).norm()),
        ],
    ]
    titulo = f"O exercício: “{palavras[a]}” e “{palavras[b]}” trocam de lugar"
    return Quadro(titulo, {"o que se compara": str, "distância": decimal}, linhas)


def sem_posicao(modelo, texto: str, ordens: list[str]) -> list:
    """Tira as posições do modelo (RoPE parado, ou wpe zerada) e mede a perda e as duas ordens.

    As duas ordens ganham o mesmo ponto no fim, para que a última posição tenha o mesmo token
    nas duas; o que se compara é a previsão que vem depois dele.

    Argumentos:
        modelo: um `modelos.Modelo` com o corpo inteiro.
    Devolve:
        a linha de `quadro_sem_posicao`.
    """
    lm, tok = modelo.completo(), modelo.tokenizador
    tem_wpe = modelo.wpe is not None
    tirar = (
        posicoes_no_modelo.wpe_trocada(lm)
        if tem_wpe
        else posicoes_no_modelo.rope_trocado(lm, parado=True)
    )
    # Janelas que cabem na wpe; o SmolLM2 leria tudo de uma vez, mas a comparação é a mesma.
    janelas = torch.tensor(tok.ids(texto)).split(modelo.n_ctx or 256)
    frases = [torch.tensor(tok.ids(o + ".")) for o in ordens]

    def entre_as_ordens() -> float:
        p, q = (posicoes_no_modelo.ler(lm, f).log_probs[-1].exp() for f in frases)  # 2 de (V,)
        return float((p - q).abs().sum() / 2)

    com, ordens_com = posicoes_no_modelo.ler_em_janelas(lm, janelas), entre_as_ordens()
    with tirar:
        c, ordens_sem = (
            posicoes_no_modelo.comparar(com, posicoes_no_modelo.ler_em_janelas(lm, janelas)),
            entre_as_ordens(),
        )
    como = "wpe zerada" if tem_wpe else "posições iguais"
    return [
        modelo.nome,
        como,
        c.perda_antes,
        c.perda_depois,
        c.variacao_total,
        ordens_com,
        ordens_sem,
    ]


def quadro_sem_posicao(linhas: list[list]) -> Quadro:
    """O que `sem_posicao` mediu, um modelo por linha."""
    colunas = {"modelo": str, "como": str, "perda com": decimal, "perda sem": decimal}
    colunas |= dict.fromkeys(
        ("previsão que muda", "duas ordens, com", "duas ordens, sem"), porcento
    )
    return Quadro("Tirar as posições de um modelo treinado", colunas, linhas)


def frase_sem_posicao(linhas: list[list]) -> str:
    """O que notar em `quadro_sem_posicao`, com os números dele."""
    partes = [
        f"no {nome} a perda vai de {decimal(com, 2)} a {decimal(sem, 2)}"
        for nome, _, com, sem, *_ in linhas
    ]
    return (
        f"{'; '.join(partes)}. As porcentagens são variação total: a parte de uma previsão que não "
        "está na outra. Sem posição as duas ordens ainda diferem: a máscara causal deixa a ordem vazar."
    )


def quadro_dos_esquemas() -> Quadro:
    """Os seis esquemas, com os parâmetros contados nas medidas do GPT-2 pequeno."""
    colunas = {
        "esquema": str,
        "onde entra": str,
        "parâmetros": inteiro,
        "definido até": str,
        "fonte": str,
    }
    return Quadro(
        "Seis jeitos de dar posição (medidas do GPT-2: d 768, 12 cabeças, 1024 posições)",
        colunas,
        [list(e) for e in vieses.esquemas(768, 12, 1024)],
    )
