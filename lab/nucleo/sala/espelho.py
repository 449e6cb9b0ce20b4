"""O espelho: serve um pacote, só para leitura, à turma que está na mesma rede.

A defesa é uma lista branca: só responde o que o manifesto conferido cita, por comparação exata do
caminho. Não há pasta a listar, `..` a resolver nem atalho a seguir. Quem fala HTTP (faixas de bytes,
muitos pedidos ao mesmo tempo) são o Starlette e o uvicorn.

Responde em `/pacote/…`, e também como o hub do Hugging Face: com `HF_ENDPOINT` apontado para cá, a
biblioteca acha os modelos como acharia lá.
"""

import contextlib
import errno
import mimetypes
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import megabytes
from nucleo.sala import pacote
from nucleo.sala.pacote import Arquivo, Manifesto

PORTA = 8765
_BLOCO = 1 << 20


@dataclass(frozen=True)
class _Servido:
    # Um arquivo da lista branca e a versão do modelo a que pertence ("" se não é de um modelo).
    caminho: Path
    esperado: Arquivo
    versao: str = ""


def aplicativo(pasta: Path, manifesto: Manifesto):
    """O aplicativo Starlette que serve um pacote já conferido.

    `manifesto` vem de `pacote.conferir(pasta)`: o espelho não serve o que não confere.
    """
    from starlette.applications import Starlette
    from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
    from starlette.routing import Route

    class Entrega(FileResponse):
        chunk_size = _BLOCO  # com 64 KiB, o padrão, 40 downloads pesam o triplo no processador

    raiz = Path(os.path.realpath(pasta))
    arquivos = _lista_branca(raiz, manifesto)

    async def responder(pedido):
        caminho = pedido.scope["path"]
        if caminho == "/":
            return HTMLResponse(pagina(manifesto, f"{pedido.url.scheme}://{pedido.url.netloc}"))
        servido = arquivos.get(caminho)
        if servido is None:
            return PlainTextResponse("não há isso aqui\n", 404, _erro_do_hub(caminho, manifesto))
        estado = _ainda_e_o_mesmo(servido)
        if estado is None:
            texto = "este arquivo mudou depois de conferido, e por isso não é servido\n"
            return PlainTextResponse(texto, 410)
        cabecalhos = {
            "ETag": f'"{servido.esperado.sha256}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-cache",
        }
        if servido.versao:
            cabecalhos["X-Repo-Commit"] = servido.versao
        tipo = mimetypes.guess_type(caminho)[0] or "application/octet-stream"
        return Entrega(servido.caminho, headers=cabecalhos, media_type=tipo, stat_result=estado)

    # Uma rota só: todo caminho passa pela mesma comparação, e outro método recebe 405.
    app = Starlette(routes=[Route("/{tudo:path}", responder, methods=["GET", "HEAD"])])
    app.router.redirect_slashes = False
    return app


def _repos(m: pacote.ModeloNoPacote) -> list[str]:
    # O GPT-2 também atende pelo nome antigo, sem a organização.
    return [m.repo, m.nome] if m.forma != "convertido" else [m.repo]


def _lista_branca(raiz: Path, manifesto: Manifesto) -> dict[str, _Servido]:
    do_manifesto = raiz / pacote.MANIFESTO
    este = Arquivo(do_manifesto.stat().st_size, pacote.sha256(do_manifesto))
    tabela = {f"/pacote/{pacote.MANIFESTO}": _Servido(do_manifesto, este)}
    for nome, esperado in manifesto.arquivos.items():
        tabela[f"/pacote/{nome}"] = _Servido(raiz / nome, esperado)
    for m in manifesto.modelos:
        for nome in manifesto.do_modelo(m.nome):
            servido = _Servido(raiz / nome, manifesto.arquivos[nome], m.versao)
            dentro = nome.removeprefix(f"{pacote.MODELOS}/{m.nome}/")
            for repo in _repos(m):
                for versao in ("main", m.versao):
                    tabela[f"/{repo}/resolve/{versao}/{dentro}"] = servido
    return tabela


def _erro_do_hub(caminho: str, manifesto: Manifesto) -> dict[str, str]:
    # A biblioteca distingue «não há esse arquivo» (e segue) de «não há esse modelo» (e para).
    do_modelo = any(caminho.startswith(f"/{r}/") for m in manifesto.modelos for r in _repos(m))
    return {"X-Error-Code": "EntryNotFound" if do_modelo else "RepoNotFound"}


