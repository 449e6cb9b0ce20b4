"""As saídas: inteiras ou nada, repetíveis, e gentis quando o disco não coopera."""

import csv
import json
import os

import numpy as np
import pytest

from nucleo.base import caderno as saida
from nucleo.base.caderno import Caderno, Conferencia
from nucleo.base.erros import ErroDoUsuario

pytestmark = pytest.mark.unit


def caderno(**arquivos: bytes) -> Caderno:
    c = Caderno("teste", "Título com acento: ção")
    c.arquivos |= arquivos or {"a.png": b"png"}
    c.csv("t", ["palavra", "cosseno"], [[" king, o rei", 0.1234567890123], ['"x"', None]])
    c.tabela_md("Tabela", ["a|b"], [["1|2"]])
    c.resultado("x", np.float32(0.5), "cos", "mini", 2)
    return c


def test_quebra_de_linha_numa_celula_nao_parte_a_tabela():
    c = Caderno("teste", "T")
    c.tabela_md("", ["a", "b"], [["um\ndois", "três|quatro"]])
    assert c.blocos[-1].splitlines()[2] == "| um; dois | três\\|quatro |"


def test_grava_tudo_e_nada_mais(tmp_path):
    caminhos = caderno().gravar(tmp_path / "novo")
    assert sorted(p.name for p in (tmp_path / "novo").iterdir()) == [
        "a.png",
        "relatorio.md",
        "resultado.json",
        "t.csv",
    ]
    assert {p.name for p in caminhos} == {"a.png", "relatorio.md", "resultado.json", "t.csv"}
    dados = json.loads((tmp_path / "novo" / "resultado.json").read_text("utf-8"))
    assert dados["resultados"] == [
        {"id": "x", "valor": 0.5, "unidade": "cos", "modelo": "mini", "secao": 2}
    ]
    # O CSV guarda o número inteiro, e volta igual pela biblioteca.
    linhas = list(csv.reader((tmp_path / "novo" / "t.csv").open(encoding="utf-8", newline="")))
    assert linhas == [["palavra", "cosseno"], [" king, o rei", "0.1234567890123"], ['"x"', ""]]
    assert r"| 1\|2 |" in (tmp_path / "novo" / "relatorio.md").read_text("utf-8")


def test_segunda_execucao_substitui_e_retira_so_o_que_era_nosso(tmp_path):
    caderno(**{"velha.png": b"1", "a.png": b"1"}).gravar(tmp_path)
    (tmp_path / "anotacoes do aluno.txt").write_text("meu", encoding="utf-8")
    caderno(**{"a.png": b"2"}).gravar(tmp_path)
    assert (tmp_path / "a.png").read_bytes() == b"2"
    assert not (tmp_path / "velha.png").exists()
    assert (tmp_path / "anotacoes do aluno.txt").read_text("utf-8") == "meu"


def test_manifesto_mexido_nao_apaga_fora_da_pasta(tmp_path):
    pasta, fora = tmp_path / "p", tmp_path / "fora.txt"
    pasta.mkdir()
    fora.write_text("importante", encoding="utf-8")
    (pasta / "resultado.json").write_text(
        json.dumps({"arquivos": ["../fora.txt", "..", 3]}), "utf-8"
    )
    caderno().gravar(pasta)
    assert fora.read_text("utf-8") == "importante"


@pytest.mark.parametrize("quando", ["gravando", "trocando"])
def test_disco_cheio_deixa_a_ultima_versao_boa(tmp_path, monkeypatch, quando):
    caderno(**{"a.png": b"boa"}).gravar(tmp_path)
    antes = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def cheio(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saida.os, "fsync" if quando == "gravando" else "replace", cheio)
    with pytest.raises(ErroDoUsuario, match="disco está cheio"):
        caderno(**{"a.png": b"ruim"}).gravar(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == antes


def test_interrompido_no_meio_nao_deixa_restos(tmp_path, monkeypatch):
    caderno(**{"a.png": b"boa"}).gravar(tmp_path)
    monkeypatch.setattr(saida.os, "fsync", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        caderno(**{"a.png": b"ruim"}).gravar(tmp_path)
    assert (tmp_path / "a.png").read_bytes() == b"boa"
    assert not list(tmp_path.glob(".parcial-*"))


def test_restos_de_quem_morreu_saem_e_os_de_quem_esta_gravando_ficam(tmp_path):
    from nucleo.base.trava import so_um

    (tmp_path / ".parcial-x").mkdir()
    with so_um(tmp_path):  # como se outra execução estivesse gravando agora
        saida.conferir_pasta(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == [".parcial-x"]
    saida.conferir_pasta(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_sem_trava_so_os_restos_antigos_saem(tmp_path):
    """Num disco de rede que não tranca pastas, um resto recente pode ser de quem está gravando."""
    for nome, idade in (("velho", 7200), ("novo", 10)):
        pasta = tmp_path / f".parcial-{nome}"
        pasta.mkdir()
        os.utime(pasta, (saida._agora() - idade,) * 2)
    saida._arrumar(tmp_path, trancada=False)
    assert [p.name for p in tmp_path.iterdir()] == [".parcial-novo"]


def test_destino_que_e_um_arquivo(tmp_path):
    (tmp_path / "x").write_text("", encoding="utf-8")
    for funcao in (saida.conferir_pasta, caderno().gravar):
        with pytest.raises(ErroDoUsuario, match="--saida"):
            funcao(tmp_path / "x" / "sub")


def test_resultado_repetido_e_defeito():
    c = caderno()
    c.resultado("x", 1, "", "outro modelo", 2)
    with pytest.raises(ValueError, match="repetido"):
        c.resultado("x", 2, "", "mini", 3)


@pytest.mark.parametrize("valor", [float("nan"), float("inf"), np.float64("nan")])
def test_nan_vira_null_e_o_json_continua_valido(tmp_path, valor):
    c = caderno()
    c.resultado("n", valor, "", "m", 1)
    c.gravar(tmp_path)
    dados = json.loads(
        (tmp_path / "resultado.json").read_text("utf-8"), parse_constant=lambda x: 1 / 0
    )
    assert dados["resultados"][-1]["valor"] is None


@pytest.mark.parametrize(
    ("medido", "esperado", "tolerancia", "confere"),
    [
        (1, 1, 0, True),
        (1.0001, 1, 0, False),
        (1.01, 1, 0.02, True),
        (0.97, 1, 0.02, False),
        (float("nan"), 0, 9, False),
    ],
)
def test_confere(medido, esperado, tolerancia, confere):
    assert Conferencia("x", medido, esperado, tolerancia).confere is confere


@pytest.mark.parametrize("codificacao", ["cp1252", "ascii", "latin-1", "cp850"])
def test_troca_de_caracteres_nunca_falha(codificacao):
    import codecs

    codecs.register_error("lab", saida._trocar)
    texto = "‖h₀‖ ≈ √2 → −0,5 · ção Ġking █━ 猫 ✓ “x” Σθ 🤗"
    escrito = texto.encode(codificacao, "lab").decode(codificacao)
    assert "raiz" in escrito and "->" in escrito and "king" in escrito
    # O que a codificação tem continua como era.
    assert ("ção" in escrito) == (codificacao != "ascii") and ("cao" in escrito) == (
        codificacao == "ascii"
    )
