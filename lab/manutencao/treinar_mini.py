"""Treina `data/mini`, o GPT-2 em português que mora neste repositório. Para quem mantém o lab.

O que faz: lê o corpus, treina o BPE, treina o GPT-2 e guarda, na pasta de `--trabalho`, retratos
de onde se pode retomar. Com `--exportar`, mede o melhor retrato e escreve a pasta pronta.

    python lab/manutencao/treinar_mini.py --corpus PASTA --trabalho PASTA             # horas; retoma sozinho
    python lab/manutencao/treinar_mini.py --corpus PASTA --trabalho PASTA --exportar data/mini

Ctrl-C a qualquer momento: o último passo fica guardado e o mesmo comando continua dele.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # lab/, como nas lições

from nucleo.base import arquivos
from nucleo.base.erros import ErroDoUsuario
from palco import sinais
from palco.erros import rodar_com_erros_gentis
from palco.opcoes import Analisador

# ---------------------------------------------------------------------- os botões do modelo
VOCABULARIO = 8192  # tokens: " rei", " rainha", " gato" cabem inteiros; com 4096, não
D = 192
CAMADAS = 5
CABECAS = 4
POSICOES = 256
DROPOUT = 0.1
PASSOS = 4_200
SEMENTE = 2

VALIDAR_A_CADA = 250  # passos
JANELAS = 128  # quantas janelas de validação espiar no meio do treino
# Passos em que a wpe é fotografada: mais juntos no começo, quando ela muda depressa.
FOTOS = (0, 100, 200, 400, 600, 800, 1200, 1600, 2400, 3200, 4800, 6400, 9600)


def argumentos(lista=None) -> argparse.Namespace:
    """A linha de comando."""
    p = Analisador(prog="treinar_mini.py", description=__doc__)
    p.add_argument("--corpus", required=True, help="pasta com os .txt (UTF-8), em subpastas ou não")
    p.add_argument("--trabalho", required=True, help="pasta dos retratos do treino")
    p.add_argument("--passos", type=int, default=PASSOS, help=f"padrão: {PASSOS}")
    p.add_argument("--semente", type=int, default=SEMENTE)
    p.add_argument("--compilar", action="store_true", help="torch.compile (precisa de g++)")
    p.add_argument(
        "--exportar", metavar="PASTA", help="mede e escreve o modelo pronto, sem treinar"
    )
    return p.parse_args(lista)


def gravar(objeto, destino: Path) -> None:
    """Grava com torch.save, inteiro ou nada."""
    import torch

    with arquivos.ao_lado(destino) as provisorio:
        torch.save(objeto, provisorio)


def preparar(args):
    """Corpus, tokenizer, fitas, modelo e receita: (treino, fita de validação, regra, bpe)."""
    from tokenizers import Tokenizer

    from nucleo.treino import treinador as tr

    trabalho = Path(args.trabalho)
    trabalho.mkdir(parents=True, exist_ok=True)
    obras_treino, obras_validacao, regra = tr.separar(tr.ler_corpus(args.corpus))
    arquivo_bpe = trabalho / "tokenizer.json"
    if arquivo_bpe.exists():
        bpe = Tokenizer.from_file(str(arquivo_bpe))
    else:
        bpe = tr.treinar_bpe([obra.texto for obra in obras_treino], VOCABULARIO)
        bpe.save(str(arquivo_bpe))
    fita = tr.codificar(bpe, obras_treino)
    fita_validacao = tr.codificar(bpe, obras_validacao)
    receita = tr.Receita(
        passos=args.passos,
        contexto=POSICOES,
        semente=args.semente,
        bf16=True,
        compilar=args.compilar,
    )
    modelo = tr.novo_gpt2(VOCABULARIO, D, CAMADAS, CABECAS, POSICOES, args.semente, DROPOUT)
    return tr.Treino(modelo, fita, receita), fita_validacao, regra, bpe


def treinar(args) -> int:
    """Treina até o fim da receita, ou até um Ctrl-C, que guarda o passo e diz como continuar."""
    import numpy as np
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from nucleo.treino import treinador as tr

    console = Console()
    t, fita_validacao, regra, _ = preparar(args)
    trabalho = Path(args.trabalho)
    ultimo, melhor = trabalho / "ultimo.pt", trabalho / "melhor.pt"
    historico: list[dict] = []
    fotos: dict[int, dict] = {}
    if ultimo.exists():
        estado = torch.load(ultimo, weights_only=False)
        antiga = tr.Receita(**estado["receita"])
        # Mudar o total de passos só é honesto enquanto a taxa ainda é a do platô.
        feitos = range(estado["passo"])
        outra = any(antiga.taxa_no_passo(i) != t.receita.taxa_no_passo(i) for i in feitos)
        if outra or estado["passo"] > args.passos:
            raise ErroDoUsuario(
                f"O retrato em {ultimo} foi treinado com outra agenda de taxas.",
                f"Ele seguia {antiga.passos} passos; o comando pede {args.passos}.",
                f"Use --passos {antiga.passos}, ou outra pasta de --trabalho.",
            )
        t.retomar(estado)
        historico, fotos = estado["historico"], estado["fotos"]
        console.print(f"Retomando do passo {t.passo}.")
    console.print(
        f"{len(t.fita)} tokens de treino, {len(fita_validacao)} de validação ({regra}); "
        f"{sum(p.numel() for p in t.modelo.parameters())} parâmetros."
    )

    inicio, gasto = time.perf_counter(), historico[-1]["segundos"] if historico else 0.0
    soma, n = 0.0, 0

    def medir() -> None:
        """Espia a validação, anota e guarda o retrato (o melhor, à parte)."""
        nonlocal soma, n
        validacao = tr.perda_media(t.modelo, fita_validacao, POSICOES, janelas=JANELAS, bf16=True)
        wpe = t.modelo.transformer.wpe.weight.detach().float().numpy()
        cossenos = tr.cosseno_por_defasagem(wpe, (1, 2, 4, 8, 16, 32, 64))
        anotado = {
            "passo": t.passo,
            "tokens": t.passo * t.receita.lote * POSICOES,
            "perda_treino": soma / n if n else None,
            "perda_validacao": validacao,
            "cosseno": cossenos,
            "segundos": gasto + time.perf_counter() - inicio,
        }
        soma, n = 0.0, 0
        historico.append(anotado)
        if t.passo in FOTOS:
            fotos[t.passo] = {**anotado, "wpe": wpe.astype(np.float16)}
        if validacao <= min(h["perda_validacao"] for h in historico):
            gravar({"passo": t.passo, "modelo": t.modelo.state_dict()}, melhor)
        gravar({**t.estado(), "historico": historico, "fotos": fotos}, ultimo)
        treino = f"{anotado['perda_treino']:.3f}" if anotado["perda_treino"] else "  -  "
        console.print(
            f"passo {t.passo:6d}  treino {treino}  validação {validacao:.3f}  "
            f"wpe {' '.join(f'{c:+.2f}' for c in cossenos)}  {anotado['segundos']:.0f} s"
        )

    barra = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console,
        disable=not console.is_terminal,
    )  # fmt: skip
    try:
        with barra:
            tarefa = barra.add_task("treino", total=t.receita.passos, completed=t.passo)
            if t.passo == 0:
                medir()
            for p in t.passos():
                soma, n = soma + p.perda, n + 1
                descricao = f"perda {p.perda:.3f} · {p.tokens_por_s:6.0f} tokens/s"
                barra.update(tarefa, completed=p.passo, description=descricao)
                if p.passo % VALIDAR_A_CADA == 0 or p.passo in FOTOS or p.passo == args.passos:
                    medir()
    except KeyboardInterrupt as fim:
        gravar({**t.estado(), "historico": historico, "fotos": fotos}, ultimo)
        console.print(
            f"\nInterrompido no passo {t.passo}; está tudo guardado em {ultimo}.\n"
            "O mesmo comando continua daqui; com --exportar PASTA, o melhor até agora já serve."
        )
        return sinais.codigo_de(fim)
    console.print("Pronto. Agora: o mesmo comando com --exportar PASTA.")
    return 0


def exportar(args) -> int:
    """Mede o melhor retrato e escreve a pasta pronta: pesos, tokenizer, fotos, números, LEIAME.

    Os números são medidos no que foi escrito (pesos em float16, lidos de volta), não no que
    estava na memória.
    """
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

    from nucleo.treino import mini
    from nucleo.treino import treinador as tr

    destino, trabalho = Path(args.exportar), Path(args.trabalho)
    if not (trabalho / "melhor.pt").exists():
        raise ErroDoUsuario(
            f"Não há nenhum retrato em {trabalho}.",
            "O treino ainda não guardou nada nessa pasta, ou a pasta é outra.",
            "Rode o mesmo comando sem --exportar, e interrompa-o quando quiser.",
        )
    t, fita_validacao, regra, bpe = preparar(args)
    melhor = torch.load(trabalho / "melhor.pt", weights_only=False)
    ultimo = torch.load(trabalho / "ultimo.pt", weights_only=False)
    t.modelo.load_state_dict(melhor["modelo"])
    destino.mkdir(parents=True, exist_ok=True)

    # O nome que todo leitor de GPT-2 conhece para a mesma função de ativação.
    t.modelo.config.activation_function = "gelu_new"
    t.modelo.config.use_cache = t.modelo.generation_config.use_cache = True
    t.modelo.half().save_pretrained(destino)
    PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=tr.FIM, eos_token=tr.FIM, model_max_length=POSICOES
    ).save_pretrained(destino)
    # A classe que toda versão do transformers conhece, e não a genérica que a nossa escreve.
    ficha = destino / "tokenizer_config.json"
    config = json.loads(ficha.read_text(encoding="utf-8"))
    config = {k: v for k, v in config.items() if k != "backend"} | {
        "tokenizer_class": "GPT2Tokenizer"
    }
    ficha.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8", newline="\n")
    bpe.model.save(str(destino))  # vocab.json e merges.txt, o formato original do GPT-2

    os.chmod(destino / "model.safetensors", 0o644)
    modelo = AutoModelForCausalLM.from_pretrained(
        destino, dtype=torch.float32, trust_remote_code=False
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(destino, trust_remote_code=False)
    feitos = [h for h in ultimo["historico"] if h["passo"] <= ultimo["passo"]]
    fotos = [ultimo["fotos"][k] for k in sorted(ultimo["fotos"]) if k < melhor["passo"]]
    wpe = modelo.transformer.wpe.weight.detach().numpy()
    do_melhor = next(h for h in feitos if h["passo"] == melhor["passo"])
    fotos.append({**do_melhor, "wpe": wpe.astype(np.float16)})
    mini.gravar_fotos(destino / mini.FOTOS, fotos)

    receita = ultimo["receita"] | {"dropout": DROPOUT}
    resultados = mini.medir(modelo, tokenizer, t.fita.numpy(), fita_validacao, receita)
    nota = trabalho / "nota.txt"
    resultados |= {
        "passo": melhor["passo"],
        "passos_dados": ultimo["passo"],
        "tokens_vistos": do_melhor["tokens"],
        "perda_de_treino": do_melhor["perda_treino"],
        "minutos": do_melhor["segundos"] / 60,
        "validacao": regra,
        "historico": feitos,
        # O que aconteceu neste treino e não está na receita: uma frase em trabalho/nota.txt.
        "nota": nota.read_text(encoding="utf-8").strip() if nota.is_file() else "",
        "versoes": {p: version(p).split("+")[0] for p in ("torch", "transformers", "tokenizers")},
    }
    mini.gravar_resultados(destino, resultados)
    print((destino / "LEIAME.md").read_text(encoding="utf-8"))
    return 0


def main(lista=None) -> int:
    """Entrada: treina ou exporta."""
    args = argumentos(lista)
    return exportar(args) if args.exportar else treinar(args)


if __name__ == "__main__":
    sys.exit(rodar_com_erros_gentis(main))
