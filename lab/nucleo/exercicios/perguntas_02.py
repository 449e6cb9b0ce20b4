"""As perguntas da apostila 02. Cada uma mede na hora; nenhum resultado está escrito. O texto está em data/exercicios."""

import numpy as np

from nucleo.base.unidades import cientifico, decimal, inteiro, porcento
from nucleo.contas import amarracao, arquitetura, tabela_posicoes, vetores
from nucleo.exercicios.tipos import Medida
from nucleo.modelos import fontes, gpt2_medido, listas, pontas
from nucleo.modelos.tamanhos import TAMANHOS

# --- seção 1 -----------------------------------------------------------------------------


def _embaralhar(c):
    m = c.modelo
    e = vetores.embaralhar(m.wte, m.tokenizador.ids("The cat sat on the mat"), 2)
    chave = "a" if e.diferenca == 0 else "b"
    texto = f"os ids mudaram ({e.antes[0]} virou {e.depois[0]}, …) e a maior diferença nos vetores é {decimal(e.diferenca, 1)}"
    return Medida(chave, texto, m.nome)


def _pedacos(c):
    t = fontes.tokenizador_gpt2()
    p = t.pedacos("O Brasil é gigante")
    return Medida(len(p), f"{len(p)}: " + " | ".join(p), "o tokenizador do GPT-2")


def _onehots(c):
    V = c.modelo.V
    gato, cachorro, usina = (vetores.onehot(i, V) for i in (40, 12, 999))
    perto, longe = (float(np.linalg.norm(gato - x)) for x in (cachorro, usina))
    # Os quadrados são exatos; uma raiz em float32 arredonda 2e-7.
    chave = "b" if abs(perto - longe) < 1e-6 else "a" if perto < longe else "c"
    texto = f"as duas distâncias são {decimal(perto, 4)} e {decimal(longe, 4)}"
    return Medida(chave, texto, f"V de {c.modelo.nome}")


# --- seção 2 -----------------------------------------------------------------------------


def _forma_ou_sentido(c):
    forma, sentido = c.cosseno("cat", "cats"), c.cosseno("cat", "dog")
    chave = "c" if abs(forma - sentido) < 0.005 else "a" if forma > sentido else "b"
    return Medida(chave, f"cat–cats {decimal(forma)}; cat–dog {decimal(sentido)}", c.em_ingles.nome)


def _ordem_dos_pares(c):
    pares = {"a": ("king", "banana"), "b": ("cat", "dog"), "c": ("king", "King")}
    notas = {k: c.cosseno(*par) for k, par in pares.items()}
    return _em_ordem(pares, notas, c.em_ingles.nome)


def _em_ordem(pares, notas, fonte):
    ordem = sorted(notas, key=lambda k: -notas[k])
    texto = " > ".join(f"{pares[k][0]}–{pares[k][1]} {decimal(notas[k])}" for k in ordem)
    return Medida(ordem, texto, fonte)


def _dois_ao_acaso(c):
    media = vetores.anisotropia(c.em_ingles.wte, c.normas)
    # 0,03 são uns cinco desvios do cosseno entre sorteados nesta largura: acima disso não é acaso.
    chave = "b" if media > 0.03 else "c" if media < -0.03 else "a"
    return Medida(
        chave, f"o cosseno médio entre todos os pares é {decimal(media)}", c.em_ingles.nome
    )


def _analogia(c):
    m, ids = c.em_ingles, [c.linha(p) for p in ("king", "man", "woman")]
    alvo = vetores.vetor_da_analogia(m.wte, *ids)
    primeiros = vetores.vizinhos(m.wte, alvo, 3, c.normas)
    chaves = {c.linha("king"): "a", c.linha("queen"): "b", c.linha("woman"): "c"}
    texto = ", ".join(f"{m.tokenizador.texto(i).strip()} {decimal(n)}" for i, n in primeiros)
    gpt2 = gpt2_medido.fatos()["wte_publicado"]["analogia"]
    if m.nome != "gpt2":
        texto += (
            f"; no GPT-2, publicado: king {decimal(gpt2['king'])}, queen {decimal(gpt2['queen'])}"
        )
    return Medida(chaves.get(primeiros[0][0], "d"), texto, m.nome)


def _conjunto(c):
    m = c.em_ingles
    perguntas = listas.analogias_do_google(m.tokenizador)
    acertos = vetores.avaliar_analogias(m.wte, c.normas, perguntas.ids, normalizar=False)
    todas = vetores.placar(perguntas, acertos)[-1]  # a última linha junta as categorias
    v = 100 * todas.entrada_primeiro / todas.cobertas
    certas = todas.certas_livre / todas.cobertas
    texto = f"em {decimal(v, 1)} %; a resposta certa vem primeiro em {porcento(certas)}"
    return Medida(v, texto, f"{m.nome}, analogias do Google que cabem na tabela")


