"""Checkpoints com a cara do GPT-2 e vetores plantados, para quem não tem os pesos verdadeiros.

`wte_plantada` e `wpe_plantada` nascem de números aleatórios e são ajustadas até ter as linhas,
as normas, os cossenos e a PCA que data/gpt2_medido publica: quem mede certo encontra o publicado,
quem mede outra coisa não. O arquivo sai com o cabeçalho do tamanho do verdadeiro (14.283 bytes),
que deixa todos os float32 fora do alinhamento de 4 bytes, como no hub.
"""

import json
import struct
from pathlib import Path

import numpy as np

RAIZ = Path(__file__).resolve().parents[1]
V, D, N_CTX = 50257, 768, 1024
CABECALHO_DO_VERDADEIRO = 14_283  # gpt2_fatos §4; os dados começam no byte 14.291
KING, MAN, WOMAN, QUEEN = " king", " man", " woman", " queen"


def fatos() -> dict:
    return json.loads((RAIZ / "data/gpt2_medido/fatos.json").read_text(encoding="utf-8"))


def ids_das_quatro() -> dict[str, int]:
    """Os ids pelo vocab.json cru, sem passar pelo tokenizador do laboratório."""
    vocab = json.loads((RAIZ / "data/gpt2_bpe/vocab.json").read_text(encoding="utf-8"))
    return {p: vocab["Ġ" + p.strip()] for p in (KING, MAN, WOMAN, QUEEN)}


# --- o arquivo ---------------------------------------------------------------------------


def formas_gpt2(
    n_layer: int, d: int, vocab: int = V, n_ctx: int = N_CTX, mascaras: bool = True, prefixo=""
) -> dict[str, tuple[int, ...]]:
    """{nome: forma} de todos os tensores do arquivo do GPT-2, com ou sem as máscaras attn.bias."""
    formas = {"wte.weight": (vocab, d), "wpe.weight": (n_ctx, d)}
    for n in range(n_layer):
        h = f"h.{n}."
        formas |= {h + "ln_1.weight": (d,), h + "ln_1.bias": (d,)}
        if mascaras:
            formas[h + "attn.bias"] = (1, 1, n_ctx, n_ctx)
        formas |= {
            h + "attn.c_attn.weight": (d, 3 * d),
            h + "attn.c_attn.bias": (3 * d,),
            h + "attn.c_proj.weight": (d, d),
            h + "attn.c_proj.bias": (d,),
            h + "ln_2.weight": (d,),
            h + "ln_2.bias": (d,),
            h + "mlp.c_fc.weight": (d, 4 * d),
            h + "mlp.c_fc.bias": (4 * d,),
            h + "mlp.c_proj.weight": (4 * d, d),
            h + "mlp.c_proj.bias": (d,),
        }
    formas |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    return {prefixo + nome: forma for nome, forma in formas.items()}


def cabecalho(
    formas: dict, tipo: str = "F32", largura: int = 4, tamanho: int | None = None
) -> tuple[bytes, dict[str, int], int]:
    """(cabeçalho com os 8 bytes, {nome: byte em que começa}, tamanho do arquivo).

    `tamanho` completa o JSON com espaços até esse número de bytes, como o formato permite.
    """
    entradas, fim = {"__metadata__": {"format": "pt"}}, 0
    for nome, forma in formas.items():
        n = largura * int(np.prod(forma, dtype=np.int64))
        entradas[nome] = {"dtype": tipo, "shape": list(forma), "data_offsets": [fim, fim + n]}
        fim += n
    bruto = json.dumps(entradas, separators=(",", ":")).encode()
    if tamanho is not None:
        assert len(bruto) <= tamanho
        bruto = bruto.ljust(tamanho)
    base = 8 + len(bruto)
    onde = {n: base + entradas[n]["data_offsets"][0] for n in formas}
    return struct.pack("<Q", len(bruto)) + bruto, onde, base + fim


