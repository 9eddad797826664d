# Two commands do everything: `make ask` and `make test`. `make help` lists the rest.
VENV ?= .venv
BIN := $(VENV)/bin
Q ?= Which file decides whether a path is inside the workspace, and how does it check that?
MODEL ?= qwen1.5b

.DEFAULT_GOAL := help
.PHONY: help ask test check format test-unit test-neovim test-model fuzz bench docs-providers dist \
	constraints clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

ask: ## Set up, fetch a local model, ask about this repository (Q="…" MODEL=…)
	@printf '> %s\n' "$(Q)"
	@.ci/setup $(VENV) local
	@$(BIN)/agentls model pull $(MODEL)
	@LLM_PROVIDER=local $(BIN)/agentls ask --workspace . --mode plan --model $(MODEL) "$(Q)"

test: ## Everything CI runs: checks, then all tests
	@.ci/setup $(VENV) local,dev
	@$(MAKE) --no-print-directory check
	@AGENTLS_PEERS="$$(.ci/peers $(VENV))" $(BIN)/python -m pytest -q

check: ## Lint, types, import rules
	@.ci/setup $(VENV) local,dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: ## Rewrite files in the project's format
	@.ci/setup $(VENV) local,dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

test-unit: ## The fast tests
	@.ci/setup $(VENV) local,dev
	@$(BIN)/python -m pytest -q tests/unit

test-neovim: ## The tests in a real Neovim
	@.ci/setup $(VENV) local,dev
	@$(BIN)/python -m pytest -q -m neovim

test-model: ## The tests with real local models
	@.ci/setup $(VENV) local,dev
	@AGENTLS_PEERS="$$(.ci/peers $(VENV))" $(BIN)/python -m pytest -q -m model

fuzz: ## Fuzz decoders and readers for five minutes
	@.ci/setup $(VENV) local,dev
	@mkdir -p build/fuzz/new
	@$(BIN)/python tests/fuzz/decoders.py -max_total_time=300 -max_len=8192 \
		-artifact_prefix=build/fuzz/ build/fuzz/new tests/fuzz/corpus/*

bench: ## Measure start-up, latency and the decoder against raw references
	@.ci/setup $(VENV) local,dev
	@$(BIN)/python tests/bench

docs-providers: ## Run what proves the table in docs/providers.md, and write it
	@.ci/setup $(VENV) local,dev
	@AGENTLS_WRITE_PROOFS=1 AGENTLS_PEERS="$$(.ci/peers $(VENV))" \
		$(BIN)/python -m pytest -q -m proves

dist: ## Build the wheel and the source archive into dist/
	@.ci/setup $(VENV) local,dev
	@$(BIN)/python -m build --outdir dist .

constraints: ## Resolve every dependency anew into constraints.txt
	@.ci/setup $(VENV) local,dev
	@$(BIN)/python .ci/resolve.py

clean: ## Remove what was built
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
