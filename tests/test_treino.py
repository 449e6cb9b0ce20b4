"""O treino do zero: corpus, BPE, passos, retomada, wpe, os dois gradientes, amarrado e solto."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import folga
from nucleo.treino import treinador as tr

pytestmark = pytest.mark.unit

FRASES = (
    "o rei e a rainha foram ao mar. ",
    "a moça abriu os olhos e viu o rei. ",
    "no mar não há rei nem rainha, disse a moça. ",
    "o homem velho viu o mar e a mulher. ",
)


def texto_de_brinquedo(frases=400, semente=0):
    sorteio = np.random.default_rng(semente)
    return "".join(FRASES[i] for i in sorteio.integers(0, len(FRASES), frases))


def brinquedo(amarrado=True, dropout=0.0, semente=3):
    return tr.novo_gpt2(50, 16, 2, 2, 12, semente, dropout, amarrado)


def receita(**mudancas):
    padrao = {"passos": 8, "lote": 4, "contexto": 12, "aquecimento": 2, "semente": 5}
    return tr.Receita(**(padrao | mudancas))


@pytest.fixture
def fita():
    return np.random.default_rng(1).integers(0, 50, 600).astype(np.int32)


# ---------------------------------------------------------------------------- o corpus


def test_paragrafo_quebrado_na_largura_da_pagina_volta_a_ser_um_so():
    cheia = "Uma noite destas, vindo da cidade para o Engenho Novo, encontrei no trem da"
    resto = "Central um rapaz aqui do bairro."
    assert tr.juntar_linhas(f"{cheia}\n{resto}\n— Continue, disse eu.\n") == (
        f"{cheia} {resto}\n— Continue, disse eu."
    )


def test_versos_e_titulos_ficam_em_suas_linhas():
    versos = "CANTO PRIMEIRO\nFoge o tempo e não volta\nE a vida vai com ele\n"
    assert tr.juntar_linhas(versos) == versos.strip()


def test_fala_que_vem_depois_de_uma_linha_cheia_abre_paragrafo():
    cheia = "x" * 30 + " palavra que enche a linha até o fim da página, e acaba."
    assert tr.juntar_linhas(f"{cheia}\n— Fala.\n{cheia}") == f"{cheia}\n— Fala.\n{cheia}"


def test_indice_sai_e_o_capitulo_de_mesmo_nome_fica():
    bruto = "Livro\n\nÍNDICE\nCAPÍTULO I\nCAPÍTULO II\nCAPÍTULO I\nEra uma vez.\nCAPÍTULO II\nFim."
    assert tr.juntar_linhas(bruto) == "Livro\nCAPÍTULO I\nEra uma vez.\nCAPÍTULO II\nFim."


def test_nenhuma_palavra_se_perde_ao_juntar():
    bruto = "\n".join(texto_de_brinquedo(40)[i : i + 60] for i in range(0, 1000, 60))
    assert tr.juntar_linhas(bruto).split() == bruto.split()


def test_ler_corpus_pega_subpastas_em_ordem_e_ignora_o_leiame(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "um.txt").write_text("Primeira obra.", encoding="utf-8")
    (tmp_path / "a.txt").write_text("Segunda obra.", encoding="utf-8-sig")
    (tmp_path / "LEIAME.txt").write_text("não é obra", encoding="utf-8")
    obras = tr.ler_corpus(tmp_path)
    assert [(o.nome, o.texto) for o in obras] == [
        ("a", "Segunda obra."),
        ("b/um", "Primeira obra."),
    ]


@pytest.mark.parametrize(
    ("conteudo", "pista"),
    [
        (None, "não tem nenhum arquivo .txt"),
        (b"  \n ", "vazio"),
        ("ação".encode("latin-1"), "UTF-8"),
    ],
)
def test_corpus_com_problema_da_uma_mensagem(tmp_path, conteudo, pista):
    if conteudo is not None:
        (tmp_path / "obra.txt").write_bytes(conteudo)
    with pytest.raises(ErroDoUsuario, match=pista) as erro:
        tr.ler_corpus(tmp_path)
    assert erro.value.por_que and erro.value.o_que_fazer


def test_corpus_que_nao_existe_ou_e_um_arquivo(tmp_path):
    arquivo = tmp_path / "obra.txt"
    arquivo.write_text("a", encoding="utf-8")
    for caminho in (tmp_path / "nada", arquivo):
        with pytest.raises(ErroDoUsuario, match="Não achei o corpus"):
            tr.ler_corpus(caminho)


def test_arquivo_que_nao_abre_da_uma_mensagem(tmp_path, monkeypatch):
    arquivo = tmp_path / "obra.txt"
    arquivo.write_text("texto", encoding="utf-8")

    def negar(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(arquivo), "read_bytes", negar)  # root lê tudo: chmod não bastaria
    with pytest.raises(ErroDoUsuario, match="Não consegui ler"):
        tr.ler_corpus(tmp_path)


def test_separar_por_obras_inteiras_ou_pelo_fim_de_cada_uma():
    obras = [tr.Obra(nome, "uma\n" * 100) for nome in ("x/a", "x/b", "x/c")]
    treino, validacao, regra = tr.separar(obras, de_fora=["x/b"])
    assert [o.nome for o in treino] == ["x/a", "x/c"]
    assert [o.nome for o in validacao] == ["x/b"]
    assert "x/b" in regra
    treino, validacao, regra = tr.separar(obras, de_fora=["outra/qualquer"], fracao=0.1)
    assert len(treino) == len(validacao) == 3
    # Nada se perde e nada se repete; o corte cai em fim de parágrafo.
    assert all(
        t.texto + "\n" + v.texto == o.texto
        for t, v, o in zip(treino, validacao, obras, strict=True)
    )
    assert sum(len(v.texto) for v in validacao) == pytest.approx(0.1 * 1200, rel=0.15)


def test_bpe_ida_e_volta_e_texto_pequeno_demais():
    texto = texto_de_brinquedo(200)
    bpe = tr.treinar_bpe([texto], 300)
    assert bpe.get_vocab_size() == 300
    assert bpe.token_to_id(tr.FIM) == 0
    estranho = "ação 日本 🙂\n— fim"  # bytes: nada fica de fora
    assert bpe.decode(bpe.encode(estranho).ids) == estranho
    assert len(bpe.encode(" rei").ids) == 1
    fita = tr.codificar(bpe, [tr.Obra("a", texto), tr.Obra("b", estranho)])
    assert (fita == 0).sum() == 2 and fita[0] == 0
    with pytest.raises(ErroDoUsuario, match="tokens"):
        tr.treinar_bpe(["só isto"], 8192)


# ----------------------------------------------------------------------------- os passos


def test_perda_e_a_do_transformers():
    modelo = brinquedo()
    ids = torch.randint(0, 50, (3, 12), generator=torch.Generator().manual_seed(0))
    deles = modelo(input_ids=ids, labels=ids).loss  # desloca os rótulos por dentro
    nossa = tr.perda(modelo, ids[:, :-1], ids[:, 1:].contiguous())
    # Uma média de 33 perdas, cada uma um logaritmo de 50 parcelas.
    assert nossa.item() == pytest.approx(deles.item(), abs=folga.soma(83, 4, folga.EPS32))


def test_agenda_sobe_fica_e_desce_ate_zero():
    r = receita(passos=100, aquecimento=10, descida=0.4, taxa=1.0)
    taxas = [r.taxa_no_passo(i) for i in range(100)]
    assert taxas[0] == pytest.approx(0.1) and taxas[9] == taxas[59] == 1.0
    assert np.allclose(np.diff(taxas[60:]), -1 / 40)  # em linha reta
    assert taxas[99] == pytest.approx(1 / 40)


def test_so_as_matrizes_decaem_e_a_wpe_nao():
    modelo = brinquedo()
    decaem, livres = tr.grupos_de_parametros(modelo, 0.1)
    nomes = {id(p): n for n, p in modelo.named_parameters()}
    assert {nomes[id(p)] for p in livres["params"] if p.ndim == 2} == {"transformer.wpe.weight"}
    assert all(p.ndim == 2 for p in decaem["params"])
    assert (decaem["weight_decay"], livres["weight_decay"]) == (0.1, 0.0)
    assert len(decaem["params"]) + len(livres["params"]) == len(list(modelo.parameters()))


def test_o_lote_e_a_fita_deslocada_de_um(fita):
    t = tr.Treino(brinquedo(), np.arange(600, dtype=np.int32) % 50, receita())
    x, y = t.lote(0)
    assert x.shape == y.shape == (4, 12)
    assert torch.equal((x + 1) % 50, y)
    assert not torch.equal(t.lote(1)[0], x)
    assert torch.equal(t.lote(0)[0], x)


def test_duas_execucoes_dao_os_mesmos_pesos_e_outra_semente_nao(fita):
    def rodar(semente):
        t = tr.Treino(brinquedo(dropout=0.1), fita, receita(semente=semente))
        perdas = [p.perda for p in t.passos()]
        return perdas, t.modelo.transformer.wpe.weight.detach().clone()

    (p1, w1), (p2, w2), (p3, w3) = rodar(5), rodar(5), rodar(6)
    assert p1 == p2 and torch.equal(w1, w2)
    assert p1 != p3 and not torch.equal(w1, w3)


@pytest.mark.parametrize("muon", [0, 0.02])
def test_retomar_do_meio_e_o_mesmo_que_ir_direto(fita, tmp_path, muon):
    def novo(semente=3):
        return tr.Treino(brinquedo(dropout=0.1, semente=semente), fita, receita(muon=muon))

    direto, metade, outro = novo(), novo(), novo(semente=99)
    fim = [p.perda for p in direto.passos()]
    for _ in range(4):
        metade.um_passo()
    torch.save(metade.estado(), tmp_path / "t.pt")
    outro.retomar(torch.load(tmp_path / "t.pt", weights_only=True))
    assert [p.perda for p in outro.passos()] == fim[4:]
    for a, b in zip(direto.modelo.parameters(), outro.modelo.parameters(), strict=True):
        assert torch.equal(a, b)


def test_treinar_ensina_o_que_e_previsivel():
    # Fita que conta de 0 a 49: depois de x vem x + 1. Uniforme custa ln 50 = 3,9 nats.
    t = tr.Treino(brinquedo(), np.arange(600) % 50, receita(passos=150, taxa=1e-2))
    perdas = [p.perda for p in t.passos()]
    assert perdas[0] == pytest.approx(np.log(50), abs=0.1)
    assert perdas[-1] < 0.3


def test_fita_menor_que_uma_janela_e_erro_gentil():
    with pytest.raises(ErroDoUsuario, match="janela"):
        tr.Treino(brinquedo(), np.zeros(5, dtype=np.int32), receita())


def test_perda_media_conta_cada_token_uma_vez(fita):
    modelo = brinquedo().eval()
    n = 12
    soma, vezes = 0.0, 0  # a mesma conta, janela por janela, com a cross_entropy da biblioteca
    with torch.no_grad():
        for i in range(0, 599, n):
            pedaco = torch.from_numpy(fita[i : i + n + 1].astype(np.int64))
            logits = modelo(pedaco[None, :-1]).logits[0]
            soma += F.cross_entropy(logits, pedaco[1:], reduction="sum").item()
            vezes += len(pedaco) - 1
    assert vezes == len(fita) - 1
    assert tr.perda_media(modelo, fita, n, lote=7) == pytest.approx(soma / vezes, abs=1e-5)
    assert not modelo.training


# --------------------------------------------------------------------------------- a wpe


def test_cosseno_por_defasagem_num_circulo():
    # Linhas num círculo de período 40: o cosseno a k posições é cos(2 pi k / 40), e o centro
    # do círculo (a linha média) não pode contar.
    angulo = 2 * np.pi * np.arange(400) / 40
    w = np.stack([np.cos(angulo), np.sin(angulo)], axis=1) + [7.0, -3.0]
    k = [1, 5, 10, 20]
    assert tr.cosseno_por_defasagem(w, k) == pytest.approx(np.cos(2 * np.pi * np.array(k) / 40))


def test_ao_nascer_a_wpe_nao_tem_vizinhanca_e_tem_desvio_001():
    wpe = tr.novo_gpt2(64, 192, 1, 2, 256, semente=1).transformer.wpe.weight.detach().numpy()
    assert wpe.std() == pytest.approx(0.01, rel=0.02)
    # 255 pares independentes em 192 dimensões: o desvio da média é 1/raiz(255·192) = 0,0045.
    assert np.abs(tr.cosseno_por_defasagem(wpe, (1, 2, 4, 8, 16, 32, 64))).max() < 0.02


def test_embaralhar_guarda_as_frequencias_e_tira_a_ordem(fita):
    nova = tr.embaralhar(fita, 1)
    assert not np.array_equal(nova, fita)
    assert np.array_equal(np.bincount(nova, minlength=50), np.bincount(fita, minlength=50))
    assert np.array_equal(nova, tr.embaralhar(fita, 1))
    longa = tr.embaralhar(fita, 1, 2 * len(fita) + 1)  # três embaralhadas, todas diferentes
    assert len(longa) == 3 * len(fita)
    assert not np.array_equal(longa[: len(fita)], longa[len(fita) : 2 * len(fita)])
    assert np.array_equal(np.bincount(longa, minlength=50), 3 * np.bincount(fita, minlength=50))


def test_alfabeto_guarda_as_letras_mais_comuns_e_troca_o_resto_por_espaco():
    a = tr.alfabeto("aaabbbccd!", maximo=3)
    assert a.letras == " abc"
    assert [a.letras[i] for i in a.codificar("abcd ")] == ["a", "b", "c", " ", " "]


# --------------------------------------------------------------------- os dois gradientes


@pytest.fixture
def lote():
    sorteio = torch.Generator().manual_seed(4)
    x = torch.randint(0, 20, (3, 12), generator=sorteio)  # os tokens 20 a 49 ficam de fora
    return x, torch.randint(0, 50, (3, 12), generator=sorteio)


def test_os_dois_caminhos_somam_o_gradiente_do_autograd(lote):
    modelo = brinquedo()
    dois = tr.dois_caminhos(modelo, *lote)
    modelo.eval()
    valor = tr.perda(modelo, *lote)
    valor.backward()
    inteiro = modelo.transformer.wte.weight.grad.numpy()
    assert np.array_equal(tr.gradiente_amarrado(modelo, *lote), inteiro)
    assert dois.perda == pytest.approx(valor.item(), abs=folga.soma(36 + 50, 4, folga.EPS32))
    # Um epsilon de float32 por token do lote (36), sobre números do tamanho dos dois gradientes.
    tamanho = (np.abs(dois.entrada) + np.abs(dois.saida)).max()
    assert np.abs(dois.entrada + dois.saida - inteiro).max() <= 36 * np.finfo("f4").eps * tamanho
    # Cada caminho sozinho não é o todo: trocar um pelo outro, ou esquecer um, não passaria.
    assert np.abs(dois.entrada - inteiro).max() > 1e-3
    assert np.abs(dois.saida - inteiro).max() > 1e-3


def test_o_caminho_de_entrada_confere_por_diferencas_finitas(lote):
    # Segunda derivação, sem autograd: mexe numa linha só na consulta e mede a perda.
    modelo = brinquedo().double().eval()
    x, y = lote
    wte = modelo.transformer.wte.weight.detach().clone()
    dois = tr.dois_caminhos(modelo, x, y)

    def valor(entrada):
        h = modelo.transformer(inputs_embeds=F.embedding(x, entrada)).last_hidden_state
        return F.cross_entropy(F.linear(h, wte).flatten(0, 1), y.flatten()).item()

    linha, coluna, passo = int(x[0, 0]), 3, 1e-5
    mais, menos = wte.clone(), wte.clone()
    mais[linha, coluna] += passo
    menos[linha, coluna] -= passo
    with torch.no_grad():
        derivada = (valor(mais) - valor(menos)) / (2 * passo)
    assert dois.entrada[linha, coluna] == pytest.approx(derivada, rel=1e-5)


def test_a_entrada_toca_so_os_tokens_do_lote_e_a_saida_toca_todos(lote):
    x, _ = lote
    dois = tr.dois_caminhos(brinquedo(), *lote)
    tocadas = np.flatnonzero(np.abs(dois.entrada).sum(axis=1))
    assert set(tocadas) == set(x.flatten().tolist())
    assert dois.linhas_entrada == len(tocadas)
    assert dois.linhas_saida == 50
    produto = (dois.entrada * dois.saida).sum()
    assert dois.cosseno == pytest.approx(
        produto / np.linalg.norm(dois.entrada) / np.linalg.norm(dois.saida), abs=1e-5
    )


def test_medir_os_dois_caminhos_nao_muda_o_treino(fita, lote):
    def rodar(medindo):
        t = tr.Treino(brinquedo(dropout=0.1), fita, receita())
        perdas = []
        for p in t.passos():
            perdas.append(p.perda)
            if medindo:
                tr.dois_caminhos(t.modelo, *lote)
        return perdas

    assert rodar(True) == rodar(False)


# ------------------------------------------------------------------------ amarrado e solto


def test_atado_e_solto_nascem_iguais_e_so_diferem_numa_matriz(lote):
    amarrado, solto = brinquedo(True), brinquedo(False)
    assert amarrado.lm_head.weight.data_ptr() == amarrado.transformer.wte.weight.data_ptr()
    assert solto.lm_head.weight.data_ptr() != solto.transformer.wte.weight.data_ptr()
    conta = [sum(p.numel() for p in m.parameters()) for m in (amarrado, solto)]
    assert conta[1] - conta[0] == 50 * 16
    assert tr.perda(amarrado, *lote).item() == tr.perda(solto, *lote).item()


def test_semelhanca_de_geometria_ignora_rotacao_e_percebe_diferenca():
    sorteio = np.random.default_rng(0)
    a = sorteio.normal(size=(60, 8))
    giro, _ = np.linalg.qr(sorteio.normal(size=(8, 8)))
    assert tr.semelhanca_de_geometria(a, 3 * a @ giro + 5) == pytest.approx(1.0, abs=1e-9)
    outra = tr.semelhanca_de_geometria(a, sorteio.normal(size=(60, 8)))
    assert abs(outra) < 0.15  # 1.770 pares, mas só 60 linhas: o acaso fica perto de 0,05
    assert tr.semelhanca_de_geometria(a, -a) == pytest.approx(1.0)  # -a é um giro em 8 dimensões


def test_semelhanca_de_geometria_e_a_spearman_da_scipy():
    from scipy.stats import spearmanr

    sorteio = np.random.default_rng(1)
    a = sorteio.normal(size=(20, 6))
    b = a + sorteio.normal(size=(20, 6))

    def pares(m):
        m = m - m.mean(0)
        m = m / np.linalg.norm(m, axis=1, keepdims=True)
        return [m[i] @ m[j] for i in range(20) for j in range(i + 1, 20)]

    assert tr.semelhanca_de_geometria(a, b) == pytest.approx(spearmanr(pares(a), pares(b))[0])
