"""The one proof of lower bounds: against exact arithmetic, its traps, and every error term, left out."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from instances import PROOF_KINDS, centered_normal, pairs_of, proof_instance, remainder_of
from posed import direction_problem
from rationals import exact_S, is_semidefinite

import diffrac_cvx as dc
from diffrac_cvx.certificates import proof
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import Pairs, eliminate, eliminated_matrix, prove
from diffrac_cvx.certificates.screening import screen_pairs
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, WhiteningErrorBounds, sum_error

NONE, BOTH = np.zeros(0, dtype=np.intp), np.arange(2)


# Against exact arithmetic


@pytest.mark.parametrize("hard", [False, True], ids=["easy", "hard"])
@pytest.mark.parametrize("kind", PROOF_KINDS)
def test_the_least_t_that_is_proved_is_feasible_without_rounding(kind, hard):
    """Nearly collinear, constant, tiny and huge columns, few rows, weights, chunklets, signs, groups, corrections."""
    proved = 0
    for seed in range(4):
        it = proof_instance(kind, seed, hard)
        t = it.least_t()
        if np.isfinite(t):
            S, in_dual_set = exact_S(it, it.prove_at(t))
            assert in_dual_set, seed
            assert is_semidefinite(S), seed
            proved += 1
    assert proved >= (3 if hard else 4)


@pytest.mark.parametrize("kind", [kind for kind in PROOF_KINDS if kind != "blocks"])
def test_a_multiplier_beyond_its_dual_set_proves_what_its_projection_proves(kind):
    rng, compared = np.random.default_rng(0), 0
    for it in (proof_instance(kind, seed) for seed in range(12)):
        if it.C is not None and len(it.C) > 1:
            large = 9.0 * it.problem.c.max(initial=it.problem.problem.c.max()) ** 2 * rng.standard_normal(it.C.shape)
            t = 2.0 * it.least_t(width=1e-2)
            given, inside = (
                replace(it, C=C).prove_at(t) for C in (large + large.T, it.problem.project_inner(large + large.T))
            )
            assert (given is None) == (inside is None)
            if given is not None:
                np.testing.assert_allclose(given.L, inside.L, atol=1e-12)
                compared += 1
    assert compared > 1


# Traps


@pytest.mark.parametrize("dense", [0, 10**4])
def test_dominance_then_weak_rows_then_a_factorization_of_all_rows_decide(monkeypatch, dense):
    """A row may be neither dominant nor strong enough to be eliminated by its dominance."""
    monkeypatch.setattr(proof, "MAX_DENSE_SIZE", dense)
    rng = np.random.default_rng(0)
    for _ in range(60):
        m = 8
        E = np.triu(rng.standard_normal((m, m)) * (rng.random((m, m)) < 0.5), 1)
        E += E.T
        diagonal = np.abs(E).sum(axis=1) * rng.uniform(0.4, 2.5, m) + 0.1
        values = np.linalg.eigvalsh(np.diag(diagonal) + E)
        assert (not prove(remainder_of(np.diag(diagonal)), pairs_of(E))) == (values[0] > 0.0)


def test_a_pair_whose_excess_is_zero_but_not_its_error_joins_its_components():
    S, F = np.diag([0.2, 0.2]), np.full((1, 2), 0.3)
    side = Pairs(BOTH[:1], BOTH[1:], np.array([0.05]), np.array([0.05 - 0.01]))  # beyond what its box is certain of
    assert prove(remainder_of(S, F=F), side.take(NONE)) == []
    assert len(prove(remainder_of(S, F=np.full((1, 2), 0.32)), side)) == 1  # together they are off by 0.2048


def test_a_multiplier_of_known_signs_may_be_large_and_its_rounding_counts():
    problem = direction_problem(centered_normal(20, 3), 1.0, dc.Penalty(lam=0.1, ridge=0.1, nonnegative=[0, 1, 2]))
    split, u, C = block_problem(problem, np.arange(3)), np.ones(20), np.zeros((3, 3))
    C[0, 1] = C[1, 0] = -1e12
    plain, large = (
        eliminated_matrix(split, u, 1.0, split.inner.X.weighted_gram(u), given, whitened=False)[1]
        for given in (None, C)
    )
    assert large - plain >= sum_error(4) * np.linalg.norm(C)
    plain, large = (
        eliminated_matrix(split, u, 1.0, split.inner.X.weighted_gram(u), given, whitened=True)[1] for given in (None, C)
    )
    assert large - plain >= sum_error(2 * 3 + 12) * np.sum(split.inner.W**2) * np.linalg.norm(C)
    apart = block_problem(problem, NONE)
    at, block = eliminate(apart, u, 2.0), (np.arange(3), 1e12 * np.ones((3, 3)) - 1e12 * np.eye(3))
    ((_, values, _),) = prove(at, screen_pairs(at, np.zeros(3, dtype=int)), [block])
    assert values[0] < -1e11


def test_a_multiplier_is_zero_on_columns_that_are_excluded():
    X = np.column_stack([centered_normal(20, 2), np.zeros(20)])
    problem = direction_problem(X, 1.0, dc.Penalty(c=[0.3, 0.3, 0.0], nonnegative=[0, 1, 2]))
    split = block_problem(problem, np.arange(3))
    C = split.project_inner(-np.ones((3, 3)))
    assert C[0, 1] == -1.0
    assert not C[2].any()
    assert eliminate(split, np.full(20, 0.1), 1.0, -1e-3 * np.ones((3, 3))) is not None


# A correction of low rank


def test_a_correction_joins_all_its_rows():
    """Each of two components is positive with its part of ZZ', together they are not."""
    Z = np.array([[1.0], [0.0], [-1.0], [0.0]])
    E = np.zeros((4, 4))
    E[0, 1] = E[1, 0] = E[2, 3] = E[3, 2] = 0.5
    at = remainder_of(np.diag([0.1, 1.0, 0.1, 1.0]))
    at.__dict__["Z"] = Z
    positive = np.linalg.eigvalsh(np.diag([0.1, 1.0, 0.1, 1.0]) + E + Z @ Z.T)[0] > 0.0
    pairs = pairs_of(E).take(np.array([0, 5]))
    assert not positive
    assert len(prove(at, pairs)) == 1
    at.__dict__["Z"] = np.diag([1.0, 0.0, 1.0, 0.0])
    assert prove(at, pairs) == []


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_strong_rows_are_eliminated_with_their_part_of_a_correction(columns):
    rng, agreed = np.random.default_rng(columns), 0
    for _ in range(80):
        E = np.triu(rng.standard_normal((9, 9)) * (rng.random((9, 9)) < 0.3), 1)
        E, Z = E + E.T, 0.7 * rng.standard_normal((9, columns))
        sums = np.abs(E).sum(axis=1)
        weak = rng.random(9) < 0.5
        diagonal = np.where(weak, rng.uniform(0.0, 1.5, 9), 3.0) * sums + 1e-3
        least = np.linalg.eigvalsh(np.diag(diagonal) + E + Z @ Z.T)[0]
        found = proof.is_sum_positive(diagonal, scipy.sparse.csr_array(E), Z, weak)
        assert least > 0.0 or not found
        agreed += found == (least > 0.0)
    assert agreed > 60


