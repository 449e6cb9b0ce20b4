"""Estático contra contextual: as medidas contra contas ingênuas, os estados contra a biblioteca."""

import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from conftest import RAIZ, erro_gentil, ler_csv, licao_pronta, rodar_dentro
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import folga, sentidos, vetores
from nucleo.licoes import l02_contexto as exp
from nucleo.modelos import estados, familias, fontes, frases
from nucleo.modelos.fontes import Modelo

LICAO = "02_contexto.py"


@pytest.fixture(scope="module")
def gpt2_bpe():
    return fontes.tokenizador_gpt2()


@pytest.fixture
def sorteio():
    return np.random.default_rng(5)


# --- onde a palavra cai na frase ------------------------------------------------------------


@pytest.mark.unit
def test_acha_o_token_da_palavra_e_nao_de_outra(gpt2_bpe):
    o = frases.achar_palavra(gpt2_bpe, "bank", "The banks closed, but the bank of the river stayed")
    assert gpt2_bpe.texto(o.ids[o.lugar]) == " bank" and o.pedacos == [" bank"] and not o.avisos
    assert gpt2_bpe.texto(o.ids[o.lugar - 1]) == " the"


@pytest.mark.unit
@pytest.mark.parametrize("palavra", ["paralelepípedo", "coração", "embeddings"])
def test_palavra_de_varios_tokens_vale_o_ultimo_e_diz(gpt2_bpe, palavra):
    o = frases.achar_palavra(gpt2_bpe, palavra, f"I said {palavra} twice, I think")
    pedacos = gpt2_bpe.ids(" " + palavra)
    assert len(pedacos) > 1 and o.ids[o.lugar] == pedacos[-1]
    assert o.ids[o.lugar - len(pedacos) + 1 : o.lugar + 1] == pedacos
    [aviso] = o.avisos
    assert f"são {len(pedacos)} tokens" in aviso and "vale o último" in aviso


@pytest.mark.unit
def test_palavra_repetida_maiuscula_acento_solto_e_sinais(gpt2_bpe):
    o = frases.achar_palavra(gpt2_bpe, "bank", "One bank and another bank here")
    assert o.lugar == 4 and "aparece 2 vezes" in o.avisos[0]
    o = frases.achar_palavra(gpt2_bpe, "bank", "Bank robbers ran")
    assert o.lugar == 0 and "'Bank'" in o.avisos[0]
    solto = frases.achar_palavra(gpt2_bpe, "coração", "meu coração bate")
    junto = frases.achar_palavra(gpt2_bpe, "coração", "meu coração bate")
    assert solto == junto
    assert frases.achar_palavra(gpt2_bpe, "C++", "I like C++ a lot").pedacos[-1] == "++"


@pytest.mark.unit
@pytest.mark.parametrize(
    "palavra,frase,trecho",
    [
        ("bank", "Two banks stood there", "'banks'"),
        ("bank", "Nothing to see", "palavra inteira"),
        ("bank", "   ", "token"),
        (" ", "The bank", "token"),
    ],
)
def test_palavra_que_nao_esta_na_frase(gpt2_bpe, palavra, frase, trecho):
    with pytest.raises(ErroDoUsuario) as erro:
        frases.achar_palavra(gpt2_bpe, palavra, frase)
    assert trecho in erro.value.por_que and "--palavra" in erro.value.o_que_fazer


@pytest.mark.unit
def test_palavra_fora_da_colecao_diz_quais_ha(gpt2_bpe):
    colecao = frases.colecao_para(gpt2_bpe)
    assert colecao.idioma == "en"
    with pytest.raises(ErroDoUsuario, match="table") as erro:
        frases.ambigua(gpt2_bpe, colecao, "table")
    assert "bank, spring, match" in erro.value.por_que


@pytest.mark.unit
@pytest.mark.parametrize("idioma", ["en", "pt"])
def test_as_frases_sao_bem_feitas(idioma):
    """Cada frase tem a palavra uma vez, nunca no começo, sempre com o mesmo artigo antes; e os
    sentidos têm a palavra em lugares parecidos, para a posição não fazer o papel do sentido."""
    d = json.loads((RAIZ / "data" / "frases" / f"{idioma}.json").read_text("utf-8"))
    assert d["principal"] in d["palavras"] and len(d["palavras"]) >= 3
    for palavra, frases_de in d["palavras"].items():
        todas = [f for s in frases_de.values() for f in s]
        assert len(frases_de) == 2 and min(map(len, frases_de.values())) >= 8
        assert len(set(todas)) == len(todas)
        antes, lugares = set(), []
        for f in todas:
            partes = re.findall(r"\w+", f)
            assert [p.casefold() for p in partes].count(palavra) == 1, f
            lugares.append(partes.index(palavra))
            antes.add(partes[lugares[-1] - 1])
        assert len(antes) == 1 and min(lugares) >= 4
        n = len(next(iter(frases_de.values())))
        assert abs(np.mean(lugares[:n]) - np.mean(lugares[n:])) < 1.6


