"""Mutation testing: small changes of the library that the fast tests have to detect, after ``make coverage``.

It fails if fewer than 85 % of the mutants are killed, excluding those that ``explained.csv`` lists as equivalent to
the original code.  ``--part NAME`` tests the files of one part only.
"""

import zlib
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.harness.claims import Finding
from experiments.harness.command import Experiment, Outcome
from experiments.harness.sweep import Cell, Row
from experiments.mutation.covering import choose_tests, read_seconds
from experiments.mutation.operators import Mutant, mutants
from experiments.mutation.scores import is_killed, mutation_scores
from experiments.mutation.trial import ROOT, first_failure

PARTS = {
    "rounding": ["diffrac_cvx/rounding/*.py"],
    "metrics": ["diffrac_cvx/metrics.py"],
    "linear algebra": ["diffrac_cvx/points/linear_algebra.py", "diffrac_cvx/points/factors.py"],
    "penalties": ["diffrac_cvx/problem/penalty.py", "diffrac_cvx/problem/penalties/*.py"],
    "result": ["diffrac_cvx/problem/result.py", "diffrac_cvx/problem/gradient.py"],
    "certificates": ["diffrac_cvx/certificates/*.py", "diffrac_cvx/problem/direction_problem.py"],
    "optimal labels": ["diffrac_cvx/points/constraints.py", "diffrac_cvx/solvers/exact/*.py"],
    "low_rank": ["diffrac_cvx/solvers/factored/*.py"],
    "fista": ["diffrac_cvx/solvers/smoothed_dual.py"],
}
SAMPLES = {"full": 8, "smoke": 1}  # mutants of a file
MIN_SCORE = 0.85  # fraction that must be killed
EXPLAINED = Path(__file__).with_name("explained.csv")
KEY = ["file", "function", "code", "change"]


def files_of(part: str) -> list[str]:
    """Return the files of a part, relative to the root of the project."""
    return sorted(str(path.relative_to(ROOT)) for pattern in PARTS[part] for path in ROOT.glob(pattern))


@cache
def mutants_of(file: str) -> list[Mutant]:
    """Return the mutants of a file."""
    return mutants((ROOT / file).read_text())


def sample_of(file: str, size: int) -> list[Mutant]:
    """Return a fixed random sample of the mutants of a file; a smaller sample is a prefix of a larger one."""
    found = mutants_of(file)
    order = np.random.default_rng([2017, zlib.crc32(file.encode())]).permutation(len(found))
    return [found[i] for i in order[:size]]


def cells_of(grid: str, parts: tuple[str, ...] = tuple(PARTS)) -> list[Cell]:
    """Return the mutants to test, in the order of the files and of their text."""
    read_seconds()  # fail on missing data before anything is tested
    return [
        {"part": part, "file": file, **mutant._asdict(), "of": len(mutants_of(file))}
        for part in parts
        for file in files_of(part)
        for mutant in sorted(sample_of(file, SAMPLES[grid]), key=lambda mutant: mutant.number)
    ]


def measure(file: str, line: int, number: int, **about: object) -> Row:
    """Test a mutant: its verdict, the test that killed it, and the number of tests available."""
    tests = choose_tests(file, line, [other for part in PARTS for other in files_of(part)])
    left = {test: read_seconds()[test] for test in tests}
    while left:
        failed = first_failure(left, file, number)
        if not failed:
            return {"verdict": "survived", "by": "", "tests": len(tests)}
        if failed not in left:
            return {"verdict": f"killed: {failed}", "by": "", "tests": len(tests)}
        if is_steady(failed):
            return {"verdict": "killed", "by": failed, "tests": len(tests)}
        del left[failed]
    return {"verdict": "not run by a test", "by": "", "tests": 0}


@cache
def is_steady(test: str) -> bool:
    """Return whether a test passes on the original code."""
    return not first_failure({test: read_seconds()[test]}, "", None)


def explain(table: pd.DataFrame) -> pd.DataFrame:
    """Add the reasons why surviving mutants cannot be killed, if known; line numbers may differ."""
    known = pd.read_csv(EXPLAINED, keep_default_na=False)
    reasons = dict(zip(known[KEY].itertuples(index=False, name=None), known["reason"], strict=True))
    keys = table[KEY].itertuples(index=False, name=None)
    found = pd.Series([reasons.get(key, "") for key in keys], index=table.index, dtype=object)
    return table.assign(reason=found.where(~is_killed(table), ""))


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the fractions killed, and the unexplained survivors."""
    table = table.fillna({"reason": ""})
    groups = [*table.groupby("part", sort=False), ("in all", table)]
    found = [Finding(str(part), describe(rows)) for part, rows in groups]
    left = table[~is_killed(table) & (table["reason"] == "")].fillna("")
    places = left["file"] + ":" + left["line"].astype(str) + " " + left["function"] + ": " + left["change"]
    return [*found, *(Finding("survived, not explained", place) for place in places)]


def describe(table: pd.DataFrame) -> str:
    """Format the counts and the fractions killed of some mutants."""
    of_all, of_others = mutation_scores(table)
    killed, equivalent = int(is_killed(table).sum()), int((table["reason"] != "").sum())
    return f"{killed} of {len(table)} killed, {of_all:.3f}; without {equivalent} equivalent ones, {of_others:.3f}"


def check(table: pd.DataFrame) -> Outcome:
    """Return whether enough mutants are killed."""
    score = mutation_scores(table.fillna({"reason": ""}))[1].value
    return Outcome(f"{score:.1%} of the mutants are killed; required: {MIN_SCORE:.0%}", score >= MIN_SCORE)


def of_part(part: str) -> Experiment:
    """Return the experiment on the files of one part, or of all."""
    return EXPERIMENT if not part else replace(EXPERIMENT, cells=partial(cells_of, parts=(part,)))


EXPERIMENT = Experiment(
    "mutation",
    cells_of,
    measure,
    None,
    claims,
    complete=explain,
    check=check,
    options={"part": {"choices": ("", *PARTS), "default": "", "help": "test only the files of this part"}},
    variant=of_part,
)
