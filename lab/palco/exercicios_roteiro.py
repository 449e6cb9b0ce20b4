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
    p.add_argument(
        "--modelo",
        default=os.environ.get("LAB_MODELO", "auto"),
        help="quem responde às medidas (como nas lições)",
    )
    p.add_argument("--saida", help="a pasta das suas respostas (padrão: minhas_respostas)")
    modo = p.add_mutually_exclusive_group()
    modo.add_argument(
        "--respostas", metavar="ARQUIVO", help="prevê sem perguntar: um JSON com as respostas"
    )
    modo.add_argument(
        "--rever", action="store_true", help="mostra o que você já previu, sem perguntar"
    )
    modo.add_argument(
        "--recomecar", action="store_true", help="guarda as previsões antigas e começa outras"
    )
    modo.add_argument(
        "--implementar", action="store_true", help="põe os moldes das funções na sua pasta"
    )
    modo.add_argument(
        "--verificar", action="store_true", help="confere as funções, até a primeira que falha"
    )
    modo.add_argument("--dica", type=inteiro_entre(1, 99), metavar="N", help="uma dica da função N")
    modo.add_argument(
        "--solucao",
        type=inteiro_entre(1, 99),
        metavar="N",
        help="a solução da função N, depois de passar",
    )
    p.add_argument(
        "--desisto", action="store_true", help="com --solucao: mostra mesmo sem ter passado"
    )
    return p.parse_args()  # fmt: skip


def _rodar(args: argparse.Namespace, apostila: int) -> int:
    from nucleo.exercicios import registro

    pasta = Path(args.saida).expanduser() if args.saida else registro.RESPOSTAS
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
