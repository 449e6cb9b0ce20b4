"""O que a lição deixa para trás: tabelas, figuras, relatório e resultados.

Tudo é montado na memória. Só no fim cada arquivo troca de lugar, de uma vez, e o `resultado.json` é o
último: quem interrompe a lição, ou fica sem disco, ainda tem arquivos inteiros. Uma troca que morre
no meio se conserta rodando a lição de novo.
"""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nucleo.base import arquivos
from nucleo.base.erros import ErroDoUsuario

_ESPERA = 30.0  # segundos por outra execução que esteja gravando: gravar leva menos de um


@dataclass(frozen=True)
class Conferencia:
    """Um número medido contra o que se esperava. `confere` é decidido aqui e só aqui.

    `tolerancia` é absoluta; 0 pede igualdade exata. Sem `esperado`, mede-se uma diferença
    que devia ser zero (do zero contra a biblioteca).
    """

    nome: str
    medido: float
    esperado: float = 0.0
    tolerancia: float = 0.0

    @property
    def confere(self) -> bool:
        # NaN nunca confere: a comparação com ele é sempre falsa.
        return bool(abs(self.medido - self.esperado) <= self.tolerancia)


@dataclass(frozen=True)
class Quadro:
    """Uma tabela pronta: título, {coluna: formato de um valor -> texto} e as linhas de valores.

    `resultados` são os números dela que têm nome, cada um feito por `numero`.
    """

    titulo: str
    colunas: dict[str, Callable]
    linhas: list[list]
    resultados: list[tuple[str, dict]] = field(default_factory=list)


def numero(id_: str, valor, **mais) -> tuple[str, dict]:
    """Um número com nome, e os campos que o acompanham, a caminho do resultado.json."""
    return id_, {"valor": valor} | mais


