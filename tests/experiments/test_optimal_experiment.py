"""The experiment on certified optimal labels: its rivals compared, its cells, and rules that can fail."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles import labelings_values

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import standardize_columns
from experiments import answer
from experiments.optimal import cells, findings, rivals

ROOT = Path(__file__).parents[2]


def rows_of(seed, n=9, d=3, ridge=0.0):
    X = standardize_columns(np.random.default_rng(seed).standard_normal((n, d)))
    return X, cells.whitened_rows(X, ridge)


def test_a_gap_near_the_tolerance_is_closed_because_multipliers_are_not_made_too_stiff():
    """With stiffer multipliers than the violations need, bounds fall again: the gap stays 10 % above the tolerance."""
    instance = cells.make_instance("real", name="wine 1 or 2", ridge=0.0)
    assert dc.optimal_labels(instance.X, tol=cells.TOL, time_limit=20.0).gap <= cells.TOL


# The rivals


@pytest.mark.parametrize("d", [2, 3])
def test_all_labels_all_directions_the_integer_program_and_branch_and_bound_agree(d):
    X, R = rows_of(d, 8, d, 0.2 * (d % 2))
    best, program = labelings_values(X, ridge=0.2 * (d % 2))[1].min(), rivals.solve_integer_program(R, 20.0)
    found = dc.optimal_labels(X, ridge=0.2 * (d % 2), tol=1e-7)
    assert rivals.try_all_directions(R).cost == pytest.approx(best, abs=1e-10)
    assert program.cost == pytest.approx(best, abs=1e-6)
    assert best - 1e-5 <= program.lower <= best + 1e-6
    assert found.upper == pytest.approx(best, abs=1e-7)
    assert found.lower <= best + 1e-12


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_cost_of_labels_is_that_of_eq_9_also_where_columns_are_collinear(ridge):
    X, _ = rows_of(0, 12, 4)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    y = np.where(np.arange(12) < 5, 1.0, -1.0)
    proof = dc.certify_labels(X, y, 0.0, penalty=dc.Penalty(ridge=ridge))
    cost = cells.cost_of(cells.whitened_rows(X, ridge), y)
    assert cost == pytest.approx(proof.objective, abs=1e-8)


def test_alternation_ends_at_labels_that_it_leaves_and_never_below_the_best():
    X, R = rows_of(1, 12, 3)
    found = rivals.alternate_from(R, rivals.random_labels(R, 50, np.random.default_rng(0)))
    assert min(cells.cost_of(R, y) for y in found) == pytest.approx(labelings_values(X)[1].min(), abs=1e-10)
    y = rivals.alternate_from(R, rivals.random_labels(R, 1, np.random.default_rng(1)))
    np.testing.assert_array_equal(rivals.alternate_from(R, y), y)


def test_a_program_that_is_stopped_at_once_proves_little_and_nothing_false():
    _, R = rows_of(2, 18, 3)
    assert 0.0 <= rivals.solve_integer_program(R, 1e-3).lower <= rivals.try_all_directions(R).cost + 1e-6


# The findings on constructed tables


def made(right=40, **columns):
    """Forty instances; a column given as a pair has the first value in `right` rows, the second elsewhere."""
    usual = {
        "part": "planted", "ridge": 0.0, "noise": 0.3, "points": 30, "columns": 3, "limit": 15.0, "solved": 1,
        "lower": 0.1, "upper": 0.1, "gap": 0.0, "root_gap": 0.01, "hardness": 0.1, "nodes": 9, "seconds": 1.0,
        "above restarts": 0.0, "runs that reach": 0.5,
        "above kmeans_centered": 0.0, "above rounding, then alternation": 0.0, "error of optimum": 0.1,
        "error of rounding": 0.1, "error of k-means": 0.3, "cost of program": 0.1, "lower of program": 0.1,
        "seconds of program": 20.0, "seconds of directions": 2.0,
    }  # fmt: skip
    first = np.arange(40) < right
    entries = {name: np.where(first, *value) if isinstance(value, tuple) else value for name, value in columns.items()}
    return pd.DataFrame({**usual, **entries}, index=range(40))


PROGRAM = "seconds of program"


@pytest.mark.parametrize(
    ("counted", "row", "columns", "share"),
    [
        (findings.by_difficulty, findings.NEAR, {"solved": (1, 0)}, (40, 0.75)),
        (findings.by_difficulty, findings.FAR, {"root_gap": (0.2, 0.01)}, (30, 1.0)),
        (findings.by_difficulty, findings.LITTLE, {"hardness": (0.1, 0.5)}, (30, 1.0)),
        (findings.exact_methods, findings.TEN_TIMES, {PROGRAM: (20.0, 2.0)}, (40, 0.75)),
        (findings.exact_methods, findings.TEN_TIMES, {PROGRAM: 2.0, "lower of program": (0.0, 0.1)}, (40, 0.75)),
        (findings.exact_methods, findings.TEN_TIMES, {"points": (30, 10)}, (30, 1.0)),
        (findings.exact_methods, findings.ENUMERATED, {"seconds of directions": (2.0, 0.5)}, (40, 0.75)),
        (findings.heuristics, findings.RESTARTED, {"above restarts": (0.0, 0.1)}, (40, 0.75)),
        (findings.heuristics, findings.ROUNDED, {"above kmeans_centered": (0.0, 0.1)}, (40, 0.75)),
        (findings.nearer, "real", {"part": "real", "error of rounding": (0.2, 0.05)}, (40, 0.75)),
        (findings.nearer, "real", {"part": ("real", "planted"), "error of rounding": 0.2}, (30, 1.0)),
    ],
)  # fmt: skip
def test_a_share_is_that_of_the_instances_of_its_kind(counted, row, columns, share):
    found = counted(made(30, **columns)).loc[row]
    assert (found["instances"], found["share"].value) == share


def test_a_contradiction_fails_the_command():
    below, above = {"above kmeans_centered": -0.01}, {"cost of directions": 0.2, "lower of directions": 0.2}
    outcome = findings.check(pd.concat([made(**columns).head(1) for columns in (below, above)]))
    assert not outcome.passed
    assert "BELOW THE BOUND: above kmeans_centered" in outcome.text
    assert "BOUND ABOVE THE COST: all directions" in outcome.text
    assert findings.check(made()).passed


def test_the_table_of_the_readme_names_the_proved_optimum_if_the_table_is_small(monkeypatch):
    X, y, _ = dc.datasets.make_planted(30, 4, noise=0.3, rng=0)
    three = np.repeat([0, 1, 2], 10)
    monkeypatch.setattr(answer, "SHOWN", ("two", "three"))
    monkeypatch.setattr(answer, "tables", lambda: [("two", X, y), ("three", X + 4.0 * np.eye(3, 4)[three], three)])
    table = answer.compare()
    for row in table.to_dict("records"):
        assert row["gap of exact"] <= 1e-4
        assert row["objective of exact"] <= row["objective"] + 1e-12
    monkeypatch.setattr(answer, "MOST_POINTS", 29)
    assert np.isnan(answer.compare()["objective of exact"][1])
    assert [line.count("|") for line in answer.passage(table).splitlines()] == [13] * 4
