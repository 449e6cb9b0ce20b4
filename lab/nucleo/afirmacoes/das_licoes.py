"""Os números que as lições já mediram, achados pelo id: em outputs/ ou, se a lição não rodou aqui, na referência."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path

from nucleo.afirmacoes import guardados
from nucleo.base import caminhos, resultado

# De onde veio: da última execução da lição nesta máquina, ou da guardada em data/referencia.
OUTPUTS, REFERENCIA = "outputs", "referência"


class NaoMedido(Exception):
    """A medida não se aplica a este modelo, ou ninguém a fez ainda. `str` diz por quê."""


# Opções que não mudam o que a lição mede: com qualquer outra, o resultado é de outra medida.
_INOFENSIVAS = {"--modelo": 1, "--saida": 1, "--sem-graficos": 0, "--codigo": 0}


def mesmas_medidas(comando: str, permitidas: tuple[str, ...] = ()) -> bool:
    """True se o comando gravado no resultado.json rodou a lição inteira, com as medidas padrão."""
    opcoes = shlex.split(comando)[2:]
    while opcoes:
        nome, _, colado = opcoes.pop(0).partition("=")
        if nome not in permitidas and nome not in _INOFENSIVAS:
            return False
        del opcoes[: 0 if colado else _INOFENSIVAS.get(nome, 1)]
    return True


class Resultados:
    """O que as lições já mediram: primeiro em `saidas` (None: não olha), depois nas referências."""

    def __init__(
        self, modelo: str, saidas: Path | None = caminhos.SAIDAS, guardadas: Path = guardados.PASTA
    ):
        self._modelo, self._saidas, self._guardadas = modelo, saidas, guardadas
        self._ler = cache(resultado.ler)

    def _fontes(self, licao: str):
        if self._saidas is not None:
            yield OUTPUTS, self._saidas / licao / "resultado.json"
        # A referência do modelo de hoje; as outras servem ao que não depende do modelo.
        outros = sorted(p.name for p in self._guardadas.glob("[!.]*") if p.name != self._modelo)
        for nome in [self._modelo, *outros]:
            yield REFERENCIA, self._guardadas / nome / f"{licao}.json"

    def procurar(
        self, licao: str, ids: str | list[str], dono: str | None, campo: str = "valor",
        opcoes: tuple[str, ...] = (),
    ) -> tuple[object, str, str]:  # fmt: skip
        """(valor, modelo, origem) do primeiro resultado medido em `dono` (None: em qualquer).

        `ids` é o id do resultado, ou vários: uma lição que fala inglês e português mede palavras
        diferentes, e vale o primeiro que houver.

        Levanta:
            NaoMedido: nem outputs/ nem as referências têm esse número desse modelo.
        """
        ids = [ids] if isinstance(ids, str) else ids
        rodou = False
        for origem, arquivo in self._fontes(licao):
            dados = self._ler(arquivo)
            if dados is None or not mesmas_medidas(dados.get("comando", ""), opcoes):
                continue
            rodou |= dono == dados.get("modelo", {}).get("nome")
            for r in dados["resultados"]:
                if r["id"] in ids and dono in (None, r["modelo"]) and r.get(campo) is not None:
                    return r[campo], r["modelo"], origem
        de = f" no {dono}" if dono else ""
        if rodou:  # rodar de novo não ajudaria
            raise NaoMedido(f"a lição {licao} não tem como medir isto{de}")
        raise NaoMedido(f"a lição {licao} ainda não mediu isto{de}: rode  python lab/{licao}.py")
