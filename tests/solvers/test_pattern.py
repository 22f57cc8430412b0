"""V on a pattern: it agrees with `low_rank`, its derivatives are exact, and it refuses what it cannot solve quickly."""

import numpy as np
import pytest
from instances import assert_overlap, planted

import diffrac_cvx as dc
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import direction_problem
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.factored import pattern


def solve(X, nu, penalty, tol, max_iter, sample_weight=None):
    problem = direction_problem(read_points(X, sample_weight).X, nu, penalty)
    return pattern.pattern_iterates(problem, WarmStart(), Stopping(tol, max_iter))


def check(X, nu, penalty, sample_weight=None):
    """Check that the pattern and the other strategies enclose one optimum."""
    points = [one.bounds for one in solve(X, nu, penalty, 1e-7, 200, sample_weight) if isinstance(one, Iterate)]
    found = dc.Bracket(max(one.lower for one in points), min(one.upper for one in points))
    assert found.gap <= 1e-6
    assert_overlap(found, dc.low_rank(X, nu, penalty, tol=1e-8, sample_weight=sample_weight), 1e-9)


UNEQUAL = np.linspace(0.05, 0.3, 12)


@pytest.mark.parametrize("nu", [1.0, 0.4])
@pytest.mark.parametrize(
    "penalty",
    [
        dc.Penalty.l1(0.02),
        dc.Penalty(c=UNEQUAL),
        dc.Penalty(a=UNEQUAL[::-1], c=UNEQUAL),
        dc.Penalty(c=np.where(np.arange(12) < 2, 0.0, 0.15)),
    ],
    ids=["equal weights", "unequal weights", "ridge", "two free coordinates"],
)
def test_the_pattern_and_the_other_strategies_enclose_one_optimum(nu, penalty):
    check(planted(60, 12, sparsity=3), nu, penalty)


def test_sample_weights_and_zero_rows_take_part():
    X = planted(60, 12, sparsity=3)
    X[:2] = X[2:].mean(axis=0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    weights[:2] = 1.0
    X -= weights @ X / weights.sum()
    X[:2] = 0.0
    check(X, 1.0, dc.Penalty.l1(0.02), weights)


@pytest.fixture
def barrier():
    """Terms of the barrier problem at an interior point, with pairs and a free coordinate."""
    rng, n, d = np.random.default_rng(1), 30, 5
    X = rng.standard_normal((n, d))
    A, c = X.T @ X / n, np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    J, K = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1]), np.array([0, 1, 2, 3, 4, 4, 4, 4, 4, 2, 3])
    signs = np.append(np.ones(9), [-1.0, 1.0])
    Phi, h, copies = pattern.pattern_terms(X, A, np.outer(c, c), J, K, signs)
    w = np.concatenate([rng.uniform(1, 2, 5), 0.1 * rng.standard_normal(4), [0.1, 0.2]])
    return X, A, c, (J, K, signs), (Phi, h, copies), w


def test_the_terms_of_the_pattern_are_those_of_v(barrier):
    X, A, c, (J, K, signs), (Phi, h, _), w = barrier
    V = pattern.pattern_matrix(5, J, K, signs * w)
    np.testing.assert_allclose(Phi @ w, np.einsum("ij,jk,ik->i", X, V, X))
    np.testing.assert_allclose(h @ w, np.trace(A @ V) + c @ np.abs(V) @ c)


def test_gradient_and_hessian_of_the_barrier_are_finite_differences(barrier):
    _, _, _, (J, K, signs), (Phi, h, copies), w = barrier
    mu, signed = 0.03, np.array([9, 10])

    def value(w):
        L = np.linalg.cholesky(pattern.pattern_matrix(5, J, K, signs * w))
        return pattern.barrier_value(Phi, h, 30, mu, w, L, signed)

    def derivatives(w):
        W = np.linalg.inv(pattern.pattern_matrix(5, J, K, signs * w))
        z = np.zeros(len(w))
        z[signed] = mu / w[signed]
        return pattern.barrier_derivatives((Phi, h, 30), (J, K, copies, signed), w, W, mu, mu * W, z)

    gradient, H = derivatives(w)
    steps = 1e-5 * np.eye(len(w))
    np.testing.assert_allclose(gradient, [(value(w + e) - value(w - e)) / 2e-5 for e in steps], rtol=1e-6, atol=1e-8)
    differences = np.array([(derivatives(w + e)[0] - derivatives(w - e)[0]) / 2e-5 for e in steps])
    np.testing.assert_allclose(H, differences, rtol=1e-6, atol=1e-7)


def test_it_ends_after_few_steps_if_most_pairs_are_in_v():
    points = list(solve(planted(400, 60, sparsity=3), 1.0, dc.Penalty.l1(1e-5), 1e-6, 200))
    assert all(isinstance(point, float) for point in points)
    assert len(points) <= 20
