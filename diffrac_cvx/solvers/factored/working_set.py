"""Solve a sparse problem on few coordinates, certify on all, add the coordinates that violate the most."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import Dual, bracket
from diffrac_cvx.machine import time_budget
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import psd_factor, times
from diffrac_cvx.points.points import Poll
from diffrac_cvx.problem.direction_problem import DirectionProblem, gains_alone
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.stopping import Iterate

START = 8
ROUNDS = 45  # certified points on one working set, before it is enlarged even if the gap is not reached

Indices = npt.NDArray[np.intp]
Warm = tuple[Array | None, Array | None]  # U and C to start from


def most_promising(problem: DirectionProblem, size: int) -> Indices:
    """Return the coordinates that are best when used alone, by g_j^2 / (A_jj + c_j^2), and all without an l1 weight."""
    alone = np.where(problem.c == 0.0, np.inf, gains_alone(problem))
    size = max(size, int(np.sum(problem.c == 0.0)))
    return np.sort(np.argsort(-alone, kind="stable")[:size])


def extend_multiplier(problem: DirectionProblem, q: Array, chosen: Indices, C: Array | None) -> tuple[Array, Array]:
    """Return C on all coordinates, M - A clipped to the box outside the set, and |M - A|_ij - c_i c_j."""
    excess = problem.X.moment(problem.inverse_roots(q)) - problem.A
    full = np.clip(excess, -problem.box, problem.box)
    if C is not None:
        full[np.ix_(chosen, chosen)] = C
    return full, np.abs(excess) - np.outer(problem.c, problem.c)


def iterates(
    problem: DirectionProblem,
    tol: float,
    max_iter: int,
    U: Array | None = None,
    C: Array | None = None,
    poll: Poll = time_budget.poll,
) -> Iterator[Iterate]:
    """Yield points of the whole problem from doubling working sets, until half of the coordinates should enter."""
    size = problem.X.shape[1]
    warm: Warm = (None, None) if U is None else (with_small_entries(U, np.arange(size)), C)
    chosen = most_promising(problem, START) if U is None else support(U)
    done, n_entering, target = 0, 0, tol / 4
    while 2 * max(len(chosen), n_entering) < size and done < max_iter:
        small = solve_on(problem, chosen, target, max_iter - done, (U, C), poll)
        done += small.n_iter
        U = lift(small.U, chosen, size)
        # The multiplier belongs to the energies at U, and the value to the point that was made of it.
        q = problem.best_scale(U).q
        C, violation = extend_multiplier(problem, q, chosen, small.dual.C if small.dual else None)
        point = problem.best_scale(U if small.scaled is None else lift(dense(small.scaled.U), chosen, size))
        yield Iterate(U, done, Dual(u=problem.inverse_roots(q), C=C), point)
        score = violation.max(axis=1)
        score[chosen] = -np.inf
        n_entering = int(np.sum(score > 0.1 * problem.box.max()))
        if np.all(score <= 1e-4 * problem.box.max()) and target > 5e-3 * tol:
            target *= 0.1  # no coordinate should enter: what is missing is accuracy on the set
            continue
        entering = np.argsort(-score, kind="stable")[: len(chosen)]
        chosen = np.sort(np.append(chosen, entering))
        U = with_small_entries(U, chosen)
    for iterate in augmented_lagrangian.iterates(problem, max_iter - done, *warm, poll):
        yield iterate._replace(n_iter=iterate.n_iter + done)


def solve_on(
    problem: DirectionProblem, chosen: Indices, target: float, max_iter: int, warm: Warm, poll: Poll
) -> Iterate:
    """Return the iterate of the problem on the chosen coordinates after a few rounds, or at its target gap."""
    small = problem.restrict(chosen)
    U, C = warm
    U = None if U is None else U[chosen]
    C = None if C is None else C[np.ix_(chosen, chosen)]
    for iterate in islice(augmented_lagrangian.iterates(small, max_iter, U, C, poll), ROUNDS):
        bounds = iterate.bounds or bracket(small, iterate.scaled or small.best_scale(iterate.U), iterate.dual)
        if bounds.gap <= target:
            break
    return iterate


def lift(U: Array, chosen: Indices, size: int) -> Array:
    """Return the factor on all coordinates, zero outside the chosen ones."""
    full = np.zeros((size, U.shape[1]))
    full[chosen] = U
    return full


def support(U: Array) -> Indices:
    """Return the coordinates on which a factor is not zero."""
    largest = np.abs(U).max(axis=1)
    return np.flatnonzero(largest > 1e-6 * largest.max())


def with_small_entries(U: Array, chosen: Indices) -> Array:
    """Return U with a small full-rank part on the chosen coordinates, so that every one of them can enter."""
    small = 1e-2 * np.sqrt(np.sum(U**2)) / len(chosen)
    wide = np.column_stack([U, lift(small * np.eye(len(chosen)), chosen, len(U))])
    return wide if wide.shape[1] <= len(U) else psd_factor(times(wide, wide.T), rtol=1e-14)
