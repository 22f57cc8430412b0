"""Displays along a grid: regularisation paths and parameter selection."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.paths import RegularizationPath, lambda_path, nu_path
from diffrac_cvx.plotting import canvas
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.feature_groups import FeatureGroups
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty

VISIBLE_FRACTION = 0.01  # of the largest coefficient; smaller ones lie on the axis and are not named
PARAMETER_SYMBOLS = {"nu": r"$\nu$", "lambda": r"$\lambda$"}
PANEL_LABELS = {
    "coefficients": "coefficient $v_j$",
    "value": "value, certified bounds",
    "eigenvalue_ratio": r"$\lambda_2 / \lambda_1$ of $Y$",
    "imbalance": r"imbalance $1^\top Y 1 / n^2$",
    "error": "clustering error",
    "seconds": "time (seconds)",
    "groups": r"group norm $\|v_g\|_2$",
}
CRITERION_LABELS = {
    "consensus": "consensus",
    "stability": "stability",
    "separation": "separation",
    "eigenvalue_ratio": r"$-\lambda_2 / \lambda_1$ of $Y$",
    "label_gap": r"$-$ label gap",
}
CHOICE_STYLE: dict[str, Any] = {
    "marker": "*",
    "markersize": 13.0,
    "color": canvas.ACCENT,
    "linestyle": "none",
    "zorder": 4,
}
WARNING_STYLE: dict[str, Any] = {
    "marker": "x",
    "markersize": 6.0,
    "color": canvas.GRAY,
    "linestyle": "none",
    "zorder": 3,
}


class PathDisplay(canvas.Display):
    """Display of a regularisation path: coefficients, values with certified bounds, and more.

    Parameters
    ----------
    path : RegularizationPath
        Result of `nu_path` or `lambda_path`.
    feature_names : (d,) array of str, optional
        By default x0, x1, ...
    deviations : (d,) array, optional
        Standard deviation of each feature, by default from the path: coefficients are drawn per standard deviation, and
        so are comparable.  They are drawn unscaled if neither is given.

    Attributes
    ----------
    lines_ : dict of str to list of Line2D
        Lines by panel: one for each feature in order, one for each group, or a single one.
    fill_ : artist or None
        Band between the bounds, if the value is drawn.
    texts_ : list of Annotation
        Names of features or groups.
    """

    lines_: dict[str, list[Any]]
    fill_: Any
    texts_: list[Any]

    def __init__(
        self,
        path: RegularizationPath,
        feature_names: npt.ArrayLike | None = None,
        deviations: npt.ArrayLike | None = None,
    ) -> None:
        self.path = path
        deviations = path.deviations if deviations is None else deviations
        d = path.directions.shape[1]
        self.feature_names = canvas.as_feature_names(feature_names, d)
        self.per_deviation = deviations is not None
        self.deviations = np.ones(d) if deviations is None else np.asarray(deviations, dtype=float)
        if self.deviations.shape != (d,):
            raise DataError(f"deviations has shape {self.deviations.shape} for {d} features")

    @classmethod
    def from_nu(
        cls,
        X: npt.ArrayLike,
        nus: npt.ArrayLike,
        penalty: Penalty = NO_PENALTY,
        *,
        feature_names: npt.ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Return the display of a path over nu; the other arguments and the errors are those of `nu_path`."""
        return cls(nu_path(X, nus, penalty, **options), feature_names, np.asarray(X, dtype=float).std(axis=0))

    @classmethod
    def from_lambda(
        cls, X: npt.ArrayLike, lams: npt.ArrayLike, *, feature_names: npt.ArrayLike | None = None, **options: Any
    ) -> Self:
        """Return the display of a path over lambda; the other arguments and the errors are those of `lambda_path`."""
        return cls(lambda_path(X, lams, **options), feature_names, np.asarray(X, dtype=float).std(axis=0))

    def plot(
        self, ax: Any = None, *, panels: Sequence[str] | str | None = None, labeled: int = 6, **kwargs: Any
    ) -> Self:
        """Draw the panels; lambda decreases to the right, so that coefficients grow.

        The names are to the right of the axes: for your own figure, choose a layout such as "constrained" to make room.

        Parameters
        ----------
        ax : Axes, or a sequence of them, optional
            One for each panel.  By default those of a new figure, one above the other.
        panels : str or sequence of str, optional
            Panels among "coefficients", "value", "eigenvalue_ratio", "imbalance", "error", "seconds" and, for a path
            with feature groups, "groups" (the norms of their coefficients).  By default the first two, or as many as
            there are axes; a path with groups has "groups" instead of "coefficients".
        labeled : int
            Number of named features or groups, at most 8: those with the largest coefficients, if above 1 % of the
            largest of all.  The others are pale.
        **kwargs
            Passed to ``Axes.plot``.

        Raises
        ------
        ParameterError
            If a panel is unknown, or if it is "error" or "groups" and the path has none.
        """
        defaults = {} if self.path.groups.are_single else {"groups": "", "value": ""}
        asked = canvas.panels_for(ax, panels, defaults | PANEL_LABELS)
        if "error" in asked and self.path.error is None:
            raise ParameterError("the path has no error. Pass y to nu_path or lambda_path")
        if "groups" in asked and self.path.groups.are_single:
            raise ParameterError(
                "the path has no groups. Pass groups to lambda_path, or a penalty with groups to nu_path"
            )
        self.lines_, self.texts_, self.fill_ = {}, [], None
        labels = PANEL_LABELS | ({"coefficients": canvas.PER_DEVIATION} if self.per_deviation else {})
        for name, axes in self._open_panels(ax, asked, labels):
            canvas.scale_x(axes, self.path.parameter)
            if self.path.name == "lambda" and not axes.xaxis_inverted():
                axes.invert_xaxis()
            if name in ("coefficients", "groups"):
                self._coefficients(axes, name, labeled, kwargs)
            else:
                self._curve(axes, name, kwargs)
            self._label_x(ax, axes, PARAMETER_SYMBOLS[self.path.name])
        return self

    def _coefficients(self, ax: canvas.Axes, name: str, labeled: int, kwargs: dict[str, Any]) -> None:
        V, at, titles = self.path.directions * self.deviations, self.path.parameter, self.feature_names
        if name == "groups":
            V, titles = replace(self.path, deviations=self.deviations).group_norms, group_titles(self.path.groups)
        size = np.abs(V).max(axis=0)
        largest = np.argsort(-size, kind="stable")[: min(labeled, len(canvas.STYLES))]
        named = largest[size[largest] > VISIBLE_FRACTION * size.max()].tolist()
        pale = canvas.merge_style({"color": canvas.PALE, "linewidth": 0.8, "zorder": 1}, kwargs)
        ax.axhline(0.0, color=canvas.GRAY, linewidth=0.6, zorder=0)
        self.lines_[name] = [
            ax.plot(at, V[:, j], **(canvas.line_style(named.index(j), kwargs) if j in named else pale))[0]
            for j in range(V.shape[1])
        ]
        end = 0 if ax.xaxis_inverted() else -1
        texts = [canvas.format_name(titles[j]) for j in named]
        colors = [self.lines_[name][j].get_color() for j in named]
        self.texts_ += canvas.label_ends(ax, V[end, named].tolist(), texts, colors)

    def _curve(self, ax: canvas.Axes, name: str, kwargs: dict[str, Any]) -> None:
        at = self.path.parameter
        self.lines_[name] = ax.plot(at, getattr(self.path, name), **canvas.line_style(0, kwargs))
        if name == "value":
            self.fill_ = ax.fill_between(at, self.path.lower, self.path.upper, color=canvas.SECONDARY, alpha=0.2, lw=0)
        if name in ("error", "imbalance", "eigenvalue_ratio"):
            ax.set_ylim(-0.04, 1.04)


