"""Marginal gains: the cost increase without a feature, compared with costs computed without it."""

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.estimators.marginal_gains import marginal_gains
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.points.reading import as_points

PENALTIES = (dc.Penalty(ridge=0.3), dc.Penalty(lam=0.05, ridge=0.3), dc.Penalty())


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(("n", "d"), [(40, 4), (12, 20), (9, 9)])
def test_the_gain_of_a_feature_is_the_cost_without_it_less_the_cost(n, d, K, penalty):
    rng = np.random.default_rng([n, d, K])
    X, labels = standardize_columns(rng.standard_normal((n, d))), np.arange(n) % K

    def cost(part):
        return dc.certify_clusters(part, labels, 0.0, K, penalty=penalty).objective

    expected = [cost(np.delete(X, j, axis=1)) - cost(X) for j in range(d)]
    np.testing.assert_allclose(marginal_gains(as_points(X), labels, penalty, K), expected, atol=1e-12)


def test_two_equal_columns_add_nothing_each_without_a_ridge():
    X = np.random.default_rng(0).standard_normal((30, 3))
    X = standardize_columns(np.column_stack([X, X[:, 0]]))
    gains = marginal_gains(as_points(X), (X[:, 0] > 0.0).astype(int), dc.Penalty())
    np.testing.assert_allclose(gains[[0, 3]], 0.0, atol=1e-12)


def test_where_the_time_is_over_the_gains_of_features_in_use_are_not_known():
    planted = dc.datasets.make_planted(40, 5, noise=0.1, rng=0)
    gains = marginal_gains(as_points(planted.X), (planted.y > 0).astype(int), dc.Penalty(lam=0.1), time_limit=1e-9)
    assert np.isnan(gains).any()
