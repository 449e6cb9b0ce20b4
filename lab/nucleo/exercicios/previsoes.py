"""Prever: entender o que se digitou, guardar com hora antes de medir, e dar o veredito."""

import itertools
import json
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path

from nucleo.base import arquivos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal, inteiro
from nucleo.exercicios.tipos import Medida, Pergunta

VERSAO = 1
MAIOR_TEXTO = 4_000  # caracteres de uma resposta livre
MAIOR_ARQUIVO = 1_000_000  # bytes de um arquivo de respostas

CERTA, PERTO, ERRADA, LIVRE = "acertou", "quase", "errou", "compare"


class NaoEntendi(ValueError):
    """O que se digitou não serve de resposta; a mensagem diz o que serve."""


# --- entender --------------------------------------------------------------------------

_VEZES = {"mil": 1e3, "milhão": 1e6, "milhões": 1e6, "milhao": 1e6, "milhoes": 1e6, "mi": 1e6,
          "bilhão": 1e9, "bilhões": 1e9, "bilhao": 1e9, "bilhoes": 1e9}  # fmt: skip


def ler_numero(texto: str, unidade: str = "") -> float:
    """Um número escrito por gente: '321,9', '321.9', '1.234,5', '38,6 milhões', '31 %', '3e4'.

    A vírgula é decimal. O ponto também, salvo quando separa grupos de três (“38.597.376”); um
    ponto só, seguido de três casas (“1.234”), pode ser as duas coisas, e é devolvido para esclarecer.
    Erros: `NaoEntendi`, com o que escrever.
    """
    limpo = texto.strip().replace("−", "-").replace("\u00a0", " ").casefold()
    achado = re.fullmatch(
        r"(?:=|≈|~|uns|cerca de)?\s*([-+]?[\d.,']*\d[\d.,']*(?:e[-+]?\d+)?)\s*([^\d]*)", limpo
    )
    if not achado:
        raise NaoEntendi("Preciso de um número, por exemplo 12 ou 3,5.")
    numero, resto = achado[1], achado[2].strip().strip(".")
    if resto and resto not in ("%", "x", unidade.casefold(), *_VEZES):
        outra = f" A unidade aqui é {unidade}." if unidade else " Aqui não há unidade."
        raise NaoEntendi(f"Não entendi “{resto[:30]}” depois do número.{outra}")
    return _desfazer(numero) * _VEZES.get(resto, 1.0)


def _desfazer(numero: str) -> float:
    mantissa, _, expoente = numero.partition("e")
    grupos = r"[-+]?\d{1,3}(%s\d{3})+"
    if "," in mantissa and "." in mantissa:
        # O último sinal é o decimal; o outro separa milhares.
        decimal_, milhar = (",", ".") if mantissa.rfind(",") > mantissa.rfind(".") else (".", ",")
        inteira = mantissa.split(decimal_)[0]
        if mantissa.count(decimal_) > 1 or not re.fullmatch(grupos % re.escape(milhar), inteira):
            raise NaoEntendi(f"Não entendi “{mantissa}”: escreva assim, 1234,5.")
        mantissa = mantissa.replace(milhar, "").replace(decimal_, ".")
    elif mantissa.count(".") > 1 or mantissa.count(",") > 1:
        sinal = "." if "." in mantissa else ","
        if not re.fullmatch(grupos % re.escape(sinal), mantissa):
            raise NaoEntendi(f"Não entendi “{mantissa}”: escreva assim, 1234567.")
        mantissa = mantissa.replace(sinal, "")
    elif re.fullmatch(r"[-+]?[1-9]\d{0,2}\.\d{3}", mantissa) and not expoente:
        junto, com_virgula = mantissa.replace(".", ""), mantissa.replace(".", ",")
        raise NaoEntendi(
            f"“{mantissa}” pode ser {junto} ou {com_virgula}. Escreva um dos dois, sem o ponto."
        )
    mantissa = mantissa.replace(",", ".").replace("'", "")
    try:
        valor = float(mantissa + ("e" + expoente if expoente else ""))
    except ValueError:
        raise NaoEntendi(f"Não entendi “{numero}” como número.") from None
    if math.isinf(valor):
        raise NaoEntendi("Esse número é grande demais.")
    return valor


def entender(pergunta: Pergunta, texto: str):
    """O que se digitou como resposta da pergunta: chave, número, lista de chaves ou texto.

    Erros: `NaoEntendi`, com uma frase gentil do que serve.
    """
    texto = texto.strip()
    if not texto:
        raise NaoEntendi("A resposta está vazia.")
    chaves = [o.chave for o in pergunta.opcoes]
    if pergunta.tipo == "escolha":
        limpo = texto.casefold().strip("()[]. ")
        por_texto = [o.chave for o in pergunta.opcoes if o.texto.casefold() == texto.casefold()]
        if limpo in chaves or por_texto:
            return limpo if limpo in chaves else por_texto[0]
        raise NaoEntendi(f"Escolha uma letra: {', '.join(chaves[:-1])} ou {chaves[-1]}.")
    if pergunta.tipo == "ordem":
        letras = re.findall(r"[a-z0-9]+", texto.casefold())
        if len(letras) == 1 and len(letras[0]) == len(chaves):
            letras = list(letras[0])
        if sorted(letras) != sorted(chaves):
            raise NaoEntendi(
                f"Escreva as {len(chaves)} letras na ordem, cada uma uma vez: {' '.join(chaves)}."
            )
        return letras
    if pergunta.tipo == "numero":
        return ler_numero(texto, pergunta.unidade)
    if len(texto) > MAIOR_TEXTO:
        raise NaoEntendi(
            f"Ficou longo demais ({inteiro(len(texto))} letras): resuma em até {inteiro(MAIOR_TEXTO)}."
        )
    return texto


