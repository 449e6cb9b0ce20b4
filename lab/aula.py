"""O palco das lições: linha de comando, tela e saídas. O conteúdo mora na lição e no nucleo.

    aula = Aula("02_embeddings", __doc__, secoes={1: "..."}, opcoes=minhas_opcoes)
    if aula.secao(1):
        aula.diga("texto em Markdown leve")
        aula.tabela("id", "título", {"coluna": formato}, linhas)
    aula.terminar()

Um `ErroDoUsuario` vira uma mensagem e código de saída 2; Ctrl-C sai com 130 sem estragar as
saídas anteriores; qualquer outra exceção é defeito e mostra o traceback.
"""

import argparse
import difflib
import gc
import importlib.util
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path

from nucleo.base import caminhos
from nucleo.base.caderno import Caderno, Conferencia, Quadro, conferir_pasta, preparar_fluxos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import cientifico, contado, decimal, inteiro

PACOTES = ("torch", "transformers", "numpy", "tokenizers")


# --- linha de comando ------------------------------------------------------------------

_EM_PORTUGUES = {
    "usage: ": "uso: ",
    "options": "opções",
    "positional arguments": "argumentos",
    "show this help message and exit": "mostra esta ajuda e sai",
    "expected one argument": "falta o valor",
    "expected at least one argument": "falta pelo menos um valor",
    "expected %s argument": "espera %s valor",
    "expected %s arguments": "espera %s valores",
    "unrecognized arguments: %s": "não conheço: %s",
    "invalid %(type)s value: %(value)r": "valor inválido: %(value)r (%(type)s)",
    "invalid choice: %(value)r (choose from %(choices)s)": "%(value)r não é uma opção; escolha entre %(choices)s",
    "the following arguments are required: %s": "falta dizer: %s",
    "argument %(argument_name)s: %(message)s": "%(argument_name)s: %(message)s",
    "not allowed with argument %s": "não combina com %s",
    "ambiguous option: %(option)s could match %(matches)s": "%(option)s pode ser %(matches)s: escreva inteiro",
    "ignored explicit argument %r": "não recebe valor (veio %r)",
}


def _traduzir(texto: str) -> str:
    return _EM_PORTUGUES.get(texto, texto)


class Analisador(argparse.ArgumentParser):
    """O argparse com as mensagens em português e o formato de erro da casa.

    `pasta` é onde está o programa, para a dica que manda ver a ajuda.
    """

    def __init__(self, *a, pasta: str = "lab", **k):
        self.pasta = pasta
        # O argparse busca as próprias frases por esta função; é o único lugar de traduzi-las.
        argparse._ = _traduzir
        argparse.ngettext = lambda um, varios, n: _traduzir(um if n == 1 else varios)
        k.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*a, **k)

    def error(self, message: str):
        """Uma mensagem do argparse como `ErroDoUsuario`, com a opção mais parecida na dica."""
        sugestao = f"Veja as opções com:  python {self.pasta}/{self.prog} --help"
        desconhecida = re.search(r"não conheço: (--[\w-]+)", message)
        if desconhecida:
            todas = [o for acao in self._actions for o in acao.option_strings]
            perto = difflib.get_close_matches(desconhecida[1], todas, 1)
            if perto:
                sugestao = f"Quis dizer {perto[0]}?  {sugestao}"
        raise ErroDoUsuario("Não entendi a linha de comando.", message, sugestao)


def inteiro_entre(menor: int, maior: int) -> Callable[[str], int]:
    """Um tipo de argparse: inteiro de `menor` a `maior`, com mensagem em português."""

    def tipo(texto: str) -> int:
        try:
            n = int(texto)
        except ValueError:
            n = None
        if n is None or not menor <= n <= maior:
            raise argparse.ArgumentTypeError(
                f"esperava um número inteiro de {menor} a {maior}, e veio {texto!r}"
            )
        return n

    return tipo


def opcao_ao_vivo(analisador: argparse.ArgumentParser) -> None:
    """Acrescenta --ao-vivo, para as lições que lembram o que a biblioteca respondeu (nucleo.modelos.memoria)."""
    analisador.add_argument(
        "--ao-vivo",
        action="store_true",
        default=os.environ.get("LAB_AO_VIVO", "0") not in ("", "0"),
        help="pergunta ao transformers agora, mesmo o que ele já respondeu",
    )


