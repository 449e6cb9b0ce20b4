"""Os scripts inteiros contra o hub de mentira, no GPT-2 plantado: o que o aluno e o instrutor veem."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import gpt2_plantado as plantado
from conftest import erro_gentil, ler_csv, rodar, rodar_dentro
from hub_fixtures import (  # noqa: F401 - o pytest acha as fixtures pelo nome
    fixture_casa,
    fixture_gpt2_plantado,
    fixture_magro,
    fixture_servidor,
    gpt2_magro,
    grande_esparso,
)
from nucleo.contas import vetores
from nucleo.licoes import l02_embeddings
from nucleo.modelos import fontes, gpt2_medido
from servidor_hub import ServidorHub, porta_fechada

pytestmark = [pytest.mark.hub, pytest.mark.cli]


def ambiente(url: str, pasta: Path, **mais) -> dict[str, str]:
    """O de quem tem um hub em `url` e nunca baixou nada. LAB_CACHE também vai para `pasta`."""
    return {
        "HF_ENDPOINT": url, "HF_HOME": str(pasta / "hf"), "LAB_CACHE": str(pasta / "lab"),
        "HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1", "LAB_MODELO": "auto",
    } | mais  # fmt: skip


# --- a lição 02 no GPT-2 plantado --------------------------------------------------------


@pytest.fixture(scope="module")
def licao(gpt2_plantado, tmp_path_factory):
    """A lição inteira, sem figuras, num clone que acabou de chegar: (processo, saídas, servidor)."""
    pasta = tmp_path_factory.mktemp("licao")
    servidor = ServidorHub(cdn=True)
    servidor.publicar_pasta(fontes.GPT2["gpt2"], gpt2_plantado)
    try:
        p = rodar(
            "02_embeddings.py", "--sem-graficos", "--saida", str(pasta / "saida"),
            ambiente=ambiente(servidor.url, pasta),
        )  # fmt: skip
    finally:
        servidor.fechar()
    yield p, pasta / "saida", servidor
    shutil.rmtree(pasta / "hf", ignore_errors=True)  # 190 MB que ninguém mais usa


def test_licao_no_gpt2_plantado_termina_bem(licao, gpt2_plantado):
    p, _, servidor = licao
    assert p.returncode == 0, p.stderr
    assert "Traceback" not in p.stderr and "Warning" not in p.stderr
    assert "Quem responde: gpt2 (wte 50.257 × 768, wpe 1024 × 768)" in p.stdout
    assert "é o modelo do curso" in p.stdout
    assert "Não confere" not in p.stdout
    tamanho = (gpt2_plantado / "model.safetensors").stat().st_size
    assert servidor.bytes_enviados("model.safetensors") == tamanho


def test_os_pesos_conferem_com_os_publicados(licao):
    _, saida, _ = licao
    pesos = ler_csv(saida, "8_gpt2_pesos")
    medidas = ler_csv(saida, "8_gpt2_medidas")
    fatos = plantado.fatos()
    assert [x["o que"] for x in pesos] == [v["o_que"] for v in fatos["verificacoes"]]
    assert [x["o que"] for x in medidas] == [m["o_que"] for m in fatos["medidas"]]
    assert {x["confere"] for x in pesos + medidas} == {"True"}, pesos + medidas
    resultado = json.loads((saida / "resultado.json").read_text(encoding="utf-8"))
    texto = json.dumps(resultado, ensure_ascii=False)
    assert "8_gpt2_pesos.1" in texto and "8_gpt2_medidas.10" in texto


def test_a_analogia_plantada_com_e_sem_exclusao(licao):
    # Caso 61: com tudo permitido responde a própria entrada; proibida, aparece queen.
    _, saida, _ = licao
    primeira, segunda, *_ = ler_csv(saida, "2_analogia")
    assert (primeira["tudo permitido"], primeira["entrada"]) == ("' king'", "sim")
    assert primeira["sem as entradas"] == segunda["tudo permitido"] == "' queen'"
    assert float(primeira["cosseno"]) == pytest.approx(0.7758, abs=1e-4)
    assert float(segunda["cosseno"]) == pytest.approx(0.7085, abs=1e-4)


def test_h0_e_logits_conferem_com_a_biblioteca(licao):
    _, saida, _ = licao
    for nome in ("5_h0", "6_logits", "3_consulta"):
        assert {x["confere"] for x in ler_csv(saida, nome)} == {"True"}
    assert [x["resposta"] for x in ler_csv(saida, "6_amarracao")] == ["sim"] * 4


def test_o_gemeo_distilgpt2_passa_em_wpe_e_cai_em_wte(gpt2_plantado, tmp_path):
    """Caso 64: a mesma linha 0 de wpe, outra wte. Quem só olhasse wpe diria que é o GPT-2."""
    pasta = shutil.copytree(gpt2_plantado, tmp_path / "distilgpt2")
    arquivo = pasta / "model.safetensors"
    onde = plantado.cabecalho(
        plantado.formas_gpt2(1, plantado.D), tamanho=plantado.CABECALHO_DO_VERDADEIRO
    )[1]["wte.weight"]
    # Espelhar cada linha muda wte e mantém normas e cossenos: só os valores denunciam.
    tabela = np.memmap(arquivo, "<f4", "r+", onde, (plantado.V, plantado.D))
    tabela[:] = tabela[:, ::-1].copy()
    tabela.flush()
    del tabela
    modelo = fontes.abrir(str(pasta))
    assert gpt2_medido.parece_gpt2_small(modelo)
    veredito = {c.nome: c.confere for c in gpt2_medido.conferir_pesos(modelo)}
    assert {n: v for n, v in veredito.items() if n.startswith("wpe")} == {
        "wpe, linha 0, 10 primeiros": True
    }
    assert [v for n, v in veredito.items() if n.startswith("wte")] == [False] * 3
    # As medidas, que não veem a ordem das coordenadas, são as mesmas: por isso se olham os valores.
    normas = vetores.normas_das_linhas(modelo.wte)
    assert all(c.confere for c in l02_embeddings.conferir_medidas(modelo, normas))

    p = rodar(
        "02_embeddings.py", "--secao", "8", "--sem-graficos", "--modelo", str(pasta),
        "--saida", str(tmp_path / "saida"), ambiente=ambiente("http://127.0.0.1:9", tmp_path),
    )  # fmt: skip
    assert p.returncode == 1 and not p.stderr  # um NÃO é um NÃO também para quem chamou
    linhas = {x["o que"]: x["confere"] for x in ler_csv(tmp_path / "saida", "8_gpt2_pesos")}
    assert [linhas[n] for n in linhas if n.startswith("wte")] == ["False"] * 3
    assert p.stdout.count("NÃO") == 3
    assert "Não confere: wte, linha 0, 5 primeiros" in p.stdout
    shutil.rmtree(pasta)


@pytest.mark.smollm2
def test_sem_hub_o_auto_mostra_o_smollm2_e_as_linhas_do_gpt2_somem(smollm2, tmp_path):
    with porta_fechada() as url:
        env = ambiente(url, tmp_path)
        # O SmolLM2 convertido fica onde já está: aqui se testa a escolha, não a conversão.
        env["LAB_CACHE"] = str(fontes.caminhos.cache())
        p = rodar(
            "02_embeddings.py", "--secao", "8", "--sem-graficos", "--saida",
            str(tmp_path / "saida"), ambiente=env,
        )  # fmt: skip
    assert p.returncode == 0, p.stderr
    assert "Quem responde: smollm2" in p.stdout
    assert "o GPT-2 não está à mão: a conexão com o hub foi recusada" in p.stdout
    assert "00_preparar.py --modelos gpt2" in p.stdout
    nomes = {a.name for a in (tmp_path / "saida").iterdir()}
    assert "8_tamanhos.csv" in nomes
    assert not {n for n in nomes if n.startswith("8_gpt2_")}
    assert "É o GPT-2?" not in p.stdout


def test_gpt2_pedido_sem_hub_sai_com_2_e_o_comando(tmp_path):
    with porta_fechada() as url:
        opcoes = ["--modelo", "gpt2", "--saida", str(tmp_path / "s")]
        p = rodar("02_embeddings.py", *opcoes, ambiente=ambiente(url, tmp_path))
    erro_gentil(p, "recusada", "python lab/00_preparar.py --modelos gpt2", "--modelo smollm2")
    # Quem pediu o GPT-2 não recebe números de outro, nem meia lição.
    assert "Quem responde" not in p.stdout and not list((tmp_path / "s").glob("*"))


# --- a preparação ------------------------------------------------------------------------


def preparar(*opcoes, url: str, pasta: Path):
    p = rodar("00_preparar.py", *opcoes, ambiente=ambiente(url, pasta))
    assert "Traceback" not in p.stderr, p.stderr
    return p


def test_preparar_sai_com_0_quando_ha_modelo(servidor, tmp_path):
    servidor.publicar(fontes.GPT2["gpt2-medium"], "model.safetensors", grande_esparso(1, 8)[0])
    servidor.publicar(fontes.GPT2["gpt2"], "config.json", b"{}")
    p = preparar("--modelos", "gpt2-medium", url=servidor.url, pasta=tmp_path)
    assert p.returncode == 0, p.stdout + p.stderr
    assert "hub do Hugging Face: responde" in p.stdout
    assert "[ok]     gpt2-medium: só wte e wpe (2 MB)" in p.stdout
    assert "Pronto." in p.stdout
    # Da segunda vez só se pergunta se o hub responde: nenhum peso desce de novo.
    servidor.esquecer()
    assert preparar("--modelos", "gpt2-medium", url=servidor.url, pasta=tmp_path).returncode == 0
    assert servidor.bytes_enviados() == 0


def test_preparar_recusa_pesos_que_nao_sao_os_publicados(servidor, tmp_path, magro):
    servidor.publicar_pasta(fontes.GPT2["gpt2"], magro[0])
    p = preparar("--modelos", "gpt2", url=servidor.url, pasta=tmp_path)
    assert p.returncode == 1, p.stdout
    tamanho = (magro[0] / "model.safetensors").stat().st_size
    assert f"[falta]  gpt2: o arquivo tem {tamanho} bytes e o publicado tem 548105171" in p.stdout
    assert "apague" in p.stdout and "--modelos gpt2" in p.stdout
    assert "Esta máquina ainda não está pronta" in p.stdout
    # A cura funciona: o arquivo que ela manda apagar é o que estava errado.
    alvo = p.stdout.split("apague ")[1].split(" e rode:")[0].strip()
    assert os.path.getsize(alvo) == tamanho


def test_preparar_sem_hub_diz_o_motivo_e_sai_com_1(tmp_path):
    with porta_fechada() as url:
        p = preparar("--modelos", "gpt2,gpt2-xl", url=url, pasta=tmp_path)
    assert p.returncode == 1
    assert p.stdout.count("[falta]  gpt2") == 2 and "recusada" in p.stdout
    assert "hub do Hugging Face: a conexão com o hub foi recusada" in p.stdout


def test_preparar_so_conferir_nao_baixa_nada(servidor, tmp_path, magro):
    servidor.publicar_pasta(fontes.GPT2["gpt2"], magro[0])
    p = preparar("--so-conferir", url=servidor.url, pasta=tmp_path)
    # O mini vem no repositório: há um modelo pronto, e por isso a saída é 0.
    assert p.returncode == 0 and servidor.bytes_enviados() == 0
    assert "gpt2: não está nesta máquina" in p.stdout and "mini: pronto" in p.stdout


def test_preparar_com_pedido_sem_sentido_sai_com_2():
    p = rodar_dentro("00_preparar.py", "--modelos", "gpt3")
    erro_gentil(p, "gpt3")
    assert not p.stdout  # recusou antes de preparar qualquer coisa
