"""Parts of the working-set certificate: error bound of S, entering coordinates, initial working set."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from posed import direction_problem
from rationals import fractions, is_semidefinite, nearly_ones

import diffrac_cvx as dc
from diffrac_cvx.certificates import group_kkt, working_set
from diffrac_cvx.certificates.block_proof import SchurComplement
from diffrac_cvx.certificates.group_kkt import check_groups_kkt
from diffrac_cvx.certificates.working_set import check_kkt, dual_on_working_set, most_violated_entries
from diffrac_cvx.certificates.working_set_proof import (
    Elimination,
    WorkingSetProblem,
    eliminate_working_set,
    is_difference_positive,
    working_set_sums,
)
from diffrac_cvx.points import floating_point as rounding
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, sum_error
from diffrac_cvx.points.sparse import as_sparse_columns
from diffrac_cvx.problem.direction_problem import univariate_gains

NONE = np.zeros(0, dtype=np.intp)


def data(n, d, seed=0):
    return as_data(np.random.default_rng(seed).standard_normal((n, d)))


@pytest.mark.parametrize("chosen", [[], [0, 3], [0, 1, 2, 3, 4]])
def test_the_mass_of_s_is_twice_the_trace_of_the_weighted_gram_and_of_t_times_the_right_side(chosen):
    penalty = dc.Penalty(a=np.array([0.0, 0.1, 0.5, 1.0, 2.0]), c=np.array([0.2, 0.3, 0.1, 0.4, 0.2]))
    n, t = 400, 1.5
    problem, u = direction_problem(data(n, 5), 1.0, penalty), np.linspace(0.5, 2.0, n)
    core = WorkingSetProblem(problem, np.array(chosen, dtype=np.intp), np.zeros((len(chosen),) * 2))
    X = problem.X.array()
    A = X.T @ X / n + np.diag(problem.a**2)
    expected = np.trace(X.T @ (u[:, None] * X) / n + t * (A + 2.0 * np.diag(problem.c**2)))
    h, o = core.masses(u, t)
    assert h == pytest.approx(2.0 * expected, rel=1e-12)
    moved = (2.0 + t) * np.trace(A + np.diag(problem.c**2))  # columns that are off by their norms
    assert sum_error(n) ** 2 * moved <= o <= sum_error(n + 32) ** 2 * (moved + (2.0 + t) * np.sum(problem.c**2))


def test_the_mass_of_s_counts_the_row_that_is_added_to_sparse_columns():
    X = as_sparse_columns(nearly_ones(40), warn=False)
    problem, u = direction_problem(X, 1.0, dc.Penalty(c=0.1)), np.linspace(0.5, 2.0, 40)
    sizes = np.abs(problem.X.S.toarray()) + np.abs(problem.X.r)
    M, A = (float(np.sum(np.mean(weight * sizes.T**2, axis=1))) for weight in (u, np.ones(40)))
    for chosen, t in (([0], 0.1), ([0, 1], 0.1), ([0], 10.0)):
        core = WorkingSetProblem(problem, np.array(chosen), np.zeros((len(chosen),) * 2))
        assert core.masses(u, t)[0] >= 2.0 * (M + t * A) > 100.0 * np.trace(problem.X.weighted_gram(u))


@pytest.mark.parametrize("excess", [0.0, 0.3])
def test_a_multiplier_beyond_its_box_is_clipped_on_a_working_set(excess):
    problem = direction_problem(data(20, 3), 1.0, dc.Penalty(c=np.array([0.2, 0.3, 0.1])))
    C = WorkingSetProblem(problem, np.arange(2), np.array([[1.0, -9.0], [-9.0, 1.0]]), excess).C
    np.testing.assert_allclose(C, -(1.0 + excess) * np.prod(problem.c[:2]) * (1.0 - np.eye(2)), rtol=1e-12)


def core_and_others(X):
    """A core of the first two coordinates, and two outside."""
    return WorkingSetProblem(direction_problem(X, 1.0, dc.Penalty(a=0.1, c=0.3)), np.arange(2), np.zeros((2, 2)))


def exactly_eliminated(core, sums, tC, u):
    """P, and the Schur complement of it in S, from the sums, in rationals; the diagonal outside is t A - M."""
    P, E = fractions(sums.P), fractions(core.off_diagonal.project_safe(tC, sums.t)) - fractions(sums.T)
    outside = np.diag(fractions(sums.t * core.outside.diagonal - core.outside.weighted_squares(u)))
    determinant = P[0, 0] * P[1, 1] - P[0, 1] * P[1, 0]
    inverse = np.array([[P[1, 1], -P[0, 1]], [-P[1, 0], P[0, 0]]]) / determinant
    return P, outside - E.T @ inverse @ E


def least_ratio(core, u):
    """The least t at which S is positive semidefinite on the core, for C = 0."""
    columns = np.arange(len(core.ws))
    right = core.inside.right_of(columns, core.inside.data_of(columns))
    return scipy.linalg.eigvalsh(core.inside.X.weighted_gram(u), right)[-1]


@pytest.mark.parametrize("scale", [0.0, 1.0])
@pytest.mark.parametrize("off", [0.0, 1e-7, 1e-3, -1e-3, 0.9])
def test_what_is_left_outside_a_working_set_holds_however_inexactly_its_system_is_solved(monkeypatch, off, scale):
    """What the solution lacks is off S itself: with K too small, K'K takes too little of S."""
    core, u, solved = core_and_others(data(30, 4)), np.linspace(0.5, 1.5, 30), scipy.linalg.solve_triangular
    monkeypatch.setattr(scipy.linalg, "solve_triangular", lambda *given, **how: solved(*given, **how) * (1.0 - off))
    least = least_ratio(core, u)
    for t in (*(least * (1.0 + np.logspace(-11, -6, 11))), 1.5, 3.0):
        sums = working_set_sums(core, u, t)
        found = eliminate_working_set(core, u, sums, scale * sums.T)  # beyond their box some of T are clipped
        _, exact = exactly_eliminated(core, sums, scale * sums.T, u)
        for j in range(2) if found is not None else ():
            assert Fraction(found.diagonal[j]) - Fraction(found.error) <= exact[j, j]
        assert t < 1.5 or np.all(found.diagonal - found.error >= np.diag(exact).astype(float) - 1e-10) or off


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_a_working_set_that_is_singular_up_to_rounding_proves_nothing(monkeypatch, scale):
    """Where the least eigenvalue of S on the core is below what S may be off, also if nothing is taken of S outside."""
    u, n_found, Q = np.linspace(0.5, 1.5, 30), 0, np.linalg.qr(data(30, 4))[0]
    core = core_and_others(Q)  # T is in its box
    monkeypatch.setattr(rounding, "UNIT_ROUNDOFF", 2.0**-36)
    for t in least_ratio(core, u) * (1.0 + np.logspace(-12, -1, 45)):
        sums = working_set_sums(core, u, t)
        found, (h, _) = eliminate_working_set(core, u, sums, scale * sums.T), core.masses(u, t)
        assert found is None or np.linalg.eigvalsh(sums.P)[0] > sum_error(32) * h
        n_found += found is not None
    assert 0 < n_found < 45


