"""What every solver returns."""

from collections.abc import Callable
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
from diffrac_cvx.problem.gradient import Gradient, Instance, value_gradient
from diffrac_cvx.problem.html_card import html_card


class Status(Enum):
    """Why a solver stopped; the value is the sentence a user reads."""

    OPTIMAL = "the proved gap is within the tolerance"
    CLOSED_FORM = "the optimum is known in closed form"
    MAX_ITER = "max_iter was reached; the bracket is valid, raise max_iter to narrow it"
    TIME_LIMIT = "time_limit was reached; the bracket is valid, raise time_limit to narrow it"
    USER_LIMIT = "an iteration or time limit was reached; the bracket is valid, raise the limit to narrow it"
    OUT_OF_MEMORY = "V as one block would not fit in memory; the bracket is valid, a larger lambda narrows it"
    STOPPED = "the callback asked to stop; the bracket is valid"
    SMOOTHED_GAP = "the gap of (21) is at most epsilon log d; the bracket is valid, lower epsilon to narrow it"
    STALLED = "no further progress in double precision; the bracket is valid, ask for a larger tol"
    INACCURATE = "the solver stopped with a proved gap above the tolerance; the bracket is valid, try another solver"
    INVALID_BOUND = (
        "labels were found that cost less than the lower bound, which is withdrawn; bring the columns to one size"
    )
    OVERFLOW = (
        "numbers left the range of double precision; the bracket is valid, bring the columns of X and the penalties "
        "nearer to 1 to narrow it"
    )
    FAILED = "the solver returned no point; the bracket is the trivial one, try another solver"

    def __str__(self) -> str:
        return self.value


def excluded_clause(n_excluded: int) -> str:
    """Return the clause of a sentence on bounds that says how many columns they do not take into account."""
    return f" ({n_excluded} column{'s' if n_excluded > 1 else ''} excluded)" if n_excluded else ""


class Bracket(NamedTuple("Bounds", [("lower", float), ("upper", float)])):
    """Certified bounds on the optimum, lower <= optimum <= upper: a pair.

    Attributes
    ----------
    lower, upper : float
        The bounds.
    n_excluded : int
        Number of columns that are excluded, see `Result`: the lower bound is about the table without them.  It is not
        one of the entries.
    """

    n_excluded: int

    def __new__(cls, lower: float, upper: float, n_excluded: int = 0) -> Self:
        """Return the pair."""
        made = super().__new__(cls, lower, upper)
        made.n_excluded = n_excluded
        return made

    @property
    def gap(self) -> float:
        """Width of the bracket, not below the exact one."""
        return width_of(self.lower, self.upper)

    def __str__(self) -> str:
        return format_bracket(self.lower, self.upper) + excluded_clause(self.n_excluded)


class InvalidBound(NamedTuple):
    """A lower bound that is not one, and the cost of labels, or the value of a V, that is below it."""

    lower: float
    objective: float


class DimacsErrors(NamedTuple):
    r"""How far a solver's own point is from optimal for the conic problem that it was given.

    The problem is min c'x such that Ax + s = b with s in a cone K, its dual max -b'z such that A'z + c = 0 with z in
    the dual cone; the norms of b and c are those of their largest entry.  A point is outside a cone by the multiple of
    the cone's centre that has to be added to it: minus the least eigenvalue, where the cone is semidefinite.

    Source: Mittelmann, An independent benchmarking of SDP and SOCP solvers, Math. Program. 95, 2003, section 2.

    Attributes
    ----------
    err1 : float
        :math:`\|Ax + s - b\|_2 / (1 + \|b\|)`.
    err2 : float
        How far s is outside K, over :math:`1 + \|b\|`.
    err3 : float
        :math:`\|A^\top z + c\|_2 / (1 + \|c\|)`.
    err4 : float
        How far z is outside the dual cone, over :math:`1 + \|c\|`.
    err5 : float
        Distance of the two objectives, over 1 plus their absolute values.
    err6 : float
        :math:`|s^\top z|`, over the same.
    """

    err1: float
    err2: float
    err3: float
    err4: float
    err5: float
    err6: float

    @property
    def largest(self) -> float:
        """The largest of the six."""
        return max(self)


