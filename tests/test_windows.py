"""O Windows imitado: o que lá é diferente, por uma fresta em cada chamada. Não há Windows nos testes de cá.

O que isto não prova está dito no fim de cada fresta: que o sistema de verdade responde como a imitação.
"""

import ast
import errno
import ntpath
import os
import re
import signal
from pathlib import Path

import pytest

from conftest import LAB, RAIZ
from nucleo.base import arquivos, descida
from nucleo.base.erros import ErroDoUsuario

pytestmark = pytest.mark.unit


class EmUso(PermissionError):
    """O erro do Windows para um arquivo que outro programa tem aberto."""

    def __init__(self, numero: int, de, para):
        super().__init__(errno.EACCES, "O arquivo já está sendo usado", str(de), numero, str(para))
        self.winerror = numero


@pytest.fixture(name="preso")
def fixture_preso(monkeypatch):
    """Liga `os.replace` ao Windows: recusa as primeiras `vezes`, e então troca. Devolve quem conta."""
    de_verdade = os.replace

    def prender(vezes: int, numero: int = 32) -> list:
        pedidos = []

        def trocar(de, para):
            pedidos.append(para)
            if len(pedidos) <= vezes:
                raise EmUso(numero, de, para)
            de_verdade(de, para)

        monkeypatch.setattr(os, "replace", trocar)
        return pedidos

    return prender


# --- um arquivo aberto em outro programa -------------------------------------------------------------


@pytest.mark.parametrize("numero", [5, 32, 33])
def test_um_antivirus_que_solta_logo_nao_atrapalha(numero, preso, tmp_path):
    pedidos = preso(2, numero)
    arquivos.gravar(tmp_path / "t.csv", b"novo")
    assert (tmp_path / "t.csv").read_bytes() == b"novo" and len(pedidos) == 3


def test_um_arquivo_que_fica_aberto_se_diz_pelo_nome(preso, tmp_path, monkeypatch):
    monkeypatch.setattr(arquivos, "PACIENCIA", 0.1)
    (tmp_path / "notas.csv").write_bytes(b"antes")
    preso(10**9)
    with pytest.raises(ErroDoUsuario, match="com notas.csv aberto; feche-o"):
        arquivos.gravar(tmp_path / "notas.csv", b"depois")
    assert [p.name for p in tmp_path.iterdir()] == ["notas.csv"]
    assert (tmp_path / "notas.csv").read_bytes() == b"antes"


def test_sem_permissao_de_verdade_nao_se_insiste(monkeypatch, tmp_path):
    pedidos = []

    def negar(de, para):
        pedidos.append(para)
        raise PermissionError(errno.EACCES, "negado", str(de))

    monkeypatch.setattr(os, "replace", negar)
    with pytest.raises(ErroDoUsuario, match="não permite escrita"):
        arquivos.gravar(tmp_path / "t.csv", b"x")
    assert len(pedidos) == 1


def test_um_download_espera_quem_prende_o_destino(preso, tmp_path):
    pedidos = preso(1)
    assert descida.descer(tmp_path / "m", 3, lambda n: iter([b"abc"[n:]]), lambda p: True)
    assert (tmp_path / "m").read_bytes() == b"abc" and len(pedidos) == 2


def test_a_pasta_de_um_modelo_aberto_fica_inteira(preso, tmp_path, monkeypatch):
    """Os pesos mapeados na memória prendem a pasta: ou ela sai inteira do lugar, ou nada se apaga."""
    monkeypatch.setattr(arquivos, "PACIENCIA", 0.1)
    destino = tmp_path / "smollm2"
    destino.mkdir()
    (destino / "config.json").write_text("antes", "utf-8")
    (destino / "model.safetensors").write_text("antes", "utf-8")
    preso(10**9)
    with pytest.raises(PermissionError), arquivos.pasta_ao_lado(destino) as nova:
        (nova / "config.json").write_text("depois", "utf-8")
    assert sorted(p.read_text("utf-8") for p in destino.iterdir()) == ["antes", "antes"]
    assert [p.name for p in tmp_path.iterdir()] == ["smollm2"]


