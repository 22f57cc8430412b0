"""Draw the phase transition from its table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting import PhaseMapDisplay
from experiments.harness.style import ACCENT, PAGE, SECOND, STYLE, save
from experiments.phase_transition.fit import Fit, fit_boundary, wendel
from experiments.theory.unique_solution import statistical_dimension

PANELS = (
    ("affine", "rank_one", "(a) rank one, affine invariant"),
    ("1-sparse", "rank_one", r"(a) rank one, 1-sparse, $\lambda = 1/\sqrt{n}$"),
    ("affine", "error", "(b) error, affine invariant"),
    ("4-sparse", "error", r"(b) error, 4-sparse, $\lambda = 1/\sqrt{n}$"),
    ("4-sparse, small lambda", "error", r"(b) error, 4-sparse, $\lambda = 0.03/\sqrt{n}$"),
)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the panels of Figure 1, dark where it succeeds, with the boundary of each fitted, and all boundaries."""
    table = table.assign(recovered=(table["error"] < 0.5).astype(int))
    panel = dict(iter(table.groupby("panel")))
    fits: dict[str, Fit] = {}
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(PAGE, 4.6))
        rows = figure.add_gridspec(2, 1)
        above, below = figure.add_subfigure(rows[0]), figure.add_subfigure(rows[1])
        top, bottom = above.subplots(1, 3), below.subplots(1, 3)
        for ax, (name, column, title) in zip([*top[:2], *bottom], PANELS, strict=True):
            success, colors = ("rank_one", "Greys") if column == "rank_one" else ("recovered", "Greys_r")
            phases = PhaseMapDisplay.from_table(panel[name], column)
            image = phases.plot(ax, level=None, colorbar=False, cmap=colors, vmin=0, vmax=1).mesh_
            fits[f"{name} {success}"] = fit = fit_boundary(panel[name], success)
            draw_boundary(ax, fit, name)
            ax.set_title(title)
            if name == "1-sparse":
                above.colorbar(image, ax=top[:2], label="share of rank-one solutions", pad=0.02)
        below.colorbar(image, ax=bottom, label="mean clustering error", pad=0.02)
        draw_boundaries(top[2], fits)
        save(figure, stem)


def draw_boundary(ax: Axes, fit: Fit, panel: str) -> None:
    """Draw the 50 % boundary, the curve fitted to it, and the theory where there is one."""
    limits = ax.get_xlim(), ax.get_ylim()
    d = np.linspace(max(limits[0][0], 1.0), limits[0][1], 200)
    ax.plot(fit.d, fit.n50, "o", ms=2.5, mfc="white", mec=ACCENT, mew=0.8, label="50 % boundary")
    if panel == "affine":
        ax.plot(d, fit.factor * d**fit.exponent, color=ACCENT, label=rf"fit $\propto d^{{{fit.exponent:.2f}}}$")
        ax.plot(d, statistical_dimension(d), "--", color=SECOND, label="$d + d(d-1)/4$")
    else:
        ax.plot(d, fit.slope * d + fit.offset, color=ACCENT, label=f"fit ${fit.slope:.2f}\\,d {fit.offset:+.0f}$")
    if panel == "1-sparse":
        ax.plot(d, wendel(d), "--", color=SECOND, label="$(d + 1)/2$")
    ax.set(xlim=limits[0], ylim=limits[1])
    ax.legend(loc="upper left", framealpha=0.9, handlelength=1.5, borderpad=0.3, labelspacing=0.25)


def draw_boundaries(ax: Axes, fits: dict[str, Fit]) -> None:
    """Draw all boundaries on logarithmic axes, where a power law is a line."""
    for law, most in ((statistical_dimension, 100), (wendel, 300)):
        d = np.geomspace(4, most, 50)
        ax.plot(d, law(d), "--", color=SECOND, lw=0.8)
    for name, mark, color in (
        ("affine rank_one", "s", ACCENT),
        ("affine recovered", "x", ACCENT),
        ("1-sparse rank_one", "^", SECOND),
        ("4-sparse recovered", "v", "#888888"),
        ("4-sparse, small lambda recovered", "d", "black"),
    ):
        ax.plot(fits[name].d, fits[name].n50, mark, ms=3, mfc="none", mew=0.7, color=color)
    ax.set(xscale="log", yscale="log", xlim=(3.5, 400), ylim=(2, 4000))
    ax.set(xlabel="dimension $d$", ylabel="50 % boundary $n$", title="(c) all boundaries")
    for x, y, color, text in (
        (4, 420, ACCENT, "affine invariant\nrank \u25a1, error \u00d7\n$d + d(d-1)/4$"),
        (105, 260, "black", "4-sparse,\nerror\n\u25bd $1/\\sqrt{n}$\n\u25c7 $0.03/\\sqrt{n}$"),
        (30, 2.6, SECOND, "1-sparse, rank \u25b3\n$(d + 1)/2$"),
    ):
        ax.text(x, y, text, color=color, fontsize=6.5)
