"""O palco das lições: linha de comando, tela e saídas. O conteúdo mora na lição e no nucleo.

    aula = Aula("02_embeddings", __doc__, secoes={1: "..."}, opcoes=minhas_opcoes)
    if aula.secao(1):
        aula.diga("texto em Markdown leve")
        aula.tabela("id", "título", {"coluna": formato}, linhas)
    aula.terminar()

Um `ErroDoUsuario` vira uma mensagem e código de saída 2; Ctrl-C sai com 130 (um SIGTERM, com 143, e um
terminal que se fecha, com 129) sem estragar as saídas anteriores; qualquer outra exceção é defeito e
mostra o traceback.
"""

import argparse
import gc
import importlib.util
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from nucleo.base import caminhos
from nucleo.base.arquivos import conferir_pasta, legivel
from nucleo.base.caderno import Caderno, Conferencia, Quadro
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import cientifico, contado, decimal, inteiro
from palco import jupyter, sinais
from palco.erros import com_este_python, explicar
from palco.opcoes import Analisador, inteiro_entre, numero_da_secao  # noqa: F401 - as lições os pegam aqui
from palco.tela import (
    barra_de_progresso,
    barra_de_treino,
    curto,
    larguras,
    ler_os_acentos,
    marcar,
    medir_telas,
    preparar_fluxos,
    rotulado,
)

PACOTES = ("torch", "transformers", "numpy", "tokenizers")


