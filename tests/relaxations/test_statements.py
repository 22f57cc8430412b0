"""Mathematical statements of the paper, each verified by brute force or by two computations that must agree.

If a sentence of the paper needs a condition, or is not true as printed, the test documents this.  The last section has
the misprints of formulas: each test fails if the printed one is used.  The minus sign missing in appendix G.2, in the
gradient of the dual, is tested in `solvers/test_smoothing.py`.
"""

import ast
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import oracles
import pytest
import scipy
from instances import centered_normal, with_noise_columns
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.solvers.fista_dual import prox_inverse, published_dual, softmax_root, softmax_value
from experiments.harness.findings import STATEMENTS

TESTS = Path(__file__).parents[1]
ROUNDING = 1e-9
SPARSE = dc.Penalty(c=[0.3, 0.1, 0.2])
pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")


def signs(n, positive, seed=0):
    return np.random.default_rng(seed).permutation(np.repeat([1.0, -1.0], [positive, n - positive]))


def correlation(X, w, y):
    """The objective of Eq. (2)."""
    return (y @ X @ w) ** 2 / (np.sum((y - y.mean()) ** 2) * np.sum((X @ w) ** 2))


def distortion(X, y):
    """The mean squared distance of the points to the mean of their cluster."""
    parts = [X[y == sign] for sign in (1.0, -1.0)]
    return sum(np.sum((part - part.mean(axis=0)) ** 2) for part in parts) / len(X)


def split_labelings(n):
    """All labellings with two clusters."""
    return [y for y in oracles.labelings(n) if abs(y.sum()) < n]


def regression(X, y):
    """The least-squares direction of labels, w of section 2.1."""
    return np.linalg.lstsq(X, y)[0]


def unit_rows(F):
    return F / np.linalg.norm(F, axis=1, keepdims=True)


def lifted_objective(X, Y, P, V, nu=1.0):
    """The objective of Eq. (11)."""
    n = len(X)
    return (
        np.trace(oracles.centering(n) @ Y) - 2 * np.trace(P.T @ X) + np.trace(X.T @ X @ V)
    ) / n + nu * Y.sum() / n**2


# The list itself


