"""The data of a command: a user's file, or a data set by its name."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.datasets.tables import Table, read_table
from diffrac_cvx.errors import DataError

NAMES = (*datasets.names(), *datasets.names("extra"))


def is_name(file: str) -> bool:
    """Whether it is the name of a two-class data set and not that of a file."""
    return file in NAMES and not Path(file).exists()


def load_table(file: str, label: str | None, drop: Sequence[str] | None, missing: str) -> Table:
    """Return the table in a file, or a two-class data set by its name where there is no such file."""
    if is_name(file):
        X, y = datasets.load(file)
        names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
        return Table(X, names, np.where(y > 0, "+1", "-1"), ("+1", "-1"), np.arange(len(X)))
    if not Path(file).exists() and not Path(file).suffix:
        raise DataError(f"there is no file {file} in {Path.cwd()}; the data sets by name are {', '.join(NAMES)}")
    return read_table(file, label, drop=tuple(drop or ()), missing=missing)


def loading_code(file: str, label: str | None, drop: Sequence[str] | None, missing: str) -> str:
    """Return the line of Python that gives the X of `load_table`."""
    if is_name(file):
        return f"X, y = dc.datasets.load({file!r})"
    return f"X = dc.datasets.read_table({file!r}, {label!r}, drop={list(drop or [])!r}, missing={missing!r}).X"


def hint(error: DataError) -> str:
    """Return the options that would help, in parentheses."""
    column = shlex.quote(error.column or "")
    options = {"label": f"--label {column}", "drop": f"--drop {column}", "missing": "--missing drop or --missing mean"}
    return f" ({' or '.join(options[remedy] for remedy in error.remedies)})" if error.remedies else ""
