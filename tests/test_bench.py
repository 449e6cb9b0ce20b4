"""O bench: mede alternando, reprova o que passa do limite, e só compara contas iguais.

Os tempos não se testam (são da máquina); testa-se o que decide se um tempo serve.
"""

import csv
import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import COM_GENSIM, RAIZ

sys.path.insert(0, str(RAIZ / "bench"))

import comum
from hub_fixtures import fixture_casa, fixture_servidor  # noqa: F401
from nucleo.modelos import fontes

# Pelo caminho: nos testes, `import tudo` acharia lab/tudo.py.
_spec = spec_from_file_location("bench_tudo", RAIZ / "bench" / "tudo.py")
tudo = module_from_spec(_spec)
_spec.loader.exec_module(tudo)

pytestmark = pytest.mark.unit


# --- medir -------------------------------------------------------------------------------


def test_alternar_da_uma_volta_de_cada_e_nao_conta_a_primeira(monkeypatch):
    ordem, relogio = [], [0.0]
    monkeypatch.setattr(comum, "time", SimpleNamespace(perf_counter=lambda: relogio[0]))

    def que_custa(nome, custos):
        custos = iter(custos)

        def f():
            ordem.append(nome)
            relogio[0] += next(custos)

        return f

    a, b = comum.alternar({"a": que_custa("a", [9, 1, 5, 2]), "b": que_custa("b", [9, 3, 3, 3])}, 3)
    # Uma de cada por volta, e ninguém vem sempre depois da outra.
    voltas = ["".join(ordem[i : i + 2]) for i in range(0, len(ordem), 2)]
    assert len(voltas) == 4 and set(voltas) == {"ab", "ba"}
    assert a.segundos == [1, 5, 2] and b.segundos == [3, 3, 3]
    assert a.mediana == 2 and a.quartis == (1.5, 3.5)  # nem a média (2,67) nem o mínimo (1)


def test_processo_conta_tempo_e_pico_de_cada_um():
    codigo = "import sys, time; x = bytearray(int(sys.argv[1]) << 20); time.sleep(0.2)"
    # Este processo é grande; o pico do filho não pode ser o do pai, nem o de um irmão anterior.
    grande = bytearray(300 << 20)
    leve, pesado, de_novo = (comum.executar(["-c", codigo, n]) for n in ("1", "120", "1"))
    del grande
    assert min(leve.segundos, pesado.segundos) >= 0.2
    for x in (leve, de_novo):
        assert pesado.pico - x.pico == pytest.approx(119 << 20, abs=10 << 20)


def test_processo_que_falha_nao_vira_medida():
    with pytest.raises(RuntimeError, match=r"saiu com 3(.|\n)*deu ruim"):
        comum.executar(["-c", "print('deu ruim'); raise SystemExit(3)"])


# --- julgar ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("medido", "limite", "piso", "confere"),
    [
        (1.0, 1.0, False, True),
        (1.0001, 1.0, False, False),
        (0.2, 1.5, False, True),
        (50, 50, True, True),
        (49.9, 50, True, False),
        (1, 0, False, False),
        (0, 0, False, True),
        (float("nan"), 1.0, False, False),
        (float("nan"), 1.0, True, False),
    ],
)
def test_criterio_reprova_o_que_passa_do_limite(medido, limite, piso, confere):
    c = comum.Criterio("x", medido, limite, piso)
    assert c.confere is confere
    assert tudo.linha_do_criterio(c)[-1] == ("sim" if confere else "NÃO")
    # Na figura, só quem confere fica dentro do limite.
    a = comum.Assunto("x", "x", "x", criterios=[c])
    assert (tudo.fracoes([a])[1][0] <= 1) is confere