@pytest.mark.parametrize(("off", "top"), [(0.0, 1.0), (0.0, 1e12), (1e-3, 1.0)])
def test_the_slack_outside_a_working_set_is_that_of_all_its_terms(monkeypatch, off, top):
    """The closed form, for in double precision sums lose by far less than they may.

    A row that is 0 has a large weight, or the solution is off by a part, so that each term is large.
    """
    monkeypatch.setattr(rounding, "UNIT_ROUNDOFF", 2.0**-40)
    n, w, t, solved, Z = 1001, 2, 2.0, scipy.linalg.solve_triangular, data(500, 4)
    monkeypatch.setattr(scipy.linalg, "solve_triangular", lambda *given, **how: solved(*given, **how) * (1.0 - off))
    core, u = core_and_others(np.vstack([Z, -Z, np.zeros((1, 4))])), np.append(np.linspace(0.5, 1.5, n - 1), top)
    sums = working_set_sums(core, u, t)
    found, (h, o) = eliminate_working_set(core, u, sums, 0.0 * sums.T), core.masses(u, t)
    each, of_P = sum_error(n + w + 40), sum_error(2 * w + 8) * np.trace(sums.P)
    of_S, of_K = each * h + 2.0 * (h * o) ** 0.5 + o, each * float(np.sum(found.schur.K**2))
    L, K = found.L, found.schur.K
    residual = np.linalg.norm(sums.T + L @ K) + sum_error(w + 4) * np.linalg.norm(L) * np.linalg.norm(K)
    left = 4.0 * (of_S + of_P) - of_S - of_K - of_P
    assert found.error == pytest.approx(of_S + of_K + residual**2 / left, rel=1e-9)


@pytest.mark.parametrize("weak", [False, True])
def test_a_row_whose_sum_loses_most_is_not_proved_dominant(weak):
    """After ones each entry, or its square over a diagonal, is less than half a unit: d_0 < sum e_k^2 / d_k exactly."""
    e = np.where(np.arange(512) % 128 < 8, 1.0, 0.98 * UNIT_ROUNDOFF)
    E, diagonal = np.zeros((513, 513)), np.append(32.0 + 256.0 * UNIT_ROUNDOFF, e * (1.0 + 4.0 * UNIT_ROUNDOFF))
    E[0, 1:] = E[1:, 0] = e
    assert Fraction(diagonal[0]) < sum(fractions(e) ** 2 / fractions(diagonal[1:]))
    assert not is_difference_positive(diagonal, scipy.sparse.csr_array(E), np.append(weak, np.zeros(512, dtype=bool)))


