"""Os scripts de exercícios inteiros: por arquivo, por pipe, e num terminal de verdade."""

import json
import os
import re
import subprocess
import sys

import pytest

from banco_de_programas import ERRADOS
from conftest import LAB, RAIZ, erro_gentil, rodar_dentro
from nucleo.exercicios import registro

pytestmark = pytest.mark.cli
SCRIPT = "02_exercicios.py"
AMBIENTE = {"LAB_MODELO": "smollm2"}


def conversar(entrada: str, pasta, *opcoes: str, colunas: int = 60, **mais):
    """Roda o script num processo, com um texto na entrada padrão, como num pipe: a tela em bytes."""
    env = os.environ | AMBIENTE | {"PYTHONIOENCODING": "utf-8", "COLUMNS": str(colunas)} | mais
    return subprocess.run(
        [sys.executable, str(LAB / SCRIPT), "--saida", str(pasta), *opcoes],
        input=entrada.encode("utf-8"), capture_output=True, env=env, cwd=RAIZ, timeout=200,
    )  # fmt: skip


def exercicios(*opcoes: str, entrada: str = ""):
    return rodar_dentro(SCRIPT, *opcoes, entrada=entrada, ambiente=AMBIENTE)


def guardadas(pasta) -> dict:
    return json.loads((pasta / "02_previsoes.json").read_text("utf-8"))["respostas"]


@pytest.mark.smollm2
def test_uma_conversa_por_pipe_em_60_colunas(tmp_path, smollm2):
    # Engano, linha vazia, número ambíguo: pergunta de novo. Depois pula uma e sai.
    feito = conversar("z\n\nb\nseis\n1.234\n5\npular\nsair\n", tmp_path)
    tela = feito.stdout.decode("utf-8")
    assert feito.returncode == 0, feito.stderr.decode()
    assert tela.count("Não entendi") >= 4 and "pode ser 1234" in tela
    r = guardadas(tmp_path)
    assert {i: r[i]["texto"] for i in r} == {"embaralhar": "b", "pedacos": "5"}
    assert r["embaralhar"]["veredito"] == r["pedacos"]["veredito"] == "errou"
    # previsto · medido · veredito, e por quê, nesta ordem, para cada uma.
    assert re.search(r"previsto +b\).*?medido .*?veredito +errou.*?por quê", tela, re.S)
    assert "Conte com o tokenizador" in " ".join(tela.split())  # o engano dos 5 tokens tem nome
    # O comando é a única coisa que não quebra: precisa dar para copiar.
    longas = [x for x in tela.splitlines() if len(x.rstrip()) > 60 and "python lab/" not in x]
    assert not longas, longas


@pytest.mark.smollm2
def test_entrada_que_acaba_nao_perde_nada(tmp_path, smollm2):
    feito = exercicios("--saida", str(tmp_path), entrada="a\n")
    assert feito.returncode == 0 and "guardado" in feito.stdout
    assert list(guardadas(tmp_path)) == ["embaralhar"]
    # E um console antigo mostra tudo, trocando o que não tem.
    antigo = conversar("", tmp_path, "--rever", PYTHONIOENCODING="cp1252")
    assert antigo.returncode == 0 and "veredito" in antigo.stdout.decode("cp1252")


