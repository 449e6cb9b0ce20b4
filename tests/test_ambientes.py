"""O laboratório em máquinas difíceis: a mesma lição, o mesmo resultado, ou uma mensagem clara.

| ambiente | onde é testado |
|---|---|
| console cp1252, cp850 ou ASCII | `test_console_de_poucas_letras`; test_licao_02: `consoles_dificeis` (smollm2) |
| LC_ALL=C (de verdade, sem o UTF-8 do Python) | `test_console_de_poucas_letras[posix]` |
| os mesmos, com acentos em cada caminho | `test_acentos_em_toda_parte…` |
| NO_COLOR, terminal burro, num terminal de verdade | `test_terminal_sem_cor` |
| pipe fechado cedo (`… \\| head -1`) | `test_pipe_fechado_cedo`; test_bordas: `tela_fechada_ou_cheia` |
| sem HOME, e com um HOME que não existe | `test_sem_home` |
| caminho com espaços, acentos e 200 letras | `test_repositorio_num_caminho_dificil` |
| repositório sem permissão de escrita | `test_repositorio_so_de_leitura` |
| um núcleo e 2 GB de memória, lição inteira | test_licao_02: `completa` (smollm2) |
| Python 3.10 ao mais novo | `test_a_gramatica_e_a_do_python_3_10`, `test_com_cada_python_da_maquina`; o resto à mão |
| nomes que só diferem na caixa, nomes do Windows | test_estilo: `nomes_servem`; test_licao_02: `num_nucleo`; `palavra_pedida` |
| o Windows: arquivos presos, nomes, o que lá não existe | test_windows |
| CRLF nos dados | `test_dados_com_crlf`; .gitattributes pede LF |
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import LAB, RAIZ, erro_gentil, sem_poderes
from nucleo.base import caminhos
from nucleo.modelos import fontes, listas, tokens
from test_faltas import de_outro, devolver, licao_curta, so_de_leitura  # noqa: F401 - fixture
from test_leia_me import copiar_repositorio

resource = pytest.importorskip("resource")  # limites do Unix

LICAO = "02_embeddings.py"
RAPIDA = ["--modelo", "mini", "--secao", "1", "--sem-graficos"]


def limpo(**mais: str) -> dict[str, str]:
    """Um ambiente só com o PATH: nem HOME, nem idioma, nem o que os testes acrescentam."""
    return {"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"} | mais


def chamar(*partes: str, env: dict, **k):
    return subprocess.run(
        [sys.executable, *partes], env=env, capture_output=True, timeout=280, cwd=RAIZ, **k
    )


# --- o console -------------------------------------------------------------------------------------

CONSOLES = {
    "cp1252": ({"PYTHONIOENCODING": "cp1252"}, "cp1252"),
    "cp850": ({"PYTHONIOENCODING": "cp850"}, "cp850"),  # o do cmd.exe no Brasil
    "ascii": ({"PYTHONIOENCODING": "ascii"}, "ascii"),
    # Sem as duas bondades do Python, LC_ALL=C é ASCII de verdade, também nos nomes de arquivos.
    "posix": ({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, "ascii"),
}


@pytest.mark.cli
@pytest.mark.parametrize(
    "console", [pytest.param(c, marks=[pytest.mark.longo] * (c == "cp850")) for c in CONSOLES]
)
def test_console_de_poucas_letras(console, tmp_path):
    mais, codificacao = CONSOLES[console]
    env = limpo(HOME=str(tmp_path), **mais)
    feito = chamar(str(LAB / LICAO), *RAPIDA, "--saida", str(tmp_path / "s"), env=env)
    tela = feito.stdout.decode(codificacao)  # estrito: tudo o que saiu existe nessa codificação
    assert feito.returncode == 0, feito.stderr
    assert ("ção" in tela) == (codificacao != "ascii") and "Pronto" in tela
    # Os arquivos são sempre UTF-8: quem manda na tela não manda neles.
    assert "ção" in (tmp_path / "s" / "relatorio.md").read_text("utf-8")
    erro = chamar(str(LAB / LICAO), "--top", "não há", "--saida", str(tmp_path / "e"), env=env)
    assert erro.returncode == 2 and b"Traceback" not in erro.stderr
    assert "Por qu" in erro.stderr.decode(codificacao)


@pytest.mark.cli
def test_acentos_em_toda_parte_com_um_sistema_que_so_le_ascii(tmp_path):
    """Repositório, modelo, saída e palavra com acento, que aqui chegam ao Python como meios-caracteres."""
    clone = copiar_repositorio(tmp_path / "aula de terça" / "laboratório é aqui")
    shutil.copytree(clone / "data" / "mini", clone / "modelo é")
    env = limpo(HOME=str(tmp_path), **CONSOLES["posix"][0])
    feito = subprocess.run(
        [sys.executable, "lab/" + LICAO, "--modelo", "modelo é", "--secao", "4", "--palavra", "mãe",
         "--sem-graficos", "--saida", "saída é"],
        env=env, cwd=clone, capture_output=True, timeout=280,
    )  # fmt: skip
    assert feito.returncode == 0, feito.stderr
    resultado = json.loads((clone / "saída é" / "resultado.json").read_text("utf-8"))
    assert resultado["modelo"]["nome"] == "modelo é"
    assert "--palavra 'mãe'" in resultado["comando"]
    # Os três formatos de tokenizador passam pela biblioteca em Rust.
    tres = "import sys; sys.path.insert(0, 'lab')\nfrom nucleo.modelos import fontes, tokens\n"
    tres += "from pathlib import Path; p = Path('puro').resolve(); p.mkdir()\n"
    tres += "(p / 'vocab.txt').write_text('[UNK]\\n[SEP]\\n[CLS]\\ngato\\n')\n"
    tres += "print(fontes.tokenizador_gpt2().ids(' king'), tokens.Tokenizador.de_pasta(p, 'p').ids('gato'))"
    feito = subprocess.run([sys.executable, "-c", tres], env=env, cwd=clone, capture_output=True)
    assert feito.stdout.decode() == "[5822] [3]\n", feito.stderr


@pytest.mark.cli
@pytest.mark.parametrize(
    ("ambiente", "proibido"),
    [
        (
            {"NO_COLOR": "1", "TERM": "xterm-256color"},
            rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|9[0-7])(?:;[0-9;]*)?m",
        ),
        ({"TERM": "dumb"}, rb"\x1b"),
    ],
    ids=["NO_COLOR", "dumb"],
)
def test_terminal_sem_cor(ambiente, proibido, tmp_path):
    """Num terminal de verdade (pty): sem cor com NO_COLOR; sem nenhum código com TERM=dumb."""
    import pty

    def tela(env: dict) -> bytes:
        dono, dele = pty.openpty()
        processo = subprocess.Popen(
            [sys.executable, str(LAB / LICAO), *RAPIDA, "--saida", str(tmp_path)],
            env=os.environ | env, stdout=dele, stderr=dele, stdin=dele, cwd=RAIZ,
        )  # fmt: skip
        os.close(dele)
        lido = b""
        while True:
            try:
                if not (bloco := os.read(dono, 65536)):
                    break
            except OSError:  # o outro lado fechou
                break
            lido += bloco
        os.close(dono)
        assert processo.wait(60) == 0, lido[-2000:]
        return lido

    visto = tela(ambiente)
    assert b"Pronto" in visto and not re.search(proibido, visto)
    if "NO_COLOR" in ambiente:
        com_cor = tela({"TERM": "xterm-256color"})
        assert re.search(proibido, com_cor)  # o teste podia falhar: sem NO_COLOR há cor


@pytest.mark.cli
@pytest.mark.parametrize("linhas", [0, 5])
def test_pipe_fechado_cedo(linhas, tmp_path):
    """`python lab/… | head -1`: nenhum traceback, e as saídas de antes inteiras."""
    (tmp_path / "relatorio.md").write_text("bom", encoding="utf-8")
    comando = [sys.executable, "-u", str(LAB / LICAO), *RAPIDA, "--saida", str(tmp_path)]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    processo = subprocess.Popen(
        comando, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=RAIZ
    )
    for _ in range(linhas):
        processo.stdout.readline()
    processo.stdout.close()
    erro = processo.stderr.read().decode("utf-8")
    codigo = processo.wait(120)
    assert "Traceback" not in erro and "BrokenPipe" not in erro, erro
    assert codigo in (1, 141), (codigo, erro)  # 1 é do rich, que percebe antes de nós
    assert {p.name: p.read_text("utf-8") for p in tmp_path.iterdir()} == {"relatorio.md": "bom"}


# --- lugares ---------------------------------------------------------------------------------------


@pytest.mark.cli
@pytest.mark.parametrize("home", [None, "nao-existe"])
def test_sem_home(home, tmp_path):
    """Também com figuras: o matplotlib procura a pasta de configuração dele em HOME."""
    env = limpo(PYTHONIOENCODING="utf-8", TMPDIR=str(tmp_path))
    if home:
        env["HOME"] = str(tmp_path / home / "x")
    opcoes = ["--modelo", "mini", "--saida", str(tmp_path / "s")]
    env["PYTHONPATH"] = str(LAB)
    feito = chamar(str(licao_curta(tmp_path)), *opcoes, env=env, preexec_fn=sem_poderes)
    erro = feito.stderr.decode("utf-8")
    assert feito.returncode == 0 and (tmp_path / "s" / "figura.png").is_file(), erro
    assert "Traceback" not in erro and "Warning" not in erro
    feito = chamar(str(LAB / "00_preparar.py"), "--so-conferir", env=env)
    assert b"Traceback" not in feito.stderr and "mini: pronto" in feito.stdout.decode("utf-8")


@pytest.fixture
def clone(tmp_path):
    """Uma cópia do repositório num caminho de mais de 200 letras, com espaços e acentos."""
    nome = "Área de trabalho do João & cia (lição nº 2)"
    pasta = tmp_path
    while len(str(pasta)) < 200:
        pasta = pasta / nome
    return copiar_repositorio(pasta)


@pytest.mark.cli
def test_repositorio_num_caminho_dificil(clone):
    assert len(str(clone)) >= 200
    env = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    for script, *opcoes in (
        (LICAO, *RAPIDA[:-1]),
        ("00_preparar.py", "--so-conferir"),
    ):
        feito = subprocess.run(
            [sys.executable, f"lab/{script}", *opcoes], cwd=clone, env=env,
            capture_output=True, encoding="utf-8", timeout=200,
        )  # fmt: skip
        assert feito.returncode == 0, feito.stdout[-500:] + feito.stderr
    assert (clone / "outputs" / "02_embeddings" / "parcial" / "relatorio.md").is_file()


@pytest.mark.cli
@pytest.mark.parametrize("estragar", [so_de_leitura, de_outro])
def test_repositorio_so_de_leitura(estragar, tmp_path, devolver):  # noqa: F811
    """O repositório que o técnico instalou para todos: com --saida a lição roda; sem, diz o que fazer."""
    copia = copiar_repositorio(tmp_path / "lab")
    estragar(copia)
    antes = {p: p.stat().st_mtime_ns for p in copia.rglob("*")}
    env = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    comuns = {"env": env, "cwd": copia, "capture_output": True, "encoding": "utf-8"}
    comando = [sys.executable, f"lab/{LICAO}", *RAPIDA]
    feito = subprocess.run(comando, preexec_fn=sem_poderes, timeout=120, **comuns)
    erro_gentil(feito, "--saida PASTA", "não permite escrita")
    for outro, fazer in (
        (["lab/tudo.py", "--modelo", "mini"], "LAB_SAIDAS"),
        (["lab/02_exercicios.py", "--implementar"], "--saida PASTA"),
    ):
        feito = subprocess.run(
            [sys.executable, *outro], preexec_fn=sem_poderes, timeout=120, **comuns
        )
        erro_gentil(feito, fazer, "não permite escrita")
        assert "02_embeddings" not in feito.stdout  # uma mensagem, e não uma por lição
    comando += ["--saida", str(tmp_path / "minhas saídas")]
    feito = subprocess.run(comando, preexec_fn=sem_poderes, timeout=120, **comuns)
    assert feito.returncode == 0, feito.stderr
    assert {p: p.stat().st_mtime_ns for p in copia.rglob("*")} == antes


# --- nomes de arquivo ----------------------------------------------------------------------------------

RESERVADOS = {"con", "prn", "aux", "nul"} | {f"{n}{i}" for n in ("com", "lpt") for i in range(10)}


def conferir_nomes(nomes: list[str]) -> None:
    """Num disco que não distingue caixa, nenhuma saída apaga outra; nenhuma tem nome do Windows."""
    assert len({n.casefold() for n in nomes}) == len(nomes)
    for nome in nomes:
        assert re.fullmatch(r"[0-9A-Za-z_.-]+", nome), nome
        assert nome.split(".")[0].casefold() not in RESERVADOS and not nome.endswith((".", " "))


@pytest.mark.unit
@pytest.mark.parametrize(
    "palavra", ["con", "NUL", "a/b", "..", "COM1", "ç" * 300, "a:b?", "Rei", "rei"]
)
def test_a_palavra_pedida_vira_um_nome_que_serve(palavra):
    """--palavra entra no nome da tabela; o id do token, que vem junto, separa 'Rei' de 'rei'."""
    from nucleo.licoes import l02_embeddings as exp

    nome = f"2_vizinhos_{exp.rotulo(palavra)}_7.csv"
    conferir_nomes([nome])
    assert len(nome.encode()) < 255


# --- Python --------------------------------------------------------------------------------------------


@pytest.mark.unit
def test_a_gramatica_e_a_do_python_3_10():
    """Nada de sintaxe mais nova: quem tem o 3.10 da distribuição consegue ler todo arquivo."""
    arquivos = [*LAB.rglob("*.py"), *(RAIZ / "tests").glob("*.py")]
    assert len(arquivos) > 100  # o laboratório inteiro, e não uma pasta vazia
    for arquivo in arquivos:
        assert ast.parse(arquivo.read_text("utf-8"), str(arquivo), feature_version=(3, 10)).body
    with pytest.raises(SyntaxError):  # o que é do 3.11 seria mesmo recusado
        ast.parse("try:\n    pass\nexcept* OSError:\n    pass", feature_version=(3, 10))


def outros_pythons() -> list[str]:
    """Os Pythons de 3.10 em diante que há nesta máquina (pyenv e PATH), um por versão."""
    achados = {}
    candidatos = [shutil.which(f"python3.{n}") for n in range(10, 20)]
    candidatos += [str(p) for p in Path.home().glob(".pyenv/versions/3.1*/bin/python")]
    for caminho in filter(None, [sys.executable, *candidatos]):
        codigo = "import sys; print('%d.%d' % sys.version_info[:2])"
        feito = subprocess.run([caminho, "-S", "-c", codigo], capture_output=True, encoding="utf-8")
        if feito.returncode == 0:
            achados.setdefault(feito.stdout.strip(), caminho)
    return [achados[v] for v in sorted(achados, key=lambda v: int(v.split(".")[1]))]


SEM_PACOTES = """
import sys, warnings
warnings.simplefilter("error")  # uma forma que a versão nova abandona já falha aqui
sys.path.insert(0, sys.argv[1])
from pathlib import Path
for arquivo in Path(sys.argv[1]).rglob("*.py"):
    compile(arquivo.read_text(encoding="utf-8"), str(arquivo), "exec")
