"""Instalar o pacote da aula, de uma pasta ou do espelho de quem dá a aula, sem mais rede nenhuma.

De uma pasta, todos os sha256 são conferidos antes de tocar em qualquer coisa. Do espelho, só desce
o que falta neste computador; um download cortado recomeça do byte em que parou, e cada arquivo é
conferido ao chegar. Só a biblioteca padrão até os wheels entrarem.
"""

import importlib
import os
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from nucleo.base import arquivos, caminhos, descida
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import megabytes
from nucleo.sala import maquina, pacote
from nucleo.sala.maquina import AVISO, OK, Item
from nucleo.sala.pacote import ModeloNoPacote, Progresso, mudo

BAIXADO = caminhos.RAIZ / "pacote-baixado"
SILENCIO = 30.0  # segundos sem um byte até contar como queda
# Sem proxy: o espelho está na rede local, e o proxy da instituição não chega a ele.
_ABRIR = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def de_onde(origem: str, progresso: Progresso) -> "Pasta | Espelho":
    """A fonte que `origem` nomeia: uma pasta (já conferida) ou o endereço de um espelho.

    Erros: `ErroDoUsuario` se o endereço não for um, se a pasta não conferir ou se o espelho não
    responder.
    """
    if "://" in origem:
        _conferir_endereco(origem)
        return Espelho(origem, progresso)
    return Pasta(Path(os.path.expanduser(origem)), progresso)


def _conferir_endereco(url: str) -> None:
    esquema = url.split("://")[0]
    try:
        partes = urllib.parse.urlsplit(url)
        serve = partes.hostname and partes.port != 0
    except ValueError:  # um colchete que não fecha, uma porta que não é número de 0 a 65535
        serve = False
    if esquema in ("http", "https") and serve:
        return
    por_que = "Um endereço tem esta forma: http://IP:PORTA, e um IPv6 vai entre colchetes."
    if esquema not in ("http", "https"):
        por_que = f"O espelho atende por http://, e este endereço começa com {esquema}://."
    raise ErroDoUsuario(
        f"Não entendi o endereço {url!r}.",
        por_que,
        "Copie o que está na tela de quem dá a aula:  "
        "python lab/00_preparar.py --do-pacote http://IP:PORTA",
    )


class Pasta:
    """Um pacote numa pasta (o pen drive), conferido por inteiro ao abrir."""

    def __init__(self, pasta: Path, progresso: Progresso = mudo):
        self.pasta = pasta
        self.manifesto = pacote.conferir(pasta, progresso)

    def trazer(self, nomes: list[str]) -> Path:
        """A pasta onde estão os arquivos pedidos: aqui, a do próprio pacote."""
        return self.pasta

    def largar(self) -> None:
        """Nada a fazer: o pen drive fica como estava."""


