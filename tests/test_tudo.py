"""lab/tudo.py com lições de mentira: quem falha não para os outros, e a tela e a página dizem por quê."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import tudo
from conftest import RAIZ
from leitor_de_paginas import conferir, texto, todos
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes
from nucleo.paginas.resultados import FALHOU, NAO_RODOU, PRONTO, RESSALVA, Execucao

BOA = '''"""Lição de mentira."""
import sys
from pathlib import Path
from nucleo.base import caminhos
from nucleo.base.caderno import Caderno
nome = Path(__file__).stem
c = Caderno(nome, "Uma lição boa")
c.ficha = {"comando": "x", "quando": "2026-01-01 10:00", "versoes": {}, "segundos": 0.1,
           "conferencias": 2, "nao_conferem": FALHAS}
c.blocos.append("## 1 · Seção")
c.gravar(caminhos.SAIDAS / nome)
print("rodou", nome)
'''
DEFEITO = '"""Defeito."""\nimport sys\nsys.stderr.write("antes do fim\\n")\nraise ValueError("acabou <b>mal</b>")\n'
GENTIL = '''"""Erro gentil."""
from palco.erros import rodar_com_erros_gentis
from nucleo.base.erros import ErroDoUsuario
def principal():
    raise ErroDoUsuario("Não há palavra.", "Falta uma.", "Use:  python lab/04_gentil.py --palavra dog")
raise SystemExit(rodar_com_erros_gentis(principal))
'''
LERDA = '"""Lerda."""\nimport time\nprint("comecei", flush=True)\ntime.sleep(120)\n'


def montar(raiz, **licoes):
    """Um laboratório de mentira: o palco de verdade, e só as lições pedidas."""
    shutil.copytree(
        RAIZ / "lab", raiz / "lab", ignore=shutil.ignore_patterns("[0-9]*.py", "__pycache__")
    )
    shutil.copy2(RAIZ / "requirements.txt", raiz)
    (raiz / "apostilas").mkdir()
    (raiz / "apostilas" / "02_x.md").write_text("# Apostila X\n\nOi.\n", encoding="utf-8")
    for nome, codigo in licoes.items():
        (raiz / "lab" / f"{nome.removeprefix('l')}.py").write_text(codigo, encoding="utf-8")
    return raiz


def comando(raiz, *opcoes):
    ambiente = os.environ | {"COLUMNS": "80", "LAB_MODELO": "mini", "PYTHONIOENCODING": "utf-8"}
    return [sys.executable, str(raiz / "lab" / "tudo.py"), *opcoes], ambiente


def rodar_tudo(raiz, *opcoes):
    linha, ambiente = comando(raiz, *opcoes)
    return subprocess.run(
        linha, env=ambiente, cwd=raiz, capture_output=True, encoding="utf-8", timeout=250
    )


@pytest.mark.cli
def test_uma_que_falha_nao_para_as_outras(tmp_path):
    raiz = montar(
        tmp_path / "lab de mentira ção",
        l02_boa=BOA.replace("FALHAS", "[]"), l03_defeito=DEFEITO, l04_gentil=GENTIL,
        l05_meia=BOA.replace("FALHAS", '["a soma"]'), l06_muda='"""Não grava nada."""\n',
    )  # fmt: skip
    feito = rodar_tudo(raiz)
    assert feito.returncode == 1, feito.stderr[-2000:]
    tela = feito.stdout[feito.stdout.index("Situação") :]
    assert all(len(linha) <= 80 for linha in tela.splitlines()), tela
    situacoes = re.findall(r"^(pronto|falhou|com ressalva) +(\d\d_\w+) .* s\b", tela, re.M)
    assert " ".join(f"{s} {nome}," for s, nome in situacoes) == (
        "pronto 02_boa, falhou 03_defeito, falhou 04_gentil, "
        "com ressalva 05_meia, com ressalva 06_muda,"
    )
    assert re.search(r"^pronto .*outputs/02_boa/relatorio\.md$", tela, re.M)
    unida = " ".join(tela.split())
    assert "→ ValueError: acabou <b>mal</b>" in unida
    assert "→ rode sozinha: python lab/03_defeito.py" in unida
    assert "→ Não há palavra. → Use: python lab/04_gentil.py --palavra dog" in unida
    assert "→ não confere: a soma" in unida and "não gravou resultado.json" in unida
    assert "5 lições: 1 pronta, 2 com ressalva, 2 falharam." in unida
    assert feito.stdout.rstrip().splitlines()[-1] == "Agora abra outputs/index.html"
    # O que a lição disse no stderr apareceu na hora, e a página o guarda.
    assert "antes do fim" in feito.stderr
    saidas = raiz / "outputs"
    arvore = conferir((saidas / "index.html").read_text(encoding="utf-8"), saidas)
    erros = [texto(d) for d in todos(arvore, "details") if d.get("class") == "so-erro"]
    assert len(erros) == 2 and "Não há palavra." in erros[1]
    assert "ValueError: acabou <b>mal</b>" in erros[0]
    apostilas = saidas / "apostilas"
    conferir((apostilas / "02_x.html").read_text(encoding="utf-8"), apostilas)

    # Sem página (há uma pasta no lugar dela), a tela sai inteira e o erro é gentil.
    (saidas / "index.html").unlink()
    (saidas / "index.html").mkdir()
    feito = rodar_tudo(raiz, "--licoes", "02_boa")
    assert feito.returncode == 2 and "Traceback" not in feito.stderr
    assert "pronto" in feito.stdout and "1 lição: 1 pronta." in feito.stdout
    assert "Não consegui gravar" in feito.stderr and "--so-pagina" in feito.stderr
    assert "abra outputs/index.html" not in feito.stdout


@pytest.mark.cli
@pytest.mark.skipif(os.name == "nt", reason="o Ctrl-C de um grupo de processos é outro no Windows")
def test_ctrl_c_mostra_o_que_houve_e_sai_com_130(tmp_path):
    boa = BOA.replace("FALHAS", "[]")
    raiz = montar(tmp_path, l02_boa=boa, l03_lerda=LERDA, l04_boa=boa)
    linha, ambiente = comando(raiz)
    processo = subprocess.Popen(
        linha, env=ambiente, cwd=raiz, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", start_new_session=True,
    )  # fmt: skip
    for linha in processo.stdout:
        if "comecei" in linha:
            break
    time.sleep(0.2)
    os.killpg(processo.pid, signal.SIGINT)  # o terminal manda a todos do grupo
    tela, erro = processo.communicate(timeout=200)
    assert processo.returncode == 130, erro[-2000:]
    unida = " ".join(tela.split())
    for dito in ("pronto 02_boa", "interrompida 03_lerda", "não rodou 04_boa"):
        assert dito in unida
    assert tela.rstrip().splitlines()[-1] == "Agora abra outputs/index.html"
    assert "interrompida" in (raiz / "outputs" / "index.html").read_text(encoding="utf-8")


@pytest.mark.unit
def test_limpo_tira_o_que_e_do_terminal():
    assert tudo.limpo("\x1b[31merro\x1b[0m\r\n") == "erro"
    assert tudo.limpo("1 %\r50 %\r100 %\nfim\n") == "100 %\nfim"
    assert tudo.limpo("\x1b[?25lbarra\x1b[2K\x1b[1A\nfim") == "barra\nfim"


@pytest.mark.unit
def test_julgar(tmp_path, monkeypatch):
    monkeypatch.setattr(tudo.caminhos, "SAIDAS", tmp_path)
    assert tudo.julgar("x", 0, 1.0, "aviso qualquer", True).situacao == PRONTO
    assert tudo.julgar("x", 0, 1.0, "", False).situacao == RESSALVA
    morta = tudo.julgar("x", -9, 1.0, "", False)
    assert morta.situacao == FALHOU and "memória" in morta.fazer[0] and morta.erro
    comprida = tudo.julgar("x", 1, 1.0, "\n".join(map(str, range(500))), False)
    assert comprida.erro.splitlines() == [str(n) for n in range(475, 500)]


@pytest.mark.unit
def test_a_principal_de_cada_numero_vem_primeiro(tmp_path, monkeypatch):
    nomes = ["99_conferir", "06_extrapolacao", "02_contexto", "06_posicoes", "02_embeddings"]
    for nome in [*nomes, "00_preparar", "02_exercicios"]:
        (tmp_path / f"{nome}.py").touch()
    monkeypatch.setattr(tudo, "AQUI", tmp_path)
    certo = ["02_embeddings", "02_contexto", "06_posicoes", "06_extrapolacao", "99_conferir"]
    assert [p.stem for p in tudo.licoes()] == certo


@pytest.mark.unit
@pytest.mark.parametrize("onde", ["opção", "ambiente"])
def test_modelo_desconhecido_e_recusado_antes_de_rodar(monkeypatch, onde):
    monkeypatch.setattr(sys, "argv", ["tudo.py"] + ["--modelo", "xyz"] * (onde == "opção"))
    monkeypatch.setenv("LAB_MODELO", "mini" if onde == "opção" else "xyz")
    monkeypatch.setattr(tudo, "rodar", lambda *_: pytest.fail("rodou"))
    with pytest.raises(ErroDoUsuario) as dito:
        tudo.principal()
    with pytest.raises(ErroDoUsuario) as de_abrir:
        fontes.abrir("xyz")
    assert str(dito.value) == str(de_abrir.value) and "xyz" in dito.value.o_que


@pytest.mark.unit
def test_so_diz_com_quem_rodaram_se_algo_rodou(capsys):
    tudo.dizer_modelo("mini", [Execucao("x", FALHOU), Execucao("y", NAO_RODOU)])
    assert not capsys.readouterr().out
    tudo.dizer_modelo("mini", [Execucao("x", FALHOU), Execucao("y", PRONTO)])
    assert "Rodaram com mini" in capsys.readouterr().out


@pytest.mark.unit
def test_sem_apostilas_a_pagina_sai_com_aviso(tmp_path, monkeypatch):
    from nucleo.paginas import apostilas

    escrever = apostilas.escrever
    monkeypatch.setattr(tudo.caminhos, "SAIDAS", tmp_path)
    monkeypatch.setattr(apostilas, "escrever", lambda: escrever(tmp_path / "nada"))
    (aviso,) = tudo.escrever_paginas([], ("mini", "teste"))
    assert "apostilas/" in aviso and (tmp_path / "index.html").is_file()
