"""Statements of the companion note hold on instances."""

import cvxpy as cp
import numpy as np
import pytest
from population import solve_population

import diffrac_cvx as dc
from experiments.phase_transition.cells import points_of


def test_the_population_has_the_value_of_a_large_sample():
    sparsity, d, lam = 4, 10, 0.02
    X, _, _ = points_of(sparsity, "flat", 8000, d, 0)
    found = solve_population(sparsity, d, lam)
    sample = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=1e-5)
    assert sample.value == pytest.approx(found.value, abs=2e-3)
    assert np.ones(4) @ sample.V[:4, :4] @ np.ones(4) / 4 == pytest.approx(found.w, abs=0.03)


@pytest.mark.parametrize("kappa", [0.3, 0.7, 1.2])
@pytest.mark.parametrize("sparsity", [2, 4, 8])
def test_theorem_3_the_weight_of_the_direction_tends_to_one_minus_kappa(sparsity, kappa):
    limit = max(1.0 - kappa, 0.0)
    errors = []
    for d in (64, 512, 4096):
        found = solve_population(sparsity, d, kappa / ((sparsity - 1) * d))
        trace = found.w + (sparsity - 1) * found.e + (d - sparsity) * found.f
        errors.append(abs(found.w / trace - limit))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.002


def test_theorem_3_the_cubic_bounds_of_the_root_hold():
    x = np.concatenate([np.linspace(-1.0, 3.0, 4001), np.geomspace(3.0, 1e4, 100)])
    below, above = 1 + x / 2 - x**2 / 8 - 0.375 * np.abs(x) ** 3, 1 + x / 2 - x**2 / 8 + x**3 / 16
    assert np.all(below <= np.sqrt(1 + x) + 1e-15)
    assert np.all(np.sqrt(1 + x) <= above + 1e-15)


def relaxation_of(rows, A, c):
    """Solve the problem of Theorem 6 by an interior point."""
    V = cp.Variable(A.shape, PSD=True)
    roots = cp.sum(cp.sqrt(cp.sum(cp.multiply(rows @ V, rows), axis=1)))
    penalty = cp.sum(cp.multiply(np.outer(c, c), cp.abs(V)))
    return cp.Problem(cp.Minimize(1 - 2 * roots + cp.trace(A @ V) + penalty)).solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", range(3))
def test_theorem_7_the_relaxation_of_one_row_is_exact_with_any_penalty(seed):
    rng = np.random.default_rng(seed)
    B, a, c = rng.standard_normal((8, 4)), rng.standard_normal(4), rng.uniform(0.1, 1.0, 4)
    A = B.T @ B / 8 + 0.01 * np.eye(4)
    v = cp.Variable(4)
    labels = 1 - 2 * a @ v + cp.quad_form(v, cp.psd_wrap(A)) + cp.square(c @ cp.abs(v))
    cost = cp.Problem(cp.Minimize(labels)).solve(solver="CLARABEL")
    assert relaxation_of(a[None], A, c) == pytest.approx(cost, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_theorem_7_the_gap_of_a_node_is_at_most_the_square_of_what_is_free_beside_it(seed):
    rng = np.random.default_rng(seed)
    rows, a = 0.2 * rng.standard_normal((5, 3)), np.array([0.6, 0.0, 0.0])
    node = relaxation_of(np.vstack([a, rows]), np.eye(3), np.zeros(3))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    cost = np.min(1 - np.sum((a + signs @ rows) ** 2, axis=1))
    assert -1e-6 < cost - node <= np.linalg.norm(rows[:, 1:], axis=1).sum() ** 2 + 1e-6


def test_theorem_6_known_labels_are_one_row():
    X, y = dc.datasets.make_planted(16, 3, noise=0.4, rng=0)[:2]
    constraints = dc.Constraints(labels=np.where(np.arange(16) < 4, y, np.nan))
    X = X - X.mean(axis=0)
    rows = np.vstack([y[:4] @ X[:4], X[4:]]) / 16
    expected = relaxation_of(rows, X.T @ X / 16 + 0.09 * np.eye(3), np.full(3, 0.1))
    found = dc.low_rank(X, ridge=0.09, lam=0.01, tol=1e-8, constraints=constraints)
    assert found.lower - 1e-6 <= expected <= found.upper + 1e-6
