"""As tabelas da conferência: as afirmações, uma por inteiro, o resumo, e o que só o GPT-2 mede."""

from __future__ import annotations

from collections import Counter

from nucleo.afirmacoes.fichas import VEREDITOS
from nucleo.afirmacoes.registro import GUARDADO, PUBLICADO
from nucleo.afirmacoes.vereditos import Conferida, em_palavras, passa
from nucleo.base.caderno import Quadro
from nucleo.base.unidades import inteiro


def quadro(conferidas: list[Conferida], titulo: str) -> Quadro:
    """Uma linha por afirmação: quem, o que diz, o medido, o veredito, de quem e de onde."""
    linhas = [
        [f"{c.afirmacao.lugar}: {c.afirmacao.id}", c.afirmacao.diz, c.medido, c.veredito, _de_quem(c)]
        for c in conferidas
    ]  # fmt: skip
    colunas = ("onde: afirmação", "a original diz", "medido", "veredito", "de quem")
    return Quadro(titulo, dict.fromkeys(colunas, str), linhas)


def _de_quem(c: Conferida) -> str:
    if c.achado is None:
        return "—"
    quem = "" if c.achado.modelo == "—" else c.achado.modelo + ", "
    return quem + c.achado.origem


def tabela_inteira(conferidas: list[Conferida]) -> tuple[list[str], list[list]]:
    """(colunas, linhas) com todos os campos, para o CSV."""
    linhas = []
    for c in conferidas:
        linha = {"id": c.afirmacao.id, **c.como_resultado()}
        del linha["valores"]
        linhas.append(linha | {"modelo": c.achado.modelo if c.achado else None})
    return list(linhas[0]), [list(linha.values()) for linha in linhas]


def ficha(c: Conferida) -> Quadro:
    """Tudo sobre uma afirmação: o que diz, como se mede, o medido, a fonte e a regra."""
    r, a = c.como_resultado(), c.afirmacao
    linhas = [["onde está", a.lugar], ["a original diz", a.diz], ["como se mede", a.como]]
    if c.achado:
        linhas += [["medido", c.medido], ["modelo", c.achado.modelo]]
        linhas += [["de onde veio", f"{c.achado.origem}: {c.achado.fonte}"]]
    for p in a.partes:
        e = "" if c.achado is None else " passa" if passa(p, c.valores) else " NÃO passa"
        linhas.append([f"regra: {p.valor}", em_palavras(p, c.valores) + e])
    linhas += [["veredito", c.veredito], ["em uma frase", c.frase]]
    if c.certo:
        linhas.append(["o certo", c.certo])
    linhas.append(["para ver", r["ver"]])
    return Quadro(a.id, {"o que": str, "resposta": str}, linhas)


def contagem(conferidas: list[Conferida]) -> Quadro:
    """Quantas afirmações de cada apostila tiveram cada veredito."""
    conta = Counter((c.veredito, c.afirmacao.apostila) for c in conferidas)
    de = sorted({c.afirmacao.apostila for c in conferidas})
    por_veredito = [[conta[v, n] for n in de] for v in VEREDITOS]
    linhas = [[v, *x, sum(x)] for v, x in zip(VEREDITOS, por_veredito, strict=True)]
    linhas.append(["todas", *(sum(x) for x in zip(*(y[1:] for y in linhas), strict=True))])
    colunas = dict.fromkeys([*(f"apostila {n:02d}" for n in de), "ao todo"], inteiro)
    return Quadro("Vereditos", {"veredito": str} | colunas, linhas)


def nao_medidos_aqui(conferidas: list[Conferida]) -> int:
    """Quantos vereditos saem de número publicado, ou que medimos antes no GPT-2 verdadeiro."""
    return sum(c.achado is not None and c.achado.origem in (PUBLICADO, GUARDADO) for c in conferidas)  # fmt: skip


def so_no_gpt2(conferidas: list[Conferida]) -> Quadro:
    """As linhas que só o GPT-2 verdadeiro mede, e o que se sabe delas hoje."""
    linhas = [
        [c.afirmacao.id, c.afirmacao.como, c.medido, c.achado.origem if c.achado else "nada ainda"]
        for c in conferidas
        if c.afirmacao.onde == "gpt2"
    ]
    colunas = ("afirmação", "o que ele mede", "hoje se sabe", "de onde")
    return Quadro("Só no GPT-2 verdadeiro", dict.fromkeys(colunas, str), linhas)
