"""The validation battery: its coverage, and its detection of wrong answers."""

from dataclasses import replace

import numpy as np
import pandas as pd

from diffrac_cvx.comparison.instances import ZERO_OPTIMUM, Design
from experiments.validate import cells as validate_cells
from experiments.validate.cells import SEED
from experiments.validate.findings import check

CELLS = validate_cells.cells_of("full")
CASE = Design(20, 5, 0.5, "weak l1", "noisy")


def test_the_battery_covers_every_nu_penalty_and_trait_below_and_above_n_equal_d():
    cells = pd.DataFrame(CELLS)
    assert len(cells) >= 200
    assert set(cells["nu"]) == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert (cells["n"] < cells["d"]).any()
    cells = cells[cells["trait"] != ZERO_OPTIMUM]
    assert len(cells.groupby(["nu", "trait"])) == 20
    assert len(cells.groupby(["penalty", "trait"])) == 25


def test_the_solvers_agree_on_an_instance():
    row = validate_cells.measure(12, 3, 0.5, "mixed", "noisy")
    assert (row["agrees"], row["named"]) == (1, "")


def test_what_is_wrong_with_one_method_is_named_with_the_method(monkeypatch):
    honest = validate_cells.run

    def lying(method, task):
        result = honest(method, task)
        by = 1e-3 * result.solver.startswith("fista")
        return replace(result, value=result.value + by, lower=result.lower + by, upper=result.upper + by)

    monkeypatch.setattr(validate_cells, "run", lying)
    row = validate_cells.measure(*CASE)
    assert row["agrees"] == 0
    assert "fista: the value is" in row["named"]
    assert "low_rank: " not in row["named"]


def test_a_check_fails_where_brackets_lie_apart_and_names_what_makes_the_instance_again():
    ridge = {"n": 12, "d": 3, "nu": 0.5, "penalty": "ridge", "trait": "plain"}
    rows = pd.DataFrame([{**cell, "violation": 0.0, "between": "a | b", "agrees": 1} for cell in (CELLS[0], ridge)])
    assert check(rows).passed
    verdict = check(rows.assign(agrees=[1, 0], violation=[0.0, 0.5], named=["", "fista: the value is 2"]))
    assert not verdict.passed
    (line,) = [line for line in verdict.text.splitlines() if line.startswith("APART by 0.5 (a | b): ")]
    code, _, named = line.removeprefix("APART by 0.5 (a | b): diffrac_cvx.comparison.instances.").partition("; ")
    assert named == "fista: the value is 2"
    np.testing.assert_array_equal(eval(code, {"Design": Design}).X, Design(**ridge).instance(SEED).X)
