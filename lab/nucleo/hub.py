"""A conversa com o hub do Hugging Face: rápida para desistir, econômica para baixar.

Regras da casa: primeiro o cache local, a rede só quando falta algo; sem rede, a decisão
sai em menos de 5 segundos (as novas tentativas da biblioteca levam mais de 20); dos
modelos grandes baixamos só os bytes de wte e wpe, que o cabeçalho do safetensors localiza.
`HF_ENDPOINT`, `HF_HOME`, `HF_HUB_OFFLINE` e as variáveis de proxy valem como sempre.
"""

import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from nucleo.erros import ErroDoUsuario
from nucleo.tensores import Tensor, interpretar_cabecalho

# No Windows o cache copia em vez de ligar arquivos; o aviso disso parece erro e não é.
os.environ.setdefault("HF_HUB_DISABLE_SYMLINKS_WARNING", "1")

PRAZO = 4.0  # segundos para decidir se há rede; o limite da casa é 5
SILENCIO = 30.0  # segundos sem um byte no meio de um download até desistir
_PRIMEIRA_LEITURA = 64 * 1024  # o cabeçalho do GPT-2 XL tem uns 60 KB: quase sempre basta
_FAIXA = 8 << 20  # bytes por pedido: a conexão não fica aberta por centenas de MB

_DE_REDE = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)

