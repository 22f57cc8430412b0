"""What `compare` knows: each method by name, the problem it solves, what it takes, how its value reads for (15)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from diffrac_cvx import baselines
from diffrac_cvx import relaxations as builders
from diffrac_cvx.inputs import Array
from diffrac_cvx.label_brackets import bracket_alpha, imbalance
from diffrac_cvx.linalg import column_basis
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Bracket, Result
from diffrac_cvx.rounding import ROUNDINGS, goemans_williamson
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
        has = {"ridge": bool(np.any(np.asarray(penalty.a) > 0)), "l1": penalty.is_sparse}
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
    return Bracket(-np.inf if task.penalty.is_sparse else lower, upper)


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
    alpha = min(imbalance(found.F), 1.0)
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
