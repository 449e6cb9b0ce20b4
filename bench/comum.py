"""O que os assuntos do bench dividem: medir alternando, resumir, comparar com um limite e guardar.

Duas maneiras de medir:

- `alternar`: funções neste processo, uma volta de cada por vez (A B A B…), para que um pico de uso
  da máquina não caia numa só;
- `alternar_processos`: um processo novo por execução, com o tempo de parede e o pico de memória
  residente, somada a dos filhos que ele abrir.

O que se compara é a mediana; ao lado vai a dispersão (do 1º ao 3º quartil). Todos usam o mesmo número
de threads: OMP_NUM_THREADS, 2 se ninguém disser outro.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

RAIZ = Path(__file__).resolve().parents[1]
SAIDA = RAIZ / "outputs" / "bench"
for _pasta in ("lab", "tests"):
    sys.path.insert(0, str(RAIZ / _pasta))

# Antes do primeiro numpy: as bibliotecas de conta leem isto uma vez só.
os.environ.setdefault("OMP_NUM_THREADS", "2")
for _nome in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_nome, os.environ["OMP_NUM_THREADS"])
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # só o assunto `hub` abre rede, e é em loopback

import numpy as np  # noqa: E402


@dataclass(frozen=True)
class Medida:
    """Todas as execuções de uma coisa: segundos de cada uma e, se for um processo, o pico em bytes."""

    nome: str
    segundos: list[float]
    picos: list[int] = field(default_factory=list)

    @property
    def mediana(self) -> float:
        return float(np.median(self.segundos))

    @property
    def quartis(self) -> tuple[float, float]:
        um, tres = np.percentile(self.segundos, (25, 75))
        return float(um), float(tres)

    @property
    def pico(self) -> int | None:
        """A mediana dos picos, em bytes; None se não foi medido."""
        return int(np.median(self.picos)) if self.picos else None


@dataclass(frozen=True)
class Criterio:
    """Uma linha do aceite: o número medido, o limite, e se confere. NaN nunca confere."""

    nome: str
    medido: float
    limite: float
    pelo_menos: bool = False  # o limite é um piso (tantas vezes mais rápido), e não um teto
    unidade: str = "×"

    @property
    def confere(self) -> bool:
        passa = self.medido >= self.limite if self.pelo_menos else self.medido <= self.limite
        return bool(passa)


@dataclass
class Assunto:
    """O que um assunto mediu: `medidas` (com a base das razões), `criterios` e frases.

    `tabelas` é {nome: (colunas, linhas)}: o que não cabe na tela, cada uma num CSV.
    """

    nome: str
    titulo: str
    base: str  # a medida que vale 1,00 ×
    medidas: list[Medida] = field(default_factory=list)
    criterios: list[Criterio] = field(default_factory=list)
    notas: list[str] = field(default_factory=list)
    extras: dict = field(default_factory=dict)
    tabelas: dict[str, tuple[list[str], list[list]]] = field(default_factory=dict)

    def __getitem__(self, nome: str) -> Medida:
        return next(m for m in self.medidas if m.nome == nome)

    def criterio(self, nome: str, medido: float, limite: float, **opcoes) -> None:
        """Acrescenta uma linha do aceite."""
        self.criterios.append(Criterio(nome, float(medido), limite, **opcoes))

    def razao(self, a: str, b: str) -> float:
        """Quantas vezes a mediana de `a` é a de `b`."""
        return self[a].mediana / self[b].mediana


def alternar(funcoes: dict[str, Callable[[], object]], vezes: int) -> list[Medida]:
    """Chama cada função uma vez sem contar, e depois `vezes` vezes, alternando.

    A ordem de cada volta é sorteada (sempre os mesmos sorteios): as threads de uma biblioteca ainda
    giram uns milissegundos depois da conta, e roubariam tempo sempre da mesma vizinha.
    """
    tempos: dict[str, list[float]] = {nome: [] for nome in funcoes}
    sorteio = np.random.default_rng(1)
    for volta in range(vezes + 1):
        for nome in sorteio.permutation(list(funcoes)):
            f = funcoes[nome]
            inicio = time.perf_counter()
            f()
            if volta:  # a primeira volta esquenta caches e threads
                tempos[nome].append(time.perf_counter() - inicio)
    return [Medida(nome, t) for nome, t in tempos.items()]


@dataclass(frozen=True)
class Execucao:
    """Um processo que terminou: segundos de parede, pico de memória (bytes) e o que escreveu."""

    segundos: float
    pico: int
    saida: str


# O Linux conta, no pico de um processo, a memória de quem o criou (até o exec): um pai com torch na
# memória estragaria a medida. Quem cria e espera o medido é este programa, de poucos MB.
_MEDIDOR = """
import json, os, subprocess, sys, time

