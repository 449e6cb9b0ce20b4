"""Os fatos do GPT-2 verdadeiro (data/gpt2_medido) e a conferência dos pesos contra eles."""

import csv
import json
from functools import lru_cache

import numpy as np

from nucleo.base import caminhos
from nucleo.base.caderno import Conferencia
from nucleo.modelos.fontes import Modelo

PASTA = caminhos.DADOS / "gpt2_medido"


@lru_cache(maxsize=1)
def fatos() -> dict:
    """O fatos.json: verificações, medidas e o que se mediu em wpe. Só leitura."""
    return json.loads((PASTA / "fatos.json").read_text(encoding="utf-8"))


def _csv(nome: str) -> np.ndarray:
    with (PASTA / nome).open(encoding="utf-8", newline="") as f:
        linhas = list(csv.reader(f))
    return np.array(linhas[1:], dtype=np.float64)


def defasagem() -> tuple[np.ndarray, np.ndarray]:
    """(distâncias, cosseno médio) de wpe, linhas 1 a 1022. Duas colunas (m,), m ≈ 1000."""
    dados = _csv("gpt2_wpe_defasagem.csv")
    return dados[:, 0].astype(int), dados[:, 1]


def cossenos_64() -> np.ndarray:
    """(64, 64): cossenos entre linhas de wpe, uma a cada 16."""
    return _csv("gpt2_wpe_cosseno_64.csv")


def componentes() -> tuple[np.ndarray, np.ndarray]:
    """((1024, 3), (1024,)): as três primeiras componentes de wpe e a norma de cada linha."""
    dados = _csv("gpt2_wpe_pca3.csv")
    return dados[:, 1:4], dados[:, 4]


def parece_gpt2_small(modelo: Modelo) -> bool:
    """True se o modelo se apresenta como o GPT-2 small: pelo nome, ou pela linha 0 de wpe.

    A linha 0 de wpe sozinha não basta para *ser* o GPT-2 (o distilgpt2 tem a mesma): basta
    para valer a pena conferir, e a conferência olha wte também.
    """
    if modelo.wte.shape != (50257, 768) or modelo.wpe is None:
        return False
    if modelo.do_hub:
        return True
    v = next(v for v in fatos()["verificacoes"] if v["id"] == "wpe_linha_0")
    return bool(np.abs(modelo.wpe[0, : len(v["valores"])] - v["valores"]).max() <= v["tolerancia"])


def conferir_pesos(modelo: Modelo) -> list[Conferencia]:
    """Linhas de wte e wpe contra os valores publicados: a maior diferença de cada trecho.

    Um trecho que o modelo nem tem (outra forma) mede infinito, e não confere.
    """
    tabelas, linhas = {"wte": modelo.wte, "wpe": modelo.wpe}, []
    for v in fatos()["verificacoes"]:
        tabela, esperado = tabelas[v["tabela"]], np.array(v["valores"])
        diferenca = float("inf")
        if tabela is not None and v["linha"] < len(tabela) and v["de"] + len(esperado) <= modelo.d:
            trecho = tabela[v["linha"], v["de"] : v["de"] + len(esperado)]
            diferenca = float(np.abs(trecho - esperado).max())
        linhas.append(Conferencia(v["o_que"], diferenca, 0.0, v["tolerancia"]))
    return linhas
