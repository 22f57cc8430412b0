"""Input table of a command: a file or a built-in data set; and commands that would read a rejected file."""

import errno
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.datasets.tables import SUFFIXES, Table, read_table
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.points.checks import did_you_mean, require_moderate_scale

DATASET_NAMES = (*datasets.names(), *datasets.names("extra"))
LABEL_OPTION = "--reference-column"
NOTE_OPTIONS = {  # part of a note on a table, and the option that changes the assumption
    "Read the table without a header": "--header no",
    "Read the table with a header": "--header yes",
    "Specify the decimal mark or": "--decimal or --thousands",
    "Specify the decimal mark if": "--decimal",
    "Specify its encoding": "--encoding",
    "above the column names with few": "--header and --skip-rows",
    "above the table were skipped": "--comment",
    "Name it to use it": "--header no --skip-rows 1",
    "at the end if not": "--skip-footer",
    "If it is missing, say so": "--na-values",
    "sheets, and": "--sheet",
    "the table was transposed": "--drop",
    "Drop it": "--drop",
    "Keep one of each": "--drop",
}
CONSTANT_WARNING = ".* of X (is|are) constant"  # names columns by number; the notes on a table name them
REMEDIES = ("drop", "header", "missing", "na_values", "skip_rows", "skip_footer")  # parameters of `read_table`
MAX_SUGGESTIONS, MAX_TRIALS = 2, 8


class TableError(DataError):
    """A table cannot be read as given; ``suggestions`` are options of the program with which it can be."""

    def __init__(self, error: DataError, suggestions: Sequence[Sequence[str]]) -> None:
        super().__init__(str(error), column=error.column, row=error.row, remedies=error.remedies, columns=error.columns)
        self.suggestions = suggestions


@dataclass(frozen=True)
class TableSource:
    """File or name of a data set, with the parameters of `read_table`."""

    file: str
    label: str | None = None
    drop: tuple[str, ...] = ()
    one_hot: tuple[str, ...] | str = ()
    missing: str = "error"
    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na_values: tuple[str, ...] = ()
    skip_rows: int | tuple[int, ...] = 0
    skip_footer: int = 0
    comment: str | None = None
    sheet: str | None = None
    aside: tuple[str, ...] = ()
    transpose: bool = False
    top_variance: int | None = None

    @property
    def is_name(self) -> bool:
        """Whether `file` is the name of a two-class data set instead of a file."""
        return self.file in DATASET_NAMES and not Path(self.file).exists()

    @property
    def read_options(self) -> dict[str, Any]:
        """Parameters that differ from their defaults."""
        given = {field: getattr(self, field.name) for field in fields(self)[2:]}
        return {field.name: value for field, value in given.items() if value != field.default}

    def load(self) -> Table:
        """Return the table in the file, or the two-class data set of this name if there is no such file."""
        if self.is_name:
            if self.aside:
                raise ParameterError(
                    f"the data set {self.file!r} has no column {self.aside[0]!r}, only features. Remove the option."
                )
            if self.label is not None or self.read_options:
                field = next(iter(self.read_options), "")
                option = LABEL_OPTION if self.label is not None else f"--{field.replace('_', '-')}"
                raise ParameterError(
                    f"{option} does not apply to the data set {self.file!r}, only to files. Remove it."
                )
            X, y = datasets.load(self.file)
            names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
            return Table(X, names, np.where(y > 0, "+1", "-1"), ("+1", "-1"), np.arange(len(X)))
        if not Path(self.file).exists() and not Path(self.file).suffix:
            known = f"the data sets {', '.join(DATASET_NAMES)}"
            files = [file.name for file in Path.cwd().iterdir() if file.suffix in SUFFIXES]
            near = did_you_mean(self.file, (*DATASET_NAMES, *files))
            raise DataError(f"{self.file!r} is neither a file in {Path.cwd()} nor one of {known}{near}")
        table = read_or_suggest(partial(read_table, self.file, self.label), self.read_options)
        require_moderate_scale(np.abs(table.X).max(axis=0), table.names)
        return table

    def code(self, *, whole: bool = False) -> str:
        """Return the line of Python that reads X as `load` does, or two lines that also define the table."""
        if self.is_name:
            return f"X, y = dc.datasets.load({self.file!r})"
        more = "".join(f", {name}={value!r}" for name, value in self.read_options.items())
        read = f"dc.datasets.read_table({self.file!r}, {self.label!r}{more})"
        return f"table = {read}\nX = table.X" if self.aside or whole else f"X = {read}.X"


