"""Projeções com cuidado: as medidas contra o scikit-learn e contas à mão, os casos difíceis, e a
página interativa aberta num navegador de verdade."""

import json
import re
import sys
import types

import numpy as np
import pytest

from conftest import RAIZ, erro_gentil, ler_csv, licao_pronta, rodar, rodar_dentro
from leitor_de_paginas import navegador
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import projecoes
from nucleo.licoes import l06_projecoes as exp
from nucleo.licoes.l06_projecoes_pagina import pagina
from nucleo.modelos import familias, fontes
from nucleo.modelos.fontes import Modelo

LICAO = "06_projecoes.py"


@pytest.fixture
def sorteio():
    return np.random.default_rng(9)


def na_reta(*valores):
    return projecoes.distancias(np.array(valores, dtype=float)[:, None])


# --- as medidas ------------------------------------------------------------------------------


@pytest.mark.unit
def test_vizinhos_mantidos_a_mao():
    """Cinco pontos, k = 1. No espaço: 0 1 3 7 15; no desenho: 0 10 11 13 17.

    Vizinho verdadeiro de cada um: 1, 0, 1, 2, 3; no desenho: 1, 2, 1, 2, 3. Só o do ponto 1 mudou.
    """
    D, E = na_reta(0, 1, 3, 7, 15), na_reta(0, 10, 11, 13, 17)
    assert projecoes.sobreposicao(D, E, 1) == pytest.approx(0.8)
    assert projecoes.sobreposicao(D, D, 2) == 1
    assert projecoes.correlacao(D, 3 * D) == pytest.approx(1)


@pytest.mark.unit
def test_postos_com_repetidos(sorteio):
    X = sorteio.standard_normal((15, 6))
    X[4] = X[3]
    r = projecoes.postos(projecoes.distancias(X))
    # Mesmo com um gêmeo a distância zero, cada ponto é o posto 0 de si mesmo.
    assert (np.diag(r) == 0).all() and r[3, 4] == r[4, 3] == 1
    assert (np.sort(r, 1) == np.arange(15)).all()


@pytest.mark.unit
def test_pureza_a_mao_e_ao_acaso():
    D, rotulos = na_reta(0, 1, 2, 10, 11, 12), np.array([0, 0, 0, 1, 1, -1])
    # Vizinhos (k = 2): o grupo 0 só vê o 0 (3 × 1); no 1, cada um vê o outro e o sem grupo (1/2).
    assert projecoes.pureza(D, rotulos, 2) == pytest.approx((3 * 1 + 2 * 0.5) / 5)
    acaso = projecoes.pureza_ao_acaso(D, rotulos, 2, 4000, 0)
    # Esperado de um sorteio: (3·2/5 + 2·1/5)/5 dos outros cinco são do mesmo grupo.
    assert acaso.mean() == pytest.approx((3 * 2 / 5 + 2 * 1 / 5) / 5, abs=0.02)


@pytest.mark.unit
def test_variancia_explicada_contra_o_scikit_learn(sorteio):
    from sklearn.decomposition import PCA

    X = (sorteio.standard_normal((9000, 6)) * [5, 3, 1, 1, 0.5, 0.1] + 4).astype(np.float32)
    deles = PCA().fit(X.astype(np.float64)).explained_variance_ratio_
    assert projecoes.fracao_explicada(X) == pytest.approx(deles, abs=1e-6)


@pytest.mark.unit
def test_lda_decora_rotulos_sorteados_e_os_de_fora_desmentem(sorteio):
    X, rotulos = sorteio.standard_normal((90, 300)), sorteio.permutation(np.repeat([0, 1, 2], 30))
    treino = np.arange(90) < 60
    Y, dentro, fora = projecoes.separar_com_rotulos(X, rotulos, treino)
    assert Y.shape == (90, 2) and dentro == 1 and fora < 0.65  # acaso: 1/3


@pytest.mark.unit
def test_ruido_tem_aglomerados_no_desenho_e_nao_no_espaco(sorteio):
    X = sorteio.standard_normal((80, 50)).astype(np.float32)
    a = projecoes.aglomerados(X, projecoes.tsne(X, 5, 0), 8, 0)
    assert a.no_desenho > 0.25 and abs(a.no_espaco) < 0.05


