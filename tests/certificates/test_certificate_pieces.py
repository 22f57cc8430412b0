"""Parts of the certificates, each against its dense formula."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from oracles import solve_normalized
from posed import direction_problem, linked_points
from scipy.sparse.csgraph import connected_components

import diffrac_cvx as dc
from diffrac_cvx.certificates import label_space, screening
from diffrac_cvx.certificates.block_problem import block_problem, join_labels, number_by_first
from diffrac_cvx.certificates.direction_bounds import DualPoint, bracket_normalized
from diffrac_cvx.certificates.proof import eliminate, project_dual, skip_zero_rows
from diffrac_cvx.certificates.screening import gap_safe_weights, screen_components, screen_groups
from diffrac_cvx.certificates.search import (
    alternate_projection,
    best_combination,
    minimize_over_combinations,
    refine_dual,
)
from diffrac_cvx.metrics import factor_imbalance
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, sum_error
from diffrac_cvx.problem.result import Bracket

RNG = np.random.default_rng(77)


def problem_of(n, d, nu, penalty, seed=0):
    return direction_problem(as_data(np.random.default_rng(seed).standard_normal((n, d))), nu, penalty)


# The space of directions


def test_weights_are_inverse_roots_above_a_floor_and_zero_rows_have_none():
    X = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [0.0, 3.0]])
    problem, q = direction_problem(X, 1.0, dc.Penalty(c=0.1)), np.array([4.0, 0.0, 1.0, 1e-30])
    np.testing.assert_allclose(problem.inverse_sqrt(q), [0.5, (1.25e-12) ** -0.5, 1.0, (1.25e-12) ** -0.5])
    np.testing.assert_allclose(problem.inverse_sqrt(q, 0.5), [0.5, 1.25**-0.5 * 2**0.5, 1.0, 1.25**-0.5 * 2**0.5])
    assert np.all(np.isfinite(problem.inverse_sqrt(np.zeros(4))))
    u, inverse_mean = skip_zero_rows(problem, np.array([1.0, 5.0, 2.0, 4.0]))
    np.testing.assert_array_equal(u, [1.0, 0.0, 2.0, 4.0])
    assert inverse_mean == pytest.approx((1.0 + 0.5 + 0.25) / 4)


@pytest.mark.parametrize("nu", [1.0, 0.6])
def test_a_multiplier_is_clipped_to_its_box_and_moved_towards_the_cone(nu):
    problem = problem_of(20, 4, nu, dc.Penalty(a=0.1, c=np.array([0.3, 0.5, 0.2, 0.4])))
    C = project_dual(problem, 3.0 * RNG.standard_normal((len(problem.c),) * 2))
    assert np.all(np.abs(C) <= np.outer(problem.c, problem.c))
    np.testing.assert_array_equal(np.diag(C), 0.0)
    np.testing.assert_array_equal(C, C.T)
    M = problem.X.weighted_gram(RNG.uniform(1.0, 3.0, 20))
    moved = alternate_projection(problem, M, C)
    np.testing.assert_array_equal(moved, project_dual(problem, moved))

    def distance(C):
        values = np.linalg.eigvalsh(problem.A + C + np.diag(problem.c**2) - M)
        return np.linalg.norm(np.minimum(values, 0.0))

    assert distance(moved) < distance(C)
    loose = project_dual(problem, np.zeros_like(C))
    np.testing.assert_allclose(alternate_projection(problem, 0.0 * M, loose), loose, atol=1e-15)


def symmetric(size, seed):
    M = np.random.default_rng(seed).standard_normal((size, size))
    return (M + M.T) / 2


# I + C is positive definite, nearly singular, or indefinite
BLENDED = [
    *(0.45 * symmetric(4, seed) for seed in range(10, 15)),
    np.diag([-2.0, 0.0, 0.0, 0.0]),
    0.6 * (np.eye(4) - 1),
]


@pytest.mark.parametrize("C", BLENDED, ids=range(7))
def test_a_blended_ratio_is_the_largest_eigenvalue_with_the_weight_it_says(C):
    """M <= t (I + s C), whatever the share s; at s = 0 it is the largest eigenvalue of M alone."""
    B = np.random.default_rng(0).standard_normal((4, 6))
    M, whole = B @ B.T / 6, np.linalg.eigvalsh(np.eye(4) + C)[0]
    t, weight, least = best_combination(M, C)
    right = np.eye(4) + weight * C
    assert np.linalg.eigvalsh(right)[0] == pytest.approx(least, rel=1e-6)
    root = np.linalg.inv(np.linalg.cholesky(right))
    assert t == pytest.approx(np.linalg.eigvalsh(root @ M @ root.T)[-1], rel=1e-6)
    assert 0.0 <= weight <= 1.0
    assert weight == 1.0 or whole <= 0.1
    assert weight < 1.0 or whole > 0.0


def test_a_blend_between_those_of_the_grid_is_found():
    """I + C is singular at a blend of .03: the best one is a little above it, and .1 is far worse."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    C = (Q * np.append(rng.uniform(1.0, 2.0, 29), -1.0 / 0.97)) @ Q.T
    M = (Q * np.append(rng.uniform(0.1, 1.0, 29), 1e-4)) @ Q.T

    def at(blend):
        return np.linalg.eigvals(np.linalg.solve(np.eye(30) + (1.0 - blend) * C, M)).real.max()

    (t, weight, _), least = best_combination(M, C), min(map(at, np.geomspace(0.0301, 1.0, 300)))
    assert least * (1.0 - 1e-2) <= t <= least + 0.3 * (at(0.1) - least)
    assert np.linalg.eigvalsh(np.eye(30) + weight * C)[0] > 0.0


