"""O que a biblioteca respondeu: lembrado quando nada mudou, perguntado de novo quando algo mudou."""

import importlib.util
import json
import os
import pickle
import time

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from nucleo.modelos import memoria
from nucleo.modelos.memoria import Memoria

pytestmark = pytest.mark.unit

CONTA = """
chamadas = []

def perguntar_tudo(modelo, ids):
    import numpy as np
    chamadas.append(ids)
    return {"matriz": np.arange(6, dtype=np.float32).reshape(2, 3) * sum(ids),
            "nomes": ["é", "não"], "n": len(ids), "nada": None, "par": {"a": True}}

def perguntar_x(x=0):
    chamadas.append(x)
    return {"x": x}

def perguntar_defeito():
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


def gravar_pesos(arquivo, valor=1.0, nome="wte.weight"):
    arquivo.parent.mkdir(exist_ok=True)
    save_file({nome: np.full((2, 3), valor, dtype=np.float32)}, arquivo)


class Falso:
    """O que a memória olha num modelo: a pasta, o config e a cabeça."""

    def __init__(self, pasta):
        self.pasta, self.config, self.cabeca = pasta, {"model_type": "gpt2"}, "amarrada"
        pasta.mkdir(exist_ok=True)
        gravar_pesos(pasta / "model.safetensors")


@pytest.fixture
def modelo(tmp_path):
    return Falso(tmp_path / "modelo")


def respostas(pasta):
    return sorted(pasta.glob("*.safetensors"))


def test_a_segunda_vez_e_lembranca_e_e_igual(perguntas, modelo, tmp_path):
    casa = tmp_path / "respostas"
    primeira = Memoria(pasta=casa).perguntar(perguntas.perguntar_tudo, [1, 2], modelo=modelo)
    segunda = Memoria(pasta=casa).perguntar(perguntas.perguntar_tudo, [1, 2], modelo=modelo)
    assert perguntas.chamadas == [[1, 2]]
    assert (primeira.lembrada, segunda.lembrada) == (False, True)
    assert segunda.quando == primeira.quando and segunda.versoes == primeira.versoes
    assert segunda.valor.keys() == primeira.valor.keys()
    m = segunda.valor.pop("matriz")
    np.testing.assert_array_equal(m, [[0, 3, 6], [9, 12, 15]])
    assert m.dtype == np.float32
    assert segunda.valor == {"nomes": ["é", "não"], "n": 2, "nada": None, "par": {"a": True}}
    assert not list(casa.glob(".resposta-parcial-*"))


def test_ao_vivo_pergunta_e_guarda_a_nova(perguntas, modelo, tmp_path):
    casa = tmp_path / "respostas"
    Memoria(pasta=casa).perguntar(perguntas.perguntar_tudo, [1], modelo=modelo)
    antes = respostas(casa)[0].stat().st_mtime_ns
    assert not Memoria(True, casa).perguntar(perguntas.perguntar_tudo, [1], modelo=modelo).lembrada
    assert len(perguntas.chamadas) == 2
    assert len(respostas(casa)) == 1 and respostas(casa)[0].stat().st_mtime_ns > antes


def com_a_hora_de(antes, arquivo):
    # Como faz um `cp -p`: o mesmo tamanho e a mesma data, por cima.
    os.utime(arquivo, ns=(antes.st_atime_ns, antes.st_mtime_ns))


def mudar_pesos(modelo, perguntas, m):
    gravar_pesos(modelo.pasta / "model.safetensors", 2.0)


def mudar_pesos_e_voltar_a_data(modelo, perguntas, m):
    arquivo = modelo.pasta / "model.safetensors"
    antes = arquivo.stat()
    gravar_pesos(arquivo, 2.0)
    com_a_hora_de(antes, arquivo)
    assert (arquivo.stat().st_size, arquivo.stat().st_mtime_ns) == (
        antes.st_size,
        antes.st_mtime_ns,
    )


def reapontar_o_atalho(modelo, perguntas, m):
    # A pasta do hub é de atalhos: o nome fica, e o arquivo é outro.
    arquivo = modelo.pasta / "model.safetensors"
    antes = arquivo.stat()
    gravar_pesos(modelo.pasta.parent / "outro.safetensors", 2.0)
    com_a_hora_de(antes, modelo.pasta.parent / "outro.safetensors")
    arquivo.unlink()
    arquivo.symlink_to(modelo.pasta.parent / "outro.safetensors")


def mudar_config(modelo, perguntas, m):
    modelo.config["tie_word_embeddings"] = False


def mudar_cabeca(modelo, perguntas, m):
    modelo.cabeca = "solta"


def mudar_versao(modelo, perguntas, m):
    m.setattr(memoria, "version", lambda b: "9.9")


def mudar_codigo(modelo, perguntas, m):
    with open(perguntas.__file__, "a", encoding="utf-8") as f:
        f.write("# outra conta\n")


def mudar_de_lugar(modelo, perguntas, m):
    modelo.pasta = modelo.pasta.rename(modelo.pasta.with_name("outro"))


@pytest.mark.parametrize(
    "mudar",
    [mudar_pesos, mudar_pesos_e_voltar_a_data, reapontar_o_atalho, mudar_config, mudar_cabeca,
     mudar_versao, mudar_codigo, mudar_de_lugar],
)  # fmt: skip
def test_o_que_muda_a_resposta_faz_perguntar_de_novo(
    mudar, perguntas, modelo, tmp_path, monkeypatch
):
    casa = tmp_path / "respostas"
    Memoria(pasta=casa).perguntar(perguntas.perguntar_tudo, [1], modelo=modelo)
    mudar(modelo, perguntas, monkeypatch)
    assert not Memoria(pasta=casa).perguntar(perguntas.perguntar_tudo, [1], modelo=modelo).lembrada
    assert Memoria(pasta=casa).perguntar(perguntas.perguntar_tudo, [1], modelo=modelo).lembrada


def test_em_pedacos_valem_o_indice_e_os_arquivos_que_ele_cita(perguntas, modelo, tmp_path):
    pasta, m = modelo.pasta, Memoria(pasta=tmp_path / "respostas")
    (pasta / "model.safetensors").unlink()
    for valor, nome in enumerate(("um", "outro")):
        gravar_pesos(pasta / "sub" / f"{nome}.safetensors", float(valor))

    def citar(nome):
        mapa = {"weight_map": {"wte.weight": f"sub/{nome}.safetensors"}}
        (pasta / "model.safetensors.index.json").write_text(json.dumps(mapa), "utf-8")

    def lembrada():
        return m.perguntar(perguntas.perguntar_tudo, [1], modelo=modelo).lembrada

    citar("um")
    assert [lembrada(), lembrada()] == [False, True]
    citar("outro")  # os mesmos arquivos na pasta; o índice é que mudou
    assert [lembrada(), lembrada()] == [False, True]
    gravar_pesos(pasta / "sub" / "outro.safetensors", 5.0)  # um pedaço numa subpasta
    assert not lembrada()
    gravar_pesos(pasta / "sub" / "um.safetensors", 5.0)  # um que o índice não cita
    assert lembrada()


def test_outros_argumentos_sao_outra_pergunta(perguntas, modelo, tmp_path):
    m = Memoria(pasta=tmp_path / "respostas")
    for ids in ([1, 2], [12], [2, 1], [1, 2]):
        m.perguntar(perguntas.perguntar_tudo, ids, modelo=modelo)
    assert perguntas.chamadas == [[1, 2], [12], [2, 1]]
    # O nome também separa: duas perguntas com os mesmos argumentos.
    assert m.perguntar(perguntas.perguntar_x).valor == {"x": 0}
    assert m.perguntar(perguntas.perguntar_x, 5).valor == {"x": 5}


def estragos(bom: bytes) -> dict[str, bytes]:
    return {
        "vazio": b"",
        "cortado": bom[: len(bom) // 2],
        "cabeçalho mentiroso": b"\xff" * 8 + bom[8:],
        "texto": b"era uma vez",
        "pickle": pickle.dumps({"n": 1}),
        "sem metadados": bom.replace(b'"resposta"', b'"respostA"'),
        "JSON torto": bom.replace(b"valor", b"va\\\\r"),
        "JSON sem fundo": save({}, {"resposta": "[" * 100_000, "selo": ""}),
        "selo de outra": save({}, {"resposta": '{"valor": {}, "quando": ""}', "selo": "0" * 64}),
        "um bit trocado na matriz": bom[:-1] + bytes([bom[-1] ^ 1]),
        "um campo trocado": bom.replace(b'\\"n\\": 1', b'\\"n\\": 7'),
        "sem um campo": bom.replace(b'\\"nada\\": null, ', b"               "),
    }


@pytest.mark.parametrize("qual", list(estragos(b"x" * 16)))
def test_arquivo_estragado_e_como_nao_ter_arquivo(qual, perguntas, modelo, tmp_path):
    casa = tmp_path / "respostas"
    m = Memoria(pasta=casa)
    m.perguntar(perguntas.perguntar_tudo, [1], modelo=modelo)
    (arquivo,) = respostas(casa)
    bom = arquivo.read_bytes()
    arquivo.write_bytes(estragos(bom)[qual])
    assert arquivo.read_bytes() != bom
    r = m.perguntar(perguntas.perguntar_tudo, [1], modelo=modelo)
    assert not r.lembrada and r.valor["n"] == 1
    assert m.perguntar(perguntas.perguntar_tudo, [1], modelo=modelo).lembrada  # trocado por um bom


def test_pasta_ou_fifo_no_lugar_da_resposta(perguntas, tmp_path):
    casa = tmp_path / "respostas"
    m = Memoria(pasta=casa)
    m.perguntar(perguntas.perguntar_x)
    (arquivo,) = respostas(casa)
    arquivo.unlink()
    arquivo.mkdir()
    assert m.perguntar(perguntas.perguntar_x).valor == {"x": 0}
    assert not list(casa.glob(".resposta-parcial-*"))
    if hasattr(os, "mkfifo"):
        arquivo.rmdir()
        os.mkfifo(arquivo)  # lê-lo esperaria para sempre
        assert m.perguntar(perguntas.perguntar_x).valor == {"x": 0}


def test_sem_onde_gravar_responde_do_mesmo_jeito(perguntas, tmp_path, monkeypatch):
    arquivo = tmp_path / "ocupado"
    arquivo.write_text("não é uma pasta")
    for _ in range(2):
        assert Memoria(pasta=arquivo / "x").perguntar(perguntas.perguntar_x).valor == {"x": 0}
    assert len(perguntas.chamadas) == 2

    def cheio(*_):
        raise OSError(28, "No space left on device")

    casa = tmp_path / "respostas"

    def proibido(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as m:
        m.setattr(memoria.Path, "is_file", proibido)  # a pasta é de outra pessoa, e fechada
        assert Memoria(pasta=tmp_path / "alheia").perguntar(perguntas.perguntar_x).valor == {"x": 0}
    comprida = tmp_path / ("n" * 300)
    assert Memoria(pasta=comprida).perguntar(perguntas.perguntar_x).valor == {"x": 0}

    monkeypatch.setattr(memoria.os, "replace", cheio)
    assert Memoria(pasta=casa).perguntar(perguntas.perguntar_x).valor == {"x": 0}
    assert not list(casa.iterdir())  # nem a meia resposta fica


def test_defeito_passa_adiante_e_nao_fica_guardado(perguntas, tmp_path):
    casa = tmp_path / "respostas"
    for _ in range(2):
        with pytest.raises(RuntimeError, match="defeito"):
            Memoria(pasta=casa).perguntar(perguntas.perguntar_defeito)
    assert not casa.exists()


def test_so_as_ultimas_usadas_ficam(perguntas, tmp_path, monkeypatch):
    monkeypatch.setattr(memoria, "QUANTAS", 3)
    casa = tmp_path / "respostas"
    m = Memoria(pasta=casa)
    # A hora do disco não separa perguntas tão seguidas: cada resposta ganha a sua.
    for x in range(3):
        antes = set(respostas(casa))
        m.perguntar(perguntas.perguntar_x, x)
        (nova,) = set(respostas(casa)) - antes
        os.utime(nova, (1000 + x,) * 2)
    assert m.perguntar(perguntas.perguntar_x, 0).lembrada  # a mais antiga foi usada agora
    m.perguntar(perguntas.perguntar_x, 9)
    assert len(respostas(casa)) == 3
    assert [m.perguntar(perguntas.perguntar_x, x).lembrada for x in (0, 2, 9)] == [True] * 3
    assert not m.perguntar(perguntas.perguntar_x, 1).lembrada


def test_na_pasta_de_alguem_so_sai_o_que_e_nosso(perguntas, tmp_path, monkeypatch):
    monkeypatch.setattr(memoria, "QUANTAS", 1)
    casa = tmp_path / "modelos"
    casa.mkdir()
    deles = [f"model-0000{i}-of-00004.safetensors" for i in range(1, 5)] + [".parcial-meu", "a.txt"]
    morta, viva = (casa / (memoria._PARCIAL + x) for x in ("morta", "viva"))
    for nome in [*deles, morta.name, viva.name]:
        (casa / nome).write_bytes(b"x")
        os.utime(casa / nome, (1000, 1000))
    os.utime(viva, (time.time(),) * 2)
    for x in range(3):
        Memoria(pasta=casa).perguntar(perguntas.perguntar_x, x)
    assert all((casa / nome).read_bytes() == b"x" for nome in deles)
    assert len([p for p in respostas(casa) if p.name not in deles]) == 1
    assert not morta.exists() and viva.exists()


def test_lembra_numa_pasta_pedida_na_variavel(perguntas, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_RESPOSTAS", str(tmp_path / "ali"))
    Memoria().perguntar(perguntas.perguntar_x)
    assert len(respostas(tmp_path / "ali")) == 1
    monkeypatch.setenv("HOME", str(tmp_path / "casa"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "casa"))
    monkeypatch.setenv("LAB_RESPOSTAS", "~/ali")
    Memoria().perguntar(perguntas.perguntar_x)
    assert len(respostas(tmp_path / "casa" / "ali")) == 1
    monkeypatch.delenv("LAB_RESPOSTAS")
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    Memoria().perguntar(perguntas.perguntar_x)
    assert len(respostas(tmp_path / "cache" / "respostas")) == 1
