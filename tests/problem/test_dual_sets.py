"""The penalties on pairs of columns against exact numbers: their values, and the sets of their multipliers."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from rationals import fractions, is_semidefinite

from diffrac_cvx.problem.penalties.absolute import Absolute
from diffrac_cvx.problem.penalties.groups import GroupNorms
from diffrac_cvx.problem.penalties.signs import Signs
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


def draw_groups(rng, most=4):
    """Labels of groups of unequal sizes, not in order, and weights, some of which are 0 or far apart."""
    sizes = rng.integers(1, most + 1, rng.integers(2, 5))
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    weights = 10.0 ** rng.uniform(-4, 4, len(sizes)) if rng.integers(2) else rng.uniform(0.5, 1.5, len(sizes))
    weights[rng.random(len(sizes)) < 0.1] = 0.0
    return labels, weights[labels]


def draw_multiplier(rng, c, labels, rank=None):
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


@pytest.mark.parametrize("rank", [1, 2, 3, 8])
def test_the_value_of_group_norms_is_the_sum_of_the_nuclear_norms_of_the_blocks_whatever_the_rank(rank):
    rng = np.random.default_rng(rank)
    for _ in range(10):
        labels, c = draw_groups(rng, most=6)
        U = rng.standard_normal((len(c), rank))
        V, places = U @ U.T, blocks_of(labels)
        expected = c**2 @ np.diag(V)
        for g in places:
            for h in places:
                if g is not h:
                    expected += c[g[0]] * c[h[0]] * np.linalg.norm(V[np.ix_(g, h)], "nuc")
        assert GroupNorms(c, labels).value(U) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("number", range(20))
def test_the_value_of_group_norms_is_off_by_no_more_than_is_said(number):
    rng = np.random.default_rng(number)
    labels, c = draw_groups(rng)
    rank = int(rng.integers(1, 6))
    U = rng.standard_normal((len(c), rank)) * 10.0 ** rng.uniform(-6, 6, rank)
    if number % 2:  # nearly of rank one, with parts that cancel
        U = U[:, :1] * rng.choice([-1.0, 1.0], rank) + 1e-9 * U
    penalty = GroupNorms(c, labels)
    with localcontext() as context:
        context.prec = DIGITS
        rows = exact(U)
        off = abs(Decimal(penalty.value(U)) - group_penalty(rows @ rows.T, exact(c), labels))
    assert off <= Decimal(penalty.error_of_value(U))


def test_a_projected_multiplier_is_in_the_set_of_group_norms_to_the_last_bit():
    rng = np.random.default_rng(0)
    for _ in range(100):
        labels, c = draw_groups(rng)
        assert is_in_dual_set(GroupNorms(c, labels).project(draw_multiplier(rng, c, labels)), c, labels)
