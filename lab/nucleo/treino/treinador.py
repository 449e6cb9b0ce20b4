"""Treinar um GPT-2 pequeno: do texto cru ao modelo, passo a passo.

Tudo o que `02_treino.py` (a lição) e `treinar_mini.py` (que fez `data/mini`) usam está aqui:
ler e limpar um corpus, separar o que o modelo nunca verá, treinar o BPE, montar o GPT-2 do
transformers, dar os passos e medir. Nada imprime: `Treino.passos()` é um gerador, e quem chama
desenha a barra.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from nucleo.base.erros import ErroDoUsuario
from nucleo.contas import tabela_posicoes
from nucleo.treino.muon import Muon

FIM = "<|endoftext|>"  # o mesmo separador do GPT-2: marca onde uma obra acaba e outra começa

# Obras que `data/mini` nunca viu: uma por gênero, inteiras, para que nenhuma frase delas
# apareça no treino do BPE nem no do modelo. Nenhuma é coletânea de textos que estejam em outra.
OBRAS_DE_FORA = (
    "conto/reliquias",
    "critica/primoBasilio",
    "cronica/bonsDias",
    "poesia/almada",
    "romance/casaVelha",
    "teatro/quaseMinistros",
)


# ------------------------------------------------------------------------------ o corpus


@dataclass(frozen=True)
class Obra:
    """Uma obra já limpa: `nome` é o caminho relativo sem extensão, `texto` tem um parágrafo
    (ou verso) por linha."""

    nome: str
    texto: str


def _sem_indice(linhas: list[str]) -> list[str]:
    """Tira o índice impresso no começo do livro: os títulos se repetem depois, no lugar deles.

    O índice acaba quando o primeiro título aparece de novo (é o capítulo em si) ou quando vem
    uma linha que não volta a aparecer no resto do arquivo.
    """
    saida: list[str] = []
    i = 0
    while i < len(linhas):
        if linhas[i].upper() not in ("ÍNDICE", "INDICE"):
            saida.append(linhas[i])
            i += 1
            continue
        i += 1
        primeiro = linhas[i] if i < len(linhas) else None
        depois = set(linhas[i + 1 :])
        vistos = 0
        while i < len(linhas) and linhas[i] in depois and not (vistos and linhas[i] == primeiro):
            vistos += 1
            i += 1
    return saida


def juntar_linhas(texto: str) -> str:
    """Desfaz a quebra de linhas da página impressa: devolve um parágrafo (ou verso) por linha.

    Os textos vêm cortados na largura da página e sem linha em branco entre parágrafos. Uma
    linha continua na seguinte quando encheu a página (tem ao menos 78 % da largura típica) ou
    quando a frase não acabou e a próxima começa em minúscula. Versos são curtos e ficam como
    estão; títulos (tudo em maiúsculas) ficam sozinhos; fala de diálogo (travessão) abre
    parágrafo se a linha anterior não estava cheia ou terminou a frase.
    """
    linhas = [" ".join(linha.split()) for linha in texto.lstrip("\ufeff").splitlines()]
    linhas = _sem_indice([linha for linha in linhas if linha])
    if not linhas:
        return ""
    comprimentos = sorted(len(linha) for linha in linhas)
    # Largura da página: o 9º decil; nunca menos de 60, senão verso curto passaria por prosa.
    largura = max(60, comprimentos[len(comprimentos) * 9 // 10])
    paragrafos: list[str] = []
    aberto = False  # a última linha guardada ainda espera continuação?
    anterior = ""
    for linha in linhas:
        titulo = linha == linha.upper() and any(c.isalpha() for c in linha)
        acabou = bool(re.search(r"[.!?…:”\"”)]$", anterior))
        fala = linha.startswith(("—", "―", "–"))
        cheia = aberto and not (fala and acabou)
        # Linha curta que para no meio da frase: quebra de página dentro do parágrafo.
        no_meio = anterior and not acabou and linha[0].islower() and largura > 60
        if paragrafos and not titulo and (cheia or (no_meio and len(anterior) > largura // 2)):
            paragrafos[-1] += " " + linha
        else:
            paragrafos.append(linha)
        aberto = not titulo and len(linha) >= 0.78 * largura
        anterior = "" if titulo else linha
    return "\n".join(paragrafos)


def ler_corpus(pasta: str | Path) -> list[Obra]:
    """Lê todos os `.txt` de uma pasta (e de suas subpastas), limpos, em ordem alfabética.

    Arquivos chamados LEIAME ou README ficam de fora. Levanta `ErroDoUsuario` se a pasta não
    existe, não tem `.txt`, ou se um arquivo não abre, está vazio ou não é UTF-8.
    """
    pasta = Path(pasta)
    comando = "Passe a pasta onde estão os .txt: --corpus PASTA"
    if not pasta.is_dir():
        por_que = "O caminho é um arquivo." if pasta.exists() else "Essa pasta não existe."
        raise ErroDoUsuario(f"Não achei o corpus em {pasta}.", por_que, comando)
    obras = []
    for arquivo in sorted(pasta.rglob("*.txt")):
        # Um FIFO com nome de texto faria a leitura esperar para sempre.
        if arquivo.stem.upper() in ("LEIAME", "README") or not arquivo.is_file():
            continue
        nome = arquivo.relative_to(pasta).with_suffix("").as_posix()
        try:
            dados = arquivo.read_bytes()
        except OSError as erro:
            raise ErroDoUsuario(
                f"Não consegui ler {arquivo}.",
                f"O sistema respondeu: {erro.strerror or erro}.",
                "Confira a permissão do arquivo, ou tire-o da pasta do corpus.",
            ) from erro
        try:
            bruto = dados.decode("utf-8")
        except UnicodeDecodeError as erro:
            raise ErroDoUsuario(
                f"O arquivo {arquivo} não está em UTF-8.",
                f"O byte {erro.start} vale 0x{dados[erro.start]:02x}; deve ser Latin-1"
                " (Windows-1252), comum em textos antigos.",
                f"Converta-o: iconv -f latin1 -t utf-8 {arquivo.name} > novo.txt"
                " (ou, no editor, salve como UTF-8).",
            ) from erro
        texto = juntar_linhas(bruto)
        if not texto:
            raise ErroDoUsuario(
                f"O arquivo {arquivo} está vazio.",
                "Não há nenhuma letra nele para o modelo aprender.",
                "Tire-o da pasta do corpus, ou ponha o texto nele.",
            )
        obras.append(Obra(nome, texto))
    if not obras:
        raise ErroDoUsuario(
            f"A pasta {pasta} não tem nenhum arquivo .txt.",
            "O corpus é uma pasta de textos puros (.txt, UTF-8), em subpastas ou não.",
            comando,
        )
    return obras


def separar(
    obras: Sequence[Obra], de_fora: Sequence[str] = OBRAS_DE_FORA, fracao: float = 0.05
) -> tuple[list[Obra], list[Obra], str]:
    """Divide o corpus em (treino, validação, regra usada, em uma frase).

    Se as obras de `de_fora` estão no corpus, são elas a validação: obras inteiras. Num corpus
    qualquer, a validação são os últimos `fracao` de cada obra, cortados em fim de parágrafo:
    blocos contíguos, sempre os mesmos.
    """
    nomes = {obra.nome for obra in obras}
    if all(nome in nomes for nome in de_fora) and len(nomes) > len(de_fora):
        treino = [obra for obra in obras if obra.nome not in de_fora]
        validacao = [obra for obra in obras if obra.nome in de_fora]
        return treino, validacao, "obras inteiras: " + ", ".join(de_fora)
    treino, validacao = [], []
    for obra in obras:
        alvo = int(len(obra.texto) * (1 - fracao))
        corte = obra.texto.rfind("\n", 0, alvo)
        corte = corte if corte > 0 else alvo
        treino.append(Obra(obra.nome, obra.texto[:corte]))
        validacao.append(Obra(obra.nome, obra.texto[corte:].lstrip("\n")))
    return treino, validacao, f"os últimos {fracao:.0%} de cada arquivo"


# ---------------------------------------------------------------------------- o tokenizer


def treinar_bpe(textos: Sequence[str], vocabulario: int = 8192):
    """Treina um BPE sobre bytes, como o do GPT-2, e devolve o `tokenizers.Tokenizer`.

    O token 0 é `<|endoftext|>`; os 256 seguintes são os bytes; o resto, as junções aprendidas.
    Levanta `ErroDoUsuario` se o texto é pouco para tantos tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.post_processor = processors.ByteLevel(trim_offsets=False)
    treinador = trainers.BpeTrainer(
        vocab_size=vocabulario,
        min_frequency=2,
        special_tokens=[FIM],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(textos, trainer=treinador)
    if bpe.get_vocab_size() < vocabulario:
        raise ErroDoUsuario(
            f"O corpus só dá {bpe.get_vocab_size()} tokens, e o modelo pede {vocabulario}.",
            "Há texto de menos: acabaram os pares de tokens que se repetem.",
            "Junte mais textos à pasta do corpus, ou peça menos tokens.",
        )
    return bpe


def codificar(bpe, obras: Sequence[Obra]) -> np.ndarray:
    """As obras em uma só fita de ids, cada uma aberta por `<|endoftext|>`: (n,) int32."""
    fim = bpe.token_to_id(FIM)
    fita: list[int] = []
    for codigo in bpe.encode_batch([obra.texto for obra in obras]):
        fita.append(fim)
        fita.extend(codigo.ids)
    return np.array(fita, dtype=np.int32)


# ------------------------------------------------------------------------------- o modelo


def novo_gpt2(
    vocabulario: int,
    d: int,
    camadas: int,
    cabecas: int,
    posicoes: int,
    semente: int,
    dropout: float = 0.0,
    amarrado: bool = True,
):
    """Um `GPT2LMHeadModel` recém-sorteado. `amarrado=False` dá ao lm_head uma matriz só dele.

    Solta, a matriz do lm_head nasce cópia da wte: com a mesma semente, o modelo amarrado e o solto
    partem do mesmo ponto, e o que os separa depois é só o treino.

    A wpe nasce com desvio 0,01, metade do da wte, como no código original do GPT-2 da OpenAI
    (o transformers usa 0,02 nas duas). O dropout não entra na atenção, para que ela possa usar
    o caminho rápido da CPU.
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=vocabulario,
        n_positions=posicoes,
        n_embd=d,
        n_layer=camadas,
        n_head=cabecas,
        embd_pdrop=dropout,
        resid_pdrop=dropout,
        attn_pdrop=0.0,
        # A mesma conta do gelu_new do GPT-2, numa só operação em vez de oito.
        activation_function="gelu_pytorch_tanh",
        tie_word_embeddings=amarrado,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    torch.manual_seed(semente)
    modelo = GPT2LMHeadModel(config)
    sorteio = torch.Generator().manual_seed(semente)
    with torch.no_grad():
        modelo.transformer.wpe.weight.normal_(0.0, 0.01, generator=sorteio)
        if not amarrado:
            modelo.lm_head.weight.copy_(modelo.transformer.wte.weight)
    return modelo


def perda(modelo, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Entropia cruzada média, em nats por token. x, y: (B, T) ids -> escalar."""
    h = modelo.transformer(input_ids=x, use_cache=False).last_hidden_state  # (B, T) -> (B, T, d)
    logits = modelo.lm_head(h)  # (B, T, d) -> (B, T, V)
    return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())


