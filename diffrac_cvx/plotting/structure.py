"""Display of a structure test: the scores of the rows that did not choose the direction of the split."""

from typing import Any, Self

import numpy as np

from diffrac_cvx.comparison.structure import StructureTest
from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting.canvas import ACCENT, PALE, Axes, Display, short_legend

MIN_CELLS, MAX_CELLS = 10, 40  # of the histogram


class StructureDisplay(Display):
    """Display of the scores of a structure test: a histogram, and their density estimate with one mode.

    A gap between groups is where the histogram is far below the curve.

    Parameters
    ----------
    test : StructureTest
        Test of a table.

    Attributes
    ----------
    bars_ : BarContainer
        Histogram of the scores, as a density.
    line_ : Line2D
        Gaussian kernel density estimate at the critical bandwidth, the smallest with one mode.
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
        (self.line_,) = ax.plot(at, kernel.mean(axis=1), color=ACCENT, lw=1.5, label="smoothed to one mode")
        ax.set_xlabel(f"score along the split (p = {self.test.pvalue:.2g}: {self.test.verdict})")
        ax.set_ylabel("density")
        self.legend_ = short_legend(ax, [self.bars_, self.line_], fontsize="small")
        return self
