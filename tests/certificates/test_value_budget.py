"""Rounding errors of objective values, also of labels, against exact rationals, term by term."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from instances import COARSE, centered_normal
from posed import proved_value
from rationals import badly_centered_column, centered, fractions, is_semidefinite, opposite_columns, size

import diffrac_cvx as dc
from diffrac_cvx.certificates import consistency, label_bounds, values
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.label_bounds import (
    LabelMultipliers,
    Projection,
    balance_cost,
    bracket_alpha,
    bracket_nu,
    class_bound,
    class_value,
    correlation_value,
    label_bound,
    min_eigenvalue,
    objective,
    objective_error,
    projection_of,
    with_imbalance,
)
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.floating_point import (
    UNIT_ROUNDOFF,
    RoundedFactor,
    WhiteningErrorBounds,
    block_sum_bounds,
    residual_bounds,
    row_norms,
    sum_error,
)
from diffrac_cvx.points.linear_algebra import scale_to_whiten
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.rows import add_tuples
from diffrac_cvx.points.table import array_table, centered_table
from diffrac_cvx.problem.penalties.base import PairPenalty
from experiments.stress.exact import direction_value

NONE = dc.Penalty()


# The objective at a V


def test_the_sum_of_the_roots_counts_a_centering_in_the_worst_order():
    n, factor = 3000, RoundedFactor(np.array([[1.0], [0.0]]), np.zeros(1), np.ones(2), 1.0, 3000)
    table = opposite_columns(n)
    X, x = as_data(table), centered(table)[:, 0]
    gain, energy = add_tuples(*(block_sum_bounds(factor, rows, np.ones(len(rows))) for rows in (X[:2000], X[2000:])))
    assert Fraction(gain) <= sum(abs(x)) < sum(abs(fractions(X)[:, 0]))
    assert energy >= float(sum(x**2))
    # Without what a centring may change, the small entries, which are too large, would make a root too large.
    i = n // 2
    assert Fraction(float(X[i, 0])) - abs(x[i]) > Fraction(sum_error(30))
    assert Fraction(block_sum_bounds(factor, X[i : i + 1])[0]) <= abs(x[i])


def test_the_norm_of_a_row_is_rounded_even_where_its_products_are_zero(coarse):
    coarse()
    r = 30
    factor = RoundedFactor(np.zeros((2, r)), np.ones(r), np.ones(2), r**0.5, 1)
    gain, energy = block_sum_bounds(factor, np.zeros((1, 2)))
    least = (sum_error(2 + r) + sum_error(r)) * r**0.5
    assert least <= r**0.5 - gain <= 2.0 * least
    assert least <= energy**0.5 - r**0.5 <= 2.0 * least


def test_the_cost_of_a_factor_without_data_is_a_little_more_and_counts_the_terms_of_its_entries(coarse):
    assert (
        8.0 * UNIT_ROUNDOFF <= proved_value(np.zeros((3, 1)), 1.0, NONE, np.zeros((1, 1))) - 1.0 <= 16.0 * UNIT_ROUNDOFF
    )
    coarse()
    raised = proved_value(np.zeros((3, 2)), 1.0, dc.Penalty(a=1.0), np.ones((2, 200))) - 401.0
    assert sum_error(200) * 400.0 <= raised <= sum_error(280) * 400.0


def test_the_sum_of_a_penalty_that_is_exact_and_the_other_terms_is_rounded(monkeypatch, coarse):
    monkeypatch.setattr(PairPenalty, "value_error_bound", lambda *_: 0.0)
    given = np.zeros((3, 2)), 1.0, dc.Penalty(c=1.0), np.ones((2, 1))
    fine = proved_value(*given)
    assert fine == pytest.approx(1.0 + 4.0)
    coarse(values)
    assert proved_value(*given) - fine >= 8.0 * COARSE * 4.0 * 1.2


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("penalty", [NONE, dc.Penalty(a=0.2), dc.Penalty(c=0.3)])
def test_a_value_is_raised_by_what_each_of_its_sums_may_change(coarse, nu, penalty):
    rng, n, d, r = np.random.default_rng(0), 300, 2, 2
    X, G = as_data(rng.standard_normal((n, d))), rng.standard_normal((d + int(nu < 1.0), r))
    fine, exact = proved_value(X, nu, penalty, G), direction_value(X, nu, *penalty.weights(d), G)
    assert 0.0 <= Fraction(fine) - Fraction(exact) <= 1e-11 * max(float(exact), 1.0)
    coarse()
    raised = proved_value(X, nu, penalty, G) - fine
    offset = G[d:].ravel() if nu < 1.0 else np.zeros(r)
    XG = X @ G[:d] + offset
    lengths = np.linalg.norm(XG, axis=1)
    gain, norm = float(np.mean(lengths)), float(np.linalg.norm(G[:d]) + np.linalg.norm(offset))
    off = sum_error(d + r + 8) * (np.linalg.norm(X, axis=1) + 1.0) * norm + 4.0 * sum_error(n) * norm * d**0.5
    rows = 2.0 * float(np.mean(off + sum_error(r) * lengths))
    rows += 2.0 * float(np.mean(lengths * off)) + 2.0 * sum_error(r) * float(np.mean(XG**2)) * r
    least = rows + 2.0 * sum_error(n) * gain + sum_error(n + d + r) * ((fine - 1.0) + 2.0 * gain)
    assert least <= raised <= 1.6 * least
    if nu == 1.0:
        rowwise = proved_value(as_rows(X, warn=False), nu, penalty, G) - fine
        assert 0.5 * least <= rowwise <= 2.0 * least


# Labels


def test_each_term_of_a_residual_bound_is_as_large_as_its_sum_needs(coarse):
    coarse()
    n, d, rng, units = 50, 3, np.random.default_rng(0), np.array([1.0, 0.5, 2.0])
    X, v, target = rng.standard_normal((2, d)), rng.standard_normal(d), np.array([0.7, -1.3])
    length = float(np.linalg.norm(v / units))
    found = np.sqrt(residual_bounds(X @ v, row_norms(X, units), target, v / units, n, 0.0))
    found -= np.abs(target - X @ v)
    products = sum_error(d) * np.linalg.norm(X * units, axis=1) * length
    centering = 4.0 * sum_error(n) * d**0.5 * length
    assert np.all(products + centering <= found)
    assert np.all(found <= centering + products * (d + 20) / d)


def test_the_cost_of_labels_counts_the_terms_of_its_sums_and_the_weights(coarse):
    n, zeros, weights = 200, np.zeros(2), np.full(200, 0.005)
    X, y = centered_normal(n, 2), np.where(np.random.default_rng(0).random(n) < 0.4, 1.0, -1.0)

    def cost(weights=None):
        return values.certified_labels_value(array_table(X, weights), y, zeros, 1.0, PairPenalty(zeros))

    fine = cost()
    assert 32.0 * UNIT_ROUNDOFF <= cost(weights) - fine <= 80.0 * UNIT_ROUNDOFF
    coarse()
    assert sum_error(n) * fine <= cost() - fine <= sum_error(n + 60) * fine
    coarse(values)
    size = np.abs(y - y.mean())  # of a target, which weights leave off by 12 roundings more
    assert cost(weights) - cost() >= (32.0 + 24.0 * np.mean(size * (1.0 + size))) * COARSE


def test_the_cost_of_labels_counts_the_columns_and_that_of_nothing_the_weights_alone(coarse):
    n, d = 4, 300
    y, zeros = np.ones(n), np.zeros(d)

    def cost(nu, weights=None):
        return values.certified_labels_value(array_table(np.zeros((n, d)), weights), y, zeros, nu, PairPenalty(zeros))

    assert cost(0.0) < UNIT_ROUNDOFF
    assert cost(0.0, np.full(n, 0.25)) >= 32.0 * UNIT_ROUNDOFF
    coarse()
    assert sum_error(n + 2 * d) <= cost(1.0) - 1.0 <= sum_error(n + 2 * d + 50)


@pytest.mark.parametrize("K", [2, 3, 9])
def test_the_cost_of_clusters_is_raised_by_what_its_sum_may_change(monkeypatch, coarse, K):
    monkeypatch.setattr(values, "certified_labels_value", lambda *_: 1.0)
    coarse(values)
    fine = (K**2 - 0.5 * (K - 2) ** 2) / (4.0 * (K - 1))
    nothing, weights = np.zeros((K, 1)), PairPenalty(np.zeros(1))
    raised = values.certified_clusters_value(array_table(nothing), np.eye(K), nothing, 0.5, weights) - fine
    differences = 8.0 * COARSE * 2.0 * K**2  # of the sum and nu (K - 2)^2
    least = (sum_error(K) * K**2 + differences) / (4.0 * (K - 1)) + 4.0 * COARSE * fine
    assert least <= raised <= least + sum_error(8) * K**2 / (4.0 * (K - 1))


# The space of labels


@pytest.mark.parametrize("a", [0.0, 0.3])
def test_the_projection_is_off_by_less_than_is_said_and_by_something(a):
    for x in (np.random.default_rng(0).standard_normal(30), badly_centered_column(30) * 3.0):
        X = centered(x[:, None])
        H = projection_of(array_table(as_data(x[:, None], warn=False)), np.array([a]))
        exact = X @ X.T / (sum(X[:, 0] ** 2) + 30 * Fraction(a) ** 2)
        Q = fractions(H.Q)
        assert 0.0 < size(Q @ Q.T - exact) <= H.error


def test_what_a_projection_is_off_is_made_of_both_parts_of_the_whitening_of_its_columns_and_ridge(monkeypatch):
    X, ridge, given = centered_normal(20, 2), np.array([0.1, 0.2]), []
    for exact, least in (
        (WhiteningErrorBounds(1e-3, 0.0), 2e-3 + 1e-6),
        (WhiteningErrorBounds(0.0, 1e-3), 1e-3 / (1.0 - 1e-3)),
    ):
        monkeypatch.setattr(label_bounds, "whitening_error_bounds", lambda *of, exact=exact: given.append(of) or exact)
        assert least <= projection_of(array_table(X), ridge).error <= 1.6 * least
    (table, W, Z, diagonal, outside), (_, scaled, found) = given[0], scale_to_whiten(X, ridge)
    np.testing.assert_allclose(W, found[0])
    np.testing.assert_allclose(Z, table @ W)
    np.testing.assert_allclose(diagonal, scaled**2)
    np.testing.assert_allclose(Z.T @ Z / 20 + W.T @ np.diag(diagonal) @ W, np.eye(2), atol=1e-12)
    assert outside == 0.0


@pytest.mark.parametrize("nu", [1.0, 0.4])
def test_the_bracket_of_labels_holds_in_rationals(nu):
    outside = 0
    for seed in range(20):
        rng, n = np.random.default_rng(seed), 15
        table, y = rng.standard_normal((n, 1)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
        X, labels, H = centered(table)[:, 0], fractions(y), projection_of(array_table(as_data(table)))
        mean = sum(labels) / n
        exact = 1 - mean**2 - sum(X * labels) ** 2 / sum(X**2) / n + Fraction(nu) * mean**2
        found = bracket_nu(H, y[:, None], nu)
        assert Fraction(found.upper) >= exact
        plain = objective(H.Q, y[:, None]) + nu * float(np.mean(y)) ** 2
        outside += Fraction(plain) < exact
        assert found.upper - plain >= sum_error(4 * n)
        least = 1 - (sum(abs(X)) / n) ** 2 / (sum(X**2) / n)  # of (8) at nu = 1 with one column
        assert Fraction(bracket_nu(H, np.sign(as_data(table)), 1.0).lower) <= least
    assert outside > 0


@pytest.mark.parametrize("alpha", [None, 0.0, 0.2])
def test_a_bracket_of_labels_is_wider_by_what_its_projection_is_off(alpha):
    X, off = centered_normal(12, 2), 0.05
    H, F = projection_of(array_table(X)), dc.low_rank(X, tol=1e-6).F
    exact, wide = (
        bracket_nu(H, F, 1.0) if alpha is None else bracket_alpha(H, F, alpha)
        for H in (H, H._replace(error=H.error + off))
    )
    assert wide.upper - exact.upper == pytest.approx(off, rel=1e-3)
    assert exact.lower > off
    assert wide.lower <= exact.lower - off * 0.98


def test_no_diagonal_proves_more_than_the_best_labels_of_chunklets_of_different_sizes():
    rng, S = np.random.default_rng(0), np.ones((8, 4))
    X, sizes = as_data(rng.standard_normal((8, 2))), np.array([5.0, 1.0, 1.0, 1.0])
    constraints, S = dc.Constraints([(0, i) for i in range(1, 5)]), np.repeat(np.eye(4), sizes.astype(int), axis=0)
    H = projection_of(centered_table((X, np.zeros(2)), None, constraints))
    best = min(
        objective(H.Q, y[:, None]) + 0.5 * float(np.mean(y)) ** 2
        for y in (S @ np.array(signs) for signs in itertools.product([-1.0, 1.0], repeat=4))
    )
    bounds = [label_bound(H, LabelMultipliers(rng.uniform(-0.5, 1.5, 4), 0.5)) for _ in range(200)]
    assert 0.0 < max(bounds) <= best


@pytest.mark.parametrize("nu", [0.1, 0.3, 1.0])
def test_the_bounds_for_k_classes_hold_in_rationals(nu):
    for k in range(2, 30):
        for bound in (0.0, 0.3, 1.0):
            exact = Fraction(nu) / k + (1 - Fraction(1, k)) * Fraction(bound)
            assert exact * (1 - Fraction(1e-14)) <= Fraction(class_bound(bound, nu, k)) <= exact
            assert min(exact, 1) <= Fraction(class_value(bound, nu, k)) <= exact * (1 + Fraction(1e-14))
        assert class_bound(-0.5, nu, k) == class_bound(0.0, nu, k)


def test_the_value_of_labels_counts_the_terms_of_its_sums():
    H = Projection(np.zeros((20, 2)), 0.0, array_table(np.zeros((20, 2))))
    assert sum_error(80) <= objective_error(H, np.ones((20, 3))) <= sum_error(80 + 120)
    assert objective_error(H._replace(error=0.1), np.ones((20, 3))) >= 0.1 + sum_error(80)


def test_an_imbalance_that_is_met_nearly_is_counted():
    """Where the mean is right up to rounding, its rounding is counted; where not, what Y moved to alpha costs."""
    H, y = projection_of(array_table(centered_normal(12, 1))), np.where(np.arange(12) < 9, 1.0, -1.0)[:, None]
    found = bracket_alpha(H, y, 0.25)
    assert 8.0 * sum_error(12) <= found.upper - objective(H.Q, y) <= 16.0 * sum_error(64) + H.error
    assert balance_cost(y, 0.16) == pytest.approx(0.8)
    assert 8.0 * sum_error(12) <= balance_cost(y, 0.36) <= 8.0 * sum_error(64)


# Y1 = 0 and diag Y = 1 leave one Y of three points, Y_ij = -1/2, and with one column (7) is 1/2 at alpha = 0.
BALANCED = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])


@pytest.mark.parametrize("alpha", [1e-12, 3e-13, 7e-17, 1e-30])
def test_the_bound_near_balance_is_that_at_balance_less_what_balancing_rows_of_that_mean_costs(alpha):
    """No optimum is known that falls by more than about 2 alpha^1/2: what the construction proves is 8 alpha^1/2.

    The bound is about half of the number given, so that the difference is exact.
    """
    F, lower = np.tile(BALANCED, (2, 1)) + np.array([alpha**0.5, 0.0]), 16.0 * alpha**0.5
    fallen = Fraction(lower) - Fraction(label_bounds.bound_near_balance(lower, alpha))
    assert 64 * Fraction(alpha) <= fallen**2 <= 64 * Fraction(alpha) * (1 + 20 * Fraction(UNIT_ROUNDOFF))
    assert balance_cost(F, 0.0) == pytest.approx(float(fallen), rel=1e-6, abs=8.0 * sum_error(40))


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.01, 0.2])
def test_what_balance_costs_is_enough_for_a_feasible_point(alpha):
    """The point that `balance_cost` speaks of is made: rows moved, scaled, and orthogonal rows of sum 0 added."""
    made = 0
    for seed in range(30):
        rng = np.random.default_rng([4, seed])
        F = with_imbalance(rng.standard_normal((int(rng.integers(3, 9)), 3)), alpha)
        F = F + rng.uniform(0.0, 0.1) * (F.mean(axis=0) + 1e-3 * rng.standard_normal(F.shape[1]))
        F /= np.linalg.norm(F, axis=1)[:, None]
        length = np.linalg.norm(F.mean(axis=0))
        if length <= alpha**0.5:
            continue
        moved = scipy.optimize.brentq(
            lambda step, size=length: step - size + (alpha / (1.0 - 6.0 * step)) ** 0.5, 0.0, length - alpha**0.5
        )
        G = (1.0 - 6.0 * moved) ** 0.5 * (F - moved * F.mean(axis=0) / length)
        lacking = 1.0 - np.sum(G**2, axis=1)
        assert np.sum(G.mean(axis=0) ** 2) == pytest.approx(alpha, abs=1e-12)
        assert np.all(lacking >= 4.0 * moved - 1e-12)
        assert 2.0 * np.sqrt(lacking.max()) <= np.sum(np.sqrt(lacking)) + 1e-9, "vectors of these lengths can sum to 0"
        made += 1
        assert float(np.mean(lacking)) <= balance_cost(F, alpha)
    assert made >= 10


def test_a_mean_is_not_above_the_exact_one():
    x = np.full(128, -0.99 * 2.0**-53)
    x[:8] = -1.0
    assert Fraction(float(np.mean(x))) > sum(fractions(x)) / 128  # what is lost is negative
    assert Fraction(label_bounds.lower_bound_of_mean(x)) <= sum(fractions(x)) / 128
    y = np.array([1.0, -1.0, 0.5])
    lowered = np.mean(y) - label_bounds.lower_bound_of_mean(y) + UNIT_ROUNDOFF
    assert sum_error(3) * np.mean(np.abs(y)) <= lowered <= sum_error(20) * np.mean(np.abs(y))


def nearly_singular(seed, scale=1.0):
    """Diag(D) - qq' is singular where D = |q| sum |q|: nearly so in doubles."""
    q = np.random.default_rng(seed).standard_normal((7, 1)) * scale
    return np.abs(q[:, 0]) * np.sum(np.abs(q)), q


