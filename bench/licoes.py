"""Os tempos prometidos: cada lição inteira, uma vez, em segundos de relógio desta máquina.

Os limites são os que o laboratório promete a quem dá a aula, em dois núcleos. Os testes só vigiam, com
folga, os segundos de processador: ali os núcleos são divididos, e o relógio não diria nada.
"""

import tempfile

from comum import RAIZ, Assunto, Medida, executar

PROMESSAS = {  # lição e opções: segundos
    ("06_posicoes",): 90,
    ("06_posicoes", "--rapido"): 20,
    ("06_extrapolacao",): 120,
    ("02_contexto",): 60,
    ("06_projecoes",): 60,
}


def medir(rapido: bool = False) -> Assunto:
    """Uma execução de cada; com `rapido`, só a mais curta."""
    escolhidas = [("06_posicoes", "--rapido")] if rapido else list(PROMESSAS)
    medidas = []
    for licao, *opcoes in escolhidas:
        with tempfile.TemporaryDirectory() as saida:
            # Sem --modelo: o que cada lição escolhe sozinha é o que se promete.
            comando = [str(RAIZ / "lab" / f"{licao}.py"), *opcoes, "--saida", saida]
            feita = executar(comando)
        medidas.append(Medida(" ".join([licao, *opcoes]), [feita.segundos], [feita.pico]))
    a = Assunto("licoes", "As lições inteiras, no relógio", medidas[0].nome, medidas)
    for chave, medida in zip(escolhidas, medidas, strict=True):
        a.criterio(f"{medida.nome}: segundos", medida.mediana, PROMESSAS[chave], unidade="s")
    return a
