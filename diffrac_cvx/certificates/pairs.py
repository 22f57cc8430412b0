"""Pairs of coordinates in different groups, looked at by blocks of columns: no matrix of all pairs is stored."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import BlockProblem, Indices
from diffrac_cvx.certificates.block_proof import Pairs, SchurComplement, empty_pairs
from diffrac_cvx.certificates.partitions import join_labels
from diffrac_cvx.points.checks import Array
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
