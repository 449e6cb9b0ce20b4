"""As perguntas da apostila 02. Cada uma mede na hora; nenhum resultado está escrito aqui."""

from nucleo.base.unidades import cientifico, decimal, inteiro, porcento
from nucleo.contas import amarracao, arquitetura, tabela_posicoes, vetores
from nucleo.exercicios.tipos import Confusao, Medida, Opcao, Pergunta
from nucleo.modelos import fontes, gpt2_medido, listas, pontas
from nucleo.modelos.tamanhos import TAMANHOS

# --- seção 1 -----------------------------------------------------------------------------


def _embaralhar(c):
    m = c.modelo
    e = vetores.embaralhar(m.wte, m.tokenizador.ids("The cat sat on the mat"), 2)
    chave = "a" if e.diferenca == 0 else "b"
    texto = f"os ids mudaram ({e.antes[0]} virou {e.depois[0]}, …) e a maior diferença nos vetores é {decimal(e.diferenca, 1)}"
    return Medida(chave, texto, m.nome)


def _pedacos(c):
    t = fontes.tokenizador_gpt2()
    p = t.pedacos("O Brasil é gigante")
    return Medida(len(p), f"{len(p)}: " + " | ".join(p), "o tokenizador do GPT-2")


def _onehots(c):
    import numpy as np

    V = c.modelo.V
    gato, cachorro, usina = (vetores.onehot(i, V) for i in (40, 12, 999))
    perto, longe = (float(np.linalg.norm(gato - x)) for x in (cachorro, usina))
    chave = "b" if abs(perto - longe) < 1e-6 else "a" if perto < longe else "c"
    return Medida(
        chave,
        f"as duas distâncias são {decimal(perto, 4)} e {decimal(longe, 4)}",
        f"V de {c.modelo.nome}",
    )


# --- seção 2 -----------------------------------------------------------------------------


def _forma_ou_sentido(c):
    forma, sentido = c.cosseno("cat", "cats"), c.cosseno("cat", "dog")
    chave = "c" if abs(forma - sentido) < 0.005 else "a" if forma > sentido else "b"
    return Medida(chave, f"cat–cats {decimal(forma)}; cat–dog {decimal(sentido)}", c.em_ingles.nome)


def _ordem_dos_pares(c):
    notas = {
        "a": c.cosseno("king", "banana"),
        "b": c.cosseno("cat", "dog"),
        "c": c.cosseno("king", "King"),
    }
    ordem = sorted(notas, key=lambda k: -notas[k])
    nomes = {"a": "king–banana", "b": "cat–dog", "c": "king–King"}
    return Medida(
        ordem, " > ".join(f"{nomes[k]} {decimal(notas[k])}" for k in ordem), c.em_ingles.nome
    )


def _dois_ao_acaso(c):
    media = vetores.anisotropia(c.em_ingles.wte, c.normas)
    # 0,03 são uns cinco desvios do cosseno entre sorteados nesta largura: acima disso não é acaso.
    chave = "b" if media > 0.03 else "c" if media < -0.03 else "a"
    return Medida(
        chave, f"o cosseno médio entre todos os pares é {decimal(media)}", c.em_ingles.nome
    )


def _analogia(c):
    from nucleo.contas import vetores

    m, ids = c.em_ingles, [c.linha(p) for p in ("king", "man", "woman")]
    alvo = vetores.vetor_da_analogia(m.wte, *ids)
    primeiros = vetores.vizinhos(m.wte, alvo, 3, c.normas)
    chaves = {c.linha("king"): "a", c.linha("queen"): "b", c.linha("woman"): "c"}
    texto = ", ".join(f"{m.tokenizador.texto(i).strip()} {decimal(n)}" for i, n in primeiros)
    gpt2 = gpt2_medido.fatos()["wte_publicado"]["analogia"]
    if m.nome != "gpt2":
        texto += (
            f"; no GPT-2, publicado: king {decimal(gpt2['king'])}, queen {decimal(gpt2['queen'])}"
        )
    return Medida(chaves.get(primeiros[0][0], "d"), texto, m.nome)


