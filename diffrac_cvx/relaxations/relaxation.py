"""What a builder returns: a plain CVXPY problem, and a function that reads and certifies its solved variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.problem.gradient import Instance
from diffrac_cvx.problem.result import Bracket

if TYPE_CHECKING:
    import cvxpy as cp

UNIT_INTERVAL = Bracket(0.0, 1.0)


class Solution(NamedTuple):
    """A solution in the form that all relaxations share.

    Attributes
    ----------
    F, G : (n, r) array; (d, r) array, (d + 1, r) with the offset last, or None
        Y = FF' and V = GG'.
    value : float
        The objective.
    bracket : Bracket
        What is proved about the optimum, and how many columns are excluded.
    rounding_bound : RoundingBound or None
        The problem of labels that the lower bound bounds too, to hold it against labels.
    instance : Instance or None
        What was solved, where it is problem (15), for `Result.gradient`.
    """

    F: Array
    value: float
    bracket: Bracket
    G: Factor | None = None
    rounding_bound: RoundingBound | None = None
    instance: Instance | None = None


class Size(NamedTuple):
    """What the memory depends on: points, side of the semidefinite cone, nonzeros of the other rows."""

    points: int
    side: int
    nonzeros: int
    instead: str  # what to use when it is too large


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A convex relaxation, ready for `solve` or for any use of its CVXPY problem.

    Attributes
    ----------
    name, equation : str
        The builder and the paper's equation.
    problem : cvxpy.Problem
        The problem, in coordinates scaled for the solver; its value is that of the equation.
    read : callable
        Reads the solved variable as a ``Reading``, in the user's coordinates, certified.
    parameters : mapping of str to cvxpy.Parameter
        The parameters that may be changed without compiling again; see `at`.
    size : Size
        Decides the default solver and the estimate of the memory.
    trivial : Bracket
        Bounds on the value that hold for all data.
    shortcut : callable
        Returns the answer where it has a closed form, another relaxation where that one is better posed, or None.
    """

    name: str
    equation: str
    problem: cp.Problem
    read: Callable[[], Solution]
    size: Size
    parameters: Mapping[str, cp.Parameter] = field(default_factory=dict)
    trivial: Bracket = UNIT_INTERVAL
    shortcut: Callable[[], Solution | Relaxation | None] = lambda: None

    def at(self, **values: float) -> Self:
        """Set parameters by name (in place: a path compiles once) and return the relaxation.

        Raises
        ------
        ParameterError
            If there is no such parameter or the value is outside its range.
        """
        for name, value in values.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise ParameterError(f"{self.name} has no parameter {name!r}; it has {known}")
            checked = in_unit_interval(value, name) if name in ("nu", "alpha") else nonnegative(value, name)
            self.parameters[name].value = checked
        return self


def parameter(name: str, value: float) -> cp.Parameter:
    """Return a nonnegative CVXPY parameter with a value."""
    import cvxpy as cp

    return cp.Parameter(nonneg=True, name=name, value=value)


def value_of(scalar: cp.Parameter) -> float:
    """Return the value of a scalar parameter."""
    return float(scalar.value)  # type: ignore[arg-type]


def matrix_of(variable: cp.Variable) -> Array:
    """Return the value of a solved matrix variable."""
    return np.asarray(variable.value, dtype=np.float64)
