"""What rounding may change in the certificate by blocks is counted, term by term, against rationals.

In some tests the unit of rounding is coarse, so that each term is large and its worst case is attained in doubles.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from posed import direction_problem
from rationals import badly_centred_column, centred, fractions, gram, lossy_columns, nearly_ones, size

import diffrac_cvx as dc
from diffrac_cvx.certificates import block_bounds, block_proof, screening
from diffrac_cvx.certificates.block_bounds import (
    BlockCertificate,
    BlockRatios,
    Blocks,
    attempt,
    bracket_blocks,
    prove,
)
from diffrac_cvx.certificates.block_problem import BlockProblem, Partition, block_problem, join_labels
from diffrac_cvx.certificates.block_proof import (
    Pairs,
    SchurComplement,
    block_matrix,
    eliminate,
    matrices,
    single_ratios,
)
from diffrac_cvx.certificates.proof import proved_ratio
from diffrac_cvx.certificates.screening import largest_safe_t, product_radius, scan
from diffrac_cvx.machine import time_budget
from diffrac_cvx.points import floating_point as rounding
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.floating_point import Whitening, sum_error
from diffrac_cvx.points.linear_algebra import EPS
from diffrac_cvx.points.sparse import as_sparse_columns

COARSE = 2.0**-18


def split_of(table, nu=1.0, c=0.3, a=0.0, whitened=None):
    """The problem with its unpenalised coordinates apart, which are said to be as exact as `whitened`."""
    X = as_sparse_columns(table, warn=False) if scipy.sparse.issparse(table) else as_data(table, warn=False)
    split = block_problem(direction_problem(X, nu, dc.Penalty(a, c)))
    return split if whitened is None else replace(split, whitened=whitened)


def exact_columns(split, table):
    """The exactly centred columns in the problem's units, and the offset's, as fractions."""
    problem = split.problem
    X = centred(table)
    if problem.has_offset:
        X = np.column_stack([X, np.full(len(X), Fraction(1))])
    return X * fractions(problem.scale)


def exact_pair(split, table, u, t, j, k):
    """G_jk = mean (u - t) x_j x_k + K_j'K_k for at most one unpenalised coordinate, in rationals."""
    X, u, t = exact_columns(split, table), fractions(u), Fraction(t)
    f = list(split.free)

    def entry(p, q):
        found = sum((u - t) * X[:, p] * X[:, q]) / len(X)
        return found - (t * Fraction(split.problem.a[p]) ** 2 if p == q else 0)

    j, k = split.penalised[j], split.penalised[k]
    found = entry(j, k)
    if f:
        found -= entry(j, f[0]) * entry(f[0], k) / entry(f[0], f[0])
    return found


# What data and moments may be off


def test_centring_in_the_worst_order_is_counted_column_by_column():
    x = badly_centred_column(3000)
    table = np.column_stack([x, -4.0 * x])
    split = split_of(table, c=1e-3)
    exact = exact_columns(split, table) - fractions(split.X.array())
    said = split.data_error(slice(None))
    for j in range(2):
        assert said[j] / 100 <= size(exact[:, j]) / 3000**0.5 <= said[j]
    np.testing.assert_allclose(said, sum_error(3016) * np.sqrt(split.diagonal), rtol=1e-12)


def test_the_moment_of_a_block_that_is_summed_badly_is_off_by_nearly_what_is_said():
    for n in (300, 1500):
        split = split_of(lossy_columns(n, 2), c=1e-4)
        block, u = np.array([0, 1]), np.ones(n)
        M = split.data_of(block).moment(u)
        lost = size(gram(fractions(split.X.array()), fractions(u)) - fractions(M))
        assert split.moment_error(block, M, 1.0) / 100 <= lost <= split.moment_error(block, M, 1.0)


def test_unpenalised_columns_that_are_off_as_far_as_is_said_have_moments_off_as_far_as_is_said():
    """One coordinate, and all of the weight where it is not 0: the bound is attained."""
    n, off, top = 12, 0.1, 3.0
    split = replace(
        split_of(np.random.default_rng(0).standard_normal((n, 2)), nu=0.5),
        whitened=Whitening(data_error=off, right_error=0),
    )
    for f in (np.ones(n), 2.0 * np.eye(n)[0]):
        u = np.where(f > 0.0, top, 1.0)
        moved = f * (1.0 + off / np.mean(f**2) ** 0.5)
        none, M = np.zeros(0, dtype=int), np.array([[np.mean(u * f**2)]])
        worst = float(np.mean(u * moved**2) - M[0, 0])
        assert worst <= split.moment_error(none, M, top) <= worst * (1.0 + 1e-9)


