"""O laço que continua downloads, com uma rede de mentira: cada pane é uma linha do roteiro dela."""

import errno
import hashlib
import os
from types import SimpleNamespace

import pytest

from nucleo.base import descida
from nucleo.base.descida import Caiu, DoZero, parcial_de

pytestmark = pytest.mark.unit
DADOS = os.urandom(1000)


class Rede:
    """Entrega DADOS em blocos de 100 bytes; o roteiro diz, pedido a pedido, depois de quantos bytes cai."""

    def __init__(self, *roteiro, dados=DADOS):
        self.roteiro, self.dados, self.pedidos = list(roteiro), dados, []

    def __call__(self, n):
        self.pedidos.append(n)
        quanto = self.roteiro.pop(0) if self.roteiro else len(self.dados)
        if isinstance(quanto, BaseException):
            raise quanto
        for i in range(n, min(n + quanto, len(self.dados)), 100):
            yield self.dados[i : i + 100]
        if n + quanto < len(self.dados):
            raise Caiu("caiu")


@pytest.fixture(autouse=True)
def _sem_pausa(monkeypatch):
    monkeypatch.setattr(descida, "PAUSA", 0)


def descer(destino, rede, avanco=lambda _: None):
    soma = hashlib.sha256(DADOS).hexdigest()
    return descida.descer(
        destino, len(DADOS), rede, lambda p: descida.sha256(p) == soma, avanco
    )  # fmt: skip


def test_cada_queda_continua_de_onde_parou(tmp_path):
    rede, vistos = Rede(300, 0, 100), []
    assert descer(tmp_path / "a" / "x", rede, vistos.append)
    assert (tmp_path / "a" / "x").read_bytes() == DADOS
    assert rede.pedidos == [0, 300, 300, 400] and vistos == list(range(100, 1001, 100))
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["x"]


def test_desiste_depois_de_quedas_sem_byte_novo_e_a_outra_vez_aproveita(tmp_path):
    rede = Rede(200, *[0] * descida.TENTATIVAS)
    with pytest.raises(Caiu):
        descer(tmp_path / "x", rede)
    assert len(rede.pedidos) == 1 + descida.TENTATIVAS
    assert parcial_de(tmp_path / "x").read_bytes() == DADOS[:200]
    outra = Rede()
    assert descer(tmp_path / "x", outra) and outra.pedidos == [200]


def test_ctrl_c_guarda_o_que_veio_e_um_pedido_recusado_nao_deixa_nada(tmp_path):
    def parar(n):
        if n == 700:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        descer(tmp_path / "x", Rede(), parar)
    assert parcial_de(tmp_path / "x").read_bytes() == DADOS[:700]
    with pytest.raises(PermissionError):
        descer(tmp_path / "y", Rede(PermissionError()))
    assert not parcial_de(tmp_path / "y").exists()


def test_servidor_que_so_manda_do_comeco(tmp_path):
    rede = Rede(500, DoZero())
    assert descer(tmp_path / "x", rede) and rede.pedidos == [0, 500, 0]


def test_pedaco_de_outra_versao_recomeca_uma_vez_so(tmp_path):
    for pedaco in (b"x" * 400, b"x" * 4000):
        parcial_de(tmp_path / "x").write_bytes(pedaco)
        assert descer(tmp_path / "x", Rede())
        assert (tmp_path / "x").read_bytes() == DADOS
        (tmp_path / "x").unlink()
    # Bytes trocados por inteiro: nem com um pedaço antigo se tenta para sempre; e nada fica.
    for dados in (bytes(1000), DADOS + b"mais"):
        assert not descer(tmp_path / "x", Rede(dados=dados))
        assert list(tmp_path.iterdir()) == []


def test_disco_cheio_devolve_o_que_ocupava(tmp_path, monkeypatch):
    cheio = OSError(errno.ENOSPC, "cheio")
    with pytest.raises(OSError, match="cheio"):
        descer(tmp_path / "x", Rede(300, cheio))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(descida.shutil, "disk_usage", lambda _: SimpleNamespace(free=999))
    with pytest.raises(OSError) as info:
        descer(tmp_path / "x", Rede())
    assert info.value.errno == errno.ENOSPC and list(tmp_path.iterdir()) == []
