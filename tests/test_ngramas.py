"""O Kneser-Ney que mede o mini: soma 1, e dá o mesmo que a definição escrita com dicionários."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from nucleo.treino.ngramas import KneserNey

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def fita():
    # Cadeia de Markov de ordem 1 sobre 12 tokens: há o que aprender, e contextos que faltam.
    sorteio = np.random.default_rng(0)
    tabela = sorteio.dirichlet(np.full(12, 0.2), size=12)
    saida = [0]
    for _ in range(1500):
        saida.append(int(sorteio.choice(12, p=tabela[saida[-1]])))
    return np.array(saida)


def kneser_ney_pela_definicao(fita, vocabulario, ordem, descontos):
    """A fórmula de Chen & Goodman (1999), recursiva, com dicionários: lenta e óbvia."""
    fita = fita.tolist()
    ngramas = {
        k: [tuple(fita[i : i + k]) for i in range(len(fita) - k + 1)] for k in range(1, ordem + 1)
    }
    contagem = {ordem: Counter(ngramas[ordem])}
    for k in range(1, ordem):
        contagem[k] = Counter(g[1:] for g in set(ngramas[k + 1]))
    por_contexto = {k: defaultdict(list) for k in contagem}
    for k, c in contagem.items():
        for g, n in c.items():
            por_contexto[k][g[:-1]].append(n)

    def p(contexto, token):
        k = len(contexto) + 1
        abaixo = 1 / vocabulario if k == 1 else p(contexto[1:], token)
        contagens = por_contexto[k][contexto]
        if not sum(contagens):
            return abaixo

        def d(n):
            return descontos[k - 1][min(n, 3) - 1] if n else 0.0

        n = contagem[k][contexto + (token,)]
        return (n - d(n) + sum(map(d, contagens)) * abaixo) / sum(contagens)

    return p


@pytest.mark.parametrize("ordem", [1, 2, 3, 5])
def test_as_probabilidades_somam_1_em_qualquer_contexto(fita, ordem):
    kn = KneserNey(fita, 15, ordem)  # três tokens nunca vistos também recebem alguma massa
    sorteio = np.random.default_rng(1)
    contextos = sorteio.integers(0, 15, size=(20, ordem - 1))
    for contexto in contextos:
        p = kn.probabilidades(np.tile(contexto, (15, 1)), np.arange(15))
        assert p.min() > 0
        assert p.sum() == pytest.approx(1.0, abs=1e-12)


def test_e_a_definicao(fita):
    kn = KneserNey(fita, 15, 4)
    p = kneser_ney_pela_definicao(fita, 15, 4, kn.descontos)
    novos = np.random.default_rng(2).integers(0, 14, size=(60, 4))
    novos[:40] = np.lib.stride_tricks.sliding_window_view(fita, 4)[100:140]  # metade já vista
    nossas = kn.probabilidades(novos[:, :3], novos[:, 3])
    assert nossas == pytest.approx([p(tuple(n[:3]), int(n[3])) for n in novos.tolist()], abs=1e-12)


def test_os_descontos_sao_os_da_formula():
    # Ordem 1, contagens escolhidas: n1 = 4, n2 = 3, n3 = 2, n4 = 1.
    vezes = [1, 1, 1, 1, 2, 2, 2, 3, 3, 4]
    fita = np.repeat(np.arange(10), vezes)
    y = 4 / (4 + 2 * 3)
    esperado = (1 - 2 * y * 3 / 4, 2 - 3 * y * 2 / 3, 3 - 4 * y * 1 / 2)
    assert KneserNey(fita, 10, 1).descontos[0] == pytest.approx(esperado)


def test_mais_contexto_ajuda_onde_ha_ordem_e_a_perda_e_a_media_dos_logs(fita):
    treino, validacao = fita[:1200], fita[1200:]
    perdas = [KneserNey(treino, 12, n).perda_media(validacao) for n in (1, 2)]
    assert perdas[1] < perdas[0] - 0.3
    kn = KneserNey(treino, 12, 3)
    logs = [
        np.log(kn.probabilidades(validacao[None, max(0, i - 2) : i], validacao[i : i + 1])[0])
        for i in range(1, len(validacao))
    ]
    assert kn.perda_media(validacao) == pytest.approx(-np.mean(logs), abs=1e-12)


def test_em_janelas_cada_token_so_ve_a_sua(fita):
    treino, validacao = fita[:1200], fita[1200:]
    kn = KneserNey(treino, 12, 3)
    janela, soma = 7, []
    for i in range(len(validacao) // janela * janela):
        comeco = i - i % janela
        contexto = validacao[None, max(comeco, i - 2) : i]
        soma.append(np.log(kn.probabilidades(contexto, validacao[i : i + 1])[0]))
    assert kn.perda_media(validacao, janela) == pytest.approx(-np.mean(soma), abs=1e-12)
    # Uma janela só, do tamanho da fita, é o texto corrido mais o primeiro token, sem contexto.
    n = len(validacao)
    primeiro = -np.log(kn.probabilidades(validacao[None, :0], validacao[:1])[0])
    inteira = (kn.perda_media(validacao) * (n - 1) + primeiro) / n
    assert kn.perda_media(validacao, n) == pytest.approx(inteira, abs=1e-12)
    # Janela menor que o contexto: nenhuma tem quatro para trás, e ainda assim é uma média.
    assert np.isfinite(kn.perda_media(validacao, 2))
