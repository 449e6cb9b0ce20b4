"""O banco: programas errados como os que se escrevem numa aula, e certos escritos de outro jeito.

Estão em banco_de_programas.txt, cada um depois de uma linha `### tarefa · engano`, ou `### tarefa · certo`.
ERRADOS: {tarefa: [(engano esperado, programa)]}. O engano "?" é de quem erra de um jeito que
ninguém previu: precisa ser reprovado, mas não se promete saber por quê.
CERTOS: {tarefa: [programa]}. Nenhum pode ser reprovado.

São escritos sem olhar as imitações de `nucleo/exercicios/tarefas_*.py`: laços onde lá há álgebra,
álgebra onde lá há laços, com os acidentes de quem está aprendendo.
"""

import re
from pathlib import Path

ERRADOS: dict[str, list[tuple[str, str]]] = {}
CERTOS: dict[str, list[str]] = {}

_texto = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
_partes = re.split(r"^### (\w+) · (.+)\n", _texto, flags=re.M)[1:]
for _tarefa, _engano, _programa in zip(*[iter(_partes)] * 3, strict=True):
    _programa = "\n" + _programa.strip("\n") + "\n"
    if _engano == "certo":
        CERTOS.setdefault(_tarefa, []).append(_programa)
    else:
        ERRADOS.setdefault(_tarefa, []).append((_engano, _programa))
