"""O pacote do pen drive: montado, conferido, instalado sem rede, e recusado quando não confere."""

import dataclasses
import errno
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from conftest import RAIZ, erro_gentil, rodar, rodar_dentro
from hub_fixtures import (  # noqa: F401 - o pytest acha as fixtures pelo nome
    fixture_casa,
    fixture_gpt2_plantado,
    gpt2_magro,
)
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes, tensores
from nucleo.sala import instalar, maquina, montar, pacote, wheels
from nucleo.sala.pacote import Arquivo

VERSAO = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
PESOS = "modelos/gpt2/model.safetensors"


def no_cache(casa: Path, nome: str, pasta: Path) -> None:
    """Põe um modelo no cache do hub como a biblioteca o deixaria no Windows (sem atalhos)."""
    repo = casa / "hf" / "hub" / ("models--" + fontes.GPT2[nome].replace("/", "--"))
    shutil.copytree(pasta, repo / "snapshots" / VERSAO)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(VERSAO, encoding="utf-8")


def soma(arquivo: Path) -> str:
    return hashlib.sha256(arquivo.read_bytes()).hexdigest()


def mudar_manifesto(pasta: Path, mudar) -> None:
    arquivo = pasta / "manifesto.json"
    dados = json.loads(arquivo.read_text(encoding="utf-8"))
    mudar(dados)
    arquivo.write_text(json.dumps(dados), encoding="utf-8")


@pytest.fixture(autouse=True)
def fixture_zip_uma_vez_so(monkeypatch):
    """O laboratorio.zip de verdade, comprimido uma vez para o módulo inteiro."""
    monkeypatch.setattr(montar, "comprimir_repositorio", _ZIP)


_ZIP = functools.cache(montar.comprimir_repositorio)


@pytest.fixture(name="kit")
def fixture_kit(casa, tmp_path):
    """Um pacote com o GPT-2 magro (1,6 MB de wte) e o mini, sem wheels."""
    no_cache(casa, "gpt2", gpt2_magro(tmp_path / "magro")[0])
    montar.montar(tmp_path / "pen drive", ["gpt2", "mini"], [], {})
    shutil.rmtree(casa)
    return tmp_path / "pen drive"


# --- montar ------------------------------------------------------------------------------


@pytest.mark.unit
def test_manifesto_diz_o_sha256_de_tudo_o_que_ha(kit):
    dados = json.loads((kit / "manifesto.json").read_text(encoding="utf-8"))
    achados = {p.relative_to(kit).as_posix() for p in kit.rglob("*") if p.is_file()}
    assert achados == {*dados["arquivos"], "manifesto.json"}
    assert {"laboratorio.zip", "LEIA-ME.txt", PESOS, "modelos/gpt2/config.json"} < achados
    for nome, dito in dados["arquivos"].items():
        assert dito == {"bytes": (kit / nome).stat().st_size, "sha256": soma(kit / nome)}
    assert dados["modelos"] == [
        {"nome": "gpt2", "repo": "openai-community/gpt2", "versao": VERSAO, "forma": "inteiro"}
    ]
    manifesto = pacote.conferir(kit)
    assert manifesto.soma() == sum(d["bytes"] for d in dados["arquivos"].values())
    assert manifesto.digital == soma(kit / "manifesto.json")[:16]


@pytest.mark.unit
def test_o_repositorio_vai_so_com_o_que_o_git_rastreia(tmp_path):
    (tmp_path / "a.zip").write_bytes(_ZIP())
    rastreados = subprocess.run(
        ["git", "ls-files", "-z"], cwd=RAIZ, capture_output=True, check=True
    ).stdout.decode()
    esperados = {f"laboratorio/{n}" for n in rastreados.split("\0") if n and (RAIZ / n).is_file()}
    with zipfile.ZipFile(tmp_path / "a.zip") as z:
        assert set(z.namelist()) == esperados
        for nome in ("lab/00_preparar.py", "data/mini/model.safetensors"):
            assert z.read(f"laboratorio/{nome}") == (RAIZ / nome).read_bytes()
    # Sem git (a cópia extraída do zip), sai o mesmo conjunto, por mais lixo que haja em volta.
    copia = tmp_path / "laboratorio"
    for nome in ("README.md", "lab/aula.py", "outputs/LEIAME.md"):
        (copia / nome).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(RAIZ / nome, copia / nome)
    for lixo in (
        ".venv/x",
        "outputs/02/x.csv",
        "lab/__pycache__/x.pyc",
        "pacote/x",
        "corpus/x.txt",
    ):
        (copia / lixo).parent.mkdir(parents=True, exist_ok=True)
        (copia / lixo).write_text("lixo", encoding="utf-8")
    assert montar.arquivos_do_repositorio(copia) == [
        "README.md", "lab/aula.py", "outputs/LEIAME.md",
    ]  # fmt: skip


