"""A conferência: cada afirmação das duas apostilas, medida, com o veredito.

O que você vai ver: o que as apostilas 02 e 6 afirmam, frase por frase, ao lado do que se mede no
modelo de hoje (ou na arquitetura, no tokenizador, na conta), e o veredito que sai da regra: confere,
confere em parte, não confere, hipótese, não medido aqui. Todo número diz de quem é e de onde veio.

Quanto demora: menos de 30 s; lê o que as outras lições já mediram (rode-as antes: lab/tudo.py).
Como rodar:    python lab/99_conferir.py                          tudo
               python lab/99_conferir.py --apostila 2 --so-erradas
               python lab/99_conferir.py --afirmacao brasil_5_tokens   tudo sobre uma
O que fica:    outputs/99_conferir/ (relatorio.md, afirmacoes.csv, errata.md, resultado.json)
"""

# A linha de comando vem antes das bibliotecas pesadas: --help responde na hora.
from aula import Aula
from nucleo.afirmacoes import fichas
from nucleo.base.erros import ErroDoUsuario

# %% As seções: uma por apostila de data/afirmacoes.toml, o que falta, e o resumo
APOSTILAS = fichas.apostilas()
SECOES = APOSTILAS | {
    "gpt2": "O que só o GPT-2 verdadeiro mede",
    "mudou": "O que mudou desde a referência",
    "resumo": "Resumo",
}


def opcoes(p):
    p.add_argument("--apostila", type=int, choices=list(APOSTILAS), help="só as afirmações desta")
    p.add_argument("--so-erradas", action="store_true", help="mostra só o que não confere de todo")
    p.add_argument("--afirmacao", metavar="ID", help="tudo sobre uma: como se mede, fonte, regra")
    p.add_argument(
        "--guardar", action="store_true",
        help="para quem mantém: grava data/referencia, lendo só as referências das lições",
    )  # fmt: skip


aula = Aula("99_conferir", __doc__, SECOES, opcoes)

todas = fichas.ler()
if aula.args.afirmacao is not None:
    # Um id errado é dito já, antes de abrir o modelo.
    todas = [fichas.escolher(todas, aula.args.afirmacao)]
    aula.so_esta(todas[0].apostila)
elif aula.args.apostila:
    aula.so_esta(aula.args.apostila)
if aula.args.guardar and aula.args.secao:
    raise ErroDoUsuario(
        "A referência se guarda inteira.",
        "Com --apostila, --afirmacao ou --secao, só uma parte das afirmações seria conferida.",
        "Rode só com o modelo:  python lab/99_conferir.py --modelo smollm2 --guardar",
    )
if set(APOSTILAS) & set(aula.args.secao or ()):
    todas = [a for a in todas if aula.pediu(a.apostila)]

from nucleo.afirmacoes import errata, guardados, quadros, vereditos
from nucleo.afirmacoes.das_licoes import Resultados
from nucleo.afirmacoes.registro import Contexto
from nucleo.modelos import fontes

modelo = aula.abrir_modelo()
ctx = Contexto(modelo, Resultados(modelo.nome, None) if aula.args.guardar else None)
with aula.barra() as progresso:
    conferidas = vereditos.conferir_todas(todas, ctx, progresso)

# %% Cada número com nome: é daqui que a página e a errata leem
for c in conferidas:
    primeiro = c.afirmacao.partes[0].valor if c.valores and c.afirmacao.partes else None
    aula.resultado(
        c.afirmacao.id,
        c.valores[primeiro] if primeiro else None,
        modelo=c.achado.modelo if c.achado else "—",
        **c.como_resultado(),
    )

# %% As afirmações de cada apostila
for apostila in APOSTILAS:
    desta = [c for c in conferidas if c.afirmacao.apostila == apostila]
    if not aula.secao(apostila):
        continue
    if aula.args.afirmacao:
        # A ficha de uma afirmação: os valores contra a regra, e o comando para ver.
        aula.quadro("ficha", quadros.ficha(desta[0]))
        aula.codigo(vereditos.julgar)
        continue
    mostradas = vereditos.erradas(desta) if aula.args.so_erradas else desta
    erradas = len(vereditos.erradas(desta))
    titulo = f"{len(mostradas)} de {len(desta)} afirmações"
    aula.quadro(f"{apostila}_afirmacoes", quadros.quadro(mostradas, titulo))
    aula.repare(
        f"{erradas} das {len(desta)} não conferem de todo. O veredito sai da regra; veja uma por "
        "inteiro com `python lab/99_conferir.py --afirmacao ID`."
    )

# %% gpt2 · O que só os pesos verdadeiros dizem
if aula.secao("gpt2"):
    so_la = quadros.so_no_gpt2(conferidas)
    aula.quadro("gpt2", so_la)
    if ctx.e_o_gpt2:
        aula.diga("O modelo de hoje **é** o GPT-2: estas linhas foram medidas agora.")
    else:
        aula.diga(f"Com o GPT-2 estas linhas se medem:  `{fontes.COMO_TER_GPT2}`")
        aula.repare("publicado e guardado não são medidos aqui: a coluna «de onde» o diz.")

# %% mudou · A mesma conferência, contra a que ficou guardada
if aula.secao("mudou"):
    try:
        antes = guardados.ler("99_conferir", modelo.nome)
    except ErroDoUsuario:
        aula.diga(f"Não há conferência guardada com o modelo {modelo.nome}: nada a comparar.")
    else:
        # Uma afirmação que não confere é um achado; uma que mudou de veredito pede um olhar.
        mudaram = vereditos.mudancas(conferidas, antes)
        quais = vereditos.conferir_mudancas(mudaram)
        aula.comparar("mudou", f"Vereditos contra a referência ({modelo.nome})", quais)

# %% resumo · Quantas de cada
if aula.secao("resumo"):
    aula.quadro("resumo", quadros.contagem(conferidas))
    fora = quadros.nao_medidos_aqui(conferidas)
    aula.repare(
        f"{fora} destes vereditos saem de números publicados, ou medidos antes por nós no GPT-2, e não "
        "de medida feita aqui. «Não confere» é um achado sobre a apostila, e não uma falha da lição."
    )
    aula.codigo(vereditos.julgar)

# %% Guardar tudo
if not aula.args.afirmacao and conferidas:
    aula.caderno.csv("afirmacoes", *quadros.tabela_inteira(conferidas))
    texto = errata.em_markdown({"resultados": aula.caderno.resultados})
    aula.guardar("errata.md", texto.encode("utf-8"), "o que corrigir, com a medida de hoje")


def guardar():
    if aula.args.guardar:
        medidos = {"resultados": aula.caderno.resultados}
        guardados.guardar({"licao": aula.nome, **aula.caderno.ficha, **medidos}, modelo.nome)


aula.terminar(guardar)
