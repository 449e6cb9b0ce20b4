"""O que é grande demais para a página de uma lição: medidas em massa e figuras. Um módulo `lNN_nome`
por lição, e `lNN_nome_figuras` para os desenhos.

Só a própria lição importa o seu módulo; nenhum importa o de outra lição. Eles importam contas,
modelos, treino e base. O que a seção ensina não está aqui: está na lição.
"""
