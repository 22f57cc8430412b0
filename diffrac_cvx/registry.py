"""Registry of the relaxations, solvers and baselines.

`compare`, the estimators, the interactive page, the command line and the documentation read it at each use, so a new
record is available in all of them.

>>> import diffrac_cvx as dc
>>> list(dc.registry.SOLVERS)
['low_rank', 'fista', 'fista published']
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from diffrac_cvx.baselines import alternating_optimization, gaussian_mixture, kmeans_standardized, kmeans_whitened
from diffrac_cvx.machine.deadlines import deadline_after, time_limited
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty
from diffrac_cvx.problem.result import Bracket, Progress, Result
from diffrac_cvx.relaxations import Relaxation
from diffrac_cvx.relaxations.direction_space import lifted, v_space, v_space_normalized
from diffrac_cvx.relaxations.label_space import constrained_alpha, correlation, multiclass, penalized_nu
from diffrac_cvx.solvers import fista, low_rank
from diffrac_cvx.solvers.reference import SMALL_NONZEROS, SMALL_SIDE

PROBLEM_PARTS = {  # parts of a penalty, and constraints, with their words in a message on missing support
    "ridge": "no ridge",
    "l1": "no l1 penalty",
    "groups": "no feature groups",
    "signs": "no sign constraints",
    "constraints": "no constraints",
    "linear": "no bags, order, sizes or rows",
}
ALL_PARTS = ("ridge", "l1", "groups", "signs")  # of a penalty


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonTask:
    """Input of all methods: the data, the parameters, and the limits of each solve.

    Attributes
    ----------
    X : (n, d) array
        Data.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    alpha, alpha_slack : float
        Imbalance fixed by (7), NaN if not needed; at this alpha, (7) + nu alpha exceeds (8) by at most alpha_slack.
    k : int
        Number of classes of the multi-class relaxation; its solutions do not depend on it.
    constraints : Constraints or None
        Must-link and cannot-link constraints, known labels, and linear constraints.
    tol : float
        Certified gap at which every solver stops.
    time_limit : float or None
        Time limit of each method, in seconds.
    seed : int
        Seed of the baselines.
    callback : callable or None
        Called by the solvers with their `Progress`; a true value stops them.
    """

    X: Array
    nu: float = 1.0
    penalty: Penalty = NO_PENALTY
    alpha: float = np.nan
    alpha_slack: float = np.inf
    k: int = 3
    constraints: Constraints | None = None
    tol: float = 1e-4
    time_limit: float | None = None
    seed: int = 0
    callback: Callable[[Progress], bool] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The constraints as a keyword argument, if there are any."""
        return {} if self.constraints is None else {"constraints": self.constraints}

    @property
    def parts(self) -> list[str]:
        """Parts of the problem besides the penalty: the kind of its constraints."""
        return [] if self.constraints is None else ["linear" if self.constraints.are_linear else "constraints"]

    @property
    def limits(self) -> dict[str, Any]:
        """Options of every solver."""
        return {"tol": self.tol, "time_limit": self.time_limit}


# Implied bounds on the optimum of (15).


def same_value(bounds: Bracket, _task: ComparisonTask) -> Bracket:
    """Return the bounds unchanged: (8), (11), (12) and (15) have the same value."""
    return bounds


def no_bound(_bounds: Bracket, _task: ComparisonTask) -> None:
    """Return None: the problem implies no bound on (15)."""


def from_normalized(bounds: Bracket, task: ComparisonTask) -> Bracket:
    """Return the bounds implied by (21): its value is -sqrt(1 - (15)) if c = 0, otherwise above that (no lower bound).

    With tr AV = 1 we have g <= 1, so g - l <= g / sqrt(1 + l) for the l1 term l.  A V with value w <= 0 in (21), at
        its optimal scale, therefore has value at most 1 - w^2 in (15).
    """
    lower, upper = (1.0 - min(bound, 0.0) ** 2 for bound in bounds)
    return Bracket(-np.inf if np.any(task.penalty.c) else lower, upper, bounds.n_excluded)


def from_multiclass(bounds: Bracket, task: ComparisonTask) -> Bracket:
    """Return the bounds implied by the multi-class relaxation, whose value is nu/k + (1 - 1/k) times that of (8)."""
    nu, k = task.nu, task.k
    lower, upper = (min((bound - nu / k) / (1.0 - 1.0 / k), 1.0) for bound in bounds)
    return Bracket(lower, upper, bounds.n_excluded)


def from_constrained(bounds: Bracket, task: ComparisonTask) -> Bracket:
    """Return the bounds implied by (7): the value of (8) is the minimum over alpha of (7) + nu alpha."""
    shift = task.nu * task.alpha
    return Bracket(bounds.lower + shift - task.alpha_slack, bounds.upper + shift, bounds.n_excluded)


