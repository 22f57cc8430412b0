r"""What every penalty on pairs of coordinates gives: its value at a factor, its dual set K, and its CVXPY expression.

.. math::
    \sum_j c_j^2 V_{jj} + \max_{C \in K} \mathrm{tr}\, C V

K is convex, holds 0, and its matrices are symmetric.  A penalty that is finite on all V >= 0 has a bounded K; one that
forbids some V has a K that is unbounded, and `feasible` returns a V that is allowed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF

INSIDE_BOX = 1.0 - 4.0 * UNIT_ROUNDOFF  # of a box, so that rounding leaves C inside it


class Expression(NamedTuple):
    """The penalty of a CVXPY matrix, the constraints that it comes with, and what reads C off their multipliers."""

    value: Any
    constraints: list[Any]
    multiplier: Callable[[], Array | None]


class PairPenalty(ABC):
    """A penalty on pairs of coordinates, weighed by c, (D,); with `diagonal`, c_j^2 V_jj is a part of the maximum.

    Entries of C that no penalty allows are 0 in K: those of coordinates with c = 0, and without `diagonal` those on it.
    """

    is_box = False  # whether K is a box, an interval for each entry

    def __init__(self, c: Array, *, diagonal: bool = False) -> None:
        self.c, self.diagonal = c, diagonal

    @property
    def reference_weights(self) -> Array:
        """The weights to which multipliers are kept relative, (D,): c, but for coordinates that are coupled without."""
        return self.c

    @property
    def relative(self) -> "PairPenalty":
        """The same penalty with C kept relative to the reference."""
        return self.with_weights(np.ones(len(self.c)))

    @property
    def parts(self) -> list["PairPenalty"]:
        """Penalties with multipliers of their own, whose sum is C."""
        return [self]

    @abstractmethod
    def with_weights(self, c: Array) -> "PairPenalty":
        """Return the same penalty with other weights."""

    @abstractmethod
    def project_safe(self, C: Array) -> Array:
        """Return about the matrix in K nearest to a symmetric one; in K, rounding counted."""

    @abstractmethod
    def project_inexact(self, C: Array) -> Array:
        """Return nearly the matrix in K nearest to a symmetric one, in its place: for steps, not for proofs."""

    @abstractmethod
    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        """Return a C in K that attains the maximum on the part of V above a threshold, and is the slack elsewhere.

        The threshold is relative to the roots of the products of the diagonal entries.
        """

    @abstractmethod
    def zero_inactive(self, V: Array, C: Array) -> Array:
        """Return V, 0 where C is strictly inside K: there it is 0 at an optimum."""

    @abstractmethod
    def value(self, U: Factor) -> float:
        """Return the penalty at V = UU', which has to be allowed."""

    @abstractmethod
    def value_error_bound(self, U: Factor) -> float:
        """Return how far `value` may be off by rounding; infinite where V is not proved to be allowed."""

    def support_function(self, V: Array) -> float:
        """Return max over C in K of tr CV; for a V that is not allowed, that of a bounded part of K."""
        raise NotImplementedError

    def make_feasible(self, U: Factor) -> Factor:
        """Return a factor of an allowed V near UU', the same where UU' is proved to be allowed."""
        return U

    @abstractmethod
    def expression(self, cp: Any, V: Any, scale: Any) -> Expression:
        """Return scale times the penalty as a CVXPY expression."""

    def zero(self) -> Array:
        """Return C = 0."""
        return np.zeros((len(self.c), len(self.c)))


def diagonal_scale(V: Array) -> Array:
    """Return the roots of the products of diagonal entries, (D, D)."""
    sqrt_diagonal = np.sqrt(np.diag(V))
    return np.asarray(np.outer(sqrt_diagonal, sqrt_diagonal))


IndexArray = npt.NDArray[np.intp]