def test_codigo_de_saida_e_arquivos_seguem_o_aceite(tmp_path, monkeypatch, capsys):
    def mentira(limite):
        a = comum.Assunto("mentira", "Um assunto", "b")
        a.medidas = [comum.Medida("a", [3.0, 2.0]), comum.Medida("b", [1.0, 1.0], [2_000_000] * 2)]
        a.criterio("a / b", a.razao("a", "b"), limite)
        return SimpleNamespace(medir=lambda rapido: a)

    for limite, saida in ((2.5, 0), (2.4, 1)):
        achar = SimpleNamespace(import_module=lambda nome, x=limite: mentira(x))
        monkeypatch.setattr(tudo, "importlib", achar)
        monkeypatch.setattr(sys, "argv", ["tudo.py", "--so", "rope", "--saida", str(tmp_path)])
        assert tudo.main() == saida
        assert ("NÃO" in capsys.readouterr().out) == bool(saida)
        with (tmp_path / "criterios.csv").open(encoding="utf-8") as f:
            (linha,) = csv.DictReader(f)
        assert linha["medido"] == "2.5" and linha["confere"] == ("não" if saida else "sim")
    dados = json.loads((tmp_path / "bench.json").read_text("utf-8"))
    assert dados["assuntos"][0]["medidas"][0]["segundos"] == [3.0, 2.0]
    assert dados["maquina"]["versoes"]["torch"] and dados["maquina"]["threads"] >= 1
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("opcoes", "trecho"),
    [(["--so", "nada"], "'nada' não é uma opção"), (["--xyz"], "não conheço: --xyz")],
)
def test_opcao_errada_tem_erro_gentil(monkeypatch, capsys, opcoes, trecho):
    monkeypatch.setattr(sys, "argv", ["tudo.py", *opcoes])
    assert tudo.rodar_com_erros_gentis(tudo.main) == 2
    dito = capsys.readouterr().err
    assert trecho in dito and "bench/tudo.py --help" in dito and "usage" not in dito


# --- comparar contas iguais --------------------------------------------------------------


def test_buscas_de_vizinhos_dao_as_mesmas_listas(tabela_sorteada):
    pytest.importorskip("faiss", reason="o faiss-cpu vem com o requirements-bench.txt")
    import vizinhos

    tabela = np.delete(tabela_sorteada, (10, 21), axis=0)  # nula e repetida: sem ordem certa
    buscas, ids = vizinhos.preparar(tabela), list(range(0, 600, 7))
    certo = np.argsort(-_cossenos(tabela)[ids], axis=1, kind="stable")[:, 1 : vizinhos.K + 1]
    for nome, busca in buscas.items():
        assert np.array_equal(np.sort(busca(ids)), np.sort(certo)), nome
        assert set(busca([4])[0]) == set(np.argsort(-_cossenos(tabela)[4])[1 : vizinhos.K + 1])
    vizinhos.conferir(buscas, ids)
    with pytest.raises(AssertionError, match="torta"):
        vizinhos.conferir(buscas | {"torta": lambda x: buscas["faiss (plano)"](x)[:, ::2]}, ids)


def _cossenos(tabela):
    x = tabela.astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


