"""Sections 5.3 and 5.4 numerically: labels from a mixture of several, and off the noiseless model."""

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import psd_factor
from diffrac_cvx.rounding.many_labels import procrustes_iterates
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row
from experiments.theory.unique_solution import statistical_dimension

RANK = 1e-4  # eigenvalues of Y below this fraction of the largest count as 0
NO_CLUSTERS = 1e6  # noise on y that hides the labels completely: spectrum and error of data without clusters
STARTS, FEW_ROUNDS = 10, 10  # random rotations, and rounds that count as few


def measure_perturbed(d: int, noise: float, replication: int) -> Row:
    """Solve a balanced problem with noise on the signal, at twice the number of points needed for uniqueness."""
    n = 2 * int(statistical_dimension(float(d)))
    rng = np.random.default_rng([2017, 59, d, replication])
    planted = dc.datasets.make_planted(n, d, noise=noise, rng=rng)
    result = dc.low_rank(planted.X, tol=1e-8)
    return {
        "n": n,
        "rank": dc.metrics.numerical_rank(result.F, RANK),
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "error": dc.metrics.clustering_error(planted.y, dc.rounding.sign_leading(result.F)),
        "error_signal": dc.metrics.clustering_error(planted.y, signs(planted.X @ planted.v)),
        "gap": result.gap,
    }


def signs(x: Array) -> Array:
    """Return signs in {-1, 1}."""
    return np.where(x >= 0.0, 1.0, -1.0)


def measure_procrustes(k: int, replication: int) -> Row:
    """Count the rounds in which the alternation of the lemma recovers the labels from a mixture of random weights.

    It starts from the eigenvectors of Y, and from random rotations.
    """
    rng = np.random.default_rng([2017, 64, k, replication])
    truth = np.where(rng.random((100, k)) < 0.5, 1.0, -1.0)
    M = np.column_stack([np.ones(100), truth]) * rng.dirichlet(np.ones(k + 1)) ** 0.5
    F = psd_factor(M @ M.T)[:, : k + 1]
    starts = [np.eye(k + 1), *(np.linalg.qr(rng.standard_normal((k + 1, k + 1)))[0] for _ in range(STARTS))]
    rounds = [rounds_to_recover(F, R, truth) for R in starts]
    found = dc.rounding.procrustes(F, k, rng=rng)
    return {
        "few_eigenvectors": int(rounds[0] <= FEW_ROUNDS),
        "few_random": int(rounds[1] <= FEW_ROUNDS),
        "few_best": int(min(rounds[1:]) <= FEW_ROUNDS),
        "rounds": min(rounds[1:]) if np.isfinite(min(rounds[1:])) else np.nan,
        "right": int(is_found(truth, found)),
    }


def rounds_to_recover(F: Array, R: Array, truth: Array) -> float:
    """Return the number of rounds from R to the true labels, infinity if they are never found."""
    fits = enumerate(procrustes_iterates(F, R), 1)
    return next((count for count, fit in fits if is_found(truth, fit.signs[:, 1:])), float("inf"))


def is_found(truth: Array, labels: Array) -> bool:
    """Return whether every true label is among the found ones, up to sign."""
    return bool(np.all(np.max(np.abs(labels.T @ truth), axis=0) == len(truth)))
