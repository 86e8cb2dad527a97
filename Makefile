SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STATE := .stateloop
PACKAGES := $(wildcard stateloop contracts spark_app services examples bench tests)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A lock file of the same content gives the same environment: a stamp is newer than what it was made from.
# requirements-run.lock has what the loop needs, requirements.lock also what tests and linters need.
INSTALLED = $(VENV)/.stamp-run
$(INSTALLED): requirements-run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Stateloop needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) -V 2>&1 | cut -d' ' -f2):" \
	    "install one and name it, as in: make install PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "python3 cannot make a virtual environment here: on Debian or Ubuntu, apt install python3-venv" >&2; exit 1; }
	@echo "Installing Python packages into $(VENV) (1.3 GB on disk; a minute or more the first time)"
	@$(call pip_install,requirements-run.lock)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Runs pip with one line of progress; its whole output is in $(VENV)/pip.log.
define pip_install
$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r $(1) 2>&1 | tee $(VENV)/pip.log | { \
  n=0; total=$$(grep -c '^[a-zA-Z].*==' $(1)); \
  show() { if [ -t 1 ]; then printf '\r\033[K%s' "$$1"; fi; }; \
  while read -r word name rest; do \
    case "$$word $$name" in \
      Collecting*|"Requirement already") n=$$((n + 1)); show "  $$n of $$total packages: $${name#already}";; \
      "Installing collected") show "  writing $$n packages to disk";; \
    esac; \
  done; show ""; \
} || { tail -n 20 $(VENV)/pip.log >&2; exit 1; }
endef

$(VENV)/.stamp: requirements.lock $(INSTALLED)
	@echo "Installing the packages for tests and linters"
	@$(call pip_install,requirements.lock)
	@touch $@

.PHONY: install
install: $(VENV)/.stamp ## Install all pinned Python packages into .venv, those for tests and linters too

# Does nothing when they are those of ivy.xml already.
.PHONY: jars
jars: $(INSTALLED) ## Download the jars of Kafka and of Spark's Kafka connector, as pinned in ivy.xml
	@$(BIN)/stateloop jars

# It holds for one JVM and the same jars, so it is made on the machine itself.
.PHONY: classes
classes: jars
	@$(BIN)/python -m spark_app.class_archive

.PHONY: up
up: $(INSTALLED) ## Run the whole loop here, with a live view; Ctrl-C stops it, and the next make up goes on (ARGS=--headless: no view)
	@exec $(BIN)/stateloop up $(FRESH) $(ARGS)

.PHONY: fresh
fresh: FRESH := --fresh
fresh: up ## As make up, from nothing: all records and states are removed first

.PHONY: vitals
vitals: export STATELOOP_APPLICATION = examples.vitals.application:suite
vitals: export STATELOOP_DATA = $(STATE)/vitals
vitals: up ## As make up, with the pulse waveforms of 50 patients (VITALS_PATIENTS=n: of others)

APPLICATION ?= examples.flights.application:app
.PHONY: graph
graph: $(INSTALLED) ## Print the graph of an application's enrichments (APPLICATION=package.module:app, ARGS="--svg FILE")
	@$(BIN)/stateloop graph $(APPLICATION) $(ARGS)

.PHONY: lint
lint: install ## Check style, imports and types
	@$(BIN)/ruff check $(PACKAGES) docs
	@$(BIN)/ruff format --check $(PACKAGES) docs
	@$(BIN)/lint-imports
	@$(BIN)/mypy $(PACKAGES)

.PHONY: docs
docs: install ## Build the documentation into artifacts/site; a broken link or a page without its place fails
	@DISABLE_MKDOCS_2_WARNING=true NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict

.PHONY: format
format: install ## Format the code, and fix what can be fixed
	@$(BIN)/ruff format $(PACKAGES) docs
	@$(BIN)/ruff check --fix $(PACKAGES) docs

# tests/conftest.py decides how many run at once; ARGS=-n0 runs them one after the other, for a debugger. A worker that
# ends before its tests do, as faulthandler_timeout makes it, ends the run. Compiled modules are kept even where the
# environment forbids it: each process that a test starts would compile all of them again.
PARALLEL = python -m pytest --dist loadfile --no-loadscope-reorder --max-worker-restart 0
UNIT = $(PARALLEL) -n auto -m "not (kafka or spark or browser or e2e or slow or full)"
test test-all test-unit test-lowest: export PYTHONDONTWRITEBYTECODE =
.PHONY: test
test: install classes ## Run the tests in parallel; ARGS goes to pytest, as in: make test ARGS="-m 'not e2e'"
	@$(BIN)/$(PARALLEL) -n auto -m "not full" $(ARGS)

.PHONY: test-all
test-all: export HYPOTHESIS_PROFILE = full
test-all: install classes ## Run all tests, also those that only a release needs: a year of data, four times the examples
	@$(BIN)/$(PARALLEL) -n auto $(ARGS)

.PHONY: test-unit
test-unit: install ## Run the tests that take milliseconds: without a broker, Spark, or a browser
	@$(BIN)/$(UNIT) $(ARGS)

