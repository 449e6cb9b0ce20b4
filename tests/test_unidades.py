"""Números como se escrevem em português."""

import pytest

from nucleo.base import unidades

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("n", "um", "varios", "esperado"),
    [
        (0, "tabela", None, "0 tabelas"),
        (1, "tabela", None, "1 tabela"),
        (2, "tabela", None, "2 tabelas"),
        (12345, "token", None, "12.345 tokens"),
        (1, "lição", "lições", "1 lição"),
        (7, "lição", "lições", "7 lições"),
    ],
)
def test_o_nome_concorda_com_o_numero(n, um, varios, esperado):
    assert unidades.contado(n, um, varios) == esperado


@pytest.mark.parametrize(
    ("funcao", "x", "esperado"),
    [
        (unidades.inteiro, 124439808, "124.439.808"),
        (unidades.decimal, -1234.5, "−1.234,500"),
        (unidades.cientifico, 0, "0"),
        (unidades.cientifico, 3.2e-07, "3,2e-07"),
        (unidades.porcento, 0.31, "31,0%"),
        (unidades.megabytes, 328204800, "328,2 MB"),
    ],
)
def test_numeros_com_virgula_e_ponto_de_milhar(funcao, x, esperado):
    assert funcao(x) == esperado