@pytest.mark.smollm2
def test_respostas_de_arquivo_rever_e_recomecar(tmp_path, smollm2):
    aqui = ("--saida", str(tmp_path / "r"))
    exemplo = str(RAIZ / "data" / "exercicios" / "exemplo_02.json")
    feito = exercicios(*aqui, "--respostas", exemplo)
    assert feito.returncode == 0, feito.stderr
    assert feito.stdout.count("veredito") == 6 and "Acertou 2 de 6" in feito.stdout
    antes = guardadas(tmp_path / "r")
    # De novo, com outras respostas: o que está trancado não muda.
    outras = tmp_path / "outras.json"
    outras.write_text('{"embaralhar": "a"}', encoding="utf-8")
    exercicios(*aqui, "--respostas", str(outras))
    assert guardadas(tmp_path / "r") == antes
    visto = exercicios(*aqui, "--rever").stdout
    assert visto.count("veredito") == 6
    assert re.search(r"\(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d\)", visto)
    de_novo = exercicios(*aqui, "--recomecar")
    assert de_novo.returncode == 0 and "Guardei as previsões antigas" in de_novo.stdout
    guardado = list((tmp_path / "r").glob("02_previsoes.*.json"))
    assert len(guardado) == 1 and json.loads(guardado[0].read_text("utf-8"))["respostas"] == antes
    assert not (tmp_path / "r" / "02_previsoes.json").exists()


@pytest.mark.parametrize(
    ("texto", "trechos"),
    [
        ("{", ["JSON"]),
        ("{}", ["vazio"]),
        ('{"embaralhar": "z"}', ["embaralhar", "letra"]),
        ('{"pedacos": "muitos"}', ["pedacos", "número"]),
        ('{"forma": "a"}', ["Não conheço: forma", "forma_ou_sentido"]),
    ],
)
def test_arquivo_de_respostas_errado_nao_grava_nada(tmp_path, texto, trechos):
    (tmp_path / "r.json").write_text(texto, encoding="utf-8")
    respostas = str(tmp_path / "r.json")
    feito = exercicios("--saida", str(tmp_path / "s"), "--respostas", respostas)
    erro_gentil(feito, *trechos)
    assert not (tmp_path / "s").exists()


def test_modos_nao_se_misturam_e_numero_fora_diz(tmp_path):
    saida = str(tmp_path / "s")
    erro_gentil(exercicios("--rever", "--verificar", "--saida", saida), "não combina")
    erro_gentil(exercicios("--dica", "9", "--saida", saida), "de 1 a 7")
    assert not list(tmp_path.iterdir())


@pytest.mark.smollm2
def test_modelo_que_falta_nao_perde_a_previsao(tmp_path, smollm2):
    """Sem o modelo pedido, a previsão fica trancada, a tela diz o que fazer, e a sessão segue."""
    aqui = ("--saida", str(tmp_path))
    feito = exercicios(*aqui, "--modelo", "gpt2", entrada="b\nsair\n")
    assert feito.returncode == 0 and "Não deu para medir agora" in feito.stdout, feito.stderr
    assert "veredito" not in guardadas(tmp_path)["embaralhar"]
    # Com o modelo, a mesma previsão é medida sem perguntar de novo.
    assert "Você já tinha previsto" in exercicios(*aqui, entrada="sair\n").stdout
    assert guardadas(tmp_path)["embaralhar"]["veredito"] == "errou"


@pytest.mark.smollm2
@pytest.mark.skipif(sys.platform == "win32", reason="o pexpect precisa de um terminal Unix")
def test_sessao_num_terminal_de_verdade_com_ctrl_c_e_retomada(tmp_path, smollm2):
    import pexpect

    env = os.environ | AMBIENTE | {"HF_HUB_OFFLINE": "1", "TERM": "xterm"}

    def abrir():
        return pexpect.spawn(
            sys.executable, [str(LAB / SCRIPT), "--saida", str(tmp_path)],
            env=env, cwd=str(RAIZ), encoding="utf-8", timeout=280, dimensions=(40, 60),
        )  # fmt: skip

    s = abrir()
    s.expect("1 de 20")
    s.expect("Sua previsão")
    s.sendline("talvez")
    s.expect("Não entendi")
    s.expect("Sua previsão")
    s.sendline("a")
    s.expect("Previsão trancada às")
    s.expect("veredito.*acertou")
    s.expect("2 de 20")
    s.expect("Sua previsão")
    s.send("quase resp")  # no meio de uma palavra
    s.sendintr()
    s.expect("nada se perdeu")
    s.expect("02_exercicios.py")
    s.expect(pexpect.EOF)
    s.close()
    assert s.exitstatus == 130 and list(guardadas(tmp_path)) == ["embaralhar"]

    # De volta: começa na segunda, e não repete a primeira.
    s = abrir()
    s.expect("2 de 20")
    assert "1 de 20 " not in s.before.replace("previsões", "")
    s.expect("Sua previsão")
    s.sendline("6,0")
    s.expect("Entendi")
    s.expect("veredito.*acertou")
    s.expect("2 de 20 previs")
    s.expect("Sua previsão")
    s.sendeof()
    s.expect("guardado")
    s.expect(pexpect.EOF)
    s.close()
    assert s.exitstatus == 0 and list(guardadas(tmp_path)) == ["embaralhar", "pedacos"]


