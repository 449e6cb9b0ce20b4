"""O laboratório no Windows, até onde dá para saber sem um: o que lá difere, imitado por uma costura.

| o que lá é diferente | onde é imitado |
|---|---|
| arquivo aberto não se troca nem se apaga | `preso`; e, com as lições de verdade, `windows_de_mentira` |
| o que `os`, `signal`… não têm | `faltas`, que lê o código; `windows_de_mentira`, que o roda |
| pasta proibida, disco de rede, nomes, junções, discos C: e D: | uma por uma, aqui embaixo |
| cp850 e cp1252 | `test_toda_letra…`; test_ambientes: `console_de_poucas_letras` |
"""

import ast
import errno
import json
import ntpath
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import LAB, RAIZ, rodar, sem_poderes
from nucleo.base import arquivos, caminhos, descida
from nucleo.base.caderno import Caderno
from nucleo.base.erros import ErroDoUsuario
from windows_de_mentira.sitecustomize import AUSENTES, MODULOS, Modulo

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a costura olha em /proc")
UNIX = pytest.mark.skipif(os.name == "nt", reason="aqui é o próprio Windows")

# --- o código: nada que lá não exista -----------------------------------------------------------

_GUARDA = re.compile(r"os\.name|sys\.platform|hasattr\(")
_TALVEZ = re.compile(  # quem não tem nenhum destes nomes nem precisa ser lido
    rf"\b({'|'.join(MODULOS)})\b|preexec_fn|pass_fds|process_group|from ({'|'.join(AUSENTES)}) |"
    + "|".join(rf"\b{m}\.({'|'.join(nomes)})\b" for m, nomes in AUSENTES.items())
)
_PERDOA = re.compile(r"ImportError|ModuleNotFoundError|AttributeError")
# {função: por que nunca se chega a ela lá}
DISPENSADAS = {
    "comando_de_espacos": "só depois de achar o programa unshare, que é do Linux",
    "_matar": "só com os processos de /proc",
    "rodar_vigiado": "do programa do vigia, que lá não se lança: quem prende os filhos é o job",
    "matar_descendentes": "do programa do vigia, que lá não se lança",
}


def _candidatos(arvore):
    for n in ast.walk(arvore):
        if isinstance(n, ast.Import):
            yield from ((n, a.name) for a in n.names if a.name.split(".")[0] in MODULOS)
        elif isinstance(n, ast.ImportFrom) and not n.level:
            nomes = AUSENTES.get(n.module, ())
            yield from ((n, a.name) for a in n.names if n.module in MODULOS or a.name in nomes)
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
            if n.attr in AUSENTES.get(n.value.id, ()):
                yield n, f"{n.value.id}.{n.attr}"
        elif isinstance(n, ast.keyword) and n.arg in ("preexec_fn", "pass_fds", "process_group"):
            yield n, n.arg


