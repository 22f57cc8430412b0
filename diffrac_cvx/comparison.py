"""What `compare` returns: rows, agreement, disagreements, as a table of pandas, text, rich text or HTML."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from diffrac_cvx import metrics
from diffrac_cvx.compare_run import Found
from diffrac_cvx.inputs import Array
from diffrac_cvx.result import Result, Status
from diffrac_cvx.table_files import pandas_or_error

PROOFS = ("problem", "value", "lower", "upper", "gap", "rank", "eigenvalue_ratio", "seconds", "memory_MB", "iterations")
LABELS = (
    "label_gap", "error", "error_kmeans_centered", "error_sign_centered", "error_sign_leading", "error_sign_second",
    "error_goemans_williamson",
)  # fmt: skip
USUAL = str(Status.OPTIMAL)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several methods on the same data.

    Attributes
    ----------
    rows : tuple of dict
        One for each method: "method", "problem", "value", "lower", "upper", "gap" (proved), "rank",
        "eigenvalue_ratio", "label_gap" (proved distance of the labels from the optimum of Eq. (9), by the best lower
        bound of all methods; NaN where none has one, or where they disagree), "error" and one such column for each
        rounding where labels were given, "seconds", "memory_MB", "iterations", "status".
    found : dict of str to Found
        All that each method found, its `Result` included.
    disagreements : tuple of str
        Every disagreement beyond the proved gaps; empty when all is well.
    notes : tuple of str
        What was left out and why, what is proved about the labels, how problems are compared, warnings.
    """

    rows: tuple[dict[str, Any], ...]
    found: dict[str, Found]
    disagreements: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def results(self) -> dict[str, Result]:
        """The solutions of the relaxations, by method."""
        return {name: one.result for name, one in self.found.items() if one.result is not None}

    @property
    def labels(self) -> dict[str, Array]:
        """Labels in {-1, +1}, by method."""
        return {name: one.labels for name, one in self.found.items() if one.labels is not None}

    @property
    def agreement(self) -> Array:
        """Agreement of the labels of each pair of methods, (y'z/n)^2, in the order of `labels`."""
        every = list(self.labels.values())
        pairs = [1.0 - metrics.clustering_error(y, z) for y in every for z in every]
        return np.array(pairs).reshape(len(every), len(every))

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame, the methods as its index."""
        head = list(self.rows[0]) if self.rows else ["method"]
        return pandas_or_error().DataFrame(list(self.rows), columns=head).set_index("method")

    def views(self) -> list[list[list[str]]]:
        """Return what is shown: a table of proofs and one of labels, each with its head, without empty columns."""
        tables = []
        for chosen in (PROOFS, LABELS):
            keys = [key for key in chosen if any(shown(row.get(key)) for row in self.rows)]
            if keys:
                keys = ["method", *keys]
                body = [[shown(row.get(key)) for key in keys] for row in self.rows]
                tables.append([[key.replace("_", " ") for key in keys], *body])
        return tables

    def remarks(self) -> list[str]:
        """Return the disagreements, the statuses that need saying and the notes, as sentences."""
        worst = [f"DISAGREEMENT: {sentence}" for sentence in self.disagreements]
        unusual = [f"{row['method']}: {row['status']}" for row in self.rows if row["status"] not in ("", USUAL)]
        return [*(worst or ["No disagreement beyond the proved gaps."]), *unusual, *self.notes]

    def __str__(self) -> str:
        lines = []
        for table in self.views():
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            padded = [[entry.ljust(width) for entry, width in zip(line, widths, strict=True)] for line in table]
            lines += [*("  ".join(line).rstrip() for line in padded), ""]
        return "\n".join([*lines, *self.remarks()])

    def _repr_html_(self) -> str:
        labels = list(self.labels)
        pairs = [[name, *map(shown, line)] for name, line in zip(labels, self.agreement.tolist(), strict=True)]
        agreement = [[["agreement of labels", *labels], *pairs]] if labels else []
        parts = []
        for head, *body in [*self.views(), *agreement]:
            rows = ["".join(f"<td>{escape(entry)}</td>" for entry in line) for line in body]
            heads = "".join(f"<th>{escape(entry)}</th>" for entry in head)
            parts.append(
                f"<table><thead><tr>{heads}</tr></thead><tbody><tr>{'</tr><tr>'.join(rows)}</tr></tbody></table>"
            )
        remarks = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.remarks())
        return "".join(parts) + f"<ul>{remarks}</ul>"

    def __rich__(self) -> Any:
        try:
            from rich.console import Group
            from rich.table import Table
            from rich.text import Text
        except ImportError:
            raise ImportError("this needs rich: pip install rich; str() gives plain text") from None
        tables: list[Any] = []
        for head, *body in self.views():
            table = Table(box=None, padding=(0, 1, 0, 0))
            for entry in head:
                table.add_column(entry, overflow="fold", no_wrap=entry == "method")
            for line in body:
                table.add_row(*map(Text, line))
            tables += [table, Text()]
        return Group(*tables, *map(Text, self.remarks()))


def shown(value: Any) -> str:
    """Return an entry as it is printed; nothing where there is no value."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:.4f}" if 1e-3 <= abs(number) < 1e4 or number == 0 else f"{number:.1e}"
    return str(value)
