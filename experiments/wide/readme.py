"""README passage on wide tables, from the table of ``make wide``."""

from typing import Any

import pandas as pd

from experiments.wide.cells import KINDS, USUAL
from experiments.wide.claims import at, by_method
from experiments.wide.methods import OWN
from experiments.wide.plot import format_markdown

SEARCHES = ("kurtosis", "pursuit")
OTHERS = ("k-means", "spectral", "first component", "sparse k-means", "IF-PCA", "sparse component")
SETTINGS: dict[str, dict[str, Any]] = {
    "5 columns, shift 2": {"k": 5, "shift": 2.0},
    "20": {},
    "20, of 5000": {"d": 5000},
    "20, heavy tails": {"noise": "heavy tails"},
    "60, shift 0.8": {"k": 60, "shift": 0.8},
    "200, shift 0.8": {"k": 200, "shift": 0.8},
    "20, independent, shift 0.8": {"noise": "independent", "shift": 0.8},
    "20, independent": {"noise": "independent"},
    "20, correlated in blocks": {"noise": "blocks"},
    "20, clusters of 30 and 70": {"share": 0.3},
    "60 words, shift 2": {"noise": "words", "k": 60, "shift": 2.0},
}


def passage(table: pd.DataFrame) -> str:
    """Return the figure, and the mean index of the methods on simulated tables and on real pairs of classes."""
    made = table[table["kind"] == "made"]
    parts = {name: by_method(at(made, **changed), "index").mean() for name, changed in SETTINGS.items()}
    for kind in KINDS:
        rows = table[table["kind"] == kind]
        if len(rows):
            pairs = by_method(rows, "index")
            parts[f"{len(pairs)} real pairs, {kind}"] = pairs.mean()
    means = pd.DataFrame(parts).T[[OWN, *OTHERS, *SEARCHES]]
    draws = made["replication"].nunique()
    usual = f"{USUAL['n']} x {USUAL['d']} with ten factors common to all columns"
    words = f"""![Adjusted Rand index over the shift, by method](figures/wide.png)

Mean adjusted Rand index; each method chooses its own parameters. The simulated tables are
{usual}; unless stated otherwise, the means of the two clusters
differ by a shift of {USUAL["shift"]:g} in 20 columns ({draws} replications). Real pairs are two classes of genes or
texts ([each pair](figures/wide.md)).

"""
    return words + format_markdown("columns that differ", means, "{:.2f}")
