"""Palavra, token e linha: os casos públicos 1–3, 8–11, 13, 16 e 17, com o BPE verdadeiro do GPT-2."""

import pytest

from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes, tokens

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def gpt2():
    return fontes.tokenizador_gpt2()


# Ids calculados por outros, a partir dos mesmos arquivos publicados.
@pytest.mark.parametrize(
    ("texto", "ids"),
    [
        (" king", [5822]), ("king", [3364]), ("King", [15708]), (" King", [2677]), (" queen", [16599]),
        ("queen", [4188, 268]), (" man", [582]), ("man", [805]), (" woman", [2415]), ("woman", [8580]),
        (" princess", [21752]), ("princess", [1050, 259, 919]), (" banana", [25996]), ("banana", [3820, 2271]),
        (" cat", [3797]), ("cat", [9246]), (" cats", [11875]), (" dog", [3290]), (" Paris", [6342]),
        (" can", [460]), ("can", [5171]), (" my", [616]), ("my", [1820]),
        ("", []), (" ", [220]), ("\n", [198]), ("!", [0]), ("<|endoftext|>", [50256]),
        ("🤗", [8582, 97, 245]), ("😀", [47249, 222]), ("irving", [343, 1075]),
        (" gato", [308, 5549]), (" rei", [302, 72]), (" rainha", [6290, 3099]), (" homem", [3488, 368]),
        (" mulher", [35971, 372]), (" não", [299, 28749]), (" coração", [1162, 64, 16175, 28749]),
        ("ã", [26102]), ("é", [2634]), ("ç", [16175]),
    ],
)  # fmt: skip
def test_ids_publicados(gpt2, texto, ids):
    assert gpt2.ids(texto) == ids


def test_tokenizador_igual_ao_do_transformers(gpt2):
    """Segunda fonte: o GPT2Tokenizer da biblioteca, com os mesmos arquivos (casos 5 e 6)."""
    from transformers import GPT2Tokenizer

    from nucleo.base import caminhos

    deles = GPT2Tokenizer(
        str(caminhos.DADOS / "gpt2_bpe" / "vocab.json"),
        str(caminhos.DADOS / "gpt2_bpe" / "merges.txt"),
    )
    for texto in (
        "O Brasil é gigante",
        "Artificial intelligence is metamorphosing the world!",
        " king",
        "naïve café 🤗",
    ):
        assert gpt2.ids(texto) == deles.encode(texto, add_special_tokens=False)
        assert "".join(gpt2.pedacos(texto)) == texto or "🤗" in texto


def test_vocabulario_do_gpt2(gpt2):
    assert gpt2.tamanho == 50257 and gpt2.maior_id == 50256
    # Bytes que não formam um caractere aparecem como �: 352 tokens, contagem publicada.
    assert sum("�" in gpt2.texto(i) for i in range(50257)) == 352


def test_o_espaco_aparece_e_nao_o_g_com_ponto(gpt2):
    assert gpt2.cru(5822) == "Ġking"
    assert gpt2.texto(5822) == " king" and tokens.visivel(gpt2.texto(5822)) == "' king'"
    assert tokens.visivel(gpt2.texto(198)) == r"'\n'"


def test_palavra_com_e_sem_espaco_sao_linhas_diferentes(gpt2):
    assert (gpt2.linha("man").id, gpt2.linha("man", com_espaco=False).id) == (582, 805)
    # O espaço que a pessoa digita não duplica nem muda a forma escolhida.
    assert gpt2.linha(" man ").id == 582


@pytest.mark.parametrize(
    ("palavra", "pedacos"),
    [
        ("gato", "' g' + 'ato'"),
        ("irving", "' ir' + 'ving'"),
        ("Lisboa", "' Lis' + 'boa'"),
        ("duas palavras", "' du'"),
    ],
)
def test_palavra_de_varios_pedacos_e_recusada_com_eles_a_vista(gpt2, palavra, pedacos):
    with pytest.raises(ErroDoUsuario) as erro:
        gpt2.linha(palavra)
    assert pedacos in erro.value.por_que
    assert gpt2.procurar(palavra) is None


def test_a_dica_da_palavra_recusada_funciona(gpt2):
    """O que a mensagem manda digitar precisa dar certo."""
    with pytest.raises(ErroDoUsuario) as erro:
        gpt2.linha("gato")
    sugerida = erro.value.o_que_fazer.split("--palavra ")[1].strip()
    assert gpt2.linha(sugerida).palavra == sugerida
    with pytest.raises(ErroDoUsuario, match="--sem-espaco"):
        # "queen" só é inteira com o espaço: a dica é tirar --sem-espaco.
        gpt2.linha("queen", com_espaco=False)


@pytest.mark.parametrize("palavra", ["", " ", "\t\n"])
def test_palavra_vazia(gpt2, palavra):
    with pytest.raises(ErroDoUsuario, match="vazia"):
        gpt2.linha(palavra)


def test_acentos_soltos_sao_recompostos_e_isso_e_dito(gpt2):
    nfd = "e\u0301"
    assert nfd != "é" and gpt2.ids(nfd) == gpt2.ids("é") == [2634]
    forma = gpt2.procurar(nfd, com_espaco=False)
    assert forma.id == 2634 and "NFC" in forma.aviso
    assert gpt2.procurar("é", com_espaco=False).aviso == ""


def test_portugues_quase_nunca_e_um_token(gpt2):
    for palavra in ("gato", "rei", "rainha", "homem", "mulher", "Lisboa", "coração", "não"):
        assert gpt2.procurar(palavra) is None, palavra


@pytest.mark.parametrize("arquivo", ["tokenizer.json", "vocab.txt"])
def test_arquivo_de_tokenizador_estragado(tmp_path, arquivo):
    (tmp_path / arquivo).write_bytes(b"\xff\xfe\x00{" * 10)
    with pytest.raises(ErroDoUsuario, match=arquivo):
        tokens.Tokenizador.de_pasta(tmp_path, "x")


def test_pasta_sem_tokenizador_devolve_none(tmp_path):
    assert tokens.Tokenizador.de_pasta(tmp_path, "x") is None


@pytest.mark.smollm2
def test_smollm2_conhece_king_inteiro_e_gato_em_pedacos(smollm2):
    assert smollm2.tokenizador.linha("king").texto == " king"
    with pytest.raises(ErroDoUsuario, match="' g'"):
        smollm2.tokenizador.linha("gato")


@pytest.mark.mini
def test_a_dica_diz_a_lingua_do_vocabulario(gpt2, mini, tmp_path):
    """Quem digita em português num modelo de inglês (ou o contrário) fica sabendo por que não deu."""
    for tok, palavra, lingua in (
        (gpt2, "cachorro", "inglês"),
        (mini.tokenizador, "wonderful", "português"),
    ):
        with pytest.raises(ErroDoUsuario) as info:
            tok.linha(palavra)
        assert f"vem de textos em {lingua}" in info.value.o_que_fazer
        sugerida = info.value.o_que_fazer.split()[-1]
        assert tok.linha(sugerida).id >= 0  # a palavra sugerida serve
    # Um vocabulário sem nenhuma das palavras comuns não diz língua nenhuma.
    from test_modelos import tokenizador_em

    tokenizador_em(tmp_path)
    brinquedo = tokens.Tokenizador.de_pasta(tmp_path, "brinquedo")
    assert brinquedo._lingua() == ""
