from itertools import product

import numpy as np
import pytest
import scipy.optimize
from sklearn.cluster import KMeans

from diffrac_cvx.baselines import (
    alternating_optimisation,
    alternating_runs,
    cure,
    gaussian_mixture,
    kmeans_by_column,
    kmeans_standardised,
    kmeans_whitened,
    lattice,
    spectral_kurtosis,
)
from diffrac_cvx.baselines.lattice_labels import reduced_basis
from diffrac_cvx.baselines.two_valued import INNER, OUTER, double_well, loss
from diffrac_cvx.datasets import make_planted
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError
from diffrac_cvx.metrics import clustering_error, squared_correlation
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.rounding import refine


def test_alternation_finds_a_planted_clustering_among_few_dimensions():
    X, y, _ = make_planted(300, 3, sparsity=3, imbalance=0.1)
    assert clustering_error(y, alternating_optimisation(X, rng=0)) == 0.0


def test_the_labels_returned_are_those_of_the_best_run():
    X = np.random.default_rng(0).standard_normal((40, 5))
    best = alternating_optimisation(X, restarts=6, rng=1)
    runs = [squared_correlation(X, y) for y in alternating_runs(X, restarts=6, rng=1)]
    assert squared_correlation(X, best) == max(runs) > min(runs)


def test_every_run_ends_at_a_fixed_point():
    X = np.random.default_rng(1).standard_normal((40, 5))
    for y in alternating_runs(X, rng=0):
        np.testing.assert_array_equal(refine(X, y), y)


def test_the_first_point_is_labelled_plus_one():
    X = np.random.default_rng(2).standard_normal((20, 5))
    assert all(y[0] == 1.0 for y in alternating_runs(X, rng=0))


def test_runs_depend_on_the_generator_alone():
    X = np.random.default_rng(3).standard_normal((40, 5))
    seeded = alternating_runs(X, rng=7)
    np.testing.assert_array_equal(seeded, alternating_runs(X, rng=np.random.default_rng(7)))
    assert np.any(np.array(seeded) != alternating_runs(X, rng=8))


def test_an_affine_change_of_the_data_changes_nothing():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 3))
    moved = X @ rng.standard_normal((3, 3)) + rng.standard_normal(3)
    np.testing.assert_array_equal(alternating_runs(moved, rng=0), alternating_runs(X, rng=0))


def test_integers_and_floats_give_the_same_labels_and_stay_as_they_are():
    X = np.random.default_rng(5).integers(-9, 9, (40, 3))
    X.setflags(write=False)
    np.testing.assert_array_equal(alternating_optimisation(X, rng=0), alternating_optimisation(X * 1.0, rng=0))


def test_constant_data_give_labels_and_a_warning():
    with pytest.warns(DegenerateDataWarning):
        y = alternating_optimisation(np.ones((6, 2)), rng=0)
    assert set(y) <= {-1.0, 1.0}


@pytest.mark.parametrize(
    ("change", "named"),
    [({"restarts": 0}, "restarts"), ({"max_iter": 0}, "max_iter"), ({"rng": None}, "rng"), ({"rng": 0.5}, "rng")],
)
def test_a_bad_parameter_is_refused(change, named):
    with pytest.raises(ParameterError, match=named):
        alternating_optimisation(np.eye(3), **{"rng": 0, **change})


@pytest.mark.parametrize("X", [np.ones(3), [[1.0, np.nan], [0.0, 1.0]], np.ones((1, 2))])
def test_bad_data_are_refused(X):
    with pytest.raises(DataError, match="X"):
        alternating_optimisation(X, rng=0)


# 2-means on whitened data


def test_two_means_on_whitened_data_finds_a_planted_clustering_among_few_dimensions():
    X, y, _ = make_planted(300, 3, sparsity=3, imbalance=0.1)
    assert clustering_error(y, kmeans_whitened(X, rng=0)) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_two_means_on_whitened_data_reaches_what_scikit_learn_reaches(seed):
    X = make_planted(100, 4, noise=0.3, rng=seed).X
    theirs = 2.0 * KMeans(2, n_init=20, random_state=0).fit_predict(column_basis(X - X.mean(axis=0))) - 1.0
    ours = squared_correlation(X, kmeans_whitened(X, restarts=20, rng=0))
    assert ours == pytest.approx(squared_correlation(X, theirs), abs=1e-12)