# --- as medidas, contra contas ingênuas -------------------------------------------------------


def lacuna_ingenua(K, rotulos):
    dentro, entre = [], []
    for i, j in itertools.combinations(range(len(K)), 2):
        (dentro if rotulos[i] == rotulos[j] else entre).append(K[i, j])
    return np.mean(dentro) - np.mean(entre)


def acertos_ingenuos(X, rotulos):
    certos = []
    for i in range(len(X)):
        notas = {}
        for c in sorted(set(rotulos)):
            outros = [
                X[j] / np.linalg.norm(X[j]) for j in range(len(X)) if rotulos[j] == c and j != i
            ]
            notas[c] = vetores.cosseno(X[i], np.mean(outros, axis=0))
        certos.append(max(notas, key=notas.get) == rotulos[i])
    return np.mean(certos)


@pytest.mark.unit
@pytest.mark.parametrize("rotulos", [[0, 0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2, 2, 1, 0]])
def test_separacao_e_centroide_contra_lacos(sorteio, rotulos):
    rotulos = np.array(rotulos)
    X = sorteio.standard_normal((3, len(rotulos), 6)) + rotulos[None, :, None] * 0.4
    K = sentidos.cossenos(X)
    for c in range(3):
        assert K[c] == pytest.approx(vetores_cossenos(X[c]), abs=1e-12)
    outras = np.stack([rotulos, sorteio.permutation(rotulos)])
    lacunas, acertos = sentidos.separacao(K, outras), sentidos.acertos_do_centroide(K, outras)
    assert lacunas.shape == acertos.shape == (2, 3)
    for s, r in enumerate(outras):
        for c in range(3):
            assert lacunas[s, c] == pytest.approx(lacuna_ingenua(K[c], r), abs=1e-12)
            assert acertos[s, c] == pytest.approx(acertos_ingenuos(X[c], r), abs=1e-12)


def vetores_cossenos(X):
    return np.array([[vetores.cosseno(a, b) for b in X] for a in X])


@pytest.mark.unit
def test_p_de_embaralhos_contra_a_enumeracao_de_todas_as_rotulagens(sorteio):
    rotulos = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    X = sorteio.standard_normal((1, 8, 4)) + rotulos[None, :, None] * 0.6
    K = sentidos.cossenos(X)
    medida = lacuna_ingenua(K[0], rotulos)
    todas = [
        lacuna_ingenua(K[0], np.isin(np.arange(8), quais))
        for quais in itertools.combinations(range(8), 4)
    ]
    exato = np.mean(np.array(todas) >= medida - 1e-9)
    p = sentidos.provar(K, rotulos, 4000, 1).p[0]
    # 4 desvios de uma proporção em 4000 sorteios.
    assert p == pytest.approx(exato, abs=4 * (exato * (1 - exato) / 4000) ** 0.5 + 1 / 4000)


@pytest.mark.unit
def test_onde_tudo_e_igual_nada_separa():
    X = np.tile(np.arange(1.0, 5), (2, 10, 1)).astype(np.float32)
    X[1] += np.repeat([0, 3], 5)[:, None] * np.array([1, -1, 0, 0])  # a segunda camada separa
    r = sentidos.provar(sentidos.cossenos(X), np.repeat([0, 1], 5), 500, 0)
    assert r.p[0] == r.p_corrigido[0] == 1 and r.acertos[0] == 0.5
    # Das 252 rotulagens, só duas (a certa e a trocada) separam tanto: p ≈ 2/252.
    assert r.p[1] < 0.03 and r.acertos[1] == 1 and r.melhor == 1 and r.primeira(0.05) == 1


@pytest.mark.unit
def test_ruido_raramente_passa_na_prova_corrigida(sorteio):
    """Com 8 camadas independentes, p sem correção < 0,05 em alguma é comum; corrigido, não."""
    rotulos, cru, corrigido = np.repeat([0, 1], 6), 0, 0
    for n in range(60):
        r = sentidos.provar(sentidos.cossenos(sorteio.standard_normal((8, 12, 5))), rotulos, 199, n)
        cru += r.p.min() <= 0.05
        corrigido += r.p_corrigido.min() <= 0.05
    # Esperados: 1 − 0,95⁸ = 34 % e 5 % de 60. Binomial: P(corrigido > 9) < 0,2 %.
    assert cru > 10 and corrigido <= 9


