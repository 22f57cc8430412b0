"""Lower bounds for (15) from a core of coordinates outwards: for many more columns than rows.

At weights u and a number t, the bound 1 - t mean(1/u) holds if S = t (A + C + Diag(c)^2) - M is positive semidefinite
for some C in its box.  On the core C is given.  Let P be S there and T = M - t A between the core and a coordinate j
outside it.  Of the multipliers between them, those in the box t c_j c_k with the least e'P^-1 e, e = t C - T, are known
from a lasso with the matrix P: e = -Pz at the minimum of z'Pz/2 - z'T + t c_j sum_k c_k |z_k|.

P is eliminated then.  Among the coordinates outside, t C is what is left of M - t A clipped to its box, so that S is a
diagonal less the sparse excess of correlated pairs.  It is positive definite if it is diagonally dominant; where some
rows are not, they are factorised, with the Schur complement of the others bounded by their dominance.  No matrix of
the size of all coordinates is made.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from diffrac_cvx.certificates.block_problem import BlockProblem, Gram, Indices
from diffrac_cvx.certificates.block_proof import Pairs, SchurComplement
from diffrac_cvx.certificates.lassos import lassos
from diffrac_cvx.certificates.pairs import excess_pairs
from diffrac_cvx.certificates.proof import bound_at, succeeds
from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT, Whitening, round_up, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, lanczos, symmetric
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem

MOST_PAIRS = 40  # beyond their box, for each coordinate: with more the bound fails anyway
MOST_FACTORISED = 3000  # rows that are not diagonally dominant
MOST_LACKING = 20  # coordinates that alone make the bound fail, beyond which no others are looked for
DENSE, ROUGHLY = 200, 1e-2  # rows up to which all eigenvectors are found, and accuracy of eigenvalues beyond
VIOLATED = 12  # directions that are named where the bound fails

LIGHT = 1e-3  # weight of a coordinate in violated directions, to the largest, below which it is not named
SIDE = 1.0 - 8.0 * UNIT  # of a box, so that rounding leaves C inside it


class Core:
    """The coordinates from which a bound starts, C on them, and the coordinates outside.

    Parameters
    ----------
    problem : DirectionProblem
        The problem, its X an array or sparse columns.
    chosen : (w,) array of int
        The core, increasing; it holds every coordinate without an l1 weight.
    C : (w, w) array
        The multiplier on the core, 0 on its diagonal; clipped to its box here.
    excess : float
        By what part the ridge, the l1 part and C are made larger: bounds are of that problem.
    """

    def __init__(self, problem: DirectionProblem, chosen: Indices, C: Array, excess: float = 0.0) -> None:
        size = len(problem.c)
        problem, C = problem.penalised_more(excess), (1.0 + excess) * C
        self.problem, self.chosen = problem, chosen
        self.rest = np.setdiff1d(np.arange(size), chosen)
        X, Y = problem.X.in_columns(), problem.Y.in_columns()
        self.data, self.gram = X.dense_columns(chosen), Y.dense_columns(chosen)
        self.a, self.c = problem.a[chosen], problem.c[chosen]
        box = np.outer(self.c, self.c) * SIDE
        np.fill_diagonal(box, 0.0)
        self.C = np.clip(symmetric(C), -box, box)
        none, no_columns = np.zeros((0, 0)), np.zeros((len(X), 0))
        self.outside = BlockProblem(
            X=X.columns(self.rest),
            F=no_columns,
            a=problem.a[self.rest],
            c=problem.c[self.rest],
            basis=none,
            penalised=self.rest,
            free=np.zeros(0, dtype=np.intp),
            problem=problem,
            whitened=Whitening(0.0, 0.0),
            gram=None if problem.gram is None else Gram(Y.columns(self.rest), np.zeros((len(Y), 0))),
        )

    @cached_property
    def rows(self) -> Array:
        """The core's columns of what `gram_weights` weigh."""
        return self.data if self.outside.gram is None else np.vstack([self.data, self.gram])

    def matrix(self, u: Array, t: float) -> Array:
        """Return S on the core."""
        P = self.rows.T @ (self.rows * -self.outside.gram_weights(u, t)[:, None]) + t * self.C
        P[np.diag_indices(len(P))] += t * (self.a**2 + self.c**2)
        return symmetric(P)

    def masses(self, u: Array, t: float) -> tuple[float, float]:
        """Return h'h and o'o: S is computed up to sum_error(k) h h' + h o' + o h' + o o', entry by entry.

        h_j^2 is twice the terms of mean u x_j^2 + t (A_jj + 2 c_j^2), and o_j^2 is max u + t times the square of what
        column j is off by its centring.
        """
        X, Y, mean = self.problem.X.in_columns(), self.problem.Y.in_columns(), float(np.mean(u))
        terms = self.outside.X.terms(self.outside.weighted_squares(u), mean).sum()
        terms += X.terms(u @ np.square(self.data) / len(u), mean, self.chosen).sum()
        penalties = float(np.sum(self.problem.a**2) + 2.0 * np.sum(self.problem.c**2))
        h = 2.0 * (float(terms + t * Y.terms(self.energies, 1.0).sum()) + t * penalties)
        size, top = float(np.sum(self.energies)) + penalties, self.problem.largest_weight(u)
        return h, (top + t) * size * sum_error(max(len(X), len(Y)) + 16) ** 2

    @cached_property
    def energies(self) -> Array:
        """The diagonal of A without the ridge, shape (D,)."""
        return self.problem.Y.mean_squares()


