"""The low-rank solver: V = UU', an augmented Lagrangian, a working set, and a proved gap."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_problem import direction_problem
from diffrac_cvx.inputs import Array, as_data, in_unit_interval
from diffrac_cvx.linalg import one_thread
from diffrac_cvx.penalty import NO_PENALTY, Penalty
from diffrac_cvx.result import Result
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored import working_set as growing
from diffrac_cvx.solvers.stopping import Callback, Iterate, Stopping, closed_form, run, starting_point

WORKING_SET_FROM = 24  # coordinates; below, the whole problem is as quick


def low_rank(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    tol: float = 1e-5,
    max_iter: int = 20_000,
    time_limit: float | None = None,
    callback: Callback | None = None,
    start: Result | npt.ArrayLike | None = None,
    working_set: bool = True,
) -> Result:
    r"""Solve problem (15) to a proved gap, in time O(nd^2) a step, memory O(nd + d^2), on one thread.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

    with V = UU' (Burer and Monteiro), U started at full rank and reduced as it converges.  The l1 part is an
    augmented Lagrangian, minimised over U by L-BFGS; where c > 0 and d is large, it is solved on a growing set of
    coordinates.  Without l1 part the data are whitened first.  The bracket is that of `certify_v`, so the
    non-convexity of the factored problem cannot produce a wrong answer, only a gap that does not close.

    Source: Eq. (12), (14), (15), (20); the method is not the paper's.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    tol : float
        Proved gap ``upper - lower`` at which to stop; values lie in [0, 1].
    max_iter : int
        L-BFGS steps in all.
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        Called with each `Progress`; a true return value stops the solver.
    start : Result or (d, d) array, optional
        A matrix of directions to start from, such as the solution for a nearby penalty.
    working_set : bool
        Whether a sparse problem may be solved on a few coordinates first.  Where the optimum is not unique that
        favours sparse solutions of low rank; without it the solution is of generic rank, as an interior point is.

    Returns
    -------
    Result

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    data, nu = as_data(X), in_unit_interval(nu, "nu")
    stopping = Stopping(tol, max_iter, time_limit, callback)
    with one_thread():
        return _solve(data, nu, penalty, stopping, start, working_set)


def _solve(
    data: Array,
    nu: float,
    penalty: Penalty,
    stopping: Stopping,
    start: Result | npt.ArrayLike | None,
    working_set: bool,
) -> Result:
    answer = closed_form(data, nu, stopping, "low_rank")
    if answer is not None:
        return answer
    problem = direction_problem(data, nu, penalty)
    first = starting_point(problem, start)
    U, C = first
    iterates: Iterable[Iterate]
    if working_set and problem.has_l1 and problem.X.shape[1] >= WORKING_SET_FROM:
        iterates = growing.iterates(problem, stopping.tol, stopping.max_iter, U, C)
    else:
        U = None if U is None else growing.shaken(U, np.arange(len(U)))
        iterates = augmented_lagrangian.iterates(problem, stopping.max_iter, U, C)
    return run(problem, first, iterates, stopping, "low_rank")
