"""What the companion note takes from the tables of figures/ and from the solvers: its numbers, and a figure a section."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.boundary import find_boundary
from experiments.harness.findings import in_words
from experiments.harness.style import ACCENT, GRAY, GREEN, PAGE, SECONDARY, STYLE
from experiments.harness.tables import read_table, split_parts
from experiments.optimal import findings as optimal
from experiments.optimal import plot as optimal_plot
from experiments.phase_transition import findings as phase_transition
from experiments.sparse_regime import findings as sparse_regime
from experiments.sparse_regime import plot as sparse_plot
from experiments.sparse_regime.population import solve_population
from experiments.stress.experiment import check_bounds
from experiments.theory import affine_law
from experiments.wide_law import findings as wide_law
from experiments.wide_law import plot as wide_plot

FIGURES = Path(__file__).parents[1] / "figures"
HEIGHT = 2.6  # inches of a figure
SPARSITY, DIMENSIONS = 4, (16, 64, 256)  # of the curves beside the law of the population


def table_of(stem: str) -> pd.DataFrame:
    """Return a table of figures/."""
    return read_table(FIGURES / f"{stem}.csv")


def numbers() -> dict[str, str]:
    """Return what was measured, in words, by the names under which the note uses it."""
    sparse, wide, affine, best = (table_of(name) for name in ("sparse_regime", "wide_law", "affine_law", "optimal"))
    parts = split_parts(sparse)
    found = {rule: sparse_regime.boundaries_of(parts[rule], parts["exact"]) for rule in ("law", "oracle", "limit")}
    groups = split_parts(wide)["groups"]
    panels = dict(iter(phase_transition.with_recovery(table_of("phase_transition")).groupby("panel")))
    ratios, gaussian = affine_law.ratios(affine).rename(index="d = {}".format), affine_law.LAWS["gaussian"][0]
    groups_lost = wide_law.found_and_lost(groups)
    difficulty, compared = optimal.by_difficulty(best), optimal.exact_methods(best)
    measured: dict[str, pd.DataFrame] = {
        "diagonal": phase_transition.proved_diagonal(panels),
        "population": sparse_regime.weights_that_keep(parts["population"], parts["sample"]),
        "exponents": sparse_regime.growth(found),
        "condition": condition_over_boundary(panels),
        "dimension": sparse_regime.theory_holds(found, parts["cone"]),
        "affine": ratios[[gaussian]].dropna(),
        "ellipsoid": affine_law.limit(affine),
        "student": ratios.drop(columns=gaussian).dropna(),
        "wide_theorem": wide_law.inequality(groups),
        "wide_kept": groups_lost.loc[[wide_law.BELOW]],
        "wide_lost": groups_lost.loc[[wide_law.ABOVE]],
        "proved": optimal.certified(best),
        "small_root": difficulty.loc[[optimal.NEAR, optimal.FAR]],
        "program": compared.loc[[optimal.TEN_TIMES]],
        "directions": compared.loc[[optimal.ENUMERATED]],
    }
    return {name: f"{in_words(one)}." for name, one in measured.items()} | {
        "seconds_of_search": optimal.limits(best),
        "stress": check_bounds(table_of("stress")).text.splitlines()[0] + ".",
    }


def condition_over_boundary(panels: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the range over d of the n of the population's condition over the boundary of recovery, flat, l = 4."""
    records = {}
    for weight, condition in (
        ("1/sqrt(n)", lambda d: ((SPARSITY - 1) * d) ** 2),
        ("1/n", lambda d: (SPARSITY - 1) * d),
    ):
        found = find_boundary(panels[f"4-sparse flat, {weight}"], "recovered")
        ratios = (condition(found.d) / found.n50)[found.inside]
        records[f"weight {weight}"] = {"smallest": ratios.min(), "largest": ratios.max(), "dimensions": len(ratios)}
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("weight")


def substitutions() -> str:
    """Return the numbers as substitutions of reStructuredText."""
    escaped = {
        name: text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*") for name, text in numbers().items()
    }
    return "\n".join(f".. |{name}| replace:: {text}" for name, text in escaped.items()) + "\n"


def draw_components() -> Figure:
    """Pairs of features proved apart as the gap closes, and those that are apart at the last solution."""
    X = dc.datasets.make_planted(400, 30, sparsity=4, noise=0.2, rng=0).X
    pairs = ~np.eye(30, dtype=bool)
    figure, ax = plt.subplots(figsize=(0.6 * PAGE, HEIGHT))
    for lam, color, mark in ((0.008, ACCENT, "o"), (0.01, SECONDARY, "s"), (0.02, GREEN, "^")):
        penalty = dc.Penalty.l1(lam)
        gaps, fractions = [], []
        for tol in 10.0 ** -np.arange(2.0, 10.0):
            result = dc.low_rank(X, penalty=penalty, tol=tol)
            gaps.append(result.gap)
            fractions.append(apart(dc.find_components(X, result, penalty=penalty))[pairs].mean())
        ax.plot(gaps, fractions, mark, ls="-", color=color, ms=3, mfc="white", label=rf"$\lambda = {lam:g}$")
        ax.axhline(
            apart(dc.find_components(X, result, penalty=penalty, rtol=1e-3))[pairs].mean(), color=color, ls=":", lw=0.8
        )
    ax.set(
        xscale="log",
        xlabel=r"proved gap $\delta$ of the solution",
        ylabel="share of pairs proved apart",
        ylim=(-0.03, 1.06),
    )
    ax.invert_xaxis()
    ax.legend(frameon=False)
    return figure


