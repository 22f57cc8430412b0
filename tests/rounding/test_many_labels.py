"""Several labels at once: Procrustes rounding, its metrics, and the multi-class relaxation."""

import warnings

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.rounding.many_labels import procrustes_iterates


def labels_of(n, k, seed=0, balanced=False):
    rng = np.random.default_rng(seed)
    if balanced:
        return np.stack([rng.permutation(np.repeat([1.0, -1.0], n // 2)) for _ in range(k)], axis=1)
    return np.where(rng.random((n, k)) < 0.5, 1.0, -1.0)


def mixture(labels, weights):
    """F with Y = a_0^2 11' + sum_i a_i^2 y_i y_i', times a rotation."""
    columns = np.column_stack([np.ones(len(labels)), labels]) * np.asarray(weights)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((columns.shape[1],) * 2))[0]
    return columns @ Q


def found(truth, labels):
    """Return whether every true label is found, up to its sign."""
    overlap = np.abs(np.asarray(labels).T @ truth) / len(truth)
    return bool(np.all(overlap.max(axis=0) == 1.0))


@pytest.mark.parametrize(("k", "scale"), [(1, 1.0), (2, 1e-9), (3, 1e9), (5, 1.0)])
@pytest.mark.parametrize("constant", [0.0, 0.4])
def test_the_labels_and_weights_of_a_mixture_are_found_at_any_scale_without_a_warning(k, constant, scale):
    truth = labels_of(200, k)
    weights = np.concatenate([[constant], np.linspace(1.0, 0.5, k)])
    weights /= np.linalg.norm(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = dc.rounding.fit_label_mixture(scale * mixture(truth, weights), k)
    assert fit.labels.shape == (200, k)
    assert set(np.unique(fit.labels)) == {-1.0, 1.0}
    assert found(truth, fit.labels)
    np.testing.assert_allclose(fit.weights, weights, atol=1e-6)
    assert fit.objective == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_no_other_labels_are_nearer_on_a_small_instance():
    """Brute force over all pairs of labellings of seven points, with the best weights and rotation of each."""
    rng = np.random.default_rng(5)
    F = rng.standard_normal((7, 3))
    F *= (7 / np.sum(F**2)) ** 0.5
    best = np.inf
    patterns = 2.0 * ((np.arange(64)[:, None] >> np.arange(6)) & 1) - 1.0
    patterns = np.column_stack([np.ones(64), patterns])
    for i, one in enumerate(patterns):
        for two in patterns[: i + 1]:
            columns = np.column_stack([np.ones(7), one, two])
            weights = np.ones(3) / 3**0.5
            for _ in range(60):  # alternating weights and rotation
                U, _, Vt = np.linalg.svd(F.T @ (columns * weights))
                weights = np.sum((F @ (U @ Vt)) * columns, axis=0)
                weights /= np.linalg.norm(weights)
            best = min(best, np.sum((F @ (U @ Vt) - columns * weights) ** 2) / 7)
    assert dc.rounding.fit_label_mixture(F, 2, n_init=200).objective <= best + 1e-6


@pytest.mark.parametrize("k", [1, 3, 6])
def test_noiseless_labels_are_found_from_the_relaxation(k):
    right = 0
    for seed in range(4):
        rng = np.random.default_rng([seed, k])
        truth = labels_of(300, k, seed, balanced=seed % 2 == 0)
        X = np.column_stack([truth, rng.standard_normal((300, 12 - k))]) @ rng.standard_normal((12, 12))
        right += found(truth, dc.rounding.procrustes(dc.fista(X, tol=1e-2).F, k, n_init=10))
    assert right >= 3


def test_the_labels_are_the_signs_of_the_scores_and_the_objective_is_the_distance_of_the_lemma():
    F = mixture(labels_of(50, 2), [0.3, 0.7, 0.648]) + 0.2 * np.random.default_rng(3).standard_normal((50, 3))
    F *= (50 / np.sum(F**2)) ** 0.5
    labels, fit = dc.rounding.procrustes(F, 2, rng=7), dc.rounding.fit_label_mixture(F, 2, rng=7)
    assert np.all(labels[0] == 1.0)
    np.testing.assert_array_equal(labels, fit.labels)
    np.testing.assert_array_equal(labels, np.where(fit.scores >= 0.0, 1.0, -1.0))
    M = np.column_stack([np.ones(50), fit.labels]) * fit.weights
    U, _, Vt = np.linalg.svd(F.T @ M)
    assert fit.objective == pytest.approx(np.sum((F @ (U @ Vt) - M) ** 2) / 50, rel=1e-6)


def test_each_round_is_the_best_fit_of_its_rotation_none_is_worse_and_they_end_soon():
    rng = np.random.default_rng(8)
    F = mixture(labels_of(40, 2), [0.6, 0.5, 0.4]) + 0.3 * rng.standard_normal((40, 3))
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    R[:, 0] *= -np.sign(np.sum(F @ R[:, 0]))  # a negative sum of the first column needs sign -1
    rounds = list(procrustes_iterates(F, R))
    assert len(rounds) < 60
    for fit in rounds:
        M = fit.signs * fit.weights
        assert np.linalg.norm(fit.weights) == pytest.approx(1.0)
        assert np.all(fit.weights >= 0.0)
        assert len(set(fit.signs[:, 0])) == 1
        assert fit.inner_product == pytest.approx(np.sum((F @ fit.R) * M) / 40, rel=1e-12)
    reached = [fit.inner_product for fit in rounds]
    assert reached == sorted(reached)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_weight_counts_as_repeated_rows_in_any_order_and_basis(k):
    rng = np.random.default_rng(k)
    F = mixture(labels_of(60, k), rng.dirichlet(np.ones(k + 1)) ** 0.5) + 0.1 * rng.standard_normal((60, k + 1))
    w, order, Q = rng.integers(0, 4, 60), rng.permutation(60), np.linalg.qr(rng.standard_normal((k + 1, k + 1)))[0]
    weighted = dc.rounding.fit_label_mixture(F[order], k, sample_weight=2.5 * w[order])
    rows = dc.rounding.fit_label_mixture(np.repeat(F @ Q, w, axis=0), k, sample_weight=np.ones(w.sum()))
    np.testing.assert_allclose(weighted.weights, rows.weights, rtol=0, atol=1e-5)  # it stops by the objective
    assert weighted.objective == pytest.approx(rows.objective, abs=1e-8)
    labels = np.empty((60, k))
    labels[order] = weighted.labels
    labels = np.repeat(labels, w, axis=0)
    np.testing.assert_array_equal(labels * labels[0], rows.labels)
    np.testing.assert_array_equal(dc.rounding.procrustes(F[order], k, sample_weight=w[order]), weighted.labels)
    assert abs(dc.rounding.fit_label_mixture(F, k).objective - rows.objective) > 1e-4


@pytest.mark.parametrize("w", [np.ones(9), -np.ones(10), np.full(10, np.nan), np.zeros(10)])
def test_invalid_weights_of_a_mixture_are_named(w):
    with pytest.raises(dc.DataError, match="sample_weight"):
        dc.rounding.procrustes(np.eye(10, 3), 2, sample_weight=w)


# Metrics


def test_the_overlap_is_the_trace_of_two_projections():
    rng = np.random.default_rng(0)
    A, B = labels_of(30, 4, 1), labels_of(30, 3, 2)
    projections = [M @ np.linalg.solve(M.T @ M, M.T) for M in (A, B)]
    assert dc.metrics.label_subspace_overlap(A, B) == pytest.approx(np.trace(projections[0] @ projections[1]))
    assert dc.metrics.label_subspace_overlap(A, A @ rng.standard_normal((4, 4))) == pytest.approx(4.0)


def test_correlations_are_those_of_numpy_and_a_constant_has_none():
    A, B = labels_of(30, 4, 1), labels_of(30, 3, 2)
    expected = np.abs(np.corrcoef(B.T, A.T)[:3, 3:])
    np.testing.assert_allclose(dc.metrics.label_correlations(A, B), expected, atol=1e-12)
    assert not dc.metrics.label_correlations(np.ones((30, 1)), B).any()
