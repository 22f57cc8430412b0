"""What a table of mutants says: which were killed, which cannot be, and the share."""

import pandas as pd

from experiments.harness.intervals import Interval, proportion_of


def is_killed(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return which mutants a test or a limit noticed."""
    return table["verdict"].str.startswith("killed")


def scored(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return which mutants were killed, of those that are not explained as equivalent to the code as it is."""
    return is_killed(table)[table["reason"] == ""]


def mutation_scores(table: pd.DataFrame) -> tuple[Interval, Interval]:
    """Return the share killed of all mutants, and of those that are not equivalent, with Wilson's intervals."""
    return proportion_of(is_killed(table).to_numpy()), proportion_of(scored(table).to_numpy())
