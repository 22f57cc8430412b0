"""Pairs of coordinates, looked at by blocks of columns: which are beyond their box, and which a gap proves apart.

What is said to be in its box, or apart, is so with rounding counted; no matrix of all pairs is stored.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import BlockProblem, Indices, join_labels
from diffrac_cvx.certificates.block_proof import NO_PAIRS, Pairs, SchurComplement, cross_products
from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.points import Chosen, Mask
from diffrac_cvx.points.ranges import are_finite
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


class Radius(NamedTuple):
    """How far G_jk may be from the optimal one, over c_j c_k, for pairs of two sets of coordinates; and the most."""

    between: Callable[[Chosen, Chosen], Array]
    largest: float = np.inf


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def quick_radius(problem: BlockProblem, q: Array, gap: float, u: Array, t: float) -> Radius | None:
    r"""Return the radius at weights u and t that the gap of a point of energies q leaves; None where it is not known.

    It is not with unpenalised coordinates, nor where a row counts next to nothing, nor where points are linked.

    As `weights_at`, and :math:`(\mathrm{mean}\, w x_j^2 x_k^2)^2 \le \mathrm{mean}\, w x_j^4\ \mathrm{mean}\, w x_k^4`.
    Where q is below its floor, u is not 1/sqrt(q), and what that changes is added.
    """
    weights, zero = weights_at(q, gap), problem.problem.zero_rows
    if problem.F.shape[1] or problem.problem.summed or not weights.hold(~zero):
        return None
    used = np.where(zero, 0.0, weights.w)
    fourth = problem.squares.squares().row_sums(used) / len(used)  # mean w x_j^4
    floored = problem.weighted_squares(np.where(zero, 0.0, np.abs(weights.u - u)))
    near, of_t = np.sqrt(np.sqrt(weights.gap * fourth) + floored), np.sqrt(abs(t - 1.0) * problem.diagonal)
    return product_radius((1.0 + sum_error(problem.most_rows + 64)) * np.stack([near, of_t]) / problem.c)


def product_radius(F: Array) -> Radius:
    """Return the radius F_j'F_k, from a column for each coordinate."""
    most = float(np.max(np.sum(F**2, axis=0), initial=0.0))
    return Radius(lambda first, second: F[:, first].T @ F[:, second], most)


class Scan(NamedTuple):
    """Pairs j < k in different groups with |G_jk| > share t c_j c_k, and the components that a radius proves."""

    pairs: Pairs
    proved: Labels | None


