"""The experiment on the theory: its exact decisions and its instances."""

import warnings
from itertools import product

import numpy as np
import pytest

import diffrac_cvx as dc
from experiments.theory import (
    cells,
    label_recovery,
    noise_columns,
    one_sparse,
    solution_support,
    sparse_direction,
    spectrum,
    unique_solution,
)

# Uniqueness, exactly


def balanced(n, d, seed=0):
    return noise_columns.balanced_points(
        lambda rng, shape: rng.standard_normal(shape), n, d, np.random.default_rng(seed)
    )


@pytest.mark.parametrize(("n", "unique"), [(12, False), (20, False), (50, True), (100, True)])
def test_uniqueness_agrees_with_the_rank_that_an_interior_point_finds(n, unique):
    B = balanced(n, 8)  # the statistical dimension is 22
    assert unique_solution.is_unique(B, 1) is unique
    B[:, 1:] -= B[:, 1:].mean(axis=0)
    ratio = dc.metrics.eigenvalue_ratio(dc.solve(dc.v_space(B), "CLARABEL").F)
    assert (ratio < 1e-2) is unique_solution.is_unique(B, 1) is unique


def test_the_quadratic_forms_are_linear_in_the_upper_triangle():
    rng = np.random.default_rng(0)
    B, Delta = rng.standard_normal((7, 4)), rng.standard_normal((4, 4))
    Delta += Delta.T
    rows, columns = np.triu_indices(4)
    entries = Delta[rows, columns] * np.where(rows == columns, 1.0, 2**0.5)
    np.testing.assert_allclose(unique_solution.quadratic_forms(B) @ entries, np.einsum("ij,jk,ik->i", B, Delta, B))


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


@pytest.mark.parametrize("seed", range(2))
def test_the_least_number_of_points_is_that_of_a_search_through_all(seed):
    B = balanced(40, 4, seed)
    first = next(n for n in range(2, 41) if unique_solution.is_unique(B[:n], 1))
    assert unique_solution.points_for_uniqueness(B, 1) == first
    assert unique_solution.points_for_uniqueness(B[: first - 1], 1) == first


def test_rademacher_columns_always_leave_another_solution():
    rng = np.random.default_rng(0)
    B = np.where(rng.random((100, 5)) < 0.5, 1.0, -1.0)
    assert unique_solution.points_for_uniqueness(B, 1) == 101


@pytest.mark.parametrize(("n", "unique"), [(16, False), (60, True)])
def test_the_least_share_is_one_where_the_solution_is_unique_and_belongs_to_a_solution_elsewhere(n, unique):
    B = balanced(n, 8)
    smallest, V = unique_solution.least_share(B)
    assert (smallest > 1 - 1e-5) is unique_solution.is_unique(B, 1) is unique
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", B, V, B), 1.0, atol=1e-5)
    assert np.linalg.eigvalsh(V)[0] > -1e-7
    assert smallest == pytest.approx(V[0, 0], abs=1e-6)


# The instances


@pytest.mark.parametrize("beta", [1.0, 1.8, 3.0, 9.0])
@pytest.mark.parametrize("m", [0.1, 1.0, 2.0])
def test_the_spectrum_has_the_closed_form_of_the_appendix(m, beta):
    row = spectrum.measure_spectrum(5, m, beta)
    assert row["largest_error"] < 1e-10
    assert row["mu_1"] == pytest.approx(row["mu_1_paper"], abs=1e-10)


def test_the_expected_hessian_depends_on_the_law_through_its_variance_and_kurtosis_alone():
    d, m, beta = 4, 0.7, 2.2
    other = np.array([0.0, 0.7, 1.5])  # a law on five points with the same two moments
    square = np.linalg.solve(np.vstack([np.ones(3), other**2, other**4]), [1.0, m, beta * m**2])
    assert square.min() > 0
    values = np.concatenate([other, -other[1:]])
    weights = np.concatenate([square[:1], square[1:] / 2, square[1:] / 2])
    grid = np.array(list(product(range(5), repeat=d - 1)))
    phi = unique_solution.quadratic_forms(np.column_stack([np.ones(len(grid)), values[grid]]))
    found = np.linalg.eigvalsh(phi.T @ (weights[grid].prod(axis=1)[:, None] * phi))
    np.testing.assert_allclose(found, np.sort(spectrum.closed_spectrum(d, m, beta)), atol=1e-10)