# ------------------------------------------------------------------------------- o treino


@dataclass
class Receita:
    """Tudo o que decide um treino. Mesma receita e mesmos dados: mesmos pesos."""

    passos: int
    lote: int = 16  # sequências por passo
    contexto: int = 256  # tokens por sequência
    taxa: float = 3e-3  # a taxa de aprendizado no platô
    aquecimento: int = 200  # passos até chegar a ela
    descida: float = 0.4  # fração final do treino em que a taxa desce em linha reta até 0
    decaimento: float = 0.1  # weight decay das matrizes; wpe, normas e vieses não levam nenhum
    betas: tuple[float, float] = (0.9, 0.99)
    corte: float = 1.0  # norma máxima do gradiente
    semente: int = 2
    bf16: bool = False  # autocast em bfloat16 (pesos e otimizador seguem em float32)
    compilar: bool = False  # torch.compile: precisa de um compilador C++
    muon: float = 0.0  # a taxa do Muon nas matrizes dos blocos; 0: AdamW em tudo

    def taxa_no_passo(self, passo: int) -> float:
        """A taxa do passo (0 é o primeiro): sobe em linha reta, platô, desce até quase 0."""
        if passo < self.aquecimento:
            return self.taxa * (passo + 1) / self.aquecimento
        inicio = self.passos - int(self.passos * self.descida)
        if passo < inicio:
            return self.taxa
        return self.taxa * (self.passos - passo) / max(1, self.passos - inicio)