def apart(components: Array) -> Array:
    """Return which pairs are in different components."""
    return np.asarray(components[:, None] != components[None, :])


def draw_sparse() -> Figure:
    """The planted direction's weight with infinitely many points, and the points needed for recovery."""
    parts = split_parts(table_of("sparse_regime"))
    found = {rule: sparse_regime.boundaries_of(parts[rule], parts["exact"]) for rule in sparse_plot.MARKS}
    figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE, HEIGHT))
    kappa = np.linspace(0.02, 1.5, 38)
    for d, color in zip(DIMENSIONS, (GRAY, SECONDARY, ACCENT), strict=True):
        weights = [solve_population(SPARSITY, d, k / ((SPARSITY - 1) * d)).w for k in kappa]
        left.plot(kappa, weights, color=color, label=f"$d = {d}$")
    left.plot(kappa, np.maximum(1 - kappa, 0), "k:", lw=1.0, label=r"$(1 - \kappa)_+$")
    left.set(
        xlabel=r"$\kappa = \lambda (l - 1) d$", ylabel="$w$", title=f"(a) weight of the direction, $l = {SPARSITY}$"
    )
    left.legend(frameon=False)
    sparse_plot.draw_dimensions(right, found, sparse_plot.theory_of(parts["cone"]))
    right.set_title("(b) points for recovery")
    return figure


def draw_wide() -> Figure:
    """The share of V along the labels beside the bound of the theorem, and the groups found over c / kappa."""
    groups = split_parts(table_of("wide_law"))["groups"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE, HEIGHT))
    bound = np.maximum(1.0 - groups["found"] / groups["kappa"], 0.0)
    left.plot(bound, groups["along"], "o", color=SECONDARY, ms=3, mfc="none")
    left.plot([0, 1], [0, 1], color=GRAY, lw=0.8)
    left.set(
        xlabel=r"$1 - C / \kappa$, 0 where negative",
        ylabel="share of $XVX'$ along $y$",
        title="(a) the theorem, table by table",
    )
    wide_plot.draw_index(right, groups)
    right.set_title("(b) groups found")
    return figure


def draw_rounding() -> Figure:
    """The width of the bracket of two columns x and x + y/K, whose optimum without a penalty is that of x and y."""
    powers = np.arange(0, 41, 2)
    figure, ax = plt.subplots(figsize=(0.6 * PAGE, HEIGHT))
    for n, color, mark in ((12, SECONDARY, "o"), (200, ACCENT, "s")):
        widths = np.array([[width_of(n, int(k), draw) for draw in range(5)] for k in powers])
        ax.plot(2.0**powers, np.median(widths, axis=1), mark, color=color, ms=3, mfc="none", label=f"$n = {n}$")
        ax.plot(2.0**powers, n * 2.0 ** (powers - 53), color=color, lw=0.8)
    ax.set(xscale="log", yscale="log", xlabel="condition number, about $K$", ylabel="width of the bracket")
    ax.legend(frameon=False, title="lines: $n K 2^{-53}$")
    return figure


def width_of(n: int, power: int, draw: int) -> float:
    """Return the proved gap of two columns that are nearly the same, solved as far as it goes."""
    x, y = np.random.default_rng(draw).standard_normal((2, n))
    with warnings.catch_warnings(action="ignore"):
        return dc.low_rank(np.column_stack([x, x + y * 2.0**-power]), tol=1e-14, max_iter=500).gap


def draw_search() -> Figure:
    """The proved gap over time, and the time over the gap at the root."""
    best = table_of("optimal")
    figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE, HEIGHT + 0.3))
    optimal_plot.draw_gaps(left, best)
    optimal_plot.draw_seconds(right, best)
    return figure


DRAWINGS = {
    "note_components": draw_components,
    "note_sparse": draw_sparse,
    "note_wide": draw_wide,
    "note_rounding": draw_rounding,
    "note_search": draw_search,
}


def write(folder: Path) -> None:
    """Write the numbers and the figures of the note."""
    folder.mkdir(exist_ok=True)
    (folder / "note_numbers.inc").write_text(substitutions(), encoding="utf-8")
    for name, draw in DRAWINGS.items():
        with plt.rc_context(STYLE):
            figure = draw()
            figure.savefig(folder / f"{name}.png", dpi=200)
            plt.close(figure)
