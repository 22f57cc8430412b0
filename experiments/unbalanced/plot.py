"""Draw the paths of alpha and nu, and their duality, from the table."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx import paths
from experiments.harness.style import ACCENT, GRAY, PAGE, SECONDARY, STYLE, label_lines, save, with_band
from experiments.unbalanced.cells import ALPHA_STAR
from experiments.unbalanced.duality import Duality

CURVES = {
    "sign_leading": {"label": "first eigenvector", "color": SECONDARY, "marker": "o"},
    "sign_second": {"label": "second eigenvector", "color": GRAY, "ls": "--", "marker": "s"},
    "sign_centered": {"label": "projection", "color": ACCENT, "marker": "^"},
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the three panels of Figure 2, the same for each noise level, and the duality of the two paths."""
    draw_paths(table[table["noise"] == 0.0], stem, ranks=table)
    noisy = sorted(set(table["noise"]) - {0.0})
    draw_paths(table[table["noise"] == noisy[0]], stem.with_name(f"{stem.name}_noisy"), ranks=None)
    draw_duality(table, stem.with_name(f"{stem.name}_duality"))


def draw_paths(table: pd.DataFrame, stem: Path, *, ranks: pd.DataFrame | None) -> None:
    """Draw the error over alpha and over nu, and the rank over alpha if requested: panels (a), (b), (c)."""
    with plt.rc_context(STYLE):
        count = 2 if ranks is None else 3
        figure, axes = plt.subplots(1, count, figsize=(PAGE * (1 if count == 3 else 0.7), 2.3))
        left, right = axes[:2]
        draw_errors(left, table[table["path"] == "alpha"])
        left.axvline(ALPHA_STAR, color=GRAY, lw=0.6, ls=":")
        left.set_xlabel(r"$\alpha$ (constrained)")
        draw_errors(right, table[table["path"] == "nu"])
        right.set(xscale="log", xlabel=r"$\nu$ (penalised)")
        left.annotate(r"$\alpha_*$", (ALPHA_STAR + 0.02, 0.5))
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
        if ranks is not None:
            draw_ranks(axes[2], ranks[ranks["path"] == "alpha"])
        for letter, ax in zip("abc", axes, strict=False):
            ax.set_title(f"({letter})")
        save(figure, stem)


def draw_errors(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the mean error of the three roundings, with a band of two standard errors."""
    for name, style in CURVES.items():
        with_band(axes, table, "parameter", f"error_{name}", **style)
    axes.set(ylim=(-0.03, 1.03), ylabel="clustering error")


def draw_ranks(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the mean rank over alpha, one line per noise level."""
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.8, table["noise"].nunique()))
    for (noise, group), shade, marker in zip(table.groupby("noise"), shades, "osv^", strict=False):
        with_band(axes, group, "parameter", "rank", label=rf"$\sigma = {noise:g}$", color=shade, marker=marker)
    axes.axvline(ALPHA_STAR, color=GRAY, lw=0.6, ls=":")
    axes.set(xlabel=r"$\alpha$ (constrained)", ylabel="rank of $Y$", ylim=(0, 9.5))
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.62, 0.43))


def draw_duality(table: pd.DataFrame, stem: Path) -> None:
    """Draw the constrained value between its certified bounds, and the penalised value with the equal sums."""
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE, 2.5))
        for noise, color, marker in ((0.0, SECONDARY, "o"), (0.3, ACCENT, "^")):
            first = table[(table["noise"] == noise) & (table["replication"] == 0)].sort_values("parameter")
            alpha, nu, dual = (first[first["path"] == path] for path in ("alpha", "nu", "dual"))
            pairs = Duality(
                penalized=path_of("nu", dual["parameter"], dual["value"], dual["gap"]),
                constrained=path_of("alpha", dual["alpha"], dual["constrained_value"], dual["constrained_gap"]),
            )
            draw_pair(left, right, pairs, color=color, marker=marker, ms=4)
            left.plot(alpha["parameter"], alpha["value"], "x", color=color, ms=4)
            right.plot(nu["parameter"], nu["value"], color=color, lw=1.2)
        left.set_xlabel(r"$\alpha$")
        right.set(xscale="log", xlabel=r"$\nu$")
        texts = [r"$\sigma = 0$", r"$\sigma = 0.3$", r"marks: solutions of $p(\nu)$", "band: certified by these"]
        texts.append(r"crosses: solved at this $\alpha$")
        label_lines(left, texts, [SECONDARY, ACCENT, GRAY, GRAY, GRAY], at=(0.45, 0.88))
        label_lines(right, [r"line: penalised", r"marks: $q(\alpha) + \nu\alpha$ at its $\alpha$"], [GRAY, GRAY])
        left.set_ylabel(r"constrained value $q(\alpha)$")
        right.set_ylabel(r"penalised value $p(\nu)$")
        save(figure, stem)


def draw_pair(left: Axes, right: Axes, pairs: Duality, *, color: str, **marks: Any) -> None:
    """Draw q at the imbalances of the penalised solutions in its certified band, and the sums that equal p."""
    dual = pairs.constrained
    alphas = np.union1d(np.linspace(dual.parameter.min(), 1.0, 401), dual.parameter)
    left.fill_between(alphas, *pairs.bounds(alphas), color=color, alpha=0.25, lw=0)
    left.plot(dual.parameter, dual.value, ls="none", color=color, **marks)
    right.plot(pairs.penalized.parameter, pairs.sums[1], ls="none", mfc="none", color=color, **marks)


def path_of(name: str, parameter: pd.Series, value: pd.Series, gap: pd.Series) -> paths.RegularizationPath:
    """Return a path with the values of a table; entries missing from the table are NaN."""
    unknown = np.full(len(value), np.nan)
    return paths.RegularizationPath(
        name=name,
        parameter=parameter.to_numpy(),
        value=value.to_numpy(),
        lower=(value - gap).to_numpy(),
        upper=value.to_numpy(),
        eigenvalue_ratio=unknown,
        imbalance=unknown,
        directions=np.empty((len(value), 0)),
        error=None,
        seconds=unknown,
    )
