"""De onde vêm os números que julgam as afirmações: as funções registradas e os resultados das lições.

Cada medida diz de quem é o número (o modelo) e de onde ele veio: medido agora, lido de outputs/, da
referência guardada, medido antes por nós num modelo que não está aqui, ou publicado por outros.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nucleo.afirmacoes import guardados
from nucleo.base import caminhos, resultado
from nucleo.modelos import gpt2_medido
from nucleo.modelos.fontes import Modelo

AGORA, OUTPUTS, REFERENCIA = "agora", "outputs", "referência"
GUARDADO, PUBLICADO = "guardado", "publicado"
ORIGENS = {
    AGORA: "medido nesta execução",
    OUTPUTS: "lido da última execução da lição, em outputs/",
    REFERENCIA: "lido de data/referencia, uma execução guardada da lição",
    GUARDADO: "medido por nós no GPT-2 verdadeiro e guardado em data/gpt2_medido",
    PUBLICADO: "publicado por outros; não foi medido aqui",
}


class NaoMedido(Exception):
    """A medida não se aplica a este modelo, ou ninguém a fez ainda. `str` diz por quê."""


@dataclass(frozen=True)
class Medida:
    """Números com nome, o modelo em que se mediram, de onde vieram e a fonte em palavras."""

    valores: dict
    modelo: str
    origem: str
    fonte: str


@dataclass(frozen=True)
class _Registrada:
    funcao: Callable
    modelo: str
    origem: str
    fonte: str = ""


MEDIDAS: dict[str, _Registrada] = {}


def medida(modelo: str = "", origem: str = AGORA, fonte: str = "data/gpt2_medido/fatos.json"):
    """Registra uma função de medida: recebe o `Contexto` e os argumentos, devolve {nome: valor}.

    `modelo` é de quem é o número quando não é o modelo de hoje ("gpt2, arquitetura"). A função
    levanta `NaoMedido` quando o modelo não serve. `fonte` é a do número guardado ou publicado.
    """

    def registrar(funcao):
        if funcao.__name__ in MEDIDAS:
            raise ValueError(f"medida repetida: {funcao.__name__}")
        MEDIDAS[funcao.__name__] = _Registrada(funcao, modelo, origem, fonte)
        return funcao

    return registrar


# --- os resultados das lições ------------------------------------------------------------

# Opções que não mudam o que a lição mede: com qualquer outra, o resultado é de outra medida.
_INOFENSIVAS = {"--modelo": 1, "--saida": 1, "--sem-graficos": 0, "--codigo": 0}


def mesmas_medidas(comando: str, permitidas: tuple[str, ...] = ()) -> bool:
    """True se o comando gravado no resultado.json rodou a lição inteira, com as medidas padrão."""
    try:
        opcoes = shlex.split(comando)[2:]
    except ValueError:
        return False
    while opcoes:
        nome, _, colado = opcoes.pop(0).partition("=")
        if nome in permitidas:
            quantos = 1
        elif nome in _INOFENSIVAS:
            quantos = _INOFENSIVAS[nome]
        else:
            return False
        del opcoes[: 0 if colado else quantos]
    return True


class Resultados:
    """O que as lições já mediram: primeiro em `saidas` (None: não olha), depois nas referências."""

    def __init__(
        self, modelo: str, saidas: Path | None = caminhos.SAIDAS, guardadas: Path = guardados.PASTA
    ):
        self._modelo, self._saidas, self._guardadas = modelo, saidas, guardadas
        self._lidos: dict[Path, dict | None] = {}

    def _ler(self, arquivo: Path) -> dict | None:
        if arquivo not in self._lidos:
            # None: falta, ficou pela metade ou foi mexido à mão; a próxima fonte responde.
            self._lidos[arquivo] = resultado.ler(arquivo)
        return self._lidos[arquivo]

    def _fontes(self, licao: str):
        if self._saidas is not None:
            yield OUTPUTS, self._saidas / licao / "resultado.json"
        # A referência do modelo de hoje; as outras servem ao que não depende do modelo.
        nomes = [self._modelo]
        if self._guardadas.is_dir():
            # As que começam por ponto são cópias de segurança (lab/manutencao/referencia.py), e não modelos.
            ha = (p.name for p in self._guardadas.iterdir() if not p.name.startswith("."))
            nomes += sorted(n for n in ha if n != self._modelo)
        for nome in nomes:
            yield REFERENCIA, guardados.arquivo(licao, nome, self._guardadas)

    def procurar(
        self, licao: str, ids: str | list[str], dono: str | None, campo="valor", opcoes=(),
        numero=False,
    ) -> tuple[object, str, str]:  # fmt: skip
        """(valor, modelo, origem) do primeiro resultado medido em `dono` (None: em qualquer).

        `ids` é o id do resultado, ou vários: uma lição que fala inglês e português mede palavras
        diferentes, e vale o primeiro que houver. Com `numero`, um texto não serve: foi mexido à mão.

        Levanta:
            NaoMedido: nem outputs/ nem as referências têm esse número desse modelo.
        """
        for origem, arquivo in self._fontes(licao):
            dados = self._ler(arquivo)
            if dados is None or not mesmas_medidas(dados.get("comando", ""), opcoes):
                continue
            for r in dados.get("resultados", []):
                if (
                    r["id"] in ([ids] if isinstance(ids, str) else ids)
                    and dono in (None, r.get("modelo"))
                    and resultado.e_valor(r.get(campo))
                    and (resultado.e_numero(r[campo]) or not numero)
                ):
                    return r[campo], r.get("modelo", "—"), origem
        de = f" no {dono}" if dono else ""
        raise NaoMedido(f"a lição {licao} ainda não mediu isto{de}: rode  python lab/{licao}.py")


# --- o contexto --------------------------------------------------------------------------


class Contexto:
    """O que as medidas dividem nesta execução: o modelo de hoje e o que se calcula dele uma vez."""

    def __init__(self, modelo: Modelo, resultados: Resultados | None = None):
        self.modelo = modelo
        self.resultados = resultados or Resultados(modelo.nome)
        self._feitas: dict[str, Medida] = {}

    @cached_property
    def e_o_gpt2(self) -> bool:
        """True se o modelo de hoje é o GPT-2 small verdadeiro, com as linhas publicadas."""
        return gpt2_medido.parece_gpt2_small(self.modelo) and all(
            c.confere for c in gpt2_medido.conferir_pesos(self.modelo)
        )

    @cached_property
    def normas(self):
        """(V,): o comprimento das linhas de wte."""
        from nucleo.licoes import l02_embeddings

        return l02_embeddings.normas(self.modelo)

    @cached_property
    def palavras(self):
        """As listas de palavras no idioma do modelo."""
        from nucleo.modelos import listas

        return listas.palavras_para(self.modelo.tokenizador)

    @cached_property
    def gpt2(self):
        """O tokenizador verdadeiro do GPT-2, que vem no repositório."""
        from nucleo.modelos import fontes

        return fontes.tokenizador_gpt2()

    @cached_property
    def dono(self) -> Modelo:
        """O modelo de hoje, se tem wpe; senão o mini. Levanta `NaoMedido` se nem ele está aqui."""
        from nucleo.modelos import fontes

        dono = fontes.dono_da_wpe(self.modelo)
        if dono is None:
            raise NaoMedido("o modelo de hoje não tem wpe, e o mini não está nesta cópia")
        return dono

    def medir(self, nome: str, argumentos: dict, onde: str) -> Medida:
        """A medida `nome` com estes argumentos, feita uma vez só.

        Levanta:
            NaoMedido: o modelo não serve.
            KeyError: não há medida com esse nome.
        """
        chave = json.dumps([nome, argumentos, onde], sort_keys=True)
        if chave not in self._feitas:
            r = MEDIDAS[nome]
            valores = r.funcao(self, **argumentos)
            quem = r.modelo or (self.dono.nome if onde == "com wpe" else self.modelo.nome)
            if onde == "nenhum" and not r.modelo:
                quem = "—"
            fonte = r.fonte if r.origem in (GUARDADO, PUBLICADO) else f"nucleo: {nome}"
            self._feitas[chave] = Medida(_simples(valores), quem, r.origem, fonte)
        return self._feitas[chave]

    def ler_resultados(self, pedidos: dict, onde: str, numeros: set[str] = frozenset()) -> Medida:
        """Os números que as lições já mediram, {nome: {licao, id, …}}, todos do mesmo dono.

        `numeros` são os nomes que uma regra compara como número.

        Levanta:
            NaoMedido: falta algum.
        """
        padrao = {"qualquer": lambda: self.modelo.nome, "com wpe": lambda: self.dono.nome}
        dono = padrao.get(onde, lambda: None)()
        valores, modelos_, origens, ids = {}, [], [], []
        for nome, r in pedidos.items():
            valor, modelo, origem = self.resultados.procurar(
                r["licao"], r["id"], r.get("de", dono), r.get("campo", "valor"),
                tuple(r.get("opcoes", ())), nome in numeros,
            )  # fmt: skip
            valores[nome] = valor
            modelos_.append(modelo)
            origens.append(origem)
            ids.append(f"{r['licao']}: {_um(r['id'])}")
        # Uma lição que não usa modelo assina o último que abriu: ali o dono não quer dizer nada.
        quem = " / ".join(dict.fromkeys(modelos_)) if dono or _tem_de(pedidos) else "—"
        return Medida(valores, quem, " / ".join(dict.fromkeys(origens)), "; ".join(ids))


def _um(ids: str | list[str]) -> str:
    return ids if isinstance(ids, str) else " ou ".join(ids)


def _tem_de(pedidos: dict) -> bool:
    return any("de" in r for r in pedidos.values())


def _simples(valores: dict) -> dict:
    # Números do numpy e do torch viram os do Python: as regras e o JSON não precisam saber deles.
    return {
        k: v.tolist() if hasattr(v, "tolist") else v.item() if hasattr(v, "item") else v
        for k, v in valores.items()
    }