def test_columns_of_a_block_that_are_off_have_moments_off_as_far_as_is_said(monkeypatch):
    monkeypatch.setattr(rounding, "UNIT", COARSE)
    n, top = 16, 3.0
    table = np.zeros((n, 2))
    table[:2] = [[1.0, 1.0], [-1.0, -1.0]]
    split = split_of(table)
    u, block = np.where(table[:, 0] != 0.0, top, 1.0), np.array([0])
    M = np.array([[np.mean(u * split.X.array()[:, 0] ** 2)]])
    off = top**0.5 * split.data_error(block)[0]
    worst = (M[0, 0] ** 0.5 + off) ** 2 - M[0, 0]
    said = split.moment_error(block, M, top)
    assert worst + sum_error(n) * M[0, 0] <= said <= (worst + sum_error(n + 10) * M[0, 0]) * (1.0 + 10 * COARSE)
    both = split.moment_error(np.array([0, 1]), M, top)
    assert both - said == pytest.approx((2.0**0.5 - 1.0) * 2.0 * M[0, 0] ** 0.5 * off, rel=1e-2)


def test_the_right_side_of_a_block_counts_its_moment_and_its_unpenalised_columns():
    split = split_of(np.random.default_rng(0).standard_normal((12, 3)), nu=0.5)
    block = np.array([0, 2])
    right = split.right_of(block, split.data_of(block))
    moment = split.moment_error(block, right, 1.0)
    assert moment > sum_error(12) * np.trace(right)
    aside = replace(split, whitened=split.whitened._replace(right_error=0.5))
    assert aside.right_error(block, right) == pytest.approx(moment + 0.5)
    assert split.right_error(block, right) > moment


def test_the_ratio_of_a_block_counts_what_both_of_its_sides_may_be_off(monkeypatch):
    found = []
    monkeypatch.setattr(block_bounds, "proved_ratio", lambda *given: found.append(given[0]) or proved_ratio(*given))
    split = split_of(np.random.default_rng(0).standard_normal((20, 3)), nu=0.5)
    blocks, u = Blocks(split, Partition(np.array([0, 0, 1]))), np.linspace(1.0, 2.0, 20)
    C = 0.5 * split.coupling_of(blocks.partition.blocks[0]).box
    ratios = blocks.ratios_at(u, 0.7, [C])
    (pencil,) = found
    M = blocks.data[0].moment(u)
    assert pencil.off_M == split.moment_error(blocks.partition.blocks[0], pencil.M, 2.0) > 0.0
    assert pencil.right_error == split.right_error(blocks.partition.blocks[0], blocks.right[0]) > 0.0
    np.testing.assert_allclose(pencil.M, M, rtol=1e-12)
    right = blocks.right[0].copy()
    right[:2, :2] += ratios.C[0]
    np.testing.assert_array_equal(pencil.right, right)


# Sparse columns, which are multiplied out


def exact_shifted(X):
    """S + 1 r' without rounding."""
    return fractions(X.S.toarray()) + fractions(X.r)


def test_the_moment_of_sparse_columns_counts_the_row_that_is_added_to_them(monkeypatch):
    """What their sums lose is in proportion to the row, and not to the little that is left of it."""
    monkeypatch.setattr(BlockProblem, "data_error", lambda problem, columns: np.zeros(len(problem.a[columns])))
    n = 1000
    split = split_of(nearly_ones(n), c=1e-3)
    block, u = np.array([0, 1]), np.ones(n)
    M = split.data_of(block).moment(u)
    lost = size(gram(exact_shifted(split.X), fractions(u)) - fractions(M))
    assert sum_error(n + 8) * np.trace(M) < lost <= split.moment_error(block, M, 1.0)
    said = split.moment_error(block, M, 3.0) - split.moment_error(block, M, 1.0)
    assert said == pytest.approx(2.0 * 8.0 * sum_error(n + 8) * float(np.sum(split.X.r**2)), rel=1e-9)
    assert split.moment_error(block, 3.0 * M, 0.0) == pytest.approx(6.0 * sum_error(n + 8) * np.trace(M), rel=1e-9)


def test_the_ratio_of_a_sparse_column_alone_counts_the_row_that_is_added_to_it(monkeypatch):
    monkeypatch.setattr(BlockProblem, "data_error", lambda problem, columns: np.zeros(len(problem.a[columns])))
    n, wrong = 1000, 0
    for seed in range(3):
        split = split_of(nearly_ones(n, seed), c=1e-3)
        u = np.random.default_rng(seed).uniform(0.5, 1.5, n)
        found = single_ratios(split, u, np.array([0, 1]))
        X = exact_shifted(split.X)
        for j in range(2):
            M, B = sum(fractions(u) * X[:, j] ** 2) / n, sum(X[:, j] ** 2) / n + Fraction(split.c[j]) ** 2
            assert Fraction(found[j]) * B >= M
            plain = (
                split.weighted_squares(u)[j] * (1.0 + sum_error(n + 8)) / (split.diagonal[j] * (1.0 - sum_error(n + 8)))
            )
            wrong += Fraction(plain) * B < M
    assert wrong > 0


