"""What `compare` knows: each method by name, the problem it solves, what it takes, how its value reads for (15)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from diffrac_cvx import baselines, rounding
from diffrac_cvx import relaxations as builders
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import column_basis
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Bracket, Result
from diffrac_cvx.solvers import fista, low_rank, solve

CLASSES = 3  # of the multi-class relaxation; its solutions are the same for any number
UP_TO_POINTS, UP_TO_FEATURES = 100, 40  # sides of the cones that are solved without being asked for by name


@dataclass(frozen=True)
class Task:
    """What all methods are given: the data, centred, the parameters, and the limits of each solve."""

    X: Array
    nu: float
    penalty: Penalty
    alpha: float
    tol: float
    time_limit: float | None
    seed: int
    callback: Any = None

    @property
    def limits(self) -> dict[str, Any]:
        """Options of every solver."""
        return {"tol": self.tol, "time_limit": self.time_limit}


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
    fast : bool
        Whether it is run without being asked for whatever the size.
    """

    problem: str
    run: Callable[[Task], Result | Array]
    takes: tuple[str, ...] = ("ridge", "l1")
    reads: Callable[[Bracket, Task], Bracket | None] = lambda bounds, _task: bounds
    cost: str = ""
    fast: bool = False

    def refuses(self, penalty: Penalty) -> str:
        """Return why the method cannot take a penalty, or nothing."""
        has = {"ridge": bool(np.any(np.asarray(penalty.a) > 0)), "l1": penalty.is_sparse}
        wrong = [name for name, there in has.items() if there and name not in self.takes]
        return f"it takes no {' and no '.join(wrong)} penalty" if wrong else ""

    def too_large(self, X: Array) -> str:
        """Return why the method is left out of the default at this size, or nothing."""
        n, d = X.shape
        side = {"n": n, "n + d": n + d, "d": d}.get(self.cost, 0)
        most = UP_TO_FEATURES if self.cost == "d" else UP_TO_POINTS
        return f"its cone has side {side}, more than {most}; ask for it by name" if side > most else ""


def through_cvxpy(build: Callable[[Task], builders.Relaxation], solver: str, task: Task) -> Result:
    """Build a relaxation and solve it."""
    return solve(build(task), solver, **task.limits)


def of_normalized(bounds: Bracket, task: Task) -> Bracket | None:
    """The value of (21) is -sqrt(1 - that of (15)) when c = 0, and says nothing of it otherwise."""
    return None if task.penalty.is_sparse else Bracket(1.0 - bounds.lower**2, 1.0 - bounds.upper**2)


def of_multiclass(bounds: Bracket, task: Task) -> Bracket:
    """Its value is nu/k + (1 - 1/k) times that of (8)."""
    lower, upper = ((bound - task.nu / CLASSES) / (1.0 - 1.0 / CLASSES) for bound in bounds)
    return Bracket(lower, upper)


def of_constrained(bounds: Bracket, task: Task) -> Bracket:
    """The value of (8) is the least over alpha of that of (7) plus nu alpha: an upper bound at one alpha."""
    return Bracket(-np.inf, bounds.upper + task.nu * task.alpha)


def kmeans_whitened(task: Task) -> Array:
    """Return k-means on an orthonormal basis of the columns, the best of ten starts."""
    from sklearn.cluster import KMeans

    found = KMeans(2, n_init=10, random_state=task.seed).fit_predict(column_basis(task.X))
    return np.where(found > 0, 1.0, -1.0)


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

METHODS: dict[str, Method] = {
    "low_rank": Method("(15)", partial(fast, low_rank), fast=True),
    "fista": Method("(15)", partial(fast, fista), fast=True),
    "fista published": Method("(15)", partial(fast, fista, variant="published")),
    **{
        f"{name}/{solver}": Method(run=partial(through_cvxpy, build, solver), **about)
        for name, (build, about) in RELAXATIONS.items()
        for solver in ("SCS", "CLARABEL")
    },
    "k-means": Method("k-means, whitened", kmeans_whitened, reads=lambda _bounds, _task: None, fast=True),
    "alternating": Method("(2)", alternating, reads=lambda _bounds, _task: None, fast=True),
}
BY_DEFAULT = (
    "low_rank", "fista", "v_space/CLARABEL", "v_space/SCS", "v_space_normalized/CLARABEL", "lifted/SCS",
    "penalized_nu/SCS", "multiclass/SCS", "constrained_alpha/SCS", "k-means", "alternating",
)  # fmt: skip

ROUNDINGS = rounding.ROUNDINGS
