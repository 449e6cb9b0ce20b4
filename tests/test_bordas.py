"""Bordas achadas por quem tentou quebrar a lição: cada uma é testada na sua espécie inteira."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import LAB, RAIZ, erro_gentil, rodar, rodar_dentro
from nucleo.base import caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import arquitetura
from nucleo.modelos import fontes, gpt2_medido, smollm2, tokens
from nucleo.modelos.tamanhos import TAMANHOS
from test_modelos import montar, salvar, tokenizador_em

LICAO = "02_embeddings.py"


# --- a tela --------------------------------------------------------------------------------

CELULAS = st.one_of(
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.3f}"),
    st.text(st.characters(categories=("L", "N", "P")), max_size=24),
    st.just("' princess'"),
    st.just("recusamos a palavra e mostramos os pedaços"),
)


@pytest.mark.unit
@given(st.integers(20, 130), st.integers(1, 7), st.integers(0, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_nenhuma_tabela_passa_da_tela_nem_perde_uma_letra(tela, colunas, linhas, dados):
    """Em qualquer largura, cabe (como tabela ou como ficha) e mostra cada célula inteira."""
    from palco.tela import larguras

    nomes = [f"coluna {i}" for i in range(colunas)]
    corpo = [[dados.draw(CELULAS) for _ in nomes] for _ in range(linhas)]
    numericas = [
        bool(re.fullmatch(r"-?[\d.]+", "".join(r[i] for r in corpo) or "x")) for i in range(colunas)
    ]
    larguras = larguras(nomes, corpo, numericas, tela)
    if larguras is None:
        return  # vira ficha
    assert sum(larguras) + 2 * colunas <= tela
    for i, largura in enumerate(larguras):
        for celula in (r[i] for r in corpo):
            inteira = numericas[i] or len(celula) <= 16
            assert largura >= (len(celula) if inteira else max(map(len, celula.split()), default=0))


@pytest.mark.unit
@pytest.mark.parametrize("tela", [20, 40, 56, 61, 68, 80, 85, 92, 100, 119])
def test_tabela_de_verdade_em_cada_largura(tela, monkeypatch, tmp_path, capsys):
    """A tabela desenhada pelo rich, e não só a conta: nada cortado, nada além da tela."""
    import aula
    from nucleo.licoes import l02_embeddings as exp

    monkeypatch.setenv("COLUMNS", str(tela))
    monkeypatch.setattr(sys, "argv", ["x", "--saida", str(tmp_path), "--sem-graficos"])
    a = aula.Aula("x", "Título.", {1: "um"}, usa_modelo=False)
    sys.excepthook = sys.__excepthook__
    quadro, _ = exp.tamanhos({n: arquitetura.contar(TAMANHOS[n]) for n in TAMANHOS})
    capsys.readouterr()
    a.quadro("t", quadro)
    visto = capsys.readouterr().out
    for valor in ("1.557.611.200", "80.411.200", "328,2", "313,0", "gpt2-medium"):
        assert re.search(rf"(?<![\d.]){re.escape(valor)}(?!\d)", visto), (tela, valor)
    assert max(map(len, visto.splitlines())) <= max(tela, 45)  # a ficha tem a sua largura mínima


@pytest.mark.unit
def test_tabela_sem_linhas(monkeypatch, tmp_path, capsys):
    import aula

    monkeypatch.setattr(sys, "argv", ["x", "--saida", str(tmp_path)])
    a = aula.Aula("x", "Título.", {1: "um"}, usa_modelo=False)
    sys.excepthook = sys.__excepthook__
    a.tabela("vazia", "Ninguém", {"palavra": str, "cosseno": str}, [])
    assert "cosseno" in capsys.readouterr().out


@pytest.mark.parametrize("colunas", ["0", "1", "-5", "abc", "100000"])
def test_largura_absurda_ainda_mostra_alguma_coisa(colunas, tmp_path):
    opcoes = ["--modelo", "nenhum", "--saida", str(tmp_path)]
    feito = rodar_dentro(LICAO, *opcoes, ambiente={"COLUMNS": colunas})
    erro_gentil(feito, "nenhum")
    assert "embeddings" in feito.stdout.lower().replace("\n", "")


@pytest.mark.cli
@pytest.mark.skipif(os.name == "nt", reason="redirecionamentos do shell do Unix")
@pytest.mark.parametrize(
    "script", [f"{LICAO} --modelo mini --secao 1", "00_preparar.py --so-conferir"]
)
@pytest.mark.parametrize(
    ("mais", "desvio", "codigo"),
    [("", ">&-", 0), ("", "> /dev/full", 2), ("--nada", "2>&-", 2), ("--nada", ">&-", 2)],
)  # fmt: skip
def test_tela_fechada_ou_cheia(script, mais, desvio, codigo, tmp_path):
    """Sem tela, ou com ela num disco cheio: nunca um traceback."""
    comando = f'"{sys.executable}" "{LAB}"/{script} {mais} {desvio}'
    env = os.environ | {"LAB_SAIDAS": str(tmp_path)}
    feito = subprocess.run(["sh", "-c", comando], capture_output=True, encoding="utf-8", env=env)
    assert "Traceback" not in feito.stderr
    # Numa máquina em que falta algo, a preparação sai com 1.
    assert feito.returncode in {codigo, 1 if "preparar" in script else codigo}


# --- as saídas -----------------------------------------------------------------------------


@pytest.mark.parametrize("pasta", [".", str(RAIZ)])
def test_saida_na_raiz_do_repositorio_e_recusada(pasta, monkeypatch):
    monkeypatch.chdir(RAIZ)
    erro_gentil(rodar_dentro(LICAO, "--saida", pasta), "--saida PASTA")
    assert not {"relatorio.md", "resultado.json"} & {p.name for p in RAIZ.iterdir()}


def test_uma_secao_so_nao_apaga_o_relatorio_inteiro(tmp_path, monkeypatch):
    """Sem --saida, as seções avulsas vão para parcial/."""
    monkeypatch.setattr(caminhos, "SAIDAS", tmp_path)
    inteiro = tmp_path / "02_embeddings"
    inteiro.mkdir(parents=True)
    (inteiro / "relatorio.md").write_text("inteiro", "utf-8")
    feito = rodar_dentro(LICAO, "--secao", "1", "--modelo", "mini")
    assert feito.returncode == 0, feito.stderr
    assert (inteiro / "relatorio.md").read_text("utf-8") == "inteiro"
    assert "## 1 ·" in (inteiro / "parcial" / "relatorio.md").read_text("utf-8")
    assert "o relatório completo continua" in feito.stdout
    # Sem um relatório inteiro, a tela não promete que ele está lá.
    (inteiro / "relatorio.md").unlink()
    feito = rodar_dentro(LICAO, "--secao", "3", "--modelo", "mini", "--sem-graficos")
    assert "continua" not in feito.stdout
    assert "a lição inteira, sem --secao, grava em" in feito.stdout
    assert "figura" not in feito.stdout.splitlines()[-2]


@pytest.mark.parametrize("nome", ["s[/x]", "ação[bold]y ~"])
def test_nome_esquisito_de_pasta_aparece_como_e(nome, tmp_path):
    feito = rodar_dentro(LICAO, "--modelo", "mini", "--secao", "1", "--saida", str(tmp_path / nome))
    assert feito.returncode == 0 and "Traceback" not in feito.stderr
    assert nome in feito.stdout.replace("\n", "") or nome.split()[0] in feito.stdout


# --- palavras ------------------------------------------------------------------------------


@pytest.mark.unit
@pytest.mark.parametrize(
    "palavra", ["k\udcff", "\ud800", "a" * 20_000, "🤗🤗", "a\nb", "[bold]", "**x**", "|"]
)
def test_palavras_absurdas_tem_uma_mensagem_curta(palavra):
    gpt2 = fontes.tokenizador_gpt2()
    try:
        forma = gpt2.linha(palavra)
        assert isinstance(forma.id, int)
    except ErroDoUsuario as erro:
        assert len(str(erro)) < 1500
        str(erro).encode("utf-8")  # nada de meio-caractere que a tela não escreve


@pytest.mark.smollm2
@given(st.text(st.sampled_from("ab  \n\tçé."), max_size=30))
@settings(max_examples=100, deadline=None)
def test_os_pedacos_somados_dao_o_texto(smollm2, texto):
    """Os tokens de espaços (ĠĠ, ĠĠĠ…) mostram os espaços que têm."""
    tok = smollm2.tokenizador
    assert "".join(p for p in tok.pedacos(texto)) == tokens.normalizar(texto) or "�" in "".join(
        tok.pedacos(texto)
    )


@pytest.mark.smollm2
def test_tokens_so_de_espacos_sao_diferentes(smollm2):
    tok = smollm2.tokenizador
    assert tok.pedacos("a    b") == ["a", "   ", " b"]


@pytest.mark.unit
def test_a_dica_tenta_a_mesma_palavra_com_maiuscula():
    gpt2 = fontes.tokenizador_gpt2()
    with pytest.raises(ErroDoUsuario, match="--palavra Lisbon$"):
        gpt2.linha("lisbon")


# --- modelos -------------------------------------------------------------------------------


@pytest.mark.cli
def test_modelo_minusculo_roda_a_licao_inteira(tmp_path):
    """Uma posição só, vocabulário sem nenhuma palavra das listas, --top maior que ele."""
    pasta = salvar(montar("gpt2", n_positions=1), tmp_path / "custo_$\\frac$ [x]")
    feito = rodar(LICAO, "--modelo", str(pasta), "--top", "100", "--saida", str(tmp_path / "s"))
    assert feito.returncode == 0, feito.stderr[-3000:]
    assert (tmp_path / "s" / "8_pecas.png").is_file()


@pytest.mark.unit
def test_pasta_chamada_gpt2_nao_e_o_gpt2(tmp_path):
    modelo = fontes.de_pasta(salvar(montar("gpt2"), tmp_path / "gpt2"))
    assert modelo.nome == "gpt2" and not gpt2_medido.parece_gpt2_small(modelo)
    llama = fontes.de_pasta(salvar(montar("llama"), tmp_path / "outra" / "gpt2"))
    assert not gpt2_medido.parece_gpt2_small(llama)


@pytest.mark.unit
@pytest.mark.parametrize("mudanca", [{"n_head": 0}, {"n_layer": 9}, {"n_embd": "x"}])
def test_config_absurdo_so_estraga_o_modelo_inteiro(mudanca, tmp_path):
    pasta = salvar(montar("gpt2"), tmp_path / "m")
    config = json.loads((pasta / "config.json").read_text("utf-8")) | mudanca
    (pasta / "config.json").write_text(json.dumps(config), "utf-8")
    modelo = fontes.de_pasta(pasta)
    with pytest.raises(ErroDoUsuario, match="o modelo inteiro não"):
        modelo.completo()


@pytest.mark.unit
@pytest.mark.parametrize("conteudo", ["pasta", "ciclo"])
def test_config_que_nem_se_le(conteudo, tmp_path):
    pasta = salvar(montar("gpt2"), tmp_path / "m")
    (pasta / "config.json").unlink()
    if conteudo == "pasta":
        (pasta / "config.json").mkdir()
    else:
        try:
            (pasta / "config.json").symlink_to(pasta / "config.json")
        except OSError:
            pytest.skip("este sistema não deixa criar atalhos")
    with pytest.raises(ErroDoUsuario):
        fontes.de_pasta(pasta)


@pytest.mark.parametrize("valor", ["", "bobagem"])
def test_lab_modelo_do_ambiente(valor, tmp_path):
    ambiente = {"LAB_MODELO": valor}
    feito = rodar_dentro(LICAO, "--secao", "1", "--saida", str(tmp_path), ambiente=ambiente)
    if valor:
        erro_gentil(feito, "bobagem")
    else:
        assert feito.returncode == 0, feito.stderr


@pytest.mark.unit
@pytest.mark.parametrize("cache", ["~ninguem_com_este_nome/x", "/" + "x" * 300])
def test_cache_impossivel_nao_derruba_a_escolha(cache, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", cache)
    assert smollm2.convertido() is None
    assert isinstance(fontes.so_tabelas("gpt2-xl").name, str)


@pytest.mark.unit
@pytest.mark.parametrize("estrago", ["cortado", "sem pesos", "sem config"])
def test_smollm2_estragado_conta_como_nao_convertido(estrago, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    pasta = salvar(montar("llama"), tmp_path / "smollm2")
    tokenizador_em(pasta)
    assert smollm2.convertido() == pasta
    alvo = {"sem pesos": "model.safetensors", "sem config": "config.json"}
    if estrago == "cortado":
        with (pasta / "model.safetensors").open("r+b") as f:
            f.truncate(2000)
    else:
        (pasta / alvo[estrago]).unlink()
    assert smollm2.convertido() is None


@pytest.mark.unit
def test_conversao_morta_e_varrida(tmp_path, monkeypatch):
    monkeypatch.setattr(smollm2, "achar_gguf", lambda: tmp_path / "x.gguf")
    monkeypatch.setattr(
        smollm2, "_converter_em", lambda *_: (_ for _ in ()).throw(OSError(28, "cheio"))
    )
    (tmp_path / ".smollm2.123.parcial").mkdir()
    with pytest.raises(ErroDoUsuario, match="LAB_CACHE"):
        smollm2.converter(destino=tmp_path / "smollm2")
    assert not list(tmp_path.glob(".smollm2*"))


@pytest.mark.unit
def test_comando_sugerido_usa_o_python_de_agora(monkeypatch):
    from palco import erros

    monkeypatch.setattr(sys, "executable", str(RAIZ / ".venv" / "bin" / "python"))
    assert (
        erros.com_este_python("rode: python lab/x.py")
        == f"rode: {os.path.join('.venv', 'bin', 'python')} lab/x.py"
    )
    # Um ambiente que quem o ligou chama de python; o Python do sistema; e o lançador do Windows.
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    monkeypatch.setattr(sys, "prefix", "/um/ambiente")
    assert erros.com_este_python("python -m pip install x") == "python -m pip install x"
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert erros.com_este_python("python -m pip install x") == "python3 -m pip install x"
    monkeypatch.setattr(sys, "platform", "win32")
    assert erros.com_este_python("a python lab/b_1.py --x y/z") == r"a py lab\b_1.py --x y/z"
    assert erros.com_este_python("o python do lab") == "o python do lab"


@pytest.mark.unit
def test_niveis_do_acaso_sao_medidos(mini):
    from nucleo.licoes import l02_embeddings as exp
    from nucleo.modelos import listas

    palavras = listas.palavras_para(mini.tokenizador)
    sorteados, comuns = exp.niveis(mini, exp.normas(mini), palavras, 5000, 1)
    ids = sorted(set(palavras.linha.values()))
    unidades = mini.wte[ids] / np.linalg.norm(mini.wte[ids], axis=1, keepdims=True)
    c = unidades @ unidades.T
    assert comuns == pytest.approx(c[np.triu_indices(len(ids), 1)].mean(), abs=1e-5)
    assert sorteados.shape == (5000,)


@pytest.mark.unit
def test_palavra_desconhecida_nao_vira_a_linha_do_desconhecido(tmp_path):
    """Num WordPiece ou WordLevel, toda palavra nova cai no mesmo [UNK]: não é a linha dela."""
    tokenizador_em(tmp_path)
    tok = tokens.Tokenizador.de_pasta(tmp_path, "brinquedo")
    for i in (7, 0):  # p0 é o próprio desconhecido: pedido pelo nome, é a linha dele
        assert tok.procurar(f"p{i}", com_espaco=False).id == i
    assert tok.procurar("king", com_espaco=False) is None
    with pytest.raises(ErroDoUsuario, match="não conhece 'king'"):
        tok.linha("king", com_espaco=False)


@pytest.mark.unit
def test_eixo_logaritmico_sem_formulas_na_tela():
    """Com a linguagem de fórmulas desligada, as marcas das potências são texto comum."""
    from nucleo.base import graficos

    x = np.array([1e-6, 1e-2, 1.0, 1e3, 1e6])
    figura = graficos.curvas({"custo $\\frac$": (x, x)}, "t $", "x", "y")
    figura.axes[0].set(xscale="log", yscale="log")
    graficos.png(figura)
    for reta in (figura.axes[0].xaxis, figura.axes[0].yaxis):
        textos = [t.get_text() for t in reta.get_ticklabels(which="both")]
        assert not [t for t in textos if "$" in t or "\\" in t], textos
        # Quais potências a marcar muda de uma matplotlib para outra.
        assert [t for t in textos if re.fullmatch("10⁻[¹²³⁴-⁹]", t)], textos
    assert graficos._potencia(1000) == "1.000" and graficos._potencia(2.5) == "2,5"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("medido", "codigo", "frase"),
    [(0.5, 0, ""), (0.75, 1, "Medido 7,5e-01, esperado 5,0e-01"), (float("nan"), 1, "NaN")],
)
def test_um_nao_diz_a_causa_e_sai_com_1_com_tudo_gravado(
    medido, codigo, frase, monkeypatch, tmp_path, capsys
):
    import aula
    from nucleo.base.caderno import Conferencia

    monkeypatch.setattr(sys, "argv", ["x", "--saida", str(tmp_path / "s"), "--sem-graficos"])
    a, depois = aula.Aula("x", "Título.", {1: "um"}, usa_modelo=False), []
    sys.excepthook = sys.__excepthook__
    a.secao(1)
    a.conferir("c", "Uma conta", [Conferencia("a medida", medido, 0.5, 0.1)])
    a.diga("")  # uma frase vazia não deixa linha em branco
    a.repare("")
    saiu = 0
    try:
        a.terminar(lambda: depois.append((tmp_path / "s" / "resultado.json").is_file()))
    except SystemExit as fim:
        saiu = fim.code
    assert saiu == codigo and depois == [True]
    visto = capsys.readouterr().out
    relatorio = (tmp_path / "s" / "relatorio.md").read_text("utf-8")
    for texto in (visto, relatorio):
        assert ("Não confere" in texto) == bool(frase) and frase in " ".join(texto.split())
    assert "Repare" not in visto
