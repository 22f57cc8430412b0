"""What the scikit-learn estimators share: the units, the relaxation, and affine functions of new points."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from diffrac_cvx import rounding as roundings
from diffrac_cvx.certificates import best_direction
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.inputs import Array, as_data, one_of, positive, positive_int
from diffrac_cvx.linalg import inverse_or_one, psd_factor, row_energies
from diffrac_cvx.metrics import separation
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.relaxations import v_space
from diffrac_cvx.result import Result, Status
from diffrac_cvx.solvers import fista, low_rank, solve

FAST: dict[str, Callable[..., Result]] = {"low_rank": low_rank, "fista": fista}
SOLVERS = ("auto", *FAST, "SCS", "CLARABEL")
INPUT: Any = {"accept_sparse": ("csr", "csc"), "dtype": np.float64}
IDLE = 1e-20  # x'Vx, over its mean, below which a point is at the centre up to rounding


def threshold(values: Array) -> float:
    """Return the midpoint of the gap between the two clusters of numbers; the largest number if they are all equal."""
    split = roundings.two_means(values)
    above = split == split[np.argmax(values)]
    if above.all():
        return float(values.max())
    return float((values[above].min() + values[~above].max()) / 2)


def seed_of(random_state: Any) -> int:
    """Return a seed: a whole number as it is, so that the functions give the same, else one drawn as usual."""
    generator = check_random_state(random_state)
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(generator.randint(2**31 - 1))


def require_flag(value: object, name: str) -> None:
    """Raise unless a parameter is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} = {value!r} must be True or False")


def affine_functions(X: Array, result: Result, scores: Array) -> tuple[Array, Array]:
    """Return directions (k, d) and offsets (k,) with scores_ij = (x_i'v_j + b_j) / sqrt(x_i'Vx_i).

    There are such for all linear functions of the rows of F, which are those of X V^(1/2) at unit norm, turned.
    """
    if result.V is None:  # the solver failed
        return np.zeros((scores.shape[1], X.shape[1])), np.zeros(scores.shape[1])
    points = X if len(result.V) == X.shape[1] else np.column_stack([X, np.ones(len(X))])
    units = inverse_or_one(np.sqrt(np.mean(points**2, axis=0)))
    G = psd_factor(result.V / np.outer(units, units), rtol=1e-16) * units[:, None]
    q = row_energies(points, G)
    live = q > IDLE * q.mean()
    turned = np.linalg.lstsq(points[live] @ G / np.sqrt(q[live, None]), scores[live])[0]
    W = (G @ turned).T
    return W[:, : X.shape[1]], W[:, X.shape[1] :].sum(axis=1)


def squared_correlation(values: Array, labels: Array) -> float:
    """Return the squared correlation of numbers and labels in {-1, +1}; 0 if one of them is constant."""
    values = values - values.mean()
    size = float(np.linalg.norm(values))
    return min(separation(values[:, None] / size, labels), 1.0) if size > 0.0 else 0.0


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
        require_flag(self.standardize, "standardize")
        centred = as_data(X, warn=False)  # the solver warns
        unit = inverse_or_one(centred.std(axis=0)) if self.standardize else np.ones(X.shape[1])
        return Scaled(centred * unit, X.mean(axis=0), unit)

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
        if result.status not in (Status.OPTIMAL, Status.CLOSED_FORM):
            message = f"{result.status}; the proved gap is {result.gap:.2g}, tol is {self.tol:g}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
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

    def score(self, X: npt.ArrayLike, y: object = None) -> float:  # noqa: ARG002  (scikit-learn passes y to all)
        """Return how well the clusters stand apart on X: the squared correlation of labels and projections, in [0, 1].

        It needs no labels and serves ``GridSearchCV`` as it is; 0 where all points fall in one cluster.  With several
        labels it is their mean.
        """
        projected, labels = self.transform(X), 2.0 * self.predict(X) - 1.0
        pairs = zip(projected.T, labels.reshape(projected.shape).T, strict=True)
        return float(np.mean([squared_correlation(values, label) for values, label in pairs]))

    def _projected(self, X: npt.ArrayLike) -> Array:
        check_is_fitted(self)
        return np.asarray(self._read(X, reset=False) @ np.transpose(self.coef_))
