"""Certificates: bounds on the optimum from any point of any solver, and the optimality gap of labels and clusters."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import UNPENALIZED
from diffrac_cvx.certificates.certificate import Certificate
from diffrac_cvx.certificates.checker import bound_of
from diffrac_cvx.certificates.consistency import require_consistent
from diffrac_cvx.certificates.direction_bounds import DualPoint, certify
from diffrac_cvx.certificates.label_bounds import bracket_alpha, bracket_nu, projection_of
from diffrac_cvx.certificates.proof import TRIVIAL, Bound, best_of
from diffrac_cvx.certificates.screening import screen_components
from diffrac_cvx.certificates.values import (
    certified_clusters_value,
    certified_labels_value,
    certified_value,
    or_zero_direction,
)
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import (
    Array,
    as_clusters,
    as_labels,
    as_matrix,
    as_scalar,
    centered_data,
    in_unit_interval,
)
from diffrac_cvx.points.constraints import Constraints, chunklets_of, require_satisfied
from diffrac_cvx.points.factors import Sparse
from diffrac_cvx.points.linear_algebra import psd_factor
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.points.table import Table, centered_table
from diffrac_cvx.problem.direction_problem import (
    SOLVER_COPIES,
    direction_problem,
    problem_by_rows,
    without_excluded,
)
from diffrac_cvx.problem.formatting import format_gap, format_upper
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, ridge_of, weights_of
from diffrac_cvx.problem.result import Bracket, Labels, Result
from diffrac_cvx.rounding.directions import LabelRegression


@in_range()
@one_thread()
def certify_v(
    X: npt.ArrayLike,
    V: npt.ArrayLike | Sparse | Result,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> Bracket:
    r"""Return certified bounds on the optimum of (15) from any direction matrix V, however it was computed.

    The upper bound is the objective at the projection of V onto the positive semidefinite matrices, optimally
    rescaled: 1 - g^2/T.  The lower bound is :math:`1 - t\,\mathrm{mean}(1/u)`, where t is the largest generalised
    eigenvalue of :math:`(X^\top \mathrm{Diag}(u) X / n,\ A + C)`, with u and C derived from V.  If V is a result with
    components, t is computed block by block, and pairs of features in different blocks need no d x d matrix.

    Source: duality; it certifies the quantities computed in appendix G.1.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : (d, d) array or sparse array, or (d + 1, d + 1) with the offset last, or Result
        Any matrix.  If nu < 1, a (d, d) matrix is padded with a zero offset.  Only the factor and the multipliers of a
        result are used, not its bounds.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Ridge and l1 or group penalty; none by default.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, as an alternative to ``penalty``.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, on any scale: weight 2 counts a point twice, weight 0 omits it.
    constraints : Constraints, optional
        Must-link and cannot-link constraints; X must be an array.  The bounds are those of the constrained problem.

    Returns
    -------
    Bracket
        (lower, upper), 0 <= lower <= optimum <= upper <= 1, with the number of excluded columns.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    InvalidBoundError
        If the computed objective is below the lower bound: one of them is wrong, and neither is returned.
    ResourceError
        If V is not a result with components, and a dense matrix of its size would not fit in memory.
    """
    penalty = resolve_penalty(penalty, lam, ridge)
    nu = in_unit_interval(nu, "nu")
    points = read_points(X, sample_weight, by_columns=penalty.has_l1, constraints=constraints)
    problem = direction_problem(points.X, nu, penalty)
    U, C, best = problem.coordinates.transform_result(V), None, TRIVIAL
    if isinstance(V, Result):  # with its multipliers, if they fit the problem
        C = problem.transform_multiplier(V)
        for proof in () if V.certificate is None else V.certificate.proofs:
            with suppress(ArithmeticError, ValueError):  # multipliers of another problem may not fit
                best = best_of(best, Bound(bound_of(proof, problem)))
    problem = problem_by_rows(problem, U)
    point = problem.rescale(U)
    G = problem.coordinates.inverse_transform(point.U)
    upper = min(1.0, certified_value(points.X, nu, penalty, G))  # 1 for NaN
    if nu == 0.0 and points.X.allows_one_cluster:
        return Bracket(0.0, upper, problem.coordinates.n_excluded)
    lower = best_of(best, certify(problem, point, DualPoint(C=C))).lower
    require_consistent(lower, upper, "the directions")
    return Bracket(float(lower), upper, problem.coordinates.n_excluded)


@in_range()
@one_thread()
def certify_y(
    X: npt.ArrayLike,
    Y_or_F: npt.ArrayLike,
    nu: float = 1.0,
    alpha: float | None = None,
    penalty: Penalty = NO_PENALTY,
    *,
    ridge: Weight = None,
    constraints: Constraints | None = None,
) -> Bracket:
    r"""Return certified bounds on the optimum of (8), or of (7) if alpha is given, from any Y or factor F, Y = F F'.

    The upper bound is the objective at a feasible point near F: rows of unit norm and, for (7), a mixture with 11' or
    a balanced labelling that satisfies the constraint.  The lower bound is
    :math:`1^\top\mu + n \min(0, \lambda_{\min}(K - \mathrm{Diag}(\mu)))`; the smallest eigenvalue is bounded by
    counting signs (Sylvester's law of inertia), without an n x n matrix if F is given.

    Source: duality for Eq. (7), (8) and (16).

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    Y_or_F : (n, n) array or (n, r) array
        Y if the array is square, otherwise F.
    nu : float
        Weight of the imbalance, in [0, 1]; not used if alpha is given.
    alpha : float, optional
        Imbalance 1'Y1/n^2 that problem (7) fixes, in [0, 1].
    penalty : Penalty
        Ridge of Eq. (16); an l1 penalty has no formulation in Y alone.
    ridge : float or (d,) array, optional
        Weight of the ridge, as an alternative to ``penalty``.
    constraints : Constraints, optional
        Must-link and cannot-link constraints; the bounds are those of the constrained (8).  Not supported for (7),
        because its imbalance may contradict them.

    Returns
    -------
    Bracket
        (lower, upper), 0 <= lower <= optimum <= upper, with the number of excluded columns.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    InvalidBoundError
        If the computed objective is below the lower bound: one of them is wrong, and neither is returned.
    """
    penalty = resolve_penalty(penalty, None, ridge)
    points, nu = centered_table(centered_data(X, warn=False), None, constraints), in_unit_interval(nu, "nu")
    F = as_matrix(Y_or_F, "Y_or_F")
    if len(F) != len(points):
        raise DataError(f"Y_or_F has {len(F)} rows for {len(points)} points. Pass one row for each point.")
    if F.shape[0] == F.shape[1]:
        F = psd_factor(F)
    if alpha is not None and points.is_constrained:
        raise ParameterError("alpha and constraints cannot be combined: both may be infeasible. Give only one.")
    H = projection_of(points, ridge_of(penalty, points.shape[1]))
    bounds = bracket_nu(H, F, nu) if alpha is None else bracket_alpha(H, F, in_unit_interval(alpha, "alpha"))
    require_consistent(*bounds, "the label matrix")
    return bounds


@dataclass(frozen=True, eq=False, repr=False)
class LabelCertificate:
    """Result of `certify_labels` and `certify_clusters`: an objective, and a certified lower bound on the optimum.

    Attributes
    ----------
    objective : float
        Upper bound on the objective, penalty included, of these labels or clusters with the fitted directions.
    lower : float
        Certified lower bound on the objective (9) over all 2^n labellings, or over those that satisfy the constraints;
        for clusters, over all partitions into at most K clusters.
    directions : (d,) or (K, d) array
        Fitted direction of the labels; with sign constraints, of y or of -y, whichever has the lower objective.  For K
        clusters, the direction of each cluster against the others.
    n_excluded : int
        Number of excluded columns, see `Result`: the lower bound is that of X without them.
    certificate : Certificate or None
        Proof of both bounds, for `check_certificate`, if the lower bound comes from a result with a certificate.
    """

    objective: float
    lower: float
    directions: Array
    n_excluded: int = 0
    certificate: Certificate | None = None

    @property
    def v(self) -> Array:
        return self.directions

    @property
    def W(self) -> Array:
        return self.directions

    @property
    def gap(self) -> float:
        """Certified optimality gap, objective - lower, rounded up: no labels or clusters improve by more."""
        return self.bracket.gap

    @property
    def bracket(self) -> Bracket:
        """Certified bounds on the optimal objective; ``str`` rounds the lower one down and the upper one up."""
        return Bracket(self.lower, self.objective, self.n_excluded)

    def __repr__(self) -> str:
        objective, gap = format_upper(self.objective, self.gap), format_gap(*self.bracket)
        return f"LabelCertificate(objective={objective}, bracket={self.bracket}, gap={gap})"


def certificate_at(
    X: Table, objective: float, directions: Array, lower: Any, what: str, **fields: Any
) -> LabelCertificate:
    """Return the certificate of labels or clusters, with zero directions if the fitted ones are not better.

    The fields are those of `Certificate`, with the multipliers of a result.
    """
    result: Any = lower if hasattr(lower, "certificate") else None
    bound = as_scalar(lower, "lower") if result is None else result.lower
    objective, directions = or_zero_direction(objective, directions)
    require_consistent(bound, objective, what)
    n_excluded = max(X.n_excluded, 0 if result is None else result.n_excluded)
    given = None if result is None else result.certificate
    if given is not None:  # bounds of other relaxations do not refer to this objective
        fields |= {"upper": objective, "direction": directions, "F": None, "G": None}
        K = fields.get("n_clusters")
        is_same = given.relaxation == fields["relaxation"] and given.n_clusters == K
        if not is_same and given.relaxation in ("labels", "clusters") and (K or 2) != (given.n_clusters or 2):
            raise ParameterError(f"lower is a bound on {given.n_clusters or 2} clusters, not {K or 2}. Pass another.")
        given = replace(given, **fields) if is_same or given.relaxation == "directions" else None
    return LabelCertificate(objective, bound, directions, n_excluded, given)


@in_range()
@one_thread()
def certify_labels(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    lower: Result | float,
    *,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    lam: Weight = None,
    ridge: Weight = None,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> LabelCertificate:
    r"""Certify the optimality gap of labels for the combinatorial problem that the relaxations relax.

    .. math::
        \min_{y \in \{-1, 1\}^n,\ v}\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \nu (1^\top y / n)^2 + \Gamma(v v^\top)

    With sample weights, all means, including that in :math:`\Pi_n`, are weighted.

    Source: Eq. (9).

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    y : (n,) array
        Labels in {-1, +1}.
    lower : Result or float
        Solved relaxation with the same nu and penalty, or its lower bound.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Ridge and l1 or group penalty; none by default.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, as an alternative to ``penalty``.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, on any scale: weight 2 counts a point twice, weight 0 omits it.
    constraints : Constraints, optional
        Must-link and cannot-link constraints, which y must satisfy; ``lower`` must be that of the constrained problem.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid, or y violates the constraints; the message names the value and the remedy.
    InvalidBoundError
        If the objective is below the lower bound, which then does not match these data and parameters.
    """
    penalty = resolve_penalty(penalty, lam, ridge)
    nu, points = in_unit_interval(nu, "nu"), read_points(X, sample_weight, by_columns=penalty.has_l1)
    y_all = as_labels(y, points.n_all)
    require_satisfied(y_all, chunklets_of(constraints, len(y_all)))
    labels = points.with_weight(y_all).astype(np.float64)
    weights = weights_of(penalty, points.X.shape[1])
    X_reduced = without_excluded(points.X, nu, penalty)
    labels, v = LabelRegression(X_reduced, weights).oriented(labels)
    objective = certified_labels_value(X_reduced, labels, v, nu, weights)
    sign = labels[0] * points.with_weight(y_all)[0]  # with sign constraints, y and -y differ
    fields = {"relaxation": "labels", "labels": sign * y_all}
    return certificate_at(X_reduced, objective, v, lower, "these labels", **fields)


@in_range()
@one_thread()
def certify_clusters(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    lower: Any,
    n_clusters: int | None = None,
    *,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    lam: Weight = None,
    ridge: Weight = None,
    sample_weight: npt.ArrayLike | None = None,
) -> LabelCertificate:
    r"""Certify the optimality gap of a partition into K clusters, with `optimal_partition` or a relaxation.

    With Z the (n, K) cluster indicators, the objective is

    .. math::
        \frac{K}{K-1} \Big[ \min_W\ \tfrac1n \|\Pi_n Z - X W^\top\|_F^2 + \sum_k \Gamma(w_k w_k^\top)
        + \nu \sum_k (n_k / n)^2 - \tfrac{\nu}{K} \Big],

    which is Eq. (9) if K = 2, and at least 0 for every K.  It is never below the optimum of (15), which does not
    depend on K: :math:`S = \tfrac{K}{K-1}(Z Z^\top - \tfrac1K 1 1^\top)` has unit diagonal, and with
    :math:`\tfrac{K}{K-1} W^\top W` and :math:`\tfrac{K}{K-1}(Z - \tfrac1K 1 1^\top) W` it is feasible for (11),
    whose objective there is at most this one.

    Source: Eq. (11) and section 4.

    Other parameters and the errors are those of `certify_labels`; sign constraints are not supported.

    Parameters
    ----------
    labels : (n,) array of int
        Cluster labels in 0, ..., K - 1; clusters may be empty.
    lower : OptimalPartition, Result or float
        Result of `optimal_partition`, whose bound holds for K clusters; a solved relaxation (8), (11) or (15), whose
        bound holds for all K; or a lower bound.  It must have the same nu and penalty.
    n_clusters : int, optional
        K, from 2 to the number of points; by default the largest label plus one, but at least 2.
    """
    penalty = resolve_penalty(penalty, lam, ridge)
    nu, points = in_unit_interval(nu, "nu"), read_points(X, sample_weight, by_columns=penalty.has_l1)
    cluster_labels, K = as_clusters(labels, points.n_all, n_clusters)
    weights = weights_of(penalty, points.X.shape[1])
    if not weights.is_even:
        raise ParameterError("nonnegative is not supported: K clusters have K directions. Omit nonnegative.")
    Z = (points.with_weight(cluster_labels)[:, None] == np.arange(K)).astype(np.float64)
    X_reduced = without_excluded(points.X, nu, penalty)
    W = LabelRegression(X_reduced, weights).directions(Z - X_reduced.mean_of(Z))
    objective = certified_clusters_value(X_reduced, Z, W, nu, weights)
    fields = {"relaxation": "clusters", "labels": cluster_labels.astype(np.float64), "n_clusters": K}
    return certificate_at(X_reduced, objective, W, lower, "these clusters", **fields)


@in_range()
@one_thread()
def find_components(
    X: npt.ArrayLike,
    V: npt.ArrayLike | Sparse | Result,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> Labels:
    r"""Return the components of the features, between which every optimal V of (15) is zero, from one solution.

    With u = 1/sqrt(q) at an optimum, which is the same for all optima, and

    .. math:: G = \tfrac1n X^\top \mathrm{Diag}(u) X - A,

    connect features j and k if :math:`|G_{jk}| \ge c_j c_k`.  Every optimal V is block diagonal along the connected
    components of this graph.  Conversely, a V that is optimal among the matrices with these blocks is optimal.
    Coordinates with c = 0, such as the offset if nu < 1, belong to every component: G is then replaced by its Schur
    complement.

    With feature groups, whole groups are connected if their block has a spectral norm of at least w_g w_h; with sign
    constraints, the norm is that of its positive part.

    The certified gap of V bounds the distance of its G from the optimal one, entry by entry.  Every pair that may be
    connected within this bound is connected, so the separation is certified; a smaller gap separates more features.

    Source: duality, as in the screening rule of the graphical lasso and in gap-safe screening; not in the paper.
    O(n d^2), by blocks of columns; only the connected pairs are stored.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : Result, or (d, d) array or sparse array, or (d + 1, d + 1) with the offset last
        Solution.  The lower bound of a result, which must have the same nu and penalty, is used as it is; for a matrix
        it is computed.
    nu, penalty
        As in `certify_v`; without an l1 term there are no components.
    sample_weight : (n,) array, optional
        Weights of the points, which must be those of the solution.

    Returns
    -------
    (d,) array of int
        Component of each feature, numbered from 0 by first feature; -1 for features with c = 0.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    ResourceError
        If a streamed table does not fit in memory.
    """
    nu, data = in_unit_interval(nu, "nu"), read_points(X, sample_weight, by_columns=True).X
    n, d = data.shape
    require_memory(
        SOLVER_COPIES * data.rows.unread_bytes, f"the components of {n} points and {d} features", "use fewer of either"
    )
    data = data.in_columns()  # all rows are needed at once
    problem = direction_problem(data, nu, penalty)
    U = problem.coordinates.transform_result(V)
    labels = np.full(d, UNPENALIZED)
    if not problem.has_l1:
        return labels
    point = problem.rescale(U)
    lower = V.lower if isinstance(V, Result) else certify(problem, point).lower
    labels[np.flatnonzero(problem.c)] = screen_components(problem, point.q, point.value - lower)
    return labels
