"""Rounding errors of the block certificate against exact rationals, term by term.

In some tests the unit of rounding is coarse, so that each term is large and its worst case is attained in doubles.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from posed import direction_problem, linked_points
from rationals import badly_centered_column, centered, fractions, gram, lossy_columns, nearly_ones, size

import diffrac_cvx as dc
from diffrac_cvx.certificates import block_bounds, block_proof, screening
from diffrac_cvx.certificates.block_bounds import BlockCertificate, BlockRatios, Blocks, try_certificate
from diffrac_cvx.certificates.block_problem import BlockProblem, Partition, block_problem, join_labels
from diffrac_cvx.certificates.block_proof import Pairs, SchurComplement, component_matrices, eliminate, single_ratios
from diffrac_cvx.certificates.proof import certified_ratio
from diffrac_cvx.certificates.screening import (
    cheap_safe_radius,
    factored_radius,
    gap_safe_radius,
    gap_safe_weights,
    largest_safe_t,
    scaled_columns,
    screen_pairs,
)
from diffrac_cvx.machine import deadlines
from diffrac_cvx.points import floating_point as rounding
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, sum_error
from diffrac_cvx.points.sparse import as_sparse_columns

EXACT, BOTH = WhiteningErrorBounds(0.0, 0.0), np.arange(2)
ONE = np.zeros(1, dtype=int)


def split_of(table, nu=1.0, c=0.3, a=0.0, whitened=None):
    """The problem with its unpenalised coordinates apart, which are said to be as exact as `whitened`."""
    X = as_sparse_columns(table, warn=False) if scipy.sparse.issparse(table) else as_data(table, warn=False)
    split = block_problem(direction_problem(X, nu, dc.Penalty(a, c)))
    return split if whitened is None else replace(split, whitened=whitened)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def uniform(low, high, n, seed=1):
    return np.random.default_rng(seed).uniform(low, high, n)


@pytest.fixture
def coarse(monkeypatch):
    """A unit of rounding with which each term is large, from when it is called."""
    return lambda unit=2.0**-30: monkeypatch.setattr(rounding, "UNIT_ROUNDOFF", unit)


@pytest.fixture
def exact_data(monkeypatch):
    """Columns that are taken to be exact as they are stored."""
    monkeypatch.setattr(BlockProblem, "data_error", lambda problem, columns: np.zeros(len(problem.a[columns])))


def exact_columns(split, table):
    """The columns in the problem's units, and the offset's, as fractions: exactly centred; if sparse, S + 1 r'."""
    if scipy.sparse.issparse(table):
        return fractions(split.X.S.toarray()) + fractions(split.X.r)
    problem, X = split.problem, centered(table)
    if problem.coordinates.has_offset:
        X = np.column_stack([X, np.full(len(X), Fraction(1))])
    return X * fractions(problem.coordinates.scale)


def exact_pair(split, table, u, t, j, k):
    """G_jk = mean (u - t) x_j x_k + K_j'K_k for at most one unpenalised coordinate, in rationals."""
    X, u, t = exact_columns(split, table), fractions(u), Fraction(t)

    def entry(p, q):
        found = sum((u - t) * X[:, p] * X[:, q]) / len(X)
        return found - (t * Fraction(split.problem.a[p]) ** 2 if p == q else 0)

    j, k = split.penalized[j], split.penalized[k]
    return entry(j, k) - sum(entry(j, f) * entry(f, k) / entry(f, f) for f in split.free)


def exact_ratio_of(split, X, u, j):
    """M and A + Diag(c)^2 on a coordinate alone."""
    return sum(fractions(u) * X[:, j] ** 2) / len(X), sum(X[:, j] ** 2) / len(X) + Fraction(split.c[j]) ** 2


def pairs_of(at, m):
    """G for all pairs of m coordinates."""
    return screening.gram_block(at, slice(0, m), slice(0, m))


def lossy_tables(n, columns):
    """Columns whose sums, or whose means, lose as much as they may, and others."""
    signs = np.array([1.0, -3.0, 1.0])[:columns]
    badly = np.column_stack([badly_centered_column(n)] * columns) * signs
    return {"lossy": lossy_columns(n, columns), "badly centred": badly, "gaussian": normal(n, columns)}


# What data and moments may be off


def test_centering_in_the_worst_order_is_counted_column_by_column():
    x = badly_centered_column(3000)
    table = np.column_stack([x, -4.0 * x])
    split = split_of(table, c=1e-3)
    exact = exact_columns(split, table) - fractions(split.X.array())
    said = split.data_error(slice(None))
    for j in range(2):
        assert said[j] / 100 <= size(exact[:, j]) / 3000**0.5 <= said[j]
    np.testing.assert_allclose(said, sum_error(3016) * np.sqrt(split.diagonal), rtol=1e-12)


def test_the_weighted_gram_of_a_block_that_is_summed_badly_is_off_by_nearly_what_is_said():
    for n in (300, 1500):
        split, u = split_of(lossy_columns(n, 2), c=1e-4), np.ones(n)
        M = split.data_of(BOTH).weighted_gram(u)
        lost = size(gram(fractions(split.X.array()), fractions(u)) - fractions(M))
        assert split.gram_error(BOTH, M, 1.0) / 100 <= lost <= split.gram_error(BOTH, M, 1.0)


