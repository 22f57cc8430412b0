"""The pieces of which certificates are made, each against the dense formula that it stands for."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from oracles import solve_normalized
from posed import direction_problem, proved_shift
from scipy.sparse.csgraph import connected_components

import diffrac_cvx as dc
from diffrac_cvx.certificates import label_bounds, label_proof
from diffrac_cvx.certificates.block_problem import Partition, join_labels, number_by_first
from diffrac_cvx.certificates.direction_bounds import Dual, bracket_normalized
from diffrac_cvx.certificates.proof import (
    LARGEST,
    Pencil,
    bound_at,
    in_dual_set,
    proved_ratio,
    skip_zero_rows,
)
from diffrac_cvx.certificates.screening import product_radius, weights_at
from diffrac_cvx.certificates.search import Blend, blended_ratio, closer_to_feasible, least_over_blends
from diffrac_cvx.certificates.separation import label_components
from diffrac_cvx.metrics import factor_imbalance
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.floating_point import UNIT, Whitening, round_up, sum_error, summands
from diffrac_cvx.points.streamed import BLOCK
from diffrac_cvx.problem.result import Bracket

RNG = np.random.default_rng(77)


def symmetric(size, seed):
    M = np.random.default_rng(seed).standard_normal((size, size))
    return (M + M.T) / 2


def problem_of(n, d, nu, penalty, seed=0):
    return direction_problem(as_data(np.random.default_rng(seed).standard_normal((n, d))), nu, penalty)


# What rounding can change


@pytest.mark.parametrize("t", [np.inf, np.nan, 2 * LARGEST])
def test_a_ratio_that_is_no_usable_number_proves_nothing(t):
    assert proved_ratio(Pencil(np.eye(2), np.eye(2), 0.0, 0.0), t, 1.0) == np.inf
    assert proved_ratio(Pencil(np.eye(0), np.eye(0), 0.0, 0.0), t, 1.0) == 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("off", [0.0, 1e-6])
def test_a_shift_is_a_little_above_the_least_and_holds_with_what_may_be_off(seed, off):
    rest, B = symmetric(4, seed), np.random.default_rng(seed).standard_normal((4, 4))
    A = B @ B.T
    A /= np.linalg.eigvalsh(A)[-1]
    root = np.linalg.inv(np.linalg.cholesky(A))
    least = np.linalg.eigvalsh(-root @ rest @ root.T)[-1]
    found = proved_shift(rest, A, off, off, least)
    assert np.linalg.eigvalsh(rest + found * A)[0] >= off * (1.0 + abs(found)) * 0.999
    assert least < found <= least + 16 * (off + 1e-13) * (2.0 + abs(least)) / np.linalg.eigvalsh(A)[0]


def test_where_no_shift_is_enough_there_is_none():
    assert proved_shift(np.eye(2), np.eye(2), 0.0, 0.0, np.inf) == np.inf
    assert proved_shift(-np.eye(2), np.diag([1.0, 0.0]), 0.0, 0.0, 1.0) == np.inf


def test_a_number_computed_by_a_few_operations_is_raised_by_more_than_their_rounding():
    assert 1.0 + 4 * UNIT < round_up(1.0) < 1.0 + 16 * UNIT
    assert round_up(2.0, 100) > 2.0 * (1.0 + sum_error(100))
    assert round_up(0.0) == 0.0


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
def test_a_sum_by_blocks_has_as_many_terms_in_a_row_as_its_longest_block_and_the_blocks(n):
    blocks = -(-n // BLOCK)
    longest = min(n, BLOCK)
    assert longest + blocks - 1 <= summands(n) <= longest + blocks + 1


def test_a_bound_is_one_less_a_product_and_never_above_it():
    for t, mean in ((0.3, 0.7), (1.0, 1.0), (1e-9, 5.0)):
        assert 1.0 - t * mean - 1e-12 <= bound_at(t, mean) <= 1.0 - t * mean
    assert bound_at(np.inf, 0.5) == -np.inf


# The space of directions


def test_weights_are_inverse_roots_above_a_floor_and_zero_rows_have_none():
    X = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [0.0, 3.0]])
    problem = direction_problem(X, 1.0, dc.Penalty(c=0.1))
    q = np.array([4.0, 0.0, 1.0, 1e-30])
    np.testing.assert_allclose(problem.inverse_roots(q), [0.5, (1.25e-12) ** -0.5, 1.0, (1.25e-12) ** -0.5])
    np.testing.assert_allclose(problem.inverse_roots(q, 0.5), [0.5, 1.25**-0.5 * 2**0.5, 1.0, 1.25**-0.5 * 2**0.5])
    assert np.all(np.isfinite(problem.inverse_roots(np.zeros(4))))
    u, inverse_mean = skip_zero_rows(problem, np.array([1.0, 5.0, 2.0, 4.0]))
    np.testing.assert_array_equal(u, [1.0, 0.0, 2.0, 4.0])
    assert inverse_mean == pytest.approx((1.0 + 0.5 + 0.25) / 4)


@pytest.mark.parametrize("nu", [1.0, 0.6])
def test_a_multiplier_is_clipped_to_its_box_and_moved_towards_the_cone(nu):
    problem = problem_of(20, 4, nu, dc.Penalty(a=0.1, c=np.array([0.3, 0.5, 0.2, 0.4])))
    C = in_dual_set(problem, 3.0 * RNG.standard_normal((len(problem.c),) * 2))
    assert np.all(np.abs(C) <= np.outer(problem.c, problem.c))
    np.testing.assert_array_equal(np.diag(C), 0.0)
    np.testing.assert_array_equal(C, C.T)
    M = (
        problem.X.array().T
        @ (RNG.uniform(1.0, 3.0, len(problem.X.array()))[:, None] * problem.X.array())
        / len(problem.X.array())
    )
    moved = closer_to_feasible(problem, M, C)
    np.testing.assert_array_equal(moved, in_dual_set(problem, moved))

    def distance(C):
        values = np.linalg.eigvalsh(problem.A + C + np.diag(problem.c**2) - M)
        return np.linalg.norm(np.minimum(values, 0.0))

    assert distance(moved) < distance(C)
    loose = in_dual_set(problem, np.zeros_like(C))
    np.testing.assert_allclose(closer_to_feasible(problem, 0.0 * M, loose), loose, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_a_blended_ratio_is_the_largest_eigenvalue_with_the_share_it_says(seed):
    """M <= t (I + s C), whatever the share s; at s = 0 it is the largest eigenvalue of M alone."""
    B = np.random.default_rng(seed).standard_normal((4, 6))
    M, C = B @ B.T / 6, 0.45 * symmetric(4, seed + 10)
    found = blended_ratio(M, C, 1e-9, 1e-9)
    right = np.eye(4) + found.share * C
    assert np.linalg.eigvalsh(right)[0] == pytest.approx(found.least, rel=1e-6)
    root = np.linalg.inv(np.linalg.cholesky(right))
    assert found.t == pytest.approx(np.linalg.eigvalsh(root @ M @ root.T)[-1], rel=1e-6)
    assert 0.0 <= found.share <= 1.0
    whole = np.linalg.eigvalsh(np.eye(4) + C)[0]
    if whole > 0.1:
        assert found.share == 1.0


def test_a_multiplier_that_makes_the_right_side_indefinite_is_shrunk_until_it_is_not():
    found = blended_ratio(np.eye(3), np.diag([-2.0, 0.0, 0.0]), 1e-9, 1e-9)
    assert 0.0 <= found.share < 0.5
    assert found.least > 0.0
    assert found.t == pytest.approx(1.0 / (1.0 - 2.0 * found.share), rel=1e-6)


@pytest.mark.parametrize(("n", "d"), [(9, 3), (4, 6)])
@pytest.mark.parametrize("a", [0.0, 0.2])
def test_any_factor_brackets_the_optimum_of_eq_21_more_columns_than_rows_too(n, d, a):
    X = as_data(np.random.default_rng(n).standard_normal((n, d)))
    best, V = solve_normalized(X, 1.0, a, 0.3)
    problem = direction_problem(X, 1.0, dc.Penalty(a, 0.3))
    U = problem.from_user(V)
    for factor in (U, RNG.standard_normal((d, 2)), np.eye(d)):
        found = bracket_normalized(problem, factor)
        assert -1.0 <= found.lower <= best + 1e-6
        assert found.upper >= best - 1e-6
        proved = bracket_normalized(problem, factor, Dual(C=np.zeros((d, d))))
        assert proved.lower >= found.lower
    assert bracket_normalized(problem, U).gap < 0.02
    assert bracket_normalized(problem, np.zeros((d, 1))) == Bracket(-1.0, np.inf if problem.is_coupled else 0.0)


def labels_of(joined):
    """The components of a graph, numbered from 0 by first coordinate."""
    labels = connected_components(scipy.sparse.csr_array(joined))[1]
    return number_by_first(labels)


@pytest.mark.parametrize("gap", [1e-12, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_features_are_joined_where_the_gap_does_not_prove_that_their_pair_is_inside_its_box(seed, gap):
    """|G_jk| + (gap mean w x_j^2 x_k^2)^1/2 against c_j c_k, pair by pair."""
    d = 9
    problem = problem_of(60, d, 1.0, dc.Penalty(c=np.linspace(0.15, 0.4, d)), seed)
    X, n = problem.X.array(), 60
    q = np.sum((X @ np.diag(np.linspace(0.5, 0.2, d))) ** 2, axis=1)
    weights = weights_at(q, gap)
    u = 1.0 / np.sqrt(q)
    np.testing.assert_allclose(weights.u, u)
    G = X.T @ np.diag(u) @ X / n - problem.A
    off = np.sqrt(gap * np.einsum("ij,i,ik->jk", X**2, weights.w, X**2) / n)
    joined = np.abs(G) + off >= np.outer(problem.c, problem.c)
    found = label_components(problem, weights, None)
    np.testing.assert_array_equal(found, labels_of(joined))
    loose = label_components(problem, weights, 0.3)
    np.testing.assert_array_equal(loose, labels_of(np.abs(G) >= 0.7 * np.outer(problem.c, problem.c)))


def test_the_gap_bounds_the_distance_of_the_weights_row_by_row():
    """gap >= mean (r - r*)^2 / r*: the least r* of a row that this leaves is in w = 1 / (r^2 r*)."""
    q, gap = np.array([1.0, 0.25, 4.0]), 0.01
    r = np.sqrt(q)
    least = 1.0 / (weights_at(q, gap).w * q)
    assert np.all(least < r)
    np.testing.assert_allclose((r - least) ** 2 / least / 3, gap, rtol=1e-9)
    assert weights_at(q, -1.0).gap == weights_at(q, 0.0).gap > 0.0


@pytest.mark.parametrize("rtol", [0.0, 0.2])
def test_with_an_offset_the_pairs_are_those_of_the_schur_complement(rtol):
    d, nu = 6, 0.6
    problem = problem_of(80, d, nu, dc.Penalty(c=0.25), 5)
    X, n, size = problem.X.array(), 80, d + 1
    q = np.sum((X @ np.diag([0.5] * d + [0.3])) ** 2, axis=1)
    u = 1.0 / np.sqrt(q)
    S = problem.A - X.T @ np.diag(u) @ X / n
    assert S[size - 1, size - 1] > 0.0
    G = -S[:d, :d] + np.outer(S[:d, d], S[d, :d]) / S[d, d]
    box = np.outer(problem.c[:d], problem.c[:d])
    found = label_components(problem, weights_at(q, 0.0), rtol)
    np.testing.assert_array_equal(found, labels_of(np.abs(G) >= (1.0 - rtol) * box))


def test_no_pair_that_a_point_itself_joins_is_separated_by_what_its_gap_adds():
    """With a column that is not penalised, of both signs, which every component shares."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60, 6))
    X[:, 1] += X[:, 0]
    X[:, 3] += X[:, 2]
    problem = direction_problem(as_data(X), 1.0, dc.Penalty(a=1.0, c=np.array([0.3] * 5 + [0.0])))
    weights = weights_at(np.mean((problem.X.array()) ** 2, axis=1) + 0.5, 1e-9)
    plain = label_components(problem, weights, 0.0)
    proved = label_components(problem, weights, None)
    assert plain.max() > 0
    assert len(set(zip(plain, proved, strict=True))) == plain.max() + 1  # each group is in one that is proved
    assert len(set(plain)) < 5