def gravar(destino: Path, formas: dict, valores: dict, tamanho: int | None = None) -> Path:
    """Um safetensors F32. Quem não estiver em `valores` fica de zeros, num buraco que não ocupa
    disco: um arquivo de 548 MB custa o que tiver de números de verdade."""
    inicio, onde, total = cabecalho(formas, tamanho=tamanho)
    with destino.open("wb") as f:
        f.write(inicio)
        for nome, valor in valores.items():
            assert valor.shape == formas[nome] and valor.dtype == np.float32, nome
            f.seek(onde[nome])
            f.write(memoryview(np.ascontiguousarray(valor)).cast("B"))
        f.truncate(total)
    return destino


def pesos_pequenos(formas: dict, semente: int) -> dict[str, np.ndarray]:
    """Um valor para cada tensor, menos as tabelas: LayerNorm neutra, máscara, resto N(0, 0,02)."""
    sorteio, valores = np.random.default_rng(semente), {}
    for nome, forma in formas.items():
        if nome.endswith(("wte.weight", "wpe.weight", "lm_head.weight")):
            continue
        if ".ln_" in "." + nome:
            valor = np.ones(forma) if nome.endswith("weight") else np.zeros(forma)
        elif nome.endswith(".attn.bias"):
            valor = np.tril(np.ones(forma))
        else:
            valor = 0.02 * sorteio.standard_normal(forma, dtype=np.float32)
        valores[nome] = valor.astype(np.float32)
    return valores


def config_gpt2(n_layer: int, d: int, n_head: int, vocab: int = V, n_ctx: int = N_CTX, **mais):
    return {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": vocab,
        "n_positions": n_ctx, "n_ctx": n_ctx, "n_embd": d, "n_layer": n_layer, "n_head": n_head,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
    } | mais  # fmt: skip


def escrever_config(pasta: Path, config: dict) -> None:
    (pasta / "config.json").write_text(json.dumps(config), encoding="utf-8")


# --- as tabelas ----------------------------------------------------------------------------


def wte_plantada(semente: int = 11) -> np.ndarray:
    """(50257, 768) com as linhas publicadas, as normas, a anisotropia e a analogia do GPT-2."""
    medidas = {m["id"]: m["esperado"] for m in fatos()["medidas"]}
    sorteio = np.random.default_rng(semente)
    quatro, normas = ids_das_quatro(), _normas(medidas, sorteio)
    # cos médio c = cada linha unitária leva √c de uma direção comum e o resto ao acaso.
    comum = medidas["cosseno_medio"]
    x = sorteio.standard_normal((V, D), dtype=np.float32)
    x *= np.sqrt((1 - comum) / D, dtype=np.float32)
    eixo = np.zeros(D, dtype=np.float32)
    eixo[100] = 1  # longe das coordenadas publicadas e das usadas pela analogia
    x += np.sqrt(comum, dtype=np.float32) * eixo
    x *= (normas / np.sqrt(np.einsum("vd,vd->v", x, x)))[:, None].astype(np.float32)
    _plantar_analogia(x, quatro, normas, medidas)
    for v in fatos()["verificacoes"]:
        if v["tabela"] == "wte":
            x[v["linha"], v["de"] : v["de"] + len(v["valores"])] = v["valores"]
    _acertar_norma(x, 0, list(range(5)), normas[0])
    _acertar_norma(x, 50256, [0, 1, 2, 765, 766, 767], normas[50256])
    return x


def _normas(medidas: dict, sorteio) -> np.ndarray:
    # Mínimo e máximo em duas linhas; as outras, uma normal aparada e ajustada até média e desvio.
    n = np.clip(sorteio.standard_normal(V), -3.2, 3.2)
    livres = np.ones(V, dtype=bool)
    livres[[1000, 2000]] = False
    fixos = np.array([medidas["norma_minima"], medidas["norma_maxima"]])
    alvo_soma = medidas["norma_media"] * V - fixos.sum()
    alvo_quadrados = (medidas["norma_desvio"] ** 2 + medidas["norma_media"] ** 2) * V
    m = livres.sum()
    media = alvo_soma / m
    variancia = (alvo_quadrados - (fixos**2).sum()) / m - media**2
    z = n[livres]
    n[livres] = media + (z - z.mean()) / z.std() * np.sqrt(variancia)
    n[[1000, 2000]] = fixos
    return n


