"""Draw Figures 5 and 6 from their table."""

from pathlib import Path

import pandas as pd

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels, with_band
from experiments.multi_label.findings import correlation_matrix

STYLES = {
    "relaxation": Style(ACCENT, "-", "^"),
    "k-means of F": Style(GREEN, "-.", "s"),
    "k-means": Style(SECONDARY, "--", "o"),
    "random": Style(GRAY, ":", "x"),
}
TITLES = {"corel5k": "Corel5k (for COCO)"}
NAMED = 12  # labels named on the heatmap


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the traces against k, with and without the constant vector, and the correlations for the first set."""
    sets = list(dict.fromkeys(table["data_set"]))
    lines = {"lines.linewidth": 1.0, "lines.markersize": 3.0}
    caption = (
        r"Agreement of k found labels with the true ones: $\mathrm{tr}\,\Phi_{Y_{true}}\Phi_{Y_k}$, with $\Phi_Y$ the "
        "projector onto the span of the labels Y (0: orthogonal; at most the number of labels). Bottom: without the "
        "constant vector. Bands: two standard errors over runs."
    )
    with panels(stem, 2, len(sets), 4.2, caption=caption, rc=lines, squeeze=False, sharex="col") as (figure, axes):
        for column, name in enumerate(sets):
            for ax, quantity in zip(axes[:, column], ("overlap", "overlap_centred"), strict=True):
                for method, style in STYLES.items():
                    mine = table[(table["data_set"] == name) & (table["method"] == method)]
                    with_band(ax, mine, "k", quantity, label=method, **style._asdict())
                ax.set_ylim(bottom=0)
            axes[0, column].set_title(TITLES.get(name, name))
            axes[1, column].set_xlabel("number of found labels $k$")
        axes[0, 0].set_ylabel("agreement with the true labels")
        axes[1, 0].set_ylabel("agreement, labels centred")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    draw_correlations(table, TITLES.get(sets[0], sets[0]), stem.with_name(f"{stem.name}_correlations"))


def draw_correlations(table: pd.DataFrame, title: str, stem: Path) -> None:
    """Draw the correlations of found and true labels, both sorted by their sums of squares, with names of the best.

    The colour scale ends at the largest correlation, which its label gives.
    """
    names, correlations = correlation_matrix(table)
    with panels(stem, 1, 1, 3.0) as (figure, ax):
        image = ax.imshow(correlations, cmap="Greys", vmin=0.0, vmax=correlations.max(), aspect="auto", origin="lower")
        ticks = names[:NAMED]
        ax.set_xticks(range(len(ticks)), ticks, rotation=90, fontsize=5.5)
        ax.set_xlabel(f"true labels, {title}, sorted by sum of squares; the first {len(ticks)} are named")
        ax.set_ylabel("found labels, in the same order")
        figure.colorbar(image, label=f"absolute correlation, at most {correlations.max():.2f}")
