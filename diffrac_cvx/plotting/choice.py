"""Display of a choice: what each criterion says of each setting, and the setting chosen."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from diffrac_cvx.plotting.canvas import ACCENT, GREY, Axes, Display, line_style, merge_style, panels_for, scale_x
from diffrac_cvx.points.checks import Array

PANELS = {
    "consensus": "consensus",
    "stability": "stability",
    "separation": "separation",
    "eigenvalue_ratio": r"$-\lambda_2 / \lambda_1$ of $Y$",
    "label_gap": r"$-$ label gap",
}
CHOICE: dict[str, Any] = {"marker": "*", "markersize": 13.0, "color": ACCENT, "linestyle": "none", "zorder": 4}
NO_ANSWER: dict[str, Any] = {"marker": "x", "markersize": 6.0, "color": GREY, "linestyle": "none", "zorder": 3}


class ChoiceDisplay(Display):
    """The criteria over the ridge, a line for each lam and nu, with the setting chosen marked by a star.

    A cross marks a setting whose split is no answer, which is never chosen while there is another.

    Parameters
    ----------
    results : mapping
        ``cv_results_`` of a `DiffracClusteringCV`.
    best : int
        The setting chosen, ``best_index_``.

    Attributes
    ----------
    lines_ : dict of str to list of Line2D
        By panel: one for each pair of nu and lam, from the largest.
    marks_ : dict of str to Line2D
        The star, by panel.
    """

    lines_: dict[str, list[Any]]
    marks_: dict[str, Any]

    def __init__(self, results: Mapping[str, Any], best: int) -> None:
        self.results, self.best = results, best

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the table and the choice of a fitted `DiffracClusteringCV`."""
        return cls(model.cv_results_, model.best_index_)

    def plot(self, ax: Any = None, *, panels: Sequence[str] | str | None = None, **kwargs: Any) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : Axes, or a sequence of them, optional
            One for each panel.  By default those of a new figure, one above the other.
        panels : str or sequence of str, optional
            Of "consensus", "stability", "separation", "eigenvalue_ratio" and "label_gap"; by default the first two, or
            as many as there are axes.
        **kwargs
            Passed to ``Axes.plot``.

        Raises
        ------
        ParameterError
            If a panel is not known.
        """
        self.lines_, self.marks_ = {}, {}
        ridges = np.asarray(self.results["param_ridge"])
        for name, axes in self._open_panels(ax, panels_for(ax, panels, PANELS), PANELS):
            if ridges.min() > 0.0:
                axes.set_xscale("log")
            else:
                scale_x(axes, ridges)
            self._draw(axes, name, np.asarray(self.results[name]), ridges, kwargs)
            self._label_x(ax, axes, "ridge")
        self.ax_.legend(frameon=False, fontsize=7.5, loc="best")
        return self

    def _draw(self, ax: Axes, name: str, score: Array, ridges: Array, kwargs: Mapping[str, Any]) -> None:
        """Draw one criterion."""
        nus, lams = (np.asarray(self.results[f"param_{key}"]) for key in ("nu", "lam"))
        pairs = sorted(set(zip(nus.tolist(), lams.tolist(), strict=True)), reverse=True)
        self.lines_[name] = []
        for k, (nu, lam) in enumerate(pairs):
            rows = np.flatnonzero((nus == nu) & (lams == lam))
            rows = rows[np.argsort(ridges[rows])]
            label = f"$\\lambda$ = {lam:g}" + (f", $\\nu$ = {nu:g}" if len(set(nus.tolist())) > 1 else "")
            self.lines_[name] += ax.plot(ridges[rows], score[rows], label=label, **line_style(k, kwargs))
        bad = np.flatnonzero([len(kinds) > 0 for kinds in self.results["reservations"]])
        if len(bad):
            ax.plot(ridges[bad], score[bad], label="no answer", **merge_style(NO_ANSWER, kwargs))
        (self.marks_[name],) = ax.plot(ridges[self.best], score[self.best], label="chosen", **CHOICE)
