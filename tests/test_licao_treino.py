"""02_treino e treinar_mini como quem está ao teclado: sem corpus, com enganos, com Ctrl-C."""

import json

import numpy as np
import pytest
import torch

from conftest import erro_gentil, licao_pronta, rodar, rodar_dentro
from manutencao import treinar_mini
from nucleo.base.erros import ErroDoUsuario
from nucleo.licoes import l02_treino as exp
from nucleo.treino import treinador as tr


@pytest.mark.cli
@pytest.mark.mini
@pytest.mark.longo
def test_sem_corpus_conta_a_historia_diz_o_que_falta_e_repete_as_tabelas(tmp_path):
    de_novo = tmp_path / "b"
    # O ato 1 treina de verdade, e é o que demora: uma vez basta (que o treino se repete bit a bit está em
    # test_treino.py). O ato 2, do mini pronto, roda duas.
    toda, inteira = licao_pronta("02_treino.py")
    parte = rodar("02_treino.py", "--secao", "2", "--saida", str(de_novo))
    for feito, secao in ((toda, False), (parte, True)):
        assert feito.returncode == 0, feito.stderr
        assert "Sem corpus" in feito.stdout
        assert "NÃO" not in feito.stdout  # todas as conferências conferem
        assert secao or "--corpus PASTA --secao 3" in feito.stdout
    # Duas execuções, as mesmas tabelas, byte a byte.
    tabelas = sorted(p.name for p in de_novo.glob("*.csv"))
    assert len(tabelas) >= 3 and len(list(inteira.glob("*.csv"))) >= 8
    for nome in tabelas:
        assert (inteira / nome).read_bytes() == (de_novo / nome).read_bytes(), nome
    medidos = json.loads((inteira / "resultado.json").read_text(encoding="utf-8"))["resultados"]
    a_mao = {r["id"].split(".")[0]: r["confere"] for r in medidos if "_a_mao." in r["id"]}
    assert a_mao == dict.fromkeys(("1_a_mao", "2_a_mao", "3_a_mao"), True)
    quem: dict[str, dict[int, float]] = {}
    for r in medidos:
        if r["id"].startswith("1_wpe.k"):
            quem.setdefault(r["modelo"], {})[int(r["id"][len("1_wpe.k") :])] = r["valor"]
    em_ordem, controle = quem["letras, em ordem"], quem["letras, embaralhadas"]
    # Medido: 0,66 contra 0,05 a 0,2, conforme a semente e a máquina (o treino aumenta o arredondamento).
    assert em_ordem[1] > 0.45 and em_ordem[1] > em_ordem[8]  # e cai com a distância
    assert abs(controle[1]) < 0.75 * em_ordem[1]
    assert quem["GPT-2 (medido à parte)"][1] == 0.9988  # data/gpt2_medido


@pytest.mark.cli
@pytest.mark.parametrize("conteudo", [None, b"", "São".encode("latin-1")])
def test_corpus_com_problema_e_um_erro_so_e_nada_fica_escrito(tmp_path, conteudo):
    pasta = tmp_path / "corpus"
    if conteudo is not None:
        pasta.mkdir()
        (pasta / "obra.txt").write_bytes(conteudo)
    feito = rodar_dentro("02_treino.py", "--corpus", str(pasta), "--saida", str(tmp_path / "s"))
    erro_gentil(feito, "corpus")
    assert not list((tmp_path / "s").glob("*"))


# ------------------------------------------------------------- os experimentos, em miniatura


@pytest.fixture(scope="module")
def material():
    sorteio = np.random.default_rng(0)
    silabas = ["ma", "ri", "to", "lu", "pe", "go", "na", "ve"]
    palavras = ["".join(sorteio.choice(silabas, 3)) for _ in range(60)]
    obras = [tr.Obra(f"o{i}", " ".join(sorteio.choice(palavras, 3000))) for i in range(2)]
    return exp.Material(*tr.separar(obras), vocabulario=320)


