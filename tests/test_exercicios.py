"""As funções a escrever: moldes que falham, soluções que passam, enganos chamados pelo nome."""

import ast
import doctest
import importlib.util
import json
from importlib import import_module

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from banco_de_programas import CERTOS, ERRADOS
from nucleo.exercicios import apostilas, filho, juiz, registro
from nucleo.exercicios.juiz import Ocorrido

pytestmark = pytest.mark.unit
TAREFAS = [t for a in apostilas() for t in registro.tarefas(a)]
IDS = [t.id for t in TAREFAS]
SEMENTES = (registro.SEMENTE, 1, 99)
IMPORTA = "import numpy as np\n"
todas = pytest.mark.parametrize("tarefa", TAREFAS, ids=IDS)


def rodar_aqui(tarefa, texto: str, casos):
    """O veredito de um programa NESTE processo, sem caixa: aqui os textos são nossos."""
    ditos = []
    pedido = {"arquivo": tarefa.arquivo, "funcao": tarefa.funcao, "texto": texto,
              "casos": [juiz.codificar_caso(c) for c in casos]}  # fmt: skip
    with np.errstate(all="ignore"):
        filho.rodar_tarefa(pedido, ditos.append)
    if ditos and "carga" in ditos[0]:
        return juiz.da_carga(tarefa, ditos[0]["carga"])
    return juiz.julgar(tarefa, casos, [juiz.ler_ocorrido(d) for d in ditos])


def test_um_registro_so_e_na_ordem():
    assert len(TAREFAS) >= 14 and len({t.id for t in TAREFAS}) == len(TAREFAS)
    assert {2, 6} <= set(apostilas())
    for apostila in apostilas():
        numeros = [t.numero for t in registro.tarefas(apostila)]
        assert numeros == list(range(1, len(numeros) + 1))
    espelho = {p.name for p in registro.SOLUCOES.glob("*.py")}
    assert espelho == {t.arquivo for t in TAREFAS}


def test_todo_texto_tem_conta_e_toda_conta_tem_texto():
    """Uma função ou um engano sem texto sumiria calado: o registro só percorre o TOML."""
    for a in apostilas():
        contas = import_module(f"nucleo.exercicios.tarefas_{a:02d}").CONTAS
        imitam = {(i, e) for i, conta in contas.items() for e in conta.imitam}
        assert imitam == {(t.id, e.id) for t in registro.tarefas(a) for e in t.enganos}
        modulo = import_module(f"nucleo.exercicios.perguntas_{a:02d}")
        assert set(modulo.MEDEM) == {p.id for p in registro.perguntas(a)}
        usadas = {
            c["conta"] for p in registro._textos("pergunta", a) for c in p.get("confusao", ())
            if "conta" in c
        }  # fmt: skip
        assert usadas == set(modulo.CONFUNDEM)


@todas
def test_molde_falha_como_vem(tarefa):
    texto = registro.molde(tarefa)
    v = rodar_aqui(tarefa, texto, registro.casos(tarefa))
    assert not v.passou and v.engano == "por_fazer"
    # E ensina a começar: formas, exemplo, tempo, dificuldade, o comando que confere.
    for trecho in ("Recebe:", "Devolve:", ">>> ", f"Reserve {tarefa.minutos} minutos",
                   registro.NIVEIS[tarefa.dificuldade], "--verificar", f"--dica {tarefa.numero}"):  # fmt: skip
        assert trecho in texto, trecho
    corpo = next(n for n in ast.parse(texto).body if isinstance(n, ast.FunctionDef)).body
    assert len(corpo) == 2  # a docstring e o raise: nada da solução sobrou


@todas
@pytest.mark.parametrize("semente", [*SEMENTES, 12345])
def test_solucao_passa(tarefa, semente):
    v = rodar_aqui(tarefa, registro.solucao(tarefa), registro.casos(tarefa, semente))
    assert v.passou, (v.chamado, v.voltou, v.esperado)


@todas
def test_exemplo_da_docstring_e_o_primeiro_caso(tarefa):
    caminho = registro.SOLUCOES / tarefa.arquivo
    spec = importlib.util.spec_from_file_location("solucao", caminho)
    modulo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(modulo)
    feito = doctest.testmod(modulo)
    assert feito.attempted >= 1 and feito.failed == 0


@todas
def test_dica_e_pergunta_aponta_a_secao_e_nao_e_a_solucao(tarefa):
    assert "?" in tarefa.dica and "Seção" in tarefa.dica and len(tarefa.dica) > 60
    funcao = next(
        n for n in ast.parse(registro.solucao(tarefa)).body if isinstance(n, ast.FunctionDef)
    )
    for no in funcao.body[1:]:
        for linha in ast.unparse(no).splitlines():
            # Nem a linha inteira, nem o lado direito de uma atribuição.
            for pedaco in (linha.strip(), linha.partition(" = ")[2]):
                assert len(pedaco) < 12 or pedaco not in tarefa.dica


