"""Panels of a figure, and numbers with their intervals."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.harness.intervals import Interval
from experiments.harness.style import PAGE, STYLE, save, whiskers_of


@contextmanager
def panels(
    stem: Path, rows: int, columns: int, height: float, *, rc: Any = (), **given: Any
) -> Iterator[tuple[Figure, Any]]:
    """Create the panels of a figure in the common style, and save the figure when the block ends."""
    with plt.rc_context({**STYLE, **dict(rc)}):
        figure, axes = plt.subplots(rows, columns, figsize=(given.pop("width", PAGE), height), **given)
        yield figure, axes
        save(figure, stem)


def draw_intervals(ax: Axes, x: npt.ArrayLike, found: Sequence[Interval], **style: Any) -> None:
    """Draw numbers with their intervals."""
    ax.errorbar(x, np.array([one.value for one in found]), whiskers_of(found), **style)
