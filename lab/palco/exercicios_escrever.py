"""Escreva você: os moldes, a conferência até o primeiro vermelho, a dica e a solução."""

import contextlib
from pathlib import Path

from nucleo.base.arquivos import nao_gravou
from nucleo.base.erros import ErroDoUsuario
from nucleo.exercicios import caixa, juiz, registro
from nucleo.exercicios.juiz import Veredito
from nucleo.exercicios.tipos import Tarefa
from palco.exercicios_tela import barra, diga, item, rode, tela, titulo


def criar(apostila: int, pasta: Path) -> int:
    """--implementar: põe os moldes que faltam em `pasta`, e não toca no que já está lá."""
    try:
        criados, havia = registro.criar_moldes(apostila, pasta)
    except OSError as erro:
        raise nao_gravou(pasta, erro) from None
    titulo(f"Apostila {apostila:02d} · escreva você")
    for tarefa in registro.tarefas(apostila):
        novo = "novo" if tarefa.arquivo in criados else "seu"
        item(f"{tarefa.numero} · {novo}", f"{tarefa.titulo} — {registro.NIVEIS[tarefa.dificuldade]}, "
             f"{tarefa.minutos} min\n{pasta / tarefa.arquivo}")  # fmt: skip
    if havia:
        diga(f"{len(havia)} já estavam lá e ficaram como você os deixou.", "dim")
    rode("Abra o primeiro, escreva, e confira:", registro.comando(apostila, "--verificar"))
    return 0


def _respostas(apostila: int, pasta: Path, ate: int | None = None):
    """(prontas para rodar, o primeiro veredito ruim já sabido ou None), até a tarefa `ate`."""
    prontas = []
    for tarefa in registro.tarefas(apostila):
        if ate not in (None, tarefa.numero):
            continue
        texto, engano = caixa.ler_resposta(pasta / tarefa.arquivo)
        if engano:
            return prontas, juiz.nao_rodou(tarefa, engano)
        prontas.append((tarefa, texto))
    return prontas, None


def verificar(apostila: int, pasta: Path) -> int:
    """--verificar: roda as funções em ordem e para na primeira que falha. 0 se todas passam."""
    tarefas = registro.tarefas(apostila)
    prontas, sabido = _respostas(apostila, pasta)
    if sabido and not prontas and not any((pasta / t.arquivo).exists() for t in tarefas):
        raise ErroDoUsuario(
            f"Não há funções em {pasta}.",
            "Os moldes ainda não foram criados nesta pasta.",
            f"Rode:  {registro.comando(apostila, '--implementar')}",
        )
    titulo(f"Apostila {apostila:02d} · conferindo")
    certas, ruim = 0, sabido
    # O gerador encerra o processo de dentro ao ser fechado, no primeiro vermelho.
    with contextlib.closing(caixa.Caixa().vereditos(prontas, registro.SEMENTE)) as vereditos:
        for veredito in vereditos:
            if not veredito.passou:
                ruim = veredito
                break
            certas += 1
            item("[certo]", f"{veredito.tarefa.numero} · {veredito.tarefa.titulo}", "green")
    if ruim:
        item("[falta]" if ruim.engano == "por_fazer" else "[errado]",
             f"{ruim.tarefa.numero} · {ruim.tarefa.titulo}", "bold red")  # fmt: skip
        mostrar(ruim)
    barra(certas, len(tarefas), "funções")
    if not ruim:
        rode("**Todas passam.** Compare com a solução:", registro.comando(apostila, "--solucao 1"))
        return 0
    rode(
        f"Corrija `{ruim.tarefa.arquivo}` e rode de novo:",
        registro.comando(apostila, "--verificar"),
    )
    rode("Se travar:", registro.comando(apostila, f"--dica {ruim.tarefa.numero}"))
    return 1


def mostrar(v: Veredito) -> None:
    """As cinco partes de uma falha."""
    tela.print()
    if v.engano == "por_fazer":
        item("a escrever", v.tarefa.arquivo)
        item("o que é", v.tarefa.significado)
        item("reserve", f"{v.tarefa.minutos} minutos ({registro.NIVEIS[v.tarefa.dificuldade]})")
        tela.print()
        return
    item("chamado", v.chamado)
    item("voltou", v.voltou)
    item("esperado", v.esperado)
    item("significa", v.significa)
    nome = f"{v.nome_do_engano}. " if v.reconhecido else ""
    item("engano", nome + v.explicacao, "bold yellow")
    tela.print()


def _tarefa(apostila: int, numero: int) -> Tarefa:
    tarefa = registro.por_numero(apostila, numero)
    if tarefa is None:
        raise ErroDoUsuario(
            f"A apostila {apostila:02d} não tem a função {numero}.",
            f"Elas vão de 1 a {len(registro.tarefas(apostila))}.",
            f"Veja a lista:  {registro.comando(apostila, '--implementar')}",
        )
    return tarefa


def dica(apostila: int, numero: int) -> int:
    """--dica N: uma pergunta que aponta para a seção."""
    tarefa = _tarefa(apostila, numero)
    titulo(f"{tarefa.numero} · {tarefa.titulo}")
    diga(tarefa.dica)
    return 0


def solucao(apostila: int, numero: int, pasta: Path, desisto: bool) -> int:
    """--solucao N: mostra a solução a quem passou, ou a quem diz que desiste."""
    tarefa = _tarefa(apostila, numero)
    if not desisto:
        prontas, sabido = _respostas(apostila, pasta, numero)
        veredito = sabido or next(iter(caixa.Caixa().vereditos(prontas, registro.SEMENTE)))
        if not veredito.passou:
            raise ErroDoUsuario(
                f"A função {numero} ainda não passa, e a solução fica para depois.",
                "Ler a resposta antes de tentar ensina pouco; a dica costuma bastar.",
                f"{registro.comando(apostila, f'--dica {numero}')}   ou, se quiser mesmo:  "
                f"{registro.comando(apostila, f'--solucao {numero} --desisto')}",
            )
    from rich.syntax import Syntax

    titulo(f"{tarefa.numero} · {tarefa.titulo}: uma solução")
    tela.print(Syntax(registro.solucao(tarefa), "python", theme="ansi_dark", word_wrap=True))
    return 0
