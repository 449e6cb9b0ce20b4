"""Quem extrapola: treinar curto, ler longo (o que `lab/06_extrapolacao.py` mostra).

Um modelo de caracteres por esquema e por semente, treinado com 128 posições e avaliado com até
1024, sempre sobre os mesmos caracteres. Os pesos moram em data/extrapolacao, um arquivo por
modelo, em 8 bits por número (uma escala por linha): o que se avalia é sempre o que está no arquivo.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nucleo.base import arquivos, caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.contas.escalonamento import (
    Escalonamento,
    linear,
    llama3,
    ntk,
    ntk_dinamico,
    sem_escala,
    yarn,
)
from nucleo.treino.esquemas import ESQUEMAS, Medidas, ModeloDeEsquema

PASTA = caminhos.DADOS / "extrapolacao"
MEDIDAS = Medidas()
COMPRIMENTOS = (128, 192, 256, 512, 1024)
SEMENTES = (1, 2, 3)
# Os romances do treino; a validação é um conto nosso, à maneira deles, que modelo nenhum viu.
OBRAS = ("domCasmurro", "memoriasBras", "quincas")
VALIDACAO = caminhos.DADOS / "textos" / "relogio.txt"
CARACTERES = 24 * 1024  # quantos caracteres da validação se avaliam, os mesmos em todo comprimento
PASSOS, LOTE = 3600, 8
TAXA, MUON = 3e-3, 0.02  # a do AdamW (tabelas, normas, vieses) e a do Muon (matrizes dos blocos)


# --------------------------------------------------------------------------- pesos em 8 bits


def comprimir(pesos: dict[str, Tensor]) -> dict[str, Tensor]:
    """float32 -> int8 com uma escala float32 por linha (por tensor, nos vetores)."""
    saida = {}
    for nome, w in pesos.items():
        maior = w.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12)  # (..., n) -> (..., 1)
        saida[nome] = (w / maior * 127).round().to(torch.int8)
        saida[nome + ".escala"] = (maior / 127).contiguous()
    return saida


def descomprimir(guardados: dict[str, Tensor]) -> dict[str, Tensor]:
    """O caminho de volta: int8 · escala -> float32."""
    return {
        nome: w.float() * guardados[nome + ".escala"]
        for nome, w in guardados.items()
        if not nome.endswith(".escala")
    }


def arquivo(esquema: str, semente: int, pasta: Path = PASTA) -> Path:
    """Onde mora o modelo de um esquema e de uma semente."""
    return pasta / f"{esquema.lower()}_{semente}.safetensors"


def guardar(modelo: ModeloDeEsquema, semente: int, pasta: Path = PASTA) -> Path:
    """Grava o modelo, inteiro ou nada, e devolve o caminho."""
    from safetensors.torch import save_file

    destino = arquivo(modelo.esquema, semente, pasta)
    # A lm_head é a própria tabela de entrada: guarda-se uma vez.
    pesos = {n: p.detach() for n, p in modelo.named_parameters()}
    with arquivos.ao_lado(destino) as provisorio:
        save_file(comprimir(pesos), provisorio)
    return destino


def abrir(esquema: str, semente: int, pasta: Path = PASTA) -> ModeloDeEsquema:
    """O modelo do arquivo (um dos `presentes`), em float32 e `eval()`."""
    from safetensors.torch import load_file

    modelo = ModeloDeEsquema(esquema, MEDIDAS, semente)
    pesos = descomprimir(load_file(arquivo(esquema, semente, pasta)))
    pesos["lm_head.weight"] = pesos["transformer.entrada.tabela.weight"]  # guardada uma vez só
    modelo.load_state_dict(pesos)
    return modelo.eval()


# --------------------------------------------------------------------------- texto e treino


def ficha(pasta: Path = PASTA) -> dict:
    """O que se anotou ao treinar: letras, obras, receita e a perda do 5-grama.

    Levanta:
        ErroDoUsuario: ainda não se treinou nada nesta pasta.
    """
    try:
        return json.loads((pasta / "ficha.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ErroDoUsuario(
            "Os modelos da extrapolação não estão aqui.",
            "Falta data/extrapolacao/ficha.json, que vem no repositório.",
            "Atualize a cópia com  git pull  ou treine-os:  python lab/06_extrapolacao.py "
            "--corpus PASTA --treinar",
        ) from None


def validacao(letras: str) -> Tensor:
    """Os caracteres avaliados, como ids: (CARACTERES + 1,) int64."""
    from nucleo.treino.treinador import Alfabeto

    texto = VALIDACAO.read_text(encoding="utf-8")
    ids = torch.from_numpy(Alfabeto(letras).codificar(texto).astype(np.int64))
    return ids[: CARACTERES + 1]


def quais(pedidos: list[str]) -> list[str]:
    """Os esquemas pedidos (sem distinguir maiúsculas), ou todos, se a lista veio vazia.

    Levanta:
        ErroDoUsuario: nome que não é de esquema.
    """
    por_nome = {esquema.lower(): esquema for esquema in ESQUEMAS}
    for pedido in pedidos:
        if pedido.lower() not in por_nome:
            raise ErroDoUsuario(
                f"Não conheço o esquema {pedido!r}.",
                "Treina-se um modelo por esquema de posição.",
                f"Escolha entre: {', '.join(ESQUEMAS)}.",
            )
    return [por_nome[pedido.lower()] for pedido in pedidos] or list(ESQUEMAS)


def preparar(pasta_do_corpus: str | None, pasta: Path = PASTA) -> np.ndarray:
    """Lê os romances, anota a ficha (com a perda do 5-grama) e devolve a fita de treino.

    Levanta:
        ErroDoUsuario: a pasta não é o corpus, ou faltam nela os romances de OBRAS.
    """
    from nucleo.treino.ngramas import KneserNey
    from nucleo.treino.treinador import alfabeto, ler_corpus

    if not pasta_do_corpus:
        raise ErroDoUsuario(
            "Para treinar é preciso o texto, e não veio --corpus.",
            "O corpus não mora no repositório: são os romances de Machado, em .txt.",
            "Passe a pasta:  --corpus PASTA   (data/mini/LEIAME.md diz onde achar o nosso)",
        )
    obras = {obra.nome.split("/")[-1]: obra.texto for obra in ler_corpus(pasta_do_corpus)}
    if falta := [nome for nome in OBRAS if nome not in obras]:
        raise ErroDoUsuario(
            f"Faltam romances no corpus: {', '.join(falta)}.",
            "Os modelos se treinam em três romances de Machado.",
            "Passe em --corpus a pasta que data/mini/LEIAME.md diz onde achar.",
        )
    texto = "\n".join(obras[nome] for nome in OBRAS)
    letras = alfabeto(texto, MEDIDAS.vocabulario)
    fita = letras.codificar(texto)
    pasta.mkdir(parents=True, exist_ok=True)
    avaliada = validacao(letras.letras).numpy()  # (CARACTERES + 1,)
    contagem = KneserNey(fita, MEDIDAS.vocabulario, 5)
    # Os mesmos caracteres que os modelos preveem, nas mesmas janelas; e, mais fácil, sem janelas.
    nas_janelas = {str(L): contagem.perda_media(avaliada[1:], L) for L in COMPRIMENTOS}
    anotado = {
        "letras": letras.letras,
        "obras": list(OBRAS),
        "validacao": VALIDACAO.stem,
        "caracteres_de_treino": len(fita),
        "caracteres_avaliados": len(avaliada) - 1,
        "passos": PASSOS,
        "lote": LOTE,
        "taxa": TAXA,
        "muon": MUON,
        "perda_5_grama": nas_janelas | {"corrido": contagem.perda_media(avaliada)},
    }
    gravar_ficha(anotado, pasta)
    return fita


def gravar_ficha(dados: dict, pasta: Path = PASTA) -> None:
    """Grava a ficha.json da pasta, inteira ou nada."""
    texto = json.dumps(dados, ensure_ascii=False, indent=1) + "\n"
    arquivos.gravar(pasta / "ficha.json", texto.encode("utf-8"))


def treinar(
    esquema: str,
    semente: int,
    fita: np.ndarray,
    progresso: Callable[[str, int, int], None] = lambda *_: None,
    passos: int = PASSOS,
) -> ModeloDeEsquema:
    """Treina um modelo do zero, sempre em janelas de 128 posições.

    Em float32: sem instruções próprias na CPU, o bfloat16 custa dez vezes mais.
    Mesma semente e mesma fita: os mesmos lotes para todos os esquemas.
    """
    from nucleo.treino.treinador import Receita, Treino

    modelo = ModeloDeEsquema(esquema, MEDIDAS, semente)
    receita = Receita(passos, LOTE, MEDIDAS.treino, TAXA, descida=0.6, semente=semente, muon=MUON)
    for passo in Treino(modelo, fita, receita).passos():
        progresso(f"{esquema}, semente {semente}", passo.passo, passos)
    return modelo.eval()


# --------------------------------------------------------------------------- avaliação


@torch.inference_mode()
def perdas(modelo: ModeloDeEsquema, ids: Tensor, comprimento: int) -> Tensor:
    """A perda de cada caractere, lido em janelas vizinhas: (n · comprimento,), nats.

    Não sobra texto entre as janelas: todo caractere é previsto uma vez, com o contexto que o seu
    lugar na janela lhe dá. O resto que não enche uma janela fica de fora.

    Levanta:
        ErroDePosicao: o esquema não existe nesse comprimento (tabela aprendida).
    """
    n = (len(ids) - 1) // comprimento
    x = ids[: n * comprimento].unflatten(0, (n, comprimento))  # (n·L,) -> (n, L)
    y = ids[1 : n * comprimento + 1].unflatten(0, (n, comprimento))
    por_vez, saida = max(1, 4096 // comprimento), []
    for i in range(0, n, por_vez):
        logits = modelo(x[i : i + por_vez]).flatten(0, 1)  # (b, L) -> (b·L, V)
        saida.append(F.cross_entropy(logits, y[i : i + por_vez].flatten(), reduction="none"))
    return torch.cat(saida)


def esticamentos(comprimento: int) -> dict[str, Escalonamento]:
    """As receitas para ler `comprimento` posições com um RoPE treinado em 128.

    As de fator fixo recebem o fator deste comprimento, o melhor caso delas; "NTK, fator 8" é o
    que acontece quando se escolhe um fator só, e o dinâmico é a resposta a isso.
    """
    d, L = MEDIDAS.d_cabeca, MEDIDAS.treino
    s = comprimento / L
    return {
        "sem esticar": sem_escala(d),
        "linear": linear(d, s),
        "NTK, fator 8": ntk(d, COMPRIMENTOS[-1] / L),
        "NTK dinâmico": ntk_dinamico(d, comprimento, L),
        "YaRN": yarn(d, s, L),
        "Llama 3": llama3(d, s, L, base=10_000.0),
    }


def presentes(sementes: tuple[int, ...], pasta: Path = PASTA) -> list[str]:
    """Os esquemas que têm na pasta os pesos de todas essas sementes."""
    return [e for e in ESQUEMAS if all(arquivo(e, s, pasta).is_file() for s in sementes)]


def avaliar(
    ids: Tensor,
    sementes: tuple[int, ...],
    pasta: Path = PASTA,
    progresso: Callable[[str, int, int], None] = lambda *_: None,
    comprimentos: tuple[int, ...] | None = None,
    esticar: bool = True,
) -> tuple[dict, dict]:
    """Tudo o que a lição mostra, de uma vez, para os esquemas `presentes`.

    Argumentos:
        comprimentos: em que janelas ler (None: todas as de COMPRIMENTOS).
        esticar: se lê também o RoPE com cada receita de `esticamentos`.
    Devolve:
        - {(esquema, comprimento): (sementes, caracteres)}: a perda de cada caractere;
        - o mesmo para o RoPE esticado, com o nome da receita no lugar do esquema.
        Pares em que o esquema não existe ficam de fora.
    Levanta:
        ErroDoUsuario: não há nenhum modelo na pasta.
    """
    esquemas = presentes(sementes, pasta)
    if not esquemas:
        raise ErroDoUsuario(
            "Nenhum esquema tem os pesos das sementes pedidas.",
            f"Procurei, na pasta dos pesos, arquivos como {arquivo('RoPE', sementes[0], pasta).name}.",
            "Treine-os:  python lab/06_extrapolacao.py --corpus PASTA --treinar",
        )
    por_esquema: dict[tuple[str, int], list[Tensor]] = {}
    por_receita: dict[tuple[str, int], list[Tensor]] = {}
    for n, (esquema, semente) in enumerate((e, s) for e in esquemas for s in sementes):
        progresso("avaliando", n, len(esquemas) * len(sementes))
        modelo = abrir(esquema, semente, pasta)
        for L in comprimentos or COMPRIMENTOS:
            if esquema != "aprendido" or MEDIDAS.treino >= L:  # a tabela aprendida tem fim
                medida = perdas(modelo, ids, L)
                por_esquema.setdefault((esquema, L), []).append(medida)
                if esticar and esquema == "RoPE":
                    for nome, esticada in _perdas_esticadas(modelo, ids, L, medida).items():
                        por_receita.setdefault((nome, L), []).append(esticada)
    return tuple(
        {chave: torch.stack(uma_por_semente) for chave, uma_por_semente in medidas.items()}
        for medidas in (por_esquema, por_receita)
    )


def _perdas_esticadas(modelo, ids: Tensor, L: int, sem: Tensor) -> dict[str, Tensor]:
    """{receita: (caracteres,)}; a que não muda frequência nenhuma reaproveita `sem`, a perda sem esticar."""
    treino, saida = sem_escala(MEDIDAS.d_cabeca), {}
    for nome, escala in esticamentos(L).items():
        if escala.fator_de_atencao == 1 and torch.equal(escala.frequencias, treino.frequencias):
            saida[nome] = sem
            continue
        modelo.transformer.escala = escala
        saida[nome] = perdas(modelo, ids, L)
    modelo.transformer.escala = None
    return saida
