"""RoPE contra o transformers (Llama e GPT-J), contra o rotary-embedding-torch e contra si mesmo."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nucleo.contas import folga
from nucleo.contas.posicoes import ErroDePosicao, frequencias
from nucleo.contas.rope import (
    decaimento,
    girar,
    permutacao_para_metades,
    permutar_projecao,
    rope,
    tabelas,
)

pytestmark = pytest.mark.unit

dimensoes = st.integers(1, 32).map(lambda m: 2 * m)
pareamentos = st.sampled_from(["intercalado", "metades"])


def sorteia(*forma, semente=0, dtype=torch.float64):
    return torch.randn(
        *forma, generator=torch.Generator().manual_seed(semente), dtype=torch.float64
    ).to(dtype)


def rope_lento(x, pos, pareamento):
    """RoPE como se lê no artigo (equações 14 e 15): par a par, com a matriz 2 × 2 e o `math`."""
    d, saida = x.shape[-1], torch.empty_like(x)
    for t, p in enumerate(pos.tolist()):
        for i in range(d // 2):
            par = [2 * i, 2 * i + 1] if pareamento == "intercalado" else [i, i + d // 2]
            a = p * 10_000 ** (-2 * i / d)
            R = torch.tensor(
                [[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]], dtype=x.dtype
            )
            saida[..., t, par] = x[..., t, par] @ R.T  # (..., 2) @ (2, 2)
    return saida


def config_llama(d, **rope_parameters):
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=4 * d,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=d,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, **rope_parameters},
    )


# ------------------------------------------------------------------ contra as bibliotecas


def no_giro(x, posicoes, base=10_000.0):
    """O que duas contas do mesmo giro diferem, se uma faz em float32 o ângulo, de até `posicoes` radianos:
    cada número girado soma dois do tamanho de x."""
    return 2 * x.abs().max() * (posicoes * folga.potencia(base, folga.EPS32) + folga.EPS32)


@pytest.mark.parametrize("base", [10_000.0, 100_000.0, 500_000.0])
def test_metades_e_o_do_llama(base):
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    q, k = (
        sorteia(2, 4, 64, 32, semente=1, dtype=torch.float32),
        sorteia(2, 2, 64, 32, semente=2, dtype=torch.float32),
    )
    cos, sen = LlamaRotaryEmbedding(config_llama(32, rope_theta=base))(q, torch.arange(64)[None])
    q_deles, k_deles = apply_rotary_pos_emb(q, k, cos, sen)
    for x, deles in ((q, q_deles), (k, k_deles)):
        nosso = rope(x, base=base, pareamento="metades")
        assert (nosso - deles).abs().max() <= no_giro(x, 64, base) < 1e-2 * x.abs().max()


def test_metades_com_a_conta_do_llama_em_posicoes_longas():
    """Com as frequências e a precisão deles, até 8192 posições a única sobra é a ordem das somas."""
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    q = sorteia(1, 4, 8192, 32, dtype=torch.float32)
    deles = LlamaRotaryEmbedding(config_llama(32))
    cos, sen = deles(q, torch.arange(8192)[None])
    esperado, _ = apply_rotary_pos_emb(q, q, cos, sen)
    nossos = tabelas(8192, deles.inv_freq, precisao_do_angulo=torch.float32)
    # Cada número são dois produtos e uma soma, em float32.
    assert (girar(q, *nossos, "metades") - esperado).abs().max() <= folga.soma(
        3, 2 * q.abs().max(), folga.EPS32
    )


def test_intercalado_e_o_do_gptj():
    from transformers.models.gptj.modeling_gptj import (
        apply_rotary_pos_emb,
        create_sinusoidal_positions,
    )

    x = sorteia(2, 50, 3, 16, dtype=torch.float32)  # o GPT-J usa (B, T, H, d)
    sen, cos = create_sinusoidal_positions(50, 16).chunk(2, dim=-1)
    esperado = apply_rotary_pos_emb(x, sen[None], cos[None])
    assert (rope(x.transpose(1, 2)).transpose(1, 2) - esperado).abs().max() <= no_giro(x, 50)


@pytest.mark.parametrize(("interpolar", "estica"), [(1.0, 1.0), (4.0, 1.0), (1.0, 4.0)])
def test_intercalado_e_o_do_rotary_embedding_torch(interpolar, estica):
    import rotary_embedding_torch as segunda  # requirements-dev.txt

    from nucleo.contas.escalonamento import linear, ntk

    x = sorteia(2, 3, 60, 32, dtype=torch.float32)
    deles = segunda.RotaryEmbedding(32, interpolate_factor=interpolar, theta_rescale_factor=estica)
    esperado = deles.rotate_queries_or_keys(x)
    escala = ntk(32, estica) if estica > 1 else linear(32, interpolar)
    cos, sen = tabelas(60, escala.frequencias)
    # A base esticada é 4 vezes maior, e um pouco mais.
    assert (girar(x, cos, sen) - esperado).abs().max() <= no_giro(x, 60, 10_000 * 4**2)


# ------------------------------------------------------------------ propriedades


@given(d=dimensoes, T=st.integers(1, 12), pareamento=pareamentos, inicio=st.integers(0, 5000))
@settings(max_examples=40, deadline=None)
def test_lento_igual_ao_rapido(d, T, pareamento, inicio):
    x, pos = sorteia(2, T, d), torch.arange(inicio, inicio + T)
    rapido = rope(x, pos, pareamento=pareamento)
    # Até 5012 radianos, o arredondamento do ângulo em float64 é 5e-13 por unidade de x.
    assert (rope_lento(x, pos, pareamento) - rapido).abs().max() < 1e-11


@given(
    d=dimensoes,
    m=st.integers(0, 3000),
    n=st.integers(0, 3000),
    k=st.integers(0, 3000),
    par=pareamentos,
)
@settings(max_examples=60, deadline=None)
def test_q_k_so_depende_da_diferenca(d, m, n, k, par):
    q, c = sorteia(1, d, semente=3), sorteia(1, d, semente=4)
    aqui = rope(q, [m], pareamento=par) @ rope(c, [n], pareamento=par).T
    la = rope(q, [m + k], pareamento=par) @ rope(c, [n + k], pareamento=par).T
    assert float((aqui - la).abs()) < 1e-9


def test_q_k_depende_mesmo_da_diferenca():
    """Sem isto, um RoPE que não gira nada passaria no teste de cima."""
    q = sorteia(1, 16)
    notas = [float(rope(q, [m]) @ rope(q, [0]).T) for m in range(5)]
    assert notas[0] == max(notas) and len({round(n, 6) for n in notas}) == 5


@given(d=dimensoes, T=st.integers(1, 40), pareamento=pareamentos)
@settings(max_examples=40, deadline=None)
def test_norma_nao_muda_e_posicao_zero_fica_parada(d, T, pareamento):
    x = sorteia(3, T, d)
    y = rope(x, pareamento=pareamento)
    assert (x.norm(dim=-1) - y.norm(dim=-1)).abs().max() < 1e-12
    assert torch.equal(x[:, 0], y[:, 0])


@given(d=dimensoes, T=st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_a_permutacao_leva_de_um_pareamento_ao_outro(d, T):
    x, p = sorteia(T, d), permutacao_para_metades(d)
    assert (rope(x)[..., p] - rope(x[..., p], pareamento="metades")).abs().max() < 1e-12
    assert torch.equal(p[p.argsort()], torch.arange(d))


def test_caso_66_misturar_pareamentos_estraga_e_permutar_conserta():
    W, x, H, d = sorteia(4 * 16, 24), sorteia(10, 24), 4, 16

    def consultas(peso, par):
        return rope((x @ peso.T).unflatten(-1, (H, d)).transpose(0, 1), pareamento=par)  # (H, T, d)

    def notas(peso, par):
        c = consultas(peso, par)
        return c @ c.transpose(-1, -2)  # (H, T, T)

    certas = notas(W, "metades")
    misturadas = notas(W, "intercalado")
    convertidas = notas(permutar_projecao(W, H, "intercalado"), "intercalado")
    assert (convertidas - certas).abs().max() < 1e-9
    assert (misturadas - certas).abs().max() > 1
    # É o que engana: na diagonal (distância zero) misturar não muda nada.
    diagonal = (misturadas - certas).diagonal(dim1=-2, dim2=-1)
    assert diagonal.abs().max() < 1e-9
    ida_e_volta = permutar_projecao(permutar_projecao(W, H, "intercalado"), H, "metades")
    assert torch.equal(ida_e_volta, W)


def test_permutar_projecao_e_a_dos_conversores():
    """A conta de `permute` dos conversores da Meta para a Hugging Face, refeita com rearranjos."""
    import numpy as np

    W, H, d = sorteia(3 * 8, 5), 3, 8
    esperado = np.swapaxes(W.numpy().reshape(H, d // 2, 2, 5), 1, 2).reshape(H * d, 5)
    assert np.array_equal(permutar_projecao(W, H, "metades").numpy(), esperado)


def test_caso_67_angulos_em_meia_precisao():
    theta = frequencias(64)
    exato = tabelas(4097, theta, dtype=torch.float64)[0]
    for tipo in (torch.bfloat16, torch.float16):
        ruim = tabelas(4097, theta, dtype=torch.float64, precisao_do_angulo=tipo)[0]
        assert (ruim - exato).abs().max() > 0.75  # relatos públicos: 0,78 a 0,83, ou mais
        # O mesmo tipo, só depois do cosseno, é inofensivo.
        bom = tabelas(4097, theta, dtype=tipo)[0].double()
        assert (bom - exato).abs().max() < 4e-3
    x = sorteia(1, 4097, 64).to(torch.bfloat16)
    assert rope(x).dtype == torch.bfloat16
    assert (rope(x).double() - rope(x.double())).abs().max() < 0.06  # 2 ulps de bfloat16 em |x| ≈ 4


def test_decaimento():
    k = [0, 1, 10, 100, 1000]
    valor, teto = decaimento(k, 64)
    q = torch.full((1, 64), 1 / 8, dtype=torch.float64)
    for distancia, v in zip(k, valor.tolist(), strict=True):
        assert float(rope(q, [0]) @ rope(q, [distancia]).T) == pytest.approx(v, abs=1e-9)
    # O teto, refeito com números complexos do Python.
    theta = [10000 ** (-2 * i / 64) for i in range(32)]
    for distancia, c in zip(k, teto.tolist(), strict=True):
        z = [complex(math.cos(distancia * t), math.sin(distancia * t)) for t in theta]
        assert c == pytest.approx(sum(abs(sum(z[: j + 1])) for j in range(32)) / 32)
    assert valor[0] == 1 and teto[0] == pytest.approx(16.5)
    assert bool((teto.diff() < 0).all())


def test_dimensao_impar_diz_por_que():
    with pytest.raises(ErroDePosicao, match="7 é ímpar") as erro:
        rope(torch.zeros(3, 7))
    assert erro.value.por_que and erro.value.o_que_fazer
