"""Proof of lower bounds on (15), rounding included: with the sums in `points`, the code that certified bounds rely on.

For u > 0 and symmetric C in its box, |C_jk| <= c_j c_k and C_jj = 0, let M = X' Diag(u) X / n and t be a number with
M <= t (A + C + Diag(c)^2).  Then 2 sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u).  The caller may choose any
u, C and t: every returned bound is certified.  `search` chooses them, in plain floating point.

Matrices are in coordinates W in which A + Diag(c)^2 is the identity, up to `DirectionProblem.whitening_error`.
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

MAX_T = 1e100  # a larger t proves nothing
MAX_TRIES = 4  # of larger multiples, after failed factorisations
VALUE_ERROR = 1e-9  # upper bound on the rounding of a value
MEAN_ROUNDINGS = 400  # upper bound on the roundings of a mean by NumPy's pairwise sums


class BallMatrix(NamedTuple):
    """Symmetric matrix in the coordinates W, with a bound on its error in the spectral norm."""

    midpoint: Array
    radius: float


def weighted_gram_at(problem: DirectionProblem, u: Array) -> BallMatrix:
    """Return the weighted Gram matrix X' Diag(u) X / n at weights u of the rows, 0 for zero rows."""
    M = problem.Z.weighted_gram(u)
    return BallMatrix(symmetric(M), problem.gram_error(M, problem.largest_weight(u)))


def whitened_gram(problem: DirectionProblem, M: Array) -> BallMatrix:
    """Return the whitened form of a weighted Gram matrix that was summed before whitening."""
    Mz = symmetric(problem.W.T @ M @ problem.W)
    return BallMatrix(Mz, problem.gram_error(Mz, 0.0, float(np.trace(M))))


def feasible_multiplier(problem: DirectionProblem, C: Array) -> BallMatrix:
    """Return a multiplier, projected onto the dual set."""
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
    """Return a t slightly above the given one with M <= t (A + weight C + Diag(c)^2), certified; infinity if none is.

    A multiplier times any weight in [0, 1] is in the dual set.  `min_eigenvalue` is nearly that of the right side.
    """
    right, error = np.eye(len(gram.midpoint)), problem.whitening_error.right_error
    if multiplier is not None:
        right, error = right + weight * multiplier.midpoint, round_up(error + multiplier.radius)
    return certified_ratio(Pencil(gram.midpoint, right, gram.radius, error), t, min_eigenvalue)


def certified_shift(problem: DirectionProblem, half_gram: Array, shrunk: Array, M_error: float, theta: float) -> float:
    """Return a number slightly above theta with M/2 - C <= theta A, certified; infinity if none is.

    The error of M/2 is at most `M_error` in the coordinates W, in which A is at most 1; `shrunk` is C + Diag(c)^2.
    """
    W = problem.W
    A, left = symmetric(W.T @ problem.A @ W), symmetric(W.T @ (half_gram - shrunk) @ W)
    size = float(np.sum(W**2) * (np.linalg.norm(shrunk) + np.linalg.norm(half_gram)))
    error = M_error + sum_error(4 * len(shrunk) + 16) * size
    return certified_multiple(Pencil(left, A, error, problem.whitening_error.right_error), theta, 1.0, 3 * MAX_TRIES)


def bound_at(t: float, inverse_mean: float, n_roundings: int = MEAN_ROUNDINGS, slack_cost: float = 0.0) -> float:
    """Return a lower bound on 1 - t inverse_mean - slack_cost, for a mean of positive numbers with `n_roundings`."""
    if not np.isfinite(t):  # for any mean, also 0
        return -np.inf
    product = round_up(round_up(t * inverse_mean, n_roundings) + slack_cost, 1 if slack_cost else 0)
    return 1.0 - product - 2 * UNIT_ROUNDOFF if np.isfinite(product) else -np.inf


def grouped_bounds(problem: DirectionProblem, M: Array, sums: Array, top: Array) -> Array:
    """Return lower bounds on Eq. (9) without an l1 term, with signed sums of points instead of points.

    With r_g the sum over a chunklet g of s_i p_i z_i, in whitened coordinates, the objective of labels that satisfy the
    chunklets is at least 1 - t sum_g 1/u_g if M = sum_g u_g r_g r_g' <= t A, for any u_g > 0.

    The problem is that of the points, whitened.  M, (k, D, D), belongs to k groupings, with rows r_g summed from the
    problem's in any order; sums, (k,), are sum_g 1/u_g, and top, (k,), the largest u_g times the weight of chunklet g.
    """
    size, n = M.shape[1], len(problem.X)
    if not are_finite(M, sums, top):
        return np.full(len(M), -np.inf)
    whitening = problem.whitening_error
    # M <= top A for any groups.  A row summed from k points has an error of sum_error(k) times the sizes of its terms,
    # by Cauchy-Schwarz at most the root of the group's weight times tr A <= D (1 + right_error).
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
    # Outside the span of the whitened coordinates the matrices are `larger` times the identity and 0, up to the errors.
    holds = (larger >= errors) & (usable > 0.0)
    certified = holds if cholesky_succeeds(S) else holds & np.array([cholesky_succeeds(matrix) for matrix in S])
    return np.array(
        [bound_at(a, b, n + 8) if ok else -np.inf for a, b, ok in zip(larger, sums, certified, strict=True)]
    )


