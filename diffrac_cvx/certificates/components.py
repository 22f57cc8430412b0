"""Components of the sparse problem: groups of features between which every optimal V is zero."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.block_proof import eliminate
from diffrac_cvx.certificates.direction_bounds import bracket
from diffrac_cvx.certificates.partitions import UNPENALISED, join_labels, number_by_first
from diffrac_cvx.certificates.row_bounds import certify_in_one_pass
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, in_unit_interval
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Sparse, dense, is_sparse
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.points import Mask, Points
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import (
    COPIES,
    DirectionProblem,
    Scaled,
    direction_problem,
    problem_by_rows,
)
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty
from diffrac_cvx.problem.result import Labels, Result

COLUMNS = 512  # of X that are multiplied with all others at a time
LEAST_GAP = 1e-13  # gaps below are rounding
LEAST_ROOT = 1e-40  # sqrt(q) of a row: below, the fourth powers of its entries are too small to be numbers


class Weights(NamedTuple):
    """u at a V, and weights w with |G_jk - its optimum|^2 <= gap mean_i w_i x_ij^2 x_ik^2, x_i the rows."""

    u: Array
    w: Array
    gap: float

    def hold(self, used: Mask) -> bool:
        """Whether nothing in w has underflowed at the rows used: elsewhere it bounds nothing."""
        return bool(np.max(self.u[used], initial=0.0) <= 1.0 / LEAST_ROOT)


@in_range()
def find_components(
    X: npt.ArrayLike,
    V: npt.ArrayLike | Sparse | Result,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    rtol: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Labels:
    r"""Find groups of features between which every optimal V of (15) is zero, from one solution.

    With u = 1/sqrt(q) at an optimum, which is the same for all of them, and

    .. math:: G = \tfrac1n X^\top \mathrm{Diag}(u) X - A,

    join features j and k where :math:`|G_{jk}| \ge c_j c_k`.  Every optimal V is block diagonal along the connected
    components of this graph, and what is optimal among the matrices that are block diagonal along it is optimal among
    all.  Where coordinates have c = 0, the offset of nu < 1 among them, G is replaced by its Schur complement, since
    these take part in every component.

    The proved gap of V bounds how far its G is from the optimal one, entry by entry; by default every pair that may be
    joined within that bound is joined.  So what is separated is proved to be, and a smaller gap separates more.

    Source: duality, as in the screening rule of the graphical lasso and in gap-safe screening; not in the paper.
    O(n d^2), by blocks of columns of which only the joined pairs are kept.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : Result, or (d, d) array or sparse array, or (d + 1, d + 1) with the offset last
        A solution.  The lower bound of a result, which has to be for the same nu and penalty, is taken as it is; for a
        matrix it is computed.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    rtol : float, optional
        Join the pairs with :math:`|G_{jk}| \ge (1 - \mathrm{rtol})\, c_j c_k` at V instead, in [0, 1]: nothing is
        proved, and more is separated.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0 and of any scale: a weight of 2 counts as the same point twice, 0 as none.
        Those with which a result was found.

    Returns
    -------
    (d,) array of int
        The component of each feature, numbered from 0 by first feature; -1 for features with c = 0.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    ResourceError
        If X is a dask array that does not fit in memory.
    """
    nu, points = in_unit_interval(nu, "nu"), read_points(X, sample_weight, by_columns=True)
    points = points._replace(X=in_memory(points.X))
    rtol = None if rtol is None else in_unit_interval(rtol, "rtol")
    problem = direction_problem(points.X, nu, penalty)
    U = problem.from_result(dense(V) if is_sparse(V) else V)
    labels = np.full(points.X.shape[1], UNPENALISED)
    if not problem.has_l1:
        return labels
    penalised = np.flatnonzero(problem.c)
    point = problem.best_scale(U)
    gap = 0.0  # not used where rtol is given
    if rtol is None:
        gap = point.value - (V.lower if isinstance(V, Result) else bound_of_matrix(problem, point))
    labels[penalised] = label_components(problem, weights_at(point.q, gap), penalised, rtol)
    return labels


def bound_of_matrix(problem: DirectionProblem, point: Scaled) -> float:
    """Return the lower bound that a matrix of directions proves; of sparse columns, from a pass over the rows."""
    problem = problem_by_rows(problem)
    if problem.X.in_passes:
        return certify_in_one_pass(problem, dense(point.U), None, guess=True).bounds.lower
    return bracket(problem, point).lower


def in_memory(X: Points) -> Points:
    """Return data without the chunks of a dask array: all rows are looked at together.

    Raises
    ------
    ResourceError
        If they do not fit.
    """
    if not X.in_passes:
        return X
    n, d = X.shape
    require_memory(8.0 * COPIES * n * d, f"the components of {n} points and {d} features", "take fewer of either")
    return X.in_columns()


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


def label_components(
    problem: DirectionProblem, weights: Weights, penalised: npt.NDArray[np.intp], rtol: float | None
) -> Labels:
    """Return the component of each penalised coordinate, numbered from 0 by first coordinate.

    All are in one where the others cannot be eliminated, as far from an optimum, or a row counts next to nothing.
    """
    used, m, free = ~problem.zero_rows, len(penalised), np.flatnonzero(problem.c == 0.0)
    margin = 0.0
    if rtol is None and not weights.hold(used):
        return np.zeros(m, dtype=np.int64)
    if rtol is None:  # what rounding may change of G_jk, over c_j c_k
        at = eliminate(block_problem(problem), np.where(used, weights.u, 0.0), 1.0)
        margin = np.inf if at is None else at.box
    whole, n = problem.X.in_columns(), len(problem.X)
    rows, c = whole.rows(used), problem.c[penalised]
    X, F = rows.columns(penalised), rows.dense_columns(free)
    u, spread = weights.u[used], weights.w[used] * (weights.gap / n)
    # G off the diagonal: A and X'X/n differ on the diagonal only.
    if problem.gram is None:
        G_rows, G_free, gram_weights = X, F, (u - 1.0) / n
    else:
        gram = problem.gram.in_columns()
        G_rows = array_points(np.vstack([X.array(), gram.dense_columns(penalised)]))
        G_free = np.vstack([F, gram.dense_columns(free)])
        gram_weights = np.append(u / n, np.full(len(gram), -1.0 / len(gram)))
    squares, everything = X.squares(), slice(None)
    K = G_rows.products_with(gram_weights[:, None] * G_free).T * len(G_free)
    values, vectors = np.linalg.eigh(np.diag(problem.a[free] ** 2) - G_free.T @ (gram_weights[:, None] * G_free))
    error = np.sqrt((F**2).T @ (spread[:, None] * F**2)).sum() if rtol is None else 0.0  # of the eigenvalues
    least = float(values.min(initial=np.inf)) - error
    if least <= 1e-9 * np.abs(values).max(initial=0.0):
        return np.zeros(m, dtype=np.int64)
    root = (vectors / np.sqrt(values)).T @ K
    size = np.linalg.norm(K, axis=0)
    slack = np.sqrt(np.sum(squares.products_with(spread[:, None] * F**2).T, axis=0) * len(F))  # of the columns of K
    labels = np.arange(m)
    for start in range(0, m, COLUMNS):
        block = slice(start, start + COLUMNS)
        G = G_rows.gram(gram_weights, block, everything) + root[:, block].T @ root
        box = np.outer(c[block], c)
        if rtol is None:
            off = np.sqrt(np.maximum(squares.gram(spread, block, everything), 0.0))
            if len(K):
                off += np.outer(size[block], size) * (error / (values[0] * least))
                off += (np.outer(size[block] + slack[block], size + slack) - np.outer(size[block], size)) / least
        else:
            off = rtol * box
        j, k = np.nonzero(~(np.abs(G) + off * (1.0 + sum_error(n + 64)) + margin * box < box))
        labels = join_labels(labels, j + start, k)
    return number_by_first(labels)
