"""As figuras da lição 06_projecoes. Cada função recebe desenhos prontos e devolve a Figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nucleo.base.graficos import AZUL, CEU, LARANJA, PRETO, ROSA, VERDE, VERMELHO, estilo, folha
from nucleo.contas.projecoes import Corridas
from nucleo.licoes.l06_projecoes import INICIOS, SORTEADO, Conjunto, Controle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TONS = (AZUL, LARANJA, VERDE, VERMELHO, ROSA, CEU, PRETO)
FORMAS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
SEM_EIXOS = {"axes.grid": False, "axes.spines.left": False, "axes.spines.bottom": False}


def _nuvem(eixo, Y: np.ndarray, rotulos: np.ndarray, grupos: list[str], tamanho: float) -> None:
    # Cor e forma juntas: doze grupos se distinguem em cinza e por quem não separa cores.
    soltos = rotulos < 0
    eixo.scatter(*Y[soltos].T, s=tamanho * 0.6, c="0.75", marker="o", label=SORTEADO)
    for g, nome in enumerate(grupos):
        eixo.scatter(
            *Y[rotulos == g].T, s=tamanho, c=TONS[g % len(TONS)], marker=FORMAS[g % len(FORMAS)],
            edgecolors="white", linewidths=0.4, label=nome,
        )  # fmt: skip
    _moldura(eixo)


def _moldura(eixo) -> None:
    eixo.set(xticks=[], yticks=[])
    # Em grades de muitos quadrinhos, um fio claro diz onde um acaba e o outro começa.
    for lado in eixo.spines.values():
        lado.set(visible=True, color="0.85")


def lado_a_lado(c: Conjunto, desenhos: dict[str, np.ndarray], nome: str) -> Figure:
    """Um desenho por método, com a legenda dos grupos embaixo."""
    with estilo(SEM_EIXOS):
        figura = folha(5.4 * len(desenhos), 6.6)
        eixos = figura.subplots(1, len(desenhos), squeeze=False)[0]
        for eixo, (metodo, Y) in zip(eixos, desenhos.items(), strict=True):
            _nuvem(eixo, Y, c.rotulos, c.grupos, 60)
            eixo.set_title(metodo)
        marcas, rotulos = eixos[0].get_legend_handles_labels()
        figura.legend(marcas, rotulos, loc="outside lower center", ncols=6)
        titulo = f"{nome}: os mesmos {c.n} pontos, desenhos diferentes"
        figura.suptitle(titulo, fontsize=17, weight="bold")
    return figura


def grade(c: Conjunto, metodo: str, desenhos: dict, nome: str) -> Figure:
    """Uma linha por perplexidade (ou vizinhos), uma coluna por semente."""
    botoes = list(dict.fromkeys(b for b, _ in desenhos))
    sementes = list(dict.fromkeys(s for _, s in desenhos))
    with estilo(SEM_EIXOS):
        figura = folha(2.5 * len(sementes), 2.5 * len(botoes) + 1)
        eixos = figura.subplots(len(botoes), len(sementes), squeeze=False)
        for i, b in enumerate(botoes):
            for j, s in enumerate(sementes):
                _nuvem(eixos[i, j], desenhos[b, s], c.rotulos, c.grupos, 16)
                if i == 0:
                    eixos[i, j].set_title(f"semente {s}", fontsize=14)
            botao = "perplexidade" if metodo == "t-SNE" else "vizinhos"
            eixos[i, 0].set_ylabel(f"{botao} {b}", fontsize=14)
        titulo = f"{metodo} em {nome}: só a semente e o botão mudam (cores da figura 2)"
        figura.suptitle(titulo, fontsize=17, weight="bold")
    return figura


def inicios(corridas: Corridas, botao: int, sementes: list[int]) -> Figure:
    """O círculo do brinquedo, com início PCA e início sorteado; a cor é o ângulo verdadeiro."""
    linhas = [(m, i) for m in corridas.metodos[1:] for i in INICIOS]
    with estilo(SEM_EIXOS):
        figura = folha(3 * len(linhas), 3 * len(sementes) + 0.8)
        eixos = figura.subplots(len(sementes), len(linhas), squeeze=False)
        for j, (metodo, inicio) in enumerate(linhas):
            for i, s in enumerate(sementes):
                Y = corridas.fazer(metodo, botao, s, inicio)
                eixos[i, j].scatter(*Y.T, c=np.arange(len(Y)), cmap="twilight_shifted", s=26)
                _moldura(eixos[i, j])
                eixos[i, 0].set_ylabel(f"semente {s}", fontsize=14)
            eixos[0, j].set_title(f"{metodo}\ninício {INICIOS[inicio]}", fontsize=15)
        figura.suptitle("Um círculo, e o que o início faz dele", fontsize=17, weight="bold")
    return figura


def controle(ctl: Controle, desenhos: dict[str, np.ndarray], partes: list, grupos: list) -> Figure:
    """Ruído puro, pintado pelos aglomerados que o k-means acha nele, e a LDA com rótulos trocados."""
    with estilo(SEM_EIXOS):
        figura = folha(4.4 * (len(desenhos) + 1), 5.2)
        eixos = figura.subplots(1, len(desenhos) + 1)
        for eixo, titulo, parte in zip(eixos[:-1], desenhos, partes, strict=True):
            _nuvem(eixo, desenhos[titulo], parte, [""] * (parte.max() + 1), 46)
            eixo.set_title(titulo, fontsize=15)
            eixo.set_xlabel("cor: o aglomerado que o k-means achou", fontsize=12)
        Y, t = ctl.lda, ctl.treino
        _nuvem(eixos[-1], Y[t], ctl.rotulos[t], grupos, 46)
        fora = eixos[-1].scatter(*Y[~t].T, s=36, c="0.35", marker="x", linewidths=1.2)
        eixos[-1].set_title("rótulos sorteados: LDA", fontsize=15)
        eixos[-1].set_xlabel("cor: o rótulo sorteado", fontsize=12)
        eixos[-1].legend([fora], ["pontos de fora"], loc="best")
        figura.suptitle("Nada disto existe: ruído e rótulos sorteados", fontsize=17, weight="bold")
    return figura