# --- seções 3 e 4 --------------------------------------------------------------------------


def _peca(nome, peca):
    return arquitetura.contar(TAMANHOS[nome])[peca]


def _desperdicio(c):
    v = _peca("gpt2", "wte")
    texto = f"{inteiro(v)} multiplicações, para aproveitar uma linha"
    return Medida(v, texto, "GPT-2 small, contado da arquitetura")


def _bytes_xl(tipo=4, pecas=("wte", "wpe")):
    return tipo * sum(_peca("gpt2-xl", p) for p in pecas)


def _xl(divisor, unidade):
    def medir(c):
        v = _bytes_xl() / divisor
        texto = f"{inteiro(_bytes_xl())} bytes = {decimal(v, 1)} {unidade}"
        return Medida(v, texto, "GPT-2 XL, contado da arquitetura")

    return medir


PARES_WPE = {"a": (0, 1), "b": (1, 2), "c": (2, 500)}


def _linhas_do_gpt2(c):
    f = gpt2_medido.fatos()["wpe_medido"]
    onde = {linha: n for n, linha in enumerate(f["linhas"])}
    notas = {k: f["cossenos"][onde[i]][onde[j]] for k, (i, j) in PARES_WPE.items()}
    return _em_ordem(PARES_WPE, notas, "GPT-2, medido")


def _vizinhas(c):
    m = c.com_wpe
    perto_longe = tabela_posicoes.por_defasagem(
        tabela_posicoes.cossenos_entre_linhas(tabela_posicoes.centrar(m.wpe)), 1, -1
    )
    k = min(64, len(perto_longe) - 1)
    perto, longe = float(perto_longe[1]), float(perto_longe[k])
    chave = "a" if perto > longe + 0.1 else "c" if longe > perto + 0.1 else "b"
    texto = f"cosseno médio à distância 1: {decimal(perto)}; à distância {k}: {decimal(longe)} (linhas centradas)"
    return Medida(chave, texto, m.nome)


def _um_a_mais(c):
    m = c.com_wpe
    mensagem = pontas.tropeco_no_limite(m)
    texto = f"com {m.n_ctx + 1} tokens: " + (mensagem or "aceitou")
    return Medida("c" if mensagem else "a", texto, m.nome)


# --- seção 5 -----------------------------------------------------------------------------


def _forma_de_h0(c):
    m = c.com_wpe
    ids = m.tokenizador.ids("O homem viu a casa")[:5]
    forma = pontas.h0(m, ids).shape
    chave = {(len(ids), m.d): "a", (len(ids), 2 * m.d): "b", (2 * len(ids), m.d): "c"}.get(
        forma, "d"
    )
    return Medida(chave, f"n = {len(ids)}, d = {m.d}: h₀ tem forma {forma}", m.nome)


def _quase_perpendiculares(c):
    v = float(vetores.cossenos_gaussianos(768, 4000, 2).std())
    return Medida(
        v, f"{decimal(v, 4)}, o desvio-padrão de 4.000 pares", "vetores sorteados em 768 dimensões"
    )


# --- seção 6 -----------------------------------------------------------------------------


def _parte_de_wte(c):
    wte, total = _peca("gpt2", "wte"), sum(arquitetura.contar(TAMANHOS["gpt2"]).values())
    v = 100 * wte / total
    texto = f"{inteiro(wte)} de {inteiro(total)}: {decimal(v, 1)} %"
    return Medida(v, texto, "GPT-2 small, contado da arquitetura")


def _parte_no_solto(c):
    conta = arquitetura.contar(TAMANHOS["gpt2"])
    return 100 * conta["wte"] / (sum(conta.values()) + conta["wte"])


def _copia(c):
    import torch

    E = torch.from_numpy(c.modelo.wte[:8].copy())
    r = amarracao.amarracao(E, E.clone())
    texto = f"números iguais, e mudar a primeira {'mudou' if r.mudanca_vista else 'não mudou'} a segunda"
    return Medida(
        "a" if r.amarrada else "b", texto, f"8 linhas de wte de {c.modelo.nome}, e uma cópia"
    )


