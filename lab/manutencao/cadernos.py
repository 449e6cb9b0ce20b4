"""As lições como cadernos do Jupyter: as mesmas células, com títulos, tabelas e figuras no lugar.

O que você vai ver: um caderno por lição em outputs/cadernos/, feito das células `# %%` do script. Nada se
escreve duas vezes: mudou a lição, rode de novo. A primeira célula acha o laboratório (ou o busca, no
Colab), instala o que faltar e guarda as opções, como na linha de comando.

Como rodar:    python lab/manutencao/cadernos.py
               python lab/manutencao/cadernos.py --licoes 02_embeddings
               python lab/manutencao/cadernos.py --endereco https://github.com/ALGUEM/laboratorio
"""

import ast
import importlib.util
import json
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nucleo.base import arquivos, caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import contado
from palco.erros import rodar_com_erros_gentis
from palco.opcoes import Analisador

LAB = caminhos.RAIZ / "lab"
FORA = ("00_preparar", "exercicios")  # perguntam e instalam: são do terminal
PRIMEIRA = """\
# Como na linha de comando; por exemplo: "--palavra dog --top 5". Mudou? Rode de novo daqui para baixo.
opcoes = {opcoes}

# O laboratório, onde este caderno estiver: dentro dele, ou buscado agora (no Colab).
import os, shlex, subprocess, sys
from pathlib import Path

endereco = {endereco}
acima = [Path.cwd(), *Path.cwd().parents, Path.cwd() / "laboratorio"]
raiz = next((p for p in acima if (p / "lab" / "aula.py").is_file()), None)
if raiz is None and endereco:
    raiz = Path.cwd() / "laboratorio"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", endereco, str(raiz)])
if raiz is None or not raiz.is_dir():

    class Faltou(Exception):
        _render_traceback_ = lambda erro: [f"✗ {{erro}}"]  # só a frase, sem o rastro

    raise Faltou("Não achei o laboratório: abra este caderno na pasta dele, ou mude o endereço acima.")
os.chdir(raiz)
sys.path[:0] = [p for p in [str(raiz / "lab")] if p not in sys.path]
from nucleo.base import pacotes

# O torch que já houver serve: outra versão muda no máximo a última casa dos números.
faltam = [p for p in pacotes.pedidos() if not p.serve and not (p.nome == "torch" and p.versao)]
if faltam:
    nomes = [f"{{p.nome}}{{p.faixa}}" for p in faltam]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *nomes], check=True)
sys.argv = [{script}, *shlex.split(opcoes)]\
"""


def endereco_publico(origem: str) -> str:
    """O endereço https de onde qualquer um clona, sem usuário nem senha; "" se `origem` não é público."""
    if curto := re.fullmatch(r"[\w.-]+@([\w.-]+):(?!/)(.+)", origem):
        origem = f"https://{curto[1]}/{curto[2]}"  # git@servidor:dono/nome
    partes = urllib.parse.urlsplit(origem)
    if partes.scheme not in ("http", "https", "ssh", "git") or not partes.hostname:
        return ""
    return f"https://{partes.hostname}{partes.path}"


def do_git() -> str:
    """O endereço público do clone; "" se não há git, nem remoto, ou se ele é uma pasta."""
    comando = ["git", "remote", "get-url", "origin"]
    try:
        feito = subprocess.run(comando, cwd=caminhos.RAIZ, capture_output=True, encoding="utf-8")
    except OSError:
        return ""
    return endereco_publico(feito.stdout.strip())


def licoes() -> list[Path]:
    """Os scripts numerados que são lições, na ordem do nome."""
    return [p for p in sorted(LAB.glob("[0-9][0-9]_*.py")) if not any(f in p.stem for f in FORA)]


# --- as células ----------------------------------------------------------------------------


def _nomes(no: ast.AST, tipo) -> set[str]:
    achados = {n.id for n in ast.walk(no) if isinstance(n, ast.Name) and isinstance(n.ctx, tipo)}
    if tipo is ast.Store:
        achados |= {n.name for n in ast.walk(no) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return achados


def _e_da_secao(no: ast.stmt) -> bool:
    chamadas = (n.func for n in ast.walk(no) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Attribute) and f.attr == "secao" for f in chamadas)


def separar(fontes: list[str]) -> tuple[list[str], str]:
    """As células de seção sem o que outra seção também usa, e a fonte disso, para vir antes de todas.

    Assim qualquer seção roda sem as outras, como com --secao no terminal.
    """
    arvores = [ast.parse(f) for f in fontes]
    usa = [_nomes(a, ast.Load) for a in arvores]
    comuns, prontas = [], []
    for i, (fonte, arvore) in enumerate(zip(fontes, arvores, strict=True)):
        fora = set().union(*(u for j, u in enumerate(usa) if j != i))
        linhas, saem, precisa = fonte.splitlines(), set(), set()
        # De baixo para cima: o que sai leva consigo o que usa, se for desta célula.
        for no in reversed(arvore.body):
            if not _e_da_secao(no) and _nomes(no, ast.Store) & (fora | precisa):
                saem |= set(range(no.lineno - 1, no.end_lineno))
                precisa |= _nomes(no, ast.Load)
        comuns += [linhas[n] for n in sorted(saem)]
        prontas.append("\n".join(x for n, x in enumerate(linhas) if n not in saem).strip("\n"))
    return prontas, re.sub(r"\n(?=def |class )", "\n\n\n", "\n".join(comuns))


