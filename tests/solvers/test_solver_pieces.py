"""Pieces of the fast solvers that neither their answers nor their numbers of steps on small instances show."""

from types import SimpleNamespace

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.direction_bounds import certify_in_one_pass
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.chunks import add
from diffrac_cvx.points.linear_algebra import moment
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.streamed import StreamedRows, part_sums_at
from diffrac_cvx.problem.penalties.absolute import Absolute
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.solvers.factored import components, sampling
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    one_block,
    with_violated_direction,
)
from diffrac_cvx.solvers.factored.quasi_newton import Memory, Point, inner, take_step
from diffrac_cvx.solvers.factored.tuning import ONE_BLOCK
from diffrac_cvx.solvers.factored.unknowns import OneFactor, top_energy
from diffrac_cvx.solvers.factored.unknowns import Point as BlockPoint
from diffrac_cvx.solvers.smoothed_dual import accelerated, published

RNG = np.random.default_rng(50)
PENALTY = dc.Penalty(a=0.1, c=np.array([0.3, 0.2, 0.4, 0.1, 0.5]))


def problem_of(nu=1.0, penalty=PENALTY, n=40, d=5, seed=0):
    return direction_problem(as_data(np.random.default_rng(seed).standard_normal((n, d))), nu, penalty)


# Quasi-Newton steps


def test_pairs_of_negative_or_no_curvature_are_not_kept_and_no_more_than_a_few_are():
    memory, step = Memory(), np.ones((2, 2))
    memory.add(step, -step)
    memory.add(step, np.array([[1.0, -1.0], [1.0, -1.0]]))
    assert not memory.pairs
    for k in range(ONE_BLOCK.pairs + 5):
        memory.add(step * (k + 1), step)
    assert len(memory.pairs) == ONE_BLOCK.pairs
    assert memory.pairs[-1][2] == pytest.approx(4.0 * (ONE_BLOCK.pairs + 5))


def quadratic(U):
    return Point(U, float(np.sum(U**2)) / 2, U)


def test_an_uphill_direction_is_replaced_and_at_a_minimum_there_is_no_step():
    memory = Memory()
    memory.pairs.append((np.ones((2, 2)), np.ones((2, 2)), -1.0))
    at = quadratic(np.ones((2, 2)))
    new = take_step(quadratic, at, memory, lambda Z: Z)
    assert new.value < at.value
    slightly = quadratic(np.full((2, 2), 1e-3))
    memory.pairs.append((np.ones((2, 2)), np.ones((2, 2)), -1.0))
    assert take_step(quadratic, slightly, memory, lambda Z: Z).value < slightly.value
    assert take_step(quadratic, quadratic(np.zeros((2, 2))), Memory(), lambda Z: Z) is None
    stuck = Point(np.ones((2, 2)), 1.0, np.ones((2, 2)))
    assert take_step(lambda U: stuck._replace(U=U, value=2.0), stuck, Memory(), lambda Z: Z) is None


# The augmented Lagrangian of one block


def test_steps_take_account_of_correlated_columns_and_only_of_these_and_few_rows_give_the_same_products():
    rng = np.random.default_rng(1)
    apart, penalty = rng.standard_normal((200, 6)), dc.Penalty(c=0.1, a=0.3)
    assert OneFactor(direction_problem(as_data(apart), 1.0, penalty)).left is None
    for X in (
        rng.standard_normal((200, 1)) + 0.1 * apart,
        rng.standard_normal((8, 1)) + 0.1 * rng.standard_normal((8, 40)),
    ):
        unknowns = OneFactor(direction_problem(as_data(X), 1.0, penalty))
        size = len(unknowns.B)
        np.testing.assert_allclose(unknowns.left(unknowns.B + np.eye(size)), np.eye(size), atol=1e-10)
        U, Z = rng.standard_normal((2, size, 3))
        np.testing.assert_allclose(unknowns.times_B(U), unknowns.B @ U, atol=1e-12)
        G = U.T @ U
        expected = unknowns.left(Z @ np.linalg.inv(G / top_energy(G) + 1e-2 * np.eye(3)))
        np.testing.assert_allclose(unknowns.metric(U)(Z), expected, rtol=1e-10)


