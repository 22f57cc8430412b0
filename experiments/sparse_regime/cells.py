"""The sparse regime: conjecture n = O(l d), with a fixed and the best weight, and the limit of a vanishing weight."""

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row
from experiments.phase_transition.cells import MOST_POINTS, points_of
from experiments.phase_transition.findings import RECOVERED
from experiments.phase_transition.uniqueness import is_only_solution, wendel
from experiments.sparse_regime.models import dimension_bound

LAW = 0.3  # of the population: the weight is this number over (s - 1) d
ORACLE = (0.2, 0.4, 0.1, 0.8, 0.05, 0.025)  # weights tried, times 1/((s - 1) d), most promising first
TOL, LARGE_TOL, LARGE_D = 0.05, 0.1, 100  # relative to the planted value lambda l; the second from dimension LARGE_D on
DECIDED = 0.5  # relative to the planted value: with a larger gap after `MAX_ITER` steps, a solution decides nothing
MAX_ITER = 5000
RATIO = 1.07  # of neighbouring n on the grid: half of a step is the error of a boundary
STRIDE = 4  # grid points per step, until both success and failure occur
SETTINGS = {
    "law": LAW, "oracle": ORACLE, "tolerances": [TOL, LARGE_TOL, DECIDED], "max_iter": MAX_ITER,
    "most_points": MOST_POINTS,
}  # fmt: skip

Sizes = dict[int, list[int]]  # sparsity: dimensions
LADDER = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
GRIDS: dict[str, dict[str, tuple[Sizes, int]]] = {  # part: sizes, replications
    "full": {
        "exact": ({1: LADDER}, 24),
        "law": ({2: LADDER[1:], 4: LADDER[1:], 8: LADDER[1:9]}, 8),
        "oracle": ({2: LADDER[1:8], 4: LADDER[1:8], 8: LADDER[1:7]}, 8),
    },
    "smoke": {
        "exact": ({1: [8, 16]}, 2),
        "law": ({2: [12, 16], 4: [12, 16], 8: [12, 16]}, 2),
        "oracle": ({2: [12], 4: [12], 8: [12]}, 1),
    },
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, part by part."""
    return [
        {"part": part, "sparsity": sparsity, "d": d, "replication": replication}
        for part, (sizes, replications) in GRIDS[grid].items()
        for sparsity, dimensions in sizes.items()
        for d in dimensions
        for replication in range(replications)
    ]


def ladder(first: int, last: int, ratio: float = RATIO) -> npt.NDArray[np.int64]:
    """Return even numbers from first to last, each about `ratio` times the previous one."""
    steps = int(np.log(last / first) / np.log(ratio)) + 1
    rungs = np.unique(2 * np.round(np.geomspace(first, last, steps + 1) / 2)).astype(np.int64)
    return np.unique(rungs[(rungs >= 4) & (rungs <= last)])


def least_points(succeeds: Callable[[int], bool], rungs: npt.NDArray[np.int64], guess: float) -> dict[str, int]:
    """Return the smallest n that succeeds if more points never hurt; steps from a guess, then bisection.

    ``points`` is this n, or the last of the grid if even that fails; ``outside`` is 1 if the last fails, -1 if the
    first succeeds, else 0.
    """
    top = len(rungs) - 1
    recovered = cache(lambda i: i > top or (i >= 0 and succeeds(int(rungs[i]))))
    low = high = int(np.clip(np.searchsorted(rungs, guess), 0, top))
    while recovered(low):
        low, high = max(low - STRIDE, 0) if low > 0 else -1, low
    while not recovered(high):
        low, high = high, min(high + STRIDE, top) if high < top else top + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if recovered(middle) else (middle, high)
    return {"points": int(rungs[min(high, top)]), "outside": 1 if high > top else -1 if high == 0 else 0}


def measure_exact(sparsity: int, d: int, replication: int) -> Row:
    """Search the n from which on a 1-sparse instance has a unique solution (for any weight), by the linear program."""

    def is_unique(n: int) -> bool:
        return is_only_solution(points_of(sparsity, "flat", n, d, replication)[0])

    return least_points(is_unique, ladder(4, 4 * d), wendel(d))


def measure_weights(sparsity: int, d: int, replication: int, *, multiples: tuple[float, ...]) -> Row:
    """Search the n from which on the labels are recovered at one or more of the weights."""

    def is_recovered(n: int) -> bool:
        X, y, _ = points_of(sparsity, "flat", n, d, replication)
        return any(recovers(X, y, multiple / ((sparsity - 1) * d), sparsity) for multiple in multiples)

    guess = 0.9 * (1.0 + dimension_bound(sparsity, d))
    return least_points(is_recovered, ladder(4, MOST_POINTS), guess)


def recovers(X: Array, y: Array, lam: float, sparsity: int) -> bool:
    """Return whether a weight recovers the labels; not if `MAX_ITER` steps do not decide it.

    The gap is relative to the planted value, which is about lambda l.
    """
    planted = lam * sparsity
    tol = (TOL if X.shape[1] < LARGE_D else LARGE_TOL) * planted
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        result = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=tol, max_iter=MAX_ITER)
    error = dc.metrics.clustering_error(y, dc.rounding.kmeans_centered(result.F))
    return error < RECOVERED and result.gap <= DECIDED * planted


def measure(part: str, **cell: int) -> Row:
    """Measure a cell of any part."""
    if part == "exact":
        return measure_exact(**cell)
    return measure_weights(**cell, multiples=ORACLE if part == "oracle" else (LAW,))
