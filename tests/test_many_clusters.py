"""More than two clusters: what is proved about a partition, the two ways to find one, and the estimator."""

import itertools

import numpy as np
import pytest

import diffrac_cvx as dc

PENALTIES = [{}, {"ridge": 0.2}, {"lam": 0.05}, {"ridge": 0.1, "lam": 0.02}]


def simplex(k):
    """The k corners of a regular simplex around 0, as rows in k - 1 dimensions."""
    return np.linalg.qr(np.eye(k) - 1 / k)[0][:, : k - 1] * k**0.5


def planted_classes(n, d, k, noise=0.0, seed=0):
    """Balanced classes at the corners of a simplex, beside noise dimensions, all mixed."""
    rng = np.random.default_rng([n, d, k, seed])
    classes = np.arange(n) % k
    corners = simplex(k)[classes]
    X = np.hstack([corners + noise * rng.standard_normal(corners.shape), rng.standard_normal((n, d - k + 1))])
    return X @ rng.standard_normal((d, d)), classes


def cost_by_hand(X, labels, k, nu, ridge):
    """The cost of a partition, ridge only, from the normal equations of every cluster."""
    X = X - X.mean(axis=0)
    Z = np.eye(k)[labels]
    T = Z - Z.mean(axis=0)
    n, d = X.shape
    W = np.linalg.solve(X.T @ X / n + ridge * np.eye(d), X.T @ T / n)
    cost = np.sum((T - X @ W) ** 2) / n + ridge * np.sum(W**2) + nu * np.sum(Z.mean(axis=0) ** 2)
    return k / (k - 1) * (cost - nu / k)


# The bound


@pytest.mark.parametrize("nu", [1.0, 0.4])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_partition_of_seven_points_in_three_costs_less_than_the_relaxation(penalty, nu):
    X = np.random.default_rng(2).standard_normal((7, 3)) * [1.0, 3.0, 0.5]
    relaxed = dc.solve(dc.v_space(X, nu, dc.Penalty(**penalty)), "CLARABEL")
    partitions = (np.array((0, *rest)) for rest in itertools.product(range(3), repeat=6))
    costs = [dc.certify_clusters(X, labels, 0.0, 3, nu=nu, **penalty).objective for labels in partitions]
    assert min(costs) >= relaxed.lower
    assert min(costs) <= relaxed.upper + 0.5  # and it is not far above: the bound says something


@pytest.mark.parametrize("nu", [1.0, 0.4])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_cost_is_that_of_the_normal_equations(k, nu):
    rng = np.random.default_rng(k)
    X, labels = rng.standard_normal((40, 4)), rng.integers(k, size=40)
    proof = dc.certify_clusters(X, labels, 0.0, k, nu=nu, ridge=0.3)
    assert proof.objective == pytest.approx(cost_by_hand(X, labels, k, nu, 0.3), abs=1e-10)
    assert proof.objective >= cost_by_hand(X, labels, k, nu, 0.3)
    assert proof.W.shape == (k, 4)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_with_two_clusters_the_cost_is_that_of_the_labels(noisy, penalty):
    labels = np.arange(len(noisy)) % 2
    two = dc.certify_labels(noisy, 2.0 * labels - 1.0, 0.01, nu=0.7, **penalty)
    assert dc.certify_clusters(noisy, labels, 0.01, nu=0.7, **penalty).gap == pytest.approx(two.gap, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
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


def test_a_cluster_without_points_counts_as_one_of_k():
    X = np.random.default_rng(1).standard_normal((20, 3))
    labels = np.arange(20) % 2
    assert dc.certify_clusters(X, labels, 0.0, 3).objective == pytest.approx(cost_by_hand(X, labels, 3, 1.0, 0.0))
    assert dc.certify_clusters(X, np.zeros(20, dtype=int), 0.0, 3, nu=0.7).objective == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("labels", "k", "error", "message"),
    [
        ([0, 1, 2], 2, dc.ParameterError, "n_clusters = 2 must be at least 3"),
        ([0, 0, 0], 1, dc.ParameterError, "at least 2"),
        ([0, 1], 2, dc.DataError, "each of the 3 points"),
        ([0, -1, 1], 2, dc.DataError, "from 0 on"),
        ([0.5, 1, 1], 2, dc.DataError, "from 0 on"),
    ],
)
def test_labels_that_are_no_clusters_are_refused(labels, k, error, message):
    with pytest.raises(error, match=message):
        dc.certify_clusters(np.eye(3), labels, 0.0, k)
