"""O custo da lição 02 quando o modelo cresce: segundos, bytes lidos do arquivo e pico de memória.

Os arquivos são os quatro GPT-2 inteiros na forma e esparsos no disco (bench/checkpoint.py): a lição
tem os 6,4 GB do XL ao alcance, e só wte e wpe podem contar. Os bytes lidos são as páginas do arquivo
que estão na memória depois da lição, tendo saído dela antes: contam mmap e leitura comum, e também o
que o sistema leu adiante por conta própria.
"""

import ctypes
import mmap
import os
import sys
import tempfile

import checkpoint
from comum import RAIZ, Assunto, Medida, executar
from nucleo.modelos import tensores
from nucleo.modelos.tamanhos import TAMANHOS

FOLGA = 1e6  # bytes: o cabeçalho e as páginas inteiras das pontas; um bloco do small tem 28 MB


def esquecer(arquivo) -> None:
    """Tira o arquivo do cache do sistema (só Linux): a próxima leitura vem do disco."""
    with open(arquivo, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def na_memoria(arquivo) -> int:
    """Quantos bytes do arquivo estão no cache do sistema agora, em páginas inteiras (mincore)."""
    tamanho, pagina = os.path.getsize(arquivo), mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    with open(arquivo, "rb") as f:
        mapa = mmap.mmap(f.fileno(), tamanho, flags=mmap.MAP_PRIVATE)
    vetor = (ctypes.c_ubyte * (-(-tamanho // pagina)))()
    endereco = (ctypes.c_char * tamanho).from_buffer(mapa)
    erro = libc.mincore(ctypes.byref(endereco), ctypes.c_size_t(tamanho), vetor)
    del endereco  # o mapa só fecha sem ninguém apontando para ele
    mapa.close()
    if erro:
        raise OSError(ctypes.get_errno(), "mincore")
    return pagina * sum(x & 1 for x in bytes(vetor))


def bytes_das_tabelas(arquivo) -> int:
    """Os bytes de wte e wpe, pelo cabeçalho do arquivo."""
    todos = tensores.ler_cabecalho(arquivo)
    return sum(todos[n].fim - todos[n].inicio for n in ("wte.weight", "wpe.weight"))


def medir(rapido: bool = False) -> Assunto:
    """A lição inteira nas quatro formas, alternando."""
    nomes = ["gpt2", "gpt2-xl"] if rapido else list(TAMANHOS)
    execucoes: dict[str, list] = {nome: [] for nome in nomes}
    lidos: dict[str, int] = {}
    prontos = {nome: checkpoint.so_tabelas(nome) for nome in nomes}
    with tempfile.TemporaryDirectory() as saida:
        licao = [str(RAIZ / "lab" / "02_embeddings.py"), "--modelo", "gpt2-xl", "--saida", saida]
        for volta in range(2):  # a razão passa longe do limite: uma execução de cada basta
            for nome, (casa, arquivo) in prontos.items():
                ambiente = {"LAB_CACHE": str(casa), "HF_HOME": str(casa / "hf")}
                if not volta and sys.platform == "linux":
                    esquecer(arquivo)  # a primeira volta, com o disco frio, é a que conta bytes
                feita = executar(licao, ambiente)
                if volta:
                    execucoes[nome].append(feita)
                elif sys.platform == "linux":
                    lidos[nome] = na_memoria(arquivo)
    medidas = [
        Medida(n, [e.segundos for e in x], [e.pico for e in x]) for n, x in execucoes.items()
    ]
    a = Assunto("crescimento", "A lição 02 na forma de cada GPT-2 (só as tabelas)", "gpt2", medidas)
    a.criterio("lição 02: forma do XL / forma do small", a.razao("gpt2-xl", "gpt2"), 2.5)
    for nome, n in lidos.items():
        tabelas = bytes_das_tabelas(prontos[nome][1])
        inteiro = os.path.getsize(prontos[nome][1])
        o_que = f"{nome}: bytes lidos / wte + wpe (e {FOLGA / 1e6:.0f} MB de folga)"
        a.criterio(o_que, n / (tabelas + FOLGA), 1.0)
        a.notas.append(
            f"{nome}: {n / 1e6:.1f} MB lidos; wte + wpe são {tabelas / 1e6:.1f} MB, "
            f"e o arquivo, {inteiro / 1e6:.0f} MB"
        )
        a.extras[f"bytes_lidos.{nome}"] = n
    return a
