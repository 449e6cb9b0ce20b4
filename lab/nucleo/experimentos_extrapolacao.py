"""Os quadros da lição 06_extrapolacao, a partir do que `extrapolacao.avaliar` mediu."""

from __future__ import annotations

import json
import math

import numpy as np
from torch import Tensor

from nucleo import extrapolacao as ex
from nucleo.saida import Conferencia, Quadro
from nucleo.unidades import decimal, inteiro

Medidas = dict[tuple[str, int], Tensor]  # {(nome, comprimento): (sementes, comprimento)}


def media_e_faixa(curvas: Tensor) -> tuple[float, float]:
    """(média das sementes, meia distância entre a maior e a menor), em nats por caractere."""
    por_semente = curvas.mean(-1)  # (sementes, L) -> (sementes,)
    return float(por_semente.mean()), float((por_semente.max() - por_semente.min()) / 2)


def _com_faixa(par: tuple[float, float]) -> str:
    media, faixa = par
    return decimal(media) + (f" ± {decimal(faixa)}" if faixa else "")


def nomes(medidas: Medidas) -> list[str]:
    """Os nomes, na ordem em que foram medidos."""
    return list(dict.fromkeys(nome for nome, _ in medidas))


def apresentar(ficha: dict, sementes: tuple[int, ...]) -> str:
    """Uma frase com o que todos os modelos têm em comum."""
    m = ex.MEDIDAS
    return (
        f"Seis esquemas × {len(sementes)} semente(s): d {m.d}, {m.camadas} camadas, {m.cabecas} cabeças, "
        f"{inteiro(ficha['passos'])} passos de {ficha['lote']} × {m.treino} caracteres de "
        f"{len(ficha['obras'])} romances ({inteiro(ficha['caracteres_de_treino'])} caracteres). Avaliação: "
        f"{inteiro(ficha['caracteres_avaliados'])} caracteres de um romance que nenhum viu."
    )


def quem_perde(no_treino: Quadro) -> str:
    """A frase sobre quem não vence o 5-grama, a partir do quadro de `contra_n_gramas`."""
    perdem = [linha[0] for linha in no_treino.linhas if linha[-1] == "não"]
    if not perdem:
        return "todos vencem o 5-grama: usam mais que os quatro caracteres anteriores."
    return (
        f"{', '.join(perdem)} não vence(m) o 5-grama neste tamanho e neste tempo: o que se vê deles "
        "mais longe diz pouco, e é lido com essa ressalva."
    )


def resumir(medidas: Medidas) -> str:
    """Quem piora e quem não piora de 128 a 1024, do melhor ao pior."""
    deltas = {nome: variacao(medidas, nome, ex.COMPRIMENTOS[-1]) for nome in nomes(medidas)}
    vivos = sorted((d, nome) for nome, d in deltas.items() if d is not None)
    lista = ", ".join(f"{nome} {'+' if d > 0 else ''}{decimal(d, 2)}" for d, nome in vivos)
    return f"de 128 a 1024 a perda muda assim (nats): {lista}. A tabela aprendida acaba em 128."


def contra_n_gramas(medidas: Medidas, ficha: dict) -> Quadro:
    """Cada esquema no comprimento de treino, ao lado do 5-grama dos mesmos caracteres."""
    L, alvo = ex.MEDIDAS.treino, ficha["perda_n_gramas"]["5"]
    linhas = []
    for nome in nomes(medidas):
        media, faixa = media_e_faixa(medidas[nome, L])
        linhas.append([nome, media, faixa, alvo, "sim" if media + faixa < alvo else "não"])
    colunas = {"esquema": str, "perda": decimal, "± sementes": decimal, "5-grama": decimal}
    titulo = f"No comprimento de treino ({L}), nats por caractere"
    return Quadro(titulo, colunas | {"vence o 5-grama": str}, linhas)


def por_comprimento(medidas: Medidas, titulo: str, primeira: str) -> Quadro:
    """Uma linha por nome, uma coluna por comprimento; vazio onde o esquema não existe."""
    linhas = []
    for nome in nomes(medidas):
        celulas = [
            media_e_faixa(medidas[nome, L]) if (nome, L) in medidas else None
            for L in ex.COMPRIMENTOS
        ]
        linhas.append([nome, *celulas])
    colunas = {
        f"{L}" + (" (treino)" if ex.MEDIDAS.treino == L else ""): _com_faixa
        for L in ex.COMPRIMENTOS
    }
    return Quadro(titulo, {primeira: str} | colunas, linhas)


