"""Preveja antes de rodar: pergunta, tranca a previsão com a hora, mede, e só então mostra."""

import argparse
import os
import sys
from pathlib import Path

from nucleo.base.arquivos import conferir_pasta
from nucleo.base.erros import ErroDoUsuario
from nucleo.exercicios import previsoes, registro
from nucleo.exercicios.bancada import Bancada
from nucleo.exercicios.previsoes import CERTA, LIVRE, PERTO, Diario, NaoEntendi
from nucleo.exercicios.tipos import Pergunta
from palco import sinais
from palco.exercicios_tela import barra, diga, item, rode, tela, titulo
from palco.tela import barra_de_progresso

CORES = {CERTA: "bold green", PERTO: "bold yellow", LIVRE: "bold cyan"}
SAIR = {"sair", "sai", "fim", "quit", "exit", "q"}
PULAR = {"pular", "pula", "depois"}


def sessao(apostila: int, pasta: Path, args: argparse.Namespace) -> int:
    """Uma sessão inteira, com perguntas, --respostas, --rever ou --recomecar. Devolve a saída."""
    perguntas = registro.perguntas(apostila)
    # O engano de quem digitou o arquivo aparece já, antes de qualquer medida ou gravação.
    prontas = _ler_arquivo(args.respostas, perguntas) if args.respostas else None
    if args.recomecar:
        guardado = previsoes.recomecar(pasta, apostila)
        antigas = f"Guardei as previsões antigas em `{guardado.name}`." if guardado else ""
        diga(antigas or "Não havia previsões guardadas.")
    diario = Diario.abrir(pasta, apostila)
    if args.rever:
        return rever(perguntas, diario, apostila)
    conferir_pasta(pasta)  # antes da primeira resposta, e não depois dela
    titulo(f"Apostila {apostila:02d} · preveja antes de rodar")
    if prontas is None:
        diga("Responda antes de ver. Cada previsão é guardada com a hora e não muda mais; depois se "
             "mede ao vivo. Números com vírgula ou ponto. `pular` deixa para depois, `sair` guarda e sai.")  # fmt: skip
    with barra_de_progresso() as progresso:
        bancada = Bancada(args.modelo, progresso)
        try:
            _percorrer(perguntas, diario, bancada, prontas)
        except (KeyboardInterrupt, EOFError, _Sair) as fim:
            return _interrompida(fim, perguntas, diario, apostila)
    return _fim(perguntas, diario, apostila)


class _Sair(Exception):
    pass


def _percorrer(perguntas, diario: Diario, bancada: Bancada, prontas: dict | None) -> None:
    for n, pergunta in enumerate(perguntas, 1):
        guardada = diario.respostas.get(pergunta.id)
        if guardada and "veredito" in guardada:
            continue
        if prontas is not None and not guardada and pergunta.id not in prontas:
            continue  # o arquivo não a responde: fica para depois, e o fim diz quantas
        titulo(f"{n} de {len(perguntas)} · seção {pergunta.secao}")
        diga(pergunta.enunciado)
        for opcao in pergunta.opcoes:
            item(f"  {opcao.chave})", opcao.texto, "cyan")
        if guardada:
            # Trancada numa sessão que caiu entre a previsão e a medida: só falta medir.
            diga(f"Você já tinha previsto, em {_hora(guardada['quando'])}.")
        elif prontas is not None:
            guardada = diario.trancar(pergunta, prontas[pergunta.id])
        else:
            texto = _perguntar(pergunta)
            if texto is None:
                continue
            try:
                guardada = diario.trancar(pergunta, texto)
            except ValueError:
                diga("Esta já foi respondida em outra janela; vale a primeira.", "yellow")
                continue
            diga(f"Previsão trancada às {_hora(guardada['quando'])[-8:]}. Medindo…", "dim")
        _medir_e_mostrar(pergunta, guardada, diario, bancada)
        feitas = sum(p.id in diario.respostas for p in perguntas)
        barra(feitas, len(perguntas), "previsões")


def _perguntar(pergunta: Pergunta) -> str | None:
    """O que a pessoa digitou, já entendido (senão pergunta de novo); None para `pular`."""
    como = {
        "escolha": "letra", "numero": pergunta.unidade or "número",
        "ordem": "letras, da primeira à última", "texto": "uma linha",
    }[pergunta.tipo]  # fmt: skip
    while True:
        tela.print(f"Sua previsão ({como}): ", end="", style="bold")
        sys.stdout.flush()
        linha = sys.stdin.readline()
        if not linha:
            raise EOFError
        texto = linha.strip()
        if not sys.stdin.isatty():
            tela.print(texto, markup=False)
        if texto.casefold() in SAIR:
            raise _Sair
        if texto.casefold() in PULAR:
            return None
        try:
            valor = previsoes.entender(pergunta, texto)
        except NaoEntendi as motivo:
            diga(f"Não entendi. {motivo}", "yellow")
            continue
        if pergunta.tipo == "numero":
            item("Entendi:", previsoes.mostrar_previsto(pergunta, valor), "dim")
        return texto


def _medir_e_mostrar(pergunta: Pergunta, guardada: dict, diario: Diario, bancada: Bancada) -> None:
    try:
        valor = previsoes.entender(pergunta, guardada["texto"])
        medida = pergunta.medir(bancada)
        _apresentar(bancada)
        resultado = previsoes.julgar(pergunta, valor, medida, bancada)
    except NaoEntendi as motivo:
        # Só acontece com um diário mexido à mão: a previsão fica como está, sem veredito.
        diga(f"A previsão guardada não é uma resposta desta pergunta. {motivo}", "yellow")
        return
    except ErroDoUsuario as erro:
        diga(f"**Não deu para medir agora.** {erro.o_que} {erro.o_que_fazer}", "yellow")
        diga("A previsão continua trancada; rode de novo quando der.", "dim")
        return
    mostrar(pergunta, resultado)
    diario.anotar(pergunta, resultado)