def test_two_means_depends_on_whitened_data_alone():
    X = np.random.default_rng(0).standard_normal((40, 5))
    mixed = 1e3 * X @ np.random.default_rng(1).standard_normal((5, 5)) + 7.0
    found = [squared_correlation(X, kmeans_whitened(data, restarts=30, rng=0)) for data in (X, mixed)]
    assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_more_runs_of_two_means_from_the_same_seed_are_never_worse():
    X = np.random.default_rng(0).standard_normal((60, 6))
    reached = [squared_correlation(X, kmeans_whitened(X, restarts=runs, rng=0)) for runs in (1, 3, 10, 30)]
    assert reached == sorted(reached)
    assert reached[0] < reached[-1]


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_two_means_put_each_point_with_the_nearer_centre_and_the_first_at_plus_one(seed):
    X = np.random.default_rng(seed).exponential(size=(40, 3)) ** 2  # clusters of unequal sizes
    y, Q = kmeans_whitened(X, rng=0), column_basis(X - X.mean(axis=0))
    to_plus, to_minus = (np.sum((Q - Q[y == sign].mean(axis=0)) ** 2, axis=1) for sign in (1, -1))
    np.testing.assert_array_equal(y, np.where(to_plus <= to_minus, 1.0, -1.0))
    assert y[0] == 1.0
    np.testing.assert_array_equal(y, kmeans_whitened(X, rng=np.random.default_rng(0)))


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
def test_two_means_of_equal_points_is_one_cluster():
    np.testing.assert_array_equal(kmeans_whitened(np.ones((5, 2)), rng=0), np.ones(5))


@pytest.mark.parametrize("arguments", [{"restarts": 0, "rng": 0}, {"max_iter": 0.5, "rng": 0}, {"rng": -1}])
def test_bad_parameters_of_two_means_are_refused(arguments):
    with pytest.raises(ParameterError):
        kmeans_whitened(np.eye(4), **arguments)


# 2-means and a mixture of Gaussians on standardised columns


def round_groups(n=60):
    """Two round groups, apart along all columns, in units far from each other."""
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = 2.0 * y[:, None] + 0.5 * np.random.default_rng(0).standard_normal((n, 3))
    return X * [1e4, 1.0, 1e-4], y


@pytest.mark.parametrize("method", [kmeans_standardised, gaussian_mixture])
def test_what_most_would_try_first_finds_round_groups_whatever_the_units(method):
    X, y = round_groups()
    found = method(X, rng=0)
    assert found[0] == 1.0
    assert clustering_error(y, found) == 0.0
    np.testing.assert_array_equal(found, method(X * [1e-8, 1.0, 1e8], rng=0))
    with pytest.raises(ParameterError):
        method(X, restarts=0, rng=0)


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("method", [kmeans_standardised, gaussian_mixture])
def test_equal_points_are_one_cluster(method):
    np.testing.assert_array_equal(method(np.ones((5, 2)), rng=0), np.ones(5))


def test_two_means_on_standardised_columns_has_the_least_distortion_of_scikit_learn():
    X = np.random.default_rng(6).standard_normal((50, 3)) * [5.0, 1.0, 0.1]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = kmeans_standardised(X, restarts=30, rng=0)
    ours = sum(np.sum((Z[y == s] - Z[y == s].mean(axis=0)) ** 2) for s in (-1, 1))
    assert ours == pytest.approx(KMeans(2, n_init=30, random_state=0).fit(Z).inertia_, rel=1e-9)


# Later methods, and 2-means on each column


def cure_seeded(X):
    return cure(X, rng=0)


LATER = {"cure": cure_seeded, "spectral_kurtosis": spectral_kurtosis, "lattice": lattice}
each_later = pytest.mark.parametrize("method", LATER.values(), ids=LATER)
each_new = pytest.mark.parametrize("method", [*LATER.values(), kmeans_by_column], ids=[*LATER, "kmeans_by_column"])


@pytest.mark.parametrize(
    ("method", "n", "d", "sparsity"),
    [(cure_seeded, 120, 10, 10), (lattice, 12, 10, 10), (lattice, 200, 20, 5), (kmeans_by_column, 4, 50, 1)],
)
def test_a_noiseless_clustering_is_found_exactly(method, n, d, sparsity):
    for seed in range(3):
        X, y, _ = make_planted(n, d, sparsity, rng=seed)
        assert clustering_error(y, method(X)) == 0.0
        assert method(X)[0] == 1.0


def test_the_spectral_method_finds_most_labels_and_alternation_the_rest():
    X, y, _ = make_planted(400, 10, 10, rng=1)
    found = spectral_kurtosis(X)
    assert 0.0 < clustering_error(y, found) < 0.2
    assert clustering_error(y, refine(X, found)) == 0.0