def faixas_de_posicao(medidas: Medidas) -> Quadro:
    """A perda na janela mais longa, em faixas de posição: dentro do treino, logo depois, longe."""
    L = ex.COMPRIMENTOS[-1]
    limites = [0, 16, ex.MEDIDAS.treino, *ex.COMPRIMENTOS[1:]]
    linhas = []
    for nome in nomes(medidas):
        curva = medidas.get((nome, L), medidas[nome, ex.MEDIDAS.treino]).mean(
            0
        )  # (sementes, L) -> (L,)
        pedacos = [curva[a:b] for a, b in zip(limites, limites[1:], strict=False)]
        linhas.append([nome, *(float(p.mean()) if len(p) else None for p in pedacos)])
    colunas = [f"{a}–{b - 1}" for a, b in zip(limites, limites[1:], strict=False)]
    titulo = f"Em uma janela de {inteiro(L)}: perda por posição"
    return Quadro(titulo, {"esquema": str} | dict.fromkeys(colunas, decimal), linhas)


def curvas_por_comprimento(medidas: Medidas) -> tuple[dict, dict]:
    """({nome: (x, y)}, {nome: meia largura}) para `graficos.curvas`."""
    series, faixas = {}, {}
    for nome in nomes(medidas):
        x = [L for L in ex.COMPRIMENTOS if (nome, L) in medidas]
        pares = [media_e_faixa(medidas[nome, L]) for L in x]
        series[nome] = np.array(x), np.array([m for m, _ in pares])
        faixas[nome] = np.array([f for _, f in pares])
    return series, faixas


def curvas_por_posicao(medidas: Medidas, janela: int = 32) -> dict:
    """{nome: (posição, perda)} na janela mais longa, em médias de `janela` posições vizinhas."""
    L, series = ex.COMPRIMENTOS[-1], {}
    for nome in nomes(medidas):
        curva = medidas.get((nome, L), medidas[nome, ex.MEDIDAS.treino]).mean(0).numpy()
        blocos = curva[: len(curva) // janela * janela].reshape(-1, janela).mean(-1)
        series[nome] = (np.arange(len(blocos)) + 0.5) * janela, blocos
    return series


def variacao(medidas: Medidas, nome: str, L: int) -> float | None:
    """Perda em L menos a do treino, em nats (negativa: mais contexto ajudou); None se não existe."""
    if (nome, L) not in medidas:
        return None
    return media_e_faixa(medidas[nome, L])[0] - media_e_faixa(medidas[nome, ex.MEDIDAS.treino])[0]


def ao_lado_do_publicado(medidas: Medidas, perto: float = 0.02) -> Quadro:
    """Press et al. ao dobrar o comprimento, e nós; e se os dois concordam no sentido.

    Perplexidades viram nats (ln da razão). Menos que `perto` nats, para qualquer lado, é "igual".
    """
    publicados = json.loads((ex.PASTA / "publicados.json").read_text(encoding="utf-8"))["press"]

    def sentido(x: float | None) -> str:
        if x is None:
            return "—"
        return "igual" if abs(x) < perto else ("piora" if x > 0 else "melhora")

    linhas = []
    for p in publicados["linhas"]:
        deles = math.log(p["depois"] / p["no_treino"]) if p["no_treino"] else None
        nosso = variacao(medidas, p["esquema"], 2 * ex.MEDIDAS.treino)
        concorda = None if None in (deles, nosso) else sentido(deles) == sentido(nosso)
        onde = "—" if p["em"] is None else f"512 → {p['em']}"
        linhas.append(
            [p["esquema"], onde, deles, sentido(deles), nosso, sentido(nosso),
             "—" if concorda is None else "sim" if concorda else "não"]
        )  # fmt: skip
    colunas = {"esquema": str, "Press et al.": str, "Δ (nats)": decimal, "deles": str}
    colunas |= {"Δ nosso, ao dobrar": decimal, "nosso": str, "concordam": str}
    return Quadro(publicados["fonte"], colunas, linhas)


def publicado(chave: str) -> Quadro:
    """Uma das outras tabelas de data/extrapolacao/publicados.json, como foi publicada."""
    tabela = json.loads((ex.PASTA / "publicados.json").read_text(encoding="utf-8"))[chave]
    linhas = [[p["esquema"], p["valor"]] for p in tabela["linhas"]]
    return Quadro(tabela["fonte"], {"esquema": str, "publicado": lambda x: decimal(x, 2)}, linhas)


def conferir_anotadas(medidas: Medidas, anotadas: dict[str, list[float]]) -> list[Conferencia]:
    """As perdas de agora contra as anotadas quando os pesos foram gravados."""
    linhas = []
    for nome in nomes(medidas):
        diferencas: list[float] = []
        for L, valor in zip(ex.COMPRIMENTOS, anotadas[nome], strict=True):
            if valor is not None:
                diferencas.append(abs(media_e_faixa(medidas[nome, L])[0] - valor))
        linhas.append(Conferencia(nome, max(diferencas), 0, 1e-3))
    return linhas


def anotar(medidas: Medidas) -> dict[str, list[float | None]]:
    """{nome: [média em cada comprimento]}, o que `conferir_anotadas` lê depois."""
    return {
        nome: [
            media_e_faixa(medidas[nome, L])[0] if (nome, L) in medidas else None
            for L in ex.COMPRIMENTOS
        ]
        for nome in nomes(medidas)
    }
