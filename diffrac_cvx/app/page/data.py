"""Data sources of the page: planted data, known data sets and the user's file, each also as Python code."""

from dataclasses import dataclass
from pathlib import PureWindowsPath  # whose names end at a slash of either kind
from typing import Any

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.datasets.file_columns import ReadOptions, read_file
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import require_moderate_scale

MAX_UPLOAD_BYTES = 50_000_000
MAX_LISTED_CLASSES = 10  # classes whose sizes are listed


@dataclass(frozen=True, eq=False)
class PageData:
    """Table to cluster, its title, and the lines of Python that define X and the reference labels y."""

    table: Table
    title: str
    code: str

    @property
    def summary(self) -> str:
        """Size, reference classes and notes on the data, as sentences."""
        table = self.table
        known = "no reference labels"
        if table.classes:
            sizes = [f"{name} ({np.sum(table.labels == name)})" for name in table.classes[:MAX_LISTED_CLASSES]]
            more = ", ..." if len(table.classes) > MAX_LISTED_CLASSES else ""
            known = f"{len(table.classes)} reference classes: {', '.join(sizes)}{more}"
        notes = " ".join(f"{note[0].upper()}{note[1:]}." for note in table.notes)
        return f"{self.title}: {len(table.X)} points, {len(table.names)} features, {known}. {notes}".strip()


def planted_data(n: int, d: int, sparsity: int, imbalance: float, noise: float, seed: int) -> PageData:
    """Return simulated data with two planted clusters; the parameters are those of `make_planted`."""
    planted = datasets.make_planted(n, d, sparsity, imbalance, noise, rng=seed)
    given = f"{n}, {d}, sparsity={sparsity}, imbalance={imbalance!r}, noise={noise!r}, rng={seed}"
    return PageData(
        two_class_table(planted.X, planted.y), "Planted data", f"X, y, v = dc.datasets.make_planted({given})"
    )


def known_data(name: str) -> PageData:
    """Return a data set of this package; raise `DataError` with the searched folders if its file is missing."""
    return PageData(two_class_table(*datasets.load(name)), name, f"X, y = dc.datasets.load({name!r})")


def two_class_table(X: np.ndarray, y: np.ndarray) -> Table:
    """Return points with two classes as a table, named as in the program."""
    names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    return Table(X, names, np.where(y > 0, "+1", "-1"), ("+1", "-1"), np.arange(len(X)))


def column_names(content: bytes, file: str) -> list[str]:
    """Return the names of the columns of a file."""
    require_small(content, file)
    return list(read_file(content, file, ReadOptions()).columns)


def uploaded_data(content: bytes, file: str, label: str | None, **options: Any) -> PageData:
    """Return the user's table, read by `read_table` with these options, as in the program.

    Raises
    ------
    DataError
        If the file is too large or cannot be read; the message names row, column and remedy.
    """
    require_small(content, file)
    table = datasets.read_table(content, label, name=file, **options)
    require_moderate_scale(np.abs(table.X).max(axis=0), table.names)
    name = PureWindowsPath(file).name
    given = "".join(f", {option}={value!r}" for option, value in options.items() if value not in ([], "error"))
    read = f"table = dc.datasets.read_table({name!r}, {label!r}{given})"
    return PageData(table, file, f"{read}\nX, y = table.X, table.labels")


def require_small(content: bytes, file: str) -> None:
    """Raise if a file is too large for the page; the limit of the browser is not relied on."""
    if len(content) > MAX_UPLOAD_BYTES:
        sizes = f"has {len(content) / 1e6:.0f} MB and the page accepts {MAX_UPLOAD_BYTES // 10**6} MB"
        raise DataError(f"{file} {sizes}. Use diffrac_cvx.datasets.read_table instead.")
