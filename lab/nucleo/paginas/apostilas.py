"""As apostilas em páginas que se abrem sem internet: Markdown do GitHub -> HTML de um arquivo só.

Fórmulas viram MathML, diagramas o SVG guardado, figuras vão dentro, e os links entre apostilas
apontam para as páginas. O que não der certo (uma fórmula, um link) aparece marcado na página e
volta em `avisos`: nada some calado.
"""

import base64
import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote

from markupsafe import Markup

from nucleo.base import arquivos, caminhos
from nucleo.base.leitura import minutos_de_leitura
from nucleo.paginas import diagramas, esqueleto

APOSTILAS = caminhos.RAIZ / "apostilas"
# O que o cabeçalho conta, além das palavras.
CONTADOS = {
    "linha de código": "linhas de código",
    "fórmula destacada": "fórmulas destacadas",
    "figura": "figuras",
}
# O GitHub escreve o título da nota em inglês; aqui, não.
_NOTAS = {
    "note": "Nota", "tip": "Dica", "important": "Importante", "warning": "Atenção", "caution": "Cuidado",
}  # fmt: skip
_LEITURA = re.compile(r"Leitura: (\d+) minutos?\.")
_COMENTARIO = re.compile(r"<!--.*?-->", re.S)
# O HTML que um texto pode trazer; o resto (script, iframe, onclick…) sai escrito, e não vale.
_NAO_PASSA = re.compile(
    r"<(?!/?(?:details|summary|img|br|sub|sup|kbd)"
    r"""(?:\s+(?:open|src|alt|title|width|height|align)(?:="[^"<>]*"|(?=[\s/>])))*\s*/?>)(?=[a-zA-Z/!?])(/?[\w!?-]*)"""
)


@dataclass
class Apostila:
    """Uma apostila convertida, antes de virar página.

    `corpo` e `titulo_html` são HTML; `secoes` são (nível, âncora, texto); `ids`, as âncoras da página; `links`, os
    (página, âncora) que ela cita; `avisos`, o que não deu para converter.
    """

    fonte: str
    titulo: str = ""
    titulo_html: str = ""
    id_do_titulo: str = ""
    corpo: str = ""
    secoes: list[tuple[int, str, str]] = field(default_factory=list)
    palavras: int = 0
    minutos: int = 0
    contagem: dict[str, int] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    links: list[tuple[str, str]] = field(default_factory=list)
    avisos: list[str] = field(default_factory=list)

    @property
    def endereco(self) -> str:
        return Path(self.fonte).stem + ".html"

    @property
    def leitura(self) -> str:
        """Por exemplo: “leitura: 12 min (1.900 palavras, 8 fórmulas destacadas, 3 figuras)”."""
        from nucleo.base.unidades import inteiro

        partes = [f"{inteiro(self.palavras)} palavras"]
        partes += [f"{n} {o if n == 1 else CONTADOS[o]}" for o, n in self.contagem.items() if n]
        return f"leitura: {self.minutos} min ({', '.join(partes)})"


def escrever(origem: Path = APOSTILAS, destino: Path | None = None) -> list[Apostila]:
    """Converte todas as apostilas de `origem` e grava as páginas em `destino`; devolve-as.

    Páginas de apostilas que não existem mais são retiradas. Erros: `ErroDoUsuario` (disco, permissão).
    """
    destino = destino or caminhos.SAIDAS / "apostilas"
    fontes = sorted(origem.glob("*.md"))
    paginas = [converter(fonte, [p.name for p in fontes], destino) for fonte in fontes]
    _conferir_ancoras(paginas)
    novas = {}
    for pagina in paginas:
        sao = {"outras": paginas, "endereco": pagina.endereco, "leitura": pagina.leitura}
        html = esqueleto.pagina_html("apostila.html", **vars(pagina), **sao)
        novas[destino / pagina.endereco] = html.encode("utf-8")
    velhas = [v for v in destino.glob("*.html") if v not in novas]
    arquivos.gravar_todos(novas, velhas, esqueleto.SO_A_PAGINA)
    return paginas


