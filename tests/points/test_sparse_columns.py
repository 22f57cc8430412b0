"""Sparse columns with a centring row: sums equal those of the array, and bounds include their rounding errors."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from posed import proved_value

import diffrac_cvx as dc
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.floating_point import RoundedFactor, sum_error
from diffrac_cvx.points.reading import as_rows, read_points
from diffrac_cvx.points.sparse import SparseColumns, as_sparse_columns
from diffrac_cvx.points.streamed import StreamedRows
from experiments.stress.exact import direction_value

every_nu = pytest.mark.parametrize("nu", [1.0, 0.6])


@pytest.mark.parametrize("ratio", [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 5.0])
def test_sums_of_sparse_columns_count_their_entries_and_the_row_apart(ratio):
    """Sum of |s| and |r|, which may be much larger than the entry s + r."""
    r = np.array([0.5, -2.0, 1.0])
    S = np.array([[ratio, ratio, 0.0], [0.0, ratio, ratio], [ratio, 0.0, ratio], [0.0, 0.0, 0.0]]) * r
    X, apart = SparseColumns(scipy.sparse.csc_array(S), r), np.abs(S) + np.abs(r)
    u, units = np.array([0.5, 2.0, 1.0, 3.0]), np.array([1.0, 0.5, 4.0])
    assert np.all(X.absolute_sum_bound(X.squares().weighted_row_sum(u), u.sum()) >= u @ apart**2)
    assert np.all(X.row_norms(units) >= np.linalg.norm(apart * units, axis=1))


def test_quadratic_forms_of_sparse_rows_count_what_they_are_made_of_each_where_the_others_are_nothing(monkeypatch):
    """In a coarse unit: squares of the entries, those of the row, which are added and subtracted, and the products."""
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", 2.0**-30)
    d, n, G = 50, 4, scipy.sparse.eye_array(50, format="csc")

    def off(S, r, norm):
        X = SparseColumns(scipy.sparse.csc_array(np.full((n, d), S)), np.full(d, r))
        factor = RoundedFactor(G, np.zeros(d), np.ones(d), norm, n)
        lower, upper = X.quadratic_form_bounds(factor)
        exact = d * (S + r) ** 2
        assert np.all(lower <= exact)
        return upper - exact, factor.errors(X.row_norms(np.ones(d)))

    assert np.all(off(1.0, 0.0, 0.0)[0] >= sum_error(2 * d) * d)
    assert np.all(off(-1.0, 1.0, 0.0)[0] >= sum_error(2 * d) * 2.0 * d)
    alone, products = off(0.0, 0.0, 1.0)
    assert np.all(alone >= products**2)
    assert np.all(products > sum_error(2 * d))
    X = SparseColumns(scipy.sparse.csc_array(np.full((n, d), 3.0)), np.zeros(d))
    gain, energy = X.sum_bounds(RoundedFactor(np.eye(d), np.zeros(d), np.ones(d), d**0.5, n))  # not sparse
    least = sum_error(2 * d) * (3.0 * d**0.5 + 1.0) * d**0.5
    assert n * least <= n * 3.0 * d**0.5 - gain
    assert energy >= n * (3.0 * d**0.5 + least) ** 2


def far_from_zero(n=40, d=5):
    """Return a sparse table with columns of 2000 +- 10, of 0 and 2000 in equal parts, and with a single zero."""
    rng = np.random.default_rng(3)
    points = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    points[:, 0] = 2000.0 + 10.0 * rng.standard_normal(n)
    points[:, 1] = 2000.0 * (rng.random(n) < 0.5)
    points[:, 4] = np.arange(n) != 7  # its mean is n**0.5 times the standard deviation
    return points


@every_nu
@pytest.mark.parametrize("name", ["l1", "ridge", "both"])
def test_bounds_hold_in_sixty_digits_where_a_sparse_column_is_far_from_zero(name, nu):
    points = far_from_zero()
    unit = 1.0 / points.std(axis=0)
    weights = {"l1": (0.0, 0.1), "ridge": (0.3, 0.0), "both": (0.2, 0.1)}[name]
    a, c = (weight / unit for weight in weights)
    penalty, table = dc.Penalty(a, c), scipy.sparse.csr_array(points)
    result = dc.low_rank(table, nu, penalty, tol=1e-7)
    best = dc.low_rank(points, nu, penalty, tol=1e-9)
    exact = direction_value(points, nu, a, c, dense(result.G))
    assert 0.0 <= Fraction(result.upper) - Fraction(exact) <= 1e-7
    assert result.lower <= direction_value(points, nu, a, c, dense(best.G))
    lower, upper = dc.certify_v(table, best, nu, penalty)
    assert lower <= direction_value(points, nu, a, c, dense(best.G)) <= upper
    assert upper - lower <= 1e-7


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_a_value_of_sparse_rows_is_not_below_the_exact_one_however_far_the_row(size):
    rng = np.random.default_rng(5)
    points = rng.standard_normal((20, 3)) * (rng.random((20, 3)) < 0.5)
    points[:, 0] += size
    G = rng.standard_normal((4, 2))
    a, c = np.full(3, 0.1), np.array([0.0, 0.2, 0.3])
    exact = direction_value(points, 0.5, a, c, G)
    for given in (scipy.sparse.csc_array(G), G):
        for X in (as_sparse_columns(scipy.sparse.csr_array(points)), as_rows(scipy.sparse.csr_array(points))):
            if isinstance(X.rows, StreamedRows) and scipy.sparse.issparse(given):
                continue
            found = Fraction(proved_value(X, 0.5, dc.Penalty(a, c), given))
            assert 0.0 <= found - Fraction(exact) <= 1e-11 * size * max(float(exact), 1.0)


def test_rows_of_sparse_columns_have_weighted_grams_that_are_summed_by_blocks():
    """The bounds of `StreamedRows` assume the rounding of blockwise sums, not that of sparse products."""
    columns = as_sparse_columns(scipy.sparse.csr_array(far_from_zero()))
    rows = read_points(columns).X.rows
    np.testing.assert_array_equal(rows.gram, replace(rows, gram=None, units=np.ones(5)).second_moment())