@pytest.mark.unit
def test_anisotropia_parcelas_e_variancia_de_um_vetor(sorteio):
    X = sorteio.standard_normal((2, 30, 7)).astype(np.float32) + 0.5
    X[:, :, 3] += 9  # uma dimensão rebelde
    for c in range(2):
        pares = [vetores.cosseno(X[c, i], X[c, j]) for i, j in itertools.combinations(range(30), 2)]
        assert sentidos.media_dos_cossenos(X)[c] == pytest.approx(np.mean(pares), abs=1e-6)
        s = np.linalg.svd(X[c].astype(np.float64), compute_uv=False) ** 2
        assert sentidos.variancia_de_um_vetor(X)[c] == pytest.approx(s[0] / s.sum(), abs=1e-9)
    parcelas = sentidos.contribuicoes(X)
    assert parcelas.shape == (2, 7) and (parcelas.argmax(1) == 3).all()
    sem = sentidos.sem_dimensoes(X, np.array([[3], [3]]))
    assert (sem[:, :, 3] == 0).all() and (X[:, :, 3] != 0).all()
    assert (sentidos.media_dos_cossenos(sem) < 0.5).all() and parcelas.sum(1).min() > 0.9


@pytest.mark.unit
def test_padronizar_contra_o_scikit_learn(sorteio):
    from sklearn.preprocessing import StandardScaler

    referencia = sorteio.standard_normal((1, 40, 5)) * [1, 5, 0.1, 2, 0] + 3
    X = sorteio.standard_normal((1, 9, 5))
    deles = StandardScaler().fit(referencia[0]).transform(X[0])
    assert sentidos.padronizar(X, referencia)[0] == pytest.approx(deles, abs=1e-9)


@pytest.mark.unit
def test_faixas_contam_cada_par_uma_vez():
    K = np.array([[[1, 0.2, 0.4], [0.2, 1, 0.9], [0.4, 0.9, 1]]])
    f = sentidos.faixas(K, np.ones((3, 3), dtype=bool))
    assert f.media[0] == pytest.approx(0.5) and f.desvio[0] == pytest.approx(
        np.std([0.2, 0.4, 0.9])
    )


# --- os estados, contra output_hidden_states ----------------------------------------------------


def modelo_de_brinquedo(familia):
    """Um modelo sorteado e minúsculo da família, com os blocos de verdade do transformers."""
    import torch
    import transformers as tf

    torch.manual_seed(3)
    comum = {"vocab_size": 50, "max_position_embeddings": 16, "hidden_size": 12}
    camadas = {"num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 20}
    if familia == "gpt2":
        lm = tf.GPT2LMHeadModel(
            tf.GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=3, n_head=3)
        )
        wpe = lm.transformer.wpe.weight
    elif familia == "llama":
        lm = tf.LlamaForCausalLM(tf.LlamaConfig(**comum, **camadas, tie_word_embeddings=True))
        wpe = None
    else:
        lm = tf.BertModel(tf.BertConfig(**comum, **camadas))
        wpe = lm.embeddings.position_embeddings.weight
    lm.eval()
    wte = lm.get_input_embeddings().weight.detach().numpy()
    cabeca = "ausente" if familia == "bert" else "amarrada"
    return Modelo(
        familia, wte, None if wpe is None else wpe.detach().numpy(), None,
        {"max_position_embeddings": 16}, "", cabeca, "",
        familias.da_config(lm.config.to_dict()), _completo=lm,
    )  # fmt: skip


def estados_escutados(modelo, ids):
    """Sem output_hidden_states: o que entra em cada bloco, e o que sai da norma final (ou do último)."""
    import torch

    base = modelo.completo().base_model
    blocos = (
        base.encoder.layer if modelo.ficha.codificador else getattr(base, "layers", None) or base.h
    )
    fim, vistos = estados.norma_final(modelo) or blocos[-1], []

    def na_entrada(_bloco, args, kwargs):
        vistos.append((args[0] if args else kwargs["hidden_states"])[0].numpy())

    def na_saida(_modulo, _args, saida):
        vistos.append((saida[0] if isinstance(saida, tuple) else saida)[0].numpy())

    escutas = [b.register_forward_pre_hook(na_entrada, with_kwargs=True) for b in blocos]
    escutas.append(fim.register_forward_hook(na_saida))
    with torch.no_grad():
        base(torch.tensor([ids]))
    for escuta in escutas:
        escuta.remove()
    return np.stack(vistos)


