"""What the adversarial instances show: bounds tried, those that do not hold, the closest call of each family."""

import pandas as pd

from experiments.harness import Finding, Outcome


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return what was measured."""
    words = []
    for family, rows in table.groupby("family"):
        words.append(f"{str(family).replace('_', ' ')} {rows['worst'].max():.0e}, {rows['median_width'].median():.0e}")
    return [
        Finding(
            "by how much the closest bound clears the exact value (negative: on the right side), and the median bracket",
            "; ".join(words) + ".",
        )
    ]


def check_bounds(table: pd.DataFrame) -> Outcome:
    """Pass where no bound is on the wrong side of the exact value."""
    totals = table[["instances", "lower", "upper", "violations", "left_out"]].sum()
    wrong = table.loc[table["violations"] > 0, ["family", "which"]]
    lines = [
        f"{totals['instances']} instances, {totals['lower']} lower and {totals['upper']} upper bounds held against sixty "
        f"digits: {totals['violations']} violations; on {totals['left_out']} instances directions were left out, and "
        "lower bounds are those of data without them",
        *(f"violated: {row.family}, {row.which}" for row in wrong.itertuples()),
    ]
    return Outcome("\n".join(lines), wrong.empty)
