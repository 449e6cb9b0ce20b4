"""Quanto tempo leva ler um texto em Markdown: a prosa, as figuras, as linhas de tabela e de código."""

import re

PALAVRAS_POR_MINUTO = 180  # leitura de estudo, mais lenta que a de romance


SEGUNDOS_POR_FIGURA = 12  # figura ou diagrama


SEGUNDOS_POR_LINHA = 2  # linha de tabela, de código ou fórmula destacada


def sem_comentarios(markdown: str) -> str:
    """O Markdown como o leitor o vê: sem os comentários HTML, que é onde moram os blocos cog."""
    return re.sub(r"<!--.*?-->", "", markdown, flags=re.S)


def minutos_de_leitura(markdown: str) -> int:
    """Quantos minutos leva ler o texto, arredondados para cima; no mínimo 1.

    A prosa a `PALAVRAS_POR_MINUTO`; cada figura, linha de tabela e linha de código tem o seu tempo.
    """
    texto = sem_comentarios(markdown)
    figuras = len(re.findall(r"!\[[^\]]*\]\([^)]*\)", texto))
    texto = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", texto)
    blocos = re.findall(r"```.*?```", texto, re.S)
    figuras += sum(bloco.startswith("```mermaid") for bloco in blocos)
    linhas = sum(b.count("\n") for b in blocos if not b.startswith("```mermaid"))
    texto = re.sub(r"```.*?```", "", texto, flags=re.S)
    formulas = re.findall(r"\$\$.*?\$\$", texto, re.S)
    texto = re.sub(r"\$\$.*?\$\$", "", texto, flags=re.S)
    tabela_ = re.findall(r"^\|.*$", texto, re.M)
    texto = re.sub(r"^\|.*$", "", texto, flags=re.M)
    texto = re.sub(r"\]\([^)]*\)", "]", texto)  # o endereço do link não se lê
    palavras = len(re.findall(r"\w[\w'’-]*", texto))
    segundos = 60 * palavras / PALAVRAS_POR_MINUTO + SEGUNDOS_POR_FIGURA * figuras
    segundos += SEGUNDOS_POR_LINHA * (linhas + len(tabela_) + len(formulas))
    return max(1, -int(-segundos // 60))
