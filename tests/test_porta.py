"""A porta: de um Python sem nada ao ambiente pronto, com índices de loopback e wheels de mentira.

O laboratório é o de verdade (`lab/` copiada); só o requirements.txt muda, para três pacotes minúsculos que
se chamam como os que interessam.
"""

import ast
import contextlib
import errno
import functools
import http.server
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conftest import LAB, RAIZ, erro_gentil, rodar_dentro, sem_poderes
from nucleo.base.erros import ErroDoUsuario
from nucleo.sala import ambiente, pacote, wheels
from nucleo.sala.maquina import AVISO
from test_faltas import devolver, so_de_leitura  # noqa: F401 - fixture
from test_pacote import fazer_wheel

PORTA = "lab/00_preparar.py"

# --- o índice de loopback --------------------------------------------------------------------------


class Indice(http.server.ThreadingHTTPServer):
    """Os arquivos de uma pasta e, em /NOME/, a página que lista os wheels de NOME, como manda a PEP 503.

    `pedidos` guarda (caminho, byte em que começa); com `gotas`, cada arquivo sai aos poucos.
    """

    daemon_threads = True

    def __init__(self, pasta: Path):
        self.pasta, self.pedidos, self.gotas = pasta, [], False
        super().__init__(("127.0.0.1", 0), Resposta)

    def url(self, caminho: str = "") -> str:
        return f"http://127.0.0.1:{self.server_port}/{caminho}"


