"""Tudo o que pode faltar ou falhar, e o que a pessoa vê: uma mensagem clara ou o resultado certo, as
saídas antigas inteiras, e nenhum arquivo pela metade. Nada aqui pula no Linux.

| falta | onde é testada |
|---|---|
| conexão cortada a 0, 1, 50 e 99 %, e retomada | `test_corte_e_retomada` (modelo inteiro e tabelas) |
| corte único, curado na mesma execução | `test_corte_unico_se_cura_sozinho`, e test_hub: `corte_no_meio` |
| 404, 429, 500, login com 200 no HEAD | test_hub: `auto_cai_no_smollm2`, `panes_nas_tabelas` |
| os mesmos no GET, sem espera em silêncio | test_hub: `download_que_falha` |
| 429 com Retry-After em segundos e em data | `test_retry_after` |
| comprimento errado, para mais e para menos | `test_comprimento_errado` |
| bytes errados | `test_bytes_errados` (sha256 no inteiro; NaN e absurdos nas tabelas) |
| sem DNS | `test_dns_de_verdade`, e test_hub: `nome_que_nao_se_resolve`, `dns_que_trava` |
| proxy que recusa | `test_proxy_que_recusa`, `test_proxy_fechado` |
| certificado que ninguém assinou | test_hub: `certificado_da_instituicao` |
| disco cheio: modelo | `test_disco_cheio_no_download`, `test_disco_cheio_na_conversao` |
| disco cheio: figura e relatório | `test_disco_cheio_nas_saidas`, e test_saida: `disco_cheio` |
| saídas só de leitura, ou de outro usuário | `test_saidas_que_nao_se_gravam` |
| cache só de leitura, ou de outro usuário | `test_cache_pronto_e_so_de_leitura`, `test_cache_que_nao_se_grava` |
| duas execuções ao mesmo tempo; kill −9 | test_mortes |
| truncado, ponteiro, dtype, forma, cabeçalho que mente | test_modelos: `cada_estrago`, `nenhum_cabecalho` |
| ponteiro do git-lfs em qualquer arquivo | `test_ponteiro_em_qualquer_arquivo` |
| NaN em wte e em wpe | test_modelos: `nan_na_tabela`; test_hub_cli: `nan_nos_pesos`; `test_nan_em_wpe` |
| vocabulário maior que wte | test_modelos: `tokenizador_maior` |
| vocabulário menor que wte | `test_vocabulario_menor_que_wte` |
| pickle oferecido como modelo | test_modelos: `pickle_nunca`; `test_pickle_com_nome_de_safetensors` |
| FIFO no lugar de um arquivo | `test_fifo_no_lugar_de_um_arquivo` |
| depois de cada falta, as saídas antigas | `test_saidas_antigas_sobrevivem` |
"""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import gpt2_plantado as plantado
from conftest import LAB, erro_gentil, rodar, sem_poderes
from hub_fixtures import (  # noqa: F401 - o pytest acha as fixtures pelo nome
    apontar,
    fixture_casa,
    fixture_magro,
    fixture_no_ar,
    fixture_servidor,
    gpt2_magro,
)
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes, hub, smollm2, tensores
from servidor_hub import porta_fechada
from test_hub import pesos_no_cache, restos
from test_modelos import Armadilha, montar, salvar, tokenizador_em

pytestmark = pytest.mark.hub
# Limites, permissões e discos do Linux: só o Windows, que não tem este módulo, pula o arquivo.
resource = pytest.importorskip("resource")
LICAO = "02_embeddings.py"
QUAIS = ("gpt2", "gpt2-large")  # o primeiro desce inteiro; do segundo, só as tabelas


@pytest.fixture
def publicado(no_ar, magro):
    """O servidor com o mesmo GPT-2 magro nos dois nomes."""
    no_ar.publicar_pasta(fontes.GPT2["gpt2-large"], magro[0])
    return no_ar


def falha(nome: str) -> ErroDoUsuario:
    with pytest.raises(ErroDoUsuario) as info:
        fontes.abrir(nome)
    return info.value


def confere(nome: str, magro) -> None:
    """Abre o modelo (baixando se preciso) e compara as duas tabelas com as publicadas."""
    modelo = fontes.abrir(nome)
    np.testing.assert_array_equal(modelo.wte, magro[1]["wte.weight"])
    np.testing.assert_array_equal(modelo.wpe, magro[1]["wpe.weight"])


