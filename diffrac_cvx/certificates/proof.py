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
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, symmetric, times
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem, max_penalty

MAX_T = 1e100  # t beyond proves nothing
MAX_TRIES = 4  # of larger multiples, where a factorisation fails
VALUE_ERROR = 1e-9  # rounding of a value, and more
MEAN_ROUNDINGS = 400  # roundings that a mean by NumPy's pairwise sums may have


class BallMatrix(NamedTuple):
    """A symmetric matrix in the coordinates W, and how far it may be from the exact one, in the spectral norm."""

    midpoint: Array
    radius: float


def weighted_gram_at(problem: DirectionProblem, u: Array) -> BallMatrix:
    """Return the moment X' Diag(u) X / n at weights u of the rows, 0 for zero rows."""
    M = problem.Z.weighted_gram(u)
    return BallMatrix(symmetric(M), problem.gram_error(M, problem.largest_weight(u)))


def whitened_gram(problem: DirectionProblem, M: Array) -> BallMatrix:
    """Return a moment that was summed before it was whitened."""
    Mz = symmetric(problem.W.T @ M @ problem.W)
    return BallMatrix(Mz, problem.gram_error(Mz, 0.0, float(np.trace(M))))


def feasible_multiplier(problem: DirectionProblem, C: Array) -> BallMatrix:
    """Return a multiplier, clipped to its box."""
    C, W = project_dual(problem, C), problem.W
    error = sum_error(2 * len(C) + 8) * float(np.sum(W**2) * np.linalg.norm(C))
    return BallMatrix(symmetric(times(W.T, times(C, W))), error)


def certified_t(
    problem: DirectionProblem,
    gram: BallMatrix,
    multiplier: BallMatrix | None,
    weight: float,
    t: float,
    min_eigenvalue: float,
) -> float:
    """Return a t, a little above the one given, with M <= t (A + share C + Diag(c)^2), proved; infinity if none is.

    Any share in [0, 1] of a multiplier is in the box.  least is about the smallest eigenvalue of the right side.
    """
    right, error = np.eye(len(gram.midpoint)), problem.whitening_error.right_error
    if multiplier is not None:
        right, error = right + weight * multiplier.midpoint, round_up(error + multiplier.radius)
    return certified_ratio(Pencil(gram.midpoint, right, gram.radius, error), t, min_eigenvalue)


def certified_shift(problem: DirectionProblem, half_gram: Array, shrunk: Array, M_error: float, theta: float) -> float:
    """Return a number, a little above theta, with M/2 - C <= theta A, proved; infinity if none is.

    Half of the moment is off by off_M at most in the coordinates W, in which A is 1 at most; C has Diag(c)^2 on its
    diagonal.
    """
    W = problem.W
    A, left = symmetric(W.T @ problem.A @ W), symmetric(W.T @ (half_gram - shrunk) @ W)
    size = float(np.sum(W**2) * (np.linalg.norm(shrunk) + np.linalg.norm(half_gram)))
    error = M_error + sum_error(4 * len(shrunk) + 16) * size
    return certified_multiple(Pencil(left, A, error, problem.whitening_error.right_error), theta, 1.0, 3 * MAX_TRIES)


def bound_at(t: float, inverse_mean: float, n_roundings: int = MEAN_ROUNDINGS, slack_cost: float = 0.0) -> float:
    """Return a lower bound of 1 - t inverse_mean - spent; the mean is of positive numbers, with so many roundings."""
    if not np.isfinite(t):  # whatever the mean is, also 0
        return -np.inf
    product = round_up(round_up(t * inverse_mean, n_roundings) + slack_cost, 1 if slack_cost else 0)
    return 1.0 - product - 2 * UNIT_ROUNDOFF if np.isfinite(product) else -np.inf


def grouped_bounds(problem: DirectionProblem, M: Array, sums: Array, top: Array) -> Array:
    """Return lower bounds of Eq. (9) without an l1 part, where signed sums of points take the place of points.

    With r_g the sum over a group g of s_i p_i z_i, in whitened coordinates, the cost of labels that obey the groups is
    at least 1 - t sum_g 1/u_g where M = sum_g u_g r_g r_g' <= t A, for any u_g > 0.

    The problem is that of the points, whitened.  M, (k, D, D), are the moments of k groupings, their rows r_g summed of
    the problem's in any order; sums, (k,), are sum_g 1/u_g, and top, (k,), the largest u_g times the share of group g.
    """
    size, n = M.shape[1], len(problem.X)
    if not are_finite(M, sums, top):
        return np.full(len(M), -np.inf)
    whitening = problem.whitening_error
    # M <= top A whatever the groups are.  A row summed of k points is off by sum_error(k) times its terms' sizes, which
    # by Cauchy and Schwarz are at most the root of the group's share times tr A <= D (1 + right_error).
    row_error, mass = (
        top**0.5 * (whitening.data_error + sum_error(n + 8) * (size * (1.0 + whitening.right_error)) ** 0.5),
        absolute_trace(M),
    )
    pencil = Pencil(
        M, np.eye(size), sum_error(n + 16) * mass + (2.0 * mass**0.5 + row_error) * row_error, whitening.right_error
    )
    t, usable = np.linalg.eigvalsh(M)[:, -1], 1.0 - whitening.right_error
    larger = t + 4.0 * pencil.error_bound(t) / usable if usable > 0.0 else np.full(len(t), np.inf)
    errors = pencil.error_bound(larger)
    S = (larger - errors)[:, None, None] * np.eye(size) - M
    # Outside the span of the whitened coordinates the matrices are larger times the identity and 0, up to what is lost.
    holds = (larger >= errors) & (usable > 0.0)
    certified = holds if cholesky_succeeds(S) else holds & np.array([cholesky_succeeds(matrix) for matrix in S])
    return np.array(
        [bound_at(a, b, n + 8) if ok else -np.inf for a, b, ok in zip(larger, sums, certified, strict=True)]
    )