def test_dicas_e_enganos_sao_textos_diferentes():
    assert len({t.dica for t in TAREFAS}) == len(TAREFAS)
    for t in TAREFAS:
        assert len({e.id for e in t.enganos}) == len(t.enganos) >= 4
        assert len({e.explicacao for e in t.enganos}) == len(t.enganos)


# --- o banco -----------------------------------------------------------------------------


def test_o_banco_tem_o_tamanho_prometido():
    errados = [e for programas in ERRADOS.values() for e, _ in programas]
    assert len(errados) >= 60 and sum(e != "?" for e in errados) >= 55
    assert sum(map(len, CERTOS.values())) >= 30
    assert set(ERRADOS) == set(CERTOS) == set(IDS)
    assert min(map(len, ERRADOS.values())) >= 4


@todas
@pytest.mark.parametrize("semente", SEMENTES)
def test_errados_sao_reprovados_e_o_engano_tem_nome(tarefa, semente):
    casos = registro.casos(tarefa, semente)
    for engano, programa in ERRADOS[tarefa.id]:
        v = rodar_aqui(tarefa, IMPORTA + programa, casos)
        assert not v.passou, programa
        if engano == "?":
            assert v.engano == "desconhecido" and not v.reconhecido, (v.engano, programa)
        else:
            assert v.engano == engano, (v.engano, v.voltou, programa)
        # As cinco partes estão lá, com o que dizer em cada uma.
        assert all((v.chamado, v.voltou, v.esperado, v.significa, v.explicacao))


@todas
@pytest.mark.parametrize("semente", SEMENTES)
def test_certos_de_outro_jeito_passam(tarefa, semente):
    casos = registro.casos(tarefa, semente)
    for programa in CERTOS[tarefa.id]:
        v = rodar_aqui(tarefa, IMPORTA + programa, casos)
        assert v.passou, (v.engano, v.chamado, v.voltou, v.esperado, programa)


@todas
def test_nenhum_engano_conhecido_passaria(tarefa):
    """Cada imitação erra em pelo menos um caso, com várias sementes: senão ela seria aprovada."""
    for semente in range(6):
        casos = registro.casos(tarefa, semente)
        certos = [tarefa.esperado(*juiz.argumentos(c)) for c in casos]
        for engano in tarefa.enganos:
            for n, imita in enumerate(engano.imita):
                with np.errstate(all="ignore"):
                    saidas = [imita(*juiz.argumentos(c)) for c in casos]
                iguais = [
                    juiz.igual(s, c, tarefa.tolerancia) for s, c in zip(saidas, certos, strict=True)
                ]
                assert not all(iguais), (engano.id, n, semente)


# --- as trapaças de sempre ---------------------------------------------------------------


def constante(tarefa, valor) -> str:
    dado = json.dumps(filho.codificar(valor))
    return (
        "import json\nfrom nucleo.exercicios.filho import decodificar\n"
        f"def {tarefa.funcao}(*args):\n    return decodificar(json.loads({dado!r}))\n"
    )


@todas
def test_copiar_o_exemplo_nao_passa(tarefa):
    casos = registro.casos(tarefa)
    exemplo = tarefa.esperado(*juiz.argumentos(casos[0]))
    v = rodar_aqui(tarefa, constante(tarefa, exemplo), casos)
    assert not v.passou and v.engano == "copiou_o_exemplo"


@todas
def test_constante_nao_passa(tarefa):
    casos = registro.casos(tarefa)
    certos = [tarefa.esperado(*juiz.argumentos(c)) for c in casos]
    outro = next(c for c in certos if not juiz.igual(c, certos[0], tarefa.tolerancia))
    for valor in (outro, 0, None, True, [], "certo"):
        v = rodar_aqui(tarefa, constante(tarefa, valor), casos)
        assert not v.passou
        if valor is outro:
            assert v.engano == "constante"


@pytest.mark.parametrize("tarefa", [t for t in TAREFAS if any(
    isinstance(a, np.ndarray) for a in registro.casos(t)[0].args)], ids=lambda t: t.id)  # fmt: skip
def test_mexer_na_entrada_nao_passa(tarefa):
    """A resposta é a certa, e mesmo assim um array de quem chamou saiu diferente."""
    texto = registro.solucao(tarefa) + (
        f"\n_certa = {tarefa.funcao}\n"
        f"def {tarefa.funcao}(*args):\n"
        "    valor = _certa(*[a.copy() if isinstance(a, np.ndarray) and a.base is None else a for a in args])\n"
        "    ultimo = [a for a in args if isinstance(a, np.ndarray)][-1]\n"
        "    ultimo += 1\n"
        "    return valor\n"
    )
    if tarefa.id == "amarrada":  # as cópias desamarrariam: chama com os próprios
        texto = texto.replace(
            "*[a.copy() if isinstance(a, np.ndarray) and a.base is None else a for a in args]",
            "*args",
        )
    v = rodar_aqui(tarefa, texto, registro.casos(tarefa))
    assert not v.passou and v.engano == "mexeu_na_entrada" and "argumento" in v.nome_do_engano


