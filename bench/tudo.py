"""O bench: tempo, memória e bytes do laboratório contra o que se usaria no lugar dele.

Como rodar:  make bench                             tudo (uns 13 minutos numa máquina quieta)
             python bench/tudo.py --rapido          poucas repetições: para ver se funciona
             python bench/tudo.py --so vizinhos     um assunto (repete)
             python bench/tudo.py --limpar          apaga os checkpoints construídos (uns 1,5 GB)
O que fica:  outputs/bench/ (tabela.csv, criterios.csv, bench.json e bench.png)
Código de saída: 0 se todas as linhas do aceite conferem; 1 se alguma não confere.
"""

import csv
import gc
import importlib
import json
import sys
from pathlib import Path

import comum
from comum import Assunto, Criterio
from palco.erros import rodar_com_erros_gentis
from palco.opcoes import Analisador

ASSUNTOS = ("licao", "licoes", "crescimento", "hub", "vizinhos", "analogias", "rope", "treino")
# Demoram tanto quanto todos os outros, e dizem respeito a quem mantém: só com --so.
SO_PEDIDOS = ("maquinas",)


def numero(x: float, casas: int = 2) -> str:
    """Com vírgula e, se for pequeno, com mais casas: 0.0123 -> '0,0123'."""
    return (f"{x:.{casas}f}" if x >= 0.1 or x == 0 else f"{x:.3g}").replace(".", ",")


def tempo(segundos: float) -> str:
    """Na unidade que se lê: '3,2 s', '14,1 ms'."""
    return f"{numero(segundos)} s" if segundos >= 1 else f"{numero(1000 * segundos)} ms"


def mostrar(a: Assunto, console) -> None:
    """A tabela de um assunto na tela: mediana, quartis, razão e pico."""
    from rich.table import Table

    tabela = Table(title=a.titulo, title_justify="left")
    tabela.add_column("o que")
    for nome in ("mediana", "1º a 3º quartil", f"× {a.base}", "pico", "vezes"):
        tabela.add_column(nome, justify="right")
    base = a[a.base].mediana
    for m in a.medidas:
        pico = "—" if m.pico is None else f"{m.pico / 1e6:.0f} MB"
        quartis = " a ".join(map(tempo, m.quartis))
        razao = numero(m.mediana / base)
        tabela.add_row(m.nome, tempo(m.mediana), quartis, razao, pico, str(len(m.segundos)))
    console.print(tabela)
    for nota in a.notas:
        console.print(f"  {nota}", highlight=False)


def linha_do_criterio(c: Criterio) -> list[str]:
    """['o que', 'medido', 'limite', 'confere'] de uma linha do aceite."""
    limite = f"{'≥' if c.pelo_menos else '≤'} {numero(c.limite)} {c.unidade}".strip()
    return [
        c.nome,
        f"{numero(c.medido)} {c.unidade}".strip(),
        limite,
        "sim" if c.confere else "NÃO",
    ]


def mostrar_criterios(assuntos: list[Assunto], console) -> bool:
    """A tabela do aceite; True se todas as linhas conferem."""
    from rich.table import Table

    tabela = Table(title="O aceite", title_justify="left")
    for nome, lado in (
        ("o que", "left"),
        ("medido", "right"),
        ("limite", "right"),
        ("confere", "left"),
    ):
        tabela.add_column(nome, justify=lado)
    todos = [c for a in assuntos for c in a.criterios]
    for c in todos:
        tabela.add_row(*linha_do_criterio(c), style="" if c.confere else "bold red")
    console.print(tabela)
    return all(c.confere for c in todos)


def gravar(assuntos: list[Assunto], maquina: dict, pasta: Path) -> None:
    """tabela.csv, criterios.csv, bench.json e bench.png em `pasta`."""
    pasta.mkdir(parents=True, exist_ok=True)
    medidas = [(a, m) for a in assuntos for m in a.medidas]
    _csv(
        pasta / "tabela.csv",
        ["assunto", "o_que", "mediana_s", "q1_s", "q3_s", "razao", "base", "pico_bytes", "vezes"],
        [
            [a.nome, m.nome, m.mediana, *m.quartis, m.mediana / a[a.base].mediana, a.base, m.pico]
            + [len(m.segundos)]
            for a, m in medidas
        ],
    )
    criterios = [(a, c) for a in assuntos for c in a.criterios]
    _csv(
        pasta / "criterios.csv",
        ["assunto", "o_que", "medido", "limite", "sentido", "unidade", "confere"],
        [
            [a.nome, c.nome, c.medido, c.limite, ">=" if c.pelo_menos else "<=", c.unidade]
            + ["sim" if c.confere else "não"]
            for a, c in criterios
        ],
    )
    for a in assuntos:
        for nome, (colunas, linhas) in a.tabelas.items():
            _csv(pasta / f"{a.nome}_{nome}.csv", colunas, linhas)
    dados = {
        "maquina": maquina,
        "assuntos": [
            {
                "nome": a.nome,
                "titulo": a.titulo,
                "base": a.base,
                "medidas": [vars(m) | {"mediana": m.mediana} for m in a.medidas],
                "criterios": [vars(c) | {"confere": c.confere} for c in a.criterios],
                "notas": a.notas,
                "extras": a.extras,
            }
            for a in assuntos
        ],
    }
    texto = json.dumps(dados, ensure_ascii=False, indent=1) + "\n"
    (pasta / "bench.json").write_text(texto, encoding="utf-8", newline="\n")
    (pasta / "bench.png").write_bytes(figura(assuntos))


