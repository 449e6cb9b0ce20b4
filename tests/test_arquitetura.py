"""Contagem de parâmetros: contra os totais publicados, a conta à mão e o dispositivo meta."""

import pytest

from nucleo.contas import amarracao, arquitetura
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos.tamanhos import TAMANHOS, Tamanho

pytestmark = pytest.mark.unit

PUBLICADO = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
}


@pytest.mark.parametrize("nome", PUBLICADO)
def test_total_publicado_e_peca_por_peca(nome):
    t = TAMANHOS[nome]
    assert t.publicado == PUBLICADO[nome]
    assert sum(arquitetura.contar(t).values()) == PUBLICADO[nome]
    assert arquitetura.contar(t) == arquitetura.formula(t)


def test_a_formula_num_modelo_de_verdade():
    from transformers import GPT2Config, GPT2LMHeadModel

    # A conta de um modelo pequeno, de verdade na memória, sai igual pela mesma fórmula.
    config = GPT2Config(n_layer=2, n_embd=24, n_head=2, vocab_size=101, n_positions=17)
    real = sum(p.numel() for p in GPT2LMHeadModel(config).parameters())
    t = Tamanho("x", 2, 24, 2, 0, vocab=101, n_ctx=17)
    assert sum(arquitetura.formula(t).values()) == real


def test_tamanho_das_tabelas_do_xl_em_mb_e_mib():
    quadro, conferencias = exp.tamanhos({n: arquitetura.contar(TAMANHOS[n]) for n in TAMANHOS})
    xl = dict(zip(quadro.colunas, next(x for x in quadro.linhas if x[0] == "gpt2-xl"), strict=True))
    # 4 · (50257 + 1024) · 1600 bytes, à mão.
    assert xl["MB"] == pytest.approx(328.2, abs=0.05) and xl["MiB"] == pytest.approx(
        313.0, abs=0.05
    )
    assert all(c.confere for c in conferencias) and len(conferencias) == 8


def test_wte_e_a_maior_matriz_isolada_nos_quatro():
    for t in TAMANHOS.values():
        assert arquitetura.maior_matriz(t) == "wte"


def test_parametro_desconhecido_na_arquitetura_e_defeito(monkeypatch):
    monkeypatch.setattr(
        arquitetura, "PECAS", {k: v for k, v in arquitetura.PECAS.items() if k != "wpe"}
    )
    arquitetura.contar.cache_clear()
    with pytest.raises(RuntimeError, match="wpe"):
        arquitetura.contar(TAMANHOS["gpt2"])
    arquitetura.contar.cache_clear()


def test_soma_ou_concatenacao():
    somar, concatenar = exp.soma_ou_concatenacao().linhas
    assert somar[1:] == [768, PUBLICADO["gpt2"] - (50257 + 1024) * 768, 12 * 12 * 768**2]
    assert concatenar[3] == 4 * somar[3]
    vezes = {id_: x["vezes"] for id_, x in exp.soma_ou_concatenacao().resultados}
    assert vezes == {"soma_ou_concatenacao.largura": 2, "soma_ou_concatenacao.contas": 4}


def test_meta_nao_prova_amarracao():
    """Caso 51: no meta, dois tensores sem parentesco têm o mesmo data_ptr; recusamos."""
    import torch

    assert amarracao.endereco_no_meta() == (0, 0)
    a = torch.nn.Parameter(torch.empty(2, 2, device="meta"))
    with pytest.raises(ValueError, match="meta"):
        amarracao.amarracao(a, a)


def test_amarracao_distingue_a_mesma_matriz_de_uma_copia():
    import torch

    a = torch.nn.Parameter(torch.randn(5, 3))
    copia = torch.nn.Parameter(a.detach().clone())
    vista = torch.nn.Parameter(a.data)  # outro objeto, a mesma memória (casos 53 e 54)
    antes = a.detach().clone()
    assert amarracao.amarracao(a, a) == amarracao.Amarracao(True, True, True, True)
    assert amarracao.amarracao(a, vista) == amarracao.Amarracao(False, True, True, True)
    assert not amarracao.amarracao(a, copia).amarrada
    assert not amarracao.amarracao(a, torch.nn.Parameter(torch.randn(4, 3))).amarrada
    assert torch.equal(a, antes)  # a mudança de teste foi desfeita
