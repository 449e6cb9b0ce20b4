"""O pacote da aula: uma pasta de pen drive, o manifesto dela e a conferência byte a byte.

    pacote/
      LEIA-ME.txt        os dois comandos
      laboratorio.zip    o repositório
      modelos/NOME/      cada modelo, no formato do Hugging Face
      wheels/            os pacotes do Python, para `pip --no-index`
      manifesto.json     o sha256 de cada arquivo; escrito por último

O sha256 pega a cópia ruim e o download cortado. Não pega quem refez o pacote inteiro, manifesto
junto: por isso a montagem e a instalação mostram a mesma impressão digital, para comparar.

Só a biblioteca padrão entra aqui: quem instala ainda não tem os outros pacotes.
"""

import errno
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nucleo.base.arquivos import ao_lado, e_atalho, serve_no_windows
from nucleo.base.descida import SEM_LUGAR, sha256, tamanho
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import inteiro, megabytes

FORMATO = 1
MANIFESTO = "manifesto.json"
LEIAME = "LEIA-ME.txt"
REPOSITORIO = "laboratorio.zip"
INCOMPLETO = "INCOMPLETO.txt"
MODELOS = "modelos"
PESOS = "model.safetensors"
WHEELS = "wheels"
PLATAFORMAS = ("linux-x86_64", "linux-aarch64", "windows-amd64", "macos-arm64")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TETO_FAT32 = 2**32 - 1  # bytes: o maior arquivo que um pen drive em FAT32 guarda

# O que o sistema deixa num pen drive sem ninguém pedir, e a pasta que sai do laboratorio.zip: nada
# disso é lido, e por isso não precisa estar no manifesto.
_DO_SISTEMA = {
    ".ds_store", "thumbs.db", "desktop.ini", ".spotlight-v100", ".trashes", ".fseventsd",
    "system volume information", "$recycle.bin", "lost+found", "laboratorio",
}  # fmt: skip
# Um pickle pode executar código ao ser aberto: nenhum entra num pacote.
_EXTENSOES = {MODELOS: (".safetensors", ".json", ".txt", ".jinja"), WHEELS: (".whl",)}
_BLOCO = 1 << 22

Progresso = Callable[[str, int, int], None]
"""Chamada com (o que está andando, bytes feitos, bytes no total)."""


def mudo(_o_que: str, _feito: int, _total: int) -> None:
    """O `Progresso` de quem não mostra nada."""


def somando(o_que: str, total: int, progresso: Progresso) -> Callable[[int], None]:
    """Uma função que recebe os bytes de cada pedaço e mostra em `progresso` quantos já foram."""
    feito = 0

    def avanco(n: int) -> None:
        nonlocal feito
        feito += n
        progresso(o_que, feito, total)

    return avanco


