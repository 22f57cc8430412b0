"""Screening of pairs and of components: its rounding errors and distances against exact rationals, term by term."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from instances import centered_normal, normal
from penalties import PairWeights, PenaltyOfPairs, draw_sides
from posed import direction_problem, linked_points
from rationals import badly_centered_column, centered, fractions, gram, lossy_columns

import diffrac_cvx as dc
from diffrac_cvx.certificates import screening
from diffrac_cvx.certificates.block_problem import block_problem, join_labels, number_by_first
from diffrac_cvx.certificates.proof import Pairs, clip_groups, eliminate
from diffrac_cvx.certificates.screening import (
    gap_safe_distance,
    gap_safe_weights,
    screen_components,
    screen_groups,
    screen_pairs,
    single_precision,
)
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, sum_error
from diffrac_cvx.points.reading import read_points

ONE, EVERY = np.zeros(1, dtype=int), slice(None)


def split_of(table, nu=1.0, c=0.3, whitened=None):
    """The problem with its unpenalised coordinates apart, which are said to be as exact as `whitened`."""
    split = block_problem(direction_problem(as_data(table, warn=False), nu, dc.Penalty(c=c)))
    if whitened is not None:
        split.inner.__dict__["whitening_error"] = whitened
    return split


def uniform(low, high, n, seed=1):
    return np.random.default_rng(seed).uniform(low, high, n)


def aside_in_one_row():
    """Two columns and an unpenalised one that is 0 in the first row, the weight of which may be large."""
    table = normal(40, 3)
    table[0] = [0.1, 0.1, 0.0]
    table[1] = -table[0] - table[2:].sum(axis=0)
    return table


# Pairs, and where F is eliminated


LOSSY = {
    "sums": lossy_columns(900, 2),
    "means": np.outer(badly_centered_column(900), [1.0, -3.0]),
    "neither": normal(900, 2),
}


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("kind", LOSSY)
def test_no_pair_is_further_from_the_exact_one_than_its_box_is_narrowed(kind, nu):
    """Columns whose sums, or whose means, lose as much as they may; G_12 at t = 1 with the offset eliminated."""
    split, u = split_of(LOSSY[kind], nu, 0.1), uniform(0.2, 0.9, 900) if kind == "neither" else np.full(900, 0.5)
    at, scale = eliminate(split, u, 1.0), fractions(split.problem.coordinates.scale)
    X = np.column_stack([centered(LOSSY[kind]), np.full((900, len(scale) - 2), Fraction(1))]) * scale
    G = gram(X, fractions(u) - 1)
    exact = G[0, 1] - sum(G[0, j] * G[j, 1] / (G[j, j] - Fraction(split.problem.a[j]) ** 2) for j in split.free)
    off = abs(float(Fraction(float(at.gram(EVERY, EVERY)[0, 1])) - exact)) / np.prod(split.c)
    assert 0.0 < off <= at.entry_error <= 1e6 * off
    assert at.bounds(ONE, ONE + 1)[0] < at.t * np.prod(split.c)


@pytest.mark.parametrize("top", [1.0, 1e3, 1e6])
def test_what_unpenalized_columns_are_off_counts_with_the_weight_of_its_row(top):
    """A row of large weight in which the unpenalised column is 0, and all of what it is off is there."""
    n, off = 40, 1e-9
    split = split_of(aside_in_one_row(), c=np.array([0.3, 0.3, 0.0]), whitened=WhiteningErrorBounds(off, 0.0))
    u = np.append(top, np.full(n - 1, 0.5))
    at = eliminate(split, u, 1.0, whitened=True)
    for sign in (1.0, -1.0):
        F = split.F[:, 0] + sign * off * n**0.5 * np.eye(n)[0]
        S = (at.gram_weights * F) @ split.X.array()
        moved = abs(at.K[:, 0] @ at.K[:, 1] - S[0] * S[1] / (1.0 - np.mean(u * F**2)))
        assert moved <= at.entry_error * split.c[0] * split.c[1]


OFF = [
    (WhiteningErrorBounds(0.0, 1e-3), 0.5),
    (WhiteningErrorBounds(1e-3, 0.0), 0.5),
    *((WhiteningErrorBounds(1e-6, 0.0), u) for u in (1.0, 1e3, 1e5)),
]


@pytest.mark.parametrize(("exact", "weight"), OFF)
def test_nothing_is_eliminated_that_could_be_indefinite_where_it_is_off_however_large_the_weights(exact, weight):
    split, u = split_of(normal(20, 2), nu=0.5, whitened=exact), np.full(20, weight)
    rms, (data, right, _) = float(np.mean(split.F**2)) ** 0.5, exact
    for fraction in (0.5, 1.0):
        assert (
            eliminate(
                split, u, weight * (rms + fraction * data) ** 2 / (1.0 - fraction * right) * (1.0 - 1e-9), whitened=True
            )
            is None
        )
    assert eliminate(split, u, weight * (rms + 20 * data) ** 2 / (1.0 - 20 * right), whitened=True) is not None
    assert eliminate(split, u, np.inf) is None


def test_a_pair_is_beyond_its_box_where_rounding_may_have_put_it_inside():
    split = split_of(normal(20, 2), c=0.3)
    at, side = eliminate(split, np.full(20, 0.5), 1.0), float(np.prod(split.c))
    assert Pairs(ONE, ONE, np.array([0.05]), np.array([-0.1])).excess == [0.05]  # C is 0 at a negative bound
    at = replace(at, F=np.sqrt([[0.1, 0.1]]) * split.c)  # off by a tenth of the box
    assert at.bounds(ONE, ONE + 1)[0] == pytest.approx(0.9 * side)
    for G, beyond in ((0.95, 0.05), (0.85, 0.0)):
        found = Pairs(ONE, ONE + 1, np.array([G * side]), at.bounds(ONE, ONE + 1))
        assert len(found.violated().j) == (beyond > 0.0)
        np.testing.assert_allclose(found.excess, beyond * side, atol=1e-12)


def test_no_pair_is_further_from_the_optimal_one_than_the_radius_of_its_gap_in_rationals():
    """gap mean w x_j^2 x_k^2, the square of it, is not above that of the radius times c_j c_k, and is nearly that."""
    split = split_of(normal(30, 8), c=0.3)
    u, w = gap_safe_weights(uniform(0.5, 2.0, 30), 1e-3)
    between = gap_safe_distance(eliminate(split, u, 1.0), w)
    found = fractions(between(slice(None), slice(None))) * np.outer(fractions(split.c), fractions(split.c))
    squares, spread = fractions(split.X.array()) ** 2, fractions(w) / 30
    exact = squares.T @ (spread[:, None] * squares)
    assert np.all(found**2 >= exact * (1 + Fraction(sum_error(30))))
    assert np.all(found**2 <= exact * (1 + Fraction(sum_error(300))))


def nearly_singular_aside():
    """Orthogonal columns f h, f g and f of signs, and weights u along h: S_FF = 0.04, S_F0 is large and S_F1 = 0."""
    f, h, g = (np.where(np.arange(40) // period % 2, 1.0, -1.0) for period in (1, 2, 4))
    split = split_of(np.column_stack([f * h, f * g, f]), c=np.array([0.3, 0.3, 0.0]))
    return split, np.where(h > 0.0, 1.72, 0.2)


@pytest.mark.parametrize("aligned", ["the unpenalised column", "both", "its product with another"])
@pytest.mark.parametrize("gap", [1e-9, 1e-6, 1e-5])
def test_no_pair_is_further_from_the_optimal_one_than_the_radius_of_its_gap_where_others_are_eliminated(aligned, gap):
    """Weights that the gap allows, along which S_FF, or S_Fj, changes by as much as it may."""
    split, u = nearly_singular_aside()
    X, F, n, r = split.X.array(), split.F[:, 0], 40, 1.0 / u
    w = gap_safe_weights(r**2, gap)[1]
    between = gap_safe_distance(eliminate(split, u, 1.0), w)(slice(None), slice(None))
    pattern = {"both": X[:, 0] * X[:, 1], "its product with another": F * X[:, 1]}.get(aligned, F**2)

    def pairs(u):
        S = F @ ((u - 1.0) * F) / n
        cross = (X * (u - 1.0)[:, None]).T @ F / n
        return X.T @ ((u - 1.0)[:, None] * X) / n - np.outer(cross, cross) / S

    for sign in (1.0, -1.0):
        step = sign * 1e-3 * w / gap * pattern
        for _ in range(20):  # until mean (r - r*)^2 / r* is the gap
            step *= (gap / np.mean((r - 1.0 / (u + step)) ** 2 * (u + step))) ** 0.5
        assert np.mean((r - 1.0 / (u + step)) ** 2 * (u + step)) == pytest.approx(gap, rel=1e-6)
        moved = np.abs(pairs(u + step) - pairs(u))
        assert np.all(moved <= between * np.outer(split.c, split.c) * (1.0 + 1e-6))
    assert np.max(moved / between / np.outer(split.c, split.c)) > 0.05


def test_the_radius_of_a_gap_counts_all_columns_that_are_eliminated():
    """Four orthogonal columns of signs, the last two eliminated, and a gap that allows another weight of one row."""
    split, u = (
        split_of(scipy.linalg.hadamard(8)[:, 1:5].astype(float), c=np.array([0.3, 0.3, 0.0, 0.0])),
        np.full(8, 0.5),
    )
    X, F, step = split.X.array(), split.F, 0.1 * np.eye(8)[0]

    def pairs(u):
        cross = (X * (u - 1.0)[:, None]).T @ F / 8
        return X.T @ ((u - 1.0)[:, None] * X) / 8 + cross @ np.linalg.solve(F.T @ ((1.0 - u)[:, None] * F) / 8, cross.T)

    between = gap_safe_distance(eliminate(split, u, 1.0), step**2 / 8)(EVERY, EVERY) * np.outer(split.c, split.c)
    assert np.all(np.abs(pairs(u + step) - pairs(u)) <= between)


def test_nothing_is_said_where_two_columns_that_are_eliminated_may_become_collinear_together():
    """The gap allows a weight of one row at which S is singular along both columns, along neither alone."""
    split = split_of(normal(40, 4), c=np.array([0.3, 0.3, 0.0, 0.0]))
    at, singular = eliminate(split, np.full(40, 0.5), 1.0), 0.5 / np.sum(split.F**2, axis=1)
    row = int(np.argmin(np.abs(np.abs(split.F[:, 0]) - np.abs(split.F[:, 1]))))
    for moved, is_known in ((0.4, True), (1.0, False)):
        w = 40.0 * (moved * singular) ** 2 * (np.arange(40) == row)
        assert (gap_safe_distance(at, w) is not None) == is_known


@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
def test_a_pair_at_the_end_of_its_box_is_kept_however_its_bound_is_rounded(monkeypatch, single):
    for seed in range(10):
        split = split_of(normal(20, 2, seed))
        at = eliminate(split, np.full(20, 0.5), 1.0)
        at = replace(at, F=np.zeros((1, 2)))
        G = at.gram(EVERY, EVERY)
        split.__dict__["c"] = np.full(2, np.abs(G[0, 1]) ** 0.5)
        if single:
            ratios = (G / np.abs(G[0, 1])).astype(np.float32)
            monkeypatch.setattr(screening, "single_precision", lambda _, it=ratios: (lambda *_: it.copy(), 0.0))
        assert len(screen_pairs(at, np.arange(2)).j) == 1


def test_a_column_that_may_be_far_off_is_kept_beside_others_that_are_not():
    at = eliminate(split_of(normal(20, 3)), np.full(20, 0.5), 1.0)
    found = screen_pairs(replace(at, F=np.array([[1e-3, 1e-3, 1e3]])), np.arange(3))
    assert np.any((found.j == 0) & (found.k == 2))


def test_the_known_signs_of_pairs_are_those_of_the_columns_that_are_not_eliminated():
    """Of the first two columns, the first is eliminated: each pair of the others has a lower end."""
    X = centered_normal(40, 4) + 3.0 * centered_normal(40, 1, 1)
    problem = direction_problem(X, 1.0, dc.Penalty(lam=0.01, ridge=9.0, nonnegative=[0, 1]))
    at = eliminate(block_problem(problem, ONE), np.full(40, 0.5), 1.0)
    assert np.all(at.gram(EVERY, EVERY)[np.triu_indices(3, 1)] < 0.0)
    assert len(screen_pairs(at, np.arange(3)).j) == 3


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_pairs_that_are_no_numbers_are_kept(entry):
    at = eliminate(split_of(normal(50, 4), c=0.5), np.full(50, 0.9), 1.0)
    at.__dict__["gram_weights"] = np.full(50, entry)
    with np.errstate(invalid="ignore"):
        found = screen_pairs(at, np.arange(4))
    assert len(found.j) == len(found.violated().j) == 6


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_the_sizes_of_the_terms_of_s_count_those_of_the_weights_and_of_sparse_columns_and_their_means(form):
    """A column with few zeros, stored as it is, has entries and a mean that cancel."""
    table, u, t = np.where(uniform(0.0, 1.0, (40, 3)) < 0.9, 5.0 + normal(40, 3), 0.0), uniform(10.0, 30.0, 40), 0.01
    problem = direction_problem(read_points(form(table), by_columns=True).X, 1.0, dc.Penalty(a=0.1, c=0.05))
    inside, outside = block_problem(problem, np.arange(3)), block_problem(problem, ONE[:0])
    mean = table.mean(axis=0)
    terms = np.abs(table) + mean if form is scipy.sparse.csr_array else np.abs(table - mean)
    least = np.mean((u + t)[:, None] * (terms * problem.coordinates.scale) ** 2, axis=0) * (1.0 - 1e-9)
    assert np.all(inside.inner_sizes(u, t, problem.X.weighted_gram(u)) ** 2 >= least)
    assert np.all(outside.sizes(u, t) ** 2 >= least)


def test_the_terms_of_s_are_those_of_the_sums_over_rows_and_of_points():
    linked = linked_points(normal(300, 2), dc.Constraints([(0, i) for i in range(1, 200)]))
    assert block_problem(direction_problem(linked, 1.0, dc.Penalty(c=0.3))).n_terms >= 300 + 200


# Single precision


def in_single(monkeypatch, m, u, t, K=None):
    """An elimination, its pairs over c_j c_k in double and in single precision, and what the latter are off at most."""
    monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", 1)
    rng = np.random.default_rng(0)
    split = split_of(rng.standard_normal((50, m)) + 2.0 * rng.standard_normal((50, 1)), c=0.5)
    at = eliminate(split, u, t)
    if K is not None:
        at = replace(at, K=K * split.c)
        at.__dict__["gram_weights"] = np.full(50, 1e-15)
    product, rounding = single_precision(at)
    single, columns = product(slice(0, m), slice(0, m)), slice(0, m)
    return at, np.abs(at.gram(columns, columns) / np.outer(split.c, split.c)), np.abs(single.astype(float)), rounding


def test_no_pair_is_lost_by_single_precision(monkeypatch):
    """Each pair at a share of its box that it just exceeds, and its product in single precision does not."""
    at, G, single, rounding = in_single(monkeypatch, 30, uniform(0.3, 3.0, 50), 3.0)
    assert np.abs(single - G).max() <= rounding <= 1e5 * np.abs(single - G).max()
    lost, c = np.argwhere(np.triu((single < G * (1 - 1e-9)) & (G > 0.1), 1))[:40], at.problem.c
    assert len(lost) > 10
    for j, k in lost:
        at.problem.__dict__["c"] = c * (G[j, k] * (1 - 1e-12) / (at.t - at.entry_error)) ** 0.5
        limited, double = (screen_pairs(at, np.arange(30), max_pairs=most) for most in (1000, np.inf))
        assert all((j, k) in set(zip(found.j, found.k, strict=True)) for found in (limited, double))
        np.testing.assert_array_equal(double.bound, at.bounds(double.j, double.k))


@pytest.mark.parametrize("max_pairs", [np.inf, 10])
def test_a_pair_that_single_precision_puts_inside_its_box_by_no_more_than_its_rounding_is_kept(monkeypatch, max_pairs):
    """Products that are off by nine tenths of what is said, and a pair that exceeds its box by less than that."""
    split, rounding = split_of(normal(20, 2), c=0.3), 0.05
    at = eliminate(split, np.full(20, 0.5), 1.0)
    G = at.gram(EVERY, EVERY) / np.outer(split.c, split.c)
    at.problem.__dict__["c"] = split.c * (np.abs(G[0, 1]) / 1.001) ** 0.5
    single = (G * (1.001 / np.abs(G[0, 1])) * (1.0 - 0.9 * rounding)).astype(np.float32)
    monkeypatch.setattr(screening, "single_precision", lambda _: (lambda block, remaining: single.copy(), rounding))
    assert len(screen_pairs(at, np.arange(2), max_pairs=max_pairs).j) == 1


def test_single_precision_counts_the_products_of_what_is_eliminated(monkeypatch):
    K = np.where(np.arange(8) % 3, 0.3 * np.random.default_rng(0).standard_normal((20, 8)), 0.0)
    _, G, single, rounding = in_single(monkeypatch, 8, np.full(50, 0.9), 1.0, K)
    assert 0.0 < np.abs(single - G).max() <= rounding < 0.1
    K = np.tile(K, (20, 1))
    rounding = in_single(monkeypatch, 8, np.full(50, 0.9), 1.0, K)[-1]
    assert rounding >= len(K) * np.finfo(np.float32).eps * np.max(np.sum(K**2, axis=0))


def test_no_pair_is_lost_that_underflows_in_single_precision(monkeypatch):
    monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", 1)
    at = eliminate(split_of(uniform(0.0, 1.0, (50, 8)), c=0.5), np.full(50, 1e-46), 1e-49)
    assert len(screen_pairs(at, np.arange(8)).j) == 28


# Components


def test_the_gap_bounds_the_distance_of_the_weights_row_by_row():
    """gap >= mean (r - r*)^2 / r*: the least r* of a row that this leaves is in w = gap / (r^2 r*)."""
    q, gap = np.array([1.0, 0.25, 4.0]), 0.01
    r, least = np.sqrt(q), gap / (gap_safe_weights(q, gap)[1] * q)
    assert np.all(least < r)
    np.testing.assert_allclose((r - least) ** 2 / least / 3, gap, rtol=1e-9)
    np.testing.assert_array_equal(gap_safe_weights(q, -1.0)[1], gap_safe_weights(q, 0.0)[1])
    assert np.all(gap_safe_weights(q, 0.0)[1] > 0.0)


@pytest.mark.parametrize(("nu", "side"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.4)])
def test_a_pair_that_rounding_keeps_inside_its_box_is_not_proved_to_be_apart(nu, side, monkeypatch):
    """The box ends where rounding may have moved the sum to."""
    penalty = PenaltyOfPairs(np.array([[1.0, side], [side, 1.0]]), c=0.3) if side < 1.0 else dc.Penalty(c=0.3)
    problem, q = direction_problem(centered_normal(50, 2, 5), nu, penalty), np.full(50, 0.4)
    monkeypatch.setattr(screening, "gap_safe_weights", lambda q, gap: (1.0 / np.sqrt(q), 0.0 * q))  # no gap
    G = problem.X.weighted_gram(1.0 / np.sqrt(q)) - problem.A
    if nu < 1.0:
        G = G - np.outer(G[:, 2], G[:, 2]) / G[2, 2]
    ratio, found = 1.0 - np.logspace(-17, -6, 60), []
    box = side * problem.c[0] * problem.c[1]
    for size in np.sqrt(np.abs(G[0, 1]) / ratio / box):  # so that G is this share of the box
        c = problem.c * np.append([size, size], np.ones(len(problem.c) - 2))
        wider = replace(problem, pair_penalty=problem.pair_penalty.with_weights(c))
        labels = screen_components(wider, q, 0.0)
        found.append(labels[0] == labels[1])
    assert np.all(np.asarray(found)[ratio >= 1.0 - 1e-15])
    assert 5 < np.sum(found) < 40


def test_groups_are_not_apart_whose_blocks_may_be_off_as_far_as_their_bound(coarse):
    """Blocks of two by two of no size: entries that are off by a share of c_j c_k in all have twice that as their norm.

    In a coarse unit the sums of the norms are rounded by as many terms as there are coordinates.
    """
    problem = direction_problem(centered_normal(50, 60), 1.0, dc.Penalty(lam=0.3, groups=np.repeat(np.arange(30), 2)))
    at = eliminate(block_problem(problem), np.ones(50), 1.0)
    at = replace(at, F=0.0 * at.F)
    at.__dict__["gram_weights"] = np.zeros(50)
    coarse()

    def apart(off, box=0.0):
        found = replace(at, F=np.full((1, 60), box**0.5) * at.problem.c)
        labels = screen_groups(found, problem.pair_penalty, lambda *_: np.full((60, 60), off))
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


def test_a_box_that_is_not_declared_as_one_is_clipped_and_screened_at_its_half_widths():
    X, r, none = centered_normal(40, 8), draw_sides(np.random.default_rng(0), 8), np.zeros((8, 8))
    problem = direction_problem(X, 1.0, PenaltyOfPairs(r, c=0.35))
    penalty = type("NoBox", (PairWeights,), {"is_box": False})(problem.c, r)
    at = eliminate(block_problem(replace(problem, pair_penalty=penalty)), np.full(40, 0.7), 1.0)
    pairs, (_, (j, k, excess)) = screen_pairs(at, np.arange(8)), clip_groups(at)
    assert 0 < len(pairs.j) < 7
    expected, found = none.copy(), none.copy()
    expected[pairs.j, pairs.k] = expected[pairs.k, pairs.j] = -pairs.excess
    found[j, k] = excess
    np.testing.assert_allclose(found, expected, atol=1e-12)
    joined = number_by_first(join_labels(np.arange(8), pairs.j, pairs.k))
    np.testing.assert_array_equal(number_by_first(screen_groups(at, penalty, lambda *_: none)), joined)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 2, 3]])
def test_nothing_is_apart_where_constraints_signs_without_a_weight_or_too_wide_a_gap_leave_it_unknown(groups):
    X, q = 0.1 * centered_normal(60, 6, 3), np.full(60, 0.5)
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
