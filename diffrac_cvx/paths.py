"""Regularisation paths over nu or lambda with certified bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.metrics import clustering_error, eigenvalue_ratio, factor_imbalance
from diffrac_cvx.points.checks import Array, array_of, as_labels, in_unit_interval, nonnegative, positive
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.linear_algebra import row_products
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.feature_groups import FeatureGroups
from diffrac_cvx.problem.formatting import width_of
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, require_penalty
from diffrac_cvx.problem.result import Status
from diffrac_cvx.rounding import kmeans_centered
from diffrac_cvx.rounding.diagnostics import Diagnostic, find_diagnostics
from diffrac_cvx.rounding.directions import leading_direction, units_of
from diffrac_cvx.solvers import low_rank

__all__ = ["RegularizationPath", "lambda_path", "leading_direction", "nu_path"]

UNIT_L1 = Penalty(lam=1.0)


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Regularisation path: one entry for each parameter value of a grid.

    Attributes
    ----------
    name : str
        "nu" or "lambda".
    parameter : (m,) array
        Parameter values.
    value, lower, upper : (m,) array
        Objective at the solution, and certified bounds on the optimum.
    eigenvalue_ratio : (m,) array
        Second eigenvalue of Y divided by the first, 0 if Y = yy'.
    imbalance : (m,) array
        1'Y1/n^2.
    directions : (m, d) array
        The `leading_direction` of each solution, with signs aligned along the path and the largest entry positive.
    error : (m,) array or None
        Clustering error of the rounded solutions, if labels were given.
    seconds : (m,) array
        Time of each solve.
    diagnostics : tuple of tuples of Diagnostic
        Warnings about each rounded solution; empty if there are none.
    deviations : (d,) array
        Standard deviations of the features; directions multiplied by them refer to features of unit variance.
    groups : FeatureGroups
        Feature groups of the penalty, with ``names`` and ``sizes``; each feature is a group of its own if it has none.
    n_excluded : (m,) array of int
        Number of excluded columns, see `Result`: the bounds hold for X without them.
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
    diagnostics: tuple[tuple[Diagnostic, ...], ...]
    deviations: Array
    groups: FeatureGroups
    n_excluded: Array

    @property
    def group_norms(self) -> Array:
        """Euclidean norms of the groups of coefficients for features of unit variance, (m, number of groups)."""
        squares, labels = np.square(self.directions * self.deviations), self.groups.labels
        return np.sqrt([np.bincount(labels, row, len(self.groups.names)) for row in squares])

    @property
    def gap(self) -> Array:
        """Certified gaps upper - lower, rounded up."""
        return np.array([width_of(lower, upper) for lower, upper in zip(self.lower, self.upper, strict=True)])


def low_rank_path(
    name: str,
    X: npt.ArrayLike,
    problems: list[tuple[float, float, Penalty]],
    y: npt.ArrayLike | None,
    time_limit: float | None,
    constraints: Constraints | None,
    options: dict[str, Any],
) -> RegularizationPath:
    """Solve (15) for each parameter, nu and penalty, in reverse order, with warm starts."""
    if options.get("sample_weight") is not None:  # directions and labels are computed without them
        raise ParameterError(
            "a path takes no sample_weight. Call low_rank at each parameter, with start= the last result."
        )
    # `Table`, also accepted by the solvers
    points: Any = read_points(X, constraints=constraints, by_columns=True, warn=True).X
    labels = None if y is None else as_labels(y, len(points))
    rows, diagnostics = list[dict[str, Any]](), list[tuple[Diagnostic, ...]]()
    start, timer = None, Timer(None if time_limit is None else positive(time_limit, "time_limit"))
    for parameter, nu, penalty in problems[::-1]:
        if rows and timer.is_over:
            break
        limits = {} if time_limit is None else {"time_limit": timer.split(len(problems) - len(rows))}
        result = low_rank(points, nu, penalty, start=start, **{**options, **limits})
        start = start if result.status is Status.CLOSED_FORM else result
        rounded = kmeans_centered(result.factor, constraints=constraints)
        row = {key: getattr(result, key) for key in ("value", "lower", "upper", "seconds", "n_excluded")}
        row |= {"parameter": parameter, "directions": leading_direction(points, result)}
        row |= {"eigenvalue_ratio": eigenvalue_ratio(result.factor), "imbalance": factor_imbalance(result.factor)}
        row |= {} if labels is None else {"error": clustering_error(labels, rounded)}
        rows.insert(0, row)
        diagnostics.insert(0, find_diagnostics(points, rounded))
    columns: dict[str, Any] = {"error": None} | {key: np.array([row[key] for row in rows]) for key in rows[0]}
    units, d = units_of(points), points.shape[1]
    columns["directions"] = align_signs(columns["directions"], units)
    nearest = penalty.pair_penalty(d).nearest_direction
    for v in columns["directions"]:  # choose the sign with the smaller infeasible part
        v *= -1.0 if np.abs(nearest(-v / units)).sum() > np.abs(nearest(v / units)).sum() else 1.0
    columns |= {"deviations": np.sqrt(points.mean_squares()), "groups": penalty.feature_groups(d)}
    columns["diagnostics"] = tuple(diagnostics)
    return RegularizationPath(name, **columns)


def nu_path(
    X: npt.ArrayLike,
    nus: npt.ArrayLike,
    penalty: Penalty = NO_PENALTY,
    *,
    y: npt.ArrayLike | None = None,
    time_limit: float | None = None,
    constraints: Constraints | None = None,
    **options: Any,
) -> RegularizationPath:
    """Solve (15) by `low_rank` along weights of the imbalance, from the largest, with warm starts.

    Source: Eq. (8), (14), section 2.3; Figure 2.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nus : (m,) array
        Weights of the imbalance, in [0, 1]; returned in increasing order.
    penalty : Penalty
        Weights a and c.
    y : (n,) array, optional
        Reference labels in {-1, +1}, for the clustering error of `rounding.kmeans_centered`.
    time_limit : float, optional
        Time limit for the whole path, in seconds; each solve gets an equal share of the remaining time, and the path
        ends when none is left.
    constraints : Constraints, optional
        Must-link and cannot-link constraints or known labels, also satisfied by the rounded solutions.  X must be an
        array.
    **options
        Passed to `low_rank`: tol, max_iter, callback.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    """
    problems = [(nu, nu, penalty) for nu in as_grid(nus, "nus", in_unit_interval)]
    return low_rank_path("nu", X, problems, y, time_limit, constraints, options)


def lambda_path(
    X: npt.ArrayLike,
    lams: npt.ArrayLike,
    penalty: Penalty = UNIT_L1,
    *,
    nu: float = 1.0,
    y: npt.ArrayLike | None = None,
    time_limit: float | None = None,
    constraints: Constraints | None = None,
    **options: Any,
) -> RegularizationPath:
    """Solve (15) by `low_rank` along weights of the l1 penalty, from the largest, with warm starts.

    Source: Eq. (15), (20), section 3; lambda is c_i^2 for all i.  From large to small lambda the connected components
    of V usually merge, so each solution is a good warm start for the next.

    Other parameters and the errors are those of `nu_path`.

    Parameters
    ----------
    lams : (m,) array
        Weights of the squared l1 norm, non-negative; returned in increasing order.
    penalty : Penalty
        Penalty at lambda = 1, by default ``Penalty(lam=1.0)``.  Lambda multiplies its ``lam``; the ridge, groups and
        sign constraints are the same along the path.
    nu : float
        Weight of the imbalance, in [0, 1].
    """
    unit = require_penalty(penalty)
    if not np.any(unit.lam):
        raise ParameterError("penalty has lam = 0. Pass that at lambda = 1, such as Penalty(lam=1.0, ridge=0.3).")
    grid = as_grid(lams, "lams", nonnegative)
    problems = [(lam, nu, unit.with_weights(lam * np.asarray(unit.lam), unit.ridge)) for lam in grid]
    return low_rank_path("lambda", X, problems, y, time_limit, constraints, options)


def as_grid(values: npt.ArrayLike, name: str, check: Callable[[Any, str], float]) -> list[float]:
    """Return the numbers of a grid in increasing order, each validated."""
    array = array_of(values)
    if array.ndim != 1 or len(array) == 0:
        raise ParameterError(f"{name} has shape {array.shape}. Pass a 1-d array of at least one number.")
    return sorted(check(value, name) for value in array)


def align_signs(directions: Array, units: Array) -> Array:
    """Return directions, (m, d), each with the sign that agrees with its predecessor, the largest entry positive."""
    scaled = directions / units  # for columns at unit variance
    turns = np.where(row_products(scaled[1:], scaled[:-1]) < 0.0, -1.0, 1.0)
    signs = np.cumprod(np.append(1.0, turns))
    scaled *= signs[:, None]
    largest = scaled.ravel()[np.argmax(np.abs(scaled))]
    return np.asarray(directions * (signs if largest >= 0.0 else -signs)[:, None])
