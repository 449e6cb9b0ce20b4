"""A conversa com o hub do Hugging Face: rápida para desistir, econômica para baixar.

Regras da casa: primeiro o cache local, a rede só quando falta algo; sem rede, a decisão
sai em menos de 5 segundos (as novas tentativas da biblioteca levam mais de 20); dos
modelos grandes baixamos só os bytes de wte e wpe, que o cabeçalho do safetensors localiza. Um
download que cai, ou que alguém interrompe, continua do byte em que parou, e dois processos nunca
escrevem no mesmo arquivo.
`HF_ENDPOINT`, `HF_HOME`, `HF_HUB_OFFLINE` e as variáveis de proxy valem como sempre.
"""

import contextlib
import json
import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from nucleo.base.arquivos import motivo_de, so_um
from nucleo.base.descida import CAIU, SEM_LUGAR, Caiu, DoZero, descer, insistir, parcial_de, sha256
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import tensores
from nucleo.modelos.tensores import Tensor, interpretar_cabecalho

# No Windows o cache copia em vez de ligar arquivos; o aviso disso parece erro e não é.
os.environ.setdefault("HF_HUB_DISABLE_SYMLINKS_WARNING", "1")

PRAZO = 4.0  # segundos de silêncio até decidir que não há rede; o limite da casa é 5
ESPERA = 15.0  # segundos para responder, se aceitou a conexão: é lento, mas está lá; LAB_ESPERA muda os dois
SILENCIO = 30.0  # segundos sem um byte no meio de um download até desistir
_PRIMEIRA_LEITURA = 64 * 1024  # o cabeçalho do GPT-2 XL tem uns 60 KB: quase sempre basta
_FAIXA = 8 << 20  # bytes por pedido: a conexão não fica aberta por centenas de MB
MAIOR_NUMERO = 1e4  # nenhuma wte ou wpe publicada passa de 10: isto é lixo, e não peso

DEMOROU = "o hub demorou demais para responder"
RECUSADA = "a conexão com o hub foi recusada"
PROXY = "o proxy recusou a conexão (confira HTTP_PROXY e HTTPS_PROXY)"
DE_QUEM = "há um proxy configurado: confira HTTP_PROXY e HTTPS_PROXY"
NAO_E_O_HUB = "quem respondeu não foi o hub (página de login da rede? abra o navegador e entre)"
OUTRO_TAMANHO = "o arquivo chegou com um tamanho diferente do que o hub anunciou"
OUTROS_BYTES = "os bytes que chegaram não são os que o hub publicou (trocados no caminho?)"
ESPERANDO = "outro processo está baixando; esperando por ele"
_CODIGOS = {
    407: PROXY,
    404: "o hub não tem esse arquivo (código 404)",
    403: "o hub recusou o acesso (código 403)",
    401: "o hub recusou o acesso (código 401)",
}
# O que o sistema ou a biblioteca escrevem, em minúsculas: a primeira linha que servir dá o motivo.
_SINAIS = (
    (
        ("certificate", "ssl"),
        "o certificado da conexão não é confiável (rede com inspeção?): "
        "aponte SSL_CERT_FILE para o certificado da instituição",
    ),
    (  # cada sistema diz à sua maneira que não achou o endereço: Linux, Windows e macOS
        ("name or service", "name resolution", "getaddrinfo", "nodename nor", "unreachable"),
        "sem internet (o endereço do hub não foi encontrado)",
    ),
    (("proxy",), PROXY),
    (("refused", "recus"), RECUSADA),
    (("timed out", "timeout"), DEMOROU),
    (("peer closed", "reset", "disconnected"), CAIU),
)

Progresso = Callable[[str, int, int], None]
"""Chamada com (o que está descendo, bytes já recebidos, bytes no total)."""


def _mudo(_nome: str, _feito: int, _total: int) -> None:
    pass


class SemRede(Exception):
    """O hub não pôde atender. `motivo` é uma frase em português, para a tela."""

    def __init__(self, motivo: str):
        super().__init__(motivo)
        self.motivo = motivo


def desligado() -> bool:
    """True se o ambiente pede para não abrir rede nenhuma (HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE)."""
    from huggingface_hub import constants

    return constants.HF_HUB_OFFLINE


