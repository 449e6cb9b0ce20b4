"""Um número mora num lugar só: cada id nasce uma vez, e só as afirmações leem o que uma lição gravou."""

import ast
import re
from collections import Counter
from functools import cache

import pytest

from conftest import LAB
from nucleo.afirmacoes import fichas, guardados, vereditos  # noqa: F401 (vereditos registra as medidas)
from nucleo.afirmacoes.das_licoes import NaoMedido, Resultados
from nucleo.afirmacoes.registro import MEDIDAS

pytestmark = pytest.mark.unit
TODAS = fichas.ler()
REFERENCIAS = sorted(guardados.PASTA.glob("*/*.json"))
LICOES = sorted({p.stem for p in REFERENCIAS} - {"99_conferir"})
MODELOS = sorted({p.parent.name for p in REFERENCIAS})


# --- onde cada id nasce ------------------------------------------------------------------


POR_EXTENSO, COM_LACUNA, VARIAVEL = range(3)


def molde(arg):
    """(que tipo de id é, a expressão regular dele); None se não é um texto. Uma lacuna de f-string é
    qualquer coisa."""
    if isinstance(arg, ast.Constant):
        return (POR_EXTENSO, re.escape(arg.value)) if isinstance(arg.value, str) else None
    if isinstance(arg, ast.JoinedStr):
        pedacos = (
            ".+" if isinstance(v, ast.FormattedValue) else re.escape(v.value) for v in arg.values
        )
        return COM_LACUNA, "".join(pedacos)
    return VARIAVEL, ".+"


def lugares(fonte, modulo=""):
    """[(linha, tipo, regex)] de cada id que uma lição escreve: em aula.resultado, conferir e comparar,
    num `numero` (base.caderno), ou como chave de um dicionário de resultados."""
    achados = []
    for no in ast.walk(ast.parse(fonte)):
        ids, sufixo = [], ""
        if isinstance(no, ast.Call) and no.args:
            quem, nome = (
                getattr(getattr(no.func, "value", None), "id", ""),
                getattr(no.func, "attr", ""),
            )
            if quem == "aula" and nome in ("resultado", "conferir", "comparar"):
                # Uma conferência dá um id por linha: NOME.1, NOME.2…
                ids, sufixo = no.args[:1], "" if nome == "resultado" else r"\.\d+"
            elif getattr(no.func, "id", "") == "numero":
                ids = no.args[:1]
        elif isinstance(no, ast.Dict):
            ids = no.keys
        elif isinstance(no, ast.DictComp):
            ids = [no.key]
        elif isinstance(no, ast.Subscript) and isinstance(no.ctx, ast.Store):
            ids = [no.slice]
        for tipo, texto in filter(None, map(molde, ids)):
            if not isinstance(no, ast.Call) and len(texto.replace(".+", "")) < 3:
                continue  # a chave de um dicionário qualquer: não diz que id é
            achados.append((f"{modulo}{no.lineno}", tipo, texto + sufixo))
    return achados


@cache
def lugares_da_licao(licao):
    """Os da lição e os dos módulos dela em nucleo/licoes."""
    modulos = sorted((LAB / "nucleo" / "licoes").glob(f"l{licao}*.py"))
    return [
        lugar
        for p in [LAB / f"{licao}.py", *modulos]
        for lugar in lugares(p.read_text("utf-8"), f"{p.name}:")
    ]


def nascimentos(id_, onde):
    """Os lugares que podem ter escrito este id. Quem o escreve por extenso tem a palavra; depois, as
    f-strings; uma variável só responde pelo que ninguém escreveu. (O mesmo id duas vezes numa
    execução só é `ValueError`: ver `Caderno.resultado`.)"""
    servem = [(n, tipo) for n, tipo, texto in onde if re.fullmatch(texto, id_)]
    melhor = min((tipo for _, tipo in servem), default=None)
    return [n for n, tipo in servem if tipo == melhor]


@cache
def resultados(licao, modelo):
    """Os resultados gravados dessa lição rodada com esse modelo."""
    return guardados.ler(licao, modelo)["resultados"]


def ids_gravados(licao):
    """Os ids que a lição gravou, em qualquer modelo."""
    return {r["id"] for m in MODELOS for r in resultados(licao, m)}


