"""As peças de que os exercícios são feitos. Um exercício é dado: quem o mostra é a lição."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# --- implementar -----------------------------------------------------------------------


@dataclass(frozen=True)
class Mesmo:
    """Um argumento que é o mesmo objeto que o argumento de número `de`."""

    de: int


@dataclass(frozen=True)
class Vista:
    """Um argumento que olha a mesma memória que o argumento de número `de`, talvez transposta."""

    de: int
    transposta: bool = False


@dataclass(frozen=True)
class Caso:
    """Uma chamada da função: os argumentos, na ordem.

    `borda` marca o caso extremo (vetor nulo, notas enormes): um engano comum é reconhecido nos
    outros casos, e não precisa imitar também o que o programa faz na borda.
    """

    args: tuple
    borda: bool = False


@dataclass(frozen=True)
class Engano:
    """Um programa errado conhecido: o nome, o que ele revela, e quem o imita.

    `imita` são funções com a mesma assinatura da certa; se o que a pessoa devolveu coincide com
    o que uma delas devolve, em todos os casos, o engano é esse. `na_borda` diz que ele só se vê
    nos casos de borda.
    """

    id: str
    nome: str
    explicacao: str
    imita: tuple[Callable, ...]
    na_borda: bool = False


@dataclass(frozen=True)
class Conta:
    """O que uma tarefa tem de conta: a função certa, os casos e, de cada engano, quem o imita.

    O texto dela (o pedido, a dica, o que cada engano revela) está em data/exercicios/NN.toml.
    """

    esperado: Callable
    casos: Callable[[np.random.Generator], list[Caso]]
    imitam: dict[str, Callable | tuple[Callable, ...]]

    def imita(self, engano: str) -> tuple[Callable, ...]:
        """Quem imita um engano, mesmo que seja um programa só."""
        quem = self.imitam[engano]
        return quem if isinstance(quem, tuple) else (quem,)


@dataclass(frozen=True)
class Tarefa:
    """Uma função a escrever, com tudo o que se precisa para pedir, julgar e explicar."""

    id: str
    apostila: int
    numero: int
    secao: str
    titulo: str
    funcao: str
    minutos: int
    dificuldade: int  # 1 a 3
    dica: str
    significado: str
    esperado: Callable
    casos: Callable[[np.random.Generator], list[Caso]]
    enganos: tuple[Engano, ...] = ()
    # Relativa ao maior número esperado. Em float32 é o que 800 somas podem errar (contas.folga.soma), e
    # nenhum caso soma tantas.
    tolerancia: float = 1e-4

    @property
    def arquivo(self) -> str:
        """O nome do arquivo, igual na pasta da pessoa e na das soluções."""
        return f"{self.apostila:02d}_{self.numero}_{self.id}.py"


# --- prever ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Opcao:
    """Uma resposta possível de uma pergunta de escolha, com o que dizer a quem a escolheu."""

    chave: str
    texto: str
    explicacao: str


@dataclass(frozen=True)
class Confusao:
    """Um número errado conhecido: `valor(bancada)` o calcula e `explicacao` diz de onde vem."""

    valor: Callable
    explicacao: str


@dataclass(frozen=True)
class Medida:
    """O que se mediu: o valor que decide o veredito, como se mostra, e de quem é o número."""

    valor: object
    texto: str
    fonte: str


@dataclass(frozen=True)
class Pergunta:
    """Uma pergunta de previsão.

    `tipo` é "escolha", "numero", "ordem" ou "texto". `medir(bancada)` roda no modelo à mão e
    devolve uma `Medida`: a chave certa, o número, a lista de chaves em ordem, ou os pontos com
    que comparar o texto livre.
    """

    id: str
    apostila: int
    secao: str
    tipo: str
    enunciado: str
    medir: Callable
    porque: str
    opcoes: tuple[Opcao, ...] = ()
    unidade: str = ""
    tolerancia: float = 0.0  # relativa ao medido; ver `absoluta`
    absoluta: float = 0.0  # absoluta, na unidade da pergunta
    confusoes: tuple[Confusao, ...] = ()
    erro_geral: str = ""
    casas: int = 0
