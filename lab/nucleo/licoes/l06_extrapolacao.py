"""Os quadros da lição 06_extrapolacao, a partir do que `extrapolacao.avaliar` mediu."""

from __future__ import annotations

import json

import numpy as np
from torch import Tensor

from nucleo.base.caderno import Conferencia, Quadro
from nucleo.base.unidades import decimal
from nucleo.contas import folga
from nucleo.treino import extrapolacao as ex

Medidas = dict[tuple[str, int], Tensor]  # {(nome, comprimento): (sementes, caracteres)}


class ComFaixa(float):
    """Uma média que sabe a sua dispersão: no CSV é o número; na tela, “1,393 ± 0,004”."""

    def __new__(cls, media: float, faixa: float):
        """`faixa` é meia distância entre a maior e a menor semente."""
        novo = super().__new__(cls, media)
        novo.faixa = float(faixa)
        return novo

    def texto(self) -> str:
        """A média e, se houver mais de uma semente, a faixa."""
        return decimal(self) + (f" ± {decimal(self.faixa)}" if self.faixa else "")


def media(perdas: Tensor) -> ComFaixa:
    """(sementes, caracteres) -> a média das sementes e a sua faixa, em nats por caractere."""
    por_semente = perdas.double().mean(-1)  # (sementes, caracteres) -> (sementes,)
    return ComFaixa(por_semente.mean(), (por_semente.max() - por_semente.min()) / 2)


def nomes(medidas: Medidas) -> list[str]:
    """Os nomes, na ordem em que foram medidos."""
    return list(dict.fromkeys(nome for nome, _ in medidas))


def por_comprimento(medidas: Medidas, titulo: str, primeira: str) -> Quadro:
    """Uma linha por nome, uma coluna por comprimento lido; vazio onde o esquema não existe."""
    lidos = sorted({L for _, L in medidas})
    linhas = [
        [nome, *(media(medidas[nome, L]) if (nome, L) in medidas else None for L in lidos)]
        for nome in nomes(medidas)
    ]
    treino = {ex.MEDIDAS.treino: " (treino)"}
    colunas = {f"{L}{treino.get(L, '')}": ComFaixa.texto for L in lidos}
    return Quadro(titulo, {primeira: str} | colunas, linhas)


def curvas(medidas: Medidas) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """{nome: (comprimentos, perdas, meias larguras da faixa)} para a figura."""
    saida = {}
    for nome in nomes(medidas):
        x = [L for L in ex.COMPRIMENTOS if (nome, L) in medidas]
        medias = [media(medidas[nome, L]) for L in x]
        saida[nome] = np.array(x), np.array(medias, float), np.array([m.faixa for m in medias])
    return saida


def variacao(medidas: Medidas, nome: str, L: int) -> float | None:
    """Perda em L menos a do treino, em nats (negativa: mais contexto ajudou); None se não existe."""
    if (nome, L) not in medidas:
        return None
    return media(medidas[nome, L]) - media(medidas[nome, ex.MEDIDAS.treino])


def publicados() -> dict[str, dict]:
    """As tabelas de data/extrapolacao/publicados.json, como foram publicadas: fonte e linhas."""
    return json.loads((ex.PASTA / "publicados.json").read_text(encoding="utf-8"))


def anotar(medidas: Medidas) -> dict[str, dict[str, list[float]]]:
    """{nome: {comprimento: [perda de cada semente]}}, o que `conferir_anotadas` lê depois."""
    anotadas: dict[str, dict[str, list[float]]] = {}
    for (nome, L), perdas in medidas.items():
        anotadas.setdefault(nome, {})[str(L)] = perdas.double().mean(-1).tolist()
    return anotadas


def conferir_anotadas(
    medidas: Medidas, anotadas: dict[str, dict[str, list[float]]], sementes: tuple[int, ...]
) -> list[Conferencia]:
    """As perdas de agora contra as anotadas ao gravar os pesos: a maior diferença de cada esquema."""
    quais = [ex.SEMENTES.index(semente) for semente in sementes]
    piores: dict[str, float] = {}
    for (nome, L), perdas in medidas.items():
        antes = np.array(anotadas[nome][str(L)])[quais]  # (sementes,)
        pior = np.abs(
            perdas.double().mean(-1).numpy() - antes
        ).max()  # (s, caracteres) -> (s,) -> ()
        piores[nome] = max(float(pior), piores.get(nome, 0.0))
    # Cada perda sai de logits até uns 20, e a média delas não erra mais que a pior.
    limite = folga.modelo(ex.MEDIDAS.camadas, ex.MEDIDAS.d, 20)
    return [Conferencia(nome, pior, 0, limite) for nome, pior in piores.items()]
