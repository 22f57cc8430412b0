"""Draw the theory's experiments from their table; solves nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from matplotlib.axes import Axes

from diffrac_cvx.typing import Array
from experiments.harness.intervals import bootstrap, mean_of, share_of
from experiments.harness.style import ACCENT, GREY, PAGE, SECOND, STYLE, save
from experiments.theory.claims_balanced import of_the_proposition
from experiments.theory.claims_sparse import recovery_of
from experiments.theory.parts import split_parts
from experiments.theory.sparse_direction import GRID
from experiments.theory.spectrum import closed_form

MARKERS = "osv^Dx"
SHADES = ("#440154", "#31688e", "#35b779", "#8fa01d", "#c26a0a", "#b2182b")  # one for each marker
SMALL: Any = {"frameon": False, "handlelength": 1.0, "labelspacing": 0.2, "fontsize": 6, "handletextpad": 0.3}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw a panel for each statement that has a curve."""
    part = split_parts(table)
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0, "axes.labelsize": 7, "axes.titlesize": 7}):
        figure, axes = plt.subplots(3, 3, figsize=(PAGE, 6.6))
        draw_spectrum(axes[0, 0], part["spectrum"])
        draw_kurtosis(axes[0, 1], part["recovery"])
        draw_asked(axes[0, 2], part["sample size"])
        draw_one_dimension(axes[1, 0], part["one dimension"])
        draw_thresholds(axes[1, 1], part["balanced"], part["rank two"], part["many labels"])
        draw_family(axes[1, 2], part["family"])
        draw_procrustes(axes[2, 0], part["procrustes"])
        draw_perturbed(axes[2, 1], part["perturbed"])
        draw_sparse_direction(axes[2, 2], part["sparse direction"])
        save(figure, stem)


def draw_shares(ax: Axes, x: str, table: pd.DataFrame, column: str, **line: Any) -> None:
    """Draw the share of successes at each x, with Wilson's interval as a band."""
    shares = [share_of(values.to_numpy()) for _, values in table.groupby(x)[column]]
    at = np.sort(table[x].unique())
    ax.plot(at, [s.value for s in shares], ms=2.5, **line)
    ax.fill_between(at, [s.low for s in shares], [s.high for s in shares], color=line["color"], alpha=0.12, lw=0)


def set_ticks(ax: Axes, values: list[int]) -> None:
    """Make the x axis logarithmic, with these numbers and no others."""
    ax.set_xscale("log")
    ax.set_xticks(values, list(map(str, values)))
    ax.minorticks_off()


def draw_spectrum(ax: Axes, table: pd.DataFrame) -> None:
    """The two smallest eigenvalues of E T_x over the kurtosis: exact expectation on closed form."""
    table = table[(table["m"] == 1.0) & (table["beta"] > 1.0)]
    d = int(table["d"].max())
    table = table[table["d"] == d]
    betas = np.geomspace(1.1, 40, 200)
    for k, (color, marker) in enumerate(((SECOND, "o"), (ACCENT, "^"))):
        ax.plot(betas, [closed_form(d, 1.0, beta)[k] for beta in betas], color=color, label=rf"$\mu_{k + 1}$")
        ax.plot(table["beta"], table[f"mu_{k + 1}"], color=color, marker=marker, ls="none", ms=4, mfc="none")
    ax.set(yscale="log", title=rf"(a) spectrum, $d = {d}$, $m = 1$")
    set_ticks(ax, [1, 3, 10, 30])
    ax.set(xlabel=r"kurtosis $\beta$ (log scale)", ylabel=r"eigenvalue of $\mathbb{E}\, T_x$ (log scale)")
    ax.legend(**SMALL, loc="lower right")