class TooManyError(Exception):
    """More pairs may be beyond their box than are of any use."""


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def scan(
    at: SchurComplement, labels: Labels, share: float, radius: Radius | None = None, *, most: float = np.inf
) -> Scan:
    """Look at G = M - t A + K'K off the diagonal, by blocks of columns; O(n m^2).

    The columns are divided by c_j first, so that the boxes are all equal.  Single precision is used where its rounding
    is small beside a box, unless the radius has no largest: pairs within that rounding of the share are kept too, and G
    of those kept is computed again.  TooManyError is raised beyond the most pairs.
    """
    columns, m = scaled_columns(at, exact=radius is not None and np.isinf(radius.largest)), at.K.shape[1]
    least, off = share * at.side - columns.rounding, columns.rounding + at.box
    parts, found, every = [NO_PAIRS], 0, np.arange(m)
    proved = None if radius is None else every
    step = min(COLUMNS, max(PRODUCTS // max(m, 1), 16))
    for start in range(0, m, step):
        poll()
        block, rest = slice(start, min(start + step, m)), slice(start, m)
        G = columns.products(block, rest)
        np.fill_diagonal(G, 0.0)
        size = np.abs(G)
        largest = float(size.max(initial=0.0))
        chosen = (block, rest) if columns.order is None else (columns.order[block], columns.order[rest])
        first, second = every[chosen[0]], every[chosen[1]]
        # Where c_j c_k is too small a number to divide by, G_jk / (c_j c_k) may be none: such a pair is beyond its box.
        if not largest <= least:
            j, k = np.nonzero(~(size <= least))
            apart = (k > j) & (labels[first[j]] != labels[second[k]])
            j, k = j[apart], k[apart]
            found += len(j)
            if found > most:
                raise TooManyError
            parts.append(kept_pairs(at, chosen, (j, k), None if columns.rounding else G[j, k], most < np.inf))
        if proved is not None and radius is not None and not largest + radius.largest + off < 1.0:
            j, k = np.nonzero(~(size + radius.between(*chosen) + off < 1.0))
            give_up = len(j) > size.size // 4 and size.size > COLUMNS and np.isfinite(radius.largest)
            proved = None if give_up else join_labels(proved, first[j], second[k])
    kept = Pairs(*(np.concatenate([part[i] for part in parts]) for i in range(4)))
    return Scan(kept.take(np.flatnonzero(~(np.abs(kept.G) <= share * kept.side))), proved)


def single_rounding(at: SchurComplement) -> float:
    """Return what single precision may change of G_jk / (c_j c_k); infinite where there are too few columns to use it.

    |fl(x'y) - x'y| <= k eps |x|'|y| for k terms, and the terms themselves are rounded.
    """
    if at.K.shape[1] < SINGLE_FROM:
        return float("inf")
    squares = at.problem.rows.X.squares().row_sums(np.abs(at.gram_weights)) + np.sum(at.K**2, axis=0)
    size = float(np.max(squares / at.problem.c**2, initial=0.0))
    return 1.1 * (len(at.gram_weights) + len(at.K) + 4) * float(np.finfo(np.float32).eps) * size


def kept_pairs(
    at: SchurComplement, sets: tuple[Chosen, Chosen], places: tuple[Indices, Indices], scaled: Array | None, alone: bool
) -> Pairs:
    """Return the pairs at these places of two sets of coordinates, G in double precision: one by one if few."""
    c, (first, second) = at.problem.c, (np.arange(at.K.shape[1])[some] for some in sets)
    j, k = first[places[0]], second[places[1]]
    box = c[j] * c[k]
    pairs = Pairs(np.minimum(j, k), np.maximum(j, k), box, at.side * box)
    if scaled is not None and are_finite(scaled) and not alone:
        return pairs._replace(G=scaled * box)
    if alone or len(j) * GATHER <= len(first) * len(second):
        return look_again(at, pairs)
    return pairs._replace(G=block_of(at, *sets)[places])


class ScaledProducts(NamedTuple):
    """What pairs are judged by: G_jk / (c_j c_k) for two ranges of columns, in this order if any, up to `rounding`."""

    products: Callable[[slice, slice], npt.NDArray[np.floating[Any]]]
    rounding: float
    order: Indices | None = None


def scaled_columns(at: SchurComplement, *, exact: bool = False) -> ScaledProducts:
    """Return the products of pairs, in single precision where that is allowed, exact enough, and pays.

    In single precision columns whose K is 0 come first: their products with the others are those of X alone.
    """
    X, c, K = at.problem.rows.X, at.problem.c, at.K
    rounding = single_rounding(at) if X.in_memory and not exact else float("inf")
    if rounding > SINGLE_ROUNDING:
        return ScaledProducts(lambda first, rest: block_of(at, first, rest) / np.outer(c[first], c[rest]), 0.0)
    right = np.vstack([X.array() / c, K / c]).astype(np.float32)
    weights = np.append(at.gram_weights, np.ones(len(K))).astype(np.float32)[:, None]
    used, order = K.any(axis=0), None
    simple = len(c) - int(used.sum())
    if 0 < simple < len(c):
        order = np.argsort(used, kind="stable")
        right = right[:, order]

    def products(first: slice, rest: slice) -> npt.NDArray[np.float32]:
        rows = slice(len(X) if first.stop <= simple else None)
        return np.asarray((right[rows, first] * weights[rows]).T @ right[rows, rest])

    return ScaledProducts(products, rounding, order)


def block_of(at: SchurComplement, first: Chosen, rest: Chosen) -> Array:
    """Return G for two sets of columns."""
    return at.problem.rows.X.gram(at.gram_weights, first, rest) + at.K[:, first].T @ at.K[:, rest]


def look_again(at: SchurComplement, pairs: Pairs) -> Pairs:
    """Return the same pairs at other weights."""
    problem, G = at.problem, np.empty(len(pairs.j))
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


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def radius_of_gap(at: SchurComplement, weights: Weights, used: Mask) -> Radius | None:
    """Return how far G at t = 1 may be from the optimal one, rounding of these sums included.

    The others are eliminated from both: S_FF may be off by `error`, and its columns S_Fj by `slack`.  None where the
    optimal S_FF may be singular.
    """
    problem, n, F, squares = at.problem, len(at.problem.X), at.problem.F, at.problem.squares
    u, spread = np.where(used, weights.u, 0.0), np.where(used, weights.w * (weights.gap / n), 0.0)
    values = np.linalg.eigvalsh(np.eye(F.shape[1]) - F.T @ (u[:, None] * F) / n)
    error = float(np.sqrt((F**2).T @ (spread[:, None] * F**2)).sum())
    least = float(values.min(initial=np.inf)) - error
    if least <= LEAST_LEFT * float(np.abs(values).max(initial=0.0)):
        return None
    size = np.linalg.norm(cross_products(problem, at.gram_weights), axis=0)
    slack = np.sqrt(np.sum(squares.products_with(spread[:, None] * F**2), axis=1) * n)

    def between(first: Chosen, second: Chosen) -> Array:
        off = np.sqrt(np.maximum(squares.gram(spread, first, second), 0.0))
        if F.shape[1]:
            known, most = np.outer(size[first], size[second]), np.outer((size + slack)[first], (size + slack)[second])
            off += known * (error / (values[0] * least)) + (most - known) / least
        return np.asarray((1.0 + sum_error(n + 64)) * off / np.outer(problem.c[first], problem.c[second]))

    return Radius(between)