def _conferir_ancoras(paginas: list[Apostila]) -> None:
    ids = {p.endereco: p.ids | {"conteudo"} for p in paginas}
    for pagina in paginas:
        for endereco, ancora in pagina.links:
            if ancora and ancora not in ids[endereco]:
                pagina.avisos.append(f"o link {endereco}#{ancora} não leva a nenhuma seção")


def converter(fonte: Path, irmas: list[str], destino: Path) -> Apostila:
    """Uma apostila (arquivo .md em UTF-8) como `Apostila`; `irmas` são os .md que também viram página."""
    pagina = Apostila(fonte.name, contagem=dict.fromkeys(CONTADOS, 0))
    md = _leitor(pagina, fonte, irmas, destino)
    env: dict = {}
    texto = _ler(pagina, fonte)
    pagina.minutos = minutos_de_leitura(texto)
    tokens = md.parse(texto, env)
    _tirar_a_leitura(pagina, tokens)
    _contar(pagina, tokens)
    _separar_titulo(pagina, md, tokens, env)
    pagina.corpo = Markup(md.renderer.render(tokens, md.options, env))
    pagina.ids = set(re.findall(r'\bid="([^"]+)"', pagina.corpo)) | {pagina.id_do_titulo}
    return pagina


def _ler(pagina: Apostila, fonte: Path) -> str:
    bruto = fonte.read_bytes()
    try:
        return bruto.decode("utf-8-sig")
    except UnicodeDecodeError as erro:
        linha = bruto[: erro.start].count(b"\n") + 1
        pagina.avisos.append(
            f"não está em UTF-8 (veja a linha {linha}): salve de novo em UTF-8; "
            "as letras que não entendi saíram como \ufffd"
        )
        return bruto.decode("utf-8", "replace")


def _leitor(pagina: Apostila, fonte: Path, irmas: list[str], destino: Path):
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.gfm import gfm_plugin

    md = esqueleto.leitor(confiavel=True)
    md.use(gfm_plugin)
    do_github = dict.fromkeys(("allow_labels", "allow_space", "allow_digits"), False)
    md.use(dollarmath_plugin, **do_github, double_inline=True)
    for regra in ("math_inline", "math_inline_double", "math_block"):
        md.add_render_rule(regra, _regra_de_formula(pagina, regra))
    comum = md.renderer.rules["fence"]

    def cerca(tokens, i, opcoes, env):
        linguagem = tokens[i].info.split()[0] if tokens[i].info.strip() else ""
        if linguagem == "mermaid":
            return _diagrama(pagina, fonte.parent, tokens[i].content)
        if linguagem == "math":
            return _formula(pagina, tokens[i].content, True, True)
        return comum(tokens, i, opcoes, env)

    md.add_render_rule("fence", lambda renderizador, *resto: cerca(*resto))
    html = lambda renderizador, tokens, i, *_: _html_solto(pagina, fonte, tokens[i].content)  # noqa: E731
    md.add_render_rule("html_block", html)
    md.add_render_rule("html_inline", html)
    md.add_render_rule("list_item_open", _item)
    md.core.ruler.push("notas", lambda estado: _traduzir_notas(estado.tokens))
    esqueleto.trocar_imagens(md, lambda endereco: _abrir_imagem(pagina, fonte, endereco))
    md.core.ruler.push(
        "links", lambda estado: _trocar_links(pagina, fonte, irmas, destino, estado.tokens)
    )
    return md


# --- fórmulas, diagramas, figuras --------------------------------------------------------


@lru_cache(maxsize=1)
def _matematica():
    from math_core import LatexToMathML

    # Num texto para o GitHub, que come uma das barras de \\\\, a linha da matriz acaba em \\cr.
    return LatexToMathML(fancy_error=False, macros={"cr": r"\\"})


def _regra_de_formula(pagina: Apostila, regra: str):
    como = regra != "math_inline", regra == "math_block"
    return lambda renderizador, tokens, i, *_: _formula(pagina, tokens[i].content, *como)