@pytest.mark.parametrize(("law", "m"), [("three-point 1.3", 1.0), ("uniform", 0.5), ("three-point 6", 1.0)])
def test_the_hessian_off_delta_min_has_the_second_eigenvalue_in_expectation(law, m):
    d, beta = 4, noise_columns.LAWS[law][0]
    atoms, weights = spectrum.law_of_points(d, m, beta)
    phi = unique_solution.quadratic_forms(atoms)
    form = spectrum.closed_form(d, m, beta)
    found = spectrum.least_off(phi.T @ (weights[:, None] * phi), d, form.c_min)
    assert found == pytest.approx(form.mu_2, abs=1e-10)


def test_more_points_bring_the_hessian_to_its_expectation():
    row = spectrum.measure_hessian("three-point 3", 3, 1.0, 0)
    assert row["n_chernoff"] > 1000
    assert row["ratio_chernoff"] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "law", ["three-point 1", "three-point 1.3", "three-point 30", "uniform", "gaussian", "laplace"]
)
def test_a_law_of_noise_has_unit_variance_and_its_kurtosis(law):
    beta, draw = noise_columns.LAWS[law]
    z = draw(np.random.default_rng(0), (100_000, 1))
    assert np.mean(z**2) == pytest.approx(1.0, rel=0.05)
    assert np.mean(z**4) == pytest.approx(beta, rel=0.1)


@pytest.mark.parametrize("law", cells.BOUNDED)
def test_the_bound_of_a_law_is_its_largest_value(law):
    z = noise_columns.scaled_law(law, 0.4)(np.random.default_rng(0), (100_000, 1))
    assert np.abs(z).max() == pytest.approx(noise_columns.bound_of(law, 0.4), rel=1e-3)
    assert np.abs(z).max() <= noise_columns.bound_of(law, 0.4) + 1e-12


def test_the_numbers_of_points_are_those_of_the_proposition():
    paper = noise_columns.points_of_paper(10, 1.0, 1.8, 3**0.5)  # uniform noise of variance 1
    assert paper.a == pytest.approx(100 * 9 * 12.8 / 0.8)
    assert paper.b == pytest.approx(100 * 9 / 0.8)
    assert paper.small == pytest.approx(900)
    assert noise_columns.small_variance(4, 9.0) == pytest.approx(6 / 18)
    assert noise_columns.small_variance(4, 2.0) == 0.0


def test_signs_are_redrawn_and_not_shifted():
    rng = np.random.default_rng(0)
    Z = noise_columns.with_mean_zero(noise_columns.three_point(1.3)(rng, (40, 5)), rng)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    assert len(np.unique(np.abs(Z))) == 2


def test_at_the_propositions_number_of_points_the_solution_is_unique_and_below_the_one_found_it_is_not():
    row = noise_columns.measure_sample_size("three-point 3", 3, 1.0, 0)
    assert row["unique"] == row["unique_b"] == row["right_b"] == 1
    assert 3 <= row["n_measured"] <= row["n_paper"]
    small = noise_columns.measure_sample_size("three-point 9", 3, 0.0, 0)
    assert small["variance"] ** 2 < noise_columns.small_variance(3, 9.0)


def test_another_solution_than_the_planted_one_is_told_by_its_eigenvector_and_its_spectrum():
    row = noise_columns.describe_other(balanced(16, 8))
    assert row["right_b"] == 0
    assert 0.1 < row["ratio_b"] <= 1.0


@pytest.mark.parametrize("noise", [0.2, 0.6, 1.0])
def test_in_one_dimension_the_labels_are_optimal_exactly_when_the_signs_agree(noise):
    for replication in range(5):
        row = label_recovery.measure_one_dimension(10, noise, replication)
        assert row["agree"] == row["optimal"] == row["recovered"]


@pytest.mark.parametrize(("n", "unique"), [(12, 0), (60, 1)])
def test_the_constrained_relaxation_returns_the_lemmas_matrix_where_it_is_the_only_solution(n, unique):
    row = solution_support.measure_lemma(6, n, 0.6, 0)
    assert row["value"] < 1e-6
    assert row["mixture_value"] < 1e-9
    assert row["mixture_rank"] == 2
    assert row["unique"] == unique
    assert (row["distance"] < 1e-3) == bool(unique)


def test_labels_with_a_dependent_product_have_other_solutions_than_diagonal_ones():
    assert solution_support.measure_family(3, 6, 0)["diagonal"] == 0  # seven members in six dimensions
    rows = [solution_support.measure_family(2, 12, r) for r in range(20)]
    assert all(row["independent"] == row["diagonal"] for row in rows)
    assert 0 < sum(row["diagonal"] for row in rows)