# --- o veredito --------------------------------------------------------------------------


@dataclass(frozen=True)
class Resultado:
    """O que se mostra depois de medir: previsto · medido · veredito, e por quê."""

    previsto: str
    medido: str
    fonte: str
    veredito: str
    explicacao: str
    porque: str
    pontos: tuple[str, ...] = ()


def mostrar_previsto(pergunta: Pergunta, valor) -> str:
    """A resposta entendida, como se lê."""
    textos = {o.chave: o.texto for o in pergunta.opcoes}
    if pergunta.tipo == "escolha":
        return f"{valor}) {textos[valor]}"
    if pergunta.tipo == "ordem":
        return " > ".join(textos[k] for k in valor)
    if pergunta.tipo == "numero":
        n = (
            inteiro(valor)
            if valor == int(valor) and abs(valor) < 1e15
            else decimal(valor, max(pergunta.casas, 2))
        )
        if n.strip("−0,") == "" and valor:
            n = f"{valor:.2e}".replace(".", ",")
        return f"{n} {pergunta.unidade}".strip()
    return valor if len(valor) <= 200 else valor[:199] + "…"


def folga_de(pergunta: Pergunta, medido: float) -> float:
    """A que distância do medido um número ainda acerta: a tolerância relativa, ou a absoluta."""
    return max(pergunta.tolerancia * abs(medido), pergunta.absoluta)


def julgar(pergunta: Pergunta, valor, medida: Medida, bancada=None) -> Resultado:
    """O veredito de uma previsão entendida, contra o que se mediu, com a explicação dela."""
    previsto = mostrar_previsto(pergunta, valor)
    explicacoes = {o.chave: o.explicacao for o in pergunta.opcoes}
    veredito, explicacao, pontos = CERTA if valor == medida.valor else ERRADA, "", ()
    if pergunta.tipo == "escolha":
        explicacao = explicacoes[valor]
    elif pergunta.tipo == "ordem" and veredito == ERRADA:
        # De quem está fora do lugar, fala-se do primeiro.
        fora = [v for v, m in zip(valor, medida.valor, strict=True) if v != m]
        explicacao = explicacoes[fora[0]]
    elif pergunta.tipo == "numero":
        veredito, explicacao = _numero(pergunta, valor, medida.valor, bancada)
    elif pergunta.tipo == "texto":
        veredito, pontos = LIVRE, tuple(medida.valor)
    return Resultado(
        previsto, medida.texto, medida.fonte, veredito, explicacao, pergunta.porque, pontos
    )


def _numero(pergunta: Pergunta, valor: float, medido: float, bancada) -> tuple[str, str]:
    longe, folga = abs(valor - medido), folga_de(pergunta, medido)
    if longe <= folga:
        return CERTA, ""
    # A confusão mais próxima explica, se estiver perto de verdade (2 %, ou meia unidade).
    melhores = []
    for confusao in pergunta.confusoes:
        errado = float(confusao.valor(bancada))
        distancia = abs(valor - errado)
        if distancia <= max(0.02 * max(abs(errado), 1.0), pergunta.absoluta / 3):
            melhores.append((distancia, confusao.explicacao))
    if melhores:
        return ERRADA, min(melhores)[1]
    lado = "Ficou acima" if valor > medido else "Ficou abaixo"
    perto = PERTO if longe <= 3 * folga else ERRADA
    return perto, f"{lado} do medido. {pergunta.erro_geral}".strip()


# --- guardar ---------------------------------------------------------------------------


