"""Display of the coefficients of a direction."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting import canvas
from diffrac_cvx.points.checks import as_data, as_matrix, in_unit_interval, one_of, positive_int
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding.directions import leading_direction


class DirectionDisplay(canvas.Display):
    """The coefficients of a direction, with its support.

    Parameters
    ----------
    coefficients : (d,) array
    feature_names : (d,) array of str, optional
        By default x0, x1, ...
    support : (d,) array of bool, optional
        Which features are in the support; by default those whose coefficients are not 0.
    per_deviation : bool
        Whether they are per standard deviation of each feature, which the axis then says.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    shown_ : (k,) array of int
        The features drawn, in the order drawn.
    bars_ : BarContainer or None
    stems_, heads_ : LineCollection and two Line2D, or None
        Stems, and their heads in the support and outside of it.
    """

    shown_: npt.NDArray[np.intp]
    bars_: Any
    stems_: Any
    heads_: Any

    def __init__(
        self,
        coefficients: npt.ArrayLike,
        feature_names: npt.ArrayLike | None = None,
        support: npt.ArrayLike | None = None,
        *,
        per_deviation: bool = False,
    ) -> None:
        self.coefficients = as_matrix(np.reshape(coefficients, (-1, 1)), "coefficients")[:, 0]
        self.feature_names = canvas.names_of(feature_names, len(self.coefficients))
        self.per_deviation = per_deviation
        self.support = np.asarray(self.coefficients != 0.0 if support is None else support, dtype=bool)
        if self.support.shape != self.coefficients.shape:
            raise DataError(f"support has shape {self.support.shape} for {len(self.coefficients)} features")

    @classmethod
    def from_result(
        cls, result: Result, X: npt.ArrayLike, *, feature_names: npt.ArrayLike | None = None, rtol: float = 1e-3
    ) -> Self:
        """Take the leading direction of a result, see `leading_direction`, per standard deviation of each feature.

        Parameters
        ----------
        result : Result
        X : (n, d) array
            The data it was found for; centred here.
        feature_names : (d,) array of str, optional
            By default x0, x1, ...
        rtol : float
            A feature is in the support where ``|v_j|`` times the standard deviation of column j exceeds this share of
            the largest such product, in [0, 1].

        Raises
        ------
        DataError, ParameterError
            If X does not fit the result, or rtol is outside [0, 1].
        """
        data = as_data(X, warn=False)
        v = leading_direction(data, result) * data.std(axis=0)
        size = np.abs(v)
        return cls(v, feature_names, size > in_unit_interval(rtol, "rtol") * size.max(), per_deviation=True)

    @classmethod
    def from_estimator(cls, estimator: Any, *, feature_names: npt.ArrayLike | None = None, output: int = 0) -> Self:
        """Take the coefficients of a fitted estimator, and the names of its features where it has them.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``scaled_coef_``, per standard deviation, or else ``coef_``, of shape (d,) or (k, d).
        feature_names : (d,) array of str, optional
            By default ``feature_names_in_``, else x0, x1, ...
        output : int
            Which row, where there are several.

        Raises
        ------
        DataError
            If there are not as many names as features.
        """
        names = getattr(estimator, "feature_names_in_", None) if feature_names is None else feature_names
        scaled = getattr(estimator, "scaled_coef_", None)
        coefficients = estimator.coef_ if scaled is None else scaled
        return cls(np.atleast_2d(coefficients)[output], names, per_deviation=scaled is not None)

    def plot(
        self, ax: canvas.Axes | None = None, *, kind: str = "bar", order: str = "size", most: int = 20, **kwargs: Any
    ) -> Self:
        """Draw the coefficients: named bars, or stems over the index of the feature.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        kind : {"bar", "stem"}
            Bars are horizontal and have names; stems show every feature at its index, for many features.
        order : {"size", "given"}
            Whether bars come by decreasing size or in the order of the features.
        most : int
            How many bars; the largest are drawn.
        **kwargs
            Passed to ``Axes.barh`` or ``Axes.vlines``.
        """
        one_of(kind, "kind", ("bar", "stem"))
        one_of(order, "order", ("size", "given"))
        self.bars_ = self.stems_ = self.heads_ = None
        if kind == "stem":
            self.shown_ = np.arange(len(self.coefficients))
            self._stems(ax, kwargs)
        else:
            largest = np.argsort(-np.abs(self.coefficients), kind="stable")[: positive_int(most, "most")]
            self.shown_ = largest if order == "size" else np.sort(largest)
            self._bars(ax, kwargs)
        return self

    @property
    def _axis_label(self) -> str:
        return canvas.PER_DEVIATION if self.per_deviation else "coefficient $v_j$"

    def _bars(self, ax: canvas.Axes | None, kwargs: dict[str, Any]) -> None:
        count = len(self.shown_)
        (ax,) = self._open(ax, size=(canvas.WIDTH, 0.8 + 0.22 * max(count, 4)))
        style = {"color": np.where(self.support[self.shown_], canvas.ACCENT, canvas.PALE).tolist()}
        self.bars_ = ax.barh(np.arange(count), self.coefficients[self.shown_], **canvas.merge_style(style, kwargs))
        ax.set_yticks(np.arange(count), [canvas.plain(self.feature_names[j]) for j in self.shown_])
        ax.set_ylim(count - 0.4, -0.6)
        ax.axvline(0.0, color=canvas.GREY, linewidth=0.8)
        ax.set_xlabel(self._axis_label)
        if count < len(self.coefficients):
            ax.set_ylabel(f"the {count} largest of {len(self.coefficients)}")

    def _stems(self, ax: canvas.Axes | None, kwargs: dict[str, Any]) -> None:
        (ax,) = self._open(ax)
        v, inside = self.coefficients, self.support
        style = {"color": np.where(inside, canvas.ACCENT, canvas.PALE).tolist(), "linewidth": 1.0}
        self.stems_ = ax.vlines(self.shown_, 0.0, v, **canvas.merge_style(style, kwargs))
        (outer,) = ax.plot(self.shown_[~inside], v[~inside], "o", color=canvas.PALE, markersize=2.0)
        (inner,) = ax.plot(self.shown_[inside], v[inside], "o", color=canvas.ACCENT, markersize=4.0)
        self.heads_ = (inner, outer)
        ax.axhline(0.0, color=canvas.GREY, linewidth=0.8)
        ax.set_xlabel("feature $j$, counted from 0")
        ax.set_ylabel(self._axis_label)