# --- a aula ----------------------------------------------------------------------------


class Aula:
    """Uma execução de uma lição: lê as opções, mostra na tela e grava em outputs/."""

    def __init__(
        self,
        nome: str,
        doc: str,
        secoes: dict[int | str, str],
        opcoes: Callable[[argparse.ArgumentParser], None] | None = None,
        usa_modelo: bool = True,
    ):
        preparar_fluxos()
        # Bibliotecas e figuras criam objetos às centenas de milhares, e quase nenhum morre antes do
        # fim: procurar lixo a cada 700 deles, que é o padrão, custa um décimo da lição.
        gc.set_threshold(100_000)
        self.nome, self.secoes, self._inicio = nome, secoes, time.perf_counter()
        self._interrompida = False  # um Ctrl-C já parou um treino nesta execução?
        sys.excepthook = self._ao_falhar
        self.args = self._ler_opcoes(doc, opcoes, usa_modelo)
        if not self.args.sem_graficos and importlib.util.find_spec("matplotlib") is None:
            # As figuras só o importam quando chega a vez delas: a falta se diz agora.
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        self._console, self._erros = medir_telas()
        titulo = doc.strip().splitlines()[0].rstrip(".")
        self.caderno = Caderno(nome, titulo)
        self._secao, self._modelo = None, "—"
        self.conferencias: list[Conferencia] = []
        # Uma execução de poucas seções não apaga o relatório inteiro: tem a sua própria pasta.
        padrao = caminhos.SAIDAS / nome / ("parcial" if self.args.secao else "")
        escolhida = self.args.saida and os.path.expanduser(self.args.saida)
        self.pasta = Path(escolhida) if escolhida else padrao
        if self.pasta.resolve() == caminhos.RAIZ:
            raise ErroDoUsuario(
                "A saída seria a pasta do próprio laboratório.",
                "Tabelas e figuras se misturariam com o código.",
                f"Use outra pasta, ou nenhuma (o padrão é outputs/{nome}):  --saida PASTA",
            )
        conferir_pasta(self.pasta)
        self._cabecalho(titulo)

    def _ler_opcoes(self, doc, opcoes, usa_modelo):
        analisador = Analisador(prog=f"{self.nome}.py", description=doc)
        if usa_modelo:
            analisador.add_argument(
                "--modelo",
                default=os.environ.get("LAB_MODELO") or "auto",
                help="auto, gpt2, gpt2-medium, gpt2-large, gpt2-xl, smollm2, mini ou uma pasta",
            )
        analisador.add_argument(
            "--secao",
            action="append",
            type=_numero_da_secao,
            choices=list(self.secoes),
            help="roda só esta seção (pode repetir)",
        )
        analisador.add_argument(
            "--saida", help="pasta das saídas (padrão: outputs/" + self.nome + ")"
        )
        analisador.add_argument(
            "--sem-graficos",
            action="store_true",
            help="não desenha figuras (as da execução anterior saem)",
        )
        analisador.add_argument(
            "--codigo", action="store_true", help="mostra a função que acabou de rodar"
        )
        if opcoes:
            opcoes(analisador)
        # Célula a célula, num notebook, argv é do notebook: valem os padrões.
        return analisador.parse_args([] if "ipykernel" in sys.modules else None)

    def _cabecalho(self, titulo: str) -> None:
        from importlib.metadata import version

        versoes = {p: version(p) for p in PACOTES}
        versoes = {"python": ".".join(map(str, sys.version_info[:3]))} | versoes
        self.caderno.ficha = {
            "comando": shlex.join(["python", f"lab/{self.nome}.py", *sys.argv[1:]])
            .encode("utf-8", "replace")
            .decode()
            if "ipykernel" not in sys.modules
            else f"notebook de lab/{self.nome}.py",
            "quando": time.strftime("%Y-%m-%d %H:%M"),
            "versoes": versoes,
        }
        self._regua(titulo, "bold", "center")
        self._console.print(
            "  ·  ".join(f"{p} {v}" for p, v in versoes.items()), style="dim", highlight=False
        )
        self.caderno.blocos.append(
            f"`{self.caderno.ficha['comando']}` · "
            + " · ".join(f"{p} {v}" for p, v in versoes.items())
        )

    # --- o modelo ---

    def abrir_modelo(self, nome: str | None = None):
        """O modelo pedido em --modelo (ou `nome`), com barra de progresso e a ficha na tela."""
        from nucleo.modelos import fontes

        with self.barra() as progresso:
            modelo = fontes.abrir(nome or self.args.modelo, progresso)
        self._modelo = modelo.nome
        forma = f"wte {inteiro(modelo.V)} × {modelo.d}"
        forma += (
            f", wpe {modelo.wpe.shape[0]} × {modelo.d}" if modelo.wpe is not None else ", sem wpe"
        )
        self.diga(f"Quem responde: **{modelo.nome}** ({forma}) — {modelo.origem}.")
        if modelo.motivo:
            self.diga(f"Por quê: {modelo.motivo}.")
        if modelo.familia != "gpt2" or modelo.nome == "mini":
            self.diga(f"Para ver o GPT-2 do curso:  `{fontes.COMO_TER_GPT2}`")
        self.caderno.ficha["modelo"] = {
            "nome": modelo.nome, "origem": modelo.origem, "motivo": modelo.motivo,
            "V": modelo.V, "d": modelo.d, "n_ctx": modelo.n_ctx,
        }  # fmt: skip
        return modelo

    def barra(self):
        """Contexto que dá uma função `progresso(o_que, feito, total)` e desenha a barra."""
        return barra_de_progresso(self._erros)

    def treinar(self, treino, rotulo: str, parar_com_ctrl_c: bool = False):
        """Gera os passos de um `nucleo.treino.treinador.Treino`, com a barra: perda e tokens por segundo.

        Com `parar_com_ctrl_c`, o primeiro Ctrl-C encerra este treino e a lição segue com o que o
        modelo aprendeu até ali; o segundo sai da lição.
        """
        total = treino.receita.passos
        with _barra_de_treino(self._erros, rotulo, total) as avancar:
            passos = treino.passos()
            while True:
                try:
                    p = next(passos, None)
                except KeyboardInterrupt:
                    if not parar_com_ctrl_c or self._interrompida:
                        raise
                    self._interrompida = True
                    self.diga(
                        f"**Treino interrompido** no passo {treino.passo} de {total}: sigo com o que o "
                        "modelo aprendeu até aqui. Ctrl-C de novo sai da lição."
                    )
                    return
                if p is None:
                    return
                avancar(
                    p.passo, f"{rotulo} · perda {decimal(p.perda)} · {p.tokens_por_s:.0f} tokens/s"
                )
                yield p

    def _regua(self, titulo: str, estilo: str, lado: str) -> None:
        # O rich corta o título que não cabe na linha; aqui ele quebra e fica sem o traço.
        if len(titulo) + 4 <= self._console.width:
            self._console.rule(_marcar(titulo, estilo), align=lado)
        else:
            self._console.print(_marcar(titulo, estilo))

    # --- o que se mostra ---

    def pediu(self, numero: int | str) -> bool:
        """True se a seção vai aparecer: --secao a pediu, ou não pediu nenhuma."""
        return not self.args.secao or numero in self.args.secao

    def so_esta(self, numero: int | str) -> None:
        """O mesmo que --secao `numero`, dito pela lição; a pasta parcial vale também aqui."""
        self.args.secao = [numero]
        if not self.args.saida:
            self.pasta = caminhos.SAIDAS / self.nome / "parcial"
            conferir_pasta(self.pasta)

    def secao(self, numero: int | str) -> bool:
        """Mostra o título da seção e devolve True; False se --secao não a pediu."""
        if not self.pediu(numero):
            return False
        self._secao = numero
        self._console.print()
        self._regua(f"{numero} · {self.secoes[numero]}", "bold cyan", "left")
        self.caderno.blocos.append(f"## {numero} · {self.secoes[numero]}")
        return True

    def diga(self, texto: str) -> None:
        """Um parágrafo, em Markdown leve (**negrito** e `código`), na tela e no relatório."""
        texto = com_este_python(texto)
        self._console.print(_marcar(texto))
        self.caderno.blocos.append(texto)

    def repare(self, texto: str) -> None:
        """A frase que diz o que notar na tabela ou figura que acabou de passar."""
        self._console.print(_rotulado("Repare:", "bold magenta", texto))
        self.caderno.blocos.append(f"> **Repare:** {texto}")

    def tabela(
        self, id_: str, titulo: str, colunas: dict[str, Callable], linhas: Iterable[Iterable]
    ) -> None:
        """Uma tabela na tela, no relatório e em `id_`.csv (lá, com todas as casas).

        `colunas` é {nome: formato}; formato é uma função valor -> texto. None vira “—”.
        """
        # Números do numpy viram os do Python: o CSV e os formatos não precisam saber deles.
        linhas = [[v.item() if hasattr(v, "item") else v for v in linha] for linha in linhas]
        prontas = [
            ["—" if v is None else f(v) for v, f in zip(linha, colunas.values(), strict=True)]
            for linha in linhas
        ]
        numericas = [
            all(
                isinstance(x[i], (int, float, type(None)))
                and x[i] is not True
                and x[i] is not False
                for x in linhas
            )
            for i in range(len(colunas))
        ]
        self._desenhar(titulo, list(colunas), prontas, numericas)
        self.caderno.csv(id_, list(colunas), linhas)
        self.caderno.tabela_md(titulo, list(colunas), prontas)

    def quadro(self, id_: str, quadro: Quadro) -> None:
        """O mesmo que `tabela`, para um `Quadro` que o nucleo já montou."""
        self.tabela(id_, quadro.titulo, quadro.colunas, quadro.linhas)

    def _desenhar(self, titulo: str, nomes: list[str], linhas: list[list[str]], numericas) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        self._console.print()
        self._console.print(_marcar(titulo, "bold"))
        larguras = _larguras(nomes, linhas, numericas, self._console.width)
        if larguras:
            desenho = Table(
                box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True
            )
            for nome, numerica, largura in zip(nomes, numericas, larguras, strict=True):
                lado = "right" if numerica else "left"
                desenho.add_column(nome, justify=lado, overflow="fold", width=largura)
            for linha in linhas:
                desenho.add_row(*[Text(c) for c in linha])
            self._console.print(desenho)
            return
        # Não cabe na largura: cada linha vira uma ficha, e nenhum número é cortado.
        largura = max(map(len, nomes))
        for linha in linhas:
            self._console.print(Text(f"  {linha[0]}", style="cyan"))
            for nome, celula in zip(nomes[1:], linha[1:], strict=True):
                self._console.print(Text(f"    {nome:<{largura}}  {celula}"))
        self._console.print()

    def conferir(
        self, id_: str, titulo: str, linhas: list[Conferencia], formato: Callable = decimal
    ) -> bool:
        """A tabela medido / esperado / confere. Devolve True se todas conferem."""
        self.tabela(
            id_,
            titulo,
            {
                "o que": str,
                "medido": formato,
                "esperado": formato,
                "tolerância": _tolerancia,
                "confere": _sim,
            },
            [[c.nome, c.medido, c.esperado, c.tolerancia, c.confere] for c in linhas],
        )
        return self._anotar(id_, linhas)

    def comparar(self, id_: str, titulo: str, linhas: list[Conferencia]) -> bool:
        """A tabela nome / maior diferença / tolerância / confere, do zero contra a biblioteca."""
        self.tabela(
            id_,
            titulo,
            {
                "o que": str,
                "maior diferença": cientifico,
                "tolerância": _tolerancia,
                "confere": _sim,
            },
            [[c.nome, c.medido, c.tolerancia, c.confere] for c in linhas],
        )
        return self._anotar(id_, linhas)

    def _anotar(self, id_: str, linhas: list[Conferencia]) -> bool:
        self.conferencias += linhas
        for i, c in enumerate(linhas):
            self.resultado(
                f"{id_}.{i + 1}", c.medido, "", o_que=c.nome, esperado=c.esperado,
                tolerancia=c.tolerancia, confere=c.confere,
            )  # fmt: skip
        return all(c.confere for c in linhas)

    def figura(self, id_: str, alt: str, desenhar: Callable, *argumentos) -> None:
        """Desenha e guarda uma figura, com o texto alternativo `alt`.

        `desenhar(*argumentos)` devolve a Figure e só é chamada se houver gráficos a fazer.
        """
        if self.args.sem_graficos:
            return
        from nucleo.base import preguica

        graficos = preguica.modulo("nucleo.base.graficos")
        self.caderno.figura(id_, graficos.png(desenhar(*argumentos)), alt)
        self._console.print(_rotulado("Figura:", "green", f"{id_}.png — {alt}"))

    def guardar(self, nome: str, conteudo: bytes, o_que: str) -> None:
        """Guarda um arquivo que não é tabela nem figura; `o_que` diz para que ele serve."""
        self.caderno.arquivos[nome] = conteudo
        self.caderno.blocos.append(f"[{nome}]({nome}): {o_que}")
        self._console.print(f"[green]Arquivo:[/] {nome} — {_marcar(o_que)}", highlight=False)

    def resultado(
        self, id_: str, valor, unidade: str = "", modelo: str | None = None, **mais
    ) -> None:
        """Um número com nome, para resultado.json (o leem a conferência e as apostilas)."""
        self.caderno.resultado(
            id_, valor, unidade, modelo or self._modelo, self._secao or 0, **mais
        )

    def codigo(self, *funcoes: Callable) -> None:
        """Com --codigo, mostra a fonte do que acabou de rodar."""
        if not self.args.codigo:
            return
        import inspect

        from rich.syntax import Syntax

        for f in funcoes:
            fonte = inspect.getsource(f)
            origem = Path(inspect.getsourcefile(f)).relative_to(caminhos.RAIZ).as_posix()
            self._console.print(f"[dim]{origem}[/]")
            self._console.print(Syntax(fonte, "python", theme="ansi_dark", word_wrap=True))
            self.caderno.blocos.append(f"`{origem}`\n\n```python\n{fonte}```")

    def terminar(self) -> None:
        """Grava as saídas e mostra o resumo: onde estão, quantas conferências, quanto tempo."""
        falhas = [c for c in self.conferencias if not c.confere]
        segundos = time.perf_counter() - self._inicio
        self.caderno.ficha |= {
            "segundos": round(segundos, 1),
            "conferencias": len(self.conferencias),
            "nao_conferem": [c.nome for c in falhas],
        }
        arquivos = self.caderno.gravar(self.pasta)
        figuras = sum(a.suffix == ".png" for a in arquivos)
        tabelas = sum(a.suffix == ".csv" for a in arquivos)
        self._console.print()
        self._console.rule("[bold]Pronto[/]", align="left")
        if self.conferencias:
            certas = len(self.conferencias) - len(falhas)
            self._console.print(
                f"Contas conferidas: {certas} de {len(self.conferencias)}.", highlight=False
            )
        for c in falhas:
            self._console.print(_rotulado("Não confere:", "bold red", c.nome))
        fizemos = contado(tabelas, "tabela")
        if figuras:
            fizemos += " e " + contado(figuras, "figura")
        self._console.print(
            f"{fizemos} em {_curto(self.pasta)} (comece por relatorio.md) · {decimal(segundos, 1)} s",
            highlight=False,
        )
        if self.args.secao and not self.args.saida:
            inteira = self.pasta.parent
            onde = f"a lição inteira, sem --secao, grava em {_curto(inteira)}"
            if (inteira / "relatorio.md").is_file():
                onde = f"o relatório completo continua em {_curto(inteira)}"
            self._console.print(f"Só as seções pedidas: {onde}.", highlight=False)
        sys.excepthook = sys.__excepthook__

    # --- quando algo dá errado ---

    def _ao_falhar(self, tipo, erro, rastro) -> None:
        codigo = explicar(erro)
        if codigo is None:
            sys.__excepthook__(tipo, erro, rastro)
        else:
            raise SystemExit(codigo)


