import numpy as np
import oracles
import pytest
from posed import direction_problem

from diffrac_cvx.points.factors import outer_product
from diffrac_cvx.problem.penalty import Penalty

NUS = [0.25, 0.5, 1.0]
RIDGE, SPARSE = np.array([0.3, 0.0, 0.1, 0.2]), np.array([0.2, 0.1, 0.0, 0.4])
PENALTIES = {"none": Penalty(), "ridge": Penalty(a=RIDGE), "l1": Penalty(c=0.3), "both": Penalty(a=RIDGE, c=SPARSE)}

each_nu = pytest.mark.parametrize("nu", NUS)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)


def centered(n=15, d=4, rank=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) @ np.diag(10.0 ** np.linspace(-1, 1, d))
    return X - X.mean(axis=0)


def map_of(problem):
    """Return L, the map to the user's coordinates."""
    return problem.coordinates.inverse_transform(np.eye(len(problem.c)))


def factor_of(problem, seed=1):
    return np.random.default_rng(seed).standard_normal((problem.X.shape[1], 2))


def objective(problem, U):
    return 1 - 2 * problem.mean_sqrt(U) + problem.convex_term(U)


def directions(problem, U):
    return outer_product(problem.coordinates.inverse_transform(U))


# The objective


@each_nu
@each_penalty
def test_a_change_of_coordinates_leaves_the_objective_of_eq_15(nu, penalty):
    X = centered()
    problem = direction_problem(X, nu, penalty)
    U = factor_of(problem)
    expected = oracles.v_objective(directions(problem, U), *oracles.augmented(X, nu, penalty.a, penalty.c))
    assert objective(problem, U) == pytest.approx(expected, rel=1e-12)


@each_nu
@each_penalty
def test_at_the_best_scale_mean_sqrt_and_cost_are_one_minus_the_objective(nu, penalty):
    problem = direction_problem(centered(), nu, penalty)
    U = factor_of(problem)
    best, value, q = problem.rescale(U)
    np.testing.assert_allclose(q, np.sum((problem.X.array() @ best) ** 2, axis=1), rtol=1e-12)
    assert value == pytest.approx(1 - problem.mean_sqrt(U) ** 2 / problem.convex_term(U), rel=1e-12)
    assert value == pytest.approx(objective(problem, best), rel=1e-12)
    assert problem.mean_sqrt(best) == pytest.approx(1 - value, rel=1e-12)
    assert problem.convex_term(best) == pytest.approx(1 - value, rel=1e-12)


# The coordinates


@each_nu
@each_penalty
def test_going_to_the_users_coordinates_and_back_changes_nothing_and_so_the_other_way_round(nu, penalty):
    problem = direction_problem(centered(), nu, penalty)
    U, G = factor_of(problem), np.random.default_rng(2).standard_normal((len(problem.coordinates.scale), 3))
    back = problem.coordinates.transform_matrix(directions(problem, U))
    np.testing.assert_allclose(back @ back.T, U @ U.T, atol=1e-11 * np.abs(U @ U.T).max())
    np.testing.assert_allclose(directions(problem, problem.coordinates.transform_matrix(G @ G.T)), G @ G.T, atol=1e-10)


@each_nu
@pytest.mark.parametrize("penalty", [PENALTIES["none"], PENALTIES["ridge"]], ids=["none", "ridge"])
@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize(("n", "rank"), [(15, 4), (15, 2), (4, 4)])
def test_without_an_l1_penalty_the_data_are_white(nu, penalty, n, rank):
    X = centered(n, 4, rank)
    problem = direction_problem(X, nu, penalty)
    Xa, a, _ = oracles.augmented(X, nu, penalty.a)
    A = Xa.T @ Xa / n + np.diag(a**2)
    L = map_of(problem)
    np.testing.assert_allclose(L.T @ A @ L, np.eye(L.shape[1]), atol=1e-12)
    np.testing.assert_allclose(problem.X.array(), Xa @ L, atol=1e-13)
    assert L.shape[1] == np.linalg.matrix_rank(A, rtol=1e-10)


@each_nu
@pytest.mark.parametrize("penalty", [PENALTIES["l1"], PENALTIES["both"]], ids=["l1", "both"])
@pytest.mark.parametrize(("n", "rank"), [(15, 4), (15, 2), (4, 4)])
def test_with_an_l1_penalty_the_columns_have_nearly_unit_scale_in_powers_of_two_and_W_whitens(nu, penalty, n, rank):
    X = centered(n, 4, rank)
    problem = direction_problem(X, nu, penalty)
    Xa, a, c = oracles.augmented(X, nu, penalty.a, penalty.c)
    L = map_of(problem)
    np.testing.assert_array_equal(L, np.diag(problem.coordinates.scale))
    np.testing.assert_array_equal(np.frexp(problem.coordinates.scale)[0], 0.5)
    size = problem.coordinates.scale**2 * (np.mean(Xa**2, axis=0) + a**2 + c**2)
    assert np.all((size >= 0.5) & (size <= 2.0))
    np.testing.assert_allclose(problem.A, L @ (Xa.T @ Xa / n + np.diag(a**2)) @ L, atol=1e-13)
    np.testing.assert_allclose(
        problem.pair_penalty.half_width + np.diag(problem.c**2), L @ np.outer(c, c) @ L, atol=1e-14
    )
    assert np.all(problem.pair_penalty.half_width <= np.outer(problem.c, problem.c))
    assert not np.diag(problem.pair_penalty.half_width).any()
    np.testing.assert_allclose(
        problem.W.T @ (problem.A + np.diag(problem.c**2)) @ problem.W, np.eye(problem.W.shape[1]), atol=1e-12
    )
