"""Instalar o pacote da aula, de uma pasta ou do espelho de quem dá a aula, sem mais rede nenhuma.

De uma pasta, todos os sha256 são conferidos antes de tocar em qualquer coisa. Do espelho, só desce
o que falta neste computador; um download cortado recomeça do byte em que parou, e cada arquivo é
conferido ao chegar. Só a biblioteca padrão até os wheels entrarem.
"""

import contextlib
import http.client
import importlib
import os
import shutil
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from nucleo.base import arquivos, caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import megabytes
from nucleo.sala import maquina, pacote
from nucleo.sala.maquina import AVISO, OK, Item
from nucleo.sala.pacote import Arquivo, Manifesto, ModeloNoPacote, Progresso

BAIXADO = caminhos.RAIZ / "pacote-baixado"
TENTATIVAS = 5  # quedas seguidas sem um byte novo até desistir
SILENCIO = 30.0  # segundos sem um byte até contar como queda
_BLOCO = 1 << 20
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
    try:
        partes = urllib.parse.urlsplit(url)
        esquema, maquina_, _ = partes.scheme, partes.hostname, partes.port
    except ValueError:
        # Um colchete que não fecha, uma porta que não é número de 0 a 65535.
        esquema, maquina_ = "http", None
    if esquema not in ("http", "https"):
        por_que = (
            f"O espelho atende por http://, e este endereço começa com {url.split('://')[0]}://."
        )
    elif not maquina_:
        por_que = "Um endereço tem esta forma: http://IP:PORTA, e um IPv6 vai entre colchetes."
    else:
        return
    raise ErroDoUsuario(
        f"Não entendi o endereço {url!r}.",
        por_que,
        "Copie o que está na tela de quem dá a aula:  "
        "python lab/00_preparar.py --do-pacote http://IP:PORTA",
    )


class Pasta:
    """Um pacote numa pasta (o pen drive), conferido por inteiro ao abrir."""

    def __init__(self, pasta: Path, progresso: Progresso = lambda *_: None):
        self.pasta = pasta
        self.manifesto = pacote.conferir(pasta, progresso)

    def trazer(self, nomes: list[str]) -> Path:
        """A pasta onde estão os arquivos pedidos: aqui, a do próprio pacote."""
        return self.pasta

    def largar(self) -> None:
        """Nada a fazer: o pen drive fica como estava."""