def faltas(fonte: str, so_no_alto: bool = False) -> list[str]:
    """O que o Windows não tem e a fonte usa sem perguntar antes onde está: "linha: nome".

    Guardam: um `if` (ou um retorno antes, na mesma função) que pergunte pelo sistema ou por hasattr, e
    um `try` ou `suppress` que perdoe a falta. `so_no_alto`: só o que roda ao importar.
    """
    if not _TALVEZ.search(fonte):
        return []
    arvore = ast.parse(fonte)
    pais = {f: n for n in ast.walk(arvore) for f in ast.iter_child_nodes(n)}

    def guardado(n) -> bool:
        while n in pais:
            filho, n = n, pais[n]
            if isinstance(n, (ast.If, ast.IfExp, ast.While)) and filho is not n.test:
                if _GUARDA.search(ast.unparse(n.test)):
                    return True
            elif isinstance(n, ast.BoolOp):
                if any(_GUARDA.search(ast.unparse(v)) for v in n.values[: n.values.index(filho)]):
                    return True
            elif isinstance(n, ast.Try) and filho in n.body:
                if any(h.type is None or _PERDOA.search(ast.unparse(h.type)) for h in n.handlers):
                    return True
            elif isinstance(n, ast.With) and filho in n.body:
                if any(_PERDOA.search(ast.unparse(i)) for i in n.items):
                    return True
            elif isinstance(n, (ast.FunctionDef, ast.Lambda)) and filho not in getattr(
                n, "decorator_list", []
            ):
                if so_no_alto or getattr(n, "name", "") in DISPENSADAS:
                    return True
                antes = n.body[: n.body.index(filho)] if isinstance(n, ast.FunctionDef) else []
                for x in antes:
                    sai = isinstance(x, ast.If) and isinstance(x.body[-1], (ast.Return, ast.Raise))
                    if sai and _GUARDA.search(ast.unparse(x.test)):
                        return True
        return False

    return [f"{n.lineno}: {nome}" for n, nome in _candidatos(arvore) if not guardado(n)]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("fonte", "achadas"),
    [
        ("import fcntl", 1),
        ("from signal import SIGKILL", 1),
        ("import os\ndef f():\n    os.killpg(1, 2)", 1),
        ("def f():\n    if os.name == 'nt':\n        return\n    os.killpg(1, 2)", 0),
        (
            "def f():\n    if os.name == 'nt':\n        os.killpg(1, 2)",
            0,
        ),  # quem pergunta sabe o que faz
        ("try:\n    import resource\nexcept ImportError:\n    pass", 0),
        ("try:\n    import resource\nexcept ValueError:\n    pass", 1),
        ("subprocess.run(c, preexec_fn=f)", 1),
        ("hasattr(os, 'setsid') and os.setsid()", 0),
        ("os.setsid() and hasattr(os, 'setsid')", 1),
        ("os.getppid(), os.kill(1, signal.SIGINT), signal.SIGTERM", 0),  # estes há
    ],
)
def test_quem_le_o_codigo_acha_o_que_deve(fonte, achadas):
    assert len(faltas(fonte)) == achadas


@pytest.mark.unit
def test_nada_em_lab_supoe_o_que_o_windows_nao_tem():
    lidos = {f: faltas(f.read_text("utf-8")) for f in LAB.rglob("*.py")}
    assert len(lidos) > 80 and not {str(f): x for f, x in lidos.items() if x}
    # Os testes escolhem onde rodam; mas o que roda ao importá-los roda em toda parte.
    dos_testes = {f: faltas(f.read_text("utf-8"), True) for f in (RAIZ / "tests").glob("*.py")}
    assert not {str(f): x for f, x in dos_testes.items() if x}


# --- arquivos presos -----------------------------------------------------------------------------


def negado(codigo: int, *nomes) -> PermissionError:
    """O erro com que o Windows responde: 5 é acesso negado; 32, em uso por outro processo."""
    erro = PermissionError(errno.EACCES, "Acesso negado", str(nomes[0]) if nomes else None)
    erro.winerror, erro.filename2 = codigo, str(nomes[-1]) if nomes else None
    return erro


@pytest.fixture
def preso(monkeypatch):
    """preso(n, código, nome): os.replace e os.unlink do que tem esse nome falham n vezes; dá as tentativas."""

    def prender(vezes: int, codigo: int, nome: str) -> list:
        tentativas = []

        def teimosa(verdadeira):
            def funcao(*nomes, **k):
                if Path(nomes[-1]).name == nome or Path(nomes[0]).name == nome:
                    tentativas.append(nomes)
                    if len(tentativas) <= vezes:
                        raise negado(codigo, *nomes)
                return verdadeira(*nomes, **k)

            return funcao

        for f in ("replace", "unlink"):
            monkeypatch.setattr(os, f, teimosa(getattr(os, f)))
        return tentativas

    monkeypatch.setattr(arquivos, "ESPERA", 0.3)  # quem prende de vez prende mais que isso
    return prender


def trocar_um(pasta: Path) -> bytes:
    return arquivos.gravar(pasta / "t.csv", b"novo").read_bytes()


def descer_um(pasta: Path) -> bytes:
    assert descida.descer(pasta / "t.csv", 4, lambda n: iter([b"novo"]), lambda _: True)
    return (pasta / "t.csv").read_bytes()


def tirar_a_sobra(pasta: Path) -> bytes:
    arquivos.gravar_todos({pasta / "outro": b"novo"}, [pasta / "t.csv"])
    assert not (pasta / "t.csv").exists()
    return (pasta / "outro").read_bytes()


