"""O veredito sobre uma função escrita por alguém: o que voltou, o que se esperava, e o engano.

Recebe o que a caixa trouxe (valores simples) e compara com a conta certa, feita aqui. O engano
não se adivinha pelo texto do programa: cada engano conhecido é imitado, e o nome é de quem
devolveu o mesmo que a pessoa.
"""

from dataclasses import dataclass

import numpy as np

from nucleo.base.unidades import decimal, inteiro
from nucleo.exercicios import filho
from nucleo.exercicios.tipos import Caso, Mesmo, Tarefa, Vista

# Enganos que valem para qualquer função: (nome, explicação).
GERAIS = {
    "por_fazer": ("ainda não foi escrita", "O corpo da função ainda é o do molde."),
    "sem_arquivo": ("o arquivo não está lá", "Rode --implementar para recriar o molde que falta."),
    "arquivo_estranho": ("o arquivo não é um texto Python comum",
                         "Grande demais, ligação para outro lugar, ou não é UTF-8."),
    "sem_funcao": ("a função sumiu do arquivo", "O nome da função precisa ser o do molde."),
    "sintaxe": ("o Python não conseguiu ler o arquivo", "Um parêntese, dois-pontos ou recuo fora do lugar."),
    "falhou": ("o programa parou com um erro", "A mensagem do Python diz onde."),
    "saiu": ("o programa encerrou o processo em vez de devolver um valor",
             "Sair (sys.exit, os._exit, um sinal) não é responder."),
    "tempo": ("passou do tempo", "Laço sem fim, ou uma conta muito mais longa que o necessário."),
    "limite": ("esbarrou num limite da caixa", "Memória, disco ou processos além do permitido."),
    "fora_do_protocolo": ("o processo escreveu no canal do corretor",
                          "O veredito é calculado fora do processo: escrever nele não muda nada."),
    "mexeu_na_entrada": ("a função mudou um dos argumentos",
                         "Quem chamou continua usando o array: trabalhe numa cópia (x = x.copy())."),
    "sem_return": ("a função não devolveu nada", "Faltou o return (imprimir não é devolver)."),
    "copiou_o_exemplo": ("devolve sempre a resposta do exemplo",
                         "O exemplo é um caso; a função precisa da conta, que vale para todos."),
    "constante": ("devolve sempre a mesma coisa", "A resposta precisa depender dos argumentos."),
    "transposto": ("devolveu o resultado transposto", "Linhas e colunas trocadas: confira as formas do molde."),
    "sinal": ("o resultado está com o sinal trocado", "Os números são os certos, vezes −1."),
    "fator": ("o resultado está multiplicado por um número fixo", "Só o tamanho está errado: falta, ou sobra, um fator."),
    "truncou": ("os números foram cortados para inteiros", "Um array de inteiros não guarda frações: crie-o como float."),
    "nan": ("o resultado tem NaN ou infinito", "Em algum lugar há 0/0, raiz de negativo, ou uma exponencial que estourou."),
    "forma": ("a forma do resultado não é a pedida", "Confira as formas no molde, linha por linha."),
    "tipo": ("o tipo do resultado não é o pedido", "Confira no molde o que a função devolve."),
    "desconhecido": ("não reconheci o engano", "Compare os números acima com uma conta à mão do menor caso."),
}  # fmt: skip


@dataclass(frozen=True)
class Ocorrido:
    """O que aconteceu numa chamada: `valor`, ou o nome do `erro` com mensagem e linha."""

    valor: object = None
    erro: str = ""
    mensagem: str = ""
    linha: int | None = None
    mexeu: tuple[int, ...] = ()


