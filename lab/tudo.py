"""Todas as lições, uma depois da outra: o que `make all` roda, e o que roda quem não tem make.

Cada lição é um processo à parte: uma que falha não para as outras. No fim, uma tela diz o que
está pronto, o que merece atenção, o que abrir e o que fazer; e outputs/index.html junta tudo
numa página só, com as apostilas ao lado.

Como rodar:    python lab/tudo.py
               python lab/tudo.py --modelo mini
               python lab/tudo.py --licoes 02_embeddings
               python lab/tudo.py --so-pagina     refaz a página, sem rodar nada
Código de saída: 0 se todas rodaram, 1 se alguma falhou, 130 se alguém interrompeu, 143 ou 129 se o
sistema pediu que acabasse.
"""

import codecs
import contextlib
import locale
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from nucleo.base import caminhos
from nucleo.base.arquivos import conferir_pasta, legivel
from nucleo.base.processos import filho_meu
from nucleo.paginas.resultados import (
    FALHOU,
    INTERROMPIDA,
    NAO_RODOU,
    PRONTO,
    RESSALVA,
    Execucao,
    ler_resultado,
    placar,
)
from palco import sinais
from palco.erros import com_este_python, explicar, rodar_com_erros_gentis
from palco.opcoes import Analisador
from palco.tela import medir_telas

AQUI = Path(__file__).resolve().parent
# A preparação já rodou antes; exercícios perguntam, e aqui ninguém responde.
FORA = ("00_preparar", "exercicios")
PRINCIPAIS = ("embeddings", "posicoes")  # as outras do mesmo número contam com elas
LINHAS_DO_ERRO = 25  # quantas a página mostra
PACIENCIA = 5  # segundos que uma lição interrompida tem para sair por bem
_COR = {PRONTO: "green", RESSALVA: "yellow", FALHOU: "bold red"}
# As cores e os movimentos do cursor, que o terminal entende e um texto não.
_CONTROLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b.")


def licoes() -> list[Path]:
    """As lições numeradas, na ordem: a do número e, em cada número, primeiro a principal."""
    todas = [p for p in AQUI.glob("[0-9][0-9]_*.py") if not any(f in p.stem for f in FORA)]
    return sorted(todas, key=lambda p: (p.stem[:2], p.stem[3:] not in PRINCIPAIS, p))


# --- rodar uma lição -------------------------------------------------------------------


def rodar(licao: Path, ambiente: dict) -> Execucao:
    """Roda uma lição, mostrando o que ela mostra. Um Ctrl-C a deixa INTERROMPIDA.

    Erros: `Encerrado` se este programa recebeu o pedido de acabar; a lição já acabou.
    """
    resultado = caminhos.SAIDAS / licao.stem / "resultado.json"
    antes = _marca(resultado)
    inicio = time.perf_counter()
    processo = subprocess.Popen(
        [sys.executable, str(licao)], env=ambiente | filho_meu(), stderr=subprocess.PIPE
    )
    dito: list[str] = []
    escuta = threading.Thread(target=_ecoar, args=(processo.stderr, dito), daemon=True)
    escuta.start()
    try:
        codigo = None
        while codigo is None:  # aos poucos: quem espera sem hora pode não ouvir o Ctrl-C
            with contextlib.suppress(subprocess.TimeoutExpired):
                codigo = processo.wait(0.2)
    except KeyboardInterrupt as fim:
        if isinstance(fim, sinais.Encerrado):
            _despedir(processo, 0.0, 1.0)  # quem pede assim não espera: nem tela, nem página
            raise
        _despedir(processo)
        segundos = time.perf_counter() - inicio
        sozinha = com_este_python(f"rode sozinha: python lab/{licao.name}")
        return Execucao(licao.stem, INTERROMPIDA, segundos, [sozinha], gravou=False)
    escuta.join(PACIENCIA)
    segundos = time.perf_counter() - inicio
    gravou = _marca(resultado) not in (None, antes)
    return julgar(licao.stem, codigo, segundos, limpo("".join(dito)), gravou)


def _marca(arquivo: Path):
    # O que muda quando o arquivo é gravado de novo; None se ele não existe.
    with contextlib.suppress(OSError):
        s = arquivo.stat()
        return s.st_mtime_ns, s.st_ino, s.st_size
    return None


def _ecoar(cano, dito: list[str]) -> None:
    # O erro da lição aparece na tela na hora e fica guardado para a página.
    pedido = os.environ.get("PYTHONIOENCODING", "").split(":")[0]
    nome = pedido or locale.getpreferredencoding(False)
    decodificar = codecs.getincrementaldecoder(nome)(errors="replace").decode
    while pedaco := cano.read1(4096):
        # No Windows cada fim de linha é \r\n, e escrevê-lo de novo daria \r\r\n.
        texto = decodificar(pedaco).replace("\r\n", "\n")
        dito.append(texto)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(texto)
            sys.stderr.flush()


