"""Findings on more than two clusters; the paper states no number for them."""

import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.claims import Finding
from experiments.many_clusters.cells import METHODS, STARTS

TITLE = "More than two clusters"
ABOUT = (
    "Adjusted Rand index of `DiffracClustering(n_clusters=K)` with its default penalty and both strategies, of k-means "
    f"and of a Gaussian mixture ({STARTS} starts each), K known, all on standardised columns."
)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean adjusted Rand index, one row per set and one column per method."""
    by_set = table.groupby(["data", "method"], sort=False)["adjusted_rand"].mean().unstack("method")
    return by_set.reindex(columns=list(METHODS)).loc[list(dict.fromkeys(table["data"]))]


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    return [overall(table, "planted classes", True), overall(table, "real sets", False), proved(table)]


def overall(table: pd.DataFrame, name: str, planted: bool) -> Finding:
    """Compare the methods by their mean over sets."""
    by_set = means(table)
    chosen = by_set[by_set.index.str.startswith("planted") == planted]
    if chosen.empty:
        return Finding(f"mean adjusted Rand index over {name}", "not measured.")
    words = ", ".join(f"{method} {value:.2f}" for method, value in chosen.mean().items())
    return Finding(f"mean adjusted Rand index over the {len(chosen)} {name}", f"{words}.")


def proved(table: pd.DataFrame) -> Finding:
    """Summarise the certified optimality gap of the partitions found by the joint strategy."""
    rows = table[table["method"] == "together"]
    gaps = rows["cost"] - rows["lower"]
    words = f"median {format_upper(gaps.median())}, from {format_upper(gaps.min())} to {format_upper(gaps.max())} of at most 1."
    return Finding("certified optimality gap of the partition into K clusters", words)
