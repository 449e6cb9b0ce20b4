"""O que toda página HTML do laboratório tem em comum: o molde, o Markdown e as figuras.

Uma página é um arquivo só: estilo, script e figuras vão dentro, e nada é pedido a ninguém (a
política de segurança no cabeçalho não deixaria).
"""

import base64
import contextlib
import hashlib
import io
import os
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from html import escape
from pathlib import Path

# O conserto que se aconselha a quem não conseguiu gravar uma página.
SO_A_PAGINA = (
    "Libere espaço ou dê permissão de escrita nessa pasta, e rode:  python lab/tudo.py --so-pagina"
)
MOLDES = Path(__file__).resolve().parent / "esqueletos"
_NUMERO = re.compile(r"[−+-]?\d[\d.,]*(e[−+-]?\d+)?( ?(%|s|min|[KMG]i?B))?|—|")


# --- o molde ---------------------------------------------------------------------------


def pagina_html(molde: str, **dados) -> str:
    """O molde `molde` (de paginas/esqueletos) preenchido com `dados`; todo texto sai escapado.

    O que já é HTML chega como `markupsafe.Markup`.
    """
    return _ambiente().get_template(molde).render(**dados)


@lru_cache(maxsize=1)
def _ambiente():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from nucleo.base.unidades import decimal, inteiro

    ambiente = Environment(
        loader=FileSystemLoader(MOLDES, encoding="utf-8"), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    script = (MOLDES / "pagina.js").read_text(encoding="utf-8")
    resumo = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    ambiente.globals |= {
        "estilo": Markup((MOLDES / "estilo.css").read_text(encoding="utf-8") + _cores_do_codigo()),
        "script": Markup(script),
        # Só este script roda: o que alguém conseguisse pôr na página ficaria parado.
        "politica": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{resumo}'; base-uri 'none'; form-action 'none'",
    }
    ambiente.filters |= {"decimal": decimal, "inteiro": inteiro}
    return ambiente


def _cores_do_codigo() -> str:
    # O pygments dá as regras; cada tema fica com as suas, como no resto do estilo.
    from pygments.formatters import HtmlFormatter

    def regras(estilo: str, onde: str) -> str:
        linhas = HtmlFormatter(style=estilo).get_style_defs(f"{onde} .codigo").splitlines()
        # O fundo e os números de linha são da página, não do pygments.
        return "\n".join(x for x in linhas if x.startswith(f"{onde} .codigo ."))

    claro = regras("default", ":root")
    do_sistema = regras("github-dark", ":root:not([data-tema=claro])")
    do_botao = regras("github-dark", ":root[data-tema=escuro]")
    # O claro vale sempre (e no papel); o escuro, só na tela, pelo sistema ou pelo botão.
    return f"""{claro}
@media screen and (prefers-color-scheme: dark) {{
{do_sistema}
}}
@media screen {{
{do_botao}
}}"""


# --- o Markdown ------------------------------------------------------------------------


def leitor(prefixo: str = "", confiavel: bool = False, desce: int = 0):
    """Um `MarkdownIt` do jeito da casa: tabelas roláveis com legenda, âncoras do GitHub, código com cores.

    `prefixo` vai à frente de toda âncora (várias lições dividem uma página); `desce` rebaixa os
    títulos (1: `##` vira `h3`). Só com `confiavel` o HTML do texto passa; senão sai escapado.
    """
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.anchors.index import slugify

    md = MarkdownIt("commonmark", {"html": confiavel, "highlight": colorir}).enable("table")
    anchors_plugin(md, max_level=6, slug_func=lambda titulo: prefixo + slugify(titulo))
    md.core.ruler.push("rebaixar", lambda estado: _rebaixar(estado.tokens, desce))
    md.core.ruler.push("quadros", lambda estado: _dar_legenda(estado.tokens, prefixo))
    md.add_render_rule("table_open", _abrir_tabela)
    md.add_render_rule("table_close", lambda *_: "</table></div>\n")
    md.add_render_rule("paragraph_open", _paragrafo)
    md.add_render_rule("paragraph_close", _paragrafo)
    return md


def colorir(codigo: str, linguagem: str, _atributos: str = "") -> str:
    """O código como `<pre>`, com as cores do pygments se ele conhece a linguagem."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    miolo = escape(codigo)
    if linguagem:
        with contextlib.suppress(ClassNotFound):
            miolo = highlight(codigo, get_lexer_by_name(linguagem), HtmlFormatter(nowrap=True))
    return f'<pre class="codigo" tabindex="0"><code>{miolo}</code></pre>\n'


def _rebaixar(tokens, desce: int) -> None:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + desce)}"


def _dar_legenda(tokens, prefixo: str) -> None:
    # «**título**» sozinho num parágrafo, logo antes de uma tabela, é a legenda dela.
    n = 0
    for i, token in enumerate(tokens):
        if token.type != "table_open":
            continue
        n += 1
        token.meta |= {"id": f"{prefixo}tabela-{n}", "n": n}
        _alinhar_numeros(tokens, i)
        if i < 3 or tokens[i - 2].type != "inline" or tokens[i - 3].type != "paragraph_open":
            continue
        # O leitor põe textos vazios em volta do negrito.
        filhos = [f for f in tokens[i - 2].children if f.type != "text" or f.content]
        tipos = [f.type for f in filhos]
        if tipos[:1] == ["strong_open"] and tipos.index("strong_close") == len(tipos) - 1:
            token.meta["legenda"] = filhos[1:-1]
            for velho in tokens[i - 3 : i]:
                velho.hidden = True
            tokens[i - 2].children = []


def _alinhar_numeros(tokens, i: int) -> None:
    # Uma coluna só de números alinha à direita, como na tela.
    celulas, linha = {}, 0
    while tokens[i].type != "table_close":
        if tokens[i].type == "tr_open":
            linha = 0
        if tokens[i].type in ("th_open", "td_open"):
            celulas.setdefault(linha, []).append((tokens[i], tokens[i + 1].content))
            linha += 1
        i += 1
    for coluna in celulas.values():
        textos = [texto for token, texto in coluna if token.type == "td_open"]
        if any(textos) and all(_NUMERO.fullmatch(t) for t in textos):
            for token, _ in coluna:
                token.attrSet("class", "numero")


def _abrir_tabela(renderizador, tokens, i, opcoes, env) -> str:
    meta = tokens[i].meta
    legenda = meta.get("legenda")
    rotulo, titulo = f'aria-label="Tabela {meta["n"]}"', ""
    if legenda:
        rotulo = f'aria-labelledby="{escape(meta["id"])}"'
        texto = renderizador.renderInline(legenda, opcoes, env)
        titulo = f'<caption id="{escape(meta["id"])}">{texto}</caption>'
    return f'<div class="rolavel" role="region" tabindex="0" {rotulo}><table>{titulo}\n'


def _paragrafo(renderizador, tokens, i, opcoes, env) -> str:
    # Uma figura sozinha no parágrafo é uma figura, e o <p> não pode contê-la. O texto está logo
    # depois de quem o abre e logo antes de quem o fecha.
    filhos = tokens[i + tokens[i].nesting].children or []
    so_figura = [f.type for f in filhos] == ["image"]
    return "" if so_figura else renderizador.renderToken(tokens, i, opcoes, env)


# --- as figuras ------------------------------------------------------------------------


def figura_html(imagem: bytes, alt: str) -> str:
    """`<figure>` com a imagem dentro dela mesma (data URI) e o texto alternativo."""
    tipo, dados, largura, altura = encolher(imagem)
    endereco = f"data:{tipo};base64,{base64.b64encode(dados).decode()}"
    medidas = f' width="{largura}" height="{altura}"' if largura else ""
    imagem = f'<img src="{endereco}" alt="{escape(alt)}"{medidas} decoding="async">'
    return f"<figure>{imagem}</figure>\n"


@lru_cache(maxsize=256)
def encolher(imagem: bytes) -> tuple[str, bytes, int, int]:
    """(tipo, bytes, largura, altura): um PNG vira WebP sem perda se isso o encolher.

    Os outros formatos passam como vieram, com medidas 0. O Pillow vem com o matplotlib.
    """
    if not imagem.startswith(b"\x89PNG"):
        for marca, tipo in ((b"\xff\xd8", "jpeg"), (b"RIFF", "webp"), (b"GIF8", "gif")):
            if imagem.startswith(marca):
                return f"image/{tipo}", imagem, 0, 0
        return "image/svg+xml", imagem, 0, 0
    from PIL import Image

    largura, altura = struct.unpack(">II", imagem[16:24])
    memoria = io.BytesIO()
    with Image.open(io.BytesIO(imagem)) as aberta:
        aberta.save(memoria, "WEBP", lossless=True, method=4, quality=50)
    menor, tipo = min((memoria.getvalue(), "webp"), (imagem, "png"), key=lambda x: len(x[0]))
    return f"image/{tipo}", menor, largura, altura


def encolher_todas(imagens: list[bytes]) -> None:
    """Adianta `encolher` em todos os núcleos (o Pillow solta o Python enquanto comprime)."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as fila:
        list(fila.map(encolher, imagens))


def trocar_imagens(md, abrir: Callable[[str], bytes | None]) -> None:
    """Faz `md` embutir cada imagem: `abrir(endereço)` dá os bytes, ou None se ela não existe."""

    def imagem(renderizador, tokens, i, opcoes, env) -> str:
        token = tokens[i]
        alt = renderizador.renderInlineAsText(token.children or [], opcoes, env) or "figura"
        endereco = str(token.attrGet("src"))
        if (dados := abrir(endereco)) is not None:
            return figura_html(dados, alt)
        falta = escape(f"figura que não está aqui: {endereco} — {alt}")
        return f'<span class="ausente">[{falta}]</span>'

    md.add_render_rule("image", imagem)