# --- a rede ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fracao", [0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("nome", QUAIS)
def test_corte_e_retomada(nome, fracao, publicado, magro, casa):
    pesos = "model.safetensors"
    total = (magro[0] / pesos).stat().st_size
    if nome == "gpt2":
        onde = fracao
    else:  # a fração é do que se baixa: wte, que no arquivo vem com outras coisas em volta
        wte = tensores.ler_cabecalho(magro[0] / pesos)["wte.weight"]
        onde = (wte.inicio + fracao * (wte.fim - wte.inicio)) / total
    publicado.pane("corte", onde, metodo="GET", arquivo=pesos)
    assert hub.CAIU in falha(nome).por_que
    assert pesos_no_cache(casa) == []
    parciais = list(casa.rglob("*.parcial"))
    guardados = sum(p.stat().st_size for p in parciais)
    assert not any(p.stat().st_size == 0 for p in parciais)
    if nome == "gpt2":
        assert guardados == int(total * fracao)  # tudo o que chegou ficou, e nada mais
    publicado.consertar()
    publicado.esquecer()
    confere(nome, magro)
    # O que já estava em casa não desce outra vez (nas tabelas, o cabeçalho é relido).
    folga = 0 if nome == "gpt2" else 66_000
    assert publicado.bytes_enviados(pesos) <= total - guardados + folga
    assert restos(casa) == []


@pytest.mark.parametrize("nome", QUAIS)
def test_corte_unico_se_cura_sozinho(nome, publicado, magro, casa):
    publicado.pane("corte", 0.05, metodo="GET", arquivo="model.safetensors", vezes=1)
    confere(nome, magro)
    assert restos(casa) == []


@pytest.mark.parametrize(
    ("espera", "frase"),
    [("30", "tente de novo em 30 s"), ("Wed, 21 Oct 2026 07:28:00 GMT", "deste endereço).")],
)
@pytest.mark.parametrize("metodo", ["HEAD", "GET"])
@pytest.mark.parametrize("nome", QUAIS)
def test_retry_after(nome, metodo, espera, frase, publicado, casa):
    publicado.pane(
        "codigo", 429, metodo=metodo, arquivo="model.safetensors",
        cabecalhos={"Retry-After": espera},
    )  # fmt: skip
    assert frase in falha(nome).por_que
    assert restos(casa) == []


@pytest.mark.parametrize("quanto", [1000, -1000, 1])
@pytest.mark.parametrize("nome", QUAIS)
def test_comprimento_errado(nome, quanto, publicado, magro, casa):
    publicado.pane("tamanho", quanto, arquivo="model.safetensors")
    # Nas tabelas o tamanho é o que o cabeçalho conta: um byte a mais no fim não é delas.
    por_que = falha(nome) if nome == "gpt2" or quanto == -1000 else None
    if por_que:
        assert "tamanho" in por_que.por_que or "incompleto" in por_que.o_que, por_que
    assert pesos_no_cache(casa) == restos(casa) == []
    publicado.consertar()
    confere(nome, magro)


@pytest.mark.parametrize("nome", QUAIS)
def test_bytes_errados(nome, publicado, magro, casa):
    pesos = "model.safetensors"
    if nome == "gpt2":
        publicado.pane("bytes", 1, metodo="GET", arquivo=pesos)  # um bit de cada byte
    else:
        # O cabeçalho precisa chegar certo; os números vêm com o expoente todo em 1 (NaN, infinito).
        bruto = bytearray((magro[0] / pesos).read_bytes())
        onde = tensores.ler_cabecalho(magro[0] / pesos)["wte.weight"]
        bruto[onde.fim - 8 : onde.fim] = b"\xff" * 8
        publicado.publicar(fontes.GPT2[nome], pesos, bytes(bruto))
    assert "trocados no caminho" in falha(nome).por_que
    assert pesos_no_cache(casa) == restos(casa) == []
    assert not fontes.so_tabelas("gpt2-large").exists()
    publicado.consertar()
    publicado.publicar_pasta(fontes.GPT2[nome], magro[0])
    confere(nome, magro)


