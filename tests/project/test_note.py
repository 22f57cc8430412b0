"""Statements of the companion note hold on instances."""

from collections import namedtuple

import cvxpy as cp
import numpy as np
import pytest
import scipy

import diffrac_cvx as dc
from experiments.sparse_regime.models import dimension_bound

# Theorem 3 with infinitely many points and a flat direction: three unknowns, by symmetry

# V = w uu' + e (I_J - uu') + f (I - I_J), u = v/|v|, J the support, tr of V with the covariance, and the optimal value
Population = namedtuple("Population", ["w", "e", "f", "trace", "value"])


def chi_squared(k, nodes=24):
    """Quadrature nodes and weights for the mean over a chi-squared variable of k > 0 degrees of freedom."""
    at = np.arange(nodes)  # Golub and Welsch: weights of sum 1, even if Gamma(k/2) overflows
    beside = np.sqrt(at[1:] * (at[1:] + k / 2 - 1))
    values, vectors = scipy.linalg.eigh_tridiagonal(2.0 * at + k / 2, beside)
    return 2.0 * values, vectors[0] ** 2


def solve_population(l, d, lam, m=1.0, *, standardized=False):
    r"""Return the solution as n tends to infinity: X_J = [y, Z] H, H with a flat first row, Gaussian Z of variance m.

    .. math:: \min\ 1 - 2\, \mathbb{E} \sqrt{w + m e \chi^2_{l-1} + m f \chi^2_{d-l}}
              + w + m (l-1) e + m (d-l) f + \lambda (w + (l-1) e + (d-l) f + (l-1) |w - e|)

    The distribution of x is invariant under permutations of the support and of the other coordinates and under signs of
    the latter, and the problem is convex, so some solution has this form.  Standardised columns have other weights.
    """
    (inside, inside_weights), (outside, outside_weights) = chi_squared(l - 1), chi_squared(d - l)
    inside, weights = m * inside[:, None], inside_weights[:, None] * outside_weights
    outside = m * outside
    moments, counts = np.array([1.0, 1.0 + m * (l - 1), m * (d - l)]), np.array([1.0, l, d - l])
    joined = np.array([1.0, 0.0, 0.0])
    if standardized:  # the penalty in the units of the columns as they are
        square = (1.0 + m * (l - 1)) / l
        counts, joined = counts * (square, square, m), square * joined
    linear = moments + lam * counts + lam * (l - 1) * joined
    units = np.array([1.0, 1.0, 1.0 / d])  # of the variables, so that all are of the order of one

    def objective(x):
        gap, e, f = x = units * x  # w = e + gap
        root = np.sqrt(gap + e + e * inside + f * outside + 1e-300)
        slopes = [np.sum(weights / root * slope) for slope in (1.0, 1.0 + inside, outside)]
        return 1.0 - 2.0 * np.sum(weights * root) + linear @ x, units * (linear - slopes)

    starts = ([0.9, 0.01 / d, 0.01], [0.1, 0.9 / d, 0.9])
    options = {"jac": True, "bounds": [(0.0, None)] * 3, "method": "L-BFGS-B"}
    tight = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    best = min(
        (scipy.optimize.minimize(objective, x, options=tight, **options) for x in starts), key=lambda run: run.fun
    )
    gap, e, f = best.x = units * best.x
    return Population(e + gap, e, f, moments @ best.x, best.fun)


def share_of_direction(l, d, lam, m=1.0, *, standardized=False):
    """Return e'Ve / tr(V Sigma) at the solution of `solve_population`."""
    found = solve_population(l, d, lam, m, standardized=standardized)
    return found.w / found.trace


@pytest.mark.parametrize(("m", "standardized"), [(1.0, False), (0.4, False), (0.4, True)])
def test_the_population_has_the_value_of_a_large_sample(m, standardized):
    sparsity, d, lam = 4, 10, 0.02
    rng = np.random.default_rng(0)
    X = np.column_stack([np.tile([1.0, -1.0], 10_000), m**0.5 * rng.standard_normal((20_000, d - 1))])
    X[:, :4] = X[:, :4] @ scipy.linalg.hadamard(4) / 2.0
    scale = X.std(axis=0) if standardized else np.ones(d)
    found = solve_population(sparsity, d, lam, m, standardized=standardized)
    sample = dc.low_rank(X / scale, 1.0, dc.Penalty.l1(lam), tol=1e-5)
    V = (sample.V / np.outer(scale, scale))[:4, :4]
    assert sample.value == pytest.approx(found.value, abs=2e-3)
    assert np.ones(4) @ V @ np.ones(4) / 4 == pytest.approx(found.w, abs=0.03)


@pytest.mark.parametrize("m", [2.0, 1.0, 0.6])
@pytest.mark.parametrize("lost", [0.3, 0.7, 1.2])
@pytest.mark.parametrize("sparsity", [2, 4, 8])
def test_theorem_3_the_share_of_the_direction_tends_to_its_limit(sparsity, lost, m):
    kappa = lost / (sparsity - 1.0 / m)
    errors = [abs(share_of_direction(sparsity, d, kappa / d, m) - max(1.0 - lost, 0.0)) for d in (64, 512, 4096)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.004


@pytest.mark.parametrize("m", [2.0, 0.2])
@pytest.mark.parametrize("lost", [0.3, 1.2])
def test_theorem_3_with_standardized_columns_the_limit_has_the_variance_of_the_noise_as_a_factor(lost, m):
    kappa = lost / (m * 3.0)
    errors = [
        abs(share_of_direction(4, d, kappa / d, m, standardized=True) - max(1.0 - lost, 0.0)) for d in (64, 512, 4096)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


@pytest.mark.parametrize("m", [0.25, 0.2])
def test_theorem_3_no_weight_of_the_order_of_1_over_d_loses_the_direction_if_the_noise_is_small(m):
    shares = [share_of_direction(4, d, 20.0 / d, m) for d in (256, 4096, 65536)]
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.995


@pytest.mark.parametrize("d", [64, 4096, 65536])
def test_theorem_3_below_1_over_l_the_direction_is_kept_as_the_weight_tends_to_0_whatever_d_is(d):
    shares = [share_of_direction(4, d, lam, 0.2) for lam in (1e-2, 1e-3, 1e-4)]
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.998
    assert share_of_direction(4, 65536, 1e-3, 0.3) < 0.01


def test_the_bound_of_the_statistical_dimension_fits_powers_between_1_and_2_and_tends_to_the_order_of_d_log_d():
    sizes = np.array([16, 24, 32, 48, 64, 96, 128, 192, 256])
    for sparsity, power in ((2, 1.2), (4, 1.4), (8, 1.8)):
        bounds = [1.0 + dimension_bound(sparsity, d) for d in sizes]
        assert np.polyfit(np.log(sizes), np.log(bounds), 1)[0] == pytest.approx(power, abs=0.05)
        order = [(sparsity - 1) ** 2 * d * np.log(d / (sparsity - 1) ** 2) for d in (1e4, 1e6, 1e8)]
        ratios = [dimension_bound(sparsity, d) / size for d, size in zip((1e4, 1e6, 1e8), order, strict=True)]
        assert max(ratios) < 1.0
        assert max(ratios) / min(ratios) < 1.5


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
