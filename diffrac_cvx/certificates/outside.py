"""Looks from a core of coordinates outwards: the multipliers that `core_proof` is given, and what is missing.

Of the multipliers C between the core and a coordinate outside it, those in the box t c_j c_k with the least e'P^-1 e,
e = t C - T, are known from a lasso with the matrix P: e = -Pz at the minimum of z'Pz/2 - z'T + t c_j sum_k c_k |z_k|.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from diffrac_cvx.certificates.block_problem import Indices
from diffrac_cvx.certificates.block_proof import Pairs
from diffrac_cvx.certificates.core_proof import (
    SIDE,
    Core,
    CoreSums,
    Eliminated,
    SparseMatrix,
    eliminate_core,
    less_excess,
    sums_of_core,
)
from diffrac_cvx.certificates.lassos import lassos
from diffrac_cvx.certificates.proof import bound_at
from diffrac_cvx.certificates.screening import excess_pairs
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import lanczos
from diffrac_cvx.problem.direction_problem import DirectionProblem

MOST_PAIRS = 40  # beyond their box, for each coordinate: with more the bound fails anyway
MOST_FACTORISED = 3000  # rows that are not diagonally dominant
MOST_LACKING = 20  # coordinates that alone make the bound fail, beyond which no others are looked for
DENSE, ROUGHLY = 200, 1e-2  # rows up to which all eigenvectors are found, and accuracy of eigenvalues beyond
VIOLATED = 12  # directions that are named where the bound fails

LIGHT = 1e-3  # weight of a coordinate in violated directions, to the largest, below which it is not named


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
    sums = sums_of_core(core, u, t)
    found = None if sums is None else eliminate_core(core, u, sums, multipliers_between(sums))
    if found is None:
        return nothing
    lacking = np.flatnonzero(~(found.diagonal > found.slack))  # what is no number is lacking
    lacking = lacking[np.argsort(found.diagonal[lacking], kind="stable")]
    m = len(core.rest)
    if len(lacking) > MOST_LACKING:
        return failure(core, found, lacking, unit_vectors(m, lacking[:VIOLATED]))
    pairs = excess_pairs(core.outside, found.at, MOST_PAIRS * max(m, 1))
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


def multipliers_between(sums: CoreSums) -> Array:
    """Return t C between the core and the others, about what leaves the most of S: T where it is in the box."""
    P, T, side = sums.P, sums.T, sums.side
    beyond = np.flatnonzero((np.abs(T) > side).any(axis=0))
    if not len(beyond):
        return T
    some, box = np.ascontiguousarray(T[:, beyond]), np.ascontiguousarray(side[:, beyond])
    tC = T.copy()
    tC[:, beyond] = some - P @ lassos(P, some, box)
    return tC


def violated_directions(diagonal: Array, pairs: Pairs) -> Array | None:
    """Return directions in which Diag(diagonal) less the pairs' excess is negative; None if it is proved positive.

    Where neither is found, the coordinates of the least dominant rows are named.
    """
    S = less_excess(diagonal, pairs)
    if S.is_dominant:
        return None
    directions = negative_directions(S)
    if directions.shape[1]:
        return directions
    weak = ~(diagonal > 2.0 * S.rows)
    if int(weak.sum()) > MOST_FACTORISED:
        weak = ~(diagonal > S.rows)
    if int(weak.sum()) <= MOST_FACTORISED and S.is_positive(weak):
        return None
    chosen = np.flatnonzero(weak)
    return unit_vectors(len(diagonal), chosen[np.argsort((diagonal - S.rows)[chosen])[:VIOLATED]])


def negative_directions(S: SparseMatrix) -> Array:
    """Return the directions in which a matrix is most negative, orthogonal, shape (m, v); v may be 0."""
    diagonal, E, _ = S
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