@pytest.mark.unit
@pytest.mark.parametrize("fazer", [trocar_um, descer_um, tirar_a_sobra])
@pytest.mark.parametrize("codigo", [5, 32])
def test_o_antivirus_solta_logo_e_espera_se_por_ele(fazer, codigo, tmp_path, preso, monkeypatch):
    (tmp_path / "t.csv").write_bytes(b"velho")
    tentativas = preso(2, codigo, "t.csv")
    monkeypatch.setattr(arquivos, "ESPERA", 60.0)  # quem solta logo, numa máquina lenta
    assert fazer(tmp_path) == b"novo" and len(tentativas) == 3


@pytest.mark.unit
def test_o_excel_nao_solta_e_se_diz_o_que_fechar(tmp_path, preso):
    (tmp_path / "t.csv").write_bytes(b"velho")
    tentativas = preso(10**9, 32, "t.csv")
    with pytest.raises(ErroDoUsuario) as erro:
        trocar_um(tmp_path)
    assert "t.csv está aberto em outro programa" in erro.value.por_que
    assert erro.value.o_que_fazer.startswith("Feche t.csv") and 2 < len(tentativas) < 12
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"t.csv": b"velho"}


@pytest.mark.unit
def test_uma_recusa_que_nao_e_do_windows_nao_espera(tmp_path, monkeypatch):
    vezes = []

    def recusa(*nomes):
        vezes.append(nomes)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", recusa)
    with pytest.raises(ErroDoUsuario, match="não permite escrita"):
        trocar_um(tmp_path)
    assert len(vezes) == 1


@pytest.mark.unit
def test_pasta_presa_fica_inteira_onde_esta(tmp_path, preso):
    """Outra lição tem o modelo mapeado: o de antes não se apaga pela metade, e o novo não fica ao lado."""
    alvo = tmp_path / "smollm2"
    alvo.mkdir()
    for nome in ("config.json", "model.safetensors"):
        (alvo / nome).write_bytes(b"velho")
    preso(10**9, 32, "smollm2")
    with pytest.raises(PermissionError), arquivos.pasta_ao_lado(alvo) as trabalho:
        (trabalho / "config.json").write_bytes(b"novo")
    assert [p.name for p in tmp_path.iterdir()] == ["smollm2"]
    assert {p.read_bytes() for p in alvo.iterdir()} == {b"velho"} and len(list(alvo.iterdir())) == 2


