"""As figuras: legíveis num projetor, seguras para daltônicos, em português.

Usamos os objetos do matplotlib sem o pyplot: nenhuma janela é aberta, e um computador sem
tela (ou sem Tk) desenha igual. Cada função devolve uma Figure; `png` a transforma em bytes.
O matplotlib entra dentro das funções: quem roda com --sem-graficos não o espera.
"""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe e Ito (2008): oito cores que quem não distingue vermelho de verde ainda separa.
AZUL, LARANJA, VERDE, ROSA, CEU, VERMELHO, AMARELO, PRETO = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000",
)  # fmt: skip
CORES = (AZUL, LARANJA, VERDE, VERMELHO, ROSA, CEU)
TRACOS = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))

ESTILO = {
    "font.size": 15,
    "axes.titlesize": 17,
    "axes.titleweight": "bold",
    "axes.labelsize": 15,
    "legend.fontsize": 13,
    "lines.linewidth": 2.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.dpi": 110,
    "text.parse_math": False,  # um $ no nome de um modelo é um $, não uma fórmula
}


def estilo(mais: dict | None = None):
    """Contexto em que o matplotlib desenha com o nosso `ESTILO`, e com o que `mais` mudar nele."""
    # Sem onde guardar a configuração (um HOME só de leitura) ele guarda no temporário, e o conta em inglês.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    return matplotlib.rc_context(ESTILO | (mais or {}))


def folha(largura: float, altura: float, **mais) -> Figure:
    """Uma Figure vazia, em polegadas. (Crie-a dentro de `estilo`.)"""
    from matplotlib.figure import Figure

    return Figure(figsize=(largura, altura), layout="constrained", **mais)


