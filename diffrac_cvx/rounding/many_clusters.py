"""Rounding to more than two clusters: k-means, and jointly fitted affine functions."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.points.checks import Array, as_generator, as_matrix, normalize_weights, positive_int, repetitions
from diffrac_cvx.points.factors import dense, products
from diffrac_cvx.points.linear_algebra import (
    column_basis,
    inverse_or_one,
    mean_of,
    renormalize_weights,
    row_products,
    scale_by_sqrt_weights,
    scale_by_weights,
)
from diffrac_cvx.points.table import Table, array_table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding.directions import LabelRegression

ClusterIndices = npt.NDArray[np.int64]
MAX_LLOYD_ROUNDS = 300
MAX_SCORE_ROUNDS = 100  # alternations between affine functions and clusters
MIN_WITHIN_VARIANCE = 1e-6  # floor of the within-cluster variance of a direction, relative to its total variance
ORDER_DECIMALS = 9  # to which values, relative to the largest of their column, are compared to sort rows
VARIANCE_RTOL = 1e-12  # relative variance up to which a direction is a rounding error


def kmeans_rows(
    F: npt.ArrayLike,
    n_clusters: int,
    *,
    n_init: int = 10,
    rng: np.random.Generator | int = 0,
    sample_weight: Array | None = None,
) -> ClusterIndices:
    r"""Return clusters 0, ..., k - 1 of the rows of F by k-means with the best of several initialisations.

    The relaxation does not depend on the number of clusters: up to :math:`\tfrac1k 1 1^\top` and a factor, Y = F F' of
    Eq. (8) relaxes the matrix that is 1 for two points of the same cluster and 0 otherwise.  Each run is Lloyd's
    algorithm from centres drawn as in k-means++.  Clusters are numbered by their first point; there are fewer than k if
    F has fewer distinct rows.

    Source: section 4.

    Parameters
    ----------
    F : (n, r) array
        Factor of Y = F F', or any points.
    n_clusters : int
        Number of clusters.
    n_init : int
        Number of initialisations, by default 10.
    rng : numpy.random.Generator or int
        Generator, or its seed.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, of any scale; equal by default.

    Raises
    ------
    DataError, ParameterError
        If F is not a finite matrix, or n_clusters, n_init or rng is invalid.
    """
    points, n_clusters = as_matrix(F, "F"), positive_int(n_clusters, "n_clusters")
    points = points / (float(np.abs(points).max()) or 1.0)
    weights = normalize_weights(sample_weight, len(points))
    points = points - mean_of(points, weights)
    n_init, random = repetitions(n_init, "n_init"), as_generator(rng)

    def distortion(clusters: ClusterIndices) -> float:
        deviations = points - means_of(points, clusters, weights)[clusters]
        return float(np.sum(scale_by_sqrt_weights(deviations, weights) ** 2))

    runs: list[ClusterIndices] = []
    while not runs or (len(runs) < n_init and not is_late()):
        runs.append(lloyd(points, draw_centers(points, n_clusters, random, weights), weights))
    return renumber(min(runs, key=distortion))


def lloyd(points: Array, centers: Array, sample_weight: Array | None = None) -> ClusterIndices:
    """Alternate between assigning points to centres and moving centres to means; centres without points are dropped."""
    found = fixed_point(
        lambda clusters: nearest(points, means_of(points, clusters, sample_weight)), nearest(points, centers)
    )
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def fixed_point(assign: Callable[[ClusterIndices], ClusterIndices], clusters: ClusterIndices) -> ClusterIndices:
    """Repeat an assignment until the clusters do not change, the last round, or the deadline; return the clusters."""
    for _ in range(MAX_LLOYD_ROUNDS):
        again = assign(clusters)
        if np.array_equal(clusters, again) or is_late():
            break
        clusters = again
    return clusters


def nearest(points: Array, centers: Array) -> ClusterIndices:
    """Return the index of the centre nearest to each point; ties go to the first."""
    return np.asarray(np.argmax(points @ centers.T - row_products(centers, centers) / 2.0, axis=1)).astype(np.int64)


def means_of(points: Array, clusters: ClusterIndices, sample_weight: Array | None = None) -> Array:
    """Return the means of the nonempty clusters, in the order of their indices."""
    indicators = scale_by_weights((clusters == np.unique(clusters)[:, None]).astype(np.float64), sample_weight)
    return np.asarray(indicators @ points / indicators.sum(axis=1, keepdims=True))


def renumber(clusters: ClusterIndices) -> ClusterIndices:
    """Return the clusters renumbered in the order of their first points."""
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse]).astype(np.int64)


def draw_centers(
    points: Array, n_clusters: int, random: np.random.Generator, sample_weight: Array | None = None
) -> Array:
    """Return up to k distinct points as centres, drawn with probability proportional to their squared distance.

    Weights multiply these probabilities.  Integer weights give the same draws as repeated points, since NumPy draws an
    integer below n as the integer part of n r / 2^32, with r of 32 bits.
    """
    total = np.cumsum(scale_by_weights(np.ones(len(points)), sample_weight))
    first = np.searchsorted(total, total[-1] * (random.integers(2**32) / 2.0**32), side="right")
    chosen = [min(int(first), len(points) - 1)]
    far = np.sum((points - points[chosen[0]]) ** 2, axis=1)
    smallest = 1e-24 * float(np.max(far, initial=0.0))
    while len(chosen) < n_clusters and far.max() > smallest:
        weighted = scale_by_weights(far, sample_weight)
        chosen.append(int(random.choice(len(points), p=weighted / weighted.sum())))
        far = np.minimum(far, np.sum((points - points[chosen[-1]]) ** 2, axis=1))
    return points[chosen]


def cluster_indices(values: Array) -> npt.NDArray[np.int64]:
    """Return clusters from the values of the decision functions: signs of (n,), or the largest of (n, K)."""
    return np.asarray(values > 0.0 if values.ndim == 1 else np.argmax(values, axis=1)).astype(np.int64)


class AffineScores(NamedTuple):
    """Decision functions X @ coef' + intercept.

    The cluster is that of the largest of K functions, coef (K, d) and intercept (K,), or the sign of a single function,
    coef (d,) and a number.
    """

    coef: Array
    intercept: Array

    def of(self, X: Array | Table) -> Array:
        """Return the values of the decision functions, (n, K) or (n,)."""
        return np.asarray(X @ self.coef.T + self.intercept)


def cluster_jointly(X: Table, result: Result, n_clusters: int, *, weights: PairPenalty, rng: int) -> AffineScores:
    """Return decision functions of at most n_clusters clusters of centred points, from a solution of the relaxation.

    k-means clusters the rows of X V^(1/2), and then the values fitted to these clusters.  Its starts are drawn in
    the order of the rows' values, so the order of the points does not matter.  The points of a chunklet always share a
    cluster: k-means replaces them by their mean.  Clusters are numbered along the direction that separates their
    centres most.
    """

    def assign(points: Array, found: ClusterIndices) -> ClusterIndices:
        merged, merged_weight = X.chunklet_means(points)
        return X.chunklets.repeat(lloyd(merged, means_of(points, found, X.weights), merged_weight))

    merged, merged_weight = X.chunklet_means(solution_embedding(X, result))
    order = order_of_values(X.chunklet_means(X.array())[0])
    ordered_weight = None if merged_weight is None else merged_weight[order]
    clusters = np.empty(len(order), dtype=np.int64)
    clusters[order] = kmeans_rows(merged[order], n_clusters, rng=rng, sample_weight=ordered_weight)
    start = X.chunklets.repeat(clusters)
    found, points, W = alternate_fits(X, start, assign, weights)
    centers, sizes = means_of(points, found, X.weights), np.bincount(found, X.weights)
    order = order_along_largest(centers, sizes, W * np.sqrt(X.mean_squares()))
    return scores_of_centers(centers[order], W)


def order_of_values(points: Array) -> npt.NDArray[np.intp]:
    """Return the lexicographic order of the rows, whose values are compared up to rounding errors."""
    largest = np.abs(points).max(axis=0, initial=0.0)
    return np.lexsort(np.round(points * inverse_or_one(largest), ORDER_DECIMALS).T)


def solution_embedding(X: Table, result: Result) -> Array:
    """Return X V^(1/2) up to a rotation, or F if the result has no V."""
    return result.F if result.G is None else dense(products(X.array(), result.G[: X.shape[1]]))


def classify_jointly(X: Table, result: Result, classes: ClusterIndices, *, weights: PairPenalty) -> AffineScores:
    """Return decision functions of the classes 0, ..., K - 1; classes (n,) is -1 for unlabelled points.

    It works as `cluster_jointly`, but k-means starts from the means of the labelled points, which keep their class.
    """
    known = classes >= 0

    def assign(points: Array, found: ClusterIndices) -> ClusterIndices:
        return np.where(known, classes, nearest(points, means_of(points, found, X.weights)))

    points = solution_embedding(X, result)
    start = means_of(points[known], classes[known], renormalize_weights(X.weights, known))
    found = fixed_point(partial(assign, points), np.where(known, classes, nearest(points, start)))
    found, points, W = alternate_fits(X, found, assign, weights)
    return scores_of_centers(means_of(points, found, X.weights), W)


def scores_of_centers(centers: Array, W: Array) -> AffineScores:
    """Return the decision functions of the nearest centre in X W'."""
    coef, offsets = centers @ W, -row_products(centers, centers) / 2.0
    return AffineScores(coef - coef.mean(axis=0), offsets - offsets.mean())


