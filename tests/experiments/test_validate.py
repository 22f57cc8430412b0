"""The validation battery: its coverage, and its detection of wrong answers."""

import dataclasses
import runpy

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.comparison import worst_disagreement
from experiments.validate import cells as validate_cells
from experiments.validate import check
from experiments.validate.cells import FAST, SLACK
from experiments.validate.plot import draw

CELLS = validate_cells.cells_of("full")


def test_the_battery_covers_every_nu_penalty_and_trait_below_and_above_n_equal_d():
    cells = pd.DataFrame(CELLS)
    assert len(cells) >= 200
    assert set(cells["nu"]) == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert (cells["n"] < cells["d"]).any()
    assert len(cells.groupby(["nu", "trait"])) == 25
    assert len(cells.groupby(["penalty", "trait"])) == 25


def test_the_solvers_agree_on_an_instance():
    assert validate_cells.measure(12, 3, 0.5, "mixed", "noisy")["agrees"] == 1


def shifted(result: dc.Result, by: float) -> dc.Result:
    return dataclasses.replace(result, value=result.value + by, lower=result.lower + by, upper=result.upper + by)


@pytest.mark.parametrize("by", [1e-3, -1e-3])
def test_a_bracket_that_is_off_is_noticed(by):
    X, penalty = validate_cells.instance(20, 5, 0.5, "weak l1", "noisy")
    good = dc.low_rank(X, 0.5, penalty, tol=1e-6)
    oracle = dc.solve(dc.v_space(X, 0.5, penalty), "CLARABEL")
    assert worst_disagreement({"low_rank": good, "v_space": oracle}, FAST)[0] <= SLACK
    assert worst_disagreement({"low_rank": shifted(good, by), "v_space": oracle}, FAST)[0] > 1e-4


def test_a_check_fails_where_brackets_lie_apart_and_names_what_solves_the_instance_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(check, "REPRODUCERS", tmp_path)
    ridge = {"n": 12, "d": 3, "nu": 0.5, "penalty": "ridge", "trait": "clean"}
    rows = pd.DataFrame([{**cell, "violation": 0.0, "between": "a | b", "agrees": 1} for cell in (CELLS[0], ridge)])
    assert check.check_brackets(rows).passed
    verdict = check.check_brackets(rows.assign(agrees=[1, 0], violation=[0.0, 0.5]))
    assert not verdict.passed
    assert "APART by 0.5" in verdict.text
    (script,) = tmp_path.glob("*.py")
    X, penalty = validate_cells.instance(**ridge)
    saved = np.load(script.with_suffix(".npz"))
    np.testing.assert_array_equal(saved["X"], X)
    np.testing.assert_array_equal(saved["a"], penalty.weights(3)[0])
    runpy.run_path(str(script))
    assert capsys.readouterr().out.count("Result(") == 4


def test_gaps_and_overlaps_of_a_measured_instance_are_drawn(tmp_path):
    case = {"n": 12, "d": 3, "nu": 0.5, "penalty": "none", "trait": "noisy"}
    draw(pd.DataFrame([case | validate_cells.measure(*case.values())]), tmp_path / "validation")
    assert (tmp_path / "validation.png").stat().st_size > 10_000