@dataclass
class Passo:
    """O que um passo conta: `perda` em nats por token, `tokens` vistos até aqui."""

    passo: int
    perda: float
    taxa: float
    tokens: int
    tokens_por_s: float


def grupos_de_parametros(modelo, decaimento: float, menos: Sequence = ()) -> list[dict]:
    """Os parâmetros em dois grupos: matrizes, que decaem; wpe, normas e vieses, que não.

    Decair a wpe a mata: seu gradiente é pequeno e a estrutura não chega a nascer. `menos` são os
    parâmetros que ficam de fora, porque outro otimizador cuida deles.
    """
    fora = {id(p) for p in menos}
    decaem, livres = [], []
    for nome, p in modelo.named_parameters():
        if id(p) not in fora:
            (livres if p.ndim < 2 or nome.endswith("wpe.weight") else decaem).append(p)
    return [
        {"params": decaem, "weight_decay": decaimento},
        {"params": livres, "weight_decay": 0.0},
    ]


class Treino:
    """Um treino que se pode interromper e retomar: dados, modelo, otimizador e passo.

    O lote e o dropout de cada passo dependem só da semente e do número do passo; por isso
    retomar do meio dá o mesmo que ir direto.
    """

    def __init__(self, modelo, fita: np.ndarray, receita: Receita):
        if len(fita) < receita.contexto + 2:
            raise ErroDoUsuario(
                f"O texto tem {len(fita)} tokens, e uma só janela pede {receita.contexto + 1}.",
                "Não dá para treinar com menos de uma janela de texto.",
                "Junte mais textos à pasta do corpus.",
            )
        self.modelo, self.receita = modelo, receita
        self.fita = torch.from_numpy(np.ascontiguousarray(fita).astype(np.int64))
        self.passo = 0
        # Do Muon são as matrizes de dentro dos blocos: têm o número da camada no nome.
        camada, nomeados = re.compile(r"\.\d+\."), modelo.named_parameters()
        do_muon = [
            p for nome, p in nomeados if receita.muon and p.ndim == 2 and camada.search(nome)
        ]
        adamw = torch.optim.AdamW(
            grupos_de_parametros(modelo, receita.decaimento, menos=do_muon),
            lr=receita.taxa,
            betas=receita.betas,
            fused=True,
        )
        self.otimizadores = [(adamw, 1.0)]  # cada um com a sua taxa, em vezes a da receita
        if do_muon:
            muon = Muon(do_muon, lr=receita.muon, weight_decay=receita.decaimento)
            self.otimizadores.append((muon, receita.muon / receita.taxa))
        self._perda = torch.compile(perda) if receita.compilar else perda

    def lote(self, passo: int) -> tuple[torch.Tensor, torch.Tensor]:
        """O lote do passo: janelas contíguas em pontos sorteados da fita. -> (B, T), (B, T)."""
        r = self.receita
        sorteio = np.random.default_rng([r.semente, passo])
        inicios = sorteio.integers(0, len(self.fita) - r.contexto, size=r.lote)
        janelas = torch.stack([self.fita[i : i + r.contexto + 1] for i in inicios])
        return janelas[:, :-1].contiguous(), janelas[:, 1:].contiguous()  # (B, T+1) -> (B, T)

    def um_passo(self) -> Passo:
        """Dá um passo: lote, perda, gradiente, otimizador."""
        r, inicio = self.receita, time.perf_counter()
        taxa = r.taxa_no_passo(self.passo)
        for otimizador, vezes in self.otimizadores:
            for grupo in otimizador.param_groups:
                grupo["lr"] = taxa * vezes  # todos sobem e descem juntos
        torch.manual_seed(r.semente * 1_000_003 + self.passo)  # o dropout deste passo
        self.modelo.train()
        x, y = self.lote(self.passo)
        with torch.autocast("cpu", torch.bfloat16, enabled=r.bf16):
            valor = self._perda(self.modelo, x, y)
        valor.backward()
        torch.nn.utils.clip_grad_norm_(self.modelo.parameters(), r.corte)
        for otimizador, _ in self.otimizadores:
            otimizador.step()
            otimizador.zero_grad(set_to_none=True)
        self.passo += 1
        ritmo = x.numel() / (time.perf_counter() - inicio)
        return Passo(self.passo, valor.item(), taxa, self.passo * x.numel(), ritmo)

    def passos(self) -> Iterator[Passo]:
        """Gera um `Passo` por passo dado, do atual até o último da receita."""
        while self.passo < self.receita.passos:
            yield self.um_passo()

    def estado(self) -> dict:
        """O que basta guardar para retomar (ver `retomar`)."""
        return {
            "passo": self.passo,
            "modelo": self.modelo.state_dict(),
            "otimizadores": [otimizador.state_dict() for otimizador, _ in self.otimizadores],
            "receita": asdict(self.receita),
        }

    def retomar(self, estado: dict) -> None:
        """Volta ao ponto em que `estado` foi tirado."""
        self.modelo.load_state_dict(estado["modelo"])
        for (otimizador, _), guardado in zip(
            self.otimizadores, estado["otimizadores"], strict=True
        ):
            otimizador.load_state_dict(guardado)
        self.passo = estado["passo"]


