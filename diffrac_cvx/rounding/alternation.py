"""Alternating optimisation of Eq. (2): from labels to better labels."""

import numpy.typing as npt

from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data, as_labels, positive_int
from diffrac_cvx.points.linear_algebra import EPS, column_basis
from diffrac_cvx.rounding.two_clusters import two_means


def refine(X: npt.ArrayLike, y: npt.ArrayLike, *, max_iter: int = 100) -> Array:
    """Improve labels by the alternating optimisation of Eq. (2), until a fixed point.

    The squared correlation never decreases; labels that are a fixed point are returned unchanged.  The first point
    keeps its label.

    Source: section 2.1, and 2.3, "the non-convex algorithm can be run from the rounded solution".

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    y : (n,) array
        Labels in {-1, +1} to start from.
    max_iter : int
        Most rounds of alternation.

    Raises
    ------
    DataError
        If X or y cannot be used as given.
    ParameterError
        If max_iter is not a whole number >= 1.
    """
    Q = column_basis(as_data(X))
    return alternate(Q, as_labels(y, len(Q)), positive_int(max_iter, "max_iter"))


def alternate(Q: Array, y: Array, max_iter: int) -> Array:
    """Repeat alternate_once while the squared correlation grows; Q has orthonormal columns that span the centred X."""
    reached = separation(Q, y)
    for _ in range(max_iter):
        candidate = alternate_once(Q, y)
        attained = separation(Q, candidate)
        if attained <= reached * (1.0 + 64 * EPS):
            break
        y, reached = candidate, attained
    return y


def alternate_once(Q: Array, y: Array) -> Array:
    """Given y, take w = X^+ y, so that X w = Q Q'y; given w, take exact 2-means of X w.  The first label is kept."""
    labels = two_means(Q @ (Q.T @ (y - y.mean())))
    return labels if y[0] > 0.0 else -labels
