"""Números de referência: roda as lições, guarda o que elas mediram e refaz as apostilas.

O que você vai ver: as lições, uma a uma, numa pasta temporária; depois o que mudou em
data/referencia, em apostilas/figuras e nas apostilas. Se uma lição falha, nada é trocado. A cópia de
segurança é o git: `git diff` mostra o que mudou, `git checkout -p` traz de volta.

Quanto demora: uns 5 minutos por modelo; só as apostilas, 1 s.
Como rodar:    python lab/manutencao/referencia.py --modelo smollm2
               python lab/manutencao/referencia.py --modelo mini --licoes 02_embeddings
               python lab/manutencao/referencia.py --so-apostilas    refaz o texto com o que já foi guardado
               python lab/manutencao/referencia.py --conferir        diz se alguma apostila está atrasada
Código de saída: 0 se deu certo, 1 se uma lição falhou ou uma apostila está atrasada.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # lab/, como nas lições

from nucleo.afirmacoes import citar, guardados
from nucleo.base import arquivos, caminhos, resultado
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.processos import filho_meu
from palco.erros import com_este_python, rodar_com_erros_gentis
from palco.opcoes import Analisador

AQUI = Path(__file__).resolve().parents[1]  # lab/: onde moram as lições
CONFERENCIA = "99_conferir"  # a última: julga o que as outras guardaram
# As numeradas que medem: a preparação não mede, os exercícios perguntam.
LICOES = tuple(
    p.stem
    for p in sorted(AQUI.glob("[0-9][0-9]_*.py"))
    if p.stem not in ("00_preparar", CONFERENCIA) and "exercicios" not in p.stem
)
ESCOLHEM = ("02_treino", "06_posicoes", "06_extrapolacao")  # usam os modelos que elas escolhem
VOLTAR = """O que já mudou está em  git diff data/referencia apostilas
e o que você não quiser volta, pedaço a pedaço, com  git checkout -p data/referencia apostilas"""
LIMITE = 120_000  # bytes de uma figura: uma página com todas abre depressa num celular


class Falhou(Exception):
    """Uma lição não terminou bem, ou as apostilas não se refizeram."""


# --- medir -------------------------------------------------------------------------------


def _rodar(licao: Path, saida: Path, modelo: str, *opcoes: str) -> None:
    feito = subprocess.run(
        [sys.executable, str(licao), "--saida", str(saida), *opcoes],
        env=os.environ | {"LAB_MODELO": modelo, "PYTHONIOENCODING": "utf-8"} | filho_meu(),
        stdout=subprocess.DEVNULL,  # o relatório vai para arquivo; a barra e os erros, para cá
    )
    if feito.returncode:
        raise Falhou(f"{licao.stem} saiu com o código {feito.returncode}.")


def medir(licoes: list[Path], modelo: str, trabalho: Path) -> dict[str, dict]:
    """Roda cada lição com `modelo`, com as saídas em trabalho/LIÇÃO; devolve {lição: resultado}.

    Levanta:
        Falhou: na primeira que sai com erro, que não grava resultado ou que respondeu com outro
        modelo.
    """
    resultados = {}
    for n, licao in enumerate(licoes, 1):
        print(f"[{n}/{len(licoes)}] {licao.stem} com {modelo}", flush=True)
        saida = trabalho / licao.stem
        _rodar(licao, saida, modelo)
        try:
            medido = resultado.abrir(saida / "resultado.json")
        except FileNotFoundError:
            raise Falhou(f"{licao.stem} terminou, mas não gravou resultado.json.") from None
        quem = medido.get("modelo", {}).get("nome", modelo)
        if quem != modelo and licao.stem not in ESCOLHEM:
            raise Falhou(f"{licao.stem} respondeu com {quem}, e não com {modelo}.")
        resultados[licao.stem] = medido
    return resultados


# --- guardar -----------------------------------------------------------------------------


def citadas(modelo: str, textos: Path) -> list[str]:
    """Os nomes das figuras deste modelo que alguma apostila cita: MODELO-LIÇÃO-FIGURA.png."""
    padrao = re.compile(rf"figuras/({re.escape(modelo)}-[\w-]+\.png)")
    achadas = {
        f for md in sorted(textos.glob("*.md")) for f in padrao.findall(md.read_text("utf-8"))
    }
    return sorted(achadas)


def enxugar(png: bytes) -> bytes:
    """O mesmo PNG em menos de `LIMITE` bytes: menos cores e, se preciso, menos pontos."""
    from PIL import Image

    imagem, lado = Image.open(io.BytesIO(png)).convert("RGB"), 1.0
    while len(png) >= LIMITE:
        tamanho = tuple(round(x * lado) for x in imagem.size)
        menor = imagem.resize(tamanho, Image.Resampling.LANCZOS) if lado < 1 else imagem
        saco = io.BytesIO()
        menor.quantize(128).save(saco, "png", optimize=True)
        png, lado = saco.getvalue(), lado * 0.85
    return png


def guardar(resultados: dict[str, dict], modelo: str, trabalho: Path) -> list[Path]:
    """Grava as referências e as figuras citadas das lições medidas; devolve os caminhos.

    Tudo é montado antes do primeiro arquivo: uma figura que falta não deixa nada pela metade.
    """
    figuras = {}
    for nome in citadas(modelo, citar.PASTA):
        licao, figura = nome.removeprefix(modelo + "-").split("-", 1)
        if licao in resultados:
            png = (trabalho / licao / figura).read_bytes()
            figuras[citar.PASTA / "figuras" / nome] = enxugar(png)
    gravados = [guardados.guardar(r, modelo) for r in resultados.values()]
    arquivos.gravar_todos(figuras)
    return [*gravados, *figuras]


def refazer(conferir: bool = False) -> str:
    """Passa o cog em todas as apostilas; com `conferir`, não escreve. Devolve o que ele disse.

    Levanta:
        Falhou: um bloco deu erro ou, ao conferir, há texto atrasado.
        ErroDoUsuario: falta o cogapp.
    """
    import importlib.util

    if importlib.util.find_spec("cogapp") is None:
        raise ErroDoUsuario(
            "Falta o cogapp, que preenche os números das apostilas.",
            "Ele é dos pacotes de manutenção, e não dos que as lições usam.",
            com_este_python("Instale:  python -m pip install -r requirements-dev.txt"),
        )
    # -U: fim de linha \n também no Windows.
    modo = ["--check"] if conferir else ["-r", "-U"]
    textos = [p.as_posix() for p in sorted(citar.PASTA.glob("*.md"))]
    feito = subprocess.run(
        [sys.executable, "-m", "cogapp", *modo, *textos],
        cwd=caminhos.RAIZ,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    dito = (feito.stdout + feito.stderr).strip()
    if feito.returncode:
        raise Falhou(_so_o_erro(feito.stdout, feito.stderr))
    if not conferir and "changed" in dito:
        # O tempo de leitura conta o texto que esta passada acabou de escrever.
        return f"{dito}\n{refazer()}"
    return dito


def _so_o_erro(saida: str, erros: str) -> str:
    # Os textos atrasados ou, num bloco que deu erro, em que texto foi e o que o erro disse: o
    # caminho por dentro do cog não ajuda quem escreve a apostila.
    linhas = [x for x in saida.splitlines() if x.strip()]
    atrasados = [x for x in linhas if "(changed)" in x]
    fim = []
    for linha in reversed(erros.strip().splitlines()):
        if linha.startswith((" ", "Traceback")):
            break
        fim.insert(0, linha)
    if fim in ([], ["Check failed"]):
        return "\n".join(atrasados or linhas)
    onde = re.sub(r"^(Cogging|Checking) ", "", linhas[-1]) + ": " if linhas else ""
    fim[0] = onde + re.sub(r"^(\w+\.)*ErroDoUsuario: ", "", fim[0])
    return "\n".join([*atrasados, *fim])


def conferir(modelo: str, trabalho: Path) -> None:
    """Julga de novo as afirmações, só com o que está guardado, e guarda os vereditos.

    Levanta:
        Falhou: a conferência saiu com erro.
    """
    print(f"{CONFERENCIA} com {modelo}", flush=True)
    _rodar(AQUI / f"{CONFERENCIA}.py", trabalho / CONFERENCIA, modelo, "--guardar")


# --- a linha de comando --------------------------------------------------------------------


def principal() -> int:
    p = Analisador(prog="referencia.py", description=__doc__)
    p.add_argument("--modelo", default="smollm2", choices=list(citar.NOMES), help="quem mede")
    p.add_argument("--licoes", nargs="+", choices=LICOES, default=LICOES, help="só estas")
    p.add_argument("--so-apostilas", action="store_true", help="não mede: só refaz o texto")
    p.add_argument("--conferir", action="store_true", help="só diz se o texto está em dia")
    args = p.parse_args()
    depois = "Nada foi trocado."
    try:
        if args.conferir:
            print(refazer(conferir=True))
            return 0
        if args.so_apostilas:
            depois = VOLTAR
            print(refazer())
            return 0
        with tempfile.TemporaryDirectory(prefix="referencia-") as temporaria:
            trabalho = Path(temporaria)
            resultados = medir([AQUI / f"{x}.py" for x in args.licoes], args.modelo, trabalho)
            guardar(resultados, args.modelo, trabalho)
            depois = VOLTAR
            conferir(args.modelo, trabalho)
            refazer()
    except Falhou as erro:
        if args.conferir:
            # Um bloco que dá erro não se conserta refazendo o texto.
            conselho = "\n\n" + com_este_python(
                "Refaça:  python lab/manutencao/referencia.py --so-apostilas"
            )
            print(f"{erro}{conselho if '(changed)' in str(erro) else ''}")
        else:
            print(f"{erro}\n\n{depois}", file=sys.stderr)
        return 1
    print(f"Guardado em data/referencia/{args.modelo}; apostilas em dia.")
    return 0


if __name__ == "__main__":
    raise SystemExit(rodar_com_erros_gentis(principal))