@pytest.mark.unit
def test_previsoes_presas_tem_mensagem_e_continuam_onde_estavam(tmp_path, preso):
    from nucleo.exercicios import previsoes

    (tmp_path / "02_previsoes.json").write_bytes(b"{}")
    preso(10**9, 32, "02_previsoes.json")
    with pytest.raises(ErroDoUsuario, match="aberto em outro programa"):
        previsoes.recomecar(tmp_path, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["02_previsoes.json"]


@LINUX
@pytest.mark.unit
def test_o_que_se_confere_ao_baixar_nao_fica_mapeado(tmp_path):
    """Os pesos são lidos por um mapa antes da troca de nome, que um mapa aberto impediria."""
    from safetensors.numpy import save_file

    from nucleo.modelos import hub, tensores

    save_file({"wte.weight": np.ones((9, 4), np.float32)}, tmp_path / "p.parcial")
    mapas = Path("/proc/self/maps")
    assert hub._sao_pesos(tmp_path / "p.parcial") and "p.parcial" not in mapas.read_text("utf-8")
    (um,) = tensores.ler_cabecalho(tmp_path / "p.parcial").values()
    aberta = tensores.ler(um)  # o mapa existe, e a pergunta de cima o acharia
    assert "p.parcial" in mapas.read_text("utf-8") and aberta.sum() == 36


# --- pastas, discos e nomes -----------------------------------------------------------------------

PROIBIDA = """
import os, sys, tempfile, types
sys.path.insert(0, sys.argv[1])
import filelock
from pathlib import Path
from nucleo.base import arquivos
# No Windows o os.access diz que toda pasta aceita, e o tempfile crê nele; e a trava que não pôde abrir o
# arquivo diz que outro a tem.
tempfile._os = types.SimpleNamespace(**(vars(os) | {"name": "nt", "access": lambda *a: True}))
class Trava(filelock.FileLock):
    def acquire(self, timeout=None, **k):
        assert timeout == 0, "esperaria para sempre"
        raise filelock.Timeout(self.lock_file)
filelock.FileLock = Trava
try:
    arquivos.conferir_pasta(Path(sys.argv[2]))
except arquivos.ErroDoUsuario as erro:
    print(erro.por_que)
try:
    with arquivos.so_um(Path(sys.argv[2])):
        pass
except PermissionError:
    print("recusada na hora")
"""


@UNIX
@pytest.mark.unit
def test_pasta_proibida_se_diz_na_hora(tmp_path):
    tmp_path.chmod(0o555)
    feito = subprocess.run(
        [sys.executable, "-c", PROIBIDA, str(LAB), str(tmp_path)], preexec_fn=sem_poderes,
        capture_output=True, encoding="utf-8", env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    tmp_path.chmod(0o755)
    assert "não permite escrita" in feito.stdout and "recusada na hora" in feito.stdout, feito


@pytest.mark.unit
@pytest.mark.parametrize(("codigo", "segue"), [(1, True), (50, True), (6, False)])
def test_disco_de_rede_que_nao_sabe_trancar(codigo, segue, tmp_path, monkeypatch):
    import filelock

    class Trava(filelock.FileLock):
        def acquire(self, timeout=None, **k):
            erro = OSError(errno.EINVAL, "Função incorreta")
            erro.winerror = codigo
            raise erro

    monkeypatch.setattr(filelock, "FileLock", Trava)
    dentro = []
    try:
        with arquivos.so_um(tmp_path):
            dentro.append(1)
    except OSError as erro:
        assert erro.winerror == codigo
    assert bool(dentro) == segue


@UNIX
@pytest.mark.unit
def test_cache_proibido_nao_monta_pacote_e_se_diz(tmp_path, monkeypatch):
    from nucleo.sala import montar

    def negar(pasta):
        raise negado(5, pasta)

    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(arquivos, "experimentar", negar)
    with pytest.raises(ErroDoUsuario, match="LAB_CACHE"):
        montar.montar(tmp_path / "pacote", ["mini"], [], {})
    assert not (tmp_path / "pacote").exists()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("codigo", "nome", "dito"),
    [
        (123, "a?b", "não aceita esse nome"),
        (206, "x" * 300, "o Windows para perto de 260"),
        (3, "x" * 300, "o Windows para perto de 260"),
        (2, "t.csv", "acesso controlado a pastas"),
    ],
)
def test_os_codigos_do_windows_em_portugues(codigo, nome, dito, tmp_path):
    erro = OSError(errno.ENOENT, "O sistema não pode encontrar", str(tmp_path / nome))
    erro.winerror = codigo
    assert dito in arquivos.nao_gravou(tmp_path, erro).por_que
    del erro.winerror
    assert dito not in arquivos.nao_gravou(tmp_path, erro).por_que


@pytest.mark.unit
def test_nomes_que_o_windows_nao_da():
    from nucleo.sala import pacote

    nomes = [
        "con",
        "Aux.json",
        "nul.tar.gz",
        "COM1",
        "com¹.txt",
        "lpt9.",
        "conin$",
        "com0",
        "cone",
        "auxiliar",
    ]
    # Quem sabe é a biblioteca: as duas listas foram escritas por gente diferente.
    reservado = getattr(ntpath, "isreserved", lambda n: PureWindowsPath(n).is_reserved())
    assert {n: arquivos.serve_no_windows(n) for n in nomes} == {n: not reservado(n) for n in nomes}
    ruins = ["a:b", "a?", "x.", "x ", "a\\b", "a\tb", ""]
    assert not any(map(arquivos.serve_no_windows, ruins))
    assert pacote.recusa_do_nome("modelos/mini/aux.json") and not pacote.recusa_do_nome(
        "LEIA-ME.txt"
    )
    with pytest.raises(ErroDoUsuario, match="só difere de outro na caixa"):
        pacote.conferir_nomes(["modelos/a/x.json", "modelos/A/x.json"])


@pytest.mark.unit
def test_num_disco_que_nao_distingue_caixa_o_novo_nao_sai_com_a_sobra(tmp_path):
    for nome, valor in (("Rei", b"1"), ("rei", b"2")):
        c = Caderno("teste", "T")
        c.arquivos[f"{nome}.png"] = valor
        c.gravar(tmp_path)
    # Lá as duas são a mesma, e apagar a velha apagaria a nova.
    assert (tmp_path / "Rei.png").exists() and (tmp_path / "rei.png").read_bytes() == b"2"


@UNIX
@pytest.mark.unit
def test_juncao_conta_como_atalho(tmp_path, monkeypatch):
    """`mklink /J` não pede privilégio, e o is_symlink do Python não a vê."""
    from nucleo.exercicios import correcao
    from nucleo.sala import pacote

    for nome in ("turma/ana", "fora"):
        (tmp_path / nome).mkdir(parents=True)
    (tmp_path / "turma" / "bia").symlink_to(tmp_path / "fora", target_is_directory=True)
    monkeypatch.setattr(Path, "is_symlink", lambda _: False)
    monkeypatch.setattr(os.path, "islink", lambda _: False)
    assert [p.name for p in correcao.pastas_da_turma(tmp_path / "turma")] == ["ana"]
    with pytest.raises(ErroDoUsuario, match="atalho"):
        list(pacote.listar(tmp_path / "turma"))


@pytest.mark.unit
def test_saidas_noutro_disco_nao_param_as_apostilas(tmp_path, monkeypatch):
    from nucleo.paginas import apostilas

    (tmp_path / "lab.py").touch()
    (tmp_path / "a.md").write_text("# T\n\n[x](lab.py#y)\n", encoding="utf-8")
    monkeypatch.setattr(os.path, "relpath", lambda *_: ntpath.relpath(r"D:\lab.py", r"C:\outputs"))
    (pagina,) = apostilas.escrever(tmp_path, tmp_path / "html")
    assert f'href="{(tmp_path / "lab.py").as_uri()}#y"' in pagina.corpo


# --- telas, comandos e códigos de saída -----------------------------------------------------------


@cache
def letras_do_laboratorio() -> set[str]:
    """As letras de todo texto que pode ir à tela: as cadeias de lab/ e os textos de data/."""
    textos = [f.read_text("utf-8") for f in (RAIZ / "data").rglob("*.toml")]
    for f in LAB.rglob("*.py"):
        nos = ast.walk(ast.parse(f.read_text("utf-8")))
        textos += [n.value for n in nos if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    # Não são texto: o que marca um byte que não se leu, e a marca do começo de um arquivo.
    return {c for c in "".join(textos) if c.isprintable() and c not in "\ufffd\ufeff"}


@pytest.mark.unit
@pytest.mark.parametrize("codificacao", ["cp850", "cp1252", "cp860", "ascii"])
def test_toda_letra_do_laboratorio_tem_o_que_por_no_lugar(codificacao):
    from palco import tela

    letras = letras_do_laboratorio()
    assert {"√", "₀", "é"} < letras

    def escrito(texto: str) -> str:
        erro = UnicodeEncodeError(codificacao, texto, 0, len(texto), "")
        try:
            return texto.encode(codificacao).decode(codificacao)
        except UnicodeEncodeError:
            return tela._trocar(erro)[0]

    assert not [c for c in letras if "?" in escrito(c) and c != "?"]


@pytest.mark.unit
def test_um_expoente_que_a_tela_nao_tem_nao_vira_algarismo():
    from palco import tela

    tela.preparar_fluxos()
    assert "10⁵ d⁻¹ 2²⁰".encode("cp850", "lab").decode("cp850") == "10^5 d^-¹ 2²0"
    assert "10⁵ 2⁻²⁴".encode("ascii", "lab") == b"10^5 2^-24"


@pytest.mark.unit
def test_o_comando_sugerido_acha_o_ambiente_por_outro_nome(tmp_path, monkeypatch):
    """O disco mapeado Z:, ou um atalho: o laboratório se conhece por um nome, e o Python por outro."""
    from palco import erros

    (tmp_path / "lab" / ".venv" / "Scripts").mkdir(parents=True)
    (tmp_path / "Z").symlink_to(tmp_path / "lab", target_is_directory=True)
    monkeypatch.setattr(caminhos, "RAIZ", tmp_path / "lab")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "Z" / ".venv" / "Scripts" / "python.exe"))
    certo = os.path.join(".venv", "Scripts", "python")
    assert erros.com_este_python("python lab/x.py") == f"{certo} lab/x.py"