def no_cache(repo: str, arquivo: str) -> Path | None:
    """O caminho do arquivo no cache local do hub, ou None. Não abre rede."""
    from huggingface_hub import try_to_load_from_cache

    achado = try_to_load_from_cache(repo, arquivo)
    # A biblioteca devolve um objeto próprio para "sei que não existe": só texto é caminho.
    return Path(achado) if isinstance(achado, str) and Path(achado).is_file() else None


# --- perguntar ---------------------------------------------------------------------------


def _prazo(funcao: Callable, segundos: float, alguem: Callable[[], bool] = lambda: False):
    # Resolver um nome (DNS) pode travar além de qualquer timeout de soquete: só uma thread
    # que se possa abandonar garante o prazo. `alguem` diz se vale esperar além dele.
    saida: dict = {}

    def corpo():
        try:
            saida["valor"] = funcao()
        except Exception as erro:
            saida["erro"] = erro

    fio = threading.Thread(target=corpo, daemon=True)
    fio.start()
    fio.join(segundos)
    if fio.is_alive() and segundos < ESPERA and alguem():
        fio.join(ESPERA - segundos)
        segundos = ESPERA
    if "erro" in saida:
        raise saida["erro"]
    if "valor" not in saida:
        raise SemRede(f"o hub não respondeu em {segundos:g} s; para esperar mais, LAB_ESPERA=60")
    return saida["valor"]


def _do_ambiente() -> float:
    # Quem sabe que a rede é lenta diz quanto esperar; o que não for um número (nem «inf») não vale.
    with contextlib.suppress(ValueError):
        pedida = float(os.environ.get("LAB_ESPERA", "0").replace(",", "."))
        return pedida if 0 < pedida <= 3600 else 0.0
    return 0.0


def _bater_na_porta() -> Callable[[], bool]:
    """Tenta abrir uma conexão com o hub (ou com o proxy), sem esperar; a função diz se já abriu."""
    from huggingface_hub import constants

    hub = urlsplit(constants.ENDPOINT)
    proxies = {} if proxy_bypass(hub.hostname or "") else getproxies()
    proxy = proxies.get(hub.scheme) or proxies.get("all")
    alvo, abriu = urlsplit(proxy) if proxy else hub, threading.Event()

    def bater():
        with contextlib.suppress(OSError, ValueError):
            porta = alvo.port or {"https": 443}.get(alvo.scheme, 80)
            socket.create_connection((alvo.hostname, porta), PRAZO).close()
            abriu.set()

    threading.Thread(target=bater, daemon=True).start()
    return abriu.is_set


def consultar(repo: str, arquivo: str):
    """Metadados do arquivo no hub (`size`, `etag`, `commit_hash`, `location`).

    O silêncio se decide em `PRAZO` s; quem aceitou a conexão tem `ESPERA`. Erros: `SemRede`, com o motivo
    em português.
    """
    if desligado():
        raise SemRede("HF_HUB_OFFLINE está ligado")
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    espera, url = _do_ambiente(), hf_hub_url(repo, arquivo)
    with _em_portugues(arquivo, 0):
        # Um segundo a mais: quem diz que acabou o tempo, e como esperar mais, é o `_prazo`.
        perguntar = partial(get_hf_file_metadata, url, timeout=(espera or ESPERA) + 1)
        meta = _prazo(perguntar, espera or PRAZO, _bater_na_porta())
    # Uma página de login responde 200 e não traz etag nem versão: não é o hub.
    if not meta.commit_hash or not meta.size:
        raise SemRede(NAO_E_O_HUB)
    return meta


