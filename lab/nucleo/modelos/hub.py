"""A conversa com o hub do Hugging Face: rápida para desistir, econômica para baixar.

Regras da casa: primeiro o cache local, a rede só quando falta algo; sem rede, a decisão
sai em menos de 5 segundos (as novas tentativas da biblioteca levam mais de 20); dos
modelos grandes baixamos só os bytes de wte e wpe, que o cabeçalho do safetensors localiza. Um
download que cai, ou que alguém interrompe, continua do byte em que parou, e dois processos nunca
escrevem no mesmo arquivo.
`HF_ENDPOINT`, `HF_HOME`, `HF_HUB_OFFLINE` e as variáveis de proxy valem como sempre.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import getproxies

from nucleo.base.arquivos import so_um
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import tensores
from nucleo.modelos.tensores import Tensor, interpretar_cabecalho

# No Windows o cache copia em vez de ligar arquivos; o aviso disso parece erro e não é.
os.environ.setdefault("HF_HUB_DISABLE_SYMLINKS_WARNING", "1")

PRAZO = 4.0  # segundos para decidir se há rede; o limite da casa é 5
SILENCIO = 30.0  # segundos sem um byte no meio de um download até desistir
_PRIMEIRA_LEITURA = 64 * 1024  # o cabeçalho do GPT-2 XL tem uns 60 KB: quase sempre basta
_FAIXA = 8 << 20  # bytes por pedido: a conexão não fica aberta por centenas de MB
TENTATIVAS = 3  # pedidos seguidos sem um byte novo até desistir de uma conexão que cai
PAUSA = 1.0  # segundos entre esses pedidos
MAIOR_NUMERO = 1e4  # nenhuma wte ou wpe publicada passa de 10: isto é lixo, e não peso

_DE_REDE = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)

CAIU = "a conexão caiu no meio do download"
DEMOROU = "o hub demorou demais para responder"
RECUSADA = "a conexão com o hub foi recusada"
PROXY = "o proxy recusou a conexão (confira HTTP_PROXY e HTTPS_PROXY)"
DE_QUEM = "há um proxy configurado: confira HTTP_PROXY e HTTPS_PROXY"
NAO_E_O_HUB = "quem respondeu não foi o hub (página de login da rede? abra o navegador e entre)"
OUTRO_TAMANHO = "o arquivo chegou com um tamanho diferente do que o hub anunciou"
OUTROS_BYTES = "os bytes que chegaram não são os que o hub publicou (trocados no caminho?)"
ESPERANDO = "outro processo está baixando; esperando por ele"

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


def consultar(repo: str, arquivo: str):
    """Metadados do arquivo no hub (`size`, `etag`, `commit_hash`, `location`), em até `PRAZO` s.

    Erros: `SemRede`, com o motivo em português.
    """
    if desligado():
        raise SemRede("HF_HUB_OFFLINE está ligado")
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    try:
        meta = _prazo(lambda: get_hf_file_metadata(hf_hub_url(repo, arquivo), timeout=PRAZO), PRAZO)
    except SemRede:
        raise
    except Exception as erro:
        raise SemRede(motivo_da_falha(erro)) from None
    # Uma página de login responde 200 e não traz etag nem versão: não é o hub.
    if not meta.commit_hash or not meta.size:
        raise SemRede(NAO_E_O_HUB)
    return meta


def motivo_da_falha(erro: BaseException) -> str:
    """Uma frase em português para o erro de rede, sem jargão da biblioteca."""
    codigo = getattr(getattr(erro, "response", None), "status_code", None)
    texto = " ".join(str(e) for e in _cadeia(erro))
    if codigo == 429:
        espera = erro.response.headers.get("Retry-After", "")
        # O cabeçalho também pode ser uma data por extenso, que não se lê em segundos.
        return "o hub pediu para esperar (muitos pedidos deste endereço)" + (
            f": tente de novo em {espera} s" if espera.isdecimal() else ""
        )
    # Pelo túnel de um https, o proxy responde à biblioteca, e não a nós: só o tipo do erro o diz.
    if codigo == 407 or any("ProxyError" in type(e).__name__ for e in _cadeia(erro)):
        return PROXY
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
        return PROXY
    if "refused" in texto.lower() or "recus" in texto.lower():
        return (
            f"{RECUSADA} ({DE_QUEM})"
            if getproxies().keys() & {"http", "https", "all"}
            else RECUSADA
        )
    if "timed out" in texto.lower() or "timeout" in texto.lower():
        return DEMOROU
    if "Consistency check" in texto:
        return OUTRO_TAMANHO
    if "peer closed" in texto or "reset" in texto.lower() or "disconnected" in texto.lower():
        return CAIU
    return f"a conexão com o hub falhou ({type(erro).__name__})"


def _cadeia(erro: BaseException):
    while erro is not None:
        yield erro
        erro = erro.__cause__ or erro.__context__


def baixar(repo: str, arquivo: str, progresso: Progresso = _mudo) -> Path:
    """Baixa o arquivo inteiro para o cache do hub e devolve o caminho; se já está lá, não abre rede.

    Uma conexão que cai é retomada do byte em que parou; quem interrompe o programa também continua
    dali na próxima vez (fica um .parcial ao lado). O sha256 que o hub publica é conferido.
    Erros: `SemRede`; `ErroDoUsuario` sem disco ou se o cache não aceitar arquivos.
    """
    if achado := no_cache(repo, arquivo):
        return achado
    meta = consultar(repo, arquivo)
    from huggingface_hub import constants, hf_hub_url
    from huggingface_hub.file_download import repo_folder_name

    # O cache é o da biblioteca (pesos em blobs/, com o etag por nome). Só o download é nosso: o dela
    # recomeça do zero, e uma morte súbita deixa lá 548 MB com um nome que ninguém mais procura.
    pasta = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")
    blob = pasta / "blobs" / re.sub(r"[^0-9A-Za-z_-]", "_", meta.etag or "")
    url = hf_hub_url(repo, arquivo, revision=meta.commit_hash)
    try:
        with _vez(blob.parent, progresso):
            if not blob.is_file():
                _descer_inteiro(url, blob, meta.size, lambda f, t: progresso(arquivo, f, t))
        return _ligar(repo, arquivo, blob)
    except (SemRede, ErroDoUsuario):
        raise
    except Exception as erro:
        raise _do_disco(erro, arquivo, meta.size) or SemRede(motivo_da_falha(erro)) from None


@contextlib.contextmanager
def _vez(pasta: Path, progresso: Progresso) -> Iterator[None]:
    # Um download por pasta de cada vez: quem chega depois espera e acha o arquivo pronto.
    with so_um(pasta, ao_esperar=lambda: progresso(ESPERANDO, 0, 1)):
        yield


def _ligar(repo: str, arquivo: str, blob: Path) -> Path:
    """Põe o blob no cache como a biblioteca o faz (snapshots/, refs/), e devolve o caminho de lá."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # os avisos de nova tentativa sairiam por cima da nossa barra
    # Com o blob no lugar ela só confirma a versão; se o hub emudecer agora, não esperamos com ela.
    caminho = _prazo(lambda: Path(hf_hub_download(repo, arquivo, etag_timeout=PRAZO)), 3 * PRAZO)
    if not caminho.is_symlink():
        blob.unlink(missing_ok=True)  # sem atalhos (Windows) ela copia: basta a cópia
    return caminho