def explicar(erro: BaseException) -> int | None:
    """Mostra o erro que não é defeito nosso e devolve o código de saída; None se for defeito."""
    if isinstance(erro, ModuleNotFoundError):
        erro = _falta_pacote(erro) or erro
    if isinstance(erro, ErroDoUsuario):
        mostrar_erro(erro)
        return 2
    if isinstance(erro, KeyboardInterrupt):
        sys.stderr.write("\nInterrompido. As saídas da última execução completa não mudaram.\n")
        return 130
    if isinstance(erro, OSError) and erro.errno in (28, 122) and erro.filename is None:
        # A própria tela era um arquivo, num disco cheio.
        mostrar_erro(
            ErroDoUsuario(
                "Não consegui escrever a saída da tela.",
                "O destino (um arquivo?) está num disco cheio.",
                "Libere espaço, ou mande a saída para outro lugar.",
            )
        )
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return 2
    if isinstance(erro, BrokenPipeError):
        # Quem lia (head, less) foi embora: não há a quem reclamar.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return None


def _falta_pacote(erro: ModuleNotFoundError) -> ErroDoUsuario | None:
    # Só os pacotes que nós pedimos: um módulo nosso que sumiu é defeito, com traceback.
    pedidos = (caminhos.RAIZ / "requirements.txt").read_text(encoding="utf-8").casefold()
    raiz = (erro.name or "").split(".")[0]
    # O módulo e o pacote têm nomes diferentes.
    nomes = {
        "sklearn": "scikit-learn",
        "markdown_it": "markdown-it-py",
        "mdit_py_plugins": "mdit-py-plugins",
        "math_core": "math-core",
    }
    raiz = nomes.get(raiz, raiz)
    if not re.search(rf"^{re.escape(raiz.casefold())}\b", pedidos, re.M) or not raiz:
        return None
    fazer = "Rode  make preparar  e use o Python de .venv; sem make, veja no README “sem make”."
    venv = caminhos.RAIZ / ".venv"
    for python in (venv / "bin" / "python", venv / "Scripts" / "python.exe"):
        if python.is_file() and python != Path(sys.executable):
            fazer = f"Use o Python do laboratório:  {python.relative_to(caminhos.RAIZ)} lab/…"
    return ErroDoUsuario(
        f"Falta o pacote {raiz}.",
        f"Este Python ({sys.executable}) não tem o que o laboratório usa.",
        fazer,
    )


