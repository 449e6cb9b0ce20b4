"""Os diagramas das apostilas: o fonte em mermaid vira um SVG guardado ao lado, em apostilas/figuras.

Quem lê a apostila no GitHub vê o mermaid; quem abre a nossa página vê o SVG, que não precisa de
script nenhum. O nome do SVG leva o resumo do fonte: mudou o fonte, o desenho antigo não serve.
"""

import hashlib
import re
from pathlib import Path
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_LETRA = "DejaVu Sans, Verdana, sans-serif"  # larga: o texto medido com ela cabe nas outras
_CERCA = re.compile(r"^( *)```mermaid *\n(.*?)^\1``` *$", re.M | re.S)
# A cor e a letra são da página (claro e escuro); do mermaid ficam as formas e os lugares.
CONFIGURACAO = {
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False},
    "fontFamily": _LETRA,
    "themeVariables": {"fontFamily": _LETRA, "fontSize": "16px"},
}


def fontes(markdown: str) -> list[str]:
    """Os fontes mermaid de um texto, na ordem."""
    return [_sem_recuo(miolo, recuo) for recuo, miolo in _CERCA.findall(markdown)]


def _sem_recuo(miolo: str, recuo: str) -> str:
    return "".join(linha.removeprefix(recuo) for linha in miolo.splitlines(keepends=True))


def nome_do_svg(fonte: str) -> str:
    """diagrama-<resumo do fonte>.svg; espaços no fim das linhas não contam."""
    linhas = [linha.rstrip() for linha in fonte.strip().splitlines()]
    resumo = hashlib.sha256("\n".join(linhas).encode("utf-8")).hexdigest()[:12]
    return f"diagrama-{resumo}.svg"


def rotulos(fonte: str) -> tuple[str, str]:
    """(título, descrição) do diagrama: accTitle e accDescr, se houver; senão, o que está escrito nele."""
    titulo = re.search(r"^\s*accTitle\s*:\s*(.+)$", fonte, re.M)
    descricao = re.search(r"^\s*accDescr\s*:\s*(.+)$", fonte, re.M)
    textos = re.findall(
        r"\[\(?\"?([^\[\]\"()]+?)\"?\)?\]|\(\"?([^()\"]+?)\"?\)|\|\"?([^|\"]+?)\"?\|", fonte
    )
    lidos = "; ".join(dict.fromkeys(next(filter(None, t)).strip() for t in textos))
    return (
        titulo[1].strip() if titulo else "Diagrama",
        descricao[1].strip() if descricao else f"Fluxograma com: {lidos or 'sem rótulos'}.",
    )


def limpar(svg: str, fonte: str) -> str:
    """O SVG do mermaid sem cores, scripts nem ids sobrando, com título e descrição acessíveis.

    Erros: `ValueError` se sobrar HTML dentro dele (o leitor de SVG do navegador é outro).
    """
    ElementTree.register_namespace("", _SVG)
    raiz = ElementTree.fromstring(svg)
    nome = nome_do_svg(fonte).removesuffix(".svg")
    usados = set(re.findall(r"url\(#([^)]+)\)", svg))
    for pai in list(raiz.iter()):
        for filho in list(pai):
            tipo = filho.tag.removeprefix(f"{{{_SVG}}}")
            if tipo in ("foreignObject", "script", "image", "a"):
                raise ValueError(f"o SVG do diagrama tem <{tipo}>")
            sem_uso = tipo == "marker" and filho.get("id") not in usados
            if tipo in ("style", "defs", "filter") or sem_uso:
                pai.remove(filho)
    trocas = {velho: f"{nome}-ponta-{n}" for n, velho in enumerate(sorted(usados), 1)}
    for no in raiz.iter():
        id_ = no.attrib.pop("id", None)
        if id_ in trocas:
            no.set("id", trocas[id_])
        for atributo in list(no.attrib):
            if atributo == "style" or atributo.startswith("data-"):
                del no.attrib[atributo]
            elif no.get(atributo, "").startswith("url(#"):
                no.set(atributo, f"url(#{trocas[no.get(atributo)[5:-1]]})")
    _dar_nome(raiz, nome, *rotulos(fonte))
    return re.sub(
        r"\d+\.\d{3,}", lambda m: f"{float(m[0]):.1f}", ElementTree.tostring(raiz, "unicode")
    )


def _dar_nome(raiz, nome: str, titulo: str, descricao: str) -> None:
    _, _, largura, altura = raiz.get("viewBox").split()
    for sobra in ("aria-roledescription", "aria-describedby"):
        raiz.attrib.pop(sobra, None)
    for velho in [n for n in raiz if n.tag in (f"{{{_SVG}}}title", f"{{{_SVG}}}desc")]:
        raiz.remove(velho)
    raiz.attrib |= {
        "role": "img", "id": nome, "aria-labelledby": f"{nome}-titulo {nome}-descricao",
        "width": f"{float(largura):.0f}", "height": f"{float(altura):.0f}", "font-size": "16",
        "font-family": _LETRA,
    }  # fmt: skip
    for n, (tipo, texto) in enumerate((("title", titulo), ("desc", descricao))):
        no = ElementTree.Element(
            f"{{{_SVG}}}{tipo}", {"id": f"{nome}-{('titulo', 'descricao')[n]}"}
        )
        no.text = texto
        raiz.insert(n, no)


def faltam(pasta: Path) -> tuple[dict[str, str], list[Path]]:
    """({nome do SVG que falta: fonte}, [SVG que ninguém usa]) das apostilas de `pasta`."""
    pedidos = {}
    for texto in sorted(pasta.glob("*.md")):
        for fonte in fontes(texto.read_text(encoding="utf-8")):
            pedidos[nome_do_svg(fonte)] = fonte
    presentes = {p.name: p for p in (pasta / "figuras").glob("diagrama-*.svg")}
    return (
        {nome: fonte for nome, fonte in pedidos.items() if nome not in presentes},
        [p for nome, p in presentes.items() if nome not in pedidos],
    )
