"""A caixa: roda a resposta de alguém num processo à parte, com limites, e traz só dados de volta.

Duas formas. `Caixa()` é a de casa (--verificar): um processo comum, com tempo. `Caixa.fechada()`
é a da correção: pasta temporária, ambiente limpo, limites de CPU, memória, arquivo e processos,
sem rede e sem escrita fora da pasta onde o sistema souber negar, e o grupo inteiro morto no fim.
Quem julga é este processo: o de dentro não conhece as respostas.
"""

import contextlib
import json
import os
import queue
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nucleo.base import vigia
from nucleo.exercicios import filho, juiz, registro
from nucleo.exercicios.juiz import Ocorrido, Veredito
from nucleo.exercicios.tipos import Tarefa

MAIOR_RESPOSTA = 200_000  # bytes de um arquivo de resposta
MAIOR_LINHA = 24_000_000  # bytes de um acontecimento
MAIOR_CONVERSA = 60_000_000  # bytes de tudo o que um processo diz
# Falhas que não chegaram a rodar nada: o processo continua bom.
INOFENSIVOS = ("por_fazer", "sintaxe")
ABRIR = 120.0  # segundos para o Python e o NumPy subirem, numa máquina ocupada


@dataclass(frozen=True)
class Limites:
    """Quanto uma resposta pode gastar. Tempo em segundos, tamanhos em bytes."""

    por_tarefa: float = 10.0
    memoria: int = 4 * 2**30
    arquivo: int = 16 * 2**20
    pasta: int = 64 * 2**20
    processos: int = 64

    def para_dentro(self) -> dict:
        """Os limites que o próprio processo se impõe antes de carregar a resposta."""
        return {
            "cpu": int(20 * self.por_tarefa) + 30,
            "memoria": self.memoria,
            "arquivo": self.arquivo,
            "processos": self.processos,
        }


@dataclass(frozen=True)
class Caixa:
    """Como rodar as respostas. `prefixo` é o comando que isola; `paredes`, as que se pedem."""

    limites: Limites = field(default_factory=Limites)
    isolada: bool = False
    prefixo: tuple[str, ...] = ()
    paredes: tuple[str, ...] = ()

    @classmethod
    def fechada(cls, limites: Limites | None = None, sem: tuple[str, ...] = ()) -> "Caixa":
        """A caixa da correção, com todas as paredes que este sistema oferece, menos as de `sem`."""
        prefixo = () if "espacos" in sem else comando_de_espacos()
        paredes = tuple(p for p in ("landlock", "seccomp") if p not in sem)
        return cls(limites or Limites(), True, prefixo, paredes)

    def vereditos(self, respostas: list[tuple[Tarefa, str]], semente: int) -> Iterator[Veredito]:
        """Um veredito por resposta, na ordem. Quem fechar o gerador antes encerra o processo.

        Uma resposta que derruba o processo falha sozinha: as seguintes rodam em outro.
        Erros: `RuntimeError` se nem o processo de dentro subir (defeito da máquina ou nosso).
        """
        casos = {t.id: registro.casos(t, semente) for t, _ in respostas}
        faltam = list(respostas)
        while faltam:
            if _parar.is_set():
                raise InterruptedError("a correção foi interrompida")
            with _Sessao(self, faltam, casos) as sessao:
                for tarefa, _ in list(faltam):
                    veredito = sessao.proximo(tarefa)
                    faltam.pop(0)
                    yield veredito
                    # Na correção, quem falhou pode ter deixado o processo estragado (de propósito
                    # ou não): a função seguinte ganha um limpo.
                    suja = (
                        self.isolada and not veredito.passou and veredito.engano not in INOFENSIVOS
                    )
                    if sessao.morta or suja:
                        break

    def levantadas(self) -> list[str]:
        """As paredes que de fato sobem aqui: uma prova com uma resposta vazia."""
        with _Sessao(self, [], {}) as sessao:
            return [*(["espacos"] if self.prefixo else []), *sessao.paredes]


