"""Os números de referência: o que as lições mediram em execuções guardadas em data/referencia.

As apostilas e a conferência leem daqui, e nunca de um número digitado. Cada arquivo é o
resultado.json de uma lição num modelo, sem o que muda de uma execução para outra (hora, duração).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from nucleo.base import arquivos, caminhos
from nucleo.base import resultado as formas
from nucleo.base.erros import ErroDoUsuario

PASTA = caminhos.DADOS / "referencia"
PRINCIPAL = "smollm2"  # quem responde na prosa das apostilas; os outros têm coluna
# A hora, a duração, a pasta e a lista de arquivos são da execução, e não da medida.
VOLATEIS = ("quando", "segundos", "arquivos", "comando")
RELOGIO = "milissegundos"  # uma tabela com esta coluna mediu a máquina, e não o modelo


def arquivo(licao: str, modelo: str) -> Path:
    """Onde mora a referência de uma lição rodada com um modelo."""
    return PASTA / modelo / f"{licao}.json"


def guardar(resultado: dict, modelo: str) -> Path:
    """Guarda o conteúdo de um resultado.json como referência, inteiro ou nada; devolve o caminho."""
    fica = {k: v for k, v in resultado.items() if k not in VOLATEIS}
    tabelas = resultado.get("tabelas", {})
    fica["tabelas"] = {k: t for k, t in tabelas.items() if RELOGIO not in t["colunas"]}
    texto = _uma_linha_por_linha(json.dumps(fica, ensure_ascii=False, indent=1)) + "\n"
    return arquivos.gravar(arquivo(resultado["licao"], modelo), texto.encode("utf-8"))


def _uma_linha_por_linha(texto: str) -> str:
    # Uma linha de tabela por linha do arquivo: o git mostra o que mudou. Uma cadeia em JSON nunca
    # tem quebra de linha crua, então só se mexe em espaço entre valores.
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s*\]", lambda m: "[" + re.sub(r"\n\s+", " ", m[1]) + "]", texto
    )


def ler(licao: str, modelo: str = PRINCIPAL) -> dict:
    """A referência inteira: licao, versoes, modelo, resultados, tabelas.

    Levanta:
        ErroDoUsuario: essa lição não foi guardada com esse modelo.
    """
    try:
        return formas.abrir(arquivo(licao, modelo))
    except FileNotFoundError:
        raise ErroDoUsuario(
            f"Não há referência da lição {licao} com o modelo {modelo}.",
            f"Ela ficaria em data/referencia/{modelo}/{licao}.json.",
            f"Meça e guarde:  make referencia MODELO={modelo}",
        ) from None


def valor(licao: str, id_: str, modelo: str = PRINCIPAL, de: str | None = None):
    """O valor do resultado `id_` da lição rodada com `modelo`.

    `de` é de quem é o número, quando não é do modelo pedido: uma lição rodada com o SmolLM2 também
    mede o mini.

    Levanta:
        ErroDoUsuario: a lição não foi guardada com esse modelo.
        KeyError: a lição não mede esse id, ou o mede em mais de um modelo e `de` não diz qual.
    """
    achados = [
        r for r in ler(licao, modelo)["resultados"]
        if r["id"] == id_ and de in (None, r["modelo"])
    ]  # fmt: skip
    if len(achados) != 1:
        raise KeyError(f"{licao} ({modelo}): {len(achados)} resultados com o id {id_!r}")
    return achados[0]["valor"]


def tabela(licao: str, id_: str, modelo: str = PRINCIPAL) -> list[dict]:
    """As linhas de uma tabela da lição rodada com `modelo`, cada uma {coluna: valor}.

    Levanta:
        ErroDoUsuario: a lição não foi guardada com esse modelo.
        KeyError: a lição não tem essa tabela.
    """
    dados = ler(licao, modelo)["tabelas"][id_]
    return [dict(zip(dados["colunas"], linha, strict=True)) for linha in dados["linhas"]]
