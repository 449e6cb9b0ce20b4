"""Os exercícios: perguntas que se preveem, funções que se escrevem, e quem julga as duas."""
