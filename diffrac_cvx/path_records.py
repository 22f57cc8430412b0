"""What is kept of the solutions along a grid, and the direction that a matrix V stands for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.inputs import Array, as_data, as_labels, as_matrix, as_scalar, in_unit_interval
from diffrac_cvx.label_brackets import imbalance
from diffrac_cvx.linalg import inverse_or_one, psd_factor, triangular_root
from diffrac_cvx.metrics import clustering_error, eigenvalue_ratio
from diffrac_cvx.result import Result
from diffrac_cvx.rounding import kmeans_centered

Rounding = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Path:
    """What is kept of the solutions along a grid: one entry for each parameter.

    Attributes
    ----------
    name : str
        "nu", "lambda" or "alpha".
    parameter : (m,) array
        The grid.
    value, lower, upper : (m,) array
        Objective at the point found, and the proved bracket on the optimum.
    eigenvalue_ratio : (m,) array
        Second eigenvalue of Y over the first, 0 where Y = yy'.
    imbalance : (m,) array
        1'Y1/n^2.
    directions : (m, d) array
        The `leading_direction` of each solution, with signs that follow each other, the largest entry positive.
    error : (m,) array or None
        Clustering error of the rounded solutions, where labels were given.
    seconds : (m,) array
        Time to solve each.
    """

    name: str
    parameter: Array
    value: Array
    lower: Array
    upper: Array
    eigenvalue_ratio: Array
    imbalance: Array
    directions: Array
    error: Array | None
    seconds: Array

    @property
    def gap(self) -> Array:
        """Proved gaps, upper - lower."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class Duality:
    r"""The penalised problem along nu, and the constrained problem at the imbalances of its solutions.

    With p the value of (8) and q that of (7), :math:`p(\nu) = \min_\alpha q(\alpha) + \nu \alpha`, and the minimum is
    at the imbalance of a solution of (8).

    Attributes
    ----------
    penalised : Path
        Eq. (8), its parameter is nu.
    constrained : Path
        Eq. (7), its parameter is the imbalance of the penalised solution, entry by entry.
    """

    penalised: Path
    constrained: Path

    @property
    def sums(self) -> tuple[Array, Array]:
        """The brackets of q(alpha) + nu alpha, lower and upper."""
        line = self.penalised.parameter * self.constrained.parameter
        return self.constrained.lower + line, self.constrained.upper + line

    @property
    def apart(self) -> Array:
        """How far the brackets of p(nu) and of q(alpha) + nu alpha lie apart: 0 where they meet, as they must."""
        lower, upper = self.sums
        return np.maximum(np.maximum(lower - self.penalised.upper, self.penalised.lower - upper), 0.0)

    def bounds(self, alphas: npt.ArrayLike) -> tuple[Array, Array]:
        r"""Return proved bounds on q at any imbalances, lower and upper.

        Below, the largest of :math:`p(\nu) - \nu\alpha` over the grid.  Above, since q is convex, the chords between
        its upper bounds at the solutions, q(0) <= 1 and q(1) = 0.

        Parameters
        ----------
        alphas : (k,) array
            Imbalances, in [0, 1].

        Raises
        ------
        ParameterError
            If an imbalance is outside [0, 1].
        """
        grid = as_grid(alphas, "alphas", in_unit_interval)
        lines = self.penalised.lower - np.outer(grid, self.penalised.parameter)
        at = np.concatenate([self.constrained.parameter, [0.0, 1.0]])
        upper = np.concatenate([self.constrained.upper, [1.0, 0.0]])
        order = np.lexsort((upper, at))
        at, first = np.unique(at[order], return_index=True)
        return np.maximum(lines.max(axis=1), 0.0), np.interp(grid, at, upper[order][first])


class Row(NamedTuple):
    """One entry of a Path, without its parameter."""

    value: float
    lower: float
    upper: float
    eigenvalue_ratio: float
    imbalance: float
    directions: Array
    error: float
    seconds: float