@pytest.mark.unit
@pytest.mark.parametrize(("sistema", "codigo"), [("nt", 141), ("posix", None)])
def test_pipe_fechado_no_windows_e_argumento_invalido(sistema, codigo, tmp_path, monkeypatch):
    from palco import erros

    com_outro_nome = Modulo("os")
    monkeypatch.setattr(erros, "os", com_outro_nome if sistema == "nt" else os)
    with (tmp_path / "tela").open("w", encoding="utf-8") as tela:
        monkeypatch.setattr(sys, "stdout", tela)
        assert erros.explicar(OSError(errno.EINVAL, "Invalid argument")) == codigo
        # O de um arquivo traz o nome dele, e não é a tela: é defeito nosso.
        assert erros.explicar(OSError(errno.EINVAL, "Invalid argument", "a?b")) is None


@pytest.mark.unit
def test_quem_ja_esta_em_utf8_nao_recomeca_para_sempre(monkeypatch):
    """Uma pasta cujo nome não é UTF-8 continua ilegível depois de recomeçar."""
    from palco import tela

    recomecos = []
    monkeypatch.setattr(os, "execve", lambda *a: recomecos.append(a))
    for utf8, nome in ((0, "posix"), (1, "posix"), (0, "nt")):
        falso = {
            "prefix": "/aula\udce9",
            "flags": SimpleNamespace(utf8_mode=utf8),
            "orig_argv": ["x"],
        }
        falso |= {"executable": "python", "stdout": sys.stdout}
        monkeypatch.setattr(tela, "sys", SimpleNamespace(**falso))
        monkeypatch.setattr(tela, "os", os if nome == "posix" else Modulo("os"))
        tela.ler_os_acentos()
    assert len(recomecos) == 1


