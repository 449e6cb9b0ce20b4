"""Os wheels de um pacote: resolver para cada plataforma e Python, baixar, e instalar sem rede.

Para esta máquina quem resolve é o pip. Para outra, o pip não serve: ele julga as dependências
condicionais (o colorama só do Windows, a CUDA só do Linux) pela máquina em que roda. O `uv` julga
pela de destino; com a lista pronta, o pip baixa.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from nucleo.base import caminhos, vigia
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import megabytes
from nucleo.sala.maquina import AVISO, FALTA, OK, Item
from nucleo.sala.pacote import PLATAFORMAS, Alvo, Progresso, este_computador, sha256

REQUISITOS = caminhos.RAIZ / "requirements.txt"
_MACOS = "14.0"
_POR_VEZ = 12  # wheels por chamada do pip, que leva uns segundos só para começar
COMO_TER_UV = "python -m pip install uv"
_UV = {
    "linux-x86_64": "x86_64-manylinux_2_28",
    "linux-aarch64": "aarch64-manylinux_2_28",
    "windows-amd64": "x86_64-pc-windows-msvc",
    "macos-arm64": "aarch64-apple-darwin",
}


@dataclass(frozen=True)
class Wheel:
    """Um wheel escolhido: arquivo, de onde vem, versão exata, bytes e sha256 (0 e "": não se sabe)."""

    arquivo: str
    url: str
    pedido: str
    bytes: int
    sha256: str = ""


def escolher(
    plataformas: list[str], pythons: list[str], progresso: Progresso = lambda *_: None
) -> tuple[dict[Alvo, list[Wheel]], list[Item]]:
    """({alvo: wheels}, uma linha por alvo, com o tamanho) para cada combinação; não baixa nenhum.

    O alvo que não der fica de fora, e a linha dele é um [falta] que diz por quê.
    """
    alvos = [Alvo(plataforma, python) for plataforma in plataformas for python in pythons]
    escolhidos, itens = {}, []
    for i, alvo in enumerate(alvos):
        progresso("escolhendo os pacotes do Python", i, len(alvos))
        try:
            lista = escolhidos[alvo] = resolver(alvo, REQUISITOS)
        except ErroDoUsuario as erro:
            texto = f"de fora: {erro.o_que} {erro.por_que}"
            itens.append(Item(FALTA, texto, erro.o_que_fazer))
            continue
        soma = sum(w.bytes for w in lista)
        vem = f"vão descer {len(lista)} arquivos, {megabytes(soma)}"
        # O torch que o índice dá para o Linux traz a CUDA: são GB que um notebook não usa.
        cura = "é muito? Ctrl-C, e de novo com --sem-wheels" if soma > 1e9 else ""
        itens.append(Item(OK, f"{alvo}: {vem}", cura))
    outras = [x for x in PLATAFORMAS if x not in plataformas]
    if outras:
        cura = f"se alguém as usa: --plataformas {','.join([*plataformas, *outras])}"
        itens.append(Item(AVISO, f"não vão: {', '.join(outras)}", cura))
    return escolhidos, itens


def resolver(alvo: Alvo, requisitos: Path) -> list[Wheel]:
    """Os wheels que instalam `requisitos` no alvo, com as versões exatas. Baixa só metadados.

    Erros: `ErroDoUsuario` com o que o pip ou o uv responderam.
    """
    if alvo == este_computador():
        return _consultar(["-r", str(requisitos)], alvo)
    pedidos = _resolver_com_uv(alvo, requisitos)
    return _consultar(["--no-deps", *pedidos], alvo)


def _consultar(pedidos: list[str], alvo: Alvo) -> list[Wheel]:
    with tempfile.TemporaryDirectory() as pasta:
        onde = ["--ignore-installed", "--target", str(Path(pasta) / "t"), *_etiquetas(alvo)]
        try:
            return que_faltam([*onde, *pedidos])
        except PipFalhou as falha:
            raise _nao_deu(alvo, falha) from None


def que_faltam(pedidos: list[str]) -> list[Wheel]:
    """Os wheels que o pip poria neste Python para atender aos `pedidos` (opções dele). Baixa só metadados.

    Erros: `PipFalhou`.
    """
    # O relatório do pip diz a URL de cada wheel sem instalar nada.
    with tempfile.TemporaryDirectory() as pasta:
        relatorio = Path(pasta) / "relatorio.json"
        opcoes = ["--dry-run", "--report", str(relatorio), "--quiet", "--only-binary=:all:"]
        rodar_pip("install", *opcoes, *pedidos)
        itens = json.loads(relatorio.read_text(encoding="utf-8"))["install"]
    with ThreadPoolExecutor(8) as fila:
        urls = [i["download_info"]["url"] for i in itens]
        tamanhos = list(fila.map(tamanho_remoto, urls))
    return [
        Wheel(
            urllib.request.unquote(url.rpartition("/")[2]),
            url,
            f"{i['metadata']['name']}=={i['metadata']['version']}",
            tamanho,
            i["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""),
        )
        for i, url, tamanho in zip(itens, urls, tamanhos, strict=True)
    ]


def tamanho_remoto(url: str) -> int:
    """Os bytes do arquivo em `url`, que pode ser `file:`; 0 se o índice não disser."""
    try:
        if url.startswith("file:"):
            return os.path.getsize(urllib.request.url2pathname(url.removeprefix("file://")))
        pedido = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(pedido, timeout=10) as resposta:
            return int(resposta.headers.get("Content-Length") or 0)
    except (OSError, ValueError):
        return 0


def _etiquetas(alvo: Alvo) -> list[str]:
    if alvo == este_computador():
        return []  # o pip conhece as etiquetas desta máquina melhor que uma lista nossa
    sistema, _, maquina = alvo.plataforma.partition("-")
    nomes = {
        "windows": ["win"],
        "macos": [f"macosx_{_MACOS.replace('.', '_')}"],  # o pip aceita também as mais antigas
        "linux": [f"manylinux_2_{n}" for n in range(28, 4, -1)]
        + ["manylinux2014", "manylinux2010", "manylinux1"],
    }[sistema]
    # O pip compararia o Requires-Python com o Python que o roda; o uv já comparou com o do alvo.
    versao = ["--python-version", alvo.python, "--implementation", "cp", "--ignore-requires-python"]
    return versao + [x for n in nomes for x in ("--platform", f"{n}_{maquina}")]


def _resolver_com_uv(alvo: Alvo, requisitos: Path) -> list[str]:
    try:
        metadata.version("uv")
    except metadata.PackageNotFoundError:
        raise ErroDoUsuario(
            f"Não sei escolher os wheels de {alvo} daqui.",
            "O pip decide as dependências pela máquina em que roda; quem sabe decidir por outra é o uv.",
            f"Rode:  {COMO_TER_UV}   e monte o pacote de novo",
        ) from None
    comando = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header"]
    comando += ["--no-annotate", "--only-binary", ":all:", "--python-version", alvo.python]
    comando += ["--python-platform", _UV[alvo.plataforma], "--no-progress", str(requisitos)]
    # O torch do macOS pede o 14; sem isto o uv supõe um mais antigo e não acha wheel nenhum.
    env = os.environ | {"MACOSX_DEPLOYMENT_TARGET": _MACOS}
    feito = subprocess.run(
        comando, capture_output=True, encoding="utf-8", errors="replace", env=env
    )
    if feito.returncode:
        raise _nao_deu(alvo, PipFalhou(feito.stderr))
    # Uma linha por pacote, "nome==versão"; o que o uv puser depois de espaço é condição ou comentário.
    linhas = [x.split(" ")[0] for x in feito.stdout.splitlines() if x.strip()]
    return [x for x in linhas if re.match(r"[\w.-]+==", x)]


def baixar(
    wheels: list[Wheel], pasta: Path, alvo: Alvo, progresso: Progresso = lambda *_: None
) -> list[str]:
    """Põe os wheels em `pasta` e devolve os nomes dos arquivos; o que já está lá não desce de novo.

    Erros: `ErroDoUsuario` com o que o pip respondeu.
    """
    pasta.mkdir(parents=True, exist_ok=True)
    faltam = [w for w in wheels if not ja_veio(w, pasta / w.arquivo)]
    for w in faltam:
        (pasta / w.arquivo).unlink(missing_ok=True)  # o pip não troca um estragado de mesmo nome
    # O pip confere o sha256 que o índice publica e só troca o nome no fim de cada chamada: aos poucos,
    # quem interrompe perde pouco, e nunca há meio wheel.
    onde = ["--dest", str(pasta), *_etiquetas(alvo), "--find-links", str(pasta)]
    opcoes = ["--no-deps", "--only-binary=:all:", "--quiet"]
    for i in range(0, len(faltam), _POR_VEZ):
        progresso(f"baixando os wheels para {alvo}", i, len(faltam))
        pedidos = [w.pedido for w in faltam[i : i + _POR_VEZ]]
        try:
            rodar_pip("download", *opcoes, *onde, *pedidos)
        except PipFalhou as falha:
            raise _nao_deu(alvo, falha) from None
    return [w.arquivo for w in wheels]


def ja_veio(w: Wheel, arquivo: Path) -> bool:
    """Se `arquivo` já é o wheel inteiro, com o tamanho e o sha256 que o índice diz."""
    # Um pen drive arrancado cedo deixa arquivos do tamanho certo com bytes errados.
    if not arquivo.is_file() or w.bytes not in (0, arquivo.stat().st_size):
        return False
    return w.sha256 in ("", sha256(arquivo))


def instalar(
    pasta: Path,
    lista: Iterable[Wheel] = (),
    requisitos: Iterable[str] = (),
    progresso: Progresso = lambda *_: None,
) -> None:
    """Instala neste Python o que os `requisitos` pedem só com os wheels de `pasta`, sem rede.

    `requisitos` são opções do pip; vazio vale o requirements.txt.

    Os da `lista` que já são arquivos desta máquina (`file:`) valem de onde estão. Erros: `PipFalhou`.
    """
    daqui = [
        urllib.request.url2pathname(w.url.removeprefix("file://"))
        for w in lista
        if w.url.startswith("file:")
    ]
    pastas = dict.fromkeys([str(pasta), *(os.path.dirname(x) for x in daqui)])
    # --isolated: nem variáveis nem configurações do usuário mandam o pip para outro lugar.
    fontes = ["--isolated", "--no-index", *(x for p in pastas for x in ("--find-links", p))]
    antes, total = instalados(), len(list(lista))

    def contar() -> None:
        progresso("instalando", min(len(instalados()) - len(antes), total), max(total, 1))

    requisitos = requisitos or ("-r", str(REQUISITOS))
    rodar_pip("install", "--quiet", *fontes, *requisitos, enquanto=contar)


def instalados() -> list[Path]:
    """A pasta .dist-info de cada pacote deste Python."""
    return list(Path(sysconfig.get_path("purelib")).glob("*.dist-info"))


class PipFalhou(Exception):
    """O pip saiu com erro: `texto` é tudo o que disse, `motivo` as linhas que interessam."""

    def __init__(self, texto: str):
        super().__init__(texto)
        linhas = [x.strip() for x in texto.splitlines() if x.strip()]
        # O motivo costuma ser a primeira linha de erro; avisos de cache e de versão não interessam.
        motivos = [x for x in linhas if x.lower().startswith(("error", "×"))] or linhas[-1:]
        self.texto, self.motivo = texto, " ".join(motivos[:2]) or "o pip não disse por quê"
        self.sem_lugar = any("No space left" in x or "Errno 28" in x for x in linhas)
        # O pip só diz que não achou o pacote; que não havia rede está nos avisos de antes.
        self.sem_rede = "Retrying (" in texto or "Could not fetch URL" in texto


def rodar_pip(*opcoes: str, enquanto: Callable[[], None] = lambda: None) -> None:
    """Roda o pip deste Python; `enquanto` é chamada duas vezes por segundo. Erros: `PipFalhou`."""
    comando = [sys.executable, "-m", "pip", *opcoes, "--disable-pip-version-check", "--no-input"]
    cano = subprocess.PIPE
    # Com as duas saídas juntas, um pip que fala muito nunca para à espera de quem o leia.
    with subprocess.Popen(
        vigia.comando(comando), stdout=cano, stderr=subprocess.STDOUT, encoding="utf-8",
        errors="replace",
    ) as processo:  # fmt: skip
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    dito, _ = processo.communicate(timeout=0.5)
                    break
                enquanto()
        except BaseException:
            processo.terminate()  # o vigia leva o pip consigo
            raise
    if processo.returncode:
        raise PipFalhou(dito)


def _nao_deu(alvo: Alvo, falha: PipFalhou) -> ErroDoUsuario:
    return ErroDoUsuario(
        f"Os wheels para {alvo} não vieram.",
        "O disco encheu." if falha.sem_lugar else falha.motivo,
        "Libere espaço e rode de novo." if falha.sem_lugar else
        "Confira a internet e a combinação de sistema e Python, ou use --sem-wheels.",
    )  # fmt: skip
