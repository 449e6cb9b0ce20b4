"""Os experimentos da lição 06: cada função mede uma coisa e devolve um quadro ou conferências.

Quem mostra é a lição. As fórmulas moram em `posicoes`, `rope`, `escalonamento`, `vieses` e
`permutacao`; aqui elas são postas à prova, contra uma conta independente ou contra a biblioteca.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nucleo import caminhos, escalonamento, permutacao, posicoes, rope, trocas
from nucleo.escalonamento import Escalonamento
from nucleo.posicoes import CamadaDeEntrada, CodificacaoPosicional, EmbeddingsDeEntrada, senoides
from nucleo.saida import Conferencia, Quadro
from nucleo.unidades import cientifico, decimal, inteiro, porcento


@cache
def textos() -> dict:
    """As frases e os trechos que a lição usa, de data/posicoes/textos.json."""
    return json.loads((caminhos.DADOS / "posicoes" / "textos.json").read_text(encoding="utf-8"))


def gerador(semente: int) -> torch.Generator:
    """Um sorteio que não depende de quem sorteou antes."""
    return torch.Generator().manual_seed(semente)


# --------------------------------------------------------------------------- 6.1


def consulta_de_brinquedo() -> tuple[Tensor, Tensor, list[Conferencia]]:
    """Uma tabela 5 × 4, três ids, e a prova de que one-hot · tabela é só buscar linhas."""
    tabela = torch.arange(20, dtype=torch.float32).reshape(5, 4)
    ids = torch.tensor([3, 0, 3])
    onehot = torch.eye(5)[ids]  # (3,) -> (3, 5)
    diferenca = (onehot @ tabela - tabela[ids]).abs().max()  # (3, 5) @ (5, 4) -> (3, 4)
    return tabela, tabela[ids], [Conferencia("onehot(ids) · E contra E[ids]", float(diferenca))]


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
    return Quadro(f"As senoides à mão, d = {d}", {"pos": str} | dict.fromkeys(colunas, decimal), linhas)


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
    return Quadro("As formas, lidas da camada enquanto roda", {"etapa": str, "forma": str, "o que é": str}, linhas)


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
            resposta = str(erro).split("\t")[-1].split(":")[0] + ": forma diferente"
        bytes_ = sum(t.numel() * t.element_size() for t in estado.values())
        linhas.append([nome, ", ".join(estado) or "nenhuma", bytes_, resposta])
    return Quadro(
        f"A tabela de posições e o state_dict (max_len de 512 para 1024, d = {d})",
        {"a tabela é": str, "chaves": str, "bytes": inteiro, "carregar com outro max_len": str},
        linhas,
    )


def precisao_das_frequencias(d: int) -> list[list]:
    """[[forma, maior erro relativo]] das frequências em float32, contra float64."""
    exata = posicoes.frequencias(d)
    linhas = []
    for nome, forma in (
        ("1/10000^(2i/d), direta", "potencia"),
        ("exp(−2i/d · ln 10000)", "exp_log"),
    ):
        f = posicoes.frequencias_em(d, torch.float32, forma).double()
        linhas.append([nome, float(((f - exata) / exata).abs().max())])
    return linhas


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
            f"com posição, «{palavras[a]}» na posição {a} e na {b}",
            float((com_pos[0][a] - com_pos[1][b]).norm()),
        ],
    ]
    titulo = f"O exercício: «{palavras[a]}» e «{palavras[b]}» trocam de lugar"
    return Quadro(titulo, {"o que se compara": str, "distância": decimal}, linhas)


class SemPosicao(NamedTuple):
    """Um modelo de verdade, com e sem as posições."""

    perda: trocas.Comparacao  # num trecho corrido
    ordens_com: float  # variação total entre as duas ordens da frase, com posição
    ordens_sem: float  # e sem


def sem_posicao(modelo, texto: str, ordens: list[str]) -> SemPosicao:
    """Tira as posições do modelo (RoPE parado, ou wpe zerada) e mede a perda e as duas ordens.

    `modelo` é um `modelos.Modelo` com o corpo inteiro. As duas ordens ganham o mesmo ponto no fim,
    para que a última posição tenha o mesmo token nas duas.
    """
    lm, tok = modelo.completo(), modelo.tokenizador
    tirar = (
        trocas.wpe_trocada(lm) if modelo.wpe is not None else trocas.rope_trocado(lm, parado=True)
    )
    ids = torch.tensor(tok.ids(texto))
    frases = [torch.tensor(tok.ids(o + " .\n")) for o in ordens]

    def distancia() -> float:
        # A previsão depois do ponto: (V,) em cada ordem, e a variação total entre elas.
        p, q = (trocas.ler(lm, f).log_probs[-1].exp() for f in frases)
        return float((p - q).abs().sum() / 2)

    com, ordens_com = trocas.ler(lm, ids), distancia()
    with tirar:
        sem, ordens_sem = trocas.ler(lm, ids), distancia()
    return SemPosicao(trocas.comparar(com, sem), ordens_com, ordens_sem)


# --------------------------------------------------------------------------- 6.6


def conferir_rope(d: int, T: int, semente: int) -> list[Conferencia]:
    """RoPE contra a forma lenta, contra o transformers e contra o que ele promete."""
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    q = torch.randn(1, 2, T, d, generator=gerador(semente))
    exato = q.double()
    linhas = [
        Conferencia(f"{p}: rápido contra o lento, 2 × 2", _maior(rope.rope_lento(exato, pareamento=p), rope.rope(exato, pareamento=p)), 0, 1e-12)
        for p in rope.PAREAMENTOS
    ]  # fmt: skip
    llama = LlamaRotaryEmbedding(config_llama(d))(q, torch.arange(T)[None])
    deles = apply_rotary_pos_emb(q, q, *llama)[0]
    linhas.append(
        Conferencia(
            "metades contra o Llama do transformers",
            _maior(rope.rope(q, pareamento="metades"), deles),
            0,
            1e-5,
        )
    )
    sen, cos = create_sinusoidal_positions(T, d).chunk(2, -1)
    deles = gptj(q.transpose(1, 2), sen[None], cos[None]).transpose(1, 2)
    linhas.append(
        Conferencia(
            "intercalado contra o GPT-J do transformers", _maior(rope.rope(q), deles), 0, 1e-5
        )
    )
    p = rope.permutacao_para_metades(d)
    linhas.append(
        Conferencia(
            "a permutação leva um pareamento ao outro",
            _maior(rope.rope(exato)[..., p], rope.rope(exato[..., p], pareamento="metades")),
            0,
            1e-12,
        )
    )
    linhas.append(
        Conferencia(
            "a norma de cada vetor",
            _maior(exato.norm(dim=-1), rope.rope(exato).norm(dim=-1)),
            0,
            1e-12,
        )
    )
    M = mapa_qk(d, T, semente)
    diagonais = [M.diagonal(k) for k in range(1 - T, T)]
    desvio = max(float(g.max() - g.min()) for g in diagonais)
    linhas.append(Conferencia("q·k ao longo de cada diagonal m − n", desvio, 0, 1e-9))
    return linhas


def _maior(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


def mapa_qk(d: int, T: int, semente: int) -> Tensor:
    """(T, T): (R_m q) · (R_n k) para UM q e UM k sorteados, em todas as posições m e n."""
    q, k = torch.randn(2, d, generator=gerador(semente)).double() / d**0.25
    Q, K = rope.rope(q.expand(T, d)), rope.rope(k.expand(T, d))  # (d,) -> (T, d)
    return Q @ K.T  # (T, d) @ (d, T) -> (T, T)


def config_llama(d: int, maximo: int = 2048, **rope_parameters):
    """Um LlamaConfig do transformers que só serve para pedir as frequências."""
    from transformers import LlamaConfig

    padrao = {"rope_type": "default", "rope_theta": posicoes.BASE}
    return LlamaConfig(
        hidden_size=d, num_attention_heads=1, head_dim=d, max_position_embeddings=maximo,
        rope_parameters=padrao | rope_parameters,
    )  # fmt: skip


def angulos_em_meia_precisao(d: int, quais: list[int]) -> list[list]:
    """[[posição, erro de cos em float32, bfloat16, float16]] com o ângulo feito em cada tipo."""
    theta, linhas = posicoes.frequencias(d), []
    for pos in quais:
        trecho = torch.arange(max(0, pos - 63), pos + 1)
        exato = rope.tabelas(trecho, theta, dtype=torch.float64)[0]
        linha = [pos]
        for tipo in (torch.float32, torch.bfloat16, torch.float16):
            c = rope.tabelas(trecho, theta, dtype=torch.float64, precisao_do_angulo=tipo)[0]
            linha.append(_maior(c, exato))
        linhas.append(linha)
    return linhas


class NoSmolLM2(NamedTuple):
    """O RoPE dentro de um modelo de verdade."""

    conferencias: list[Conferencia]
    perdas: list[list]  # [[o que se fez, perda, token mais provável igual]]


def dentro_do_modelo(modelo, texto: str, posicoes_inteiras: bool = True) -> NoSmolLM2:
    """O nosso RoPE no lugar do da biblioteca; os pareamentos misturados; a mistura desfeita.

    Argumentos:
        modelo: `modelos.Modelo` com RoPE e o corpo inteiro.
    """
    lm = modelo.completo()
    ids = torch.tensor(modelo.tokenizador.ids(texto))
    original = trocas.ler(lm, ids)
    with trocas.rope_trocado(lm):
        nosso = trocas.comparar(original, trocas.ler(lm, ids))
    with trocas.rope_trocado(lm, "intercalado"):
        misturado = trocas.comparar(original, trocas.ler(lm, ids))
    with trocas.projecoes_permutadas(lm), trocas.rope_trocado(lm, "intercalado"):
        desfeito = trocas.comparar(original, trocas.ler(lm, ids))
    # Log-probabilidades em float32 depois de 30 camadas: o ruído fica em alguns 1e-4.
    return NoSmolLM2(
        [
            Conferencia("nosso RoPE no lugar do da biblioteca", nosso.maior_diferenca, 0, 1e-3),
            Conferencia("pesos permutados e RoPE intercalado", desfeito.maior_diferenca, 0, 1e-3),
        ],
        [
            ["como veio", original.perda, 1.0],
            ["nosso RoPE, metades", nosso.perda_depois, nosso.mesma_resposta],
            ["pareamento errado (intercalado)", misturado.perda_depois, misturado.mesma_resposta],
            [
                "intercalado, com q_proj e k_proj permutados",
                desfeito.perda_depois,
                desfeito.mesma_resposta,
            ],
        ],
    )


# --------------------------------------------------------------------------- 6.6, esticar


class Receita(NamedTuple):
    """Um esticamento, e o que se pede ao transformers para obter o mesmo (None: ele não o tem)."""

    nome: str
    escala: Escalonamento
    parametros: dict | None
    comprimento: int | None = None


def receitas(d: int, treino: int, fator: float, base: float = posicoes.BASE) -> list[Receita]:
    """Todas as receitas para esticar `treino` posições `fator` vezes."""
    longo = int(treino * fator)
    L = {"original_max_position_embeddings": treino, "factor": fator}
    return [
        Receita("sem esticar", escalonamento.sem_escala(d, base), {"rope_type": "default"}),
        Receita(
            "linear", escalonamento.linear(d, fator, base), {"rope_type": "linear", "factor": fator}
        ),
        Receita("NTK", escalonamento.ntk(d, fator, base), None),
        Receita(
            "NTK dinâmico",
            escalonamento.ntk_dinamico(d, longo, treino, 1.0, base),
            {"rope_type": "dynamic", "factor": 1.0},
            longo,
        ),
        Receita("YaRN", escalonamento.yarn(d, fator, treino, base), {"rope_type": "yarn", **L}),
        Receita(
            "Llama 3",
            escalonamento.llama3(d, fator, treino, base),
            {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, **L},
        ),
    ]


def conferir_esticamentos(d: int, treino: int, fator: float) -> list[Conferencia]:
    """As nossas frequências contra as de transformers: maior diferença relativa."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    linhas = []
    for r in receitas(d, treino, fator):
        if r.parametros is None:
            continue
        config = config_llama(d, maximo=treino, **r.parametros)
        if r.parametros["rope_type"] == "default":
            deles, atencao = LlamaRotaryEmbedding.compute_default_rope_parameters(config)
        else:
            funcao = ROPE_INIT_FUNCTIONS[r.parametros["rope_type"]]
            deles, atencao = funcao(config, seq_len=r.comprimento)
        relativa = float((r.escala.frequencias / deles.double() - 1).abs().max())
        linhas.append(
            Conferencia(
                f"{r.nome}: frequências",
                max(relativa, abs(atencao - r.escala.fator_de_atencao)),
                0,
                1e-5,
            )
        )
    # O NTK de fator fixo não existe no transformers: é o RoPE comum com outra base.
    base = escalonamento.base_ntk(d, fator)
    deles, _ = LlamaRotaryEmbedding.compute_default_rope_parameters(
        config_llama(d, rope_theta=base)
    )
    nossas = escalonamento.ntk(d, fator).frequencias
    linhas.append(
        Conferencia(
            f"NTK: frequências da base {base:.0f}",
            float((nossas / deles.double() - 1).abs().max()),
            0,
            1e-5,
        )
    )
    return linhas


def rampas_do_yarn(d: int, treino: int, fator: float) -> float:
    """Maior diferença, em fração de θ, entre o YaRN do código publicado e o da fórmula impressa."""
    theta = posicoes.frequencias(d)
    a, b = (escalonamento.yarn(d, fator, treino, rampa=r).frequencias for r in ("indice", "artigo"))
    return float(((a - b).abs() / theta).max())
