"""What proves a lower bound of (15), rounding included: with the sums of `points`, the code that a bracket rests on.

For u > 0 and symmetric C in its box, |C_jk| <= c_j c_k and C_jj = 0, let M = X' Diag(u) X / n and t be a number with
M <= t (A + C + Diag(c)^2).  Then 2 sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u).  Whoever calls may choose u,
C and t as they like: what is returned is proved, or nothing is.  `search` chooses them, in plain floating point.

Matrices are in coordinates W in which A + Diag(c)^2 is the identity, up to what `DirectionProblem.rounding` says.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT, round_up, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, symmetric, times
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem, largest_penalty

LARGEST = 1e100  # t beyond proves nothing
TRIES = 4  # of larger multiples, where a factorisation fails
VALUES = 1e-9  # rounding of a value, and more
OF_MEANS = 400  # roundings that a mean by NumPy's pairwise sums may have


class Inexact(NamedTuple):
    """A symmetric matrix in the coordinates W, and how far it may be from the exact one, in the spectral norm."""

    matrix: Array
    error: float


def moment_at(problem: DirectionProblem, u: Array) -> Inexact:
    """Return the moment X' Diag(u) X / n at weights u of the rows, 0 for zero rows."""
    M = problem.Z.moment(u)
    return Inexact(symmetric(M), problem.moment_error(M, problem.largest_weight(u)))


def moment_of_sums(problem: DirectionProblem, M: Array) -> Inexact:
    """Return a moment that was summed before it was whitened."""
    Mz = symmetric(problem.W.T @ M @ problem.W)
    return Inexact(Mz, problem.moment_error(Mz, 0.0, float(np.trace(M))))


def multiplier_in_box(problem: DirectionProblem, C: Array) -> Inexact:
    """Return a multiplier, clipped to its box."""
    C, W = in_dual_set(problem, C), problem.W
    error = sum_error(2 * len(C) + 8) * float(np.sum(W**2) * np.linalg.norm(C))
    return Inexact(symmetric(times(W.T, times(C, W))), error)


def prove(
    problem: DirectionProblem, moment: Inexact, multiplier: Inexact | None, share: float, t: float, least: float
) -> float:
    """Return a t, a little above the one given, with M <= t (A + share C + Diag(c)^2), proved; infinity if none is.

    Any share in [0, 1] of a multiplier is in the box.  least is about the smallest eigenvalue of the right side.
    """
    right, off = np.eye(len(moment.matrix)), problem.rounding.right_error
    if multiplier is not None:
        right, off = right + share * multiplier.matrix, round_up(off + multiplier.error)
    return proved_ratio(Pencil(moment.matrix, right, moment.error, off), t, least)


def prove_shift(problem: DirectionProblem, half: Array, shrunk: Array, off_M: float, theta: float) -> float:
    """Return a number, a little above theta, with M/2 - C <= theta A, proved; infinity if none is.

    Half of the moment is off by off_M at most in the coordinates W, in which A is 1 at most; C has Diag(c)^2 on its
    diagonal.
    """
    W = problem.W
    A, left = symmetric(W.T @ problem.A @ W), symmetric(W.T @ (half - shrunk) @ W)
    size = float(np.sum(W**2) * (np.linalg.norm(shrunk) + np.linalg.norm(half)))
    off = off_M + sum_error(4 * len(shrunk) + 16) * size
    return proved_multiple(Pencil(left, A, off, problem.rounding.right_error), theta, 1.0, 3 * TRIES)


def bound_at(t: float, inverse_mean: float, roundings: int = OF_MEANS, spent: float = 0.0) -> float:
    """Return a lower bound of 1 - t inverse_mean - spent; the mean is of positive numbers, with so many roundings."""
    if not np.isfinite(t):  # whatever the mean is, also 0
        return -np.inf
    product = round_up(round_up(t * inverse_mean, roundings) + spent, 1 if spent else 0)
    return 1.0 - product - 2 * UNIT if np.isfinite(product) else -np.inf


def bounds_of_groups(problem: DirectionProblem, M: Array, sums: Array, top: Array) -> Array:
    """Return lower bounds of Eq. (9) without an l1 part, where signed sums of points take the place of points.

    With r_g the sum over a group g of s_i p_i z_i, in whitened coordinates, the cost of labels that obey the groups is
    at least 1 - t sum_g 1/u_g where M = sum_g u_g r_g r_g' <= t A, for any u_g > 0.

    The problem is that of the points, whitened.  M, (k, D, D), are the moments of k groupings, their rows r_g summed of
    the problem's in any order; sums, (k,), are sum_g 1/u_g, and top, (k,), the largest u_g times the share of group g.
    """
    size, n = M.shape[1], len(problem.X)
    if not are_finite(M, sums, top):
        return np.full(len(M), -np.inf)
    exact = problem.rounding
    # M <= top A whatever the groups are.  A row summed of k points is off by sum_error(k) times its terms' sizes, which
    # by Cauchy and Schwarz are at most the root of the group's share times tr A <= D (1 + right_error).
    off, mass = top**0.5 * (exact.data_error + sum_error(n + 8) * (size * (1.0 + exact.right_error)) ** 0.5), trace(M)
    pencil = Pencil(M, np.eye(size), sum_error(n + 16) * mass + (2.0 * mass**0.5 + off) * off, exact.right_error)
    t, usable = np.linalg.eigvalsh(M)[:, -1], 1.0 - exact.right_error
    larger = t + 4.0 * pencil.lost(t) / usable if usable > 0.0 else np.full(len(t), np.inf)
    lost = pencil.lost(larger)
    S = (larger - lost)[:, None, None] * np.eye(size) - M
    # Outside the span of the whitened coordinates the matrices are larger times the identity and 0, up to what is lost.
    holds = (larger >= lost) & (usable > 0.0)
    proved = holds if succeeds(S) else holds & np.array([succeeds(matrix) for matrix in S])
    return np.array([bound_at(a, b, n + 8) if ok else -np.inf for a, b, ok in zip(larger, sums, proved, strict=True)])


