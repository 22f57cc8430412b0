"""Metrics of labels, and of a matrix F F' given by its factor F.

For a positive semidefinite V, pass ``points.linear_algebra.psd_factor(V)`` as F.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import (
    Array,
    as_any,
    as_data,
    as_labels,
    as_matrix,
    as_real,
    in_unit_interval,
    normalize_weights,
)
from diffrac_cvx.points.factors import FactorTable
from diffrac_cvx.points.linear_algebra import (
    column_basis,
    leading_right_vectors,
    mean_of,
    scale_by_sqrt_weights,
    standardize_columns,
)

FULL_FACTOR_SVD_SIZE = 200  # rows or columns of a factor above which only two eigenvalues are computed


def clustering_error(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Return 1 - (y_true'y_pred/n)^2: 0 if and only if the two partitions are equal.

    Source: section 7.1.  The error of a constant y_pred is 1 - imbalance(y_true).

    Parameters
    ----------
    y_true, y_pred : (n,) array
        Labels in {-1, +1}.

    Raises
    ------
    DataError
        If a label is not -1 or +1, or the lengths differ.
    """
    y_true = as_labels(y_true, name="y_true")
    return 1.0 - float(np.mean(y_true * as_labels(y_pred, len(y_true), "y_pred"))) ** 2


def imbalance(y: npt.ArrayLike) -> float:
    """Return alpha = (1'y/n)^2: 0 for two clusters of equal size, 1 for a single cluster."""
    return float(np.mean(as_labels(y))) ** 2


def factor_imbalance(F: Array | FactorTable) -> float:
    """Return 1'Y1/n^2 in [0, 1] for Y = F F', F (n, r) with unit rows; it is the imbalance of y if Y = yy'."""
    given = F if isinstance(F, FactorTable) else as_matrix(F, "F")
    mean = given.rmatvec(np.ones(len(F))) / len(F) if isinstance(given, FactorTable) else given.mean(axis=0)
    return min(float(np.sum(mean**2)), 1.0)


class ContingencyMatrix(NamedTuple):
    """Contingency matrix of true classes and predicted clusters.

    Attributes
    ----------
    counts : (K, k) array of int
        Number of points of class i in cluster j.
    true, found : tuple
        Names of the classes and of the clusters, sorted.
    """

    counts: npt.NDArray[np.int64]
    true: tuple[Any, ...]
    found: tuple[Any, ...]


