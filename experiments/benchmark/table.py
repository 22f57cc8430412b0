"""The benchmark's tables in Markdown: an instance a row, a method a column."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.problem.formatting import format_upper
from experiments.benchmark.cells import TIMES
from experiments.benchmark.methods import GOALS, METHODS

SHORT = {"FISTA as published": "FISTA, published", "accelerated FISTA": "FISTA, accelerated"}
NEEDS = {  # what a reader has to know of the methods that need another package
    "CVXPY + MOREAU": (
        "`moreau` (Apache 2.0, no licence key; Python 3.9 and CVXPY 1.9.3 or newer), its interior-point method on the CPU; "
        "`moreau[cuda]` adds one for an NVIDIA GPU, which needs Python 3.12 and is not used here"
    ),
    "CVXPY + SDPA": (
        "`sdpa-python` (GPL 2, no licence key; Python 3.9 or newer; CPU alone), an interior-point method without power cones, "
        "so that each root is a 2 \N{MULTIPLICATION SIGN} 2 semidefinite matrix, and without a limit of time, so that it is ended from outside; where its memory ends it aborts (SIGABRT)"
    ),
    "max-cut, pymanopt": "`pymanopt` (BSD; CPU)",
}
OWN = "*"  # marks a gap that the judge has not confirmed


def label_of(instance: str) -> str:
    """Return the name of an instance as it is printed, with the signs of a product, of lambda and of a root."""
    size, _, weight = instance.partition(", ")
    data, n, _, d = size.split(" ")
    product = f"{grouped(n)} \N{MULTIPLICATION SIGN} {grouped(d)}"
    return f"{data.replace('_', '-')} {product}, λ = {weight.replace('sqrt(n)', '√n')}"


def grouped(digits: str) -> str:
    """Return a number with its digits in groups of three from five digits on."""
    return f"{int(digits):,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if len(digits) > 4 else digits


def seconds_text(row: pd.Series) -> str:
    """Return the seconds to both goals: the limit where they are not reached, a word where there is no answer."""
    if has_no_answer(row):
        return reason_of(row).partition(":")[0].partition(" at ")[0] or "no answer"
    limit = f"> {row['limit']:g}" if stopped_by_limit(row) else "no"
    first, second = (limit if np.isnan(row[column]) else f"{row[column]:.2g}" for column in TIMES)
    return first if first == second == limit else f"{first}; {second}"


def has_no_answer(row: pd.Series) -> bool:
    """Whether a method has no answer, and not for want of time: not run, out of memory, or failed."""
    return bool(np.isnan(row["own_upper"])) and not stopped_by_limit(row)


def stopped_by_limit(row: pd.Series) -> bool:
    """Whether it was its limit of time that ended a method."""
    return reason_of(row).startswith(("killed", "stopped"))


def reason_of(row: pd.Series) -> str:
    """Return why a method has no further answer, empty if it has one."""
    return str(row["reason"]) if isinstance(row["reason"], str) else ""


def gap_text(row: pd.Series) -> str:
    """Return the least relative gap, the judge's where there is one, and the seconds it took."""
    if np.isnan(row["own_upper"]):
        return ""
    judged = row["relative_gap"]
    own = (row["own_upper"] - row["own_lower"]) / max(row["own_upper"], 1e-300)
    gap = f"{format_upper(own)}{OWN}" if np.isnan(judged) else format_upper(max(judged, 0.0))
    return f"{gap} in {row['seconds']:.2g}"


def passes_text(row: pd.Series) -> str:
    """Return the products X'X that take the time to the tighter goal."""
    passes = row[TIMES[-1]] / row["gram_seconds"]
    return "" if np.isnan(passes) else f"{passes:.0f}" if passes < 1e4 else f"{passes:.0e}"


