"""O Muon: contra o do torch, contra a decomposição em valores singulares, e o que ele recusa."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nucleo.treino import treinador as tr
from nucleo.treino.muon import Muon, ortogonalizar

pytestmark = pytest.mark.unit


@settings(max_examples=30, deadline=None)
@given(linhas=st.integers(2, 40), colunas=st.integers(2, 40), semente=st.integers(0, 1000))
def test_ortogonalizar_leva_os_valores_singulares_para_perto_de_1(linhas, colunas, semente):
    G = torch.randn(3, linhas, colunas, generator=torch.Generator().manual_seed(semente))
    for g, x in zip(G, ortogonalizar(G), strict=True):
        U, S, Vt = torch.linalg.svd(g, full_matrices=False)
        # Os mesmos eixos: na base de g, o resultado é diagonal e positivo.
        na_base = U.T @ x @ Vt.T
        assert (na_base - torch.diag(na_base.diagonal())).abs().max() < 1e-3
        # Só os valores singulares que não são quase nulos chegam perto de 1 em cinco voltas.
        fortes = 0.05 * S.norm() < S
        assert (na_base.diagonal()[fortes] > 0.5).all() and na_base.diagonal().max() < 1.3


@pytest.mark.parametrize("forma", [(8, 8), (6, 24), (24, 6)])
def test_um_passo_e_o_do_torch(forma):
    """O do torch faz as contas em bfloat16, de três algarismos: a folga é a dele."""
    sorteio = torch.Generator().manual_seed(1)
    inicio = torch.randn(forma, generator=sorteio)
    gradientes = [torch.randn(forma, generator=sorteio) for _ in range(4)]
    nosso, deles = (torch.nn.Parameter(inicio.clone()) for _ in range(2))
    um = Muon([nosso], lr=0.1, momentum=0.9, weight_decay=0.2)
    outro = torch.optim.Muon([deles], lr=0.1, momentum=0.9, weight_decay=0.2)
    for g in gradientes:
        nosso.grad, deles.grad = g.clone(), g.clone()
        um.step()
        outro.step()
    andou = (deles - inicio).abs().max()
    assert (nosso - deles).abs().max() < 0.03 * andou


def test_formas_iguais_vao_juntas_e_nao_se_misturam():
    sorteio = torch.Generator().manual_seed(2)
    valores = [torch.randn(5, 7, generator=sorteio) for _ in range(3)]
    juntas = [torch.nn.Parameter(v.clone()) for v in valores]
    sozinhas = [torch.nn.Parameter(v.clone()) for v in valores]
    otimizadores = [Muon(juntas, lr=0.1), *(Muon([p], lr=0.1) for p in sozinhas)]
    for a, b in zip(juntas, sozinhas, strict=True):
        a.grad = torch.randn(5, 7, generator=sorteio)
        b.grad = a.grad.clone()
    for o in otimizadores:
        o.step()
    for a, b, v in zip(juntas, sozinhas, valores, strict=True):
        assert (a - b).abs().max() < 1e-6 and (a - v).abs().max() > 1e-3


def test_cada_parametro_tem_um_dono_so():
    modelo = tr.novo_gpt2(20, 16, 2, 2, 8, semente=0)
    receita = tr.Receita(passos=4, lote=2, contexto=8, taxa=1e-3, aquecimento=2, muon=0.02)
    t = tr.Treino(modelo, torch.arange(20).repeat(9).numpy(), receita)
    donos = [id(p) for o, _ in t.otimizadores for g in o.param_groups for p in g["params"]]
    assert len(donos) == len(set(donos)) == len(list(modelo.parameters()))
    do_muon = t.otimizadores[1][0].param_groups[0]["params"]
    assert {p.ndim for p in do_muon} == {2} and len(
        do_muon
    ) == 2 * 4  # por bloco: 2 da atenção, 2 da MLP
    t.um_passo()
    # As duas taxas sobem juntas, cada uma na sua escala: no passo 0 de 2 de aquecimento, a metade.
    assert [o.param_groups[0]["lr"] for o, _ in t.otimizadores] == pytest.approx([5e-4, 0.01])