class Progress(NamedTuple("Line", [("iteration", int), ("seconds", float), ("lower", float), ("upper", float)])):
    """One line of a solver's history: (iteration, seconds, lower, upper).

    Attributes
    ----------
    iteration, seconds : int, float
        When.
    lower, upper : float
        Proved bracket.
    rows : int
        Rows of X that were read until then, where they are read by passes; over n, the number of passes.  It is not one
        of the entries.
    n_excluded : int
        Number of columns that are excluded, see `Result`.  It is not one of the entries.
    """

    rows: int = 0
    n_excluded: int = 0

    def with_counts(self, rows: int, n_excluded: int) -> "Progress":
        """Return the line with the number of rows read and of columns excluded."""
        line = Progress(*self)
        line.rows, line.n_excluded = rows, n_excluded
        return line


Labels = npt.NDArray[np.int64]
SELECTED_RTOL = 1e-3  # of the largest V_jj: what a feature in use has more of


@dataclass(frozen=True, eq=False)
class Components:
    """Groups of features between which V is zero, numbered from 0 by first feature; -1 for features with c = 0.

    Attributes
    ----------
    found : (d,) array of int
        The components of the V returned, which is zero between them.
    certified : (d,) array of int, or None
        Components between which every optimal V is proved zero; None where the gap proves nothing.
    """

    found: Labels
    certified: Labels | None = None

    def __str__(self) -> str:
        sizes = np.bincount(self.found[self.found >= 0])
        if sizes.max(initial=0) <= 1:
            summary = "V is diagonal but for features with c = 0" if np.any(self.found < 0) else "V is diagonal"
            if self.certified is not None and np.bincount(self.certified[self.certified >= 0]).max(initial=0) <= 1:
                return f"{summary}, and every optimal V is proved to be"
            return summary
        summary = f"V has {len(sizes)} components, the largest of {sizes.max()} features"
        certified = np.bincount(self.certified[self.certified >= 0]) if self.certified is not None else np.zeros(1)
        if len(certified) <= 1:
            return summary
        return (
            f"{summary}; every optimal V is proved to have {len(certified)}, the largest of {certified.max()} at most"
        )


@dataclass(frozen=True, eq=False)
class SelectedFeatures:
    """The features that V uses; as text, how many they are, and what any others could gain.

    Attributes
    ----------
    selected : (k,) array of int
        Features in use, the largest V_jj first.
    d : int
        Number of features.
    gap : float
        Proved: no V, on whichever features, costs less by more than this.
    n_excluded : int
        Number of columns that are excluded, see `Result`: these are not among the features of any V.
    """

    selected: Labels
    d: int
    gap: float
    n_excluded: int = 0

    def __str__(self) -> str:
        k = len(self.selected)
        return (
            f"{k} of {self.d} features {'carries' if k == 1 else 'carry'} the answer; "
            f"no other set can cost less by more than {format_upper(self.gap)}{excluded_clause(self.n_excluded)}"
        )