def _conjunto(c):
    m = c.em_ingles
    perguntas = listas.analogias_do_google(m.tokenizador)
    acertos = vetores.avaliar_analogias(m.wte, c.normas, perguntas.ids, normalizar=False)
    todas = vetores.placar(perguntas, acertos)[-1]  # a última linha junta as categorias
    v = 100 * todas.entrada_primeiro / todas.cobertas
    certas = todas.certas_livre / todas.cobertas
    texto = f"em {decimal(v, 1)} %; a resposta certa vem primeiro em {porcento(certas)}"
    return Medida(v, texto, f"{m.nome}, analogias do Google que cabem na tabela")


# --- seções 3 e 4 --------------------------------------------------------------------------


def _peca(nome, peca):
    return arquitetura.contar(TAMANHOS[nome])[peca]


def _desperdicio(c):
    v = _peca("gpt2", "wte")
    return Medida(
        v,
        f"{inteiro(v)} multiplicações, para aproveitar uma linha",
        "GPT-2 small, contado da arquitetura",
    )


def _bytes_xl(tipo=4, pecas=("wte", "wpe")):
    return tipo * sum(_peca("gpt2-xl", p) for p in pecas)


def _mb(c):
    v = _bytes_xl() / 1e6
    return Medida(
        v, f"{inteiro(_bytes_xl())} bytes = {decimal(v, 1)} MB", "GPT-2 XL, contado da arquitetura"
    )


def _mib(c):
    v = _bytes_xl() / 2**20
    return Medida(
        v, f"{inteiro(_bytes_xl())} bytes = {decimal(v, 1)} MiB", "GPT-2 XL, contado da arquitetura"
    )


PARES_WPE = {"a": (0, 1), "b": (1, 2), "c": (2, 500)}


def _linhas_do_gpt2(c):
    f = gpt2_medido.fatos()["wpe_medido"]
    onde = {linha: n for n, linha in enumerate(f["linhas"])}
    notas = {k: f["cossenos"][onde[i]][onde[j]] for k, (i, j) in PARES_WPE.items()}
    ordem = sorted(notas, key=lambda k: -notas[k])
    texto = " > ".join(f"{PARES_WPE[k][0]}–{PARES_WPE[k][1]} {decimal(notas[k])}" for k in ordem)
    return Medida(ordem, texto, "GPT-2, medido")


def _vizinhas(c):
    m = c.com_wpe
    perto_longe = tabela_posicoes.por_defasagem(
        tabela_posicoes.cossenos_entre_linhas(tabela_posicoes.centrar(m.wpe)), 1, -1
    )
    k = min(64, len(perto_longe) - 1)
    perto, longe = float(perto_longe[1]), float(perto_longe[k])
    chave = "a" if perto > longe + 0.1 else "c" if longe > perto + 0.1 else "b"
    texto = f"cosseno médio à distância 1: {decimal(perto)}; à distância {k}: {decimal(longe)} (linhas centradas)"
    return Medida(chave, texto, m.nome)


def _um_a_mais(c):
    m = c.com_wpe
    mensagem = pontas.tropeco_no_limite(m)
    texto = f"com {m.n_ctx + 1} tokens: " + (mensagem or "aceitou")
    return Medida("c" if mensagem else "a", texto, m.nome)


# --- seção 5 -----------------------------------------------------------------------------


def _forma_de_h0(c):
    m = c.com_wpe
    ids = m.tokenizador.ids("O homem viu a casa")[:5]
    forma = pontas.h0(m, ids).shape
    chave = {(len(ids), m.d): "a", (len(ids), 2 * m.d): "b", (2 * len(ids), m.d): "c"}.get(
        forma, "d"
    )
    return Medida(chave, f"n = {len(ids)}, d = {m.d}: h₀ tem forma {forma}", m.nome)


def _quase_perpendiculares(c):
    v = float(vetores.cossenos_gaussianos(768, 4000, 2).std())
    return Medida(
        v, f"{decimal(v, 4)}, o desvio-padrão de 4.000 pares", "vetores sorteados em 768 dimensões"
    )


# --- seção 6 -----------------------------------------------------------------------------


