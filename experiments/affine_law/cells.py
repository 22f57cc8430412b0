"""Cells of the affine law: number of points for a unique solution without a penalty, by dimension and noise."""

import numpy as np

from diffrac_cvx.typing import Array
from experiments.affine_law.only_solution import is_only_solution
from experiments.harness.sweep import Cell, Row, cross
from experiments.theory.unique_solution import statistical_dimension

REPLICATIONS = 30
STREAM = 1.6  # length of the stream of points, relative to d + d(d-1)/4
PRECISION = 0.002  # relative, of the number of points
LAWS = ("gaussian", "uniform", "student")  # noise distributions of variance one
FREEDOM = 3  # degrees of freedom of Student's law: no fourth moment
SETTINGS = {"stream": STREAM, "precision": PRECISION, "freedom": FREEDOM}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid != "full":
        return cross(law=LAWS, d=(6, 10), replication=range(2))
    wide = cross(law=["gaussian"], d=(8, 12, 16, 24, 32, 48, 64, 100, 150), replication=range(REPLICATIONS))
    return wide + cross(law=LAWS[1:], d=(8, 16, 32, 64), replication=range(REPLICATIONS))


def stream_of(law: str, d: int, replication: int) -> tuple[Array, Array]:
    """Return labels (n,) and noise (n, d - 1); a problem uses the first points."""
    n = int(np.ceil(STREAM * statistical_dimension(float(d))))
    rng = np.random.default_rng([2017, 78, LAWS.index(law), d, replication])
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    size = (n, d - 1)
    if law == "gaussian":
        return y, rng.standard_normal(size)
    if law == "uniform":
        return y, rng.uniform(-(3**0.5), 3**0.5, size)
    return y, rng.standard_t(FREEDOM, size) / (FREEDOM / (FREEDOM - 2)) ** 0.5


def measure(law: str, d: int, replication: int) -> Row:
    """Bracket the smallest number of points with a unique solution; more points only help, so bisection is valid."""
    y, Z = stream_of(law, d, replication)
    low, high = d, len(y) + 1
    while high - low > max(1.0, PRECISION * high):
        middle = (low + high) // 2
        only = is_only_solution(y[:middle], Z[:middle])
        if only is None:
            break
        low, high = (low, middle) if only else (middle, high)
    return {"other": low, "only": high, "expected": statistical_dimension(float(d))}
