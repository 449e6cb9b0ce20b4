"""O registro de famílias: cada ficha contra o modelo da biblioteca, montado com pesos sorteados."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

import modelos_minusculos as mm
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import folga, vetores
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos import estados, familias, fontes, pontas
from nucleo.modelos.familias import ALIBI, ROPE, SENOIDES, TABELA, VIES_T5

pytestmark = pytest.mark.unit

TODAS = [f for f in familias.CONHECIDAS if f != "gemma3"]
PEDIDAS = [
    "gpt2",
    "gpt_neo",
    "gptj",
    "gpt_neox",
    "opt",
    "bloom",
    "mpt",
    "falcon",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3",
    "granite",
    "phi",
    "phi3",
    "cohere",
    "olmo2",
    "stablelm",
    "smollm3",
    "bert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "distilbert",
    "mpnet",
    "electra",
    "albert",
    "modernbert",
    "t5",
]


def test_as_trinta_e_duas_familias_estao_no_registro():
    assert len(PEDIDAS) == 32 and set(PEDIDAS) <= set(familias.CONHECIDAS)


@pytest.fixture(scope="module", params=[*TODAS, *mm.VARIANTES])
def da_familia(request, tmp_path_factory):
    """(nome, modelo da biblioteca, o nosso lido do disco), de cada família e de cada variante."""
    nome = request.param
    # Medidas sorteadas pelo nome: as mesmas em toda máquina, e diferentes de família a família.
    sorteio = np.random.default_rng(sum(map(ord, nome)))
    cabecas = int(sorteio.choice([2, 4]))
    d = cabecas * int(sorteio.choice([8, 16]))
    lm = mm.montar(nome, d=d, cabecas=cabecas, camadas=int(sorteio.integers(1, 4)))
    return nome, lm, fontes.de_pasta(mm.salvar(lm, tmp_path_factory.mktemp("f") / nome))


def da_biblioteca(lm, ids):
    import torch

    with torch.no_grad():
        return lm(torch.tensor([ids]), output_hidden_states=True)


def test_h0_logits_e_posicoes_sao_os_da_biblioteca(da_familia):
    nome, lm, modelo = da_familia
    f, saida = modelo.ficha, da_biblioteca(lm, mm.IDS)
    assert f.conhecida and f.familia == mm.VARIANTES.get(nome, (nome,))[0]
    h0, soma = saida.hidden_states[0][0].numpy(), pontas.h0(modelo, mm.IDS)
    nossa = pontas.entrada(modelo, mm.IDS, soma)
    np.testing.assert_allclose(nossa, h0, rtol=0, atol=1e-6 * max(1, np.abs(h0).max()))
    # E a folga que a lição mostra cobre a mesma diferença.
    assert np.abs(nossa - h0).max() <= exp.folga_da_entrada(modelo, mm.IDS, soma, nossa)
    # O que se diz da posição: o mesmo token em dois lugares só difere, na entrada, onde há tabela.
    muda = np.abs(h0[1] - h0[4]).max() > 1e-3
    assert muda == (f.posicao in (TABELA, SENOIDES)) == (modelo.wpe is not None)
    passagem = pontas.passar(modelo, mm.IDS)  # o modelo relido do disco é o mesmo
    np.testing.assert_allclose(passagem.h0, h0, rtol=0, atol=1e-6 * max(1, np.abs(h0).max()))
    a_mao = exp.saida_a_mao(modelo, passagem)
    assert (a_mao is None) == f.codificador
    if a_mao:
        _, S, vies = a_mao
        logits = pontas.logits(modelo, passagem.h_final @ S.T, vies)
        erro = np.abs(logits - saida.logits[0].numpy()).max() / np.abs(passagem.logits).max()
        assert erro <= exp.folga_dos_logits(modelo, S, passagem)
        # Sem a divisão, o teto ou o viés, a mesma conta daria outra coisa.
        if f.formula_dos_logits != "logits = h_final · Sᵀ" or vies is not None:
            crus = passagem.h_final @ S.T
            assert np.abs(crus - passagem.logits).max() > 1e-2


def test_a_amarracao_e_o_padrao_sao_os_da_biblioteca(da_familia):
    nome, lm, modelo = da_familia
    entrada, saida = lm.get_input_embeddings(), lm.get_output_embeddings()
    if saida is None:
        assert modelo.cabeca == "ausente"
        return
    amarrada = entrada.weight.data_ptr() == saida.weight.data_ptr()
    assert modelo.cabeca == ("amarrada" if amarrada else "solta")
    # Sem a chave no config.json vale o padrão da classe, que o registro repete.
    assert modelo.ficha.amarra == type(lm.config)().tie_word_embeddings


def test_a_frase_da_posicao_e_a_formula_dizem_o_que_a_ficha_diz(da_familia):
    nome, lm, modelo = da_familia
    f = modelo.ficha
    ditas = f.frase_da_posicao
    marcas = {
        ROPE: "RoPE", ALIBI: "ALiBi", VIES_T5: "T5", TABELA: "aprendida", SENOIDES: "senoides"
    }  # fmt: skip
    assert [p for p, marca in marcas.items() if marca in ditas] == [f.posicao]
    if f.posicao == ROPE:
        assert ("coordenadas" in ditas) == (f.giro.dimensoes < f.giro.cabeca)
    # A fórmula nomeia cada coisa que se faz à linha, e nenhuma outra.
    assert ("wpe" in f.formula) == (modelo.wpe is not None)
    assert ("LayerNorm" in f.formula) == bool(f.norma) and ("P ·" in f.formula) == bool(f.projecao)
    assert ("tipo" in f.formula) == bool(f.tipo)
    assert f.so_a_linha == np.array_equal(
        pontas.passar(modelo, mm.IDS).h0, modelo.wte[mm.IDS]
    )  # fmt: skip
    if modelo.wpe is None:
        dita = exp.quem_mede_a_wpe(modelo, None)
        assert f"**{modelo.nome} não tem wpe**" in dita and ditas in dita


def test_a_norma_final_e_a_da_lente(da_familia):
    _, lm, modelo = da_familia
    if not estados.tem_lente(modelo):
        assert modelo.ficha.codificador or modelo.ficha.projecao
        return
    import torch

    from nucleo.licoes import l02_contexto

    norma, x = (
        estados.norma_final(modelo),
        np.float32([[1, 2, -3, 0.5] * (modelo.d // 4)]),
    )  # (1, d)
    escala, desvio, eps = l02_contexto.numeros_da_norma(modelo)
    h = x - x.mean() if modelo.ficha.centra else x
    nossa = h / np.sqrt((h * h).mean() + eps) * escala + desvio
    with torch.no_grad():
        deles = norma(torch.from_numpy(x)).numpy()
    atol = folga.soma(2 * modelo.d, np.abs(deles).max(), folga.EPS32)
    np.testing.assert_allclose(nossa, deles, rtol=0, atol=atol)
    # No fim do caminho a lente é o próprio modelo.
    E, logits = estados.estados(modelo, [mm.IDS])[0], pontas.passar(modelo, mm.IDS).logits
    S = lm.get_output_embeddings().weight.detach().numpy()
    maior = np.linalg.norm(E[-1], axis=1).max() * vetores.normas_das_linhas(S).max()
    erro = folga.modelo(len(E), modelo.d) * max(1, maior)
    np.testing.assert_allclose(estados.lente(modelo, E[-1], True), logits, rtol=0, atol=erro)


def test_mexer_na_ficha_faz_a_conta_errar(da_familia):
    """Nenhum campo da conta é enfeite: trocado um, h₀ deixa de ser a da biblioteca."""
    _, lm, modelo = da_familia
    f, certa = modelo.ficha, pontas.entrada(modelo, mm.IDS)
    trocas = {
        "vezes": f.vezes + 1,
        "tipo": "",
        "norma": "",
        "projecao": "",
        "primeira": f.primeira + 1,
    }
    for campo, valor in trocas.items():
        if getattr(f, campo) in ("", valor) or (campo == "primeira" and modelo.wpe is None):
            continue
        modelo.ficha = replace(f, **{campo: valor})
        try:
            outra = pontas.entrada(modelo, mm.IDS)
            igual = outra.shape == certa.shape and np.abs(outra - certa).max() < 1e-3
        except ValueError:  # as larguras já nem combinam
            igual = False
        finally:
            modelo.ficha = f
        # A LayerNorm desfaz um fator comum a tudo o que ela normaliza, e só ele.
        assert igual == (campo == "vezes" and bool(f.norma) and modelo.wpe is None), campo


def test_gemma_3_que_ve_imagens_e_lido_pelo_texto(tmp_path):
    import transformers as tf

    texto = mm.config("gemma3_text").to_dict()
    visao = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    visao |= {"num_attention_heads": 2, "image_size": 8, "patch_size": 4}
    lm = tf.AutoModelForCausalLM.from_config(
        tf.Gemma3Config(text_config=texto, vision_config=visao)
    )
    modelo = fontes.de_pasta(mm.salvar(lm.eval(), tmp_path / "g3"))
    passagem = pontas.passar(modelo, mm.IDS)
    np.testing.assert_allclose(pontas.entrada(modelo, mm.IDS), passagem.h0, rtol=0, atol=1e-6)
    assert modelo.ficha.formula == "h₀ = 4 · linha" and modelo.cabeca == "amarrada"
    assert estados.norma_final(modelo) is not None


# --- uma família que não se conhece --------------------------------------------------------------

DESCONHECIDAS = {
    "xglm": {"d_model": 16, "ffn_dim": 20, "num_layers": 2, "attention_heads": 4},
    "glm": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8,
            "num_key_value_heads": 1, "intermediate_size": 20, "pad_token_id": 0},
    "mamba": {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4},
}  # fmt: skip


@pytest.mark.parametrize("familia", [*DESCONHECIDAS, "", "inventada", "bert_relativo"])
def test_familia_desconhecida_nao_afirma_nada(familia, tmp_path):
    import transformers as tf

    if familia in DESCONHECIDAS:
        c = tf.AutoConfig.for_model(familia, vocab_size=mm.VOCAB, **DESCONHECIDAS[familia])
        pasta = mm.salvar(tf.AutoModelForCausalLM.from_config(c), tmp_path / "m")
    else:
        base = "bert" if familia == "bert_relativo" else "gpt2"
        pasta = mm.salvar(mm.montar(base), tmp_path / "m")
        dados = json.loads((pasta / "config.json").read_text("utf-8"))
        dados |= (
            {"position_embedding_type": "relative_key"}
            if base == "bert"
            else {"model_type": familia}
        )
        (pasta / "config.json").write_text(json.dumps(dados), encoding="utf-8")
    achou_wte = (
        familia != "mamba"
    )  # a tabela do Mamba tem outro nome: recusada, com o que há no arquivo
    if not achou_wte:
        with pytest.raises(ErroDoUsuario, match="tabela de embeddings"):
            fontes.de_pasta(pasta)
        return
    modelo = fontes.de_pasta(pasta)
    assert not modelo.ficha.conhecida and modelo.wpe is None
    ditas = [
        exp.quem_mede_a_wpe(modelo, None), exp.frase_da_entrada(modelo), exp.frase_da_saida(modelo),
        modelo.ficha.frase_da_posicao, modelo.ficha.formula, modelo.nota_da_cabeca,
    ]  # fmt: skip
    for dita in ditas:
        assert not any(x in dita for x in ("RoPE", "ALiBi", "gira", "wpe", "só o conteúdo")), dita
    assert modelo.cabeca in ("não sei", "amarrada", "solta") and not estados.tem_lente(modelo)
    for conta in (pontas.partes_de_h0, pontas.h0, pontas.entrada):
        with pytest.raises(ErroDoUsuario, match="Não conheço a família"):
            conta(modelo, mm.IDS)


@pytest.mark.parametrize(
    "estrago",
    [
        {"hidden_size": None},
        {"num_attention_heads": 0},
        {"hidden_size": "muito"},
        {"rope_parameters": 3},
    ],
)
def test_config_sem_os_numeros_da_ficha_vale_por_familia_desconhecida(estrago):
    dados = mm.config("gemma").to_dict() | {"head_dim": None} | estrago
    assert not familias.da_config(dados).conhecida


def test_toda_propriedade_da_ficha_existe_tambem_na_desconhecida():
    vazia = familias.da_config({})
    assert not vazia.conhecida and not vazia.so_a_linha and vazia.formula == "h₀ = ?"
    assert {c.name for c in fields(vazia)} >= {"posicao", "giro", "vezes", "logits_vezes", "teto"}
