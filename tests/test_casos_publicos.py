"""Tropeços públicos que não cabem em outro arquivo de teste, cada um com o seu número."""

import ast
import os
import re

import numpy as np
import pytest

from conftest import LAB, rodar
from nucleo.contas import vetores

CODIGO = [*LAB.glob("*.py"), *(LAB / "nucleo").glob("*.py")]


@pytest.mark.unit
def test_caso_40_os_pesos_do_gpt2_sao_transpostos():
    """Conv1D guarda (entrada, saída): 768 × 2304, e não o (saída, entrada) de nn.Linear."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        bloco = GPT2LMHeadModel(GPT2Config(n_layer=1)).transformer.h[0]
    assert tuple(bloco.attn.c_attn.weight.shape) == (768, 2304)
    assert tuple(bloco.mlp.c_proj.weight.shape) == (3072, 768)


@pytest.mark.unit
def test_caso_63_uma_tabela_centrada_da_outros_numeros():
    """Bibliotecas que centram wte (TransformerLens) não reproduzem a tabela crua: lemos a crua."""
    tabela = np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32) + 1
    centrada = tabela - tabela.mean(-1, keepdims=True)
    cru = vetores.cosseno(tabela[3], tabela[5])
    assert abs(cru - vetores.cosseno(centrada[3], centrada[5])) > 0.1


@pytest.mark.smollm2
def test_caso_63_a_wte_aberta_e_a_do_modelo_sem_retoque(smollm2):
    import torch

    lida = smollm2.completo().get_input_embeddings().weight.detach()
    assert torch.equal(lida, torch.from_numpy(np.array(smollm2.wte)))


@pytest.mark.unit
def test_caso_70_o_aviso_de_symlinks_do_windows_esta_desligado():
    from nucleo.modelos.fontes import hub  # noqa: F401 - importar já basta

    assert os.environ["HF_HUB_DISABLE_SYMLINKS_WARNING"] == "1"


@pytest.mark.unit
@pytest.mark.parametrize(
    "erro",
    [
        "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate",
        "SSLCertVerificationError: unable to get local issuer certificate",
    ],
)
def test_caso_72_certificado_desconhecido_diz_o_que_fazer(erro):
    from nucleo.modelos import hub

    causa = ConnectionError("falhou")
    causa.__cause__ = OSError(erro)
    assert "SSL_CERT_FILE" in hub.motivo_da_falha(causa)


@pytest.mark.unit
def test_caso_72_a_verificacao_do_certificado_nunca_e_desligada():
    for arquivo in CODIGO:
        for no in ast.walk(ast.parse(arquivo.read_text("utf-8"))):
            if isinstance(no, ast.keyword) and no.arg == "verify":
                raise AssertionError(f"{arquivo.name}:{no.value.lineno} mexe em verify")
            assert not (isinstance(no, ast.Attribute) and no.attr == "_create_unverified_context")


@pytest.mark.unit
def test_caso_74_nada_importa_o_pyplot():
    """Sem o pyplot nenhuma janela é aberta, e tanto faz haver tela ou Tk."""
    for arquivo in CODIGO:
        assert not re.search(
            r"pyplot", re.sub(r'""".*?"""|#.*', "", arquivo.read_text("utf-8"), flags=re.S)
        )


@pytest.mark.cli
@pytest.mark.smollm2
def test_caso_74_sem_tela_e_com_o_tk_pedido(tmp_path, smollm2):
    ambiente = {"MPLBACKEND": "TkAgg", "DISPLAY": ""}
    opcoes = ["--modelo", "smollm2", "--secao", "5", "--saida", str(tmp_path)]
    feito = rodar("02_embeddings.py", *opcoes, ambiente=ambiente)
    assert feito.returncode == 0, feito.stderr
    assert (tmp_path / "5_ortogonais.png").stat().st_size > 10_000