def test_what_is_least_between_the_blends_is_found_by_sections():
    for best in (2e-4, 3e-3, 0.04, 0.7, 1.0):
        tried = []

        def at(blend, best=best, tried=tried):
            tried.append(blend)
            return 1.0 + abs(np.log(max(blend, 1e-12) / best))

        assert minimize_over_combinations(at)[0] < 1.3
        assert len(tried) < 20


def test_a_multiplier_with_which_a_point_is_optimal_is_fitted_to_itself():
    """S V = 0 and S >= 0 hold for S = A + C + Diag(c)^2 - M."""
    problem, rng = problem_of(20, 4, 1.0, dc.Penalty(a=0.1, c=np.array([0.3, 0.5, 0.2, 0.4]))), np.random.default_rng(0)
    v = rng.standard_normal(4)
    S = 0.5 * (np.eye(4) - np.outer(v, v) / (v @ v))
    C = project_dual(problem, 0.5 * problem.pair_penalty.half_width * symmetric(4, 0))
    M = problem.A + C + np.diag(problem.c**2) - S
    np.testing.assert_allclose(refine_dual(problem, M, np.outer(v, v), C, 20), C, atol=1e-13)


@pytest.mark.parametrize(("n", "d"), [(9, 3), (4, 6)])
@pytest.mark.parametrize("a", [0.0, 0.2])
def test_any_factor_brackets_the_optimum_of_eq_21_more_columns_than_rows_too(n, d, a):
    X = as_data(np.random.default_rng(n).standard_normal((n, d)))
    best, V = solve_normalized(X, 1.0, a, 0.3)
    problem = direction_problem(X, 1.0, dc.Penalty(a, 0.3))
    U = problem.coordinates.transform_matrix(V)
    for factor in (U, RNG.standard_normal((d, 2)), np.eye(d)):
        found = bracket_normalized(problem, factor)
        assert -1.0 <= found.lower <= best + 1e-6
        assert found.upper >= best - 1e-6
        assert (
            bracket_normalized(problem, factor, DualPoint(C=np.zeros((d, d)))).lower >= found.lower - 0.01 * found.gap
        )
    assert bracket_normalized(problem, U).gap < 0.02
    assert bracket_normalized(problem, np.zeros((d, 1))) == Bracket(-1.0, np.inf if problem.has_l1 else 0.0)


def test_directions_left_out_are_counted_in_data_with_zeros_too():
    X = np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    assert direction_problem(X, 1.0, dc.Penalty()).coordinates.n_excluded == 0
    assert direction_problem(np.column_stack([X, X[:, 0]]), 1.0, dc.Penalty()).coordinates.n_excluded == 1


# Components


def labels_of(joined):
    """The components of a graph, numbered from 0 by first coordinate."""
    return number_by_first(connected_components(scipy.sparse.csr_array(joined))[1])


def decreasing_energies(problem, *last):
    """The energies of the rows at a V that is diagonal."""
    d = len(problem.c) - len(last)
    return np.sum((problem.X.array() @ np.diag([*np.linspace(0.5, 0.2, d), *last])) ** 2, axis=1)


