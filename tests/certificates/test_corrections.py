"""Corrections of the multiplier outside a working set, in exact arithmetic: C is in its box and S is semidefinite."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from diffrac_cvx.certificates.working_set_proof import WorkingSetProblem, is_difference_positive
from posed import direction_problem
from rationals import fractions, gram, is_semidefinite

import diffrac_cvx as dc
from diffrac_cvx.certificates import screening, working_set
from diffrac_cvx.certificates.working_set import check_kkt
from diffrac_cvx.problem.result import Bracket


def table(seed):
    """A small table with fewer points than columns, some nearly collinear, in any units, with unequal weights."""
    rng = np.random.default_rng([2017, 45, seed])
    n, d = int(rng.integers(3, 6)), int(rng.integers(7, 10))
    X = rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((n, 1)) @ rng.standard_normal((1, d))
    if seed % 3 == 1:
        X[:, d - 2 :] = X[:, :2] + 1e-6 * rng.standard_normal((n, 2))
    a = np.sqrt(rng.choice([0.02, 0.2]) * rng.uniform(0.5, 2.0, d))
    c = np.sqrt(rng.choice([0.01, 0.05]) * rng.uniform(0.3, 2.0, d))
    units = 10.0 ** rng.uniform(-4, 4, d) if seed % 4 == 3 else np.ones(d)
    return rng, X * units, dc.Penalty(a * units, c * units)


def certified_checks(seed, monkeypatch):
    """Yield the checks at several t that certify a bound, with the elimination and what was proved positive."""
    rng, X, penalty = table(seed)
    problem, seen = direction_problem(X, (1.0, 0.6)[seed % 2], penalty), {}
    correct, prove = working_set.correct_multiplier, working_set.is_difference_positive

    def corrected(within, elimination, nonpositive):
        seen["elimination"], seen["rest"] = elimination, correct(within, elimination, nonpositive)
        return seen["rest"]

    def proved(diagonal, E, weak, Z):
        seen["diagonal"] = diagonal
        return prove(diagonal, E, weak, Z)

    monkeypatch.setattr(working_set, "correct_multiplier", corrected)
    monkeypatch.setattr(working_set, "is_difference_positive", proved)
    monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", (2, 500)[seed // 2 % 2])
    U = rng.standard_normal((len(problem.c), 2))
    u = 1.0 / np.sqrt(np.maximum(problem.X.quadratic_forms(U), 0.1))
    right, M = problem.A + np.diag(problem.c**2), problem.X.weighted_gram(u)
    largest = float(np.linalg.eigvals(np.linalg.solve(right, M)).real.max())
    ws = np.union1d(np.flatnonzero(problem.c == 0.0), rng.permutation(len(problem.c))[: seed % 3])
    core = WorkingSetProblem(problem, ws, (M - problem.A)[np.ix_(ws, ws)])
    for t in largest * np.array([0.6, 0.7, 0.8, 0.9, 1.0]):
        check = check_kkt(core, u, float(np.mean(1.0 / u)), t, 0.0, Bracket(-1e6, 0.4))
        if check.lower is not None:
            yield core, u, t, check, seen


def assert_certified(core, u, t, check, seen):
    """Assert that a C in its box makes S positive semidefinite, and that the bound is not above that of t."""
    problem, ws, others, rest = core.problem, core.ws, core.complement, seen["rest"]
    X, a, c, t = (fractions(values) for values in (problem.X.array(), problem.a, problem.c, [t]))
    t = t[0]
    S = t * (gram(X, fractions(np.ones(len(u)))) + np.diag(a**2)) - gram(X, fractions(u))
    C, box = np.outer(c, c) * Fraction(0), np.outer(c, c)
    C[np.ix_(ws, ws)] = fractions(core.C)
    between = fractions(seen["elimination"].C)
    between = np.minimum(np.maximum(between, -box[np.ix_(ws, others)]), box[np.ix_(ws, others)])
    C[np.ix_(ws, others)], C[np.ix_(others, ws)] = between, between.T
    K = fractions(np.vstack([seen["elimination"].schur.K, rest.Z.T]))
    outside = K.T @ K - S[np.ix_(others, others)] - fractions(rest.excess.toarray())
    np.fill_diagonal(outside, Fraction(0))
    C[np.ix_(others, others)] = outside / t
    assert np.all(np.abs(C) <= box * (1 + Fraction(1, 10**11)))  # the rounding of G is in the error of S
    raised = seen["diagonal"] - rest.diagonal
    e = max(Fraction(float(raised[j])) / (t * (a[k] ** 2 + c[k] ** 2)) for j, k in enumerate(others))
    e *= 1 + Fraction(1, 10**9)
    larger = np.where(np.isin(np.arange(len(c)), others), 1 + e, Fraction(1)) * (a**2 + c**2) - a**2
    assert is_semidefinite(S + t * C + np.diag(t * larger))
    bound = 1 - t * Fraction(float(np.mean(1.0 / u))) - e * (1 - Fraction(1, 10**8)) * Fraction(0.4) * Fraction(0.6)
    assert Fraction(check.lower) <= bound
    return rest.Z.shape[1] > 0, e > Fraction(1, 10**6)


@pytest.mark.parametrize("seeds", [range(24), pytest.param(range(300), marks=pytest.mark.slow)], ids=["few", "all"])
def test_a_corrected_multiplier_is_in_its_box_and_makes_s_semidefinite_in_fractions(monkeypatch, seeds):
    kinds = [assert_certified(*found) for seed in seeds for found in certified_checks(seed, monkeypatch)]
    with_correction, with_larger_penalties = zip(*kinds, strict=True)
    assert sum(with_correction) > len(seeds) / 4
    assert sum(with_larger_penalties) > len(seeds) / 4


def test_a_correction_on_rows_that_are_not_factorized_proves_nothing():
    Z = np.eye(3, 1)
    assert is_difference_positive(np.ones(3), scipy.sparse.csr_array((3, 3)), np.array([True, False, False]), Z)
    assert not is_difference_positive(np.ones(3), scipy.sparse.csr_array((3, 3)), np.zeros(3, dtype=bool), Z)


@pytest.mark.parametrize("square", [0.24, 0.26])
def test_a_correction_adds_its_square_to_what_is_factorized(square):
    Z, E = np.full((2, 1), square**0.5), scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
    # The smallest eigenvalue, in (1, 1), is 0.5 - 1 and twice the square.
    assert is_difference_positive(np.full(2, 0.5), E, np.ones(2, dtype=bool), Z) == (square > 0.25)


def test_known_labels_cost_no_more_steps_than_none():
    """Known points are one row of M and many of A, whose negative part makes many pairs exceed their box."""
    rng, n, d = np.random.default_rng(3), 40, 500
    y = np.where(rng.permutation(n) < n // 2, 1.0, -1.0)
    X = rng.standard_normal((n, d)) + 0.3 * rng.standard_normal((n, 10)) @ rng.standard_normal((10, d))
    X[:, :20] += 1.3 * y[:, None]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    known = dc.Constraints(labels=np.where(np.arange(n) < 10, y, 0.0))
    plain, labeled = (
        dc.low_rank(X, lam=0.1, ridge=0.3, tol=1e-9, rtol=0.02, max_iter=600, constraints=constraints)
        for constraints in (None, known)
    )
    assert plain.status is labeled.status is dc.Status.OPTIMAL
    assert labeled.n_iter <= plain.n_iter
