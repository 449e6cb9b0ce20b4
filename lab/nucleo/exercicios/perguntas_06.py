"""As perguntas da apostila 06. Cada uma mede na hora; nenhum resultado está escrito aqui."""

from nucleo.base.unidades import cientifico, decimal, inteiro, porcento
from nucleo.exercicios.tipos import Confusao, Medida, Opcao, Pergunta

NADA = 1e-4  # abaixo disso é arredondamento: ele fica perto de 1e-7, e o resto perto de 1


def _desequilibrio(c):
    import torch

    from nucleo.contas import posicoes

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
    from nucleo.contas import posicoes

    v = float(posicoes.senoides(50, 512).norm(dim=-1).mean())
    return Medida(v, f"{decimal(v, 3)}, a mesma em toda posição", "a tabela de senoides, d = 512")


def _frase():
    """As palavras, os dois lugares que trocam, a permutação e um vetor por palavra."""
    from nucleo.contas import permutacao
    from nucleo.modelos import textos

    palavras, i, j = textos.frase()
    ordem = permutacao.troca(len(palavras), i, j)
    return palavras, i, j, ordem, permutacao.vetores_da_frase(palavras, 64, 6)


def _sem_mascara(c):
    from nucleo.contas import permutacao

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
        from nucleo.contas import permutacao

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
    from nucleo.contas import posicoes

    v = float(posicoes.comprimentos_de_onda(512)[-1])
    return Medida(v, f"{inteiro(v)} posições por volta", "d = 512, base 10000")


def _produtos(c):
    import torch

    from nucleo.contas import posicoes

    p = posicoes.senoides([10, 13, 100, 103], 64, dtype=torch.float64)
    perto, longe = float(p[0] @ p[1]), float(p[2] @ p[3])
    chave = "a" if abs(perto - longe) < 1e-9 else "b" if perto > longe else "c"
    return Medida(
        chave, f"{decimal(perto, 6)} e {decimal(longe, 6)}", "a tabela de senoides, d = 64"
    )


def _exp_log(c):
    from nucleo.contas import posicoes

    direta, exp_log = (posicoes.erro_das_frequencias(512, f) for f in ("potencia", "exp_log"))
    chave = "a" if exp_log < direta / 1.5 else "c" if exp_log > direta * 1.5 else "b"
    texto = f"erro relativo: potência {cientifico(direta)}, exp(log) {cientifico(exp_log)}"
    return Medida(chave, texto, "float32 contra float64, d = 512")


def _troca_muda(c):
    from nucleo.contas import posicoes

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
    from nucleo.contas import permutacao, posicoes

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
    import torch

    from nucleo.contas import posicoes_no_modelo
    from nucleo.modelos import textos

    m = c.modelo
    lingua = "pt" if m.nome == "mini" else "en"

    def ids(texto):
        return torch.tensor(m.tokenizador.ids(texto))

    # Um trecho basta para ver a diferença, e a medida sai em segundos.
    janelas = ids(textos.trecho(lingua)[:240]).split(m.n_ctx or 256)
    frases = [ids(ordem + ".") for ordem in textos.ordens(lingua)]
    medido = posicoes_no_modelo.sem_posicao(m.completo(), janelas, frases)
    com, sem = medido.mudanca.perda_antes, medido.mudanca.perda_depois
    muda = porcento(medido.mudanca.variacao_total)
    chave = "a" if sem - com < 0.1 else "b" if sem < com + 1 else "c"
    texto = f"de {decimal(com, 2)} para {decimal(sem, 2)} nats por token; {muda} da previsão muda"
    return Medida(chave, texto, f"{m.nome}, com {medido.como}")


def _norma_do_rope(c):
    import torch

    from nucleo.contas import rope

    x = torch.randn(40, 64, generator=torch.Generator().manual_seed(6))
    d = float((rope.rope(x).norm(dim=-1) - x.norm(dim=-1)).abs().max())
    return Medida(
        "b" if d < NADA else "a",
        f"a maior diferença de norma é {cientifico(d)}",
        "q sorteada, 40 posições, d = 64",
    )