@torch.no_grad()
def perda_media(
    modelo,
    fita: np.ndarray,
    contexto: int,
    lote: int = 16,
    janelas: int | None = None,
    bf16: bool = False,
) -> float:
    """Perda média em nats por token sobre a fita, em janelas vizinhas que não se sobrepõem.

    Cada token, menos o primeiro da fita, é previsto uma vez. `janelas` limita a conta às
    primeiras janelas espalhadas por igual (para espiar no meio do treino).
    """
    treinando = modelo.training
    modelo.eval()
    fita_t = torch.from_numpy(np.ascontiguousarray(fita).astype(np.int64))
    contexto = min(contexto, len(fita) - 1)
    inteiras = fita_t.unfold(0, contexto + 1, contexto)  # (n,) -> (m, contexto + 1)
    pedacos = [*inteiras.split(lote), fita_t[None, len(inteiras) * contexto :]]  # e o que sobra
    if janelas is not None and janelas <= len(inteiras):
        salto = len(inteiras) / janelas
        pedacos = inteiras[[int(k * salto) for k in range(janelas)]].split(lote)
    soma, n = 0.0, 0
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        for pedaco in pedacos:
            x, y = pedaco[:, :-1], pedaco[:, 1:].contiguous()  # (b, L + 1) -> 2 de (b, L)
            if y.numel():
                soma += float(perda(modelo, x, y)) * y.numel()
                n += y.numel()
    modelo.train(treinando)
    return soma / n


