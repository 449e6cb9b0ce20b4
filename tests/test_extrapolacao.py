"""Treinar curto e ler longo: os pesos em 8 bits, a perda por caractere e a tabela do repositório."""

import json
import re

import pytest
import torch
import torch.nn.functional as F

from conftest import erro_gentil, ler_csv, licao_pronta, rodar_dentro
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas.posicoes import ErroDePosicao
from nucleo.licoes import l06_extrapolacao as exp
from nucleo.treino import extrapolacao as ex
from nucleo.treino.esquemas import ESQUEMAS, Medidas, ModeloDeEsquema

LICAO = "06_extrapolacao.py"
unit = pytest.mark.unit


@pytest.fixture
def pequeno(monkeypatch):
    """Modelos que cabem num teste, no lugar dos da lição."""
    monkeypatch.setattr(
        ex, "MEDIDAS", Medidas(vocabulario=12, d=16, camadas=1, cabecas=2, treino=8)
    )
    monkeypatch.setattr(ex, "COMPRIMENTOS", (8, 16))
    return ex


@pytest.fixture
def ids():
    return torch.randint(12, (161,), generator=torch.Generator().manual_seed(0))


# ------------------------------------------------------------------ pesos


@unit
def test_oito_bits_erram_menos_que_meio_degrau():
    pesos = {"a": torch.randn(7, 33), "b": torch.zeros(5), "c": torch.randn(4) * 1e-3}
    volta = ex.descomprimir(ex.comprimir(pesos))
    assert set(volta) == set(pesos)
    for nome, w in pesos.items():
        degrau = w.abs().amax(-1, keepdim=True) / 127
        assert ((volta[nome] - w).abs() <= degrau / 2 + 1e-9).all()


@unit
@pytest.mark.parametrize("esquema", ESQUEMAS)
def test_guardar_e_abrir(pequeno, ids, tmp_path, esquema):
    modelo = ModeloDeEsquema(esquema, ex.MEDIDAS, 1).eval()
    onde = ex.guardar(modelo, 1, tmp_path)
    assert list(tmp_path.iterdir()) == [onde]  # nada pela metade fica para trás
    aberto = ex.abrir(esquema, 1, tmp_path)
    assert aberto.lm_head.weight is aberto.transformer.entrada.tabela.weight
    antes, depois = (ex.perdas(m, ids, 8).mean() for m in (modelo, aberto))
    assert abs(antes - depois) < 0.02
    # Guardar o que se abriu não muda mais nada: 8 bits de 8 bits são os mesmos.
    ex.guardar(aberto, 2, tmp_path)
    de_novo = ex.abrir(esquema, 2, tmp_path)
    assert (ex.perdas(de_novo, ids, 8) - ex.perdas(aberto, ids, 8)).abs().max() < 1e-5


@unit
def test_sem_os_pesos_diz_como_treinar(pequeno, tmp_path):
    ex.guardar(ModeloDeEsquema("RoPE", ex.MEDIDAS, 1), 1, tmp_path)
    with pytest.raises(ErroDoUsuario):
        ex.ficha(tmp_path)
    with pytest.raises(ErroDoUsuario):
        ex.avaliar(torch.zeros(20, dtype=torch.long), (2,), tmp_path)


# ------------------------------------------------------------------ a perda


@unit
@torch.no_grad()
def test_perdas_sao_as_de_cada_janela_a_mao(pequeno, ids):
    modelo = ModeloDeEsquema("RoPE", ex.MEDIDAS, 1).eval()
    medidas = ex.perdas(modelo, ids, 16)
    assert medidas.shape == (160,)
    for n in range(10):
        janela = ids[n * 16 : n * 16 + 17]
        a_mao = F.cross_entropy(modelo(janela[None, :-1])[0], janela[1:], reduction="none")
        assert (medidas[n * 16 : (n + 1) * 16] - a_mao).abs().max() < 1e-5
    assert ex.perdas(modelo, ids, 48).shape == (144,)  # o resto que não enche fica de fora


@unit
def test_avaliar_le_o_que_se_pede_e_esticar_nao_vaza(pequeno, ids, tmp_path):
    for esquema in ESQUEMAS:
        ex.guardar(ModeloDeEsquema(esquema, ex.MEDIDAS, 1), 1, tmp_path)
    medidas, esticadas = ex.avaliar(ids, (1,), tmp_path)
    assert ("aprendido", 16) not in medidas and ("aprendido", 8) in medidas
    # No comprimento de treino não há o que esticar; fora dele, cada receita é outra conta.
    assert torch.equal(esticadas["linear", 8], medidas["RoPE", 8])
    assert not torch.equal(esticadas["linear", 16], medidas["RoPE", 16])
    assert torch.equal(esticadas["sem esticar", 16], medidas["RoPE", 16])
    de_novo, nada = ex.avaliar(ids, (1,), tmp_path, comprimentos=(16,), esticar=False)
    assert torch.equal(de_novo["RoPE", 16], medidas["RoPE", 16])
    assert {L for _, L in de_novo} == {16} and nada == {}
    assert list(exp.por_comprimento(de_novo, "t", "e").colunas) == ["e", "16"]


@unit
def test_aprendido_alem_da_tabela(pequeno, ids):
    with pytest.raises(ErroDePosicao):
        ex.perdas(ModeloDeEsquema("aprendido", ex.MEDIDAS, 1).eval(), ids, 9)