def test_se_a_nova_nao_entra_a_velha_volta(monkeypatch, tmp_path):
    destino, de_verdade = tmp_path / "m", os.replace
    destino.mkdir()
    (destino / "x").write_text("antes", "utf-8")

    def trocar(de, para):
        if Path(para) == destino and "velha" not in Path(de).name:
            raise PermissionError(errno.EACCES, "negado", str(de))
        de_verdade(de, para)

    monkeypatch.setattr(os, "replace", trocar)
    with pytest.raises(PermissionError), arquivos.pasta_ao_lado(destino) as nova:
        (nova / "x").write_text("depois", "utf-8")
    assert (destino / "x").read_text("utf-8") == "antes" and len(list(tmp_path.iterdir())) == 1
    monkeypatch.undo()
    with arquivos.pasta_ao_lado(destino) as nova:
        (nova / "x").write_text("depois", "utf-8")
    assert (destino / "x").read_text("utf-8") == "depois" and len(list(tmp_path.iterdir())) == 1


# --- duas unidades -------------------------------------------------------------------------------------


def test_saidas_noutra_unidade_nao_derrubam_as_paginas(monkeypatch, tmp_path):
    """C: e D: não têm caminho relativo um para o outro: o `relpath` do Windows levanta ValueError."""
    from nucleo.paginas import apostilas

    with pytest.raises(ValueError, match="mount"):
        ntpath.relpath(r"D:\\a", r"C:\\b")  # a imitação é fiel ao módulo de verdade

    def sem_caminho(*_):
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(apostilas.os.path, "relpath", sem_caminho)
    fonte = RAIZ / "apostilas" / "02_embeddings.md"
    href = apostilas._novo_link(None, fonte, [], tmp_path, "../README.md#comece-aqui")
    assert href == (RAIZ / "README.md").as_uri() + "#comece-aqui"


# --- o que o Python do Windows não tem ---------------------------------------------------------------

# Da documentação ("Availability: Unix"), o que um programa como este poderia usar.
SEM = {
    "os": "fork forkpty killpg getpgid getpgrp setpgid setsid getsid geteuid getuid getegid getgid getgroups "
    "setuid setgid nice chown chroot mkfifo statvfs sched_getaffinity sched_setaffinity uname wait3 wait4 "
    "WNOHANG WIFSIGNALED WTERMSIG O_NOFOLLOW O_PATH O_CLOEXEC O_NONBLOCK posix_spawn sendfile pread pwrite",
    "signal": "SIGKILL SIGHUP SIGALRM SIGCHLD SIGUSR1 SIGUSR2 SIGXCPU SIGSTOP SIGCONT SIGPIPE alarm setitimer "
    "pthread_kill pthread_sigmask sigwait siginterrupt",
}  # fmt: skip
SEM = {f"{modulo}.{nome}" for modulo, nomes in SEM.items() for nome in nomes.split()}
MODULOS = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "crypt", "syslog"}
# Quem só roda fora do Windows, e por quê.
SO_NO_UNIX = {
    "caixa.comando_de_espacos": "volta antes: não há o programa unshare",
    "filho.so_esta_pasta": "volta antes: só Linux",
    "filho.por_limites": "volta antes: não há o módulo resource",
    "caixa._matar": "só a chama quem acha processos em /proc",
    "vigia.matar_descendentes": "do programa do vigia, que no Windows não se lança",
    "vigia.principal": "do programa do vigia, que no Windows não se lança",
}
GUARDA = re.compile(r"os\.name|sys\.platform|hasattr|getattr|AttributeError|_funcao_do_unix")


