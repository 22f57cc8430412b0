"""Display of the data projected on a direction."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.directions import best_direction
from diffrac_cvx.directions import threshold as threshold_between
from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array, as_data, as_labels, as_matrix
from diffrac_cvx.penalty import NO_PENALTY, Penalty, weights_of
from diffrac_cvx.plotting.canvas import GREY, STYLES, Axes, axes_for, merge_style, plain

HATCHES = (None, "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "++++")


class ProjectionDisplay:
    """The points projected on a direction, a histogram for each label, and the threshold between the clusters.

    Parameters
    ----------
    projection : (n,) array
        Points on the line.
    labels : (n,) array
        Labels, found or true: any two values, or a few more.
    threshold : float, optional
        By default the middle of the gap at which exact 2-means splits the projection, as Eq. (2) would; the labels
        need not agree with it.
    symbol : str
        Name of the horizontal axis.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    bars_ : list of list of Polygon
        One histogram for each label, in increasing order.
    threshold_line_ : Line2D
    legend_ : Legend
    """

    ax_: Axes
    figure_: Any
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
        if len(self.classes) > len(STYLES):
            raise DataError(f"there are {len(self.classes)} labels; at most {len(STYLES)} can be distinguished")
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
            direction = best_direction(data, y - y.mean(), *weights_of(penalty, data.shape[1]))
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

        Returns
        -------
        ProjectionDisplay
            This one.
        """
        (ax,) = axes_for(ax)
        self.ax_, self.figure_ = ax, ax.figure
        edges: list[float] = np.histogram_bin_edges(self.projection, bins).tolist()
        self.bars_ = []
        for label, style, hatch in zip(self.classes, STYLES, HATCHES, strict=False):
            points = self.projection[self.labels == label]
            default = {
                "histtype": "stepfilled",
                "facecolor": (style.color, 0.35 if hatch is None else 0.1),
                "edgecolor": style.color,
                "hatch": hatch,
                "linewidth": 1.2,
                "label": f"label {format_label(label)}, {len(points)} points",
            }
            self.bars_.append(ax.hist(points, edges, **merge_style(default, kwargs))[2])
        self.threshold_line_ = ax.axvline(self.threshold, color=GREY, linestyle="--", linewidth=1.0, label="threshold")
        ax.set_xlabel(self.symbol)
        ax.set_ylabel("points")
        ax.margins(y=0.05 + 0.1 * (len(self.classes) + 1))  # room for the legend
        self.legend_ = ax.legend(frameon=False, fontsize="small", loc="upper left")
        return self


def format_label(label: Any) -> str:
    """Return a label as text, numbers without needless digits."""
    return f"{label:g}" if isinstance(label, (int, float, np.number)) else plain(str(label))
