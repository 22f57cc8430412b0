"""Findings of the benchmark, its tables on the pages, and a check that all certified bounds are consistent."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from diffrac_cvx.comparison.rendered_table import ReportTable
from diffrac_cvx.problem.formatting import format_ends, format_upper
from experiments.benchmark.cells import TIMES
from experiments.harness.command import Outcome
from experiments.harness.findings import Finding, Rule
from experiments.methods import GOALS, METHODS

CVXPY = [name for name in METHODS if name.startswith("CVXPY")]
OURS, ONE_OF_CVXPY = "low_rank", "the faster of CVXPY's solvers"
SHOWN = ("breast_cancer 683 x 10, 0.01", "planted 10000 x 50, 0.001")  # in the README: their labels are recovered
SHORT = {"FISTA as published": "FISTA, published", "accelerated FISTA": "FISTA, accelerated"}
OWN = "*"  # marks a gap that was not certified independently
SLACK = 1e-8  # for rounding errors of the solvers and the digits of the table

FASTEST = Rule(
    "`low_rank` is the fastest method to a certified gap",
    "agrees if on every instance that another method solves too that method takes at least as long, in part if so in the median",
    lambda t: (t["smallest"].dropna() >= 1.0).all(),
    lambda t: (t["median"].dropna() >= 1.0).all(),
    tested=lambda t: t["both"].sum() > 0,
)
RULES = (FASTEST,)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return what each method solves, and its time relative to that of `low_rank`; the paper has no such table."""
    return [
        Finding(
            "Instances run and solved to a certified relative gap, and the largest n and d of these", reached(table)
        ),
        Finding("Time of other methods over that of `low_rank`, on instances that both solve", ahead(table), [FASTEST]),
    ]


def reached(table: pd.DataFrame) -> pd.DataFrame:
    """Return, for each method, the instances on which it was run, those solved to each goal, and the largest of these."""
    found = {}
    for method, rows in table.groupby("method", sort=False):
        run = sum(not reason_of(row).startswith("not run") for _, row in rows.iterrows())
        solved = {f"to {goal:g}": rows[column].notna().sum() for goal, column in zip(GOALS, TIMES, strict=True)}
        largest = {f"largest {size}": rows.loc[rows[TIMES[0]].notna(), size].max() for size in ("n", "d")}
        found[method] = {"run": run, **solved, **largest}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("method")


def ahead(table: pd.DataFrame) -> pd.DataFrame:
    """Return quantiles of the ratio of times, for each other method and goal; CVXPY's solvers count as one."""
    others = {name: [name] for name in METHODS if name not in (OURS, *CVXPY)} | {ONE_OF_CVXPY: CVXPY}
    found = []
    for goal, column in zip(GOALS, TIMES, strict=True):
        times = table.pivot_table(index="instance", columns="method", values=column, dropna=False)
        ours = times.reindex(columns=[OURS])[OURS]
        for name, methods in others.items():
            asked = times.index.isin(table.loc[table["method"].isin(methods), "instance"])
            theirs = times.reindex(columns=methods).min(axis=1)
            ratio = (theirs / ours).dropna()
            row = {"method": name, "to": goal, "both": len(ratio), "median": ratio.median(), "smallest": ratio.min()}
            alone = int((ours.notna() & theirs.isna() & asked).sum())
            found.append({**row, "largest": ratio.max(), "only `low_rank`": alone, "asked": asked.any()})
    rows = pd.DataFrame(found)
    return rows[rows.pop("asked")].set_index(["method", "to"])


# Entries of the tables on the pages


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
    """Format the seconds to both goals, the limit for a goal that was missed, or the reason for a missing result."""
    if np.isnan(row["own_upper"]) and not stopped_by_limit(row):  # not run, out of memory, failed
        return reason_of(row).partition(":")[0].partition(" at ")[0] or "no answer"
    limit = f"> {row['limit']:g}" if stopped_by_limit(row) else "no"
    first, second = (limit if np.isnan(row[column]) else f"{row[column]:.2g}" for column in TIMES)
    return first if first == second == limit else f"{first}; {second}"


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


def memory_text(row: pd.Series) -> str:
    """Format the memory in MB that the solves added to that of the data."""
    return "" if np.isnan(row["peak_MB"]) else f"{row['peak_MB']:.0f}" if row["peak_MB"] >= 0.5 else "0"


def pivot(table: pd.DataFrame, entry: Callable[[pd.Series], str]) -> ReportTable:
    """Return one row per instance and one column per method; a dash if the method does not support the problem."""
    methods = [name for name in METHODS if name in set(table["method"])]
    records = []
    for instance, rows in table.groupby("instance", sort=False):
        found = {str(row["method"]): entry(row) for _, row in rows.iterrows()}
        records.append({"instance": label_of(str(instance)), **{name: found.get(name, "-") for name in methods}})
    titles = {"instance": "instance", **{name: SHORT.get(name, name) for name in methods}}
    return ReportTable.from_records(records, titles)


def passage(table: pd.DataFrame) -> str:
    """Return the times on two instances whose labels are recovered, and a summary of all instances."""
    goals = [f"{goal:g}" for goal in GOALS]
    caption = f"Seconds to a certified relative gap, (upper - lower) / upper, of {'; to '.join(goals)}"
    shown = pivot(table[table["instance"].isin(SHOWN)], seconds_text).markdown()
    columns = [f"to {goal}" for goal in goals]
    solved = "; ".join(
        f"{method} {' and '.join(f'{row[column]:.0f}' for column in columns)} of the {row['run']:.0f} that were run"
        for method, row in reached(table).iterrows()
    )
    ratios = "; ".join(
        f"to {goal:g}, both succeed on {row['both']:.0f} instances, median {row['median']:.3g} ({row['smallest']:.3g} to "
        f"{row['largest']:.3g}), only `low_rank` on {row['only `low_rank`']:.0f}"
        for goal, row in ahead(table).loc[ONE_OF_CVXPY].iterrows()
    )
    limits = "(`>`: not within this limit; `no`: the method stopped without reaching it)"
    return (
        f"{caption} {limits}; below, all {table['instance'].nunique()} instances:\n\n{shown}\n\n"
        f"- Instances solved to a certified relative gap of {' and to '.join(goals)}: {solved}.\n"
        f"- Ratio of the time of {ONE_OF_CVXPY} to that of `low_rank`: {ratios}.\n"
    )


def check(table: pd.DataFrame) -> Outcome:
    """Count the certified bounds, and check that those of one instance are consistent: otherwise one is wrong."""
    lines, count = [], 0
    for name, rows in table.groupby("instance", sort=False):
        uppers = rows.set_index("method")[["own_upper", "judged_upper"]].stack()
        lowers = rows.set_index("method")[["own_lower", "judged_lower"]].stack()
        count += len(lowers)
        if len(lowers) and lowers.max() > uppers.min() + SLACK:
            lower, upper = format_ends(lowers.max(), uppers.min())
            lines.append(
                f"CONFLICT on {name}: {' '.join(lowers.idxmax())} is {lower}, {' '.join(uppers.idxmin())} is {upper}"
            )
    words = "some contradict each other" if lines else "all are consistent"
    judged = int(table["judged_upper"].notna().sum())
    first = f"{count} brackets, {judged} by the judge, on {table['instance'].nunique()} instances: {words}"
    return Outcome("\n".join([first, *lines]), not lines)
