"""As regras da casa, como testes: lições curtas, nucleo mudo, nada desta máquina no repositório."""

import ast
import json
import re
import subprocess

import pytest

from conftest import LAB, RAIZ

pytestmark = pytest.mark.unit
LICOES = sorted(LAB.glob("[0-9][0-9]_*.py"))
AULAS = [p for p in LICOES if p.name[:2] in ("02", "06") and "exercicios" not in p.name]
NUCLEO = sorted((LAB / "nucleo").rglob("*.py"))


@pytest.mark.parametrize("licao", LICOES, ids=lambda p: p.name)
def test_licao_cabe_na_aula(licao):
    linhas = licao.read_text("utf-8").splitlines()
    arvore = ast.parse("\n".join(linhas))
    # O cabeçalho e as opções da linha de comando não contam: o resto é o que se projeta.
    fora = [no for no in arvore.body if getattr(no, "name", "") == "opcoes"] + arvore.body[:1]
    assert len(linhas) - sum(no.end_lineno - no.lineno + 1 for no in fora) <= 380
    doc = ast.get_docstring(arvore)
    for parte in ("O que você vai ver", "Quanto demora", "Como rodar"):
        assert parte in doc, f"falta «{parte}» no cabeçalho"
    comentarios = sum(linha.strip().startswith("#") for linha in linhas)
    assert comentarios >= len(linhas) / 20


def contas_a_vista(arvore) -> set[int]:
    """As linhas que calculam: operações entre números ou matrizes, e chamadas ao numpy ou ao torch."""
    linhas = set()
    for no in ast.walk(arvore):
        if isinstance(no, ast.BinOp):
            dentro = list(ast.walk(no))
            texto = any(isinstance(getattr(x, "value", None), str) for x in dentro)
            if not texto and not any(isinstance(x, ast.JoinedStr) for x in dentro):
                linhas.add(no.lineno)
        if isinstance(no, ast.Call) and re.match(r"(np|torch|F|math)\.", ast.unparse(no.func)):
            linhas.add(no.lineno)
    return linhas


@pytest.mark.parametrize("licao", AULAS, ids=lambda p: p.name)
def test_a_licao_traz_a_sua_conta(licao):
    """Um quinto do código é conta feita ali, e as formas estão escritas ao lado: # (n, d) -> (n, V)."""
    texto = licao.read_text("utf-8")
    arvore = ast.parse(texto)
    codigo = {
        n for n, linha in enumerate(texto.splitlines(), 1)
        if linha.strip() and not linha.strip().startswith("#") and n > arvore.body[0].end_lineno
    }  # fmt: skip
    parcela = len(contas_a_vista(arvore) & codigo) / len(codigo)
    assert parcela >= 0.20, f"{parcela:.1%} de {len(codigo)} linhas"
    assert len(re.findall(r"#.*\) *(?:->|→) *\(", texto)) >= 5


@pytest.mark.parametrize("arquivo", NUCLEO, ids=lambda p: p.name)
def test_nucleo_nao_imprime_nem_le_a_linha_de_comando(arquivo):
    arvore = ast.parse(arquivo.read_text("utf-8"))
    for no in ast.walk(arvore):
        if isinstance(no, ast.Call) and isinstance(no.func, ast.Name):
            assert no.func.id not in ("print", "input"), f"{arquivo.name}:{no.lineno}"
        if isinstance(no, ast.Attribute):
            assert no.attr != "argv", f"{arquivo.name}:{no.lineno}"
        nomes = [a.name for a in no.names] if isinstance(no, (ast.Import, ast.ImportFrom)) else []
        modulo = [getattr(no, "module", None)] if isinstance(no, ast.ImportFrom) else []
        # Uma direção só: a lição chama o nucleo, nunca o contrário.
        assert not {"argparse", "aula"} & {n.split(".")[0] for n in [*nomes, *modulo] if n}


@pytest.mark.parametrize("arquivo", [*NUCLEO, LAB / "aula.py"], ids=lambda p: p.name)
def test_tudo_que_e_publico_tem_docstring(arquivo):
    arvore = ast.parse(arquivo.read_text("utf-8"))
    assert ast.get_docstring(arvore)
    # Só o que se vê de fora: funções e classes do módulo, e os métodos delas.
    classes = [no for no in arvore.body if isinstance(no, ast.ClassDef)]
    for no in [*arvore.body, *(m for c in classes for m in c.body)]:
        publico = isinstance(no, (ast.FunctionDef, ast.ClassDef)) and not no.name.startswith("_")
        if publico and not _propriedade_obvia(no):
            assert ast.get_docstring(no), f"{arquivo.name}:{no.lineno} {no.name}"


