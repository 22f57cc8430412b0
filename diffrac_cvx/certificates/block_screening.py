r"""Screening of components: pairs of coordinates, or of groups of them, that a certified gap separates.

After elimination of the unpenalised coordinates F, G = M - A + K'K at the optimal weights u.  Groups are in different
components if the spectral norm of G_gh, or of its positive part for known signs, is below w_g w_h: then C = G is
strictly inside the dual set there, so that every optimal V is 0.  A gap bounds the error of G entry by entry, and the
Frobenius norm of these bounds covers a block.
"""

from collections.abc import Callable

import numpy as np
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.certificates.block_problem import block_problem, join_labels, number_by_first
from diffrac_cvx.certificates.proof import Remainder, eliminate
from diffrac_cvx.certificates.screening import column_blocks
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.points import Indexer
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import block_norms
from diffrac_cvx.problem.result import Labels

Distance = Callable[[Indexer, Indexer], Array]  # at most, of G_jk to its optimum, over c_j c_k


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def screen_components(problem: DirectionProblem, q: Array, gap: float, rtol: float | None = None) -> Labels:
    """Return the component of each penalised coordinate, numbered from 0 by first coordinate, from a point's q and gap.

    All are in one component if the others cannot be eliminated, as far from an optimum, or if a row has nearly no
    weight, or with must-link constraints, because sums of points may be nothing but rounding.
    """
    mask, one = ~problem.zero_rows, np.zeros(int(np.count_nonzero(problem.c)), dtype=np.int64)
    u, w = gap_safe_weights(q, gap)
    underflows = float(np.max(u[mask], initial=0.0)) > 1e40  # fourth powers of the entries of such a row
    if rtol is None and (problem.X.max_summed or underflows):
        return one
    if np.any(problem.pair_penalty.reference_weights > problem.c):  # coordinates with c = 0 have multipliers too
        return one
    split = block_problem(problem)
    remainder = eliminate(split, np.where(mask, u, 0.0), 1.0, whitened=True)
    distance = None if remainder is None or rtol is not None else gap_safe_distance(remainder, np.where(mask, w, 0.0))
    if remainder is None or (distance is None and rtol is None):
        return one
    pair_penalty, c = problem.pair_penalty.restrict(split.penalized), split.c
    if not pair_penalty.splits_into_blocks:
        return number_by_first(screen_groups(remainder, pair_penalty, distance, rtol))
    labels, known = np.arange(len(c)), remainder.known_signs
    for block, remaining in column_blocks(len(c)):
        check_deadline()
        G = remainder.gram(block, remaining) / np.outer(c[block], c[remaining])
        np.fill_diagonal(G, 0.0)
        size = np.abs(G) if known is None else np.where(np.outer(known[block], known[remaining]), G, np.abs(G))
        size += rtol or 0.0 if distance is None else distance(block, remaining) + remainder.entry_error
        j, k = np.nonzero(~(size < 1.0))
        labels = join_labels(labels, block.start + j, remaining.start + k)
    return number_by_first(labels)


def screen_groups(
    remainder: Remainder, pair_penalty: PairPenalty, distance: Distance | None, rtol: float | None
) -> Labels:
    """Return the component of each penalised coordinate, connecting groups by the distance or by rtol."""
    m, c, groups = len(remainder.problem.c), remainder.problem.c, pair_penalty.groups
    require_memory(4 * 8.0 * m**2, f"the components of {m} features in groups", "use fewer features")
    weights, everything = np.array([c[group[0]] for group in groups]), slice(None)
    norms = pair_penalty.dual_norms(remainder.gram(everything, everything))
    if distance is not None:
        radii = (distance(everything, everything) + remainder.entry_error) * np.outer(c, c)
        norms = (norms + block_norms(radii, groups)) * (1.0 + sum_error(m + 10))
        joined = ~(norms < np.outer(weights, weights) * (1.0 - sum_error(16)))
    else:
        joined = norms >= (1.0 - (rtol or 0.0)) * np.outer(weights, weights)
    found = np.empty(m, dtype=np.int64)
    for label, group in zip(connected_components(joined, directed=False)[1], groups, strict=True):
        found[group] = label
    return found


def gap_safe_weights(q: Array, gap: float) -> tuple[Array, Array]:
    r"""Return u = 1/sqrt(q), and w with |G_jk - G*_jk|^2 <= mean_i w_i x_ij^2 x_ik^2, G* the optimum and x_i the rows.

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

    F is eliminated from both: S_FF has an error of at most `error`, and its columns S_Fj of at most `slack`.  None if
    the optimal S_FF may be singular.
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
