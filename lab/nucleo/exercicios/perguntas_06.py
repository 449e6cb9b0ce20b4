"""As perguntas da apostila 06. Cada uma mede na hora; nenhum resultado está escrito. O texto está em data/exercicios."""

import torch

from nucleo.base.unidades import cientifico, decimal, inteiro, porcento
from nucleo.contas import escalonamento, permutacao, posicoes, posicoes_no_modelo, rope
from nucleo.exercicios.tipos import Medida
from nucleo.modelos import fontes, textos

# Abaixo disso é arredondamento: o de duas camadas de 64 vai até 3e-5 (contas.folga.modelo), e o resto
# fica perto de 1.
NADA = 1e-4


def _desequilibrio(c):
    torch.manual_seed(6)
    tabela = posicoes.EmbeddingsDeEntrada(2000, 512, desvio_inicial=1.0)
    token = float(tabela(torch.arange(2000)[None]).detach().norm(dim=-1).mean())
    posicao = float(posicoes.senoides(2000, 512).norm(dim=-1).mean())
    return Medida(
        token / posicao,
        f"{decimal(token, 0)} ao lado de {decimal(posicao, 0)}: {decimal(token / posicao, 1)} vezes",
        "uma camada recém-sorteada, d = 512",
    )


def _norma_da_posicao(c):
    v = float(posicoes.senoides(50, 512).norm(dim=-1).mean())
    return Medida(v, f"{decimal(v, 3)}, a mesma em toda posição", "a tabela de senoides, d = 512")


def _frase():
    """As palavras, os dois lugares que trocam, a permutação e um vetor por palavra."""
    palavras, i, j = textos.frase()
    ordem = permutacao.troca(len(palavras), i, j)
    return palavras, i, j, ordem, permutacao.vetores_da_frase(palavras, 64, 6)


def _sem_mascara(c):
    palavras, _, _, ordem, x = _frase()
    camadas = permutacao.sortear_camadas(1, 64, 6)
    antes, depois = permutacao.empilhar(x, camadas), permutacao.empilhar(x[ordem], camadas)
    parada = float((antes - depois).abs().max())
    junto = float((antes[ordem] - depois).abs().max())
    chave = "a" if parada < NADA else "b" if junto < NADA else "c"
    texto = f"lugar a lugar diferem {decimal(parada)}; destrocadas, {cientifico(junto)}"
    return Medida(chave, texto, f"atenção de pesos sorteados em “{' '.join(palavras)}”")


def _explique(c):
    m = _sem_mascara(c)
    pontos = (
        "A nota entre dois tokens depende só dos vetores deles, e não de onde estão; e a soma ponderada "
        "dá o mesmo em qualquer ordem.",
        "Por isso trocar a frase só troca as saídas de lugar: cada palavra recebe, nas duas frases, o "
        "mesmo vetor, e “quem mordeu quem” não está em nenhum deles.",
    )
    return Medida(pontos, m.texto, m.fonte)


def _ultima(camadas_):
    def medir(c):
        _, _, _, ordem, x = _frase()
        camadas = permutacao.sortear_camadas(camadas_, 64, 6)
        antes, depois = (permutacao.empilhar(y, camadas, causal=True)[-1] for y in (x, x[ordem]))
        d = float((antes - depois).abs().max())
        texto = f"a última saída muda {cientifico(d)}"
        return Medida(
            "b" if d < NADA else "a",
            texto,
            f"{camadas_} camada(s) de pesos sorteados, máscara causal",
        )

    return medir


def _onda(c):
    v = float(posicoes.comprimentos_de_onda(512)[-1])
    return Medida(v, f"{inteiro(v)} posições por volta", "d = 512, base 10000")


def _produtos(c):
    p = posicoes.senoides([10, 13, 100, 103], 64, dtype=torch.float64)
    perto, longe = float(p[0] @ p[1]), float(p[2] @ p[3])
    # 64 produtos de senos e cossenos de até 103 radianos: 64 · folga.angulo(103) = 2e-11.
    chave = "a" if abs(perto - longe) < 1e-9 else "b" if perto > longe else "c"
    return Medida(
        chave, f"{decimal(perto, 6)} e {decimal(longe, 6)}", "a tabela de senoides, d = 64"
    )


def _exp_log(c):
    direta, exp_log = (posicoes.erro_das_frequencias(512, f) for f in ("potencia", "exp_log"))
    chave = "a" if exp_log < direta / 1.5 else "c" if exp_log > direta * 1.5 else "b"
    texto = f"erro relativo: potência {cientifico(direta)}, exp(log) {cientifico(exp_log)}"
    return Medida(chave, texto, "float32 contra float64, d = 512")


def _troca_muda(c):
    palavras, i, j, ordem, x = _frase()
    pe = posicoes.senoides(len(x), 64)
    mudou = ((x + pe) - (x[ordem] + pe)).abs().amax(1) > NADA
    v = int(mudou.sum())
    return Medida(
        v,
        f"{v} das {len(x)} linhas: as dos lugares {i} e {j}",
        f"“{' '.join(palavras)}” com senoides",
    )


def _bolsa(c):
    _, _, _, ordem, x = _frase()
    pe = posicoes.senoides(len(x), 64)
    sem = permutacao.mesma_bolsa(x, x[ordem])
    com = permutacao.mesma_bolsa(x + pe, x[ordem] + pe)
    chave = "a" if sem < NADA < com else "b" if sem < NADA and com < NADA else "c"
    return Medida(
        chave,
        f"distância entre as bolsas: sem posição {cientifico(sem)}, com posição {decimal(com)}",
        "vetores sorteados e senoides",
    )


