"""Figure 3: time to a certified relative gap as n and d grow, and each method with its own stopping rule.

Times depend on the machine, their ratios much less.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.datasets import Planted
from diffrac_cvx.problem.result import Result
from experiments.benchmark.cells import TIMES, relative_gap, times_of
from experiments.harness.sweep import Cell, Row, cross
from experiments.methods import (
    GOALS,
    LIMITED,
    LIMITS,
    MAX_CUT,
    MEMORY,
    OWN,
    OWN_LIMIT,
    PUBLISHED,
    in_processor_time,
    published_fista,
    warm_up,
)
from experiments.methods import METHODS as TO_RELATIVE_GAP

LAMBDAS = (0.0, 0.001)
NOISE = 0.3  # standard deviation of each cluster, whose centres are -1 and 1
LIMIT, TIGHT_LIMIT = 60.0, 10.0  # seconds per solve until the looser relative gap is reached, and after that
CELL_SECONDS, CELL_MEMORY = 240.0, MEMORY  # per cell, for all its solves
STEPS = 50  # iterations averaged for the time of one

DIMENSION = {"n": 50, "epsilon": 20}  # d if it is not varied, and
SPARSITY = {"n": 6, "d": 2, "epsilon": 2}  # number of planted dimensions, as in the paper
POINTS = {"own": 100, "gap": 1000, "cost": 20_000, "iterations": 1000}  # n if it is not varied
TARGETS = (1e-2, 5e-3, 2e-3, 1e-3)  # epsilon of `published_fista`
TARGET = 3e-3  # epsilon at which n and d are varied

# With d = 50 and lambda = 0 the optimum is 0 below about n = d(d + 1)/4 = 640: a relative gap is not attainable there.
SOME_POINTS = (1000, 2000)
MANY_POINTS = (5000, 10_000, 30_000)
MOST_POINTS = 100_000
FEW_POINTS = (200, 500)
OWN_POINTS = (100, 200, 500, 1000)


class Plan(NamedTuple):
    """Sizes of one method on one panel: those with three replications, and those with only one.

    Goals: "own", the method's own stopping rule; "gap", the relative gaps; "cost", the time of an iteration;
    "iterations", their number.
    """

    goal: str
    method: str
    lam: float
    panel: str
    often: tuple[float, ...]
    once: tuple[float, ...] = ()


FULL = (
    Plan("gap", "low_rank", 0.0, "n", (*SOME_POINTS, *MANY_POINTS, MOST_POINTS)),
    Plan("gap", "low_rank", 0.001, "n", (*FEW_POINTS, *SOME_POINTS, *MANY_POINTS, MOST_POINTS)),
    Plan("gap", "low_rank", 0.0, "d", (4, 8, 16, 32, 48)),
    Plan("gap", "low_rank", 0.001, "d", (4, 8, 16, 32, 64)),
    Plan("gap", "accelerated FISTA", 0.0, "n", SOME_POINTS, MANY_POINTS),
    Plan("gap", "accelerated FISTA", 0.001, "n", (500, 1000), (200, 2000, *MANY_POINTS)),
    Plan("gap", "accelerated FISTA", 0.0, "d", (4, 8, 16, 32, 48)),
    Plan("gap", "accelerated FISTA", 0.001, "d", (4, 8, 16, 32, 64)),
    Plan("gap", PUBLISHED, 0.0, "n", (), (1000,)),
    Plan("gap", PUBLISHED, 0.001, "n", (), (1000,)),
    Plan("gap", PUBLISHED, 0.0, "d", (), (4, 8)),
    Plan("gap", PUBLISHED, 0.001, "d", (), (4,)),
    Plan("gap", "CVXPY + SCS", 0.0, "n", (1000,), (2000, 5000, 10_000)),
    Plan("gap", "CVXPY + SCS", 0.001, "n", (200,), (500, *SOME_POINTS)),
    Plan("gap", "CVXPY + SCS", 0.0, "d", (4, 8, 16, 32), (48,)),
    Plan("gap", "CVXPY + SCS", 0.001, "d", (4, 8, 16), (32, 64)),
    Plan("gap", "CVXPY + CLARABEL", 0.0, "n", (), SOME_POINTS),
    Plan("gap", "CVXPY + CLARABEL", 0.001, "n", (200,), (500, 1000)),
    Plan("gap", "CVXPY + CLARABEL", 0.0, "d", (4, 8, 16), (32,)),
    Plan("gap", "CVXPY + CLARABEL", 0.001, "d", (4, 8, 16), (32,)),
    Plan("gap", MAX_CUT, 0.0, "n", SOME_POINTS, MANY_POINTS),
    Plan("gap", MAX_CUT, 0.0, "d", (4, 8, 16, 32, 48)),
    *(Plan("own", "CVXPY + SCS", lam, "n", OWN_POINTS[:3], OWN_POINTS[3:]) for lam in LAMBDAS),
    *(Plan("own", "CVXPY + SCS", lam, "d", (4, 8, 16, 32, 64)) for lam in LAMBDAS),
    *(Plan("own", "CVXPY + CLARABEL", lam, "n", (100, 200), (500,)) for lam in LAMBDAS),
    *(Plan("own", "CVXPY + CLARABEL", lam, "d", (4, 8, 16, 32)) for lam in LAMBDAS),
    Plan("own", MAX_CUT, 0.0, "n", (*OWN_POINTS, 2000, 5000)),
    Plan("own", MAX_CUT, 0.0, "d", (4, 8, 16, 32, 64)),
    *(Plan("own", "FISTA, 1e-2", lam, "n", (*OWN_POINTS, 2000, 5000), (10_000,)) for lam in LAMBDAS),
    *(Plan("own", "FISTA, 1e-2", lam, "d", (4, 8, 16, 32, 64)) for lam in LAMBDAS),
    *(Plan("own", "FISTA, 1e-3", lam, "n", OWN_POINTS[:2], OWN_POINTS[2:]) for lam in LAMBDAS),
    *(Plan("own", "FISTA, 1e-3", lam, "d", (4, 8, 16, 32), (64,)) for lam in LAMBDAS),
    *(Plan("own", "low_rank", lam, "n", (*OWN_POINTS, 2000, 5000, 10_000)) for lam in LAMBDAS),
    *(Plan("own", "low_rank", lam, "d", (4, 8, 16, 32, 64)) for lam in LAMBDAS),
    Plan("cost", PUBLISHED, 0.001, "n", (2000, 5000, 10_000, 20_000, 50_000, 100_000)),
    Plan("cost", PUBLISHED, 0.001, "d", (16, 32, 64, 128, 256)),
    Plan("iterations", PUBLISHED, 0.0, "epsilon", TARGETS),
    Plan("iterations", PUBLISHED, 0.0, "d", (4, 8, 16, 32)),
    Plan("iterations", PUBLISHED, 0.0, "n", (200, 500, 1000, 2000)),
)
TO_GAPS = tuple(dict.fromkeys(plan.method for plan in FULL if plan.goal == "gap"))  # the methods of the first row
SMOKE = (
    *(Plan("gap", method, 0.0, "d", (), (4,)) for method in TO_GAPS if method != PUBLISHED),
    *(Plan("own", method, 0.0, "d", (), (4,)) for method in OWN),
    Plan("own", "FISTA, 1e-2", 0.001, "d", (), (4,)),
    Plan("own", "low_rank", 0.001, "d", (), (4,)),
    Plan("cost", PUBLISHED, 0.001, "d", (), (4,)),
    Plan("iterations", PUBLISHED, 0.0, "epsilon", (), (3e-2,)),
)
GRIDS = {"full": FULL, "smoke": SMOKE}
SETTINGS = {"noise": NOISE, "goals": GOALS, "limits": [OWN_LIMIT, LIMIT, TIGHT_LIMIT, MEMORY], "steps": STEPS}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; without pymanopt its curve is skipped with a message."""
    missing = TO_RELATIVE_GAP[MAX_CUT].missing
    print(missing, end="\n" * bool(missing))
    cells: list[Cell] = []
    for plan in GRIDS[grid]:
        if plan.method == MAX_CUT and missing:
            continue
        for size in (*plan.often, *plan.once):
            replications = range(3 if size in plan.often else 1)
            named = {key: [value] for key, value in size_of(plan, size).items()}
            cells += cross(
                panel=[plan.panel], lam=[plan.lam], method=[plan.method], goal=[plan.goal], **named,
                replication=replications,
            )  # fmt: skip
    return cells


