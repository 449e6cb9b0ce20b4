"""As fixtures dos testes do hub. Cada módulo importa as que usa (não são um plugin).

A função se chama `fixture_casa` e a fixture, `casa`: assim o nome importado não é o do argumento.
"""

import logging
import shutil
import socket
import types
from pathlib import Path

import numpy as np
import pytest

import gpt2_plantado as plantado
from nucleo.base import descida
from nucleo.modelos import fontes, hub
from servidor_hub import Esparso, ServidorHub

_AMBIENTE = (
    "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN", "LAB_MODELO", "HF_HUB_CACHE",
    "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
)  # fmt: skip


@pytest.fixture(name="casa")
def fixture_casa(tmp_path, monkeypatch):
    """Uma máquina que nunca baixou nada: HF_HOME e LAB_CACHE vazios, e nenhuma rede de verdade.

    O huggingface_hub lê o ambiente ao ser importado; para código no mesmo processo trocamos as
    constantes, para subprocessos vale o ambiente.
    """
    from huggingface_hub import constants, file_download
    from huggingface_hub.utils import _http

    for nome in _AMBIENTE:
        monkeypatch.delenv(nome, raising=False)
    pasta = tmp_path / "casa"
    monkeypatch.setenv("HF_HOME", str(pasta / "hf"))
    monkeypatch.setenv("LAB_CACHE", str(pasta / "lab"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(pasta / "hf" / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    # As pausas entre tentativas da biblioteca não são o que se testa aqui.
    sem_pausa = types.SimpleNamespace(sleep=lambda s: None)
    monkeypatch.setattr(file_download, "time", sem_pausa)
    monkeypatch.setattr(_http, "time", sem_pausa)
    monkeypatch.setattr(descida, "PAUSA", 0)
    # Um servidor desta máquina, ocupada, pode demorar; quem testa o prazo o encurta.
    monkeypatch.setattr(hub, "PRAZO", 60.0)
    yield pasta
    shutil.rmtree(pasta, ignore_errors=True)  # o pytest guardaria os modelos de três sessões


def apontar(monkeypatch, url: str) -> None:
    """Faz deste endereço o hub, neste processo e nos filhos."""
    from huggingface_hub import constants
    from huggingface_hub.utils._http import close_session

    close_session()  # o cliente guarda conexões com o servidor do teste anterior
    monkeypatch.setenv("HF_ENDPOINT", url)
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"
    )


@pytest.fixture(name="servidor", params=[False], ids=["direto"])
def fixture_servidor(request, casa, monkeypatch):
    """Um hub em loopback, no lugar do verdadeiro; parametrize com True para ter um CDN atrás."""
    s = ServidorHub(cdn=request.param)
    apontar(monkeypatch, s.url)
    yield s
    s.fechar()


@pytest.fixture(name="conexoes")
def fixture_conexoes(monkeypatch):
    """A lista do que este processo tentou abrir na rede: conexões e buscas de nome."""
    tentativas = []
    conectar, buscar = socket.socket.connect, socket.getaddrinfo

    def anotar_conexao(self, endereco):
        tentativas.append(endereco)
        return conectar(self, endereco)

    def anotar_busca(nome, *a, **k):
        tentativas.append(nome)
        return buscar(nome, *a, **k)

    monkeypatch.setattr(socket.socket, "connect", anotar_conexao)
    monkeypatch.setattr(socket, "getaddrinfo", anotar_busca)
    return tentativas


@pytest.fixture(name="avisos")
def fixture_avisos(monkeypatch):
    """Os avisos que a biblioteca escreveria em stderr, em inglês, se ninguém a calasse."""
    from huggingface_hub.utils import logging as da_biblioteca

    da_biblioteca.set_verbosity_warning()  # como num processo novo
    vistos, anotador = [], logging.Handler()
    anotador.emit = lambda registro: vistos.append(registro.getMessage())
    raiz = logging.getLogger("huggingface_hub")
    raiz.addHandler(anotador)
    yield vistos
    raiz.removeHandler(anotador)


# --- checkpoints -------------------------------------------------------------------------


@pytest.fixture(name="gpt2_plantado", scope="session")
def fixture_gpt2_plantado(tmp_path_factory):
    """Uma pasta com 50257 × 768 plantados, 1 camada e o cabeçalho do tamanho do verdadeiro."""
    pasta = tmp_path_factory.mktemp("plantado") / "gpt2"
    pasta.mkdir()
    formas = plantado.formas_gpt2(1, plantado.D)
    valores = plantado.pesos_pequenos(formas, semente=5)
    valores["wte.weight"] = plantado.wte_plantada()
    valores["wpe.weight"] = plantado.wpe_plantada()
    plantado.gravar(pasta / "model.safetensors", formas, valores, plantado.CABECALHO_DO_VERDADEIRO)
    plantado.escrever_config(pasta, plantado.config_gpt2(1, plantado.D, 12))
    yield pasta
    shutil.rmtree(pasta, ignore_errors=True)


def gpt2_magro(
    pasta: Path, prefixo: str = "", mascaras: bool = True, cabeca=None, config=(), semente=3
) -> tuple[Path, dict[str, np.ndarray]]:
    """Um GPT-2 de vocabulário inteiro e 8 dimensões (1,6 MB de wte): (pasta, {nome: tensor}).

    `cabeca`: None (o arquivo não traz), "igual" ou "outra".
    """
    pasta.mkdir(parents=True, exist_ok=True)
    d = 8
    formas = plantado.formas_gpt2(1, d, mascaras=mascaras, prefixo=prefixo)
    if cabeca:
        formas["lm_head.weight"] = (plantado.V, d)
    sorteio = np.random.default_rng(semente)
    valores = plantado.pesos_pequenos(formas, semente)
    for tabela in ("wte.weight", "wpe.weight"):
        nome = prefixo + tabela
        valores[nome] = sorteio.standard_normal(formas[nome], dtype=np.float32)
    if cabeca:
        wte = valores[prefixo + "wte.weight"]
        valores["lm_head.weight"] = wte if cabeca == "igual" else wte[::-1].copy()
    plantado.gravar(pasta / "model.safetensors", formas, valores)
    plantado.escrever_config(pasta, plantado.config_gpt2(1, d, 2, **dict(config)))
    return pasta, valores


@pytest.fixture(name="magro")
def fixture_magro(tmp_path):
    """O GPT-2 magro publicado por quem o pedir: (pasta, {nome: tensor})."""
    return gpt2_magro(tmp_path / "magro")


@pytest.fixture(name="no_ar")
def fixture_no_ar(servidor, magro):
    """O servidor com o GPT-2 magro no lugar do gpt2; `no_ar.valores` são os tensores dele."""
    servidor.publicar_pasta(fontes.GPT2["gpt2"], magro[0])
    servidor.valores = magro[1]
    return servidor


def grande_esparso(
    n_layer: int, d: int, semente: int = 7, enchimento: int | None = None
) -> tuple[Esparso, dict[str, np.ndarray], dict[str, int]]:
    """(arquivo, {nome: começo e fim plantados}, {nome: byte}) de um GPT-2 grande quase de zeros.

    Só as 3 primeiras e as 3 últimas linhas de wte e wpe têm números.
    """
    formas = plantado.formas_gpt2(n_layer, d)
    bruto, onde, total = plantado.cabecalho(formas, tamanho=enchimento)
    sorteio, pedacos, pontas = np.random.default_rng(semente), {0: bruto}, {}
    for nome in ("wte.weight", "wpe.weight"):
        linhas = formas[nome][0]
        x = sorteio.standard_normal((6, d), dtype=np.float32)
        pontas[nome] = x
        pedacos[onde[nome]] = x[:3].tobytes()
        pedacos[onde[nome] + (linhas - 3) * d * 4] = x[3:].tobytes()
    return Esparso(total, pedacos), pontas, onde