def test_unpenalized_columns_that_are_off_as_far_as_is_said_have_weighted_grams_off_as_far_as_is_said():
    """One coordinate, and all of the weight where it is not 0: the bound is attained."""
    n, off, top = 12, 0.1, 3.0
    split = split_of(normal(n, 2), nu=0.5, whitened=WhiteningErrorBounds(data_error=off, right_error=0))
    for f in (np.ones(n), 2.0 * np.eye(n)[0]):
        u = np.where(f > 0.0, top, 1.0)
        moved, M = f * (1.0 + off / np.mean(f**2) ** 0.5), np.array([[np.mean(u * f**2)]])
        worst = float(np.mean(u * moved**2) - M[0, 0])
        assert worst <= split.gram_error(ONE[:0], M, top) <= worst * (1.0 + 1e-9)


def one_pair_of_rows(c=0.3):
    """Columns that are 0 but in two rows, all of the weight there; the largest is 3."""
    table = np.zeros((16, 2))
    table[:2] = [[1.0, 1.0], [-1.0, -1.0]]
    return split_of(table, c=c), np.where(table[:, 0] != 0.0, 3.0, 1.0)


def test_columns_of_a_block_that_are_off_have_weighted_grams_off_as_far_as_is_said(coarse):
    coarse(2.0**-18)
    split, u = one_pair_of_rows()
    M = np.array([[np.mean(u * split.X.array()[:, 0] ** 2)]])
    off = 3.0**0.5 * split.data_error(ONE)[0]
    worst = (M[0, 0] ** 0.5 + off) ** 2 - M[0, 0]
    said = split.gram_error(ONE, M, 3.0)
    assert (
        worst + sum_error(16) * M[0, 0]
        <= said
        <= (worst + sum_error(26) * M[0, 0]) * (1.0 + 10 * rounding.UNIT_ROUNDOFF)
    )
    both = split.gram_error(BOTH, M, 3.0)
    assert both - said == pytest.approx((2.0**0.5 - 1.0) * 2.0 * M[0, 0] ** 0.5 * off, rel=1e-2)


def test_the_right_side_of_a_block_counts_its_weighted_gram_and_its_unpenalized_columns():
    split, block = split_of(normal(12, 3), nu=0.5), np.array([0, 2])
    right = split.right_of(block, split.data_of(block))
    moment = split.gram_error(block, right, 1.0)
    assert moment > sum_error(12) * np.trace(right)
    aside = replace(split, whitened=split.whitened._replace(right_error=0.5))
    assert aside.right_error(block, right) == pytest.approx(moment + 0.5)
    assert split.right_error(block, right) > moment


def test_the_ratio_of_a_block_counts_what_both_of_its_sides_may_be_off(monkeypatch):
    found = []
    monkeypatch.setattr(
        block_bounds, "certified_ratio", lambda *given: found.append(given[0]) or certified_ratio(*given)
    )
    split = split_of(normal(20, 3), nu=0.5)
    blocks, u = Blocks(split, Partition(np.array([0, 0, 1]))), np.linspace(1.0, 2.0, 20)
    ratios = blocks.ratios_at(u, 0.7, [0.5 * split.pair_penalty_of(BOTH).half_width])
    (pencil,) = found
    assert pencil.M_error == split.gram_error(BOTH, pencil.M, 2.0) > 0.0
    assert pencil.right_error == split.right_error(BOTH, blocks.right[0]) > 0.0
    np.testing.assert_allclose(pencil.M, blocks.data[0].weighted_gram(u), rtol=1e-12)
    right = blocks.right[0].copy()
    right[:2, :2] += ratios.C[0]
    np.testing.assert_array_equal(pencil.right, right)


# Sparse columns, which are multiplied out: what their sums lose is in proportion to the row that is added to them, and
# not to the little that is left of it


def test_the_weighted_gram_of_sparse_columns_counts_the_row_that_is_added_to_them(exact_data):
    n, u = 1000, np.ones(1000)
    table = nearly_ones(n)
    split = split_of(table, c=1e-3)
    M = split.data_of(BOTH).weighted_gram(u)
    lost = size(gram(exact_columns(split, table), fractions(u)) - fractions(M))
    assert sum_error(n + 8) * np.trace(M) < lost <= split.gram_error(BOTH, M, 1.0)
    said = split.gram_error(BOTH, M, 3.0) - split.gram_error(BOTH, M, 1.0)
    assert said == pytest.approx(2.0 * 8.0 * sum_error(n + 8) * float(np.sum(split.X.r**2)), rel=1e-9)
    assert split.gram_error(BOTH, 3.0 * M, 0.0) == pytest.approx(6.0 * sum_error(n + 8) * np.trace(M), rel=1e-9)


def test_ratios_pairs_and_matrices_of_sparse_columns_count_the_row_that_is_added_to_them(exact_data):
    n, wrong, beyond, t = 1000, 0, 0, 1.2
    for seed in range(3):
        table, u = nearly_ones(n, seed), uniform(0.5, 1.5, n, seed)
        split = split_of(table, c=1e-3)
        found, X, rows = single_ratios(split, u, BOTH), exact_columns(split, table), split.X.r**2
        plain = split.weighted_squares(u) * (1.0 + sum_error(n + 8)) / (split.diagonal * (1.0 - sum_error(n + 8)))
        for j in range(2):
            M, B = exact_ratio_of(split, X, u, j)
            assert Fraction(found[j]) * B >= M
            wrong += Fraction(plain[j]) * B < M
        at = eliminate(split, u, t)
        off = abs(float(Fraction(pairs_of(at, 2)[0, 1]) - exact_pair(split, table, u, t, 0, 1))) / np.prod(split.c)
        assert off <= at.entry_error
        beyond += off > float(
            np.max(at.relative_error * split.squares.weighted_row_sum(np.abs(at.gram_weights)) / split.c**2)
        )
        assert at.entry_error >= at.relative_error * 8.0 * float(
            np.abs(at.gram_weights).sum() * np.max(rows / split.c**2)
        )
        matrix, exact = component(split, table, u, t, Partition(BOTH), [])
        assert 0.0 < size(fractions(matrix.S) - exact) <= matrix.error
        assert matrix.error >= 32.0 * at.relative_error * (t + float(np.mean(u))) * float(np.sum(rows))
    assert min(wrong, beyond) > 0