def size_of(plan: Plan, size: float) -> dict[str, float]:
    """Return n, d, the planted sparsity, and epsilon if relevant, at a size of a plan."""
    d = DIMENSION.get(plan.panel, 0)
    sized: dict[str, float] = {"n": POINTS[plan.goal], "d": d, "sparsity": SPARSITY[plan.panel]}
    if plan.goal == "iterations":
        sized |= {"d": DIMENSION["epsilon"], "epsilon": TARGET}
    return sized | {plan.panel: size}


def measure(
    panel: str, lam: float, method: str, goal: str, n: int, d: int, sparsity: int, replication: int,
    epsilon: float = TARGET,
) -> Row:  # fmt: skip
    """Solve one instance by one method; the instance depends only on n, d and the replication."""
    rng = np.random.default_rng([2017, 3, n, d, replication])
    planted = dc.datasets.make_planted(n, d, sparsity, noise=NOISE, rng=rng)
    warm_up(method)
    with warnings.catch_warnings(action="ignore"):
        match goal:
            case "own":
                return stop_by_own_rule(OWN[method], planted, lam, replication)
            case "iterations":
                return stop_by_own_rule(partial(published_fista, epsilon=epsilon, **LIMITS), planted, lam, replication)
            case "gap":
                return reach_gaps(planted, lam, method)
        return time_iterations(planted, lam)


