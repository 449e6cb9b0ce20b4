"""outputs/index.html: o que as lições deixaram, numa página que não pede nada a ninguém."""

import base64
import hashlib
import io
import json
import re

import pytest

from leitor_de_paginas import conferir, conferir_no_navegador, ler, texto, todos
from nucleo.base.caderno import Caderno
from nucleo.paginas import esqueleto
from nucleo.paginas import resultados as pagina
from nucleo.paginas.resultados import FALHOU, PRONTO, RESSALVA, Execucao

pytestmark = pytest.mark.unit
PERIGO = "<script>alert('x')</script><img src=x onerror=alert(1)>"


def figura():
    """Um PNG de verdade, feito aqui, e os pixels dele."""
    from PIL import Image

    imagem = Image.effect_noise((320, 120), 60).convert("RGB")
    memoria = io.BytesIO()
    imagem.save(memoria, "PNG")
    return memoria.getvalue(), imagem.tobytes()


def gravar_licao(pasta, nome, titulo, *, falhas=(), resultados=(), quando="2026-11-30 09:00"):
    c = Caderno(nome, titulo)
    c.ficha = {
        "comando": f"python lab/{nome}.py --palavra '{PERIGO}'", "quando": quando, "versoes": {"python": "3.11"},
        "modelo": {"nome": "mini", "origem": "data/mini", "motivo": "pedido"}, "segundos": 12.5,
        "conferencias": 4, "nao_conferem": list(falhas),
    }  # fmt: skip
    c.blocos += ["## 1 · Uma seção", f"Um parágrafo com {PERIGO}.", "> **Repare:** `Ġ` é o espaço."]
    c.csv("1_precos", ["token", "valor"], [["a|b", 1.5], ["c", -2]])
    c.tabela_md(f"Valores de {PERIGO}", ["token", "valor"], [["a|b", "1,500"], [PERIGO, "−2,000"]])
    c.tabela_md("", ["coluna " * 6] * 9, [["texto comprido"] * 9])
    c.blocos.append("## 1 · Uma seção")  # o mesmo título duas vezes
    c.figura("1_figura", figura()[0], 'barras: "gato" & <rato>')
    c.arquivos["desenho.html"] = b"<!DOCTYPE html><title>x</title>"
    c.blocos.append("[desenho.html](desenho.html): interativo")
    for i, veredito in enumerate(resultados):
        c.resultado(f"afirmacao.{i}", 1.0, "", "mini", 1, veredito=veredito)
    c.gravar(pasta / nome)


@pytest.fixture(scope="module")
def saidas(tmp_path_factory):
    pasta = tmp_path_factory.mktemp("saídas com espaço")
    gravar_licao(pasta, "02_boa", f"Apostila 02 · Boa {PERIGO}")
    gravar_licao(pasta, "02_meia", "Meia", falhas=[f"soma {PERIGO}"])
    gravar_licao(pasta, "06_velha", "Velha", quando="2025-01-02 03:04")
    gravar_licao(pasta, "99_conferir", "Conferência", resultados=["confere", "confere", "difere"])
    (pasta / "07_torta").mkdir()
    (pasta / "07_torta" / "resultado.json").write_text('{"licao": ', encoding="utf-8")
    execucoes = [
        Execucao("02_boa", PRONTO, 12.5), Execucao("02_meia", RESSALVA, 3, ["não confere: soma"]),
        Execucao("06_ruim", FALHOU, 1.2, ["ValueError: acabou"], f"Traceback\nValueError: {PERIGO}", False),
        Execucao("99_conferir", PRONTO, 2),
    ]  # fmt: skip
    ordem = ["02_boa", "02_meia", "06_ruim", "06_velha", "99_conferir"]
    pagina.escrever(
        execucoes, ordem, ("mini", "pedido em --modelo"), f"tudo.py {PERIGO}", [], pasta
    )
    return pasta


@pytest.fixture(scope="module")
def html(saidas):
    return (saidas / "index.html").read_text(encoding="utf-8")


def test_links_ancoras_ids_e_figuras(html, saidas):
    arvore = conferir(html, saidas)
    figuras = todos(arvore, "img")
    assert len(figuras) == 4 and figuras[0].get("alt") == 'barras: "gato" & <rato>'
    # O link para a página interativa aponta para a pasta da lição.
    assert "02_boa/desenho.html" in [a.get("href") for a in todos(arvore, "a")]


def test_o_que_vem_de_uma_licao_sai_escapado(html):
    arvore = ler(html)
    assert not [no for no in arvore.iter() if no.get("onerror")]
    # O texto perigoso aparece, como texto, em cada lugar que o recebeu: comando, parágrafo, legenda,
    # célula, título, conferência e erro.
    assert texto(arvore).count("<script>alert('x')</script>") >= 7