def test_pairs_of_sparse_columns_count_the_row_that_is_added_to_them(monkeypatch):
    monkeypatch.setattr(BlockProblem, "data_error", lambda problem, columns: np.zeros(len(problem.a[columns])))
    n, beyond = 1000, 0
    for seed in range(4):
        split = split_of(nearly_ones(n, seed), c=1e-3)
        u = np.random.default_rng(seed).uniform(0.5, 1.5, n)
        at = eliminate(split, u, 1.0)
        X = exact_shifted(split.X)
        exact = sum(fractions(at.gram_weights) * X[:, 0] * X[:, 1])
        G = screening.block_of(at, slice(0, 2), slice(0, 2))[0, 1]
        off = abs(float(Fraction(G) - exact)) / (split.c[0] * split.c[1])
        assert off <= at.box
        beyond += off > float(np.max(at.roundings * (split.squares.row_sums(np.abs(at.gram_weights))) / split.c**2))
        least = at.roundings * 8.0 * float(np.abs(at.gram_weights).sum() * np.max(split.X.r**2 / split.c**2))
        assert at.box >= least
    assert beyond > 0


def test_the_diagonal_of_sparse_columns_is_that_of_dense_ones():
    table = nearly_ones(50)
    a, c = np.array([0.4, 0.7]), np.array([0.2, 0.3])
    np.testing.assert_allclose(split_of(table, c=c, a=a).diagonal, split_of(table.toarray(), c=c, a=a).diagonal)


# Coordinates alone


def test_the_ratio_of_a_coordinate_alone_holds_in_rationals_where_its_sums_lose_most():
    n, wrong = 600, 0
    for table in (lossy_columns(n, 2), np.column_stack([badly_centred_column(n)] * 2) * [1.0, -1.0]):
        for c in (1e-3, 0.3):
            split, u = split_of(table, c=c), np.ones(n)
            u[np.abs(table[:, 0]) < 1e-3] = 2.0
            found = single_ratios(split, u, np.array([0, 1]))
            X = exact_columns(split, table)
            for j in range(2):
                M, B = sum(fractions(u) * X[:, j] ** 2) / n, sum(X[:, j] ** 2) / n + Fraction(split.c[j]) ** 2
                assert Fraction(found[j]) * B >= M
                wrong += Fraction(float(split.weighted_squares(u)[j] / split.diagonal[j])) * B < M
    assert wrong > 0


def test_the_ratio_of_a_coordinate_alone_counts_sums_data_and_weights(monkeypatch):
    """All of the weight where the data are: M is off by (M^1/2 + top^1/2 off)^2 and B by (B^1/2 - off)^2."""
    monkeypatch.setattr(rounding, "UNIT", COARSE)
    n, top = 16, 3.0
    table = np.zeros((n, 2))
    table[:2] = [[1.0, 1.0], [-1.0, -1.0]]
    split = split_of(table, c=0.2)
    u = np.where(table[:, 0] != 0.0, top, 1.0)
    found = single_ratios(split, u, np.array([1]))[0]
    M, B, off = np.mean(u * split.X.array()[:, 1] ** 2), split.diagonal[1], split.data_error(np.array([1]))[0]
    worst = ((M * (1.0 + sum_error(n))) ** 0.5 + top**0.5 * off) ** 2 / ((B**0.5 - off) ** 2 - sum_error(n) * B)
    assert worst <= found * (1.0 + 1e-6)
    assert found <= worst * (1.0 + 4.0 * sum_error(10))
    each = [
        np.array([M]) * (1.0 + sum_error(n)) / B,  # the sums of M alone
        np.array([M]) / (B * (1.0 - sum_error(n))),  # those of B alone
    ]
    assert found > max(float(ratio[0]) for ratio in each) * (1.0 + sum_error(n))


@pytest.mark.parametrize("seed", range(4))
def test_the_ratio_of_a_coordinate_alone_holds_where_unpenalised_columns_are_off(seed):
    """F is off by so much in the Euclidean norm, and A on it in the spectral norm, in the worst direction."""
    rng, n, off = np.random.default_rng(seed), 20, 1e-3
    table = rng.standard_normal((n, 3))
    for exact in (Whitening(off, 0.0), Whitening(0.0, off)):
        split = split_of(table, nu=0.5, whitened=exact)
        u = rng.uniform(0.5, 2.0, n)
        found = single_ratios(split, u, np.arange(3))
        F = split.F * (1.0 + exact.data_error / np.mean(split.F**2) ** 0.5)
        for j in range(3):
            data = np.column_stack([split.X.array()[:, j], F])
            right = data.T @ data / n
            right[0, 0], right[1, 1] = split.diagonal[j], 1.0 - exact.right_error
            M = data.T @ (u[:, None] * data) / n
            worst = np.linalg.eigvals(np.linalg.solve(right, M)).real.max()
            assert worst <= found[j] <= worst * (1.0 + 500 * off)


