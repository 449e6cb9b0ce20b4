"""A lição 02 inteira (toda seção e figura) contra a listagem da apostila e contra o piso.

O piso é um processo que só importa torch, matplotlib, rich e tokenizers: o que qualquer versão desta
lição pagaria antes da primeira conta. A lição pergunta tudo ao transformers a cada execução, num processo
ao lado (com dois núcleos); a memória dele conta no pico.
"""

import tempfile

import checkpoint
from comum import RAIZ, Assunto, alternar_processos

PISO = ["-c", "import torch, matplotlib, rich, tokenizers"]
LICAO, APOSTILA, SO_IMPORTS = "lição 02 inteira", "listagem da apostila", "piso: só os imports"


def medir(rapido: bool = False) -> Assunto:
    """Tempo e pico de memória de cada um, um processo por execução."""
    pasta = str(checkpoint.small())
    with tempfile.TemporaryDirectory() as saida:
        comandos = {
            SO_IMPORTS: PISO,
            APOSTILA: [str(RAIZ / "bench" / "apostila.py"), pasta],
            LICAO: [str(RAIZ / "lab" / "02_embeddings.py"), "--modelo", pasta, "--saida", saida],
        }
        medidas = alternar_processos(comandos, 1 if rapido else 5)
    a = Assunto("licao", "Lição 02 inteira contra a listagem da apostila", APOSTILA, medidas)
    a.criterio("lição 02: tempo / o da listagem", a.razao(LICAO, APOSTILA), 1.25)
    # A lição soma dois processos, cada um com as suas bibliotecas e o mesmo arquivo mapeado: o que se
    # promete é caber numa máquina modesta.
    a.criterio("lição 02: pico, com o processo ao lado", a[LICAO].pico / 1e9, 2.0, unidade="GB")
    a.notas.append(
        f"pico da lição, com o processo ao lado: {a[LICAO].pico / 1e6:.0f} MB (páginas dos dois "
        f"processos contam duas vezes); o da listagem, {a[APOSTILA].pico / 1e6:.0f} MB"
    )
    a.notas.append(
        f"a listagem leva {a.razao(APOSTILA, SO_IMPORTS):.2f} × o piso; a lição, "
        f"{a.razao(LICAO, SO_IMPORTS):.2f} ×"
    )
    return a
