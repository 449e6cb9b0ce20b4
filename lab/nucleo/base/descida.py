"""Um download que continua do byte em que parou, seja qual for a biblioteca que fala com a rede.

Do hub vem pelo huggingface_hub; do espelho da aula, pela biblioteca padrão, que é só o que tem quem ainda
não instalou nada. O que se escreve aqui não sabe qual das duas: quem chama traz os bytes.
"""

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nucleo.base.arquivos import trocar

TENTATIVAS = 5  # quedas seguidas sem um byte novo até desistir
PAUSA = 0.2  # segundos até o segundo pedido; dobra a cada queda sem byte novo, até 3 s
_BLOCO = 1 << 22
SEM_LUGAR = (errno.EFBIG, errno.ENOSPC, errno.EDQUOT)
CAIU = "a conexão caiu no meio do download"


class Caiu(Exception):
    """A conexão caiu: o que já chegou vale, e o resto se pede de novo."""


class DoZero(Exception):
    """O servidor só sabe mandar o arquivo desde o começo."""


def insistir(fazer: Callable[[], object], medida: Callable[[], int] = lambda: 0):
    """O que `fazer()` devolver. A cada `Caiu` ela é chamada outra vez, enquanto `medida()` crescer.

    Depois de `TENTATIVAS` quedas seguidas sem nada de novo, o `Caiu` passa.
    """
    vazias, antes = 0, medida()
    while True:
        try:
            return fazer()
        except Caiu:
            agora = medida()
            vazias, antes = 0 if agora > antes else vazias + 1, agora
            if vazias == TENTATIVAS:
                raise
            time.sleep(min(PAUSA * 2**vazias, 3))


def descer(
    destino: Path,
    total: int,
    pedir: Callable[[int], Iterator[bytes]],
    confere: Callable[[Path], bool],
    avanco: Callable[[int], object] = lambda _: None,
) -> bool:
    """Põe em `destino` os `total` bytes que `pedir` traz; devolve False se não passarem em `confere`.

    `pedir(n)` dá os bytes do n em diante, e levanta `Caiu` (pede-se de novo), `DoZero` ou o que quiser,
    que passa. O que chegou fica num `.parcial` ao lado, e a próxima vez continua dele; se o que se
    continuou não conferir, era o pedaço de outra versão, e recomeça-se uma vez. `avanco` recebe
    quantos bytes há. Erros: `OSError` (sem disco, sem permissão).
    """
    parcial = parcial_de(destino)
    destino.parent.mkdir(parents=True, exist_ok=True)

    def continuar() -> None:
        try:
            with parcial.open("ab") as f:
                feito = f.tell()
                for bloco in pedir(feito) if feito < total else ():
                    f.write(bloco)
                    feito += len(bloco)
                    avanco(min(feito, total))
                    if feito > total:
                        break
                f.flush()
                os.fsync(f.fileno())
        except DoZero:
            parcial.unlink()
            raise Caiu(CAIU) from None
        if feito < total:
            raise Caiu(CAIU)

    continuado = tamanho(parcial) > 0
    if shutil.disk_usage(destino.parent).free < total - tamanho(parcial):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(destino))
    try:
        for _ in range(1 + continuado):
            insistir(continuar, lambda: tamanho(parcial))
            if tamanho(parcial) == total and confere(parcial):
                trocar(parcial, destino)
                return True
            parcial.unlink()
        return False
    except BaseException as erro:
        # Sem lugar no disco, devolve-se o que o pedaço ocupa; e um vazio não serve para nada.
        if getattr(erro, "errno", None) in SEM_LUGAR or not tamanho(parcial):
            parcial.unlink(missing_ok=True)
        raise


def parcial_de(destino: Path) -> Path:
    """Onde fica o pedaço já baixado de `destino`."""
    return destino.with_name(destino.name + ".parcial")


def tamanho(arquivo: Path) -> int:
    """Bytes do arquivo; 0 se ele não existe."""
    return arquivo.stat().st_size if arquivo.is_file() else 0


def sha256(arquivo: Path, avanco: Callable[[int], object] = lambda _: None) -> str:
    """O sha256 do arquivo, em hexadecimal, lido aos pedaços; `avanco` recebe os bytes de cada um."""
    soma = hashlib.sha256()
    with arquivo.open("rb") as f:
        while bloco := f.read(_BLOCO):
            soma.update(bloco)
            avanco(len(bloco))
    return soma.hexdigest()