@pytest.mark.unit
def test_dos_grandes_vao_so_as_tabelas_e_inteiro_so_se_pedido(casa, tmp_path):
    pasta, valores = gpt2_magro(tmp_path / "m", prefixo="transformer.")
    no_cache(casa, "gpt2-medium", pasta)
    montar.montar(tmp_path / "k", ["gpt2-medium"], [], {})
    arquivo = tmp_path / "k/modelos/gpt2-medium/model.safetensors"
    tabelas = tensores.ler_cabecalho(arquivo)
    assert set(tabelas) == {"wte.weight", "wpe.weight"}
    for nome, t in tabelas.items():
        assert np.array_equal(tensores.ler(t), valores["transformer." + nome])
    (modelo,) = pacote.conferir(tmp_path / "k").modelos
    assert (modelo.forma, modelo.versao) == ("tabelas", VERSAO)
    # O mesmo destino, agora com o modelo inteiro: o pacote velho é trocado, sem sobras, e isso é dito.
    (tmp_path / "k" / "wheels").mkdir()
    (tmp_path / "k" / "wheels" / "velho.whl").write_bytes(b"x" * 2_000_000)
    pronto = montar.montar(tmp_path / "k", [], ["gpt2-medium"], {})
    assert not (tmp_path / "k" / "wheels").exists()
    assert [i.texto for i in pronto.itens if "saiu do pacote" in i.texto] == [
        "saiu do pacote o que não foi pedido agora: 1 arquivo, 2,0 MB"
    ]
    assert soma(arquivo) == soma(pasta / "model.safetensors")
    assert pacote.conferir(tmp_path / "k").modelos[0].forma == "inteiro"


@pytest.mark.unit
def test_montagem_interrompida_se_diz_incompleta_e_aproveita_o_que_ha(casa, tmp_path, monkeypatch):
    no_cache(casa, "gpt2", gpt2_magro(tmp_path / "magro")[0])
    kit, copiar = tmp_path / "k", pacote.copiar
    vezes = []

    def cair(origem, destino, avanco, esperado=None):
        vezes.append(destino.name)
        if len(vezes) == 2:
            raise KeyboardInterrupt
        return copiar(origem, destino, avanco, esperado)

    monkeypatch.setattr(pacote, "copiar", cair)
    with pytest.raises(KeyboardInterrupt):
        montar.montar(kit, ["gpt2"], [], {})
    with pytest.raises(ErroDoUsuario, match="a montagem parou no meio"):
        pacote.conferir(kit)
    assert (kit / "INCOMPLETO.txt").exists()
    (kit / "modelos/gpt2/model.safetensors.parcial").write_bytes(b"sobra")
    montar.montar(kit, ["gpt2"], [], {})
    assert vezes == ["config.json", "model.safetensors", "model.safetensors"]
    pacote.conferir(kit)  # e nem o .parcial nem o INCOMPLETO ficaram
    # Um byte estragado do mesmo tamanho é trocado; o que está certo, não.
    with (kit / PESOS).open("r+b") as f:
        f.seek(1000)
        f.write(b"\xff")
    montar.montar(kit, ["gpt2"], [], {})
    assert vezes[3:] == ["model.safetensors"]
    pacote.conferir(kit)


