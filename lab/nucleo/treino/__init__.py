"""O treino: do texto cru a um modelo pequeno. Corpus, passos, o mini, os n-gramas a bater e os esquemas
da lição de extrapolação.

Podem importá-la as lições, os módulos delas em `licoes` e a manutenção. Ela importa contas,
modelos e base.
"""
