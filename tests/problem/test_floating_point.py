"""Bounds in floating point hold for the stored numbers, in sixty digits, at any scale, and after overflow."""

from decimal import Decimal
from itertools import islice, product

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
from forms import quick_or_slow
from posed import direction_problem, drop_beside_the_largest

import diffrac_cvx as dc
from diffrac_cvx.certificates import bound_search, proof, values
from diffrac_cvx.points import streamed
from diffrac_cvx.points.floating_point import outside_norm_bound
from diffrac_cvx.points.linear_algebra import EPS, whitener_with_ridge
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.direction_problem import Coordinates, DirectionProblem
from diffrac_cvx.solvers.factored import augmented_lagrangian
from experiments.stress import cells as stress_cells
from experiments.stress.cells import ROUNDED, check_instance, measure
from experiments.stress.exact import direction_value, labels_value, labels_values
from experiments.stress.findings import check
from experiments.stress.instances import DROPPED, FAMILIES, WHOLE, make_instance

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def little_time(monkeypatch):
    """A solve ends early: its bounds hold all the same."""
    monkeypatch.setattr(stress_cells, "SECONDS", 0.1)


# Values in sixty digits


def test_values_in_sixty_digits_are_those_in_double_precision_where_these_are_accurate():
    X, a, c = dc.datasets.make_planted(8, 2, noise=0.3, rng=0).X, np.array([0.1, 0.2]), np.array([0.3, 0.0])
    result = dc.low_rank(X, 0.7, dc.Penalty(a, c), tol=1e-9)
    assert float(direction_value(X, 0.7, a, c, result.G)) == pytest.approx(result.value, abs=1e-12)
    labels = dc.rounding.kmeans_centered(result.F)
    certificate = dc.certify_labels(X, labels, result, nu=0.7, penalty=dc.Penalty(a, c))
    cost = float(labels_value(X, 0.7, a, c, labels, certificate.v))
    assert cost == pytest.approx(certificate.objective, abs=1e-12)
    plain = dc.low_rank(X, 0.7, dc.Penalty(a), tol=1e-9)
    rounded = dc.certify_labels(X, dc.rounding.kmeans_centered(plain.F), plain, nu=0.7, penalty=dc.Penalty(a))
    assert plain.lower <= float(min(labels_values(X, 0.7, a))) <= rounded.objective + 1e-12


@pytest.mark.parametrize(("n", "d"), [(5, 3), (4, 9)])
def test_the_best_labels_of_weighted_points_are_those_of_repeated_ones(n, d):
    rng = np.random.default_rng(n)
    X, a, w = rng.standard_normal((n, d)), np.full(d, 0.3), np.array([1.0, 2.0, *np.ones(n - 2)])
    repeated = np.vstack([X, X[1:2]])
    y, v, G = np.sign(X[:, 0]), rng.standard_normal(d), rng.standard_normal((d, 2))
    for weighted, twice in (
        (min(labels_values(X, 0.5, a, w)), min(labels_values(repeated, 0.5, a))),
        (labels_value(X, 0.5, a, a, y, v, w), labels_value(repeated, 0.5, a, a, np.append(y, y[1]), v)),
        (direction_value(X, 1.0, a, a, G, w), direction_value(repeated, 1.0, a, a, G)),
    ):
        assert abs(weighted - twice) < Decimal("1e-50")


# Bounds of every solver, on instances of every family

SLOW = ("collinear_beside_l1", "collinear_beside_signs")  # the other two of their kind stay


@pytest.mark.parametrize("number", [1000, *(pytest.param(number, marks=pytest.mark.slow) for number in (1001, 1002))])
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW or name.endswith("outwards") else [])
        for name in sorted([*FAMILIES, *WHOLE])
    ],
)
def test_no_bound_is_on_the_wrong_side_of_an_exact_value(family, number):
    for bound in check_instance(make_instance(family, number))[0]:
        assert bound.excess <= ROUNDED, bound


# The check can fail


def test_a_lower_bound_that_forgets_rounding_is_found_out(monkeypatch):
    monkeypatch.setattr(bound_search, "least_certified_t", lambda *given: given[4] * (1.0 - 1e-12))
    monkeypatch.setattr(stress_cells, "BATCH", 6)
    row = measure("planted", 0)
    assert row["violations"] > 0
    assert not check(pd.DataFrame([{"family": "planted", **row}])).passed


