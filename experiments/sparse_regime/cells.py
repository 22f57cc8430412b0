"""The sparse regime: conjecture n = O(l d), weights that preserve the direction, limit of a vanishing weight."""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row
from experiments.phase_transition.cells import MOST_POINTS, points_of
from experiments.phase_transition.findings import RECOVERED
from experiments.phase_transition.uniqueness import is_only_solution, wendel
from experiments.sparse_regime.models import dimension_bound
from experiments.sparse_regime.population import solve_population
from experiments.sparse_regime.search import ladder, least_points

LAW = 0.3  # of the population: the weight is this number over (s - 1) d
ORACLE = (0.2, 0.4, 0.1, 0.8, 0.05, 0.025)  # weights tried, times 1/((s - 1) d), most promising first
TOL, LARGE_TOL, LARGE_D = 0.05, 0.1, 100  # relative to the planted value lambda l; the second from dimension LARGE_D on
DECIDED = 0.5  # relative to the planted value: with a larger gap at the time limit, a solution decides nothing
TIME_LIMIT = 25.0  # seconds per solve
PER_D = 20  # points per dimension of the phase diagram
SETTINGS = {
    "law": LAW,
    "oracle": ORACLE,
    "tolerances": [TOL, LARGE_TOL, DECIDED],
    "time_limit": TIME_LIMIT,
    "most_points": MOST_POINTS,
}

Sizes = dict[int, list[int]]  # sparsity: dimensions
LADDER = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
GRIDS: dict[str, dict[str, tuple[Sizes, int]]] = {  # part: sizes, replications
    "full": {
        "exact": ({1: LADDER}, 24),
        "law": ({2: LADDER[1:], 4: LADDER[1:], 8: LADDER[1:9]}, 10),
        "oracle": ({2: LADDER[1:8], 4: LADDER[1:8], 8: LADDER[1:7]}, 10),
    },
    "smoke": {
        "exact": ({1: [8, 16]}, 2),
        "law": ({2: [12, 16], 4: [12, 16], 8: [12, 16]}, 2),
        "oracle": ({2: [12], 4: [12], 8: [12]}, 1),
    },
}
DIAGRAM_SPARSITY = 4
DIAGRAMS = {  # dimensions and weights for the population, and for samples with their replications
    "full": (
        [6, *LADDER],
        [float(f"{x:.4g}") for x in np.geomspace(3e-4, 0.3, 31)],
        LADDER[:7],
        [float(f"{x:.4g}") for x in np.geomspace(1.6e-3, 0.16, 11)],
        4,
    ),
    "smoke": ([8, 16], [0.003, 0.03], [8, 12], [0.01, 0.1], 1),
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, part by part."""
    cells: list[Cell] = [
        {"part": part, "sparsity": sparsity, "d": d, "replication": replication}
        for part, (sizes, replications) in GRIDS[grid].items()
        for sparsity, dimensions in sizes.items()
        for d in dimensions
        for replication in range(replications)
    ]
    dimensions, weights, few, coarse, replications = DIAGRAMS[grid]
    common = {"sparsity": DIAGRAM_SPARSITY}
    cells += [{"part": "population", **common, "d": d, "lam": lam} for d, lam in product(dimensions, weights)]
    cells += [
        {"part": "sample", **common, "d": d, "lam": lam, "replication": replication}
        for d, lam in product(few, coarse)
        for replication in range(replications)
    ]
    return cells


def measure(part: str, **cell: int | float) -> Row:
    """Measure a cell of any part."""
    return MEASURES[part](**cell)


def measure_exact(sparsity: int, d: int, replication: int) -> Row:
    """Search the n from which on a 1-sparse instance has a unique solution (for any weight), by the linear program."""

    def is_unique(n: int) -> bool:
        return is_only_solution(points(sparsity, n, d, replication)[0])

    return least_points(is_unique, ladder(4, 4 * d), wendel(d))._asdict()


def measure_weights(sparsity: int, d: int, replication: int, *, multiples: tuple[float, ...]) -> Row:
    """Search the n from which on the labels are recovered at one or more of the weights."""

    def is_recovered(n: int) -> bool:
        X, y, _ = points(sparsity, n, d, replication)
        return any(recovers(X, y, multiple / ((sparsity - 1) * d), sparsity) for multiple in multiples)

    guess = 0.9 * (1.0 + dimension_bound(sparsity, d))
    return least_points(is_recovered, ladder(4, MOST_POINTS), guess)._asdict()


def points(sparsity: int, n: int, d: int, replication: int) -> tuple[Array, Array, Array]:
    """Return X, y and v: the first points of a replication, with a flat direction."""
    return points_of(sparsity, "flat", n, d, replication)


def recovers(X: Array, y: Array, lam: float, sparsity: int) -> bool:
    """Return whether a weight recovers the labels; not if the time ran out before the solution decides it."""
    result = solve(X, lam, sparsity)
    return error_of(result, y) < RECOVERED and result.gap <= DECIDED * lam * sparsity


def solve(X: Array, lam: float, sparsity: int) -> dc.Result:
    """Solve to a gap relative to the planted value, which is about lambda l."""
    tol = (TOL if X.shape[1] < LARGE_D else LARGE_TOL) * lam * sparsity
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        return dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=tol, time_limit=TIME_LIMIT)


def error_of(result: dc.Result, y: Array) -> float:
    """Return the clustering error."""
    return dc.metrics.clustering_error(y, dc.rounding.kmeans_centered(result.F))


def measure_population(sparsity: int, d: int, lam: float) -> Row:
    """Solve the problem for infinitely many points."""
    found = solve_population(sparsity, d, lam)
    return {"weight": found.w, "excess": found.excess, "value": found.value}


def measure_sample(sparsity: int, d: int, lam: float, replication: int) -> Row:
    """Solve a large sample of `PER_D` points per dimension."""
    X, y, _ = points(sparsity, PER_D * d, d, replication)
    result = solve(X, lam, sparsity)
    return {"error": error_of(result, y), "value": result.value, "gap": result.gap}


MEASURES: dict[str, Callable[..., Row]] = {
    "exact": measure_exact,
    "law": partial(measure_weights, multiples=(LAW,)),
    "oracle": partial(measure_weights, multiples=ORACLE),
    "population": measure_population,
    "sample": measure_sample,
}
