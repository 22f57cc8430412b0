"""Columns and ridges of very different scales: no penalised column is excluded unless the bound accounts for it."""

from decimal import Decimal

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.floating_point import outside_norm_bound
from diffrac_cvx.points.linear_algebra import whitener_with_ridge
from experiments.stress.exact import best_labels_value

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("size", [1e5, 1e10, 1e14, 1e15])
def test_a_column_beside_a_much_larger_one_is_kept_where_the_ridge_is_small_beside_both(size):
    X = np.array([[size, 3, 0, 0], [-size, 3, 0, 0], [0, -6, 0, 0]])
    found = dc.low_rank(X, ridge=1.0)
    certificate = dc.certify_labels(X, [1, 1, -1], found, ridge=1.0)
    assert found.lower <= found.upper < 0.0257 < 0.157 < certificate.objective
    assert found.gap < 1e-5
    for other in (dc.fista(X, ridge=1.0), dc.certify_v(X, found, ridge=1.0), dc.certify_y(X, found.F, ridge=1.0)):
        assert max(other.lower, found.lower) <= min(other.upper, found.upper)


@pytest.mark.parametrize("lam", [0.0, 1e-40])
def test_what_a_tiny_ridge_keeps_is_not_proved_away(lam):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(20), rng.choice([-1.0, 1.0], 20)
    found = dc.low_rank(np.column_stack([x, x + 2.0**-44 * y]), ridge=1e-40, lam=lam, time_limit=2)
    assert found.lower < 1e-12  # the difference of the columns fits y
    assert found.upper < 0.4


@pytest.mark.parametrize("seed", range(40))
def test_no_bound_exceeds_the_best_labels_at_any_scale_of_columns_and_ridge(seed):
    rng = np.random.default_rng([21, seed])
    n, d = int(rng.integers(3, 8)), int(rng.integers(2, 8))
    X = rng.standard_normal((n, d)) * 10.0 ** (rng.integers(-3, 18, d) * (rng.random(d) < rng.choice([0.2, 1.0])))
    a = 10.0 ** (rng.uniform(-8, 8) if seed % 2 else rng.uniform(-8, 8, d)) * np.ones(d)
    nu, penalty = float(rng.choice([1.0, 0.3])), dc.Penalty(a=a)
    found, best = dc.low_rank(X, nu, penalty, tol=1e-7, time_limit=2), best_labels_value(X, nu, a)
    for one in (found, dc.certify_v(X, found.V, nu, penalty), dc.certify_y(X, found.F, nu, penalty=penalty)):
        assert Decimal(one.lower) <= best


# The whitener


@pytest.mark.parametrize("heavy", [0, 1, 3])
@pytest.mark.parametrize(("n", "d"), [(5, 12), (5, 6), (12, 5)])
def test_the_whitener_whitens_and_its_span_has_all_that_the_data_have(n, d, heavy):
    X, a = np.random.default_rng([n, d, heavy]).standard_normal((n, d)) / n**0.5, np.full(d, 0.3)
    a[:heavy] = 1e-9
    found, gram = whitener_with_ridge(X, a), X.T @ X + np.diag(a**2)
    W, _, _ = found
    np.testing.assert_allclose(W.T @ gram @ W, np.eye(W.shape[1]), atol=1e-10)
    assert outside_norm_bound(found, n) < 1e-11
    # The projection on the span, in the metric of X'X + Diag(a)^2, changes no product with the data.
    np.testing.assert_allclose(X @ W @ W.T @ gram, X, atol=1e-8)


def test_a_ridge_that_rounding_hides_makes_the_coordinates_inexact_and_excludes_nothing():
    x = np.random.default_rng(0).standard_normal(12)
    for ridge, is_hidden in ((1e-18, True), (1e-3, False)):
        problem = direction_problem(array_points(np.column_stack([x, x]) - x.mean()), 1.0, dc.Penalty(ridge))
        assert problem.coordinates.n_excluded == 0
        assert (problem.whitening_error.right_error > 0.5) == is_hidden