def contingency_matrix(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> ContingencyMatrix:
    """Return the contingency matrix of any number of true classes and predicted clusters.

    Parameters
    ----------
    labels_true, labels_pred : (n,) array
        Labels, as numbers or names.

    Raises
    ------
    DataError
        If the lengths differ, or there are no points.
    """
    one, other = as_any(labels_true, "labels_true"), as_any(labels_pred, "labels_pred")
    if one.ndim != 1 or one.shape != other.shape:
        raise DataError(
            f"labels_true has shape {one.shape}, labels_pred {other.shape}. Pass 1-d arrays of equal length."
        )
    if len(one) == 0:
        raise DataError("labels_true and labels_pred are empty. Pass at least one label.")
    try:
        (classes, i), (clusters, j) = (np.unique(part, return_inverse=True) for part in (one, other))
    except TypeError as error:
        raise DataError(f"labels_true or labels_pred has labels of several types ({error}). Use one.") from None
    counts = np.zeros((len(classes), len(clusters)), dtype=np.int64)
    np.add.at(counts, (i, j), 1)
    return ContingencyMatrix(counts, tuple(classes.tolist()), tuple(clusters.tolist()))


def adjusted_rand_score(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Return the adjusted Rand index: 1 if clusters and classes are equal, about 0 for random clusters.

    It is the Rand index (the fraction of pairs of points on which two partitions agree) minus its expected value for
    random partitions with the same cluster sizes, relative to the maximum of this difference.

    Source: L. Hubert and P. Arabie, Comparing partitions, Journal of Classification 2, 1985.

    Parameters and errors are those of `contingency_matrix`.
    """
    counts = contingency_matrix(labels_true, labels_pred).counts.astype(np.float64)
    n = counts.sum()
    same_pairs, pairs_true, pairs_pred = (
        float(np.sum(sizes * (sizes - 1.0))) / 2.0 for sizes in (counts, counts.sum(axis=1), counts.sum(axis=0))
    )
    all_pairs = float(n * (n - 1.0)) / 2.0
    expected = pairs_true * pairs_pred / all_pairs if all_pairs else 0.0
    maximum = (pairs_true + pairs_pred) / 2.0
    return (same_pairs - expected) / (maximum - expected) if maximum != expected else 1.0


def squared_correlation(X: npt.ArrayLike, y: npt.ArrayLike) -> float:
    r"""Return the squared correlation of the labels with the best direction of the data, in [0, 1].

    .. math::
        \max_w \frac{(y^\top X w)^2}{\|\Pi_n y\|_2^2\,\|X w\|_2^2}
        = \frac{y^\top X (X^\top X)^{+} X^\top y}{\|\Pi_n y\|_2^2}

    Source: Eq. (2), section 2.1.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    y : (n,) array
        Labels in {-1, +1}; if all are equal, the correlation is 0.

    Raises
    ------
    DataError
        If X or y cannot be used as given.
    """
    data = as_data(X)
    return min(separation(column_basis(data), as_labels(y, len(data))), 1.0)


def separation(G: Array | FactorTable, y: Array, sample_weight: Array | None = None) -> float:
    r"""Return :math:`\|G^\top \Pi_n y\|_2^2 / \|\Pi_n y\|_2^2`, and 0 if all labels are equal.

    It is the between-cluster sum of squares of the rows of G, which 2-means on these rows maximises.

    Source: Appendix A.

    Parameters
    ----------
    G : (n, r) array
        Points as rows; r may be 0.
    y : (n,) array
        Labels in {-1, +1}.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale; equal weights by default.
    """
    y = as_labels(y)
    weights = normalize_weights(sample_weight, len(y))
    G = G if isinstance(G, FactorTable) else as_real(G, "G").astype(np.float64, copy=False)
    if len(G.shape) != 2 or G.shape[0] != len(y):
        raise DataError(f"G has shape {G.shape} for {len(y)} labels. Pass one row per label.")
    centered = scale_by_sqrt_weights(y - mean_of(y, weights), weights)
    variation = float(centered @ centered)
    projections = G.rmatvec(centered) if isinstance(G, FactorTable) else scale_by_sqrt_weights(G, weights).T @ centered
    return float(np.sum(projections**2)) / variation if variation > 0.0 else 0.0


def numerical_rank(F: npt.ArrayLike, rtol: float = 1e-2) -> int:
    """Return the number of eigenvalues of F F' above rtol times the largest; 0 for F = 0.

    Parameters
    ----------
    F : (n, r) array
        Factor.
    rtol : float
        Relative threshold on the eigenvalues (the squares of the singular values of F), in [0, 1].

    Raises
    ------
    DataError
        If F is not a finite matrix.
    ParameterError
        If rtol is outside [0, 1].
    """
    return int(np.sum(_relative_eigenvalues(F) > in_unit_interval(rtol, "rtol")))


def eigenvalue_ratio(F: npt.ArrayLike | FactorTable) -> float:
    """Return lambda_2 / lambda_1 of F F', in [0, 1]: 0 for rank at most one, 1 if the two largest are equal.

    Parameters
    ----------
    F : (n, r) array
        Factor.

    Raises
    ------
    DataError
        If F is not a finite matrix.
    """
    if isinstance(F, FactorTable):
        values, _ = F.leading(2)
        return float(max(values[1], 0.0) / (values[0] or 1.0)) if len(values) > 1 else 0.0
    factor = as_matrix(F, "F")
    size = min(factor.shape)
    if size <= FULL_FACTOR_SVD_SIZE:
        return float(np.append(_relative_eigenvalues(factor), 0.0)[1])
    first, second = np.sum((factor @ leading_right_vectors(factor, 2).T) ** 2, axis=0)
    return float(second / (first or 1.0))


def _relative_eigenvalues(F: npt.ArrayLike) -> Array:
    """Return the min(n, r) leading eigenvalues of F F', largest first, divided by the largest."""
    singular = np.linalg.svd(as_matrix(F, "F"), compute_uv=False)
    return np.asarray((singular / (singular[0] or 1.0)) ** 2)


def label_subspace_overlap(Y_true: npt.ArrayLike, Y_pred: npt.ArrayLike) -> float:
    r"""Return the overlap of the spans of the true and predicted labels.

    .. math::
        \mathrm{tr}(\Phi_{Y_{true}} \Phi_{Y_k}), \qquad \Phi_Y = Y (Y^\top Y)^{+} Y^\top

    It is at most the smaller of the two ranks, with equality if one span contains the other.  The labels are not
    centred; centre both to exclude the constant vector.

    Source: section 7.2, Figure 5.

    Parameters
    ----------
    Y_true : (n, K) array
    Y_pred : (n, k) array

    Raises
    ------
    DataError
        If an input is not a finite matrix or the numbers of rows differ.
    """
    true, found = _as_labels_of_equal_length(Y_true, Y_pred)
    return float(np.sum((column_basis(true).T @ column_basis(found)) ** 2))


def label_correlations(Y_true: npt.ArrayLike, Y_pred: npt.ArrayLike) -> Array:
    r"""Return the absolute correlations between predicted and true labels, (k, K), in [0, 1].

    .. math::
        |\hat y_i^\top \Pi_n y_j| / (\|\Pi_n \hat y_i\|_2 \|\Pi_n y_j\|_2)

    The correlations of a constant label are 0.

    Source: section 7.2, Figure 6.

    Parameters and errors are those of `label_subspace_overlap`.
    """
    true, found = _as_labels_of_equal_length(Y_true, Y_pred)
    return np.minimum(np.abs(standardize_columns(found).T @ standardize_columns(true)) / len(true), 1.0)


def _as_labels_of_equal_length(Y_true: npt.ArrayLike, Y_pred: npt.ArrayLike) -> tuple[Array, Array]:
    true, found = as_matrix(Y_true, "Y_true"), as_matrix(Y_pred, "Y_pred")
    if len(true) != len(found):
        raise DataError(f"Y_pred has {len(found)} rows, but Y_true has {len(true)}.")
    return true, found
