"""O que a biblioteca respondeu: lembrado quando nada mudou, perguntado de novo quando algo mudou."""

import importlib.util
import os
import pickle
import time

import numpy as np
import pytest

from nucleo import memoria
from nucleo.memoria import Memoria

pytestmark = pytest.mark.unit

CONTA = """
chamadas = []

def pergunta(modelo, ids):
    import numpy as np
    chamadas.append(ids)
    return {"matriz": np.arange(6, dtype=np.float32).reshape(2, 3) * sum(ids),
            "nomes": ["é", "não"], "n": len(ids), "nada": None, "par": {"a": True}}

def sem_modelo(x=0):
    chamadas.append(x)
    return {"x": x}

def quebra():
    raise RuntimeError("defeito")
"""


@pytest.fixture
def perguntas(tmp_path):
    """Um módulo de perguntas num arquivo só dele: mudar o código muda o arquivo."""
    arquivo = tmp_path / "perguntas.py"
    arquivo.write_text(CONTA, "utf-8")
    ficha = importlib.util.spec_from_file_location("perguntas_de_teste", arquivo)
    modulo = importlib.util.module_from_spec(ficha)
    ficha.loader.exec_module(modulo)
    return modulo


class Falso:
    """O que a memória olha num modelo: a pasta, o config e a cabeça."""

    def __init__(self, pasta):
        self.pasta, self.config, self.cabeca = pasta, {"model_type": "gpt2"}, "amarrada"
        pasta.mkdir(exist_ok=True)
        (pasta / "model.safetensors").write_bytes(b"pesos")


@pytest.fixture
def modelo(tmp_path):
    return Falso(tmp_path / "modelo")


def respostas(pasta):
    return sorted(pasta.glob("*.safetensors"))


def test_a_segunda_vez_e_lembranca_e_e_igual(perguntas, modelo, tmp_path):
    casa = tmp_path / "respostas"
    primeira = Memoria(pasta=casa).perguntar(perguntas.pergunta, [1, 2], modelo=modelo)
    segunda = Memoria(pasta=casa).perguntar(perguntas.pergunta, [1, 2], modelo=modelo)
    assert perguntas.chamadas == [[1, 2]]
    assert (primeira.lembrada, segunda.lembrada) == (False, True)
    assert segunda.quando == primeira.quando and segunda.versoes == primeira.versoes
    assert segunda.valor.keys() == primeira.valor.keys()
    m = segunda.valor.pop("matriz")
    np.testing.assert_array_equal(m, [[0, 3, 6], [9, 12, 15]])
    assert m.dtype == np.float32
    assert segunda.valor == {"nomes": ["é", "não"], "n": 2, "nada": None, "par": {"a": True}}
    assert not list(casa.glob(".parcial-*"))


def test_ao_vivo_pergunta_e_guarda_a_nova(perguntas, modelo, tmp_path):
    casa = tmp_path / "respostas"
    Memoria(pasta=casa).perguntar(perguntas.pergunta, [1], modelo=modelo)
    antes = respostas(casa)[0].stat().st_mtime_ns
    assert not Memoria(True, casa).perguntar(perguntas.pergunta, [1], modelo=modelo).lembrada
    assert len(perguntas.chamadas) == 2
    assert len(respostas(casa)) == 1 and respostas(casa)[0].stat().st_mtime_ns > antes


def mudar_pesos(modelo, perguntas, m):
    (modelo.pasta / "model.safetensors").write_bytes(b"outro")  # o mesmo tamanho, outra hora
    os.utime(modelo.pasta / "model.safetensors", ns=(1, 1))


def mudar_config(modelo, perguntas, m):
    modelo.config["tie_word_embeddings"] = False


def mudar_cabeca(modelo, perguntas, m):
    modelo.cabeca = "solta"


def mais_um_pedaco(modelo, perguntas, m):
    (modelo.pasta / "model-00002-of-00002.safetensors").write_bytes(b"x")


def mudar_versao(modelo, perguntas, m):
    m.setattr(memoria, "version", lambda b: "9.9")


def mudar_codigo(modelo, perguntas, m):
    with open(perguntas.__file__, "a", encoding="utf-8") as f:
        f.write("# outra conta\n")


def mudar_de_lugar(modelo, perguntas, m):
    modelo.pasta = modelo.pasta.rename(modelo.pasta.with_name("outro"))


@pytest.mark.parametrize(
    "mudar",
    [mudar_pesos, mudar_config, mudar_cabeca, mais_um_pedaco, mudar_versao, mudar_codigo, mudar_de_lugar],
)  # fmt: skip
def test_o_que_muda_a_resposta_faz_perguntar_de_novo(
    mudar, perguntas, modelo, tmp_path, monkeypatch
):
    casa = tmp_path / "respostas"
    Memoria(pasta=casa).perguntar(perguntas.pergunta, [1], modelo=modelo)
    mudar(modelo, perguntas, monkeypatch)
    assert not Memoria(pasta=casa).perguntar(perguntas.pergunta, [1], modelo=modelo).lembrada
    assert Memoria(pasta=casa).perguntar(perguntas.pergunta, [1], modelo=modelo).lembrada


