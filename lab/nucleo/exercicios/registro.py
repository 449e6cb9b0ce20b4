"""O registro único dos exercícios: em que ordem, de que seção, com que dica e que solução."""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from nucleo.base import arquivos, caminhos
from nucleo.exercicios.tipos import Caso, Confusao, Engano, Opcao, Pergunta, Tarefa

SOLUCOES = Path(__file__).with_name("solucoes")
RESPOSTAS = caminhos.RAIZ / "minhas_respostas"
NIVEIS = {1: "fácil", 2: "médio", 3: "difícil"}
SEMENTE = 2026  # de quem verifica em casa: os mesmos casos sempre; a correção sorteia outros


def _textos(qual: str, apostila: int) -> list[dict]:
    arquivo = caminhos.DADOS / "exercicios" / f"{qual}s_{apostila:02d}.toml"
    return arquivos.ler_toml(arquivo)[qual]


@cache
def tarefas(apostila: int) -> tuple[Tarefa, ...]:
    """As funções a escrever de uma apostila, na ordem. Só ela é importada: a 06 usa o torch."""
    contas = import_module(f"nucleo.exercicios.tarefas_{apostila:02d}").CONTAS
    feitas = []
    for texto in _textos("tarefa", apostila):
        conta = contas[texto["id"]]
        enganos = tuple(Engano(**e, imita=conta.imita(e["id"])) for e in texto.pop("engano"))
        certa = {"esperado": conta.esperado, "casos": conta.casos, "enganos": enganos}
        feitas.append(Tarefa(**texto, **certa, apostila=apostila))
    return tuple(feitas)


@cache
def perguntas(apostila: int) -> tuple[Pergunta, ...]:
    """As perguntas de previsão de uma apostila, na ordem."""
    feitas = []
    for texto in _textos("pergunta", apostila):
        opcoes = tuple(Opcao(**o) for o in texto.pop("opcao", ()))
        confusoes = tuple(_confusao(apostila, **c) for c in texto.pop("confusao", ()))
        medir = _do_modulo(apostila, "MEDEM", texto["id"])
        feitas.append(
            Pergunta(**texto, apostila=apostila, medir=medir, opcoes=opcoes, confusoes=confusoes)
        )
    return tuple(feitas)


def _do_modulo(apostila: int, tabela: str, nome: str) -> Callable:
    # O módulo das medidas traz o torch: só se abre quando alguém mede.
    modulo = f"nucleo.exercicios.perguntas_{apostila:02d}"
    return lambda bancada: getattr(import_module(modulo), tabela)[nome](bancada)


def _confusao(apostila: int, explicacao: str, valor: float = 0.0, conta: str = "") -> Confusao:
    # O número errado está escrito no texto, ou é uma conta do módulo.
    quanto = _do_modulo(apostila, "CONFUNDEM", conta) if conta else lambda _: valor
    return Confusao(quanto, explicacao)


def casos(tarefa: Tarefa, semente: int = SEMENTE) -> list[Caso]:
    """As chamadas de uma tarefa; o primeiro caso é o exemplo do molde."""
    return tarefa.casos(np.random.default_rng([semente, tarefa.apostila, tarefa.numero]))


def solucao(tarefa: Tarefa) -> str:
    """O texto da solução. `FileNotFoundError` se não existe."""
    return (SOLUCOES / tarefa.arquivo).read_text(encoding="utf-8")


def molde(tarefa: Tarefa) -> str:
    """O arquivo que a pessoa recebe: a solução até o fim da docstring, e daí em diante vazio.

    Molde e solução saem do mesmo arquivo, e por isso nunca prometem coisas diferentes.
    """
    texto = solucao(tarefa)
    arvore = ast.parse(texto)
    funcao = next(
        n for n in arvore.body if isinstance(n, ast.FunctionDef) and n.name == tarefa.funcao
    )
    linhas = texto.splitlines()
    inicio = arvore.body[0].end_lineno  # a docstring do arquivo dá lugar ao cabeçalho
    corpo = "\n".join(linhas[inicio : funcao.body[0].end_lineno])
    return (
        f'"""Apostila {tarefa.apostila:02d} · exercício {tarefa.numero}: {tarefa.titulo} (seção {tarefa.secao}).\n\n'
        f"Dificuldade: {NIVEIS[tarefa.dificuldade]}. Reserve {tarefa.minutos} minutos.\n"
        f"Para conferir:  {comando(tarefa.apostila, '--verificar')}\n"
        f'Para uma dica:  {comando(tarefa.apostila, f"--dica {tarefa.numero}")}\n"""\n'
        f"{corpo}\n"
        "    # Escreva aqui e apague a linha de baixo.\n"
        f'    raise NotImplementedError("{tarefa.funcao}")\n'
    )


def comando(apostila: int, opcoes: str = "") -> str:
    """A linha que se digita para rodar os exercícios de uma apostila."""
    return f"python lab/{apostila:02d}_exercicios.py {opcoes}".strip()


def por_numero(apostila: int, numero: int) -> Tarefa | None:
    """A tarefa de um número, ou None."""
    return next((t for t in tarefas(apostila) if t.numero == numero), None)


def criar_moldes(apostila: int, pasta: Path) -> tuple[list[str], list[str]]:
    """Põe os moldes em `pasta`; devolve (criados, os que já estavam lá e não foram tocados).

    Erros: `OSError` se a pasta não aceitar arquivos.
    """
    pasta.mkdir(parents=True, exist_ok=True)
    criados, havia = [], []
    for tarefa in tarefas(apostila):
        try:
            # "x": se o arquivo existe, não se escreve, nem que outro processo o crie agora.
            with (pasta / tarefa.arquivo).open("x", encoding="utf-8", newline="\n") as f:
                f.write(molde(tarefa))
            criados.append(tarefa.arquivo)
        except FileExistsError:
            havia.append(tarefa.arquivo)
    return criados, havia
