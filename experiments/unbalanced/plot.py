"""Draw the paths of alpha and nu, and their duality, from the table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness import ACCENT, GREY, PAGE, SECOND, STYLE, label_lines, save, with_band
from experiments.unbalanced.cells import ALPHA_STAR

LOOKS = {
    "sign_leading": ("first eigenvector", SECOND, "-", "o"),
    "sign_second": ("second eigenvector", GREY, "--", "s"),
    "sign_centered": ("projection", ACCENT, "-", "^"),
}

STEEPEST = 0.05  # the largest nu whose supporting line is drawn


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the three panels of Figure 2, the same at each noise, and the duality of the two paths."""
    draw_paths(table[table["noise"] == 0.0], stem, ranks=table)
    noisy = sorted(set(table["noise"]) - {0.0})
    draw_paths(table[table["noise"] == noisy[0]], stem.with_name(f"{stem.name}_noisy"), ranks=None)
    draw_duality(table, stem.with_name(f"{stem.name}_duality"))


def draw_paths(table: pd.DataFrame, stem: Path, *, ranks: pd.DataFrame | None) -> None:
    """Draw the error over alpha and over nu, and between them the rank over alpha if it is given."""
    with plt.rc_context(STYLE):
        count = 2 if ranks is None else 3
        figure, axes = plt.subplots(1, count, figsize=(PAGE * (1 if count == 3 else 0.7), 2.3))
        left, right = axes[0], axes[-1]
        errors(left, table[table["path"] == "alpha"])
        left.axvline(ALPHA_STAR, color=GREY, lw=0.6, ls=":")
        left.set_xlabel(r"$\alpha$ (constrained)")
        left.set_ylabel("clustering error")
        errors(right, table[table["path"] == "nu"])
        right.set_xscale("log")
        right.set_xlabel(r"$\nu$ (penalised)")
        right.set_ylabel("clustering error")
        left.annotate(r"$\alpha_*$", (ALPHA_STAR, 1.04), ha="center", annotation_clip=False)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
        if ranks is not None:
            rank_panel(axes[1], ranks[ranks["path"] == "alpha"])
        save(figure, stem)


def errors(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the mean error of the three roundings, with a band of two standard errors."""
    for name, (label, color, line, marker) in LOOKS.items():
        with_band(axes, table, "parameter", f"error_{name}", label=label, color=color, ls=line, marker=marker)
    axes.set_ylim(-0.03, 1.03)


def rank_panel(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the mean rank over alpha, a line for each noise."""
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.8, table["noise"].nunique()))
    for (noise, group), shade, marker in zip(table.groupby("noise"), shades, "osv^", strict=False):
        with_band(axes, group, "parameter", "rank", label=rf"$\sigma = {noise:g}$", color=shade, marker=marker)
    axes.axvline(ALPHA_STAR, color=GREY, lw=0.6, ls=":")
    axes.set_xlabel(r"$\alpha$ (constrained)")
    axes.set_ylabel("rank of $Y$")
    axes.set_ylim(0, 9.5)
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.62, 0.5))


def draw_duality(table: pd.DataFrame, stem: Path) -> None:
    """Draw the constrained value with the lines that support it, and the penalised value with their intercepts."""
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE, 2.5))
        for (noise, color), marker in zip(((0.0, SECOND), (0.3, ACCENT)), "o^", strict=True):
            first = table[(table["noise"] == noise) & (table["replication"] == 0)]
            alpha, nu = (first[first["path"] == path].sort_values("parameter") for path in ("alpha", "nu"))
            left.plot(alpha["parameter"], alpha["value"], color=color, marker=marker, ms=2.5)
            right.plot(nu["parameter"], nu["value"], color=color)
            dual = first[first["path"] == "dual"]
            other = dual["constrained_value"] + dual["parameter"] * dual["alpha"]
            right.plot(dual["parameter"], other, ls="none", marker=marker, ms=4, color=color, mfc="none")
            for _, row in dual[dual["parameter"] <= STEEPEST].iterrows():
                span = np.clip(row["alpha"] + np.array([-0.15, 0.15]), 0.0, row["value"] / row["parameter"])
                left.plot(span, row["value"] - row["parameter"] * span, color=GREY, lw=0.6)
                left.plot(row["alpha"], row["constrained_value"], color=color, marker="x", ms=4)
        left.set_xlabel(r"$\alpha$")
        left.set_ylabel("constrained value $p(\\alpha)$")
        label_lines(
            left, [r"$\sigma = 0$", r"$\sigma = 0.3$", r"grey: slope $-\nu$"], [SECOND, ACCENT, GREY], at=(0.55, 0.75)
        )
        right.set_xscale("log")
        right.set_xlabel(r"$\nu$")
        right.set_ylabel("penalised value")
        label_lines(right, [r"line: penalised", r"marks: $p(\alpha) + \nu\alpha$ at its $\alpha$"], [GREY, GREY])
        save(figure, stem)