def test_the_rounding_of_the_products_of_a_large_correction_is_counted():
    """Diag(-d) + zz' is negative along vectors orthogonal to z, however large z is."""
    none, rng = scipy.sparse.csr_array((3, 3)), np.random.default_rng(0)
    for weak in (np.ones(3, dtype=bool), np.array([True, True, False])):
        for z in rng.uniform(1e8, 2e8, (40, 3, 1)):
            assert not proof.is_sum_positive(np.where(weak, -1e-3, 1.0), none, z, weak)


def test_the_rounding_of_what_is_eliminated_from_a_diagonal_counts_with_its_size():
    """Diagonals d that are next above the computed e^2/m, and some below the exact one."""
    rng, negative, weak = np.random.default_rng(0), 0, np.array([True, False])
    for e, m in rng.uniform(1.0, 2.0, (400, 2)):
        d = float(np.nextafter(e * (1.0 / m) * e, np.inf))
        if Fraction(d) * Fraction(m) < Fraction(e) ** 2:
            E = scipy.sparse.csr_array([[0.0, e], [e, 0.0]])
            assert not proof.is_sum_positive(np.array([d, m]), E, np.zeros((2, 0)), weak)
            negative += 1
    assert negative > 5


def test_a_diagonal_that_is_no_number_is_not_dominant():
    assert len(prove(remainder_of(np.diag([np.nan, 1.0])), pairs_of(np.zeros((2, 2))))) == 1


