"""Pairs of coordinates, looked at by blocks of columns: which are beyond their box, and which a gap proves apart.

What is said to be in its box, or apart, is so with rounding counted; no matrix of all pairs is stored.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import BlockProblem, Indices, block_problem, join_labels, number_by_first
from diffrac_cvx.certificates.block_proof import Pairs, SchurComplement, cross_products, eliminate, empty_pairs
from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.points import Mask
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.result import Labels

COLUMNS = 512  # of X that are multiplied with the others at a time, fewer where the others are many
PRODUCTS = 5_000_000  # at a time
NEAR = 0.7  # of its box: pairs with a larger |G_jk| are kept, to be looked at again without the others
SINGLE_FROM = 500  # penalised coordinates: from here on the pairs are looked at in single precision first
SINGLE_ROUNDING = 0.1  # of a box, the most that single precision may be off
AGAIN = 20_000  # pairs that are looked at between looks at the clock
LEAST_GAP = 1e-13  # gaps below are rounding
LEAST_ROOT = 1e-40  # sqrt(q) of a row: below, the fourth powers of its entries are too small to be numbers
LEAST_LEFT = 1e-9  # of S on the unpenalised coordinates, to its largest eigenvalue, below which nothing is proved
GATHER = 30  # how much longer a product takes alone than among others


class Weights(NamedTuple):
    """u at a V, and weights w with |G_jk - its optimum|^2 <= gap mean_i w_i x_ij^2 x_ik^2, x_i the rows."""

    u: Array
    w: Array
    gap: float

    def hold(self, used: Mask) -> bool:
        """Whether nothing in w has underflowed at the rows used: elsewhere it bounds nothing."""
        return bool(np.max(self.u[used], initial=0.0) <= 1.0 / LEAST_ROOT)


def weights_at(q: Array, gap: float) -> Weights:
    r"""Return u = 1/sqrt(q), and how the proved gap of the point bounds the distance to the optimal u.

    With :math:`r = \sqrt q` and :math:`r^*` its optimum, duality gives  gap >= mean (r - r*)^2 / r*.  By Cauchy and
    Schwarz, :math:`(G - G^*)_{jk}^2 \le \mathrm{gap} \cdot \mathrm{mean}_i\, x_{ij}^2 x_{ik}^2 / (r_i^2 r_i^*)`, and
    r* is bounded from below by the same inequality, row by row.
    """
    gap = max(gap, LEAST_GAP)
    r = np.maximum(np.sqrt(q), 1e-100)
    half = len(r) * gap / 2
    least = r**2 / (r + half + np.sqrt(2 * half * r + half**2))  # r + half - sqrt(...), without its cancellation
    return Weights(1.0 / r, 1.0 / (r**2 * np.maximum(least, 1e-100)), gap)


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
    problem: BlockProblem, labels: Labels, at: SchurComplement, share: float, spread: ScreeningRadius | None
) -> Scan:
    """Look at G = M - t A + K'K off the diagonal, by blocks of columns; O(n m^2).

    The columns are divided by c_j first, so that the boxes are all equal.  Single precision is used where its rounding
    is small beside a box: pairs within that rounding of the share are kept too, and G of those kept is computed again.
    """
    columns = scaled_columns(problem, at)
    least = share * at.side - columns.rounding
    off = columns.rounding + at.box
    largest = np.inf if spread is None else spread.largest(problem.c) + off
    parts = [empty_pairs()]
    proved = None if spread is None else np.arange(len(problem.c))
    for block, rest in ranges_of_columns(len(problem.c)):
        start, G = block.start, columns.products(block, rest)
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


def ranges_of_columns(m: int) -> Iterator[tuple[slice, slice]]:
    """Yield ranges of so many columns with those from their start on, so that all pairs are among their products."""
    step = min(COLUMNS, max(PRODUCTS // max(m, 1), 16))
    for start in range(0, m, step):
        poll()
        yield slice(start, min(start + step, m)), slice(start, m)


def excess_pairs(problem: BlockProblem, at: SchurComplement, most: int) -> Pairs | None:
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
    found, parts = 0, [empty_pairs()]
    for block, rest in ranges_of_columns(m):
        rows = slice(0, n if block.stop <= simple else len(right))
        G = (right[rows, block] * gram_weights[rows]).T @ right[rows, rest]
        j, k = np.nonzero(~(np.abs(G) <= least))
        j, k = order[j[k > j] + block.start], order[k[k > j] + block.start]
        found += len(j)
        if found > most:
            return None
        some = Pairs(np.minimum(j, k), np.maximum(j, k), np.zeros(len(j)), np.zeros(len(j)))
        parts.append(look_again(problem, at, some).beyond())
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
        return look_again(problem, at, Pairs(first, second, side, side))
    return Pairs(first, second, block_of(problem, at, *ranges)[j, k], side)


class ScaledProducts(NamedTuple):
    """What pairs are judged by: G_jk / (c_j c_k) for a range of columns and all from its start, up to `rounding`."""

    products: Callable[[slice, slice], npt.NDArray[np.floating[Any]]]
    rounding: float


def scaled_columns(problem: BlockProblem, at: SchurComplement) -> ScaledProducts:
    """Return the products of pairs, in single precision where that is allowed, exact enough, and pays."""
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


def look_again(problem: BlockProblem, at: SchurComplement, pairs: Pairs) -> Pairs:
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


def label_components(problem: DirectionProblem, weights: Weights, rtol: float | None) -> Labels:
    """Return the component of each penalised coordinate, numbered from 0 by first coordinate.

    All are in one where the others cannot be eliminated, as far from an optimum, or a row counts next to nothing;
    and where points are linked, whose sums may be nothing but rounding.
    """
    used, m, n = ~problem.zero_rows, int(np.count_nonzero(problem.c)), len(problem.X)
    together, labels = np.zeros(m, dtype=np.int64), np.arange(m)
    if rtol is None and (problem.summed or not weights.hold(used)):
        return together
    split = block_problem(problem)
    at = eliminate(split, np.where(used, weights.u, 0.0), 1.0)
    radius = None if rtol is not None or at is None else radius_of_gap(split, at, weights, used)
    if at is None or (rtol is None and radius is None):
        return together
    for block, rest in ranges_of_columns(m):
        off: Array | float = rtol or 0.0
        sides = np.outer(split.c[block], split.c[rest])
        if radius is not None:
            off = at.box + (1.0 + sum_error(n + 64)) * radius(block, rest) / sides
        j, k = np.nonzero(~(np.abs(block_of(split, at, block, rest) / sides) + off < 1.0))
        labels = join_labels(labels, j + block.start, k + block.start)
    return number_by_first(labels)


def radius_of_gap(
    problem: BlockProblem, at: SchurComplement, weights: Weights, used: Mask
) -> Callable[[slice, slice], Array] | None:
    """Return how far G at t = 1 may be from the optimal one for two ranges of columns, but for rounding.

    The others are eliminated from both: S_FF may be off by `error`, and its columns S_Fj by `slack`.  None where the
    optimal S_FF may be singular.
    """
    n, F, squares = len(problem.X), problem.F, problem.X.squares()
    u, spread = np.where(used, weights.u, 0.0), np.where(used, weights.w * (weights.gap / n), 0.0)
    values = np.linalg.eigvalsh(np.eye(F.shape[1]) - F.T @ (u[:, None] * F) / n)
    error = float(np.sqrt((F**2).T @ (spread[:, None] * F**2)).sum())
    least = float(values.min(initial=np.inf)) - error
    if least <= LEAST_LEFT * float(np.abs(values).max(initial=0.0)):
        return None
    size = np.linalg.norm(cross_products(problem, at.gram_weights), axis=0)
    slack = np.sqrt(np.sum(squares.products_with(spread[:, None] * F**2), axis=1) * n)

    def radius(first: slice, second: slice) -> Array:
        off = np.sqrt(np.maximum(squares.gram(spread, first, second), 0.0))
        if F.shape[1]:
            known, most = np.outer(size[first], size[second]), np.outer((size + slack)[first], (size + slack)[second])
            off += known * (error / (values[0] * least)) + (most - known) / least
        return off

    return radius