def bound_normalized(inverse_mean: float, theta: float) -> float:
    """Return a lower bound of (21), -(mean(1/u)/2 + theta), where M/2 - C <= theta A."""
    mean = round_up(inverse_mean / 2, OF_MEANS)
    return -round_up(mean + max(theta, 0.0), 4) - min(theta, 0.0) * (1 - 4 * UNIT)


def value_normalized(problem: DirectionProblem, U: Array, l1: float) -> float:
    """Return an upper bound of the objective of (21) at a factor with tr AUU' = 1 and this l1 part."""
    roundings = sum_error(4 * len(problem.X) + 4 * len(U)) + 2.0 * problem.rounding.data_error
    return l1 - problem.gain(U) + round_up(roundings * (1.0 + l1))


def cost_of_excess(excess: float, upper: float) -> float:
    """Return how far the optimum, `upper` at most, may be below that of penalties 1 + excess times as large.

    At an optimum of value v the ridge and the l1 part together are at most v (1 - v).
    """
    return round_up((excess + 16.0 * UNIT) * largest_penalty(upper + VALUES), 8) if excess else 0.0


def in_dual_set(problem: DirectionProblem, C: Array) -> Array:
    """Return C in the dual set: outside it proves nothing, and a solver's multiplier may be a little outside."""
    C = problem.coupling.project(symmetric(C))
    # Along directions that the coordinates W leave out, the right side of a bound is C alone: it has to be 0 there, and
    # it is where C is 0 on the columns that nothing else penalises, which alone have a part in them.
    if problem.structure.nonnegative is not None and problem.W.shape[1] < len(C):
        loose = (problem.a == 0.0) & (problem.c == 0.0)
        C[loose], C[:, loose] = 0.0, 0.0
    return C


def skip_zero_rows(problem: DirectionProblem, u: Array) -> tuple[Array, float]:
    """Return u, 0 for zero rows, and mean(1/u) with 1/u = 0 for zero rows: X' Diag(u) X does not depend on theirs."""
    return np.where(problem.zero_rows, 0.0, u), problem.mean_inverse(u)


@dataclass(frozen=True, eq=False)
class Pencil:
    """Two symmetric matrices, of which M <= t right is to be proved, and how far they may be from those meant.

    There may be several M for one right side, (k, D, D), with as many errors.
    """

    M: Array
    right: Array
    off_M: Any  # in the spectral norm, as right_error is
    right_error: float

    @cached_property
    def roundings(self) -> list[Any]:
        """What forming the difference changes, by the norms of M and right, and a factorisation, by their traces."""
        factorised = sum_error(2 * len(self.right) + 8)
        return [sum_error(4) * np.linalg.norm(S, axis=(-2, -1)) + factorised * trace(S) for S in (self.M, self.right)]

    def lost(self, t: Any) -> Any:
        """Return by how much t right - M, as it is computed, has to be positive."""
        size, (of_M, of_right) = np.abs(t), self.roundings
        return round_up(size * self.right_error + self.off_M + size * of_right + of_M, 8)


def trace(S: Array) -> Any:
    """Return the sum of the absolute values on the diagonal, of each matrix."""
    return np.abs(np.diagonal(S, axis1=-2, axis2=-1)).sum(axis=-1)


def proved_multiple(pencil: Pencil, t: float, usable: float, tries: int) -> float:
    """Return a t, a little above the one given, for which t right - M is proved positive semidefinite; inf if none is.

    By Cholesky factorisations: t is raised by what is lost over what is usable of the right side, then by twice that.
    """
    places = np.diag_indices(len(pencil.right))
    for attempt in range(tries if np.isfinite(t) else 0):
        larger = float(t + 2.0 ** (attempt + 1) * pencil.lost(t) / usable)
        S = larger * pencil.right - pencil.M
        S[places] -= pencil.lost(larger)
        if succeeds(S):
            return larger
    return float("inf")


def proved_ratio(pencil: Pencil, t: float, least: float) -> float:
    """Return a t for which M <= t right is proved, a little above the t given.

    About the largest generalised eigenvalue is given as t, and about the smallest eigenvalue of the right side as
    least.  Infinity is returned where rounding hides that one, or no factorisation succeeds.
    """
    if len(pencil.M) == 0:
        return 0.0
    usable = least - pencil.right_error
    found = proved_multiple(pencil, t, usable, TRIES) if t <= LARGEST and usable > 0.0 else float("inf")
    # Outside the span of whitened coordinates the matrices are t times the identity and 0, up to what is lost.
    return found if np.isinf(found) or found >= pencil.lost(found) else float("inf")


def is_positive(S: Array, off: float) -> bool:
    """Whether every matrix at most so far from a symmetric one, in the spectral norm, is positive definite."""
    shift = round_up(off + sum_error(2 * len(S) + 8) * trace(S))
    return succeeds(S - shift * np.eye(len(S)))


def succeeds(S: Array) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix does not break down; LAPACK's may go on with NaN."""
    if not are_finite(S):
        return False
    try:
        return are_finite(cholesky(S))
    except np.linalg.LinAlgError:
        return False
