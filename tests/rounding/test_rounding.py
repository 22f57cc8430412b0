from functools import partial
from itertools import product

import numpy as np
import pytest
from oracles import labelings

from diffrac_cvx import rounding
from diffrac_cvx.errors import DataError
from diffrac_cvx.metrics import eigenvalue_ratio, separation, squared_correlation
from diffrac_cvx.points.checks import normalize_weights
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.linear_algebra import psd_factor
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.streamed import LabelsFactor
from diffrac_cvx.rounding import (
    ROUNDINGS,
    goemans_williamson,
    kmeans_1d,
    kmeans_centered,
    kmeans_rows,
    refine,
    sign_centered,
)
from diffrac_cvx.rounding.two_clusters import apply_constraints


def sample(n, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], p=[0.3, 0.7], size=n)


def anchored(y):
    return y * y[0]


def eigenvectors(Y):
    return np.linalg.eigh(Y)[1][:, ::-1]


WITH_HYPERPLANES = ROUNDINGS | {"hyperplanes": lambda F: goemans_williamson(F, 0)}
roundings = pytest.mark.parametrize("rounding_of", ROUNDINGS.values(), ids=ROUNDINGS)
LINKED = Constraints(must_link=[(1, 4)], cannot_link=[(2, 7)])
all_roundings = pytest.mark.parametrize("rounding_of", WITH_HYPERPLANES.values(), ids=WITH_HYPERPLANES)


# From a factor


@pytest.mark.parametrize(
    ("rounding_of", "weight"),
    [*product([sign_centered, kmeans_centered], [1.0, 0.5, 0.2, 1e-6]), (WITH_HYPERPLANES["hyperplanes"], 0.2)],
)
def test_the_rank_two_solution_of_the_unbalanced_problem_gives_the_labels(rounding_of, weight):
    y = sample(40)
    Y = weight * np.outer(y, y) + (1 - weight) * np.ones((40, 40))
    np.testing.assert_array_equal(rounding_of(psd_factor(Y, rtol=1e-14)), anchored(y))


def test_the_first_eigenvector_is_right_near_rank_one_and_the_second_near_one_cluster():
    y = sample(40)
    for weight, right, wrong in [(0.9, "sign_leading", "sign_second"), (0.1, "sign_second", "sign_leading")]:
        F = psd_factor(weight * np.outer(y, y) + (1 - weight) * np.ones((40, 40)), rtol=1e-14)
        np.testing.assert_array_equal(ROUNDINGS[right](F), anchored(y))
        np.testing.assert_array_equal(ROUNDINGS[wrong](F), np.ones(40))


@roundings
@pytest.mark.parametrize("full", [3, 400], ids=["leading vectors", "all vectors"])
@pytest.mark.parametrize("seed", range(2))
def test_a_rounding_is_the_eigenvector_that_it_says(rounding_of, seed, full, monkeypatch):
    monkeypatch.setattr("diffrac_cvx.rounding.two_clusters.FULL_SVD_SIZE", full)
    F = np.random.default_rng(seed).standard_normal((12, 4))
    Y = F @ F.T
    Pi = np.eye(12) - 1 / 12
    U = eigenvectors(Y)[:, :2]
    expected = {
        "sign_leading": np.sign(U[:, 0]),
        "sign_second": np.sign(U[:, 1]),
        "sign_centered": np.sign(eigenvectors(Pi @ U @ U.T @ Y @ U @ U.T @ Pi)[:, 0]),
        "kmeans_centered": kmeans_1d(eigenvectors(Pi @ Y @ Pi)[:, 0]),
    }
    np.testing.assert_array_equal(rounding_of(F), anchored(expected[rounding_of.__name__]))


@roundings
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_only_the_product_of_the_factor_matters_and_not_its_scale(rounding_of, scale):
    rng = np.random.default_rng(5)
    F = rng.standard_normal((30, 3))
    rotated = scale * np.pad(F, ((0, 0), (0, 2))) @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    np.testing.assert_array_equal(rounding_of(rotated), rounding_of(F))


