"""What proves a lower bound of (15) from a core of coordinates outwards, rounding included.

At weights u and a number t, the bound 1 - t mean(1/u) holds if S = t (A + C + Diag(c)^2) - M is positive semidefinite
for some C in its box.  P is S on the core and T = M - t A between the core and a coordinate outside it: any C there
leaves e = t C - T of S, and the core is eliminated.  Among the coordinates outside, t C is what is left of M - t A
clipped to its box, so that S is a diagonal less the sparse excess of correlated pairs.  It is positive definite if it
is diagonally dominant; where some rows are not, they are factorised, with the Schur complement of the others bounded by
their dominance.  No matrix of the size of all coordinates is made.  `outwards` chooses C, in plain floating point.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from diffrac_cvx.certificates.block_problem import Indices, block_problem
from diffrac_cvx.certificates.block_proof import Pairs, SchurComplement
from diffrac_cvx.certificates.proof import succeeds
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, symmetric
from diffrac_cvx.points.points import Mask
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.between import Between


class Core:
    """The coordinates from which a bound starts, C on them, and the coordinates outside.

    Those chosen, increasing, hold every coordinate without an l1 weight.  C, (w, w) and 0 on its diagonal, is clipped
    to its box here.  The ridge, the l1 part and C are made larger by the part `excess`: bounds are of that problem.
    """

    def __init__(self, problem: DirectionProblem, chosen: Indices, C: Array, excess: float = 0.0) -> None:
        problem = problem.penalised_more(excess)
        self.problem, self.chosen, self.rest = problem, chosen, np.setdiff1d(np.arange(len(problem.c)), chosen)
        self.inside, self.outside = block_problem(problem, chosen), block_problem(problem, self.rest)
        self.C = problem.structure.restrict(chosen).coupling(self.inside.c).project(symmetric((1.0 + excess) * C))

    @cached_property
    def between(self) -> Between:
        """What the penalty couples between the core, in rows, and the others, in columns."""
        return Between(self.problem.structure, self.problem.c, self.chosen, self.rest)

    def masses(self, u: Array, t: float) -> tuple[float, float]:
        """Return h'h and o'o: S is computed up to sum_error(k) h h' + h o' + o h' + o o', entry by entry.

        h_j^2 is twice the terms of mean u x_j^2 + t (A_jj + 2 c_j^2), and o_j^2 is max u + t times the square of what
        column j is off by its centring.
        """
        problem, mean = self.problem, float(np.mean(u))
        terms = sum(part.X.terms(part.weighted_squares(u), mean).sum() for part in (self.outside, self.inside))
        energies = problem.Y.mean_squares()  # the diagonal of A without the ridge
        penalties = float(np.sum(problem.a**2) + 2.0 * np.sum(problem.c**2))
        h = 2.0 * (float(terms + t * problem.Y.in_columns().terms(energies, 1.0).sum()) + t * penalties)
        off = (problem.largest_weight(u) + t) * (float(np.sum(energies)) + penalties)
        return h, off * sum_error(self.outside.most_rows + 16) ** 2


class CoreSums(NamedTuple):
    """S on the core, P, and T = M - t A between it and the others, shape (w, m)."""

    t: float
    gram_weights: Array
    P: Array
    T: Array


class Eliminated(NamedTuple):
    """S outside the core after the core is eliminated, at t."""

    at: SchurComplement  # K, of which K'K is taken from S outside
    L: Array  # (w, w), lower triangular, with LL' = S on the core, nearly
    C: Array  # (w, m), the multiplier between the core and the others
    diagonal: Array  # (m,), of what is left
    slack: float  # how far S and what is left may be off, all rounding included: it has to be above the slack


def sums_of_core(core: Core, u: Array, t: float) -> CoreSums | None:
    """Return S on the core and between it and the others; None below t = 0 or where numbers leave the range."""
    inside, gram_weights = core.inside, core.outside.gram_weights(u, t)
    rows = inside.rows.X.array()
    weighted = rows * gram_weights[:, None]
    P = symmetric(t * (core.C + np.diag(inside.a**2 + inside.c**2)) - rows.T @ weighted)
    if t < 0.0 or not are_finite(P, gram_weights):
        return None
    T = core.outside.rows.X.products_with(weighted).T * len(rows)
    return CoreSums(t, gram_weights, P, T)


def eliminate_core(core: Core, u: Array, sums: CoreSums, tC: Array) -> Eliminated | None:
    """Eliminate the core from S, with t C between it and the others, clipped to its box here; None where it fails."""
    t, gram_weights, P, T = sums
    w, n = len(core.chosen), len(gram_weights)
    h, o = core.masses(u, t)
    off = round_up(sum_error(n + w + 40) * h + 2.0 * (h * o) ** 0.5 + o)
    trace = float(np.abs(np.diag(P)).sum())
    lift = 4.0 * round_up(off + sum_error(2 * w + 8) * trace)
    try:
        L = cholesky(P - lift * np.eye(w))
    except np.linalg.LinAlgError:
        return None
    E = core.between.clip(tC, t) - T
    K = scipy.linalg.solve_triangular(L, E, lower=True, check_finite=False) if w else E
    energies = np.einsum("kj,kj->j", K, K)
    if not are_finite(L, K):
        return None
    # S >= [[lift - ..., R], [R', S outside - K'K]], with R = E - L K, for L L' is S on the core less the lift.
    residual = float(np.linalg.norm(E - L @ K)) + sum_error(w + 4) * float(np.linalg.norm(L) * np.linalg.norm(K))
    off = round_up(off + sum_error(n + w + 40) * float(energies.sum()))
    left = lift - off - sum_error(2 * w + 8) * trace
    if not left > 0.0:
        return None
    diagonal = t * core.outside.diagonal - core.outside.weighted_squares(u) - energies
    slack = round_up(off + residual**2 / left)
    return Eliminated(SchurComplement(core.outside, t, gram_weights, K), L, (T + E) / t, diagonal, slack)


def excess_matrix(pairs: Pairs, size: int) -> scipy.sparse.csr_array:
    """Return the excess of pairs beyond their box as a symmetric matrix of this size."""
    places = (np.concatenate([pairs.j, pairs.k]), np.concatenate([pairs.k, pairs.j]))
    return scipy.sparse.csr_array((np.tile(pairs.excess, 2), places), shape=(size, size))


def is_positive_less(diagonal: Array, E: scipy.sparse.csr_array, weak: Mask) -> bool:
    """Whether Diag(diagonal) - E is proved to be positive definite, by a factorisation of the weak rows, if any.

    E is symmetric, without a diagonal.  The other rows, which have to be dominant, are eliminated: what is left of
    their diagonal bounds them from below.
    """
    m, strong, chosen = len(diagonal), np.flatnonzero(~weak), np.flatnonzero(weak)
    left = diagonal[strong] - round_up(1.0, m) * np.asarray(abs(E[strong][:, strong]).sum(axis=1)).ravel()
    if not np.all(left > 0.0):
        return False
    between = E[chosen][:, strong]
    S = np.diag(diagonal[chosen]) - E[chosen][:, chosen].toarray()
    S = symmetric(S - (between @ scipy.sparse.diags_array(1.0 / left) @ between.T).toarray())
    mass = float(np.abs(np.diag(S)).sum() + np.sum(diagonal[chosen]))
    return succeeds(S - round_up(sum_error(2 * len(chosen) + m + 16) * mass) * np.eye(len(S)))
