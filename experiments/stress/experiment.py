"""Certified bounds of adversarial instances, compared with 60-digit arithmetic.

It fails if a bound is on the wrong side of the exact value.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.harness.command import Experiment, Outcome
from experiments.harness.findings import Finding
from experiments.harness.style import ACCENT, GRAY, PAGE, panels
from experiments.stress.cells import SETTINGS, cells_of, measure

COUNTS = ["instances", "lower", "upper", "violations", "left_out"]


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the bounds tested, the violations and the width of the bounds, by family."""
    return [
        Finding(
            "Bounds compared with 60-digit arithmetic, violations, instances with directions excluded, the largest "
            "excess of a bound over its exact limit, and the median width of the bounds, by family",
            by_family(table),
        )
    ]


def by_family(table: pd.DataFrame) -> pd.DataFrame:
    """Return the counts, the smallest margin and the median width of each family."""
    groups = table.groupby("family")
    return groups[COUNTS].sum().join(groups.agg(worst=("worst", "max"), width=("median_width", "median")))


def check_bounds(table: pd.DataFrame) -> Outcome:
    """Pass if no bound is on the wrong side of the exact value."""
    totals = table[COUNTS].sum()
    wrong = table.loc[table["violations"] > 0, ["family", "which"]]
    lines = [
        f"{totals['instances']} instances, {totals['lower']} lower and {totals['upper']} upper bounds compared with "
        f"60-digit arithmetic: {totals['violations']} violations; on {totals['left_out']} instances directions were "
        "excluded, and lower bounds hold for the data without them",
        *(f"violated: {row.family}, {row.which}" for row in wrong.itertuples()),
    ]
    return Outcome("\n".join(lines), wrong.empty)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the median width of the bounds of each batch, one row per family; violations are marked."""
    families = sorted(table["family"].unique(), reverse=True)
    with panels(stem, 1, 1, 0.25 * len(families) + 0.8, width=0.7 * PAGE) as (_, axes):
        for i, family in enumerate(families):
            rows = table[table["family"] == family]
            widths = np.clip(rows["median_width"].dropna(), 1e-16, None)
            axes.plot(widths, np.full(len(widths), i), "|", color=GRAY, ms=7)
            if rows["violations"].sum():
                axes.text(1.0, i, f"{rows['violations'].sum()} violated", color=ACCENT, va="center", ha="right")
        axes.set_yticks(range(len(families)), [family.replace("_", " ") for family in families])
        axes.set(xscale="log", xlim=(1e-16, 2.0), xlabel="median width of the bounds in a batch, tolerance $10^{-9}$")


EXPERIMENT = Experiment("stress", cells_of, measure, draw, findings, SETTINGS, check=check_bounds)