@dataclass(frozen=True)
class Veredito:
    """Passou ou não e, se não, as cinco partes da explicação.

    `engano` é o id do engano reconhecido ("" se passou); `reconhecido` é False quando só se sabe
    que está errado.
    """

    tarefa: Tarefa
    passou: bool
    chamado: str = ""
    voltou: str = ""
    esperado: str = ""
    significa: str = ""
    engano: str = ""
    nome_do_engano: str = ""
    explicacao: str = ""

    @property
    def reconhecido(self) -> bool:
        """False só para "desconhecido": sabe-se que está errado, e não por quê."""
        return self.engano != "desconhecido"


def codificar_caso(caso: Caso) -> list:
    """Os argumentos de um caso como dados JSON, com as vistas entre eles."""
    prontos = []
    for a in caso.args:
        if isinstance(a, Mesmo):
            prontos.append({"t": "mesmo", "v": a.de})
        elif isinstance(a, Vista):
            prontos.append({"t": "vista", "v": a.de, "transposta": a.transposta})
        else:
            prontos.append(filho.codificar(a))
    return prontos


def argumentos(caso: Caso) -> list:
    """Os argumentos de verdade de um caso, novos a cada vez."""
    return filho.montar(codificar_caso(caso))


# --- comparar ------------------------------------------------------------------------------


def _array(x) -> np.ndarray | None:
    """x como array de números ou de booleanos; None se for outra coisa (texto, None, listas tortas)."""
    if x is None or isinstance(x, (str, filho.Estranho)):
        return None
    try:
        a = np.asarray(x)
    except (ValueError, TypeError, OverflowError):
        return None  # lista com linhas de tamanhos diferentes
    return a if a.dtype.kind in "fiub" else None


def igual(valor, certo, tolerancia: float) -> bool:
    """True se `valor` é o que se esperava, em qualquer roupa razoável (lista, float32, 0-d…).

    A tolerância é relativa ao maior número esperado (com piso 1): erros de arredondamento passam,
    enganos não. Tolerância 0 pede o mesmo número. NaN só coincide com NaN, e infinito com infinito.
    """
    if isinstance(certo, tuple):
        return (
            isinstance(valor, (tuple, list))
            and len(valor) == len(certo)
            and all(igual(v, c, tolerancia) for v, c in zip(valor, certo, strict=True))
        )
    v, c = _array(valor), _array(certo)
    if v is None or c is None or v.shape != c.shape:
        return False
    # 1 e 0 servem de verdadeiro e falso; verdadeiro e falso não servem de números.
    if c.dtype.kind == "b" or v.dtype.kind == "b":
        return bool(c.dtype.kind == "b" and (v == c).all())
    v, c = v.astype(float), c.astype(float)
    finitos = np.isfinite(c)
    if not np.array_equal(np.isfinite(v), finitos):
        return False
    folga = tolerancia * max(1.0, float(np.abs(c[finitos]).max(initial=0)))
    return bool((np.abs(v[finitos] - c[finitos]) <= folga).all())


def _parecido(valor, imitado, tolerancia: float) -> bool:
    # Para reconhecer, e não para aprovar: o programa imitado pode somar noutra ordem.
    return igual(valor, imitado, max(tolerancia, 1e-9))


# --- julgar --------------------------------------------------------------------------------