def test_the_tests_named_by_the_statements_exist():
    functions = {
        f"{path.relative_to(TESTS)}::{node.name}"
        for path in TESTS.rglob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    named = {test for statement in STATEMENTS for test in statement.tests}
    assert named - functions == set()
    assert len(named) > 40


# Section 2.1


@pytest.mark.parametrize("seed", range(4))
def test_given_either_of_direction_and_labels_the_other_is_the_papers(seed):
    X, rng = centered_normal(9, 3, seed), np.random.default_rng(seed)
    y = rng.permutation([1.0] * 4 + [-1.0] * 5)
    w, others = regression(X, y), rng.standard_normal((2000, 3))
    assert max(correlation(X, other, y) for other in [*others, *(w + 1e-3 * others)]) <= correlation(X, w, y)
    v = rng.standard_normal(3)
    best = max(correlation(X, v, other) for other in split_labelings(9))
    assert correlation(X, v, dc.rounding.kmeans_1d(X @ v)) == pytest.approx(best, rel=1e-12)
    closest = min(split_labelings(9), key=lambda other: distortion((X @ v)[:, None], other))
    assert correlation(X, v, closest) == pytest.approx(best, rel=1e-12)


def test_the_distortion_is_the_variance_less_the_correlation():
    X, w = centered_normal(8, 3), np.array([0.3, -1.0, 0.5])
    for y in split_labelings(8):
        explained = (y @ X @ w) ** 2 / np.sum((y - y.mean()) ** 2)
        assert 8 * distortion((X @ w)[:, None], y) == pytest.approx(np.sum((X @ w) ** 2) - explained, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_labels_of_all_directions_are_those_of_k_means_on_whitened_data(seed):
    X, ys = centered_normal(9, 3, seed), split_labelings(9)
    whitened, H = np.linalg.qr(X)[0], oracles.hat(X)
    gains = np.array([y @ H @ y / np.sum((y - y.mean()) ** 2) for y in ys])
    losses = np.array([9 * distortion(whitened, y) for y in ys])
    np.testing.assert_allclose(gains + losses, 3.0, atol=1e-12)  # the variance of three white columns
    np.testing.assert_allclose(gains, [correlation(X, regression(X, y), y) for y in ys], atol=1e-12)


# Section 2.2


def test_the_residual_variance_is_the_variance_of_the_labels_less_the_correlation_and_the_problems_agree():
    X, ys = centered_normal(9, 3), split_labelings(9)
    misfit = np.array([np.mean((y - y.mean() - X @ regression(X, y)) ** 2) for y in ys])
    variance, best = np.var(ys, axis=1), np.array([correlation(X, regression(X, y), y) for y in ys])
    np.testing.assert_allclose(misfit, variance * (1 - best), atol=1e-12)
    imbalance = np.mean(ys, axis=1) ** 2
    np.testing.assert_allclose(variance, 1 - imbalance, atol=1e-12)
    for alpha in np.unique(imbalance.round(12)):
        mine = np.flatnonzero(np.abs(imbalance - alpha) < 1e-9)
        assert mine[misfit[mine].argmin()] == mine[best[mine].argmax()]


# Section 2.3


def test_the_direct_relaxation_is_one_convex_problem_whose_value_is_that_of_perfect_clusters():
    """The ratio at Y and the objective at its M agree, so both problems have the same value: 1 for all data."""
    X = centered_normal(10, 2)
    H, ones = oracles.hat(X), np.ones(10)
    F = unit_rows(np.random.default_rng(0).standard_normal((10, 10)))
    Y = F @ F.T
    M = Y / (1 - ones @ Y @ ones / 100)
    np.testing.assert_allclose(np.diag(M), 1 + ones @ M @ ones / 100, atol=1e-9)
    ratio = np.trace(Y @ H) / np.trace(oracles.centering(10) @ Y)
    assert np.trace(M @ H) / 10 == pytest.approx(ratio, rel=1e-9)
    result = dc.solve(dc.correlation(X), "CLARABEL", tol=1e-2)
    assert result.lower == -10.0
    assert result.value == pytest.approx(-10.0, rel=1e-3)  # the infimum is not attained: M grows without bound
    assert np.min(result.F @ result.F.T) > 0.9  # Y tends to 11'


def test_beyond_nu_one_nothing_changes_if_and_only_if_the_solution_at_one_is_balanced():
    """The value is concave and does not decrease in nu; its slope is 1'Y1/n^2, which tends to 0."""
    symmetric = centered_normal(6, 2, 1)
    symmetric = np.vstack([symmetric, -symmetric])  # Y = -Y on the two halves: 1'Y1 = 0 at nu = 1
    at_one, Y = oracles.solve_y(symmetric, 1.0)
    assert Y.sum() / 144 == pytest.approx(0.0, abs=1e-5)
    assert oracles.solve_y(symmetric, 20.0)[0] == pytest.approx(at_one, abs=oracles.TOL)
    skew = np.exp(centered_normal(12, 1, 3))
    skew -= skew.mean()
    values, imbalances = zip(
        *((value, Y.sum() / 144) for value, Y in (oracles.solve_y(skew, nu) for nu in (1.0, 2.0, 8.0))), strict=True
    )
    assert values[2] > values[0] + 1e-2  # so nu > 1 is another problem here, though sign(x) is its answer at nu = 1
    assert imbalances[0] > imbalances[1] >= imbalances[2] - 1e-6
    assert values[1] - values[0] <= imbalances[0] + oracles.TOL


# Section 2.4


@pytest.mark.parametrize("nu", [0.3, 1.0])
def test_the_lifted_problem_at_the_papers_v_and_p_is_that_in_labels_and_no_others_are_better(noisy, nu):
    (n, d), rng = noisy.shape, np.random.default_rng(0)
    F = unit_rows(rng.standard_normal((n, 4)))
    Y, inverse = F @ F.T, np.linalg.inv(noisy.T @ noisy)
    P = Y @ noisy @ inverse
    best = lifted_objective(noisy, Y, P, inverse @ noisy.T @ P, nu)
    assert best == pytest.approx(oracles.y_objective(Y, noisy, nu), abs=1e-12)
    for _ in range(200):  # P = F G', V = G G' are all the blocks compatible with this Y, up to a larger V
        G = (inverse @ noisy.T @ F) + 0.1 * rng.standard_normal((d, 4))
        assert lifted_objective(noisy, Y, F @ G.T, G @ G.T, nu) >= best - 1e-12


def test_at_nu_one_the_papers_y_and_p_are_the_best_for_a_v(noisy):
    (n, d), rng = noisy.shape, np.random.default_rng(1)
    G = rng.standard_normal((d, d))
    V = G @ G.T
    scale = 1 / np.sqrt(np.einsum("ij,jk,ik->i", noisy, V, noisy))
    Y = scale[:, None] * (noisy @ V @ noisy.T) * scale
    P = scale[:, None] * (noisy @ V)
    block = np.block([[Y, P], [P.T, V]])
    assert np.linalg.eigvalsh(block)[0] > -1e-9
    best = lifted_objective(noisy, Y, P, V)
    assert best == pytest.approx(oracles.v_objective(V, noisy), abs=1e-12)
    for _ in range(200):
        F = unit_rows(scale[:, None] * (noisy @ G) + 0.1 * rng.standard_normal((n, d)))
        assert lifted_objective(noisy, F @ F.T, F @ G.T, V) >= best - 1e-12


# Section 3


def test_gamma_of_a_rank_one_matrix_is_the_ridge_and_the_squared_l1_norm():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, c, v = rng.random(4), rng.random(4), rng.standard_normal(4)
        expected = np.sum((a * v) ** 2) + np.sum(c * np.abs(v)) ** 2
        assert oracles.gamma(np.outer(v, v), a, c) == pytest.approx(expected, rel=1e-12)
        X = centered_normal(9, 4, 1)
        y = np.where(X @ v >= 0, 1.0, -1.0)
        direct = np.mean((y - X @ v) ** 2) + expected  # Eq. (9) at nu = 1 and these labels
        assert oracles.v_objective(np.outer(v, v), X, a, c) == pytest.approx(direct, rel=1e-12)


# Section 4


@pytest.mark.parametrize("k", [1, 2])
def test_the_relaxation_of_one_label_bounds_the_problem_of_k_labels_divided_by_k(k):
    X = centered_normal(6, 2, 4)
    bound, _ = oracles.solve_y(X, 0.5)
    single = {tuple(y): oracles.y_objective(np.outer(y, y), X, 0.5) for y in oracles.labelings(6)}
    for ys in combinations(single, k):
        y = np.array(ys).T
        Y = y @ y.T / k
        np.testing.assert_allclose(np.diag(Y), 1.0)
        value = oracles.y_objective(Y, X, 0.5)
        assert value == pytest.approx(np.mean([single[row] for row in ys]), abs=1e-12)
        assert value >= bound - oracles.TOL


@pytest.mark.parametrize("k", [2, 3])
def test_partitions_are_above_ones_over_k_and_not_below_as_printed(k):
    classes = np.eye(k)[np.random.default_rng(0).integers(0, k, 9)]
    Y = classes @ classes.T
    np.testing.assert_allclose(np.diag(Y), 1.0)
    assert np.linalg.eigvalsh(Y - np.ones((9, 9)) / k)[0] > -1e-9
    assert np.linalg.eigvalsh(np.ones((9, 9)) / k - Y)[0] < -0.1


# Section 5.1: balanced


@pytest.mark.parametrize("law", ["gaussian", "rademacher", "student"])
def test_balanced_labels_and_their_direction_are_optimal_whatever_the_noise(law):
    for seed in range(5):
        y = signs(12, 6, seed)
        Z = dc.datasets.planted.DISTRIBUTIONS[law](np.random.default_rng(seed), (12, 3))
        X = np.column_stack([y, Z - Z.mean(axis=0)])
        v = np.array([1.0, 0.0, 0.0, 0.0])
        assert oracles.y_objective(np.outer(y, y), X) == pytest.approx(0.0, abs=ROUNDING)
        assert oracles.v_objective(np.outer(v, v), X) == pytest.approx(0.0, abs=ROUNDING)
        assert oracles.solve_v(X)[0] >= -oracles.TOL  # no Y and no V has a negative value


def test_signs_agree_for_all_labels_if_and_only_if_the_noise_is_below_one():
    rng = np.random.default_rng(0)
    for size in (0.5, 0.99, 1.01, 2.0):
        epsilon = rng.uniform(-1, 1, 8)
        epsilon *= size / np.abs(epsilon).max()
        always = all(np.all(y * (y + epsilon) > 0) for y in map(np.array, product([-1.0, 1.0], repeat=8)))
        assert always == (size < 1)


# Section 5.1.4: unbalanced


@pytest.mark.parametrize("seed", range(3))
def test_unbalanced_labels_and_their_direction_are_not_optimal_at_nu_one(seed):
    y = signs(60, 42, seed)
    X = np.column_stack([y - y.mean(), centered_normal(60, 3, seed + 10)])
    v = np.array([1.0, 0.0, 0.0, 0.0])
    optimum = dc.low_rank(X, tol=1e-8).upper
    assert oracles.y_objective(np.outer(y, y), X) == pytest.approx(y.mean() ** 2, abs=ROUNDING)
    scaled = min(oracles.v_objective(t * np.outer(v, v), X) for t in np.linspace(0.5, 2, 301))
    assert optimum < y.mean() ** 2 - 1e-3
    assert optimum < scaled - 1e-3


def test_unbalanced_labels_stay_optimal_in_one_dimension_and_where_only_the_smaller_cluster_is_noisy():
    """The paper's proof takes n to infinity with noise in both clusters; without it the statement does not hold."""
    y = signs(20, 13)
    X = (y - y.mean())[:, None]
    assert oracles.solve_y(X)[0] == pytest.approx(oracles.y_objective(np.outer(y, y), X), abs=oracles.TOL)
    Z = np.where(y < 0, np.random.default_rng(0).standard_normal(20), 0.0)
    Z[y < 0] -= Z[y < 0].mean()
    X = np.column_stack([X, 0.3 * Z])
    assert oracles.solve_y(X)[0] == pytest.approx(oracles.y_objective(np.outer(y, y), X), abs=oracles.TOL)


@pytest.mark.parametrize("alpha_step", [0.0, 0.4, 0.9])
def test_the_projected_rank_two_solution_has_the_labels_as_signs(alpha_step):
    y = signs(15, 11)
    smallest = y.mean() ** 2
    weight = 1 - alpha_step
    Y = weight * np.outer(y, y) + (1 - weight)
    assert Y.sum() / 225 == pytest.approx(smallest + alpha_step * (1 - smallest))
    projected = oracles.centering(15) @ Y @ oracles.centering(15)
    principal = np.linalg.eigh(projected)[1][:, -1]
    assert abs(np.mean(np.sign(principal) * y)) == 1.0


@pytest.mark.parametrize(
    "fraction", [0.4, *(pytest.param(fraction, marks=pytest.mark.slow) for fraction in (0.0, 0.9))]
)
def test_unbalanced_labels_give_the_rank_two_solution_of_the_lemma(fraction):
    y = signs(40, 28)
    X = with_noise_columns(y[:, None], 3, 1)
    smallest = y.mean() ** 2
    alpha = smallest + fraction * (1 - smallest)
    weight = (1 - alpha) / (1 - smallest)
    Y = weight * np.outer(y, y) + (1 - weight)
    assert oracles.y_objective(Y, X, nu=0.0) == pytest.approx(0.0, abs=ROUNDING)
    assert dc.certify_y(X, Y, alpha=alpha).upper <= ROUNDING
    result = dc.solve(dc.constrained_alpha(X, alpha), "CLARABEL")
    assert result.gap <= 1e-4
    assert result.lower - ROUNDING <= 0.0 <= result.upper + ROUNDING
    assert abs(np.mean(y * dc.rounding.sign_centered(result.F))) == 1.0
    assert dc.solve(dc.constrained_alpha(X, 0.5 * smallest), "CLARABEL").lower > 1e-3  # less than that of the labels


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_mixtures_of_labels_and_one_cluster_are_optimal_at_nu_zero(fraction):
    y = signs(20, 13)
    Y = fraction * np.outer(y, y) + (1 - fraction)
    assert dc.certify_y(with_noise_columns(y[:, None], 3, 1), Y, nu=0.0).upper <= ROUNDING


# Section 5.2 and appendix E: sparse


def test_one_sparse_directions_are_solved_by_two_means_on_each_column():
    for seed in range(5):
        X = centered_normal(8, 4, seed)
        best = max(correlation(X, w, y) for y in split_labelings(8) for w in np.eye(4))
        found = max(correlation(X, w, dc.rounding.kmeans_1d(X @ w)) for w in np.eye(4))
        assert found == pytest.approx(best, rel=1e-12)


def one_sparse(variances, n=24, seed=0):
    """Balanced labels and columns of given variances, and V* for a lambda."""
    Z = centered_normal(n, len(variances), seed)
    Z *= np.sqrt(variances / np.mean(Z**2, axis=0))
    return np.column_stack([signs(n, n // 2, seed), Z])


def expected_hessian(d, m, beta):
    """E x_j^2 x_k^2 with x_1 = y and noise of second moment m and fourth moment beta m^2."""
    moments = np.full((d, d), m**2)
    moments[0] = moments[:, 0] = m
    np.fill_diagonal(moments, [1.0, *[beta * m**2] * (d - 1)])
    return moments


def cross_moments(X):
    """The largest entries of y'Z/n and of the part of Z'Z/n beside the diagonal, for X = (y, Z)."""
    S = X.T @ X / len(X)
    return np.abs(S[0, 1:]).max(), np.abs(S[1:, 1:] - np.diag(np.diag(S)[1:])).max()


def star(d, lam):
    V = np.zeros((d, d))
    V[0, 0] = 1 / (1 + lam) ** 2
    return V


@pytest.mark.parametrize("lam", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("variances", [[1.0, 1.0, 1.0], [0.2, 0.99, 0.5], [0.01, 1.0, 0.3]])
def test_the_one_sparse_solution_is_optimal_where_no_column_has_a_larger_variance(variances, lam):
    X, c = one_sparse(variances), lam**0.5
    at_star = oracles.v_objective(star(4, lam), X, 0.0, c)
    assert at_star == pytest.approx(lam / (1 + lam), abs=ROUNDING)
    assert oracles.solve_v(X, 1.0, 0.0, c)[0] == pytest.approx(at_star, abs=oracles.TOL)


@pytest.mark.parametrize("lam", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("largest", [1.02, 1.5, 4.0])
def test_a_column_of_larger_variance_makes_the_one_sparse_solution_not_optimal(largest, lam):
    """The slope along e_j e_j' is lambda (1 - s_j), s_j the variance of column j, so the converse holds."""
    X, c = one_sparse([0.5, largest, 0.9]), lam**0.5
    at_star = oracles.v_objective(star(4, lam), X, 0.0, c)
    steps = [1e-6 * np.diag(e) for e in np.eye(4)[1:]]
    slopes = [(oracles.v_objective(star(4, lam) + step, X, 0.0, c) - at_star) / 1e-6 for step in steps]
    np.testing.assert_allclose(slopes, lam * (1 - np.array([0.5, largest, 0.9])), rtol=1e-3, atol=1e-4)
    assert slopes[1] < 0
    little = 1e-4 * lam * (largest - 1) * np.diag(np.eye(4)[2])  # of the column is better
    assert oracles.v_objective(star(4, lam) + little, X, 0.0, c) < at_star


def test_around_the_one_sparse_solution_the_objective_grows_as_the_appendix_says():
    rng = np.random.default_rng(0)
    n, d, lam, delta = 400, 4, 0.1, 0.2
    X = np.column_stack([signs(n, n // 2), rng.uniform(-0.95, 0.95, (n, d - 1))])
    assert np.abs(X.T @ X / n).max() <= 1 + 1e-12  # (A1)
    assert max(cross_moments(X)) <= delta  # (A2) and (A3)
    zeta = np.linalg.eigvalsh((X**2).T @ X**2 / n)[0]
    assert zeta > 0  # (A4)
    at_star = oracles.v_objective(star(d, lam), X, 0.0, lam**0.5)
    t = 1e-5
    for _ in range(200):
        G = rng.standard_normal((d, d))
        Delta = G @ G.T
        Delta[0] = Delta[:, 0] = rng.standard_normal(d) * 0.01
        Delta[0, 0] = rng.standard_normal()
        slope = (oracles.v_objective(star(d, lam) + t * Delta, X, 0.0, lam**0.5) - at_star) / t
        off = np.abs(Delta - np.diag(np.diag(Delta))).sum()
        assert slope >= lam * (1 - delta) * off - 1e-3
        e = np.append(rng.standard_normal(), rng.random(d - 1))
        step = 1e-3 * np.diag(e)
        gain = oracles.v_objective(star(d, lam) + step, X, 0.0, lam**0.5) - at_star
        bound = zeta * (1 + lam) ** 3 / 4 * np.sum((1e-3 * e) ** 2)
        assert gain >= bound * 0.98  # the remainder is of third order


@pytest.mark.parametrize(("m", "beta"), [(0.3, 1.5), (0.5, 1.9), (0.1, 6.0)])
def test_the_diagonal_part_of_the_expected_hessian_has_the_appendix_spectrum_with_beta_minus_one(m, beta):
    d = 5
    found = np.linalg.eigvalsh(expected_hessian(d, m, beta))
    trace = 1 + (d + beta - 2) * m**2
    root = (trace**2 - 4 * m**2 * (beta - 1)) ** 0.5
    expected = np.sort([(trace - root) / 2, (trace + root) / 2, *[m**2 * (beta - 1)] * (d - 2)])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found[0] >= m**2 * (beta - 1) / trace - 1e-12
    assert np.abs(found - m**2 * (beta - 2)).min() > 1e-3  # as printed


def test_the_four_assumptions_hold_for_bounded_noise_and_many_points():
    rng = np.random.default_rng(0)
    n, d, delta = 4000, 6, 0.1
    expected = np.linalg.eigvalsh(expected_hessian(d, 1 / 3, 9 / 5))[0]
    for _ in range(20):
        X = np.column_stack([signs(n, n // 2), rng.uniform(-1, 1, (n, d - 1))])
        assert np.abs(X.T @ X / n).max() <= 1 + 1e-12
        assert max(cross_moments(X)) <= delta
        assert np.linalg.eigvalsh((X**2).T @ X**2 / n)[0] >= (1 - delta) * expected


# Section 5.3


def test_mixtures_of_independent_labels_are_the_solutions_that_they_support():
    y = np.array(list(product([1.0, -1.0], repeat=3)) * 3)[:22]
    X = np.column_stack([y - y.mean(axis=0), centered_normal(22, 2)])
    imbalances = y.mean(axis=0) ** 2
    rng = np.random.default_rng(0)
    for _ in range(10):
        a = rng.dirichlet(np.ones(4))
        Y = a[0] + (y * a[1:]) @ y.T
        alpha = a[0] + a[1:] @ imbalances
        np.testing.assert_allclose(np.diag(Y), 1.0)
        assert Y.sum() / 22**2 == pytest.approx(alpha)
        assert alpha >= imbalances.min()
        assert oracles.y_objective(Y, X, 0.0) == pytest.approx(0.0, abs=ROUNDING)
        assert dc.certify_y(X, Y, alpha=alpha).upper <= ROUNDING
    extended = np.column_stack([np.ones(22), y])
    A = rng.standard_normal((4, 4))
    mixed = extended @ (A @ A.T) @ extended.T
    assert np.ptp(np.diag(mixed)) > 0.1  # no other matrix of the span is feasible


def test_the_two_steps_of_the_alternation_are_optimal_with_the_first_column_corrected():
    rng = np.random.default_rng(0)
    for _ in range(3):
        F = rng.standard_normal((6, 3))
        F[:, 0] += 0.3
        M = np.column_stack([np.ones(6), rng.choice([-1.0, 1.0], (6, 2))]) * np.array([0.3, 0.7, 0.648])
        U, _, Vt = np.linalg.svd(F.T @ M)
        best = np.sum((F @ (U @ Vt) - M) ** 2)
        for _ in range(200):
            R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
            assert np.sum((F @ R - M) ** 2) >= best - 1e-12
        # Given R: all labels, and for each the best a of norm one
        values = []
        for one, two in product(map(np.array, product([-1.0, 1.0], repeat=6)), repeat=2):
            columns = np.column_stack([np.ones(6), one, two])
            a = np.sum(F * columns, axis=0)
            values.append(np.sum((F - columns * a / np.linalg.norm(a)) ** 2))
        columns = np.column_stack([np.ones(6), np.where(F[:, 1:] >= 0, 1.0, -1.0)])
        a = np.append(F[:, 0].sum(), np.abs(F[:, 1:]).sum(axis=0))
        corrected = columns * a / np.linalg.norm(a)
        assert np.sum((F - corrected) ** 2) == pytest.approx(min(values), abs=1e-12)
        printed = np.abs(F).sum(axis=0) / np.linalg.norm(np.abs(F[:, 1:]).sum(axis=0)) * np.sign(F)
        assert np.ptp(printed[:, 0]) > 0 or np.sum(printed**2) > 6 + 1e-6  # not in the set


# Section 6


def test_without_c_the_normalized_problem_has_the_solutions_of_the_penalized_one(noisy):
    a = np.array([0.2, 0.0, 0.4])
    value, V = oracles.solve_v(noisy, 1.0, a)
    normalized, W = oracles.solve_normalized(noisy, 1.0, a)
    A = noisy.T @ noisy / len(noisy) + np.diag(a**2)
    assert value == pytest.approx(1 - normalized**2, abs=oracles.TOL)
    np.testing.assert_allclose(V / np.trace(A @ V), W, atol=2e-3)


def test_a_sequence_of_normalized_problems_ends_at_the_solution_of_the_penalized_one(noisy):
    """The best multiple s of a W with tr AW = 1 gives the weight sqrt(s)/2 of |.|_1 in the next problem (21)."""
    c = np.array([0.5, 0.3, 0.4])
    optimum, V = oracles.solve_v(noisy, 1.0, 0.0, c)
    weight, reached = 0.5, []
    for _ in range(8):
        _, W = oracles.solve_normalized(noisy, 1.0, 0.0, c * weight**0.5)
        root = oracles.mean_sqrt(W, noisy) / (1.0 + oracles.gamma(W, 0.0, c))
        weight = root / 2.0
        reached.append(1.0 - root * oracles.mean_sqrt(W, noisy))  # Eq. (15) at the best multiple of W
    assert np.all(np.diff(reached) <= oracles.TOL)
    assert reached[0] > optimum + 1e-4
    assert reached[-1] == pytest.approx(optimum, abs=oracles.TOL)
    np.testing.assert_allclose(root**2 * W, V, atol=5e-3)


def test_the_smoothed_dual_at_its_minimum_gives_a_v_of_the_same_smoothed_value():
    """Strong duality: with c = 0 the dual is minimised over u alone, and V is its gradient's density matrix."""
    X, eps = centered_normal(10, 3), 0.05
    dual = published_dual(direction_problem(X, 1.0, dc.Penalty()))
    C = np.zeros((3, 3))

    def value(log_u):
        u = np.exp(log_u)
        smooth, root = softmax_root(dual.matrix(u, C), eps)
        return np.mean(0.5 / u) + smooth, u * (dual.gradients(root)[1] - 0.5 / (len(u) * u**2))

    found = scipy.optimize.minimize(value, np.zeros(10), jac=True, method="BFGS", options={"gtol": 1e-10})
    u = np.exp(found.x)
    A = X.T @ X / 10
    root = np.linalg.inv(scipy.linalg.sqrtm(A))
    D = root @ (X.T @ np.diag(u) @ X / 20) @ root
    theta, U = np.linalg.eigh(D)
    weights = scipy.special.softmax(theta / eps)
    V = root @ (U * weights @ U.T) @ root
    assert np.trace(A @ V) == pytest.approx(1.0)
    primal = oracles.mean_sqrt(V, X) - eps * np.sum(weights * np.log(weights))
    assert primal == pytest.approx(found.fun, abs=1e-8)
    assert softmax_value(D, eps) == pytest.approx(found.fun - np.mean(0.5 / u), abs=1e-10)
    exact = -oracles.solve_normalized(X)[0]
    assert exact - 1e-6 <= primal <= exact + eps * np.log(3) + 1e-6


# Misprints


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
    dual, eps, rng = published_dual(direction_problem(noisy, 1.0, SPARSE)), 0.1, np.random.default_rng(0)
    C = rng.uniform(-1, 1, (3, 3)) * dual.pair_penalty.half_width
    u, C = rng.uniform(0.5, 2.0, len(noisy)), (C + C.T) / 2
    S = np.linalg.inv(scipy.linalg.sqrtm(dual.X.second_moment()))
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
    X = centered_normal(n, 4, n)
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
    x = centered_normal(20, 1)
    result = dc.fista(x, 1.0, dc.Penalty(c=c), variant="published", max_iter=2000)
    expected = 1 - np.mean(np.abs(x)) ** 2 / (np.mean(x**2) + c**2)
    assert result.status is dc.Status.OPTIMAL
    assert result.lower - 1e-9 <= expected <= result.upper + 1e-9
