# Every target sets up what it needs. Python 3.11 (with venv), make and gcc are enough.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
unexport PYTHONDONTWRITEBYTECODE  # labs and tests start many processes: each would compile anew

PYTHON ?= $(shell command -v python3.11 || command -v python3)
FUZZ_SECONDS ?= 60
NIGHT_SECONDS ?= 1800
KEEP ?=
BIN := .venv/bin
READY := .venv/.ready
LOCKS := requirements/bootstrap.txt requirements/runtime.txt requirements/dev.txt
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
# What failed beside others is tried once more, alone; what fails again fails.
AGAIN = $(BIN)/python -m pytest -n 0 --last-failed --last-failed-no-failures none --cov --cov-append --cov-report= tests --ignore tests/web

.PHONY: help setup demo test check static bench fuzz nightly format golden proto lock clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## four linked clusters and Faces, to try in a browser; runs until Ctrl-C
	$(BIN)/isthmus demo

test: static ## everything that must pass: static checks, all tests, coverage
	$(BIN)/python scripts/browser.py
	rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(PYTEST) --cov --cov-report= tests --ignore tests/web || $(AGAIN)
	$(BIN)/python -m pytest tests/web
	$(BIN)/python scripts/coverage_gate.py

check: static ## the two-minute part of it: static checks, unit, property and golden tests
	$(PYTEST) tests/unit tests/property tests/golden

static: $(READY) ## format, lint, types and import rules, without tests
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter | tail -n 1

bench: $(READY) ## the figures, as a table (nothing fails)
	$(BIN)/python -m bench

fuzz: $(READY) ## hostile input, led by coverage: FUZZ_SECONDS (60) for each target
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes --requirement requirements/fuzz.txt
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(KEEP)

nightly: $(READY) ## what takes hours: fuzzing, NIGHT_SECONDS (1800) for each target, and many more examples of each property
	$(MAKE) fuzz FUZZ_SECONDS=$(NIGHT_SECONDS)
	HYPOTHESIS_PROFILE=thorough $(PYTEST) --timeout 7200 tests/property

format: $(READY) ## rewrite the sources as the formatter and the safe lint fixes want them
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

golden: $(READY) ## rewrite the golden files; review the diff
	GOLDEN_REWRITE=1 $(PYTEST) tests/golden

proto: $(READY) ## generate the code of the .proto files again
	$(BIN)/python scripts/proto.py
	$(BIN)/python scripts/xds_stubs.py

lock: $(READY) ## compile requirements/*.txt again from pyproject.toml and requirements/*.in
	$(COMPILE) requirements/bootstrap.in --output-file requirements/bootstrap.txt
	$(COMPILE) pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) requirements/dev.in --output-file requirements/dev.txt
	$(COMPILE) requirements/fuzz.in --output-file requirements/fuzz.txt

setup: $(READY) ## only set up .venv

$(READY): $(LOCKS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isthmus needs Python 3.11 or newer, and $(PYTHON) is older: make PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/bootstrap.txt
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/runtime.txt requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src || true   # the first demo starts as fast as the second
	touch $@

clean: ## remove everything that was made, .venv too
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