# Coordinates alone


def test_the_ratio_of_a_coordinate_alone_holds_in_rationals_where_its_sums_lose_most():
    n, wrong = 600, 0
    for table in (lossy_columns(n, 2), np.column_stack([badly_centered_column(n)] * 2) * [1.0, -1.0]):
        for c in (1e-3, 0.3):
            split, u = split_of(table, c=c), np.where(np.abs(table[:, 0]) < 1e-3, 2.0, 1.0)
            found, X = single_ratios(split, u, BOTH), exact_columns(split, table)
            for j in range(2):
                M, B = exact_ratio_of(split, X, u, j)
                assert Fraction(found[j]) * B >= M
                wrong += Fraction(float(split.weighted_squares(u)[j] / split.diagonal[j])) * B < M
    assert wrong > 0


def test_the_ratio_of_a_coordinate_alone_counts_sums_data_and_weights(coarse):
    """All of the weight where the data are: M is off by (M^1/2 + top^1/2 off)^2 and B by (B^1/2 - off)^2."""
    coarse(2.0**-18)
    n, top = 16, 3.0
    split, u = one_pair_of_rows(c=0.2)
    found = single_ratios(split, u, np.array([1]))[0]
    M, B, off = np.mean(u * split.X.array()[:, 1] ** 2), split.diagonal[1], split.data_error(np.array([1]))[0]
    worst = ((M * (1.0 + sum_error(n))) ** 0.5 + top**0.5 * off) ** 2 / ((B**0.5 - off) ** 2 - sum_error(n) * B)
    assert worst <= found * (1.0 + 1e-6)
    assert found <= worst * (1.0 + 4.0 * sum_error(10))
    of_either = max(M * (1.0 + sum_error(n)) / B, M / (B * (1.0 - sum_error(n))))  # its sums alone
    assert found > of_either * (1.0 + sum_error(n))


def aside_in_one_row():
    """Two columns and an unpenalised one that is 0 in the first row, the weight of which may be large."""
    table = normal(40, 3)
    table[0] = [0.1, 0.1, 0.0]
    table[1] = -table[0] - table[2:].sum(axis=0)
    return table


@pytest.mark.parametrize("top", [1.0, 1e3, 1e6, 1e9])
def test_the_ratio_of_a_coordinate_alone_counts_what_an_unpenalized_column_is_off_with_the_weight_of_its_row(top):
    off, n = 1e-9, 40
    split, u = split_of(aside_in_one_row(), c=np.array([0.3, 0.3, 0.0])), np.append(top, np.full(39, 0.5))
    exactly = single_ratios(replace(split, whitened=EXACT), u, BOTH)
    found = single_ratios(replace(split, whitened=WhiteningErrorBounds(off, 0.0)), u, BOTH) - exactly
    for sign in (1.0, -1.0):
        F = split.F[:, 0] + sign * off * n**0.5 * np.eye(n)[0]
        for j in range(2):
            data = np.column_stack([split.X.array()[:, j], F])
            M, right = data.T @ (u[:, None] * data) / n, np.diag([split.diagonal[j], 1.0])
            right[0, 1] = right[1, 0] = split.cross[j, 0]
            root = np.linalg.inv(np.linalg.cholesky(right))
            assert np.linalg.eigvalsh(root @ M @ root.T)[-1] <= (exactly + found)[j]
            bordered = np.abs(M[0, 1] - np.mean(u * data[:, 0] * split.F[:, 0]))
            assert bordered <= found[j]  # of what F is off: all of it off the diagonal


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "exact", [WhiteningErrorBounds(1e-3, 0.0), WhiteningErrorBounds(0.0, 1e-3)], ids=["data", "right side"]
)
def test_the_ratio_of_a_coordinate_alone_holds_where_unpenalized_columns_are_off(exact, seed):
    """F is off by so much in the Euclidean norm, and A on it in the spectral norm, in the worst direction."""
    split, u = split_of(normal(20, 3, seed=seed), nu=0.5, whitened=exact), uniform(0.5, 2.0, 20, seed)
    found = single_ratios(split, u, np.arange(3))
    F = split.F * (1.0 + exact.data_error / np.mean(split.F**2) ** 0.5)
    for j in range(3):
        data = np.column_stack([split.X.array()[:, j], F])
        right = data.T @ data / 20
        right[0, 0], right[1, 1] = split.diagonal[j], 1.0 - exact.right_error
        worst = np.linalg.eigvals(np.linalg.solve(right, data.T @ (u[:, None] * data) / 20)).real.max()
        assert worst <= found[j] <= worst * 1.5


def test_the_ratio_of_a_coordinate_alone_counts_the_sums_over_unpenalized_columns(coarse, exact_data):
    """A column that is nearly the unpenalised one: what is left of it is small, and is off by what it is left of."""
    n, (f, g, h) = 300, normal(3, 300)
    table = np.column_stack([f, f + 1e-2 * g, h])
    split = split_of(table - table.mean(axis=0), c=np.array([0.0, 1e-3, 0.3]), whitened=EXACT)
    u = uniform(1.0, 2.0, n)
    fine = single_ratios(split, u, BOTH)
    coarse()
    raised = single_ratios(split, u, BOTH) - fine
    M, MF = split.weighted_squares(u), float(np.mean(u * split.F[:, 0] ** 2))
    left = split.diagonal - split.cross[:, 0] ** 2
    assert left[0] < 1e-3 < 0.1 < left[1]
    inflated = 2.0 * sum_error(n + 8) * M / left  # what M and A themselves, made larger and smaller, explain
    assert np.all(raised >= 8.0 * sum_error(n) * ((M + MF) * (1.0 + split.diagonal / left) + fine))
    assert np.all(raised <= 8.0 * sum_error(n + 40) * 4.0 * (M + MF) / left + 4.0 * inflated)
    assert raised[0] > 100.0 * raised[1]


