"""A correção: uma turma inteira, com dez programas hostis, e nada que passe, trave ou sobre."""

import csv
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from conftest import LAB, RAIZ, erro_gentil, rodar, rodar_dentro
from nucleo.exercicios import apostilas, caixa, correcao, registro
from nucleo.exercicios.caixa import Caixa, Limites
from turma_de_mentira import HOSTIS, estranhas, montar

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as paredes são do Linux")
CURTO = Limites(por_tarefa=3, memoria=3 * 2**30)


def retrato(pasta) -> set:
    return {(str(p.relative_to(pasta)), p.lstat().st_mtime_ns) for p in pasta.rglob("*")}


def processos_com(trecho: bytes) -> list[int]:
    achados = []
    for p in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            with open(f"/proc/{p}/cmdline", "rb") as f:
                if p.isdigit() and trecho in f.read():
                    achados.append(int(p))
        except OSError:
            continue
    return achados


@pytest.mark.cli
@pytest.mark.longo
@pytest.mark.skipif(os.name == "nt", reason="os hostis usam chamadas de Unix")
def test_turma_de_quarenta_com_dez_hostis(tmp_path):
    turma, fora = tmp_path / "turma", tmp_path / "fora.txt"
    esperado = montar(turma, 40, alvo=fora)
    enganos = estranhas(tmp_path / "mais")
    for nome in enganos:
        (tmp_path / "mais" / nome).rename(turma / nome)
    (tmp_path / "mais" / "=1+1").rename(turma / "=1+1")
    antes, temporaria = retrato(turma), tmp_path / "tmp"
    temporaria.mkdir()
    feito = rodar(
        "corrigir.py", str(turma), "--sem-previsoes", "--sem-graficos", "--semente", "7",
        "--saida", str(tmp_path / "s"),
        ambiente={"SEGREDO_DO_PROFESSOR": "xyzzy", "TMPDIR": str(temporaria)},
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    # Cada nota é a que se esperava, função por função, e a de um não mexe na do outro.
    with (tmp_path / "s" / "notas.csv").open(encoding="utf-8", newline="") as f:
        notas = {linha["pessoa"]: linha for linha in csv.DictReader(f)}
    with (tmp_path / "s" / "retorno.csv").open(encoding="utf-8", newline="") as f:
        retorno = {(linha["pessoa"], linha["arquivo"]): linha for linha in csv.DictReader(f)}
    tarefas = {t.id: t for a in apostilas() for t in registro.tarefas(a)}
    for pessoa, funcoes in esperado.items():
        for id_, o_que in funcoes.items():
            arquivo = tarefas[id_].arquivo
            nota = notas[pessoa][arquivo.removesuffix(".py")]
            assert nota == ("1" if o_que == "passa" else "0"), (pessoa, id_, o_que)
            if o_que == "hostil":
                aceitos = HOSTIS[pessoa.removeprefix("hostil_")][1]
                assert retorno[pessoa, arquivo]["engano"] in aceitos, retorno[pessoa, arquivo]
            elif o_que != "passa":
                assert retorno[pessoa, arquivo]["engano"] == o_que, retorno[pessoa, arquivo]
    for pessoa, engano in enganos.items():
        assert retorno[pessoa, "02_2_cosseno.py"]["engano"] == engano, pessoa
    # Uma pasta com nome de fórmula não vira fórmula na planilha.
    assert "'=1+1" in notas and "=1+1" not in notas
    # Nada sobra, nada vaza, nada foi escrito na turma nem ao lado dela.
    assert not fora.exists() and retrato(turma) == antes and not list(temporaria.iterdir())
    assert "xyzzy" not in feito.stdout + (tmp_path / "s" / "retorno.csv").read_text("utf-8")
    assert not processos_com(b"time.sleep(120)") and not processos_com(b"exercicios/filho.py")
    assert "A caixa" in feito.stdout and "o engano mais comum da turma" in feito.stdout


def um(programa: str, caixa_: Caixa, id_: str = "cosseno"):
    """Os vereditos de (um programa hostil, uma função certa logo depois)."""
    hostil = next(t for t in registro.tarefas(2) if t.id == id_)
    certa = registro.por_numero(2, 6)
    return list(caixa_.vereditos([(hostil, programa), (certa, registro.solucao(certa))], 3))


@pytest.mark.unit
@LINUX
@pytest.mark.parametrize(
    "sem",
    [(), ("espacos",), ("espacos", "landlock", "seccomp")],
    ids=["tudo", "sem unshare", "só limites"],
)
def test_filhos_soltos_nao_sobram(sem):
    """Três processos que trocam de sessão e de grupo, com o número contado: nenhum sobrevive."""
    marca = f"time.sleep(97.{os.getpid()})"
    programa = (
        "import subprocess, sys\n"
        f"for _ in range(3):\n    subprocess.Popen([sys.executable, '-c', 'import time; {marca}'], start_new_session=True)\n"
        "def cosseno(a, b):\n    return 1.0\n"
    )  # fmt: skip
    ruim, boa = um(programa, Caixa.fechada(CURTO, sem))
    assert not ruim.passou and boa.passou
    assert ruim.engano == ("constante" if len(sem) == 3 else "limite")
    assert not processos_com(marca.encode())


@pytest.mark.unit
@LINUX
@pytest.mark.parametrize(
    "sem", [("espacos",), ("espacos", "landlock", "seccomp")], ids=["sem unshare", "só limites"]
)
@pytest.mark.parametrize(
    ("programa", "enganos"),
    [
        ("import os\ndef cosseno(a, b):\n    os._exit(0)\n", {"saiu"}),
        ("import sys\nsys.exit(0)\n", {"saiu"}),
        ("def cosseno(a, b):\n    while True:\n        pass\n", {"tempo"}),
        ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nimport time\ntime.sleep(60)\n", {"tempo"}),
        ("f = open('g', 'wb')\nfor _ in range(40):\n    f.write(b'0' * 10**6)\n    f.flush()\n", {"limite"}),
        ("import os\nwhile True:\n    for fd in range(3, 9):\n        try:\n            os.write(fd, b'x' * 10**5)\n"
         "        except OSError:\n            pass\n", {"limite", "fora_do_protocolo"}),
        ("def cosseno(a, b):\n    return [0.0] * 10**7\n", {"tipo"}),
        ("import threading, os\nthreading.Timer(0.2, os._exit, [0]).start()\nimport time\ntime.sleep(1)\n", {"saiu"}),
        ("raise KeyboardInterrupt\n", {"saiu"}),
        ("def cosseno(a, b):\n    return cosseno(a, b)\n", {"falhou"}),
        ("class X(float):\n    def __eq__(self, o):\n        return True\ndef cosseno(a, b):\n    return X(7)\n", {"tipo", "constante"}),
    ],
    ids=["_exit", "exit", "laço", "surdo", "arquivo", "despeja", "lista", "relógio", "ctrl-c", "recursão", "igual a tudo"],
)  # fmt: skip
def test_hostis_tambem_nas_caixas_mais_fracas(programa, enganos, sem):
    if "laço" in programa and len(sem) == 3:
        pytest.skip("um laço por forma basta")
    ruim, boa = um(programa, Caixa.fechada(CURTO, sem))
    assert not ruim.passou and ruim.engano in enganos, ruim
    assert boa.passou, boa


@pytest.mark.unit
@LINUX
def test_o_que_as_paredes_negam(tmp_path):
    """Cada tentativa, dentro da caixa fechada, contra o que a própria caixa diz que nega."""
    c = Caixa.fechada(CURTO)
    levantadas = set(c.levantadas())
    alvo = tmp_path / "fora.txt"
    ouvinte = socket.create_server(("127.0.0.1", 0))
    porta = ouvinte.getsockname()[1]
    tentativas = {
        "landlock": [
            f"open({str(alvo)!r}, 'w').write('x')",
            f"open({str(registro.SOLUCOES / '02_2_cosseno.py')!r}).read()",
            f"import os; os.listdir({str(registro.SOLUCOES)!r})",
        ],
        "seccomp": [
            f"import socket; socket.create_connection(('127.0.0.1', {porta}), 2)",
            "import os; os.fork() or os._exit(0)",
            "import subprocess; subprocess.run(['true'])",
        ],
    }
    for parede, programas in tentativas.items():
        if parede not in levantadas:
            continue
        for p in programas:
            ruim, boa = um(p + "\ndef cosseno(a, b):\n    return 1.0\n", c)
            assert ruim.engano == "limite", (p, ruim)
            assert boa.passou
    ouvinte.close()
    assert not alvo.exists()
    garante, falta = caixa.o_que_protege(sorted(levantadas))
    assert len(garante) + len(falta) == 9
    # Sem parede nenhuma, a tela precisa dizer cada coisa que não garante.
    _, tudo_falta = caixa.o_que_protege([])
    assert sum("NÃO" in f for f in tudo_falta) >= 5


@pytest.mark.unit
def test_o_ambiente_de_quem_corrige_nao_entra(monkeypatch):
    monkeypatch.setenv("SEGREDO", "xyzzy")
    ruim, _ = um(
        "import os\nraise ValueError(str(dict(os.environ)) + os.getcwd())\n", Caixa.fechada(CURTO)
    )
    assert "xyzzy" not in ruim.voltou and "ValueError" in ruim.voltou


@pytest.mark.unit
def test_arquivos_estranhos_nao_sao_abertos(tmp_path):
    enganos = estranhas(tmp_path)
    for nome in enganos:
        if nome == "cano" and not hasattr(os, "mkfifo"):
            continue
        assert caixa.ler_resposta(tmp_path / nome / "02_2_cosseno.py") == ("", "arquivo_estranho")
    assert caixa.ler_resposta(tmp_path / "nada.py") == ("", "sem_arquivo")


@pytest.mark.unit
def test_o_engano_mais_comum_conta_pessoas():
    from nucleo.exercicios.correcao import Boletim
    from nucleo.exercicios.juiz import nao_rodou

    t1, t2 = registro.tarefas(2)[:2]
    a = Boletim("a", {"x": nao_rodou(t1, "tempo"), "y": nao_rodou(t2, "tempo")})
    b = Boletim("b", {"x": nao_rodou(t1, "sintaxe"), "y": nao_rodou(t2, "por_fazer")})
    c = Boletim("c", {"x": nao_rodou(t1, "sintaxe"), "y": nao_rodou(t2, "sem_arquivo")})
    linhas = correcao.quadro_dos_enganos([a, b, c]).linhas
    assert [x[2] for x in linhas] == [2, 1] and "Python" in linhas[0][0]


@pytest.mark.unit
def test_a_figura_da_turma_vai_ate_o_numero_de_pessoas():
    from nucleo.exercicios.correcao import Boletim
    from nucleo.exercicios.juiz import nao_rodou

    t = registro.tarefas(2)[0]
    turma = [Boletim(n, {t.id: nao_rodou(t, "tempo")}) for n in "abc"]
    eixo = correcao.figura_da_turma(turma, [2]).axes[0]
    assert eixo.get_xlim() == (0, 3) and "3 pessoas" in eixo.get_title()
    assert not any("%" in texto.get_text() for texto in eixo.texts)


@pytest.mark.cli
@pytest.mark.smollm2
def test_previsoes_da_turma_e_figura(tmp_path, smollm2):
    montar(tmp_path / "turma", 14)
    for p in (tmp_path / "turma").glob("hostil_*"):
        for arquivo in p.iterdir():
            arquivo.unlink()
    feito = rodar("corrigir.py", str(tmp_path / "turma"), "--apostila", "2", "--saida", str(tmp_path / "s"),
                  ambiente={"LAB_MODELO": "smollm2"})  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    assert (tmp_path / "s" / "turma.png").read_bytes()[:4] == b"\x89PNG"
    with (tmp_path / "s" / "notas.csv").open(encoding="utf-8", newline="") as f:
        notas = {x["pessoa"]: x for x in csv.DictReader(f)}
    # embaralhar certa; onehots errada; pedacos 5 ou 6, conforme a pessoa (a certa é 6).
    assert [notas[f"pessoa_{n:02d}"]["previsoes_certas"] for n in range(4)] == ["1", "2", "1", "2"]
    assert "a pergunta que mais enganou" in feito.stdout


@pytest.mark.cli
def test_pasta_errada_diz_o_que_se_espera(tmp_path):
    saida = ("--saida", str(tmp_path / "s"))
    erro_gentil(rodar_dentro("corrigir.py", str(tmp_path / "nada"), *saida), "subpasta por pessoa")
    (tmp_path / "vazia").mkdir()
    erro_gentil(rodar_dentro("corrigir.py", str(tmp_path / "vazia"), *saida), "turma/ana/")
    assert not [p for p in (tmp_path / "s").rglob("*") if p.is_file()]


@pytest.mark.cli
@pytest.mark.skipif(os.name == "nt", reason="o sinal é de Unix")
def test_ctrl_c_para_ja_e_nao_deixa_nada(tmp_path):
    for pessoa in "abc":
        (tmp_path / "turma" / pessoa).mkdir(parents=True)
        for t in registro.tarefas(2):
            laco = f"open('rodando', 'w').close()\ndef {t.funcao}(*a):\n    while True:\n        pass\n"
            (tmp_path / "turma" / pessoa / t.arquivo).write_text(laco, encoding="utf-8")
    temporaria = tmp_path / "tmp"
    temporaria.mkdir()
    p = subprocess.Popen(
        [sys.executable, str(LAB / "corrigir.py"), str(tmp_path / "turma"), "--apostila", "2",
         "--sem-previsoes", "--limite", "100", "--saida", str(tmp_path / "s")],
        cwd=RAIZ, env=os.environ | {"TMPDIR": str(temporaria)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not list(temporaria.glob("caixa-*/rodando")):
        assert p.poll() is None
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    _, erros = p.communicate(timeout=280)
    assert p.returncode == 130 and b"Interrompido" in erros and b"Traceback" not in erros, erros
    assert not list(temporaria.iterdir()) and not list((tmp_path / "s").glob("*.csv"))