@pytest.mark.parametrize("licao", LICOES)
def test_todo_id_gravado_nasce_numa_linha_so_da_licao(licao):
    onde = lugares_da_licao(licao)
    assert ids_gravados(licao)
    for id_ in ids_gravados(licao):
        assert len(nascimentos(id_, onde)) == 1, (id_, nascimentos(id_, onde))


@pytest.mark.parametrize(
    ("fonte", "id_", "linhas"),
    [
        ('aula.resultado("a", 1)\naula.resultado("a", 2)', "a", "12"),
        ('aula.resultado("a.1", 1)\naula.conferir("a", "t", c)', "a.1", "12"),
        ('aula.comparar("a", "t", c)\naula.conferir("a", "t", c)', "a.3", "12"),
        ('aula.resultado(f"x.{k}", 1)\naula.resultado(f"{k}.y", 2)', "x.y", "12"),
        ('aula.resultado(f"x.{k}", 1)\naula.resultado("x.y", 2)', "x.y", "2"),
        ('aula.resultado("b", 1)\naula.resultado(id_, 2)', "b", "1"),
        ("aula.resultado(um, 1)\naula.resultado(outro, 2)", "b", "12"),
        ('aula.resultados({"bcd": 1})\nresultados["bcd"] = 2', "bcd", "12"),
        (
            'q = Quadro(t, c, x, [numero(f"bcd.{k}", 1)])\nr = {f"bcd.{k}": v for k in y}',
            "bcd.e",
            "12",
        ),
        ("caderno.resultado('b', 1)\nd = {1: 2, k: 3}", "b", ""),
    ],
)
def test_este_teste_ve_quem_define_duas_vezes(fonte, id_, linhas):
    assert "".join(sorted(nascimentos(id_, lugares(fonte)))) == linhas


def test_um_nome_nao_serve_a_duas_coisas():
    # Ids de todas as lições, medidas e afirmações: um espaço de nomes só, para o grep achar um lugar.
    nomes = Counter()
    for licao in LICOES:
        nomes.update(ids_gravados(licao))
    nomes.update(list(MEDIDAS))
    nomes.update(a.id for a in TODAS)
    assert [n for n, vezes in nomes.items() if vezes > 1] == []
    # Uma função de medida se define uma vez só, mesmo que duas façam o mesmo registro.
    fontes = [
        p.read_text("utf-8") for p in sorted((LAB / "nucleo" / "afirmacoes").glob("medidas_*.py"))
    ]
    definidas = Counter(
        n for f in fontes for n in re.findall(r"^@medida\(.*\)\ndef (\w+)", f, re.M)
    )
    assert set(definidas) == set(MEDIDAS) and set(definidas.values()) == {1}


# --- para onde as afirmações apontam -----------------------------------------------------

APONTAM = [(a, nome, r) for a in TODAS for nome, r in a.resultados.items()]


@pytest.mark.parametrize(("a", "nome", "r"), APONTAM, ids=lambda x: getattr(x, "id", None))
def test_todo_ponteiro_acha_o_seu_numero_na_referencia(a, nome, r):
    ids = [r["id"]] if isinstance(r["id"], str) else r["id"]
    if a.onde == "gpt2":
        # Aqui ninguém roda o GPT-2: confere-se que a lição escreve esse id quando ele responde.
        assert all(len(nascimentos(i, lugares_da_licao(r["licao"]))) == 1 for i in ids)
        return
    achados = []
    for modelo in MODELOS:
        dono = r.get("de") or {"nenhum": None, "com wpe": "mini"}.get(a.onde, modelo)
        try:
            achados.append(
                Resultados(modelo, None).procurar(
                    r["licao"], ids, dono, r.get("campo", "valor"), tuple(r.get("opcoes", ()))
                )
            )
        except NaoMedido:
            continue  # outra língua, outras palavras: basta que um modelo o meça
    assert achados, (a.id, nome, r)


# Quem mede por conta própria um número que por acaso é também o de uma lição, e por quê.
COINCIDEM = {
    "pares_de_palavras": "o menor de quatro pares é um par que a lição também mostra",
    "tamanhos": "contagem da arquitetura pela biblioteca, aqui em milhões",
    "pontas_da_biblioteca": "a mesma contagem, da cabeça que a biblioteca monta",
}