def test_directions_left_out_are_counted_in_data_with_zeros_too():
    X = np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    assert direction_problem(X, 1.0, dc.Penalty()).dropped == 0
    assert direction_problem(np.column_stack([X, X[:, 0]]), 1.0, dc.Penalty()).dropped == 1


def test_the_largest_group_of_a_partition_and_the_largest_spread_of_its_pairs():
    assert Partition(np.array([0, 1, 1, 2, 1])).largest == 3
    assert Partition(np.zeros(0, dtype=int)).largest == 0
    rng, every = np.random.default_rng(8), slice(0, 6)
    for off in (0.0, 0.3):
        for scale in (0.1, 3.0):
            near, far = 0.01 * rng.uniform(size=6), scale * rng.uniform(size=6)
            radius = product_radius(np.stack([near, off**0.5 * far]))
            found = radius.between(every, every)
            np.testing.assert_allclose(found, np.outer(near, near) + off * np.outer(far, far))
            assert found.max() <= radius.largest * (1.0 + 1e-12)
            assert np.diag(found).max() == pytest.approx(radius.largest)


def test_labels_are_numbered_by_first_appearance_and_groups_of_pairs_are_joined():
    np.testing.assert_array_equal(number_by_first(np.array([7, -1, 2, 7, 0, 2])), [0, -1, 1, 0, 2, 1])
    joined = join_labels(np.arange(5), np.array([0, 3]), np.array([2, 4]))
    assert joined[0] == joined[2] != joined[1]
    assert joined[3] == joined[4] not in (joined[0], joined[1])
    again = join_labels(joined, np.array([1]), np.array([4]))
    assert again[1] == again[3] == again[4] != again[0]