@pytest.mark.unit
@pytest.mark.parametrize("familia", ["gpt2", "llama", "bert"])
def test_estados_em_lote_iguais_aos_escutados_um_a_um(familia):
    modelo = modelo_de_brinquedo(familia)
    textos = [[3, 7, 9], [1, 2, 3, 4, 5, 6, 8], [11]]  # o enchimento de um não pode vazar em outro
    for ids, nossos in zip(textos, estados.estados(modelo, textos), strict=True):
        assert nossos.shape == (4, len(ids), 12)
        # 3 blocos × somas de até 20 parcelas, valores até 4: 60 · 6e-8 · 4 ≈ 1,4e-5 no pior caso.
        assert nossos == pytest.approx(estados_escutados(modelo, ids), abs=1.4e-5)


@pytest.mark.unit
@pytest.mark.parametrize("familia", ["gpt2", "llama"])
def test_lente_no_fim_e_o_proprio_modelo_e_no_meio_normaliza(familia):
    import torch

    modelo = modelo_de_brinquedo(familia)
    lm, ids = modelo.completo(), [3, 7, 9, 20]
    E = estados.estados(modelo, [ids])[0]
    with torch.no_grad():
        logits = lm(torch.tensor([ids])).logits[0].numpy()
        meio = lm.get_output_embeddings()(estados.norma_final(modelo)(torch.tensor(E[1]))).numpy()
    # Produtos de 12 parcelas, depois de uma norma que soma outras 12, de números até 4.
    erro = folga.soma(24, 4, folga.EPS32)
    assert estados.lente(modelo, E[-1], True) == pytest.approx(logits, abs=erro)
    assert estados.lente(modelo, E[1], False) == pytest.approx(meio, abs=erro)
    assert np.abs(meio - estados.lente(modelo, E[1], True)).max() > 1e-3
    assert estados.tem_lente(modelo) and not estados.tem_lente(modelo_de_brinquedo("bert"))


@pytest.mark.unit
@pytest.mark.parametrize("familia", ["gpt2", "llama"])
def test_frase_longa_demais(familia):
    modelo = modelo_de_brinquedo(familia)
    modelo.tokenizador = fontes.tokenizador_gpt2()
    with pytest.raises(ErroDoUsuario, match="17 tokens"):
        estados.estados(modelo, [list(range(17))])


# --- no SmolLM2 ----------------------------------------------------------------------------------


@pytest.fixture
def completa(smollm2):
    """Uma execução com tudo; as verificações abaixo só a leem."""
    return licao_pronta(LICAO)


@pytest.fixture(scope="module")
def bank(smollm2):
    """As 20 frases com " bank" lidas pelo SmolLM2."""
    tok = smollm2.tokenizador
    return exp.ler(smollm2, frases.ambigua(tok, frases.colecao_para(tok), "bank"))


@pytest.mark.smollm2
def test_bank_na_camada_0_e_uma_linha_so(bank, smollm2):
    linha = smollm2.wte[smollm2.tokenizador.linha("bank").id]
    assert np.abs(bank.X[0] - linha).max() <= 1e-6
    assert np.abs(bank.K[0] - 1).max() <= 1e-6


@pytest.mark.smollm2
def test_bank_rio_e_dinheiro_se_separam_alem_do_acaso(bank):
    p = exp.provar(bank, 1000, 2)
    assert bank.palavra.sentidos == ["rio", "dinheiro"] and p.palavra.embaralhos == 1000
    c = p.palavra.melhor
    assert 0 < c < bank.ultima and p.palavra.p[c] < 0.01 and p.palavra.p_corrigido[c] < 0.01
    assert p.palavra.lacuna[c] > 3 * p.palavra.teto[c] and p.palavra.acertos[c] >= 0.9
    # O artigo da frente só se separa bem depois: não é o assunto da frase que a palavra repete.
    assert p.palavra.primeira() + 5 < p.frente.primeira()
    # A mesma conta com os rótulos sorteados não acha nada.
    mistos = np.random.default_rng(0).permutation(bank.rotulos)
    assert sentidos.provar(bank.K, mistos, 500, 1).p_corrigido.min() > 0.05