def memory_text(row: pd.Series) -> str:
    """Return the MB that the solves added to those of the data."""
    return "" if np.isnan(row["peak_MB"]) else f"{row['peak_MB']:.0f}" if row["peak_MB"] >= 0.5 else "0"


TABLES: dict[str, tuple[str, Callable[[pd.Series], str]]] = {
    "Seconds to a proved relative gap": (
        f"Seconds to {GOALS[0]:g}; to {GOALS[1]:g}. `> 20`: not within that limit of one solve. `no`: the method ended "
        "without it. `not run`: for a reason given below.",
        seconds_text,
    ),
    "The least gap": (
        "(upper - lower) / upper with upper the objective at the answer's V and lower the best bound, both of the one judge "
        f"(`certify_v`), and the seconds of that solve. {OWN}: the method's own bracket, where V is too large for the judge.",
        gap_text,
    ),
    "Gram passes": (
        f"The time to {GOALS[1]:g} over that of one product X'X in the same process, on one thread.",
        passes_text,
    ),
    "Memory": (
        "MB that the solves added at their peak to those of the data, which are in the last column.",
        memory_text,
    ),
}


def markdown(table: pd.DataFrame) -> str:
    """Return all tables in Markdown, and the reasons of what was not run or has no answer."""
    parts = []
    for title, (caption, entry) in TABLES.items():
        part = pivot(table, entry, with_data=title == "Memory")
        parts.append(f"**{title}.** {caption}\n\n{part.markdown()}")
    return "\n\n".join([*parts, needs(table), reasons(table)]) + "\n"


def needs(table: pd.DataFrame) -> str:
    """Return a line for every method of the table that needs another package: which, and on what terms."""
    lines = [f"- {method}: {text}." for method, text in NEEDS.items() if method in set(table["method"])]
    return "\n".join(["**What the other packages need.**", "", *lines])


def pivot(table: pd.DataFrame, entry: Callable[[pd.Series], str], *, with_data: bool = False) -> ReportTable:
    """Return an instance a row and a method a column; a dash where the method does not take the problem."""
    methods = [name for name in METHODS if name in set(table["method"])]
    records = []
    for instance, rows in table.groupby("instance", sort=False):
        found = {str(row["method"]): entry(row) for _, row in rows.iterrows()}
        record = {"instance": label_of(str(instance)), **{name: found.get(name, "-") for name in methods}}
        records.append(record | ({"data": f"{rows['data_MB'].max():.3g}"} if with_data else {}))
    titles = {"instance": "instance", **{name: SHORT.get(name, name) for name in methods}}
    return ReportTable.from_records(records, titles | ({"data": "data"} if with_data else {}))


def of_instance(table: pd.DataFrame, instance: str) -> ReportTable:
    """Return what is known of one instance, a method a row."""
    rows = table[table["instance"] == instance]
    records = [
        {
            "method": SHORT.get(str(row["method"]), str(row["method"])),
            "seconds": seconds_text(row),
            "gap": gap_text(row),
            "memory": memory_text(row),
        }
        for _, row in rows.iterrows()
    ]
    goals = "; ".join(f"{goal:g}" for goal in GOALS)
    titles = {"method": "method", "seconds": f"seconds to a relative gap of {goals}", "gap": "least gap, in seconds"}
    return ReportTable.from_records(records, titles | {"memory": "MB"})


def reasons(table: pd.DataFrame) -> str:
    """Return a line for every method that was not run or was ended from outside, with the instances and why."""
    lines: dict[tuple[str, str], list[str]] = {}
    for _, row in table.iterrows():
        reason = reason_of(row)
        if reason and not reason.startswith("stopped"):
            lines.setdefault((str(row["method"]), reason), []).append(label_of(str(row["instance"])))
    if not lines:
        return "Every solve ended by itself or at its limit of time."
    written = [f"- {method}: {reason} ({'; '.join(names)})" for (method, reason), names in lines.items()]
    return "\n".join(["**Not run, or ended from outside.**", "", *written])
