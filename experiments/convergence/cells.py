"""The cells: one solver on one instance, to two gaps, with what its status says and what its bracket proves."""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.registry import RELAXATIONS, SOLVERS
from experiments.convergence.instances import FAMILIES, SIZES, SMOKE, SMOKE_FAMILIES, Instance, make_instance
from experiments.harness.sweep import Cell, Row
from experiments.in_process import solve_here

GOALS = (1e-4, 1e-8)  # of the proved gap, relative to 1, the value of V = 0
MOST_FISTA = 1e8  # n d^2 up to which fista is run: above, it makes too few steps in the time
MOST_PUBLISHED = 2_000  # entries of X up to which the published algorithm is run: a goal of 1e-8 asks it for years
PATIENCE = 8.0  # times its limit that a solve may take by the clock
MET = (Status.OPTIMAL, Status.CLOSED_FORM)


class Deadline:
    """A callback that stops a solver after so many seconds of processor time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.started = seconds, time.process_time()

    @property
    def spent(self) -> float:
        """Seconds of processor time since then."""
        return time.process_time() - self.started

    def __call__(self, _: object) -> bool:
        """Whether they are over."""
        return self.spent > self.seconds


def solve(method: str, instance: Instance, tol: float, deadline: Deadline) -> Result:
    """Solve by a method; iterations are not limited, and the solvers of CVXPY look at the clock alone."""
    patience = PATIENCE * deadline.seconds
    if method in dc.registry.cvxpy_solvers():
        return solve_here(dc.v_space(*instance), method, patience, tol=tol)
    limits: dict[str, Any] = {"callback": deadline, "time_limit": patience, "max_iter": 10**9}
    return SOLVERS[method].run(*instance, tol=tol, **limits)


METHODS: dict[str, Callable[[int, int], Any]] = {  # the sizes at which a solver is not run
    "low_rank": lambda n, d: False,
    "fista": lambda n, d: n * d * d > MOST_FISTA,
    "fista published": lambda n, d: n * d > MOST_PUBLISHED,
    **{name: partial(SOLVERS[name].too_large, RELAXATIONS["v_space"]) for name in ("CLARABEL", "SCS")},
}
SETTINGS = {"goals": GOALS, "seconds": list(SIZES.values()), "families": list(FAMILIES)}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: every family at every size, by every solver that takes it."""
    return [
        {"family": family, "n": n, "d": d, "method": name}
        for family in (FAMILIES if grid == "full" else SMOKE_FAMILIES)
        for n, d in (SIZES if grid == "full" else SMOKE)
        for name, too_large in METHODS.items()
        if not too_large(n, d)
    ]


def measure(family: str, n: int, d: int, method: str) -> Row:
    """Solve an instance to both goals; to the second only where the first was reached."""
    instance, limit = make_instance(family, n, d), SIZES[n, d]
    row: Row = {"limit": limit}
    for goal in GOALS:
        deadline = Deadline(limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solve(method, instance, goal, deadline)
        row |= read(result, goal, deadline)
        if not row[f"solved {goal:g}"]:
            break
    return row


def read(result: Result, goal: float, deadline: Deadline) -> Row:
    """Return what is kept of a result.

    A status is true if it says that the goal is met where it is, and only there.  Through CVXPY a goal may be met after
    the deadline, compilation included: then it does not count.
    """
    reached, spent = result.gap <= goal, deadline.spent
    return {
        f"solved {goal:g}": int(
            reached and (result.solver not in dc.registry.cvxpy_solvers() or spent <= deadline.seconds)
        ),
        f"seconds {goal:g}": spent,
        f"status {goal:g}": result.status.name,
        f"true {goal:g}": int(reached == (result.status in MET)),
        f"lower {goal:g}": result.lower,
        f"upper {goal:g}": result.upper,
    }


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with, for each row, by how much its brackets miss another's of the same instance."""
    keys = ["family", "n", "d"]
    lowers, uppers = (table[[f"{end} {goal:g}" for goal in GOALS]] for end in ("lower", "upper"))
    highest = lowers.max(axis=1).groupby([table[key] for key in keys]).transform("max")
    least = uppers.min(axis=1).groupby([table[key] for key in keys]).transform("min")
    return table.assign(apart=(highest - least).clip(lower=0.0))
