"""Estático contra contextual, em números: semelhança, separação de sentidos, anisotropia.

Convenções: `X` é (camadas, n, d), o vetor de n ocorrências em cada camada; `K` é
(camadas, n, n), os cossenos entre elas; `rotulos` é (n,), o sentido de cada uma.
"""

from dataclasses import dataclass

import numpy as np


def unitarios(X: np.ndarray) -> np.ndarray:
    """(..., d) -> (..., d) float64: cada vetor com comprimento 1."""
    X = X.astype(np.float64)
    return X / np.sqrt((X * X).sum(-1, keepdims=True))  # (..., d) / (..., 1) -> (..., d)


def cossenos(X: np.ndarray) -> np.ndarray:
    """(camadas, n, d) -> (camadas, n, n): o cosseno de cada ocorrência com cada outra."""
    u = unitarios(X)
    return u @ u.transpose(0, 2, 1)  # (c, n, d) @ (c, d, n) -> (c, n, n)


@dataclass(frozen=True)
class Faixas:
    """Média e desvio do cosseno entre pares, por camada: cada campo é (camadas,)."""

    media: np.ndarray
    desvio: np.ndarray


def faixas(K: np.ndarray, pares: np.ndarray) -> Faixas:
    """Média e desvio de K nos pares marcados. pares: (n, n) booleano; conta cada par uma vez."""
    i, j = np.nonzero(np.triu(pares, 1))
    valores = K[:, i, j]  # (camadas, pares)
    return Faixas(valores.mean(1), valores.std(1))


def separacao(K: np.ndarray, rotulos: np.ndarray) -> np.ndarray:
    """Cosseno médio dentro do sentido menos o cosseno médio entre sentidos.

    K: (c, n, n); rotulos: (s, n), uma linha por rotulagem. Devolve (s, c).
    """
    n = K.shape[-1]
    iguais = rotulos[:, :, None] == rotulos[:, None, :]  # (s, n, n)
    fora = ~np.eye(n, dtype=bool)
    dentro = (iguais & fora).reshape(len(rotulos), -1).astype(np.float64)  # (s, n²)
    entre = (~iguais).reshape(len(rotulos), -1).astype(np.float64)
    plano = K.reshape(len(K), -1).T  # (c, n, n) -> (n², c)
    return dentro @ plano / dentro.sum(1, keepdims=True) - entre @ plano / entre.sum(
        1, keepdims=True
    )


def acertos_do_centroide(K: np.ndarray, rotulos: np.ndarray) -> np.ndarray:
    """Fração de ocorrências cujo sentido o centroide mais próximo adivinha, deixando-a de fora.

    Tudo sai de K: se os vetores são unitários, o cosseno de i com a soma S de uma classe é
    Σⱼ Kᵢⱼ / √(Σⱼₖ Kⱼₖ). Tirar i da própria classe é subtrair a parte dela.
    K: (c, n, n); rotulos: (s, n), cada sentido com 2 ocorrências ou mais. Devolve (s, c). Empate é
    meio acerto.
    """
    classes = np.unique(rotulos)
    um = (rotulos[:, None, :, None] == classes).astype(np.float64)  # (s, 1, n, C)
    eu = np.einsum("cii->ci", K)[None, :, :, None]  # (1, c, n, 1): Kᵢᵢ
    soma = K[None] @ um  # (c, n, n) @ (s, 1, n, C) -> (s, c, n, C)
    quadrado = (um * soma).sum(2, keepdims=True)  # (s, c, 1, C): ‖S‖²
    quadrado = quadrado - um * (2 * soma - eu)  # sem i, só na classe de i
    nota = (soma - um * eu) / np.sqrt(np.maximum(quadrado, 1e-30))  # (s, c, n, C)
    certa = (nota * um).sum(-1)  # (s, c, n)
    outra = np.where(um > 0, -np.inf, nota).max(-1)
    # Em float64 um empate de verdade (camada 0) difere só no arredondamento: n somas de cossenos com
    # 4·d arredondamentos cada, menos de 1e-9 ao todo.
    empate = np.abs(certa - outra) < 1e-6
    return np.where(empate, 0.5, certa > outra).mean(-1)


@dataclass(frozen=True)
class Prova:
    """A separação medida contra rótulos embaralhados, por camada. Cada campo é (camadas,).

    `p`: fração de embaralhos que separam tanto ou mais, contando o próprio; `p_corrigido`: o
    mesmo, mas contra o maior desvio de qualquer camada, porque olhamos todas. `piso` e `teto`:
    o intervalo onde caem 95 % dos embaralhos; `z`: a distância do acaso, em desvios dele.
    `acertos` e `acertos_acaso` (percentil 95): do centroide mais próximo.
    """

    lacuna: np.ndarray
    z: np.ndarray
    p: np.ndarray
    p_corrigido: np.ndarray
    piso: np.ndarray
    teto: np.ndarray
    acertos: np.ndarray
    acertos_acaso: np.ndarray
    embaralhos: int

    @property
    def melhor(self) -> int:
        """A camada que mais se afasta do acaso, em desvios dele."""
        return int(self.z.argmax())

    def primeira(self, limite: float = 0.01) -> int | None:
        """A primeira camada com p corrigido abaixo do limite; None se nenhuma."""
        quais = np.flatnonzero(self.p_corrigido < limite)
        return int(quais[0]) if quais.size else None