@pytest.mark.parametrize("gap", [1e-12, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_features_are_joined_where_the_gap_does_not_prove_that_their_pair_is_inside_its_box(seed, gap):
    """|G_jk| + (gap mean w x_j^2 x_k^2)^1/2 against c_j c_k, pair by pair."""
    problem = problem_of(60, 9, 1.0, dc.Penalty(c=np.linspace(0.15, 0.4, 9)), seed)
    X, q, box = problem.X.array(), decreasing_energies(problem), np.outer(problem.c, problem.c)
    u, w = gap_safe_weights(q, gap)
    np.testing.assert_allclose(u, 1.0 / np.sqrt(q))
    G = np.abs(X.T @ np.diag(1.0 / np.sqrt(q)) @ X / 60 - problem.A)
    off = np.sqrt(np.einsum("ij,i,ik->jk", X**2, w, X**2) / 60)
    np.testing.assert_array_equal(screen_components(problem, q, gap), labels_of(G + off >= box))
    np.testing.assert_array_equal(screen_components(problem, q, gap, 0.3), labels_of(G >= 0.7 * box))


def test_the_gap_bounds_the_distance_of_the_weights_row_by_row():
    """gap >= mean (r - r*)^2 / r*: the least r* of a row that this leaves is in w = gap / (r^2 r*)."""
    q, gap = np.array([1.0, 0.25, 4.0]), 0.01
    r, least = np.sqrt(q), gap / (gap_safe_weights(q, gap)[1] * q)
    assert np.all(least < r)
    np.testing.assert_allclose((r - least) ** 2 / least / 3, gap, rtol=1e-9)
    np.testing.assert_array_equal(gap_safe_weights(q, -1.0)[1], gap_safe_weights(q, 0.0)[1])
    assert np.all(gap_safe_weights(q, 0.0)[1] > 0.0)


def test_no_pair_that_a_point_itself_joins_is_separated_by_what_its_gap_adds():
    """With a column that is not penalised, of both signs, which every component shares."""
    X = np.random.default_rng(6).standard_normal((60, 6))
    X[:, [1, 3]] += X[:, [0, 2]]
    problem = direction_problem(as_data(X), 1.0, dc.Penalty(a=1.0, c=np.array([0.3] * 5 + [0.0])))
    q = np.mean((problem.X.array()) ** 2, axis=1) + 0.5
    plain, proved = (screen_components(problem, q, 1e-9, rtol) for rtol in (0.0, None))
    assert len(set(zip(plain, proved, strict=True))) == plain.max() + 1  # each group is in one that is proved
    assert 1 < len(set(plain)) < 5


@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_a_pair_that_rounding_keeps_inside_its_box_is_not_proved_to_be_apart(nu, monkeypatch):
    """The box ends where rounding may have moved the sum to."""
    problem, q = problem_of(50, 2, nu, dc.Penalty(c=0.3), 5), np.full(50, 0.4)
    monkeypatch.setattr(screening, "gap_safe_weights", lambda q, gap: (1.0 / np.sqrt(q), 0.0 * q))  # no gap
    G = problem.X.weighted_gram(1.0 / np.sqrt(q)) - problem.A
    if nu < 1.0:
        G = G - np.outer(G[:, 2], G[:, 2]) / G[2, 2]
    ratio, found = 1.0 - np.logspace(-17, -6, 60), []
    for size in np.sqrt(np.abs(G[0, 1]) / ratio / (problem.c[0] * problem.c[1])):  # of the box, so that it is the share
        c = problem.c * np.append([size, size], np.ones(len(problem.c) - 2))
        wider = replace(problem, pair_penalty=problem.pair_penalty.with_weights(c))
        labels = screen_components(wider, q, 0.0)
        found.append(labels[0] == labels[1])
    assert np.all(np.asarray(found)[ratio >= 1.0 - 1e-15])
    assert 5 < np.sum(found) < 40


def test_groups_are_not_apart_whose_blocks_may_be_off_as_far_as_their_bound(monkeypatch):
    """Blocks of two by two of no size: entries that are off by a share of c_j c_k in all have twice that as their norm.

    In a coarse unit the sums of the norms are rounded by as many terms as there are coordinates.
    """
    problem = problem_of(50, 60, 1.0, dc.Penalty(lam=0.3, groups=np.repeat(np.arange(30), 2)))
    at = eliminate(block_problem(problem), np.ones(50), 1.0)
    at = replace(at, F=0.0 * at.F)
    at.__dict__["gram_weights"] = np.zeros(50)
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", 2.0**-30)

    def apart(off, box=0.0):
        found = replace(at, F=np.full((1, 60), box**0.5) * at.problem.c)
        labels = screen_groups(found, problem.pair_penalty, lambda *_: np.full((60, 60), off), None)
        return len(np.unique(labels)) > 1

    for fraction in (0.3, 0.49):
        assert apart(fraction)
        assert apart(0.0, fraction)
        assert apart(fraction / 2, fraction / 2)
    for fraction in (0.51, 0.7):
        assert not apart(fraction)
        assert not apart(0.0, fraction)
        assert not apart(fraction / 2, fraction / 2)
    assert not apart(0.5 * (1.0 - sum_error(60)))
    assert apart(0.5 * (1.0 - sum_error(150)))
    assert not apart(np.nan)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 2, 3]])
