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
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from nucleo.base import caminhos
from nucleo.modelos import fontes as modelos
from nucleo.modelos import tensores
from nucleo.modelos.fontes import Modelo

QUANTAS = 32  # respostas que ficam; as menos usadas saem (cada uma tem uns MB de logits)
_PARCIAL = ".resposta-parcial-"
_NOSSA = re.compile(r"perguntar_\w+-[0-9a-f]{24}\.safetensors")  # só isto se apaga
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
        escolhida = os.path.expanduser(os.environ.get("LAB_RESPOSTAS", ""))
        self._pasta = pasta or (Path(escolhida) if escolhida else caminhos.cache() / "respostas")

    def perguntar(
        self, pergunta: Callable[..., dict], *argumentos, modelo: Modelo | None = None
    ) -> Resposta:
        """A resposta de `pergunta(modelo, *argumentos)`, ou `pergunta(*argumentos)` sem modelo.

        `pergunta` é uma função de módulo, `perguntar_…`, que devolve {nome: matriz, ou algo que o
        JSON guarde}; os argumentos também cabem em JSON. O que ela levantar passa adiante, e não fica
        guardado. Sem onde gravar, responde do mesmo jeito.
        """
        versoes = {b: version(b) for b in _BIBLIOTECAS}
        arquivo = self._pasta / f"{pergunta.__name__}-{_chave(pergunta, argumentos, modelo)}"
        arquivo = arquivo.with_name(arquivo.name + ".safetensors")
        if not self._ao_vivo and (lembrada := _ler(arquivo, versoes)):
            return lembrada
        valor = pergunta(*((modelo,) if modelo else ()), *argumentos)
        resposta = Resposta(valor, time.strftime("%Y-%m-%d %H:%M"), versoes, False)
        with contextlib.suppress(OSError):
            _gravar(arquivo, resposta)
        return resposta


def _chave(pergunta: Callable, argumentos: tuple, modelo: Modelo | None) -> str:
    # Tudo de que a resposta depende: a pergunta e quem carrega o modelo (o código dos dois), os
    # argumentos, as versões, e os pesos: onde cada tensor está, e a marca de cada arquivo. A marca leva
    # o número do arquivo e a hora da última mudança, que uma cópia com a data preservada não repete.
    partes = [pergunta.__name__, argumentos, {b: version(b) for b in _BIBLIOTECAS}]
    fontes = {pergunta.__code__.co_filename, modelos.__file__}
    partes += [hashlib.sha256(Path(f).read_bytes()).hexdigest() for f in sorted(fontes)]
    if modelo is not None and modelo.pasta is not None:
        cabecalho = tensores.cabecalho_da_pasta(modelo.pasta)
        pesos = sorted({t.arquivo.resolve() for t in cabecalho.values()})
        onde = sorted((n, str(t.arquivo), t.tipo, t.forma, t.inicio) for n, t in cabecalho.items())
        config = json.dumps(modelo.config, sort_keys=True, default=str)
        partes += [onde, [(str(p), *_marca(p.stat())) for p in pesos], config, modelo.cabeca]
    return hashlib.sha256(json.dumps(partes, default=str).encode()).hexdigest()[:24]


def _marca(s: os.stat_result) -> tuple[int, ...]:
    return s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_dev, s.st_ino


def _selo(dito: dict, matrizes: dict[str, np.ndarray]) -> str:
    # Um bit trocado no disco passaria por resposta: o selo o acusa.
    soma = hashlib.sha256(json.dumps(dito, sort_keys=True).encode())
    for nome in sorted(matrizes):
        m = matrizes[nome]
        soma.update(f"{nome} {m.dtype} {m.shape} ".encode() + m.tobytes())
    return soma.hexdigest()


def _ler(arquivo: Path, versoes: dict[str, str]) -> Resposta | None:
    # Cortado, de outro formato, sem permissão: pergunta-se de novo, e o arquivo é trocado.
    from safetensors import safe_open

    try:
        if not arquivo.is_file():
            return None
        with safe_open(arquivo, framework="np") as aberto:
            metadados = aberto.metadata()
            matrizes = {nome: aberto.get_tensor(nome) for nome in aberto.keys()}  # noqa: SIM118
        dito = json.loads(metadados["resposta"])
        if metadados["selo"] != _selo(dito, matrizes):
            return None
        lembrada = Resposta(dito["valor"] | matrizes, dito["quando"], versoes, True)
    except Exception:  # lixo pode estourar de muitos jeitos, e nenhum deles é da lição
        return None
    with contextlib.suppress(OSError):
        os.utime(arquivo)  # usada agora: não é das que saem primeiro
    return lembrada


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
    parcial = arquivo.with_name(_PARCIAL + secrets.token_hex(8))
    try:
        with parcial.open("xb") as f:
            f.write(conteudo)
        os.replace(parcial, arquivo)
    except BaseException:
        with contextlib.suppress(OSError):
            parcial.unlink()
        raise
    _arrumar(arquivo.parent)


def _arrumar(pasta: Path) -> None:
    # As respostas de modelos e versões que já se foram não enchem o disco. A pasta pode ser uma de
    # quem a escolheu, com coisas dele: só sai o que tem nome de resposta nossa.
    horas = {}
    for p in pasta.iterdir():
        if p.name.startswith(_PARCIAL) or _NOSSA.fullmatch(p.name):
            with contextlib.suppress(OSError):  # outra lição pode tê-la tirado agora
                horas[p] = p.stat().st_mtime
    parciais = [p for p in horas if p.name.startswith(_PARCIAL)]
    guardadas = sorted(horas.keys() - set(parciais), key=horas.get, reverse=True)
    mortas = [p for p in parciais if horas[p] < time.time() - 3600]
    for velha in [*guardadas[QUANTAS:], *mortas]:
        with contextlib.suppress(OSError):
            velha.unlink()
