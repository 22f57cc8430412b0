"""Label noise: error and certified gap of the labels as the clusters spread."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.plotting.canvas import Style
from experiments.harness.findings import Finding, one_row
from experiments.harness.intervals import mean_of, proportion_of
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels, with_intervals
from experiments.harness.sweep import Cell, Row, cross
from experiments.rivals.two_valued import cure, spectral_kurtosis
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
METHODS = {
    "relaxation": ("relaxation", Style(ACCENT, ":", "s")),
    "refined": ("relaxation, then alternation", Style(ACCENT, "-", "o")),
    "cure": ("CURE", Style(SECONDARY, "--", "^")),
    "spectral": ("spectral", Style(GREEN, "-.", "v")),
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid == "full":
        return cross(d=DIMENSIONS, ratio=RATIOS, noise=NOISES, replication=range(REPLICATIONS))
    return cross(d=(4, 6), ratio=(1, 4), noise=(0.0, 0.2, 0.5), replication=range(2))


def measure(d: int, ratio: float, noise: float, replication: int) -> Row:
    """Cluster one data set by all methods; a replication has the same points at every noise level, except the noise."""
    n = 2 * round(ratio * statistical_dimension(float(d)) / 2)  # even
    rng = np.random.default_rng([2017, 13, d, n, replication])
    X, y, v = dc.datasets.make_planted(n, d, d, noise=noise, rng=rng)
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        result = dc.low_rank(X, 1.0, tol=TOLERANCE)
    labels = {
        "relaxation": dc.rounding.kmeans_centered(result.F),
        "direction": signs(X @ v),
        "cure": cure(X, n_init=RESTARTS, rng=replication),
        "spectral": spectral_kurtosis(X),
    }
    labels["refined"] = dc.rounding.refine(X, labels["relaxation"])
    errors = {f"error_{name}": dc.metrics.clustering_error(y, found) for name, found in labels.items()}
    certificate = dc.certify_labels(X, labels["refined"], result)
    labelled = {"label_gap": certificate.gap, "objective": certificate.objective}
    return {"n": n, **errors, **labelled, "value": result.value, "gap": result.gap}


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the noise tolerated by each method, and the gaps of the labels."""
    planted = table[(table["error_refined"] == 0.0) & (table["noise"] > 0.0)]
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
                with_noise=mean_of(planted["label_gap"] / planted["objective"]),
                instances=len(planted),
            ),
        ),
    ]


def tolerated(table: pd.DataFrame) -> pd.DataFrame:
    """Return the largest noise near the oracle for each method, d and ratio."""
    rows = {
        (name, d): {f"{ratio:g}": reach(part, method) for ratio, part in part_of_d.groupby("ratio")}
        for method, (name, _) in METHODS.items()
        for d, part_of_d in table.groupby("d")
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["method", "d"])


def reach(table: pd.DataFrame, method: str) -> float:
    """Return the largest noise at which the interval of the mean excess error stays below `EXCESS`; NaN if none."""
    largest = np.nan
    for noise, rows in table.groupby("noise"):
        if mean_of(rows[f"error_{method}"] - rows["error_direction"]).high >= EXCESS:
            break
        largest = float(str(noise))
    return largest


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the mean errors at the largest dimension, one panel for each number of points."""
    table = table[table["d"] == table["d"].max()]
    ratios = sorted(set(table["ratio"]))
    with panels(stem, 1, len(ratios), 2.5, sharey=True, rc={"lines.linewidth": 0.9}) as (figure, axes):
        for ax, ratio, letter in zip(axes, ratios, "abcd", strict=False):
            part = table[table["ratio"] == ratio]
            for method, (name, style) in METHODS.items():
                with_intervals(ax, part, "noise", f"error_{method}", mean_of, label=name, **style._asdict())
            oracle = part.groupby("noise")["error_direction"].mean()
            ax.plot(oracle.index, oracle, color=GRAY, ls=":", lw=1.4, label="true direction")
            ax.set(xlabel=r"noise $\sigma$", ylim=(-0.03, 1.03), title=f"({letter}) $n = {part['n'].iloc[0]}$")
            ax.set_xlim(left=0.0)
        axes[0].set_ylabel(f"clustering error, $d = {table['d'].iloc[0]}$")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
