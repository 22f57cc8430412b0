"""Findings of the convergence benchmark: instances solved by each solver, and whether every status is correct."""

import pandas as pd

from experiments.convergence.cells import GOALS, METHODS
from experiments.harness import Finding, Outcome

SLACK = 1e-9  # for rounding errors, between bounds of different solvers


def reached_fractions(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per method: instances, those solved to each goal, and the longest time."""
    rows = []
    for name in METHODS:
        part = table[table["method"] == name]
        if part.empty:
            continue
        row: dict[str, object] = {"method": name, "instances": len(part)}
        for goal in GOALS:
            solved = part.get(f"solved {goal:g}", pd.Series(0.0, part.index)).fillna(0.0) == 1.0
            row[f"to {goal:g}"] = int(solved.sum())
            row[f"median seconds to {goal:g}"] = (
                part.loc[solved, f"seconds {goal:g}"].median() if solved.any() else None
            )
        rows.append(row)
    return pd.DataFrame(rows)


def by_family(table: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Return, for each family and method, "solved of tried" for one goal."""
    column = table[f"solved {goal:g}"].fillna(0.0)
    groups = column.groupby([table["family"], table["method"]], sort=False)
    text = groups.sum().astype(int).astype(str) + " of " + groups.size().astype(str)
    return text.unstack("method").reindex(columns=[name for name in METHODS if name in set(table["method"])])


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    words = []
    for row in reached_fractions(table).itertuples(index=False):
        name, tried, *numbers = row
        words.append(f"{name} {numbers[0]} and {numbers[2]} of {tried}")
    goals = " and ".join(f"{goal:g}" for goal in GOALS)
    return [Finding(f"instances solved to a certified gap of {goals}", "; ".join(words) + ".")]


def check_statuses(table: pd.DataFrame) -> Outcome:
    """Pass if every status is correct and all bounds of an instance are consistent; list instances not solved to the first goal."""
    false = [table[f"true {goal:g}"] == 0 for goal in GOALS]
    untrue = table[false[0] | false[1]]
    apart = table[table["apart"] > SLACK]
    lines = [
        reached_fractions(table).to_string(index=False, float_format=lambda number: f"{number:.2g}"),
        *(by_family(table, goal).fillna("-").to_string() for goal in GOALS),
        f"{len(untrue)} statuses are incorrect, {len(apart)} rows have bounds that contradict others of the same instance",
        *(f"INCORRECT: {where(row)}" for _, row in untrue.iterrows()),
        *(f"CONFLICT by {row['apart']:.1e}: {where(row)}" for _, row in apart.iterrows()),
    ]
    return Outcome("\n".join(lines), untrue.empty and apart.empty)


def where(row: pd.Series) -> str:
    """Return the description of a cell."""
    return f"{row['family']}, {row['n']} x {row['d']}, {row['method']}"
