"""Draw how often the tests find a structure, without groups and with them; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import ACCENT, GREEN, GREY, PAGE, SECOND, STYLE, save
from experiments.structure.cells import GROUPS, NONE
from experiments.structure.claims import LEVEL, TESTS, rejected

STYLES = {
    "columns_ridge": Style(ACCENT, "-", "o"),
    "covariance_ridge": Style(SECOND, "-", "s"),
    "columns_none": Style(ACCENT, "--", "o"),
    "covariance_none": Style(SECOND, "--", "s"),
    "sigclust": Style(GREEN, "-.", "^"),
    "gap": Style("#E69F00", ":", "v"),
    "dip of the first component": Style(GREY, "-", "D"),
    "dip of the score": Style("black", ":", "x"),
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the share of tables in which each test finds a structure: a panel without groups, three with them."""
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0}):
        figure, axes = plt.subplots(2, 2, figsize=(PAGE, 5.0))
        draw_none(axes.flat[0], table)
        for ax, family, letter in zip(axes.flat[1:], GROUPS, "bcd", strict=True):
            draw_power(ax, table[table["family"] == family])
            ax.set_title(f"({letter}) groups: {family}")
        lines, labels = axes.flat[1].get_legend_handles_labels()
        score = axes.flat[0].get_legend_handles_labels()
        last = score[1].index(TESTS["dip of the score"])
        lines, labels = [*lines, score[0][last]], [*labels, score[1][last]]
        figure.legend(lines, labels, loc="outside lower center", ncols=4, frameon=False)
        save(figure, stem)


def draw_none(ax: Axes, table: pd.DataFrame) -> None:
    """Draw the shares without groups, by family, a mark for each test."""
    shift = np.linspace(-0.33, 0.33, len(STYLES))
    for (test, style), move in zip(STYLES.items(), shift, strict=True):
        shares = [rejected(table[table["family"] == family], test) for family in NONE]
        x = np.arange(len(NONE)) + move
        values = np.array([share.value for share in shares])
        ends = np.array([[share.value - share.low, share.high - share.value] for share in shares]).T
        ax.errorbar(
            x, values, ends, fmt=style.marker, color=style.color, ms=3, lw=0.8, label=TESTS[test],
            mfc="white" if test.endswith("_none") else style.color,
        )  # fmt: skip
    ax.axhline(LEVEL, color="black", lw=0.6, ls="--")
    ax.set(ylim=(-0.03, 1.03), ylabel=f"share of tables with p at most {LEVEL:g}", title="(a) no groups")
    ax.set_xticks(range(len(NONE)), [family.replace(" ", "\n") for family in NONE])


def draw_power(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the shares over the strength of the groups, a line for each test."""
    for test, style in STYLES.items():
        if test == "dip of the score":  # no test: it rejects without groups
            continue
        shares = [(float(str(s)), rejected(part, test).value) for s, part in rows.groupby("strength")]
        ax.plot(*zip(*shares, strict=True), ms=3, label=TESTS[test], **style._asdict())
    ax.axhline(LEVEL, color="black", lw=0.6, ls="--")
    ax.set(xlabel="strength of the groups", ylabel=f"share with p at most {LEVEL:g}", ylim=(-0.03, 1.03))
