"""Display of the spectra of Y and of V."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting.canvas import Axes, Display, line_style
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import eigenvalues
from diffrac_cvx.problem.result import Result


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
    ax_, figure_ : Axes, Figure
    labels_line_, directions_line_ : Line2D
        The second is None where there is no V.
    legend_ : Legend
    """

    labels_line_: Any
    directions_line_: Any
    legend_: Any

    def __init__(self, labels: npt.ArrayLike, directions: npt.ArrayLike | None = None) -> None:
        self.labels = normalize(labels)
        self.directions = None if directions is None else normalize(directions)

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Compute the spectra of a result.

        Those of V depend on the units of the features; the offset, where V has one, counts.

        Parameters
        ----------
        result : Result
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
    kept = np.maximum(np.asarray(values, dtype=float), 0.0)
    if kept.ndim != 1 or len(kept) == 0 or not np.isfinite(kept).all():
        raise DataError("a spectrum must be a 1-d array of finite numbers, at least one")
    return np.asarray(kept / (kept.sum() or 1.0))
