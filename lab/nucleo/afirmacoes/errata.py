"""A errata das apostilas originais, escrita do que a conferência gravou.

Uma entrada por afirmação que não confere, confere em parte ou é hipótese: onde está, o que dizia, o
que medimos, o certo e o comando para ver.
"""

from __future__ import annotations

from nucleo.afirmacoes import guardados
from nucleo.afirmacoes.fichas import EM_PARTE, HIPOTESE, NAO_CONFERE, apostilas
from nucleo.afirmacoes.registro import GUARDADO, PUBLICADO

NA_ERRATA = (NAO_CONFERE, EM_PARTE, HIPOTESE)


def em_markdown(resultado: dict) -> str:
    """A errata em Markdown, de um resultado.json desta conferência: uma entrada por correção."""
    partes = []
    for n, titulo in apostilas().items():
        desta = [r for r in resultado["resultados"] if r.get("apostila") == n]
        entradas = [_entrada(r) for r in desta if r["veredito"] in NA_ERRATA]
        partes += [f"## {titulo}", *(entradas or ["Nada a corrigir."])]
    return "\n\n".join(partes) + "\n"


_DE_ONDE = {PUBLICADO: ", publicado", GUARDADO: ", medido por nós antes"}


def _entrada(r: dict) -> str:
    linhas = [f"- **Dizia:** {r['diz']}"]
    if r["valores"]:
        quem = "" if r["modelo"] == "—" else f" — {r['modelo']}{_DE_ONDE.get(r['origem'], '')}"
        linhas.append(f"- **Medimos:** {r['medido']}{quem}. {r['frase']}")
    else:
        linhas.append(f"- **O que se sabe:** {r['frase']}")
    if r["certo"]:
        linhas.append(f"- **O certo:** {r['certo']}")
    linhas.append(f"- **Como ver:** `{r['ver']}`")
    return f"### {r['na_apostila']} · {r['veredito']} · `{r['id']}`\n\n" + "\n".join(linhas)


def do_repositorio() -> str:
    """A errata da referência guardada do modelo mais perto do curso (GPT-2, SmolLM2, mini)."""
    for nome in ("gpt2", "smollm2", "mini"):
        if guardados.arquivo("99_conferir", nome).is_file():
            guardado = guardados.ler("99_conferir", nome)
            return f"Medido com o modelo **{nome}**.\n\n{em_markdown(guardado)}"
    raise FileNotFoundError("data/referencia não tem a 99_conferir de modelo nenhum")
