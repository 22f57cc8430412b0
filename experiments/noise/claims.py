"""Findings on label noise; the paper has no theory for it and states no number."""

import numpy as np
import pandas as pd

from experiments.harness.claims import Finding
from experiments.harness.intervals import Interval, mean_of, proportion_of
from experiments.noise.cells import RESTARTS, TINY, TOLERANCE

TITLE = "Noise on the labels"
ABOUT = (
    "The signal is y + sigma times a Gaussian vector, mixed with Gaussian columns by a rotation; n is a multiple of "
    f"d + d(d-1)/4. No penalty, `low_rank` to {TOLERANCE:g}; labels by `kmeans_centered`, and after alternation from "
    f"these. CURE has {RESTARTS} random starts. The oracle knows the direction."
)
EXCESS = 0.05  # largest excess of the mean error over the oracle's that counts as near
SPIKED = 0.5  # ratio of the second to the first eigenvalue of Y below which the spectrum counts as spiked
CLEAR = 1e-4  # objectives closer than this count as equal
RIVALS = {"cure": "CURE", "spectral": "spectral"}


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    spread = table[(table["noise"] == 0.0) | (table["noise"] > TINY)]
    return [
        tolerated(spread),
        label_gap(spread),
        spikiness(spread),
        blame(spread),
        rivals(spread),
        lattice(table),
    ]


def excess(rows: pd.DataFrame, method: str) -> Interval:
    """Return the mean error of a method minus the oracle's."""
    return mean_of((rows[f"error_{method}"] - rows["error_direction"]).to_numpy())


def reach(table: pd.DataFrame, method: str) -> float:
    """Return the largest noise at which the interval of the mean excess error stays below `EXCESS`; -1 if none."""
    near = [(noise, excess(rows, method).high < EXCESS) for noise, rows in table.groupby("noise")]
    failed = next((i for i, (_, held) in enumerate(near) if not held), len(near))
    return float(str(near[failed - 1][0])) if failed else -1.0


def reaches(table: pd.DataFrame, method: str) -> str:
    """Format the largest noise near the oracle for each d and ratio."""
    said = []
    for d, rows in table.groupby("d"):
        numbers = [reach(part, method) for _, part in rows.groupby("ratio")]
        said.append(f"d = {d}: " + ", ".join("none" if number < 0 else f"{number:g}" for number in numbers))
    return "; ".join(said)


def ratios(table: pd.DataFrame) -> str:
    """Format the ratios."""
    return ", ".join(f"{ratio:g}" for ratio in sorted(set(table["ratio"])))


def tolerated(table: pd.DataFrame) -> Finding:
    """Error of the relaxation."""
    return Finding(
        f"noise up to which the mean error, with its interval, is within {EXCESS:g} of the oracle's",
        f"n over d + d(d-1)/4 = {ratios(table)}: relaxation {reaches(table, 'relaxation')}; then alternation "
        f"{reaches(table, 'refined')}.",
    )


def label_gap(table: pd.DataFrame) -> Finding:
    """Certified optimality gap of the labels."""
    found = table[(table["error_refined"] == 0.0) & (table["noise"] > 0.0)]
    ratio = mean_of((found["label_gap"] / found["objective"]).to_numpy())
    clean = proportion_of((table[table["noise"] == 0.0]["label_gap"] < CLEAR).to_numpy())
    return Finding(
        "certified gap of the labels",
        f"without noise it is below {CLEAR:g} in {100 * clean.value:.0f} % of the instances; with noise, if the labels found are the "
        f"planted ones ({len(found)} instances), it is {ratio:.2f} of their objective on average; the lower bound is the rest.",
    )


def spikiness(table: pd.DataFrame) -> Finding:
    """Spectrum of Y."""
    most = table[table["ratio"] == table["ratio"].max()]
    means = {noise: mean_of(rows["eigenvalue_ratio"].to_numpy()) for noise, rows in most.groupby("noise")}
    spiked = [float(str(noise)) for noise, mean in means.items() if mean.high < SPIKED]
    found = table[table["error_refined"] == 0.0]["eigenvalue_ratio"]
    return Finding(
        "ratio of the second to the first eigenvalue of Y",
        f"at n over d + d(d-1)/4 = {most['ratio'].max():g} its mean is below {SPIKED:g}, with its interval, up to "
        f"sigma = {max(spiked, default=float('nan')):g}: "
        + ", ".join(f"{mean:.2f} at {noise:g}" for noise, mean in means.items() if noise in (0.1, 0.2, 0.3, 0.5))
        + f". In the {len(found)} instances where alternation from the relaxation recovers the planted labels it is at most "
        f"{found.max():.2f}.",
    )


def blame(table: pd.DataFrame) -> Finding:
    """Whether errors come from the criterion or from the relaxation."""
    failed = table[table["error_refined"] - table["error_from_planted"] > EXCESS]
    better = proportion_of((failed["objective"] < failed["objective_from_planted"] - CLEAR).to_numpy())
    worse = proportion_of((failed["objective"] > failed["objective_from_planted"] + CLEAR).to_numpy())
    return Finding(
        "cause of errors: the criterion or the relaxation",
        f"in {len(failed)} instances the labels found have an error of more than {EXCESS:g} above that of alternation "
        f"from the planted labels. Eq. (9) prefers the labels found in {100 * better.value:.0f} % "
        f"({100 * better.low:.0f} to {100 * better.high:.0f} %) and those near the planted ones, which the relaxation "
        f"missed, in {100 * worse.value:.0f} % ({100 * worse.low:.0f} to {100 * worse.high:.0f} %).",
    )


def rivals(table: pd.DataFrame) -> Finding:
    """Other methods under noise."""
    said = [f"{words} {reaches(table, method)}" for method, words in RIVALS.items()]
    return Finding(
        f"other methods: noise up to which the mean error, with its interval, is within {EXCESS:g} of the oracle's",
        f"n over d + d(d-1)/4 = {ratios(table)}: " + ". ".join(said) + ".",
    )


def lattice(table: pd.DataFrame) -> Finding:
    """Lattice reduction with very small noise."""
    parts = []
    for noise in (0.0, TINY):
        rows = table[table["noise"] == noise]
        found = [(np.asarray(rows[f"error_{name}"]) == 0.0).mean() for name in ("lattice", "refined")]
        parts.append(f"sigma = {noise:g}: lattice {100 * found[0]:.0f} %, relaxation {100 * found[1]:.0f} %")
    return Finding(
        "lattice reduction needs data without noise",
        f"instances with exact recovery of the labels, {'; '.join(parts)}.",
        "The lattice is given 40 bits of the data. With fewer bits (`bits=`) it tolerates more noise.",
    )
