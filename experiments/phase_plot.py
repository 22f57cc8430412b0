"""Draw the phase transition from its table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from diffrac_cvx.inputs import Array
from experiments.looks import ACCENT, PAGE, SECOND, STYLE, save
from experiments.phase_fit import Fit, fit_boundary, statistical_dimension


def draw(table: pd.DataFrame, stem: Path) -> dict[str, Fit]:
    """Draw the panels of Figure 1, the boundary of each fitted, and the boundaries against each other."""
    table = table.assign(recovered=(table["error"] < 0.5).astype(int))
    panel = dict(iter(table.groupby("panel")))
    fits: dict[str, Fit] = {}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 3, figsize=(PAGE, 4.5))
        ranks = phase_map(axes[0, 0], panel["affine"], "rank_one")
        phase_map(axes[0, 1], panel["1-sparse"], "rank_one")
        errors = phase_map(axes[1, 0], panel["affine"], "error")
        phase_map(axes[1, 1], panel["4-sparse"], "error")
        phase_map(axes[1, 2], panel["4-sparse, small lambda"], "error")
        for ax, name, column in (
            (axes[0, 0], "affine", "rank_one"),
            (axes[0, 1], "1-sparse", "rank_one"),
            (axes[1, 0], "affine", "recovered"),
            (axes[1, 1], "4-sparse", "recovered"),
            (axes[1, 2], "4-sparse, small lambda", "recovered"),
        ):
            fit = fit_boundary(panel[name], column)
            fits[f"{name} {column}"] = fit
            overlay(ax, fit, power=name == "affine", theory=name == "affine")
        for ax, title in (
            (axes[0, 0], "(a) rank one, affine invariant"),
            (axes[0, 1], r"(a) rank one, 1-sparse, $\lambda = 1/\sqrt{n}$"),
            (axes[1, 0], "(b) error, affine invariant"),
            (axes[1, 1], r"(b) error, 4-sparse, $\lambda = 1/\sqrt{n}$"),
            (axes[1, 2], r"(b) error, 4-sparse, $\lambda = 0.03/\sqrt{n}$"),
        ):
            ax.set_title(title, loc="left")
            ax.set_xlabel("dimension $d$")
            ax.set_ylabel("number of points $n$")
        boundaries(axes[0, 2], fits)
        figure.colorbar(ranks, ax=axes[0, 1], label="share of rank-one solutions", shrink=0.9)
        figure.colorbar(errors, ax=axes[1, 2], label="mean clustering error", shrink=0.9)
        save(figure, stem)
    return fits


def phase_map(ax: Axes, table: pd.DataFrame, column: str) -> QuadMesh:
    """Draw the mean over replications: dark is success, as in the paper's rank panels."""
    means = table.pivot_table(index="n", columns="d", values=column, aggfunc="mean")
    d, n = means.columns.to_numpy(dtype=float), means.index.to_numpy(dtype=float)
    colours = "Greys" if column == "rank_one" else "Greys_r"
    return ax.pcolormesh(edges(d), edges(n), means.to_numpy(), cmap=colours, vmin=0, vmax=1, rasterized=True)


def edges(centres: Array) -> Array:
    """Return the edges of cells around sorted centres."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[centres[0] - (middle[0] - centres[0])], middle, [2 * centres[-1] - middle[-1]]])


def overlay(ax: Axes, fit: Fit, *, power: bool, theory: bool) -> None:
    """Draw the 50 % boundary, the curve fitted to it, and the theory where there is one."""
    limits = ax.get_xlim(), ax.get_ylim()
    d = np.linspace(max(limits[0][0], 1.0), limits[0][1], 200)
    ax.plot(fit.d, fit.n50, "o", ms=2.5, mfc="white", mec=ACCENT, mew=0.8, label="50 % boundary")
    if np.isfinite(fit.exponent) and power:
        ax.plot(d, fit.factor * d**fit.exponent, color=ACCENT, label=rf"fit $\propto d^{{{fit.exponent:.2f}}}$")
    elif np.isfinite(fit.slope):
        ax.plot(d, fit.slope * d + fit.offset, color=ACCENT, label=f"fit ${fit.slope:.2f}\\,d {fit.offset:+.0f}$")
    if theory:
        ax.plot(d, statistical_dimension(d), "--", color=SECOND, label="$d + d(d-1)/4$")
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])
    ax.legend(loc="upper left", framealpha=0.9, handlelength=1.5, borderpad=0.3, labelspacing=0.25)


def boundaries(ax: Axes, fits: dict[str, Fit]) -> None:
    """Draw all boundaries on logarithmic axes, where a power law is a line."""
    marks = {
        "affine rank_one": ("s", "affine, rank", ACCENT),
        "affine recovered": ("x", "affine, error", ACCENT),
        "1-sparse rank_one": ("^", "1-sparse, rank", SECOND),
        "4-sparse recovered": ("v", r"4-sparse, $1/\sqrt{n}$", "#777777"),
        "4-sparse, small lambda recovered": ("d", r"4-sparse, $0.03/\sqrt{n}$", "black"),
    }
    for name, (mark, label, colour) in marks.items():
        ax.plot(fits[name].d, fits[name].n50, mark, ms=3.5, mfc="none", mew=0.8, color=colour, label=label)
    d = np.geomspace(4, 100, 50)
    ax.plot(d, statistical_dimension(d), "--", color=SECOND, lw=0.8, label="$d + d(d-1)/4$")
    ax.plot(d, (d + 1) / 2, ":", color=SECOND, lw=1.0, label="$(d+1)/2$")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("dimension $d$")
    ax.set_ylabel("50 % boundary $n$")
    ax.set_title("(c) all boundaries", loc="left")
    ax.set_ylim(3, 4000)
    ax.legend(loc="upper left", framealpha=0.9, handlelength=1.2, borderpad=0.3, labelspacing=0.2, fontsize=6)