class Resposta(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        dono, caminho = self.server, self.path.strip("/").replace("%2B", "+")
        comeco = int(re.sub(r"\D", "", self.headers.get("Range", "0")))
        dono.pedidos.append((caminho, comeco))
        arquivo = dono.pasta / caminho
        if arquivo.is_dir():
            nomes = sorted(p.name for p in arquivo.glob("*.whl"))
            corpo = "".join(f'<a href="{n.replace("+", "%2B")}">{n}</a>\n' for n in nomes).encode()
            tipo = "text/html"
        elif arquivo.is_file():
            corpo, tipo = arquivo.read_bytes()[comeco:], "application/octet-stream"
        else:
            self.send_error(404)
            return
        self.send_response(206 if comeco else 200)
        self.send_header("Content-Type", tipo)
        self.send_header("Content-Length", str(len(corpo)))
        self.end_headers()
        if self.command == "HEAD":
            return
        with contextlib.suppress(OSError):
            for i in range(0, len(corpo), 4096):
                self.wfile.write(corpo[i : i + 4096])
                if dono.gotas and tipo != "text/html":
                    time.sleep(0.02)


@pytest.fixture(name="indice", scope="module")
def fixture_indice(tmp_path_factory):
    """/simple é o índice de todos; /cpu/torch, o do torch para CPU. Os dois torch dizem quem são."""
    pasta = tmp_path_factory.mktemp("indice")
    for nome in ("simple/torch", "simple/nvidia-coisa", "simple/figo-do-laboratorio", "cpu/torch"):
        (pasta / nome).mkdir(parents=True)
    com_gpu = "Requires-Dist: nvidia-coisa\n"
    fazer_wheel(pasta / "simple" / "torch", "torch", "2.13.0", com_gpu)
    fazer_wheel(pasta / "simple" / "torch", "torch", "2.99.0", com_gpu)
    fazer_wheel(pasta / "simple" / "nvidia-coisa", "nvidia_coisa", "1.0")
    figo = fazer_wheel(pasta / "simple" / "figo-do-laboratorio", "figo_do_laboratorio", "3.1")
    figo.write_bytes(bytes(1_000_000) + figo.read_bytes())  # um zip aceita lixo antes de si
    fazer_wheel(pasta / "cpu" / "torch", "torch", "2.13.0+cpu")
    fazer_wheel(pasta / "cpu" / "torch", "torch", "2.12.0+cpu")
    servidor = Indice(pasta)
    threading.Thread(target=servidor.serve_forever, daemon=True).start()
    yield servidor
    servidor.shutdown()


@pytest.fixture(name="lab", scope="module")
def fixture_lab(tmp_path_factory):
    """Uma cópia de lab/ numa pasta de nome difícil, que pede três pacotes e um opcional que não existe."""
    casa = tmp_path_factory.mktemp("porta") / "Área de Trabalho" / "aula 1"
    shutil.copytree(LAB, casa / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    (casa / "requirements.txt").write_text(
        "torch==2.13.0\nfigo-do-laboratorio>=3  # por quê\n", "utf-8"
    )
    (casa / "requirements-opcionais.txt").write_text("uva-do-laboratorio\n", "utf-8")
    return casa


def ambiente_de(indice, **mais: str) -> dict[str, str]:
    fora = {n: v for n, v in os.environ.items() if not n.startswith(("PIP_", "PYTHONPATH"))}
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"}
    pip["PIP_INDEX_URL"] = indice.url("simple/")
    torch = {"LAB_INDICE_TORCH": indice.url("cpu/torch/"), "PYTHONIOENCODING": "utf-8"}
    return fora | pip | torch | mais


def abrir(
    lab: Path, *opcoes: str, env: dict, python: str = "", **mais
) -> subprocess.CompletedProcess:
    """A porta, como quem chega a digita: com o Python da máquina, e não o dos testes."""
    comando = [python or sys._base_executable, PORTA, *opcoes]
    return subprocess.run(
        comando, cwd=lab, env=env, capture_output=True, encoding="utf-8", timeout=200, **mais
    )


def no_ambiente(lab: Path, codigo: str) -> str:
    python = lab / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    feito = subprocess.run([str(python), "-c", codigo], capture_output=True, encoding="utf-8")
    return feito.stdout.strip() or feito.stderr


TORCH = "from importlib import metadata as m; print(m.version('torch'), [d.name for d in m.distributions() if d.name.startswith('nvidia')])"


@pytest.mark.cli
@pytest.mark.longo
@pytest.mark.skipif(sys.platform != "linux", reason="só no Linux o torch do índice traz a GPU")
def test_de_um_python_sem_nada_ao_ambiente_pronto(indice, lab, tmp_path):
    env = ambiente_de(indice)
    # Cortada no meio de um download: o pedaço fica, e a vez seguinte pede só o resto.
    indice.gotas = True
    processo = subprocess.Popen(
        [sys._base_executable, PORTA, "--so-pacotes"], cwd=lab, env=env, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    pedaco = lab / ".venv" / "wheels" / "figo_do_laboratorio-3.1-py3-none-any.whl.parcial"
    while not (pedaco.is_file() and pedaco.stat().st_size > 50_000):
        assert processo.poll() is None
        time.sleep(0.01)
    os.killpg(processo.pid, signal.SIGKILL)
    processo.wait()
    indice.gotas = False
    ja = pedaco.stat().st_size
    assert 50_000 < ja < 1_000_000
    antes = len(indice.pedidos)
    feito = abrir(lab, "--so-pacotes", env=env)
    assert feito.returncode == 0, feito.stdout + feito.stderr
    novos = indice.pedidos[antes:]
    assert [n for c, n in novos if "figo" in c and c.endswith(".whl") and n] == [ja]
    # O torch é o de CPU, que já tinha vindo; nada de GPU; e o opcional que não há se diz.
    assert no_ambiente(lab, TORCH) == "2.13.0+cpu []"
    assert "[--]     UMAP: fica de fora" in feito.stdout and "2 pacotes em .venv" in feito.stdout
    assert re.search(r"desceram 1,0 MB; a pasta ocupa 0,0\d GB", feito.stdout), feito.stdout
    assert "figo-do-laboratorio 3.1 · 1,0 MB" in feito.stdout.replace("_", "-")
    assert not (lab / ".venv" / "wheels").exists()

    # Com tudo pronto, nem um pedido sai.
    antes = len(indice.pedidos)
    assert abrir(lab, "--so-pacotes", env=env).returncode == 0 and len(indice.pedidos) == antes

    # Morta entre o último arquivo e o RECORD: o pip recusaria; a porta refaz.
    (registro,) = lab.glob(".venv/**/figo_do_laboratorio-3.1.dist-info/RECORD")
    registro.unlink()
    assert abrir(lab, "--so-pacotes", env=env).returncode == 0 and registro.is_file()

    # --com-gpu: o índice de todos, e o tamanho se diz antes do primeiro arquivo.
    def sem_torch():
        no_ambiente(
            lab, "import pip._internal.cli.main as p; p.main(['uninstall','-y','-q','torch'])"
        )

    sem_torch()
    antes = len(indice.pedidos)
    feito = abrir(lab, "--so-pacotes", "--com-gpu", env=env)
    assert no_ambiente(lab, TORCH) == "2.13.0 ['nvidia_coisa']"
    tela = feito.stdout
    assert tela.index("1 deles é de GPU") < tela.index("[1/2]")
    assert not any(c.startswith("cpu/") for c, _ in indice.pedidos[antes:])

    # Um wheel desta máquina ganha dos dois índices, que nem são procurados.
    sem_torch()
    daqui = fazer_wheel(tmp_path / "wheels daqui", "torch", "2.13.0+daqui").parent
    antes = len(indice.pedidos)
    feito = abrir(lab, "--so-pacotes", env=env | {"PIP_FIND_LINKS": daqui.as_uri()})
    assert no_ambiente(lab, TORCH).startswith("2.13.0+daqui"), feito.stdout + feito.stderr
    assert not any(c.startswith("cpu/") for c, _ in indice.pedidos[antes:])

    # O índice de CPU fora do ar: diz, e vai o que o pip acha.
    sem_torch()
    feito = abrir(lab, "--so-pacotes", env=env | {"LAB_INDICE_TORCH": "http://127.0.0.1:9/"})
    assert "não respondeu" in feito.stdout and no_ambiente(lab, TORCH).startswith("2.13.0 ")

    # Sem índice nenhum: uma mensagem; e o que estava pronto continua pronto.
    sem_torch()
    erro_gentil(
        abrir(lab, "--so-pacotes", env=env | {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "1"}),
        "índice de pacotes", "--do-pacote",
    )  # fmt: skip
    # Um Python que o torch não conhece: o índice responde, e não tem wheel que sirva.
    for torch in (indice.pasta / "simple" / "torch").glob("*.whl"):
        torch.rename(torch.with_name(torch.name.replace("py3-none-any", "cp39-cp39-win32")))
    novo = abrir(lab, "--so-pacotes", env=env)
    assert novo.returncode == 2 and "Traceback" not in novo.stderr
    assert ("novo demais" in novo.stderr) == (pacote.este_computador().python not in pacote.PYTHONS)


# --- quem não pode nem começar ------------------------------------------------------------------------


def velhos() -> list[str]:
    nomes = ["python2", "python2.7", *(f"python3.{n}" for n in range(4, 10))]
    achados = [shutil.which(n) for n in nomes]
    achados += [
        str(p)
        for v in ("2.*", "3.?.*")
        for p in Path.home().glob(f".pyenv/versions/{v}/bin/python")
    ]
    return [
        a for a in achados if a and subprocess.run([a, "-V"], capture_output=True).returncode == 0
    ]


@pytest.mark.cli
@pytest.mark.parametrize("python", velhos() or [None])
def test_python_antigo_le_o_recado(python):
    """O arquivo da porta é o único que um Python antigo lê: nada nele pode ser sintaxe nova."""
    if python is None:
        pytest.skip("esta máquina não tem um Python anterior ao 3.10")
    feito = subprocess.run([python, str(RAIZ / PORTA)], capture_output=True)
    erro = feito.stderr.decode("utf-8", "replace")
    assert feito.returncode == 2 and "Traceback" not in erro and "SyntaxError" not in erro
    assert "antigo demais" in erro and "Agora:" in erro


@pytest.mark.unit
def test_a_porta_se_le_em_qualquer_python():
    arvore = ast.parse((RAIZ / PORTA).read_text("utf-8"), feature_version=(3, 4))
    novos = (ast.JoinedStr, ast.AnnAssign, ast.FunctionDef, ast.NamedExpr, ast.Match)
    assert not [no for no in ast.walk(arvore) if isinstance(no, novos)]
    # A guarda vem antes de qualquer import nosso, que um Python antigo não leria.
    guarda = next(i for i, no in enumerate(arvore.body) if isinstance(no, ast.If))
    assert [no.names[0].name for no in arvore.body[:guarda] if isinstance(no, ast.Import)] == [
        "sys"
    ]


@pytest.fixture(name="vazio")
def fixture_vazio(tmp_path, monkeypatch):
    """O módulo do ambiente, com a raiz numa pasta vazia e um Python a que falta tudo."""
    raiz = tmp_path / "lab"
    raiz.mkdir()
    shutil.copy(RAIZ / "requirements.txt", raiz)
    monkeypatch.setattr(ambiente, "VENV", raiz / ".venv")
    monkeypatch.setattr(ambiente.caminhos, "RAIZ", raiz)
    monkeypatch.setattr(ambiente, "tem_tudo", lambda: False)
    monkeypatch.delenv(ambiente.DENTRO, raising=False)
    return raiz


def recusa(trecho: str) -> ErroDoUsuario:
    with pytest.raises(ErroDoUsuario, match=trecho) as erro:
        ambiente.onde_seguir(True, False, lambda _: None)
    return erro.value


@pytest.mark.unit
def test_sem_ensurepip_diz_o_pacote_do_debian(vazio, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda nome: None)
    erro = recusa("não sabe criar um ambiente")
    assert f"sudo apt install python3.{sys.version_info[1]}-venv" in erro.o_que_fazer
    assert not (vazio / ".venv").exists()
    # Há Debians em que o módulo existe e é o próprio venv que reclama.
    monkeypatch.undo()
    dito = (
        "The virtual environment was not created successfully because ensurepip is not available."
    )
    feito = subprocess.CompletedProcess([], 1, dito, "")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: feito)
    with pytest.raises(ErroDoUsuario, match="não sabe criar"):
        ambiente._modulo(Path("python3"), "venv", "x")


@pytest.mark.unit
@pytest.mark.skipif(os.name == "nt", reason="o Python de mentira é um script do shell")
@pytest.mark.parametrize(
    ("do_ambiente", "deste", "refaz"),
    [("3.99", True, True), ("3.12", True, False), ("3.99", False, False)],
)
def test_ambiente_de_um_python_novo_demais_se_refaz_com_um_que_serve(
    do_ambiente, deste, refaz, vazio, monkeypatch
):
    python = ambiente.python_do_ambiente()
    python.parent.mkdir(parents=True)
    (vazio / ".venv" / "pyvenv.cfg").touch()
    versao = tuple(map(int, do_ambiente.split(".")))
    codigo = f"import sys; sys.version_info = {versao}; exec(sys.argv[1])"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{codigo}" "$2"\n', "utf-8")
    python.chmod(0o755)
    daqui = pacote.este_computador().python
    monkeypatch.setattr(pacote, "PYTHONS", ("3.12", daqui) if deste else ("3.1",))
    feitos = []
    monkeypatch.setattr(ambiente, "_modulo", lambda *partes: feitos.append(partes[1:]))
    assert ambiente.onde_seguir(True, False, lambda _: None) == python
    assert feitos == ([("venv", "--clear", str(vazio / ".venv"))] if refaz else [])


@pytest.mark.unit
@pytest.mark.parametrize("tipo", ["arquivo", "pasta de alguém", "atalho partido"])
def test_um_venv_que_nao_e_nosso_nao_se_apaga(tipo, vazio):
    if tipo == "arquivo":
        (vazio / ".venv").write_text("meu", "utf-8")
    elif tipo == "pasta de alguém":
        (vazio / ".venv").mkdir()
        (vazio / ".venv" / "tese.txt").write_text("meu", "utf-8")
    else:
        (vazio / ".venv").symlink_to(vazio / "sumiu", target_is_directory=True)
    recusa("não é um ambiente")
    assert os.path.lexists(vazio / ".venv") and "meu" in [
        p.read_text("utf-8") for p in [vazio / ".venv", *vazio.rglob("tese.txt")] if p.is_file()
    ] + ["meu"] * (tipo == "atalho partido")


@pytest.mark.unit
@pytest.mark.parametrize(("letras", "cabe"), [(ambiente.CABE_NO_WINDOWS, True), (201, False)])
def test_caminho_longo_no_windows(letras, cabe, vazio, monkeypatch):
    funda = Path("/" + "x" * (letras - 1))
    monkeypatch.setattr(ambiente.caminhos, "RAIZ", funda)
    monkeypatch.setattr(ambiente, "_caminhos_longos", lambda: False)
    ambiente._conferir_o_lugar()  # no Linux não há limite que importe
    monkeypatch.setattr(sys, "platform", "win32")
    if cabe:
        ambiente._conferir_o_lugar()
        return
    erro = recusa("longo demais: 201 letras")
    assert r"C:\lab" in erro.o_que_fazer
    # Quem ligou os caminhos longos passa.
    monkeypatch.setattr(ambiente, "_caminhos_longos", lambda: True)
    ambiente._conferir_o_lugar()


@pytest.mark.unit
def test_o_windows_cria_uma_pasta_funda_para_saber(vazio):
    antes = list(vazio.iterdir())
    assert ambiente._caminhos_longos() and list(vazio.iterdir()) == antes


@pytest.mark.cli
def test_pasta_so_de_leitura_diz_para_copiar(tmp_path, devolver):  # noqa: F811
    lab = tmp_path / "lab de todos"
    shutil.copytree(LAB, lab / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(RAIZ / "requirements.txt", lab)
    so_de_leitura(lab)
    env = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"} | {"PYTHONIOENCODING": "utf-8"}
    # -S: um Python sem pacote nenhum.
    feito = subprocess.run(
        [sys._base_executable, "-S", PORTA], cwd=lab, env=env, capture_output=True, encoding="utf-8",
        preexec_fn=sem_poderes,
    )  # fmt: skip
    erro_gentil(feito, "Não posso escrever na pasta do laboratório", "Copie a pasta inteira")
    # E --so-conferir só confere: diz o que falta, e não cria nada.
    feito = subprocess.run(
        [sys._base_executable, "-S", PORTA, "--so-conferir"], cwd=lab, env=env, capture_output=True,
        encoding="utf-8", preexec_fn=sem_poderes,
    )  # fmt: skip
    assert (
        feito.returncode == 1
        and "[falta]  torch: não está instalado (pede ==2.13.0)" in feito.stdout
    )
    assert re.search(r"→ (python3|py) lab.00_preparar\.py", feito.stdout)
    assert not (lab / ".venv").exists()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("texto", "trechos"),
    [
        ("WARNING: Retrying (Retry(total=0)) after connection broken\nERROR: No matching distribution found for torch", ("índice de pacotes", "pen drive")),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", ("disco encheu", "Libere espaço")),
        # Um Python que se conhece, e um computador para o qual não há: um Mac com processador Intel.
        ("ERROR: No matching distribution found for torch==2.13.0", ("Não há torch para este computador", "Colab")),
        ("ERROR: algo que ninguém previu", ("não se instalaram", "algo que ninguém previu")),
    ],
)  # fmt: skip
def test_o_que_o_pip_diz_vira_uma_mensagem(texto, trechos):
    erro = str(ambiente._explicar(wheels.PipFalhou(texto)))
    assert all(t in erro for t in trechos), erro


@pytest.mark.unit
def test_python_novo_demais_diz_um_que_serve(monkeypatch):
    monkeypatch.setattr(ambiente.pacote, "PYTHONS", ("3.1", "3.2"))
    monkeypatch.setattr(
        ambiente.shutil, "which", lambda nome: nome if nome == "python3.1" else None
    )
    falha = wheels.PipFalhou("ERROR: No matching distribution found for torch==2.13.0")
    erro = ambiente._explicar(falha)
    assert "novo demais" in erro.o_que and "python3.1 lab/00_preparar.py" in erro.o_que_fazer
    monkeypatch.setattr(sys, "platform", "win32")
    assert r"py -3.2 lab\00_preparar.py" in ambiente._explicar(falha).o_que_fazer


# --- o índice do torch para CPU --------------------------------------------------------------------------


@pytest.mark.unit
def test_escolhe_o_wheel_deste_python_e_desta_versao(monkeypatch):
    monkeypatch.setattr(wheels, "tamanho_remoto", lambda url: 7)
    v = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    from packaging.tags import sys_tags

    daqui = next(str(t).split("-", 1)[1] for t in sys_tags() if str(t).startswith(f"{v}-{v}-"))
    certo = f"../torch-2.13.0%2Bcpu-{v}-{daqui}.whl#sha256=abc"
    errados = [
        f"torch-2.12.0%2Bcpu-{v}-{daqui}.whl", f"torch-2.14.0%2Bcpu-{v}-{daqui}.whl",
        f"torch-2.13.0%2Bcu130-{v}-{daqui}.whl", "torch-2.13.0%2Bcpu-cp27-cp27-win32.whl",
        "torch-2.13.0.tar.gz", f"torch-2.13.0-{v}-{daqui}.whl",
    ]  # fmt: skip
    escolher = functools.partial(
        ambiente._escolher, pagina="https://exemplo/cpu/torch/", pedido="torch==2.13.0"
    )
    for ordem in ([certo, *errados], [*errados, certo]):
        w = escolher(ordem)
        assert w.url == f"https://exemplo/cpu/torch-2.13.0%2Bcpu-{v}-{daqui}.whl"
        assert (w.sha256, w.bytes, w.pedido) == ("abc", 7, "torch==2.13.0+cpu")
        assert w.arquivo == f"torch-2.13.0+cpu-{v}-{daqui}.whl"
    assert escolher(errados) is None
    assert ambiente._enderecos('<p><a class="x" href="a&amp;b">1</a><a>2</a><A HREF="c">3</A>') == [
        "a&b",
        "c",
    ]


@pytest.mark.unit
def test_um_indice_calado_nao_segura_ninguem_e_um_lento_e_esperado(monkeypatch):
    """Calado: aceita a conexão e nunca responde. Lento: responde logo, e a página demora mais que a espera."""
    import socket

    pagina = b'<a href="torch-2.13.0%2Bcpu-py3-none-any.whl">x</a>'
    with socket.create_server(("127.0.0.1", 0)) as ouvinte:
        url = f"http://127.0.0.1:{ouvinte.getsockname()[1]}/"
        monkeypatch.setattr(ambiente, "INDICE_SEM_GPU", url)
        monkeypatch.setattr(wheels, "tamanho_remoto", lambda url: 1)
        monkeypatch.setattr(ambiente, "ESPERA", 0.2)
        assert ambiente._no_indice_sem_gpu("torch==2.13.0") is None
        ouvinte.accept()[0].close()
        monkeypatch.setattr(ambiente, "ESPERA", 5.0)

        def lento():
            conexao, _ = ouvinte.accept()
            conexao.recv(4096)
            conexao.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(pagina))
            vez.wait()
            conexao.sendall(pagina)
            conexao.close()

        vez, antes = threading.Event(), threading.Event.wait
        threading.Thread(target=lento, daemon=True).start()
        # A espera da resposta acaba logo; só então o corpo vem.
        monkeypatch.setattr(
            threading.Event,
            "wait",
            lambda e, t=None: (antes(e, t), e is not vez and t == 5.0 and vez.set())[0],
        )
        assert ambiente._no_indice_sem_gpu("torch==2.13.0").pedido == "torch==2.13.0+cpu"


@pytest.mark.unit
def test_disco_cheio_no_meio_dos_wheels(vazio, monkeypatch):
    lista = [wheels.Wheel("a-1-py3-none-any.whl", "http://127.0.0.1:9/a", "a==1", 10)]

    def cheio(*_, **__):
        raise OSError(errno.ENOSPC, "cheio")

    monkeypatch.setattr(ambiente.descida, "descer", cheio)
    monkeypatch.setattr(wheels, "que_faltam", lambda pedidos: lista)
    monkeypatch.setattr(ambiente, "_torch_sem_gpu", lambda *a: 0)
    monkeypatch.setattr(ambiente, "_pela_metade", lambda: [])
    with pytest.raises(ErroDoUsuario, match="disco encheu"):
        ambiente.instalar(False, lambda _: None, lambda *_: None)


@pytest.mark.unit
def test_o_que_nem_o_pip_traz_manda_rodar_de_novo(vazio, monkeypatch):
    """A conexão que cai no meio: o conselho é o da porta, e não o de quem monta um pacote."""

    def cair(*_, **__):
        raise ambiente.descida.Caiu("caiu")

    def negar(*_):
        raise wheels.PipFalhou("ERROR: Read timed out")

    monkeypatch.setattr(ambiente.descida, "descer", cair)
    monkeypatch.setattr(wheels, "rodar_pip", negar)
    lista = [wheels.Wheel("a-1-py3-none-any.whl", "http://127.0.0.1:9/a", "a==1", 10)]
    with pytest.raises(ErroDoUsuario, match="não chegaram inteiros") as erro:
        ambiente._descer(lista, vazio / "w", lambda _: None, lambda *_: None)
    assert "Read timed out" in erro.value.por_que and "se aproveita" in erro.value.o_que_fazer


@pytest.mark.cli
@pytest.mark.parametrize("mais", [["--modelos", "mini"], ["--so-conferir"], ["--do-pacote", "x"]])
def test_so_pacotes_nao_combina_com_o_que_ela_nao_faria(mais):
    erro_gentil(rodar_dentro("00_preparar.py", "--so-pacotes", *mais), "--so-pacotes só instala")


@pytest.mark.unit
def test_o_opcional_que_nao_ha_fica_de_fora(vazio, monkeypatch):
    vistos = []

    def faltam(pedidos):
        vistos.append(pedidos)
        if str(ambiente.OPCIONAIS) in pedidos:
            raise wheels.PipFalhou("ERROR: No matching distribution found for llvmlite")
        return []

    monkeypatch.setattr(wheels, "que_faltam", faltam)
    monkeypatch.setattr(ambiente, "_torch_sem_gpu", lambda *a: 0)
    monkeypatch.setattr(ambiente, "_pela_metade", lambda: [])
    monkeypatch.setattr(wheels, "instalar", lambda *a: None)
    feito, umap = ambiente.instalar(False, lambda _: None, lambda *_: None)
    assert umap.estado == AVISO and "UMAP" in umap.texto and len(vistos) == 2
