"""A folga das contas: o limite do arredondamento vale para contas de verdade, e não é frouxo à toa."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nucleo.contas import folga

pytestmark = pytest.mark.unit


def test_eps_e_o_da_maquina():
    assert np.finfo(np.float32).eps == folga.EPS32 and np.finfo(np.float64).eps == folga.EPS64


@given(st.integers(2, 3000), st.integers(-8, 8), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_duas_ordens_de_soma_cabem_na_folga(n, expoente, semente):
    sorteio = np.random.default_rng(semente)
    x = (sorteio.standard_normal(n) * 2.0**expoente).astype(np.float32)
    em_fila = np.float32(0)
    for v in x:  # a ordem que mais erra
        em_fila += v
    outras = (x.sum(), x[::-1].sum(), np.float32(math.fsum(x)))
    limite = folga.soma(n, np.abs(x).sum(), folga.EPS32)
    assert max(abs(float(em_fila) - float(o)) for o in outras) <= limite


def test_a_soma_chega_perto_do_limite():
    # Parcelas que arredondam todas para o mesmo lado gastam mais de um quarto dele: não é só folga.
    n = 4000
    x = np.full(n, 1 + 0.499 * folga.EPS32 * 1024, np.float32)
    em_fila = np.float32(1024)
    for v in x:
        em_fila += v
    erro = abs(float(em_fila) - (1024 + n * float(x[0])))
    assert 0.05 < erro / folga.soma(n, 1024 + np.abs(x).sum(), folga.EPS32) <= 0.5


@pytest.mark.parametrize("base", [10_000.0, 500_000.0, 160_000.0])
def test_potencias_e_angulos_cabem_na_folga(base):
    for eps, tipo in ((folga.EPS32, torch.float32), (folga.EPS64, torch.float64)):
        expoentes = torch.arange(0, 96, 2, dtype=tipo) / 96  # 1/96 não é exato em tipo nenhum
        duas = base**-expoentes, torch.exp(-expoentes.double() * math.log(base)).to(tipo)
        erro = float((duas[0].double() / duas[1].double() - 1).abs().max())
        assert erro <= folga.potencia(base, eps)
    pos = torch.arange(5000.0)[:, None]
    omega = 10_000 ** -(torch.arange(0, 96, 2) / 96)
    exato = torch.sin(pos.double() * 10_000 ** -(torch.arange(0, 96, 2).double() / 96))
    erro = float((torch.sin(pos * omega).double() - exato).abs().max())
    assert 0.01 < erro / folga.angulo(5000, folga.EPS32) <= 1


def test_modelo_de_camadas_cabe_na_folga():
    # Camadas de matrizes ortogonais não aumentam nada: o que sobra é só o arredondamento.
    sorteio, d = torch.Generator().manual_seed(1), 256
    x = torch.randn(8, d, generator=sorteio)
    outro = x.double()
    for _ in range(20):
        Q = torch.linalg.qr(torch.randn(d, d, generator=sorteio)).Q
        x, outro = x @ Q, outro @ Q.double()
    erro = float((x.double() - outro).abs().max())
    assert 0 < erro <= folga.modelo(20, d, float(outro.abs().max()))