@dataclass
class Caderno:
    """Tudo o que uma lição mostrou, na ordem, pronto para virar arquivos.

    `blocos` é o relatório em Markdown; `arquivos` são os bytes de cada tabela e figura;
    `resultados` são os números com nome e `tabelas` as tabelas inteiras, para outros programas.
    """

    nome: str
    titulo: str
    blocos: list[str] = field(default_factory=list)
    arquivos: dict[str, bytes] = field(default_factory=dict)
    resultados: list[dict] = field(default_factory=list)
    tabelas: dict[str, dict] = field(default_factory=dict)
    ficha: dict = field(default_factory=dict)
    vivo: bool = False

    def recomecar(self, secao: int | str, titulo: str) -> None:
        """Esquece o que a seção já tinha: os números dela, e os blocos do `titulo` até o da seguinte."""
        self.resultados = [r for r in self.resultados if r["secao"] != secao]
        dentro, ficam = False, []
        for bloco in self.blocos:
            dentro = bloco.startswith(titulo) or (dentro and not bloco.startswith("## "))
            ficam += [] if dentro else [bloco]
        self.blocos = ficam

    def csv(self, id_: str, colunas: list[str], linhas: list[list]) -> None:
        """Guarda a tabela em `id_`.csv (UTF-8, vírgula, ponto decimal), com os valores inteiros."""
        texto = io.StringIO(newline="")
        escritor = csv.writer(texto, lineterminator="\n")
        escritor.writerow(colunas)
        escritor.writerows(linhas)
        self.arquivos[f"{id_}.csv"] = arquivos.legivel(texto.getvalue()).encode("utf-8")
        # As apostilas leem as mesmas linhas do resultado.json, sem passar pelo texto do CSV.
        self.tabelas[id_] = {"colunas": list(colunas), "linhas": _simples(linhas)}

    def tabela_md(self, titulo: str, colunas: list[str], linhas: list[list[str]]) -> None:
        """A mesma tabela, já formatada para leitura, no relatório."""

        def linha(celulas):
            # Uma quebra de linha acabaria com a tabela.
            limpas = (str(c).replace("|", "\\|").replace("\n", "; ") for c in celulas)
            return "| " + " | ".join(limpas) + " |"

        corpo = [linha(colunas), linha(["---"] * len(colunas)), *map(linha, linhas)]
        self.blocos.append((f"**{titulo}**\n\n" if titulo else "") + "\n".join(corpo))

    def figura(self, id_: str, png: bytes, alt: str) -> None:
        """Guarda a figura `id_`.png e a cita no relatório com o texto alternativo."""
        self.arquivos[f"{id_}.png"] = png
        self.blocos.append(f"![{alt}]({id_}.png)")

    def resultado(
        self, id_: str, valor, unidade: str, modelo: str, secao: int | str, **mais
    ) -> None:
        """Um número com nome. Ids não se repetem: `ValueError` se o mesmo vier duas vezes.

        (Num caderno vivo a célula pode rodar de novo, e vale a última.)
        """
        if iguais := [r for r in self.resultados if (r["id"], r["modelo"]) == (id_, modelo)]:
            if not self.vivo:
                raise ValueError(f"resultado repetido: {id_} ({modelo})")
            self.resultados.remove(iguais[0])
        self.resultados.append(
            {
                "id": id_,
                "valor": _simples(valor),
                "unidade": unidade,
                "modelo": modelo,
                "secao": secao,
            }
            | {k: _simples(v) for k, v in mais.items()}
        )

    def gravar(self, pasta: Path) -> list[Path]:
        """Grava relatorio.md, resultado.json e os arquivos em `pasta`; devolve os caminhos.

        Arquivos da execução anterior que esta não refez são retirados (a lista deles está no
        resultado.json antigo); nada que não seja nosso é tocado.
        Erros: `ErroDoUsuario` se faltar disco, permissão, ou se um arquivo estiver aberto.
        """
        nomes = [*sorted(self.arquivos), "relatorio.md", "resultado.json"]
        relatorio = f"# {self.titulo}\n\n" + "\n\n".join(self.blocos) + "\n"
        resultado = {
            "licao": self.nome,
            **self.ficha,
            "arquivos": nomes,
            "resultados": self.resultados,
            "tabelas": self.tabelas,
        }
        conteudo = self.arquivos | {
            "relatorio.md": arquivos.legivel(relatorio).encode("utf-8"),
            "resultado.json": arquivos.legivel(
                json.dumps(resultado, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
            ).encode("utf-8"),
        }
        try:
            with arquivos.so_um(pasta, _ESPERA):
                arquivos.varrer(pasta)
                # Num disco que não distingue caixa, a Rei.csv de antes é a rei.csv de agora.
                novos = {n.casefold() for n in nomes}
                antigos = _lista_antiga(pasta, self.nome)
                sobras = [s for s in antigos if s.casefold() not in novos]
                arquivos.gravar_todos(
                    {pasta / nome: conteudo[nome] for nome in nomes},
                    [pasta / s for s in sobras],
                    arquivos.OUTRA_PASTA,
                )
        except arquivos.Ocupada:
            raise ErroDoUsuario(
                f"Outra execução está gravando em {pasta}.",
                f"Esperei {_ESPERA:.0f} s e ela não terminou; duas não gravam juntas na mesma pasta.",
                "Espere a outra acabar, ou escolha outra pasta:  --saida PASTA",
            ) from None
        except OSError as erro:
            raise arquivos.nao_gravou(pasta, erro) from None
        return [pasta / nome for nome in nomes]


def _lista_antiga(pasta: Path, licao: str) -> set[str]:
    # Só o que esta lição escreve, e só nomes simples: um resultado.json de outra lição, ou mexido
    # à mão, não apaga nada.
    arquivo = pasta / "resultado.json"
    try:
        if not arquivo.is_file():  # ler um FIFO com esse nome esperaria para sempre
            return set()
        dados = json.loads(arquivo.read_text(encoding="utf-8"))
        nomes = [Path(n) for n in dados["arquivos"]] if dados["licao"] == licao else []
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {n.name for n in nomes if n == Path(n.name) and n.suffix in (".csv", ".png")}


def _simples(valor):
    """Tipos do numpy viram os do Python; NaN e infinito viram None (JSON não os tem)."""
    if hasattr(valor, "tolist"):
        valor = valor.tolist()
    if isinstance(valor, float) and (valor != valor or valor in (float("inf"), float("-inf"))):
        return None
    if isinstance(valor, (list, tuple)):
        return [_simples(v) for v in valor]
    if isinstance(valor, dict):
        return {str(k): _simples(v) for k, v in valor.items()}
    return valor
