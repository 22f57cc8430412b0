"""Certified optimal labels by branch and bound compared with other exact methods, and the relaxation assessed by them.

It fails if two exact methods, or a bound and the objective of any labels, contradict each other.
"""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array
from experiments.choice.sets import DESIGN
from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row, cross
from experiments.methods import Deadline
from experiments.optimal.rivals import alternate_from, random_labels, solve_integer_program, try_all_directions

SETS = tuple(name for name in DESIGN if not name.startswith("digits"))  # those of Table 1, iris, wine, wdbc
RIDGES = (1.0, 0.3, 0.1, 0.0)
LARGE_SETS = ("dna", "a1a", "w1a")  # one relaxation takes seconds or minutes: run at one ridge
RIDGE_OF_LARGE = 0.3
TOL = 1e-5
LIMITS = {"real": 20.0, "planted": 10.0, "small": 10.0}  # limit of a search in seconds of processor time
PATIENCE = 10.0  # factor of the limit that a search may take in wall-clock time
RESTARTS = 1000
REACHED = TOL  # labels within this distance of the best objective found count as optimal
SECONDS = 10.0  # limit of low_rank
TIMES = tuple(float(f"{seconds:.2g}") for seconds in np.geomspace(0.01, 20.0, 15))  # at which the gap is recorded
MOST_PROGRAMMED = 30  # most points for the integer program
DIMENSIONS = (2, 3)  # in which all directions are enumerated
SETTINGS = {"tolerance": TOL, "seconds": LIMITS, "n_init": RESTARTS}