@pytest.mark.parametrize(
    ("texto", "engano", "trecho"),
    [
        ("def cosseno(a, b)\n    return 1\n", "sintaxe", "linha 1"),
        ("def coseno(a, b):\n    return 1\n", "sem_funcao", "coseno"),
        ("", "sem_funcao", "nenhuma"),
        ("import pacote_que_nao_ha\n", "falhou", "pacote_que_nao_ha"),
        ("def cosseno(a):\n    return 1\n", "falhou", "positional"),
        ("def cosseno(a, b):\n    return 1 / 0\n", "falhou", "linha 2"),
        ("def cosseno(a, b):\n    yield 1\n", "tipo", "generator"),
        ("def cosseno(a, b):\n    return {'v': 1}\n", "tipo", "dict"),
        ("def cosseno(a, b):\n    return '0,96'\n", "copiou_o_exemplo", "0,96"),
        ("import numpy as np\ndef cosseno(a, b):\n    return [a @ b] * 2\n", "forma", "24"),
        (
            "import numpy as np\ndef cosseno(a, b):\n    return -a @ b / np.sqrt((a@a)*(b@b) or 1)\n",
            "sinal",
            "−0,96",
        ),
        (
            "import numpy as np\ndef cosseno(a, b):\n    return 3 * a @ b / np.sqrt((a@a)*(b@b) or 1)\n",
            "fator",
            "2,88",
        ),
        (
            "def cosseno(a, b):\n    raise ValueError('\\x1b[31mvermelho\\x07')\n",
            "falhou",
            "[31mvermelho",
        ),
    ],
)
def test_resgate_em_vez_de_traceback(texto, engano, trecho):
    tarefa = registro.por_numero(2, 2)
    v = rodar_aqui(tarefa, texto, registro.casos(tarefa))
    if engano != "copiou_o_exemplo":
        assert v.engano == engano, v
    assert not v.passou and trecho in v.chamado + v.voltou
    assert "\x1b" not in v.voltou and "\x07" not in v.voltou


@pytest.mark.parametrize(
    "valor",
    [None, True, 3, -(10**30), 1.5, float("nan"), float("-inf"), "é", [1, [2.5, None]], (1, "a"),
     np.arange(6, dtype=np.int16).reshape(2, 3), np.array(2.5), np.zeros((0, 3), np.float32), np.float64(1e-300)],
    ids=repr,
)  # fmt: skip
def test_valores_vao_e_voltam_pela_caixa(valor):
    volta = filho.decodificar(json.loads(json.dumps(filho.codificar(valor))))
    if isinstance(valor, (np.ndarray, np.generic)):
        assert volta.dtype == valor.dtype and volta.shape == valor.shape
        assert volta.tobytes() == valor.tobytes()
    elif isinstance(valor, float):
        assert np.float64(valor).tobytes() == np.float64(volta).tobytes()
    else:
        assert volta == valor and type(volta) is type(valor)


SIMPLES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.builds(filho.Estranho, st.text(max_size=5)),
    st.sampled_from([np.zeros(3), np.eye(2), np.array([]), np.array(True), np.zeros((2, 0), "f2")]),
)  # fmt: skip
QUALQUER = st.recursive(
    SIMPLES, lambda x: st.lists(x, max_size=4) | st.lists(x, max_size=3).map(tuple)
)


@todas
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dados=st.data())
def test_nenhum_valor_derruba_o_juiz(tarefa, dados):
    """O que vem da caixa é de quem quiser: qualquer valor ganha um veredito, e nunca um traceback."""
    casos = registro.casos(tarefa)
    quantos = dados.draw(st.integers(0, len(casos)))
    ocorridos = [Ocorrido(dados.draw(QUALQUER)) for _ in range(quantos)]
    v = juiz.julgar(tarefa, casos, ocorridos)
    assert not v.passou and v.nome_do_engano
    assert (v.chamado + v.voltou + v.esperado + v.explicacao).encode("utf-8")


@pytest.mark.parametrize("dado", [
    {}, [], 3, {"t": "int", "v": "x"}, {"t": "float", "v": 1}, {"t": "array", "d": "O", "f": [1], "v": ""},
    {"t": "array", "d": "f8", "f": [10**9, 10**9], "v": ""}, {"t": "array", "d": "f8", "f": [2], "v": "AAAA"},
    {"t": "pickle", "v": "cos\nsystem\n"}, {"t": "lista", "v": [{"t": "lista", "v": [3]}]},
])  # fmt: skip
def test_dado_forjado_e_recusado(dado):
    with pytest.raises((ValueError, TypeError)):
        filho.decodificar(dado)


def test_moldes_nunca_apagam_trabalho(tmp_path):
    criados, havia = registro.criar_moldes(2, tmp_path)
    assert len(criados) == 7 and not havia
    (tmp_path / criados[0]).write_text("meu trabalho", encoding="utf-8")
    (tmp_path / criados[1]).unlink()
    de_novo, havia = registro.criar_moldes(2, tmp_path)
    assert de_novo == [criados[1]] and len(havia) == 6
    assert (tmp_path / criados[0]).read_text("utf-8") == "meu trabalho"
