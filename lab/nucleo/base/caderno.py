"""O que a lição deixa para trás: tabelas, figuras, relatório e resultados, gravados inteiros ou nada.

Tudo é montado numa pasta de trabalho escondida dentro do destino. Só no fim cada arquivo
troca de lugar, de uma vez (`os.replace`): quem interrompe a lição, ou fica sem disco, ainda
tem a última versão boa. A troca é anotada antes num diário; se o processo morre no meio dela, a
próxima execução a termina. E só uma execução por vez grava numa pasta.
"""

import contextlib
import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nucleo.base.erros import ErroDoUsuario
from nucleo.base.trava import Ocupada, so_um

_ESPERA = 30.0  # segundos por outra execução que esteja gravando: gravar leva menos de um
_DIARIO, _DESFAZER = "diario.json", "desfazer.json"


@dataclass(frozen=True)
class Conferencia:
    """Um número medido contra o que se esperava. `confere` é decidido aqui e só aqui.

    `tolerancia` é absoluta; 0 pede igualdade exata. Sem `esperado`, mede-se uma diferença
    que devia ser zero (do zero contra a biblioteca).
    """

    nome: str
    medido: float
    esperado: float = 0.0
    tolerancia: float = 0.0

    @property
    def confere(self) -> bool:
        # NaN nunca confere: a comparação com ele é sempre falsa.
        return bool(abs(self.medido - self.esperado) <= self.tolerancia)


@dataclass(frozen=True)
class Quadro:
    """Uma tabela pronta: título, {coluna: formato de um valor -> texto} e as linhas de valores.

    `resultados` são os números dela que têm nome, cada um feito por `numero`.
    """

    titulo: str
    colunas: dict[str, Callable]
    linhas: list[list]
    resultados: list[tuple[str, dict]] = field(default_factory=list)


def numero(id_: str, valor, **mais) -> tuple[str, dict]:
    """Um número com nome, e os campos que o acompanham, a caminho do resultado.json."""
    return id_, {"valor": valor} | mais