class Aula:
    """Uma execução de uma lição: lê as opções, mostra na tela e grava em outputs/."""

    _vivas: ClassVar[dict[str, "Aula"]] = {}  # num kernel, a de cada lição

    def __init__(
        self,
        nome: str,
        doc: str,
        secoes: dict[int | str, str],
        opcoes: Callable[[argparse.ArgumentParser], None] | None = None,
        usa_modelo: bool = True,
    ):
        doc = jupyter.docstring(nome, doc)
        if jupyter.num_kernel():
            jupyter.ligar(("rich", "matplotlib", *PACOTES))
            if antes := Aula._vivas.pop(nome, None):
                antes._encerrar()  # a primeira célula rodou de novo: o processo ao lado da outra vez sai
            Aula._vivas[nome] = self
        else:
            ler_os_acentos()
        preparar_fluxos()
        sinais.ouvir()
        # Bibliotecas e figuras criam objetos às centenas de milhares, e quase nenhum morre antes do
        # fim: procurar lixo a cada 700 deles, que é o padrão, custa um décimo da lição.
        gc.set_threshold(100_000)
        self.nome, self.secoes, self._inicio = nome, secoes, time.perf_counter()
        self._interrompida = False  # um Ctrl-C já parou um treino nesta execução?
        self._no_fim: list[Callable[[], None]] = []
        sys.excepthook = self._ao_falhar
        self.args = self._ler_opcoes(doc, opcoes, usa_modelo)
        if not self.args.sem_graficos and importlib.util.find_spec("matplotlib") is None:
            # As figuras só o importam quando chega a vez delas: a falta se diz agora.
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        self._console, self._erros = medir_telas()
        titulo = doc.strip().splitlines()[0].rstrip(".")
        self.caderno = Caderno(nome, titulo, vivo=jupyter.num_kernel())
        self._secao, self._modelo = None, "—"
        self._mostrada = None  # a última seção cuja célula --codigo mostrou
        self._conferidas: dict[int | str | None, list[Conferencia]] = {}  # as de cada seção
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
            type=numero_da_secao,
            choices=list(self.secoes),
            help="roda só esta seção (pode repetir)",
        )
        analisador.add_argument("--saida", help=f"pasta das saídas (padrão: outputs/{self.nome})")
        liga = {"action": "store_true"}
        sem = "não desenha figuras (as da execução anterior saem)"
        analisador.add_argument("--sem-graficos", **liga, help=sem)
        analisador.add_argument("--codigo", **liga, help="mostra as linhas que acabaram de rodar")
        if opcoes:
            opcoes(analisador)
        if not jupyter.num_kernel():
            return analisador.parse_args()
        try:
            return analisador.parse_args(jupyter.argumentos(self.nome))
        except SystemExit:
            raise jupyter.SoAAjuda from None

    def _cabecalho(self, titulo: str) -> None:
        from importlib.metadata import version

        versoes = {"python": platform.python_version()} | {p: version(p) for p in PACOTES}
        dados = jupyter.argumentos(self.nome) if jupyter.num_kernel() else sys.argv[1:]
        # No Windows só as aspas duplas valem nos dois terminais.
        juntar = subprocess.list2cmdline if os.name == "nt" else shlex.join
        comando = juntar(["python", f"lab/{self.nome}.py", *map(legivel, dados)])
        quando = time.strftime("%Y-%m-%d %H:%M")
        self.caderno.ficha = {"comando": comando, "quando": quando, "versoes": versoes}
        ditas = [f"{p} {v}" for p, v in versoes.items()]
        self._regua(titulo, "bold", "center")
        self._console.print("  ·  ".join(ditas), style="dim", highlight=False)
        self.caderno.blocos.append(" · ".join([f"`{comando}`", *ditas]))

    # --- o modelo ---

    def abrir_modelo(self, nome: str | None = None):
        """O modelo pedido em --modelo (ou `nome`), com barra de progresso e a ficha na tela."""
        from nucleo.modelos import fontes

        with self.barra() as progresso:
            modelo = fontes.abrir(nome or self.args.modelo, progresso)
        self._modelo = modelo.nome
        wpe = "sem wpe" if modelo.wpe is None else f"wpe {modelo.wpe.shape[0]} × {modelo.d}"
        forma = f"wte {inteiro(modelo.V)} × {modelo.d}, {wpe}"
        self.diga(f"Quem responde: **{modelo.nome}** ({forma}) — {modelo.origem}.")
        if modelo.motivo:
            self.diga(f"Por quê: {modelo.motivo}.")
        if modelo.ficha.familia != "gpt2" or modelo.nome == "mini":
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
        with barra_de_treino(self._erros, rotulo, total) as avancar:
            passos = treino.passos()
            while True:
                try:
                    p = next(passos, None)
                except KeyboardInterrupt as fim:
                    de_fora = isinstance(fim, sinais.Encerrado)
                    if not parar_com_ctrl_c or self._interrompida or de_fora:
                        raise
                    self._interrompida = True
                    self.diga(
                        f"**Treino interrompido** no passo {treino.passo} de {total}: sigo com o que o "
                        "modelo aprendeu até aqui. Ctrl-C de novo sai da lição."
                    )
                    return
                if p is None:
                    return
                texto = f"{rotulo} · perda {decimal(p.perda)} · {p.tokens_por_s:.0f} tokens/s"
                avancar(p.passo, texto)
                yield p

    def _regua(self, titulo: str, estilo: str, lado: str) -> None:
        # O rich corta o título que não cabe na linha; aqui ele quebra e fica sem o traço.
        if len(titulo) + 4 <= self._console.width:
            self._console.rule(marcar(titulo, estilo), align=lado)
        else:
            self._console.print(marcar(titulo, estilo))

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
        if jupyter.num_kernel():
            # A célula pode estar rodando outra vez: vale a última. O título é o do caderno.
            self.caderno.recomecar(numero, f"## {numero} · ")
            self._conferidas.pop(numero, None)
            self.caderno.blocos.append(f"## {numero} · {self.secoes[numero]}")
            return True
        self._console.print()
        self._regua(f"{numero} · {self.secoes[numero]}", "bold cyan", "left")
        self.caderno.blocos.append(f"## {numero} · {self.secoes[numero]}")
        return True

    def diga(self, texto: str) -> None:
        """Um parágrafo, em Markdown leve (**negrito** e `código`), na tela e no relatório; vazio, nada."""
        if not texto:
            return
        texto = com_este_python(texto)
        self._dizer(texto)
        self.caderno.blocos.append(texto)

    def repare(self, texto: str) -> None:
        """A frase que diz o que notar na tabela ou figura que acabou de passar; vazia, não diz nada."""
        if not texto:
            return
        self._dizer(texto, "Repare:")
        self.caderno.blocos.append(f"> **Repare:** {texto}")

    def _dizer(self, texto: str, rotulo: str = "") -> None:
        if jupyter.num_kernel():
            jupyter.paragrafo(texto, rotulo)
        else:
            self._console.print(
                rotulado(rotulo, "bold magenta", texto) if rotulo else marcar(texto)
            )

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
        numeros = (int, float, type(None))  # um booleano não é um deles
        numericas = [all(type(x[i]) in numeros for x in linhas) for i in range(len(colunas))]
        self._desenhar(titulo, list(colunas), prontas, numericas)
        self.caderno.csv(id_, list(colunas), linhas)
        self.caderno.tabela_md(titulo, list(colunas), prontas)

    def quadro(self, id_: str, quadro: Quadro) -> None:
        """O mesmo que `tabela`, para um `Quadro` que o nucleo já montou; grava os resultados dele."""
        self.tabela(id_, quadro.titulo, quadro.colunas, quadro.linhas)
        self.resultados(quadro.resultados)

    def _desenhar(self, titulo: str, nomes: list[str], linhas: list[list[str]], numericas) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        if jupyter.num_kernel():
            return jupyter.tabela(titulo, nomes, linhas, numericas)
        self._console.print()
        self._console.print(marcar(titulo, "bold"))
        colunas = larguras(nomes, linhas, numericas, self._console.width)
        if colunas:
            desenho = Table(
                box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True
            )
            for nome, numerica, largura in zip(nomes, numericas, colunas, strict=True):
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
        colunas = {"o que": str, "medido": formato, "esperado": formato, **_CONFERE}
        corpo = [[c.nome, c.medido, c.esperado, c.tolerancia, c.confere] for c in linhas]
        self.tabela(id_, titulo, colunas, corpo)
        return self._anotar(id_, linhas)

    def comparar(
        self,
        id_: str,
        titulo: str,
        linhas: list[Conferencia] | dict[str, float],
        tolerancia: float = 0.0,
    ) -> bool:
        """A tabela nome / maior diferença / tolerância / confere, do zero contra a biblioteca.

        `linhas` pode ser {nome: diferença}, todas com a mesma `tolerancia` (0 pede igualdade).
        """
        if isinstance(linhas, dict):
            linhas = [Conferencia(n, float(x), 0.0, tolerancia) for n, x in linhas.items()]
        colunas = {"o que": str, "maior diferença": cientifico, **_CONFERE}
        corpo = [[c.nome, c.medido, c.tolerancia, c.confere] for c in linhas]
        self.tabela(id_, titulo, colunas, corpo)
        return self._anotar(id_, linhas)

    def _anotar(self, id_: str, linhas: list[Conferencia]) -> bool:
        self._conferidas.setdefault(self._secao, []).extend(linhas)
        for i, c in enumerate(linhas):
            self.resultado(
                f"{id_}.{i + 1}", c.medido, "", o_que=c.nome, esperado=c.esperado,
                tolerancia=c.tolerancia, confere=c.confere,
            )  # fmt: skip
            if not c.confere:
                self.diga(f"**Não confere: {c.nome}.** {_causa(c)}")
        return all(c.confere for c in linhas)

    def figura(self, id_: str, alt: str, desenhar: Callable, *argumentos) -> None:
        """Desenha e guarda uma figura, com o texto alternativo `alt`.

        `desenhar(*argumentos)` devolve a Figure e só é chamada se houver gráficos a fazer.
        """
        if self.args.sem_graficos:
            return
        from nucleo.base import graficos

        png = graficos.png(desenhar(*argumentos))
        self.caderno.figura(id_, png, alt)
        if jupyter.num_kernel():
            jupyter.figura(png, alt)
        self._console.print(rotulado("Figura:", "green", f"{id_}.png — {alt}"))

    def guardar(self, nome: str, conteudo: bytes, o_que: str) -> None:
        """Guarda um arquivo que não é tabela nem figura; `o_que` diz para que ele serve."""
        self.caderno.arquivos[nome] = conteudo
        self.caderno.blocos.append(f"[{nome}]({nome}): {o_que}")
        self._console.print(f"[green]Arquivo:[/] {nome} — {marcar(o_que)}", highlight=False)

    def resultado(
        self, id_: str, valor, unidade: str = "", modelo: str | None = None, **mais
    ) -> None:
        """Um número com nome, para resultado.json (o leem a conferência e as apostilas)."""
        self.caderno.resultado(
            id_, valor, unidade, modelo or self._modelo, self._secao or 0, **mais
        )

    def resultados(self, numeros: Iterable[tuple[str, dict]]) -> None:
        """Vários números com nome, feitos por `nucleo.base.caderno.numero`."""
        for id_, campos in numeros:
            self.resultado(id_, **campos)

    def codigo(self, *funcoes: Callable) -> None:
        """Com --codigo, mostra a célula da lição de onde foi chamada (uma vez por seção) e a fonte
        das funções, que são o que a célula manda fazer fora dela."""
        if not self.args.codigo:
            return
        import inspect

        quadro = inspect.currentframe().f_back
        if self._mostrada != self._secao:
            self._mostrada = self._secao
            self._fonte(*_celula(quadro.f_code.co_filename, quadro.f_lineno))
        for f in funcoes:
            self._fonte(inspect.getsourcefile(f), inspect.getsource(f))

    def _fonte(self, arquivo: str, fonte: str) -> None:
        from rich.syntax import Syntax

        caminho = Path(arquivo).resolve()
        dentro = caminho.is_relative_to(caminhos.RAIZ)  # a célula de um notebook não está
        origem = caminho.relative_to(caminhos.RAIZ).as_posix() if dentro else f"lab/{self.nome}.py"
        self._console.print(f"[dim]{origem}[/]")
        self._console.print(Syntax(fonte, "python", theme="ansi_dark", word_wrap=True))
        self.caderno.blocos.append(f"`{origem}`\n\n```python\n{fonte}```")

    def no_fim(self, f: Callable[[], None]) -> None:
        """Chama `f` quando a lição terminar, ou parar num erro ou num Ctrl-C."""
        self._no_fim.append(f)

    def terminar(self, depois: Callable[[], None] = lambda: None) -> None:
        """Grava as saídas e mostra o resumo: onde estão, quantas conferências, quanto tempo.

        Chama `depois` com tudo já gravado. Com um NÃO entre as conferências, sai com o código 1.
        """
        self._encerrar()
        conferidas = [c for da_secao in self._conferidas.values() for c in da_secao]
        falhas = [c for c in conferidas if not c.confere]
        segundos = time.perf_counter() - self._inicio
        self.caderno.ficha |= {
            "segundos": round(segundos, 1),
            "conferencias": len(conferidas),
            "nao_conferem": [c.nome for c in falhas],
        }
        arquivos = self.caderno.gravar(self.pasta)
        figuras = sum(a.suffix == ".png" for a in arquivos)
        tabelas = sum(a.suffix == ".csv" for a in arquivos)
        self._console.print()
        self._console.rule("[bold]Pronto[/]", align="left")
        if total := len(conferidas):
            feitas = f"Contas conferidas: {total - len(falhas)} de {total}."
            self._console.print(feitas, highlight=False)
        for c in falhas:
            self._console.print(rotulado("Não confere:", "bold red", c.nome))
            self._console.print(f"  {_causa(c)}", highlight=False)
        fizemos = contado(tabelas, "tabela")
        if figuras:
            fizemos += " e " + contado(figuras, "figura")
        onde = f"{curto(self.pasta)} (comece por relatorio.md)"
        self._console.print(f"{fizemos} em {onde} · {decimal(segundos, 1)} s", highlight=False)
        if self.args.secao and not self.args.saida:
            inteira = self.pasta.parent
            onde = f"a lição inteira, sem --secao, grava em {curto(inteira)}"
            if (inteira / "relatorio.md").is_file():
                onde = f"o relatório completo continua em {curto(inteira)}"
            self._console.print(f"Só as seções pedidas: {onde}.", highlight=False)
        sys.excepthook = sys.__excepthook__
        sinais.soltar()
        depois()
        if falhas and not jupyter.num_kernel():
            raise SystemExit(1)  # as saídas ficam; quem chamou sabe que um número não confere

    # --- quando algo dá errado ---

    def _encerrar(self) -> None:
        while self._no_fim:
            self._no_fim.pop()()

    def _ao_falhar(self, tipo, erro, rastro) -> None:
        sinais.acabar()
        self._encerrar()
        codigo = explicar(erro)
        if codigo is None:
            sys.__excepthook__(tipo, erro, rastro)
        else:
            raise SystemExit(codigo)