# The space of labels


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, -0.5, -np.inf])
@pytest.mark.parametrize("shift", [-2.0, 0.0, 0.9, 3.0])
def test_the_least_eigenvalue_is_bounded_to_one_percent_without_the_matrix(weight, shift):
    n = 9
    D = np.random.default_rng(3).uniform(0.0, 1.0, n) + shift
    Q = np.linalg.qr(np.random.default_rng(4).standard_normal((n, 3)))[0]
    Q -= Q.mean(axis=0)
    K = np.diag(D) - Q @ Q.T
    if np.isinf(weight):
        N = np.linalg.svd(np.ones((1, n)))[2][1:].T
        least = np.linalg.eigvalsh(N.T @ K @ N)[0]
    else:
        least = np.linalg.eigvalsh(K - weight * np.ones((n, n)) / n)[0]
    found = label_bounds.min_eigenvalue(D, Q, weight)
    assert 1.011 * min(least, 0.0) - 2e-13 <= found <= min(least, 0.0)


@pytest.mark.parametrize("weight", [0.0, 0.3, -0.5, -np.inf])
def test_a_number_that_is_above_an_eigenvalue_proves_nothing_of_labels(weight):
    X = as_data(np.random.default_rng(3).standard_normal((9, 3)))
    H, D = label_proof.projection_of(X), np.random.default_rng(4).uniform(0.0, 1.0, 9)
    least = label_bounds.min_eigenvalue(D, H.Q, weight)
    assert label_proof.bound_of_labels(H, D, weight, least) == label_bounds.bound_at(H, D, weight) > -np.inf
    for lowest in (0.98 * least, 0.0, 1.0, np.inf, -np.inf, np.nan):
        assert label_proof.bound_of_labels(H, D, weight, lowest) == -np.inf


