"""Findings on the adversarial instances: bounds tested, violations, and the smallest margin of each family."""

import pandas as pd

from experiments.harness import Finding, Outcome


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    words = []
    for family, rows in table.groupby("family"):
        words.append(f"{str(family).replace('_', ' ')} {rows['worst'].max():.0e}, {rows['median_width'].median():.0e}")
    return [
        Finding(
            "smallest margin of a bound to the exact value (negative: on the right side), and median width of the bounds",
            "; ".join(words) + ".",
        )
    ]


def check_bounds(table: pd.DataFrame) -> Outcome:
    """Pass if no bound is on the wrong side of the exact value."""
    totals = table[["instances", "lower", "upper", "violations", "left_out"]].sum()
    wrong = table.loc[table["violations"] > 0, ["family", "which"]]
    lines = [
        f"{totals['instances']} instances, {totals['lower']} lower and {totals['upper']} upper bounds compared with "
        f"60-digit arithmetic: {totals['violations']} violations; on {totals['left_out']} instances directions were "
        "excluded, and lower bounds hold for the data without them",
        *(f"violated: {row.family}, {row.which}" for row in wrong.itertuples()),
    ]
    return Outcome("\n".join(lines), wrong.empty)
