"""What the estimators share: tables read and scaled, relaxations solved, affine functions of points."""

import copy
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted, validate_data

from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.machine.time_budget import seconds_left
from diffrac_cvx.metrics import separation
from diffrac_cvx.points.changes import require_file
from diffrac_cvx.points.checks import Array, one_of, positive, positive_int
from diffrac_cvx.points.chunks import is_chunked, with_known_shape
from diffrac_cvx.points.linear_algebra import column_basis, inverse_or_one, standardise
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import as_points, centred_points, table_array, table_times
from diffrac_cvx.points.weights import (
    as_weighted_data,
    every_point,
    mean_of,
)
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.proved_numbers import format_upper
from diffrac_cvx.problem.result import Bracket, Progress, Result, Status
from diffrac_cvx.registry import SOLVERS
from diffrac_cvx.relaxations import v_space
from diffrac_cvx.rounding.caveats import find_reservations
from diffrac_cvx.rounding.directions import best_direction
from diffrac_cvx.solvers import solve
from diffrac_cvx.solvers.factored.sampling import many_rows
from diffrac_cvx.solvers.stopping import WIDE_GAP

INPUT: Any = {"accept_sparse": ("csr", "csc"), "dtype": np.float64}
FINE = (Status.OPTIMAL, Status.CLOSED_FORM)


class ScaledTable(NamedTuple):
    """Centred points and what was done to the columns: X = (what was given - mean) * unit."""

    X: Any  # an array, or `Points` where they are read by parts
    mean: Array
    unit: Array


class AffineClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster by signs of affine functions of the features; subclasses find ``coef_`` and ``intercept_``."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, **options: Any) -> Array:
        """Return checked data, dense."""
        X = table_array(with_known_shape(X)) if is_chunked(X) else X
        checked: Any = validate_data(self, X, **INPUT, **options)
        return np.asarray(checked.toarray() if hasattr(checked, "toarray") else checked)

    def _read_table(self, X: Any, reset: bool = True, **options: Any) -> Any:
        """Return checked data as they are: an array, a memory map, a sparse matrix or a dask array."""
        if not is_chunked(X) and not isinstance(X, np.memmap):
            return validate_data(self, X, reset=reset, **INPUT, **options)
        X = with_known_shape(X) if is_chunked(X) else require_file(X)
        _check_n_features(self, X, reset=reset)
        if reset:
            _check_feature_names(self, X, reset=True)
        return X

    def _scale(self, X: Array, shares: Array | None = None) -> ScaledTable:
        """Return centred data, of unit variance where ``standardize`` asks for it."""
        require_flag(self.standardize, "standardize")
        centred = as_weighted_data(X, every_point(shares), warn=False)  # the solver warns
        unit = standardise(centred, shares).unit if self.standardize else np.ones(X.shape[1])
        return ScaledTable(centred * unit, mean_of(X, shares), unit)

    def _scale_by_parts(self, X: Any) -> ScaledTable:
        """Return the same of a table that is read by parts."""
        require_flag(self.standardize, "standardize")
        by_columns = self._penalty.has_l1 and not many_rows(*X.shape)
        points = as_points(X, by_rows=True, by_columns=by_columns, warn=False)
        unit = inverse_or_one(np.sqrt(points.mean_squares())) if self.standardize else np.ones(X.shape[1])
        return ScaledTable(points.scaled(unit), points.taken, unit)

    @property
    def _penalty(self) -> Penalty:
        """The penalty, its weights given as they are or as their roots, which go before the defaults."""
        roots = {name: value for name, value in (("a", self.a), ("c", self.c)) if value is not None}
        weights = {"ridge": self.ridge} if self.a is None else {}
        weights |= {"lam": self.lam} if self.c is None else {}
        return Penalty(**roots, **weights)

    def _solve(self, X: Array, automatic: str, shares: Array | None = None) -> Result:
        """Solve the relaxation by the user's solver, and keep what is proved about it."""
        result = self._relax(X, automatic, seconds_left(), shares)
        self._keep((result,))
        return result

    def _relax(self, X: Array, automatic: str, time_limit: float | None, shares: Array | None = None) -> Result:
        """Solve the relaxation by the user's solver."""
        name = one_of(self.solver, "solver", ("auto", *SOLVERS))
        name = automatic if name == "auto" else name
        penalty = self._penalty
        limits: dict[str, Any] = {"tol": positive(self.tol, "tol"), "time_limit": time_limit}
        if self.max_iter is not None:
            limits["max_iter"] = positive_int(self.max_iter, "max_iter")
        if not callable(self.verbose):
            require_flag(self.verbose, "verbose")
        tells = bool(self.verbose) and not callable(self.verbose)
        if tells:
            say(f"{name}: {X.shape[0]} points, {X.shape[1]} features")
        if SOLVERS[name].function is None and isinstance(X, Points):
            raise ParameterError(f"solver = {name!r} needs the table in memory, as an array; use 'auto', or pass one")
        weights: dict[str, Any] = {} if shares is None else {"sample_weight": shares}
        if SOLVERS[name].function is not None:
            if weights and not SOLVERS[name].takes_weights:
                raise ParameterError(f"solver = {name!r} takes no sample_weight; use 'low_rank', which does")
            callback = Teller() if tells else self.verbose or None
            limits |= weights
            if SOLVERS[name].takes_rtol and X.shape[1] > X.shape[0] and np.any(penalty.c):
                limits["rtol"] = WIDE_GAP
            result = SOLVERS[name].run(X, self.nu, penalty, callback=callback, **limits)
        else:
            result = solve(v_space(X, self.nu, penalty, **weights), name, **limits)
        if tells:
            say(f"{sentence_of(result.lower, result.upper)} after {result.seconds:.1f} s: {result.status}")
        return result

    def _keep(self, results: Sequence[Result]) -> None:
        """Keep what is proved about the first relaxation that was solved, that of all points; warn of any gap."""
        self.result_ = results[0]
        self.lower_bound_, self.upper_bound_ = self.result_.lower, self.result_.upper
        self.n_iter_ = max(sum(result.n_iter for result in results), 1)
        for result in results:
            if result.status not in FINE:
                message = f"{result.status}; the proved gap is {format_upper(result.gap)}, tol is {self.tol:g}"
                warnings.warn(message, ConvergenceWarning, stacklevel=4)
                return

    def _reserve(self, X: Array, labels: Array, shares: Array | None) -> None:
        """Keep and say why the split may be no answer."""
        known: dict[str, Any] = {"nu": self.nu, "penalty": self._penalty, "n_clusters": self.n_clusters}
        self.reservations_ = find_reservations(X, labels, self.result_, shares=shares, **known)
        for reservation in self.reservations_:
            warnings.warn(str(reservation), DegenerateDataWarning, stacklevel=3)

    def _direction(self, X: Array | Points, labels: Array, shares: Array | None = None) -> Array:
        """Return the penalised least-squares direction of labels."""
        points = centred_points(X, shares)
        return best_direction(points, labels - points.mean_of(labels), *self._penalty.weights(X.shape[1]))

    @property
    def _n_features_out(self) -> int:
        return int(np.atleast_2d(self.coef_).shape[0])

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return ``X @ coef_ + intercept_``, shape (n,) or (n, n_labels): positive where the label is 1."""
        return np.asarray(self._project(X) + self.intercept_)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return labels in {0, 1} of points, shape (n,) or (n, n_labels)."""
        return np.asarray(self.decision_function(X) > 0).astype(np.int64)

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return the projections on the directions, shape (n, 1) or (n, n_labels)."""
        projected = self._project(X)
        return projected[:, None] if projected.ndim == 1 else projected

    def score(self, X: npt.ArrayLike, y: object = None) -> float:
        """Return how well the clusters are separated: the squared correlation of labels and projections, in [0, 1].

        It needs no labels, and ``GridSearchCV`` can use it; 0 where all points fall in one cluster.  With several
        labels it is their mean.
        """
        projected, labels = self.transform(X), 2.0 * self.predict(X) - 1.0
        pairs = zip((projected - projected.mean(axis=0)).T, labels.reshape(projected.shape).T, strict=True)
        return float(np.mean([min(separation(column_basis(values[:, None]), y), 1.0) for values, y in pairs]))

    def _project(self, X: npt.ArrayLike) -> Array:
        check_is_fitted(self)
        return table_times(self._read_table(X, reset=False), np.transpose(self.coef_))


def as_seconds(time_limit: float | None) -> float | None:
    """Return a checked limit of time."""
    return None if time_limit is None else positive(time_limit, "time_limit")


class Teller:
    """Write the proved bounds of a solver to standard error, at most a line a second; called with its progress."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self.last + 1.0:
            self.last = progress.seconds
            bounds = sentence_of(progress.lower, progress.upper)
            read = f", {progress.rows / progress.seconds:.3g} rows a second" if progress.rows else ""
            say(f"{bounds} after {progress.seconds:.0f} s, step {progress.iteration}{read}")


def sentence_of(lower: float, upper: float) -> str:
    """Return what is proved of the relaxation, in words."""
    return f"least cost of the relaxation proved to lie in {Bracket(lower, upper)}"


def say(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def choose_seed(random_state: Any) -> int:
    """Return a seed: a whole number as it is, so that the functions of `rounding` give the same, else one drawn.

    With None it depends on NumPy's global state, which stays as it is: nothing else is changed by a call.
    """
    generator = check_random_state(random_state)
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if generator is check_random_state(None):
        generator = copy.deepcopy(generator)
    return int(generator.randint(2**31 - 1))


def require_flag(value: object, name: str) -> None:
    """Raise unless a parameter is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} = {value!r} must be True or False")
