"""More than two clusters: bounds for a partition, the two strategies, and the estimator."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from instances import normal
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_clusterer_compute_labels_predict, check_clustering

import diffrac_cvx as dc
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.rounding.many_clusters import cluster_jointly


def simplex(k):
    """Corners of a regular simplex around 0, k rows in k - 1 dimensions."""
    return np.linalg.qr(np.eye(k) - 1 / k)[0][:, : k - 1] * k**0.5


def planted_classes(n, d, k, noise=0.0, seed=0):
    """Balanced classes at the corners of a simplex, with noise dimensions, rotated."""
    rng = np.random.default_rng([n, d, k, seed])
    classes = np.arange(n) % k
    corners = simplex(k)[classes]
    X = np.hstack([corners + noise * rng.standard_normal(corners.shape), rng.standard_normal((n, d - k + 1))])
    return X @ rng.standard_normal((d, d)), classes


def cost_by_hand(X, labels, k, nu, ridge):
    """Cost of a partition with a ridge, from the normal equations of each cluster."""
    X = X - X.mean(axis=0)
    Z = np.eye(k)[labels]
    T = Z - Z.mean(axis=0)
    n, d = X.shape
    W = np.linalg.solve(X.T @ X / n + ridge * np.eye(d), X.T @ T / n)
    cost = np.sum((T - X @ W) ** 2) / n + ridge * np.sum(W**2) + nu * np.sum(Z.mean(axis=0) ** 2)
    return k / (k - 1) * (cost - nu / k)


# The bound


@pytest.mark.parametrize(("nu", "penalty"), [(1.0, {}), (0.4, {"ridge": 0.1, "lam": 0.02})])
def test_no_partition_of_six_points_in_three_costs_less_than_the_relaxation(penalty, nu):
    X = np.random.default_rng(2).standard_normal((6, 2)) * [1.0, 3.0]
    relaxed = dc.solve(dc.v_space(X, nu, dc.Penalty(**penalty)), "CLARABEL")
    partitions = (np.array((0, *rest)) for rest in itertools.product(range(3), repeat=5))
    costs = [dc.certify_clusters(X, labels, 0.0, 3, nu=nu, **penalty).objective for labels in partitions]
    assert min(costs) >= relaxed.lower
    assert min(costs) <= relaxed.upper + 0.5  # and not far above: the bound is useful


@pytest.mark.parametrize("nu", [1.0, 0.4])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_cost_is_that_of_the_normal_equations(k, nu):
    rng = np.random.default_rng(k)
    X, labels = rng.standard_normal((40, 4)), rng.integers(k, size=40)
    proof = dc.certify_clusters(X, labels, 0.0, k, nu=nu, ridge=0.3)
    assert proof.objective == pytest.approx(cost_by_hand(X, labels, k, nu, 0.3), abs=1e-10)
    assert proof.objective >= cost_by_hand(X, labels, k, nu, 0.3)
    assert proof.W.shape == (k, 4)
    with_an_empty_one = dc.certify_clusters(X, labels, 0.0, k + 1, nu=nu, ridge=0.3).objective
    assert with_an_empty_one == pytest.approx(cost_by_hand(X, labels, k + 1, nu, 0.3), abs=1e-10)
    assert dc.certify_clusters(X, 0 * labels, 0.0, k, nu=nu).objective == pytest.approx(nu)
    if k == 2:
        two = dc.certify_labels(X, 2.0 * labels - 1.0, 0.01, nu=nu, ridge=0.3, lam=0.05)
        assert dc.certify_clusters(X, labels, 0.01, nu=nu, ridge=0.3, lam=0.05).gap == pytest.approx(two.gap, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_the_bound_is_that_of_the_multiclass_relaxation(noisy, k):
    """nu/k + (1 - 1/k) times the cost is the objective of `multiclass`, and the bounds correspond."""
    labels, nu = np.arange(len(noisy)) % k, 0.6
    many, one = dc.solve(dc.multiclass(noisy, k, nu), "SCS"), dc.low_rank(noisy, nu)
    assert nu / k + (1 - 1 / k) * one.lower <= many.upper
    assert nu / k + (1 - 1 / k) * one.upper >= many.lower
    proof = dc.certify_clusters(noisy, labels, one, k, nu=nu)
    assert nu / k + (1 - 1 / k) * proof.objective >= many.lower
    assert proof.lower == one.lower


@pytest.mark.parametrize("k", [3, 4, 6])
def test_planted_classes_are_proved_to_be_optimal(k):
    X, classes = planted_classes(60, 8, k)
    proof = dc.certify_clusters(X, classes, dc.low_rank(X, tol=1e-8), k)
    assert proof.gap < 1e-6
    wrong = np.where(np.arange(60) == 0, 1, classes)
    assert dc.certify_clusters(X, wrong, 0.0, k).gap > 1e-3


# k-means on a factor


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_there_are_no_more_clusters_than_distinct_points_at_any_scale_and_they_are_numbered_by_first_point(scale):
    points = np.repeat([[5.0], [0.0], [1.0]], 3, axis=0) * scale
    np.testing.assert_array_equal(dc.rounding.kmeans_rows(points, 5), np.repeat(np.arange(3), 3))
    assert not dc.rounding.kmeans_rows(np.ones((4, 2)) * scale, 3).any()


def test_k_means_is_as_good_as_the_best_partition_of_eight_points():
    points = np.random.default_rng(3).standard_normal((8, 2))

    def spread(labels):
        return sum(np.sum((points[labels == j] - points[labels == j].mean(axis=0)) ** 2) for j in set(labels))

    best = min(spread(np.array(labels)) for labels in itertools.product(range(3), repeat=8))
    assert spread(dc.rounding.kmeans_rows(points, 3, n_init=30)) == pytest.approx(best)


# Affine scores


def test_a_cluster_between_two_others_keeps_its_points():
    """Least squares alone assigns the middle of three collinear groups to the outer ones."""
    x = np.concatenate([np.linspace(-0.2, 0.2, 9) + center for center in (-2.0, 0.0, 2.0)])[:, None]
    classes = np.repeat(np.arange(3), 9)
    weights, solution = PairPenalty(np.zeros(1), a=np.zeros(1)), SimpleNamespace(F=x, G=None)
    scores = cluster_jointly(array_table(x - x.mean()), solution, 3, weights=weights, rng=0)
    np.testing.assert_array_equal(np.argmax(scores.of(x), axis=1), classes)


# The estimator


@pytest.fixture(scope="module")
def three():
    return planted_classes(90, 4, 3, noise=0.15, seed=1)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_planted_classes_are_found_whatever_the_order_of_the_table(k):
    X, classes = planted_classes(40 * k, k + 2, k, noise=0.1)
    model = dc.DiffracClustering(n_clusters=k, ridge=0.01, random_state=0).fit(X)
    assert dc.metrics.adjusted_rand_score(classes, model.labels_) > 0.9
    assert sorted(set(model.labels_)) == list(range(k))
    assert model.coef_.shape == model.scaled_coef_.shape == (k, X.shape[1])
    order = np.random.default_rng(1).permutation(len(X))
    other = clone(model).fit(X[order]).labels_
    assert dc.metrics.adjusted_rand_score(model.labels_[order], other) == 1.0


def test_the_order_of_the_rows_does_not_matter_where_there_are_no_groups():
    model = dc.DiffracClustering(n_clusters=3, random_state=0)
    for X in (np.random.default_rng(3).integers(1, 6, (60, 5)).astype(float), normal(60, 5)):
        labels = model.fit(X).labels_
        for seed in range(2):
            order = np.random.default_rng(seed).permutation(60)
            np.testing.assert_array_equal(model.fit(X[order]).labels_, labels[order])


@pytest.mark.parametrize("parameters", [{}, {"lam": 0.05}, {"nu": 0.5, "ridge": 0.1}, {"standardize": False}])
def test_predict_gives_the_labels_and_the_largest_score_and_the_gap_is_that_of_the_certificate(three, parameters):
    X = three[0] * [1.0, 30.0, 0.2, 4.0] + 5.0  # scaled values have standard deviation one, even of a near sum:
    X = np.column_stack([X, X[:, 0] + X[:, 1] + 1e-3 * np.random.default_rng(0).standard_normal(len(X))])
    model = dc.DiffracClustering(n_clusters=3, random_state=0, **parameters).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(np.argmax(model.decision_function(X), axis=1), model.labels_)
    np.testing.assert_allclose(model.transform(X), X @ model.coef_.T)
    np.testing.assert_allclose(((X - X.mean(axis=0)) / X.std(axis=0) @ model.scaled_coef_.T).std(axis=0), 1.0)
    assert 0.0 < model.score(X) <= 1.0
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)
    data = X if parameters == {"standardize": False} else (X - X.mean(axis=0)) / X.std(axis=0)
    used = {"nu": model.nu, "ridge": model.ridge, "lam": model.lam}
    proof = dc.certify_clusters(data, model.labels_, model.lower_bound_, 3, **used)
    assert 0.0 <= model.label_gap_ == pytest.approx(proof.gap, abs=1e-7)


def test_a_sparse_penalty_leaves_features_out_for_all_clusters():
    X, _ = planted_classes(150, 2, 3, noise=0.1)
    X = np.hstack([X, np.random.default_rng(0).standard_normal((150, 6))])
    model = dc.DiffracClustering(n_clusters=3, lam=0.1, ridge=0.0, random_state=0).fit(X)
    assert {0, 1} <= set(model.support_)
    assert len(model.support_) < 8
    assert not model.coef_[:, np.setdiff1d(np.arange(8), model.support_)].any()


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
def test_what_cannot_be_split_in_three_has_fewer_clusters_and_says_so():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 6, axis=0)
    model = dc.DiffracClustering(n_clusters=3, ridge=0.01, random_state=0).fit(X)
    assert sorted(set(model.labels_)) == [0, 1]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert "small cluster" in [warning.code for warning in model.diagnostics_]


def test_one_cluster_holds_all_points(three):
    model = dc.DiffracClustering(n_clusters=1).fit(three[0])
    assert not model.predict(three[0]).any()
    assert not model.coef_.any()
    assert model.label_gap_ == pytest.approx(1.0 - model.lower_bound_)  # its cost is nu
    assert model.diagnostics_ == ()


def test_scikit_learns_check_of_clusterers_passes_with_three_clusters():
    model = dc.DiffracClustering(n_clusters=3, random_state=0)
    check_clustering("DiffracClustering", model)
    check_clusterer_compute_labels_predict("DiffracClustering", model)
