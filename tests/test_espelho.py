"""O espelho: só o que o manifesto cita, só leitura, faixas certas, e quarenta alunos de uma vez."""

import contextlib
import hashlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import LAB, RAIZ, erro_gentil, rodar
from hub_fixtures import (  # noqa: F401 - o pytest acha as fixtures pelo nome
    apontar,
    fixture_casa,
    gpt2_magro,
)
from nucleo.base import descida
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes
from nucleo.sala import espelho, instalar, maquina, montar, pacote
from test_pacote import VERSAO, no_cache, soma

pytestmark = pytest.mark.hub
REPO = "openai-community/gpt2"
PESOS = "modelos/gpt2/model.safetensors"


@contextlib.contextmanager
def no_ar(kit: Path, app=None):
    """O espelho de verdade (uvicorn, soquete de loopback) servindo `kit`; dá a URL."""
    soquete = espelho.escutar("127.0.0.1", 0)
    servidor = espelho.servidor(app or espelho.aplicativo(kit, pacote.conferir(kit)))
    fio = threading.Thread(target=servidor.run, kwargs={"sockets": [soquete]}, daemon=True)
    fio.start()
    try:
        yield f"http://127.0.0.1:{soquete.getsockname()[1]}"
    finally:
        servidor.should_exit = True
        fio.join(10)
        soquete.close()
    assert not fio.is_alive()


@pytest.fixture(scope="module", name="kit")
def fixture_kit(tmp_path_factory):
    """Um pacote com o gpt2 magro inteiro, as tabelas do medium e o mini."""
    base = tmp_path_factory.mktemp("espelho")
    magro = gpt2_magro(base / "magro")[0]
    from huggingface_hub import constants

    with pytest.MonkeyPatch.context() as m:
        m.setattr(constants, "HF_HUB_CACHE", str(base / "casa/hf/hub"))
        m.setenv("LAB_CACHE", str(base / "casa/lab"))
        no_cache(base / "casa", "gpt2", magro)
        no_cache(base / "casa", "gpt2-medium", magro)
        montar.montar(base / "kit", ["gpt2", "gpt2-medium"], [], {})
    (base / "segredo.txt").write_text("segredo", encoding="utf-8")
    yield base / "kit"
    shutil.rmtree(base)


@pytest.fixture(scope="module", name="url")
def fixture_url(kit):
    with no_ar(kit) as url:
        yield url


def pedir(url: str, caminho: str, metodo: str = "GET", **cabecalhos):
    """(código, cabeçalhos, corpo) do pedido com o caminho tal como escrito, sem normalizar nada."""
    conexao = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    conexao.putrequest(metodo, caminho, skip_accept_encoding=True)
    for nome, valor in cabecalhos.items():
        conexao.putheader(nome.replace("_", "-"), valor)
    conexao.endheaders()
    resposta = conexao.getresponse()
    corpo = resposta.read()
    conexao.close()
    return resposta.status, {n.lower(): v for n, v in resposta.getheaders()}, corpo


# --- o que não se serve ------------------------------------------------------------------


@pytest.mark.parametrize(
    "caminho",
    [
        "/pacote/../segredo.txt", "/pacote/%2e%2e/segredo.txt", "/pacote/%2E%2E%2Fsegredo.txt",
        "/pacote/%252e%252e/segredo.txt", "/pacote/..%5csegredo.txt", "/pacote/..\\segredo.txt",
        "/pacote/modelos/../../segredo.txt", "/pacote/modelos/gpt2/../gpt2/config.json",
        "/pacote//LEIA-ME.txt", "//pacote/LEIA-ME.txt", "/pacote/./LEIA-ME.txt", "/../segredo.txt",
        "/pacote/LEIA-ME.txt/", "/pacote/LEIA-ME.txt%00", "/pacote/LEIA-ME.txt;x",
        "/pacote/%c0%ae%c0%ae/segredo.txt", "/pacote/leia-me.txt", "/pacote/C:/segredo.txt",
        f"/{REPO}/resolve/main/../../../../segredo.txt", f"/{REPO}/resolve/main/%2e%2e/x",
        f"/{REPO}/resolve/outra/config.json", "/segredo.txt", "/etc/passwd", "//etc/passwd",
        "/pacote", "/pacote/", "/pacote/modelos", "/pacote/modelos/", "/pacote/modelos/gpt2/",
        f"/{REPO}/resolve/main/", f"/{REPO}", "/api/models", "/docs", "/openapi.json",
    ],
)  # fmt: skip
def test_fora_da_lista_e_404_sem_dizer_nada(url, caminho):
    codigo, _, corpo = pedir(url, caminho)
    assert codigo == 404 and corpo == "não há isso aqui\n".encode()


