"""Display of the duality of alpha and nu."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.paths import Duality, Path, duality
from diffrac_cvx.plotting.canvas import ACCENT, Axes, Display, line_style, merge_style, panels_for, scale_x

PANELS = {"constrained": r"constrained value $q(\alpha)$", "penalised": r"penalised value $p(\nu)$"}
CORNERS: dict[str, Any] = {"constrained": "upper right", "penalised": "upper left"}  # where the curves are not


class DualityDisplay(Display):
    r"""The values of (7) along alpha and of (8) along nu, each bounding the other.

    Of q convex, the penalised problem proves :math:`q(\alpha) \ge p(\nu) - \nu\alpha` for every nu, and the chords
    between points of q, with q(1) = 0, lie above: q lies in the band.

    Parameters
    ----------
    duality : Duality
    constrained : Path, optional
        From `alpha_path`: values of (7) solved separately, drawn as crosses.
    penalised : Path, optional
        From `nu_path`: more values of (8), which p is drawn through.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The first panel's.
    axes_ : tuple of Axes
        One for each panel.
    band_ : artist or None
        The proved bracket of q.
    points_, crosses_ : Line2D or None
        q at the imbalances of the penalised solutions, and as solved separately.
    line_, sums_ : Line2D or None
        p, and q(alpha) + nu alpha.
    """

    band_: Any
    points_: Any
    crosses_: Any
    line_: Any
    sums_: Any

    def __init__(self, duality: Duality, constrained: Path | None = None, penalised: Path | None = None) -> None:
        self.duality, self.constrained = duality, constrained
        self.penalised = duality.penalised if penalised is None else penalised

    @classmethod
    def from_data(cls, X: npt.ArrayLike, nus: npt.ArrayLike, **options: Any) -> Self:
        """Solve by `duality`, which takes the other arguments and says what it raises."""
        return cls(duality(X, nus, **options))

    def plot(
        self, ax: Any = None, *, panels: Sequence[str] | str | None = None, legend: bool = True, **kwargs: Any
    ) -> Self:
        """Draw q with its band, and p with the sums that equal it.

        Parameters
        ----------
        ax : Axes, or a sequence of them, optional
            One for each panel.  By default those of a new figure, side by side.
        panels : str or sequence of str, optional
            Of "constrained" and "penalised"; by default both, or the first where there is one axes.
        legend : bool
            Whether the marks are explained on the axes.
        **kwargs
            Passed to ``Axes.plot`` for q and p; a colour is that of the band and of the other marks too.

        Raises
        ------
        ParameterError
            If a panel is not known.
        """
        self.band_ = self.points_ = self.crosses_ = self.line_ = self.sums_ = None
        for name, axes in self._open_panels(ax, panels_for(ax, panels, PANELS), PANELS, across=True):
            (self._constrained if name == "constrained" else self._penalised)(axes, kwargs)
            if legend:
                axes.legend(frameon=False, loc=CORNERS[name], fontsize="small")
        return self

    def _constrained(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        known = self.duality.constrained
        alphas = np.union1d(np.linspace(known.parameter.min(), 1.0, 401), known.parameter)
        lower, upper = self.duality.bounds(alphas)
        marks = line_style(0, kwargs, linestyle="none", label=r"at the solutions of $p(\nu)$")
        self.band_ = ax.fill_between(alphas, lower, upper, color=marks["color"], alpha=0.25, lw=0, label="proved")
        (self.points_,) = ax.plot(known.parameter, known.value, **marks)
        if self.constrained is not None:
            crosses = merge_style({"color": ACCENT}, kwargs) | {"linestyle": "none", "marker": "x"}
            apart = self.constrained
            (self.crosses_,) = ax.plot(apart.parameter, apart.value, **crosses, label="solved apart")
        ax.set_xlabel(r"$\alpha$")

    def _penalised(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        scale_x(ax, self.penalised.parameter)
        line = line_style(0, kwargs, label=r"$p(\nu)$") | {"marker": ""}
        (self.line_,) = ax.plot(self.penalised.parameter, self.penalised.value, **line)
        _, upper = self.duality.sums
        marks = merge_style({"color": ACCENT, "marker": "o"}, kwargs) | {"linestyle": "none", "markerfacecolor": "none"}
        sums = r"$q(\alpha) + \nu\alpha$ at its $\alpha$"
        (self.sums_,) = ax.plot(self.duality.penalised.parameter, upper, **marks, label=sums)
        ax.set_xlabel(r"$\nu$")
