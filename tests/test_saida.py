"""As saídas: cada arquivo inteiro, o resultado.json por último, e gentis quando o disco não coopera."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from nucleo.base import arquivos
from nucleo.base import caderno as modulo
from nucleo.base.caderno import Caderno, Conferencia
from nucleo.base.erros import ErroDoUsuario
from palco import tela

pytestmark = pytest.mark.unit


def caderno(**arquivos: bytes) -> Caderno:
    c = Caderno("teste", "Título com acento: ção")
    c.arquivos |= arquivos or {"a.png": b"png"}
    c.csv("t", ["palavra", "cosseno"], [[" king, o rei", 0.1234567890123], ['"x"', None]])
    c.tabela_md("Tabela", ["a|b"], [["1|2"]])
    c.resultado("x", np.float32(0.5), "cos", "mini", 2)
    return c


def retrato(pasta: Path) -> dict[str, bytes]:
    """{nome: bytes} do que há na pasta, também o escondido; a trava, que é vazia, não conta."""
    return {p.name: p.read_bytes() for p in pasta.iterdir() if p.is_file() and p.name != ".trava"}


# --- o que se grava ------------------------------------------------------------------------


def test_quebra_de_linha_numa_celula_nao_parte_a_tabela():
    c = Caderno("teste", "T")
    c.tabela_md("", ["a", "b"], [["um\ndois", "três|quatro"]])
    assert c.blocos[-1].splitlines()[2] == "| um; dois | três\\|quatro |"


def test_grava_tudo_e_nada_mais(tmp_path):
    caminhos = caderno().gravar(tmp_path / "novo")
    nomes = {"a.png", "relatorio.md", "resultado.json", "t.csv"}
    assert set(retrato(tmp_path / "novo")) == {p.name for p in caminhos} == nomes
    dados = json.loads((tmp_path / "novo" / "resultado.json").read_text("utf-8"))
    assert dados["resultados"] == [
        {"id": "x", "valor": 0.5, "unidade": "cos", "modelo": "mini", "secao": 2}
    ]
    # O CSV guarda o número inteiro, e volta igual pela biblioteca.
    linhas = list(csv.reader((tmp_path / "novo" / "t.csv").open(encoding="utf-8", newline="")))
    assert linhas == [["palavra", "cosseno"], [" king, o rei", "0.1234567890123"], ['"x"', ""]]
    assert r"| 1\|2 |" in (tmp_path / "novo" / "relatorio.md").read_text("utf-8")


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


# --- o que era nosso sai, o dos outros fica ---------------------------------------------------


def test_segunda_execucao_substitui_e_retira_so_o_que_era_nosso(tmp_path):
    caderno(**{"velha.png": b"1", "a.png": b"1"}).gravar(tmp_path)
    for nome in ("anotacoes do aluno.txt", ".meu.parcial", ".a.b.parcial"):
        (tmp_path / nome).write_text("meu", encoding="utf-8")
    (tmp_path / ".a.png.123.parcial").write_bytes(b"de quem morreu no meio")
    caderno(**{"a.png": b"2"}).gravar(tmp_path)
    depois = retrato(tmp_path)
    assert depois.pop("a.png") == b"2"
    assert {n for n, b in depois.items() if b == b"meu"} == {
        "anotacoes do aluno.txt", ".meu.parcial", ".a.b.parcial",
    }  # fmt: skip
    assert "velha.png" not in depois and ".a.png.123.parcial" not in depois


@pytest.mark.parametrize(
    "dados",
    [
        {"arquivos": ["tese.docx"]},
        {"licao": "outra", "arquivos": ["tabela.csv"]},
        {"licao": "teste", "arquivos": ["tese.docx", "sub/x.csv", "../fora.csv", "..", 3, None]},
        "[" * 9,
    ],
)
def test_manifesto_de_outra_coisa_ou_mexido_nao_apaga_nada(tmp_path, dados):
    pasta = tmp_path / "p"
    (pasta / "sub").mkdir(parents=True)
    (pasta / "resultado.json").write_text(json.dumps(dados), "utf-8")
    alheios = [
        pasta / "tese.docx",
        pasta / "tabela.csv",
        pasta / "sub/x.csv",
        tmp_path / "fora.csv",
    ]
    for arquivo in alheios:
        arquivo.write_text("meu", "utf-8")
    caderno().gravar(pasta)
    assert [a.read_text("utf-8") for a in alheios] == ["meu"] * 4


def test_pasta_no_lugar_de_um_arquivo_e_recusada_inteira(tmp_path):
    caderno(**{"a.png": b"boa"}).gravar(tmp_path)
    antes = retrato(tmp_path)
    (tmp_path / "b.png").mkdir()
    (tmp_path / "b.png" / "dentro").write_text("do aluno", encoding="utf-8")
    with pytest.raises(ErroDoUsuario, match="uma pasta com o nome"):
        caderno(**{"a.png": b"2", "b.png": b"2"}).gravar(tmp_path)
    assert retrato(tmp_path) == antes
    assert (tmp_path / "b.png" / "dentro").read_text("utf-8") == "do aluno"


# --- quando o disco não coopera -------------------------------------------------------------


def cair(erro: BaseException):
    """Uma função do sistema que sempre falha assim."""

    def funcao(*_):
        raise erro

    return funcao


@pytest.mark.parametrize(
    "erro", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disco", "ctrl-c"]
)
@pytest.mark.parametrize("onde", ["fsync", "replace"])
def test_sem_disco_ou_com_ctrl_c_fica_a_ultima_versao_boa(tmp_path, monkeypatch, onde, erro):
    caderno(**{"a.png": b"boa", "velha.png": b"boa"}).gravar(tmp_path)
    antes = retrato(tmp_path)
    monkeypatch.setattr(arquivos.os, onde, cair(erro))
    dito = pytest.raises(KeyboardInterrupt)
    if isinstance(erro, OSError):
        dito = pytest.raises(ErroDoUsuario, match="disco está cheio.*Nenhum arquivo ficou pela")
    with dito:
        caderno(**{"a.png": b"ruim"}).gravar(tmp_path)
    assert retrato(tmp_path) == antes


def test_arquivo_preso_no_meio_deixa_cada_um_inteiro_e_o_resultado_por_ultimo(
    tmp_path, monkeypatch
):
    """b.png está aberto no Excel: a.png já é novo, e o resultado.json ainda é o de antes."""
    caderno(**{"a.png": b"velho a", "b.png": b"velho b", "sai.png": b"velho"}).gravar(tmp_path)
    antes, verdadeira = retrato(tmp_path), os.replace

    def teimosa(de, para):
        if Path(para).name == "b.png":
            raise PermissionError(13, "aberto em outro programa")
        verdadeira(de, para)

    monkeypatch.setattr(arquivos.os, "replace", teimosa)
    novo = {"a.png": b"novo a", "b.png": b"novo b"}
    with pytest.raises(ErroDoUsuario, match="o que não trocou continua como estava"):
        caderno(**novo).gravar(tmp_path)
    assert retrato(tmp_path) == antes | {"a.png": b"novo a"}
    monkeypatch.undo()
    caderno(**novo).gravar(tmp_path)  # fechado o arquivo, rodar de novo acerta tudo
    depois = retrato(tmp_path)
    assert depois["b.png"] == b"novo b" and "sai.png" not in depois


def test_destino_que_e_um_arquivo(tmp_path):
    (tmp_path / "x").write_text("", encoding="utf-8")
    for funcao in (arquivos.conferir_pasta, caderno().gravar):
        with pytest.raises(ErroDoUsuario, match="--saida"):
            funcao(tmp_path / "x" / "sub")


def test_pasta_ocupada_por_outra_execucao_tem_mensagem(tmp_path, monkeypatch):
    caderno(**{"a.png": b"boa"}).gravar(tmp_path)
    monkeypatch.setattr(modulo, "_ESPERA", 0.1)
    with arquivos.so_um(tmp_path), pytest.raises(ErroDoUsuario, match="Outra execução") as info:
        caderno(**{"a.png": b"nova"}).gravar(tmp_path)
    assert "--saida PASTA" in info.value.o_que_fazer
    assert (tmp_path / "a.png").read_bytes() == b"boa"
    caderno(**{"a.png": b"nova"}).gravar(tmp_path)  # a trava saiu com quem a tinha
    assert (tmp_path / "a.png").read_bytes() == b"nova"


def test_quem_espera_a_vez_e_avisado_uma_vez_e_entra_quando_abre(tmp_path):
    import threading
    import time

    avisos, dentro = [], threading.Event()

    def ocupar():
        with arquivos.so_um(tmp_path):
            dentro.set()
            time.sleep(0.3)

    outro = threading.Thread(target=ocupar)
    outro.start()
    dentro.wait(5)
    with arquivos.so_um(tmp_path, ao_esperar=lambda: avisos.append(outro.is_alive())):
        assert avisos == [True]
    outro.join()


# --- quem escreve por conta própria -------------------------------------------------------------


def test_ao_lado_troca_no_fim_e_some_se_falha(tmp_path):
    alvo = tmp_path / "nova" / "x.bin"
    with arquivos.ao_lado(alvo) as provisorio:
        provisorio.write_bytes(b"1")
        assert not alvo.exists()
    with pytest.raises(ZeroDivisionError), arquivos.ao_lado(alvo) as provisorio:
        provisorio.write_bytes(b"pela met")
        1 / 0  # noqa: B018 - a falha do bloco
    assert retrato(alvo.parent) == {"x.bin": b"1"}
    if os.name != "nt":  # a permissão é a que a máscara do sistema dá a qualquer arquivo
        (tmp_path / "comum").write_bytes(b"")
        assert alvo.stat().st_mode == (tmp_path / "comum").stat().st_mode


def test_pasta_ao_lado_troca_a_pasta_inteira(tmp_path):
    alvo = tmp_path / "modelo"
    for valor in (b"1", b"2"):
        with arquivos.pasta_ao_lado(alvo) as trabalho:
            (trabalho / "pesos").write_bytes(valor)
        assert retrato(alvo) == {"pesos": valor}
    with pytest.raises(ZeroDivisionError), arquivos.pasta_ao_lado(alvo) as trabalho:
        1 / 0  # noqa: B018 - a falha do bloco
    assert retrato(alvo) == {"pesos": b"2"} and os.listdir(tmp_path) == ["modelo"]


@pytest.mark.parametrize("codificacao", ["cp1252", "ascii", "latin-1", "cp850"])
def test_troca_de_caracteres_nunca_falha(codificacao):
    import codecs

    codecs.register_error("lab", tela._trocar)
    texto = "‖h₀‖ ≈ √2 → −0,5 · ção Ġking █━ 猫 ✓ “x” Σθ 🤗"
    escrito = texto.encode(codificacao, "lab").decode(codificacao)
    assert "raiz" in escrito and "->" in escrito and "king" in escrito
    # O que a codificação tem continua como era.
    assert ("ção" in escrito) == (codificacao != "ascii") and ("cao" in escrito) == (
        codificacao == "ascii"
    )