def test_o_sha256_conferido_e_o_do_arquivo_inteiro(publicado, casa):
    fontes.abrir("gpt2")
    [pronto] = pesos_no_cache(casa)
    assert hashlib.sha256(pronto.read_bytes()).hexdigest() == pronto.resolve().name


def test_dns_de_verdade(tmp_path):
    """Um nome que o DNS nunca terá (RFC 2606), com a busca de nomes verdadeira do sistema."""
    feito = rodar(
        LICAO, "--modelo", "gpt2", "--saida", str(tmp_path / "s"),
        ambiente=ambiente("http://hub.invalid", tmp_path),
    )  # fmt: skip
    erro_gentil(feito, "00_preparar.py --modelos gpt2")
    assert "sem internet" in feito.stderr or "não respondeu" in feito.stderr, feito.stderr
    assert list((tmp_path / "s").iterdir()) == []


def ambiente(url: str, pasta: Path, **mais: str) -> dict[str, str]:
    """O de quem tem um hub em `url` e nunca baixou nada."""
    return {
        "HF_ENDPOINT": url, "HF_HOME": str(pasta / "hf"), "LAB_CACHE": str(pasta / "lab"),
        "HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1", "LAB_MODELO": "auto",
    } | mais  # fmt: skip


@pytest.mark.parametrize("codigo", [403, 407])
@pytest.mark.parametrize("esquema", ["http", "https"])
def test_proxy_que_recusa(esquema, codigo, casa, monkeypatch):
    class Porteiro(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def recusar(self):
            self.send_response(codigo)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_CONNECT = recusar

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Porteiro)
    threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv(f"{esquema}_proxy", f"http://127.0.0.1:{proxy.server_address[1]}")
    apontar(monkeypatch, f"{esquema}://hub.invalid")
    try:
        por_que = falha("gpt2").por_que
    finally:
        proxy.shutdown()
        proxy.server_close()
    # Por http um 403 do proxy é igual a um 403 do hub; nos outros casos a mensagem diz proxy.
    assert "proxy" in por_que or (esquema, codigo) == ("http", 403), por_que
    assert "recusou" in por_que and restos(casa) == []


def test_proxy_fechado(casa, monkeypatch):
    with porta_fechada() as url:
        monkeypatch.setenv("https_proxy", url)
        apontar(monkeypatch, "https://hub.invalid")
        assert "proxy" in falha("gpt2").por_que


# --- o disco -------------------------------------------------------------------------------------


@pytest.fixture
def disco(tmp_path):
    """Um disco de verdade de 3 MB (tmpfs), ou None para quem não pode montar um (não é root)."""
    ponto = tmp_path / "disco"
    ponto.mkdir()
    montar_ = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(ponto)]
    if subprocess.run(montar_, capture_output=True).returncode:
        yield None
        return
    yield ponto
    subprocess.run(["umount", "-l", str(ponto)], check=True)


