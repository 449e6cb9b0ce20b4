"""O registro das medidas, e de onde vem cada número que julga uma afirmação: de uma lição ou de uma delas.

Cada número diz de quem é (o modelo) e de onde veio: medido agora, lido de outputs/, da referência
guardada, medido antes por nós num modelo que não está aqui, ou publicado por outros. O que uma lição
mede não se mede outra vez: lê-se pelo id.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from nucleo.afirmacoes.das_licoes import NaoMedido, Resultados
from nucleo.contas import vetores
from nucleo.modelos import fontes, gpt2_medido, listas
from nucleo.modelos.fontes import Modelo

AGORA, GUARDADO, PUBLICADO = "agora", "guardado", "publicado"


@dataclass(frozen=True)
class Achado:
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

    `modelo` é de quem é o número quando não é o modelo de hoje ("{nome} (arquitetura)", com o
    argumento `nome` da função). A função
    levanta `NaoMedido` quando o modelo não serve. `fonte` é a do número guardado ou publicado.
    """

    def registrar(funcao):
        if funcao.__name__ in MEDIDAS:
            raise ValueError(f"medida repetida: {funcao.__name__}")
        MEDIDAS[funcao.__name__] = _Registrada(funcao, modelo, origem, fonte)
        return funcao

    return registrar


# --- o contexto --------------------------------------------------------------------------


class Contexto:
    """O que as medidas dividem nesta execução: o modelo de hoje e o que se calcula dele uma vez."""

    def __init__(self, modelo: Modelo, resultados: Resultados | None = None):
        self.modelo = modelo
        self.resultados = resultados or Resultados(modelo.nome)
        self._feitas: dict[str, Achado] = {}

    @cached_property
    def e_o_gpt2(self) -> bool:
        """True se o modelo de hoje é o GPT-2 small verdadeiro, com as linhas publicadas."""
        return gpt2_medido.parece_gpt2_small(self.modelo) and all(
            c.confere for c in gpt2_medido.conferir_pesos(self.modelo)
        )

    @cached_property
    def normas(self):
        """(V,): o comprimento das linhas de wte."""
        return vetores.normas_das_linhas(self.modelo.wte)

    @cached_property
    def palavras(self) -> listas.Palavras:
        """As listas de palavras no idioma do modelo."""
        return listas.palavras_para(self.modelo.tokenizador)

    @cached_property
    def gpt2(self):
        """O tokenizador verdadeiro do GPT-2, que vem no repositório."""
        return fontes.tokenizador_gpt2()

    @cached_property
    def dono(self) -> Modelo:
        """O modelo de hoje, se tem wpe; senão o mini. Levanta `NaoMedido` se nem ele está aqui."""
        dono = fontes.dono_da_wpe(self.modelo)
        if dono is None:
            raise NaoMedido("o modelo de hoje não tem wpe, e o mini não está nesta cópia")
        return dono

    def medir(self, nome: str, argumentos: dict, onde: str) -> Achado:
        """A medida `nome` com estes argumentos, feita uma vez só.

        Levanta:
            NaoMedido: o modelo não serve.
            KeyError: não há medida com esse nome.
        """
        chave = json.dumps([nome, argumentos, onde], sort_keys=True)
        if chave not in self._feitas:
            r = MEDIDAS[nome]
            # Números do numpy e do torch viram os do Python: as regras e o JSON não sabem deles.
            valores = {
                nome: v.tolist() if hasattr(v, "tolist") else v
                for nome, v in r.funcao(self, **argumentos).items()
            }
            quem = r.modelo.format(**argumentos) or (
                self.dono.nome if onde == "com wpe" else self.modelo.nome
            )
            if onde == "nenhum" and not r.modelo:
                quem = "—"
            fonte = r.fonte if r.origem in (GUARDADO, PUBLICADO) else f"nucleo: {nome}"
            self._feitas[chave] = Achado(valores, quem, r.origem, fonte)
        return self._feitas[chave]

    def ler_resultados(self, pedidos: dict, onde: str) -> Achado:
        """Os números que as lições já mediram, {nome: {licao, id, …}}, todos do mesmo dono.

        Levanta:
            NaoMedido: falta algum.
        """
        donos = {"com wpe": lambda: self.dono.nome, "nenhum": lambda: None}
        dono = donos.get(onde, lambda: self.modelo.nome)()
        # Uma lição que não usa modelo assina o último que abriu: ali o dono não quer dizer nada.
        tem_dono = dono or any("de" in r for r in pedidos.values())
        achados = []
        for nome, r in pedidos.items():
            valor, modelo, origem = self.resultados.procurar(
                r["licao"], r["id"], r.get("de", dono), r.get("campo", "valor"),
                tuple(r.get("opcoes", ())),
            )  # fmt: skip
            id_ = r["id"] if isinstance(r["id"], str) else " ou ".join(r["id"])
            quem = modelo if tem_dono else "—"
            achados.append(Achado({nome: valor}, quem, origem, f"{r['licao']}: {id_}"))
        return juntar(achados)


def juntar(achados: list[Achado]) -> Achado:
    """Os valores de todos; de quem são, e de onde vieram, cada um dito uma vez."""
    return Achado(
        {nome: valor for a in achados for nome, valor in a.valores.items()},
        " / ".join(dict.fromkeys(a.modelo for a in achados)),
        " / ".join(dict.fromkeys(a.origem for a in achados)),
        "; ".join(dict.fromkeys(a.fonte for a in achados)),
    )
