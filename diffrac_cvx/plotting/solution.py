"""Displays of results: proved brackets over time, of solvers and of the search for labels, and spectra of Y and V."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting.canvas import GRAY, Axes, Display, line_style, scale_x, short_legend
from diffrac_cvx.points.checks import Array, one_of
from diffrac_cvx.points.factors import eigenvalues
from diffrac_cvx.points.linear_algebra import EPS
from diffrac_cvx.problem.result import Progress, Result
from diffrac_cvx.solvers.branching import OptimalLabels

X_AXES = ("iteration", "seconds")
MAX_MARKERS = 40  # points on a line, up to which each is marked


class BracketDisplay(Display):
    """The proved brackets of one run or several, over time.

    Parameters
    ----------
    histories : sequence of sequences of Progress
        (iteration, seconds, lower, upper), oldest first; one sequence for each run.
    names : sequence of str
        Names of the runs.

    Attributes
    ----------
    lower_lines_, upper_lines_, gap_lines_ : list of Line2D
        One for each run; what was not asked for is empty.
    fills_ : list
        The bands between lower and upper.
    legend_ : Legend
    """

    def __init__(self, histories: Sequence[Sequence[Progress]], names: Sequence[str]) -> None:
        if not histories or len(histories) != len(names) or not all(histories):
            raise DataError("a bracket needs at least one run, and every run a name and a line of history")
        self.histories = [np.array(history, dtype=float) for history in histories]
        self.names = list(names)

    @classmethod
    def from_result(cls, *results: Result, names: Sequence[str] | None = None) -> Self:
        """Take the histories of results; one without history, as from CVXPY, is a single point.

        Parameters
        ----------
        *results : Result
        names : sequence of str, optional
            By default the solvers'.

        Raises
        ------
        DataError
            If there are no results, or not as many names.
        """
        histories = [
            result.history or (Progress(result.n_iter, result.seconds, result.lower, result.upper),)
            for result in results
        ]
        return cls(histories, [result.solver for result in results] if names is None else names)

    def plot(self, ax: Axes | None = None, *, against: str = "iteration", gap: bool = False, **kwargs: Any) -> Self:
        """Draw lower and upper bounds, or their difference on a logarithmic axis.

        A bound holds until the next one is proved, so the lines are steps.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        against : {"iteration", "seconds"}
            The horizontal axis.
        gap : bool
            Whether the gaps are drawn instead of the bounds.  Gaps below 2.2e-16 are drawn there.
        **kwargs
            Passed to ``Axes.plot``.
        """
        column = X_AXES.index(one_of(against, "against", X_AXES))
        (ax,) = self._open(ax)
        self.lower_lines_: list[Any] = []
        self.upper_lines_: list[Any] = []
        self.gap_lines_: list[Any] = []
        self.fills_: list[Any] = []
        for k, (history, name) in enumerate(zip(self.histories, self.names, strict=True)):
            x, lower, upper = history[:, column], history[:, 2], history[:, 3]
            marks = 4.0 if len(x) <= MAX_MARKERS else 0.0
            style = line_style(k, kwargs, markersize=marks, drawstyle="steps-post")
            if gap:
                self.gap_lines_ += ax.plot(x, np.maximum(upper - lower, EPS), **{"label": name, **style})
                continue
            self.upper_lines_ += ax.plot(x, upper, **{"label": name, **style})
            self.lower_lines_ += ax.plot(x, lower, **style)
            self.fills_.append(ax.fill_between(x, lower, upper, step="post", color=style["color"], alpha=0.12, lw=0))
        if gap:
            ax.set_yscale("log")
        ax.set_xlabel(against)
        ax.set_ylabel("proved gap" if gap else "proved bracket on the optimum")
        self.legend_ = short_legend(ax, self.gap_lines_ if gap else self.upper_lines_, fontsize="small")
        return self


class SearchDisplay(Display):
    """The bounds of the search for the best labels, over time.

    Parameters
    ----------
    history : sequence of (seconds, lower, upper)
        Oldest first.
    root : float
        The lower bound of the first relaxation.
    nodes : int
        How many relaxations were solved.

    Attributes
    ----------
    upper_line_, lower_line_, root_line_ : Line2D
    fill_ : artist
        The band between lower and upper.
    legend_ : Legend
        Its title says how many relaxations were solved.
    """

    def __init__(self, history: Sequence[tuple[float, float, float]], root: float, nodes: int) -> None:
        if not len(history):
            raise DataError("a search needs at least one line of history")
        self.history = np.array(history, dtype=float)
        self.root, self.nodes = root, nodes

    @classmethod
    def from_search(cls, found: OptimalLabels) -> Self:
        """Take the bounds of `optimal_labels`; the last ones are those it returned, in which rounding is counted."""
        return cls([*found.history, (found.seconds, *found.bracket)], found.root_bound, found.n_nodes)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw lower and upper bounds as steps, on a logarithmic axis of seconds where they span a factor of twenty.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        **kwargs
            Passed to ``Axes.plot``.
        """
        (ax,) = self._open(ax)
        seconds, lower, upper = self.history.T
        styles = [line_style(k, kwargs, markersize=0.0, linestyle="-", drawstyle="steps-post") for k in (1, 0)]
        (self.upper_line_,) = ax.plot(seconds, upper, **{"label": "best labels so far", **styles[0]})
        (self.lower_line_,) = ax.plot(seconds, lower, **{"label": "proved lower bound", **styles[1]})
        self.root_line_ = ax.axhline(self.root, color=GRAY, ls=":", lw=1.2, label="bound of the first relaxation")
        self.fill_ = ax.fill_between(seconds, lower, upper, step="post", color=styles[1]["color"], alpha=0.12, lw=0)
        scale_x(ax, seconds)
        ax.set_xlabel("seconds")
        ax.set_ylabel("cost of the best labels, Eq. (9)")
        drawn = [self.upper_line_, self.lower_line_, self.root_line_]
        self.legend_ = short_legend(ax, drawn, title=f"{self.nodes} relaxations", fontsize="small")
        return self


