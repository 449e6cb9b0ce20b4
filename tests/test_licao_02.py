"""A lição 02 inteira, como processo: o que aparece, o que fica gravado, e em que consoles."""

import json
import re
import subprocess
import sys

import pytest

from conftest import APERTADO, DOIS_GB, LAB, ler_csv, licao_pronta, rodar
from test_ambientes import conferir_nomes

pytestmark = [pytest.mark.cli, pytest.mark.smollm2]
LICAO = "02_embeddings.py"


@pytest.fixture
def completa(smollm2):
    """Uma execução com tudo; as verificações abaixo só a leem."""
    return licao_pronta(LICAO, antes=APERTADO)  # um núcleo e 2 GB de memória


@pytest.mark.skipif(sys.platform != "linux", reason="o pico em KB é do Linux")
def test_o_pico_de_memoria_fica_abaixo_de_dois_gigabytes(tmp_path, smollm2):
    """A lição inteira no SmolLM2, esperada por um processo pequeno: o Linux soma ao filho a memória
    que o pai tinha ao criá-lo, e o dos testes tem muita."""
    medir = (
        "import resource, subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True,"
        " stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    opcoes = ["--modelo", "smollm2", "--sem-graficos", "--secao", "5", "--secao", "6"]
    feito = subprocess.run(
        [sys.executable, "-c", medir, str(LAB / LICAO), *opcoes, "--saida", str(tmp_path)],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    pico = int(feito.stdout) * 1024
    assert 500e6 < pico < DOIS_GB, pico  # menos que isso nem os pesos estiveram na memória


def test_um_banner_por_secao_com_o_titulo_da_apostila(completa):
    feito, pasta = completa
    titulos = re.findall(r"^# %% (\d · .+)$", (LAB / LICAO).read_text("utf-8"), re.M)
    assert [t[0] for t in titulos] == list("12345678")
    relatorio = (pasta / "relatorio.md").read_text("utf-8")
    for titulo in titulos:
        assert f"\n{titulo} ─" in feito.stdout
        assert f"\n## {titulo}\n" in relatorio


def test_toda_conferencia_confere(completa):
    feito, pasta = completa
    dados = json.loads((pasta / "resultado.json").read_text("utf-8"))
    assert dados["nao_conferem"] == [] and dados["conferencias"] >= 16
    assert f"{dados['conferencias']} de {dados['conferencias']}" in feito.stdout
    assert not re.search(r"\bnan\b|\bNone\b|array\(|np\.float", feito.stdout)


def test_analogia_queen_com_exclusao_e_king_marcado_como_entrada(completa):
    linhas = ler_csv(completa[1], "2_analogia")
    assert linhas[0]["sem as entradas"] == "' queen'"
    marcadas = {x["tudo permitido"] for x in linhas if x["entrada"] == "sim"}
    assert "' king'" in marcadas and marcadas <= {"' king'", "' man'", "' woman'"}
    assert not {x["sem as entradas"] for x in linhas} & {"' king'", "' man'", "' woman'"}


def test_conjunto_de_analogias_por_categoria_e_no_total(completa):
    for nome in ("cruas", "normalizadas"):
        linhas = ler_csv(completa[1], f"2_{nome}")
        assert len(linhas) == 15 and linhas[-1]["categoria"] == "todas"
        assert (
            sum(int(x["perguntas"]) for x in linhas[:-1]) == int(linhas[-1]["perguntas"]) == 19544
        )


def test_consulta_exata_e_contas(completa):
    [linha] = ler_csv(completa[1], "3_consulta")
    assert float(linha["maior diferença"]) == 0
    custo = ler_csv(completa[1], "3_custo")
    assert int(custo[0]["multiplicações"]) == 49152 * 576 and int(custo[1]["multiplicações"]) == 0
    assert len(ler_csv(completa[1], "3_vetor_cru")) == 12


def test_sem_wpe_diz_e_mostra_o_gpt2_medido(completa):
    feito, pasta = completa
    assert "não tem wpe" in feito.stdout
    linhas = ler_csv(pasta, "4_gpt2_linhas")
    assert float(linhas[0]["1"]) == 0.524 and "GPT-2, medido" in feito.stdout


def test_linhas_do_gpt2_verdadeiro_nao_aparecem_em_outro_modelo(completa):
    feito, pasta = completa
    assert "É o GPT-2?" not in feito.stdout and not list(pasta.glob("8_gpt2_*"))


def test_codigo_mostra_as_linhas_da_secao(tmp_path, smollm2):
    opcoes = ["--modelo", "smollm2", "--secao", "6", "--codigo", "--saida", str(tmp_path)]
    feito = rodar(LICAO, *opcoes)
    relatorio = (tmp_path / "relatorio.md").read_text("utf-8")
    assert relatorio.count("`lab/02_embeddings.py`\n\n```python\n# %% 6 · A amarração") == 1
    assert "logits = inteira.h_final @ S.T" in feito.stdout  # a conta, e não quem a chama
    assert "```python\ndef duas_pontas(" in relatorio  # e a pergunta, que mora noutra célula
    assert "# %% 5" not in relatorio and "# %% 7" not in relatorio


def test_figuras_existem_tem_tamanho_e_texto_alternativo(completa):
    from PIL import Image

    _, pasta = completa
    relatorio = (pasta / "relatorio.md").read_text("utf-8")
    figuras = sorted(pasta.glob("*.png"))
    assert len(figuras) >= 7
    for figura in figuras:
        with Image.open(figura) as imagem:
            assert imagem.width >= 900 and len(imagem.convert("RGB").getcolors(10**7)) > 10
        assert re.search(rf"!\[[^\]]{{8,}}\]\({re.escape(figura.name)}\)", relatorio)


def test_todo_arquivo_citado_existe_e_vice_versa_com_nomes_que_servem_no_windows(completa):
    """`completa` roda num núcleo e em 2 GB (ver `apertado`), com todas as figuras."""
    _, pasta = completa
    dados = json.loads((pasta / "resultado.json").read_text("utf-8"))
    assert sorted(dados["arquivos"]) == sorted(p.name for p in pasta.glob("[!.]*"))
    assert "8_pecas.png" in dados["arquivos"]
    conferir_nomes(sorted(dados["arquivos"]))


def test_na_tela_quem_responde_os_tokens_e_nada_cortado(completa):
    feito, _ = completa
    assert "Quem responde: smollm2 (wte 49.152 × 576, sem wpe)" in feito.stdout
    assert "00_preparar.py --modelos gpt2" in feito.stdout
    assert "“O Brasil é gigante” no tokenizador do GPT-2: 6 tokens" in feito.stdout
    assert "' Bras'  39452" in feito.stdout and "…" not in feito.stdout
    assert max(map(len, feito.stdout.splitlines())) <= 100


def test_tela_estreita(tmp_path, smollm2):
    """As tabelas largas são as das seções 2, 4 e 8. (Os outros consoles estão em test_ambientes.py.)"""
    opcoes = ["--modelo", "smollm2", "--sem-graficos", "--saida", str(tmp_path)]
    secoes = [x for n in "1248" for x in ("--secao", n)]
    feito = rodar(LICAO, *opcoes, *secoes, ambiente={"COLUMNS": "60"})
    assert feito.returncode == 0, feito.stderr
    assert "Bras" in feito.stdout and "\x1b[" not in feito.stdout
    # Nenhum número se perde na tela estreita: o total aparece inteiro.
    assert "1.557.611.200" in feito.stdout
    assert max(map(len, feito.stdout.splitlines())) <= 60
    assert not list(tmp_path.glob("*.png"))


def test_secao_palavra_e_top(tmp_path, smollm2):
    feito = rodar(
        LICAO, "--modelo", "smollm2", "--secao", "2", "--palavra", "Paris", "--palavra", "dog",
        "--top", "3", "--sem-graficos", "--saida", str(tmp_path), "--analogia", "bigger", "big", "small",
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    assert "1 · O problema" not in feito.stdout
    vizinhos = sorted(tmp_path.glob("2_vizinhos_*.csv"))
    assert [re.sub(r"_\d+$", "", p.stem) for p in vizinhos] == [
        "2_vizinhos_dog",
        "2_vizinhos_paris",
    ]
    assert all(len(ler_csv(tmp_path, p.stem)) == 3 for p in vizinhos)
    assert ler_csv(tmp_path, "2_analogia")[0]["sem as entradas"] == "' smaller'"
    # As duas formas da palavra são ditas, cada uma com a sua linha (caso 1).
    assert re.search(r"' dog' é a linha 2767; 'dog' é outra linha, a 22676", feito.stdout)


def test_sem_espaco_usa_a_outra_linha(tmp_path, smollm2):
    feito = rodar(
        LICAO, "--modelo", "smollm2", "--secao", "3", "--palavra", "dog", "--sem-espaco",
        "--sem-graficos", "--saida", str(tmp_path),
    )  # fmt: skip
    assert feito.returncode == 0 and "'dog', linha 22676" in feito.stdout


@pytest.mark.longo
def test_duas_execucoes_dao_as_mesmas_tabelas(completa, tmp_path):
    _, pasta = completa
    # As seções que sorteiam, e as que somam em muitas threads; a 6 e a 8 não têm sorte nenhuma.
    secoes = [x for n in "1235" for x in ("--secao", n)]
    feito = rodar(LICAO, "--modelo", "smollm2", "--sem-graficos", *secoes, "--saida", str(tmp_path))
    assert feito.returncode == 0
    # Só os milissegundos da seção 3 dependem do relógio.
    nomes = [p.name for p in tmp_path.glob("*.csv") if p.name != "3_custo.csv"]
    assert len(nomes) > 15
    for nome in nomes:
        assert (tmp_path / nome).read_bytes() == (pasta / nome).read_bytes(), nome


def test_lista_de_secoes_e_celulas_de_notebook():
    """As células abrem em VS Code, Spyder e Jupyter: cada uma é Python válido, na ordem."""
    texto = (LAB / LICAO).read_text("utf-8")
    celulas = re.split(r"^# %%.*$", texto, flags=re.M)
    assert len(celulas) >= 10
    for celula in celulas:
        compile(celula, LICAO, "exec")
