"""Draw the rejection rates of the tests, without groups and with them."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.beyond import draw_intervals, panels
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY
from experiments.structure.cells import GROUPS, NONE
from experiments.structure.claims import LEVEL, TESTS, rejected

STYLES = {
    "columns_ridge": Style(ACCENT, "-", "o"),
    "covariance_ridge": Style(SECONDARY, "-", "s"),
    "columns_none": Style(ACCENT, "--", "o"),
    "covariance_none": Style(SECONDARY, "--", "s"),
    "sigclust": Style(GREEN, "-.", "^"),
    "gap": Style("#E69F00", ":", "v"),
    "dip of the first component": Style(GRAY, "-", "D"),
    "dip of the score": Style("black", ":", "x"),
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the proportion of tables in which each test rejects: one panel without groups, three with groups."""
    with panels(stem, 2, 2, 5.0, rc={"lines.linewidth": 1.0}) as (figure, axes):
        draw_none(axes.flat[0], table)
        for ax, family, letter in zip(axes.flat[1:], GROUPS, "bcd", strict=True):
            draw_power(ax, table[table["family"] == family])
            ax.set_title(f"({letter}) groups: {family}")
        lines, labels = axes.flat[1].get_legend_handles_labels()
        score = axes.flat[0].get_legend_handles_labels()[0][list(STYLES).index("dip of the score")]
        figure.legend(
            [*lines, score], [*labels, TESTS["dip of the score"]], loc="outside lower center", ncols=4, frameon=False
        )


def draw_none(ax: Axes, table: pd.DataFrame) -> None:
    """Draw the rejection rates without groups, by family, one mark per test."""
    shift = np.linspace(-0.33, 0.33, len(STYLES))
    for (test, style), move in zip(STYLES.items(), shift, strict=True):
        proportions = [rejected(table[table["family"] == family], test) for family in NONE]
        fill = "white" if test.endswith("_none") else style.color
        mark = {"fmt": style.marker, "color": style.color, "mfc": fill, "ms": 3, "lw": 0.8}
        draw_intervals(ax, np.arange(len(NONE)) + move, proportions, label=TESTS[test], **mark)
    ax.axhline(LEVEL, color="black", lw=0.6, ls="--")
    ax.set(ylim=(-0.03, 1.03), ylabel=f"proportion of tables with p at most {LEVEL:g}", title="(a) no groups")
    ax.set_xticks(range(len(NONE)), [family.replace(" ", "\n") for family in NONE])


def draw_power(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the rejection rates over the strength of the groups, one line per test."""
    for test, style in STYLES.items():
        if test == "dip of the score":  # not a valid test: it rejects without groups
            continue
        rates = [(float(str(s)), rejected(part, test).value) for s, part in rows.groupby("strength")]
        ax.plot(*zip(*rates, strict=True), ms=3, label=TESTS[test], **style._asdict())
    ax.axhline(LEVEL, color="black", lw=0.6, ls="--")
    ax.set(xlabel="strength of the groups", ylabel=f"proportion with p at most {LEVEL:g}", ylim=(-0.03, 1.03))