def test_the_ratio_of_a_coordinate_alone_counts_the_sums_over_unpenalised_columns(monkeypatch):
    """A column that is nearly the unpenalised one: what is left of it is small, and is off by what it is left of."""
    n = 300
    rng = np.random.default_rng(0)
    f = rng.standard_normal(n)
    table = np.column_stack([f, f + 1e-2 * rng.standard_normal(n), rng.standard_normal(n)])
    table -= table.mean(axis=0)
    u = rng.uniform(1.0, 2.0, n)
    monkeypatch.setattr(BlockProblem, "data_error", lambda problem, columns: np.zeros(len(problem.a[columns])))
    split = split_of(table, c=np.array([0.0, 1e-3, 0.3]), whitened=Whitening(0.0, 0.0))
    fine = single_ratios(split, u, np.arange(2))
    monkeypatch.setattr(rounding, "UNIT", 2.0**-30)
    found = single_ratios(split, u, np.arange(2))
    M, MF = split.weighted_squares(u), float(np.mean(u * split.F[:, 0] ** 2))
    least = split.diagonal - split.cross[:, 0] ** 2
    assert least[0] < 1e-3 < 0.1 < least[1]
    for j in range(2):
        inflated = 2.0 * sum_error(n + 8) * M[j] / least[j]  # what M and A themselves, made larger and smaller, explain
        mass = (M[j] + MF) / least[j]
        assert found[j] - fine[j] >= 8.0 * sum_error(n) * ((M[j] + MF) * (1.0 + split.diagonal[j] / least[j]) + fine[j])
        assert found[j] - fine[j] <= 8.0 * sum_error(n + 40) * 4.0 * mass + 4.0 * inflated
    assert found[0] - fine[0] > 100.0 * (found[1] - fine[1])


def test_with_a_sparse_column_and_an_offset_the_row_is_counted_too(monkeypatch):
    monkeypatch.setattr(rounding, "UNIT", 2.0**-30)
    table = scipy.sparse.csc_array(np.r_[np.ones((19, 1)), np.zeros((1, 1))])
    split = split_of(table, nu=0.5, c=1e-2)
    dense = split_of(table.toarray(), nu=0.5, c=1e-2)
    u = np.full(20, 2.0)
    more = single_ratios(split, u, np.array([0]))[0] - single_ratios(dense, u, np.array([0]))[0]
    share = split.X.r[0] ** 2 * (1.0 + split.diagonal[0] / (split.diagonal[0] - split.cross[0] @ split.cross[0]))
    assert more >= 8.0 * sum_error(20) * 8.0 * 3.0 * share


# Pairs, and where F is eliminated


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("kind", ["lossy", "badly centred", "gaussian"])
def test_no_pair_is_further_from_the_exact_one_than_its_box_is_narrowed(kind, nu):
    n = 900
    table = {
        "lossy": lossy_columns(n, 2),
        "badly centred": np.column_stack([badly_centred_column(n)] * 2) * [1.0, -3.0],
        "gaussian": np.random.default_rng(0).standard_normal((n, 2)),
    }[kind]
    split = split_of(table, nu=nu, c=0.1)
    u = np.random.default_rng(1).uniform(0.2, 0.9, n) if kind == "gaussian" else np.full(n, 0.5)
    at = eliminate(split, u, 1.0)
    G = screening.block_of(at, slice(0, 2), slice(0, 2))[0, 1]
    off = abs(float(Fraction(float(G)) - exact_pair(split, table, u, 1.0, 0, 1))) / (split.c[0] * split.c[1])
    assert 0.0 < off <= at.box
    assert off >= at.box / 1e5
    assert at.side == at.t - at.box < at.t


def test_a_box_is_narrowed_by_sums_and_by_what_columns_may_be_off(monkeypatch):
    monkeypatch.setattr(rounding, "UNIT", 2.0**-30)
    n = 200
    split = split_of(np.random.default_rng(0).standard_normal((n, 3)), nu=0.5, c=np.array([0.2, 0.3, 0.4]))
    u = np.full(n, 0.25)
    u[0] = 3.0
    at = eliminate(split, u, 2.0)
    sums = sum_error(n) * (split.squares.row_sums(np.abs(at.gram_weights)) + at.condition * np.sum(at.K**2, axis=0))
    moved = 2.0 * (2.0 + 3.0) * split.data_error(slice(None)) * np.sqrt(split.diagonal)
    least = float(np.max((sums + moved) / split.c**2))
    assert least <= at.box <= 2.0 * least
    assert at.roundings >= sum_error(n) + split.whitened.right_error + split.whitened.data_error
    steady = eliminate(split, np.full(n, 2.0), 2.0)  # nothing is summed: what is left is what columns are off
    alone = 2.0 * 4.0 * split.data_error(slice(None)) * np.sqrt(split.diagonal) / split.c**2
    assert steady is None or steady.box >= float(np.max(alone))


def test_what_is_eliminated_counts_how_nearly_singular_it_is():
    """Where t is little above the ratio of F, K'K loses digits: more than its sums alone explain."""
    lost = 0
    for seed in range(8):
        n, rng = 30, np.random.default_rng(seed)
        table = rng.standard_normal((n, 2))
        split = split_of(table, nu=0.5, c=0.3)
        u = rng.uniform(0.5, 2.0, n)
        t = float(np.mean(u * split.F[:, 0] ** 2)) * (1.0 + 1e-9)
        at = eliminate(split, u, t)
        if at is None:
            continue
        exact = exact_pair(split, table, u, t, 0, 1)
        G = screening.block_of(at, slice(0, 2), slice(0, 2))[0, 1]
        off = abs(float(Fraction(float(G)) - exact))
        assert off <= at.box * split.c[0] * split.c[1]
        lost += off > 2.0 * at.roundings * float(np.max(np.sum(at.K**2, axis=0)))
    assert lost > 0