def alternate_fits(
    X: Table, clusters: ClusterIndices, assign: Callable[[Array, ClusterIndices], ClusterIndices], weights: PairPenalty
) -> tuple[ClusterIndices, Array, Array]:
    """Alternate between directions W fitted to clusters and clusters assigned by X W'; return clusters, X W' and W.

    The fit is penalised least squares, as in `certify_clusters`.  The fitted values are scaled to identity covariance
    within clusters, as in linear discriminant analysis; otherwise a cluster between two others would get no points.
    """
    table = X.array()
    regression = LabelRegression(array_table(table, X.weights), weights)
    for _ in range(MAX_SCORE_ROUNDS):
        Z = (clusters[:, None] == np.unique(clusters)).astype(np.float64)
        W = regression.directions(Z - X.mean_of(Z))
        W = whiten_within(table @ W.T, clusters, X.weights).T @ W
        points, previous = table @ W.T, clusters
        clusters = assign(points, previous)
        if np.array_equal(renumber(clusters), renumber(previous)) or is_late():
            break
    return clusters, points, W


def whiten_within(points: Array, clusters: ClusterIndices, sample_weight: Array | None = None) -> Array:
    """Return T, (k, rank of the points), such that points @ T has identity covariance within clusters."""
    centered = points - mean_of(points, sample_weight)
    weighted = scale_by_sqrt_weights(centered, sample_weight)
    variances, axes = np.linalg.eigh(weighted.T @ weighted / len(points))
    keep = variances > VARIANCE_RTOL * variances.max()
    T = axes[:, keep] / np.sqrt(variances[keep])
    P = centered @ T
    residuals = scale_by_sqrt_weights(
        P - means_of(P, clusters, sample_weight)[np.unique(clusters, return_inverse=True)[1]], sample_weight
    )
    within, vectors = np.linalg.eigh(residuals.T @ residuals / len(points))
    return np.asarray(T @ (vectors / np.sqrt(np.maximum(within, MIN_WITHIN_VARIANCE))))


def order_along_largest(centers: Array, sizes: npt.NDArray[Any], W: Array) -> npt.NDArray[np.intp]:
    """Return the order of centres along the direction that separates them most, its largest coefficient positive."""
    if len(centers) == 1:
        return np.zeros(1, dtype=np.intp)
    deviations = (centers - sizes @ centers / sizes.sum()) * np.sqrt(sizes)[:, None]
    u = np.linalg.svd(deviations)[2][0]
    v = u @ W
    return np.argsort((centers @ u) * (1.0 if v[np.argmax(np.abs(v))] >= 0.0 else -1.0), kind="stable")


def explained_variance(projections: Array, clusters: ClusterIndices, sample_weight: Array | None = None) -> float:
    """Return the fraction of the variance of the cluster indicators that linear functions of projections explain."""
    Z = (clusters[:, None] == np.unique(clusters)).astype(np.float64)
    Z, P = (scale_by_sqrt_weights(part - mean_of(part, sample_weight), sample_weight) for part in (Z, projections))
    total = float(np.sum(Z**2))
    explained = float(np.sum((column_basis(P).T @ Z) ** 2))
    return min(explained / total, 1.0) if total > 0.0 else 0.0
