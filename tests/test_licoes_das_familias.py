"""As lições inteiras sobre um modelo minúsculo de cada família: ou tudo confere, ou a recusa diz por quê."""

import json
import os
import re

import numpy as np
import pytest

import modelos_minusculos as mm
from conftest import rodar_dentro
from nucleo.modelos import familias
from nucleo.modelos.familias import ROPE

pytestmark = pytest.mark.longo

NOMES = [*(f for f in familias.CONHECIDAS if f != "gemma3"), *mm.VARIANTES]
SECOES = {
    "02_embeddings.py": ("4", "5", "6"),
    "02_contexto.py": (),
    "06_posicoes.py": ("6.5", "6.6"),
}
# O que só se pode dizer de uma família que gira, ou que soma a sua tabela.
GIRA, SOMA, ALIBI, T5 = "gira Q e K", "soma à linha uma tabela", "(ALiBi)", "viés relativo do T5"


@pytest.fixture(scope="module", params=NOMES)
def da_familia(request, tmp_path_factory):
    sorteio = np.random.default_rng(sum(map(ord, request.param)) + 1)
    medidas = {"d": 4 * int(sorteio.choice([8, 16])), "camadas": int(sorteio.integers(1, 4))}
    lm = mm.montar(request.param, semente=2, n_ctx=128, **medidas)
    pasta = mm.salvar(lm, tmp_path_factory.mktemp("l") / request.param)
    return request.param, pasta, familias.da_config(lm.config.to_dict())


@pytest.mark.parametrize("licao", SECOES)
def test_ou_tudo_confere_ou_a_recusa_tem_nome(licao, da_familia, tmp_path):
    nome, pasta, ficha = da_familia
    opcoes = [x for s in SECOES[licao] for x in ("--secao", s)]
    feito = rodar_dentro(
        licao, "--modelo", str(pasta), *opcoes, "--sem-graficos", "--saida", str(tmp_path / "s"),
        ambiente=os.environ | {"COLUMNS": "200", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    dito = " ".join((feito.stdout + feito.stderr).split())
    assert "Traceback" not in dito and not re.search(r"\bnan\b|tensor\(", dito)
    # Só se afirma da posição o que a ficha diz; o mini, que mede a wpe no lugar de quem não tem, é outro.
    frases = {GIRA: ROPE, SOMA: "tabela", ALIBI: "alibi", T5: "vies_t5"}
    for frase, posicao in frases.items():
        if frase in dito:
            assert ficha.posicao == posicao, (frase, dito)
    if feito.returncode == 2:
        assert "✗" in feito.stderr and "Por quê:" in feito.stderr and nome in feito.stderr
        # Quem se recusa: a 6.5 e a 6.6 num codificador ou sem o que tirar; a 02_contexto, se as
        # camadas têm larguras diferentes.
        sem_o_que_tirar = ficha.codificador or not (ficha.giro or ficha.wpe)
        assert (licao == "06_posicoes.py" and sem_o_que_tirar) or (
            licao == "02_contexto.py" and ficha.projeta_antes and ficha.projecao
        )
        assert not [x for x in (tmp_path / "s").glob("*") if x.stat().st_size]  # nada pela metade
        return
    assert feito.returncode == 0, feito.stderr
    dados = json.loads((tmp_path / "s" / "resultado.json").read_text("utf-8"))
    assert dados["nao_conferem"] == []
    conferidas = {r["id"].rsplit(".", 1)[0] for r in dados["resultados"] if "confere" in r}
    exigidas = {
        "02_embeddings.py": {"5_h0"} | (set() if ficha.codificador else {"6_logits"}),
        "02_contexto.py": {"1_camada_0", "2_estados"},
        "06_posicoes.py": {"66_modelo"} if ficha.giro else set(),
    }[licao]
    assert exigidas <= conferidas
