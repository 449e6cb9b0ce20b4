"""Kill −9, em instantes sorteados e em cada ponto, e duas execuções ao mesmo tempo na mesma pasta.

Depois de cada morte as saídas são todas de uma execução (a de antes ou a nova), e uma boa execução
no fim não deixa resto. O programa que mata está em morte_subita.py.
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
from nucleo.base import trava
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


def matar(*argumentos: str) -> dict:
    feito = subprocess.run(
        [sys.executable, str(PROGRAMA), *argumentos],
        capture_output=True, encoding="utf-8", env=AMBIENTE, timeout=290,
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr[-3000:]
    return json.loads(feito.stdout)


@pytest.mark.longo
def test_cem_mortes_em_instantes_sorteados(servidor, tmp_path, capsys):
    semente = int(time.time())
    with capsys.disabled():
        print(f" [semente das mortes: {semente}]", end="")
    relato = matar("sorteio", "100", str(semente), str(tmp_path), servidor.url)
    assert sum(r["mortes"] for r in relato.values()) == 100, (semente, relato)
    assert {n: r["restos"] for n, r in relato.items()} == dict.fromkeys(relato, []), (
        semente,
        relato,
    )


def test_morte_em_cada_operacao_de_disco_da_gravacao_e_da_recuperacao(tmp_path):
    """Sem sorteio: antes de cada replace, link, fsync… da troca, e de cada um da recuperação dela."""
    relato = matar("pontos", str(tmp_path))
    # Uma gravação de 4 arquivos faz mais de 20 operações; sem o diário, a mistura apareceria aqui.
    assert relato["mortes"] > 40 and relato["na_recuperacao"] > 150, relato
    assert relato["finais"] == [0, 1]  # houve trocas desfeitas e trocas concluídas


ESCRITOR = """
import sys, time
from pathlib import Path
from morte_subita import caderno
from nucleo.base.caderno import conferir_pasta
pasta, meu = Path(sys.argv[1]), int(sys.argv[2])
(pasta / f"pronto_{meu}").touch()
while len(list(pasta.glob("pronto_*"))) < 2:
    time.sleep(0.001)  # os dois começam juntos
for i in range(25):
    conferir_pasta(pasta / "saidas")
    caderno(meu + 10 * i, figuras=3).gravar(pasta / "saidas")
"""


def test_dois_processos_gravando_na_mesma_pasta(tmp_path):
    """Vinte e cinco ciclos de cada um: no fim, todas as saídas são da mesma execução."""
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
    assert execucao_inteira(tmp_path / "saidas") in (241, 242)
    assert not list((tmp_path / "saidas").glob(".*"))


def test_pasta_trancada_por_outra_execucao_tem_mensagem(tmp_path, monkeypatch):
    from morte_subita import caderno
    from nucleo.base import caderno as saida
    from nucleo.base.erros import ErroDoUsuario

    caderno(0).gravar(tmp_path)
    monkeypatch.setattr(saida, "_ESPERA", 0.1)
    with trava.so_um(tmp_path), pytest.raises(ErroDoUsuario, match="Outra execução") as info:
        caderno(1).gravar(tmp_path)
    assert "--saida PASTA" in info.value.o_que_fazer
    assert execucao_inteira(tmp_path) == 0
    caderno(1).gravar(tmp_path)
    assert execucao_inteira(tmp_path) == 1


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
    assert sorted(resultado["arquivos"]) == sorted(p.name for p in (tmp_path / "s").iterdir())