def _descer_inteiro(
    url: str, destino: Path, tamanho: int, progresso: Callable[[int, int], None]
) -> None:
    """O arquivo de `tamanho` bytes em `destino`, retomado de um .parcial se houver, e conferido."""
    parcial = destino.with_name(destino.name + ".parcial")
    for velho in destino.parent.glob("*.parcial"):
        # O pedaço de uma versão que já não se baixa. (Um config.json não apaga o dos pesos.)
        if velho != parcial and velho.stat().st_size <= tamanho:
            velho.unlink()
    feito = min(parcial.stat().st_size, tamanho) if parcial.is_file() else 0
    if shutil.disk_usage(destino.parent).free < tamanho - feito:
        raise sem_disco(destino.name[:12], tamanho)

    def guardar(bloco: bytes) -> None:
        nonlocal feito
        f.write(bloco)
        feito += len(bloco)
        progresso(feito, tamanho)

    with _aberto(parcial, feito) as f:
        try:
            _com_folego(url, feito, tamanho, guardar, inteiro=True)
        except _DoZero:
            f.seek(0)
            f.truncate()
            feito = 0
            _com_folego(url, 0, tamanho, guardar, inteiro=True)
    # O etag de um arquivo grande é o sha256 dele; o dos pequenos é outra soma, mais curta.
    if re.fullmatch("[0-9a-f]{64}", destino.name) and sha256(parcial) != destino.name:
        parcial.unlink()
        raise SemRede(OUTROS_BYTES)
    os.replace(parcial, destino)


