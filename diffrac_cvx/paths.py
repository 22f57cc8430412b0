"""Solve along a grid of nu, lambda or alpha, each solution with its proved bracket; and the duality of alpha and nu."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates import certify_y
from diffrac_cvx.inputs import Array, in_unit_interval
from diffrac_cvx.path_records import (
    Duality,
    Keeper,
    Path,
    Rounding,
    as_grid,
    imbalance_of,
    leading_direction,
    not_negative,
)
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.relaxations import constrained_alpha
from diffrac_cvx.result import Result, Status
from diffrac_cvx.rounding import kmeans_centered
from diffrac_cvx.solvers import low_rank, solve

__all__ = ["Duality", "Path", "alpha_path", "duality", "lambda_path", "leading_direction", "nu_path"]

NO_PENALTY = Penalty()


def nu_path(
    X: npt.ArrayLike,
    nus: npt.ArrayLike,
    penalty: Penalty = NO_PENALTY,
    *,
    y: npt.ArrayLike | None = None,
    rounding: Rounding = kmeans_centered,
    **options: Any,
) -> Path:
    """Solve problem (15) along weights of the imbalance, by `low_rank`, from the largest, each started from the last.

    Source: Eq. (8), (14), section 2.3; Figure 2.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nus : (m,) array
        Weights of the imbalance, in [0, 1]; they come back increasing.
    penalty : Penalty
        Weights a and c.
    y : (n,) array, optional
        Labels in {-1, +1}, to judge the rounded solutions by.
    rounding : callable
        From a factor F to labels, used when y is given.
    **options
        Passed to `low_rank`: tol, max_iter, time_limit.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    grid = np.sort(as_grid(nus, "nus", in_unit_interval))
    keep = Keeper(X, y, rounding)
    results = warm_started(grid[::-1], lambda nu, start: low_rank(keep.X, nu, penalty, start=start, **options))
    return keep.path("nu", grid, [keep.row(result) for result in results][::-1])


def lambda_path(
    X: npt.ArrayLike,
    lams: npt.ArrayLike,
    *,
    nu: float = 1.0,
    a: float | npt.ArrayLike = 0.0,
    y: npt.ArrayLike | None = None,
    rounding: Rounding = kmeans_centered,
    **options: Any,
) -> Path:
    """Solve problem (15) along weights of the l1 part, by `low_rank`, from the smallest, each started from the last.

    Source: Eq. (15), (20), section 3; lambda is c_i^2 for all i.  Upwards takes fewer steps than downwards: the
    support shrinks and the start holds it.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.  The l1 norm depends on the units of the columns.
    lams : (m,) array
        Weights of the squared l1 norm, not negative; they come back increasing.
    nu : float
        Weight of the imbalance, in [0, 1].
    a : float or (d,) array
        Ridge.
    y : (n,) array, optional
        Labels in {-1, +1}, to judge the rounded solutions by.
    rounding : callable
        From a factor F to labels, used when y is given.
    **options
        Passed to `low_rank`: tol, max_iter, time_limit.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    grid = np.sort(as_grid(lams, "lams", not_negative))
    keep = Keeper(X, y, rounding)
    results = warm_started(grid, lambda lam, start: low_rank(keep.X, nu, Penalty.l1(lam, a), start=start, **options))
    return keep.path("lambda", grid, [keep.row(result) for result in results])


def alpha_path(
    X: npt.ArrayLike,
    alphas: npt.ArrayLike,
    *,
    y: npt.ArrayLike | None = None,
    rounding: Rounding = kmeans_centered,
    solver: str | None = None,
    **options: Any,
) -> Path:
    """Solve problem (7) along imbalances, through CVXPY, compiled once; the variable is n x n.

    The directions are those of V = X^+ Y X^+'.

    Source: Eq. (7), section 2.2; Figure 2.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    alphas : (m,) array
        Imbalances (1'y/n)^2, in [0, 1]; they come back increasing.
    y : (n,) array, optional
        Labels in {-1, +1}, to judge the rounded solutions by.
    rounding : callable
        From a factor F to labels, used when y is given.
    solver : str, optional
        "CLARABEL", "SCS" or another, as for `solve`.
    **options
        Passed to `solve`: tol, max_iter, time_limit.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    grid = np.sort(as_grid(alphas, "alphas", in_unit_interval))
    keep = Keeper(X, y, rounding)
    relaxation = constrained_alpha(keep.X, grid[0])
    rows = [keep.row(solve(relaxation.at(alpha=alpha), solver, **options)) for alpha in grid]
    return keep.path("alpha", grid, rows)


def duality(X: npt.ArrayLike, nus: npt.ArrayLike, *, solver: str | None = None, tol: float = 1e-6) -> Duality:
    r"""Solve (8) along nu, and bracket (7) at the imbalance of each solution.

    .. math::
        p(\nu) = \min_{0 \le \alpha \le 1}\ q(\alpha) + \nu \alpha

    Source: Eq. (7) and (8), sections 2.2 and 2.3.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nus : (m,) array
        Weights of the imbalance, in [0, 1]; they come back increasing.
    solver : str, optional
        A solver of CVXPY that solves (7) anew, with an n x n variable.  By default the bracket of (7) is what
        `certify_y` proves at the solution of (8), in O(n d^2).
    tol : float
        Proved gap asked of the solvers.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    ResourceError
        If a solver is named and an n x n matrix would not fit in memory.
    """
    grid = np.sort(as_grid(nus, "nus", in_unit_interval))
    keep = Keeper(X)
    pairs = [
        (keep.row(result), keep.row(at_its_imbalance(keep.X, result, solver, tol)))
        for result in warm_started(grid[::-1], lambda nu, start: low_rank(keep.X, nu, start=start, tol=tol))
    ]
    penalised, constrained = zip(*pairs[::-1], strict=True)
    first = keep.path("nu", grid, penalised)
    return Duality(first, keep.path("alpha", first.imbalance, constrained))


def at_its_imbalance(X: Array, penalised: Result, solver: str | None, tol: float) -> Result:
    """Return a solution of (7) at the imbalance of a solution of (8): that solution itself, or a solver's."""
    alpha = imbalance_of(penalised.F)
    if solver is not None:
        return solve(constrained_alpha(X, alpha), solver, tol=tol)
    started = time.perf_counter()
    lower, upper = certify_y(X, penalised.F, alpha=alpha)
    seconds = time.perf_counter() - started
    return replace(penalised, value=upper, lower=lower, upper=upper, seconds=seconds, solver="certify_y")


def warm_started(grid: Array, solve_at: Callable[[float, Result | None], Result]) -> Iterator[Result]:
    """Solve at one parameter after the other, each started from the one before where that was computed."""
    start = None
    for parameter in grid:
        result = solve_at(float(parameter), start)
        yield result
        start = start if result.status is Status.CLOSED_FORM else result
