"""One-hot, h₀ e os limites de índice e de posição (casos 19, 20, 25 e 26)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import amarracao, vetores
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos import familias, pontas
from nucleo.modelos.fontes import Modelo


def modelo_de_mao(V=11, d=4, n=6, primeira=0, com_wpe=True) -> Modelo:
    sorteio = np.random.default_rng(0)
    wte = sorteio.standard_normal((V, d)).astype(np.float32)
    wpe = sorteio.standard_normal((n, d)).astype(np.float32) if com_wpe else None
    ficha = replace(familias.da_config({"model_type": "gpt2"}), primeira=primeira)
    return Modelo("de mão", wte, wpe, None, {}, "teste", "amarrada", "", ficha)


@pytest.mark.unit
@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 1000), st.data())
@settings(max_examples=80, deadline=None)
def test_onehot_vezes_tabela_e_a_linha_exata(V, d, semente, dados):
    W = np.random.default_rng(semente).standard_normal((V, d)).astype(np.float32)
    i = dados.draw(st.integers(0, V - 1))
    assert (vetores.onehot(i, V) @ W == W[i]).all()


@pytest.mark.unit
@pytest.mark.parametrize("i", [-1, 5, 99])
def test_onehot_fora_da_tabela(i):
    with pytest.raises(IndexError, match="linhas 0 a 4"):
        vetores.onehot(i, 5)


@pytest.mark.unit
def test_h0_e_a_soma_linha_a_linha():
    m = modelo_de_mao()
    h0 = pontas.h0(m, [3, 3, 7])
    for n, i in enumerate((3, 3, 7)):
        np.testing.assert_array_equal(h0[n], m.wte[i] + m.wpe[n])
    # O mesmo token em dois lugares: mesma linha de conteúdo, vetores diferentes.
    assert (h0[0] != h0[1]).any()


@pytest.mark.unit
def test_roberta_comeca_na_linha_2():
    m = modelo_de_mao(n=6, primeira=2)
    assert m.n_ctx == 4
    np.testing.assert_array_equal(pontas.h0(m, [1]), m.wte[[1]] + m.wpe[2])
    assert pontas.posicoes(m, 4).tolist() == [2, 3, 4, 5]


@pytest.mark.unit
def test_sem_wpe_a_posicao_e_zero():
    m = modelo_de_mao(com_wpe=False)
    o_que, onde = pontas.partes_de_h0(m, [1, 2])
    assert (onde == 0).all() and (o_que == m.wte[[1, 2]]).all()
    assert len(pontas.posicoes(m, 10_000)) == 10_000


@pytest.mark.unit
@pytest.mark.parametrize(("n", "primeira"), [(7, 0), (5, 2)])
def test_posicao_que_nao_existe_diz_os_dois_numeros(n, primeira):
    m = modelo_de_mao(n=6, primeira=primeira)
    with pytest.raises(ErroDoUsuario, match=rf"{n} tokens.*{m.n_ctx} posições"):
        pontas.h0(m, [0] * n)
    assert pontas.h0(m, [0] * m.n_ctx).shape == (m.n_ctx, 4)


@pytest.mark.unit
@pytest.mark.parametrize("id_", [11, 50257])
def test_token_acrescentado_sem_linha_na_tabela(id_):
    with pytest.raises(ErroDoUsuario, match=f"id {id_} não existe"):
        pontas.h0(modelo_de_mao(), [0, id_])


@pytest.mark.unit
def test_conferencia_dos_sorteados_rejeita_vetores_tortos():
    gauss = vetores.cossenos_gaussianos(256, 20_000, 2)
    assert all(c.confere for c in exp.conferir_gaussianos(gauss, 256))
    # Um sorteio com média diferente de zero (erro comum) não pode passar.
    assert not all(c.confere for c in exp.conferir_gaussianos(gauss + 0.02, 256))
    assert not all(c.confere for c in exp.conferir_gaussianos(gauss * 1.2, 256))


@pytest.mark.unit
def test_embaralhar_troca_os_ids_e_nao_os_vetores():
    e = vetores.embaralhar(modelo_de_mao().wte, [1, 5, 1], 3)
    assert e.diferenca == 0 and e.antes != e.depois and e.depois[0] == e.depois[2]


# --- contra a biblioteca ---------------------------------------------------------------


@pytest.mark.smollm2
def test_h0_e_logits_do_smollm2_iguais_aos_da_biblioteca(smollm2):
    ids = smollm2.tokenizador.ids("The cat sat on the mat")
    p = pontas.passar(smollm2, ids)
    np.testing.assert_allclose(pontas.h0(smollm2, ids), p.h0, atol=1e-5)
    assert exp.saida_a_mao(smollm2, p)[1] is smollm2.wte
    # O próximo token mais provável também é o mesmo: argmax sobre o vocabulário (caso 22).
    nossos = p.h_final @ smollm2.wte.T
    # 576 parcelas em float32 erram até 576 · 2⁻²⁴ = 3,4e-5 do maior logit; na prática, muito menos.
    assert np.abs(nossos - p.logits).max() < 3.4e-5 * np.abs(p.logits).max()
    assert (nossos.argmax(-1) == p.logits.argmax(-1)).all() and p.logits.shape == (
        len(ids),
        smollm2.V,
    )


@pytest.mark.smollm2
def test_amarracao_do_smollm2(smollm2):
    r = amarracao.amarracao(*pontas.matrizes_das_pontas(smollm2))
    assert r == amarracao.Amarracao(True, True, True, True)
    # Caso 45: a cabeça amarrada some de named_parameters, e volta com remove_duplicate=False.
    lm = smollm2.completo()
    assert "lm_head.weight" not in dict(lm.named_parameters())
    assert "lm_head.weight" in dict(lm.named_parameters(remove_duplicate=False))


@pytest.mark.smollm2
def test_congelar_tudo_menos_a_cabeca_congela_a_mesma_matriz(smollm2):
    """Caso 46: com pesos amarrados não existe treinar só a cabeça."""
    lm = smollm2.completo()
    cabeca, entrada_ = lm.get_output_embeddings().weight, lm.get_input_embeddings().weight
    antes = cabeca.requires_grad
    try:
        cabeca.requires_grad_(False)
        assert entrada_.requires_grad is False
    finally:
        cabeca.requires_grad_(antes)


@pytest.mark.smollm2
def test_wte_do_smollm2_e_a_do_gguf(smollm2):
    """Fonte independente da conversão: o tensor lido direto do GGUF pela biblioteca gguf."""
    gguf = pytest.importorskip("gguf")
    from nucleo.modelos import smollm2 as fonte

    arquivo = fonte.achar_gguf()
    if arquivo is None:
        pytest.skip("o pacote do SmolLM2 não está instalado aqui (só a conversão)")
    tensor = next(t for t in gguf.GGUFReader(str(arquivo)).tensors if t.name == "token_embd.weight")
    direto = gguf.dequantize(tensor.data, tensor.tensor_type)
    np.testing.assert_array_equal(direto, smollm2.wte)


@pytest.mark.smollm2
def test_tabela_aberta_e_so_leitura_e_mapeada(smollm2):
    assert isinstance(smollm2.wte, np.memmap) and smollm2.wte.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        smollm2.wte[0, 0] = 1