def _formula(pagina: Apostila, latex: str, destacada: bool, em_bloco: bool) -> str:
    from math_core import LatexError

    # O GitHub aceita também $`…`$, para fórmulas que o Markdown estragaria.
    latex = latex.strip().removeprefix("`").removesuffix("`")
    try:
        mathml = _matematica().convert_with_local_state(latex, displaystyle=destacada)
    except LatexError as erro:
        pagina.avisos.append(f"a fórmula {latex!r} não converteu: {erro}")
        return f'<code class="ausente">[fórmula que não converteu: {escape(latex)}]</code>'
    if em_bloco:
        return (
            f'<div class="formula" role="group" tabindex="0" aria-label="fórmula">{mathml}</div>\n'
        )
    # As compridas rolam sozinhas em tela estreita; as curtas ficam na linha.
    longa = ' class="longa"' if len(latex) > 30 or destacada else ""
    return f"<span{longa}>{mathml}</span>"


def _diagrama(pagina: Apostila, pasta: Path, fonte: str) -> str:
    nome = diagramas.nome_do_svg(fonte)
    texto = f'<pre class="quebra" tabindex="0">{escape(fonte)}</pre>'
    arquivo = pasta / "figuras" / nome
    if not arquivo.is_file():
        pagina.avisos.append(f"falta o desenho do diagrama {nome}: python apostilas/diagramas.py")
        return (
            f'<p class="ausente">O desenho deste diagrama não está aqui; o texto dele:</p>{texto}\n'
        )
    # O mesmo diagrama duas vezes na página: cada um com os seus ids.
    velho = nome.removesuffix(".svg")
    n = sum(aviso_id.startswith(velho) for aviso_id in pagina.ids)
    pagina.ids.add(f"{velho}-{n}")
    svg = arquivo.read_text(encoding="utf-8").strip().replace(velho, f"{velho}-{n}")
    # Largo demais para a tela, encolhe até onde a letra ainda se lê; daí em diante, rola.
    largura = re.search(r'\bwidth="(\d+)"', svg)[1]
    return (
        f'<figure class="diagrama rolavel" tabindex="0" role="group" aria-label="diagrama" '
        f'style="--largura: {largura}px">{svg}'
        f"<details><summary>O diagrama em texto</summary>{texto}</details></figure>\n"
    )


def _abrir_imagem(pagina: Apostila, fonte: Path, endereco: str) -> bytes | None:
    arquivo = (fonte.parent / unquote(endereco)).resolve()
    daqui = arquivo.is_file() and arquivo.is_relative_to(fonte.parent.resolve())
    if daqui and "://" not in endereco:
        return arquivo.read_bytes()
    pagina.avisos.append(f"a figura {endereco} não está aqui")
    return None


def _html_solto(pagina: Apostila, fonte: Path, html: str) -> str:
    # Comentários (as contas do cog) são da cozinha: não vão à mesa.
    html = _COMENTARIO.sub("", html)
    for achado in _NAO_PASSA.finditer(html):
        pagina.avisos.append(f"o HTML <{achado[1]}> não vale aqui: saiu como texto")
    html = _NAO_PASSA.sub(r"&lt;\1", html)

    def embutir(achado):
        dados = _abrir_imagem(pagina, fonte, achado[2])
        if dados is None:
            return achado[0].replace(achado[2], "")
        tipo, menor, *_ = esqueleto.encolher(dados)
        return f"{achado[1]}data:{tipo};base64,{base64.b64encode(menor).decode()}{achado[3]}"

    html = re.sub(r'(<img\b[^>]*?\bsrc=")((?!data:)[^"]+)(")', embutir, html)
    return html if html.strip() else ""


def _traduzir_notas(tokens) -> None:
    for i, token in enumerate(tokens):
        if token.type == "alert_title_open":
            titulo = tokens[i + 1].children[0]
            titulo.content = _NOTAS.get(titulo.content.casefold(), titulo.content)