# --- t-SNE e UMAP, nas versões que existem por aí ------------------------------------------------


@pytest.mark.unit
def test_tsne_repete_com_a_mesma_semente_e_com_inicio_pca_nao_depende_dela(sorteio):
    X = sorteio.standard_normal((30, 8)).astype(np.float32)
    assert np.array_equal(projecoes.tsne(X, 5, 1), projecoes.tsne(X, 5, 1))
    assert not np.allclose(projecoes.tsne(X, 5, 1), projecoes.tsne(X, 5, 2))
    assert np.array_equal(projecoes.tsne(X, 5, 1, "pca"), projecoes.tsne(X, 5, 2, "pca"))


@pytest.mark.unit
def test_umap_que_falta_ou_quebra_vira_um_motivo(monkeypatch):
    """Caso 81: o numba não serve neste Python, ou o UMAP não serve neste scikit-learn."""
    monkeypatch.setitem(sys.modules, "umap", None)
    assert "não está instalado" in projecoes.por_que_sem_umap()

    def quebrado(*_, **__):
        raise TypeError("check_array() got an unexpected keyword argument 'force_all_finite'\nmais")

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=quebrado))
    motivo = projecoes.por_que_sem_umap()
    assert "quebrou: TypeError" in motivo and "force_all_finite" in motivo and "\n" not in motivo
    assert projecoes.Corridas(np.eye(3), motivo).metodos == ["PCA", "t-SNE"]
    assert projecoes.Corridas(np.eye(3)).metodos == ["PCA", "t-SNE", "UMAP"]


@pytest.mark.unit
def test_cada_desenho_e_calculado_uma_vez(sorteio, monkeypatch):
    feitos = []
    monkeypatch.setattr(projecoes, "tsne", lambda X, *a: feitos.append(a) or X[:, :2])
    c = projecoes.Corridas(sorteio.standard_normal((20, 4)))
    for _ in range(2):
        c.fazer("t-SNE", 5, 1)
        c.fazer("t-SNE", 5, 1, "pca")
        c.fazer("PCA", 5, 1)
    assert len(feitos) == 2 and c.fazer("PCA", 9, 9) is c.fazer("PCA")


# --- o conjunto: grupos pequenos, um só, repetidos ------------------------------------------------


@pytest.fixture(scope="module")
def falso():
    """O tokenizador do GPT-2 com uma wte sorteada de 16 dimensões; " red" e " blue" são iguais."""
    tok = fontes.tokenizador_gpt2()
    wte = np.random.default_rng(1).standard_normal((tok.tamanho, 16)).astype(np.float32)
    wte[tok.linha("blue").id] = 3 * wte[tok.linha("red").id]
    wte[tok.linha("green").id] = 0
    ficha = familias.da_config({"model_type": "gpt2"})
    return Modelo("falso", wte, None, tok, {}, "", "amarrada", "", ficha)


@pytest.mark.unit
def test_conjunto_normal(falso):
    c = exp.montar(falso, exp.grupos_para(falso.tokenizador), 30, 2)
    assert c.n == len(set(c.ids.tolist())) and (c.rotulos == -1).sum() == 30
    tamanhos = np.linalg.norm(c.X, axis=1)
    assert tamanhos[c.ids != falso.tokenizador.linha("green").id] == pytest.approx(1, abs=1e-6)
    assert (
        c.nomes[0] == "' dog'" and c.grupo_de(0) == "animais" and c.grupo_de(c.n - 1) == "sorteados"
    )
    assert any("repetem o vetor" in a for a in c.avisos)  # red e blue têm a mesma direção