def test_a_trial_value_on_the_diagonal_is_passed_over_and_one_out_of_reach_proves_nothing():
    found = label_bounds.min_eigenvalue(np.array([-1e-13, 1.0]), np.zeros((2, 1)), 0.0)
    assert -1e-12 < found <= -1e-13
    assert label_bounds.min_eigenvalue(np.full(2, -1e7), np.zeros((2, 1)), 0.0) == -np.inf


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8])
def test_the_balanced_factor_has_unit_rows_that_sum_to_zero(n):
    F = label_bounds.balanced_factor(n)
    np.testing.assert_allclose(np.sum(F**2, axis=1), 1.0)
    np.testing.assert_allclose(F.sum(axis=0), 0.0, atol=1e-15)


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("start", ["random", "one cluster", "balanced", "one apart"])
def test_any_factor_is_moved_to_unit_rows_of_the_imbalance_asked_for(alpha, start):
    n = 7
    starts = {
        "random": np.random.default_rng(9).standard_normal((n, 3)),
        "one cluster": np.ones((n, 1)),
        "balanced": label_bounds.balanced_factor(n),
        "one apart": np.array([1.0] * 6 + [-1.0])[:, None],
    }
    F = label_bounds.with_imbalance(starts[start], alpha)
    np.testing.assert_allclose(np.sum(F**2, axis=1), 1.0, rtol=1e-12)
    assert factor_imbalance(F) == pytest.approx(alpha, abs=2e-12)


