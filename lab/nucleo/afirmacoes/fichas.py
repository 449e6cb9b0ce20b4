"""As afirmações das duas apostilas: o arquivo data/afirmacoes.toml, lido e conferido campo a campo.

Uma afirmação diz o que a apostila diz, como se mede e por que regras se julga. O veredito não está
no arquivo: sai das regras, aplicadas ao que se mediu (`conferencia`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nucleo.base import caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import cientifico, decimal, inteiro, porcento

ARQUIVO = caminhos.DADOS / "afirmacoes.toml"

CONFERE, EM_PARTE, NAO_CONFERE = "confere", "confere em parte", "não confere"
HIPOTESE, NAO_MEDIDO = "hipótese", "não medido aqui"
VEREDITOS = (CONFERE, EM_PARTE, NAO_CONFERE, HIPOTESE, NAO_MEDIDO)

ONDE = {
    "nenhum": "sem modelo: contas, arquitetura e tokenizador",
    "qualquer": "no modelo de hoje",
    "com wpe": "no modelo de hoje, se ele tem wpe; senão, no mini",
    "gpt2": "só no GPT-2 verdadeiro",
}


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


# --- as regras ---------------------------------------------------------------------------


def _igual(medido, p: Parte, esperado) -> bool:
    # Em Python True == 1; aqui «sim» e 1 são respostas diferentes.
    return (type(medido) is bool) == (type(esperado) is bool) and medido == esperado


# Uma comparação com NaN é falsa, e um NaN nunca passa; "diferente" precisa dizê-lo.
REGRAS: dict[str, tuple[Callable, str]] = {
    "igual": (_igual, "= {e}"),
    "diferente": (lambda m, p, e: m == m and m != e, "≠ {e}"),
    "aproximado": (lambda m, p, e: abs(m - e) <= p.tolerancia, "{e} ± {t}"),
    "menor_que": (lambda m, p, e: m < e, "< {e}"),
    "maior_que": (lambda m, p, e: m > e, "> {e}"),
    "entre": (lambda m, p, e: e[0] <= m <= e[1], "de {e0} a {e1}"),
}


@dataclass(frozen=True)
class Parte:
    """Uma exigência sobre um valor medido. `esperado` é um valor; `contra`, o nome de outro medido."""

    valor: str
    regra: str
    esperado: object = None
    contra: str = ""
    tolerancia: float = 0.0
    formato: str = ""

    def passa(self, valores: dict) -> bool:
        """True se o valor medido obedece à regra. Erros: `KeyError` se ele não foi medido."""
        esperado = valores[self.contra] if self.contra else self.esperado
        return bool(REGRAS[self.regra][0](valores[self.valor], self, esperado))

    def medido(self, valores: dict) -> str:
        """O valor medido, como se lê."""
        return escrever(valores[self.valor], self.formato)

    def em_palavras(self, valores: dict | None = None) -> str:
        """A regra como se lê: «= 5», «0,310 ± 0,005», «< 0,100»."""
        e = self.esperado
        if self.contra:
            e = valores[self.contra] if valores else self.contra
        pares = e if self.regra == "entre" else (e, e)
        texto = REGRAS[self.regra][1].format(
            e=escrever(e, self.formato),
            e0=escrever(pares[0], self.formato),
            e1=escrever(pares[1], self.formato),
            t=self._folga(),
        )
        return texto + (f" ({self.contra})" if self.contra and valores else "")

    def _folga(self) -> str:
        # A tolerância pode ter mais casas que o valor: 0,0005 não vira 0,001.
        if self.formato:
            return escrever(self.tolerancia, self.formato)
        return f"{self.tolerancia:g}".replace(".", ",")


# --- a afirmação -------------------------------------------------------------------------


@dataclass(frozen=True)
class Afirmacao:
    """Uma frase conferível de uma apostila, e como se confere.

    `resultados` são números que uma lição já mede: {nome: {licao, id, de, campo}}. `medida` é o
    nome de uma função registrada em `medidas`; com as duas, a função responde se a lição ainda não
    rodou. `reserva` é a que serve quando o modelo não está
    aqui (o publicado, ou o que medimos antes e guardamos). `publicado` são números de um artigo.
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
    def usa(self) -> set[str]:
        """Os nomes dos valores medidos que as regras, a frase e o certo usam."""
        textos = LACUNA.findall(self.frase + self.certo)
        nas_partes = {n for p in self.partes for n in (p.valor, p.contra) if n}
        return nas_partes | {nome for nome, _ in textos}

    @property
    def numeros(self) -> set[str]:
        """Os nomes que uma regra compara como número; «igual» e «diferente» aceitam texto."""
        de_numero = [p for p in self.partes if p.regra not in ("igual", "diferente")]
        return {n for p in de_numero for n in (p.valor, p.contra) if n}

    @property
    def comando(self) -> str:
        """O que digitar para ver: a lição e a seção."""
        licao, *resto = self.ver.split()
        return " ".join(["python", f"lab/{licao}.py", *resto])


