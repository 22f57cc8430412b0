"""FISTA on the smoothed dual of Eq. (21), to a certified gap of (15): published and accelerated variants."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import one_of, positive
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.factors import is_sparse
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.solvers.driver import solve_by_iterates
from diffrac_cvx.solvers.smoothed_dual import accelerated, published
from diffrac_cvx.solvers.stopping import Callback, Iterate, Stopping, WarmStart

FISTA_MATRICES = 16  # matrices of the size of V held at once


def fista(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    variant: str = "accelerated",
    tol: float = 1e-3,
    epsilon: float | None = None,
    max_iter: int = 20_000,
    time_limit: float | None = None,
    callback: Callback | None = None,
    start: Result | npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> Result:
    r"""Solve problem (15) by FISTA on the smoothed dual of (21), in O(nd^2 + d^3) per iteration.

    .. math::
        \min_{u > 0,\ |C_{ij}| \le c_i c_j}\ \tfrac{1}{2n} \sum_i \tfrac1{u_i}
        + \phi^\varepsilon\big(A^{-1/2} (\tfrac{1}{2n} X^\top \mathrm{Diag}(u) X - C) A^{-1/2}\big)

    Source: section 6 and appendix G.  (21) differs from (15) if c > 0: both variants therefore rescale c between
    iterations, so that they converge to a solution of (15), and stop on its certified gap.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.
    penalty : Penalty
        Ridge weights a and l1 weights c; no penalty by default.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    variant : {"accelerated", "published"}
        "published" is the paper's algorithm, with fixed epsilon and fixed step 1/L.  "accelerated" (default)
        decreases epsilon in stages, adapts separate step sizes for u and C, restarts the momentum, and extrapolates
        the stages to epsilon = 0.
    tol : float
        Certified gap ``upper - lower`` of (15) at which to stop; default 1e-3.  Objective values lie in [0, 1].
    epsilon : float, optional
        Smoothing parameter of the published variant; by default tol / (2 log d), about the largest that can reach
        tol.  If given, the paper's rule also stops the solver: a gap of (21) of at most epsilon log d.
    max_iter : int
        Maximum number of iterations, each with one eigendecomposition of size d (two if accelerated).
    time_limit : float, optional
        Time limit in seconds, kept to within about a second: no eigendecomposition starts that would exceed it by much.
    callback : callable, optional
        Called with each `Progress`; return True to stop the solver.
    start : Result or (d, d) array, optional
        Matrix of directions for a warm start; the solution returned is never worse.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels of some points; see `low_rank`.

    Returns
    -------
    Result
        Solution with certified bounds, valid at every status.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    ResourceError
        If matrices of the size of V would not fit in memory; raised before they are allocated.
    """
    penalty = resolve_penalty(penalty, lam, ridge)
    one_of(variant, "variant", ("accelerated", "published"))
    if epsilon is not None and variant != "published":
        raise ParameterError("epsilon is set automatically by variant='accelerated'; pass it with variant='published'")
    if epsilon is not None:
        positive(epsilon, "epsilon")
    stopping = Stopping(tol, max_iter, time_limit, callback)

    def iterates(problem: DirectionProblem, start: WarmStart) -> Iterator[Iterate]:
        size = problem.X.shape[1]
        require_memory(FISTA_MATRICES * 8.0 * size**2, f"fista with {size} features", "use low_rank")
        U, C = start.as_dense
        if U is not None and is_sparse(start.U):
            yield Iterate(U, 0, DualPoint(C=C))
        if variant == "accelerated":
            yield from accelerated.accelerated_iterates(problem, U, C, stopping.max_iter, tol)
            return
        eps = tol / (2 * max(np.log(problem.W.shape[1]), 1.0)) if epsilon is None else epsilon
        yield from published.published_iterates(
            problem, eps, U, C, stopping.max_iter, stop_by_paper_rule=epsilon is not None
        )

    exhausted = Status.SMOOTHED_GAP if variant == "published" else Status.STALLED
    name = f"fista ({variant})"
    with in_range():
        return solve_by_iterates(
            X,
            nu,
            penalty,
            iterates,
            stopping,
            name,
            start=start,
            exhausted=exhausted,
            sample_weight=sample_weight,
            constraints=constraints,
        )