from nucleo.base import arquivos, caderno, unidades
onde = Path(sys.argv[2])
for n in (1, 2):
    arquivos.conferir_pasta(onde)
    arquivos.gravar(onde / "t.csv", str(n).encode())
print([(p.name, p.read_text()) for p in onde.iterdir()])
"""


@pytest.mark.cli
def test_com_cada_python_da_maquina(tmp_path):
    """Sem pacote nenhum: todo arquivo compila sem aviso, um arquivo grava, e 00_preparar explica."""
    pythons = outros_pythons()
    assert pythons
    copia = tmp_path / "sem .venv"
    shutil.copytree(LAB, copia / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(RAIZ / "requirements.txt", copia)
    for n, python in enumerate(pythons):
        base = [python, "-S", "-s", "-E"]
        feito = subprocess.run(
            [*base, "-c", SEM_PACOTES, str(LAB), str(tmp_path / str(n))],
            capture_output=True, encoding="utf-8", timeout=120,
        )  # fmt: skip
        assert feito.stdout.strip() == "[('t.csv', '2')]", feito.stderr
        feito = subprocess.run(
            [*base, "lab/00_preparar.py", "--so-conferir"], cwd=copia, capture_output=True, timeout=120,
            env=os.environ | {"PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"},
        )  # fmt: skip
        tela = feito.stdout.decode("utf-8", "replace")
        assert feito.returncode == 1 and "[falta]  torch" in tela, (python, feito.stderr)


# --- os dados, como o Windows os deixaria --------------------------------------------------------------


@pytest.mark.mini
def test_dados_com_crlf(tmp_path, monkeypatch, mini):
    """Um clone de autocrlf (ou um zip reempacotado) troca os fins de linha: os números são os mesmos."""
    from nucleo.modelos import gpt2_medido

    frases = ("O Brasil é gigante", "The cat sat on the mat", " king\n\n  x", "naïve 🤗")

    def medir():
        gpt2 = fontes.tokenizador_gpt2()
        daqui = tokens.Tokenizador.de_pasta(caminhos.DADOS / "mini", "mini")
        palavras = listas.palavras_para(gpt2)
        perguntas = listas.analogias_do_google(gpt2).ids
        return {
            "gpt2": [gpt2.ids(f) for f in frases],
            "mini": [daqui.ids(f) for f in frases],
            "palavras": (palavras.idioma, sorted(palavras.linha.items())),
            "analogias": perguntas.tolist(),
            "curva": gpt2_medido._csv("gpt2_wpe_defasagem.csv").tolist(),
            "config": fontes.ler_config(caminhos.DADOS / "mini"),
        }

    antes = medir()
    copia = shutil.copytree(caminhos.DADOS, tmp_path / "data")
    trocados = 0
    for arquivo in copia.rglob("*"):
        if arquivo.suffix in (".txt", ".json", ".csv", ".md"):
            bruto = arquivo.read_bytes()
            arquivo.write_bytes(bruto.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
            trocados += 1
    assert trocados > 15
    monkeypatch.setattr(caminhos, "DADOS", copia)
    monkeypatch.setattr(gpt2_medido, "PASTA", copia / "gpt2_medido")
    assert medir() == antes


@pytest.mark.unit
def test_o_git_entrega_tudo_com_lf():
    for arquivo in [
        *LAB.rglob("*.py"),
        *(RAIZ / "data").rglob("*.json"),
        *(RAIZ / "data").rglob("*.txt"),
    ]:
        assert b"\r" not in arquivo.read_bytes(), arquivo
    assert "* text=auto eol=lf" in (RAIZ / ".gitattributes").read_text("utf-8")
