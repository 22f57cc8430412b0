"""Feature importance: the cost increase when a feature or group is removed and the labels are kept."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.rounding.directions import best_directions

SINGULAR_EIGENVALUE_RATIO = 1e-10  # relative eigenvalue up to which a direction of the features counts as singular


def marginal_gains(
    X: Points, labels: npt.NDArray[np.int64], penalty: Penalty, n_clusters: int = 2, *, time_limit: float | None = None
) -> Array:
    r"""Return the increase of the cost of labels if one feature, or one group, is removed, for each of them.

    The cost is that of `certify_clusters`, Eq. (9) for two clusters, with the best directions :math:`w_k` of labels.
    Without l1 penalty the increase has a closed form, with :math:`H = \tfrac1n X^\top X + \mathrm{Diag}(a)^2`,

    .. math::
        \frac{K}{K-1} \sum_k w_{kj}^2 \,/\, (H^{-1})_{jj}.

    With an l1 penalty, groups or sign constraints the directions are recomputed without the feature or group, largest
    coefficients first; features with coefficient 0 add 0.  Values that the time limit prevents are NaN.

    Parameters
    ----------
    X : Points
        Centred points, in the units of the penalty.
    labels : (n,) array of int
        Clusters 0, ..., K - 1.
    penalty : Penalty
        Weights a and c, groups, and, for two clusters, sign constraints.
    n_clusters : int
        Number of clusters K, by default 2.
    time_limit : float, optional
        Seconds for the recomputed directions.

    Returns
    -------
    (d,) array, or (G,) array for the groups of the penalty
    """
    weights = weights_of(penalty, X.shape[1])
    a = weights.a
    Z = (labels[:, None] == np.arange(n_clusters)).astype(np.float64)
    Z, factor = (Z[:, 1:] * 2.0, 1.0) if n_clusters == 2 else (Z, n_clusters / (n_clusters - 1.0))
    Z = Z - X.mean_of(Z)
    W = best_directions(X, Z, weights)
    groups = penalty.feature_groups(len(a))
    if groups.are_single and weights.is_zero and weights.is_even:
        return np.asarray(factor * np.sum(W**2, axis=0) / inverse_diagonal(X, a))
    timer, rows = Timer(time_limit), X.array()
    point_weights = X.normalized_weights

    def objective(W: Array, mask: npt.NDArray[np.bool_]) -> float:
        residuals = point_weights @ (Z - rows[:, mask] @ W.T) ** 2
        l1 = float(np.sum(weights.restrict(mask).direction_norm(W.T) ** 2))
        return float(np.sum(residuals) + np.sum((a[mask] * W) ** 2) + l1)

    blocks, size = groups.labels, np.zeros(len(groups.names))
    np.maximum.at(size, blocks, np.abs(W).max(axis=0))
    baseline, gains = objective(W, np.ones(len(a), dtype=bool)), np.where(size > 0.0, np.nan, 0.0)
    for g in np.argsort(-size, kind="stable")[: np.count_nonzero(size)]:
        if timer.is_over:
            break
        mask = blocks != g
        reduced = best_directions(array_points(rows[:, mask], X.weights), Z, weights.restrict(mask))
        gains[g] = max(factor * (objective(reduced, mask) - baseline), 0.0)
    return gains


def inverse_diagonal(X: Points, a: Array) -> Array:
    """Return the diagonal of (X'X/n + Diag(a)^2)^-1, infinite if the matrix is singular along a feature."""
    Z = X.weighted_rows().array() / np.sqrt(len(X))
    n, d = Z.shape
    if n < d and np.all(a > 0.0):  # the inverse is B - B Z'(1 + Z B Z')^-1 Z B, with B = Diag(a)^-2
        scaled = Z / a
        inner = np.linalg.solve(np.eye(n) + scaled @ scaled.T, scaled)
        return np.asarray((1.0 - np.einsum("ij,ij->j", scaled, inner)) / a**2)
    values, Q = np.linalg.eigh(Z.T @ Z + np.diag(a**2))
    empty = values <= SINGULAR_EIGENVALUE_RATIO * values[-1]
    found = (Q[:, ~empty] ** 2) @ (1.0 / values[~empty])
    return np.where((Q[:, empty] ** 2).sum(axis=1) > SINGULAR_EIGENVALUE_RATIO, np.inf, found)