def test_a_factorization_of_weak_rows_that_rounding_lets_succeed_proves_nothing():
    lucky = 0
    for seed in range(120):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        S = B @ B.T
        S = (S + S.T) / 2
        off_diagonal = scipy.sparse.csr_array(np.diag(np.diag(S)) - S)
        try:
            lucky += bool(np.all(np.isfinite(scipy.linalg.cholesky(S))))
        except scipy.linalg.LinAlgError:
            continue
        assert is_semidefinite(fractions(S)) or not is_difference_positive(
            np.diag(S), off_diagonal, np.ones(5, dtype=bool)
        )
    assert lucky > 5


def two_coupled_pairs(diagonal, slack=0.0):
    """Four groups of two, S on them, and what is found: each of two pairs is beyond its box by one.

    The blocks between the groups of a pair have one entry, 1 + t c^2.
    """
    groups, t, first = np.arange(8) // 2, 2.0, np.array([0, 2, 4, 6])
    problem = direction_problem(data(20, 8), 1.0, dc.Penalty(lam=0.3, groups=groups))
    core, K = WorkingSetProblem(problem, NONE, np.zeros((0, 0))), np.zeros((2, 8))
    side = t * problem.c[first][[0, 2]] * problem.c[first][[1, 3]]
    K[[0, 0, 1, 1], first] = np.sqrt(1.0 + np.repeat(side, 2))
    at = SchurComplement(core.outside, t, np.zeros(20), K)
    S = diagonal * np.eye(8)
    S[[0, 2, 4, 6], [2, 0, 6, 4]] = -1.0
    return problem, core, S, Elimination(at, np.zeros((0, 0)), np.zeros((0, 8)), np.full(8, diagonal), slack)


@pytest.mark.parametrize("diagonal", [0.5, 0.99, 1.01, 1.5, 3.0])
def test_groups_outside_are_proved_where_s_is_positive_and_else_all_directions_in_which_it_is_not_are_named(diagonal):
    problem, core, S, found = two_coupled_pairs(diagonal)
    outside = check_groups_kkt(core, found)
    values = np.linalg.eigvalsh(S)
    assert outside.certified == (values[0] > 0.0)
    assert outside.violated.shape == (8, int(np.sum(values < 0.0)))
    assert np.linalg.matrix_rank(outside.violated) == np.sum(values < 0.0)
    assert np.all(np.sum(outside.violated * (S @ outside.violated), axis=0) < 0.0)
    nothing = check_groups_kkt(WorkingSetProblem(problem, np.arange(8), np.zeros((8, 8))), found)
    assert nothing.certified
    assert nothing.entering.shape == (0,)
    assert nothing.violated.shape == (0, 0)


def test_groups_outside_are_not_proved_where_s_may_be_off_by_more_than_is_left(monkeypatch):
    for slack, proved in ((0.4, True), (0.6, False)):
        _, core, _, found = two_coupled_pairs(1.5, slack)  # the least eigenvalue is one half
        assert check_groups_kkt(core, found).certified == proved
    monkeypatch.setattr(group_kkt, "MAX_COUPLED_SIZE", 7)  # none is looked at that is too large to be
    assert not check_groups_kkt(*two_coupled_pairs(3.0)[1::2]).certified


@pytest.mark.parametrize(("left", "proved"), [(0.5, False), (2.0, True)])
def test_what_is_beyond_between_groups_and_too_faint_to_be_looked_at_counts(left, proved):
    """Two groups of little left, beyond their dual set by more; beside a group of far more that is faint."""
    groups, t, beyond = np.array([0, 0, 1, 1, 2, 2]), 2.0, 0.5e-10
    problem = direction_problem(data(20, 6), 1.0, dc.Penalty(lam=0.3, groups=groups))
    core, K = WorkingSetProblem(problem, NONE, np.zeros((0, 0))), np.zeros((1, 6))
    K[0, [0, 2]] = np.sqrt(t * problem.c[0] * problem.c[2] + beyond)
    diagonal = np.where(groups == 2, 1.0, left * beyond)
    at = SchurComplement(core.outside, t, np.zeros(20), K)
    found = check_groups_kkt(core, Elimination(at, np.zeros((0, 0)), np.zeros((0, 6)), diagonal, 0.0))
    assert found.certified == proved


