"""Corrigir uma turma: uma pasta por pessoa, nada dela roda fora da caixa, e uma tabela no fim."""

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from nucleo.base import graficos
from nucleo.base.arquivos import e_atalho
from nucleo.base.caderno import Quadro
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import contado, porcento
from nucleo.exercicios import caixa, juiz, previsoes, registro
from nucleo.exercicios.bancada import Bancada
from nucleo.exercicios.caixa import Caixa
from nucleo.exercicios.juiz import Veredito
from nucleo.exercicios.tipos import Pergunta, Tarefa

MAIOR_TURMA = 2_000  # pastas; acima disso a pasta apontada não é a de uma turma


@dataclass
class Boletim:
    """O que se apurou de uma pessoa: os vereditos por tarefa e as previsões por pergunta.

    `previsoes` vale {id: "acertou" | "quase" | "errou" | "compare"}; `problema` é o que impediu
    de corrigir a pasta inteira, ou "".
    """

    nome: str
    vereditos: dict[str, Veredito] = field(default_factory=dict)
    previsoes: dict[str, str] = field(default_factory=dict)
    problema: str = ""

    @property
    def passou(self) -> int:
        """Quantas funções passaram."""
        return sum(v.passou for v in self.vereditos.values())

    @property
    def acertou(self) -> int:
        """Quantas previsões se confirmaram."""
        return sum(v == previsoes.CERTA for v in self.previsoes.values())


def _todas(apostilas: list[int]) -> list[Tarefa]:
    return [t for a in apostilas for t in registro.tarefas(a)]


def seguro(texto: str) -> str:
    """O texto de alguém para tabelas e CSV: sem caracteres de controle, e nunca uma fórmula.

    Uma célula que começa por = + - ou @ seria executada pela planilha que abrir o CSV.
    """
    limpo = "".join(c if c.isprintable() else "?" for c in texto)
    return "'" + limpo if limpo.startswith(("=", "+", "-", "@")) else limpo


def pastas_da_turma(pasta: Path) -> list[Path]:
    """As pastas das pessoas, em ordem alfabética. Atalhos e pastas escondidas ficam de fora.

    Erros: `ErroDoUsuario` se a pasta não existe, está vazia ou tem pastas demais.
    """
    if not pasta.is_dir():
        raise ErroDoUsuario(
            f"Não achei a pasta {pasta}.",
            "A correção espera uma pasta com uma subpasta por pessoa.",
            "Confira o caminho:  python lab/corrigir.py PASTA_DA_TURMA",
        )
    pastas = sorted(
        (p for p in pasta.glob("[!.]*") if p.is_dir() and not e_atalho(p)),
        key=lambda p: p.name.casefold(),
    )
    if not pastas or len(pastas) > MAIOR_TURMA:
        raise ErroDoUsuario(
            f"{pasta} não parece a pasta de uma turma: tem {len(pastas)} subpastas.",
            "Cada pessoa entrega a sua pasta minhas_respostas, com o nome dela.",
            "Junte as entregas assim:  turma/ana/02_1_consulta.py, turma/bia/…",
        )
    return pastas


def corrigir_funcoes(
    pasta: Path, tarefas: list[Tarefa], caixa_: Caixa, semente: int
) -> dict[str, Veredito]:
    """{id: veredito} das funções de uma pessoa. O que falta ou é estranho nem entra na caixa."""
    lidas = [(t, *caixa.ler_resposta(pasta / t.arquivo)) for t in tarefas]
    rodados = caixa_.vereditos([(t, texto) for t, texto, engano in lidas if not engano], semente)
    return {t.id: juiz.nao_rodou(t, engano) if engano else next(rodados) for t, _, engano in lidas}


def ler_previsoes(pasta: Path, apostila: int) -> dict[str, str]:
    """{id: texto} das previsões de uma pessoa; vazio se não há arquivo ou ele não se deixa ler."""
    texto, engano = caixa.ler_resposta(pasta / f"{apostila:02d}_previsoes.json")
    if engano:
        return {}
    try:
        return {i: r["texto"] for i, r in previsoes.ler_respostas(texto).items()}
    except (ValueError, RecursionError):
        return {}


def perguntas_respondidas(pastas: list[Path], apostilas: list[int]) -> list[Pergunta]:
    """As perguntas que alguém da turma respondeu, fora as de texto livre: só essas se medem."""
    quais = []
    for a in apostilas:
        respondidas = set().union(*(ler_previsoes(p, a) for p in pastas))
        quais += [p for p in registro.perguntas(a) if p.id in respondidas and p.tipo != "texto"]
    return quais


