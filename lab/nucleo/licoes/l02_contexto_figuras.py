"""As figuras da lição 02_contexto. Cada função recebe o que já foi medido e devolve a Figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nucleo.base.graficos import AZUL, CORES, LARANJA, TRACOS, VERDE, curvas, estilo, folha
from nucleo.base.unidades import decimal
from nucleo.contas import sentidos
from nucleo.licoes import l02_contexto as exp

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _paineis(quantos: int):
    # Um por palavra, lado a lado. (Chame-a dentro de `estilo`.)
    figura = folha(max(8, 5.2 * quantos), 5.4)
    return figura, figura.subplots(1, quantos, sharey=True, squeeze=False)[0]


def semelhanca(lidas: list[exp.PalavraLida], nome: str) -> Figure:
    """Cosseno dentro de cada sentido e entre eles, por camada; a faixa é o desvio entre pares."""
    with estilo():
        figura, eixos = _paineis(len(lidas))
        for eixo, x in zip(eixos, lidas, strict=True):
            for i, (rotulo, f) in enumerate(exp.curvas(x).items()):
                c = np.arange(len(f.media))
                eixo.plot(c, f.media, color=CORES[i], linestyle=TRACOS[i], label=rotulo)
                baixo, alto = f.media - f.desvio, f.media + f.desvio
                eixo.fill_between(c, baixo, alto, color=CORES[i], alpha=0.15)
            eixo.set(title=f"“{x.palavra.palavra}”", xlabel="camada")
            eixo.legend(loc="lower left")
        eixos[0].set_ylabel("cosseno entre ocorrências")
        figura.suptitle(f"{nome}: a mesma palavra, camada a camada", fontsize=17, weight="bold")
    return figura


def mapas(x: exp.PalavraLida, camada: int, nome: str) -> Figure:
    """Os cossenos de todas as ocorrências com todas, na entrada e na camada mais nítida."""
    with estilo({"axes.grid": False}):
        figura = folha(13.5, 6.4)
        eixos = figura.subplots(1, 2)
        ordem = np.argsort(x.rotulos, kind="stable")
        fronteiras = np.flatnonzero(np.diff(x.rotulos[ordem])) + 0.5
        meios = [np.flatnonzero(x.rotulos[ordem] == i).mean() for i in range(len(set(x.rotulos)))]
        for eixo, c in zip(eixos, (0, camada), strict=True):
            K = x.K[c][np.ix_(ordem, ordem)]
            imagem = eixo.imshow(K, cmap="viridis", vmin=x.K[camada].min(), vmax=1)
            for f in fronteiras:
                eixo.axhline(f, color="white", linewidth=2)
                eixo.axvline(f, color="white", linewidth=2)
            eixo.set_xticks(meios, x.palavra.sentidos)
            eixo.set_yticks(meios, x.palavra.sentidos, rotation=90, va="center")
            eixo.set_title(f"camada {c}")
        figura.colorbar(imagem, ax=eixos, label="cosseno", shrink=0.85)
        titulo = f"{nome}: cada frase com “{x.palavra.palavra}” contra cada outra"
        figura.suptitle(titulo, fontsize=17, weight="bold")
    return figura


def separacao(provadas: list[exp.Provada], nome: str, limite: float = 0.01) -> Figure:
    """Dentro − entre, por camada, sobre a faixa dos embaralhos; cheio onde p corrigido < limite."""
    with estilo():
        figura, eixos = _paineis(len(provadas))
        for eixo, p in zip(eixos, provadas, strict=True):
            c = np.arange(len(p.palavra.lacuna))
            sorte = {"color": "0.8", "label": "95% dos embaralhos"}
            eixo.fill_between(c, p.palavra.piso, p.palavra.teto, **sorte)
            series = [(f"“{p.lida.palavra.palavra}”", p.palavra, AZUL, "-", "o")]
            if p.frente is not None:
                series.append(("o token da frente", p.frente, LARANJA, "--", "s"))
            cheio = f"p < {decimal(limite, 2)}"
            for rotulo, r, cor, traco, forma in series:
                eixo.plot(c, r.lacuna, color=cor, linestyle=traco, label=rotulo)
                boas = r.p_corrigido < limite
                eixo.plot(c[boas], r.lacuna[boas], forma, color=cor, markersize=7, label=cheio)
                cheio = None  # uma entrada só na legenda
            eixo.axhline(0, color="0.4", linewidth=1)
            eixo.set(title=" × ".join(p.lida.palavra.sentidos), xlabel="camada")
            eixo.legend(loc="upper left")
        eixos[0].set_ylabel("cosseno dentro − entre sentidos")
        figura.suptitle(f"{nome}: onde os sentidos se separam", fontsize=17, weight="bold")
    return figura


def anisotropia(x: exp.PalavraLida, f: exp.Fundo, nome: str) -> Figure:
    """O cosseno de dois tokens quaisquer, o de duas ocorrências, e a diferença."""
    auto, c = sentidos.media_dos_cossenos(x.X), np.arange(len(f.anisotropia))  # (c,) cada
    series = {
        f"duas ocorrências de “{x.palavra.palavra}”": (c, auto),
        "dois tokens quaisquer (anisotropia)": (c, f.anisotropia),
        "a diferença: semelhança corrigida": (c, auto - f.anisotropia),
    }
    titulo = f"{nome}: quanta semelhança é só anisotropia"
    return curvas(series, titulo, "camada", "cosseno médio", zero=True)


def rebeldes(r: exp.Rebeldes, nome: str) -> Figure:
    """A anisotropia crua, sem as três dimensões que mais pesam, e padronizada."""
    with estilo():
        figura = folha(13.5, 5.6)
        um, dois = figura.subplots(1, 2)
        c = np.arange(len(r.crua))
        pares = (("crua", r.crua), ("sem as três", r.sem_tres), ("padronizada", r.padronizada))
        for i, (rotulo, y) in enumerate(pares):
            um.plot(c, y, color=CORES[i], linestyle=TRACOS[i], label=rotulo)
        um.axhline(0, color="0.4", linewidth=1)
        um.set(title="dois tokens quaisquer", xlabel="camada", ylabel="cosseno médio")
        um.legend()
        dois.plot(c, r.lacuna, color=AZUL, label="crua")
        dois.plot(c, r.lacuna_padronizada, color=VERDE, linestyle="-.", label="padronizada")
        dois.axhline(0, color="0.4", linewidth=1)
        dois.set(title="dentro − entre sentidos", xlabel="camada")
        dois.legend()
        figura.suptitle(f"{nome}: o peso de três dimensões", fontsize=17, weight="bold")
    return figura