def comando_de_espacos() -> tuple[str, ...]:
    """O `unshare` que dá rede vazia e processos só da caixa (Linux), ou () se o sistema não deixa."""
    programa = shutil.which("unshare")
    if not programa:
        return ()
    eu = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    comando = [programa, *eu, "--net", "--ipc", "--pid", "--fork", "--kill-child"]
    try:
        feito = subprocess.run([*comando, "true"], capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(comando) if feito.returncode == 0 else ()


# Cada garantia: as paredes que a dão (basta uma), e o que dizer a quem não tem nenhuma.
_GARANTIAS = {
    "sem rede": ({"espacos", "seccomp"}, "a rede NÃO é negada neste sistema"),
    "sem ler nem escrever fora da pasta temporária": (
        {"landlock"},
        "a leitura e a escrita fora da pasta temporária NÃO são negadas neste sistema",
    ),
    "sem abrir processos além do limite": (
        {"seccomp", "processos"},
        "o número de processos NÃO é limitado neste sistema",
    ),
    "nada sobra rodando": (
        {"espacos", "linux"},
        "um processo que se solte do grupo pode sobrar rodando: confira",
    ),
    "sem alcançar os seus outros processos": (
        {"espacos", "sinais"},
        "um programa de má-fé pode encerrar processos seus (até este)",
    ),
    "memória limitada": ({"memoria"}, "a memória NÃO é limitada neste sistema"),
    "tamanho de arquivo limitado": (
        {"arquivo"},
        "o tamanho de arquivo NÃO é limitado neste sistema",
    ),
}


def o_que_protege(levantadas: list[str]) -> tuple[list[str], list[str]]:
    """(o que a caixa garante neste sistema, o que ela NÃO garante), em frases."""
    tem = {*levantadas, sys.platform}
    garante = [
        "processo à parte, com tempo e tamanho de resposta limitados",
        "ambiente sem as suas variáveis",
        *(sim for sim, (paredes, _) in _GARANTIAS.items() if paredes & tem),
    ]
    return garante, [nao for paredes, nao in _GARANTIAS.values() if not paredes & tem]


def ler_resposta(caminho: Path) -> tuple[str, str]:
    """(texto, "") de um arquivo de resposta, ou ("", o engano): sem_arquivo ou arquivo_estranho.

    Não segue atalhos, não abre o que não é arquivo (um cano travaria a leitura) e não lê o enorme.
    """
    try:
        estado = caminho.lstat()
    except OSError:
        return "", "sem_arquivo"
    if not stat.S_ISREG(estado.st_mode) or estado.st_size > MAIOR_RESPOSTA:
        return "", "arquivo_estranho"
    try:
        return caminho.read_text(encoding="utf-8-sig"), ""
    except (OSError, UnicodeDecodeError):
        return "", "arquivo_estranho"


# --- uma conversa com um processo de dentro --------------------------------------------------


class _Fim(Exception):
    """A conversa acabou mal; a mensagem é o nome do que houve (tempo, saiu, limite…)."""


def _exigir(bom: bool) -> None:
    if not bom:
        raise _Fim("fora_do_protocolo")


class _Sessao:
    """Um processo de dentro, do nascimento à morte certa."""

    def __init__(self, caixa: Caixa, respostas, casos):
        self.caixa, self.casos, self.morta, self.paredes = caixa, casos, False, []
        self._marca = secrets.token_hex(16)
        self._pasta = Path(tempfile.mkdtemp(prefix="caixa-")) if caixa.isolada else None
        self._fila: queue.Queue = queue.Queue(maxsize=4000)
        self._processo = self._lancar()
        _abertas.add(self)
        if _parar.is_set():  # a ordem de parar veio enquanto este processo nascia
            self._processo.terminate()
        self._leitor = threading.Thread(target=self._ler, daemon=True)
        self._leitor.start()
        pedido = {
            "mostrar_prints": not caixa.isolada,
            "pasta": str(self._pasta) if self._pasta else "",
            "limites": caixa.limites.para_dentro() if caixa.isolada else None,
            "paredes": list(caixa.paredes),
            "legiveis": _legiveis() if caixa.paredes else [],
            "tarefas": [
                {"id": t.id, "arquivo": t.arquivo, "funcao": t.funcao, "texto": texto,
                 "casos": [juiz.codificar_caso(c) for c in casos[t.id]]}
                for t, texto in respostas
            ],
        }  # fmt: skip
        try:
            self._processo.stdin.write(json.dumps(pedido).encode() + b"\n")
            self._processo.stdin.close()
        except OSError:
            pass  # morreu antes de ler: o `pronto` que não vem conta o resto
        try:
            self.paredes = [str(p) for p in self._receber(time.monotonic() + ABRIR)["pronto"]]
        except BaseException as erro:
            self.__exit__()  # também num Ctrl-C: ninguém mais o faria
            if not isinstance(erro, (_Fim, KeyError)):
                raise
            saida = f"(saída {self._processo.returncode}): {self._cauda()}"
            raise RuntimeError(f"o processo da caixa não subiu {saida}") from None

    def _lancar(self):
        dentro = str(Path(filho.__file__).resolve())
        comando = [*self.caixa.prefixo, sys.executable, "-I", dentro]
        comando = vigia.comando(comando, str(self._pasta or ""))
        opcoes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._erros = None
        if self.caixa.isolada:
            # O que o Python da caixa reclamar antes de subir, para o diagnóstico; depois vai para o nada.
            self._erros = tempfile.TemporaryFile()  # noqa: SIM115 - fecha em __exit__
            opcoes |= {"stderr": self._erros, "env": self._ambiente(), "cwd": self._pasta}
        if os.name == "nt":
            opcoes["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            opcoes["start_new_session"] = True
        return subprocess.Popen(comando, **opcoes)

    def _ambiente(self) -> dict:
        limpo = {"LANG": "C.UTF-8", "PATH": os.defpath, "CAIXA": self._marca}
        limpo |= dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR"), str(self._pasta))
        limpo |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        if "SYSTEMROOT" in os.environ:  # sem ela o Python nem sobe no Windows
            limpo["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
        return limpo

    def _cauda(self) -> str:
        if not self._erros or self._erros.closed:
            return ""
        self._erros.seek(0)
        return self._erros.read(4000).decode("utf-8", "replace")[-600:]

    def _ler(self) -> None:
        total = 0
        while linha := self._processo.stdout.readline(MAIOR_LINHA):
            total += len(linha)
            if total > MAIOR_CONVERSA or not linha.endswith(b"\n") and len(linha) == MAIOR_LINHA:
                return self._por("limite")
            self._por(linha)
        self._por(None)

    def _por(self, item) -> None:
        # Com a fila cheia por quem despeja linhas, espera-se quem lê; morta a sessão, larga-se.
        while not self.morta:
            try:
                self._fila.put(item, timeout=0.5)
                return
            except queue.Full:
                continue

    def _receber(self, prazo: float) -> dict:
        """O próximo acontecimento. Erros: `_Fim`, com o nome do que houve de errado."""
        while (resta := prazo - time.monotonic()) > 0:
            try:
                linha = self._fila.get(timeout=min(resta, 0.25))
            except queue.Empty:
                if self._pasta and _tamanho(self._pasta) > self.caixa.limites.pasta:
                    raise _Fim("limite") from None
                continue
            if linha in (None, "limite"):
                raise _Fim(linha or "saiu")
            try:
                dado = json.loads(linha)
            except (ValueError, RecursionError):
                dado = None
            _exigir(isinstance(dado, dict))
            return dado
        raise _Fim("tempo")

    def proximo(self, tarefa: Tarefa) -> Veredito:
        """O veredito da tarefa que está na vez. Depois de um fim ruim, `morta` fica True."""
        prazo = time.monotonic() + self.caixa.limites.por_tarefa
        ocorridos: list[Ocorrido] = []
        casos, termina = self.casos[tarefa.id], {"termina": tarefa.id}
        try:
            _exigir(self._receber(prazo) == {"comeca": tarefa.id})
            while (dado := self._receber(prazo)) != termina:
                if isinstance(dado.get("carga"), dict) and not ocorridos:
                    _exigir(self._receber(prazo) == termina)
                    return juiz.da_carga(tarefa, dado["carga"])
                _exigir(dado.get("caso") == len(ocorridos) < len(casos))
                try:
                    ocorridos.append(juiz.ler_ocorrido(dado))
                except (ValueError, KeyError, TypeError, OverflowError):
                    raise _Fim("fora_do_protocolo") from None
        except _Fim as fim:
            return self._fim_ruim(tarefa, casos, ocorridos, str(fim))
        return juiz.julgar(tarefa, casos, ocorridos)

    def _fim_ruim(self, tarefa, casos, ocorridos, motivo) -> Veredito:
        self.morta = True
        if motivo == "saiu":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._processo.wait(1)  # o vigia repete o fim do de dentro: é o que se quer ler
        self._encerrar()
        if motivo == "saiu" and -self._processo.returncode == getattr(signal, "SIGXCPU", None):
            motivo = "tempo"
        # O que falta conta como o motivo: mesmo que tudo até ali estivesse certo, não passa.
        ocorridos = [*ocorridos[: len(casos) - 1], Ocorrido(erro=motivo)]
        return juiz.julgar(tarefa, casos, ocorridos)

    def _encerrar(self) -> None:
        """Mata o processo, o grupo e o que tiver se soltado. Pode ser chamada mais de uma vez."""
        if os.name == "nt":
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(self._processo.pid)], capture_output=True
            )
        else:
            # O vigia mata quem nasceu na caixa e sai. Se alguém de dentro o parou, ou o matou: à força.
            self._processo.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._processo.wait(2)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._processo.pid, signal.SIGKILL)
        self._processo.wait()
        if self.caixa.isolada:
            _varrer(self._marca)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.morta = True
        self._encerrar()
        _abertas.discard(self)
        self._processo.stdout.close() if not self._leitor.is_alive() else self._leitor.join(2)
        if self._erros:
            self._erros.close()
        if self._pasta:
            _apagar(self._pasta)


