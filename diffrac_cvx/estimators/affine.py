"""Base class of the estimators, which reads and scales tables, solves relaxations and evaluates affine functions."""

import copy
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from diffrac_cvx.certificates import certify_clusters, certify_labels
from diffrac_cvx.certificates.values import certified_labels_value, or_zero_direction
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.deadlines import deadline_after, seconds_left, time_limited
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import (
    Array,
    PointWeights,
    all_positive_weights,
    centered_data,
    normalize_weights,
    one_of,
    positive,
    positive_int,
    require_callback,
    require_flag,
    warn_constant,
)
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.exclusion import exclude_columns, is_rounding_noise, make_excluded
from diffrac_cvx.points.linear_algebra import inverse_or_one, mean_of
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.reading import as_stored, is_out_of_core, many_rows, read_points, table_times
from diffrac_cvx.points.table import Table, array_table, centered_table
from diffrac_cvx.problem.direction_problem import direction_problem
from diffrac_cvx.problem.formatting import format_upper, width_of
from diffrac_cvx.problem.penalty import Penalty, penalty_on_columns, weights_of
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.registry import SOLVERS
from diffrac_cvx.rounding.directions import best_direction
from diffrac_cvx.rounding.many_clusters import cluster_indices, explained_variance
from diffrac_cvx.solvers.driver import WIDE_TABLE_RTOL, with_all_points
from diffrac_cvx.solvers.exact.partition import bound_with_floors

VALIDATION_OPTIONS: Any = {"accept_sparse": ("csr", "csc"), "dtype": np.float64}
MAX_FLOOR_POINTS = 300  # largest number of points for which the bound for K clusters is computed
CONVERGED = (Status.OPTIMAL, Status.CLOSED_FORM)
Fit = TypeVar("Fit", bound=Callable[..., Any])


def limited(fit: Fit) -> Fit:
    """Decorate ``fit`` to use one thread; after ``time_limit`` it computes only short, necessary steps."""

    @wraps(fit)
    def fit_in_time(estimator: Any, *args: Any, **options: Any) -> Any:
        require_callback(getattr(estimator, "callback", None))
        limit = None if estimator.time_limit is None else positive(estimator.time_limit, "time_limit")
        with one_thread(), time_limited(deadline_after(limit)):
            return fit(estimator, *args, **options)

    return cast(Fit, fit_in_time)


class ScaledTable(NamedTuple):
    """Centred and scaled points, X = (input - mean) * inverse_scale."""

    X: Any  # `Table`, which public functions accept too
    mean: Array
    inverse_scale: Array


class AffineClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster by signs of affine functions of the features; subclasses find ``coef_`` and ``intercept_``."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read_table(self, X: Any, reset: bool = True, **options: Any) -> Any:
        """Return validated data in their format: an array, a sparse matrix, or a table that is read by blocks."""
        table = as_stored(X)
        if len(table.shape) != 2:
            raise DataError(
                f"X has shape {table.shape}. Reshape your data to two dimensions; for a single feature, reshape(-1, 1)."
            )
        try:
            if not is_out_of_core(X):
                table = check_array(table, estimator=self, input_name="X", **VALIDATION_OPTIONS, **options)
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, table, reset=reset)
        except (TypeError, ValueError) as error:
            message = str(error)
            raise DataError(message if "X " in message else f"X cannot be used: {message}") from None
        return table

    def _scale(
        self,
        X: Any,
        weights: PointWeights | None = None,
        constraints: Constraints | None = None,
        *,
        warn: bool = True,
    ) -> ScaledTable:
        """Return the points of positive weight, checked, centred and, if ``standardize``, scaled to unit variance.

        Sparse matrices and tables out of core are streamed.
        """
        require_flag(self.standardize, "standardize")
        by_columns = hasattr(X, "toarray") and self._penalty.has_l1 and not many_rows(*X.shape)
        options: dict[str, Any] = {"are_many": lambda _n, _d: is_out_of_core(X), "by_columns": by_columns}
        points = read_points(X, weights, constraints=constraints, **options).X
        hidden, mean = is_rounding_noise(points), points.means
        warn_constant(~points.used_columns() | hidden, warn, getattr(self, "feature_names_in_", None))
        inverse_scale = np.ones(X.shape[1])
        if self.standardize:  # columns of pure rounding error cannot have unit variance
            points = exclude_columns(
                points, make_excluded(X.shape[1], np.flatnonzero(hidden)) if hidden.any() else None
            )
            inverse_scale = inverse_or_one(np.sqrt(points.mean_squares()))
        return ScaledTable(points.scaled(inverse_scale), mean, inverse_scale)

    @property
    def _penalty(self) -> Penalty:
        """The penalty on the columns, with the selected ridge if it is "auto"."""
        return self._on_columns(Penalty(lam=self.lam, ridge=getattr(self, "ridge_", self.ridge)))

    def _on_columns(self, weights: Penalty) -> Penalty:
        """Return a penalty of these weights with the groups and sign constraints of the columns."""
        names, signs = getattr(self, "feature_names_in_", None), getattr(self, "nonnegative", None)
        options: dict[str, Any] = {"group_weights": self.group_weights, "d": self.n_features_in_, "names": names}
        return penalty_on_columns(weights, self.groups, signs, **options)

    def _store_functions(self, coef: Array, intercept: Any, data: ScaledTable) -> None:
        """Store the functions X @ coef' + intercept of scaled points in the units of X, and the selected features."""
        self.coef_ = coef * data.inverse_scale
        self.intercept_ = intercept - self.coef_ @ data.mean
        self.scaled_coef_ = coef * np.sqrt(data.X.mean_squares())
        self.support_ = np.flatnonzero(np.any(np.atleast_2d(coef), axis=0))
        groups = self._penalty.feature_groups(self.n_features_in_)  # each feature is one by default
        self.groups_used_ = tuple(groups.names[g] for g in np.unique(groups.labels[self.support_]))

    def _relax(self, X: Any) -> Result:
        """Solve the relaxation with the chosen solver."""
        name = one_of(self.solver, "solver", tuple(SOLVERS))
        limits: dict[str, Any] = {"tol": positive(self.tol, "tol"), "time_limit": seconds_left()}
        if self.max_iter is not None:
            limits["max_iter"] = positive_int(self.max_iter, "max_iter")
        if SOLVERS[name].takes_rtol and X.shape[1] > X.shape[0] and np.any(self._penalty.c):
            limits["rtol"] = WIDE_TABLE_RTOL
        return SOLVERS[name].function(X, self.nu, self._penalty, callback=self.callback, **limits)

    def _with_all_points(
        self, result: Result, given: Array, data: ScaledTable, weights: PointWeights | None, constraints: Any = None
    ) -> Result:
        """Return a result of the points of positive weight with rows of F for all given points."""
        if weights is None or not weights.has_zeros:
            return result
        direction = direction_problem(data.X, float(self.nu), self._penalty)
        X_all = np.where(data.X.used_columns(), (given - data.mean) * data.inverse_scale, 0.0)
        return with_all_points(result, direction, array_table(X_all), weights, constraints)

    def _store_bounds(self, result: Result) -> None:
        """Store the result and its bounds; warn if the solver stopped above tol."""
        self.result_, self.n_excluded_, self.n_iter_ = result, result.n_excluded, max(result.n_iter, 1)
        self.lower_bound_, self.upper_bound_ = result.lower, result.upper
        if result.status not in CONVERGED:
            message = f"{result.status}; the duality gap is {format_upper(result.gap)}, tol is {self.tol:g}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    @property
    def _n_features_out(self) -> int:
        return int(np.atleast_2d(self.coef_).shape[0])

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return ``X @ coef_ + intercept_``.

        Shape (n,), positive for label 1 or the second class, or (n, K), largest at the cluster or class; with several
        labels (n, n_labels), positive if the label is 1.
        """
        check_is_fitted(self)
        return self._decide(self._read_table(X, reset=False))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the labels of points, numbered as in ``labels_``, shape (n,) or (n, n_labels)."""
        return self._label(self.decision_function(X))

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return the projections onto the directions, shape (n, 1), or (n, K) for more than two clusters or labels."""
        check_is_fitted(self)
        projected = table_times(self._read_table(X, reset=False), np.transpose(self.coef_))
        return projected[:, None] if projected.ndim == 1 else projected

    def score(self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the fraction of the variance of the cluster indicators that the projections explain, in [0, 1].

        It needs no true labels, so ``GridSearchCV`` can use it; 0 if all points are in one cluster.  For two clusters
        it is the squared correlation of labels and projections.  Variances are weighted by ``sample_weight``, (n,).
        """
        projections = self.transform(X)
        return explained_variance(projections, self.predict(X), normalize_weights(sample_weight, len(projections)))

    def _decide(self, table: Any) -> Array:
        """Return the values of the affine functions at the rows of a checked table."""
        return np.asarray(table_times(table, np.transpose(self.coef_)) + self.intercept_)

    def _label(self, values: Array) -> npt.NDArray[np.int64]:
        """Return the labels for these values."""
        return cluster_indices(values)


