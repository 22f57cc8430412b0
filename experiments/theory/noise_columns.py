"""Sections 5.1 and 5.3 numerically: the n from which yy' is the unique solution, by the law of the noise columns.

Without balance, or with many labels, the n from which all solutions are supported by the constant and the labels.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.datasets import planted
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row
from experiments.theory.unique_solution import (
    UNIQUE,
    least_diagonal_change,
    points_for_uniqueness,
    statistical_dimension,
)

MOST_POINTS = 400
LARGER_FRACTION = {0.04: 0.6, 0.25: 0.75, 0.64: 0.9}  # imbalance: fraction of points in the larger cluster
D = 10  # dimensions of the recovery panel; uniqueness is expected from n = 32.5 on
KURTOSIS = {"uniform": 1.8, "gaussian": 3.0, "laplace": 6.0, "student": 9.0}  # of the package's laws
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]


def three_point(beta: float) -> Draw:
    """Return the law on {-s, 0, s} of variance 1 and kurtosis beta: Rademacher at beta = 1."""
    return lambda rng, shape: beta**0.5 * rng.choice([-1.0, 0.0, 1.0], shape, p=[0.5 / beta, 1 - 1 / beta, 0.5 / beta])


def with_mean_zero(Z: Array, rng: np.random.Generator) -> Array:
    """Return columns of mean 0: three-point columns get new balanced signs, other columns are centred.

    Centring would shift the values of a Rademacher column, and spoil the second clustering that it represents.
    """
    if len(np.unique(np.abs(Z))) > 2:
        return np.asarray(Z - Z.mean(axis=0))
    balanced = np.abs(Z)
    for column in balanced.T:
        live = rng.permutation(np.flatnonzero(column))
        column[live[: len(live) // 2]] *= -1.0
        if len(live) % 2:
            column[live[-1]] = 0.0
    return balanced


LAWS: dict[str, tuple[float, Draw]] = {  # name: kurtosis, sampler of variance 1; the position enters the seeds
    **{f"three-point {b:g}": (b, three_point(b)) for b in (1.0, 1.02, 1.1, 1.3, 1.8, 3.0, 6.0, 9.0, 30.0)},
    **{law: (beta, planted.DISTRIBUTIONS[law]) for law, beta in KURTOSIS.items()},
}


def bound_of(law: str, m: float) -> float:
    """Return R, the largest |z| of a bounded law of variance m."""
    return float((3.0 * m) ** 0.5 if law == "uniform" else (m * LAWS[law][0]) ** 0.5)


class Points(NamedTuple):
    """Numbers of points required by Proposition 1: (a), (b), and in the case of small variance.

    Source: Proposition 1 and the last remark of section 5.1.2, R as printed.
    """

    a: float
    b: float
    small: float


def points_of_paper(d: int, m: float, beta: float, R: float) -> Points:
    """Return the numbers of points of Proposition 1."""
    size = d**2 * R**4
    a = size * (1 + (d + beta) * m**2) / (m**2 * (beta - 1))
    return Points(a, size / min(m**2 * (beta - 1), 2 * m**2, 2 * m), size / m**2)


def small_variance(d: int, beta: float) -> float:
    """Return the largest m^2 for which the proposition's other case holds; 0 if beta <= 3."""
    return max(beta - 3, 0.0) / (2 * (d + beta - 4)) if d + beta > 4 else 0.0


