"""Desenha em SVG os diagramas mermaid das apostilas. Só para quem mantém.

O SVG fica guardado em apostilas/figuras, e a página das apostilas o mostra sem script nenhum.
Rode depois de mexer num diagrama (um teste avisa se alguém esqueceu).

Como rodar:    python apostilas/diagramas.py
Precisa de:    python -m pip install -r requirements-dev.txt   (o mermaidx)
"""

import sys
from pathlib import Path

AQUI = Path(__file__).resolve().parent
sys.path.insert(0, str(AQUI.parent / "lab"))

from nucleo.paginas import diagramas  # noqa: E402


def desenhar(fonte: str) -> str:
    """O SVG de um fonte mermaid, já limpo (o mermaid de verdade, sem navegador)."""
    import mermaidx

    desenho = mermaidx.render(fonte, config=diagramas.CONFIGURACAO)
    svg = desenho.svg() if callable(desenho.svg) else desenho.svg
    return diagramas.limpar(svg, fonte)


def principal() -> int:
    novos, sobras = diagramas.faltam(AQUI)
    (AQUI / "figuras").mkdir(exist_ok=True)
    for nome, fonte in novos.items():
        (AQUI / "figuras" / nome).write_text(desenhar(fonte) + "\n", encoding="utf-8", newline="\n")
        print(f"desenhado: apostilas/figuras/{nome}")
    for velho in sobras:
        velho.unlink()
        print(f"retirado:  apostilas/figuras/{velho.name}")
    if not novos and not sobras:
        print("Todo diagrama já tem o seu desenho.")
    return 0


if __name__ == "__main__":
    raise SystemExit(principal())