def mostrar_erro(erro: ErroDoUsuario) -> None:
    """As três partes do erro em stderr: o que houve, por quê, o que digitar agora."""
    preparar_fluxos()
    fazer = com_este_python(erro.o_que_fazer)
    sys.stderr.write(f"\n✗ {erro.o_que}\n  Por quê: {erro.por_que}\n  Agora:   {fazer}\n")


def com_este_python(texto: str) -> str:
    """Troca o "python" dos comandos pelo que está rodando: o que se copia da tela funciona.

    No ambiente do laboratório, visto da raiz, vira .venv/bin/python (ou .venv\\Scripts\\python).
    """
    atual = Path(sys.executable)
    nome = "python"
    if caminhos.RAIZ / ".venv" in atual.parents:
        nome = str(atual.relative_to(caminhos.RAIZ)).removesuffix(".exe")
    return re.sub(r"\bpython (?=(?:lab|bench)[/\\]|-m pip)", lambda _: f"{nome} ", texto)


def rodar_com_erros_gentis(funcao: Callable[[], int | None]) -> int:
    """Roda `funcao` e devolve o código de saída, com as mesmas regras da `Aula`."""
    preparar_fluxos()
    try:
        return int(funcao() or 0)
    except BaseException as erro:
        codigo = explicar(erro)
        if codigo is None:
            raise
        return codigo


