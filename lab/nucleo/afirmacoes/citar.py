"""O que os blocos cog das apostilas usam: números medidos, já em português, e tabelas lado a lado.

Um bloco lê data/referencia e os dados publicados, e devolve Markdown; nada aqui mede nem digita
número. Quem refaz as apostilas é `make apostilas` (ou `python lab/manutencao/referencia.py --so-apostilas`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence

from nucleo.afirmacoes import guardados
from nucleo.base import caminhos
from nucleo.base.leitura import minutos_de_leitura
from nucleo.base.unidades import decimal
from nucleo.modelos import gpt2_medido

PASTA = caminhos.RAIZ / "apostilas"
PRINCIPAL = guardados.PRINCIPAL
NOMES = {"smollm2": "SmolLM2", "gpt2": "GPT-2, medido", "mini": "mini"}


# --- números -----------------------------------------------------------------------------


# O resultado de um id, e as linhas de uma tabela: as apostilas os pedem daqui.
valor, tabela = guardados.valor, guardados.tabela


def linha(licao: str, id_: str, primeira, modelo: str = PRINCIPAL) -> dict:
    """A linha cuja primeira coluna vale `primeira`. Erros: KeyError se não houver exatamente uma."""
    achadas = [x for x in tabela(licao, id_, modelo) if next(iter(x.values())) == primeira]
    if len(achadas) != 1:
        raise KeyError(f"{licao}, {id_}: {len(achadas)} linhas começam por {primeira!r}")
    return achadas[0]


def conferidos(licao: str, prefixo: str, modelo: str = PRINCIPAL) -> list[tuple[str, float]]:
    """[(o que se conferiu, diferença medida)] das conferências cujo id é `prefixo`.N."""
    return [
        (r["o_que"], r["valor"])
        for r in guardados.ler(licao, modelo)["resultados"]
        if r["id"].rpartition(".")[0] == prefixo
    ]


def largura(licao: str, modelo: str = PRINCIPAL) -> int:
    """d: quantos números tem um vetor do modelo com que a lição foi guardada."""
    return guardados.ler(licao, modelo)["modelo"]["d"]


def medidos(licao: str) -> list[str]:
    """Os modelos com que a lição foi guardada, na ordem das colunas."""
    return [m for m in NOMES if guardados.arquivo(licao, m).is_file()]


def gpt2_publicado() -> dict:
    """O que se publicou da wte do GPT-2: pares, par_ao_acaso, analogia (data/gpt2_medido)."""
    return gpt2_medido.fatos()["wte_publicado"]


def publicados(chave: str) -> dict:
    """Uma tabela de artigo em data/extrapolacao/publicados.json: fonte e linhas."""
    arquivo = caminhos.DADOS / "extrapolacao" / "publicados.json"
    return json.loads(arquivo.read_text(encoding="utf-8"))[chave]


# --- Markdown ----------------------------------------------------------------------------


def grade(colunas: dict[str, Callable], linhas: Iterable[Sequence]) -> str:
    """Uma tabela em Markdown: `colunas` é {nome: formato}; None vira “—”.

    Colunas de números se alinham à direita.
    """
    linhas = [list(x) for x in linhas]
    numerica = [
        all(isinstance(x[i], (int, float, type(None))) for x in linhas) for i in range(len(colunas))
    ]
    partes = [_celulas(colunas), _celulas("---:" if n else "---" for n in numerica)]
    for valores in linhas:
        pares = zip(valores, colunas.values(), strict=True)
        partes.append(_celulas("—" if v is None else f(v) for v, f in pares))
    return "\n".join(partes)


def _celulas(textos: Iterable[str]) -> str:
    # Barra dentro de célula fecharia a coluna; quebra de linha, a linha.
    return "| " + " | ".join(str(t).replace("|", "\\|").replace("\n", " ") for t in textos) + " |"


def lado_a_lado(
    licao: str,
    ids: dict[str, str],
    formato: Callable = decimal,
    publicado: dict[str, float] | None = None,
    fonte: str = "GPT-2, publicado",
) -> str:
    """Uma linha por resultado, uma coluna por modelo, e a coluna do publicado.

    Um modelo ganha coluna se mediu pelo menos metade das linhas.

    Argumentos:
        ids: {rótulo da linha: id do resultado}.
        publicado: {rótulo: valor}; sem ele, a coluna não aparece.
        fonte: o nome da coluna do publicado, que diz de onde ele vem.
    """
    colunas: dict[str, list] = {}
    for modelo in medidos(licao):
        resultados = guardados.ler(licao, modelo)["resultados"]
        # Uma lição também mede outros (o mini, onde não há wpe): número de um não vai na coluna de outro.
        tem = {r["id"]: r["valor"] for r in resultados if r["modelo"] == modelo}
        # Um modelo de outra língua mede outras palavras: uma coluna quase vazia não ajuda ninguém.
        if 2 * sum(i in tem for i in ids.values()) >= len(ids):
            colunas[NOMES[modelo]] = [tem.get(i) for i in ids.values()]
    if publicado:
        colunas[fonte] = [publicado.get(rotulo) for rotulo in ids]
    formatos = {"": str} | dict.fromkeys(colunas, formato)
    return grade(formatos, zip(ids, *colunas.values(), strict=True))


def enumerar(itens: Sequence[str]) -> str:
    """['a', 'b', 'c'] -> 'a, b e c'."""
    return itens[0] if len(itens) == 1 else ", ".join(itens[:-1]) + " e " + itens[-1]


def com_sinal(x: float, casas: int = 2) -> str:
    """Um decimal com o sinal sempre à vista: 0.5 -> '+0,50'."""
    return ("+" if x > 0 else "") + decimal(x, casas)


def procedencia() -> str:
    """A tabela do índice: com que cada lição foi medida, e a impressão digital de cada arquivo.

    Muda um valor guardado, muda a impressão: o índice fica atrasado, e o teste acusa, mesmo que o
    valor não apareça em nenhuma apostila.
    """
    linhas = []
    for modelo in NOMES:
        for arquivo in sorted((guardados.PASTA / modelo).glob("*.json")):
            dados = arquivo.read_bytes().replace(b"\r\n", b"\n")
            versoes = json.loads(dados)["versoes"]
            usadas = (
                f"torch {versoes['torch'].split('+')[0]}, transformers {versoes['transformers']}"
            )
            digital = hashlib.sha256(dados).hexdigest()[:12]
            linhas.append([NOMES[modelo], arquivo.stem, usadas, f"`{digital}`"])
    colunas = ("modelo", "lição", "medido com", "impressão digital")
    return grade(dict.fromkeys(colunas, str), linhas)


# --- a página ----------------------------------------------------------------------------


def tempo_de_leitura(nome: str) -> str:
    """A frase do topo de uma apostila. Lê o próprio arquivo, e a frase não entra na conta."""
    texto = (PASTA / nome).read_text(encoding="utf-8")
    sem_a_frase = re.sub(r"^Leitura: .*$", "", texto, flags=re.M)
    minutos = minutos_de_leitura(sem_a_frase)
    return f"Leitura: {minutos} minuto{'s' if minutos > 1 else ''}."
