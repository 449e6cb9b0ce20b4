"""As alas de lab/: quem pode importar quem, nenhum círculo, nada solto, e cada ala que se apresenta.

A tabela é a da casa. Os imports são lidos do texto (AST), também os de dentro das funções e os que se
fazem por um nome entre aspas: adiar um import não o esconde daqui.
"""

import ast
import re

import pytest

from conftest import LAB

pytestmark = pytest.mark.unit
NUCLEO = LAB / "nucleo"
# ala: as alas que ela pode importar, fora ela mesma.
TABELA = {
    "base": set(),
    "contas": {"base"},  # só erros e unidades: abaixo
    "modelos": {"base"},
    "treino": {"contas", "modelos", "base"},
    "licoes": {"contas", "modelos", "base", "treino"},
    "exercicios": {"contas", "modelos", "base"},
    "afirmacoes": {"contas", "modelos", "base"},
    "paginas": {"contas", "modelos", "base"},
    "sala": {"modelos", "base"},
}
DAS_CONTAS = {"nucleo.base.erros", "nucleo.base.unidades"}
# Uma lição importa a aula e estas; o script que é a porta de uma ala, mais ela e o palco.
DA_LICAO = {"licoes", "contas", "modelos", "treino", "base"}
PORTAS = {
    r"00_preparar": "sala",
    r"\d\d_exercicios|corrigir": "exercicios",
    r"99_conferir": "afirmacoes",
    r"tudo|explorador": "paginas",
}


def nome_de(arquivo) -> str:
    """nucleo.contas.rope, palco.tela, aula, 02_embeddings."""
    return ".".join(arquivo.relative_to(LAB).with_suffix("").parts).removesuffix(".__init__")


# As soluções dos exercícios são programas soltos, que ninguém importa.
ARQUIVOS = {nome_de(a): a for a in sorted(LAB.rglob("*.py")) if a.parent.name != "solucoes"}
LICOES = [nome for nome in ARQUIVOS if re.match(r"\d\d_", nome)]


def importados(arquivo):
    """(módulo nosso, linha) de cada import do arquivo."""
    for no in ast.walk(ast.parse(arquivo.read_text("utf-8"))):
        nomes = []
        if isinstance(no, ast.ImportFrom):
            assert not no.level, f"{arquivo.name}:{no.lineno}: import relativo"
            # `from nucleo.contas import rope` traz um módulo; `… .rope import girar`, um nome dele.
            nomes = [f"{no.module}.{a.name}" for a in no.names]
            nomes = [n if n in ARQUIVOS else no.module for n in nomes]
        elif isinstance(no, ast.Import):
            nomes = [a.name for a in no.names]
        elif isinstance(no, ast.Constant) and isinstance(no.value, str):
            nomes = [no.value] if re.fullmatch(r"(nucleo|palco)(\.\w+)+", no.value) else []
        yield from ((n, no.lineno) for n in nomes if n in ARQUIVOS)


def licao_de(modulo: str) -> str | None:
    """De nucleo.licoes.l06_posicoes_figuras, 06_posicoes."""
    return next((x for x in LICOES if modulo.startswith(f"nucleo.licoes.l{x}")), None)


def ala(modulo: str) -> str:
    partes = modulo.split(".")
    return partes[1] if partes[0] == "nucleo" and len(partes) > 1 else partes[0]


def pode(quem: str, outro: str) -> bool:
    """Se o módulo `quem` pode importar `outro`, pela tabela."""
    de, para = ala(quem), ala(outro)
    if quem.startswith("nucleo."):
        if para == "licoes" == de:  # os desenhos e a página de uma lição usam as medidas dela
            return licao_de(outro) == licao_de(quem)
        if de == "contas" and para == "base":
            return outro in DAS_CONTAS
        return para == de or para in TABELA[de]
    if de in ("palco", "manutencao"):
        return para in TABELA or para in ("palco", de)
    porta = next((a for padrao, a in PORTAS.items() if re.fullmatch(padrao, quem)), None)
    if porta:
        return para in (DA_LICAO - {"licoes"}) | {"aula", "palco", porta}
    if quem == "aula":
        return para in ("palco", "base", "modelos")
    if para == "licoes":
        return licao_de(outro) == quem
    return para in DA_LICAO or para == "aula"


@pytest.mark.parametrize("modulo", ARQUIVOS)
def test_so_se_importa_o_que_a_tabela_deixa(modulo):
    proibidos = [(n, linha) for n, linha in importados(ARQUIVOS[modulo]) if not pode(modulo, n)]
    assert not proibidos, f"{modulo} importa {proibidos}"


def test_a_tabela_recusa_o_que_deve():
    for quem, outro in (
        ("nucleo.base.caminhos", "nucleo.contas.rope"), ("nucleo.contas.rope", "nucleo.base.caderno"),
        ("nucleo.paginas.resultados", "nucleo.afirmacoes.fichas"), ("nucleo.modelos.fontes", "palco.tela"),
        ("nucleo.licoes.l06_posicoes", "nucleo.licoes.l06_projecoes"), ("nucleo.treino.mini", "aula"),
        ("02_embeddings", "nucleo.licoes.l02_contexto"), ("02_embeddings", "nucleo.sala.pacote"),
        ("06_posicoes", "palco.tela"), ("99_conferir", "nucleo.licoes.l02_embeddings"),
    ):  # fmt: skip
        assert not pode(quem, outro), (quem, outro)
    assert pode("06_posicoes", "nucleo.licoes.l06_posicoes_figuras")
    assert pode("nucleo.licoes.l06_posicoes_figuras", "nucleo.licoes.l06_posicoes")


def circulo(grafo: dict[str, set[str]]) -> list[str]:
    """Um círculo do grafo, do primeiro módulo de volta a ele; vazio se não há."""
    vistos, pilha = set(), []

    def descer(no):
        if no in pilha:
            return [*pilha[pilha.index(no) :], no]
        if no not in vistos:
            vistos.add(no)
            pilha.append(no)
            for vizinho in sorted(grafo[no]):
                if achado := descer(vizinho):
                    return achado
            pilha.pop()
        return []

    return next(filter(None, map(descer, grafo)), [])


def test_nenhum_circulo():
    grafo = {nome: {n for n, _ in importados(a)} - {nome} for nome, a in ARQUIVOS.items()}
    assert sum(map(len, grafo.values())) > 200  # a leitura achou mesmo os imports
    assert circulo(grafo) == []
    assert circulo({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_nada_solto_no_nucleo():
    dentro = {p.name for p in NUCLEO.iterdir() if p.name != "__pycache__"}
    assert dentro == {"__init__.py", *TABELA}


@pytest.mark.parametrize("nome", [*(f"nucleo.{a}" for a in TABELA), "palco", "manutencao"])
def test_cada_ala_se_apresenta(nome):
    """O que mora nela, e quem pode importá-la."""
    dita = ast.get_docstring(ast.parse(ARQUIVOS[nome].read_text("utf-8"))) or ""
    assert len(dita.split()) >= 12 and re.search(r"import", dita), dita
