"""Parts of the fast solvers that neither results nor step counts on small instances reveal."""

from itertools import islice

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.direction_bounds import certify, certify_in_one_pass
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.linear_algebra import weighted_gram
from diffrac_cvx.points.points import add_tuples, block_weighted_sums
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.streamed import StreamedRows
from diffrac_cvx.solvers import smoothed_dual as fista
from diffrac_cvx.solvers.factored import augmented_lagrangian, sampling, working_set
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    append_violated_direction,
    one_block,
)
from diffrac_cvx.solvers.factored.parametrization import (
    FactorParametrization,
    approximate_top_eigenvalue,
    sizes_of_directions,
)
from diffrac_cvx.solvers.factored.quasi_newton import Memory, Point, inner, take_step
from diffrac_cvx.solvers.smoothed_dual import BoxWithDiagonal, SmoothedDual
from diffrac_cvx.solvers.stopping import Stopping, WarmStart

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
    for k in range(15):
        memory.add(step * (k + 1), step)
    assert len(memory.pairs) == 10
    assert memory.pairs[-1][2] == pytest.approx(60.0)


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


def test_a_memory_that_is_rotated_gives_the_rotated_direction():
    rng, memory, turned = np.random.default_rng(3), Memory(), Memory()
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    for step in rng.standard_normal((4, 5, 3)):
        change = np.linspace(0.5, 4.0, 5)[:, None] * step
        memory.add(step, change)
        turned.add(step, change)
    turned.rotate(Q)
    assert len(turned.pairs) == 4
    G = rng.standard_normal((5, 3))
    np.testing.assert_allclose(turned.direction(G @ Q, lambda Z: Z), memory.direction(G, lambda Z: Z) @ Q, atol=1e-12)


@pytest.mark.parametrize(("slope", "length"), [(0.1, 0.1), (5.0, 0.6)])
def test_the_first_step_is_the_gradient_and_at_most_three_tenths_of_the_point(slope, length):
    U, direction = np.full((2, 2), 1.0), np.full((2, 2), 0.5)
    at = Point(U, 0.0, slope * direction)
    new = take_step(lambda Z: Point(Z, slope * inner(Z - U, direction), at.gradient), at, Memory(), lambda Z: Z)
    np.testing.assert_allclose(new.U, U - length * direction, rtol=1e-12)


@pytest.mark.parametrize(("curvature", "tried"), [(4.0, [-3.0, 0.0]), (20.0, [-19.0, -1.0, 0.0])])
def test_after_a_step_too_long_the_minimum_of_the_parabola_is_tried_and_no_less_than_a_tenth(curvature, tried):
    points, memory = [], Memory()
    memory.add(np.ones((1, 1)), np.ones((1, 1)))

    def parabola(U):
        points.append(U.item())
        return Point(U, curvature * float(U.item()) ** 2 / 2, curvature * U)

    at = parabola(np.ones((1, 1)))
    new = take_step(parabola, at, memory, lambda Z: Z)
    np.testing.assert_allclose(points[1:], tried, atol=1e-12)
    assert new.value < at.value


# The augmented Lagrangian of one block


def test_an_update_of_the_multiplier_is_an_evaluation_with_the_new_one():
    lagrangian, U = (
        one_block(FactorParametrization(problem_of())),
        0.05 * np.random.default_rng(4).standard_normal((5, 2)),
    )
    at = lagrangian.point(U)
    moved = lagrangian.update(at)
    again = lagrangian.point(U)
    assert moved.value > at.value
    assert moved.value == pytest.approx(again.value, rel=1e-12)
    np.testing.assert_allclose(moved.gradient, again.gradient, rtol=1e-10, atol=1e-14)


def test_the_sizes_of_directions_are_those_of_least_squares_for_labels_at_random():
    problem = problem_of()
    inverse = np.linalg.inv(problem.A + np.diag(problem.c**2))
    np.testing.assert_allclose(sizes_of_directions(problem), np.diag(inverse @ problem.A @ inverse), rtol=1e-10)