CAIU = "a conexão caiu no meio do download"

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
    sim = {"1", "true", "yes", "on"}
    return any(
        os.environ.get(v, "").lower() in sim for v in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def no_cache(repo: str, arquivo: str) -> Path | None:
    """O caminho do arquivo no cache local do hub, ou None. Não abre rede."""
    from huggingface_hub import try_to_load_from_cache

    achado = try_to_load_from_cache(repo, arquivo)
    # A biblioteca devolve um objeto próprio para "sei que não existe": só texto é caminho.
    return Path(achado) if isinstance(achado, str) and Path(achado).is_file() else None


def _prazo(funcao: Callable, segundos: float):
    # Resolver um nome (DNS) pode travar além de qualquer timeout de soquete: só uma thread
    # que se possa abandonar garante o prazo.
    saida: dict = {}

    def corpo():
        try:
            saida["valor"] = funcao()
        except Exception as erro:
            saida["erro"] = erro

    fio = threading.Thread(target=corpo, daemon=True)
    fio.start()
    fio.join(segundos)
    if "erro" in saida:
        raise saida["erro"]
    if "valor" not in saida:
        raise SemRede(f"o hub não respondeu em {segundos:g} s")
    return saida["valor"]


def consultar(repo: str, arquivo: str, prazo: float = PRAZO):
    """Metadados do arquivo no hub (`size`, `etag`, `commit_hash`, `location`), em até `prazo` s.

    Erros: `SemRede`, com o motivo em português.
    """
    if desligado():
        raise SemRede("HF_HUB_OFFLINE está ligado")
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    try:
        meta = _prazo(lambda: get_hf_file_metadata(hf_hub_url(repo, arquivo), timeout=prazo), prazo)
    except SemRede:
        raise
    except Exception as erro:
        raise SemRede(motivo_da_falha(erro)) from None
    # Uma página de login responde 200 e não traz etag nem versão: não é o hub.
    if not meta.commit_hash or not meta.size:
        raise SemRede(
            "quem respondeu não foi o hub (página de login da rede? abra o navegador e entre)"
        )
    return meta


def motivo_da_falha(erro: BaseException) -> str:
    """Uma frase em português para o erro de rede, sem jargão da biblioteca."""
    codigo = getattr(getattr(erro, "response", None), "status_code", None)
    texto = " ".join(str(e) for e in _cadeia(erro))
    if codigo == 429:
        espera = erro.response.headers.get("Retry-After", "")
        return "o hub pediu para esperar (muitos pedidos deste endereço)" + (
            f": tente de novo em {espera} s" if espera else ""
        )
    if codigo in (401, 403):
        return f"o hub recusou o acesso (código {codigo})"
    if codigo == 404:
        return "o hub não tem esse arquivo (código 404)"
    if codigo is not None and codigo >= 500:
        return f"o hub está com problemas (código {codigo})"
    if "CERTIFICATE" in texto.upper() or "SSL" in texto.upper():
        return (
            "o certificado da conexão não é confiável (rede com inspeção?): "
            "aponte SSL_CERT_FILE para o certificado da instituição"
        )
    # Cada sistema diz à sua maneira que não achou o endereço: Linux, Windows e macOS.
    sem_nome = ("Name or service", "name resolution", "getaddrinfo", "nodename nor servname")
    if any(frase in texto for frase in sem_nome) or "unreachable" in texto.lower():
        return "sem internet (o endereço do hub não foi encontrado)"
    if "proxy" in texto.lower():
        return "o proxy recusou a conexão"
    if "refused" in texto.lower() or "recus" in texto.lower():
        return "a conexão com o hub foi recusada"
    if "timed out" in texto.lower() or "timeout" in texto.lower():
        return "o hub demorou demais para responder"
    if "Consistency check" in texto:
        return "o arquivo chegou com um tamanho diferente do que o hub anunciou"
    if "peer closed" in texto or "reset" in texto.lower() or "disconnected" in texto.lower():
        return CAIU
    return f"a conexão com o hub falhou ({type(erro).__name__})"


def _cadeia(erro: BaseException):
    while erro is not None:
        yield erro
        erro = erro.__cause__ or erro.__context__


def baixar(repo: str, arquivo: str, progresso: Progresso = _mudo) -> Path:
    """Baixa o arquivo inteiro para o cache do hub e devolve o caminho; se já está lá, não abre rede.

    Uma conexão que cai é retomada do byte em que parou, até 5 vezes seguidas; já quem interrompe o
    programa recomeça do zero (a biblioteca não aproveita o pedaço), e nada fica pela metade.
    Erros: `SemRede`; `ErroDoUsuario` sem disco ou se o cache não aceitar arquivos.
    """
    if achado := no_cache(repo, arquivo):
        return achado
    meta = consultar(repo, arquivo)
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # os avisos de nova tentativa sairiam por cima da nossa barra
    try:
        caminho = hf_hub_download(
            repo, arquivo, etag_timeout=PRAZO, tqdm_class=_barra(progresso, arquivo, meta.size)
        )
    except Exception as erro:
        raise _do_disco(erro, arquivo, meta.size) or SemRede(motivo_da_falha(erro)) from None
    return Path(caminho)


def _do_disco(erro: Exception, arquivo: str, tamanho: int) -> ErroDoUsuario | None:
    # Erros de rede também podem ser OSError; os do disco trazem o número do sistema.
    numero = getattr(erro, "errno", None)
    if not isinstance(erro, OSError) or numero is None or isinstance(erro, _DE_REDE):
        return None
    if numero in (28, 122):
        return sem_disco(arquivo, tamanho)
    return ErroDoUsuario(
        f"Não consegui gravar {arquivo}.",
        f"A pasta do cache não aceitou o arquivo ({erro.strerror}: {erro.filename}).",
        "Confira a permissão, ou mude o cache de lugar com a variável HF_HOME (ou LAB_CACHE).",
    )


def sem_disco(arquivo: str, tamanho: int) -> ErroDoUsuario:
    """O erro de disco cheio, com o tamanho que falta caber."""
    return ErroDoUsuario(
        f"Não coube no disco: {arquivo}.",
        f"São {tamanho / 1e6:.0f} MB e o disco do cache encheu.",
        "Libere espaço, ou mude o cache de lugar com a variável HF_HOME (ou LAB_CACHE).",
    )


def _barra(progresso: Progresso, nome: str, total: int):
    from huggingface_hub.utils import tqdm

    class Barra(tqdm):
        """Repassa o avanço da biblioteca a quem desenha a barra; não escreve nada."""

        def __init__(self, *a, **k):
            k.pop("disable", None)
            super().__init__(*a, disable=True, **k)
            self._feito = k.get("initial") or 0

        def update(self, n=1):
            self._feito += n or 0
            progresso(nome, int(self._feito), int(total))

    return Barra


def _pedaco(url: str, inicio: int, fim: int, receber: Callable[[bytes], object]) -> None:
    # Entrega a `receber` os bytes [inicio, fim) do arquivo remoto, à medida que chegam: se a
    # conexão cair, o que chegou não se perde. A sessão é a da biblioteca: proxies e certificados.
    from huggingface_hub.utils import build_hf_headers, get_session

    cabecalhos = {
        **build_hf_headers(),
        "Range": f"bytes={inicio}-{fim - 1}",
        "Accept-Encoding": "identity",  # comprimido, o pedaço não teria os bytes pedidos
    }
    faltam = fim - inicio
    with get_session().stream(
        "GET", url, headers=cabecalhos, timeout=SILENCIO, follow_redirects=True
    ) as resposta:
        if resposta.status_code == 200:
            raise SemRede("o servidor não entrega pedaços de arquivo (sem suporte a Range)")
        resposta.raise_for_status()
        # Um intermediário confuso pode mandar outro trecho; gravá-lo estragaria a tabela em silêncio.
        veio = resposta.headers.get("Content-Range", "")
        if not veio.startswith(f"bytes {inicio}-{fim - 1}/"):
            raise SemRede("o servidor entregou outro pedaço do arquivo, e não o pedido")
        for bloco in resposta.iter_bytes():
            faltam -= len(bloco)
            receber(bloco)
    if faltam:
        raise SemRede(CAIU)


def cabecalho_remoto(
    repo: str, arquivo: str = "model.safetensors"
) -> tuple[dict[str, Tensor], str]:
    """({nome: Tensor}, versão) do arquivo no hub, lendo só o cabeçalho (dezenas de KB).

    Erros: `SemRede`; `ErroDoUsuario` se o que veio não for um safetensors.
    """
    from huggingface_hub import hf_hub_url

    meta = consultar(repo, arquivo)
    url = hf_hub_url(repo, arquivo, revision=meta.commit_hash)
    try:
        lido = bytearray()
        _pedaco(url, 0, min(_PRIMEIRA_LEITURA, meta.size), lido.extend)
        n = int.from_bytes(lido[:8], "little")
        if not 2 <= n <= min(meta.size - 8, 100_000_000):
            raise SemRede("o que veio do hub não é um safetensors")
        if len(lido) < 8 + n:
            _pedaco(url, len(lido), 8 + n, lido.extend)
        bruto = bytes(lido[8 : 8 + n])
    except (SemRede, ErroDoUsuario):
        raise
    except Exception as erro:
        raise SemRede(motivo_da_falha(erro)) from None
    return interpretar_cabecalho(bruto, arquivo, meta.size), meta.commit_hash


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
    escolhidos = []
    for nome in nomes:
        achados = [t for n, t in remoto.items() if n == nome or n.endswith("." + nome)]
        if len(achados) != 1:
            raise ErroDoUsuario(
                f"O arquivo do hub não tem um único {nome}.",
                f"Em {repo} encontrei {len(achados)}; o arquivo mudou de formato?",
                "Avise quem mantém o laboratório, com esta mensagem.",
            )
        escolhidos.append((nome, achados[0]))
    total = sum(t.fim - t.inicio for _, t in escolhidos)
    cabecalho, posicao = {"__metadata__": {"format": "pt", "origem": repo, "versao": versao}}, 0
    for nome, t in escolhidos:
        n = t.fim - t.inicio
        cabecalho[nome] = {
            "dtype": t.tipo,
            "shape": list(t.forma),
            "data_offsets": [posicao, posicao + n],
        }
        posicao += n
    bruto = json.dumps(cabecalho).encode()
    bruto += b" " * (-len(bruto) % 8)  # os números começam alinhados, como o formato recomenda
    prefixo = struct.pack("<Q", len(bruto)) + bruto

    parcial = destino.with_suffix(".parcial")
    url = hf_hub_url(repo, "model.safetensors", revision=versao)
    feito = 0

    def guardar(bloco: bytes) -> None:
        nonlocal feito
        f.write(bloco)
        feito += len(bloco)
        progresso(destino.name, feito, total)

    try:
        destino.parent.mkdir(parents=True, exist_ok=True)
        # O parcial só serve se começar com este mesmo cabeçalho, que leva a versão do hub.
        if parcial.is_file():
            with parcial.open("rb") as f:
                if f.read(len(prefixo)) == prefixo:
                    feito = min(parcial.stat().st_size - len(prefixo), total)
        with parcial.open("r+b" if feito else "wb") as f:
            if not feito:
                f.write(prefixo)
            f.seek(len(prefixo) + feito)
            f.truncate()
            pulo = feito
            for _, t in escolhidos:
                n = t.fim - t.inicio
                if pulo >= n:
                    pulo -= n
                    continue
                inicio, pulo = t.inicio + pulo, 0
                for i in range(inicio, t.fim, _FAIXA):
                    _pedaco(url, i, min(i + _FAIXA, t.fim), guardar)
            f.flush()
            os.fsync(f.fileno())
        os.replace(parcial, destino)
    except (SemRede, ErroDoUsuario):
        raise
    except Exception as erro:
        do_disco = _do_disco(erro, destino.name, total)
        if do_disco and erro.errno in (28, 122):
            parcial.unlink(missing_ok=True)
        raise do_disco or SemRede(motivo_da_falha(erro)) from None
    return destino