def sha256(arquivo: Path) -> str:
    """O sha256 do arquivo, em hexadecimal: a soma que o hub publica de cada arquivo grande."""
    soma = hashlib.sha256()
    with arquivo.open("rb") as f:
        while bloco := f.read(1 << 22):
            soma.update(bloco)
    return soma.hexdigest()


@contextlib.contextmanager
def _aberto(parcial: Path, manter: int) -> Iterator:
    """O .parcial aberto depois dos `manter` bytes que servem. Se nada mais chegar, ele não fica vazio
    para trás; se o disco encher, ele sai, para devolver o espaço."""
    try:
        with parcial.open("r+b" if manter else "wb") as f:
            f.seek(manter)
            f.truncate()
            yield f
            f.flush()
            os.fsync(f.fileno())
    except BaseException as erro:
        cheio = isinstance(erro, OSError) and erro.errno in (27, 28, 122)
        if cheio or (parcial.is_file() and not parcial.stat().st_size):
            parcial.unlink(missing_ok=True)
        raise


def _do_disco(erro: Exception, arquivo: str, tamanho: int) -> ErroDoUsuario | None:
    # Erros de rede também podem ser OSError; os do disco trazem o número do sistema.
    numero = getattr(erro, "errno", None)
    if not isinstance(erro, OSError) or numero is None or isinstance(erro, _DE_REDE):
        return None
    if numero in (27, 28, 122):  # 27: o sistema não deixa um arquivo deste tamanho
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


class _DoZero(Exception):
    """O servidor não sabe continuar do meio: o arquivo precisa recomeçar."""


def _com_folego(
    url: str, inicio: int, fim: int, receber: Callable[[bytes], object], inteiro: bool = False
) -> None:
    """`_pedaco`, repetido de onde a conexão caiu enquanto cada pedido trouxer algum byte novo."""
    vazios = 0
    while inicio < fim:
        antes = inicio

        def contar(bloco: bytes) -> None:
            nonlocal inicio
            receber(bloco)
            inicio += len(bloco)

        try:
            _pedaco(url, inicio, fim, contar, inteiro)
        except Exception as erro:
            motivo = erro.motivo if isinstance(erro, SemRede) else motivo_da_falha(erro)
            vazios = 0 if inicio > antes else vazios + 1
            # Quem não respondeu nada em SILENCIO segundos já teve tempo: não se espera outra vez.
            calado = motivo == DEMOROU and vazios
            if _do_disco(erro, "", 0) or motivo not in (CAIU, DEMOROU) or calado:
                raise
            if vazios == TENTATIVAS:
                raise
            time.sleep(PAUSA)


