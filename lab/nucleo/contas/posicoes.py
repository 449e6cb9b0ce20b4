"""Posições somadas à entrada: embeddings, senoides e a camada de entrada (capítulo 6, seções 6.1 a 6.4).

Três peças, na ordem em que um token passa por elas:

    ids (B, T) -> EmbeddingsDeEntrada -> (B, T, d) -> + CodificacaoPosicional -> (B, T, d)

e as funções puras em que elas se apoiam: as frequências, a tabela de senoides e a matriz que
desloca posições. As mesmas frequências voltam em `rope.py`, onde giram em vez de somar.

Regra da casa: ângulos se calculam em float64 e só o seno e o cosseno prontos mudam de precisão.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nucleo.base.erros import ErroDoUsuario

BASE = 10_000.0  # o 10000 de Vaswani et al. (2017), seção 3.5


class ErroDePosicao(ErroDoUsuario, ValueError):
    """Engano em forma, tipo, limite ou posição.

    É `ErroDoUsuario`, para a lição mostrá-lo sem traceback, e é `ValueError`, para quem chama
    estas funções do próprio código tratá-lo como o Python ensina.
    """


def exigir_par(d: int) -> None:
    """Recusa dimensão ímpar (`ErroDePosicao`).

    Cada frequência ocupa duas colunas, o seno e o cosseno do mesmo ângulo. Uma coluna sem par
    não gira: nenhuma matriz levaria PE(pos) a PE(pos + k), e no RoPE sobraria uma coordenada.
    """
    if d % 2:
        raise ErroDePosicao(
            f"d = {d} é ímpar.",
            "Cada frequência ocupa duas colunas, o seno e o cosseno do mesmo ângulo; com um número "
            "ímpar sobra uma coluna sem par, e sem o par a posição não pode ser deslocada nem girada.",
            f"Use d={d - 1 or 4} ou d={d + 1}.",
        )


# --------------------------------------------------------------------------- senoides (6.2)


def frequencias(d: int, base: float = BASE) -> Tensor:
    """Frequência de cada par de colunas: ω_i = base^(−2i/d), em radianos por posição.

    Vaswani et al. (2017), seção 3.5; são também os θ_i do RoPE (Su et al., 2021, equação 15).

    Devolve:
        (d/2,) float64, da mais rápida (ω_0 = 1) à mais lenta.
    Levanta:
        ErroDePosicao: `d` ímpar.
    """
    exigir_par(d)
    expoentes = torch.arange(0, d, 2, dtype=torch.float64) / d  # (d/2,)
    return base**-expoentes


def comprimentos_de_onda(d: int, base: float = BASE) -> Tensor:
    """Quantas posições cada par leva para dar uma volta: λ_i = 2π/ω_i.

    Devolve:
        (d/2,) float64; vai de 2π a 2π·base^(1 − 2/d), que se aproxima de base·2π.
    """
    return 2 * math.pi / frequencias(d, base)


def senoides(
    posicoes: int | Sequence[int] | Tensor,
    d: int,
    base: float = BASE,
    *,
    disposicao: str = "artigo",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Codificação posicional senoidal (Vaswani et al., 2017, seção 3.5).

    PE(pos, 2i) = sen(pos·ω_i) e PE(pos, 2i+1) = cos(pos·ω_i). Há outras disposições por aí, e
    trocar uma pela outra não é erro de conta, é outra convenção:

    - "artigo": seno e cosseno alternados, a do artigo e a do capítulo;
    - "metades": as mesmas colunas, com todos os senos antes dos cossenos (GPT-J, Marian, Pegasus);
    - "fairseq": metades, e com ω_i = base^(−i/(d/2 − 1)): a última frequência é 1/base exatamente
      (tensor2tensor, fairseq, M2M-100).

    Argumentos:
        posicoes: quantidade n (vale 0…n−1) ou as posições, de qualquer forma (...).
        d: dimensão, par.
        dtype: precisão da resposta; os ângulos são sempre float64.
    Devolve:
        (..., d) em `dtype`, valores entre −1 e 1.
    Levanta:
        ErroDePosicao: `d` ímpar.
    """
    pos = torch.arange(posicoes) if isinstance(posicoes, int) else torch.as_tensor(posicoes)
    omega = frequencias(d, base)  # (d/2,)
    if disposicao == "fairseq":
        omega = base ** -(torch.arange(d // 2, dtype=torch.float64) / (d // 2 - 1))
    angulos = pos.to(torch.float64).unsqueeze(-1) * omega  # (...) -> (..., d/2)
    seno, cosseno = angulos.sin(), angulos.cos()
    if disposicao == "artigo":
        tabela = torch.stack((seno, cosseno), dim=-1).flatten(-2)  # (..., d/2, 2) -> (..., d)
    else:
        tabela = torch.cat((seno, cosseno), dim=-1)  # (..., d)
    return tabela.to(dtype)


def matriz_de_deslocamento(k: int, d: int, base: float = BASE) -> Tensor:
    """A matriz M(k) com M(k) · PE(pos) = PE(pos + k), qualquer que seja pos.

    Vem do seno e do cosseno da soma: em cada par, M(k) é [[cos kω, sen kω], [−sen kω, cos kω]].
    É a "função linear de PE(pos)" que o artigo promete (Vaswani et al., 2017, seção 3.5), e é
    ortogonal: M(−k) é a sua transposta e desfaz o deslocamento.

    Argumentos:
        k: deslocamento em posições; pode ser negativo.
    Devolve:
        (d, d) float64, diagonal por blocos 2 × 2 (disposição do artigo).
    """
    angulo = k * frequencias(d, base)  # (d/2,)
    cos, sen = angulo.cos(), angulo.sin()
    blocos = torch.stack((torch.stack((cos, sen), -1), torch.stack((-sen, cos), -1)), -2)
    return torch.block_diag(*blocos)  # (d/2, 2, 2) -> (d, d)


def produto_interno_por_distancia(distancias: Sequence[int] | Tensor, d: int) -> Tensor:
    """PE(pos) · PE(pos + k) em forma fechada: Σ_i cos(k·ω_i). A posição some, fica a distância.

    Argumentos:
        distancias: (n,) inteiros, negativos também: a soma de cossenos é par.
    Devolve:
        (n,) float64; vale d/2 em k = 0, o quadrado da norma de qualquer PE(pos).
    """
    k = torch.as_tensor(distancias, dtype=torch.float64)
    return (k.unsqueeze(-1) * frequencias(d)).cos().sum(-1)  # (n, d/2) -> (n,)


def senoides_em(posicoes: Tensor, d: int, dtype: torch.dtype, forma: str = "potencia") -> Tensor:
    """As senoides como NÃO se deve fazer: tudo, dos expoentes ao ângulo, na precisão pedida.

    Existe para medir o estrago de cada precisão e de cada forma de escrever a frequência.

    Argumentos:
        forma: "potencia" calcula 1/base^(2i/d); "exp_log" calcula exp(−(2i/d)·ln base).
    Devolve:
        (T, d) em `dtype`, disposição do artigo. Em float16 posições acima de 65 504 dão NaN:
        o número já não cabe no tipo.
    """
    omega = frequencias_em(d, dtype, forma)
    angulos = posicoes.to(dtype).unsqueeze(-1) * omega  # (T,) -> (T, d/2)
    return torch.stack((angulos.sin(), angulos.cos()), dim=-1).flatten(-2)  # -> (T, d)


def frequencias_em(d: int, dtype: torch.dtype, forma: str) -> Tensor:
    """As frequências calculadas inteiras em `dtype`, por uma das duas formas (ver `senoides_em`).

    Devolve:
        (d/2,) em `dtype`.
    """
    indices = torch.arange(0, d, 2).to(dtype)
    if forma == "exp_log":
        return torch.exp(indices * (-math.log(BASE) / d))
    return 1 / torch.tensor(BASE, dtype=dtype) ** (indices / d)


def erro_das_frequencias(d: int, forma: str) -> float:
    """Maior erro relativo das frequências em float32, numa das formas, contra float64."""
    exata = frequencias(d)  # (d/2,)
    f = frequencias_em(d, torch.float32, forma).double()
    return float(((f - exata) / exata).abs().max())


# --------------------------------------------------------------------------- módulos (6.1, 6.3, 6.4)


class EmbeddingsDeEntrada(nn.Module):
    """A tabela de consulta da entrada: id -> linha, multiplicada por √d_model.

    Vaswani et al. (2017), seção 3.4. O fator √d só faz sentido com o início que o acompanha:
    linhas N(0, 1/d), de norma ≈ 1, que saem com norma ≈ √d, da ordem da norma √(d/2) da
    codificação senoidal. Com o N(0, 1) do `nn.Embedding`, o produto sai com norma ≈ d e a posição
    se afoga. Por isso o desvio-padrão inicial aqui é d^(−1/2).

    Argumentos:
        tamanho_vocabulario: |V|, linhas da tabela.
        d_model: colunas; qualquer inteiro positivo (quem exige par são as senoides).
        desvio_inicial: desvio-padrão das linhas; None escolhe o equilibrado, descrito acima.
    """

    def __init__(
        self, tamanho_vocabulario: int, d_model: int, *, desvio_inicial: float | None = None
    ):
        super().__init__()
        self.fator = math.sqrt(d_model)
        self.tabela = nn.Embedding(tamanho_vocabulario, d_model)
        desvio = 1 / self.fator if desvio_inicial is None else desvio_inicial
        nn.init.normal_(self.tabela.weight, std=desvio)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) inteiros -> (B, T, d), no tipo da tabela.

        Levanta:
            ErroDePosicao: id fora da tabela.
        """
        linhas = self.tabela.num_embeddings
        # Meta não tem valores para olhar; nos outros, melhor falar agora do que um IndexError depois.
        if ids.numel() and not ids.is_meta and not 0 <= int(ids.min()) <= int(ids.max()) < linhas:
            pior = int(ids.max()) if int(ids.max()) >= linhas else int(ids.min())
            raise ErroDePosicao(
                f"O id {pior} não existe: a tabela tem {linhas} linhas, de 0 a {linhas - 1}.",
                "Costuma ser um token acrescentado ao tokenizador sem aumentar a tabela, ou ids de "
                "outro tokenizador.",
                "Confira o tokenizador, ou crie a tabela com o tamanho do vocabulário dele.",
            )
        return self.tabela(ids) * self.fator  # (B, T) -> (B, T, d)


class CodificacaoPosicional(nn.Module):
    """Soma a posição ao embedding: x + PE, e dropout. A forma não muda.

    A tabela é um buffer: acompanha `.to()` e `.half()`, não recebe gradiente. E é um buffer
    `persistent=False`: recalcula-se de graça, e fora do state_dict não impede carregar os pesos
    com outro `max_len`.

    Argumentos:
        d_model: dimensão, par.
        max_len: quantas posições a tabela tem.
        dropout: probabilidade de zerar cada coordenada, só em `train()`.
    Levanta:
        ErroDePosicao: `d_model` ímpar.
    """

    def __init__(self, d_model: int, max_len: int, dropout: float = 0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", senoides(max_len, d_model), persistent=False)  # (max_len, d)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d), no mesmo tipo de x.

        Levanta:
            ErroDePosicao: mais de max_len tokens.
        """
        max_len, T = len(self.pe), x.shape[-2]
        if max_len < T:
            raise ErroDePosicao(
                f"A sequência chega à posição {T - 1}, ou seja, pede {T} posições, e a tabela tem "
                f"{max_len}.",
                "A senoide existe para qualquer posição, mas esta tabela foi calculada até max_len.",
                f"Corte a sequência em {max_len} tokens, ou crie a camada com max_len de {T} para cima.",
            )
        return self.dropout(x + self.pe[:T].to(x.dtype))  # (B, T, d) + (T, d): por broadcasting


class CamadaDeEntrada(nn.Module):
    """Embedding, escala, posição e dropout: tudo o que fica antes do primeiro bloco (seção 6.3).

    Argumentos: os de `EmbeddingsDeEntrada` e de `CodificacaoPosicional`.
    """

    def __init__(self, tamanho_vocabulario: int, d_model: int, max_len: int, dropout: float = 0.1):
        super().__init__()
        self.embeddings = EmbeddingsDeEntrada(tamanho_vocabulario, d_model)
        self.posicoes = CodificacaoPosicional(d_model, max_len, dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) inteiros -> (B, T, d). Erros: os das duas partes."""
        return self.posicoes(self.embeddings(ids))
