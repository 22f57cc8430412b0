r"""Penalty on pairs of coordinates: the interface that solvers, certificates and roundings use.

.. math::
    \sum_{gh} w_g w_h |V_{gh}| = \sum_j c_j^2 V_{jj} + \max_{C \in K} \mathrm{tr}\, C V,
    \qquad \text{at } V = vv^\top:\ \Big(\sum_g w_g |v_g|\Big)^2

The coordinates are in groups g of weight w_g, with Euclidean norms of the parts of v, and norms of the blocks of V
whose dual norms are at most the Frobenius norm.  The dual set K is convex and contains 0, and its matrices are
symmetric.  K is bounded if the penalty is finite on all V >= 0; if some V are infeasible, K is unbounded, and
`make_feasible` returns a feasible V.

`PairPenalty` is the penalty with groups of one, the relaxed squared l1 norm sum_jk c_j c_k |V_jk|, whose dual set is
the box |C_jk| <= c_j c_k.  Other penalties override the methods that differ.  A box with other half-widths overrides
`half_widths`, and the methods that map half-widths to other coordinates: `with_weights`, `with_offset` and `restrict`.
"""

from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, abs_gram_sum, outer_product, scale_rows
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.rows import Indexer, Indices, Mask
from diffrac_cvx.problem.penalties.lassos import lasso_residuals

INSIDE_BOX = 1.0 - 4.0 * UNIT_ROUNDOFF  # shrinks a box t c_j c_k, so that C is inside it after four roundings


class OffDiagonalDual:
    """Dual set, times t, between row coordinates and column coordinates without a common group."""

    def __init__(self, penalty: "PairPenalty", rows: Indices, columns: Indices) -> None:
        self.penalty, self.rows, self.columns = penalty, rows, columns

    def bound(self, t: float) -> Array:
        """Return t times the half-widths of the box, slightly decreased."""
        c, sides = self.penalty.c, self.penalty.half_widths(self.rows[:, None], self.columns)
        return np.asarray(t * INSIDE_BOX * sides * np.outer(c[self.rows], c[self.columns]))

    def project_safe(self, tC: Array, t: float) -> Array:
        """Return approximately the projection onto t times the dual set, and inside it, rounding included."""
        bound = self.bound(t)
        return np.asarray(np.clip(tC, -bound, bound))

    def violated_columns(self, T: Array, t: float) -> Indices:
        """Return the columns with an entry, or of groups with a block, that violates the dual set."""
        return np.flatnonzero((np.abs(T) > self.bound(t)).any(axis=0))

    def best_multiplier(self, P: Array, T: Array, t: float) -> Array:
        """Return nearly the minimiser tC of tr e'P^-1 e, e = tC - T, in t times the dual set; T if T is inside."""
        columns = self.violated_columns(T, t)
        if not len(columns):
            return T
        tC, part = T.copy(), type(self)(self.penalty, self.rows, self.columns[columns])
        tC[:, columns] = part.residuals(P, np.ascontiguousarray(T[:, columns]), t)
        return tC

    def residuals(self, P: Array, T: Array, t: float) -> Array:
        """Return approximately T - P Z at the minimum of tr Z'PZ/2 - tr Z'T + t sum_gh w_g w_h |Z_gh|."""
        with np.errstate(over="ignore", invalid="ignore"):  # single precision has a smaller range
            found = lasso_residuals(P, T, self.bound(t))
        return np.where(np.isfinite(found), found, T)


