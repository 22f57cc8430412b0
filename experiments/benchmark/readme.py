"""README passage on the benchmark, from its table."""

import pandas as pd

from experiments.benchmark.claims import CVXPY, ahead, reached
from experiments.benchmark.table import label_of, of_instance

INSTANCE = "planted 1000 x 50, 0.01"


def passage(table: pd.DataFrame) -> str:
    """Return the table of one instance and a summary of all instances."""
    found = [reached(table), ahead(table, CVXPY)]
    words = "\n".join(f"- {claim.statement[0].upper()}{claim.statement[1:]}: {claim.measured}" for claim in found)
    sizes = f"{table['instance'].nunique()} instances"
    return (
        f"{label_of(INSTANCE)}:\n\n{of_instance(table, INSTANCE).markdown()}\n\nOn all {sizes}:\n\n{words}\n\n"
        "![Time to two relative gaps, by instance and method](figures/benchmark.png)\n"
    )
