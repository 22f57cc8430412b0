"""Tables of the benchmark in Markdown: one row per instance, one column per method."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.problem.formatting import format_upper
from experiments.benchmark.cells import TIMES
from experiments.methods import GOALS, METHODS

SHORT = {"FISTA as published": "FISTA, published", "accelerated FISTA": "FISTA, accelerated"}
OWN = "*"  # marks a gap that was not certified independently


def label_of(instance: str) -> str:
    """Return the printed name of an instance, with the symbols for a product, lambda and a root."""
    size, _, weight = instance.partition(", ")
    data, n, _, d = size.split(" ")
    product = f"{grouped(n)} \N{MULTIPLICATION SIGN} {grouped(d)}"
    return f"{data.replace('_', '-')} {product}, λ = {weight.replace('sqrt(n)', '√n')}"


def grouped(digits: str) -> str:
    """Return a number with its digits in groups of three if it has five or more."""
    return f"{int(digits):,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if len(digits) > 4 else digits


def seconds_text(row: pd.Series) -> str:
    """Format the seconds to both goals: the limit if not reached, the reason if there is no result."""
    if has_no_answer(row):
        return reason_of(row).partition(":")[0].partition(" at ")[0] or "no answer"
    limit = f"> {row['limit']:g}" if stopped_by_limit(row) else "no"
    first, second = (limit if np.isnan(row[column]) else f"{row[column]:.2g}" for column in TIMES)
    return first if first == second == limit else f"{first}; {second}"


def has_no_answer(row: pd.Series) -> bool:
    """Return whether a method has no result for a reason other than the time limit: not run, out of memory, failed."""
    return bool(np.isnan(row["own_upper"])) and not stopped_by_limit(row)


def stopped_by_limit(row: pd.Series) -> bool:
    """Return whether the time limit stopped a method."""
    return reason_of(row).startswith(("killed", "stopped"))


def reason_of(row: pd.Series) -> str:
    """Return why a method has no further result; empty if it has one."""
    return str(row["reason"]) if isinstance(row["reason"], str) else ""


def gap_text(row: pd.Series) -> str:
    """Format the smallest relative gap (certified independently if possible) and its time."""
    if np.isnan(row["own_upper"]):
        return ""
    judged = row["relative_gap"]
    own = (row["own_upper"] - row["own_lower"]) / max(row["own_upper"], 1e-300)
    gap = f"{format_upper(own)}{OWN}" if np.isnan(judged) else format_upper(max(judged, 0.0))
    return f"{gap} in {row['seconds']:.2g}"


def passes_text(row: pd.Series) -> str:
    """Format the time to the tighter goal in products X'X."""
    passes = row[TIMES[-1]] / row["gram_seconds"]
    return "" if np.isnan(passes) else f"{passes:.0f}" if passes < 1e4 else f"{passes:.0e}"


def memory_text(row: pd.Series) -> str:
    """Format the memory in MB that the solves added to that of the data."""
    return "" if np.isnan(row["peak_MB"]) else f"{row['peak_MB']:.0f}" if row["peak_MB"] >= 0.5 else "0"


TABLES: dict[str, tuple[str, Callable[[pd.Series], str]]] = {
    "Time to a certified relative gap (s)": (
        f"Seconds to {GOALS[0]:g}; to {GOALS[1]:g}. `> 20`: not within this time limit of one solve. `no`: the method "
        "stopped without reaching it. `not run`: reasons below.",
        seconds_text,
    ),
    "Smallest gap": (
        "(upper - lower) / upper, where upper is the objective at the method's V and lower the best bound, both "
        f"certified independently of the method (`certify_v`), and the time of that solve. {OWN}: the method's own "
        "bounds, because V is too large for an independent certificate.",
        gap_text,
    ),
    "Gram passes": (
        f"Time to {GOALS[1]:g} divided by that of one product X'X in the same process, on one thread.",
        passes_text,
    ),
    "Memory": (
        "Peak memory in MB that the solves added to that of the data (last column).",
        memory_text,
    ),
}


def markdown(table: pd.DataFrame) -> str:
    """Return all tables in Markdown, with the reasons for runs without a result."""
    parts = []
    for title, (caption, entry) in TABLES.items():
        part = pivot(table, entry, with_data=title == "Memory")
        parts.append(f"**{title}.** {caption}\n\n{part.markdown()}")
    return "\n\n".join([*parts, reasons(table)]) + "\n"


def pivot(table: pd.DataFrame, entry: Callable[[pd.Series], str], *, with_data: bool = False) -> ReportTable:
    """Return one row per instance and one column per method; a dash if the method does not support the problem."""
    methods = [name for name in METHODS if name in set(table["method"])]
    records = []
    for instance, rows in table.groupby("instance", sort=False):
        found = {str(row["method"]): entry(row) for _, row in rows.iterrows()}
        record = {"instance": label_of(str(instance)), **{name: found.get(name, "-") for name in methods}}
        records.append(record | ({"data": f"{rows['data_MB'].max():.3g}"} if with_data else {}))
    titles = {"instance": "instance", **{name: SHORT.get(name, name) for name in methods}}
    return ReportTable.from_records(records, titles | ({"data": "data"} if with_data else {}))


def reasons(table: pd.DataFrame) -> str:
    """Return a line for every method that was not run or was killed, with the reason and the instances."""
    lines: dict[tuple[str, str], list[str]] = {}
    for _, row in table.iterrows():
        reason = reason_of(row)
        if reason and not reason.startswith("stopped"):
            lines.setdefault((str(row["method"]), reason), []).append(label_of(str(row["instance"])))
    if not lines:
        return "Every solve finished or reached its time limit."
    written = [f"- {method}: {reason} ({'; '.join(names)})" for (method, reason), names in lines.items()]
    return "\n".join(["**Not run, or killed.**", "", *written])