def motivo_da_falha(erro: BaseException) -> str:
    """Uma frase em português para o erro de rede, sem jargão da biblioteca."""
    codigo = getattr(getattr(erro, "response", None), "status_code", None)
    cadeia = list(_cadeia(erro))
    if codigo == 429:
        espera = erro.response.headers.get("Retry-After", "")
        # O cabeçalho também pode ser uma data por extenso, que não se lê em segundos.
        return "o hub pediu para esperar (muitos pedidos deste endereço)" + (
            f": tente de novo em {espera} s" if espera.isdecimal() else ""
        )
    # Pelo túnel de um https, o proxy responde à biblioteca, e não a nós: só o tipo do erro o diz.
    if any("ProxyError" in type(e).__name__ for e in cadeia):
        return PROXY
    if codigo in _CODIGOS:
        return _CODIGOS[codigo]
    if codigo is not None and codigo >= 500:
        return f"o hub está com problemas (código {codigo})"
    texto = " ".join(map(str, cadeia)).lower()
    for sinais, motivo in _SINAIS:
        if any(sinal in texto for sinal in sinais):
            de_proxy = motivo == RECUSADA and getproxies().keys() & {"http", "https", "all"}
            return f"{RECUSADA} ({DE_QUEM})" if de_proxy else motivo
    return f"a conexão com o hub falhou ({type(erro).__name__})"


def _cadeia(erro: BaseException):
    while erro is not None:
        yield erro
        erro = erro.__cause__ or erro.__context__


@contextlib.contextmanager
def _em_portugues(arquivo: str, tamanho: int) -> Iterator[None]:
    """Dentro dele, o que a rede e o disco levantarem sai como `SemRede` ou `ErroDoUsuario`."""
    try:
        yield
    except (SemRede, ErroDoUsuario):
        raise
    except Caiu as erro:
        raise SemRede(str(erro)) from None
    except Exception as erro:
        # Erros de rede também podem ser OSError; os do disco trazem o arquivo ou o disco cheio.
        if getattr(erro, "errno", None) in SEM_LUGAR:
            raise ErroDoUsuario(
                f"Não coube no disco: {arquivo}.",
                f"São {tamanho / 1e6:.0f} MB e o disco do cache encheu.",
                "Libere espaço, ou mude o cache de lugar com a variável HF_HOME (ou LAB_CACHE).",
            ) from None
        if getattr(erro, "filename", None):
            raise ErroDoUsuario(
                f"Não consegui gravar {arquivo}.",
                f"A pasta do cache não aceitou o arquivo ({motivo_de(erro)}: {erro.filename}).",
                "Confira a permissão, ou mude o cache de lugar com a variável HF_HOME (ou LAB_CACHE).",
            ) from None
        raise SemRede(motivo_da_falha(erro)) from None


def _blocos(url: str, inicio: int, fim: int, inteiro: bool = False) -> Iterator[bytes]:
    """Os bytes [inicio, fim) do arquivo remoto, à medida que chegam.

    Com `inteiro`, `fim` é o tamanho do arquivo, e serve também um servidor que não sabe de Range.
    Erros: `Caiu` se vale a pena pedir o resto; `SemRede`; `DoZero`.
    """
    # A sessão é a da biblioteca: proxies e certificados como os dela.
    from huggingface_hub.utils import build_hf_headers, get_session

    cabecalhos = {
        **build_hf_headers(),
        "Range": f"bytes={inicio}-{fim - 1}",
        "Accept-Encoding": "identity",  # comprimido, o pedaço não teria os bytes pedidos
    }
    veio = inicio
    try:
        with get_session().stream(
            "GET", url, headers=cabecalhos, timeout=SILENCIO, follow_redirects=True
        ) as resposta:
            resposta.raise_for_status()
            _conferir_resposta(resposta, inicio, fim, inteiro)
            for bloco in resposta.iter_bytes():
                veio += len(bloco)
                yield bloco
    except (SemRede, DoZero):
        raise
    except Exception as erro:
        motivo = motivo_da_falha(erro)
        # Quem não respondeu nada em SILENCIO segundos já teve tempo: não se espera outra vez.
        if motivo == CAIU or (motivo == DEMOROU and veio > inicio):
            raise Caiu(motivo) from None
        raise SemRede(motivo) from None