def test_steps_take_account_of_correlated_columns_and_only_of_these_and_few_rows_give_the_same_products():
    rng = np.random.default_rng(1)
    apart, penalty = rng.standard_normal((200, 6)), dc.Penalty(c=0.1, a=0.3)
    assert FactorParametrization(direction_problem(as_data(apart), 1.0, penalty)).left is None
    for X in (
        rng.standard_normal((200, 1)) + 0.1 * apart,
        rng.standard_normal((8, 1)) + 0.1 * rng.standard_normal((8, 40)),
    ):
        unknowns = FactorParametrization(direction_problem(as_data(X), 1.0, penalty))
        size = len(unknowns.B)
        np.testing.assert_allclose(unknowns.left(unknowns.B + np.eye(size)), np.eye(size), atol=1e-10)
        U, Z = rng.standard_normal((2, size, 3))
        total, slope = unknowns.problem.X.sqrt_sum_and_gradient(U)
        value, gradient = unknowns.value_and_gradient(U, [])
        assert value == pytest.approx(1 - 2 * total / len(X) + inner(U, unknowns.B @ U))
        np.testing.assert_allclose(gradient, 2 * unknowns.B @ U - 2 / len(X) * slope, atol=1e-12)
        G = U.T @ U
        expected = unknowns.left(Z @ np.linalg.inv(G / approximate_top_eigenvalue(G) + 1e-2 * np.eye(3)))
        np.testing.assert_allclose(unknowns.metric(U)(Z), expected, rtol=1e-10)


def test_an_escape_is_the_direction_in_which_the_certificate_is_violated_most():
    problem = problem_of()
    unknowns, U = FactorParametrization(problem), 0.3 * np.eye(5, 1)
    (C,) = one_block(unknowns).multiplier(U)
    wider = append_violated_direction(problem, U, C)
    new = wider[:, 1:]
    assert wider.shape == (5, 2)
    np.testing.assert_array_equal(wider[:, :1], U)
    u = problem.inverse_sqrt(problem.X.quadratic_forms(U))
    violation = weighted_gram(problem.X.array(), u) - unknowns.B - C
    top = np.linalg.eigvalsh(violation)[-1]
    assert np.linalg.norm(new) == pytest.approx(1e-2 * np.linalg.norm(U), rel=1e-6)
    assert inner(new, violation @ new) == pytest.approx(top * inner(new, new), rel=1e-6)


# Components


def test_few_features_are_tried_first_where_there_are_many_a_ridge_and_a_start_on_a_quarter_of_them_at_most():
    def is_tried(d, ridge, on=None):
        penalty = dc.Penalty(a=np.where(np.arange(d) < ridge, 0.3, 0.0), c=0.1)
        start = WarmStart() if on is None else WarmStart(np.eye(d, on))
        return working_set.is_working_set_applicable(problem_of(penalty=penalty, n=10, d=d), start)

    assert is_tried(200, ridge=200)
    assert is_tried(200, ridge=1)
    assert not is_tried(200, ridge=0)
    assert not is_tried(199, ridge=199)
    assert is_tried(200, ridge=200, on=50)
    assert not is_tried(200, ridge=200, on=51)


# Samples


def test_rows_are_many_where_samples_of_twenty_entries_each_are_few_beside_them():
    assert sampling.many_rows(40_000, 5)
    assert not sampling.many_rows(39_999, 5)
    assert sampling.many_rows(160_000, 63)
    assert not sampling.many_rows(160_000, 64)


def test_samples_grow_by_the_same_factor_up_to_half_of_the_rows():
    n, D = 100_000, 20
    sizes = list(sampling.sample_sizes(n, D, has_l1=False))
    assert sizes[0] == 8 * D**2
    assert all(m <= n / 2 for m in sizes)
    assert sizes[1:] == [int(2.5 * m) for m in sizes[:-1]]
    assert 2.5 * sizes[-1] > n / 2
    sparse = list(sampling.sample_sizes(n, D, has_l1=True))
    assert sparse[0] == max(3 * D**2, int(0.02 * n))
    assert all(m <= n / 2 for m in sparse)
    assert next(sampling.sample_sizes(n, 40, has_l1=True)) == 3 * 40**2
    assert next(sampling.sample_sizes(n, 2, has_l1=False)) == 2000