def barra_de_progresso(console=None):
    """Contexto que dá uma função `progresso(o_que, feito, total)` e desenha uma barra em stderr."""
    return _Barra(console or medir_telas()[1])


class _Barra:
    # Uma barra por coisa que demora; sem terminal, uma linha de aviso e nada mais.
    def __init__(self, console):
        self._console, self._progresso, self._tarefas = console, None, {}

    def __enter__(self):
        return self._avancar

    def _avancar(self, o_que: str, feito: int, total: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        if o_que not in self._tarefas and not self._console.is_terminal:
            self._console.print(f"{o_que}…", highlight=False)
            self._tarefas[o_que] = None
        if not self._console.is_terminal:
            return
        if self._progresso is None:
            self._progresso = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(), console=self._console, transient=True,
            )  # fmt: skip
            self._progresso.start()
        if o_que not in self._tarefas:
            self._tarefas[o_que] = self._progresso.add_task(o_que, total=total)
        self._progresso.update(self._tarefas[o_que], completed=feito)

    def __exit__(self, *_):
        if self._progresso:
            self._progresso.stop()


@contextmanager
def _barra_de_treino(console, rotulo: str, total: int):
    # Dá uma função avancar(passo, texto). Sem terminal, uma linha de aviso e nada mais.
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    if not console.is_terminal:
        console.print(f"{rotulo}: {inteiro(total)} passos…", highlight=False)
        yield lambda passo, texto: None
        return
    colunas = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*colunas, console=console, transient=True) as barra:
        tarefa = barra.add_task(rotulo, total=total)
        yield lambda passo, texto: barra.update(tarefa, completed=passo, description=texto)


