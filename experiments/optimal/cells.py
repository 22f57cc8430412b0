"""Certified optimal labels by branch and bound compared with other exact methods, and the relaxation assessed by them.

It fails if two exact methods, or a bound and the objective of any labels, contradict each other.
"""

import time
import warnings
from typing import Any

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.choice.sets import DESIGN
from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row, cross
from experiments.methods import Deadline
from experiments.optimal.instances import (
    LARGE_SETS,
    RIDGE_OF_LARGE,
    RIDGES,
    SETS,
    Instance,
    cost_of,
    make_instance,
    whitened_rows,
)
from experiments.optimal.rivals import (
    Exact,
    alternate_from,
    random_labels,
    restart_alternation,
    solve_integer_program,
    try_all_directions,
)

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
        real = [{"name": "iris 1 or 2", "ridge": 0.3}, {"name": "wine 0 or 2", "ridge": 0.1}]
        planted = cross(n=[60], d=[3], noise=(0.1, 0.5), replication=[0])
        small = cross(n=[8, 10], d=[3], noise=[0.6], replication=[0])
    made = {"planted": planted, "small": small}
    return [{"part": "real", **cell} for cell in real] + [
        {"part": part, "ridge": 0.0, **cell} for part, cells in made.items() for cell in cells
    ]


def measure(part: str, **cell: Any) -> Row:
    """Measure one instance by all applicable methods."""
    instance = make_instance(part, **cell)
    n, d = instance.X.shape
    limit, R = LIMITS[part], whitened_rows(instance.X, instance.ridge)
    recorder = BoundsRecorder(limit)
    found = dc.optimal_labels(instance.X, ridge=instance.ridge, tol=TOL, time_limit=PATIENCE * limit, callback=recorder)
    row: Row = {"points": n, "columns": d, "limit": limit, **read(found, recorder)}
    if n <= MOST_PROGRAMMED:
        row |= exact_row("program", solve_integer_program(R, limit))
    if d in DIMENSIONS:
        row |= exact_row("directions", try_all_directions(R))
    start = time.process_time()
    costs = restart_alternation(R, RESTARTS, np.random.default_rng(0))
    spent = time.process_time() - start
    row |= {
        "above restarts": float(costs.min() - found.upper),
        "runs that reach": float(np.mean(costs <= found.upper + REACHED)),
        "seconds of restarts": spent,
    }
    return {**row, **judge_labels(instance, R, found)}


def read(found: dc.OptimalLabels, recorder: BoundsRecorder) -> Row:
    """Return the recorded fields of a search: bounds, objective, and the gap over time."""
    spent = recorder.spent
    recorder.gaps.append((spent, found.gap))
    return {
        "solved": int(found.status is dc.Status.OPTIMAL),
        "status": found.status.name,
        "lower": found.lower,
        "upper": found.upper,
        "gap": found.gap,
        "root_gap": found.upper - max(found.root_bound, 0.0),
        "nodes": found.n_nodes,
        "cuts": found.n_cuts,
        "hardness": found.hardness,
        "seconds": spent,
        **{f"gap at {seconds:g}": recorder.gap_at(seconds) for seconds in TIMES},
    }


def exact_row(method: str, found: Exact) -> Row:
    """Return the columns of another exact method."""
    return {f"cost of {method}": found.cost, f"lower of {method}": found.lower, f"seconds of {method}": found.seconds}


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