def recentered(
    X: Table,
    point_weights: Array | None,
    rows: npt.NDArray[np.intp] | slice = slice(None),
    constraints: Constraints | None = None,
) -> tuple[Table, Array]:
    """Return some of centred points with other weights, centred again, and the mean that is subtracted."""
    table, weights = X.array()[rows], all_positive_weights(point_weights)
    centered = centered_data(table, weights, means=X.means, warn=False)
    return centered_table(centered, weights, constraints), mean_of(table, point_weights)


def require_one_direction(penalty: Penalty, n_clusters: int, what: str = "n_clusters") -> None:
    """Raise if there are sign constraints and not exactly two clusters."""
    if penalty.nonnegative is not None and n_clusters != 2:
        raise ParameterError(
            f"nonnegative needs two clusters: it is not available for {what} = {n_clusters}. Remove it."
        )


def optimality_gap(X: Any, labels: npt.NDArray[Any], result: Result, K: int, *, nu: float, penalty: Penalty) -> float:
    """Return the certified optimality gap of labels 0, ..., K - 1 of a `Table`."""
    if penalty.nonnegative is None:
        return certify_clusters(X, labels, result, K, nu=nu, penalty=penalty).gap
    y = 2.0 * labels - 1.0
    if not X.has_known_labels:
        return certify_labels(X, y, result, nu=nu, penalty=penalty).gap
    weights = weights_of(penalty, X.shape[1])  # with known labels the sign of y is fixed
    with in_range():
        v = best_direction(X, y - X.mean_of(y), weights)
        objective, _ = or_zero_direction(certified_labels_value(X, y, v, nu, weights), v)
    return width_of(result.lower, objective)


def bound_of_clusters(X: Table, lower: float, K: int, *, nu: float, penalty: Penalty) -> float:
    """Return the larger of a lower bound and, for small tables with only a ridge, that of K clusters with floors."""
    pair_penalty = weights_of(penalty, X.shape[1])
    is_small = K > 2 and len(X) <= MAX_FLOOR_POINTS and not X.is_constrained
    if not (is_small and pair_penalty.is_zero and pair_penalty.is_even):
        return lower
    return max(lower, bound_with_floors(X, K, nu, pair_penalty))


def choose_seed(random_state: Any) -> int:
    """Return a seed: an integer unchanged, so that the functions of `rounding` agree; otherwise a random one.

    With None it depends on NumPy's global random state, which is not changed.
    """
    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise ParameterError(f"random_state = {random_state!r} must be a seed, a RandomState or None.") from None
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int((copy.deepcopy(generator) if random_state is None else generator).randint(2**31 - 1))