def limite_de_arquivo() -> None:
    """Nenhum arquivo passa de 1 MB: o sistema recusa a escrita do byte seguinte (EFBIG)."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


@pytest.mark.parametrize("nome", QUAIS)
@pytest.mark.parametrize("como", ["limite", "disco"])
def test_disco_cheio_no_download(como, nome, publicado, tmp_path, disco, magro):
    """Por um limite do sistema no meio da escrita, e num disco pequeno demais para o modelo."""
    pasta, antes = tmp_path, limite_de_arquivo
    if como == "disco" and disco:
        pasta, antes = disco, None
        (disco / "ocupado").write_bytes(bytes(2_400_000))
    env = ambiente(publicado.url, pasta)
    feito = rodar("00_preparar.py", "--modelos", nome, ambiente=env, antes=antes)
    assert feito.returncode == 1 and "Traceback" not in feito.stderr, feito.stderr
    assert f"[falta]  {nome}: Não coube no disco" in feito.stdout, feito.stdout
    assert restos(pasta / "hf", pasta / "lab") == []
    assert not list((pasta / "hf").rglob("model.safetensors"))
    # Com espaço, o mesmo comando funciona.
    (pasta / "ocupado").unlink(missing_ok=True)
    if nome == "gpt2-large":
        feito = rodar("00_preparar.py", "--modelos", nome, ambiente=env)
        assert feito.returncode == 0, feito.stdout + feito.stderr


def test_disco_cheio_na_conversao(tmp_path, disco, monkeypatch):
    pasta = disco or tmp_path
    monkeypatch.setattr(smollm2, "achar_gguf", lambda: tmp_path / "x.gguf")
    # Primeiro, o disco que já se vê pequeno; depois, o que enche no meio da escrita.
    if disco:
        with pytest.raises(ErroDoUsuario, match="só há 3 MB livres"):
            smollm2.converter(destino=pasta / "smollm2")
    monkeypatch.setattr(smollm2, "ESPACO", 0)

    def escrever(_gguf, onde, _progresso):
        with (onde / "model.safetensors").open("wb") as f:
            for _ in range(8):
                f.write(bytes(1 << 20))
                if not disco and f.tell() > 3 << 20:
                    raise OSError(28, "No space left on device")

    monkeypatch.setattr(smollm2, "_converter_em", escrever)
    with pytest.raises(ErroDoUsuario, match="LAB_CACHE"):
        smollm2.converter(destino=pasta / "smollm2")
    assert not [p for p in pasta.iterdir() if p.name != ".trava"]


CURTA = """
'''Uma lição curta.'''
from aula import Aula
aula = Aula("curta", __doc__, {1: "um"})
from nucleo.base import graficos
modelo = aula.abrir_modelo()
aula.secao(1)
normas = (modelo.wte[:50] ** 2).sum(1)
aula.tabela("tabela", "Normas", {"norma": str}, [[x] for x in normas])
aula.figura("figura", "normas", graficos.curvas, {"n": (range(50), normas)}, "t", "x", "y")
aula.terminar()
"""


def licao_curta(pasta: Path) -> Path:
    """Uma lição de verdade (modelo, tabela, figura, relatório) que roda em dois segundos."""
    arquivo = pasta / "curta.py"
    arquivo.write_text(CURTA.strip() + "\n", encoding="utf-8")
    return arquivo


@pytest.mark.cli
@pytest.mark.parametrize("como", ["limite", "disco"])
def test_disco_cheio_nas_saidas(como, tmp_path, disco):
    """A figura não cabe: a mensagem sai, e as saídas de antes ficam como eram."""
    pasta, antes = (
        tmp_path / "saida",
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)),
    )
    if como == "disco" and disco:
        pasta, antes = disco / "saida", None
    comando = [
        sys.executable,
        str(licao_curta(tmp_path)),
        "--modelo",
        "mini",
        "--saida",
        str(pasta),
    ]
    env = os.environ | {"PYTHONPATH": str(LAB), "PYTHONIOENCODING": "utf-8"}
    comuns = {"env": env, "capture_output": True, "encoding": "utf-8", "timeout": 250}
    feito = subprocess.run([*comando, "--sem-graficos"], **comuns)
    assert feito.returncode == 0, feito.stderr
    boas = retrato(pasta)
    if antes is None:
        livre = shutil.disk_usage(disco).free
        (disco / "ocupado").write_bytes(bytes(livre - 12_000))
    feito = subprocess.run(comando, preexec_fn=antes, **comuns)
    erro_gentil(feito, "Não consegui gravar", "--saida PASTA")
    assert "cheio" in feito.stderr or "deste tamanho" in feito.stderr
    assert retrato(pasta) == boas and "figura.png" not in boas


def retrato(pasta: Path) -> dict[str, bytes]:
    """{nome: bytes} de tudo o que há na pasta, também o escondido."""
    return {str(p.relative_to(pasta)): p.read_bytes() for p in pasta.rglob("*") if p.is_file()}


# --- permissões ------------------------------------------------------------------------------------


def de_outro(pasta: Path) -> None:
    """Dá tudo a outro usuário (o root pode), ou tira a permissão de escrita (qualquer um pode)."""
    for p in [pasta, *pasta.rglob("*")]:
        if os.geteuid() == 0:
            os.chown(p, 65534, 65534)
        else:
            p.chmod(0o555 if p.is_dir() else 0o444)


def so_de_leitura(pasta: Path) -> None:
    for p in [pasta, *pasta.rglob("*")]:
        if not p.is_symlink():
            p.chmod(0o555 if p.is_dir() else 0o444)


@pytest.fixture
def devolver(tmp_path):
    """No fim, tudo volta a ser nosso: o pytest precisa poder apagar."""
    yield
    for p in [tmp_path, *tmp_path.rglob("*")]:
        if not p.is_symlink():
            if os.geteuid() == 0:
                os.chown(p, 0, 0)
            p.chmod(0o755 if p.is_dir() else 0o644)


@pytest.mark.cli
@pytest.mark.parametrize("estragar", [so_de_leitura, de_outro])
def test_saidas_que_nao_se_gravam(estragar, tmp_path, devolver):
    pasta = tmp_path / "saida"
    opcoes = ["--modelo", "mini", "--secao", "1", "--sem-graficos", "--saida", str(pasta)]
    assert rodar(LICAO, *opcoes).returncode == 0
    boas = retrato(pasta)
    estragar(pasta)
    feito = rodar(LICAO, *opcoes, antes=sem_poderes)
    erro_gentil(feito, "não permite escrita", "--saida PASTA")
    assert retrato(pasta) == boas


@pytest.mark.parametrize("estragar", [so_de_leitura, de_outro])
def test_cache_pronto_e_so_de_leitura(estragar, publicado, casa, tmp_path, devolver):
    """Um cache que outra pessoa preparou (o da sala) serve como está, sem gravar nada nele."""
    for nome in QUAIS:
        fontes.abrir(nome)
    antes = retrato(casa)
    estragar(casa)
    publicado.esquecer()
    codigo = (
        "import sys; sys.path.insert(0, 'lab'); from nucleo.modelos import fontes\n"
        "for n in ('gpt2', 'gpt2-large'): print(fontes.abrir(n).wte.shape)"
    )
    feito = subprocess.run(
        [sys.executable, "-c", codigo], env=os.environ | {"HF_HUB_OFFLINE": "0"},
        capture_output=True, encoding="utf-8", preexec_fn=sem_poderes, timeout=120,
        cwd=Path(__file__).resolve().parents[1],
    )  # fmt: skip
    assert feito.stdout == "(50257, 8)\n" * 2, feito.stderr
    assert publicado.pedidos == [] and retrato(casa) == antes


@pytest.mark.parametrize("estragar", [so_de_leitura, de_outro])
def test_cache_que_nao_se_grava(estragar, publicado, tmp_path, devolver):
    casa = tmp_path / "cache"
    casa.mkdir()
    estragar(casa)
    feito = rodar(
        "00_preparar.py", "--modelos", ",".join(QUAIS),
        ambiente=ambiente(publicado.url, casa, LAB_CACHE=str(casa / "lab")), antes=sem_poderes,
    )  # fmt: skip
    assert feito.returncode == 1 and "Traceback" not in feito.stderr
    # A conferência da máquina já vê que a pasta não aceita arquivos, antes de baixar.
    assert "[falta]  cache não aceita arquivos" in feito.stdout, feito.stdout
    assert "LAB_CACHE" in feito.stdout and list(casa.iterdir()) == []
    for nome in QUAIS:
        feito = rodar(
            LICAO, "--modelo", nome, "--saida", str(tmp_path / "s"),
            ambiente=ambiente(publicado.url, casa), antes=sem_poderes,
        )  # fmt: skip
        erro_gentil(feito, "Não consegui gravar", "HF_HOME (ou LAB_CACHE)")
    assert list(casa.iterdir()) == []


# --- o modelo ----------------------------------------------------------------------------------------


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 548105171\n"


@pytest.mark.parametrize("arquivo", ["config.json", "model.safetensors", "tokenizer.json"])
def test_ponteiro_em_qualquer_arquivo(arquivo, tmp_path):
    pasta = salvar(montar("gpt2"), tmp_path / "m")
    (pasta / arquivo).write_bytes(LFS)
    erro = falha(str(pasta))
    assert arquivo in erro.o_que and "Git LFS" in erro.o_que
    assert "git lfs pull" in erro.o_que_fazer


def test_ponteiro_num_pedaco_do_indice(tmp_path):
    pasta = salvar(montar("gpt2"), tmp_path / "m")
    (pasta / "model.safetensors").rename(pasta / "p1.safetensors")
    (pasta / "p1.safetensors").write_bytes(LFS)
    mapa = {"weight_map": {"transformer.wte.weight": "p1.safetensors"}}
    (pasta / "model.safetensors.index.json").write_text(json.dumps(mapa), encoding="utf-8")
    assert "p1.safetensors" in falha(str(pasta)).o_que


@pytest.mark.parametrize("valor", [np.nan, np.inf, -np.inf])
def test_nan_em_wpe(valor, tmp_path):
    pasta, valores = gpt2_magro(tmp_path / "m")
    valores["wpe.weight"][321, 5] = valor
    plantado.gravar(pasta / "model.safetensors", {n: v.shape for n, v in valores.items()}, valores)
    erro = falha(str(pasta))
    assert "wpe" in erro.o_que and "321" in erro.por_que


@pytest.mark.cli
def test_vocabulario_menor_que_wte(tmp_path):
    """Linhas de sobra em wte são comuns (enchimento até um múltiplo de 64): a lição roda inteira."""
    pasta = salvar(montar("gpt2"), tmp_path / "m")
    tokenizador_em(pasta, 30)  # wte tem 50 linhas
    modelo = fontes.abrir(str(pasta))
    assert (modelo.V, modelo.tokenizador.tamanho) == (50, 30)
    assert [modelo.tokenizador.texto(i) for i in (7, 45)] == ["p7", ""]
    feito = rodar(
        LICAO,
        "--modelo",
        str(pasta),
        "--top",
        "100",
        "--sem-graficos",
        "--saida",
        str(tmp_path / "s"),
    )
    assert feito.returncode == 0, feito.stderr[-3000:]


def test_pickle_com_nome_de_safetensors(tmp_path):
    """Um pickle com o nome trocado é lido como bytes, e recusado: nada dele é executado."""
    pasta, prova = salvar(montar("gpt2"), tmp_path / "m"), tmp_path / "abriram"
    armadilha = pickle.dumps(Armadilha(prova))
    for conteudo in (armadilha, armadilha + bytes(1 << 20)):
        (pasta / "model.safetensors").write_bytes(conteudo)
        assert "estragado" in falha(str(pasta)).o_que
    assert not prova.exists()
    pickle.loads(armadilha)
    assert prova.exists()  # a armadilha funciona: o teste podia falhar


@pytest.mark.timeout(60)
@pytest.mark.parametrize("arquivo", ["config.json", "model.safetensors", "tokenizer.json"])
def test_fifo_no_lugar_de_um_arquivo(arquivo, tmp_path):
    pasta = salvar(montar("gpt2"), tmp_path / "m")
    (pasta / arquivo).unlink()
    os.mkfifo(pasta / arquivo)
    erro = falha(str(pasta))
    assert arquivo.split(".")[0] in str(erro) or "pesos" in str(erro) or "tokenizador" in str(erro)


@pytest.mark.timeout(60)
def test_fifo_nas_saidas_nas_previsoes_e_no_corpus(tmp_path):
    from nucleo.base.caderno import Caderno
    from nucleo.exercicios.previsoes import Diario
    from nucleo.treino.treinador import ler_corpus

    for nome in ("resultado.json", "02_previsoes.json", "texto.txt"):
        os.mkfifo(tmp_path / nome)
    Caderno("02", "T").gravar(tmp_path)
    assert (tmp_path / "resultado.json").is_file()
    with pytest.raises(ErroDoUsuario, match="arquivo comum"):
        Diario.abrir(tmp_path, 2)
    with pytest.raises(ErroDoUsuario, match="txt"):
        ler_corpus(tmp_path)


# --- depois de cada falta, as saídas antigas ---------------------------------------------------------


@pytest.mark.cli
@pytest.mark.parametrize("pane", [("login", None), ("corte", 0.5)])
def test_saidas_antigas_sobrevivem(pane, publicado, tmp_path):
    pasta = tmp_path / "saida"
    pasta.mkdir()
    for nome in ("relatorio.md", "2_pares.csv", "resultado.json"):
        (pasta / nome).write_text("a execução boa", encoding="utf-8")
    boas = retrato(pasta)
    publicado.pane(*pane, metodo="GET", arquivo="model.safetensors")
    feito = rodar(
        LICAO, "--modelo", "gpt2", "--saida", str(pasta),
        ambiente=ambiente(publicado.url, tmp_path),
    )  # fmt: skip
    erro_gentil(feito, "--modelos gpt2")
    assert retrato(pasta) == boas
