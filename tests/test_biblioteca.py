"""As perguntas da lição 02 à biblioteca, num modelo de verdade: lembradas e vivas dizem o mesmo."""

import json
import shutil

import numpy as np
import pytest
from nucleo.modelos.memoria import Memoria

from conftest import RAIZ, ler_csv, rodar
from nucleo.base.erros import ErroDoUsuario
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos import fontes


@pytest.mark.mini
def test_biblioteca_lembrada_igual_a_viva(mini, tmp_path):
    ids = mini.tokenizador.ids("O homem olhou")
    ditos = []
    viva, lembrada = (
        exp.Biblioteca(mini, Memoria(vivo, tmp_path), ditos.append) for vivo in (True, False)
    )
    a, b = viva.passagem(ids), lembrada.passagem(ids)
    for campo in ("h0", "h_final", "logits"):
        np.testing.assert_array_equal(getattr(a, campo), getattr(b, campo))
    assert a.formas == b.formas and all(isinstance(f, tuple) for f in b.formas)
    assert viva.pontas() == lembrada.pontas() and viva.pontas()["amarracao"]["mesmo_endereco"]
    assert viva.limite(mini) == lembrada.limite(mini) != ""
    assert viva.enderecos_no_meta() == lembrada.enderecos_no_meta() == (0, 0)
    assert viva.contas() == lembrada.contas()
    # Cada lembrança é dita, com as versões; como repetir, só na primeira. Ao vivo não há o que dizer.
    assert len(ditos) == 5 and all("transformers" in dito for dito in ditos)
    assert ["--ao-vivo" in dito for dito in ditos] == [True, False, False, False, False]
    assert len({dito.split(".")[0] for dito in ditos}) == 5


@pytest.mark.mini
def test_sem_os_blocos_a_biblioteca_diz_o_que_falta(mini, tmp_path):
    so_tabelas = fontes.Modelo(
        "tabelas", mini.wte, mini.wpe, mini.tokenizador, {}, "", "gpt2", "amarrada", ""
    )
    ditos = []
    biblioteca = exp.Biblioteca(so_tabelas, Memoria(pasta=tmp_path), ditos.append)
    assert biblioteca.passagem([1]) is None
    assert "inteiro" in ditos[0] and not list(tmp_path.iterdir())
    with pytest.raises(ErroDoUsuario):
        biblioteca.pontas()


SO_AS_TABELAS = ("--secao", "4", "--secao", "5", "--secao", "6", "--secao", "7", "--secao", "8")


@pytest.mark.mini
@pytest.mark.cli
def test_segunda_licao_nao_importa_a_biblioteca_e_mostra_o_mesmo(tmp_path):
    # Uma cópia do mini: mexer nos pesos dela não mexe no do repositório.
    pasta = tmp_path / "meu mini"
    shutil.copytree(RAIZ / "data" / "mini", pasta)
    ambiente = {"LAB_RESPOSTAS": str(tmp_path / "respostas"), "PYTHONPROFILEIMPORTTIME": "1"}

    def licao(*mais):
        saida = tmp_path / "saida"
        feito = rodar(
            "02_embeddings.py", "--modelo", str(pasta), "--saida", str(saida), "--sem-graficos",
            *SO_AS_TABELAS, *mais, ambiente=ambiente,
        )  # fmt: skip
        assert feito.returncode == 0, feito.stderr
        importados = {linha.split("|")[-1].strip() for linha in feito.stderr.splitlines()}
        csvs = {p.name: p.read_bytes() for p in saida.glob("*.csv")}
        relatorio = (saida / "relatorio.md").read_text("utf-8")
        return importados, csvs, "**Guardado**" in relatorio

    primeira, csvs, lembrou = licao()
    assert {"torch", "transformers"} <= primeira and not lembrou
    segunda, outros, lembrou = licao()
    assert not {"torch", "transformers", "matplotlib"} & segunda and lembrou
    assert csvs == outros and "6_logits.csv" in csvs
    vivo, outros, lembrou = licao("--ao-vivo")
    assert {"torch", "transformers"} <= vivo and not lembrou
    assert csvs == outros
    # Outros pesos no mesmo lugar: a resposta guardada não serve mais, e ninguém a usa.
    arquivo = pasta / "model.safetensors"
    bruto = bytearray(arquivo.read_bytes())
    fim_do_cabecalho = 8 + int.from_bytes(bruto[:8], "little")
    inicio, fim = json.loads(bruto[8:fim_do_cabecalho])["transformer.ln_f.weight"]["data_offsets"]
    meio = np.frombuffer(bytes(bruto[fim_do_cabecalho + inicio : fim_do_cabecalho + fim]), "<f2")
    bruto[fim_do_cabecalho + inicio : fim_do_cabecalho + fim] = (meio * 2).astype("<f2").tobytes()
    arquivo.write_bytes(bruto)
    mudado, outros, lembrou = licao()
    assert "transformers" in mudado
    assert outros["6_proximos.csv"] != csvs["6_proximos.csv"]
    assert ler_csv(tmp_path / "saida", "6_logits")[0]["confere"] == "True"
