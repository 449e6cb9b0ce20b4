"""O que se diz de `data/mini`: medido, guardado em JSON, e só então posto em palavras.

`treinar_mini.py` chama; os testes tornam a medir e comparam. O LEIAME é sempre escrito a partir
de `resultados.json`: nenhum número dele foi digitado.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from nucleo.base import caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal
from nucleo.contas import vetores

PASTA = caminhos.DADOS / "mini"
TEXTO = caminhos.DADOS / "textos" / "relogio.txt"  # um conto nosso, que o mini não viu
FOTOS = "wpe_no_treino.npz"
RESULTADOS = "resultados.json"
DEFASAGENS = (1, 2, 4, 8, 16, 32, 64, 128)
PALAVRAS = ("rei", "rainha", "homem", "mulher", "olhos", "pai", "noite", "gato")
COMECO = "Uma noite destas,"


_CAMPOS = {"passo": np.int64, "tokens": np.int64, "perda_treino": float, "perda_validacao": float}


def gravar_fotos(destino: str | Path, fotos: list[dict]) -> None:
    """Guarda os retratos da wpe: passo, tokens, perdas e a matriz em float16 de cada um."""
    # Sem perda de treino (antes do primeiro passo) o numpy guarda NaN.
    colunas = {nome: np.array([f[nome] for f in fotos], tipo) for nome, tipo in _CAMPOS.items()}
    with open(destino, "wb") as arquivo:
        np.savez_compressed(arquivo, **colunas, wpe=np.stack([f["wpe"] for f in fotos]))


def _achar(nome: str, pasta: Path = PASTA) -> Path:
    arquivo = pasta / nome
    if not arquivo.is_file():
        raise ErroDoUsuario(
            f"Falta o arquivo data/mini/{nome}.",
            "Ele vem com o repositório, e esta cópia não o tem.",
            "Atualize a cópia:  git pull   (ou  git checkout -- data/mini)",
        )
    return arquivo


def fotos(pasta: Path = PASTA) -> list[dict]:
    """Os retratos da wpe ao longo do treino, do primeiro ao último; a wpe volta em float32.

    Erros: `ErroDoUsuario` se faltarem.
    """
    with np.load(_achar(FOTOS, pasta)) as dados:
        colunas = [dados[nome].tolist() for nome in _CAMPOS]
        wpes = dados["wpe"].astype(np.float32)  # (k, n, d)
    nomes = [*_CAMPOS, "wpe"]
    return [dict(zip(nomes, foto, strict=True)) for foto in zip(*colunas, wpes, strict=True)]


def resultados() -> dict:
    """O que se mediu do mini quando ele foi feito (`resultados.json`)."""
    return json.loads(_achar(RESULTADOS).read_text(encoding="utf-8"))


def recem_nascido():
    """O mini no passo 0: a mesma forma e a mesma semente, antes de qualquer treino."""
    from nucleo.treino.treinador import novo_gpt2

    r = resultados()
    forma = (r["vocabulario"], r["d"], r["camadas"], r["cabecas"], r["posicoes"])
    return novo_gpt2(*forma, semente=r["receita"]["semente"])


def conto() -> str:
    """O nosso conto, que o mini não viu: texto de treino e de medida para quem não tem o corpus."""
    return TEXTO.read_text(encoding="utf-8")


def trecho(letras: int = 4000) -> str:
    """O começo do conto, até um fim de parágrafo."""
    texto = conto()
    return texto[: texto.index("\n", letras) + 1]


def vizinhas(wte: np.ndarray, tokenizer, palavra: str, quantas: int = 5) -> list[tuple[str, float]]:
    """As palavras mais parecidas com " palavra" na wte, por cosseno; vazio se ela tem 2 tokens."""
    ids = tokenizer.encode(" " + palavra, add_special_tokens=False)
    if len(ids) != 1:
        return []
    perto = vetores.vizinhos(wte, wte[ids[0]], quantas, vetores.normas_das_linhas(wte), (ids[0],))
    return [(tokenizer.decode([i]).strip(), cosseno) for i, cosseno in perto]


def gerar(modelo, tokenizer, comeco: str = COMECO, novos: int = 60, semente: int = 2) -> str:
    """Um texto do modelo, sorteado entre os 40 tokens mais prováveis de cada vez."""
    import torch

    torch.manual_seed(semente)
    ids = tokenizer(comeco, return_tensors="pt")
    saida = modelo.generate(
        **ids, max_new_tokens=novos, do_sample=True, top_k=40, temperature=0.8,
        pad_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return tokenizer.decode(saida[0], skip_special_tokens=True)


def medir(modelo, tokenizer, fita: np.ndarray, fita_validacao: np.ndarray, receita: dict) -> dict:
    """Mede o modelo pronto: perda e perplexidade na validação, Kneser-Ney, wpe, vizinhas, texto.

    `fita` (treino) só serve ao Kneser-Ney, que conta os mesmos tokens que o modelo viu.
    """
    from nucleo.treino.ngramas import KneserNey
    from nucleo.treino.treinador import cosseno_por_defasagem, perda_media

    config = modelo.config
    perda = perda_media(modelo, fita_validacao, config.n_positions)
    kn = KneserNey(fita, config.vocab_size, 5).perda_media(fita_validacao)
    wpe = modelo.transformer.wpe.weight.detach().numpy()
    wte = modelo.transformer.wte.weight.detach().numpy()
    return {
        "parametros": sum(p.numel() for p in modelo.parameters()),
        "d": config.n_embd,
        "camadas": config.n_layer,
        "cabecas": config.n_head,
        "posicoes": config.n_positions,
        "vocabulario": config.vocab_size,
        "tokens_treino": len(fita),
        "tokens_validacao": len(fita_validacao),
        "perda": perda,
        "perplexidade": float(np.exp(perda)),
        "perda_kneser_ney": kn,
        "perplexidade_kneser_ney": float(np.exp(kn)),
        "cosseno_wpe": dict(
            zip(map(str, DEFASAGENS), cosseno_por_defasagem(wpe, DEFASAGENS), strict=True)
        ),
        "vizinhas": {p: vizinhas(wte, tokenizer, p) for p in PALAVRAS},
        "texto": gerar(modelo, tokenizer),
        "receita": receita,
    }


def leiame(r: dict) -> str:
    """O LEIAME de data/mini, escrito a partir dos resultados medidos."""
    receita, n = r["receita"], decimal
    lags = r["cosseno_wpe"]
    vizinhas_md = "\n".join(
        f"| {palavra} | " + ", ".join(f"{v} {n(c, 2)}" for v, c in lista) + " |"
        for palavra, lista in r["vizinhas"].items()
    )
    fotografada = next(h for h in r["historico"] if h["passo"] == 0)
    texto = "\n".join("> " + linha for linha in r["texto"].splitlines())
    epocas = r["tokens_vistos"] / r["tokens_treino"]
    return f"""# mini: um GPT-2 em português, treinado neste laboratório

