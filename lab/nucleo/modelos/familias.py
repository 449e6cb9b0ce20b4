"""O que o laboratório sabe de cada família de modelos, num lugar só.

Quem escreve sobre um modelo (onde mora a wte, como entra a posição, o que se faz à linha antes do
primeiro bloco e aos logits no fim) lê daqui. Uma família que não está neste registro é dita
desconhecida: dela se mostra o que as tabelas mostram, e mais nada. Cada ficha é conferida nos testes
contra o modelo da biblioteca, montado com pesos sorteados.
"""

from dataclasses import dataclass

from nucleo.base.unidades import decimal

# Os jeitos de dar posição que o registro conhece.
TABELA, SENOIDES, ROPE, ALIBI, VIES_T5 = "tabela", "senoides", "rope", "alibi", "vies_t5"


@dataclass(frozen=True)
class Giro:
    """O RoPE de um modelo: das `cabeca` coordenadas de cada cabeça, as `dimensoes` primeiras giram.

    `pareamento`: "metades" ou "intercalado". `paradas`: as camadas que não giram (NoPE).
    """

    cabeca: int
    dimensoes: int
    pareamento: str = "metades"
    paradas: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ficha:
    """O que um modelo faz na entrada, na atenção (só a posição) e na saída.

    Os nomes de tensores são o fim do nome, a partir do mesmo começo que o da wte.

    h₀ = norma(vezes · linha + wpe[posição + primeira] + tipo), e `projecao` onde a largura da tabela não
    é a dos blocos: `projeta_antes` da soma (OPT) ou depois de tudo (ELECTRA, ALBERT).
    logits = teto · tanh(logits_vezes · (h_final · Sᵀ + viés) / teto), com S a matriz de saída.
    """

    familia: str
    conhecida: bool = True
    posicao: str = ""
    wte: tuple[str, ...] = ()
    wpe: str = ""
    primeira: int = 0
    relativa: bool = False  # além da tabela, um viés por distância (MPNet)
    vezes: float = 1.0
    tipo: str = ""  # a tabela de tipos de frase: a linha 0 entra na soma
    norma: str = ""
    eps: float = 0.0
    projecao: str = ""
    projeta_antes: bool = False
    centra: bool = False  # a norma final é uma LayerNorm (tira a média); senão, uma RMSNorm
    mais_um: bool = False  # e a escala dela é 1 + peso (Gemma)
    logits_vezes: float = 1.0
    teto: float | None = None
    codificador: bool = False  # lê a frase inteira de uma vez: não prevê o próximo token
    classe: str = ""  # quem o monta no transformers, se não for o AutoModel do seu tipo
    amarra: bool | None = None  # o padrão da biblioteca, se o config.json não disser
    giro: Giro | None = None

    @property
    def formula(self) -> str:
        """A conta da entrada, em uma linha: "h₀ = 8 · linha"; "h₀ = ?" se a família é desconhecida."""
        if not self.conhecida:
            return "h₀ = ?"
        linha = "linha" if self.vezes == 1 else f"{_numero(self.vezes)} · linha"
        if self.projecao and self.projeta_antes:
            linha = f"P · {linha}" if self.vezes == 1 else f"P · ({linha})"
        partes = [linha]
        if self.posicao in (TABELA, SENOIDES):
            partes.append(f"wpe[posição + {self.primeira}]" if self.primeira else "wpe[posição]")
        if self.tipo:
            partes.append("tipo[0]")
        soma = " + ".join(partes)
        if self.norma:
            soma = f"LayerNorm({soma})"
        if self.projecao and not self.projeta_antes:
            soma = f"P · {soma} + p"
        return f"h₀ = {soma}"

    @property
    def so_a_linha(self) -> bool:
        """True se a entrada é a linha da wte e mais nada (nem posição, nem fator, nem norma)."""
        return self.conhecida and self.formula == "h₀ = linha"

    @property
    def formula_dos_logits(self) -> str:
        """A conta da saída, com S a matriz de saída: "logits = h_final · Sᵀ / 8"."""
        conta = "h_final · Sᵀ"
        if self.logits_vezes != 1:
            inverso = 1 / self.logits_vezes
            inteiro = abs(inverso - round(inverso)) < 1e-9
            conta += f" / {round(inverso)}" if inteiro else f" · {_numero(self.logits_vezes)}"
        if self.teto:
            teto = _numero(self.teto)
            conta = f"{teto} · tanh({conta} / {teto})"
        return f"logits = {conta}"

    @property
    def frase_da_posicao(self) -> str:
        """Como a posição entra neste modelo, numa oração sem sujeito: "gira Q e K (RoPE…)"."""
        if self.posicao == ROPE:
            g = self.giro
            parte = f", {g.dimensoes} das {g.cabeca} coordenadas de cada cabeça"
            oracao = "gira Q e K (RoPE, apostila 06, 6.6" + parte * (g.dimensoes < g.cabeca) + ")"
            if g.paradas:
                oracao += f", menos em {len(g.paradas)} camada(s), que não recebem posição"
            return oracao
        if self.posicao == ALIBI:
            return "soma a cada q·k um desconto que cresce com a distância (ALiBi), sem girar nada"
        if self.posicao == VIES_T5:
            return (
                "soma a cada q·k um número aprendido por faixa de distância (o viés relativo do T5)"
            )
        if self.posicao in (TABELA, SENOIDES):
            feita = "aprendida" if self.posicao == TABELA else "de senoides"
            oracao = f"soma à linha uma tabela {feita} de posições, a wpe"
            if self.primeira:
                oracao += f", a partir da linha {self.primeira}"
            if self.relativa:
                oracao += ", e ainda um viés por distância a cada q·k"
            return oracao
        return f"é da família {self.familia or 'sem nome'}, que o laboratório não conhece"


