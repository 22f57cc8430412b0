"""Sections 5.1.4 and 5.3 numerically: when all solutions are supported by the constant vector and the labels."""

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import psd_factor
from diffrac_cvx.rounding.many_labels import procrustes_iterates
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row
from experiments.theory.noise_columns import LAWS, balanced_points
from experiments.theory.unique_solution import is_unique, points_for_uniqueness, statistical_dimension
from experiments.unbalanced.cells import SCS_OPTIONS

MOST_POINTS = 400
STARTS, FEW_POINTS = 10, 10  # random rotations, and rounds that count as few
LARGER_FRACTION = {0.04: 0.6, 0.25: 0.75, 0.64: 0.9}  # imbalance: fraction of points in the larger cluster


def measure_balanced(d: int, replication: int) -> Row:
    """Find the number of points from which yy' is the unique solution of the balanced problem at nu = 1."""
    rng = np.random.default_rng([2017, 63, d, replication])
    B = balanced_points(LAWS["gaussian"][1], MOST_POINTS, d, rng)
    return {"expected": statistical_dimension(float(d)), "n_measured": points_for_uniqueness(B, 1)}


def measure_rank_two(d: int, imbalance: float, replication: int) -> Row:
    """Find the number of points from which the rank-two Y of the unbalanced lemma is the unique solution.

    All solutions of Eq. (8) at nu = 0 are then mixtures of yy' and 11'.  Mixing another solution with yy' and with 11'
    gives another one at every alpha strictly between alpha* and 1, so alpha does not matter.
    """
    B = unbalanced_points(d, imbalance, replication)
    return {"expected": statistical_dimension(d + 1, 2), "n_measured": points_for_uniqueness(B, 2)}


def unbalanced_points(d: int, imbalance: float, replication: int) -> Array:
    """Return [1, y, Z], a stream of points."""
    rng = np.random.default_rng([2017, 54, d, int(100 * imbalance), replication])
    y = np.where(rng.random(MOST_POINTS) < LARGER_FRACTION[imbalance], 1.0, -1.0)
    return np.column_stack([np.ones(MOST_POINTS), y, rng.standard_normal((MOST_POINTS, d - 1))])


def measure_lemma(d: int, n: int, alpha_step: float, replication: int) -> Row:
    """Solve Eq. (7) at alpha = alpha* + step (1 - alpha*) and measure the distance to the Y of the lemma."""
    B = unbalanced_points(d, 0.25, replication)[:n]
    y = B[:, 1]
    imbalance = dc.metrics.imbalance(y)
    weight = 1 - alpha_step  # (1 - alpha) / (1 - alpha*)
    relaxation = dc.constrained_alpha(B[:, 1:], imbalance + alpha_step * (1 - imbalance))
    result = dc.solve(relaxation, "SCS", **SCS_OPTIONS)
    Y = weight * np.outer(y, y) + (1 - weight)
    return {
        "unique": int(is_unique(B, 2)),
        "mixture_value": dc.certify_y(B[:, 1:], Y, alpha=imbalance + alpha_step * (1 - imbalance)).upper,
        "mixture_rank": int(np.linalg.matrix_rank(Y)),
        "distance": float(np.linalg.norm(result.F @ result.F.T - Y) / n),
        "value": result.value,
        "gap": result.gap,
        "error_sign_centered": dc.metrics.clustering_error(y, dc.rounding.sign_centered(result.F)),
    }


def measure_family(k: int, n: int, replication: int) -> Row:
    """Compare "1, y_i and y_i y_j are linearly independent" with "diag(y A y') = 1 has only diagonal solutions".

    The right-hand side is decided by the linear system in A itself: a solution set is an affine space, and is diagonal
    if and only if no element of the null space has an entry off the diagonal.
    """
    rng = np.random.default_rng([2017, 55, k, n, replication])
    labels = np.where(rng.random((n, k)) < 0.5, 1.0, -1.0)
    extended = np.column_stack([np.ones(n), labels])
    i, j = np.triu_indices(k + 1, 1)
    members = np.column_stack([np.ones(n), extended[:, i] * extended[:, j]])
    independent = np.linalg.matrix_rank(members) == members.shape[1]
    rows, columns = np.triu_indices(k + 1)
    system = extended[:, rows] * extended[:, columns] * np.where(rows == columns, 1.0, 2.0)
    null = np.linalg.svd(system)[2][np.linalg.matrix_rank(system) :]
    return {
        "members": members.shape[1],
        "independent": int(independent),
        "diagonal": int(not np.any(np.abs(null[:, rows != columns]) > 1e-9)),
    }


def measure_many_labels(k: int, d: int, replication: int) -> Row:
    """Find the number of points from which all solutions at nu = 0 are supported by the constant vector and labels."""
    rng = np.random.default_rng([2017, 56, k, d, replication])
    labels = np.where(rng.random((MOST_POINTS, k)) < 0.5, 1.0, -1.0)
    B = np.column_stack([np.ones(MOST_POINTS), labels, rng.standard_normal((MOST_POINTS, d - k))])
    return {"expected": statistical_dimension(d + 1, k + 1), "n_measured": points_for_uniqueness(B, k + 1)}


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
        "few_eigenvectors": int(rounds[0] <= FEW_POINTS),
        "few_random": int(rounds[1] <= FEW_POINTS),
        "few_best": int(min(rounds[1:]) <= FEW_POINTS),
        "rounds": min(rounds[1:]) if np.isfinite(min(rounds[1:])) else np.nan,
        "right": int(is_found(truth, found)),
    }


def rounds_to_recover(F: Array, R: Array, truth: Array) -> float:
    """Return the number of rounds from R to the true labels, infinity if they are never found."""
    for count, fit in enumerate(procrustes_iterates(F, R), 1):
        if is_found(truth, fit.signs[:, 1:]):
            return count
    return float("inf")


def is_found(truth: Array, labels: Array) -> bool:
    """Return whether every true label is among the found ones, up to sign."""
    return bool(np.all(np.max(np.abs(labels.T @ truth), axis=0) == len(truth)))
