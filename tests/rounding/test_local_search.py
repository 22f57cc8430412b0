"""Local search for partitions: the objective, local optima, and what may not change them."""

import itertools

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.machine.deadlines import deadline_after, time_limited
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.points.table import array_table
from diffrac_cvx.rounding import local_search
from diffrac_cvx.rounding.local_search import (
    descend,
    partition_objective,
    simplex_corners,
    usual_partitions,
)


def centered(n, d, seed=0, weights=None):
    X = np.random.default_rng([n, d, seed]).standard_normal((n, d)) * np.arange(1, d + 1)
    return X - np.average(X, axis=0, weights=weights)


def rows_of(X, nu=1.0, ridge=0.3, weights=None):
    """Rows R such that the objective of F is 1 - |R'F|^2."""
    p = np.full(len(X), 1.0 / len(X)) if weights is None else weights
    Q = column_basis(np.sqrt(len(X) * p)[:, None] * X, np.full(X.shape[1], ridge**0.5))
    return np.column_stack([np.sqrt(p)[:, None] * Q, (1.0 - nu) ** 0.5 * p])


def search(X, k):
    R = rows_of(X)
    return min((descend(R, k, start) for start in usual_partitions(array_table(X), k, rng=0)), key=lambda one: one[1])


# The objective


@pytest.mark.parametrize(("n", "d"), [(20, 3), (6, 9)])
@pytest.mark.parametrize(("k", "nu", "ridge"), [(2, 1.0, 0.3), (3, 0.4, 0.3), (4, 0.0, 1e-3)])
def test_the_objective_of_the_rows_is_that_of_the_certificate(n, d, k, nu, ridge):
    weights = np.random.default_rng(n).integers(1, 4, n) / 1.0
    X, clusters = centered(n, d, weights=weights), np.random.default_rng(k).integers(k, size=n)
    R = rows_of(X, nu, ridge, weights=weights / weights.sum())
    proof = dc.certify_clusters(X, clusters, 0.0, k, nu=nu, ridge=ridge, sample_weight=weights)
    assert partition_objective(R, simplex_corners(k), clusters) == pytest.approx(proof.objective, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_corners_are_unit_vectors_with_equal_products(k):
    products = simplex_corners(k) @ simplex_corners(k).T
    np.testing.assert_allclose(products, (np.eye(k) * k - 1.0) / (k - 1.0), atol=1e-12)


# The descent


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("k", "nu"), [(2, 1.0), (3, 1.0), (5, 0.6)])
def test_the_descent_ends_where_no_single_move_lowers_the_objective(k, nu, seed):
    R, corners = rows_of(centered(25, 3, seed), nu), simplex_corners(k)
    start = np.random.default_rng(seed).integers(k, size=25)
    given = start.copy()
    found = descend(R, k, start)
    np.testing.assert_array_equal(start, given)  # the caller's array is unchanged
    assert found.objective == partition_objective(R, corners, found.clusters)
    assert found.objective <= partition_objective(R, corners, start)
    for i, j in itertools.product(range(25), range(k)):
        moved = np.where(np.arange(25) == i, j, found.clusters)
        assert partition_objective(R, corners, moved) >= found.objective - 1e-11
    values = R @ (R.T @ corners[found.clusters]) @ corners.T
    np.testing.assert_array_equal(np.argmax(values, axis=1), found.clusters)  # an affine function predicts them


def test_single_moves_lower_the_objective_where_the_alternation_stops():
    lowered = 0
    for seed in range(10):
        R, corners, clusters = rows_of(centered(12, 3, seed)), simplex_corners(3), np.arange(12) % 3
        for _ in range(50):
            clusters = np.argmax(R @ (R.T @ corners[clusters]) @ corners.T, axis=1)
        lowered += descend(R, 3, clusters).objective < partition_objective(R, corners, clusters) - 1e-6
    assert lowered >= 5


def test_the_search_finds_most_optima_of_eight_points():
    found, optima = [], []
    for seed in range(10):
        X = centered(8, 2, seed)
        R, corners = rows_of(X), simplex_corners(3)
        partitions = (np.array((0, *rest)) for rest in itertools.product(range(3), repeat=7))
        optima.append(min(partition_objective(R, corners, clusters) for clusters in partitions))
        found.append(search(X, 3).objective)
    assert np.all(np.array(found) >= np.array(optima) - 1e-12)
    assert np.sum(np.array(found) <= np.array(optima) + 1e-9) >= 7


def test_after_the_deadline_the_start_is_returned():
    start = np.arange(30) // 10
    with time_limited(deadline_after(0.0)):
        np.testing.assert_array_equal(descend(rows_of(centered(30, 4)), 3, start).clusters, start)


# The starts


def test_the_starts_do_not_depend_on_the_units_of_the_columns():
    X = centered(40, 3)
    starts = usual_partitions(array_table(X), 3, rng=0)
    scaled = usual_partitions(array_table(X * [1e4, 1.0, 1e-3]), 3, rng=0)
    assert all(dc.metrics.adjusted_rand_score(*pair) == 1.0 for pair in zip(starts, scaled, strict=True))


def test_ward_and_spectral_clustering_are_starts_of_tables_with_few_points(monkeypatch):
    table = array_table(centered(30, 3))
    starts = list(usual_partitions(table, 3, rng=0))
    assert [sorted(set(start)) for start in starts] == [[0, 1, 2]] * 3
    monkeypatch.setattr(local_search, "MAX_PAIRED_POINTS", 29)
    assert len(list(usual_partitions(table, 3, rng=0))) == 1
    copies = array_table(np.repeat(centered(30, 3)[:29], 2, axis=0))  # distinct points count
    assert len(list(usual_partitions(copies, 3, rng=0))) == 3


def test_spectral_clustering_separates_curved_groups():
    angles = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    clusters = local_search.spectral(np.vstack([ring, 5.0 * ring]), 2)
    assert dc.metrics.adjusted_rand_score(np.repeat([0, 1], 60), clusters) == 1.0


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.repeat([[0.5], [-0.5]], 3, axis=0)])
def test_fewer_distinct_points_than_clusters_are_no_error(X):
    found = search(X, 3)
    assert len(found.clusters) == len(X)
    assert found.objective <= 1.0 + 1e-12


def test_linked_points_share_a_cluster_of_every_start():
    links = [(0, 5), (5, 9), (2, 17)]
    table = array_table(centered(24, 3), chunklets=chunklets_of(Constraints(must_link=links), 24))
    starts = list(usual_partitions(table, 3, rng=0))
    assert len(starts) == 3
    assert all(start[i] == start[j] for start in starts for i, j in links)
