"""A table: one model, one way to write a value, and its renderings as text, HTML, Markdown and in a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self

import numpy as np

from diffrac_cvx.problem.proved_numbers import Proved


@dataclass(frozen=True)
class Table:
    """A table: the titles of its columns, and rows of values of any type, which `format_cell` writes."""

    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def from_records(cls, records: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | None = None) -> Self:
        """Return the table of some records, from column to value; one that a record does not have is left empty.

        The columns that are taken, in order, have titles; by default all are, under their own names.
        """
        titles = columns if columns is not None else {key: key for record in records for key in record}
        return cls(tuple(titles.values()), tuple(tuple(record.get(key) for key in titles) for record in records))

    def without_empty_columns(self) -> Self:
        """Return the table without the columns that have no value in any row."""
        kept = [j for j in range(len(self.head)) if any(format_cell(row[j]) for row in self.rows)]
        return type(self)(tuple(self.head[j] for j in kept), tuple(tuple(row[j] for j in kept) for row in self.rows))

    def lines(self) -> list[list[str]]:
        """Return all as it is printed, the head first."""
        return [list(self.head), *([format_cell(value) for value in row] for row in self.rows)]

    def text(self) -> str:
        """Return the table as plain text, its columns aligned."""
        lines = self.lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [[entry.ljust(width) for entry, width in zip(line, widths, strict=True)] for line in lines]
        return "\n".join("  ".join(line).rstrip() for line in padded)

    def html(self) -> str:
        """Return the table as HTML, escaped."""
        head, *body = self.lines()
        heads = "".join(f"<th>{escape(entry)}</th>" for entry in head)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(entry)}</td>' for entry in line)}</tr>" for line in body)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"

    def markdown(self) -> str:
        """Return the table in Markdown."""
        head, *body = ("| " + " | ".join(entry.replace("|", r"\|") for entry in line) + " |" for line in self.lines())
        return "\n".join([head, "|" + " --- |" * len(self.head), *body])

    def rich(self) -> Any:
        """Return the table for a terminal; the first column is not folded."""
        from rich.table import Table as RichTable
        from rich.text import Text

        head, *body = self.lines()
        table = RichTable(box=None, padding=(0, 1, 0, 0))
        for j, entry in enumerate(head):
            table.add_column(Text(entry), overflow="fold", no_wrap=j == 0)
        for line in body:
            table.add_row(*map(Text, line))
        return table


def rich_group(tables: Sequence[Table], sentences: Sequence[str]) -> Any:
    """Return tables, an empty line after each, and sentences for a terminal."""
    try:
        from rich.console import Group
        from rich.text import Text
    except ImportError:
        raise ImportError("this needs rich: pip install rich; str() gives plain text") from None
    return Group(*(part for table in tables for part in (table.rich(), Text())), *map(Text, sentences))


def format_cell(value: Any) -> str:
    """Return a value as every table prints it: four decimals or two digits of a number, nothing for None and NaN.

    A proved number has a text of its own.
    """
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, Proved):
        return value.text
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:.4f}" if 1e-3 <= abs(number) < 1e4 or number == 0 else f"{number:.1e}"
    return str(value)
