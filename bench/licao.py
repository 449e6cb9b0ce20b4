"""A lição 02 inteira (toda seção e figura) contra a listagem da apostila e contra o piso.

O piso é um processo que só importa torch, matplotlib, rich e tokenizers: o que qualquer versão desta
lição pagaria antes da primeira conta.

A lição entra duas vezes. Como um aluno a roda: o que só o transformers responde sobre o modelo ela
perguntou na primeira execução (aqui, a volta que não conta) e guardou. E com `--ao-vivo`, que
pergunta tudo outra vez: é o que custa a primeira execução de todas.
"""

import tempfile

import checkpoint
from comum import RAIZ, Assunto, alternar_processos

PISO = ["-c", "import torch, matplotlib, rich, tokenizers"]
LICAO, APOSTILA, SO_IMPORTS = "lição 02 inteira", "listagem da apostila", "piso: só os imports"
AO_VIVO = "lição 02 inteira, --ao-vivo"


def medir(rapido: bool = False) -> Assunto:
    """Tempo e pico de memória de cada um, um processo por execução."""
    pasta = str(checkpoint.small())
    with tempfile.TemporaryDirectory() as saida, tempfile.TemporaryDirectory() as respostas:
        licao = [str(RAIZ / "lab" / "02_embeddings.py"), "--modelo", pasta, "--saida", saida]
        comandos = {
            SO_IMPORTS: PISO,
            APOSTILA: [str(RAIZ / "bench" / "apostila.py"), pasta],
            LICAO: licao,
            AO_VIVO: [*licao, "--ao-vivo"],
        }
        # Começa sem lembrança nenhuma: as respostas usadas são as que esta mesma rodada guardou.
        ambiente = {"LAB_RESPOSTAS": respostas, "LAB_AO_VIVO": "0"}
        ambientes = dict.fromkeys((LICAO, AO_VIVO), ambiente)
        medidas = alternar_processos(comandos, 1 if rapido else 5, ambientes)
    a = Assunto("licao", "Lição 02 inteira contra a listagem da apostila", APOSTILA, medidas)
    a.criterio("lição 02: tempo / o da listagem", a.razao(LICAO, APOSTILA), 1.0)
    a.criterio("lição 02: pico de memória / o da listagem", a[LICAO].pico / a[APOSTILA].pico, 1.5)
    vivo = a[AO_VIVO]
    a.notas.append(
        f"com --ao-vivo (ou na primeira vez): {a.razao(AO_VIVO, APOSTILA):.2f} × o tempo da listagem e "
        f"{vivo.pico / a[APOSTILA].pico:.2f} × o pico"
    )
    a.notas.append(
        f"a listagem leva {a.razao(APOSTILA, SO_IMPORTS):.2f} × o piso; a lição, "
        f"{a.razao(LICAO, SO_IMPORTS):.2f} ×"
    )
    return a
