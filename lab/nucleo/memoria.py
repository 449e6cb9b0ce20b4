"""O que a biblioteca já respondeu, guardado em disco: a mesma pergunta não se faz duas vezes.

Só o transformers sabe o que um modelo inteiro calcula. Perguntar a ele custa importar a biblioteca e
montar o modelo, várias vezes o resto da lição; e a resposta não muda enquanto não mudarem o arquivo
de pesos, as versões e a pergunta. Então ela fica no cache da pessoa, com a data e as versões de
quando foi dada, e quem a usa diz que é lembrança.

Cada resposta é um safetensors: as matrizes são tensores, o resto é JSON nos metadados. Nada é
executado ao ler, e um arquivo que não se entende é o mesmo que não ter arquivo.
"""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from nucleo import caminhos, modelos
from nucleo.modelos import Modelo

QUANTAS = 32  # respostas que ficam; as mais antigas saem (cada uma tem uns MB de logits)
_BIBLIOTECAS = ("transformers", "torch")


@dataclass(frozen=True)
class Resposta:
    """`valor` é o que a pergunta devolveu; `quando` e `versoes`, de que dia e de que bibliotecas;
    `lembrada` é False se a pergunta acabou de ser feita."""

    valor: dict
    quando: str
    versoes: dict[str, str]
    lembrada: bool


class Memoria:
    """As respostas guardadas, na pasta `respostas` do cache (`LAB_RESPOSTAS` muda o lugar). Com
    `ao_vivo`, pergunta sempre, e guarda a resposta nova."""

    def __init__(self, ao_vivo: bool = False, pasta: Path | None = None):
        self._ao_vivo = ao_vivo
        escolhida = os.environ.get("LAB_RESPOSTAS")
        self._pasta = pasta or (Path(escolhida) if escolhida else caminhos.cache() / "respostas")

    def perguntar(
        self, pergunta: Callable[..., dict], *argumentos, modelo: Modelo | None = None
    ) -> Resposta:
        """A resposta de `pergunta(modelo, *argumentos)`, ou `pergunta(*argumentos)` sem modelo.

        `pergunta` é uma função de módulo que devolve {nome: matriz, ou algo que o JSON guarde};
        os argumentos também cabem em JSON. O que ela levantar passa adiante, e não fica guardado.
        Sem onde gravar, responde do mesmo jeito.
        """
        versoes = {b: version(b) for b in _BIBLIOTECAS}
        arquivo = (
            self._pasta / f"{pergunta.__name__}-{_chave(pergunta, argumentos, modelo)}.safetensors"
        )
        if not self._ao_vivo and (lembrada := _ler(arquivo, versoes)):
            return lembrada
        valor = pergunta(*((modelo,) if modelo else ()), *argumentos)
        resposta = Resposta(valor, time.strftime("%Y-%m-%d %H:%M"), versoes, False)
        with contextlib.suppress(OSError):
            _gravar(arquivo, resposta)
        return resposta


def _chave(pergunta: Callable, argumentos: tuple, modelo: Modelo | None) -> str:
    # Tudo de que a resposta depende: a pergunta e quem carrega o modelo (o código dos dois), os
    # argumentos, as versões e o arquivo de pesos.
    partes = [pergunta.__name__, argumentos, {b: version(b) for b in _BIBLIOTECAS}]
    fontes = {pergunta.__code__.co_filename, modelos.__file__}
    partes += [hashlib.sha256(Path(f).read_bytes()).hexdigest() for f in sorted(fontes)]
    if modelo is not None and modelo.pasta is not None:
        pesos = sorted(modelo.pasta.glob("*.safetensors"))
        marcas = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in pesos]
        config = json.dumps(modelo.config, sort_keys=True, default=str)
        partes += [str(modelo.pasta.resolve()), marcas, config, modelo.cabeca]
    return hashlib.sha256(json.dumps(partes, default=str).encode()).hexdigest()[:24]


def _selo(dito: dict, matrizes: dict[str, np.ndarray]) -> str:
    # Um bit trocado no disco passaria por resposta: o selo o acusa.
    soma = hashlib.sha256(json.dumps(dito, sort_keys=True).encode())
    for nome in sorted(matrizes):
        m = matrizes[nome]
        soma.update(f"{nome} {m.dtype} {m.shape} ".encode() + m.tobytes())
    return soma.hexdigest()


def _ler(arquivo: Path, versoes: dict[str, str]) -> Resposta | None:
    # Cortado, de outro formato, sem permissão: pergunta-se de novo, e o arquivo é trocado.
    if not arquivo.is_file():
        return None
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(arquivo, framework="np") as aberto:
            metadados = aberto.metadata()
            matrizes = {nome: aberto.get_tensor(nome) for nome in aberto.keys()}  # noqa: SIM118
        dito = json.loads(metadados["resposta"])
        if metadados["selo"] != _selo(dito, matrizes):
            return None
        return Resposta(dito["valor"] | matrizes, dito["quando"], versoes, True)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError):
        return None


def _gravar(arquivo: Path, resposta: Resposta) -> None:
    from safetensors.numpy import save

    matrizes = {
        n: np.ascontiguousarray(v) for n, v in resposta.valor.items() if isinstance(v, np.ndarray)
    }
    # Pelo JSON e de volta: o selo é do que se vai ler, e não de tuplas que viram listas.
    resto = {n: v for n, v in resposta.valor.items() if n not in matrizes}
    dito = json.loads(json.dumps({"valor": resto, "quando": resposta.quando}))
    metadados = {"resposta": json.dumps(dito), "selo": _selo(dito, matrizes)}
    conteudo = save(matrizes, metadata=metadados)
    arquivo.parent.mkdir(parents=True, exist_ok=True)
    # Ao lado e trocando o nome no fim: quem lê ao mesmo tempo vê a antiga ou a nova, inteiras.
    numero, parcial = tempfile.mkstemp(prefix=".parcial-", dir=arquivo.parent)
    try:
        with os.fdopen(numero, "wb") as f:
            f.write(conteudo)
        os.replace(parcial, arquivo)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(parcial)
        raise
    _arrumar(arquivo.parent)


def _arrumar(pasta: Path) -> None:
    # As respostas de modelos e versões que já se foram não enchem o disco.
    guardadas = sorted(pasta.glob("*.safetensors"), key=lambda p: p.stat().st_mtime, reverse=True)
    mortas = [p for p in pasta.glob(".parcial-*") if p.stat().st_mtime < time.time() - 3600]
    for velha in [*guardadas[QUANTAS:], *mortas]:
        with contextlib.suppress(OSError):
            velha.unlink()