def _so_a_distancia(c):
    import torch

    from nucleo.contas import rope

    gerador = torch.Generator().manual_seed(6)
    q, k = torch.randn(2, 64, generator=gerador, dtype=torch.float64)

    def produto(m, n):
        return float(rope.rope(q[None], [m])[0] @ rope.rope(k[None], [n])[0])

    a, b = produto(3, 7), produto(103, 107)
    volta = produto(7, 3)
    chave = "a" if abs(a - b) < 1e-9 else "b"
    return Medida(
        chave,
        f"(3, 7): {decimal(a)}; (103, 107): {decimal(b)}; e (7, 3): {decimal(volta)}",
        "q e k sorteados, d = 64",
    )


def _pareamento(c):
    import torch

    from nucleo.contas import posicoes_no_modelo
    from nucleo.modelos import fontes, textos

    m = c.modelo if c.modelo.wpe is None else fontes.abrir("smollm2", c.progresso)
    lm = m.completo()
    ids = torch.tensor(m.tokenizador.ids(textos.trecho("en"))[:48])
    antes = posicoes_no_modelo.ler(lm, ids)
    with posicoes_no_modelo.rope_trocado(lm, "intercalado"):
        depois = posicoes_no_modelo.ler(lm, ids)
    chave = "a" if depois.perda - antes.perda < 0.1 else "b"
    texto = f"a perda vai de {decimal(antes.perda, 2)} a {decimal(depois.perda, 2)} nats por token, e nenhum erro aparece"
    return Medida(chave, texto, m.nome)


def _bfloat16(c):
    import torch

    v = len(torch.arange(1024).bfloat16().unique())
    return Medida(v, f"só {inteiro(v)} números diferentes", "torch, bfloat16")


def _base(c):
    from nucleo.contas import posicoes

    a, b = (float(posicoes.comprimentos_de_onda(64, base)[-1]) for base in (10_000, 500_000))
    chave = "a" if b > 1.5 * a else "b" if b < a / 1.5 else "c"
    return Medida(chave, f"de {inteiro(a)} para {inteiro(b)} posições por volta", "d = 64")


def _interpolar(c):
    from nucleo.contas import escalonamento

    antes = escalonamento.sem_escala(64).frequencias
    depois = escalonamento.linear(64, 4).frequencias
    v = float((depois / antes).mean())
    return Medida(
        v, f"{decimal(v)} do que era, em todos os pares", "interpolação linear, fator 4, d = 64"
    )


def _ntk(c):
    from nucleo.contas import escalonamento

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


