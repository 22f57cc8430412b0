"""Displays of a direction: its coefficients, and the points projected onto it."""

from numbers import Number
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting import canvas
from diffrac_cvx.points.checks import Array, as_data, as_matrix, in_unit_interval, positive_int
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding.directions import leading_direction
from diffrac_cvx.rounding.two_clusters import kmeans_1d, threshold_between

MIN_BINS, MAX_BINS = 10, 40  # of a histogram


class DirectionDisplay(canvas.Display):
    """Display of the coefficients of a direction and its support.

    Parameters
    ----------
    coefficients : (d,) array
    feature_names : (d,) array of str, optional
        By default x0, x1, ...
    support : (d,) array of bool, optional
        Mask of the features in the support; by default those with nonzero coefficients.
    per_deviation : bool
        Whether the coefficients are per standard deviation of each feature, as stated on the axis.

    Attributes
    ----------
    shown_ : (k,) array of int
        Indices of the features drawn, in drawing order.
    bars_ : BarContainer
    """

    shown_: npt.NDArray[np.intp]
    bars_: Any

    def __init__(
        self,
        coefficients: npt.ArrayLike,
        feature_names: npt.ArrayLike | None = None,
        support: npt.ArrayLike | None = None,
        *,
        per_deviation: bool = False,
    ) -> None:
        self.coefficients = as_matrix(np.reshape(coefficients, (-1, 1)), "coefficients")[:, 0]
        self.feature_names = canvas.as_feature_names(feature_names, len(self.coefficients))
        self.per_deviation = per_deviation
        self.support = np.asarray(self.coefficients != 0.0 if support is None else support, dtype=bool)
        if self.support.shape != self.coefficients.shape:
            raise DataError(f"support has shape {self.support.shape} for {len(self.coefficients)} features.")

    @classmethod
    def from_result(
        cls, result: Result, X: npt.ArrayLike, *, feature_names: npt.ArrayLike | None = None, rtol: float = 1e-3
    ) -> Self:
        """Return the display of the `leading_direction` of a result, per standard deviation of each feature.

        Parameters
        ----------
        result : Result
        X : (n, d) array
            Data of the result; centred here.
        feature_names : (d,) array of str, optional
            By default x0, x1, ...
        rtol : float
            Threshold for the support, in [0, 1]: ``|v_j|`` times the standard deviation of column j, relative to the
            largest such product.

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
        """Return the display of the coefficients of a fitted estimator, with its feature names if available.

        Parameters
        ----------
        estimator : fitted estimator
            Any estimator with ``scaled_coef_`` (per standard deviation) or ``coef_``, of shape (d,) or (k, d).
        feature_names : (d,) array of str, optional
            By default ``feature_names_in_``, otherwise x0, x1, ...
        output : int
            Row of the coefficients, if there are several.

        Raises
        ------
        DataError
            If the number of names differs from the number of features.
        """
        names = getattr(estimator, "feature_names_in_", None) if feature_names is None else feature_names
        scaled = getattr(estimator, "scaled_coef_", None)
        coefficients = estimator.coef_ if scaled is None else scaled
        return cls(np.atleast_2d(coefficients)[output], names, per_deviation=scaled is not None)

    def plot(self, ax: canvas.Axes | None = None, *, most: int = 20, **kwargs: Any) -> Self:
        """Draw the coefficients as named horizontal bars, by decreasing size.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        most : int
            Maximum number of bars; the largest are drawn.
        **kwargs
            Passed to ``Axes.barh``.
        """
        self.shown_ = np.argsort(-np.abs(self.coefficients), kind="stable")[: positive_int(most, "most")]
        count = len(self.shown_)
        (ax,) = self._open(ax, size=(canvas.WIDTH, 0.8 + 0.22 * max(count, 4)))
        style = {"color": np.where(self.support[self.shown_], canvas.ACCENT, canvas.PALE).tolist()}
        self.bars_ = ax.barh(np.arange(count), self.coefficients[self.shown_], **style | kwargs)
        ax.set_yticks(np.arange(count), [canvas.format_name(self.feature_names[j]) for j in self.shown_])
        ax.set_ylim(count - 0.4, -0.6)
        ax.axvline(0.0, color=canvas.GRAY, linewidth=0.8)
        ax.set_xlabel(canvas.PER_DEVIATION if self.per_deviation else "coefficient $v_j$")
        if count < len(self.coefficients):
            ax.set_ylabel(f"{count} largest of {len(self.coefficients)} features")
        return self


class ProjectionDisplay(canvas.Display):
    """Display of the points projected onto a direction, with a histogram for each label and the threshold.

    Parameters
    ----------
    projection : (n,) array
        Projected points.
    labels : (n,) array
        Estimated or true labels.
    threshold : float, optional
        By default the midpoint of the gap at which exact 2-means splits the projection, as in Eq. (2); it may disagree
        with the labels.
    symbol : str
        Label of the horizontal axis.
    kind : str
        What the labels are, for the legend, such as "cluster"; "label" by default.

    Attributes
    ----------
    bars_ : list of list of Polygon
        Histogram of each label, in increasing order.
    threshold_line_ : Line2D
    legend_ : Legend
    """

    def __init__(
        self,
        projection: npt.ArrayLike,
        labels: npt.ArrayLike,
        threshold: float | None = None,
        symbol: str = "projection $x^\\top v$",
        kind: str = "label",
    ) -> None:
        self.projection = as_matrix(np.reshape(projection, (-1, 1)), "projection")[:, 0]
        self.labels = np.asarray(labels)
        self.classes = np.unique(self.labels)
        if self.labels.shape != self.projection.shape:
            raise DataError(f"labels has shape {self.labels.shape} for {len(self.projection)} points.")
        between = threshold_between(self.projection, kmeans_1d(self.projection)) if threshold is None else threshold
        self.threshold = float(between)
        self.symbol, self.kind = symbol, kind

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: npt.ArrayLike, y: npt.ArrayLike | None = None, *, output: int = 0, kind: str = "label"
    ) -> Self:
        """Return the display of the decision function of a fitted estimator, with threshold 0.

        Parameters
        ----------
        estimator : fitted estimator
            Any estimator with ``decision_function``.
        X : (n, d) array
            Training data or new data.
        y : (n,) array, optional
            Labels of the histograms; by default the sign of the decision function, as 0 and 1.
        output : int
            Column of the decision function, if there are several.
        kind : str
            What the labels are, for the legend.

        Raises
        ------
        DataError
            If the length of y differs from that of X.
        """
        values = np.asarray(estimator.decision_function(X), dtype=float)
        values = values if values.ndim == 1 else values[:, output]
        labels = (values > 0.0).astype(int) if y is None else y
        return cls(values, labels, 0.0, "decision function $x^\\top w + b$", kind)

    def plot(self, ax: canvas.Axes | None = None, *, bins: int | Array | None = None, **kwargs: Any) -> Self:
        """Draw the histograms with common bins, and the threshold, which is an edge of a bin if it is among the points.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        bins : int or array, optional
            Number of bins, to which one may be added, or their edges.  By default twice the square root of the number
            of points, from 10 to 40.
        **kwargs
            Passed to ``Axes.hist``.
        """
        (ax,) = self._open(ax)
        if bins is None:
            bins = int(np.clip(2.0 * len(self.projection) ** 0.5, MIN_BINS, MAX_BINS))
        edges = edges_at(self.threshold, np.histogram_bin_edges(self.projection, bins), is_fixed=np.ndim(bins) > 0)
        self.bars_: list[Any] = []
        for k, label in enumerate(self.classes):
            points = self.projection[self.labels == label]
            color = canvas.style_of(k).color
            text = f"{label:g}" if isinstance(label, Number) else canvas.format_name(str(label))
            style: dict[str, Any] = {"histtype": "stepfilled", "facecolor": (color, 0.35), "edgecolor": color}
            style |= {"linewidth": 1.2, "label": f"{self.kind} {text}, {len(points)} points"}
            self.bars_.append(ax.hist(points, edges, **style | kwargs)[2])
        self.threshold_line_ = ax.axvline(self.threshold, color=canvas.GRAY, ls="--", lw=1.0, label="threshold")
        ax.set_xlabel(self.symbol)
        ax.set_ylabel("number of points")
        ax.locator_params(axis="y", integer=True)
        ax.margins(y=0.05 + 0.1 * (min(len(self.classes), canvas.MAX_LEGEND_ENTRIES) + 1))  # room for the legend
        drawn = [bars[0] for bars in self.bars_]
        self.legend_ = canvas.short_legend(ax, drawn, [self.threshold_line_], fontsize="small", loc="upper left")
        return self


def edges_at(threshold: float, edges: Array, *, is_fixed: bool) -> list[float]:
    """Return bins shifted so that the threshold is an edge, unless they are fixed or do not contain it."""
    if is_fixed or not edges[0] < threshold < edges[-1]:
        return list(edges.tolist())
    width = edges[1] - edges[0]
    below, above = np.ceil((threshold - edges[0]) / width), np.ceil((edges[-1] - threshold) / width)
    return list((threshold + width * np.arange(-below, above + 1.0)).tolist())
