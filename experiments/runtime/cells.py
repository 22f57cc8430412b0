"""The cells of the runtime experiment (Figure 3): who solves what, how it stops, and what is measured."""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.inputs import Array
from diffrac_cvx.result import Result, Status
from experiments.harness.sweep import Cell, Row, cross
from experiments.runtime.pymanopt_max_cut import HOW_TO_INSTALL, INSTALLED, solve_max_cut

LAMBDAS = (0.0, 0.001)
NOISE = 0.3  # standard deviation of each cluster, whose centres are -1 and 1
EQUAL_GAP = 1e-3
FAST_LIMIT, CVXPY_LIMIT = 30.0, 100.0  # seconds of one solve
LIMITS: dict[str, Any] = {"max_iter": 10**7, "time_limit": FAST_LIMIT}  # of the solvers of this package
SECONDS, MEMORY = 150.0, 8.0  # of one cell; GB

POINTS = (100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000)  # at d = 50, k = 6
DIMENSIONS = (4, 8, 16, 32, 64, 128)  # at n = 100, k = 2
CVXPY_POINTS = 5000  # beyond, CVXPY is run once only, to show that it is stopped
COMPARED = 1000  # the number of points at which CVXPY and the fast solvers are compared: more replications there
LIMITED = (Status.LIMIT, Status.TIME_LIMIT)
CVXPY = ("CVXPY + SCS", "CVXPY + CLARABEL")
MAX_CUT = "max-cut, pymanopt"
Solver = Callable[[Array, float, int], Result]  # from the data, lambda and a seed


class Method(NamedTuple):
    """How a method is run: its solvers by goal, its largest sizes, and its replications.

    `own` stops as its authors would, None if that is the equal gap; `equal` holds solvers from loose to tight, of
    which the first to prove the equal gap counts, alone.  `replications` are those of most sizes and of COMPARED.
    """

    own: Solver | None
    equal: tuple[Solver, ...]
    most_points: int
    most_dimensions: int
    replications: tuple[int, int]
    lambdas: tuple[float, ...] = LAMBDAS


def solve_through_cvxpy(X: Array, lam: float, seed: int, *, solver: str, **options: Any) -> Result:
    """Build and solve Eq. (15) through CVXPY; its compilation is part of the time."""
    relaxation = dc.v_space(X, 1.0, dc.Penalty.l1(lam))
    return dc.solve(relaxation, solver, tol=EQUAL_GAP, time_limit=CVXPY_LIMIT, memory_limit=MEMORY, **options)


def scs(eps: float) -> Solver:
    """SCS at a tolerance."""
    return partial(solve_through_cvxpy, solver="SCS", eps_abs=eps, eps_rel=eps)


def clarabel(tol: float) -> Solver:
    """CLARABEL at a tolerance."""
    return partial(solve_through_cvxpy, solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)


def manifold(gradient_norm: float) -> Solver:
    """The max-cut form at a gradient norm."""
    return lambda X, lam, seed: solve_max_cut(X, gradient_norm, FAST_LIMIT, seed)


def to_gap(solver: Callable[..., Result], tol: float, **options: Any) -> Solver:
    """A solver of this package, to a proved gap."""
    return lambda X, lam, seed: solver(X, 1.0, dc.Penalty.l1(lam), tol=tol, **LIMITS, **options)


def published_fista(X: Array, lam: float, seed: int, *, epsilon: float, **limits: Any) -> Result:
    """FISTA as published at epsilon / log d, ended by the paper's own rule or a limit."""
    smoothing = epsilon / max(np.log(X.shape[1]), 1.0)
    return dc.fista(X, 1.0, dc.Penalty.l1(lam), variant="published", epsilon=smoothing, tol=1e-12, **limits)


METHODS: dict[str, Method] = {
    "CVXPY + SCS": Method(
        scs(1e-5), tuple(scs(eps) for eps in (3e-3, 1e-3, 5e-4, 2e-4, 1e-4, 1e-5)), 10_000, 128, (1, 3)
    ),
    "CVXPY + CLARABEL": Method(clarabel(1e-8), tuple(clarabel(tol) for tol in (1e-3, 1e-5, 1e-8)), 1000, 64, (1, 1)),
    MAX_CUT: Method(
        manifold(1e-6), tuple(manifold(g) for g in (1e-3, 1e-4, 1e-5, 1e-6)), 100_000, 128, (3, 3), lambdas=(0.0,)
    ),
    "FISTA, 1e-2": Method(partial(published_fista, epsilon=1e-2, **LIMITS), (), 100_000, 128, (1, 3)),
    "FISTA, 1e-3": Method(partial(published_fista, epsilon=1e-3, **LIMITS), (), 5000, 128, (1, 3)),
    "FISTA as published": Method(None, (to_gap(dc.fista, EQUAL_GAP, variant="published"),), 2000, 64, (1, 3)),
    "accelerated FISTA": Method(None, (to_gap(dc.fista, EQUAL_GAP),), 100_000, 128, (5, 5)),
    "low_rank": Method(to_gap(dc.low_rank, 1e-5), (to_gap(dc.low_rank, EQUAL_GAP),), 100_000, 128, (5, 5)),
}
SETTINGS = {"noise": NOISE, "equal_gap": EQUAL_GAP, "limits": [FAST_LIMIT, CVXPY_LIMIT, MEMORY]}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; without pymanopt its curve is left out, which is said."""
    if not INSTALLED:
        print(HOW_TO_INSTALL)
    full = grid == "full"
    points, dimensions = (POINTS, DIMENSIONS) if full else ((100,), (4,))
    panels = [("n", n, 50 if full else 10, 6) for n in points] + [("d", 100, d, 2) for d in dimensions]
    cells: list[Cell] = []
    for name, method in METHODS.items():
        if name == MAX_CUT and not INSTALLED:
            continue
        for lam, (panel, n, d, k) in product(method.lambdas, panels):
            if n > method.most_points or d > method.most_dimensions:
                continue
            goals = [goal for goal, there in (("own", method.own), ("equal gap", method.equal)) if there]
            if n > CVXPY_POINTS and name in CVXPY:
                goals = ["own"]
            count = method.replications[n == COMPARED] if full else 1
            size = {"n": [n], "d": [d], "sparsity": [k], "replication": range(count)}
            cells += cross(panel=[panel], lam=[lam], method=[name], goal=goals, **size)
    return cells


def measure(panel: str, lam: float, method: str, goal: str, n: int, d: int, sparsity: int, replication: int) -> Row:
    """Solve one instance by one method, to its own rule or to the equal gap."""
    rng = np.random.default_rng([2017, 3, n, d, replication])
    planted = dc.datasets.make_planted(n, d, sparsity, noise=NOISE, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, equal, *_ = METHODS[method]
        solvers = equal if goal == "equal gap" or own is None else (own,)
        result = solve_in_turn(solvers, planted.X, lam, replication)
    return {
        "seconds": result.seconds,
        "error": dc.metrics.clustering_error(planted.y, dc.rounding.kmeans_centered(result.F)),
        "value": result.value,
        "gap": result.gap,
        "iterations": result.n_iter,
        "reached": int(goal == "own" or result.gap <= EQUAL_GAP),
        "reason": f"stopped after {result.seconds:.0f} s" if result.status in LIMITED else "",
    }


def solve_in_turn(solvers: tuple[Solver, ...], X: Array, lam: float, seed: int) -> Result:
    """Return the first result within the equal gap; that of the last solver, or of one that met a limit, if none is."""
    for solve in solvers:
        result = solve(X, lam, seed)
        if result.gap <= EQUAL_GAP or result.status in LIMITED:
            break
    return result
