"""Time to a certified gap for each method: planted, real and dense instances, each solve in its own process.

One solve runs at a time, as concurrent solves share caches and memory, which distorts their times.  Times depend on
the machine, their ratios much less.
"""

import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.errors import ResourceError
from diffrac_cvx.machine.processes import OutOfTimeError, Worker, WorkerDiedError
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.problem.result import Progress, Result, Status
from diffrac_cvx.typing import Array
from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row
from experiments.methods import GOALS, MEMORY, METHODS, warm_up
from experiments.problems import GRIDS, INSTANCES, LIMIT, LONG, MEDIUM, timed_data_of

GRACE = 3.0  # seconds beyond the limit after which a solve is killed
QUICK, REPEATS = 1.0, 3  # solves of less than a second are run three times; the shortest time counts
CELL_SECONDS = 900.0  # limit per cell for all solves and certificates
SETTINGS = {"goals": GOALS, "limits": [LIMIT, MEDIUM, LONG, GRACE, MEMORY], "repeats": REPEATS}
LIMITED = (Status.TIME_LIMIT, Status.USER_LIMIT)
UNKNOWN = dc.Bracket(np.nan, np.nan)  # if V does not fit in memory
TIMES = tuple(f"time_to_1e{round(np.log10(goal))}" for goal in GOALS)  # columns, in seconds


class Answer(NamedTuple):
    """Result of a solve as sent to the judge, with the bounds it claims."""

    seconds: float
    own: dc.Bracket
    status: Status
    reached: tuple[float, ...]  # seconds to each goal by its own history, NaN without one
    point: Result  # without F: the judge uses only the factor of V and the multiplier
    peak: float = 0.0  # growth of memory during the solve, in bytes

    def seconds_to(self, goal: int, limit: float) -> float:
        """Return the seconds to a goal by its own bounds, infinite if not reached within the limit."""
        reached = self.reached[goal]
        seconds = self.seconds if np.isnan(reached) and relative_gap(self.own) <= GOALS[goal] else reached
        return seconds if seconds <= limit else np.inf

    def is_limited(self, limit: float) -> bool:
        """Return whether a limit stopped it, or unlimited phases such as compilation exceeded the time limit."""
        return self.status in LIMITED or self.seconds >= limit