@pytest.mark.parametrize("modelo", MODELOS)
def test_ninguem_mede_de_novo_o_que_uma_licao_mede(modelo):
    # Um número real com todas as casas iguais às de um id é a mesma conta, feita em outro lugar.
    dos_ids = {}
    for licao in LICOES:
        for r in resultados(licao, modelo):
            dos_ids |= {v: f"{licao}: {r['id']}" for v in r.values() if e_medida_real(v)}
    for c in guardados.ler("99_conferir", modelo)["resultados"]:
        a = next((a for a in TODAS if a.id == c["id"]), None)
        if a is None or not c["valores"] or a.medida in ("", *COINCIDEM):
            continue
        daqui = {n: v for n, v in c["valores"].items() if n not in a.resultados}
        repetidos = {n: dos_ids[v] for n, v in daqui.items() if e_medida_real(v) and v in dos_ids}
        assert not repetidos, (a.id, repetidos)


def e_medida_real(valor):
    # Redondos (0,5) e erros de arredondamento (1,2e-7) coincidem sem que a conta seja a mesma.
    return isinstance(valor, float) and abs(valor) > 1e-3 and valor != round(valor, 4)


# --- quem lê o que uma lição gravou ------------------------------------------------------

# O que cada um faz com o resultado.json: além das afirmações, só a página o mostra.
PODEM = {
    "nucleo/base/caderno.py": "escreve",
    "nucleo/paginas/resultados.py": "mostra",
    "tudo.py": "vê se a lição gravou, e o que não conferiu",
    "manutencao/referencia.py": "guarda uma execução como referência",
    "99_conferir.py": "a porta das afirmações",
}
RASTROS = re.compile(r"resultado\.json|^referencia$|data/referencia/")
LEITORES = ("nucleo.base.resultado", "nucleo.afirmacoes", "nucleo.paginas.resultados")


def rastros(fonte):
    """As linhas que nomeiam o arquivo dos resultados, ou importam quem o lê (docstrings não contam)."""
    arvore = ast.parse(fonte)
    docs = {
        id(no.body[0].value) for no in ast.walk(arvore)
        if isinstance(no, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(no)
    }  # fmt: skip
    linhas = set()
    for no in ast.walk(arvore):
        texto = getattr(no, "value", None) if isinstance(no, ast.Constant) else None
        if isinstance(texto, str) and id(no) not in docs and RASTROS.search(texto):
            linhas.add(no.lineno)
        if isinstance(no, ast.ImportFrom):
            nomes = [no.module or "", *(f"{no.module}.{a.name}" for a in no.names)]
        elif isinstance(no, ast.Import):
            nomes = [a.name for a in no.names]
        else:
            continue
        if any(n == x or n.startswith(x + ".") for n in nomes for x in LEITORES):
            linhas.add(no.lineno)
    return sorted(linhas)


def test_so_as_afirmacoes_leem_resultados_e_a_pagina_os_mostra():
    achados = {
        p.relative_to(LAB).as_posix()
        for p in LAB.rglob("*.py")
        if "afirmacoes" not in p.parts and rastros(p.read_text("utf-8"))
    }
    assert achados == set(PODEM)


@pytest.mark.parametrize(
    ("fonte", "ve"),
    [
        ('"""Lê o resultado.json."""\n', False),
        ('x = "relatorio.md"\n', False),
        ('x = pasta / "resultado.json"\n', True),
        ('x = caminhos.DADOS / "referencia"\n', True),
        ('x = f"data/referencia/{modelo}/02.json"\n', True),
        ("from nucleo.base import resultado\n", True),
        ("def f():\n    from nucleo.afirmacoes import guardados\n", True),
        ("import nucleo.afirmacoes.citar\n", True),
        ("from nucleo.paginas.resultados import ler_resultado\n", True),
        ("from nucleo.base import caminhos, caderno\n", False),
    ],
)
def test_este_teste_ve_quem_le(fonte, ve):
    assert bool(rastros(fonte)) is ve


def test_constantes_de_uma_licao_nao_se_copiam():
    # PARES, SEMENTE, D… são botões de uma lição: quem mede fora dela tem os seus, na afirmação.
    for arquivo in sorted((LAB / "nucleo" / "afirmacoes").glob("medidas*.py")):
        for no in ast.parse(arquivo.read_text("utf-8")).body:
            if isinstance(no, ast.Assign):
                assert not any(
                    isinstance(v, ast.Constant) and isinstance(v.value, (int, float))
                    for v in ast.walk(no.value)
                ), f"{arquivo.name}:{no.lineno}"
