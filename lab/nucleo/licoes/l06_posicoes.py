"""O que é grande demais para a página da lição 06: quem responde pelas bibliotecas, as tabelas de precisão.

As contas estão escritas na própria lição; as versões rápidas, em `contas`.
"""

from __future__ import annotations

import itertools
import json
import math

import torch
from torch import Tensor, nn

from nucleo.base import caminhos
from nucleo.base.caderno import Conferencia, Quadro, numero
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import cientifico, decimal, inteiro, porcento
from nucleo.contas import folga, permutacao, posicoes, posicoes_no_modelo, vieses
from nucleo.contas.posicoes import CamadaDeEntrada, CodificacaoPosicional, senoides
from nucleo.modelos import listas, pontas, textos
from nucleo.modelos.fontes import Modelo


def maior(x: Tensor, y: Tensor) -> float:
    """A maior diferença entre dois tensores da mesma forma."""
    return float((x - y).abs().max())


def contra(nome: str, x: Tensor, y: Tensor, tolerancia: float = 0.0) -> Conferencia:
    """Uma linha de *maior diferença*: o que a lição fez contra o que outro fez."""
    return Conferencia(nome, maior(x, y), 0, float(tolerancia))


def frase_e_troca(frase: str | None, troca: list[int] | None) -> tuple[list[str], int, int, Tensor]:
    """(palavras, i, j, permutação) do que foi pedido, ou da frase padrão.

    Levanta:
        ErroDePosicao: menos de três palavras, posições fora da frase ou que mexem na última.
    """
    da_apostila, *padrao = textos.frase()
    palavras = frase.split() if frase is not None else da_apostila
    if len(palavras) < 3:
        raise posicoes.ErroDePosicao(
            f"A frase tem {len(palavras)} palavra(s), e são precisas três.",
            "Duas trocam de lugar, e a última fica parada para se comparar o que ela vê.",
            'Por exemplo:  --frase "a gata viu o rato ." --troca 1 4',
        )
    i, j = troca or (padrao if frase is None else (0, len(palavras) - 2))
    ordem = permutacao.troca(len(palavras), i, j)
    if len(palavras) - 1 in (i, j):
        raise posicoes.ErroDePosicao(
            f"A troca mexe na última palavra, a da posição {len(palavras) - 1}.",
            "A comparação é do que a última posição vê: ela precisa ter a mesma palavra nas duas ordens.",
            "Troque palavras anteriores, ou termine a frase com um ponto separado por espaço.",
        )
    return palavras, i, j, ordem


def quadro_do_equilibrio(normas: dict[tuple[str, str], float], posicao: float, d: int) -> Quadro:
    """{(início das linhas, se multiplica por √d): norma do token}, ao lado da norma da posição."""
    numeros = dict.fromkeys(("‖token‖", "‖posição‖", "razão"), decimal)
    return Quadro(
        f"Token contra posição, d = {d}: normas médias de camadas recém-sorteadas",
        {"início das linhas": str, "× √d": str} | numeros,
        [[*qual, norma, posicao, norma / posicao] for qual, norma in normas.items()],
    )


# --------------------------------------------------------------------------- 6.2


def quadro_da_ordem(
    casos: dict[str, tuple[str, bool, int]], todas: dict[str, float], ultima: dict[str, float]
) -> Quadro:
    """O quanto mudam todas as saídas e só a última, em cada caso (posição, máscara causal, camadas)."""
    # "Percebe" é passar de 1e-4: o arredondamento de duas camadas não chega lá (`folga.modelo(2, 64, 4)`
    # é 3e-5), e o resto fica perto de 1.
    linhas = [
        [posicao, "causal" if causal else "nenhuma", n, onde, de[nome],
         "sim" if de[nome] > 1e-4 else "não"]
        for nome, (posicao, causal, n) in casos.items()
        for onde, de in (("todas as saídas, destrocadas", todas), ("só a última", ultima))
    ]  # fmt: skip
    colunas = dict.fromkeys(("posição", "máscara", "camadas", "onde se olha"), str)
    colunas |= {"diferença": cientifico, "percebe": str}
    return Quadro("Uma atenção de pesos sorteados percebe a troca?", colunas, linhas)


