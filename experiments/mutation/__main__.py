"""Mutation testing: small changes of the library that the fast tests have to notice.

Run ``make mutation``, after ``make coverage``.  It fails where fewer than 85 % of the mutants are killed, without those
that ``explained.csv`` says to be equivalent to the code as it is.
"""

import argparse
import json
import zlib
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.harness.tables import write_table
from experiments.mutation.covering import Coverage, read_coverage
from experiments.mutation.operators import Mutant, mutants
from experiments.mutation.scores import is_killed, shares
from experiments.mutation.session import MutationRun, Outcome, Task, within_budget

ROOT = Path(__file__).parents[2]
PARTS = {
    "rounding": ["diffrac_cvx/rounding/*.py"],
    "metrics": ["diffrac_cvx/metrics.py"],
    "linear algebra": ["diffrac_cvx/points/linear_algebra.py", "diffrac_cvx/points/factors.py"],
    "penalty and result": ["diffrac_cvx/problem/penalty.py", "diffrac_cvx/problem/result.py"],
    "certificates": ["diffrac_cvx/certificates/*.py", "diffrac_cvx/problem/d*.py", "diffrac_cvx/problem/f*.py"],
    "low_rank": ["diffrac_cvx/solvers/factored/*.py"],
    "fista": ["diffrac_cvx/solvers/smoothed_dual/*.py"],
}
SAMPLE = 40  # mutants of a file
LEAST = 0.85  # share that has to be killed
DATA, REPORT = Path("build/coverage"), Path("build/tests.xml")  # of `make coverage`
EXPLAINED = Path(__file__).with_name("explained.csv")
TABLE = Path("figures/mutation.csv")
KEY = ["file", "function", "code", "change"]


def files_of(part: str) -> list[str]:
    """Return the files of a part, from the root of the project."""
    return sorted(str(path.relative_to(ROOT)) for pattern in PARTS[part] for path in ROOT.glob(pattern))


def sample_of(file: str, size: int) -> list[Mutant]:
    """Return a random sample of the mutants of a file, the same each time; a smaller one is the beginning of it."""
    found = mutants((ROOT / file).read_text(), file)
    order = np.random.default_rng([2017, zlib.crc32(file.encode())]).permutation(len(found))
    return [found[i] for i in order[:size]]


class LoggedRun(MutationRun):
    """A run that writes each outcome to a log, to be completed by a later one."""

    log = Path("build/mutation.log")

    def keep(self, outcome: Outcome) -> None:
        """Write an outcome."""
        super().keep(outcome)
        with self.log.open("a") as file:
            file.write(json.dumps(outcome) + "\n")


def read_log(log: Path) -> dict[Mutant, Outcome]:
    """Return the outcomes of an interrupted run."""
    lines = log.read_text().splitlines() if log.exists() else []
    outcomes = [Outcome(Mutant(*mutant), *rest) for mutant, *rest in map(json.loads, lines)]
    return {outcome.mutant: outcome for outcome in outcomes}


def known_before(path: Path) -> dict[Mutant, Outcome]:
    """Return the outcomes of the mutants that a table has as killed, and of those that are explained."""
    table, reasons = pd.read_csv(path, keep_default_na=False), explanations()
    rows = table[[*Mutant._fields, "verdict", "by", "tests"]].itertuples(index=False, name=None)
    outcomes = [Outcome(Mutant(*row[:-3]), *row[-3:]) for row in rows]
    return {
        outcome.mutant: outcome
        for outcome in outcomes
        if outcome.verdict.startswith("killed") or key_of(outcome.mutant) in reasons
    }