def julgar(tarefa: Tarefa, casos: list[Caso], ocorridos: list[Ocorrido]) -> Veredito:
    """O veredito de uma tarefa, dado o que aconteceu em cada caso (na mesma ordem).

    Faltar ocorrido é falhar: quem sai do processo no meio não passa.
    """
    certos = [tarefa.esperado(*argumentos(c)) for c in casos]
    bons = [
        not o.erro and igual(o.valor, certo, tarefa.tolerancia)
        for o, certo in zip(ocorridos, certos, strict=False)
    ]
    if len(ocorridos) < len(casos):
        # Quem parou no meio não respondeu o resto, e o motivo é o da parada.
        parou = ocorridos[-1] if ocorridos and ocorridos[-1].erro else Ocorrido(erro="saiu")
        bons += [False] * (len(casos) - len(ocorridos))
        ocorridos = [*ocorridos, *[parou] * (len(casos) - len(ocorridos))]
    mexeram = [i for i, o in enumerate(ocorridos) if o.mexeu]
    if all(bons) and not mexeram:
        return Veredito(tarefa, True)
    pior = bons.index(False) if not all(bons) else mexeram[0]
    engano = (
        _geral(tarefa, ocorridos, certos, bons, mexeram)
        or _conhecido(tarefa, casos, ocorridos, bons)
        or _pela_cara(tarefa, ocorridos, certos, bons)
    )
    nomes = {e.id: (e.nome, e.explicacao) for e in tarefa.enganos} | GERAIS
    nome, explicacao = nomes[engano]
    intactos = ""
    if engano == "mexeu_na_entrada":
        pior, intactos = mexeram[0], " e os argumentos intactos"
        nome = f"a função mudou o argumento {ocorridos[pior].mexeu[0] + 1}"
    return Veredito(
        tarefa, False,
        chamado=f"{tarefa.funcao}({', '.join(_visiveis(casos[pior]))})",
        voltou=_o_que_voltou(ocorridos[pior], engano),
        esperado=mostrar(certos[pior]) + intactos,
        significa=tarefa.significado,
        engano=engano, nome_do_engano=nome, explicacao=explicacao,
    )  # fmt: skip


def nao_rodou(
    tarefa: Tarefa, engano: str, mensagem: str = "", linha: int | None = None
) -> Veredito:
    """O veredito de quem nem chegou a ser chamado: sem arquivo, sem função, erro de sintaxe…"""
    nome, explicacao = GERAIS[engano]
    onde = f", linha {linha}" if linha else ""
    return Veredito(
        tarefa, False,
        chamado=f"{tarefa.arquivo}{onde}",
        voltou=mensagem or "nada",
        esperado=f"um arquivo com a função {tarefa.funcao}",
        significa=tarefa.significado,
        engano=engano, nome_do_engano=nome, explicacao=explicacao,
    )  # fmt: skip


# O que a caixa ou o Python disseram que houve -> o engano. Nesta ordem: o primeiro que aparecer.
_FINS = {
    "NotImplementedError": "por_fazer",
    "tempo": "tempo",
    "saiu": "saiu",
    "SystemExit": "saiu",
    "KeyboardInterrupt": "saiu",
    "fora_do_protocolo": "fora_do_protocolo",
    "limite": "limite",
    "MemoryError": "limite",
    # As proibições da caixa chegam assim; o engano é querer sair dela.
    "PermissionError": "limite",
    "BlockingIOError": "limite",
    "OSError": "limite",
}


def _geral(tarefa, ocorridos, certos, bons, mexeram) -> str | None:
    """O engano que vale para qualquer função, ou None se é preciso olhar os números."""
    erros = {o.erro for o in ocorridos if o.erro}
    for erro, engano in _FINS.items():
        if erro in erros:
            return engano
    if mexeram:
        return "mexeu_na_entrada"
    if erros:
        # Se algum caso errado devolveu um valor, o engano ainda pode ser reconhecido por ele.
        so_erros = all(o.erro for o, b in zip(ocorridos, bons, strict=True) if not b)
        return "falhou" if so_erros else None
    valores = [o.valor for o in ocorridos]
    if all(v is None for v in valores):
        return "sem_return"
    varia = any(not _parecido(c, certos[0], tarefa.tolerancia) for c in certos)
    if varia and _sempre_o_mesmo(valores):
        return "copiou_o_exemplo" if bons[0] else "constante"
    return None


def _sempre_o_mesmo(valores: list) -> bool:
    primeiro = tuple(valores[0]) if isinstance(valores[0], list) else valores[0]
    if isinstance(primeiro, str):
        return all(isinstance(v, str) and v == primeiro for v in valores)
    return all(_parecido(v, primeiro, 0) for v in valores)


