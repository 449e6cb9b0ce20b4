"""A análise de wpe: contra scikit-learn, contra tabelas de resposta conhecida e contra o GPT-2."""

import numpy as np
import pytest

from nucleo.contas import tabela_posicoes
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos import gpt2_medido

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def circulo():
    # Posições num círculo, uma volta em 40: o cosseno à distância k é cos(2πk/40), exato.
    t = 2 * np.pi * np.arange(80) / 40
    return np.stack([np.cos(t), np.sin(t)], 1)


def test_defasagem_de_um_circulo_e_um_cosseno(circulo):
    c = tabela_posicoes.cossenos_entre_linhas(circulo)
    media = tabela_posicoes.por_defasagem(c)
    np.testing.assert_allclose(media, np.cos(2 * np.pi * np.arange(80) / 40), atol=1e-12)


def test_defasagem_e_a_media_dos_pares_e_respeita_o_recorte():
    wpe = np.random.default_rng(0).standard_normal((12, 5))
    c = tabela_posicoes.cossenos_entre_linhas(wpe)
    media = tabela_posicoes.por_defasagem(c, 1, 11)
    for k in range(10):
        assert media[k] == pytest.approx(
            np.mean([c[i, i + k] for i in range(1, 11 - k)]), abs=1e-12
        )
    assert len(media) == 10


def test_cossenos_iguais_aos_do_sklearn_e_linha_nula():
    from sklearn.metrics.pairwise import cosine_similarity

    wpe = np.random.default_rng(1).standard_normal((30, 8))
    wpe[4] = 0
    c = tabela_posicoes.cossenos_entre_linhas(wpe)
    np.testing.assert_allclose(c, cosine_similarity(wpe), atol=1e-12)
    assert (c[4] == 0).all()


def test_pca_igual_a_do_sklearn():
    from sklearn.decomposition import PCA

    wpe = np.random.default_rng(2).standard_normal((50, 7)) @ np.diag([9, 5, 3, 1, 1, 1, 1])
    curva, deles = tabela_posicoes.pca(wpe, 3), PCA(3).fit(wpe)
    np.testing.assert_allclose(curva.fracao, deles.explained_variance_ratio_, atol=1e-10)
    # O sinal de cada eixo é livre: comparamos os módulos.
    np.testing.assert_allclose(np.abs(curva.pontos), np.abs(deles.transform(wpe)), atol=1e-8)
    maiores = curva.pontos[np.abs(curva.pontos).argmax(0), range(3)]
    assert (maiores > 0).all()


@pytest.mark.parametrize(
    ("n", "esperado"),
    [
        (1024, [0, 1, 2, 500]),
        (256, [0, 1, 2, 128]),
        (501, [0, 1, 2, 500]),
        (3, [0, 1, 2]),
        (2, [0, 1]),
    ],
)
def test_linhas_do_exercicio_que_existem(n, esperado):
    assert exp.linhas_a_comparar(n) == esperado


# --- a wpe verdadeira do GPT-2 (GPT2_WPE) ------------------------------------------------


def test_fatos_da_wpe_verdadeira(wpe_verdadeira):
    """As funções da lição reproduzem o que está em data/gpt2_medido, a 1e-3."""
    medido = gpt2_medido.fatos()["wpe_medido"]
    c = tabela_posicoes.cossenos_entre_linhas(wpe_verdadeira)
    quais = medido["linhas"]
    np.testing.assert_allclose(c[np.ix_(quais, quais)], medido["cossenos"], atol=1e-3)
    media = exp.curva_de_defasagem(wpe_verdadeira)
    for k, esperado in medido["defasagem_linhas_1_a_1022"].items():
        assert media[int(k)] == pytest.approx(esperado, abs=1e-3), k
    normas = np.linalg.norm(wpe_verdadeira, axis=1)
    for i, esperado in medido["normas"].items():
        assert normas[int(i)] == pytest.approx(esperado, abs=1e-3), i
    assert normas.mean() == pytest.approx(medido["norma_media"], abs=1e-3)
    i, j = sorted(np.unravel_index(c.argmin(), c.shape))
    assert (i, j) == (medido["minimo"]["i"], medido["minimo"]["j"])
    assert c.min() == pytest.approx(medido["minimo"]["cosseno"], abs=1e-3)
    acumulada = tabela_posicoes.pca(wpe_verdadeira, 6).fracao.cumsum()
    np.testing.assert_allclose(acumulada, medido["pca_acumulada"], atol=1e-3)


@pytest.mark.longo
def test_tabelas_do_gpt2_medido_sao_da_wpe_verdadeira(wpe_verdadeira):
    c = tabela_posicoes.cossenos_entre_linhas(wpe_verdadeira)
    np.testing.assert_allclose(gpt2_medido.cossenos_64(), c[::16, ::16], atol=1e-3)
    k, y = gpt2_medido.defasagem()
    media = exp.curva_de_defasagem(wpe_verdadeira)
    np.testing.assert_allclose(y, media[k], atol=1e-3)
    pontos, normas = gpt2_medido.componentes()
    np.testing.assert_allclose(normas, np.linalg.norm(wpe_verdadeira, axis=1), atol=1e-3)
    nossos = tabela_posicoes.pca(wpe_verdadeira, 3).pontos
    np.testing.assert_allclose(np.abs(nossos), np.abs(pontos), atol=2e-3)


def test_pca_publicada_da_wpe_verdadeira(wpe_verdadeira):
    for n, esperado in ((50, 0.8535), (200, 0.8255)):
        fracao = tabela_posicoes.pca(wpe_verdadeira[:n], 2).fracao.sum()
        assert fracao == pytest.approx(esperado, abs=1e-4)


def test_dados_do_gpt2_medido_tem_as_formas_que_dizem():
    k, y = gpt2_medido.defasagem()
    assert k[0] == 1 and (np.diff(k) == 1).all() and len(k) == len(y) > 900
    assert gpt2_medido.cossenos_64().shape == (64, 64)
    pontos, normas = gpt2_medido.componentes()
    assert pontos.shape == (1024, 3) and normas.shape == (1024,)
    # Não é monótona: a lição diz que oscila, e o dado precisa mostrar isso.
    assert y.min() < -0.4 and y[y.argmin() :].max() > -0.4 and y[400:600].max() > 0.2
