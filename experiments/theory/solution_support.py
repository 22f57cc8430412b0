"""Sections 5.1.4 and 5.3 numerically: points from which all solutions are supported by the constant and the labels."""

import numpy as np

from experiments.harness.sweep import Row
from experiments.theory.noise_columns import LAWS, balanced_points
from experiments.theory.unique_solution import points_for_uniqueness, statistical_dimension

MOST_POINTS = 400
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
    rng = np.random.default_rng([2017, 54, d, int(100 * imbalance), replication])
    y = np.where(rng.random(MOST_POINTS) < LARGER_FRACTION[imbalance], 1.0, -1.0)
    B = np.column_stack([np.ones(MOST_POINTS), y, rng.standard_normal((MOST_POINTS, d - 1))])
    return {"expected": statistical_dimension(d + 1, 2), "n_measured": points_for_uniqueness(B, 2)}


def measure_many_labels(k: int, d: int, replication: int) -> Row:
    """Find the number of points from which all solutions at nu = 0 are supported by the constant vector and labels."""
    rng = np.random.default_rng([2017, 56, k, d, replication])
    labels = np.where(rng.random((MOST_POINTS, k)) < 0.5, 1.0, -1.0)
    B = np.column_stack([np.ones(MOST_POINTS), labels, rng.standard_normal((MOST_POINTS, d - k))])
    return {"expected": statistical_dimension(d + 1, k + 1), "n_measured": points_for_uniqueness(B, k + 1)}