def balanced_points(draw: Draw, n: int, d: int, rng: np.random.Generator) -> Array:
    """Return [y, Z]: the first n points of a stream that is balanced after every second point."""
    most = 2 * ((n + 1) // 2)
    y = rng.permuted(np.tile([1.0, -1.0], (most // 2, 1)), axis=1).ravel()
    return np.column_stack([y, draw(rng, (most, d - 1))])[:n]


def scaled_law(law: str, m: float) -> Draw:
    """Return a law of `LAWS` with variance m."""
    return lambda rng, shape: np.asarray(m**0.5 * LAWS[law][1](rng, shape))


def measure_recovery(law: str, n: int, replication: int) -> Row:
    """Decide exactly whether yy' is the unique solution of a balanced noiseless instance; if not, examine two others.

    These are the solutions of CLARABEL (an interior point, as in the paper) and `low_rank`.
    """
    beta, draw = LAWS[law]
    rng = np.random.default_rng([2017, 51, list(LAWS).index(law), n, replication])
    B = balanced_points(draw, n, D, rng)
    B[:, 1:] = with_mean_zero(B[:, 1:], rng)
    least = least_diagonal_change(B, 1)
    row: Row = {"d": D, "beta": beta, "unique": int(least > UNIQUE), "least_change": least}
    if row["unique"]:
        return row
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        interior, factored = dc.solve(dc.v_space(B), "CLARABEL"), dc.low_rank(B, tol=1e-8)
    return row | {
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(interior.F),
        "right_interior": is_right(B, interior.V),
        "right_low_rank": is_right(B, factored.V),
    }


def is_right(B: Array, V: Array | None) -> int:
    """Return whether the principal eigenvector of V splits the points like the labels, the first column."""
    assert V is not None
    principal = np.linalg.eigh(V)[1][:, -1]
    return int(dc.metrics.clustering_error(B[:, 0], dc.rounding.kmeans_1d(B @ principal)) == 0.0)


def measure_sample_size(law: str, d: int, m: float, replication: int) -> Row:
    """Decide uniqueness at the numbers of points of Proposition 1, and find the number from which it holds.

    The variance m = 0 stands for 0.9 times the largest m in the proposition's case of small variance.
    """
    beta = LAWS[law][0]
    small = m == 0.0
    m = 0.9 * small_variance(d, beta) ** 0.5 if small else m
    paper = points_of_paper(d, m, beta, bound_of(law, m))
    rng = np.random.default_rng([2017, 52, list(LAWS).index(law), d, int(10 * m), replication])
    most = int(np.ceil(max(paper.small if small else max(paper.a, paper.b), 40)))
    B = balanced_points(scaled_law(law, m), most, d, rng)
    found = points_for_uniqueness(B, 1)
    return {
        "beta": beta,
        "variance": m,
        "small": int(small),
        "n_paper": paper.small if small else paper.a,
        "n_paper_b": paper.b,
        "n_measured": found,
        "unique": int(found <= np.ceil(paper.small if small else paper.a)),
        "unique_b": int(found <= min(int(np.ceil(paper.b)), most)),
    }


def measure_balanced(d: int, replication: int) -> Row:
    """Find the number of points from which yy' is the unique solution of the balanced problem at nu = 1."""
    rng = np.random.default_rng([2017, 63, d, replication])
    B = balanced_points(LAWS["gaussian"][1], MOST_POINTS, d, rng)
    return {"expected": statistical_dimension(float(d)), "n_measured": points_for_uniqueness(B, 1)}


def measure_labels(d: int, replication: int, imbalance: float | None = None, k: int = 1) -> Row:
    """Find the number of points from which all solutions at nu = 0 are supported by the constant vector and k labels.

    With one label, unbalanced, this Y of rank two is the unique solution of the lemma: all solutions of Eq. (8) at
    nu = 0 are then mixtures of yy' and 11'.  Mixing another solution with yy' and with 11' gives another one at every
    alpha strictly between alpha* and 1, so alpha does not matter.
    """
    seed = [56, k, d, replication] if imbalance is None else [54, d, int(100 * imbalance), replication]
    rng = np.random.default_rng([2017, *seed])
    larger = 0.5 if imbalance is None else LARGER_FRACTION[imbalance]
    labels = np.where(rng.random((MOST_POINTS, k)) < larger, 1.0, -1.0)
    B = np.column_stack([np.ones(MOST_POINTS), labels, rng.standard_normal((MOST_POINTS, d - k))])
    return {"expected": statistical_dimension(d + 1, k + 1), "n_measured": points_for_uniqueness(B, k + 1)}
