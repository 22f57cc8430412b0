"""The picture of one answer, for the README: is there a structure, the split, its columns, and what is proved.

Run ``make reproduction``, or this module alone.
"""

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import diffrac_cvx as dc
from diffrac_cvx.problem.proved_numbers import format_upper
from experiments.harness.style import ACCENT, PAGE, SECOND, STYLE, save

MOST = 10  # columns that are shown


def draw(stem: Path) -> None:
    """Split the table of tumours and draw the four parts of the answer."""
    cells = load_breast_cancer()
    X, names = cells.data, list(cells.feature_names)
    model = dc.DiffracClustering(test_structure=True).fit(X)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(PAGE, 4.4))
        panels = axes.flat
        dc.plotting.StructureDisplay.from_tests(*model.structure_).plot(panels[0])
        true = cells.target_names[cells.target]
        points = dc.plotting.ProjectionDisplay.from_estimator(model, X, true).plot(panels[1])
        points.legend_.set_loc("upper right")
        dc.plotting.DirectionDisplay.from_estimator(model, feature_names=names).plot(panels[2], most=MOST)
        panels[1].set_ylim(top=1.45 * panels[1].get_ylim()[1])
        draw_proof(panels[3], model.lower_bound_, model.lower_bound_ + model.label_gap_)
        words = ("is there a structure?", "the split, and the known groups", "the columns that count", "what is proved")
        for letter, ax, title in zip("abcd", panels, words, strict=True):
            ax.set_title(f"({letter}) {title}")
        save(figure, stem)


def draw_proof(ax: plt.Axes, lower: float, cost: float) -> None:
    """Draw the cost of the split, and where no split can be."""
    ax.barh([0], [lower], height=0.5, color=SECOND, alpha=0.25)
    ax.text(0.0, 0.42, " proved: no split\n costs less", color=SECOND, va="bottom", fontsize=7)
    ax.axvline(cost, color=ACCENT)
    ax.text(cost, -0.35, f" this split: {format_upper(cost)}", color=ACCENT, va="top")
    ax.set(xlim=(0, 1), ylim=(-0.8, 1.0), yticks=[], xlabel="cost of a split, from 0 (best) to 1 (worst)")


if __name__ == "__main__":
    draw(Path("figures/answer"))
    print("wrote figures/answer.png")
