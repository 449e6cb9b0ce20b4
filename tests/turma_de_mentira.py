"""Uma turma inventada: gente que acerta, que erra, que não fez, e dez programas hostis.

Os que abrem processos abrem um número fixo e pequeno: nenhum teste deste laboratório se
multiplica sem limite.
"""

import json
import os
from pathlib import Path

from banco_de_programas import CERTOS, ERRADOS
from nucleo.exercicios import apostilas, registro

IMPORTA = "import numpy as np\n"

# nome -> (programa posto no lugar de 02_2_cosseno.py, enganos aceitos nele)
HOSTIS = {
    "laco": ("def cosseno(a, b):\n    while True:\n        pass\n", {"tempo"}),
    "sai": ("import sys\ndef cosseno(a, b):\n    sys.exit(0)\n", {"saiu"}),
    "sai_de_vez": ("import os\nos._exit(0)\n", {"saiu"}),
    "filhos": (
        "import subprocess, sys\n"
        "for _ in range(3):\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'],\n"
        "                     start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "def cosseno(a, b):\n    return 1.0\n",
        {"limite", "constante"},
    ),
    "troca_o_corretor": (
        "import sys, builtins, json\nimport numpy as np\n"
        "np.allclose = np.array_equal = lambda *a, **k: True\n"
        "builtins.all = lambda *a: True\n"
        "principal = sys.modules['__main__']\n"
        "certo = principal.codificar(0.96)\n"
        "principal.codificar = lambda x, fundo=0: certo\n"
        "def cosseno(a, b):\n    return 0.5\n",
        {"copiou_o_exemplo"},
    ),
    "forja_a_saida": (
        "import os\n"
        'linhas = [b\'{"caso": %d, "valor": {"t": "float", "v": "0x1p-1"}, "mexeu": []}\' % i for i in range(7)]\n'
        'linhas += [b\'{"termina": "cosseno"}\', b\'{"passou": true}\', b\'{"fim": true}\']\n'
        "for fd in range(1, 20):\n"
        "    try:\n        os.write(fd, b'\\n'.join(linhas) + b'\\n')\n"
        "    except OSError:\n        pass\n"
        "print('[certo] 7 de 7 funções')\n"
        "os._exit(0)\n",
        {"saiu", "fora_do_protocolo", "copiou_o_exemplo", "constante"},
    ),
    "arquivo_enorme": (
        "with open('enorme', 'wb') as f:\n"
        "    for _ in range(400):\n        f.write(b'0' * 1_000_000)\n"
        "def cosseno(a, b):\n    return 1.0\n",
        {"limite"},
    ),
    "memoria": ("def cosseno(a, b):\n    return len(bytearray(20 * 2**30))\n", {"limite", "saiu"}),
    "escreve_fora": (
        "import os\n"
        "open(os.environ.get('ALVO', {alvo!r}), 'w').write('vazou')\n"
        "def cosseno(a, b):\n    return 1.0\n",
        {"limite", "constante"},
    ),
    "espia": (
        "import os\n"
        "segredo = os.environ.get('SEGREDO_DO_PROFESSOR')\n"
        "if segredo:\n    raise RuntimeError(segredo)\n"
        "raise ValueError('nao vi nada')\n"
        "def cosseno(a, b):\n    return 1.0\n",
        {"falhou"},
    ),
}


def montar(raiz: Path, pessoas: int = 40, alvo: Path | None = None) -> dict[str, dict]:
    """Cria a turma em `raiz`; devolve {pasta: {tarefa: "passa" ou o engano que se espera}}.

    As dez primeiras posições são os hostis (um exercício cada; os outros estão certos); das
    demais, uma em cada três acerta tudo, uma erra um em cada tarefa, e uma parou no meio.
    """
    tarefas = [t for a in apostilas() for t in registro.tarefas(a)]
    esperado = {}
    for nome, (programa, _) in list(HOSTIS.items())[:pessoas]:
        pasta = raiz / f"hostil_{nome}"
        pasta.mkdir(parents=True)
        for t in tarefas:
            (pasta / t.arquivo).write_text(registro.solucao(t), encoding="utf-8")
        texto = programa.replace("{alvo!r}", repr(str(alvo or raiz / "vazou")))
        (pasta / "02_2_cosseno.py").write_text(texto, encoding="utf-8")
        esperado[pasta.name] = {t.id: "passa" for t in tarefas} | {"cosseno": "hostil"}
    for n in range(max(0, pessoas - len(HOSTIS))):
        pasta = raiz / f"pessoa_{n:02d}"
        pasta.mkdir(parents=True)
        esperado[pasta.name] = {}
        for k, t in enumerate(tarefas):
            if n % 3 == 0:
                opcoes = CERTOS[t.id]
                # O torch custa segundos para subir: aqui fica para os testes do banco.
                opcoes = [p for p in opcoes if "torch" not in p]
                texto, o_que = IMPORTA + opcoes[n % len(opcoes)], "passa"
            elif n % 3 == 1:
                engano, programa = ERRADOS[t.id][(n + k) % len(ERRADOS[t.id])]
                texto, o_que = IMPORTA + programa, "desconhecido" if engano == "?" else engano
            elif k < 7:
                texto, o_que = registro.solucao(t), "passa"
            else:
                texto, o_que = registro.molde(t), "por_fazer"
            (pasta / t.arquivo).write_text(texto, encoding="utf-8")
            esperado[pasta.name][t.id] = o_que
        (pasta / "02_previsoes.json").write_text(
            json.dumps({"embaralhar": "a", "onehots": "ac"[n % 2], "pedacos": 5 + n % 2}),
            encoding="utf-8",
        )
    return esperado


def estranhas(raiz: Path) -> dict[str, str]:
    """Pastas que não se deixam ler como se espera: {nome: engano esperado em 02_2_cosseno}."""
    for nome in ("cano", "atalho", "gigante", "binario", "pasta_no_lugar", "=1+1"):
        (raiz / nome).mkdir(parents=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(raiz / "cano" / "02_2_cosseno.py")
    (raiz / "atalho" / "02_2_cosseno.py").symlink_to(raiz / "gigante" / "02_2_cosseno.py")
    (raiz / "gigante" / "02_2_cosseno.py").write_bytes(b"#" * 1_000_000)
    (raiz / "binario" / "02_2_cosseno.py").write_bytes(b"\xff\xfe\x00")
    (raiz / "pasta_no_lugar" / "02_2_cosseno.py").mkdir()
    return dict.fromkeys(
        ("cano", "atalho", "gigante", "binario", "pasta_no_lugar"), "arquivo_estranho"
    )