@pytest.mark.unit
def test_grupo_pequeno_repetido_em_pedacos_e_unico(falso):
    grupos = {
        "cores": ["red", "yellow", "white", "black", "red", "paralelepípedo"],
        "par": ["dog", "cat"],
        "de novo": ["red", "one", "two", "three"],
    }
    c = exp.montar(falso, grupos, 20, 2)
    juntos = " | ".join(c.avisos)
    assert c.grupos == ["cores", "de novo"] and "paralelepípedo" in juntos
    assert "“par” ficou com 2 palavra(s)" in juntos and "“red” já estava em “cores”" in juntos
    um = exp.montar(falso, {"cores": grupos["cores"]}, 20, 2)
    assert any("um grupo só" in a for a in um.avisos)
    corridas = projecoes.Corridas(um.X, "não há")
    grades = {"t-SNE": {(5, s): corridas.fazer("t-SNE", 5, s) for s in range(2)}}
    frases = exp.veredito(um, corridas, grades, 0)
    assert len(frases) == 4 and not any("grupo mais" in f.texto for f in frases)
    sem_grupo = exp.montar(falso, {"par": ["dog", "cat"]}, 20, 2)
    assert (
        sem_grupo.grupos == []
        and len(exp.veredito(sem_grupo, projecoes.Corridas(sem_grupo.X, "x"), {}, 0)) == 3
    )


@pytest.mark.unit
def test_grupos_do_menor_tamanho_ainda_tem_controle(falso):
    grupos = {
        "a": ["dog", "cat", "horse"],
        "b": ["one", "two", "three"],
        "c": ["France", "Spain", "Italy"],
    }
    c = exp.montar(falso, grupos, 6, 2)
    ctl = exp.trocar_rotulos(c, np.random.default_rng(2))
    assert np.bincount(ctl.rotulos[ctl.treino]).tolist() == [2, 2, 2] and len(ctl.rotulos) == 9


@pytest.mark.unit
def test_vetores_repetidos_passam_por_tudo(sorteio):
    """Seis vetores, cada um cinco vezes: nada vira NaN, e nenhuma biblioteca se recusa."""
    X = np.repeat(sorteio.standard_normal((6, 8)), 5, axis=0).astype(np.float32)
    D = projecoes.distancias(X)
    desenhos = [projecoes.pca(X), projecoes.tsne(X, 4, 0), projecoes.tsne(X, 4, 0, "pca")]
    if not projecoes.por_que_sem_umap():
        desenhos += [projecoes.umap(X, 4, 0, i) for i in ("pca", "random", "spectral")]
    for Y in desenhos:
        assert Y.shape == (30, 2) and np.isfinite(Y).all()
        assert 0 < projecoes.sobreposicao(D, projecoes.distancias(Y), 4) <= 1
    todos_iguais = np.ones((12, 8), dtype=np.float32)
    assert np.isfinite(projecoes.tsne(todos_iguais, 3, 0, "pca")).all()


@pytest.mark.unit
def test_pacote_que_falta_e_dito_pelo_nome_dele():
    from palco import erros

    erro = erros.falta_pacote("sklearn.manifold")
    assert "scikit-learn" in erro.o_que
    assert "bokeh" in erros.falta_pacote("bokeh").o_que


@pytest.mark.unit
def test_pontos_demais(falso):
    with pytest.raises(ErroDoUsuario, match="desenha até 400"):
        exp.montar(falso, exp.grupos_para(falso.tokenizador), 350, 2)


@pytest.mark.unit
def test_pontos_de_menos_e_grupo_desconhecido(falso):
    with pytest.raises(ErroDoUsuario, match="Só há 4 pontos"):
        exp.montar(falso, {"cores": ["red", "blue", "white", "black"]}, 0, 2)
    with pytest.raises(ErroDoUsuario, match="cors") as erro:
        exp.escolher_grupos({"cores": []}, ["cors"])
    assert "cores" in erro.value.por_que


@pytest.mark.unit
@pytest.mark.parametrize(
    "texto", ["", "[1, 2]", "{}", '{"a": "dog"}', '{"a": [1]}', '{"grupos": 3}', "\x00{", None]
)
def test_arquivo_de_grupos_estragado(tmp_path, texto):
    arquivo = tmp_path / "meus grupos.json"
    if texto is not None:
        arquivo.write_text(texto, encoding="utf-8")
    with pytest.raises(ErroDoUsuario) as erro:
        exp.grupos_do_arquivo(str(arquivo))
    assert '"animais"' in erro.value.o_que_fazer


@pytest.mark.unit
def test_arquivo_de_grupos_bom_mesmo_com_bom(tmp_path):
    arquivo = tmp_path / "g.json"
    arquivo.write_text('{"aves": ["eagle", "owl"]}', encoding="utf-8-sig")
    assert exp.grupos_do_arquivo(str(arquivo)) == {"aves": ["eagle", "owl"]}