class BoundsRecorder(Deadline):
    """A deadline that records the gaps of a search."""

    def __init__(self, limit: float) -> None:
        super().__init__(limit)
        self.gaps: list[tuple[float, float]] = []

    def __call__(self, *progress: Any) -> bool:
        """Record the gap of the bracket, which comes first, and return whether the time is over."""
        self.gaps.append((self.spent, progress[0].gap))
        return super().__call__()

    def gap_at(self, seconds: float) -> float | None:
        """Return the gap certified by the given time."""
        known = [gap for at, gap in self.gaps if at <= seconds]
        return known[-1] if known else None


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: real sets, planted ones, small planted ones."""
    if grid == "full":
        names = keep_loadable(SETS, lambda name: DESIGN[name]())
        ridges = {name: RIDGES if name not in LARGE_SETS else (RIDGE_OF_LARGE,) for name in names}
        real = [{"name": name, "ridge": ridge} for name in names for ridge in ridges[name]]
        planted = cross(n=(60, 120, 200, 400), d=(3, 5, 8, 12), noise=(0.1, 0.3, 0.5), replication=range(2))
        small = cross(n=(10, 15, 20, 25, 30), d=(2, 3, 5), noise=(0.3, 0.6), replication=[0])
    else:
        real = [{"name": "iris 1 or 2", "ridge": 0.3}, {"name": "heart", "ridge": 0.3}]
        planted = cross(n=[60], d=[3], noise=(0.1, 0.5), replication=[0])
        small = cross(n=[8, 10], d=[3], noise=[0.6], replication=[0])
    made = {"planted": planted, "small": small}
    return [{"part": "real", **cell} for cell in real] + [
        {"part": part, "ridge": 0.0, **cell} for part, cells in made.items() for cell in cells
    ]


class Instance(NamedTuple):
    """Standardised columns X (n, d), true labels y in {-1, +1}, and the ridge of Eq. (9)."""

    X: Array
    y: Array
    ridge: float


def make_instance(
    part: str,
    ridge: float,
    name: str = "",
    n: int = 0,
    d: int = 0,
    noise: float = 0.0,
    replication: int = 0,
) -> Instance:
    """Return a real set by its name, or a planted one, whose seed depends only on the rest of the cell."""
    if part == "real":
        found = DESIGN[name]()
        return Instance(standardize_columns(found.X), np.where(found.y > 0, 1.0, -1.0), ridge)
    rng = np.random.default_rng([2017, 26, n, d, round(100 * noise), replication])
    planted = dc.datasets.make_planted(n, d, noise=noise, rng=rng)
    return Instance(standardize_columns(planted.X), planted.y, ridge)


def whitened_rows(X: Array, ridge: float) -> Array:
    r"""Return R (n, r) such that labels y have objective :math:`1 - |R^\top y|^2` in Eq. (9) at nu = 1.

    At the best direction the objective is :math:`1 - b^\top A^{+} b` with :math:`b = X^\top y / n` and
    :math:`A = X^\top X / n + \mathrm{ridge}\, I`.
    """
    A = X.T @ X / len(X) + ridge * np.eye(X.shape[1])
    values, vectors = np.linalg.eigh(A)
    mask = values > 1e-10 * values[-1]
    return np.asarray(X @ (vectors[:, mask] / np.sqrt(values[mask])) / len(X))


def cost_of(R: Array, y: Array) -> float:
    """Return the objective of labels in Eq. (9) at nu = 1, from whitened rows."""
    return 1.0 - float(np.sum((y @ R) ** 2))


def measure(part: str, **cell: Any) -> Row:
    """Measure one instance by all applicable methods."""
    instance = make_instance(part, **cell)
    n, d = instance.X.shape
    limit, R = LIMITS[part], whitened_rows(instance.X, instance.ridge)
    recorder = BoundsRecorder(limit)
    found = dc.optimal_labels(instance.X, ridge=instance.ridge, tol=TOL, time_limit=PATIENCE * limit, callback=recorder)
    spent = recorder.spent
    recorder.gaps.append((spent, found.gap))
    row: Row = {
        "points": n, "columns": d, "limit": limit, "solved": int(found.status is dc.Status.OPTIMAL),
        "status": found.status.name, "lower": found.lower, "upper": found.upper, "gap": found.gap,
        "root_gap": found.upper - max(found.root_bound, 0.0), "nodes": found.n_nodes, "cuts": found.n_cuts,
        "hardness": found.hardness, "seconds": spent,
        **{f"gap at {seconds:g}": recorder.gap_at(seconds) for seconds in TIMES},
    }  # fmt: skip
    exact = {"program": solve_integer_program(R, limit)} if n <= MOST_PROGRAMMED else {}
    exact |= {"directions": try_all_directions(R)} if d in DIMENSIONS else {}
    for method, other in exact.items():
        row |= {f"{name} of {method}": value for name, value in other._asdict().items()}
    start = time.process_time()
    costs = 1.0 - np.sum((alternate_from(R, random_labels(R, RESTARTS, np.random.default_rng(0))) @ R) ** 2, axis=1)
    spent = time.process_time() - start
    row |= {
        "above restarts": float(costs.min() - found.upper),
        "runs that reach": float(np.mean(costs <= found.upper + REACHED)),
        "seconds of restarts": spent,
    }
    return {**row, **judge_labels(instance, R, found)}


def judge_labels(instance: Instance, R: Array, found: dc.OptimalLabels) -> Row:
    """Return the excess objective of the labels of other methods, and the errors against the true classes."""
    X, y, ridge = instance
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        relaxed = dc.low_rank(X, ridge=ridge, tol=TOL, time_limit=SECONDS)
    row: Row = {"seconds of relaxation": time.process_time() - start}
    labels = {name: rounding(relaxed.F) for name, rounding in dc.rounding.ROUNDINGS.items()}
    rounded = labels["kmeans_centered"]
    labels["k-means"] = dc.baselines.kmeans_standardized(X, rng=0)
    labels["one alternation"] = alternate_from(R, random_labels(R, 1, np.random.default_rng(1)))[0]
    labels["rounding, then alternation"] = alternate_from(R, rounded[None, :])[0]
    labels["true classes"] = y
    row |= {f"above {name}": cost_of(R, each) - found.upper for name, each in labels.items()}
    judged = {"optimum": found.labels, "rounding": rounded, "k-means": labels["k-means"]}
    row |= {f"error of {name}": float(dc.metrics.clustering_error(y, each)) for name, each in judged.items()}
    return {**row, "moved": (1.0 - abs(float(rounded @ found.labels)) / len(y)) / 2.0}
