"""Kneser-Ney: o melhor modelo de linguagem sem rede nenhuma, para se medir contra ele.

Um n-grama prevê o próximo token contando o que veio depois dos mesmos n-1 tokens. O suavizamento
de Kneser-Ney desconta um pouco de cada contagem e reparte o que sobrou com o (n-1)-grama, cujas
contagens são as de *continuação*: em quantos contextos diferentes o token apareceu. É a versão
interpolada com três descontos (Chen & Goodman 1999, seções 2.7 e 3; "modified Kneser-Ney").
"""

from __future__ import annotations

import numpy as np


class KneserNey:
    """Modelo de n-gramas com Kneser-Ney modificado e interpolado, sobre ids de tokens.

    `ordem` é o n: com 5, cada token é previsto pelos quatro anteriores. As contagens ficam em
    vetores ordenados do numpy (uma busca binária por ordem), não em dicionários: três milhões
    de tokens cabem em segundos.
    """

    def __init__(self, fita: np.ndarray, vocabulario: int, ordem: int = 5):
        fita = np.asarray(fita, dtype=np.int64)
        self.vocabulario, self.ordem = vocabulario, ordem
        self._chaves: list[np.ndarray] = []  # por ordem k: (id do contexto) · V + token, ordenado
        self._numerador: list[np.ndarray] = []  # por ordem: contagem já descontada
        self._total: list[np.ndarray] = []  # por ordem e contexto: soma das contagens
        self._sobra: list[np.ndarray] = []  # por ordem e contexto: a massa que vai para baixo
        self.descontos: list[tuple[float, float, float]] = []

        # Um passe por ordem. `ids[i]` é o id do k-grama que começa na posição i da fita; o
        # contexto da ordem seguinte é esse mesmo k-grama, e por isso os ids servem de chave.
        ids = np.zeros(len(fita), dtype=np.int64)  # ordem 0: um só contexto, o vazio
        contagens: list[np.ndarray] = []
        for k in range(1, ordem + 1):
            chave = ids[: len(fita) - k + 1] * vocabulario + fita[k - 1 :]
            unicas, primeiras, novos, vezes = np.unique(
                chave, return_index=True, return_inverse=True, return_counts=True
            )
            if k > 1:
                # Contagem de continuação da ordem de baixo: cada k-grama diferente vale 1 para
                # o seu sufixo, que é o (k-1)-grama que começa uma posição adiante.
                sufixos = ids[primeiras + 1]
                contagens[-1] = np.bincount(sufixos, minlength=len(self._chaves[-1]))
            self._chaves.append(unicas)
            contagens.append(vezes)
            ids = novos

        n_contextos = [1] + [len(unicas) for unicas in self._chaves[:-1]]
        for unicas, contagem, n in zip(self._chaves, contagens, n_contextos, strict=True):
            d1, d2, d3 = self._tres_descontos(contagem)
            self.descontos.append((d1, d2, d3))
            contexto = unicas // vocabulario
            desconto = np.select([contagem == 0, contagem == 1, contagem == 2], [0.0, d1, d2], d3)
            self._numerador.append(contagem - desconto)
            self._total.append(np.bincount(contexto, weights=contagem, minlength=n))
            self._sobra.append(np.bincount(contexto, weights=desconto, minlength=n))

    @staticmethod
    def _tres_descontos(contagem: np.ndarray) -> tuple[float, float, float]:
        """Os descontos de quem apareceu 1, 2 e 3 ou mais vezes (Chen & Goodman 1999, eq. 26)."""
        n1, n2, n3, n4 = (int((contagem == c).sum()) for c in (1, 2, 3, 4))
        if not (n1 and n2 and n3):  # texto minúsculo: as fórmulas dividiriam por zero
            return 0.5, 0.5, 0.5
        y = n1 / (n1 + 2 * n2)
        calculados = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
        return tuple(float(np.clip(d, 0.01, c)) for c, d in enumerate(calculados, start=1))

    def _achar(self, k: int, chave: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posição de cada chave entre os k-gramas, e se ela existe mesmo."""
        unicas = self._chaves[k - 1]
        onde = np.minimum(np.searchsorted(unicas, chave), len(unicas) - 1)
        return onde, unicas[onde] == chave

    def _id_do_contexto(self, contextos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """O id de cada contexto (linha; o vazio é o 0), e se ele foi visto no treino."""
        atual = np.zeros(len(contextos), dtype=np.int64)
        visto = np.ones(len(contextos), dtype=bool)
        for k, coluna in enumerate(contextos.T, start=1):
            atual, achou = self._achar(k, atual * self.vocabulario + coluna)
            visto &= achou
        return atual, visto

    def probabilidades(self, contextos: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """p(token | contexto) para cada linha. contextos: (n, até ordem-1), tokens: (n,) -> (n,).

        Começa no uniforme e sobe: a cada ordem, o que foi contado mais a sobra vezes o de baixo.
        """
        contextos = np.asarray(contextos, dtype=np.int64)
        tokens = np.asarray(tokens, dtype=np.int64)
        p = np.full(len(tokens), 1.0 / self.vocabulario)
        for k in range(1, min(self.ordem, contextos.shape[1] + 1) + 1):
            recentes = contextos[:, contextos.shape[1] - (k - 1) :]  # (n, k-1)
            contexto, visto = self._id_do_contexto(recentes)
            total = np.where(visto, self._total[k - 1][contexto], 0.0)
            onde, achou = self._achar(k, contexto * self.vocabulario + tokens)
            contado = np.where(achou & visto, self._numerador[k - 1][onde], 0.0)
            sobra = np.where(visto, self._sobra[k - 1][contexto], 0.0)
            com = total > 0  # contexto nunca visto: fica valendo a ordem de baixo
            p = np.where(com, (contado + sobra * p) / np.where(com, total, 1.0), p)
        return p

    def perda_media(self, fita: np.ndarray, janela: int | None = None) -> float:
        """Perda média em nats por token.

        Cada token é previsto pelos `ordem`-1 anteriores (menos, no começo). Sem `janela`, a fita é
        uma leitura só, e contam todos os tokens menos o primeiro. Com `janela`, lê-se como um
        Transformer lê: em pedaços vizinhos desse tamanho, e nenhum vê o pedaço de trás; contam
        todos os tokens dos pedaços inteiros, o primeiro de cada um sem contexto nenhum.
        """
        fita = np.asarray(fita, dtype=np.int64)
        n = self.ordem - 1
        if janela is None:
            pedacos, primeiro = fita[None], 1
        else:
            inteiros = len(fita) // janela * janela
            pedacos, primeiro = fita[:inteiros].reshape(-1, janela), 0  # -> (pedaços, janela)
        logs = []
        for i in range(primeiro, min(n, pedacos.shape[1])):  # o começo tem contexto mais curto
            logs.append(np.log(self.probabilidades(pedacos[:, :i], pedacos[:, i])))
        if pedacos.shape[1] > n:  # o resto tem o contexto inteiro
            cheias = np.lib.stride_tricks.sliding_window_view(pedacos, n + 1, axis=1)
            cheias = cheias.reshape(-1, n + 1)  # (pedaços, janela - n, n + 1) -> (tokens, n + 1)
            logs.append(np.log(self.probabilidades(cheias[:, :-1], cheias[:, -1])))
        return float(-np.concatenate(logs).mean())
