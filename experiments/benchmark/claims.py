"""Findings of the benchmark: instances solved by each method, speed-up of the fastest, largest sizes."""

import numpy as np
import pandas as pd

from experiments.benchmark.cells import TIMES
from experiments.benchmark.methods import GOALS, METHODS
from experiments.harness import Finding

OURS = "low_rank"
CVXPY = [name for name in METHODS if name.startswith("CVXPY")]


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings; the paper has no such table."""
    return [reached(table), *(ahead(table, rivals) for rivals in rivals_of(table)), sizes(table)]


def rivals_of(table: pd.DataFrame) -> list[list[str]]:
    """Return the methods compared with the fastest; CVXPY's solvers count as one, by the faster of them."""
    names = [[name] for name in METHODS if name not in (OURS, *CVXPY)] + [CVXPY]
    return [group for group in names if table["method"].isin(group).any()]


def reached(table: pd.DataFrame) -> Finding:
    """Number of instances that each method solves to each goal."""
    words = []
    for method, rows in table.groupby("method", sort=False):
        counts = " and ".join(f"{rows[column].notna().sum()}" for column in TIMES)
        words.append(f"{method} {counts} of {len(rows)}")
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
        spread = f", median {ratio.median():.3g} ({ratio.min():.2g} to {ratio.max():.2g})" if len(ratio) else ""
        words.append(f"to {goal:g}, both succeed on {len(ratio)} instances{spread}, only `low_rank` on {alone}")
    name = "the faster of CVXPY's solvers" if len(rivals) > 1 else rivals[0]
    return Finding(f"ratio of the time of {name} to that of `low_rank`", "; ".join(words) + ".")


def sizes(table: pd.DataFrame) -> Finding:
    """Largest instances that each method solves to the looser goal."""
    words = []
    for method, rows in table[table[TIMES[0]].notna()].groupby("method", sort=False):
        words.append(f"{method} n = {rows['n'].max()} and d = {rows['d'].max()}")
    return Finding(f"largest numbers of points and features solved to a gap of {GOALS[0]:g}", "; ".join(words) + ".")
