"""Trocar o RoPE de um Llama sorteado e a wpe de um GPT-2 sorteado, e devolver tudo no lugar."""

import pytest
import torch

from nucleo.contas.escalonamento import linear, yarn
from nucleo.contas.posicoes import ErroDePosicao
from nucleo.contas.posicoes_no_modelo import (
    TextoLido,
    comparar,
    ler,
    projecoes_permutadas,
    rope_trocado,
    sem_posicao,
    wpe_zerada,
)

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        initializer_range=0.3,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=50, n_positions=40, n_embd=24, n_layer=2, n_head=2, initializer_range=0.3
    )
    return GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def ids():
    return torch.randint(50, (30,), generator=torch.Generator().manual_seed(1))


def test_nosso_rope_da_os_mesmos_logits(llama, ids):
    antes = ler(llama, ids)
    with rope_trocado(llama):
        depois = ler(llama, ids)
    # Ângulos em float64 contra float32, passados por duas camadas: sobra ruído de float32.
    assert comparar(antes, depois).maior_diferenca < 1e-4
    assert comparar(antes, depois).mesma_resposta == 1


@pytest.mark.parametrize(
    ("parametros", "escala"),
    [
        ({"rope_type": "linear", "factor": 4.0}, linear(8, 4.0, 5000.0)),
        (
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
            yarn(8, 4.0, 16, 5000.0),
        ),
    ],
)
def test_escala_dada_e_a_do_config(llama, ids, parametros, escala):
    from transformers import LlamaForCausalLM

    config = llama.config.__class__.from_dict(
        {**llama.config.to_dict(), "rope_parameters": {**parametros, "rope_theta": 5000.0}}
    )
    deles = LlamaForCausalLM(config).eval()
    deles.load_state_dict(llama.state_dict())
    certo = ler(deles, ids)
    with rope_trocado(llama, escala=escala):
        assert comparar(certo, ler(llama, ids)).maior_diferenca < 1e-4
    with rope_trocado(deles):  # lida do config
        assert comparar(certo, ler(deles, ids)).maior_diferenca < 1e-4


def test_caso_66_pareamento_errado_e_o_conserto(llama, ids):
    certo = ler(llama, ids)
    with rope_trocado(llama, "intercalado"):
        errado = ler(llama, ids)
    assert comparar(certo, errado).maior_diferenca > 0.1
    # O primeiro token só vê a si mesmo, com ângulo zero: não percebe a troca, e é isso que engana.
    assert (certo.log_probs[0] - errado.log_probs[0]).abs().max() < 1e-4
    with projecoes_permutadas(llama), rope_trocado(llama, "intercalado"):
        assert comparar(certo, ler(llama, ids)).maior_diferenca < 1e-4


def test_parado_e_posicao_toda_igual(llama, ids):
    with rope_trocado(llama, parado=True):
        parado = ler(llama, ids)
    iguais = llama(
        ids[None],
        attention_mask=torch.ones_like(ids[None]),
        position_ids=torch.full_like(ids[None], 7),
        use_cache=False,
    ).logits[0]
    assert (parado.log_probs - iguais.log_softmax(-1)).abs().max() < 1e-4
    # Sem a máscara escrita, posições repetidas viram «textos colados»: é outra conta.
    colados = llama(ids[None], position_ids=torch.full_like(ids[None], 7), use_cache=False).logits[
        0
    ]
    assert (colados - iguais).abs().max() > 1e-2
    assert comparar(ler(llama, ids), parado).variacao_total > 0.01


def test_parado_com_uma_camada_a_ultima_posicao_nao_ve_a_ordem(llama, ids):
    """O que se viu com a atenção de brinquedo, num Llama de verdade."""
    trocados = ids.clone()
    trocados[[3, 10]] = ids[[10, 3]]
    camadas = llama.model.layers
    try:
        llama.model.layers, llama.config.num_hidden_layers = camadas[:1], 1
        with rope_trocado(llama, parado=True):
            uma = (ler(llama, ids).log_probs[-1] - ler(llama, trocados).log_probs[-1]).abs().max()
    finally:
        llama.model.layers, llama.config.num_hidden_layers = camadas, 2
    with rope_trocado(llama, parado=True):
        duas = (ler(llama, ids).log_probs[-1] - ler(llama, trocados).log_probs[-1]).abs().max()
    assert uma < 1e-4 < 1e-2 < duas


