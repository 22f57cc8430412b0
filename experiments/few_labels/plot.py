"""Draw the accuracy of all methods over the number of labels, and the gain on each set."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from experiments.few_labels.findings import JUDGED, WORST, gains
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels

LINES = {  # colour, dashes, marker
    "relaxation": (ACCENT, "-", "o"),
    "ridge": (SECONDARY, "-", "s"),
    "logistic": (SECONDARY, "--", "^"),
    "self-training": (SECONDARY, ":", "v"),
    "label spreading": (GREEN, "-", "D"),
    "label propagation": (GREEN, "--", "P"),
    "seeded k-means": (GRAY, "-", "X"),
}
LEAST_HEIGHT, PER_SET = 2.4, 0.135  # inches


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw both panels."""
    height = max(LEAST_HEIGHT, 0.8 + PER_SET * table["name"].nunique())
    caption = (
        "(a) Means over held-out sets that have every number of labels. (b) Mean gain of the relaxation over ridge "
        f"regression at {JUDGED} labels, with 95 % intervals over replications; dotted: a loss of {-WORST:g}."
    )
    with panels(stem, 1, 2, height, caption=caption, width_ratios=(1.0, 1.15)) as (_, axes):
        draw_means(axes[0], table)
        draw_gains(axes[1], table)


def draw_means(axes: Axes, table: pd.DataFrame) -> None:
    """Mean accuracy over the sets with every number of labels (held-out ones if there are any)."""
    kind = "held-out" if (table["kind"] == "held-out").any() else "design"
    rows = table[table["kind"] == kind]
    complete = rows.groupby("name")["known"].nunique()
    rows = rows[rows["name"].isin(complete.index[complete == rows["known"].nunique()])]
    means = rows.groupby(["known", "name"])[list(LINES)].mean().groupby("known").mean()
    for method, (color, dashes, marker) in LINES.items():
        width = 2.0 if method == "relaxation" else 1.0
        axes.plot(means.index, means[method], color=color, ls=dashes, marker=marker, ms=3.5, lw=width, label=method)
    axes.set(xscale="log", xlabel="known labels", ylabel="accuracy on the unlabelled points")
    axes.set_xticks(means.index, [str(known) for known in means.index])
    axes.minorticks_off()
    axes.set_title(f"(a) mean over {rows['name'].nunique()} {kind} sets")
    axes.legend(frameon=False, loc="upper left")


def draw_gains(axes: Axes, table: pd.DataFrame) -> None:
    """Gain over ridge regression on each set, with its interval over replications."""
    found = pd.concat([gains(table, JUDGED, kind).assign(kind=kind) for kind in ("held-out", "design")])
    found = found.sort_values("value")
    for kind, color, fill in (("held-out", ACCENT, ACCENT), ("design", GRAY, "white")):
        places = np.flatnonzero(found["kind"] == kind)
        part = found.iloc[places]
        axes.hlines(places, part["low"], part["high"], color=color, lw=0.9)
        axes.plot(part["value"], places, "o", color=color, mfc=fill, ms=3.5, mew=0.8, label=f"{kind} sets")
    axes.axvline(0.0, color="black", lw=0.7)
    axes.axvline(WORST, color=GRAY, lw=0.7, ls=":")
    axes.set_yticks(range(len(found)), [name.replace("_", " ") for name in found.index], fontsize=6)
    axes.xaxis.set_major_locator(MultipleLocator(0.05))
    axes.set(xlabel="gain in accuracy over ridge regression", ylim=(-0.7, len(found) - 0.3))
    axes.set_title(f"(b) {JUDGED} known labels")
    axes.legend(frameon=False, loc="upper left")
