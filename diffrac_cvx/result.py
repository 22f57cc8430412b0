"""What every solver returns."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from diffrac_cvx.inputs import Array


class Status(Enum):
    """Why a solver stopped; the value is the sentence a user reads."""

    OPTIMAL = "the proved gap is within the tolerance"
    CLOSED_FORM = "the optimum is known in closed form"
    MAX_ITER = "max_iter was reached; the bracket is valid, raise max_iter to narrow it"
    TIME_LIMIT = "time_limit was reached; the bracket is valid, raise time_limit to narrow it"
    LIMIT = "an iteration or time limit was reached; the bracket is valid, raise the limit to narrow it"
    STOPPED = "the callback asked to stop; the bracket is valid"
    PUBLISHED = "the gap of (21) is at most epsilon log d; the bracket is valid, lower epsilon to narrow it"
    STALLED = "no further progress in double precision; the bracket is valid, ask for a larger tol"
    INACCURATE = "the solver stopped with a proved gap above the tolerance; the bracket is valid, try another solver"
    FAILED = "the solver returned no point; the bracket is the trivial one, try another solver"

    def __str__(self) -> str:
        return self.value


class Bracket(NamedTuple):
    """Proved bounds on the optimum: lower <= optimum <= upper."""

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Width of the bracket."""
        return self.upper - self.lower


class Progress(NamedTuple):
    """One line of a solver's history."""

    iteration: int
    seconds: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Result:
    """A point, the proved bracket on the optimum, and how they were found.

    Attributes
    ----------
    value : float
        Objective of the relaxation at the returned point, after best scaling.
    lower, upper : float
        Proved bracket on the optimal value, certified by this package whatever the solver said.
    F : (n, r) array
        Factor of the labels' matrix, Y = F F', with unit rows.
    V : (d, d) array, or (d + 1, d + 1) with the offset last, or None
        Matrix of directions; None for relaxations in Y alone.
    status : Status
        Why the solver stopped, as a sentence.
    n_iter : int
        Iterations of the solver's own kind.
    seconds : float
        Wall-clock time.
    solver : str
        Name of the solver.
    history : tuple of Progress
        (iteration, seconds, lower, upper), oldest first; empty where the solver does not report it.
    C : (d, d) array, or (d + 1, d + 1), or None
        Last multiplier of the l1 part off the diagonal, from the fast solvers when c > 0: for warm starts.
    """

    value: float
    lower: float
    upper: float
    F: Array
    V: Array | None
    status: Status
    n_iter: int
    seconds: float
    solver: str
    history: tuple[Progress, ...] = field(default=(), repr=False)
    C: Array | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """Proved gap, upper - lower."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        return (
            f"Result(value={self.value:.6g}, bracket=[{self.lower:.6g}, {self.upper:.6g}], gap={self.gap:.1e}, "
            f"rank<={self.F.shape[1]}, solver={self.solver!r}, n_iter={self.n_iter}, seconds={self.seconds:.3g}, "
            f"status={str(self.status)!r})"
        )
