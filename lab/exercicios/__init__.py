"""A tela dos exercícios: o que pergunta, o que mostra e o que se digita. A lógica está no nucleo."""
