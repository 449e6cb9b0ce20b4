"""As frases e os trechos corridos com que se olham as posições (data/posicoes/textos.json)."""

import json
from functools import cache

from nucleo.base import caminhos


@cache
def _textos() -> dict:
    return json.loads((caminhos.DADOS / "posicoes" / "textos.json").read_text(encoding="utf-8"))


def frase() -> tuple[list[str], int, int]:
    """As palavras da frase do capítulo, e os dois lugares que trocam de palavra."""
    return _textos()["frase"], *_textos()["troca"]


def ordens(lingua: str) -> list[str]:
    """A mesma frase em duas ordens, numa língua ("pt" ou "en")."""
    return _textos()[f"ordens_{lingua}"]


def trecho(lingua: str) -> str:
    """O trecho corrido de uma língua ("pt" ou "en")."""
    de = _textos()[lingua]
    if "texto" in de:
        return de["texto"]
    return (caminhos.DADOS / de["arquivo"]).read_text(encoding="utf-8")[: de["caracteres"]]
