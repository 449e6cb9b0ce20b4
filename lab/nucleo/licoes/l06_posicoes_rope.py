"""O que é grande demais para a seção 6.6 da lição 06: o giro num modelo de verdade, e as receitas de esticar."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nucleo.base.caderno import Conferencia, Quadro
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import escalonamento, folga, posicoes, posicoes_no_modelo, rope
from nucleo.contas.escalonamento import Escalonamento
from nucleo.contas.posicoes_no_modelo import Mudanca, TextoLido, comparar, config_llama, ler
from nucleo.licoes.l06_posicoes import ou_nao_cabe


def quadro_do_brinquedo(girados: Tensor) -> Quadro:
    """(n, 4): o vetor (1, 0, 1, 0) girado nas posições 0 … n − 1."""
    return Quadro(
        "O vetor (1, 0, 1, 0) girado: o par 0 anda 1 rad por posição; o par 1, 0,01",
        {"pos": str} | dict.fromkeys(("x₀", "x₁", "x₂", "x₃"), decimal),
        [[pos, *linha] for pos, linha in enumerate(girados.tolist())],
    )


def quadro_da_distancia(mapa: Tensor) -> Quadro:
    """q·k (T, T) a algumas distâncias m − n, com a chave em três lugares."""
    chaves = (0, 20, 40)
    return Quadro(
        "O mesmo q e o mesmo k: q·k à mesma distância, em três lugares",
        {"m − n": str} | dict.fromkeys((f"n = {n}" for n in chaves), decimal),
        [[k, *(mapa[n + k, n] for n in chaves)] for k in (0, 1, 2, 5, 10, 20)],
    )


def quadro_das_voltas(voltas: dict[int, float], d: int) -> Quadro:
    """{base: em quantas posições o par mais lento dá uma volta}."""
    titulo = f"Uma volta do par mais lento, d = {d}"
    linhas = [[base, round(posicoes_)] for base, posicoes_ in voltas.items()]
    return Quadro(titulo, {"base": inteiro, "posições": inteiro}, linhas)


def angulos_em_meia_precisao(d: int, quais: list[int]) -> Quadro:
    """O pior erro de cos nas 64 posições até cada uma, com o ângulo feito em cada tipo."""
    tipos = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    theta, linhas = posicoes.frequencias(d), []
    for pos in quais:
        trecho = torch.arange(max(0, pos - 63), pos + 1)
        exato, *ruins = (
            rope.tabelas(trecho, theta, dtype=torch.float64, precisao_do_angulo=tipo)[0]
            for tipo in (torch.float64, *tipos.values())
        )
        linhas.append([pos, *(float((ruim - exato).abs().max()) for ruim in ruins)])
    colunas = {"posição": inteiro} | dict.fromkeys(tipos, ou_nao_cabe)
    return Quadro("O ângulo feito em cada tipo: maior erro do cosseno", colunas, linhas)


# --------------------------------------------------------------------------- num modelo de verdade


class NoModelo(NamedTuple):
    """O RoPE dentro de um modelo de verdade: o da biblioteca, e o que mudou com cada um dos nossos."""

    pareamento: str  # o dos pesos deste modelo
    cortado: int  # quantos tokens do texto não couberam
    original: TextoLido
    nosso: Mudanca  # no pareamento dos pesos
    misturado: Mudanca  # no outro, com os pesos como estão
    desfeito: Mudanca  # no outro, com q e k permutados
    limite: float  # o que outra ordem de somas pode mudar numa log-probabilidade


def dentro_do_modelo(modelo, texto: str) -> NoModelo:
    """O nosso RoPE no lugar do da biblioteca; os pareamentos misturados; a mistura desfeita.

    Argumentos:
        modelo: `modelos.Modelo` com RoPE e o corpo inteiro. O texto que não couber fica de fora.
    """
    lm, giro = modelo.completo(), modelo.ficha.giro
    todos = torch.tensor(modelo.tokenizador.ids(texto))
    ids = todos[: modelo.limite]
    outro = posicoes_no_modelo.OUTRO[giro.pareamento]
    original = ler(lm, ids)
    with posicoes_no_modelo.rope_trocado(lm, giro):
        nosso = comparar(original, ler(lm, ids))
    with posicoes_no_modelo.rope_trocado(lm, giro, outro):
        misturado = comparar(original, ler(lm, ids))
    with (
        posicoes_no_modelo.projecoes_permutadas(lm, giro),
        posicoes_no_modelo.rope_trocado(lm, giro, outro),
    ):
        desfeito = comparar(original, ler(lm, ids))
    camadas = lm.config.get_text_config().num_hidden_layers
    # Cada camada soma d parcelas, e a atenção outras T; o ângulo da posição T arredonda outras T vezes.
    limite = folga.modelo(camadas, modelo.d + 2 * len(ids), original.log_probs.abs().max())
    return NoModelo(
        giro.pareamento, len(todos) - len(ids), original, nosso, misturado, desfeito, limite
    )


_EM = {"metades": "em metades", "intercalado": "intercalado"}


def conferir_no_modelo(la: NoModelo) -> list[Conferencia]:
    """O nosso RoPE, e o outro pareamento com os pesos permutados: as log-probabilidades não mudam."""
    outro = _EM[posicoes_no_modelo.OUTRO[la.pareamento]]
    nomes = ("nosso RoPE no lugar do da biblioteca", f"{outro}, com q e k permutados")
    mudou = zip(nomes, (la.nosso, la.desfeito), strict=True)
    return [Conferencia(nome, m.maior_diferenca, 0, la.limite) for nome, m in mudou]


def quadro_dos_pareamentos(nome: str, la: NoModelo) -> Quadro:
    """A perda e a fração de respostas iguais com cada RoPE; "errado" é o que não é o dos pesos."""
    certo, outro = _EM[la.pareamento], _EM[posicoes_no_modelo.OUTRO[la.pareamento]]
    trocas = {
        f"o nosso, {certo}": la.nosso,
        f"o nosso, {outro} (errado)": la.misturado,
        f"{outro}, com q e k permutados": la.desfeito,
    }
    linhas = [["o da biblioteca", la.original.perda, 1.0]]
    linhas += [[troca, m.perda_depois, m.mesma_resposta] for troca, m in trocas.items()]
    colunas = {"o RoPE": str, "perda": decimal, "mesma resposta": porcento}
    corte = f" (o fim do texto, {la.cortado} tokens, não coube)" if la.cortado else ""
    return Quadro(f"{nome}: misturar os pareamentos{corte}", colunas, linhas)


def frase_dos_pareamentos(la: NoModelo) -> str:
    """O que o pareamento trocado fez a este modelo, pelos números."""
    m = la.misturado
    if m.perda_depois > m.perda_antes + 0.1:
        return "nada avisa que o pareamento está errado: o modelo responde, e responde mal."
    return (
        f"nada avisa que o pareamento está errado; aqui a perda foi de {decimal(m.perda_antes)} a "
        f"{decimal(m.perda_depois)}, e {porcento(1 - m.mesma_resposta)} das respostas mudaram."
    )


# --------------------------------------------------------------------------- esticar


def quadro_das_encolhidas(encolhidas: Tensor, angulos: Tensor, treino: int) -> Quadro:
    """Posições (n,) encolhidas, e os ângulos (n, d/2) do par mais rápido e do mais lento."""
    quais = (1, 2, treino, len(encolhidas) - 1)
    return Quadro(
        "Interpolação linear: cada posição encolhida, e o ângulo que ela passa a ter",
        {"posição": inteiro, "encolhida": decimal, "par 0": decimal, "último par": decimal},
        [[p, encolhidas[p], angulos[p, 0], angulos[p, -1]] for p in quais],
    )


def receitas(d: int, treino: int, fator: float) -> dict[str, tuple[Escalonamento, dict]]:
    """{nome: (esticamento de `treino` posições `fator` vezes, o que se pede ao transformers para obter
    o mesmo)}; a primeira é não esticar.

    O transformers não tem o NTK de fator fixo: é o RoPE comum com outra base.
    """
    e = escalonamento
    ambos = {"original_max_position_embeddings": treino, "factor": fator}
    llama3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ambos}
    dinamico = e.ntk_dinamico(d, int(treino * fator), treino)
    return {
        "sem esticar": (e.sem_escala(d), {}),
        "linear": (e.linear(d, fator), {"rope_type": "linear", "factor": fator}),
        "NTK": (e.ntk(d, fator), {"rope_theta": e.base_ntk(d, fator)}),
        "NTK dinâmico": (dinamico, {"rope_type": "dynamic", "factor": 1.0}),
        "YaRN": (e.yarn(d, fator, treino), {"rope_type": "yarn", **ambos}),
        "Llama 3": (e.llama3(d, fator, treino, posicoes.BASE), llama3),
    }


def conferir_esticamentos(d: int, treino: int, fator: float) -> list[Conferencia]:
    """As nossas frequências contra as do transformers: maior diferença relativa.

    A diferença no fator da atenção (só o YaRN tem um) entra na mesma conta.
    """
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    linhas, longo = [], int(treino * fator)
    comum = LlamaRotaryEmbedding.compute_default_rope_parameters
    for nome, (escala, parametros) in receitas(d, treino, fator).items():
        # As receitas que guardam o comprimento de treino à parte esperam aqui o esticado.
        maximo = longo if "original_max_position_embeddings" in parametros else treino
        config = config_llama(d, maximo, **parametros)
        funcao = ROPE_INIT_FUNCTIONS.get(config.rope_parameters["rope_type"], comum)
        deles, atencao = funcao(config, seq_len=longo)  # só a dinâmica olha o seq_len
        relativa = float((escala.frequencias / deles.double() - 1).abs().max())
        pior = max(relativa, abs(atencao - escala.fator_de_atencao))
        # O transformers faz a potência em float32, e a base esticada é `fator` vezes maior (ou pouco mais).
        limite = folga.potencia(posicoes.BASE * fator**2, folga.EPS32)
        linhas.append(Conferencia(nome, pior, 0, limite))
    return linhas


def razoes(d: int, treino: int, fator: float) -> dict[str, Tensor]:
    """{receita: (d/2,)}: por quanto cada uma divide cada frequência."""
    theta, (_, *esticadas) = posicoes.frequencias(d), receitas(d, treino, fator).items()
    return {nome: theta / escala.frequencias for nome, (escala, _) in esticadas}


def rampas_do_yarn(d: int, treino: int, fator: float) -> float:
    """Maior diferença, em fração de θ, entre o YaRN do código publicado e o da fórmula impressa."""
    theta = posicoes.frequencias(d)
    a, b = (escalonamento.yarn(d, fator, treino, rampa=r).frequencias for r in ("indice", "artigo"))
    return float(((a - b).abs() / theta).max())