class Espelho:
    """Um pacote servido pela rede local. O que desce fica em `destino` até o fim da instalação."""

    def __init__(self, url: str, progresso: Progresso = mudo, destino: Path | None = None):
        self.url, self.destino = url.rstrip("/"), destino or BAIXADO
        self._progresso = progresso
        try:
            bruto = descida.insistir(lambda: b"".join(self._pedir(pacote.MANIFESTO)))
        except descida.Caiu as erro:
            raise self._sumiu(str(erro)) from None
        self.manifesto = pacote.ler_manifesto(bruto)

    def trazer(self, nomes: list[str]) -> Path:
        """Baixa os arquivos pedidos (os que faltam), confere cada um e devolve a pasta deles.

        Erros: `ErroDoUsuario` sem espaço, se o espelho sumir ou se um arquivo chegar errado.
        """
        faltam = [n for n in nomes if not self._ja_veio(n)]
        ja = sum(descida.tamanho(descida.parcial_de(self.destino / n)) for n in faltam)
        falta, total = self.manifesto.soma(faltam), self.manifesto.soma(nomes)
        if falta - ja > (livre := pacote.espaco_livre(self.destino)):
            raise pacote.sem_espaco(self.destino, falta - ja, livre)
        feito = total - falta
        for nome in faltam:
            self._um(
                nome, lambda n, ja=feito: self._progresso("baixando do espelho", ja + n, total)
            )
            feito += self.manifesto.arquivos[nome].bytes
        return self.destino

    def largar(self) -> None:
        """Apaga o que desceu: já está instalado, e ocuparia o disco duas vezes."""
        shutil.rmtree(self.destino, ignore_errors=True)

    def _ja_veio(self, nome: str) -> bool:
        return pacote.ja_esta(self.destino / nome, self.manifesto.arquivos[nome])

    def _um(self, nome: str, avanco) -> None:
        esperado, destino = self.manifesto.arquivos[nome], self.destino / nome

        def confere(parcial: Path) -> bool:
            return pacote.ja_esta(parcial, esperado)

        def pedir(n: int) -> Iterator[bytes]:
            return self._pedir(nome, n, esperado.sha256)

        try:
            if descida.descer(destino, esperado.bytes, pedir, confere, avanco):
                return
        except descida.Caiu as erro:
            raise self._sumiu(str(erro)) from None
        except OSError as erro:
            raise pacote.erro_de_disco(erro, destino, esperado.bytes) from None
        raise ErroDoUsuario(
            f"{nome} chegou diferente do que o manifesto diz.",
            f"O que veio de {self.url} não tem o sha256 dele.",
            "Avise quem dá a aula: o pacote que está sendo servido mudou ou está estragado.",
        )

    def _pedir(self, nome: str, n: int = 0, soma: str = "") -> Iterator[bytes]:
        """Os bytes do arquivo, do n em diante. Erros: `Caiu`, `DoZero`, `ErroDoUsuario`."""
        url = f"{self.url}/pacote/{urllib.parse.quote(nome)}"
        try:
            yield from descida.por_http(url, n, soma, _ABRIR, SILENCIO)
        except urllib.error.HTTPError as erro:
            if erro.code in (400, 403, 404, 405):
                por_que = (
                    f"Quem respondeu em {self.url} não é um espelho do laboratório ({erro.code})."
                )
                raise self._sumiu(por_que) from None
            raise descida.Caiu(f"{self.url} não responde ({erro.reason}).") from None
        except descida.Caiu as erro:
            raise descida.Caiu(f"{self.url} não responde ({erro}).") from None

    def _sumiu(self, por_que: str) -> ErroDoUsuario:
        return ErroDoUsuario(
            "Não consegui falar com o espelho.",
            por_que,
            "Confira o endereço que está na tela de quem dá a aula e se as duas máquinas estão na "
            "mesma rede; depois rode de novo (o que já desceu se aproveita).",
        )


# --- instalar ----------------------------------------------------------------------------


def instalar(fonte: "Pasta | Espelho", progresso: Progresso = mudo) -> list[Item]:
    """Põe os wheels neste Python e os modelos nos caches; devolve o que foi feito, para a tela.

    O que já está no computador não se mexe. Erros: `ErroDoUsuario`.
    """
    itens = [_instalar_wheels(fonte, progresso)]
    itens += [_instalar_modelo(fonte, m, progresso) for m in fonte.manifesto.modelos]
    fonte.largar()
    return itens


def _instalar_wheels(fonte, progresso: Progresso) -> Item:
    if all(i.estado == OK for i in maquina.conferir_pacotes()):
        return Item(OK, "pacotes do Python: este já tem todos")
    from nucleo.sala import wheels

    daqui, manifesto = pacote.este_computador(), fonte.manifesto
    if daqui not in manifesto.wheels:
        comando = "python lab/00_preparar.py --so-pacotes   e depois este comando de novo"
        if not manifesto.wheels:
            raise ErroDoUsuario(
                "O pacote não traz os pacotes do Python, e este computador não tem todos.",
                "Ele foi montado com --sem-wheels: leva só os modelos e o laboratório.",
                f"Com internet, rode:  {comando}",
            )
        raise ErroDoUsuario(
            "O pacote não tem os pacotes do Python para este computador.",
            f"Este é {daqui}; o pacote traz: {', '.join(map(str, manifesto.wheels))}.",
            f"Use uma dessas versões do Python, ou, com internet, rode:  {comando}",
        )
    nomes = list(manifesto.wheels[daqui])
    pasta = fonte.trazer(nomes) / pacote.WHEELS
    progresso(f"instalando {len(nomes)} pacotes do Python", 0, 1)
    try:
        wheels.instalar(pasta)
    except wheels.PipFalhou as falha:
        raise ErroDoUsuario(
            "O pip não instalou os pacotes do Python.",
            falha.motivo,
            "Libere espaço em disco, se for o caso, e rode de novo.",
        ) from None
    progresso(f"instalando {len(nomes)} pacotes do Python", 1, 1)
    importlib.invalidate_caches()
    return Item(OK, f"pacotes do Python: {len(nomes)} instalados em {sys.prefix}")


