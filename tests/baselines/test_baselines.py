"""Baseline methods: common properties, and the specific properties of each."""

from functools import partial

import numpy as np
import pytest
import scipy.optimize
from sklearn.cluster import KMeans

from diffrac_cvx import baselines
from diffrac_cvx.baselines import (
    alternating_optimization,
    cure,
    gaussian_mixture,
    kmeans_standardized,
    kmeans_whitened,
    principal,
    spectral_kurtosis,
)
from diffrac_cvx.baselines.two_valued import LINEAR_START, PURSUIT_CRITERIA, QUARTIC_END, double_well, loss
from diffrac_cvx.datasets import make_planted
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError
from diffrac_cvx.metrics import clustering_error, squared_correlation
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.rounding import refine

OF_ALL_DIRECTIONS = {
    "alternating_optimization": alternating_optimization,
    "kmeans_whitened": kmeans_whitened,
    "cure": cure,
    "spectral_kurtosis": lambda X, rng: spectral_kurtosis(X),
}
OF_COLUMNS = {
    "kmeans_standardized": kmeans_standardized,
    "gaussian_mixture": gaussian_mixture,
    "sparse_kmeans": lambda X, rng: baselines.sparse_kmeans(X, n_init=1, rng=rng).labels,
    "sparse_kmeans at a bound": lambda X, rng: baselines.sparse_kmeans(X, bound=1.3, n_init=2, rng=rng).labels,
    "ifpca": lambda X, rng: baselines.ifpca(X, rng=rng).labels,
    "spectral": baselines.spectral,
    "first component": partial(baselines.two_valued_component, components=1),
    "sparse_component": lambda X, rng: baselines.sparse_component(X, rng=rng).labels,
} | {criterion: partial(baselines.two_valued_component, criterion=criterion) for criterion in PURSUIT_CRITERIA}
ALL = OF_ALL_DIRECTIONS | OF_COLUMNS
each = pytest.mark.parametrize("name", ALL)


# All of them


@pytest.fixture(autouse=True)
def _small_null(monkeypatch):
    monkeypatch.setattr(principal, "NULL_COLUMNS", 10_000)


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_two_far_groups_are_found_whatever_the_units_and_the_type_of_the_entries(name):
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    X = np.rint(40.0 * y[:, None] + 10.0 * np.random.default_rng(0).standard_normal((40, 6))).astype(int)
    X.setflags(write=False)
    for data in (X, X * [1e4, 1.0, 1e-4, 3.0, -7.0, 1e2] + 5.0):
        np.testing.assert_array_equal(ALL[name](data, rng=0), y)


@pytest.mark.parametrize("name", OF_ALL_DIRECTIONS)
def test_no_affine_change_of_the_data_and_no_column_that_depends_on_others_changes_the_labels(name):
    rng = np.random.default_rng(4)
    X = make_planted(60, 4, 4, rng=rng).X
    mixed = X @ rng.standard_normal((4, 4)) * 1e3 + rng.standard_normal(4)
    for data in (mixed, np.column_stack([X, X[:, 0] - 2 * X[:, 1]])):
        np.testing.assert_array_equal(ALL[name](data, rng=0), ALL[name](X, rng=0))


@each
@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")  # one component of two points
@pytest.mark.parametrize(("n", "d"), [(2, 3), (3, 1), (4, 50), (30, 2)])
def test_small_and_long_tables_have_two_clusters_by_the_data_and_the_seed_alone_and_the_first_is_one(name, n, d):
    X = np.random.default_rng(2).standard_normal((n, d))
    found = ALL[name](X, rng=3)
    assert found.shape == (n,)
    assert found[0] == 1.0
    assert set(found) == {-1.0, 1.0}
    np.testing.assert_array_equal(found, ALL[name](X, rng=np.random.default_rng(3)))


@each
def test_a_constant_column_changes_nothing(name):
    X = np.random.default_rng(4).standard_normal((20, 10 if name in OF_ALL_DIRECTIONS else 30))
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


@pytest.mark.parametrize("name", sorted(set(ALL) - {"spectral_kurtosis"}))
@pytest.mark.parametrize("rng", [None, 0.5, -1])
def test_what_is_no_seed_is_refused(name, rng):
    with pytest.raises(ParameterError, match="rng"):
        ALL[name](np.eye(4), rng=rng)


