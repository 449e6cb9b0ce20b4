"""A página que junta tudo: outputs/index.html, um arquivo só, com o que cada lição deixou.

Aqui nada é medido de novo: lê-se o relatorio.md e o resultado.json de cada pasta de outputs/.
O que veio de uma execução anterior aparece marcado, com a data.
"""

import ast
import os
import platform
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from nucleo.base import arquivos, caminhos, pacotes, resultado
from nucleo.base.unidades import decimal
from nucleo.paginas import esqueleto

PRONTO, RESSALVA, FALHOU = "pronto", "com ressalva", "falhou"
INTERROMPIDA, NAO_RODOU = "interrompida", "não rodou"
ANTES = "de antes"
CONFERENCIA = "99_conferir"
_CLASSES = {PRONTO: "pronto", RESSALVA: "ressalva", FALHOU: "falhou"}
# A cor nunca vai sozinha: cada situação tem o seu sinal.
_SINAIS = {PRONTO: "✓", RESSALVA: "!", FALHOU: "✗", INTERROMPIDA: "–", NAO_RODOU: "–", ANTES: "·"}


@dataclass(frozen=True)
class Execucao:
    """O que houve com uma lição nesta execução de tudo.py.

    `situacao` é uma das constantes deste módulo; `fazer`, o que a pessoa deve fazer; `erro`, as
    últimas linhas do que a lição disse antes de falhar; `gravou`, se as saídas são de agora.
    """

    nome: str
    situacao: str
    segundos: float | None = None
    fazer: list[str] = field(default_factory=list)
    erro: str = ""
    gravou: bool = True


def escrever(
    execucoes: list[Execucao],
    licoes: list[str],
    modelo: tuple[str, str],
    comando: str,
    apostilas: list | None = None,
    saidas: Path | None = None,
) -> Path:
    """Grava index.html em `saidas` (padrão: outputs/) e devolve o caminho.

    Argumentos:
        execucoes: o que houve agora, uma por lição que rodou ou devia rodar.
        licoes: os nomes de todas as lições, na ordem; as que não rodaram aparecem como “de antes”.
        modelo: (nome, por que ele).
        apostilas: as `Apostila` já convertidas.
    Erros: `ErroDoUsuario` (disco, permissão).
    """
    saidas = saidas or caminhos.SAIDAS
    agora = {e.nome: e for e in execucoes}
    pastas = {p.parent.name for p in saidas.glob("*/resultado.json")}
    nomes = list(dict.fromkeys([*licoes, *sorted(pastas)]))
    _adiantar_figuras([saidas / nome for nome in nomes])
    fichas = [_ficha(nome, saidas / nome, agora.get(nome)) for nome in nomes]
    fichas = [f for f in fichas if f["nome"] != CONFERENCIA or f["relatorio"] or f["erro"]]
    html = esqueleto.pagina_html(
        "indice.html",
        titulo="Laboratório de embeddings e posições",
        quando=time.strftime("%d/%m/%Y às %H:%M"),
        comando=comando,
        placar=placar(execucoes),
        todas=fichas,
        licoes=[f for f in fichas if f["nome"] != CONFERENCIA],
        conferencia=next((f for f in fichas if f["nome"] == CONFERENCIA), None),
        contas=_contas(fichas),
        maquina=_maquina(fichas, modelo),
        pacotes=[f"{p.nome} {p.versao or '(falta)'}" for p in pacotes.pedidos()],
        apostilas=[_linha_da_apostila(a) for a in apostilas or [] if a.fonte != "LEIAME.md"],
    )
    destino = saidas / "index.html"
    return arquivos.gravar(destino, html.encode("utf-8"), esqueleto.SO_A_PAGINA)


