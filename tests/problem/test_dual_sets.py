"""Penalties on pairs of columns against exact numbers: values and dual sets."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from rationals import fractions, is_semidefinite

from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, sum_error
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import GroupNorms, largest_singular_values
from diffrac_cvx.problem.penalties.sign import SignConstraints
from experiments.stress.exact import DIGITS, exact, group_penalty

EDGES = (0.0, 1e-12, 1e-6, 1e-3, 1.0)  # of a singular value to the largest


def blocks_of(labels):
    """The places of each group."""
    return [np.flatnonzero(labels == g) for g in np.unique(labels)]


def is_in_dual_set(C, c, labels):
    """Whether the blocks of C have spectral norms of at most w_g w_h, and those on the diagonal are 0: by fractions."""
    exactly, weights, places = fractions(C), fractions(c), blocks_of(labels)
    if not np.array_equal(C, C.T) or any(np.any(C[np.ix_(g, g)]) for g in places):
        return False
    for i, g in enumerate(places):
        for h in places[i + 1 :]:
            B = exactly[np.ix_(g, h)]
            B = B if len(g) <= len(h) else B.T
            S = (weights[g[0]] * weights[h[0]]) ** 2 * fractions(np.eye(len(B))) - B @ B.T
            if not is_semidefinite(S):
                return False
    return True


def draw_labels(rng, most=4):
    """Labels of groups of unequal sizes, not in order, and weights, some of which are 0 or far apart."""
    sizes = rng.integers(1, most + 1, rng.integers(2, 5))
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    weights = 10.0 ** rng.uniform(-4, 4, len(sizes)) if rng.integers(2) else rng.uniform(0.5, 1.5, len(sizes))
    weights[rng.random(len(sizes)) < 0.1] = 0.0
    return labels, weights[labels]


def draw_multiplier(rng, c, labels):
    """A symmetric matrix whose blocks have singular values at, just beyond, far beyond and inside their bounds."""
    C = np.zeros((len(c), len(c)))
    for g in blocks_of(labels):
        for h in blocks_of(labels):
            left, _, right = np.linalg.svd(rng.standard_normal((len(g), len(h))), full_matrices=False)
            size = c[g[0]] * c[h[0]] or 10.0 ** rng.uniform(-8, 8)
            far = rng.choice([1.0, 1.0 + 1e-15, 1.0 + 1e-9, 1.1, 1e8, 0.5, 1e-8])
            values = size * far * rng.choice(EDGES, left.shape[1])
            values[rng.integers(len(values))] = size * far
            C[np.ix_(g, h)] = (left * values) @ right
    return np.triu(C) + np.triu(C, 1).T


def draw_factor(rng, known):
    """A factor whose products of known rows are about 0, a little negative, positive, or of rows that are 0."""
    U = rng.standard_normal((len(known), int(rng.integers(1, 6)))) * 10.0 ** rng.uniform(-6, 6)
    kind = rng.integers(4)
    if kind == 0:
        U = np.abs(U)
    if kind == 1:  # orthogonal rows, up to rounding
        U = np.linalg.qr(rng.standard_normal((len(known), len(known))))[0] * 10.0 ** rng.uniform(-8, 8, (len(known), 1))
    if kind == 2:
        U = np.abs(U) - 1e-15 * np.abs(U).max()
        U[rng.integers(len(U))] = 0.0
    return U


@pytest.mark.parametrize("number", range(20))
def test_the_value_of_group_norms_is_off_by_no_more_than_is_said(number):
    rng = np.random.default_rng(number)
    labels, c = draw_labels(rng)
    rank = int(rng.integers(1, 6))
    U = rng.standard_normal((len(c), rank)) * 10.0 ** rng.uniform(-6, 6, rank)
    if number % 2:  # nearly of rank one, with parts that cancel
        U = U[:, :1] * rng.choice([-1.0, 1.0], rank) + 1e-9 * U
    penalty = GroupNorms(c, labels)
    with localcontext() as context:
        context.prec = DIGITS
        rows = exact(U)
        off = abs(Decimal(penalty.value(U)) - group_penalty(rows @ rows.T, exact(c), labels))
    assert off <= Decimal(penalty.value_error_bound(U))


@pytest.mark.parametrize("shape", [(1, 4000), (4000, 1)])
def test_no_singular_value_is_above_its_bound_where_its_sum_of_squares_loses_most(shape):
    """After 32 ones the square of each other entry is less than half a unit of the sums that it is added to."""
    block = np.full(shape, 0.99 * 2.0**-26.5)
    block.ravel()[:32] = 1.0
    (found,), exact = largest_singular_values(block[None]), (fractions(block) ** 2).sum()
    assert exact <= Fraction(found) ** 2 <= exact * (1 + Fraction(1, 10**11))


def test_a_projected_multiplier_is_in_the_set_of_group_norms_to_the_last_bit():
    rng = np.random.default_rng(0)
    for _ in range(100):
        labels, c = draw_labels(rng)
        assert is_in_dual_set(GroupNorms(c, labels).project_safe(draw_multiplier(rng, c, labels)), c, labels)


def has_no_negative_pair(U, known):
    """Whether the entries of UU' for known pairs are nonnegative, without any rounding."""
    rows = fractions(U)[known]
    return bool(np.all(rows @ rows.T >= 0))


