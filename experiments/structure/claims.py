"""Findings on the structure test; the paper has no such test and makes no statement about it."""

import numpy as np
import pandas as pd

from experiments.harness.claims import Finding
from experiments.harness.intervals import Interval, proportion_of
from experiments.structure.cells import DRAWS, GROUPS, NONE, D, N

LEVEL = 0.05
TITLE = "Structure test"
ABOUT = (
    f"Tables of {N} points and {D} standardised columns, {DRAWS} null data sets for each p-value, no l1 penalty. Tests: the cost of "
    "the partition against independently permuted columns and against rotated points (`structure_test`), with a ridge of 0.3 and "
    "without; SigClust with the sample's eigenvalues; the gap statistic of two clusters against one, in the bounding box of the "
    "principal components; Hartigan's dip of the first component, and of the decision function of `DiffracClustering`."
)
TESTS = {  # columns of the table, and their labels
    "columns_ridge": "columns",
    "covariance_ridge": "covariance",
    "columns_none": "columns, no ridge",
    "covariance_none": "covariance, no ridge",
    "sigclust": "SigClust",
    "gap": "gap statistic",
    "dip of the first component": "dip of the first component",
    "dip of the score": "dip of the decision function",
}
VALID = {  # families without groups for which a null hypothesis is true
    "columns": ("normal", "heavy tails", "two values", "wide"),
    "covariance": ("normal", "common factor", "wide"),
}


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    return [calibration(table), elsewhere(table), power(table), of_score(table)]


def rejected(rows: pd.DataFrame, test: str) -> Interval:
    """Return the proportion of tables in which a test rejects, with its interval."""
    p = rows[f"p_{test}"].dropna().to_numpy()
    return proportion_of(p <= LEVEL + 1e-9)


def in_percent(proportion: Interval) -> str:
    """Format a proportion and its interval in per cent."""
    return f"{100 * proportion.value:.0f} % ({100 * proportion.low:.0f} to {100 * proportion.high:.0f} %)"


def of_null(table: pd.DataFrame, valid: bool) -> dict[str, Interval]:
    """Return how often each null hypothesis is rejected without groups, in families for which it is true or false."""
    return {
        f"{null}, {family}": rejected(table[table["family"] == family], f"{null}_ridge")
        for null, families in VALID.items()
        for family in NONE
        if (family in families) == valid
    }


def calibration(table: pd.DataFrame) -> Finding:
    """Rejection rate of true null hypotheses."""
    proportions = of_null(table, True)
    held = all(proportion.low <= LEVEL for proportion in proportions.values())
    return Finding(
        f"false positive rate: proportion of tables with p at most {LEVEL:g} if the null hypothesis is true",
        "; ".join(f"{name} {in_percent(share)}" for name, share in proportions.items())
        + (". No interval lies above it." if held else ". **Some intervals lie above it.**"),
    )


def elsewhere(table: pd.DataFrame) -> Finding:
    """Rejection rate without groups if the null hypothesis is not true."""
    return Finding(
        "rejection rate without groups if the null hypothesis is not true",
        "; ".join(f"{name} {in_percent(proportion)}" for name, proportion in of_null(table, False).items()) + ".",
        "A column of two values is itself two groups; heavy tails make the covariance test conservative.",
    )


def power(table: pd.DataFrame) -> Finding:
    """Smallest strength of the groups at which each test has a power of one half."""
    parts = []
    for family in GROUPS:
        rows = table[table["family"] == family]
        found = {name: least_strength(rows, test) for test, name in TESTS.items() if test != "dip of the score"}
        parts.append(f"{family}: " + ", ".join(f"{name} {strength}" for name, strength in found.items()))
    return Finding("strength of the groups from which the power of a test is at least 50 %", "; ".join(parts) + ".")


def least_strength(rows: pd.DataFrame, test: str) -> str:
    """Format the smallest strength from which on a test rejects in at least half of the tables."""
    rates = [(float(str(strength)), rejected(part, test).value) for strength, part in rows.groupby("strength")]
    below = [strength for strength, rate in rates if rate < 0.5]
    above = [strength for strength, _ in rates if strength > max(below, default=-np.inf)]
    return f"{above[0]:g}" if above else "none"


def of_score(table: pd.DataFrame) -> Finding:
    """Why the dip of the fitted decision function is not a valid test."""
    parts = [
        f"{family} {in_percent(rejected(table[table['family'] == family], 'dip of the score'))}" for family in NONE
    ]
    return Finding(
        "the dip test of the fitted decision function rejects without groups",
        "; ".join(parts) + ".",
        "The decision function was fitted to be bimodal, so the null distribution of the dip is not valid for it.",
    )
