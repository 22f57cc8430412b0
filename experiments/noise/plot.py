"""Draw error, certified gap and spectrum against the noise level."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.intervals import mean_of
from experiments.harness.style import ACCENT, GRAY, GREEN, PAGE, SECONDARY, STYLE, save, with_intervals
from experiments.noise.cells import TINY

MARKS = "osv^"
RIVALS = {
    "refined": ("relaxation, then alternation", Style(ACCENT, "-", "o")),
    "cure": ("CURE", Style(SECONDARY, "--", "^")),
    "spectral": ("spectral", Style(GREEN, "-.", "v")),
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the error at both dimensions, the certified gap and the spectrum, and the other methods at two ratios."""
    table = table[(table["noise"] == 0.0) | (table["noise"] > TINY)]
    small, large = (table[table["d"] == d] for d in (table["d"].min(), table["d"].max()))
    ratios = sorted(set(table["ratio"]))
    shown = ratios[1], ratios[-1]  # in the panels of the other methods
    with plt.rc_context({**STYLE, "lines.linewidth": 0.9}):
        figure = plt.figure(figsize=(PAGE, 4.7))
        rows = figure.add_gridspec(2, 1)
        above, below = figure.add_subfigure(rows[0]), figure.add_subfigure(rows[1])
        top, bottom = above.subplots(1, 3), below.subplots(1, 3)
        draw_ratios(top[0], large, "error_relaxation", "clustering error")
        draw_oracle(top[0], large)
        draw_ratios(top[1], large, "label_gap", "certified gap of the labels")
        draw_ratios(top[2], large, "eigenvalue_ratio", r"$\lambda_2 / \lambda_1$ of $Y$")
        lines, labels = top[0].get_legend_handles_labels()
        above.legend(lines, labels, loc="outside upper center", ncols=5, frameon=False)
        draw_ratios(bottom[0], small, "error_relaxation", "clustering error")
        draw_oracle(bottom[0], small)
        for ax, ratio in zip(bottom[1:], shown, strict=True):
            part = large[large["ratio"] == ratio]
            for method, (name, style) in RIVALS.items():
                with_intervals(ax, part, "noise", f"error_{method}", mean_of, label=name, **style._asdict())
            draw_oracle(ax, part)
            ax.set(xlabel=r"noise $\sigma$", ylabel="clustering error")
        lines, labels = bottom[1].get_legend_handles_labels()
        below.legend(lines[:-1], labels[:-1], loc="outside upper right", ncols=3, frameon=False)
        points = [large[large["ratio"] == ratio]["n"].iloc[0] for ratio in shown]
        said = [f"$d = {large['d'].iloc[0]}$"] * 3 + [f"$d = {small['d'].iloc[0]}$"]
        title_panels([*top, *bottom], said + [f"{said[0]}, $n = {n}$" for n in points])
        save(figure, stem)


def title_panels(axes: list[Axes], said: list[str]) -> None:
    """Add letters and settings to the titles of the panels."""
    for letter, ax, words in zip("abcdef", axes, said, strict=True):
        ax.set_title(f"({letter}) {words}")
        ax.set_xlim(left=0.0)


def draw_ratios(ax: Axes, table: pd.DataFrame, column: str, label: str) -> None:
    """Draw the mean of a column against the noise level, one line per number of points."""
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.8, table["ratio"].nunique()))
    for (ratio, rows), shade, mark in zip(table.groupby("ratio"), shades, MARKS, strict=False):
        name = f"$n = {ratio:g}\\,(d + d(d-1)/4)$" if ratio != 1 else "$n = d + d(d-1)/4$"
        with_intervals(ax, rows, "noise", column, mean_of, color=shade, marker=mark, label=name)
    ax.set(xlabel=r"noise $\sigma$", ylabel=label)


def draw_oracle(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the mean error of the labels given by the true direction."""
    mean = rows.groupby("noise")["error_direction"].mean()
    ax.plot(mean.index, mean, color=GRAY, ls=":", lw=1.4, label="true direction")
    ax.set_ylim(-0.03, 1.03)
