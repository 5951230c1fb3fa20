# Everything a developer or a machine runs; each target does its own set-up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install demo test check bench format docs clean
.PHONY: sim mutants crash races faults clients fuzz

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/gateway demo

test: install
	$(BIN)/python -m pytest -n auto

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

# The proof that money is safe; `make test` runs a short form of each (docs/payments.md).
sim: install
	$(BIN)/python -m tests.simulation

mutants: install
	$(BIN)/python -m tests.simulation.mutants

crash: install
	$(BIN)/python -m tests.crashes
	$(BIN)/python -m tests.crashes.power

races: install
	$(BIN)/python -m tests.races

faults: install
	$(BIN)/python -m pytest -q -n auto tests/faults

clients: install
	$(BIN)/python -m tests.clients

fuzz: install
	$(BIN)/python -m tests.fuzz

bench: install
	$(BIN)/python bench/run.py

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
