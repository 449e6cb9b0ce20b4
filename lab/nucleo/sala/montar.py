"""Montar o pacote da aula: modelos do cache, repositório, wheels, LEIA-ME e, por fim, o manifesto.

Pode ser interrompida e retomada: enquanto o manifesto não existe, o pacote se diz incompleto; o que
já está na pasta com o sha256 certo não é copiado outra vez.
"""

import contextlib
import hashlib
import io
import os
import subprocess
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from nucleo.base import caminhos
from nucleo.base.arquivos import ao_lado, conferir_pasta
from nucleo.base.descida import tamanho
from nucleo.base.erros import ErroDoUsuario
from nucleo.base.unidades import contado, megabytes
from nucleo.sala import pacote
from nucleo.sala.maquina import AVISO, FALTA, OK, Item, verificar_gpt2
from nucleo.sala.pacote import Alvo, Arquivo, ModeloNoPacote, Progresso, mudo

# Sem git (uma cópia extraída de um pacote), o que nunca vai junto.
_FICA = {
    ".git", ".venv", "venv", "__pycache__", ".pytest_cache", ".hypothesis", ".ruff_cache",
    ".ipynb_checkpoints", "minhas_respostas", "corpus", "pacote", "pacote-baixado", ".vscode", ".idea",
}  # fmt: skip
_DO_GPT2 = ("config.json", pacote.PESOS)  # o tokenizador do GPT-2 vem no repositório
_DO_SMOLLM2 = (
    "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    "chat_template.jinja", "origem.json",
)  # fmt: skip


@dataclass(frozen=True)
class Fonte:
    """Um modelo pronto para ir: o que o manifesto dirá dele e {nome no pacote: arquivo daqui}."""

    modelo: ModeloNoPacote
    arquivos: dict[str, Path]


@dataclass(frozen=True)
class Pronto:
    """O pacote montado: bytes, impressão digital do manifesto e os itens para a tela."""

    bytes: int
    digital: str
    itens: list[Item]


# --- o que vai ---------------------------------------------------------------------------


def prontos() -> list[str]:
    """Os modelos que já estão nesta máquina, na ordem da casa."""
    from nucleo.modelos import fontes as modelos
    from nucleo.modelos import smollm2

    achados = [n for n in modelos.GPT2 if modelos.em_cache(n) or modelos.so_tabelas(n).is_file()]
    achados += ["smollm2"] if smollm2.convertido() else []
    return [*achados, "mini"]


def fonte(nome: str, inteiro: bool, trabalho: Path) -> Fonte | None:
    """De onde sai um modelo; None para o mini, que já vai no repositório.

    Do gpt2 (e dos pedidos com `inteiro`) vai o modelo todo; dos outros GPT-2, só wte e wpe, que é o
    que as lições leem deles. Erros: `ErroDoUsuario` se o modelo não estiver nesta máquina.
    """
    from nucleo.modelos import fontes as modelos
    from nucleo.modelos import smollm2

    if nome == "mini":
        return None
    if nome == "smollm2":
        pasta = smollm2.convertido()
        if pasta is None:
            raise _ausente(nome)
        achados = {n: pasta / n for n in _DO_SMOLLM2 if (pasta / n).is_file()}
        versao = pacote.sha256(pasta / "origem.json")[:40]
        return _fonte(nome, f"laboratorio/{nome}", versao, "convertido", achados)
    repo, todo = modelos.GPT2[nome], modelos.em_cache(nome)
    if inteiro or nome == "gpt2":
        if todo is None:
            raise _ausente(nome)
        pasta = todo.parent
        achados = {n: pasta / n for n in _DO_GPT2 if (pasta / n).is_file()}
        return _fonte(nome, repo, pasta.name, "inteiro", achados)
    tabelas = modelos.so_tabelas(nome)
    if not tabelas.is_file():
        if todo is None:
            raise _ausente(nome)
        tabelas = _recortar(todo, repo, trabalho / f"{nome}.safetensors")
    return _fonte(nome, repo, _versao(tabelas), "tabelas", {"model.safetensors": tabelas})


def _fonte(nome, repo, versao, forma, achados) -> Fonte:
    arquivos = {f"{pacote.MODELOS}/{nome}/{n}": onde for n, onde in achados.items()}
    return Fonte(ModeloNoPacote(nome, repo, versao, forma), arquivos)


