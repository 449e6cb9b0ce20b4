"""A atenção de meia dúzia de linhas contra a do torch, e o que ela sabe da ordem."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nucleo.contas.permutacao import (
    atencao,
    empilhar,
    mesma_bolsa,
    sortear_camadas,
    troca,
    vetores_da_frase,
)
from nucleo.contas.posicoes import ErroDePosicao, senoides

pytestmark = pytest.mark.unit


def frase(T, d, semente=0):
    return torch.randn(T, d, generator=torch.Generator().manual_seed(semente), dtype=torch.float64)


def erro_de_equivariancia(x, ordem, camadas, causal=False):
    """Trocar e depois atender, contra atender e depois trocar."""
    antes, depois = empilhar(x, camadas, causal), empilhar(x[ordem], camadas, causal)
    return (depois - antes[ordem]).abs().max()


def diferenca_na_ultima(x, ordem, camadas, causal=True):
    """O quanto muda a saída da última posição quando as anteriores trocam de ordem."""
    antes, depois = empilhar(x, camadas, causal), empilhar(x[ordem], camadas, causal)
    return (depois[-1] - antes[-1]).abs().max()


@pytest.mark.parametrize("causal", [False, True])
def test_igual_a_atencao_do_torch(causal):
    x, (camada,) = frase(7, 12), sortear_camadas(1, 12, dtype=torch.float64)
    q, k, v = (x @ w for w in camada)
    esperado = torch.nn.functional.scaled_dot_product_attention(
        q[None], k[None], v[None], is_causal=causal
    )[0]
    assert (atencao(x, camada, causal) - esperado).abs().max() < 1e-12


@given(T=st.integers(2, 16), d=st.integers(2, 24), n=st.integers(1, 3), dados=st.data())
@settings(max_examples=25, deadline=None)
def test_sem_posicao_e_sem_mascara_e_equivariante(T, d, n, dados):
    ordem = torch.tensor(dados.draw(st.permutations(range(T))))
    camadas = sortear_camadas(n, d, dtype=torch.float64)
    x = frase(T, d)
    assert erro_de_equivariancia(x, ordem, camadas) < 1e-11
    # Equivariante quer dizer: a mesma bolsa de saídas, em outra ordem.
    assert mesma_bolsa(empilhar(x[ordem], camadas), empilhar(x, camadas)) < 1e-11


@given(T=st.integers(3, 12), semente=st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_posicao_e_mascara_quebram_a_simetria(T, semente):
    d, ordem = 16, troca(T, 0, 1)
    x, camadas = frase(T, d, semente), sortear_camadas(1, d, semente, torch.float64)
    pe = senoides(T, d, dtype=torch.float64)
    com_posicao = (empilhar(x[ordem] + pe, camadas) - empilhar(x + pe, camadas)[ordem]).abs().max()
    assert com_posicao > 1e-3
    assert erro_de_equivariancia(x, ordem, camadas, causal=True) > 1e-3


@given(T=st.integers(4, 12), semente=st.integers(0, 50), dados=st.data())
@settings(max_examples=25, deadline=None)
def test_na_ultima_posicao_uma_camada_causal_nao_ve_a_ordem_e_duas_veem(T, semente, dados):
    a, b = dados.draw(st.lists(st.integers(0, T - 2), min_size=2, max_size=2, unique=True))
    x, ordem = frase(T, 16, semente), troca(T, a, b)
    uma, duas = (
        sortear_camadas(1, 16, semente, torch.float64),
        sortear_camadas(2, 16, semente, torch.float64),
    )
    assert diferenca_na_ultima(x, ordem, uma) < 1e-12
    assert diferenca_na_ultima(x, ordem, duas) > 1e-6
    assert diferenca_na_ultima(x, ordem, duas, causal=False) < 1e-11  # sem máscara nem duas veem


def test_empilhar_soma_o_atalho():
    x, (a, b) = frase(5, 8), sortear_camadas(2, 8, dtype=torch.float64)
    meio = x + atencao(x, a, causal=True)
    assert torch.equal(empilhar(x, [a, b], causal=True), meio + atencao(meio, b, causal=True))


def test_mesma_bolsa_percebe_bolsas_diferentes():
    a = frase(4, 3)
    assert mesma_bolsa(a, a.flip(0)) == 0
    b = a.clone()
    b[2] += 5
    assert mesma_bolsa(a, b) > 1


def test_a_mesma_palavra_recebe_o_mesmo_vetor():
    x = vetores_da_frase(["o", "cão", "o"], 8, 0)
    assert torch.equal(x[0], x[2]) and not torch.equal(x[0], x[1])


@pytest.mark.parametrize(("a", "b"), [(0, 3), (-1, 0)])
def test_trocar_fora_da_frase_tem_mensagem(a, b):
    with pytest.raises(ErroDePosicao) as erro:
        troca(3, a, b)
    assert erro.value.o_que and erro.value.por_que and erro.value.o_que_fazer
