"""As afirmações das apostilas, como estão em data/afirmacoes.toml, e os números como se leem numa frase.

Uma afirmação diz o que a apostila diz, como se mede e por que regras se julga. O veredito não está
no arquivo: sai das regras, aplicadas ao que se mediu (`vereditos.julgar`). O arquivo é nosso, e quem o confere
campo a campo é o teste (tests/test_conferir.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from nucleo.base import arquivos, caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import cientifico, decimal, inteiro, porcento

ARQUIVO = caminhos.DADOS / "afirmacoes.toml"

CONFERE, EM_PARTE, NAO_CONFERE = "confere", "confere em parte", "não confere"
HIPOTESE, NAO_MEDIDO = "hipótese", "não medido aqui"
VEREDITOS = (CONFERE, EM_PARTE, NAO_CONFERE, HIPOTESE, NAO_MEDIDO)


# --- números como se leem ----------------------------------------------------------------


def escrever(valor, formato: str = "") -> str:
    """Um valor medido como se lê: `formato` é "%", "e" (notação curta), o número de casas, ou nada."""
    if isinstance(valor, bool):
        return "sim" if valor else "não"
    if isinstance(valor, (list, tuple)):
        return ", ".join(escrever(v, formato) for v in valor)
    if not isinstance(valor, (int, float)):
        # O espaço da frente faz parte do token: só se vê entre aspas.
        return f"'{valor}'" if valor != valor.strip() else valor
    if formato == "%":
        return porcento(valor)
    if formato == "e" and abs(valor) < 0.01:
        return cientifico(valor)
    if formato == "e":
        formato = "3"  # a notação curta é para diferenças quase nulas
    if formato:
        return decimal(valor, int(formato))
    return inteiro(valor) if isinstance(valor, int) else decimal(valor)


LACUNA = re.compile(r"\{(\w+)(?::(%|e|\d))?\}")


def preencher(frase: str, valores: dict) -> str:
    """A frase com os números medidos no lugar de {nome} ou {nome:formato}."""
    return LACUNA.sub(lambda m: escrever(valores[m[1]], m[2] or ""), frase)


# --- a afirmação -------------------------------------------------------------------------


@dataclass(frozen=True)
class Parte:
    """Uma exigência sobre um valor medido. `esperado` é um valor; `contra`, o nome de outro medido.

    `regra` é uma das de `vereditos.REGRAS`.
    """

    valor: str
    regra: str
    esperado: object = None
    contra: str = ""
    tolerancia: float = 0.0
    formato: str = ""


@dataclass(frozen=True)
class Afirmacao:
    """Uma frase conferível de uma apostila, e como se confere.

    `resultados` são números que uma lição mede: {nome: {licao, id, de, campo}}. `medida` é o nome de
    uma função do `registro`, para o que nenhuma lição mede; os valores das duas se juntam. `reserva`
    é a que serve quando o modelo não está aqui (o publicado, ou o que medimos antes e guardamos).
    `publicado` são números de um artigo.
    """

    id: str
    apostila: int
    secao: str
    diz: str
    como: str
    onde: str
    frase: str
    ver: str
    partes: tuple[Parte, ...] = ()
    certo: str = ""
    medida: str = ""
    argumentos: dict = field(default_factory=dict)
    resultados: dict = field(default_factory=dict)
    reserva: str = ""
    publicado: dict = field(default_factory=dict)
    hipotese: bool = False
    cita: str = ""

    @property
    def lugar(self) -> str:
        """A apostila e a seção: «02 §5» ou «cap. 6.4»."""
        return f"{self.cita}{self.secao}"

    @property
    def comando(self) -> str:
        """O que digitar para ver: a lição e a seção."""
        licao, *resto = self.ver.split()
        return " ".join(["python", f"lab/{licao}.py", *resto])


# --- o arquivo ---------------------------------------------------------------------------


@cache
def _arquivo() -> dict:
    return arquivos.ler_toml(ARQUIVO)


def apostilas() -> dict[int, str]:
    """{número: título} das apostilas que têm afirmações, na ordem do arquivo."""
    return {int(n): a["titulo"] for n, a in _arquivo()["apostilas"].items()}


def ler() -> list[Afirmacao]:
    """As afirmações, na ordem do arquivo. Erros: `TypeError` se um campo falta ou sobra."""
    cita = {int(n): a["cita"] for n, a in _arquivo()["apostilas"].items()}
    return [
        Afirmacao(
            **a | {"partes": tuple(Parte(**p) for p in a.get("partes", ()))},
            cita=cita[a["apostila"]],
        )
        for a in _arquivo()["afirmacao"]
    ]


def escolher(afirmacoes: list[Afirmacao], id_: str) -> Afirmacao:
    """A afirmação com esse id.

    Levanta:
        ErroDoUsuario: não há; a mensagem sugere os mais parecidos.
    """
    import difflib

    for a in afirmacoes:
        if a.id == id_:
            return a
    perto = difflib.get_close_matches(id_, [a.id for a in afirmacoes], 3, 0.4)
    raise ErroDoUsuario(
        f"Não há afirmação com o id {id_!r}.",
        f"São {len(afirmacoes)}; a tabela da lição mostra todos os ids.",
        f"Quis dizer {', '.join(perto)}?" if perto else "Veja os ids:  python lab/99_conferir.py",
    )