@dataclass(frozen=True)
class Arquivo:
    """O que o manifesto diz de um arquivo."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class ModeloNoPacote:
    """Um modelo do pacote. `forma`: "inteiro", "tabelas" (só wte e wpe) ou "convertido"."""

    nome: str
    repo: str
    versao: str
    forma: str


@dataclass(frozen=True)
class Alvo:
    """Para que máquina são os wheels: plataforma (`linux-x86_64`, …) e versão do Python (`3.12`)."""

    plataforma: str
    python: str

    def __str__(self) -> str:
        return f"{self.plataforma} com Python {self.python}"


@dataclass(frozen=True)
class Manifesto:
    """O manifesto lido e conferido. `digital` são os 16 primeiros dígitos do sha256 dele."""

    feito_em: str
    laboratorio: str
    modelos: tuple[ModeloNoPacote, ...]
    wheels: dict[Alvo, tuple[str, ...]]
    arquivos: dict[str, Arquivo]
    digital: str

    def do_modelo(self, nome: str) -> list[str]:
        """Os caminhos, dentro do pacote, dos arquivos de um modelo."""
        return [a for a in self.arquivos if a.startswith(f"{MODELOS}/{nome}/")]

    def soma(self, caminhos: Iterable[str] | None = None) -> int:
        """Bytes dos arquivos pedidos, ou de todos."""
        return sum(
            self.arquivos[c].bytes for c in (self.arquivos if caminhos is None else caminhos)
        )


def este_computador() -> Alvo:
    """A plataforma e o Python que estão rodando."""
    sistema = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    maquina = platform.machine().lower()
    maquina = {"x86_64": "amd64"}.get(maquina, maquina) if sistema == "windows" else maquina
    maquina = {"aarch64": "arm64"}.get(maquina, maquina) if sistema == "macos" else maquina
    return Alvo(f"{sistema}-{maquina}", ".".join(map(str, sys.version_info[:2])))


def recusa_do_nome(caminho: str) -> str:
    """Por que este caminho não pode estar num pacote; "" se pode.

    O caminho tem que ficar dentro da pasta e valer no Linux, no Windows e no macOS.
    """
    partes = caminho.split("/")
    if any(p in ("", ".", "..") for p in partes):
        return "sai da pasta do pacote"
    if not all(map(serve_no_windows, partes)):
        return "não é aceito pelo Windows"
    extensoes = _EXTENSOES.get(partes[0])
    if len(partes) > 1 and extensoes is None:
        return "está numa pasta que os pacotes não têm"
    if extensoes and not caminho.endswith(extensoes):
        return "não é de um tipo que o laboratório abra"
    return ""


def conferir_nomes(caminhos: Iterable[str]) -> None:
    """Recusa os nomes que saem da pasta ou que algum sistema não guarda.

    Erros: `ErroDoUsuario` com o nome e o motivo.
    """
    vistos = set()
    for caminho in caminhos:
        motivo = recusa_do_nome(caminho)
        if caminho.casefold() in vistos:
            motivo = "só difere de outro na caixa das letras, e no Windows seriam o mesmo arquivo"
        vistos.add(caminho.casefold())
        if motivo:
            raise ErroDoUsuario(
                f"Este pacote tem um arquivo que não pode ter: {caminho!r}.",
                f"O nome {motivo}.",
                "Não o use: peça outra cópia, ou monte de novo com  "
                "python lab/00_preparar.py --pacote PASTA",
            )


def molde(nome: str, **dados) -> str:
    """O texto de esqueletos/NOME preenchido com `dados`; num .html tudo sai escapado."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    ambiente = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "esqueletos", encoding="utf-8"),
        autoescape=select_autoescape(), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return ambiente.get_template(nome).render(**dados)


# --- o manifesto -------------------------------------------------------------------------


