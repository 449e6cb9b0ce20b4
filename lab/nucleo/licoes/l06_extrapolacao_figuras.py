"""As figuras da lição 06_extrapolacao: cada esquema tem a mesma cor em todas elas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nucleo.base.graficos import CORES, TRACOS, estilo, folha
from nucleo.base.unidades import inteiro

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARCAS = "sXDo^v"


def _aspecto(n: int) -> dict:
    """Cor, traço e marca do n-ésimo nome: quem não vê a cor tem as outras duas."""
    return {"color": CORES[n % 6], "linestyle": TRACOS[n % 6], "marker": MARCAS[n % 6]}


def por_comprimento(curvas: dict[str, tuple], titulo: str, treino: int) -> Figure:
    """Perda contra o tamanho da janela, com a faixa das sementes e o comprimento de treino."""
    from matplotlib.ticker import NullLocator

    with estilo():
        figura = folha(12.5, 6.5)
        eixo = figura.subplots()
        for n, (nome, (x, y, faixa)) in enumerate(curvas.items()):
            aspecto = _aspecto(n)
            # Quem só existe num comprimento é um ponto: maior, para não se perder sob os outros.
            eixo.plot(x, y, label=nome, markersize=8 if len(x) > 1 else 14, zorder=3, **aspecto)
            eixo.fill_between(x, y - faixa, y + faixa, color=aspecto["color"], alpha=0.2)
        eixo.axvline(treino, color="0.4", linestyle=":")
        todos = sorted({int(v) for x, *_ in curvas.values() for v in x})
        eixo.set_xscale("log", base=2)
        eixo.set_xticks(todos, map(inteiro, todos))
        eixo.xaxis.set_minor_locator(NullLocator())
        eixo.set(
            title=titulo, ylabel="nats por caractere",
            xlabel=f"caracteres na janela (treino: {treino})",
        )  # fmt: skip
        figura.legend(loc="outside right upper")
    return figura


def efeito(curvas: dict[str, tuple], nomes: list[str], treino: int) -> Figure:
    """O que a janela longa muda em cada posição, nos mesmos caracteres."""
    with estilo():
        figura = folha(12.5, 6.5)
        eixo = figura.subplots()
        for nome, (x, y) in curvas.items():
            aspecto = _aspecto(nomes.index(nome)) | {"marker": ""}
            eixo.plot(x, y, label=nome, **aspecto)
        eixo.axhline(0, color="0.4", linewidth=1)
        eixo.axvline(treino, color="0.4", linestyle=":")
        eixo.text(treino + 12, eixo.get_ylim()[0] * 0.95, "← fim do que se treinou", color="0.3")
        eixo.set(
            title="O que a janela longa muda, nos mesmos caracteres",
            xlabel="posição na janela de 1.024", ylabel="nats a mais que na janela de 128",
        )  # fmt: skip
        figura.legend(loc="outside right upper")
    return figura