def provar(K: np.ndarray, rotulos: np.ndarray, embaralhos: int, semente: int) -> Prova:
    """Os sentidos se separam mais do que rótulos sorteados separariam? Uma prova por camada.

    O mesmo embaralho vale para todas as camadas. p = (1 + #{embaralho ≥ medido}) / (1 + total),
    e empates contam contra nós: onde tudo é igual (camada 0), p = 1.
    """
    sorteio = np.random.default_rng(semente)
    mistos = np.stack([sorteio.permutation(rotulos) for _ in range(embaralhos)])  # (s, n)
    lacuna = separacao(K, rotulos[None])[0]  # (c,)
    nula = separacao(K, mistos)  # (s, c)
    # Abaixo disto é arredondamento, não separação: n² somas de cossenos em float64, menos de 1e-9.
    margem = 1e-7
    p = (1 + (nula >= lacuna - margem).sum(0)) / (1 + embaralhos)
    desvio = nula.std(0)
    escala = np.where(desvio > margem, desvio, np.inf)  # camada constante: z = 0
    z, z_nulo = (lacuna - nula.mean(0)) / escala, (nula - nula.mean(0)) / escala
    maximo = z_nulo.max(1)  # (s, c) -> (s,): a melhor camada de cada embaralho
    p_corrigido = (1 + (maximo[:, None] >= z - 1e-9).sum(0)) / (1 + embaralhos)
    acaso = acertos_do_centroide(K, mistos)  # (s, c)
    return Prova(
        lacuna, z, p, p_corrigido, *np.percentile(nula, (2.5, 97.5), axis=0),
        acertos_do_centroide(K, rotulos[None])[0], np.percentile(acaso, 95, axis=0), embaralhos,
    )  # fmt: skip


# --- anisotropia (Ethayarajh 2019, arXiv:1909.00512) -------------------------------------


def media_dos_cossenos(X: np.ndarray) -> np.ndarray:
    """(camadas, n, d) -> (camadas,): o cosseno médio entre todos os pares diferentes, exato.

    A soma de todos os cossenos é ‖Σ u‖²; sem os n de cada vetor consigo mesmo, sobram os pares.
    """
    return contribuicoes(X).sum(1)


def contribuicoes(X: np.ndarray) -> np.ndarray:
    """(camadas, n, d) -> (camadas, d): quanto cada dimensão põe no cosseno médio.

    cos(u, v) = Σₖ uₖ·vₖ: a parcela k, na média de todos os pares. A soma das parcelas é a
    anisotropia. Timkey e van Schijndel 2021 (arXiv:2109.04404), equação 4.
    """
    u = unitarios(X)
    n = u.shape[1]
    return (u.sum(1) ** 2 - (u**2).sum(1)) / (n * (n - 1))  # (c, n, d) -> (c, d)


def variancia_de_um_vetor(X: np.ndarray) -> np.ndarray:
    """(camadas, n, d) -> (camadas,): a parte de Σ‖x‖² que um único vetor consegue explicar.

    σ₁² / Σσᵢ², sem centrar: 1 se todas as ocorrências forem múltiplas de um vetor estático.
    É a MEV de Ethayarajh (2019), seção 3.2. Pela matriz n × n, menor que d × d.
    """
    X = X.astype(np.float64)
    autovalores = np.linalg.eigvalsh(X @ X.transpose(0, 2, 1))  # (c, n): σ², do menor ao maior
    return autovalores[:, -1] / autovalores.sum(1)


def sem_dimensoes(X: np.ndarray, quais: np.ndarray) -> np.ndarray:
    """(c, n, d) -> (c, n, d): X com zero nas dimensões `quais` (c, k) de cada camada."""
    limpo = X.copy()
    np.put_along_axis(limpo, quais[:, None, :], 0, axis=2)
    return limpo


def padronizar(X: np.ndarray, referencia: np.ndarray) -> np.ndarray:
    """(c, n, d) -> (c, n, d): cada dimensão menos a média da referência, sobre o desvio dela.

    Depois disso nenhuma dimensão grita mais alto que as outras. Uma dimensão constante na
    referência fica só centrada.
    """
    media, desvio = referencia.mean(1, keepdims=True), referencia.std(1, keepdims=True)
    return (X - media) / np.where(desvio > 0, desvio, 1)