@pytest.mark.parametrize("exact", [Whitening(0.0, 1e-3), Whitening(1e-3, 0.0)])
def test_nothing_is_eliminated_that_could_be_indefinite_where_it_is_off(exact):
    n = 20
    split = split_of(np.random.default_rng(0).standard_normal((n, 2)), nu=0.5, whitened=exact)
    u = np.full(n, 0.5)
    for above in (0.5, 1.0):
        largest = 0.5 * float(np.mean(split.F**2)) * (1.0 + above * exact.data_error) ** 2
        t = largest / (1.0 - above * exact.right_error)
        assert eliminate(split, u, t) is None
    assert eliminate(split, u, 0.8 * float(np.mean(split.F**2))) is not None
    assert eliminate(split, u, np.inf) is None


@pytest.mark.parametrize("top", [1.0, 1e3, 1e6])
def test_what_unpenalised_columns_are_off_counts_with_the_weight_of_its_row(top):
    """A row of large weight in which the unpenalised column is 0, and all of what it is off is there."""
    n, off, rng = 40, 1e-9, np.random.default_rng(0)
    table = rng.standard_normal((n, 3))
    table[0] = [0.1, 0.1, 0.0]
    table[1] = -table[0] - table[2:].sum(axis=0)
    split = split_of(table, c=np.array([0.3, 0.3, 0.0]), whitened=Whitening(off, 0.0))
    u = np.full(n, 0.5)
    u[0] = top
    at = eliminate(split, u, 1.0)
    for sign in (1.0, -1.0):
        F = split.F[:, 0] + sign * off * n**0.5 * np.eye(n)[0]
        S = (at.gram_weights * F) @ split.X.array()
        moved = abs(at.K[:, 0] @ at.K[:, 1] - S[0] * S[1] / (1.0 - np.mean(u * F**2)))
        assert moved <= at.box * split.c[0] * split.c[1]


@pytest.mark.parametrize("weight", [1.0, 1e3, 1e5])
def test_nothing_is_eliminated_that_could_be_indefinite_however_large_the_weights(weight):
    off = 1e-6
    split = split_of(np.random.default_rng(0).standard_normal((20, 2)), nu=0.5, whitened=Whitening(off, 0.0))
    u, rms = np.full(20, weight), float(np.mean(split.F**2)) ** 0.5
    assert eliminate(split, u, weight * (rms + off) ** 2 * (1.0 - 1e-9)) is None
    assert eliminate(split, u, weight * (rms + 20 * off) ** 2) is not None


def test_what_is_eliminated_is_positive_definite_beyond_the_rounding_of_its_sums():
    split = split_of(np.random.default_rng(0).standard_normal((20, 2)), nu=0.5, whitened=Whitening(0.0, 0.0))
    u = np.random.default_rng(1).uniform(0.5, 2.0, 20)
    largest = float(np.mean(u * split.F[:, 0] ** 2))
    assert eliminate(split, u, largest * (1.0 + 30 * sum_error(52))) is None
    assert eliminate(split, u, largest * (1.0 + 100 * sum_error(52))) is not None


def two_pairs(G, c=(0.5, 0.5)):
    """A pair of coordinates in different groups with this G and boxes of sides c_j c_k."""
    one = np.zeros(1, dtype=int)
    return lambda at: Pairs(one, one + 1, np.array([G]), np.array([at.side * c[0] * c[1]]))


def test_a_pair_is_beyond_its_box_where_rounding_may_have_put_it_inside():
    at = SchurComplement(split_of(np.eye(2)), 1.0, np.zeros(1), np.zeros((0, 2)), box=0.1)
    assert at.side == pytest.approx(0.9)
    found = two_pairs(0.95 * 0.25)(at)
    assert len(found.beyond().j) == 1
    np.testing.assert_allclose(found.excess, 0.05 * 0.25)
    assert len(two_pairs(0.85 * 0.25)(at).beyond().j) == 0


def test_a_pair_that_may_be_beyond_its_box_is_looked_at(monkeypatch):
    """Half of what rounding may change inside its box, with a unit that is coarse."""
    n = 40
    table = np.random.default_rng(0).standard_normal((n, 2))
    table[:, 1] += table[:, 0]
    u = np.random.default_rng(1).uniform(0.5, 3.0, n)
    split = split_of(table, c=0.3)
    t = float(np.max(single_ratios(split, u, np.arange(2)))) * 1.5
    plain = eliminate(split, u, t)
    G = screening.block_of(plain, slice(0, 2), slice(0, 2))[0, 1]
    monkeypatch.setattr(rounding, "UNIT", 2.0**-24)
    at = eliminate(split, u, t)
    share = abs(G) / (split.c[0] * split.c[1])
    at = at._replace(t=share + 0.5 * at.box)  # the pair is half of its box's margin inside
    found = scan(at, np.arange(2), 1.0).pairs
    assert list(zip(found.j, found.k, strict=True)) == [(0, 1)]
    assert len(scan(at._replace(t=share + 2.0 * at.box), np.arange(2), 1.0).pairs.j) == 0


