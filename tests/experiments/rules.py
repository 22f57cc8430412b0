"""Rules of the verdicts: each is tested on tables constructed for its answers."""

import pandas as pd
import pytest

from experiments.harness.findings import Verdict
from experiments.harness.intervals import Interval

AGREES, PARTLY, DIFFERS, VACUOUS, NOT_COMPARABLE, NOT_TESTED = Verdict


def frame(rows=None, **columns):
    """Return a table with the given columns, one entry a row; a single entry is one row. `rows` names the rows."""
    listed = {name: entry if isinstance(entry, list) else [entry] for name, entry in columns.items()}
    longest = max([0 if rows is None else len(rows), *map(len, listed.values())])
    filled = {name: entry * longest if len(entry) == 1 and longest else entry for name, entry in listed.items()}
    table = pd.DataFrame({name: pd.Series(entry, dtype=object) for name, entry in filled.items()})
    return table if rows is None else table.set_axis(rows)


def within(low, high):
    """Return an interval, with its value in the middle."""
    return Interval((low + high) / 2, low, high)


def each_answer(rules):
    """Run a test with every rule at every entry of its answers.

    The key is the sentence tested; the value is a function from the parameters of a table to a claim, and pairs of such
    parameters (a tuple or keywords) and the verdict.
    """
    cases = [
        pytest.param(rule, given, verdict, id=f"{sentence}-{verdict.value}")
        for sentence, (rule, *answers) in rules.items()
        for given, verdict in answers
    ]
    return pytest.mark.parametrize(("rule", "given", "verdict"), cases)


def verdict_of(rule, given):
    """Return the verdict of a rule on the table with given parameters."""
    return (rule(**given) if isinstance(given, dict) else rule(*given)).verdict
