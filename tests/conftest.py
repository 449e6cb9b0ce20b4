"""O que os testes dividem. Os modelos abrem uma vez por sessão e são só de leitura."""

import argparse
import atexit
import gc
import hashlib
import importlib.util
import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from nucleo.base import caminhos
from palco.sinais import PEDIDOS

RAIZ = Path(__file__).resolve().parents[1]
LAB = RAIZ / "lab"

# Os testes não dependem de nada de quem os roda: nem das variáveis, nem dos caches, nem de outputs/.
# (O processo pai arruma a casa; os do xdist a herdam.)
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["LAB_TESTES_CACHE"] = str(caminhos.cache())  # só a conversão do SmolLM2 vem de lá
    for nome in list(os.environ):
        if nome.startswith(("LAB_", "HF_", "TRANSFORMERS_")) and nome != "LAB_TESTES_CACHE":
            del os.environ[nome]
    os.environ.pop("PYTHONUNBUFFERED", None)  # a tela de quem chega espera na fila até encher
    os.environ["LAB_TESTES"] = tempfile.mkdtemp(prefix="testes-do-lab-")
    atexit.register(shutil.rmtree, os.environ["LAB_TESTES"], ignore_errors=True)
CASA = Path(os.environ["LAB_TESTES"])
os.environ |= {"LAB_CACHE": str(CASA / "lab"), "HF_HOME": str(CASA / "hf"), "HF_HUB_OFFLINE": "1"}
caminhos.SAIDAS = CASA / "outputs"

# Dois processos de teste dividem os núcleos: cada conta com uma thread não atropela a outra.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# Quem nos chamou pode ignorar o Ctrl-C ou o terminal que fecha (um `&`, um `nohup`), e os filhos herdariam.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if os.name != "nt" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

_SINAIS = {s: signal.getsignal(s) for s in (*PEDIDOS, signal.SIGINT)}


def pytest_runtest_teardown():
    """Um programa que roda aqui dentro acaba sem ouvir o Ctrl-C, e os filhos dos outros testes herdariam."""
    for sinal, antes in _SINAIS.items():
        signal.signal(sinal, antes)


# Nos outros Pythons, faltar é falha: o requirements-dev.txt o pede.
COM_GENSIM = pytest.mark.skipif(
    sys.version_info >= (3, 14) and not importlib.util.find_spec("gensim"),
    reason="o gensim não tem wheel para este Python",
)


@pytest.fixture(scope="session")
def smollm2():
    """O SmolLM2 de verdade. Sem o pacote, os testes dele pulam dizendo por quê."""
    from nucleo.modelos import fontes
    from nucleo.modelos import smollm2 as fonte

    if not fonte.convertido():
        guardado = Path(os.environ["LAB_TESTES_CACHE"]) / "smollm2"
        with FileLock(CASA / "smollm2.lock"):
            if not (guardado / "origem.json").is_file():
                if not fonte.achar_gguf():
                    pytest.skip(f"o pacote {fonte.PACOTE} não está instalado: use make test")
                fonte.converter(destino=guardado)
            if not fonte.pasta_convertida().exists():
                fonte.pasta_convertida().parent.mkdir(parents=True, exist_ok=True)
                try:
                    fonte.pasta_convertida().symlink_to(guardado, target_is_directory=True)
                except OSError:  # no Windows um atalho pede privilégio; outro nome do arquivo, não
                    shutil.copytree(guardado, fonte.pasta_convertida(), copy_function=os.link)
    return fontes.abrir("smollm2")


@pytest.fixture(scope="session")
def mini():
    """O nosso GPT-2 pequeno, que vem no repositório."""
    from nucleo.modelos import fontes

    return fontes.abrir("mini")


@pytest.fixture(scope="session")
def wpe_verdadeira():
    """A wpe do GPT-2 small, (1024, 768), se a variável GPT2_WPE apontar para ela."""
    caminho = os.environ.get("GPT2_WPE")
    if not caminho:
        pytest.skip("GPT2_WPE não aponta para a wpe verdadeira (ela não vai no repositório)")
    return np.load(caminho)


@pytest.fixture(scope="session")
def tabela_sorteada():
    """(V, d) = (3000, 48) sorteada, com uma linha nula e duas iguais: os casos de borda."""
    tabela = np.random.default_rng(7).standard_normal((3000, 48)).astype(np.float32)
    tabela[10] = 0
    tabela[21] = tabela[20]
    tabela.flags.writeable = False
    return tabela


def sem_poderes() -> None:
    """Para `preexec_fn`: o root deixa de ignorar permissões, como qualquer pessoa. (Só no Linux.)

    O processo que vier perde CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH e CAP_FOWNER: um arquivo sem a
    permissão de escrita, ou de outro usuário, passa a ser recusado também a ele.
    """
    if os.geteuid() == 0:
        import ctypes

        tirar_do_conjunto = 24  # PR_CAPBSET_DROP, em prctl.h
        for poder in (1, 2, 3):
            assert ctypes.CDLL(None).prctl(tirar_do_conjunto, poder, 0, 0, 0) == 0


DOIS_GB = 2 << 30