def test_a_scan_ends_where_more_pairs_are_beyond_their_box_than_are_of_use(monkeypatch):
    split, u = wide_split()
    at, labels = eliminate(split, u, 3.0), np.arange(30)
    found = len(scan(at, labels, 1.0).pairs.j)
    monkeypatch.setattr(screening, "COLUMNS", 7)
    assert 10 < len(scan(at, labels, 1.0, most=found).pairs.j) == found
    for most in (found - 1, 0):
        with pytest.raises(screening.TooManyError):
            scan(at, labels, 1.0, most=most)


@pytest.mark.parametrize("single", [1, 10**9], ids=["single", "double"])
@pytest.mark.parametrize("columns", [4, 512])
def test_coordinates_that_the_elimination_leaves_alone_may_come_first(monkeypatch, single, columns):
    """K is 0 on some columns: in single precision these are multiplied without it, in an order of their own."""
    monkeypatch.setattr(screening, "SINGLE_FROM", single)
    monkeypatch.setattr(screening, "COLUMNS", columns)
    (split, _), rng = wide_split(12), np.random.default_rng(0)
    at = eliminate(split, rng.uniform(0.5, 1.5, 50), 1.0)
    K = np.where(rng.uniform(size=12) < 0.5, 0.0, 0.4 * rng.standard_normal((3, 12)))
    at = at._replace(K=K, box=1e-9)
    assert (screening.scaled_columns(at).order is None) == (single > 1)
    G = split.X.gram(at.gram_weights) + K.T @ K
    box = at.side * np.outer(split.c, split.c)
    expected = np.argwhere(np.triu(np.abs(G) > 0.5 * box, 1))
    found = scan(at, np.arange(12), 0.5, product_radius(np.zeros((1, 12))))
    assert [list(pair) for pair in sorted(zip(found.pairs.j, found.pairs.k, strict=True))] == expected.tolist()
    np.testing.assert_allclose(found.pairs.G, G[found.pairs.j, found.pairs.k], rtol=1e-12)
    joined = join_labels(np.arange(12), *np.nonzero(np.triu(np.abs(G) >= np.outer(split.c, split.c), 1)))
    np.testing.assert_array_equal(found.proved[:, None] == found.proved, joined[:, None] == joined)
    assert 5 < len(expected) < 66


# Single precision


