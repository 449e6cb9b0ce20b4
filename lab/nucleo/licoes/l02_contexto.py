"""Os experimentos de 02_contexto: cada função mede uma coisa e devolve um quadro pronto."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, compress
from typing import NamedTuple

import numpy as np

from nucleo.base.caderno import Quadro
from nucleo.base.unidades import decimal, inteiro, porcento
from nucleo.contas import sentidos
from nucleo.contas.sentidos import Prova
from nucleo.modelos import estados, fontes, frases, pontas
from nucleo.modelos.fontes import Modelo
from nucleo.modelos.frases import Ambigua, Ocorrencia
from nucleo.modelos.tokens import Tokenizador, visivel


@dataclass(frozen=True)
class PalavraLida:
    """Uma palavra lida pelo modelo. `E`: por ocorrência, (camadas, n_i, d); `X`: (camadas, n, d),
    o vetor da palavra; `frente`: o do token logo antes dela, ou None se ele não é sempre o mesmo;
    `K`: (camadas, n, n), os cossenos de X."""

    palavra: Ambigua
    E: list[np.ndarray]
    X: np.ndarray
    frente: np.ndarray | None
    K: np.ndarray

    @property
    def rotulos(self) -> np.ndarray:
        return np.array(self.palavra.rotulos)

    @property
    def lugares(self) -> np.ndarray:
        return np.array([o.lugar for o in self.palavra.ocorrencias])

    @property
    def uma_linha_so(self) -> bool:
        """True se o token é o mesmo em todas as frases (com outra maiúscula seria outra linha)."""
        return len({o.ids[o.lugar] for o in self.palavra.ocorrencias}) == 1

    @property
    def nome(self) -> str:
        """A palavra como aparece nas frases, com o espaço da frente à vista."""
        return visivel("".join(self.palavra.ocorrencias[0].pedacos))

    @property
    def ultima(self) -> int:
        return len(self.X) - 1


def no_lugar(E: list[np.ndarray], lugares: list[int]) -> np.ndarray:
    """O vetor de um token de cada frase, em todas as camadas: (camadas, n, d)."""
    return np.stack([e[:, i] for e, i in zip(E, lugares, strict=True)], axis=1)


def ler_todas(modelo: Modelo, palavras: list[Ambigua], progresso) -> list[PalavraLida]:
    """Uma passagem por palavra; `progresso(o_que, feito, total)` desenha a barra."""
    lidas = []
    for n, palavra in enumerate(palavras):
        progresso("lendo as frases", n, len(palavras))
        lidas.append(ler(modelo, palavra))
    progresso("lendo as frases", len(palavras), len(palavras))
    return lidas


def ler(modelo: Modelo, palavra: Ambigua) -> PalavraLida:
    """Passa todas as frases da palavra pelo modelo, de uma vez."""
    E = estados.estados(modelo, [o.ids for o in palavra.ocorrencias])
    lugares = [o.lugar for o in palavra.ocorrencias]
    X = no_lugar(E, lugares)
    antes = {token_da_frente(o) for o in palavra.ocorrencias}
    sempre_o_mesmo = len(antes) == 1 and -1 not in antes
    frente = no_lugar(E, [i - 1 for i in lugares]) if sempre_o_mesmo else None
    return PalavraLida(palavra, E, X, frente, sentidos.cossenos(X))


def token_da_frente(o: Ocorrencia) -> int | None:
    """O id do token logo antes da palavra; -1 se a palavra abre a frase ou tem vários pedaços."""
    return o.ids[o.lugar - 1] if o.lugar > 0 and len(o.pedacos) == 1 else -1


def camadas_a_mostrar(ultima: int, *sempre: int | None, quantas: int = 8) -> list[int]:
    """Umas `quantas` camadas espalhadas de 0 à última, mais as que não podem faltar (None: nenhuma)."""
    espalhadas = np.linspace(0, ultima, min(quantas, ultima + 1)).round().astype(int)
    return sorted({*espalhadas.tolist(), *sempre} - {None})


# --- 1: a mesma linha --------------------------------------------------------------------


def resumo_das_frases(modelo: Modelo, lidas: list[PalavraLida]) -> Quadro:
    """Quantas frases por sentido, em que lugar a palavra cai, e o token da frente."""
    texto, linhas = modelo.tokenizador.texto, []
    for lida in lidas:
        for i, sentido in enumerate(lida.palavra.sentidos):
            minhas = list(compress(lida.palavra.ocorrencias, lida.rotulos == i))
            antes = {token_da_frente(o) for o in minhas}
            linhas.append([
                lida.nome, sentido, len(minhas),
                np.mean([o.lugar for o in minhas]),
                ", ".join(visivel(texto(t)) if t >= 0 else "nenhum" for t in sorted(antes)),
                minhas[0].frase,
            ])  # fmt: skip
    colunas = {"palavra": str, "sentido": str, "frases": inteiro}
    colunas |= {"lugar médio": lambda x: decimal(x, 1), "na frente": str, "a primeira": str}
    return Quadro("As frases", colunas, linhas)


def posicao_na_entrada(modelo: Modelo) -> tuple[str, Quadro] | None:
    """(nome de quem mediu, quadro) do cosseno entre ocorrências na entrada, com e sem a posição.

    Quem não soma posição (RoPE) passa a vez ao mini; None se nem ele está no repositório. Não
    precisa dos blocos: h₀ = wte[id] + wpe[lugar].
    """
    dono = fontes.dono_da_wpe(modelo)
    if dono is None:
        return None
    colecao, linhas = frases.colecao_para(dono.tokenizador), []
    for nome in colecao.palavras:
        palavra = frases.ambigua(dono.tokenizador, colecao, nome)
        lugares = [o.lugar for o in palavra.ocorrencias]
        com = np.stack([pontas.h0(dono, o.ids)[o.lugar] for o in palavra.ocorrencias])  # (n, d)
        ids = [o.ids[o.lugar] for o in palavra.ocorrencias]
        sem = pontas.partes_de_h0(dono, ids)[0]  # (n, d)
        pares = ~np.eye(len(ids), dtype=bool)
        K = sentidos.cossenos(np.stack([com, sem]))  # (2, n, n)
        medidos = [K[0][pares].mean(), K[0][pares].min(), K[1][pares].min()]
        linhas.append([visivel(" " + nome), min(lugares), max(lugares), *medidos])
    colunas = {"palavra": str, "do lugar": inteiro, "ao lugar": inteiro}
    colunas |= dict.fromkeys(("com wpe, média", "com wpe, mínimo", "sem wpe, mínimo"), decimal)
    return dono.nome, Quadro(f"{dono.nome}: a mesma palavra na entrada", colunas, linhas)


# --- 2: camada por camada ----------------------------------------------------------------


def curvas(x: PalavraLida) -> dict[str, sentidos.Faixas]:
    """{nome: média e desvio por camada}: dentro de cada sentido, e entre sentidos."""
    pares = {
        f"dentro de “{s}”": np.outer(x.rotulos == i, x.rotulos == i)
        for i, s in enumerate(x.palavra.sentidos)
    } | {"entre sentidos": x.rotulos[:, None] != x.rotulos}  # (n, n) cada
    return {nome: sentidos.faixas(x.K, quais) for nome, quais in pares.items()}


def quadro_das_curvas(x: PalavraLida, *sempre: int) -> Quadro:
    """As curvas em algumas camadas: cosseno médio dentro de cada sentido e entre eles."""
    series = curvas(x)
    linhas = [
        [c, *(f.media[c] for f in series.values())] for c in camadas_a_mostrar(x.ultima, *sempre)
    ]
    titulo = f"{visivel(' ' + x.palavra.palavra)}: cosseno entre ocorrências"
    return Quadro(titulo, {"camada": inteiro} | dict.fromkeys(series, decimal), linhas)


# --- 3: contra o acaso -------------------------------------------------------------------


class Provada(NamedTuple):
    """Uma palavra e as provas: dela, e do token da frente (None se ele varia)."""

    lida: PalavraLida
    palavra: Prova
    frente: Prova | None


def provar(x: PalavraLida, embaralhos: int, semente: int) -> Provada:
    """A prova dos rótulos embaralhados na palavra e no token que vem logo antes dela."""
    frente = None
    if x.frente is not None:
        frente = sentidos.provar(sentidos.cossenos(x.frente), x.rotulos, embaralhos, semente)
    return Provada(x, sentidos.provar(x.K, x.rotulos, embaralhos, semente), frente)


def quadro_da_prova(p: Provada) -> Quadro:
    """A separação da palavra em algumas camadas, ao lado do que o acaso faria."""
    r = p.palavra
    camadas = camadas_a_mostrar(p.lida.ultima, r.melhor, r.primeira())
    series = (r.lacuna, r.teto, r.p, r.p_corrigido, r.acertos, r.acertos_acaso)
    linhas = [[c, *(serie[c] for serie in series)] for c in camadas]
    colunas = {"camada": inteiro, "dentro − entre": decimal, "acaso até": decimal}
    colunas |= {"p": decimal, "p corrigido": decimal}
    colunas |= {"centroide acerta": porcento, "acaso até ": porcento}
    titulo = f"separação dos sentidos contra {inteiro(r.embaralhos)} embaralhos"
    return Quadro(f"{visivel(' ' + p.lida.palavra.palavra)}: {titulo}", colunas, linhas)


def quadro_das_primeiras(modelo: Modelo, provadas: list[Provada]) -> Quadro:
    """De cada palavra: a primeira camada que separa, a que separa mais, e a do token da frente."""
    linhas = []
    for p in provadas:
        palavra, r, frente = p.lida.palavra, p.palavra, ["não é sempre um", None]
        if p.frente:
            token = modelo.tokenizador.texto(token_da_frente(palavra.ocorrencias[0]))
            frente = [visivel(token), p.frente.primeira()]
        dela = [r.primeira(), r.melhor, r.p[r.melhor], r.p_corrigido[r.melhor]]
        nome = visivel(" " + palavra.palavra)
        linhas.append([nome, " × ".join(palavra.sentidos), *dela, *frente])
    colunas = {"palavra": str, "sentidos": str, "1ª camada que separa": inteiro}
    colunas |= {"a mais nítida": inteiro, "p nela": decimal, "p corrigido": decimal}
    colunas |= {"token da frente": str, "1ª camada dele": inteiro}
    return Quadro("Onde os sentidos se separam (p corrigido < 0,01)", colunas, linhas)


# --- 4 e 5: anisotropia e dimensões rebeldes ----------------------------------------------


class Fundo(NamedTuple):
    """Um token de cada tipo, sorteado nas frases: `A` (camadas, m, d); e o que se mede nele.

    `anisotropia` (camadas,); `mev` (camadas,): variância que um vetor só explica em amostras de n
    tokens, média dos sorteios; `parcelas` (camadas, d): o que cada dimensão põe na anisotropia.
    """

    A: np.ndarray
    anisotropia: np.ndarray
    mev: np.ndarray
    parcelas: np.ndarray


def fundo(lidas: list[PalavraLida], semente: int, sorteios: int = 20) -> Fundo:
    """Sorteia uma ocorrência de cada token das frases, fora do lugar 0 (que os modelos usam como
    ralo de atenção e tem números enormes)."""
    sorteio, vistos = np.random.default_rng(semente), {}
    for x in lidas:
        for o, e in zip(x.palavra.ocorrencias, x.E, strict=True):
            for lugar in range(1, len(o.ids)):
                vistos.setdefault(o.ids[lugar], []).append(e[:, lugar])
    A = np.stack([v[sorteio.integers(len(v))] for v in vistos.values()], axis=1)  # (c, m, d)
    n = min(lidas[0].X.shape[1], A.shape[1])
    mev = [
        sentidos.variancia_de_um_vetor(A[:, sorteio.permutation(A.shape[1])[:n]])
        for _ in range(sorteios)
    ]
    parcelas = sentidos.contribuicoes(A)
    return Fundo(A, parcelas.sum(1), np.mean(mev, axis=0), parcelas)


def quadro_da_anisotropia(x: PalavraLida, f: Fundo) -> Quadro:
    """Autossemelhança e variância de um vetor só, cruas e descontado o que vale para qualquer
    par de tokens (Ethayarajh 2019, definição 1 e seção 3.3)."""
    auto, mev = sentidos.media_dos_cossenos(x.X), sentidos.variancia_de_um_vetor(x.X)  # (c,) cada
    linhas = [
        [c, f.anisotropia[c], auto[c], auto[c] - f.anisotropia[c], mev[c], mev[c] - f.mev[c]]
        for c in camadas_a_mostrar(x.ultima)
    ]
    nomes = ("dois tokens quaisquer", "duas ocorrências", "corrigida")
    colunas = {"camada": inteiro} | dict.fromkeys(nomes, decimal)
    colunas |= dict.fromkeys(("um vetor explica", "corrigido"), porcento)
    titulo = f"{visivel(' ' + x.palavra.palavra)}: semelhança, antes e depois da correção"
    return Quadro(titulo, colunas, linhas)


class Rebeldes(NamedTuple):
    """Por camada, (camadas,): anisotropia crua, sem as 3 dimensões que mais pesam, e padronizada;
    a parte das 3; e a lacuna da palavra crua e padronizada. `quais`: (camadas, 3)."""

    crua: np.ndarray
    sem_tres: np.ndarray
    padronizada: np.ndarray
    parte: np.ndarray
    quais: np.ndarray
    lacuna: np.ndarray
    lacuna_padronizada: np.ndarray


def rebeldes(x: PalavraLida, f: Fundo) -> Rebeldes:
    """Quanto do cosseno médio é de 3 dimensões, e o que sobra sem elas e padronizando todas.

    Timkey e van Schijndel 2021, seções 3 e 4.
    """
    quais = np.argsort(-f.parcelas, axis=1, kind="stable")[:, :3]  # (c, d) -> (c, 3)
    parte = np.take_along_axis(f.parcelas, quais, 1).sum(1) / f.anisotropia
    padrao = sentidos.cossenos(sentidos.padronizar(x.X, f.A))
    return Rebeldes(
        f.anisotropia,
        sentidos.media_dos_cossenos(sentidos.sem_dimensoes(f.A, quais)),
        sentidos.media_dos_cossenos(sentidos.padronizar(f.A, f.A)),
        parte,
        quais,
        sentidos.separacao(x.K, x.rotulos[None])[0],
        sentidos.separacao(padrao, x.rotulos[None])[0],
    )


def quadro_dos_rebeldes(x: PalavraLida, r: Rebeldes) -> Quadro:
    """As rebeldes em algumas camadas. A parte das três só se lê onde há anisotropia a repartir."""
    linhas = []
    series = (r.sem_tres, r.padronizada, r.lacuna, r.lacuna_padronizada)
    for c in camadas_a_mostrar(x.ultima):
        parte = r.parte[c] if r.crua[c] > 0.05 else None
        nomes = ", ".join(map(str, r.quais[c]))
        linhas.append([c, r.crua[c], nomes, parte, *(serie[c] for serie in series)])
    colunas = {"camada": inteiro, "anisotropia": decimal, "as três": str, "parte delas": porcento}
    colunas |= dict.fromkeys(("sem elas", "padronizada", "dentro − entre", "padronizado"), decimal)
    nome = visivel(" " + x.palavra.palavra)
    return Quadro(f"Três dimensões de {x.X.shape[2]}, e a separação de {nome}", colunas, linhas)


# --- 6: a lente ---------------------------------------------------------------------------


def lente_das_frases(modelo: Modelo, x: PalavraLida, k: int) -> Quadro:
    """Os k tokens que a lente lê na palavra, camada a camada, numa frase de cada sentido."""
    primeiras = [x.palavra.rotulos.index(i) for i in range(len(x.palavra.sentidos))]
    linhas = []
    for c in _camadas_da_lente(x.ultima):
        logits = estados.lente(modelo, x.X[c][primeiras], c == x.ultima)  # (sentidos, V)
        linhas.append([c, *(_lidos(modelo, np.argsort(-z)[:k]) for z in logits)])
    colunas = {"camada": inteiro} | {f"“{s}”": str for s in x.palavra.sentidos}
    return Quadro("A lente numa frase de cada sentido", colunas, linhas)


def _lidos(modelo: Modelo, ids: Iterable[int]) -> str:
    return " ".join(visivel(modelo.tokenizador.texto(int(i))) for i in ids)


def numeros_da_norma(modelo: Modelo) -> tuple[np.ndarray, np.ndarray | float, float]:
    """(escala (d,), desvio (d,) ou 0, eps) da normalização depois do último bloco. Só se
    pergunta a quem tem uma: a lente não é oferecida aos outros."""
    norma = estados.norma_final(modelo)
    escala, desvio = norma.weight.detach().numpy(), getattr(norma, "bias", None)
    eps = getattr(norma, "variance_epsilon", None) or norma.eps
    escala = (
        escala + 1 if modelo.ficha.mais_um else escala
    )  # no Gemma o peso guardado é o que passa de 1
    return escala, 0.0 if desvio is None else desvio.detach().numpy(), float(eps)


def matriz_da_lente(modelo: Modelo) -> tuple[np.ndarray, np.ndarray | float]:
    """(matriz de saída (V, d), viés (V,) ou 0) do modelo montado."""
    cabeca = modelo.completo().get_output_embeddings()
    vies = getattr(cabeca, "bias", None)
    return cabeca.weight.detach().numpy(), 0.0 if vies is None else vies.detach().numpy()


def _camadas_da_lente(ultima: int) -> list[int]:
    # O fim importa mais: é ali que os estados falam a língua da matriz de saída.
    return sorted({0, ultima // 3, 2 * ultima // 3, max(0, ultima - 2), ultima})


def contraste_da_lente(modelo: Modelo, x: PalavraLida, k: int, entre: int = 1000) -> Quadro:
    """Os k tokens que um sentido promete e o outro não, camada a camada (médias das frases).

    Diferença de log-probabilidades médias, só entre os `entre` tokens mais prováveis em algum dos
    sentidos: na cauda, diferenças enormes são ruído.
    """
    linhas = []
    for c in _camadas_da_lente(x.ultima):
        logits = estados.lente(modelo, x.X[c], c == x.ultima).astype(np.float64)  # (n, V)
        alto = logits.max(1, keepdims=True)
        logp = logits - alto - np.log(np.exp(logits - alto).sum(1, keepdims=True))  # (n, V)
        um, outro = (logp[x.rotulos == i].mean(0) for i in (0, 1))  # (V,), (V,)
        provaveis = np.argsort(-np.maximum(um, outro))[:entre]
        ordem = provaveis[np.argsort(-(um - outro)[provaveis], kind="stable")]
        linhas.append([c, _lidos(modelo, ordem[:k]), _lidos(modelo, ordem[::-1][:k])])
    a, b = x.palavra.sentidos[:2]
    colunas = {"camada": inteiro, f"mais em “{a}”": str, f"mais em “{b}”": str}
    return Quadro("O que um sentido promete e o outro não", colunas, linhas)


# --- 7: as frases de quem está ao teclado --------------------------------------------------


def quadro_das_suas(ocorrencias: list[Ocorrencia]) -> Quadro:
    """As frases pedidas: onde a palavra caiu e que pedaços ela tem."""
    linhas = [
        [str(n), " + ".join(map(visivel, o.pedacos)), o.lugar, o.frase]
        for n, o in enumerate(ocorrencias, 1)
    ]
    colunas = {"nº": str, "a palavra": str, "lugar": inteiro, "frase": str}
    return Quadro("As suas frases", colunas, linhas)


def avisos_das_suas(tok: Tokenizador, suas: list[Ocorrencia]) -> list[str]:
    """O que foi ajustado em cada frase, e se a palavra não é a mesma linha da tabela em todas."""
    avisos = [f"Frase {n}: {'; '.join(o.avisos)}." for n, o in enumerate(suas, 1) if o.avisos]
    tokens = [o.ids[o.lugar] for o in suas]
    if len(set(tokens)) > 1:
        linhas = ", ".join(visivel(tok.texto(t)) for t in tokens)
        avisos.append(f"Atenção: não é a mesma linha da tabela em todas ({linhas}).")
    return avisos


def pares_das_suas(X: np.ndarray) -> Quadro:
    """O cosseno de cada par de frases, em algumas camadas. X: (camadas, n, d), n ≥ 2."""
    K = sentidos.cossenos(X)
    pares = combinations(range(X.shape[1]), 2)
    camadas = camadas_a_mostrar(len(X) - 1, quantas=6)
    linhas = [[f"{i + 1} e {j + 1}", *(K[c, i, j] for c in camadas)] for i, j in pares]
    colunas = {"frases": str} | {f"camada {c}": decimal for c in camadas}
    return Quadro("Cosseno da palavra entre as suas frases", colunas, linhas)


def lente_das_suas(modelo: Modelo, X: np.ndarray, k: int) -> Quadro:
    """O que a lente lê em cada frase, nas últimas camadas. X: (camadas, n, d)."""
    ultima, linhas = len(X) - 1, []
    for c in _camadas_da_lente(ultima)[-2:]:
        for n, z in enumerate(estados.lente(modelo, X[c], c == ultima), 1):
            linhas.append([str(n), c, _lidos(modelo, np.argsort(-z)[:k])])
    colunas = {"nº": str, "camada": inteiro, "tokens": str}
    return Quadro("O que a lente lê nas suas frases", colunas, linhas)
