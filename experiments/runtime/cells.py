"""The cells of the runtime experiment (Figure 3): who solves what, how it stops, and what is measured."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.inputs import Array
from diffrac_cvx.result import Result, Status
from experiments.harness.sweep import Row
from experiments.runtime.pymanopt_max_cut import HOW_TO_INSTALL, INSTALLED, max_cut

LAMBDAS = (0.0, 0.001)
NOISE = 0.3  # standard deviation of each cluster, whose centres are -1 and 1
EQUAL_GAP = 1e-3
FAST_LIMIT, CVXPY_LIMIT = 30.0, 100.0  # seconds of one solve
SECONDS, MEMORY = 150.0, 8.0  # of one cell; GB

POINTS = (100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000)  # at d = 50, k = 6
DIMENSIONS = (4, 8, 16, 32, 64, 128)  # at n = 100, k = 2
CVXPY_POINTS = 5000  # beyond, CVXPY is stopped
COMPARED = 1000  # the number of points at which CVXPY and the fast solvers are compared: more replications there


class Method(NamedTuple):
    """How a method is run: its solver by goal, ladders of tolerances where it cannot be asked for a gap, its reach.

    `own` stops as its authors would, None if that is the equal gap; `equal` holds runs from loose to tight, of which
    the first to prove the equal gap counts, alone.
    """

    own: Callable[..., Result] | None
    equal: tuple[Callable[..., Result], ...]
    most_points: int
    most_dimensions: int
    replications: Callable[[int], int]


def cvxpy(X: Array, lam: float, seed: int, *, solver: str, **options: Any) -> Result:
    """Build and solve Eq. (15) through CVXPY: compilation counts."""
    return dc.solve(
        dc.v_space(X, 1.0, dc.Penalty.l1(lam)),
        solver,
        tol=EQUAL_GAP,
        time_limit=CVXPY_LIMIT,
        memory_limit=MEMORY,
        **options,
    )


def scs(eps: float) -> Callable[..., Result]:
    """SCS at a tolerance."""
    return partial(cvxpy, solver="SCS", eps_abs=eps, eps_rel=eps)


def clarabel(tol: float) -> Callable[..., Result]:
    """CLARABEL at a tolerance."""
    return partial(cvxpy, solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)


def manifold(gradient_norm: float) -> Callable[..., Result]:
    """The max-cut form at a gradient norm."""

    def solve(X: Array, lam: float, seed: int) -> Result:
        assert lam == 0.0
        return max_cut(X, gradient_norm, FAST_LIMIT, seed)

    return solve


def published(epsilon: float) -> Callable[..., Result]:
    """FISTA as published at epsilon / log d, ended by the paper's own rule."""

    def solve(X: Array, lam: float, seed: int) -> Result:
        smoothing = epsilon / max(np.log(X.shape[1]), 1.0)
        return dc.fista(
            X, 1.0, dc.Penalty.l1(lam), variant="published",
            epsilon=smoothing, tol=1e-12, max_iter=10**7, time_limit=FAST_LIMIT,
        )  # fmt: skip

    return solve


def certified(solver: Callable[..., Result], tol: float, **options: Any) -> Callable[..., Result]:
    """A solver of this package, to a proved gap."""

    def solve(X: Array, lam: float, seed: int) -> Result:
        return solver(X, 1.0, dc.Penalty.l1(lam), tol=tol, max_iter=10**7, time_limit=FAST_LIMIT, **options)

    return solve


def thrice_where_compared(n: int) -> int:
    """Return the replications of a slow method."""
    return 3 if n == COMPARED else 1


def once(n: int) -> int:
    """Return the replications of the slowest method."""
    return 1