def test_with_a_sparse_column_and_an_offset_the_row_is_counted_too(coarse):
    coarse()
    table, u = scipy.sparse.csc_array(np.r_[np.ones((19, 1)), np.zeros((1, 1))]), np.full(20, 2.0)
    split, dense = (split_of(form, nu=0.5, c=1e-2) for form in (table, table.toarray()))
    more = single_ratios(split, u, ONE)[0] - single_ratios(dense, u, ONE)[0]
    weight = split.X.r[0] ** 2 * (1.0 + split.diagonal[0] / (split.diagonal[0] - split.cross[0] @ split.cross[0]))
    assert more >= 8.0 * sum_error(20) * 8.0 * 3.0 * weight


# Pairs, and where F is eliminated


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("kind", ["lossy", "badly centred", "gaussian"])
def test_no_pair_is_further_from_the_exact_one_than_its_box_is_narrowed(kind, nu):
    table = lossy_tables(900, 2)[kind]
    split, u = split_of(table, nu=nu, c=0.1), uniform(0.2, 0.9, 900) if kind == "gaussian" else np.full(900, 0.5)
    at = eliminate(split, u, 1.0)
    off = abs(float(Fraction(float(pairs_of(at, 2)[0, 1])) - exact_pair(split, table, u, 1.0, 0, 1)))
    assert 0.0 < off / np.prod(split.c) <= at.entry_error <= 1e5 * off / np.prod(split.c)
    assert at.bound == at.t - at.entry_error < at.t


def test_a_box_is_narrowed_by_sums_and_by_what_columns_may_be_off(coarse):
    coarse()
    n, u = 200, np.append(3.0, np.full(199, 0.25))
    split = split_of(normal(n, 3), nu=0.5, c=np.array([0.2, 0.3, 0.4]))
    at = eliminate(split, u, 2.0)
    sums = sum_error(n) * (
        split.squares.weighted_row_sum(np.abs(at.gram_weights)) + at.condition * np.sum(at.K**2, axis=0)
    )
    moved = 2.0 * split.data_error(slice(None)) * np.sqrt(split.diagonal) / split.c**2
    least = float(np.max(sums / split.c**2 + (2.0 + 3.0) * moved))
    assert least <= at.entry_error <= 2.0 * least
    assert at.relative_error >= sum_error(n) + split.whitened.right_error + split.whitened.data_error
    steady = eliminate(split, np.full(n, 2.0), 2.0)  # nothing is summed: what is left is what columns are off
    assert steady is None or steady.entry_error >= float(np.max(4.0 * moved))


def test_what_is_eliminated_counts_how_nearly_singular_it_is():
    """Where t is little above the ratio of F, K'K loses digits: more than its sums alone explain."""
    lost = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table, u = rng.standard_normal((30, 2)), rng.uniform(0.5, 2.0, 30)
        split = split_of(table, nu=0.5, c=0.3)
        t = float(np.mean(u * split.F[:, 0] ** 2)) * (1.0 + 1e-9)
        at = eliminate(split, u, t)
        if at is not None:
            off = abs(float(Fraction(float(pairs_of(at, 2)[0, 1])) - exact_pair(split, table, u, t, 0, 1)))
            assert off <= at.entry_error * np.prod(split.c)
            lost += off > 2.0 * at.relative_error * float(np.max(np.sum(at.K**2, axis=0)))
    assert lost > 0


@pytest.mark.parametrize("top", [1.0, 1e3, 1e6])
def test_what_unpenalized_columns_are_off_counts_with_the_weight_of_its_row(top):
    """A row of large weight in which the unpenalised column is 0, and all of what it is off is there."""
    n, off = 40, 1e-9
    split = split_of(aside_in_one_row(), c=np.array([0.3, 0.3, 0.0]), whitened=WhiteningErrorBounds(off, 0.0))
    u = np.append(top, np.full(n - 1, 0.5))
    at = eliminate(split, u, 1.0)
    for sign in (1.0, -1.0):
        F = split.F[:, 0] + sign * off * n**0.5 * np.eye(n)[0]
        S = (at.gram_weights * F) @ split.X.array()
        moved = abs(at.K[:, 0] @ at.K[:, 1] - S[0] * S[1] / (1.0 - np.mean(u * F**2)))
        assert moved <= at.entry_error * split.c[0] * split.c[1]


@pytest.mark.parametrize("times", [0.125, 4.0, 64.0])
def test_what_rounding_may_change_of_pairs_is_in_proportion_to_weights_and_t_together(times):
    split, u = split_of(normal(40, 3), nu=0.5, c=0.3), uniform(0.2, 2.0, 40)
    at, more = eliminate(split, u, 3.0), eliminate(split, times * u, times * 3.0)
    assert at.condition > 30.0
    assert more.condition == pytest.approx(at.condition, rel=1e-9)
    assert more.entry_error == pytest.approx(times * at.entry_error, rel=1e-9)
    assert more.relative_error == pytest.approx(at.relative_error, rel=1e-12)


