"""Trocar o RoPE de um Llama sorteado e a wpe de um GPT-2 sorteado, e devolver tudo no lugar."""

import pytest
import torch

import modelos_minusculos as mm
from nucleo.contas import folga
from nucleo.contas.escalonamento import linear, yarn
from nucleo.contas.posicoes import ErroDePosicao
from nucleo.contas.posicoes_no_modelo import (
    TextoLido,
    comparar,
    ler,
    projecoes_permutadas,
    rope_trocado,
    sem_posicao,
    tabela_zerada,
)
from nucleo.modelos.familias import CONHECIDAS, ROPE, Giro, da_config

pytestmark = pytest.mark.unit

GIRO = Giro(8, 8)  # o do Llama de baixo: 48 números em 6 cabeças


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
    with rope_trocado(llama, GIRO):
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
    with rope_trocado(llama, GIRO, escala=escala):
        assert comparar(certo, ler(llama, ids)).maior_diferenca < 1e-4
    with rope_trocado(deles, GIRO):  # lida do config
        assert comparar(certo, ler(deles, ids)).maior_diferenca < 1e-4


def test_caso_66_pareamento_errado_e_o_conserto(llama, ids):
    certo = ler(llama, ids)
    with rope_trocado(llama, GIRO, "intercalado"):
        errado = ler(llama, ids)
    assert comparar(certo, errado).maior_diferenca > 0.1
    # O primeiro token só vê a si mesmo, com ângulo zero: não percebe a troca, e é isso que engana.
    assert (certo.log_probs[0] - errado.log_probs[0]).abs().max() < 1e-4
    with projecoes_permutadas(llama, GIRO), rope_trocado(llama, GIRO, "intercalado"):
        assert comparar(certo, ler(llama, ids)).maior_diferenca < 1e-4


def test_parado_e_posicao_toda_igual(llama, ids):
    with rope_trocado(llama, GIRO, parado=True):
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
        with rope_trocado(llama, GIRO, parado=True):
            uma = (ler(llama, ids).log_probs[-1] - ler(llama, trocados).log_probs[-1]).abs().max()
    finally:
        llama.model.layers, llama.config.num_hidden_layers = camadas, 2
    with rope_trocado(llama, GIRO, parado=True):
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
        projecoes_permutadas(llama, GIRO),
        rope_trocado(llama, GIRO, "intercalado"),
    ):
        raise RuntimeError
    assert modeling_llama.apply_rotary_pos_emb is funcao and llama.model.rotary_emb is tabela
    assert all(torch.equal(p, pesos[nome]) for nome, p in llama.named_parameters())
    assert torch.equal(ler(llama, ids).perdas, antes.perdas)


def test_tabela_zerada(gpt2, ids):
    antes, original = ler(gpt2, ids), gpt2.transformer.wpe.weight.clone()
    with tabela_zerada(gpt2, "wpe.weight"):
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
    with pytest.raises(ErroDePosicao) as erro, rope_trocado(gpt2, None):
        pass
    assert erro.value.o_que and erro.value.por_que and erro.value.o_que_fazer


def test_sem_posicao_mede_a_perda_e_as_duas_ordens(llama, gpt2, ids):
    trocados = ids[[1, 0, *range(2, len(ids))]]
    jeitos = {
        "wpe zerada": (gpt2, {"tabela": "wpe.weight"}),
        "posições iguais": (llama, {"giro": GIRO}),
    }
    for como, (modelo, opcoes) in jeitos.items():
        antes = ler(modelo, ids)
        m = sem_posicao(modelo, [ids], (ids, trocados), **opcoes)
        assert m.como == como and m.mudanca.perda_antes == antes.perda != m.mudanca.perda_depois
        depois = ler(modelo, trocados).log_probs[-1].exp()
        esperado = (antes.log_probs[-1].exp() - depois).abs().sum() / 2
        assert m.ordens_com == pytest.approx(float(esperado)) and 0 < m.ordens_sem < 1
        assert torch.equal(
            ler(modelo, ids).perdas, antes.perdas
        )  # e o modelo volta a ser o que era


# --- o giro em todas as famílias -------------------------------------------------------------------