def _propriedade_obvia(no) -> bool:
    # Uma @property de duas linhas se explica pelo nome.
    return isinstance(no, ast.FunctionDef) and any(
        isinstance(d, ast.Name) and d.id == "property" for d in no.decorator_list
    )


def arquivos_do_git():
    saida = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=RAIZ, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    return [RAIZ / n for n in saida.split("\0") if n and (RAIZ / n).is_file()]


def test_nada_desta_maquina_no_repositorio():
    # Montadas em pedaços, para este arquivo não acusar a si mesmo.
    proibidas = ["/wo" + "rk/", "/ro" + "ot/", "pypi" + ".org", "/home/" + "[a-z]"]
    proibidas.append("C:" + r"\\Users")
    marca = re.compile("|".join(proibidas))
    de_texto = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".csv", ""}
    for arquivo in arquivos_do_git():
        if arquivo.suffix in de_texto and arquivo.parent.name != "gpt2_bpe":
            achado = marca.search(arquivo.read_text("utf-8"))
            assert not achado, f"{arquivo.relative_to(RAIZ)}: {achado[0]}"


def test_nenhum_codigo_de_fora_roda():
    """Onde o transformers abre uma pasta, ela pode trazer Python: a recusa é escrita em cada chamada."""
    achadas = 0
    for arquivo in [*LAB.rglob("*.py"), *(RAIZ / "bench").glob("*.py")]:
        for no in ast.walk(ast.parse(arquivo.read_text("utf-8"))):
            if not isinstance(no, ast.Call) or not isinstance(no.func, ast.Attribute):
                continue
            if no.func.attr in ("from_pretrained", "from_config"):
                opcoes = {k.arg: ast.unparse(k.value) for k in no.keywords}
                onde = f"{arquivo.relative_to(RAIZ)}:{no.lineno}"
                assert opcoes.get("trust_remote_code") == "False", onde
                achadas += 1
    assert achadas >= 8


def test_nenhum_peso_grande_no_repositorio():
    for arquivo in arquivos_do_git():
        tamanho = arquivo.stat().st_size
        if arquivo.suffix in {".safetensors", ".bin", ".pt", ".gguf", ".npz", ".npy"}:
            assert arquivo.is_relative_to(RAIZ / "data") and tamanho < 12e6, arquivo
        assert tamanho < 12e6, f"{arquivo.relative_to(RAIZ)}: {tamanho / 1e6:.1f} MB"


def test_toda_pasta_de_dados_diz_origem_e_licenca():
    for pasta in (RAIZ / "data").iterdir():
        if pasta.is_dir() and not list(pasta.glob("LEIAME*")):
            # As listas de palavras são nossas e se explicam dentro do próprio arquivo.
            for arquivo in pasta.glob("*.json"):
                assert "LEIAME" in json.loads(arquivo.read_text("utf-8")), arquivo


def test_nomes_servem_em_qualquer_sistema():
    nomes = [str(a.relative_to(RAIZ)) for a in arquivos_do_git()]
    assert len({n.casefold() for n in nomes}) == len(nomes)
    reservados = {"con", "prn", "aux", "nul"}
    reservados |= {f"{nome}{i}" for nome in ("com", "lpt") for i in range(10)}
    for nome in nomes:
        assert not set('<>:"|?*\\') & set(nome), nome
        assert not {p.split(".")[0].casefold() for p in nome.split("/")} & reservados, nome


def test_cada_requisito_diz_por_que():
    for arquivo in sorted(p.name for p in RAIZ.glob("requirements*.txt")):
        for linha in (RAIZ / arquivo).read_text("utf-8").splitlines():
            if linha and not linha.startswith(("#", "-r")):
                assert re.search(r"\S\s+# \w.{8,}", linha), linha
    assert "torch==2.13.0 " in (RAIZ / "requirements.txt").read_text("utf-8")


def test_listas_de_palavras_batem_entre_si():
    for arquivo in (RAIZ / "data" / "palavras").glob("??.json"):
        d = json.loads(arquivo.read_text("utf-8"))
        assert d["regua"]["direcao"] in d["direcoes"] and len(d["analogia"]) == 3
        for pares in d["direcoes"].values():
            assert all(len(p) == 2 for p in pares) and len({tuple(p) for p in pares}) == len(pares)