def test_the_least_eigenvalue_is_not_below_what_is_said_in_rationals_at_any_scale():
    for seed in range(40):
        D, q = nearly_singular(seed, 1e3)
        found = Fraction(min_eigenvalue(D, q, 0.0))
        assert found <= 0
        assert is_semidefinite(np.diag(fractions(D)) - fractions(q) @ fractions(q).T - found * fractions(np.eye(7)))


def test_a_sign_that_rounding_may_have_changed_counts_as_negative(coarse):
    D, q = nearly_singular(0)
    D *= 1.0 + 1e-9
    assert min_eigenvalue(D, q, 0.0) == -1e-13
    coarse()
    mass = 2.0 + 1.0  # of the bordered matrix: its corner, and q'D^-1 q
    assert min_eigenvalue(D, q, 0.0) <= -sum_error(64 * 2) * mass / float(np.sum(q[:, 0] ** 2 / D**2)) / 1.1
    assert min_eigenvalue(D * (1.0 + 4 * sum_error(64 * 2 + 7) * mass), q, 0.0) == -1e-13
    q = np.random.default_rng(0).standard_normal((4000, 1))
    D = np.abs(q[:, 0]) * np.sum(np.abs(q)) * (1.0 + sum_error(4000))
    assert min_eigenvalue(D, q, 0.0) < -1e-13  # q'D^-1 q is a sum of 4000 terms


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, -0.5, -np.inf])
@pytest.mark.parametrize("shift", [-2.0, 0.0, 0.9, 3.0])
def test_the_least_eigenvalue_is_bounded_to_one_percent_without_the_matrix(weight, shift):
    n, D = 9, np.random.default_rng(3).uniform(0.0, 1.0, 9) + shift
    Q = np.linalg.qr(np.random.default_rng(4).standard_normal((n, 3)))[0]
    Q -= Q.mean(axis=0)
    K, N = np.diag(D) - Q @ Q.T - (0.0 if np.isinf(weight) else weight) / n, np.eye(n)
    if np.isinf(weight):
        N = np.linalg.svd(np.ones((1, n)))[2][1:].T
    least = min(np.linalg.eigvalsh(N.T @ K @ N)[0], 0.0)
    assert 1.011 * least - 2e-13 <= min_eigenvalue(D, Q, weight) <= least