def draw_kurtosis(ax: Axes, table: pd.DataFrame) -> None:
    """The share of instances with one solution only, over n, for several kurtoses."""
    laws = [law for law in table["law"].unique() if law.startswith("three-point")]
    for law, color, marker in zip(laws, SHADES, MARKERS, strict=False):
        mine = table[table["law"] == law]
        draw_shares(ax, "n", mine, "unique", color=color, marker=marker, label=f"{mine['beta'].iloc[0]:g}")
    set_ticks(ax, [10, 30, 100, 300])
    ax.set(ylim=(-0.03, 1.03), title=rf"(b) kurtosis $\beta$ of the noise, $d = {table['d'].iloc[0]}$")
    ax.set(xlabel="$n$ (log scale)", ylabel="share with one solution")
    ax.legend(**SMALL, loc="upper left", bbox_to_anchor=(-0.02, 1.0))


def draw_asked(ax: Axes, table: pd.DataFrame) -> None:
    """The number of points needed over the number that the proposition asks for."""
    own, small = of_the_proposition(table), table[table["small"] == 1]
    kinds = [("(a)", own, "n_paper", SHADES[0], "o"), ("(b)", own, "n_paper_b", SHADES[2], "s")]
    kinds += [("small variance", small, "n_paper", SHADES[4], "^")]
    for label, mine, column, color, marker in kinds:
        means = mine.groupby(["law", "d", "m"])[[column, "n_measured"]].mean()
        ax.plot(
            means[column], means["n_measured"], color=color, marker=marker, ls="none", ms=3, mfc="none", label=label
        )
    top = float(table[["n_paper", "n_paper_b"]].max().max()) * 1.3
    ax.plot([3, top], [3, top], color=GREY, lw=0.7)
    ax.set(xscale="log", yscale="log", title="(c) Proposition 1")
    ax.set(xlabel="$n$ asked for (log scale)", ylabel="$n$ needed (log scale)")
    ax.legend(**SMALL, loc="upper left")


def draw_one_dimension(ax: Axes, table: pd.DataFrame) -> None:
    """The share of recovered labels over the noise, on the probability that all signs agree."""
    noise = np.linspace(0.2, 1.0, 100)
    for (n, mine), color, marker in zip(table.groupby("n"), SHADES[::2], MARKERS, strict=False):
        shares = {float(str(s)): share_of(values.to_numpy()) for s, values in mine.groupby("noise")["recovered"]}
        whiskers = [[s.value - s.low for s in shares.values()], [s.high - s.value for s in shares.values()]]
        ax.errorbar(
            list(shares), [s.value for s in shares.values()], whiskers, color=color, marker=marker, ls="none", ms=3,
            elinewidth=0.6, mfc="none",
        )  # fmt: skip
        curve = scipy.stats.norm.cdf(1 / (noise * (1 - 1 / float(str(n))) ** 0.5)) ** float(str(n))
        ax.plot(noise, curve, color=color, label=f"$n = {n}$")
    ax.set(ylim=(-0.03, 1.03), xlabel=r"noise $\sigma$ on $y$", ylabel="share with $y$ recovered")
    ax.set_title("(d) one dimension")
    ax.legend(**SMALL, loc="lower left", bbox_to_anchor=(0.0, 0.05))


def draw_thresholds(ax: Axes, balanced: pd.DataFrame, two: pd.DataFrame, many: pd.DataFrame) -> None:
    """The number of points that leaves only planted solutions, on the statistical dimension."""
    kinds = [("balanced", balanced)]
    kinds += [(rf"$\alpha_* = {value:g}$", mine) for value, mine in two.groupby("imbalance")]
    kinds += [(f"{k} labels", mine) for k, mine in many.groupby("k") if k in (2, 4)]
    top = max(float(mine["expected"].max()) for _, mine in kinds) * 1.08
    ax.plot([0, top], [0, top], color=GREY, lw=0.7)
    for (label, mine), color, marker in zip(kinds, SHADES, MARKERS, strict=False):
        found = {float(str(x)): mean_of(n.to_numpy()) for x, n in mine.groupby("expected")["n_measured"]}
        whiskers = [[s.value - s.low for s in found.values()], [s.high - s.value for s in found.values()]]
        ax.errorbar(
            list(found), [s.value for s in found.values()], whiskers, color=color, marker=marker, ls="none", ms=3,
            elinewidth=0.7, label=label,
        )  # fmt: skip
    ax.set(xlabel="statistical dimension", ylabel="$n$ from which so (mean)", title="(e) planted solutions only")
    ax.set(xlim=(0, top), ylim=(0, 1.25 * top))
    ax.legend(**SMALL, loc="upper left", ncols=2, columnspacing=0.6)