def placar(execucoes: list[Execucao]) -> str:
    """Uma frase: quantas lições prontas, com ressalva, falharam."""
    if not execucoes:
        return "Nenhuma lição rodou agora: tudo aqui é de execuções anteriores."
    quantas = Counter(e.situacao for e in execucoes)
    ordem = (PRONTO, RESSALVA, FALHOU, INTERROMPIDA, NAO_RODOU)
    nomes = {
        PRONTO: ("pronta", "prontas"), RESSALVA: ("com ressalva", "com ressalva"),
        FALHOU: ("falhou", "falharam"), INTERROMPIDA: ("interrompida", "interrompidas"),
        NAO_RODOU: ("não rodou", "não rodaram"),
    }  # fmt: skip
    partes = [f"{quantas[s]} {nomes[s][quantas[s] > 1]}" for s in ordem if quantas[s]]
    total = len(execucoes)
    return f"{total} {'lição' if total == 1 else 'lições'}: {', '.join(partes)}."


# --- uma lição ---------------------------------------------------------------------------


def ler_resultado(pasta: Path) -> dict:
    """O resultado.json de uma pasta; {} se não existe ou não serve (meio gravado, mexido à mão)."""
    return resultado.ler(pasta / "resultado.json") or {}


def _ficha(nome: str, pasta: Path, execucao: Execucao | None) -> dict:
    dados = ler_resultado(pasta)
    if execucao is None:
        execucao = Execucao(
            nome, ANTES if dados else NAO_RODOU, fazer=_como_rodar(nome, dados), gravou=False
        )
    titulo, relatorio = _relatorio(nome, pasta) if dados else ("", "")
    nomes = [n for n in dados.get("arquivos", []) if (pasta / n).is_file()]
    modelo = dados.get("modelo", {})
    erradas = dados.get("nao_conferem", [])
    quantas = dados.get("conferencias", 0)
    resultados = dados.get("resultados", [])
    return {
        "nome": nome,
        "titulo": titulo or _titulo_do_script(nome),
        "estado": {
            "nome": execucao.situacao, "classe": _CLASSES.get(execucao.situacao, "suave"),
            "sinal": _SINAIS[execucao.situacao],
        },
        "fazer": execucao.fazer,
        "erro": execucao.erro,
        "velho": _aviso_de_velho(execucao, dados),
        "comando": dados.get("comando", ""),
        "quando": dados.get("quando", "sem data"),
        # A tela mede a lição inteira; o resultado, só de onde ela começa a contar.
        "segundos": execucao.segundos if execucao.segundos is not None else dados.get("segundos"),
        "modelo": " — ".join(filter(None, (modelo.get("nome"), modelo.get("origem"), modelo.get("motivo")))),
        "versoes": " · ".join(f"{p} {v}" for p, v in dados.get("versoes", {}).items()),
        "contas": f"{quantas - len(erradas)} de {quantas} conferem" if quantas else "",
        "quantas": quantas,
        "erradas": erradas,
        "vereditos": Counter(r["veredito"] for r in resultados if r.get("veredito")).most_common(),
        "resumo": _resumo(nomes, len(resultados)),
        "relatorio": relatorio,
        "aberto": nome == CONFERENCIA,
        "arquivos": [(n, quote(f"{nome}/{n}")) for n in nomes],
    }  # fmt: skip


def _aviso_de_velho(execucao: Execucao, dados: dict) -> str:
    if execucao.gravou or not dados:
        return ""
    quando = dados.get("quando", "data desconhecida")
    return f"O relatório abaixo é de uma execução anterior ({quando}), e não de agora."


def _como_rodar(nome: str, dados: dict) -> list[str]:
    # O comando que fez o relatório, com as opções dele; sem relatório, o mais simples.
    comando = dados.get("comando") or f"python lab/{nome}.py"
    return [f"para refazer: {comando}"] if _script(nome).is_file() else []


def _script(nome: str) -> Path:
    return caminhos.RAIZ / "lab" / f"{nome}.py"


def _titulo_do_script(nome: str) -> str:
    # A primeira linha do cabeçalho, que é também o título do relatório.
    try:
        doc = ast.get_docstring(ast.parse(_script(nome).read_text(encoding="utf-8")))
    except (OSError, SyntaxError, ValueError):
        doc = None
    return (doc or nome).strip().splitlines()[0].rstrip(".")


