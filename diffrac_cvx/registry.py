"""One record for each relaxation, solver and baseline.

`compare`, the estimators, the interactive page, the command line and the documentation list what they find here, each
time that they are used: a record that is added is offered by all of them.

>>> import diffrac_cvx as dc
>>> list(dc.registry.SOLVERS)
['low_rank', 'fista', 'fista published', 'SCS', 'CLARABEL']
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diffrac_cvx import relaxations
from diffrac_cvx.baselines import alternating_optimization, gaussian_mixture, kmeans_standardized, kmeans_whitened
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty
from diffrac_cvx.problem.result import Bracket, Result
from diffrac_cvx.solvers import fista, low_rank
from diffrac_cvx.solvers.reference import SMALL_NONZEROS, SMALL_SIDE

PENALTY_PARTS = {  # of a penalty, and how what does not take one says so
    "ridge": "no ridge",
    "l1": "no l1 penalty",
    "groups": "no groups of columns",
    "signs": "no known signs",
}
ALL_PARTS = tuple(PENALTY_PARTS)
MAX_SIZE_ON_PAGE = 150  # points, or rows of V, of a relaxation on the interactive page: it takes seconds


@dataclass(frozen=True, kw_only=True, eq=False)
class Parameters:
    """What a relaxation is built with beside the data.

    Attributes
    ----------
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    alpha, alpha_slack : float
        Imbalance that (7) fixes, NaN where nothing needs it; (7) + nu alpha is at most alpha_slack above (8) there.
    k : int
        Number of classes of the multi-class relaxation; its solutions are the same for any number.
    constraints : Constraints or None
        What is known of some points.
    """

    nu: float = 1.0
    penalty: Penalty = NO_PENALTY
    alpha: float = np.nan
    alpha_slack: float = np.inf
    k: int = 3
    constraints: Constraints | None = None


# What a bracket proves about the optimum of (15).  A record's functions belong to a module: they are sent to other
# processes by name.


def same_value(bounds: Bracket, _parameters: Parameters) -> Bracket:
    """(8), (11), (12) and (15) have one value."""
    return bounds


def no_bound(_bounds: Bracket, _parameters: Parameters) -> None:
    """Nothing is proved about (15)."""


def from_normalized(bounds: Bracket, parameters: Parameters) -> Bracket:
    """The value of (21) is -sqrt(1 - that of (15)) when c = 0; else it is above that, and bounds (15) from above only.

    With tr AV = 1 we have g <= 1, so g - l <= g / sqrt(1 + l) for the l1 part l: the V of value w <= 0 in (21) has at
    most 1 - w^2 in (15), at its best scale.
    """
    lower, upper = (1.0 - min(bound, 0.0) ** 2 for bound in bounds)
    return Bracket(-np.inf if np.any(parameters.penalty.c) else lower, upper)


def from_multiclass(bounds: Bracket, parameters: Parameters) -> Bracket:
    """Its value is nu/k + (1 - 1/k) times that of (8)."""
    nu, k = parameters.nu, parameters.k
    lower, upper = (min((bound - nu / k) / (1.0 - 1.0 / k), 1.0) for bound in bounds)
    return Bracket(lower, upper)


def from_constrained(bounds: Bracket, parameters: Parameters) -> Bracket:
    """The value of (8) is the least over alpha of that of (7) plus nu alpha."""
    shift = parameters.nu * parameters.alpha
    return Bracket(bounds.lower + shift - parameters.alpha_slack, bounds.upper + shift)


@dataclass(frozen=True)
class RelaxationRecord:
    """A relaxation; its key in ``RELAXATIONS`` is the name of its builder.

    Attributes
    ----------
    builder : callable
        From the data, and what it takes by name, to a `Relaxation`.
    equations : tuple of str
        Its numbers in the paper.  The first is its name in tables, which no other relaxation has.
    summary : str
        What it is, in a few words.
    takes : tuple of str
        What the builder takes of "nu", "penalty", "alpha", "k" and "constraints", in its order.
    penalty : tuple of str
        What it can take of "ridge", "l1", "groups" and "signs".
    rows : str
        Rows of its matrix: "n", "n + d" or "d + 1".
    bounds_15 : callable
        From its bracket and the `Parameters` to what that proves about the optimum of (15), or None for nothing.
    skipped_solvers : mapping of str to str
        Solvers that it is not run with unless asked for by name, and why.
    """

    builder: Callable[..., relaxations.Relaxation]
    equations: tuple[str, ...]
    summary: str
    takes: tuple[str, ...] = ("nu", "penalty")
    penalty: tuple[str, ...] = ALL_PARTS
    rows: str = "n"
    bounds_15: Callable[[Bracket, Parameters], Bracket | None] = same_value
    skipped_solvers: Mapping[str, str] = field(default_factory=dict)

    @property
    def equation(self) -> str:
        """Its name in tables."""
        return self.equations[0]

    @property
    def shape(self) -> str:
        """The shape of its matrix, "n x n" or "(n + d) x (n + d)"."""
        side = f"({self.rows})" if "+" in self.rows else self.rows
        return f"{side} x {side}"

    @property
    def has_points(self) -> bool:
        """Whether its matrix has a row for each point."""
        return self.rows != "d + 1"

    def build(self, X: Array, parameters: Parameters) -> relaxations.Relaxation:
        """Build it."""
        return self.builder(X, **{name: getattr(parameters, name) for name in self.takes})

    def side(self, n: int, d: int) -> int:
        """Return the rows of its matrix at a size."""
        return {"n": n, "n + d": n + d, "d + 1": d + 1}[self.rows]


@dataclass(frozen=True)
class SolverRecord:
    """A solver; its key in ``SOLVERS`` is its name.

    Attributes
    ----------
    summary : str
        What it is, in a few words.
    function : callable or None
        Solves (15), called as ``function(X, nu, penalty, tol=, time_limit=, callback=, **options)``, and returns a
        `Result`; None for a solver that CVXPY knows by the name of the record, which solves all relaxations.
    options : mapping
        Further options that it is called with.
    penalty : tuple of str
        What it can take of "ridge", "l1", "groups" and "signs".
    takes_rtol : bool
        Whether the function takes ``rtol=``, the proved gap relative to the upper bound.
    max_rows, max_coefficients, max_operations : float
        Side of the cone, nonzeros of the other rows, and operations in a step, up to which it is run without being
        asked for by name: it then takes seconds.
    max_rows_on_page : float
        Side of the cone up to which the interactive page offers it.
    skip_reason : str
        Why it is not run at any size unless asked for by name; nothing where it is.
    """

    summary: str
    function: Callable[..., Result] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    penalty: tuple[str, ...] = ALL_PARTS
    takes_rtol: bool = False
    max_rows: float = np.inf
    max_coefficients: float = np.inf
    max_operations: float = np.inf
    max_rows_on_page: float = np.inf
    skip_reason: str = ""

    def run(self, X: Array, nu: float, penalty: Penalty, **options: Any) -> Result:
        """Solve (15), where it does not go through CVXPY."""
        assert self.function is not None
        return self.function(X, nu, penalty, **options, **self.options)

    def too_slow(self, n: int, d: int) -> str:
        """Return why a solver of (15) is not run at a size without being asked for, or nothing."""
        operations = n * d * d + d**3
        if operations <= self.max_operations:
            return ""
        return f"its steps are of {operations} operations, more than {self.max_operations}; ask for it by name"

    def reason_to_skip(self, n: int, d: int) -> str:
        """Return why `compare` does not run a solver of (15) at a size without being asked for, or nothing."""
        return self.skip_reason or self.too_slow(n, d)

    def too_large(self, relaxation: RelaxationRecord, n: int, d: int) -> str:
        """Return why it is not run on a relaxation at a size without being asked for, or nothing."""
        side = relaxation.side(n, d)
        coefficients = side * side if relaxation.has_points else n * d * d // 2
        if side > self.max_rows:
            return f"its cone has side {side}, more than {self.max_rows}; ask for it by name"
        if coefficients > self.max_coefficients:
            return f"it has {coefficients} coefficients, more than {self.max_coefficients}; ask for it by name"
        return ""


@dataclass(frozen=True)
class BaselineRecord:
    """A method without a relaxation; its key in ``BASELINES`` is its name.

    Attributes
    ----------
    function : callable
        From the data, and a seed ``rng=``, to labels in {-1, +1}.
    problem : str
        What it minimises.
    takes_time_limit : bool
        Whether the function takes seconds, ``time_limit=``.
    takes_constraints : bool
        Whether the function takes ``constraints=``, which its labels obey.
    """

    function: Callable[..., Array]
    problem: str
    takes_time_limit: bool = False
    takes_constraints: bool = False


WITH_CONSTRAINTS = ("nu", "penalty", "constraints")

RELAXATIONS: dict[str, RelaxationRecord] = {
    "v_space": RelaxationRecord(
        relaxations.v_space, ("(15)", "(12)", "(14)", "(20)"), "direction alone", WITH_CONSTRAINTS, rows="d + 1"
    ),
    "v_space_normalized": RelaxationRecord(
        relaxations.v_space_normalized, ("(21)",), "direction, normalised", WITH_CONSTRAINTS, rows="d + 1",
        bounds_15=from_normalized,
    ),
    "lifted": RelaxationRecord(relaxations.lifted, ("(11)",), "labels and direction", WITH_CONSTRAINTS, rows="n + d"),
    "penalized_nu": RelaxationRecord(
        relaxations.penalized_nu, ("(8)", "(16)"), "imbalance penalised", WITH_CONSTRAINTS, penalty=("ridge",)
    ),
    "multiclass": RelaxationRecord(
        relaxations.multiclass, ("section 4",), "k classes", takes=("k", "nu"), penalty=(), bounds_15=from_multiclass
    ),
    "constrained_alpha": RelaxationRecord(
        relaxations.constrained_alpha, ("(7)",), "imbalance fixed, without penalty", takes=("alpha",), penalty=(),
        bounds_15=from_constrained,
    ),
    "correlation": RelaxationRecord(
        relaxations.correlation, ("(24)", "(23)"), "correlation, trivial whatever the data", takes=(), penalty=(),
        bounds_15=no_bound,
        skipped_solvers={"SCS": "its matrix grows without bound, which takes SCS minutes; ask for it by name"},
    ),
}  # fmt: skip

SOLVERS: dict[str, SolverRecord] = {
    "low_rank": SolverRecord("augmented Lagrangian in a factor of V", low_rank, takes_rtol=True),
    "fista": SolverRecord("accelerated gradient on the smoothed dual", fista),
    "fista published": SolverRecord(
        "the algorithm printed in the paper: 20 000 steps",
        fista,
        {"variant": "published"},
        max_operations=1_000_000,
        skip_reason="it takes all of its 20 000 steps on most tables, and proves little; ask for it by name",
    ),
    "SCS": SolverRecord("splitting, through CVXPY", max_rows=121, max_coefficients=500_000),
    "CLARABEL": SolverRecord(  # sides that `solve` gives it by default, the row of the offset apart
        "interior point, through CVXPY", max_rows=SMALL_SIDE + 1, max_coefficients=SMALL_NONZEROS, max_rows_on_page=60
    ),
}

BASELINES: dict[str, BaselineRecord] = {
    "k-means": BaselineRecord(kmeans_whitened, "k-means, whitened", takes_time_limit=True),
    "alternating": BaselineRecord(alternating_optimization, "(2)", takes_time_limit=True, takes_constraints=True),
    "k-means standardised": BaselineRecord(kmeans_standardized, "k-means, columns of unit variance"),
    "Gaussian mixture": BaselineRecord(gaussian_mixture, "likelihood, columns of unit variance"),
}


def fast_solvers() -> dict[str, SolverRecord]:
    """Return the solvers of (15) that do not need CVXPY."""
    return {name: solver for name, solver in SOLVERS.items() if solver.function is not None}


def cvxpy_solvers() -> dict[str, SolverRecord]:
    """Return the solvers that CVXPY calls, which solve all relaxations."""
    return {name: solver for name, solver in SOLVERS.items() if solver.function is None}


def explain_unsupported(parts: tuple[str, ...], penalty: Penalty) -> str:
    """Return why something that takes these parts cannot take a penalty, or nothing."""
    unsupported = [PENALTY_PARTS[name] for name in penalty_parts(penalty) if name not in parts]
    return f"it takes {' and '.join(unsupported)}" if unsupported else ""


def penalty_parts(penalty: Penalty) -> list[str]:
    """Return the parts that a penalty has: one group of all is a ridge."""
    whole = penalty.groups is not None and len(penalty.groups.names) == 1
    has_l1, nonnegative = bool(np.any(np.asarray(penalty.c) > 0)), penalty.nonnegative
    has = {
        "ridge": bool(np.any(np.asarray(penalty.a) > 0)) or (has_l1 and whole),
        "l1": has_l1 and penalty.groups is None,
        "groups": has_l1 and penalty.groups is not None and not whole,
        "signs": nonnegative is not None,
    }
    return [name for name, present in has.items() if present]
