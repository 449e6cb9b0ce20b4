"""As opções da linha de comando, em português: o analisador e os tipos que as lições usam."""

import argparse
import difflib
import re
from collections.abc import Callable

from nucleo.base.erros import ErroDoUsuario

_EM_PORTUGUES = {
    "usage: ": "uso: ",
    "options": "opções",
    "positional arguments": "argumentos",
    "show this help message and exit": "mostra esta ajuda e sai",
    "expected one argument": "falta o valor",
    "expected at least one argument": "falta pelo menos um valor",
    "expected %s argument": "espera %s valor",
    "expected %s arguments": "espera %s valores",
    "unrecognized arguments: %s": "não conheço: %s",
    "invalid %(type)s value: %(value)r": "valor inválido: %(value)r (%(type)s)",
    "invalid choice: %(value)r (choose from %(choices)s)": "%(value)r não é uma opção; escolha entre %(choices)s",
    "the following arguments are required: %s": "falta dizer: %s",
    "not allowed with argument %s": "não combina com %s",
    "ambiguous option: %(option)s could match %(matches)s": "%(option)s pode ser %(matches)s: escreva inteiro",
    "ignored explicit argument %r": "não recebe valor (veio %r)",
}


def _traduzir(texto: str) -> str:
    return _EM_PORTUGUES.get(texto, texto)


class Analisador(argparse.ArgumentParser):
    """O argparse com as mensagens em português e o formato de erro da casa.

    `pasta` é onde está o programa, para a dica que manda ver a ajuda.
    """

    def __init__(self, *a, pasta: str = "lab", **k):
        self.pasta = pasta
        # O argparse busca as próprias frases por esta função; é o único lugar de traduzi-las.
        argparse._ = _traduzir
        argparse.ngettext = lambda um, varios, n: _traduzir(um if n == 1 else varios)
        k.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*a, **k)

    def error(self, message: str):
        """Uma mensagem do argparse como `ErroDoUsuario`, com a opção mais parecida na dica."""
        message = message.removeprefix("argument ")  # o Python 3.10 não deixa traduzir esta
        sugestao = f"Veja as opções com:  python {self.pasta}/{self.prog} --help"
        desconhecida = re.search(r"não conheço: (--[\w-]+)", message)
        if desconhecida:
            todas = [o for acao in self._actions for o in acao.option_strings]
            perto = difflib.get_close_matches(desconhecida[1], todas, 1)
            if perto:
                sugestao = f"Quis dizer {perto[0]}?  {sugestao}"
        raise ErroDoUsuario("Não entendi a linha de comando.", message, sugestao)


def inteiro_entre(menor: int, maior: int) -> Callable[[str], int]:
    """Um tipo de argparse: inteiro de `menor` a `maior`, com mensagem em português."""

    def tipo(texto: str) -> int:
        if re.fullmatch(r"\s*[+-]?\d+\s*", texto) and menor <= int(texto) <= maior:
            return int(texto)
        esperava = f"esperava um número inteiro de {menor} a {maior}"
        raise argparse.ArgumentTypeError(f"{esperava}, e veio {texto!r}")

    return tipo


def numero_da_secao(texto: str) -> int | str:
    return int(texto) if texto.isdecimal() else texto