def test_nothing_is_proved_at_an_entry_of_the_diagonal():
    """The first shift that is tried is -D_1: the bordered matrix is then infinite, or no number."""
    D = np.array([-1e-13, 1.0, 1.0])
    for q in ([1.0, 1.0, 1.0], [0.0, 1.5, 1.0]):
        with np.errstate(divide="ignore", invalid="ignore"):
            found = min_eigenvalue(D, np.array(q)[:, None], 0.0)
        assert found <= np.linalg.eigvalsh(np.diag(D) - np.outer(q, q))[0] + 1e-12


def test_the_correlation_is_higher_by_the_errors_of_all_points():
    H, F = projection_of(array_table(centered_normal(12, 2))), np.random.default_rng(0).standard_normal((12, 2))
    F /= np.linalg.norm(F, axis=1)[:, None]
    exact, moved = (correlation_value(one, F) for one in (H, H._replace(error=H.error + 1e-3)))
    assert moved - exact >= 12 * 1e-3 * (1.0 - 1e-9)


def test_a_multiple_of_the_imbalance_is_rounded_down(monkeypatch):
    """(w - 1) alpha is subtracted from the bound where it is rounded."""
    X = centered_normal(12, 2)
    H, F = projection_of(array_table(X)), dc.low_rank(X, tol=1e-6).F
    fine = bracket_alpha(H, F, 0.2)
    monkeypatch.setattr(label_bounds, "UNIT_ROUNDOFF", 1e-3)
    coarse = bracket_alpha(H, F, 0.2)
    assert 0.0 < fine.lower - coarse.lower <= 4e-3 * 0.2 * 20
    assert coarse.upper == fine.upper