def test_sums_at_several_floors_are_those_of_all_rows_at_once():
    X, U = RNG.standard_normal((30, 3)), RNG.standard_normal((3, 2))
    X[4], X[7] = 0.0, 1e-3 * X[7]
    q = np.sum((X @ U) ** 2, axis=1)
    floors = np.array([1e-3, 0.1, 0.5]) * q.mean()
    unit, none = np.ones(3), np.zeros(3)
    rows = StreamedRows(X, none, none, unit)
    moments, inverses, roots, squares = add_tuples(*(block_weighted_sums(U, floors, rows) for rows in (X[:12], X[12:])))
    for one, other in zip(rows.weighted_sums(U, floors), (moments, inverses, roots, squares), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert (roots, squares) == (pytest.approx(np.sqrt(q).sum()), pytest.approx(q.sum()))
    for i, floor in enumerate(floors):
        expected = np.sqrt(np.maximum(q, floor))
        np.testing.assert_allclose(moments[i], X.T @ (X / expected[:, None]), rtol=1e-12)
        assert inverses[i] == pytest.approx(np.delete(expected, 4).sum())


def test_a_larger_sample_contains_the_smaller_ones():
    X = RNG.standard_normal((60, 5))
    problem = direction_problem(as_rows(X), 1.0, dc.Penalty(lam=0.1))
    small, large = (sampling.draw_sample(problem, m).array() for m in (10, 25))
    assert len(small) == 10
    assert {tuple(row) for row in small} < {tuple(row) for row in large} < {tuple(row) for row in problem.X.array()}


def test_a_point_is_split_where_no_component_has_half_of_the_penalized_coordinates():
    problem = problem_of()
    assert sampling.is_block_diagonal(problem, np.eye(5))
    assert not sampling.is_block_diagonal(problem, np.ones((5, 1)))
    joined = np.eye(5)
    joined[1, 0] = 1.0
    assert sampling.is_block_diagonal(problem, joined)
    joined[2, 0] = 1.0
    assert not sampling.is_block_diagonal(problem, joined)
    assert not sampling.is_block_diagonal(problem_of(penalty=dc.Penalty(a=0.1)), np.eye(5))


def test_the_weighted_gram_of_a_pass_is_at_the_best_multiple_of_the_factor_whatever_its_scale():
    X = np.random.default_rng(2).standard_normal((30, 5))
    X[4] = 0.0
    X[5:] -= X.sum(axis=0) / 25
    problem, dense = (direction_problem(data, 1.0, PENALTY) for data in (as_rows(X), as_data(X)))
    for scale in (1.0, 3.0):
        point, _, M = certify_in_one_pass(problem, scale * np.eye(5, 2), None)
        best = dense.rescale(np.eye(5, 2))
        assert point.value == pytest.approx(best.value)
        floor = 1e-12 * float(np.sum(point.U * (problem.A @ point.U)))
        u = 1.0 / np.sqrt(np.maximum(best.q, floor))
        np.testing.assert_allclose(M, weighted_gram(dense.X.array(), u), rtol=1e-9, atol=1e-12)


def test_a_factor_grows_by_small_columns_where_the_certificate_is_violated():
    X = np.random.default_rng(0).standard_normal((200, 5))
    problem = direction_problem(as_rows(X), 1.0, PENALTY)
    U = np.column_stack([np.eye(5)[:, 0], 1e-7 * np.eye(5)[:, 1]])
    point, _, M = certify_in_one_pass(problem, U, np.zeros((5, 5)))
    wider = sampling.grow_factor(problem, point.U, np.zeros((5, 5)), M)
    violation = M - problem.A - np.diag(problem.c**2)
    growing = int(np.sum(np.linalg.eigvalsh(violation) > 0.0))
    new = wider[:, 1:]
    assert growing
    assert new.shape[1] == min(growing, 4)
    assert np.linalg.norm(new) == pytest.approx(1e-2 * np.linalg.norm(wider[:, :1]))
    assert all(column @ violation @ column > 0.0 for column in new.T)
    np.testing.assert_array_equal(np.abs(sampling.grow_factor(problem, np.eye(5), None, M)), np.eye(5))


def test_the_surrogate_on_all_rows_is_the_problem_itself_and_none_has_a_direction_of_little_cost():
    X = np.random.default_rng(6).standard_normal((400, 4))
    problem = direction_problem(as_rows(np.column_stack([X, X[:, 0]])), 1.0, dc.Penalty(c=0.05))
    whole = sampling.surrogate(problem, sampling.draw_sample(problem, 400), None)
    np.testing.assert_allclose(whole.A, problem.A, atol=1e-12)
    rows = X.copy()
    rows[:, 2] *= 0.1
    plain = direction_problem(as_rows(X), 1.0, dc.Penalty(c=0.05))
    assert sampling.surrogate(plain, array_points(rows), None) is None
    rows[:, 2] *= 9.0
    assert sampling.surrogate(plain, array_points(rows), None) is not None


@pytest.mark.parametrize("permuted", [0, 10_000])
def test_no_row_is_twice_in_a_sample(permuted, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_PERMUTED_ROWS", permuted)
    X = RNG.standard_normal((60, 2))
    sample = sampling.draw_sample(direction_problem(as_rows(X), 1.0, dc.Penalty(lam=0.1)), 50).array()
    assert len({tuple(row) for row in sample}) == 50


@pytest.mark.parametrize("penalty", [dc.Penalty(a=0.1), dc.Penalty(a=0.1, c=0.2)], ids=["ridge", "l1"])
def test_the_iterations_said_are_the_steps_taken_on_samples_and_on_all_rows(penalty, monkeypatch):
    X, steps = np.random.default_rng(7).standard_normal((5000, 3)), []

    def counted(*given):
        new = take_step(*given)
        steps.append(new is not None)
        return new

    monkeypatch.setattr(augmented_lagrangian, "take_step", counted)
    problem, stopping = direction_problem(as_rows(X), 1.0, penalty), Stopping(1e-6, 200)
    points = sampling.sampling_iterates(problem, WarmStart(), stopping, until_converged=not problem.has_l1)
    for point in islice(filter(None, points), 2):
        assert point.n_iter == sum(steps) > 0
    steps.clear()
    for point in filter(None, augmented_lagrangian.one_block_iterates(problem_of(penalty=penalty, n=100, d=30), 30)):
        assert point.n_iter == sum(steps)
    assert sum(steps) == 30


# The smoothed dual


def test_the_first_point_is_that_of_any_multiple_of_the_start():
    problem = problem_of()
    U = np.random.default_rng(8).standard_normal((5, 2))
    duals = [fista.published_dual(problem), SmoothedDual(problem.X, problem.W, problem.pair_penalty)]
    for dual in duals:
        inverse = np.linalg.inv(dual.W @ dual.W.T)
        scaled = U / np.trace(U.T @ inverse @ U) ** 0.5  # tr NV = 1
        expected = problem.inverse_sqrt(problem.X.quadratic_forms(scaled), 1e-4)
        for multiple in (1.0, 3.0):
            u, scale = fista.first_point(problem, dual, multiple * U)
            np.testing.assert_allclose(u, expected, rtol=1e-9)
            assert scale == pytest.approx(max(problem.mean_sqrt(scaled) / 2, 0.05), rel=1e-9)


def test_in_one_dimension_the_first_step_of_fista_reaches_the_optimum():
    """The dual is then separable, and u = 1/|x| its optimum."""
    X = as_data(np.random.default_rng(9).standard_normal((30, 1)))
    problem = direction_problem(X, 1.0, dc.Penalty(a=0.1))
    first = next(fista.accelerated_iterates(problem, np.ones((1, 1)), None, 1, 1e-3))
    assert certify(problem, problem.rescale(first.U), first.dual).gap <= 1e-10


def test_the_published_algorithm_goes_on_after_eq_21_is_solved_to_its_epsilon(monkeypatch):
    problem, asked = problem_of(penalty=dc.Penalty(a=0.1)), []

    def points(own_rule: bool) -> list[int]:
        return [
            point.n_iter
            for point in fista.published_iterates(problem, 0.5, None, None, 150, stop_by_paper_rule=own_rule)
        ]

    monkeypatch.setattr(fista, "check_deadline", lambda: asked.append(None))

    assert points(own_rule=False) == [25, 50, 75, 100, 125, 150]
    assert len(asked) == 150
    assert len(points(own_rule=True)) < 6


def test_stages_whose_points_are_polynomials_in_eps_are_extrapolated_to_zero():
    box, U0 = BoxWithDiagonal(np.full(2, 0.5**0.5)), np.array([[1.0], [0.5]])

    def end(eps):
        return eps, np.array([1.0, 2.0]) * (1 + eps), np.full((2, 2), 0.2 + eps), U0 * (1 + eps) ** 0.5

    found = fista.extrapolate([end(0.09), end(0.03), end(0.01)], 7, box)
    np.testing.assert_allclose(found.dual.u, [1.0, 2.0], rtol=1e-10)
    np.testing.assert_allclose(found.dual.C, 0.2, rtol=1e-10)
    np.testing.assert_allclose(found.U @ found.U.T, U0 @ U0.T, rtol=1e-9)
    assert found.n_iter == 7
    single = fista.extrapolate([end(0.5)], 7, box)
    np.testing.assert_allclose(single.dual.C, 0.5)  # projected on the dual box


def test_there_is_no_surrogate_at_a_factor_of_zero():
    problem = direction_problem(as_rows(np.random.default_rng(0).standard_normal((200, 5))), 1.0, PENALTY)
    at_zero = sampling.iterate_from_pass(problem, np.zeros((5, 2)), None, 0)
    assert at_zero[0].bounds.upper == 1.0
    assert sampling.surrogate(problem, sampling.draw_sample(problem, 100), at_zero) is None