def _parte_de_wte(c):
    conta = arquitetura.contar(TAMANHOS["gpt2"])
    v = 100 * conta["wte"] / sum(conta.values())
    return Medida(
        v,
        f"{inteiro(conta['wte'])} de {inteiro(sum(conta.values()))}: {decimal(v, 1)} %",
        "GPT-2 small, contado da arquitetura",
    )


def _parte_no_solto(c):
    conta = arquitetura.contar(TAMANHOS["gpt2"])
    return 100 * conta["wte"] / (sum(conta.values()) + conta["wte"])


def _copia(c):
    import torch

    E = torch.from_numpy(c.modelo.wte[:8].copy())
    r = amarracao.amarracao(E, E.clone())
    texto = f"números iguais, e mudar a primeira {'mudou' if r.mudanca_vista else 'não mudou'} a segunda"
    return Medida(
        "a" if r.amarrada else "b", texto, f"8 linhas de wte de {c.modelo.nome}, e uma cópia"
    )


def dois_gradientes(c) -> dict:
    """Os dois caminhos do gradiente até a tabela, separados, num modelo de um passo só.

    A entrada busca linhas (h = E[ids]) e a saída as pontua (logits = h · Eᵀ); sem blocos no meio,
    para a conta caber na tela. Devolve as normas e quantas linhas cada caminho mexe, e a maior
    diferença entre a soma dos dois e o gradiente da tabela amarrada.
    """
    if "gradientes" in c.memoria:
        return c.memoria["gradientes"]
    import torch

    m = c.modelo
    ids = torch.tensor(m.tokenizador.ids("The cat sat on the mat")[:6])
    tabela = torch.from_numpy(m.wte.copy())

    def perda(de_entrada, de_saida):
        h = de_entrada[ids[:-1]]  # (V, d) -> (n − 1, d)
        return torch.nn.functional.cross_entropy(h @ de_saida.T, ids[1:])

    ent, sai = tabela.clone().requires_grad_(), tabela.clone().requires_grad_()
    perda(ent, sai).backward()
    uma = tabela.requires_grad_()
    perda(uma, uma).backward()
    c.memoria["gradientes"] = {
        "V": m.V,
        "diferentes": len(set(ids[:-1].tolist())),
        "linhas_entrada": int((ent.grad.abs().amax(1) > 0).sum()),
        "linhas_saida": int((sai.grad.abs().amax(1) > 0).sum()),
        "norma_entrada": float(ent.grad.norm()),
        "norma_saida": float(sai.grad.norm()),
        "diferenca": float((ent.grad + sai.grad - uma.grad).abs().max()),
    }
    return c.memoria["gradientes"]


def _linhas_da_saida(c):
    g = dois_gradientes(c)
    # Quase todas é todas: uma linha muito improvável pode ter gradiente menor que o float32 mostra.
    chave = "c" if g["linhas_saida"] > 0.9 * g["V"] else "a" if g["linhas_saida"] <= 6 else "b"
    texto = (
        f"pela saída, {inteiro(g['linhas_saida'])} de {inteiro(g['V'])} linhas; pela entrada, "
        f"{g['linhas_entrada']}"
    )
    return Medida(chave, texto, f"wte de {c.modelo.nome}, sem blocos no meio")


def _dois_lados(c):
    g = dois_gradientes(c)
    texto = (
        f"norma do gradiente pela entrada {decimal(g['norma_entrada'])} ({g['linhas_entrada']} linhas), "
        f"pela saída {decimal(g['norma_saida'])} ({inteiro(g['linhas_saida'])} linhas); a soma dos dois é o "
        f"gradiente da tabela amarrada (maior diferença {cientifico(g['diferenca'])})"
    )
    pontos = (
        "Ajuda: toda linha recebe sinal a cada passo, mesmo a de uma palavra que não apareceu; há "
        "menos parâmetros para os mesmos dados; e o que o token significa ao entrar combina com o que "
        "ele pontua ao sair.",
        "Atrapalha: os dois caminhos pedem coisas diferentes da mesma linha, e o da saída costuma "
        "mandar mais (Press e Wolf, 2017, viram a tabela amarrada parecer-se com a de saída); um "
        "modelo largo pode preferir duas tabelas.",
    )
    return Medida(pontos, texto, f"wte de {c.modelo.nome}, sem blocos no meio")