def medir_telas():
    """Os consoles do rich, (stdout, stderr), na largura da tela ou da variável COLUMNS."""
    from rich.console import Console

    # Sem terminal (arquivo, pipe) o rich supõe 80 colunas; 100 deixa as tabelas respirarem.
    pedida = os.environ.get("COLUMNS", "")
    largura = None if sys.stdout.isatty() and not pedida else 100
    if pedida.isdecimal() and int(pedida):
        largura = max(20, min(int(pedida), 400))  # fora disso não é uma tela
    return Console(width=largura), Console(stderr=True, width=largura)


def _larguras(
    nomes: list[str], linhas: list[list[str]], numericas: list[bool], tela: int
) -> list[int] | None:
    # A largura de cada coluna, sem cortar número nem palavra; None se nem apertada a tabela cabe.
    def palavras(texto: str) -> int:
        return max(map(len, texto.split()), default=1)

    celulas = list(zip(*linhas, strict=True)) or [()] * len(nomes)
    minimos, cheias = [], []
    for nome, coluna, numerica in zip(nomes, celulas, numericas, strict=True):
        # Números e textos curtos (tokens entre aspas) não se partem; textos longos, só entre palavras.
        inteiras = [len(c) if numerica or len(c) <= 16 else palavras(c) for c in coluna]
        minimos.append(max(palavras(nome), *inteiras, 1))
        cheias.append(max(len(nome), *map(len, coluna), 1))
    # A moldura SIMPLE_HEAD gasta duas casas por coluna.
    sobra = tela - 2 * len(nomes) - sum(minimos)
    if sobra < 0:
        return None
    while sobra > 0:
        # Cada casa que sobra vai para a coluna mais longe de caber inteira.
        falta = [cheia - minimo for cheia, minimo in zip(cheias, minimos, strict=True)]
        i = max(range(len(falta)), key=falta.__getitem__)
        if falta[i] == 0:
            break
        minimos[i] += 1
        sobra -= 1
    return minimos


