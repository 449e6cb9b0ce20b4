"""O resultado.json que uma lição gravou (`base.caderno`), lido de volta."""

import json
from pathlib import Path


def abrir(arquivo: Path) -> dict:
    """O conteúdo de um resultado.json.

    Levanta:
        OSError: o arquivo falta ou não se lê.
        ValueError: foi cortado, e já não é um objeto JSON.
    """
    dados = json.loads(arquivo.read_text(encoding="utf-8"))
    if not isinstance(dados, dict):
        raise ValueError("não é um objeto JSON")
    return dados


def ler(arquivo: Path) -> dict | None:
    """O mesmo que `abrir`; None se o arquivo falta ou foi cortado: a lição ainda não rodou."""
    try:
        return abrir(arquivo)
    except (OSError, ValueError):
        return None
