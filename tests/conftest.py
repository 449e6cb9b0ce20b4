"""O que os testes dividem. Os modelos abrem uma vez por sessão e são só de leitura."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

RAIZ = Path(__file__).resolve().parents[1]
LAB = RAIZ / "lab"

# Dois processos de teste dividem os núcleos: cada conta com uma thread não atropela a outra.
if os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Nenhum teste depende da rede: quem precisa do hub abre o próprio servidor e religa isto.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def smollm2():
    """O SmolLM2 de verdade. Sem o pacote, os testes dele pulam dizendo por quê."""
    from nucleo.modelos import fontes
    from nucleo.modelos import smollm2 as fonte

    if not (fonte.convertido() or fonte.achar_gguf()):
        pytest.skip(f"o pacote {fonte.PACOTE} não está instalado: use make test")
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

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    # RLIMIT_DATA conta toda a memória que o processo escreve (não os arquivos mapeados para leitura).
    resource.setrlimit(resource.RLIMIT_DATA, (DOIS_GB, DOIS_GB))


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
    env = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"} | (ambiente or {})
    codificacao = env["PYTHONIOENCODING"].split(":")[0]
    return subprocess.run(
        [sys.executable, str(LAB / script), *opcoes],
        capture_output=True,
        encoding=codificacao,
        env=env,
        cwd=onde or RAIZ,
        timeout=280,
        preexec_fn=antes,
    )


def rodar_tudo(licao: str, pasta: Path, *opcoes: str):
    """A lição inteira no SmolLM2, com as saídas em `pasta`: (CompletedProcess, segundos de processador)."""
    import resource

    antes = resource.getrusage(resource.RUSAGE_CHILDREN)
    feito = rodar(licao, "--modelo", "smollm2", *opcoes, "--saida", str(pasta), onde=pasta.parent)
    depois = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert feito.returncode == 0, feito.stderr
    return feito, depois.ru_utime + depois.ru_stime - antes.ru_utime - antes.ru_stime


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