def julgar(afirmacao: Afirmacao, valores: dict | None) -> str:
    """O veredito: sai das regras e do que se mediu (None: não se mediu), e de mais nada."""
    if afirmacao.hipotese:
        return HIPOTESE
    if valores is None:
        return NAO_MEDIDO
    passam = [p.passa(valores) for p in afirmacao.partes]
    return CONFERE if all(passam) else EM_PARTE if any(passam) else NAO_CONFERE


# --- o arquivo ---------------------------------------------------------------------------

_TEXTOS = ("id", "secao", "diz", "como", "onde", "frase", "ver")
_CAMPOS = {*_TEXTOS, "apostila", "partes", "certo", "medida", "argumentos", "resultados", "reserva"}
_CAMPOS |= {"publicado", "hipotese", "cita"}
_TIPOS = {
    "partes": (list, "uma lista de regras"),
    "argumentos": (dict, "uma tabela { nome = valor }"),
    "resultados": (dict, "uma tabela { nome = { licao = …, id = … } }"),
    "publicado": (dict, "uma tabela com o número e a «fonte»"),
    "hipotese": (bool, "true ou false"),
    "medida": (str, "o nome de uma medida"),
    "certo": (str, "um texto"),
}


def apostilas(arquivo: Path = ARQUIVO) -> dict[int, str]:
    """{número: título} das apostilas que têm afirmações, na ordem do arquivo.

    Levanta:
        ErroDoUsuario: o arquivo falta, não é TOML, ou não diz que apostilas há.
    """
    lidas = _abrir(arquivo).get("apostilas")
    if not isinstance(lidas, dict) or not all(
        n.isdecimal() and isinstance(a, dict) and {"titulo", "cita"} == set(a)
        for n, a in lidas.items()
    ):
        raise ruim(arquivo, "cada apostila é uma tabela [apostilas.N] com «titulo» e «cita»")
    return {int(n): a["titulo"] for n, a in lidas.items()}


