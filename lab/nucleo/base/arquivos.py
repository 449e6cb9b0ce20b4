"""Arquivos que trocam inteiros: quem lê acha o de antes ou o novo, e nunca um pela metade.

Escreve-se ao lado, na mesma pasta, e só no fim o provisório toma o lugar do arquivo, de uma vez
(`os.replace`). Quem morre no meio deixa no máximo um `.NOME.PID.parcial`, que `varrer` retira.
"""

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nucleo.base.erros import ErroDoUsuario

OUTRA_PASTA = "Escolha outra pasta:  --saida PASTA"
PACIENCIA = 2.0  # segundos por um arquivo que o Windows diz estar em uso
LIBERE = "Libere espaço (ou a permissão) e rode de novo."


def gravar(arquivo: Path, conteudo: bytes, fazer: str = LIBERE) -> Path:
    """Põe `conteudo` em `arquivo`, inteiro ou nada, e devolve o caminho. A pasta nasce, se faltar.

    Erros: `ErroDoUsuario` se faltar disco ou permissão; `fazer` é o conserto que ela aconselha.
    """
    gravar_todos({arquivo: conteudo}, fazer=fazer)
    return arquivo


def gravar_todos(
    conteudos: dict[Path, bytes], sobras: Iterable[Path] = (), fazer: str = LIBERE
) -> None:
    """Grava {arquivo: bytes}: primeiro todos ao lado, e só se couberem a troca, um a um, na ordem.

    As `sobras` de outra vez saem antes da última troca: o último arquivo é o que lista os outros.
    Erros: `ErroDoUsuario`. Sem disco nada muda; com um arquivo preso (aberto no Excel), os de antes
    dele já são novos, e ele e os de depois continuam como eram.
    """
    arquivo = None
    with contextlib.ExitStack() as pilha:
        try:
            prontos = []
            for arquivo, conteudo in conteudos.items():
                provisorio = pilha.enter_context(_provisorio(arquivo))
                provisorio.write_bytes(conteudo)
                _descer(provisorio)
                prontos.append((provisorio, arquivo))
            for arquivo in conteudos:
                if arquivo.is_dir():  # trocá-la apagaria o que alguém guardou dentro
                    raise IsADirectoryError(21, "é uma pasta", str(arquivo))
            for i, (provisorio, arquivo) in enumerate(prontos, 1):
                if i == len(prontos):
                    _tirar(sobras)
                trocar(provisorio, arquivo)
        except OSError as erro:
            raise nao_gravou(arquivo.parent, erro, fazer) from None


def trocar(de: Path, para: Path) -> None:
    """`os.replace`, com paciência: no Windows um antivírus ou um visualizador prende o arquivo por instantes.

    Erros: `OSError`, se depois de `PACIENCIA` segundos ele ainda estiver preso.
    """
    desistir = time.monotonic() + PACIENCIA
    while True:
        try:
            return os.replace(de, para)
        except PermissionError as erro:
            # 5: acesso negado; 32 e 33: aberto ou trancado por outro. Só o Windows tem esses números.
            if getattr(erro, "winerror", None) not in (5, 32, 33) or time.monotonic() > desistir:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def ao_lado(destino: Path) -> Iterator[Path]:
    """O caminho provisório para quem escreve por conta própria; no fim do bloco, ele vira `destino`.

    Se o bloco falhar, o provisório sai e o `destino` fica como estava. Erros: `OSError`.
    """
    with _provisorio(destino) as provisorio:
        yield provisorio
        _descer(provisorio)
        trocar(provisorio, destino)


@contextlib.contextmanager
def pasta_ao_lado(destino: Path) -> Iterator[Path]:
    """O mesmo para uma pasta inteira, que o bloco enche; a que houver no lugar é trocada."""
    with _provisorio(destino) as provisorio:
        provisorio.mkdir()
        yield provisorio
        velha = destino.with_name(f".{destino.name}.velha.{os.getpid()}.parcial")
        if destino.exists():
            # Sai inteira do lugar, ou fica como está: no Windows um arquivo dela aberto a prende.
            trocar(destino, velha)
        try:
            trocar(provisorio, destino)
        except OSError:
            if velha.exists():
                trocar(velha, destino)
            raise
        _apagar(velha)


@contextlib.contextmanager
def _provisorio(destino: Path) -> Iterator[Path]:
    # O número do processo no nome: duas janelas ao mesmo tempo não escrevem no mesmo provisório.
    destino.parent.mkdir(parents=True, exist_ok=True)
    provisorio = destino.with_name(f".{destino.name}.{os.getpid()}.parcial")
    try:
        yield provisorio
    finally:
        _apagar(provisorio)


