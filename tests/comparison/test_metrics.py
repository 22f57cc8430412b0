import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from diffrac_cvx import metrics
from diffrac_cvx.errors import DegenerateDataWarning

Y = np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0])


def with_spectrum(eigenvalues, n=7, seed=0):
    rng = np.random.default_rng(seed)
    r = len(eigenvalues)
    left = np.linalg.qr(rng.standard_normal((n, r)))[0]
    right = np.linalg.qr(rng.standard_normal((r, r)))[0]
    return left * np.sqrt(eigenvalues) @ right


def test_the_error_is_one_minus_the_squared_share_of_points_that_agree_less_those_that_do_not():
    assert metrics.clustering_error(Y, Y) == metrics.clustering_error(Y, -Y) == 0.0
    assert metrics.clustering_error([1, 1, -1, -1], [1, -1, 1, -1]) == 1.0
    flipped = Y * [1, 1, 1, -1, 1, 1]
    assert metrics.clustering_error(Y, flipped) == pytest.approx(1 - (1 - 2 / 6) ** 2)
    assert metrics.clustering_error(Y, np.ones(6)) == pytest.approx(1 - metrics.imbalance(Y))


def test_squared_correlation_is_that_of_the_best_least_squares_prediction_whatever_the_coordinates():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 2)) + 5.0
    centered = X - X.mean(axis=0)
    w = np.linalg.lstsq(centered, Y - Y.mean())[0]
    expected = np.corrcoef(centered @ w, Y)[0, 1] ** 2
    assert metrics.squared_correlation(X, Y) == pytest.approx(expected)
    moved = X @ rng.standard_normal((2, 2)) + rng.standard_normal(2)
    assert metrics.squared_correlation(moved, -Y) == pytest.approx(expected)
    assert 1 - 1e-12 < metrics.squared_correlation(np.column_stack([3 * Y + 7, np.arange(6.0)]), Y) <= 1.0
    assert metrics.squared_correlation(np.arange(6.0).reshape(-1, 1), np.ones(6)) == 0.0
    with pytest.warns(DegenerateDataWarning):
        assert metrics.squared_correlation(np.full((6, 2), 0.1), Y) == 0.0


def test_separation_is_the_variance_that_the_two_centroids_explain():
    G = np.random.default_rng(2).standard_normal((6, 3))
    centroids = np.where(Y[:, None] > 0, G[Y > 0].mean(axis=0), G[Y < 0].mean(axis=0))
    total = np.sum((G - G.mean(axis=0)) ** 2)
    assert metrics.separation(G, Y) == pytest.approx(total - np.sum((G - centroids) ** 2))
    assert metrics.separation(np.eye(4), np.ones(4)) == 0.0
    assert metrics.separation(np.eye(4), np.array([1.0, 1.0, 1.0, -1.0])) == pytest.approx(1.0)


@pytest.mark.parametrize(("rtol", "rank"), [(0.5, 1), (0.2, 2), (0.01, 3), (1e-8, 4)])
def test_rank_counts_the_eigenvalues_of_the_product_above_the_threshold(rtol, rank):
    assert metrics.numerical_rank(with_spectrum([5.0, 2.0, 0.1, 1e-6]), rtol) == rank


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_ratio_is_of_the_two_largest_eigenvalues_at_any_scale(scale):
    F = scale * with_spectrum([5.0, 2.0, 0.1])
    assert metrics.eigenvalue_ratio(F) == pytest.approx(2 / 5)
    assert metrics.numerical_rank(F) == 3
    assert metrics.eigenvalue_ratio(np.ones((5, 1))) == 0.0
    assert metrics.numerical_rank(np.zeros((4, 2))) == metrics.eigenvalue_ratio(np.zeros((4, 2))) == 0


@pytest.mark.parametrize("shape", [(9, 6), (6, 9)])
@pytest.mark.parametrize("spectrum", [[5.0, 2.0, 0.1], [3.0]])
def test_ratio_of_a_large_factor_is_that_of_all_its_singular_values(shape, spectrum, monkeypatch):
    monkeypatch.setattr(metrics, "FULL_FACTOR_SVD_SIZE", 5)
    rng = np.random.default_rng(5)
    left, right = (np.linalg.qr(rng.standard_normal((size, len(spectrum))))[0] for size in shape)
    ratio = metrics.eigenvalue_ratio(left * np.sqrt(spectrum) @ right.T)
    assert ratio == pytest.approx(0.4 if len(spectrum) > 1 else 0.0, abs=1e-12)
    assert ratio >= 0.0
    assert metrics.eigenvalue_ratio(np.zeros(shape)) == 0.0


def test_the_imbalance_of_a_factor_is_that_of_its_product_and_at_most_one():
    F = np.random.default_rng(6).standard_normal((9, 3))
    F /= np.linalg.norm(F, axis=1)[:, None]
    assert metrics.factor_imbalance(F) == pytest.approx(np.sum(F @ F.T) / 81)
    assert metrics.factor_imbalance(Y[:, None]) == pytest.approx(metrics.imbalance(Y))
    assert metrics.factor_imbalance(np.full((9, 1), 1.0 + 1e-15)) == 1.0
    assert metrics.imbalance(Y) == metrics.imbalance(-Y) == pytest.approx((4 - 2) ** 2 / 36)


# Classes and clusters


@pytest.mark.parametrize("seed", range(4))
def test_the_adjusted_rand_index_is_that_of_scikit_learn_and_one_for_the_same_clusters_by_other_names(seed):
    rng = np.random.default_rng(seed)
    true, found = (rng.integers(rng.integers(1, 6), size=60) for _ in range(2))
    assert metrics.adjusted_rand_score(true, found) == pytest.approx(adjusted_rand_score(true, found), abs=1e-12)
    true = ["a", "b", "b", "c"]
    assert metrics.adjusted_rand_score(true, [2, 0, 0, 1]) == 1.0
    assert metrics.adjusted_rand_score([0, 0], [1, 1]) == metrics.adjusted_rand_score([0], [1]) == 1.0
    assert metrics.adjusted_rand_score([0, 0, 1, 1], [0, 1, 0, 1]) < 0.0


def test_a_crosstab_counts_every_point_once_under_its_class_and_cluster():
    table = metrics.contingency_matrix(["x", "y", "y", "z"], [1, 0, 1, 1])
    assert table.true == ("x", "y", "z")
    assert table.found == (0, 1)
    np.testing.assert_array_equal(table.counts, [[0, 1], [1, 1], [0, 1]])