@pytest.mark.unit
def test_resposta_que_sai_com_1_saiu_e_nao_gastou_o_tempo(monkeypatch):
    """Sem SIGXCPU, que o Windows não tem, nenhum código de saída se confunde com ele."""
    from nucleo.exercicios import caixa, registro

    monkeypatch.delattr("signal.SIGXCPU", raising=False)
    tarefa = registro.por_numero(2, 2)
    (veredito,) = caixa.Caixa().vereditos([(tarefa, "import os\nos._exit(1)\n")], registro.SEMENTE)
    assert veredito.engano == "saiu"


@pytest.mark.unit
def test_licao_morta_pelo_windows_nao_e_erro_da_licao():
    import tudo

    morta = tudo.julgar("02_embeddings", 0xC0000005, 1.0, "", False)  # acesso indevido à memória
    assert "o sistema a encerrou" in morta.fazer[0]
    assert "o sistema" not in tudo.julgar("02_embeddings", 1, 1.0, "ValueError: x", False).fazer[0]


@pytest.mark.unit
def test_o_erro_da_licao_passa_com_um_fim_de_linha_so(monkeypatch, capsys):
    import io

    import tudo

    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    dito = []
    tudo._ecoar(io.BufferedReader(io.BytesIO("1 %\r2 %\r\nção\r\n".encode())), dito)
    assert "".join(dito) == capsys.readouterr().err == "1 %\r2 %\nção\n"


@pytest.mark.unit
def test_porta_ocupada_se_diz_sem_o_numero_do_sistema():
    import socket

    from nucleo.sala import espelho

    with socket.create_server(("127.0.0.1", 0)) as outro, pytest.raises(ErroDoUsuario) as erro:
        espelho.escutar("127.0.0.1", outro.getsockname()[1])
    assert erro.value.por_que == "Outro programa já a usa."


# --- as lições de verdade, no Windows de mentira -----------------------------------------------------


