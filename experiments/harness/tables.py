"""Tables on disk: written in one piece, read with their columns by their names of today."""

from pathlib import Path

import pandas as pd

DIGITS = 9  # significant digits kept in a table, fewer than rounding could disturb
FORMER_NAMES = {"lambda": "lam", "set": "data_set"}


def read_table(path: Path) -> pd.DataFrame:
    """Return a table; columns of older tables, named by words of Python, are renamed."""
    return pd.read_csv(path, low_memory=False).rename(columns=FORMER_NAMES)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table in one piece: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = table.map(lambda entry: float(f"{entry:.{DIGITS}g}") if isinstance(entry, float) else entry)
    part = path.with_suffix(path.suffix + ".part")
    rounded.to_csv(part, index=False, lineterminator="\n")
    part.replace(path)