def group_titles(groups: FeatureGroups) -> list[str]:
    """Return the names of groups, with the number of columns if there are several."""
    return [
        name if size == 1 else f"{name} ({size} columns)" for name, size in zip(groups.names, groups.sizes, strict=True)
    ]


class ChoiceDisplay(canvas.Display):
    """Display of the selection criteria over the ridge, one line for each lam and nu, with a star at the selection.

    A cross marks a setting with a warning, which is selected only if all settings have one.

    Parameters
    ----------
    results : mapping
        ``cv_results_`` of a `DiffracClusteringCV`.
    best : int
        Index of the selected setting, ``best_index_``.

    Attributes
    ----------
    lines_ : dict of str to list of Line2D
        Lines by panel: one for each pair of nu and lam, from the largest.
    marks_ : dict of str to Line2D
        Stars by panel.
    """

    def __init__(self, results: Mapping[str, Any], best: int) -> None:
        self.results, self.best = results, best

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Return the display of a fitted `DiffracClusteringCV`."""
        return cls(model.cv_results_, model.best_index_)

    def plot(self, ax: Any = None, *, panels: Sequence[str] | str | None = None, **kwargs: Any) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : Axes, or a sequence of them, optional
            One for each panel.  By default those of a new figure, one above the other.
        panels : str or sequence of str, optional
            Panels among "consensus", "stability", "separation", "eigenvalue_ratio" and "label_gap"; by default the
            first two, or as many as there are axes.
        **kwargs
            Passed to ``Axes.plot``.

        Raises
        ------
        ParameterError
            If a panel is unknown.
        """
        self.lines_: dict[str, list[Any]] = {}
        self.marks_: dict[str, Any] = {}
        ridges = np.asarray(self.results["param_ridge"])
        for name, axes in self._open_panels(ax, canvas.panels_for(ax, panels, CRITERION_LABELS), CRITERION_LABELS):
            if ridges.min() > 0.0:
                axes.set_xscale("log")
            else:
                canvas.scale_x(axes, ridges)
            self._draw(axes, name, np.asarray(self.results[name]), ridges, kwargs)
            self._label_x(ax, axes, "ridge")
        self.ax_.legend(frameon=False, fontsize=7.5, loc="best")
        return self

    def _draw(self, ax: canvas.Axes, name: str, score: Array, ridges: Array, kwargs: Mapping[str, Any]) -> None:
        """Draw the lines and marks of one criterion."""
        nus, lams = (np.asarray(self.results[f"param_{key}"]) for key in ("nu", "lam"))
        pairs = sorted(set(zip(nus.tolist(), lams.tolist(), strict=True)), reverse=True)
        self.lines_[name] = []
        for k, (nu, lam) in enumerate(pairs):
            rows = np.flatnonzero((nus == nu) & (lams == lam))
            rows = rows[np.argsort(ridges[rows])]
            label = f"$\\lambda$ = {lam:g}" + (f", $\\nu$ = {nu:g}" if len(set(nus.tolist())) > 1 else "")
            self.lines_[name] += ax.plot(ridges[rows], score[rows], label=label, **canvas.line_style(k, kwargs))
        bad = np.flatnonzero([len(kinds) > 0 for kinds in self.results["diagnostics"]])
        if len(bad):
            ax.plot(ridges[bad], score[bad], label="warning", **canvas.merge_style(WARNING_STYLE, kwargs))
        (self.marks_[name],) = ax.plot(ridges[self.best], score[self.best], label="selected", **CHOICE_STYLE)