def _item(renderizador, tokens, i, opcoes, env) -> str:
    # A caixinha de um item de tarefa, com um nome que o leitor de tela diz.
    feito = tokens[i].meta.get("checked")
    if feito is None:
        return renderizador.renderToken(tokens, i, opcoes, env)
    nome, caixa = ("feito", "☑") if feito else ("por fazer", "☐")
    return f'<li class="task-list-item"><span role="img" aria-label="{nome}">{caixa}</span> '


# --- links, título, tempo de leitura -----------------------------------------------------


def _trocar_links(pagina, fonte: Path, irmas: list[str], destino: Path, tokens) -> None:
    for filho in (f for t in tokens for f in t.children or [] if f.type == "link_open"):
        if href := filho.attrGet("href"):
            filho.attrSet("href", _novo_link(pagina, fonte, irmas, destino, href))


def _novo_link(pagina, fonte: Path, irmas: list[str], destino: Path, href: str) -> str:
    if re.match(r"[a-z][a-z0-9+.-]*:", href, re.I):
        return href
    caminho, _, ancora = href.partition("#")
    if not caminho:
        pagina.links.append((pagina.endereco, unquote(ancora)))
        return href
    alvo = (fonte.parent / unquote(caminho)).resolve()
    if alvo.parent == fonte.parent.resolve() and alvo.name in irmas:
        pagina.links.append((alvo.stem + ".html", unquote(ancora)))
        return quote(alvo.stem + ".html") + (f"#{ancora}" if ancora else "")
    if not alvo.exists() and not alvo.is_relative_to(caminhos.SAIDAS):
        pagina.avisos.append(f"o link {href} não leva a arquivo nenhum")
    try:
        endereco = quote(Path(os.path.relpath(alvo, destino)).as_posix())
    except ValueError:  # no Windows, de um disco (C:) a outro (D:) não há caminho relativo
        endereco = alvo.as_uri()
    return endereco + (f"#{ancora}" if ancora else "")


def _separar_titulo(pagina: Apostila, md, tokens, env) -> None:
    for i, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        texto = _texto(tokens[i + 1])
        if token.tag == "h1" and not pagina.titulo:
            pagina.titulo, pagina.id_do_titulo = texto, token.attrGet("id") or ""
            pagina.titulo_html = Markup(md.renderer.render([tokens[i + 1]], md.options, env))
            for velho in tokens[i : i + 3]:
                velho.hidden = True
            tokens[i + 1].children = []
        elif token.tag in ("h2", "h3"):
            pagina.secoes.append((int(token.tag[1]), str(token.attrGet("id")), texto))
    pagina.titulo = pagina.titulo or Path(pagina.fonte).stem
    pagina.titulo_html = pagina.titulo_html or pagina.titulo


def _tirar_a_leitura(pagina: Apostila, tokens) -> None:
    for i, token in enumerate(tokens):
        achado = _LEITURA.fullmatch(token.content) if token.type == "inline" else None
        if achado:
            # Vai para o cabeçalho da página, com o resto da contagem. O número do texto é o mesmo
            # cálculo, feito pelo cog; se alguém o escreveu à mão, é o dele que o leitor espera.
            pagina.minutos, token.children = int(achado[1]), []
            tokens[i - 1].hidden = tokens[i + 1].hidden = True
            return


def _texto(inline) -> str:
    tipos = ("text", "code_inline", "math_inline", "math_inline_double")
    return "".join(f.content for f in inline.children if f.type in tipos).strip()


def _contar(pagina: Apostila, tokens) -> None:
    for token in tokens:
        tipo = token.info.strip() if token.type == "fence" else token.type
        if token.type == "fence" and tipo not in ("mermaid", "math"):
            pagina.contagem["linha de código"] += len(token.content.splitlines())
        for filho in [tipo, *(f.type for f in token.children or [])]:
            pagina.contagem["figura"] += filho in ("mermaid", "image")
            destacadas = ("math", "math_block", "math_inline_double")
            pagina.contagem["fórmula destacada"] += filho in destacadas
        for filho in token.children or []:
            if filho.type in ("text", "code_inline"):
                pagina.palavras += len(re.findall(r"\w[\w'’-]*", filho.content))