def _instalar_modelo(fonte, m: ModeloNoPacote, progresso: Progresso) -> Item:
    from nucleo.modelos import fontes, smollm2

    ja_estava = Item(OK, f"{m.nome}: já estava neste computador")
    manifesto, nomes = fonte.manifesto, fonte.manifesto.do_modelo(m.nome)
    pesos = f"{pacote.MODELOS}/{m.nome}/{pacote.PESOS}"
    if m.nome == "smollm2" and m.forma == "convertido":
        if smollm2.convertido():
            return ja_estava
        return _pasta_inteira(fonte, m, nomes, smollm2.pasta_convertida(), progresso)
    if m.nome not in fontes.GPT2 or m.forma not in ("inteiro", "tabelas"):
        return Item(AVISO, f"{m.nome}: este laboratório não conhece esse modelo; não o instalei")
    if achado := fontes.em_cache(m.nome):
        if m.forma == "inteiro" and not pacote.ja_esta(achado, manifesto.arquivos[pesos]):
            outro = f"{m.nome}: já havia outro no cache, e não mexi nele"
            return Item(AVISO, outro, f"veja {achado}")
        return ja_estava
    if m.forma == "tabelas":
        destino = fontes.so_tabelas(m.nome)
        return ja_estava if destino.is_file() else _copiar(fonte, m, {pesos: destino}, progresso)
    return _no_cache_do_hub(fonte, m, nomes, progresso)


def _no_cache_do_hub(fonte, m: ModeloNoPacote, nomes: list[str], progresso: Progresso) -> Item:
    # A forma que a biblioteca procura: refs/main diz a versão, e snapshots/VERSÃO tem os arquivos.
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    from nucleo.modelos import fontes

    pasta = Path(constants.HF_HUB_CACHE) / repo_folder_name(
        repo_id=fontes.GPT2[m.nome], repo_type="model"
    )
    versao = pasta / "snapshots" / m.versao
    item = _copiar(fonte, m, {n: versao / n.rpartition("/")[2] for n in nomes}, progresso)
    (pasta / "refs").mkdir(exist_ok=True)
    (pasta / "refs" / "main").write_text(m.versao, encoding="utf-8", newline="\n")
    return item


def _copiar(fonte, m: ModeloNoPacote, para: dict[str, Path], progresso: Progresso) -> Item:
    manifesto = fonte.manifesto
    total = manifesto.soma(para)
    avanco = pacote.somando(f"guardando o {m.nome}", total, progresso)
    pasta = fonte.trazer(list(para))
    # Os pesos por último: são eles que dizem que o modelo está pronto.
    for nome in sorted(para, key=lambda n: n.endswith(".safetensors")):
        pacote.copiar(pasta / nome, para[nome], avanco, manifesto.arquivos[nome])
    onde = next(iter(para.values())).parent
    return Item(OK, f"{m.nome}: guardado em {onde} ({megabytes(total)})")


def _pasta_inteira(fonte, m, nomes: list[str], destino: Path, progresso: Progresso) -> Item:
    # Ao lado, e troca de nome no fim: nunca há meio modelo no lugar.
    try:
        with arquivos.pasta_ao_lado(destino) as trabalho:
            item = _copiar(fonte, m, {n: trabalho / n.rpartition("/")[2] for n in nomes}, progresso)
    except OSError as erro:
        raise pacote.erro_de_disco(erro, destino, fonte.manifesto.soma(nomes)) from None
    return Item(OK, item.texto.replace(str(trabalho), str(destino)))
