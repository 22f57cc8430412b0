"""Findings on adversarial instances, and a check that no bound is on the wrong side of the exact value."""

import pandas as pd

from experiments.harness.command import Outcome
from experiments.harness.findings import Finding

COUNTS = ["instances", "lower", "upper", "violations", "left_out"]


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the bounds tested, the violations and the width of the bounds, by family."""
    groups = table.groupby("family")
    return [
        Finding(
            "Bounds compared with 60-digit arithmetic, violations, instances with directions excluded, the largest "
            "excess of a bound over its exact limit, and the median width of the bounds, by family",
            groups[COUNTS].sum().join(groups.agg(worst=("worst", "max"), width=("median_width", "median"))),
        )
    ]


def check(table: pd.DataFrame) -> Outcome:
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
