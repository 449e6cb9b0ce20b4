"""Muon: um otimizador para as matrizes dos blocos (Jordan et al. 2024, kellerjordan.github.io/posts/muon).

O torch tem o dele (`torch.optim.Muon`), que faz as contas em bfloat16, uma matriz de cada vez. Em CPU
sem instruções próprias isso custa dez vezes mais; aqui as contas são em float32, e as matrizes de mesma
forma vão juntas. Um passo dos dois dá o mesmo, até o arredondamento (tests/test_muon.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

A, B, C = 3.4445, -4.7750, 2.0315  # o polinômio que leva qualquer valor singular para perto de 1
ITERACOES = 5


def ortogonalizar(G: Tensor) -> Tensor:
    """(n, m, k) -> (n, m, k): de cada matriz U·S·Vᵀ, uma próxima de U·Vᵀ, por Newton-Schulz.

    Os valores singulares saem entre cerca de 0,7 e 1,2, não exatamente em 1: para dar um passo, basta.
    """
    em_pe = G.shape[-2] > G.shape[-1]
    X = G.mT if em_pe else G  # a conta é feita do lado menor
    X = (X / X.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)).contiguous()
    for _ in range(ITERACOES):
        P = X @ X.mT  # (n, m, m), com m o lado menor
        X = torch.baddbmm(X, torch.baddbmm(P, P, P, beta=B, alpha=C), X, beta=A)
    return X.mT if em_pe else X


class Muon(torch.optim.Optimizer):
    """O passo é o gradiente com momento (Nesterov), ortogonalizado: todas as direções andam igual.

    Só serve a matrizes: os vetores ficam com o AdamW. O decaimento é solto do gradiente, como no dele.
    """

    def __init__(
        self,
        matrizes: Iterable[Tensor],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
    ):
        super().__init__(matrizes, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        """Um passo em todas as matrizes que têm gradiente."""
        for grupo in self.param_groups:
            por_forma: dict[torch.Size, list[Tensor]] = {}
            for p in grupo["params"]:
                if p.grad is not None:
                    por_forma.setdefault(p.shape, []).append(p)
            for (linhas, colunas), matrizes in por_forma.items():
                passos = ortogonalizar(
                    torch.stack([self._com_momento(p, grupo["momentum"]) for p in matrizes])
                )
                # Matriz em pé: o passo cresce, para mexer cada saída tanto quanto numa quadrada.
                taxa = grupo["lr"] * max(1.0, linhas / colunas) ** 0.5
                for p, passo in zip(matrizes, passos, strict=True):
                    p.mul_(1 - grupo["lr"] * grupo["weight_decay"]).add_(passo, alpha=-taxa)

    def _com_momento(self, p: Tensor, momento: float) -> Tensor:
        estado = self.state[p]
        if "media" not in estado:
            estado["media"] = torch.zeros_like(p)
        media = estado["media"].lerp_(p.grad, 1 - momento)
        return p.grad.lerp(media, momento)
