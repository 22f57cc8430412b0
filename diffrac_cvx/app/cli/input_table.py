"""Table of a command, output files, and commands that would read a rejected file."""

import argparse
import errno
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx import datasets
from diffrac_cvx.app.cli.options import TABLE_PARAMETERS, flags_of
from diffrac_cvx.datasets.file_columns import SUFFIXES
from diffrac_cvx.datasets.tables import Table, read_table
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.points.checks import did_you_mean, require_moderate_scale

DATASET_NAMES = (*datasets.names(), *datasets.names("extra"))
CONSTANT_WARNING = ".* of X (is|are) constant"  # names columns by number; the notes on a table name them
MAX_SUGGESTIONS, MAX_TRIALS = 2, 8
ASIDE = ("known", "must_link_column", "id")  # options whose columns are not features


def is_name(file: str) -> bool:
    """Whether an argument is the name of a two-class data set instead of a file."""
    return file in DATASET_NAMES and not Path(file).exists()


def read_options(given: argparse.Namespace, names: Sequence[str] = TABLE_PARAMETERS) -> dict[str, Any]:
    """Return the parameters of `read_table` that are given and differ from their defaults."""
    defaults = inspect.signature(read_table).parameters
    values = {name: getattr(given, name) for name in names}
    values |= {"one_hot": "all"} if getattr(given, "one_hot_all", False) else {}
    aside = [getattr(given, name, None) for name in ASIDE]
    values["aside"] = list(dict.fromkeys(column for column in aside if column))
    return {name: value for name, value in values.items() if value not in ([], defaults[name].default)}


def load(given: argparse.Namespace) -> Table:
    """Return the table in the file, or the two-class data set of this name if there is no such file."""
    file, options = given.file, read_options(given)
    if is_name(file):
        if options:
            aside = [name for name in ASIDE if getattr(given, name, None)]
            flag = flags_of(aside[0] if aside else next(iter(options)))[0]
            raise ParameterError(f"{flag} does not apply to the data set {file!r}, only to files. Remove it.")
        X, y = datasets.load(file)
        names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
        return Table(X, names, np.where(y > 0, "+1", "-1"), ("+1", "-1"), np.arange(len(X)))
    if not Path(file).exists() and not Path(file).suffix:
        files = [path.name for path in Path.cwd().iterdir() if path.suffix in SUFFIXES]
        near = did_you_mean(file, (*DATASET_NAMES, *files))
        raise DataError(f"{file!r} is neither a file nor one of the data sets {', '.join(DATASET_NAMES)}{near}")
    table = read_table(file, **options)
    require_moderate_scale(np.abs(table.X).max(axis=0), table.names)
    return table


def row_ids(given: argparse.Namespace, table: Table) -> tuple[dict[str, list[str]], list[str]]:
    """Return the column of --id by its name, empty without the option, and a note if its entries are not unique."""
    if given.id is None:
        return {}, []
    texts = ["" if text is None else text for text in table.excluded[given.id].tolist()]
    repeated = len(texts) - len(set(texts))
    note = f"column {given.id!r} of --id does not identify the rows: {repeated} of {len(texts)} entries are repeated"
    return {given.id: texts}, [note] if repeated else []


def loading_code(given: argparse.Namespace, has_groups: bool) -> str:
    """Return the lines of Python that read X as `load` does, and for a file also define the table."""
    options = "".join(f", {name}={value!r}" for name, value in read_options(given).items())
    code, names = f"table = dc.datasets.read_table({given.file!r}{options})\nX = table.X", "table"
    if is_name(given.file):
        code, names = f"X, y = dc.datasets.load({given.file!r})", "[f'x{j + 1}' for j in range(X.shape[1])]"
    by = "" if given.feature_groups in (None, "category") else f", {given.feature_groups!r}"
    return f"{code}\ngroups = dc.datasets.column_groups({names}{by})" if has_groups else code


def refuse_outputs(inputs: Sequence[str | Path], outputs: Mapping[str, Path | None]) -> None:
    """Raise if an output file is a folder, an input or another output file, or in no existing folder."""
    used = {Path(file).resolve(): "an input, which it would overwrite" for file in inputs if not is_name(str(file))}
    for option, path in outputs.items():
        if path is None or (path.exists() and not path.is_file() and not path.is_dir()):
            continue  # a device such as /dev/stdout cannot be overwritten
        if path.is_dir():
            raise ParameterError(f"{option} {path} is a folder. Give a file in it, such as {path / 'result.csv'}.")
        for file, description in used.items():
            if path.samefile(file) if path.exists() and file.exists() else path.resolve() == file:
                raise ParameterError(f"{option} {path} is {description}. Give another file.")
        if not path.parent.is_dir():
            code = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
            raise OSError(code, os.strerror(code), str(path))
        used[path.resolve()] = f"also the file of {option}"


def suggest_options(read: Callable[[list[str]], object], given: list[str], error: DataError) -> list[list[str]]:
    """Return options, each tried, with which a rejected table is read; ``read`` takes the arguments of a command."""
    found: list[list[str]] = []
    waiting: list[tuple[DataError, list[str]]] = [(error, [])]
    trials = 0
    for last, options in waiting:
        repairs = [[part for value, parameter in last.columns for part in (flags_of(parameter)[0], value)]]
        repairs += [["--transpose"]] if "transpose" in last.remedies else []
        repairs += [["--missing", policy] for policy in ("drop", "mean") if "missing" in last.remedies]
        for repair in filter(None, repairs):
            trials += 1
            try:
                read([*given, *options, *repair])
                found.append([*options, *repair])
            except DataError as raised:
                waiting += [(raised, [*options, *repair])] if trials < MAX_TRIALS else []
            except (ParameterError, ResourceError):
                continue
    return found[:MAX_SUGGESTIONS]