def test_a_factorization_that_goes_on_with_what_is_no_number_is_none():
    """The last row overflows, and its products are infinite with both signs."""
    S = np.diag([1e-300, 1e-300, 3.0, 1.0])
    S[2, :2] = S[:2, 2] = 1e-150
    S[3, :2] = S[:2, 3] = [1e300, -1e300]
    assert np.isfinite(S).all()
    assert proof.cholesky_or_none(S) is None


@pytest.mark.parametrize("diagonal", [[np.nan, 1.0], [np.inf, 1.0]])
def test_a_component_with_entries_that_are_not_finite_is_not_proved(diagonal):
    values, vectors = proof.check_component(np.array(diagonal), scipy.sparse.csr_array((2, 2)), np.zeros((2, 0)), 1)
    np.testing.assert_array_equal(values, -np.inf)
    np.testing.assert_array_equal(vectors, [[1.0], [0.0]])


def test_columns_with_known_signs_and_no_other_penalty_have_no_multiplier_if_columns_are_excluded():
    X, penalty, C = (
        centered_normal(8, 3),
        dc.Penalty(lam=[0.3, 0.0, 0.0], nonnegative=[0, 1, 2]),
        np.full((3, 3), -0.01),
    )
    assert proof.project_dual(direction_problem(X, 1.0, penalty), C)[1, 2] < 0.0
    X[:, 2] = X[:, 1]
    problem = direction_problem(X, 1.0, penalty)
    assert problem.W.shape[1] == 2
    projected = proof.project_dual(problem, C)
    np.testing.assert_array_equal(projected[1:], 0.0)
    split, u = block_problem(problem, np.arange(3)), np.ones(8)
    given, inside = (
        eliminated_matrix(split, u, 1.0, problem.X.weighted_gram(u), one, whitened=True)[0] for one in (C, projected)
    )
    np.testing.assert_array_equal(given, inside)


def test_a_column_of_zeros_leaves_the_others_in_their_given_coordinates():
    X = centered_normal(8, 3)
    X[:, 2] = 0.0
    problem = direction_problem(X, 1.0, dc.Penalty(lam=[0.3, 0.3, 0.0]))
    found = eliminate(block_problem(problem, np.arange(3)), np.ones(8), 10.0)
    assert found.L.shape == (2, 2)
    assert not found.is_whitened


def test_nothing_is_eliminated_at_a_t_below_what_is_outside_all_coordinates_or_not_above_0():
    problem, u = direction_problem(np.zeros((8, 2)), 1.0, dc.Penalty(c=[0.3, 0.0])), np.ones(8)
    split = block_problem(problem)
    assert split.inner.W.shape[1] == 0
    for t in (0.0, -1.0, np.nan, np.inf):
        assert eliminate(split, u, t) is None
    assert eliminate(split, u, 2.0) is not None
    split.inner.__dict__["whitening_error"] = WhiteningErrorBounds(1.5, 0.0)
    assert eliminate(split, u, 2.0, whitened=True) is None
    assert eliminate(split, u, 2.5, whitened=True) is not None