@pytest.mark.unit
def test_disco_cheio_diz_quanto_falta_antes_e_no_meio(casa, tmp_path, monkeypatch):
    no_cache(casa, "gpt2", gpt2_magro(tmp_path / "magro")[0])
    falta = sum(p.stat().st_size for p in (tmp_path / "magro").iterdir()) + len(_ZIP())
    monkeypatch.setattr(pacote, "espaco_livre", lambda _: falta - 1_000_000)
    with pytest.raises(ErroDoUsuario, match="faltam 1,0 MB"):
        montar.montar(tmp_path / "k", ["gpt2"], [], {})
    assert not (tmp_path / "k").exists()
    monkeypatch.setattr(pacote, "espaco_livre", lambda _: 0)
    with pytest.raises(ErroDoUsuario, match="há 0 kB livres"):
        montar.montar(tmp_path / "k", ["mini"], [], {})
    # O pen drive que mente o espaço enche no meio da cópia.
    monkeypatch.setattr(pacote, "espaco_livre", lambda _: 10**12)

    def cheio(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pacote.os, "fsync", cheio)
    with pytest.raises(ErroDoUsuario, match="Não cabe em"):
        montar.montar(tmp_path / "k2", ["gpt2"], [], {})
    assert not list((tmp_path / "k2").rglob("*.parcial"))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("endereco", "trecho"),
    [
        ("http://[::1", "IP:PORTA"), ("http://", "IP:PORTA"), ("http://:8765", "IP:PORTA"),
        ("http://a:b", "IP:PORTA"), ("ftp://x", "ftp://"),
    ],
)  # fmt: skip
def test_endereco_mal_escrito_nao_chega_a_rede(monkeypatch, endereco, trecho):
    monkeypatch.setattr(instalar, "Espelho", lambda *_: pytest.fail("foi à rede"))
    with pytest.raises(ErroDoUsuario, match="Não entendi o endereço") as e:
        instalar.de_onde(endereco, lambda *_: None)
    assert trecho in e.value.por_que


@pytest.mark.unit
def test_arquivo_de_mais_de_4_gb_avisa_do_fat32_e_copia_mesmo_assim(casa, tmp_path, monkeypatch):
    no_cache(casa, "gpt2", gpt2_magro(tmp_path / "magro")[0])
    monkeypatch.setattr(pacote, "TETO_FAT32", 1_000_000)
    pronto = montar.montar(tmp_path / "k", ["gpt2"], [], {})
    (aviso,) = [i for i in pronto.itens if "FAT32" in i.texto]
    assert PESOS in aviso.texto and "exFAT" in aviso.cura
    # E se o sistema recusar o tamanho, a mensagem é a mesma.
    erro = pacote.erro_de_disco(OSError(errno.EFBIG, "File too large"), Path("x"), 10)
    assert "FAT32" in erro.por_que


@pytest.mark.unit
def test_nao_monta_por_cima_das_coisas_de_ninguem(tmp_path):
    (tmp_path / "fotos.txt").write_text("minhas", encoding="utf-8")
    with pytest.raises(ErroDoUsuario, match="já tem outras coisas"):
        montar.montar(tmp_path, ["mini"], [], {})
    with pytest.raises(ErroDoUsuario, match="é um arquivo"):
        montar.montar(tmp_path / "fotos.txt", ["mini"], [], {})
    with pytest.raises(ErroDoUsuario, match="por cima do próprio laboratório"):
        montar.montar(RAIZ, ["mini"], [], {})
    assert (tmp_path / "fotos.txt").read_text(encoding="utf-8") == "minhas"


@pytest.mark.unit
def test_modelo_ausente_nao_desfaz_um_pacote_bom(kit, casa):
    with pytest.raises(ErroDoUsuario, match="O gpt2-xl não está nesta máquina"):
        montar.montar(kit, ["gpt2-xl"], [], {})
    pacote.conferir(kit)


# --- recusar -----------------------------------------------------------------------------


def trocar_um_byte(kit):
    with (kit / PESOS).open("r+b") as f:
        f.seek(-1, os.SEEK_END)
        ultimo = f.read(1)[0]
        f.seek(-1, os.SEEK_END)
        f.write(bytes([ultimo ^ 1]))


def cortar(kit):
    with (kit / PESOS).open("r+b") as f:
        f.truncate(1000)


def acrescentar(kit):
    (kit / "wheels").mkdir()
    (kit / "wheels/torch-9-py3-none-any.whl").write_bytes(b"x")


def atalho(kit):
    alvo = kit.parent / "fora.safetensors"
    shutil.move(kit / PESOS, alvo)
    (kit / PESOS).symlink_to(alvo)  # os bytes são os certos: o que se recusa é o atalho


def atalho_de_pasta(kit):
    shutil.move(kit / "modelos", kit.parent / "outro lugar")
    (kit / "modelos").symlink_to(kit.parent / "outro lugar", target_is_directory=True)


