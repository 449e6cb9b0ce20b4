"""O veredito de cada afirmação: as regras, aplicadas ao que se mediu, e de mais nada (`julgar`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from nucleo.afirmacoes.das_licoes import NaoMedido
from nucleo.afirmacoes.fichas import (
    CONFERE,
    EM_PARTE,
    HIPOTESE,
    LACUNA,
    NAO_CONFERE,
    NAO_MEDIDO,
    Afirmacao,
    Parte,
    escrever,
    preencher,
)
from nucleo.afirmacoes.registro import PUBLICADO, Achado, Contexto, juntar
from nucleo.base.caderno import Conferencia

# Importar os módulos medidas_NN registra as medidas: uma apostila nova só precisa do arquivo dela.
for _arquivo in sorted(Path(__file__).parent.glob("medidas_[0-9][0-9].py")):
    import_module(f"nucleo.afirmacoes.{_arquivo.stem}")


# --- as regras ---------------------------------------------------------------------------


def _igual(medido, p: Parte, esperado) -> bool:
    # Em Python True == 1; aqui «sim» e 1 são respostas diferentes.
    return (type(medido) is bool) == (type(esperado) is bool) and medido == esperado


# Uma comparação com NaN é falsa, e um NaN nunca passa; "diferente" precisa dizê-lo.
REGRAS: dict[str, tuple[Callable, str]] = {
    "igual": (_igual, "= {}"),
    "diferente": (lambda m, p, e: m == m and m != e, "≠ {}"),
    "aproximado": (lambda m, p, e: abs(m - e) <= p.tolerancia, "{} ± {t}"),
    "menor_que": (lambda m, p, e: m < e, "< {}"),
    "maior_que": (lambda m, p, e: m > e, "> {}"),
    "bem_maior_que": (lambda m, p, e: m - e > p.tolerancia, "> {} + {t}"),
    "entre": (lambda m, p, e: e[0] <= m <= e[1], "de {} a {}"),
}


def passa(p: Parte, valores: dict) -> bool:
    """True se o valor medido obedece à regra. Erros: `KeyError` se ele não foi medido."""
    esperado = valores[p.contra] if p.contra else p.esperado
    return bool(REGRAS[p.regra][0](valores[p.valor], p, esperado))


def em_palavras(p: Parte, valores: dict | None = None) -> str:
    """A regra como se lê: «= 5», «0,310 ± 0,005», «< 0,100»."""
    e = p.esperado
    if p.contra:
        e = valores[p.contra] if valores else p.contra
    esperados = [escrever(x, p.formato) for x in (e if p.regra == "entre" else [e])]
    # A tolerância pode ter mais casas que o valor: 0,0005 não vira 0,001.
    folga = (
        escrever(p.tolerancia, p.formato) if p.formato else f"{p.tolerancia:g}".replace(".", ",")
    )
    texto = REGRAS[p.regra][1].format(*esperados, t=folga)
    return texto + (f" ({p.contra})" if p.contra and valores else "")


def julgar(afirmacao: Afirmacao, valores: dict | None) -> str:
    """O veredito: sai das regras e do que se mediu (None: não se mediu), e de mais nada."""
    if afirmacao.hipotese:
        return HIPOTESE
    if valores is None:
        return NAO_MEDIDO
    passam = [passa(p, valores) for p in afirmacao.partes]
    return CONFERE if all(passam) else EM_PARTE if any(passam) else NAO_CONFERE


# --- medir e julgar ----------------------------------------------------------------------


@dataclass(frozen=True)
class Conferida:
    """Uma afirmação com o que se mediu (None se não deu, e `motivo` diz por quê) e o veredito."""

    afirmacao: Afirmacao
    achado: Achado | None
    motivo: str = ""

    @property
    def valores(self) -> dict | None:
        return self.achado and self.achado.valores

    @property
    def veredito(self) -> str:
        return julgar(self.afirmacao, self.valores)

    @property
    def medido(self) -> str:
        """Os valores medidos, na ordem das regras, como se leem."""
        if self.achado is None:
            return "—"
        # Duas regras sobre o mesmo número não o repetem.
        textos = dict.fromkeys(
            escrever(self.valores[p.valor], p.formato) for p in self.afirmacao.partes
        )
        return "; ".join(textos) or "—"

    @property
    def regra(self) -> str:
        """As regras, como se leem, com os valores a que se compara."""
        return "; ".join(em_palavras(p, self.valores) for p in self.afirmacao.partes) or "—"

    @property
    def frase(self) -> str:
        """Uma frase: o que se mediu, com os números; ou por que não se mediu."""
        sem_numeros = LACUNA.search(self.afirmacao.frase) is None
        if self.achado is None and not (self.afirmacao.hipotese and sem_numeros):
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
        a, m = self.afirmacao, self.achado
        return {
            "apostila": a.apostila, "na_apostila": a.lugar, "diz": a.diz, "como": a.como,
            "onde": a.onde, "medido": self.medido, "regra": self.regra, "valores": self.valores,
            "veredito": self.veredito, "frase": self.frase, "certo": self.certo,
            "origem": m.origem if m else None, "fonte": m.fonte if m else None, "ver": a.comando,
        }  # fmt: skip


def conferir(afirmacao: Afirmacao, ctx: Contexto) -> Conferida:
    """Mede e julga uma afirmação. Um defeito numa medida levanta; só `NaoMedido` é esperado."""
    try:
        return Conferida(afirmacao, _medir(afirmacao, ctx))
    except NaoMedido as motivo:
        return Conferida(afirmacao, None, str(motivo))


def _medir(a: Afirmacao, ctx: Contexto) -> Achado | None:
    if a.publicado:
        valores = {k: v for k, v in a.publicado.items() if k != "fonte"}
        return Achado(valores, "—", PUBLICADO, a.publicado["fonte"])
    if a.onde == "gpt2" and not ctx.e_o_gpt2:
        if a.reserva:
            return ctx.medir(a.reserva, {}, "gpt2")
        raise NaoMedido("só o GPT-2 verdadeiro mede isto")
    achados = [ctx.ler_resultados(a.resultados, a.onde)] if a.resultados else []
    if a.medida:
        achados.append(ctx.medir(a.medida, a.argumentos, a.onde))
    return juntar(achados) if achados else None


def conferir_todas(
    afirmacoes: list[Afirmacao], ctx: Contexto, progresso: Callable = lambda *_: None
) -> list[Conferida]:
    """`conferir` em cada uma, na ordem; `progresso(o_que, feito, total)` acompanha."""
    feitas = []
    for n, a in enumerate(afirmacoes):
        progresso("conferindo as afirmações", n, len(afirmacoes))
        feitas.append(conferir(a, ctx))
    progresso("conferindo as afirmações", len(afirmacoes), len(afirmacoes))
    return feitas


def erradas(conferidas: list[Conferida]) -> list[Conferida]:
    """As que não conferem, ou só em parte."""
    return [c for c in conferidas if c.veredito in (EM_PARTE, NAO_CONFERE)]


# --- o que mudou desde a referência ---


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