PERGUNTAS = (
    Pergunta(
        "desequilibrio", 6, "6.1", "numero",
        "nn.Embedding começa em N(0, 1). Multiplicando por √d, com d = 512, quantas vezes o vetor do "
        "token fica maior (em norma) que o vetor senoidal da posição?",
        _desequilibrio,
        "Uma linha N(0, 1) tem norma √d; vezes √d, fica d. A posição tem norma √(d/2): a razão é √(2d), "
        "e a posição se afoga.",
        unidade="vezes", tolerancia=0.1, casas=1,
        confusoes=(
            Confusao(lambda c: 1, "Equilibrado é o que o artigo queria, com linhas N(0, 1/d). Com N(0, 1), não."),
            Confusao(lambda c: 512**0.5, "√512 é o fator. Mas a linha já tinha norma √512 antes dele."),
            Confusao(lambda c: 512, "512 é a norma do token; falta dividir pela da posição, que não é 1."),
        ),
        erro_geral="Compare d com √(d/2).",
    ),
    Pergunta(
        "norma_da_posicao", 6, "6.2", "numero",
        "Qual é a norma de qualquer linha da tabela de senoides com d = 512?",
        _norma_da_posicao,
        "Cada par contribui sen² + cos² = 1, e há d/2 pares: a norma é √(d/2), em toda posição.",
        tolerancia=0.01, casas=2,
        confusoes=(
            Confusao(lambda c: 512**0.5, "√512 contaria 512 uns. Mas cada PAR de colunas soma 1, e os pares são 256."),
            Confusao(lambda c: 256, "256 é a norma ao quadrado: falta a raiz."),
            Confusao(lambda c: 1, "Um é cada par; a linha tem 256 deles."),
        ),
        erro_geral="Some sen² + cos² par a par e tire a raiz.",
    ),
    Pergunta(
        "sem_mascara", 6, "6.2", "escolha",
        "Uma camada de atenção, sem máscara e sem posições. Troco dois tokens de lugar. E as saídas?",
        _sem_mascara,
        "Ela é EQUIVARIANTE: cada saída acompanha o seu token. Invariante seria ficarem todas paradas.",
        opcoes=(
            Opcao("a", "ficam iguais, lugar a lugar",
                  "Isso seria invariância. Se o token mudou de lugar, a saída daquele lugar é a de outro token."),
            Opcao("b", "trocam de lugar junto com os tokens", "Equivariância: nada além da troca."),
            Opcao("c", "mudam todas, porque a ordem mudou",
                  "A soma ponderada não vê ordem: cada token olha o mesmo conjunto de antes."),
        ),
    ),
    Pergunta(
        "ultima_uma", 6, "6.2", "escolha",
        "Agora com máscara causal e UMA camada, ainda sem posições. Troco dois tokens anteriores ao "
        "último. A saída da última posição muda?",
        _ultima(1),
        "A última vê o mesmo conjunto de tokens, e um conjunto não tem ordem. Com uma camada só, ela não "
        "tem como saber.",
        opcoes=(
            Opcao("a", "muda: a máscara conta a ordem",
                  "Conta, mas para as posições do meio. A última vê todos, antes e depois da troca."),
            Opcao("b", "não muda", "Mesmo conjunto, mesma média."),
        ),
    ),
    Pergunta(
        "ultima_duas", 6, "6.2", "escolha",
        "E com DUAS camadas causais, sem posições?",
        _ultima(2),
        "Na primeira camada as posições do meio já ficaram diferentes (cada uma vê um conjunto). A "
        "segunda leva isso até a última: a máscara causal vaza a ordem.",
        opcoes=(
            Opcao("a", "a última saída muda", "A ordem entrou pela máscara, sem codificação nenhuma."),
            Opcao("b", "continua sem mudar",
                  "Vale com uma camada. Com duas, o que as do meio viram chega à última."),
        ),
    ),
    Pergunta(
        "onda", 6, "6.2", "numero",
        "Com d = 512 e base 10000, quantas posições o par mais LENTO leva para dar uma volta?",
        _onda,
        "2π · 10000^(1 − 2/d): quase 2π vezes a base.",
        unidade="posições", tolerancia=0.06,
        confusoes=(
            Confusao(lambda c: 10_000, "10000 é a base. A volta inteira tem 2π radianos."),
            Confusao(lambda c: 6.283, "Essa é a volta do par mais RÁPIDO: 2π posições."),
            Confusao(lambda c: 512, "512 é a largura; a onda mais lenta não depende dela dessa maneira."),
        ),
        erro_geral="Multiplique a base por 2π.",
    ),
    Pergunta(
        "produtos", 6, "6.2", "escolha",
        "Senoides: PE(10) · PE(13) e PE(100) · PE(103). Qual é maior?",
        _produtos,
        "cos a cos b + sen a sen b = cos(a − b): a posição some e fica a distância, que é 3 nos dois.",
        opcoes=(
            Opcao("a", "são iguais", "Só a distância importa."),
            Opcao("b", "o primeiro", "Os ângulos lá adiante são maiores, mas o que entra na conta é a diferença deles."),
            Opcao("c", "o segundo", "Os ângulos lá adiante são maiores, mas o que entra na conta é a diferença deles."),
        ),
    ),
    Pergunta(
        "exp_log", 6, "6.4", "escolha",
        "Em float32, exp(−2i/d · ln 10000) dá as frequências com mais precisão que a potência direta?",
        _exp_log,
        "O logaritmo arredonda, a multiplicação aumenta o erro e a exponencial o passa adiante. Para "
        "números deste tamanho, a potência direta erra menos.",
        opcoes=(
            Opcao("a", "sim, é mais estável", "É o que se costuma escrever; meça: não é o que acontece."),
            Opcao("b", "tanto faz", "A diferença é de várias vezes, embora pequena em valor absoluto."),
            Opcao("c", "não: erra mais", "O caminho tem um arredondamento a mais, e ele é amplificado."),
        ),
    ),
    Pergunta(
        "troca_muda", 6, "6.5", "numero",
        "Frase de seis tokens, embedding + posição. Troco dois tokens diferentes de lugar. Quantas das "
        "seis linhas da soma mudam?",
        _troca_muda,
        "Só os dois lugares trocados recebem outro token; as posições deles são as de antes.",
        unidade="linhas",
        confusoes=(
            Confusao(lambda c: 6, "As outras linhas não mudam na entrada: a mistura entre tokens só vem na atenção."),
            Confusao(lambda c: 0, "Zero seria sem posição, e olhando a bolsa. Lugar a lugar, há troca."),
            Confusao(lambda c: 1, "A troca mexe em dois lugares: o que perdeu e o que ganhou cada token."),
        ),
        erro_geral="Conte os lugares em que o token mudou.",
    ),
    Pergunta(
        "bolsa", 6, "6.5", "escolha",
        "Esqueça os lugares e olhe só o conjunto (a bolsa) de vetores das duas ordens da frase. Ele muda "
        "com a troca?",
        _bolsa,
        "Sem posição, as duas frases são a mesma bolsa de vetores: a autoatenção não teria como "
        "distingui-las. Com posição, “cão na 1” e “cão na 4” são vetores diferentes.",
        opcoes=(
            Opcao("a", "só muda quando se soma a posição", "É para isso que a posição serve."),
            Opcao("b", "não muda nem com posição", "Com a posição somada, o mesmo token noutro lugar é outro vetor."),
            Opcao("c", "muda sempre: a frase é outra", "A frase é outra; os vetores, sem posição, são os mesmos."),
        ),
    ),
    Pergunta(
        "explique", 6, "6.5", "texto",
        "Explique em uma linha: por que, sem posições e sem máscara, a autoatenção não distingue “O cão "
        "mordeu o homem” de “O homem mordeu o cão”?",
        _explique,
        "Não há veredito: compare a sua frase com os dois pontos e com o que se mediu.",
    ),
    Pergunta(
        "perda", 6, "6.5", "escolha",
        "Tiro as posições de um modelo já treinado (zero a wpe ou, se ele gira, paro o giro). A perda…",
        _perda,
        "Quanto a perda muda mede quanto o modelo passou a contar com as posições. Um modelo treinado sem "
        "elas se vira com a máscara causal (Haviv et al., 2022); um que contava com elas fica perdido.",
        opcoes=(
            Opcao("a", "quase não muda: a máscara causal já conta a ordem",
                  "A máscara conta alguma ordem, e basta a quem treinou só com ela (ou treinou pouco). Quem "
                  "aprendeu a usar as posições sente a falta."),
            Opcao("b", "piora um pouco, menos de 1 nat por token", "Compare as duas perdas medidas acima."),
            Opcao("c", "dispara, 1 nat por token ou mais",
                  "É o que acontece com quem aprendeu a contar com as posições; um modelo que mal as usa "
                  "mal percebe."),
        ),
    ),
    Pergunta(
        "norma_do_rope", 6, "6.6", "escolha",
        "O RoPE muda a norma de q?",
        _norma_do_rope,
        "Girar não estica: em cada par, a² + b² é o mesmo antes e depois.",
        opcoes=(
            Opcao("a", "muda, porque soma a posição", "Quem soma são as senoides e a wpe. O RoPE gira."),
            Opcao("b", "não muda", "Rotação conserva o comprimento."),
        ),
    ),
    Pergunta(
        "so_a_distancia", 6, "6.6", "escolha",
        "Com RoPE, q na posição 3 e k na 7; depois q na 103 e k na 107. O produto q · k muda?",
        _so_a_distancia,
        "Girar q por m e k por n deixa a diferença dos ângulos: só n − m entra. O sentido conta: (7, 3) "
        "dá outro número.",
        opcoes=(
            Opcao("a", "não: a distância é a mesma", "Posições absolutas giram, e o produto vê a relativa."),
            Opcao("b", "muda: as posições são outras",
                  "Cada um girou mais, mas os dois giraram o mesmo tanto a mais."),
        ),
    ),
    Pergunta(
        "pareamento", 6, "6.6", "escolha",
        "Num modelo da família Llama, com pesos da Hugging Face, giro os pares vizinhos em vez das "
        "metades. O que acontece?",
        _pareamento,
        "As formas combinam, nada reclama, e o modelo responde mal. Os pesos foram treinados (ou "
        "permutados) para um pareamento.",
        opcoes=(
            Opcao("a", "nada: as duas convenções são equivalentes",
                  "São equivalentes se as projeções forem permutadas junto. Com os mesmos pesos, não."),
            Opcao("b", "a perda sobe, sem mensagem nenhuma", "O erro mais silencioso do capítulo."),
            Opcao("c", "dá um erro de forma", "A forma é a mesma: (T, d) entra, (T, d) sai."),
        ),
    ),
    Pergunta(
        "bfloat16", 6, "6.6", "numero",
        "As posições de 0 a 1023 guardadas em bfloat16: quantos números diferentes sobram?",
        _bfloat16,
        "São 8 bits de precisão: até 256 todos os inteiros cabem; de 256 a 512, um em cada dois; de 512 "
        "a 1023, um em cada quatro. Ângulo se calcula em float32 ou mais.",
        unidade="números", tolerancia=0.03,
        confusoes=(
            Confusao(lambda c: 1024, "Em float32 seriam todos. O bfloat16 tem 8 bits de precisão, não 24."),
            Confusao(lambda c: 256, "Até 256 todos cabem, e dali em diante ainda sobram alguns."),
        ),
        erro_geral="Conte por faixas: passo 1 até 256, passo 2 até 512, passo 4 até 1024.",
    ),
    Pergunta(
        "base", 6, "6.6", "escolha",
        "Trocar a base 10000 por 500000 (a do Llama 3) faz o par mais lento…",
        _base,
        "Base maior, frequências menores: as voltas lentas ficam mais longas, e há mais posições sem "
        "repetir o ângulo.",
        opcoes=(
            Opcao("a", "girar mais devagar", "Cabem mais posições numa volta."),
            Opcao("b", "girar mais depressa", "A frequência é base^(−2i/d): a base está embaixo."),
            Opcao("c", "girar igual", "Só o par mais rápido (i = 0) não depende da base."),
        ),
    ),
    Pergunta(
        "interpolar", 6, "6.6", "numero",
        "Interpolação linear para esticar o contexto 4 vezes: o ângulo entre duas posições VIZINHAS fica "
        "em que fração do que era?",
        _interpolar,
        "Divide-se tudo por 4: cabe mais texto na mesma faixa de ângulos, e os vizinhos ficam mais "
        "parecidos. É o preço em resolução.",
        tolerancia=0.02, casas=3,
        confusoes=(
            Confusao(lambda c: 4, "Quatro vezes maior seria sair ainda mais da faixa do treino."),
            Confusao(lambda c: 1, "Um é não mexer. Para caber 4 vezes mais, cada passo encolhe."),
            Confusao(lambda c: 0.5, "Metade seria √4: a divisão é pelo fator inteiro."),
        ),
        erro_geral="O passo encolhe na mesma proporção em que o contexto cresce.",
    ),
    Pergunta(
        "ntk", 6, "6.6", "escolha",
        "E a receita NTK, com o mesmo fator 4: que pares ela mexe?",
        _ntk,
        "Aumentar a base não toca no par mais rápido (i = 0) e divide o mais lento pelo fator: a "
        "resolução local se salva.",
        opcoes=(
            Opcao("a", "os lentos; o mais rápido fica como está", "É por isso que ela borra menos os vizinhos."),
            Opcao("b", "os rápidos; o mais lento fica como está",
                  "Ao contrário: o rápido distingue vizinhos e é o que se quer poupar."),
            Opcao("c", "todos por igual", "Isso é a interpolação linear."),
        ),
    ),
)  # fmt: skip