def test_a_block_is_beyond_its_ball_if_its_norm_was_rounded_down_by_its_sum_and_its_radius_by_the_product(monkeypatch):
    at = remainder_of(np.diag(np.full(40, 0.5)), lam=1e-4, groups=np.arange(40) // 20)
    side = float(at.problem.c[0] * at.problem.c[20])
    norm = side * (1.0 - 8 * UNIT_ROUNDOFF) * (1.0 - sum_error(40 + 8))
    monkeypatch.setattr(proof, "block_norms", lambda *_: np.full((2, 2), norm))
    assert len(proof.clip_groups(at)[1][0]) > 0


def test_as_many_directions_as_are_asked_for_are_returned_of_a_component_that_is_not_positive():
    values, vectors = proof.check_component(np.array([-1.0, 2.0, -3.0]), np.zeros((3, 3)), np.zeros((3, 0)), 2)
    np.testing.assert_array_equal(values, [-3.0, -1.0])
    np.testing.assert_array_equal(np.abs(vectors), np.eye(3)[:, [2, 0]])


def nearly_collinear(scale):
    """A problem whose first two columns, without a penalty, differ by this."""
    X = centered_normal(20, 4)
    X[:, 1] = X[:, 0] + scale * X[:, 1]
    return block_problem(direction_problem(X, 1.0, dc.Penalty(lam=[0.0, 0.0, 0.3, 0.3])), np.arange(3))


@pytest.mark.parametrize(("scale", "is_whitened"), [(1.0, False), (1e-7, True)])
def test_the_multiplier_between_is_chosen_from_s_in_given_coordinates_whether_whitened_or_not(scale, is_whitened):
    split, seen = nearly_collinear(scale), []

    def between(P, T):
        seen.append(P)
        return 0.5 * T

    found = eliminate(split, np.ones(20), 2.0, between=between)
    inner = split.problem.restrict(np.arange(3))
    assert found.is_whitened == is_whitened
    assert found.tC.any()
    S = 2.0 * (inner.summed_A + np.diag(inner.c**2)) - inner.X.weighted_gram(np.ones(20))
    np.testing.assert_allclose(seen[-1], S, atol=1e-12)


def test_errors_in_whitened_coordinates_scale_as_s_and_count_all_that_the_coordinates_are_off():
    split, u = nearly_collinear(1e-7), np.ones(20)
    split.inner.__dict__["whitening_error"] = WhiteningErrorBounds(1e-3, 0.0, 1e3)
    F = [eliminate(split, scale * u, scale * 2.0, whitened=True).F for scale in (1.0, 4.0)]
    np.testing.assert_allclose(F[1], 2.0 * F[0])
    split.inner.__dict__["whitening_error"] = WhiteningErrorBounds(0.0, 0.0, 1e12)
    M = split.inner.X.weighted_gram(u)
    P, radius = eliminated_matrix(split, u, 2.0, M, None, whitened=True)
    assert radius >= sum_error(split.n_terms) * 1e12 * (2.0 * len(P) - np.trace(P)) * (1.0 - 1e-9)


def test_feature_groups_inside_their_balls_are_not_joined():
    at = remainder_of(np.diag(np.full(4, 0.5)), F=np.full((1, 4), 1e-3), lam=0.3, groups=[0, 0, 1, 1])
    assert len(proof.clip_groups(at)[1][0]) == 0


def test_feature_groups_need_not_be_of_consecutive_columns():
    at = remainder_of(np.diag(np.full(5, 0.5)), lam=0.3, groups=[0, 1, 2, 0, 2])
    assert [block.tolist() for block, _ in proof.clip_groups(at)[0]] == [[0, 3], [2, 4]]


def test_s_is_of_sums_over_the_rows_and_not_of_the_square_of_a_root():
    """The errors of S are those of the sums alone."""
    split, u = (
        block_problem(direction_problem(centered_normal(20, 3), 1.0, dc.Penalty(a=0.1, c=0.05)), BOTH),
        np.ones(20),
    )
    X = split.inner.X.array()
    split.inner.__dict__["R"] = np.zeros((2, 2))
    P, _ = eliminated_matrix(split, u, 3.0, split.inner.X.weighted_gram(u), None, whitened=False)
    np.testing.assert_allclose(P, 2.0 * X.T @ X / 20 + 3.0 * np.diag(split.inner.a**2 + split.inner.c**2), rtol=1e-12)


def test_where_too_many_rows_are_weak_those_dominant_by_less_are_eliminated(monkeypatch):
    """A chain of 400 rows, where 50 at most are factorised: all are dominant, but by less than twice."""
    monkeypatch.setattr(proof, "MAX_FACTORIZED_SIZE", 50)
    chain = scipy.sparse.diags_array([np.ones(399), np.ones(399)], offsets=[-1, 1]).tocsr()
    diagonal, none = np.full(400, 2.5), np.zeros((400, 0))
    assert proof.check_component(diagonal, chain, none, 1) is None
    diagonal[:60] = 1.9  # weak
    assert proof.check_component(diagonal, chain, none, 1) is not None


def test_the_products_of_a_correction_round_as_those_of_an_elimination():
    it = proof_instance("working set", 3)
    at = eliminate(it.problem, it.u, it.least_t(), it.C)
    Z = np.zeros((len(at.problem.c), 2))
    Z[0] = [3.0, -4.0]
    corrected = at.with_correction(Z)
    k = len(at.K) + 2
    more = sum_error(k + 8) * (25.0 + at.K[:, 0] @ at.K[:, 0])
    assert corrected.errors[0] >= np.sum(at.F[:2, 0] ** 2) + more
    np.testing.assert_array_equal(corrected.errors[1:], at.errors[1:])
    np.testing.assert_allclose(corrected.diagonal[0], at.diagonal[0] - 25.0)
    np.testing.assert_array_equal(corrected.with_correction(Z).Z, np.hstack([Z, Z]))
