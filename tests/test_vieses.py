"""ALiBi contra Bloom e MPT, os baldes contra o T5, todos no transformers."""

import pytest
import torch

from nucleo.contas.vieses import balde_t5, distancias, esquemas, inclinacoes_alibi, vies_alibi

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 8, 9, 12, 16, 20, 24, 32, 40, 64, 71])
def test_inclinacoes_iguais_as_do_bloom(n):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    # Com a máscara [1, 1], a coluna 1 do viés é a própria inclinação.
    deles = build_alibi_tensor(torch.ones(1, 2), n, torch.float32)[:, 0, 1]
    assert (inclinacoes_alibi(n).float() - deles).abs().max() < 1e-6


@pytest.mark.parametrize("n", [1, 2, 4, 8, 12, 16, 32])
def test_vies_igual_ao_do_mpt(n):
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    T = 30
    deles = build_mpt_alibi_tensor(n, T)[:, 0]  # (n, T): as distâncias da última posição
    assert (vies_alibi(n, T)[:, -1] - deles).abs().max() < 1e-5


def test_vies_do_bloom_difere_por_uma_constante_por_linha():
    """O Bloom soma m·j em vez de −m·(i − j); o softmax não vê a diferença, constante em cada linha."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    T, notas = 12, torch.randn(4, 12, 12, generator=torch.Generator().manual_seed(0))
    futuro = torch.ones(T, T, dtype=torch.bool).triu(1)
    deles = build_alibi_tensor(torch.ones(1, T), 4, torch.float32)
    a = (notas + vies_alibi(4, T)).masked_fill(futuro, -torch.inf).softmax(-1)
    b = (notas + deles).masked_fill(futuro, -torch.inf).softmax(-1)
    assert (a - b).abs().max() < 1e-6


def test_inclinacoes_publicadas():
    # Press et al. (2021), seção 3: com 8 cabeças, 1/2, 1/4, …, 1/256.
    assert inclinacoes_alibi(8).tolist() == [2.0**-h for h in range(1, 9)]


@pytest.mark.parametrize(
    ("n_baldes", "maxima"), [(32, 128), (16, 64), (8, 20), (64, 1000), (20, 333)]
)
def test_baldes_iguais_aos_do_t5(n_baldes, maxima):
    from transformers.models.t5.modeling_t5 import T5Attention

    d = torch.arange(-3000, 3001)
    deles = T5Attention._relative_position_bucket(d, False, n_baldes, maxima)
    nossos = balde_t5(d, n_baldes, maxima)
    assert torch.equal(nossos, deles)
    assert nossos.min() >= 0 and nossos.max() == n_baldes - 1


def test_baldes_perto_sao_exatos_e_longe_juntam():
    perto = balde_t5(-torch.arange(16))
    assert perto.tolist() == list(range(16))
    assert balde_t5(torch.tensor([-128, -129, -100_000])).tolist() == [31, 31, 31]
    assert balde_t5(torch.tensor([5, 1])).tolist() == [0, 0]  # causal: o futuro não tem balde


def test_distancias():
    assert distancias(3).tolist() == [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]


def test_tabela_dos_esquemas_conta_os_parametros():
    por_nome = {e.nome: e for e in esquemas(d=768, n_cabecas=12, treino=1024)}
    assert por_nome["aprendido"].parametros == 1024 * 768  # o wpe do GPT-2
    assert por_nome["T5"].parametros == torch.nn.Embedding(32, 12).weight.numel()
    assert {n for n, e in por_nome.items() if e.parametros == 0} == {
        "nenhum",
        "senoidal",
        "ALiBi",
        "RoPE",
    }
