"""Run one method of `compare`, here or in a process of its own: what it finds, or why it finds nothing."""

import contextlib
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.compare_methods import METHODS, Method, Task
from diffrac_cvx.inputs import Array, as_labels
from diffrac_cvx.result import Bracket, Result, Status
from diffrac_cvx.rounding import kmeans_centered

MEGA = 1e6
STATUS, CLEAR = "/proc/self/status", "/proc/self/clear_refs"


@dataclass(frozen=True, eq=False)
class Found:
    """What one method found.

    Attributes
    ----------
    problem : str
        The paper's equation.
    result : Result or None
        None for a baseline, or where the method failed.
    labels : (n,) array or None
        Labels in {-1, +1}, by the paper's rounding.
    bounds : Bracket or None
        What its bracket proves about the optimum of (15), infinite where it proves nothing; None if it is not a
        bracket of anything related.
    value : Bracket or None
        The same of the value it reached.
    objective : float
        Eq. (9) at its labels, with the best direction; NaN where there are none.
    seconds, memory : float
        Time, building and compiling included; growth of the peak in MB, NaN where it was not measured.
    reason : str
        Why there is no result.
    warned : tuple of str
        What it warned of.
    """

    problem: str
    result: Result | None = None
    labels: Array | None = None
    bounds: Bracket | None = None
    value: Bracket | None = None
    objective: float = np.nan
    seconds: float = np.nan
    memory: float = np.nan
    reason: str = ""
    warned: tuple[str, ...] = ()


def attempt(name: str, task: Task) -> Found:
    """Run one method in this process; whatever goes wrong in it becomes its reason."""
    method = METHODS[name]
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            outcome = method.run(task)
            seconds = perf_counter() - start
            found = replace(judged(method, outcome, task), seconds=seconds)
        except Exception as error:  # a solver may raise anything; the others go on
            found = Found(method.problem, seconds=perf_counter() - start, reason=in_words(error))
    return replace(found, warned=tuple(dict.fromkeys(str(warning.message) for warning in caught)))


def judged(method: Method, outcome: Result | Array, task: Task) -> Found:
    """Return what a method found with what it is worth; a result without a point is a failure."""
    if not isinstance(outcome, Result):
        labels = as_labels(outcome, len(task.X), "what it returns")
        return Found(method.problem, labels=labels, objective=objective_of(labels, task))
    if outcome.status is Status.FAILED:
        return Found(method.problem, reason=str(outcome.status))
    labels = as_labels(kmeans_centered(outcome.F), len(task.X), "its factor F")
    bounds = method.reads(Bracket(outcome.lower, outcome.upper), task)
    value = method.reads(Bracket(outcome.value, outcome.value), task)
    return Found(method.problem, outcome, labels, bounds, value, objective_of(labels, task))


def objective_of(labels: Array, task: Task) -> float:
    """Return Eq. (9) at labels, with the best direction."""
    return certify_labels(task.X, labels, 0.0, nu=task.nu, penalty=task.penalty).objective


def in_words(error: Exception) -> str:
    """Return an exception as one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


# In a process of its own


def attempt_apart(name: str, task: Task) -> Found:
    """Run one method in a process of its own, so that its peak of memory, compiled solvers included, is its own."""
    problem, task = METHODS[name].problem, replace(task, callback=None)
    try:
        asked = pickle.dumps((name, METHODS[name], task))
    except (pickle.PicklingError, AttributeError, TypeError):
        asked = pickle.dumps((name, None, task))  # the process finds it in the registry, if the package put it there
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import answer; answer()"],
        input=asked,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": places},
        check=False,
    )
    if done.returncode == 0:
        found: Found = pickle.loads(done.stdout)
        return found
    if done.returncode < 0:
        return Found(problem, reason=f"its process was ended by signal {-done.returncode}: out of memory, perhaps")
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    return Found(problem, reason=f"its process ended with status {done.returncode}: {last[0]}")


def answer() -> None:
    """Read what is asked from standard input, run it, and write what was found to standard output."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a solver that prints does not spoil the answer
    name, method, task = pickle.load(sys.stdin.buffer)
    if method is not None:
        METHODS[name] = method
    if name not in METHODS:
        sys.exit("its entry in METHODS cannot be sent to another process; make its functions importable")
    with contextlib.suppress(OSError), open(CLEAR, "w") as file:
        file.write("5")  # the peak of the imports is forgotten
    before = resident("VmRSS")
    found = attempt(name, task)
    with out:
        pickle.dump(replace(found, memory=(resident("VmHWM") - before) / MEGA), out)


def resident(which: str) -> float:
    """Return the memory of this process in bytes, now ("VmRSS") or at its peak ("VmHWM"); the peak where Linux is not.

    On Linux getrusage will not do: its peak starts from that of the process that started this one.
    """
    with contextlib.suppress(OSError, StopIteration, ValueError), open(STATUS) as lines:
        return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith(which))
    try:
        import resource
    except ImportError:
        return np.nan
    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak if sys.platform == "darwin" else 1024.0 * peak