def test_an_escape_is_the_direction_in_which_the_certificate_is_violated_most():
    problem = problem_of()
    unknowns, U = OneFactor(problem), 0.3 * np.eye(5, 1)
    (C,) = one_block(unknowns).multiplier(U)
    wider = with_violated_direction(unknowns, U, C)
    new = wider[:, 1:]
    assert wider.shape == (5, 2)
    np.testing.assert_array_equal(wider[:, :1], U)
    u = problem.inverse_roots(problem.X.energies(U))
    violation = moment(problem.X.array(), u) - unknowns.B - C
    top = np.linalg.eigvalsh(violation)[-1]
    assert np.linalg.norm(new) == pytest.approx(1e-2 * np.linalg.norm(U), rel=1e-6)
    assert inner(new, violation @ new) == pytest.approx(top * inner(new, new), rel=1e-6)


# Components


def test_negligible_columns_of_a_block_are_dropped():
    wide = np.column_stack([np.ones(3), 1e-7 * np.array([1.0, -1.0, 0.0]), np.array([1.0, 0.0, -1.0])])
    point = components.reduce_rank(BlockPoint(np.ones(1), np.zeros((1, 0)), np.zeros((0, 0)), [wide]))
    assert point.factors[0].shape == (3, 2)
    np.testing.assert_allclose(point.factors[0] @ point.factors[0].T, wide @ wide.T, atol=1e-6)


# Samples


def test_rows_are_many_where_samples_of_twenty_entries_each_are_few_beside_them():
    assert sampling.many_rows(40_000, 5)
    assert not sampling.many_rows(39_999, 5)
    assert sampling.many_rows(160_000, 63)
    assert not sampling.many_rows(160_000, 64)


def test_samples_grow_by_the_same_factor_up_to_half_of_the_rows():
    n, D = 100_000, 20
    sizes = list(sampling.sample_sizes(n, D, is_coupled=False))
    assert sizes[0] == 8 * D**2
    assert all(m <= n / 2 for m in sizes)
    assert sizes[1:] == [int(2.5 * m) for m in sizes[:-1]]
    assert 2.5 * sizes[-1] > n / 2
    sparse = list(sampling.sample_sizes(n, D, is_coupled=True))
    assert sparse[0] == max(3 * D**2, int(0.02 * n))
    assert all(m <= n / 2 for m in sparse)
    assert next(sampling.sample_sizes(n, 40, is_coupled=True)) == 3 * 40**2
    assert next(sampling.sample_sizes(n, 2, is_coupled=False)) == 2000


def test_sums_at_several_floors_are_those_of_all_rows_at_once():
    X, U = RNG.standard_normal((30, 3)), RNG.standard_normal((3, 2))
    X[4], X[7] = 0.0, 1e-3 * X[7]
    q = np.sum((X @ U) ** 2, axis=1)
    floors = np.array([1e-3, 0.1, 0.5]) * q.mean()
    unit, none = np.ones(3), np.zeros(3)
    parts = [StreamedRows(part, none, none, unit) for part in (X[:12], X[12:])]
    sums = [part_sums_at(part, U, floors) for part in parts]
    moments, inverses, roots, squares = add(*sums)
    assert (roots, squares) == (pytest.approx(np.sqrt(q).sum()), pytest.approx(q.sum()))
    for i, floor in enumerate(floors):
        expected = np.sqrt(np.maximum(q, floor))
        np.testing.assert_allclose(moments[i], X.T @ (X / expected[:, None]), rtol=1e-12)
        assert inverses[i] == pytest.approx(np.delete(expected, 4).sum())


def test_a_larger_sample_contains_the_smaller_ones():
    X = RNG.standard_normal((60, 5))
    problem = direction_problem(as_rows(X), 1.0, dc.Penalty(lam=0.1))
    small, large = (sampling.take_sample(problem, m).array() for m in (10, 25))
    assert len(small) == 10
    assert {tuple(row) for row in small} < {tuple(row) for row in large} < {tuple(row) for row in problem.X.array()}


def test_a_surrogate_is_solved_no_more_accurately_than_the_next_pass_can_show():
    last = SimpleNamespace(bounds=Bracket(0.1, 0.3))
    assert sampling.wanted(None, 1e-6) == 1e-3
    assert sampling.wanted(last, 1e-6) == pytest.approx(0.02)
    assert sampling.wanted(last, 1.0) == 0.25