def cosseno_por_defasagem(wpe, defasagens: Sequence[int]) -> list[float]:
    """Cosseno médio entre linhas da wpe a k posições uma da outra, com a linha média retirada.

    wpe: (n, d). Devolve um número por defasagem k: a média, em i, de cos(w[i] - m, w[i+k] - m),
    onde m é a linha média. Sem tirar m, tudo o que as linhas têm em comum passaria por
    parentesco entre vizinhas.
    """
    centrada = tabela_posicoes.centrar(np.asarray(wpe, dtype=np.float64))  # (n, d)
    medias = tabela_posicoes.por_defasagem(tabela_posicoes.cossenos_entre_linhas(centrada))  # (n,)
    return [float(medias[k]) for k in defasagens]


# ------------------------------------------------------- caracteres, para o treino ao vivo


@dataclass(frozen=True)
class Alfabeto:
    """Um tokenizer de caracteres: o id é a posição em `letras`; o que falta vira espaço."""

    letras: str

    def codificar(self, texto: str) -> np.ndarray:
        """texto -> ids, (n,) int32."""
        ids = {letra: i for i, letra in enumerate(self.letras)}
        return np.array([ids.get(letra, ids[" "]) for letra in texto], dtype=np.int32)


def alfabeto(texto: str, maximo: int = 96) -> Alfabeto:
    """As `maximo` letras mais comuns do texto (sempre com o espaço), em ordem de código."""
    vezes = Counter(texto)
    vezes[" "] += 1
    comuns = sorted(vezes, key=lambda letra: (-vezes[letra], letra))[:maximo]
    return Alfabeto("".join(sorted({*comuns, " "})))