def test_outros_argumentos_sao_outra_pergunta(perguntas, modelo, tmp_path):
    m = Memoria(pasta=tmp_path / "respostas")
    for ids in ([1, 2], [12], [2, 1], [1, 2]):
        m.perguntar(perguntas.pergunta, ids, modelo=modelo)
    assert perguntas.chamadas == [[1, 2], [12], [2, 1]]
    # O nome também separa: duas perguntas com os mesmos argumentos.
    assert m.perguntar(perguntas.sem_modelo).valor == {"x": 0}
    assert m.perguntar(perguntas.sem_modelo, 5).valor == {"x": 5}


def estragos(bom: bytes) -> dict[str, bytes]:
    return {
        "vazio": b"",
        "cortado": bom[: len(bom) // 2],
        "cabeçalho mentiroso": b"\xff" * 8 + bom[8:],
        "texto": b"era uma vez",
        "pickle": pickle.dumps({"n": 1}),
        "sem metadados": bom.replace(b'"resposta"', b'"respostA"'),
        "JSON torto": bom.replace(b"valor", b"va\\\\r"),
        "um bit trocado na matriz": bom[:-1] + bytes([bom[-1] ^ 1]),
        "um campo trocado": bom.replace(b'\\"n\\": 1', b'\\"n\\": 7'),
        "sem um campo": bom.replace(b'\\"nada\\": null, ', b"               "),
    }


@pytest.mark.parametrize("qual", list(estragos(b"x" * 16)))
def test_arquivo_estragado_e_como_nao_ter_arquivo(qual, perguntas, modelo, tmp_path):
    casa = tmp_path / "respostas"
    m = Memoria(pasta=casa)
    m.perguntar(perguntas.pergunta, [1], modelo=modelo)
    (arquivo,) = respostas(casa)
    bom = arquivo.read_bytes()
    arquivo.write_bytes(estragos(bom)[qual])
    assert arquivo.read_bytes() != bom
    r = m.perguntar(perguntas.pergunta, [1], modelo=modelo)
    assert not r.lembrada and r.valor["n"] == 1
    assert m.perguntar(perguntas.pergunta, [1], modelo=modelo).lembrada  # trocado por um bom


def test_pasta_ou_fifo_no_lugar_da_resposta(perguntas, tmp_path):
    casa = tmp_path / "respostas"
    m = Memoria(pasta=casa)
    m.perguntar(perguntas.sem_modelo)
    (arquivo,) = respostas(casa)
    arquivo.unlink()
    arquivo.mkdir()
    assert m.perguntar(perguntas.sem_modelo).valor == {"x": 0}
    assert not list(casa.glob(".parcial-*"))
    if hasattr(os, "mkfifo"):
        arquivo.rmdir()
        os.mkfifo(arquivo)  # lê-lo esperaria para sempre
        assert m.perguntar(perguntas.sem_modelo).valor == {"x": 0}


def test_sem_onde_gravar_responde_do_mesmo_jeito(perguntas, tmp_path, monkeypatch):
    arquivo = tmp_path / "ocupado"
    arquivo.write_text("não é uma pasta")
    for _ in range(2):
        assert Memoria(pasta=arquivo / "x").perguntar(perguntas.sem_modelo).valor == {"x": 0}
    assert len(perguntas.chamadas) == 2

    def cheio(*_):
        raise OSError(28, "No space left on device")

    casa = tmp_path / "respostas"
    monkeypatch.setattr(memoria.os, "replace", cheio)
    assert Memoria(pasta=casa).perguntar(perguntas.sem_modelo).valor == {"x": 0}
    assert not list(casa.iterdir())  # nem a meia resposta fica


def test_defeito_passa_adiante_e_nao_fica_guardado(perguntas, tmp_path):
    casa = tmp_path / "respostas"
    for _ in range(2):
        with pytest.raises(RuntimeError, match="defeito"):
            Memoria(pasta=casa).perguntar(perguntas.quebra)
    assert not casa.exists()


def test_so_as_ultimas_respostas_ficam(perguntas, tmp_path, monkeypatch):
    monkeypatch.setattr(memoria, "QUANTAS", 3)
    casa = tmp_path / "respostas"
    casa.mkdir()
    morta, viva = casa / ".parcial-morta", casa / ".parcial-viva"
    for p in (morta, viva):
        p.write_bytes(b"")
    os.utime(morta, (time.time() - 7200,) * 2)
    for x in range(5):
        Memoria(pasta=casa).perguntar(perguntas.sem_modelo, x)
        ultima = max(respostas(casa), key=lambda p: p.stat().st_mtime_ns)
        os.utime(ultima, ns=(x + 1, x + 1))  # o relógio do disco pode não separar as cinco
    os.utime(viva, (time.time(),) * 2)
    assert len(respostas(casa)) == 3
    assert not morta.exists() and viva.exists()


def test_lembra_numa_pasta_pedida_na_variavel(perguntas, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_RESPOSTAS", str(tmp_path / "ali"))
    Memoria().perguntar(perguntas.sem_modelo)
    assert len(respostas(tmp_path / "ali")) == 1
    monkeypatch.delenv("LAB_RESPOSTAS")
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    Memoria().perguntar(perguntas.sem_modelo)
    assert len(respostas(tmp_path / "cache" / "respostas")) == 1
