"""O que uma pergunta precisa para medir: os modelos à mão, abertos só quando alguém pergunta."""

from functools import cached_property

from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import vetores
from nucleo.modelos import fontes
from nucleo.modelos.fontes import Modelo


class Bancada:
    """Os modelos de uma sessão. `nome` é o de --modelo; nada se abre antes da primeira medida."""

    def __init__(self, nome: str = "auto", progresso=lambda *_: None):
        self.nome, self.progresso = nome, progresso
        self.memoria: dict = {}  # o que uma pergunta mediu e outra reaproveita

    @cached_property
    def modelo(self) -> Modelo:
        """O modelo pedido, ou o que estiver à mão. Erros: os de `modelos.abrir`."""
        return fontes.abrir(self.nome, self.progresso)

    @cached_property
    def em_ingles(self) -> Modelo:
        """Um modelo que tem as palavras inglesas das perguntas: o pedido ou, se for o mini, o SmolLM2.

        Erros: `ErroDoUsuario` se nenhum tiver.
        """
        if all(map(self.modelo.tokenizador.procurar, ("king", "queen", "cat", "cats", "dog"))):
            return self.modelo
        return fontes.abrir("smollm2", self.progresso)

    @cached_property
    def com_wpe(self) -> Modelo:
        """Um modelo com tabela de posições aprendida: o pedido ou, se ele não tem, o mini.

        Erros: `ErroDoUsuario` se o mini também não estiver aqui.
        """
        if self.modelo.wpe is not None:
            return self.modelo
        try:
            return fontes.abrir("mini", self.progresso)
        except ErroDoUsuario as erro:
            raise ErroDoUsuario(
                "Esta pergunta precisa de uma tabela de posições, e não há nenhuma aqui.",
                f"{self.modelo.nome} usa RoPE e não tem wpe. {erro.o_que}",
                erro.o_que_fazer,
            ) from None

    @cached_property
    def normas(self):
        """(V,): o comprimento de cada linha de wte do modelo em inglês."""
        return vetores.normas_das_linhas(self.em_ingles.wte)

    def linha(self, palavra: str) -> int:
        """O id da palavra no modelo em inglês. Erros: `ErroDoUsuario` se não for um token só."""
        return self.em_ingles.tokenizador.linha(palavra).id

    def cosseno(self, a: str, b: str) -> float:
        """O cosseno entre as linhas de duas palavras do modelo em inglês."""
        wte = self.em_ingles.wte
        return vetores.cosseno(wte[self.linha(a)], wte[self.linha(b)])