def dois_gradientes(c) -> dict:
    """Os dois caminhos do gradiente até a tabela, separados, num modelo de um passo só.

    A entrada busca linhas (h = E[ids]) e a saída as pontua (logits = h · Eᵀ); sem blocos no meio,
    para a conta caber na tela. Devolve as normas e quantas linhas cada caminho mexe, e a maior
    diferença entre a soma dos dois e o gradiente da tabela amarrada.
    """
    if "gradientes" in c.memoria:
        return c.memoria["gradientes"]
    import torch

    m = c.modelo
    ids = torch.tensor(m.tokenizador.ids("The cat sat on the mat")[:6])
    tabela = torch.from_numpy(m.wte.copy())

    def perda(de_entrada, de_saida):
        h = de_entrada[ids[:-1]]  # (V, d) -> (n − 1, d)
        return torch.nn.functional.cross_entropy(h @ de_saida.T, ids[1:])

    ent, sai = tabela.clone().requires_grad_(), tabela.clone().requires_grad_()
    perda(ent, sai).backward()
    uma = tabela.requires_grad_()
    perda(uma, uma).backward()
    c.memoria["gradientes"] = {
        "V": m.V,
        "diferentes": len(set(ids[:-1].tolist())),
        "linhas_entrada": int((ent.grad.abs().amax(1) > 0).sum()),
        "linhas_saida": int((sai.grad.abs().amax(1) > 0).sum()),
        "norma_entrada": float(ent.grad.norm()),
        "norma_saida": float(sai.grad.norm()),
        "diferenca": float((ent.grad + sai.grad - uma.grad).abs().max()),
    }
    return c.memoria["gradientes"]


def _linhas_da_saida(c):
    g = dois_gradientes(c)
    # Quase todas é todas: uma linha muito improvável pode ter gradiente menor que o float32 mostra.
    chave = "c" if g["linhas_saida"] > 0.9 * g["V"] else "a" if g["linhas_saida"] <= 6 else "b"
    texto = (
        f"pela saída, {inteiro(g['linhas_saida'])} de {inteiro(g['V'])} linhas; pela entrada, "
        f"{g['linhas_entrada']}"
    )
    return Medida(chave, texto, f"wte de {c.modelo.nome}, sem blocos no meio")


def _dois_lados(c):
    g = dois_gradientes(c)
    texto = (
        f"norma do gradiente pela entrada {decimal(g['norma_entrada'])} ({g['linhas_entrada']} linhas), "
        f"pela saída {decimal(g['norma_saida'])} ({inteiro(g['linhas_saida'])} linhas); a soma dos dois é o "
        f"gradiente da tabela amarrada (maior diferença {cientifico(g['diferenca'])})"
    )
    pontos = (
        "Ajuda: toda linha recebe sinal a cada passo, mesmo a de uma palavra que não apareceu; há "
        "menos parâmetros para os mesmos dados; e o que o token significa ao entrar combina com o que "
        "ele pontua ao sair.",
        "Atrapalha: os dois caminhos pedem coisas diferentes da mesma linha, e o da saída costuma "
        "mandar mais (Press e Wolf, 2017, viram a tabela amarrada parecer-se com a de saída); um "
        "modelo largo pode preferir duas tabelas.",
    )
    return Medida(pontos, texto, f"wte de {c.modelo.nome}, sem blocos no meio")


MEDEM = {
    "embaralhar": _embaralhar,
    "pedacos": _pedacos,
    "onehots": _onehots,
    "forma_ou_sentido": _forma_ou_sentido,
    "ordem_dos_pares": _ordem_dos_pares,
    "dois_ao_acaso": _dois_ao_acaso,
    "analogia": _analogia,
    "conjunto": _conjunto,
    "desperdicio": _desperdicio,
    "xl_mb": _xl(1e6, "MB"),
    "xl_mib": _xl(2**20, "MiB"),
    "linhas_do_gpt2": _linhas_do_gpt2,
    "vizinhas": _vizinhas,
    "um_a_mais": _um_a_mais,
    "forma_de_h0": _forma_de_h0,
    "perpendiculares": _quase_perpendiculares,
    "parte_de_wte": _parte_de_wte,
    "copia": _copia,
    "linhas_da_saida": _linhas_da_saida,
    "dois_lados": _dois_lados,
}
# Os números errados conhecidos que dependem de uma conta; os outros estão escritos no TOML.
CONFUNDEM = {
    "desperdicio.1": lambda c: _peca("gpt2", "wte") / 768,
    "xl_mb.1": lambda c: _bytes_xl(1) / 1e6,
    "xl_mb.2": lambda c: _bytes_xl() / 2**20,
    "xl_mb.3": lambda c: _bytes_xl(2) / 1e6,
    "xl_mb.4": lambda c: _bytes_xl(4, ("wte",)) / 1e6,
    "xl_mb.5": lambda c: _bytes_xl(8) / 1e6,
    "xl_mb.6": lambda c: _bytes_xl() / 1e9,
    "xl_mib.1": lambda c: _bytes_xl() / 1e6,
    "xl_mib.2": lambda c: _bytes_xl() * 1.048576 / 1e6,
    "xl_mib.3": lambda c: _bytes_xl(1) / 2**20,
    "perpendiculares.1": lambda c: 1 / 768,
    "parte_de_wte.1": _parte_no_solto,
}