@pytest.mark.unit
@pytest.mark.parametrize(
    "estrago, trecho",
    [
        (trocar_um_byte, f"{PESOS}: não tem o sha256"),
        (cortar, f"{PESOS}: não tem o sha256"),
        (acrescentar, "wheels/torch-9-py3-none-any.whl: não está no manifesto"),
        (lambda k: (k / PESOS).unlink(), f"{PESOS}: está no manifesto e não na pasta"),
        (atalho, f"link simbólico): {PESOS}"),
        (atalho_de_pasta, "link simbólico): modelos"),
        (lambda k: (k / "manifesto.json").unlink(), "não é um pacote inteiro"),
        (lambda k: (k / "manifesto.json").write_bytes(b"{"), "está estragado"),
        (lambda k: mudar_manifesto(k, lambda d: d.update(formato=2)), "o formato é 2"),
        (lambda k: mudar_manifesto(k, lambda d: d.pop("modelos")), "está estragado"),
    ],
)
def test_pacote_que_nao_confere_e_recusado_sem_tocar_em_nada(kit, casa, estrago, trecho):
    estrago(kit)
    with pytest.raises(ErroDoUsuario) as erro:
        instalar.instalar(instalar.de_onde(str(kit), lambda *_: None))
    assert trecho in str(erro.value)
    assert not casa.exists()


@pytest.mark.unit
@pytest.mark.parametrize(
    "nome",
    [
        "../fora.json", "modelos/../../fora.json", "/etc/passwd", "modelos//x.json", "./x", "",
        "C:/x.json", "modelos\\..\\x.json", "modelos/.. /x.json", "modelos/x.json ",
        "modelos/gpt2/pytorch_model.bin", "wheels/x.tar.gz", "bin/x", "modelos/a\n.json",
        "MODELOS/gpt2/config.json",
    ],
)  # fmt: skip
def test_caminho_malicioso_no_manifesto_e_recusado(kit, casa, nome):
    mudar_manifesto(kit, lambda d: d["arquivos"].update({nome: {"bytes": 1, "sha256": "0" * 64}}))
    with pytest.raises(ErroDoUsuario) as erro:
        pacote.conferir(kit)
    assert repr(nome) in erro.value.o_que
    assert not (kit.parent / "fora.json").exists()


@pytest.mark.unit
@pytest.mark.parametrize("campo, valor", [("versao", "../../x"), ("nome", "..")])
def test_modelo_malicioso_no_manifesto_e_recusado(kit, campo, valor):
    mudar_manifesto(kit, lambda d: d["modelos"][0].update({campo: valor}))
    with pytest.raises(ErroDoUsuario, match="está estragado"):
        pacote.conferir(kit)


@pytest.mark.unit
def test_o_lixo_que_o_sistema_larga_no_pen_drive_nao_atrapalha(kit):
    limpo = pacote.conferir(kit)
    for nome in (
        ".DS_Store",
        "System Volume Information/x",
        "._LEIA-ME.txt",
        "laboratorio/lab/x.py",
    ):
        (kit / nome).parent.mkdir(exist_ok=True, parents=True)
        (kit / nome).write_bytes(b"x")
    (kit / "modelos/gpt2/._config.json").write_bytes(b"x")
    assert pacote.conferir(kit) == limpo


# --- instalar ----------------------------------------------------------------------------


@pytest.mark.unit
def test_instalado_o_modelo_abre_sem_rede_e_da_segunda_vez_nada_muda(kit, casa, tmp_path):
    original = tensores.ler_cabecalho(kit / PESOS)
    itens = instalar.instalar(instalar.Pasta(kit))
    assert {i.estado for i in itens} == {maquina.OK}
    achado = fontes.em_cache("gpt2")
    assert achado.is_relative_to(casa) and achado.read_bytes() == (kit / PESOS).read_bytes()
    aberto = fontes.abrir("gpt2")
    assert np.array_equal(aberto.wte, tensores.ler(original["wte.weight"]))
    assert aberto.tem_completo and aberto.config["n_layer"] == 1
    antes = achado.stat().st_mtime_ns
    segunda = instalar.instalar(instalar.Pasta(kit))
    assert segunda[1].texto == "gpt2: já estava neste computador"
    assert achado.stat().st_mtime_ns == antes
    # Outro gpt2 no cache não é trocado às escondidas.
    achado.write_bytes(b"outro")
    assert instalar.instalar(instalar.Pasta(kit))[1].estado == maquina.AVISO
    assert achado.read_bytes() == b"outro"


