"""Um hub do Hugging Face de mentira, em loopback, que também sabe se comportar mal.

Fala o que a biblioteca huggingface_hub espera: HEAD e GET de /{repo}/resolve/{versão}/{arquivo},
com X-Repo-Commit, ETag, X-Linked-Size e faixas de bytes (Range). Conta pedidos e bytes, para os
testes poderem dizer «baixou uma vez», «só estes bytes» e «não abriu rede».

Como o hub de verdade, pode mandar os arquivos grandes para outro endereço (`cdn=True`): o HEAD
responde 302 e quem entrega os bytes é um segundo servidor.
"""

import hashlib
import re
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

VERSAO = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
_BLOCO = 1 << 20


@dataclass(frozen=True)
class Esparso:
    """Um arquivo enorme quase todo de zeros: só os pedaços dados existem. {posição: bytes}."""

    tamanho: int
    pedacos: dict[int, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.tamanho

    def __getitem__(self, fatia: slice) -> bytes:
        inicio, fim, _ = fatia.indices(self.tamanho)
        bruto = bytearray(fim - inicio)
        for onde, dados in self.pedacos.items():
            a, b = max(inicio, onde), min(fim, onde + len(dados))
            if a < b:
                bruto[a - inicio : b - inicio] = dados[a - onde : b - onde]
        return bytes(bruto)


@dataclass
class Pedido:
    """Um pedido que chegou. `faixa` é [início, fim) ou None; `enviados` são bytes de corpo."""

    metodo: str
    arquivo: str
    faixa: tuple[int, int] | None
    autorizacao: str | None
    no_cdn: bool
    enviados: int = 0


@dataclass
class Pane:
    """Um mau comportamento. `tipo`: "codigo", "login", "corte", "sem_range", "silencio", "lento",
    "tamanho" (o HEAD anuncia outro tamanho), "bytes" (cada byte vai com os bits de `valor` trocados) ou
    "faixa_errada". Vale `vezes` vezes (None: sempre)."""

    tipo: str
    valor: object = None
    metodo: str | None = None
    arquivo: str | None = None
    vezes: int | None = None
    cabecalhos: dict[str, str] = field(default_factory=dict)


class ServidorHub:
    """O servidor. `publicar` põe arquivos, `pane` estraga, `pedidos` conta. Feche com `fechar`."""

    def __init__(self, cdn: bool = False, certificado: tuple[Path, Path] | None = None):
        self._arquivos: dict[tuple[str, str], tuple] = {}  # (conteúdo, etag)
        self.pedidos: list[Pedido] = []
        self.panes: list[Pane] = []
        self._trava = threading.Lock()
        self._fechando = threading.Event()
        self._cdn = _abrir(self, no_cdn=True) if cdn else None
        self._hub = _abrir(self, no_cdn=False, certificado=certificado)
        self.url = _endereco(self._hub)
        if certificado:
            self.url = self.url.replace("http://", "https://")

    def publicar(self, repo: str, arquivo: str, conteudo: "bytes | Esparso") -> None:
        # O etag do hub é o sha256; o XL de mentira (6,4 GB) leva uma soma curta, como os pequenos.
        soma = (
            hashlib.sha256() if len(conteudo) < 1 << 30 else hashlib.sha1(repr(conteudo).encode())
        )
        for i in range(0, len(conteudo) if soma.digest_size == 32 else 0, _BLOCO):
            soma.update(conteudo[i : i + _BLOCO])
        self._arquivos[repo, arquivo] = conteudo, soma.hexdigest()

    def publicar_pasta(self, repo: str, pasta: Path) -> None:
        for caminho in sorted(pasta.iterdir()):
            self.publicar(repo, caminho.name, np.memmap(caminho, "u1", "r"))

    def pane(self, tipo: str, valor=None, **k) -> None:
        self.panes.append(Pane(tipo, valor, **k))

    def consertar(self) -> None:
        self.panes.clear()

    def esquecer(self) -> None:
        self.pedidos.clear()

    def bytes_enviados(self, arquivo: str | None = None) -> int:
        return sum(p.enviados for p in self.pedidos if arquivo in (None, p.arquivo))

    def faixas(self, arquivo: str = "model.safetensors") -> list[tuple[int, int]]:
        """As faixas pedidas por GET, na ordem; um GET sem Range aparece como o arquivo inteiro."""
        gets = [p for p in self.pedidos if p.metodo == "GET" and p.arquivo == arquivo]
        return [p.faixa for p in gets if p.faixa]  # um redirecionamento não entrega faixa nenhuma

    def fechar(self) -> None:
        self._fechando.set()
        for servidor in filter(None, (self._hub, self._cdn)):
            servidor.shutdown()
            servidor.server_close()

    # --- por dentro ---

    def _achar(self, caminho: str):
        casa = re.fullmatch(r"/(?:cdn/)?(.+?)/resolve/([^/]+)/(.+)", caminho)
        if not casa or casa[2] not in ("main", VERSAO):
            return None, None, ""
        return *self._arquivos.get((casa[1], casa[3]), (None, None)), casa[3]

    def _pane_para(self, metodo: str, arquivo: str) -> Pane | None:
        with self._trava:
            for pane in self.panes:
                if pane.metodo in (None, metodo) and pane.arquivo in (None, arquivo):
                    if pane.vezes is not None:
                        pane.vezes -= 1
                        if pane.vezes == 0:
                            self.panes.remove(pane)
                    return pane
        return None


class _Servidor(ThreadingHTTPServer):
    def handle_error(self, pedido, endereco):
        pass  # quem desliga no meio (um certificado recusado) não é assunto da tela do teste


def _abrir(dono: ServidorHub, no_cdn: bool, certificado=None) -> ThreadingHTTPServer:
    classe = type("Atendente", (_Atendente,), {"dono": dono, "no_cdn": no_cdn})
    servidor = _Servidor(("127.0.0.1", 0), classe)
    if certificado:
        contexto = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexto.load_cert_chain(*map(str, certificado))
        servidor.socket = contexto.wrap_socket(servidor.socket, server_side=True)
    servidor.daemon_threads = True
    servidor.block_on_close = False
    threading.Thread(target=servidor.serve_forever, args=(0.02,), daemon=True).start()
    return servidor


def _endereco(servidor: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{servidor.server_address[1]}"


class _Atendente(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    dono: ServidorHub
    no_cdn: bool

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._atender()

    def do_GET(self):
        self._atender()

    def _responder(self, codigo: int, corpo: bytes = b"", **cabecalhos) -> None:
        self.send_response(codigo)
        for nome, valor in cabecalhos.items():
            self.send_header(nome.replace("_", "-"), valor)
        self.send_header("Content-Length", str(len(corpo)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(corpo)

    def _atender(self) -> None:
        dono = self.dono
        conteudo, etag, arquivo = dono._achar(self.path)
        pedido = Pedido(self.command, arquivo, None, self.headers.get("Authorization"), self.no_cdn)
        dono.pedidos.append(pedido)
        pane = dono._pane_para(self.command, arquivo)
        tipo = pane.tipo if pane else ""
        if tipo == "silencio":
            # Aceita a conexão e nunca responde, como um firewall que engole pacotes.
            dono._fechando.wait()
            self.close_connection = True
            return None
        if tipo == "lento":
            dono._fechando.wait(pane.valor)
        if tipo == "codigo":
            return self._responder(pane.valor, b"{}", **pane.cabecalhos)
        if tipo == "login":
            return self._responder(200, b"<html>Entre na rede</html>", Content_Type="text/html")
        if conteudo is None:
            return self._responder(
                404, b"{}", X_Error_Code="EntryNotFound", X_Error_Message="Entry not found"
            )
        total = len(conteudo)
        anunciado = total + pane.valor if tipo == "tamanho" else total
        comuns = {
            "X-Repo-Commit": VERSAO,
            "ETag": f'"{etag}"',
            "X-Linked-Etag": f'"{etag}"',
            "X-Linked-Size": str(anunciado),
            "Accept-Ranges": "bytes",
        }
        if dono._cdn and not self.no_cdn:
            self.send_response(302)
            for nome, valor in comuns.items():
                self.send_header(nome, valor)
            self.send_header("Location", f"{_endereco(dono._cdn)}/cdn{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        inicio, fim = 0, total
        faixa = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if faixa and tipo != "sem_range":
            inicio = int(faixa[1])
            fim = min(int(faixa[2]) + 1, total) if faixa[2] else total
            if inicio >= total:
                return self._responder(416, Content_Range=f"bytes */{total}")
            if tipo == "faixa_errada":
                inicio, fim = inicio + pane.valor, fim + pane.valor
        pedido.faixa = (inicio, fim)
        self.send_response(206 if faixa and tipo != "sem_range" else 200)
        for nome, valor in comuns.items():
            self.send_header(nome, valor)
        if faixa and tipo != "sem_range":
            self.send_header("Content-Range", f"bytes {inicio}-{fim - 1}/{total}")
        self.send_header("Content-Length", str(fim - inicio))
        self.end_headers()
        if self.command == "HEAD":
            return None
        limite = fim
        if tipo == "corte":
            # A fração é do arquivo inteiro: quem pede a partir dali não recebe nada.
            limite = max(inicio, min(fim, int(total * pane.valor)))
        mascara = pane.valor if tipo == "bytes" else 0
        trocas = bytes(b ^ mascara for b in range(256)) if mascara else None
        for i in range(inicio, limite, _BLOCO):
            bloco = bytes(conteudo[i : min(i + _BLOCO, limite)])
            bloco = bloco.translate(trocas) if trocas else bloco
            try:
                self.wfile.write(bloco)
            except OSError:
                break  # quem pedia foi embora
            pedido.enviados += len(bloco)
        if limite < fim:
            self.close_connection = True
        return None


@contextmanager
def porta_fechada():
    """O endereço de uma porta de loopback em que ninguém escuta: a conexão é recusada."""
    servidor = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    endereco = _endereco(servidor)
    servidor.server_close()
    yield endereco
