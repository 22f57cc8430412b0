"""Misprints of the paper: each test fails if the printed formula is used.

The minus sign missing in appendix G.2, in the gradient of the dual, is tested in `solvers/test_smoothing.py`.
"""

from fractions import Fraction

import numpy as np
import oracles
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.solvers.smoothed_dual import prox_inverse, published_dual, softmax_value

SPARSE = dc.Penalty(c=[0.3, 0.1, 0.2])


def dual_of(X, penalty=SPARSE):
    return published_dual(direction_problem(X, 1.0, penalty))


def dual_point(dual, seed=0):
    rng = np.random.default_rng(seed)
    C = rng.uniform(-1, 1, dual.pair_penalty.half_width.shape) * dual.pair_penalty.half_width
    return rng.uniform(0.5, 2.0, len(dual.X)), (C + C.T) / 2


# Section 3: a_{d+1} = nu / (1 - nu); it is the square root.


@pytest.mark.parametrize("nu", [0.1, 0.25])  # at nu = 0.5 the two agree
@pytest.mark.parametrize(
    "solve",
    [
        lambda X, nu: dc.solve(dc.v_space(X, nu), "CLARABEL"),
        lambda X, nu: dc.low_rank(X, nu),
        lambda X, nu: dc.fista(X, nu, tol=1e-5),
        lambda X, nu: dc.fista(X, nu, tol=2e-3, variant="published"),
    ],
    ids=["v_space", "low_rank", "fista", "published"],
)
def test_the_weight_of_the_offset_is_the_root_of_nu_over_one_minus_nu(noisy, solve, nu):
    optimum, _ = oracles.solve_y(noisy, nu)
    with_ones = np.column_stack([noisy, np.ones(len(noisy))])
    as_printed, _ = oracles.solve_v(with_ones, 1.0, a=np.append(np.zeros(3), nu / (1 - nu)))
    result = solve(noisy, nu)
    assert abs(as_printed - optimum) > 5e-3
    assert result.lower - oracles.TOL <= optimum <= result.upper + oracles.TOL
    assert result.gap <= 2e-3


def test_the_smooth_part_is_that_of_the_smoothed_dual(noisy):
    dual, eps = dual_of(noisy), 0.1
    u, C = dual_point(dual)
    A = dual.X.second_moment()
    values, vectors = np.linalg.eigh(A)
    S = vectors / np.sqrt(values) @ vectors.T
    D = S @ (dual.X.weighted_gram(u) / 2 - C) @ S
    expected = eps * np.log(np.exp(np.linalg.eigvalsh(D) / eps).sum())
    assert softmax_value(dual.matrix(u, C), eps) == pytest.approx(expected, rel=1e-12)


# Algorithm 2: its start diverges to 0 for v < -3 (2nL)^(-1/3), and its update has u^t on both sides.


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-3, 1.0, -1e-12, -1e-3, -1.0, -3.1, -1e3, 1e6, -1e12, 1e12])
@pytest.mark.parametrize("step", [1e-12, 1e-2, 1.0, 1e12])
@pytest.mark.parametrize("n", [1, 10**6])
def test_the_prox_of_the_inverse_is_the_positive_root_of_its_cubic(n, step, size):
    """The cubic 2n/step (u^3 - v u^2) - 1 changes sign, in exact arithmetic, within 1e-13 of the answer."""
    (u,) = prox_inverse(np.array([size]), step, n)
    v, a = Fraction(size), 2 * n / Fraction(step)
    below, above = (Fraction(u) * (1 + Fraction(relative, 10**13)) for relative in (-1, 1))
    assert a * below**2 * (below - v) < 1 < a * above**2 * (above - v)


# Section 6.1: (21) is not (15) if c > 0.


def test_the_published_algorithm_solves_the_penalized_problem_and_not_the_normalized_one(noisy):
    optimum, _ = oracles.solve_v(noisy, 1.0, 0.0, SPARSE.c)
    _, V = oracles.solve_normalized(noisy, 1.0, 0.0, SPARSE.c)
    at_best_scale = 1 - oracles.mean_sqrt(V, noisy) ** 2 / (1 + oracles.gamma(V, 0.0, SPARSE.c))
    assert at_best_scale > optimum + 2e-3
    result = dc.fista(noisy, 1.0, SPARSE, tol=2e-3, variant="published")
    assert result.gap <= 2e-3
    assert result.lower - oracles.TOL <= optimum <= result.upper + oracles.TOL


# After (relaxquad): X (X'X + n Lambda)^-1 X; it ends with X'.


@pytest.mark.parametrize("n", [4, 9])  # the printed formula is defined only at n = d
def test_the_ridge_problem_in_labels_has_the_transpose(n):
    X = np.random.default_rng(n).standard_normal((n, 4))
    X -= X.mean(axis=0)
    a = np.array([0.5, 0.2, 0.3, 1.0])
    Q = column_basis(X, a)
    np.testing.assert_allclose(Q @ Q.T, oracles.hat(X, a), atol=1e-12)
    y = np.where(np.arange(n) % 3, 1.0, -1.0)
    v = np.linalg.solve(X.T @ X + n * np.diag(a**2), X.T @ (y - y.mean()))
    exact = np.mean((y - y.mean() - X @ v) ** 2) + np.sum((a * v) ** 2)
    assert oracles.y_objective(np.outer(y, y), X, 0.0, a) == pytest.approx(exact, abs=1e-12)
    result = dc.solve(dc.penalized_nu(X, 1.0, dc.Penalty(a=a)), "CLARABEL")
    assert result.value == pytest.approx(oracles.solve_v(X, 1.0, a)[0], abs=oracles.TOL)


# The stopping rule eps log d is 0 if d = 1.


@pytest.mark.parametrize("c", [0.0, 0.4])
def test_the_published_algorithm_stops_when_there_is_one_feature(c):
    x = np.random.default_rng(0).standard_normal((20, 1))
    x -= x.mean()
    result = dc.fista(x, 1.0, dc.Penalty(c=c), variant="published", max_iter=2000)
    expected = 1 - np.mean(np.abs(x)) ** 2 / (np.mean(x**2) + c**2)
    assert result.status is dc.Status.OPTIMAL
    assert result.lower - 1e-9 <= expected <= result.upper + 1e-9
