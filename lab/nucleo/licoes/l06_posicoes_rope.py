"""Os experimentos da seção 6.6 da lição 06: RoPE, pareamentos e contexto esticado.

Continua `experimentos_06`: cada função mede uma coisa e devolve um quadro ou conferências.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nucleo.base.caderno import Conferencia, Quadro
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import escalonamento, posicoes, posicoes_no_modelo, rope
from nucleo.contas.escalonamento import Escalonamento
from nucleo.licoes.l06_posicoes import gerador, ou_nao_cabe

# --------------------------------------------------------------------------- girar


def brinquedo(n: int) -> Quadro:
    """O vetor (1, 0, 1, 0) nas posições 0 … n − 1, girado pela forma lenta."""
    girados = rope.rope_lento(torch.tensor([[1.0, 0.0, 1.0, 0.0]]).expand(n, 4))  # (n, 4)
    return Quadro(
        "O vetor (1, 0, 1, 0) girado: o par 0 anda 1 rad por posição; o par 1, 0,01",
        {"pos": str} | dict.fromkeys(("x₀", "x₁", "x₂", "x₃"), decimal),
        [[pos, *linha] for pos, linha in enumerate(girados.tolist())],
    )


def conferir_rope(d: int, T: int, semente: int) -> list[Conferencia]:
    """RoPE contra a forma lenta, contra o transformers e contra o que ele promete."""
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    q = torch.randn(1, 2, T, d, generator=gerador(semente))  # (B, H, T, d)
    exato, p = q.double(), rope.permutacao_para_metades(d)
    inter, metades = rope.rope(exato), rope.rope(exato, pareamento="metades")
    lento = [rope.rope_lento(exato, pareamento=nome) for nome in rope.PAREAMENTOS]
    llama = LlamaRotaryEmbedding(config_llama(d))(q, torch.arange(T)[None])
    sen, cos = create_sinusoidal_positions(T, d).chunk(2, -1)
    M = mapa_qk(d, T, semente)
    # (o que, nosso, o outro, tolerância); as bibliotecas fazem o ângulo em float32.
    pares = [
        ("intercalado: rápido contra o lento", inter, lento[0], 1e-12),
        ("metades: rápido contra o lento", metades, lento[1], 1e-12),
        ("metades contra o Llama", metades, apply_rotary_pos_emb(q, q, *llama)[0], 1e-5),
        ("intercalado contra o GPT-J", inter.transpose(1, 2), gptj(q.transpose(1, 2), sen[None], cos[None]), 1e-5),
        ("permutar leva um ao outro", inter[..., p], rope.rope(exato[..., p], pareamento="metades"), 1e-12),
        ("a norma não muda", inter.norm(dim=-1), exato.norm(dim=-1), 1e-12),
        ("q·k de (m + 1, n + 1) e de (m, n)", M[1:, 1:], M[:-1, :-1], 1e-9),
    ]  # fmt: skip
    return [
        Conferencia(nome, float((a - b).abs().max()), 0, tolerancia)
        for nome, a, b, tolerancia in pares
    ]


def mapa_qk(d: int, T: int, semente: int) -> Tensor:
    """(T, T): (R_m q) · (R_n k) para UM q e UM k sorteados, em todas as posições m e n.

    k é q com um pouco de ruído: consulta e chave que combinam, para o pico ficar à vista.
    """
    q, ruido = torch.randn(2, d, generator=gerador(semente)).double() / d**0.25
    k = q + ruido / 2
    Q, K = rope.rope(q.expand(T, d)), rope.rope(k.expand(T, d))  # (d,) -> (T, d)
    return Q @ K.T  # (T, d) @ (d, T) -> (T, T)


def config_llama(d: int, maximo: int = 2048, **rope_parameters):
    """Um LlamaConfig do transformers que só serve para pedir as frequências."""
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=d,
        num_attention_heads=1,
        head_dim=d,
        max_position_embeddings=maximo,
        rope_parameters={"rope_type": "default", "rope_theta": posicoes.BASE} | rope_parameters,
    )


def angulos_em_meia_precisao(d: int, quais: list[int]) -> Quadro:
    """O pior erro de cos nas 64 posições até cada uma, com o ângulo feito em cada tipo."""
    tipos = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    theta, linhas = posicoes.frequencias(d), []
    for pos in quais:
        trecho = torch.arange(max(0, pos - 63), pos + 1)
        exato = rope.tabelas(trecho, theta, dtype=torch.float64)[0]
        ruins = (
            rope.tabelas(trecho, theta, dtype=torch.float64, precisao_do_angulo=tipo)[0]
            for tipo in tipos.values()
        )
        linhas.append([pos, *(float((ruim - exato).abs().max()) for ruim in ruins)])
    colunas = {"posição": inteiro} | dict.fromkeys(tipos, ou_nao_cabe)
    return Quadro("O ângulo feito em cada tipo: maior erro do cosseno", colunas, linhas)


def voltas_lentas(d: int, bases: tuple[float, ...]) -> Quadro:
    """Em quantas posições o par mais lento dá uma volta, para cada base."""
    linhas = [[int(base), round(rope.volta_mais_lenta(d, base))] for base in bases]
    titulo = f"Uma volta do par mais lento, d = {d}"
    return Quadro(titulo, {"base": inteiro, "posições": inteiro}, linhas)


# --------------------------------------------------------------------------- num modelo de verdade


class NoModelo(NamedTuple):
    """O RoPE dentro de um modelo de verdade."""

    conferencias: list[Conferencia]
    perdas: Quadro


def dentro_do_modelo(modelo, texto: str) -> NoModelo:
    """O nosso RoPE no lugar do da biblioteca; os pareamentos misturados; a mistura desfeita.

    Argumentos:
        modelo: `modelos.Modelo` com RoPE e o corpo inteiro.
    """
    lm = modelo.completo()
    ids = torch.tensor(modelo.tokenizador.ids(texto))
    original = posicoes_no_modelo.ler(lm, ids)
    with posicoes_no_modelo.rope_trocado(lm):
        nosso = posicoes_no_modelo.comparar(original, posicoes_no_modelo.ler(lm, ids))
    with posicoes_no_modelo.rope_trocado(lm, "intercalado"):
        misturado = posicoes_no_modelo.comparar(original, posicoes_no_modelo.ler(lm, ids))
    with (
        posicoes_no_modelo.projecoes_permutadas(lm),
        posicoes_no_modelo.rope_trocado(lm, "intercalado"),
    ):
        desfeito = posicoes_no_modelo.comparar(original, posicoes_no_modelo.ler(lm, ids))
    # float32 atravessando 30 camadas: o ruído de uma conta em outra ordem fica abaixo de 1e-3.
    conferencias = [
        Conferencia("nosso RoPE no lugar do da biblioteca", nosso.maior_diferenca, 0, 1e-3),
        Conferencia("intercalado, com q e k permutados", desfeito.maior_diferenca, 0, 1e-3),
    ]
    linhas = [["o da biblioteca", original.perda, 1.0]]
    linhas += [
        [nome, c.perda_depois, c.mesma_resposta]
        for nome, c in (
            ("o nosso, em metades", nosso),
            ("o nosso, intercalado (errado)", misturado),
            ("intercalado, com q e k permutados", desfeito),
        )
    ]
    colunas = {"o RoPE": str, "perda": decimal, "mesma resposta": porcento}
    return NoModelo(
        conferencias, Quadro(f"{modelo.nome}: misturar os pareamentos", colunas, linhas)
    )


# --------------------------------------------------------------------------- esticar


class Receita(NamedTuple):
    """Um esticamento, e o que se pede ao transformers para obter o mesmo."""

    nome: str
    escala: Escalonamento
    parametros: dict
    comprimento: int | None = None


def receitas(d: int, treino: int, fator: float, base: float = posicoes.BASE) -> list[Receita]:
    """Todas as receitas para esticar `treino` posições `fator` vezes; a primeira é não esticar.

    O transformers não tem o NTK de fator fixo: é o RoPE comum com outra base.
    """
    longo = int(treino * fator)
    ambos = {"original_max_position_embeddings": treino, "factor": fator}
    e = escalonamento
    return [
        Receita("sem esticar", e.sem_escala(d, base), {}),
        Receita("linear", e.linear(d, fator, base), {"rope_type": "linear", "factor": fator}),
        Receita("NTK", e.ntk(d, fator, base), {"rope_theta": e.base_ntk(d, fator, base)}),
        Receita(
            "NTK dinâmico",
            e.ntk_dinamico(d, longo, treino, 1.0, base),
            {"rope_type": "dynamic", "factor": 1.0},
            longo,
        ),
        Receita("YaRN", e.yarn(d, fator, treino, base), {"rope_type": "yarn", **ambos}),
        Receita(
            "Llama 3",
            e.llama3(d, fator, treino, base),
            {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ambos},
        ),
    ]


def conferir_esticamentos(d: int, treino: int, fator: float) -> list[Conferencia]:
    """As nossas frequências contra as do transformers: maior diferença relativa.

    A diferença no fator da atenção (só o YaRN tem um) entra na mesma conta.
    """
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    linhas = []
    for r in receitas(d, treino, fator):
        # As receitas que guardam o comprimento de treino à parte esperam aqui o esticado.
        guardado = "original_max_position_embeddings" in r.parametros
        maximo = int(treino * fator) if guardado else treino
        config = config_llama(d, maximo, **r.parametros)
        funcao = ROPE_INIT_FUNCTIONS.get(
            config.rope_parameters["rope_type"],
            LlamaRotaryEmbedding.compute_default_rope_parameters,
        )
        deles, atencao = funcao(config, seq_len=r.comprimento)
        relativa = float((r.escala.frequencias / deles.double() - 1).abs().max())
        pior = max(relativa, abs(atencao - r.escala.fator_de_atencao))
        linhas.append(Conferencia(r.nome, pior, 0, 1e-5))
    return linhas


def razoes(d: int, treino: int, fator: float) -> dict[str, Tensor]:
    """{receita: (d/2,)}: por quanto cada uma divide cada frequência."""
    theta = posicoes.frequencias(d)
    return {r.nome: theta / r.escala.frequencias for r in receitas(d, treino, fator)[1:]}


def rampas_do_yarn(d: int, treino: int, fator: float) -> float:
    """Maior diferença, em fração de θ, entre o YaRN do código publicado e o da fórmula impressa."""
    theta = posicoes.frequencias(d)
    a, b = (escalonamento.yarn(d, fator, treino, rampa=r).frequencias for r in ("indice", "artigo"))
    return float(((a - b).abs() / theta).max())
