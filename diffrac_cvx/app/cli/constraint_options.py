"""Constraints on rows and on columns from the options of a command."""

import argparse
import warnings
from typing import Any

import numpy as np

from diffrac_cvx.app.cli.options import Parser
from diffrac_cvx.datasets.groups import CATEGORY, column_groups
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import did_you_mean
from diffrac_cvx.points.constraints import Constraints

NO_GROUPS = "none"
ROW_OPTIONS = {
    "--known": "Column with partial labels: one of two names, or empty if the label is unknown.",
    "--unlabelled": "Entry of --known of unlabelled rows, besides empty ones.",
    "--must-link-column": "Column whose equal entries must be in one cluster, such as patient IDs.",
}
PAIR_OPTIONS = {
    "--must-link": "Two rows that must be in one cluster, such as 0,5 (as numbered by --out); may be repeated.",
    "--cannot-link": "Two rows that must be in different clusters, such as 1,2; may be repeated.",
}
GROUPS_HELP = (
    "Feature groups that --lambda selects or excludes as a whole: the binary columns of one 'category' (default), the "
    "columns with one 'prefix', such as job_ in job_clerk, 'none', or a CSV FILE with lines column,group."
)


def add_row_options(parser: Parser) -> None:
    """Add the options that constrain rows."""
    group = parser.add_argument_group("constraints on rows")
    for flag, text in ROW_OPTIONS.items():
        group.add_argument(flag, metavar="TEXT", help=text)
    for flag, text in PAIR_OPTIONS.items():
        group.add_argument(flag, action="append", default=[], metavar="ROW,ROW", help=text)


def add_column_options(parser: Parser) -> None:
    """Add the options that constrain columns."""
    group = parser.add_argument_group("constraints on columns")
    group.add_argument("--feature-groups", metavar="category|prefix|prefix=_|none|FILE", help=GROUPS_HELP)
    text = "Column whose coefficient must be >= 0; may be repeated or hold several names separated by commas."
    group.add_argument("--nonnegative", action="append", default=[], metavar="NAME", help=text)


def row_constraints(given: argparse.Namespace, table: Table) -> Constraints | None:
    """Return the constraints on the points of a table, None if there are none; errors name rows of the file."""
    entries: dict[str, Any] = {}
    if given.must_link_column is not None:
        entries["groups"] = table.excluded[given.must_link_column]
    if given.known is not None:
        entries["labels"] = table.excluded[given.known]
        if not any(entries["labels"]):
            raise DataError(f"column {given.known!r} of --known is empty. Label some rows, or remove --known.")
    rows = table.rows.tolist()
    pairs: dict[str, Any] = {
        name: [parse_pair(text, rows, flag) for text in getattr(given, name)]
        for name, flag in (("must_link", "--must-link"), ("cannot_link", "--cannot-link"))
    }
    if not entries and not any(pairs.values()):
        return None
    place, in_file = {row: i for i, row in enumerate(rows)}, dict[str, Any]()
    for name, values in entries.items():
        in_file[name] = np.full(rows[-1] + 1, None, dtype=object)
        in_file[name][rows] = values
    on_points: dict[str, Any] = {name: [(place[i], place[j]) for i, j in some] for name, some in pairs.items()}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Constraints(**pairs, **in_file, unlabelled=given.unlabelled).chunklets_of(rows[-1] + 1)
            constraints = Constraints(**on_points, **entries, unlabelled=given.unlabelled)
    except DataError as error:
        raise DataError(str(error).replace("unlabelled=", "--unlabelled ")) from None
    for text, kind in {str(warning.message): warning.category for warning in caught}.items():
        warnings.warn(text.replace("unlabelled=", "--unlabelled "), kind, stacklevel=2)
    return constraints


def parse_pair(text: str, rows: list[int], option: str) -> tuple[int, int]:
    """Return two rows of the file, checked to be points."""
    try:
        first, second = (int(part) for part in text.split(","))
    except ValueError:
        message = f"{option} {text} is not a pair of rows. Give two row numbers, such as {option} 0,5."
        raise ParameterError(message) from None
    for row in (first, second):
        if not 0 <= row <= rows[-1]:
            raise ParameterError(f"{option} {text}: there is no row {row}. Give rows from 0 to {rows[-1]}.")
        if row not in rows:
            raise ParameterError(f"{option} {text}: row {row} was left out, because values are missing.")
    return first, second


def column_parameters(given: argparse.Namespace, table: Table, *, has_l1: bool) -> dict[str, Any]:
    """Return the given ones of ``groups``, ``group_weights`` and ``nonnegative``, parameters of an estimator.

    By default the columns of one category are a group if lambda is not 0 (``has_l1``) and no signs are given.
    """
    if given.feature_groups == CATEGORY and not table.categories:
        raise ParameterError("--feature-groups category: the table has no categorical features. Give --one-hot.")
    found: dict[str, Any] = {}
    default = CATEGORY if has_l1 and not given.nonnegative and table.categories else NO_GROUPS
    if (by := given.feature_groups or default) != NO_GROUPS:
        found = {"groups": column_groups(table, by), "group_weights": "size"}
    names: list[str] = []
    for text in given.nonnegative:
        names += [text] if text in table.names else [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in table.names:
            binary = [column for column in table.names if column.startswith(f"{name}=")]
            near = f"; its binary columns are {', '.join(binary[:5])}." if binary else did_you_mean(name, table.names)
            raise DataError(f"--nonnegative: there is no column {name!r}{near}")
    return found | ({"nonnegative": [table.names.index(name) for name in dict.fromkeys(names)]} if names else {})


def constraint_code(given: argparse.Namespace, constraints: Constraints | None) -> str:
    """Return the line of Python that defines ``constraints``, "" without any; pairs are of points, not of rows."""
    if constraints is None:
        return ""
    named = [] if given.known is None else [f"labels=table.excluded[{given.known!r}]"]
    if given.must_link_column is not None:
        named.append(f"groups=table.excluded[{given.must_link_column!r}]")
    if given.unlabelled is not None:
        named.append(f"unlabelled={given.unlabelled!r}")
    pairs = {"must_link": constraints.must_link, "cannot_link": constraints.cannot_link}
    named += [f"{name}={some.tolist()}" for name, some in pairs.items() if len(some)]
    return f"\nconstraints = dc.Constraints({', '.join(named)})"
