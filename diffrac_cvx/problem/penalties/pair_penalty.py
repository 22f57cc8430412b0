r"""Interface of the penalties on pairs of coordinates: value at a factor, dual set K and CVXPY expression.

.. math::
    \sum_j c_j^2 V_{jj} + \max_{C \in K} \mathrm{tr}\, C V

K is convex and contains 0, and its matrices are symmetric.  K is bounded if the penalty is finite on all V >= 0; if
some V are infeasible, K is unbounded, and `make_feasible` returns a feasible V.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF

INSIDE_BOX = 1.0 - 4.0 * UNIT_ROUNDOFF  # shrinks a box, so that C is inside it after rounding


class Expression(NamedTuple):
    """Penalty of a CVXPY matrix, its constraints, and a function that computes C from their multipliers."""

    value: Any
    constraints: list[Any]
    multiplier: Callable[[], Array | None]


class PairPenalty(ABC):
    """Penalty on pairs of coordinates with weights c, (D,); `diagonal` includes c_j^2 V_jj in the maximum.

    Entries of C without a penalty are 0 in K: those of coordinates with c = 0 and, without `diagonal`, the diagonal.
    """

    is_box = False  # whether K is a box: an interval for each entry

    def __init__(self, c: Array, *, diagonal: bool = False) -> None:
        self.c, self.diagonal = c, diagonal

    @property
    def reference_weights(self) -> Array:
        """Weights that scale the multipliers, (D,): c, except for coordinates that are coupled with c = 0."""
        return self.c

    @property
    def relative(self) -> "PairPenalty":
        """The same penalty with C relative to the reference weights."""
        return self.with_weights(np.ones(len(self.c)))

    @property
    def parts(self) -> list["PairPenalty"]:
        """Penalties with separate multipliers, whose sum is C."""
        return [self]

    @abstractmethod
    def with_weights(self, c: Array) -> "PairPenalty":
        """Return the same penalty with new weights."""

    @abstractmethod
    def project_safe(self, C: Array) -> Array:
        """Return nearly the projection of a symmetric matrix onto K; the result is in K, rounding included."""

    @abstractmethod
    def project_inexact(self, C: Array) -> Array:
        """Return nearly the projection of a symmetric matrix onto K, in place: for solver steps, not for proofs."""

    @abstractmethod
    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        """Return a C in K that attains the maximum on the entries of V above a threshold, and equals slack elsewhere.

        The threshold is relative to the square roots of the products of the diagonal entries.
        """

    @abstractmethod
    def zero_inactive(self, V: Array, C: Array) -> Array:
        """Return V with zeros where C is strictly inside K, because an optimal V is 0 there."""

    @abstractmethod
    def value(self, U: Factor) -> float:
        """Return the penalty at a feasible V = UU'."""

    @abstractmethod
    def value_error_bound(self, U: Factor) -> float:
        """Return a bound on the rounding error of `value`; infinite if V is not certified to be feasible."""

    def support_function(self, V: Array) -> float:
        """Return the maximum of tr CV over C in K; for an infeasible V, over a bounded part of K."""
        raise NotImplementedError

    def make_feasible(self, U: Factor) -> Factor:
        """Return a factor of a feasible V near UU'; U itself if UU' is certified to be feasible."""
        return U

    @abstractmethod
    def expression(self, cp: Any, V: Any, scale: Any) -> Expression:
        """Return scale times the penalty as a CVXPY expression."""

    def zero(self) -> Array:
        """Return C = 0."""
        return np.zeros((len(self.c), len(self.c)))


def diagonal_scale(V: Array) -> Array:
    """Return the square roots of the products of diagonal entries, (D, D)."""
    sqrt_diagonal = np.sqrt(np.diag(V))
    return np.asarray(np.outer(sqrt_diagonal, sqrt_diagonal))


IndexArray = npt.NDArray[np.intp]