@all_roundings
def test_equal_rows_get_equal_labels(rounding_of):
    y = rounding_of(np.repeat(np.random.default_rng(6).standard_normal((9, 17)), 5, axis=0)).reshape(9, 5)
    assert np.all(y == y[:, :1])


@all_roundings
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (2, 1), (50, 3), (3, 7)])
@pytest.mark.parametrize("value", [0.0, 0.1, -1.0, 1e-200])
def test_a_constant_factor_is_one_cluster(rounding_of, shape, value):
    np.testing.assert_array_equal(rounding_of(np.full(shape, value)), np.ones(shape[0]))


def test_a_point_at_zero_joins_the_points_of_the_first_nonzero_sign():
    for sign in (1.0, -1.0):
        F = sign * np.array([[0.0], [2.0], [-1.0], [0.0], [1.0]])
        np.testing.assert_array_equal(rounding.sign_leading(F), [1, 1, -1, 1, 1])


@all_roundings
def test_what_is_not_a_finite_matrix_is_refused(rounding_of):
    with pytest.raises(DataError, match="F"):
        rounding_of([[np.inf, 1.0]])


# Random hyperplanes


def test_hyperplanes_depend_on_the_generator_alone_and_more_of_them_are_never_worse():
    F = np.random.default_rng(10).standard_normal((40, 6))
    np.testing.assert_array_equal(goemans_williamson(F, 3), goemans_williamson(F, np.random.default_rng(3)))
    reached = [separation(F, goemans_williamson(F, 0, n_samples=draws)) for draws in (1, 3, 10, 30)]
    assert reached == sorted(reached)
    assert reached[0] < reached[-1]


def test_the_ratio_of_eigenvalues_of_a_factor_read_by_parts_is_that_of_its_array():
    rng = np.random.default_rng(9)
    for rank in (1, 2, 4):
        X, U = rng.standard_normal((30, 4)), rng.standard_normal((4, rank))
        F = LabelsFactor(as_rows(X).rows, U)
        ratio = eigenvalue_ratio(F)
        assert ratio == pytest.approx(eigenvalue_ratio(F()))
        assert (ratio > 0.0) == (rank > 1)


# Weights

WEIGHTED = {
    **ROUNDINGS,
    **{f"{name} of linked points": partial(rule, constraints=LINKED) for name, rule in ROUNDINGS.items()},
    "goemans_williamson": lambda F, w: goemans_williamson(F, 0, n_samples=5, sample_weight=w),
    "kmeans_1d": lambda F, w: kmeans_1d(F[:, 0], w),
    "kmeans_rows": lambda F, w: kmeans_rows(F, 3, rng=0, sample_weight=w),
    "apply_constraints": lambda F, w: apply_constraints(F[:, 0], LINKED, w),
    "separation": lambda F, w: separation(F, sample(len(F)), w),
}


@pytest.mark.parametrize("function", WEIGHTED.values(), ids=WEIGHTED)
def test_weights_may_have_any_scale(function):
    rng = np.random.default_rng(8)
    F, w = rng.standard_normal((30, 3)), rng.uniform(0.1, 1.0, 30)
    w /= w.sum()  # normalised weights are used bit for bit
    np.testing.assert_allclose(function(F, 3.0 * w), function(F, w), rtol=1e-12)
    assert normalize_weights(w, 30).tobytes() == w.tobytes()
    with pytest.raises(DataError):
        function(F, w[:29])


@pytest.mark.parametrize("function", WEIGHTED.values(), ids=WEIGHTED)
def test_a_point_of_weight_zero_changes_nothing_for_the_others(function):
    rng = np.random.default_rng(9)
    F, w = rng.standard_normal((30, 3)), np.repeat([1.0, 2.0], 15)
    w[-3:] = 0.0
    found, tiny = function(F, w), function(F, np.where(w > 0.0, w, 1e-30))
    np.testing.assert_allclose(found, tiny, rtol=1e-12)


# Two means, and refinement


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