def apertado() -> None:
    """Para `preexec_fn`: um núcleo só, e não mais de 2 GB de memória escrita. (Só no Linux.)"""
    import resource

    # Cada processo do xdist no seu núcleo: dois no mesmo esperariam um pelo outro.
    nucleos, este = sorted(os.sched_getaffinity(0)), os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    os.sched_setaffinity(0, {nucleos[int(este[2:]) % len(nucleos)]})
    # RLIMIT_DATA conta toda a memória que o processo escreve (não os arquivos mapeados para leitura).
    resource.setrlimit(resource.RLIMIT_DATA, (DOIS_GB, DOIS_GB))


APERTADO = apertado if sys.platform == "linux" else None


def rodar(
    script: str,
    *opcoes: str,
    ambiente: dict | None = None,
    onde: Path | None = None,
    antes=None,
):
    """Roda lab/SCRIPT num processo, sem rede, e devolve o CompletedProcess (texto em UTF-8).

    `antes` é o preexec_fn: o que fazer no processo novo antes do programa (limites, permissões).
    """
    env = os.environ | {"LAB_SAIDAS": str(caminhos.SAIDAS), "PYTHONIOENCODING": "utf-8"}
    env |= ambiente or {}
    return subprocess.run(
        [sys.executable, str(LAB / script), *opcoes],
        capture_output=True,
        encoding=env["PYTHONIOENCODING"].split(":")[0],
        env=env,
        cwd=onde or RAIZ,
        timeout=280,
        preexec_fn=antes,
    )


def rodar_dentro(script: str, *opcoes: str, ambiente: dict | None = None, entrada: str = ""):
    """O mesmo que `rodar`, neste processo: sem esperar outro Python e as bibliotecas dele subirem.

    Serve aos enganos de quem digita. Que o script, sozinho, também os explica, quem confere é
    test_aula, com um processo de verdade para cada um.
    """
    guardados = (sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.excepthook, dict(os.environ))
    limiar, traduzir, plural = gc.get_threshold(), argparse._, argparse.ngettext
    sinais = {s: signal.getsignal(s) for s in (*PEDIDOS, signal.SIGINT)}
    saida, erro = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    sys.argv, sys.stdin = [str(LAB / script), *opcoes], io.StringIO(entrada)
    sys.stdout, sys.stderr = saida, erro
    os.environ |= ambiente or {}
    codigo = 0
    try:
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except Exception as e:
            codigo = 1  # o de um traceback; a Aula troca o excepthook, que sai com outro
            sys.excepthook(type(e), e, e.__traceback__)
    except SystemExit as fim:
        codigo = int(fim.code or 0)
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.excepthook, variaveis = guardados
        os.environ.clear()
        os.environ |= variaveis
        argparse._, argparse.ngettext = traduzir, plural
        gc.set_threshold(*limiar)
        for sinal, antes in sinais.items():
            signal.signal(sinal, antes)
        if torch := sys.modules.get("torch"):
            torch.set_grad_enabled(True)  # a 02_contexto o desliga para o processo dela
    ditos = []
    for fluxo in (saida, erro):
        fluxo.flush()
        ditos.append(fluxo.buffer.getvalue().decode("utf-8"))
    return subprocess.CompletedProcess([script, *opcoes], codigo, *ditos)


def uma_vez(nome: str, fazer):
    """O que `fazer()` devolve (que caiba num JSON), feito uma vez por sessão de testes.

    O que ele deixa em disco, em CASA, todos os processos do xdist dividem: é só de leitura.
    """
    relato = CASA / f"{nome}.json"
    with FileLock(relato.with_suffix(".lock")):
        if not relato.exists():
            relato.write_text(json.dumps(fazer()), encoding="utf-8")
    return json.loads(relato.read_text(encoding="utf-8"))


def licao_pronta(licao: str, *opcoes: str, **mais):
    """(CompletedProcess, pasta das saídas) de uma lição, que roda `uma_vez`; `mais` é o de `rodar`."""
    nome = hashlib.sha256(repr((licao, opcoes, *mais)).encode()).hexdigest()[:8]
    pasta = CASA / "lições com espaço" / f"{Path(licao).stem} {nome}"

    def fazer():
        pasta.parent.mkdir(exist_ok=True)
        feito = rodar(licao, *opcoes, "--saida", str(pasta), onde=pasta.parent, **mais)
        return feito.returncode, feito.stdout, feito.stderr

    feito = subprocess.CompletedProcess([licao, *opcoes], *uma_vez(pasta.name, fazer))
    assert feito.returncode == 0, feito.stderr
    return feito, pasta


def ler_csv(pasta: Path, nome: str) -> list[dict[str, str]]:
    """As linhas da tabela NOME.csv de uma pasta de saídas."""
    import csv

    with (pasta / f"{nome}.csv").open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def erro_gentil(processo, *trechos: str) -> None:
    """Exige saída 2, as três partes da mensagem, nenhum traceback, e os trechos pedidos."""
    assert processo.returncode == 2, processo.stderr
    assert "Traceback" not in processo.stderr + processo.stdout
    for parte in ("✗ ", "Por quê:", "Agora:"):
        assert processo.stderr.count(parte) == 1, processo.stderr
    for trecho in trechos:
        assert trecho in processo.stderr, processo.stderr
