"""The experiment on weak supervision: its instances, closed forms and bounds, and what its findings count."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.harness.tables import read_table
from experiments.optimal.cells import cost_of
from experiments.weak import cells, findings

ROOT = Path(__file__).parents[2]
SMALL = {"name": "wdbc", "size": 4, "seed": 0, "most": 12}


def feasible_labels(instance):
    """All labels that satisfy the constraints as the package reads them."""
    constraints, n = instance.constraints, len(instance.y)
    linear, known = constraints.linear_of(n), constraints.labels
    every = np.array(list(product((-1.0, 1.0), repeat=n)))
    if known is not None:
        every = every[np.all((every == known) | (known == 0.0), axis=1)]
    (A, b), (E, f) = ((rows.coefficients, rows.right) for rows in linear)
    return every[np.all(every @ A.T <= b + 1e-9, axis=1) & np.all(np.abs(every @ E.T - f) < 1e-9, axis=1)]


@pytest.mark.parametrize("kind", cells.KINDS)
def test_closed_forms_are_the_best_labels_under_the_constraints_of_the_package(kind):
    instance = cells.make_instance(kind, **SMALL)
    every = feasible_labels(instance)
    assert instance.y.tolist() in every.tolist()
    rng = np.random.default_rng(0)
    for scores in rng.standard_normal((20, len(instance.y))):
        found = instance.closest(scores)
        assert found.tolist() in every.tolist()
        assert scores @ found == pytest.approx(np.max(every @ scores), abs=1e-12)


@pytest.mark.parametrize("kind", cells.KINDS)
def test_the_optimum_is_that_of_all_labels_and_no_bound_exceeds_it(kind):
    row = cells.measure(kind, **SMALL)
    instance = cells.make_instance(kind, **SMALL)
    R = cells.rows_of(instance)
    best = min(cost_of(R, y) for y in feasible_labels(instance))
    assert row["solved"] == 1
    assert row["objective of optimum"] == pytest.approx(best, abs=cells.TOL)
    assert row["lower"] <= best + 1e-12
    assert row["lower of root"] <= row["lower"]
    assert row["lower of program"] <= best + findings.SLACK
    assert all(row[f"objective of {method}"] >= best - 1e-12 for method in (*cells.METHODS, cells.TRUTH))
    assert findings.check(pd.DataFrame([{"kind": kind, **SMALL, **row}])).passed


def test_a_positive_bag_has_one_or_two_positive_rows_and_the_rows_of_a_negative_bag_are_known():
    instance = cells.make_instance("bags", "digits 3 or 8", 5, 0, 100)
    np.testing.assert_array_equal(instance.counts > 0, ~instance.known[instance.lists[:, 0]])
    assert set(instance.counts.tolist()) == {0, 1, 2}
    assert np.all(instance.y[instance.known] == -1.0)


def test_the_readme_says_how_many_problems_are_certified():
    solved = read_table(ROOT / "figures" / "weak.csv")["solved"]
    words = (
        f"Under bags, order or known counts ([weak supervision](docs/guides/weak_supervision.py)), {solved.sum()} of "
    )
    assert f"{words}{len(solved)} are certified to {cells.TOL:g}." in " ".join((ROOT / "README.md").read_text().split())


# The findings on constructed tables


def made(**columns):
    """Twelve instances of each kind; a column given as a pair has the first value in nine of them."""
    usual = {
        "name": "wdbc", "size": 4, "seed": 0, "solved": 1, "lower": 0.1, "upper": 0.1, "gap": 0.0,
        "lower of root": 0.05, "lower of program": 0.02,
        **{f"{what} {method}": value for method in cells.METHODS
           for what, value in (("right by", 0.9), ("objective of", 0.1), ("seconds of", 1.0))},
        "objective of true labels": 0.12,
    }  # fmt: skip
    first = np.arange(36) % 12 < 9
    entries = {name: np.where(first, *value) if isinstance(value, tuple) else value for name, value in columns.items()}
    return pd.DataFrame({"kind": np.repeat(cells.KINDS, 12), **usual, **entries})


def test_instances_on_which_alternation_is_better_are_counted():
    table = made(**{f"right by {cells.FEW}": (0.8, 1.0)})
    row = findings.scores(table).loc["bags", cells.FEW]
    assert (row["worse than the optimum"], row["better than the optimum"]) == (9, 3)
    assert row["gain of the optimum"].value == pytest.approx(0.05)
    assert "in 9 of 72 comparisons" in findings.findings(table)[-1].comment


def test_shares_are_those_of_weak_bounds_and_of_labels_as_good_as_the_optimum():
    table = made(**{"lower of program": (0.02, 0.06), f"objective of {cells.MANY}": (0.1, 0.11)})
    found = findings.counted(table)["share"]
    assert found[findings.WEAK].value == found[findings.REACHED].value == 0.75


@pytest.mark.parametrize("columns", [{"objective of true labels": 0.09}, {"lower of program": 0.2}])
def test_a_contradiction_fails_the_command(columns):
    assert findings.check(made()).passed
    assert not findings.check(made(**columns)).passed