def wide_split(m=30, n=50, seed=0):
    """Correlated columns, all penalised."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) + 2.0 * rng.standard_normal((n, 1))
    return split_of(X, c=0.5), rng.uniform(0.3, 3.0, n)


def test_no_pair_is_lost_by_single_precision(monkeypatch):
    """Each pair at a share of its box that it just exceeds, and its product in single precision does not."""
    monkeypatch.setattr(screening, "SINGLE_FROM", 1)
    split, u = wide_split()
    at = eliminate(split, u, 3.0)
    columns, every = screening.scaled_columns(at), slice(0, 30)
    assert columns.rounding > 0.0
    G = screening.block_of(at, every, every) / np.outer(split.c, split.c)
    single = columns.products(every, every).astype(float)
    assert np.abs(single - G).max() <= columns.rounding <= 1e5 * np.abs(single - G).max()
    lost = np.argwhere(np.triu((np.abs(single) < np.abs(G) * (1 - 1e-9)) & (np.abs(G) > 0.1), 1))[:40]
    assert len(lost) > 10
    for j, k in lost:
        share = abs(G[j, k]) * (1 - 1e-12) / at.side
        found = scan(at, np.arange(30), share).pairs
        assert (j, k) in set(zip(found.j, found.k, strict=True))


def test_no_pair_is_separated_by_single_precision(monkeypatch):
    """Each pair with a distance to the optimum that just joins it, where single precision would not."""
    monkeypatch.setattr(screening, "SINGLE_FROM", 1)
    split, _ = wide_split(8)
    at = eliminate(split, np.random.default_rng(0).uniform(0.8, 1.4, 50), 1.0)
    every = slice(0, 8)
    G = np.abs(screening.block_of(at, every, every) / np.outer(split.c, split.c))
    single = np.abs(screening.scaled_columns(at).products(every, every).astype(float))
    np.fill_diagonal(G, 0.0)
    tried = 0
    for j, k in np.argwhere(np.triu((single < G * (1 - 1e-9)) & (G > 0.05) & (G < 1.0), 1)):
        near = np.zeros(8)
        near[j] = near[k] = (1.0 - G[j, k] * (1 - 1e-12)) ** 0.5
        proved = scan(at, np.arange(8), 0.7, product_radius(near[None])).proved
        assert proved[j] == proved[k]
        tried += 1
    assert tried > 3


def test_no_block_of_columns_is_passed_over_that_only_double_precision_joins(monkeypatch):
    """The largest of a block, with the largest distance that there is, just reaches its box."""
    monkeypatch.setattr(screening, "SINGLE_FROM", 1)
    tried = 0
    for seed in range(60):
        split, _ = wide_split(2, seed=seed)
        at = eliminate(split, np.random.default_rng(seed).uniform(0.9, 1.12, 50), 1.0)
        every = slice(0, 2)
        G = abs(screening.block_of(at, every, every)[0, 1]) / (split.c[0] * split.c[1])
        single = abs(float(screening.scaled_columns(at).products(every, every)[0, 1]))
        if single < G * (1 - 1e-9) < 0.9:
            near = np.full((1, 2), (1.0 - G * (1 - 1e-12)) ** 0.5)
            proved = scan(at, np.arange(2), 0.7, product_radius(near)).proved
            assert proved[0] == proved[1]
            tried += 1
    assert tried > 0


def test_single_precision_is_not_used_where_its_rounding_is_not_small_beside_a_box(monkeypatch):
    monkeypatch.setattr(screening, "SINGLE_FROM", 1)
    split, u = wide_split(6)
    at = eliminate(split, u, 3.0)
    length = float(np.max((split.squares.row_sums(np.abs(at.gram_weights))) / split.c**2))
    said = screening.scaled_columns(at).rounding
    eps = float(np.finfo(np.float32).eps)
    assert 50 * eps * length <= said <= 70 * eps * length  # fifty terms, and a few roundings each
    small = replace(split, c=split.c * 1e-3)
    assert screening.scaled_columns(at._replace(problem=small)).rounding == 0.0


# S on a component


def component(split, table, u, t, partition, C):
    """What `matrices` yields on the component of all coordinates, and S in rationals."""
    blocks = Blocks(split, partition)
    ratios = BlockRatios(u, 1.0, np.zeros(0), [], C)
    at = eliminate(split, u, t)
    m = len(split.c)
    j, k = np.triu_indices(m, 1)
    apart = partition.labels[j] != partition.labels[k]
    j, k = j[apart], k[apart]
    G = screening.block_of(at, slice(0, m), slice(0, m))[j, k]
    chosen = Pairs(j, k, G, np.zeros(len(j)))  # boxes of no size: S holds all of G
    (found,) = matrices(blocks, ratios.u, ratios.C, at, chosen)
    order = found.members
    exact = np.array(
        [[-exact_pair(split, table, u, t, p, q) for q in range(m)] for p in range(m)], dtype=object
    ) + np.diag(Fraction(t) * fractions(split.c) ** 2)
    for block, matrix in zip(partition.blocks, C, strict=True):
        exact[np.ix_(block, block)] += Fraction(t) * fractions(matrix)
    return found, exact[np.ix_(order, order)]


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("kind", ["lossy", "badly centred", "gaussian"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 0, 1]])
def test_no_matrix_of_a_component_is_further_from_the_exact_one_than_is_said(kind, nu, labels):
    n = 120
    rng = np.random.default_rng(2)
    table = {
        "lossy": lossy_columns(n, 3),
        "badly centred": np.column_stack([badly_centred_column(n)] * 3) * [1.0, -3.0, 1.0],
        "gaussian": rng.standard_normal((n, 3)),
    }[kind]
    split, partition = split_of(table, nu=nu, c=0.2, a=0.1), Partition(np.array(labels))
    u = rng.uniform(0.2, 0.9, n)
    C = [0.5 * split.coupling_of(block).box for block in partition.blocks]
    found, exact = component(split, table, u, 1.5, partition, C)
    assert 0.0 < size(fractions(found.S) - exact) <= found.off


def test_the_matrix_of_a_component_counts_all_that_its_diagonal_is_made_of(monkeypatch):
    monkeypatch.setattr(rounding, "UNIT", 2.0**-30)
    n = 200
    table = np.random.default_rng(0).standard_normal((n, 2))
    split = split_of(table, nu=0.5, c=0.2)
    u = np.random.default_rng(1).uniform(0.5, 2.0, n)
    found, _ = component(split, table, u, 2.0, Partition(np.arange(2)), [])
    at = eliminate(split, u, 2.0)
    whole = 2.0 * split.diagonal + split.weighted_squares(u) + at.condition * np.sum(at.K**2, axis=0)
    least = at.roundings * float(np.sum(whole))  # M, A and K'K each, and they are added up
    assert at.roundings > sum_error(n)
    assert 3.0 * least <= found.off <= 6.0 * least


def test_the_matrix_of_a_component_of_sparse_columns_counts_the_row_that_is_added_to_them(monkeypatch):
    monkeypatch.setattr(BlockProblem, "data_error", lambda problem, columns: np.zeros(len(problem.a[columns])))
    n = 1000
    split = split_of(nearly_ones(n), c=1e-3)
    u, m = np.random.default_rng(0).uniform(0.5, 1.5, n), 2
    blocks, at = Blocks(split, Partition(np.arange(2))), eliminate(split, u, 1.2)
    one = np.zeros(1, dtype=int)
    G = screening.block_of(at, slice(0, m), slice(0, m))[0, 1]
    chosen = Pairs(one, one + 1, np.array([G]), np.zeros(1))
    (found,) = matrices(blocks, u, [], at, chosen)
    X = exact_shifted(split.X)
    exact = -gram(X, fractions(u) - Fraction(1.2)) + np.diag(Fraction(1.2) * fractions(split.c) ** 2)
    off = size(fractions(found.S) - exact)
    assert 0.0 < off <= found.off
    assert found.off >= 32.0 * at.roundings * (1.2 + float(np.mean(u))) * float(np.sum(split.X.r**2))


def test_a_bound_is_proved_only_where_its_matrix_is_positive_beyond_what_it_may_be_off(monkeypatch):
    split = split_of(np.random.default_rng(0).standard_normal((20, 2)), c=0.2)
    u = np.full(20, 0.5)
    blocks, at = Blocks(split, Partition(np.arange(2))), eliminate(split, u, 1.0)
    ratios = BlockRatios(u, 1.0, np.zeros(0), [], [])
    claim, one = BlockCertificate(ratios, np.ones(20), 1.0), np.zeros(1, dtype=int)
    chosen = Pairs(one, one + 1, np.array([1.0]), np.array([0.5]))
    least = []
    for off, proves in ((0.09, True), (0.11, False)):
        together = block_proof.ComponentMatrix(np.arange(2), np.diag([0.1, 1.0]), off)
        monkeypatch.setattr(block_bounds, "matrices", lambda *_, together=together: iter([together]))
        found = attempt(blocks, claim, at, chosen, None)
        assert (found.lower is not None) == proves
        least.extend(failure.value for failure in found.failures)
    assert least == pytest.approx([0.1])


def test_the_matrix_of_a_block_is_that_of_its_definition():
    split = split_of(np.random.default_rng(0).standard_normal((20, 3)), nu=0.5, c=0.2)
    blocks, u = Blocks(split, Partition(np.array([0, 0, 1]))), np.random.default_rng(1).uniform(0.5, 2.0, 20)
    C, at = 0.5 * split.coupling_of(np.array([0, 1])).box, eliminate(split, u, 2.0)
    X, A = split.X.array()[:, :2], blocks.right[0][:2, :2]
    expected = 2.0 * (A + C) - X.T @ (u[:, None] * X) / 20 - at.K[:, :2].T @ at.K[:, :2]
    found = block_matrix(blocks, u, C, at, 0)
    np.testing.assert_allclose(found, expected, atol=1e-14)


# Larger t


def test_the_largest_safe_t_is_where_a_pair_just_kept_may_reach_its_box():
    """|G_jk| grows by the change of t times A_jk, which is at most 1: with all of it, and c as large as A allows."""
    split = split_of(np.random.default_rng(0).standard_normal((20, 2)), c=np.array([0.3, 0.6]))
    t = 1.5
    safe = largest_safe_t(split, t)
    room = (1.0 - screening.NEAR) * t * split.c**2
    assert np.all((safe - t) * split.diagonal <= room * (1.0 + 1e-12))
    assert np.max((safe - t) * split.diagonal / room) == pytest.approx(1.0)
    assert largest_safe_t(split_of(np.random.default_rng(0).standard_normal((20, 2)), nu=0.5), t) == t


def test_a_small_multiple_of_the_last_place_is_added_to_a_quotient():
    assert EPS == 2.0**-52
    split = split_of(np.random.default_rng(0).standard_normal((20, 1)), c=0.2)
    found = single_ratios(split, np.zeros(20), np.array([0]))
    np.testing.assert_array_equal(found, 0.0)


def test_no_proof_from_two_features_apart_is_above_the_optimum():
    for seed in range(6):
        table = np.random.default_rng(seed).standard_normal((8, 2))
        split = split_of(table, c=0.4)
        blocks = Blocks(split, Partition(np.arange(2)))
        q = np.mean(split.squares.array(), axis=1)
        claim = BlockCertificate(blocks.ratios(q, []), q, 1.0)
        lower = prove(blocks, claim, 3).lower
        assert lower is None or lower <= dc.low_rank(table, penalty=dc.Penalty(c=0.4), tol=1e-9).upper


def test_the_bracket_by_blocks_is_what_is_proved_and_not_zero():
    split = split_of(np.random.default_rng(0).standard_normal((40, 1)), c=0.1)
    point = split.problem.best_scale(scipy.sparse.csc_array(np.eye(1)))
    found = bracket_blocks(split.problem, point)
    assert 0.0 < found.lower <= found.upper == point.value


def test_whoever_waits_is_asked_at_each_component():
    split = split_of(np.random.default_rng(0).standard_normal((20, 4)), c=0.2)
    blocks, at = Blocks(split, Partition(np.arange(4))), eliminate(split, np.full(20, 0.5), 1.0)
    claim = BlockCertificate(BlockRatios(np.full(20, 0.5), 1.0, np.zeros(0), [], []), np.ones(20), 1.0)
    beyond, asked = Pairs(np.array([0, 2]), np.array([1, 3]), np.full(2, 0.6), np.full(2, 0.5)), []
    with time_budget.spend(time_budget.Budget(lambda: np.inf, lambda: asked.append(1))):
        attempt(blocks, claim, at, beyond, None)
    assert len(asked) == 2
