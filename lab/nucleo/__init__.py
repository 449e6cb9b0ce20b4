"""O que as lições usam. Funções simples: nada aqui imprime nem lê a linha de comando."""
