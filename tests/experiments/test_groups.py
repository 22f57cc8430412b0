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


def test_the_components_change_at_the_weight_found():
    row = law.measure_law(2, 3, 0.8, 0.3, 100, 0)
    assert row["share"] == pytest.approx(row["predicted"], rel=0.3)
    rng = np.random.default_rng([2017, 26, 2, 3, 80, 30, 100, 0])  # the same table
    X, _ = law.normal_table(row["n"], 2, law.group_norms_of(3, 0.8), rng)
    groups, blocks = np.repeat(np.arange(law.GROUPS), 2), []
    for factor in (0.8, 1.25):  # coupled, and certified to be separate
        penalty = dc.Penalty(lam=factor * 1.3 * row["share"] / (1 - row["share"]), ridge=0.3, groups=groups)
        found = dc.low_rank(X, 1.0, penalty, tol=law.TOL)
        blocks.append(len(np.unique(dc.find_components(X, found, penalty=penalty)[:6])))
    assert blocks[0] < blocks[1] == 3


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
