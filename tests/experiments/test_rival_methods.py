"""Rivals: methods for two clusters that the experiments compare with the relaxation."""

from functools import partial
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy
from clusterings import assert_affine_changes_keep_labels, assert_finds_far_groups, assert_two_clusters_by_data_and_seed
from sklearn.decomposition import PCA

from diffrac_cvx.baselines import kmeans_standardized
from diffrac_cvx.datasets import make_planted
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.metrics import clustering_error
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.rounding import refine
from experiments.rivals import principal
from experiments.rivals.neighbors import spectral
from experiments.rivals.principal import higher_criticism, ifpca, normal_distance, null_p_values, sparse_component
from experiments.rivals.selection import sparse_weights
from experiments.rivals.two_valued import (
    LINEAR_START,
    PURSUIT_CRITERIA,
    QUARTIC_END,
    cure,
    double_well,
    kurtosis_along,
    loss,
    spectral_kurtosis,
    two_valued_component,
)
from experiments.rivals.weighted_columns import sparse_kmeans

OF_ALL_DIRECTIONS = {"cure": cure, "spectral_kurtosis": lambda X, rng: spectral_kurtosis(X)}
SELECTING = {
    "sparse_kmeans": partial(sparse_kmeans, n_init=1),
    "sparse_kmeans at a bound": partial(sparse_kmeans, bound=1.3, n_init=2),
    "ifpca": ifpca,
    "sparse_component": sparse_component,
}
OF_COLUMNS = {
    "spectral": spectral,
    "first component": partial(two_valued_component, components=1),
    **{criterion: partial(two_valued_component, criterion=criterion) for criterion in PURSUIT_CRITERIA},
    **{name: lambda X, rng, select=select: select(X, rng=rng).labels for name, select in SELECTING.items()},
}
ALL = OF_ALL_DIRECTIONS | OF_COLUMNS


@pytest.fixture(autouse=True)
def _small_null(monkeypatch):
    monkeypatch.setattr(principal, "NULL_COLUMNS", 10_000)


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_two_far_groups_are_found_whatever_the_units_and_the_type_of_the_entries(name):
    assert_finds_far_groups(ALL[name])


@pytest.mark.parametrize("name", OF_ALL_DIRECTIONS)
def test_no_affine_change_of_the_data_and_no_column_that_depends_on_others_changes_the_labels(name):
    assert_affine_changes_keep_labels(ALL[name])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")  # one component of two points
@pytest.mark.parametrize(("n", "d"), [(2, 3), (3, 1), (4, 50), (30, 2)])
def test_small_and_long_tables_have_two_clusters_by_the_data_and_the_seed_alone_and_the_first_is_one(name, n, d):
    assert_two_clusters_by_data_and_seed(ALL[name], n, d)


def test_a_noiseless_clustering_is_found_exactly_by_cure():
    for seed in range(3):
        X, y, _ = make_planted(120, 10, 10, rng=seed)
        assert clustering_error(y, cure(X, rng=0)) == 0.0


# CURE


def test_the_double_well_is_the_quartic_inside_and_linear_outside_and_its_slope_is_smooth_between():
    t, h = np.array([0.0, 1.0, -1.0, 1.5]), 1e-5
    np.testing.assert_allclose(double_well(t)[0], (t**2 - 1) ** 2 / 4)
    values, slopes = double_well(np.array([LINEAR_START, LINEAR_START + 1.0, LINEAR_START + 2.0, -LINEAR_START - 2.0]))
    np.testing.assert_array_equal(slopes * [1, 1, 1, -1], slopes[0])
    assert values[3] == values[2] == pytest.approx(values[0] + 2 * slopes[0])
    for joint in (QUARTIC_END, LINEAR_START):  # the second derivative is continuous there
        below, at, above = double_well(np.array([joint - h, joint, joint + h]))[1]
        assert above - at == pytest.approx(at - below, abs=1e-8)


@pytest.mark.parametrize("function", [loss, kurtosis_along])
def test_gradients_are_those_of_finite_differences(function):
    rng = np.random.default_rng(0)
    Z = 20**0.5 * column_basis(rng.standard_normal((20, 4)))
    Z = np.column_stack([np.ones(20), Z]) if function is loss else Z
    at = 2.0 * rng.standard_normal(Z.shape[1])  # in all parts of the double well
    assert scipy.optimize.check_grad(lambda v: function(v, Z)[0], lambda v: function(v, Z)[1], at) < 1e-5


def test_more_starts_of_cure_find_what_one_start_misses():
    X, y, _ = make_planted(150, 16, 16, rng=0)
    errors = [clustering_error(y, cure(X, n_init=starts, rng=2)) for starts in (1, 30)]
    assert errors[0] > 0.5
    assert errors[1] == 0.0


