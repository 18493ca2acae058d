# `make demo` shows what this is; `make test` proves it. Both set everything up in .venv first.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

# HOME stays untouched: pip (venv runs it, too) keeps no cache, and the rustc that it asks for its version sets up no rustup.
QUIETLY := PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 RUSTUP_HOME=$(CURDIR)/.venv/rustup

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up .venv (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=…" >&2; exit 1; }
	@$(QUIETLY) $(PYTHON) -m venv .venv
	@PIP_CONSTRAINT=constraints.txt $(QUIETLY) $(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

venv: $(STAMP) ## only the set-up

demo: $(STAMP) ## three conversations on a real Central, and what they survive (KEEP=1: leave it running)
	@PYTHONPATH=tests $(BIN)/python -m bench.demo $(if $(KEEP),--keep)

test: $(STAMP) ## the whole suite, with real processes and a real Central
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test-hosts: $(STAMP) ## Claude Code, Codex, Gemini CLI and opencode from npm, with a scripted model (HOSTS=folder keeps them)
	@HOSTS_FOLDER='$(HOSTS)' $(BIN)/python -m pytest -rs tests/hosts

parity: $(STAMP) ## the same scripts against the real bridge and against us, answers compared; more than in the suite
	@PARITY=all $(BIN)/python -m pytest tests/parity

test-typescript: $(STAMP) ## questions to humans, with the official TypeScript SDK (needs Node.js and npm's registry)
	@$(BIN)/python -m pytest -rs tests/typescript

fuzz: $(STAMP) ## send garbage to socket and stdin (FRAMES=100000)
	@FRAMES=$(or $(FRAMES),100000) $(BIN)/python -m pytest tests/system/test_fuzz.py

soak: $(STAMP) ## faults around waiting conversations for as long as you like (SECONDS=600 CONVERSATIONS=100 SEED=1)
	@SECONDS=$(or $(SECONDS),600) CONVERSATIONS=$(or $(CONVERSATIONS),100) SEED=$(or $(SEED),$$(date +%s)) \
		$(BIN)/python -m pytest tests/system/test_chaos.py

check: $(STAMP) ## format, lint, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

scale: $(STAMP) ## two hundred conversations and a burst of events for all of them (BURST=1000)
	@BURST=$(or $(BURST),1000) $(BIN)/python -m pytest tests/system/test_scale.py

bench: $(STAMP) ## measure shim and bridge side by side; writes docs/benchmarks.md
	@PYTHONPATH=tests $(BIN)/python -m bench

snapshot: $(STAMP) ## write the shim's early answers from the daemon's own
	@PYTHONPATH=tests $(BIN)/python -m bench.snapshot

clean: ## remove all that make and the tools wrote
	@rm -rf .venv build dist .mypy_cache .ruff_cache .hypothesis .pytest_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help venv demo test test-hosts test-typescript parity fuzz soak scale check bench snapshot clean
