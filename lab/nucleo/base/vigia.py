"""O vigia: fica entre um programa nosso e outro que não é, e o outro nunca vive mais que o nosso.

Quem abre o programa alheio (a resposta de um aluno, o pip) abre este, e ele abre o outro. Acaba quando o
outro acaba, quando recebe um SIGTERM ou quando quem o abriu morre, de que jeito for (um SIGKILL não avisa
ninguém); antes de sair, mata tudo o que nasceu dali. No Linux os netos que trocam de sessão e perdem o
pai são dados a ele, e ele os acha; nos outros Unix vale o grupo de processos. Só usa a biblioteca padrão,
sem o site: sobe em 20 ms. (No Windows, quem faz isso é o job de `nucleo.base.processos`.)

    python -I -S vigia.py PID_DE_QUEM_ABRE PASTA_A_APAGAR COMANDO…
"""

import contextlib
import ctypes
import os
import select
import signal
import sys

OLHAR = 0.2  # segundos entre duas olhadas para ver se quem o abriu ainda está lá
_PDEATHSIG, _SUBREAPER = 1, 36  # os números de prctl.h


def comando(partes: list[str], pasta: str = "") -> list[str]:
    """O comando que roda `partes` com um vigia; se este processo morrer, a `pasta` também se vai."""
    if os.name == "nt":
        return partes
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), pasta, *partes]


def processos() -> list[tuple[int, int]]:
    """(pid, pid do pai) de cada processo que este enxerga em /proc; vazia fora do Linux."""
    achados = []
    for nome in os.listdir("/proc") if os.path.exists("/proc/self/stat") else []:
        if not nome.isdecimal():
            continue
        try:
            with open(f"/proc/{nome}/stat", encoding="utf-8", errors="replace") as f:
                # O nome do programa vem entre parênteses e pode ter espaços: conta-se do último.
                achados.append((int(nome), int(f.read().rpartition(")")[2].split()[1])))
        except (OSError, ValueError, IndexError):
            continue
    return achados


def matar_descendentes(filhos: list[int]) -> None:
    """Mata os filhos, e os netos que passam a ser filhos deste processo, até não haver nenhum."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in [*filhos, *(p for p, pai in processos() if pai == os.getpid())]:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)
    if not processos() and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # sem /proc, o grupo inteiro: este processo também


def rodar_vigiado(pai: int, pasta: str, comando: list[str]) -> None:
    """Roda o comando e espera por ele. Nunca volta: sai com o código (ou o sinal) dele."""
    prctl = getattr(ctypes.CDLL(None), "prctl", lambda *_: -1)
    prctl(_SUBREAPER, 1, 0, 0, 0)
    ouvido, boca = os.pipe()
    os.set_blocking(boca, False)
    signal.set_wakeup_fd(boca)
    # Quem os lê é o laço, pelo cano. O Ctrl-C do terminal já chegou a quem o abriu, que decide.
    for sinal in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(sinal) != signal.SIG_IGN:
            signal.signal(sinal, lambda *_: None)
    vigia = os.getpid()
    filho = os.fork()
    if filho == 0:
        prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # um hostil pode matar o vigia
        if os.getppid() == vigia:
            os.execvp(comando[0], comando)
        os._exit(1)
    morto = estado = 0
    while not morto and os.getppid() == pai:
        veio = select.select([ouvido], [], [], OLHAR)[0] and os.read(ouvido, 64)
        if veio and {signal.SIGTERM, signal.SIGHUP} & {*veio}:
            break
        morto, estado = os.waitpid(filho, os.WNOHANG)
    if not morto:
        estado = signal.SIGKILL
        matar_descendentes([filho])
    elif processos():
        matar_descendentes([])
    if pasta and os.getppid() != pai:
        import shutil  # só aqui: quem apagaria a pasta já não está

        shutil.rmtree(pasta, ignore_errors=True)
    if os.WIFSIGNALED(estado):
        import resource

        # O mesmo fim, para quem nos lançou saber qual foi; sem o arquivo `core` de alguns sinais.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):
            signal.signal(os.WTERMSIG(estado), signal.SIG_DFL)
        os.kill(vigia, os.WTERMSIG(estado))
    os._exit(os.WEXITSTATUS(estado))


if __name__ == "__main__":
    _python, _isolado, _sem_site, _este, _pai, _pasta, *_comando = sys.orig_argv  # ver `comando`
    rodar_vigiado(int(_pai), _pasta, _comando)
