"""O que só a biblioteca responde, perguntado num processo ao lado: ele pode faltar ou morrer, e a
resposta é a mesma."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from conftest import LAB, RAIZ, apertado, rodar
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import amarracao
from nucleo.licoes import l02_embeddings as exp
from nucleo.licoes import l02_embeddings_ao_lado as ao_lado
from nucleo.licoes.l02_embeddings_ao_lado import AoLado
from nucleo.modelos import fontes, pontas

IDS = [5, 6, 7]


def duas_pontas(E, S):
    return vars(amarracao.amarracao(E, S)).values()


@pytest.fixture
def lado(monkeypatch):
    """Um processo de verdade, haja quantos núcleos houver; morre no fim do teste."""
    monkeypatch.setattr(ao_lado, "nucleos", lambda: 2)
    # As funções destes testes moram num módulo que o filho precisa achar.
    monkeypatch.syspath_prepend(str(RAIZ / "tests"))
    aberto = AoLado()
    yield aberto
    aberto.fechar()


def quem_carregou(lm, vezes=[0]):  # noqa: B006 - a lista vive no processo que responde
    vezes[0] += 1
    return os.getpid(), id(lm), vezes[0]


@pytest.mark.mini
def test_ao_lado_e_aqui_dizem_o_mesmo(lado, mini):
    ditos = []
    for onde in (lado, AoLado(False)):
        passagem = onde.perguntar(pontas.pela_frase, IDS, modelo=mini)
        matrizes = onde.perguntar(exp.olhar_as_pontas, duas_pontas, modelo=mini)
        limite = onde.perguntar(pontas.um_a_mais, mini.n_ctx, modelo=mini)
        meta = onde.perguntar(amarracao.endereco_no_meta)
        ditos.append([p.resposta() for p in (passagem, matrizes, limite, meta)])
    (p, duas, mensagem, meta), (q, *resto) = ditos
    for campo in ("h0", "h_final", "logits"):
        # O outro processo pode somar com outro número de threads: d parcelas em float32 (2⁻²⁴ cada).
        erro = np.abs(getattr(p, campo) - getattr(q, campo)).max()
        assert erro <= mini.d * 2**-24 * np.abs(getattr(q, campo)).max()
    assert p.formas == q.formas and [duas, mensagem, meta] == resto
    assert duas["respostas"] == duas["nucleo"] == [True] * 4
    assert "IndexError" in mensagem and meta == (0, 0)


@pytest.mark.mini
def test_duas_perguntas_abrem_o_modelo_uma_vez_noutro_processo(lado, mini):
    primeira = lado.perguntar(quem_carregou, modelo=mini)
    segunda = lado.perguntar(quem_carregou, modelo=mini)
    (pid, lm, um), (outro, mesmo, dois) = primeira.resposta(), segunda.resposta()
    assert pid == outro != os.getpid() and lm == mesmo and (um, dois) == (1, 2)
    assert primeira.resposta() == (pid, lm, um)  # esperar de novo não pergunta de novo


def espera(lm, n):
    time.sleep(60 if os.getpid() != n else 0)
    return os.getpid()


@pytest.mark.mini
def test_processo_morto_no_meio_da_pergunta_nao_perde_a_resposta(lado, mini):
    dele = lado.perguntar(os.getpid).resposta()
    presa = lado.perguntar(espera, os.getpid(), modelo=mini)
    depois = lado.perguntar(pontas.um_a_mais, mini.n_ctx, modelo=mini)
    os.kill(dele, signal.SIGKILL)
    assert presa.resposta() == os.getpid() != dele
    assert "IndexError" in depois.resposta()
    # E o que se pergunta a quem já morreu também se responde.
    assert "IndexError" in lado.perguntar(pontas.um_a_mais, mini.n_ctx, modelo=mini).resposta()


@pytest.mark.unit
def test_num_nucleo_so_nao_nasce_processo(monkeypatch):
    monkeypatch.setattr(ao_lado, "nucleos", lambda: 1)
    lado = AoLado()
    assert lado._executor is None and lado.perguntar(os.getpid).resposta() == os.getpid()
    lado.fechar()


@pytest.mark.unit
def test_sem_como_abrir_processos_pergunta_aqui(monkeypatch):
    monkeypatch.setattr(ao_lado, "nucleos", lambda: 2)
    monkeypatch.setitem(sys.modules, "joblib.externals", None)  # importar de lá levanta ImportError
    assert AoLado().perguntar(os.getpid).resposta() == os.getpid()


@pytest.mark.mini
def test_o_erro_de_quem_usa_volta_inteiro(lado, mini, tmp_path):
    # Uma pasta que some entre abrir as tabelas e montar o modelo: quem tropeça é o processo ao lado.
    import shutil

    pasta = tmp_path / "mini com acentuação"
    shutil.copytree(RAIZ / "data" / "mini", pasta)
    modelo = fontes.abrir(str(pasta))
    assert lado.perguntar(pontas.um_a_mais, mini.n_ctx, modelo=modelo).resposta()
    quebrada = tmp_path / "quebrada"
    shutil.copytree(pasta, quebrada)
    modelo = fontes.abrir(str(quebrada))
    (quebrada / "model.safetensors").write_bytes(b"nada")
    pedido = lado.perguntar(pontas.um_a_mais, mini.n_ctx, modelo=modelo)
    with pytest.raises(ErroDoUsuario) as erro:
        pedido.resposta()
    assert "o modelo inteiro não" in erro.value.o_que and "seções 1 a 4" in erro.value.o_que_fazer
    assert modelo._completo is None  # ninguém tentou de novo aqui


@pytest.mark.mini
def test_so_as_tabelas_em_disco_se_diz_e_a_licao_segue(mini):
    so_tabelas = fontes.Modelo(
        "tabelas", mini.wte, mini.wpe, mini.tokenizador, {}, "", "amarrada", "", mini.ficha
    )
    ditos = []
    pedido = AoLado(False).perguntar(pontas.pela_frase, [1], modelo=so_tabelas)
    assert pedido.resposta_ou_aviso(ditos.append) is None and "inteiro" in ditos[0]
    with pytest.raises(ErroDoUsuario):
        pedido.resposta()


def filhos(pid):
    """Os processos que PID abriu e ainda existem. (Só no Linux.)"""
    vivos = []
    for fio in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{fio}/children", encoding="ascii") as f:
            vivos += [int(x) for x in f.read().split()]
    return vivos


def acabou(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="olha os processos em /proc")
DOIS = pytest.mark.skipif(ao_lado.nucleos() < 2, reason="com um núcleo não há processo ao lado")


@LINUX
@DOIS
@pytest.mark.mini
@pytest.mark.cli
@pytest.mark.parametrize("nome", ["SIGINT", "SIGKILL"], ids=["ctrl-c", "morte"])
def test_o_processo_nao_sobrevive_a_licao(nome, tmp_path):
    sinal = getattr(signal, nome)  # pelo nome: o Windows, que pula este teste, não tem os dois
    (tmp_path / "relatorio.md").write_text("versão boa", encoding="utf-8")
    opcoes = ["--modelo", "mini", "--sem-graficos", "--saida", str(tmp_path)]
    licao = subprocess.Popen(
        [sys.executable, str(LAB / "02_embeddings.py"), *opcoes],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    for linha in licao.stdout:
        if linha.startswith("1 · "):
            break
    nasceram = filhos(licao.pid)
    assert nasceram
    # O terminal manda o Ctrl-C ao grupo inteiro; a morte só pega a lição.
    (os.killpg if sinal == signal.SIGINT else os.kill)(licao.pid, sinal)
    _, erros = licao.communicate(timeout=60)
    assert licao.returncode == (130 if sinal == signal.SIGINT else -sinal)
    assert ("Interrompido" in erros) == (sinal == signal.SIGINT)
    saidas = {p.name: p.read_text("utf-8") for p in tmp_path.iterdir()}
    assert saidas == {"relatorio.md": "versão boa"}  # a última saída boa fica
    # Na morte, quem limpa os semáforos do loky diz que os limpou; no Ctrl-C não sobra nada a dizer.
    assert "Traceback" not in erros and (sinal == signal.SIGKILL or "loky" not in erros), erros
    limite = time.monotonic() + 30
    while not all(map(acabou, nasceram)):
        assert time.monotonic() < limite, nasceram
        time.sleep(0.05)


@LINUX
@pytest.mark.mini
@pytest.mark.cli
def test_num_nucleo_ou_numa_secao_so_ninguem_importa_o_loky(tmp_path):
    opcoes = ["--modelo", "mini", "--sem-graficos", "--saida", str(tmp_path)]
    ambiente = {"PYTHONPROFILEIMPORTTIME": "1"}
    so_a_seis = rodar("02_embeddings.py", *opcoes, "--secao", "6", ambiente=ambiente)
    num_nucleo = rodar("02_embeddings.py", *opcoes, ambiente=ambiente, antes=apertado)
    for feito in (so_a_seis, num_nucleo):
        assert feito.returncode == 0, feito.stderr
        importados = {linha.split("|")[-1].strip() for linha in feito.stderr.splitlines()}
        # O último transformers do Python 3.10 importa o scikit-learn, que traz o loky: não fomos nós.
        assert "transformers" in importados
        assert "sklearn" in importados or "joblib.externals.loky" not in importados
        assert "usa o mesmo pedaço de memória" in feito.stdout


@pytest.mark.mini
@pytest.mark.cli
def test_a_licao_inteira_nao_escreve_nada_a_mais(tmp_path):
    feito = rodar(
        "02_embeddings.py", "--modelo", "mini", "--sem-graficos", "--saida", str(tmp_path)
    )
    assert feito.returncode == 0 and feito.stderr == ""
    assert feito.stdout.count("1 · O problema") == 1  # o programa não rodou de novo no filho
