"""What the scikit-learn estimators share: the units, the relaxation, and affine functions of new points."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from diffrac_cvx import rounding as roundings
from diffrac_cvx.certificates import best_direction
from diffrac_cvx.inputs import Array, one_of, positive, positive_int
from diffrac_cvx.linalg import inverse_or_one
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.relaxations import v_space
from diffrac_cvx.result import Result
from diffrac_cvx.solvers import fista, low_rank, solve

FAST: dict[str, Callable[..., Result]] = {"low_rank": low_rank, "fista": fista}
SOLVERS = ("auto", *FAST, "SCS", "CLARABEL")
INPUT: Any = {"accept_sparse": ("csr", "csc"), "dtype": np.float64}


def threshold(values: Array) -> float:
    """Return the midpoint of the gap between the two clusters of numbers; the largest number if they are all equal."""
    split = roundings.two_means(values)
    above = split == split[np.argmax(values)]
    if above.all():
        return float(values.max())
    return float((values[above].min() + values[~above].max()) / 2)


class Scaled(NamedTuple):
    """Data in the units that the penalty weighs, and how they were got."""

    X: Array
    mean: Array
    unit: Array


class Directions(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Hold what both estimators share; they set ``coef_`` and ``intercept_``."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, **options: Any) -> Array:
        """Return checked data, dense."""
        checked: Any = validate_data(self, X, **INPUT, **options)
        return np.asarray(checked.toarray() if hasattr(checked, "toarray") else checked)

    def _scaled(self, X: Array) -> Scaled:
        """Return centred data, of unit variance when asked for."""
        mean, varies = X.mean(axis=0), np.ptp(X, axis=0) > 0
        unit = inverse_or_one(np.where(varies, X.std(axis=0), 0.0)) if self.standardize else np.ones(X.shape[1])
        return Scaled(np.where(varies, (X - mean) * unit, 0.0), mean, unit)

    def _solve(self, X: Array, automatic: str) -> Result:
        """Solve the relaxation by the solver asked for, and keep what is proved about it."""
        chosen = one_of(self.solver, "solver", SOLVERS)
        chosen = automatic if chosen == "auto" else chosen
        penalty = Penalty(self.a, self.c)
        limits: dict[str, Any] = {"tol": positive(self.tol, "tol"), "time_limit": self.time_limit}
        if self.max_iter is not None:
            limits["max_iter"] = positive_int(self.max_iter, "max_iter")
        if chosen in FAST:
            result = FAST[chosen](X, self.nu, penalty, **limits)
        else:
            result = solve(v_space(X, self.nu, penalty), chosen, **limits)
        self.result_ = result
        self.lower_bound_, self.upper_bound_, self.n_iter_ = result.lower, result.upper, max(result.n_iter, 1)
        return result

    def _direction(self, X: Array, labels: Array) -> Array:
        """Return the penalised least-squares direction of labels."""
        return best_direction(X, labels - labels.mean(), *Penalty(self.a, self.c).weights(X.shape[1]))

    @property
    def _n_features_out(self) -> int:
        return int(np.atleast_2d(self.coef_).shape[0])

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return ``X @ coef_ + intercept_``, shape (n,) or (n, n_labels): positive where the label is 1."""
        return np.asarray(self._projected(X) + self.intercept_)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return labels in {0, 1} of points, shape (n,) or (n, n_labels)."""
        return np.asarray(self.decision_function(X) > 0).astype(np.int64)

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return the projections on the directions, shape (n, 1) or (n, n_labels)."""
        projected = self._projected(X)
        return projected[:, None] if projected.ndim == 1 else projected

    def _projected(self, X: npt.ArrayLike) -> Array:
        check_is_fitted(self)
        return np.asarray(self._read(X, reset=False) @ np.transpose(self.coef_))
