"""Planted feature groups, the weights chosen for them, and the weight that hides an exact direction."""

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.groups import findings
from experiments.groups.cells import make_table


@pytest.mark.parametrize("norms", [np.full(2, 0.5**0.5), 0.8 ** np.arange(3) / np.linalg.norm(0.8 ** np.arange(3))])
def test_an_exact_direction_is_lost_at_the_weight_derived_for_normal_columns(norms):
    """Eight groups of two columns, X'X = nI and Xv = y."""
    rng, ridge, n, d = np.random.default_rng(0), 0.3, 1600, 16
    y, groups = rng.permutation(np.resize([-1.0, 1.0], n)), np.repeat(np.arange(8), 2)
    others = np.linalg.qr(np.column_stack([np.ones(n), y, rng.standard_normal((n, d - 1))]))[0][:, 2:]
    v = np.zeros(d)
    v[: 2 * len(norms) : 2] = norms
    X = np.outer(y, v) + n**0.5 * others @ np.linalg.svd(v[None])[2][1:]
    products = np.outer(norms, norms) - np.diag(norms**2)
    share = products.max() / np.sum(products**2) / d  # w^2 / (1 + ridge + w^2)
    blocks = []
    for factor in (0.6, 1.6):  # coupled, and certified to be separate
        penalty = dc.Penalty(lam=factor * (1 + ridge) * share / (1 - share), ridge=ridge, groups=groups)
        found = dc.low_rank(X, 1.0, penalty, tol=1e-8)
        components = dc.find_components(X, found, penalty=penalty)
        blocks.append(len(np.unique(components[: 2 * len(norms)])))
    assert blocks[0] < blocks[1] == len(norms)


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
