"""What proofs from a core outwards are made of: how far S may be off, what is named outside, where they start."""

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_proof import SchurComplement
from diffrac_cvx.certificates.core_proof import Core, Eliminated
from diffrac_cvx.certificates.groups_outside import look_at_groups
from diffrac_cvx.certificates.outwards import dual_on, look_outside, most_promising_entries
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.factors import dense
from diffrac_cvx.problem.direction_problem import gains_alone

NONE = np.zeros(0, dtype=np.intp)


def data(n, d, seed=0):
    return as_data(np.random.default_rng(seed).standard_normal((n, d)))


@pytest.mark.parametrize("chosen", [[], [0, 3], [0, 1, 2, 3, 4]])
def test_the_mass_of_s_is_twice_the_trace_of_the_moment_and_of_t_times_the_right_side(chosen):
    penalty = dc.Penalty(a=np.array([0.0, 0.1, 0.5, 1.0, 2.0]), c=np.array([0.2, 0.3, 0.1, 0.4, 0.2]))
    problem, u, t = direction_problem(data(30, 5), 1.0, penalty), np.linspace(0.5, 2.0, 30), 1.5
    core = Core(problem, np.array(chosen, dtype=np.intp), np.zeros((len(chosen),) * 2))
    X = problem.X.array()
    A = X.T @ X / 30 + np.diag(problem.a**2)
    expected = np.trace(X.T @ (u[:, None] * X) / 30 + t * (A + 2.0 * np.diag(problem.c**2)))
    assert core.masses(u, t)[0] == pytest.approx(2.0 * expected, rel=1e-12)


def two_coupled_pairs(diagonal):
    """Four groups of two, S on them, and what is found: each of two pairs is beyond its box by one.

    The blocks between the groups of a pair have one entry, 1 + t c^2.
    """
    groups, t, first = np.arange(8) // 2, 2.0, np.array([0, 2, 4, 6])
    problem = direction_problem(data(20, 8), 1.0, dc.Penalty(lam=0.3, groups=groups))
    core, K = Core(problem, NONE, np.zeros((0, 0))), np.zeros((2, 8))
    side = t * problem.c[first][[0, 2]] * problem.c[first][[1, 3]]
    K[[0, 0, 1, 1], first] = np.sqrt(1.0 + np.repeat(side, 2))
    at = SchurComplement(core.outside, t, np.zeros(20), K)
    S = diagonal * np.eye(8)
    S[[0, 2, 4, 6], [2, 0, 6, 4]] = -1.0
    return problem, core, S, Eliminated(at, np.zeros((0, 0)), np.zeros((0, 8)), np.full(8, diagonal), 0.0)


@pytest.mark.parametrize("diagonal", [0.5, 0.99, 1.01, 1.5, 3.0])
def test_groups_outside_are_proved_where_s_is_positive_and_else_all_directions_in_which_it_is_not_are_named(diagonal):
    problem, core, S, found = two_coupled_pairs(diagonal)
    outside = look_at_groups(core, found)
    values = np.linalg.eigvalsh(S)
    assert outside.proved == (values[0] > 0.0)
    assert outside.violated.shape == (8, int(np.sum(values < 0.0)))
    assert np.linalg.matrix_rank(outside.violated) == np.sum(values < 0.0)
    assert np.all(np.sum(outside.violated * (S @ outside.violated), axis=0) < 0.0)
    nothing = look_at_groups(Core(problem, np.arange(8), np.zeros((8, 8))), found)
    assert nothing.proved
    assert nothing.needed.shape == (0,)
    assert nothing.violated.shape == (0, 0)


def test_the_coordinates_that_are_named_are_those_of_the_pair_that_makes_s_negative():
    """u - t is 1/2 where two columns agree, -1/2 where they differ: G is 1/2 between them and 0 on its diagonal."""
    rng, n = np.random.default_rng(0), 64
    X = rng.standard_normal((n, 6))
    X -= X.mean(axis=0)
    above = np.arange(n) % 4 < 2
    X[:, 4] = np.where(np.arange(n) % 2, 1.0, -1.0)
    X[:, 5] = np.where(above, X[:, 4], -X[:, 4])
    problem, u = direction_problem(X, 1.0, dc.Penalty(lam=0.2)), np.where(above, 1.5, 0.5)
    core = Core(problem, NONE, np.zeros((0, 0)))
    assert look_outside(core, u, 1.0, 1.9).lower is not None
    look = look_outside(core, u, 1.0, 1.0)
    assert look.lower is None
    assert set(look.needed) == {4, 5}


def test_the_most_promising_entries_are_those_not_zero_and_then_those_furthest_beyond_their_box():
    rng = np.random.default_rng(0)
    rest, sides = rng.standard_normal((5, 12)), rng.uniform(0.0, 3.0, (5, 12))
    Z = np.where(rng.random((5, 12)) < 0.2, 1.0, 0.0)
    for row, places in enumerate(most_promising_entries(rest, Z, sides, 6)):
        beyond = sorted(range(12), key=lambda k, row=row: (Z[row, k] == 0.0, sides[row, k] - abs(rest[row, k])))
        assert set(places) == set(beyond[:6])


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("c", [0.0, 0.3])
def test_what_a_coordinate_gains_alone_is_one_less_its_value_at_its_best_scale(nu, c):
    problem = direction_problem(data(20, 4), nu, dc.Penalty(0.2, c))
    alone = [1.0 - problem.best_scale(e[:, None]).value for e in np.eye(len(problem.c))]
    np.testing.assert_allclose(gains_alone(problem), alone, rtol=1e-12, atol=1e-30)


@pytest.mark.parametrize("multiple", [1.001, 1e3])
def test_a_core_of_many_more_columns_than_there_are_points_proves_the_bound_of_its_ratio(multiple):
    problem, every = direction_problem(data(10, 200), 1.0, dc.Penalty(a=20.0, c=0.01)), np.arange(200)
    right, M = problem.A + np.diag(problem.c**2), problem.X.moment(np.ones(10))
    t = multiple * float(np.linalg.eigvals(np.linalg.solve(right, M)).real.max())
    look = look_outside(Core(problem, every, np.zeros((200, 200))), np.ones(10), 1.0, t)
    assert look.lower == pytest.approx(1.0 - t, rel=1e-9)


@pytest.mark.parametrize(("seed", "lam"), [(0, 0.1), (0, 0.3), (7, 0.1)])
def test_the_multiplier_that_is_fitted_at_an_optimum_promises_its_value(seed, lam):
    rng, penalty = np.random.default_rng(seed), dc.Penalty(lam=lam, ridge=0.05)
    X = as_data(rng.standard_normal((30, 6)) + 0.5 * rng.standard_normal((30, 1)))
    problem, found = direction_problem(X, 1.0, penalty), dc.low_rank(X, penalty=penalty, tol=1e-8)
    point = problem.best_scale(dense(problem.from_result(found)))
    dual = dual_on(problem, point, np.arange(6), point.U, None, fitted=True)
    assert abs(point.value - dual.lower) <= 1e-9