OFF = [
    (WhiteningErrorBounds(0.0, 1e-3), 0.5),
    (WhiteningErrorBounds(1e-3, 0.0), 0.5),
    *((WhiteningErrorBounds(1e-6, 0.0), u) for u in (1.0, 1e3, 1e5)),
]


@pytest.mark.parametrize(("exact", "weight"), OFF)
def test_nothing_is_eliminated_that_could_be_indefinite_where_it_is_off_however_large_the_weights(exact, weight):
    split, u = split_of(normal(20, 2), nu=0.5, whitened=exact), np.full(20, weight)
    rms, (data, right) = float(np.mean(split.F**2)) ** 0.5, exact
    for fraction in (0.5, 1.0):
        assert (
            eliminate(split, u, weight * (rms + fraction * data) ** 2 / (1.0 - fraction * right) * (1.0 - 1e-9)) is None
        )
    assert eliminate(split, u, weight * (rms + 20 * data) ** 2 / (1.0 - 20 * right)) is not None
    assert eliminate(split, u, np.inf) is None


def test_nothing_is_eliminated_that_an_unpenalized_column_could_make_indefinite_in_a_row_of_large_weight():
    off, top = 1e-3, 1e4
    split = split_of(aside_in_one_row(), c=np.array([0.3, 0.3, 0.0]), whitened=WhiteningErrorBounds(off, 0.0))
    u = np.append(top, np.full(39, 0.5))
    largest = float(np.mean(u * split.F[:, 0] ** 2)) + top * off**2
    assert largest < 1.0
    assert eliminate(split, u, largest * (1.0 - 1e-9)) is None


def test_what_is_eliminated_is_positive_definite_beyond_the_rounding_of_its_sums():
    split, u = split_of(normal(20, 2), nu=0.5, whitened=EXACT), uniform(0.5, 2.0, 20)
    largest = float(np.mean(u * split.F[:, 0] ** 2))
    assert eliminate(split, u, largest * (1.0 + 30 * sum_error(52))) is None
    assert eliminate(split, u, largest * (1.0 + 100 * sum_error(52))) is not None


def test_a_pair_is_beyond_its_box_where_rounding_may_have_put_it_inside():
    at = SchurComplement(split_of(np.eye(2)), 1.0, np.zeros(1), np.zeros((0, 2)), entry_error=0.1)
    assert at.bound == pytest.approx(0.9)
    for G, beyond in ((0.95, 0.05), (0.85, 0.0)):
        found = Pairs(ONE, ONE + 1, np.array([G * 0.25]), np.array([at.bound * 0.25]))
        assert len(found.violated().j) == (beyond > 0.0)
        np.testing.assert_allclose(found.excess, beyond * 0.25, atol=1e-15)


def test_a_pair_that_may_be_beyond_its_box_is_checked(coarse):
    """Half of what rounding may change inside its box, with a unit that is coarse."""
    table, u = normal(40, 2) @ [[1.0, 1.0], [0.0, 1.0]], uniform(0.5, 3.0, 40)
    split = split_of(table, c=0.3)
    t = float(np.max(single_ratios(split, u, BOTH))) * 1.5
    ratio = abs(pairs_of(eliminate(split, u, t), 2)[0, 1]) / np.prod(split.c)
    coarse(2.0**-24)
    at = eliminate(split, u, t)
    for inside, looked_at in ((0.5, [(0, 1)]), (2.0, [])):  # its box's margin, so many times
        found = screen_pairs(at._replace(t=ratio + inside * at.entry_error), BOTH, 1.0).pairs
        assert list(zip(found.j, found.k, strict=True)) == looked_at


def test_a_scan_ends_where_more_pairs_are_beyond_their_box_than_are_of_use(monkeypatch):
    at, labels = eliminate(wide_split(), uniform(0.3, 3.0, 50), 3.0), np.arange(30)
    found = len(screen_pairs(at, labels, 1.0).pairs.j)
    monkeypatch.setattr(screening, "COLUMN_BLOCK", 7)
    assert 10 < len(screen_pairs(at, labels, 1.0, max_pairs=found).pairs.j) == found
    for most in (found - 1, 0):
        with pytest.raises(screening.TooManyPairsError):
            screen_pairs(at, labels, 1.0, max_pairs=most)


@pytest.mark.parametrize("single", [1, 10**9], ids=["single", "double"])
@pytest.mark.parametrize("columns", [4, 512])
def test_coordinates_that_the_elimination_leaves_alone_may_come_first(monkeypatch, single, columns):
    """K is 0 on some columns: in single precision these are multiplied without it, in an order of their own."""
    monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", single)
    monkeypatch.setattr(screening, "COLUMN_BLOCK", columns)
    split, rng = wide_split(12), np.random.default_rng(0)
    at = eliminate(split, rng.uniform(0.5, 1.5, 50), 1.0)
    K = np.where(rng.uniform(size=12) < 0.5, 0.0, 0.4 * rng.standard_normal((3, 12)))
    at = at._replace(K=K, entry_error=1e-9)
    assert (scaled_columns(at).order is None) == (single > 1)
    G, sides = split.X.gram(at.gram_weights) + K.T @ K, np.outer(split.c, split.c)
    expected = np.argwhere(np.triu(np.abs(G) > 0.5 * at.bound * sides, 1))
    found = screen_pairs(at, np.arange(12), 0.5, factored_radius(np.zeros((1, 12))))
    assert [list(pair) for pair in sorted(zip(found.pairs.j, found.pairs.k, strict=True))] == expected.tolist()
    np.testing.assert_allclose(found.pairs.G, G[found.pairs.j, found.pairs.k], rtol=1e-12)
    joined = join_labels(np.arange(12), *np.nonzero(np.triu(np.abs(G) >= sides, 1)))
    np.testing.assert_array_equal(found.certified[:, None] == found.certified, joined[:, None] == joined)
    assert 5 < len(expected) < 66


