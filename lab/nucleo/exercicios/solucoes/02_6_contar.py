"""Solução: a conta peça por peça, a mesma que se faz no quadro."""


def contar_parametros(V, n_ctx, d, camadas, amarrada):
    """Quantos parâmetros tem um GPT-2 com estas medidas, vieses incluídos.

    Recebe:
        V, n_ctx, d: tamanho do vocabulário, do contexto, e a largura.
        camadas: quantos blocos.
        amarrada: True se a cabeça de saída é a própria wte; False se é outra matriz V × d, sem viés.
    Devolve:
        um inteiro.

    >>> contar_parametros(10, 4, 2, 1, True)
    106
    """
    atencao = (d * 3 * d + 3 * d) + (d * d + d)  # c_attn e c_proj, com viés
    mlp = (d * 4 * d + 4 * d) + (4 * d * d + d)  # ida e volta, com viés
    normas = 2 * (2 * d)  # duas LayerNorm por bloco, ganho e viés
    total = V * d + n_ctx * d + camadas * (atencao + mlp + normas) + 2 * d
    return total if amarrada else total + V * d