def _acertar_norma(x: np.ndarray, linha: int, fixas: list[int], norma: float) -> None:
    resto = np.setdiff1d(np.arange(D), fixas)
    falta = norma**2 - float(x[linha, fixas] @ x[linha, fixas])
    x[linha, resto] *= np.float32(np.sqrt(falta / float(x[linha, resto] @ x[linha, resto])))


def _plantar_analogia(x: np.ndarray, quatro: dict, normas: np.ndarray, medidas: dict) -> None:
    """king no eixo e1; woman − man = β·e2, perpendicular: cos(alvo, king) = ‖king‖/√(‖king‖²+β²).
    queen resolve cos(king, queen) e cos(alvo, queen) em e1, e2; o que sobra vai para e3."""
    e1, e2, e3, e4 = 200, 201, 202, 203
    k, m, w, q = (quatro[p] for p in (KING, MAN, WOMAN, QUEEN))
    c, s = medidas["analogia_king"], np.sqrt(1 - medidas["analogia_king"] ** 2)
    q1 = medidas["king_queen"]
    q2 = (medidas["analogia_queen"] - q1 * c) / s
    x[[k, m, w, q]] = 0
    x[k, e1] = normas[k]
    beta = normas[k] * s / c
    for linha, sinal in ((m, -1), (w, 1)):
        x[linha, e2] = sinal * beta / 2
        x[linha, e4] = np.sqrt(normas[linha] ** 2 - (beta / 2) ** 2)
    # man e woman têm normas diferentes: a diferença em e4 sobraria em woman − man.
    x[w, e4] = x[m, e4]
    x[q, [e1, e2, e3]] = normas[q] * np.array([q1, q2, np.sqrt(1 - q1**2 - q2**2)])


def wpe_plantada(semente: int = 12) -> np.ndarray:
    """(1024, 768): linha 0 publicada, e a variância explicada da PCA de 50 e de 200 linhas."""
    medidas = {m["id"]: m["esperado"] for m in fatos()["medidas"]}
    sorteio = np.random.default_rng(semente)
    angulo = np.arange(N_CTX) * 2 * np.pi / 120
    x = np.zeros((N_CTX, D))
    x[:, 300], x[:, 301] = np.cos(angulo), np.sin(angulo)
    ruido = sorteio.standard_normal((N_CTX, D))
    ruido[0, :10] = 0
    publicada = next(v for v in fatos()["verificacoes"] if v["id"] == "wpe_linha_0")["valores"]
    x[0, :10] = publicada
    # O ruído das primeiras 50 fixa a primeira razão; o das outras 150, a segunda.
    for ate, de, alvo in ((50, 0, medidas["pca_50"]), (200, 50, medidas["pca_200"])):
        escala = _bissecao(
            lambda e, ate=ate, de=de: _explicada(_com_ruido(x[:ate], ruido[:ate], de, e)), alvo
        )
        x[de:ate] += escala * ruido[de:ate]
    x[200:] += 0.01 * ruido[200:]
    return x.astype(np.float32)


def _com_ruido(x, ruido, de, escala):
    y = x.copy()
    y[de:] += escala * ruido[de:]
    return y


def _explicada(x: np.ndarray) -> float:
    # Pela matriz de Gram: os autovalores não nulos são os da covariância, e ela é pequena.
    c = x - x.mean(0)
    autovalores = np.linalg.eigvalsh(c @ c.T)
    return float(autovalores[-2:].sum() / autovalores.sum())


def _bissecao(f, alvo: float, menor: float = 0.0, maior: float = 0.2) -> float:
    assert f(menor) > alvo > f(maior), (f(menor), alvo, f(maior))
    for _ in range(22):
        meio = (menor + maior) / 2
        menor, maior = (meio, maior) if f(meio) > alvo else (menor, meio)
    return menor