# --- limpeza ---------------------------------------------------------------------------


_abertas: set[_Sessao] = set()
_parar = threading.Event()


def encerrar_todas() -> None:
    """Ctrl-C: mata o que está rodando em todas as caixas deste processo e não abre outras."""
    _parar.set()
    for sessao in list(_abertas):
        sessao._processo.terminate()


def adotar_orfaos() -> bool:
    """Linux: os netos que se soltarem viram filhos deste processo, e a varredura os acha."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    return ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER


def varrer_orfaos() -> int:
    """Mata os filhos deste processo que a caixa não conhece. Só depois de `adotar_orfaos`."""
    vivos = {sessao._processo.pid for sessao in _abertas}
    soltos = [p for p, pai in vigia.processos() if pai == os.getpid() and p not in vivos]
    return sum(map(_matar, soltos))


def _varrer(marca: str) -> None:
    """Mata quem ainda carrega a marca desta caixa no ambiente, mesmo fora do grupo."""
    procurada = f"CAIXA={marca}".encode()
    for _ in range(5):
        achou = False
        for pid, _pai in vigia.processos():
            try:
                if procurada in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    achou |= bool(_matar(pid))
            except OSError:
                continue
        if not achou:
            return
        time.sleep(0.02)


def _matar(pid: int) -> int:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return 0
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return 1


def _tamanho(pasta: Path) -> int:
    total = 0
    for raiz, _, arquivos in os.walk(pasta):
        for nome in arquivos:
            try:
                total += os.lstat(os.path.join(raiz, nome)).st_size
            except OSError:
                continue
    return total


def _apagar(pasta: Path) -> None:
    def destrancar(funcao, caminho, _):
        # Uma pasta que a resposta deixou sem permissão ainda é nossa.
        try:
            os.chmod(os.path.dirname(caminho), 0o700)
            os.chmod(caminho, 0o700)
            funcao(caminho)
        except OSError:
            pass

    shutil.rmtree(pasta, onerror=destrancar)


def _legiveis() -> list[str]:
    """O que o Python da caixa precisa ler para funcionar: ele mesmo e as bibliotecas do sistema."""
    caminhos = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    caminhos |= {str(Path(sys.executable).resolve().parent)}
    caminhos |= {sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib", "platlib")}
    caminhos |= {"/usr", "/lib", "/lib64", "/bin", "/sys/devices/system/cpu"}
    existem = {c for c in caminhos if c and os.path.isdir(c)} - {"/"}
    return [*sorted(existem), "/dev/null", "/dev/urandom"]
