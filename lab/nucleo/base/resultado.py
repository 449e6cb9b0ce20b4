"""O resultado.json de uma lição, lido com desconfiança: só vale inteiro e com a forma certa.

Um arquivo de outputs/ pode ter sido cortado ou mexido à mão. Quem o lê (a conferência, a página, as
referências) pergunta aqui se ele serve, e nenhum deles confere a forma outra vez.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


def abrir(arquivo: Path) -> dict:
    """O conteúdo de um resultado.json. Todo campo é opcional; os que vierem têm a forma certa.

    Levanta:
        OSError: o arquivo falta ou não se lê.
        ValueError: não é JSON, ou algum campo não é o que uma lição escreve (a mensagem diz qual).
    """
    if arquivo.exists() and not arquivo.is_file():  # abrir um FIFO esperaria para sempre
        raise OSError(f"{arquivo.name} não é um arquivo")
    try:
        dados = json.loads(arquivo.read_text(encoding="utf-8"))
        # Meio par UTF-16 ("\ud800") passa pelo JSON, mas não se escreve em UTF-8.
        json.dumps(dados, ensure_ascii=False).encode("utf-8")
        if not isinstance(dados, dict):
            raise ValueError("não é um objeto JSON")
        for campo, serve in _FORMA.items():
            if campo in dados and not serve(dados[campo]):
                raise ValueError(f"o campo «{campo}» não tem a forma certa")
    except RecursionError:
        raise ValueError("o JSON tem níveis demais") from None
    return dados


def ler(arquivo: Path) -> dict | None:
    """O mesmo que `abrir`; None se o arquivo falta ou não serve."""
    try:
        return abrir(arquivo)
    except (OSError, ValueError):
        return None


def e_numero(valor) -> bool:
    """True para int e float; um bool não é número aqui."""
    return isinstance(valor, (int, float)) and not isinstance(valor, bool)


def e_valor(valor) -> bool:
    """True se uma regra ou uma frase pode usar o valor: um número, um texto ou uma lista deles."""
    return valor is not None and _simples(valor)


# --- a forma de cada campo ---------------------------------------------------------------


def _texto(valor) -> bool:
    return isinstance(valor, str)


def _quantia(valor) -> bool:
    return e_numero(valor) and 0 <= valor < 1e12  # NaN e infinito não passam


def _lista_de(serve: Callable) -> Callable:
    return lambda valor: isinstance(valor, list) and all(map(serve, valor))


def _simples(valor) -> bool:
    # O que uma medida pode valer: número, texto, sim ou não, ausente, ou uma lista disso.
    return valor is None or isinstance(valor, (bool, int, float, str)) or _lista_de(_simples)(valor)


def _medido(valor) -> bool:
    return (
        isinstance(valor, dict)
        and _texto(valor.get("id"))
        and _texto(valor.get("modelo", ""))
        and isinstance(valor.get("veredito"), (str, type(None)))
        and _simples(valor.get("valor"))
    )


def _modelo(valor) -> bool:
    nomes = ("nome", "origem", "motivo")
    return isinstance(valor, dict) and all(_texto(valor.get(n, "")) for n in nomes)


def _tabela(valor) -> bool:
    if not isinstance(valor, dict) or not _lista_de(_texto)(valor.get("colunas")):
        return False
    linhas = valor.get("linhas")
    return _lista_de(_simples)(linhas) and all(
        isinstance(x, list) and len(x) == len(valor["colunas"]) for x in linhas
    )


_FORMA: dict[str, Callable] = {
    "licao": _texto,
    "comando": _texto,
    "quando": _texto,
    "segundos": _quantia,
    "versoes": lambda v: isinstance(v, dict),
    "modelo": _modelo,
    "conferencias": lambda v: _quantia(v) and isinstance(v, int),
    "nao_conferem": _lista_de(_texto),
    "arquivos": _lista_de(_texto),
    "resultados": _lista_de(_medido),
    "tabelas": lambda v: isinstance(v, dict) and all(map(_tabela, v.values())),
}
