"""A porta do laboratório: o que lab/00_preparar.py faz, passo a passo, e o que mostra na tela."""

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from nucleo.base import caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import megabytes
from nucleo.sala import ambiente, maquina
from nucleo.sala.pacote import PLATAFORMAS, PYTHONS
from palco.erros import com_este_python
from palco.opcoes import Analisador, inteiro_entre
from palco.tela import barra_de_progresso

AINDA_NAO = "\nEsta máquina ainda não está pronta: resolva os itens [falta] e rode de novo."
MODELOS = ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "smollm2", "mini")


def lista_de(o_que: str, conhecidos: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Um tipo do argparse: 'gpt2,smollm2' -> ['gpt2', 'smollm2'], só com nomes que existem."""

    def tipo(texto: str) -> list[str]:
        nomes = [n.strip() for n in texto.split(",") if n.strip()]
        errados = [n for n in nomes if n not in conhecidos]
        if errados or not nomes:
            # O argparse transforma isto na mensagem de linha de comando.
            raise argparse.ArgumentTypeError(
                f"não conheço {', '.join(errados) or 'um nome vazio'}; {o_que} são {', '.join(conhecidos)}"
            )
        return nomes

    return tipo


def mostrar(itens: list[maquina.Item]) -> None:
    """Uma linha por item; a cura na linha de baixo, uma vez só para faltas seguidas iguais."""
    for n, item in enumerate(itens):
        print(f"[{item.estado}]".ljust(8), item.texto)
        ultima = n + 1 == len(itens) or itens[n + 1].cura != item.cura
        if item.cura and ultima:
            print(" " * 9 + f"→ {com_este_python(item.cura)}")


def barra():
    """A barra da casa; num ambiente ainda vazio, sem o rich, a de letras."""
    with contextlib.suppress(ModuleNotFoundError):
        import rich  # noqa: F401 - só para saber se há

        return barra_de_progresso()
    return barra_de_letras()


@contextlib.contextmanager
def barra_de_letras():
    """Como a da casa, sem o rich: a porcentagem no lugar; fora de um terminal, a cada quarto do caminho."""
    terminal, ultimo = sys.stderr.isatty(), {}

    def avancar(o_que: str, feito: int, total: int) -> None:
        por_cento = 100 * feito // max(1, total)
        passo = por_cento if terminal else por_cento // 25 * 25
        if passo != ultimo.get(o_que):
            texto = f"{o_que}… {passo:>3} %"
            print(
                f"\r{texto:<40}" if terminal else texto,
                end="" if terminal else "\n",
                file=sys.stderr,
            )
            sys.stderr.flush()
        ultimo[o_que] = passo

    yield avancar
    apagar_a_porcentagem()


def apagar_a_porcentagem() -> None:
    """Limpa a linha da barra de letras, para o que se escreve a seguir começar na margem."""
    if sys.stderr.isatty():
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


def linha(texto: str) -> None:
    """Uma linha do que se faz, recuada como as da conferência; apaga a porcentagem que houver."""
    apagar_a_porcentagem()
    print(" " * 8, texto, flush=True)


def ler_opcoes(ajuda: str) -> argparse.Namespace:
    p = Analisador(prog="00_preparar.py", description=ajuda)
    quais = "quais deixar prontos, com vírgulas"
    p.add_argument("--modelos", type=lista_de("os modelos", MODELOS), help=quais)
    inteiro = "baixa o GPT-2 inteiro deste tamanho (pode repetir)"
    p.add_argument("--completo", action="append", choices=MODELOS[:4], default=[], help=inteiro)
    p.add_argument("--so-conferir", action="store_true", help="não baixa nem converte nada")
    p.add_argument(
        "--so-pacotes", action="store_true", help="cria .venv e instala nele; não busca modelos"
    )
    gpu = (
        "no Linux, instala o torch com as bibliotecas de GPU (vários GB), que o laboratório não usa"
    )
    p.add_argument("--com-gpu", action="store_true", help=gpu)
    sem_rede = p.add_argument_group("sem internet").add_mutually_exclusive_group()
    sem_rede.add_argument("--pacote", metavar="PASTA", help="monta o pacote para um pen drive")
    de_onde = "instala de um pacote: pasta ou http://IP:PORTA"
    sem_rede.add_argument("--do-pacote", metavar="ORIGEM", help=de_onde)
    sem_rede.add_argument("--espelho", metavar="PASTA", help="serve um pacote à rede local")
    montar = p.add_argument_group("com --pacote")
    maquinas = f"para que máquinas são os wheels (padrão: esta); há {', '.join(PLATAFORMAS)}"
    montar.add_argument(
        "--plataformas", type=lista_de("as plataformas", PLATAFORMAS), help=maquinas
    )
    pythons = "para que Pythons (padrão: este)"
    montar.add_argument("--pythons", type=lista_de("os Pythons", PYTHONS), help=pythons)
    montar.add_argument("--sem-wheels", action="store_true", help="não leva os pacotes do Python")
    servir = p.add_argument_group("com --espelho")
    servir.add_argument("--porta", type=inteiro_entre(0, 65535), help="padrão: 8765; 0: uma livre")
    servir.add_argument("--endereco", help="só neste endereço desta máquina (padrão: todos)")
    args = p.parse_args()
    # Uma opção que não faria nada é engano de quem digitou, e não silêncio nosso.
    if not args.pacote and (args.plataformas or args.pythons or args.sem_wheels):
        p.error("--plataformas, --pythons e --sem-wheels só valem com --pacote")
    if args.espelho is None and (args.porta is not None or args.endereco):
        p.error("--porta e --endereco só valem com --espelho")
    buscam = args.modelos or args.completo or args.pacote or args.do_pacote or args.espelho
    if args.so_pacotes and (buscam or args.so_conferir):
        p.error(
            "--so-pacotes só instala: não combina com modelos, pacote, espelho ou --so-conferir"
        )
    return args


def agora() -> None:
    """O próximo comando, como este sistema o escreve, e de onde digitá-lo."""
    print("\nPronto. Agora:")
    if Path.cwd() != caminhos.RAIZ:
        print(f'\n  cd "{caminhos.RAIZ}"')
    print(com_este_python("\n  python lab/02_embeddings.py"))


def pasta_de(texto: str) -> Path:
    """O caminho dito na linha de comando. Erros: `ErroDoUsuario` se vier vazio."""
    if not texto.strip():
        raise ErroDoUsuario(
            "Faltou dizer a pasta do pacote.",
            "O caminho veio vazio.",
            "Escreva o caminho depois da opção, por exemplo:  --pacote pacote",
        )
    # No Windows, "E:\" entre aspas chega como E:" : a barra protegeu a aspa.
    return Path(os.path.expanduser(texto.removesuffix('"')))


# %% Montar o pacote: o que vai, quanto pesa, e só então a cópia


def montar_pacote(args: argparse.Namespace) -> int:
    from nucleo.sala import montar, pacote

    destino = pasta_de(args.pacote)
    # A pasta errada se descobre agora, e não depois de dez minutos de download.
    montar.conferir_destino(destino)
    print("Os modelos")
    nomes = args.modelos or montar.prontos()
    with barra() as progresso:
        faltou = maquina.preparar(nomes, args.completo, progresso)
    if faltou:
        mostrar(faltou)
        print("\nO pacote não foi montado: peça só os modelos que há, com --modelos.")
        return 1
    print(f"         vão: {', '.join(dict.fromkeys([*nomes, *args.completo]))}")

    print("\nOs pacotes do Python")
    escolhidos, recados = escolher_wheels(args)
    mostrar(recados)
    with barra() as progresso:
        pronto = montar.montar(destino, nomes, args.completo, escolhidos, progresso)
    mostrar(pronto.itens)
    print(f"\nO pacote está em {destino}: {megabytes(pronto.bytes)}.")
    print(f"Impressão digital, para quem instalar comparar: {pronto.digital}")
    print(f"Os dois comandos de quem recebe estão em {pacote.LEIAME}.")
    print(com_este_python(f'Pela rede local:  python lab/00_preparar.py --espelho "{destino}"'))
    return int(any(i.estado == maquina.FALTA for i in [*recados, *pronto.itens]))


def escolher_wheels(args: argparse.Namespace) -> tuple[dict, list[maquina.Item]]:
    """({alvo: wheels}, as linhas para a tela, com o tamanho: ainda não se baixou nada)."""
    from nucleo.sala import pacote, wheels

    if args.sem_wheels:
        aviso = "não vão (--sem-wheels): quem recebe precisa já tê-los, ou de internet"
        return {}, [maquina.Item(maquina.AVISO, aviso)]
    daqui = pacote.este_computador()
    plataformas, pythons = args.plataformas or [daqui.plataforma], args.pythons or [daqui.python]
    with barra() as progresso:
        return wheels.escolher(plataformas, pythons, progresso)


# %% Instalar do pacote: só a biblioteca padrão até os wheels entrarem


def instalar_do_pacote(args: argparse.Namespace) -> int:
    from nucleo.sala import instalar

    # Um endereço não é uma pasta: só se confere que não veio vazio.
    origem = args.do_pacote.strip() if "://" in args.do_pacote else str(pasta_de(args.do_pacote))
    with barra() as progresso:
        # De uma pasta, tudo é conferido aqui, antes de tocar em qualquer coisa.
        fonte = instalar.de_onde(origem, progresso)
        print(f"Pacote de {fonte.manifesto.feito_em}, impressão digital {fonte.manifesto.digital}")
        itens = instalar.instalar(fonte, progresso)
    mostrar(itens)
    agora()
    return 0


# %% O espelho: confere, abre a porta e atende até Ctrl-C


def servir_espelho(args: argparse.Namespace) -> int:
    from nucleo.sala import espelho, pacote

    pasta = pasta_de(args.espelho)
    with barra() as progresso:
        # Quarenta cópias de um arquivo estragado são quarenta vezes o problema.
        manifesto = pacote.conferir(pasta, progresso)
    app = espelho.aplicativo(pasta, manifesto)
    porta = espelho.PORTA if args.porta is None else args.porta
    soquete = espelho.escutar(args.endereco or "0.0.0.0", porta)
    todos = args.endereco in (None, *espelho.TODOS)
    urls = [
        espelho.url(e, soquete.getsockname()[1])
        for e in (espelho.enderecos() if todos else [args.endereco])
    ]
    # O endereço vai primeiro: é o que se escreve no quadro.
    print(f"Espelho do pacote de {manifesto.feito_em} ({megabytes(manifesto.soma())}) no ar:\n")
    for url in urls:
        print(f"    {url}")
    print("\nQuem abrir esse endereço no navegador vê o que digitar. Instalar tudo:")
    print(com_este_python(f"\n    python lab/00_preparar.py --do-pacote {urls[0]}"))
    if comandos := espelho.comandos_do_hub(manifesto, urls[0]):
        print(f"\nSó os modelos, no bash e no PowerShell:\n\n    {comandos[0]}\n    {comandos[1]}")
    # Daqui em diante Ctrl-C é o jeito normal de sair, e não uma interrupção.
    with contextlib.suppress(KeyboardInterrupt):
        print("\nSem senha e sem criptografia: use só na rede da aula. Ctrl-C fecha.", flush=True)
        espelho.servidor(app).run(sockets=[soquete])  # os downloads em curso têm 2 s para acabar
    print("\nEspelho fechado.")
    return 0


# %% Conferir e preparar esta máquina


def continuar_em(python: Path) -> int:
    """Roda este mesmo comando no Python dado; no Unix não volta, e no Windows devolve o código de saída."""
    comando = [str(python), os.path.abspath(sys.argv[0]), *sys.argv[1:]]
    meio = os.environ | {ambiente.DENTRO: "1"}
    # O macOS diz por aqui ao Python novo que ele é o antigo.
    meio.pop("__PYVENV_LAUNCHER__", None)
    sys.stdout.flush()
    if sys.platform != "win32":
        os.execve(comando[0], comando, meio)
    # No Windows o execve devolve o terminal a quem digitou enquanto o programa segue: é preciso esperar.
    with subprocess.Popen(comando, env=meio) as processo:
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # o Ctrl-C também chegou lá, que o explica
                return processo.wait()


def principal(ajuda: str) -> int:
    """A preparação inteira, com a ajuda dada; devolve o código de saída."""
    args = ler_opcoes(ajuda)
    if outro := ambiente.onde_seguir(not args.so_conferir, args.so_pacotes, linha):
        return continuar_em(outro)
    for escolhida, fazer in (
        (args.pacote, montar_pacote), (args.do_pacote, instalar_do_pacote),
        (args.espelho, servir_espelho),
    ):  # fmt: skip
        if escolhida is not None:
            return fazer(args)

    # %% A máquina: Python, pacotes, disco, escrita, console
    if not args.so_conferir and not ambiente.tem_tudo():
        print("Os pacotes do Python")
        with barra() as progresso:
            feitos = ambiente.instalar(args.com_gpu, linha, progresso)
        mostrar(feitos)
        print()
    if args.so_pacotes:
        return 0
    print("A máquina")
    itens = [maquina.conferir_python(), *maquina.conferir_pacotes()]
    itens += [*maquina.conferir_pastas(), maquina.conferir_console(sys.stdout.encoding)]
    mostrar(itens)
    if any(i.estado == maquina.FALTA for i in itens):
        # Sem os pacotes não dá nem para procurar os modelos.
        print(AINDA_NAO)
        return 1

    # %% Os modelos: buscar o que foi pedido, depois contar o que há
    rede = maquina.conferir_hub()
    print("\nOs modelos")
    mostrar([rede])
    pedidos = args.modelos or ([] if args.completo else maquina.pedido_padrao(rede))
    faltou = []
    if not args.so_conferir:
        with barra_de_progresso() as progresso:
            faltou = maquina.preparar(pedidos, args.completo, progresso)
    mostrar(faltou)
    # Quem acabou de aparecer em [falta] não precisa aparecer de novo em [--].
    ditos = {item.texto.split(":")[0] for item in faltou}
    prontos = maquina.conferir_modelos(tuple(n for n in MODELOS if n not in ditos))
    mostrar(prontos)

    # %% O veredito, que também é o código de saída
    if faltou or any(i.estado == maquina.FALTA for i in prontos):
        print(AINDA_NAO)
        return 1
    agora()
    return 0