def run_mutants(
    chosen: Iterable[Mutant], known: Mapping[Mutant, Outcome], covered: Coverage, budget: float, jobs: int
) -> list[Outcome]:
    """Try the mutants that are not known, nor in the log, and return the outcomes of all."""
    chosen, known = list(chosen), {**known, **read_log(LoggedRun.log)}
    tasks = []
    for mutant in chosen:
        if mutant not in known:
            tests = covered.tests_of(mutant, (ROOT / mutant.file).read_text())
            tasks.append(Task(mutant, within_budget(tests, covered.seconds, budget)))
    run = LoggedRun(tasks, covered.seconds, jobs)
    files = sorted({test.partition("::")[0] for task in tasks for test in task.tests})
    status = (
        pytest.main(["-s", "-p", "no:cacheprovider", "-p", "no:faulthandler", *files], plugins=[run]) if tasks else 0
    )
    if status not in (0, 5):
        raise SystemExit(f"the tests could not be collected: pytest ended with {status}")
    found = {**known, **{outcome.mutant: outcome for outcome in run.outcomes}}
    return [found[mutant] for mutant in chosen]


def key_of(mutant: Mutant) -> tuple[str, ...]:
    """Return by what an explanation finds its mutant: lines may move."""
    return (mutant.file, mutant.function, mutant.code, mutant.change)


def explanations() -> dict[tuple[str, ...], str]:
    """Return why some mutants cannot be killed, by file, function, line of code, and change."""
    table = pd.read_csv(EXPLAINED, keep_default_na=False)
    return {tuple(row[:4]): row[4] for row in table[[*KEY, "reason"]].itertuples(index=False)}


def table_of(outcomes: Iterable[Outcome], sizes: Mapping[str, int]) -> pd.DataFrame:
    """Return the table of the mutants: what was changed, what became of it, and why where it was not killed."""
    part_of = {file: part for part in PARTS for file in files_of(part)}
    reasons = explanations()
    rows = []
    for mutant, verdict, by, tests in outcomes:
        killed = verdict.startswith("killed")
        rows.append(
            {
                "part": part_of[mutant.file],
                **mutant._asdict(),
                "of": sizes[mutant.file],
                "verdict": verdict,
                "by": by,
                "tests": tests,
                "reason": "" if killed else reasons.get(key_of(mutant), ""),
            }
        )
    order = list(part_of)
    return pd.DataFrame(sorted(rows, key=lambda row: (order.index(row["file"]), row["number"])))


def report(table: pd.DataFrame) -> bool:
    """Print the shares that were killed, and what survived unexplained; return whether the share is large enough."""
    for part, rows in table.groupby("part", sort=False):
        print(f"{part}: {words_of(rows)}")
    print(f"in all: {words_of(table)}")
    left = table[~is_killed(table) & (table["reason"] == "")]
    for row in left.itertuples():
        print(f"survived, not explained: {row.file}:{row.line} {row.function}: {row.change}")
    return shares(table)[1].value >= LEAST


def words_of(table: pd.DataFrame) -> str:
    """Return the counts and the shares of some mutants as text."""
    every, others = shares(table)
    equivalent = int((table["reason"] != "").sum())
    return (
        f"{int(is_killed(table).sum())} of {len(table)} killed, {every:.3f}; "
        f"without {equivalent} that change nothing, {others:.3f}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="mutants of a file")
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of tests a mutant")
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--again", action="store_true", help="only what the table has neither killed nor explained")
    values = parser.parse_args(arguments)
    files = [file for part in PARTS for file in files_of(part)]
    covered = read_coverage(DATA, REPORT, files, ROOT)
    samples = [sample_of(file, values.sample) for file in files]
    chosen = [mutant for row in zip_longest(*samples) for mutant in row if mutant is not None]  # each file in turn
    known = known_before(values.out) if values.again else {}
    outcomes = run_mutants(chosen, known, covered, values.budget, values.jobs)
    sizes = {file: len(mutants((ROOT / file).read_text(), file)) for file in files}
    table = table_of(outcomes, sizes)
    write_table(table, values.out)
    LoggedRun.log.unlink(missing_ok=True)
    return 0 if report(table) else 1


if __name__ == "__main__":
    raise SystemExit(main())
