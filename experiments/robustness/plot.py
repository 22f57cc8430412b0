"""Draw the error over the dimension from the table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import GREEN, PAGE, SECOND, STYLE, save, with_band
from experiments.robustness.cells import LAMBDAS, WITHOUT_LAMBDA
from experiments.runtime import plot as runtime

STYLES = {
    "k-means": Style(GREEN, "-.", "v"),
    "alternating": Style("#b8860b", "--", "s"),
    **{method: runtime.STYLES[method] for method in ("FISTA, 1e-2", "FISTA, 1e-3", "low_rank")},
    "low_rank, then alternating": Style(SECOND, "-", "x"),
}
NAMES = {**runtime.NAMES, "k-means": "k-means, whitened", "alternating": "alternating optimisation"}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the mean error over the dimension, a panel for each lambda, with bands of two standard errors."""
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0}):
        figure, axes = plt.subplots(1, len(LAMBDAS), figsize=(PAGE, 2.7), sharey=True)
        for lam, ax in zip(LAMBDAS, axes, strict=True):
            for method, style in STYLES.items():
                filed = 0.0 if method in WITHOUT_LAMBDA else lam
                mine = table[(table["method"] == method) & (table["lam"] == filed)]
                with_band(ax, mine, "d", "error", label=NAMES.get(method, method), **style._asdict())
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set(xlabel="dimension $d$", title=rf"$\lambda = {lam:g}$")
        axes[0].set(ylabel="clustering error", ylim=(-0.03, 1.03))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        save(figure, stem)
