"""Data sources of the page: simulated data, built-in data sets and a user's table, each also as Python code."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PureWindowsPath  # whose names end at a slash of either kind
from typing import Any, ClassVar

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.datasets.tables import Table, read_frame
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array

MAX_UPLOAD_BYTES = 50_000_000
MAX_LISTED_GROUPS = 12  # classes whose names and sizes are listed
LABELS_CODE = 'np.where(y > 0, "1", "-1")'  # as `two_groups`


@dataclass(frozen=True, eq=False)
class Data(Table):
    """Table to cluster, scaled as requested, with a title."""

    title: str = ""

    @property
    def summary(self) -> str:
        """Size, classes and preprocessing of the data, as sentences."""
        sizes = [f"{name} ({np.sum(self.labels == name)})" for name in self.classes]
        known = f"{len(sizes) or 'no'} reference classes"
        if 0 < len(sizes) <= MAX_LISTED_GROUPS:
            known += f": {', '.join(sizes)}"
        notes = " ".join(f"{note[0].upper()}{note[1:]}." for note in self.notes)
        return f"{self.title}: {len(self.X)} points, {len(self.names)} features, {known}. {notes}"


@dataclass(frozen=True)
class PlantedSource:
    """Planted model with two clusters along a sparse direction; the parameters are those of `make_planted`."""

    groups: ClassVar[str] = LABELS_CODE  # Python code of the reference labels, after `code`
    n: int = 150
    d: int = 10
    sparsity: int = 1
    imbalance: float = 0.0
    noise: float = 0.3
    seed: int = 0

    def load(self) -> Data:
        """Return the simulated data."""
        planted = datasets.make_planted(self.n, self.d, self.sparsity, self.imbalance, self.noise, rng=self.seed)
        return two_groups(planted.X, planted.y, "simulated data")

    def code(self) -> list[str]:
        """Return the lines of Python that define X, y (None without two classes) and names."""
        options = f"sparsity={self.sparsity}, imbalance={self.imbalance!r}, noise={self.noise!r}, rng={self.seed}"
        return [f"X, y, v = dc.datasets.make_planted({self.n}, {self.d}, {options})", "names = None"]


@dataclass(frozen=True)
class NamedSource:
    """Built-in data set."""

    groups: ClassVar[str] = LABELS_CODE
    name: str
    scaling: str = "standardize"

    def load(self) -> Data:
        """Return the data set; raise an error with the searched folders if its file is missing."""
        X, y = datasets.load(self.name, scaling=self.scaling)
        return two_groups(X, y, self.name)

    def code(self) -> list[str]:
        """Return the lines of Python that load the data set."""
        return [f"X, y = dc.datasets.load({self.name!r}, scaling={self.scaling!r})", "names = None"]


@dataclass(frozen=True)
class UploadedSource:
    """User's table: content, file name and the parameters of `read_table`."""

    groups: ClassVar[str] = "data.labels"
    content: bytes
    file: str
    label: str | None = None
    drop: Sequence[str] = ()
    one_hot: Sequence[str] = ()
    missing: str = "error"
    scaling: str = "standardize"

    def load(self) -> Data:
        """Return the table; raise `DataError` with row and column of an invalid value."""
        if not self.file:
            raise DataError("choose a file: a table with one point per row and one feature per column")
        self.check_size()
        options: dict[str, Any] = {"drop": self.drop, "one_hot": self.one_hot, "missing": self.missing}
        table = datasets.read_table(self.content, self.label, **options, scaling=self.scaling, name=self.file)
        notes = table.notes
        if table.classes and table.y is None:
            notes += (f"there are {len(table.classes)} reference classes: compare them with as many clusters",)
        return Data(**{**vars(table), "notes": notes}, title=self.file)

    @property
    def frame(self) -> Any:
        """Columns of the file, as a data frame."""
        self.check_size()
        return frame_of(self.content, self.file)

    def check_size(self) -> None:
        """Raise if the file is too large for the page; the limit of the browser is not relied on."""
        if len(self.content) > MAX_UPLOAD_BYTES:
            sizes = f"has {len(self.content) / 1e6:.0f} MB and the page accepts {MAX_UPLOAD_BYTES // 10**6} MB"
            raise DataError(f"{self.file} {sizes}. Use diffrac_cvx.datasets.read_table instead.")

    def code(self) -> list[str]:
        """Return the lines of Python that read the file and scale its columns."""
        name = PureWindowsPath(self.file).name
        columns = f"drop={list(self.drop)!r}, one_hot={list(self.one_hot)!r}"
        options = f"{columns}, missing={self.missing!r}, scaling={self.scaling!r}"
        line = f"data = dc.datasets.read_table({name!r}, {self.label!r}, {options})"
        return [line, "X, y, names = data.X, data.y, data.names"]


PageSource = PlantedSource | NamedSource | UploadedSource  # any data source


@lru_cache(maxsize=1)
def frame_of(content: bytes, file: str) -> Any:
    """Return the columns of a file, cached because every clicked point needs them."""
    return read_frame(content, file)


def values_of(source: PageSource, data: Data, point: int) -> dict[str, str]:
    """Return the values of a point by column; unscaled for a user's table."""
    if isinstance(source, UploadedSource):
        row = source.frame.iloc[int(data.rows[point])]
        return {str(name): str(value) for name, value in row.items()}
    return {name: f"{value:.4g}" for name, value in zip(data.names, data.X[point], strict=True)}


def two_groups(X: Array, y: Array, title: str) -> Data:
    """Return points with two classes, and features named x0, x1, ... like array columns."""
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    labels = np.where(y > 0, "1", "-1")
    return Data(X, names, labels, ("-1", "1"), np.arange(len(X)), title=title)
