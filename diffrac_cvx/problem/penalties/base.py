r"""Interface of the penalties on pairs of coordinates: all that solvers, certificates and roundings ask of a penalty.

.. math::
    \sum_{gh} w_g w_h |V_{gh}| = \sum_j c_j^2 V_{jj} + \max_{C \in K} \mathrm{tr}\, C V,
    \qquad \text{at } V = vv^\top:\ \Big(\sum_g w_g |v_g|\Big)^2

The coordinates are in groups g of weight w_g, with Euclidean norms of the parts of v, and norms of the blocks of V
whose dual norms are at most the Frobenius norm.  The dual set K is convex and contains 0, and its matrices are
symmetric.  K is bounded if the penalty is finite on all V >= 0; if some V are infeasible, K is unbounded, and
`make_feasible` returns a feasible V.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF
from diffrac_cvx.points.points import Indexer, Mask

INSIDE_BOX = 1.0 - 4.0 * UNIT_ROUNDOFF  # shrinks a box t c_j c_k, so that C is inside it after three roundings

IndexArray = npt.NDArray[np.intp]


class Expression(NamedTuple):
    """Penalty of a CVXPY matrix, its constraints, and a function that computes C from their multipliers."""

    value: Any
    constraints: list[Any]
    multiplier: Callable[[], Array | None]


class OffDiagonalDual(ABC):
    """Dual set between row coordinates and column coordinates that have no group in common, times t."""

    @abstractmethod
    def project_safe(self, tC: Array, t: float) -> Array:
        """Return nearly the projection onto t times the dual set, inside it after rounding."""

    @abstractmethod
    def violated_columns(self, T: Array, t: float) -> IndexArray:
        """Return the columns with an entry, or of groups with a block, that violates the dual set."""

    @abstractmethod
    def prox(self, Z: Array, t: float) -> Array:
        """Return the proximal point of t sum_gh w_g w_h |Z_gh|."""

    @abstractmethod
    def restrict(self, columns: IndexArray) -> "OffDiagonalDual":
        """Return the dual set for some of the columns, in complete groups."""

    @abstractmethod
    def best_multiplier(self, P: Array, T: Array, t: float) -> Array:
        """Return nearly the tC in t times the dual set that minimises tr e'P^-1 e, e = tC - T.

        e = -P Z at the minimum of tr Z'PZ/2 - tr Z'T + t sum_gh w_g w_h |Z_gh|.
        """


class PairPenalty(ABC):
    """Penalty on pairs of coordinates with weights c, (D,), constant within a group; by default, groups of one.

    `diagonal` includes c_j^2 V_jj in the maximum.  Entries of C without a penalty are 0 in K: those of coordinates with
    c = 0 and, without `diagonal`, the diagonal.
    """

    is_box = False  # whether K is a box: an interval for each entry
    splits_into_blocks = False  # whether K is a product of symmetric intervals, so that V may be cut at any pairs
    has_off_diagonal = False  # whether `off_diagonal` is available, which the working-set solver needs
    is_even = True  # whether v and -v are feasible together
    nonnegative: Mask | None = None  # (D,), coordinates with v_j >= 0: C has no lower bound between two of them

    def __init__(self, c: Array, labels: IndexArray | None = None, *, diagonal: bool = False) -> None:
        self.c, self.labels, self.diagonal = c, labels, diagonal

    # The penalty on other coordinates or with other weights

    def with_weights(self, c: Array) -> Self:
        """Return the same penalty with new weights."""
        return type(self)(c, self.labels, diagonal=self.diagonal)

    def with_diagonal(self) -> "PairPenalty":
        """Return the same penalty with the diagonal in the maximum."""
        return type(self)(self.c, self.labels, diagonal=True)

    def restrict(self, indices: Indexer) -> "PairPenalty":
        """Return the penalty on some coordinates."""
        return type(self)(
            self.c[indices], None if self.labels is None else self.labels[indices], diagonal=self.diagonal
        )

    def with_offset(self) -> "PairPenalty":
        """Return the penalty with one more coordinate, of weight 0 and in a group of its own."""
        labels = None if self.labels is None else np.append(self.labels, self.labels.max(initial=-1) + 1)
        return type(self)(np.append(self.c, 0.0), labels, diagonal=self.diagonal)

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

    @property
    def is_zero(self) -> bool:
        """Whether no pair of coordinates is coupled."""
        return not self.c.any()

    # Groups of coordinates

    @cached_property
    def groups(self) -> list[IndexArray]:
        """Coordinates of each group, by label."""
        labels = np.arange(len(self.c)) if self.labels is None else self.labels
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(labels) else []

    @cached_property
    def weights(self) -> Array:
        """Weight of each group."""
        return self.c if self.labels is None else np.array([self.c[group[0]] for group in self.groups])

    def group_max(self, sizes: Array) -> Array:
        """Return the largest size in the group of each coordinate: the common unit of a group."""
        if self.labels is None:
            return sizes
        largest = np.zeros(int(self.labels.max(initial=0)) + 1)
        np.maximum.at(largest, self.labels, sizes)
        return np.asarray(largest[self.labels])

    def group_sums(self, values: Array) -> Array:
        """Return the sum of the values in the group of each coordinate."""
        return values if self.labels is None else np.asarray(np.bincount(self.labels, values)[self.labels])

    def group_norms(self, Z: Array) -> Array:
        """Return the norm of each column of Z, (D,) or (D, k), in the group of each coordinate."""
        return np.abs(Z) if self.labels is None else np.asarray(self.norms_by_label(Z)[self.labels])

    def norms_by_label(self, Z: Array) -> Array:
        """Return the norm of each column of Z, (D,) or (D, k), in each group."""
        if self.labels is None:
            return np.abs(Z)
        squares = np.zeros((int(self.labels.max(initial=-1)) + 1, *Z.shape[1:]))
        np.add.at(squares, self.labels, Z**2)
        return np.sqrt(squares)

    def complete_groups(self, mask: Mask) -> Mask:
        """Return the mask of all groups that intersect a mask."""
        return mask if self.labels is None else np.isin(self.labels, np.unique(self.labels[mask]))

    def first_groups(self, order: IndexArray, limit: int) -> IndexArray:
        """Return the first coordinates of an order, up to a limit, in complete groups and at least one group."""
        if self.labels is None or not len(order):
            return order[:limit]
        names, positions = np.unique(self.labels[order], return_index=True)
        names = names[np.argsort(positions)]
        sizes = np.cumsum(np.bincount(self.labels)[names])
        selected = names[: max(int(np.sum(sizes <= limit)), 1)]
        return np.concatenate([np.flatnonzero(self.labels == name) for name in selected])

    # Directions v

    def direction_norm(self, Z: Array) -> Array:
        """Return sum_g w_g |z_g| for each column z of Z, (D,) or (D, k)."""
        return np.asarray(self.norms_by_label((self.c * Z.T).T).sum(axis=0))

    def direction_value(self, v: Array) -> float:
        """Return the penalty (sum_g w_g |v_g|)^2 of a direction; infinite if it is infeasible."""
        return float(self.direction_norm(v)) ** 2

    def nearest_direction(self, v: Array) -> Array:
        """Return the feasible direction nearest to v."""
        return v

    def orientation(self, v: Array) -> float:
        """Return -1 if more of -v than of v is feasible, else 1."""
        sizes = [float(np.abs(self.nearest_direction(sign * v)).sum()) for sign in (1.0, -1.0)]
        return -1.0 if sizes[1] > sizes[0] else 1.0

    def direction_cones(self, clarabel: Any) -> tuple[Any, list[Any]]:
        """Return A and cones for Clarabel: -Ax is in them if x = (v, norms of the groups, their weighted sum)."""
        D, G = len(self.c), len(self.groups)
        total = np.concatenate([np.zeros(D), self.weights, [-1.0]])
        places = [np.append(D + g, group) for g, group in enumerate(self.groups)]
        identity = scipy.sparse.identity(D + G + 1, format="csr")
        A = scipy.sparse.vstack([scipy.sparse.csc_array(total[None]), -identity[np.concatenate(places)]], format="csc")
        return A, [clarabel.ZeroConeT(1), *(clarabel.SecondOrderConeT(len(place)) for place in places)]

    # Matrices V = UU' and their multipliers C

    @abstractmethod
    def value(self, U: Factor) -> float:
        """Return the penalty at a feasible V = UU'."""

    @abstractmethod
    def value_error_bound(self, U: Factor) -> float:
        """Return a bound on the rounding error of `value`; infinite if V is not certified to be feasible."""

    @abstractmethod
    def sums_of_norms(self, U: Factor) -> tuple[Array, Array]:
        """Return sum_h w_h |V_gh| and |V_gg| for each group at V = UU': half the derivative of the value in w_g."""

    def gradient_in_squares(self, U: Factor) -> Array:
        """Return the derivative of the value in w_g^2 for each group.

        At w_g = 0, where w_g has no derivative, it is infinite if V couples the group with a penalised one, and else
        |V_gg|.
        """
        sums, diagonal = self.sums_of_norms(U)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.where((sums == 0.0) & (self.weights == 0.0), diagonal, sums / self.weights)

    @abstractmethod
    def support_function(self, V: Array) -> float:
        """Return the maximum of tr CV over C in K; for an infeasible V, over a bounded part of K."""

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
    def dual_norms(self, G: Array) -> Array:
        """Return upper bounds on the dual norms of the blocks of a matrix, (groups, groups), 0 on the diagonal.

        If they are below the products of the weights, G is strictly inside K between two groups.
        """

    def off_diagonal(self, rows: IndexArray, columns: IndexArray) -> OffDiagonalDual:
        """Return the dual set between row coordinates and column coordinates, which have no group in common."""
        raise NotImplementedError(f"{type(self).__name__} has no multipliers between two sets of coordinates")

    def make_feasible(self, U: Factor) -> Factor:
        """Return a factor of a feasible V near UU'; U itself if UU' is certified to be feasible."""
        return U

    @abstractmethod
    def expression(self, cp: Any, V: Any, scale: Any) -> Expression:
        """Return scale times the penalty as a CVXPY expression."""

    def zero(self) -> Array:
        """Return C = 0."""
        return np.zeros((len(self.c), len(self.c)))


class PenaltyWeights(NamedTuple):
    """Weights of a penalty for d features: roots a of the ridge, and the penalty on pairs with the roots c."""

    a: Array  # (d,)
    pair_penalty: PairPenalty

    @property
    def c(self) -> Array:
        """Roots of the weights of the penalty on pairs, (d,)."""
        return self.pair_penalty.c

    def restrict(self, indices: Indexer) -> "PenaltyWeights":
        """Return the weights of some features."""
        return PenaltyWeights(self.a[indices], self.pair_penalty.restrict(indices))

    def with_offset(self, a: float) -> "PenaltyWeights":
        """Return the weights with an offset whose ridge has this root."""
        return PenaltyWeights(np.append(self.a, a), self.pair_penalty.with_offset())


def diagonal_scale(V: Array) -> Array:
    """Return the square roots of the products of diagonal entries, (D, D)."""
    sqrt_diagonal = np.sqrt(np.diag(V))
    return np.asarray(np.outer(sqrt_diagonal, sqrt_diagonal))
