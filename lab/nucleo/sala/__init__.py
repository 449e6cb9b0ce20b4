"""A sala: o kit para quem não tem internet (montar, instalar, servir na rede local) e a conferência da
máquina.

Só 00_preparar a importa. Ela importa modelos e base.
"""
