"""Instances of (15) that each solver solves to certified gaps of 1e-4 and 1e-8, and correctness of its status.

It fails if a status is incorrect or two bounds of one instance contradict each other.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.comparison.instances import Instance
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.registry import RELAXATIONS, SOLVERS
from experiments.harness.command import Outcome
from experiments.harness.findings import Finding
from experiments.harness.sweep import Cell, Row
from experiments.methods import Deadline, solve_here
from experiments.problems import FAMILIES, make_instance

# n, d and the limit in seconds of processor time per solve, which does not depend on other load of the machine.
SIZES = {
    (5, 1): 2.0,
    (12, 5): 2.0,
    (5, 52): 2.0,
    (22, 282): 4.0,
    (60, 20): 2.0,
    (100, 100): 3.0,
    (220, 125): 3.0,
    (395, 251): 5.0,
    (1000, 40): 3.0,
    (3000, 300): 10.0,
}
SMOKE = ((5, 1), (12, 5))
SMOKE_FAMILIES = ("planted", "outlying rows", "nu near 0")
GOALS = (1e-4, 1e-8)  # certified gap, relative to 1, the value at V = 0
MOST_FISTA = 1e8  # largest n d^2 for fista: above, it makes too few steps within the time limit
MOST_PUBLISHED = 2_000  # most entries of X for the published algorithm, which would need years for a gap of 1e-8
PATIENCE = 8.0  # factor of the limit that a solve may take in wall-clock time
MET = (Status.OPTIMAL, Status.CLOSED_FORM)
CELL_SECONDS = 240.0
SLACK = 1e-9  # for rounding errors, between bounds of different solvers


def solve(method: str, instance: Instance, tol: float, deadline: Deadline) -> Result:
    """Solve by a method without an iteration limit; CVXPY's solvers are limited in wall-clock time only."""
    patience = PATIENCE * deadline.seconds
    if method in dc.registry.CVXPY_SOLVERS:
        return solve_here(dc.v_space(*instance), method, patience, tol=tol)
    limits: dict[str, Any] = {"callback": deadline, "time_limit": patience, "max_iter": 10**9}
    return SOLVERS[method].function(*instance, tol=tol, **limits)


METHODS: dict[str, Callable[[int, int], Any]] = {  # sizes at which a solver is not run
    "low_rank": lambda n, d: False,
    "fista": lambda n, d: n * d * d > MOST_FISTA,
    "fista published": lambda n, d: n * d > MOST_PUBLISHED,
    **{name: partial(RELAXATIONS["v_space"].too_large, name) for name in ("CLARABEL", "SCS")},
}
SETTINGS = {"goals": GOALS, "seconds": list(SIZES.values()), "families": list(FAMILIES)}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: every family at every size, with every solver that supports it."""
    return [
        {"family": family, "n": n, "d": d, "method": name}
        for family in (FAMILIES if grid == "full" else SMOKE_FAMILIES)
        for n, d in (SIZES if grid == "full" else SMOKE)
        for name, too_large in METHODS.items()
        if not too_large(n, d)
    ]


def measure(family: str, n: int, d: int, method: str) -> Row:
    """Solve an instance to the first goal, and to the second if the first was reached."""
    instance, limit = make_instance(family, n, d), SIZES[n, d]
    row: Row = {"limit": limit}
    for goal in GOALS:
        deadline = Deadline(limit)
        with warnings.catch_warnings(action="ignore"):
            result = solve(method, instance, goal, deadline)
        row |= read(result, goal, deadline)
        if not row[f"solved {goal:g}"]:
            break
    return row


def read(result: Result, goal: float, deadline: Deadline) -> Row:
    """Return the recorded fields of a result.

    A status is correct if it reports the goal as reached exactly when it is.  With CVXPY a goal may be reached after
    the deadline, as compilation counts; such a result does not count.
    """
    reached, spent = result.gap <= goal, deadline.spent
    return {
        f"solved {goal:g}": int(
            reached and (result.solver not in dc.registry.CVXPY_SOLVERS or spent <= deadline.seconds)
        ),
        f"seconds {goal:g}": spent,
        f"status {goal:g}": result.status.name,
        f"true {goal:g}": int(reached == (result.status in MET)),
        f"lower {goal:g}": result.lower,
        f"upper {goal:g}": result.upper,
    }


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with, for each row, the distance by which its bounds contradict others of the same instance."""
    keys = ["family", "n", "d"]
    lowers, uppers = (table[[f"{end} {goal:g}" for goal in GOALS]] for end in ("lower", "upper"))
    highest = lowers.max(axis=1).groupby([table[key] for key in keys]).transform("max")
    least = uppers.min(axis=1).groupby([table[key] for key in keys]).transform("min")
    return table.assign(apart=(highest - least).clip(lower=0.0))


def reached_fractions(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per method: instances, those solved to each goal, and the median time."""
    rows = {}
    for name, part in table.groupby("method", sort=False):
        rows[name] = {"instances": len(part)}
        for goal in GOALS:
            solved = part[part[f"solved {goal:g}"] == 1.0]
            rows[name] |= {
                f"to {goal:g}": len(solved),
                f"median seconds to {goal:g}": solved[f"seconds {goal:g}"].median(),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def by_family(table: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Return, for each family and method, "solved of tried" for one goal."""
    column = table[f"solved {goal:g}"].fillna(0.0)
    groups = column.groupby([table["family"], table["method"]], sort=False)
    text = groups.sum().astype(int).astype(str) + " of " + groups.size().astype(str)
    return text.unstack("method").reindex(columns=[name for name in METHODS if name in set(table["method"])])


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the number of instances that each solver solves, in total and by family."""
    return [
        Finding(
            "Instances solved to a certified gap, and median processor time of a solve in seconds",
            reached_fractions(table),
        ),
        *(Finding(f"Instances solved to a gap of {goal:g}, by family", by_family(table, goal)) for goal in GOALS),
    ]


def check(table: pd.DataFrame) -> Outcome:
    """Pass if every status is correct and all bounds of an instance are consistent; list instances not solved to the first goal."""
    false = [table[f"true {goal:g}"] == 0 for goal in GOALS]
    untrue = table[false[0] | false[1]]
    apart = table[table["apart"] > SLACK]
    lines = [
        f"{len(untrue)} statuses are incorrect, {len(apart)} rows have bounds that contradict others of the same instance",
        *(f"INCORRECT: {where(row)}" for _, row in untrue.iterrows()),
        *(f"CONFLICT by {row['apart']:.1e}: {where(row)}" for _, row in apart.iterrows()),
    ]
    return Outcome("\n".join(lines), untrue.empty and apart.empty)


def where(row: pd.Series) -> str:
    """Return the description of a cell."""
    return f"{row['family']}, {row['n']} x {row['d']}, {row['method']}"