def _conferir_resposta(resposta, inicio: int, fim: int, inteiro: bool) -> None:
    # Um intermediário confuso pode mandar outro trecho; gravá-lo estragaria a tabela em silêncio.
    if resposta.status_code == 200:
        if not inteiro:
            raise SemRede("o servidor não entrega pedaços de arquivo (sem suporte a Range)")
        if resposta.headers.get("Content-Length") != str(fim):
            raise SemRede(NAO_E_O_HUB)
        if inicio:
            raise DoZero
        return
    veio = resposta.headers.get("Content-Range", "")
    de, _, total = veio.partition("/")
    if inteiro and total not in ("*", str(fim)):
        raise SemRede(OUTRO_TAMANHO)
    if de != f"bytes {inicio}-{fim - 1}":
        raise SemRede("o servidor entregou outro pedaço do arquivo, e não o pedido")


# --- baixar ------------------------------------------------------------------------------


def baixar(repo: str, arquivo: str, progresso: Progresso = _mudo) -> Path:
    """Baixa o arquivo inteiro para o cache do hub e devolve o caminho; se já está lá, não abre rede.

    Uma conexão que cai é retomada do byte em que parou; quem interrompe o programa também continua
    dali na próxima vez (fica um .parcial ao lado). O sha256 que o hub publica é conferido.
    Erros: `SemRede`; `ErroDoUsuario` sem disco ou se o cache não aceitar arquivos.
    """
    if achado := no_cache(repo, arquivo):
        return achado
    meta = consultar(repo, arquivo)
    from huggingface_hub import constants, hf_hub_download, hf_hub_url
    from huggingface_hub.file_download import repo_folder_name
    from huggingface_hub.utils import logging

    # O cache é o da biblioteca (pesos em blobs/, com o etag por nome). Só o download é nosso: o dela
    # recomeça do zero, e uma morte súbita deixa lá 548 MB com um nome que ninguém mais procura.
    pasta = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")
    blob = pasta / "blobs" / re.sub(r"[^0-9A-Za-z_-]", "_", meta.etag or "")
    url = hf_hub_url(repo, arquivo, revision=meta.commit_hash)

    def confere(parcial: Path) -> bool:
        # O etag de um arquivo grande é o sha256 dele; o dos pequenos é outra soma, mais curta.
        return not re.fullmatch("[0-9a-f]{64}", blob.name) or sha256(parcial) == blob.name

    def pedir(n: int) -> Iterator[bytes]:
        return _blocos(url, n, meta.size, inteiro=True)

    logging.set_verbosity_error()  # os avisos de nova tentativa sairiam por cima da nossa barra
    with _em_portugues(arquivo, meta.size), _vez(blob.parent, progresso):
        for velho in blob.parent.glob("*.parcial"):
            # O pedaço de uma versão que já não se baixa. (Um config.json não apaga o dos pesos.)
            if velho != parcial_de(blob) and velho.stat().st_size <= meta.size:
                velho.unlink()
        if not blob.is_file() and not descer(
            blob, meta.size, pedir, confere, lambda n: progresso(arquivo, n, meta.size)
        ):
            raise SemRede(OUTROS_BYTES)
        # Com o blob no lugar a biblioteca só o liga em snapshots/; se o hub emudecer agora, não
        # esperamos com ela.
        espera = _do_ambiente() or ESPERA
        ligar = partial(hf_hub_download, repo, arquivo, etag_timeout=espera + 1)
        caminho = Path(_prazo(ligar, espera))
        if not caminho.is_symlink():
            blob.unlink(missing_ok=True)  # sem atalhos (Windows) ela copia: basta a cópia
    return caminho


def _vez(pasta: Path, progresso: Progresso):
    # Um download por pasta de cada vez: quem chega depois espera e acha o arquivo pronto.
    return so_um(pasta, ao_esperar=lambda: progresso(ESPERANDO, 0, 1))