Um `GPT2LMHeadModel` de verdade, só que pequeno: {n(r["parametros"], 0)} parâmetros, amarrado,
d = {r["d"]}, {r["camadas"]} camadas, {r["cabecas"]} cabeças, {r["posicoes"]} posições e um BPE de bytes com {n(r["vocabulario"], 0)} tokens.
Serve para que todas as seções do laboratório, a da wpe mais que todas, rodem sem baixar nada.

Este arquivo é escrito por `lab/manutencao/treinar_mini.py --exportar` a partir de `{RESULTADOS}`: todos os
números abaixo foram medidos nos pesos desta pasta (float16), e não digitados.

## O texto

As obras de Machado de Assis (domínio público), como as publicou o Ministério da Educação:
{n(r["tokens_treino"], 0)} tokens de treino e {n(r["tokens_validacao"], 0)} de validação. O texto não vem no repositório: está no portal
machado.mec.gov.br, e o NLTK traz uma cópia (corpus `machado`, com outros nomes de arquivo e em Latin-1:
converta para UTF-8). Qualquer pasta de `.txt` serve ao laboratório: `--corpus PASTA`.

Validação: {r["validacao"]}.
Nem o BPE nem o modelo viram essas obras.

## Quanto ele sabe

| na validação, mesmos tokens | perda (nats por token) | perplexidade |
|---|---|---|
| **mini** (janelas de {r["posicoes"]} que não se sobrepõem) | {n(r["perda"], 3)} | **{n(r["perplexidade"], 1)}** |
| 5-gramas, Kneser-Ney modificado e interpolado | {n(r["perda_kneser_ney"], 3)} | {n(r["perplexidade_kneser_ney"], 1)} |
| ao nascer (passo 0; numa amostra da validação) | {n(fotografada["perda_validacao"], 3)} | {n(float(np.exp(fotografada["perda_validacao"])), 0)} |

