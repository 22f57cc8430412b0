"""Scores of mutation testing by mutmut, without the mutants that ``explained.csv`` lists as equivalent to the code.

Run ``make mutation``, or ``make mutation MUTANTS='diffrac_cvx.certificates.proof.*'`` for some functions.  It fails if
fewer than 95 % of the mutants that were run, and are not explained, are killed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd

from experiments.harness.intervals import Interval, proportion_of
from experiments.harness.tables import write_table

MUTANTS, TABLE = Path("mutants"), Path("figures/mutation.csv")  # of mutmut, and of this module
EXPLAINED = Path(__file__).with_name("explained.csv")
KEY = ["file", "code", "changed"]
MIN_SCORE = 0.95  # fraction that must be killed
SURVIVED, NO_TESTS = (0,), (5, 33)  # exit codes of mutmut; None: not run, others: a test failed, or ran too long


def is_killed(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the mutants detected by a test or a limit."""
    return table["verdict"].str.startswith("killed")


def scored(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the killed mutants, without those explained as equivalent to the original code."""
    return is_killed(table)[table["reason"] == ""]


def mutation_scores(table: pd.DataFrame) -> tuple[Interval, Interval]:
    """Return the fraction killed of all mutants, and of those that are not equivalent, with Wilson's intervals."""
    return proportion_of(is_killed(table).to_numpy()), proportion_of(scored(table).to_numpy())


def read_results(folder: Path) -> pd.DataFrame:
    """Return one row for each mutant that mutmut has run; of a survivor, the changed line too."""
    rows = []
    for path in sorted(folder.rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        file = path.relative_to(folder).with_suffix("")
        part = file.parts[1] if len(file.parts) > 2 else "files of the package itself"
        for name, code in codes.items():
            if code is not None:
                verdict = "survived" if code in SURVIVED else "not run by a test" if code in NO_TESTS else "killed"
                row = {"part": part, "file": str(file), "mutant": name, "of": len(codes), "verdict": verdict}
                rows.append(row | (read_change(name) if verdict == "survived" else {}))
    return pd.DataFrame(rows, columns=["part", *KEY, "mutant", "of", "verdict"])


def read_change(mutant: str) -> dict[str, str]:
    """Return the first line that a mutant changes, before and after, from the difference that mutmut shows."""
    shown = subprocess.run([sys.executable, "-m", "mutmut", "show", mutant], capture_output=True, text=True, check=True)
    return changed_line(shown.stdout)


def changed_line(difference: str) -> dict[str, str]:
    """Return the first removed and the first added line of a unified difference."""
    lines = difference.partition("\n@@")[2].splitlines()
    first = {sign: next((line[1:].strip() for line in lines if line.startswith(sign)), "") for sign in "-+"}
    return {"code": first["-"], "changed": first["+"]}


def explain(table: pd.DataFrame) -> pd.DataFrame:
    """Add the reasons why surviving mutants cannot be killed, if known."""
    known = pd.read_csv(EXPLAINED, keep_default_na=False)
    reasons = dict(zip(known[KEY].itertuples(index=False, name=None), known["reason"], strict=True))
    found = [reasons.get(key, "") for key in table[KEY].itertuples(index=False, name=None)]
    return table.assign(reason=pd.Series(found, table.index, dtype=object).where(~is_killed(table), ""))


def main() -> int:
    """Write the table, print the scores by part and the survivors without a reason, and return the exit status."""
    table = explain(read_results(MUTANTS))
    write_table(table, TABLE)
    for part, rows in [*table.groupby("part", sort=False), ("in all", table)]:
        of_all, of_others = mutation_scores(rows)
        print(f"{part}: {of_all} of {len(rows)} killed; without equivalent ones {of_others}")
    for row in table[(table["verdict"] == "survived") & (table["reason"] == "")].itertuples():
        print(f"survived, not explained: {row.file}: {row.code} -> {row.changed}")
    score = mutation_scores(table)[1].value
    print(f"{score:.1%} of the mutants are killed; required: {MIN_SCORE:.0%}")
    return 0 if score >= MIN_SCORE else 1


if __name__ == "__main__":
    raise SystemExit(main())
