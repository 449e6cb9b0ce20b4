"""Arquivos que trocam inteiros: quem lê acha o de antes ou o novo, e nunca um pela metade.

Escreve-se ao lado, na mesma pasta, e só no fim o provisório toma o lugar do arquivo, de uma vez
(`os.replace`). Quem morre no meio deixa no máximo um `.NOME.PID.parcial`, que `varrer` retira.
"""

import contextlib
import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nucleo.base.erros import ErroDoUsuario

OUTRA_PASTA = "Escolha outra pasta:  --saida PASTA"
LIBERE = "Libere espaço (ou a permissão) e rode de novo."
# No Windows, quem está com um arquivo aberto não deixa que o troquem nem que o apaguem. O antivírus
# o solta logo, e espera-se por ele; o Excel não, e isso se diz.
ESPERA = 3.0  # segundos
_PRESO = (5, 32, 33)  # winerror: acesso negado, em uso, trancado
# Nomes de aparelhos, que o Windows não dá a arquivo nenhum, com qualquer extensão.
_RESERVADO = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])\s*(\..*)?", re.I)


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
        with _provisorio(destino, "velha") as velha:
            # A velha sai inteira do lugar antes de se apagar: presa, ela fica inteira onde está.
            if destino.exists():
                trocar(destino, velha)
            try:
                trocar(provisorio, destino)
            except OSError:
                if velha.exists():
                    trocar(velha, destino)
                raise


def trocar(de: Path, para: Path) -> None:
    """`de` toma o lugar de `para`, de uma vez. Erros: `OSError`."""
    _insistir(os.replace, de, para)


def _insistir(fazer: Callable, *nomes: Path) -> None:
    fim = time.monotonic() + ESPERA
    while True:
        try:
            return fazer(*nomes)
        except PermissionError as erro:
            if getattr(erro, "winerror", None) not in _PRESO or time.monotonic() > fim:
                raise
        time.sleep(0.05)


@contextlib.contextmanager
def _provisorio(destino: Path, qual: str = "") -> Iterator[Path]:
    # O número do processo no nome: duas janelas ao mesmo tempo não escrevem no mesmo provisório.
    destino.parent.mkdir(parents=True, exist_ok=True)
    provisorio = destino.with_name(f".{destino.name}{qual}.{os.getpid()}.parcial")
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
            with contextlib.suppress(FileNotFoundError):
                _insistir(os.unlink, sobra)


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

    # No Windows a trava toma uma pasta proibida por ocupada, e esperaria por ela para sempre.
    experimentar(pasta)
    trava = filelock.FileLock(pasta / ".trava")
    try:
        try:
            try:
                trava.acquire(timeout=0)
            except filelock.Timeout:
                ao_esperar()
                trava.acquire(timeout=paciencia)
        except filelock.Timeout:
            raise Ocupada(str(pasta)) from None
        except (NotImplementedError, OSError) as erro:
            # Um disco de rede que não sabe trancar: segue-se sem trava. (No Windows ele responde
            # “função incorreta” ou “sem suporte”.)
            if getattr(erro, "winerror", None) not in (1, 50) and isinstance(erro, OSError):
                raise
        yield
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


def e_atalho(caminho: Path) -> bool:
    """True se o caminho é um link simbólico ou, no Windows, uma junção (que `is_symlink` não vê)."""
    aqui = os.path.join(os.path.realpath(caminho.parent), caminho.name)
    return Path(os.path.realpath(caminho)) != Path(aqui)


def serve_no_windows(nome: str) -> bool:
    """True se um arquivo ou pasta pode ter este nome no Windows (e, por isso, em toda parte)."""
    letras = nome.isprintable() and not set(nome) & set('<>:"|?*\\/')
    # Ele tira pontos e espaços do fim: ".. " viraria "..".
    return bool(letras and nome and nome[-1] not in ". " and not _RESERVADO.fullmatch(nome))


def experimentar(pasta: Path) -> None:
    """Põe um arquivo na pasta (que nasce, se faltar) e o tira. Erros: `OSError` se ela não aceitar."""
    # Sem o tempfile: no Windows ele toma a recusa da pasta por um nome repetido, e tenta dez mil.
    with _provisorio(pasta / "teste") as arquivo:
        arquivo.touch()


def conferir_pasta(pasta: Path, fazer: str = OUTRA_PASTA) -> None:
    """Avisa antes da lição, e não depois de um minuto, que a pasta não aceita arquivos.

    Erros: `ErroDoUsuario`.
    """
    try:
        experimentar(pasta)
    except OSError as erro:
        raise nao_gravou(pasta, erro, fazer) from None


# Pelo nome: os números mudam de um sistema para outro.
_MOTIVOS = {
    errno.ENOSPC: "o disco está cheio",
    errno.EFBIG: "o sistema não deixa gravar um arquivo deste tamanho",
    errno.EDQUOT: "a sua cota de disco acabou",
    errno.EROFS: "o disco é só de leitura",
    errno.EACCES: "a pasta (ou um arquivo dela, talvez aberto em outro programa) não permite escrita",
    errno.EPERM: "a pasta não permite escrita",
    errno.ENOTDIR: "um pedaço do caminho é um arquivo, não uma pasta",
    errno.EISDIR: "há uma pasta com o nome de um dos arquivos",
    errno.ENAMETOOLONG: "o nome é comprido demais para este sistema",
    errno.ELOOP: "o caminho dá voltas (um atalho aponta para ele mesmo)",
    errno.EEXIST: "já existe um arquivo com esse nome",
}


def motivo_de(erro: OSError) -> str:
    """Em português, por que o sistema não deixou gravar; o que não se conhece fica como ele disse."""
    return _MOTIVOS.get(erro.errno, erro.strerror or str(erro))


def nao_gravou(pasta: Path, erro: OSError, fazer: str = OUTRA_PASTA) -> ErroDoUsuario:
    """O erro do sistema ao gravar em `pasta`, dito em português; `fazer` é o conserto."""
    motivo = motivo_de(erro)
    if (codigo := getattr(erro, "winerror", None)) is not None:
        motivo, fazer = _no_windows(codigo, erro, motivo, fazer)
    return ErroDoUsuario(
        f"Não consegui gravar em {pasta}.",
        f"O sistema respondeu: {motivo}. "
        "Nenhum arquivo ficou pela metade: o que não trocou continua como estava.",
        fazer,
    )


def _no_windows(codigo: int, erro: OSError, motivo: str, fazer: str) -> tuple[str, str]:
    # O que lá o mesmo errno pode querer dizer: (motivo, conserto).
    arquivo = Path(erro.filename2 or erro.filename or "")
    if codigo in _PRESO and arquivo.is_file():
        motivo = f"{arquivo.name} está aberto em outro programa, ou é só de leitura"
        return motivo, f"Feche {arquivo.name} e rode de novo. Ou: {fazer}"
    if codigo in (123, 267):
        motivo = 'o Windows não aceita esse nome (sem < > : " | ? * e sem espaço ou ponto no fim)'
    elif codigo == 206 or (codigo in (2, 3) and len(str(arquivo)) > 240):
        motivo = f"o caminho tem {len(str(arquivo))} letras, e o Windows para perto de 260"
    elif codigo in (2, 3) and arquivo.parent.is_dir():
        motivo = "o Windows protege essa pasta (Segurança do Windows, “acesso controlado a pastas”)"
    return motivo, fazer