@dataclass(frozen=True)
class RelaxationRecord:
    """Relaxation; its key in ``RELAXATIONS`` is the name of its builder.

    Attributes
    ----------
    builder : callable
        Function that returns a `Relaxation` from the data and the keyword arguments ``takes``.
    equations : tuple of str
        Equation numbers in the paper.  The first one is its unique name in tables.
    summary : str
        Short description.
    takes : tuple of str
        Parameters of the builder, in order, among "nu", "penalty", "alpha", "k" and "constraints".
    constraints : tuple of str
        Kinds of constraints under which `compare` runs it: "constraints" and "linear".
    penalty : tuple of str
        Supported parts of a penalty, among "ridge", "l1", "groups" and "signs".
    rows : str
        Number of rows of its matrix: "n", "n + d" or "d + 1".
    bounds_15 : callable
        Function that returns the bounds on the optimum of (15) implied by its bounds and `ComparisonTask`, or None.
    skipped_solvers : mapping of str to str
        Solvers that are not used unless selected by name, with reasons.
    """

    builder: Callable[..., Relaxation]
    equations: tuple[str, ...]
    summary: str
    takes: tuple[str, ...] = ("nu", "penalty")
    penalty: tuple[str, ...] = ALL_PARTS
    constraints: tuple[str, ...] = ()
    rows: str = "n"
    bounds_15: Callable[[Bracket, ComparisonTask], Bracket | None] = same_value
    skipped_solvers: Mapping[str, str] = field(default_factory=dict)

    @property
    def equation(self) -> str:
        """Its name in tables."""
        return self.equations[0]

    def build(self, task: ComparisonTask) -> Relaxation:
        """Return the relaxation of the data and parameters of a task."""
        return self.builder(task.X, **{name: getattr(task, name) for name in self.takes})

    def side(self, n: int, d: int) -> int:
        """Return the number of rows of its matrix for n points and d features."""
        return {"n": n, "n + d": n + d, "d + 1": d + 1}[self.rows]

    def too_large(self, solver: str, n: int, d: int) -> str:
        """Return why a CVXPY solver does not run by default at this size, "" if it does."""
        side, (max_rows, max_coefficients) = self.side(n, d), CVXPY_SOLVERS[solver]
        coefficients = n * d * d // 2 if self.rows == "d + 1" else side * side
        if side > max_rows:
            return f"a matrix of {side} rows, more than {max_rows}; select by name"
        if coefficients > max_coefficients:
            return f"{coefficients} coefficients, more than {max_coefficients}; select by name"
        return self.skipped_solvers.get(solver, "")

    def solver_at(self, n: int, d: int) -> str:
        """Return the CVXPY solver for this size: CLARABEL if its cone is small, otherwise SCS."""
        is_small = not self.too_large("CLARABEL", n, d) or "SCS" in self.skipped_solvers
        return "CLARABEL" if is_small else "SCS"

    def estimate_seconds(self, solver: str, n: int, d: int) -> float:
        """Estimate the seconds of a CVXPY solver to a gap of 1e-4; infinite if it must be selected by name.

        An iteration of SCS decomposes a matrix of this side, and it takes about 1500 of them; a step of CLARABEL
        factors a matrix of side^2 / 2 rows.  Measured at sides of 30 to 300, with errors of a factor of three.
        """
        if solver in self.skipped_solvers:
            return np.inf
        side = float(self.side(n, d))
        coefficients = n * d * d / 2 if self.rows == "d + 1" else 0.0
        return 0.1 + (1.4e-6 * side**3 if solver == "SCS" else 2.5e-11 * side**6) + 1e-5 * coefficients


@dataclass(frozen=True)
class SolverRecord:
    """Solver of (15) without CVXPY; its key in ``SOLVERS`` is its name.

    Attributes
    ----------
    function : callable
        Called as ``function(X, nu, penalty, tol=, time_limit=, callback=, **options)``; returns a `Result`.
    penalty : tuple of str
        Supported parts of a penalty, among "ridge", "l1", "groups" and "signs".
    takes_rtol : bool
        Whether the function takes ``rtol=``, the certified gap relative to the upper bound.
    skip_reason : str
        Reason why it runs only if selected by name; "" if it runs by default.
    """

    function: Callable[..., Result]
    penalty: tuple[str, ...] = ALL_PARTS
    takes_rtol: bool = False
    skip_reason: str = ""


@dataclass(frozen=True)
class Method:
    """A relaxation with a solver, or a baseline; `compare` runs it on a task."""

    problem: str  # the paper's equation, or the objective of a baseline
    run: Callable[[ComparisonTask], Result | Array]  # labels for a baseline
    parts: tuple[str, ...] = tuple(PROBLEM_PARTS)  # supported parts of a penalty and of a problem
    bounds_15: Callable[[Bracket, ComparisonTask], Bracket | None] = same_value  # implied bounds on (15)
    too_large: Callable[[int, int], str] = lambda _n, _d: ""  # from n and d to the reason to skip it by default
    estimate: Callable[[int, int], float] = lambda _n, _d: 0.0  # from n and d to seconds; 0 if not estimated
    through_cvxpy: bool = False


