# coding: utf-8  # noqa: UP009 - o Python 2 só lê o recado abaixo se souber a codificação
"""Preparação: do computador sem nada à primeira lição.

O que você vai ver: o ambiente .venv nascendo, uma linha por pacote que chega, e então uma linha por
item da máquina, [ok] ou [falta], e o comando que cura cada falta; [--] marca o que é opcional e não
está aqui. Interrompida, continua de onde parou. Cole a saída quando for relatar um problema.
Também busca e converte os modelos pedidos, e monta, instala e serve o pacote para quem não tem
internet.

Quanto demora: uns minutos na primeira vez; depois, 10 s para conferir. O GPT-2 são 548 MB.
Como rodar:    python3 lab/00_preparar.py       no Linux e no macOS; no Windows:  py lab\\00_preparar.py
               qualquer Python de 3.10 em diante; as opções, abaixo, são as mesmas nos três sistemas
               python lab/00_preparar.py --modelos gpt2,smollm2
               python lab/00_preparar.py --completo gpt2-xl    o modelo inteiro, com os blocos
               python lab/00_preparar.py --so-conferir         não instala, não baixa, não converte
Sem internet:  python lab/00_preparar.py --pacote PASTA        monta o pacote (pen drive)
               python lab/00_preparar.py --do-pacote PASTA     instala dele, sem rede nenhuma
               python lab/00_preparar.py --espelho PASTA       serve o pacote à rede da aula
               python lab/00_preparar.py --do-pacote http://IP:PORTA    instala do espelho
Código de saída: 0 se a sala está pronta, 1 se falta algo, 2 se o comando não faz sentido ou não pôde.
"""

import sys

# Este arquivo se lê em qualquer Python, até no 2.7, para que o recado seja este e não um SyntaxError.
if sys.version_info < (3, 10):  # noqa: UP036 - é aqui que um Python antigo fica sabendo
    sys.stderr.write(
        "\n✗ O Python %s é antigo demais para o laboratório.\n"  # noqa: UP031
        "  Por quê: os pacotes que ele usa pedem o 3.10 ou mais novo.\n"
        "  Agora:   instale um mais novo (python.org) e rode com ele:  python3.12 lab/00_preparar.py\n"
        % sys.version.split()[0]
    )
    sys.exit(2)

from palco.erros import rodar_com_erros_gentis
from palco.porta import principal

if __name__ == "__main__":
    raise SystemExit(rodar_com_erros_gentis(lambda: principal(__doc__)))