def _perda(c):
    m = c.modelo
    lingua = "pt" if m.nome == "mini" else "en"

    def ids(texto):
        return torch.tensor(m.tokenizador.ids(texto))

    # Um trecho basta para ver a diferença, e a medida sai em segundos.
    janelas = ids(textos.trecho(lingua)[:240]).split(m.n_ctx or 256)
    frases = [ids(ordem + ".") for ordem in textos.ordens(lingua)]
    medido = posicoes_no_modelo.sem_posicao(
        m.completo(), janelas, frases, giro=m.ficha.giro, tabela=m.ficha.wpe
    )
    com, sem = medido.mudanca.perda_antes, medido.mudanca.perda_depois
    muda = porcento(medido.mudanca.variacao_total)
    chave = "a" if sem - com < 0.1 else "b" if sem < com + 1 else "c"
    texto = f"de {decimal(com, 2)} para {decimal(sem, 2)} nats por token; {muda} da previsão muda"
    return Medida(chave, texto, f"{m.nome}, com {medido.como}")


def _norma_do_rope(c):
    x = torch.randn(40, 64, generator=torch.Generator().manual_seed(6))
    d = float((rope.rope(x).norm(dim=-1) - x.norm(dim=-1)).abs().max())
    return Medida(
        "b" if d < NADA else "a",
        f"a maior diferença de norma é {cientifico(d)}",
        "q sorteada, 40 posições, d = 64",
    )


def _so_a_distancia(c):
    gerador = torch.Generator().manual_seed(6)
    q, k = torch.randn(2, 64, generator=gerador, dtype=torch.float64)

    def produto(m, n):
        return float(rope.rope(q[None], [m])[0] @ rope.rope(k[None], [n])[0])

    a, b = produto(3, 7), produto(103, 107)
    volta = produto(7, 3)
    # ‖q‖·‖k‖ perto de 64, e ângulos de até 107 radianos: 64 · folga.angulo(107) = 2e-11.
    chave = "a" if abs(a - b) < 1e-9 else "b"
    return Medida(
        chave,
        f"(3, 7): {decimal(a)}; (103, 107): {decimal(b)}; e (7, 3): {decimal(volta)}",
        "q e k sorteados, d = 64",
    )


def _pareamento(c):
    m = c.modelo if c.modelo.ficha.giro else fontes.abrir("smollm2", c.progresso)
    lm = m.completo()
    ids = torch.tensor(m.tokenizador.ids(textos.trecho("en"))[:48])
    antes = posicoes_no_modelo.ler(lm, ids)
    errado = posicoes_no_modelo.OUTRO[m.ficha.giro.pareamento]
    with posicoes_no_modelo.rope_trocado(lm, m.ficha.giro, errado):
        depois = posicoes_no_modelo.ler(lm, ids)
    chave = "a" if depois.perda - antes.perda < 0.1 else "b"
    texto = f"a perda vai de {decimal(antes.perda, 2)} a {decimal(depois.perda, 2)} nats por token, e nenhum erro aparece"
    return Medida(chave, texto, m.nome)


def _bfloat16(c):
    v = len(torch.arange(1024).bfloat16().unique())
    return Medida(v, f"só {inteiro(v)} números diferentes", "torch, bfloat16")


def _base(c):
    a, b = (float(posicoes.comprimentos_de_onda(64, base)[-1]) for base in (10_000, 500_000))
    chave = "a" if b > 1.5 * a else "b" if b < a / 1.5 else "c"
    return Medida(chave, f"de {inteiro(a)} para {inteiro(b)} posições por volta", "d = 64")


def _interpolar(c):
    antes = escalonamento.sem_escala(64).frequencias
    depois = escalonamento.linear(64, 4).frequencias
    v = float((depois / antes).mean())
    return Medida(
        v, f"{decimal(v)} do que era, em todos os pares", "interpolação linear, fator 4, d = 64"
    )


def _ntk(c):
    antes = escalonamento.sem_escala(64).frequencias
    depois = escalonamento.ntk(64, 4).frequencias
    razoes = (depois / antes).tolist()
    rapido, lento = razoes[0], razoes[-1]
    chave = (
        "a"
        if abs(rapido - 1) < 1e-6 and lento < 0.5
        else "b"
        if rapido < 0.5 and lento > 0.9
        else "c"
    )
    return Medida(
        chave,
        f"o par mais rápido fica em {decimal(rapido)} da frequência; o mais lento, em {decimal(lento)}",
        "NTK, fator 4, d = 64",
    )


MEDEM = {
    "desequilibrio": _desequilibrio,
    "norma_da_posicao": _norma_da_posicao,
    "sem_mascara": _sem_mascara,
    "ultima_uma": _ultima(1),
    "ultima_duas": _ultima(2),
    "onda": _onda,
    "produtos": _produtos,
    "exp_log": _exp_log,
    "troca_muda": _troca_muda,
    "bolsa": _bolsa,
    "explique": _explique,
    "perda": _perda,
    "norma_do_rope": _norma_do_rope,
    "so_a_distancia": _so_a_distancia,
    "pareamento": _pareamento,
    "bfloat16": _bfloat16,
    "base": _base,
    "interpolar": _interpolar,
    "ntk": _ntk,
}
# Os números errados conhecidos que dependem de uma conta; os outros estão escritos no TOML.
CONFUNDEM = {
    "desequilibrio.2": lambda c: 512**0.5,
    "norma_da_posicao.1": lambda c: 512**0.5,
}
