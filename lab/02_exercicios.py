"""Apostila 02 · Exercícios: preveja antes de rodar, e depois escreva você.

O que você vai ver: perguntas sobre tokens, cossenos, analogias, tamanhos, posições e a amarração.
A sua previsão é guardada com a hora, depois se mede ao vivo, e aparecem lado a lado o previsto, o
medido e o porquê. A segunda metade são sete funções para escrever, conferidas uma a uma, com o
engano provável dito pelo nome.

Quanto demora: as previsões, uns 20 minutos (a máquina gasta 20 s); as funções, uma tarde.
Como rodar:    python lab/02_exercicios.py                       prever (Ctrl-C não perde nada)
               python lab/02_exercicios.py --rever               o que você já previu
               python lab/02_exercicios.py --implementar         os moldes das sete funções
               python lab/02_exercicios.py --verificar           confere, até a primeira que falha
               python lab/02_exercicios.py --dica 3
O que fica:    minhas_respostas/ (só sua: o git a ignora)
"""

# A apostila é a única diferença entre os scripts de exercícios: as perguntas e as funções estão em
# lab/nucleo/exercicios, e a conversa com quem digita, em lab/palco.
APOSTILA = 2

from palco import exercicios_roteiro

if __name__ == "__main__":
    raise SystemExit(exercicios_roteiro.principal(APOSTILA, __doc__))
