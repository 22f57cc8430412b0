"""Screening of pairs of coordinates for violations of their box, by blocks of columns.

The results hold with rounding included, and no matrix of all pairs is stored.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import IntegerArray
from diffrac_cvx.certificates.proof import INSIDE, NO_PAIRS, Pairs, Remainder
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.result import Labels

COLUMN_BLOCK = 512  # of X multiplied with the others at a time, fewer if there are many others
MAX_PRODUCTS = 5_000_000  # at a time
SINGLE_PRECISION_SIZE = 500  # penalised coordinates from which on single precision is used first
MAX_SINGLE_PRECISION_ERROR = 0.1  # largest error of single precision, as a fraction of the bound
PAIR_BATCH = 20_000  # pairs between deadline checks
GATHER_COST = 30  # time of a single product relative to one in a matrix product


class TooManyPairsError(Exception):
    """More pairs may violate their bound than a certificate can handle."""


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def screen_pairs(remainder: Remainder, labels: Labels, *, max_pairs: float = np.inf) -> Pairs:
    """Return the pairs in different blocks that may violate |G_jk| <= t c_j c_k, G = M - t A + K'K; O(n m^2).

    The columns are divided by c_j first, so that all bounds are equal.  Single precision is used if its rounding is
    small compared with the bound: pairs within that rounding of the bound are selected too, and their G is
    recomputed.  TooManyPairsError is raised at more than `max_pairs`.  With such a limit G stays in single precision,
    and its rounding is subtracted from the bounds: the excess is that of a multiplier too.
    """
    (products, rounding, order), known = scaled_columns(remainder), remainder.known_signs
    # F_j'F_k <= |F_j| |F_k|: a bound on the error of G_jk over c_j c_k for each column and the largest of a block.
    sizes, m = (np.sqrt(remainder.errors) / remainder.problem.c)[order], len(order)
    parts, n_found = [NO_PAIRS], 0
    for block, remaining in column_blocks(m):
        check_deadline()
        G, first, second = products(block, remaining), order[block], order[remaining]
        count_work(6.0 * (len(remainder.gram_weights) + len(remainder.K)) * G.size)
        np.fill_diagonal(G, 0.0)
        size = np.abs(G) if known is None else np.where(np.outer(known[first], known[second]), G, np.abs(G))
        least = remainder.t * INSIDE - sizes[block].max() * sizes[remaining] - rounding
        # If c_j c_k is too small to divide by, G_jk / (c_j c_k) may be NaN: such a pair counts as violated.
        if float(size.max(initial=0.0)) <= least.min():
            continue
        j, k = np.nonzero(~(size <= (least - 4.0 * np.finfo(size.dtype).eps * np.abs(least)).astype(size.dtype)))
        apart = (k > j) & (labels[first[j]] != labels[second[k]])
        j, k = j[apart], k[apart]
        n_found += len(j)
        if n_found > max_pairs:
            raise TooManyPairsError
        parts.append(
            select_pairs(remainder, (first, second), (j, k), G[j, k], rounding, recomputed=max_pairs == np.inf)
        )
    selected = Pairs(*(np.concatenate([part[i] for part in parts]) for i in range(4)))
    size = np.abs(selected.G)
    if known is not None:  # C has no lower side
        size = np.where(known[selected.j] & known[selected.k], selected.G, size)
    return selected.take(np.flatnonzero(~(size <= selected.bound)))


def column_blocks(m: int) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of columns, and these with all columns after them: the pairs of all of them are those of all."""
    step = min(COLUMN_BLOCK, max(MAX_PRODUCTS // max(m, 1), 16))
    for start in range(0, m, step):
        yield slice(start, min(start + step, m)), slice(start, m)


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
    sets: tuple[IntegerArray, IntegerArray],
    positions: tuple[IntegerArray, IntegerArray],
    scaled: npt.NDArray[np.floating[Any]],
    rounding: float,
    *,
    recomputed: bool,
) -> Pairs:
    """Return the pairs at these positions of two sets, with G in double precision, or bounds less its rounding."""
    c, (first, second) = remainder.problem.c, sets
    j, k = first[positions[0]], second[positions[1]]
    pairs = Pairs(np.minimum(j, k), np.maximum(j, k), scaled * (c[j] * c[k]), remainder.bounds(j, k))
    if are_finite(scaled) and not (recomputed and rounding):
        return pairs._replace(bound=pairs.bound - rounding * (c[j] * c[k]))
    if len(j) * GATHER_COST > len(first) * len(second):
        return pairs._replace(G=remainder.gram(*sets)[positions])
    for start in range(0, len(j), PAIR_BATCH):
        check_deadline()
        some = slice(start, start + PAIR_BATCH)
        products = np.sum(remainder.K[:, j[some]] * remainder.K[:, k[some]], axis=0)
        pairs.G[some] = remainder.problem.rows.pair_sums(remainder.gram_weights, j[some], k[some]) + products
    return pairs


def scaled_columns(
    remainder: Remainder,
) -> tuple[Callable[[slice, slice], npt.NDArray[np.floating[Any]]], float, IntegerArray]:
    """Return the products G_jk / (c_j c_k) of two ranges of columns, a bound on their error, and the columns' order.

    They are in single precision if it is accurate enough, and faster.  Columns with K = 0 then come first: their
    products with the others need X alone.
    """
    X, c, K = remainder.problem.rows, remainder.problem.c, remainder.K
    rounding, in_order = single_precision_error(remainder), np.arange(len(c))
    scaled = X.in_single_precision(1.0 / c) if rounding <= MAX_SINGLE_PRECISION_ERROR * remainder.t else None
    if scaled is None:
        return lambda first, rest: remainder.gram(first, rest) / np.outer(c[first], c[rest]), 0.0, in_order
    right = np.vstack([scaled, (K / c).astype(np.float32)])
    weights = np.append(remainder.gram_weights, np.ones(len(K))).astype(np.float32)[:, None]
    in_K = K.any(axis=0)
    order, simple = np.argsort(in_K, kind="stable"), len(c) - int(in_K.sum())
    right = right[:, order] if 0 < simple < len(c) else right

    def products(first: slice, others: slice) -> npt.NDArray[np.float32]:
        rows = slice(len(X) if first.stop <= simple else None)
        return np.asarray((right[rows, first] * weights[rows]).T @ right[rows, others])

    return products, rounding, order