def test_rounds_are_counted_until_all_labels_are_right():
    truth = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    M = np.column_stack([np.ones(5), truth]) * np.array([0.2, 0.8, 0.6])
    assert solution_support.rounds_to_recover(M, np.eye(3), truth) == 1
    assert solution_support.rounds_to_recover(np.ones((5, 3)), np.eye(3), truth) == np.inf
    assert solution_support.is_found(truth, truth[:, ::-1] * [1, -1])
    assert not solution_support.is_found(truth, truth[:, :1])


def test_without_noise_the_spectrum_is_of_rank_one_and_with_noise_it_is_not():
    clean, noisy = (label_recovery.measure_perturbed(6, noise, 0) for noise in (0.0, 0.3))
    assert clean["eigenvalue_ratio"] < 1e-2 < noisy["eigenvalue_ratio"]
    assert clean["error"] == 0.0


def test_beside_enough_noise_there_are_no_clusters_to_find():
    row = label_recovery.measure_perturbed(6, label_recovery.NO_CLUSTERS, 0)
    assert row["eigenvalue_ratio"] > 0.5
    assert min(row["error"], row["error_signal"]) > 0.5


def test_a_weight_above_one_is_solved_and_proved():
    row = label_recovery.measure_imbalance_weight(0.25, 0.2, 0)
    assert row["gap"] < 1e-5
    assert row["imbalance_beyond"] < row["imbalance_at_one"]


# One-sparse directions


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("lam", [0.05, 0.5])
def test_noise_below_one_leaves_the_one_sparse_solution_alone_and_a_balanced_vector_of_signs_does_not(bounded, lam):
    rng = np.random.default_rng(0)
    B = noise_columns.balanced_points(noise_columns.scaled_law("uniform", 0.3), 8, 6, rng)
    if not bounded:
        B[:, 3] = rng.permutation(B[:, 0])
    X = B - B.mean(axis=0)
    assert one_sparse.is_only_sparse_solution(X) is bounded
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):  # n = 8 for d = 6
        V = dc.solve(dc.v_space(X, 1.0, dc.Penalty.l1(lam)), "CLARABEL").V
    star = np.zeros((6, 6))
    star[0, 0] = 1 / (1 + lam) ** 2
    assert bool(np.abs(V - star).max() < 1e-3) is bounded
    if not bounded:  # both are optimal, and so is their mean, which an interior point prefers
        assert V[3, 3] > 0.1 * star[0, 0]


def test_a_one_sparse_instance_has_the_bound_that_is_asked_for():
    row = one_sparse.measure_one_sparse("uniform", 0.9, 4, 0)
    assert 3 * row["m"] == pytest.approx(0.81)
    assert row["n_a"] % 2 == row["n_b"] % 2 == 0
    assert row["n_b"] >= 4 * 0.81 / (row["m"] ** 2 * 0.8) > row["n_b"] - 2
    assert row["error_a"] == row["error_b"] == row["kmeans_b"] == 0.0


# The l1 norm of v alone


@pytest.mark.parametrize("lam", [0.05, 0.4, 5.0])
def test_the_lasso_is_at_the_minimum_of_its_objective(lam):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), rng.choice([-1.0, 1.0], 30)
    v = sparse_direction.lasso(X.T @ X / 30, (X.T @ y / 30)[:, None], lam, np.zeros((6, 1)))[:, 0]
    slope = 2 * X.T @ (X @ v - y) / 30
    assert np.all(np.abs(slope) <= lam + 1e-6)
    np.testing.assert_allclose(slope[v != 0], -lam * np.sign(v[v != 0]), atol=1e-6)
    assert (lam < 5) == bool(np.any(v))


def test_an_alternation_ends_where_no_single_step_lowers_its_objective():
    planted = dc.datasets.make_planted(40, 8, 2, rng=0)
    for run in sparse_direction.alternate(planted.X, 0.1, np.random.default_rng(1)):
        scores = planted.X @ run.v
        assert np.all((run.y == np.sign(scores)) | (scores == 0.0))
        assert run.objective == pytest.approx(np.mean((run.y - scores) ** 2) + 0.1 * np.abs(run.v).sum())
        flipped = sparse_direction.objective_of(planted.X, -run.y, -run.v, 0.1)
        assert flipped == pytest.approx(run.objective)
