"""Os pacotes do requirements.txt: o que se pede, o que está instalado, e se serve."""

import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

from nucleo.base import caminhos


@dataclass(frozen=True)
class Pedido:
    """Um pacote pedido: `versao` é a instalada, ou None; `serve` diz se ela cabe na `faixa`."""

    nome: str
    faixa: str
    versao: str | None
    serve: bool


def pedidos() -> list[Pedido]:
    """Cada pacote que este sistema e este Python pedem, na ordem do arquivo."""
    feitos = []
    for linha in _linhas(caminhos.RAIZ / "requirements.txt"):
        lido = _ler_pedido(linha)
        if lido.marker and not lido.marker.evaluate():
            continue  # só se pede em outro sistema, ou em outro Python
        try:
            versao = metadata.version(lido.name)
        except metadata.PackageNotFoundError:
            feitos.append(Pedido(lido.name, str(lido.specifier), None, False))
            continue
        # "2.13.0+cpu" é a 2.13.0 montada para CPU: a etiqueta depois do + não conta.
        serve = lido.specifier.contains(versao.split("+")[0], prereleases=True)
        feitos.append(Pedido(lido.name, str(lido.specifier), versao, serve))
    return feitos


def _linhas(arquivo: Path) -> list[str]:
    # Uma linha por pacote; o que vem depois de # é o porquê.
    linhas = arquivo.read_text(encoding="utf-8").splitlines()
    return [x for x in (linha.split("#")[0].strip() for linha in linhas) if x]


def _ler_pedido(pedido: str):
    try:
        from packaging.requirements import Requirement
    except ImportError:
        try:
            # Antes de instalar os pacotes só há o pip, que traz o mesmo módulo dentro dele.
            from pip._vendor.packaging.requirements import Requirement
        except ImportError:
            return _sem_packaging(pedido)
    return Requirement(pedido)


def _sem_packaging(pedido: str):
    # Um Python sem pip não tem pacote nenhum: basta saber o nome e o que se pede. Uma linha com
    # condição ("; python_version …") não se julga sem o packaging, e fica para depois dele.
    nome, faixa = re.match(r"([\w.-]+)([^;]*)", pedido).groups()
    condicional = SimpleNamespace(evaluate=lambda: False) if ";" in pedido else None
    return SimpleNamespace(name=nome, specifier=faixa.strip(), marker=condicional)