def corrida(material, semente, amarrado, caminhos=None):
    modelo = tr.novo_gpt2(320, 16, 1, 2, 16, semente=semente, amarrado=amarrado)
    receita = tr.Receita(48, 8, 16, aquecimento=5, semente=semente, taxa=1e-2)
    treino = tr.Treino(modelo, material.tokens, receita)
    curva = exp.acompanhar_validacao(treino, treino.passos(), material.tokens_de_fora, caminhos)
    return exp.Corrida(treino.modelo, curva)


@pytest.mark.unit
def test_comparar_amarrada_e_solta(material):
    caminhos = exp.Caminhos(material.tokens_de_fora, 16, 8)
    quais = ((1, True), (1, False), (2, True), (2, False))
    todas = [corrida(material, s, a, caminhos if (s, a) == (1, True) else None) for s, a in quais]
    disputa = exp.Disputa(dict(zip(quais, todas, strict=True)), material.frequentes)
    assert [c.curva[0][0] for c in todas] == [0] * 4
    assert todas[0].curva[0][1] == todas[1].curva[0][1]  # nascem iguais
    assert all(c.curva[-1][1] < c.curva[0][1] - 0.5 for c in todas)  # e aprendem
    fim = [c.curva[-1][1] for c in todas]
    assert disputa.diferencas == pytest.approx([fim[0] - fim[1], fim[2] - fim[3]])
    perdas = disputa.quadro_das_perdas().linhas
    assert perdas[1][1] - perdas[0][1] == 320 * 16
    assert disputa.semelhancas().shape == (2, 3)
    assert np.all(np.abs(disputa.semelhancas()) <= 1)
    assert caminhos.diferenca <= caminhos.limite < 1e-4  # 128 tokens · 1,2e-7 · números até 1
    assert [linha[0] for linha in caminhos.linhas] == disputa.passos
    lados = {linha[1]: linha[0] for linha in disputa.quadro_dos_argumentos(caminhos).linhas}
    ganhou = disputa.diferencas.mean() < 0
    assert lados["perda de validação, amarrada − solta"] == ("a favor" if ganhou else "contra")


@pytest.mark.unit
def test_treino_da_wpe_interrompido_ainda_da_o_ultimo_retrato(material):
    fita = tr.alfabeto(material.texto).codificar(material.texto)

    def ate(passo, treino):
        for p in treino.passos():
            yield p
            if p.passo == passo:
                return

    modelo = tr.novo_gpt2(64, 16, 1, 2, 40, semente=1)
    treino = tr.Treino(modelo, fita, tr.Receita(48, 4, 40, aquecimento=5))
    retratos = exp.acompanhar_wpe(treino, ate(11, treino))
    assert retratos[0].passo == 0 and retratos[0].perda is None
    assert retratos[-1].passo == 11
    atual = tr.cosseno_por_defasagem(modelo.transformer.wpe.weight.detach(), exp.DEFASAGENS)
    assert retratos[-1].cossenos == atual


@pytest.mark.unit
def test_ctrl_c_na_licao_para_o_treino_e_segue_e_o_segundo_sai(material):
    from rich.console import Console

    from aula import Aula

    class Teimoso(tr.Treino):
        def um_passo(self):
            if self.passo == 3:
                raise KeyboardInterrupt
            return super().um_passo()

    def treino():
        modelo = tr.novo_gpt2(320, 16, 1, 2, 16, semente=1)
        return Teimoso(modelo, material.tokens, tr.Receita(9, 4, 16, aquecimento=2))

    aula, ditos = object.__new__(Aula), []
    aula._erros, aula._interrompida, aula.diga = Console(quiet=True), False, ditos.append
    primeiro = treino()
    assert [p.passo for p in aula.treinar(primeiro, "t", parar_com_ctrl_c=True)] == [1, 2, 3]
    assert len(ditos) == 1 and "no passo 3 de 9" in ditos[0]
    assert all(p.isfinite().all() for p in primeiro.modelo.parameters())  # e dá para usar
    with pytest.raises(KeyboardInterrupt):
        list(aula.treinar(treino(), "t", parar_com_ctrl_c=True))


# ------------------------------------------------------------------------ treinar_mini