## O que a wpe aprendeu

Cosseno médio entre linhas a k posições (linha média retirada):

| k | {" | ".join(lags)} |
|---|{"---|" * len(lags)}
| mini | {" | ".join(n(c, 3) for c in lags.values())} |

Ao nascer, com k = 1: {n(fotografada["cosseno"][0], 3)}. `{FOTOS}` guarda a wpe ao longo do treino.

## Vizinhas na wte

Como são, boas ou más: quase dois milhões de palavras são poucas para um modelo de linguagem, e uma
palavra que aparece oitenta vezes nelas não tem como ficar no lugar certo.

| palavra | vizinhas, com o cosseno |
|---|---|
{vizinhas_md}

## Um texto dele

{texto}

(O começo, "{COMECO}", foi dado; semente 2, top-k 40, temperatura 0,8.)

## Como foi feito

    python lab/manutencao/treinar_mini.py --corpus PASTA --trabalho PASTA --passos {receita["passos"]} --semente {receita["semente"]}{" --compilar" if receita["compilar"] else ""}
    python lab/manutencao/treinar_mini.py --corpus PASTA --trabalho PASTA --exportar data/mini

Passo escolhido (o de menor perda de validação): {n(r["passo"], 0)}, de {n(r["passos_dados"], 0)} dados e {n(receita["passos"], 0)} previstos; {n(r["tokens_vistos"], 0)} tokens vistos
({n(epocas, 1)} passadas pelo texto); perda de treino ali, com dropout, {n(r["perda_de_treino"], 3)}. Levou {n(r["minutos"], 0)} minutos em dois
núcleos compartilhados com outros trabalhos. Lote {receita["lote"]} × {receita["contexto"]}; AdamW, betas {receita["betas"][0]} e {receita["betas"][1]}, taxa {receita["taxa"]} com {receita["aquecimento"]} passos de
aquecimento e descida em linha reta até 0 nos últimos {n(100 * receita["descida"], 0)} %; decaimento {receita["decaimento"]} nas matrizes e nenhum na wpe;
dropout {receita["dropout"]}; autocast em bfloat16. Semente {receita["semente"]}. Versões: {", ".join(f"{k} {v}" for k, v in r["versoes"].items())}.
Outra máquina, ou outra versão do torch, chega perto, mas não aos mesmos bits.{" " + r["nota"] if r["nota"] else ""}

## Licença

Os textos são de domínio público; os pesos, o tokenizer e os números têm a licença do repositório.
"""


def gravar_resultados(destino: str | Path, resultados: dict) -> None:
    """Escreve `resultados.json` e, a partir dele, `LEIAME.md`."""
    destino = Path(destino)
    texto = json.dumps(resultados, ensure_ascii=False, indent=1)
    (destino / RESULTADOS).write_text(texto + "\n", encoding="utf-8", newline="\n")
    (destino / "LEIAME.md").write_text(leiame(json.loads(texto)), encoding="utf-8", newline="\n")
