r"""Screening of pairs of coordinates, by blocks of columns, for violations of their box and for components.

The results are valid in spite of rounding, and no matrix of all pairs is stored.

Components: after elimination of the unpenalised coordinates F, G = M - A + K'K at the optimal weights u.  Groups are in
different components if the spectral norm of G_gh, or of its positive part for sign constraints, is below w_g w_h: then
C = G is strictly inside the dual set there, so that every optimal V is 0.  A gap bounds the error of each entry of G,
and the Frobenius norm of these bounds is a bound for the block.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.certificates.block_problem import block_problem, join_labels, number_by_first
from diffrac_cvx.certificates.proof import (
    INSIDE,
    MEAN_ROUNDINGS,
    NO_PAIRS,
    Bound,
    Multipliers,
    Pairs,
    Remainder,
    bound_at,
    eliminate,
    prove,
    sums_of_rows,
)
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.points.rows import Indexer, Indices, Mask
from diffrac_cvx.problem.direction_problem import DirectionProblem, without_l1
from diffrac_cvx.problem.penalties.base import PairPenalty, groups_of
from diffrac_cvx.problem.penalties.group import block_norms
from diffrac_cvx.problem.result import Labels

Floats = npt.NDArray[np.floating[Any]]
Array32 = npt.NDArray[np.float32]
Product = Callable[[slice, slice], Array32]
Distance = Callable[[Indexer, Indexer], Array]  # bound on |G_jk - optimal G_jk| / (c_j c_k)
MAX_PAIRS_PER_COORDINATE = 60  # violated pairs outside a working set, above which the bound fails anyway
COLUMN_BLOCK = 512  # columns of X multiplied by the other columns at a time, fewer if these are many
MAX_PRODUCTS = 5_000_000  # products computed at a time
SINGLE_PRECISION_SIZE = 200  # penalised coordinates at or above which single precision is used first
MAX_SINGLE_PRECISION_ERROR = 0.1  # largest error of single precision, as a fraction of the bound
SINGLE_RANGE = 1e20  # largest sum of squares, or inverse of one, for which underflow is below rounding


class Verdict(NamedTuple):
    """Result of an attempt to prove a lower bound: the bound, or coordinates, pairs and directions that violate it."""

    bound: Bound | None = None  # the bound, if it is proved
    violated: Indices = NO_PAIRS.j  # coordinates where S is not proved positive, by decreasing violation
    pairs: Pairs = NO_PAIRS  # pairs in different blocks that may violate their box
    directions: Array | None = None  # (D, v), in which S is negative
    C: Array | None = None  # (w + k, k), next multiplier of the violated coordinates, with the working set first


class TooManyPairsError(Exception):
    """More pairs may violate their bound than a certificate can handle."""


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def screen_pairs(remainder: Remainder, labels: Labels, *, max_pairs: float = np.inf) -> Pairs:
    """Return the pairs in different blocks that may violate their box, G = M - t A + K'K; O(n m^2).

    Single precision is used first if its rounding error, which is subtracted from the bound, is small compared with the
    bound.  The pairs found are recomputed in double precision, unless there is a limit `max_pairs`: their excess then
    refers to a valid multiplier too.  More pairs than the limit raise TooManyPairsError.
    """
    c, known, parts, n_found = remainder.problem.c, remainder.known_signs, [NO_PAIRS], 0
    product, rounding = single_precision(remainder)
    again = max_pairs == np.inf and product is not None
    # F_j'F_k <= |F_j| |F_k| bounds the error of G_jk over c_j c_k, for each column and the largest of a block.
    sizes = np.sqrt(remainder.errors) / c
    for block, remaining, G, size in relative_grams(remainder, product):
        least = remainder.t * INSIDE * remainder.problem.half_widths((block, None), remaining)
        least = least - sizes[block].max() * sizes[remaining] - rounding
        # If c_j c_k is too small to divide by, G_jk / (c_j c_k) may be NaN: such a pair counts as violated.
        if float(size.max(initial=0.0)) <= least.min():
            continue
        least = (least - 4.0 * np.finfo(size.dtype).eps * np.abs(least)).astype(size.dtype)
        rows, columns = np.nonzero(~(size <= least))
        j, k = block.start + rows, remaining.start + columns
        apart = np.flatnonzero((j < k) & (labels[j] != labels[k]))
        j, k, n_found = j[apart], k[apart], n_found + len(apart)
        if n_found > max_pairs:
            raise TooManyPairsError
        found = G[rows, columns][apart].astype(np.float64) * (c[j] * c[k])
        if again or not are_finite(found):
            (left, row), (right, column) = np.unique(j, return_inverse=True), np.unique(k, return_inverse=True)
            found = remainder.gram(left, right)[row, column]
        pairs = Pairs(j, k, found, remainder.bounds(j, k) - (0.0 if again else rounding) * (c[j] * c[k]))
        size = sides(pairs.G, None if known is None else known[j] & known[k])
        parts.append(pairs.take(np.flatnonzero(~(size <= pairs.bound))))
    return Pairs(*(np.concatenate([part[i] for part in parts]) for i in range(4)))


def screen_outside(remainder: Remainder) -> Pairs:
    """Return the pairs outside a working set that may violate their box; each coordinate is its own block."""
    m = len(remainder.problem.c)
    return screen_pairs(remainder, np.arange(m), max_pairs=MAX_PAIRS_PER_COORDINATE * m)


def single_precision(remainder: Remainder) -> tuple[Product | None, float]:
    """Return the products G_jk / (c_j c_k) of two ranges of columns in single precision, and a bound on their error.

    Return None if it is not accurate enough or not faster.  |fl(x'y) - x'y| <= k eps |x|'|y| for k terms; the terms
    themselves are rounded too.
    """
    c, K, weights = remainder.problem.c, remainder.K, np.abs(remainder.gram_weights)
    if len(c) < SINGLE_PRECISION_SIZE:
        return None, 0.0
    squares = remainder.problem.rows.squares().weighted_row_sum(weights) + np.sum(K**2, axis=0)
    size = float(np.max(squares / c**2, initial=0.0))
    rounding = 1.1 * (len(weights) + len(K) + 4) * float(np.finfo(np.float32).eps) * size
    is_accurate = rounding <= MAX_SINGLE_PRECISION_ERROR * remainder.t and 1.0 / SINGLE_RANGE < size < SINGLE_RANGE
    X = remainder.problem.rows.in_single_precision(1.0 / c) if is_accurate else None
    if X is None:
        return None, 0.0
    w, scaled_K = remainder.gram_weights.astype(np.float32)[:, None], (K / c).astype(np.float32)
    is_nonzero = np.asarray(K.any(axis=0))  # often most columns of K are 0

    def product(block: slice, remaining: slice) -> Array32:
        G = np.asarray((X[:, block] * w).T @ X[:, remaining], dtype=np.float32)
        j, k = np.flatnonzero(is_nonzero[block]), np.flatnonzero(is_nonzero[remaining])
        G[np.ix_(j, k)] += scaled_K[:, block][:, j].T @ scaled_K[:, remaining][:, k]
        return G

    return product, rounding


def sides(G: Floats, known: Mask | None) -> Floats:
    """Return |G_jk|, to compare with the box; G_jk instead if both signs are known, as C_jk has no lower bound."""
    return np.abs(G) if known is None else np.where(known, G, np.abs(G))


def relative_grams(
    remainder: Remainder, product: Product | None = None
) -> Iterator[tuple[slice, slice, Floats, Floats]]:
    """Yield a block of columns, the range of it and all later columns, G_jk / (c_j c_k) between them, and its `sides`.

    Together, the blocks cover all pairs.  The products in single precision are used if they are given.
    """
    c, known, m = remainder.problem.c, remainder.known_signs, len(remainder.problem.c)
    step = min(COLUMN_BLOCK, max(MAX_PRODUCTS // max(m, 1), 16))
    for start in range(0, m, step):
        check_deadline()
        block, remaining = slice(start, min(start + step, m)), slice(start, m)
        G: Floats = (
            remainder.gram(block, remaining) / np.outer(c[block], c[remaining])
            if product is None
            else product(block, remaining)
        )
        count_work(6.0 * (len(remainder.gram_weights) + len(remainder.K)) * G.size)
        np.fill_diagonal(G, 0.0)
        yield block, remaining, G, sides(G, None if known is None else np.outer(known[block], known[remaining]))


# The statement


def prove_bound(problem: DirectionProblem, given: Multipliers) -> float:
    """Return the lower bound that multipliers prove; -infinity if they prove none.

    This function does not search: every solver's search ends with it, and the checker calls it again.
    """
    t, n_roundings = given.t, MEAN_ROUNDINGS
    problem = without_l1(problem) if given.C is None and problem.has_l1 else problem
    if given.G is None:
        M, u, inverse_mean = None, given.u, problem.mean_inverse(given.u)
    else:
        _, M, u, inverse_mean, *_ = sums_of_rows(problem, given.G)
        n_roundings += problem.X.accumulation_length
    everything = np.arange(len(problem.c))
    split, is_working_set = (
        block_problem(problem, everything if given.free is None else given.free),
        given.labels is None,
    )
    C = scipy.sparse.csr_array((len(everything),) * 2) if given.C is None else scipy.sparse.csr_array(given.C)
    inside = dense(C[split.free][:, split.free]) if problem.has_l1 else None
    between = partial(split.off_diagonal.best_multiplier, t=t) if is_working_set and given.free is not None else None
    remainder = eliminate(split, u, t, inside, between, M=M)
    if remainder is None:
        return -np.inf
    remainder = remainder if given.Z is None else remainder.with_correction(given.Z)
    pairs, blocks = None, []
    if given.labels is None:
        try:
            pairs = screen_outside(remainder) if problem.pair_penalty.splits_into_blocks else None
        except TooManyPairsError:
            return -np.inf
    else:
        pairs, outside = screen_pairs(remainder, given.labels), C[split.penalized][:, split.penalized]
        for members in groups_of(given.labels):
            penalty = problem.pair_penalty.restrict(split.penalized[members])
            blocks.append((members, penalty.project_safe(symmetric(dense(outside[members][:, members])))))
    proved = not prove(remainder, pairs, [block for block in blocks if len(block[0]) > 1], max_directions=0)
    return bound_at(t, inverse_mean, n_roundings) if proved else -np.inf


def prove_normalized(problem: DirectionProblem, given: Multipliers) -> float:
    """Return the lower bound on (21), at least -1, that u, t and C prove; -infinity if they prove none."""
    theta, everything = given.t / 2.0, np.arange(len(problem.c))
    weights = problem.c * (1.0 - 8 * UNIT_ROUNDOFF) / max(theta, 1e-300) ** 0.5
    scaled = replace(problem, pair_penalty=problem.pair_penalty.with_weights(weights))
    C = dense(problem.pair_penalty.zero() if given.C is None else given.C)
    if eliminate(block_problem(scaled, everything), given.u, given.t, C / theta) is None:
        return -np.inf
    inverse_mean = round_up(problem.mean_inverse(given.u), MEAN_ROUNDINGS)
    return float(max(-round_up(inverse_mean / 2 + theta, 8), -1.0))


def normalized_value(problem: DirectionProblem, U: Array) -> float:
    """Return an upper bound on the objective of (21) at a factor with tr AV = 1; infinite if V is infeasible."""
    l1, mean_sqrt = problem.convex_term(U) - 1.0, problem.mean_sqrt(U)
    value_error = problem.pair_penalty.value_error_bound(U) if problem.has_l1 else 0.0
    relative_error = sum_error(4 * len(problem.X) + 4 * len(U)) + 2.0 * problem.whitening_error.data_error
    return float(l1 - mean_sqrt + round_up(relative_error * (1.0 + l1)) + 2.0 * value_error)


# Components


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def screen_components(problem: DirectionProblem, q: Array, gap: float) -> Labels:
    """Return the component of each penalised coordinate, numbered from 0 by first coordinate, from a point's q and gap.

    All are in one component if the unpenalised coordinates cannot be eliminated, which happens far from an optimum; if
    a row has nearly no weight; or with must-link constraints, because sums of points may be pure rounding error.
    """
    mask, one = ~problem.zero_rows, np.zeros(int(np.count_nonzero(problem.c)), dtype=np.int64)
    u, w = gap_safe_weights(q, gap)
    underflows = float(np.max(u[mask], initial=0.0)) > 1e40  # fourth powers of the entries of such a row
    # Coordinates with c = 0 may have multipliers too.
    if problem.sums.max_size or underflows or np.any(problem.pair_penalty.reference_weights > problem.c):
        return one
    split = block_problem(problem)
    remainder = eliminate(split, np.where(mask, u, 0.0), 1.0, whitened=True)
    distance = None if remainder is None else gap_safe_distance(remainder, np.where(mask, w, 0.0))
    if remainder is None or distance is None:
        return one
    pair_penalty = problem.pair_penalty.restrict(split.penalized)
    if not pair_penalty.splits_into_blocks:
        return number_by_first(screen_groups(remainder, pair_penalty, distance))
    labels = np.arange(len(split.c))
    for block, remaining, _, size in relative_grams(remainder):
        sides, radius = split.half_widths((block, None), remaining), distance(block, remaining)
        j, k = np.nonzero(~(size + (radius + remainder.entry_error) < sides))
        labels = join_labels(labels, block.start + j, remaining.start + k)
    return number_by_first(labels)


def screen_groups(remainder: Remainder, pair_penalty: PairPenalty, distance: Distance) -> Labels:
    """Return the component of each penalised coordinate, connecting groups by the distance."""
    m, c, groups = len(remainder.problem.c), remainder.problem.c, pair_penalty.groups
    require_memory(4 * 8.0 * m**2, f"the components of {m} features in groups", "use fewer features")
    first, everything = np.array([group[0] for group in groups], dtype=np.intp), slice(None)
    radii = (distance(everything, everything) + remainder.entry_error) * np.outer(c, c)
    norms = pair_penalty.dual_norms(remainder.gram(everything, everything))
    norms = (norms + block_norms(radii, groups)) * (1.0 + sum_error(m + 10))
    radii = pair_penalty.half_widths(first[:, None], first) * np.outer(c[first], c[first])
    joined = ~(norms < radii * (1.0 - sum_error(16)))
    found = np.empty(m, dtype=np.int64)
    for label, group in zip(connected_components(joined, directed=False)[1], groups, strict=True):
        found[group] = label
    return found


def gap_safe_weights(q: Array, gap: float) -> tuple[Array, Array]:
    r"""Return u = 1/sqrt(q), and w with |G_jk - G*_jk|^2 <= mean_i w_i x_ij^2 x_ik^2 for the optimal G* and rows x_i.

    With :math:`r = \sqrt q` and :math:`r^*` its optimum, duality gives  gap >= mean (r - r*)^2 / r*.  Then
    :math:`(G - G^*)_{jk}^2 \le \mathrm{gap} \cdot \mathrm{mean}_i\, x_{ij}^2 x_{ik}^2 / (r_i^2 r_i^*)` by Cauchy and
    Schwarz, and r* is bounded from below by the same inequality, row by row.
    """
    gap = max(gap, 1e-13)  # smaller gaps are rounding
    r = np.maximum(np.sqrt(q), 1e-100)
    half = len(r) * gap / 2
    least = r**2 / (r + half + np.sqrt(2 * half * r + half**2))  # r + half - sqrt(...), without its cancellation
    return 1.0 / r, gap / (r**2 * np.maximum(least, 1e-100))


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def gap_safe_distance(remainder: Remainder, w: Array) -> Distance | None:
    """Return a bound on the distance of G at t = 1 to its optimum, from `gap_safe_weights`, rounding included.

    F is eliminated from both: S_FF has an error of at most `error`, and the columns S_Fj of at most `slack`.  Return
    None if the optimal S_FF may be singular.
    """
    problem, u, F, squares = remainder.problem, remainder.u, remainder.problem.F, remainder.problem.squares
    n, gap_weights = len(u), w / len(u)
    values = np.linalg.eigvalsh(np.eye(F.shape[1]) - F.T @ (u[:, None] * F) / n)
    error = float(np.sqrt((F**2).T @ (gap_weights[:, None] * F**2)).sum())
    least = float(values.min(initial=np.inf)) - error
    if least <= 1e-9 * float(np.abs(values).max(initial=0.0)):  # rounding may hide a singular matrix
        return None
    size = np.linalg.norm(problem.products(remainder.gram_weights, problem.whitened_rows), axis=0)
    slack = np.sqrt(np.sum(squares.rmatvec(gap_weights[:, None] * F**2), axis=1) * n)

    def distance(first: Indexer, second: Indexer) -> Array:
        found = np.sqrt(np.maximum(squares.gram(gap_weights, first, second), 0.0))
        if F.shape[1]:
            largest_sizes = np.outer((size + slack)[first], (size + slack)[second])
            sizes = np.outer(size[first], size[second])
            found += sizes * (error / (values[0] * least)) + (largest_sizes - sizes) / least
        return np.asarray((1.0 + sum_error(n + 64)) * found / np.outer(problem.c[first], problem.c[second]))

    return distance
