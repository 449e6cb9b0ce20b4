"""A linha de comando dos exercícios, a mesma para todas as apostilas."""

import argparse
import os
from pathlib import Path

from palco.erros import rodar_com_erros_gentis
from palco.opcoes import Analisador, inteiro_entre


def principal(apostila: int, doc: str) -> int:
    """Roda os exercícios de uma apostila e devolve o código de saída."""
    return rodar_com_erros_gentis(lambda: _rodar(_opcoes(apostila, doc), apostila))


def _opcoes(apostila: int, doc: str) -> argparse.Namespace:
    p = Analisador(prog=f"{apostila:02d}_exercicios.py", description=doc)
    padrao = os.environ.get("LAB_MODELO", "auto")
    p.add_argument("--modelo", default=padrao, help="quem responde às medidas (como nas lições)")
    p.add_argument("--saida", help="a pasta das suas respostas (padrão: minhas_respostas)")
    modo = p.add_mutually_exclusive_group()
    modo.add_argument(
        "--respostas", metavar="ARQUIVO", help="prevê sem perguntar: um JSON com as respostas"
    )
    for opcao, ajuda in {
        "--rever": "mostra o que você já previu, sem perguntar",
        "--recomecar": "guarda as previsões antigas e começa outras",
        "--implementar": "põe os moldes das funções na sua pasta",
        "--verificar": "confere as funções, até a primeira que falha",
    }.items():
        modo.add_argument(opcao, action="store_true", help=ajuda)
    uma_funcao = {"type": inteiro_entre(1, 99), "metavar": "N"}
    modo.add_argument("--dica", **uma_funcao, help="uma dica da função N")
    modo.add_argument("--solucao", **uma_funcao, help="a solução da função N, depois de passar")
    ajuda = "com --solucao: mostra mesmo sem ter passado"
    p.add_argument("--desisto", action="store_true", help=ajuda)
    return p.parse_args()


def _rodar(args: argparse.Namespace, apostila: int) -> int:
    from nucleo.exercicios import registro

    pasta = Path(os.path.expanduser(args.saida)) if args.saida else registro.RESPOSTAS
    from palco import exercicios_escrever, exercicios_prever

    if args.implementar:
        return exercicios_escrever.criar(apostila, pasta)
    if args.verificar:
        return exercicios_escrever.verificar(apostila, pasta)
    if args.dica:
        return exercicios_escrever.dica(apostila, args.dica)
    if args.solucao:
        return exercicios_escrever.solucao(apostila, args.solucao, pasta, args.desisto)
    return exercicios_prever.sessao(apostila, pasta, args)