@pytest.mark.unit
def test_botoes_e_ks_que_cabem():
    padrao = (5, 10, 20, 40)
    assert exp.escolher_botoes(None, padrao, 150) == [5, 10, 20, 40]
    assert exp.escolher_botoes(None, padrao, 40) == [5, 10]
    assert exp.escolher_botoes(None, padrao, 12) == [3]
    assert exp.escolher_botoes([19, 5, 19], padrao, 20) == [19, 5]
    with pytest.raises(ErroDoUsuario, match="20 não cabe em 20 pontos"):
        exp.escolher_botoes([5, 20], padrao, 20)
    assert exp.ks_que_cabem((5, 10, 20), 20) == [5] and exp.ks_que_cabem((20,), 12) == [5]


@pytest.mark.unit
@pytest.mark.parametrize("idioma", ["en", "pt"])
def test_os_grupos_sao_bem_feitos(idioma):
    grupos = json.loads((RAIZ / "data" / "grupos" / f"{idioma}.json").read_text("utf-8"))["grupos"]
    todas = [p for g in grupos.values() for p in g]
    assert len(todas) == len(set(todas)) and 100 <= len(todas) <= 150
    assert all(len(g) >= 10 for g in grupos.values())


@pytest.mark.unit
def test_veredito_aceita_so_o_que_vale_sempre(falso):
    """Com 3 grupos bem separados, juntos sobrevive; a frase falsa no espaço não sobrevive."""
    c = exp.montar(falso, dict(list(exp.grupos_para(falso.tokenizador).items())[:3]), 0, 2)
    X = c.X + 5 * np.eye(16, dtype=np.float32)[c.rotulos]
    c = exp.Conjunto(c.ids, c.nomes, c.rotulos, c.grupos, X)
    corridas = projecoes.Corridas(X, "x")
    grades = {"t-SNE": {(5, s): corridas.fazer("t-SNE", 5, s) for s in range(3)}}
    frases = {f.texto: f for f in exp.veredito(c, corridas, grades, 0)}
    juntos = frases["palavras do mesmo grupo caem perto"]
    assert juntos.no_espaco and juntos.sobrevive()
    # O desenho espelhado e girado muda a ordem do eixo: com sementes, essa frase não se sustenta.
    assert not frases["a ordem no eixo horizontal é sempre a mesma"].sobrevive()
    assert not exp.Frase("x", False, {"t-SNE": 1.0}).sobrevive()
    assert not exp.Frase("x", True, {"t-SNE": 1.0, "UMAP": 0.9}).sobrevive()


# --- para levar --------------------------------------------------------------------------------------


@pytest.mark.unit
def test_arquivos_do_projector(falso):
    c = exp.montar(falso, exp.grupos_para(falso.tokenizador), 10, 2)
    linhas = exp.vetores_tsv(c).decode("utf-8").splitlines()
    lido = np.array([[float(x) for x in linha.split("\t")] for linha in linhas])
    assert lido == pytest.approx(c.X, abs=1e-5)
    meta = [linha.split("\t") for linha in exp.metadados_tsv(c).decode("utf-8").splitlines()]
    assert meta[0] == ["token", "grupo", "id"] and len(meta) == c.n + 1
    assert all(len(m) == 3 for m in meta) and [int(m[2]) for m in meta[1:]] == c.ids.tolist()


@pytest.fixture(scope="module")
def html(falso):
    """A página de um conjunto pequeno, com um token que tenta virar código."""
    c = exp.montar(falso, {"cores": ["red", "yellow", "white", "black"]}, 12, 2)
    nomes = ["</script><b>x", *c.nomes[1:]]
    c = exp.Conjunto(c.ids, nomes, c.rotulos, c.grupos, c.X)
    vizinhos = [[("' perto'", 0.71)]] * c.n
    desenhos = {"PCA": projecoes.pca(c.X), "outro": c.X[:, :2].astype(float)}
    return pagina(c, desenhos, vizinhos, "falso")


