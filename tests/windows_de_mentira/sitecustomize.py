"""O Windows de mentira: em lab/ some o que ele não tem, e numa pasta falha o que ele proíbe.

Com esta pasta em PYTHONPATH, cada Python que nasce passa por aqui, o processo ao lado também. Só quem
importa de dentro de lab/ vê a mentira (`os.name` é "nt", `fcntl` não existe, `os.killpg` também não): as
bibliotecas seguem no sistema de verdade. Na pasta de WINDOWS_DE_MENTIRA, um arquivo aberto ou mapeado não
se troca nem se apaga, um nome que o Windows não aceita não se cria, nem dois que só diferem na caixa, e
um link simbólico pede privilégio. (Quem tem o arquivo, diz o /proc: só no Linux.)
"""

import builtins
import contextlib
import importlib
import os
import re
import sys

LAB = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "lab", "")
MODULOS = {
    "fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "curses", "readline",
    "crypt", "nis", "spwd",
}  # fmt: skip
# O que a documentação e o typeshed dizem que só há fora do Windows.
AUSENTES = {
    "os": """chown chroot confstr copy_file_range ctermid environb fchdir fchown fdatasync fork forkpty
        fpathconf fstatvfs fwalk getegid getenvb geteuid getgid getgrouplist getgroups getloadavg getpgid
        getpgrp getpriority getrandom getresgid getresuid getsid getuid getxattr initgroups killpg lchown
        listxattr lockf login_tty major makedev memfd_create minor mkfifo mknod nice openpty pathconf
        pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn posix_spawnp pread preadv pwrite pwritev
        readv register_at_fork removexattr sched_getaffinity sched_setaffinity sched_yield sendfile setegid
        seteuid setgid setgroups setpgid setpgrp setpriority setregid setresgid setresuid setreuid setsid
        setuid setxattr spawnlp spawnvp splice statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait
        wait3 wait4 waitid writev O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NDELAY O_NOATIME O_NOCTTY
        O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC O_TMPFILE POSIX_FADV_RANDOM POSIX_FADV_DONTNEED PRIO_PROCESS
        P_ALL P_PID RTLD_GLOBAL SEEK_DATA SEEK_HOLE WCOREDUMP WEXITED WEXITSTATUS WIFEXITED WIFSIGNALED
        WIFSTOPPED WNOHANG WNOWAIT WSTOPSIG WTERMSIG WUNTRACED""",
    "signal": """ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL
        SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN
        SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK SIG_SETMASK SIG_UNBLOCK
        alarm getitimer pause pidfd_send_signal pthread_kill pthread_sigmask setitimer siginterrupt
        sigpending sigtimedwait sigwait sigwaitinfo""",
    "select": "poll epoll kqueue",
    "socket": "AF_UNIX",
    "time": "tzset clock_gettime clock_settime CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID",
    "sys": "abiflags getdlopenflags setdlopenflags",
}
AUSENTES = {modulo: set(nomes.split()) for modulo, nomes in AUSENTES.items()}
DE_LA = {("os", "name"): "nt", ("sys", "platform"): "win32"}


class Modulo:
    """Um módulo como no Windows, para quem é de lab/."""

    def __init__(self, nome):
        object.__setattr__(self, "_nome", nome)

    def __getattr__(self, atributo):
        nome = object.__getattribute__(self, "_nome")
        if atributo in AUSENTES[nome]:
            raise AttributeError(f"no Windows não há {nome}.{atributo}")
        return DE_LA.get((nome, atributo), getattr(sys.modules[nome], atributo))

    def __setattr__(self, atributo, valor):
        setattr(sys.modules[object.__getattribute__(self, "_nome")], atributo, valor)

    def __reduce__(self):  # atravessa para o processo ao lado como módulo
        return importlib.import_module, (object.__getattribute__(self, "_nome"),)


_importar = builtins.__import__
_trocados = {nome: Modulo(nome) for nome in AUSENTES}


def importar(name, globals=None, locals=None, fromlist=(), level=0):
    """O __import__ que dá a lab/ os módulos trocados, e nega os que não há."""
    if level or not str((globals or {}).get("__file__")).startswith(LAB):
        return _importar(name, globals, locals, fromlist, level)
    raiz = name.split(".")[0]
    if raiz in MODULOS:
        raise ModuleNotFoundError(f"No module named {raiz!r}", name=raiz)
    modulo = _importar(name, globals, locals, fromlist, level)
    return _trocados.get(name if fromlist else raiz, modulo)


# --- a pasta ---------------------------------------------------------------------------------

PASTA = os.environ.get("WINDOWS_DE_MENTIRA")
_NOME = re.compile(
    r'(?!.*[. ]$)(?!(con|prn|aux|nul|com\d|lpt\d)(\.|$))[^<>:"|?*\\\x00-\x1f]+', re.I
)


def _negar(codigo, winerror, caminho):
    erro = OSError(codigo, "o Windows de mentira não deixa", caminho)
    erro.winerror = winerror
    raise erro


def _quem_tem(caminho):
    # Este processo, o pai e os filhos: os que uma lição põe em cena.
    caminho = os.path.realpath(caminho)
    donos = {os.getpid(), os.getppid()}
    for fio in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{fio}/children", encoding="ascii") as f:
            donos |= set(map(int, f.read().split()))
    for pid in donos:
        abertos = [_para_onde(f"/proc/{pid}/fd", n) for n in _listar(f"/proc/{pid}/fd")]
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            abertos += [linha.rstrip("\n").split(None, 5)[-1] for linha in f]
        # Uma pasta não muda de nome com um arquivo aberto dentro.
        if any(x == caminho or x.startswith(caminho + "/") for x in abertos):
            return pid


def _listar(pasta):
    with contextlib.suppress(OSError):  # o processo acabou, ou não é nosso
        return os.listdir(pasta)
    return []


def _para_onde(pasta, nome):
    with contextlib.suppress(OSError):  # já fechou
        return os.readlink(f"{pasta}/{nome}")
    return ""


def _vigiar(evento, dados):
    if evento not in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink"):
        return
    caminhos = [os.fspath(x) for x in dados[:2] if isinstance(x, (str, os.PathLike))]
    caminhos = [x for x in map(os.path.abspath, caminhos) if x.startswith(PASTA + "/")]
    if evento == "open" and not (dados[2] or 0) & (os.O_WRONLY | os.O_RDWR):
        return
    for caminho in caminhos:
        pasta, nome = os.path.split(caminho)
        if evento == "os.symlink":
            _negar(1, 1314, caminho)
        some = evento in ("os.rename", "os.remove", "os.rmdir") and nome != ".trava"
        if some and os.path.lexists(caminho) and _quem_tem(caminho):
            _negar(13, 32, caminho)
        if evento in ("open", "os.rename", "os.mkdir"):
            if not all(map(_NOME.fullmatch, caminho[len(PASTA) + 1 :].split("/"))):
                _negar(22, 123, caminho)
            outros = os.listdir(pasta) if os.path.isdir(pasta) else []
            assert nome in outros or nome.casefold() not in map(str.casefold, outros), caminho


if __name__ == "sitecustomize":  # os testes também a importam, só pelas listas
    builtins.__import__ = importar
    if PASTA:
        sys.addaudithook(_vigiar)