def test_tudo_volta_ao_lugar_mesmo_com_erro(llama, ids):
    from transformers.models.llama import modeling_llama

    antes, funcao, tabela = (
        ler(llama, ids),
        modeling_llama.apply_rotary_pos_emb,
        llama.model.rotary_emb,
    )
    pesos = {nome: p.clone() for nome, p in llama.named_parameters()}
    with (
        pytest.raises(RuntimeError),
        projecoes_permutadas(llama),
        rope_trocado(llama, "intercalado"),
    ):
        raise RuntimeError
    assert modeling_llama.apply_rotary_pos_emb is funcao and llama.model.rotary_emb is tabela
    assert all(torch.equal(p, pesos[nome]) for nome, p in llama.named_parameters())
    assert torch.equal(ler(llama, ids).perdas, antes.perdas)


def test_wpe_zerada(gpt2, ids):
    antes, original = ler(gpt2, ids), gpt2.transformer.wpe.weight.clone()
    with wpe_zerada(gpt2):
        assert gpt2.transformer.wpe.weight.abs().max() == 0
        sem = ler(gpt2, ids)
    assert torch.equal(gpt2.transformer.wpe.weight, original)
    assert comparar(antes, sem).variacao_total > 0.01
    assert torch.equal(ler(gpt2, ids).perdas, antes.perdas)


def test_perda_igual_a_do_transformers(llama, gpt2, ids):
    for modelo in (llama, gpt2):
        esperado = modelo(ids[None], labels=ids[None]).loss.item()
        assert ler(modelo, ids).perda == pytest.approx(esperado, abs=1e-5)
    assert ler(llama, ids).log_probs.shape == (30, 50)  # caso 22: o argmax é sobre V, por posição


def test_comparar_consigo_mesmo(llama, ids):
    c = comparar(ler(llama, ids), ler(llama, ids))
    assert (c.variacao_total, c.mesma_resposta, c.maior_diferenca) == (0, 1, 0)


def test_comparar_a_mao():
    p = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]]).log()
    q = torch.tensor([[0.6, 0.3, 0.1], [0.8, 0.1, 0.1], [0.5, 0.3, 0.2]]).log()
    c = comparar(TextoLido(p, torch.tensor([1.0, 3.0])), TextoLido(q, torch.tensor([2.0, 3.0])))
    assert (c.perda_antes, c.perda_depois) == (2.0, 2.5)
    assert c.variacao_total == pytest.approx((0.1 + 0.7 + 0) / 3)
    assert c.mesma_resposta == pytest.approx(2 / 3)


def test_um_modelo_sem_rope_tem_mensagem(gpt2):
    with pytest.raises(ErroDePosicao) as erro, rope_trocado(gpt2):
        pass
    assert erro.value.o_que and erro.value.por_que and erro.value.o_que_fazer


def test_sem_posicao_mede_a_perda_e_as_duas_ordens(llama, gpt2, ids):
    trocados = ids[[1, 0, *range(2, len(ids))]]
    for modelo, como in ((gpt2, "wpe zerada"), (llama, "posições iguais")):
        antes = ler(modelo, ids)
        m = sem_posicao(modelo, [ids], (ids, trocados))
        assert m.como == como and m.mudanca.perda_antes == antes.perda != m.mudanca.perda_depois
        depois = ler(modelo, trocados).log_probs[-1].exp()
        esperado = (antes.log_probs[-1].exp() - depois).abs().sum() / 2
        assert m.ordens_com == pytest.approx(float(esperado)) and 0 < m.ordens_sem < 1
        assert torch.equal(
            ler(modelo, ids).perdas, antes.perdas
        )  # e o modelo volta a ser o que era
