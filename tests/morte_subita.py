"""Mata escritas em instantes sorteados e confere o que sobra.

Não é um teste: é o programa que test_mortes.py roda, e que imprime um JSON. O processo importa tudo
uma vez e se divide (fork); o filho faz uma escrita de verdade (as saídas de uma lição, um download
de um servidor de loopback, uma conversão) e morre por SIGKILL, sem `finally` nem aviso. O pai, que
não a fez, confere o disco, e no fim roda a mesma escrita até o fim.

    PYTHONPATH=lab:tests python tests/morte_subita.py QUANTAS SEMENTE PASTA URL
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from nucleo.base.caderno import Caderno
from nucleo.modelos import fontes, hub, smollm2, tensores

REPO = fontes.GPT2["gpt2-large"]
TRAVA = ".trava"


# --- quatro escritas -------------------------------------------------------------------------


def caderno(versao: int) -> Caderno:
    """As saídas de uma lição: tabelas e figuras que dizem de que execução são. Par e ímpar diferem
    também nos nomes: cada execução tem arquivos que a outra não refaz."""
    c = Caderno("02", f"Execução {versao}")
    for i in range(12):
        c.figura(f"fig_{i}", f"execução {versao}\n".encode() * 2000, "uma figura")
    c.csv(f"so_de_{versao % 2}", ["execucao"], [[versao]])
    c.csv("tabela", ["execucao"], [[versao]] * 200)
    return c


def de_que_execucao(arquivo: Path) -> int:
    """A versão que um arquivo das saídas diz ter. AssertionError se ele não estiver inteiro."""
    conteudo = arquivo.read_bytes()
    if arquivo.name == "resultado.json":
        return json.loads(conteudo)["tabelas"]["tabela"]["linhas"][0][0]
    versao = next(int(p) for p in conteudo.decode("utf-8").split() if p.isdecimal())
    feito = caderno(versao)
    if arquivo.name == "relatorio.md":
        assert (
            conteudo.decode("utf-8") == f"# {feito.titulo}\n\n" + "\n\n".join(feito.blocos) + "\n"
        )
    else:
        assert conteudo == feito.arquivos[arquivo.name], f"{arquivo.name} pela metade"
    return versao


def execucao_inteira(pasta: Path) -> int:
    """De que execução são as saídas que o resultado.json lista. AssertionError se forem de duas.

    Um arquivo que só a execução morta fez pode sobrar, inteiro: lista nenhuma fala dele.
    """
    resultado = json.loads((pasta / "resultado.json").read_text(encoding="utf-8"))
    versoes = {de_que_execucao(pasta / nome) for nome in resultado["arquivos"]}
    assert len(versoes) == 1, f"mistura das execuções {sorted(versoes)}"
    return versoes.pop()


class Saidas:
    """As saídas de uma lição, gravadas por cima das da execução anterior."""

    def __init__(self, pasta: Path, _url: str):
        self.pasta, self.versao = pasta / "saidas", 0
        self.fazer()

    def fazer(self) -> None:
        caderno(self.versao).gravar(self.pasta)

    def conferir(self) -> None:
        # Cada arquivo está inteiro; o resultado.json, que é o último, só é novo com todos novos.
        versoes = {
            p.name: de_que_execucao(p) for p in self.pasta.iterdir() if not p.name.startswith(".")
        }
        assert {*caderno(0).arquivos} & {*caderno(1).arquivos} <= versoes.keys()
        if versoes["resultado.json"] == self.versao:
            assert execucao_inteira(self.pasta) == self.versao

    def preparar(self) -> None:
        self.versao += 1

    def restos(self) -> list[str]:
        assert execucao_inteira(self.pasta) == self.versao
        return ocultos(self.pasta)


class Tabelas:
    """As duas tabelas de um GPT-2 grande, num safetensors pequeno, por pedaços."""

    def __init__(self, pasta: Path, url: str):
        apontar(url, pasta)
        self.destino = fontes.so_tabelas("gpt2-large")

    def fazer(self) -> None:
        hub.baixar_tensores(REPO, ["wte.weight", "wpe.weight"], self.destino)

    def conferir(self) -> None:
        # Ou não há arquivo, ou ele está inteiro.
        if self.destino.exists():
            x = tensores.ler(tensores.ler_cabecalho(self.destino)["wte.weight"])
            assert x.shape == (50257, 8) and np.isfinite(x).all()

    def preparar(self) -> None:
        # Com o arquivo pronto não haveria o que interromper. O .parcial da rodada anterior fica.
        self.destino.unlink(missing_ok=True)

    def restos(self) -> list[str]:
        return ocultos(self.destino.parent) + [
            p.name for p in self.destino.parent.glob("*.parcial")
        ]


class Inteiro:
    """O modelo inteiro no cache do hub, conferido pelo sha256."""

    def __init__(self, pasta: Path, url: str):
        apontar(url, pasta)
        self.cache = pasta / "hf"

    def fazer(self) -> None:
        hub.baixar(REPO, "model.safetensors")

    def conferir(self) -> None:
        for achado in self.cache.rglob("model.safetensors"):
            assert hub.sha256(achado) == achado.resolve().name

    def preparar(self) -> None:
        for achado in [*self.cache.rglob("model.safetensors"), *self.cache.rglob("blobs/*")]:
            if achado.suffix != ".parcial":
                achado.unlink()

    def restos(self) -> list[str]:
        meios = (".parcial", ".incomplete", ".tmp")
        return [p.name for p in self.cache.rglob("*") if p.suffix in meios]


class Conversao:
    """A conversão do SmolLM2, com os mesmos arquivos na mesma ordem, mas pequenos."""

    def __init__(self, pasta: Path, _url: str):
        self.destino = pasta / "conversao" / "smollm2"
        smollm2.ESPACO = 0
        smollm2.achar_gguf = lambda: pasta / "modelo.gguf"
        smollm2._converter_em = self._escrever

    @staticmethod
    def _escrever(_gguf, pasta: Path, _progresso) -> None:
        (pasta / "tokenizer.json").write_text("{}", encoding="utf-8")
        (pasta / "config.json").write_text("{}", encoding="utf-8")
        save_file({"x": np.ones((600, 500), np.float32)}, pasta / "model.safetensors")
        (pasta / "origem.json").write_text("{}", encoding="utf-8")

    def fazer(self) -> None:
        smollm2.converter(destino=self.destino)

    def conferir(self) -> None:
        # O que está no lugar está inteiro: a pasta só aparece pronta.
        if self.destino.exists():
            assert smollm2._inteira(self.destino)
            x = tensores.ler(tensores.ler_cabecalho(self.destino / "model.safetensors")["x"])
            assert (x == 1).all() and x.shape == (600, 500)

    def preparar(self) -> None:
        import shutil

        shutil.rmtree(self.destino, ignore_errors=True)

    def restos(self) -> list[str]:
        return ocultos(self.destino.parent)


def ocultos(pasta: Path) -> list[str]:
    """O que uma morte esquece: os provisórios. (A trava, vazia, mora ali.)"""
    return [p.name for p in pasta.glob(".*") if p.name != TRAVA]


def apontar(url: str, pasta: Path) -> None:
    from huggingface_hub import constants

    os.environ["LAB_CACHE"] = str(pasta / "lab")
    constants.ENDPOINT = url
    constants.HUGGINGFACE_CO_URL_TEMPLATE = url + "/{repo_id}/resolve/{revision}/{filename}"
    constants.HF_HUB_CACHE = str(pasta / "hf")
    constants.HF_HUB_OFFLINE = False
    constants.HF_HUB_DISABLE_XET = True


# --- a morte -----------------------------------------------------------------------------------


def dividir(funcao) -> int:
    """Roda `funcao` num processo filho e devolve o pid dele. O filho sai sem limpar nada."""
    pid = os.fork()
    if pid:
        return pid
    codigo = 1
    try:
        funcao()
        codigo = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(codigo)


def esperar(pid: int) -> bool:
    """True se o filho terminou bem; False se morreu. Um erro dele é erro nosso."""
    _, estado = os.waitpid(pid, 0)
    morto = os.WIFSIGNALED(estado) and os.WTERMSIG(estado) == signal.SIGKILL
    assert morto or os.waitstatus_to_exitcode(estado) == 0, f"o filho saiu com {estado}"
    return not morto


def sorteio(quantas: int, semente: int, pasta: Path, url: str) -> dict:
    """`quantas` mortes por SIGKILL, repartidas pelas quatro escritas, em instantes sorteados."""
    sorteador, relato = random.Random(semente), {}
    for classe, parte in ((Saidas, 0.4), (Tabelas, 0.2), (Inteiro, 0.2), (Conversao, 0.2)):
        escrita, mortes, tentativas = classe(pasta, url), 0, 0
        escrita.preparar()
        inicio = time.monotonic()
        assert esperar(dividir(escrita.fazer))
        prazo = time.monotonic() - inicio
        while mortes < round(quantas * parte):
            escrita.preparar()
            pid = dividir(escrita.fazer)
            time.sleep(sorteador.random() * prazo)
            os.kill(pid, signal.SIGKILL)
            viveu = esperar(pid)
            mortes += not viveu  # quem terminou antes do tiro não conta
            # A máquina pode ficar mais lenta ou mais rápida: o prazo acompanha a duração de agora.
            prazo *= 0.9 if viveu else 1.03
            tentativas += 1
            assert tentativas < 20 * quantas, "o prazo sorteado passa sempre do fim da escrita"
            escrita.conferir()
        escrita.preparar()
        # A boa execução do fim, também num filho: o pai nunca abre uma conexão que eles herdariam.
        assert esperar(dividir(escrita.fazer))
        escrita.conferir()
        relato[classe.__name__] = {
            "mortes": mortes, "tentativas": tentativas, "restos": escrita.restos(),
        }  # fmt: skip
    return relato


if __name__ == "__main__":
    quantas, semente, onde, url = sys.argv[1:]
    print(json.dumps(sorteio(int(quantas), int(semente), Path(onde), url)))
