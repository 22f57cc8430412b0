"""Displays of results: certified bounds over time, spectra of Y and V, and the scores of a structure test."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.comparison.structure import StructureTest
from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting.canvas import ACCENT, PALE, Axes, Display, line_style, scale_x, short_legend
from diffrac_cvx.points.checks import Array, one_of
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import EPS
from diffrac_cvx.problem.result import Progress, Result

X_AXES = ("iteration", "seconds")
MAX_MARKERS = 40  # number of points up to which a line has a marker at each
MIN_EIGENVALUE = 1e-10  # of the trace: smaller ones are rounding errors and below the axis
MIN_CELLS, MAX_CELLS = 10, 40  # of the histogram of a structure test


class BracketDisplay(Display):
    """Display of the certified bounds of one or several runs over time.

    Parameters
    ----------
    histories : sequence of sequences of Progress
        (iteration, seconds, lower, upper), oldest first; one sequence for each run.
    names : sequence of str
        Names of the runs.

    Attributes
    ----------
    lower_lines_, upper_lines_, gap_lines_ : list of Line2D
        Lines of each run; empty if not drawn.
    fills_ : list
        Bands between the lower and upper bounds.
    legend_ : Legend
    """

    def __init__(self, histories: Sequence[Sequence[Progress]], names: Sequence[str]) -> None:
        if not histories or len(histories) != len(names) or not all(histories):
            raise DataError("BracketDisplay needs at least one run, and every run needs a name and a history entry.")
        self.histories = [np.array(history, dtype=float) for history in histories]
        self.names = list(names)

    @classmethod
    def from_result(cls, *results: Result, names: Sequence[str] | None = None) -> Self:
        """Return the display of the histories of results; a result without a history, as from CVXPY, is a point.

        Parameters
        ----------
        *results : Result
        names : sequence of str, optional
            Names of the runs, by default those of the solvers.

        Raises
        ------
        DataError
            If there are no results, or if the number of names differs.
        """
        histories = [
            result.history or (Progress(result.n_iter, result.seconds, result.lower, result.upper),)
            for result in results
        ]
        return cls(histories, [result.solver for result in results] if names is None else names)

    def plot(self, ax: Axes | None = None, *, against: str = "iteration", gap: bool = False, **kwargs: Any) -> Self:
        """Draw lower and upper bounds, or their difference on a logarithmic axis.

        A bound holds until the next one is certified, so the lines are steps.  The axis of seconds is logarithmic if it
        spans a factor of twenty.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        against : {"iteration", "seconds"}
            Quantity on the horizontal axis.
        gap : bool
            Whether the gaps are drawn instead of the bounds.  Gaps below 2.2e-16 are drawn at that value.
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
        if against == "seconds":
            scale_x(ax, np.concatenate([history[:, column] for history in self.histories]))
        ax.set_xlabel(against)
        ax.set_ylabel("certified gap" if gap else "certified bounds on the optimum")
        self.legend_ = short_legend(ax, self.gap_lines_ if gap else self.upper_lines_, fontsize="small")
        return self


class SpectrumDisplay(Display):
    """Display of the eigenvalues of Y and V as fractions of their sums.

    Parameters
    ----------
    labels : (k,) array
        Eigenvalues of Y = FF', largest first: the squared singular values of F.
    directions : (m,) array, optional
        Eigenvalues of V, largest first.

    Attributes
    ----------
    labels_line_, directions_line_ : Line2D
        The second is None if there is no V.
    legend_ : Legend
    """

    def __init__(self, labels: npt.ArrayLike, directions: npt.ArrayLike | None = None) -> None:
        self.labels = normalize(labels)
        self.directions = None if directions is None else normalize(directions)

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Return the display of the spectra of a result.

        The spectrum of V depends on the units of the features and includes the offset, if V has one.
        """
        singular = np.linalg.svd(result.F, compute_uv=False)
        return cls(singular**2, None if result.G is None else np.linalg.svd(dense(result.G), compute_uv=False) ** 2)

    def plot(self, ax: Axes | None = None, *, most: int = 20, **kwargs: Any) -> Self:
        """Draw the leading eigenvalues on a logarithmic axis.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        most : int
            Maximum number of eigenvalues drawn.
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
        drawn = np.concatenate([values[:most] for values, _ in spectra if values is not None])
        smallest = drawn[drawn > MIN_EIGENVALUE].min(initial=1.0)
        ax.set_ylim(max(smallest / 3.0, MIN_EIGENVALUE), 2.0)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("$i$")
        ax.set_ylabel(r"fraction of the trace, $\lambda_i\,/\,\mathrm{tr}$")
        self.legend_ = ax.legend(frameon=False, loc="best")
        return self


class StructureDisplay(Display):
    """Display of the scores of a structure test: a histogram, and their density estimate.

    A gap between groups is a valley of the curve between two peaks, far deeper than in samples with one mode.

    Parameters
    ----------
    test : StructureTest
        Test of a table.

    Attributes
    ----------
    bars_ : BarContainer
        Histogram of the scores, as a density.
    line_ : Line2D
        Gaussian kernel density estimate at the bandwidth of the test.
    legend_ : Legend
    """

    def __init__(self, test: StructureTest) -> None:
        if test.bandwidth == 0.0:
            raise DataError("The test has no scores. Test again without a time limit, or with a smaller penalty.")
        self.test = test

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the histogram of the scores and their density estimate.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        **kwargs
            Passed to ``Axes.bar``.
        """
        (ax,) = self._open(ax)
        scores, bandwidth = self.test.scores, self.test.bandwidth
        n_cells = int(np.clip(2.0 * len(scores) ** 0.5, MIN_CELLS, MAX_CELLS))
        style: dict[str, Any] = {
            "width": np.ptp(scores) / n_cells,
            "align": "edge",
            "color": PALE,
            "label": "rows left out",
        } | kwargs
        density, edges = np.histogram(scores, n_cells, density=True)
        self.bars_ = ax.bar(edges[:-1], density, **style)
        at = np.linspace(scores.min(), scores.max(), 300)
        kernel = np.exp(-0.5 * ((at[:, None] - scores) / bandwidth) ** 2) / (bandwidth * (2.0 * np.pi) ** 0.5)
        (self.line_,) = ax.plot(at, kernel.mean(axis=1), color=ACCENT, lw=1.5, label="density estimate")
        ax.set_xlabel(f"score along the split (p = {self.test.pvalue:.2g}: {self.test.verdict})")
        ax.set_ylabel("density")
        self.legend_ = short_legend(ax, [self.bars_, self.line_], fontsize="small")
        return self


def normalize(values: npt.ArrayLike) -> Array:
    """Return non-negative numbers divided by their sum; negative numbers are rounding errors and count as 0."""
    clipped = np.maximum(np.asarray(values, dtype=float), 0.0)
    if clipped.ndim != 1 or len(clipped) == 0 or not np.isfinite(clipped).all():
        raise DataError("a spectrum must be a non-empty 1-d array of finite numbers.")
    return np.asarray(clipped / (clipped.sum() or 1.0))