def test_no_pair_is_further_from_the_optimal_one_than_the_radius_of_its_gap_in_rationals():
    """gap mean w x_j^2 x_k^2, the square of it, is not above that of the radius times c_j c_k, and is nearly that."""
    split = split_of(normal(30, 8), c=0.3)
    weights = gap_safe_weights(uniform(0.5, 2.0, 30), 1e-3)
    between = gap_safe_radius(eliminate(split, weights.u, 1.0), weights, np.ones(30, dtype=bool)).between
    found = fractions(between(slice(None), slice(None))) * np.outer(fractions(split.c), fractions(split.c))
    squares, spread = fractions(split.X.array()) ** 2, fractions(weights.w) * Fraction(weights.gap) / 30
    exact = squares.T @ (spread[:, None] * squares)
    assert np.all(found**2 >= exact * (1 + Fraction(sum_error(30))))
    assert np.all(found**2 <= exact * (1 + Fraction(sum_error(300))))


def test_the_quick_radius_is_that_of_its_gap_in_rationals():
    """For two equal columns the inequality of Cauchy and Schwarz is none: |G_jk|^2 may be gap mean w x_j^4."""
    x = normal(30, 1)
    split, q = split_of(np.hstack([x, x]), c=0.3), uniform(0.5, 2.0, 30)
    weights = gap_safe_weights(q, 1e-3)
    found = fractions(cheap_safe_radius(split, q, 1e-3, weights.u, 1.0).between(ONE, ONE + 1))[0, 0]
    exact = Fraction(weights.gap) * np.mean(fractions(weights.w) * fractions(split.X.array())[:, 0] ** 4)
    found = (found * Fraction(split.c[0]) * Fraction(split.c[1])) ** 2
    assert exact * (1 + Fraction(sum_error(30))) <= found <= exact * (1 + Fraction(sum_error(500)))


@pytest.mark.parametrize("times", [0.5, 0.99, 1.5])
def test_the_quick_radius_counts_weights_that_are_not_those_of_the_point(times):
    """Two equal columns, at weights that are kept from being as large, or as small, as those of the energies."""
    x = normal(30, 1)
    split, q = split_of(np.hstack([x, x]), c=0.3), uniform(0.5, 2.0, 30)
    u = times * q**-0.5
    moved = np.mean(np.abs(u - q**-0.5) * split.X.array()[:, 0] ** 2)
    found = cheap_safe_radius(split, q, 0.0, u, 1.0).between(ONE, ONE + 1)[0, 0] * split.c[0] * split.c[1]
    assert moved * (1.0 - 1e-12) <= found <= moved + 1e-5


def test_no_quick_radius_is_known_where_points_are_linked_or_the_powers_of_a_row_underflow():
    X, pairs = as_data(normal(30, 2)), dc.Constraints(must_link=[(0, 1), (2, 3)])
    linked = block_problem(direction_problem(linked_points(X, pairs), 1.0, dc.Penalty(c=0.3)))
    free, q = split_of(X), np.ones(30)
    assert cheap_safe_radius(free, q, 1e-3, q, 1.0) is not None
    assert cheap_safe_radius(linked, np.ones(28), 1e-3, np.ones(28), 1.0) is None
    assert cheap_safe_radius(free, np.append(1e-90, q[1:]), 1e-3, q, 1.0) is None


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
    weights, used = gap_safe_weights(r**2, gap), np.ones(n, dtype=bool)
    between = gap_safe_radius(eliminate(split, u, 1.0), weights, used).between(slice(None), slice(None))
    pattern = {"both": X[:, 0] * X[:, 1], "its product with another": F * X[:, 1]}.get(aligned, F**2)

    def pairs(u):
        S = F @ ((u - 1.0) * F) / n
        cross = (X * (u - 1.0)[:, None]).T @ F / n
        return X.T @ ((u - 1.0)[:, None] * X) / n - np.outer(cross, cross) / S

    for sign in (1.0, -1.0):
        step = sign * 1e-3 * weights.w * pattern
        for _ in range(20):  # until mean (r - r*)^2 / r* is the gap
            step *= (gap / np.mean((r - 1.0 / (u + step)) ** 2 * (u + step))) ** 0.5
        assert np.mean((r - 1.0 / (u + step)) ** 2 * (u + step)) == pytest.approx(gap, rel=1e-6)
        moved = np.abs(pairs(u + step) - pairs(u))
        assert np.all(moved <= between * np.outer(split.c, split.c) * (1.0 + 1e-6))
    assert np.max(moved / between / np.outer(split.c, split.c)) > 0.05


def test_no_radius_of_a_gap_is_known_where_what_is_eliminated_may_be_singular_at_an_optimum():
    split, u = nearly_singular_aside()
    at, used = eliminate(split, u, 1.0), np.ones(40, dtype=bool)
    all_weights = [gap_safe_weights(u**-2.0, gap) for gap in np.logspace(-6, -2, 41)]
    error = np.array([np.mean(weights.gap * weights.w) ** 0.5 for weights in all_weights])  # F^2 = 1
    known = np.array([gap_safe_radius(at, weights, used) is not None for weights in all_weights])
    np.testing.assert_array_equal(known, error < 0.04)
    assert 5 < known.sum() < 36


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_pairs_that_are_no_numbers_are_kept_and_joined(entry):
    at = eliminate(wide_split(4), np.full(50, 0.9), 1.0)
    at = at._replace(gram_weights=np.full(50, entry))
    with np.errstate(invalid="ignore"):
        found = screen_pairs(at, np.arange(4), 1.0, factored_radius(np.zeros((1, 4))))
    assert len(found.pairs.j) == len(found.pairs.violated().j) == 6
    assert len(np.unique(found.certified)) == 1