def test_an_upper_bound_that_forgets_rounding_is_found_out(monkeypatch):
    monkeypatch.setattr(values, "round_up", lambda *_: -1e-12)
    bounds, _ = check_instance(make_instance("gaussian", 2))
    assert any(bound.excess > ROUNDED for bound in bounds if bound.kind == "upper")


@pytest.mark.parametrize("number", range(len(DROPPED)))
def test_columns_dropped_beside_larger_ones_are_found_out(monkeypatch, number):
    instance = DROPPED[number]
    assert make_instance("large_columns", number) is instance
    assert all(bound.excess <= ROUNDED for bound in check_instance(instance)[0])
    monkeypatch.setattr("diffrac_cvx.problem.direction_problem.whitener_with_ridge", drop_beside_the_largest)
    bounds, n_excluded = check_instance(instance)
    assert n_excluded == 0
    assert max(bound.excess for bound in bounds if bound.kind == "lower") > 0.02


def kept_by_stacked_rows(problem):
    """W of the directions of free columns along which these, with rows of the penalty below, vary by 8 (2 D) eps."""
    M, free = np.vstack([problem.R, np.diag(problem.c)]), (problem.a == 0.0) & (problem.c == 0.0)
    _, singular, right = np.linalg.svd(M[:, free], full_matrices=False)
    basis = np.eye(len(free))[:, free] @ right[singular > 8 * len(M) * EPS * singular[0]].T
    _, singular, right = np.linalg.svd(M @ np.hstack([basis, np.eye(len(free))[:, ~free]]), full_matrices=False)
    return np.hstack([basis, np.eye(len(free))[:, ~free]]) @ (right.T / np.maximum(singular, EPS / 8 * singular[0]))


def test_directions_that_one_decision_excludes_and_another_does_not_count_are_found_out(monkeypatch):
    monkeypatch.setattr(DirectionProblem, "W", property(kept_by_stacked_rows))
    monkeypatch.setattr(Coordinates, "n_excluded", 0)
    bounds, excluded = check_instance(make_instance("collinear_beside_l1", 10))
    assert excluded == 0
    assert max(bound.excess for bound in bounds if bound.kind == "lower") > 0.02


def test_a_table_whose_change_is_not_seen_is_found_out(monkeypatch):
    monkeypatch.setattr(stress_cells, "SECONDS", 5.0)
    monkeypatch.setattr(streamed, "checksum", lambda block, _: np.zeros(block.shape[1]))
    assert max(bound.excess for bound in check_instance(make_instance("changed_table", 9))[0]) > 1e-3


# Columns and ridges of very different scales


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


@pytest.mark.parametrize("seed", range(20))
def test_no_bound_exceeds_the_best_labels_at_any_scale_of_columns_and_ridge(seed):
    rng = np.random.default_rng([21, seed])
    n, d = int(rng.integers(3, 8)), int(rng.integers(2, 8))
    X = rng.standard_normal((n, d)) * 10.0 ** (rng.integers(-3, 18, d) * (rng.random(d) < rng.choice([0.2, 1.0])))
    a = 10.0 ** (rng.uniform(-8, 8) if seed % 2 else rng.uniform(-8, 8, d)) * np.ones(d)
    nu, penalty = float(rng.choice([1.0, 0.3])), dc.Penalty(a=a)
    found, best = dc.low_rank(X, nu, penalty, tol=1e-7, time_limit=2), min(labels_values(X, nu, a))
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
        problem = direction_problem(array_table(np.column_stack([x, x]) - x.mean()), 1.0, dc.Penalty(ridge))
        assert problem.coordinates.n_excluded == 0
        assert (problem.whitening_error.right_error > 0.5) == is_hidden


# Overflow


