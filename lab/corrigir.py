"""Correção: os exercícios de uma turma inteira, numa tela, sem confiar em programa de ninguém.

O que você vai ver: quem passou em quê, o engano mais comum, as previsões mais enganosas e uma
figura da turma. Cada programa roda numa caixa: outro processo, pasta temporária, ambiente limpo,
tempo, memória e disco contados, sem rede onde o sistema souber negar (e a tela diz onde não sabe).
Um laço sem fim, um processo esquecido ou um resultado forjado é registrado só para quem o fez.

Quanto demora: uns 2 s por pessoa; um laço sem fim gasta o --limite inteiro.
Como rodar:    python lab/corrigir.py turma                      turma/ana/02_1_consulta.py, …
               python lab/corrigir.py turma --apostila 2
               python lab/corrigir.py turma --sem-previsoes      não abre modelo nenhum
O que fica:    outputs/corrigir/ (notas.csv, retorno.csv, enganos.csv, turma.png, relatorio.md)
"""

# %% Botões: o que dá para mexer sem ler o resto
LIMITE = 10  # segundos por função; --limite muda
MEMORIA = 4  # GiB por pessoa, contando o Python e as bibliotecas; --memoria muda
SECOES = {
    "caixa": "A caixa",
    "turma": "A turma",
    "enganos": "Os enganos",
    "previsões": "As previsões",
}

from aula import Aula, inteiro_entre
from nucleo import exercicios


def opcoes(p):
    p.add_argument("turma", metavar="PASTA", help="a pasta da turma: uma subpasta por pessoa")
    p.add_argument(
        "--apostila", type=int, choices=exercicios.apostilas(), help="só esta (padrão: todas)"
    )
    p.add_argument("--sem-previsoes", action="store_true", help="corrige só as funções")
    p.add_argument(
        "--limite", type=inteiro_entre(1, 600), default=LIMITE, help="segundos por função"
    )
    p.add_argument("--memoria", type=inteiro_entre(1, 64), default=MEMORIA, help="GiB por pessoa")
    p.add_argument(
        "--semente", type=inteiro_entre(0, 10**9), help="repete os casos de uma correção"
    )


aula = Aula("corrigir", __doc__, SECOES, opcoes)

import os
import secrets
from pathlib import Path

from nucleo.exercicios import caixa, correcao
from nucleo.exercicios.bancada import Bancada

pastas = correcao.pastas_da_turma(Path(os.path.expanduser(aula.args.turma)))
apostilas = [aula.args.apostila] if aula.args.apostila else exercicios.apostilas()

# Casos novos a cada correção: quem decorou as respostas de casa não passa.
semente = secrets.randbelow(10**9) if aula.args.semente is None else aula.args.semente
limites = caixa.Limites(por_tarefa=aula.args.limite, memoria=aula.args.memoria * 2**30)

# %% A caixa: o que este sistema sabe negar, e o que não sabe
minha_caixa = caixa.Caixa.fechada(limites)
caixa.adotar_orfaos()
garante, falta = caixa.o_que_protege(minha_caixa.levantadas())
if aula.secao("caixa"):
    aula.diga("Cada programa roda assim: " + "; ".join(garante) + ".")
    for frase in falta:
        aula.diga(f"**Atenção:** {frase}.")
    aula.diga(f"Casos sorteados com `--semente {semente}`: com ela a correção se repete.")

# %% Medir e corrigir
with aula.barra() as progresso:
    bancada, medidas, nao_deu = Bancada(aula.args.modelo, progresso), {}, []
    if not aula.args.sem_previsoes:
        # Uma vez para todos: a medida é da máquina de quem corrige, e não a que veio no arquivo.
        perguntas = correcao.perguntas_respondidas(pastas, apostilas)
        medidas, nao_deu = correcao.medir_perguntas(perguntas, bancada, progresso)
    boletins = correcao.corrigir_turma(
        pastas, apostilas, minha_caixa, semente, medidas, bancada, progresso
    )
caixa.varrer_orfaos()

# %% A turma
if aula.secao("turma"):
    aula.quadro("turma", correcao.quadro_da_turma(boletins, apostilas))
    # Os CSV completos: as notas em 0 e 1, e o retorno de cada função que não passou.
    aula.caderno.csv("notas", *correcao.notas(boletins, apostilas))
    aula.caderno.csv("retorno", *correcao.detalhes(boletins))
    aula.figura("turma", "função por função", correcao.figura_da_turma, boletins, apostilas)
    aula.repare(
        "retorno.csv tem uma linha por função que não passou, com o porquê: é o que se devolve."
    )

# %% Os enganos
if aula.secao("enganos"):
    quadro = correcao.quadro_dos_enganos(boletins)
    if quadro.linhas:
        aula.quadro("enganos", quadro)
        aula.repare(
            f"o engano mais comum da turma: **{quadro.linhas[0][0]}**, em {quadro.linhas[0][1]}."
        )
    else:
        aula.diga("Nenhum engano: ou todos passaram, ou ninguém começou.")

# %% As previsões
if aula.secao("previsões"):
    quadro = correcao.quadro_das_previsoes(boletins, apostilas)
    if quadro:
        aula.quadro("previsoes", quadro)
        aula.repare(
            "a primeira linha é a pergunta que mais enganou: vale um minuto da próxima aula."
        )
    else:
        aula.diga("Nenhuma previsão para corrigir.")
    for frase in nao_deu:
        aula.diga(f"Não deu para medir {frase}")

# %% Guardar tudo
aula.terminar()
