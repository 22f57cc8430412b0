"""Result of a builder: a plain CVXPY problem with a function that reads and certifies its solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Self

import numpy as np

from diffrac_cvx.certificates.certificate import Certificate, Proof
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative
from diffrac_cvx.points.factors import Factor, outer_product
from diffrac_cvx.problem.result import Bracket

if TYPE_CHECKING:
    import cvxpy as cp

Arguments = ParamSpec("Arguments")


class Solution(NamedTuple):
    """Certified solution, in the same form for all relaxations.

    Attributes
    ----------
    F, G : (n, r) array; (d, r) array, (d + 1, r) with the offset last, or None
        Factors of Y = FF' and V = GG'; G is None for relaxations in Y alone.
    value : float
        Objective value.
    bracket : Bracket
        Certified bounds on the optimum, with the number of excluded columns.
    rounding_bound : RoundingBound or None
        Label problem for which the lower bound is also valid, to check the bound against rounded labels.
    proofs : tuple of Proof
        Proofs of the lower bound; none for a trivial one.
    labels : pair of (n,) and (d,) arrays, or None
        Labels and their direction, whose objective is the upper bound, if the bounds refer to the best labels.
    """

    F: Array
    value: float
    bracket: Bracket
    G: Factor | None = None
    rounding_bound: RoundingBound | None = None
    proofs: tuple[Proof, ...] = ()
    labels: tuple[Array, Array] | None = None


class Size(NamedTuple):
    """Size of a problem, to estimate its memory: points, side of the semidefinite cone, nonzeros of the other rows."""

    points: int
    side: int
    nonzeros: int
    instead: str  # advice if the problem is too large


class Point(NamedTuple):
    """Point that the solver returned: factors of Y, (m, r), and of V, (d, r) or None, with nu and the multipliers."""

    F: Array
    G: Array | None
    nu: float
    mu: Array | None  # (m,), of diag Y = 1
    C: Array | None = None  # (d, d), of the l1 term, in the user's units


class PointValue(NamedTuple):
    """A point in the user's coordinates, with the objective of the relaxation there."""

    F: Array  # (n, r)
    G: Array | None  # (d, r), or (d + 1, r) with the offset last
    value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelMatrix:
    """Matrix Y of the labels of a builder, on which constraints on labels can be stated.

    Attributes
    ----------
    Y : cvxpy.Expression
        Y, (m, m), with a row for y_0 = 1 if there are linear constraints and no known labels.
    read : callable
        Function that returns the solved `Point`.
    value_at : callable
        Function from factors F, (m, r), and G, (d, r) or None, to the `PointValue`.
    constraints : callable
        Function that returns the `LabelConstraints`.
    alpha : cvxpy.Parameter or None
        Imbalance, if it is fixed; nu of a `Point` is then its multiplier.
    base : Relaxation or None
        The relaxation without these constraints, if they are stated.
    """

    Y: cp.Expression
    read: Callable[[], Point]
    value_at: Callable[[Array, Array | None], PointValue]
    constraints: Callable[[], Any]
    alpha: cp.Parameter | None = None
    base: Relaxation | None = None


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Convex relaxation as a CVXPY problem, ready for `solve`.

    Attributes
    ----------
    name, equation : str
        Name of the builder and equation of the paper.
    problem : cvxpy.Problem
        Problem in coordinates scaled for the solver; its value is that of the equation.  Its variable ``V_scaled`` is
        not V in the units of X: after ``problem.solve()``, use `V`, `Y` or ``read()``.
    read : callable
        Function that returns the solved variable as a certified `Solution` in the user's coordinates.
    parameters : mapping of str to cvxpy.Parameter
        Parameters that can be changed without recompilation; see `at`.
    size : Size
        Problem size, which determines the default solver and the memory estimate.
    shortcut : callable
        Function that returns a closed-form `Solution`, a better-posed `Relaxation` of the same problem, or None.
    pose : callable
        Function that returns a `Certificate` of the problem without bounds; if absent, results have no certificate.
    tighten : callable
        Function that returns the solved relaxation with additional inequalities, or None if none are violated.
    label_matrix : LabelMatrix or None
        Its matrix of labels, for `triangles`.
    building : list of float
        Seconds that the builder took, until the time limit of a call of `solve` has counted them.
    """

    name: str
    equation: str
    problem: cp.Problem
    read: Callable[[], Solution]
    size: Size
    pose: Callable[[], Certificate] | None = None
    parameters: Mapping[str, cp.Parameter] = field(default_factory=dict)
    shortcut: Callable[[], Solution | Relaxation | None] = lambda: None
    tighten: Callable[[], Relaxation | None] = lambda: None
    label_matrix: LabelMatrix | None = field(default=None, repr=False)
    building: list[float] = field(default_factory=list, repr=False)

    @property
    def trivial(self) -> Bracket:
        """Bounds on the value that hold without a solution."""
        return Bracket(0.0, 1.0) if self.pose is None else self.pose().bracket

    @property
    def V(self) -> Array | None:
        """Matrix of directions after ``problem`` was solved, in the units of X and optimally scaled; None without one.

        Shape (d, d), or (d + 1, d + 1) with the offset last if nu < 1, as in a `Result`; `certify_v` certifies it.

        Raises
        ------
        ParameterError
            If the problem has not been solved.
        """
        G = self._solved().G
        return None if G is None else outer_product(G)

    @property
    def Y(self) -> Array:
        """Matrix of labels, (n, n), of all points, after ``problem`` was solved; errors are those of `V`."""
        F = self._solved().F
        require_memory(8.0 * 2 * len(F) ** 2, f"Y of {len(F)} points", "use the factor read().F")
        return np.asarray(F @ F.T)

    def _solved(self) -> Solution:
        """Return the solution, if there is one."""
        if any(variable.value is None for variable in self.problem.variables()):
            raise ParameterError(f"{self.name} has no solution. Call problem.solve() or dc.solve(relaxation) first.")
        return self.read()

    def count_building(self) -> float:
        """Return the seconds that the builder took, and 0 from the second call on."""
        return self.building.pop() if self.building else 0.0

    def at(self, **values: float) -> Self:
        """Set parameters by name, in place and without recompilation, and return the relaxation.

        Raises
        ------
        ParameterError
            If a parameter does not exist or its value is outside the range.
        """
        for name, value in values.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise ParameterError(f"{self.name} has no parameter {name!r}; available parameters: {known}.")
            checked = in_unit_interval(value, name) if name in ("nu", "alpha") else nonnegative(value, name)
            self.parameters[name].value = checked
        return self


def timed(build: Callable[Arguments, Relaxation]) -> Callable[Arguments, Relaxation]:
    """Let a builder record its seconds, the import of CVXPY included, in the relaxation."""

    @wraps(build)
    def build_timed(*arguments: Arguments.args, **named: Arguments.kwargs) -> Relaxation:
        timer = Timer(None)
        relaxation = build(*arguments, **named)
        relaxation.building[:] = [timer.elapsed]
        return relaxation

    return build_timed


def parameter(name: str, value: float) -> cp.Parameter:
    """Return a non-negative scalar CVXPY parameter."""
    import cvxpy as cp

    return cp.Parameter(nonneg=True, name=name, value=value)


def value_of(scalar: cp.Parameter) -> float:
    """Return the value of a scalar parameter."""
    return float(scalar.value)  # type: ignore[arg-type]


def matrix_of(variable: cp.Expression) -> Array:
    """Return the value of a solved matrix variable, or of a part of it."""
    return np.asarray(variable.value, dtype=np.float64)