def _ausente(nome: str) -> ErroDoUsuario:
    return ErroDoUsuario(
        f"O {nome} não está nesta máquina.",
        "O pacote leva os modelos que já foram preparados aqui.",
        f"Com internet, rode:  python lab/00_preparar.py --modelos {nome}",
    )


def _recortar(arquivo: Path, repo: str, destino: Path) -> Path:
    # O mesmo arquivo pequeno que hub.baixar_tensores faz, tirado do grande que já está aqui.
    from safetensors.numpy import save_file

    from nucleo.modelos import tensores

    cabecalho, nomes = tensores.ler_cabecalho(arquivo), ("wte.weight", "wpe.weight")
    tabelas = {n: tensores.ler(tensores.achar(cabecalho, n)[0]) for n in nomes}
    soma = sum(t.nbytes for t in tabelas.values())
    if soma > (livre := pacote.espaco_livre(destino.parent)):
        raise pacote.sem_espaco(destino.parent, soma, livre)
    ficha = {"format": "pt", "origem": repo, "versao": arquivo.parent.name}
    save_file(tabelas, destino, metadata=ficha)
    return destino


def _versao(tabelas: Path) -> str:
    # A versão do hub vem anotada no arquivo das tabelas.
    from safetensors import safe_open

    with safe_open(tabelas, framework="np") as f:
        return f.metadata()["versao"]


def arquivos_do_repositorio(raiz: Path = caminhos.RAIZ) -> list[str]:
    """Os caminhos que vão no laboratorio.zip: os que o git rastreia; sem git, tudo menos os caches."""
    nomes = [n for n in _git("ls-files", "-z", raiz=raiz).split("\0") if n]
    if not nomes:
        for pasta, subpastas, arquivos in os.walk(raiz):
            subpastas[:] = [s for s in subpastas if s not in _FICA]
            nomes += [(Path(pasta) / a).relative_to(raiz).as_posix() for a in arquivos]
        nomes = [n for n in nomes if not n.startswith("outputs/") or n == "outputs/LEIAME.md"]
    return sorted(n for n in nomes if (raiz / n).is_file() and not (raiz / n).is_symlink())


def comprimir_repositorio(raiz: Path = caminhos.RAIZ) -> bytes:
    """O laboratorio.zip: o mesmo repositório dá sempre os mesmos bytes (datas e ordem fixas)."""
    memoria = io.BytesIO()
    with zipfile.ZipFile(memoria, "w") as zip_:
        for nome in arquivos_do_repositorio(raiz):
            ficha = zipfile.ZipInfo(f"laboratorio/{nome}", (1980, 1, 1, 0, 0, 0))
            # Pesos e arquivos já comprimidos não encolhem: não se gasta tempo com eles.
            duro = nome.endswith((".safetensors", ".npz", ".png"))
            ficha.compress_type = zipfile.ZIP_STORED if duro else zipfile.ZIP_DEFLATED
            ficha.create_system = 3  # sem isto o zip mudaria com o sistema de quem o fez
            ficha.external_attr = 0o644 << 16
            zip_.writestr(ficha, (raiz / nome).read_bytes())
    return memoria.getvalue()


def _git(*opcoes: str, raiz: Path = caminhos.RAIZ) -> str:
    # "" sem git, ou fora de um repositório dele.
    with contextlib.suppress(OSError):
        feito = subprocess.run(["git", *opcoes], cwd=raiz, capture_output=True, encoding="utf-8")
        return feito.stdout.strip()
    return ""


# --- montar ------------------------------------------------------------------------------


def conferir_destino(destino: Path) -> None:
    """Recusa uma pasta com coisas de outra pessoa: a montagem apaga o que sobra de um pacote velho.

    Erros: `ErroDoUsuario`.
    """
    if destino.exists() and not destino.is_dir():
        raise ErroDoUsuario(
            f"{destino} é um arquivo.",
            "O pacote é uma pasta com vários arquivos.",
            "Escolha outro nome:  --pacote PASTA",
        )
    if destino.resolve() in (caminhos.RAIZ, *caminhos.RAIZ.parents):
        raise ErroDoUsuario(
            "O pacote cairia por cima do próprio laboratório.",
            f"{destino} contém o repositório.",
            "Use uma pasta à parte:  --pacote pacote",
        )
    nossa = any((destino / n).exists() for n in (pacote.MANIFESTO, pacote.INCOMPLETO))
    if not nossa and destino.is_dir() and list(pacote.listar(destino)):
        raise ErroDoUsuario(
            f"A pasta {destino} já tem outras coisas.",
            "Um pacote precisa de uma pasta só dele: ao instalar, arquivo a mais é recusado.",
            f'Use uma pasta nova dentro dela:  --pacote "{destino / "pacote"}"',
        )