@pytest.mark.parametrize(
    ("name", "n", "d"), [("alternating_optimization", 300, 3), ("kmeans_whitened", 300, 3), ("cure", 120, 10)]
)
def test_a_noiseless_clustering_is_found_exactly(name, n, d):
    for seed in range(3):
        X, y, _ = make_planted(n, d, d, rng=seed)
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


@pytest.mark.parametrize("seed", range(2))
def test_two_means_on_whitened_data_reaches_what_scikit_learn_reaches(seed):
    X = make_planted(100, 4, noise=0.3, rng=seed).X
    theirs = 2.0 * KMeans(2, n_init=20, random_state=0).fit_predict(column_basis(X - X.mean(axis=0))) - 1.0
    ours = squared_correlation(X, kmeans_whitened(X, n_init=20, rng=0))
    assert ours == pytest.approx(squared_correlation(X, theirs), abs=1e-12)


def test_two_means_on_standardized_columns_has_the_least_distortion_of_scikit_learn():
    X = np.random.default_rng(6).standard_normal((50, 3)) * [5.0, 1.0, 0.1]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = kmeans_standardized(X, n_init=30, rng=0)
    ours = sum(np.sum((Z[y == s] - Z[y == s].mean(axis=0)) ** 2) for s in (-1, 1))
    assert ours == pytest.approx(KMeans(2, n_init=30, random_state=0).fit(Z).inertia_, rel=1e-9)


# CURE


def test_the_slope_of_the_double_well_is_that_of_finite_differences_and_continuous():
    t, h = np.linspace(-6.0, 6.0, 241), 1e-5
    differences = (double_well(t + h)[0] - double_well(t - h)[0]) / (2 * h)
    np.testing.assert_allclose(double_well(t)[1], differences, atol=1e-8)
    for joint in (QUARTIC_END, LINEAR_START):  # the second derivative is continuous there
        below, at, above = double_well(np.array([joint - h, joint, joint + h]))[1]
        assert above - at == pytest.approx(at - below, abs=1e-8)


def test_the_double_well_is_the_quartic_inside_and_linear_outside():
    t = np.array([0.0, 1.0, -1.0, 1.5])
    np.testing.assert_allclose(double_well(t)[0], (t**2 - 1) ** 2 / 4)
    values, slopes = double_well(np.array([LINEAR_START, LINEAR_START + 1.0, LINEAR_START + 2.0, -LINEAR_START - 2.0]))
    np.testing.assert_array_equal(slopes * [1, 1, 1, -1], slopes[0])
    assert values[3] == values[2] == pytest.approx(values[0] + 2 * slopes[0])


def test_the_gradient_of_the_loss_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(20), rng.standard_normal((20, 4))])
    Z[:, 1:] -= Z[:, 1:].mean(axis=0)
    at = 2.0 * rng.standard_normal(5)
    assert scipy.optimize.check_grad(lambda c: loss(c, Z)[0], lambda c: loss(c, Z)[1], at) < 1e-5


def test_more_starts_of_cure_find_what_one_start_misses():
    X, y, _ = make_planted(150, 16, 16, rng=0)
    errors = [clustering_error(y, cure(X, n_init=starts, rng=2)) for starts in (1, 30)]
    assert errors[0] > 0.5
    assert errors[1] == 0.0


# The spectral method


def grid_of(fraction):
    """All pairs of a two-valued coordinate (given fraction at the larger value) and one of kurtosis 3, then mixed."""
    signs = np.repeat([1.0, -1.0], [round(20 * fraction), 20 - round(20 * fraction)])
    u, w = np.meshgrid(signs, [-(3**0.5), 0.0, 0.0, 0.0, 0.0, 3**0.5])
    return np.column_stack([u.ravel(), w.ravel()]) @ [[1.0, 2.0], [3.0, -1.0]], u.ravel()


@pytest.mark.parametrize(("fraction", "found"), [(0.5, True), (0.7, True), (0.75, True), (0.85, False), (0.95, False)])
def test_the_direction_of_two_clusters_is_found_while_its_kurtosis_is_below_three(fraction, found):
    X, y = grid_of(fraction)
    assert bool(np.all(spectral_kurtosis(X) == y * y[0])) is found


def test_the_spectral_method_finds_most_labels_and_alternation_the_rest():
    X, y, _ = make_planted(400, 10, 10, rng=1)
    found = spectral_kurtosis(X)
    assert 0.0 < clustering_error(y, found) < 0.2
    assert clustering_error(y, refine(X, found)) == 0.0
