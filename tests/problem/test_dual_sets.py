"""The penalties on pairs of columns against exact numbers: their values, and the sets of their multipliers."""

from decimal import Decimal, localcontext

import numpy as np
import oracles
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


class Splits(Signs):
    """Known signs that keep the part of the last projection that is in the other penalty's set."""

    def project(self, C):
        project, kept = self.base.project, []
        self.base.project = lambda part: kept.append(project(part)) or kept[-1]
        try:
            return super().project(C)
        finally:
            self.inner = kept[-1]
            del self.base.project


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


@pytest.mark.parametrize("rank", [1, 2, 3, 8])
def test_the_value_of_group_norms_is_the_sum_of_the_nuclear_norms_of_the_blocks_whatever_the_rank(rank):
    rng = np.random.default_rng(rank)
    for _ in range(10):
        labels, c = draw_groups(rng, most=6)
        U, places = rng.standard_normal((len(c), rank)), blocks_of(labels)
        expected = oracles.group_penalty(U @ U.T, places, [c[g[0]] ** 2 for g in places])
        assert GroupNorms(c, labels).value(U) == pytest.approx(expected, rel=1e-12)
        if rank == 1:
            assert expected == pytest.approx(sum(c[g[0]] * np.linalg.norm(U[g]) for g in places) ** 2)


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


def test_a_projected_multiplier_of_known_signs_is_a_sum_of_one_in_the_set_and_one_that_takes_off():
    rng = np.random.default_rng(1)
    for _ in range(60):
        labels, c = draw_groups(rng)
        known = rng.random(len(c)) < 0.6
        if known.sum() < 2:
            continue
        in_groups = len(np.unique(labels)) < len(labels) and rng.integers(2)
        penalty = Splits(GroupNorms(c, labels) if in_groups else Absolute(c), known)
        C = penalty.project(draw_multiplier(rng, c, labels))
        pairs = np.outer(known, known) & ~np.eye(len(c), dtype=bool)
        assert is_in_dual_set(penalty.inner, c, labels if in_groups else np.arange(len(c)))
        assert np.all(C[pairs] <= penalty.inner[pairs])
        np.testing.assert_array_equal(C[~pairs], penalty.inner[~pairs])
        np.testing.assert_array_equal(C, C.T)


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
    penalty, U = Signs(Absolute(np.zeros(len(known))), known), draw_factor(rng, known)
    found = penalty.feasible(U)
    V, W = U @ U.T, found @ found.T
    assert penalty.is_allowed(U) <= has_no_negative_pair(U, known)
    assert has_no_negative_pair(found, known)
    assert penalty.is_allowed(found)
    assert penalty.feasible(found) is found
    # What is negative goes, and its size is added to the diagonal.
    negative = np.where(np.outer(known, known) & ~np.eye(len(known), dtype=bool), np.minimum(V, 0.0), 0.0)
    nearest = V - negative - np.diag(negative.sum(axis=0))
    np.testing.assert_allclose(W, nearest, rtol=0.0, atol=1e-7 * max(np.abs(V).max(), 1e-300))
