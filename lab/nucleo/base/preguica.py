"""Importar só na hora do uso: quem pede uma seção sem figuras não espera o matplotlib."""

import importlib.util
import sys
from types import ModuleType


def modulo(nome: str) -> ModuleType:
    """O módulo `nome`, que só é carregado quando alguém pede o primeiro atributo dele.

    Erros: `ModuleNotFoundError` já aqui, se ele não existir.
    """
    if nome in sys.modules:
        return sys.modules[nome]
    ficha = importlib.util.find_spec(nome)
    if ficha is None:
        raise ModuleNotFoundError(f"não existe um módulo {nome}", name=nome)
    ficha.loader = importlib.util.LazyLoader(ficha.loader)
    preguicoso = importlib.util.module_from_spec(ficha)
    sys.modules[nome] = preguicoso
    ficha.loader.exec_module(preguicoso)  # só arma a preguiça; o código roda no primeiro uso
    return preguicoso
