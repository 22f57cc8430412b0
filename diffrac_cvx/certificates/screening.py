"""Screening of pairs of coordinates by blocks of columns: violated pairs, and pairs that a gap certifies as separate.

The results hold with rounding included, and no matrix of all pairs is stored.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import BlockProblem, IntegerArray, join_labels
from diffrac_cvx.certificates.proof import INSIDE, NO_PAIRS, Pairs, Remainder
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.points import Indexer, Mask
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.result import Labels

COLUMN_BLOCK = 512  # of X multiplied with the others at a time, fewer if there are many others
MAX_PRODUCTS = 5_000_000  # at a time
NEAR_BOUND = 0.7  # fraction of its bound: pairs with a larger |G_jk| are stored, to be checked again alone
SINGLE_PRECISION_SIZE = 500  # penalised coordinates from which on single precision is used first
MAX_SINGLE_PRECISION_ERROR = 0.1  # largest error of single precision, as a fraction of the bound
PAIR_BATCH = 20_000  # pairs between deadline checks
MIN_GAP = 1e-13  # smaller gaps are rounding
MIN_SQRT_Q = 1e-40  # of a row; below, fourth powers of its entries underflow
MIN_RELATIVE_EIGENVALUE = 1e-9  # of S on the unpenalised coordinates, below which nothing is certified
GATHER_COST = 30  # time of a single product relative to one in a matrix product


class GapSafeWeights(NamedTuple):
    """u at a V, and w with |G_jk - G*_jk|^2 <= gap mean_i w_i x_ij^2 x_ik^2, G* the optimum and x_i the rows."""

    u: Array
    w: Array
    gap: float

    def are_valid(self, mask: Mask) -> bool:
        """Whether w has not underflowed at the rows used: otherwise it is no bound."""
        return bool(np.max(self.u[mask], initial=0.0) <= 1.0 / MIN_SQRT_Q)


def gap_safe_weights(q: Array, gap: float) -> GapSafeWeights:
    r"""Return u = 1/sqrt(q), and the weights by which the certified gap bounds the distance to the optimum.

    With :math:`r = \sqrt q` and :math:`r^*` its optimum, duality gives  gap >= mean (r - r*)^2 / r*.  Then
    :math:`(G - G^*)_{jk}^2 \le \mathrm{gap} \cdot \mathrm{mean}_i\, x_{ij}^2 x_{ik}^2 / (r_i^2 r_i^*)` by Cauchy and
    Schwarz, and r* is bounded from below by the same inequality, row by row.
    """
    gap = max(gap, MIN_GAP)
    r = np.maximum(np.sqrt(q), 1e-100)
    half = len(r) * gap / 2
    least = r**2 / (r + half + np.sqrt(2 * half * r + half**2))  # r + half - sqrt(...), without its cancellation
    return GapSafeWeights(1.0 / r, 1.0 / (r**2 * np.maximum(least, 1e-100)), gap)


class SafeRadius(NamedTuple):
    """Bound on the distance of G_jk to its optimum, over c_j c_k, for pairs of two sets; and its maximum."""

    between: Callable[[Indexer, Indexer], Array]
    largest: float = np.inf


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def cheap_safe_radius(problem: BlockProblem, q: Array, gap: float, u: Array, t: float) -> SafeRadius | None:
    r"""Return the safe radius at weights u and t from the gap of a point with these q; None if it is not known.

    It is not known with unpenalised coordinates or must-link constraints, or if a row has nearly no weight.

    As `gap_safe_weights`, with
    :math:`(\mathrm{mean}\, w x_j^2 x_k^2)^2 \le \mathrm{mean}\, w x_j^4\ \mathrm{mean}\, w x_k^4`.
    If q is below its floor, u is not 1/sqrt(q), and the radius includes the difference.
    """
    weights, zero = gap_safe_weights(q, gap), problem.problem.zero_rows
    if problem.F.shape[1] or problem.problem.max_chunklet_size or not weights.are_valid(~zero):
        return None
    row_weights = np.where(zero, 0.0, weights.w)
    fourth = problem.squares.squares().weighted_row_sum(row_weights) / len(row_weights)  # mean w x_j^4
    floored = problem.weighted_squares(np.where(zero, 0.0, np.abs(weights.u - u)))
    near, of_t = np.sqrt(np.sqrt(weights.gap * fourth) + floored), np.sqrt(abs(t - 1.0) * problem.diagonal)
    return factored_radius((1.0 + sum_error(problem.n_terms + 64)) * np.stack([near, of_t]) / problem.c)


def factored_radius(F: Array) -> SafeRadius:
    """Return the radius F_j'F_k, from one column F_j per coordinate."""
    largest = float(np.max(np.sum(F**2, axis=0), initial=0.0))
    return SafeRadius(lambda first, second: F[:, first].T @ F[:, second], largest)


class ScreeningResult(NamedTuple):
    """Pairs j < k in different blocks with |G_jk| > fraction t c_j c_k, and components certified by a safe radius."""

    pairs: Pairs
    certified: Labels | None


