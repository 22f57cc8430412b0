"""Figures 5 and 6: many labels at once, on Corel5k in place of COCO, on three other sets, or on a user's own.

Run ``make multi-label``; ``make multi-label X=features.npy Y=labels.npy`` does the same with your files (.npy or .csv).
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import diffrac_cvx as dc
from experiments.command import Experiment, run
from experiments.looks import ACCENT, GREY, PAGE, SECOND, STYLE, save, with_band
from experiments.multi_label_cells import SETTINGS, SHOWN, cells_of, labels_of, measure
from experiments.multi_label_claims import claims
from experiments.multi_label_data import OWN, data_of

LOOKS = {"relaxation": (ACCENT, "^", "-"), "k-means": (SECOND, "o", "--"), "random": (GREY, "x", ":")}
NAMED = 12  # labels named on the heatmap


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the traces against k, and the correlations at the paper's k for the first set."""
    sets = list(dict.fromkeys(table["set"]))
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0}):
        figure, axes = plt.subplots(1, len(sets), figsize=(PAGE * min(1.0, 0.3 + 0.2 * len(sets)), 2.4), squeeze=False)
        for name, ax in zip(sets, axes[0], strict=True):
            for method, (color, marker, line) in LOOKS.items():
                mine = table[(table["set"] == name) & (table["method"] == method)]
                with_band(ax, mine, "k", "overlap", color=color, marker=marker, ls=line, label=method)
            ax.set_xlabel("$k$")
            ax.set_title(title_of(name), loc="left")
        axes[0, 0].set_ylabel(r"$\mathrm{tr}\,\Phi_{Y_{true}} \Phi_{Y_k}$")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        save(figure, stem)
    heatmap(sets[0], min(SHOWN, int(table["k"].max())), stem.with_name(f"{stem.name}_correlations"))


def heatmap(name: str, k: int, stem: Path) -> None:
    """Draw the correlations of found and true labels, both ordered by their sums of squares, the best ones named."""
    data = data_of(name)
    found = labels_of(name, "relaxation", k, 0)
    correlations = dc.metrics.label_correlations(data.Y, found)
    rows, columns = (np.argsort(-np.sum(correlations**2, axis=axis), kind="stable") for axis in (1, 0))
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(PAGE, 3.0))
        image = ax.imshow(correlations[np.ix_(rows, columns)], cmap="Greys", vmin=0.0, aspect="auto", origin="lower")
        named = [data.names[j] for j in columns[:NAMED]]
        ax.set_xticks(range(len(named)), named, rotation=60, ha="right", rotation_mode="anchor")
        ax.set_xlabel(f"true labels, {title_of(name)}: {', '.join(named[:3])}, ...", labelpad=2)
        ax.set_ylabel("found labels")
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
