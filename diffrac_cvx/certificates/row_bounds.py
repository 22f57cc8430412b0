"""Brackets from one pass over many rows: sums that do not grow with their number prove both sides."""

from functools import partial
from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.direction_bounds import (
    OF_MEANS,
    Dual,
    bound_at,
    candidate_matrices,
    clip_to_box,
    closer_to_feasible,
    largest_ratio,
    lower_bound,
    skip_zero_rows,
)
from diffrac_cvx.machine import time_budget
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import is_sparse
from diffrac_cvx.points.linear_algebra import row_products, symmetric
from diffrac_cvx.points.streamed import Poll, StreamedRows
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.problem.result import Bracket

FLOORS = (1e-12, 1e-4, 1e-2)  # of the mean energy, below which u = 1/sqrt(q) does not grow


def rows_of(problem: DirectionProblem) -> StreamedRows:
    """Return the rows of a problem with many."""
    assert isinstance(problem.X, StreamedRows)  # only such problems come here
    return problem.X


class Pass(NamedTuple):
    """What one pass over all rows gives, at a factor at its best scale.

    Attributes
    ----------
    point : Scaled
        The factor, the objective, and the energies.
    C : (D, D) array, or None
        The multiplier.
    floor : float
        The smallest energy used in u = 1/sqrt(max(q, floor)).
    M : (D, D) array
        X' Diag(u) X / n.
    bounds : Bracket
        Proved, with the multiplier given.
    """

    point: Scaled
    C: Array | None
    floor: float
    M: Array
    bounds: Bracket


class Sums(NamedTuple):
    """Sums over rows: for u = 1/sqrt(max(q, floor)) at several floors, X'Diag(u)X and 1/u; sqrt(q), and q."""

    moments: Array
    inverses: Array
    roots: float
    squares: float


def sum_over_rows(X: StreamedRows, U: Array, floors: Array, poll: Poll) -> Sums:
    """Return the sums over all rows, in one pass.

    Parts of the rows are read by threads of their own, each with products of one thread: that is quicker by nearly the
    number of threads, where products of several threads gain little on blocks that fit the cache, and lose very much
    where another process has the core.
    """
    T = X.transform
    sums = Sums(*X.in_centred.total(sum_over_part, T @ U, floors, poll=poll))
    return sums._replace(moments=np.stack([T.T @ M @ T for M in sums.moments]))


def sum_over_part(part: StreamedRows, poll: Poll, TU: Array, floors: Array) -> Sums:
    """Return the sums over the centred rows of a part.

    The few rows with small energies, whose u differ from floor to floor, are added for each floor.
    """
    size, small_at = len(TU), floors[-1]
    moments, inverses, every_root, every_square = np.zeros((len(floors), size, size)), np.zeros(len(floors)), 0.0, 0.0
    for block in part.centred_blocks():
        poll()
        XU = block @ TU
        q = row_products(XU, XU)
        small = q < small_at
        roots = np.sqrt(q)
        every_root += float(roots.sum())
        every_square += float(q.sum())
        roots[small] = 1.0
        moments += block.T @ (block * np.where(small, 0.0, 1.0 / roots)[:, None])
        inverses += np.sum(np.where(small, 0.0, roots))
        if not small.any():
            continue
        few, low = block[small], q[small]
        nonzero = few.any(axis=1)  # a row of zeros has no part in X'Diag(u)X, whatever its u: 1/u = 0 there
        for i, floor in enumerate(floors):
            roots = np.sqrt(np.maximum(low, floor))
            moments[i] += few.T @ (few / roots[:, None])
            inverses[i] += np.sum(roots[nonzero])
    return Sums(moments, inverses, every_root, every_square)


def look(
    problem: DirectionProblem, U: Array, C: Array | None, poll: Poll = time_budget.poll, guess: bool = False
) -> Pass:
    """Return what one pass over all rows proves and gives at a factor.

    With `guess` the multipliers tried are those of `bracket`, else the one given and that moved closer to feasible.
    """
    n = len(problem.X)
    floors = np.array(FLOORS) * max(float(np.sum(U * (problem.A @ U))), 1e-300)  # of the mean energy, or a little more
    sums = sum_over_rows(rows_of(problem), U, floors, poll)
    gain, cost = sums.roots / n, problem.cost(U, np.asarray(sums.squares / n))
    point = problem.scaled(U, gain, cost)
    multiple = gain / cost if point.value < 1.0 else 1.0
    moments = [symmetric(moment) / (n * multiple) for moment in sums.moments]
    M, lower = moments[0], -np.inf
    solver = [C] if C is None else [C, closer_to_feasible(problem, M, C)]
    for i in range(len(floors)) if np.ptp(sums.inverses) > 0.0 else range(1):
        tried = candidate_matrices(problem, point.U, partial(moments.__getitem__, i), C) if guess else solver
        t = min(ratio(problem, sums.moments[i] / n, candidate) for candidate in tried)
        lower = max(lower, bound_at(t, sums.inverses[i] / n, OF_MEANS + rows_of(problem).summands))
    bounds = Bracket(float(max(lower, 0.0)), float(point.value))
    return Pass(point, C, floors[0] * multiple**2, M, bounds)


def bracket_rows(problem: DirectionProblem, U: Array, dual: Dual | None = None) -> Bracket:
    """Bracket the optimum of (15) from a factor, one pass over many rows, and the multipliers of a result."""
    C = None if dual is None or dual.C is None or is_sparse(dual.C) else clip_to_box(problem, dual.C)
    found = look(problem, U, C, guess=True)
    lower = found.bounds.lower
    if dual is not None and dual.u is not None:
        u, inverse_mean = skip_zero_rows(problem, dual.u)
        lower = max(lower, lower_bound(problem, u, inverse_mean, C))
    return Bracket(float(max(lower, 0.0)), found.bounds.upper)


def ratio(problem: DirectionProblem, M: Array, C: Array | None) -> float:
    """Return t with M <= t (A + C + Diag(c)^2); rounding is covered."""
    W = problem.W
    if W.size == 0:
        return 0.0
    C = None if C is None or not problem.has_l1 else clip_to_box(problem, C)
    Mz = symmetric(W.T @ M @ W)
    return largest_ratio(problem, Mz, C, problem.moment_error(Mz, 0.0, float(np.trace(M))))
