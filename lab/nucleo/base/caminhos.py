"""Onde as coisas moram: os dados que vêm no repositório e o cache que cada pessoa tem."""

import os
from pathlib import Path

RAIZ = Path(__file__).resolve().parents[3]
DADOS = RAIZ / "data"
# Onde as lições gravam, cada uma na sua pasta. `LAB_SAIDAS` muda o lugar de todas.
SAIDAS = Path(os.path.expanduser(os.environ.get("LAB_SAIDAS") or RAIZ / "outputs"))


def cache() -> Path:
    """A pasta dos modelos convertidos e dos pedaços baixados. `LAB_CACHE` muda o lugar.

    Fora do repositório de propósito: dois clones dividem a mesma conversão.
    """
    if escolhida := os.environ.get("LAB_CACHE"):
        # os.path deixa como está um ~alguém que não existe; Path levantaria RuntimeError.
        return Path(os.path.expanduser(escolhida))
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("lab-embeddings", appauthor=False))
