"""Result of methods that select columns, and their common column weights."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, as_scalar, format_exact


class Selection(NamedTuple):
    """Labels (n,) in {-1, +1}, the first at +1, and selected columns (k,), sorted by decreasing weight.

    Column numbers start at 0.
    """

    labels: Array
    features: npt.NDArray[np.intp]


def ranked_columns(weights: Array) -> npt.NDArray[np.intp]:
    """Return the columns with nonzero weights, sorted by decreasing absolute weight."""
    order = np.argsort(-np.abs(weights), kind="stable")
    return order[: np.count_nonzero(weights)]


def sparse_weights(a: Array, bound: float) -> Array:
    r"""Return the w that maximises a'w under :math:`\|w\|_2 \le 1` and :math:`\|w\|_1 \le` bound.

    It is a, soft-thresholded and scaled to norm 1.  The threshold is 0 if that is feasible; otherwise the l1 norm
    equals the bound.  If too many entries share the largest absolute value, w is spread over them.

    Source: Witten, Tibshirani and Hastie, Biostatistics 2009, lemma 2.2.
    """
    size = np.abs(a)
    if l1_of_unit(size) <= bound:
        return np.asarray(a / np.linalg.norm(a))
    size = size / size.max()
    largest = np.where(size >= 1 - 1e-9, np.sign(a), 0.0)
    if np.count_nonzero(largest) ** 0.5 >= bound:
        return np.asarray(largest * bound / np.count_nonzero(largest))
    threshold = scipy.optimize.brentq(lambda t: l1_of_unit(np.maximum(size - t, 0.0)) - bound, 0.0, 1 - 1e-9)
    thresholded = np.sign(a) * np.maximum(size - threshold, 0.0)
    return np.asarray(thresholded / np.linalg.norm(thresholded))


def grid_of_bounds(d: int) -> Array:
    """Return ten bounds on the l1 norm, evenly spaced in logarithms from 1.2 to 0.9 sqrt(d), the grid of R's sparcl."""
    return np.geomspace(1.2, max(0.9 * d**0.5, 1.2), 10)


def as_bound(bound: float) -> float:
    """Return a bound on the l1 norm of a vector of norm 1, at least 1, as a float."""
    value = as_scalar(bound, "bound")
    if value < 1.0:
        raise ParameterError(f"bound = {format_exact(value)} must be at least 1 (a single column).")
    return value


def l1_of_unit(w: Array) -> float:
    """Return the l1 norm of w scaled to norm 1; 0 for a zero vector."""
    norm = float(np.linalg.norm(w))
    return float(np.abs(w).sum()) / norm if norm > 0.0 else 0.0
