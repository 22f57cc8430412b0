"""Result records of the solvers: termination status, certified bounds and factors of the solution."""

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, diagonal, outer_product
from diffrac_cvx.problem.formatting import format_bracket, format_gap, format_upper, width_of


class Status(Enum):
    """Reason why a solver stopped: ``value`` is a stable key, ``message`` and ``str`` are the sentence for users."""

    message: str

    OPTIMAL = "optimal", "the certified gap is within the tolerance"
    CLOSED_FORM = "closed_form", "the optimum is known in closed form"
    MAX_ITER = "max_iter", "max_iter was reached", "Increase max_iter to tighten them"
    TIME_LIMIT = "time_limit", "time_limit was reached", "Increase time_limit to tighten them"
    USER_LIMIT = "user_limit", "an iteration or time limit was reached", "Increase the limit to tighten them"
    OUT_OF_MEMORY = "out_of_memory", "a dense V would not fit in memory", "Increase the l1 penalty to tighten them"
    STOPPED = "stopped", "the callback requested a stop; the bounds are valid"
    SMOOTHED_GAP = "smoothed_gap", "the gap of Eq. (21) is at most epsilon log d", "Decrease epsilon to tighten them"
    STALLED = "stalled", "no further progress in double precision", "Use a larger tol"
    INACCURATE = "inaccurate", "the solver stopped with a certified gap above the tolerance", "Try another solver"
    RELAXED = (
        "relaxed",
        "the relaxation is solved, and its bounds on the best labels are above the tolerance apart",
        "Use products=True, triangles or optimal_labels to tighten them",
    )
    INVALID_BOUND = (
        "invalid_bound",
        "numerical failure: an objective value is below the computed lower bound, which was discarded. "
        "Rescale the columns to similar magnitudes",
    )
    OVERFLOW = (
        "overflow",
        "values left the range of double precision",
        "Rescale the columns of X and the penalties towards 1 to tighten them",
    )
    FAILED = "failed", "the solver returned no solution; only the trivial bounds are available. Try another solver"

    def __new__(cls, key: str, message: str, remedy: str = "") -> Self:
        """Return the member with this key as its value; with a remedy the message says that the bounds are valid."""
        status = object.__new__(cls)
        status._value_, status.message = key, f"{message}; the bounds are valid. {remedy}" if remedy else message
        return status

    def __str__(self) -> str:
        return self.message


def excluded_clause(n_excluded: int) -> str:
    """Return the number of excluded columns as a clause to append to a sentence on bounds; empty if it is 0."""
    return f" ({n_excluded} column{'s' if n_excluded > 1 else ''} excluded)" if n_excluded else ""


class Bracket(NamedTuple("Bounds", [("lower", float), ("upper", float)])):
    """Certified lower and upper bound on the optimum, as a pair.

    Attributes
    ----------
    lower, upper : float
        The bounds, lower <= optimum <= upper.
    n_excluded : int
        Number of excluded columns, see `Result`: the lower bound is that of X without them.  Not a pair entry.
    multipliers : Multipliers or LabelMultipliers, or None
        Multipliers that prove the lower bound, in internal coordinates; None for a trivial one.  Not a pair entry.
    """

    n_excluded: int
    multipliers: Any

    def __new__(cls, lower: float, upper: float, n_excluded: int = 0, multipliers: Any = None) -> Self:
        """Create the pair."""
        made = super().__new__(cls, lower, upper)
        made.n_excluded, made.multipliers = n_excluded, multipliers
        return made

    @property
    def gap(self) -> float:
        """Duality gap, upper - lower, rounded up."""
        return width_of(self.lower, self.upper)

    def __str__(self) -> str:
        return format_bracket(self.lower, self.upper) + excluded_clause(self.n_excluded)


class Bracketed:
    """Result of a search, with certified bounds and its number of excluded columns."""

    lower: float
    upper: float
    n_excluded: int

    @property
    def bracket(self) -> Bracket:
        """Lower and upper bound."""
        return Bracket(self.lower, self.upper, self.n_excluded)

    @property
    def gap(self) -> float:
        """Gap ``upper - lower``, rounded up."""
        return self.bracket.gap


