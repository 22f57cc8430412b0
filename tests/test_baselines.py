import numpy as np
import pytest
from sklearn.cluster import KMeans

from diffrac_cvx.baselines import alternating_optimisation, alternating_runs, kmeans_whitened
from diffrac_cvx.datasets import make_planted
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError
from diffrac_cvx.linalg import column_basis
from diffrac_cvx.metrics import clustering_error, squared_correlation
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
