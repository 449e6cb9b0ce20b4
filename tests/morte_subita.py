"""Mata escritas em instantes sorteados, ou numa operação exata, e confere o que sobra.

Não é um teste: é o programa que test_mortes.py roda, e que imprime um JSON. O processo importa tudo
uma vez e se divide (fork); o filho faz uma escrita de verdade (as saídas de uma lição, um download
de um servidor de loopback, uma conversão) e morre por SIGKILL, sem `finally` nem aviso. O pai, que
não a fez, confere o disco, e no fim roda a mesma escrita até o fim.

    PYTHONPATH=lab:tests python tests/morte_subita.py sorteio QUANTAS SEMENTE PASTA URL
    PYTHONPATH=lab:tests python tests/morte_subita.py pontos PASTA
"""

import contextlib
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

from nucleo.base import caderno as saida
from nucleo.base.caderno import Caderno, conferir_pasta
from nucleo.modelos import fontes, hub, smollm2, tensores

REPO = fontes.GPT2["gpt2-large"]


# --- quatro escritas -------------------------------------------------------------------------


def caderno(versao: int, figuras: int = 12) -> Caderno:
    """As saídas de uma lição: tabelas e figuras que dizem de que execução são. Par e ímpar diferem
    também nos nomes: cada execução tem arquivos que a outra não refaz."""
    c = Caderno("02", f"Execução {versao}")
    for i in range(figuras):
        c.figura(f"fig_{i}", f"execução {versao}\n".encode() * 2000, "uma figura")
    c.csv(f"so_de_{versao % 2}", ["execucao"], [[versao]])
    c.csv("tabela", ["execucao"], [[versao]] * 200)
    return c


def execucao_inteira(pasta: Path) -> int:
    """De que execução são as saídas. AssertionError se forem de duas, ou se faltar ou sobrar uma."""
    resultado = json.loads((pasta / "resultado.json").read_text(encoding="utf-8"))
    nomes = {p.name for p in pasta.iterdir() if not p.name.startswith(".parcial-")}
    assert nomes == set(resultado["arquivos"]), (nomes, resultado["arquivos"])
    versoes = set()
    for nome in nomes - {"resultado.json"}:
        texto = (pasta / nome).read_text(encoding="utf-8")
        versoes |= {int(p) for p in texto.split() if p.isdecimal()}
    assert len(versoes) == 1, f"mistura das execuções {sorted(versoes)}"
    return versoes.pop()


class Saidas:
    """As saídas de uma lição, gravadas por cima das da execução anterior."""

    def __init__(self, pasta: Path, _url: str):
        self.pasta, self.versao = pasta / "saidas", 0
        self.fazer()

    def fazer(self) -> None:
        conferir_pasta(self.pasta)  # como faz toda lição, ao começar
        caderno(self.versao).gravar(self.pasta)

    def conferir(self) -> None:
        # A próxima lição começa conferindo a pasta: é ela que termina a troca de quem morreu.
        conferir_pasta(self.pasta)
        inteira = execucao_inteira(self.pasta)
        assert inteira in (self.boa, self.versao), (inteira, self.boa, self.versao)
        assert not list(self.pasta.glob(".parcial-*"))

    def preparar(self) -> None:
        self.boa = execucao_inteira(self.pasta)
        self.versao += 1

    def restos(self) -> list[str]:
        return [p.name for p in self.pasta.glob(".*")]


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
        return [p.name for p in self.destino.parent.iterdir() if p != self.destino]


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
        return [p.name for p in self.destino.parent.iterdir() if p != self.destino]


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


# --- a morte num ponto exato ----------------------------------------------------------------------

OPERACOES = ("replace", "link", "unlink", "rmdir", "mkdir", "fsync", "open")


def morrer_na(operacao: int) -> None:
    """Deste ponto em diante, a operação de disco número `operacao` mata o processo antes de ocorrer."""
    conta = 0

    def vigiada(verdadeira):
        def chamar(*a, **k):
            nonlocal conta
            conta += 1
            if conta == operacao:
                os.kill(os.getpid(), signal.SIGKILL)
            return verdadeira(*a, **k)

        return chamar

    for nome in OPERACOES:
        setattr(os, nome, vigiada(getattr(os, nome)))


def pontos(pasta: Path) -> dict:
    """Mata a gravação das saídas antes de cada operação de disco, e a recuperação também."""
    mortes = recuperacoes = 0
    finais = set()
    for falhar in (False, True):
        operacao, viveu = 0, False
        while not viveu:
            operacao += 1
            onde = pasta / f"{falhar}_{operacao}"
            caderno(0, figuras=0).gravar(onde)

            def gravar(onde=onde, operacao=operacao, falhar=falhar):
                if falhar:
                    prender(onde / "tabela.csv")
                morrer_na(operacao)
                with contextlib.suppress(saida.ErroDoUsuario):
                    caderno(1, figuras=0).gravar(onde)

            viveu = esperar(dividir(gravar))
            mortes += not viveu
            # A recuperação também pode morrer, em qualquer operação dela, quantas vezes for.
            outra, passou = 0, False
            while not passou:
                outra += 1

                def recuperar(onde=onde, outra=outra):
                    morrer_na(outra)
                    conferir_pasta(onde)

                passou = esperar(dividir(recuperar))
                recuperacoes += not passou
                assert outra < 400
            finais.add(execucao_inteira(onde))
            assert not list(onde.glob(".*")), list(onde.glob(".*"))
            assert operacao < 400
            if viveu:
                assert execucao_inteira(onde) == (0 if falhar else 1)
    return {"mortes": mortes, "na_recuperacao": recuperacoes, "finais": sorted(finais)}


def prender(arquivo: Path) -> None:
    """Este arquivo não deixa que outro tome o seu lugar, como um aberto no Excel."""
    verdadeira = os.replace

    def teimosa(de, para):
        if Path(para) == arquivo and "antes" not in Path(de).parts:
            raise PermissionError(13, "aberto em outro programa", str(arquivo))
        return verdadeira(de, para)

    os.replace = teimosa


if __name__ == "__main__":
    if sys.argv[1] == "sorteio":
        quantas, semente, onde, url = sys.argv[2:]
        print(json.dumps(sorteio(int(quantas), int(semente), Path(onde), url)))
    else:
        print(json.dumps(pontos(Path(sys.argv[2]))))
