"""Methods of the benchmark, each with a sequence of settings from loose to tight."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import diffrac_cvx as dc
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.problem.result import Result
from diffrac_cvx.typing import Array
from experiments.benchmark.semidefinite import as_semidefinite
from experiments.in_process import solve_here
from experiments.runtime.pymanopt_max_cut import solve_max_cut

GOALS = (1e-2, 1e-4)  # relative gaps, (upper - lower) / upper
MEMORY = 8.0  # memory limit in GB of the process of a solve, including libraries and data
MATRICES = 20.0  # d x d matrices in FISTA's peak memory: 12 to 35 were measured for d = 300 to 1000
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


def fista(X: Array, *arguments: Any, variant: str, **options: Any) -> Result:
    """Run FISTA if its matrices fit in memory."""
    require_memory(MATRICES * 8.0 * X.shape[1] ** 2, "FISTA", "use low_rank", 1e9 * MEMORY)
    return dc.fista(X, *arguments, variant=variant, **options)


def through_cvxpy(
    X: Array, penalty: dc.Penalty, upper: float, seconds: float, *, solver: str, **options: Any
) -> Result:
    """Build and solve Eq. (15) with CVXPY; compilation is part of the time."""
    relaxation = dc.v_space(X, 1.0, penalty)
    return solve_here(relaxation, solver, seconds, tol=GOALS[-1], memory_limit=MEMORY, **options)


def through_cvxpy_untimed(
    X: Array, penalty: dc.Penalty, upper: float, seconds: float, *, solver: str, **options: Any
) -> Result:
    """Do the same with a solver that `dc.solve` cannot limit in time: the process of the cell is killed instead."""
    relaxation = dc.v_space(X, 1.0, penalty)
    posed = as_semidefinite(relaxation) if solver == "SDPA" else relaxation
    return dc.solve(posed, solver, tol=GOALS[-1], memory_limit=MEMORY, **options)


def on_manifold(X: Array, penalty: dc.Penalty, upper: float, seconds: float, *, gradient_norm: float) -> Result:
    """Run pymanopt on the max-cut form, which has no l1 penalty, and certify its solution."""
    return solve_max_cut(X, gradient_norm, seconds, seed=0)


def gap_ladder(solver: Any) -> Method:
    """Return settings of a solver with a gap tolerance: first an absolute one, which gives the size of the optimum."""
    rungs = ((GOALS[0], GOALS[0]), (GOALS[0], 0.5 * GOALS[0]), (GOALS[1], 0.5 * GOALS[1]))
    return Method(tuple(Rung(goal, partial(to_gap, solver=solver, gap=gap)) for goal, gap in rungs))


def tolerance_ladder(solve: Callable[..., Result], *settings: dict[str, Any], **properties: Any) -> Method:
    """Return settings of a solver whose tolerance is not the gap: every setting counts for both goals."""
    return Method(tuple(Rung(GOALS[-1], partial(solve, **options)) for options in settings), **properties)


METHODS = {
    "low_rank": gap_ladder(dc.low_rank),
    "accelerated FISTA": gap_ladder(partial(fista, variant="accelerated")),
    "FISTA as published": gap_ladder(partial(fista, variant="published")),
    "CVXPY + SCS": tolerance_ladder(
        partial(through_cvxpy, solver="SCS"),
        *({"eps_abs": eps, "eps_rel": eps} for eps in (1e-3, 1e-4, 1e-5, 1e-6, 1e-8)),
    ),
    "CVXPY + CLARABEL": tolerance_ladder(
        partial(through_cvxpy, solver="CLARABEL"),
        *({"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol} for tol in (1e-3, 1e-6, 1e-8)),
    ),
    "CVXPY + MOREAU": tolerance_ladder(
        partial(through_cvxpy_untimed, solver="MOREAU", device="cpu"),
        *({"ipm_settings": {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}} for tol in (1e-3, 1e-6, 1e-8)),
        package="moreau",
    ),
    "CVXPY + SDPA": tolerance_ladder(
        partial(through_cvxpy_untimed, solver="SDPA", numThreads=1),
        *({"epsilonStar": eps, "epsilonDash": eps} for eps in (1e-3, 1e-5, 1e-7)),
        package="sdpa-python",
    ),
    "max-cut, pymanopt": tolerance_ladder(
        on_manifold,
        *({"gradient_norm": norm} for norm in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)),
        takes_l1=False,
        package="pymanopt",
    ),
}

# Skipped because a smaller instance is not solved to the looser goal within its limit (checked by `check_brackets`).
FAILED = {
    ("accelerated FISTA", "planted 2000 x 1000, 1/sqrt(n)"): "planted 500 x 300, 1/sqrt(n)",
    ("accelerated FISTA", "planted 500 x 5000, 1/sqrt(n)"): "planted 500 x 300, 1/sqrt(n)",
    ("accelerated FISTA", "planted 2000 x 1000, 0.03/sqrt(n)"): "planted 1500 x 400, 0.03/sqrt(n)",
    ("FISTA as published", "planted 2000 x 1000, 1/sqrt(n)"): "planted 500 x 300, 1/sqrt(n)",
    ("FISTA as published", "planted 500 x 5000, 1/sqrt(n)"): "planted 500 x 300, 1/sqrt(n)",
    ("FISTA as published", "planted 2000 x 1000, 0.03/sqrt(n)"): "planted 1500 x 400, 0.03/sqrt(n)",
    ("FISTA as published", "planted 1000000 x 50, 0.001"): "planted 100000 x 50, 0.001",
    ("FISTA as published", "planted 1000000 x 50, 0"): "planted 1000 x 50, 0",
}