def _pedaco(
    url: str, inicio: int, fim: int, receber: Callable[[bytes], object], inteiro: bool = False
) -> None:
    # Entrega a `receber` os bytes [inicio, fim) do arquivo remoto, à medida que chegam: se a
    # conexão cair, o que chegou não se perde. A sessão é a da biblioteca: proxies e certificados.
    # Com `inteiro`, `fim` é o tamanho do arquivo, e serve também um servidor que não sabe de Range.
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
        resposta.raise_for_status()
        if resposta.status_code == 200 and inteiro:
            if resposta.headers.get("Content-Length") != str(fim):
                raise SemRede(NAO_E_O_HUB)
            if inicio:
                raise _DoZero
        elif resposta.status_code == 200:
            raise SemRede("o servidor não entrega pedaços de arquivo (sem suporte a Range)")
        else:
            _conferir_faixa(resposta.headers.get("Content-Range", ""), inicio, fim, inteiro)
        for bloco in resposta.iter_bytes():
            faltam -= len(bloco)
            if faltam < 0:
                raise SemRede(OUTRO_TAMANHO)
            receber(bloco)
    if faltam:
        raise SemRede(CAIU)


def _conferir_faixa(veio: str, inicio: int, fim: int, inteiro: bool) -> None:
    # Um intermediário confuso pode mandar outro trecho; gravá-lo estragaria a tabela em silêncio.
    faixa = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", veio)
    total = faixa[3] if faixa else "*"
    if inteiro and total not in ("*", str(fim)):
        raise SemRede(OUTRO_TAMANHO)
    if not faixa or (int(faixa[1]), int(faixa[2])) != (inicio, fim - 1):
        raise SemRede("o servidor entregou outro pedaço do arquivo, e não o pedido")


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
        _com_folego(url, 0, min(_PRIMEIRA_LEITURA, meta.size), lido.extend)
        n = int.from_bytes(lido[:8], "little")
        if not 2 <= n <= min(meta.size - 8, 100_000_000):
            raise SemRede("o que veio do hub não é um safetensors")
        if len(lido) < 8 + n:
            _com_folego(url, len(lido), 8 + n, lido.extend)
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

    url = hf_hub_url(repo, "model.safetensors", revision=versao)
    try:
        with _vez(destino.parent, progresso):
            if not destino.is_file():  # outro processo pode ter acabado de baixá-las
                trechos = [(t.inicio, t.fim) for _, t in escolhidos]
                _descer_trechos(url, trechos, prefixo, destino, progresso)
    except (SemRede, ErroDoUsuario):
        raise
    except Exception as erro:
        do_disco = _do_disco(erro, destino.name, total)
        raise do_disco or SemRede(motivo_da_falha(erro)) from None
    return destino


def _descer_trechos(
    url: str, trechos: list[tuple[int, int]], prefixo: bytes, destino: Path, progresso: Progresso
) -> None:
    """`prefixo` e depois cada trecho [início, fim) do arquivo remoto, retomando de um .parcial."""
    parcial = destino.with_suffix(".parcial")
    total, feito = sum(fim - inicio for inicio, fim in trechos), 0
    # O parcial só serve se começar com este mesmo cabeçalho, que leva a versão do hub.
    if parcial.is_file():
        with parcial.open("rb") as f:
            if f.read(len(prefixo)) == prefixo:
                feito = min(parcial.stat().st_size - len(prefixo), total)
    if shutil.disk_usage(destino.parent).free < total - feito:
        raise sem_disco(destino.name, total)

    def guardar(bloco: bytes) -> None:
        nonlocal feito
        if not feito:
            f.write(prefixo)
        f.write(bloco)
        feito += len(bloco)
        progresso(destino.name, feito, total)

    with _aberto(parcial, len(prefixo) + feito if feito else 0) as f:
        pulo = feito
        for inicio, fim in trechos:
            pulo, comeco = max(0, pulo - (fim - inicio)), min(inicio + pulo, fim)
            for i in range(comeco, fim, _FAIXA):
                _com_folego(url, i, min(i + _FAIXA, fim), guardar)
    if not _sao_pesos(parcial):
        parcial.unlink()
        raise SemRede(OUTROS_BYTES)
    os.replace(parcial, destino)


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
