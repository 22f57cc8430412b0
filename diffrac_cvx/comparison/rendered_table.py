"""Tables for reports: formatting of values, and rendering as text, HTML and Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self

import numpy as np

from diffrac_cvx.problem.formatting import FormattedBound


@dataclass(frozen=True)
class ReportTable:
    """Table with column titles and rows of values of any type, formatted by `format_cell`."""

    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def from_records(cls, records: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | None = None) -> Self:
        """Return the table of records (mappings from column to value); missing values give empty cells.

        ``columns`` maps the columns to include, in order, to their titles; by default all, titled by name.
        """
        titles = columns if columns is not None else {key: key for record in records for key in record}
        return cls(tuple(titles.values()), tuple(tuple(record.get(key) for key in titles) for record in records))

    def without_empty_columns(self) -> Self:
        """Return the table without the columns that are empty in all rows."""
        columns = [j for j in range(len(self.header)) if any(format_cell(row[j]) for row in self.rows)]
        return type(self)(
            tuple(self.header[j] for j in columns), tuple(tuple(row[j] for j in columns) for row in self.rows)
        )

    def lines(self) -> list[list[str]]:
        """Return the formatted cells by line, the header first."""
        return [list(self.header), *([format_cell(value) for value in row] for row in self.rows)]

    def text(self) -> str:
        """Return the table as plain text with aligned columns."""
        lines = self.lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [[entry.ljust(width) for entry, width in zip(line, widths, strict=True)] for line in lines]
        return "\n".join("  ".join(line).rstrip() for line in padded)

    def html(self) -> str:
        """Return the table as escaped HTML."""
        head, *body = self.lines()
        heads = "".join(f"<th>{escape(entry)}</th>" for entry in head)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(entry)}</td>' for entry in line)}</tr>" for line in body)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"

    def markdown(self) -> str:
        """Return the table as Markdown."""
        head, *body = ("| " + " | ".join(entry.replace("|", r"\|") for entry in line) + " |" for line in self.lines())
        return "\n".join([head, "|" + " --- |" * len(self.header), *body])


def table_of_entries(records: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> ReportTable:
    """Return the table of some entries of records, titled by their names, without empty columns."""
    return ReportTable.from_records(records, {key: key.replace("_", " ") for key in keys}).without_empty_columns()


class TableReport:
    """Rendering of a result with tables and messages, as text and as HTML."""

    def tables(self) -> list[ReportTable]:
        """Return the printed tables."""
        raise NotImplementedError

    def messages(self) -> list[str]:
        """Return the sentences below the tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join([*(f"{table.text()}\n" for table in self.tables()), *self.messages()])

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.messages())
        return "".join(table.html() for table in self.tables()) + f"<ul>{items}</ul>"


def format_cell(value: Any) -> str:
    """Return a value as text: four decimals or two significant digits of a float, "" for None and NaN.

    A certified number (`FormattedBound`) has its own text.
    """
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, FormattedBound):
        return value.text
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:.4f}" if 1e-3 <= abs(number) < 1e4 or number == 0 else f"{number:.1e}"
    return str(value)
