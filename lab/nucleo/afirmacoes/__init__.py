"""As afirmações das apostilas: as fichas, o que nenhuma lição mede, o veredito, a errata e os resultados
guardados em data/referencia.

Só 99_conferir, a manutenção e os blocos das apostilas a importam. Ela importa contas, modelos e base, e é
a única que julga por resultados: lê-os pelo id, nunca de uma tabela.
"""