def _conhecido(tarefa, casos, ocorridos, bons) -> str | None:
    for engano in tarefa.enganos:
        quais = [
            i
            for i, c in enumerate(casos)
            if (engano.na_borda or not c.borda) and not ocorridos[i].erro
        ]
        # Só vale se explica pelo menos um erro: concordar onde está certo não prova nada.
        if not any(not bons[i] for i in quais):
            continue
        for imita in engano.imita:
            if all(_imitou(imita, casos[i], ocorridos[i].valor, tarefa.tolerancia) for i in quais):
                return engano.id
    return None


def _imitou(imita, caso: Caso, valor, tolerancia: float) -> bool:
    try:
        with np.errstate(all="ignore"):
            return _parecido(valor, imita(*argumentos(caso)), tolerancia)
    except (IndexError, ValueError, ZeroDivisionError):
        return False


def _pela_cara(tarefa, ocorridos, certos, bons) -> str:
    """O engano que se vê no resultado, sem saber de onde veio: forma, sinal, fator, NaN…"""
    ruins = [
        (o.valor, c)
        for o, c, b in zip(ocorridos, certos, bons, strict=True)
        if not b and not o.erro
    ]
    for valor, certo in ruins:
        if valor is None:
            return "sem_return"
        v, c = _array(valor), _array(certo)
        if v is None or c is None or (v.dtype.kind == "b") != (c.dtype.kind == "b"):
            return "tipo"
        if v.shape != c.shape:
            virado = v.ndim == 2 and v.T.shape == c.shape
            return "transposto" if virado and _parecido(v.T, c, tarefa.tolerancia) else "forma"
        if not np.isfinite(v.astype(float)).all():
            return "nan"
    return _pelos_numeros(tarefa, ruins)


def _pelos_numeros(tarefa, ruins) -> str:
    if not ruins or np.asarray(ruins[0][1]).dtype.kind == "b":
        return "desconhecido"
    pares = [(np.asarray(v, float), np.asarray(c, float)) for v, c in ruins]

    def todos(f):
        return all(_parecido(v, f(c), tarefa.tolerancia) for v, c in pares)

    if all(c.ndim == 2 and c.shape[0] == c.shape[1] for _, c in pares) and todos(np.transpose):
        return "transposto"
    if todos(lambda c: -c):
        return "sinal"
    if todos(np.trunc) or todos(np.round):
        return "truncou"
    fatores = [float((v * c).sum() / (c * c).sum()) for v, c in pares if (c * c).sum() > 0]
    # Dois casos com o mesmo fator: um só sempre se explica por algum fator, se for um número.
    repete = len(fatores) >= 2 and max(fatores) - min(fatores) < 1e-6 and abs(fatores[0]) > 1e-9
    return "fator" if repete and todos(lambda c: c * fatores[0]) else "desconhecido"


# --- mostrar -------------------------------------------------------------------------------


