"""What a method that chooses columns found, and the weights of the columns that such methods share."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.optimize

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.inputs import Array, as_scalar


class Selection(NamedTuple):
    """Labels, and the columns of the data that they were found from.

    Attributes
    ----------
    labels : (n,) array
        In {-1, +1}, the first point at +1.
    features : (k,) array of int
        The columns, counted from 0, that of the largest weight first.
    """

    labels: Array
    features: npt.NDArray[np.intp]


def ranked_columns(weights: Array) -> npt.NDArray[np.intp]:
    """Return the columns with a nonzero weight, that of the largest absolute value first."""
    order = np.argsort(-np.abs(weights), kind="stable")
    return order[: np.count_nonzero(weights)]


def sparse_weights(a: Array, bound: float) -> Array:
    r"""Maximise a'w over w with :math:`\|w\|_2 \le 1` and :math:`\|w\|_1 \le` bound: a soft-thresholded, of norm 1.

    The threshold is 0 if that is feasible, else it makes the l1 norm equal to the bound.  Where several entries share
    the largest absolute value and are too many for the bound, w is spread over them.

    Source: Witten, Tibshirani and Hastie, Biostatistics 2009, lemma 2.2.
    """
    size = np.abs(a)
    if _l1_of_unit(size) <= bound:
        return a / np.linalg.norm(a)
    threshold = scipy.optimize.brentq(lambda t: _l1_of_unit(np.maximum(size - t, 0.0)) - bound, 0.0, size.max())
    kept = np.sign(a) * np.maximum(size - threshold, 0.0)
    if _l1_of_unit(kept) <= 1e-6 or _l1_of_unit(kept) > 1.001 * bound:  # ties: no threshold has this l1 norm
        largest = np.where(size >= size.max() * (1 - 1e-9), np.sign(a), 0.0)
        return largest * bound / np.count_nonzero(largest)
    return kept / np.linalg.norm(kept)


def grid_of_bounds(d: int, size: int = 10) -> Array:
    """Return bounds on the l1 norm, evenly spaced in logarithms from 1.2 to 0.9 sqrt(d), the grid of R's sparcl."""
    return np.geomspace(1.2, max(0.9 * d**0.5, 1.2), size)


def as_bound(bound: float) -> float:
    """Return a bound on the l1 norm of a vector of norm 1 as a float.

    Raises
    ------
    ParameterError
        If it is below 1.
    """
    value = as_scalar(bound, "bound")
    if value < 1.0:
        raise ParameterError(f"bound = {value:g} must be at least 1, which is a single column")
    return value


def _l1_of_unit(w: Array) -> float:
    """Return the l1 norm of w scaled to norm 1; 0 of a zero vector."""
    norm = float(np.linalg.norm(w))
    return float(np.abs(w).sum()) / norm if norm > 0.0 else 0.0
