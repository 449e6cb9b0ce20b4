"""O único tipo de erro que a pessoa ao teclado deve ver sem traceback."""


class ErroDoUsuario(Exception):
    """Um engano que quem está ao teclado pode consertar.

    Três partes, sempre nesta ordem: o que aconteceu, por que, e o que digitar agora.
    A lição que o recebe mostra as três e sai com código 2 (ver `aula.Aula`). Qualquer
    outra exceção é defeito nosso e mantém o traceback.
    """

    def __init__(self, o_que: str, por_que: str, o_que_fazer: str):
        super().__init__(f"{o_que}\n{por_que}\n{o_que_fazer}")
        self.o_que = o_que
        self.por_que = por_que
        self.o_que_fazer = o_que_fazer

    def __reduce__(self):
        # Atravessa de um processo para outro com as três partes.
        return type(self), (self.o_que, self.por_que, self.o_que_fazer)