# --- escrever ----------------------------------------------------------------------------


def test_implementar_verificar_dica_e_solucao(tmp_path, capfd):
    minhas = tmp_path / "minhas respostas"
    pasta = str(minhas)
    erro_gentil(exercicios("--saida", pasta, "--verificar"), "--implementar")
    assert exercicios("--saida", pasta, "--implementar").returncode == 0
    tarefas = registro.tarefas(2)
    vazio = exercicios("--saida", pasta, "--verificar")
    assert vazio.returncode == 1 and "[falta]" in vazio.stdout and "0 de 7" in vazio.stdout
    # Uma certa, uma errada: para na errada e não chega à terceira.
    (minhas / tarefas[0].arquivo).write_text(registro.solucao(tarefas[0]), encoding="utf-8")
    errado = "import numpy as np\nprint('passei por aqui')\n" + ERRADOS["cosseno"][0][1]
    (minhas / tarefas[1].arquivo).write_text(errado, encoding="utf-8")
    feito = exercicios("--saida", pasta, "--verificar")
    assert feito.returncode == 1 and feito.stdout.count("[certo]") == 1 and "1 de 7" in feito.stdout
    partes = ["chamado", "voltou", "esperado", "significa", "engano", "--verificar", "--dica 2"]
    assert all(parte in feito.stdout for parte in partes), feito.stdout
    # O que o programa do aluno imprime passa direto do processo dele para o terminal.
    assert "produto interno" in feito.stdout and "passei por aqui" in capfd.readouterr().err
    assert tarefas[2].titulo not in feito.stdout
    # A solução só depois de passar, ou com --desisto.
    erro_gentil(exercicios("--saida", pasta, "--solucao", "2"), "--dica 2", "--desisto")
    assert "np.sqrt" in exercicios("--saida", pasta, "--solucao", "2", "--desisto").stdout
    assert "np.zeros" in exercicios("--saida", pasta, "--solucao", "1").stdout
    assert "?" in exercicios("--dica", "2").stdout
    # Todas certas: saída 0.
    for t in tarefas:
        (minhas / t.arquivo).write_text(registro.solucao(t), encoding="utf-8")
    certo = exercicios("--saida", pasta, "--verificar")
    assert certo.returncode == 0 and certo.stdout.count("[certo]") == 7
    assert "Todas passam" in certo.stdout


def test_a_06_tambem_confere(tmp_path):
    rodar_dentro("06_exercicios.py", "--saida", str(tmp_path), "--implementar")
    for t in registro.tarefas(6):
        (tmp_path / t.arquivo).write_text(registro.solucao(t), encoding="utf-8")
    certo = rodar_dentro("06_exercicios.py", "--saida", str(tmp_path), "--verificar")
    assert certo.returncode == 0 and certo.stdout.count("[certo]") == 7, certo.stdout + certo.stderr


@pytest.mark.unit
def test_minhas_respostas_ficam_fora_do_git():
    feito = subprocess.run(
        ["git", "check-ignore", "minhas_respostas/02_1_consulta.py"], cwd=RAIZ, capture_output=True
    )
    assert feito.returncode == 0
