"""Os estados ocultos: o vetor de cada token depois de cada bloco, e a lente que os lê.

Camada 0 é a entrada (h₀); camada i, a saída do bloco i; a última já passou pela normalização
final, quando o modelo tem uma. É a contagem de `output_hidden_states` no transformers.
"""

import numpy as np

from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import pontas
from nucleo.modelos.fontes import Modelo

# O nome que cada família dá à normalização depois do último bloco.
_NORMAS = ("norm", "ln_f", "norm_f", "final_layer_norm", "final_layernorm", "layer_norm")


def norma_final(modelo: Modelo):
    """A normalização depois do último bloco, ou None se o modelo não tem (BERT)."""
    corpo = _corpo(modelo)
    return next((n for nome in _NORMAS if (n := getattr(corpo, nome, None)) is not None), None)


def _corpo(modelo: Modelo):
    # No OPT e no Gemma 3 que vê imagens, os blocos moram um andar abaixo.
    base = modelo.completo().base_model
    andares = (getattr(base, nome, None) for nome in ("decoder", "language_model"))
    return next((a for a in andares if a is not None), base)


def estados(modelo: Modelo, frases: list[list[int]]) -> list[np.ndarray]:
    """De cada frase (n ids), os estados de todas as camadas: (camadas + 1, n, d) float32.

    As frases passam juntas, com enchimento à direita, que a máscara esconde da atenção.
    Erros: `ErroDoUsuario` para frase longa demais, ou se as camadas têm larguras diferentes.
    """
    import torch

    limite = modelo.limite
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
    larguras = {h.shape[-1] for h in saida.hidden_states}
    if len(larguras) > 1:
        raise ErroDoUsuario(
            f"As camadas de {modelo.nome} não têm todas a mesma largura: {sorted(larguras)}.",
            "O último estado passa por uma projeção, e não há como compará-lo com os outros.",
            "Use outro modelo, por exemplo:  --modelo smollm2",
        )
    tudo = torch.stack(saida.hidden_states).numpy()  # -> (camadas + 1, B, T, d)
    return [tudo[:, i, : len(ids)] for i, ids in enumerate(frases)]


def tem_lente(modelo: Modelo) -> bool:
    """True se os estados podem ser lidos como tokens: modelo causal com cabeça de linguagem."""
    f = modelo.ficha
    # Com uma projeção na saída o último estado é mais estreito que os outros: a lente não serve.
    return f.conhecida and not f.codificador and modelo.cabeca != "ausente" and not f.projecao


def lente(modelo: Modelo, vetores: np.ndarray, ultima: bool) -> np.ndarray:
    """(m, d) -> (m, V): os logits que o modelo daria se parasse nesta camada.

    Normalização final, a matriz de saída e o que a família faz aos logits. `ultima` diz que os
    vetores já vêm normalizados.
    nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    import torch

    with torch.no_grad():
        x = torch.from_numpy(np.ascontiguousarray(vetores, dtype=np.float32))
        if not ultima and (norma := norma_final(modelo)) is not None:
            x = norma(x)  # (m, d)
        cabeca = modelo.completo().get_output_embeddings()
        return pontas.logits(modelo, cabeca(x).numpy())  # (m, d) @ (d, V) -> (m, V)
