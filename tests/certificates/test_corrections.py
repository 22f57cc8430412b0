"""Corrections of the multiplier outside a working set, in exact arithmetic: C is in its dual set, S semidefinite."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from instances import proof_instance
from posed import centered_points, direction_problem, linked_points
from rationals import exact_S, is_semidefinite

import diffrac_cvx as dc
from diffrac_cvx.certificates import screening, working_set_bounds
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import Multipliers, eliminate
from diffrac_cvx.certificates.working_set_bounds import check_kkt


def least_certified(it, monkeypatch):
    """Return what is proved positive at the least of some t that certifies a bound, and the bound."""
    seen, prove = {}, working_set_bounds.prove

    def proved(remainder, *given, **how):
        seen["remainder"] = remainder
        return prove(remainder, *given, **how)

    right, M = it.problem.problem.A + np.diag(it.problem.problem.c**2), it.problem.problem.X.weighted_gram(it.u)
    largest = float(np.linalg.eigvals(np.linalg.solve(right, M)).real.max())
    with monkeypatch.context() as patch:
        patch.setattr(working_set_bounds, "prove", proved)
        for t in largest * np.geomspace(0.6, 1.2, 50):
            check = check_kkt(it.problem, it.u, it.C, t)
            if check.bound is not None:
                return seen["remainder"], check.bound.lower
    raise AssertionError("nothing is certified")


@pytest.mark.parametrize("kind", ["working set", "groups", "pairs"])
@pytest.mark.parametrize("seeds", [(0, 3, 26), pytest.param(range(200), marks=pytest.mark.slow)], ids=["few", "all"])
def test_a_corrected_multiplier_is_in_its_dual_set_and_makes_s_semidefinite_in_fractions(monkeypatch, seeds, kind):
    """It certifies bounds where the nearest multiplier fails."""
    smaller = 0
    for seed in seeds:
        it = proof_instance(kind, seed, wide=True)
        monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", (2, 500)[seed % 2])
        remainder, lower = least_certified(it, monkeypatch)
        S, in_dual_set = exact_S(it, remainder)
        assert in_dual_set, seed
        assert is_semidefinite(S), seed
        assert Fraction(lower) <= 1 - Fraction(remainder.t) * Fraction(float(np.mean(1.0 / it.u)))
        with monkeypatch.context() as patch:
            patch.setattr(working_set_bounds, "LIFT", -np.inf)
            nearest = least_certified(it, patch)[0].t
        assert remainder.t <= nearest
        smaller += remainder.t < nearest
    assert smaller >= len(seeds) / 20


def correlated_table(n=40, d=400):
    """Standardised columns, correlated by ten factors, and the labels of ten points."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 10)) @ rng.standard_normal((10, d)) / 10**0.5
    labels = np.where(np.arange(n) < 10, rng.choice([-1.0, 1.0], n), np.nan)
    return (X - X.mean(axis=0)) / X.std(axis=0), labels


def test_outside_a_working_set_known_labels_leave_about_as_few_pairs_beyond_their_box_as_none():
    X, labels = correlated_table()
    counts, others = [], np.arange(350)
    for known in (None, dc.Constraints(labels=labels)):
        problem = direction_problem(linked_points(X, known), 1.0, dc.Penalty(ridge=0.3, lam=0.05))
        u = 1.0 / np.broadcast_to(problem.sums.counts, len(problem.X))
        remainder = eliminate(block_problem(problem, np.arange(50)), u, 1.0)
        nearest = len(screening.screen_pairs(remainder, others).violated().j)
        corrected = remainder.with_correction(working_set_bounds.correction_for_sums(remainder))
        counts.append((nearest, len(screening.screen_pairs(corrected, others).violated().j)))
    assert counts[0][0] == counts[0][1]  # nothing is corrected
    assert counts[1][1] <= 1.5 * counts[0][0] + 10 < counts[1][0] / 10, counts


def test_the_bound_at_equal_weights_is_stated_without_the_l1_term():
    X, _ = correlated_table(n=20, d=30)
    problem = direction_problem(linked_points(X), 1.0, dc.Penalty(lam=0.1, ridge=0.3))
    bound = working_set_bounds.bound_at_equal_weights(problem)
    assert screening.prove_bound(problem, bound.multipliers) == bound.lower > 0.0


def test_a_multiplier_in_a_block_is_projected_onto_its_box():
    """With C = M/t - A in the block S is diagonal, at a t that no C in the box proves."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((400, 2)), [2, 1], axis=1) + 0.3 * rng.standard_normal((400, 3))
    problem = direction_problem(X - X.mean(axis=0), 1.0, dc.Penalty(lam=0.02, ridge=0.5))
    A, c2 = problem.summed_A, problem.c**2
    u = np.ones(400)
    M = problem.X.weighted_gram(u)
    t = 1.05 * float(np.max(np.diag(M) / (np.diag(A) + c2)))
    C = np.zeros((3, 3))
    C[0, 1] = C[1, 0] = M[0, 1] / t - A[0, 1]
    blocks = np.array([0, 0, 1])
    given = Multipliers(u, t, scipy.sparse.csr_array(C), np.zeros(0, dtype=np.intp), blocks)
    inside = np.clip(C, -problem.pair_penalty.half_width, problem.pair_penalty.half_width)
    assert abs(C[0, 1]) > 1.1 * inside.max()
    assert screening.prove_bound(problem, given) == -np.inf


def test_more_pairs_beyond_their_box_than_are_counted_prove_nothing():
    """Each column alone is positive outside a working set of one, at a t that proves no bound."""
    X, _ = correlated_table(n=20, d=140)
    problem = direction_problem(linked_points(X), 1.0, dc.Penalty(lam=1e-6, ridge=0.3))
    u, none = np.ones(20), scipy.sparse.csr_array((140, 140))
    right = problem.A + np.diag(problem.c**2)
    least = float(np.linalg.eigvals(np.linalg.solve(right, problem.X.weighted_gram(u))).real.max())
    assert least > 0.9
    assert screening.prove_bound(problem, Multipliers(u, 0.9, none, np.arange(1))) == -np.inf


def test_known_labels_and_weights_do_not_lower_the_bound_at_equal_weights():
    X, labels = correlated_table(n=20, d=30)
    weighted = centered_points(X, np.array([0.25] + [0.75 / 19] * 19))
    free, linked, weighted = (
        working_set_bounds.bound_at_equal_weights(direction_problem(points, 1.0, dc.Penalty(ridge=0.3))).lower
        for points in (linked_points(X), linked_points(X, dc.Constraints(labels=labels[:20])), weighted)
    )
    assert 0.0 < free <= linked
    assert weighted > 0.0