def no_windows(pasta: Path) -> dict[str, str]:
    """O ambiente em que cada Python que nascer crê estar no Windows, e `pasta` é um disco de lá."""
    pasta.mkdir(exist_ok=True)
    return {
        "PYTHONPATH": str(RAIZ / "tests" / "windows_de_mentira"),
        "WINDOWS_DE_MENTIRA": str(pasta),
    }


MORDE = """
import mmap, os, sys
from pathlib import Path
def dito(fazer, *a):
    try: fazer(*a)
    except Exception as erro: return getattr(erro, "winerror", type(erro).__name__)
aqui = Path(sys.argv[1])
de_lab = {"__file__": sys.argv[2]}
exec("import os, signal, sys; x = os.name, sys.platform, hasattr(os, 'killpg'), hasattr(signal, 'SIGKILL')", de_lab)
print(de_lab["x"], dito(exec, "import fcntl", de_lab), os.name, dito(exec, "import fcntl", {}))
(aqui / "a").write_bytes(b"x" * 9); (aqui / "b").write_bytes(b"x")
with (aqui / "a").open("rb") as f:
    mapa = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
print(dito(os.replace, aqui / "b", aqui / "a"), dito(os.unlink, aqui / "a"), dito(os.symlink, "a", aqui / "c"))
mapa.close()
print(dito(os.replace, aqui / "b", aqui / "a"), dito(open, aqui / "nul.txt", "w"), dito(open, aqui / "A", "w"))
"""


@LINUX
@pytest.mark.unit
def test_o_windows_de_mentira_morde(tmp_path):
    env = os.environ | no_windows(tmp_path / "d")
    comando = [sys.executable, "-c", MORDE, str(tmp_path / "d"), str(LAB / "x.py")]
    feito = subprocess.run(comando, env=env, capture_output=True, encoding="utf-8")
    assert feito.stdout.splitlines() == [
        "('nt', 'win32', False, False) ModuleNotFoundError posix None",
        "32 32 1314",
        "None 123 AssertionError",
    ], feito.stderr


@LINUX
@pytest.mark.mini
@pytest.mark.cli
def test_uma_secao_roda_e_grava_por_cima(tmp_path):
    pasta = tmp_path / "Área de Trabalho"
    opcoes = ["--modelo", "mini", "--secao", "1", "--sem-graficos", "--saida", str(pasta / "s")]
    feito = rodar("02_embeddings.py", *opcoes, ambiente=no_windows(pasta))
    assert feito.returncode == 0 and feito.stderr == "", feito.stderr
    # O comando guardado é o que se cola nos dois terminais de lá: aspas duplas.
    guardado = json.loads((pasta / "s" / "resultado.json").read_text("utf-8"))
    assert guardado["comando"].endswith(f'--saida "{pasta / "s"}"')


IMPORTAR = """
import importlib, sys
from pathlib import Path
lab = Path(sys.argv[1])
sys.path.insert(0, str(lab))
nomes = [".".join(p.relative_to(lab).with_suffix("").parts) for d in ("nucleo", "palco") for p in (lab / d).rglob("*.py")]
nomes = [n for n in nomes if "solucoes" not in n]
for n in nomes: importlib.import_module(n)
print(len(nomes))
"""


@LINUX
@pytest.mark.longo
@pytest.mark.cli
def test_todo_modulo_se_importa(tmp_path):
    comando = [sys.executable, "-c", IMPORTAR, str(LAB)]
    env = os.environ | no_windows(tmp_path / "d")
    feito = subprocess.run(comando, env=env, capture_output=True, encoding="utf-8")
    assert feito.returncode == 0 and int(feito.stdout) > 60, feito.stderr


@LINUX
@pytest.mark.longo
@pytest.mark.mini
@pytest.mark.cli
def test_a_licao_inteira_com_o_processo_ao_lado_e_por_cima_da_anterior(tmp_path):
    pasta = tmp_path / "d"
    for mais in ([], ["--sem-graficos"]):  # na segunda vez, as figuras da primeira saem
        opcoes = ["--modelo", "mini", "--saida", str(pasta / "s"), *mais]
        feito = rodar("02_embeddings.py", *opcoes, ambiente=no_windows(pasta))
        assert feito.returncode == 0 and feito.stderr == "", feito.stderr
        assert bool(list((pasta / "s").glob("*.png"))) != bool(mais)
