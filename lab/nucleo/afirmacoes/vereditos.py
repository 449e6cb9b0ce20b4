"""A conferência: cada afirmação das apostilas contra o que se mediu, e o veredito que sai disso."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from nucleo.afirmacoes.fichas import (
    ARQUIVO,
    CONFERE,
    EM_PARTE,
    LACUNA,
    NAO_CONFERE,
    NAO_MEDIDO,
    VEREDITOS,
    Afirmacao,
    julgar,
    preencher,
    ruim,
)
from nucleo.afirmacoes.medidas import GUARDADO, MEDIDAS, PUBLICADO, Contexto, Medida, NaoMedido
from nucleo.base.caderno import Conferencia, Quadro
from nucleo.base.unidades import inteiro

# Importar os módulos medidas_NN registra as medidas: uma apostila nova só precisa do arquivo dela.
for _arquivo in sorted(Path(__file__).parent.glob("medidas_[0-9][0-9].py")):
    import_module(f"nucleo.afirmacoes.{_arquivo.stem}")

SO_NO_GPT2 = "só o GPT-2 verdadeiro mede isto"


@dataclass(frozen=True)
class Conferida:
    """Uma afirmação com o que se mediu (None se não deu, e `motivo` diz por quê) e o veredito."""

    afirmacao: Afirmacao
    medida: Medida | None
    motivo: str = ""

    @property
    def valores(self) -> dict | None:
        return self.medida and self.medida.valores

    @property
    def veredito(self) -> str:
        return julgar(self.afirmacao, self.valores)

    @property
    def medido(self) -> str:
        """Os valores medidos, na ordem das regras, como se leem."""
        if self.medida is None:
            return "—"
        # Duas regras sobre o mesmo número não o repetem.
        textos = dict.fromkeys(p.medido(self.valores) for p in self.afirmacao.partes)
        return "; ".join(textos) or "—"

    @property
    def regra(self) -> str:
        """As regras, como se leem, com os valores a que se compara."""
        return "; ".join(p.em_palavras(self.valores) for p in self.afirmacao.partes) or "—"

    @property
    def frase(self) -> str:
        """Uma frase: o que se mediu, com os números; ou por que não se mediu."""
        sem_numeros = LACUNA.search(self.afirmacao.frase) is None
        if self.medida is None and not (self.afirmacao.hipotese and sem_numeros):
            return self.motivo[:1].upper() + self.motivo[1:] + "."
        return preencher(self.afirmacao.frase, self.valores or {})

    @property
    def certo(self) -> str:
        """O que dizer no lugar; vazio quando a afirmação confere ou não se mediu."""
        sem_numeros = self.valores is None and LACUNA.search(self.afirmacao.certo)
        if self.veredito in (CONFERE, NAO_MEDIDO) or sem_numeros:
            return ""
        return preencher(self.afirmacao.certo, self.valores or {})

    def como_resultado(self) -> dict:
        """Tudo o que outros programas (a página, a errata) precisam, menos id, valor e modelo."""
        a, m = self.afirmacao, self.medida
        return {
            "apostila": a.apostila, "na_apostila": a.lugar, "diz": a.diz, "como": a.como,
            "onde": a.onde, "medido": self.medido, "regra": self.regra, "valores": self.valores,
            "veredito": self.veredito, "frase": self.frase, "certo": self.certo,
            "origem": m.origem if m else None, "fonte": m.fonte if m else None, "ver": a.comando,
        }  # fmt: skip


def conferir(afirmacao: Afirmacao, ctx: Contexto) -> Conferida:
    """Mede e julga uma afirmação. Um defeito numa medida levanta; só `NaoMedido` é esperado.

    Levanta:
        ErroDoUsuario: as regras ou a frase usam um valor que a medida não devolve.
    """
    try:
        medida = _medir(afirmacao, ctx)
    except NaoMedido as motivo:
        return Conferida(afirmacao, None, str(motivo))
    if medida and (faltam := afirmacao.usa - set(medida.valores)):
        raise ruim(
            ARQUIVO,
            f"{afirmacao.id}: não se mede {_citar(faltam)}; há {_citar(medida.valores)}",
        )
    return Conferida(afirmacao, medida)


def _citar(nomes: Iterable[str]) -> str:
    return ", ".join(f"«{n}»" for n in sorted(nomes))


def _conferir_medidas(afirmacoes: Iterable[Afirmacao]) -> None:
    for a in afirmacoes:
        for nome in (a.medida, a.reserva):
            if nome and nome not in MEDIDAS:
                raise ruim(ARQUIVO, f"{a.id}: não há medida com o nome «{nome}»")


def _medir(a: Afirmacao, ctx: Contexto) -> Medida | None:
    if a.publicado:
        valores = {k: v for k, v in a.publicado.items() if k != "fonte"}
        return Medida(valores, "—", PUBLICADO, a.publicado["fonte"])
    if a.onde == "gpt2" and not ctx.e_o_gpt2:
        if a.reserva:
            return ctx.medir(a.reserva, {}, "gpt2")
        raise NaoMedido(SO_NO_GPT2)
    if a.resultados:
        try:
            return ctx.ler_resultados(a.resultados, a.onde, a.numeros)
        except NaoMedido:
            if not a.medida:  # sem conta barata que responda no lugar da lição
                raise
    return ctx.medir(a.medida, a.argumentos, a.onde) if a.medida else None


def conferir_todas(
    afirmacoes: Iterable[Afirmacao], ctx: Contexto, progresso: Callable = lambda *_: None
) -> list[Conferida]:
    """`conferir` em cada uma, na ordem; `progresso(o_que, feito, total)` acompanha.

    Levanta:
        ErroDoUsuario: uma afirmação pede uma medida que não existe (dito antes de medir), ou usa um
        valor que a sua medida não devolve.
    """
    afirmacoes, feitas = list(afirmacoes), []
    _conferir_medidas(afirmacoes)
    for n, a in enumerate(afirmacoes):
        progresso("conferindo as afirmações", n, len(afirmacoes))
        feitas.append(conferir(a, ctx))
    progresso("conferindo as afirmações", len(afirmacoes), len(afirmacoes))
    return feitas


# --- as tabelas --------------------------------------------------------------------------


def quadro(conferidas: list[Conferida], titulo: str) -> Quadro:
    """Uma linha por afirmação: quem, o que diz, o medido, o veredito, de quem e de onde."""
    linhas = [
        [f"{c.afirmacao.lugar}: {c.afirmacao.id}", c.afirmacao.diz, c.medido, c.veredito, _de_quem(c)]
        for c in conferidas
    ]  # fmt: skip
    colunas = ("onde: afirmação", "a original diz", "medido", "veredito", "de quem")
    return Quadro(titulo, dict.fromkeys(colunas, str), linhas)


def _de_quem(c: Conferida) -> str:
    if c.medida is None:
        return "—"
    quem = "" if c.medida.modelo == "—" else c.medida.modelo + ", "
    return quem + c.medida.origem


def tabela_inteira(conferidas: list[Conferida]) -> tuple[list[str], list[list]]:
    """(colunas, linhas) com todos os campos, para o CSV."""
    linhas = [{"id": c.afirmacao.id, **c.como_resultado()} for c in conferidas]
    for linha, c in zip(linhas, conferidas, strict=True):
        linha.pop("valores")
        linha["modelo"] = c.medida.modelo if c.medida else None
    return list(linhas[0]), [list(linha.values()) for linha in linhas]


def ficha(c: Conferida) -> Quadro:
    """Tudo sobre uma afirmação: o que diz, como se mede, o medido, a fonte e a regra."""
    r, a = c.como_resultado(), c.afirmacao
    linhas = [["onde está", a.lugar], ["a original diz", a.diz], ["como se mede", a.como]]
    if c.medida:
        linhas += [["medido", c.medido], ["modelo", c.medida.modelo]]
        linhas += [["de onde veio", f"{c.medida.origem}: {c.medida.fonte}"]]
    for p in a.partes:
        passa = "" if c.medida is None else " passa" if p.passa(c.valores) else " NÃO passa"
        linhas.append([f"regra: {p.valor}", p.em_palavras(c.valores) + passa])
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
    return sum(c.medida is not None and c.medida.origem in (PUBLICADO, GUARDADO) for c in conferidas)  # fmt: skip


def so_no_gpt2(conferidas: list[Conferida]) -> Quadro:
    """As linhas que só o GPT-2 verdadeiro mede, e o que se sabe delas hoje."""
    linhas = [
        [c.afirmacao.id, c.afirmacao.como, c.medido, c.medida.origem if c.medida else "nada ainda"]
        for c in conferidas
        if c.afirmacao.onde == "gpt2"
    ]
    colunas = ("afirmação", "o que ele mede", "hoje se sabe", "de onde")
    return Quadro("Só no GPT-2 verdadeiro", dict.fromkeys(colunas, str), linhas)


def mudancas(conferidas: list[Conferida], antes: dict) -> list[tuple[str, str, str]]:
    """[(id, veredito de antes, de agora)] das que mudaram desde um resultado guardado.

    Deixar de ser medida (ou passar a ser) não é mudar de veredito: depende do que há na máquina.
    """
    eram = {r["id"]: r["veredito"] for r in antes["resultados"] if "veredito" in r}
    return [
        (c.afirmacao.id, eram[c.afirmacao.id], c.veredito)
        for c in conferidas
        if eram.get(c.afirmacao.id, c.veredito) != c.veredito
        and NAO_MEDIDO not in (eram[c.afirmacao.id], c.veredito)
    ]


def conferir_mudancas(mudaram: list[tuple[str, str, str]]) -> list[Conferencia]:
    """As mudanças como conferências: uma por afirmação que mudou, ou uma só que diz que nenhuma."""
    if not mudaram:
        return [Conferencia("vereditos que mudaram desde a referência", 0)]
    return [Conferencia(f"{i}: era «{antes}», agora «{agora}»", 1) for i, antes, agora in mudaram]


def erradas(conferidas: list[Conferida]) -> list[Conferida]:
    """As que não conferem, ou só em parte."""
    return [c for c in conferidas if c.veredito in (EM_PARTE, NAO_CONFERE)]
