"""The data of a command: a user's file, or a data set by its name; and the command that would read it."""

import errno
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.datasets.tables import SUFFIXES, Table, read_table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import did_you_mean, require_moderate_scale

DATASET_NAMES = (*datasets.names(), *datasets.names("extra"))
NOTE_OPTIONS = {  # what a note says, and the option that changes it
    "Read the table without a header": "--no-header",
    "Read the table with a header": "--header",
    "Specify the decimal mark": "--decimal",
    "Specify its encoding": "--encoding",
    "sheets, and": "--sheet",
    "Transpose the table": "--transpose",
    "Specify it as the label": "--label",
    "Drop it": "--drop",
    "Keep one of each": "--drop",
}
CONSTANT_WARNING = ".* of X (is|are) constant"  # a warning of columns by their numbers: the notes on a table name them
REMEDY_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in ("label", "one_hot", "drop", "missing", "transpose")}


@dataclass(frozen=True)
class TableSource:
    """A file, or the name of a data set, and how it is read: the parameters of `read_table`."""

    file: str
    label: str | None = None
    drop: tuple[str, ...] = ()
    one_hot: tuple[str, ...] | str = ()
    missing: str = "error"
    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    aside: tuple[str, ...] = ()
    transpose: bool = False
    top_variance: int | None = None

    @property
    def is_name(self) -> bool:
        """Whether it is the name of a two-class data set and not that of a file."""
        return self.file in DATASET_NAMES and not Path(self.file).exists()

    @property
    def read_options(self) -> dict[str, Any]:
        """The parameters that are not what they are by default."""
        given = {field: getattr(self, field.name) for field in fields(self)[2:]}
        return {field.name: value for field, value in given.items() if value != field.default}

    def load(self) -> Table:
        """Return the table in the file, or a two-class data set by its name where there is no such file."""
        if self.is_name:
            if self.aside:
                raise ParameterError(
                    f"the data set {self.file} has no column {self.aside[0]!r}: its columns are features"
                )
            if self.label is not None or self.read_options:
                given = "label" if self.label is not None else next(iter(self.read_options)).replace("_", "-")
                raise ParameterError(f"the data set {self.file} is read as it is: --{given} is for files")
            X, y = datasets.load(self.file)
            names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
            return Table(X, names, np.where(y > 0, "+1", "-1"), ("+1", "-1"), np.arange(len(X)))
        if not Path(self.file).exists() and not Path(self.file).suffix:
            known = f"the data sets by name are {', '.join(DATASET_NAMES)}"
            files = [file.name for file in Path.cwd().iterdir() if file.suffix in SUFFIXES]
            near = did_you_mean(self.file, (*DATASET_NAMES, *files))
            raise DataError(f"there is no file {self.file} in {Path.cwd()}; {known}{near}")
        table = read_table(self.file, self.label, **self.read_options)
        require_moderate_scale(np.abs(table.X).max(axis=0), table.names)
        return table

    def code(self, *, whole: bool = False) -> str:
        """Return the line of Python that gives the X of `load`, or two that give the table too."""
        if self.is_name:
            return f"X, y = dc.datasets.load({self.file!r})"
        more = "".join(f", {name}={value!r}" for name, value in self.read_options.items())
        read = f"dc.datasets.read_table({self.file!r}, {self.label!r}{more})"
        return f"table = {read}\nX = table.X" if self.aside or whole else f"X = {read}.X"


def refuse_outputs(source: TableSource, outputs: Mapping[str, Path]) -> None:
    """Refuse files to write, by their options: a folder, the table that is read, one file twice, one in no folder."""
    used_paths = (
        {} if source.is_name else {Path(source.file).resolve(): "the table that is read, which it would replace"}
    )
    for option, path in outputs.items():
        if path.is_dir():
            raise ParameterError(f"{option} {path} is a folder: name a file in it, such as {path / 'result.csv'}")
        if path.exists() and not path.is_file():
            continue  # a device such as /dev/stdout: nothing of it can be lost
        other = next((description for file, description in used_paths.items() if is_same_file(path, file)), None)
        if other is not None:
            raise ParameterError(f"{option} {path} is {other}: name another file")
        if not path.parent.is_dir():
            code = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
            raise OSError(code, os.strerror(code), str(path))
        used_paths[path.resolve()] = f"the file of {option} too"


def is_same_file(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also by a link or, on some systems, by letters of another case."""
    return path.samefile(other) if path.exists() and other.exists() else path.resolve() == other.resolve()


def with_option(note: str) -> str:
    """Return a note of a table with the option that changes what was assumed."""
    return note + next((f" ({option})" for words, option in NOTE_OPTIONS.items() if words in note), "")


def with_remedies(error: DataError) -> str:
    """Return the message of an error of a table, with the options that its remedies have."""
    options = [REMEDY_OPTIONS[remedy] for remedy in error.remedies if remedy in REMEDY_OPTIONS]
    return f"{error} ({', '.join(options)})" if options else str(error)


def suggest_commands(error: DataError, arguments: Sequence[str]) -> list[str]:
    """Return the commands of which one would help, as they can be pasted into a shell."""
    candidates = [[part for name, remedy in error.columns for part in (REMEDY_OPTIONS[remedy], name)]]
    candidates += [["--missing", treatment] for treatment in ("drop", "mean") if "missing" in error.remedies]
    candidates += [["--transpose"]] if "transpose" in error.remedies else []
    return [shlex.join(("diffrac-cvx", *arguments, *candidate)) for candidate in candidates if candidate]