def residente(pid):  # KiB do processo e dos descendentes; um que acabou de sair vale 0
    try:
        with open(f"/proc/{pid}/statm") as f:
            total = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        for fio in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{fio}/children") as f:
                total += sum(map(residente, f.read().split()))
        return total
    except OSError:
        return 0

inicio, soma, terminou = time.perf_counter(), 0, 0
p = subprocess.Popen(sys.argv[2:])
while not terminou:
    soma = max(soma, residente(p.pid)) if sys.platform == "linux" else 0
    time.sleep(0.01)
    terminou, estado, uso = os.wait4(p.pid, os.WNOHANG)
segundos = time.perf_counter() - inicio
p.returncode = os.waitstatus_to_exitcode(estado)
with open(sys.argv[1], "w", encoding="utf-8") as f:
    json.dump([segundos, max(soma, uso.ru_maxrss), p.returncode], f)
"""


def executar(comando: list[str], ambiente: dict | None = None) -> Execucao:
    """Roda o comando num processo novo, com este Python. Erros: `RuntimeError` se ele falhar.

    O pico é o maior entre o de um processo só, que o sistema conta, e a soma do processo com os
    filhos, amostrada a cada 10 ms (só no Linux). Uma página que dois dividem conta duas vezes: a
    soma pode passar do que a máquina gasta, e nunca ficar aquém.
    """
    if not hasattr(os, "wait4"):
        raise RuntimeError("medir memória de um processo pede o wait4 do Linux ou do macOS")
    with tempfile.TemporaryDirectory() as pasta:
        medido = os.path.join(pasta, "medido.json")
        feito = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MEDIDOR, medido, sys.executable, *comando],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=RAIZ,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"} | (ambiente or {}),
        )
        saida = feito.stdout.decode("utf-8", "replace")
        feito.check_returncode()
        segundos, pico, codigo = json.loads(Path(medido).read_text(encoding="utf-8"))
    if codigo:
        raise RuntimeError(f"{' '.join(comando)} saiu com {codigo}:\n{saida[-2000:]}")
    unidade = 1 if sys.platform == "darwin" else 1024  # o macOS conta em bytes; o Linux, em KiB
    return Execucao(segundos, pico * unidade, saida)


def alternar_processos(
    comandos: dict[str, list[str]], vezes: int, ambientes: dict[str, dict] | None = None
) -> list[Medida]:
    """Um processo por execução, alternando os comandos; a primeira volta não conta (disco frio)."""
    tempos: dict[str, list[Execucao]] = {nome: [] for nome in comandos}
    for volta in range(vezes + 1):
        for nome, comando in comandos.items():
            feita = executar(comando, (ambientes or {}).get(nome))
            if volta:
                tempos[nome].append(feita)
    return [
        Medida(nome, [e.segundos for e in feitas], [e.pico for e in feitas])
        for nome, feitas in tempos.items()
    ]


def maquina() -> dict:
    """Onde se mediu: sistema, processador, núcleos, carga e versões."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    versoes = {"python": platform.python_version()}
    nomes = "torch transformers numpy matplotlib tokenizers gensim scikit-learn faiss-cpu rotary-embedding-torch"
    for nome in nomes.split():
        try:
            versoes[nome] = version(nome)
        except PackageNotFoundError:
            versoes[nome] = None
    modelo = platform.processor()
    if os.path.isfile("/proc/cpuinfo"):
        linhas = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        modelo = next((x.split(":")[1].strip() for x in linhas if x.startswith("model name")), "?")
    return {
        "quando": time.strftime("%Y-%m-%d %H:%M"),
        "sistema": platform.platform(),
        "processador": modelo,
        "nucleos": os.cpu_count(),
        "threads": int(os.environ["OMP_NUM_THREADS"]),
        "carga": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "versoes": versoes,
    }
