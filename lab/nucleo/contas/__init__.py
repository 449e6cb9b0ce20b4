"""As contas: matemática pura sobre matrizes. Cosseno e vizinhos, h₀, posições, RoPE, contexto esticado,
vieses, permutação, projeções, quantos parâmetros há em cada peça, e quanto o arredondamento (`folga`)
pode separar duas contas da mesma coisa.

Podem importá-la as lições e todas as alas menos `base`, `modelos` e `sala`. Ela só importa, da base, os
erros e as unidades: nenhuma conta abre arquivo. É a versão rápida do que a lição escreve à vista.
"""
