"""Certified optimal partitions: brute force agrees, no multipliers prove a false bound, two clusters are labels."""

from itertools import product

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.certificates.labels import LabelDual, LabelProblem, Sets
from diffrac_cvx.solvers.exact.partition import violated_independent_sets, violated_sets


def simplex(K):
    """Return K unit vectors with products -1/(K - 1), in K dimensions."""
    return (np.eye(K) - 1.0 / K) * (K / (K - 1.0)) ** 0.5


def values(X, K, nu, ridge, w):
    """Return all partitions, without those that only rename clusters of the first point, and their objectives."""
    p = w / w.sum()
    X = X - p @ X
    H = np.linalg.inv(X.T @ (p[:, None] * X) + ridge * np.eye(X.shape[1]))
    Z = np.array([(0, *z) for z in product(range(K), repeat=len(X) - 1)])
    F = simplex(K)[Z]
    means = np.einsum("i,zik->zk", p, F)
    B = np.einsum("id,zik->zdk", p[:, None] * X, F - means[:, None])
    sizes = np.sum(means**2, axis=1)
    return Z, 1.0 - (1.0 - nu) * sizes - np.einsum("zdk,de,zek->z", B, H, B)


def instance(seed):
    rng = np.random.default_rng([69, seed])
    K = 3 + seed % 2
    n, d = int(rng.integers(K + 1, 8 if K == 4 else 9)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    w = np.ones(n) if rng.random() < 0.6 else rng.integers(0, 3, n).astype(float)
    w = w if np.sum(w > 0) > 2 else np.ones(n)
    return X, K, float(rng.choice([0.0, 0.4, 1.0])), float(rng.choice([0.05, 0.4])), w


def check(seed):
    """Check clusters, bounds and certificate against all partitions; return whether the gap is closed."""
    X, K, nu, ridge, w = instance(seed)
    best = values(X, K, nu, ridge, w)[1].min()
    found = dc.optimal_partition(X, K, nu, ridge=ridge, sample_weight=w, tol=1e-5)
    assert found.lower <= best + 1e-12
    assert found.upper == pytest.approx(best, abs=1e-5)
    assert dc.check_certificate(X, found).lower == found.lower
    return found.gap < 1e-4


def test_bounds_of_partitions_hold_and_the_best_one_is_that_of_brute_force():
    assert sum(check(seed) for seed in range(12)) >= 5


@pytest.mark.slow
def test_bounds_of_partitions_hold_60_times():
    assert sum(check(seed) for seed in range(12, 72)) >= 25


def test_no_multipliers_prove_a_false_bound_on_partitions():
    proved = 0
    for seed in range(16):
        X, K, nu, ridge, w = instance(seed)
        n, d = X.shape
        best, every_column = values(X, K, nu, ridge, w)[1].min(), np.ones(d, dtype=bool)
        given = X, nu, np.full(d, ridge**0.5), np.zeros(d), w, np.arange(n), np.ones(n), every_column
        problem = LabelProblem(*given, n_clusters=K)
        rng = np.random.default_rng(seed)
        for _ in range(6):
            drawn = [rng.permutation(n)[: rng.integers(3, n + 1)] for _ in range(8)]
            members = np.full((8, n), -1)
            centers = np.full(8, -1)
            for row, (center, *some) in enumerate(drawn):
                is_clique = len(some) > K
                members[row, : len(some)] = some
                centers[row] = -1 if is_clique else center
            sets = Sets(centers, members, rng.exponential(0.02, 8))
            assert sets.invalid(K) == ""
            floors, mu = rng.exponential(0.01, (n, n)) * (rng.random((n, n)) < 0.4), rng.normal(0.0, 0.1, n)
            for _ in range(80):  # lift mu until something is proved
                lower = problem.lower_bound(LabelDual(mu, sets=sets, floors=floors))
                if lower > -np.inf:
                    break
                mu = mu + 0.03
            proved += lower > -np.inf
            assert lower <= best + 1e-12
    assert proved >= 40


@pytest.mark.parametrize("K", [3, 4])
def test_sets_hold_for_all_partitions_and_those_found_are_violated(K):
    rng, n = np.random.default_rng(K), 7
    every = np.array(list(product(range(K), repeat=n)))
    sets = Sets(
        np.array([0, 3, -1]),
        np.array([[1, 2, -1, -1, -1], [6, 5, 4, 1, -1], [*range(K + 1), *[-1] * (4 - K)]]),
        np.ones(3),
    )
    rows = sets.rows(K)
    Y = np.where(every[:, rows.first] == every[:, rows.second], 1.0, -1.0 / (K - 1.0)) * rows.coefficients
    left = np.add.reduceat(Y, np.append(0, rows.ends[:-1]), axis=1)
    assert left.max(axis=0) == pytest.approx(rows.right)  # and they are reached

    F = rng.standard_normal((30, 3))
    Z = np.abs(F @ F.T) / np.max(np.sum(F**2, axis=1))
    for centers, members in (violated_sets(Z, rng, 50), violated_independent_sets(Z, K, rng, 50)):
        assert len(centers)
        for i, chosen in zip(centers, members, strict=True):
            some = chosen[chosen >= 0]
            assert len(np.unique(some)) == len(some)
            pairs = (np.sum(Z[np.ix_(some, some)]) - np.sum(Z[some, some])) / 2.0
            assert (np.sum(Z[i, some]) - pairs > 1.0) if i >= 0 else pairs < 1.0


def test_two_clusters_are_the_labels():
    X = dc.datasets.make_planted(40, 3, noise=0.8, rng=0).X
    labels, found = dc.optimal_labels(X, 0.5, ridge=0.2), dc.optimal_partition(X, 2, 0.5, ridge=0.2)
    assert found.bracket == labels.bracket
    np.testing.assert_array_equal(found.labels, (labels.labels != labels.labels[0]).astype(int))
    assert dc.check_certificate(X, found.certificate).lower == found.lower


def test_neither_the_order_of_points_nor_units_matter_and_weights_are_copies():
    rng = np.random.default_rng(2)
    X = np.repeat(np.eye(3) * 4.0, 6, axis=0) + rng.standard_normal((18, 3))
    ridge = 0.1 * np.var(X, axis=0)
    found = dc.optimal_partition(X, 3, ridge=ridge, tol=1e-5)
    assert found.status is dc.Status.OPTIMAL
    order, units = rng.permutation(18), np.array([1e-40, 1.0, 1e40])
    moved = dc.optimal_partition((X * units)[order], 3, ridge=ridge * units**2, tol=1e-5)
    assert moved.upper == pytest.approx(found.upper, abs=1e-9)
    assert dc.metrics.adjusted_rand_score(moved.labels, found.labels[order]) == 1.0
    copies = np.repeat(np.arange(18), 1 + np.arange(18) % 2)
    weighted = dc.optimal_partition(X, 3, ridge=0.1, sample_weight=1 + np.arange(18) % 2, tol=1e-5)
    assert weighted.upper == pytest.approx(dc.optimal_partition(X[copies], 3, ridge=0.1, tol=1e-5).upper, abs=1e-9)


def test_searches_stop_by_time_and_by_callback_with_valid_bounds():
    X = np.random.default_rng(0).standard_normal((40, 4))
    for limit in ({"time_limit": 0.0}, {"callback": lambda *_: True}):
        found = dc.optimal_partition(X, 3, ridge=0.3, **limit)
        assert found.status in (dc.Status.TIME_LIMIT, dc.Status.STOPPED)
        assert 0.0 <= found.lower <= found.upper <= 1.0
        assert dc.check_certificate(X, found).lower == found.lower


def test_what_has_no_columns_is_trivial():
    found = dc.optimal_partition(np.ones((6, 2)), 3, ridge=0.1)
    assert found.lower == pytest.approx(1.0)
    assert found.gap < 1e-9


def test_certify_clusters_takes_the_bound_of_a_search_for_the_same_number_of_clusters_with_its_certificate():
    X = dc.datasets.make_planted(30, 3, noise=0.5, rng=1).X
    searched = dc.optimal_partition(X, 3, ridge=0.2)
    others = np.arange(30) % 3
    found = dc.certify_clusters(X, others, searched, 3, ridge=0.2)
    assert found.lower == searched.lower
    assert dc.check_certificate(X, found).lower == searched.lower
    with pytest.raises(dc.ParameterError, match="bound on 3 clusters, not 4"):
        dc.certify_clusters(X, others, searched, 4, ridge=0.2)


def test_the_bound_of_an_estimator_is_that_of_its_number_of_clusters():
    X = dc.datasets.make_planted(60, 3, noise=0.5, rng=1).X
    model = dc.DiffracClustering(n_clusters=4).fit(X)
    best = dc.optimal_partition((X - X.mean(axis=0)) / X.std(axis=0), 4, ridge=0.3, time_limit=5.0)
    assert model.result_.lower + 0.01 < model.lower_bound_ <= best.upper
    assert model.lower_bound_ + model.label_gap_ >= best.upper - 1e-9