class SpectrumDisplay(Display):
    """The eigenvalues of Y and of V, as shares of their sums.

    Parameters
    ----------
    labels : (k,) array
        Eigenvalues of Y = FF', largest first: the squared singular values of F.
    directions : (m,) array, optional
        Eigenvalues of V, largest first.

    Attributes
    ----------
    labels_line_, directions_line_ : Line2D
        The second is None where there is no V.
    legend_ : Legend
    """

    def __init__(self, labels: npt.ArrayLike, directions: npt.ArrayLike | None = None) -> None:
        self.labels = normalize(labels)
        self.directions = None if directions is None else normalize(directions)

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Compute the spectra of a result.

        Those of V depend on the units of the features; the offset, where V has one, counts.
        """
        singular = np.linalg.svd(result.F, compute_uv=False)
        return cls(singular**2, None if result.G is None else eigenvalues(result.G))

    def plot(self, ax: Axes | None = None, *, most: int = 20, floor: float = 1e-10, **kwargs: Any) -> Self:
        """Draw the leading eigenvalues on a logarithmic axis.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        most : int
            How many eigenvalues are drawn.
        floor : float
            Where the axis ends: smaller eigenvalues are rounding errors.
        **kwargs
            Passed to ``Axes.plot``.
        """
        (ax,) = self._open(ax)
        spectra = [(self.labels, "labels, $Y$"), (self.directions, "directions, $V$")]
        lines = [
            None if values is None else ax.plot(
                np.arange(1, len(values) + 1)[:most], values[:most], **line_style(k, kwargs, label=label)
            )[0]
            for k, (values, label) in enumerate(spectra)
        ]  # fmt: skip
        self.labels_line_, self.directions_line_ = lines
        ax.set_yscale("log")
        ax.set_ylim(floor, 2.0)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("$i$")
        ax.set_ylabel(r"share of the trace, $\lambda_i\,/\,\mathrm{tr}$")
        self.legend_ = ax.legend(frameon=False, loc="upper right")
        return self


def normalize(values: npt.ArrayLike) -> Array:
    """Return nonnegative numbers divided by their sum; negative ones are rounding errors and count as 0."""
    clipped = np.maximum(np.asarray(values, dtype=float), 0.0)
    if clipped.ndim != 1 or len(clipped) == 0 or not np.isfinite(clipped).all():
        raise DataError("a spectrum must be a 1-d array of finite numbers, at least one")
    return np.asarray(clipped / (clipped.sum() or 1.0))