TALL = np.random.default_rng(0).standard_normal((12, 4))
WIDE = np.random.default_rng(0).standard_normal((4, 6))
ONE = np.array([1.0, 0.0, 0.0, 0.0])
TABLES = {
    "columns of 1e95": TALL * 1e95,
    "columns of 1e-95": TALL * 1e-95,
    "one column of 1e95": TALL * np.where(ONE, 1e95, 1.0),
    "columns from 1e-95 to 1e95": TALL * 10.0 ** np.linspace(-95.0, 95.0, 4),
    "few points": WIDE,
    "few points of 1e95": WIDE * 1e95,
}
PENALTIES = {
    "none": dc.Penalty(),
    "lam 0.1": dc.Penalty(lam=0.1),
    "lam 1e-150": dc.Penalty(lam=1e-150),
    "lam 1e30": dc.Penalty(lam=1e30),
    "ridge 1e-150": dc.Penalty(ridge=1e-150),
    "ridge 1e-30": dc.Penalty(ridge=1e-30),
    "ridge 1e30": dc.Penalty(ridge=1e30),
    "lam 1e-30, ridge 1e30": dc.Penalty(lam=1e-30, ridge=1e30),
}
ALTERNATING = (-1.0) ** np.arange(12)
FUNCTIONS = {
    "low_rank": lambda X, penalty: dc.low_rank(X, 0.5, penalty, max_iter=50, time_limit=5),
    "low_rank of sparse columns": lambda X, penalty: dc.low_rank(
        scipy.sparse.csr_array(X), 1.0, penalty, max_iter=50, time_limit=5
    ),
    "fista": lambda X, penalty: dc.fista(X, 1.0, penalty, max_iter=20, time_limit=5),
    "fista published": lambda X, penalty: dc.fista(X, 1.0, penalty, variant="published", max_iter=20, time_limit=5),
    "certify_v": lambda X, penalty: dc.certify_v(X, np.eye(X.shape[1]), 1.0, penalty),
    "certify_labels": lambda X, penalty: dc.certify_labels(X, ALTERNATING[: len(X)], 0.0, penalty=penalty),
    "certify_clusters": lambda X, penalty: dc.certify_clusters(X, np.arange(len(X)) % 3, 0.0, penalty=penalty),
    "find_components": lambda X, penalty: dc.find_components(X, np.eye(X.shape[1]), 1.0, penalty),
}


ALL_CASES = [*product(TABLES, PENALTIES, FUNCTIONS)]  # each table with every other penalty, in turn, by each function
QUICK = [case for i, case in enumerate(ALL_CASES) if (i + i // 8 + i // 64) % 2]


@pytest.mark.filterwarnings("ignore")
@quick_or_slow(("table", "penalty", "name"), ALL_CASES, QUICK)
def test_extreme_scales_give_a_bracket_or_an_error_in_words(table, penalty, name):
    try:
        found = FUNCTIONS[name](TABLES[table], PENALTIES[penalty])
    except (dc.DataError, dc.ParameterError):
        return
    if name != "find_components":
        upper = getattr(found, "upper", getattr(found, "objective", None))
        assert 0.0 <= found.lower <= upper
        assert np.isfinite(upper)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (2, 2), (2, 0)])
def test_a_matrix_that_is_not_finite_is_not_proved_positive(place, value):
    S = np.eye(3)
    S[place] = S[place[::-1]] = value
    assert proof.cholesky_or_none(np.eye(3)) is not None
    assert proof.cholesky_or_none(S) is None
    assert proof.lifted_cholesky(S, 0.0)[0] is None


def fail(message):
    def one_block_iterates(*arguments):
        yield from islice(made(*arguments), 3)
        raise message

    made = augmented_lagrangian.one_block_iterates
    return one_block_iterates


ERRORS = {
    "numpy": np.linalg.LinAlgError("Eigenvalues did not converge"),
    "scipy": ValueError("array must not contain infs or NaNs"),
    "overflow": OverflowError(34, "Numerical result out of range"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_what_was_proved_before_numbers_left_the_range_is_returned(monkeypatch, error):
    monkeypatch.setattr(augmented_lagrangian, "one_block_iterates", fail(ERRORS[error]))
    found = dc.low_rank(TALL, ridge=0.1, tol=1e-15)
    assert found.status is dc.Status.OVERFLOW
    assert 0.0 < found.lower <= found.upper < 1.0
    assert "double precision; the bounds are valid" in str(found.status)


@pytest.mark.parametrize("function", [np.linalg.eigvalsh, scipy.linalg.eigvalsh], ids=["numpy", "scipy"])
def test_an_error_of_a_library_is_one_in_words(function):
    with pytest.raises(dc.DataError, match="range of double precision"):
        in_range()(function)(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match=r"square|0-dim|Last 2"):
        in_range()(function)(np.ones((3, 2)))
