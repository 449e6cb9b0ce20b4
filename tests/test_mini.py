"""data/mini, tal como está no repositório: abre, é atado de verdade, escreve, e a wpe tem forma."""

import json
import os

import numpy as np
import pytest
import torch
from safetensors import safe_open

from nucleo.treino import mini
from nucleo.treino import treinador as tr
from nucleo.treino.ngramas import KneserNey

pytestmark = pytest.mark.mini


@pytest.fixture(scope="module")
def aberto():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    modelo = AutoModelForCausalLM.from_pretrained(mini.PASTA, dtype=torch.float32)
    return modelo.eval(), AutoTokenizer.from_pretrained(mini.PASTA)


@pytest.fixture(scope="module")
def medido():
    return mini.resultados()


def test_os_pesos_sao_pequenos_em_float16_e_guardam_a_matriz_uma_vez():
    arquivo = mini.PASTA / "model.safetensors"
    assert arquivo.stat().st_size < 12e6
    with safe_open(arquivo, "pt") as pesos:
        formas = {nome: pesos.get_slice(nome) for nome in pesos.keys()}  # noqa: SIM118
        assert {f.get_dtype() for f in formas.values()} == {"F16"}
        assert not [nome for nome in formas if "lm_head" in nome]


def test_a_entrada_e_a_saida_sao_a_mesma_memoria(aberto):
    modelo, _ = aberto
    entrada, saida = modelo.get_input_embeddings().weight, modelo.get_output_embeddings().weight
    assert entrada.data_ptr() == saida.data_ptr() != 0
    with torch.no_grad():  # o teste que um endereço igual por acaso não passaria
        antes = saida[5, 3].item()
        entrada[5, 3] += 1
        assert saida[5, 3].item() == antes + 1
        entrada[5, 3] -= 1


def test_as_palavras_das_licoes_sao_um_token_so(aberto):
    _, tokenizer = aberto
    for palavra in mini.PALAVRAS:
        ids = tokenizer.encode(" " + palavra, add_special_tokens=False)
        assert len(ids) == 1, palavra
        assert tokenizer.decode(ids) == " " + palavra


def test_o_tokenizer_vai_e_volta_e_os_dois_formatos_concordam(aberto):
    from tokenizers import ByteLevelBPETokenizer

    _, tokenizer = aberto
    do_zero = ByteLevelBPETokenizer(str(mini.PASTA / "vocab.json"), str(mini.PASTA / "merges.txt"))
    for texto in (mini.trecho(), "ação, 日本 🙂\n  — fim", " rei"):
        ids = tokenizer.encode(texto, add_special_tokens=False)
        assert tokenizer.decode(ids) == texto
        assert ids == do_zero.encode(texto).ids
    assert len(tokenizer) == 8192
    assert tokenizer.eos_token_id == 0


def test_escreve_em_portugues(aberto):
    modelo, tokenizer = aberto
    texto = mini.gerar(modelo, tokenizer, novos=60)
    assert texto == mini.gerar(modelo, tokenizer, novos=60)  # a semente decide
    novas = texto.removeprefix(mini.COMECO).lower().split()
    assert len(novas) > 20 and len(set(novas)) > 12
    assert {"de", "a", "o", "que", "e", "não", "da", "do"} & set(novas)


def test_a_wpe_tomou_forma(aberto, medido):
    modelo, _ = aberto
    wpe = modelo.transformer.wpe.weight.detach().numpy()
    k = (1, 2, 4, 8, 16, 32, 64)
    cossenos = dict(zip(k, tr.cosseno_por_defasagem(wpe, k), strict=True))
    assert cossenos[1] > 0.45
    assert cossenos[64] < cossenos[1] / 2
    assert cossenos[32] < cossenos[16] < cossenos[8] < cossenos[1]
    for defasagem, valor in cossenos.items():
        assert medido["cosseno_wpe"][str(defasagem)] == pytest.approx(valor, abs=1e-4)


