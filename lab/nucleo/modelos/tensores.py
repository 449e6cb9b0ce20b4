"""Ler só os tensores que a lição pede, direto do arquivo, sem carregar o modelo.

Um arquivo safetensors é: 8 bytes com o tamanho do cabeçalho, o cabeçalho em JSON (nome,
tipo, forma e posição de cada tensor) e os números, um tensor depois do outro. Sabendo a
posição, mapeamos em memória só o pedaço que interessa: o sistema operacional lê do disco
as páginas que forem tocadas e mais nada. Formato: https://github.com/huggingface/safetensors
"""

import contextlib
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import inteiro

# Tipos que sabemos virar float32. BF16 não existe em numpy: lemos como uint16 e deslocamos.
_TIPOS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_PONTEIRO_LFS = b"version https://git-lfs"


@dataclass(frozen=True)
class Tensor:
    """Onde um tensor mora: arquivo, tipo, forma e o intervalo de bytes [inicio, fim)."""

    nome: str
    arquivo: Path
    tipo: str
    forma: tuple[int, ...]
    inicio: int
    fim: int


def interpretar_cabecalho(bruto: bytes, arquivo: Path | str, tamanho: int) -> dict[str, Tensor]:
    """Cabeçalho em JSON -> {nome: Tensor}, com as posições já contadas do começo do arquivo.

    `tamanho` é o do arquivo inteiro, em bytes. Erros: `ErroDoUsuario` se o cabeçalho não for
    JSON, se um intervalo sair do arquivo ou não bater com tipo × forma (arquivo cortado).
    """
    base = 8 + len(bruto)
    try:
        entradas = json.loads(bruto)
        entradas.pop("__metadata__", None)
        lidos = {n: _interpretar(n, Path(arquivo), e, base) for n, e in entradas.items()}
    except Exception as erro:  # seja o que for, não é o cabeçalho de um safetensors
        por_que = f"o cabeçalho não é o de um safetensors ({str(erro)[:200]})"
        raise _estragado(arquivo, por_que) from None
    for t in lidos.values():
        if not base <= t.inicio <= t.fim <= tamanho:
            por_que = f"o tensor {t.nome} termina no byte {inteiro(t.fim)} e o arquivo tem "
            por_que += inteiro(tamanho)
            cortado = " (download interrompido?)" if t.fim > tamanho else ""
            raise _estragado(arquivo, por_que + cortado)
    return lidos


def _interpretar(nome: str, arquivo: Path, e: dict, base: int) -> Tensor:
    tipo, forma = str(e["dtype"]), tuple(int(n) for n in e["shape"])
    inicio, fim = e["data_offsets"]
    if tipo in _TIPOS:
        largura = np.dtype(_TIPOS[tipo]).itemsize
        if min(forma, default=0) < 0 or fim - inicio != largura * math.prod(forma):
            raise ValueError(f"ele mente sobre {nome}: forma e bytes discordam")
    return Tensor(nome, arquivo, tipo, forma, base + inicio, base + fim)


def achar(cabecalho: dict[str, Tensor], *finais: str) -> list[Tensor]:
    """Os tensores cujo nome termina num dos `finais`: o prefixo (transformer., model., bert.) muda com
    quem gravou; o fim, não."""
    return [t for n, t in cabecalho.items() for f in finais if n == f or n.endswith("." + f)]


def _abrir(arquivo: Path) -> BinaryIO:
    # O Linux costuma ler adiante, uns 8 MB depois do que se pediu: aqui, o que vem depois de wte e
    # wpe são blocos que ninguém quer. O aviso vale para este arquivo aberto e para mais ninguém.
    f = arquivo.open("rb", buffering=0)
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # um disco que não aceita conselhos lê do jeito dele
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    return f


def recusar_ponteiro(arquivo: Path) -> None:
    """Erros: `ErroDoUsuario` se o arquivo é o bilhete que o Git LFS deixa no lugar do verdadeiro."""
    if not arquivo.is_file():
        return
    with _abrir(arquivo) as f:
        if f.read(len(_PONTEIRO_LFS)) != _PONTEIRO_LFS:
            return
    raise ErroDoUsuario(
        f"{arquivo.name} é um ponteiro do Git LFS, não o modelo.",
        f"O arquivo {arquivo} tem {arquivo.stat().st_size} bytes de texto: o git guardou o endereço, "
        "não o conteúdo.",
        "Dentro da pasta do modelo, rode:  git lfs pull",
    )


