"""Um decodificador pequeno em que só a posição muda: o modelo de `lab/06_extrapolacao.py`.

Seis esquemas, os de `vieses.esquemas`. Tudo o mais é igual: a tabela de entrada (√d, atada à
saída), o token de início, os blocos, a semente e os dados. A posição entra em um de três lugares: somada ao
embedding, somada às notas da atenção, ou girando q e k.

O modelo tem `.transformer` e `.lm_head` com as chamadas do GPT-2 do transformers, e por isso
treina com o mesmo laço (`nucleo.treino.treinador`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nucleo.contas.escalonamento import Escalonamento, sem_escala
from nucleo.contas.posicoes import EmbeddingsDeEntrada, ErroDePosicao, senoides
from nucleo.contas.rope import girar, tabelas
from nucleo.contas.vieses import balde_t5, distancias, vies_alibi

ESQUEMAS = ("nenhum", "aprendido", "senoidal", "T5", "ALiBi", "RoPE")


@dataclass(frozen=True)
class Medidas:
    """O tamanho do modelo. `treino` é o número de posições que ele vê ao treinar.

    Fundo e estreito, porque sem posição nenhuma a ordem se descobre camada a camada.
    """

    vocabulario: int = 96
    d: int = 64
    camadas: int = 6
    cabecas: int = 4
    treino: int = 128
    n_baldes: int = 32

    @property
    def d_cabeca(self) -> int:
        return self.d // self.cabecas


class Bloco(nn.Module):
    """Atenção causal e MLP, cada uma com a sua norma antes e o seu atalho (GPT-2)."""

    def __init__(self, m: Medidas):
        super().__init__()
        self.m = m
        self.norma1, self.norma2 = nn.LayerNorm(m.d), nn.LayerNorm(m.d)
        # Três matrizes, e não uma de 3d: o Muon ortogonaliza cada uma por si.
        self.q, self.k, self.v, self.saida = (nn.Linear(m.d, m.d, bias=False) for _ in range(4))
        self.sobe, self.desce = nn.Linear(m.d, 4 * m.d), nn.Linear(4 * m.d, m.d)

    def forward(self, x: Tensor, vies: Tensor | None, giro: tuple[Tensor, Tensor] | None) -> Tensor:
        """x: (B, T, d); vies: (1, H, T, T) ou None; giro: (cos, sen) ou None -> (B, T, d)."""
        y = self.norma1(x)  # (B, T, d)
        # (B, T, d) -> (B, T, H, d_h) -> (B, H, T, d_h)
        q, k, v = (
            linear(y).unflatten(-1, (self.m.cabecas, self.m.d_cabeca)).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        if giro is not None:  # RoPE: q e k giram, v não
            q, k = girar(q, *giro), girar(k, *giro)
        if vies is not None:
            vies = vies.to(q.dtype)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=vies, is_causal=vies is None)
        x = x + self.saida(a.transpose(1, 2).flatten(-2))  # (B, H, T, d_h) -> (B, T, d)
        return x + self.desce(F.gelu(self.sobe(self.norma2(x)), approximate="tanh"))


class Corpo(nn.Module):
    """Da entrada à última norma. `escala`, no RoPE, estica as frequências sem retreinar."""

    def __init__(self, esquema: str, m: Medidas):
        super().__init__()
        self.esquema, self.m = esquema, m
        self.escala: Escalonamento | None = None
        self.entrada = EmbeddingsDeEntrada(m.vocabulario + 1, m.d)  # a última linha é o início
        if esquema == "aprendido":
            # Da mesma ordem da senoide que ela substitui, para que nenhuma das duas saia na frente.
            self.wpe = nn.Embedding(m.treino, m.d)
            nn.init.normal_(self.wpe.weight, std=math.sqrt(0.5))
        if esquema == "T5":
            # Um vetor só, e não uma matriz: o laço de treino não decai vetores.
            self.vies_t5 = nn.Parameter(torch.zeros(m.n_baldes * m.cabecas))
        self.blocos = nn.ModuleList(Bloco(m) for _ in range(m.camadas))
        self.norma = nn.LayerNorm(m.d)

    def forward(self, input_ids: Tensor, use_cache: bool = False) -> SimpleNamespace:
        """(B, T) ids -> .last_hidden_state (B, T, d). `use_cache` existe só pela assinatura do GPT-2.

        No lugar do primeiro id entra sempre o token de início. É dele que um modelo sem posições
        tira onde está: quanto mais longe, menor a parte da atenção que lhe cabe (Kazemnejad et al.
        2023, arXiv 2305.19466, teorema 1). Todos os esquemas o recebem, para só a posição mudar.

        Levanta:
            ErroDePosicao: mais posições do que a tabela aprendida tem.
        """
        T = input_ids.shape[1]
        ids = F.pad(input_ids[:, 1:], (1, 0), value=self.m.vocabulario)  # (B, T) -> (B, T)
        x = self.entrada(ids)  # (B, T) -> (B, T, d)
        if self.esquema == "aprendido":
            if self.m.treino < T:
                raise ErroDePosicao(
                    f"A sequência tem {T} tokens, e a tabela aprendida tem {self.m.treino} posições.",
                    "Uma posição que não se treinou não tem linha na tabela: não há o que somar.",
                    f"Avalie com até {self.m.treino} posições, ou escolha outro esquema.",
                )
            x = x + self.wpe.weight[:T]
        elif self.esquema == "senoidal":
            x = x + senoides(T, self.m.d).to(x)
        vies, giro = self.vies(T), self.giro(T)
        for bloco in self.blocos:
            x = bloco(x, vies, giro)
        return SimpleNamespace(last_hidden_state=self.norma(x))

    def vies(self, T: int) -> Tensor | None:
        """O que se soma às notas, já com a máscara causal: (1, H, T, T), ou None se não há."""
        if self.esquema == "ALiBi":
            v = vies_alibi(self.m.cabecas, T)  # (H, T, T)
        elif self.esquema == "T5":
            balde = balde_t5(distancias(T), n_baldes=self.m.n_baldes)  # (T, T)
            v = self.vies_t5.unflatten(0, (self.m.cabecas, -1))[:, balde]  # (H, n) -> (H, T, T)
        else:
            return None
        futuro = torch.ones(T, T, dtype=torch.bool).triu(1)
        return v.masked_fill(futuro, -math.inf)[None]

    def giro(self, T: int) -> tuple[Tensor, Tensor] | None:
        """(cos, sen), (T, d_h/2) cada, com as frequências esticadas se houver `escala`."""
        if self.esquema != "RoPE":
            return None
        escala = self.escala or sem_escala(self.m.d_cabeca)
        return tabelas(T, escala.frequencias, fator_de_atencao=escala.fator_de_atencao)


class ModeloDeEsquema(nn.Module):
    """Modelo de linguagem com um dos `ESQUEMAS`; a matriz de saída é a de entrada."""

    def __init__(self, esquema: str, m: Medidas, semente: int = 0):
        super().__init__()
        torch.manual_seed(semente)
        self.transformer = Corpo(esquema, m)
        self.lm_head = nn.Linear(m.d, m.vocabulario + 1, bias=False)
        self.lm_head.weight = self.transformer.entrada.tabela.weight
        # GPT-2: as saídas de cada ramo encolhem com a profundidade, senão a soma cresce demais.
        for bloco in self.transformer.blocos:
            for linear in (bloco.saida, bloco.desce):
                nn.init.normal_(linear.weight, std=1 / math.sqrt(m.d * 2 * m.camadas))
            for linear in (bloco.q, bloco.k, bloco.v, bloco.sobe):
                nn.init.normal_(linear.weight, std=1 / math.sqrt(m.d))

    @property
    def esquema(self) -> str:
        return self.transformer.esquema

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> logits (B, T, V)."""
        return self.lm_head(self.transformer(ids).last_hidden_state)