def test_as_fotos_vao_do_nascimento_ao_modelo_que_esta_aqui(aberto):
    modelo, _ = aberto
    fotos = mini.fotos()
    passos = [f["passo"] for f in fotos]
    assert passos[0] == 0 and passos == sorted(set(passos)) and len(passos) >= 8
    assert all(np.diff([f["perda_validacao"] for f in fotos]) < 0.05)  # a perda desce
    assert np.array_equal(fotos[-1]["wpe"], modelo.transformer.wpe.weight.detach().numpy())
    nascida = tr.cosseno_por_defasagem(fotos[0]["wpe"], (1, 2, 4, 8, 16, 32, 64))
    assert np.abs(nascida).max() < 0.1
    # A semente refaz o nascimento: a foto do passo 0 não foi inventada.
    # (O sorteio passa por logaritmos, que cada processador arredonda a seu modo: em float16, o da foto, isso
    # troca um número ou outro pelo vizinho dele, a 2⁻¹⁰ do seu tamanho.)
    refeita = mini.recem_nascido().transformer.wpe.weight.detach().numpy()
    assert (np.abs(fotos[0]["wpe"] - refeita) <= 2.0**-10 * np.abs(refeita) + 2.0**-24).all()
    iguais = fotos[0]["wpe"] == refeita.astype(np.float16).astype(np.float32)
    assert iguais.mean() > 0.99


def test_o_leiame_e_o_que_foi_medido(medido):
    assert (mini.PASTA / "LEIAME.md").read_text(encoding="utf-8") == mini.leiame(medido)
    assert medido["perplexidade"] < medido["perplexidade_kneser_ney"]
    assert medido["perplexidade"] == pytest.approx(np.exp(medido["perda"]))


def test_o_modelo_do_repositorio_e_o_que_foi_medido(aberto, medido):
    # Sem o corpus, o que se pode refazer aqui: as vizinhas e a contagem de parâmetros.
    modelo, tokenizer = aberto
    assert sum(p.numel() for p in modelo.parameters()) == medido["parametros"]
    wte = modelo.transformer.wte.weight.detach().numpy()
    for palavra, esperadas in medido["vizinhas"].items():
        achadas = mini.vizinhas(wte, tokenizer, palavra)
        assert [v for v, _ in achadas] == [v for v, _ in esperadas]


def test_prevê_melhor_que_as_frequencias_numa_pagina_que_nao_viu(aberto):
    modelo, tokenizer = aberto
    ids = np.array(tokenizer.encode(mini.trecho(), add_special_tokens=False))
    perda = tr.perda_media(modelo, ids, 256)
    # Um unigrama contado na própria página (trapaça a favor dele) ainda perde.
    _, vezes = np.unique(ids, return_counts=True)
    entropia = -(vezes / len(ids) * np.log(vezes / len(ids))).sum()
    assert perda < entropia


@pytest.mark.skipif("LAB_CORPUS" not in os.environ, reason="precisa do corpus: LAB_CORPUS=PASTA")
def test_bate_o_kneser_ney_na_validacao(aberto, medido):
    modelo, tokenizer = aberto
    treino, validacao, regra = tr.separar(tr.ler_corpus(os.environ["LAB_CORPUS"]))
    if regra != medido["validacao"]:
        pytest.skip("este corpus não é o do mini")
    fita, de_fora = (tr.codificar(tokenizer.backend_tokenizer, o) for o in (treino, validacao))
    assert (len(fita), len(de_fora)) == (medido["tokens_treino"], medido["tokens_validacao"])
    perda = tr.perda_media(modelo, de_fora, 256)
    kn = KneserNey(fita, 8192, 5).perda_media(de_fora)
    assert perda == pytest.approx(medido["perda"], abs=1e-3)
    assert kn == pytest.approx(medido["perda_kneser_ney"], abs=1e-6)
    assert perda < kn


def test_o_config_abre_em_qualquer_transformers():
    config = json.loads((mini.PASTA / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["tokenizer_class"] == "GPT2Tokenizer"
    assert json.loads((mini.PASTA / "config.json").read_text())["activation_function"] == "gelu_new"