def medir_perguntas(
    perguntas: list[Pergunta], bancada: Bancada, progresso=lambda *_: None
) -> tuple[dict, list[str]]:
    """({id: Medida}, [o que não deu para medir]). Mede-se uma vez, para a turma inteira."""
    medidas, faltas = {}, []
    for n, p in enumerate(perguntas):
        progresso("Medindo as perguntas", n, len(perguntas))
        try:
            medidas[p.id] = p.medir(bancada)
        except ErroDoUsuario as erro:
            faltas.append(f"{p.id}: {erro.o_que}")
    progresso("Medindo as perguntas", len(perguntas), len(perguntas))
    return medidas, faltas


def corrigir_previsoes(
    pasta: Path, apostila: int, medidas: dict, bancada: Bancada
) -> dict[str, str]:
    """{id: veredito} das previsões de uma pessoa, refeito aqui: o que o arquivo diz não conta."""
    respostas = ler_previsoes(pasta, apostila)
    vereditos = {}
    for p in registro.perguntas(apostila):
        if p.id not in respostas or p.id not in medidas:
            continue
        vereditos[p.id] = previsoes.ERRADA
        with contextlib.suppress(previsoes.NaoEntendi):
            valor = previsoes.entender(p, respostas[p.id])
            vereditos[p.id] = previsoes.julgar(p, valor, medidas[p.id], bancada).veredito
    return vereditos


def corrigir_turma(
    pastas: list[Path],
    apostilas: list[int],
    caixa_: Caixa,
    semente: int,
    medidas: dict,
    bancada: Bancada,
    progresso: Callable = lambda *_: None,
) -> list[Boletim]:
    """Um boletim por pasta, na ordem; um processo por núcleo de cada vez."""
    tarefas = _todas(apostilas)
    # As bibliotecas das respostas certas sobem aqui, uma vez, e não em duas linhas ao mesmo tempo.
    for t in tarefas:
        t.esperado(*juiz.argumentos(registro.casos(t, semente)[0]))
    feitos, tranca = 0, threading.Lock()

    def uma(pasta: Path) -> Boletim:
        nonlocal feitos
        boletim = Boletim(seguro(pasta.name[:80]))
        try:
            boletim.vereditos = corrigir_funcoes(pasta, tarefas, caixa_, semente)
            for a in apostilas:
                boletim.previsoes |= corrigir_previsoes(pasta, a, medidas, bancada)
        except OSError as erro:
            boletim.problema = f"a pasta não se deixou ler ({erro.strerror or erro})"
        # Um defeito nosso com a entrega de uma pessoa não pode calar a correção das outras: fica
        # dito na linha dela, com o nome do erro.
        except Exception as erro:
            boletim.problema = (
                f"a correção falhou, relate o defeito ({type(erro).__name__}: {erro})"[:200]
            )
        with tranca:
            feitos += 1
            progresso("Corrigindo", feitos, len(pastas))
        return boletim

    equipe = ThreadPoolExecutor(os.cpu_count())
    try:
        feitas = [equipe.submit(uma, p) for p in pastas]
        # Aos poucos: o sistema pode entregar o Ctrl-C a outra thread, e quem espera sem hora não o ouve.
        while wait(feitas, timeout=0.2).not_done:
            pass
        return [f.result() for f in feitas]
    except KeyboardInterrupt:
        # Quem ainda não começou não começa, e quem está rodando para agora.
        equipe.shutdown(wait=False, cancel_futures=True)
        caixa.encerrar_todas()
        raise
    finally:
        equipe.shutdown()


# --- o que se mostra -----------------------------------------------------------------------


def quadro_da_turma(boletins: list[Boletim], apostilas: list[int]) -> Quadro:
    """Uma linha por pessoa: quantas passou em cada apostila, as previsões, e onde parou."""
    linhas = []
    for b in boletins:
        partes = []
        for a in apostilas:
            ids = [t.id for t in registro.tarefas(a)]
            certas = sum(b.vereditos[i].passou for i in ids if i in b.vereditos)
            partes.append(f"{certas} de {len(ids)}")
        previstas = f"{b.acertou} de {len(b.previsoes)}" if b.previsoes else "—"
        linhas.append([b.nome, *partes, previstas, b.problema or _principal(b)])
    funcoes = [f"funções {a:02d}" for a in apostilas]
    colunas = ["pessoa", *funcoes, "previsões", "engano mais repetido"]
    return Quadro("A turma", dict.fromkeys(colunas, str), linhas)


FORA = ("por_fazer", "sem_arquivo")  # não são enganos: é o que ainda não se fez


