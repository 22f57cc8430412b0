"""The experiment on the theory: its exact decisions and its instances."""

import warnings
from itertools import product

import numpy as np
import pytest

import diffrac_cvx as dc
from experiments.theory import affine_law, cells, label_recovery, noise_columns, sparse_direction, unique_solution

# Uniqueness, exactly


@pytest.mark.parametrize(("n", "unique"), [(12, False), (20, False), (50, True), (100, True)])
def test_uniqueness_agrees_with_the_rank_that_an_interior_point_finds(n, unique):
    """The statistical dimension is 22."""
    B = noise_columns.balanced_points(np.random.Generator.standard_normal, n, 8, np.random.default_rng(0))
    assert unique_solution.is_unique(B, 1) is unique
    B[:, 1:] -= B[:, 1:].mean(axis=0)
    ratio = dc.metrics.eigenvalue_ratio(dc.solve(dc.v_space(B), "CLARABEL").F)
    assert (ratio < 1e-2) is unique_solution.is_unique(B, 1) is unique


@pytest.mark.parametrize(("D", "planted"), [(6, 1), (7, 2), (8, 4)])
def test_the_threshold_is_near_the_statistical_dimension(D, planted):
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        labels = np.where(rng.random((200, max(planted - 1, 1))) < 0.5, 1.0, -1.0)
        first = labels if planted == 1 else np.column_stack([np.ones(200), labels])
        B = np.column_stack([first, rng.standard_normal((200, D - planted))])
        found.append(unique_solution.points_for_uniqueness(B, planted))
    assert np.mean(found) == pytest.approx(unique_solution.statistical_dimension(D, planted), rel=0.15)


def test_rademacher_columns_always_leave_another_solution():
    rng = np.random.default_rng(0)
    B = np.where(rng.random((100, 5)) < 0.5, 1.0, -1.0)
    assert unique_solution.points_for_uniqueness(B, 1) == 101


# Mathematical statements


def moment_of_forms(values, weights, d):
    """E T_x for points (1, z), the entries of z independent with some values and weights."""
    grid = np.array(list(product(range(len(values)), repeat=d - 1)))
    phi = unique_solution.quadratic_forms(np.column_stack([np.ones(len(grid)), values[grid]]))
    return phi.T @ (weights[grid].prod(axis=1)[:, None] * phi)


