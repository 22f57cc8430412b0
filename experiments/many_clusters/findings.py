"""Findings on more than two clusters; the paper states no number for them."""

import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.findings import Finding, one_row
from experiments.many_clusters.cells import METHODS, STARTS

TITLE = "More than two clusters"
ABOUT = (
    "`DiffracClustering(n_clusters=K)` with its default penalty, k-means and a Gaussian mixture "
    f"({STARTS} starts each); K known, standardised columns."
)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean adjusted Rand index, one row per set and one column per method."""
    by_set = table.groupby(["data", "method"], sort=False)["adjusted_rand"].mean().unstack("method")
    return by_set.reindex(columns=list(METHODS)).loc[list(dict.fromkeys(table["data"]))]


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the mean index of each method, and the certified optimality gap of the estimator."""
    by_set = means(table)
    kind = pd.Index(["planted classes" if str(name).startswith("planted") else "real sets" for name in by_set.index])
    rows = table[table["method"] == "DiffracClustering"]
    gaps = (rows["cost"] - rows["lower"]).quantile([0.0, 0.5, 1.0]).map(format_upper)
    return [
        Finding("Mean adjusted Rand index over the sets", by_set.groupby(kind.rename("data")).mean()),
        Finding(
            "Certified optimality gap of the partition of the estimator, of at most 1",
            one_row(median=gaps[0.5], smallest=gaps[0.0], largest=gaps[1.0]),
        ),
    ]
