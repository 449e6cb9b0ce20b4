"""Os quadros da lição 06_extrapolacao, a partir do que `extrapolacao.avaliar` mediu."""

from __future__ import annotations

import json
import math

import numpy as np
from torch import Tensor

from nucleo.base.caderno import Conferencia, Quadro
from nucleo.base.unidades import contado, decimal, inteiro
from nucleo.treino import extrapolacao as ex

Medidas = dict[tuple[str, int], Tensor]  # {(nome, comprimento): (sementes, caracteres)}


class ComFaixa(float):
    """Uma média que sabe a sua dispersão: no CSV é o número; na tela, “1,393 ± 0,004”."""

    faixa: float = 0.0

    def __new__(cls, media: float, faixa: float):
        """`faixa` é meia distância entre a maior e a menor semente."""
        novo = super().__new__(cls, media)
        novo.faixa = faixa
        return novo

    def texto(self) -> str:
        """A média e, se houver mais de uma semente, a faixa."""
        return decimal(self) + (f" ± {decimal(self.faixa)}" if self.faixa else "")


def media(perdas: Tensor) -> ComFaixa:
    """(sementes, caracteres) -> a média das sementes e a sua faixa, em nats por caractere."""
    por_semente = perdas.double().mean(-1)  # (sementes, caracteres) -> (sementes,)
    faixa = float(por_semente.max() - por_semente.min()) / 2
    return ComFaixa(float(por_semente.mean()), faixa)


def nomes(medidas: Medidas) -> list[str]:
    """Os nomes, na ordem em que foram medidos."""
    return list(dict.fromkeys(nome for nome, _ in medidas))


def apresentar(ficha: dict, sementes: tuple[int, ...]) -> str:
    """Uma frase com o que todos os modelos têm em comum."""
    m = ex.MEDIDAS
    return (
        f"Seis esquemas × {contado(len(sementes), 'semente')}: d {m.d}, {m.camadas} camadas, {m.cabecas} cabeças, e um "
        f"token de início no lugar do primeiro caractere; "
        f"{inteiro(ficha['passos'])} passos de {ficha['lote']} × {m.treino} caracteres de "
        f"{len(ficha['obras'])} romances ({inteiro(ficha['caracteres_de_treino'])} caracteres). Avaliação: "
        f"{inteiro(ficha['caracteres_avaliados'])} caracteres de um conto nosso, que nenhum viu."
    )


def quem_perde(no_treino: Quadro) -> str:
    """A frase sobre quem não vence o 5-grama, a partir do quadro de `contra_n_gramas`."""
    perdem = [linha[0] for linha in no_treino.linhas if linha[-2] == "não"]
    if perdem:
        return (
            f"não vence o 5-grama, neste tamanho e com este treino: {' nem '.join(perdem)}. O que vem "
            "adiante sobre quem perde se lê com essa ressalva."
        )
    corrido = [linha[0] for linha in no_treino.linhas if linha[-1] == "não"]
    return (
        "todos vencem o 5-grama lido nas mesmas janelas: usam mais que os quatro caracteres anteriores. "
        + (
            "O 5-grama de texto corrido não perde contexto nenhum no começo das janelas, e esse ainda ganha "
            f"de {' e de '.join(corrido)}."
            if corrido
            else "Vencem até o de texto corrido, que não perde contexto no começo das janelas."
        )
    )


def resumir(medidas: Medidas) -> str:
    """Quem piora e quem não piora de 128 a 1024, do melhor ao pior."""
    deltas = {nome: variacao(medidas, nome, ex.COMPRIMENTOS[-1]) for nome in nomes(medidas)}
    vivos = sorted((d, nome) for nome, d in deltas.items() if d is not None)
    lista = ", ".join(f"{nome} {'+' if d > 0 else ''}{decimal(d, 2)}" for d, nome in vivos)
    acaba = " A tabela aprendida acaba em 128." if "aprendido" in deltas else ""
    return f"de 128 a 1024 a perda muda assim (nats): {lista}.{acaba}"


def contra_n_gramas(medidas: Medidas, ficha: dict) -> Quadro:
    """Cada esquema no comprimento de treino, ao lado do 5-grama dos mesmos caracteres: lido nas
    mesmas janelas, sem ver a janela de trás, como os modelos; e em texto corrido."""
    L = ex.MEDIDAS.treino
    alvos = [ficha["perda_5_grama"][como] for como in (str(L), "corrido")]
    linhas = []
    for nome in nomes(medidas):
        perda = media(medidas[nome, L])
        # Só vence quem vence com todas as sementes: decide a pior.
        pior = float(medidas[nome, L].double().mean(-1).max())
        linhas.append([nome, perda, *alvos, *("sim" if pior < alvo else "não" for alvo in alvos)])
    colunas = {"esquema": str, "perda": ComFaixa.texto, "5-grama": decimal}
    colunas |= {"5-grama, texto corrido": decimal, "vence o 5-grama": str, "vence o corrido": str}
    return Quadro(f"No comprimento de treino ({L}), nats por caractere", colunas, linhas)


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


