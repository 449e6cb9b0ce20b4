"""O modelo por inteiro: h₀ = wte[ids] + wpe[posições] com as linhas dele, e o que ele mesmo responde.

`pela_frase` e `um_a_mais` recebem o modelo do transformers já montado (`lm`), neste processo ou noutro.
"""

from dataclasses import dataclass

import numpy as np

from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import tensores
from nucleo.modelos.fontes import Modelo


def posicoes(modelo: Modelo, n: int) -> np.ndarray:
    """(n,): as linhas de wpe que uma sequência de n tokens usa. No RoBERTa começam na linha 2.

    Erros: `ErroDoUsuario` se a sequência não couber, com os dois números.
    """
    if modelo.n_ctx is not None and n > modelo.n_ctx:
        raise ErroDoUsuario(
            f"A sequência tem {n} tokens, e {modelo.nome} só tem {modelo.n_ctx} posições.",
            f"A tabela wpe acaba na linha {len(modelo.wpe) - 1}: não existe um vetor para a posição seguinte.",
            f"Corte o texto em até {modelo.n_ctx} tokens.",
        )
    return np.arange(n) + modelo.primeira_posicao


def partes_de_h0(modelo: Modelo, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(o quê, onde): wte[ids] e wpe[0…n−1], cada uma (n, d). Sem wpe, a segunda é zero.

    Erros: `ErroDoUsuario` para id fora da tabela ou sequência longa demais.
    """
    if ids and max(ids) >= modelo.V:
        raise ErroDoUsuario(
            f"O id {max(ids)} não existe em {modelo.nome}.",
            f"A tabela tem as linhas 0 a {modelo.V - 1}; um token acrescentado ao tokenizador (pad?) "
            "precisa de uma linha nova na tabela.",
            "Use ids que o tokenizador do próprio modelo devolve, ou amplie a tabela (resize_token_embeddings).",
        )
    o_que = np.asarray(modelo.wte[ids], dtype=np.float32)  # (V, d) -> (n, d)
    if modelo.wpe is None:
        return o_que, np.zeros_like(o_que)
    onde = np.asarray(
        modelo.wpe[posicoes(modelo, len(ids))], dtype=np.float32
    )  # (n_ctx, d) -> (n, d)
    return o_que, onde


def h0(modelo: Modelo, ids: list[int]) -> np.ndarray:
    """(n, d): o que entra no primeiro bloco. Apostila 02, seção 5."""
    o_que, onde = partes_de_h0(modelo, ids)
    return o_que + onde  # (n, d) + (n, d) -> (n, d)


@dataclass(frozen=True)
class Passagem:
    """Uma passagem pelo modelo inteiro: `h0` e `h_final` (n, d), `logits` (n, V) ou None, e a
    `formas` do estado na entrada e depois de cada bloco."""

    h0: np.ndarray
    h_final: np.ndarray
    logits: np.ndarray | None
    formas: list[tuple[int, int]]


def passar(modelo: Modelo, ids: list[int]) -> Passagem:
    """`pela_frase`, com o modelo inteiro. Erros: `ErroDoUsuario` se só as tabelas estiverem em disco."""
    return pela_frase(modelo.completo(), ids)


def pela_frase(lm, ids: list[int]) -> Passagem:
    """O que o próprio modelo calcula para a frase: hidden_states[0], o último estado e os logits.

    No BERT e no RoBERTa, hidden_states[0] já passou pelo tipo de frase e pela LayerNorm.
    """
    import torch

    with torch.no_grad():
        saida = lm(torch.tensor([ids]), output_hidden_states=True)
    estados = saida.hidden_states  # (camadas + 1) × (1, n, d)
    logits = saida.logits[0].numpy() if hasattr(saida, "logits") else None  # (1, n, V) -> (n, V)
    formas = [tuple(e[0].shape) for e in estados]
    return Passagem(estados[0][0].numpy(), estados[-1][0].numpy(), logits, formas)


def soma_do_bert(modelo: Modelo, ids: list[int]) -> np.ndarray:
    """(n, d): h₀ como o BERT o entrega: LayerNorm(wte + wpe + tipo 0), com os pesos dele, lidos do
    arquivo (os de 2018 dizem gamma e beta). Erros: `ErroDoUsuario` se algum faltar."""
    cabecalho = tensores.cabecalho_da_pasta(modelo.pasta)
    # O que vem antes do nome (nada, ou "bert.") é o mesmo de wte: outro ramo do modelo não serve.
    final = "word_embeddings.weight"
    prefixo = next((n.removesuffix(final) for n in cabecalho if n.endswith(final)), "")

    def peso(*nomes: str) -> np.ndarray:
        achado = next((cabecalho[prefixo + n] for n in nomes if prefixo + n in cabecalho), None)
        if achado is None:
            raise ErroDoUsuario(
                f"Falta um tensor na entrada de {modelo.nome}: {prefixo + nomes[0]}.",
                "Sem ele não há como refazer à mão a soma que o BERT faz.",
                "Copie ou baixe o modelo de novo; as seções 1 a 4 não precisam dele.",
            )
        return tensores.ler(achado)

    tipo = peso("token_type_embeddings.weight")[0]  # (2, d) -> (d,)
    escala, desvio = (
        peso(f"LayerNorm.{novo}", f"LayerNorm.{velho}")  # (d,)
        for novo, velho in (("weight", "gamma"), ("bias", "beta"))
    )
    x = (h0(modelo, ids) + tipo).astype(np.float64)  # (n, d)
    variancia = x.var(1, keepdims=True) + modelo.config.get("layer_norm_eps", 1e-12)  # (n, 1)
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(variancia)
    return x * escala + desvio  # (n, d)


def matrizes_das_pontas(modelo: Modelo):
    """(parâmetro de entrada, parâmetro de saída) do modelo inteiro, (V, d); saída None se o
    modelo não prevê tokens."""
    lm = modelo.completo()
    saida = lm.get_output_embeddings()
    return lm.get_input_embeddings().weight, None if saida is None else saida.weight


def tropeco_no_limite(modelo: Modelo) -> str:
    """`um_a_mais` que n_ctx. Erros: `ErroDoUsuario` se só as tabelas estiverem em disco."""
    return um_a_mais(modelo.completo(), modelo.n_ctx)


def um_a_mais(lm, n: int) -> str:
    """A mensagem que o modelo dá a uma sequência de n + 1 tokens, ou "" se ele a aceita. É o erro
    que aparece na prática, capturado para ser explicado."""
    import torch

    try:
        with torch.no_grad():
            lm(torch.zeros(1, n + 1, dtype=torch.long))
    except (IndexError, RuntimeError, ValueError) as erro:
        return f"{type(erro).__name__}: {str(erro).splitlines()[0]}"
    return ""