def mostrar(x, largura: int = 150) -> str:
    """Um valor em uma linha, como se lê em português, cortado se for longo."""
    if isinstance(x, filho.Estranho):
        return f"um valor do tipo {x.tipo}"
    if isinstance(x, tuple):
        texto = "(" + ", ".join(mostrar(v, largura // 2) for v in x) + ")"
    elif isinstance(x, (np.ndarray, list)):
        a = _array(x)
        if a is None:
            partes = [mostrar(v, largura // 2) for v in x[:8]]
            texto = "[" + ", ".join(partes) + (", …]" if len(x) > 8 else "]")
        elif a.size > 24:
            # O começo basta para reconhecer; a forma diz o resto.
            texto = f"array {a.shape} que começa por {_lista(a.reshape(-1)[:4])[:-1]}, …]"
        else:
            texto = _lista(a)
    elif isinstance(x, (bool, np.bool_)):
        texto = str(bool(x))
    elif isinstance(x, (float, np.floating)):
        texto = _numero(x)
    elif isinstance(x, (int, np.integer)):
        texto = inteiro(x) if abs(x) > 9999 else str(x)
    else:
        texto = _limpo(repr(x))
    return texto if len(texto) <= largura else texto[: largura - 1] + "…"


def _lista(a: np.ndarray) -> str:
    if a.ndim == 0:
        return mostrar(a.item())
    # Ponto e vírgula: com vírgula decimal, a vírgula já está ocupada.
    separador = "; " if a.dtype.kind == "f" else ", "
    return "[" + separador.join(_lista(v) for v in a) + "]"


def _numero(x) -> str:
    x = float(x)
    if not np.isfinite(x):
        return {"nan": "NaN", "inf": "infinito", "-inf": "−infinito"}[str(x)]
    if x == int(x) and abs(x) < 1e6:
        return decimal(x, 0)
    return decimal(x, 4) if 1e-3 <= abs(x) < 1e6 else f"{x:.3g}".replace(".", ",")


def _visiveis(caso: Caso) -> list[str]:
    vistas = {False: "uma vista do argumento {}", True: "o argumento {} transposto"}
    mostrados = []
    for a in caso.args:
        if isinstance(a, Mesmo):
            mostrados.append(f"o próprio argumento {a.de + 1}")
        elif isinstance(a, Vista):
            mostrados.append(vistas[a.transposta].format(a.de + 1))
        else:
            mostrados.append(mostrar(a))
    return mostrados


def _o_que_voltou(o: Ocorrido, engano: str) -> str:
    if not o.erro:
        mudado = (
            f", com o argumento {o.mexeu[0] + 1} mudado" if engano == "mexeu_na_entrada" else ""
        )
        return mostrar(o.valor) + mudado if o.valor is not None or mudado else "None (nada)"
    frases = {"tempo": "nada: passou do tempo", "saiu": "nada: o processo acabou antes",
              "limite": "nada: a caixa o parou", "NotImplementedError": "nada: ainda é o molde"}  # fmt: skip
    if o.erro in frases:
        return frases[o.erro] + (f" ({o.mensagem})" if o.mensagem and o.erro == "limite" else "")
    onde = f", linha {o.linha}" if o.linha else ""
    return f"{o.erro}: {o.mensagem}{onde}"


def ler_ocorrido(dado: dict) -> Ocorrido:
    """Um acontecimento que veio do processo, lido com desconfiança. `ValueError` se não presta."""
    if "erro" in dado:
        linha = dado.get("linha")
        return Ocorrido(
            erro=_limpo(dado["erro"])[:80],
            mensagem=_limpo(dado.get("mensagem", ""))[:400],
            linha=linha if isinstance(linha, int) else None,
        )
    mexeu = dado.get("mexeu")
    if not isinstance(mexeu, list) or not all(isinstance(n, int) for n in mexeu):
        raise ValueError("acontecimento fora do formato")
    return Ocorrido(valor=filho.decodificar(dado["valor"]), mexeu=tuple(mexeu))


def _limpo(texto) -> str:
    # Mensagens vêm de quem escreveu a resposta: nada de comandos para o terminal dentro delas.
    return "".join(c if c.isprintable() else " " for c in str(texto)).strip()


def da_carga(tarefa: Tarefa, carga: dict) -> Veredito:
    """O veredito de um arquivo que nem carregou."""
    erro = _limpo(carga.get("erro", ""))[:80]
    linha = carga.get("linha") if isinstance(carga.get("linha"), int) else None
    mensagem = _limpo(carga.get("mensagem", ""))[:400]
    if erro == "sem_funcao":
        achadas = f"o arquivo tem {mensagem}" if mensagem else "o arquivo não define função nenhuma"
        return nao_rodou(tarefa, "sem_funcao", achadas)
    de_sintaxe = erro in ("SyntaxError", "IndentationError", "TabError")
    engano = "sintaxe" if de_sintaxe else _FINS.get(erro, "falhou")
    return nao_rodou(tarefa, engano, f"{erro}: {mensagem}".strip(": "), linha)