def _csv(arquivo: Path, colunas: list[str], linhas: list[list]) -> None:
    with arquivo.open("w", encoding="utf-8", newline="") as f:
        escritor = csv.writer(f, lineterminator="\n")
        escritor.writerow(colunas)
        escritor.writerows(linhas)


def figura(assuntos: list[Assunto]) -> bytes:
    """Cada linha do aceite como fração do limite: à esquerda da linha, confere."""
    from nucleo.base import graficos as g

    nomes, gastas = fracoes(assuntos)
    maior = 3.0  # o que passa muito do limite não esconde o resto
    with g.estilo({"axes.grid.axis": "x"}):
        desenho = g.folha(13, 2.2 + 0.5 * len(nomes))
        eixo = desenho.subplots()
        cores = [g.AZUL if f <= 1 else g.VERMELHO for f in gastas]
        barras = eixo.barh(range(len(nomes)), [min(f, maior) for f in gastas], color=cores)
        textos = [f"{f:.2f}".replace(".", ",") + (" →" if f > maior else "") for f in gastas]
        eixo.set_yticks(range(len(nomes)), nomes)
        eixo.bar_label(barras, textos, padding=4, fontsize=12)
        eixo.axvline(1, color=g.PRETO, linestyle="--", linewidth=2)
        eixo.set_xlim(0, maior + 0.3)
        eixo.invert_yaxis()
        eixo.set(title="O aceite: quanto do limite foi gasto")
        eixo.set_xlabel("fração do limite (1: no limite)")
    return g.png(desenho)


def fracoes(assuntos: list[Assunto]) -> tuple[list[str], list[float]]:
    """(nomes, quanto do limite cada critério gastou): 1 é o limite, menos confere. Onde o limite é um
    piso, a fração se inverte; com limite 0 (diferenças), 0 confere e qualquer outra gasta tudo."""
    nomes, valores = [], []
    for c in (c for a in assuntos for c in a.criterios):
        if c.limite == 0:
            fracao = 0.0 if c.confere else 2.0
        else:
            fracao = c.limite / c.medido if c.pelo_menos else c.medido / c.limite
        nomes.append(c.nome)
        valores.append(fracao)
    return nomes, valores


def main() -> int:
    p = Analisador(prog="tudo.py", pasta="bench", description=__doc__)
    p.add_argument(
        "--so",
        action="append",
        choices=(*ASSUNTOS, *SO_PEDIDOS),
        help="mede só este assunto (repete)",
    )
    p.add_argument("--rapido", action="store_true", help="poucas repetições, para ver se funciona")
    p.add_argument("--limpar", action="store_true", help="apaga os checkpoints e sai")
    p.add_argument("--saida", type=Path, default=comum.SAIDA, help="padrão: outputs/bench")
    args = p.parse_args()
    if args.limpar:
        import checkpoint

        checkpoint.limpar()
        return 0

    from rich.console import Console

    from palco.tela import preparar_fluxos

    preparar_fluxos()
    console = Console(width=None if sys.stdout.isatty() else 120)
    maquina = comum.maquina()
    console.print(
        f"{maquina['processador']} · {maquina['nucleos']} núcleos · {maquina['threads']} threads · "
        f"carga {maquina['carga']}",
        highlight=False,
    )
    console.print(" · ".join(f"{n} {v}" for n, v in maquina["versoes"].items()), highlight=False)
    assuntos = []
    for nome in args.so or ASSUNTOS:
        console.print(f"[dim]medindo: {nome}…[/]")
        assuntos.append(importlib.import_module(nome).medir(args.rapido))
        mostrar(assuntos[-1], console)
        gc.collect()  # as tabelas de um assunto não pesam no seguinte
    certo = mostrar_criterios(assuntos, console)
    gravar(assuntos, maquina | {"rapido": args.rapido}, args.saida)
    console.print(f"tabela.csv, criterios.csv, bench.json e bench.png em {args.saida}")
    return 0 if certo else 1


if __name__ == "__main__":
    sys.exit(rodar_com_erros_gentis(main))