def agora() -> str:
    """A hora local, com fuso, até o segundo: '2026-11-30T06:12:09-03:00'."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


@dataclass
class Diario:
    """As previsões de uma apostila, num arquivo JSON que se grava inteiro ou não se grava.

    `respostas`: {id: {"texto", "quando", "medido", "veredito", "fonte"}}. Uma resposta guardada
    não se muda: primeiro se tranca a previsão, com a hora, e só depois se mede.
    """

    arquivo: Path
    apostila: int
    respostas: dict[str, dict]

    @classmethod
    def abrir(cls, pasta: Path, apostila: int) -> "Diario":
        """O diário da apostila em `pasta`, vazio se ainda não há.

        Erros: `ErroDoUsuario` se o arquivo existir e não se deixar ler.
        """
        arquivo = _do_diario(pasta, apostila)
        if not arquivo.exists():
            return cls(arquivo, apostila, {})
        try:
            if not arquivo.is_file():  # ler um FIFO esperaria para sempre
                raise ValueError("não é um arquivo comum")
            return cls(arquivo, apostila, ler_respostas(arquivo.read_text(encoding="utf-8")))
        except (OSError, ValueError) as erro:
            raise ErroDoUsuario(
                f"Não consegui ler as suas previsões em {arquivo}.",
                f"O arquivo está incompleto ou foi mexido à mão ({erro}).",
                "Guarde uma cópia e recomece:  --recomecar   (o arquivo antigo não é apagado)",
            ) from None

    def trancar(self, pergunta: Pergunta, texto: str) -> dict:
        """Guarda a previsão com a hora, no disco, antes de qualquer medida.

        Erros: `ValueError` se a pergunta já tem previsão; `ErroDoUsuario` se não deu para gravar.
        """
        self._juntar_com_o_disco()
        if pergunta.id in self.respostas:
            raise ValueError(f"a previsão de {pergunta.id} já está trancada")
        self.respostas[pergunta.id] = {"texto": texto, "quando": agora()}
        try:
            self.gravar()
        except ErroDoUsuario:
            del self.respostas[pergunta.id]
            raise
        return self.respostas[pergunta.id]

    def _juntar_com_o_disco(self) -> None:
        # Duas janelas abertas ao mesmo tempo: o que a outra já trancou vale, e não se perde.
        try:
            no_disco = ler_respostas(self.arquivo.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        for id_, resposta in no_disco.items():
            self.respostas.setdefault(id_, resposta)

    def anotar(self, pergunta: Pergunta, resultado: Resultado) -> None:
        """Põe o medido e o veredito ao lado da previsão, que não muda."""
        self.respostas[pergunta.id] |= {
            "medido": resultado.medido, "veredito": resultado.veredito,
            "fonte": resultado.fonte, "explicacao": resultado.explicacao, "medido_em": agora(),
        }  # fmt: skip
        self.gravar()

    def gravar(self) -> None:
        """Escreve tudo num arquivo novo e o põe no lugar do velho, de uma vez."""
        dados = {"versao": VERSAO, "apostila": self.apostila, "respostas": self.respostas}
        texto = json.dumps(dados, ensure_ascii=False, indent=1) + "\n"
        arquivos.gravar(self.arquivo, texto.encode("utf-8"), arquivos.OUTRA_PASTA)


def _do_diario(pasta: Path, apostila: int) -> Path:
    return pasta / f"{apostila:02d}_previsoes.json"


def recomecar(pasta: Path, apostila: int) -> Path | None:
    """Guarda o diário de lado, com a hora no nome, e devolve onde; None se não havia. Nada se apaga.

    Erros: `ErroDoUsuario` se ele estiver preso ou a pasta não aceitar.
    """
    arquivo = _do_diario(pasta, apostila)
    if not arquivo.exists():
        return None
    hora = time.strftime("%Y%m%d-%H%M%S")
    horas = itertools.chain([hora], (f"{hora}-{n}" for n in itertools.count(2)))
    nomes = (arquivo.with_name(f"{arquivo.stem}.{h}.json") for h in horas)
    guardado = next(p for p in nomes if not p.exists())
    try:
        arquivos.trocar(arquivo, guardado)
    except OSError as erro:
        raise arquivos.nao_gravou(pasta, erro) from None
    return guardado


def ler_respostas(texto: str) -> dict[str, dict]:
    """{id: resposta} de um arquivo de previsões ou de um arquivo de --respostas.

    Aceita o que o laboratório grava e, mais simples, {"id": "resposta"} ou {"id": número}.
    Erros: `ValueError` se não for nenhum dos dois.
    """
    if len(texto) > MAIOR_ARQUIVO:
        raise ValueError("o arquivo é grande demais para ser de respostas")
    dados = json.loads(texto)
    if not isinstance(dados, dict):
        raise ValueError("esperava um objeto JSON com as respostas")
    respostas = dados.get("respostas", dados)
    if not isinstance(respostas, dict):
        raise ValueError("“respostas” precisa ser um objeto JSON")
    lidas = {}
    for id_, r in respostas.items():
        if id_ == "LEIAME":
            continue
        if isinstance(r, dict):
            if not isinstance(r.get("texto"), str):
                raise ValueError(f"a resposta {id_!r} não tem texto")
            lidas[id_] = {str(k): str(v)[:MAIOR_TEXTO] for k, v in r.items()}
        elif isinstance(r, (str, int, float)) and not isinstance(r, bool):
            texto_ = r if isinstance(r, str) else f"{r!r}".replace(".", ",")
            lidas[id_] = {"texto": texto_[:MAIOR_TEXTO]}
        elif isinstance(r, list):
            lidas[id_] = {"texto": " ".join(map(str, r))[:MAIOR_TEXTO]}
        else:
            raise ValueError(f"a resposta {id_!r} não é texto nem número")
    return lidas