class PairPenalty:
    """Ridge and a penalty on pairs of coordinates with weights c, (D,), constant within a group; here, groups of one.

    The ridge is part of A in the problem: values, dual sets and multipliers are those of the penalty on pairs.
    Entries of C without a penalty are 0 in K: those in rows or columns with c = 0, and the diagonal.
    """

    is_box = True  # whether K is a box, an interval for each entry; if not, its blocks contain spectral-norm balls
    is_even = True  # whether v and -v are feasible together; if so, `off_diagonal` is all of K there

    def __init__(
        self, c: Array, labels: Indices | None = None, nonnegative: Mask | None = None, a: Array | None = None
    ) -> None:
        self.c, self.labels = c, np.arange(len(c)) if labels is None else labels
        self.a = np.zeros(len(c)) if a is None else a  # (D,), roots of the weights of the ridge
        # (D,), coordinates with v_j >= 0: C has no lower bound between two of them
        self.nonnegative = np.zeros(len(c), dtype=bool) if nonnegative is None else nonnegative

    @property
    def splits_into_blocks(self) -> bool:
        """Whether K is a product of symmetric intervals, so that V may be block diagonal along any partition."""
        return self.is_box and self.is_even

    @property
    def is_l1(self) -> bool:
        """Whether the penalty is the l1 norm: K is the box |C_jk| <= c_j c_k."""
        return self.splits_into_blocks and self.has_unit_sides

    # The penalty on other coordinates or with other weights

    def with_weights(self, c: Array, a: Array | None = None) -> Self:
        """Return the same penalty with new weights c, and with a new ridge if it is given."""
        return type(self)(c, self.labels, self.nonnegative, self.a if a is None else a)

    def scaled(self, scale: Array | float) -> Self:
        """Return the penalty in other units: the roots of all weights are multiplied by the scale."""
        return self.with_weights(self.c * scale, self.a * scale)

    def with_offset(self, a: float = 0.0) -> Self:
        """Return the penalty with one more coordinate, of any sign, with a ridge, c = 0 and a group of its own."""
        labels = np.append(self.labels, self.labels.max(initial=-1) + 1)
        return type(self)(np.append(self.c, 0.0), labels, np.append(self.nonnegative, False), np.append(self.a, a))

    def restrict(self, indices: Indexer) -> "PairPenalty":
        """Return the penalty on some coordinates: the l1 norm if no sign constraint and no larger group is left."""
        c, labels, nonnegative = self.c[indices], self.labels[indices], self.nonnegative[indices]
        is_l1 = not nonnegative.any() and len(np.unique(labels)) == len(labels)
        return PairPenalty(c, a=self.a[indices]) if is_l1 else type(self)(c, labels, nonnegative, self.a[indices])

    @property
    def reference_weights(self) -> Array:
        """Weights that scale the multipliers, (D,): c, except for coordinates that have pairs although c = 0."""
        return self.c

    @property
    def relative(self) -> Self:
        """The same penalty with C relative to the reference weights."""
        return self.with_weights(np.where(self.reference_weights > self.c, 0.0, 1.0))

    @property
    def is_zero(self) -> bool:
        """Whether no pair of coordinates is coupled."""
        return not self.reference_weights.any()

    # Groups of coordinates

    @cached_property
    def groups(self) -> list[Indices]:
        """Coordinates of each group, by label."""
        return groups_of(self.labels)

    @cached_property
    def weights(self) -> Array:
        """Weight of each group."""
        return self.c[np.unique(self.labels, return_index=True)[1]]

    def group_max(self, sizes: Array) -> Array:
        """Return, for each coordinate, the largest size in its group: the common unit of the group."""
        largest = np.zeros(int(self.labels.max(initial=0)) + 1)
        np.maximum.at(largest, self.labels, sizes)
        return np.asarray(largest[self.labels])

    def group_sums(self, values: Array) -> Array:
        """Return the sum of the values in the group of each coordinate."""
        return np.asarray(np.bincount(self.labels, values)[self.labels])

    def group_norms(self, Z: Array, *, by_group: bool = False) -> Array:
        """Return the norm of each column of Z, (D,) or (D, k), in the group of each coordinate, or in each group."""
        D, G = len(self.labels), int(self.labels.max(initial=-1)) + 1
        members = scipy.sparse.csc_array((np.ones(D), self.labels, np.arange(D + 1)), shape=(G, D))
        norms = np.sqrt(members @ np.square(Z))
        return np.asarray(norms if by_group else norms[self.labels])

    def complete_groups(self, mask: Mask) -> Mask:
        """Return the mask of all groups that intersect a mask."""
        return self.group_sums(mask.astype(np.float64)) > 0.0

    def first_groups(self, order: Indices, limit: int) -> Indices:
        """Return the first coordinates of an order, up to a limit, in complete groups; at least one if it is not 0."""
        labels, places = np.unique(self.labels[order], return_index=True)
        counts = np.bincount(self.labels)
        place = np.full(len(counts), len(order))
        place[labels] = places
        sizes = np.cumsum(counts[labels[np.argsort(places)]])
        size = sizes[max(int(np.sum(sizes <= limit)), 1) - 1] if len(order) and limit else 0
        return np.argsort(place[self.labels], kind="stable")[:size]

    # Directions v

    def direction_norm(self, Z: Array) -> Array:
        """Return sum_g w_g |z_g| for each column z of Z, (D,) or (D, k)."""
        return np.asarray(self.group_norms((self.c * Z.T).T, by_group=True).sum(axis=0))

    def direction_value(self, v: Array) -> float:
        """Return the penalty of a direction, its value at vv'; infinite if the direction is infeasible."""
        if np.any(self.nearest_direction(v) != v):
            return float(np.inf)
        sizes = np.abs(self.c * v)
        return float(self.direction_norm(v)) ** 2 if self.has_unit_sides else float(sizes @ self.sides @ sizes)

    def nearest_direction(self, v: Array) -> Array:
        """Return the feasible direction nearest to v."""
        return np.where(self.nonnegative, np.maximum(v, 0.0), v)

    # Matrices V = UU' and their multipliers C

    def half_widths(self, j: Any, k: Any) -> Any:  # noqa: ARG002
        """Return the half-widths of the box divided by c_j c_k, for index arrays that broadcast: in [0, 1], 1 at j = k.

        If K is not a box, they are radii divided by w_g w_h.  A single number applies to all pairs.  All proofs and
        solvers call this method.
        """
        return 1.0

    @cached_property
    def sides(self) -> Any:
        """`half_widths` of all pairs, (D, D), or one number."""
        places = np.arange(len(self.c))
        return self.half_widths(places[:, None], places)

    @cached_property
    def has_unit_sides(self) -> bool:
        """Whether the half-widths are the products of weights c_j c_k."""
        return bool(np.all(self.sides == 1.0))

    @cached_property
    def half_width(self) -> Array:
        """Half-width of the box, (D, D), 0 on the diagonal, not rounded up."""
        half_width: Array = np.outer(self.c, self.c) * (self.sides * INSIDE_BOX)
        np.fill_diagonal(half_width, 0.0)
        return half_width

    @property
    def lower_ends(self) -> Array:
        """Lower ends of the intervals of the box, (D, D)."""
        return -self.half_width

    def value(self, U: Factor) -> float:
        """Return the penalty at a feasible V = UU'."""
        rows = scale_rows(U, self.c)
        return abs_gram_sum(rows) if self.has_unit_sides else float(np.sum(self.sides * np.abs(outer_product(rows))))

    def value_error_bound(self, U: Factor) -> float:
        """Return a bound on the rounding error of `value`; infinite if V is not certified to be feasible."""
        # The error of entry jk is at most sum_error times |U_j||U_k|'; the sum over jk is a sum of squared column sums.
        scaled: Any = abs(scale_rows(U, self.c))
        sums = np.asarray(scaled.sum(axis=0)).ravel()
        return round_up(sum_error(U.shape[0] + U.shape[1] + 8) * float(sums @ sums), U.shape[0] + 8)

    def support_function(self, V: Array) -> float:
        """Return the maximum of tr CV over C in K; for an infeasible V, over a bounded part of K."""
        return float(np.sum(self.half_width * np.abs(V)))

    def project_safe(self, C: Array) -> Array:
        """Return approximately the projection of a symmetric matrix onto K; the result is in K, rounding included."""
        return np.asarray(np.clip(C, self.lower_ends, self.half_width))

    def project_inexact(self, C: Array) -> Array:
        """Project a symmetric matrix approximately onto K, in place: for solver steps, not for proofs."""
        is_unit = self.is_even and self.c.min(initial=1.0) == 1.0 == self.c.max(initial=1.0)
        if is_unit and self.has_unit_sides:  # relative to the weights: no box matrix needed
            np.clip(C, -INSIDE_BOX, INSIDE_BOX, out=C)
            np.fill_diagonal(C, 0.0)
            return C
        return np.asarray(np.clip(C, self.lower_ends, self.half_width, out=C))

    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        """Return a C in K that maximises tr CV on the entries of V above a threshold, and equals slack elsewhere.

        The threshold is relative to the square roots of the products of the diagonal entries.
        """
        return np.where(np.abs(V) > threshold * diagonal_scale(V), self.half_width * np.sign(V), slack)

    def zero_inactive(self, V: Array, C: Array) -> Array:
        """Return V with zeros where C is strictly inside K, because an optimal V is 0 there."""
        return np.where(np.abs(C) >= self.half_width * (1.0 - 1e-12), V, 0.0)

    def dual_norms(self, G: Array) -> Array:
        """Return upper bounds on the dual norms of the blocks of a matrix, (groups, groups), 0 on the diagonal.

        If they are below the products of the weights and `half_widths`, G is strictly inside K between two groups.
        """
        norms = np.abs(G)
        norms[np.diag_indices(len(norms))] = 0.0
        return norms

    def off_diagonal(self, rows: Indices, columns: Indices) -> OffDiagonalDual:
        """Return the dual set between row coordinates and column coordinates, which have no group in common."""
        return OffDiagonalDual(self, rows, columns)

    def make_feasible(self, U: Factor) -> Factor:
        """Return a factor of a feasible V near UU'; U itself if UU' is certified to be feasible."""
        return U

    def expression(self, cp: Any, V: Any) -> tuple[Any, list[Any]]:
        """Return the penalty of a copy of V as a CVXPY expression, with constraints for `multiplier`."""
        copy, signed = cp.Variable(V.shape, name="copy_of_V"), np.flatnonzero(self.nonnegative)
        signs = [copy[signed, :][:, signed] >= 0] if len(signed) else []
        return self.cvxpy_value(cp, copy), [copy == V, *signs]

    def cvxpy_value(self, cp: Any, V: Any) -> Any:
        """Return the penalty as a CVXPY expression."""
        return cp.sum(cp.multiply(np.outer(self.c, self.c) * self.sides, cp.abs(V)))

    def multiplier(self, constraints: list[Any]) -> Array | None:
        """Return a matrix whose symmetric part is C off the diagonal, from `expression`; None if unsolved."""
        dual = constraints[0].dual_value
        return None if dual is None else -np.asarray(dual)

    def zero(self) -> Array:
        """Return C = 0."""
        return np.zeros((len(self.c), len(self.c)))


def groups_of(labels: Indices) -> list[Indices]:
    """Return the coordinates by label, each group increasing."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(order) else []


def diagonal_scale(V: Array) -> Array:
    """Return the square roots of the products of diagonal entries, (D, D)."""
    sqrt_diagonal = np.sqrt(np.diag(V))
    return np.asarray(np.outer(sqrt_diagonal, sqrt_diagonal))
