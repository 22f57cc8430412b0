"""Label noise: error, certified gap of the labels and spectrum of Y as the clusters spread."""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import diffrac_cvx as dc
from diffrac_cvx.plotting.canvas import Style
from experiments.harness.command import Experiment
from experiments.harness.findings import Finding, one_row, tabulate
from experiments.harness.intervals import Interval, mean_of, proportion_of
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels, with_intervals
from experiments.harness.sweep import Cell, Row, cross
from experiments.theory.label_recovery import signs
from experiments.theory.unique_solution import statistical_dimension

DIMENSIONS = (12, 20)
RATIOS = (1, 2, 4, 8)  # n over d + d(d-1)/4
NOISES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # standard deviation within a cluster
REPLICATIONS = 32
RESTARTS = 10
TOLERANCE = 1e-6
SETTINGS = {"n_init": RESTARTS, "tolerance": TOLERANCE}

TITLE = "Noise on the labels"
ABOUT = (
    "The signal is y + sigma times a Gaussian vector, mixed with Gaussian columns by a rotation; n is a multiple of "
    f"d + d(d-1)/4. No penalty, `low_rank` to {TOLERANCE:g}; labels by `kmeans_centered`, and after alternation from "
    f"these. CURE has {RESTARTS} random starts. The oracle knows the direction."
)
EXCESS = 0.05  # largest excess of the mean error over the oracle's that counts as near
CLEAR = 1e-4  # objectives closer than this count as equal
NAMES = {"relaxation": "relaxation", "refined": "then alternation", "cure": "CURE", "spectral": "spectral"}
MARKS = "osv^"
RIVALS = {
    "refined": ("relaxation, then alternation", Style(ACCENT, "-", "o")),
    "cure": ("CURE", Style(SECONDARY, "--", "^")),
    "spectral": ("spectral", Style(GREEN, "-.", "v")),
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid == "full":
        return cross(d=DIMENSIONS, ratio=RATIOS, noise=NOISES, replication=range(REPLICATIONS))
    return cross(d=(4, 6), ratio=(1, 4), noise=(0.0, 0.2, 0.5), replication=range(2))


def points_of(d: int, ratio: float) -> int:
    """Return the even number of points nearest to a multiple of d + d(d-1)/4."""
    return 2 * round(ratio * statistical_dimension(float(d)) / 2)


def measure(d: int, ratio: float, noise: float, replication: int) -> Row:
    """Cluster one data set by all methods; a replication has the same points at every noise level, except the noise."""
    n = points_of(d, ratio)
    rng = np.random.default_rng([2017, 13, d, n, replication])
    X, y, v = dc.datasets.make_planted(n, d, d, noise=noise, rng=rng)
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        result = dc.low_rank(X, 1.0, tol=TOLERANCE)
    labels = {
        "relaxation": dc.rounding.kmeans_centered(result.F),
        "direction": signs(X @ v),
        "cure": dc.baselines.cure(X, n_init=RESTARTS, rng=replication),
        "spectral": dc.baselines.spectral_kurtosis(X),
    }
    labels["refined"] = dc.rounding.refine(X, labels["relaxation"])
    errors = {f"error_{name}": dc.metrics.clustering_error(y, found) for name, found in labels.items()}
    certificate = dc.certify_labels(X, labels["refined"], result)
    return {
        "n": n,
        **errors,
        "label_gap": certificate.gap,
        "objective": certificate.objective,
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "value": result.value,
        "gap": result.gap,
    }


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the noise tolerated, and gaps and spectrum."""
    most = table[table["ratio"] == table["ratio"].max()]
    recovered = table[table["error_refined"] == 0.0]
    with_noise = recovered[recovered["noise"] > 0.0]
    return [
        Finding(
            f"Largest sigma at which the mean error, with its interval, is within {EXCESS:g} of the oracle's, by "
            "n / (d + d(d-1)/4)",
            tolerated(table),
        ),
        Finding(
            f"Certified gap of the labels: instances without noise with a gap below {CLEAR:g}; with noise, if the labels "
            "are the planted ones, the gap over their objective",
            one_row(
                without_noise=proportion_of(table[table["noise"] == 0.0]["label_gap"] < CLEAR),
                with_noise=mean_of(with_noise["label_gap"] / with_noise["objective"]),
                instances=len(with_noise),
            ),
        ),
        Finding(
            f"Second eigenvalue of Y over the first at n / (d + d(d-1)/4) = {most['ratio'].max():g}",
            tabulate(
                most.rename(columns={"noise": "sigma"}),
                ["sigma"],
                {"mean": lambda rows: mean_of(rows["eigenvalue_ratio"])},
            ),
            comment=f"In the {len(recovered)} instances where alternation from the relaxation recovers the planted "
            f"labels it is at most {recovered['eigenvalue_ratio'].max():.2f}.",
        ),
    ]


def tolerated(table: pd.DataFrame) -> pd.DataFrame:
    """Return the largest noise near the oracle for each method, d and ratio."""
    rows = {
        (NAMES[method], d): {f"{ratio:g}": reach(part, method) for ratio, part in part_of_d.groupby("ratio")}
        for method in NAMES
        for d, part_of_d in table.groupby("d")
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["method", "d"])


def excess(rows: pd.DataFrame, method: str) -> Interval:
    """Return the mean error of a method minus the oracle's."""
    return mean_of((rows[f"error_{method}"] - rows["error_direction"]).to_numpy())


def reach(table: pd.DataFrame, method: str) -> float:
    """Return the largest noise at which the interval of the mean excess error stays below `EXCESS`; NaN if none."""
    near = [(noise, excess(rows, method).high < EXCESS) for noise, rows in table.groupby("noise")]
    failed = next((i for i, (_, held) in enumerate(near) if not held), len(near))
    return float(str(near[failed - 1][0])) if failed else np.nan


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the error and the certified gap at the largest dimension, and the other methods at two numbers of points."""
    table = table[table["d"] == table["d"].max()]
    ratios = sorted(set(table["ratio"]))
    with panels(stem, 2, 2, 4.4, rc={"lines.linewidth": 0.9}) as (_, ((left, right), below)):
        draw_ratios(left, table, "error_relaxation", "clustering error")
        draw_oracle(left, table)
        draw_ratios(right, table, "label_gap", "certified gap of the labels")
        right.legend(frameon=False, fontsize=6, loc="upper left")
        for ax, ratio in zip(below, (ratios[1], ratios[-1]), strict=True):
            part = table[table["ratio"] == ratio]
            for method, (name, style) in RIVALS.items():
                with_intervals(ax, part, "noise", f"error_{method}", mean_of, label=name, **style._asdict())
            draw_oracle(ax, part)
            ax.set(xlabel=r"noise $\sigma$", ylabel="clustering error")
        below[1].legend(frameon=False, fontsize=6)
        points = [f", $n = {table[table['ratio'] == ratio]['n'].iloc[0]}$" for ratio in (ratios[1], ratios[-1])]
        for ax, letter, words in zip((left, right, *below), "abcd", ("", "", *points), strict=True):
            ax.set_title(f"({letter}) $d = {table['d'].iloc[0]}${words}")
            ax.set_xlim(left=0.0)


def draw_ratios(ax: Axes, table: pd.DataFrame, column: str, label: str) -> None:
    """Draw the mean of a column against the noise level, one line per number of points."""
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.8, table["ratio"].nunique()))
    for (ratio, rows), shade, mark in zip(table.groupby("ratio"), shades, MARKS, strict=False):
        name = f"$n = {ratio:g}\\,(d + d(d-1)/4)$" if ratio != 1 else "$n = d + d(d-1)/4$"
        with_intervals(ax, rows, "noise", column, mean_of, color=shade, marker=mark, label=name)
    ax.set(xlabel=r"noise $\sigma$", ylabel=label)


def draw_oracle(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the mean error of the labels given by the true direction."""
    mean = rows.groupby("noise")["error_direction"].mean()
    ax.plot(mean.index, mean, color=GRAY, ls=":", lw=1.4, label="true direction")
    ax.set_ylim(-0.03, 1.03)


EXPERIMENT = Experiment("noise", cells_of, measure, draw, findings, SETTINGS)