def refuse_outputs(source: TableSource, outputs: Mapping[str, Path]) -> None:
    """Raise if an output file is a folder, the input table, another output file, or in no existing folder."""
    used_paths = {} if source.is_name else {Path(source.file).resolve(): "the input table, which it would overwrite"}
    for option, path in outputs.items():
        if path.is_dir():
            raise ParameterError(f"{option} {path} is a folder. Give a file in it, such as {path / 'result.csv'}.")
        if path.exists() and not path.is_file():
            continue  # a device such as /dev/stdout cannot be overwritten
        other = next((description for file, description in used_paths.items() if is_same_file(path, file)), None)
        if other is not None:
            raise ParameterError(f"{option} {path} is {other}. Give another file.")
        if not path.parent.is_dir():
            code = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
            raise OSError(code, os.strerror(code), str(path))
        used_paths[path.resolve()] = f"also the file of {option}"


def is_same_file(path: Path, other: Path) -> bool:
    """Whether two paths are the same file, also by a link or, on some systems, in another letter case."""
    return path.samefile(other) if path.exists() and other.exists() else path.resolve() == other.resolve()


def with_option(note: str) -> str:
    """Return a note on a table with the option that changes its assumption."""
    return note + next((f" ({option})" for words, option in NOTE_OPTIONS.items() if words in note), "")


def with_remedies(error: DataError) -> str:
    """Return the message of an error with the options for its remedies."""
    options = [option_of(remedy) for remedy in error.remedies if remedy in REMEDIES]
    return f"{error} ({', '.join(options)})" if options else str(error)


def option_of(parameter: str) -> str:
    """Return the option of the program for a parameter of `read_table`."""
    return f"--{parameter.replace('_', '-')}"


def parse_skip_rows(text: str) -> int | tuple[int, ...]:
    """Return the lines to skip: their number at the start, or indices of the lines of a range from 1 such as 2-2."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise ParameterError(f"--skip-rows {text} is neither a number of lines nor a range of lines. Give 3, or 2-2.")
    return tuple(range(int(first) - 1, int(last))) if dash else int(first)


def read_or_suggest(read: Callable[..., Table], given: Mapping[str, Any]) -> Table:
    """Return a table, or raise `TableError` with the options, each tried, with which it is read."""
    try:
        return read(**given)
    except DataError as raised:
        first = raised
    found: list[list[str]] = []
    waiting: list[tuple[DataError, list[str], dict[str, Any]]] = [(first, [], dict(given))]
    trials = 0
    for error, arguments, options in waiting:
        repairs = [[(remedy, value) for value, remedy in error.columns]]
        repairs += [[("missing", policy)] for policy in ("drop", "mean") if "missing" in error.remedies]
        for repair in filter(None, repairs):
            changed, more = dict(options), list(arguments)
            for parameter, value in repair:
                more += [option_of(parameter), value]
                changed[parameter] = changed_value(parameter, value, changed.get(parameter, ()))
            trials += 1
            try:
                read(**changed)
                found.append(more)
            except DataError as raised:
                waiting += [(raised, more, changed)] if trials < MAX_TRIALS else []
            except (ParameterError, ResourceError):
                continue
    raise TableError(first, found[:MAX_SUGGESTIONS]) from None


def changed_value(parameter: str, value: str, before: Sequence[str]) -> Any:
    """Return the value of a parameter of `read_table` with an option of the program added."""
    if parameter in ("drop", "na_values"):
        return (*before, value)
    if parameter == "header":
        return value == "yes"
    return parse_skip_rows(value) if parameter == "skip_rows" else int(value) if parameter == "skip_footer" else value


def suggest_commands(error: DataError, arguments: Sequence[str]) -> list[str]:
    """Return commands, quoted for a shell, each of which reads the table."""
    suggestions = error.suggestions if isinstance(error, TableError) else []
    return [shlex.join(("diffrac-cvx", *arguments, *options)) for options in suggestions]
