"""O ambiente `.venv` do laboratório: criá-lo e pôr nele o que o requirements.txt pede. Não imprime.

Só a biblioteca padrão: quem chega aqui ainda não tem pacote nenhum. Quem escolhe as versões e instala é
o pip do ambiente. Os wheels descem antes, com `descida`, que continua do byte em que parou, e ficam numa
pasta dentro do ambiente até tudo estar instalado: interrompida em qualquer ponto, a preparação continua.
"""

import contextlib
import html.parser
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path

from nucleo.base import arquivos, caminhos, descida, pacotes
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import contado, decimal, megabytes
from nucleo.sala import pacote, wheels
from nucleo.sala.maquina import AVISO, OK, Item
from nucleo.sala.pacote import Progresso
from nucleo.sala.wheels import Wheel

VENV = caminhos.RAIZ / ".venv"
OPCIONAIS = caminhos.RAIZ / "requirements-opcionais.txt"
DENTRO = "LAB_DENTRO_DO_AMBIENTE"  # quem recomeçou dentro dele não recomeça outra vez
# O índice que o próprio projeto do torch mantém, só com as versões para CPU; uma cópia da instituição se
# diz em LAB_INDICE_TORCH.
INDICE_SEM_GPU = os.environ.get("LAB_INDICE_TORCH") or "https://download.pytorch.org/whl/cpu/torch/"
ESPERA = 10.0  # segundos até desistir de um índice calado
# O Windows corta em 259 letras, se ninguém ligou os caminhos longos, e o arquivo mais fundo do wheel do
# torch 2.13.0 para Windows (uma licença) fica 192 adiante: \.venv\Lib\site-packages\ são 25, e ele, 167.
CABE_NO_WINDOWS = 259 - 192
_POR_VEZ = 4  # downloads ao mesmo tempo: a espera de um se esconde na dos outros

Linha = Callable[[str], object]
"""Chamada com cada linha que a tela deve mostrar."""


def python_do_ambiente() -> Path:
    """Onde está (ou estará) o Python de `.venv` neste sistema."""
    return VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def dentro() -> bool:
    """Se este Python já é o de `.venv`."""
    return bool(os.environ.get(DENTRO)) or Path(sys.prefix).resolve() == VENV.resolve()


def tem_tudo() -> bool:
    """Se este Python tem, inteiros, os pacotes do requirements.txt."""
    return all(p.serve for p in pacotes.pedidos()) and not _pela_metade()


def onde_seguir(criar: bool, so_venv: bool, linha: Linha) -> Path | None:
    """O Python em que a preparação deve continuar; None se é este mesmo.

    Serve este se é o de `.venv` ou, a menos de `so_venv`, se já tem todos os pacotes (um ambiente de quem
    o usa, o Colab). Com `criar`, `.venv` nasce se não houver. Erros: `ErroDoUsuario`.
    """
    if dentro() or (tem_tudo() and not so_venv):
        return None
    # Num .venv de um Python novo demais nada se instala: se este Python serve, refaz-se com ele.
    conhecido = f"import sys; assert '%d.%d' % sys.version_info[:2] in {pacote.PYTHONS}"
    if _funciona(conhecido if pacote.este_computador().python in pacote.PYTHONS else "pass"):
        if not _funciona("import pip") and criar:
            # Interrompida entre o Python e o pip, ou feita pelo uv, que não o põe.
            _modulo(python_do_ambiente(), "ensurepip", "--upgrade")
        return python_do_ambiente()
    if not criar:
        return None
    _conferir_o_lugar()
    linha(f"criando o ambiente .venv com o Python {sys.version.split()[0]}…")
    # Sem --clear, o resto de uma criação interrompida atrapalharia.
    _modulo(Path(sys.executable), "venv", "--clear", str(VENV))
    return python_do_ambiente()


def _funciona(codigo: str) -> bool:
    with contextlib.suppress(OSError):
        comando = [str(python_do_ambiente()), "-c", codigo]
        return subprocess.run(comando, capture_output=True).returncode == 0
    return False


def _modulo(python: Path, *partes: str) -> None:
    comando = [str(python), "-m", *partes]
    feito = subprocess.run(comando, capture_output=True, encoding="utf-8", errors="replace")
    if feito.returncode == 0:
        return
    dito = (feito.stdout + feito.stderr).strip()
    if "ensurepip" in dito:
        raise _sem_ensurepip()
    raise ErroDoUsuario(
        "O ambiente .venv não se criou.",
        (dito.splitlines() or ["o Python não disse por quê"])[-1],
        f"Apague a pasta {VENV} e rode de novo; se repetir, instale o Python de python.org.",
    )