# Single precision


def wide_split(m=30, seed=0):
    """Correlated columns of fifty points, all penalised."""
    rng = np.random.default_rng(seed)
    return split_of(rng.standard_normal((50, m)) + 2.0 * rng.standard_normal((50, 1)), c=0.5)


@pytest.fixture
def in_single(monkeypatch):
    """An elimination, its pairs over c_j c_k in double precision, and in the single precision that is used."""
    monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", 1)

    def pairs(split, u, t):
        at, columns = eliminate(split, u, t), slice(0, len(split.c))
        single = np.abs(scaled_columns(at).products(columns, columns).astype(float))
        return at, np.abs(pairs_of(at, len(split.c)) / np.outer(split.c, split.c)), single

    return pairs


def test_no_pair_is_lost_by_single_precision(in_single):
    """Each pair at a share of its box that it just exceeds, and its product in single precision does not."""
    at, G, single = in_single(wide_split(), uniform(0.3, 3.0, 50), 3.0)
    assert np.abs(single - G).max() <= scaled_columns(at).rounding <= 1e5 * np.abs(single - G).max()
    lost = np.argwhere(np.triu((single < G * (1 - 1e-9)) & (G > 0.1), 1))[:40]
    assert len(lost) > 10
    for j, k in lost:
        found = screen_pairs(at, np.arange(30), G[j, k] * (1 - 1e-12) / at.bound).pairs
        assert (j, k) in set(zip(found.j, found.k, strict=True))


@pytest.mark.parametrize(("m", "seeds", "low", "high"), [(8, 1, 0.8, 1.4), (2, 60, 0.9, 1.12)], ids=["pairs", "block"])
def test_no_pair_is_separated_by_single_precision_nor_a_block_of_columns_passed_over(in_single, m, seeds, low, high):
    """Each pair with a distance to the optimum that just joins it, where single precision would not."""
    tried = 0
    for seed in range(seeds):
        at, G, single = in_single(wide_split(m, seed), uniform(low, high, 50, seed), 1.0)
        for j, k in np.argwhere(np.triu((single < G * (1 - 1e-9)) & (G > 0.05) & (G < 1.0), 1)):
            near = np.zeros(m)
            near[[j, k]] = (1.0 - G[j, k] * (1 - 1e-12)) ** 0.5
            proved = screen_pairs(at, np.arange(m), 0.7, factored_radius(near[None])).certified
            assert proved[j] == proved[k]
            tried += 1
    assert tried > 3


def test_single_precision_counts_the_products_of_what_is_eliminated(in_single):
    at, *_ = in_single(split := wide_split(8), np.full(50, 0.9), 1.0)
    K = 0.3 * split.c * np.random.default_rng(0).standard_normal((20, 8))
    columns = scaled_columns(at._replace(K=K, gram_weights=np.zeros(50)))
    off = np.abs(columns.products(slice(0, 8), slice(0, 8)) - (K / split.c).T @ (K / split.c))
    assert 0.0 < off.max() <= columns.rounding < 0.1


def test_single_precision_is_not_used_where_its_rounding_is_not_small_beside_a_box(in_single):
    at, *_ = in_single(split := wide_split(6), uniform(0.3, 3.0, 50), 3.0)
    length = float(np.max((split.squares.weighted_row_sum(np.abs(at.gram_weights))) / split.c**2))
    roundings = scaled_columns(at).rounding / (float(np.finfo(np.float32).eps) * length)
    assert 50 <= roundings <= 70  # fifty terms, and a few roundings each
    assert scaled_columns(at._replace(problem=replace(split, c=split.c * 1e-3))).rounding == 0.0


# S on a component


def component(split, table, u, t, partition, C):
    """What `matrices` yields on the component of all coordinates, and S in rationals."""
    at, m = eliminate(split, u, t), len(split.c)
    j, k = np.nonzero(np.triu(partition.labels[:, None] != partition.labels, 1))
    chosen = Pairs(j, k, pairs_of(at, m)[j, k], np.zeros(len(j)))  # boxes of no size: S holds all of G
    (found,) = component_matrices(Blocks(split, partition), u, C, at, chosen)
    exact = np.diag(Fraction(t) * fractions(split.c) ** 2)
    for p, q in np.ndindex(m, m):
        exact[p, q] -= exact_pair(split, table, u, t, p, q)
    for block, matrix in zip(partition.blocks, C, strict=True):
        exact[np.ix_(block, block)] += Fraction(t) * fractions(matrix)
    return found, exact[np.ix_(found.members, found.members)]


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("kind", ["lossy", "badly centred", "gaussian"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 0, 1]])
def test_no_matrix_of_a_component_is_further_from_the_exact_one_than_is_said(kind, nu, labels):
    table, partition = lossy_tables(120, 3)[kind], Partition(np.array(labels))
    split, u = split_of(table, nu=nu, c=0.2, a=0.1), uniform(0.2, 0.9, 120, 2)
    C = [0.5 * split.pair_penalty_of(block).half_width for block in partition.blocks]
    found, exact = component(split, table, u, 1.5, partition, C)
    assert 0.0 < size(fractions(found.S) - exact) <= found.error


