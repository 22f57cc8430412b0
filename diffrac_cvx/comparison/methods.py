"""What `compare` knows: each method by name, the problem it solves, what it takes, how its value reads for (15)."""

import contextlib
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from diffrac_cvx import baselines
from diffrac_cvx import relaxations as builders
from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.certificates.label_bounds import bracket_alpha
from diffrac_cvx.inputs import Array, as_labels
from diffrac_cvx.linalg import column_basis
from diffrac_cvx.memory import resident
from diffrac_cvx.metrics import factor_imbalance
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Bracket, Result, Status
from diffrac_cvx.rounding import ROUNDINGS, goemans_williamson, kmeans_centered
from diffrac_cvx.solvers import fista, low_rank, solve

CLASSES = 3  # of the multi-class relaxation; its solutions are the same for any number
# Side of the cone and nonzeros of the other rows that are solved without being asked for by name: seconds each.
UP_TO = {"CLARABEL": (40, 100_000), "SCS": (120, 500_000)}
UP_TO_STEP = 1_000_000  # operations in a step of FISTA as published, which takes 20 000 of them


@dataclass(frozen=True)
class Task:
    """What all methods are given: the data, centred, the parameters, and the limits of each solve.

    alpha is NaN where no method asks for it.  The value of (7) + nu alpha is at most alpha_slack above that of (8).
    """

    X: Array
    nu: float
    penalty: Penalty
    alpha: float
    tol: float
    time_limit: float | None
    seed: int
    callback: Any = None
    memory_limit: float | None = None
    alpha_slack: float = np.inf

    @property
    def limits(self) -> dict[str, Any]:
        """Options of every solver."""
        return {"tol": self.tol, "time_limit": self.time_limit}


# Functions with names, and not lambdas, can be sent to another process.
def as_it_is(bounds: Bracket, _task: Task) -> Bracket:
    """(8), (11), (12) and (15) have one value."""
    return bounds


def never(_n: int, _d: int) -> str:
    """Return no reason."""
    return ""


@dataclass(frozen=True)
class Method:
    """A relaxation with a solver, or a baseline.

    Attributes
    ----------
    problem : str
        The paper's equation.
    run : callable
        From a `Task` to a `Result`, or to labels for a baseline.
    takes : tuple of str
        What it can take of "ridge" and "l1".
    reads : callable
        From its bracket and the task to bounds on the optimum of (15), or None if it bounds nothing of it.
    cost : str
        The side of its semidefinite cone, "n", "n + d" or "d"; empty for the fast solvers and the baselines.
    solver : str
        Which solver of CVXPY it uses; decides up to which size it is run without being asked for.
    aside : callable
        From n and d to another reason why it is not run without being asked for, or nothing.
    """

    problem: str
    run: Callable[[Task], Result | Array]
    takes: tuple[str, ...] = ("ridge", "l1")
    reads: Callable[[Bracket, Task], Bracket | None] = as_it_is
    cost: str = ""
    solver: str = "SCS"
    aside: Callable[[int, int], str] = never

    def refuses(self, penalty: Penalty) -> str:
        """Return why the method cannot take a penalty, or nothing."""
        has = {"ridge": bool(np.any(np.asarray(penalty.a) > 0)), "l1": penalty.has_l1}
        wrong = [name for name, there in has.items() if there and name not in self.takes]
        return f"it takes no {' and no '.join(wrong)} penalty" if wrong else ""

    def too_large(self, X: Array) -> str:
        """Return why the method is left out of the default at this size, or nothing."""
        n, d = X.shape
        side = {"n": n, "n + d": n + d, "d": d}.get(self.cost, 0)
        nonzeros = n * d * d // 2 if self.cost == "d" else side * side
        most, most_nonzeros = UP_TO.get(self.solver, UP_TO["SCS"])
        if side > most:
            return f"its cone has side {side}, more than {most}; ask for it by name"
        if nonzeros > most_nonzeros:
            return f"it has {nonzeros} coefficients, more than {most_nonzeros}; ask for it by name"
        return self.aside(n, d)


def through_cvxpy(build: Callable[[Task], builders.Relaxation], solver: str, task: Task) -> Result:
    """Build a relaxation and solve it."""
    return solve(build(task), solver, memory_limit=task.memory_limit, **task.limits)


def of_normalized(bounds: Bracket, task: Task) -> Bracket:
    """The value of (21) is -sqrt(1 - that of (15)) when c = 0; else it is above that, and bounds (15) from above only.

    With tr AV = 1 we have g <= 1, so g - l <= g / sqrt(1 + l) for the l1 part l: the V of value w <= 0 in (21) has at
    most 1 - w^2 in (15), at its best scale.
    """
    lower, upper = (1.0 - min(bound, 0.0) ** 2 for bound in bounds)
    return Bracket(-np.inf if task.penalty.has_l1 else lower, upper)


