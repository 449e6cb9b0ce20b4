"""Os experimentos de 02_treino: treinar medindo, e pôr o que se mediu em quadros e figuras.

Quem desenha a barra e mostra os quadros é a lição; aqui ninguém imprime. As funções que treinam
recebem os passos já embrulhados na barra, e só olham para eles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nucleo.base import graficos
from nucleo.base.caderno import Quadro
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import folga
from nucleo.modelos import gpt2_medido
from nucleo.treino import mini
from nucleo.treino import treinador as tr

DEFASAGENS = (1, 2, 4, 8, 16, 32)
FREQUENTES = 500  # tokens que entram na comparação de geometrias: os que o treino viu bastante


@dataclass
class Material:
    """Um corpus pronto para os experimentos. O que custa caro só é feito quando alguém pede."""

    treino: list[tr.Obra]
    validacao: list[tr.Obra]
    regra: str
    vocabulario: int

    @cached_property
    def texto(self) -> str:
        """O treino inteiro, uma obra depois da outra."""
        return "\n".join(obra.texto for obra in self.treino)

    @cached_property
    def _bpe(self):
        return tr.treinar_bpe([obra.texto for obra in self.treino], self.vocabulario)

    @cached_property
    def tokens(self) -> np.ndarray:
        """A fita de treino em tokens de BPE: (n,)."""
        return tr.codificar(self._bpe, self.treino)

    @cached_property
    def tokens_de_fora(self) -> np.ndarray:
        """A fita de validação, que nenhum modelo daqui vê no treino: (n,)."""
        return tr.codificar(self._bpe, self.validacao)

    @cached_property
    def frequentes(self) -> np.ndarray:
        """Os `FREQUENTES` tokens mais comuns no treino, do mais comum em diante."""
        vezes = np.bincount(self.tokens, minlength=self.vocabulario)
        return np.argsort(-vezes, kind="stable")[:FREQUENTES]

    @property
    def resumo(self) -> str:
        """Uma frase: quanto texto, e o que fica de fora."""
        letras = sum(len(obra.texto) for obra in self.treino)
        obras = f"{len(self.treino)} obras, {inteiro(letras)} letras de treino"
        return f"{obras}; validação: {self.regra}"


def abrir_material(pasta: str | Path | None, vocabulario: int) -> Material | None:
    """O corpus da pasta, ou None se não veio pasta. Erros: `ErroDoUsuario` (ver `tr.ler_corpus`)."""
    if not pasta:
        return None
    return Material(*tr.separar(tr.ler_corpus(pasta)), vocabulario)


def marcas(passos: int) -> set[int]:
    """Os passos em que se mede: mais juntos no começo, quando tudo muda depressa."""
    return {passos, *(passos * k // 24 for k in (1, 2, 3, 4, 6, 8, 12, 16, 20))}


# --- ato 1: a wpe tomando forma --------------------------------------------------------


@dataclass
class Retrato:
    """A wpe num passo do treino: cosseno médio em cada defasagem, e a perda desde o anterior."""

    passo: int
    perda: float | None
    cossenos: list[float]


def _retratar(modelo, passo: int, perdas: list[float]) -> Retrato:
    wpe = modelo.transformer.wpe.weight.detach().numpy()  # (n_ctx, d)
    perda = float(np.mean(perdas)) if perdas else None
    return Retrato(passo, perda, tr.cosseno_por_defasagem(wpe, DEFASAGENS))


def acompanhar_wpe(treino: tr.Treino, passos: Iterable[tr.Passo]) -> list[Retrato]:
    """Segue um treino até o fim (ou até onde `passos` for) e retrata a wpe nas marcas."""
    retratos, perdas = [_retratar(treino.modelo, treino.passo, [])], []
    medir = marcas(treino.receita.passos)
    for p in passos:
        perdas.append(p.perda)
        if p.passo in medir:
            retratos.append(_retratar(treino.modelo, p.passo, perdas))
            perdas = []
    if perdas:  # interrompido entre duas marcas: o que foi aprendido também conta
        retratos.append(_retratar(treino.modelo, treino.passo, perdas))
    return retratos


def retratos_do_mini() -> list[Retrato]:
    """A mesma história no treino longo do mini, pelos retratos guardados no repositório."""
    retratos = []
    for f in mini.fotos():
        perda = None if np.isnan(f["perda_treino"]) else f["perda_treino"]
        retratos.append(Retrato(f["passo"], perda, tr.cosseno_por_defasagem(f["wpe"], DEFASAGENS)))
    return retratos


def quadro_da_wpe(titulo: str, retratos: Sequence[Retrato]) -> Quadro:
    """Um retrato por linha: passo, perda e o cosseno em cada defasagem."""
    colunas = {"passo": inteiro, "perda": decimal} | {f"k = {k}": decimal for k in DEFASAGENS}
    return Quadro(titulo, colunas, [[r.passo, r.perda, *r.cossenos] for r in retratos])


def gpt2_verdadeiro() -> list[float]:
    """O cosseno por defasagem do GPT-2 da OpenAI, medido à parte (linhas cruas, 1 a 1022)."""
    distancias, cossenos = gpt2_medido.defasagem()
    return cossenos[np.searchsorted(distancias, DEFASAGENS)].tolist()


def quadro_do_fim(no_fim: dict[str, list[float]]) -> Quadro:
    """Onde cada treino acaba: um modelo por linha, uma defasagem por coluna."""
    colunas = {"modelo": str} | {f"k = {k}": decimal for k in DEFASAGENS}
    return Quadro("Onde cada treino acaba", colunas, [[n, *v] for n, v in no_fim.items()])


def figura_da_wpe(quem: str, retratos: Sequence[Retrato]):
    """O cosseno de cada defasagem, do primeiro ao último passo."""
    eixo = [r.passo for r in retratos]
    series = {
        f"k = {k}": (eixo, [r.cossenos[i] for r in retratos]) for i, k in enumerate(DEFASAGENS)
    }
    titulo = f"Vizinhas aprendem a se parecer ({quem})"
    return graficos.curvas(series, titulo, "passo do treino", "cosseno médio", zero=True)


def figura_do_fim(no_fim: dict[str, list[float]]):
    """O cosseno contra a distância, no fim de cada treino."""
    # As defasagens como rótulos: cada uma é o dobro da anterior, e o passo do eixo fica igual.
    eixo = [str(k) for k in DEFASAGENS]
    series = {nome: (eixo, valores) for nome, valores in no_fim.items()}
    titulo = "Quanto mais longe, menos parecidas"
    return graficos.curvas(series, titulo, "defasagem k", "cosseno médio", zero=True, marcador="o")


# --- ato 2: uma matriz, dois gradientes ------------------------------------------------


class Caminhos:
    """Abre o gradiente da matriz amarrada, sempre no mesmo lote, em vários passos do treino."""

    def __init__(self, fita: np.ndarray, contexto: int, lote: int):
        self.x, self.y = tr.lote_fixo(fita, contexto, lote)  # (B, T), (B, T)
        self.linhas: list[list] = []
        self.diferenca = 0.0  # a maior, em todos os passos, entre a soma e o autograd
        self.limite = 0.0  # e o que o arredondamento pode fazer no pior deles
        self.vocabulario = 0

    def medir(self, passo: int, modelo) -> None:
        """Mede neste passo: normas, cosseno, linhas tocadas; e confere a soma com o autograd."""
        dois = tr.dois_caminhos(modelo, self.x, self.y)
        inteiro_ = tr.gradiente_amarrado(modelo, self.x, self.y)  # (V, d)
        diferenca = np.abs(dois.entrada + dois.saida - inteiro_).max()
        self.diferenca = max(self.diferenca, float(diferenca))
        # Cada número soma uma parcela por token do lote: N · eps do tamanho delas, em float32.
        tamanho = float((np.abs(dois.entrada) + np.abs(dois.saida)).max())
        self.limite = max(self.limite, folga.soma(self.x.numel(), tamanho, folga.EPS32))
        self.vocabulario = len(inteiro_)
        normas = (dois.norma_entrada, dois.norma_saida, dois.cosseno)
        self.linhas.append([passo, *normas, dois.linhas_entrada, dois.linhas_saida])

    @property
    def cosseno(self) -> float:
        """O cosseno médio entre os dois gradientes, depois do começo do treino."""
        return float(np.mean([linha[3] for linha in self.linhas[1:] or self.linhas]))

    @property
    def razao(self) -> float:
        """Norma da saída sobre norma da entrada, na média, depois do começo do treino."""
        return float(np.mean([linha[2] / linha[1] for linha in self.linhas[1:] or self.linhas]))

    def quadro(self, quem: str) -> Quadro:
        """Um passo por linha."""
        colunas = {"passo": inteiro}
        colunas |= dict.fromkeys(("norma, entrada", "norma, saída", "cosseno"), decimal)
        colunas |= dict.fromkeys(("linhas, entrada", "linhas, saída"), inteiro)
        lote = f"lote de {inteiro(self.x.numel())} tokens, V = {inteiro(self.vocabulario)}"
        return Quadro(f"Os dois caminhos do gradiente: {quem} ({lote})", colunas, self.linhas)

    def figura(self):
        """As duas normas e o cosseno ao longo do treino."""
        passos = [linha[0] for linha in self.linhas]
        nomes = {1: "norma, entrada", 2: "norma, saída", 3: "cosseno entre os dois"}
        series = {nome: (passos, [linha[i] for linha in self.linhas]) for i, nome in nomes.items()}
        titulo = "Dois gradientes na mesma matriz"
        # Poucos pontos com uma reta no meio pareceriam uma curva medida: cada um leva a sua marca.
        eixos = ("passo do treino", "norma e cosseno")
        return graficos.curvas(series, titulo, *eixos, zero=True, marcador="o")


# --- ato 3: amarrada contra solta ---------------------------------------------------------


def acompanhar_validacao(
    treino: tr.Treino,
    passos: Iterable[tr.Passo],
    fita: np.ndarray,
    caminhos: Caminhos | None = None,
) -> list[tuple[int, float]]:
    """Segue um treino até o fim: [(passo, perda de validação)] nas marcas, do passo 0 em diante.

    Com `caminhos`, abre também o gradiente da matriz amarrada em cada marca; medir não muda o treino.
    """

    def medir() -> tuple[int, float]:
        if caminhos:
            caminhos.medir(treino.passo, treino.modelo)
        contexto, lote = treino.receita.contexto, treino.receita.lote
        return treino.passo, tr.perda_media(treino.modelo, fita, contexto, lote, janelas=96)

    medidas, medir_em = [medir()], marcas(treino.receita.passos)
    for p in passos:
        if p.passo in medir_em:
            medidas.append(medir())
    return medidas


class Corrida(NamedTuple):
    """Um treino que acabou: o modelo, e a curva [(passo, perda de validação)]."""

    modelo: Any
    curva: list[tuple[int, float]]

    @property
    def parametros(self) -> int:
        """Quantos números o modelo guarda (a matriz amarrada conta uma vez)."""
        return sum(p.numel() for p in self.modelo.parameters())


class Disputa:
    """As corridas {(semente, amarrada?): corrida}, com as mesmas sementes e os mesmos dados."""

    def __init__(self, corridas: dict[tuple[int, bool], Corrida], frequentes: np.ndarray):
        self.corridas, self.frequentes = corridas, frequentes
        self.sementes = sorted({semente for semente, _ in corridas})
        self.passos = [passo for passo, _ in self._de(True)[0].curva]

    def _de(self, amarrado: bool) -> list[Corrida]:
        return [self.corridas[semente, amarrado] for semente in self.sementes]

    def finais(self, amarrado: bool) -> np.ndarray:
        """A perda de validação no fim, uma por semente: (s,)."""
        return self._curvas(amarrado)[:, -1]

    @property
    def diferencas(self) -> np.ndarray:
        """Amarrada menos solta, semente a semente: (s,). Negativo: a amarrada ganhou."""
        return self.finais(True) - self.finais(False)

    def quadro_das_perdas(self) -> Quadro:
        """Parâmetros e perda de validação: por semente, média e desvio."""
        linhas = []
        for nome, amarrado in (("amarrada", True), ("solta", False)):
            finais, parametros = self.finais(amarrado), self._de(amarrado)[0].parametros
            desvio = finais.std(ddof=1) if len(finais) > 1 else None
            linhas.append([nome, parametros, *finais, finais.mean(), desvio])
        colunas = {"matriz": str, "parâmetros": inteiro}
        colunas |= {f"semente {s}": decimal for s in self.sementes}
        colunas |= {"média": decimal, "desvio": decimal}
        return Quadro("Perda de validação no fim (nats por token)", colunas, linhas)

    def _curvas(self, amarrado: bool) -> np.ndarray:
        return np.array(
            [[perda for _, perda in c.curva] for c in self._de(amarrado)]
        )  # (s, marcas)

    def quadro_das_curvas(self) -> Quadro:
        """A perda de validação ao longo do treino, média das sementes, e a diferença pareada."""
        amarrada, solta = self._curvas(True).mean(0), self._curvas(False).mean(0)  # (s, m) -> (m,)
        linhas = list(zip(self.passos, amarrada, solta, amarrada - solta, strict=True))
        nomes = ("amarrada", "solta", "amarrada − solta")
        colunas = {"passo": inteiro} | dict.fromkeys(nomes, decimal)
        return Quadro(f"Validação, média de {len(self.sementes)} semente(s)", colunas, linhas)

    def figura(self):
        """As duas curvas de validação, com a dispersão entre sementes em volta."""
        curvas = {"amarrada": self._curvas(True), "solta": self._curvas(False)}
        series = {nome: (self.passos[1:], c.mean(0)[1:]) for nome, c in curvas.items()}
        faixas = {nome: c.std(0)[1:] for nome, c in curvas.items()}
        titulo = "Amarrada contra solta: mesma semente, mesmos dados"
        return graficos.curvas(series, titulo, "passo", "perda de validação", faixas=faixas)

    def semelhancas(self) -> np.ndarray:
        """(s, 3): a geometria da amarrada com a de entrada solta, com a de saída solta, e estas entre si."""
        linhas = []
        for amarrada, solta in zip(self._de(True), self._de(False), strict=True):
            camadas = (amarrada.modelo.lm_head, solta.modelo.transformer.wte, solta.modelo.lm_head)
            # (V, d) -> (f, d): só os tokens que o treino viu bastante.
            matrizes = [c.weight.detach().numpy()[self.frequentes] for c in camadas]
            linhas.append([tr.semelhanca_de_geometria(*par) for par in combinations(matrizes, 2)])
        return np.array(linhas)

    def quadro_das_semelhancas(self) -> Quadro:
        """Com qual das duas matrizes soltas a amarrada se parece."""
        nomes = ("amarrada × entrada solta", "amarrada × saída solta", "entrada × saída, soltas")
        medidas = self.semelhancas()
        linhas = [[str(s), *m] for s, m in zip(self.sementes, medidas.tolist(), strict=True)]
        if len(linhas) > 1:
            linhas.append(["média", *medidas.mean(0).tolist()])
        quem = f"Spearman dos cossenos entre {len(self.frequentes)} tokens"
        colunas = {"semente": str} | dict.fromkeys(nomes, decimal)
        return Quadro(f"Quem é vizinho de quem: {quem}", colunas, linhas)

    def quadro_dos_argumentos(self, caminhos: Caminhos | None) -> Quadro:
        """A favor e contra amarrar, cada argumento com o número que saiu agora."""
        amarrada, solta = self._de(True)[0].parametros, self._de(False)[0].parametros
        d = self.diferencas
        espalha = f" ± {decimal(d.std(ddof=1))}" if len(d) > 1 else ""
        perto_da_entrada, perto_da_saida, _ = self.semelhancas().mean(0)

        def lado(ajuda: bool) -> str:
            # O lado é o do número medido, e não o que se espera dele.
            return "a favor" if ajuda else "contra"

        a_menos = f"{inteiro(solta - amarrada)} ({porcento(1 - amarrada / solta)})"
        perda = "perda de validação, amarrada − solta"
        linhas = [["a favor", "parâmetros a menos", a_menos]]
        linhas += [[lado(d.mean() < 0), perda, decimal(d.mean()) + espalha]]
        if caminhos:
            _, _, _, cosseno, de_entrada, de_saida = caminhos.linhas[-1]
            linhas += [
                ["a favor", "linhas da entrada treinadas a cada passo, solta → amarrada",
                 f"{inteiro(de_entrada)} → {inteiro(de_saida)}"],
                [lado(cosseno > 0.1), "quanto os dois gradientes concordam: cosseno no fim", decimal(cosseno)],
                [lado(caminhos.razao <= 1), "quanto a saída fala mais alto: norma dela / norma da entrada",
                 decimal(caminhos.razao, 2)],
            ]  # fmt: skip
        linhas.append(
            [lado(perto_da_entrada >= perto_da_saida),
             "de quem a matriz única tem a geometria: ρ com a saída e com a entrada",
             f"{decimal(perto_da_saida, 2)} e {decimal(perto_da_entrada, 2)}"]
        )  # fmt: skip
        colunas = dict.fromkeys(("lado", "argumento", "medido aqui"), str)
        return Quadro("Amarrar ou não amarrar", colunas, linhas)
