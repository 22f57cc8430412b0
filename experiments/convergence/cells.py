"""Cells of the convergence benchmark: one solver on one instance, to two gaps; its status and certified gap."""

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

GOALS = (1e-4, 1e-8)  # certified gap, relative to 1, the value at V = 0
MOST_FISTA = 1e8  # largest n d^2 for fista: above, it makes too few steps within the time limit
MOST_PUBLISHED = 2_000  # most entries of X for the published algorithm, which would need years for a gap of 1e-8
PATIENCE = 8.0  # factor of the limit that a solve may take in wall-clock time
MET = (Status.OPTIMAL, Status.CLOSED_FORM)


class Deadline:
    """A callback that stops a solver after a limit of processor time in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.started = seconds, time.process_time()

    @property
    def spent(self) -> float:
        """Processor time in seconds since the start."""
        return time.process_time() - self.started

    def __call__(self, _: object) -> bool:
        """Return whether the time limit is exceeded."""
        return self.spent > self.seconds


def solve(method: str, instance: Instance, tol: float, deadline: Deadline) -> Result:
    """Solve by a method without an iteration limit; CVXPY's solvers are limited in wall-clock time only."""
    patience = PATIENCE * deadline.seconds
    if method in dc.registry.cvxpy_solvers():
        return solve_here(dc.v_space(*instance), method, patience, tol=tol)
    limits: dict[str, Any] = {"callback": deadline, "time_limit": patience, "max_iter": 10**9}
    return SOLVERS[method].run(*instance, tol=tol, **limits)


METHODS: dict[str, Callable[[int, int], Any]] = {  # sizes at which a solver is not run
    "low_rank": lambda n, d: False,
    "fista": lambda n, d: n * d * d > MOST_FISTA,
    "fista published": lambda n, d: n * d > MOST_PUBLISHED,
    **{name: partial(SOLVERS[name].too_large, RELAXATIONS["v_space"]) for name in ("CLARABEL", "SCS")},
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
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
            reached and (result.solver not in dc.registry.cvxpy_solvers() or spent <= deadline.seconds)
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
