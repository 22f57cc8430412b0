"""What the benchmark shows: how often each method gets there, how far ahead the first is, what is out of reach."""

import numpy as np
import pandas as pd

from experiments.benchmark.cells import TIMES
from experiments.benchmark.methods import GOALS, METHODS
from experiments.harness import Finding

OURS = "low_rank"
CVXPY = [name for name in METHODS if name.startswith("CVXPY")]


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return what was measured; the paper has no such table."""
    return [reached(table), *(ahead(table, rivals) for rivals in rivals_of(table)), sizes(table)]


def rivals_of(table: pd.DataFrame) -> list[list[str]]:
    """Return the methods that the first is compared with, CVXPY's solvers as one: the quicker of them counts."""
    names = [[name] for name in METHODS if name not in (OURS, *CVXPY)] + [CVXPY]
    return [group for group in names if table["method"].isin(group).any()]


def reached(table: pd.DataFrame) -> Finding:
    """How many instances each method solves to each goal."""
    words = []
    for method, rows in table.groupby("method", sort=False):
        counts = " and ".join(f"{rows[column].notna().sum()}" for column in TIMES)
        words.append(f"{method} {counts} of {len(rows)}")
    goals = " and to ".join(f"{goal:g}" for goal in GOALS)
    return Finding(f"instances solved to a proved relative gap of {goals}", "; ".join(words) + ".")


def ahead(table: pd.DataFrame, rivals: list[str]) -> Finding:
    """The ratio of the times of rivals, the quicker one, to those of `low_rank`, where both get there."""
    words = []
    for goal, column in zip(GOALS, TIMES, strict=True):
        times = table.pivot_table(index="instance", columns="method", values=column, dropna=False)
        ours = times.get(OURS, pd.Series(np.nan, index=times.index))
        rival = times.reindex(columns=rivals).min(axis=1)
        ratio = (rival / ours).dropna()
        asked = times.index.isin(table.loc[table["method"].isin(rivals), "instance"])
        alone = int((ours.notna() & rival.isna() & asked).sum())
        spread = f", median {ratio.median():.3g} ({ratio.min():.2g} to {ratio.max():.2g})" if len(ratio) else ""
        words.append(f"to {goal:g} both on {len(ratio)} instances{spread}, `low_rank` alone on {alone}")
    name = "the quicker of CVXPY's solvers" if len(rivals) > 1 else rivals[0]
    return Finding(f"time of {name} over that of `low_rank`", "; ".join(words) + ".")


def sizes(table: pd.DataFrame) -> Finding:
    """The largest instances that each method solves to the looser goal."""
    words = []
    for method, rows in table[table[TIMES[0]].notna()].groupby("method", sort=False):
        words.append(f"{method} n = {rows['n'].max()} and d = {rows['d'].max()}")
    return Finding(f"the most points and features solved to {GOALS[0]:g}", "; ".join(words) + ".")
