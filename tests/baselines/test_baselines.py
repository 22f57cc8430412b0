"""Baseline methods: common properties, and the specific properties of each."""

import numpy as np
import pytest
from clusterings import assert_affine_changes_keep_labels, assert_finds_far_groups, assert_two_clusters_by_data_and_seed
from sklearn.cluster import KMeans

from diffrac_cvx.baselines import alternating_optimization, gaussian_mixture, kmeans_standardized, kmeans_whitened
from diffrac_cvx.datasets import make_planted
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError
from diffrac_cvx.metrics import clustering_error, squared_correlation
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.rounding import refine

OF_ALL_DIRECTIONS = {"alternating_optimization": alternating_optimization, "kmeans_whitened": kmeans_whitened}
OF_COLUMNS = {"kmeans_standardized": kmeans_standardized, "gaussian_mixture": gaussian_mixture}
ALL = OF_ALL_DIRECTIONS | OF_COLUMNS
each = pytest.mark.parametrize("name", ALL)


# All of them


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_two_far_groups_are_found_whatever_the_units_and_the_type_of_the_entries(name):
    assert_finds_far_groups(ALL[name])


@pytest.mark.parametrize("name", OF_ALL_DIRECTIONS)
def test_no_affine_change_of_the_data_and_no_column_that_depends_on_others_changes_the_labels(name):
    assert_affine_changes_keep_labels(ALL[name])


@each
@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize(("n", "d"), [(2, 3), (3, 1), (4, 50), (30, 2)])
def test_small_and_long_tables_have_two_clusters_by_the_data_and_the_seed_alone_and_the_first_is_one(name, n, d):
    assert_two_clusters_by_data_and_seed(ALL[name], n, d)


@each
def test_a_constant_column_changes_nothing(name):
    X = np.random.default_rng(4).standard_normal((20, 10))
    X[:10] += 1.0  # without structure, rounding errors decide the labels
    with pytest.warns(DegenerateDataWarning):
        found = ALL[name](np.column_stack([np.full(20, 0.1), X]), rng=0)
    np.testing.assert_array_equal(found, ALL[name](X, rng=0))


@each
def test_points_that_are_all_equal_are_one_cluster(name):
    with pytest.warns(DegenerateDataWarning):
        found = ALL[name](np.full((6, 2), 0.3), rng=0)
    assert set(found) <= {-1.0, 1.0}
    assert name == "alternating_optimization" or np.all(found == 1.0)


@each
@pytest.mark.parametrize("X", [np.ones(3), [[1.0, np.nan], [0.0, 1.0]], np.ones((1, 2))])
def test_data_that_cannot_be_used_are_refused(name, X):
    with pytest.raises(DataError, match="X"):
        ALL[name](X, rng=0)


@each
def test_what_is_no_seed_is_refused(name):
    with pytest.raises(ParameterError, match="rng"):
        ALL[name](np.eye(4), rng=0.5)


@pytest.mark.parametrize("name", OF_ALL_DIRECTIONS)
def test_a_noiseless_clustering_is_found_exactly(name):
    for seed in range(3):
        X, y, _ = make_planted(300, 3, 3, rng=seed)
        found = ALL[name](X, rng=0)
        assert clustering_error(y, found) == 0.0


# Alternation


def test_every_run_ends_at_a_fixed_point_and_the_labels_returned_are_those_of_the_best_run():
    X, rng = np.random.default_rng(0).standard_normal((40, 5)), np.random.default_rng(1)
    runs = [alternating_optimization(X, n_init=1, rng=rng) for _ in range(6)]
    for y in runs:
        np.testing.assert_array_equal(refine(X, y), y)
    reached = [squared_correlation(X, y) for y in runs]
    assert squared_correlation(X, alternating_optimization(X, n_init=6, rng=1)) == max(reached) > min(reached)


# 2-means


@pytest.mark.parametrize("of_columns", [False, True])
def test_two_means_reaches_the_least_distortion_of_scikit_learn(of_columns):
    X = make_planted(100, 4, noise=0.3, rng=0).X * [5.0, 1.0, 0.1, 1.0]
    Z = X / X.std(axis=0) if of_columns else column_basis(X)
    y = (kmeans_standardized if of_columns else kmeans_whitened)(X, n_init=20, rng=0)
    ours = sum(np.sum((Z[y == s] - Z[y == s].mean(axis=0)) ** 2) for s in (-1, 1))
    assert ours == pytest.approx(KMeans(2, n_init=20, random_state=0).fit(Z).inertia_, rel=1e-9)
