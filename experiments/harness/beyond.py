"""Helpers for experiments beyond the paper: findings with a rule, formatted proportions, multi-panel figures."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.harness.claims import Finding, judge
from experiments.harness.findings import Verdict
from experiments.harness.intervals import Interval, percent, proportion_of
from experiments.harness.style import PAGE, STYLE, save, whiskers_of

MIN_ROWS = 12  # fewest rows for a rule on a proportion


def ruled(statement: str, measured: str, verdict: Verdict, rule: str, comment: str = "") -> Finding:
    """Return a finding whose comment ends with its rule and the verdict of that rule."""
    return Finding(statement, measured, f"{comment} Rule: {rule} Verdict: {verdict.value}.".lstrip())


def of_most(
    statement: str,
    successes: npt.ArrayLike,
    measured: str,
    rule: str = "this holds for {most}",
    *,
    partly: float = 0.8,
    end: str = ".",
    comment: str = "",
) -> Finding:
    """Return a finding that agrees if a proportion is at least 90 % (80 % at the lower end), in part from `partly` on.

    Placeholders: ``{share}`` for the proportion, ``{count}`` for the number of rows, ``{most}`` for the threshold.
    """
    successes = np.asarray(successes)
    proportion, tested = proportion_of(successes), len(successes) >= MIN_ROWS
    demand = rule.format(most="at least 90 % (80 % at the lower end)")
    return ruled(
        statement,
        measured.format(share=percent(proportion), count=len(successes)),
        judge(proportion.value >= 0.9 and proportion.low >= 0.8, proportion.value >= partly, tested=tested),
        f"agrees if {demand}, in part from {100 * partly:.0f} %{end}",
        comment,
    )


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
