"""As páginas: Markdown em HTML, a página dos resultados (outputs/index.html), as apostilas e os diagramas.

Só tudo.py (e apostilas/diagramas.py, que desenha os SVG) a importa. Ela pode importar contas, modelos e
base, e hoje só a base: o que mostra, recebe pronto.
"""