@pytest.mark.parametrize("number", range(40))
def test_a_factor_said_or_made_to_be_allowed_has_no_negative_entry_for_known_pairs_and_is_near(number):
    rng = np.random.default_rng(number)
    known = rng.random(int(rng.integers(2, 7))) < 0.8
    if known.sum() < 2:
        known[:2] = True
    penalty, U = SignConstraints(np.zeros(len(known)), nonnegative=known), draw_factor(rng, known)
    found = penalty.make_feasible(U)
    V, W = U @ U.T, found @ found.T
    assert penalty.is_feasible(U) <= has_no_negative_pair(U, known)
    assert has_no_negative_pair(found, known)
    assert penalty.is_feasible(found)
    assert penalty.make_feasible(found) is found
    # What is negative goes, and its size is added to the diagonal.
    negative = np.where(np.outer(known, known) & ~np.eye(len(known), dtype=bool), np.minimum(V, 0.0), 0.0)
    nearest = V - negative - np.diag(negative.sum(axis=0))
    np.testing.assert_allclose(W, nearest, rtol=0.0, atol=1e-7 * max(np.abs(V).max(), 1e-300))


def biased_product():
    """Two numbers whose product is rounded up by nearly a unit, relative to it."""
    for k in range(1, 10**5):
        x, y = 1.0 + k * 2.0**-26, 1.0 + 2.0**-28
        if Fraction(x * y) - Fraction(x) * Fraction(y) > Fraction(0.95 * UNIT_ROUNDOFF) * Fraction(x * y):
            return x, y
    raise AssertionError("none found")


def badly_rounded_factors():
    """Weights and factors: sums that lose what they add, products that are all rounded up, and some at random."""
    rng = np.random.default_rng(3)
    lossy = np.full((128, 1), 0.99 * UNIT_ROUNDOFF)
    lossy[:8] = 1.0
    yield np.ones(128), lossy
    c, x = biased_product()
    yield np.full(1024, c), np.full((1024, 1), x)
    for rank in (1, 2, 5):
        yield 10.0 ** rng.uniform(-3, 3, 9), rng.standard_normal((9, rank)) * 10.0 ** rng.uniform(-6, 6, rank)


@pytest.mark.parametrize("number", range(5))
def test_the_value_of_the_l1_penalty_is_off_by_no_more_than_is_said_however_badly_it_is_rounded(number):
    c, U = list(badly_rounded_factors())[number]
    rows = fractions(U) * fractions(c)[:, None]
    exactly = sum(np.abs(rows[:, 0])) ** 2 if U.shape[1] == 1 else np.abs(rows @ rows.T).sum()
    penalty = PairPenalty(c)
    assert abs(Fraction(penalty.value(U)) - exactly) <= Fraction(penalty.value_error_bound(U))


