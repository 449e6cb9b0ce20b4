"""A base: caminhos, unidades, erros da pessoa ao teclado, arquivos, figuras e o caderno de resultados.

Todos podem importá-la, e ela não importa nada nosso. O que está aqui não sabe o que é um embedding:
sabe onde as coisas moram, como se escreve um número em português, e como um arquivo troca inteiro.
"""