# --- o registro ---------------------------------------------------------------------------

_GPT2 = {"wte": ("wte.weight",), "posicao": TABELA, "wpe": "wpe.weight", "amarra": True}
_GPT2 |= {"centra": True}
_LLAMA = {"wte": ("embed_tokens.weight",), "posicao": ROPE, "amarra": False}
_LLAMA_LN = _LLAMA | {"centra": True}
_GEMMA = _LLAMA | {"amarra": True, "vezes": "raiz", "mais_um": True}
_OPT = {"wte": ("embed_tokens.weight",), "posicao": TABELA, "wpe": "embed_positions.weight"}
_OPT |= {"primeira": 2, "amarra": True, "centra": True}
_BERT = {"wte": ("embeddings.word_embeddings.weight",), "posicao": TABELA, "codificador": True}
_BERT |= {"wpe": "embeddings.position_embeddings.weight", "norma": "embeddings.LayerNorm"}
_BERT |= {"eps": ("layer_norm_eps", 1e-12), "amarra": True}
_COM_TIPO = _BERT | {"tipo": "embeddings.token_type_embeddings.weight"}
_ROBERTA = _COM_TIPO | {"primeira": "depois do enchimento"}

_FAMILIAS: dict[str, dict] = {
    "gpt2": _GPT2,
    "gpt_neo": _GPT2,
    "gpt_bigcode": _GPT2,
    "gptj": _LLAMA_LN | {"wte": ("wte.weight",), "pares": "intercalado"},
    "gpt_neox": _LLAMA_LN | {"wte": ("embed_in.weight",), "parte": 0.25},
    "opt": _OPT | {"projecao": "project_in", "projeta_antes": True},
    "biogpt": _OPT | {"vezes": "raiz"},
    "bloom": {
        "wte": ("word_embeddings.weight",), "posicao": ALIBI, "amarra": True, "centra": True,
        "norma": "word_embeddings_layernorm", "eps": ("layer_norm_epsilon", 1e-5),
    },
    "mpt": {"wte": ("wte.weight",), "posicao": ALIBI, "amarra": True, "centra": True},
    "falcon": _LLAMA_LN | {"wte": ("word_embeddings.weight",), "amarra": True},
    "llama": _LLAMA, "mistral": _LLAMA, "qwen2": _LLAMA, "qwen3": _LLAMA, "olmo2": _LLAMA,
    "granite": _LLAMA, "phi3": _LLAMA, "phi": _LLAMA_LN | {"parte": 0.5},
    "stablelm": _LLAMA_LN | {"parte": 0.25}, "smollm3": _LLAMA | {"amarra": True},
    "gemma": _GEMMA, "gemma2": _GEMMA | {"teto": 30.0}, "gemma3_text": _GEMMA, "gemma3": _GEMMA,
    "cohere": _LLAMA_LN | {"amarra": True, "pares": "intercalado"},
    "bert": _COM_TIPO, "electra": _COM_TIPO | {"projecao": "embeddings_project"},
    "albert": _COM_TIPO | {"projecao": "encoder.embedding_hidden_mapping_in"},
    "distilbert": _BERT | {"eps": ("", 1e-12)},
    "roberta": _ROBERTA, "xlm-roberta": _ROBERTA, "camembert": _ROBERTA,
    "mpnet": _BERT | {"primeira": 2, "relativa": True},
    "modernbert": {
        "wte": ("embeddings.tok_embeddings.weight",), "posicao": ROPE, "amarra": True,
        "codificador": True, "norma": "embeddings.norm", "eps": ("norm_eps", 1e-5),
    },
    "t5": {
        "wte": ("shared.weight", "encoder.embed_tokens.weight"), "posicao": VIES_T5,
        "codificador": True, "classe": "T5EncoderModel",
    },
}  # fmt: skip

