"""Certified multiples of one matrix that bound another: Eq. (21), and Eq. (9) with chunklets in branch and bound."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from diffrac_cvx.certificates.proof import MEAN_ROUNDINGS, bound_at, cholesky_or_none
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem

MAX_TRIES = 12  # of larger multiples, after failed factorisations


def certified_shift(problem: DirectionProblem, half_gram: Array, shrunk: Array, M_error: float, theta: float) -> float:
    """Return a number slightly above theta with M/2 - C <= theta A, certified; infinity if none is.

    The error of M/2 is at most `M_error` in the coordinates W, in which A is at most 1; `shrunk` is C + Diag(c)^2.
    """
    W = problem.W
    A, left = symmetric(W.T @ problem.A @ W), symmetric(W.T @ (half_gram - shrunk) @ W)
    size = float(np.sum(W**2) * (np.linalg.norm(shrunk) + np.linalg.norm(half_gram)))
    error = M_error + sum_error(4 * len(shrunk) + 16) * size
    return certified_multiple(Pencil(left, A, error, problem.whitening_error.right_error), theta)


def bound_normalized(inverse_mean: float, theta: float) -> float:
    """Return a lower bound on (21), -(mean(1/u)/2 + theta), if M/2 - C <= theta A."""
    mean = round_up(inverse_mean / 2, MEAN_ROUNDINGS)
    return -round_up(mean + max(theta, 0.0), 4) - min(theta, 0.0) * (1 - 4 * UNIT_ROUNDOFF)


def value_normalized(problem: DirectionProblem, U: Array, l1: float) -> float:
    """Return an upper bound on the objective of (21) at a factor with tr AUU' = 1 and this l1 term."""
    relative_error = sum_error(4 * len(problem.X) + 4 * len(U)) + 2.0 * problem.whitening_error.data_error
    return l1 - problem.mean_sqrt(U) + round_up(relative_error * (1.0 + l1))


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
    if cholesky_or_none(S) is None:
        holds &= np.array([cholesky_or_none(matrix) is not None for matrix in S])
    return np.array([bound_at(a, b, n + 8) if ok else -np.inf for a, b, ok in zip(larger, sums, holds, strict=True)])


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


def certified_multiple(pencil: Pencil, t: float) -> float:
    """Return a t slightly above the given one with t right - M certified positive semidefinite; infinity if none is.

    By Cholesky factorisations: each try raises t by twice as much, from twice the error bound.
    """
    places = np.diag_indices(len(pencil.right))
    for attempt in range(MAX_TRIES if np.isfinite(t) else 0):
        larger = float(t + 2.0 ** (attempt + 1) * pencil.error_bound(t))
        S = larger * pencil.right - pencil.M
        S[places] -= pencil.error_bound(larger)
        if cholesky_or_none(S) is not None:
            return larger
    return float("inf")
