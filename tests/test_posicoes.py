"""Senoides, deslocamento e as três peças da camada de entrada, contra quem não as escreveu.

Fontes independentes: o `math` do Python em float64 e o mpmath com 50 casas; as tabelas que XLM,
GPT-J, Pegasus e SeamlessM4T trazem no transformers; `scipy.linalg.block_diag`.
"""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import folga
from nucleo.contas.posicoes import (
    CamadaDeEntrada,
    CodificacaoPosicional,
    EmbeddingsDeEntrada,
    ErroDePosicao,
    comprimentos_de_onda,
    erro_das_frequencias,
    frequencias,
    matriz_de_deslocamento,
    produto_interno_por_distancia,
    senoides,
    senoides_em,
)

pytestmark = pytest.mark.unit

dimensoes = st.integers(1, 64).map(lambda m: 2 * m)
posicoes = st.integers(0, 100_000)


def pe_do_artigo(pos: int, d: int) -> list[float]:
    """A fórmula do artigo, coluna por coluna, sem torch."""
    linha = []
    for coluna in range(d):
        angulo = pos / 10000 ** (2 * (coluna // 2) / d)
        linha.append(math.sin(angulo) if coluna % 2 == 0 else math.cos(angulo))
    return linha


# ------------------------------------------------------------------ valores


def test_senoides_iguais_a_forma_fechada():
    for d in (2, 4, 6, 8, 64, 512):
        esperado = torch.tensor([pe_do_artigo(p, d) for p in range(300)], dtype=torch.float64)
        assert (senoides(300, d, dtype=torch.float64) - esperado).abs().max() < 1e-12
        # Em float32 sobra só o arredondamento final: meio ulp de um número até 1 são 6e-8.
        assert (senoides(300, d) - esperado).abs().max() < 6.1e-8


def test_senoides_em_posicao_enorme_contra_mpmath():
    mpmath.mp.dps = 50
    for pos in (12_345, 1_048_576):
        for i in (0, 1, 100, 255):
            exato = mpmath.sin(mpmath.mpf(pos) / mpmath.power(10000, mpmath.mpf(2 * i) / 512))
            nosso = senoides([pos], 512, dtype=torch.float64)[0, 2 * i]
            # float64 tem 2^-53 de erro relativo; num ângulo de 1e6 radianos isso dá 1e-10.
            assert abs(float(nosso) - float(exato)) < 1e-9


def test_senoides_iguais_as_do_xlm():
    from transformers.models.xlm.modeling_xlm import create_sinusoidal_embeddings

    esperado = create_sinusoidal_embeddings(200, 96, torch.empty(200, 96))
    assert (senoides(200, 96) - esperado).abs().max() < 1e-6


def test_disposicao_metades_e_a_do_gptj_e_do_pegasus():
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.pegasus.modeling_pegasus import PegasusSinusoidalPositionalEmbedding

    nossa = senoides(128, 32, disposicao="metades")
    # O GPT-J faz os ângulos em float32; o Pegasus guarda em float32 os de float64.
    do_gptj = create_sinusoidal_positions(128, 32)
    assert (nossa - do_gptj).abs().max() <= folga.angulo(128, folga.EPS32)
    pegasus = PegasusSinusoidalPositionalEmbedding(128, 32).create_weight()
    assert (nossa - pegasus).abs().max() <= folga.EPS32


def test_disposicao_fairseq_e_outra_convencao_e_nao_erro():
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    fairseq = M2M100SinusoidalPositionalEmbedding.get_embedding(100, 64)
    nossa = senoides(100, 64, disposicao="fairseq")
    assert (nossa - fairseq).abs().max() <= folga.angulo(100, folga.EPS32)
    # E a diferença para a do artigo não é só de ordem: as frequências são outras.
    assert (senoides(100, 64, disposicao="metades") - fairseq).abs().max() > 0.1


def test_frequencias_e_comprimentos_de_onda():
    onda = comprimentos_de_onda(512)
    assert onda[0] == pytest.approx(2 * math.pi)
    assert onda[-1] == pytest.approx(2 * math.pi * 10000 ** (510 / 512))
    assert bool((onda.diff() > 0).all())
    # Progressão geométrica: razão constante.
    assert frequencias(8).tolist() == pytest.approx([1, 0.1, 0.01, 0.001])


def test_formas_em_float32_a_potencia_direta_e_a_mais_exata():
    erro = {forma: erro_das_frequencias(512, forma) for forma in ("potencia", "exp_log")}
    # O capítulo afirma o contrário. A potência arredonda em até um eps, e a divisão, em meio; o expoente
    # (2i/512) é exato. Já exp(log) multiplica o arredondamento por ln 10000.
    assert erro["potencia"] < 2 * folga.EPS32
    assert erro["exp_log"] > 3 * erro["potencia"]


def test_meia_precisao_estraga_o_angulo_e_nao_o_valor_pronto():
    pos = torch.tensor([255, 257, 1_000, 4_096, 65_536])
    exato = senoides(pos, 64, dtype=torch.float64)
    for tipo in (torch.float16, torch.bfloat16):
        assert (senoides(pos, 64, dtype=tipo).double() - exato).abs().max() < 5e-3
    assert (senoides_em(pos[:4], 64, torch.bfloat16).double() - exato[:4]).abs().max() > 1
    # 257 não existe em bfloat16: vira 256, e as duas posições ficam iguais.
    assert torch.equal(*senoides_em(torch.tensor([256, 257]), 64, torch.bfloat16))
    # 65 536 nem cabe em float16: vira infinito, e o seno de infinito não é número.
    assert senoides_em(pos[4:], 64, torch.float16).isnan().any()


# ------------------------------------------------------------------ propriedades


@given(d=dimensoes, pos=posicoes, k=st.integers(-5_000, 5_000))
@settings(max_examples=60, deadline=None)
def test_deslocamento_vale_para_toda_posicao(d, pos, k):
    if pos + k < 0:
        k = -k
    antes, depois = senoides([pos, pos + k], d, dtype=torch.float64)
    assert (matriz_de_deslocamento(k, d) @ antes - depois).abs().max() < 1e-9


@given(d=dimensoes, k=st.integers(0, 3_000), j=st.integers(0, 3_000))
@settings(max_examples=40, deadline=None)
def test_deslocamentos_se_compoem_e_se_desfazem(d, k, j):
    M = matriz_de_deslocamento
    assert (M(k, d) @ M(j, d) - M(k + j, d)).abs().max() < 1e-9
    assert (M(k, d) @ M(k, d).T - torch.eye(d, dtype=torch.float64)).abs().max() < 1e-12
    assert torch.equal(M(-k, d), M(k, d).T)


def test_matriz_de_deslocamento_e_de_blocos():
    from scipy.linalg import block_diag

    blocos = []
    for i in range(4):
        a = 3 / 10000 ** (2 * i / 8)
        blocos.append([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
    assert np.abs(matriz_de_deslocamento(3, 8).numpy() - block_diag(*blocos)).max() <= folga.angulo(
        3
    )


@given(d=dimensoes, pos=posicoes, k=st.integers(0, 5_000))
@settings(max_examples=60, deadline=None)
def test_produto_interno_so_depende_da_distancia(d, pos, k):
    a, b = senoides([pos, pos + k], d, dtype=torch.float64)
    assert float(a @ b) == pytest.approx(float(produto_interno_por_distancia([k], d)[0]), abs=1e-8)
    assert float(a @ a) == pytest.approx(d / 2)


# ------------------------------------------------------------------ os módulos


def test_camada_de_entrada_conta_certo():
    torch.manual_seed(0)
    camada = CamadaDeEntrada(11, 6, 9, dropout=0.5).eval()
    ids = torch.tensor(
        [[3, 1, 4, 1], [5, 9, 2, 6]]
    )  # B = 2, T = 4, d = 6: três tamanhos diferentes
    saida = camada(ids)
    for b in range(2):
        for t in range(4):
            esperado = camada.embeddings.tabela.weight[ids[b, t]].double() * math.sqrt(6)
            esperado = esperado + torch.tensor(pe_do_artigo(t, 6), dtype=torch.float64)
            assert (saida[b, t].double() - esperado).abs().max() < 1e-6
    assert saida.shape == (2, 4, 6)


def test_inicio_equilibrado_e_o_que_afoga():
    torch.manual_seed(0)
    d, ids = 512, torch.arange(1000).unsqueeze(0)
    norma = {
        "equilibrado": EmbeddingsDeEntrada(1000, d)(ids),
        "nn.Embedding": EmbeddingsDeEntrada(1000, d, desvio_inicial=1.0)(ids),
    }
    norma = {nome: vetores.detach().norm(dim=-1).mean() for nome, vetores in norma.items()}
    assert float(norma["equilibrado"]) == pytest.approx(math.sqrt(d), rel=0.01)
    assert float(norma["nn.Embedding"]) == pytest.approx(d, rel=0.01)
    assert float(senoides(7, d).norm(dim=-1).mean()) == pytest.approx(math.sqrt(d / 2))


def test_desvio_inicial_zero_e_respeitado():
    assert EmbeddingsDeEntrada(5, 4, desvio_inicial=0.0).tabela.weight.abs().max() == 0


def test_dropout_so_no_treino():
    torch.manual_seed(0)
    camada = CodificacaoPosicional(64, 50, dropout=0.25)
    x = torch.ones(8, 50, 64)
    assert torch.equal(camada.eval()(x), camada(x))
    saida = camada.train()(x)
    zeros = (saida == 0).float().mean()
    assert float(zeros) == pytest.approx(0.25, abs=0.01)
    # O que sobra cresce 1/(1 − p), para a média não mudar.
    assert torch.allclose(saida[saida != 0], (camada.eval()(x) / 0.75)[saida != 0])


def test_gradiente_passa_pela_soma_e_nao_pela_tabela():
    camada = CamadaDeEntrada(7, 4, 5)
    camada(torch.tensor([[1, 2]])).sum().backward()
    assert camada.embeddings.tabela.weight.grad is not None
    assert not camada.posicoes.pe.requires_grad
    assert [nome for nome, _ in camada.named_parameters()] == ["embeddings.tabela.weight"]


def test_caso_32_carrega_com_outro_max_len():
    curta, longa = CamadaDeEntrada(7, 4, 5), CamadaDeEntrada(7, 4, 500)
    assert list(curta.state_dict()) == ["embeddings.tabela.weight"]
    longa.load_state_dict(curta.state_dict())
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(curta.eval()(ids), longa.eval()(ids))


@pytest.mark.parametrize("tipo", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_caso_31_o_tipo_que_entra_e_o_que_sai(tipo):
    camada = CodificacaoPosicional(8, 10).eval()
    assert camada(torch.zeros(1, 3, 8, dtype=tipo)).dtype == tipo
    assert camada.to(tipo)(torch.zeros(1, 3, 8)).dtype == torch.float32


# ------------------------------------------------------------------ erros que ajudam


def partes(erro) -> str:
    """O texto inteiro, e a certeza de que as três partes existem."""
    assert isinstance(erro.value, ErroDoUsuario) and isinstance(erro.value, ValueError)
    assert erro.value.o_que and erro.value.por_que and erro.value.o_que_fazer
    return str(erro.value)


@pytest.mark.parametrize("d", [1, 3, 7, 513])
@pytest.mark.parametrize(
    "faz",
    [
        frequencias,
        lambda d: senoides(4, d),
        lambda d: matriz_de_deslocamento(1, d),
        lambda d: CamadaDeEntrada(5, d, 4),
    ],
)
def test_caso_27_dimensao_impar_diz_por_que(faz, d):
    with pytest.raises(ErroDePosicao) as erro:
        faz(d)
    texto = partes(erro)
    assert str(d) in texto
    assert "par" in texto


@pytest.mark.parametrize(("max_len", "T"), [(100, 101), (4, 9), (1024, 2000)])
def test_casos_25_26_28_sequencia_longa_diz_os_dois_numeros(max_len, T):
    camada = CodificacaoPosicional(8, max_len)
    with pytest.raises(ErroDePosicao) as erro:
        camada(torch.zeros(1, T, 8))
    texto = partes(erro)
    assert str(T) in texto and str(max_len) in texto
    assert camada(torch.zeros(1, max_len, 8)).shape == (1, max_len, 8)  # no limite ainda cabe


@pytest.mark.parametrize("ids", [[[0, 50257]], [[-1, 3]]])
def test_casos_19_21_id_fora_da_tabela(ids):
    with pytest.raises(ErroDePosicao) as erro:
        EmbeddingsDeEntrada(50257, 2)(torch.tensor(ids))
    texto = partes(erro)
    assert "50257" in texto and ("-1" in texto or "50256" in texto)