def of_multiclass(bounds: Bracket, task: Task) -> Bracket:
    """Its value is nu/k + (1 - 1/k) times that of (8)."""
    lower, upper = ((bound - task.nu / CLASSES) / (1.0 - 1.0 / CLASSES) for bound in bounds)
    return Bracket(lower, upper)


def of_constrained(bounds: Bracket, task: Task) -> Bracket:
    """The value of (8) is the least over alpha of that of (7) plus nu alpha; see `alpha_of` for how near it is."""
    shift = task.nu * task.alpha
    return Bracket(bounds.lower + shift - task.alpha_slack, bounds.upper + shift)


def alpha_of(task: Task) -> tuple[float, float]:
    """Return the imbalance of a solution of (8), and a bound on (7) + nu alpha - (8) there.

    The solution is feasible for (7) at its own imbalance, up to rounding; the bound is measured after that is mended.
    """
    found = low_rank(task.X, task.nu, **task.limits)
    alpha = factor_imbalance(found.F)
    attained = bracket_alpha(column_basis(task.X), found.F, alpha).upper + task.nu * alpha
    return alpha, max(attained - found.lower, 0.0)


def kmeans_whitened(task: Task) -> Array:
    """Return 2-means on whitened data, the best of ten starts."""
    return baselines.kmeans_whitened(task.X, rng=task.seed)


def alternating(task: Task) -> Array:
    """Return the best of ten runs of the alternating optimisation of Eq. (2)."""
    return baselines.alternating_optimisation(task.X, rng=task.seed)


def fast(solver: Callable[..., Result], task: Task, **options: Any) -> Result:
    """Run one of the package's own solvers."""
    return solver(task.X, task.nu, task.penalty, callback=task.callback, **task.limits, **options)


RELAXATIONS: dict[str, tuple[Callable[[Task], builders.Relaxation], dict[str, Any]]] = {
    "v_space": (lambda task: builders.v_space(task.X, task.nu, task.penalty), {"problem": "(15)", "cost": "d"}),
    "v_space_normalized": (
        lambda task: builders.v_space_normalized(task.X, task.nu, task.penalty),
        {"problem": "(21)", "cost": "d", "reads": of_normalized},
    ),
    "lifted": (lambda task: builders.lifted(task.X, task.nu, task.penalty), {"problem": "(11)", "cost": "n + d"}),
    "penalized_nu": (
        lambda task: builders.penalized_nu(task.X, task.nu, task.penalty),
        {"problem": "(8), (16)", "cost": "n", "takes": ("ridge",)},
    ),
    "multiclass": (
        lambda task: builders.multiclass(task.X, CLASSES, task.nu),
        {"problem": "section 4", "cost": "n", "takes": (), "reads": of_multiclass},
    ),
    "constrained_alpha": (
        lambda task: builders.constrained_alpha(task.X, task.alpha),
        {"problem": "(7)", "cost": "n", "takes": (), "reads": of_constrained},
    ),
    "correlation": (
        lambda task: builders.correlation(task.X),
        {"problem": "(24)", "cost": "n", "takes": (), "reads": lambda _bounds, _task: None},
    ),
}


def slow_step(n: int, d: int) -> str:
    """Return why FISTA as published is too slow at a size, or nothing."""
    operations = n * d * d + d**3
    if operations <= UP_TO_STEP:
        return ""
    return f"its steps are of {operations} operations, more than {UP_TO_STEP}; ask for it by name"


METHODS: dict[str, Method] = {
    "low_rank": Method("(15)", partial(fast, low_rank)),
    "fista": Method("(15)", partial(fast, fista)),
    "fista published": Method("(15)", partial(fast, fista, variant="published"), aside=slow_step),
    **{
        f"{name}/{solver}": Method(run=partial(through_cvxpy, build, solver), solver=solver, **about)
        for name, (build, about) in RELAXATIONS.items()
        for solver in ("SCS", "CLARABEL")
    },
    "k-means": Method("k-means, whitened", kmeans_whitened, reads=lambda _bounds, _task: None),
    "alternating": Method("(2)", alternating, reads=lambda _bounds, _task: None),
}
METHODS["correlation/SCS"] = replace(
    METHODS["correlation/SCS"],
    aside=lambda _n, _d: "its matrix grows without bound, which takes SCS minutes; ask for it by name",
)


def roundings(seed: int) -> dict[str, Callable[[Array], Array]]:
    """Return all roundings to two clusters, by name."""
    return {**ROUNDINGS, "goemans_williamson": lambda F: goemans_williamson(F, seed)}


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
