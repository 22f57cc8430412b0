"""Display of the data projected on a direction."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting.canvas import GREY, MOST_NAMED, Axes, Display, merge_style, plain, short_legend, style_of
from diffrac_cvx.points.checks import Array, as_data, as_labels, as_matrix
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, weights_of
from diffrac_cvx.rounding.directions import best_direction
from diffrac_cvx.rounding.directions import threshold as threshold_between

HATCHES = (None, "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "++++")
DISTINCT = len(HATCHES) ** 2  # colours with hatches
OTHERS = (GREY, "oo")  # colour and hatch of the labels after these, which share one histogram


class ProjectionDisplay(Display):
    """The points projected on a direction, a histogram for each label, and the threshold between the clusters.

    Parameters
    ----------
    projection : (n,) array
        Points on the line.
    labels : (n,) array
        Labels, found or true.  After the first 64 in increasing order the others share one histogram.
    threshold : float, optional
        By default the middle of the gap at which exact 2-means splits the projection, as Eq. (2) would; the labels
        need not agree with it.
    symbol : str
        Name of the horizontal axis.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    bars_ : list of list of Polygon
        One histogram for each label, in increasing order; the last one is of all labels after the first 64.
    threshold_line_ : Line2D
    legend_ : Legend
    """

    bars_: list[Any]
    threshold_line_: Any
    legend_: Any

    def __init__(
        self,
        projection: npt.ArrayLike,
        labels: npt.ArrayLike,
        threshold: float | None = None,
        symbol: str = "projection $x^\\top v$",
    ) -> None:
        self.projection = as_matrix(np.reshape(projection, (-1, 1)), "projection")[:, 0]
        self.labels = np.asarray(labels)
        self.classes = np.unique(self.labels)
        if self.labels.shape != self.projection.shape:
            raise DataError(f"labels has shape {self.labels.shape} for {len(self.projection)} points")
        self.threshold = threshold_between(self.projection) if threshold is None else float(threshold)
        self.symbol = symbol

    @classmethod
    def from_labels(
        cls, X: npt.ArrayLike, labels: npt.ArrayLike, w: npt.ArrayLike | None = None, *, penalty: Penalty = NO_PENALTY
    ) -> Self:
        """Project the centred data on w, or on the direction that predicts the labels best.

        Parameters
        ----------
        X : (n, d) array
            Data; centred here.
        labels : (n,) array
            Labels in {-1, +1}; if w is given, any.
        w : (d,) array, optional
            Direction.  By default the v of Eq. (9) for these labels.
        penalty : Penalty
            Weights a and c of Eq. (9).

        Raises
        ------
        DataError, ParameterError
            If an input is not usable; the message names the value and the remedy.
        """
        data = as_data(X, warn=False)
        if w is None:
            y = as_labels(labels, len(data))
            direction = best_direction(array_points(data), y - y.mean(), *weights_of(penalty, data.shape[1]))
        else:
            direction = as_matrix(np.reshape(w, (-1, 1)), "w")[:, 0]
        if len(direction) != data.shape[1]:
            raise DataError(f"w has {len(direction)} entries for {data.shape[1]} features")
        return cls(data @ direction, labels)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: npt.ArrayLike, y: npt.ArrayLike | None = None, *, output: int = 0
    ) -> Self:
        """Take the decision function of a fitted estimator, whose threshold is 0.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``decision_function``.
        X : (n, d) array
            Data, training or new.
        y : (n,) array, optional
            Labels to split the histogram by; by default the sign of the decision function, as 0 and 1.
        output : int
            Which column, where the decision function has several.

        Raises
        ------
        DataError
            If y has another length.
        """
        values = np.asarray(estimator.decision_function(X), dtype=float)
        values = values if values.ndim == 1 else values[:, output]
        labels = (values > 0.0).astype(int) if y is None else y
        return cls(values, labels, 0.0, "decision function $x^\\top w + b$")

    def plot(self, ax: Axes | None = None, *, bins: int | Array = 40, **kwargs: Any) -> Self:
        """Draw the histograms on common bins, and the threshold.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        bins : int or array
            Number of bins, or their edges.
        **kwargs
            Passed to ``Axes.hist``.
        """
        (ax,) = self._open(ax)
        edges: list[float] = np.histogram_bin_edges(self.projection, bins).tolist()
        self.bars_ = [
            ax.hist(points, edges, **merge_style({**fill_of(k), "label": f"{name}, {len(points)} points"}, kwargs))[2]
            for k, (name, points) in enumerate(self._parts())
        ]
        self.threshold_line_ = ax.axvline(self.threshold, color=GREY, linestyle="--", linewidth=1.0, label="threshold")
        ax.set_xlabel(self.symbol)
        ax.set_ylabel("points")
        ax.margins(y=0.05 + 0.1 * (min(len(self.classes), MOST_NAMED) + 1))  # room for the legend
        drawn = [bars[0] for bars in self.bars_]
        self.legend_ = short_legend(
            ax, drawn, [self.threshold_line_], total=len(self.classes), fontsize="small", loc="upper left"
        )
        return self

    def _parts(self) -> list[tuple[str, Array]]:
        """Return the names of the labels, each with the projections of its points."""
        shown, rest = self.classes[:DISTINCT], self.classes[DISTINCT:]
        parts = [(f"label {format_label(label)}", self.projection[self.labels == label]) for label in shown]
        if len(rest):
            parts.append((f"{len(rest)} other labels", self.projection[np.isin(self.labels, rest)]))
        return parts


def fill_of(k: int) -> dict[str, Any]:
    """Return keywords for the k-th histogram: after the last colour the first comes again with another hatch."""
    color, hatch = (style_of(k).color, HATCHES[(k + k // len(HATCHES)) % len(HATCHES)]) if k < DISTINCT else OTHERS
    return {
        "histtype": "stepfilled",
        "facecolor": (color, 0.35 if hatch is None else 0.1),
        "edgecolor": color,
        "hatch": hatch,
        "linewidth": 1.2,
    }


def format_label(label: Any) -> str:
    """Return a label as text, numbers without needless digits."""
    return f"{label:g}" if isinstance(label, (int, float, np.number)) else plain(str(label))
