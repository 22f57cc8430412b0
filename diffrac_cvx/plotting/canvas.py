"""Common parts of all displays: axes, palette, non-overlapping labels.  Only this module imports matplotlib."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.writing import escape_control
from diffrac_cvx.points.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.text import Annotation as Annotation
else:
    Axes = Annotation = Any

ACCENT, SECONDARY, GRAY, PALE = "#b2182b", "#2166ac", "#555555", "#b0b0b0"
WIDTH, HEIGHT = 5.2, 3.6  # inches, of one panel
PER_DEVIATION = "coefficient per std. deviation"
MAX_NAME_LENGTH = 40  # characters of a drawn name
MAX_LEGEND_ENTRIES = 8  # lines of a legend; more would not fit in the axes


class Style(NamedTuple):
    """Style of a line, distinguishable by colour, or without colours by dashes and markers."""

    color: str
    linestyle: str
    marker: str


STYLES = (  # the first two colours are those of this package, the others by Okabe and Ito
    Style(SECONDARY, "-", "o"),
    Style(ACCENT, "--", "^"),
    Style("#009E73", "-.", "s"),
    Style("#E69F00", "-", "D"),
    Style("#000000", ":", "v"),
    Style("#CC79A7", "--", "P"),
    Style("#56B4E9", "-", "X"),
    Style("#7f7f7f", "-.", "*"),
)


def merge_style(default: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a line: the defaults, updated by the given ones, also by matplotlib's aliases."""
    from matplotlib import cbook, lines

    return {**default, **cbook.normalize_kwargs(dict(given), lines.Line2D)}


def style_of(k: int) -> Style:
    """Return the k-th style; after eight they repeat."""
    return STYLES[k % len(STYLES)]


def line_style(k: int, given: Mapping[str, Any], **default: Any) -> dict[str, Any]:
    """Return the keywords of the k-th line."""
    style = style_of(k)._asdict()
    return merge_style({**style, "markersize": 4.0, "linewidth": 1.3, **default}, given)


class Display:
    """Base class of all displays, with the axes and the figure of the last plot."""

    ax_: Axes
    figure_: Any
    axes_: tuple[Axes, ...]

    def _open(self, ax: Any, panels: int = 1, *, size: tuple[float, float] = (WIDTH, HEIGHT)) -> tuple[Axes, ...]:
        """Store and return the given axes, or new ones with a shared x axis in a given or new figure."""
        figure = pyplot().figure(layout="constrained") if ax is None else ax
        if hasattr(figure, "set_size_inches"):
            figure.set_size_inches(size)
            self.axes_ = tuple(figure.subplots(panels, 1, sharex=True, squeeze=False).flat)
            for axes in self.axes_:
                axes.spines[["top", "right"]].set_visible(False)
        else:
            self.axes_ = tuple(np.ravel(np.array(ax, dtype=object)))[:panels]
            if len(self.axes_) < panels:
                raise ParameterError(f"ax has {len(self.axes_)} axes for {panels} panels.")
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        return self.axes_


def pyplot() -> Any:
    """Return matplotlib.pyplot, imported on first use to keep the import of the package fast."""
    import matplotlib.pyplot as plt

    return plt


def short_legend(ax: Axes, drawn: Sequence[Any], also: Sequence[Any] = (), **options: Any) -> Any:
    """Draw and return a legend of the first few drawn artists, the number of further ones, and ``also``."""
    from matplotlib.lines import Line2D

    named = list(drawn) if len(drawn) <= MAX_LEGEND_ENTRIES else list(drawn[: MAX_LEGEND_ENTRIES - 1])
    if len(named) < len(drawn):
        named.append(Line2D([], [], linestyle="none", label=f"... and {len(drawn) - len(named)} more"))
    return ax.legend(handles=[*named, *also], frameon=False, **options)


def scale_x(ax: Axes, values: Array) -> None:
    """Set a logarithmic x axis if the positive values span a factor of twenty, with room for 0 if it occurs."""
    positive = values[values > 0.0]
    if values.min() < 0.0 or len(positive) < 2 or positive.max() < 20.0 * positive.min():
        return
    if values.min() > 0.0:
        ax.set_xscale("log")
    else:
        decade = 10.0 ** np.floor(np.log10(positive.min()))
        ax.set_xscale("symlog", linthresh=float(decade), linscale=0.4)


def label_ends(
    ax: Axes, heights: Sequence[float], texts: Sequence[str], colors: Sequence[str], size: float = 8.0
) -> list[Annotation]:
    """Write a text to the right of the axes at each height, shifted as little as possible to avoid overlaps."""
    ax.figure.canvas.figure.draw_without_rendering()  # the distances depend on the layout and the limits
    points = 72.0 / ax.figure.dpi
    left = ax.get_xlim()[0]
    at = np.array([ax.transData.transform((left, height))[1] * points for height in heights])
    order, room = np.argsort(at, kind="stable"), 1.25 * size * np.arange(len(at))
    moved = np.zeros(len(at))
    if len(at):  # minus the room between neighbours, the nearest positions are an isotonic regression
        moved[order] = scipy.optimize.isotonic_regression(at[order] - room).x + room - at[order]
    return [
        ax.annotate(
            text, (1.0, height), (5.0, float(shift)), xycoords=("axes fraction", "data"), textcoords="offset points",
            color=color, fontsize=size, va="center", annotation_clip=False,
        )
        for height, shift, text, color in zip(heights, moved, texts, colors, strict=True)
    ]  # fmt: skip


def format_name(name: str) -> str:
    """Return a name for display in a figure: on one line, shortened, with dollar signs escaped."""
    line = " ".join(escape_control(name).split())
    return (line if len(line) <= MAX_NAME_LENGTH else f"{line[: MAX_NAME_LENGTH - 3]}...").replace("$", r"\$")


def as_feature_names(features: npt.ArrayLike | None, d: int) -> list[str]:
    """Return the d feature names, by default x0, x1, ..."""
    if features is None:
        return [f"x{j}" for j in range(d)]
    names = [str(name) for name in np.asarray(features).ravel()]
    if len(names) != d:
        raise DataError(f"there are {len(names)} feature names for {d} features.")
    return names