def _despedir(processo, sozinha: float = PACIENCIA, pedindo: float = PACIENCIA) -> None:
    # O Ctrl-C do teclado já chegou também à lição; quem não sair por bem é posto para fora.
    for acao, paciencia in (
        (lambda: None, sozinha), (processo.terminate, pedindo), (processo.kill, PACIENCIA),
    ):  # fmt: skip
        acao()
        with contextlib.suppress(subprocess.TimeoutExpired):
            processo.wait(paciencia)
            return


def limpo(texto: str) -> str:
    """O texto sem códigos de terminal; de cada linha reescrita (\\r), só o que ficou por último."""
    linhas = _CONTROLE.sub("", texto).replace("\r\n", "\n").split("\n")
    return "\n".join(linha.rstrip("\r").rsplit("\r", 1)[-1].rstrip() for linha in linhas).strip(
        "\n"
    )


def julgar(nome: str, codigo: int, segundos: float, erro: str, gravou: bool) -> Execucao:
    """A `Execucao` de uma lição que acabou com o código `codigo` e disse `erro` no stderr."""
    falhas = [str(f) for f in ler_resultado(caminhos.SAIDAS / nome).get("nao_conferem", [])]
    if codigo and not (codigo == 1 and gravou and falhas):
        fazer = _o_que_fazer(nome, codigo, erro)
        fim = "\n".join(erro.splitlines()[-LINHAS_DO_ERRO:])
        return Execucao(nome, FALHOU, segundos, fazer, fim or f"código de saída {codigo}", gravou)
    if not gravou:
        fazer = ["rodou até o fim, mas não gravou resultado.json"]
        return Execucao(nome, RESSALVA, segundos, fazer, "", False)
    if falhas:
        mais = f" (e mais {len(falhas) - 3})" if len(falhas) > 3 else ""
        return Execucao(nome, RESSALVA, segundos, [f"não confere: {'; '.join(falhas[:3])}{mais}"])
    return Execucao(nome, PRONTO, segundos)


def _o_que_fazer(nome: str, codigo: int, erro: str) -> list[str]:
    # O erro gentil já diz o que houve e o que digitar; o defeito diz na última linha.
    gentil = re.search(r"✗ (?P<que>.+)\n\s+Por quê: .+\n\s+Agora:\s+(?P<agora>.+)", erro)
    if gentil:
        return [gentil["que"], gentil["agora"]]
    if codigo < 0 or codigo == 137 or codigo >= 0xC0000000:  # este, no Windows: um NTSTATUS
        faltou = "talvez tenha faltado memória; feche programas e rode de novo"
        return [f"o sistema a encerrou: {faltou}"]
    ultima = erro.splitlines()[-1] if erro else f"código de saída {codigo}"
    return [ultima.strip(), com_este_python(f"rode sozinha: python lab/{nome}.py")]


# --- a página e a tela -----------------------------------------------------------------


def escrever_paginas(feitas: list[Execucao], modelo: tuple[str, str]) -> list[str]:
    """Grava as apostilas e o index.html; devolve o que nas apostilas não deu para converter."""
    # Pacotes que só a página usa: quem roda uma lição não espera por eles.
    from nucleo.paginas import apostilas as apostila_html
    from nucleo.paginas import resultados

    apostilas = apostila_html.escrever()
    comando = " ".join(["python lab/tudo.py", *sys.argv[1:]])
    resultados.escrever(feitas, [x.stem for x in licoes()], modelo, comando, apostilas)
    if not apostilas:
        return ["não há apostila nenhuma na pasta apostilas/: a página saiu sem elas"]
    return [f"apostilas/{a.fonte}: {aviso}" for a in apostilas for aviso in a.avisos]


def mostrar(feitas: list[Execucao]) -> None:
    """A tela do fim: uma linha por lição e, embaixo dela, o que fazer. Nada é cortado."""
    from rich.padding import Padding
    from rich.text import Text

    from nucleo.base.unidades import decimal

    tela = medir_telas()[0]
    tela.print()
    tela.rule("Situação", align="left")
    largura = max((len(e.nome) for e in feitas), default=0)
    for e in feitas:
        tempo = "—" if e.segundos is None else f"{decimal(e.segundos, 1)} s"
        linha = Text.assemble(
            (f"{e.situacao:<12}", _COR.get(e.situacao, "dim")), f"  {e.nome:<{largura}}"
        )
        linha.append(f"  {tempo:>8}")
        abrir = f"outputs/{e.nome}/relatorio.md" if e.gravou else ""
        if abrir and len(linha) + 2 + len(abrir) <= tela.width:
            linha.append(f"  {abrir}", "cyan")
            abrir = ""
        tela.print(linha)
        for passo in filter(None, [abrir, *e.fazer]):
            tela.print(Padding(Text(f"→ {passo}"), (0, 0, 0, 14 if tela.width > 60 else 2)))
    tela.print()
    tela.print(placar(feitas), highlight=False)


