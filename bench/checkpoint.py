"""Os checkpoints do bench: com a forma do GPT-2 e números nossos, sempre os mesmos.

O small tem todos os números (548 MB): a lição o passa inteiro. Os quatro do assunto `crescimento`
têm o cabeçalho verdadeiro, as duas tabelas cheias e, no lugar dos blocos, BURACOS: o arquivo do XL diz
6,4 GB e ocupa 328 MB. Serve porque dos grandes a lição só lê wte e wpe; se um dia ela ler mais, são
zeros, e a coluna de bytes lidos acusa.

As tabelas vêm de tests/gpt2_plantado.py (normas, anisotropia e linhas publicadas do GPT-2); aqui se
acrescenta uma direção por categoria de analogia, para que acertar e errar existam de verdade. As palavras
são as do BPE verdadeiro (data/gpt2_bpe).
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np

import gpt2_plantado as plantado
from comum import RAIZ
from nucleo.modelos import fontes, listas
from nucleo.modelos.tamanhos import TAMANHOS

PASTA = Path(tempfile.gettempdir()) / "lab-embeddings-bench"
DESVIO = 0.9  # tamanho do deslocamento de uma categoria, em normas da primeira palavra
RUIDO = 0.55  # e o de cada par, que faz umas analogias errarem


def wte_com_analogias() -> np.ndarray:
    """(50257, 768): a tabela plantada, com as segundas palavras levadas na direção da categoria."""
    x = plantado.wte_plantada()
    normas = np.sqrt(np.einsum("vd,vd->v", x, x))
    perguntas = listas.analogias_do_google(fontes.tokenizador_gpt2())
    # As quatro da analogia publicada já têm lugar: ninguém mexe nelas.
    mexidas = set(plantado.ids_das_quatro().values())
    sorteio = np.random.default_rng(17)
    for categoria in range(len(perguntas.nomes)):
        ids = perguntas.ids[perguntas.categoria == categoria]
        direcao = _unitario(sorteio, x.shape[1])
        for de, para in np.unique(ids.reshape(-1, 2), axis=0):
            if de in mexidas or para in mexidas:
                continue
            mexidas.add(int(para))
            passo = DESVIO * direcao + RUIDO * _unitario(sorteio, x.shape[1])
            nova = x[de] + normas[de] * passo
            x[para] = nova * normas[para] / np.sqrt(nova @ nova)
    return x


def _unitario(sorteio, d: int) -> np.ndarray:
    v = sorteio.standard_normal(d, dtype=np.float32)
    return v / np.sqrt(v @ v)


def tabela_sorteada(linhas: int, d: int, semente: int = 5) -> np.ndarray:
    """(linhas, d): números quaisquer, do tamanho dos do GPT-2, com um lado preferido como os dele."""
    x = 0.14 * np.random.default_rng(semente).standard_normal((linhas, d), dtype=np.float32)
    x[:, 0] += 0.14 * (0.2691 * d) ** 0.5  # cosseno médio perto do publicado
    return x


def small() -> Path:
    """A pasta do small inteiro, construída na primeira vez: pesos, config e tokenizador."""
    return _uma_vez(PASTA / "gpt2", _construir_small)


def _construir_small(pasta: Path) -> None:
    formas = plantado.formas_gpt2(12, plantado.D)
    valores = plantado.pesos_pequenos(formas, semente=5)
    valores["wte.weight"], valores["wpe.weight"] = wte_com_analogias(), plantado.wpe_plantada()
    plantado.gravar(pasta / "model.safetensors", formas, valores, fora_do_alinhamento(formas))
    plantado.escrever_config(pasta, plantado.config_gpt2(12, plantado.D, 12))
    for nome in ("vocab.json", "merges.txt"):
        shutil.copy(RAIZ / "data" / "gpt2_bpe" / nome, pasta)


def fora_do_alinhamento(formas: dict) -> int:
    """O tamanho de cabeçalho que deixa os números num byte ≡ 3 (mod 4), como no arquivo do hub."""
    bruto = len(plantado.cabecalho(formas)[0]) - 8
    return bruto + (3 - bruto) % 4


def so_tabelas(nome: str) -> tuple[Path, Path]:
    """(LAB_CACHE, arquivo) de um tamanho: o arquivo inteiro, esparso, onde a lição procura tabelas.

    Todos entram pelo nome gpt2-xl: assim a lição os trata igual, lê as tabelas e avisa que não tem os
    blocos (o small, pelo nome dele, exigiria o modelo inteiro).
    """
    casa = _uma_vez(PASTA / f"tabelas-{nome}", lambda p: _construir_tabelas(p, nome))
    return casa, casa / "gpt2-tabelas" / "gpt2-xl.safetensors"


def _construir_tabelas(casa: Path, nome: str) -> None:
    t = TAMANHOS[nome]
    formas = plantado.formas_gpt2(t.n_layer, t.n_embd)
    valores = {
        n: tabela_sorteada(*formas[n], semente=i)
        for i, n in enumerate(("wte.weight", "wpe.weight"))
    }
    (casa / "gpt2-tabelas").mkdir()
    destino = casa / "gpt2-tabelas" / "gpt2-xl.safetensors"
    plantado.gravar(destino, formas, valores, fora_do_alinhamento(formas))


def _uma_vez(pasta: Path, construir) -> Path:
    # Constrói ao lado e troca o nome no fim: um bench interrompido não deixa meio checkpoint.
    if not pasta.is_dir():
        pasta.parent.mkdir(parents=True, exist_ok=True)
        trabalho = Path(tempfile.mkdtemp(prefix=".parcial-", dir=pasta.parent))
        try:
            construir(trabalho)
            trabalho.rename(pasta)
        finally:
            shutil.rmtree(trabalho, ignore_errors=True)
    return pasta


def limpar() -> None:
    """Apaga os checkpoints (uns 1,5 GB em disco)."""
    shutil.rmtree(PASTA, ignore_errors=True)