def draw_family(ax: Axes, table: pd.DataFrame) -> None:
    """The probability that the family of random labels is independent, over n."""
    for (k, mine), color, marker in zip(table.groupby("k"), SHADES, MARKERS, strict=False):
        draw_shares(ax, "n", mine, "diagonal", color=color, marker=marker, label=f"$k = {k}$")
        ax.axvline(mine["members"].iloc[0], color=color, lw=0.6, ls=":")
    set_ticks(ax, [3, 10, 30])
    ax.set(xlabel="$n$ (log scale)", ylabel="share with diagonal $A$ only", title="(f) random labels")
    ax.legend(**SMALL, loc="center right", bbox_to_anchor=(1.04, 0.4))


def draw_procrustes(ax: Axes, table: pd.DataFrame) -> None:
    """The share of mixtures whose labels ten rounds recover, over the number of labels."""
    kinds = (
        ("few_random", "one rotation"),
        ("few_eigenvectors", "eigenvectors"),
        ("few_best", "best of ten rotations"),
    )
    for (column, label), color, marker in zip(kinds, SHADES[::2], MARKERS, strict=False):
        draw_shares(ax, "k", table, column, color=color, marker=marker, label=label)
    ax.set(ylim=(-0.03, 1.03), xlabel="labels $k$", ylabel="share recovered in 10 rounds", title="(g) alternation")
    ax.legend(**SMALL, loc="lower left")


def draw_perturbed(ax: Axes, table: pd.DataFrame) -> None:
    """The second over the first eigenvalue of Y, and the error of the principal eigenvector, over the noise."""
    for (d, mine), color, marker in zip(table.groupby("d"), SHADES[::2], MARKERS, strict=False):
        line = {"color": color, "marker": marker}
        draw_statistic(ax, mine, "eigenvalue_ratio", lambda rows: float(np.median(rows)), label=f"$d = {d}$", **line)
        draw_statistic(ax, mine, "error", lambda rows: float(rows.mean()), ls=":", **line)
    ax.plot([], [], color=GREY, ls="-", label="eigenvalue quotient")
    ax.plot([], [], color=GREY, ls=":", label="error")
    ax.set(ylim=(-0.03, 1.03), xlabel=r"noise $\sigma$ on $y$", title="(h) off the model")
    ax.set_ylabel("median quotient, mean error")
    ax.legend(**SMALL, loc="upper left")


def draw_statistic(
    ax: Axes, table: pd.DataFrame, column: str, statistic: Callable[[Array], float], **line: Any
) -> None:
    """Draw a statistic of a column at each noise, with its bootstrap interval as a band."""
    found = [bootstrap(values.to_numpy(float), statistic) for _, values in table.groupby("noise")[column]]
    noise = np.sort(table["noise"].unique())
    ax.plot(noise, [s.value for s in found], ms=2.5, **line)
    ax.fill_between(noise, [s.low for s in found], [s.high for s in found], color=line["color"], alpha=0.12, lw=0)


def draw_sparse_direction(ax: Axes, table: pd.DataFrame) -> None:
    """The share of instances recovered by the relaxation and by the l1 norm of v alone, over n."""
    kinds = (("relaxed", r"$\Gamma(V)$, relaxed", ACCENT, "o"), ("alone", r"$|v|_1$ alone, best of ten", SECOND, "^"))
    for method, label, color, marker in kinds:
        lam, _ = recovery_of(table, method)
        draw_shares(ax, "n", table, f"{method}_{GRID.index(lam)}", color=color, marker=marker, label=label)
    set_ticks(ax, [int(n) for n in np.sort(table["n"].unique())])
    ax.set(ylim=(-0.03, 1.28), xlabel="$n$ (log scale)", ylabel="share recovered")
    ax.set_title(f"(i) sparse directions, $d = {table['d'].iloc[0]}$")
    ax.legend(**SMALL, loc="upper left")