def varrer(pasta: Path, nome: str = "*") -> None:
    """Retira os provisórios de `nome` que uma execução morta à força deixou (com a pasta trancada)."""
    for resto in pasta.glob(f".{nome}.*.parcial"):
        if resto.name.split(".")[-2].isdecimal():
            _apagar(resto)


def _apagar(provisorio: Path) -> None:
    with contextlib.suppress(OSError):
        if provisorio.is_dir():
            shutil.rmtree(provisorio, ignore_errors=True)
        else:
            provisorio.unlink(missing_ok=True)


def _tirar(sobras: Iterable[Path]) -> None:
    for sobra in sobras:
        if not sobra.is_dir():
            sobra.unlink(missing_ok=True)


def _descer(arquivo: Path) -> None:
    # Até o disco: sem isto, uma queda de luz depois da troca deixaria um arquivo vazio.
    with arquivo.open("r+b") as f:
        os.fsync(f.fileno())


class Ocupada(Exception):
    """Outro processo está com a pasta, e a paciência acabou."""


@contextlib.contextmanager
def so_um(
    pasta: Path, paciencia: float = -1, ao_esperar: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Contexto em que só este processo grava na pasta (que nasce, se faltar). Se ele morre, ela abre.

    `paciencia`: segundos de espera (−1: o que for preciso). `ao_esperar` é chamada uma vez, se for
    preciso esperar. Erros: `Ocupada`; `OSError` se a pasta não aceitar o arquivo `.trava`.
    """
    import filelock

    pasta.mkdir(parents=True, exist_ok=True)
    trava = filelock.FileLock(pasta / ".trava")
    try:
        # Um disco de rede que não sabe trancar: segue-se sem trava.
        with contextlib.suppress(NotImplementedError):
            try:
                trava.acquire(timeout=0)
            except filelock.Timeout:
                ao_esperar()
                trava.acquire(timeout=paciencia)
        yield
    except filelock.Timeout:
        raise Ocupada(str(pasta)) from None
    finally:
        trava.release()


def ler_toml(arquivo: Path) -> dict:
    """O TOML como dicionário. Erros: `OSError`, e `ValueError` se não for TOML."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    return tomllib.loads(arquivo.read_text(encoding="utf-8"))


def legivel(texto: str) -> str:
    """O texto sem meios-caracteres: os bytes de um nome que o sistema (LC_ALL=POSIX) não soube ler
    voltam a ser as letras que eram, e o que não era letra vira �."""
    letras = re.sub(
        "[\udc80-\udcff]+",
        lambda m: m[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        texto,
    )
    return letras.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def conferir_pasta(pasta: Path, fazer: str = OUTRA_PASTA) -> None:
    """Avisa antes da lição, e não depois de um minuto, que a pasta não aceita arquivos.

    Erros: `ErroDoUsuario`.
    """
    try:
        pasta.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=pasta):
            pass
    except OSError as erro:
        raise nao_gravou(pasta, erro, fazer) from None


_MOTIVOS = {
    28: "o disco está cheio",
    27: "o sistema não deixa gravar um arquivo deste tamanho",
    122: "a sua cota de disco acabou",
    30: "o disco é só de leitura",
    13: "a pasta (ou um arquivo dela, talvez aberto em outro programa) não permite escrita",
    1: "a pasta não permite escrita",
    20: "um pedaço do caminho é um arquivo, não uma pasta",
    21: "há uma pasta com o nome de um dos arquivos",
    36: "o nome é comprido demais para este sistema",
    40: "o caminho dá voltas (um atalho aponta para ele mesmo)",
    17: "já existe um arquivo com esse nome",
}


def motivo_de(erro: OSError) -> str:
    """Em português, por que o sistema não deixou gravar; o que não se conhece fica como ele disse."""
    return _MOTIVOS.get(erro.errno, erro.strerror or str(erro))


def nao_gravou(pasta: Path, erro: OSError, fazer: str = OUTRA_PASTA) -> ErroDoUsuario:
    """O erro do sistema ao gravar em `pasta`, dito em português; `fazer` é o conserto."""
    motivo = motivo_de(erro)
    if getattr(erro, "winerror", None) in (32, 33):
        # O arquivo de que o Windows fala é o provisório ou o que se ia trocar: o nome que interessa é este.
        preso = Path(str(erro.filename2 or erro.filename or pasta)).name
        motivo = f"outro programa está com {preso} aberto; feche-o lá"
    return ErroDoUsuario(
        f"Não consegui gravar em {pasta}.",
        f"O sistema respondeu: {motivo}. "
        "Nenhum arquivo ficou pela metade: o que não trocou continua como estava.",
        fazer,
    )
