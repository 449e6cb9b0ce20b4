"""O lado de dentro da caixa: o programa que carrega a resposta de alguém e a chama.

Roda num processo à parte (`caixa.py` o lança) e só usa a biblioteca padrão e o NumPy. Recebe em
stdin uma linha JSON com o que rodar; devolve em stdout uma linha JSON por acontecimento. Daqui só
saem dados: quem compara, julga e dá o veredito é o processo de fora, que conhece as respostas.
Mexer neste processo (trocar o `numpy.allclose`, escrever na saída, sair com 0) não aprova ninguém.
"""

import base64
import contextlib
import json
import os
import sys

MAIOR_TEXTO = 2_000
MAIOR_LISTA = 20_000
MAIOR_ARRAY = 4_000_000  # bytes
TIPOS = {f"{k}{n}" for k in "iu" for n in (1, 2, 4, 8)} | {"f2", "f4", "f8", "b1"}


# --- valores em dados simples, e de volta ------------------------------------------------------


def codificar(x, fundo=0):
    """Um valor do Python ou do NumPy como dado JSON; o que não se conhece vira só o nome do tipo."""
    import numpy as np

    if x is None or isinstance(x, (bool, str)):
        return x[:MAIOR_TEXTO] if isinstance(x, str) else x
    if type(x) is int:
        return (
            {"t": "int", "v": str(x)[:MAIOR_TEXTO]}
            if abs(x) < 10**300
            else {"t": "outro", "v": "int enorme"}
        )
    if type(x) is float:
        return {"t": "float", "v": x.hex()}
    if type(x).__module__.split(".")[0] == "torch" and hasattr(x, "detach"):
        x = x.detach().cpu().numpy()
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if isinstance(x, np.ndarray):
        tipo = x.dtype.str.lstrip("<>|=")
        if tipo not in TIPOS or x.nbytes > MAIOR_ARRAY:
            return {"t": "outro", "v": f"array de {x.dtype} com forma {x.shape}"}
        x = np.ascontiguousarray(x).reshape(x.shape)
        if x.dtype.byteorder == ">" or (x.dtype.byteorder == "=" and sys.byteorder == "big"):
            x = x.astype(x.dtype.newbyteorder("<"))
        dados = base64.b64encode(x.tobytes()).decode()
        return {"t": "array", "d": tipo, "f": list(x.shape), "v": dados}
    if isinstance(x, (list, tuple)) and len(x) <= MAIOR_LISTA and fundo < 5:
        nome = "lista" if isinstance(x, list) else "tupla"
        return {"t": nome, "v": [codificar(y, fundo + 1) for y in x]}
    return {"t": "outro", "v": type(x).__name__[:80]}


class Estranho:
    """Um valor que não é número, texto, lista nem array: só se sabe o nome do tipo dele."""

    def __init__(self, tipo):
        self.tipo = str(tipo)[:200]


def decodificar(x, fundo=0):
    """O inverso de `codificar`. Não confia em quem escreveu: `ValueError` se algo não bate."""
    import numpy as np

    if x is None or isinstance(x, (bool, str)):
        return x
    if not isinstance(x, dict) or fundo > 8:
        raise ValueError("dado fora do formato")
    tipo, v = x.get("t"), x.get("v")
    if tipo == "int" and isinstance(v, str) and len(v) < 400:
        return int(v)
    if tipo == "float" and isinstance(v, str) and len(v) < 60:
        return float.fromhex(v)
    if tipo in ("lista", "tupla") and isinstance(v, list):
        valores = [decodificar(y, fundo + 1) for y in v]
        return valores if tipo == "lista" else tuple(valores)
    if tipo == "array" and x.get("d") in TIPOS and isinstance(x.get("f"), list):
        forma = tuple(int(n) for n in x["f"])
        if len(forma) > 8 or any(n < 0 or n > 10**7 for n in forma):
            raise ValueError("forma impossível")
        return np.frombuffer(base64.b64decode(v), "<" + x["d"]).reshape(forma).copy()
    if tipo == "outro":
        return Estranho(v)
    raise ValueError("dado fora do formato")


def montar(args):
    """Os argumentos de verdade, a partir dos codificados: arrays novos, e as vistas entre eles."""
    prontos = []
    for a in args:
        if isinstance(a, dict) and a.get("t") == "mesmo":
            prontos.append(prontos[a["v"]])
        elif isinstance(a, dict) and a.get("t") == "vista":
            alvo = prontos[a["v"]]
            prontos.append(alvo.T if a.get("transposta") else alvo[:])
        else:
            prontos.append(decodificar(a))
    return prontos


