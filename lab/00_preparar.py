"""Preparação: a máquina está pronta para a aula?

O que você vai ver: uma linha por item, [ok] ou [falta], e o comando que cura cada falta; [--]
marca o que é opcional e não está aqui.
Também busca e converte os modelos pedidos. Cole a saída quando for relatar um problema.

Quanto demora: 10 s para conferir; 1 min para preparar o SmolLM2; o GPT-2 são 548 MB.
Como rodar:    python lab/00_preparar.py                       confere e deixa um modelo pronto
               python lab/00_preparar.py --modelos gpt2,smollm2
               python lab/00_preparar.py --completo gpt2-xl    o modelo inteiro, com os blocos
               python lab/00_preparar.py --so-conferir         não baixa nem converte nada
Código de saída: 0 se a sala está pronta, 1 se falta algo, 2 se o comando não faz sentido.
"""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - é aqui que um Python antigo fica sabendo
    print(f"[falta]  Python 3.10 ou mais novo (este é {sys.version.split()[0]}): python.org")
    sys.exit(1)

from aula import Analisador, barra_de_progresso, com_este_python, rodar_com_erros_gentis
from nucleo import maquina

MODELOS = ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "smollm2", "mini")


def lista_de_modelos(texto: str) -> list[str]:
    """Tipo do argparse: 'gpt2,smollm2' -> ['gpt2', 'smollm2'], só com nomes que existem."""
    nomes = [n.strip() for n in texto.split(",") if n.strip()]
    errados = [n for n in nomes if n not in MODELOS]
    if errados or not nomes:
        # O argparse transforma isto na mensagem de linha de comando.
        import argparse

        raise argparse.ArgumentTypeError(
            f"não conheço {', '.join(errados) or 'um nome vazio'}; os modelos são {', '.join(MODELOS)}"
        )
    return nomes


def mostrar(itens: list[maquina.Item]) -> None:
    """Uma linha por item; a cura na linha de baixo, uma vez só para faltas seguidas iguais."""
    for n, item in enumerate(itens):
        print(f"[{item.estado}]".ljust(8), item.texto)
        ultima = n + 1 == len(itens) or itens[n + 1].cura != item.cura
        if item.cura and ultima:
            print(" " * 9 + f"→ {com_este_python(item.cura)}")


def principal() -> int:
    p = Analisador(prog="00_preparar.py", description=__doc__)
    p.add_argument("--modelos", type=lista_de_modelos, help="quais deixar prontos, com vírgulas")
    p.add_argument(
        "--completo",
        action="append",
        choices=MODELOS[:4],
        default=[],
        help="baixa o GPT-2 inteiro deste tamanho (pode repetir)",
    )
    p.add_argument("--so-conferir", action="store_true", help="não baixa nem converte nada")
    args = p.parse_args()

    # %% A máquina: Python, pacotes, disco, escrita, console
    print("A máquina")
    itens = [maquina.conferir_python(), *maquina.conferir_pacotes()]
    itens += [*maquina.conferir_pastas(), maquina.conferir_console(sys.stdout.encoding)]
    mostrar(itens)
    if any(i.estado == maquina.FALTA for i in itens):
        # Sem os pacotes não dá nem para procurar os modelos.
        print("\nEsta máquina ainda não está pronta: resolva os itens [falta] e rode de novo.")
        return 1

    # %% Os modelos: buscar o que foi pedido, depois contar o que há
    rede = maquina.conferir_hub()
    print("\nOs modelos")
    mostrar([rede])
    pedidos = args.modelos or ([] if args.completo else maquina.pedido_padrao(rede))
    faltou = []
    if not args.so_conferir:
        with barra_de_progresso() as progresso:
            faltou = maquina.preparar(pedidos, args.completo, progresso)
    mostrar(faltou)
    # Quem acabou de aparecer em [falta] não precisa aparecer de novo em [--].
    ditos = {item.texto.split(":")[0] for item in faltou}
    prontos = maquina.conferir_modelos(tuple(n for n in MODELOS if n not in ditos))
    mostrar(prontos)

    # %% O veredito, que também é o código de saída
    if faltou or any(i.estado == maquina.FALTA for i in prontos):
        print("\nEsta máquina ainda não está pronta: resolva os itens [falta] e rode de novo.")
        return 1
    if not any(i.estado == maquina.OK for i in prontos):
        print(com_este_python(f"\nNenhum modelo está pronto. Rode:  {maquina.COMO_TER_UM_MODELO}"))
        return 1
    print(com_este_python("\nPronto. Agora:  python lab/02_embeddings.py"))
    return 0


if __name__ == "__main__":
    raise SystemExit(rodar_com_erros_gentis(principal))