@given(st.integers(1, 300), st.integers(0, 9), st.integers(1, 400), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_muitos_vizinhos_sao_os_de_ordenar_tudo(V, n, k, semente):
    import muitos_vizinhos as m

    sorteio = np.random.default_rng(semente)
    # Números inteiros e normas de mentira, potências de 2: as notas saem exatas, cheias de empates.
    tabela = sorteio.integers(-2, 3, (V, 3)).astype(np.float32)
    consultas = sorteio.integers(-2, 3, (n, 3)).astype(np.float32)
    normas = 2.0 ** sorteio.integers(0, 3, V).astype(np.float32)
    with pytest.MonkeyPatch.context() as troca:
        troca.setattr(m, "_LINHAS", 128)  # azulejos pequenos: mais de um, e o último pela metade
        troca.setattr(m, "_CONSULTAS", 4)
        ids, _ = m.muitos_vizinhos(tabela, consultas, k, normas)
    assert ids.shape == (n, min(k, V))
    for q, achados in zip(consultas, ids, strict=True):
        exatas = (tabela @ q) / normas
        assert achados.tolist() == np.lexsort((np.arange(V), -exatas))[:k].tolist()


@COM_GENSIM
def test_analogias_comparam_pergunta_a_pergunta():
    import analogias
    from nucleo.contas import vetores
    from nucleo.modelos import fontes, listas

    tok = fontes.tokenizador_gpt2()
    linhas = analogias.ler_linhas(2)
    assert sum(x.startswith(":") for x in linhas) == 14 and len(linhas) == 14 * 3
    # Uma tabela pequena de largura e do tamanho do vocabulário: os vereditos saem dos dois tipos.
    ids = listas.analogias_do_google(tok).ids
    tabela = np.random.default_rng(0).standard_normal((50257, 8), dtype=np.float32)
    primeira = ids[0]
    tabela[primeira[3]] = (
        tabela[primeira[1]] / np.linalg.norm(tabela[primeira[1]])
        - tabela[primeira[0]] / np.linalg.norm(tabela[primeira[0]])
        + tabela[primeira[2]] / np.linalg.norm(tabela[primeira[2]])
    )
    kv = analogias.para_o_gensim(tabela, tok)
    deles = analogias.vereditos_do_gensim(kv, linhas)
    escolhidas = np.array([q for q in ids if tuple(kv.index_to_key[i] for i in q) in deles])
    nossos = analogias.vereditos_nossos(kv, tabela, vetores.normas_das_linhas(tabela), escolhidas)
    assert nossos == deles and len(deles) >= 10
    assert set(deles.values()) == {True, False}


def test_funcoes_do_rope_fazem_a_mesma_conta():
    import torch

    import rope

    fs = rope.funcoes(torch.float32, (1, 2, 40, 16))
    rope.conferir(fs, 1e-4)
    with pytest.raises(AssertionError):
        rope.conferir(fs | {"nosso, metades": fs["nosso, intercalado"]}, 1e-4)


def test_treino_e_laco_comum_partem_da_mesma_perda():
    import treino

    fita = np.random.default_rng(1).integers(0, 2048, 2000, dtype=np.int32)
    meu, deles = treino.nosso(fita, lote=2), treino.laco_comum(fita, lote=2)
    # Um modelo recém-sorteado chuta todos os tokens por igual: ln V, nos dois.
    for perda in (meu.um_passo().perda, deles()):
        assert perda == pytest.approx(np.log(2048), abs=0.1)


# --- arquivos ----------------------------------------------------------------------------


def test_checkpoint_esparso_ocupa_so_as_tabelas(tmp_path, monkeypatch):
    import checkpoint
    from nucleo.modelos import fontes, tensores

    monkeypatch.setattr(checkpoint, "PASTA", tmp_path)
    casa, arquivo = checkpoint.so_tabelas("gpt2")
    todos = tensores.ler_cabecalho(arquivo)
    assert arquivo.stat().st_size > 540e6 and len(todos) == 160
    assert arquivo.stat().st_blocks * 512 < 165e6  # wte + wpe são 157,5 MB
    monkeypatch.setenv("LAB_CACHE", str(casa))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(fontes.hub, "no_cache", lambda *_: None)
    m = fontes.abrir("gpt2-xl")
    assert m.wte.shape == (50257, 768) and not m.tem_completo and m.wte.std() > 0.1


@pytest.mark.skipif(sys.platform != "linux", reason="mincore e fadvise são do Linux")
def test_bytes_na_memoria_contam_o_que_se_leu(tmp_path):
    import crescimento

    arquivo = tmp_path / "x"
    arquivo.write_bytes(b"x" * (32 << 20))
    crescimento.esquecer(arquivo)
    if crescimento.na_memoria(arquivo):
        pytest.skip("este sistema de arquivos não esquece (tmpfs?)")
    with arquivo.open("rb") as f:
        f.seek(16 << 20)
        f.read(4 << 20)
    assert 4 << 20 <= crescimento.na_memoria(arquivo) <= 6 << 20  # e o que leu adiante


@pytest.mark.skipif(sys.platform != "linux", reason="mincore e fadvise são do Linux")
def test_ler_um_tensor_nao_traz_os_vizinhos_dele(tmp_path):
    """O sistema lê adiante, até uns 8 MB: o que vem depois da tabela são blocos que ninguém pediu."""
    import crescimento
    import gpt2_plantado as plantado
    from nucleo.modelos import tensores

    formas = {f"bloco.{i}": (1024, 1024) for i in range(16)}  # 4 MB cada, e o arquivo, 64 MB
    arquivo = tmp_path / "model.safetensors"
    # Fora do alinhamento, como no GPT-2 do hub: a tabela é copiada, e não mapeada.
    bruto = len(plantado.cabecalho(formas)[0]) - 8
    plantado.gravar(arquivo, formas, {}, bruto + (3 - bruto) % 4)
    crescimento.esquecer(arquivo)
    if crescimento.na_memoria(arquivo):
        pytest.skip("este sistema de arquivos não esquece (tmpfs?)")
    t = tensores.ler_cabecalho(arquivo)["bloco.7"]
    assert t.inicio % 4
    tensores.ler(t)
    # Duas pontas em páginas inteiras, e o cabeçalho; um sistema pode juntar páginas de 64 KB.
    assert 4 << 20 <= crescimento.na_memoria(arquivo) <= (4 << 20) + (256 << 10)


@pytest.mark.hub
def test_tabela_dos_quatro_tamanhos_le_menos_de_1_mb(servidor):
    import hub

    inteiros = hub.publicar(servidor)
    assert inteiros["gpt2-xl"] > 6.4e9
    totais = hub.totais_nos_cabecalhos()
    assert list(totais.values()) == [124_439_808, 354_823_168, 774_030_080, 1_557_611_200]
    # Tudo o que um modelo pede na primeira vez está lá: o small quer também a configuração.
    for nome in inteiros:
        for arquivo in ("config.json", "model.safetensors"):
            assert (fontes.GPT2[nome], arquivo) in servidor._arquivos
    # Quatro cabeçalhos de verdade: menos que isso seria não ter perguntado ao hub.
    assert 4 * 14_000 < servidor.bytes_enviados() < 1e6


@pytest.mark.cli
def test_um_assunto_do_comeco_ao_fim(tmp_path):
    feito = subprocess.run(
        [sys.executable, "bench/tudo.py", "--rapido", "--so", "rope", "--saida", str(tmp_path)],
        cwd=RAIZ, capture_output=True, encoding="utf-8", timeout=200,
    )  # fmt: skip
    # 1 é um limite que não conferiu numa máquina ocupada; o que não pode é quebrar.
    assert feito.returncode in (0, 1), feito.stderr[-2000:]
    assert "Traceback" not in feito.stderr and "O aceite" in feito.stdout
    dados = json.loads((tmp_path / "bench.json").read_text("utf-8"))
    certos = all(c["confere"] for c in dados["assuntos"][0]["criterios"])
    assert feito.returncode == (0 if certos else 1)


@pytest.mark.unit
@pytest.mark.skipif(sys.platform != "linux", reason="a soma da árvore lê /proc")
def test_pico_soma_o_filho_que_esta_vivo_junto():
    """Dividir o trabalho em dois processos não pode esconder memória do bench."""
    cheio = "x = bytearray({} << 20); import time; time.sleep(0.3)"
    filho = cheio.format(90)
    pai = f"import subprocess, sys; y = bytearray(60 << 20); subprocess.run([sys.executable, '-c', {filho!r}])"
    sozinho, juntos = comum.executar(["-c", cheio.format(0)]), comum.executar(["-c", pai])
    # Dois interpretadores (um deles já está em `sozinho`) e os 150 MB que os dois enchem.
    assert juntos.pico - 2 * sozinho.pico == pytest.approx(150 << 20, abs=10 << 20)


# --- o assunto das máquinas --------------------------------------------------------------


def _conferida(id_, valor, tolerancia, esperado=0.0):
    confere = abs(valor - esperado) <= tolerancia
    campos = {"id": id_, "o_que": f"o de {id_}", "valor": valor, "esperado": esperado}
    return campos | {"tolerancia": tolerancia, "confere": confere}


def _lidas(um, outro, veredito="confere"):
    """O que duas máquinas gravaram: uma lição com as conferências `um` e `outro`, e a lição 99."""
    lidos = {("A", "mini", "02_x", ""): um, ("B", "mini", "02_x", ""): outro}
    lidos = {quem: {"resultados": rs} for quem, rs in lidos.items()}
    for maquina, v in (("A", "confere"), ("B", veredito)):
        achado = {"id": "rainha", "valor": 1, "veredito": v}
        lidos[maquina, "mini", "99_conferir", ""] = {"resultados": [achado]}
    return lidos


@pytest.mark.parametrize(
    ("um", "outro", "veredito", "reprova"),
    [
        (4e-7, 5e-7, "confere", []),  # metade justa ainda passa
        (1e-9, 5.1e-7, "confere", [1]),  # pior de B, por pouco
        (1e-9, -6e-7, "confere", [1]),  # para o outro lado é a mesma coisa
        (1e-9, 1.2e-6, "confere", [0, 1]),
        (2e-9, 3e-9, "não confere", [2]),
        (2e-9, 3e-9, "não medido aqui", [2]),
    ],
)
def test_maquinas_reprova_tolerancia_gasta_e_veredito_que_muda(um, outro, veredito, reprova):
    import maquinas

    a = comum.Assunto("maquinas", "x", "A")
    # A exata não tem fração; a de esperado 2 gasta pouco, e não pode esconder a outra.
    fixas = [_conferida("exata", 0.0, 0.0), _conferida("dois", 2.0 + 1e-9, 1e-6, 2.0)]
    lidos = _lidas(
        [_conferida("c", um, 1e-6), *fixas], [_conferida("c", outro, 1e-6), *fixas], veredito
    )
    maquinas.julgar(a, lidos)
    assert [i for i, c in enumerate(a.criterios) if not c.confere] == reprova
    colunas, linhas = a.tabelas["conferencias"]
    pior = dict(zip(colunas, linhas[0], strict=True))
    assert (pior["id"], pior["em"], pior["vezes"]) == ("c", "B", 2)
    assert pior["fracao"] == pytest.approx(max(abs(um), abs(outro)) / 1e-6)
    assert len(linhas) == 2  # a exata fica fora


def test_maquinas_uma_exata_que_falha_e_um_nan_nao_passam():
    import maquinas

    for torta in (
        _conferida("c", 1.0, 0.0),
        _conferida("c", 0.0, 1e-6) | {"valor": None, "confere": False},
    ):
        a = comum.Assunto("maquinas", "x", "A")
        maquinas.julgar(
            a, _lidas([_conferida("d", 0.0, 1e-6), torta], [_conferida("d", 0.0, 1e-6)])
        )
        assert not a.criterios[0].confere


def test_maquinas_uma_vez_ruim_em_dez_aparece():
    import maquinas

    lidos = _lidas([_conferida("c", 0.0, 1e-6)], [_conferida("c", 0.0, 1e-6)])
    for n in range(10):
        medida = _conferida("c", 9e-7 if n == 6 else 0.0, 1e-6)
        lidos["A", "mini", "02_x", f"vez {n}"] = {"resultados": [medida]}
    a = comum.Assunto("maquinas", "x", "A")
    maquinas.julgar(a, lidos)
    assert a.criterios[1].medido == pytest.approx(0.9) and not a.criterios[1].confere
    assert a.tabelas["conferencias"][1][0][-1] == 12


def test_maquinas_so_roda_se_for_pedido(monkeypatch):
    # Um bench inteiro não leva 15 minutos a mais; e a opção existe.
    assert "maquinas" not in tudo.ASSUNTOS and "maquinas" in tudo.SO_PEDIDOS
    assert (RAIZ / "bench" / "maquinas.py").is_file()
