"""Solvers of (15): this package's, CVXPY's and pymanopt, each with settings from loose to tight, or its authors' rule.

Shared by the benchmark, its instances of convergence, Figure 3 and Figure 4.  CVXPY runs in the timed process: with a
time limit, `dc.solve` may start another one, whose processor time is not the caller's.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.relaxations.relaxation import Relaxation
from diffrac_cvx.typing import Array

GOALS = (1e-2, 1e-4)  # relative gaps, (upper - lower) / upper
MEMORY = 8.0  # memory limit in GB of the process of a solve, including libraries and data
OWN_LIMIT = 30.0  # seconds per solve with the method's own stopping rule
LIMITS: dict[str, Any] = {"max_iter": 10**7, "time_limit": OWN_LIMIT}
LIMITED = (Status.USER_LIMIT, Status.TIME_LIMIT, Status.MAX_ITER)
MAX_CUT, PUBLISHED = "max-cut, pymanopt", "FISTA as published"
CVXPY = ("CVXPY + SCS", "CVXPY + CLARABEL")
LIMIT_OF = {"SCS": "time_limit_secs"}  # CLARABEL's option is called `time_limit`, as in `dc.solve`


def solve_here(relaxation: Relaxation, solver: str, seconds: float, **options: Any) -> Result:
    """Compile with CVXPY and solve by SCS, which respects the time limit, or by CLARABEL, which does not.

    The result's time includes both steps; if it exceeds the limit, the gap may be above the tolerance.
    """
    options |= {LIMIT_OF[solver]: seconds} if solver in LIMIT_OF else {}
    result = dc.solve(relaxation, solver, **options)
    late = result.seconds >= seconds and result.status is Status.INACCURATE
    return replace(result, status=Status.USER_LIMIT) if late else result


def in_processor_time(solve: Callable[..., Result], *arguments: Any) -> Result:
    """Solve, and return the result with its times as processor time in seconds.

    On one thread these are the times of an idle machine, little affected by other processes.  The solvers' own time
    limits are in wall-clock time.
    """
    clock, processor = time.perf_counter(), time.process_time()
    result = solve(*arguments)
    ratio = min(1.0, (time.process_time() - processor) / max(time.perf_counter() - clock, 1e-9))
    history = tuple(line._replace(seconds=ratio * line.seconds) for line in result.history)
    return replace(result, seconds=ratio * result.seconds, history=history)


def solve_max_cut(
    X: Array, penalty: object, upper: float, time_limit: float, *, gradient_norm: float, seed: int = 0
) -> Result:
    r"""Minimise 1 - tr F'HF / n over the rows of F on the sphere by pymanopt, and certify: Eq. (8) at nu = 1, Y = FF'.

    A solution has rank at most min(d, sqrt(2n)); with one more column there are generically no spurious local minima.
    """
    import pymanopt

    started = time.perf_counter()
    basis = column_basis(as_data(X))
    n = len(basis)
    rank = min(basis.shape[1], int(np.ceil((2 * n) ** 0.5))) + 1
    sphere = pymanopt.manifolds.Oblique(rank, n)

    @pymanopt.function.numpy(sphere)
    def cost(G: Array) -> float:
        return float(1 - np.sum((G @ basis) ** 2) / n)

    @pymanopt.function.numpy(sphere)
    def gradient(G: Array) -> Array:
        return -2 / n * (G @ basis) @ basis.T

    @pymanopt.function.numpy(sphere)
    def hessian(_: Array, D: Array) -> Array:
        return -2 / n * (D @ basis) @ basis.T

    problem = pymanopt.Problem(sphere, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    trust_regions = pymanopt.optimizers.TrustRegions(
        min_gradient_norm=gradient_norm, max_time=time_limit, max_iterations=1000, verbosity=0
    )
    start = np.random.default_rng(seed).standard_normal((rank, n))
    found = trust_regions.run(problem, initial_point=start / np.linalg.norm(start, axis=0))
    F = np.ascontiguousarray(found.point.T)
    lower, upper = dc.certify_y(X, F, nu=1.0)
    seconds = time.perf_counter() - started
    status = Status.TIME_LIMIT if seconds >= time_limit else Status.OPTIMAL
    return Result(
        value=upper, lower=lower, upper=upper, factor=F, status=status, n_iter=found.iterations, seconds=seconds,
        solver="pymanopt",
    )  # fmt: skip


def published_fista(X: Array, lam: float, seed: int, *, epsilon: float, **limits: Any) -> Result:
    """FISTA as published, smoothed by epsilon / log d and stopped by the paper's rule, a gap of epsilon, or a limit.

    Epsilon is that of Figure 3: "epsilon = 1e-2 / log d" is 1e-2 here.
    """
    smoothing = epsilon / max(np.log(X.shape[1]), 1.0)
    return dc.fista(X, 1.0, dc.Penalty.l1(lam), variant="published", epsilon=smoothing, tol=1e-12, **limits)


# Sequences of settings from loose to tight

Solver = Callable[[Array, dc.Penalty, float, float], Result]  # arguments: X, penalty, upper bound, seconds


class Rung(NamedTuple):
    """A setting of a method, and the largest goal for which it is run unless that goal is already reached."""

    goal: float
    solve: Solver


class Method(NamedTuple):
    """Settings of a method, whether it supports an l1 penalty, and the additional package it needs."""

    rungs: tuple[Rung, ...]
    takes_l1: bool = True
    package: str = ""

    @property
    def missing(self) -> str:
        """Why the method cannot run here; empty if it can."""
        try:
            version(self.package or "numpy")
        except PackageNotFoundError:
            return f"{self.package} is not installed. Run pip install {self.package}."
        return ""


def to_gap(X: Array, penalty: dc.Penalty, upper: float, seconds: float, *, solver: Any, gap: float) -> Result:
    """Run a solver of this package to a fraction of the best upper bound so far; its tolerance is an absolute gap."""
    result: Result = solver(X, 1.0, penalty, tol=gap * upper, max_iter=10**7, time_limit=seconds)
    return result


def through_cvxpy(
    X: Array, penalty: dc.Penalty, upper: float, seconds: float, *, solver: str, tol: float = GOALS[-1], **options: Any
) -> Result:
    """Build and solve Eq. (15) with CVXPY; compilation is part of the time.

    Solvers other than SCS and CLARABEL cannot be limited in time: the process of the cell is killed instead.
    """
    relaxation = dc.v_space(X, 1.0, penalty)
    if f"CVXPY + {solver}" in CVXPY:
        return solve_here(relaxation, solver, seconds, tol=tol, memory_limit=MEMORY, **options)
    return dc.solve(relaxation, solver, tol=tol, memory_limit=MEMORY, **options)


def gap_ladder(solver: Any) -> Method:
    """Return settings of a solver with a gap tolerance: first an absolute one, which gives the size of the optimum."""
    rungs = ((GOALS[0], GOALS[0]), (GOALS[0], 0.5 * GOALS[0]), (GOALS[1], 0.5 * GOALS[1]))
    return Method(tuple(Rung(goal, partial(to_gap, solver=solver, gap=gap)) for goal, gap in rungs))


def tolerance_ladder(solve: Callable[..., Result], *settings: dict[str, Any], **properties: Any) -> Method:
    """Return settings of a solver whose tolerance is not the gap: every setting counts for both goals."""
    return Method(tuple(Rung(GOALS[-1], partial(solve, **options)) for options in settings), **properties)


METHODS = {
    "low_rank": gap_ladder(dc.low_rank),
    "accelerated FISTA": gap_ladder(partial(dc.fista, variant="accelerated")),
    PUBLISHED: gap_ladder(partial(dc.fista, variant="published")),
    "CVXPY + SCS": tolerance_ladder(
        partial(through_cvxpy, solver="SCS"),
        *({"eps_abs": eps, "eps_rel": eps} for eps in (1e-3, 1e-4, 1e-5, 1e-6, 1e-8)),
    ),
    "CVXPY + CLARABEL": tolerance_ladder(
        partial(through_cvxpy, solver="CLARABEL"),
        *({"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol} for tol in (1e-3, 1e-6, 1e-8)),
    ),
    "CVXPY + MOREAU": tolerance_ladder(
        partial(through_cvxpy, solver="MOREAU", device="cpu"),
        *({"ipm_settings": {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}} for tol in (1e-3, 1e-6, 1e-8)),
        package="moreau",
    ),
    MAX_CUT: tolerance_ladder(
        solve_max_cut,
        *({"gradient_norm": norm} for norm in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)),
        takes_l1=False,
        package="pymanopt",
    ),
}


# The authors' own stopping rules, as functions of the data, lambda and a seed

OWN: dict[str, Callable[[Array, float, int], Result]] = {
    "CVXPY + SCS": lambda X, lam, _: through_cvxpy(
        X, dc.Penalty.l1(lam), 1.0, OWN_LIMIT, solver="SCS", tol=1e-5, eps_abs=1e-5, eps_rel=1e-5
    ),
    "CVXPY + CLARABEL": lambda X, lam, _: through_cvxpy(
        X, dc.Penalty.l1(lam), 1.0, OWN_LIMIT, solver="CLARABEL", tol=1e-5,
        tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8,
    ),
    MAX_CUT: lambda X, _, seed: solve_max_cut(X, None, 1.0, OWN_LIMIT, gradient_norm=1e-6, seed=seed),  # no lambda
    "FISTA, 1e-2": partial(published_fista, epsilon=1e-2, **LIMITS),
    "FISTA, 1e-3": partial(published_fista, epsilon=1e-3, **LIMITS),
    "low_rank": lambda X, lam, _: dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=1e-5, **LIMITS),
}  # fmt: skip


class Deadline:
    """A callback that stops a solver after a limit of processor time in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.started = seconds, time.process_time()

    @property
    def spent(self) -> float:
        """Processor time in seconds since the start."""
        return time.process_time() - self.started

    def __call__(self, *progress: Any) -> bool:
        """Return whether the time limit is exceeded."""
        return self.spent > self.seconds


@lru_cache
def warm_up(method: str) -> None:
    """Run a method once on few points, so that its imports do not count."""
    few = dc.datasets.make_planted(20, 3, noise=0.3, rng=0).X
    with warnings.catch_warnings(action="ignore"):
        if method in METHODS:
            METHODS[method].rungs[0].solve(few, dc.Penalty.l1(0.0), 1.0, 10.0)
        else:
            OWN[method](few, 0.0, 0)