CONHECIDAS = tuple(_FAMILIAS)


def da_config(config: dict) -> Ficha:
    """A ficha do modelo que o config.json descreve; `conhecida=False` se a família não está no registro."""
    familia = str(config.get("model_type") or "")
    dados = dict(_FAMILIAS.get(familia, {}))
    # Um BERT que guarda só distâncias não soma a tabela: é outro modelo, com o mesmo nome.
    if not dados or config.get("position_embedding_type", "absolute") != "absolute":
        return Ficha(familia, conhecida=False)
    try:
        return _ler(familia, dados, config)
    except (TypeError, ValueError, ZeroDivisionError, AttributeError):
        return Ficha(familia, conhecida=False)  # um config sem os números que a ficha pede


def _ler(familia: str, dados: dict, config: dict) -> Ficha:
    largura = _de(config, "hidden_size", "n_embd", "d_model", "dim")
    pares, parte = dados.pop("pares", "metades"), dados.pop("parte", 1.0)
    if dados.get("vezes") == "raiz":
        escala = familia != "biogpt" or config.get("scale_embedding", True)
        dados["vezes"] = float(largura) ** 0.5 if escala else 1.0
    if dados.get("primeira") == "depois do enchimento":
        enchimento = config.get("pad_token_id")  # 0 é um id de verdade; só a falta vale o padrão, 1
        dados["primeira"] = 1 + (1 if enchimento is None else int(enchimento))
    if "eps" in dados:
        chave, padrao = dados["eps"]
        dados["eps"] = float(config.get(chave, padrao))
    if familia == "granite":
        dados["vezes"] = float(config.get("embedding_multiplier", 1.0))
        dados["logits_vezes"] = 1 / float(config.get("logits_scaling", 1.0))
    if familia == "cohere":
        dados["logits_vezes"] = float(config.get("logit_scale", 0.0625))
    if familia.startswith(("gemma2", "gemma3")):
        teto = config.get("final_logit_softcapping", dados.get("teto"))
        dados["teto"] = None if teto is None else float(teto)
    if familia == "falcon" and config.get("alibi"):
        dados["posicao"] = ALIBI
    if familia == "distilbert" and config.get("sinusoidal_pos_embds"):
        dados["posicao"] = SENOIDES  # guardadas na mesma tabela, e nunca treinadas
    # A projeção só existe onde a tabela é mais estreita (ou mais larga) que os blocos.
    estreita = _de(config, "word_embed_proj_dim", "embedding_size", padrao=largura)
    if familia in ("opt", "electra") and estreita == largura:
        dados["projecao"] = ""
    if dados["posicao"] == ROPE:
        dados["giro"] = _giro(familia, config, int(largura), pares, parte)
    return Ficha(familia, **dados)


def _giro(familia: str, config: dict, largura: int, pares: str, parte: float) -> Giro:
    camadas = _de(config, "num_hidden_layers", "n_layer")
    cabecas = _de(config, "num_attention_heads", "n_head")
    cabeca = int(config.get("head_dim") or int(largura) // int(cabecas))
    if familia == "gptj":
        giram = config.get("rotary_dim", 64) or cabeca
    else:
        de_dentro = config.get("rope_parameters") or config.get("rope_scaling") or {}
        antigas = config.get("partial_rotary_factor", config.get("rotary_pct"))
        fator = de_dentro.get("partial_rotary_factor", antigas)
        giram = int(cabeca * float(parte if fator is None else fator))
    paradas: tuple[int, ...] = ()
    if familia == "smollm3":
        passo = int(config.get("no_rope_layer_interval", 4))
        giram_nelas = config.get("no_rope_layers") or [
            int((i + 1) % passo != 0) for i in range(int(camadas))
        ]
        paradas = tuple(i for i, gira in enumerate(giram_nelas) if not gira)
    return Giro(cabeca, int(giram), pares, paradas)


def _de(config: dict, *chaves: str, padrao=None):
    return next((config[c] for c in chaves if config.get(c) is not None), padrao)


def _numero(x: float) -> str:
    return str(round(x)) if abs(x - round(x)) < 1e-9 else decimal(x, 4)