class LazyField:
    """A field of a record that may be given as a function, which is called when the field is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, record: object, owner: type) -> Array:
        if record is None:  # so that the field has no default
            raise AttributeError(self.name)
        value = record.__dict__[self.name]
        if callable(value):
            value = record.__dict__[self.name] = value()
        return np.asarray(value)

    def __set__(self, record: object, value: Array | Callable[[], Array]) -> None:
        record.__dict__[self.name] = value


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """A point, the proved bracket on the optimum, and how they were found.

    Attributes
    ----------
    value : float
        Objective of the relaxation at the returned point, after best scaling.
    lower, upper : float
        Proved bracket on the optimal value, certified by this package whatever the solver said.
    F : (n, r) array
        Factor of the labels' matrix, Y = F F', with unit rows.  Where n is large, it is made from X when it is first
        read: X must not have changed then.
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
        Last multiplier of the l1 part off the diagonal, from the fast solvers when c > 0: for warm starts.  Sparse,
        with the entries inside the components, where V was found by components.
    u : (n,) array or None
        Last weights of the rows with which C proves the lower bound, from the fast solvers where they are not
        1/sqrt(x_i'Vx_i) of V: `certify_v` uses them.  1 for points of weight 0.
    G : (d, r) array or sparse array, or (d + 1, r) with the offset last, or None
        Factor of the matrix of directions, V = GG'; None for relaxations in Y alone.
    components : Components or None
        Where V was found by components: which they are, and in words whether V is proved diagonal.
    n_excluded : int
        Number of columns of X that nothing penalises and that rounding does not tell from a combination of the others,
        or from a constant: they are collinear up to about 1e-13.  The bracket is that of X without these columns, whose
        rows of V are zero.  A column that is exactly constant carries nothing and is not counted.
    invalid_bound : InvalidBound or None
        Where labels rounded from F, with a direction found in the user's units, cost less than the lower bound, or the
        value does: both numbers.  The bound is not valid, ``lower`` is 0 and the status says so.
    dimacs : DimacsErrors or None
        Of the point that CLARABEL or SCS returned, in the coordinates in which it solved the problem; None elsewhere.
    """

    value: float
    lower: float
    upper: float
    F: LazyField = LazyField()  # a descriptor, and no default
    status: Status
    n_iter: int
    seconds: float
    solver: str
    history: tuple[Progress, ...] = field(default=(), repr=False)
    C: Factor | None = field(default=None, repr=False)
    u: Array | None = field(default=None, repr=False)
    G: Factor | None = field(default=None, repr=False)
    components: Components | None = field(default=None, repr=False)
    n_excluded: int = 0
    invalid_bound: InvalidBound | None = None
    dimacs: DimacsErrors | None = field(default=None, repr=False)
    _instance: Instance | None = field(default=None, repr=False)  # what was solved, where it is problem (15)

    @cached_property
    def V(self) -> Array | None:
        """Matrix of directions, (d, d), or (d + 1, d + 1) with the offset last; None for relaxations in Y alone.

        Made when it is asked for, and kept.

        Raises
        ------
        ResourceError
            If it would not fit in memory; use G.
        """
        return None if self.G is None else outer_product(self.G)

    @property
    def factor(self) -> Any:
        """F as the roundings take it: where n is large not as an array, but as what makes its rows when it is asked."""
        stored = self.__dict__["F"]
        return stored if callable(stored) else self.F

    @property
    def gap(self) -> float:
        """Proved gap, upper - lower, not below the exact one."""
        return width_of(self.lower, self.upper)

    @property
    def bracket(self) -> Bracket:
        """The proved bracket; as text, its ends are rounded outwards."""
        return Bracket(self.lower, self.upper, self.n_excluded)

    def features(self, d: int | None = None, *, rtol: float = SELECTED_RTOL) -> SelectedFeatures:
        """Return the features in use: those j with V_jj above rtol times the largest one.

        V_jj is in the units of X: bring the columns to unit variance first.

        Parameters
        ----------
        d : int, optional
            Number of features, to be given where nu < 1: V then has a last row for the offset, which is left out.
        rtol : float
            In [0, 1).

        Raises
        ------
        ParameterError
            If the result is of a relaxation in Y alone, or an input is out of its range.
        """
        if self.G is None:
            raise ParameterError("the result has no V, and with it no features: solve a relaxation that has directions")
        if not 0.0 <= rtol < 1.0:
            raise ParameterError(f"rtol = {rtol} must be in [0, 1)")
        rows = self.G.shape[0]
        if d not in (None, rows, rows - 1):
            raise ParameterError(f"d = {d} must be the number of features, {rows}, or {rows - 1} with an offset")
        diagonal_entries = diagonal(self.G)[:d]
        order = np.argsort(-diagonal_entries, kind="stable")
        selected = order[diagonal_entries[order] > rtol * diagonal_entries.max(initial=0.0)]
        return SelectedFeatures(selected.astype(np.int64), len(diagonal_entries), self.gap, self.n_excluded)

    def gradient(self, X: npt.ArrayLike | None = None) -> Gradient:
        """Return the derivative of the optimal value of problem (15) in lam, the ridge, nu and every entry of X.

        It costs a product of X with a factor of V, and the entries of V.  What it is where the optimal V is not unique,
        and how exact it is, stands at `Gradient`.

        Parameters
        ----------
        X : (n, d) array, optional
            The table that was solved, where the result does not have it: the result refers to the user's table and
            never copies it, it goes without to other processes and into files, and that of an estimator has none.

        Raises
        ------
        ParameterError
            If the result is of another problem than (15), or has no table and none is given.
        DataError
            If the table is not that which was solved: V has another value on it.
        ResourceError
            If a matrix of the size of X would not fit in memory.
        """
        if self.G is None or self._instance is None:
            raise ParameterError(
                f"this result of {self.solver} is not one of problem (15), whose derivative this is: use low_rank, "
                "fista, v_space or lifted; without an l1 part their value is that of penalized_nu"
            )
        instance = self._instance if X is None else replace(self._instance, X=X)
        if instance.X is None:
            raise ParameterError("the result has no table any more: pass the one that was solved, result.gradient(X)")
        return value_gradient(instance, self.G, self.bracket, self.n_excluded)

    def checked_against(self, objective: float, trivial: float = 0.0) -> "Result":
        """Return the result with the trivial lower bound where its value, or the cost of labels, is below its own."""
        least = min(self.upper, objective)
        if not self.lower > least:
            return self
        invalid_bound = InvalidBound(self.lower, least)
        return replace(self, F=self.factor, lower=trivial, invalid_bound=invalid_bound, status=Status.INVALID_BOUND)

    def __getstate__(self) -> dict[str, object]:
        instance = self._instance and replace(self._instance, X=None)
        return {**self.__dict__, "F": self.F, "_instance": instance}

    @property
    def rank_bound(self) -> int:
        """The number of columns of F, which is not made for it."""
        stored = self.__dict__["F"]
        return int(stored.shape[1] if self.G is None or not callable(stored) else self.G.shape[1])

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        rows: dict[str, object] = {
            "least cost of the relaxation": f"proved to lie in {self.bracket}",
            "width of this bracket": format_gap(self.lower, self.upper),
            "cost at the point found": format_upper(self.value, self.gap),
            "how it ended": self.status,
            "solver": f"{self.solver}, {self.n_iter} steps, {self.seconds:.3g} s",
            "rank of Y": f"at most {self.rank_bound}",
        }
        rows |= {} if self.components is None else {"structure": self.components}
        rows |= {"columns excluded, as collinear or constant": self.n_excluded} if self.n_excluded else {}
        if self.invalid_bound is not None:
            rows["contradiction"] = f"a cost of {format_upper(self.invalid_bound.objective)} is below the bound"
        return html_card("Result: 0 is the best cost, 1 the worst", rows)

    def __repr__(self) -> str:
        structure = "" if self.components is None else f", components={str(self.components)!r}"
        structure += f", n_excluded={self.n_excluded}" if self.n_excluded else ""
        structure += f", contradiction={tuple(self.invalid_bound)!r}" if self.invalid_bound else ""
        return (
            f"Result(value={format_upper(self.value, self.gap)}, bracket={self.bracket}, "
            f"gap={format_gap(self.lower, self.upper)}, "
            f"rank<={self.rank_bound}, solver={self.solver!r}, n_iter={self.n_iter}, seconds={self.seconds:.3g}, "
            f"status={str(self.status)!r}{structure})"
        )
