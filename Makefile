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
.PHONY: help env test test-all check format phase-transition sparse-regime unbalanced runtime robustness noise rivals theory wide-law two-class multi-label many-clusters validate stress convergence optimal structure groups answer few-labels choice wide scale benchmark coverage mutation \
        test-page explore data docs reproduction figures wheel sdist clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s%s\n", $$1, $$2 }' Makefile
	@echo "Variables: PYTHON=$(PYTHON) GRID=$(GRID) SOLVER=$(SOLVER) JOBS=$(JOBS) SCHEDULER=$(SCHEDULER) PORT=$(PORT)"

env: $(STAMP) ## make .venv, or bring it up to its pins

# constraints.txt is the pip freeze of a new Python 3.11 environment with both extras, hatchling and editables.
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

mutation: $(STAMP) ## small changes of the library that the fast tests have to notice; after coverage (JOBS)
	$(RUN) experiments.mutation --jobs $(JOBS)

check: $(STAMP) ## lint, formatting, types
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy

format: $(STAMP) ## sort imports and format
	$(RUN) ruff check --select I --fix
	$(RUN) ruff format

phase-transition: $(STAMP) ## Figure 1: rank and error over n and d (GRID, SOLVER, JOBS)
	$(RUN) experiments.phase_transition --grid $(GRID) --solver $(SOLVER) --jobs $(JOBS) $(CLUSTER)

sparse-regime: $(STAMP) ## the conjecture n = O(l d) and lambda against d (GRID, JOBS)
	$(RUN) experiments.sparse_regime --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

unbalanced: $(STAMP) ## Figure 2: unbalanced clusters (GRID, JOBS)
	$(RUN) experiments.unbalanced --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

runtime: $(STAMP) ## Figure 3: time and error by solver (GRID, JOBS)
	$(RUN) experiments.runtime --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

robustness: $(STAMP) ## Figure 4: noise dimensions (GRID, JOBS)
	$(RUN) experiments.robustness --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

noise: $(STAMP) ## error, proved gap and spectrum over the noise on the labels (GRID, JOBS)
	$(RUN) experiments.noise --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

rivals: $(STAMP) ## other methods on noiseless data (GRID, JOBS)
	$(RUN) experiments.rivals --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

theory: $(STAMP) ## propositions, lemmas, conjectures (GRID, JOBS)
	$(RUN) experiments.theory --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

wide-law: $(STAMP) ## when a few informative columns of many show two groups (GRID, JOBS)
	$(RUN) experiments.wide_law --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

# Where diffrac_cvx.datasets.fetch puts its files, unless told otherwise.
two-class multi-label many-clusters choice benchmark optimal few-labels: export DIFFRAC_DATA_HOME ?= $(USER_CACHE)/diffrac_cvx

two-class: $(STAMP) ## Table 1: two-class data (GRID, JOBS; DIFFRAC_DATA_HOME)
	$(RUN) experiments.two_class --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

multi-label: $(STAMP) ## Figures 5 and 6: many labels (X and Y for your files)
	$(RUN) experiments.multi_label --grid $(GRID) --jobs $(JOBS) $(CLUSTER) --x "$(X)" --y "$(Y)"

many-clusters: $(STAMP) ## more than two clusters, beside k-means and a Gaussian mixture (GRID, JOBS; DIFFRAC_DATA_HOME)
	$(RUN) experiments.many_clusters --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

scale: $(STAMP) ## tables that outgrow memory: on disk, sparse, on a cluster's workers (GRID; 4 GB under build)
	$(RUN) experiments.scale --grid $(GRID) --jobs 1 $(CLUSTER)

explore: $(STAMP) ## the interactive page, in the browser (PORT)
	$(RUN) diffrac_cvx.app.page --port $(PORT)

data: $(STAMP) ## the shipped data, and yeast, from the packages they come from, compared (pip, apt)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[data]"
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
figures: ## everything above, then docs/reproduction.md
	$(MAKE) phase-transition
	$(MAKE) sparse-regime
	$(MAKE) unbalanced
	$(MAKE) runtime
	$(MAKE) robustness
	$(MAKE) noise
	$(MAKE) rivals
	$(MAKE) theory
	$(MAKE) wide-law
	$(MAKE) two-class
	$(MAKE) multi-label
	$(MAKE) many-clusters
	$(MAKE) validate
	$(MAKE) reproduction

validate: $(STAMP) ## fast solvers against the reference path (GRID, JOBS)
	$(RUN) experiments.validate --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

stress: $(STAMP) ## brackets on 12 750 adversarial instances, against sixty digits (GRID, JOBS)
	$(RUN) experiments.stress --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

convergence: $(STAMP) ## what each solver solves to gaps of 1e-4 and 1e-8, by family and size (GRID, JOBS)
	$(RUN) experiments.convergence --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

optimal: $(STAMP) ## labels proved optimal, beside other exact methods; the relaxation judged (GRID, JOBS; DIFFRAC_DATA_HOME)
	$(RUN) experiments.optimal --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

structure: $(STAMP) ## is there a structure: p-values without groups, power with them, beside other tests (GRID, JOBS)
	$(RUN) experiments.structure --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

groups: $(STAMP) ## planted groups of columns beside l1, wrong groups, the weights that keep a direction (GRID, JOBS)
	$(RUN) experiments.groups --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

few-labels: $(STAMP) ## few labels known, beside supervised and semi-supervised methods (GRID, JOBS; DIFFRAC_DATA_HOME, pip, apt)
	$(RUN) experiments.few_labels --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

choice: $(STAMP) ## lambda and ridge chosen without labels, on labelled sets (GRID, JOBS; DIFFRAC_DATA_HOME)
	$(RUN) experiments.choice --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

wide: $(STAMP) ## tables with far more columns than rows, beside methods made for them (GRID, JOBS; pip, apt)
	$(RUN) pip install --quiet --disable-pip-version-check --editable ".[data]"
	$(RUN) experiments.wide --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

# One solve at a time: side by side they share caches and memory, and disturb each other's times.
benchmark: JOBS := 1
benchmark: $(STAMP) ## all solvers: seconds to a proved gap, Gram passes, memory (GRID; DIFFRAC_DATA_HOME)
	$(RUN) experiments.benchmark --grid $(GRID) --jobs $(JOBS) $(CLUSTER)

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