def stop_by_own_rule(solve: Callable[..., Result], planted: Planted, lam: float, seed: int) -> Row:
    """Solve with the stopping rule of the method's authors, or to the limit."""
    result = in_processor_time(solve, planted.X, lam, seed)
    return describe(planted, result) | {"met": int(result.status not in LIMITED), "reason": reason_of(result)}


def reach_gaps(planted: Planted, lam: float, method: str) -> Row:
    """Solve with the settings of a method from loose to tight; a goal has the time of the first one to reach it."""
    runs = list(climb(planted, lam, method))
    row = describe(planted, min(runs, key=relative_gap))
    for k, (column, goal) in enumerate(zip(TIMES, GOALS, strict=True)):
        reached = [(times_of(run)[k], run.seconds) for run in runs if relative_gap(run) <= goal]
        seconds = min((own if np.isnan(first) else first for first, own in reached), default=np.nan)
        row[column] = seconds if seconds <= LIMIT else np.nan
    return row | {"reason": reason_of(runs[-1])}


def climb(planted: Planted, lam: float, method: str) -> Iterator[Result]:
    """Yield the results of a method's settings until both goals or a limit are reached."""
    reached, upper, penalty = np.inf, 1.0, dc.Penalty.l1(lam)
    for rung in TO_RELATIVE_GAP[method].rungs:
        if reached <= rung.goal:
            continue
        limit = LIMIT if reached > GOALS[0] else TIGHT_LIMIT
        result = in_processor_time(rung.solve, planted.X, penalty, upper, limit)
        yield result
        reached, upper = min(reached, relative_gap(result)), min(upper, result.upper)
        if result.status in LIMITED or result.seconds >= limit:
            return


def time_iterations(planted: Planted, lam: float) -> Row:
    """Time an iteration of FISTA as published, including its certificate every 25 iterations, without the set-up."""
    solve = partial(published_fista, epsilon=1e-5, max_iter=STEPS)
    result = in_processor_time(solve, planted.X, lam, 0)
    first, last = result.history[0], result.history[-1]
    seconds = (last.seconds - first.seconds) / (last.iteration - first.iteration)
    return {"seconds": result.seconds, "iterations": result.n_iter, "iteration_seconds": seconds, "reason": ""}


def describe(planted: Planted, result: Result) -> Row:
    """Return the fields that every row has."""
    return {
        "seconds": result.seconds,
        "error": dc.metrics.clustering_error(planted.y, dc.rounding.kmeans_centered(result.F)),
        "value": result.value,
        "gap": result.gap,
        "iterations": result.n_iter,
    }


def reason_of(result: Result) -> str:
    """Return why a solve stopped before its goal; empty if it did not."""
    return f"stopped after {result.seconds:.0f} s" if result.status in LIMITED else ""