def montar(
    destino: Path,
    nomes: list[str],
    completos: list[str],
    wheels: dict[Alvo, list],
    progresso: Progresso = mudo,
) -> Pronto:
    """Monta (ou retoma) o pacote em `destino`. `wheels` é {alvo: lista de nucleo.sala.wheels.Wheel}.

    Um alvo cujo download falhe fica de fora, e o `Pronto` devolvido diz isso. Erros:
    `ErroDoUsuario` se faltar modelo ou espaço, ou se a pasta não aceitar arquivos.
    """
    conferir_destino(destino)
    conferir_pasta(caminhos.cache(), "Aponte a variável LAB_CACHE para uma pasta sua.")
    with tempfile.TemporaryDirectory(dir=caminhos.cache()) as pasta:
        # Primeiro o que pode faltar: um pacote velho e inteiro não se desfaz por um modelo ausente.
        fontes = [
            fonte(n, n in completos, Path(pasta)) for n in dict.fromkeys([*nomes, *completos])
        ]
        fontes = [f for f in fontes if f]
        try:
            return _montar(destino, fontes, wheels, progresso)
        except OSError as erro:
            raise pacote.erro_de_disco(erro, Path(erro.filename or destino / "?"), 0) from None


def _montar(destino: Path, fontes: list[Fonte], wheels, progresso: Progresso) -> Pronto:
    itens = [i for f in fontes if f.modelo.forma == "inteiro" for i in _estranho(f)]
    # O espaço se confere antes de tudo: descobrir no fim custa a espera, e o pacote velho.
    zip_ = comprimir_repositorio()
    _conferir_espaco(destino, fontes, wheels, len(zip_))
    recado = "A montagem deste pacote não terminou. Rode o mesmo comando de novo.\n"
    destino.mkdir(parents=True, exist_ok=True)
    (destino / pacote.INCOMPLETO).write_text(recado, encoding="utf-8", newline="\n")
    (destino / pacote.MANIFESTO).unlink(missing_ok=True)
    arquivos, recados = _copiar_modelos(destino, fontes, progresso)
    itens += recados
    arquivos[pacote.REPOSITORIO] = _gravar(destino / pacote.REPOSITORIO, zip_)
    levados, recados = _baixar_wheels(destino, wheels, arquivos, progresso)
    itens += recados
    texto = leiame([f.modelo for f in fontes], list(levados))
    arquivos[pacote.LEIAME] = _gravar(destino / pacote.LEIAME, texto.encode("utf-8"))
    itens += _tirar_sobras(destino, set(arquivos))
    commit = _git("describe", "--always", "--dirty") or "sem git"
    bruto = pacote.escrever_manifesto(
        time.strftime("%Y-%m-%d"), commit, [f.modelo for f in fontes], levados, arquivos
    )
    _gravar(destino / pacote.MANIFESTO, bruto)
    (destino / pacote.INCOMPLETO).unlink()
    manifesto = pacote.ler_manifesto(bruto)
    return Pronto(manifesto.soma() + len(bruto), manifesto.digital, itens)


def _estranho(f: Fonte) -> list[Item]:
    # Quarenta pessoas com o modelo errado é pior que uma: o aviso sai na montagem.
    pesos = f.arquivos[f"{pacote.MODELOS}/{f.modelo.nome}/{pacote.PESOS}"]
    problema = verificar_gpt2(f.modelo.nome, pesos)
    cura = f"não distribua: apague {pesos.resolve()} e baixe de novo"
    return [Item(AVISO, f"{f.modelo.nome}: {problema}", cura)] if problema else []


def _conferir_espaco(destino: Path, fontes: list[Fonte], wheels, zip_: int) -> None:
    # Só conta o que ainda não está lá com o mesmo tamanho; `zip_`, em bytes.
    vao = {n: onde.stat().st_size for f in fontes for n, onde in f.arquivos.items()}
    vao[pacote.REPOSITORIO] = zip_
    falta = sum(b for n, b in vao.items() if tamanho(destino / n) != b)
    dos_wheels = {w.arquivo: w.bytes for lista in wheels.values() for w in lista}
    falta += sum(b for n, b in dos_wheels.items() if not (destino / pacote.WHEELS / n).is_file())
    if falta > (livre := pacote.espaco_livre(destino)):
        raise pacote.sem_espaco(destino, falta, livre)