def bound_normalized(inverse_mean: float, theta: float) -> float:
    """Return a lower bound on (21), -(mean(1/u)/2 + theta), if M/2 - C <= theta A."""
    mean = round_up(inverse_mean / 2, MEAN_ROUNDINGS)
    return -round_up(mean + max(theta, 0.0), 4) - min(theta, 0.0) * (1 - 4 * UNIT_ROUNDOFF)


def value_normalized(problem: DirectionProblem, U: Array, l1: float) -> float:
    """Return an upper bound on the objective of (21) at a factor with tr AUU' = 1 and this l1 term."""
    relative_error = sum_error(4 * len(problem.X) + 4 * len(U)) + 2.0 * problem.whitening_error.data_error
    return l1 - problem.mean_sqrt(U) + round_up(relative_error * (1.0 + l1))


def inflation_cost(inflation: float, upper: float) -> float:
    """Return a bound on how far the optimum, at most `upper`, is below that with penalties times 1 + inflation.

    At an optimum of value v the ridge plus the l1 term is at most v (1 - v).
    """
    return round_up((inflation + 16.0 * UNIT_ROUNDOFF) * max_penalty(upper + VALUE_ERROR), 8) if inflation else 0.0


def project_dual(problem: DirectionProblem, C: Array) -> Array:
    """Return C in the dual set: a solver's multiplier may be slightly outside, where it proves nothing."""
    C = problem.pair_penalty.project_safe(symmetric(C))
    # Along directions outside the coordinates W, the right side of a bound is C alone, so C has to be 0 there.  It is
    # if C is 0 on the columns without another penalty, because only these have a part in such directions.
    if np.any(problem.pair_penalty.reference_weights > problem.c) and problem.W.shape[1] < len(C):
        unpenalized = (problem.a == 0.0) & (problem.c == 0.0)
        C[unpenalized], C[:, unpenalized] = 0.0, 0.0
    return C


def skip_zero_rows(problem: DirectionProblem, u: Array) -> tuple[Array, float]:
    """Return u, 0 for zero rows, and mean(1/u) with 1/u = 0 for zero rows, on which X' Diag(u) X does not depend."""
    return np.where(problem.zero_rows, 0.0, u), problem.mean_inverse(u)


@dataclass(frozen=True, eq=False)
class Pencil:
    """Two symmetric matrices, for which M <= t right is to be certified, with bounds on their errors.

    There may be several M for one right side, (k, D, D), with as many error bounds.
    """

    M: Array
    right: Array
    M_error: Any  # in the spectral norm, like right_error
    right_error: float

    @cached_property
    def error_terms(self) -> list[Any]:
        """Rounding errors of the difference, by the norms of M and right, and of a factorisation, by their traces."""
        factorized = sum_error(2 * len(self.right) + 8)
        return [
            sum_error(4) * np.linalg.norm(S, axis=(-2, -1)) + factorized * absolute_trace(S)
            for S in (self.M, self.right)
        ]

    def error_bound(self, t: Any) -> Any:
        """Return a bound on all errors of the computed t right - M: its smallest eigenvalue has to exceed it."""
        size, (of_M, of_right) = np.abs(t), self.error_terms
        return round_up(size * self.right_error + self.M_error + size * of_right + of_M, 8)


def absolute_trace(S: Array) -> Any:
    """Return the sum of the absolute values on the diagonal of each matrix."""
    return np.abs(np.diagonal(S, axis1=-2, axis2=-1)).sum(axis=-1)


def certified_multiple(pencil: Pencil, t: float, usable: float, tries: int) -> float:
    """Return a t slightly above the given one with t right - M certified positive semidefinite; infinity if none is.

    By Cholesky factorisations: each try raises t by twice as much, from twice the error bound over `usable`.
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
    """Return a t slightly above the given one for which M <= t right is certified.

    The arguments are approximations of the largest generalised eigenvalue and of the smallest eigenvalue of the right
    side.  The result is infinity if rounding may hide the latter, or if no factorisation succeeds.
    """
    if len(pencil.M) == 0:
        return 0.0
    usable = min_eigenvalue - pencil.right_error
    found = certified_multiple(pencil, t, usable, MAX_TRIES) if t <= MAX_T and usable > 0.0 else float("inf")
    # Outside the span of the whitened coordinates the matrices are t times the identity and 0, up to the errors.
    return found if np.isinf(found) or found >= pencil.error_bound(found) else float("inf")


def is_positive(S: Array, error: float) -> bool:
    """Whether every matrix within `error` of a symmetric one, in the spectral norm, is positive definite."""
    shift = round_up(error + sum_error(2 * len(S) + 8) * absolute_trace(S))
    return cholesky_succeeds(S - shift * np.eye(len(S)))


def cholesky_succeeds(S: Array) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix succeeds; LAPACK may continue with NaN."""
    if not are_finite(S):
        return False
    try:
        return are_finite(cholesky(S))
    except np.linalg.LinAlgError:
        return False