def _conferir_o_lugar() -> None:
    """Se a pasta do laboratório aceita um ambiente. Erros: `ErroDoUsuario`."""
    letras = len(str(caminhos.RAIZ))
    if sys.platform == "win32" and letras > CABE_NO_WINDOWS and not _caminhos_longos():
        raise ErroDoUsuario(
            f"O caminho desta pasta é longo demais: {letras} letras.",
            f"O Windows corta os caminhos em 260 letras, e para o torch caber sobram {CABE_NO_WINDOWS}.",
            r"Mova a pasta para um caminho curto, como C:\lab, e rode de novo.",
        )
    if not importlib.util.find_spec("ensurepip"):
        raise _sem_ensurepip()
    feita = VENV.is_dir() and ((VENV / "pyvenv.cfg").exists() or not any(VENV.iterdir()))
    if VENV.is_symlink() or (VENV.exists() and not feita):
        # Pode ser de alguém: criar por cima apagaria o que há dentro.
        raise ErroDoUsuario(
            "O que está em .venv não é um ambiente do Python que funcione.",
            f"{VENV} existe, e não foi esta preparação que o fez.",
            "Mude-o de nome (ou apague-o, se não precisa dele) e rode de novo.",
        )
    try:
        arquivos.conferir_pasta(VENV)
    except ErroDoUsuario as erro:
        raise ErroDoUsuario(
            f"Não posso escrever na pasta do laboratório: {caminhos.RAIZ}",
            erro.por_que,
            "Copie a pasta inteira para um lugar seu (Documentos, por exemplo) e rode de lá.",
        ) from None


def _caminhos_longos() -> bool:
    # A resposta é do próprio sistema: a pasta que não caberia se cria, ou não.
    funda = caminhos.RAIZ / (".caminho-longo-" + "x" * 100) / ("x" * 100)
    try:
        funda.mkdir(parents=True)
    except OSError:
        return False
    finally:
        shutil.rmtree(funda.parent, ignore_errors=True)
    return True


def _sem_ensurepip() -> ErroDoUsuario:
    nome = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    return ErroDoUsuario(
        "Este Python não sabe criar um ambiente com pip.",
        "Falta o módulo ensurepip, que o Debian e o Ubuntu entregam num pacote à parte.",
        f"Rode:  sudo apt install {nome}   e depois este comando de novo",
    )


# --- os pacotes --------------------------------------------------------------------------


def instalar(com_gpu: bool, linha: Linha, progresso: Progresso) -> list[Item]:
    """Põe neste Python o que falta do requirements.txt e, se der, do opcional; devolve o que foi feito.

    Cada arquivo que desce vira uma `linha`. No Linux o torch é o de CPU, a menos de `com_gpu`.
    Erros: `ErroDoUsuario` sem rede, sem disco, ou com um Python para o qual não há pacotes.
    """
    pasta = VENV / "wheels"
    for resto in _pela_metade():
        shutil.rmtree(resto)  # sem o RECORD o pip nem reinstala: diz que não sabe desinstalar
    desceu = 0
    itens = []
    try:
        linha("perguntando ao índice de pacotes do Python o que falta…")
        _pip_que_sirva()
        torch = next(p for p in pacotes.pedidos() if p.nome == "torch")
        if sys.platform == "linux" and not torch.serve and not com_gpu:
            desceu += _torch_sem_gpu(f"torch{torch.faixa}", pasta, linha, progresso)
        requisitos = ["-r", str(wheels.REQUISITOS), "-r", str(OPCIONAIS)]
        try:
            lista = wheels.que_faltam([*requisitos, "--find-links", str(pasta)])
        except wheels.PipFalhou as falha:
            if falha.sem_rede or falha.sem_lugar:
                raise
            requisitos = requisitos[:2]
            lista = wheels.que_faltam([*requisitos, "--find-links", str(pasta)])
            fica = "UMAP: fica de fora (o umap-learn não tem pacotes para este Python)"
            itens.append(Item(AVISO, fica))
        desceu += _descer(lista, pasta, linha, progresso)
        wheels.instalar(pasta, lista, requisitos, progresso)
    except wheels.PipFalhou as falha:
        raise _explicar(falha) from None
    except OSError as erro:
        if erro.errno in descida.SEM_LUGAR:
            raise _sem_disco() from None
        raise
    shutil.rmtree(pasta, ignore_errors=True)
    importlib.invalidate_caches()
    ocupa = sum(descida.tamanho(a) for a in VENV.rglob("*") if not a.is_symlink())
    feito = f"{contado(len(lista), 'pacote')} em .venv: desceram {megabytes(desceu)}"
    return [Item(OK, f"{feito}; a pasta ocupa {decimal(ocupa / 1e9, 2)} GB"), *itens]


def _pela_metade() -> list[Path]:
    # O RECORD é o último arquivo que o pip escreve: sem ele, alguém parou uma instalação no meio.
    # Só em .venv: os pacotes que o Debian instala nunca têm RECORD.
    pastas = wheels.instalados() if dentro() else []
    return [p for p in pastas if not (p / "RECORD").is_file()]