def _apresentar(bancada: Bancada) -> None:
    """Uma vez por sessão, quando um modelo se abre: quem responde, de onde veio e por quê."""
    modelo = bancada.__dict__.get("modelo")
    if modelo is None or "apresentado" in bancada.memoria:
        return
    bancada.memoria["apresentado"] = True
    motivo = f" Por quê: {modelo.motivo}." if modelo.motivo else ""
    diga(f"Quem responde: **{modelo.nome}** — {modelo.origem}.{motivo}", "dim")


def mostrar(pergunta: Pergunta, r: previsoes.Resultado) -> None:
    """previsto · medido · veredito, e por quê."""
    tela.print()
    item("previsto", r.previsto)
    item("medido", f"{r.medido}  ({r.fonte})")
    item("veredito", r.veredito, CORES.get(r.veredito, "bold red"))
    if r.explicacao:
        item("", r.explicacao)
    for ponto in r.pontos:
        item("compare", ponto, "cyan")
    item("por quê", r.porque)
    tela.print()


def rever(perguntas, diario: Diario, apostila: int) -> int:
    """Mostra tudo o que já se previu, com a hora, sem medir de novo."""
    titulo(f"Apostila {apostila:02d} · o que você previu")
    for n, p in enumerate(perguntas, 1):
        if not (g := diario.respostas.get(p.id)):
            continue
        tela.print()
        diga(f"**{n}.** {p.enunciado}")
        try:
            previsto = previsoes.mostrar_previsto(p, previsoes.entender(p, g["texto"]))
        except NaoEntendi:
            previsto = g["texto"]
        item("previsto", f"{previsto}  ({_hora(g.get('quando', ''))})")
        if "veredito" in g:
            item("medido", f"{g['medido']}  ({g['fonte']})")
            item("veredito", g["veredito"], CORES.get(g["veredito"], "bold red"))
            if g.get("explicacao"):
                item("", g["explicacao"])
        else:
            item("medido", "ainda não")
    if not diario.respostas:
        rode("Nada ainda. Comece com:", registro.comando(apostila))
        return 0
    _placar(perguntas, diario)
    return 0


def _ler_arquivo(caminho: str, perguntas) -> dict[str, str]:
    """{id: texto} do arquivo de --respostas, com tudo entendido antes de começar."""
    try:
        lidas = previsoes.ler_respostas(
            Path(os.path.expanduser(caminho)).read_text(encoding="utf-8-sig")
        )
    except (OSError, ValueError) as erro:
        raise ErroDoUsuario(
            f"Não consegui ler as respostas em {caminho}.",
            f"{getattr(erro, 'strerror', None) or erro}.",
            'O arquivo é um JSON simples:  {"forma_ou_sentido": "a", "xl_mb": "328,2"}',
        ) from None
    conhecidas = {p.id: p for p in perguntas}
    estranhas = [i for i in lidas if i not in conhecidas]
    ruins = []
    for id_ in filter(conhecidas.get, lidas):
        try:
            previsoes.entender(conhecidas[id_], lidas[id_]["texto"])
        except NaoEntendi as motivo:
            ruins.append(f"{id_}: {motivo}")
    if estranhas or ruins or not lidas:
        nomes = f"Não conheço: {', '.join(estranhas[:5])}. " if estranhas else ""
        raise ErroDoUsuario(
            f"O arquivo {caminho} tem respostas que não entendi."
            if lidas
            else f"O arquivo {caminho} está vazio.",
            (nomes + " ".join(ruins[:5])).strip() or "Não há nenhuma resposta nele.",
            f"As perguntas são: {', '.join(conhecidas)}",
        )
    return {i: r["texto"] for i, r in lidas.items()}


def _hora(quando: str) -> str:
    # '2026-11-30T06:12:09-0300' -> '30/11/2026 06:12:09'
    data, _, hora = quando.partition("T")
    partes = data.split("-")
    return f"{'/'.join(reversed(partes))} {hora[:8]}" if len(partes) == 3 else "hora desconhecida"


def _placar(perguntas, diario: Diario) -> None:
    feitas = [diario.respostas[p.id] for p in perguntas if p.id in diario.respostas]
    barra(len(feitas), len(perguntas), "previsões")
    vereditos = [r["veredito"] for r in feitas if r.get("veredito", LIVRE) != LIVRE]
    perto = f", e chegou perto em {n}" if (n := vereditos.count(PERTO)) else ""
    diga(f"Acertou {vereditos.count(CERTA)} de {len(vereditos)}{perto}.")


def _interrompida(fim, perguntas, diario: Diario, apostila: int) -> int:
    tela.print()
    if isinstance(fim, KeyboardInterrupt):
        diga("Interrompido; nada se perdeu.")
    elif isinstance(fim, EOFError):
        diga("A entrada acabou; o que você respondeu está guardado.")
    _placar(perguntas, diario)
    rode("Para continuar de onde parou:", registro.comando(apostila))
    return sinais.codigo_de(fim) if isinstance(fim, KeyboardInterrupt) else 0


def _fim(perguntas, diario: Diario, apostila: int) -> int:
    titulo("Fim")
    _placar(perguntas, diario)
    faltam = [p for p in perguntas if "veredito" not in diario.respostas.get(p.id, {})]
    if faltam:
        verbo = "Ficou" if len(faltam) == 1 else "Ficaram"
        rode(f"{verbo} {len(faltam)} para depois:", registro.comando(apostila))
    rode("Para rever:", registro.comando(apostila, "--rever"))
    rode("Agora escreva você:", registro.comando(apostila, "--implementar"))
    return 0