def ler_cabecalho(arquivo: Path) -> dict[str, Tensor]:
    """{nome: Tensor} de um arquivo safetensors, sem ler nenhum peso.

    Erros: `ErroDoUsuario` para arquivo cortado, vazio, ponteiro do Git LFS ou outro formato.
    """
    if not arquivo.is_file():
        raise _estragado(arquivo, "não é um arquivo comum")
    tamanho = arquivo.stat().st_size
    recusar_ponteiro(arquivo)
    if tamanho < 10:
        raise _estragado(arquivo, f"ele tem só {tamanho} bytes")
    with _abrir(arquivo) as f:
        n = int.from_bytes(f.read(8), "little")
        # Um cabeçalho real tem alguns KB; um número absurdo aqui é outro formato ou lixo.
        if n > min(tamanho - 8, 100_000_000):
            raise _estragado(
                arquivo, "os 8 primeiros bytes não são o tamanho de um cabeçalho que caiba nele"
            )
        return interpretar_cabecalho(f.read(n), arquivo, tamanho)


def cabecalho_da_pasta(pasta: Path) -> dict[str, Tensor]:
    """{nome: Tensor} de um modelo em disco: um arquivo só ou os pedaços do índice.

    Erros: `ErroDoUsuario` se não houver safetensors (arquivos pickle, como .bin, nunca são
    abertos: podem executar código) ou se faltar um pedaço.
    """
    unico, indice = pasta / "model.safetensors", pasta / "model.safetensors.index.json"
    if unico.is_file():
        return ler_cabecalho(unico)
    if indice.is_file():
        try:
            mapa = json.loads(indice.read_text(encoding="utf-8"))["weight_map"]
            nomes = sorted(set(mapa.values()))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise _estragado(indice, "o índice não tem um weight_map") from None
        juntos: dict[str, Tensor] = {}
        for nome in nomes:
            if not (pasta / nome).is_file():
                raise ErroDoUsuario(
                    f"Falta um pedaço do modelo: {nome}.",
                    f"{indice.name} conta {len(nomes)} pedaços em {pasta}, e este não está lá.",
                    "Copie ou baixe de novo o pedaço que falta.",
                )
            juntos |= ler_cabecalho(pasta / nome)
        return juntos
    outros = sorted(p.name for p in pasta.glob("*.safetensors"))
    if len(outros) == 1:
        return ler_cabecalho(pasta / outros[0])
    perigosos = sorted(p.name for e in ("*.bin", "*.pt", "*.pth", "*.ckpt") for p in pasta.glob(e))
    if perigosos:
        raise ErroDoUsuario(
            f"A pasta só tem pesos em pickle ({', '.join(perigosos[:3])}).",
            "Um pickle pode executar código ao ser aberto; o laboratório só lê safetensors.",
            "Baixe a versão safetensors do modelo, ou converta com `save_pretrained` num ambiente de confiança.",
        )
    raise ErroDoUsuario(
        f"Não há pesos em {pasta}.",
        "Procurei model.safetensors e model.safetensors.index.json"
        + (f"; há {len(outros)} outros .safetensors e não sei qual usar." if outros else "."),
        "Aponte --modelo para uma pasta no formato do Hugging Face (config.json + model.safetensors).",
    )


def ler(t: Tensor) -> np.ndarray:
    """O tensor em float32, só leitura. F32 sai mapeado em memória, sem cópia, se estiver alinhado.

    Erros: `ErroDoUsuario` se o tipo for inteiro ou quantizado (não há float32 honesto a dar).
    """
    if t.tipo not in _TIPOS:
        raise ErroDoUsuario(
            f"O tensor {t.nome} está em {t.tipo}.",
            "O laboratório lê F64, F32, F16 e BF16; pesos quantizados precisam ser convertidos antes.",
            "Use a versão em float16 ou float32 deste modelo.",
        )
    if 0 in t.forma:
        raise _estragado(t.arquivo, f"o tensor {t.nome} está vazio: forma {t.forma}")
    if t.tipo == "F32" and t.inicio % 4 == 0:
        return np.memmap(t.arquivo, dtype="<f4", mode="r", offset=t.inicio, shape=t.forma)
    # Daqui em diante há uma cópia; lida direto no lugar, e não por um mapa, ela ocupa memória uma vez.
    quantos = math.prod(t.forma)
    with _abrir(t.arquivo) as f:
        bruto = np.fromfile(f, _TIPOS[t.tipo], quantos, offset=t.inicio).reshape(t.forma)
    if t.tipo == "BF16":
        # bfloat16 é a metade de cima de um float32: 16 bits à esquerda e está pronto.
        pronto = (bruto.astype(np.uint32) << 16).view(np.float32)
    else:
        # O arquivo do GPT-2 no hub põe os números no byte 14.291, que não é múltiplo de 4: sem
        # uma cópia alinhada, todo produto pela tabela sairia umas quatro vezes mais lento.
        pronto = bruto.astype(np.float32, copy=False)
    pronto.flags.writeable = False
    return pronto


def _estragado(arquivo: Path | str, por_que: str) -> ErroDoUsuario:
    return ErroDoUsuario(
        f"Não consegui ler os pesos de {Path(arquivo).name}: o arquivo está incompleto ou estragado.",
        f"{por_que[0].upper()}{por_que[1:]} — {arquivo}",
        "Apague esse arquivo e baixe ou copie o modelo outra vez.",
    )
