"""O palco: tudo o que imprime ou lê o teclado. Opções, tela, erros, e as telas dos exercícios.

Importam-no a aula e os scripts de lab/; ele pode importar qualquer ala do núcleo.
"""
