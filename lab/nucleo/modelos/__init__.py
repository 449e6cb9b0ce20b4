"""Os modelos: de onde vêm wte, wpe, o tokenizador e o modelo inteiro; as listas de palavras; o que se
mediu uma vez no GPT-2 verdadeiro.

Podem importá-la as lições e todas as alas menos `base` e `contas`. Ela só importa a base. Uma fonte nova
de modelo entra em `fontes.py`: um nome em `NOMES`, um ramo em `abrir` e, se puder ser a escolhida, em `_auto`.
"""