class Espelho:
    """Um pacote servido pela rede local. O que desce fica em `destino` até o fim da instalação."""

    def __init__(
        self, url: str, progresso: Progresso = lambda *_: None, destino: Path | None = None
    ):
        self.url, self.destino = url.rstrip("/"), destino or BAIXADO
        self._progresso = progresso
        bruto = self._com_novas_tentativas(self._ler_manifesto)
        self.manifesto = pacote.ler_manifesto(bruto)

    def _ler_manifesto(self) -> bytes:
        with _ABRIR(f"{self.url}/pacote/{pacote.MANIFESTO}", timeout=SILENCIO) as resposta:
            return resposta.read(64 << 20)

    def trazer(self, nomes: list[str]) -> Path:
        """Baixa os arquivos pedidos (os que faltam), confere cada um e devolve a pasta deles.

        Erros: `ErroDoUsuario` sem espaço, se o espelho sumir ou se um arquivo chegar errado.
        """
        faltam = [
            n for n in nomes if not pacote.ja_esta(self.destino / n, self.manifesto.arquivos[n])
        ]
        ja = {n: _tamanho(self._parcial(n)) for n in faltam}
        total = self.manifesto.soma(nomes)
        falta = self.manifesto.soma(faltam) - sum(ja.values())
        if falta > (livre := pacote.espaco_livre(self.destino)):
            raise pacote.sem_espaco(self.destino, falta, livre)
        feito = total - self.manifesto.soma(faltam)

        for nome in faltam:
            base = feito
            self._um(
                nome, lambda n, base=base: self._progresso("baixando do espelho", base + n, total)
            )
            feito += self.manifesto.arquivos[nome].bytes
        return self.destino

    def largar(self) -> None:
        """Apaga o que desceu: já está instalado, e ocuparia o disco duas vezes."""
        shutil.rmtree(self.destino, ignore_errors=True)

    def _parcial(self, nome: str) -> Path:
        return self.destino / (nome + pacote.PARCIAL)

    def _um(self, nome: str, avanco) -> None:
        esperado, parcial = self.manifesto.arquivos[nome], self._parcial(nome)
        try:
            parcial.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(2):  # um pedaço de outra versão estraga a soma: recomeça uma vez do zero
                self._com_novas_tentativas(
                    lambda: self._continuar(nome, parcial, esperado, avanco),
                    lambda: _tamanho(parcial),
                )
                if pacote.ja_esta(parcial, esperado):
                    os.replace(parcial, self.destino / nome)
                    return
                parcial.unlink(missing_ok=True)
        except OSError as erro:
            raise pacote.erro_de_disco(erro, self.destino / nome, esperado.bytes) from None
        raise ErroDoUsuario(
            f"{nome} chegou diferente do que o manifesto diz.",
            f"Baixei duas vezes de {self.url} e o sha256 não confere.",
            "Avise quem dá a aula: o pacote que está sendo servido mudou ou está estragado.",
        )

    def _continuar(self, nome: str, parcial: Path, esperado: Arquivo, avanco) -> None:
        feito = _tamanho(parcial)
        if feito > esperado.bytes:
            parcial.unlink()
            feito = 0
        if feito == esperado.bytes and parcial.is_file():
            return
        pedido = urllib.request.Request(f"{self.url}/pacote/{urllib.parse.quote(nome)}")
        if feito:
            # Se o arquivo mudou no espelho, If-Range faz vir o inteiro em vez de um remendo.
            pedido.add_header("Range", f"bytes={feito}-")
            pedido.add_header("If-Range", f'"{esperado.sha256}"')
        with _ABRIR(pedido, timeout=SILENCIO) as resposta:
            faixa = resposta.headers.get("Content-Range", "")
            if resposta.status != 206 or not faixa.startswith(f"bytes {feito}-"):
                feito = 0
            with _gravando(), parcial.open("r+b" if feito else "wb") as f:
                f.seek(feito)
                # read1 dá o que já chegou: se a conexão cair, só se perde o que não veio.
                while feito <= esperado.bytes and (bloco := _lendo(resposta)):
                    f.write(bloco)
                    feito += len(bloco)
                    avanco(min(feito, esperado.bytes))
        if feito < esperado.bytes:
            raise _Queda("a conexão caiu no meio")

    def _com_novas_tentativas(self, fazer, medida=lambda: 0):
        # Enquanto chegam bytes novos, cada queda é só uma pausa: 40 pessoas numa rede sem fio caem.
        seguidas, antes = 0, medida()
        while True:
            try:
                return fazer()
            except _ErroAoGravar as erro:
                raise erro.erro from None
            except (_Queda, OSError, http.client.HTTPException) as erro:
                agora = medida()
                seguidas = 0 if agora > antes else seguidas + 1
                antes = agora
                codigo = getattr(erro, "code", None)
                if seguidas >= TENTATIVAS or codigo in (400, 403, 404, 405):
                    raise self._sumiu(erro) from None
                _pausa(seguidas)

    def _sumiu(self, erro: Exception) -> ErroDoUsuario:
        if getattr(erro, "code", None):
            por_que = f"Quem respondeu em {self.url} não é um espelho do laboratório ({erro.code})."
        else:
            por_que = f"{self.url} não responde ({getattr(erro, 'reason', None) or erro})."
        return ErroDoUsuario(
            "Não consegui falar com o espelho.",
            por_que,
            "Confira o endereço que está na tela de quem dá a aula e se as duas máquinas estão na "
            "mesma rede; depois rode de novo (o que já desceu se aproveita).",
        )


class _ErroAoGravar(Exception):
    # Um OSError do disco não pode passar por queda da rede, que também é OSError.
    def __init__(self, erro: OSError):
        super().__init__(str(erro))
        self.erro = erro


class _Queda(Exception):
    # A rede caiu no meio de um arquivo.
    pass


@contextlib.contextmanager
def _gravando():
    # Aqui dentro a leitura da rede já vem como _Queda: o OSError que sobra é do disco.
    try:
        yield
    except OSError as erro:
        raise _ErroAoGravar(erro) from None


def _lendo(resposta) -> bytes:
    try:
        return resposta.read1(_BLOCO)
    except (OSError, http.client.HTTPException) as erro:
        raise _Queda(str(erro)) from None


def _pausa(seguidas: int) -> None:
    import time

    time.sleep(min(0.2 * 2**seguidas, 3))


def _tamanho(arquivo: Path) -> int:
    return arquivo.stat().st_size if arquivo.is_file() else 0


# --- instalar ----------------------------------------------------------------------------


