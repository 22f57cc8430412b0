"""Findings of the benchmark, the passage of the README, and a check that all certified bounds are consistent."""

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_ends
from experiments.benchmark.cells import FAILED, TIMES
from experiments.benchmark.table import pivot, reason_of, seconds_text
from experiments.harness import Finding, Outcome
from experiments.methods import GOALS, METHODS

OURS = "low_rank"
CVXPY = [name for name in METHODS if name.startswith("CVXPY")]
SHOWN = ("breast_cancer 683 x 10, 0.01", "planted 10000 x 50, 0.001")  # in the README: their labels are recovered
SLACK = 1e-8  # for rounding errors of the solvers and the digits of the table


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings; the paper has no such table."""
    return [reached(table), *(ahead(table, rivals) for rivals in rivals_of(table)), sizes(table)]


def rivals_of(table: pd.DataFrame) -> list[list[str]]:
    """Return the methods compared with the fastest; CVXPY's solvers count as one, by the faster of them."""
    names = [[name] for name in METHODS if name not in (OURS, *CVXPY)] + [CVXPY]
    return [group for group in names if table["method"].isin(group).any()]


def reached(table: pd.DataFrame) -> Finding:
    """Number of instances that each method solves to each goal, of those on which it was run."""
    words = []
    for method, rows in table.groupby("method", sort=False):
        counts = " and ".join(f"{rows[column].notna().sum()}" for column in TIMES)
        n_run = sum(not reason_of(row).startswith("not run") for _, row in rows.iterrows())
        words.append(f"{method} {counts} of the {n_run} that were run")
    goals = " and to ".join(f"{goal:g}" for goal in GOALS)
    return Finding(f"instances solved to a certified relative gap of {goals}", "; ".join(words) + ".")


def ahead(table: pd.DataFrame, rivals: list[str]) -> Finding:
    """Ratio of the time of the faster rival to that of `low_rank`, on instances that both solve."""
    words = []
    for goal, column in zip(GOALS, TIMES, strict=True):
        times = table.pivot_table(index="instance", columns="method", values=column, dropna=False)
        ours = times.get(OURS, pd.Series(np.nan, index=times.index))
        rival = times.reindex(columns=rivals).min(axis=1)
        ratio = (rival / ours).dropna()
        asked = times.index.isin(table.loc[table["method"].isin(rivals), "instance"])
        alone = int((ours.notna() & rival.isna() & asked).sum())
        spread = f", median {ratio.median():.3g} ({ratio.min():.3g} to {ratio.max():.3g})" if len(ratio) else ""
        words.append(f"to {goal:g}, both succeed on {len(ratio)} instances{spread}, only `low_rank` on {alone}")
    name = "the faster of CVXPY's solvers" if len(rivals) > 1 else rivals[0]
    return Finding(f"ratio of the time of {name} to that of `low_rank`", "; ".join(words) + ".")


def sizes(table: pd.DataFrame) -> Finding:
    """Largest instances that each method solves to the looser goal."""
    words = []
    for method, rows in table[table[TIMES[0]].notna()].groupby("method", sort=False):
        words.append(f"{method} n = {rows['n'].max()} and d = {rows['d'].max()}")
    return Finding(f"largest numbers of points and features solved to a gap of {GOALS[0]:g}", "; ".join(words) + ".")


def passage(table: pd.DataFrame) -> str:
    """Return the times on two instances whose labels are recovered, and a summary of all instances."""
    goals = "; to ".join(f"{goal:g}" for goal in GOALS)
    caption = f"Seconds to a certified relative gap, (upper - lower) / upper, of {goals}"
    shown = pivot(table[table["instance"].isin(SHOWN)], seconds_text).markdown()
    found = [reached(table), ahead(table, CVXPY)]
    words = "\n".join(f"- {claim.statement[0].upper()}{claim.statement[1:]}: {claim.measured}" for claim in found)
    limits = "(`>`: not within this limit; `no`: the method stopped without reaching it)"
    return f"{caption} {limits}; below, all {table['instance'].nunique()} instances:\n\n{shown}\n\n{words}\n"


def check_brackets(table: pd.DataFrame) -> Outcome:
    """Count the certified bounds, and check that those of one instance are consistent: otherwise one is wrong."""
    lines, count, apart = [], 0, 0.0
    for name, rows in table.groupby("instance", sort=False):
        uppers = rows.set_index("method")[["own_upper", "judged_upper"]].stack()
        lowers = rows.set_index("method")[["own_lower", "judged_lower"]].stack()
        count += len(lowers)
        if lowers.empty:
            continue
        apart = max(apart, float(lowers.max() - uppers.min()))
        if lowers.max() > uppers.min() + SLACK:
            lower, upper = format_ends(lowers.max(), uppers.min())
            lines.append(
                f"CONFLICT on {name}: {' '.join(lowers.idxmax())} is {lower}, {' '.join(uppers.idxmin())} is {upper}"
            )
    lines += [f"{method} is not run on {larger}, but solves {smaller}" for method, larger, smaller in mistaken(table)]
    judged = int(table["judged_upper"].notna().sum())
    words = "all are consistent" if apart <= SLACK else "some contradict each other"
    first = f"{count} brackets, {judged} by the judge, on {table['instance'].nunique()} instances: {words}"
    return Outcome("\n".join([first, *lines]), not lines)


def mistaken(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return runs skipped because of a failure on a smaller instance that did not fail: method and both instances."""
    times = table.set_index(["method", "instance"])[TIMES[0]]
    skipped = ((method, larger, smaller) for (method, larger), smaller in FAILED.items() if (method, larger) in times)
    return [entry for entry in skipped if times.get((entry[0], entry[2]), default=0.0) >= 0.0]
