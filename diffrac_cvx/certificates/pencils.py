"""Lower bounds on Eq. (9) with chunklets, for many groupings at a time, in branch and bound."""

import numpy as np

from diffrac_cvx.certificates.proof import bound_at, cholesky_or_none
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem


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
    row_error = top**0.5 * (whitening.data_error + sum_error(n + 8) * (size * (1.0 + whitening.right_error)) ** 0.5)
    mass, factorized = np.abs(np.diagonal(M, axis1=1, axis2=2)).sum(axis=1), sum_error(2 * size + 8)
    fixed = sum_error(n + 16) * mass + (2.0 * mass**0.5 + row_error) * row_error + factorized * mass
    fixed += sum_error(4) * np.linalg.norm(M, axis=(1, 2))
    relative = whitening.right_error + sum_error(4) * size**0.5 + factorized * size
    t, usable = np.linalg.eigvalsh(M)[:, -1], 1.0 - whitening.right_error
    step = 4.0 * round_up(np.abs(t) * relative + fixed, 8)
    larger = t + step / usable if usable > 0.0 else np.full(len(t), np.inf)
    errors = round_up(larger * relative + fixed, 8)
    S = (larger - errors)[:, None, None] * np.eye(size) - M
    # Outside the span of the whitened coordinates the matrices are `larger` times the identity and 0, up to the errors.
    holds = (larger >= errors) & (usable > 0.0)
    if cholesky_or_none(S) is None:
        holds &= np.array([cholesky_or_none(matrix) is not None for matrix in S])
    return np.array([bound_at(a, b, n + 8) if ok else -np.inf for a, b, ok in zip(larger, sums, holds, strict=True)])