class Progress(NamedTuple("Line", [("iteration", int), ("seconds", float), ("lower", float), ("upper", float)])):
    """Entry of a solver's history: (iteration, seconds, lower, upper).

    Attributes
    ----------
    iteration, seconds : int, float
        Iteration number and elapsed time.
    lower, upper : float
        Certified bounds.
    rows : int
        Rows of X read so far, if X is streamed; divided by n, the number of passes.  Not an element of the tuple.
    n_excluded : int
        Number of excluded columns, see `Result`.  Not an element of the tuple.
    """

    rows: int = 0
    n_excluded: int = 0


Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Components:
    """Components of the features, with V zero between them: labels from 0 by first feature, -1 where c = 0.

    Attributes
    ----------
    found : (d,) array of int
        Components of the returned V.
    certified : (d,) array of int, or None
        Components between which every optimal V is certified to be zero; None if the gap certifies none.
    """

    found: Labels
    certified: Labels | None = None

    def __str__(self) -> str:
        labels = self.found if self.certified is None else self.certified
        sizes, certified = np.bincount(self.found[self.found >= 0]), np.bincount(labels[labels >= 0])
        if sizes.max(initial=0) <= 1:
            summary = "V is diagonal except for features with c = 0" if np.any(self.found < 0) else "V is diagonal"
            is_certified = self.certified is not None and certified.max(initial=0) <= 1
            return f"{summary}, and every optimal V is certified to be" if is_certified else summary
        summary = f"V has {len(sizes)} components, the largest with {sizes.max()} features"
        if self.certified is None or len(certified) <= 1:
            return summary
        proved = f"{len(certified)} or more, each with at most {certified.max()} features"
        return f"{summary}; every optimal V is certified to have {proved}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """Solution of a relaxation: a point, certified bounds on the optimal value, and how the solver found them.

    Attributes
    ----------
    value : float
        Objective of the relaxation at the returned point, after optimal rescaling.
    lower, upper : float
        Bounds on the optimal value, certified by this package, not taken from the solver.
    factor : (n, r) array, or a function that computes it
        F in the form that the roundings accept; for large n it is a function.
    F : (n, r) array
        Factor of the label matrix, Y = F F', with unit rows.  For large n it is computed from X at the first access: X
        must not have changed by then.
    status : Status
        Reason why the solver stopped: ``str(status)`` is a sentence, ``status.value`` a stable key.
    n_iter : int
        Number of iterations, as the solver counts them.
    seconds : float
        Wall-clock time in seconds.
    solver : str
        Name of the solver.
    history : tuple of Progress
        (iteration, seconds, lower, upper), oldest first; empty if the solver does not report it.
    C : (d, d) array, or (d + 1, d + 1), or None
        Last multiplier of the l1 term off the diagonal, for warm starts; the fast solvers return it if c > 0.  Sparse,
        with the entries inside the components, if V was found by block decomposition.
    G : (d, r) array or sparse array, or (d + 1, r) with the offset last, or None
        Factor of the direction matrix, V = GG'; None for relaxations in Y alone.
    components : Components or None
        Components of V, if V was found by block decomposition; ``str`` shows whether V is certified to be diagonal.
    n_excluded : int
        Number of excluded columns of X: those without a penalty that are constant, or collinear with the others, up to
        rounding (about 1e-13).  The bounds are those of X without these columns, whose rows of V are zero.  Exactly
        constant columns have no effect and are not counted.
    certificate : Certificate or None
        Proof of the bounds; `check_certificate` verifies it from the table.
    invalid_bound : Bracket or None
        The lower bound and, as ``upper``, an objective below it: the value, or the objective of labels rounded from F
        with a direction fitted in the user's units.  That bound is invalid: ``lower`` is then the trivial one, and
        ``status`` reports it.
    """

    value: float
    lower: float
    upper: float
    factor: Any
    status: Status
    n_iter: int
    seconds: float
    solver: str
    history: tuple[Progress, ...] = field(default=(), repr=False)
    C: Factor | None = field(default=None, repr=False)
    G: Factor | None = field(default=None, repr=False)
    components: Components | None = field(default=None, repr=False)
    n_excluded: int = 0
    certificate: Any = field(default=None, repr=False)
    invalid_bound: Bracket | None = None

    @cached_property
    def F(self) -> Array:
        """Factor of the labels, (n, r), Y = FF'; computed at the first access, then cached."""
        return np.asarray(self.factor() if callable(self.factor) else self.factor)

    @cached_property
    def V(self) -> Array | None:
        """Matrix of directions, (d, d), or (d + 1, d + 1) with the offset last; None for relaxations in Y alone.

        Computed at the first access, then cached.

        Raises
        ------
        ResourceError
            If V would not fit in memory; use G instead.
        """
        return None if self.G is None else outer_product(self.G)

    @property
    def gap(self) -> float:
        """Certified duality gap, upper - lower, rounded up."""
        return width_of(self.lower, self.upper)

    @property
    def bracket(self) -> Bracket:
        """Certified bounds; ``str`` rounds the lower one down and the upper one up."""
        return Bracket(self.lower, self.upper, self.n_excluded)

    def features(self, d: int | None = None, *, rtol: float = 1e-3) -> Labels:
        """Return the selected features, (k,) array of int: those with V_jj above rtol times the largest, by V_jj.

        V_jj depends on the units of X: scale the columns to unit variance first.  No V, on any set of features, has an
        objective that is lower by more than the gap.  Excluded columns are never         selected.

        Parameters
        ----------
        d : int, optional
            Number of features; required if nu < 1, to exclude the last row of V, which belongs to the offset.
        rtol : float
            Threshold relative to the largest V_jj, in [0, 1); default 0.001.

        Raises
        ------
        ParameterError
            If the relaxation is one in Y alone, or an argument is out of range.
        """
        if self.G is None:
            raise ParameterError("the result has no V, so it selects no features. Solve a relaxation with directions.")
        if not 0.0 <= rtol < 1.0:
            raise ParameterError(f"rtol = {rtol} is out of range. Give a number in [0, 1).")
        rows = self.G.shape[0]
        if d not in (None, rows, rows - 1):
            raise ParameterError(
                f"d = {d} is not the number of features. Give {rows}, or {rows - 1} if V has an offset."
            )
        diagonal_entries = diagonal(self.G)[:d]
        order = np.argsort(-diagonal_entries, kind="stable")
        selected = diagonal_entries[order] > rtol * diagonal_entries.max(initial=0.0)
        return np.asarray(order[selected], dtype=np.int64)

    def checked_against(self, objective: float, trivial: float = 0.0) -> "Result":
        """Return the result, with a trivial lower bound if its value or the objective of labels is below its bound."""
        invalid = Bracket(self.lower, min(self.upper, objective), self.n_excluded)
        if not invalid.lower > invalid.upper:
            return self
        return replace(self, lower=trivial, invalid_bound=invalid, status=Status.INVALID_BOUND)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "factor": self.F}

    def __repr__(self) -> str:
        rank = int(self.F.shape[1] if self.G is None or not callable(self.factor) else self.G.shape[1])
        structure = "" if self.components is None else f", components={str(self.components)!r}"
        structure += f", n_excluded={self.n_excluded}" if self.n_excluded else ""
        structure += f", invalid_bound={tuple(self.invalid_bound)!r}" if self.invalid_bound else ""
        return (
            f"Result(value={format_upper(self.value, self.gap)}, bracket={self.bracket}, "
            f"gap={format_gap(self.lower, self.upper)}, "
            f"rank<={rank}, solver={self.solver!r}, n_iter={self.n_iter}, seconds={self.seconds:.3g}, "
            f"status={str(self.status)!r}{structure})"
        )