def _cabecalho(doc: str) -> str:
    # A docstring já é um texto; o "Como rodar", alinhado em colunas, vai como está.
    titulo, _, resto = doc.strip().partition("\n")
    texto, _, comandos = resto.strip().partition("Quanto demora:")
    fim = f"\n\n```text\nQuanto demora:{comandos.rstrip()}\n```" if comandos else ""
    return f"# {titulo.rstrip('.')}\n\n{texto.strip()}{fim}"


def montar(script: Path, endereco: str, opcoes: str = ""):
    """O caderno de uma lição, como o nbformat o guarda (`NotebookNode`)."""
    import jupytext
    from nbformat import v4

    caderno = jupytext.reads(script.read_text(encoding="utf-8"), fmt="py:percent")
    celulas = [(c.metadata.get("title", ""), c.source) for c in caderno.cells if c.source.strip()]
    doc = ast.get_docstring(ast.parse(celulas[0][1]), clean=False)
    if doc is not None:
        resto = ast.get_source_segment(celulas[0][1], ast.parse(celulas[0][1]).body[0])
        celulas[0] = ("", celulas[0][1].replace(resto, "", 1).strip())
    quais = [n for n, (_, fonte) in enumerate(celulas) if fonte and _e_da_secao(ast.parse(fonte))]
    prontas, comuns = separar([celulas[n][1] for n in quais])
    for n, fonte in zip(quais, prontas, strict=True):
        celulas[n] = (celulas[n][0], fonte)
    if comuns:
        celulas.insert(quais[0], ("O que mais de uma seção usa", comuns))
    valores = {"opcoes": opcoes, "endereco": endereco, "script": script.name}
    primeira = PRIMEIRA.format(**{n: json.dumps(v) for n, v in valores.items()})
    prontas = [v4.new_markdown_cell(_cabecalho(doc or script.stem)), v4.new_code_cell(primeira)]
    for titulo, fonte in celulas:
        fonte = re.sub(r"\n{4,}", "\n\n\n", fonte)  # o vazio de quem saiu
        if titulo:
            prontas.append(v4.new_markdown_cell(f"## {titulo[:1].upper()}{titulo[1:]}"))
        if fonte:
            prontas.append(v4.new_code_cell(fonte))
    for n, celula in enumerate(prontas):
        celula["id"] = f"celula-{n}"  # o nbformat sorteia; assim o mesmo script dá os mesmos bytes
    novo = v4.new_notebook(cells=prontas)
    nucleo = {"display_name": "Python 3", "language": "python", "name": "python3"}
    novo.metadata |= {"kernelspec": nucleo, "language_info": {"name": "python"}}
    return novo


def principal() -> int:
    p = Analisador(prog="cadernos.py", pasta="lab/manutencao", description=__doc__)
    nomes = [x.stem for x in licoes()]
    p.add_argument("--licoes", nargs="+", choices=nomes, default=nomes, help="só estas")
    p.add_argument("--endereco", help="de onde o Colab clona (padrão: o origin deste clone)")
    args = p.parse_args()
    endereco = do_git()
    if args.endereco is not None:
        endereco = endereco_publico(args.endereco)
        if not endereco:
            raise ErroDoUsuario(
                f"Não entendi o endereço {args.endereco!r}.",
                "Ele é escrito no caderno, e o Colab precisa chegar a ele.",
                "Use o endereço do repositório:  --endereco https://SERVIDOR/DONO/NOME",
            )
    elif not endereco and sys.stdin.isatty():
        endereco = endereco_publico(
            input("De onde o Colab clona (Enter: de lugar nenhum)? ").strip()
        )
    if faltam := [p for p in ("jupytext", "nbformat") if importlib.util.find_spec(p) is None]:
        raise ErroDoUsuario(
            f"Falta o {faltam[0]}, que faz os cadernos.",
            "Ele é de quem cuida do laboratório, e as lições não o usam.",
            "Instale:  python -m pip install -r requirements-dev.txt",
        )
    import nbformat

    pasta = caminhos.SAIDAS / "cadernos"
    escolhidas = [x for x in licoes() if x.stem in args.licoes]
    for script in escolhidas:
        texto = nbformat.writes(montar(script, endereco), version=nbformat.NO_CONVERT)
        arquivos.gravar(pasta / f"{script.stem}.ipynb", (texto + "\n").encode())
    print(f"{contado(len(escolhidas), 'caderno')} em {pasta}.")
    if not endereco:
        print(
            "Sem endereço público, só abrem dentro deste clone; para o Colab, use --endereco URL."
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(rodar_com_erros_gentis(principal))
