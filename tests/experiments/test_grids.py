"""The grids of the experiments: no cell twice, and the smoke grids are measured, drawn and judged."""

import re
import sys
from importlib import import_module

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from experiments.harness import style
from experiments.harness.command import find_experiments, load
from experiments.harness.findings import format_found
from experiments.harness.reproduction import FIGURES
from experiments.harness.tables import read_table

LARGE = {"benchmark", "choice", "few_labels", "wide"}  # whose grids load large packages
EXPERIMENTS = [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in find_experiments()]
CHECKED = [name for name in find_experiments() if load(name).check is not None]
SMALLER = {  # cheaper settings of the smoke grids
    "few_labels": {},
    "groups": {"GROUPS": 6, "WEIGHTS": (0.4, 0.1)},
    "noise": {"RESTARTS": 1},
    "optimal": {},
    "rivals": {"RESTARTS": 1},
    "sparse_noise": {},
    "sparse_regime": {},
    "structure": {"DRAWS": 3, "RESTARTS": 1},
    "theory": {},
    "weak": {},
    "wide": {},
    "wide_law": {"COLUMNS": 60, "MAX_ITER": 100},
}


@pytest.mark.parametrize("grid", ["full", "smoke"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_grid_has_no_cell_twice(name, grid):
    cells = [tuple(cell.items()) for cell in load(name).cells(grid)]
    assert len(set(cells)) == len(cells) > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name != "wide_law" else []) for name in SMALLER],
)
def test_a_smoke_grid_gives_a_figure_and_claims_with_numbers(name, tmp_path, monkeypatch, few_draws):
    experiment = load(name)
    for setting, value in SMALLER[name].items():
        monkeypatch.setattr(sys.modules[experiment.measure.__module__], setting, value)
    table = pd.DataFrame([{**cell, **experiment.measure(**cell)} for cell in experiment.cells("smoke")])
    experiment.draw(table, tmp_path / "figure")
    plt.close("all")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    found = experiment.findings(table)
    texts = [format_found(one) for one in found]
    assert all(re.search(r"\d", text) and "nan" not in text for text in texts)
    assert experiment.check is None or experiment.check(table).passed


@pytest.mark.parametrize("name", CHECKED)
def test_the_committed_table_passes_the_check_of_its_experiment(name):
    experiment = load(name)
    outcome = experiment.check(read_table(FIGURES / f"{experiment.name}.csv"))
    assert outcome.passed, outcome.text


DRAWN = ("multi_label", "robustness", "runtime", "sparse_noise", "sparse_regime", "theory", "unbalanced")


@pytest.mark.parametrize("name", DRAWN)
def test_all_figures_are_drawn_from_the_committed_table(name, monkeypatch):
    drawn, plot = [], import_module(f"experiments.{name}.plot")
    for module in (plot, style):
        monkeypatch.setattr(module, "save", lambda figure, stem: drawn.append(stem.name), raising=False)
    plot.draw(read_table(FIGURES / f"{name}.csv"), FIGURES / name)
    plt.close("all")
    assert sorted(drawn) == sorted(path.stem for path in FIGURES.glob(f"{name}*.png"))
