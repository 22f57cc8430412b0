import numpy as np
import pytest
from oracles import labelings

from diffrac_cvx.metrics import separation, squared_correlation
from diffrac_cvx.rounding import kmeans_1d, refine


def sample(n, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], p=[0.3, 0.7], size=n)


@pytest.mark.parametrize("seed", range(6))
def test_two_means_finds_the_best_of_all_labelings(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(8) if seed % 2 else rng.integers(0, 4, 8).astype(float)
    best = max(separation(x[:, None], y) for y in labelings(8))
    assert separation(x[:, None], kmeans_1d(x)) == pytest.approx(best, rel=1e-12)


def test_two_means_takes_the_lowest_of_equally_good_thresholds():
    np.testing.assert_array_equal(kmeans_1d([-1.0, 0.0, 1.0]), [1, -1, -1])
    np.testing.assert_array_equal(kmeans_1d([0.3, 0.7, 1.1]), [1, -1, -1])  # equal up to rounding only
    np.testing.assert_array_equal(kmeans_1d(1e14 + np.array([4, 2, 1, 5, 3])), [1, -1, -1, 1, 1])


def test_equal_values_are_in_one_cluster():
    np.testing.assert_array_equal(kmeans_1d([0.1] * 7), np.ones(7))
    np.testing.assert_array_equal(kmeans_1d([3.0]), [1.0])
    x = np.random.default_rng(0).integers(0, 5, 200).astype(float)
    y = kmeans_1d(x)
    assert all(len(set(y[x == value])) == 1 for value in np.unique(x))


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e9), (1e-300, 0.0), (1e300, 0.0), (-2.0, 3.0)])
def test_two_means_ignores_the_unit_and_the_origin(scale, offset):
    x = np.concatenate([np.arange(5.0), 20 + np.arange(3.0)])
    np.testing.assert_array_equal(kmeans_1d(scale * x + offset), [1, 1, 1, 1, 1, -1, -1, -1])


# Refinement


@pytest.mark.parametrize("seed", range(4))
def test_refinement_never_decreases_the_squared_correlation_and_stops_at_a_fixed_point(seed):
    X = np.random.default_rng(seed).standard_normal((30, 4))
    y = sample(30, seed)
    refined = refine(X, y)
    assert squared_correlation(X, refined) >= squared_correlation(X, y)
    np.testing.assert_array_equal(refine(X, refined), refined)


@pytest.mark.parametrize("seed", range(2))
def test_the_best_labeling_of_all_is_a_fixed_point(seed):
    X = np.random.default_rng(seed).standard_normal((9, 2))
    best = max(labelings(9), key=lambda y: squared_correlation(X, y))
    np.testing.assert_array_equal(refine(X, best), best)
    np.testing.assert_array_equal(refine(X, -best), -best)


def test_refinement_corrects_a_few_wrong_labels_and_keeps_the_names_of_the_clusters():
    y = sample(100)
    X = np.column_stack([y, np.random.default_rng(13).standard_normal((100, 3))])
    wrong = y.copy()
    wrong[[5, 17, 60]] *= -1
    np.testing.assert_array_equal(refine(X, wrong), y)
    np.testing.assert_array_equal(refine(X, -wrong), -y)
    np.testing.assert_array_equal(refine(X, -np.ones(100)), -np.ones(100))
