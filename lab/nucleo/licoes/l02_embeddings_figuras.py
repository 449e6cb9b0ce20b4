"""As figuras da lição 02. Cada função recebe o que já foi medido e devolve a Figure."""

import numpy as np

from nucleo.base import graficos
from nucleo.base.unidades import decimal, inteiro
from nucleo.contas import arquitetura, tabela_posicoes
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos import gpt2_medido, pontas
from nucleo.modelos.fontes import Modelo


def analogias(conjunto: exp.Conjunto, nome: str):
    """Acertos por categoria, linhas cruas: com tudo permitido e sem as entradas."""
    placares = [p for p in conjunto.cruas if p.cobertas]
    linhas = exp.placar("", placares).linhas
    nomes = [f"{p.nome} ({inteiro(p.cobertas)})" for p in placares]
    series = {
        "tudo permitido": [100 * x[3] for x in linhas],
        "sem as entradas": [100 * x[4] for x in linhas],
    }
    titulo = f"{nome}: analogias certas (linhas cruas)"
    return graficos.barras(nomes, series, titulo, "% das perguntas que cabem")


def regua(r: exp.Regua, nome: str):
    """As palavras ao longo da direção; vazadas, as que fizeram a direção."""
    baixo, alto = r.pontas
    titulo = f"{nome}: palavras na direção do {r.direcao}"
    eixo = f"← {baixo}      projeção      {alto} →"
    palavras, valores, usada = zip(*r.lugares, strict=True)
    return graficos.regua(palavras, np.array(valores), usada, titulo, eixo)


def mapa_de_posicoes(nome: str, cossenos: np.ndarray):
    """Todas as posições contra todas, do modelo que tem wpe."""
    titulo = f"{nome}: cosseno entre posições"
    return graficos.mapa_de_calor(cossenos, titulo, "posição", "posição")


def curva_de_posicoes(nome: str, wpe: np.ndarray):
    """As posições em três componentes principais."""
    curva = tabela_posicoes.pca(wpe)  # (n, d) -> (n, 3)
    return graficos.helice(curva.pontos, curva.fracao, f"{nome}: wpe em três componentes")


def defasagem(dono: Modelo | None):
    """A semelhança contra a distância: o GPT-2 medido e, se houver, o modelo de hoje."""
    curvas = {"GPT-2, medido (linhas 1 a 1022)": gpt2_medido.defasagem()}
    if dono is not None and dono.n_ctx > 8:  # menos que isso é um ponto, não uma curva
        y = exp.curva_de_defasagem(pontas.tabela_de_posicoes(dono, dono.d))
        # As últimas distâncias têm um ou dois pares: ruído, não curva.
        n = int(0.95 * len(y))
        curvas[f"{dono.nome}, medido agora"] = (np.arange(1, n), y[1:n])
    titulo = "Semelhança entre posições, por distância"
    return graficos.curvas(curvas, titulo, "distância (em tokens)", "cosseno médio", zero=True)


def gpt2_mapa():
    """O mapa de posições do GPT-2 verdadeiro, uma linha a cada 16."""
    titulo = "GPT-2, medido: cosseno entre posições (1 linha a cada 16)"
    return graficos.mapa_de_calor(
        gpt2_medido.cossenos_64(), titulo, "posição", "posição", extensao=1024
    )


def gpt2_helice():
    """A hélice do GPT-2 verdadeiro, sem a linha 0 (fora da curva) nem a 1023 (sem treino)."""
    pontos, _ = gpt2_medido.componentes()  # (1024, 3)
    titulo = "GPT-2, medido: a hélice de wpe (linhas 1 a 1022)"
    acumulada = gpt2_medido.fatos()["wpe_medido"]["pca_acumulada"][:3]
    return graficos.helice(pontos[1:1023], np.diff([0, *acumulada]), titulo, inicio=1)


def ortogonais(gauss: np.ndarray, acaso: np.ndarray, modelo: Modelo):
    """Vetores sorteados contra linhas de wte: onde ficam os cossenos."""
    grupos = {"vetores sorteados": gauss, f"linhas de wte ({modelo.nome})": acaso}
    desvio = modelo.d**-0.5
    titulo = f"{modelo.nome}: cosseno entre dois vetores de {modelo.d} dimensões"
    marcas = {f"±1/√d = ±{decimal(desvio)}": (desvio, -desvio)}
    return graficos.histogramas(grupos, titulo, "cosseno", marcas)


def pecas(contas: dict[str, dict[str, int]]):
    """Onde moram os parâmetros dos quatro GPT-2, em partes de 100. `contas`: {tamanho: {peça: n}}."""
    # A LayerNorm não chega a 0,1 %: na figura seria um nome sem barra.
    partes = {
        p if p in ("wte", "wpe") else f"{p}, todas as camadas": [
            100 * c[p] / sum(c.values()) for c in contas.values()
        ]
        for p in arquitetura.PECAS
        if p != "LayerNorm"
    }
    titulo = "Onde moram os parâmetros"
    return graficos.pilhas(list(contas), partes, titulo, "% do modelo (cabeça amarrada)")
