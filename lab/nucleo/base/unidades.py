"""Números como se escrevem em português: 38.597.376, 0,709, 160,8 MB."""


def inteiro(n: int) -> str:
    """Inteiro com ponto a cada três casas: 124439808 -> '124.439.808'."""
    return f"{int(n):,}".replace(",", ".")


def contado(n: int, um: str, varios: str | None = None) -> str:
    """O número e o nome que concorda com ele: (1, 'tabela') -> '1 tabela'; (0, 'tabela') -> '0 tabelas'.

    `varios` é o plural quando não basta um s.
    """
    return f"{inteiro(n)} {um if n == 1 else varios or um + 's'}"


def decimal(x: float, casas: int = 3) -> str:
    """Decimal com vírgula e sinal de menos tipográfico: -0.5 -> '−0,500'."""
    return f"{x:,.{casas}f}".replace(",", "_").replace(".", ",").replace("_", ".").replace("-", "−")


def cientifico(x: float, casas: int = 1) -> str:
    """Notação curta para diferenças pequenas: 3.2e-07 -> '3,2e-07'; zero exato é '0'."""
    return "0" if x == 0 else f"{x:.{casas}e}".replace(".", ",")


def porcento(x: float, casas: int = 1) -> str:
    """Fração -> porcentagem: 0.31 -> '31,0%'."""
    return decimal(100 * x, casas) + "%"


def megabytes(n: int) -> str:
    """Bytes em MB (10⁶): 328204800 -> '328,2 MB'."""
    return decimal(n / 1e6, 1) + " MB"
