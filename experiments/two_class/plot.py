"""Draw Table 1 from its measurements; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.harness.style import ACCENT, GREEN, GREY, PAGE, SECOND, STYLE, save
from experiments.two_class.table import latex, markdown, summary, two_clusters


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Write the table in Markdown and LaTeX, and draw it."""
    rows = summary(table)
    stem.with_suffix(".md").write_text(markdown(rows))
    stem.with_suffix(".tex").write_text(latex(rows))
    solved = two_clusters(table)
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(PAGE, 3.0))
        place = np.arange(len(rows))
        for k, name in enumerate(rows["data_set"]):
            mine = solved[solved["data_set"] == name]
            ax.plot(np.full(len(mine), k + 0.28), mine["error"], "_", color=GREY, ms=5, mew=0.5, alpha=0.6)
        ax.plot([], [], "_", color=GREY, ms=5, label="every setting of a, c, nu")
        for column, shift, color, marker, label in (
            ("sparse", 0.0, ACCENT, "^", "sparse"),
            ("paper sparse", -0.14, ACCENT, "$*$", "sparse, in the paper"),
            ("non-sparse", 0.14, SECOND, "o", "non-sparse"),
            ("constant", -0.28, "black", "x", "one cluster"),
            ("supervised", -0.28, GREEN, "s", "least squares with the labels"),
        ):
            ax.plot(place + shift, rows[column], marker=marker, ls="none", color=color, ms=5, mfc="none", label=label)
        for name, shift, color in (("k-means", 0.36, "#b8860b"), ("alternating", 0.44, "#7b3294")):
            mean, deviation = zip(*rows[name], strict=True)
            ax.errorbar(
                place + shift, mean, deviation, color=color, ls="none", marker=".", ms=4, elinewidth=0.7, label=name
            )
        ax.set_xticks(place, [name.replace("_", "\n") for name in rows["data_set"]])
        ax.tick_params(axis="x", length=0)
        ax.set(ylabel="clustering error", ylim=(0, 1.05))
        figure.legend(loc="outside upper center", ncols=4, frameon=False)
        save(figure, stem)
