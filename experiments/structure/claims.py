"""What the experiment on the structure test shows; the paper has no such test, and states nothing of it."""

import numpy as np
import pandas as pd

from experiments.harness.claims import Finding
from experiments.harness.intervals import Interval, proportion_of
from experiments.structure.cells import DRAWS, GROUPS, NONE, D, N

LEVEL = 0.05
TITLE = "Is there a structure"
ABOUT = (
    f"Tables of {N} points and {D} standardised columns, {DRAWS} draws for each p-value, no l1 part. Tests: the cost of the "
    "split against columns permuted by themselves and against rotated points (`structure_test`), with a ridge of 0.3 "
    "and without; SigClust with the sample's eigenvalues; the gap statistic of two clusters against one, in the box of the "
    "principal components; Hartigan's dip of the first component, and of the score that `DiffracClustering` finds."
)
TESTS = {  # columns of the table, and what they are called
    "columns_ridge": "columns",
    "covariance_ridge": "covariance",
    "columns_none": "columns, no ridge",
    "covariance_none": "covariance, no ridge",
    "sigclust": "SigClust",
    "gap": "gap statistic",
    "dip of the first component": "dip of the first component",
    "dip of the score": "dip of the score",
}
VALID = {  # families without groups for which a null is true
    "columns": ("normal", "heavy tails", "two values", "wide"),
    "covariance": ("normal", "common factor", "wide"),
}


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return what was found."""
    return [calibration(table), elsewhere(table), power(table), of_score(table)]


def rejected(rows: pd.DataFrame, test: str) -> Interval:
    """Return the share of tables in which a test finds a structure, with its interval."""
    p = rows[f"p_{test}"].dropna().to_numpy()
    return proportion_of(p <= LEVEL + 1e-9)


def in_percent(proportion: Interval) -> str:
    """Return a share in per cent, with its interval."""
    return f"{100 * proportion.value:.0f} % ({100 * proportion.low:.0f} to {100 * proportion.high:.0f} %)"


def of_null(table: pd.DataFrame, valid: bool) -> dict[str, Interval]:
    """Return how often each null is rejected without groups, in the families for which it is true, or not."""
    return {
        f"{null}, {family}": rejected(table[table["family"] == family], f"{null}_ridge")
        for null, families in VALID.items()
        for family in NONE
        if (family in families) == valid
    }


def calibration(table: pd.DataFrame) -> Finding:
    """How often a null that is true is rejected."""
    proportions = of_null(table, True)
    held = all(proportion.low <= LEVEL for proportion in proportions.values())
    return Finding(
        f"where the null is true, p is at most {LEVEL:g} in that share of the tables",
        "; ".join(f"{name} {in_percent(share)}" for name, share in proportions.items())
        + (". No interval lies above it." if held else ". **Some intervals lie above it.**"),
    )


def elsewhere(table: pd.DataFrame) -> Finding:
    """How often each null is rejected where there are no groups, and it is not true."""
    return Finding(
        "without groups, but where the null is not true",
        "; ".join(f"{name} {in_percent(proportion)}" for name, proportion in of_null(table, False).items()) + ".",
        "A column of two values is two groups; heavy tails make the covariance null conservative.",
    )


def power(table: pd.DataFrame) -> Finding:
    """The least strength at which each test finds groups more often than not."""
    parts = []
    for family in GROUPS:
        rows = table[table["family"] == family]
        found = {name: least_strength(rows, test) for test, name in TESTS.items() if test != "dip of the score"}
        parts.append(f"{family}: " + ", ".join(f"{name} {strength}" for name, strength in found.items()))
    return Finding("strength of the groups from which a test finds them in half of the tables", "; ".join(parts) + ".")


def least_strength(rows: pd.DataFrame, test: str) -> str:
    """Return the least strength from which on at least half of the tables are found, in words."""
    rates = [(float(str(strength)), rejected(part, test).value) for strength, part in rows.groupby("strength")]
    below = [strength for strength, rate in rates if rate < 0.5]
    above = [strength for strength, _ in rates if strength > max(below, default=-np.inf)]
    return f"{above[0]:g}" if above else "none"


def of_score(table: pd.DataFrame) -> Finding:
    """Why the dip of the score that was found is no test."""
    parts = [
        f"{family} {in_percent(rejected(table[table['family'] == family], 'dip of the score'))}" for family in NONE
    ]
    return Finding(
        "the dip of the score that a clustering finds rejects without groups",
        "; ".join(parts) + ".",
        "The score was chosen to fall in two parts, so that the dip's own table is not valid for it.",
    )
