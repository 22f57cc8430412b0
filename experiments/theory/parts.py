"""The parts of the theory's table, each with its own columns."""

import pandas as pd

from experiments.harness.intervals import Interval


def split_parts(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the table of each part with its own columns, whole numbers as integers again."""
    found = {}
    for name, part in table.groupby("part"):
        part = part.dropna(axis=1, how="all")
        whole = [name for name, values in part.items() if values.dtype == float and (values == values.round()).all()]
        found[str(name)] = part.astype(dict.fromkeys(whole, int)).reset_index(drop=True)
    return found


def percent(share: Interval) -> str:
    """Return a share in percent with its interval."""
    if share.value != share.value:
        return "none"
    return f"{100 * share.value:.0f} % ({100 * max(share.low, 0.0):.0f} to {100 * min(share.high, 1.0):.0f})"