@pytest.mark.unit
def test_tabelas_e_convertido_vao_para_o_cache_do_laboratorio(casa, tmp_path, monkeypatch):
    from nucleo.modelos import smollm2

    no_cache(casa, "gpt2-xl", gpt2_magro(tmp_path / "m")[0])
    falso = gpt2_magro(smollm2.pasta_convertida())[0]
    for nome in ("tokenizer.json", "origem.json"):
        (falso / nome).write_text("{}", encoding="utf-8")
    somas = {p.name: soma(p) for p in falso.iterdir()}
    montar.montar(tmp_path / "k", ["gpt2-xl", "smollm2"], [], {})
    shutil.rmtree(casa)
    instalar.instalar(instalar.Pasta(tmp_path / "k"))
    assert {p.name: soma(p) for p in smollm2.convertido().iterdir()} == somas
    tabelas = tmp_path / "k/modelos/gpt2-xl/model.safetensors"
    assert soma(fontes.so_tabelas("gpt2-xl")) == soma(tabelas)
    assert sorted(p.name for p in (casa / "lab").iterdir()) == ["gpt2-tabelas", "smollm2"]


@pytest.mark.unit
def test_disco_cheio_ao_instalar_nao_deixa_meio_modelo(kit, casa, monkeypatch):
    def cheio(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pacote.os, "fsync", cheio)
    with pytest.raises(ErroDoUsuario, match="Não cabe em"):
        instalar.instalar(instalar.Pasta(kit))
    assert fontes.em_cache("gpt2") is None
    assert not [p for p in casa.rglob("*") if p.is_file()]


@pytest.mark.cli
@pytest.mark.hub
def test_do_pen_drive_a_licao_com_o_gpt2_plantado_e_sem_rede(gpt2_plantado, casa, tmp_path):
    """A história inteira: montar numa máquina, instalar noutra vazia, rodar a lição. Rede barrada."""
    no_cache(casa, "gpt2", gpt2_plantado)
    monta = {"HF_HOME": str(casa / "hf"), "LAB_CACHE": str(casa / "lab")}
    kit = tmp_path / "ação pen drive"
    p = rodar("00_preparar.py", "--pacote", str(kit), "--sem-wheels", ambiente=monta)
    assert p.returncode == 0, p.stdout + p.stderr
    # O plantado tem a forma do GPT-2, e não os pesos: quem monta fica sabendo.
    assert "gpt2: o arquivo tem" in p.stdout and "não distribua" in p.stdout
    digital = p.stdout.split("comparar: ")[1].split()[0]
    shutil.rmtree(casa)

    with zipfile.ZipFile(kit / "laboratorio.zip") as z:
        z.extractall(tmp_path / "aluno")
    lab = tmp_path / "aluno/laboratorio/lab"
    # Um sitecustomize que derruba o processo ao primeiro soquete para fora ou nome consultado.
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(
        "import socket\n"
        "def barrado(*a, **k): raise SystemExit('abriu rede')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = barrado\n",
        encoding="utf-8",
    )
    env = os.environ | {
        "HOME": str(tmp_path / "aluno"), "HF_HOME": str(tmp_path / "aluno/hf"), "LAB_MODELO": "gpt2",
        "LAB_CACHE": str(tmp_path / "aluno/cache"), "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": str(tmp_path / "site"),
    }  # fmt: skip

    def aluno(*comando):
        return subprocess.run(
            [sys.executable, *map(str, comando)], env=env, capture_output=True, encoding="utf-8"
        )

    p = aluno(lab / "00_preparar.py", "--do-pacote", kit)
    assert p.returncode == 0, p.stdout + p.stderr
    assert f"impressão digital {digital}" in p.stdout
    p = aluno(lab / "02_embeddings.py", "--modelo", "gpt2", "--secao", "3", "--sem-graficos")
    assert p.returncode == 0, p.stdout + p.stderr
    assert "Quem responde: gpt2 (wte 50.257 × 768" in p.stdout
    shutil.rmtree(tmp_path / "aluno")
    shutil.rmtree(kit)