def test_labels_less_unbalanced_are_the_signs_of_the_factor_where_these_are_feasible():
    y = np.array([1.0, 1.0, 1.0, -1.0])
    F = np.column_stack([0.9 * y, np.full(4, 0.1)])
    np.testing.assert_array_equal(np.abs(label_bounds.less_unbalanced(F, 0.3).T @ y), [4.0])  # imbalance 1/4
    assert factor_imbalance(label_bounds.less_unbalanced(F, 0.2)) == 0.0


def test_the_objective_and_its_gradient_are_those_of_the_dense_formulas():
    F = np.random.default_rng(5).standard_normal((8, 3))
    F /= np.linalg.norm(F, axis=1)[:, None]
    Q = np.linalg.qr(as_data(np.random.default_rng(6).standard_normal((8, 2))))[0]
    Y, H, Pi = F @ F.T, Q @ Q.T, np.eye(8) - 1 / 8
    assert label_proof.objective(Q, F) == pytest.approx(np.trace(Y @ (Pi - H)) / 8)
    diagonal, drift = label_bounds.gradient(Q, F)
    np.testing.assert_allclose(diagonal, np.diag(H @ Y))
    np.testing.assert_allclose(drift, np.diag(np.ones((8, 8)) @ Y) / 8)


def test_where_whitening_is_not_accurate_at_all_the_bracket_is_wide_and_not_wrong(noisy, monkeypatch):
    Y = np.ones((12, 1))
    assert dc.certify_y(noisy, Y).upper < 2.0
    monkeypatch.setattr(label_proof, "rounding_of_whitening", lambda *arguments: Whitening(0.0, 0.6))
    assert dc.certify_y(noisy, Y) == Bracket(0.0, 1.0)


def test_a_blend_between_those_of_the_grid_is_found():
    """I + C is singular at a blend of .03: the best one is a little above it, and .1 is far worse."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    C = (Q * np.append(rng.uniform(1.0, 2.0, 29), -1.0 / 0.97)) @ Q.T
    M = (Q * np.append(rng.uniform(0.1, 1.0, 29), 1e-4)) @ Q.T
    found, least = blended_ratio(M, C), np.inf
    for blend in np.geomspace(0.0301, 1.0, 300):
        right = np.eye(30) + (1.0 - blend) * C
        least = min(least, np.linalg.eigvals(np.linalg.solve(right, M)).real.max())
    at_a_tenth = np.linalg.eigvals(np.linalg.solve(np.eye(30) + 0.9 * C, M)).real.max()
    assert least * (1.0 - 1e-2) <= found.t <= least + 0.3 * (at_a_tenth - least)
    assert np.linalg.eigvalsh(np.eye(30) + found.share * C)[0] > 0.0


def test_what_is_least_between_the_blends_is_found_by_sections():
    for best in (2e-4, 3e-3, 0.04, 0.7, 1.0):
        tried = []

        def at(blend, best=best, tried=tried):
            tried.append(blend)
            t = abs(np.log(max(blend, 1e-12) / best))
            return Blend(1.0 + t, 1.0 - blend, 0.0, 1.0 + t)

        assert least_over_blends(at).t < 1.3
        assert len(tried) < 20


@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_a_pair_that_rounding_keeps_inside_its_box_is_not_proved_to_be_apart(nu):
    """The box ends where rounding may have moved the sum to."""
    X = as_data(np.random.default_rng(5).standard_normal((50, 2)))
    c = np.array([0.3, 0.3])
    apart, joined = 0, 0
    for factor in np.r_[1.0 - np.logspace(-17, -6, 60)]:
        problem = direction_problem(X, nu, dc.Penalty(c=c))
        q = np.full(50, 0.4)
        weights = weights_at(q, 0.0)
        G = problem.X.moment(weights.u) - problem.A
        if nu < 1.0:
            S = problem.A[2, 2] - problem.X.moment(weights.u)[2, 2]
            G = G + np.outer(G[:, 2], G[:, 2]) / S
        size = np.sqrt(np.abs(G[0, 1]) / factor / (problem.c[0] * problem.c[1]))  # of the box, so that it is factor
        wider = replace(problem, c=problem.c * np.append([size, size], np.ones(len(problem.c) - 2)))
        found = label_components(wider, weights._replace(gap=0.0), None)
        apart, joined = apart + (found[0] != found[1]), joined + (found[0] == found[1])
        assert factor < 1.0 - 1e-15 or found[0] == found[1]
    assert apart > 20
    assert joined > 5