def usos(arquivo: Path):
    """(função, linha, "os.fork", está guardado?) de cada uso do que o Windows não tem."""
    fonte = arquivo.read_text("utf-8")

    def andar(no, funcao, guardado):
        if isinstance(no, (ast.FunctionDef, ast.AsyncFunctionDef)):
            funcao, guardado = no.name, False
        if isinstance(no, (ast.If, ast.While, ast.IfExp)):
            guardado = guardado or bool(GUARDA.search(ast.get_source_segment(fonte, no.test)))
        if isinstance(no, ast.With):
            itens = " ".join(ast.get_source_segment(fonte, i.context_expr) for i in no.items)
            guardado = guardado or "AttributeError" in itens
        if isinstance(no, ast.Try):
            guardado = guardado or any(
                h.type and re.search("ImportError|AttributeError", ast.unparse(h.type))
                for h in no.handlers
            )
        if isinstance(no, ast.Attribute) and isinstance(no.value, ast.Name):
            nome = f"{no.value.id}.{no.attr}"
            if nome in SEM:
                yield funcao, no.lineno, nome, guardado
        if isinstance(no, (ast.Import, ast.ImportFrom)):
            nomes = [a.name for a in no.names] if isinstance(no, ast.Import) else [no.module]
            for nome in MODULOS & set(nomes):
                yield funcao, no.lineno, nome, guardado
        for filho in ast.iter_child_nodes(no):
            yield from andar(filho, funcao, guardado)

    yield from andar(ast.parse(fonte), "", False)


def test_nada_do_que_o_windows_nao_tem_se_usa_sem_guarda():
    achados, isentos = [], set()
    for arquivo in sorted(LAB.rglob("*.py")):
        for funcao, linha, nome, guardado in usos(arquivo):
            quem = f"{arquivo.stem}.{funcao}"
            isentos |= {quem} & SO_NO_UNIX.keys()
            if not guardado and quem not in SO_NO_UNIX:
                achados.append(f"{arquivo.relative_to(RAIZ)}:{linha} {nome} em {quem}")
    assert not achados, achados
    assert isentos == SO_NO_UNIX.keys(), "uma isenção sem uso esconderia o próximo engano"


def test_a_lista_do_que_falta_la_existe_ca():
    """Um nome escrito errado na lista nunca seria achado."""
    import importlib

    faltam = {
        n for n in SEM if not hasattr(importlib.import_module(n.split(".")[0]), n.split(".")[1])
    }
    assert len(faltam) < len(SEM) / 4, faltam


def test_sem_os_sinais_do_unix_a_casa_se_arma(monkeypatch):
    """SIGHUP e SIGKILL não existem lá; SIGBREAK, sim."""
    import importlib

    from palco import sinais

    for nome in ("SIGHUP", "SIGKILL", "SIGALRM"):
        monkeypatch.delattr(signal, nome)
    antes = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        importlib.reload(sinais).ouvir()
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, None)
    finally:
        signal.signal(signal.SIGTERM, antes)
        monkeypatch.undo()
        importlib.reload(sinais)


# --- nomes ---------------------------------------------------------------------------------------------


def test_nenhum_arquivo_do_repositorio_tem_nome_que_o_windows_recuse():
    import subprocess

    nomes = subprocess.run(
        ["git", "ls-files", "-z"], cwd=RAIZ, capture_output=True, check=True
    ).stdout.decode().split("\0")  # fmt: skip
    nomes = [n for n in nomes if n]
    assert len(nomes) > 200 and len({n.casefold() for n in nomes}) == len(nomes)
    for nome in nomes:
        # C:\\Users\\FULANO\\Documents\\laboratorio\\ são umas 45 letras: cabem 200 depois delas.
        assert len(nome) < 200, nome
        for parte in nome.split("/"):
            assert not set(parte) & set('<>:"|?*\\') and parte[-1] not in ". ", nome
            reservado = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", parte.casefold())
            assert not reservado, nome
