"""Scores of a table of mutants: killed, equivalent, and the fraction killed."""

import pandas as pd

from experiments.harness.intervals import Interval, proportion_of


def is_killed(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the mutants detected by a test or a limit."""
    return table["verdict"].str.startswith("killed")


def scored(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the killed mutants, without those explained as equivalent to the original code."""
    return is_killed(table)[table["reason"] == ""]


def mutation_scores(table: pd.DataFrame) -> tuple[Interval, Interval]:
    """Return the fraction killed of all mutants, and of those that are not equivalent, with Wilson's intervals."""
    return proportion_of(is_killed(table).to_numpy()), proportion_of(scored(table).to_numpy())
