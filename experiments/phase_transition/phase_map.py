"""Display of a quantity over the number of points n and the dimension d."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.plotting.canvas import ACCENT, PALE, Axes, Display, merge_style
from diffrac_cvx.points.checks import Array


class PhaseMapDisplay(Display):
    """Display of a quantity over n and d as a colour map.

    Parameters
    ----------
    d : (k,) array
        Dimensions, increasing.
    n : (m,) array
        Numbers of points, increasing.
    values : (m, k) array
        Values of the quantity, NaN where it was not measured.
    name : str
        Name of the quantity.

    Attributes
    ----------
    mesh_ : QuadMesh
    colorbar_ : Colorbar or None
    contour_ : ContourSet or None
    """

    def __init__(self, d: npt.ArrayLike, n: npt.ArrayLike, values: npt.ArrayLike, name: str = "") -> None:
        self.d, self.n = np.asarray(d, dtype=float), np.asarray(n, dtype=float)
        self.values, self.name = np.asarray(values, dtype=float), name
        if self.values.shape != (len(self.n), len(self.d)):
            raise DataError(f"values has shape {self.values.shape} for {len(self.n)} n and {len(self.d)} d")
        for axis, grid in (("n", self.n), ("d", self.d)):
            if not np.all(np.diff(grid) > 0):
                raise DataError(f"{axis} must be increasing. Sort it, or use from_table")

    @classmethod
    def from_table(cls, table: Any, value: str = "error", *, n: str = "n", d: str = "d") -> Self:
        """Return the display of the means over the rows (such as replications) for each n and d.

        Parameters
        ----------
        table : mapping of str to arrays, or data frame
            Columns of equal length, accessed as ``table[name]``.
        value, n, d : str
            Column names.

        Raises
        ------
        DataError
            If a column is missing, or if the lengths differ.
        """
        columns = [read_column(table, name) for name in (n, d, value)]
        if len({len(found) for found in columns}) != 1 or len(columns[0]) == 0:
            raise DataError(f"columns {n}, {d}, {value} have lengths {[len(found) for found in columns]}")
        rows, row = np.unique(columns[0], return_inverse=True)
        cols, col = np.unique(columns[1], return_inverse=True)
        known = np.isfinite(columns[2])
        total, count = np.zeros((len(rows), len(cols))), np.zeros((len(rows), len(cols)))
        np.add.at(total, (row[known], col[known]), columns[2][known])
        np.add.at(count, (row[known], col[known]), 1.0)
        return cls(cols, rows, np.where(count > 0, total / np.maximum(count, 1.0), np.nan), value)

    def plot(self, ax: Axes | None = None, *, level: float | None = 0.5, colorbar: bool = True, **kwargs: Any) -> Self:
        """Draw the map, dark where the value is large, and the contour line of a level.

        Parameters
        ----------
        ax : Axes, optional
            By default those of a new figure.
        level : float, optional
            Level of the contour line, interpolated between cell means; None for no line.
        colorbar : bool
            Whether a colour bar is drawn next to the axes.
        **kwargs
            Passed to ``Axes.pcolormesh``: ``cmap="Greys_r"`` is dark where the value is small; vmin and vmax limit the
            colour scale.
        """
        (ax,) = self._open(ax)
        default = {"cmap": "Greys", "rasterized": True}
        self.mesh_ = ax.pcolormesh(edges(self.d), edges(self.n), self.values, **merge_style(default, kwargs))
        known = self.values[~np.isnan(self.values)]
        if len(known) < self.values.size:
            ax.patch.set(hatch="////", edgecolor=PALE)
        self.colorbar_: Any = None
        self.contour_: Any = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, label=self.name)
        if level is not None and min(self.values.shape) > 1 and (known < level).any() and (known > level).any():
            self.contour_ = ax.contour(self.d, self.n, self.values, [level], colors=ACCENT, linewidths=1.5)
            if self.colorbar_ is not None:
                self.colorbar_.add_lines(self.contour_)
        ax.set_xlabel("dimension $d$")
        ax.set_ylabel("number of points $n$")
        return self


def read_column(table: Any, name: str) -> Array:
    """Return a column of a table as numbers."""
    try:
        found = table[name]
    except (KeyError, IndexError, ValueError):
        raise DataError(f"the table has no column {name!r}") from None
    return np.asarray(found, dtype=float)


def edges(centers: Array) -> Array:
    """Return the cell edges around increasing centres."""
    if len(centers) == 1:
        return np.array([centers[0] - 0.5, centers[0] + 0.5])
    middle = (centers[1:] + centers[:-1]) / 2
    return np.concatenate([[2 * centers[0] - middle[0]], middle, [2 * centers[-1] - middle[-1]]])