@pytest.mark.cli
def test_os_erros_da_linha_de_comando_sao_gentis(tmp_path):
    nada = str(tmp_path / "nada")
    erro_gentil(rodar_dentro("00_preparar.py", "--do-pacote", nada), "Não há uma pasta")
    (tmp_path / "vazia").mkdir()
    p = rodar_dentro("00_preparar.py", "--do-pacote", str(tmp_path / "vazia"))
    erro_gentil(p, "não é um pacote inteiro")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    erro_gentil(rodar_dentro("00_preparar.py", "--pacote", a, "--espelho", b), "não combina")
    erro_gentil(rodar_dentro("00_preparar.py", "--sem-wheels"), "só valem com --pacote")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["vazia"]  # nada começou


# --- os wheels ---------------------------------------------------------------------------


def fazer_wheel(pasta: Path, nome: str, versao: str, pede: str = "") -> Path:
    """Um wheel de verdade, mínimo, como um build faria: o módulo, METADATA, WHEEL e RECORD."""
    pasta.mkdir(exist_ok=True)
    info = f"{nome}-{versao}.dist-info"
    arquivos = {
        f"{nome}.py": f"versao = {versao!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {nome}\nVersion: {versao}\n{pede}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    registro = "".join(f"{n},,\n" for n in arquivos) + f"{info}/RECORD,,\n"
    destino = pasta / f"{nome}-{versao}-py3-none-any.whl"
    with zipfile.ZipFile(destino, "w") as z:
        for n, texto in (arquivos | {f"{info}/RECORD": registro}).items():
            z.writestr(n, texto)
    return destino


@pytest.fixture(name="indice")
def fixture_indice(tmp_path, monkeypatch):
    """Dois wheels numa pasta, um dependendo do outro, e o pip sem nenhum outro lugar aonde ir."""
    pasta = tmp_path / "indice"
    fazer_wheel(pasta, "ameixa_do_laboratorio", "1.2")
    fazer_wheel(pasta, "ameixa_do_laboratorio", "1.0")
    fazer_wheel(pasta, "figo_do_laboratorio", "3.1", "Requires-Dist: ameixa-do-laboratorio<2\n")
    requisitos = tmp_path / "requirements.txt"
    requisitos.write_text("figo-do-laboratorio>=3\n", encoding="utf-8")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", pasta.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(wheels, "REQUISITOS", requisitos)
    return pasta


@pytest.mark.cli
@pytest.mark.longo
def test_os_wheels_vao_no_pacote_e_um_ambiente_vazio_os_instala_sem_rede(
    indice, casa, tmp_path, monkeypatch
):
    daqui = pacote.este_computador()
    escolhidos, itens = wheels.escolher([daqui.plataforma], [daqui.python])
    lista = escolhidos[daqui]
    assert itens[0].estado == maquina.OK and "2 arquivos" in itens[0].texto
    assert sorted(w.arquivo for w in lista) == [
        "ameixa_do_laboratorio-1.2-py3-none-any.whl", "figo_do_laboratorio-3.1-py3-none-any.whl",
    ]  # fmt: skip
    assert all(w.bytes == (indice / w.arquivo).stat().st_size for w in lista)
    kit = tmp_path / "kit"
    pronto = montar.montar(kit, ["mini"], [], {daqui: lista})
    assert any(f"wheels para {daqui}: 2 arquivos" in i.texto for i in pronto.itens)
    assert set(pacote.conferir(kit).wheels[daqui]) == {f"wheels/{w.arquivo}" for w in lista}
    # Um wheel estragado no pen drive, mesmo do tamanho certo, desce de novo ao remontar.
    certo = (kit / "wheels" / lista[0].arquivo).read_bytes()
    (kit / "wheels" / lista[0].arquivo).write_bytes(bytes(len(certo)))
    com_soma = [dataclasses.replace(w, sha256=soma(indice / w.arquivo)) for w in lista]
    montar.montar(kit, ["mini"], [], {daqui: com_soma})
    assert (kit / "wheels" / lista[0].arquivo).read_bytes() == certo
    # Remontar sem índice nenhum: o que já está na pasta basta.
    shutil.rmtree(indice)
    montar.montar(kit, ["mini"], [], {daqui: lista})
    pacote.conferir(kit)

    # O ambiente vazio: sys.executable troca, e o pip é o dele.
    venv = tmp_path / "ambiente vazio"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    monkeypatch.setattr(wheels.sys, "executable", str(python))
    monkeypatch.setattr(maquina, "conferir_pacotes", lambda: [maquina.Item(maquina.FALTA, "figo")])
    monkeypatch.setattr(instalar.sys, "prefix", str(venv))
    itens = instalar.instalar(instalar.Pasta(kit))
    assert "2 instalados" in itens[0].texto
    codigo = "import figo_do_laboratorio, ameixa_do_laboratorio as a; print(a.versao)"
    dito = subprocess.run([str(python), "-c", codigo], capture_output=True, encoding="utf-8")
    assert dito.stdout.strip() == "1.2"


@pytest.mark.unit
def test_pacote_sem_wheel_nenhum_diz_isso_e_o_leia_me_tambem(kit, casa, monkeypatch):
    monkeypatch.setattr(maquina, "conferir_pacotes", lambda: [maquina.Item(maquina.FALTA, "x")])
    with pytest.raises(ErroDoUsuario) as erro:
        instalar.instalar(instalar.Pasta(kit))
    assert "--sem-wheels" in erro.value.por_que and "nenhum" not in erro.value.por_que
    alvo = {"plataforma": "windows-amd64", "python": "3.12", "arquivos": []}
    mudar_manifesto(kit, lambda d: d["wheels"].append(alvo))
    with pytest.raises(ErroDoUsuario) as erro:
        instalar.instalar(instalar.Pasta(kit))
    assert "windows-amd64 com Python 3.12" in erro.value.por_que
    assert str(pacote.este_computador()) in erro.value.por_que and not casa.exists()
    texto = (kit / "LEIA-ME.txt").read_text("utf-8")
    assert "SEM os pacotes do Python" in texto and "instala os pacotes" not in texto
    assert "instala os pacotes do Python e guarda" in montar.leiame([], [pacote.este_computador()])


@pytest.mark.unit
def test_download_de_wheels_que_falha_fica_de_fora_e_o_pacote_sai(indice, casa, tmp_path):
    daqui = pacote.este_computador()
    fantasma = wheels.Wheel("nada-1-py3-none-any.whl", "file:///nada", "nada-do-laboratorio==1", 5)
    pronto = montar.montar(tmp_path / "k", ["mini"], [], {daqui: [fantasma]})
    (item,) = [i for i in pronto.itens if i.estado == maquina.FALTA]
    assert "de fora" in item.texto and str(daqui) in item.texto
    manifesto = pacote.conferir(tmp_path / "k")
    assert manifesto.wheels == {} and "SEM os pacotes" in (tmp_path / "k/LEIA-ME.txt").read_text(
        "utf-8"
    )


@pytest.mark.unit
def test_para_outra_maquina_sem_uv_diz_como_ter(monkeypatch):
    def sem_uv(_):
        raise wheels.metadata.PackageNotFoundError

    monkeypatch.setattr(wheels.metadata, "version", sem_uv)
    escolhidos, itens = wheels.escolher(["macos-arm64"], ["3.10", "3.13"])
    if pacote.este_computador().plataforma == "macos-arm64":
        pytest.skip("esta é a outra máquina")
    assert escolhidos == {} and [i.estado for i in itens[:2]] == [maquina.FALTA] * 2
    assert "pip install uv" in itens[0].cura and "3.13" in itens[1].texto


@pytest.mark.unit
def test_o_aluno_nao_precisa_de_nada_antes_dos_wheels():
    """pacote, instalacao e wheels importam só a biblioteca padrão (e o próprio nucleo)."""
    codigo = (
        "import sys; sys.path.insert(0, 'lab')\n"
        "import nucleo.sala.pacote, nucleo.sala.instalar, nucleo.sala.wheels, nucleo.sala.maquina, aula\n"
        "fora = {m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(m for m in fora if not m.startswith('_')))"
    )
    p = subprocess.run(
        [sys.executable, "-I", "-c", codigo], cwd=RAIZ, capture_output=True, encoding="utf-8"
    )
    assert p.returncode == 0, p.stderr
    assert set(eval(p.stdout)) <= {"nucleo", "palco", "aula", "sitecustomize", "usercustomize"}


@pytest.mark.unit
def test_copia_que_sai_diferente_e_recusada(tmp_path):
    (tmp_path / "a").write_bytes(b"dados")
    with pytest.raises(ErroDoUsuario, match="saiu diferente"):
        pacote.copiar(tmp_path / "a", tmp_path / "b", lambda _: None, Arquivo(5, "0" * 64))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]
