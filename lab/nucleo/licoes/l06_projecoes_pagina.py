"""O desenho interativo: uma página que abre sem internet e não pede nada a ninguém."""

import re
from html import escape

import numpy as np

from nucleo.licoes.l06_projecoes import SORTEADO, Conjunto
from nucleo.licoes.l06_projecoes_figuras import TONS

FORMAS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "hex", "star")

# Endereços que a biblioteca traz no seu código (documentação, mapas, licenças). Os nomes do W3C
# ficam: são nomes de linguagens (SVG, MathML), que o navegador reconhece sem buscar.
_ENDERECO = re.compile(r"https?://(?!www\.w3\.org/)[\w.-]+")


def pagina(c: Conjunto, desenhos: dict[str, np.ndarray], vizinhos: list[list], nome: str) -> bytes:
    """O HTML (UTF-8) com um desenho por método, ligados: o que se marca em um aparece nos outros.

    Ao pousar o mouse num ponto aparecem o token, o grupo e os vizinhos verdadeiros (em d dimensões, não
    no desenho), que vêm em `vizinhos`: de cada ponto, [(token, cosseno)]. Todo o código vai dentro do arquivo.
    """
    from bokeh.embed import file_html
    from bokeh.layouts import column, row
    from bokeh.models import CDSView, ColumnDataSource, Div, GroupFilter, HoverTool
    from bokeh.plotting import figure
    from bokeh.resources import INLINE

    dados = {"token": c.nomes, "grupo": [c.grupo_de(i) for i in range(c.n)]}
    dados["vizinhos"] = [
        "  ".join(f"{v} {cos:.2f}".replace(".", ",") for v, cos in lista) for lista in vizinhos
    ]
    for i, Y in enumerate(desenhos.values()):
        dados[f"x{i}"], dados[f"y{i}"] = Y[:, 0].tolist(), Y[:, 1].tolist()
    fonte = ColumnDataSource(dados)
    dica = [("token", "@token"), ("grupo", "@grupo"), ("vizinhos verdadeiros", "@vizinhos")]
    quadros = []
    for i, metodo in enumerate(desenhos):
        quadro = figure(
            title=metodo, width=460, height=460,
            tools="pan,wheel_zoom,box_select,lasso_select,reset", active_scroll="wheel_zoom",
        )  # fmt: skip
        quadro.add_tools(HoverTool(tooltips=dica))
        quadro.toolbar.logo = None
        quadro.axis.visible = False
        quadro.grid.visible = False
        for g, grupo in enumerate([*c.grupos, SORTEADO]):
            solto = grupo == SORTEADO
            quadro.scatter(
                f"x{i}", f"y{i}", source=fonte,
                view=CDSView(filter=GroupFilter(column_name="grupo", group=grupo)),
                marker="circle" if solto else FORMAS[g % len(FORMAS)],
                size=6 if solto else 10, line_color="white", line_width=0.5,
                fill_color="#bbbbbb" if solto else TONS[g % len(TONS)],
                **({"legend_label": grupo} if i == len(desenhos) - 1 else {}),
            )  # fmt: skip
        quadros.append(quadro)
    # Uma legenda só, ao lado do último; clicar num grupo o apaga ali.
    legenda = quadros[-1].legend[0]
    legenda.click_policy = "mute"
    quadros[-1].add_layout(legenda, "right")
    quadros[-1].width = 600
    titulo = Div(
        text=f"<h2>{escape(nome)}: {c.n} linhas de wte em duas dimensões</h2><p>Pouse o mouse num ponto para "
        "ver os vizinhos <b>verdadeiros</b>. Marque uma região com o laço: os mesmos pontos se "
        "acendem nos outros desenhos. Estar perto aqui não prova nada: confira na lista.</p>"
    )
    html = file_html(column(titulo, row(*quadros)), INLINE, f"{nome}: wte em duas dimensões")
    html = html.replace('<html lang="en">', '<html lang="pt-BR">', 1)
    return _ENDERECO.sub("about:blank#", html).encode("utf-8")
