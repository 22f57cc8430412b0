"""Rounding to two clusters: signs of eigenvectors, exact 2-means, random hyperplanes; and their refinement."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import (
    Array,
    as_any,
    as_data,
    as_generator,
    as_labels,
    as_matrix,
    normalize_weights,
    repetitions,
)
from diffrac_cvx.points.constraints import Chunklets, Constraints, chunklets_of
from diffrac_cvx.points.factors import FactorTable
from diffrac_cvx.points.linear_algebra import (
    EPS,
    column_basis,
    leading_right_vectors,
    mean_of,
    scale_by_sqrt_weights,
    scale_by_weights,
    triangular_root,
)

MAX_REFINEMENTS = 100
FULL_SVD_SIZE = 400  # rows and columns above which only the leading singular vectors are computed


def sign_leading(F: npt.ArrayLike, sample_weight: Array | None = None, constraints: Constraints | None = None) -> Array:
    """Round by the sign of the leading eigenvector of Y.

    Source: section 7.1, "Unbalanced case".  Meant for balanced clusters: if Y is close to 11'
    it returns one cluster.

    Parameters
    ----------
    F : (n, r) array
        Factor of Y = F F'.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, of any scale; equal by default.
    constraints : Constraints, optional
        Constraints that the labels satisfy; linked points get the sign of the sum of their entries.

    Raises
    ------
    DataError
        If F is not a finite matrix, or the constraints do not fit its rows.
    """
    factor, weights = _as_factor(F, sample_weight)
    return apply_constraints(_project(factor, right_vectors(factor, 1, weights)[0]), constraints, weights)


def sign_second(F: npt.ArrayLike, sample_weight: Array | None = None, constraints: Constraints | None = None) -> Array:
    """Round by the sign of the second eigenvector of Y.

    Source: section 7.1, "Unbalanced case".  If Y has rank one, all labels are +1.

    Parameters and errors are those of sign_leading.
    """
    factor, weights = _as_factor(F, sample_weight)
    if min(factor.shape) == 1:
        return apply_constraints(np.ones(len(factor)), constraints, weights)
    return apply_constraints(_project(factor, right_vectors(factor, 2, weights)[1]), constraints, weights)


def sign_centered(
    F: npt.ArrayLike, sample_weight: Array | None = None, constraints: Constraints | None = None
) -> Array:
    """Round by the sign of the leading eigenvector of Pi Y_(2) Pi, the paper's projection technique.

    Y_(2) is the best rank-two approximation of Y.  Exact on Y = b yy' + (1 - b) 11' for every b > 0.

    Source: section 7.1, "Unbalanced case", and the lemmas of section 5.1.4.

    Parameters and errors are those of sign_leading.
    """
    factor, weights = _as_factor(F, sample_weight)
    two = right_vectors(factor, 2, weights).T
    return apply_constraints(_principal_component(factor @ two, weights), constraints, weights)


def kmeans_centered(
    F: npt.ArrayLike, sample_weight: Array | None = None, constraints: Constraints | None = None
) -> Array:
    """Round by exact 2-means on the principal eigenvector of Pi Y Pi: the paper's choice on real data.

    Source: end of section 5.1.4.

    Parameters and errors are those of sign_leading.
    """
    factor, weights = _as_factor(F, sample_weight)
    return _kmeans_of_chunklets(_principal_component(factor, weights), weights, chunklets_of(constraints, len(factor)))


def goemans_williamson(
    F: npt.ArrayLike,
    rng: np.random.Generator | int,
    *,
    n_samples: int = 100,
    sample_weight: Array | None = None,
    constraints: Constraints | None = None,
) -> Array:
    r"""Round by the best of several random hyperplanes, y = sign(F g) with g Gaussian.

    The best one has the largest separation :math:`y^\top \Pi_n Y \Pi_n y / \|\Pi_n y\|_2^2`, which is centred:
    otherwise y = 1 would be best if Y is close to 11'.  Ties go to the first.

    Source: section 2.2, "by sampling".

    Parameters
    ----------
    F : (n, r) array
        Factor of Y = F F'.
    rng : numpy.random.Generator or int
        Generator, or its seed.
    n_samples : int
        Number of hyperplanes.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, of any scale; equal by default.
    constraints : Constraints, optional
        Constraints that the labels satisfy.

    Raises
    ------
    DataError
        If F is not a finite matrix, or the constraints do not fit its rows.
    ParameterError
        If n_samples or rng is invalid.
    """
    (factor, weights), random = _as_factor(F, sample_weight), as_generator(rng)
    normals = (random.standard_normal(factor.shape[1]) for _ in range(repetitions(n_samples, "n_samples")))
    candidates = (apply_constraints(_project(factor, normal), constraints, weights) for normal in normals)
    return max(candidates, key=lambda y: separation(factor, y, weights))


def labels_from_known(F: Array, chunklets: Chunklets) -> Array:
    """Round by the sign of Y between each point and the labelled points; the labels satisfy the constraints."""
    first = int(np.argmax(chunklets.membership == chunklets.labeled))
    return chunklets.assign_labels(F @ (F[first] * chunklets.sign[first]))


def kmeans_1d(values: npt.ArrayLike, sample_weight: Array | None = None) -> Array:
    r"""Split numbers into two clusters by exact 2-means; the first value is labelled +1.

    The split of the sorted values maximises :math:`s_k^2 / (k (n - k))`, s_k the sum of the k smallest centred values.
    This is convex in k along equal values, so equal values are never separated.  Ties (up to rounding) go to the lowest
    threshold; if all values are equal, all labels are +1.  With sample weights p_i, s_k is the sum of p_i x_i, and k is
    the sum of p_i.

    Source: section 2.1; O(n log n).

    Parameters
    ----------
    values : (n,) array
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, of any scale; equal by default.

    Raises
    ------
    DataError
        If values is not a 1-d array of finite numbers.
    """
    raw = as_any(values, "values")
    if raw.ndim != 1:
        raise DataError(f"values has shape {raw.shape}. Pass a 1-d array.")
    weights = normalize_weights(sample_weight, len(raw))
    x = _center(_scale_largest_to_one(as_matrix(raw.reshape(-1, 1), "values")), weights)[:, 0]
    if len(x) == 1:
        return np.ones(1)
    order = np.argsort(x, kind="stable")
    p, ordered = scale_by_weights(np.ones(len(x)), weights)[order], x[order]
    # The sums of both sides are opposite up to rounding; the smaller one is accurate if the other side has little
    # weight.
    below, above = np.cumsum(p * ordered)[:-1], np.cumsum((p * ordered)[::-1])[-2::-1]
    sums = np.minimum(np.abs(below), np.abs(above))
    explained = sums**2 / (np.cumsum(p)[:-1] * np.cumsum(p[::-1])[-2::-1])
    best = 1 + np.argmax(explained >= explained.max() * (1.0 - 64 * EPS))
    return _orient(np.where(x >= ordered[best], 1.0, -1.0))


def threshold_between(values: Array, labels: Array) -> float:
    """Return the midpoint between two clusters of numbers, or the largest number if there is only one."""
    above = labels == labels[np.argmax(values)]
    return float(values.max()) if above.all() else float((values[above].min() + values[~above].max()) / 2)


def refine(X: npt.ArrayLike, y: npt.ArrayLike, *, constraints: Constraints | None = None) -> Array:
    """Refine labels by the alternating optimisation of Eq. (2), up to a fixed point.

    The squared correlation never decreases; a fixed point is returned unchanged.  The first point
    keeps its label.

    Source: section 2.1, and 2.3, "the non-convex algorithm can be run from the rounded solution".

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    y : (n,) array
        Initial labels in {-1, +1}.
    constraints : Constraints, optional
        Constraints that the labels satisfy; y is first changed to satisfy them.

    Raises
    ------
    DataError
        If X, y or constraints are invalid.
    """
    Q = column_basis(as_data(X))
    y = apply_constraints(as_labels(y, len(Q)), constraints)
    return alternate(Q, y, chunklets_of(constraints, len(Q)))


def apply_constraints(
    labels: npt.ArrayLike, constraints: Constraints | None, sample_weight: Array | None = None
) -> Array:
    """Return labels that satisfy the constraints, by the weighted majority in each set of linked points.

    Parameters
    ----------
    labels : (n,) array
        Labels in {-1, +1}, or numbers whose signs are the labels and whose absolute values are the votes.
    constraints : Constraints or None
        Constraints to satisfy; known labels are kept.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, of any scale; equal by default.

    Raises
    ------
    DataError
        If the constraints do not fit these points, or contradict each other.
    """
    scores = as_matrix(as_any(labels, "labels").reshape(-1, 1), "labels")[:, 0]
    weights = normalize_weights(sample_weight, len(scores))
    signs = np.where(scores >= 0.0, 1.0, -1.0)
    return chunklets_of(constraints, len(scores)).adjust_labels(signs, scale_by_weights(scores, weights))


def alternate(Q: Array, y: Array, chunklets: Chunklets) -> Array:
    """Alternate from y while the squared correlation grows; Q has orthonormal columns that span the centred X.

    Given y, w = X^+ y, so that X w = Q Q'y; given w, y is the exact 2-means of X w.  The first label is kept.
    Constraints are applied to the values minus the threshold of 2-means.
    """
    reached = separation(Q, y)
    for _ in range(MAX_REFINEMENTS):
        candidate = _kmeans_of_chunklets(Q @ (Q.T @ (y - y.mean())), None, chunklets)
        candidate = candidate * (1.0 if chunklets.has_known_labels else y[0] * candidate[0])
        attained = separation(Q, candidate)
        if attained <= reached * (1.0 + 64 * EPS):
            break
        y, reached = candidate, attained
    return y


ROUNDINGS: dict[str, Callable[..., Array]] = {
    rule.__name__: rule for rule in (sign_leading, sign_second, sign_centered, kmeans_centered)
}


def _as_factor(F: Any, sample_weight: Array | None) -> tuple[Any, Array | None]:
    """Return F scaled to largest entry one, or a streamed factor unchanged, and the normalised weights of its rows."""
    factor = F if isinstance(F, FactorTable) else _scale_largest_to_one(as_matrix(F, "F"))
    return factor, normalize_weights(sample_weight, len(factor))


def _scale_largest_to_one(M: Array) -> Array:
    return M / float(np.abs(M).max() or 1.0)


def _center(M: Array, sample_weight: Array | None = None) -> Array:
    for _ in range(2):  # the second removes the rounding error of the first mean
        M = M - mean_of(M, sample_weight)
    return M


def right_vectors(F: Any, k: int, sample_weight: Array | None = None) -> Array:
    """Return the min(k, r) leading right singular vectors as rows."""
    if isinstance(F, FactorTable):
        return F.leading(k)[1]
    F = scale_by_sqrt_weights(F, sample_weight)
    if min(F.shape) > FULL_SVD_SIZE:
        return leading_right_vectors(F, k)
    root = F if len(F) < F.shape[1] else triangular_root(F)
    return np.asarray(np.linalg.svd(root, full_matrices=False)[2][:k])


def _principal_component(F: Any, sample_weight: Array | None = None) -> Array:
    """Return the principal eigenvector of Pi F F' Pi, up to scale."""
    if isinstance(F, FactorTable):
        projected = F @ F.leading(1, centered=True)[1][0]
        return _without_rounding(projected - projected.mean(), F.shape)
    G = _center(F, sample_weight)
    return _project(G, right_vectors(G, 1, sample_weight)[0])


def _project(G: Any, direction: Array) -> Array:
    """Return G times a unit direction, with rounding errors set to 0."""
    return _without_rounding(G @ direction, G.shape)


def _without_rounding(projected: Array, shape: tuple[int, ...]) -> Array:
    """Return projections of F with rounding errors set to 0 and the first nonzero entry positive."""
    n, r = shape  # errors are relative to 1, the scale of F; centred projections may be smaller
    projected[np.abs(projected) <= 8 * (n**0.5 + r) * EPS] = 0.0
    nonzero = np.flatnonzero(projected)
    return _orient(projected, nonzero[0]) if len(nonzero) else projected


def _kmeans_of_chunklets(x: Array, sample_weight: Array | None, chunklets: Chunklets) -> Array:
    """Return the labels of 2-means; with constraints, applied to the values minus the threshold."""
    y = kmeans_1d(x, sample_weight)
    votes = y[np.argmax(x)] * (x - threshold_between(x, y)) if np.ptp(y) else y
    return chunklets.adjust_labels(y, scale_by_weights(votes, normalize_weights(sample_weight, len(x))))


def _orient(x: Array, i: int = 0) -> Array:
    """Return x or -x, whichever is positive at index i."""
    return x if x[i] > 0.0 else np.negative(x)
