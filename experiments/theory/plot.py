"""Draw the theory's experiments from their table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GREY, PAGE, SECOND, STYLE, save, with_band
from experiments.theory.fit import sparse_boundaries, sparse_slopes, split_parts
from experiments.theory.spectrum import closed_form

MARKERS = "osv^Dx"
SHADES = ("#440154", "#31688e", "#35b779", "#8fa01d", "#c26a0a", "#b2182b")  # one for each marker


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one panel for each part of the theory."""
    part = split_parts(table)
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0}):
        figure, axes = plt.subplots(2, 3, figsize=(PAGE, 4.6))
        draw_spectrum(axes[0, 0], part["spectrum"])
        draw_kurtosis(axes[0, 1], part["recovery"])
        draw_one_dimension(axes[0, 2], part["one dimension"])
        draw_thresholds(axes[1, 0], part["rank two"], part["many labels"])
        draw_family(axes[1, 1], part["family"])
        draw_sparse(axes[1, 2], part["sparse"])
        save(figure, stem)


def draw_spectrum(ax: Axes, table: pd.DataFrame) -> None:
    """The two smallest eigenvalues of E T_x over the kurtosis: exact expectation on closed form."""
    table = table[(table["m"] == 1.0) & (table["beta"] > 1.0)]
    d = int(table["d"].max())
    table = table[table["d"] == d]
    betas = np.geomspace(1.1, 40, 200)
    for k, (color, marker) in enumerate(((SECOND, "o"), (ACCENT, "^"))):
        ax.plot(betas, [closed_form(d, 1.0, beta)[k] for beta in betas], color=color, label=rf"$\mu_{k + 1}$")
        ax.plot(table["beta"], table[f"mu_{k + 1}"], color=color, marker=marker, ls="none", ms=4, mfc="none")
    ax.set(xscale="log", yscale="log", title=rf"(a) $d = {d}$, $m = 1$")
    ax.set(xlabel=r"kurtosis $\beta$", ylabel=r"eigenvalue of $\mathbb{E}\, T_x$")
    ax.legend(frameon=False, loc="lower right")


def draw_kurtosis(ax: Axes, table: pd.DataFrame) -> None:
    """The share of instances with one solution only, over n, for several kurtoses."""
    laws = [law for law in ("three-point 1", "three-point 1.02", "three-point 1.1", "three-point 3", "three-point 9",
                            "three-point 30") if law in set(table["law"])]  # fmt: skip
    for law, color, marker in zip(laws, SHADES, MARKERS, strict=False):
        mine = table[table["law"] == law]
        with_band(ax, mine, "n", "unique", color=color, marker=marker, label=f"{mine['beta'].iloc[0]:g}")
    ax.set_xscale("log")
    ax.set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
    ax.minorticks_off()
    ax.set(ylim=(-0.03, 1.03), title=rf"(a) $d = {table['d'].iloc[0]}$, kurtosis $\beta$")
    ax.set(xlabel="$n$", ylabel="share with a unique solution")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(-0.02, 0.62), handlelength=1.0)


def draw_one_dimension(ax: Axes, table: pd.DataFrame) -> None:
    """The share of recovered labels over the noise, on the probability that all signs agree."""
    noise = np.linspace(0.2, 1.0, 100)
    for (n, mine), color, marker in zip(table.groupby("n"), SHADES, MARKERS, strict=False):
        rate = mine.groupby("noise")["recovered"].mean()
        ax.plot(rate.index, rate, color=color, marker=marker, ls="none", ms=4, mfc="none")
        ax.plot(noise, scipy.stats.norm.cdf(1 / (noise * (1 - 1 / n) ** 0.5)) ** n, color=color, label=f"$n = {n}$")
    ax.set(xlabel=r"noise $\sigma$ on $y$", ylabel="share with $y$ recovered", title="(b) one dimension")
    ax.legend(frameon=False)


def draw_thresholds(ax: Axes, two: pd.DataFrame, many: pd.DataFrame) -> None:
    """The number of points that leaves only planted solutions, on the statistical dimension."""
    kinds = [(rf"$\alpha_* = {value:g}$", mine) for value, mine in two.groupby("imbalance")]
    kinds += [(f"{k} labels", mine) for k, mine in many[many["k"] > 1].groupby("k")]
    top = float(max(two["expected"].max(), many["expected"].max())) * 1.08
    ax.plot([0, top], [0, top], color=GREY, lw=0.7)
    for (label, mine), color, marker in zip(kinds, SHADES, MARKERS, strict=False):
        found = mine.groupby("expected")["n_measured"].agg(["mean", "std"])
        ax.errorbar(
            found.index, found["mean"], 2 * found["std"] / 20**0.5, color=color, marker=marker, ls="none", ms=3,
            elinewidth=0.7, label=label,
        )  # fmt: skip
    ax.set(xlabel="statistical dimension", ylabel="$n$ from which unique", title=r"(c, d) support of the solutions")
    ax.legend(frameon=False, handletextpad=0.1, labelspacing=0.2, loc="upper left", fontsize=6)


def draw_family(ax: Axes, table: pd.DataFrame) -> None:
    """The probability that the family of random labels is independent, over n."""
    for (k, mine), color, marker in zip(table.groupby("k"), SHADES, MARKERS, strict=False):
        with_band(ax, mine, "n", "diagonal", color=color, marker=marker, label=f"$k = {k}$")
        ax.axvline(mine["members"].iloc[0], color=color, lw=0.6, ls=":")
    ax.set_xscale("log")
    ax.set_xticks([3, 10, 30], ["3", "10", "30"])
    ax.minorticks_off()
    ax.set(xlabel="$n$", ylabel="share with a diagonal set", title="(d) random labels")
    ax.legend(frameon=False, loc="lower right", handlelength=1.0, fontsize=6)


def draw_sparse(ax: Axes, table: pd.DataFrame) -> None:
    """The boundary of recovery over the dimension, for several sparsities, with the fits through the origin."""
    boundaries = sparse_boundaries(table).dropna()
    slopes = sparse_slopes(boundaries)
    for (sparsity, mine), color, marker in zip(boundaries.groupby("sparsity"), SHADES, MARKERS, strict=False):
        ax.plot(mine["d"], mine["n"], color=color, marker=marker, ls="none", ms=4, mfc="none")
        d = np.array([0.0, mine["d"].max()])
        ax.plot(d, slopes[sparsity] * d, color=color)
        ax.text(d[1] * 1.05, slopes[sparsity] * d[1], f"$l = {sparsity}$: {slopes[sparsity]:.1f} $d$", color=color,
                va="center", fontsize=6)  # fmt: skip
    ax.set(xlim=(0, table["d"].max() * 1.5), title=r"(e) $l$-sparse, $\lambda = 0.03/\sqrt{n}$")
    ax.set(xlabel="dimension $d$", ylabel="$n$ at mean error 1/2")