@pytest.mark.unit
def test_pagina_sem_endereco_nenhum(html):
    texto = html.decode("utf-8")
    assert '<html lang="pt-BR">' in texto and "Pouse o mouse" in texto and "' yellow'" in texto
    # Sobram só nomes do W3C (SVG, MathML, XHTML): são nomes de linguagens, e ninguém os busca.
    for endereco in re.findall(r"(?:https?:)?//[\w-]+(?:\.[\w-]+)+[^\s\"'`<>]*", texto):
        assert endereco.startswith("http://www.w3.org/"), endereco
    assert not re.search(r"<script[^>]*\bsrc=|<link[^>]*\bhref=", texto)


@pytest.mark.unit
def test_pagina_abre_no_chromium_sem_erro_e_sem_rede(html, tmp_path):
    arquivo = tmp_path / "página interativa.html"
    arquivo.write_bytes(html)
    pedidos, recados = [], []
    with navegador() as chromium:
        aba = chromium.new_page(viewport={"width": 1300, "height": 700})
        aba.on("request", lambda r: pedidos.append(r.url))
        aba.on("console", lambda m: recados.append((m.type, m.text)))
        aba.on("pageerror", lambda e: recados.append(("error", str(e))))
        aba.goto(arquivo.as_uri())
        aba.wait_for_function(
            "window.Bokeh && Bokeh.documents.length === 1 && Bokeh.documents[0].is_idle"
        )
        # Um ponto do primeiro desenho, em pixels da tela.
        x, y = aba.evaluate("""() => {
            const plot = Bokeh.documents[0].roots()[0].children[1].children[0];
            const visto = Bokeh.index.find_one(plot), s = plot.renderers[0].data_source.data;
            const r = visto.el.getBoundingClientRect(), q = visto.frame;
            return [r.x + q.x_scale.compute(s.x0[1]), r.y + q.y_scale.compute(s.y0[1])];
        }""")
        aba.mouse.move(x - 40, y - 40)
        aba.mouse.move(x, y, steps=5)
        dica = aba.get_by_text("' perto' 0,71").first
        dica.wait_for(state="visible", timeout=10_000)
        assert aba.get_by_text("' yellow'").first.is_visible()
        chromium.close()
    assert pedidos == [arquivo.as_uri()], pedidos
    assert not [r for r in recados if r[0] in ("error", "warning")], recados


# --- a lição inteira ------------------------------------------------------------------------------------


@pytest.fixture
def completa(smollm2):
    # Duas perplexidades em vez de quatro: o mesmo caminho, com menos desenhos (bench/licoes.py roda tudo).
    poucas = ["--perplexidade", "5", "--perplexidade", "20"]
    return licao_pronta(LICAO, "--modelo", "smollm2", *poucas)


@pytest.mark.cli
@pytest.mark.smollm2
def test_licao_inteira(completa):
    feito, pasta = completa
    tela = feito.stdout + feito.stderr
    dados = json.loads((pasta / "resultado.json").read_text("utf-8"))
    assert dados["nao_conferem"] == [] and dados["conferencias"] >= 8
    for n in range(1, 9):
        assert f"\n{n} · " in tela
    assert not re.search(r"\bnan\b|\bNone\b|array\(|np\.float|Warning", tela)
    assert max(map(len, tela.splitlines())) <= 100
    variancia = {x["componentes"]: x for x in ler_csv(pasta, "1_variancia")}
    assert float(variancia["2"]["wte inteira"]) < 0.25
    [frase] = [x for x in ler_csv(pasta, "7_veredito") if "mesmo grupo" in x[next(iter(x))]]
    assert frase["veredito"] == "sobrevive"
    for nome in ("interativo.html", "vectors.tsv", "metadata.tsv", "2_desenhos.png", "4_tsne.png"):
        assert (pasta / nome).stat().st_size > 1000, nome
    assert (
        re.findall(r"https?://(?!www\.w3\.org/)\w", (pasta / "interativo.html").read_text("utf-8"))
        == []
    )