@pytest.mark.parametrize("metodo", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
@pytest.mark.parametrize("caminho", ["/", "/pacote/LEIA-ME.txt", "/pacote/novo.txt"])
def test_so_leitura(url, kit, metodo, caminho):
    antes = sorted((p, p.stat().st_mtime_ns) for p in kit.rglob("*"))
    codigo, cabecalhos, _ = pedir(url, caminho, metodo, Content_Length="0")
    assert codigo == 405 and set(cabecalhos["allow"].split(", ")) == {"GET", "HEAD"}
    assert sorted((p, p.stat().st_mtime_ns) for p in kit.rglob("*")) == antes


def test_arquivo_trocado_por_atalho_com_o_espelho_no_ar_nao_sai(kit, tmp_path):
    copia = shutil.copytree(kit, tmp_path / "kit")
    with no_ar(copia) as url:
        alvo = copia / "LEIA-ME.txt"
        fora = tmp_path / "fora.txt"
        fora.write_bytes(b"x" * alvo.stat().st_size)  # do mesmo tamanho: só o atalho denuncia
        assert pedir(url, "/pacote/LEIA-ME.txt")[0] == 200
        alvo.unlink()
        alvo.symlink_to(fora)
        assert pedir(url, "/pacote/LEIA-ME.txt")[0] == 410
        shutil.move(copia / "modelos", tmp_path / "outros")
        (copia / "modelos").symlink_to(tmp_path / "outros", target_is_directory=True)
        assert pedir(url, "/pacote/modelos/gpt2/config.json")[0] == 410


def test_nao_serve_um_pacote_que_nao_confere(kit, tmp_path):
    copia = shutil.copytree(kit, tmp_path / "kit")
    (copia / "intruso.txt").write_text("x", encoding="utf-8")
    p = rodar("00_preparar.py", "--espelho", str(copia), "--porta", "0")
    erro_gentil(p, "intruso.txt: não está no manifesto")
    assert "http://" not in p.stdout  # nem chegou a abrir a porta


# --- os bytes ----------------------------------------------------------------------------


def test_cada_arquivo_do_manifesto_sai_byte_a_byte(url, kit):
    manifesto = pacote.conferir(kit)
    for nome, esperado in manifesto.arquivos.items():
        codigo, cabecalhos, corpo = pedir(url, f"/pacote/{nome}")
        assert codigo == 200 and hashlib.sha256(corpo).hexdigest() == esperado.sha256
        assert cabecalhos["etag"] == f'"{esperado.sha256}"'
        assert cabecalhos["accept-ranges"] == "bytes" and "server" not in cabecalhos
        codigo, so_cabeca, nada = pedir(url, f"/pacote/{nome}", "HEAD")
        assert codigo == 200 and nada == b"" and so_cabeca["content-length"] == str(esperado.bytes)
    assert pedir(url, "/pacote/manifesto.json")[2] == (kit / "manifesto.json").read_bytes()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(a=st.integers(0, 2_000_000), n=st.integers(1, 400_000), fim=st.sampled_from("abc"))
def test_faixa_e_o_mesmo_pedaco_do_arquivo(url, kit, a, n, fim):
    inteiro = (kit / PESOS).read_bytes()
    total = len(inteiro)
    # As três escritas do padrão: a-b, a- (até o fim) e -n (os últimos n).
    faixa, de, ate = {
        "a": (f"{a}-{a + n - 1}", a, min(a + n, total)),
        "b": (f"{a}-", a, total),
        "c": (f"-{n}", max(0, total - n), total),
    }[fim]
    codigo, cabecalhos, corpo = pedir(
        url, f"/{REPO}/resolve/main/model.safetensors", Range=f"bytes={faixa}"
    )
    if de >= total:
        assert codigo == 416 and cabecalhos["content-range"] == f"bytes */{total}"
    else:
        assert codigo == 206 and corpo == inteiro[de:ate]
        assert cabecalhos["content-range"] == f"bytes {de}-{ate - 1}/{total}"


def test_if_range_de_outra_versao_traz_o_arquivo_inteiro(url, kit):
    inteiro = (kit / PESOS).read_bytes()
    certo = f'"{soma(kit / PESOS)}"'
    assert pedir(url, f"/pacote/{PESOS}", Range="bytes=10-", If_Range=certo)[2] == inteiro[10:]
    codigo, _, corpo = pedir(url, f"/pacote/{PESOS}", Range="bytes=10-", If_Range='"outra"')
    assert codigo == 200 and corpo == inteiro


# --- quarenta alunos ---------------------------------------------------------------------


def test_quarenta_alunos_ao_mesmo_tempo_levam_o_pacote_inteiro(url, kit, tmp_path):
    manifesto = pacote.conferir(kit)
    largada = threading.Barrier(40)

    def aluno(n: int) -> dict[str, str]:
        fonte = instalar.Espelho(url, destino=tmp_path / str(n))
        largada.wait(60)
        pasta = fonte.trazer(list(manifesto.arquivos))
        somas = {p.relative_to(pasta).as_posix(): soma(p) for p in pasta.rglob("*") if p.is_file()}
        fonte.largar()
        return somas

    with ThreadPoolExecutor(40) as turma:
        levados = list(turma.map(aluno, range(40)))
    esperado = {n: a.sha256 for n, a in manifesto.arquivos.items()}
    assert len(levados) == 40 and all(x == esperado for x in levados)


def test_download_cortado_continua_do_byte_em_que_parou(kit, tmp_path, monkeypatch):
    monkeypatch.setattr(descida, "PAUSA", 0)
    from nucleo.sala.espelho import aplicativo

    dentro, faixas = aplicativo(kit, pacote.conferir(kit)), []

    async def que_cai(scope, receive, send):
        # Nas duas primeiras vezes, a conexão morre depois de uns 500 KB dos pesos.
        cabecalhos = dict(scope["headers"])
        pesos = scope["path"].endswith(PESOS)
        if pesos:
            faixas.append(cabecalhos.get(b"range", b"").decode())
        restam = 500_000

        async def enviar(mensagem):
            nonlocal restam
            corpo = mensagem.get("body", b"")
            if pesos and len(faixas) <= 2 and len(corpo) > restam:
                await send({**mensagem, "body": corpo[:restam], "more_body": True})
                raise ConnectionResetError
            restam -= len(corpo)
            await send(mensagem)

        await dentro(scope, receive, enviar)

    with no_ar(kit, que_cai) as url:
        fonte = instalar.Espelho(url, destino=tmp_path / "d")
        pasta = fonte.trazer([PESOS])
    assert soma(pasta / PESOS) == soma(kit / PESOS)
    assert faixas[0] == "" and faixas[1] == "bytes=500000-" and faixas[2] == "bytes=1000000-"
    assert not list(pasta.rglob("*.parcial"))


def test_pedaco_de_outro_pacote_nao_vira_remendo(url, kit, tmp_path):
    (tmp_path / "d/modelos/gpt2").mkdir(parents=True)
    (tmp_path / f"d/{PESOS}.parcial").write_bytes(b"x" * 1000)
    pasta = instalar.Espelho(url, destino=tmp_path / "d").trazer([PESOS])
    assert soma(pasta / PESOS) == soma(kit / PESOS)


def test_espelho_que_mente_e_recusado(kit, tmp_path, monkeypatch):
    monkeypatch.setattr(descida, "PAUSA", 0)
    dentro = espelho.aplicativo(kit, pacote.conferir(kit))

    async def que_mente(scope, receive, send):
        async def enviar(m):
            if scope["path"].endswith("config.json") and m.get("body"):
                m = {**m, "body": m["body"][:-1] + b"?"}
            await send(m)

        await dentro(scope, receive, enviar)

    with no_ar(kit, que_mente) as url, pytest.raises(ErroDoUsuario, match="chegou diferente"):
        instalar.Espelho(url, destino=tmp_path / "d").trazer(["modelos/gpt2/config.json"])
    assert not [p for p in (tmp_path / "d").rglob("*") if p.is_file()]


def test_sem_espelho_o_erro_e_gentil(tmp_path, monkeypatch):
    monkeypatch.setattr(descida, "PAUSA", 0)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        porta = s.getsockname()[1]
    with pytest.raises(ErroDoUsuario, match="falar com o espelho"):
        instalar.Espelho(f"http://127.0.0.1:{porta}")


# --- como hub ----------------------------------------------------------------------------


def test_a_biblioteca_do_hub_baixa_do_espelho(url, kit, casa, monkeypatch):
    apontar(monkeypatch, url)
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

    arquivo = hf_hub_download(REPO, "model.safetensors")
    assert soma(Path(arquivo)) == soma(kit / PESOS) and Path(arquivo).parent.name == VERSAO
    config = hf_hub_download("gpt2", "config.json")  # o nome antigo, sem a organização
    assert soma(Path(config)) == soma(kit / "modelos/gpt2/config.json")
    with pytest.raises(EntryNotFoundError):
        hf_hub_download(REPO, "generation_config.json")
    with pytest.raises(RepositoryNotFoundError):
        hf_hub_download("ninguem/nada", "config.json")


def test_o_laboratorio_baixa_do_espelho_o_inteiro_e_as_tabelas(url, kit, casa, monkeypatch):
    apontar(monkeypatch, url)
    assert maquina.conferir_hub().estado == maquina.OK
    assert soma(fontes.baixar_completo("gpt2")) == soma(kit / PESOS)
    # Das tabelas nascem os mesmos números do pacote, com a mesma versão anotada.
    fontes.abrir("gpt2-medium")
    from safetensors import safe_open

    with (
        safe_open(fontes.so_tabelas("gpt2-medium"), framework="np") as daqui,
        safe_open(kit / "modelos/gpt2-medium/model.safetensors", framework="np") as do_kit,
    ):
        assert daqui.metadata()["versao"] == do_kit.metadata()["versao"] == VERSAO
        for nome in ("wte.weight", "wpe.weight"):
            assert (daqui.get_tensor(nome) == do_kit.get_tensor(nome)).all()
    # O medium inteiro não está no pacote: o laboratório não pode tomar as tabelas por ele.
    with pytest.raises(fontes.hub.SemRede, match="404"):
        shutil.rmtree(casa / "lab")
        fontes.baixar_completo("gpt2-medium")


# --- a linha de comando ------------------------------------------------------------------


@pytest.mark.cli
def test_espelho_do_comando_ao_aluno_e_ctrl_c(kit, tmp_path):
    env = os.environ | {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    comando = [sys.executable, str(LAB / "00_preparar.py"), "--espelho", str(kit)]
    comando += ["--porta", "0", "--endereco", "127.0.0.1"]
    p = subprocess.Popen(
        comando, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=env, cwd=RAIZ
    )
    try:
        tela = ""
        while "Ctrl-C fecha" not in tela:
            linha = p.stdout.readline()
            assert linha, p.stderr.read()
            tela += linha
        url = next(x.strip() for x in tela.splitlines() if x.startswith("    http"))
        assert f"--do-pacote {url}" in tela and f'$env:HF_ENDPOINT="{url}"' in tela
        assert (
            f"HF_ENDPOINT={url} .venv/bin/python lab/00_preparar.py --modelos gpt2,gpt2-medium"
            in tela
        )
        pagina = urllib.request.urlopen(url, timeout=20).read().decode()
        assert f"--do-pacote {url}" in pagina and 'href="/pacote/laboratorio.zip"' in pagina

        casa = {"HF_HOME": str(tmp_path / "hf"), "LAB_CACHE": str(tmp_path / "lab")}
        aluno = rodar("00_preparar.py", "--do-pacote", url, ambiente=casa)
        assert aluno.returncode == 0, aluno.stdout + aluno.stderr
        achado = next((tmp_path / "hf").rglob("model.safetensors"))
        assert soma(achado) == soma(kit / PESOS)
        assert not (RAIZ / "pacote-baixado").exists()

        porta = urlsplit(url).port
        mesma = ("--porta", str(porta), "--endereco", "127.0.0.1")
        outro = rodar("00_preparar.py", "--espelho", str(kit), *mesma)
        erro_gentil(outro, f"a porta {porta}", f"--porta {porta + 1}")
        p.send_signal(signal.SIGINT)
        resto, erros = p.communicate(timeout=20)
    finally:
        p.kill()
    assert p.returncode == 0 and "Espelho fechado." in resto
    assert "Traceback" not in erros


@pytest.mark.unit
def test_endereco_de_outra_maquina_nao_e_questao_de_porta(monkeypatch):
    monkeypatch.setattr(espelho, "enderecos", lambda: ["10.0.0.7"])
    # 192.0.2.0/24 é reservada para documentação (RFC 5737): não é de máquina nenhuma.
    with pytest.raises(ErroDoUsuario, match="192.0.2.1 não é desta máquina") as e:
        espelho.escutar("192.0.2.1", 0)
    assert "--porta" not in e.value.o_que_fazer and "10.0.0.7" in e.value.o_que_fazer


@pytest.mark.unit
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="esta máquina não tem IPv6")
def test_dois_pontos_sao_todos_os_enderecos_tambem_os_ipv4():
    with espelho.escutar("::", 0) as soquete:
        porta = soquete.getsockname()[1]
        for quem in ("127.0.0.1", "::1"):
            with socket.create_connection((quem, porta), timeout=5) as cliente:
                _, de_onde = soquete.accept()
                # Chegou mesmo esta conexão; um IPv4, num soquete de IPv6, vem como ::ffff:127.0.0.1.
                assert de_onde[1] == cliente.getsockname()[1] and de_onde[0].endswith(quem)


@pytest.mark.unit
def test_a_pagina_escapa_o_endereco_por_onde_chegaram(kit):
    manifesto = pacote.conferir(kit)
    assert "<script>" not in espelho.pagina(manifesto, "http://x/<script>alert(1)</script>")
