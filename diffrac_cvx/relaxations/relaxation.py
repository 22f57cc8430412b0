"""Result of a builder: a plain CVXPY problem with a function that reads and certifies its solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from diffrac_cvx.certificates.certificate import Certificate, Proof
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.problem.result import Bracket

if TYPE_CHECKING:
    import cvxpy as cp


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
        Label problem that the lower bound also bounds, to check the bound against rounded labels.
    proofs : tuple of Proof
        What proves the lower bound; none for a trivial one.
    """

    F: Array
    value: float
    bracket: Bracket
    G: Factor | None = None
    rounding_bound: RoundingBound | None = None
    proofs: tuple[Proof, ...] = ()


class Size(NamedTuple):
    """Size of a problem, for its memory: points, side of the semidefinite cone, nonzeros of the other rows."""

    points: int
    side: int
    nonzeros: int
    instead: str  # advice if the problem is too large


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Convex relaxation as a CVXPY problem, ready for `solve`.

    Attributes
    ----------
    name, equation : str
        Name of the builder and equation of the paper.
    problem : cvxpy.Problem
        Problem in coordinates scaled for the solver; its value is that of the equation.
    read : callable
        Function that returns the solved variable as a certified `Solution` in the user's coordinates.
    parameters : mapping of str to cvxpy.Parameter
        Parameters that can be changed without recompilation; see `at`.
    size : Size
        Problem size, which determines the default solver and the memory estimate.
    shortcut : callable
        Function that returns a closed-form `Solution`, a better-posed `Relaxation` of the same problem, or None.
    pose : callable
        Function that returns a `Certificate` of the problem without bounds; without it, results have no certificate.
    """

    name: str
    equation: str
    problem: cp.Problem
    read: Callable[[], Solution]
    size: Size
    pose: Callable[[], Certificate] | None = None
    parameters: Mapping[str, cp.Parameter] = field(default_factory=dict)
    shortcut: Callable[[], Solution | Relaxation | None] = lambda: None

    @property
    def trivial(self) -> Bracket:
        """Bounds on the value without a solution."""
        return Bracket(0.0, 1.0) if self.pose is None else self.pose().bracket

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
                raise ParameterError(f"{self.name} has no parameter {name!r}; available parameters: {known}")
            checked = in_unit_interval(value, name) if name in ("nu", "alpha") else nonnegative(value, name)
            self.parameters[name].value = checked
        return self


def parameter(name: str, value: float) -> cp.Parameter:
    """Return a non-negative scalar CVXPY parameter."""
    import cvxpy as cp

    return cp.Parameter(nonneg=True, name=name, value=value)


def value_of(scalar: cp.Parameter) -> float:
    """Return the value of a scalar parameter."""
    return float(scalar.value)  # type: ignore[arg-type]


def matrix_of(variable: cp.Variable) -> Array:
    """Return the value of a solved matrix variable."""
    return np.asarray(variable.value, dtype=np.float64)
