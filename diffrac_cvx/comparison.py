"""What `compare` returns: rows, agreement, disagreements, as a table of pandas, text, rich text or HTML."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import combinations, permutations
from typing import Any

import numpy as np

from diffrac_cvx import metrics
from diffrac_cvx.inputs import Array
from diffrac_cvx.result import Bracket, Result, Status
from diffrac_cvx.table_files import pandas_or_error

PROOFS = ("problem", "value", "lower", "upper", "gap", "rank", "eigenvalue_ratio", "seconds", "memory_MB", "iterations")
LABELS = (
    "label_gap", "error", "error_kmeans_centered", "error_sign_centered", "error_sign_leading", "error_sign_second",
)  # fmt: skip
USUAL = str(Status.OPTIMAL)
RANK_ONE = 1e-2  # eigenvalue ratio of Y below which a solution counts as labels


@dataclass(frozen=True, eq=False)
class Found:
    """What one method found.

    Attributes
    ----------
    problem : str
        The paper's equation.
    result : Result or None
        None for a baseline, or where the method failed.
    labels : (n,) array or None
        Labels in {-1, +1}, by the paper's rounding.
    bounds : Bracket or None
        Proved bounds on the optimum of (15), where the method gives any.
    seconds, memory : float
        Time, building and compiling included; growth of the peak in MB, NaN where it was not measured.
    reason : str
        Why there is no result.
    """

    problem: str
    result: Result | None = None
    labels: Array | None = None
    bounds: Bracket | None = None
    seconds: float = np.nan
    memory: float = np.nan
    reason: str = ""


def disagreements(found: Mapping[str, Found], tol: float) -> Iterator[str]:
    """Name every pair whose proved bounds on the same optimum do not meet, and values below their own bounds."""
    bounded = {name: one.bounds for name, one in found.items() if one.bounds is not None}
    slack = 1e-9
    for (first, low), (second, high) in permutations(bounded.items(), 2):
        if low.lower > high.upper + slack:
            yield (
                f"{first} proves that the optimum is at least {low.lower:.6g}, {second} that it is at most "
                f"{high.upper:.6g}: apart by {low.lower - high.upper:.2g}"
            )
    for name, one in found.items():
        if one.result is not None and not np.isnan(one.result.value) and one.result.value < one.result.lower - tol:
            yield f"{name} returns a value of {one.result.value:.6g} below its own lower bound {one.result.lower:.6g}"


def label_differences(found: Mapping[str, Found]) -> Iterator[str]:
    """Name the pairs of solutions of rank one, labels that is, that are not the same labels."""
    sharp = [name for name, one in found.items() if is_sharp(one)]
    for first, second in combinations(sharp, 2):
        error = metrics.clustering_error(labels_of(found[first]), labels_of(found[second]))
        if error > 0.0:
            yield f"{first} and {second} are both of rank one, but their labels differ: clustering error {error:.3f}"


def is_sharp(found: Found) -> bool:
    """Whether a solution of (15), in whatever form, is of rank one: it is labels, so all such must be the same."""
    result = found.result
    if result is None or found.bounds is None or not np.isfinite(found.bounds.lower):
        return False
    return bool(metrics.eigenvalue_ratio(result.F) < RANK_ONE)


def labels_of(found: Found) -> Array:
    """Return the labels of a method that has some."""
    assert found.labels is not None
    return found.labels


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several methods on the same data.

    Attributes
    ----------
    rows : tuple of dict
        One for each method: "method", "problem", "value", "lower", "upper", "gap" (proved), "rank",
        "eigenvalue_ratio", "label_gap" (proved distance of the labels from the optimum of Eq. (9), by the best lower
        bound of all methods), "error" and one such column for each rounding where labels were given, "seconds",
        "memory_MB", "iterations", "status".
    found : dict of str to Found
        All that each method found, its `Result` included.
    disagreements : tuple of str
        Every disagreement beyond the proved gaps; empty when all is well.
    notes : tuple of str
        What was left out, and why.
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
        return np.array([[1.0 - metrics.clustering_error(y, z) for z in every] for y in every])

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame, the methods as its index."""
        return pandas_or_error().DataFrame(list(self.rows)).set_index("method")

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
        parts = []
        for head, *body in self.views():
            rows = ["".join(f"<td>{escape(entry)}</td>" for entry in line) for line in body]
            heads = "".join(f"<th>{escape(entry)}</th>" for entry in head)
            parts.append(
                f"<table><thead><tr>{heads}</tr></thead><tbody><tr>{'</tr><tr>'.join(rows)}</tr></tbody></table>"
            )
        remarks = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.remarks())
        return "".join(parts) + f"<ul>{remarks}</ul>"

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

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
