"""Weights of the points: rows of weight 0 are left out, the others count in every mean by their share of the total."""

import math
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, as_data, as_table, list_some, require_finite

Table = TypeVar("Table", bound=npt.NDArray[Any])

SMALLEST = 1e-100  # of the largest weight: squares of what is smaller leave the range of doubles


@dataclass(frozen=True, eq=False)
class PointWeights:
    """Weights of n points, of which m have a positive one."""

    kept: npt.NDArray[np.bool_]  # the points of positive weight, (n,)
    shares: Array | None  # p_i = w_i / sum w of these points, (m,); None where all are equal

    @property
    def has_zeros(self) -> bool:
        """Whether points are left out."""
        return not self.kept.all()


def as_weights(sample_weight: npt.ArrayLike | None, n: int, least: int = 2) -> PointWeights | None:
    """Return checked weights of n points, at least so many positive; None where there are none, or all are equal."""
    if sample_weight is None:
        return None
    w = as_numbers(sample_weight)
    if w.ndim != 1:
        raise DataError(f"sample_weight has shape {w.shape}; pass a 1-d array, one weight for each of the {n} points")
    if len(w) != n:
        raise DataError(f"sample_weight has {len(w)} weights for {n} points")
    require_finite(w, "sample_weight")
    if np.any(w < 0.0):
        i = int(np.argmax(w < 0.0))
        raise DataError(f"sample_weight is {w[i]:g} at entry {i}, counting from 0; weights must not be negative")
    kept = w > 0.0
    if kept.sum() < least:
        many = f"{kept.sum()} positive among {n} entries" if kept.any() else "only zeros"
        raise DataError(f"sample_weight has {many}; at least {least} points need a positive weight")
    if np.any(w[kept] < SMALLEST * w.max()):
        tiny = list_some(kept & (w < SMALLEST * w.max()))
        raise DataError(f"sample_weight is below {SMALLEST:g} of its largest entry at {tiny}; set such weights to 0")
    positive = w[kept]
    if positive.min() == positive.max():
        return PointWeights(kept, None) if not kept.all() else None
    positive = positive * 2.0 ** -float(np.frexp(positive.max())[1])  # exact, and its sum does not overflow
    return PointWeights(kept, positive / math.fsum(positive))


def as_numbers(sample_weight: Any) -> Array:
    """Return weights as a float64 array."""
    raw = np.asarray(sample_weight)
    if raw.dtype.kind not in "biufO":
        raise DataError(f"sample_weight has entries of type {raw.dtype}; weights must be real numbers")
    try:
        return raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight holds entries that are not real numbers ({error})") from None


def every_point(shares: Array | None) -> PointWeights | None:
    """Return the weights of points that all have a positive one, from their shares."""
    return None if shares is None else PointWeights(np.ones(len(shares), dtype=bool), shares)


def weights_for(X: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> PointWeights | None:
    """Return checked weights of the rows of a table; None where there are none, or all are equal."""
    return None if sample_weight is None else as_weights(sample_weight, len(as_table(X)))


def as_weighted_data(X: npt.ArrayLike, weights: PointWeights | None, *, warn: bool = True, depth: int = 4) -> Array:
    """Return the (n, d) data matrix, points of weight 0 included, centred by the weighted mean; else as `as_data`."""
    if weights is None:
        return as_data(X, warn=warn, depth=depth + 1)
    return as_data(X, kept=weights.kept, shares=weights.shares, warn=warn, depth=depth + 1)


def points_with_weight(X: Table, weights: PointWeights | None) -> Table:
    """Return the rows of positive weight, shape (m, ...)."""
    return X if weights is None or not weights.has_zeros else cast(Table, X[weights.kept])


def shares_of(weights: PointWeights | None) -> Array | None:
    """Return the shares of the points of positive weight; None where all are equal."""
    return None if weights is None else weights.shares


def mean_of(values: Array, shares: Array | None) -> Array:
    """Return sum_i p_i values_i, over the first axis; the plain mean where the shares are None."""
    return np.asarray(values.mean(axis=0) if shares is None else shares @ values)


def sum_of_weights(mask: npt.NDArray[np.bool_], shares: Array | None) -> float:
    """Return m times the shares of the points where a mask is true: their number, where all weights are equal."""
    return float(mask.sum() if shares is None else len(mask) * (shares @ mask))


def weigh_rows(X: Array, shares: Array | None) -> Array:
    """Return the rows times s_i = sqrt(m p_i), in whose squares means are weighted; X where the shares are None."""
    if shares is None:
        return X
    s = np.sqrt(len(shares) * shares)
    return np.asarray(X * (s if X.ndim == 1 else s[:, None]))


def shares_within(shares: Array | None, chosen: npt.NDArray[Any]) -> Array | None:
    """Return the shares of some points, by a mask or their numbers, of the total of these."""
    return None if shares is None else shares[chosen] / math.fsum(shares[chosen])