def test_nothing_is_apart_where_constraints_signs_without_a_weight_or_too_wide_a_gap_leave_it_unknown(groups):
    X, q = 0.1 * as_data(np.random.default_rng(3).standard_normal((60, 6))), np.full(60, 0.5)
    plain, offset = (direction_problem(X, nu, dc.Penalty(lam=0.5, ridge=1.0, groups=groups)) for nu in (1.0, 0.5))
    free = screen_components(plain, q, 1e-9)
    assert free.max() == screen_components(offset, q, 1e-9).max() > 0
    assert not screen_components(offset, q, 10.0).any()
    linked = direction_problem(
        linked_points(X, dc.Constraints(cannot_link=[(0, 1)])), 1.0, dc.Penalty(lam=0.5, ridge=1.0, groups=groups)
    )
    assert not screen_components(linked, q[1:], 1e-9).any()
    lam = np.where(np.arange(6) == 5, 0.0, 0.5)
    for known, together in (([0, 1], False), ([0, 5], True)):
        signed = direction_problem(X, 1.0, dc.Penalty(lam=lam, ridge=1.0, nonnegative=known))
        assert (screen_components(signed, q, 1e-9).max() == 0) == together


def test_labels_are_numbered_by_first_appearance_and_groups_of_pairs_are_joined():
    np.testing.assert_array_equal(number_by_first(np.array([7, -1, 2, 7, 0, 2])), [0, -1, 1, 0, 2, 1])
    joined = join_labels(np.arange(5), np.array([0, 3]), np.array([2, 4]))
    np.testing.assert_array_equal(number_by_first(joined), [0, 1, 0, 2, 2])
    np.testing.assert_array_equal(number_by_first(join_labels(joined, np.array([1]), np.array([4]))), [0, 1, 0, 1, 1])


# The space of labels


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8])
def test_the_balanced_factor_has_unit_rows_that_sum_to_zero(n):
    F = label_space.balanced_factor(n)
    np.testing.assert_allclose(np.sum(F**2, axis=1), 1.0)
    np.testing.assert_allclose(F.sum(axis=0), 0.0, atol=1e-15)


STARTS = {
    "random": np.random.default_rng(9).standard_normal((7, 3)),
    "one cluster": np.ones((7, 1)),
    "balanced": label_space.balanced_factor(7),
    "one apart": np.array([1.0] * 6 + [-1.0])[:, None],
}


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("start", STARTS)
def test_any_factor_is_moved_to_unit_rows_of_the_imbalance_asked_for(alpha, start):
    F = label_space.with_imbalance(STARTS[start], alpha)
    np.testing.assert_allclose(np.sum(F**2, axis=1), 1.0, rtol=1e-12)
    assert factor_imbalance(F) == pytest.approx(alpha, abs=2e-12)


def test_labels_less_unbalanced_are_the_signs_of_the_factor_where_these_are_feasible():
    y = np.array([1.0, 1.0, 1.0, -1.0])
    F = np.column_stack([0.9 * y, np.full(4, 0.1)])
    np.testing.assert_array_equal(np.abs(label_space.reduce_imbalance(F, 0.3).T @ y), [4.0])  # imbalance 1/4
    assert factor_imbalance(label_space.reduce_imbalance(F, 0.2)) == 0.0