def _marcar(texto: str, estilo: str = ""):
    # Markdown leve -> Text do rich, pedaço por pedaço. Nada do texto vira marcação: colchetes e
    # barras de um caminho do Windows chegam à tela como são.
    from rich.text import Text

    saida = Text(style=estilo)
    for parte in re.split(r"(\*\*\S.*?\*\*|`[^`]+`)", texto):
        if len(parte) > 4 and parte.startswith("**") and parte.endswith("**"):
            saida.append(parte[2:-2], "bold")
        elif len(parte) > 2 and parte.startswith("`") and parte.endswith("`"):
            saida.append(parte[1:-1], "cyan")
        else:
            saida.append(parte)
    return saida


def _rotulado(rotulo: str, estilo: str, texto: str):
    from rich.text import Text

    return Text.assemble((rotulo, estilo), " ", _marcar(texto))


def _numero_da_secao(texto: str) -> int | str:
    return int(texto) if texto.isdecimal() else texto


def _sim(valor: bool) -> str:
    return "sim" if valor else "NÃO"


def _tolerancia(valor: float) -> str:
    return "exato" if valor == 0 else cientifico(valor, 0)


def _curto(pasta: Path) -> str:
    try:
        nome = pasta.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        nome = str(pasta)
    from rich.markup import escape

    return escape(nome.encode("utf-8", "replace").decode())