def _pip_que_sirva() -> None:
    # O pip que o Ubuntu 22.04 põe no ambiente (22.0) não sabe dizer o que instalaria.
    if tuple(map(int, metadata.version("pip").split(".")[:2])) < (22, 2):
        wheels.rodar_pip("install", "--quiet", "--upgrade", "pip")


def _torch_sem_gpu(pedido: str, pasta: Path, linha: Linha, progresso: Progresso) -> int:
    """Deixa em `pasta` o torch de CPU, se for o caso de buscá-lo; devolve os bytes que desceram."""
    (achado,) = wheels.que_faltam(["--no-deps", pedido, "--find-links", str(pasta)])
    if achado.url.startswith("file:") or "cpu" in achado.pedido:
        return 0  # um wheel desta máquina ganha de qualquer índice
    wheel = _no_indice_sem_gpu(pedido)
    if wheel is None:
        linha(
            f"o índice do torch para CPU não respondeu em {ESPERA:.0f} s, ou não tem o {pedido}: "
            "vai o que o pip achou, que traz as bibliotecas de GPU"
        )
        return 0
    linha(f"o torch é o de CPU, do índice do próprio projeto: {megabytes(wheel.bytes)}")
    return _descer([wheel], pasta, linha, progresso)


def _no_indice_sem_gpu(pedido: str) -> Wheel | None:
    """O wheel de CPU que serve neste Python, numa consulta só; None se o índice se calar ou não tiver."""
    respondeu, paginas = threading.Event(), []

    def consultar() -> None:
        with contextlib.suppress(OSError, ValueError):
            try:
                with urllib.request.urlopen(INDICE_SEM_GPU, timeout=ESPERA) as resposta:
                    respondeu.set()
                    paginas.append((resposta.url, resposta.read().decode("utf-8")))
            finally:
                respondeu.set()

    # Numa thread, porque um nome que não se resolve ou dez endereços calados passam do timeout.
    consulta = threading.Thread(target=consultar, daemon=True)
    consulta.start()
    if respondeu.wait(ESPERA):
        consulta.join()
    if not paginas:
        return None
    ((pagina, texto),) = paginas
    return _escolher(_enderecos(texto), pagina, pedido)