def _abrir(arquivo: Path) -> dict:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    try:
        return tomllib.loads(arquivo.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ruim(arquivo, "o arquivo não existe") from None
    except OSError as erro:  # virou uma pasta, ou não se deixa ler
        raise ruim(arquivo, f"não se deixa ler ({erro.strerror or erro})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as erro:
        raise ruim(arquivo, f"não é um TOML que se possa ler ({erro})") from None


def ler(arquivo: Path = ARQUIVO) -> list[Afirmacao]:
    """As afirmações, na ordem do arquivo.

    Levanta:
        ErroDoUsuario: o arquivo falta, não é TOML, ou uma afirmação tem campo que falta ou sobra.
    """
    dados = _abrir(arquivo)
    lidas = dados.get("afirmacao")
    if not isinstance(lidas, list) or not lidas:
        raise ruim(arquivo, "não há nenhuma [[afirmacao]]")
    ha = apostilas(arquivo)
    for n, a in enumerate(lidas, 1):
        if not isinstance(a, dict):
            raise ruim(arquivo, f"afirmação {n}: cada uma é um bloco [[afirmacao]], e veio {a!r}")
        if not isinstance(a.get("apostila"), int) or a["apostila"] not in ha:
            raise ruim(
                arquivo,
                f"afirmação {n} ({a.get('id', 'sem id')}): «apostila» é uma das de [apostilas]: "
                + ", ".join(map(str, ha)),
            )
    prontas = [
        _uma(a | {"cita": dados["apostilas"][str(a["apostila"])]["cita"]}, n, arquivo)
        for n, a in enumerate(lidas, 1)
    ]
    ids = [a.id for a in prontas]
    repetidos = sorted({i for i in ids if ids.count(i) > 1})
    if repetidos:
        raise ruim(arquivo, f"id repetido: {', '.join(repetidos)}")
    return prontas


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


def ruim(arquivo: Path, por_que: str) -> ErroDoUsuario:
    """O erro de um arquivo de afirmações que não se pode usar; `por_que` diz qual delas e o quê."""
    return ErroDoUsuario(
        f"Não consegui usar {arquivo.name}.",
        por_que + ".",
        f"Conserte {arquivo.name}, ou traga de volta o do repositório:  git checkout data/afirmacoes.toml",
    )


def _uma(dados: dict, n: int, arquivo: Path) -> Afirmacao:
    quem = f"afirmação {n} ({dados.get('id', 'sem id')})"
    if "veredito" in dados:
        raise ruim(arquivo, f"{quem}: o veredito não se escreve, sai das regras")
    if sobra := set(dados) - _CAMPOS:
        raise ruim(arquivo, f"{quem}: não conheço o campo {', '.join(sorted(sobra))}")
    for campo in _TEXTOS:
        if not isinstance(dados.get(campo), str) or not dados[campo].strip():
            raise ruim(arquivo, f"{quem}: falta «{campo}», ou não é um texto")
    for campo, (tipo, nome) in _TIPOS.items():
        if campo in dados and not isinstance(dados[campo], tipo):
            raise ruim(arquivo, f"{quem}: «{campo}» é {nome}")
    if dados["onde"] not in ONDE:
        raise ruim(arquivo, f"{quem}: «onde» é um destes: {', '.join(ONDE)}")
    hipotese = dados.get("hipotese", False)
    fontes = [c for c in ("medida", "resultados", "publicado") if dados.get(c)]
    sobram = len(fontes) > 1 and fontes != ["medida", "resultados"]
    if sobram or (not fontes and not hipotese):
        raise ruim(
            arquivo, f"{quem}: diga um entre «medida», «resultados» e «publicado» (veio {fontes})"
        )
    partes = tuple(_parte(p, quem, arquivo) for p in dados.get("partes", []))
    if not partes and not hipotese:
        raise ruim(arquivo, f"{quem}: faltam «partes», as regras do veredito")
    for nome, r in dados.get("resultados", {}).items():
        if not isinstance(r, dict) or not {"licao", "id"} <= set(r) <= {
            "licao",
            "id",
            "de",
            "campo",
            "opcoes",
        }:
            raise ruim(arquivo, f"{quem}: o resultado «{nome}» precisa de licao e id")
    if dados.get("publicado") and "fonte" not in dados["publicado"]:
        raise ruim(arquivo, f"{quem}: número publicado sem «fonte»")
    return Afirmacao(**(dados | {"partes": partes}))


def _parte(dados, quem: str, arquivo: Path) -> Parte:
    if not isinstance(dados, dict):
        raise ruim(arquivo, f"{quem}: cada parte é uma tabela {{ valor = …, regra = … }}")
    if sobra := set(dados) - set(Parte.__dataclass_fields__):
        raise ruim(arquivo, f"{quem}: uma parte tem «{', '.join(sorted(sobra))}», que não conheço")
    if not all(isinstance(dados.get(campo), str) for campo in ("valor", "regra")):
        raise ruim(arquivo, f"{quem}: cada parte diz «valor» e «regra»")
    tolerancia = dados.get("tolerancia", 0)
    if isinstance(tolerancia, bool) or not isinstance(tolerancia, int | float):
        raise ruim(arquivo, f"{quem}: «tolerancia» é um número")
    if dados["regra"] not in REGRAS:
        raise ruim(
            arquivo, f"{quem}: a regra «{dados['regra']}» não existe; há {', '.join(REGRAS)}"
        )
    if ("esperado" in dados) == ("contra" in dados):
        raise ruim(arquivo, f"{quem}: uma parte tem «esperado» ou «contra», e não os dois")
    if dados["regra"] == "aproximado" and not tolerancia > 0:
        raise ruim(arquivo, f"{quem}: a regra «aproximado» precisa de «tolerancia» maior que zero")
    esperado = dados.get("esperado")
    if dados["regra"] == "entre" and not (isinstance(esperado, list) and len(esperado) == 2):
        raise ruim(arquivo, f"{quem}: a regra «entre» espera dois números")
    if isinstance(esperado, float) and not math.isfinite(esperado):
        raise ruim(arquivo, f"{quem}: o esperado precisa ser um número finito")
    return Parte(**dados)