# Os caminhos de cada família que mudam o giro: a parte que gira, as normas de q e k, a receita.
CAMINHOS = {
    "phi com normas": ("phi", {"qk_layernorm": True}),
    "stablelm com normas": ("stablelm", {"qk_layernorm": True, "use_qkv_bias": True}),
    "cohere com normas": ("cohere", {"use_qk_norm": True}),
    "falcon de várias chaves": ("falcon", {"multi_query": False, "bias": True}),
    "falcon novo": ("falcon_novo", {}),
    "phi3 parcial": ("phi3_parcial", {}),
    "gptj inteiro": ("gptj", {"rotary_dim": 16}),
    "qwen2 amarrado": ("qwen2_amarrado", {}),
    "smollm3 de duas em duas": ("smollm3", {"no_rope_layer_interval": 2, "no_rope_layers": None}),
}
RECEITAS = {
    "linear": {"factor": 3.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 8},
    "yarn inteira": {
        "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 20.0, "beta_slow": 2.0,
        "mscale": 0.7, "mscale_all_dim": 1.3, "truncate": False,
    },
    "yarn com temperatura": {
        "factor": 4.0, "original_max_position_embeddings": 8, "attention_factor": 0.8
    },
    "llama3": {
        "factor": 4.0, "original_max_position_embeddings": 8, "low_freq_factor": 1.0,
        "high_freq_factor": 3.0,
    },
    "longrope curto": {
        "short_factor": [1.0 + i / 4 for i in range(8)], "long_factor": [2.0 + i for i in range(8)],
        "original_max_position_embeddings": 24, "factor": 2.0,
    },
    "longrope longo": {
        "short_factor": [1.0 + i / 4 for i in range(8)], "long_factor": [2.0 + i for i in range(8)],
        "original_max_position_embeddings": 8,
    },
    "longrope com temperatura": {
        "short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "original_max_position_embeddings": 8,
        "attention_factor": 1.2,
    },
}  # fmt: skip
QUE_GIRAM = [
    f
    for f in CONHECIDAS
    if f != "gemma3" and da_config(mm.config(f, d=32).to_dict()).posicao == ROPE
]


def da_receita(nome):
    parametros = {"rope_type": nome.split()[0], "rope_theta": 5000.0} | RECEITAS[nome]
    return "llama", {"rope_parameters": parametros}


def prever(lm, ids):
    """(T, V): as log-probabilidades de cada posição; do ModernBERT, as da máscara."""
    with torch.inference_mode():
        return lm(ids[None]).logits[0].log_softmax(-1)


@pytest.mark.parametrize("caso", [*QUE_GIRAM, *CAMINHOS, *RECEITAS])
def test_o_nosso_giro_e_o_da_familia_e_os_pesos_permutados_tambem(caso):
    nome, extra = da_receita(caso) if caso in RECEITAS else CAMINHOS.get(caso, (caso, {}))
    lm = mm.montar(nome, d=32, cabecas=2, camadas=4, n_ctx=24, **extra)
    giro = da_config(lm.config.to_dict()).giro
    # 24 posições; as receitas são lidas também além do treino delas.
    ids = torch.randint(mm.VOCAB, (24,), generator=torch.Generator().manual_seed(1))
    outro = {"metades": "intercalado", "intercalado": "metades"}[giro.pareamento]
    antes = prever(lm, ids)
    # Ângulos em float64 contra float32, por quatro camadas: o que a folga dá a outra ordem de somas.
    teto = folga.modelo(4, 32, float(antes.abs().max()))
    with rope_trocado(lm, giro):
        assert (prever(lm, ids) - antes).abs().max() <= teto
    with rope_trocado(lm, giro, outro):
        errado = (prever(lm, ids) - antes).abs().max()
    with projecoes_permutadas(lm, giro), rope_trocado(lm, giro, outro):
        assert (prever(lm, ids) - antes).abs().max() <= teto
    with rope_trocado(lm, giro, parado=True):
        assert (
            prever(lm, ids) - antes
        ).abs().max() > 100 * teto  # a posição chega mesmo ao resultado
    # O pareamento que a ficha diz é o certo: com o outro, a conta é outra.
    assert errado > 100 * teto
    assert torch.equal(prever(lm, ids), antes)  # tudo volta ao lugar


def test_esquecer_o_vies_ou_a_norma_e_visto():
    """Qwen2 com viés, Qwen3 com norma: mover só os pesos muda a resposta (o engano conhecido)."""
    for nome, partes in (("qwen2", ".bias"), ("qwen3", "_norm.weight")):
        lm = mm.montar(nome, d=32, cabecas=2)
        giro = da_config(lm.config.to_dict()).giro
        ids = torch.arange(3, 20)
        antes = prever(lm, ids)
        esquecidos = {n: p.data for n, p in lm.named_parameters() if n.endswith(partes)}
        with projecoes_permutadas(lm, giro), rope_trocado(lm, giro, "intercalado"):
            for n, p in lm.named_parameters():
                p.data = esquecidos.get(n, p.data)
            assert (prever(lm, ids) - antes).abs().max() > 1e-2


@pytest.mark.parametrize("nome", [f for f in CONHECIDAS if f not in (*QUE_GIRAM, "gemma3")])
def test_quem_nao_gira_e_recusado_pelo_nome(nome):
    lm = mm.montar(nome)
    giro = da_config(lm.config.to_dict()).giro
    assert giro is None
    with pytest.raises(ErroDePosicao, match="não tem um RoPE"), rope_trocado(lm, giro):
        pass


def test_giro_impar_nao_chega_a_formula():
    lm = mm.montar("stablelm", d=16, cabecas=4)  # um quarto de 4: uma coordenada só
    giro = da_config(lm.config.to_dict()).giro
    with pytest.raises(ErroDePosicao, match="número ímpar"), rope_trocado(lm, giro):
        pass
