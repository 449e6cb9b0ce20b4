"""O que só a biblioteca responde, perguntado num processo ao lado enquanto a lição segue.

Importar o transformers e montar o modelo inteiro custa tanto quanto o resto da lição. Com dois
núcleos, um processo faz isso desde o começo, e cada resposta é esperada onde é mostrada. Com um
núcleo só, ou se o processo não puder nascer ou morrer no caminho, a mesma pergunta é feita aqui
mesmo, na hora em que a resposta faz falta.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import wait

from nucleo.base.erros import ErroDoUsuario
from nucleo.base.processos import morrer_com
from nucleo.modelos import fontes
from nucleo.modelos.fontes import Modelo


class AoLado:
    """Faz perguntas à biblioteca, num processo ao lado ou aqui mesmo.

    Uma pergunta é uma função que recebe o modelo inteiro (o `lm` do transformers) e mais argumentos;
    pode morar na própria lição. `ao_lado=False` não abre processo nenhum.
    """

    def __init__(self, ao_lado: bool = True):
        self._executor = self._limite = None
        if not ao_lado or nucleos() < 2:
            return
        with contextlib.suppress(Exception):  # sem semáforos ou sem processos: pergunta-se aqui
            from joblib.externals import loky
            from threadpoolctl import threadpool_limits

            # O loky não roda o programa de novo no filho (nem no Windows), e leva por valor as
            # funções da lição. As threads de lá esperam dormindo: girando, tomariam os núcleos da lição.
            self._executor = loky.ProcessPoolExecutor(
                1,
                initializer=_acordar,
                initargs=(os.getpid(),),
                env={"OMP_WAIT_POLICY": "PASSIVE"},
            )
            with _sem_ctrl_c():
                self._executor.submit(os.getpid)  # o processo nasce já, e começa a importar
            # Um núcleo é dele: as contas daqui ficam com os outros, em vez de disputar.
            self._limite = threadpool_limits(nucleos() - 1, user_api="blas")

    def perguntar(self, funcao: Callable, *argumentos, modelo: Modelo | None = None) -> "Pedido":
        """Faz a pergunta, sem esperar: `funcao(lm, *argumentos)`, ou `funcao(*argumentos)` sem modelo."""
        futuro = None
        if self._executor is not None and (modelo is None or modelo.tem_completo):
            with contextlib.suppress(Exception):  # ele já morreu: pergunta-se aqui
                endereco = modelo and modelo.endereco
                futuro = self._executor.submit(_responder, funcao, argumentos, endereco)
        return Pedido(funcao, argumentos, modelo, futuro)

    def fechar(self) -> None:
        """Encerra o processo, mesmo no meio de uma pergunta. Chamar de novo não faz nada."""
        executor, self._executor = self._executor, None
        if executor is not None:
            with contextlib.suppress(Exception):  # se não se deixar matar, ele sai com a lição
                executor.shutdown(wait=True, kill_workers=True)
        if self._limite is not None:
            self._limite.restore_original_limits()


class Pedido:
    """Uma pergunta já feita (ou por fazer, se não há processo ao lado)."""

    def __init__(self, funcao: Callable, argumentos: tuple, modelo: Modelo | None, futuro=None):
        self._funcao, self._argumentos, self._modelo = funcao, argumentos, modelo
        self._futuro, self._resposta = futuro, None

    def resposta(self):
        """O que a função devolveu; espera, se preciso. Erros: os dela, e `ErroDoUsuario` se só as
        tabelas estiverem em disco."""
        if self._resposta is None:
            self._resposta = self._esperar()
        return self._resposta

    def resposta_ou_aviso(self, avisar: Callable[[str], None]):
        """A resposta; None, com o porquê dito por `avisar`, se o modelo inteiro não abre."""
        try:
            return self.resposta()
        except ErroDoUsuario as erro:
            avisar(f"{erro.o_que} {erro.por_que} {erro.o_que_fazer}")
            return None

    def _esperar(self):
        if self._futuro is not None:
            try:
                # Aos poucos: quem espera sem hora pode não ouvir o Ctrl-C.
                while wait([self._futuro], timeout=0.2).not_done:
                    pass
                return self._futuro.result()
            except ErroDoUsuario:
                raise
            except Exception:
                # O processo morreu, ou não coube na memória dele: a mesma pergunta, aqui. Se o
                # defeito for da pergunta, ele aparece outra vez, com o rastro inteiro.
                self._futuro = None
        lm = () if self._modelo is None else (self._modelo.completo(),)
        return self._funcao(*lm, *self._argumentos)


def nucleos() -> int:
    """Quantos núcleos este processo pode usar."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _sem_ctrl_c():
    # O filho herda o SIGINT ignorado: um Ctrl-C no terminal chega aos dois, e quem encerra é a lição.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    antes = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, antes)


# --- no processo ao lado ------------------------------------------------------------------

_abertos: dict = {}  # {pasta: modelo inteiro}, no processo ao lado


def _acordar(licao: int) -> None:
    # A lição que morre à força não avisa ninguém: o processo dela sai também. (No Windows quem o
    # prende é o job da lição; sem ele, esta thread.)
    if os.name == "nt":
        threading.Thread(target=_sair_com_a_licao, daemon=True).start()
    else:
        morrer_com(licao)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # no Windows ele não se herda ignorado
    # Nada do que a biblioteca escrever aparece no meio da lição.
    mudo = os.open(os.devnull, os.O_WRONLY)
    for fluxo in (1, 2):
        os.dup2(mudo, fluxo)
    # O loky troca o processo que engorda 300 MB, achando que é vazamento: aqui são os pesos.
    sys.modules["joblib.externals.loky.process_executor"]._USE_PSUTIL = False
    import torch  # noqa: F401 - o que demora, enquanto a lição ainda abre o modelo
    from transformers import AutoModelForCausalLM, GPT2LMHeadModel  # noqa: F401


def _sair_com_a_licao() -> None:
    with contextlib.suppress(Exception):  # o cano já fechou: ela já se foi
        multiprocessing.parent_process().join()
    os._exit(1)


def _responder(funcao: Callable, argumentos: tuple, endereco: tuple | None):
    if endereco is None:
        return funcao(*argumentos)
    pasta = endereco[1]
    if pasta not in _abertos:
        _abertos[pasta] = fontes.carregar_completo(*endereco)
    return funcao(_abertos[pasta], *argumentos)
