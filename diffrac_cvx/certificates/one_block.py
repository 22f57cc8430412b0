"""Lower bounds on (15) with V as one block: a certified t for dense multipliers."""

from collections.abc import Callable, Iterable
from contextlib import suppress

import numpy as np

from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import bound_at, least_certified_t, project_dual
from diffrac_cvx.certificates.search import best_combination, top_eigenvalue
from diffrac_cvx.machine.deadlines import EarlyExitError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import symmetric, times
from diffrac_cvx.points.ranges import are_finite, is_out_of_range
from diffrac_cvx.problem.direction_problem import DirectionProblem


def best_bound(
    problem: DirectionProblem,
    weights: Iterable[tuple[Array, float]],
    multipliers: Callable[[Array], Iterable[Array | None]],
) -> float:
    """Return the best lower bound at these weights u, with mean(1/u), and multipliers from M, at least 0.

    A search for multipliers stops if it leaves the range of double precision, as with nearly collinear columns.  At a
    deadline the best bound so far is returned.
    """
    lower = 0.0
    with suppress(EarlyExitError):  # the caller stops at its next deadline check
        for u, inverse_mean in weights:
            M = problem.X.weighted_gram(u)
            # With outlying rows, products of whitened rows are more accurate than those of M with W.
            whitened = M if problem.basis is not None else problem.Z.weighted_gram(u)
            try:
                for C in multipliers(M):
                    lower = max(lower, bound_at(min_ratio(problem, u, M, C, whitened), inverse_mean))
            except (ArithmeticError, ValueError) as error:
                if not is_out_of_range(error):
                    raise
    return float(lower)


def min_ratio(problem: DirectionProblem, u: Array, M: Array, C: Array | None, whitened: Array | None = None) -> float:
    """Return a certified t with M <= t (A + C + Diag(c)^2), with C shrunk until the right side is positive definite.

    M is the weighted Gram matrix at weights u of the rows, 0 for zero rows; whitened, if given, that of whitened rows.
    """
    if not M.size or not are_finite(M):
        return np.inf if M.size else 0.0
    blocked, M, W = block_problem(problem, np.arange(len(problem.c))), symmetric(M), problem.W
    if whitened is None:
        whitened = M if problem.basis is not None else times(W.T, times(M, W))
    whitened = symmetric(whitened)
    if C is None:
        return least_certified_t(blocked, u, M, None, top_eigenvalue(whitened), 1.0)
    C = project_dual(problem, C)
    found = best_combination(whitened, symmetric(times(W.T, times(C, W))))
    return least_certified_t(blocked, u, M, found.weight * C, found.t, found.min_eigenvalue)


def lower_bound(problem: DirectionProblem, u: Array, inverse_mean: float, C: Array | None) -> float:
    """Return 1 - t mean(1/u), for weights u of the rows, 0 for zero rows, and mean(1/u)."""
    return bound_at(min_ratio(problem, u, problem.X.weighted_gram(u), C), inverse_mean)