class Keeper:
    """Keep of a result what a path has.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    y : (n,) array, optional
        Labels in {-1, +1} to judge the solutions by, rounded by `rounding`.
    """

    def __init__(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, rounding: Rounding = kmeans_centered) -> None:
        self.X = as_data(X, warn=False)  # the solvers warn
        self.y = None if y is None else as_labels(y, len(self.X))
        self.rounding = rounding
        self.units = inverse_or_one(np.sqrt(np.mean(self.X**2, axis=0)))
        self.root = triangular_root(self.X * self.units)

    def row(self, result: Result) -> Row:
        """Return the entry of a path."""
        error = np.nan if self.y is None else clustering_error(self.y, self.rounding(result.F))
        ratio, alpha, v = eigenvalue_ratio(result.F), imbalance_of(result.F), self.direction(self.matrix_of(result))
        return Row(result.value, result.lower, result.upper, ratio, alpha, v, error, result.seconds)

    def direction(self, V: Array) -> Array:
        """Return the leading direction of V."""
        d = self.X.shape[1]
        if V.shape not in ((d, d), (d + 1, d + 1)):
            raise DataError(f"V has shape {V.shape}; for these data it must be ({d}, {d}) or ({d + 1}, {d + 1})")
        # Unit columns first: the factor of a badly scaled V keeps its small entries.
        G = psd_factor(V[:d, :d] / np.outer(self.units, self.units))
        v = G @ np.linalg.svd(self.root @ G)[2][0]
        return np.asarray(self.units * (v if v[np.argmax(np.abs(v))] >= 0.0 else -v))

    def matrix_of(self, result: Result) -> Array:
        """Return V, for a result in Y alone the one that is best in (11): X^+ Y X^+'."""
        if result.V is not None:
            return result.V
        if len(result.F) != len(self.X):
            raise DataError(f"the result is for {len(result.F)} points, X has {len(self.X)}")
        G = self.units[:, None] * np.linalg.lstsq(self.X * self.units, result.F - result.F.mean(axis=0))[0]
        return np.asarray(G @ G.T)

    def path(self, name: str, grid: Array, rows: Iterable[Row]) -> Path:
        """Put rows into arrays."""
        columns: dict[str, Any] = {
            name: np.array(column) for name, column in zip(Row._fields, zip(*rows, strict=True), strict=True)
        }
        columns["directions"] = followed(columns["directions"], self.units)
        columns["error"] = None if self.y is None else columns["error"]
        return Path(name, grid, **columns)


def followed(directions: Array, units: Array) -> Array:
    """Return directions, (m, d), each with the sign that agrees with the one before, the largest entry positive.

    Both are judged with the columns at unit variance.
    """
    scaled = directions / units
    signs = np.ones(len(scaled))
    for k in range(1, len(scaled)):
        signs[k] = -signs[k - 1] if scaled[k] @ scaled[k - 1] < 0.0 else signs[k - 1]
    scaled *= signs[:, None]
    largest = scaled.ravel()[np.argmax(np.abs(scaled))]
    return np.asarray(directions * (signs if largest >= 0.0 else -signs)[:, None])


def leading_direction(X: npt.ArrayLike, V: npt.ArrayLike | Result) -> Array:
    """Return v such that X vv' X' is the best approximation of rank one of X V X'.

    If V = vv' it is v.  It does not depend on the units of the columns, but for its sign: the largest entry is
    positive when all columns are at unit variance.

    Source: X V X' is what the labels' matrix is read from, appendix C.2.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : Result, or (d, d) array, or (d + 1, d + 1) with the offset last
        Matrix of directions; the offset is left out.  For a result in Y alone, V = X^+ Y X^+'.

    Raises
    ------
    DataError
        If X cannot be used as given, or V has another shape.
    """
    keep = Keeper(X)
    return keep.direction(keep.matrix_of(V) if isinstance(V, Result) else as_matrix(V, "V"))


def imbalance_of(F: Array) -> float:
    """Return 1'Y1/n^2 of unit rows, at most 1."""
    return min(imbalance(F), 1.0)


def as_grid(values: npt.ArrayLike, name: str, check: Callable[[Any, str], float]) -> Array:
    """Return a grid as a float64 (m,) copy, each entry checked."""
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0:
        raise ParameterError(f"{name} has shape {array.shape}; pass a 1-d array of at least one number")
    return np.array([check(value, name) for value in array])


def not_negative(value: Any, name: str) -> float:
    """Return a parameter that must be >= 0 as a float."""
    number = as_scalar(value, name)
    if number < 0.0:
        raise ParameterError(f"{name} = {number:g} must not be negative")
    return number