def _principal(b: Boletim) -> str:
    contagem = Counter(
        v.engano for v in b.vereditos.values() if not v.passou and v.engano not in FORA
    )
    if not contagem:
        return "" if b.passou == len(b.vereditos) else "ainda por fazer"
    [(mais, _)] = contagem.most_common(1)
    return next(v.nome_do_engano for v in b.vereditos.values() if v.engano == mais)


def notas(boletins: list[Boletim], apostilas: list[int]) -> tuple[list[str], list[list]]:
    """(colunas, linhas) do CSV: por pessoa, 1 ou 0 em cada função, e o total."""
    tarefas = _todas(apostilas)
    colunas = ["pessoa", *[t.arquivo.removesuffix(".py") for t in tarefas], "passou", "previsoes_certas",
               "previsoes_feitas", "problema"]  # fmt: skip
    linhas = [
        [b.nome, *[int(t.id in b.vereditos and b.vereditos[t.id].passou) for t in tarefas],
         b.passou, b.acertou, len(b.previsoes), b.problema]
        for b in boletins
    ]  # fmt: skip
    return colunas, linhas


def detalhes(boletins: list[Boletim]) -> tuple[list[str], list[list]]:
    """(colunas, linhas) do CSV de retorno: uma linha por função que não passou, com o porquê."""
    linhas = [
        [b.nome, v.tarefa.arquivo, v.engano, v.nome_do_engano, v.explicacao,
         seguro(v.chamado), seguro(v.voltou), v.esperado]
        for b in boletins for v in b.vereditos.values() if not v.passou
    ]  # fmt: skip
    colunas = ["pessoa", "arquivo", "engano", "nome", "explicacao", "chamado", "voltou", "esperado"]
    return colunas, linhas


def quadro_dos_enganos(boletins: list[Boletim], quantos: int = 10) -> Quadro:
    """Os enganos mais comuns da turma: em que funções, quantas pessoas, e que parte da turma."""
    pessoas, onde = Counter(), {}
    for b in boletins:
        erradas = [v for v in b.vereditos.values() if not v.passou and v.engano not in FORA]
        vistos = {v.nome_do_engano for v in erradas}
        # Quem se enganou igual em três funções é uma pessoa só.
        pessoas.update(vistos)
        for v in erradas:
            onde.setdefault(v.nome_do_engano, Counter())[v.tarefa.titulo] += 1
    linhas = []
    for nome, n in pessoas.most_common(quantos):
        titulos = [t for t, _ in onde[nome].most_common()]
        mais = f" e mais {len(titulos) - 2}" if len(titulos) > 2 else ""
        linhas.append([nome, "; ".join(titulos[:2]) + mais, n, n / len(boletins)])
    return Quadro(
        "Os enganos mais comuns",
        {"engano": str, "onde": str, "pessoas": str, "da turma": porcento},
        linhas,
    )


def quadro_das_previsoes(boletins: list[Boletim], apostilas: list[int]) -> Quadro | None:
    """Por pergunta, quantos previram e quantos acertaram, da menos acertada em diante."""
    linhas = []
    for a in apostilas:
        for p in registro.perguntas(a):
            vistos = [b.previsoes[p.id] for b in boletins if p.id in b.previsoes]
            if vistos and p.tipo != "texto":
                certas = sum(v == previsoes.CERTA for v in vistos)
                linhas.append([f"{a:02d}", p.secao, p.enunciado, len(vistos), certas / len(vistos)])
    linhas.sort(key=lambda x: x[-1])
    colunas = {
        "apostila": str,
        "seção": str,
        "pergunta": str,
        "previram": str,
        "acertaram": porcento,
    }
    return Quadro("As previsões, da mais enganosa em diante", colunas, linhas) if linhas else None


def figura_da_turma(boletins: list[Boletim], apostilas: list[int]):
    """Barras: por função, quantas pessoas passaram, erraram e não fizeram."""
    tarefas = _todas(apostilas)

    def contar(condicao) -> list[int]:
        return [
            sum(t.id in b.vereditos and condicao(b.vereditos[t.id]) for b in boletins)
            for t in tarefas
        ]

    partes = {
        "passou": contar(lambda v: v.passou),
        "errou": contar(lambda v: not v.passou and v.engano not in FORA),
        "não fez": contar(lambda v: v.engano in FORA),
    }
    rotulos = [f"{t.apostila:02d}.{t.numero} {t.titulo}" for t in tarefas]
    titulo = f"A turma, função por função ({contado(len(boletins), 'pessoa')})"
    from matplotlib.ticker import MaxNLocator

    figura = graficos.pilhas(rotulos, partes, titulo, "pessoas", len(boletins), "")
    # Não há meia pessoa: só números inteiros no eixo.
    figura.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    return figura
