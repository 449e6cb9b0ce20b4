"""Os números de referência: o que as lições mediram em execuções guardadas em data/referencia.

As apostilas e a conferência leem daqui, e nunca de um número digitado. Cada arquivo é o
resultado.json de uma lição num modelo, sem o que muda de uma execução para outra (hora, duração).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from nucleo import caminhos
from nucleo.erros import ErroDoUsuario

PASTA = caminhos.DADOS / "referencia"
# A hora, a duração e a lista de arquivos são da execução, e não da medida.
VOLATEIS = ("quando", "segundos", "arquivos")


def arquivo(licao: str, modelo: str, pasta: Path = PASTA) -> Path:
    """Onde mora a referência de uma lição rodada com um modelo."""
    return pasta / modelo / f"{licao}.json"


def guardar(resultado: dict, modelo: str, pasta: Path = PASTA) -> Path:
    """Guarda o conteúdo de um resultado.json como referência, inteiro ou nada; devolve o caminho."""
    destino = arquivo(resultado["licao"], modelo, pasta)
    destino.parent.mkdir(parents=True, exist_ok=True)
    fica = {k: v for k, v in resultado.items() if k not in VOLATEIS}
    provisorio = destino.with_name(destino.name + ".parcial")
    texto = json.dumps(fica, ensure_ascii=False, indent=1) + "\n"
    provisorio.write_text(texto, encoding="utf-8", newline="\n")
    os.replace(provisorio, destino)
    return destino


def ler(licao: str, modelo: str, pasta: Path = PASTA) -> dict:
    """A referência inteira: licao, versoes, modelo, resultados.

    Levanta:
        ErroDoUsuario: essa lição não foi guardada com esse modelo.
    """
    onde = arquivo(licao, modelo, pasta)
    try:
        return json.loads(onde.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ErroDoUsuario(
            f"Não há referência da lição {licao} com o modelo {modelo}.",
            f"Ela ficaria em data/referencia/{modelo}/{licao}.json.",
            f"Meça e guarde:  make referencia MODELO={modelo}",
        ) from None


def valor(licao: str, id_: str, modelo: str, de: str | None = None, pasta: Path = PASTA):
    """O valor do resultado `id_` da lição rodada com `modelo`.

    `de` é de quem é o número, quando não é do modelo pedido: uma lição rodada com o SmolLM2 também
    mede o mini.

    Levanta:
        ErroDoUsuario: a lição não foi guardada com esse modelo.
        KeyError: a lição não mede esse id, ou o mede em mais de um modelo e `de` não diz qual.
    """
    achados = [
        r for r in ler(licao, modelo, pasta)["resultados"]
        if r["id"] == id_ and de in (None, r["modelo"])
    ]  # fmt: skip
    if len(achados) != 1:
        raise KeyError(f"{licao} ({modelo}): {len(achados)} resultados com o id {id_!r}")
    return achados[0]["valor"]