@unit
def test_media_com_faixa():
    m = exp.media(torch.tensor([[1.0, 3.0], [3.0, 3.0], [2.0, 2.0]]))
    assert (m, m.faixa) == (pytest.approx(7 / 3), pytest.approx(0.5))
    assert m.texto() == "2,333 ± 0,500" and exp.ComFaixa(1.0, 0.0).texto() == "1,000"


@unit
def test_esquemas_pedidos():
    assert ex.quais([]) == list(ESQUEMAS)
    assert ex.quais(["rope", "t5"]) == ["RoPE", "T5"]
    with pytest.raises(ErroDoUsuario, match="xpos"):
        ex.quais(["xpos"])


# ------------------------------------------------------------------ o treino


@unit
def test_treino_repete_e_aprende(pequeno, monkeypatch):
    monkeypatch.setattr(ex, "LOTE", 4)
    fita = torch.arange(12).repeat(200).numpy()  # 0, 1, …, 11, 0, 1, …: adivinhar é contar
    um, outro = (ex.treinar("RoPE", 1, fita, passos=30) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(um.parameters(), outro.parameters(), strict=True))
    ids = torch.from_numpy(fita[:81])
    novo = ModeloDeEsquema("RoPE", ex.MEDIDAS, 1).eval()
    assert ex.perdas(um, ids, 8).mean() < ex.perdas(novo, ids, 8).mean() - 0.3


# ------------------------------------------------------------------ o que vem no repositório


@pytest.mark.cli
@pytest.mark.parametrize("secoes", ["1", pytest.param("12345", marks=pytest.mark.longo)])
def test_a_tabela_se_refaz_dos_pesos(secoes):
    pedidas = [] if secoes == "12345" else ["--secao", secoes]
    feito, pasta = licao_pronta(LICAO, "--rapido", *pedidas)
    dados = json.loads((pasta / "resultado.json").read_text("utf-8"))
    assert dados["nao_conferem"] == []
    if not pedidas:
        # As perdas anotadas, e à mão: bigrama 2, esquemas 3, a janela 1, frequências 3.
        assert dados["conferencias"] == len(ESQUEMAS) + 9
    assert re.findall(r"^(\d) · ", feito.stdout, re.M) == list(secoes)
    assert not re.search(r"\bnan\b|\bNone\b|tensor\(", feito.stdout)


@pytest.mark.cli
@pytest.mark.longo
def test_as_tabelas_contra_o_que_se_anotou():
    """Com a primeira semente: quem vence o 5-grama, a perplexidade e o efeito até 128, pela ficha."""
    _, pasta = licao_pronta(LICAO, "--rapido")
    ficha = ex.ficha()
    regua, corrido = (ficha["perda_5_grama"][como] for como in ("128", "corrido"))
    perplexidade = {x["esquema"]: x for x in ler_csv(pasta, "1_perplexidade")}
    for linha in ler_csv(pasta, "1_no_treino"):
        anotada = ficha["perdas"][linha["esquema"]]["128"][0]
        assert float(linha["perda"]) == pytest.approx(anotada, abs=1e-3)
        assert (linha["vence o 5-grama"] == "sim") == (anotada < regua)
        assert (linha["vence o corrido"] == "sim") == (anotada < corrido)
        lida = float(perplexidade[linha["esquema"]]["perplexidade"])
        assert lida == pytest.approx(2.718281828 ** float(linha["perda"]), rel=1e-6)
    efeito = ler_csv(pasta, "3_efeito")
    assert {x["esquema"] for x in efeito} == set(ESQUEMAS) - {"aprendido"}
    for linha in efeito:
        # 1.024 menos 128, nos mesmos caracteres: a média dos blocos é a diferença das médias.
        longa, curta = (ficha["perdas"][linha["esquema"]][L][0] for L in ("1024", "128"))
        blocos = [float(v) for nome, v in linha.items() if nome != "esquema"]
        assert abs(blocos[0]) < 1e-6
        assert sum(blocos) / 8 == pytest.approx(longa - curta, abs=2e-3)


@unit
def test_os_pesos_do_repositorio():
    ficha = ex.ficha()
    assert ex.presentes(ex.SEMENTES) == list(ESQUEMAS)
    assert sum(ex.arquivo(e, s).stat().st_size for e in ESQUEMAS for s in ex.SEMENTES) < 9e6
    assert (
        len(ex.validacao(ficha["letras"])) == ex.CARACTERES + 1 == ficha["caracteres_avaliados"] + 1
    )
    # Todo esquema, com toda semente, vence o 5-grama que lê as mesmas janelas.
    for esquema in ESQUEMAS:
        assert max(ficha["perdas"][esquema]["128"]) < ficha["perda_5_grama"]["128"] - 0.01, esquema


@pytest.mark.cli
@pytest.mark.parametrize(
    ("opcoes", "trechos"),
    [
        (["--treinar"], ["--corpus"]),
        (["--treinar", "xpos", "--corpus", "."], ["xpos", "RoPE"]),
        (["--treinar", "RoPE", "--corpus", "nao-existe"], ["nao-existe"]),
        (["--pesos", "nao-existe"], ["ficha.json"]),
        (["--semente", "4"], ["4"]),
    ],
)
def test_enganos_na_linha_de_comando(opcoes, trechos, tmp_path):
    feito = rodar_dentro(LICAO, *opcoes, "--saida", str(tmp_path))
    erro_gentil(feito, *trechos)
    assert not list(tmp_path.iterdir())