METHODS: dict[str, Method] = {
    "CVXPY + SCS": Method(
        scs(1e-5), tuple(scs(eps) for eps in (3e-3, 1e-3, 5e-4, 2e-4, 1e-4, 1e-5)), 10_000, 128, thrice_where_compared
    ),
    "CVXPY + CLARABEL": Method(clarabel(1e-8), tuple(clarabel(tol) for tol in (1e-3, 1e-5, 1e-8)), 1000, 64, once),
    "max-cut, pymanopt": Method(
        manifold(1e-6), tuple(manifold(g) for g in (1e-3, 1e-4, 1e-5, 1e-6)), 100_000, 128, lambda n: 3
    ),
    "FISTA, 1e-2": Method(published(1e-2), (), 100_000, 128, thrice_where_compared),
    "FISTA, 1e-3": Method(published(1e-3), (), 5000, 128, thrice_where_compared),
    "FISTA as published": Method(
        None, (certified(dc.fista, EQUAL_GAP, variant="published"),), 2000, 64, thrice_where_compared
    ),
    "accelerated FISTA": Method(None, (certified(dc.fista, EQUAL_GAP),), 100_000, 128, lambda n: 5),
    "low_rank": Method(certified(dc.low_rank, 1e-5), (certified(dc.low_rank, EQUAL_GAP),), 100_000, 128, lambda n: 5),
}
SETTINGS = {"noise": NOISE, "equal_gap": EQUAL_GAP, "limits": [FAST_LIMIT, CVXPY_LIMIT, MEMORY]}


def cells_of(grid: str) -> list[dict[str, Any]]:
    """Return the cells of a grid; without pymanopt its curve is left out, with a word."""
    if not INSTALLED:
        print(HOW_TO_INSTALL)
    names = [name for name in METHODS if INSTALLED or "pymanopt" not in name]
    points, dimensions = (POINTS, DIMENSIONS) if grid == "full" else ((100,), (4,))
    panels = [("n", n, 50 if grid == "full" else 10, 6) for n in points] + [("d", 100, d, 2) for d in dimensions]
    cells = []
    for name, lam, (panel, n, d, k) in product(names, LAMBDAS, panels):
        method = METHODS[name]
        if n > method.most_points or d > method.most_dimensions or ("pymanopt" in name and lam > 0.0):
            continue
        goals = [goal for goal, there in (("own", method.own), ("equal gap", method.equal)) if there]
        if n > CVXPY_POINTS and "CVXPY" in name:
            goals = ["own"]  # once, to show the limit
        cells += [
            {
                "panel": panel,
                "lambda": lam,
                "method": name,
                "goal": goal,
                "n": n,
                "d": d,
                "sparsity": k,
                "replication": r,
            }
            for goal, r in product(goals, range(method.replications(n) if grid == "full" else 1))
        ]
    return cells


def measure(
    method: str, goal: str, n: int, d: int, sparsity: int, replication: int, panel: str, **weights: float
) -> Row:
    """Solve one instance by one method, to its own rule or to the equal gap."""
    rng = np.random.default_rng([2017, 3, n, d, replication])
    planted = dc.datasets.make_planted(n, d, sparsity, noise=NOISE, rng=rng)
    X, lam = planted.X, weights["lambda"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = next(reaching(runs_of(method, goal), X, lam, replication))
    limited = result.status in (Status.LIMIT, Status.TIME_LIMIT)
    return {
        "seconds": result.seconds,
        "error": dc.metrics.clustering_error(planted.y, dc.rounding.kmeans_centered(result.F)),
        "value": result.value,
        "gap": result.gap,
        "iterations": result.n_iter,
        "reached": int(goal == "own" or result.gap <= EQUAL_GAP),
        "reason": f"stopped after {result.seconds:.0f} s" if limited else "",
    }


def runs_of(method: str, goal: str) -> tuple[Callable[..., Result], ...]:
    """Return the runs to try in turn."""
    own = METHODS[method].own
    return METHODS[method].equal if goal == "equal gap" or own is None else (own,)


def reaching(runs: tuple[Callable[..., Result], ...], X: Array, lam: float, seed: int) -> Iterator[Result]:
    """Yield the first result within the equal gap; the last one if a limit or the end of the ladder comes first."""
    for solve in runs:
        result = solve(X, lam, seed)
        if result.gap <= EQUAL_GAP or result.status in (Status.LIMIT, Status.TIME_LIMIT) or solve is runs[-1]:
            yield result
            return
