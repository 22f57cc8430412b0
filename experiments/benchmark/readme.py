"""Write what the README says of the benchmark from its table.

Run ``make reproduction`` after ``make benchmark``.
"""

from pathlib import Path

import pandas as pd

from diffrac_cvx.writing import write_text
from experiments.benchmark.claims import CVXPY, ahead, reached
from experiments.benchmark.table import label_of, of_instance

README, TABLE = Path("README.md"), Path("figures/benchmark.csv")
BEGIN, END = "<!-- from figures/benchmark.csv -->\n", "<!-- end -->\n"
INSTANCE = "planted 1000 x 50, 0.01"


def with_benchmark(text: str, table: pd.DataFrame) -> str:
    """Return the README with what it says between its two marks made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + passage(table) + END + after


def passage(table: pd.DataFrame) -> str:
    """Return one instance's table, and what all instances show."""
    found = [reached(table), ahead(table, CVXPY)]
    words = "\n".join(f"- {claim.says[0].upper()}{claim.says[1:]}: {claim.measured}" for claim in found)
    sizes = f"{table['instance'].nunique()} instances"
    return (
        f"{label_of(INSTANCE)}:\n\n{of_instance(table, INSTANCE).markdown()}\n\nOn all {sizes}:\n\n{words}\n\n"
        "![Seconds to two relative gaps, by instance and method](figures/benchmark.png)\n"
    )


if __name__ == "__main__":
    if TABLE.exists():
        write_text(README, with_benchmark(README.read_text(encoding="utf-8"), pd.read_csv(TABLE)))
        print(f"wrote {README}")