# Takes lines of the product out, each of a copy of the tree: the tests named beside it have to fail.
.PHONY: guards
guards: install classes ## Take out each guard of tests/guards: a test must fail (ARGS="--only NAME": some of them)
	@$(BIN)/python -m tests.guards $(ARGS)

# SEEDS scripts from a random first seed, or from FIRST. A script that fails is shrunk, and printed as a test.
SEEDS ?= 200
.PHONY: simulate
simulate: install ## Simulate the loop with faults, an hour for each seed (SEEDS=n FIRST=seed, ARGS=--goes-on)
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(if $(FIRST),--first $(FIRST)) $(ARGS)

# The faults of tests/faults/catalogue.py on a loop of real parts; the results of all runs are in artifacts/faults.json.
.PHONY: faults
faults: install classes ## Run each fault on a real loop, three seeds each (hours; ARGS="--only 24 25", ARGS="--random --hours 2")
	@$(BIN)/python -m tests.faults $(ARGS)

.PHONY: soak
soak: install classes ## Run a real loop under load, with kills, and figures each minute (ARGS="--hours 8 --kill-every 60")
	@$(BIN)/python -m tests.faults --soak $(ARGS)

# In an environment of its own; the tools of the tests have the versions of the lock, as far as the lowest allow them.
LOWEST := $(STATE)/lowest
RESOLVE = $(BIN)/uv pip compile pyproject.toml --quiet --python $(BIN)/python --all-extras --no-emit-index-url \
  --no-emit-find-links
.PHONY: test-lowest
test-lowest: install ## Run the unit tests with the lowest versions that pyproject.toml allows
	@mkdir -p $(LOWEST) && cp requirements.lock $(LOWEST)/requirements.txt
	@$(RESOLVE) --resolution lowest-direct -o $(LOWEST)/bounds.txt >/dev/null
	@$(RESOLVE) --group dev --group bench --constraint $(LOWEST)/bounds.txt -o $(LOWEST)/requirements.txt >/dev/null
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(LOWEST)/venv
	@$(BIN)/uv pip sync --quiet --python $(LOWEST)/venv/bin/python $(LOWEST)/requirements.txt
	@$(BIN)/uv pip install --quiet --python $(LOWEST)/venv/bin/python --no-deps --no-build-isolation --editable .
	@$(LOWEST)/venv/bin/$(UNIT) $(ARGS)

# Everything is in requirements.lock; requirements-run.lock is the part of it that runs, for images.
LOCK = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(ARGS)
.PHONY: lock
lock: install ## Remake the lock files from pyproject.toml; with ARGS=--upgrade, take the newest versions
	@$(LOCK) --all-extras --group dev --group docs --group bench -o requirements.lock
	@$(LOCK) --all-extras --constraint requirements.lock -o requirements-run.lock

# The tools have environments of their own: nothing else here needs them.
.PHONY: sbom
sbom: install jars ## Write the SBOM of the packages in requirements-run.lock and of the jars (CycloneDX) to artifacts/sbom.cdx.json
	@mkdir -p artifacts
	@$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements-run.lock \
	  --pyproject pyproject.toml --mc-type application --output-reproducible -o artifacts/sbom.cdx.json
	@$(BIN)/python -m services.tools.broker.sbom artifacts/sbom.cdx.json

.PHONY: audit
audit: install ## Look for known vulnerabilities of these packages; fails where the registry does not publish them
	@$(BIN)/uv tool run --quiet --from pip-audit==2.10.1 pip-audit -r requirements-run.lock --disable-pip \
	  --require-hashes --strict

.PHONY: clean
clean: ## Remove what was installed and cached; data stays
	@rm -rf $(VENV) $(STATE)/jars $(STATE)/peers $(STATE)/lowest .ruff_cache .mypy_cache .import_linter_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What the harness of the yardstick starts: it gives the broker in BOOT and an empty checkpoint folder in CKPT.
# It measures one snapshot for each record, also of a backlog.
YARDSTICK ?= app
.PHONY: yardstick-job
yardstick-job: install jars
	@STATELOOP_APPLICATION=bench.yardstick.application:$(YARDSTICK) STATELOOP_KAFKA=$(BOOT) STATELOOP_CHECKPOINT=$(CKPT) \
	  STATELOOP_CATCH_UP=false \
	  STATELOOP_JARS=$(abspath $(STATE)/jars) STATELOOP_DRIVER_MEMORY=3g exec $(BIN)/python -m bench.yardstick

RUNS ?= 3
.PHONY: bench
bench: install jars ## Compare job and workers with their peers (hours; ARGS=--help: parts of it); QUICK=1 for a try
	@exec $(BIN)/python -m bench $(if $(QUICK),--quick,--runs $(RUNS)) $(ARGS)

.PHONY: compose-test
compose-test: install ## Run the stack of compose.yaml on a Docker engine, and kill its containers; installs what it needs (as root)
	@exec $(BIN)/python -m tests.compose.lab $(ARGS)
