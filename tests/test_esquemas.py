"""Os modelos de um esquema só: o que cada um sabe da ordem, e o que muda quando a janela cresce."""

import pytest
import torch

from nucleo.contas.escalonamento import linear
from nucleo.contas.permutacao import troca
from nucleo.contas.posicoes import ErroDePosicao
from nucleo.treino.esquemas import ESQUEMAS, Medidas, ModeloDeEsquema

pytestmark = pytest.mark.unit

PEQUENO = Medidas(vocabulario=20, d=32, camadas=2, cabecas=4, treino=16)


def modelo(esquema, camadas=2):
    m = Medidas(vocabulario=20, d=32, camadas=camadas, cabecas=4, treino=16)
    feito = ModeloDeEsquema(esquema, m, semente=3).eval()
    if esquema == "T5":  # nasce em zero, que é não ter posição: aqui interessa o treinado
        with torch.no_grad():
            feito.transformer.vies_t5.normal_(generator=torch.Generator().manual_seed(0))
    return feito


def frases(T=12, semente=0):
    return torch.randint(20, (2, T), generator=torch.Generator().manual_seed(semente))


@pytest.mark.parametrize("esquema", ESQUEMAS)
@torch.no_grad()
def test_e_causal(esquema):
    m, ids = modelo(esquema), frases()
    outros = ids.clone()
    outros[:, 8:] = (outros[:, 8:] + 1) % 20
    assert (m(ids)[:, :8] - m(outros)[:, :8]).abs().max() < 1e-5
    assert (m(ids)[:, 8:] - m(outros)[:, 8:]).abs().max() > 1e-3


@pytest.mark.parametrize("esquema", ESQUEMAS)
@torch.no_grad()
def test_so_sem_esquema_uma_camada_nao_ve_a_ordem(esquema):
    m, ids = modelo(esquema, camadas=1), frases()
    diferenca = (m(ids)[:, -1] - m(ids[:, troca(12, 2, 7)])[:, -1]).abs().max()
    assert (diferenca < 1e-5) == (esquema == "nenhum")


@pytest.mark.parametrize("esquema", ["T5", "ALiBi", "RoPE", "nenhum"])
@torch.no_grad()
def test_relativo_nao_muda_quando_tudo_anda(esquema):
    """Preenchendo à esquerda com tokens que ninguém vê não se muda nada: só a distância conta.

    Aqui se confere pelo viés e pelo giro, que são os únicos lugares onde a posição entra.
    """
    corpo = modelo(esquema).transformer
    vies = corpo.vies(12)
    if vies is not None:
        assert (vies[..., 1:, 1:] - vies[..., :-1, :-1]).nan_to_num(0).abs().max() < 1e-6
    if esquema == "RoPE":
        cos, sen = corpo.giro(12)
        z = torch.complex(cos, sen)
        assert ((z[1:] / z[:-1]) - (z[1] / z[0])).abs().max() < 1e-5


@torch.no_grad()
def test_cada_cabeca_do_t5_le_a_sua_linha():
    corpo = modelo("T5").transformer
    tabela = corpo.vies_t5.reshape(4, 32)  # (cabeças, baldes)
    vies = corpo.vies(16)[0]
    for cabeca in range(4):
        for distancia in (0, 1, 7, 15):
            assert vies[cabeca, 15, 15 - distancia] == tabela[cabeca, distancia]
    assert vies[0, 0, 1] == -torch.inf


@torch.no_grad()
def test_escala_do_rope_e_dividir_as_posicoes():
    m, ids = modelo("RoPE"), frases()
    antes = m(ids)
    m.transformer.escala = linear(8, 4.0)
    assert (m(ids) - antes).abs().max() > 1e-4
    cos, _ = m.transformer.giro(9)
    m.transformer.escala = None
    assert (cos[8] - m.transformer.giro(9)[0][2]).abs().max() < 1e-6  # a posição 8 virou a 2
    assert torch.equal(m(ids), antes)


@torch.no_grad()
def test_so_o_aprendido_acaba():
    ids = frases(T=17)
    for esquema in ESQUEMAS:
        if esquema == "aprendido":
            with pytest.raises(ErroDePosicao) as erro:
                modelo(esquema)(ids)
            assert "17" in erro.value.o_que and "16" in erro.value.o_que
        else:
            assert modelo(esquema)(ids).isfinite().all()


@pytest.mark.parametrize("esquema", ESQUEMAS)
@torch.no_grad()
def test_no_lugar_do_primeiro_entra_o_inicio(esquema):
    """Nenhum esquema vê o primeiro id; todos veem o segundo."""
    m, ids = modelo(esquema), frases()
    outros = ids.clone()
    outros[:, 0] = (outros[:, 0] + 1) % 20
    assert torch.equal(m(ids), m(outros))
    outros[:, 1] = (outros[:, 1] + 1) % 20
    assert (m(ids) - m(outros)).abs().max() > 1e-3
    assert m(ids).shape[-1] == 21  # as 20 letras e o início, que nunca é a resposta


@torch.no_grad()
def test_do_inicio_um_modelo_sem_posicao_tira_onde_esta():
    """Kazemnejad et al. 2023, teorema 1: com token de início e máscara causal, a parte da atenção que cabe
    ao início é 1/t, e basta para saber t. Letras todas iguais, nenhuma posição: as saídas diferem."""
    m = modelo("nenhum", camadas=1)
    saidas = m(torch.full((1, 12), 3))[0]  # (12, V)
    distancias = (saidas[2:] - saidas[1:-1]).norm(dim=-1)
    assert (distancias > 1e-4).all() and (distancias.diff() < 0).all()  # 1/t muda cada vez menos


def test_parametros_a_mais_de_cada_esquema():
    n = {e: sum(p.numel() for p in ModeloDeEsquema(e, PEQUENO).parameters()) for e in ESQUEMAS}
    extra = {e: n[e] - n["nenhum"] for e in ESQUEMAS}
    assert extra == {
        "nenhum": 0,
        "aprendido": 16 * 32,
        "senoidal": 0,
        "T5": 32 * 4,
        "ALiBi": 0,
        "RoPE": 0,
    }


def test_mesma_semente_mesmo_comeco():
    """Os esquemas que não têm parâmetros próprios começam do mesmíssimo ponto."""
    a, b = (ModeloDeEsquema(e, PEQUENO, semente=5).state_dict() for e in ("RoPE", "ALiBi"))
    assert all(torch.equal(a[k], b[k]) for k in a)
    c = ModeloDeEsquema("RoPE", PEQUENO, semente=6).state_dict()
    assert not torch.equal(a["lm_head.weight"], c["lm_head.weight"])


def test_saida_e_a_tabela_de_entrada():
    m = ModeloDeEsquema("RoPE", PEQUENO)
    assert m.lm_head.weight is m.transformer.entrada.tabela.weight