# --- as paredes ----------------------------------------------------------------------------


def por_limites(limites):
    """Limites do sistema para este processo e os filhos. Devolve os que pegaram."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    feitos = []
    constantes = {
        "cpu": "CPU",
        "memoria": "AS",
        "arquivo": "FSIZE",
        "processos": "NPROC",
        "despejo": "CORE",
    }
    for nome, valor in {**limites, "despejo": 0}.items():
        try:
            resource.setrlimit(getattr(resource, f"RLIMIT_{constantes[nome]}"), (valor, valor))
            feitos.append(nome)
        except (AttributeError, ValueError, OSError):
            pass
    # O administrador não obedece ao limite de processos: quem os nega é o filtro de chamadas.
    if getattr(os, "geteuid", lambda: 1)() == 0 and "processos" in feitos:
        feitos.remove("processos")
    return feitos


def so_esta_pasta(pasta, legiveis):
    """Landlock (Linux 5.13+): escrever só em `pasta`, ler só dali e de `legiveis`.

    Devolve a versão do Landlock que pegou; 0 se nenhuma. Da 6 em diante, nega também os sinais.
    """
    import ctypes
    import struct

    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    versao = libc.syscall(444, None, 0, 1)
    if versao < 1:
        return 0
    ler = (1 << 2) | (1 << 3) | 1  # ler arquivo, listar pasta, executar
    tudo = (1 << {1: 13, 2: 14}.get(versao, 15 if versao < 5 else 16)) - 1
    rede = 3 if versao >= 4 else 0  # bind e connect em TCP
    escopo = 3 if versao >= 6 else 0  # sinais e soquetes para fora
    atributos = struct.pack("<QQQ", tudo, rede, escopo)
    tamanho = 8 if versao < 4 else 16 if versao < 6 else 24
    regras = libc.syscall(444, atributos[:tamanho], tamanho, 0)
    if regras < 0:
        return 0
    for caminho in [pasta, *legiveis]:
        try:
            aberto = os.open(caminho, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        direitos = tudo if caminho == pasta else ler
        if not os.path.isdir(caminho):
            direitos = (1 << 1) | (1 << 2)  # um arquivo (/dev/null): ler e escrever
        libc.syscall(445, regras, 1, struct.pack("<Qi", direitos & tudo, aberto), 0)
        os.close(aberto)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    pegou = libc.syscall(446, regras, 0) == 0
    os.close(regras)
    return versao if pegou else 0


def negar_chamadas():
    """seccomp (Linux): nenhum soquete, nenhum processo novo, nenhum outro programa. True se pegou.

    Linhas de execução (threads) continuam permitidas: o NumPy as usa.
    """
    import ctypes
    import platform
    import struct

    # (arquitetura, socket, fork, vfork, clone, clone3, execve, execveat, kill-ptrace, unshare, setns)
    numeros = {
        "x86_64": (0xC000003E, [41, 57, 58, 59, 322, 101, 272, 308, 425], 56, 435),
        "aarch64": (0xC00000B7, [198, 221, 281, 117, 97, 268, 425], 220, 435),
    }.get(platform.machine())
    if not sys.platform.startswith("linux") or numeros is None or sys.maxsize < 2**32:
        return False
    arquitetura, negadas, clone, clone3 = numeros

    def passo(codigo, k, sim=0, nao=0):
        return struct.pack("<HBBI", codigo, sim, nao, k)

    ler, igual, bits, voltar = 0x20, 0x15, 0x45, 0x06
    eperm, enosys, passa, mata = 0x00050001, 0x00050026, 0x7FFF0000, 0x80000000
    p = [passo(ler, 4), passo(igual, arquitetura, 1, 0), passo(voltar, mata), passo(ler, 0)]
    for n in negadas:
        p += [passo(igual, n, 0, 1), passo(voltar, eperm)]
    # x32: outra tabela de chamadas na mesma arquitetura; nega-se inteira.
    p += [passo(0x35, 0x40000000, 0, 1), passo(voltar, eperm)]
    # clone3 esconde as opções num ponteiro: finge-se que não existe, e a libc usa o clone.
    p += [passo(igual, clone3, 0, 1), passo(voltar, enosys)]
    # clone só para thread (CLONE_THREAD = 0x10000).
    p += [
        passo(igual, clone, 0, 3),
        passo(ler, 16),
        passo(bits, 0x10000, 1, 0),
        passo(voltar, eperm),
    ]
    p += [passo(voltar, passa)]
    programa = ctypes.create_string_buffer(b"".join(p))
    descricao = struct.pack("<HxxxxxxQ", len(p), ctypes.addressof(programa))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    return libc.prctl(22, 2, ctypes.create_string_buffer(descricao), 0, 0) == 0


# --- rodar ---------------------------------------------------------------------------------


def linha_do_erro(erro, arquivo):
    """O número da linha do arquivo da pessoa onde o erro aconteceu, ou None."""
    if isinstance(erro, SyntaxError) and erro.filename == arquivo:
        return erro.lineno
    linha, rastro = None, erro.__traceback__
    while rastro is not None:
        if rastro.tb_frame.f_code.co_filename == arquivo:
            linha = rastro.tb_lineno
        rastro = rastro.tb_next
    return linha


def retrato(args):
    """Os bytes de cada array entre os argumentos: é como se sabe se a função mexeu neles."""
    import numpy as np

    return [a.tobytes() if isinstance(a, np.ndarray) else repr(a)[:500] for a in args]


def rodar_tarefa(tarefa, dizer):
    """Carrega o texto da resposta e faz todas as chamadas, contando cada uma por `dizer`."""
    arquivo, nome = tarefa["arquivo"], tarefa["funcao"]

    def erro_de(erro):
        texto = str(erro)[:400]
        return {
            "erro": type(erro).__name__,
            "mensagem": texto,
            "linha": linha_do_erro(erro, arquivo),
        }

    espaco = {"__name__": "resposta", "__file__": arquivo}
    try:
        exec(compile(tarefa["texto"], arquivo, "exec"), espaco)
    except BaseException as erro:  # SystemExit também: sair não é responder
        return dizer({"carga": erro_de(erro)})
    funcao = espaco.get(nome)
    if not callable(funcao):
        achadas = [
            n
            for n, v in espaco.items()
            if callable(v) and getattr(v, "__module__", "") == "resposta"
        ]
        return dizer(
            {"carga": {"erro": "sem_funcao", "mensagem": ", ".join(achadas)[:300], "linha": None}}
        )
    for i, args in enumerate(tarefa["casos"]):
        prontos = montar(args)
        antes = retrato(prontos)
        try:
            valor = codificar(funcao(*prontos))
            mexeu = [n for n, (x, y) in enumerate(zip(antes, retrato(prontos))) if x != y]  # noqa: B905
            dizer({"caso": i, "valor": valor, "mexeu": mexeu})
        except BaseException as erro:
            dizer({"caso": i, **erro_de(erro)})
            if isinstance(erro, NotImplementedError):
                return None
    return None


def principal():
    """Lê o pedido, levanta as paredes, roda as tarefas. Nunca volta: sai sem rodar mais nada."""
    pedido = json.loads(sys.stdin.buffer.readline())
    # O canal é uma cópia escondida de stdout; o que a resposta imprimir vai para outro lugar.
    canal = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    vazio = os.open(os.devnull, os.O_RDWR)
    os.dup2(vazio, 0)
    os.dup2(2 if pedido["mostrar_prints"] else vazio, 1)
    if pedido["mostrar_prints"]:
        sys.stdout.reconfigure(line_buffering=True, errors="replace")
    else:
        os.dup2(vazio, 2)
    escrever, despejar = canal.write, json.dumps

    def dizer(dado):
        escrever(despejar(dado) + "\n")

    import numpy  # noqa: F401 - antes das paredes, e fora do tempo da resposta

    # Quem usa o torch espera alguns segundos por ele: também fora do tempo da resposta.
    if any("torch" in tarefa["texto"] for tarefa in pedido["tarefas"]):
        with contextlib.suppress(ImportError):
            import torch  # noqa: F401
    paredes = []
    if pedido["pasta"]:
        os.chdir(pedido["pasta"])
    if "landlock" in pedido["paredes"]:
        versao = so_esta_pasta(pedido["pasta"], pedido["legiveis"])
        paredes += ["landlock"] * (versao > 0) + ["sinais"] * (versao >= 6)
    if "seccomp" in pedido["paredes"] and negar_chamadas():
        paredes.append("seccomp")
        # Processos já são negados; o limite contaria também os outros programas da mesma pessoa.
        pedido["limites"].pop("processos", None)
    if pedido["limites"]:
        paredes += por_limites(pedido["limites"])
    dizer({"pronto": paredes})
    for tarefa in pedido["tarefas"]:
        dizer({"comeca": tarefa["id"]})
        rodar_tarefa(tarefa, dizer)
        dizer({"termina": tarefa["id"]})
    dizer({"fim": True})
    # os._exit: os atexit que a resposta deixou não rodam.
    os._exit(0)


if __name__ == "__main__":
    principal()
