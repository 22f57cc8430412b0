"""Components of the sparse problem: groups of features between which every optimal V is zero."""

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.certificates.direction_bounds import inverse_roots
from diffrac_cvx.certificates.direction_problem import DirectionProblem, direction_problem
from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array, as_data, as_matrix, in_unit_interval
from diffrac_cvx.penalty import NO_PENALTY, Penalty
from diffrac_cvx.result import Result

UNPENALISED = -1
COLUMNS = 512  # of X that are multiplied with all others at a time

Labels = npt.NDArray[np.int64]


def find_components(
    X: npt.ArrayLike,
    V: npt.ArrayLike | Result,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    rtol: float = 1e-3,
) -> Labels:
    r"""Find the groups of features between which every optimal V of (15) is zero, from one solution.

    With u = 1/sqrt(q) at an optimum, which is the same for all of them, and

    .. math:: G = \tfrac1n X^\top \mathrm{Diag}(u) X - A,

    join features j and k where :math:`|G_{jk}| \ge c_j c_k`.  Every optimal V is block diagonal along the connected
    components of this graph, and what is optimal among the matrices that are block diagonal along it is optimal among
    all.  Where coordinates have c = 0, the offset of nu < 1 among them, G is replaced by its Schur complement, since
    these take part in every component.

    Source: duality, as in the screening rule of the graphical lasso; not in the paper.  O(n d^2), by blocks of columns
    of which only the joined pairs are kept.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : Result, or (d, d) array, or (d + 1, d + 1) with the offset last
        A solution; the graph is as accurate as it is.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    rtol : float
        Pairs with :math:`|G_{jk}| \ge (1 - \mathrm{rtol})\, c_j c_k` are joined, in [0, 1]: it has to cover the error
        of u.

    Returns
    -------
    (d,) array of int
        The component of each feature, numbered from 0 by first feature; -1 for features with c = 0.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    data, nu, rtol = as_data(X, warn=False), in_unit_interval(nu, "nu"), in_unit_interval(rtol, "rtol")
    matrix = V.V if isinstance(V, Result) else V
    if matrix is None:
        raise DataError("the result has no V; pass one of low_rank, fista or solve(v_space(...))")
    problem = direction_problem(data, nu, penalty, warn=False)
    d = data.shape[1]
    labels = np.full(d, UNPENALISED)
    if not problem.has_l1:
        return labels
    penalised = np.flatnonzero(problem.c)
    q = problem.best_scale(problem.from_user(as_matrix(matrix, "V"))).q
    labels[penalised] = label_components(problem, inverse_roots(q), penalised, rtol)
    return labels


def label_components(problem: DirectionProblem, u: Array, penalised: npt.NDArray[np.intp], rtol: float) -> Labels:
    """Return the component of each penalised coordinate, numbered from 0 by first coordinate; 0 for all where none is
    separated, as far from an optimum."""
    free = np.flatnonzero(problem.c == 0.0)
    X, c = problem.X[:, penalised], problem.c[penalised]
    weights = (u - 1.0) / len(u)  # A and X'X/n differ on the diagonal only
    root = np.zeros((0, len(penalised)))
    if len(free):
        F = problem.X[:, free]
        S = problem.A[np.ix_(free, free)] - F.T @ (u[:, None] * F) / len(u)
        values, vectors = np.linalg.eigh(S)
        if values[0] <= 1e-9 * max(np.abs(S).max(), 1e-300):
            return np.zeros(len(penalised), dtype=np.int64)
        root = (vectors / np.sqrt(values)).T @ (F.T @ (weights[:, None] * X))
    rows, columns = [], []
    for start in range(0, len(penalised), COLUMNS):
        block = slice(start, start + COLUMNS)
        G = X[:, block].T @ (weights[:, None] * X) + root[:, block].T @ root
        j, k = np.nonzero(np.abs(G) >= (1.0 - rtol) * np.outer(c[block], c))
        rows.append(j + start)
        columns.append(k)
    j, k = np.concatenate(rows), np.concatenate(columns)
    graph = scipy.sparse.coo_array((np.ones(len(j)), (j, k)), shape=(len(penalised), len(penalised)))
    _, labels = connected_components(graph, directed=False)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
