"""Prever: o que se entende, o que se tranca antes de medir, e a explicação de cada erro."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal
from nucleo.exercicios import correcao, previsoes, registro
from nucleo.exercicios.bancada import Bancada
from nucleo.exercicios.previsoes import Diario, NaoEntendi, ler_numero
from nucleo.exercicios.tipos import Confusao, Medida, Opcao, Pergunta

PERGUNTAS = [p for a in (2, 6) for p in registro.perguntas(a)]
unit = pytest.mark.unit

NUMERO = Pergunta(
    "n", 2, "4", "numero", "Quanto?", lambda c: Medida(328.2, "328,2", "teste"), "porque",
    unidade="MB", tolerancia=0.005, casas=1,
    confusoes=(Confusao(lambda c: 313.0, "MiB"), Confusao(lambda c: 82.05, "sem × 4")), erro_geral="refaça",
)  # fmt: skip
ESCOLHA = Pergunta(
    "e", 2, "2", "escolha", "Qual?", lambda c: Medida("b", "b", "teste"), "porque",
    opcoes=(Opcao("a", "forma", "não é a"), Opcao("b", "sentido", "é b"), Opcao("c", "empate", "não é c")),
)  # fmt: skip


# --- números como gente escreve -----------------------------------------------------------


@unit
@pytest.mark.parametrize(
    ("texto", "valor"),
    [
        ("12", 12), ("3,5", 3.5), ("3.5", 3.5), ("0.709", 0.709), ("0,709", 0.709), ("-0,136", -0.136),
        ("−0,136", -0.136), ("1.234,5", 1234.5), ("1,234.5", 1234.5), ("38.597.376", 38597376),
        ("1,234,567", 1234567), ("1,234", 1.234), ("1234", 1234), ("3e4", 30000), ("5,7e-7", 5.7e-7),
        ("328,2 MB", 328.2), ("328.2MB", 328.2), ("31 %", 31), ("38,6 milhões", 38.6e6), ("50 mil", 50000),
        ("≈ 16", 16), ("cerca de 60.611,5", 60611.5), ("+2", 2), (" 7 ", 7),
    ],
)  # fmt: skip
def test_numero_com_virgula_ou_ponto(texto, valor):
    assert ler_numero(texto, "MB") == pytest.approx(valor, rel=1e-12)


@unit
@pytest.mark.parametrize(
    "texto",
    [
        "",
        "abc",
        "1.234",
        "12.345",
        "1..2",
        "1,2,3",
        "1.23.4",
        "3,5 kg",
        "1 2",
        "--3",
        "1e999",
        ",",
        "1,23.4,5",
        "nan",
    ],
)
def test_numero_que_nao_se_entende_pede_de_novo(texto):
    with pytest.raises(NaoEntendi) as motivo:
        ler_numero(texto, "MB")
    assert str(motivo.value).endswith((".", "ponto."))


@unit
def test_o_ponto_ambiguo_diz_as_duas_leituras():
    with pytest.raises(NaoEntendi, match="pode ser 1234 ou 1,234"):
        ler_numero("1.234")


@unit
@given(st.floats(-1e6, 1e6).map(lambda x: round(x, 4)))
def test_o_que_a_tela_escreve_a_tela_le(x):
    assert ler_numero(decimal(x, 4)) == pytest.approx(x, abs=1e-9)


@unit
@pytest.mark.parametrize("texto", ["b", "B", " b) ", "(b)", "b.", "sentido", "Sentido"])
def test_escolha_aceita_a_letra_ou_o_texto(texto):
    assert previsoes.entender(ESCOLHA, texto) == "b"


@unit
@pytest.mark.parametrize("texto", ["", "d", "ab", "2", "sim"])
def test_escolha_invalida_diz_as_letras(texto):
    with pytest.raises(NaoEntendi):
        previsoes.entender(ESCOLHA, texto)


@unit
@pytest.mark.parametrize("texto", ["c b a", "cba", "c > b > a", "C, B, A", "c-b-a"])
def test_ordem_aceita_separadores(texto):
    ordem = next(p for p in PERGUNTAS if p.tipo == "ordem")
    assert previsoes.entender(ordem, texto) == ["c", "b", "a"]
    for ruim in ("c b", "c b b", "abcd", "1 2 3"):
        with pytest.raises(NaoEntendi):
            previsoes.entender(ordem, ruim)


# --- as perguntas -----------------------------------------------------------------------


@unit
@pytest.mark.parametrize("apostila", [2, 6])
def test_ha_perguntas_para_cada_secao(apostila):
    perguntas = registro.perguntas(apostila)
    assert len(perguntas) >= 12 and len({p.id for p in perguntas}) == len(perguntas)
    assert {p.tipo for p in registro.perguntas(2)} == {"escolha", "numero", "ordem", "texto"}
    secoes = {2: set("123456") - {""}, 6: {"6.1", "6.2", "6.4", "6.5", "6.6"}}[apostila]
    assert secoes <= {p.secao for p in perguntas}


@unit
@pytest.mark.parametrize("p", PERGUNTAS, ids=lambda p: p.id)
def test_toda_resposta_errada_tem_a_sua_explicacao(p):
    assert len(p.porque) > 30
    if p.tipo in ("escolha", "ordem"):
        chaves = [o.chave for o in p.opcoes]
        assert len(chaves) >= 2 and chaves == sorted(set(chaves))
        textos = [o.explicacao for o in p.opcoes]
        assert all(len(t) > 8 for t in textos)
        # Duas opções erradas só dividem a explicação quando o engano é um só.
        assert len(set(textos)) >= len(textos) - 1
    if p.tipo == "numero":
        assert len(p.confusoes) >= 2 and p.erro_geral
        assert p.tolerancia or p.absoluta or p.unidade  # contagens exatas têm unidade


@unit
def test_o_numero_errado_recebe_o_nome_da_confusao():
    def veredito(x):
        r = previsoes.julgar(NUMERO, x, NUMERO.medir(None))
        return r.veredito, r.explicacao

    assert veredito(328.2) == veredito(327.0) == ("acertou", "")
    assert veredito(313.0) == ("errou", "MiB") and veredito(82.0) == ("errou", "sem × 4")
    assert veredito(331.0)[0] == "quase" and "acima" in veredito(331.0)[1]
    assert veredito(5.0) == ("errou", "Ficou abaixo do medido. refaça")


@unit
def test_escolha_e_ordem_explicam_a_que_se_escolheu():
    assert previsoes.julgar(ESCOLHA, "a", ESCOLHA.medir(None)).explicacao == "não é a"
    assert previsoes.julgar(ESCOLHA, "b", ESCOLHA.medir(None)).veredito == "acertou"
    ordem = next(p for p in registro.perguntas(2) if p.id == "ordem_dos_pares")
    r = previsoes.julgar(ordem, ["a", "b", "c"], Medida(["c", "b", "a"], "", ""))
    assert r.veredito == "errou" and r.explicacao == ordem.opcoes[0].explicacao


@pytest.fixture(scope="module")
def bancada(smollm2):
    c = Bancada("smollm2")
    c.__dict__["modelo"] = smollm2
    return c


@pytest.mark.smollm2
@pytest.mark.parametrize("p", PERGUNTAS, ids=lambda p: p.id)
def test_toda_pergunta_se_mede_ao_vivo(p, bancada):
    try:
        m = p.medir(bancada)
    except ErroDoUsuario as erro:
        # Só a falta do mini é desculpa, e ela vem com o que fazer.
        assert "mini" in erro.por_que + erro.o_que and erro.o_que_fazer
        pytest.skip(erro.o_que)
    assert m.texto and m.fonte
    if p.tipo in ("escolha", "ordem"):
        chaves = [o.chave for o in p.opcoes]
        assert m.valor in chaves if p.tipo == "escolha" else sorted(m.valor) == chaves
        r = previsoes.julgar(p, m.valor, m, bancada)
    elif p.tipo == "numero":
        assert m.valor == m.valor and abs(m.valor) < 1e12
        r = previsoes.julgar(p, float(m.valor), m, bancada)
        folga = previsoes.folga_de(p, m.valor)
        for confusao in p.confusoes:
            errado = float(confusao.valor(bancada))
            assert abs(errado - m.valor) > folga, (p.id, errado)
            assert previsoes.julgar(p, errado, m, bancada).explicacao == confusao.explicacao
        # Vai à tela e volta: o que se lê na tela, digitado de novo, acerta.
        escrito = previsoes.mostrar_previsto(p, float(m.valor))
        assert abs(previsoes.entender(p, escrito) - m.valor) <= folga
    else:
        r = previsoes.julgar(p, "ajuda; atrapalha", m, bancada)
        assert r.pontos and r.veredito == "compare"
        return
    assert r.veredito == "acertou"


@pytest.mark.smollm2
@pytest.mark.parametrize(
    ("id_", "certo"),
    [
        ("pedacos", 6),
        ("desperdicio", 50257 * 768),
        ("xl_mb", (50257 + 1024) * 1600 * 4 / 1e6),
        ("xl_mib", (50257 + 1024) * 1600 * 4 / 2**20),
        ("parte_de_wte", 100 * 50257 * 768 / 124_439_808),
        ("norma_da_posicao", 16.0),
        ("onda", 2 * 3.141592653589793 * 10000 ** (1 - 2 / 512)),
        ("troca_muda", 2),
        ("interpolar", 0.25),
        ("bfloat16", 513),
    ],
)
def test_medidas_contra_a_conta_a_mao(id_, certo, bancada):
    """Outra conta, feita aqui: 513 = 257 até 256, mais 128 de dois em dois, mais 128 de quatro em quatro."""
    p = next(p for p in PERGUNTAS if p.id == id_)
    assert p.medir(bancada).valor == pytest.approx(certo, rel=1e-5)


@pytest.mark.smollm2
@pytest.mark.parametrize(
    ("id_", "certa"),
    [("embaralhar", "a"), ("onehots", "b"), ("forma_ou_sentido", "a"), ("dois_ao_acaso", "b"), ("copia", "b"),
     ("sem_mascara", "b"), ("ultima_uma", "b"), ("ultima_duas", "a"), ("produtos", "a"), ("exp_log", "c"),
     ("norma_do_rope", "b"), ("so_a_distancia", "a"), ("base", "a"), ("ntk", "a"), ("bolsa", "a"),
     ("linhas_da_saida", "c")],
)  # fmt: skip
def test_escolhas_que_a_teoria_decide(id_, certa, bancada):
    p = next(p for p in PERGUNTAS if p.id == id_)
    assert p.medir(bancada).valor == certa


@pytest.mark.smollm2
def test_os_dois_gradientes_somam_o_da_tabela_amarrada(bancada):
    from nucleo.exercicios.perguntas_02 import dois_gradientes

    g = dois_gradientes(bancada)
    assert g["linhas_entrada"] == g["diferentes"] and g["linhas_saida"] > 0.9 * g["V"]
    assert g["diferenca"] < 1e-5 * (g["norma_entrada"] + g["norma_saida"])


@unit
def test_sem_o_mini_a_pergunta_diz_o_que_falta_e_as_outras_seguem(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from nucleo.base import caminhos

    c = Bancada("smollm2")
    c.__dict__["modelo"] = SimpleNamespace(wpe=None, nome="smollm2")
    monkeypatch.setattr(caminhos, "DADOS", tmp_path)
    with pytest.raises(ErroDoUsuario, match="mini"):
        _ = c.com_wpe
    perguntas = [p for p in PERGUNTAS if p.id in ("vizinhas", "troca_muda")]
    monkeypatch.undo()
    monkeypatch.setattr(type(c), "com_wpe", property(lambda c: (_ for _ in ()).throw(
        ErroDoUsuario("O modelo mini não está aqui.", "y", "z"))))  # fmt: skip
    medidas, faltas = correcao.medir_perguntas(perguntas, c)
    assert list(medidas) == ["troca_muda"] and faltas == ["vizinhas: O modelo mini não está aqui."]


@pytest.mark.mini
def test_com_o_mini_a_tabela_de_posicoes_e_medida(mini):
    c = Bancada("mini")
    c.__dict__["modelo"] = mini
    por_id = {p.id: p for p in PERGUNTAS}
    assert por_id["um_a_mais"].medir(c).valor == "c"
    assert por_id["forma_de_h0"].medir(c).valor == "a"
    assert por_id["vizinhas"].medir(c).fonte == "mini"


# --- o diário ---------------------------------------------------------------------------


@unit
def test_a_previsao_esta_no_disco_antes_da_medida(tmp_path):
    diario = Diario.abrir(tmp_path, 2)
    diario.trancar(NUMERO, "313")
    no_disco = json.loads(diario.arquivo.read_text("utf-8"))["respostas"]["n"]
    assert no_disco["texto"] == "313" and "medido" not in no_disco
    assert len(no_disco["quando"]) >= 19 and no_disco["quando"][10] == "T"
    with pytest.raises(ValueError, match="trancada"):
        diario.trancar(NUMERO, "328,2")
    diario.anotar(NUMERO, previsoes.julgar(NUMERO, 313.0, NUMERO.medir(None)))
    de_novo = Diario.abrir(tmp_path, 2).respostas["n"]
    assert de_novo["veredito"] == "errou" and no_disco.items() <= de_novo.items()
    assert [p.name for p in tmp_path.iterdir()] == ["02_previsoes.json"]


@unit
def test_duas_janelas_abertas_nao_se_apagam(tmp_path):
    uma, outra = Diario.abrir(tmp_path, 2), Diario.abrir(tmp_path, 2)
    uma.trancar(NUMERO, "313")
    outra.trancar(ESCOLHA, "a")
    assert set(Diario.abrir(tmp_path, 2).respostas) == {"n", "e"}
    with pytest.raises(ValueError, match="trancada"):
        uma.trancar(ESCOLHA, "b")
    assert Diario.abrir(tmp_path, 2).respostas["e"]["texto"] == "a"


@unit
def test_recomecar_guarda_o_antigo(tmp_path):
    for letra in "abc":
        Diario.abrir(tmp_path, 2).trancar(ESCOLHA, letra)
        assert previsoes.recomecar(tmp_path, 2).is_file()
    assert Diario.abrir(tmp_path, 2).respostas == {}
    guardados = [json.loads(p.read_text("utf-8")) for p in tmp_path.glob("*.json")]
    assert sorted(g["respostas"]["e"]["texto"] for g in guardados) == ["a", "b", "c"]


@unit
@pytest.mark.parametrize(
    "texto", ["", "{", "[]", '{"respostas": 3}', '{"a": {"texto": 3}}', '{"a": null}']
)
def test_diario_estragado_diz_o_que_fazer(tmp_path, texto):
    (tmp_path / "02_previsoes.json").write_text(texto, encoding="utf-8")
    with pytest.raises(ErroDoUsuario) as erro:
        Diario.abrir(tmp_path, 2)
    assert "--recomecar" in erro.value.o_que_fazer
    assert (tmp_path / "02_previsoes.json").read_text("utf-8") == texto


@unit
def test_sem_disco_a_previsao_nao_se_diz_guardada(tmp_path):
    (tmp_path / "arquivo").write_text("", encoding="utf-8")
    diario = Diario(tmp_path / "arquivo" / "02_previsoes.json", 2, {})
    with pytest.raises(ErroDoUsuario, match="--saida"):
        diario.trancar(ESCOLHA, "a")
    assert diario.respostas == {}


@unit
def test_a_correcao_refaz_o_veredito_e_ignora_o_do_arquivo(tmp_path):
    forjado = {"respostas": {"pedacos": {"texto": "4", "quando": "x", "veredito": "acertou", "medido": "4"},
                             "onehots": {"texto": "b"}, "nao_existe": {"texto": "b"}}}  # fmt: skip
    (tmp_path / "02_previsoes.json").write_text(json.dumps(forjado), encoding="utf-8")
    medidas = {"pedacos": Medida(6, "6", "t"), "onehots": Medida("b", "b", "t")}
    assert correcao.corrigir_previsoes(tmp_path, 2, medidas, None) == {
        "pedacos": "errou",
        "onehots": "acertou",
    }
    for lixo in ("[" * 100_000, "{", "x" * 300_000):
        (tmp_path / "02_previsoes.json").write_text(lixo, encoding="utf-8")
        assert correcao.corrigir_previsoes(tmp_path, 2, medidas, None) == {}
