"""Quantos bytes descem do hub: a tabela dos quatro tamanhos e uma primeira execução.

O hub é o de tests/servidor_hub.py, em loopback, com os quatro arquivos inteiros na forma (e zeros no
conteúdo): os bytes são contados por quem os envia.
"""

import json
import math
import tempfile
import time
from pathlib import Path

import gpt2_plantado as plantado
from comum import RAIZ, Assunto, Medida, executar
from nucleo.modelos import fontes
from nucleo.modelos import hub as hub_do_laboratorio
from nucleo.modelos.tamanhos import TAMANHOS
from servidor_hub import Esparso, ServidorHub

# O tokenizador e os blocos não entram aqui: só se contam bytes.
SEM_REDE = {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1"}


def publicar(servidor: ServidorHub) -> dict[str, int]:
    """Põe os quatro GPT-2 no servidor; devolve {nome: bytes do arquivo}."""
    tamanhos = {}
    for nome, t in TAMANHOS.items():
        formas = plantado.formas_gpt2(t.n_layer, t.n_embd)
        bruto, _, total = plantado.cabecalho(formas)
        servidor.publicar(fontes.GPT2[nome], "model.safetensors", Esparso(total, {0: bruto}))
        # O small desce inteiro, com a configuração; dos outros a lição só pede as tabelas.
        config = json.dumps(plantado.config_gpt2(t.n_layer, t.n_embd, t.n_head))
        servidor.publicar(fontes.GPT2[nome], "config.json", config.encode())
        tamanhos[nome] = total
    return tamanhos


def totais_nos_cabecalhos() -> dict[str, int]:
    """{nome: parâmetros} dos quatro arquivos do hub, lendo só os cabeçalhos.

    As máscaras (h.0.attn.bias) estão no arquivo e não são pesos: ficam de fora.
    """
    totais = {}
    for nome, repo in fontes.GPT2.items():
        cabecalho, _ = hub_do_laboratorio.cabecalho_remoto(repo)
        pesos = (t for n, t in cabecalho.items() if not n.endswith(".attn.bias"))
        totais[nome] = sum(math.prod(t.forma) for t in pesos)
    return totais


# O huggingface_hub lê o endereço do hub ao ser importado: noutro processo, como quem usa.
_TOTAIS = """
import sys; sys.path.insert(0, "bench")
import comum, json, hub; print(json.dumps(hub.totais_nos_cabecalhos()))
"""


def tabela_dos_quatro(servidor: ServidorHub, casa: Path) -> tuple[float, int]:
    """(segundos, bytes) da seção 8 da lição mais a conferência dos quatro totais nos cabeçalhos do hub.

    Erros: `AssertionError` se um total não for o publicado.
    """
    servidor.esquecer()
    ambiente = SEM_REDE | {
        "HF_ENDPOINT": servidor.url,
        "HF_HOME": str(casa),
        "LAB_CACHE": str(casa),
    }
    inicio = time.perf_counter()
    licao = [str(RAIZ / "lab" / "02_embeddings.py"), "--modelo", "mini", "--secao", "8"]
    executar([*licao, "--saida", str(casa / "saida")], ambiente)
    vistos = json.loads(executar(["-c", _TOTAIS], ambiente).saida.splitlines()[-1])
    publicados = {nome: t.publicado for nome, t in TAMANHOS.items()}
    assert vistos == publicados, (vistos, publicados)
    return time.perf_counter() - inicio, servidor.bytes_enviados()


def primeira_execucao(servidor: ServidorHub, nome: str, casa: Path) -> tuple[float, int]:
    """(segundos, bytes) da primeira vez que alguém pede este modelo: a seção 3 da lição."""
    servidor.esquecer()
    ambiente = SEM_REDE | {
        "HF_ENDPOINT": servidor.url,
        "HF_HOME": str(casa),
        "LAB_CACHE": str(casa),
    }
    licao = [str(RAIZ / "lab" / "02_embeddings.py"), "--modelo", nome, "--secao", "3"]
    feita = executar([*licao, "--sem-graficos", "--saida", str(casa / "saida")], ambiente)
    return feita.segundos, servidor.bytes_enviados()


def medir(rapido: bool = False) -> Assunto:
    """Bytes e segundos, contra o tamanho dos arquivos."""
    servidor = ServidorHub()
    a = Assunto("hub", "Bytes que descem do hub", "tabela dos quatro tamanhos")
    try:
        inteiros = publicar(servidor)
        with tempfile.TemporaryDirectory() as casa:
            segundos, n = tabela_dos_quatro(servidor, Path(casa))
        a.medidas.append(Medida(a.base, [segundos]))
        a.extras["bytes.tabela"] = n
        a.criterio("tabela dos quatro tamanhos: MB lidos do hub", n / 1e6, 1.0, unidade="MB")
        a.notas.append(
            f"a tabela leu {n / 1e3:.0f} kB; os quatro arquivos somam {sum(inteiros.values()) / 1e9:.1f} GB"
        )
        for nome in ["gpt2", "gpt2-medium"] if rapido else list(inteiros):
            with tempfile.TemporaryDirectory() as casa:
                segundos, n = primeira_execucao(servidor, nome, Path(casa))
            a.medidas.append(Medida(f"primeira execução: {nome}", [segundos]))
            a.extras[f"bytes.{nome}"] = n
            parte = 100 * n / inteiros[nome]
            a.notas.append(
                f"{nome}: {n / 1e6:.1f} MB de {inteiros[nome] / 1e6:.1f} MB ({parte:.0f} %)"
            )
    finally:
        servidor.fechar()
    return a