def bound_normalized(inverse_mean: float, theta: float) -> float:
    """Return a lower bound of (21), -(mean(1/u)/2 + theta), where M/2 - C <= theta A."""
    mean = round_up(inverse_mean / 2, MEAN_ROUNDINGS)
    return -round_up(mean + max(theta, 0.0), 4) - min(theta, 0.0) * (1 - 4 * UNIT_ROUNDOFF)


def value_normalized(problem: DirectionProblem, U: Array, l1: float) -> float:
    """Return an upper bound of the objective of (21) at a factor with tr AUU' = 1 and this l1 part."""
    relative_error = sum_error(4 * len(problem.X) + 4 * len(U)) + 2.0 * problem.whitening_error.data_error
    return l1 - problem.mean_sqrt(U) + round_up(relative_error * (1.0 + l1))


def inflation_cost(inflation: float, upper: float) -> float:
    """Return how far the optimum, `upper` at most, may be below that of penalties 1 + excess times as large.

    At an optimum of value v the ridge and the l1 part together are at most v (1 - v).
    """
    return round_up((inflation + 16.0 * UNIT_ROUNDOFF) * max_penalty(upper + VALUE_ERROR), 8) if inflation else 0.0


def project_dual(problem: DirectionProblem, C: Array) -> Array:
    """Return C in the dual set: outside it proves nothing, and a solver's multiplier may be a little outside."""
    C = problem.pair_penalty.project_safe(symmetric(C))
    # Along directions that the coordinates W leave out, the right side of a bound is C alone: it has to be 0 there, and
    # it is where C is 0 on the columns that nothing else penalises, which alone have a part in them.
    if problem.structure.nonnegative is not None and problem.W.shape[1] < len(C):
        unpenalized = (problem.a == 0.0) & (problem.c == 0.0)
        C[unpenalized], C[:, unpenalized] = 0.0, 0.0
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
    M_error: Any  # in the spectral norm, as right_error is
    right_error: float

    @cached_property
    def error_terms(self) -> list[Any]:
        """What forming the difference changes, by the norms of M and right, and a factorisation, by their traces."""
        factorized = sum_error(2 * len(self.right) + 8)
        return [
            sum_error(4) * np.linalg.norm(S, axis=(-2, -1)) + factorized * absolute_trace(S)
            for S in (self.M, self.right)
        ]

    def error_bound(self, t: Any) -> Any:
        """Return by how much t right - M, as it is computed, has to be positive."""
        size, (of_M, of_right) = np.abs(t), self.error_terms
        return round_up(size * self.right_error + self.M_error + size * of_right + of_M, 8)


def absolute_trace(S: Array) -> Any:
    """Return the sum of the absolute values on the diagonal, of each matrix."""
    return np.abs(np.diagonal(S, axis1=-2, axis2=-1)).sum(axis=-1)


def certified_multiple(pencil: Pencil, t: float, usable: float, tries: int) -> float:
    """Return a t, a little above the one given, for which t right - M is proved positive semidefinite; inf if none is.

    By Cholesky factorisations: t is raised by what is lost over what is usable of the right side, then by twice that.
    """
    places = np.diag_indices(len(pencil.right))
    for attempt in range(tries if np.isfinite(t) else 0):
        larger = float(t + 2.0 ** (attempt + 1) * pencil.error_bound(t) / usable)
        S = larger * pencil.right - pencil.M
        S[places] -= pencil.error_bound(larger)
        if cholesky_succeeds(S):
            return larger
    return float("inf")


def certified_ratio(pencil: Pencil, t: float, min_eigenvalue: float) -> float:
    """Return a t for which M <= t right is proved, a little above the t given.

    About the largest generalised eigenvalue is given as t, and about the smallest eigenvalue of the right side as
    least.  Infinity is returned where rounding hides that one, or no factorisation succeeds.
    """
    if len(pencil.M) == 0:
        return 0.0
    usable = min_eigenvalue - pencil.right_error
    found = certified_multiple(pencil, t, usable, MAX_TRIES) if t <= MAX_T and usable > 0.0 else float("inf")
    # Outside the span of whitened coordinates the matrices are t times the identity and 0, up to what is lost.
    return found if np.isinf(found) or found >= pencil.error_bound(found) else float("inf")


def is_positive(S: Array, error: float) -> bool:
    """Whether every matrix at most so far from a symmetric one, in the spectral norm, is positive definite."""
    shift = round_up(error + sum_error(2 * len(S) + 8) * absolute_trace(S))
    return cholesky_succeeds(S - shift * np.eye(len(S)))


def cholesky_succeeds(S: Array) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix does not break down; LAPACK's may go on with NaN."""
    if not are_finite(S):
        return False
    try:
        return are_finite(cholesky(S))
    except np.linalg.LinAlgError:
        return False
