"""As figuras da lição 06. Mesma folha de estilo de `graficos`: projetor, daltônicos, português."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from nucleo.base.graficos import AZUL, CEU, CORES, PRETO, TRACOS, VERMELHO, curvas, estilo, folha
from nucleo.base.unidades import decimal
from nucleo.contas import posicoes, rope

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def equilibrio(normas: dict[tuple[str, str], float], posicao: float) -> Figure:
    """{(início das linhas, se multiplica por √d): norma do token} em barras, com a da posição."""
    nomes = [f"{inicio}{',  × √d' if vezes == 'sim' else ''}" for inicio, vezes in normas]
    with estilo({"axes.grid.axis": "x"}):
        figura = folha(11.5, 4.8)
        eixo = figura.subplots()
        eixo.barh(nomes, list(normas.values()), color=AZUL)
        for y, norma in enumerate(normas.values()):
            eixo.text(norma * 1.08, y, _curto(norma), va="center", fontsize=15)
        eixo.axvline(posicao, color=VERMELHO, linestyle="--")
        marca = {"color": VERMELHO, "weight": "bold"}
        eixo.text(posicao * 1.05, -0.72, f"posição: {_curto(posicao)}", **marca)
        eixo.set_xscale("log")
        eixo.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1.000"])
        eixo.set_xlim(0.5, 3 * max(normas.values()))
        eixo.invert_yaxis()
        eixo.set(xlabel="norma média do token (escala logarítmica)")
        figura.suptitle("Quanto o token pesa ao lado da posição", fontsize=18, weight="bold")
    return figura


def senoides(T: int, d: int) -> Figure:
    """A tabela (T, d) em cores e, ao lado, o seno de alguns pares contra a posição."""
    tabela = posicoes.senoides(T, d).numpy()
    ondas = posicoes.comprimentos_de_onda(d).numpy()
    pares = sorted({0, d // 16, d // 8, d // 4, d // 2 - 1})
    with estilo():
        figura = folha(14, 7)
        mapa, linhas = figura.subplots(1, 2, width_ratios=(1, 1.15))
        cores = {"cmap": "PuOr_r", "vmin": -1, "vmax": 1}
        imagem = mapa.imshow(tabela, aspect="auto", interpolation="nearest", **cores)
        mapa.grid(False)
        mapa.set(title="Cada linha é uma posição", xlabel="coluna (dimensão)", ylabel="posição")
        figura.colorbar(imagem, ax=mapa, label="valor", shrink=0.85)
        for n, i in enumerate(pares):
            # Deslocadas na vertical, para que nenhuma curva cubra a outra.
            linhas.plot(tabela[:, 2 * i] - 2.6 * n, color=CORES[n], linewidth=2.2)
            nome = {"s": f"par {i}\nλ ≈ {_curto(ondas[i])}", "color": CORES[n], "fontsize": 13}
            linhas.text(T * 1.02, -2.6 * n, va="center", weight="bold", **nome)
        linhas.set(title="O seno de alguns pares", xlabel="posição", yticks=[])
        linhas.set_xlim(0, T - 1)
        figura.suptitle(f"Codificação senoidal, d = {d}", fontsize=18, weight="bold")
    return figura


def _curto(x: float) -> str:
    return decimal(x, 0 if x >= 100 else 1)


def ondas(d: int, treino: int) -> Figure:
    """O comprimento de onda de cada par, em escala logarítmica, com o contexto de treino marcado."""
    lambdas = posicoes.comprimentos_de_onda(d).numpy()
    n = len(lambdas)
    with estilo():
        figura = folha(10, 6)
        eixo = figura.subplots()
        eixo.semilogy(lambdas, color=AZUL, marker="o", markersize=5)
        for y in (2 * np.pi, 2e4 * np.pi):
            eixo.axhline(y, color="0.4", linestyle=":")
        eixo.text(n - 1, 2.2 * np.pi, "2π", ha="right", va="bottom", fontsize=14)
        eixo.text(0, 1.8e4 * np.pi, "10.000 · 2π", ha="left", va="top", fontsize=14)
        eixo.axhline(treino, color=VERMELHO, linestyle="--")
        eixo.text(0, treino * 1.15, f"{treino} posições", color=VERMELHO, weight="bold")
        lentos = int((lambdas > treino).sum())
        eixo.set(
            title=f"{lentos} de {n} pares não dão uma volta em {treino} posições",
            xlabel="par i", ylabel="comprimento de onda (posições)", ylim=(4, 1.2e5),
        )  # fmt: skip
    return figura


def distancia(d: int, ate: int) -> Figure:
    """PE(pos) · PE(pos + k) contra k: uma função só da distância."""
    k = np.arange(ate + 1)
    serie = {f"d = {d}": (k, posicoes.produto_interno_por_distancia(k, d))}
    titulo = "O produto interno depende só da distância"
    return curvas(serie, titulo, "distância k (posições)", "PE(pos) · PE(pos + k)", zero=True)


def fluxo(formas: dict[str, tuple[int, ...]]) -> Figure:
    """O caminho de um lote até o primeiro bloco, com a forma de cada etapa."""
    formas = {nome: str(forma) for nome, forma in formas.items()}
    caixas = {  # chave: (x, y, rótulo, cor)
        "texto": (0.0, 2, "texto", "#EEEEEE"),
        "ids": (1.7, 2, "tokenizador", "#EEEEEE"),
        "linhas": (3.5, 2, "consulta à\ntabela E", "#BFE0F2"),
        "escala": (5.4, 2, "× √d", "#BFE0F2"),
        "pos": (1.7, 0, "posições\n0 … T−1", "#EEEEEE"),
        "pe": (3.5, 0, "senos e\ncossenos", "#FBE3B5"),
        "soma": (7.2, 2, "+", "#FFFFFF"),
        "saida": (8.9, 2, "dropout", "#D9F0E6"),
        "bloco": (10.7, 2, "1º bloco do\nTransformer", "#EEEEEE"),
    }
    setas = [
        ("texto", "ids", ""), ("ids", "linhas", formas["ids"]), ("linhas", "escala", formas["E[ids]"]),
        ("escala", "soma", formas["E[ids] · √d"]), ("pos", "pe", f"({formas['PE[:T]'].split(',')[0][1:]},)"), ("pe", "soma", formas["PE[:T]"]),
        ("soma", "saida", formas["saída"]), ("saida", "bloco", formas["saída"]),
    ]  # fmt: skip
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    with estilo({"axes.grid": False}):
        figura = folha(15, 5.6)
        eixo = figura.subplots()
        for x, y, rotulo, cor in caixas.values():
            borda = {"boxstyle": "round,pad=0.05", "ec": PRETO, "lw": 1.6}
            eixo.add_patch(FancyBboxPatch((x - 0.62, y - 0.36), 1.24, 0.72, fc=cor, **borda))
            eixo.text(x, y, rotulo, ha="center", va="center", fontsize=14 if rotulo != "+" else 26)
        for de, para, nota in setas:
            (x0, y0, *_), (x1, y1, *_) = caixas[de], caixas[para]
            reto = y0 == y1
            inicio = (x0 + 0.69, y0)
            fim = (x1 - 0.69, y1) if reto else (x1, y1 - 0.43)
            curva = "arc3" if reto else "angle,angleA=0,angleB=90,rad=12"
            ponta = {"arrowstyle": "-|>", "mutation_scale": 20, "lw": 2, "color": "0.25"}
            eixo.add_patch(FancyArrowPatch(inicio, fim, connectionstyle=curva, **ponta))
            meio = ((inicio[0] + fim[0]) / 2, y0 + (0.62 if reto else 0.16))
            eixo.text(*meio, nota, ha="center", fontsize=13, color=AZUL, weight="bold")
        eixo.text(3.5, 1.42, f"E: {formas['E']}", ha="center", fontsize=12.5, color="0.35")
        eixo.text(3.5, -0.62, f"PE: {formas['PE']}", ha="center", fontsize=12.5, color="0.35")
        eixo.set(xlim=(-0.8, 11.5), ylim=(-0.9, 3.0))
        eixo.axis("off")
        eixo.set_title("Do texto ao primeiro bloco: a forma só ganha d, e a soma não a muda")
    return figura


def precisao(quais: list[int], erros: dict[str, list[float]]) -> Figure:
    """O erro de cada precisão em cada posição, em escala logarítmica; onde a conta dá NaN, um ×."""
    x = np.array(quais, dtype=float)
    with estilo():
        figura = folha(11, 6.5)
        eixo = figura.subplots()
        for n, (nome, serie) in enumerate(erros.items()):
            y = np.array(serie)
            aspecto = {"color": CORES[n], "linestyle": TRACOS[n], "marker": "o", "markersize": 5}
            eixo.loglog(x, y, label=nome, **aspecto)
            onde = x[np.isnan(y)]
            eixo.plot(onde, np.full(len(onde), 2.0), "x", color=CORES[n], markersize=11, mew=3)
        eixo.axhline(2, color="0.4", linewidth=1)
        pior = "2: o pior possível entre dois senos (×: nem cabe no tipo)"
        eixo.text(x[0], 2.2, pior, fontsize=12)
        eixo.set(title="Quanto mais longe, pior o ângulo", xlabel="posição", ylabel="maior erro")
        eixo.set_ylim(None, 12)
        eixo.legend(loc="lower right")
    return figura


def _media_movel(serie: np.ndarray, janela: int) -> np.ndarray:
    """A média das `janela` distâncias em volta de cada uma; nas pontas, das que houver."""
    soma = np.convolve(serie, np.ones(janela), mode="same")
    return soma / np.convolve(np.ones_like(serie), np.ones(janela), mode="same")


def qk(mapa: Tensor, d: int, ate: int) -> Figure:
    """q·k girados para todas as posições m e n; e o quanto q·k cai com a distância."""
    k = np.arange(ate + 1)
    valor, somas = (serie.numpy() for serie in rope.decaimento(k, d))
    with estilo():
        figura = folha(14.5, 6.6)
        esquerda, direita = figura.subplots(1, 2, width_ratios=(1, 1.25))
        limite = float(mapa.abs().max())
        imagem = esquerda.imshow(mapa.numpy(), cmap="PuOr_r", vmin=-limite, vmax=limite)
        esquerda.grid(False)
        esquerda.set(
            title="Constante em cada diagonal",
            xlabel="posição n da chave", ylabel="posição m da consulta",
        )  # fmt: skip
        figura.colorbar(imagem, ax=esquerda, label="q·k depois de girar", shrink=0.8)
        direita.plot(k, valor, color=CEU, linewidth=1, alpha=0.7, label="q = k = (1, …, 1)/√d")
        media, teto = _media_movel(valor, 61), _media_movel(somas / somas[0], 61)
        direita.plot(k, media, color=AZUL, label="a mesma, média de 61 distâncias")
        direita.plot(
            k, teto, color=VERMELHO, linestyle="--", label="média de |Sⱼ| (Su et al., eq. 37)"
        )
        direita.axhline(0, color="0.4", linewidth=1)
        direita.set(
            title="Longe, o produto tende a cair",
            xlabel="distância (posições)", ylabel="relativo à distância 0",
        )  # fmt: skip
        direita.legend()
    return figura


def esticamentos(razoes: dict[str, Tensor], d: int, treino: int, fator: float) -> Figure:
    """Quanto cada receita divide cada frequência, contra o comprimento de onda do par."""
    lambdas = posicoes.comprimentos_de_onda(d).numpy()
    # Receitas que aqui dão o mesmo ficam numa curva só: uma por cima da outra esconderia a de baixo.
    juntas: dict[str, Tensor] = {}
    for nome, razao in razoes.items():
        igual = next((n for n, r in juntas.items() if r.allclose(razao)), None)
        juntas[f"{igual} = {nome}" if igual else nome] = juntas.pop(igual) if igual else razao
    razoes = juntas
    with estilo():
        figura = folha(12, 6.6)
        eixo = figura.subplots()
        for n, (nome, y) in enumerate(razoes.items()):
            aspecto = {"color": CORES[n], "linestyle": TRACOS[n], "marker": "o^sDvP"[n]}
            eixo.plot(lambdas, y, markersize=6, label=nome, **aspecto)
        eixo.axvline(treino, color="0.4", linestyle=":")
        volta = {"s": f"uma volta\nem {treino}", "fontsize": 13, "color": "0.3"}
        eixo.text(treino * 1.06, 1 + 0.04 * fator, **volta)
        eixo.set_xscale("log")
        eixo.set(
            title=f"Esticar {treino} posições {fator:g} vezes: quem se mexe e quanto",
            xlabel="comprimento de onda do par (posições)", ylabel="a frequência foi dividida por",
        )  # fmt: skip
        eixo.legend()
    return figura


def dois_pares(n: int) -> Figure:
    """O vetor (1, 0) nas `n` primeiras posições: um par gira depressa, o outro devagar."""
    import matplotlib

    circulo = np.linspace(0, 2 * np.pi, 200)
    cores = matplotlib.colormaps["viridis"](np.linspace(0, 1, n))
    with estilo():
        figura = folha(12, 6.2)
        for eixo, teta in zip(figura.subplots(1, 2), (1.0, 0.1), strict=True):
            eixo.plot(np.cos(circulo), np.sin(circulo), color="0.8", linewidth=1.5)
            for pos, cor in enumerate(cores):
                ponta = np.array([np.cos(pos * teta), np.sin(pos * teta)])  # (2,)
                seta = {"arrowstyle": "-|>", "lw": 2.4, "color": cor}
                eixo.annotate("", ponta, (0, 0), arrowprops=seta)
                if teta == 1 or pos in (0, n - 1):  # devagar, os números do meio se cobririam
                    eixo.text(*1.14 * ponta, str(pos), ha="center", va="center", fontsize=14)
            eixo.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xticks=[], yticks=[])
            eixo.set_title(f"θ = {teta:g} rad por posição".replace(".", ","))
            eixo.axis("off")
        figura.suptitle("O vetor (1, 0) girado nas posições 0, 1, 2, …", fontsize=18, weight="bold")
    return figura