def efeito_da_janela(medidas: Medidas, bloco: int | None = None) -> dict[str, np.ndarray]:
    """{nome: (blocos,)}: o que a janela mais longa muda, bloco a bloco de posições, em nats.

    Compara os MESMOS caracteres, lidos em janelas de 1024 e de 128: o texto se cancela, e sobra o
    efeito de a janela ser longa. Até 128 dá zero, porque ali as duas leituras são uma só.

    Argumentos:
        bloco: posições por bloco (None vale o comprimento de treino).
    """
    longo, curto = ex.COMPRIMENTOS[-1], ex.MEDIDAS.treino
    bloco = bloco or curto
    saida = {}
    for nome in nomes(medidas):
        if (nome, longo) in medidas:
            diferenca = (medidas[nome, longo] - medidas[nome, curto]).double()
            # (sementes, caracteres) -> (sementes, janelas, blocos, bloco) -> (blocos,)
            por_bloco = diferenca.unflatten(-1, (-1, longo // bloco, bloco))
            saida[nome] = por_bloco.mean((0, 1, 3)).numpy()
    return saida


def quadro_do_efeito(medidas: Medidas) -> Quadro:
    """`efeito_da_janela` como tabela, um bloco por coluna."""
    curto = ex.MEDIDAS.treino
    colunas = [f"{b * curto}–{b * curto + curto - 1}" for b in range(ex.COMPRIMENTOS[-1] // curto)]
    linhas = [[nome, *efeito.tolist()] for nome, efeito in efeito_da_janela(medidas).items()]
    titulo = "Janela de 1024 menos janela de 128, nos mesmos caracteres, por posição (nats)"
    return Quadro(titulo, {"esquema": str} | dict.fromkeys(colunas, decimal), linhas)


def curvas_por_comprimento(medidas: Medidas) -> tuple[dict, dict]:
    """({nome: (x, y)}, {nome: meia largura}) para a figura."""
    series, faixas = {}, {}
    for nome in nomes(medidas):
        x = [L for L in ex.COMPRIMENTOS if (nome, L) in medidas]
        medias = [media(medidas[nome, L]) for L in x]
        series[nome] = np.array(x), np.array(medias, dtype=float)
        faixas[nome] = np.array([m.faixa for m in medias])
    return series, faixas


def curvas_do_efeito(medidas: Medidas, bloco: int) -> dict:
    """{nome: (meio de cada bloco, efeito)} para a figura."""
    efeitos = efeito_da_janela(medidas, bloco)
    return {nome: ((np.arange(len(y)) + 0.5) * bloco, y) for nome, y in efeitos.items()}


def variacao(medidas: Medidas, nome: str, L: int) -> float | None:
    """Perda em L menos a do treino, em nats (negativa: mais contexto ajudou); None se não existe."""
    if (nome, L) not in medidas:
        return None
    return media(medidas[nome, L]) - media(medidas[nome, ex.MEDIDAS.treino])


def ao_lado_do_publicado(medidas: Medidas, perto: float = 0.005) -> Quadro:
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


def o_que_nao_se_ve(medidas: Medidas) -> str:
    """A ressalva do fim: o que modelos deste tamanho não mostram, com a distância de quem não tem
    posição ao melhor dos outros."""
    no_treino = {nome: media(medidas[nome, ex.MEDIDAS.treino]) for nome in nomes(medidas)}
    frase = (
        "modelos deste tamanho mostram onde cada esquema quebra, e não o que um modelo grande faz: nada aqui "
        "mede lembrar um nome, achar um trecho ou raciocinar com contexto longo."
    )
    if len(no_treino) > 1 and "nenhum" in no_treino:
        sem = no_treino.pop("nenhum")
        melhor = min(no_treino, key=no_treino.__getitem__)
        frase += (
            f" Sem posição nenhuma, o nosso fica a {decimal(sem - no_treino[melhor])} nat do melhor ({melhor}); os "
            "grandes ficam bem perto dos outros (Haviv et al., 2022)."
        )
    return frase


def publicado(chave: str) -> Quadro:
    """Uma das outras tabelas de data/extrapolacao/publicados.json, como foi publicada."""
    tabela = json.loads((ex.PASTA / "publicados.json").read_text(encoding="utf-8"))[chave]
    linhas = [[p["esquema"], p["valor"]] for p in tabela["linhas"]]
    return Quadro(tabela["fonte"], {"esquema": str, "publicado": lambda x: decimal(x, 2)}, linhas)


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
    agora, linhas = anotar(medidas), []
    for nome, por_comprimento_ in agora.items():
        diferencas = [
            abs(valor - anotadas[nome][L][ex.SEMENTES.index(semente)])
            for L, valores in por_comprimento_.items()
            for semente, valor in zip(sementes, valores, strict=True)
        ]
        linhas.append(Conferencia(nome, max(diferencas), 0, 1e-3))
    return linhas