def test_the_objective_and_its_gradient_are_those_of_the_dense_formulas():
    F = np.random.default_rng(5).standard_normal((8, 3))
    F /= np.linalg.norm(F, axis=1)[:, None]
    Q = np.linalg.qr(as_data(np.random.default_rng(6).standard_normal((8, 2))))[0]
    Y, H, Pi = F @ F.T, Q @ Q.T, np.eye(8) - 1 / 8
    assert label_space.objective(Q, F) == pytest.approx(np.trace(Y @ (Pi - H)) / 8)
    diagonal, drift = label_space.multiplier_terms(Q, F)
    np.testing.assert_allclose(diagonal, np.diag(H @ Y))
    np.testing.assert_allclose(drift, np.diag(np.ones((8, 8)) @ Y) / 8)


def near_an_optimum(seed, weight=0.6, n=16):
    """A projection, and a factor of rank four near the optimum of (8) at nu = 1 - weight, found row by row."""
    rng = np.random.default_rng(seed)
    H, F = label_space.projection_of(array_points(as_data(rng.standard_normal((n, 3))))), rng.standard_normal((n, 4))
    K = H.Q @ H.Q.T + weight / n
    np.fill_diagonal(K, 0.0)
    F /= np.linalg.norm(F, axis=1)[:, None]
    for _ in range(150):
        for i in range(n):
            F[i] = K[i] @ F
            F[i] /= np.linalg.norm(F[i])
    return H, F, rng


@pytest.mark.parametrize("seed", [2, 4])
def test_no_weight_of_the_imbalance_near_by_proves_more_than_the_bracket(seed):
    H, F, rng = near_an_optimum(seed)
    alpha = factor_imbalance(F)
    F = label_space.with_imbalance(F + 0.03 * rng.standard_normal(F.shape), alpha)
    found, (diagonal, drift) = label_space.bracket_alpha(H, F, alpha), label_space.multiplier_terms(H.Q, F)
    weights = np.linspace(0.4, 0.8, 17)
    assert found.lower > 0.02
    assert found.lower >= max(label_space.label_bound_at(H, diagonal + w * drift, w, alpha) for w in weights) - 1e-5


def test_the_multipliers_of_points_that_are_there_twice_and_linked_prove_what_those_of_the_points_do():
    """Each group of two has the multiplier of its points together, in the mean over twice as many."""
    X, (_, F, rng) = as_data(np.random.default_rng(3).standard_normal((16, 3))), near_an_optimum(3)
    diagonal, drift = label_space.multiplier_terms(label_space.projection_of(array_points(X)).Q, F)
    mu, poor = (1.0 - diagonal - 0.6 * drift) / 16, F + 0.5 * rng.standard_normal(F.shape)
    twice, chunklets = np.vstack([X, X]), Chunklets(np.tile(np.arange(16), 2), np.ones(32), -1)
    once = label_space.bracket_nu(label_space.projection_of(array_points(X)), poor, 0.4, mu)
    H = label_space.projection_of(array_points(twice, None, chunklets))
    linked = label_space.bracket_nu(H, np.vstack([poor, poor]), 0.4, mu)
    assert once.lower > label_space.bracket_nu(label_space.projection_of(array_points(X)), poor, 0.4).lower + 0.01
    assert linked.lower == pytest.approx(once.lower, abs=1e-9)
    assert linked.upper == pytest.approx(once.upper, abs=1e-9)


def test_where_all_points_are_linked_every_factor_has_the_value_of_the_labels_that_are_left():
    X, sign = as_data(np.random.default_rng(0).standard_normal((9, 2))), np.where(np.arange(9) % 2, 1.0, -1.0)
    H = label_space.projection_of(array_points(X, None, Chunklets(np.zeros(9, dtype=int), sign, -1)))
    least = label_space.objective(H.Q, sign[:, None]) + np.mean(sign) ** 2
    for F in (X, np.sign(X[:, :1]), np.random.default_rng(1).standard_normal((9, 3))):
        assert label_space.bracket_nu(H, F, 1.0).upper == pytest.approx(least, abs=1e-12)


def test_where_whitening_is_not_accurate_at_all_the_bracket_is_wide_and_not_wrong(noisy, monkeypatch):
    Y = np.ones((12, 1))
    assert dc.certify_y(noisy, Y).upper < 2.0
    for error in (0.6, 1.0, 1.5, np.inf, np.nan):
        monkeypatch.setattr(
            label_space, "whitening_error_bounds", lambda *of, error=error: WhiteningErrorBounds(0.0, error)
        )
        assert label_space.projection_of(array_points(noisy)).error == np.inf
        assert dc.certify_y(noisy, Y) == Bracket(0.0, 1.0)