def dizer_modelo(modelo: str, feitas: list[Execucao]) -> None:
    """Se algo rodou, e não foi o GPT-2 do curso que respondeu, quem foi, e como tê-lo."""
    from nucleo.modelos import fontes

    rodou = any(e.situacao in (PRONTO, RESSALVA) for e in feitas)
    if rodou and not modelo.startswith("gpt2"):
        print(f"Rodaram com {modelo}, e não com o GPT-2 do curso. Para tê-lo:")
        print(com_este_python(f"  {fontes.COMO_TER_GPT2}"))


def dizer_avisos(avisos: list[str]) -> None:
    """As últimas linhas: o que nas apostilas não converteu, e o que abrir."""
    for aviso in avisos:
        print(f"Aviso: {aviso}")
    pagina = caminhos.SAIDAS / "index.html"
    if pagina.is_relative_to(caminhos.RAIZ):
        pagina = pagina.relative_to(caminhos.RAIZ)  # como o README o escreve
    print(f"Agora abra {legivel(pagina.as_posix())}")


def escolher_modelo(pedido: str | None) -> tuple[str, str]:
    """(nome, por que ele), sem abrir rede: cada lição não precisa procurar de novo."""
    if pedido:
        return pedido, "pedido em --modelo"
    if do_ambiente := os.environ.get("LAB_MODELO"):
        return do_ambiente, "pedido na variável LAB_MODELO"
    from nucleo.modelos import fontes

    nome = fontes.pronto()
    if nome == "gpt2":
        return nome, "é o do curso, e está no cache"
    if nome == "auto":
        return nome, "nenhum está pronto: cada lição procura o seu"
    return nome, "o melhor dos que já estão nesta máquina; o GPT-2 do curso não está"


def principal() -> int:
    p = Analisador(prog="tudo.py", description=__doc__)
    p.add_argument("--modelo", help="o modelo de todas as lições (padrão: o que estiver pronto)")
    nomes = [licao.stem for licao in licoes()]
    p.add_argument("--licoes", nargs="+", choices=nomes, default=nomes, help="só estas")
    p.add_argument(
        "--so-pagina", action="store_true", help="refaz a página com o que já há em outputs/"
    )
    args = p.parse_args()
    modelo = escolher_modelo(args.modelo)
    from nucleo.modelos import fontes

    # Um nome errado se diz uma vez e agora, e não uma vez por lição.
    fontes.conferir_nome(modelo[0])
    if args.so_pagina:
        dizer_avisos(escrever_paginas([], modelo))
        return 0
    # Uma pasta que não aceita arquivos, também.
    outro = "Escolha outra pasta com a variável de ambiente LAB_SAIDAS, e rode de novo."
    conferir_pasta(caminhos.SAIDAS, outro)
    print(f"Modelo das lições: {modelo[0]} ({modelo[1]})\n", flush=True)
    ambiente = os.environ | {"LAB_MODELO": modelo[0]}
    if sys.stdout.isatty() and sys.stderr.isatty() and not medir_telas()[1].legacy_windows:
        # O erro passa por aqui, mas continua indo para um terminal: as barras podem aparecer.
        ambiente["TTY_COMPATIBLE"] = "1"

    fila = [x for x in licoes() if x.stem in args.licoes]
    feitas: list[Execucao] = []
    try:
        for licao in fila:
            feitas.append(rodar(licao, ambiente))
            if feitas[-1].situacao == INTERROMPIDA:
                break
    except KeyboardInterrupt as fim:
        if isinstance(fim, sinais.Encerrado):
            raise
    interrompeu = len(feitas) < len(fila) or feitas[-1].situacao == INTERROMPIDA
    feitas += [Execucao(x.stem, NAO_RODOU, gravou=False) for x in fila[len(feitas) :]]
    return terminar(feitas, modelo, interrompeu)


def terminar(feitas: list[Execucao], modelo: tuple[str, str], interrompeu: bool) -> int:
    """Escreve a página, mostra a tela (sempre, mesmo sem página) e dá o código de saída."""
    codigo = 130 if interrompeu else int(any(e.situacao == FALHOU for e in feitas))
    try:
        avisos = escrever_paginas(feitas, modelo)
    except BaseException as erro:
        mostrar(feitas)
        dizer_modelo(modelo[0], feitas)
        sys.stdout.flush()
        da_pagina = explicar(erro)
        if da_pagina is None:
            raise
        # Uma lição que falhou importa mais que a página que não saiu.
        return codigo or da_pagina
    mostrar(feitas)
    dizer_modelo(modelo[0], feitas)
    dizer_avisos(avisos)
    return codigo


if __name__ == "__main__":
    raise SystemExit(rodar_com_erros_gentis(principal))