PERGUNTAS = (
    Pergunta(
        "embaralhar", 2, "1", "escolha",
        "Sorteia-se outra ordem para o vocabulário: todo id muda, e as linhas da tabela mudam de lugar "
        "junto. O que acontece com os vetores da frase “The cat sat on the mat”?",
        _embaralhar,
        "O id é só o número da linha. Trocar as etiquetas dos armários e os armários juntos não muda o "
        "que há dentro deles.",
        opcoes=(
            Opcao("a", "nada: são os mesmos vetores", "Isso: o id não carrega significado."),
            Opcao("b", "mudam todos, porque os ids mudaram",
                  "Você leu o id como medida. Ele é etiqueta: quem tem significado é a linha que ele aponta."),
            Opcao("c", "só mudam os das palavras raras",
                  "A ordem dos ids costuma seguir a frequência, mas o modelo não usa essa ordem para nada."),
        ),
    ),
    Pergunta(
        "pedacos", 2, "1", "numero",
        "Em quantos tokens o GPT-2 corta “O Brasil é gigante”?",
        _pedacos,
        "O BPE do GPT-2 aprendeu em inglês: palavras comuns em português viram pedaços.",
        unidade="tokens",
        confusoes=(
            Confusao(lambda c: 4, "Quatro são as palavras. Um token é um pedaço do vocabulário, e nem toda "
                     "palavra portuguesa está inteira nele."),
            Confusao(lambda c: 5, "É o que muita apostila supõe. Conte com o tokenizador: há um corte a mais."),
            Confusao(lambda c: 18, "Dezoito são os caracteres; o BPE junta vários num token."),
        ),
        erro_geral="Conte os pedaços na tela: o espaço da frente faz parte do token.",
    ),
    Pergunta(
        "onehots", 2, "1", "escolha",
        "Com one-hot, o vetor de “gato” fica mais perto do de “cachorro” ou do de “hidrelétrica”?",
        _onehots,
        "Dois one-hot diferentes diferem em duas casas, sempre: a distância é √2 entre quaisquer dois.",
        opcoes=(
            Opcao("a", "mais perto de “cachorro”",
                  "Seria o que um embedding aprendido faz. O one-hot só sabe quem é quem."),
            Opcao("b", "à mesma distância dos dois", "Isso: identidade sem significado."),
            Opcao("c", "depende de quais ids são vizinhos",
                  "A distância entre vetores one-hot não vê a distância entre os ids: 1 e 2 ficam tão longe "
                  "quanto 1 e 40 000."),
        ),
    ),
    Pergunta(
        "forma_ou_sentido", 2, "2", "escolha",
        "Qual par tem o maior cosseno na tabela wte?",
        _forma_ou_sentido,
        "A tabela é dominada tanto pela forma quanto pelo sentido: plural, maiúscula e espaço pesam.",
        opcoes=(
            Opcao("a", "cat – cats, a mesma palavra no plural",
                  "Forma e uso quase iguais: as duas aparecem nos mesmos contextos."),
            Opcao("b", "cat – dog, dois bichos de casa",
                  "O sentido também aproxima, mas a flexão da mesma palavra costuma ficar mais perto ainda."),
            Opcao("c", "praticamente empatam",
                  "São parecidos, mas nenhum treino obriga os dois a empatar: olhe a segunda casa decimal."),
        ),
    ),
    Pergunta(
        "ordem_dos_pares", 2, "2", "ordem",
        "Ponha em ordem, do cosseno maior para o menor.",
        _ordem_dos_pares,
        "A maiúscula muda o token e quase não muda o uso; dois bichos dividem contextos; um rei e uma "
        "banana, quase nenhum.",
        opcoes=(
            Opcao("a", "king – banana",
                  "O par sem parentesco fica por último: se você o pôs antes, contou com um acaso."),
            Opcao("b", "cat – dog",
                  "Parentes de sentido ficam no meio: menos que a mesma palavra com outra cara."),
            Opcao("c", "king – King",
                  "Para a tabela são duas linhas, mas usadas nos mesmos lugares: é o par mais próximo."),
        ),
    ),
    Pergunta(
        "dois_ao_acaso", 2, "2", "escolha",
        "Sorteie dois tokens quaisquer. Em média, o cosseno entre as linhas deles em wte é…",
        _dois_ao_acaso,
        "As linhas apontam todas um pouco para o mesmo lado (anisotropia). Por isso “sem relação” não "
        "é cosseno zero: compare sempre com um par ao acaso.",
        opcoes=(
            Opcao("a", "perto de zero",
                  "Seria assim com vetores sorteados. As linhas treinadas dividem uma direção comum."),
            Opcao("b", "claramente positivo", "Há uma direção comum a quase todas as linhas."),
            Opcao("c", "negativo",
                  "Metade dos pares não pode apontar contra a outra metade: no máximo a média seria zero."),
        ),
    ),
    Pergunta(
        "analogia", 2, "2", "escolha",
        "king − man + woman, com o vocabulário inteiro no páreo. Quem fica em primeiro?",
        _analogia,
        "Partimos do vetor de king e andamos pouco: king e queen disputam o primeiro lugar, e quem ganha "
        "depende do modelo. As demonstrações famosas tiram as palavras de entrada antes de mostrar.",
        opcoes=(
            Opcao("a", "king", "O ponto de partida: no GPT-2 ele ganha. Onde o desvio man → woman pesa mais, perde por pouco."),
            Opcao("b", "queen",
                  "A resposta famosa. Por aí ela quase sempre aparece com king já retirada da lista; com todas no "
                  "páreo, às vezes ganha, às vezes fica atrás do ponto de partida."),
            Opcao("c", "woman", "Somamos woman, mas uma vez só, e tiramos man, que se parece com ela."),
            Opcao("d", "outra palavra",
                  "Seria uma surpresa: o alvo fica bem perto do ponto de partida."),
        ),
    ),
    Pergunta(
        "conjunto", 2, "2", "numero",
        "De cada cem analogias do conjunto do Google que cabem na tabela, em quantas a primeira "
        "resposta, com tudo permitido, é uma das palavras da própria pergunta?",
        _conjunto,
        "É o que fica escondido quando se tiram as entradas: na maioria das perguntas a vencedora já "
        "estava na pergunta.",
        unidade="%", absoluta=15, casas=1,
        confusoes=(
            Confusao(lambda c: 0, "Zero seria se a soma levasse longe do ponto de partida; ela leva perto."),
            Confusao(lambda c: 20, "Essa é, mais ou menos, a parte em que a resposta CERTA vence sem exclusão."),
        ),
        erro_geral="A soma anda pouco: o ponto de partida continua sendo o vizinho mais próximo na maioria.",
    ),
    Pergunta(
        "desperdicio", 2, "3", "numero",
        "Buscar UM token multiplicando o one-hot pela wte do GPT-2 small (50.257 × 768): quantas "
        "multiplicações?",
        _desperdicio,
        "Cada uma das V casas do one-hot multiplica uma linha inteira, de d números: V · d. A indexação "
        "busca a linha sem multiplicar nada.",
        tolerancia=0.02,
        confusoes=(
            Confusao(lambda c: _peca("gpt2", "wte") / 768,
                     "Isso é V: uma multiplicação por linha. Mas cada linha tem d números para multiplicar."),
            Confusao(lambda c: 768, "768 é o tamanho da linha buscada; o produto passa por todas elas."),
        ),
        erro_geral="O one-hot (1 × V) encontra a tabela (V × d): são V · d multiplicações.",
    ),
    Pergunta(
        "xl_mb", 2, "4", "numero",
        "À mão: quanto ocupam wte + wpe do GPT-2 XL em fp32 (vocabulário 50.257, contexto 1.024, "
        "d = 1.600), em MB (milhões de bytes)?",
        _mb,
        "(50.257 + 1.024) linhas × 1.600 números × 4 bytes.",
        unidade="MB", tolerancia=0.005, casas=1,
        confusoes=(
            Confusao(lambda c: _bytes_xl(1) / 1e6, "Esse é o número de parâmetros, em milhões: faltou × 4 bytes."),
            Confusao(lambda c: _bytes_xl() / 2**20, "Isso são MiB (2²⁰ bytes). Em MB divide-se por um milhão."),
            Confusao(lambda c: _bytes_xl(2) / 1e6, "2 bytes por número é fp16; em fp32 são 4."),
            Confusao(lambda c: _bytes_xl(4, ("wte",)) / 1e6, "Só wte: faltou somar wpe, que tem 1.024 linhas."),
            Confusao(lambda c: _bytes_xl(8) / 1e6, "8 bytes por número é fp64; em fp32 são 4."),
            Confusao(lambda c: _bytes_xl() / 1e9, "Isso está em GB."),
        ),
        erro_geral="Some as linhas das duas tabelas, multiplique pela largura e por 4 bytes.",
    ),
    Pergunta(
        "xl_mib", 2, "4", "numero",
        "E as mesmas duas tabelas em MiB (2²⁰ bytes)?",
        _mib,
        "Um MiB são 1.048.576 bytes, uns 5 % mais que um MB: o mesmo tamanho dá um número menor.",
        unidade="MiB", tolerancia=0.005, casas=1,
        confusoes=(
            Confusao(lambda c: _bytes_xl() / 1e6, "Esse é o número em MB. Em MiB divide-se por 2²⁰."),
            Confusao(lambda c: _bytes_xl() * 1.048576 / 1e6, "O fator foi para o lado errado: em MiB o número diminui."),
            Confusao(lambda c: _bytes_xl(1) / 2**20, "Faltou × 4 bytes."),
        ),
        erro_geral="Divida os bytes por 1.048.576.",
    ),
    Pergunta(
        "linhas_do_gpt2", 2, "4", "ordem",
        "Na wpe do GPT-2, olhe quatro posições: 0, 1, 2 e 500. Ponha os pares em ordem, do cosseno maior "
        "para o menor.",
        _linhas_do_gpt2,
        "Posições vizinhas ficaram parecidas sem ninguém pedir, de 1 em diante. A linha 0 é um ponto "
        "fora da curva: nem com a 1 ela se parece tanto.",
        opcoes=(
            Opcao("a", "0 e 1",
                  "Vizinhas, mas a posição 0 é especial: todo texto começa nela, e o modelo faz dela outra coisa."),
            Opcao("b", "1 e 2", "Vizinhas comuns: quase o mesmo vetor."),
            Opcao("c", "2 e 500", "Distantes: o cosseno chega a ser negativo."),
        ),
    ),
    Pergunta(
        "vizinhas", 2, "4", "escolha",
        "Agora medido ao vivo, num modelo com wpe: posições vizinhas têm vetores mais parecidos que "
        "posições a 64 de distância?",
        _vizinhas,
        "Ninguém disse ao modelo que 7 vem depois de 6: a vizinhança emergiu de prever texto.",
        opcoes=(
            Opcao("a", "sim, bem mais parecidos", "O treino descobriu a vizinhança sozinho."),
            Opcao("b", "não: cada posição é aprendida à parte, e dá igual",
                  "À parte, sim; mas posições vizinhas servem para coisas parecidas, e os gradientes as aproximam."),
            Opcao("c", "ao contrário, as distantes se parecem mais",
                  "A semelhança chega a voltar a grandes distâncias (ela oscila), mas não passa a das vizinhas."),
        ),
    ),
    Pergunta(
        "um_a_mais", 2, "4", "escolha",
        "O que acontece quando se dá a um modelo com wpe um token a mais do que ela tem linhas?",
        _um_a_mais,
        "A posição seguinte não existe na tabela. Não é um limite de configuração: falta a linha.",
        opcoes=(
            Opcao("a", "funciona, um pouco pior",
                  "Isso descreve outros esquemas (senoides, RoPE). Aqui não há linha para buscar."),
            Opcao("b", "ele ignora o começo do texto",
                  "Quem corta o texto é o programa em volta, se alguém o escreveu assim; o modelo não corta."),
            Opcao("c", "dá um erro de índice", "A consulta sai da tabela."),
        ),
    ),
    Pergunta(
        "forma_de_h0", 2, "5", "escolha",
        "Uma frase de n tokens num modelo de largura d. Qual é a forma de h₀ = wte[ids] + wpe[0…n−1]?",
        _forma_de_h0,
        "Somar não muda a forma: cada token continua com d números.",
        opcoes=(
            Opcao("a", "(n, d)", "Uma linha por token."),
            Opcao("b", "(n, 2d)", "Seria concatenar. O GPT-2 soma, e a largura não cresce."),
            Opcao("c", "(2n, d)", "Seria empilhar posições como se fossem tokens."),
        ),
    ),
    Pergunta(
        "perpendiculares", 2, "5", "numero",
        "Dois vetores sorteados em 768 dimensões são quase perpendiculares. De que tamanho é, "
        "tipicamente, o cosseno entre eles (o desvio-padrão)?",
        _quase_perpendiculares,
        "O desvio é 1/√d. Com 768 dimensões há muito lugar para direções que não se atrapalham, e é "
        "por isso que somar conteúdo e posição funciona.",
        tolerancia=0.25, casas=4,
        confusoes=(
            Confusao(lambda c: 1 / 768, "Isso é 1/d. O desvio do cosseno é 1/√d: cai mais devagar."),
            Confusao(lambda c: 0, "Zero é a média. Pergunta-se o tamanho típico, para um lado ou para o outro."),
            Confusao(lambda c: 0.5, "Meio é o que se espera em duas ou três dimensões; em 768 é muito menor."),
        ),
        erro_geral="A conta é 1/√768.",
    ),
    Pergunta(
        "parte_de_wte", 2, "6", "numero",
        "Que parte dos parâmetros do GPT-2 small (com a cabeça amarrada) é a wte?",
        _parte_de_wte,
        "38,6 milhões de 124,4. A conta de “um quarto” é a do modelo solto, que tem 163 milhões.",
        unidade="%", absoluta=1.5, casas=1,
        confusoes=(
            Confusao(_parte_no_solto, "Essa é a parte no modelo SOLTO, de 163 milhões. No amarrado o total é menor, e a parte, maior."),
            Confusao(lambda c: 50, "Metade é demais: os 12 blocos somam mais que a tabela."),
        ),
        erro_geral="Divida 50.257 × 768 pelo total, de 124,4 milhões.",
    ),
    Pergunta(
        "copia", 2, "6", "escolha",
        "Duas matrizes têm exatamente os mesmos números, mas a segunda é uma cópia. Estão amarradas?",
        _copia,
        "Amarrada é a mesma memória. Números iguais hoje não garantem números iguais depois de um passo "
        "de treino.",
        opcoes=(
            Opcao("a", "sim: os números são iguais",
                  "Iguais agora. Ao mudar a primeira, a cópia fica para trás: são duas matrizes."),
            Opcao("b", "não: são duas matrizes na memória", "O teste é mudar uma e olhar a outra."),
        ),
    ),
    Pergunta(
        "linhas_da_saida", 2, "6", "escolha",
        "Tabela amarrada, frase de 6 tokens, um passo de gradiente. Pelo caminho da SAÍDA, quantas "
        "linhas da tabela recebem gradiente?",
        _linhas_da_saida,
        "O softmax põe todas as linhas para disputar: as erradas são empurradas, a certa é puxada. Pela "
        "entrada, só as linhas buscadas.",
        opcoes=(
            Opcao("a", "só as dos tokens da frase", "Isso vale para o caminho da entrada, que só busca linhas."),
            Opcao("b", "a do token certo, e mais nenhuma",
                  "A certa sobe porque as outras descem: o denominador do softmax passa por todas."),
            Opcao("c", "praticamente todas as do vocabulário", "Todas disputam, todas recebem um empurrão."),
        ),
    ),
    Pergunta(
        "dois_lados", 2, "6", "texto",
        "Dois gradientes chegam à mesma tabela, um por cada ponta. Isso ajuda ou atrapalha? Escreva um "
        "argumento de cada lado (uma linha basta).",
        _dois_lados,
        "Não há veredito: compare o seu argumento com os dois lados e com o que se mediu.",
    ),
)  # fmt: skip