def _resumo(nomes: list[str], numeros: int) -> str:
    tabelas = sum(n.endswith(".csv") for n in nomes)
    figuras = sum(n.endswith(".png") for n in nomes)
    partes = [(tabelas, "tabela"), (figuras, "figura"), (numeros, "número")]
    return ", ".join(f"{n} {nome}{'s' if n > 1 else ''}" for n, nome in partes if n) or "só texto"


def _relatorio(nome: str, pasta: Path) -> tuple[str, str]:
    # (título, HTML). O texto é de fora: o HTML que houver nele sai escapado.
    from markupsafe import Markup

    try:
        texto = (pasta / "relatorio.md").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return "", ""
    md = esqueleto.leitor(prefixo=f"{nome}-", desce=2)
    esqueleto.trocar_imagens(md, lambda endereco: _bytes(pasta, endereco))
    md.core.ruler.push("links", lambda estado: _apontar_para_a_pasta(nome, estado.tokens))
    tokens, titulo = md.parse(texto), ""
    if len(tokens) > 2 and tokens[0].type == "heading_open" and tokens[0].tag == "h3":
        titulo = "".join(f.content for f in tokens[1].children if f.type in ("text", "code_inline"))
        del tokens[:3]
    return titulo, Markup(md.renderer.render(tokens, md.options, {}))


def _bytes(pasta: Path, endereco: str) -> bytes | None:
    # Só um nome simples, da pasta da própria lição.
    arquivo = pasta / Path(endereco).name
    return arquivo.read_bytes() if arquivo.name == endereco and arquivo.is_file() else None


def _apontar_para_a_pasta(nome: str, tokens) -> None:
    for filho in (f for t in tokens for f in t.children or [] if f.type == "link_open"):
        href = str(filho.attrGet("href"))
        if "://" not in href and not href.startswith(("#", "mailto:")):
            filho.attrSet("href", f"{quote(nome)}/{href}")


def _adiantar_figuras(pastas: list[Path]) -> None:
    figuras = []
    for pasta in pastas:
        if (pasta / "relatorio.md").is_file():
            figuras += [p.read_bytes() for p in sorted(pasta.glob("*.png"))]
    esqueleto.encolher_todas(figuras)


# --- a conferência, a máquina, as apostilas -----------------------------------------------


def _contas(fichas: list[dict]) -> dict:
    linhas = [
        {"nome": f["nome"], "quantas": f["quantas"], "certas": f["quantas"] - len(f["erradas"]),
         "erradas": f["erradas"]}
        for f in fichas if f["quantas"]
    ]  # fmt: skip
    total, certas = sum(x["quantas"] for x in linhas), sum(x["certas"] for x in linhas)
    frase = f"Das {total} contas que as lições fizeram de dois jeitos, {certas} conferem."
    return {"linhas": linhas, "frase": frase if total else "Nenhuma lição conferiu contas ainda."}


def _maquina(fichas: list[dict], modelo: tuple[str, str]) -> list[tuple[str, str]]:
    nome, motivo = modelo
    itens = [
        ("Sistema", f"{platform.system()} {platform.release()} ({platform.machine()})"),
        ("Python", platform.python_version()),
        ("Núcleos", str(os.cpu_count() or "?")),
        ("Modelo", f"{nome} — {motivo}"),
    ]
    usados = sorted({f["modelo"].split(" — ")[0] for f in fichas if f["modelo"]})
    if usados and usados != [nome]:
        itens.append(("Nos relatórios", ", ".join(usados)))
    medidos = [f["segundos"] for f in fichas if f["segundos"] is not None]
    if medidos:
        itens.append(("Tempo somado", f"{decimal(sum(medidos), 0)} s"))
    return itens


def _linha_da_apostila(apostila) -> dict:
    return {
        "endereco": f"apostilas/{quote(apostila.endereco)}",
        "titulo": apostila.titulo,
        "leitura": apostila.leitura,
    }