def closed_spectrum(d, m, beta):
    """The eigenvalues of E T_x by Appendix D with their multiplicities, the smaller one of (1, c I) first, and c."""
    trace = 1 + (d + beta - 2) * m**2
    root = (trace**2 - 4 * m**2 * (beta - 1)) ** 0.5
    values = [(trace - root) / 2, (trace + root) / 2, 2 * m, 2 * m**2, m**2 * (beta - 1)]
    t = trace - 2
    c = (t - (t**2 + 4 * (d - 1) * m**2) ** 0.5) / (2 * (d - 1) * m)
    return np.repeat(values, [1, 1, d - 1, (d - 1) * (d - 2) // 2, d - 2]), c


@pytest.mark.parametrize("beta", [1.3, 3.0, 9.0])
@pytest.mark.parametrize("m", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("d", [3, 5])
def test_the_spectrum_has_the_closed_form_of_the_appendix(d, m, beta):
    size = (m * beta) ** 0.5
    H = moment_of_forms(np.array([0.0, size, -size]), np.array([1 - 1 / beta, 0.5 / beta, 0.5 / beta]), d)
    expected, c = closed_spectrum(d, m, beta)
    np.testing.assert_allclose(np.linalg.eigvalsh(H), np.sort(expected), atol=1e-10)
    direction = np.where(np.equal(*np.triu_indices(d)), c, 0.0)
    direction[0] = 1.0
    np.testing.assert_allclose(H @ direction, expected[0] * direction, atol=1e-10)
    if beta < 3:  # the two smallest, and the lower bound on the first
        np.testing.assert_allclose(np.sort(expected)[:2], [expected[0], min(2 * m**2, m**2 * (beta - 1), 2 * m)])
        assert expected[0] >= m**2 * (beta - 1) / (1 + (d + beta - 2) * m**2)


def test_the_expected_hessian_depends_on_the_law_through_its_variance_and_kurtosis_alone():
    d, m, beta = 4, 0.7, 2.2
    other = np.array([0.0, 0.7, 1.5])  # a law on five points with the same two moments
    square = np.linalg.solve(np.vstack([np.ones(3), other**2, other**4]), [1.0, m, beta * m**2])
    assert square.min() > 0
    values = np.concatenate([other, -other[1:]])
    weights = np.concatenate([square[:1], square[1:] / 2, square[1:] / 2])
    found = np.linalg.eigvalsh(moment_of_forms(values, weights, d))
    np.testing.assert_allclose(found, np.sort(closed_spectrum(d, m, beta)[0]), atol=1e-10)


def test_the_bound_on_c_min_holds_where_the_proof_has_a_convexity_step_and_not_always_elsewhere():
    holds = {True: [], False: []}
    for d, m, beta in product(range(3, 7), (0.1, 0.5, 1.0, 2.0), (1.0, 1.3, 1.8, 3.0, 6.0, 9.0, 30.0)):
        size = (d + beta - 2) * m**2  # the step needs a size above 1
        if size != 1.0:
            holds[size > 1].append(abs(closed_spectrum(d, m, beta)[1]) <= m / abs(size - 1) * (1 + 1e-9))
    assert all(holds[True])
    assert not all(holds[False])


def test_the_empirical_hessian_is_half_of_the_expected_one_at_the_points_of_chernoffs_bound_and_less_at_those_of_b():
    d, m, law = 3, 0.5, "three-point 6"
    beta, R = noise_columns.LAWS[law][0], noise_columns.bound_of(law, m)
    mu = closed_spectrum(d, m, beta)[0][0]
    chernoff = int(np.ceil(4 * R**4 * d**2 * np.log(d / 0.05) / (0.5**2 * mu)))  # fails in 5 % at most, as printed
    few = int(np.ceil(noise_columns.points_of_paper(d, m, beta, R).b))
    ratios = {chernoff: [], few: []}
    for seed in range(20):
        B = noise_columns.balanced_points(noise_columns.scaled_law(law, m), chernoff, d, np.random.default_rng(seed))
        phi = unique_solution.quadratic_forms(B)
        for n, found in ratios.items():
            found.append(np.linalg.eigvalsh(phi[:n].T @ phi[:n] / n)[0] / mu)
    assert min(ratios[chernoff]) >= 0.5
    assert np.mean(np.array(ratios[few]) < 0.5) >= 0.2


@pytest.mark.parametrize("noise", [0.2, 0.6, 1.0])
def test_in_one_dimension_the_labels_are_optimal_exactly_when_the_signs_agree(noise):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.repeat([1.0, -1.0], 5))
        epsilon = noise * rng.standard_normal(10)
        x = y + epsilon - epsilon.mean()
        result = dc.solve(dc.penalized_nu(x[:, None], 1.0), "CLARABEL")
        excess = 1 - (x @ y) ** 2 / (10 * np.sum(x**2)) - result.lower
        agree = bool(np.all(x * y > 0))
        assert (excess <= 1e-6) == agree
        assert (excess > 1e-4) != agree
        assert (dc.metrics.clustering_error(y, dc.rounding.sign_leading(result.F)) == 0.0) == agree


def test_labels_with_a_dependent_product_have_other_solutions_than_diagonal_ones():
    """The solutions of diag(y A y') = 1 are diagonal if no A with diag(y A y') = 0 has an entry off the diagonal."""
    seen = set()
    for (n, k), seed in product(((6, 3), (12, 2)), range(20)):  # three labels: seven members in six dimensions
        labels = np.random.default_rng(seed).choice([-1.0, 1.0], (n, k))
        extended = np.column_stack([np.ones(n), labels])
        first, second = np.triu_indices(k + 1)
        members = extended[:, first] * extended[:, second]
        off = first != second
        independent = np.linalg.matrix_rank(np.column_stack([np.ones(n), members[:, off]])) == off.sum() + 1
        system = members * np.where(off, 2.0, 1.0)
        null = np.linalg.svd(system)[2][np.linalg.matrix_rank(system) :]
        assert independent == (not np.any(np.abs(null[:, off]) > 1e-9))
        seen.add((k, bool(independent)))
    assert seen == {(3, False), (2, False), (2, True)}


# The instances


@pytest.mark.parametrize(
    "law", ["three-point 1", "three-point 1.3", "three-point 30", "uniform", "gaussian", "laplace"]
)
def test_a_law_of_noise_has_unit_variance_its_kurtosis_and_its_bound(law):
    beta, draw = noise_columns.LAWS[law]
    z = draw(np.random.default_rng(0), (100_000, 1))
    assert np.mean(z**2) == pytest.approx(1.0, rel=0.05)
    assert np.mean(z**4) == pytest.approx(beta, rel=0.1)
    if law in cells.BOUNDED:
        assert np.abs(z).max() <= noise_columns.bound_of(law, 1.0) + 1e-12
        assert np.abs(z).max() == pytest.approx(noise_columns.bound_of(law, 1.0), rel=1e-3)


def test_the_numbers_of_points_are_those_of_the_proposition():
    paper = noise_columns.points_of_paper(10, 1.0, 1.8, 3**0.5)  # uniform noise of variance 1
    assert paper.a == pytest.approx(100 * 9 * 12.8 / 0.8)
    assert paper.b == pytest.approx(100 * 9 / 0.8)
    assert paper.small == pytest.approx(900)
    assert noise_columns.small_variance(4, 9.0) == pytest.approx(6 / 18)
    assert noise_columns.small_variance(4, 2.0) == 0.0


def test_without_noise_the_spectrum_is_of_rank_one_with_noise_it_is_not_and_beside_enough_noise_there_are_no_clusters():
    clean, noisy, hidden = (
        label_recovery.measure_perturbed(6, noise, 0) for noise in (0.0, 0.3, label_recovery.NO_CLUSTERS)
    )
    assert clean["eigenvalue_ratio"] < 1e-2 < noisy["eigenvalue_ratio"]
    assert clean["error"] == 0.0
    assert hidden["eigenvalue_ratio"] > 0.5
    assert min(hidden["error"], hidden["error_signal"]) > 0.5


# One-sparse directions


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("lam", [0.05, 0.5])
def test_noise_below_one_leaves_the_one_sparse_solution_alone_and_a_balanced_vector_of_signs_does_not(bounded, lam):
    """Every solution has the scores of V* = e1 e1'/(1 + lambda)^2, and no entry outside the columns of mean square one.

    The multiplier of V >= 0 is lambda (U - X'X/n), U with ones on the diagonal and entries in [-1, 1]: with U = X'X/n
    off the diagonal it is lambda Diag(1 - s_j), s_j the mean square of column j, to which every solution is orthogonal.
    """
    rng = np.random.default_rng(0)
    B = noise_columns.balanced_points(noise_columns.scaled_law("uniform", 0.3), 8, 6, rng)
    if not bounded:
        B[:, 3] = rng.permutation(B[:, 0])
    X = B - B.mean(axis=0)
    assert bool(np.all(np.mean(X[:, 1:] ** 2, axis=0) < 1.0 - 1e-9)) is bounded
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):  # n = 8 for d = 6
        V = dc.solve(dc.v_space(X, 1.0, dc.Penalty.l1(lam)), "CLARABEL").V
    star = np.zeros((6, 6))
    star[0, 0] = 1 / (1 + lam) ** 2
    assert bool(np.abs(V - star).max() < 1e-3) is bounded
    if not bounded:  # both are optimal, and so is their mean, which an interior point prefers
        assert V[3, 3] > 0.1 * star[0, 0]


# The l1 norm of v alone


def test_an_alternation_ends_where_no_single_step_lowers_its_objective():
    X = dc.datasets.make_planted(40, 8, 2, rng=0).X
    Y, V = sparse_direction.alternate(X, 0.1, np.random.default_rng(1))
    scores = X @ V
    assert np.all((Y == np.sign(scores)) | (scores == 0.0))
    slope = 2 * X.T @ (scores - Y) / 40
    assert np.all(np.abs(slope) <= 0.1 + 1e-6)
    np.testing.assert_allclose(slope[V != 0], -0.1 * np.sign(V[V != 0]), atol=1e-6)


# Without a penalty: the first-order method compared with an interior point


@pytest.mark.parametrize("law", affine_law.LAWS)
@pytest.mark.parametrize("d", [4, 7])
def test_both_sides_of_the_threshold_are_those_of_an_interior_point(law, d, monkeypatch):
    monkeypatch.setattr("experiments.theory.unique_solution.UNIQUE", 1e-9)  # it is small near there
    for replication in range(2):
        y, Z = affine_law.stream_of(law, d, replication)
        least = unique_solution.points_for_uniqueness(np.column_stack([y, Z]), 1)
        row = affine_law.measure(law, d, replication)
        assert (row["other"], row["only"]) == (least - 1, least)


def test_what_the_iterations_do_not_decide_stays_open(monkeypatch):
    monkeypatch.setattr("experiments.theory.affine_law.MOST", 1)
    y, Z = affine_law.stream_of("gaussian", 12, 0)
    n = int(unique_solution.statistical_dimension(12.0))
    assert affine_law.is_only_solution(y[:n], Z[:n]) is None
    row = affine_law.measure("gaussian", 12, 0)
    assert row["only"] - row["other"] > 1


def test_the_nearest_matrix_of_trace_one_is_where_no_such_matrix_is_nearer():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 5))
    A = A + A.T
    nearest = affine_law.nearest_of_trace_one(A)
    assert np.trace(nearest) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(nearest)[0] > -1e-12
    for _ in range(50):
        B = rng.standard_normal((5, 5))
        other = B @ B.T / np.trace(B @ B.T)
        assert np.sum((A - nearest) * (other - nearest)) <= 1e-9
