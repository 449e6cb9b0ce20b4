"""Kill −9 em instantes sorteados, e duas execuções ao mesmo tempo na mesma pasta.

Depois de cada morte cada arquivo está inteiro (o de antes ou o novo), e uma boa execução no fim não
deixa resto. O programa que mata está em morte_subita.py.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import LAB, RAIZ, rodar
from hub_fixtures import fixture_magro  # noqa: F401 - o pytest acha a fixture pelo nome
from morte_subita import REPO, execucao_inteira
from servidor_hub import ServidorHub

pytestmark = [
    pytest.mark.hub,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="o programa que mata usa fork (Unix)"),
]
PROGRAMA = Path(__file__).with_name("morte_subita.py")
AMBIENTE = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONIOENCODING": "utf-8",
    "NO_PROXY": "127.0.0.1",
    "HF_HUB_OFFLINE": "0",
    "PYTHONPATH": f"{LAB}{os.pathsep}{RAIZ / 'tests'}",
}


@pytest.fixture
def servidor(magro):
    s = ServidorHub()
    s.publicar_pasta(REPO, magro[0])
    yield s
    s.fechar()


@pytest.mark.parametrize("quantas", [8, pytest.param(100, marks=pytest.mark.longo)])
def test_mortes_em_instantes_sorteados(quantas, servidor, tmp_path, capsys):
    semente = int(time.time())
    with capsys.disabled():
        print(f" [semente das mortes: {semente}]", end="")
    feito = subprocess.run(
        [sys.executable, str(PROGRAMA), str(quantas), str(semente), str(tmp_path), servidor.url],
        capture_output=True, encoding="utf-8", env=AMBIENTE, timeout=290,
    )  # fmt: skip
    assert feito.returncode == 0, (semente, feito.stderr[-3000:])
    relato = json.loads(feito.stdout)
    assert sum(r["mortes"] for r in relato.values()) >= quantas, (semente, relato)
    assert {n: r["restos"] for n, r in relato.items()} == dict.fromkeys(relato, [])


ESCRITOR = """
import sys, time
from pathlib import Path
from morte_subita import caderno
pasta, meu = Path(sys.argv[1]), int(sys.argv[2])
(pasta / f"pronto_{meu}").touch()
while len(list(pasta.glob("pronto_*"))) < 2:
    time.sleep(0.001)  # os dois começam juntos
for i in range(10):
    caderno(meu + 10 * i).gravar(pasta / "saidas")
"""


def test_dois_processos_gravando_na_mesma_pasta(tmp_path):
    """Dez ciclos de cada um: no fim, todas as saídas são da mesma execução."""
    dois = [
        subprocess.Popen(
            [sys.executable, "-c", ESCRITOR, str(tmp_path), str(n)], env=AMBIENTE,
            stderr=subprocess.PIPE, encoding="utf-8",
        )
        for n in (1, 2)
    ]  # fmt: skip
    for processo in dois:
        _, erro = processo.communicate(timeout=250)
        assert processo.returncode == 0, erro
    assert execucao_inteira(tmp_path / "saidas") in (91, 92)
    listados = json.loads((tmp_path / "saidas" / "resultado.json").read_text("utf-8"))["arquivos"]
    assert {*os.listdir(tmp_path / "saidas")} == {*listados, ".trava"}


BAIXADOR = """
import sys
from pathlib import Path
from morte_subita import Inteiro, Tabelas
classe = {"Inteiro": Inteiro, "Tabelas": Tabelas}[sys.argv[1]]
e = classe(Path(sys.argv[2]), sys.argv[3])
e.fazer()
e.conferir()
print(e.restos())
"""


@pytest.mark.parametrize("qual", ["Inteiro", "Tabelas"])
def test_dois_processos_baixando_o_mesmo_arquivo(qual, servidor, tmp_path):
    """O segundo espera o primeiro e acha o arquivo pronto: cada byte desce uma vez, e sem mistura."""
    comando = [sys.executable, "-c", BAIXADOR, qual]
    dois = [
        subprocess.Popen(
            [*comando, str(tmp_path), servidor.url], env=AMBIENTE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        )
        for _ in range(2)
    ]  # fmt: skip
    for processo in dois:
        saiu, erro = processo.communicate(timeout=200)
        assert processo.returncode == 0, erro
        assert saiu.strip() == "[]"
    faixas = servidor.faixas()
    grandes = [f for f in faixas if f[1] - f[0] > 65536]
    assert len(grandes) == len(set(grandes)), faixas


@pytest.mark.cli
def test_duas_licoes_ao_mesmo_tempo_na_mesma_pasta(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    opcoes = ["--modelo", "mini", "--secao", "1", "--saida", str(tmp_path / "s")]
    with ThreadPoolExecutor(2) as juntas:
        feitos = list(juntas.map(lambda _: rodar("02_embeddings.py", *opcoes), range(2)))
    assert [f.returncode for f in feitos] == [0, 0], [f.stderr for f in feitos]
    resultado = json.loads((tmp_path / "s" / "resultado.json").read_text("utf-8"))
    assert sorted(resultado["arquivos"]) == sorted(p.name for p in (tmp_path / "s").glob("[!.]*"))