def two_columns_that_agree_where_weights_are_large(groups=None, lam=0.2):
    """A problem without a core, and weights u: u - t is 1/2 where two columns agree, -1/2 where they differ, at t = 1.

    So G is 1/2 between them and 0 on its diagonal.
    """
    rng, n = np.random.default_rng(0), 64
    X = rng.standard_normal((n, 6))
    X -= X.mean(axis=0)
    above = np.arange(n) % 4 < 2
    X[:, 4] = np.where(np.arange(n) % 2, 1.0, -1.0)
    X[:, 5] = np.where(above, X[:, 4], -X[:, 4])
    problem = direction_problem(X, 1.0, dc.Penalty(lam=lam, groups=groups))
    return WorkingSetProblem(problem, NONE, np.zeros((0, 0))), np.where(above, 1.5, 0.5)


@pytest.mark.parametrize("lam", [0.2, 0.4])
@pytest.mark.parametrize("slack", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("groups", [None, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 4], [0, 0, 1, 1, 2, 3]])
def test_a_kkt_check_proves_its_bound_where_s_with_the_multiplier_nearest_to_it_is_positive_beyond_its_slack(
    monkeypatch, groups, slack, lam
):
    eliminated, refused, spent = working_set.eliminate_working_set, 0, 0.01
    monkeypatch.setattr(working_set, "eliminate_working_set", lambda *given: eliminated(*given)._replace(error=slack))
    core, u = two_columns_that_agree_where_weights_are_large(groups, lam)
    problem = core.problem
    for t in np.linspace(0.5, 3.0, 60):
        look = check_kkt(core, u, 0.2, t, spent)
        G = problem.X.weighted_gram(u) - t * (problem.A + np.diag(problem.c**2))
        S = t * problem.structure.pair_penalty(problem.c).project_safe(G / t) - G
        assert (look.lower is not None) == (np.linalg.eigvalsh(S)[0] > slack)
        refused += look.lower is None
        assert look.lower is None or Fraction(look.lower) <= 1 - Fraction(t) * Fraction(0.2) - Fraction(spent)
    assert 0 < refused < 60


def test_the_coordinates_that_are_named_are_those_of_the_pair_that_makes_s_negative():
    core, u = two_columns_that_agree_where_weights_are_large()
    assert check_kkt(core, u, 1.0, 1.9).lower is not None
    look = check_kkt(core, u, 1.0, 1.0)
    assert look.lower is None
    assert set(look.entering) == {4, 5}


def test_the_most_promising_entries_are_those_not_zero_and_then_those_furthest_beyond_their_box():
    rng = np.random.default_rng(0)
    rest, sides = rng.standard_normal((5, 12)), rng.uniform(0.0, 3.0, (5, 12))
    Z = np.where(rng.random((5, 12)) < 0.2, 1.0, 0.0)
    for row, places in enumerate(most_violated_entries(rest, Z, sides, 6)):
        beyond = sorted(range(12), key=lambda k, row=row: (Z[row, k] == 0.0, sides[row, k] - abs(rest[row, k])))
        assert set(places) == set(beyond[:6])


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("c", [0.0, 0.3])
def test_what_a_coordinate_gains_alone_is_one_less_its_value_at_its_best_scale(nu, c):
    problem = direction_problem(data(20, 4), nu, dc.Penalty(0.2, c))
    alone = [1.0 - problem.rescale(e[:, None]).value for e in np.eye(len(problem.c))]
    np.testing.assert_allclose(univariate_gains(problem), alone, rtol=1e-12, atol=1e-30)


@pytest.mark.parametrize("multiple", [1.001, 1e3])
def test_a_working_set_of_many_more_columns_than_there_are_points_proves_the_bound_of_its_ratio(multiple):
    problem, columns = direction_problem(data(10, 200), 1.0, dc.Penalty(a=20.0, c=0.01)), np.arange(200)
    right, M = problem.A + np.diag(problem.c**2), problem.X.weighted_gram(np.ones(10))
    t = multiple * float(np.linalg.eigvals(np.linalg.solve(right, M)).real.max())
    look = check_kkt(WorkingSetProblem(problem, columns, np.zeros((200, 200))), np.ones(10), 1.0, t)
    assert look.lower == pytest.approx(1.0 - t, rel=1e-9)


@pytest.mark.parametrize(("seed", "lam"), [(0, 0.1), (0, 0.3), (7, 0.1)])
def test_the_multiplier_that_is_fitted_at_an_optimum_promises_its_value(seed, lam):
    rng, penalty = np.random.default_rng(seed), dc.Penalty(lam=lam, ridge=0.05)
    X = as_data(rng.standard_normal((30, 6)) + 0.5 * rng.standard_normal((30, 1)))
    problem, found = direction_problem(X, 1.0, penalty), dc.low_rank(X, penalty=penalty, tol=1e-8)
    point = problem.rescale(dense(problem.coordinates.transform_result(found)))
    dual = dual_on_working_set(problem, point, np.arange(6), point.U, None, refine=True)
    assert abs(point.value - dual.lower) <= 1e-9
