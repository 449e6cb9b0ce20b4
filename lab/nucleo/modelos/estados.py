"""Os estados ocultos: o vetor de cada token depois de cada bloco, e a lente que os lê.

Camada 0 é a entrada (h₀); camada i, a saída do bloco i; a última já passou pela normalização
final, quando o modelo tem uma. É a contagem de `output_hidden_states` no transformers.
"""

import numpy as np

from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes
from nucleo.modelos.fontes import Modelo


def norma_final(modelo: Modelo):
    """A normalização depois do último bloco, ou None se o modelo não tem (BERT)."""
    base = modelo.completo().base_model
    return getattr(base, "norm", None) or getattr(base, "ln_f", None)


def estados(modelo: Modelo, frases: list[list[int]]) -> list[np.ndarray]:
    """De cada frase (n ids), os estados de todas as camadas: (camadas + 1, n, d) float32.

    As frases passam juntas, com enchimento à direita, que a máscara esconde da atenção.
    Erros: `ErroDoUsuario` para frase longa demais.
    """
    import torch

    limite = modelo.config.get("max_position_embeddings") or modelo.n_ctx
    for ids in frases:
        if limite and len(ids) > limite:
            raise ErroDoUsuario(
                f"A frase tem {len(ids)} tokens, e {modelo.nome} foi treinado com até {limite}.",
                f"Ela começa com “{modelo.tokenizador.texto(ids[0]).strip()}…”.",
                f"Corte a frase em até {limite} tokens.",
            )
    lote = torch.zeros(len(frases), max(map(len, frases)), dtype=torch.long)  # (B, T)
    mascara = torch.zeros_like(lote)
    for i, ids in enumerate(frases):
        lote[i, : len(ids)] = torch.tensor(ids)
        mascara[i, : len(ids)] = 1
    with torch.no_grad():
        base = modelo.completo().base_model
        saida = base(lote, attention_mask=mascara, output_hidden_states=True)
    tudo = torch.stack(saida.hidden_states).numpy()  # -> (camadas + 1, B, T, d)
    return [tudo[:, i, : len(ids)] for i, ids in enumerate(frases)]


def tem_lente(modelo: Modelo) -> bool:
    """True se os estados podem ser lidos como tokens: modelo causal com cabeça de linguagem."""
    return modelo.familia not in fontes.CODIFICADORES and modelo.cabeca != "ausente"


def lente(modelo: Modelo, vetores: np.ndarray, ultima: bool) -> np.ndarray:
    """(m, d) -> (m, V): os logits que o modelo daria se parasse nesta camada.

    Normalização final e a matriz de saída. `ultima` diz que os vetores já vêm normalizados.
    nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    import torch

    with torch.no_grad():
        x = torch.from_numpy(np.ascontiguousarray(vetores, dtype=np.float32))
        if not ultima:
            x = norma_final(modelo)(x)  # (m, d)
        cabeca = modelo.completo().get_output_embeddings()
        return cabeca(x).numpy()  # (m, d) @ (d, V) -> (m, V)
