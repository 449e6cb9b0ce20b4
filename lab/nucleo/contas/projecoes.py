"""De d dimensões a duas, e quanto se perdeu: PCA, t-SNE, UMAP e as medidas de distorção.

Convenções: `X` é (n, d), um ponto por linha; `Y` é (n, 2), o desenho; `D` é (n, n), as
distâncias euclidianas. Nas linhas normalizadas, ordenar por distância é ordenar por cosseno.
"""

import contextlib
import sys
import warnings
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata, spearmanr

from nucleo.contas import tabela_posicoes

ITERACOES = 500  # do t-SNE; em uma centena de pontos a figura já parou de mudar


# --- as três projeções -------------------------------------------------------------------


def pca(X: np.ndarray) -> np.ndarray:
    """(n, d) -> (n, 2): as duas componentes principais. A única das três que é um produto."""
    return tabela_posicoes.pca(X, 2).pontos


def fracao_explicada(X: np.ndarray) -> np.ndarray:
    """(n, d) -> (d,): a parte da variância de cada componente, da maior à menor (soma 1).

    Pela matriz d × d das covariâncias, somada em blocos: cabe qualquer número de linhas.
    """
    media = X.mean(0, dtype=np.float64)
    C = np.zeros((X.shape[1], X.shape[1]))
    for i in range(0, len(X), 8192):
        bloco = X[i : i + 8192] - media.astype(np.float32)
        C += bloco.T @ bloco  # (d, b) @ (b, d) -> (d, d)
    valores = np.maximum(np.linalg.eigvalsh(C)[::-1], 0)
    return valores / (valores.sum() or 1)  # pontos todos iguais: nada a explicar


def tsne(X: np.ndarray, perplexidade: float, semente: int, inicio: str = "random") -> np.ndarray:
    """(n, d) -> (n, 2): t-SNE exato (van der Maaten e Hinton 2008). `inicio`: "random" ou "pca".

    O início PCA é a nossa, exata: a da biblioteca é aproximada e depende da semente.

    Erros: `ValueError` se a perplexidade não for menor que n (ver `conferir_botoes`).
    """
    from sklearn.manifold import TSNE

    comeco = inicio
    if inicio == "pca":
        comeco = pca(X).astype(np.float32)
        comeco *= np.float32(1e-4) / (comeco[:, 0].std() or 1)  # pequeno, como se recomenda
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TSNE(
            perplexity=perplexidade, init=comeco, random_state=semente, method="exact",
            learning_rate="auto", max_iter=ITERACOES,
        ).fit_transform(X)  # fmt: skip


def por_que_sem_umap() -> str:
    """ "" se o UMAP importa e roda aqui; senão, o motivo em uma linha.

    Importar não basta: com um scikit-learn novo demais ele importa e quebra no primeiro uso.
    """
    try:
        X = np.random.default_rng(0).standard_normal((24, 4)).astype(np.float32)
        umap(X, 5, 0)
    except ImportError as erro:
        return f"não está instalado ({erro})"
    # O numba e o llvmlite quebram de muitas maneiras, conforme o Python: qualquer uma serve aqui.
    except Exception as erro:
        return f"está instalado, mas quebrou: {type(erro).__name__}: {str(erro).splitlines()[0]}"
    return ""