def em_python(n: int, d: int) -> Tensor:
    """(n, d): as senoides com o `math` do Python, coluna a coluna: a fórmula e mais nada."""
    linhas = []
    for pos in range(n):
        angulos = [pos / 10000 ** (2 * i / d) for i in range(d // 2)]
        linhas.append([f(a) for a in angulos for f in (math.sin, math.cos)])
    return torch.tensor(linhas, dtype=torch.float64)


def do_xlm(n: int, d: int) -> Tensor:
    """(n, d): a tabela que o XLM traz no transformers, em float32."""
    from transformers.models.xlm.modeling_xlm import create_sinusoidal_embeddings

    return create_sinusoidal_embeddings(n, d, torch.empty(n, d))


def contra_outras(pe: Tensor) -> list[Conferencia]:
    """A tabela (n, d) em float64 contra a fórmula em Python puro, e contra o XLM, que a guarda em float32."""
    n, d = pe.shape
    return [
        contra("contra a fórmula em Python puro", pe, em_python(n, d), folga.angulo(n)),
        contra("contra o XLM, no transformers", pe.float(), do_xlm(n, d), folga.EPS32),
    ]


def quadro_a_mao(pe: Tensor) -> Quadro:
    """Uma tabela (n, d) de senoides, com a fórmula de cada coluna no cabeçalho."""
    d = pe.shape[1]
    divisores = [f"{10000 ** (2 * i / d):.4g}".replace(".", ",") for i in range(d // 2)]
    colunas = [f"{f} pos/{v}" for v in divisores for f in ("sen", "cos")]
    colunas = {"pos": str} | dict.fromkeys(colunas, decimal)
    linhas = [[pos, *linha] for pos, linha in enumerate(pe.tolist())]
    return Quadro(f"As senoides à mão, d = {d}", colunas, linhas)


def disposicoes(d: int, n: int) -> list[Conferencia]:
    """Cada disposição contra a biblioteca que a usa: outra convenção, não outro acerto."""
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    d = max(d, 4)  # a do fairseq não existe com um par só
    metades, fairseq = (senoides(n, d, disposicao=qual) for qual in ("metades", "fairseq"))
    do_m2m = M2M100SinusoidalPositionalEmbedding.get_embedding(n, d)
    limite = folga.angulo(n, folga.EPS32)  # as duas bibliotecas fazem o ângulo em float32
    return [
        contra("metades (GPT-J)", metades, create_sinusoidal_positions(n, d), limite),
        contra("fairseq (M2M-100)", fairseq, do_m2m, limite),
    ]


def quadro_das_ondas(lambdas: Tensor) -> Quadro:
    """Comprimento de onda (d/2,) de alguns pares, do mais rápido ao mais lento."""
    pares = len(lambdas)
    quais = sorted({0, min(1, pares - 1), pares // 4, pares // 2, 3 * pares // 4, pares - 1})
    colunas = {"par": str, "posições por volta": decimal, "voltas em 512": decimal}
    linhas = [[i, lambdas[i], 512 / lambdas[i]] for i in quais]
    return Quadro(f"Comprimentos de onda, d = {2 * pares}", colunas, linhas)


def proximas(pe: Tensor, posicao: int) -> Quadro:
    """As seis posições de maior cosseno com `posicao`, na tabela de senoides (T, d)."""
    # Toda linha tem a mesma norma, √(d/2): o cosseno é o produto interno sobre d/2.
    cossenos = pe @ pe[posicao] / (pe.shape[1] / 2)  # (T, d) @ (d,) -> (T,)
    # As duas à mesma distância empatam: vem antes a menor, e não a do arredondamento.
    perto = cossenos.round(decimals=9).argsort(descending=True, stable=True)[1:7]  # (T,) -> (6,)
    colunas, linhas = {"posição": str, "cosseno": decimal}, zip(perto, cossenos[perto], strict=True)
    return Quadro(f"As mais próximas da posição {posicao}", colunas, list(linhas))


def publicado() -> tuple[float, float, int]:
    """A perplexidade do modelo senoidal de Press et al. (2021): no treino, depois, e em quantas."""
    arquivo = caminhos.DADOS / "extrapolacao" / "publicados.json"
    linhas = json.loads(arquivo.read_text(encoding="utf-8"))["press"]["linhas"]
    linha = next(linha for linha in linhas if linha["esquema"] == "senoidal")
    return linha["no_treino"], linha["depois"], linha["em"]


# --------------------------------------------------------------------------- 6.3


def quadro_das_formas(formas: dict[str, tuple[int, ...]]) -> Quadro:
    """{etapa da camada de entrada: forma}, com o que cada etapa é."""
    o_que = {
        "ids": "um número por token",
        "E": "a tabela de embeddings, |V| linhas",
        "E[ids]": "uma linha por token",
        "E[ids] · √d": "as mesmas, maiores",
        "PE": "a tabela de posições, max_len linhas",
        "PE[:T]": "as T primeiras; o lote vem por broadcasting",
        "saída": "a soma, depois do dropout",
    }
    return Quadro(
        "As formas, lidas da camada enquanto roda",
        {"etapa": str, "forma": str, "o que é": str},
        [[nome, str(forma), o_que[nome]] for nome, forma in formas.items()],
    )


def em_lacos(E: Tensor, pe: Tensor, ids: Tensor) -> Tensor:
    """E[ids] · √d + PE em três laços, elemento a elemento: (V, d), (n, d), (B, T) -> (B, T, d)."""
    (B, T), d = ids.shape, E.shape[1]
    soma = torch.empty(B, T, d, dtype=torch.float64)
    for b, t, i in itertools.product(range(B), range(T), range(d)):
        soma[b, t, i] = E[ids[b, t], i].item() * math.sqrt(d) + pe[t, i].item()
    return soma


def contra_lacos(saida: Tensor, E: Tensor, pe: Tensor, ids: Tensor) -> Conferencia:
    """A saída da camada (B, T, d), em float32, contra `em_lacos`, em float64."""
    B, T, d = saida.shape
    nome = f"broadcasting contra três laços (B, T, d = {B}, {T}, {d})"
    # A raiz, o produto e a soma arredondam uma vez cada.
    return contra(nome, saida, em_lacos(E, pe, ids), folga.soma(3, saida.abs().max(), folga.EPS32))


def dropout_medido(p: float, semente: int) -> list[Conferencia]:
    """O que o dropout faz ao treinar e ao avaliar, contado em uma entrada de uns."""
    camada, x = CodificacaoPosicional(64, 200, dropout=p), torch.ones(8, 200, 64)
    avaliando = camada.eval()(x)
    torch.manual_seed(semente)
    treinando = camada.train()(x)
    vivos = treinando != 0
    razao = (treinando[vivos] / avaliando[vivos]).double().mean()
    duas_passadas = maior(camada.eval()(x), avaliando)
    # O sorteio muda com a máquina: seis desvios, √(p(1 − p)/n), deixam passar todos menos um em 10⁹.
    # Os que ficam não têm sorte: cada razão é um fator, um produto e uma divisão em float32.
    seis_desvios = 6 * math.sqrt(p * (1 - p) / x.numel())
    da_razao = folga.soma(3, 1 / (1 - p), folga.EPS32)
    return [
        Conferencia("treino: fração zerada", float((~vivos).float().mean()), p, seis_desvios),
        Conferencia("treino: quanto crescem os que ficam", float(razao), 1 / (1 - p), da_razao),
        Conferencia("avaliação: diferença entre duas passadas", duas_passadas),
    ]


# --------------------------------------------------------------------------- 6.4


def _pe_no_estado(d: int, max_len: int) -> nn.Module:
    # A tabela como buffer que vai para o state_dict, o padrão do register_buffer.
    camada = nn.Module()
    camada.register_buffer("pe", senoides(max_len, d))
    return camada


def buffers(d: int) -> Quadro:
    """A tabela de posições dentro e fora do state_dict, ao carregar 512 posições em 1024."""
    linhas = []
    fabricas = {"buffer persistente": _pe_no_estado}
    for nome, fabrica in (
        fabricas | {"buffer com persistent=False": CodificacaoPosicional}
    ).items():
        antiga, nova = fabrica(d, 512), fabrica(d, 1024)
        estado = antiga.state_dict()
        try:
            nova.load_state_dict(estado)
            resposta = "carrega"
        except RuntimeError as erro:
            resposta = "não: " + str(erro).split("\t")[-1].split(":")[0]
        bytes_ = sum(t.numel() * t.element_size() for t in estado.values())
        depois = str(antiga.half().pe.dtype).removeprefix("torch.")
        linhas.append([nome, ", ".join(estado) or "nenhuma", bytes_, depois, resposta])
    colunas = {"a tabela é": str, "chaves": str, "bytes": inteiro}
    colunas |= {"depois de .half()": str, "carregar com outro max_len": str}
    titulo = f"A tabela de posições e o state_dict (max_len de 512 para 1024, d = {d})"
    return Quadro(titulo, colunas, linhas)


def quadro_das_frequencias(d: int, potencia: float, exp_log: float) -> Quadro:
    """O maior erro relativo das frequências em float32, nas duas formas de escrevê-las."""
    linhas = [["1/10000^(2i/d), direta", potencia]]
    linhas += [["exp(−2i/d · ln 10000), a do capítulo", exp_log]]
    colunas = {"como": str, "maior erro relativo": cientifico}
    return Quadro(f"Frequências em float32, d = {d}", colunas, linhas)


PRECISOES = {
    "float32, potência": (torch.float32, "potencia"),
    "float32, exp(log)": (torch.float32, "exp_log"),
    "float16": (torch.float16, "potencia"),
    "bfloat16": (torch.bfloat16, "potencia"),
}


def ou_nao_cabe(erro: float) -> str:
    """Um erro em notação curta; NaN é posição que nem cabe no tipo."""
    return "não cabe" if math.isnan(erro) else cientifico(erro)


def precisao_por_posicao(d: int, quais: list[int], janela: int = 64) -> dict[str, list[float]]:
    """{precisão: o maior erro da tabela, nas `janela` posições até cada uma de `quais`}.

    NaN quer dizer que a posição nem cabe no tipo.
    """
    erros = {nome: [] for nome in PRECISOES}
    for pos in quais:
        trecho = torch.arange(max(0, pos - janela + 1), pos + 1)
        exata = senoides(trecho, d, dtype=torch.float64)
        for nome, (tipo, forma) in PRECISOES.items():
            erro = (posicoes.senoides_em(trecho, d, tipo, forma).double() - exata).abs()
            erros[nome].append(float(erro.max()))  # max de quem tem NaN é NaN
    return erros


def quadro_da_precisao(quais: list[int], erros: dict[str, list[float]]) -> Quadro:
    """Os erros de `precisao_por_posicao`, uma posição por linha."""
    colunas = {"posição": inteiro} | dict.fromkeys(erros, ou_nao_cabe)
    linhas = list(zip(quais, *erros.values(), strict=True))
    return Quadro("O erro da tabela pronta, posição a posição", colunas, linhas)


def erro_do_float64(d: int, pos: int) -> Conferencia:
    """A nossa tabela em float64 contra 40 casas decimais (mpmath, que vem com o torch)."""
    import mpmath

    nossa = senoides([pos], d, dtype=torch.float64)[0]
    with mpmath.workdps(40):
        pior = 0.0
        for i in range(d // 2):
            angulo = mpmath.mpf(pos) / mpmath.power(10000, mpmath.mpf(2 * i) / d)
            for coluna, f in ((2 * i, mpmath.sin), (2 * i + 1, mpmath.cos)):
                pior = max(pior, abs(float(f(angulo)) - float(nossa[coluna])))
    nome = f"float64 contra 40 casas, na posição {pos}"
    return Conferencia(nome, pior, 0, folga.angulo(pos))


def meia_precisao(d: int, n: int) -> Quadro:
    """Mudar de tipo depois (`.half()` na camada) e antes (o ângulo feito no tipo)."""
    exata, linhas = senoides(n, d, dtype=torch.float64), []
    for nome, tipo in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        pronta = CodificacaoPosicional(d, n).to(tipo).pe.double()
        dentro = posicoes.senoides_em(torch.arange(n), d, tipo).double()
        linhas.append([nome, maior(pronta, exata), maior(dentro, exata)])
    colunas = {"tipo": str, "só o valor pronto": cientifico, "o ângulo também": cientifico}
    return Quadro(f"Meia precisão, {inteiro(n)} posições: maior erro", colunas, linhas)


def enganos() -> list[str]:
    """As mensagens de três enganos cometidos de propósito."""
    tres = (
        lambda: posicoes.senoides(4, 7),
        lambda: CodificacaoPosicional(8, 100)(torch.zeros(1, 101, 8)),
        lambda: posicoes.EmbeddingsDeEntrada(50_257, 8)(torch.tensor([[50_257]])),
    )
    mensagens = []
    for engano in tres:
        try:
            engano()
        except posicoes.ErroDePosicao as erro:
            mensagens.append(f"**{erro.o_que}** {erro.por_que} {erro.o_que_fazer}")
    return mensagens


# --------------------------------------------------------------------------- 6.5


def trocar_dois(palavras: list[str], a: int, b: int, d: int, semente: int) -> Quadro:
    """O exercício do capítulo: trocam-se as palavras das posições `a` e `b`, numa `CamadaDeEntrada`
    recém-sorteada, e comparam-se as duas frases como bolsas e lugar a lugar."""
    torch.manual_seed(semente)
    unicas = list(dict.fromkeys(palavras))
    camada = CamadaDeEntrada(len(unicas), d, len(palavras)).eval()
    ids = torch.tensor([[unicas.index(p) for p in palavras]])  # (1, T)
    duas = ids, ids[:, permutacao.troca(len(palavras), a, b)]
    sem = [camada.embeddings(ordem)[0].detach() for ordem in duas]  # 2 de (T, d)
    com = [camada(ordem)[0].detach() for ordem in duas]  # 2 de (T, d)
    parado = [i for i in range(len(palavras)) if i not in (a, b)]
    bolsa_sem, bolsa_com = permutacao.mesma_bolsa(*sem), permutacao.mesma_bolsa(*com)
    mesma_palavra = float((com[0][a] - com[1][b]).norm())
    return Quadro(
        f"O exercício: “{palavras[a]}” e “{palavras[b]}” trocam de lugar",
        {"o que se compara": str, "distância": decimal},
        [
            ["sem posição, as frases como bolsas", bolsa_sem],
            ["com posição, as frases como bolsas", bolsa_com],
            ["com posição, nos lugares que não trocaram", maior(com[0][parado], com[1][parado])],
            [f"com posição, “{palavras[a]}” na posição {a} e na {b}", mesma_palavra],
        ],
        [numero("bolsa_sem_posicao", bolsa_sem), numero("bolsa_com_posicao", bolsa_com)],
    )


def sem_posicao(modelo: Modelo) -> posicoes_no_modelo.SemPosicao:
    """`posicoes_no_modelo.sem_posicao`, com o trecho e a frase da língua que o modelo lê."""
    tok = modelo.tokenizador
    lingua = listas.palavras_para(tok).idioma
    # Janelas que cabem na wpe; o SmolLM2 leria tudo de uma vez, mas a comparação é a mesma.
    cabem = modelo.n_ctx or min(256, modelo.limite or 256)
    janelas = torch.tensor(tok.ids(textos.trecho(lingua))).split(cabem)
    # O mesmo ponto no fim: compara-se a previsão que vem depois dele.
    duas = [torch.tensor(tok.ids(ordem + ".")) for ordem in textos.ordens(lingua)]
    if max(map(len, duas)) > (modelo.limite or math.inf):
        raise ErroDoUsuario(
            f"As frases da seção 6.5 não cabem em {modelo.nome}.",
            f"Elas têm até {max(map(len, duas))} tokens, e ele lê até {modelo.limite}.",
            "Use outro modelo, por exemplo:  --modelo mini",
        )
    f = modelo.ficha
    return posicoes_no_modelo.sem_posicao(
        modelo.completo(), janelas, duas, giro=f.giro, tabela=f.wpe
    )


def exigir_causal(modelo: Modelo | None) -> None:
    """Erros: `ErroDoUsuario` se a seção 6.5 não pode tirar as posições deste modelo e medir a perda."""
    if not modelo:
        return
    f = modelo.ficha
    agora = (
        "Use --modelo smollm2 ou --modelo mini; as outras seções (--secao 6.1 …) não precisam dele."
    )
    if not f.conhecida:
        pontas.exigir_conhecida(modelo)
    if f.codificador or modelo.cabeca == "ausente":
        lido = (
            "lê a frase inteira de uma vez" if f.codificador else "está sem a cabeça de linguagem"
        )
        raise ErroDoUsuario(
            f"A seção 6.5 precisa de um modelo que prevê o próximo token, e {modelo.nome} não prevê.",
            f"Ele {lido}: a perda do próximo token, que a seção mede com e sem posição, não existe nele.",
            agora,
        )
    if not (f.giro or f.wpe):
        raise ErroDoUsuario(
            f"A seção 6.5 não sabe tirar as posições de {modelo.nome}.",
            f"Ele {f.frase_da_posicao}; o laboratório tira uma wpe (com zeros) e um RoPE (parado).",
            agora,
        )


def sem_rope(modelo: Modelo | None) -> str:
    """Por que a seção 6.6 não troca o RoPE deste modelo; "" se troca, ou se não há modelo."""
    if not modelo:
        return ""
    f = modelo.ficha
    if f.giro and not f.codificador and modelo.cabeca != "ausente":
        return ""
    if f.giro:
        return (
            f"O **{modelo.nome}** {f.frase_da_posicao}, mas não prevê o próximo token: a troca, que "
            "se mede na previsão dele, não é feita aqui."
        )
    aqui = "aqui não há RoPE para trocar" if f.conhecida else "se há um RoPE para trocar, não sei"
    return f"O **{modelo.nome}** {f.frase_da_posicao}: {aqui}."


def quadro_sem_posicao(medidos: dict[str, posicoes_no_modelo.SemPosicao]) -> Quadro:
    """O que `sem_posicao` mediu em cada modelo {nome: medida}."""
    linhas = []
    for nome, m in medidos.items():
        mudou = (m.mudanca.perda_antes, m.mudanca.perda_depois, m.mudanca.variacao_total)
        linhas.append([nome, m.como, *mudou, m.ordens_com, m.ordens_sem])
    porcentos = ("previsão que muda", "duas ordens, com", "duas ordens, sem")
    colunas = {"modelo": str, "como": str, "perda com": decimal, "perda sem": decimal}
    colunas |= dict.fromkeys(porcentos, porcento)
    return Quadro("Tirar as posições de um modelo treinado", colunas, linhas)


def quadro_dos_esquemas() -> Quadro:
    """Os seis esquemas, com os parâmetros contados nas medidas do GPT-2 pequeno."""
    colunas = {"esquema": str, "onde entra": str, "parâmetros": inteiro}
    colunas |= {"definido até": str, "fonte": str}
    titulo = "Seis jeitos de dar posição (medidas do GPT-2: d 768, 12 cabeças, 1024 posições)"
    return Quadro(titulo, colunas, vieses.esquemas(768, 12, 1024))