@pytest.mark.parametrize("near", [1.01, 2.0])
def test_the_matrix_of_a_component_counts_all_that_its_diagonal_is_made_of(coarse, near):
    coarse()
    table, u = normal(200, 2), uniform(0.5, 2.0, 200)
    split = split_of(table, nu=0.5, c=0.2)
    t = near * float(np.mean(u * split.F[:, 0] ** 2))
    found, _ = component(split, table, u, t, Partition(BOTH), [])
    at = eliminate(split, u, t)
    whole = t * split.diagonal + split.weighted_squares(u) + at.condition * np.sum(at.K**2, axis=0)
    least = at.relative_error * float(np.sum(whole))  # M, A and K'K each, and they are added up
    assert at.relative_error > sum_error(200)
    assert 3.0 * least <= found.error <= 6.0 * least


def of_coordinates_apart(m=2):
    """Coordinates apart at equal weights: the blocks, an elimination at t = 1, and a claim."""
    split, u = split_of(normal(20, m), c=0.2), np.full(20, 0.5)
    claim = BlockCertificate(BlockRatios(u, 1.0, np.zeros(0), [], []), np.ones(20), 1.0)
    return Blocks(split, Partition(np.arange(m))), claim, eliminate(split, u, 1.0)


def test_a_bound_is_proved_only_where_its_matrix_is_positive_beyond_what_it_may_be_off(monkeypatch):
    chosen, least = Pairs(ONE, ONE + 1, np.array([1.0]), np.array([0.5])), []
    for off, proves in ((0.09, True), (0.11, False)):
        together = block_proof.ComponentMatrix(BOTH, np.diag([0.1, 1.0]), off)
        monkeypatch.setattr(block_bounds, "component_matrices", lambda *_, together=together: iter([together]))
        found = try_certificate(*of_coordinates_apart(), chosen, None)
        assert (found.lower is not None) == proves
        least.extend(failure.value for failure in found.violated_blocks)
    assert least == pytest.approx([0.1])


def test_a_component_too_large_to_be_looked_at_proves_nothing(monkeypatch):
    given, chosen = of_coordinates_apart(), Pairs(ONE, ONE + 1, np.array([1e-6]), np.array([0.5e-6]))
    for most, proves in ((2, True), (1, False)):
        monkeypatch.setattr(block_bounds, "MAX_COMPONENT_SIZE", most)
        assert (try_certificate(*given, chosen, None).lower is not None) == proves


def test_the_gap_that_keeps_pairs_apart_is_that_of_the_bound_which_is_proved(monkeypatch):
    blocks, claim, _ = of_coordinates_apart()
    claim, gaps = claim._replace(ratios=claim.ratios._replace(single=np.full(2, 1.0))), []
    monkeypatch.setattr(block_bounds, "cheap_safe_radius", lambda problem, q, gap, *_: gaps.append(gap))
    found = block_bounds.certify_blocks(blocks, claim, 0)
    assert gaps == [claim.value - found.lower]
    assert gaps[0] > claim.gap


def test_the_matrix_of_a_block_is_that_of_its_definition():
    split, u = split_of(normal(20, 3), nu=0.5, c=0.2), uniform(0.5, 2.0, 20)
    blocks = Blocks(split, Partition(np.array([0, 0, 1])))
    C, at = 0.5 * split.pair_penalty_of(BOTH).half_width, eliminate(split, u, 2.0)
    X, A = split.X.array()[:, :2], blocks.right[0][:2, :2]
    expected = 2.0 * (A + C) - X.T @ (u[:, None] * X) / 20 - at.K[:, :2].T @ at.K[:, :2]
    np.testing.assert_allclose(block_proof.block_matrix(blocks, u, C, at, 0), expected, atol=1e-14)


def test_whoever_waits_is_asked_at_each_component():
    beyond, asked = Pairs(np.array([0, 2]), np.array([1, 3]), np.full(2, 0.6), np.full(2, 0.5)), []
    given = of_coordinates_apart(4)
    with deadlines.time_limited(deadlines.Deadline(lambda: np.inf, lambda: asked.append(1))):
        try_certificate(*given, beyond, None)
    assert len(asked) == 2


def test_multipliers_beyond_their_box_are_clipped_block_by_block():
    split = split_of(normal(20, 3), nu=0.5)
    (C,) = split.restrict_multiplier(Partition(np.array([0, 0, 1])), scipy.sparse.csr_array(9.0 * np.ones((4, 4))))
    np.testing.assert_array_equal(C, split.pair_penalty_of(BOTH).half_width)


def test_unpenalized_columns_of_linked_points_are_off_by_their_sums_too():
    X, constraints = as_data(normal(400, 2)), dc.Constraints(must_link=[(i, i + 1) for i in range(199)])
    linked, free = (
        block_problem(direction_problem(linked_points(X, given), 0.5, dc.Penalty(c=0.3)))
        for given in (constraints, None)
    )
    assert linked.whitened.data_error >= free.whitened.data_error + 0.7 * sum_error(200)


# Larger t


def test_the_largest_safe_t_is_where_a_pair_just_kept_may_reach_its_box():
    """|G_jk| grows by the change of t times A_jk, which is at most 1: with all of it, and c as large as A allows."""
    split, t = split_of(normal(20, 2), c=np.array([0.3, 0.6])), 1.5
    safe = largest_safe_t(split, t)
    room = (1.0 - screening.NEAR_BOUND) * t * split.c**2
    assert np.all((safe - t) * split.diagonal <= room * (1.0 + 1e-12))
    assert np.max((safe - t) * split.diagonal / room) == pytest.approx(1.0)
    assert largest_safe_t(split_of(normal(20, 2), nu=0.5), t) == t
