"""Components of the sparse problem: sets of features between which every optimal V is zero."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import UNPENALIZED
from diffrac_cvx.certificates.block_screening import screen_components
from diffrac_cvx.certificates.direction_bounds import certify
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import in_unit_interval
from diffrac_cvx.points.factors import Sparse, dense, is_sparse
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import SOLVER_COPIES, direction_problem
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty
from diffrac_cvx.problem.result import Labels, Result


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
    r"""Return the components of the features, between which every optimal V of (15) is zero, from one solution.

    With u = 1/sqrt(q) at an optimum, which is the same for all optima, and

    .. math:: G = \tfrac1n X^\top \mathrm{Diag}(u) X - A,

    connect features j and k if :math:`|G_{jk}| \ge c_j c_k`.  Every optimal V is block diagonal along the connected
    components of this graph, and an optimum among the matrices that are block diagonal along it is optimal among all.
    Coordinates with c = 0, such as the offset if nu < 1, belong to every component: G is then replaced by its Schur
    complement.

    With feature groups, whole groups are connected if their block has a spectral norm of at least w_g w_h; with known
    signs, if its positive part has.

    The certified gap of V bounds the distance of its G from the optimal one, entry by entry; by default every pair that
    may be connected within that bound is.  So the separation is certified, and a smaller gap separates more.

    Source: duality, as in the screening rule of the graphical lasso and in gap-safe screening; not in the paper.
    O(n d^2), by blocks of columns; only the connected pairs are stored.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : Result, or (d, d) array or sparse array, or (d + 1, d + 1) with the offset last
        Solution.  The lower bound of a result, which must have the same nu and penalty, is used as it is; for a matrix
        it is computed.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Ridge and l1 or group penalty; without an l1 term there are no components.
    rtol : float, optional
        Tolerance in [0, 1]: connect the pairs with :math:`|G_{jk}| \ge (1 - \mathrm{rtol})\, c_j c_k` at V instead.
        This separates more, but certifies nothing.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, on any scale: weight 2 counts a point twice, weight 0 omits it.  Must be those of
        the solution.

    Returns
    -------
    (d,) array of int
        Component of each feature, numbered from 0 by first feature; -1 for features with c = 0.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    ResourceError
        If X is a dask array that does not fit in memory.
    """
    nu, data = in_unit_interval(nu, "nu"), read_points(X, sample_weight, by_columns=True).X
    n, d = data.shape
    require_memory(
        SOLVER_COPIES * data.unread_bytes, f"the components of {n} points and {d} features", "use fewer of either"
    )
    data = data.in_columns()  # all rows are needed at once
    rtol = None if rtol is None else in_unit_interval(rtol, "rtol")
    problem = direction_problem(data, nu, penalty)
    U = problem.coordinates.transform_result(dense(V) if is_sparse(V) else V)
    labels = np.full(d, UNPENALIZED)
    if not problem.has_l1:
        return labels
    point = problem.rescale(U)
    gap = 0.0  # not used if rtol is given
    if rtol is None:
        gap = point.value - (V.lower if isinstance(V, Result) else certify(problem, point).lower)
    labels[np.flatnonzero(problem.c)] = screen_components(problem, point.q, gap, rtol)
    return labels