class TooManyPairsError(Exception):
    """More pairs may violate their bound than a certificate can handle."""


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def screen_pairs(
    remainder: Remainder,
    labels: Labels,
    fraction: float,
    radius: SafeRadius | None = None,
    *,
    max_pairs: float = np.inf,
) -> ScreeningResult:
    """Screen the off-diagonal of G = M - t A + K'K, by blocks of columns; O(n m^2).

    The columns are divided by c_j first, so that all bounds are equal.  Single precision is used if its rounding is
    small compared with the bound, unless `radius.largest` is infinite: pairs within that rounding of the fraction are
    selected too, and their G is recomputed.  TooManyPairsError is raised at more than `max_pairs`.  With such a limit
    G stays in single precision, and its rounding is subtracted from the bounds: the excess is that of a multiplier too.
    """
    columns, m = scaled_columns(remainder, exact=radius is not None and np.isinf(radius.largest)), remainder.K.shape[1]
    error, known = columns.rounding + remainder.entry_error, remainder.known_signs
    # F_j'F_k <= |F_j| |F_k|: a bound on the error of G_jk over c_j c_k for each column and the largest of a block.
    sizes = np.sqrt(remainder.errors) / remainder.problem.c
    sizes = sizes if columns.order is None else sizes[columns.order]
    parts, n_found, indices = [NO_PAIRS], 0, np.arange(m)
    certified = None if radius is None else indices
    step = min(COLUMN_BLOCK, max(MAX_PRODUCTS // max(m, 1), 16))
    for start in range(0, m, step):
        check_deadline()
        block, remaining = slice(start, min(start + step, m)), slice(start, m)
        count_work(6.0 * (len(remainder.gram_weights) + len(remainder.K)) * (block.stop - start) * (m - start))
        G = columns.products(block, remaining)
        np.fill_diagonal(G, 0.0)
        columns_of_block = (
            (block, remaining) if columns.order is None else (columns.order[block], columns.order[remaining])
        )
        first, second = indices[columns_of_block[0]], indices[columns_of_block[1]]
        size = np.abs(G) if known is None else np.where(np.outer(known[first], known[second]), G, np.abs(G))
        largest = float(size.max(initial=0.0))
        least = fraction * (remainder.t * INSIDE - sizes[block].max() * sizes[remaining]) - columns.rounding
        # If c_j c_k is too small to divide by, G_jk / (c_j c_k) may be NaN: such a pair counts as violated.
        if not largest <= least.min():
            j, k = np.nonzero(~(size <= (least - 4.0 * np.finfo(size.dtype).eps * np.abs(least)).astype(size.dtype)))
            apart = (k > j) & (labels[first[j]] != labels[second[k]])
            j, k = j[apart], k[apart]
            n_found += len(j)
            if n_found > max_pairs:
                raise TooManyPairsError
            parts.append(
                select_pairs(
                    remainder, columns_of_block, (j, k), G[j, k], columns.rounding, recomputed=max_pairs == np.inf
                )
            )
        if certified is not None and radius is not None and not largest + radius.largest + error < 1.0:
            j, k = np.nonzero(~(size + radius.between(*columns_of_block) + error < 1.0))
            give_up = len(j) > size.size // 4 and size.size > COLUMN_BLOCK and np.isfinite(radius.largest)
            certified = None if give_up else join_labels(certified, first[j], second[k])
    selected = Pairs(*(np.concatenate([part[i] for part in parts]) for i in range(4)))
    size = np.abs(selected.G)
    if known is not None:  # C has no lower side
        size = np.where(known[selected.j] & known[selected.k], selected.G, size)
    return ScreeningResult(selected.take(np.flatnonzero(~(size <= fraction * selected.bound))), certified)


def single_precision_error(remainder: Remainder) -> float:
    """Return a bound on the single-precision error of G_jk / (c_j c_k); infinite if there are too few columns.

    |fl(x'y) - x'y| <= k eps |x|'|y| for k terms, and the terms themselves are rounded.
    """
    if remainder.K.shape[1] < SINGLE_PRECISION_SIZE:
        return float("inf")
    squares = remainder.problem.rows.squares().weighted_row_sum(np.abs(remainder.gram_weights)) + np.sum(
        remainder.K**2, axis=0
    )
    size = float(np.max(squares / remainder.problem.c**2, initial=0.0))
    return 1.1 * (len(remainder.gram_weights) + len(remainder.K) + 4) * float(np.finfo(np.float32).eps) * size


def select_pairs(
    remainder: Remainder,
    sets: tuple[Indexer, Indexer],
    positions: tuple[IntegerArray, IntegerArray],
    scaled: npt.NDArray[np.floating[Any]],
    rounding: float,
    *,
    recomputed: bool,
) -> Pairs:
    """Return the pairs at these positions of two sets, with G in double precision, or bounds less its rounding."""
    c, (first, second) = remainder.problem.c, (np.arange(remainder.K.shape[1])[some] for some in sets)
    j, k = first[positions[0]], second[positions[1]]
    pairs = Pairs(np.minimum(j, k), np.maximum(j, k), scaled * (c[j] * c[k]), remainder.bounds(j, k))
    if are_finite(scaled) and not (recomputed and rounding):
        return pairs._replace(bound=pairs.bound - rounding * (c[j] * c[k]))
    if len(j) * GATHER_COST <= len(first) * len(second):
        return recompute_pairs(remainder, pairs)
    return pairs._replace(G=remainder.gram(*sets)[positions])


class ScaledProducts(NamedTuple):
    """G_jk / (c_j c_k) for two ranges of columns, in `order` if any, with an error of at most `rounding`."""

    products: Callable[[slice, slice], npt.NDArray[np.floating[Any]]]
    rounding: float
    order: IntegerArray | None = None


def scaled_columns(remainder: Remainder, *, exact: bool = False) -> ScaledProducts:
    """Return the scaled products of pairs, in single precision if allowed, accurate enough and faster.

    In single precision columns with K = 0 come first: their products with the others need X alone.
    """
    X, c, K = remainder.problem.rows, remainder.problem.c, remainder.K
    rounding = float("inf") if exact else single_precision_error(remainder)
    scaled = X.in_single_precision(1.0 / c) if rounding <= MAX_SINGLE_PRECISION_ERROR * remainder.t else None
    if scaled is None:
        return ScaledProducts(lambda first, rest: remainder.gram(first, rest) / np.outer(c[first], c[rest]), 0.0)
    right = np.vstack([scaled, (K / c).astype(np.float32)])
    weights = np.append(remainder.gram_weights, np.ones(len(K))).astype(np.float32)[:, None]
    in_K, order = K.any(axis=0), None
    simple = len(c) - int(in_K.sum())
    if 0 < simple < len(c):
        order = np.argsort(in_K, kind="stable")
        right = right[:, order]

    def products(first: slice, others: slice) -> npt.NDArray[np.float32]:
        rows = slice(len(X) if first.stop <= simple else None)
        return np.asarray((right[rows, first] * weights[rows]).T @ right[rows, others])

    return ScaledProducts(products, rounding, order)


def recompute_pairs(remainder: Remainder, pairs: Pairs) -> Pairs:
    """Return the same pairs at other weights."""
    problem, G = remainder.problem, np.empty(len(pairs.j))
    for start in range(0, len(G), PAIR_BATCH):
        check_deadline()
        some = slice(start, start + PAIR_BATCH)
        j, k = pairs.j[some], pairs.k[some]
        G[some] = problem.rows.pair_sums(remainder.gram_weights, j, k) + np.sum(
            remainder.K[:, j] * remainder.K[:, k], axis=0
        )
    return Pairs(pairs.j, pairs.k, G, remainder.bounds(pairs.j, pairs.k))


def largest_safe_t(problem: BlockProblem, t: float) -> float:
    """Return the largest t at which all violated pairs are among those stored at a smaller t.

    |G_jk| changes by at most the change of t, times A_jk.  With unpenalised coordinates it may change by more.
    """
    if problem.F.shape[1]:
        return t
    return t * (
        1.0 + (1.0 - NEAR_BOUND) * float(np.min(problem.c**2 / np.maximum(problem.diagonal, 1e-300), initial=np.inf))
    )


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def gap_safe_radius(remainder: Remainder, weights: GapSafeWeights, mask: Mask) -> SafeRadius | None:
    """Return the safe radius of G at t = 1 around its optimum, rounding of these sums included.

    F is eliminated from both: S_FF has an error of at most `error`, and its columns S_Fj of at most `slack`.  None if
    the optimal S_FF may be singular.
    """
    problem, n, F, squares = remainder.problem, len(remainder.problem.X), remainder.problem.F, remainder.problem.squares
    u, gap_weights = np.where(mask, weights.u, 0.0), np.where(mask, weights.w * (weights.gap / n), 0.0)
    values = np.linalg.eigvalsh(np.eye(F.shape[1]) - F.T @ (u[:, None] * F) / n)
    error = float(np.sqrt((F**2).T @ (gap_weights[:, None] * F**2)).sum())
    least = float(values.min(initial=np.inf)) - error
    if least <= MIN_RELATIVE_EIGENVALUE * float(np.abs(values).max(initial=0.0)):
        return None
    size = np.linalg.norm(problem.products(remainder.gram_weights, problem.whitened_rows), axis=0)
    slack = np.sqrt(np.sum(squares.rmatvec(gap_weights[:, None] * F**2), axis=1) * n)

    def between(first: Indexer, second: Indexer) -> Array:
        distance = np.sqrt(np.maximum(squares.gram(gap_weights, first, second), 0.0))
        if F.shape[1]:
            sizes, largest_sizes = (
                np.outer(size[first], size[second]),
                np.outer((size + slack)[first], (size + slack)[second]),
            )
            distance += sizes * (error / (values[0] * least)) + (largest_sizes - sizes) / least
        return np.asarray((1.0 + sum_error(n + 64)) * distance / np.outer(problem.c[first], problem.c[second]))

    return SafeRadius(between)