# The spectral method


@pytest.mark.parametrize(("fraction", "found"), [(0.5, True), (0.7, True), (0.75, True), (0.85, False), (0.95, False)])
def test_the_direction_of_two_clusters_is_found_while_its_kurtosis_is_below_three(fraction, found):
    """All pairs of a two-valued coordinate (a fraction at the larger value) and one of kurtosis 3, then mixed."""
    signs = np.repeat([1.0, -1.0], [round(20 * fraction), 20 - round(20 * fraction)])
    y, w = map(np.ravel, np.meshgrid(signs, [-(3**0.5), 0.0, 0.0, 0.0, 0.0, 3**0.5]))
    X = np.column_stack([y, w]) @ [[1.0, 2.0], [3.0, -1.0]]
    assert bool(np.all(spectral_kurtosis(X) == y * y[0])) is found


def test_the_spectral_method_finds_most_labels_and_alternation_the_rest():
    X, y, _ = make_planted(400, 10, 10, rng=1)
    found = spectral_kurtosis(X)
    assert 0.0 < clustering_error(y, found) < 0.2
    assert clustering_error(y, refine(X, found)) == 0.0


# Wide tables

each_selecting = pytest.mark.parametrize("select", SELECTING.values(), ids=SELECTING)


def shifted_columns(n, d, informative, shift, rng=0):
    """Normal columns of variance 1; in the first few the means of two equal groups are at -shift and shift."""
    rng = np.random.default_rng(rng)
    y = rng.permuted(np.repeat([1.0, -1.0], [n // 2, n - n // 2]))
    X = rng.standard_normal((n, d))
    X[:, :informative] += shift * y[:, None]
    return X, y * y[0]


@each_selecting
def test_a_selection_has_columns_that_vary(select):
    X = np.column_stack([np.zeros(20), np.random.default_rng(4).standard_normal((20, 30))])
    with pytest.warns(DegenerateDataWarning):
        features = select(X, rng=0).features
    assert len(np.unique(features)) == len(features) > 0
    assert features.min() > 0
    assert features.max() <= 30


# Weights with a bound on their l1 norm


@pytest.mark.parametrize("bound", [1.0, 1.3, 2.0, 2.6])
def test_thresholded_weights_are_the_maximum_under_both_norms(bound):
    a = np.random.default_rng(0).standard_normal(7)
    w = cp.Variable(7)
    best = cp.Problem(cp.Maximize(a @ w), [cp.norm(w, 2) <= 1, cp.norm(w, 1) <= bound]).solve("CLARABEL")
    found = sparse_weights(a, bound)
    assert a @ found == pytest.approx(best, abs=1e-6)
    assert np.linalg.norm(found) <= 1 + 1e-9
    assert np.abs(found).sum() <= bound + 1e-6


def test_more_equal_entries_than_the_bound_has_room_for_share_it():
    np.testing.assert_allclose(sparse_weights(np.array([-2.0, 1.0, 2.0, 2.0, 2.0]), 1.2), [-0.3, 0.0, 0.3, 0.3, 0.3])


# Sparse k-means


@pytest.mark.parametrize("bound", [1.1, 1.5])
def test_no_labels_explain_more_than_those_of_sparse_kmeans(bound):
    X = np.random.default_rng(5).standard_normal((8, 4))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)

    def explained(y):
        between = 8 * (Z[y > 0].sum(axis=0) ** 2) / (sum(y > 0) * sum(y < 0))
        return sparse_weights(between, bound) @ between

    values = [explained(np.array([1.0, *rest])) for rest in product([-1.0, 1.0], repeat=7) if min(rest) < 0]
    assert explained(sparse_kmeans(X, bound=bound, n_init=60, rng=0).labels) == pytest.approx(max(values), rel=1e-9)


def test_sparse_kmeans_errs_less_than_kmeans_where_50_of_500_columns_tell():
    tables = [shifted_columns(60, 500, 50, 0.6, seed) for seed in range(4)]  # p, q and shift of Witten and Tibshirani
    sparse = np.mean([clustering_error(y, sparse_kmeans(X, bound=6.0, rng=0).labels) for X, y in tables])
    plain = np.mean([clustering_error(y, kmeans_standardized(X, n_init=3, rng=0)) for X, y in tables])
    assert sparse < 0.25 < 0.5 < plain


def test_the_gap_statistic_keeps_the_columns_that_tell():
    X, y = shifted_columns(60, 300, 5, 2.0)
    labels, features = sparse_kmeans(X, n_init=4, rng=0)
    assert clustering_error(y, labels) == 0.0
    assert set(features[:5]) == set(range(5))
    assert len(features) < 200
    assert len(sparse_kmeans(X, bound=0.9 * 300**0.5, n_init=1, rng=0).features) == 300  # the largest of the grid


# Influential-features PCA


def test_scores_are_those_of_scipy():
    Z = np.random.default_rng(0).standard_normal((25, 3)) ** 3
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    theirs = [5 * scipy.stats.kstest(z, "norm").statistic for z in Z.T]
    np.testing.assert_allclose(normal_distance(Z), theirs, rtol=1e-12)


def test_p_values_of_normal_columns_are_uniform_even_if_all_scores_are_off():
    X = np.random.default_rng(0).standard_normal((30, 2000))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for scores in (normal_distance(Z), 3.0 * normal_distance(Z) + 1.0):
        assert scipy.stats.kstest(null_p_values(scores, 30, np.random.default_rng(1)), "uniform").pvalue > 0.01


def test_higher_criticism_is_the_largest_of_its_formula_among_the_allowed_or_half_of_the_columns():
    n, p = 50, np.sort(np.random.default_rng(0).random(40) ** 2)
    values = {}
    for j in range(1, 21):
        excess = j / 40 - p[j - 1]
        if p[j - 1] > np.log(40) / 40:
            values[j] = 40**0.5 * excess / (max(n**0.5 * excess, 0.0) + j / 40) ** 0.5
    assert higher_criticism(p, n) == max(values, key=values.get)
    assert (higher_criticism(np.zeros(10), n), higher_criticism(np.ones(1), n)) == (5, 1)


def test_columns_far_from_normal_are_found_among_two_thousand_and_split_the_points():
    X, y = shifted_columns(100, 2000, 40, 2.0)
    labels, features = ifpca(X, rng=0)
    assert clustering_error(y, labels) == 0.0
    assert len(set(features) & set(range(40))) >= 0.75 * max(40, len(features))
    np.testing.assert_array_equal(ifpca(X, features=5, rng=0).features, features[:5])


# Spectral clustering


def test_rings_around_each_other_are_found():
    angle = np.linspace(0.0, 2 * np.pi, 60, endpoint=False)
    y = np.repeat([1.0, -1.0], 60)
    X = np.where(y > 0, 1.0, 4.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])[np.arange(120) % 60]
    np.testing.assert_array_equal(spectral(X, rng=0), y)
    assert clustering_error(y, kmeans_standardized(X, rng=0)) > 0.9


# Principal components


def test_the_first_component_is_that_of_scikit_learn():
    X, _ = shifted_columns(30, 80, 20, 0.8)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = np.sort(PCA(1).fit_transform(Z)[:, 0])
    split = min(range(1, 30), key=lambda k: scores[:k].var() * k + scores[k:].var() * (30 - k))
    y = np.where(PCA(1).fit_transform(Z)[:, 0] >= scores[split], 1.0, -1.0)
    np.testing.assert_array_equal(two_valued_component(X, components=1, rng=0), y * y[0])


def test_a_sparse_component_without_a_tight_bound_is_the_first_component():
    X, _ = shifted_columns(30, 80, 20, 0.8)
    labels, features = sparse_component(X, bound=9.0, rng=0)
    np.testing.assert_array_equal(labels, two_valued_component(X, components=1, rng=0))
    assert len(features) == 80


def test_a_sparse_component_is_found_by_cross_validation_where_the_first_component_errs():
    X, y = shifted_columns(60, 2000, 20, 1.3)
    labels, features = sparse_component(X, rng=0)
    assert clustering_error(y, labels) < 0.1 < clustering_error(y, two_valued_component(X, components=1, rng=0))
    assert set(features[:15]) <= set(range(20))


# A component with two values


def test_two_groups_behind_larger_factors_are_found_by_their_two_values_among_enough_components():
    """Twenty informative columns of a thousand, and three common factors with half of the variance."""
    X, y = shifted_columns(100, 1000, 20, 2.0)
    rng = np.random.default_rng([0, 1])
    X = X + rng.standard_normal((100, 3)) @ rng.standard_normal((3, 1000)) / 3**0.5
    for criterion in ("kurtosis", "dip", "pursuit"):
        assert clustering_error(y, two_valued_component(X, criterion=criterion, rng=0)) < 0.2
    for components in (1, 3):
        assert clustering_error(y, two_valued_component(X, components=components, rng=0)) > 0.9


@pytest.mark.parametrize("criterion", ["pursuit", "diffrac"])
def test_a_planted_direction_that_is_no_component_is_found(criterion):
    X, y, _ = make_planted(200, 6, 6, rng=0)
    assert clustering_error(y, two_valued_component(X, criterion=criterion, rng=0)) < 0.05
    assert clustering_error(y, two_valued_component(X, criterion="kurtosis", rng=0)) > 0.5
