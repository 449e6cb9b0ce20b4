"""Todas as lições, uma depois da outra: o que `make all` roda, e o que roda quem não tem make.

Cada lição é um processo à parte: uma que falha não para as outras. No fim, uma tela diz o que
está pronto, o que merece atenção e o que abrir.

Como rodar:    python lab/tudo.py
               python lab/tudo.py --modelo mini
               python lab/tudo.py --licoes 02_embeddings
Código de saída: 0 se todas rodaram, 1 se alguma falhou.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from aula import Analisador, com_este_python, rodar_com_erros_gentis
from nucleo import caminhos

AQUI = Path(__file__).resolve().parent
# A preparação já rodou antes; exercícios perguntam, e aqui ninguém responde.
FORA = ("00_preparar", "exercicios")


def licoes() -> list[Path]:
    """As lições numeradas, na ordem."""
    return [p for p in sorted(AQUI.glob("[0-9][0-9]_*.py")) if not any(f in p.stem for f in FORA)]


def rodar(licao: Path, ambiente: dict) -> tuple[str, float, str]:
    """Roda uma lição e devolve (situação, segundos, o que fazer)."""
    inicio = time.perf_counter()
    codigo = subprocess.run([sys.executable, str(licao)], env=ambiente).returncode
    segundos = time.perf_counter() - inicio
    if codigo:
        return "falhou", segundos, com_este_python(f"rode sozinha:  python lab/{licao.name}")
    resultado = caminhos.SAIDAS / licao.stem / "resultado.json"
    falhas = []
    if resultado.is_file():
        falhas = json.loads(resultado.read_text(encoding="utf-8")).get("nao_conferem", [])
    if falhas:
        return "com ressalva", segundos, f"não confere: {'; '.join(falhas[:3])}"
    return "pronto", segundos, f"abra outputs/{licao.stem}/relatorio.md"


def principal() -> int:
    p = Analisador(prog="tudo.py", description=__doc__)
    p.add_argument("--modelo", help="o modelo de todas as lições (padrão: o que estiver pronto)")
    nomes = [licao.stem for licao in licoes()]
    p.add_argument("--licoes", nargs="+", choices=nomes, default=nomes, help="só estas")
    args = p.parse_args()
    from nucleo import modelos

    # O modelo é escolhido uma vez, sem abrir rede: cada lição não precisa procurar de novo.
    modelo = args.modelo or os.environ.get("LAB_MODELO") or modelos.pronto()
    ambiente = os.environ | {"LAB_MODELO": modelo}
    print(f"Modelo das lições: {modelo}\n", flush=True)
    telas = {x.stem: rodar(x, ambiente) for x in licoes() if x.stem in args.licoes}

    print("\n" + "=" * 72)
    for nome, (situacao, segundos, fazer) in telas.items():
        print(f"{situacao:<13} {nome:<18} {segundos:6.1f} s   {fazer}".replace(".", ",", 1))
    falhou = [n for n, (s, _, _) in telas.items() if s == "falhou"]
    licoes_ = "lição rodou" if len(telas) == 1 else "lições rodaram"
    print(f"\n{len(telas) - len(falhou)} de {len(telas)} {licoes_}.")
    if not modelo.startswith("gpt2"):
        aviso = f"Rodaram com {modelo}, e não com o GPT-2 do curso. Para tê-lo:  {modelos.COMO_TER_GPT2}"
        print(com_este_python(aviso))
    return 1 if falhou else 0


if __name__ == "__main__":
    raise SystemExit(rodar_com_erros_gentis(principal))