def _copiar_modelos(destino, fontes: list[Fonte], progresso: Progresso):
    todos = {nome: onde for f in fontes for nome, onde in f.arquivos.items()}
    tamanhos = {nome: onde.stat().st_size for nome, onde in todos.items()}
    nao_cabe = "{} tem {}: não cabe num pen drive em FAT32"
    itens = [
        Item(AVISO, nao_cabe.format(n, megabytes(b)), "formate-o em exFAT")
        for n, b in tamanhos.items()
        if b > pacote.TETO_FAT32
    ]
    feitos, avanco = {}, pacote.somando("copiando os modelos", sum(tamanhos.values()), progresso)
    for nome, onde in todos.items():
        alvo = destino / nome
        if tamanho(alvo) == tamanhos[nome]:
            daqui = Arquivo(tamanhos[nome], pacote.sha256(onde))
            if pacote.ja_esta(alvo, daqui):
                feitos[nome] = daqui
                avanco(daqui.bytes)
                continue
        feitos[nome] = pacote.copiar(onde, alvo, avanco)
    return feitos, itens


def _baixar_wheels(destino, wheels: dict[Alvo, list], arquivos: dict, progresso: Progresso):
    from nucleo.sala import wheels as w

    levados, itens, pasta = {}, [], destino / pacote.WHEELS
    for alvo, lista in wheels.items():
        try:
            nomes = w.baixar(lista, pasta, alvo, progresso)
        except ErroDoUsuario as erro:
            itens.append(Item(FALTA, f"de fora: {erro.o_que} {erro.por_que}", erro.o_que_fazer))
            continue
        caminhos_ = [f"{pacote.WHEELS}/{n}" for n in nomes]
        for c in caminhos_:
            if c not in arquivos:
                arquivos[c] = Arquivo((destino / c).stat().st_size, pacote.sha256(destino / c))
        levados[alvo] = caminhos_
        soma = megabytes(sum(arquivos[c].bytes for c in caminhos_))
        itens.append(Item(OK, f"wheels para {alvo}: {len(nomes)} arquivos, {soma}"))
    return levados, itens


def _gravar(destino: Path, conteudo: bytes) -> Arquivo:
    feito = Arquivo(len(conteudo), hashlib.sha256(conteudo).hexdigest())
    if not pacote.ja_esta(destino, feito):
        try:
            with ao_lado(destino) as parcial:
                parcial.write_bytes(conteudo)
        except OSError as erro:
            raise pacote.erro_de_disco(erro, destino, len(conteudo)) from None
    return feito


def _tirar_sobras(destino: Path, ficam: set[str]) -> list[Item]:
    # Só numa pasta que já era um pacote (conferir_destino): modelos e wheels de uma montagem antiga,
    # e pedaços de uma cópia morta à força. O que sai é dito.
    saem = [r for r in pacote.listar(destino) if r not in ficam | {pacote.INCOMPLETO}]
    soma = sum((destino / r).stat().st_size for r in saem)
    for relativo in saem:
        (destino / relativo).unlink()
    for raiz, _, _ in sorted(os.walk(destino), reverse=True):
        if Path(raiz) != destino and not os.listdir(raiz):
            os.rmdir(raiz)
    dito = f"saiu do pacote o que não foi pedido agora: {contado(len(saem), 'arquivo')}"
    cura = "se fazia falta, monte de novo com ele: o que já está na pasta se aproveita"
    return [Item(AVISO, f"{dito}, {megabytes(soma)}", cura)] if saem else []


# --- o LEIA-ME ---------------------------------------------------------------------------

_FORMAS = {
    "inteiro": "inteiro",
    "tabelas": "só as tabelas wte e wpe, que é o que as lições leem dele",
    "convertido": "inteiro, já convertido",
}


def leiame(modelos: list[ModeloNoPacote], alvos: list[Alvo]) -> str:
    """O texto do LEIA-ME.txt: os dois comandos e o que há neste pacote."""
    return pacote.molde("LEIA-ME.txt", modelos=modelos, alvos=alvos, formas=_FORMAS)