@pytest.mark.smollm2
def test_rebeldes_e_lente_do_smollm2(bank, smollm2):
    fundo = exp.fundo([bank], 2)
    r = exp.rebeldes(bank, fundo)
    meio = bank.ultima // 2
    assert r.parte[meio] > 0.5 and r.sem_tres[meio] < r.crua[meio] / 2
    assert np.abs(r.padronizada).max() < 0.05
    contraste = exp.contraste_da_lente(smollm2, bank, 12).linhas[-1]
    assert "account" in contraste[2] and "account" not in contraste[1]


@pytest.mark.mini
def test_mini_soma_a_posicao_e_sem_ela_e_uma_linha_so(mini):
    colecao = frases.colecao_para(mini.tokenizador)
    assert colecao.idioma == "pt"
    x = exp.ler(mini, frases.ambigua(mini.tokenizador, colecao, colecao.principal))
    assert x.uma_linha_so and x.K[0].min() < 0.999  # com a posição, as ocorrências já diferem
    dono, quadro = exp.posicao_na_entrada(mini)
    assert dono == "mini" and all(abs(q[-1] - 1) < 1e-6 and q[4] < 0.999 for q in quadro.linhas)


@pytest.mark.cli
@pytest.mark.smollm2
def test_licao_inteira_confere_e_mostra_onde(completa):
    feito, pasta = completa
    dados = json.loads((pasta / "resultado.json").read_text("utf-8"))
    assert dados["nao_conferem"] == [] and dados["conferencias"] >= 18
    por_id = {r["id"]: r for r in dados["resultados"]}
    assert por_id["p_bank"]["valor"] < 0.01 and por_id["p_bank"]["camada"] > 0
    for x in ler_csv(pasta, "1_camada_0"):
        assert float(x["maior diferença"]) <= 1e-6
    # A pista que vem depois não chega à palavra; e as contas da página são as do nucleo.
    assert por_id["2_pista_depois.1"]["valor"] <= 1e-5
    a_mao = {i.split(".")[0] for i in por_id if "_a_mao." in i}
    assert a_mao == {f"{n}_a_mao" for n in range(2, 7)}
    for palavra in ("bank", "spring", "match"):
        zero = ler_csv(pasta, f"2_cossenos_{palavra}")[0]
        assert float(zero["entre sentidos"]) == pytest.approx(1, abs=1e-6)
    assert not re.search(r"\bnan\b|\bNone\b|array\(|np\.float|…\s", feito.stdout)
    assert max(map(len, feito.stdout.splitlines())) <= 100
    figuras = sorted(p.stem for p in pasta.glob("*.png"))
    assert figuras == ["2_mapas", "2_semelhanca", "3_separacao", "4_anisotropia", "5_rebeldes"]
    for n in range(1, 8):
        assert f"\n{n} · " in feito.stdout


@pytest.mark.cli
@pytest.mark.mini
def test_frases_de_quem_esta_ao_teclado(tmp_path, mini):
    """Palavra de vários tokens, sem --saida: a resposta vai para parcial/, e o relatório fica."""
    from test_leia_me import copiar_repositorio

    clone = copiar_repositorio(tmp_path / "clone com espaço")
    pasta = clone / "outputs" / "02_contexto"
    pasta.mkdir(parents=True)
    (pasta / "relatorio.md").write_text("inteiro", encoding="utf-8")
    feito = subprocess.run(
        [
            sys.executable, "lab/" + LICAO, "--modelo", "mini", "--palavra", "paralelepípedo",
            "--frase", "Pisou no paralelepípedo molhado", "--frase", "A rua é de paralelepípedo",
        ],
        cwd=clone, env=os.environ | {"PYTHONIOENCODING": "utf-8"}, capture_output=True,
        encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    pedacos = len(mini.tokenizador.ids(" paralelepípedo"))
    tela = " ".join(feito.stdout.split())  # a frase pode quebrar de linha em qualquer espaço
    assert pedacos > 1 and f"são {pedacos} tokens" in tela and "vale o último" in tela
    assert "1 · Na entrada" not in tela and len(ler_csv(pasta / "parcial", "7_pares")) == 1
    assert (pasta / "relatorio.md").read_text("utf-8") == "inteiro"


@pytest.mark.cli
@pytest.mark.smollm2
@pytest.mark.parametrize(
    "opcoes,trecho",
    [
        (["--palavra", "bank", "--frase", "No such word here"], "não está na frase"),
        (["--frase", "The bank"], "Falta dizer qual é a palavra"),
    ],
)
def test_enganos_viram_uma_mensagem(tmp_path, smollm2, opcoes, trecho):
    erro_gentil(
        rodar_dentro(LICAO, "--modelo", "smollm2", "--saida", str(tmp_path), *opcoes), trecho
    )
    assert not list(tmp_path.iterdir())
