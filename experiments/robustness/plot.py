"""Draw the error over the dimension from the table."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import open_marks, panels, with_band
from experiments.robustness.cells import LAMBDAS, WITHOUT_LAMBDA
from experiments.runtime import plot as runtime

STYLES = {
    "k-means": Style("#009E73", "-.", "v"),
    "alternating": Style("#E69F00", "--", "s"),
    **{method: runtime.STYLES[method] for method in ("FISTA, 1e-2", "FISTA, 1e-3", "low_rank")},
    "low_rank, then alternating": Style("#2166ac", "-", "x"),
}
NAMES = {**runtime.NAMES, "k-means": "k-means, whitened", "alternating": "alternating optimisation"}
MARK: dict[str, Any] = {"ms": 3.2, "mew": 0.8}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the mean error over the dimension, one panel per lambda, with bands of two standard errors."""
    caption = (
        "Mean error over replications; bands: two standard errors on either side. Two relevant dimensions among "
        "d, n = 100. FISTA, the algorithm of the paper as published, is run up to d = 32. The baselines have no "
        "lambda: the same curves in all panels."
    )
    with panels(stem, 1, len(LAMBDAS), 2.9, caption=caption, rc={"lines.linewidth": 1.0}, sharey=True) as (
        figure,
        axes,
    ):
        for lam, ax, letter in zip(LAMBDAS, axes, "abc", strict=True):
            for method, style in STYLES.items():
                filed = 0.0 if method in WITHOUT_LAMBDA else lam
                mine = table[(table["method"] == method) & (table["lam"] == filed)]
                with_band(ax, mine, "d", "error", label=NAMES.get(method, method), **style._asdict(), **MARK)
                runs = mine.groupby("d")
                stopped = runs["error"].mean()[runs["met"].min() == 0]
                open_marks(ax, stopped.index, stopped, style, zorder=3, **MARK)
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set(xlabel="dimension $d$", title=rf"({letter}) $\lambda = {lam:g}$")
        axes[0].set(ylabel="clustering error", ylim=(-0.03, 1.03))
        handles, _ = axes[0].get_legend_handles_labels()
        open_mark: dict[str, Any] = {"color": "black", "marker": "D", "mfc": "white", "ls": "none"}
        handles.append(Line2D([], [], **open_mark, **MARK, label="some runs stopped before their rule was met"))
        figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