def test_the_value_of_group_norms_of_many_columns_is_off_by_no_more_than_is_said():
    """Two equal rows, of which each product after 32 ones is less than half a unit of the sum."""
    U = np.full((2, 8000), 0.99 * 2.0**-26.5)
    U[:, :32] = 1.0
    penalty, exact = GroupNorms(np.ones(2), np.arange(2)), 4 * (fractions(U[0]) ** 2).sum()
    lost = exact - Fraction(penalty.value(U))
    assert 100 * Fraction(UNIT_ROUNDOFF) * exact < lost <= Fraction(penalty.value_error_bound(U))


def test_the_error_said_of_group_norms_counts_what_no_sum_of_doubles_loses():
    """Singular values, and a sum over pairs of groups: the closed form, for LAPACK and NumPy lose less."""
    for labels in (np.repeat(np.arange(3), 4), np.arange(5000)):
        norms = np.unique(labels, return_counts=True)[1] ** 0.5
        k = max(32 * float(np.max(norms)) ** 3, len(norms))
        error = GroupNorms(np.ones(len(labels)), labels).value_error_bound(np.ones((len(labels), 1)))
        assert sum_error(k) * np.sum(norms) ** 2 <= error <= sum_error(200 + 5 * k) * np.sum(norms) ** 2
    (found,) = largest_singular_values(np.eye(100)[None])
    assert sum_error(16 * 100) * 100 <= found**2 - 1.0 <= sum_error(20 * 100) * 100


def test_orthogonal_rows_whose_product_is_negative_and_computed_as_zero_are_not_allowed():
    penalty, found = SignConstraints(np.zeros(2), nonnegative=np.ones(2, dtype=bool)), 0
    for seed in range(200):
        a, b, c = np.random.default_rng(seed).uniform(0.5, 1.0, 3)
        U = np.array([[a, b], [c, -a * c / b]])
        if (U @ U.T)[0, 1] >= 0.0 and not has_no_negative_pair(U, np.ones(2, dtype=bool)):
            found += 1
            assert not penalty.is_feasible(U)
            assert penalty.value_error_bound(U) == np.inf
    assert found > 10


def test_what_is_clipped_between_groups_is_in_the_dual_set_to_the_last_bit():
    """Blocks just beyond their bound and far beyond it; without groups entries too, at sides that are rounded up."""
    rng, rounded_up = np.random.default_rng(9), 0
    labels = np.array([0, 0, 1, 2, 2, 2, 3])
    for _ in range(40):
        c, t = rng.uniform(0.5, 1.5, 4)[labels], rng.uniform(0.5, 2.0)
        part, plain = (
            penalty.off_diagonal(np.arange(3), np.arange(3, 7)) for penalty in (GroupNorms(c, labels), PairPenalty(c))
        )
        beyond = rng.choice([1.0, 1.0 + 1e-15, 1.0 + 5e-10, 1.1])
        T = np.outer(c[:3], c[3:]) * t * beyond
        T[:2] *= rng.choice([0.5, 1.0])  # so that the singular value of a block is at its bound, or twice that
        T[:, :3] /= 3.0**0.5
        exactly = np.outer(fractions(c[:3]), fractions(c[3:])) * Fraction(t)
        assert np.all(np.abs(fractions(plain.project_safe(rng.choice([-2.0, 2.0]) * T, t))) <= exactly)
        rounded_up += np.sum(fractions(np.outer(c[:3], c[3:]) * t) > exactly)
        inside = fractions(part.project_safe(T, t))
        for g in (np.arange(2), np.array([2])):
            for h in (np.arange(3), np.array([3])):
                B, side = inside[np.ix_(g, h)], exactly[g[0], h[0]]
                assert is_semidefinite(side**2 * fractions(np.eye(len(g))) - B @ B.T)
    assert rounded_up > 0
