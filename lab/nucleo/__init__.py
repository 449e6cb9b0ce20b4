"""Tudo o que as lições usam, em alas. Aqui dentro ninguém imprime nem lê a linha de comando.

Cada pasta é uma ala; o `__init__` dela diz o que mora lá e quem pode importá-la. A tabela inteira é
um teste: `tests/test_alas.py`.
"""
