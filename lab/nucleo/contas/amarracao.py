"""A amarração (weight tying): duas matrizes são a mesma? Perguntado à memória, e não à configuração."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Amarracao:
    """Quatro perguntas sobre duas matrizes: são o mesmo objeto? o mesmo endereço? o mesmo
    pedaço de memória? quem muda uma vê a mudança na outra?"""

    mesmo_objeto: bool
    mesmo_endereco: bool
    mesma_memoria: bool
    mudanca_vista: bool

    @property
    def amarrada(self) -> bool:
        return self.mesmo_endereco and self.mesma_memoria and self.mudanca_vista


def amarracao(entrada, saida) -> Amarracao:
    """Compara dois parâmetros (V, d) do torch. A mudança de teste é desfeita no fim.

    Erros: `ValueError` no dispositivo meta: lá nenhum tensor tem memória, `data_ptr()` é 0
    para todos, e dois tensores sem parentesco pareceriam o mesmo.
    """
    import torch

    if entrada.is_meta or saida.is_meta:
        raise ValueError(
            "no dispositivo meta não há memória: data_ptr() vale 0 para todos e não prova nada"
        )
    if entrada.shape != saida.shape:
        return Amarracao(False, False, False, False)
    with torch.no_grad():
        antes, la_antes = entrada[0, 0].item(), saida[0, 0].item()
        entrada[0, 0] = antes + 1.0
        # Precisa ter mudado, e não só coincidir: a outra matriz podia já ter esse número.
        vista = la_antes != saida[0, 0].item() == entrada[0, 0].item()
        entrada[0, 0] = antes
    return Amarracao(
        entrada is saida,
        entrada.data_ptr() == saida.data_ptr(),
        entrada.untyped_storage().data_ptr() == saida.untyped_storage().data_ptr(),
        vista,
    )


def endereco_no_meta() -> tuple[int, int]:
    """Os data_ptr() de dois tensores meta sem parentesco nenhum: iguais, e por isso inúteis."""
    import torch

    a, b = torch.empty(2, 2, device="meta"), torch.empty(3, 3, device="meta")
    return a.data_ptr(), b.data_ptr()
