r"""Local search for partitions into K clusters of low objective: alternation and single moves, from several starts.

With labels at the corners of a simplex, F (m, K - 1) with unit rows whose products are -1/(K - 1) between clusters, the
objective of `certify_clusters` without an l1 term is

.. math:: 1 - \|R^\top F\|_F^2,

with the row :math:`p\,(\sqrt{1 - \nu},\ (X^\top P X + \mathrm{Diag}(a)^2)^{+1/2} x)` of R for a point of weight p.

It is concave in F, so that an alternation between F and the fitted values RR'F never increases it.

The estimator does not use it: partitions with a lower objective do not agree better with known classes, see the
guide on more than two clusters.  It provides upper bounds for `optimal_partition`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.cluster.hierarchy
import scipy.sparse

from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one, lanczos, row_products, unit_rows
from diffrac_cvx.points.table import Table
from diffrac_cvx.rounding.many_clusters import ClusterIndices, kmeans_rows

MAX_ALTERNATIONS = 200
MIN_GAIN = 1e-12  # decrease of the objective below which a step is a rounding error
MAX_MOVE_WORK = 1e10  # operations spent on single moves, for large tables
MAX_PAIRED_POINTS = 5000  # distinct points up to which Ward's method and spectral clustering are used
PAIR_OPERATIONS = 60.0  # of Ward's method or the neighbour search per pair of points, besides the distance
N_NEIGHBORS = 10  # neighbours of each point in the graph of spectral clustering
CHAIN_WEIGHT = 1e-3  # weight of the edges that connect the graph
BLOCK_ROWS = 500


class Partition(NamedTuple):
    """Clusters 0, ..., K - 1, some of which may be empty, and their objective."""

    clusters: ClusterIndices  # (m,)
    objective: float


def simplex_corners(n_clusters: int) -> Array:
    """Return K unit rows in K - 1 dimensions with products -1/(K - 1)."""
    basis = np.linalg.qr(np.eye(n_clusters) - 1.0 / n_clusters)[0]
    return unit_rows(basis[:, : n_clusters - 1])


def partition_objective(R: Array, corners: Array, clusters: ClusterIndices) -> float:
    """Return 1 - |R'F|^2 for labels at the corners."""
    return 1.0 - float(np.sum((R.T @ corners[clusters]) ** 2))


def descend(R: Array, n_clusters: int, clusters: ClusterIndices) -> Partition:
    """Return a local optimum of 1 - |R'F|^2 from clusters: moving any single row does not decrease it.

    The alternation assigns each row to the corner that has the largest product with its fitted values, as long as this
    decreases the objective.  Then the best single move is made, until none decreases the objective.  At a local optimum
    each row is at that corner.  A step is O(m (D + K)).  All steps end at the deadline, and single moves in large
    tables after a fixed amount of work.
    """
    corners, m = simplex_corners(n_clusters), np.arange(len(R))
    objective = partition_objective(R, corners, clusters)
    for _ in range(MAX_ALTERNATIONS):
        changed = np.argmax(fitted_values(R, corners, clusters), axis=1)
        changed_objective = partition_objective(R, corners, changed)
        if changed_objective >= objective - MIN_GAIN or is_late():
            break
        clusters, objective = changed, changed_objective
    clusters, values = clusters.copy(), fitted_values(R, corners, clusters)
    # A move from corner v to w adds 2 r'S(w - v) + |r|^2 |w - v|^2 to |R'F|^2, S = R'F.
    corner_terms = row_products(R, R) * (2.0 * n_clusters / (n_clusters - 1.0))
    for _ in range(int(MAX_MOVE_WORK / (2 * R.size + 5 * len(R) * n_clusters + 1))):
        gains = 2.0 * (values - values[m, clusters][:, None]) + corner_terms[:, None]
        gains[m, clusters] = 0.0
        i, k = divmod(int(np.argmax(gains)), n_clusters)
        if gains[i, k] <= MIN_GAIN or is_late():
            break
        step = corners[k] - corners[clusters[i]]
        values += np.outer(R @ R[i], corners @ step)
        clusters[i] = k
    return Partition(clusters, partition_objective(R, corners, clusters))


def fitted_values(R: Array, corners: Array, clusters: ClusterIndices) -> Array:
    """Return the products of the fitted values RR'F with the corners, (m, K)."""
    return np.asarray(R @ (R.T @ corners[clusters] @ corners.T))


def usual_partitions(X: Table, n_clusters: int, *, rng: np.random.Generator | int) -> Iterable[ClusterIndices]:
    """Yield partitions (n,) by k-means, Ward's method and spectral clustering, for columns of unit variance.

    Chunklets are replaced by their means.  Ward's method and spectral clustering receive each distinct point once, in
    sorted order.  They are omitted for more than 5000 distinct points, or if they would end after the deadline.
    """
    scale = inverse_or_one(np.sqrt(X.mean_squares()))
    points, merged_weight = X.chunklet_means(X.array() * scale)
    yield X.chunklets.repeat(kmeans_rows(points, n_clusters, rng=rng, sample_weight=merged_weight))
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    m, d = distinct.shape
    if not n_clusters < m <= MAX_PAIRED_POINTS:
        return
    for cluster in (ward, spectral):
        if is_late((PAIR_OPERATIONS + d) * float(m) ** 2):
            return
        yield X.chunklets.repeat(cluster(distinct, n_clusters)[place.ravel()])


def ward(points: Array, n_clusters: int) -> ClusterIndices:
    """Return at most K clusters of more than K points by Ward's method; O(m^2) memory."""
    tree = scipy.cluster.hierarchy.ward(points)
    return np.asarray(scipy.cluster.hierarchy.fcluster(tree, n_clusters, "maxclust") - 1).astype(np.int64)


def spectral(points: Array, n_clusters: int) -> ClusterIndices:
    """Return at most K clusters of more than K points: k-means on leading eigenvectors of a neighbour graph."""
    graph = neighbor_graph(points, min(N_NEIGHBORS, len(points) - 1))
    roots = 1.0 / np.sqrt(np.asarray(graph.sum(axis=1)))
    vectors = lanczos(lambda x: roots * (graph @ (roots * x)), len(points), n_clusters, "LA", 0.0)[1]
    return kmeans_rows(unit_rows(vectors), n_clusters)


def neighbor_graph(points: Array, k: int) -> scipy.sparse.csr_array:
    """Return the symmetric graph of points and their k nearest neighbours: 1 if this is mutual, otherwise 1/2.

    A chain of weak edges through the points connects the graph, because the Lanczos method may miss a multiple
    eigenvalue.
    """
    m, norms = len(points), row_products(points, points)
    near = []
    for start in range(0, m, BLOCK_ROWS):
        block = points[start : start + BLOCK_ROWS]
        distances = norms - 2.0 * block @ points.T
        distances[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        near.append(np.argpartition(distances, k - 1, axis=1)[:, :k])
    A = scipy.sparse.csr_array((np.ones(m * k), np.concatenate(near).ravel(), np.arange(0, m * k + 1, k)), shape=(m, m))
    chain: Any = scipy.sparse.diags_array([np.full(m - 1, CHAIN_WEIGHT)] * 2, offsets=[-1, 1])
    return scipy.sparse.csr_array((A + A.T) / 2.0 + chain)
