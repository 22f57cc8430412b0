"""Every relaxation and solver on the same data, in one table that names what does not agree."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx import metrics
from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.compare_methods import BY_DEFAULT, METHODS, ROUNDINGS, Method, Task
from diffrac_cvx.comparison import Comparison, Found, disagreements, label_differences
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.inputs import Array, as_data, as_labels, in_unit_interval, positive
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Bracket, Progress, Result
from diffrac_cvx.solvers import low_rank

Report = Callable[[str, Progress | None], object]


def compare(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    *,
    methods: Sequence[str] | None = None,
    nu: float = 1.0,
    penalty: Penalty | None = None,
    alpha: float | None = None,
    tol: float = 1e-4,
    time_limit: float | None = None,
    memory: bool = False,
    random_state: int = 0,
    progress: Report | None = None,
) -> Comparison:
    """Run relaxations, solvers and baselines on the same data.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here, at its own scale.
    y : (n,) array, optional
        True labels in {-1, +1}, to judge by.
    methods : sequence of str, optional
        Names such as "low_rank", "fista published", "lifted/SCS" or "k-means"; by default all that take the penalty
        and are not too large, see the notes of what is returned.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty, optional
        Weights a and c.
    alpha : float, optional
        Imbalance of `constrained_alpha`, in [0, 1]; by default that of the penalised solution.
    tol : float
        Proved gap at which every solver stops.
    time_limit : float, optional
        Seconds for each solver.
    memory : bool
        Whether each method runs in a process of its own, whose peak is measured; as with any such process, a script
        needs ``if __name__ == "__main__":`` then.
    random_state : int
        Seed of the baselines.
    progress : callable, optional
        Called as ``progress(method, None)`` before each method and ``progress(method, Progress)`` by the fast solvers;
        a true value stops the method, and at the start of one all that are left.

    Returns
    -------
    Comparison

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; a method that fails is a row with its reason.
    """
    data, nu = as_data(X), in_unit_interval(nu, "nu")
    truth = None if y is None else as_labels(y, len(data))
    penalty = Penalty() if penalty is None else penalty
    penalty.weights(data.shape[1])
    if alpha is None:
        F = low_rank(data, nu, penalty, tol=max(tol, 1e-4), time_limit=time_limit).F
        alpha = float(np.clip(np.sum(F.mean(axis=0) ** 2), 0.0, 1.0))
    task = Task(data, nu, penalty, in_unit_interval(alpha, "alpha"), positive(tol, "tol"), time_limit, random_state)
    names, notes = chosen(methods, task)
    found: dict[str, Found] = {}
    for name in names:
        if progress is not None and progress(name, None):
            notes.append(f"stopped before {name}")
            break
        found[name] = attempt(name, task, memory, progress)
    lower = max((one.bounds.lower for one in found.values() if one.bounds is not None), default=0.0)
    rows = [row_of(name, one, task, truth, lower) for name, one in found.items()]
    notes += label_differences(found)
    return Comparison(tuple(rows), found, tuple(disagreements(found, task.tol)), tuple(notes))


def chosen(methods: Sequence[str] | None, task: Task) -> tuple[list[str], list[str]]:
    """Return the methods to run, and why others are left out."""
    if methods is not None:
        unknown = [name for name in methods if name not in METHODS]
        if unknown:
            raise ParameterError(f"methods: {unknown[0]!r} is not known; there are {', '.join(METHODS)}")
    names, notes = [], []
    for name in BY_DEFAULT if methods is None else methods:
        method = METHODS[name]
        reason = method.refuses(task.penalty) or ("" if methods is not None else method.too_large(task.X))
        if reason:
            notes.append(f"{name} is left out: {reason}")
        else:
            names.append(name)
    return names, notes


def attempt(name: str, task: Task, memory: bool, progress: Report | None) -> Found:
    """Run one method; whatever goes wrong in it becomes its reason."""
    method = METHODS[name]
    if progress is not None and method.fast and not memory:
        task = replace(task, callback=lambda now: bool(progress(name, now)))
    try:
        outcome, seconds, peak = measured_apart(name, task) if memory else measured(method, task)
    except Exception as error:  # a solver may raise anything; the others go on
        return Found(
            method.problem, reason=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        )
    if isinstance(outcome, Result):
        bounds = method.reads(Bracket(outcome.lower, outcome.upper), task)
        seconds = seconds if method.cost else outcome.seconds
        return Found(method.problem, outcome, ROUNDINGS["kmeans_centered"](outcome.F), bounds, seconds, peak)
    return Found(method.problem, None, outcome, None, seconds, peak)


def measured(method: Method, task: Task) -> tuple[Result | Array, float, float]:
    """Return what a method finds, and the seconds, building and compiling included."""
    start = perf_counter()
    outcome = method.run(task)
    return outcome, perf_counter() - start, np.nan


def measured_apart(name: str, task: Task) -> tuple[Result | Array, float, float]:
    """Run a method in a process of its own, and return the growth of its peak memory in MB too."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(apart, name, task).result()


def apart(name: str, task: Task) -> tuple[Result | Array, float, float]:
    """Run a method and measure how far the memory of this process rose above what it was, in MB."""
    before = resident("VmRSS")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
    except OSError:
        before = resident("VmHWM")
    outcome, seconds, _ = measured(METHODS[name], task)
    return outcome, seconds, resident("VmHWM") - before


def resident(which: str) -> float:
    """Return the memory of this process in MB, now ("VmRSS") or at its peak ("VmHWM"); the peak where Linux is not."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(which))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def row_of(name: str, found: Found, task: Task, truth: Array | None, lower: float) -> dict[str, Any]:
    """Return one row of the table."""
    result = found.result
    row: dict[str, Any] = {"method": name, "problem": found.problem}
    for key in ("value", "lower", "upper", "gap"):
        row[key] = getattr(result, key, np.nan)
    row["rank"] = metrics.numerical_rank(result.F) if result is not None else np.nan
    row["eigenvalue_ratio"] = metrics.eigenvalue_ratio(result.F) if result is not None else np.nan
    row["label_gap"] = np.nan
    if found.labels is not None:
        row["label_gap"] = certify_labels(task.X, found.labels, lower, nu=task.nu, penalty=task.penalty).gap
    if truth is not None:
        for rule, rounded in ROUNDINGS.items():
            labels = rounded(result.F) if result is not None else None
            row[f"error_{rule}"] = np.nan if labels is None else metrics.clustering_error(truth, labels)
        row["error"] = np.nan if found.labels is None else metrics.clustering_error(truth, found.labels)
    row["seconds"], row["memory_MB"] = found.seconds, found.memory
    row["iterations"] = result.n_iter if result is not None else np.nan
    row["status"] = found.reason or (str(result.status) if result is not None else "")
    return row
