"""Proof of lower bounds on (15) from a working set of coordinates, rounding included.

At weights u and a number t, the bound 1 - t mean(1/u) holds if S = t (A + C + Diag(c)^2) - M is positive semidefinite
for some C in its box.  P is S on the working set, and T = M - t A between it and a coordinate outside: any C there
leaves S = e = t C - T, and the working set is eliminated.  Among the coordinates outside, t C is what remains of
M - t A, clipped to its box, so that S is a diagonal minus the sparse excess of correlated pairs.  It is positive
definite if it is diagonally dominant; rows that are not are factorised, with the Schur complement of the others bounded
by their dominance.  No d x d matrix is formed.  `working_set` chooses C, in plain floating point.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from diffrac_cvx.certificates.block_problem import IntegerArray, block_problem
from diffrac_cvx.certificates.block_proof import Pairs, SchurComplement
from diffrac_cvx.certificates.proof import cholesky_succeeds
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, symmetric, times
from diffrac_cvx.points.points import Mask
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.off_diagonal import OffDiagonalDual

LIFT, OVERSHOOT = 0.08, 1.5  # eigenvalue to which a correction raises negative directions, and factor of what they lack
MIN_PROGRESS = 0.9  # fraction of the smallest eigenvalue that has to be left after a correction for another one


class WorkingSetProblem:
    """Working set of a problem, with C on it, and its complement.

    `ws`, increasing, contains every coordinate without an l1 weight.  C, (w, w) and 0 on its diagonal, is projected
    onto the dual set here.  The ridge, the l1 term and C are multiplied by 1 + inflation: bounds are of that problem.
    """

    def __init__(self, problem: DirectionProblem, ws: IntegerArray, C: Array, inflation: float = 0.0) -> None:
        problem, self.inflation = problem.with_inflated_penalty(inflation), inflation
        self.problem, self.ws, self.complement = problem, ws, np.setdiff1d(np.arange(len(problem.c)), ws)
        self.inside, self.outside = block_problem(problem, ws), block_problem(problem, self.complement)
        self.C = (
            problem.structure.restrict(ws).pair_penalty(self.inside.c).project_safe(symmetric((1.0 + inflation) * C))
        )

    @cached_property
    def off_diagonal(self) -> OffDiagonalDual:
        """Dual set between the working set, in rows, and the others, in columns."""
        return OffDiagonalDual(self.problem.structure, self.problem.c, self.ws, self.complement)

    def masses(self, u: Array, t: float) -> tuple[float, float]:
        """Return h'h and o'o: S is computed up to sum_error(k) h h' + h o' + o h' + o o', entry by entry.

        h_j^2 is twice the terms of mean u x_j^2 + t (A_jj + 2 c_j^2), and o_j^2 is max u + t times the squared centring
        error of column j.
        """
        problem, mean = self.problem, float(np.mean(u))
        sums = sum(
            part.X.absolute_sum_bound(part.weighted_squares(u), mean).sum() for part in (self.outside, self.inside)
        )
        mean_squares = problem.Y.mean_squares()  # the diagonal of A without the ridge
        penalties = float(np.sum(problem.a**2) + 2.0 * np.sum(problem.c**2))
        h = 2.0 * (float(sums + t * problem.Y.in_columns().absolute_sum_bound(mean_squares, 1.0).sum()) + t * penalties)
        column_error = (problem.largest_weight(u) + t) * (float(np.sum(mean_squares)) + penalties)
        return h, column_error * sum_error(self.outside.n_terms + 16) ** 2


class WorkingSetSums(NamedTuple):
    """S on the working set, P, and T = M - t A between it and the others, shape (w, m)."""

    t: float
    gram_weights: Array
    P: Array
    T: Array


class Elimination(NamedTuple):
    """S outside the working set after its elimination, at t."""

    schur: SchurComplement  # with K'K subtracted from S outside
    L: Array  # (w, w), lower triangular, with LL' nearly S on the working set
    C: Array  # (w, m), the multiplier between the working set and the others
    diagonal: Array  # (m,), of the remaining S
    error: float  # error bound, rounding included: the remaining S has to exceed it

    def corrected(self, Z: Array) -> "Elimination":
        """Return what remains of S minus ZZ', for any Z, (m, k): what remains is positive if it is with ZZ' added.

        The multiplier t C is then the projection of G + ZZ' instead of G.
        """
        K, squares = np.vstack([self.schur.K, Z.T]), np.sum(Z**2, axis=1)
        n_terms = len(self.schur.gram_weights) + len(self.schur.K) + 40
        rounding = 2.0 * sum_error(n_terms + Z.shape[1]) * float(squares.sum())
        error = round_up(self.error * (1.0 + Z.shape[1] / n_terms) + rounding)  # each entry is a longer sum
        return self._replace(schur=self.schur._replace(K=K), diagonal=self.diagonal - squares, error=error)


def working_set_sums(working_set: WorkingSetProblem, u: Array, t: float) -> WorkingSetSums | None:
    """Return S on the working set and T between it and the others; None if t < 0 or numbers leave the range."""
    inside, gram_weights = working_set.inside, working_set.outside.gram_weights(u, t)
    rows = inside.rows.X.array()
    weighted = rows * gram_weights[:, None]
    P = symmetric(t * (working_set.C + np.diag(inside.a**2 + inside.c**2)) - rows.T @ weighted)
    if t < 0.0 or not are_finite(P, gram_weights):
        return None
    T = working_set.outside.rows.X.rmatvec(weighted).T * len(rows)
    return WorkingSetSums(t, gram_weights, P, T)


def eliminate_working_set(
    working_set: WorkingSetProblem, u: Array, sums: WorkingSetSums, tC: Array
) -> Elimination | None:
    """Eliminate the working set from S, with t C, projected here, between it and the others; None on failure."""
    t, gram_weights, P, T = sums
    w, n = len(working_set.ws), len(gram_weights)
    h, o = working_set.masses(u, t)
    error = round_up(sum_error(n + w + 40) * h + 2.0 * (h * o) ** 0.5 + o)
    trace = float(np.abs(np.diag(P)).sum())
    lift = 4.0 * round_up(error + sum_error(2 * w + 8) * trace)
    try:
        L = cholesky(P - lift * np.eye(w))
    except np.linalg.LinAlgError:
        return None
    E = working_set.off_diagonal.project_safe(tC, t) - T
    K = scipy.linalg.solve_triangular(L, E, lower=True, check_finite=False) if w else E
    eliminated = np.einsum("kj,kj->j", K, K)
    if not are_finite(L, K):
        return None
    # S >= [[lift - ..., R], [R', S outside - K'K]], with R = E - L K, as L L' is S on the working set minus the lift.
    residual = float(np.linalg.norm(E - L @ K)) + sum_error(w + 4) * float(np.linalg.norm(L) * np.linalg.norm(K))
    error = round_up(error + sum_error(n + w + 40) * float(eliminated.sum()))
    margin = lift - error - sum_error(2 * w + 8) * trace
    if not margin > 0.0:
        return None
    diagonal = t * working_set.outside.diagonal - working_set.outside.weighted_squares(u) - eliminated
    slack = round_up(error + residual**2 / margin)
    return Elimination(SchurComplement(working_set.outside, t, gram_weights, K), L, (T + E) / t, diagonal, slack)


def excess_matrix(pairs: Pairs, size: int) -> scipy.sparse.csr_array:
    """Return the excess of violated pairs as a symmetric matrix of this size."""
    positions = (np.concatenate([pairs.j, pairs.k]), np.concatenate([pairs.k, pairs.j]))
    return scipy.sparse.csr_array((np.tile(pairs.excess, 2), positions), shape=(size, size))


def is_difference_positive(diagonal: Array, E: scipy.sparse.csr_array, weak: Mask, Z: Array | None = None) -> bool:
    """Whether Diag(diagonal) - E + ZZ' is certified positive definite, by a factorisation of the weak rows, if any.

    E is symmetric, with a zero diagonal, and Z is 0 on the other rows, which have to be dominant.  They are eliminated:
    their diagonal minus their off-diagonal sums bounds them from below.
    """
    Z = np.zeros((len(diagonal), 0)) if Z is None else Z
    m, strong, weak_rows = len(diagonal), np.flatnonzero(~weak), np.flatnonzero(weak)
    margins = diagonal[strong] - round_up(1.0, m) * np.asarray(abs(E[strong][:, strong]).sum(axis=1)).ravel()
    if not np.all(margins > 0.0) or Z[strong].any():
        return False
    between, added = E[weak_rows][:, strong], Z[weak_rows]
    S = np.diag(diagonal[weak_rows]) - E[weak_rows][:, weak_rows].toarray() + times(added, added.T)
    S = symmetric(S - (between @ scipy.sparse.diags_array(1.0 / margins) @ between.T).toarray())
    mass = float(np.abs(np.diag(S)).sum() + np.abs(diagonal[weak_rows]).sum() + 2.0 * np.sum(added**2))
    k = 2 * len(weak_rows) + m + Z.shape[1] + 16
    return cholesky_succeeds(S - round_up(sum_error(k) * mass) * np.eye(len(S)))
