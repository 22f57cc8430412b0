"""Figures 5 and 6: many labels at once, on Corel5k in place of COCO, on three other sets, or on a user's own.

Run ``make multi-label``; ``make multi-label X=features.npy Y=labels.npy`` does the same with your files (.npy or .csv).
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import diffrac_cvx as dc
from experiments.harness.command import Experiment, run
from experiments.harness.style import ACCENT, GREEN, GREY, PAGE, SECOND, STYLE, save, with_band
from experiments.multi_label.cells import SETTINGS, cells_of, measure
from experiments.multi_label.claims import claims, correlations_in
from experiments.multi_label.data import OWN, data_of

LOOKS = {
    "relaxation": (ACCENT, "^", "-"),
    "k-means of F": (GREEN, "s", "-."),
    "k-means": (SECOND, "o", "--"),
    "random": (GREY, "x", ":"),
}
NAMED = 12  # labels named on the heatmap


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the traces against k, with and without the constant vector, and the correlations for the first set."""
    sets = list(dict.fromkeys(table["set"]))
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0, "lines.markersize": 3.0}):
        figure, axes = plt.subplots(
            2, len(sets), figsize=(PAGE * min(1.0, 0.3 + 0.2 * len(sets)), 4.2), squeeze=False, sharex="col"
        )
        for column, name in enumerate(sets):
            for ax, quantity in zip(axes[:, column], ("overlap", "overlap_centred"), strict=True):
                for method, (color, marker, line) in LOOKS.items():
                    mine = table[(table["set"] == name) & (table["method"] == method)]
                    with_band(ax, mine, "k", quantity, color=color, marker=marker, ls=line, label=method)
                ax.set_ylim(bottom=0)
            axes[0, column].set_title(title_of(name), loc="left")
            axes[1, column].set_xlabel("number of found labels $k$")
        axes[0, 0].set_ylabel(r"$\mathrm{tr}\,\Phi_{Y_{true}} \Phi_{Y_k}$")
        axes[1, 0].set_ylabel("the same, labels centred")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
        save(figure, stem)
    heatmap(table, title_of(sets[0]), stem.with_name(f"{stem.name}_correlations"))


def heatmap(table: pd.DataFrame, title: str, stem: Path) -> None:
    """Draw the correlations of found and true labels, both ordered by their sums of squares, the best ones named."""
    names, correlations = correlations_in(table)
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(PAGE, 3.0))
        image = ax.imshow(correlations, cmap="Greys", vmin=0.0, aspect="auto", origin="lower")
        shown = min(NAMED, len(names))
        ax.set_xticks(range(shown), names[:shown], rotation=90, fontsize=5)
        ax.set_xlabel(f"true labels, {title}, by their sums of squares; the first {shown} are named")
        ax.set_ylabel("found labels, in the same order")
        figure.colorbar(image, label="absolute correlation")
        save(figure, stem)


def title_of(name: str) -> str:
    """Return what a set is called on a figure."""
    return "own data" if OWN in name else {"corel5k": "Corel5k (for COCO)"}.get(name, name)


EXPERIMENT = Experiment("multi_label", cells_of, measure, draw, claims, SETTINGS)


def main(arguments: list[str] | None = None) -> int:
    """Run on the known sets, or on the files of --x and --y."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--x", default="")
    parser.add_argument("--y", default="")
    own, rest = parser.parse_known_args(arguments)
    if not own.x and not own.y:
        return run(EXPERIMENT, __doc__, rest)
    try:
        name = f"{own.x}{OWN}{own.y}"
        data_of(name)
    except dc.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    mine = replace(EXPERIMENT, name="multi_label_own", cells=partial(cells_of, sets=(name,)))
    return run(mine, __doc__, [*rest, "--out", "build"])


if __name__ == "__main__":
    sys.exit(main())
