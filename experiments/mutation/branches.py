"""Coverage of the library by the fast tests: statements and branches, by folder.

Run ``make coverage``.  It fails if less than 95 % of the statements and branches, or of branches alone, are covered.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from experiments.harness.tables import write_table

REPORT = Path("build/branches.json")  # of coverage.py
TABLE = Path("figures/coverage.csv")
MIN_COVERAGE = 0.95
COUNTS = {
    "statements": "num_statements",
    "statements_run": "covered_lines",
    "branches": "num_branches",
    "branches_run": "covered_branches",
}


def table_of(report: Path) -> pd.DataFrame:
    """Return the counts of each folder of the package; files of the package itself count as a folder."""
    rows = []
    for name, file in json.loads(report.read_text())["files"].items():
        parts = Path(name).parts
        folder = parts[1] if len(parts) > 2 else "files of the package itself"
        rows.append({"folder": folder, **{count: file["summary"][key] for count, key in COUNTS.items()}})
    return pd.DataFrame(rows).groupby("folder", as_index=False).sum()


def shares_of(counts: pd.Series) -> tuple[float, float]:
    """Return the coverage of statements and branches, and of branches alone."""
    both = (counts["statements_run"] + counts["branches_run"]) / (counts["statements"] + counts["branches"])
    return float(both), float(counts["branches_run"] / max(counts["branches"], 1))


def check_coverage(table: pd.DataFrame) -> bool:
    """Print the coverage, and return whether that of the package is sufficient."""
    for row in table.to_dict("records"):
        both, branches = shares_of(pd.Series(row))
        print(f"{row['folder']}: {both:.1%} of statements and branches, {branches:.1%} of branches")
    both, branches = shares_of(table[list(COUNTS)].sum())
    print(f"total: {both:.1%} of statements and branches, {branches:.1%} of branches; required: {MIN_COVERAGE:.0%}")
    return min(both, branches) >= MIN_COVERAGE


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--out", type=Path, default=TABLE)
    values = parser.parse_args(arguments)
    table = table_of(values.report)
    write_table(table, values.out)
    return 0 if check_coverage(table) else 1


if __name__ == "__main__":
    raise SystemExit(main())