def _enderecos(texto: str) -> list[str]:
    achados = []

    class Leitor(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            achados.extend(
                valor for nome, valor in attrs if tag == "a" and nome == "href" and valor
            )

    Leitor().feed(texto)
    return achados


def _escolher(enderecos: list[str], pagina: str, pedido: str) -> Wheel | None:
    # O pip traz dentro dele quem sabe comparar versões e etiquetas de wheel.
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.tags import sys_tags
    from pip._vendor.packaging.utils import InvalidWheelFilename, parse_wheel_filename

    ordem = {etiqueta: -i for i, etiqueta in enumerate(sys_tags())}
    faixa = Requirement(pedido).specifier
    servem = []
    for endereco in enderecos:
        url, soma = urllib.parse.urldefrag(urllib.parse.urljoin(pagina, endereco))
        arquivo = urllib.parse.unquote(url.rpartition("/")[2])
        try:
            _, versao, _, etiquetas = parse_wheel_filename(arquivo)
        except InvalidWheelFilename:
            continue
        notas = [ordem[e] for e in etiquetas if e in ordem]
        # Só as de CPU: o mesmo endereço pode um dia listar outras.
        if notas and versao.local == "cpu" and faixa.contains(versao.public):
            soma = soma.removeprefix("sha256=") if soma.startswith("sha256=") else ""
            servem.append((versao, max(notas), url, arquivo, soma))
    if not servem:
        return None
    versao, _, url, arquivo, soma = max(servem)
    return Wheel(arquivo, url, f"torch=={versao}", wheels.tamanho_remoto(url), soma)


class _Parou(Exception):
    """Alguém interrompeu: os downloads em curso largam o que fazem."""


def _descer(lista: list[Wheel], pasta: Path, linha: Linha, progresso: Progresso) -> int:
    """Traz os wheels para `pasta`, quatro de cada vez, e devolve quantos bytes vieram pela rede.

    O que não vier por aqui (um proxy ou um certificado que só o pip conhece) o pip busca.
    """
    da_rede = [w for w in lista if not w.url.startswith("file:")]
    faltam = [w for w in da_rede if not wheels.ja_veio(w, pasta / w.arquivo)]
    if not da_rede:
        return 0
    total = sum(w.bytes for w in faltam)
    if faltam:
        linha(
            f"vão descer {contado(len(faltam), 'arquivo')}, {megabytes(total)}" + _com_gpu(faltam)
        )
    pasta.mkdir(parents=True, exist_ok=True)
    feitos, trava, parar = dict.fromkeys((w.arquivo for w in faltam), 0), threading.Lock(), False

    def um(w: Wheel) -> bool:
        def avanco(n: int) -> None:
            if parar:
                raise _Parou
            with trava:
                feitos[w.arquivo] = n
                progresso("baixando", sum(feitos.values()), max(total, 1))

        def confere(parcial: Path) -> bool:
            return not w.sha256 or descida.sha256(parcial) == w.sha256

        if not w.bytes:  # o índice não diz o tamanho: o pip se vira
            return False
        try:
            return descida.descer(
                pasta / w.arquivo,
                w.bytes,
                lambda n: descida.por_http(w.url, n, silencio=ESPERA),
                confere,
                avanco,
            )
        except (descida.Caiu, urllib.error.HTTPError):
            return False

    vieram, fila = 0, ThreadPoolExecutor(_POR_VEZ)
    try:
        tarefas = {fila.submit(um, w): w for w in faltam}
        for n, tarefa in enumerate(as_completed(tarefas), 1):
            w = tarefas[tarefa]
            if tarefa.result():
                vieram += 1
                nome = w.pedido.replace("==", " ")
                linha(f"[{n:>{len(str(len(faltam)))}}/{len(faltam)}] {nome} · {_tamanho(w.bytes)}")
    finally:
        parar = True
        fila.shutdown(cancel_futures=True)
    if vieram < len(faltam):
        try:
            wheels.baixar(da_rede, pasta, pacote.este_computador(), progresso)
        except ErroDoUsuario as erro:
            raise ErroDoUsuario(
                "Os pacotes do Python não chegaram inteiros.",
                erro.por_que,
                "Confira a internet e rode de novo: o que já desceu se aproveita.",
            ) from None
    return total


def _tamanho(n: int) -> str:
    return megabytes(n) if n >= 1e5 else f"{n / 1e3:.0f} kB"


def _com_gpu(lista: list[Wheel]) -> str:
    de_gpu = [w for w in lista if w.pedido.startswith(("nvidia", "cuda", "triton"))]
    if not de_gpu:
        return ""
    soma = megabytes(sum(w.bytes for w in de_gpu))
    return f"; {contado(len(de_gpu), 'deles é', 'deles são')} de GPU ({soma}): é muito? Ctrl-C para parar"


def _explicar(falha: wheels.PipFalhou) -> ErroDoUsuario:
    if falha.sem_lugar:
        return _sem_disco()
    if falha.sem_rede:
        return ErroDoUsuario(
            "Não consegui falar com o índice de pacotes do Python.",
            "Sem internet, ou com a saída bloqueada (proxy, firewall, página de login).",
            "Confira a rede e rode de novo; sem rede nenhuma, peça o pacote num pen drive e rode:  "
            "python lab/00_preparar.py --do-pacote PASTA",
        )
    daqui = ".".join(map(str, sys.version_info[:2]))
    if "No matching distribution" in falha.texto and daqui not in pacote.PYTHONS:
        return ErroDoUsuario(
            f"O Python {daqui} é novo demais para o torch que o laboratório usa.",
            f"{falha.motivo}; o laboratório foi visto rodar em {', '.join(pacote.PYTHONS)}.",
            _outro_python(),
        )
    if "No matching distribution found for torch" in falha.texto:
        return ErroDoUsuario(
            f"Não há torch para este computador ({pacote.este_computador().plataforma}).",
            f"{falha.motivo}; há para Linux, Windows de 64 bits e macOS 14 em diante com processador Apple.",
            "Use outro computador, ou o navegador: os cadernos rodam no Google Colab.",
        )
    return ErroDoUsuario(
        "Os pacotes do Python não se instalaram.",
        falha.motivo,
        "Confira a internet e rode de novo: o que já desceu se aproveita.",
    )


def _outro_python() -> str:
    """O comando com um Python desta máquina que serve; sem nenhum, de onde tirar um."""
    for versao in reversed(pacote.PYTHONS):
        if sys.platform != "win32" and shutil.which(f"python{versao}"):
            return f"Rode:  python{versao} lab/00_preparar.py"
    if sys.platform == "win32":
        return rf"Instale o {pacote.PYTHONS[-1]} de python.org e rode:  py -{pacote.PYTHONS[-1]} lab\00_preparar.py"
    return f"Instale o Python {pacote.PYTHONS[-1]} e rode:  python{pacote.PYTHONS[-1]} lab/00_preparar.py"


def _sem_disco() -> ErroDoUsuario:
    livre = shutil.disk_usage(caminhos.RAIZ).free
    return ErroDoUsuario(
        "O disco encheu enquanto os pacotes chegavam.",
        f"Há {decimal(livre / 1e9, 1)} GB livres onde está o laboratório.",
        "Libere espaço (o README diz quanto é preciso) e rode de novo.",
    )