def umap(X: np.ndarray, vizinhos: int, semente: int, inicio: str = "spectral") -> np.ndarray:
    """(n, d) -> (n, 2): UMAP (McInnes et al. 2018). `inicio`: "spectral", "pca" ou "random".

    Erros: `ImportError` e outros se a biblioteca faltar ou estiver quebrada (ver
    `por_que_sem_umap`).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        UMAP = _umap_que_lembra()
        comeco = pca(X).astype(np.float32) if inicio == "pca" else inicio
        # Uma linha de execução só: com semente, o UMAP só é repetível assim.
        return UMAP(
            n_neighbors=vizinhos, random_state=semente, init=comeco, n_jobs=1
        ).fit_transform(X)


@cache
def _umap_que_lembra():
    # A classe UMAP. Ela compila umas funções a cada processo, por uns 15 s; o numba sabe guardar em
    # disco o que compila, e aqui se pede isso para todas. Onde ele não puder, compila-se de novo.
    from umap import UMAP

    with contextlib.suppress(Exception):
        from numba.core.dispatcher import Dispatcher

        for nome, modulo in list(sys.modules.items()):
            if nome.split(".")[0] in ("umap", "pynndescent"):
                for funcao in [f for f in vars(modulo).values() if isinstance(f, Dispatcher)]:
                    with contextlib.suppress(Exception):  # sem pasta onde gravar, por exemplo
                        funcao.enable_caching()
    return UMAP


@dataclass
class Corridas:
    """As projeções de um conjunto de pontos, cada uma calculada uma vez e guardada.

    `sem_umap`: "" ou o motivo de não haver UMAP.
    """

    X: np.ndarray
    sem_umap: str = ""
    _feitas: dict = field(default_factory=dict, repr=False)

    def fazer(self, metodo: str, botao: int = 0, semente: int = 0, inicio: str = "") -> np.ndarray:
        """(n, 2): `metodo` é "PCA", "t-SNE" ou "UMAP"; `botao`, a perplexidade ou os vizinhos."""
        if metodo == "PCA":
            botao, semente, inicio = 0, 0, ""  # a PCA não tem botão nem sorte
        chave = (metodo, botao, semente, inicio)
        if chave not in self._feitas:
            if metodo == "PCA":
                Y = pca(self.X)
            elif metodo == "t-SNE":
                Y = tsne(self.X, botao, semente, inicio or "random")
            else:
                Y = umap(self.X, botao, semente, inicio or "spectral")
            self._feitas[chave] = np.asarray(Y, dtype=np.float64)
        return self._feitas[chave]

    @property
    def metodos(self) -> list[str]:
        return ["PCA", "t-SNE"] + ([] if self.sem_umap else ["UMAP"])


# --- distorção -----------------------------------------------------------------------------


def distancias(X: np.ndarray) -> np.ndarray:
    """(n, d) -> (n, n): a distância euclidiana entre cada par, em float64; a diagonal é zero."""
    return cdist(X, X)


def postos(D: np.ndarray) -> np.ndarray:
    """(n, n) -> (n, n): o posto de j entre os vizinhos de i: 0 o próprio, 1 o mais próximo…

    Empates (vetores repetidos) saem pelo menor índice; o próprio ponto é sempre o posto 0.
    """
    sem_gemeos = D - np.eye(len(D))  # a distância a si mesmo vira −1: ninguém passa na frente
    return rankdata(sem_gemeos, method="ordinal", axis=1).astype(int) - 1


def _perto(D: np.ndarray, k: int) -> np.ndarray:
    # (n, n) -> (n, n): j está entre os k vizinhos de i?
    r = postos(D)
    return (r >= 1) & (r <= k)


def sobreposicao(D_alto: np.ndarray, D_baixo: np.ndarray, k: int) -> float:
    """A fração dos k vizinhos verdadeiros que continuam entre os k do desenho, em média."""
    return float((_perto(D_alto, k) & _perto(D_baixo, k)).sum(1).mean() / k)


def correlacao(D_alto: np.ndarray, D_baixo: np.ndarray) -> float:
    """A correlação de postos (Spearman) entre todas as distâncias: o que sobra do global."""
    i, j = np.triu_indices(len(D_alto), 1)
    return float(spearmanr(D_alto[i, j], D_baixo[i, j])[0])


def pureza(D: np.ndarray, rotulos: np.ndarray, k: int) -> float:
    """Dos k vizinhos de cada ponto com grupo, a fração que é do mesmo grupo. rotulo −1: sem grupo."""
    iguais = (rotulos[:, None] == rotulos[None, :]) & _perto(D, k)
    return float(iguais[rotulos >= 0].sum(1).mean() / k)


def pureza_ao_acaso(
    D: np.ndarray, rotulos: np.ndarray, k: int, vezes: int, semente: int
) -> np.ndarray:
    """(vezes,): a mesma pureza com os rótulos embaralhados, o desenho parado."""
    sorteio = np.random.default_rng(semente)
    mistos = np.stack([sorteio.permutation(rotulos) for _ in range(vezes)])  # (v, n)
    iguais = (mistos[:, :, None] == mistos[:, None, :]) & _perto(D, k)  # (v, n, n)
    com_grupo = mistos >= 0
    return (iguais.sum(2) * com_grupo).sum(1) / com_grupo.sum(1) / k


# --- grupos ---------------------------------------------------------------------------------


def centros(X: np.ndarray, rotulos: np.ndarray) -> np.ndarray:
    """(n, d) -> (g, d): o ponto médio de cada grupo, na ordem dos rótulos 0…g−1."""
    return np.stack([X[rotulos == g].mean(0) for g in range(rotulos.max() + 1)])


def espalhamento(X: np.ndarray, rotulos: np.ndarray) -> np.ndarray:
    """(g,): a distância média dos membros de cada grupo ao seu centro."""
    meios = centros(X, rotulos)
    return np.array(
        [np.linalg.norm(X[rotulos == g] - m, axis=1).mean() for g, m in enumerate(meios)]
    )


def separar_com_rotulos(X: np.ndarray, rotulos: np.ndarray, treino: np.ndarray):
    """(Y de todos (n, 2), acerto no treino, acerto fora): análise discriminante linear (LDA).

    Uma projeção que VÊ os rótulos. Com mais dimensões que pontos ela separa qualquer rotulagem,
    inclusive uma sorteada; só os pontos que ficaram de fora desmentem. treino: (n,) booleano.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Mesmo regularizada, com mais dimensões que pontos ela decora o treino.
        lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.3, n_components=2).fit(
            X[treino], rotulos[treino]
        )
        dentro, fora = (lda.score(X[q], rotulos[q]) for q in (treino, ~treino))
        return lda.transform(X), float(dentro), float(fora)


@dataclass(frozen=True)
class Aglomerados:
    """k-means no desenho: `no_desenho` e `no_espaco` são a silhueta da mesma partição medida nos
    dois lugares; `partes` (n,), o aglomerado de cada ponto."""

    partes: np.ndarray
    no_desenho: float
    no_espaco: float


def aglomerados(X: np.ndarray, Y: np.ndarray, quantos: int, semente: int) -> Aglomerados:
    """Acha `quantos` aglomerados no desenho Y e pergunta se eles existem no espaço X.

    A silhueta vai de −1 a 1: perto de 0 não há grupos.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    partes = KMeans(quantos, n_init=4, random_state=semente).fit_predict(Y)
    return Aglomerados(
        partes, float(silhouette_score(Y, partes)), float(silhouette_score(X, partes))
    )


def contar_aglomerados(Y: np.ndarray) -> int:
    """Quantos aglomerados o DBSCAN vê no desenho, com o raio na distância típica ao 3º vizinho."""
    from sklearn.cluster import DBSCAN

    D = distancias(Y)
    raio = 1.5 * np.median(np.sort(D, axis=1)[:, min(3, len(D) - 1)])
    partes = DBSCAN(eps=max(raio, 1e-12), min_samples=3).fit_predict(Y)
    return int(partes.max() + 1)