def _potencia(x: float, _pos=None) -> str:
    # Marcas de um eixo logarítmico: 1, 10, 1.000, e daí em diante 10⁵ (sem a linguagem de fórmulas,
    # que está desligada: ver ESTILO).
    n = round(float(np.log10(x))) if x > 0 else 0
    if x <= 0 or abs(x / 10.0**n - 1) > 1e-9:
        return f"{x:g}".replace(".", ",")
    if 0 <= n <= 4:
        return f"{10**n:,}".replace(",", ".")
    return "10" + str(n).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def png(figura: Figure) -> bytes:
    """A figura como bytes PNG, sem data nem versão dentro: a mesma figura, os mesmos bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter, ScalarFormatter

    class ComVirgula(ScalarFormatter):
        # Os números dos eixos com vírgula decimal, sem depender do idioma do sistema.
        def __call__(self, x, pos=None):
            return super().__call__(x, pos).replace(".", ",")

    memoria = io.BytesIO()
    for eixo in figura.axes:
        for reta in (eixo.xaxis, eixo.yaxis, getattr(eixo, "zaxis", None)):
            if reta is None:
                continue
            if type(reta.get_major_formatter()) is ScalarFormatter:
                reta.set_major_formatter(ComVirgula())
            elif isinstance(reta.get_major_formatter(), LogFormatter):
                reta.set_major_formatter(FuncFormatter(_potencia))
                reta.set_minor_formatter(NullFormatter())
    with estilo():
        # Direto na tela de pintar: o savefig desenharia tudo outra vez, só para medir as margens.
        FigureCanvasAgg(figura).print_png(
            memoria, metadata={"Software": None},
            pil_kwargs={"compress_level": 2},  # metade do tempo do 6, por um décimo a mais de bytes
        )  # fmt: skip
    return memoria.getvalue()


def _nova(largura: float = 10, altura: float = 6):
    figura = folha(largura, altura)
    return figura, figura.subplots()


def mapa_de_calor(
    matriz: np.ndarray,
    titulo: str,
    eixo_x: str,
    eixo_y: str,
    extensao: int | None = None,
) -> Figure:
    """Uma matriz de cossenos em cores, com zero em branco: azul e laranja não se confundem em cinza."""
    with estilo({"axes.grid": False}):
        figura, eixo = _nova(9.5, 8)
        n, m = matriz.shape
        lado = None if extensao is None else (-0.5, extensao - 0.5, extensao - 0.5, -0.5)
        imagem = eixo.imshow(
            matriz, cmap="PuOr_r", vmin=-1, vmax=1, extent=lado,
            interpolation="nearest", interpolation_stage="data", aspect="equal" if n == m else "auto",
        )  # fmt: skip
        eixo.set(title=titulo, xlabel=eixo_x, ylabel=eixo_y)
        figura.colorbar(imagem, ax=eixo, label="cosseno", shrink=0.85)
    return figura


def curvas(
    series: dict[str, tuple[np.ndarray, np.ndarray]],
    titulo: str,
    eixo_x: str,
    eixo_y: str,
    zero: bool = False,
    marcador: str = "",
    faixas: dict[str, np.ndarray] | None = None,
) -> Figure:
    """Várias curvas {nome: (x, y)}, cada uma com cor e traço próprios (lê-se também em cinza).

    `faixas` {nome: meia largura} desenha a dispersão em volta da curva de mesmo nome.
    """
    with estilo():
        figura, eixo = _nova()
        for i, (nome, (x, y)) in enumerate(series.items()):
            cor = CORES[i % len(CORES)]
            eixo.plot(
                x, y, color=cor, linestyle=TRACOS[i % len(TRACOS)], marker=marcador, label=nome
            )
            if faixas and nome in faixas:
                eixo.fill_between(x, y - faixas[nome], y + faixas[nome], color=cor, alpha=0.2)
        if zero:
            eixo.axhline(0, color="0.4", linewidth=1)
        eixo.set(title=titulo, xlabel=eixo_x, ylabel=eixo_y)
        # Uma curva só também diz de quem é: na parede, o título não basta.
        eixo.legend()
    return figura


def histogramas(
    grupos: dict[str, np.ndarray],
    titulo: str,
    eixo_x: str,
    marcas: dict[str, tuple[float, ...]] | None = None,
) -> Figure:
    """Histogramas sobrepostos {nome: valores}, em densidade; `marcas` {nome: (x, …)} são linhas
    verticais."""
    with estilo():
        figura, eixo = _nova()
        tudo = np.concatenate(list(grupos.values()))
        faixas = np.linspace(tudo.min(), tudo.max(), 90)
        for i, (nome, valores) in enumerate(grupos.items()):
            eixo.hist(valores, faixas, density=True, alpha=0.55, color=CORES[i], label=nome)
        for i, (nome, lugares) in enumerate((marcas or {}).items()):
            for x in lugares:
                eixo.axvline(x, color=PRETO, linestyle=TRACOS[i + 1], linewidth=2, label=nome)
                nome = None  # uma entrada só na legenda
        eixo.set(title=titulo, xlabel=eixo_x, ylabel="frequência (densidade)")
        eixo.legend()
    return figura


def barras(rotulos: list[str], series: dict[str, list[float]], titulo: str, eixo_x: str) -> Figure:
    """Barras horizontais, agrupadas por rótulo: nomes longos cabem sem girar a cabeça."""
    with estilo({"axes.grid.axis": "x"}):
        figura, eixo = _nova(11, 1.6 + 0.5 * len(rotulos) * max(1, 0.7 * len(series)))
        y = np.arange(len(rotulos))
        largura = 0.8 / len(series)
        for i, (nome, valores) in enumerate(series.items()):
            eixo.barh(
                y + (i - (len(series) - 1) / 2) * largura,
                valores,
                largura,
                color=CORES[i],
                label=nome,
            )
        for grupo in eixo.containers:
            # O valor na ponta: uma barra de 0 % não pode parecer dado que falta.
            eixo.bar_label(grupo, fmt=lambda v: f"{v:.0f}", padding=4, fontsize=12)
        eixo.set_yticks(y, rotulos)
        eixo.invert_yaxis()
        eixo.set(title=titulo, xlabel=eixo_x)
        if len(series) > 1:
            figura.legend(loc="outside lower center", ncols=len(series))
    return figura


def pilhas(
    rotulos: list[str],
    partes: dict[str, list[float]],
    titulo: str,
    eixo_x: str,
    soma: float = 100,
    sinal: str = "%",
) -> Figure:
    """Barras horizontais empilhadas: cada rótulo soma `soma`; `sinal` vai atrás de cada número."""
    with estilo({"axes.grid": False}):
        figura, eixo = _nova(12, 1.9 + 0.9 * len(rotulos))
        base = np.zeros(len(rotulos))
        tons = (AZUL, CEU, LARANJA, AMARELO, VERDE, ROSA, "0.6")
        for i, (nome, valores) in enumerate(partes.items()):
            eixo.barh(
                rotulos,
                valores,
                left=base,
                color=tons[i % len(tons)],
                edgecolor="white",
                label=nome,
            )
            base += np.array(valores)
        # A primeira pilha é a de que se fala: leva o número dentro.
        eixo.bar_label(
            eixo.containers[0],
            fmt=lambda v: f"{v:.0f}{sinal}" if v else "",
            label_type="center",
            color="white",
            weight="bold",
        )
        eixo.grid(visible=False)
        eixo.set_xlim(0, soma)
        eixo.invert_yaxis()
        eixo.set(title=titulo, xlabel=eixo_x)
        figura.legend(loc="outside lower center", ncols=2)
    return figura


def regua(
    palavras: list[str], valores: np.ndarray, vazadas: list[bool], titulo: str, eixo_x: str
) -> Figure:
    """Palavras ao longo de um eixo, cada uma na sua altura para os nomes não se cobrirem.

    `vazadas` marca as palavras que entraram na conta do eixo: o lugar delas não é surpresa.
    """
    with estilo({"axes.grid.axis": "x"}):
        figura, eixo = _nova(11, 2.4 + 0.42 * len(palavras))
        ordem = np.argsort(valores)
        y = np.arange(len(palavras))
        oca = np.array(vazadas)[ordem]
        eixo.hlines(y, 0, valores[ordem], color="0.75", linewidth=2)
        for quais, fundo, nome in (
            (~oca, AZUL, "de fora da conta"),
            (oca, "white", "fez a direção"),
        ):
            eixo.plot(
                valores[ordem][quais], y[quais], "o", color=AZUL, markerfacecolor=fundo,
                markersize=11, markeredgewidth=2.2, label=nome,
            )  # fmt: skip
        eixo.axvline(0, color="0.4", linewidth=1)
        eixo.set_yticks(y, [palavras[i] for i in ordem])
        eixo.set(title=titulo, xlabel=eixo_x)
        figura.legend(loc="outside lower center", ncols=2)
    return figura


def _separadas(pontos: np.ndarray, candidatas: np.ndarray) -> list[int]:
    # As pontas e, entre as outras, as que não caem em cima de uma já escolhida: número sobre número
    # não se lê. Distância em partes do tamanho da figura.
    escala = np.ptp(pontos, axis=0)
    soltos = pontos / np.where(escala > 0, escala, 1)
    escolhidas: list[int] = []
    for i in dict.fromkeys([candidatas[0], candidatas[-1], *candidatas]):
        if all(np.sqrt(((soltos[i] - soltos[j]) ** 2).sum()) > 0.28 for j in escolhidas):
            escolhidas.append(int(i))
    return sorted(escolhidas)


def helice(pontos: np.ndarray, fracao: np.ndarray | None, titulo: str, inicio: int = 0) -> Figure:
    """Três componentes de uma tabela de posições: a curva em 3-D e as três contra a posição.

    `inicio` é a posição da primeira linha de `pontos`, para os números da curva.
    """
    from matplotlib import colormaps

    with estilo():
        figura = folha(14, 6.8)
        espaco = figura.add_subplot(1, 2, 1, projection="3d")
        plano = figura.add_subplot(1, 2, 2)
        n = len(pontos)
        tom = colormaps["viridis"](np.linspace(0, 1, n))
        espaco.plot(*pontos.T, color="0.75", linewidth=1)
        espaco.scatter(*pontos.T, c=tom, s=12, depthshade=False)
        marcadas = _separadas(pontos, np.linspace(0, n - 1, 5).astype(int))
        # Um anel em volta de cada ponto numerado: sem ele o número flutua, e não se sabe de quem é.
        espaco.scatter(
            *pontos[marcadas].T, s=70, facecolors="none", edgecolors=PRETO, linewidths=1.8,
            depthshade=False,
        )  # fmt: skip
        for i in marcadas:
            espaco.text(*pontos[i], f"  {i + inicio}", fontsize=14, weight="bold")
        espaco.set(xlabel="1ª componente", ylabel="2ª", zlabel="3ª")
        for reta in (espaco.xaxis, espaco.yaxis, espaco.zaxis):
            reta.set_ticklabels([])  # na projeção os números não se leem; estão ao lado, em 2-D
        espaco.set_box_aspect(None, zoom=0.88)  # sem isto o nome do eixo PC3 é cortado
        for k in range(pontos.shape[1]):
            extra = "" if fracao is None else f" ({100 * fracao[k]:.0f}%)"
            plano.plot(
                np.arange(n) + inicio,
                pontos[:, k],
                color=CORES[k],
                linestyle=TRACOS[k],
                label=f"{k + 1}ª componente{extra}",
            )
        plano.set(xlabel="posição", ylabel="coordenada")
        plano.legend()
        figura.suptitle(titulo, fontsize=17, weight="bold")
    return figura
