"""O mesmo veredito em qualquer processador: as lições, com as contas de máquinas antigas e novas.

As bibliotecas escolhem as instruções pelo processador, e cada escolha soma em outra ordem: os últimos
dígitos mudam, e às vezes mudam de uma execução para outra. As variáveis de `MAQUINAS` fazem esta
máquina passar por outras. De cada conferência fica o pior |medido − esperado| sobre a tolerância, em
todas as máquinas e vezes; da lição 99, os vereditos.
"""

import os
import shutil
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from comum import RAIZ, Assunto, Medida, executar
from nucleo.base import resultado

_INSTRUCOES = {
    "SSE": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NUMBA_CPU_NAME": "nehalem",
    },
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_NAME": "haswell",
    },
}


def _com_threads(n: int) -> dict[str, str]:
    variaveis = {f"{nome}_NUM_THREADS": str(n) for nome in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    # Quem espera, dorme: há mais threads que núcleos, e girar à espera roubaria o tempo dos outros.
    return variaveis | {"OMP_WAIT_POLICY": "PASSIVE"}


MAQUINAS = {
    f"{instrucoes}, {n} thread{'s' if n > 1 else ''}": variaveis | _com_threads(n)
    for instrucoes, variaveis in _INSTRUCOES.items()
    for n in (1, 2)
}

# De cada lição, os modelos. Com None ela escolhe sozinha (a 06_posicoes abre o smollm2 e o mini), ou
# não usa nenhum. As que mais demoram vêm antes: no fim, ninguém espera por uma só.
LICOES = {
    "06_extrapolacao": (None,),
    "06_projecoes": ("mini", "smollm2"),
    "02_treino": (None,),
    "06_posicoes": (None,),
    "02_contexto": ("mini", "smollm2"),
    "02_embeddings": ("mini", "smollm2"),
}
# Sem instruções largas esta leva minutos: roda só na primeira máquina e na última, que são os extremos, e
# nas do meio a 99 lê a referência.
SO_NOS_EXTREMOS = ("06_extrapolacao",)
COM_RAPIDO = ("02_treino", "06_posicoes", "06_extrapolacao")
# O que já se viu mudar de uma vez para outra na mesma máquina: a soma dos dois gradientes.
VARIAM, VEZES = ("02_treino", "--secao", "2"), 10
METADE = 0.5  # do que a tolerância dá, gasta-se no máximo isto


def medir(rapido: bool = False) -> Assunto:
    """Todas as lições em todas as máquinas, e a 99 por último; com `rapido`, só as duas pontas e o mini."""
    nomes = list(MAQUINAS)
    extremos = [nomes[0], nomes[-1]]
    escolhidas = extremos if rapido else nomes
    modelos = ("mini",) if rapido else ("mini", "smollm2")
    vezes = 2 if rapido else VEZES
    with tempfile.TemporaryDirectory() as temporaria:
        casa = Path(temporaria)
        licoes = [
            (
                maquina,
                modelo,
                [licao, *(["--rapido"] if rapido and licao in COM_RAPIDO else [])],
                "",
            )
            for licao, dela in LICOES.items()
            for modelo in dela
            if modelo in (None, *modelos)
            for maquina in (extremos if licao in SO_NOS_EXTREMOS else escolhidas)
        ]
        licoes += [(m, None, list(VARIAM), f"vez {n}") for m in escolhidas for n in range(vezes)]
        feitas = _rodar(casa, licoes)
        for maquina in escolhidas:  # a 99 de um modelo lê o que as lições sem modelo mediram
            for modelo in modelos:
                shutil.copytree(
                    _pasta(casa, maquina, None), _pasta(casa, maquina, modelo), dirs_exist_ok=True
                )
        noventa_e_nove = [
            (m, modelo, ["99_conferir"], "") for m in escolhidas for modelo in modelos
        ]
        feitas |= _rodar(casa, noventa_e_nove)
        lidos = {
            pedido: resultado.abrir(pasta / "resultado.json")
            for pedido, (pasta, _) in feitas.items()
        }
    medidas = [
        Medida(nome, [sum(s for (m, *_), (_, s) in feitas.items() if m == nome)])
        for nome in escolhidas
    ]
    a = Assunto("maquinas", "As lições em outras máquinas (a soma dos segundos)", nomes[0], medidas)
    julgar(a, lidos)
    return a


def _pasta(casa: Path, maquina: str, modelo: str | None) -> Path:
    return casa / maquina / (modelo or "sem modelo")


def _rodar(casa: Path, pedidos: list[tuple]) -> dict[tuple, tuple[Path, float]]:
    """{(máquina, modelo, comando, vez): (pasta dos resultados, segundos)}, tantos juntos quantos núcleos."""

    def um(pedido):
        maquina, modelo, (licao, *opcoes), vez = pedido
        saidas = _pasta(casa, maquina, modelo)
        comando = [str(RAIZ / "lab" / f"{licao}.py"), *opcoes, "--sem-graficos"]
        if modelo:
            comando += ["--modelo", modelo]
        onde = casa / vez / maquina / licao if vez else saidas / licao
        feita = executar(
            [*comando, "--saida", str(onde)], MAQUINAS[maquina] | {"LAB_SAIDAS": str(saidas)}
        )
        print(f"  {licao} {modelo or ''} {vez} ({maquina}): {feita.segundos:.0f} s", flush=True)
        return (maquina, modelo, licao, vez), (onde, feita.segundos)

    with ThreadPoolExecutor(os.cpu_count()) as juntos:
        return dict(juntos.map(um, pedidos))


def julgar(a: Assunto, lidos: dict[tuple, dict]) -> None:
    """As conferências e os vereditos de `lidos` {(máquina, modelo, lição, vez): resultado.json} viram
    a tabela, as linhas do aceite e as notas."""
    fracoes, falsas, vereditos = defaultdict(dict), [], defaultdict(lambda: defaultdict(list))
    for (maquina, modelo, licao, vez), dados in lidos.items():
        for r in dados["resultados"]:
            chave = (licao, modelo or "", r["id"])
            if "veredito" in r:
                vereditos[chave][r["veredito"]].append(maquina)
            if "tolerancia" not in r:
                continue
            if not r["confere"]:
                falsas.append(
                    f"{licao} {modelo or ''} {r['id']} ({r['o_que']}), em {maquina} {vez}"
                )
            if r["tolerancia"] > 0:  # sem tolerância pede-se igualdade: só se pode conferir ou não
                gasto = abs(r["valor"] - r["esperado"]) if r["valor"] is not None else float("inf")
                medida = (gasto / r["tolerancia"], gasto, r["tolerancia"], r["o_que"])
                fracoes[chave][maquina, vez] = medida
    linhas = []
    for (licao, modelo, id_), por_vez in fracoes.items():
        (onde, _), (fracao, gasto, tolerancia, o_que) = max(por_vez.items(), key=lambda x: x[1])
        distintos = len({gasto for _, gasto, *_ in por_vez.values()})
        linhas.append(
            [licao, modelo, id_, o_que, gasto, tolerancia, fracao, onde, distintos, len(por_vez)]
        )
    linhas.sort(key=lambda x: -x[6])
    colunas = ["licao", "modelo", "id", "o_que", "pior_diferenca", "tolerancia", "fracao", "em"]
    a.tabelas["conferencias"] = ([*colunas, "valores_distintos", "vezes"], linhas)
    mudam = {chave: dict(quais) for chave, quais in vereditos.items() if len(quais) > 1}
    a.criterio("conferências que não conferem", len(falsas), 0, unidade="")
    a.criterio("a mais gasta das tolerâncias", linhas[0][6], METADE, unidade="da tolerância")
    a.criterio("vereditos que mudam com a máquina", len(mudam), 0, unidade="")
    a.notas += falsas + [f"{' '.join(chave)}: {quais}" for chave, quais in mudam.items()]
    a.notas += [
        f"{fracao:.3f} da tolerância {t:.1e}: {licao} {modelo} {id_}, {o_que} ({em})"
        for licao, modelo, id_, o_que, _, t, fracao, em, *_ in linhas[:12]
    ]
    mexidas = sum(linha[8] > 1 for linha in linhas)
    a.notas.append(
        f"{len(linhas)} conferências com tolerância; em {mexidas} o valor muda de máquina ou de vez."
    )
    a.notas.append(f"{len(vereditos)} vereditos, iguais em todas as máquinas, menos {len(mudam)}.")
