"""Display of structure tests: the cost of a table's two-way split compared with the costs of null tables."""

from typing import Any, Self

import numpy as np

from diffrac_cvx.comparison.structure import NULL_MODELS, StructureTest
from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting.canvas import ACCENT, Axes, Display, line_style, short_legend

JITTER = 0.16  # half the height over which the marks of one null model are spread


class StructureDisplay(Display):
    """Display of the costs of null tables, with one row of marks for each null model, and of the cost of the table.

    Parameters
    ----------
    tests : sequence of StructureTest
        Tests of the same table.

    Attributes
    ----------
    null_lines_ : list of Line2D
        One for each test.
    value_line_ : Line2D
    legend_ : Legend
    """

    def __init__(self, *tests: StructureTest) -> None:
        if not tests:
            raise DataError("StructureDisplay needs at least one test")
        self.tests = tests

    @classmethod
    def from_tests(cls, *tests: StructureTest) -> Self:
        """Return the display of tests of one table, from `structure_test` or ``structure_`` of an estimator."""
        return cls(*tests)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw a mark for each null table, and a vertical line at the cost of the table.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        **kwargs
            Passed to ``Axes.plot``.
        """
        (ax,) = self._open(ax)
        self.null_lines_: list[Any] = []
        for row, test in enumerate(self.tests):
            heights = row + JITTER * np.resize([-1.0, 0.0, 1.0, -0.5, 0.5], len(test.null_distribution))
            style = line_style(2 * row, kwargs, linestyle="none", alpha=0.7)
            self.null_lines_ += ax.plot(test.null_distribution, heights, **style)
        statistic = self.tests[0].statistic
        self.value_line_ = ax.axvline(statistic, color=ACCENT, lw=1.5, label="this table")
        titles = [f"{NULL_MODELS[test.null].description}\np = {test.pvalue:.2g}" for test in self.tests]
        ax.set_yticks(range(len(self.tests)), titles)
        ax.set_ylim(len(self.tests) - 0.5, -0.5)
        ax.set_xlabel("cost of the two-way split (lower is better)")
        self.legend_ = short_legend(ax, [self.value_line_], fontsize="small")
        return self