def _celula(arquivo: str, linha: int) -> tuple[str, str]:
    # (arquivo, fonte) da célula `# %%` em que a linha está. Num notebook, o "arquivo" é a célula.
    import linecache

    linhas = linecache.getlines(arquivo)
    comecos = [i for i, x in enumerate(linhas) if x.startswith("# %%")]
    inicio = max((i for i in comecos if i < linha), default=0)
    fim = min((i for i in comecos if i >= linha), default=len(linhas))
    return arquivo, "".join(linhas[inicio:fim]).rstrip() + "\n"


def _causa(c: Conferencia) -> str:
    """A frase de uma conferência que não confere: o que se mediu, e o que isso pode ser."""
    if c.medido != c.medido:
        return "O resultado não é um número (NaN): há NaN ou infinito nos pesos, ou no que se fez com eles."
    longe = f"Medido {cientifico(c.medido)}, esperado {cientifico(c.esperado)}"
    folga = f", com folga de {cientifico(c.tolerancia, 0)}" if c.tolerancia else ", sem folga"
    return (
        f"{longe}{folga}: é mais do que o arredondamento explica. Ou os números do arquivo não são os "
        "que se supõe, ou a conta daqui não é a que este modelo faz; o que a seção diz dela não vale aqui."
    )


# As duas últimas colunas de toda conferência.
_CONFERE = {
    "tolerância": lambda x: "exato" if x == 0 else cientifico(x, 0),
    "confere": lambda x: "sim" if x else "NÃO",
}