def escrever_manifesto(
    feito_em: str,
    laboratorio: str,
    modelos: Iterable[ModeloNoPacote],
    wheels: dict[Alvo, Iterable[str]],
    arquivos: dict[str, Arquivo],
) -> bytes:
    """O JSON do manifesto, em ordem alfabética: o mesmo pacote dá os mesmos bytes."""
    dados = {
        "formato": FORMATO,
        "feito_em": feito_em,
        "laboratorio": laboratorio,
        "modelos": [vars(m) for m in modelos],
        "wheels": [vars(alvo) | {"arquivos": sorted(w)} for alvo, w in wheels.items()],
        "arquivos": {nome: vars(arquivos[nome]) for nome in sorted(arquivos)},
    }
    return (json.dumps(dados, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def ler_manifesto(bruto: bytes) -> Manifesto:
    """O manifesto, com cada nome conferido: eles viram caminhos no computador de quem instala.

    Erros: `ErroDoUsuario` se não for o JSON de um manifesto ou se um nome não puder existir.
    """
    try:
        dados = json.loads(bruto)
        if dados["formato"] != FORMATO:
            raise ValueError(f"o formato é {dados['formato']!r}, e este laboratório lê {FORMATO}")
        modelos = tuple(
            ModeloNoPacote(m["nome"], m["repo"], m["versao"], m["forma"]) for m in dados["modelos"]
        )
        for m in modelos:
            if not all(re.fullmatch(r"\w[\w.-]*", x) for x in (m.nome, m.versao)):
                raise ValueError(f"o modelo {m.nome!r} tem um nome ou versão impossível")
        arquivos = {n: Arquivo(a["bytes"], a["sha256"]) for n, a in dados["arquivos"].items()}
        wheels = {Alvo(w["plataforma"], w["python"]): tuple(w["arquivos"]) for w in dados["wheels"]}
        quando_e_qual = dados["feito_em"], dados["laboratorio"]
    except (ValueError, KeyError, TypeError, AttributeError) as erro:
        raise ErroDoUsuario(
            f"O {MANIFESTO} deste pacote está estragado.",
            f"Ele não diz o que devia ({erro if isinstance(erro, ValueError) else repr(erro)}).",
            "Peça outra cópia do pacote a quem o montou.",
        ) from None
    conferir_nomes(arquivos)
    digital = hashlib.sha256(bruto).hexdigest()[:16]
    return Manifesto(*quando_e_qual, modelos, wheels, arquivos, digital)


# --- conferir ----------------------------------------------------------------------------


def abrir(pasta: Path) -> Manifesto:
    """Lê o manifesto de uma pasta. Erros: `ErroDoUsuario` se ela não for um pacote inteiro."""
    if not pasta.is_dir():
        raise ErroDoUsuario(
            f"Não há uma pasta em {pasta}.",
            "Esperava a pasta do pacote, a que tem LEIA-ME.txt e manifesto.json.",
            "Confira o caminho (dá para arrastar a pasta para dentro do terminal).",
        )
    if not (pasta / MANIFESTO).is_file():
        meio = (pasta / INCOMPLETO).exists()
        raise ErroDoUsuario(
            f"{pasta} não é um pacote inteiro.",
            f"Falta o {MANIFESTO}, que é escrito por último"
            + (": a montagem parou no meio." if meio else "."),
            "Aponte para a pasta certa, ou monte o pacote de novo (o que já está lá se aproveita):  "
            f'python lab/00_preparar.py --pacote "{pasta}"',
        )
    return ler_manifesto((pasta / MANIFESTO).read_bytes())


def conferir(pasta: Path, progresso: Progresso = mudo) -> Manifesto:
    """Confere todos os arquivos da pasta contra o manifesto e o devolve. Não muda nada.

    Erros: `ErroDoUsuario` dizendo quais arquivos sobram, faltam, mudaram ou são atalhos.
    """
    manifesto = abrir(pasta)
    achados = set(listar(pasta))
    sobram = sorted(achados - set(manifesto.arquivos) - {MANIFESTO})
    _recusar(sobram, "não está no manifesto", "não estão no manifesto", "a mais")
    faltam = sorted(set(manifesto.arquivos) - achados)
    _recusar(
        faltam, "está no manifesto e não na pasta", "estão no manifesto e não na pasta", "a menos"
    )
    avanco = somando("conferindo o pacote", manifesto.soma(), progresso)
    mudados = [n for n, a in manifesto.arquivos.items() if not ja_esta(pasta / n, a, avanco)]
    _recusar(mudados, "não tem o sha256 do manifesto", "não têm o sha256 do manifesto", "mudado")
    return manifesto


def listar(pasta: Path) -> Iterable[str]:
    """Os caminhos (com /) dos arquivos da pasta, menos o lixo do sistema.

    Erros: `ErroDoUsuario` se houver um link simbólico, para onde quer que aponte.
    """
    for raiz, pastas, arquivos in os.walk(pasta):
        # Na raiz, o que o sistema largou no pen drive não conta; os ._x são do macOS, em toda parte.
        topo = Path(raiz) == pasta
        fora = {n for n in [*pastas, *arquivos] if n.startswith("._")}
        fora |= {n for n in [*pastas, *arquivos] if topo and n.casefold() in _DO_SISTEMA}
        fora |= {n for n in arquivos if n.casefold() in (".ds_store", "thumbs.db", "desktop.ini")}
        pastas[:] = [n for n in pastas if n not in fora]
        for nome in [*pastas, *(n for n in arquivos if n not in fora)]:
            caminho = os.path.join(raiz, nome)
            relativo = Path(caminho).relative_to(pasta).as_posix()
            if os.path.islink(caminho) or (nome in pastas and e_atalho(Path(caminho))):
                raise ErroDoUsuario(
                    f"O pacote tem um atalho (link simbólico): {relativo}.",
                    f"Ele aponta para {os.path.realpath(caminho)}, e um pacote só tem arquivos seus.",
                    "Não o use: peça outra cópia do pacote a quem o montou.",
                )
            if nome not in pastas:
                yield relativo


def _recusar(nomes: list[str], um: str, varios: str, rotulo: str) -> None:
    if not nomes:
        return
    lista = ", ".join(nomes[:3]) + (f" e mais {len(nomes) - 3}" if len(nomes) > 3 else "")
    quantos = (
        f"arquivo {rotulo}" if len(nomes) == 1 else f"{inteiro(len(nomes))} arquivos: {rotulo}"
    )
    cura = "Copie o pacote de novo de quem o montou, e ejete o pen drive antes de tirá-lo."
    if rotulo == "a mais":
        cura = "Tire da pasta do pacote o que não é dele e rode de novo."
    raise ErroDoUsuario(
        f"O pacote não confere ({quantos}).",
        f"{lista}: {um if len(nomes) == 1 else varios}.",
        f"Nada foi instalado. {cura}",
    )


# --- copiar ------------------------------------------------------------------------------


def copiar(
    origem: Path, destino: Path, avanco: Callable[[int], None], esperado: Arquivo | None = None
) -> Arquivo:
    """Copia para `destino`, inteiro ou nada, e devolve tamanho e sha256 do que foi escrito.

    Com `esperado`, uma cópia que saia diferente é recusada. Erros: `ErroDoUsuario` (disco cheio,
    FAT32, sem permissão, sha256 errado).
    """
    try:
        with ao_lado(destino) as parcial:
            soma, n = hashlib.sha256(), 0
            with origem.open("rb") as de, parcial.open("wb") as para:
                while bloco := de.read(_BLOCO):
                    para.write(bloco)
                    soma.update(bloco)
                    n += len(bloco)
                    avanco(len(bloco))
            feito = Arquivo(n, soma.hexdigest())
            if esperado not in (None, feito):
                raise ErroDoUsuario(
                    f"A cópia de {origem.name} saiu diferente do manifesto.",
                    "O arquivo mudou, ou a leitura falhou, depois da conferência.",
                    "Rode de novo; se repetir, o pen drive está com defeito.",
                )
    except OSError as erro:
        raise erro_de_disco(erro, destino, origem.stat().st_size) from None
    return feito


def ja_esta(
    destino: Path, esperado: Arquivo, avanco: Callable[[int], object] = lambda _: None
) -> bool:
    """True se `destino` já é, byte a byte, o arquivo esperado. Um de outro tamanho nem se lê."""
    return tamanho(destino) == esperado.bytes and sha256(destino, avanco) == esperado.sha256


def erro_de_disco(erro: OSError, destino: Path, bytes_: int) -> ErroDoUsuario:
    """O erro do sistema em palavras: disco cheio (quanto falta), arquivo grande demais, sem licença."""
    if erro.errno == errno.EFBIG or bytes_ > TETO_FAT32:
        return ErroDoUsuario(
            f"{destino.name} não cabe neste sistema de arquivos.",
            f"São {megabytes(bytes_)}, e um pen drive em FAT32 guarda arquivos de até 4 GB.",
            "Formate o pen drive em exFAT (apaga o que há nele), ou leve menos modelos.",
        )
    if erro.errno in SEM_LUGAR:
        return sem_espaco(destino.parent, bytes_)
    return ErroDoUsuario(
        f"Não consegui gravar {destino}.",
        f"O sistema respondeu: {erro.strerror or erro}.",
        "Confira se a pasta aceita arquivos (o pen drive pode estar travado para escrita).",
    )


def sem_espaco(pasta: Path, falta_escrever: int, livre: int | None = None) -> ErroDoUsuario:
    """O erro de disco cheio, com quanto falta. `livre` é medido agora, se não vier."""
    livre = espaco_livre(pasta) if livre is None else livre
    # O sistema pode recusar um pedaço que, pela conta, caberia: não se inventa quanto falta.
    por_que = f"O disco encheu durante a gravação; agora há {_mb_ou_kb(livre)} livres."
    if falta_escrever > livre:
        por_que = f"Faltam escrever {_mb_ou_kb(falta_escrever)} e há {_mb_ou_kb(livre)} livres: "
        por_que += f"faltam {_mb_ou_kb(falta_escrever - livre)}."
    return ErroDoUsuario(
        f"Não cabe em {pasta}.",
        por_que,
        "Libere espaço e rode de novo (o que já foi copiado se aproveita), "
        "ou leve menos com --modelos e --sem-wheels.",
    )


def _mb_ou_kb(n: int) -> str:
    # Num disco quase cheio a conta é pequena, e “faltam 0,0 MB” não diz nada.
    return megabytes(n) if n >= 100_000 else f"{-(-n // 1000)} kB"


def espaco_livre(pasta: Path) -> int:
    """Bytes livres no disco da pasta, que pode ainda não existir."""
    import shutil

    while not pasta.exists() and pasta != pasta.parent:
        pasta = pasta.parent
    return shutil.disk_usage(pasta).free
