"""As páginas: Markdown em HTML, a página dos resultados (outputs/index.html), as apostilas e os diagramas.

Só tudo.py e a manutenção a importam. Ela importa contas, modelos e base: o que mostra, recebe pronto.
"""
