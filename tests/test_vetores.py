"""Cosseno, vizinhos e analogia contra fontes independentes: scikit-learn, gensim e a conta à mão."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import COM_GENSIM
from nucleo.contas import folga, vetores
from nucleo.modelos import listas, tokens

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def normas(tabela_sorteada):
    return vetores.normas_das_linhas(tabela_sorteada)


def test_normas_iguais_as_da_biblioteca(tabela_sorteada, normas):
    # Uma soma de 48 parcelas positivas, em float32.
    deles = np.linalg.norm(tabela_sorteada, axis=1)
    np.testing.assert_allclose(normas, deles, rtol=folga.soma(48, 1, folga.EPS32))


@pytest.mark.parametrize("valor", [np.nan, np.inf, -np.inf])
def test_normas_recusam_nan_e_infinito(valor):
    tabela = np.ones((5, 3), dtype=np.float32)
    tabela[3, 1] = valor
    with pytest.raises(ValueError, match=r"1 linha\(s\): \[3\]"):
        vetores.normas_das_linhas(tabela)


def test_cosseno_de_angulos_conhecidos():
    # 0°, 60°, 90° e 180°, com comprimentos diferentes: só o ângulo conta.
    x = np.array([1.0, 0.0])
    for graus in (0, 60, 90, 180):
        y = 7 * np.array([np.cos(np.radians(graus)), np.sin(np.radians(graus))])
        assert vetores.cosseno(x, y) == pytest.approx(np.cos(np.radians(graus)), abs=1e-12)
    assert vetores.cosseno(x, np.zeros(2)) == 0


@given(st.integers(2, 40), st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=60, deadline=None)
def test_cosseno_nao_ve_tamanho_nem_ordem(d, semente, escala):
    a, b = np.random.default_rng(semente).standard_normal((2, d))
    assert vetores.cosseno(a, b) == pytest.approx(vetores.cosseno(b, a * escala), abs=1e-12)
    assert vetores.cosseno(a, -b) == pytest.approx(-vetores.cosseno(a, b), abs=1e-12)
    assert abs(vetores.cosseno(a, b)) <= 1 + 1e-12


def test_cossenos_iguais_aos_do_sklearn(tabela_sorteada, normas):
    from sklearn.metrics.pairwise import cosine_similarity

    alvo = tabela_sorteada[5] * 3
    esperado = cosine_similarity(tabela_sorteada, alvo[None])[:, 0]
    # Um produto e duas normas, de 48 parcelas cada.
    nossos = vetores.cossenos(tabela_sorteada, alvo, normas)
    np.testing.assert_allclose(nossos, esperado, atol=folga.soma(3 * 48, 1, folga.EPS32))


def test_linha_e_vetor_nulos_dao_zero_e_nao_nan(tabela_sorteada, normas):
    notas = vetores.cossenos(tabela_sorteada, tabela_sorteada[5], normas)
    assert notas[10] == 0 and np.isfinite(notas).all()
    nulo = np.zeros(48, dtype=np.float32)
    assert (vetores.cossenos(tabela_sorteada, nulo, normas) == 0).all()


@COM_GENSIM
def test_vizinhos_iguais_aos_do_gensim(tabela_sorteada, normas):
    from gensim.models import KeyedVectors

    kv = KeyedVectors(48)
    # Sem a linha nula: o gensim divide por ela. A duplicada também sai: empate não tem ordem lá.
    validas = [i for i in range(3000) if i not in (10, 21)]
    kv.add_vectors([str(i) for i in validas], tabela_sorteada[validas])
    for i in (0, 7, 1234):
        deles = kv.most_similar(str(i), topn=25)
        nossos = vetores.vizinhos(tabela_sorteada, tabela_sorteada[i], 25, normas, (i, 10, 21))
        assert [int(n) for n, _ in deles] == [n for n, _ in nossos]
        np.testing.assert_allclose([c for _, c in deles], [c for _, c in nossos], atol=1e-5)


@COM_GENSIM
@pytest.mark.parametrize("normalizar", [False, True])
def test_analogia_igual_a_do_gensim(tabela_sorteada, normas, normalizar):
    from gensim.models import KeyedVectors

    kv = KeyedVectors(48)
    validas = [i for i in range(3000) if i not in (10, 21)]
    kv.add_vectors([str(i) for i in validas], tabela_sorteada[validas])
    a, b, c = 3, 77, 901
    nosso = vetores.vetor_da_analogia(tabela_sorteada, a, b, c, normas if normalizar else None)
    if normalizar:
        # O gensim normaliza as entradas e as tira da lista, como nós com exclusão.
        deles = kv.most_similar(positive=[str(a), str(c)], negative=[str(b)], topn=10)
        excluir = (a, b, c, 10, 21)
    else:
        deles = kv.similar_by_vector(
            tabela_sorteada[a] - tabela_sorteada[b] + tabela_sorteada[c], topn=10
        )
        excluir = (10, 21)
    nossos = vetores.vizinhos(tabela_sorteada, nosso, 10, normas, excluir)
    assert [int(n) for n, _ in deles] == [n for n, _ in nossos]
    np.testing.assert_allclose([s for _, s in deles], [s for _, s in nossos], atol=1e-5)


def test_empates_saem_pelo_menor_id():
    notas = np.array([0.5, 0.9, 0.5, 0.9, 0.5, 0.1])
    assert vetores.mais_altos(notas, 4).tolist() == [1, 3, 0, 2]
    assert vetores.mais_altos(notas, 3, (1,)).tolist() == [3, 0, 2]


def test_linhas_iguais_empatam_no_ranking(tabela_sorteada, normas):
    ids = [i for i, _ in vetores.vizinhos(tabela_sorteada, tabela_sorteada[20], 2, normas)]
    assert ids == [20, 21]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40), st.data())
@settings(max_examples=120, deadline=None)
def test_mais_altos_igual_a_ordenar_tudo(notas, dados):
    notas = np.array(notas)
    k = dados.draw(st.integers(1, 45))
    fora = tuple(dados.draw(st.sets(st.integers(0, len(notas) - 1), max_size=3)))
    esperado = sorted(set(range(len(notas))) - set(fora), key=lambda i: (-notas[i], i))[:k]
    copia = notas.copy()
    assert vetores.mais_altos(notas, k, fora).tolist() == esperado
    assert (notas == copia).all()  # quem chamou não perde as notas


@given(st.integers(129, 900), st.integers(1, 5), st.integers(0, 2**32 - 1), st.integers(2, 9))
@settings(max_examples=80, deadline=None)
def test_mais_altos_em_tabela_grande_e_com_empates(V, k, semente, valores):
    # Acima de 128·k notas o corte vem de grupos de 64, com sobra no fim quando V não é múltiplo.
    notas = np.random.default_rng(semente).integers(0, valores, V).astype(np.float32)
    esperado = np.lexsort((np.arange(V), -notas))
    assert vetores.mais_altos(notas, k).tolist() == esperado[:k].tolist()
    fora = tuple(esperado[:2].tolist())
    assert vetores.mais_altos(notas, k, fora).tolist() == esperado[2 : 2 + k].tolist()


@pytest.mark.parametrize("normalizar", [False, True])
def test_conjunto_de_analogias_igual_a_uma_pergunta_por_vez(tabela_sorteada, normas, normalizar):
    perguntas = np.random.default_rng(1).integers(30, 300, (60, 4))
    acertos = vetores.avaliar_analogias(tabela_sorteada, normas, perguntas, normalizar)
    for n, (a, b, c, _) in enumerate(perguntas):
        # A pergunta "a : b :: c : ?" é a conta b − a + c.
        alvo = vetores.vetor_da_analogia(tabela_sorteada, b, a, c, normas if normalizar else None)
        notas = vetores.cossenos(tabela_sorteada, alvo, normas)
        assert acertos.livre[n] == vetores.mais_altos(notas, 1)[0]
        assert acertos.sem_entradas[n] == vetores.mais_altos(notas, 1, (a, b, c))[0]


@pytest.mark.parametrize("normalizar", [False, True])
def test_analogias_com_linhas_nulas_e_palavras_repetidas(normalizar):
    sorteio = np.random.default_rng(4)
    tabela = sorteio.standard_normal((40, 5)).astype(np.float32)
    tabela[[0, 7, 12]] = 0  # uma palavra que o treino nunca viu
    normas = vetores.normas_das_linhas(tabela)
    perguntas = sorteio.integers(0, 14, (200, 4))
    perguntas[:20, 1] = perguntas[:20, 0]  # a = b: o alvo é c
    perguntas[20:40, 2] = perguntas[20:40, 1]
    acertos = vetores.avaliar_analogias(tabela, normas, perguntas, normalizar)
    for n, (a, b, c, _) in enumerate(perguntas):
        alvo = vetores.vetor_da_analogia(tabela, b, a, c, normas if normalizar else None)
        notas = vetores.cossenos(tabela, alvo, normas)
        # Somadas em outra ordem, as notas diferem na casa de 1e-7: vale qualquer uma do empate.
        assert notas[acertos.livre[n]] >= notas.max() - 1e-6
        notas[[a, b, c]] = -np.inf
        assert notas[acertos.sem_entradas[n]] >= notas.max() - 1e-6


def test_analogias_numa_tabela_que_so_tem_as_entradas():
    tabela = np.eye(3, dtype=np.float32)
    acertos = vetores.avaliar_analogias(tabela, np.ones(3, "f"), np.array([[0, 1, 2, 0]]), False)
    assert acertos.livre.tolist() == [1] and acertos.sem_entradas.tolist() == [-1]


def test_os_dois_protocolos_de_uma_vez_e_cada_um_por_si(tabela_sorteada, normas):
    perguntas = np.random.default_rng(1).integers(0, 300, (60, 4))
    juntos = vetores.avaliar_protocolos(tabela_sorteada, normas, perguntas, (True, False))
    for normalizar, um in zip((True, False), juntos, strict=True):
        so = vetores.avaliar_analogias(tabela_sorteada, normas, perguntas, normalizar)
        np.testing.assert_array_equal(um.livre, so.livre)
        np.testing.assert_array_equal(um.sem_entradas, so.sem_entradas)
    (nenhuma,) = vetores.avaliar_protocolos(tabela_sorteada, normas, perguntas[:0], (True,))
    assert nenhuma.livre.shape == nenhuma.sem_entradas.shape == (0,)


def test_alinhamento_deixa_o_proprio_par_de_fora():
    # Dois pares perpendiculares: cada um é a única referência do outro, e o cosseno é 0.
    assert vetores.alinhamento(np.eye(2)).tolist() == [0, 0]
    # Três iguais e um oposto: o oposto contra a média dos outros dá −1.
    desvios = np.array([[1.0, 0], [1, 0], [1, 0], [-1, 0]])
    np.testing.assert_allclose(vetores.alinhamento(desvios), [1, 1, 1, -1])


def test_anisotropia_e_a_media_de_todos_os_pares(tabela_sorteada, normas):
    from sklearn.metrics.pairwise import cosine_similarity

    parte = tabela_sorteada[[i for i in range(400) if i != 10]] + 0.3
    c = cosine_similarity(parte.astype(np.float64))
    esperado = c[np.triu_indices(len(c), 1)].mean()
    # Somas em float64 dos dois lados, sobre normas float32, de 48 parcelas.
    erro = folga.soma(48, 1, folga.EPS32)
    assert vetores.anisotropia(parte, vetores.normas_das_linhas(parte)) == pytest.approx(
        esperado, abs=erro
    )
    com_nula = np.vstack([parte, np.zeros((1, 48), np.float32)])
    assert vetores.anisotropia(com_nula, vetores.normas_das_linhas(com_nula)) == pytest.approx(
        esperado, abs=erro
    )


def test_pares_ao_acaso_nunca_sao_a_linha_com_ela_mesma(normas):
    # Com 2 linhas perpendiculares, qualquer par válido dá 0; a linha consigo mesma daria 1.
    tabela = np.eye(2, dtype=np.float32)
    c = vetores.cossenos_de_pares(tabela, np.ones(2, np.float32), 500, 3)
    assert (c == 0).all() and len(c) == 500


def test_pares_ao_acaso_repetem_com_a_mesma_semente(tabela_sorteada, normas):
    um = vetores.cossenos_de_pares(tabela_sorteada, normas, 100, 5)
    assert (um == vetores.cossenos_de_pares(tabela_sorteada, normas, 100, 5)).all()
    assert (um != vetores.cossenos_de_pares(tabela_sorteada, normas, 100, 6)).any()


@pytest.mark.parametrize(
    ("palavra", "vizinho", "classe"),
    [
        ("king", " King", "forma"),
        ("king", "king", "forma"),
        ("king", " kings", "forma"),
        ("king", " queen", "palavra"),
        ("king", " kingdom", "palavra"),
        ("walk", " walked", "forma"),
        ("avô", " avo", "forma"),
        ("mouse", " mice", "palavra"),
        ("a", " as", "palavra"),
        ("king", "\n", "palavra"),
        ("city", " cities", "forma"),
        ("car", " caring", "palavra"),
        ("be", " bed", "palavra"),
        ("happy", " happier", "palavra"),
    ],
)
def test_classificar_vizinho(palavra, vizinho, classe):
    assert tokens.classificar_vizinho(palavra, vizinho) == classe


# --- nos pesos de um modelo de verdade --------------------------------------------------


@pytest.fixture(scope="module")
def gensim_smollm2(smollm2):
    from gensim.models import KeyedVectors

    t = smollm2.tokenizador
    # O gensim conhece as palavras como o arquivo as escreve; os outros tokens viram «#id».
    nomes = [f"#{i}" for i in range(smollm2.V)]
    for i in range(smollm2.V):
        cru = t.cru(i)
        if cru.startswith("Ġ") and cru[1:].isascii() and cru[1:].isalpha():
            nomes[i] = cru[1:]
    kv = KeyedVectors(smollm2.d)
    kv.add_vectors(nomes, np.asarray(smollm2.wte))
    return kv


@COM_GENSIM
@pytest.mark.smollm2
def test_vizinhos_do_smollm2_iguais_aos_do_gensim(smollm2, gensim_smollm2):
    normas = vetores.normas_das_linhas(smollm2.wte)
    for palavra in ("king", "Paris", "happy"):
        i = smollm2.tokenizador.linha(palavra).id
        deles = gensim_smollm2.most_similar(palavra, topn=10)
        nossos = vetores.vizinhos(smollm2.wte, smollm2.wte[i], 10, normas, (i,))
        assert [gensim_smollm2.key_to_index[n] for n, _ in deles] == [n for n, _ in nossos]
        np.testing.assert_allclose([c for _, c in deles], [c for _, c in nossos], atol=1e-5)


@COM_GENSIM
@pytest.mark.smollm2
def test_analogias_com_os_mesmos_vereditos_do_gensim(smollm2, gensim_smollm2, tmp_path):
    """O protocolo normalizado com exclusão é o de evaluate_word_analogies: pergunta a pergunta."""
    from nucleo.base import caminhos

    linhas = (caminhos.DADOS / "analogias" / "questions-words.txt").read_text("utf-8").splitlines()
    inicio = linhas.index(": family")
    fim = linhas.index(": gram1-adjective-to-adverb")
    parte = linhas[inicio:fim]
    arquivo = tmp_path / "familia.txt"
    arquivo.write_text("\n".join(parte), encoding="utf-8")
    _, secoes = gensim_smollm2.evaluate_word_analogies(
        str(arquivo), restrict_vocab=None, case_insensitive=False
    )
    deles = {tuple(x): True for x in secoes[0]["correct"]} | {
        tuple(x): False for x in secoes[0]["incorrect"]
    }

    perguntas = listas.analogias_do_google(smollm2.tokenizador)
    da_familia = perguntas.ids[perguntas.categoria == perguntas.nomes.index("família")]
    normas = vetores.normas_das_linhas(smollm2.wte)
    acertos = vetores.avaliar_analogias(smollm2.wte, normas, da_familia, normalizar=True)
    nossos = {
        tuple(gensim_smollm2.index_to_key[i] for i in q): bool(r == q[3])
        for q, r in zip(da_familia, acertos.sem_entradas, strict=True)
    }
    assert len(nossos) == 240 and nossos == deles


@pytest.mark.smollm2
def test_analogias_do_google_no_smollm2(smollm2):
    """Cobertura e acertos publicados pelo projeto, a menos de 0,5 ponto."""
    from nucleo.licoes import l02_embeddings as exp

    conjunto = exp.conjunto_de_analogias(smollm2, exp.normas(smollm2))
    resumo = {id_: x["valor"] for id_, x in exp.resumo_do_conjunto(conjunto)}
    esperado = {
        "analogias_cobertura": 0.523,
        "analogias_cruas_livre": 0.215,
        "analogias_cruas_sem_entradas": 0.620,
        "analogias_cruas_entrada_primeiro": 0.764,
        "analogias_normalizadas_livre": 0.170,
        "analogias_normalizadas_sem_entradas": 0.585,
        "analogias_normalizadas_entrada_primeiro": 0.815,
    }
    assert resumo == pytest.approx(esperado, abs=0.005)


@pytest.mark.smollm2
def test_queen_e_a_resposta_sem_as_entradas(smollm2):
    normas = vetores.normas_das_linhas(smollm2.wte)
    king, man, woman, queen = (
        smollm2.tokenizador.linha(p).id for p in ("king", "man", "woman", "queen")
    )
    alvo = vetores.vetor_da_analogia(smollm2.wte, king, man, woman)
    assert vetores.vizinhos(smollm2.wte, alvo, 1, normas, (king, man, woman))[0][0] == queen