@pytest.mark.cli
@pytest.mark.smollm2
def test_no_smollm2_o_desenho_e_melhor_que_o_acaso_e_pior_que_o_espaco(completa):
    linhas = {(x["desenho"], x["k"]): x for x in ler_csv(completa[1], "3_distorcao")}
    for k in ("5", "10", "20"):
        acaso, tsne = linhas["pontos ao acaso", k], linhas["t-SNE", k]
        for medida in ("confiança", "continuidade", "vizinhos mantidos"):
            assert float(acaso[medida]) + 0.15 < float(tsne[medida]) < 1
    ruido = {(x["pontos"], x["desenho"]): x for x in ler_csv(completa[1], "6_ruido")}
    falso = ruido["ruído puro", "t-SNE"]
    assert float(falso["silhueta no desenho"]) > 0.25 > 0.05 > float(falso["a mesma, no espaço"])


@pytest.mark.cli
@pytest.mark.smollm2
def test_a_pagina_leva_os_vizinhos_verdadeiros(completa):
    _, pasta = completa
    modelo = fontes.abrir("smollm2")
    id_ = modelo.tokenizador.linha("dog").id
    cossenos = modelo.wte @ modelo.wte[id_] / np.linalg.norm(modelo.wte, axis=1)
    cossenos = cossenos / np.linalg.norm(modelo.wte[id_])
    perto = [i for i in np.argsort(-cossenos) if i != id_][:5]
    esperado = [f"'{modelo.tokenizador.texto(int(i))}' {cossenos[i]:.2f}" for i in perto]
    html = (pasta / "interativo.html").read_text("utf-8")
    assert "  ".join(esperado).replace(".", ",") in html


@pytest.mark.cli
@pytest.mark.smollm2
def test_a_multa_de_um_ponto_e_a_media_de_todos(completa):
    """No ponto que a lição mostra, a multa é o que o posto passa de k; e ninguém tem o mesmo posto."""
    linhas = ler_csv(completa[1], "3_um_ponto")
    postos = [int(x["no espaço"]) for x in linhas]
    assert [int(x["multa"]) for x in linhas] == [max(0, r - 5) for r in postos]
    assert len(set(postos)) == 5 and min(postos) >= 1
    contra = [x["o que"] for x in ler_csv(completa[1], "3_biblioteca")]
    for medida in ("confiança", "continuidade", "correlação global"):
        assert sum(x.startswith(medida) for x in contra) >= 3


@pytest.mark.cli
@pytest.mark.smollm2
def test_sem_umap_a_licao_segue_e_a_tabela_diz(tmp_path, smollm2):
    falso = tmp_path / "falsos"
    falso.mkdir()
    (falso / "umap.py").write_text("raise ImportError('sem numba aqui')\n", encoding="utf-8")
    saida = tmp_path / "saída"
    feito = rodar(
        LICAO, "--modelo", "smollm2", "--saida", str(saida), "--grupo", "cores", "--grupo", "meses",
        "--grupo", "números", "--sorteados", "0", "--sem-graficos", "--secao", "3", "--secao", "7",
        ambiente={"PYTHONPATH": str(falso)},
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    assert "UMAP: fica de fora" in feito.stdout and "requirements-opcionais.txt" in feito.stdout
    assert "Com 32 pontos só cabem as perplexidades [5, 10]" in feito.stdout
    desenhos = [x["desenho"] for x in ler_csv(saida, "3_distorcao")]
    assert any("sem numba aqui" in d for d in desenhos) and "t-SNE" in desenhos
    assert "UMAP" not in " ".join(ler_csv(saida, "7_veredito")[0])


@pytest.mark.cli
def test_com_menos_de_tres_grupos_a_secao_6_diz_o_que_falta(tmp_path):
    saida = tmp_path / "saída"
    feito = rodar(
        LICAO, "--modelo", "mini", "--saida", str(saida), "--grupo", "família", "--grupo", "corpo",
        "--sem-graficos", "--secao", "6",
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    assert "Com menos de 3 grupos não há o que trocar" in feito.stdout
    assert not (saida / "6_ruido.csv").exists()


@pytest.mark.cli
@pytest.mark.smollm2
def test_perplexidade_maior_que_os_pontos(tmp_path, smollm2):
    feito = rodar_dentro(
        LICAO, "--modelo", "smollm2", "--saida", str(tmp_path), "--perplexidade", "150"
    )
    erro_gentil(feito, "150 não cabe em 122 pontos", "--perplexidade de 2 a 121")
    assert not list(tmp_path.iterdir())