@pytest.fixture
def minusculo(monkeypatch, tmp_path):
    """O treinar_mini inteiro, com um modelo de brinquedo: (argumentos, pasta de trabalho)."""
    mudancas = {"VOCABULARIO": 300, "D": 16, "CAMADAS": 1, "CABECAS": 2, "POSICOES": 144}
    mudancas |= {"VALIDAR_A_CADA": 4, "JANELAS": 2, "FOTOS": (0, 2, 4)}
    for nome, valor in mudancas.items():
        monkeypatch.setattr(treinar_mini, nome, valor)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    sorteio = np.random.default_rng(0)
    for nome in ("a", "b"):
        linhas = ["uma frase com rei e rainha", "a mulher abriu os olhos", "noite de gato e pai"]
        texto = "\n".join(" ".join(sorteio.permutation(linha.split())) for linha in linhas * 300)
        (corpus / f"{nome}.txt").write_text(texto, encoding="utf-8")
    trabalho = tmp_path / "trabalho"
    return ["--corpus", str(corpus), "--trabalho", str(trabalho), "--passos", "10"], trabalho


@pytest.mark.unit
def test_ctrl_c_guarda_o_passo_diz_e_o_mesmo_comando_continua(minusculo, monkeypatch, capsys):
    argumentos, trabalho = minusculo
    original = tr.Treino.um_passo

    def interromper(self):
        if self.passo == 6:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(tr.Treino, "um_passo", interromper)
    assert treinar_mini.main(argumentos) == 130
    tela = capsys.readouterr().out
    assert "Interrompido no passo 6" in tela and "continua daqui" in tela
    assert torch.load(trabalho / "ultimo.pt", weights_only=False)["passo"] == 6
    assert not list(trabalho.glob("*.parcial"))
    # O retrato serve: dali se continua até o fim, e o fim é o mesmo de quem não parou.
    monkeypatch.setattr(tr.Treino, "um_passo", original)
    assert treinar_mini.main(argumentos) == 0
    assert "Retomando do passo 6" in capsys.readouterr().out
    retomado = torch.load(trabalho / "ultimo.pt", weights_only=False)
    sem_parar = [*argumentos[:3], str(trabalho.with_name("outro")), *argumentos[4:]]
    assert treinar_mini.main(sem_parar) == 0
    direto = torch.load(trabalho.with_name("outro") / "ultimo.pt", weights_only=False)
    assert retomado["passo"] == direto["passo"] == 10
    for nome, pesos in direto["modelo"].items():
        assert torch.equal(pesos, retomado["modelo"][nome]), nome


@pytest.mark.unit
def test_exportar_escreve_um_modelo_que_o_transformers_abre(minusculo, tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from nucleo.treino import mini

    argumentos, _ = minusculo
    destino = tmp_path / "pronto"
    assert treinar_mini.main(argumentos) == 0
    assert treinar_mini.main([*argumentos, "--exportar", str(destino)]) == 0
    modelo = AutoModelForCausalLM.from_pretrained(destino)
    assert modelo.dtype == torch.float16
    entrada, saida = modelo.get_input_embeddings().weight, modelo.get_output_embeddings().weight
    assert entrada.data_ptr() == saida.data_ptr() != 0
    tokenizer = AutoTokenizer.from_pretrained(destino)
    assert tokenizer.decode(tokenizer.encode("a rainha")) == "a rainha"
    medido = json.loads((destino / mini.RESULTADOS).read_text(encoding="utf-8"))
    fotos = mini.fotos(destino)
    assert [f["passo"] for f in fotos][:2] == [0, 2] and fotos[-1]["passo"] == medido["passo"]
    assert (destino / "LEIAME.md").read_text(encoding="utf-8") == mini.leiame(medido)
    assert str(tmp_path) not in (destino / "LEIAME.md").read_text(encoding="utf-8")


@pytest.mark.unit
def test_exportar_sem_treino_e_retomar_com_outra_agenda_sao_erros_gentis(minusculo):
    argumentos, _ = minusculo
    with pytest.raises(ErroDoUsuario, match="nenhum retrato"):
        treinar_mini.main([*argumentos, "--exportar", "nada"])
    assert treinar_mini.main(argumentos) == 0
    with pytest.raises(ErroDoUsuario, match="outra agenda"):
        treinar_mini.main([*argumentos[:-1], "7"])
