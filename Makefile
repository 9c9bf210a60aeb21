# Everything needs Python >= 3.11 and make, and nothing else: `make demo`, `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Two workers a core, since half of the time of a test goes by while processes that it has started come up, or are killed. Each
# has a stretch of the tests, and takes from others when it is done: so what a file's tests share is made once, and few
# kernels are compiled by two at the same time.
WORKERS := 2
PYTEST = $(BIN)/python -m pytest -n $(shell $(BIN)/python -c "import os; print($(WORKERS) * (os.cpu_count() or 1))") --dist worksteal
# Tests start many processes: bytecode is kept for the next one, also where the environment says otherwise (0.5 s for each).
export PYTHONDONTWRITEBYTECODE :=

# pip, with a line that tells what it does and for how long.
INSTALL := $(BIN)/python release/install.py

.PHONY: help demo test checked coverage fuzz soak lint bench docs release-check clean

help:
	@echo "make demo   install into $(VENV), then train and evaluate on simulated splice sites"
	@echo "make test   install into $(VENV), then run all tests"
	@echo "make test-core, -features, -sources, -kernels, -automata, -cluster, -cli   those of one area"
	@echo "make coverage  which lines the tests of kernels and estimators reach"
	@echo "make soak   hours of commands that are killed, starved of disk and resumed"
	@echo "make fuzz   a million damaged files of each format"
	@echo "make lint   ruff, mypy, import-linter, and whether the house has grown (benchmarks/house.py)"
	@echo "make bench  all benchmarks against their peers, into docs/benchmarks.md"
	@echo "make docs   the site of the documentation into site/, strictly: links, anchors and names have to be there"
	@echo "make release-check  build sdist and wheel, and try them in fresh environments"
	@echo "make clean  remove $(VENV) and what the tools left behind"

$(VENV)/.package: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "dotadd needs Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) "a new pip" --upgrade "pip>=25.1"
	@$(INSTALL) "dotadd and what it needs (a minute or two, if nothing of it is kept by pip)" --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.package
	@$(INSTALL) "the tools of developers (as long again)" --group dev
	touch $@

# The peers of the benchmarks; LIBLINEAR is built from source, so this alone needs a C++ compiler.
$(VENV)/.bench: $(VENV)/.package
	@$(INSTALL) "the peers of the benchmarks (some minutes: LIBLINEAR is compiled)" --group bench
	touch $@

$(VENV)/.docs: $(VENV)/.package
	@$(INSTALL) "mkdocs and what it needs" --group docs
	touch $@

demo: $(VENV)/.package
	$(BIN)/dotadd demo

test: $(VENV)/.dev
	$(PYTEST)
	$(MAKE) checked

# The same by area, for whoever works in one; together they are all tests.
AREAS := core features sources kernels automata cluster cli
TESTS_core := core data util problem solvers estimators model explain pictures
TESTS_features := features
TESTS_sources := sources genome
TESTS_kernels := kernel_svm
TESTS_automata := automata
TESTS_cluster := cluster
TESTS_cli := cli report programs
$(AREAS:%=test-%): test-%: $(VENV)/.dev
	$(PYTEST) $(TESTS_$*:%=tests/%)

# Once more with every array access checked, in a cache of its own: the tests of what reaches memory by index. They start
# no processes and compile for most of the time, so one worker a core is enough: each translates what kernels share anew.
CHECKED := block_operations kept kept_rows packed row_products threads line_search simplex_qp bundle newton lbfgs dcd_optimum sgd features_strings features_text features_vectors features_compose features_shifted bulk \
	features_inexact forms inspect_names windows scan source_libsvm source_arrow source_memory source_lattices pool ragged check_source stream certificate \
	block_minimization partner transforms lbp automata_paper automata_algebra automata_minimal automata_builders automata_errors automata_files lattices rational rational_solvers weight_automata working_set smo irwls kernels chunking double_chunking
CHECKED_FILES = $(foreach name,$(CHECKED),$(wildcard tests/*/test_$(name).py))
checked: WORKERS := 1
checked: $(VENV)/.dev
	NUMBA_BOUNDSCHECK=1 $(PYTEST) -m "not unchecked" $(CHECKED_FILES)

# Coverage sees into kernels only when they run as Python.
coverage: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) --cov=dotadd --cov-report=term-missing:skip-covered $(CHECKED_FILES) tests/core/test_losses.py tests/estimators/test_estimator.py

# Too long for CI; SOAK="--kills 5 --jobs vectors" makes it shorter. A little of it is in the tests.
soak: $(VENV)/.dev
	$(BIN)/python tests/soak.py $(SOAK)
	$(BIN)/python tests/soak_cluster.py

# Damaged files; `make fuzz FUZZ_CASES=10000 FORMATS="csv jsonl"` is over sooner.
FUZZ_CASES ?= 1000000
FORMATS ?=
fuzz: $(VENV)/.dev
	cd tests && $(abspath $(BIN))/python -m fuzz $(FORMATS) --cases $(FUZZ_CASES)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m benchmarks.house --check

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks > docs/benchmarks.md.new
	mv docs/benchmarks.md.new docs/benchmarks.md

# mkdocs-material tells of its successor on every build, which is no warning of ours.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Builds sdist and wheel and tries them in fresh environments; PYTHONS="3.11 3.12" have to be there, OFFLINE=1 fetches
# nothing, FINAL=v1.2.3 leaves nothing to the owner.
release-check: $(VENV)/.dev
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python release/check.py $(if $(filter-out undefined,$(origin PYTHONS)),--pythons $(PYTHONS)) $(if $(OFFLINE),--offline) $(if $(FINAL),--final $(FINAL))

clean:
	rm -rf $(VENV) dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