def test_a_point_is_split_where_no_component_has_half_of_the_penalised_coordinates():
    problem = problem_of()
    assert sampling.is_split(problem, np.eye(5))
    assert not sampling.is_split(problem, np.ones((5, 1)))
    joined = np.eye(5)
    joined[1, 0] = 1.0
    assert sampling.is_split(problem, joined)
    joined[2, 0] = 1.0
    assert not sampling.is_split(problem, joined)
    assert not sampling.is_split(problem_of(penalty=dc.Penalty(a=0.1)), np.eye(5))


def test_the_moment_of_a_pass_is_at_the_best_multiple_of_the_factor_whatever_its_scale():
    X = np.random.default_rng(2).standard_normal((30, 5))
    X[4] = 0.0
    X[5:] -= X.sum(axis=0) / 25
    problem, dense = (direction_problem(data, 1.0, PENALTY) for data in (as_rows(X), as_data(X)))
    for scale in (1.0, 3.0):
        found = certify_in_one_pass(problem, scale * np.eye(5, 2), None)
        best = dense.best_scale(np.eye(5, 2))
        assert found.point.value == pytest.approx(best.value)
        u = 1.0 / np.sqrt(np.maximum(best.q, found.floor))
        np.testing.assert_allclose(found.M, moment(dense.X.array(), u), rtol=1e-9, atol=1e-12)
        assert found.floor < 1e-9 * best.q.mean()


def test_a_factor_grows_by_small_columns_where_the_certificate_is_violated():
    X = np.random.default_rng(0).standard_normal((200, 5))
    problem = direction_problem(as_rows(X), 1.0, PENALTY)
    U = np.column_stack([np.eye(5)[:, 0], 1e-7 * np.eye(5)[:, 1]])
    found = certify_in_one_pass(problem, U, np.zeros((5, 5)))
    wider = sampling.grow(problem, found)
    violation = found.M - problem.A - np.diag(problem.c**2)
    growing = int(np.sum(np.linalg.eigvalsh(violation) > 0.0))
    new = wider[:, 1:]
    assert growing
    assert new.shape[1] == min(growing, 4)
    assert np.linalg.norm(new) == pytest.approx(1e-2 * np.linalg.norm(wider[:, :1]))
    assert all(column @ violation @ column > 0.0 for column in new.T)
    whole = found._replace(point=found.point._replace(U=np.eye(5)))
    np.testing.assert_array_equal(np.abs(sampling.grow(problem, whole)), np.eye(5))


# The smoothed dual


def test_the_published_algorithm_goes_on_after_eq_21_is_solved_to_its_epsilon(monkeypatch):
    problem, asked = problem_of(penalty=dc.Penalty(a=0.1)), []

    def points(own_rule: bool) -> list[int]:
        return [point.n_iter for point in published.iterates(problem, 0.5, None, None, 150, own_rule=own_rule)]

    monkeypatch.setattr(published, "poll", lambda: asked.append(None))

    assert points(own_rule=False) == [25, 50, 75, 100, 125, 150]
    assert len(asked) == 150
    assert len(points(own_rule=True)) < 6


def test_stages_whose_points_are_polynomials_in_eps_are_extrapolated_to_zero():
    box, U0 = Absolute(np.full(2, 0.5**0.5), diagonal=True), np.array([[1.0], [0.5]])

    def end(eps):
        dual = accelerated.DualPoint(np.array([1.0, 2.0]) * (1 + eps), np.full((2, 2), 0.2 + eps), np.eye(2))
        U = U0 * (1 + eps) ** 0.5
        return accelerated.StageState(eps=eps, dual=dual, U=U, factor=1.0, n_iter=7, finished=True)

    found = accelerated.extrapolate([end(0.09), end(0.03), end(0.01)], box)
    np.testing.assert_allclose(found.dual.u, [1.0, 2.0], rtol=1e-10)
    np.testing.assert_allclose(found.dual.C, 0.2, rtol=1e-10)
    np.testing.assert_allclose(found.U @ found.U.T, U0 @ U0.T, rtol=1e-9)
    assert found.n_iter == 7
    single = accelerated.extrapolate([end(0.5)], box)
    np.testing.assert_allclose(single.dual.C, 0.5)  # clipped to the box
