"""Pairs of coordinates in different groups, looked at by blocks of columns: no matrix of all pairs is stored."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import BlockProblem, Indices
from diffrac_cvx.certificates.partitions import join_labels
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.result import Labels

COLUMNS = 512  # of X that are multiplied with the others at a time, fewer where the others are many
PRODUCTS = 5_000_000  # at a time
NEAR = 0.7  # of its box: pairs with a larger |G_jk| are kept, to be looked at again without the others
SINGLE_FROM = 500  # penalised coordinates: from here on the pairs are looked at in single precision first
SINGLE_ROUNDING = 0.1  # of a box, the most that single precision may be off
AGAIN = 20_000  # pairs that are looked at between looks at the clock
GATHER = 30  # how much longer a product takes alone than among others

Poll = Callable[[], None]


class Pairs(NamedTuple):
    """Pairs of coordinates j < k in different groups, G_jk, and the side of its box, t c_j c_k or a little less."""

    j: Indices
    k: Indices
    G: Array
    side: Array

    @property
    def excess(self) -> Array:
        """G_jk less its box, with its sign; 0 inside."""
        return np.asarray(np.sign(self.G) * np.maximum(np.abs(self.G) - self.side, 0.0))

    def take(self, chosen: Indices) -> "Pairs":
        """Return some of the pairs."""
        return Pairs(self.j[chosen], self.k[chosen], self.G[chosen], self.side[chosen])

    def beyond(self) -> "Pairs":
        """Return the pairs beyond their box."""
        return self.take(np.flatnonzero(~(np.abs(self.G) <= self.side)))


def empty_pairs() -> Pairs:
    """Return no pairs."""
    none = np.zeros(0, dtype=np.intp)
    return Pairs(none, none, np.zeros(0), np.zeros(0))


class SchurComplement(NamedTuple):
    """Schur complement of F at t, and what rounding may change.

    Attributes
    ----------
    t : float
        The t of the bound.
    gram_weights : array
        Weights of the rows, (u - t)/n where A is of the rows of X.
    K : (f, m) array
        S_jF S_FF^-1 S_Fk = K_j'K_k.
    roundings : float
        Relative error of the sums.
    condition : float
        By how much more K_j'K_k may be off.
    box : float
        What G_jk may be off, over c_j c_k.
    """

    t: float
    gram_weights: Array
    K: Array
    roundings: float = 0.0
    condition: float = 1.0
    box: float = 0.0

    @property
    def side(self) -> float:
        """Side of the boxes over c_j c_k: t, less what rounding may change."""
        return self.t - self.box


def eliminate(problem: BlockProblem, u: Array, t: float) -> SchurComplement | None:
    """Eliminate F from S = t (A + C + Diag(c)^2) - M; None where S is not positive definite on F."""
    if not np.isfinite(t):
        return None
    n, gram_weights, f = len(u), problem.gram_weights(u, t), problem.F.shape[1]
    if f == 0:
        return with_rounding(problem, u, SchurComplement(t, gram_weights, np.zeros((0, len(problem.c)))), 1.0)
    values, vectors = np.linalg.eigh(t * np.eye(f) - problem.F.T @ (u[:, None] * problem.F) / n)
    top = problem.problem.largest_weight(u)
    off = t * problem.whitened.right_error + 4 * (t * top) ** 0.5 * problem.whitened.data_error
    if values[0] <= 64 * f * sum_error(n + 32) * t + 4 * off:
        return None
    rows = problem.rows
    between = rows.X.products_with(gram_weights[:, None] * rows.F) * len(rows.F)
    K = (vectors / np.sqrt(values)).T @ between.T
    return with_rounding(problem, u, SchurComplement(t, gram_weights, K), 1.0 + 32 * f * t / float(values[0]))


def with_rounding(problem: BlockProblem, u: Array, at: SchurComplement, condition: float) -> SchurComplement:
    """Return an elimination with what rounding may change of the pairs, by the sums of the absolute values."""
    n, top = len(at.gram_weights), problem.problem.largest_weight(u)
    sizes, rows = np.abs(at.gram_weights), problem.rows.X
    size = rows.terms(rows.squares().row_sums(sizes), float(sizes.sum())) + condition * np.sum(at.K**2, axis=0)
    # Times what F is off, S on it changes by at most 2 (t top)^1/2, beside it by (max(t, top) |w| x_j^2)^1/2.
    weight = 1.0 + 2.0 * (top / at.t) ** 0.5 if len(at.K) else 0.0
    roundings = sum_error(n + len(at.K) + 32) + problem.whitened.right_error + weight * problem.whitened.data_error
    # Columns are off by their centring, which changes G_jk by at most this times their norms.
    moved = 2.0 * (at.t + top) * problem.data_error(slice(None)) * np.sqrt(problem.diagonal)
    box = float(np.max((roundings * size + moved) / problem.c**2, initial=0.0))
    return at._replace(roundings=roundings, condition=condition, box=round_up(box))


class ScreeningRadius(NamedTuple):
    """How far G_jk at t may be from the optimal one: near_j near_k + |t - 1| scale_j scale_k."""

    near: Array
    scale: Array
    off: float

    def between(self, first: slice, second: slice, c: Array) -> Array:
        """Return it, over c_j c_k, for all pairs of two ranges of coordinates."""
        near, scale = self.near / c, self.scale / c
        return np.outer(near[first], near[second]) + self.off * np.outer(scale[first], scale[second])

    def largest(self, c: Array) -> float:
        """Return the most that it can be over c_j c_k."""
        near, scale = np.max(self.near / c, initial=0.0), np.max(self.scale / c, initial=0.0)
        return float(near**2 + self.off * scale**2)


class Scan(NamedTuple):
    """Pairs j < k in different groups with |G_jk| > share t c_j c_k, and the components that a gap proves, or None."""

    pairs: Pairs
    proved: Labels | None


def scan(
    problem: BlockProblem,
    labels: Labels,
    at: SchurComplement,
    share: float,
    spread: "ScreeningRadius | None",
    poll: Poll,
) -> Scan:
    """Look at G = M - t A + K'K off the diagonal, by blocks of columns; O(n m^2).

    The columns are divided by c_j first, so that the boxes are all equal.  Single precision is used where its rounding
    is small beside a box: pairs within that rounding of the share are kept too, and G of those kept is computed again.
    """
    columns = scaled_columns(problem, at)
    m, least = len(problem.c), share * at.side - columns.rounding
    off = columns.rounding + at.box
    largest = np.inf if spread is None else spread.largest(problem.c) + off
    parts = [empty_pairs()]
    proved = None if spread is None else np.arange(m)
    step = min(COLUMNS, max(PRODUCTS // m, 16))
    for start in range(0, m, step):
        poll()
        block, rest = slice(start, min(start + step, m)), slice(start, m)
        G = columns.products(block, rest)
        np.fill_diagonal(G, 0.0)
        size = np.abs(G)
        most = float(size.max(initial=0.0))
        # Where c_j c_k is too small a number to divide by, G_jk / (c_j c_k) may be none: such a pair is beyond its box.
        if not most <= least:
            j, k = np.nonzero(~(size <= least))
            apart = (k > j) & (labels[j + start] != labels[k + start])
            j, k = j[apart], k[apart]
            parts.append(kept_pairs(problem, at, (block, rest), j, k, None if columns.rounding else G[j, k]))
        if proved is not None and spread is not None and not most + largest < 1.0:
            j, k = np.nonzero(~(size + spread.between(block, rest, problem.c) + off < 1.0))
            most_joined = len(j) > size.size // 4 and size.size > COLUMNS
            proved = None if most_joined else join_labels(proved, j + start, k + start)
    kept = Pairs(*(np.concatenate([part[i] for part in parts]) for i in range(4)))
    return Scan(kept.take(np.flatnonzero(~(np.abs(kept.G) <= share * kept.side))), proved)


def excess_pairs(problem: BlockProblem, at: SchurComplement, most: int, poll: Poll) -> Pairs | None:
    """Return the pairs j < k with |G_jk| > t c_j c_k, as `scan` finds them; None where there are more than so many.

    Columns whose K is 0 come first: their products with the others are those of X alone.
    """
    K, c = at.K, problem.c
    n, m = problem.rows.X.shape
    order = np.argsort(K.any(axis=0), kind="stable")
    simple = m - int(K.any(axis=0).sum())
    rounding = single_rounding(problem, at)
    single = rounding <= SINGLE_ROUNDING
    kind: type[np.floating[Any]] = np.float32 if single else np.float64
    right: npt.NDArray[Any] = np.vstack([problem.rows.X.dense_columns(order), K[:, order]]).astype(np.float64)
    right = (right / c[order]).astype(kind)
    gram_weights: npt.NDArray[Any] = np.append(at.gram_weights, np.ones(len(K))).astype(kind)[:, None]
    least = at.side - (rounding if single else 0.0)
    step, found, parts = min(COLUMNS, max(PRODUCTS // max(m, 1), 16)), 0, [empty_pairs()]
    for start in range(0, m, step):
        poll()
        stop = min(start + step, m)
        rows = slice(0, n if stop <= simple else len(right))
        G = (right[rows, start:stop] * gram_weights[rows]).T @ right[rows, start:]
        j, k = np.nonzero(~(np.abs(G) <= least))
        j, k = order[j[k > j] + start], order[k[k > j] + start]
        found += len(j)
        if found > most:
            return None
        some = Pairs(np.minimum(j, k), np.maximum(j, k), np.zeros(len(j)), np.zeros(len(j)))
        parts.append(look_again(problem, at, some, poll).beyond())
    return Pairs(*(np.concatenate([part[i] for part in parts]) for i in range(4)))


def single_rounding(problem: BlockProblem, at: SchurComplement) -> float:
    """Return what single precision may change of G_jk / (c_j c_k); infinite where there are too few columns to use it.

    |fl(x'y) - x'y| <= k eps |x|'|y| for k terms, and the terms themselves are rounded.
    """
    if len(problem.c) < SINGLE_FROM:
        return float("inf")
    squares = problem.rows.X.squares().row_sums(np.abs(at.gram_weights)) + np.sum(at.K**2, axis=0)
    size = float(np.max(squares / problem.c**2, initial=0.0))
    return 1.1 * (len(at.gram_weights) + len(at.K) + 4) * float(np.finfo(np.float32).eps) * size


def kept_pairs(
    problem: BlockProblem,
    at: SchurComplement,
    ranges: tuple[slice, slice],
    j: Indices,
    k: Indices,
    scaled: Array | None,
) -> Pairs:
    """Return the pairs at these places of two ranges of coordinates, G in double precision: one by one if few."""
    first, second = j + ranges[0].start, k + ranges[1].start
    side = at.side * problem.c[first] * problem.c[second]
    if scaled is not None and are_finite(scaled):
        return Pairs(first, second, scaled * problem.c[first] * problem.c[second], side)
    size = (ranges[0].stop - ranges[0].start) * (ranges[1].stop - ranges[1].start)
    if len(j) * GATHER <= size:
        return look_again(problem, at, Pairs(first, second, side, side), lambda: None)
    return Pairs(first, second, block_of(problem, at, *ranges)[j, k], side)


class ScaledProducts(NamedTuple):
    """What `scan` multiplies: G_jk / (c_j c_k) for a range of columns and all from its start, up to `rounding`."""

    products: Callable[[slice, slice], npt.NDArray[np.floating[Any]]]
    rounding: float


def scaled_columns(problem: BlockProblem, at: SchurComplement) -> ScaledProducts:
    """Return the products that `scan` needs, in single precision where that is exact enough and pays."""
    X, c = problem.rows.X, problem.c
    rounding = single_rounding(problem, at) if X.in_memory else float("inf")
    if rounding > SINGLE_ROUNDING:
        return ScaledProducts(lambda first, rest: block_of(problem, at, first, rest) / np.outer(c[first], c[rest]), 0.0)
    right = np.vstack([X.array() / c, at.K / c]).astype(np.float32)
    weights = np.append(at.gram_weights, np.ones(len(at.K))).astype(np.float32)[:, None]
    return ScaledProducts(lambda first, rest: (right[:, first] * weights).T @ right[:, rest], rounding)


def block_of(problem: BlockProblem, at: SchurComplement, first: slice, rest: slice) -> Array:
    """Return G for two ranges of columns."""
    return problem.rows.X.gram(at.gram_weights, first, rest) + at.K[:, first].T @ at.K[:, rest]


def look_again(problem: BlockProblem, at: SchurComplement, pairs: Pairs, poll: Poll) -> Pairs:
    """Return the same pairs at other weights."""
    G = np.empty(len(pairs.j))
    for start in range(0, len(G), AGAIN):
        poll()
        some = slice(start, start + AGAIN)
        j, k = pairs.j[some], pairs.k[some]
        G[some] = problem.rows.X.pair_sums(at.gram_weights, j, k) + np.sum(at.K[:, j] * at.K[:, k], axis=0)
    return Pairs(pairs.j, pairs.k, G, at.side * problem.c[pairs.j] * problem.c[pairs.k])


def largest_safe_t(problem: BlockProblem, t: float) -> float:
    """Return the largest t at which all pairs beyond their box are among those kept at a smaller one.

    |G_jk| changes by at most the change of t, times A_jk.  With unpenalised coordinates it may change by more.
    """
    if problem.F.shape[1]:
        return t
    return t * (1.0 + (1.0 - NEAR) * float(np.min(problem.c**2 / np.maximum(problem.diagonal, 1e-300), initial=np.inf)))
