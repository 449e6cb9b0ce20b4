"""Os estados ocultos: o vetor de cada token depois de cada bloco, e a lente que os lê.

Camada 0 é a entrada (h₀); camada i, a saída do bloco i; a última já passou pela normalização
final, quando o modelo tem uma. É a mesma contagem de `output_hidden_states` no transformers.
"""

import numpy as np

from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import fontes, pontas
from nucleo.modelos.fontes import Modelo


def blocos(modelo: Modelo):
    """A lista de blocos do modelo inteiro (GPT-2: h; Llama: layers; BERT: encoder.layer)."""
    base = modelo.completo().base_model
    for caminho in ("layers", "h", "encoder.layer"):
        achado = base
        for nome in caminho.split("."):
            achado = getattr(achado, nome, None)
        if achado is not None:
            return achado
    raise ValueError(f"não sei onde moram os blocos de {modelo.nome} ({modelo.familia})")


def norma_final(modelo: Modelo):
    """A normalização depois do último bloco, ou None se o modelo não tem (BERT)."""
    base = modelo.completo().base_model
    return getattr(base, "norm", None) or getattr(base, "ln_f", None)


def estados(modelo: Modelo, frases: list[list[int]]) -> list[np.ndarray]:
    """De cada frase (n ids), os estados de todas as camadas: (camadas + 1, n, d) float32.

    As frases passam juntas, com enchimento à direita, e uma escuta na porta de cada bloco
    guarda o que entra nele. Nada é relido de `output_hidden_states`: é contra ele que os
    testes conferem. Erros: `ErroDoUsuario` para frase longa demais ou modelo sem os blocos.
    """
    import torch

    for ids in frases:
        pontas.posicoes(modelo, len(ids))
        limite = modelo.config.get("max_position_embeddings")
        if limite and len(ids) > limite:
            raise ErroDoUsuario(
                f"A frase tem {len(ids)} tokens, e {modelo.nome} foi treinado com até {limite}.",
                f"Ela começa com “{modelo.tokenizador.texto(ids[0]).strip()}…”.",
                f"Corte a frase em até {limite} tokens.",
            )
    base = modelo.completo().base_model
    lista, norma = blocos(modelo), norma_final(modelo)
    largura = max(map(len, frases))
    lote = torch.zeros(len(frases), largura, dtype=torch.long)  # (B, T)
    mascara = torch.zeros_like(lote)
    for i, ids in enumerate(frases):
        lote[i, : len(ids)] = torch.tensor(ids)
        mascara[i, : len(ids)] = 1
    vistos = []

    def na_entrada(_bloco, args, kwargs):
        vistos.append((args[0] if args else kwargs["hidden_states"]).numpy())  # (B, T, d)

    def na_saida(_modulo, _args, saida):
        vistos.append((saida[0] if isinstance(saida, tuple) else saida).numpy())

    escutas = [b.register_forward_pre_hook(na_entrada, with_kwargs=True) for b in lista]
    escutas.append((norma if norma is not None else lista[-1]).register_forward_hook(na_saida))
    try:
        with torch.no_grad():
            base(lote, attention_mask=mascara)
    finally:
        for escuta in escutas:
            escuta.remove()
    tudo = np.stack(vistos)  # (camadas + 1) × (B, T, d) -> (camadas + 1, B, T, d)
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
