"""The data of a command: a user's file, or a data set by its name."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.datasets.tables import Table, read_table
from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import inverse_or_one

KNOWN = (*datasets.names(), *datasets.names("extra"))


def table_of(file: str, label: str | None, drop: Sequence[str] | None, missing: str) -> Table:
    """Return the table in a file; the name of a two-class data set will do where there is no such file."""
    if file in KNOWN and not Path(file).exists():
        X, y = datasets.load(file)
        names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
        return Table(X, names, np.where(y > 0, "+1", "-1"), ("+1", "-1"), np.arange(len(X)))
    try:
        return read_table(file, label, drop=tuple(drop or ()), missing=missing)
    except DataError as error:
        if "is not a file" in str(error) and not Path(file).suffix:
            raise DataError(f"{error}; the data sets by name are {', '.join(KNOWN)}") from None
        raise


def scaled(X: Array, raw: bool) -> Array:
    """Return centred columns, of unit variance unless their own scales are asked for; constant ones are 0."""
    varies = np.ptp(X, axis=0) > 0
    unit = np.ones(X.shape[1]) if raw else inverse_or_one(np.where(varies, X.std(axis=0), 0.0))
    return np.where(varies, (X - X.mean(axis=0)) * unit, 0.0)


def reading_of(file: str, label: str | None, drop: Sequence[str] | None, missing: str) -> str:
    """Return the line of Python that reads what `table_of` read."""
    if file in KNOWN and not Path(file).exists():
        return f"X, y = dc.datasets.load({file!r})"
    return f"X = read_table({file!r}, {label!r}, drop={list(drop or [])!r}, missing={missing!r}).X"