def test_where_whitening_is_not_accurate_at_all_the_bracket_is_wide_and_not_wrong(noisy, monkeypatch):
    Y = np.ones((12, 1))
    assert dc.certify_y(noisy, Y).upper < 2.0
    for error in (0.6, 1.0, 1.5, np.inf, np.nan):
        monkeypatch.setattr(
            label_bounds, "whitening_error_bounds", lambda *of, error=error: WhiteningErrorBounds(0.0, error)
        )
        assert projection_of(array_table(noisy)).error == np.inf
        assert dc.certify_y(noisy, Y) == (0.0, 1.0)


# What is said of a solution


@pytest.mark.parametrize(("raised", "expected"), [(5e-4, dc.Status.OPTIMAL), (2e-3, dc.Status.STALLED)])
def test_a_solution_is_optimal_only_where_the_proved_gap_is_within_the_tolerance(monkeypatch, raised, expected):
    X, true = centered_normal(20, 2), consistency.certified_value
    fine = dc.low_rank(X, tol=1e-6)
    monkeypatch.setattr(consistency, "certified_value", lambda *of: true(*of) + raised)
    found = dc.low_rank(X, tol=1e-3, start=fine)
    assert found.status is expected
    assert found.value == found.upper >= fine.upper + 0.9 * raised
    assert found.lower <= fine.upper
    assert dc.low_rank(X, tol=1e-9, max_iter=1).status is dc.Status.MAX_ITER


@pytest.mark.parametrize("nu", [0.5, 1.0])
def test_v_is_zero_where_its_value_is_not_proved_to_be_below_that_of_zero(nu):
    judged = RoundingBound(array_table(np.random.default_rng(0).standard_normal((9, 2))), nu, NONE)
    small = np.full((2 + (nu < 1.0), 1), 1e-3)
    assert judged.or_trivial(small)[0] is small
    assert judged.or_trivial(small)[1] < 1.0
    for large in (1e3 * small * 1e3, np.full_like(small, np.nan)):
        G, value = judged.or_trivial(large)
        np.testing.assert_array_equal(G, np.zeros(small.shape))
        assert value == 1.0
