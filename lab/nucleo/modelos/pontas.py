"""O modelo por inteiro: h₀ = wte[ids] + wpe[posições] com as linhas dele, e o que ele mesmo responde.

`pela_frase` e `um_a_mais` recebem o modelo do transformers já montado (`lm`), neste processo ou noutro.
"""

from dataclasses import dataclass

import numpy as np

from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes, tensores
from nucleo.modelos.fontes import Modelo


def posicoes(modelo: Modelo, n: int) -> np.ndarray:
    """(n,): as linhas de wpe que uma sequência de n tokens usa. No RoBERTa e no OPT começam na linha 2.

    Erros: `ErroDoUsuario` se a sequência não couber, com os dois números.
    """
    if modelo.n_ctx is not None and n > modelo.n_ctx:
        raise ErroDoUsuario(
            f"A sequência tem {n} tokens, e {modelo.nome} só tem {modelo.n_ctx} posições.",
            f"A tabela wpe acaba na linha {len(modelo.wpe) - 1}: não existe um vetor para a posição seguinte.",
            f"Corte o texto em até {modelo.n_ctx} tokens.",
        )
    return np.arange(n) + modelo.ficha.primeira


def partes_de_h0(modelo: Modelo, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(o quê, onde): a linha de cada id, como entra na soma, e a da posição, cada uma (n, d). Sem wpe, a
    segunda é zero.

    Erros: `ErroDoUsuario` para id fora da tabela, sequência longa demais ou família desconhecida.
    """
    exigir_conhecida(modelo)
    if ids and max(ids) >= modelo.V:
        raise ErroDoUsuario(
            f"O id {max(ids)} não existe em {modelo.nome}.",
            f"A tabela tem as linhas 0 a {modelo.V - 1}; um token acrescentado ao tokenizador (pad?) "
            "precisa de uma linha nova na tabela.",
            "Use ids que o tokenizador do próprio modelo devolve, ou amplie a tabela (resize_token_embeddings).",
        )
    f = modelo.ficha
    linhas = np.asarray(modelo.wte[ids], dtype=np.float32)  # (V, e) -> (n, e)
    o_que = na_largura(modelo, linhas if f.vezes == 1 else np.float32(f.vezes) * linhas)  # (n, d)
    if modelo.wpe is None:
        return o_que, np.zeros_like(o_que)
    onde = np.asarray(
        modelo.wpe[posicoes(modelo, len(ids))], dtype=np.float32
    )  # (n_ctx, d) -> (n, d)
    return o_que, onde


def tabela_de_posicoes(modelo: Modelo, d: int) -> np.ndarray:
    """(n_ctx, d): as linhas de wpe que são de verdade posições (no RoBERTa e no OPT, a partir da 2). De quem
    não soma posição, zeros, quantos se pedirem."""
    if modelo.wpe is None:
        return np.broadcast_to(np.float32(0), (1 << 24, d))  # um zero só na memória
    return np.asarray(modelo.wpe[modelo.ficha.primeira :], dtype=np.float32)


def na_largura(modelo: Modelo, linhas: np.ndarray) -> np.ndarray:
    """(n, e) -> (n, d): onde a tabela é mais estreita que os blocos, a projeção de antes da soma (OPT)."""
    f = modelo.ficha
    if not (f.projecao and f.projeta_antes):
        return linhas
    return linhas @ _peso(modelo, f"{f.projecao}.weight").T  # (n, e) @ (e, d) -> (n, d)


def custo_da_entrada(
    modelo: Modelo, ids: list[int], soma: np.ndarray, pronta: np.ndarray
) -> tuple[int, float]:
    """(quantas parcelas, a maior soma delas em valor absoluto): o que a folga de `entrada` pede. Sem
    projeção são as d parcelas da norma; com ela, cada número soma até ‖x‖·‖linha de P‖."""
    f, maior = modelo.ficha, float(np.abs(pronta).max())
    if not f.projecao:
        return modelo.d, maior
    P = _peso(modelo, f"{f.projecao}.weight")  # (d, e)
    x = modelo.wte[ids] if f.projeta_antes else entrada(modelo, ids, soma, projetar=False)  # (n, e)
    da_projecao = np.linalg.norm(x, axis=1).max() * np.linalg.norm(P, axis=1).max()
    return 2 * modelo.d, max(maior, float(da_projecao))


def exigir_conhecida(modelo: Modelo) -> None:
    """Erros: `ErroDoUsuario` se a família do modelo não está no registro: a conta da entrada e a da saída
    seriam um palpite."""
    if not modelo.ficha.conhecida:
        raise ErroDoUsuario(
            f"Não conheço a família de {modelo.nome} ({modelo.ficha.familia or 'sem model_type'}).",
            "Sem saber o que ela faz à linha antes do primeiro bloco, e aos logits no fim, qualquer "
            "conta aqui seria um palpite.",
            "Use um modelo de uma família conhecida, por exemplo:  --modelo smollm2",
        )


def h0(modelo: Modelo, ids: list[int]) -> np.ndarray:
    """(n, d): a soma do quê e do onde. Apostila 02, seção 5. No GPT-2 é o que entra no primeiro bloco;
    noutras famílias ainda falta o que `entrada` faz."""
    o_que, onde = partes_de_h0(modelo, ids)
    return o_que + onde  # (n, d) + (n, d) -> (n, d)


def entrada(
    modelo: Modelo, ids: list[int], soma: np.ndarray | None = None, projetar: bool = True
) -> np.ndarray:
    """(n, d): o que entra no primeiro bloco, pela fórmula da família: a `soma` (ou `h0`), o tipo de frase,
    a LayerNorm (em float64) e a projeção, onde houver.

    Erros: `ErroDoUsuario` se faltar um dos pesos, ou se a família é desconhecida.
    """
    exigir_conhecida(modelo)
    f, x = modelo.ficha, h0(modelo, ids) if soma is None else soma  # (n, e)
    if f.tipo:
        x = x + _peso(modelo, f.tipo)[0]  # (n, e) + (e,) -> (n, e)
    if f.norma:
        x = x.astype(np.float64)
        variancia = x.var(1, keepdims=True) + f.eps  # (n, e) -> (n, 1)
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(variancia)
        # Os BERTs de 2018 dizem gamma e beta; a norma do ModernBERT não tem viés.
        x = x * _peso(modelo, f"{f.norma}.weight", f"{f.norma}.gamma")  # (n, e)
        desvio = _peso(modelo, f"{f.norma}.bias", f"{f.norma}.beta", opcional=True)
        x = x if desvio is None else x + desvio
    if projetar and f.projecao and not f.projeta_antes:
        # (n, e) @ (e, d) + (d,) -> (n, d)
        x = x @ _peso(modelo, f"{f.projecao}.weight").T + _peso(modelo, f"{f.projecao}.bias")
    return x


def _peso(modelo: Modelo, *nomes: str, opcional: bool = False) -> np.ndarray | None:
    # Um tensor da entrada, no mesmo ramo do arquivo que a wte: outro ramo do modelo não serve.
    cabecalho = tensores.cabecalho_da_pasta(modelo.pasta)
    achado = next(
        (cabecalho[modelo.prefixo + n] for n in nomes if modelo.prefixo + n in cabecalho), None
    )
    if achado is None:
        if opcional:
            return None
        raise ErroDoUsuario(
            f"Falta um tensor na entrada de {modelo.nome}: {modelo.prefixo + nomes[0]}.",
            f"Sem ele não há como refazer à mão a conta da família: {modelo.ficha.formula}.",
            "Copie ou baixe o modelo de novo; as seções 1 a 4 não precisam dele.",
        )
    return tensores.ler(achado)


def logits(modelo: Modelo, produto: np.ndarray, vies: np.ndarray | None = None) -> np.ndarray:
    """(n, V) -> (n, V): do produto h_final · Sᵀ aos logits, pela fórmula da família (viés, divisão, teto)."""
    f = modelo.ficha
    x = produto if vies is None else produto + vies  # (n, V) + (V,) -> (n, V)
    x = x if f.logits_vezes == 1 else x * np.float32(f.logits_vezes)
    return x if f.teto is None else np.float32(f.teto) * np.tanh(x / np.float32(f.teto))


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

    hidden_states[0] já passou por tudo o que a família faz antes do primeiro bloco (`entrada`).
    """
    import torch

    with torch.no_grad():
        saida = lm(torch.tensor([ids]), output_hidden_states=True)
    estados = saida.hidden_states  # (camadas + 1) × (1, n, d)
    logits = saida.logits[0].numpy() if hasattr(saida, "logits") else None  # (1, n, V) -> (n, V)
    formas = [tuple(e[0].shape) for e in estados]
    return Passagem(estados[0][0].numpy(), estados[-1][0].numpy(), logits, formas)


def matriz_de_saida(modelo: Modelo) -> tuple[np.ndarray, np.ndarray | None]:
    """(S (V, d), viés (V,) ou None): a matriz que faz os logits, do arquivo; a wte, se é amarrada."""
    cabecalho = tensores.cabecalho_da_pasta(modelo.pasta)
    vies = cabecalho.get("lm_head.bias")
    S = modelo.wte
    if modelo.cabeca == "solta":
        S = tensores.ler(tensores.achar(cabecalho, *fontes.CABECA)[0])
    return S, None if vies is None else tensores.ler(vies)


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