@each_later
def test_an_affine_change_of_the_data_leaves_the_labels_of_the_later_methods(method):
    rng = np.random.default_rng(4)
    X = make_planted(60, 4, 4, rng=rng).X
    moved = X @ rng.standard_normal((4, 4)) * 1e3 + rng.standard_normal(4)
    np.testing.assert_array_equal(method(moved), method(X))


@each_later
def test_a_column_that_depends_on_others_changes_nothing(method):
    X = make_planted(60, 4, 4, rng=3).X
    np.testing.assert_array_equal(method(np.column_stack([X, X[:, 0] - 2 * X[:, 1]])), method(X))


@each_new
def test_equal_points_are_one_cluster_with_a_warning(method):
    with pytest.warns(DegenerateDataWarning):
        np.testing.assert_array_equal(method(np.full((6, 2), 0.3)), np.ones(6))


@each_new
@pytest.mark.parametrize("X", [np.ones(3), [[1.0, np.nan], [0.0, 1.0]], np.ones((1, 2))])
def test_bad_data_are_refused_by_each_method(method, X):
    with pytest.raises(DataError, match="X"):
        method(X)


@pytest.mark.parametrize("method", [cure_seeded, spectral_kurtosis, kmeans_by_column])
def test_two_points_are_two_clusters(method):
    np.testing.assert_array_equal(method([[0.0, 1.0], [2.0, -1.0]]), [1.0, -1.0])


@pytest.mark.parametrize("method", [cure_seeded, spectral_kurtosis])
def test_fewer_points_than_dimensions_give_labels(method):
    assert set(method(np.random.default_rng(0).standard_normal((6, 9)))) <= {-1.0, 1.0}


# 2-means on each column


@pytest.mark.parametrize("seed", range(5))
def test_no_labels_correlate_more_with_a_column_than_those_of_the_best_column(seed):
    X = np.random.default_rng(seed).standard_normal((8, 3))

    def best_column(y):
        return max(squared_correlation(column[:, None], y) for column in X.T)

    every = [best_column(np.array(y)) for y in product([-1.0, 1.0], repeat=8)]
    assert best_column(kmeans_by_column(X)) == pytest.approx(max(every), abs=1e-12)


def test_the_best_column_does_not_depend_on_units_or_order():
    X = np.random.default_rng(0).standard_normal((30, 5))
    np.testing.assert_array_equal(
        kmeans_by_column((X * [1e-9, 3.0, 1e9, 1.0, -2.0] + 5.0)[:, ::-1]), kmeans_by_column(X)
    )


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
def test_a_constant_column_is_never_the_best():
    X = np.random.default_rng(0).standard_normal((30, 2))
    np.testing.assert_array_equal(kmeans_by_column(np.column_stack([np.ones(30), X])), kmeans_by_column(X))


# CURE


def test_the_slope_of_the_double_well_is_that_of_finite_differences_and_continuous():
    t, h = np.linspace(-6.0, 6.0, 241), 1e-5
    differences = (double_well(t + h)[0] - double_well(t - h)[0]) / (2 * h)
    np.testing.assert_allclose(double_well(t)[1], differences, atol=1e-8)
    for joint in (INNER, OUTER):  # the second derivative is continuous there
        below, at, above = double_well(np.array([joint - h, joint, joint + h]))[1]
        assert above - at == pytest.approx(at - below, abs=1e-8)


def test_the_double_well_is_the_quartic_inside_and_linear_outside():
    t = np.array([0.0, 1.0, -1.0, 1.5])
    np.testing.assert_allclose(double_well(t)[0], (t**2 - 1) ** 2 / 4)
    far = double_well(np.array([OUTER, OUTER + 1.0, OUTER + 2.0, -OUTER - 2.0]))
    assert far[1][0] == far[1][1] == far[1][2] == -far[1][3]
    assert far[0][3] == far[0][2] == pytest.approx(far[0][0] + 2 * far[1][0])


def test_the_gradient_of_the_loss_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(20), rng.standard_normal((20, 4))])
    Z[:, 1:] -= Z[:, 1:].mean(axis=0)
    at = 2.0 * rng.standard_normal(5)
    assert scipy.optimize.check_grad(lambda c: loss(c, Z)[0], lambda c: loss(c, Z)[1], at) < 1e-5


def test_more_starts_of_cure_find_what_one_start_misses():
    X, y, _ = make_planted(150, 16, 16, rng=0)
    errors = [clustering_error(y, cure(X, restarts=starts, rng=2)) for starts in (1, 30)]
    assert errors[0] > 0.5
    assert errors[1] == 0.0