def relative_gap(bounds: dc.Bracket | Result | Progress) -> float:
    """Return (upper - lower) / upper."""
    return (bounds.upper - bounds.lower) / bounds.upper if bounds.upper > 0.0 else 0.0


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid over the available data; `measure` reports methods that are not installed."""
    names = {instance.data: instance.name for instance in GRIDS[grid]}
    there = keep_loadable(names, lambda data: timed_data_of(names[data]))
    return [
        {"instance": each.name, "n": each.n, "d": each.d, "lam": each.lam, "limit": each.seconds, "method": name}
        for each in GRIDS[grid]
        for name, method in METHODS.items()
        if each.data in there and (method.takes_l1 or each.lam == 0.0)
    ]


def measure(instance: str, n: int, d: int, lam: float, limit: float, method: str) -> Row:
    """Run all settings of a method on an instance in its own process, and certify the results here."""
    if METHODS[method].missing:
        return {"reason": f"not run: {METHODS[method].missing}"}
    runs: list[Answer] = []
    row: Row = {"reason": ""}
    with closing(Worker(1e9 * MEMORY)) as worker:
        try:
            worker.call(prepare, instance, method)
            runs.extend(climb(worker, instance, method, limit))
            row["reason"] = f"stopped after {limit:g} s" if runs[-1].is_limited(limit) else ""
        except (OutOfTimeError, WorkerDiedError, MemoryError, ResourceError, ArithmeticError, ValueError) as error:
            row["reason"] = explain(error, limit)
    return row | summarize(instance, runs, limit)


def climb(worker: Worker, instance: str, method: str, limit: float) -> Iterator[Answer]:
    """Run the settings of a method from loose to tight, until both goals or a limit are reached."""
    reached, upper = np.inf, 1.0
    for k, rung in enumerate(METHODS[method].rungs):
        if reached <= rung.goal:
            continue
        for _ in range(REPEATS):
            answer = worker.call(solve_rung, instance, method, k, upper, seconds=limit + GRACE)
            yield answer._replace(peak=worker.peak)
            if answer.seconds >= QUICK:
                break
        reached, upper = min(reached, relative_gap(answer.own)), min(upper, answer.own.upper)
        if answer.is_limited(limit):
            return


def judge(instance: str, answer: Answer) -> dc.Bracket:
    """Bound the optimum from the solution of any method; NaN if V does not fit in memory.

    Bounds claimed by the result itself are ignored.
    """
    try:
        return dc.certify_v(timed_data_of(instance), answer.point, 1.0, dc.Penalty.l1(INSTANCES[instance].lam))
    except ResourceError:
        return UNKNOWN


def summarize(instance: str, runs: list[Answer], limit: float) -> Row:
    """Return the tightest bounds and their time, the shortest times to the goals, and the largest growth of memory.

    Times follow the method's own bounds; each comes with the judge's upper bound of that result.  The judge may take
    longer than a solver, so other results are not judged.
    """
    if not runs:
        return {}
    last = min(runs, key=lambda run: (relative_gap(run.own), run.seconds))
    firsts = [min(runs, key=lambda run: run.seconds_to(k, limit)) for k in range(len(GOALS))]
    reached = [run for k, run in enumerate(firsts) if np.isfinite(run.seconds_to(k, limit))]
    judged = {key: judge(instance, run) for key, run in {id(run): run for run in (last, *reached)}.items()}
    row: Row = {
        "seconds": last.seconds,
        "peak_MB": max(run.peak for run in runs) / 1e6,
        "own_lower": last.own.lower,
        "own_upper": last.own.upper,
        "judged_lower": float(np.fmax.reduce([bracket.lower for bracket in judged.values()])),
        "judged_upper": judged[id(last)].upper,
        "status": str(last.status),
    }
    for k, (column, first) in enumerate(zip(TIMES, firsts, strict=True)):
        seconds = first.seconds_to(k, limit)
        row[column] = seconds if np.isfinite(seconds) else np.nan
        row[f"upper_{column}"] = judged.get(id(first), UNKNOWN).upper
    return row


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with certified relative gaps, dropping times that the judge does not confirm.

    The lower bound of an instance is the best one certified from the results of all methods; the gap of a result is
    the distance of its upper bound from it.
    """
    best = table.groupby("instance")["judged_lower"].transform("max")
    for goal, column in zip(GOALS, TIMES, strict=True):
        upper = table.pop(f"upper_{column}")
        table[column] = table[column].mask((upper - best) / upper > goal)
    return table.assign(best_lower=best, relative_gap=(table["judged_upper"] - best) / table["judged_upper"])


def explain(error: Exception, limit: float) -> str:
    """Return the reason why a method has no further result."""
    if isinstance(error, OutOfTimeError):
        return f"killed after {limit + GRACE:g} s without an answer"
    if isinstance(error, ResourceError):
        return f"not run: {str(error).partition(';')[0]}"
    if isinstance(error, MemoryError):
        return f"out of memory at {MEMORY:g} GB"
    return str(error) if isinstance(error, WorkerDiedError) else f"failed: {type(error).__name__}: {error}"


# Code that runs in the solver's process


def prepare(instance: str, method: str) -> None:
    """Create the data, and run the method once on few points so that imports do not count."""
    timed_data_of(instance)
    warm_up(method)


def solve_rung(instance: str, method: str, rung: int, upper: float) -> Answer:
    """Solve an instance with one setting of a method."""
    X, chosen = timed_data_of(instance), INSTANCES[instance]
    with warnings.catch_warnings(action="ignore"):
        result = METHODS[method].rungs[rung].solve(X, dc.Penalty.l1(chosen.lam), upper, chosen.seconds)
    own = dc.Bracket(result.lower, result.upper)
    return Answer(result.seconds, own, result.status, times_of(result), point_of(X, result))


def times_of(result: Result) -> tuple[float, ...]:
    """Return the seconds to each goal by a result's history; NaN without one, or if not reached."""
    reached = [(relative_gap(line), line.seconds) for line in result.history]
    return tuple(next((seconds for gap, seconds in reached if gap <= goal), np.nan) for goal in GOALS)


def point_of(X: Array, result: Result) -> Result:
    """Return the data sent to the judge: the factor G of V and the multiplier; from a Y alone, V = (X^+ F)(X^+ F)'."""
    G = np.linalg.lstsq(as_data(X, warn=False), result.F)[0].astype(np.float64) if result.G is None else result.G
    return replace(result, factor=np.zeros((1, 1)), G=G, history=())