def test_a_politica_so_deixa_rodar_o_nosso_script(html):
    arvore = ler(html)
    politica = next(m.get("content") for m in todos(arvore, "meta") if m.get("http-equiv"))
    corpo = todos(arvore, "script")[0].text
    resumo = base64.b64encode(hashlib.sha256(corpo.encode()).digest()).decode()
    assert f"script-src 'sha256-{resumo}'" in politica and "default-src 'none'" in politica
    assert "http" not in politica


def test_cada_situacao_com_o_seu_motivo(html):
    arvore = ler(html)
    linhas = {texto(tr[0]): texto(tr) for tr in todos(todos(arvore, "table")[0], "tr")}
    assert "✓ pronto" in linhas["02_boa"] and "12,5" in linhas["02_boa"]
    assert "! com ressalva" in linhas["02_meia"] and "não confere: soma" in linhas["02_meia"]
    assert "✗ falhou" in linhas["06_ruim"] and "ValueError: acabou" in linhas["06_ruim"]
    assert "de antes" in linhas["06_velha"]
    secoes = {h.get("id"): texto(h) for h in todos(arvore, "h3")}
    assert secoes["02_boa"].startswith("Apostila 02 · Boa")
    assert "execução anterior (2025-01-02 03:04)" in texto(arvore)
    assert "4 lições: 2 prontas, 1 com ressalva, 1 falhou." in texto(arvore)
    # A que falhou mostra as últimas linhas do erro já abertas.
    erro = next(d for d in todos(arvore, "details") if d.get("class") == "so-erro")
    assert "open" in erro.attrib and "Traceback" in texto(erro)


def test_a_conferencia_tem_lugar_proprio(html):
    arvore = ler(html)
    cartao = next(s for s in todos(arvore, "section") if s.get("class") == "cartao")
    assert texto(cartao).startswith("A conferência Das 16 contas")
    assert "15 conferem" in texto(cartao) and "soma" in texto(cartao)
    assert [texto(li) for li in todos(cartao, "ul")[0]] == ["2 confere", "1 difere"]
    # E não aparece outra vez entre as lições.
    licoes = [s for s in todos(arvore, "section") if s.get("class") == "licao"]
    nomes = " ".join(s.get("aria-labelledby") for s in licoes)
    assert nomes == "02_boa 02_meia 06_ruim 06_velha 07_torta"


def test_tabelas_com_legenda_e_numeros_a_direita(html):
    arvore = ler(html)
    tabela = next(t for t in todos(arvore, "table") if todos(t, "caption"))
    assert texto(todos(tabela, "caption")[0]).startswith("Valores de <script>")
    assert [th.get("class") for th in todos(tabela, "th")] == [None, "numero"]
    assert texto(todos(tabela, "td")[0]) == "a|b"
    caixas = [d for d in todos(arvore, "div") if d.get("class") == "rolavel"]
    assert len(caixas) > 6
    assert all(d.get("role") == "region" and d.get("tabindex") == "0" for d in caixas)


def test_a_figura_embutida_e_a_mesma():
    from PIL import Image

    png, pixels = figura()
    casca = "<!DOCTYPE html><html><head><title>x</title></head><body>{}</body></html>"
    arvore = ler(casca.format(esqueleto.figura_html(png, "x")))
    img = todos(arvore, "img")[0]
    dados = base64.b64decode(img.get("src").split(",", 1)[1])
    with Image.open(io.BytesIO(dados)) as aberta:
        assert aberta.convert("RGB").tobytes() == pixels
        assert (img.get("width"), img.get("height")) == tuple(map(str, aberta.size))
    assert len(dados) <= len(png)


def test_nada_em_outputs_ainda_da_uma_pagina(tmp_path):
    pagina.escrever([], ["02_embeddings"], ("auto", "nenhum"), "tudo.py", [], tmp_path)
    arvore = conferir((tmp_path / "index.html").read_text(encoding="utf-8"), tmp_path)
    assert "Nenhuma lição rodou agora" in texto(arvore) and "não rodou" in texto(arvore)


def test_resultado_que_nao_e_um_dicionario_nao_derruba(tmp_path):
    for conteudo in ("[]", "null", "", "\xff"):
        (tmp_path / "resultado.json").write_bytes(conteudo.encode("latin-1"))
        assert pagina.ler_resultado(tmp_path) == {}
    (tmp_path / "resultado.json").write_text(json.dumps({"licao": "x"}), encoding="utf-8")
    assert pagina.ler_resultado(tmp_path) == {"licao": "x"}


def test_no_chromium(saidas):
    lido = conferir_no_navegador(saidas / "index.html")
    # O que veio com cara de HTML aparece como texto: ninguém o executou nem o engoliu.
    assert PERIGO in lido and "ValueError: acabou" in lido


def test_o_escuro_da_tela_e_o_do_botao_sao_o_mesmo():
    css = (esqueleto.MOLDES / "estilo.css").read_text(encoding="utf-8")
    blocos = re.findall(
        r":root(?::not\(\[data-tema=claro\]\)|\[data-tema=escuro\]) \{(.*?)\}", css, re.S
    )
    assert len(blocos) == 2 and blocos[0].split() == blocos[1].split()