def _ainda_e_o_mesmo(servido: _Servido) -> os.stat_result | None:
    # Quem trocasse um arquivo por um atalho, com o espelho no ar, não leva o que está fora.
    try:
        if os.path.realpath(servido.caminho) != str(servido.caminho):
            return None
        estado = os.stat(servido.caminho, follow_symlinks=False)
    except OSError:
        return None
    return estado if estado.st_size == servido.esperado.bytes else None


# --- a rede ------------------------------------------------------------------------------

TODOS = ("0.0.0.0", "::")  # os endereços que valem por todos os desta máquina


def escutar(endereco: str, porta: int) -> socket.socket:
    """Um soquete já escutando (porta 0: qualquer uma livre). Erros: `ErroDoUsuario`."""
    ipv6 = {"family": socket.AF_INET6} if ":" in endereco else {}
    if endereco == "::" and socket.has_dualstack_ipv6():
        ipv6["dualstack_ipv6"] = True  # os IPv4 também
    try:
        return socket.create_server((endereco, porta), backlog=2048, **ipv6)
    except OSError as erro:
        if isinstance(erro, socket.gaierror):
            raise _endereco_errado(f"Não conheço o endereço {endereco!r}.") from None
        if erro.errno == errno.EADDRNOTAVAIL:
            raise _endereco_errado(f"O endereço {endereco} não é desta máquina.") from None
        motivos = {
            errno.EADDRINUSE: "Outro programa já a usa.",
            errno.EACCES: "Este sistema não a permite a este usuário.",
        }
        raise ErroDoUsuario(
            f"Não consegui abrir a porta {porta} em {endereco}.",
            motivos.get(erro.errno, f"O sistema respondeu: {erro.strerror}."),
            f"Escolha outra:  --porta {porta + 1 if 1023 < porta < 65535 else PORTA}",
        ) from None


def _endereco_errado(o_que: str) -> ErroDoUsuario:
    return ErroDoUsuario(
        o_que,
        "--endereco recebe um dos endereços desta máquina (0.0.0.0 são todos).",
        f"Sem a opção, o espelho escolhe:  esta máquina tem {', '.join(enderecos())}",
    )


def url(endereco: str, porta: int) -> str:
    """O que se digita no navegador; um IPv6 vai entre colchetes: http://[::1]:8765."""
    return f"http://[{endereco}]:{porta}" if ":" in endereco else f"http://{endereco}:{porta}"


def enderecos() -> list[str]:
    """Os endereços IPv4 desta máquina na rede local, o mais provável primeiro; loopback se não há."""
    achados = []
    for alvo in ("192.0.2.1", "10.255.255.255", "192.168.255.255"):
        # Conectar um soquete UDP não manda nada: só pergunta ao sistema por onde sairia.
        with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as s:
            s.connect((alvo, 9))
            achados.append(s.getsockname()[0])
    with contextlib.suppress(OSError):
        achados += socket.gethostbyname_ex(socket.gethostname())[2]
    de_fora = [e for e in dict.fromkeys(achados) if not e.startswith("127.")]
    return de_fora or ["127.0.0.1"]


def servidor(app):
    """O `uvicorn.Server` do espelho; `.run(sockets=[…])` atende até Ctrl-C (ou `.should_exit`)."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off",
        timeout_graceful_shutdown=2, timeout_keep_alive=30, ws="none",
    )  # fmt: skip
    return uvicorn.Server(config)


# --- a página ----------------------------------------------------------------------------


def comandos_do_hub(manifesto: Manifesto, url: str) -> tuple[str, str] | None:
    """O comando que baixa os GPT-2 deste espelho, em bash e em PowerShell; None se não há nenhum."""
    nomes = ",".join(m.nome for m in manifesto.modelos if m.forma != "convertido")
    if not nomes:
        return None
    return (
        f"HF_ENDPOINT={url} .venv/bin/python lab/00_preparar.py --modelos {nomes}",
        f'$env:HF_ENDPOINT="{url}"; .venv\\Scripts\\python lab\\00_preparar.py --modelos {nomes}',
    )


def pagina(manifesto: Manifesto, url: str) -> str:
    """A página inicial, com os comandos para quem chega. `url` é o endereço pelo qual chegou."""
    partes = {f"modelo {m.nome}": manifesto.do_modelo(m.nome) for m in manifesto.modelos}
    partes |= {f"pacotes do Python para {a}": w for a, w in manifesto.wheels.items()}
    return pacote.molde(
        "pagina.html",
        zip=pacote.REPOSITORIO,
        tamanho=megabytes(manifesto.arquivos[pacote.REPOSITORIO].bytes),
        url=url,
        comandos=comandos_do_hub(manifesto, url),
        partes={nome: megabytes(manifesto.soma(quais)) for nome, quais in partes.items()},
        data=manifesto.feito_em,
        digital=manifesto.digital,
    )