def baseline_method(function: Callable[..., Array], problem: str, *, takes_constraints: bool = False) -> Method:
    """Return the `Method` of a baseline: a function from data and a seed ``rng=`` to labels in {-1, +1}."""

    def run(task: ComparisonTask) -> Array:
        with time_limited(deadline_after(task.time_limit)):
            return function(task.X, rng=task.seed, **task.given)

    return Method(problem, run, (*ALL_PARTS, "constraints") if takes_constraints else ALL_PARTS)


WITH_CONSTRAINTS = ("nu", "penalty", "constraints")
PAIRS, ALL_CONSTRAINTS = ("constraints",), ("constraints", "linear")

RELAXATIONS: dict[str, RelaxationRecord] = {
    "v_space": RelaxationRecord(
        v_space, ("(15)", "(12)", "(14)", "(20)"), "direction only", WITH_CONSTRAINTS, constraints=PAIRS,
        rows="d + 1",
    ),
    "v_space_normalized": RelaxationRecord(
        v_space_normalized, ("(21)",), "normalised direction", WITH_CONSTRAINTS, constraints=PAIRS,
        rows="d + 1", bounds_15=from_normalized,
    ),
    "lifted": RelaxationRecord(
        lifted, ("(11)",), "labels and direction", WITH_CONSTRAINTS, constraints=ALL_CONSTRAINTS, rows="n + d"
    ),
    "penalized_nu": RelaxationRecord(
        penalized_nu, ("(8)", "(16)"), "penalised imbalance", WITH_CONSTRAINTS, penalty=("ridge",),
        constraints=ALL_CONSTRAINTS,
    ),
    "multiclass": RelaxationRecord(
        multiclass, ("section 4",), "k classes", takes=("k", "nu"), penalty=(), bounds_15=from_multiclass
    ),
    "constrained_alpha": RelaxationRecord(
        constrained_alpha, ("(7)",), "fixed imbalance", takes=("alpha", "penalty", "constraints"), penalty=("ridge",),
        bounds_15=from_constrained,
    ),
    "correlation": RelaxationRecord(
        correlation, ("(24)", "(23)"), "correlation (trivial for all data)", takes=(), penalty=(),
        bounds_15=no_bound,
        skipped_solvers={"SCS": "the matrix grows without bound, so SCS takes minutes; select by name"},
    ),
}  # fmt: skip

SOLVERS: dict[str, SolverRecord] = {
    "low_rank": SolverRecord(low_rank, takes_rtol=True),
    "fista": SolverRecord(fista),
    "fista published": SolverRecord(
        partial(fista, variant="published"),
        skip_reason="20 000 iterations on most tables, and weak bounds; select by name",
    ),
}

CVXPY_SOLVERS = {  # largest side of the cone, and most nonzeros in the other constraints, that take seconds
    "SCS": (121, 500_000),
    "CLARABEL": (SMALL_SIDE + 1, SMALL_NONZEROS),  # largest for which `solve` selects it, plus the offset's row
}

BASELINES: dict[str, Method] = {
    "k-means": baseline_method(kmeans_whitened, "k-means, whitened"),
    "alternating": baseline_method(alternating_optimization, "(2)", takes_constraints=True),
    "k-means standardised": baseline_method(kmeans_standardized, "k-means, columns of unit variance"),
    "Gaussian mixture": baseline_method(gaussian_mixture, "likelihood, columns of unit variance"),
}


def explain_unsupported(parts: Collection[str], penalty: Penalty, given: Collection[str] = ()) -> str:
    """Return why a method with these parts does not support a penalty and other given parts, "" if it does."""
    unsupported = [PROBLEM_PARTS[name] for name in (*penalty_parts(penalty), *given) if name not in parts]
    return f"it takes {' and '.join(unsupported)}" if unsupported else ""


def penalty_parts(penalty: Penalty) -> list[str]:
    """Return the parts of a penalty; a single group of all features counts as a ridge."""
    groups, has_c = penalty.groups, bool(np.any(np.asarray(penalty.c) > 0))
    kind = "l1" if groups is None or groups.are_single else "ridge" if len(groups.names) == 1 else "groups"
    has = {
        "ridge": bool(np.any(np.asarray(penalty.a) > 0)) or (has_c and kind == "ridge"),
        "l1": has_c and kind == "l1",
        "groups": has_c and kind == "groups",
        "signs": penalty.nonnegative is not None,
    }
    return [name for name, present in has.items() if present]
