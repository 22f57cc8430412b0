"""Planted feature groups, the weights chosen for them, and the weight that hides an exact direction."""

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.groups import findings, law
from experiments.groups.cells import make_table


def test_the_normal_table_is_isotropic_and_one_direction_splits_it():
    norms = law.group_norms_of(3, 0.6)
    X, v = law.normal_table(400, 3, norms, np.random.default_rng(0))
    np.testing.assert_allclose(X.T @ X / 400, np.eye(24), atol=1e-12)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.abs(X @ v), 1.0, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(v.reshape(law.GROUPS, 3), axis=1)[:3], norms)
    for planted, d in ((2, 10), (5, 7)):  # equal parts
        assert law.predicted_threshold(law.group_norms_of(planted, 1.0), d) == pytest.approx(1 / ((planted - 1) * d))


@pytest.mark.parametrize("size", [2, 3])
def test_the_table_of_two_values_is_one_with_an_exact_direction_that_no_weight_keeps(size):
    X = law.two_valued_table(size, np.random.default_rng(size))
    n, d = X.shape
    assert set(np.unique(X)) == {-1.0, 1.0}
    np.testing.assert_array_equal(X.T @ X, n * np.eye(d))
    assert set(np.unique(X[:, : 4 * size : size].sum(axis=1))) == {-2.0, 2.0}
    groups, weight = np.repeat(np.arange(law.GROUPS), size), 1e-3
    found = dc.low_rank(X, penalty=dc.Penalty(lam=weight, groups=groups), tol=1e-7)
    assert found.lower - 1e-9 <= weight / (1 + weight) <= found.upper + 1e-9  # the value of V = tI
    assert found.upper < 4 * weight / (1 + 4 * weight), "what the exact direction costs"


def test_the_components_change_at_the_weight_found():
    row = law.measure_law("normal", 2, 3, 0.8, 0.3, 100, 0)
    assert row["joined"] < row["separate"] == 3
    assert row["share"] == pytest.approx(row["predicted"], rel=0.3)


def test_a_planted_shift_has_the_norm_asked_for_in_the_columns_named():
    for place, columns in (("groups", np.arange(15)), ("one of each group", np.arange(0, 100, 5))):
        table = make_table(place, 5_000, 1.5, np.random.default_rng(1))
        np.testing.assert_array_equal(np.flatnonzero(table.used), columns)
        m = np.abs(table.X.T @ table.y / len(table.y))
        assert np.linalg.norm(m / np.sqrt(1 - m**2)) == pytest.approx(1.5, rel=0.05)


def test_a_weight_is_chosen_on_the_tables_that_it_is_not_judged_by():
    rows = pd.DataFrame({"replication": [0, 1, 2, 3], "exact_0.4": [1, 0, 1, 0], "exact_0.1": [0, 1, 0, 1]})
    assert findings.chosen(rows, "exact").tolist() == [0, 0, 0, 0]
    assert findings.somewhere(rows).value == 1.0
