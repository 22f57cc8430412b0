"""Methods of Figure 3 with their authors' stopping rules; those with a relative gap are in the benchmark."""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.typing import Array
from experiments.benchmark.methods import METHODS as TO_RELATIVE_GAP
from experiments.in_process import solve_here, without_others
from experiments.runtime.pymanopt_max_cut import solve_max_cut

MEMORY = 8.0  # GB
OWN_LIMIT = 30.0  # seconds per solve with the method's own stopping rule
LIMITS: dict[str, Any] = {"max_iter": 10**7, "time_limit": OWN_LIMIT}
LIMITED = (Status.USER_LIMIT, Status.TIME_LIMIT, Status.MAX_ITER)
MAX_CUT = "max-cut, pymanopt"
CVXPY = ("CVXPY + SCS", "CVXPY + CLARABEL")
PUBLISHED = "FISTA as published"
Solver = Callable[[Array, float, int], Result]  # arguments: data, lambda, seed


def published_fista(X: Array, lam: float, seed: int, *, epsilon: float, **limits: Any) -> Result:
    """FISTA as published, smoothed by epsilon / log d and stopped by the paper's rule, a gap of epsilon, or a limit.

    Epsilon is that of Figure 3: "epsilon = 1e-2 / log d" is 1e-2 here.
    """
    smoothing = epsilon / max(np.log(X.shape[1]), 1.0)
    return dc.fista(X, 1.0, dc.Penalty.l1(lam), variant="published", epsilon=smoothing, tol=1e-12, **limits)


def through_cvxpy(X: Array, lam: float, seed: int, *, solver: str, **options: Any) -> Result:
    """Build and solve Eq. (15) with CVXPY; compilation is part of the time."""
    relaxation = dc.v_space(X, 1.0, dc.Penalty.l1(lam))
    return solve_here(relaxation, solver, OWN_LIMIT, tol=1e-5, memory_limit=MEMORY, **options)


def max_cut(X: Array, lam: float, seed: int) -> Result:
    """Max-cut form, which has no lambda, to manopt's default gradient norm."""
    return solve_max_cut(X, 1e-6, OWN_LIMIT, seed)


def low_rank(X: Array, lam: float, seed: int) -> Result:
    """Low-rank solver to its default gap."""
    return dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=1e-5, **LIMITS)


OWN: dict[str, Solver] = {
    "CVXPY + SCS": partial(through_cvxpy, solver="SCS", eps_abs=1e-5, eps_rel=1e-5),
    "CVXPY + CLARABEL": partial(through_cvxpy, solver="CLARABEL", tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8),
    MAX_CUT: max_cut,
    "FISTA, 1e-2": partial(published_fista, epsilon=1e-2, **LIMITS),
    "FISTA, 1e-3": partial(published_fista, epsilon=1e-3, **LIMITS),
    "low_rank": low_rank,
}


def in_processor_time(solve: Callable[..., Result], *arguments: Any) -> Result:
    """Solve, and return the result with its times as processor time in seconds.

    On one thread these are the times of an idle machine, little affected by other processes.  The solvers' own time
    limits are in wall-clock time.
    """
    clock, processor = time.perf_counter(), time.process_time()
    result = without_others(solve, *arguments)
    ratio = min(1.0, (time.process_time() - processor) / max(time.perf_counter() - clock, 1e-9))
    history = tuple(line._replace(seconds=ratio * line.seconds) for line in result.history)
    return replace(result, seconds=ratio * result.seconds, history=history)


@lru_cache
def warm_up(method: str) -> None:
    """Run a method once on few points, so that its imports do not count."""
    few = dc.datasets.make_planted(20, 3, noise=0.3, rng=0).X
    with warnings.catch_warnings(action="ignore"):
        if method in TO_RELATIVE_GAP:
            TO_RELATIVE_GAP[method].rungs[0].solve(few, dc.Penalty.l1(0.0), 1.0, 10.0)
        else:
            OWN[method](few, 0.0, 0)
