"""Display of a regularisation path."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.paths import RegularizationPath
from diffrac_cvx.plotting import canvas
from diffrac_cvx.points.checks import one_of

VISIBLE_FRACTION = 0.01  # of the largest coefficient; smaller ones coincide with the axis and are not named
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


class PathDisplay(canvas.Display):
    """Display of a regularisation path: coefficients, values with certified bounds, and more.

    Parameters
    ----------
    path : RegularizationPath
        Result of `nu_path` or `lambda_path`.  Coefficients are drawn per standard deviation of the features, so that
        they are comparable.
    feature_names : (d,) array of str, optional
        By default x0, x1, ...

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

    def __init__(self, path: RegularizationPath, feature_names: npt.ArrayLike | None = None) -> None:
        self.path = path
        self.feature_names = canvas.as_feature_names(feature_names, path.directions.shape[1])

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
            largest of all.  The others are drawn in a pale colour.
        **kwargs
            Passed to ``Axes.plot``.

        Raises
        ------
        ParameterError
            If a panel is unknown, or if it is "error" or "groups" and the path has none.
        """
        defaults = {} if self.path.groups.are_single else {"groups": "", "value": ""}
        if panels is None:  # as many as there are axes
            panels = list(defaults | PANEL_LABELS)[: 2 if ax is None else min(np.size(np.array(ax, dtype=object)), 2)]
        asked = [one_of(name, "panels", PANEL_LABELS) for name in ([panels] if isinstance(panels, str) else panels)]
        if "error" in asked and self.path.error is None:
            raise ParameterError("the path has no error. Pass y to nu_path or lambda_path.")
        if "groups" in asked and self.path.groups.are_single:
            raise ParameterError("the path has no groups. Pass a penalty with groups to nu_path or lambda_path.")
        self.lines_, self.texts_, self.fill_ = {}, [], None
        labels = PANEL_LABELS | {"coefficients": canvas.PER_DEVIATION}
        size = canvas.WIDTH, 1.2 + 1.9 * len(asked)
        for name, axes in zip(asked, self._open(ax, len(asked), size=size), strict=True):
            axes.set_ylabel(labels[name])
            canvas.scale_x(axes, self.path.parameter)
            if self.path.name == "lambda" and not axes.xaxis_inverted():
                axes.invert_xaxis()
            if name in ("coefficients", "groups"):
                self._coefficients(axes, name, labeled, kwargs)
            else:
                at = self.path.parameter
                self.lines_[name] = axes.plot(at, getattr(self.path, name), **canvas.line_style(0, kwargs))
            if name == "value":
                band: dict[str, Any] = {"color": canvas.SECONDARY, "alpha": 0.2, "lw": 0}
                self.fill_ = axes.fill_between(at, self.path.lower, self.path.upper, **band)
            if name in ("error", "imbalance", "eigenvalue_ratio"):
                axes.set_ylim(-0.04, 1.04)
            if ax is not None or axes is self.axes_[-1]:
                axes.set_xlabel(PARAMETER_SYMBOLS[self.path.name])
        return self

    def _coefficients(self, ax: canvas.Axes, name: str, labeled: int, kwargs: dict[str, Any]) -> None:
        V, at, titles = self.path.directions * self.path.deviations, self.path.parameter, self.feature_names
        if name == "groups":
            groups = self.path.groups
            V, sizes = self.path.group_norms, zip(groups.names, groups.sizes, strict=True)
            titles = [title if size == 1 else f"{title} ({size} columns)" for title, size in sizes]
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