@pytest.mark.parametrize("arguments", [{"restarts": 0, "rng": 0}, {"max_iter": 0.5, "rng": 0}, {"rng": -1}])
def test_bad_parameters_of_cure_are_refused(arguments):
    with pytest.raises(ParameterError):
        cure(np.eye(4), **arguments)


# The spectral method


def grid_of(share):
    """All pairs of a two-valued coordinate, a share of it at the larger value, and one of kurtosis 3; then mixed."""
    signs = np.repeat([1.0, -1.0], [round(20 * share), 20 - round(20 * share)])
    u, w = np.meshgrid(signs, [-(3**0.5), 0.0, 0.0, 0.0, 0.0, 3**0.5])
    return np.column_stack([u.ravel(), w.ravel()]) @ [[1.0, 2.0], [3.0, -1.0]], u.ravel()


@pytest.mark.parametrize(("share", "found"), [(0.5, True), (0.7, True), (0.75, True), (0.85, False), (0.95, False)])
def test_the_direction_of_two_clusters_is_found_while_its_kurtosis_is_below_three(share, found):
    X, y = grid_of(share)
    assert bool(np.all(spectral_kurtosis(X) == y * y[0])) is found


# The lattice


@pytest.mark.parametrize("d", [1, 2, 5, 12, 16])
def test_two_points_more_than_dimensions_are_enough_for_the_lattice(d):
    X, y, _ = make_planted(d + 2 + d % 2, d, d, rng=1)
    assert clustering_error(y, lattice(X)) == 0.0


@pytest.mark.parametrize("minority", [1, 3])
def test_the_lattice_finds_unbalanced_clusters(minority):
    rng = np.random.default_rng(minority)
    y = rng.permuted(np.repeat([1.0, -1.0], [14 - minority, minority]))
    X = np.column_stack([y, rng.standard_normal((14, 8))]) @ rng.standard_normal((9, 9))
    assert clustering_error(y, lattice(X)) == 0.0


def test_as_many_points_as_any_labels_fit_are_refused():
    with pytest.raises(DataError, match="any labels fit; at least 8"):
        lattice(np.random.default_rng(0).standard_normal((7, 6)))


@pytest.mark.parametrize("n", [8, 30])
def test_a_noise_of_a_millionth_defeats_the_lattice_at_full_accuracy_only(n):
    X, y, _ = make_planted(n, 4, 4, noise=1e-6, rng=2)
    with pytest.raises(DataError, match="40 bits: noisy"):
        lattice(X)
    assert clustering_error(y, lattice(X, bits=15)) == 0.0


def test_data_without_two_clusters_have_no_labels_in_the_lattice():
    with pytest.raises(DataError, match="no labels found"):
        lattice(np.random.default_rng(0).standard_normal((30, 5)))


def test_labels_that_fit_some_points_only_are_not_returned():
    for seed in range(6):  # at 7 bits some labels fit the few points that the lattice is made of
        with pytest.raises(DataError, match="7 bits: noisy"):
            lattice(np.random.default_rng(seed).standard_normal((60, 3)), bits=7)


def test_in_more_dimensions_than_half_the_bits_a_few_more_points_are_used():
    for seed in range(3):
        X, y, _ = make_planted(40, 12, 12, rng=seed)
        assert clustering_error(y, lattice(X, bits=14)) == 0.0


def test_too_many_dimensions_and_no_bits_are_refused():
    with pytest.raises(DataError, match="70 dimensions"):
        lattice(np.random.default_rng(0).standard_normal((90, 70)))
    with pytest.raises(ParameterError, match="bits"):
        lattice(np.eye(4), bits=0)


@pytest.mark.parametrize("seed", range(3))
def test_a_reduced_basis_spans_the_same_lattice_with_short_vectors(seed):
    rng = np.random.default_rng(seed)
    basis = np.array(rng.integers(-(10**6), 10**6, (4, 4)).tolist(), dtype=object)
    reduced = reduced_basis(basis)
    change = np.linalg.solve(basis.astype(float).T, reduced.astype(float).T)
    np.testing.assert_allclose(change, np.rint(change), atol=1e-6)
    assert abs(np.linalg.det(np.rint(change))) == pytest.approx(1.0)
    combinations = np.array([c for c in product(range(-3, 4), repeat=4) if any(c)])
    shortest = np.linalg.norm(combinations @ reduced.astype(float), axis=1).min()
    assert np.linalg.norm(reduced[0].astype(float)) <= 1.1 * shortest


def test_a_reduced_basis_of_the_textbook_has_its_norms():
    reduced = reduced_basis(np.array([[1, 1, 1], [-1, 0, 2], [3, 5, 6]], dtype=object))
    assert sorted(sum(x * x for x in row) for row in reduced) == [1, 2, 5]