def embaralhar(fita: np.ndarray, semente: int, tamanho: int | None = None) -> np.ndarray:
    """O controle: os mesmos tokens, em ordem sorteada. As frequências ficam, a ordem some.

    Uma fita curta, lida muitas vezes, seria decorada mesmo embaralhada. Com `tamanho`, vêm
    embaralhadas diferentes, uma depois da outra, até haver tokens que bastem para não repetir.
    """
    sorteio = np.random.default_rng(semente)
    copias = 1 if tamanho is None else -(-tamanho // len(fita))  # divisão para cima
    return np.concatenate([sorteio.permutation(fita) for _ in range(copias)])


# ------------------------------------------------------------- uma matriz, dois gradientes


def lote_fixo(fita: np.ndarray, contexto: int, lote: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Um lote que não muda: `lote` janelas espalhadas por igual na fita. -> x, y: (B, T)."""
    inicios = np.linspace(0, len(fita) - contexto - 1, lote).astype(int)
    janelas = np.stack([fita[i : i + contexto + 1] for i in inicios]).astype(np.int64)
    ids = torch.from_numpy(janelas)  # (B, T+1)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()  # (B, T), (B, T)


@dataclass
class DoisCaminhos:
    """O gradiente da matriz amarrada, aberto em dois (cada um (V, d), em float32)."""

    perda: float
    entrada: np.ndarray  # o que chega pela consulta: só as linhas dos tokens do lote
    saida: np.ndarray  # o que chega pelos logits: todas as linhas
    norma_entrada: float
    norma_saida: float
    cosseno: float
    linhas_entrada: int  # linhas com gradiente diferente de zero
    linhas_saida: int


def dois_caminhos(modelo, x: torch.Tensor, y: torch.Tensor) -> DoisCaminhos:
    """Abre o gradiente da wte de um modelo amarrado em caminho de entrada e de saída. x, y: (B, T).

    A mesma matriz entra duas vezes na conta: E[x] no começo e h·Eᵀ no fim. Trocando cada uso por
    uma folha própria, com os mesmos valores, a regra da cadeia separa os dois termos; a soma
    deles é o gradiente que o autograd dá à matriz amarrada (Press & Wolf 2017, seção 3). O modelo
    não é alterado: nem pesos, nem `.grad`.
    """
    wte = modelo.transformer.wte.weight
    entrada = wte.detach().clone().requires_grad_()  # (V, d)
    saida = wte.detach().clone().requires_grad_()  # (V, d)
    treinando = modelo.training
    modelo.eval()  # sem dropout: o mesmo lote dá sempre o mesmo gradiente
    vetores = F.embedding(x, entrada)  # (B, T) -> (B, T, d)
    h = modelo.transformer(inputs_embeds=vetores, use_cache=False).last_hidden_state  # (B, T, d)
    logits = F.linear(h, saida)  # (B, T, d) -> (B, T, V)
    valor = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    g_entrada, g_saida = torch.autograd.grad(valor, [entrada, saida])
    modelo.train(treinando)
    # Em float64: são V·d parcelas, e em float32 a soma delas erraria na terceira casa.
    e, s = g_entrada.double(), g_saida.double()
    norma_e, norma_s = float(e.norm()), float(s.norm())
    return DoisCaminhos(
        perda=valor.item(),
        entrada=g_entrada.numpy(),
        saida=g_saida.numpy(),
        norma_entrada=norma_e,
        norma_saida=norma_s,
        cosseno=float((e * s).sum()) / (norma_e * norma_s),
        linhas_entrada=int((g_entrada != 0).any(dim=1).sum()),
        linhas_saida=int((g_saida != 0).any(dim=1).sum()),
    )


def gradiente_amarrado(modelo, x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    """O gradiente que o autograd dá à wte, de uma vez só: (V, d). Não mexe no `.grad`."""
    treinando = modelo.training
    modelo.eval()
    (g,) = torch.autograd.grad(perda(modelo, x, y), [modelo.transformer.wte.weight])
    modelo.train(treinando)
    return g.numpy()


def semelhanca_de_geometria(a, b) -> float:
    """Quanto duas matrizes (n, d) concordam sobre quem é vizinho de quem: entre -1 e 1.

    É a correlação de Spearman entre os cossenos de todos os pares de linhas de `a` e os mesmos
    pares em `b` (com a linha média retirada). Não depende da base: girar uma delas não muda nada,
    e por isso serve para comparar modelos treinados à parte.
    """
    centradas = (tabela_posicoes.centrar(np.asarray(m, dtype=np.float64)) for m in (a, b))
    pares = (pdist(m, "cosine") for m in centradas)  # (n, d) -> (n(n-1)/2,)
    return float(spearmanr(*pares)[0])