def instalar(fonte: "Pasta | Espelho", progresso: Progresso = lambda *_: None) -> list[Item]:
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
        comando = "python -m pip install -r requirements.txt   e depois este comando de novo"
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
    if sys.prefix == sys.base_prefix:
        cria = "py -m venv .venv" if os.name == "nt" else "python3 -m venv .venv"
        python = r".venv\Scripts\python" if os.name == "nt" else ".venv/bin/python"
        raise ErroDoUsuario(
            "Este é o Python do sistema, e não o de um ambiente só do laboratório.",
            "Instalar nele mexeria nos outros programas da máquina.",
            f"Rode  {cria}   e depois  {python} lab/00_preparar.py --do-pacote …",
        )
    nomes = list(manifesto.wheels[daqui])
    pasta = fonte.trazer(nomes) / pacote.WHEELS
    progresso(f"instalando {len(nomes)} pacotes do Python", 0, 1)
    wheels.instalar(pasta)
    progresso(f"instalando {len(nomes)} pacotes do Python", 1, 1)
    importlib.invalidate_caches()
    return Item(OK, f"pacotes do Python: {len(nomes)} instalados em {sys.prefix}")


def _instalar_modelo(fonte, m: ModeloNoPacote, progresso: Progresso) -> Item:
    from nucleo.modelos import fontes, smollm2

    nomes = fonte.manifesto.do_modelo(m.nome)
    if m.nome == "smollm2" and m.forma == "convertido":
        if smollm2.convertido():
            return Item(OK, "smollm2: já estava neste computador")
        return _pasta_inteira(fonte, m, nomes, smollm2.pasta_convertida(), progresso)
    if m.nome not in fontes.GPT2 or m.forma not in ("inteiro", "tabelas"):
        return Item(AVISO, f"{m.nome}: este laboratório não conhece esse modelo; não o instalei")
    if achado := fontes.em_cache(m.nome):
        pesos = fonte.manifesto.arquivos[f"{pacote.MODELOS}/{m.nome}/{pacote.PESOS}"]
        if m.forma == "inteiro" and not pacote.ja_esta(achado, pesos):
            return Item(
                AVISO, f"{m.nome}: já havia outro no cache, e não mexi nele", f"veja {achado}"
            )
        return Item(OK, f"{m.nome}: já estava neste computador")
    if m.forma == "tabelas":
        destino = fontes.so_tabelas(m.nome)
        if destino.is_file():
            return Item(OK, f"{m.nome}: já estava neste computador")
        pesos = f"{pacote.MODELOS}/{m.nome}/{pacote.PESOS}"
        return _copiar(fonte, m, {pesos: destino}, progresso)
    return _no_cache_do_hub(fonte, m, nomes, progresso)


def _no_cache_do_hub(fonte, m: ModeloNoPacote, nomes: list[str], progresso: Progresso) -> Item:
    # A forma que a biblioteca procura: refs/main diz a versão, e snapshots/VERSÃO tem os arquivos.
    from huggingface_hub import constants

    from nucleo.modelos import fontes

    pasta = Path(constants.HF_HUB_CACHE) / ("models--" + fontes.GPT2[m.nome].replace("/", "--"))
    versao = pasta / "snapshots" / m.versao
    item = _copiar(fonte, m, {n: versao / n.rpartition("/")[2] for n in nomes}, progresso)
    (pasta / "refs").mkdir(parents=True, exist_ok=True)
    (pasta / "refs" / "main").write_text(m.versao, encoding="utf-8", newline="\n")
    return item


def _copiar(fonte, m: ModeloNoPacote, para: dict[str, Path], progresso: Progresso) -> Item:
    manifesto: Manifesto = fonte.manifesto
    pasta, feito, total = fonte.trazer(list(para)), 0, manifesto.soma(para)

    def avanco(n: int) -> None:
        nonlocal feito
        feito += n
        progresso(f"guardando o {m.nome}", feito, total)

    # Os pesos por último: são eles que dizem que o modelo está pronto.
    for nome in sorted(para, key=lambda n: n.endswith(".safetensors")):
        pacote.copiar(pasta / nome, para[nome], avanco, manifesto.arquivos[nome])
    return Item(
        OK, f"{m.nome}: guardado em {next(iter(para.values())).parent} ({megabytes(total)})"
    )


def _pasta_inteira(fonte, m, nomes: list[str], destino: Path, progresso: Progresso) -> Item:
    # Ao lado, e troca de nome no fim: nunca há meio modelo no lugar.
    try:
        with arquivos.pasta_ao_lado(destino) as trabalho:
            item = _copiar(fonte, m, {n: trabalho / n.rpartition("/")[2] for n in nomes}, progresso)
    except OSError as erro:
        raise pacote.erro_de_disco(erro, destino, fonte.manifesto.soma(nomes)) from None
    return Item(OK, item.texto.replace(str(trabalho), str(destino)))
