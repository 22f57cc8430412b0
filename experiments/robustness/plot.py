"""Draw the error over the dimension from the table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from experiments.harness import ACCENT, GREEN, GREY, PAGE, SECOND, STYLE, save, with_band
from experiments.robustness.cells import LAMBDAS, WITHOUT_LAMBDA

CURVES = {
    "k-means": (GREEN, "v", "-."),
    "alternating": ("#b8860b", "s", "--"),
    "FISTA, 1e-2": ("#999999", "o", ":"),
    "FISTA, 1e-3": (GREY, "D", "--"),
    "low_rank": (ACCENT, "^", "-"),
    "low_rank, then alternating": (SECOND, "x", "-"),
}
NAMES = {
    "k-means": "k-means, whitened",
    "alternating": "alternating optimisation",
    "FISTA, 1e-2": r"FISTA, $\varepsilon = 10^{-2}/\log d$",
    "FISTA, 1e-3": r"FISTA, $\varepsilon = 10^{-3}/\log d$",
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the mean error over the dimension, a panel for each lambda, with bands of two standard errors."""
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0}):
        figure, axes = plt.subplots(1, len(LAMBDAS), figsize=(PAGE, 2.7), sharey=True)
        for lam, ax in zip(LAMBDAS, axes, strict=True):
            for method, (color, marker, line) in CURVES.items():
                mine = table[(table["method"] == method) & table["lam"].isin([lam, *without(method)])]
                name = NAMES.get(method, method)
                with_band(ax, mine, "d", "error", label=name, color=color, marker=marker, ls=line)
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_xlabel("dimension $d$")
            ax.set_title(rf"$\lambda = {lam:g}$", loc="left")
        axes[0].set_ylabel("clustering error")
        axes[0].set_ylim(-0.03, 1.03)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        save(figure, stem)


def without(method: str) -> list[float]:
    """Return the lambda under which a method that has none is filed."""
    return [0.0] if method in WITHOUT_LAMBDA else []