@dataclass
class Caderno:
    """Tudo o que uma lição mostrou, na ordem, pronto para virar arquivos.

    `blocos` é o relatório em Markdown; `arquivos` são os bytes de cada tabela e figura;
    `resultados` são os números com nome e `tabelas` as tabelas inteiras, para outros programas.
    """

    nome: str
    titulo: str
    blocos: list[str] = field(default_factory=list)
    arquivos: dict[str, bytes] = field(default_factory=dict)
    resultados: list[dict] = field(default_factory=list)
    tabelas: dict[str, dict] = field(default_factory=dict)
    ficha: dict = field(default_factory=dict)

    def csv(self, id_: str, colunas: list[str], linhas: list[list]) -> None:
        """Guarda a tabela em `id_`.csv (UTF-8, vírgula, ponto decimal), com os valores inteiros."""
        texto = io.StringIO(newline="")
        escritor = csv.writer(texto, lineterminator="\n")
        escritor.writerow(colunas)
        escritor.writerows(linhas)
        self.arquivos[f"{id_}.csv"] = texto.getvalue().encode("utf-8")
        # As apostilas leem as mesmas linhas do resultado.json, sem passar pelo texto do CSV.
        self.tabelas[id_] = {"colunas": list(colunas), "linhas": _simples(linhas)}

    def tabela_md(self, titulo: str, colunas: list[str], linhas: list[list[str]]) -> None:
        """A mesma tabela, já formatada para leitura, no relatório."""

        def linha(celulas):
            # Uma quebra de linha acabaria com a tabela.
            limpas = (str(c).replace("|", "\\|").replace("\n", "; ") for c in celulas)
            return "| " + " | ".join(limpas) + " |"

        corpo = [linha(colunas), linha(["---"] * len(colunas)), *map(linha, linhas)]
        self.blocos.append((f"**{titulo}**\n\n" if titulo else "") + "\n".join(corpo))

    def figura(self, id_: str, png: bytes, alt: str) -> None:
        """Guarda a figura `id_`.png e a cita no relatório com o texto alternativo."""
        self.arquivos[f"{id_}.png"] = png
        self.blocos.append(f"![{alt}]({id_}.png)")

    def resultado(
        self, id_: str, valor, unidade: str, modelo: str, secao: int | str, **mais
    ) -> None:
        """Um número com nome. Ids não se repetem: `ValueError` se o mesmo vier duas vezes."""
        if any(r["id"] == id_ and r["modelo"] == modelo for r in self.resultados):
            raise ValueError(f"resultado repetido: {id_} ({modelo})")
        self.resultados.append(
            {
                "id": id_,
                "valor": _simples(valor),
                "unidade": unidade,
                "modelo": modelo,
                "secao": secao,
            }
            | {k: _simples(v) for k, v in mais.items()}
        )

    def gravar(self, pasta: Path) -> list[Path]:
        """Grava relatorio.md, resultado.json e os arquivos em `pasta`; devolve os caminhos.

        Arquivos da execução anterior que esta não refez são retirados (a lista deles está no
        resultado.json antigo); nada que não seja nosso é tocado.
        Erros: `ErroDoUsuario` se faltar disco, permissão, ou se um arquivo estiver aberto.
        """
        nomes = [*sorted(self.arquivos), "relatorio.md", "resultado.json"]
        relatorio = f"# {self.titulo}\n\n" + "\n\n".join(self.blocos) + "\n"
        resultado = {
            "licao": self.nome,
            **self.ficha,
            "arquivos": nomes,
            "resultados": self.resultados,
            "tabelas": self.tabelas,
        }
        conteudo = self.arquivos | {
            "relatorio.md": relatorio.encode("utf-8"),
            "resultado.json": (
                json.dumps(resultado, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
            ).encode("utf-8"),
        }
        try:
            pasta.mkdir(parents=True, exist_ok=True)
            with so_um(pasta, _ESPERA) as trancada:
                _arrumar(pasta, trancada)
                _trocar_tudo(pasta, nomes, conteudo, _lista_antiga(pasta, self.nome) - set(nomes))
        except Ocupada:
            raise _ocupada(pasta) from None
        except OSError as erro:
            raise nao_gravou(pasta, erro) from None
        return [pasta / nome for nome in nomes]


# --- a troca: tudo de uma execução, ou tudo da outra --------------------------------------
#
# Pasta de trabalho (.parcial-…):  os arquivos novos;  antes/, os de hoje;  o diário.
# Sem diário, a troca não começou: apagar o trabalho basta. Com diario.json, ela começou, e
# terminá-la é repetir o que falta. Com desfazer.json, um arquivo não pôde trocar e os de antes
# estão voltando. Cada passo pode ser repetido sem estrago: morrer em qualquer ponto tem volta.


def _trocar_tudo(pasta: Path, nomes: list[str], conteudo: dict, sobras: set[str]) -> None:
    trabalho = Path(tempfile.mkdtemp(prefix=".parcial-", dir=pasta))
    try:
        for nome in nomes:
            _escrever(trabalho / nome, conteudo[nome])
        (trabalho / "antes").mkdir()
        havia = [n for n in [*nomes, *sorted(sobras)] if os.path.lexists(pasta / n)]
        for nome in havia:
            _copiar(pasta / nome, trabalho / "antes" / nome)
        diario = {"novos": nomes, "sobras": sorted(sobras), "havia": havia}
        _escrever(trabalho / "diario", json.dumps(diario).encode("utf-8"))
        os.replace(trabalho / "diario", trabalho / _DIARIO)
        _terminar(trabalho, pasta)
    finally:
        _largar(trabalho)


def _terminar(trabalho: Path, pasta: Path) -> None:
    """Conclui a troca anotada em `trabalho`; se um arquivo não puder trocar, desfaz e repete o erro."""
    diario, desfazer = trabalho / _DIARIO, trabalho / _DESFAZER
    if diario.is_file():
        try:
            _concluir(trabalho, pasta, json.loads(diario.read_text(encoding="utf-8")))
            diario.unlink()
            return
        except BaseException:
            # Aberto no Excel, por exemplo. Os de antes voltam todos, e o erro segue.
            if diario.is_file():
                os.replace(diario, desfazer)
                _terminar(trabalho, pasta)
            raise
    if desfazer.is_file():
        _desfazer(trabalho, pasta, json.loads(desfazer.read_text(encoding="utf-8")))
        desfazer.unlink()


def _concluir(trabalho: Path, pasta: Path, diario: dict) -> None:
    for nome in diario["sobras"]:
        if not _e_pasta(pasta / nome):
            (pasta / nome).unlink(missing_ok=True)
    for nome in diario["novos"]:
        if not os.path.lexists(trabalho / nome):
            continue  # este já trocou, antes de uma morte
        if _e_pasta(pasta / nome):
            os.replace(pasta / nome, trabalho / "antes" / nome)
        os.replace(trabalho / nome, pasta / nome)


def _desfazer(trabalho: Path, pasta: Path, diario: dict) -> None:
    falha = None
    for nome in [*diario["novos"], *diario["sobras"]]:
        guardado = trabalho / "antes" / nome
        try:
            if nome not in diario["havia"] or _e_pasta(guardado):
                (pasta / nome).unlink(missing_ok=True)
            if os.path.lexists(guardado):
                os.replace(guardado, pasta / nome)
        except OSError as erro:
            falha = erro  # os outros ainda podem voltar
    if falha:
        raise falha


def _arrumar(pasta: Path, trancada: bool) -> None:
    """Termina (ou apaga, se nem começou) a troca que uma execução morta deixou pela metade."""
    for resto in sorted(pasta.glob(".parcial-*")):
        # Com a pasta trancada, um resto é de quem morreu. Sem trava (disco de rede), só se ele for
        # de mais de uma hora: gravar leva segundos.
        if not trancada and resto.stat().st_mtime > _agora() - 3600:
            continue
        with contextlib.suppress(OSError, ValueError):
            _terminar(resto, pasta)
        _largar(resto)


def _largar(trabalho: Path) -> None:
    # Com um diário ainda pendente (um arquivo preso), a próxima execução tenta de novo.
    if not any(os.path.lexists(trabalho / d) for d in (_DIARIO, _DESFAZER)):
        shutil.rmtree(trabalho, ignore_errors=True)


def _escrever(arquivo: Path, conteudo: bytes) -> None:
    with arquivo.open("wb") as f:
        f.write(conteudo)
        f.flush()
        os.fsync(f.fileno())


def _copiar(de: Path, para: Path) -> None:
    # Um segundo nome para o mesmo arquivo não ocupa disco; onde isso não existe, uma cópia. Uma
    # pasta (no lugar de um arquivo nosso) muda de lugar inteira, na hora da troca.
    if _e_pasta(de):
        return
    try:
        os.link(de, para, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(de, para, follow_symlinks=False)


def _e_pasta(caminho: Path) -> bool:
    return caminho.is_dir() and not caminho.is_symlink()


def conferir_pasta(pasta: Path) -> None:
    """Avisa antes da lição, e não depois de um minuto, que a pasta não aceita arquivos.

    Também termina a troca que uma execução morta à força deixou pela metade (pastas .parcial-*).
    Erros: `ErroDoUsuario`.
    """
    try:
        pasta.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=pasta):
            pass
        if any(pasta.glob(".parcial-*")):
            # Se há outra execução gravando agora, o que está lá é dela.
            with contextlib.suppress(Ocupada), so_um(pasta, 0) as trancada:
                _arrumar(pasta, trancada)
    except OSError as erro:
        raise nao_gravou(pasta, erro) from None


def _agora() -> float:
    import time

    return time.time()


def _lista_antiga(pasta: Path, licao: str) -> set[str]:
    # Só o que esta lição escreve, e só nomes simples: um resultado.json de outra lição, ou mexido
    # à mão, não apaga nada.
    arquivo = pasta / "resultado.json"
    try:
        if not arquivo.is_file():  # ler um FIFO com esse nome esperaria para sempre
            return set()
        dados = json.loads(arquivo.read_text(encoding="utf-8"))
        if dados["licao"] != licao:
            return set()
        return {
            n
            for n in dados["arquivos"]
            if isinstance(n, str) and Path(n).name == n and n.endswith((".csv", ".png"))
        }
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _ocupada(pasta: Path) -> ErroDoUsuario:
    return ErroDoUsuario(
        f"Outra execução está gravando em {pasta}.",
        f"Esperei {_ESPERA:.0f} s e ela não terminou; duas não gravam ao mesmo tempo na mesma pasta.",
        "Espere a outra acabar, ou escolha outra pasta:  --saida PASTA",
    )


def nao_gravou(
    pasta: Path, erro: OSError, fazer: str = "Escolha outra pasta:  --saida PASTA"
) -> ErroDoUsuario:
    """O erro do sistema ao gravar em `pasta`, dito em português; `fazer` é o conserto."""
    motivos = {
        28: "o disco está cheio",
        27: "o sistema não deixa gravar um arquivo deste tamanho",
        122: "a sua cota de disco acabou",
        30: "o disco é só de leitura",
        13: "a pasta (ou um arquivo dela, talvez aberto em outro programa) não permite escrita",
        1: "a pasta não permite escrita",
        20: "um pedaço do caminho é um arquivo, não uma pasta",
        21: "há uma pasta com o nome de um dos arquivos",
        36: "o nome é comprido demais para este sistema",
        40: "o caminho dá voltas (um atalho aponta para ele mesmo)",
        17: "já existe um arquivo com esse nome",
    }
    return ErroDoUsuario(
        f"Não consegui gravar em {pasta}.",
        f"O sistema respondeu: {motivos.get(erro.errno, erro.strerror or str(erro))}. "
        "Os arquivos da última execução boa, se havia, continuam como estavam.",
        fazer,
    )


def _simples(valor):
    """Tipos do numpy viram os do Python; NaN e infinito viram None (JSON não os tem)."""
    if hasattr(valor, "tolist"):
        valor = valor.tolist()
    if isinstance(valor, float) and (valor != valor or valor in (float("inf"), float("-inf"))):
        return None
    if isinstance(valor, (list, tuple)):
        return [_simples(v) for v in valor]
    if isinstance(valor, dict):
        return {str(k): _simples(v) for k, v in valor.items()}
    return valor
