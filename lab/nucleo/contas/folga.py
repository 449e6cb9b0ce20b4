"""Quanto o arredondamento separa duas contas da mesma coisa: daqui saem as tolerâncias das conferências.

Uma conta em ponto flutuante arredonda o resultado em até eps/2 do seu tamanho. Somar n parcelas faz n
desses erros, e o total erra até n·(eps/2)·Σ|parcela| (Higham, 2002, seção 4.2), seja qual for a ordem:
a do processador, a do número de threads, a da biblioteca. Duas contas erram o dobro: n·eps·Σ|parcela|.
O limite vale em qualquer máquina; na prática os erros se cancelam, e fica-se bem abaixo dele.
"""

import math

EPS32, EPS64 = 2.0**-23, 2.0**-52  # de 1 ao número seguinte, em float32 e em float64


def soma(parcelas: int, tamanho: float = 1.0, eps: float = EPS64) -> float:
    """Até quanto se afastam duas contas que somam as mesmas parcelas em ordens diferentes.

    Argumentos:
        parcelas: quantas se somam; contas em fila (um produto, e depois outro) juntam as suas.
        tamanho: um teto de Σ|parcela|. O de um produto interno é ‖a‖·‖b‖; o de uma média, o maior.
        eps: EPS32 ou EPS64, o da precisão em que se conta.
    """
    return float(parcelas * tamanho * eps)


def potencia(base: float, eps: float = EPS64) -> float:
    """O mesmo, relativo ao valor, para base^(−x) com x de 0 a 1 feito de duas maneiras.

    O expoente arredonda uma vez, e a potência multiplica esse erro por ln(base); ela mesma, e o que
    vem antes e depois (um produto, uma divisão), arredondam mais três.
    """
    return soma(3 + math.log(base), 1.0, eps)


def angulo(ate: float, eps: float = EPS64) -> float:
    """O mesmo, para o seno ou o cosseno de pos·10000^(−x), um ângulo de até `ate` radianos.

    O seno não erra mais que o ângulo; e, por último, ele mesmo arredonda.
    """
    return ate * potencia(10_000, eps) + eps


def modelo(camadas: int, d: int, tamanho: float = 1.0) -> float:
    """O mesmo, depois de `camadas` camadas de um modelo em float32, para números até `tamanho`.

    Em cada camada um número soma d parcelas (ou mais, e menores), e o erro de uma passa à seguinte:
    são n = camadas · d arredondamentos. O pior caso, n, pede que todos caiam para o mesmo lado; como
    não se conhecem, o total é da ordem de √n, e passar de 6·√n tem chance menor que 2·exp(−6²/2),
    uma em dez milhões (Higham e Mary, 2019, teorema 2.4).
    """
    return soma(6 * math.sqrt(camadas * d), tamanho, EPS32)