class Eliminated(NamedTuple):
    """S outside the core after the core is eliminated, at t.

    Attributes
    ----------
    at : SchurComplement
        K, of which K'K is taken from S outside.
    L : (w, w) array
        Lower triangular, with LL' = S on the core, nearly.
    C : (w, m) array
        The multiplier between the core and the others.
    diagonal : (m,) array
        The diagonal of what is left.
    slack : float
        How far S and what is left may be off, all rounding included: it has to be above the slack.
    """

    at: SchurComplement
    L: Array
    C: Array
    diagonal: Array
    slack: float


class Look(NamedTuple):
    """What a look from the core outwards found.

    Attributes
    ----------
    lower : float or None
        The bound, where it is proved.
    needed : (k,) array of int
        Coordinates whose joining the core may prove it, those needed most first.
    directions : (D, v) array
        Directions in which S is negative, of all coordinates.
    C : (w + k, k) array
        The multiplier that was tried between the core, then these coordinates, and these.
    """

    lower: float | None
    needed: Indices
    directions: Array
    C: Array


def look_outside(core: Core, u: Array, inverse_mean: float, t: float, spent: float = 0.0) -> Look:
    """Try to prove 1 - t mean(1/u) as a bound, from the core outwards; say what is missing where it fails.

    Parameters
    ----------
    core : Core
        The core and its multiplier.
    u : (n,) array
        Weights of the rows, 0 for zero rows.
    inverse_mean : float
        mean(1/u).
    t : float
        The number tried; on the core M <= t (A + C + Diag(c)^2) should hold, or nothing is found.
    spent : float
        What comes off the bound, where the core's penalties are larger.
    """
    nothing = empty_look(core.problem)
    found = eliminate_core(core, u, t)
    if found is None:
        return nothing
    lacking = np.flatnonzero(~(found.diagonal > found.slack))  # what is no number is lacking
    lacking = lacking[np.argsort(found.diagonal[lacking], kind="stable")]
    m = len(core.rest)
    if len(lacking) > MOST_LACKING:
        return failure(core, found, lacking, unit_vectors(m, lacking[:VIOLATED]))
    pairs = excess_pairs(core.outside, found.at, MOST_PAIRS * max(m, 1), poll)
    if pairs is None:
        order = np.argsort(found.diagonal, kind="stable")[: m // 4 + 1]
        return failure(core, found, order, unit_vectors(m, order[:VIOLATED]))
    among = pairs.take(np.flatnonzero(~np.isin(pairs.j, lacking) & ~np.isin(pairs.k, lacking)))
    violated = violated_directions(np.where(found.diagonal > found.slack, found.diagonal - found.slack, 1.0), among)
    if violated is None and not len(lacking):
        return nothing._replace(lower=bound_at(t, inverse_mean, spent=spent))
    violated = np.zeros((m, 0)) if violated is None else violated
    weight = np.sum(violated**2, axis=1)
    order = np.argsort(-weight, kind="stable")
    heavy = order[: int(np.sum(weight > LIGHT * weight.max(initial=0.0)))]
    return failure(core, found, np.append(lacking, heavy), np.hstack([unit_vectors(m, lacking[:VIOLATED]), violated]))


def empty_look(problem: DirectionProblem) -> Look:
    """Return a look that proves nothing and names nothing."""
    return Look(None, np.zeros(0, dtype=np.intp), np.zeros((len(problem.c), 0)), np.zeros((0, 0)))


def failure(core: Core, found: Eliminated, needed: Indices, violated: Array) -> Look:
    """Return what a failed look names: coordinates outside, and directions of all with the best part on the core."""
    needed = needed[: max(MOST_LACKING, len(core.chosen))]
    directions = np.zeros((len(core.problem.c), violated.shape[1]))
    directions[core.rest] = violated
    inner = found.at.K @ violated
    directions[core.chosen] = -scipy.linalg.solve_triangular(found.L, inner, lower=True, trans="T", check_finite=False)
    data, K, t = core.outside.rows.X.dense_columns(needed), found.at.K[:, needed], found.at.t
    side = SIDE * np.outer(core.outside.c[needed], core.outside.c[needed])
    np.fill_diagonal(side, 0.0)
    among = np.clip((data.T @ (data * found.at.gram_weights[:, None]) + K.T @ K) / t, -side, side)
    return Look(None, core.rest[needed], directions, np.vstack([found.C[:, needed], among]))


def eliminate_core(core: Core, u: Array, t: float) -> Eliminated | None:
    """Eliminate the core from S, with the multipliers between it and the others that leave the most of S."""
    w, out = len(core.chosen), core.outside
    gram_weights = out.gram_weights(u, t)
    n = len(gram_weights)
    P = core.matrix(u, t)
    if not are_finite(P, gram_weights):
        return None
    h, o = core.masses(u, t)
    off = round_up(sum_error(n + w + 40) * h + 2.0 * (h * o) ** 0.5 + o)
    trace = float(np.abs(np.diag(P)).sum())
    lift = 4.0 * round_up(off + sum_error(2 * w + 8) * trace)
    try:
        L = cholesky(P - lift * np.eye(w))
    except np.linalg.LinAlgError:
        return None
    E, C = excess_of_core(core, P, gram_weights, t)
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
    M = out.weighted_squares(u)
    return Eliminated(
        SchurComplement(t, gram_weights, K), L, C, t * out.diagonal - M - energies, round_up(off + residual**2 / left)
    )


def excess_of_core(core: Core, P: Array, gram_weights: Array, t: float) -> tuple[Array, Array]:
    """Return t C - T between the core and the others, shape (w, m), and C from the lassos; 0 where C = T / t will do.

    Any C in the box is allowed, so that the lassos may be inexact.
    """
    T = core.outside.rows.X.products_with(core.rows * gram_weights[:, None]).T * len(core.rows)
    side = t * SIDE * np.outer(core.c, core.outside.c)
    E = np.clip(T, -side, side) - T
    beyond = np.flatnonzero(E.any(axis=0))
    if len(beyond):
        some, box = np.ascontiguousarray(T[:, beyond]), np.ascontiguousarray(side[:, beyond])
        E[:, beyond] = np.clip(some - P @ lassos(P, some, box), -box, box) - some
    return np.asarray(E), (T + E) / t


def violated_directions(diagonal: Array, pairs: Pairs) -> Array | None:
    """Return directions in which Diag(diagonal) less the pairs' excess is negative; None if it is proved positive.

    Rows that are not diagonally dominant are factorised, after the others, bounded by their dominance, are eliminated.
    Where that fails, though no direction is found in which it is negative, those of the least dominant rows are named.
    """
    m, excess = len(diagonal), pairs.excess
    E = scipy.sparse.csr_array(
        (np.tile(excess, 2), (np.concatenate([pairs.j, pairs.k]), np.concatenate([pairs.k, pairs.j]))), shape=(m, m)
    )
    size = abs(E)
    rows = round_up(1.0, m) * np.asarray(size.sum(axis=1)).ravel()
    weak = ~(diagonal > 2.0 * rows)
    if np.all(diagonal > rows):
        return None
    directions = negative_directions(diagonal, E)
    if directions.shape[1]:
        return directions
    if int(weak.sum()) > MOST_FACTORISED:
        weak = ~(diagonal > rows)
    strong, chosen = np.flatnonzero(~weak), np.flatnonzero(weak)
    if len(chosen) <= MOST_FACTORISED:
        # Among the strong rows alone, what is left of the diagonal bounds them from below.
        left = diagonal[strong] - round_up(1.0, m) * np.asarray(size[strong][:, strong].sum(axis=1)).ravel()
        between = E[chosen][:, strong]
        S = np.diag(diagonal[chosen]) - E[chosen][:, chosen].toarray()
        S -= (between @ scipy.sparse.diags_array(1.0 / left) @ between.T).toarray()
        S = symmetric(S)
        shift = round_up(
            sum_error(2 * len(chosen) + m + 16) * float(np.abs(np.diag(S)).sum() + np.sum(diagonal[chosen]))
        )
        if succeeds(S - shift * np.eye(len(S))):
            return None
    return unit_vectors(m, chosen[np.argsort((diagonal - rows)[chosen])[:VIOLATED]])


def negative_directions(diagonal: Array, E: scipy.sparse.csr_array) -> Array:
    """Return the directions in which Diag(diagonal) - E is most negative, orthogonal, shape (m, v); v may be 0."""
    if len(diagonal) <= DENSE:
        values, vectors = np.linalg.eigh(np.diag(diagonal) - E.toarray())
    else:
        values, vectors = lanczos(lambda x: diagonal * x - E @ x, len(diagonal), VIOLATED, "SA", ROUGHLY)
    return np.asarray(vectors[:, : min(VIOLATED, int(np.sum(values < 0.0)))])


def unit_vectors(size: int, places: npt.NDArray[np.intp]) -> Array:
    """Return the unit vectors of these coordinates, a column each."""
    vectors = np.zeros((size, len(places)))
    vectors[places, np.arange(len(places))] = 1.0
    return vectors