def cabecalho_remoto(
    repo: str, arquivo: str = "model.safetensors"
) -> tuple[dict[str, Tensor], str]:
    """({nome: Tensor}, versão) do arquivo no hub, lendo só o cabeçalho (dezenas de KB).

    Erros: `SemRede`; `ErroDoUsuario` se o que veio não for um safetensors.
    """
    from huggingface_hub import hf_hub_url

    meta = consultar(repo, arquivo)
    url = hf_hub_url(repo, arquivo, revision=meta.commit_hash)
    lido = bytearray()

    def ler(ate: int) -> None:
        for bloco in _blocos(url, len(lido), ate):
            lido.extend(bloco)
        if len(lido) < ate:
            raise Caiu(CAIU)

    with _em_portugues(arquivo, meta.size):
        insistir(lambda: ler(min(_PRIMEIRA_LEITURA, meta.size)), lambda: len(lido))
        n = int.from_bytes(lido[:8], "little")
        if not 2 <= n <= min(meta.size - 8, 100_000_000):
            raise SemRede("o que veio do hub não é um safetensors")
        if len(lido) < 8 + n:
            insistir(lambda: ler(8 + n), lambda: len(lido))
    return interpretar_cabecalho(bytes(lido[8 : 8 + n]), arquivo, meta.size), meta.commit_hash


def baixar_tensores(
    repo: str, nomes: list[str], destino: Path, progresso: Progresso = _mudo
) -> Path:
    """Baixa só os tensores pedidos e os grava num safetensors pequeno em `destino`.

    `nomes` são finais de nome ("wte.weight"); o arquivo guarda os nomes sem o prefixo. Um
    download cortado recomeça do byte em que parou (fica um .parcial ao lado).
    Devolve `destino`. Erros: `SemRede`; `ErroDoUsuario` sem disco, se o cache não aceitar arquivos ou
    se faltar um tensor.
    """
    from huggingface_hub import hf_hub_url

    remoto, versao = cabecalho_remoto(repo)
    cabecalho = {"__metadata__": {"format": "pt", "origem": repo, "versao": versao}}
    trechos, posicao = [], 0
    for nome in nomes:
        achados = tensores.achar(remoto, nome)
        if len(achados) != 1:
            raise ErroDoUsuario(
                f"O arquivo do hub não tem um único {nome}.",
                f"Em {repo} encontrei {len(achados)}; o arquivo mudou de formato?",
                "Avise quem mantém o laboratório, com esta mensagem.",
            )
        (t,) = achados
        fim = posicao + t.fim - t.inicio
        cabecalho[nome] = {
            "dtype": t.tipo,
            "shape": list(t.forma),
            "data_offsets": [posicao, fim],
        }
        trechos.append((t.inicio, t.fim))
        posicao = fim
    bruto = json.dumps(cabecalho).encode()
    bruto += b" " * (-len(bruto) % 8)  # os números começam alinhados, como o formato recomenda
    prefixo = struct.pack("<Q", len(bruto)) + bruto
    total, url = len(prefixo) + posicao, hf_hub_url(repo, "model.safetensors", revision=versao)

    def pedir(n: int) -> Iterator[bytes]:
        # O arquivo daqui é o prefixo e, colados, os trechos do de lá.
        yield prefixo[n:]
        onde = len(prefixo)
        for inicio, fim in trechos:
            for i in range(inicio + max(0, n - onde), fim, _FAIXA):
                yield from _blocos(url, i, min(i + _FAIXA, fim))
            onde += fim - inicio

    with _em_portugues(destino.name, total), _vez(destino.parent, progresso):
        parcial = parcial_de(destino)
        if parcial.is_file():
            # O pedaço só serve se começar com este mesmo cabeçalho, que leva a versão do hub.
            with parcial.open("rb") as f:
                servir = f.read(len(prefixo)) == prefixo
            if not servir:
                parcial.unlink()
        # Outro processo pode ter acabado de baixá-las.
        if not destino.is_file() and not descer(
            destino, total, pedir, _sao_pesos, lambda n: progresso(destino.name, n, total)
        ):
            raise SemRede(OUTROS_BYTES)
    return destino


def _sao_pesos(arquivo: Path) -> bool:
    """False se há um NaN, um infinito ou um número absurdo: bytes trocados viram isso.

    De um pedaço de arquivo não há sha256 publicado: é o que se pode conferir.
    """
    import numpy as np

    for t in tensores.ler_cabecalho(arquivo).values():
        if t.tipo == "F32" and 0 not in t.forma:
            tabela = tensores.ler(t)
            for i in range(0, len(tabela), 4096):
                if not np.abs(tabela[i : i + 4096]).max() < MAIOR_NUMERO:  # com NaN, também não é
                    return False
    return True
