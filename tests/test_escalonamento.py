"""As receitas de esticar o contexto contra as frequências do próprio transformers."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nucleo.contas import escalonamento as esc
from nucleo.contas import folga
from nucleo.contas.posicoes import ErroDePosicao, frequencias
from nucleo.contas.rope import girar, tabelas

pytestmark = pytest.mark.unit


def config(tipo, d=64, base=10_000.0, maximo=2048, **extra):
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=2 * d,
        num_attention_heads=2,
        head_dim=d,
        max_position_embeddings=maximo,
        rope_parameters={"rope_type": tipo, "rope_theta": base, **extra},
    )


CASOS = {
    "default": ({}, lambda d, b: esc.sem_escala(d, b)),
    "linear": ({"factor": 4.0}, lambda d, b: esc.linear(d, 4.0, b)),
    "yarn": (
        {"factor": 8.0, "original_max_position_embeddings": 256},
        lambda d, b: esc.yarn(d, 8.0, 256, b),
    ),
    "llama3": (
        {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 256,
        },
        lambda d, b: esc.llama3(d, 8.0, 256, b),
    ),
}


@pytest.mark.parametrize("d", [16, 64, 128])
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("tipo", CASOS)
def test_frequencias_e_giro_iguais_aos_do_transformers(tipo, base, d):
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    extra, nossa = CASOS[tipo]
    deles = LlamaRotaryEmbedding(config(tipo, d, base, **extra))
    escala = nossa(d, base)
    # Relativa: as frequências vão de 1 a 1e-6, e uma tolerância absoluta não veria as lentas.
    assert (escala.frequencias / deles.inv_freq.double() - 1).abs().max() < 1e-5
    assert escala.fator_de_atencao == pytest.approx(deles.attention_scaling, abs=1e-12)

    q = torch.randn(1, 2, 32, d, generator=torch.Generator().manual_seed(0))
    esperado, _ = apply_rotary_pos_emb(q, q, *deles(q, torch.arange(32)[None]))
    cos, sen = tabelas(32, escala.frequencias, fator_de_atencao=escala.fator_de_atencao)
    # Ângulos de até 32 radianos em float32, e cada número girado soma dois do tamanho de q.
    no_angulo = 32 * folga.potencia(base * 8**2, folga.EPS32) + folga.EPS32
    assert (girar(q, cos, sen, "metades") - esperado).abs().max() <= 2 * q.abs().max() * no_angulo


@pytest.mark.parametrize("comprimento", [100, 2048, 2049, 4096, 10_000])
@pytest.mark.parametrize("fator", [1.0, 2.0, 8.0])
def test_dinamico_igual_ao_do_transformers(fator, comprimento):
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    deles, _ = ROPE_INIT_FUNCTIONS["dynamic"](config("dynamic", factor=fator), seq_len=comprimento)
    nossas = esc.ntk_dinamico(64, comprimento, 2048, fator).frequencias
    assert (nossas / deles.double() - 1).abs().max() < 1e-5


def test_dinamico_dentro_da_classe_do_llama():
    """O módulo inteiro, que troca as frequências sozinho quando a sequência passa do treino."""
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    deles = LlamaRotaryEmbedding(config("dynamic", factor=2.0, maximo=64))
    x = torch.zeros(1, 1, 200, 64)
    deles(x, torch.arange(200)[None])
    nossas = esc.ntk_dinamico(64, 200, 64, 2.0).frequencias
    assert (nossas / deles.inv_freq.double() - 1).abs().max() < 1e-5


@given(
    d=st.integers(4, 64).map(lambda m: 2 * m),
    fator=st.floats(1, 64),
    treino=st.integers(32, 16_384),
    base=st.sampled_from([10_000.0, 500_000.0]),
)
@settings(max_examples=60, deadline=None)
def test_o_que_toda_receita_promete(d, fator, treino, base):
    theta = frequencias(d, base)
    for escala in (
        esc.linear(d, fator, base),
        esc.ntk(d, fator, base),
        esc.yarn(d, fator, treino, base),
        esc.yarn(d, fator, treino, base, rampa="artigo"),
        esc.llama3(d, fator, treino, base),
    ):
        razao = theta / escala.frequencias
        # Nenhum par acelera, e nenhum é mais esticado que o fator.
        assert float(razao.min()) >= 1 - 1e-9 and float(razao.max()) <= fator * (1 + 1e-9)
    ntk = esc.ntk(d, fator, base).frequencias
    assert float(ntk[0]) == 1.0
    assert float(ntk[-1]) == pytest.approx(float(theta[-1]) / fator)


@pytest.mark.parametrize(
    "receita",
    [
        lambda: esc.linear(64, 1.0),
        lambda: esc.ntk(64, 1.0),
        lambda: esc.yarn(64, 1.0, 2048),
        lambda: esc.llama3(64, 1.0, 8192, 10_000.0),
        lambda: esc.ntk_dinamico(64, 2048, 2048, 8.0),
        lambda: esc.ntk_dinamico(64, 5, 2048, 8.0),
    ],
)
def test_sem_esticar_nada_muda(receita):
    escala = receita()
    assert (escala.frequencias / frequencias(64) - 1).abs().max() < 1e-12
    assert escala.fator_de_atencao == 1.0


def test_yarn_as_duas_rampas():
    """As pontas concordam; o meio não, e é por isso que há duas."""
    treino, s = 4096, 16.0
    codigo = esc.yarn(128, s, treino).frequencias
    artigo = esc.yarn(128, s, treino, rampa="artigo").frequencias
    theta = frequencias(128)
    voltas = treino * theta / (2 * math.pi)
    assert torch.allclose(codigo[voltas < 0.5], artigo[voltas < 0.5])
    # A fórmula impressa, par a par, com o Python puro.
    for i, r in enumerate(voltas.tolist()):
        g = min(1, max(0, (r - 1) / 31))
        assert float(artigo[i]) == pytest.approx(
            (1 - g) * float(theta[i]) / s + g * float(theta[i])
        )
    assert ((codigo - artigo) / theta).abs().max() > 0.1


def test_yarn_com_pontas_iguais_nao_divide_por_zero():
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    deles, _ = ROPE_INIT_FUNCTIONS["yarn"](
        config("yarn", 16, factor=4.0, original_max_position_embeddings=6, maximo=24)
    )
    nossas = esc.yarn(16, 4.0, 6).frequencias
    assert nossas.isfinite().all()
    assert (nossas / deles.double() - 1).abs().max() < 1e-5


# ------------------------------------------------------------------ o config


@pytest.mark.parametrize("tipo", [*CASOS, "dynamic"])
def test_do_config_igual_ao_transformers(tipo):
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    extra = CASOS[tipo][0] if tipo in CASOS else {"factor": 2.0}
    cfg = config(tipo, **extra)
    deles = LlamaRotaryEmbedding(cfg)
    escala = esc.do_config(cfg.to_dict(), 64)
    assert (escala.frequencias / deles.inv_freq.double() - 1).abs().max() < 1e-5
    assert escala.fator_de_atencao == pytest.approx(deles.attention_scaling)


LONGO = {"rope_parameters": {"rope_type": "espiral"}, "max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("faz", "diz"),
    [
        (lambda: esc.linear(63, 2.0), "63"),
        (lambda: esc.ntk(2, 2.0), "2"),
        (lambda: esc.do_config(LONGO, 8), "espiral"),
    ],
)
def test_enganos_tem_mensagem(faz, diz):
    with pytest.raises(ErroDePosicao) as erro:
        faz()
    assert diz in erro.value.o_que
    assert erro.value.por_que and erro.value.o_que_fazer


# Casos 68 e 69: o config.json de antes do transformers 5 (rope_theta solto; `type`, depois `rope_type`).
@pytest.mark.parametrize("grafia", ["type", "rope_type"])
def test_config_antigo_chega_com_a_base_e_o_fator_dele(grafia, tmp_path):
    from transformers import AutoConfig

    antigo = {
        "model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1,
        "max_position_embeddings": 2048, "rope_theta": 500_000.0,
        "rope_scaling": {grafia: "linear", "factor": 4.0},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(antigo), encoding="utf-8")
    lido = AutoConfig.from_pretrained(tmp_path, trust_remote_code=False).to_dict()
    theta, _ = esc.do_config(lido, 32)
    # A conta à mão: base 500.000, e não 10.000; e todo par dividido por 4.
    esperado = 500_000.0 ** (-torch.arange(0, 32, 2, dtype=torch.float64) / 32) / 4
    assert torch.allclose(theta.double(), esperado, rtol=1e-6)
