"""2-means on each column: the solution of Eq. (2) along directions with a single nonzero entry."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data
from diffrac_cvx.rounding.two_clusters import two_means


def kmeans_by_column(X: npt.ArrayLike) -> Array:
    r"""Return the labels of exact 2-means on the column that two clusters explain best, the first point at +1.

    The labels of column j maximise the squared correlation :math:`(y^\top x_j)^2 / (\|\Pi_n y\|_2^2 \|x_j\|_2^2)`, so
    the best of them solve Eq. (2) over all y and all w with one nonzero entry.  Among equally good columns the first is
    taken; a constant column explains nothing.  O(n d log n).

    Source: section 5.2, "1-sparse".

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.

    Raises
    ------
    DataError
        If X cannot be used as given.
    """
    columns = [column[:, None] for column in as_data(X).T]
    found = [two_means(column[:, 0]) for column in columns]
    best = int(np.argmax([_explained(column, y) for column, y in zip(columns, found, strict=True)]))
    return found[best]


def _explained(column: Array, y: Array) -> float:
    """Return the share of the variance of a column that two clusters explain; 0 for a constant one."""
    return separation(column / (float(np.linalg.norm(column)) or 1.0), y)
