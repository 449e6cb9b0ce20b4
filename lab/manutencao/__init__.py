"""A manutenção: o que roda quem mantém o laboratório, e o aluno nunca. Pode importar qualquer ala."""
