"""Where the data of the page come from: planted, known by name, or a user's own table; each also as Python code."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PureWindowsPath  # whose names end at a slash of either kind
from typing import Protocol

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.datasets.tables import read_frame, split_label
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array

MOST_UPLOADED = 50_000_000  # bytes
MOST_GROUPS = 12  # whose names and sizes are listed
SIGNS = 'np.where(y > 0, "+1", "-1")'  # as `as_text`
Labels = np.ndarray


@dataclass(frozen=True, eq=False)
class Data:
    """What there is to cluster.

    Attributes
    ----------
    X : (n, d) array
        Points, scaled as asked.
    y : (n,) array or None
        True labels in {-1, +1}, where there are two classes.
    names : tuple of str
        Names of the features.
    title : str
        What the data are called.
    notes : tuple of str
        What was done to them, in sentences.
    labels : (n,) array of str or None
        True labels of any number of classes, where there are some.
    rows : (n,) array of int or None
        Numbers of the points in their file, the first row of data being 0; None where all are there.
    """

    X: Array
    y: Array | None
    names: tuple[str, ...]
    title: str
    notes: tuple[str, ...] = ()
    labels: Labels | None = None
    rows: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def summary(self) -> str:
        """What the data are, as a sentence, and what was done to them."""
        sizes = [f"{name} ({count})" for name, count in count_groups(self.labels)]
        known = f"{len(sizes)} known groups: {', '.join(sizes)}" if sizes else "no known groups"
        if len(sizes) > MOST_GROUPS:
            known = f"{len(sizes)} known groups"
        return f"{self.title}: {self.n} points, {self.d} features, {known}. " + " ".join(
            f"{note[0].upper()}{note[1:]}." for note in self.notes
        )


class Source(Protocol):
    """A choice of data."""

    def load(self) -> Data:
        """Return the data, or raise an error that says why there are none."""

    @property
    def groups(self) -> str:
        """The Python of the known groups, as text, from what `code` defines."""

    def code(self) -> list[str]:
        """Return the lines of Python that define X, y (perhaps None) and names."""


@dataclass(frozen=True)
class Planted:
    """Two clusters planted along a sparse direction; the parameters are those of `make_planted`."""

    n: int = 150
    d: int = 10
    sparsity: int = 1
    imbalance: float = 0.0
    noise: float = 0.3
    seed: int = 0

    @property
    def groups(self) -> str:
        """The Python of the known groups."""
        return SIGNS

    def load(self) -> Data:
        """Return the planted data."""
        made = datasets.make_planted(self.n, self.d, self.sparsity, self.imbalance, self.noise, rng=self.seed)
        return Data(made.X, made.y, number_names(self.d), "made data", labels=as_text(made.y))

    def code(self) -> list[str]:
        """Return the lines that make them."""
        return [
            f"X, y, v = dc.datasets.make_planted({self.n}, {self.d}, sparsity={self.sparsity}, "
            f"imbalance={self.imbalance!r}, noise={self.noise!r}, rng={self.seed})",
            "names = None",
        ]


@dataclass(frozen=True)
class NamedSet:
    """A data set by its name."""

    name: str
    scaling: str = "standardise"

    @property
    def groups(self) -> str:
        """The Python of the known groups."""
        return SIGNS

    def load(self) -> Data:
        """Return the data set, or raise an error that says where its file was looked for."""
        X, y = datasets.load(self.name, scaling=self.scaling)
        return Data(X, y, number_names(X.shape[1]), self.name, labels=as_text(y))

    def code(self) -> list[str]:
        """Return the lines that load it."""
        return [f"X, y = dc.datasets.load({self.name!r}, scaling={self.scaling!r})", "names = None"]


@dataclass(frozen=True)
class OwnTable:
    """A user's own table: its bytes, the name of its file, and how to read it."""

    content: bytes
    file: str
    label: str | None = None
    drop: Sequence[str] = ()
    missing: str = "error"
    scaling: str = "standardise"

    @property
    def groups(self) -> str:
        """The Python of the known groups."""
        return "data.labels"

    def load(self) -> Data:
        """Return the table.

        Raises
        ------
        DataError
            If it cannot be used; the message names the row and the column.
        """
        if not self.file:
            raise DataError("choose a file with a table: one point a row, one feature a column")
        self.check_size()
        table = datasets.read_table(
            self.content, self.label, drop=self.drop, missing=self.missing, scaling=self.scaling, name=self.file
        )
        notes = list(table.notes)
        if table.labels is not None and table.y is None:
            notes.append(
                f"the label has {len(table.classes)} groups: with as many clusters, chosen in the panel, they can be "
                "compared best, and with two clusters views that need two true groups are left out"
            )
        if table.y is not None:
            notes.append(f"in the figures label +1 is {table.classes[1]!r} and label -1 is {table.classes[0]!r}")
        return Data(table.X, table.y, table.names, self.file, tuple(notes), table.labels, table.rows)

    def columns(self) -> list[str]:
        """Return the names of the columns, the label's included.

        Raises
        ------
        DataError
            If the file cannot be read.
        """
        self.check_size()
        label, frame = split_label(read_frame(self.content, self.file), None)
        return [str(name) for name in frame.columns] + ([] if label is None else [str(label.name)])

    def check_size(self) -> None:
        """Refuse a file that is larger than the page takes, whatever the browser has let through."""
        if len(self.content) > MOST_UPLOADED:
            raise DataError(
                f"{self.file} has {len(self.content) / 1e6:.0f} MB and the page takes {MOST_UPLOADED // 10**6} MB: "
                "diffrac_cvx.datasets.read_table reads it"
            )

    def code(self) -> list[str]:
        """Return the lines that read the file and scale its columns."""
        how = f"drop={list(self.drop)!r}, missing={self.missing!r}, scaling={self.scaling!r}"
        return [
            f"data = dc.datasets.read_table({PureWindowsPath(self.file).name!r}, {self.label!r}, {how})",
            "X, y, names = data.X, data.y, data.names",
        ]


def as_text(y: Array) -> Labels:
    """Return labels in {-1, +1} as text."""
    return np.where(y > 0, "+1", "-1")


def count_groups(labels: Labels | None) -> list[tuple[str, int]]:
    """Return the names of the groups and their numbers of points."""
    if labels is None:
        return []
    names, counts = np.unique(labels, return_counts=True)
    return list(zip(names.tolist(), counts.tolist(), strict=True))


def number_names(d: int) -> tuple[str, ...]:
    """Return x0, x1, ... as names of features, which count from 0 as columns of arrays do."""
    return tuple(f"x{j}" for j in range(d))
