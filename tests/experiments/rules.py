"""Rules of the verdicts: each is tested on tables constructed for its answers."""

import pandas as pd

from experiments.harness.findings import Verdict, shares
from experiments.harness.intervals import Interval

AGREES, STRONGER, PARTLY, DIFFERS, VACUOUS, NOT_COMPARABLE, NOT_TESTED = Verdict


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


def on_share(row, agrees, partly, differs):
    """Tables with so many successes of 40 in a row, with 11 instances, and without the row; and their verdicts."""
    counts = {AGREES: agrees, PARTLY: partly, DIFFERS: differs}
    made = [(shares({row: [1] * count + [0] * (40 - count)}), verdict) for verdict, count in counts.items()]
    return [*made, (shares({row: [1] * 11}), NOT_TESTED), (shares({"another": [1] * 40}), NOT_TESTED)]
