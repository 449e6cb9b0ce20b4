"""A lição 02 inteira (toda seção e figura) contra a listagem da apostila e contra o piso.

O piso é um processo que só importa torch, matplotlib, rich e tokenizers: o que qualquer versão desta
lição pagaria antes da primeira conta.
"""

import tempfile

import checkpoint
from comum import RAIZ, Assunto, alternar_processos

PISO = ["-c", "import torch, matplotlib, rich, tokenizers"]
LICAO, APOSTILA, SO_IMPORTS = "lição 02 inteira", "listagem da apostila", "piso: só os imports"


def medir(rapido: bool = False) -> Assunto:
    """Tempo e pico de memória dos três, um processo por execução."""
    pasta = str(checkpoint.small())
    with tempfile.TemporaryDirectory() as saida:
        comandos = {
            SO_IMPORTS: PISO,
            APOSTILA: [str(RAIZ / "bench" / "apostila.py"), pasta],
            LICAO: [str(RAIZ / "lab" / "02_embeddings.py"), "--modelo", pasta, "--saida", saida],
        }
        medidas = alternar_processos(comandos, 1 if rapido else 3)
    a = Assunto("licao", "Lição 02 inteira contra a listagem da apostila", APOSTILA, medidas)
    a.criterio("lição 02: tempo / o da listagem", a.razao(LICAO, APOSTILA), 1.0)
    a.criterio("lição 02: pico de memória / o da listagem", a[LICAO].pico / a[APOSTILA].pico, 1.5)
    a.notas.append(
        f"a listagem leva {a.razao(APOSTILA, SO_IMPORTS):.2f} × o piso; a lição, "
        f"{a.razao(LICAO, SO_IMPORTS):.2f} ×"
    )
    return a
