"""De palavra a token e de volta, sem esconder o que o tokenizador faz.

Dois cuidados atravessam o laboratório. (1) No BPE de bytes o espaço faz parte do token:
" king" e "king" são linhas diferentes da tabela. (2) Uma palavra pode virar vários tokens:
pegar só o primeiro, em silêncio, é olhar para a linha errada (apostila 02, seção 7).
"""

import os
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nucleo.base.arquivos import legivel
from nucleo.base.erros import ErroDoUsuario

# As mesmas doze palavras nas duas línguas: mostram de que textos saiu um vocabulário.
_COMUNS = {
    "inglês": "king queen man woman house water night friend mother time eyes heart",
    "português": "rei rainha homem mulher casa água noite amigo mãe tempo olhos coração",
}


@dataclass(frozen=True)
class Forma:
    """Uma palavra na forma em que a tabela a conhece.

    `texto` é o que a linha escreve (com o espaço, se ela o tiver); `id` é a linha da tabela;
    `aviso` diz em português se algo foi ajustado (acento recomposto, por exemplo), ou "".
    """

    palavra: str
    texto: str
    id: int
    aviso: str = ""


class Tokenizador:
    """O tokenizador de um modelo: `ids`, `pedacos`, `texto` e a busca de uma palavra."""

    def __init__(self, rapido, nome: str):
        self._rapido = rapido  # tokenizers.Tokenizer, da biblioteca do Hugging Face
        # O tokenizer.json pode mandar completar e cortar em 128 tokens (o do MiniLM manda): uma
        # palavra só viraria 128 ids, e um texto longo perderia o fim em silêncio.
        rapido.no_padding()
        rapido.no_truncation()
        # O id que significa "não conheço": uma palavra que cai nele não tem linha própria.
        desconhecido = getattr(rapido.model, "unk_token", None)
        self._desconhecido = rapido.token_to_id(desconhecido) if desconhecido else None
        self.nome = nome

    @classmethod
    def de_pasta(cls, pasta: Path, nome: str) -> "Tokenizador | None":
        """Lê tokenizer.json, ou vocab.json + merges.txt (BPE), ou vocab.txt (WordPiece).

        Devolve None se a pasta não tiver nenhum dos três.
        Erros: `ErroDoUsuario` se o arquivo existir e não puder ser lido.
        """
        import tokenizers
        from tokenizers.implementations import BertWordPieceTokenizer, ByteLevelBPETokenizer

        # A biblioteca recebe o conteúdo, e não o caminho: com LC_ALL=POSIX ela, que é em Rust, não
        # abriria uma pasta com acento no nome.
        arquivo = None
        try:
            if (arquivo := pasta / "tokenizer.json").is_file():
                return cls(tokenizers.Tokenizer.from_file(_em_utf8(arquivo)), nome)
            if (arquivo := pasta / "vocab.json").is_file() and (pasta / "merges.txt").is_file():
                bpe = ByteLevelBPETokenizer(_em_utf8(arquivo), _em_utf8(pasta / "merges.txt"))
                if bpe.token_to_id("<|endoftext|>") is not None:
                    # O fim de texto do GPT-2 é um token só; o merges.txt não o conta.
                    bpe.add_special_tokens(["<|endoftext|>"])
                return cls(bpe._tokenizer, nome)
            if (arquivo := pasta / "vocab.txt").is_file():
                return cls(BertWordPieceTokenizer(_em_utf8(arquivo))._tokenizer, nome)
        # A biblioteca em Rust levanta Exception pura; só o arquivo pode ter a culpa aqui.
        except Exception as erro:
            raise ErroDoUsuario(
                f"Não consegui ler o tokenizador {arquivo.name}.",
                f"O arquivo {arquivo} está incompleto ou não é o que o nome diz ({erro}).",
                "Copie ou baixe de novo os arquivos do tokenizador.",
            ) from None
        return None

    @cached_property
    def tamanho(self) -> int:
        """Quantos tokens o vocabulário tem, contando os especiais."""
        return self._rapido.get_vocab_size(with_added_tokens=True)

    @cached_property
    def maior_id(self) -> int:
        """O maior id que o tokenizador pode devolver."""
        return max(self._rapido.get_vocab(with_added_tokens=True).values(), default=-1)

    def ids(self, texto: str) -> list[int]:
        """Ids do texto, na ordem, sem tokens especiais. O texto passa por NFC antes."""
        return self._rapido.encode(normalizar(texto), add_special_tokens=False).ids

    def ids_e_trechos(self, texto: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Os ids do texto e, de cada um, (começo, fim) no texto já em NFC: que letras ele cobre."""
        lido = self._rapido.encode(normalizar(texto), add_special_tokens=False)
        return lido.ids, lido.offsets

    def texto(self, id_: int) -> str:
        """O que o token `id_` escreve, sozinho, com o espaço que ele carrega.

        Bytes soltos, que não formam um caractere, aparecem como � (352 tokens no GPT-2).
        """
        escrito = self._rapido.decode([id_], skip_special_tokens=False)
        # Decodificado sozinho, o SentencePiece perde o espaço da frente; o BPE de bytes, não.
        falta = self.comeca_com_espaco(id_) and not escrito.startswith(" ")
        return " " + escrito if falta else escrito

    def comeca_com_espaco(self, id_: int) -> bool:
        """True se o token traz o espaço da frente (Ġ no BPE de bytes, ▁ no SentencePiece)."""
        cru = self._rapido.id_to_token(id_) or ""
        return cru[:1] in ("Ġ", "▁")

    def cru(self, id_: int) -> str:
        """O token como o arquivo do vocabulário o guarda ('Ġking'), ou "" se não existir."""
        return self._rapido.id_to_token(id_) or ""

    def pedacos(self, texto: str) -> list[str]:
        """Os tokens do texto, cada um como se lê. `pedacos(" gato")` no GPT-2: [" g", "ato"]."""
        return [self.texto(i) for i in self.ids(texto)]

    def procurar(self, palavra: str, com_espaco: bool = True) -> Forma | None:
        """A `Forma` da palavra se ela for um token só; None se for vários ou nenhum."""
        limpa = normalizar(palavra).strip()
        texto = (" " if com_espaco else "") + limpa
        ids = self.ids(texto) if limpa else []
        if len(ids) != 1 or (ids[0] == self._desconhecido and limpa != self.cru(ids[0])):
            return None
        avisos = []
        if normalizar(palavra) != palavra:
            avisos.append("os acentos vieram separados das letras e foram recompostos (NFC)")
        escrito = self.texto(ids[0])
        if escrito.strip() != limpa:
            avisos.append(f"este tokenizador lê {limpa!r} como {escrito.strip()!r}")
        return Forma(limpa, escrito, ids[0], "; ".join(avisos))

    def linha(self, palavra: str, com_espaco: bool = True, opcao: str = "--palavra") -> Forma:
        """A linha da tabela que pertence à palavra, na forma com espaço antes (o usual no meio
        de uma frase) ou sem. `opcao` é onde ela foi pedida, para a dica de um engano.

        Erros: `ErroDoUsuario` para palavra vazia ou de vários tokens, com os pedaços à vista.
        """
        if not normalizar(palavra).strip():
            raise ErroDoUsuario(
                "A palavra está vazia.",
                "Um texto vazio não vira token nenhum, então não há linha da tabela para buscar.",
                f"Escreva a palavra, por exemplo:  {opcao} {self._exemplo('', opcao)}",
            )
        forma = self.procurar(palavra, com_espaco)
        if forma:
            return forma
        limpa = normalizar(palavra).strip()
        texto = (" " if com_espaco else "") + limpa
        partes, ids = self.pedacos(texto), self.ids(texto)
        # Uma frase colada por engano teria milhares de pedaços: os primeiros já explicam.
        resto = f" + … (mais {len(ids) - 12})" if len(ids) > 12 else ""
        outra = self.procurar(palavra, not com_espaco)
        if ids and set(ids) == {self._desconhecido}:
            raise ErroDoUsuario(
                f"O tokenizador do {self.nome} não conhece {_curto(limpa)}.",
                f"Ele a troca por {partes[0]!r} (id {ids[0]}), a linha de tudo o que não conhece.",
                f"Tente palavras que ele conheça, por exemplo:  {opcao} {self._exemplo(limpa, opcao)}",
            )
        if outra:
            dica = (
                f"{outra.texto!r} é um token só (id {outra.id}): "
                + ("acrescente --sem-espaco" if com_espaco else "tire --sem-espaco")
                + " para usar essa forma."
            )
        else:
            dica = (
                f"{self._lingua()}Tente palavras que este vocabulário tenha inteiras, por exemplo:  "
                f"{opcao} {self._exemplo(limpa, opcao)}"
            )
        raise ErroDoUsuario(
            f"{_curto(texto)} não é um token só no tokenizador do {self.nome}: são {len(ids)} pedaços.",
            " + ".join(repr(p) for p in partes[:12])
            + f"{resto}  (ids {', '.join(map(str, ids[:12]))}). "
            + "A tabela tem uma linha por token; usar só o primeiro pedaço seria mostrar outra palavra.",
            dica,
        )

    def _lingua(self) -> str:
        # Medido, e não sabido de cor: em que língua as palavras comuns são tokens inteiros.
        tem = {
            lingua: sum(self.procurar(p) is not None for p in comuns.split())
            for lingua, comuns in _COMUNS.items()
        }
        mais, menos = sorted(tem, key=tem.__getitem__, reverse=True)
        if tem[mais] < 2 * max(tem[menos], 1):
            return ""
        return f"O vocabulário do {self.nome} vem de textos em {mais}. "

    def _exemplo(self, recusada: str, opcao: str) -> str:
        # A mesma palavra com outra inicial, se for inteira; senão uma comum, para a dica funcionar.
        for tres in ("king man woman", "rei homem mulher") if opcao == "--analogia" else ():
            if all(map(self.procurar, tres.split())):
                return tres
        outras = (recusada.capitalize(), recusada.lower())
        for palavra in (*outras, "king", "rei", "homem", "cat", "the", "de", "a"):
            if palavra != recusada and self.procurar(palavra):
                return palavra
        return "a"


def _em_utf8(arquivo: Path) -> str:
    # A biblioteca, em Rust, quer o caminho em UTF-8; num sistema em ASCII ou Latin-1, o Python lê uma
    # pasta com acento de outro jeito.
    return os.fsencode(arquivo).decode("utf-8", "surrogateescape")


def _curto(texto: str) -> str:
    return repr(texto if len(texto) <= 60 else texto[:60] + "…")


def normalizar(texto: str) -> str:
    """O texto em NFC: 'ã' como um caractere só, e não 'a' seguido de um til solto.

    Os dois parecem iguais na tela e viram tokens diferentes (no GPT-2, ' não' tem 2 tokens
    em NFC e 4 em NFD). Nomes copiados de um Mac ou de um PDF costumam vir em NFD.
    """
    # Bytes que o sistema não soube ler chegam da linha de comando como meios-caracteres.
    return unicodedata.normalize("NFC", legivel(texto))


def sem_acentos(texto: str) -> str:
    """O texto sem os sinais que se compõem com as letras: 'coração' -> 'coracao'."""
    separado = unicodedata.normalize("NFD", texto)
    return "".join(c for c in separado if not unicodedata.combining(c))


def visivel(texto: str) -> str:
    """O token entre aspas, com o espaço e os caracteres de controle à vista: ' king', '\\n'."""
    return repr(texto)


def classificar_vizinho(palavra: str, vizinho: str) -> str:
    """Devolve "forma" se o vizinho é a mesma palavra com outra grafia; "palavra" se é outra.

    Forma: difere só em maiúsculas, espaço, acento, plural ou flexão regular (-ed, -ing). É uma
    regra de grafia, não de dicionário: `mice` conta como outra palavra para `mouse`, e `happier`
    para `happy`.
    """
    a, b = _raiz(palavra), _raiz(vizinho)
    if not b:
        return "palavra"
    if a == b:
        return "forma"
    curta, longa = sorted((a, b), key=len)
    if not longa.startswith(curta):
        # city, cities: o y vira i antes do plural.
        y = curta.endswith("y") and longa == curta[:-1] + "ies"
        return "forma" if y else "palavra"
    # Raiz curta com flexão comprida costuma ser coincidência: be e bed, car e caring.
    minimo = {"s": 2, "es": 3, "'s": 2, "ed": 4, "d": 4, "ing": 4}
    sobra = longa[len(curta) :]
    return "forma" if len(curta) >= minimo.get(sobra, 99) else "palavra"


def _raiz(texto: str) -> str:
    return sem_acentos(texto.strip().casefold()).strip("Ġ▁#")
